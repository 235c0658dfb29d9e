// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Causes in attention, A6 to A11: the guesses of the screen, tried by the judge's sets in the order
// of their distance.
#include "audit/diagnose/attention_ranges.h"
#include "audit/diagnose/gains.h"
#include "audit/diagnose/roundings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A sum in a known order reads keys in the order of the cache; what is moved would stand elsewhere.
static bool policy_can_move_keys(const sinkproof_policy *policy) {
    const sinkproof_accumulator sum = sinkproof_accumulator_at(policy, AT_A11_TERM, AT_A11_ACC);
    return !sinkproof_is_running(&sum);
}

// Whether the policy rounds scores or weights where a fused kernel need not; *to: that of a kernel.
static bool kernel_policy(const sinkproof_policy *policy, sinkproof_policy *to) {
    const sinkproof_rounding *at = policy->at;
    sinkproof_format out = at[AT_A11].format;
    bool rounds = (at[AT_A6].format == out && !at[AT_A6].optional) ||
                  (at[AT_A9].format == out && !at[AT_A9].optional);
    const char *name = out == SINKPROOF_BF16 ? "flash-bf16" : "flash-f16";
    return rounds && (out == SINKPROOF_BF16 || out == SINKPROOF_F16) &&
           sinkproof_policy_known(name, to);
}

// Attention of the policy, as a fused kernel may round it.
static bool suppose_kernel(sinkproof_policy *policy) {
    static const sinkproof_point points[] = {AT_A5,        AT_A6, AT_A8,      AT_A9_MAX,
                                             AT_A9_UNNORM, AT_A9, AT_A11_PART};
    sinkproof_policy kernel;
    if (!kernel_policy(policy, &kernel)) return false;
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++)
        policy->at[points[i]] = kernel.at[points[i]];
    policy->forms[SINKPROOF_FORM_OF_A9] |= kernel.forms[SINKPROOF_FORM_OF_A9];
    return true;
}

bool suppose_attending(supposed_engine *s, const sinkproof_attending *how) {
    bool moves = how->cache.kind != SINKPROOF_CACHE_NONE || how->merging.on;
    s->meaning.attending = *how;
    if (how->kernel && !suppose_kernel(&s->policy)) return false;
    return !moves || policy_can_move_keys(&s->policy);
}

static bool operate_attention(supposed_engine *s, const known_mistake *mistake) {
    const composed_mistake *m = (const composed_mistake *)(const void *)mistake;
    return suppose_attending(s, &m->attending);
}

bool composed_is_of_attention(const composed_mistake *m) {
    return m->operate == operate_attention;
}

static bool suppose_mistake(supposed_engine *s, const known_mistake *mistake) {
    const attention_mistake *m = (const attention_mistake *)(const void *)mistake;
    return suppose_attending(s, &m->how);
}

void attention_mistake_make(attention_mistake *m, const sinkproof_attending *how,
                            const sinkproof_config *config, const sinkproof_trace *trace) {
    const attention_site site = attention_site_of(config, trace);
    *m = (attention_mistake){.how = *how};
    m->mistake = (known_mistake){
        .id = m->id, .text = m->text, .points = attending_points(how), .suppose = suppose_mistake};
    attention_cause_say(how, &site, m->id, sizeof m->id, m->text, sizeof m->text);
}

bool attention_guess_is_near(const attention_guesses *g, size_t i, size_t samples) {
    // an honest query has at most log(2), of the guess that is kept too
    double least = g->of[0].misfit;
    for (size_t k = 1; k < g->n; k++) least = fmin(least, g->of[k].misfit);
    return g->of[i].misfit <= least + (double)samples * log(2);
}

static bool is_everywhere(const sinkproof_attending *how) {
    bool passes = how->cache.kind == SINKPROOF_CACHE_PASSES; // a place too: where a pass begins
    return !passes && how->first_row == 0 && how->end_row == 0 && how->first_head == 0 &&
           how->end_head == 0 && how->heads == 0;
}

