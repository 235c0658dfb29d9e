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

static bool number(const char *text, char **end, size_t below, size_t *out) {
    unsigned long long value = strtoull(text, end, 10);
    *out = (size_t)value;
    return *text >= '0' && *text <= '9' && value < below;
}

static bool parse_lengths(const char *text, size_t n, sinkproof_mix_plan *plan,
                          sinkproof_error *error) {
    char *end = (char *)text - 1;
    plan->n_lengths = 0;
    do {
        const char *word = end + 1;
        if (plan->n_lengths == SINKPROOF_MIX_LENGTHS)
            return sinkproof_fail(error, "--perturb: expected at most %d lengths",
                                  SINKPROOF_MIX_LENGTHS);
        if (!number(word, &end, n + 1, &plan->lengths[plan->n_lengths]) ||
            plan->lengths[plan->n_lengths++] == 0)
            return sinkproof_fail(error,
                                  "--perturb: a length \"%.40s\", expected 1 to %zu, the "
                                  "tokens of the input",
                                  word, n);
    } while (*end == '+');
    if (*end == '\0') return true;
    return sinkproof_fail(error, "--perturb: lengths=%.80s, expected numbers joined by +", text);
}

static size_t shortest(const sinkproof_mix_plan *plan) {
    size_t least = plan->lengths[0];
    for (size_t k = 1; k < plan->n_lengths; k++)
        least = plan->lengths[k] < least ? plan->lengths[k] : least;
    return least;
}

static bool parse_word(char *word, size_t n, size_t vocab, uint64_t *seed, bool *drawn,
                       sinkproof_mix_plan *plan, sinkproof_error *error) {
    char *end;
    size_t id;
    if (strncmp(word, "lengths=", 8) == 0) return parse_lengths(word + 8, n, plan, error);
    if (strcmp(word, "drawn") == 0) return *drawn = true;
    if (strncmp(word, "seed=", 5) == 0) {
        *seed = strtoull(word + 5, &end, 10);
        if (word[5] >= '0' && word[5] <= '9' && *end == '\0') return true;
    } else if (strncmp(word, "raise=", 6) == 0) {
        plan->raised = strtod(word + 6, &end);
        if (end != word + 6 && *end == '\0' && isfinite(plan->raised)) return true;
    } else if (number(word, &end, n, &plan->position) && *end == ':' &&
               number(end + 1, &end, vocab, &id) && *end == '\0') {
        plan->token = (int32_t)id;
        *drawn = false;
        return true;
    }
    return sinkproof_fail(error,
                          "--perturb: \"%.80s\", expected POS:ID with POS below %zu and ID "
                          "below %zu, drawn, lengths=N+N..., raise=X or seed=S",
                          word, n, vocab);
}

bool sinkproof_mix_parse(const char *text, size_t n, const int32_t *tokens_n, size_t vocab,
                         sinkproof_mix_plan *plan, sinkproof_error *error) {
    uint64_t seed = 1;
    bool drawn = true, good = true;
    char *words = strdup(text), *rest = words;
    if (words == NULL) return sinkproof_fail(error, "no memory for \"%.80s\"", text);
    *plan = (sinkproof_mix_plan){.n_lengths = 1, .lengths = {n}};
    for (char *word; good && (word = strsep(&rest, ",")) != NULL;)
        good = parse_word(word, n, vocab, &seed, &drawn, plan, error);
    free(words);
    if (!good) return false;
    if (drawn) { // a token other than the present one
        plan->position = sinkproof_draw(&seed) % shortest(plan);
        plan->token = tokens_n[plan->position];
        while (vocab > 1 && plan->token == tokens_n[plan->position])
            plan->token = (int32_t)(sinkproof_draw(&seed) % vocab);
    }
    if (plan->token == tokens_n[plan->position])
        return sinkproof_fail(error, "--perturb: token %zu is %d already", plan->position,
                              (int)plan->token);
    if (plan->position < shortest(plan)) return true;
    return sinkproof_fail(error, "--perturb: token %zu is not in the first %zu", plan->position,
                          shortest(plan));
}

const char *sinkproof_mix_mode_name(sinkproof_mix_mode mode) {
    static const char *const names[] = {"as it is", "without sinks", "sinks raised"};
    return names[mode];
}

size_t sinkproof_mix_modes(const sinkproof_mix_plan *plan) {
    return plan->raised != 0 ? SINKPROOF_MIX_MODES : SINKPROOF_MIX_RAISED;
}

// ---- a pair of runs ----------------------------------------------------------------------------

typedef struct pair {
    sinkproof_mixing *mix;
    const sinkproof_mix_plan *plan;
    size_t hidden;
    double *state_lnc;        // of the first run
    double *alpha_j, *a_ij;   // a head's row; the mean over the heads
    double *paths_n, *from_n; // up to the current layer
    bool second;
} pair;

