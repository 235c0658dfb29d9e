// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Compares two runs that differ in one token, and computes the path sums of the first one's
// attention.
#include "audit/studies/sinks/mixing.h"

#include "audit/studies/sinks/heads.h"
#include "base/splitmix.h"
#include "base/words.h"
#include "proofs/bounds/mixing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- the request --------------------------------------------------------------------------------

static bool parse_whole_number(const char *text, char **end, size_t below, size_t *out) {
    unsigned long long value = strtoull(text, end, 10);
    *out = (size_t)value;
    return *text >= '0' && *text <= '9' && value < below;
}

static bool parse_lengths(const char *text, size_t n, mix_plan *plan, sinkproof_error *error) {
    char *end = (char *)text - 1;
    plan->n_lengths = 0;
    do {
        const char *word = end + 1;
        if (plan->n_lengths == MIX_LENGTHS)
            return sinkproof_fail(error, "--perturb: expected at most %d lengths", MIX_LENGTHS);
        if (!parse_whole_number(word, &end, n + 1, &plan->lengths[plan->n_lengths]) ||
            plan->lengths[plan->n_lengths++] == 0)
            return sinkproof_fail(error,
                                  "--perturb: a length \"%.40s\", expected 1 to %zu, the "
                                  "tokens of the input",
                                  word, n);
    } while (*end == '+');
    if (*end == '\0') return true;
    return sinkproof_fail(error, "--perturb: lengths=%.80s, expected numbers joined by +", text);
}

static size_t shortest_length(const mix_plan *plan) {
    size_t least = plan->lengths[0];
    for (size_t k = 1; k < plan->n_lengths; k++)
        least = plan->lengths[k] < least ? plan->lengths[k] : least;
    return least;
}

static bool parse_hidden(const char *text, size_t n, heads_hidden *hidden, sinkproof_error *error) {
    char *end;
    if (parse_whole_number(text, &end, n, &hidden->first) && hidden->first > 0 && *end == '@' &&
        parse_whole_number(end + 1, &end, n, &hidden->from) && *end == '\0' &&
        hidden->from >= hidden->first)
        return true;
    return sinkproof_fail(error,
                          "--perturb: \"hide=%.40s\", expected hide=K@R: the first K keys hidden "
                          "from row R on, K from 1 to R, R below %zu",
                          text, n);
}

static bool parse_word(char *word, size_t n, size_t vocab, uint64_t *seed, bool *drawn,
                       mix_plan *plan, sinkproof_error *error) {
    char *end;
    size_t id;
    if (strncmp(word, "lengths=", 8) == 0) return parse_lengths(word + 8, n, plan, error);
    if (strncmp(word, "hide=", 5) == 0) return parse_hidden(word + 5, n, &plan->hidden, error);
    if (strcmp(word, "drawn") == 0) return *drawn = true;
    if (strncmp(word, "seed=", 5) == 0) {
        *seed = strtoull(word + 5, &end, 10);
        if (word[5] >= '0' && word[5] <= '9' && *end == '\0') return true;
    } else if (strncmp(word, "raise=", 6) == 0) {
        plan->raised = strtod(word + 6, &end);
        if (end != word + 6 && *end == '\0' && isfinite(plan->raised)) return true;
    } else if (parse_whole_number(word, &end, n, &plan->position) && *end == ':' &&
               parse_whole_number(end + 1, &end, vocab, &id) && *end == '\0') {
        plan->token = (int32_t)id;
        *drawn = false;
        return true;
    }
    return sinkproof_fail(error,
                          "--perturb: \"%.80s\", expected POS:ID with POS below %zu and ID "
                          "below %zu, drawn, lengths=N+N..., raise=X, hide=K@R or seed=S",
                          word, n, vocab);
}

// The modes that the model has, in the order of their names.
static bool choose_modes(const sinkproof_config *config, mix_plan *plan, sinkproof_error *error) {
    bool none = heads_have_no_sinks(config);
    size_t shortest = shortest_length(plan);
    if (none && plan->raised != 0)
        return sinkproof_fail(error, "--perturb: raise=%g, expected a model with sinks, found none",
                              plan->raised);
    plan->modes[plan->n_modes++] = MIX_AS_IT_IS;
    if (!none) plan->modes[plan->n_modes++] = MIX_WITHOUT;
    if (plan->raised != 0) plan->modes[plan->n_modes++] = MIX_RAISED;
    if (none && plan->hidden.first == 0 && shortest > 2)
        plan->hidden = (heads_hidden){1, plan->position > 2 ? plan->position : 2};
    if (plan->hidden.first > 0) plan->modes[plan->n_modes++] = MIX_HIDDEN;
    if (plan->hidden.first == 0 || plan->hidden.from < shortest) return true;
    return sinkproof_fail(error,
                          "--perturb: hide= from row %zu on, expected a row of the first %zu",
                          plan->hidden.from, shortest);
}