// Whether two ids differ by the digits of one number alone, and the shorter one is the other,
// rounded to its digits: "score-times=0.408248" and "score-times=0.4082483".
static bool is_same_but_rounded(const char *a, const char *b) {
    enum { FEWEST_DIGITS = 5, MOST_DIGITS = 7 };
    size_t from = 0, at = 0;
    for (; a[at] != '\0' && a[at] == b[at]; at++)
        if (a[at] == '=') from = at + 1;
    char *end_a, *end_b, text[32];
    double x = strtod(a + from, &end_a), y = strtod(b + from, &end_b);
    size_t of_a = (size_t)(end_a - a) - from, of_b = (size_t)(end_b - b) - from;
    if (from == 0 || of_a == 0 || of_b == 0 || strcmp(end_a, end_b) != 0) return false;
    const char *shorter = of_a < of_b ? a + from : b + from;
    for (int digits = FEWEST_DIGITS; digits < MOST_DIGITS; digits++) {
        int length = snprintf(text, sizeof text, "%.*g", digits, of_a < of_b ? y : x);
        bool same = (size_t)length == (of_a < of_b ? of_a : of_b);
        if (same && strncmp(text, shorter, (size_t)length) == 0) return true;
    }
    return false;
}

// Two guesses that are said alike are one.
static bool is_said_already(const diagnosed_finding *f, const char *id) {
    bool said = false;
    for (size_t i = 0; f != NULL && i < f->n_alike; i++) {
        const char *other = f->alike[i].mistakes[0]->id;
        said = said || strcmp(other, id) == 0 || is_same_but_rounded(other, id);
    }
    return said;
}

static bool is_of_layers(const sinkproof_attending *how) {
    sinkproof_rule rule =
        how->score_rule != SINKPROOF_RULE_NONE ? how->score_rule : how->output_rule;
    return rule >= SINKPROOF_RULE_OVER_LAYER && rule <= SINKPROOF_RULE_UP_LAYER;
}

// Whether the point is outside in other layers too, and the cause explains it in each of these. In
// a single layer a rule of the layer's number is no more than a number.
static bool holds_in_other_layers(composing *c, const composed_mistake *m, bool *holds) {
    place_trials *trials = &c->s->trials;
    size_t others = 0;
    *holds = true;
    for (size_t l = 0; l < trials->config->n_layers && *holds; l++) {
        mistake_trial t = {.what = {1, {&m->mistake}}};
        bool possible;
        if (l == c->place || (failing_points(trials, l) & point_bit(c->point)) == 0) continue;
        if (!trial_try_whether(trials, l, &t, &possible)) return false;
        others++;
        *holds = possible && trial_explains(&t, point_bit(c->point));
    }
    *holds = *holds && others > 0;
    return true;
}

// Whether a guess is nearer to the failing queries, by two fifths: sets that are wider, and hold
// what is no nearer by chance, tell of no cause. Roundings to 16 bits, and those of a fused kernel
// under a policy of another, keep the right guess as far as the definition: there it is nearer,
// element by element, by some times what chance gives.
static bool is_nearer(const attention_guesses *guesses, size_t i) {
    if (guesses->rounded) return guesses->of[i].gain >= GAIN_SURE;
    return guesses->of[i].misfit <= 0.6 * guesses->misfit;
}

// Whether two causes, of which one may have been settled alone, are nearer than one.
static bool is_needed(const attention_guess *g, const sinkproof_attending *settled) {
    sinkproof_attending how = *settled;
    how.kernel = false;
    return g->gain_of_two >= GAIN_SURE || attention_is_one(&how);
}