// Adds one more layer of paths, by the mean of the heads' maps.
static void add_paths(pair *p, const sinkproof_heads *heads, double change) {
    size_t n = heads->n, n_heads = heads->config->n_heads;
    memset(p->a_ij, 0, n * n * sizeof(double));
    for (size_t h = 0; h < n_heads; h++)
        for (size_t i = 0; i < n; i++) {
            double sink, b = heads->b_hi[h * n + i];
            sinkproof_heads_weights(heads, h, i, isinf(b) ? b : b + change, p->alpha_j, &sink);
            for (size_t j = 0; j <= i; j++) p->a_ij[i * n + j] += p->alpha_j[j] / (double)n_heads;
        }
    sinkproof_path_sums(n, p->a_ij, p->paths_n);
    sinkproof_path_sums(n, p->a_ij, p->from_n);
    memcpy(p->mix->paths_ln + (heads->layer + 1) * n, p->paths_n, n * sizeof(double));
    memcpy(p->mix->from_ln + (heads->layer + 1) * n, p->from_n, n * sizeof(double));
}

static void attend(void *context, const sinkproof_heads *heads) {
    pair *p = context;
    sinkproof_mix_mode mode = p->mix->mode;
    double change = mode == SINKPROOF_MIX_WITHOUT  ? -INFINITY
                    : mode == SINKPROOF_MIX_RAISED ? p->plan->raised
                                                   : 0;
    if (!p->second) add_paths(p, heads, change);
    if (mode != SINKPROOF_MIX_AS_IT_IS)
        sinkproof_heads_attend(heads, change, heads->o_nhd, p->alpha_j);
}

static void compare(void *context, sinkproof_trace_point point, size_t layer, size_t count,
                    const double *values) {
    pair *p = context;
    sinkproof_mixing *mix = p->mix;
    if (point != SINKPROOF_TRACE_T0 && point != SINKPROOF_TRACE_M12) return;
    size_t l = point == SINKPROOF_TRACE_T0 ? 0 : layer + 1;
    double *state_nc = p->state_lnc + l * mix->n * p->hidden;
    if (!p->second) {
        memcpy(state_nc, values, count * sizeof(double));
        return;
    }
    for (size_t i = 0; i < mix->n; i++) {
        sinkproof_moved moved =
            sinkproof_row_moved(p->hidden, state_nc + i * p->hidden, values + i * p->hidden);
        mix->off_ln[l * mix->n + i] = moved.off;
        mix->size_ln[l * mix->n + i] = moved.size;
        mix->earlier += i < p->plan->position && !(moved.off == 0);
    }
}

static bool run_pair(const sinkproof_model *model, sinkproof_runner *runner, pair *p,
                     const int32_t *tokens_n, sinkproof_error *error) {
    size_t n = p->mix->n;
    sinkproof_observer observer;
    sinkproof_watcher watcher = {.context = p, .heads = attend, .point = compare};
    int32_t *changed_n = malloc(n * sizeof *changed_n);
    bool good = changed_n != NULL ||
                sinkproof_fail(error, "no memory for %s", sinkproof_counted(n, "token").text);
    good = good && sinkproof_watch(&watcher, model, n, &observer, error);
    for (int run = 0; good && run < 2; run++) {
        memcpy(changed_n, tokens_n, n * sizeof *changed_n);
        if (run == 1) changed_n[p->plan->position] = p->plan->token;
        p->second = run == 1;
        sinkproof_runner_reset(runner);
        good = sinkproof_runner_forward(runner, n, changed_n, NULL, &observer, error);
    }
    if (good && watcher.incomplete)
        good = sinkproof_fail(error, "the engine shows A11 without A4.q, A4.k and A2.v");
    if (changed_n != NULL) sinkproof_watcher_free(&watcher);
    free(changed_n);
    return good;
}

static bool mix_new(sinkproof_mixing *mix, pair *p, size_t hidden, sinkproof_error *error) {
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

void sinkproof_mix_free(sinkproof_mixing *mix) {
    free(mix->off_ln);
    free(mix->size_ln);
    free(mix->paths_ln);
    free(mix->from_ln);
    *mix = (sinkproof_mixing){0};
}

bool sinkproof_mix_run(const sinkproof_model *model, sinkproof_runner *runner,
                       const sinkproof_mix_plan *plan, const int32_t *tokens_n,
                       void (*progress)(void *context, double share), void *progress_context,
                       sinkproof_mixing *mixes, sinkproof_error *error) {
    const sinkproof_config *config = sinkproof_model_config(model);
    size_t modes = sinkproof_mix_modes(plan), all = plan->n_lengths * modes;
    bool good = true;
    for (size_t k = 0; good && k < all; k++) {
        pair p = {.plan = plan};
        mixes[k] = (sinkproof_mixing){.mode = (sinkproof_mix_mode)(k % modes),
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

static double relative(const sinkproof_mixing *mix, size_t l, size_t i) {
    double off = mix->off_ln[l * mix->n + i], size = mix->size_ln[l * mix->n + i];
    return off == 0 ? 0 : off / size;
}

sinkproof_mix_reach sinkproof_mix_reach_at(const sinkproof_mixing *mix, size_t position, size_t l) {
    size_t last = l * mix->n + mix->n - 1;
    double sum = 0;
    for (size_t i = position + 1; i < mix->n; i++) sum += relative(mix, l, i);
    return (sinkproof_mix_reach){.at = relative(mix, l, position),
                                 .later = sum / (double)(mix->n - 1 - position),
                                 .last = relative(mix, l, mix->n - 1),
                                 .share = mix->paths_ln[last] / mix->from_ln[last]};
}