bool mix_parse(const char *text, size_t n, const int32_t *tokens_n, const sinkproof_config *config,
               mix_plan *plan, sinkproof_error *error) {
    size_t vocab = config->vocab;
    uint64_t seed = 1;
    bool drawn = true, good = true;
    char *words = strdup(text), *rest = words;
    if (words == NULL) return sinkproof_fail(error, "no memory for \"%.80s\"", text);
    *plan = (mix_plan){.n_lengths = 1, .lengths = {n}};
    for (char *word; good && (word = strsep(&rest, ",")) != NULL;)
        good = parse_word(word, n, vocab, &seed, &drawn, plan, error);
    free(words);
    if (!good) return false;
    if (drawn) { // a token other than the present one
        plan->position = sinkproof_draw(&seed) % shortest_length(plan);
        plan->token = tokens_n[plan->position];
        while (vocab > 1 && plan->token == tokens_n[plan->position])
            plan->token = (int32_t)(sinkproof_draw(&seed) % vocab);
    }
    if (plan->token == tokens_n[plan->position])
        return sinkproof_fail(error, "--perturb: token %zu is %d already", plan->position,
                              (int)plan->token);
    if (plan->position < shortest_length(plan)) return choose_modes(config, plan, error);
    return sinkproof_fail(error, "--perturb: token %zu is not in the first %zu", plan->position,
                          shortest_length(plan));
}

const char *mix_mode_name(mix_mode mode) {
    static const char *const names[] = {"as it is", "without sinks", "sinks raised",
                                        "first hidden"};
    return names[mode];
}

// ---- a pair of runs ----------------------------------------------------------------------------

typedef struct pair {
    mixing_study *mix;
    const mix_plan *plan;
    size_t hidden;
    double *state_lnc;        // of the first run
    double *alpha_j, *a_ij;   // a head's row; the mean over the heads
    double *paths_n, *from_n; // up to the current layer
    bool second;
} pair;

// Adds one more layer of paths, by the mean of the heads' maps.
static void add_paths(pair *p, const layer_heads *heads, double change) {
    size_t n = heads->n, n_heads = heads->config->n_heads;
    memset(p->a_ij, 0, n * n * sizeof(double));
    for (size_t h = 0; h < n_heads; h++)
        for (size_t i = 0; i < n; i++) {
            double sink, b = heads->b_hi[h * n + i];
            heads_row_weights(heads, h, i, isinf(b) ? b : b + change, p->alpha_j, &sink);
            for (size_t j = 0; j <= i; j++) p->a_ij[i * n + j] += p->alpha_j[j] / (double)n_heads;
        }
    sinkproof_path_sums(n, p->a_ij, p->paths_n);
    sinkproof_path_sums(n, p->a_ij, p->from_n);
    memcpy(p->mix->paths_ln + (heads->layer + 1) * n, p->paths_n, n * sizeof(double));
    memcpy(p->mix->from_ln + (heads->layer + 1) * n, p->from_n, n * sizeof(double));
}

static void mix_attend(void *context, const layer_heads *heads) {
    pair *p = context;
    mix_mode mode = p->mix->mode;
    layer_heads seen = *heads;
    double change = mode == MIX_WITHOUT ? -INFINITY : mode == MIX_RAISED ? p->plan->raised : 0;
    if (mode == MIX_HIDDEN) seen.hidden = p->plan->hidden;
    if (!p->second) add_paths(p, &seen, change);
    if (mode != MIX_AS_IT_IS) heads_attend(&seen, change, heads->o_nhd, p->alpha_j);
}

static void mix_compare_point(void *context, sinkproof_trace_point point, size_t layer,
                              size_t count, const double *values) {
    pair *p = context;
    mixing_study *mix = p->mix;
    if (point != TRACE_T0 && point != TRACE_M12) return;
    size_t l = point == TRACE_T0 ? 0 : layer + 1;
    double *state_nc = p->state_lnc + l * mix->n * p->hidden;
    if (!p->second) {
        memcpy(state_nc, values, count * sizeof(double));
        return;
    }
    for (size_t i = 0; i < mix->n; i++) {
        sinkproof_moved moved =
            sinkproof_row_distance(p->hidden, state_nc + i * p->hidden, values + i * p->hidden);
        mix->off_ln[l * mix->n + i] = moved.off;
        mix->size_ln[l * mix->n + i] = moved.size;
        mix->earlier += i < p->plan->position && !(moved.off == 0);
    }
}