// Of more causes than are listed those of the fewest numbers are: m, the last that was accepted,
// takes the place of the first of the most.
static void list_simpler(const composing *c, const composed_mistake *m) {
    diagnosed_finding *f = c->found;
    size_t most = attention_cause_numbers(&m->attending, c->n), at = f->n_alike;
    for (size_t i = 0; i < f->n_alike; i++) {
        const mistakes_together *one = &f->alike[i];
        const composed_mistake *other = (const composed_mistake *)(const void *)one->mistakes[0];
        size_t numbers = attention_cause_numbers(&other->attending, c->n);
        if (numbers > most) most = numbers, at = i;
    }
    if (at < f->n_alike) f->alike[at] = (mistakes_together){1, {&m->mistake}};
}

static bool try_guess(composing *c, const attention_guess *g) {
    const sinkproof_attending *how = &g->how;
    composed_mistake *m = composing_new(c);
    if (m == NULL) return false;
    m->attending = *how, m->operate = operate_attention;
    m->mistake.points = attending_points(how);
    const attention_site site = attention_site_of(c->s->trials.config, c->s->trials.suspect.trace);
    bool holds;
    if (!attention_settle(c, m, &holds)) return false;
    holds = holds && is_needed(g, &m->attending);
    m->mistake.points = attending_points(&m->attending);
    attention_cause_say(&m->attending, &site, m->id, sizeof m->id, m->text, sizeof m->text);
    if (holds && is_of_layers(how) && !holds_in_other_layers(c, m, &holds)) return false;
    if (!holds || is_said_already(c->found, m->id)) return true;
    size_t more = c->found != NULL ? c->found->more_alike : 0;
    if (!composing_try(c, m)) return false;
    if (c->found != NULL && c->found->more_alike > more) list_simpler(c, m);
    return true;
}

void attention_forget_guesses(search *s) {
    for (int p = 0; p < TRACE_POINTS; p++) {
        free(s->guesses[p]);
        s->guesses[p] = NULL;
    }
}

// Whether the trace or the policy keeps a number of attention in 16 bits or fewer.
static bool is_rounded_in_16_bits(const composing *c) {
    static const sinkproof_point points[] = {AT_A6, AT_A9, AT_A11_WEIGHTS, AT_A11};
    double most = c->step;
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++)
        most = fmax(most, policy_roundoff(c->s->trials.suspect.policy, points[i]));
    return most > 0x1p-12;
}

// The guesses at a point, which are found once. NULL if memory runs out.
static const attention_guesses *guesses_at(composing *c) {
    search *s = c->s;
    const attention_point of = {.model = s->trials.suspect.model,
                                .trace = s->trials.suspect.trace,
                                .policy = s->trials.suspect.policy,
                                .point = c->point,
                                .layer = c->place,
                                .n = c->n,
                                .v = c->v,
                                .lo = c->lo,
                                .hi = c->hi,
                                .prefix = s->trials.suspect.prefix};
    if (s->guessed != c->place) attention_forget_guesses(s);
    s->guessed = c->place;
    if (s->guesses[c->point] != NULL) return s->guesses[c->point];
    attention_guesses *made = malloc(sizeof *made);
    if (s->memory == NULL) s->memory = calloc(2 * TRACE_POINTS, sizeof *s->memory);
    if (made == NULL || s->memory == NULL ||
        !attention_guess_causes(&of, &s->memory[2 * c->point], made)) {
        free(made);
        fail_for_memory(s);
        return NULL;
    }
    made->rounded = is_rounded_in_16_bits(c);
    s->guesses[c->point] = made;
    return made;
}

typedef enum guess_kind { GUESS_EVERYWHERE, GUESS_PLACED, GUESS_JOINED } guess_kind;

static guess_kind kind_of(const attention_guesses *guesses, size_t i) {
    bool near = attention_guess_is_near(guesses, i, ATTENTION_SAMPLES);
    if (guesses->of[i].joined) return GUESS_JOINED;
    return near && is_everywhere(&guesses->of[i].how) ? GUESS_EVERYWHERE : GUESS_PLACED;
}