static bool run_pair(const sinkproof_model *model, sinkproof_runner *runner, pair *p,
                     const int32_t *tokens_n, sinkproof_error *error) {
    size_t n = p->mix->n;
    sinkproof_observer observer;
    heads_observer watcher = {.context = p, .heads = mix_attend, .point = mix_compare_point};
    int32_t *changed_n = malloc(n * sizeof *changed_n);
    bool good = changed_n != NULL ||
                sinkproof_fail(error, "no memory for %s", sinkproof_counted(n, "token").text);
    good = good && heads_observer_begin(&watcher, model, n, &observer, error);
    for (int run = 0; good && run < 2; run++) {
        memcpy(changed_n, tokens_n, n * sizeof *changed_n);
        if (run == 1) changed_n[p->plan->position] = p->plan->token;
        p->second = run == 1;
        sinkproof_runner_reset(runner);
        good = sinkproof_runner_forward(runner, n, changed_n, NULL, &observer, error);
    }
    if (good && watcher.incomplete)
        good = sinkproof_fail(error, "the engine shows A11 without A4.q, A4.k and A2.v");
    if (changed_n != NULL) heads_observer_free(&watcher);
    free(changed_n);
    return good;
}

static bool mix_new(mixing_study *mix, pair *p, size_t hidden, sinkproof_error *error) {
    size_t n = mix->n, states = mix->rows * n;
    mix->off_ln = calloc(states, sizeof(double));
    mix->size_ln = calloc(states, sizeof(double));
    mix->paths_ln = calloc(states, sizeof(double));
    mix->from_ln = calloc(states, sizeof(double));
    *p = (pair){.mix = mix, .plan = p->plan, .hidden = hidden};
    p->state_lnc = malloc(states * hidden * sizeof(double));
    p->alpha_j = malloc(n * sizeof(double));
    p->a_ij = malloc(n * n * sizeof(double));
    p->paths_n = calloc(n, sizeof(double));
    p->from_n = calloc(n, sizeof(double));
    if (mix->off_ln == NULL || mix->size_ln == NULL || mix->paths_ln == NULL ||
        mix->from_ln == NULL || p->state_lnc == NULL || p->alpha_j == NULL || p->a_ij == NULL ||
        p->paths_n == NULL || p->from_n == NULL)
        return sinkproof_fail(error, "no memory to compare %s", sinkproof_counted(n, "token").text);
    p->paths_n[p->plan->position] = 1;
    for (size_t i = 0; i < n; i++) p->from_n[i] = 1;
    memcpy(mix->paths_ln, p->paths_n, n * sizeof(double));
    memcpy(mix->from_ln, p->from_n, n * sizeof(double));
    return true;
}

static void pair_free(pair *p) {
    free(p->state_lnc);
    free(p->alpha_j);
    free(p->a_ij);
    free(p->paths_n);
    free(p->from_n);
}

void mix_free(mixing_study *mix) {
    free(mix->off_ln);
    free(mix->size_ln);
    free(mix->paths_ln);
    free(mix->from_ln);
    *mix = (mixing_study){0};
}

bool mix_perturb_run(const sinkproof_model *model, sinkproof_runner *runner, const mix_plan *plan,
                     const int32_t *tokens_n, void (*progress)(void *context, double share),
                     void *progress_context, mixing_study *mixes, sinkproof_error *error) {
    const sinkproof_config *config = sinkproof_model_config(model);
    size_t modes = plan->n_modes, all = plan->n_lengths * modes;
    bool good = true;
    for (size_t k = 0; good && k < all; k++) {
        pair p = {.plan = plan};
        mixes[k] = (mixing_study){.mode = plan->modes[k % modes],
                                  .n = plan->lengths[k / modes],
                                  .rows = config->n_layers + 1};
        good = mix_new(&mixes[k], &p, config->hidden, error) &&
               run_pair(model, runner, &p, tokens_n, error);
        pair_free(&p);
        if (progress != NULL) progress(progress_context, (double)(k + 1) / (double)all);
    }
    return good;
}

// ---- the results --------------------------------------------------------------------------------

static double mix_relative_change(const mixing_study *mix, size_t l, size_t i) {
    double off = mix->off_ln[l * mix->n + i], size = mix->size_ln[l * mix->n + i];
    return off == 0 ? 0 : off / size;
}

mix_reach mix_reach_at(const mixing_study *mix, size_t position, size_t l) {
    size_t last = l * mix->n + mix->n - 1;
    double sum = 0;
    for (size_t i = position + 1; i < mix->n; i++) sum += mix_relative_change(mix, l, i);
    return (mix_reach){.at = mix_relative_change(mix, l, position),
                       .later = sum / (double)(mix->n - 1 - position),
                       .last = mix_relative_change(mix, l, mix->n - 1),
                       .share = mix->paths_ln[last] / mix->from_ln[last]};
}