// The nearest guesses once more, as a kernel that fuses attention under a policy of one that does
// not: it rounds neither scores nor weights. Where these are shown they are judged themselves.
static bool try_kernels(composing *c, const attention_guesses *guesses, guess_kind kind) {
    enum { MOST = 6 };
    const sinkproof_trace *trace = c->s->trials.suspect.trace;
    sinkproof_policy unused;
    if (c->point != TRACE_A11 || !kernel_policy(c->s->trials.suspect.policy, &unused)) return true;
    for (sinkproof_trace_point p = TRACE_A6; p < TRACE_A11; p++)
        if (sinkproof_trace_find(trace, p, c->place) != NULL) return true;
    attention_guess alone = {.how = sinkproof_attending_as_defined, .gain_of_two = INFINITY};
    alone.how.kernel = true; // with its roundings alone no mistake is looked for
    if (!try_guess(c, &alone)) return false;
    if (c->found != NULL) return true;
    for (size_t i = 0, n = 0; i < guesses->n && n < MOST; i++) {
        attention_guess kernel = guesses->of[i];
        if (kind_of(guesses, i) != kind || !is_nearer(guesses, i)) continue;
        n++, kernel.how.kernel = true;
        if (!try_guess(c, &kernel)) return false;
    }
    return true;
}

static void note_family(const composing *c, unsigned family) {
    const sinkproof_config *config = c->s->trials.config;
    bool window = config->sliding[c->place] && config->window > 0;
    c->s->memory[2 * c->point + window].found = family + 1;
}

// Of the causes that explain the point, those with the fewest numbers come first; of as many, the
// nearest.
static void sort_by_numbers(composing *c) {
    diagnosed_finding *f = c->found;
    size_t rows = c->n, numbers[DIAGNOSE_MOST_ALIKE];
    for (size_t i = 0; i < f->n_alike; i++) {
        const mistakes_together one = f->alike[i];
        const composed_mistake *m = (const composed_mistake *)(const void *)one.mistakes[0];
        size_t n = attention_cause_numbers(&m->attending, rows), at = i;
        for (; at > 0 && numbers[at - 1] > n; at--)
            numbers[at] = numbers[at - 1], f->alike[at] = f->alike[at - 1];
        numbers[at] = n, f->alike[at] = one;
    }
}

// Guesses that hold everywhere, those that hold at a place, or two causes at once.
static bool compose_guesses(composing *c, guess_kind kind) {
    if ((point_bit(c->point) & (AT(A6) | WEIGHTS)) == 0) return true;
    const attention_guesses *guesses = guesses_at(c);
    if (guesses == NULL) return false;
    // of what is near, numbers that are exact come before those that are known within an error
    const attention_guess *first = NULL;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < guesses->n; i++) {
            const attention_guess *g = &guesses->of[i];
            bool near = attention_guess_is_near(guesses, i, ATTENTION_SAMPLES);
            bool exact = near && g->how.times_error == 0;
            if (kind_of(guesses, i) != kind || exact != (pass == 0)) continue;
            if (!is_nearer(guesses, i)) continue;
            if (c->found != NULL && !near) continue;
            // a set of keys tells less than a rule that reads the same
            if (c->found != NULL && g->how.cache.kind == SINKPROOF_CACHE_LISTED) continue;
            // the exact number tells it
            if (first != NULL && pass > 0 && first->family == g->family) continue;
            if (!try_guess(c, g)) return false;
            if (first == NULL && c->found != NULL) first = g;
        }
    if (first != NULL) note_family(c, first->family);
    if (c->found == NULL && !try_kernels(c, guesses, kind)) return false;
    if (c->found != NULL) sort_by_numbers(c);
    return true;
}

bool compose_attention_everywhere(composing *c) {
    return compose_guesses(c, GUESS_EVERYWHERE);
}

bool compose_attention(composing *c) {
    return compose_guesses(c, GUESS_PLACED);
}

bool compose_attention_joined(composing *c) {
    return compose_guesses(c, GUESS_JOINED);
}
