// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Computes rows of attention from shorter caches, and compares them with the full row and their
// bounds.
//
// Rounding. All rows are computed in binary64 from the same numbers. A shifted argument is at most
// 745 where e^x is not 0, so a weight has a relative error of at most (745 + n + 8) 2^-53, and an
// output an additional error of n 2^-53 of the largest value; a score has an error of (d + 2) 2^-53
// S, S = |q|_1 max |k| / sqrt(d), which changes weights by twice that: (2 n + 800 + 2 (d + 2) S)
// 2^-53 of the largest value in all. Two outputs are compared, so twice that is added to each
// bound.
#include "audit/studies/sinks/strategies.h"

#include "audit/studies/sinks/heads.h"
#include "base/words.h"
#include "proofs/bounds/mixing.h"
#include "proofs/bounds/worst.h"
#include "ref/stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const cache_strategy cache_strategies[STRATEGY_COUNT] = {
    {.name = "first-recent",
     .what = "the first tokens and the last ones",
     .evicts = true,
     .first = true},
    {.name = "recent", .what = "as many of the last ones alone", .evicts = true},
    {.name = "first-gone",
     .what = "all but the first ones, which leave when the others would",
     .evicts = true,
     .others = true},
    {.name = "int8-first",
     .what = "8 bits, the first tokens as they are",
     .bits = 8,
     .first = true},
    {.name = "int8", .what = "8 bits, all tokens", .bits = 8},
    {.name = "int4-first",
     .what = "4 bits, the first tokens as they are",
     .bits = 4,
     .first = true},
    {.name = "int4", .what = "4 bits, all tokens", .bits = 4},
};
enum { FORMATS = 3 }; // formats of a cache: the run's own, 8 bits, 4 bits
static const int bits_of[FORMATS] = {0, 8, 4};

bool strategy_parse(const char *text, strategy_plan *plan, sinkproof_error *error) {
    char *end;
    plan->first = strtoull(text, &end, 10);
    bool good = *text >= '0' && *text <= '9' && *end == ',' && end[1] >= '0' && end[1] <= '9';
    if (good) plan->recent = strtoull(end + 1, &end, 10);
    if (good && *end == '\0' && plan->recent > 0) return true;
    return sinkproof_fail(error,
                          "--strategies: \"%.80s\", expected FIRST,RECENT: how many of the "
                          "first tokens and of the last, 4,64",
                          text);
}

// ---- the caches of a layer ---------------------------------------------------------------------

// Keys and values of a layer in one format. Each token's key (or value) of one key/value head,
// head_dim numbers, has a scale.
typedef struct cache {
    double *k_gdn, *v_ngd;
    double *key_off_gn, *value_off_gn; // largest error of a coordinate
} cache;

typedef struct work {
    strategy_study *out;
    const strategy_plan *plan;
    cache caches[FORMATS];
    double *most_key_gn, *most_value_gn; // largest |coordinate| of a token
    double *row_d, *kept_d;              // [head_dim]
    double *s_fj;                        // [FORMATS, n] scores
    double *e_j, *full_e_j;              // [n] for a strategy's row, and for the full one
    double *delta_j, *eps_j, *alpha_j;   // [n]
    double *full_d, *out_d;              // [head_dim] not normalised
    double *memory;                      // holds all of these
    size_t strategy;                     // in a whole run; STRATEGY_COUNT: the full cache
    bool sinks;
    double *state_nc; // F1 of a whole run, or NULL
    const int32_t *tokens_n;
    double loss; // of a whole run
    void (*progress)(void *context, double share);
    void *progress_context;
    double share_of; // share of the layer-by-layer errors in the progress
} work;

static double largest_size(size_t n, const double *x) {
    double most = 0;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs(x[i]));
    return most;
}

// Stores one token's key or value of a group in the format; returns the largest error.
static double quantise_into_cache(int bits, size_t d, const double *x_d, double *kept_d) {
    if (bits > 0) return sinkproof_quantise_most(bits, sinkproof_quantise(bits, d, x_d, kept_d));
    memcpy(kept_d, x_d, d * sizeof(double));
    return 0;
}

static void fill_caches(work *s, const layer_heads *heads) {
    size_t n = heads->n, d = heads->config->head_dim, groups = heads->config->n_kv_heads;
    for (size_t g = 0; g < groups; g++)
        for (size_t j = 0; j < n; j++) {
            const double *v_d = heads->v_ngd + (j * groups + g) * d;
            for (size_t e = 0; e < d; e++) s->row_d[e] = heads->k_gdn[(g * d + e) * n + j];
            s->most_key_gn[g * n + j] = largest_size(d, s->row_d);
            s->most_value_gn[g * n + j] = largest_size(d, v_d);
            for (size_t f = 0; f < FORMATS; f++) {
                cache *c = &s->caches[f];
                c->key_off_gn[g * n + j] = quantise_into_cache(bits_of[f], d, s->row_d, s->kept_d);
                for (size_t e = 0; e < d; e++) c->k_gdn[(g * d + e) * n + j] = s->kept_d[e];
                c->value_off_gn[g * n + j] =
                    quantise_into_cache(bits_of[f], d, v_d, c->v_ngd + (j * groups + g) * d);
            }
        }
}

static size_t cache_format_index(int bits) {
    size_t f = 0;
    while (bits_of[f] != bits) f++;
    return f;
}

// ---- one row -----------------------------------------------------------------------------------

typedef struct place {
    const layer_heads *heads;
    size_t h, g, i, first;       // head, its key/value head, row, the first visible key
    double query;                // |q|_1 / sqrt(d)
    double most_key, most_value; // largest |coordinate| of the visible keys and values
} place;

static bool cache_holds_key(const work *s, const cache_strategy *strategy, size_t i, size_t j) {
    if (strategy == NULL || !strategy->evicts) return true;
    if (strategy->others) return j >= s->plan->first || i < s->plan->first + s->plan->recent;
    if (strategy->first) return j < s->plan->first || j + s->plan->recent > i;
    return j + s->plan->recent + s->plan->first > i;
}

// Whether key and value j are the run's own.
static bool key_is_exact(const work *s, const cache_strategy *strategy, size_t j) {
    return strategy == NULL || strategy->bits == 0 || (strategy->first && j < s->plan->first);
}

// e^(s_j - top) for the keys that a strategy keeps (NULL: all) and 0 for the others, and their sum;
// out_d: the sum of their values, not normalised.
static heads_row_sums sum_row_exponentials(work *s, const place *p, const cache_strategy *strategy,
                                           double *e_j, double *out_d) {
    const sinkproof_config *c = p->heads->config;
    size_t d = c->head_dim, n = p->heads->n,
           few = strategy == NULL ? 0 : cache_format_index(strategy->bits);
    heads_row_sums sums = {.top = -INFINITY};
    for (size_t j = p->first; j <= p->i; j++) {
        e_j[j] = -INFINITY;
        if (!cache_holds_key(s, strategy, p->i, j)) continue;
        e_j[j] = s->s_fj[(key_is_exact(s, strategy, j) ? 0 : few) * n + j];
        sums.top = fmax(sums.top, e_j[j]);
    }
    memset(out_d, 0, d * sizeof(double));
    for (size_t j = p->first; j <= p->i; j++) {
        if (e_j[j] == -INFINITY) {
            e_j[j] = 0;
            continue;
        }
        e_j[j] = exp(e_j[j] - sums.top);
        sums.sum += e_j[j];
        const cache *from = &s->caches[key_is_exact(s, strategy, j) ? 0 : few];
        const double *v_d = from->v_ngd + (j * c->n_kv_heads + p->g) * d;
        for (size_t e = 0; e < d; e++) out_d[e] += e_j[j] * v_d[e];
    }
    return sums;
}

// bound.evict: the mass of the evicted keys in the full row.
static double evict_bound(const work *s, const place *p, const cache_strategy *strategy,
                          double each_full, double sink_kept) {
    double mass = 0;
    for (size_t j = p->first; j <= p->i; j++)
        if (!cache_holds_key(s, strategy, p->i, j)) mass += s->full_e_j[j] * each_full;
    return mass * (2 - sink_kept) * p->most_value;
}

// What bounds each coordinate of a row: the statement's own bound, and the lesser of it and the
// row-wise one.
typedef struct row_bounds {
    double own, lesser;
} row_bounds;

// bound.quantized-cache: from the errors of keys and values, and the computed weights.
static row_bounds few_bits_bound(work *s, const place *p, const cache_strategy *strategy,
                                 double each, double sink_full) {
    size_t n = p->heads->n, count = p->i + 1 - p->first;
    const cache *few = &s->caches[cache_format_index(strategy->bits)];
    for (size_t k = 0; k < count; k++) {
        size_t at = p->g * n + p->first + k;
        bool whole = key_is_exact(s, strategy, p->first + k);
        s->delta_j[k] = whole ? 0 : p->query * few->key_off_gn[at];
        s->eps_j[k] = whole ? 0 : few->value_off_gn[at];
        s->alpha_j[k] = s->e_j[p->first + k] * each;
    }
    double own =
        sinkproof_cache_bound(count, s->alpha_j, s->delta_j, s->eps_j, sink_full, p->most_value);
    double row = sinkproof_cache_row_bound(count, s->alpha_j, s->delta_j, s->eps_j, p->most_value);
    return (row_bounds){own, fmin(own, row)};
}

static double place_rounding_bound(const place *p) {
    double n = (double)p->heads->n, d = (double)p->heads->config->head_dim;
    double units = 2 * n + 800 + 2 * (d + 2) * p->query * p->most_key;
    return 2 * units * 0x1p-53 * p->most_value;
}

static place row_place(const work *s, const layer_heads *heads, size_t h, size_t i) {
    const sinkproof_config *c = heads->config;
    place p = {.heads = heads, .h = h, .g = h / (c->n_heads / c->n_kv_heads), .i = i};
    const double *q_d = heads->q_nhd + (i * c->n_heads + h) * c->head_dim;
    p.first = sinkproof_mask_first(heads->window, i);
    p.most_key = largest_size(i + 1 - p.first, s->most_key_gn + p.g * heads->n + p.first);
    p.most_value = largest_size(i + 1 - p.first, s->most_value_gn + p.g * heads->n + p.first);
    for (size_t e = 0; e < c->head_dim; e++) p.query += fabs(q_d[e]);
    p.query /= sqrt((double)c->head_dim);
    return p;
}

static double place_sink_logit(const place *p, bool sinks) {
    return sinks ? p->heads->b_hi[p->h * p->heads->n + p->i] : -INFINITY;
}

// ---- a layer's errors --------------------------------------------------------------------------

static void add_error(const work *s, size_t d, double each, double each_full, row_bounds bound,
                      double rounding, strategy_error *out) {
    double own = bound.own + rounding, lesser = bound.lesser + rounding;
    for (size_t e = 0; e < d; e++) {
        double full = s->full_d[e] * each_full, off = fabs(s->out_d[e] * each - full);
        out->error += off * off;
        out->truth += full * full;
        out->bound += own * own;
        out->row_bound += lesser * lesser;
        out->largest = sinkproof_keep_worst(out->largest, off);
        out->worst = sinkproof_keep_worst(out->worst, off == 0 ? 0 : off / lesser);
    }
}

static void compare_row(work *s, const place *p, strategy_error *errors) {
    heads_row_sums full = sum_row_exponentials(s, p, NULL, s->full_e_j, s->full_d);
    for (size_t k = 0; k < STRATEGY_COUNT; k++) {
        const cache_strategy *strategy = &cache_strategies[k];
        heads_row_sums sums = sum_row_exponentials(s, p, strategy, s->e_j, s->out_d);
        for (size_t without = 0; without < s->out->runs; without++) {
            double b = place_sink_logit(p, without == 0), sink, sink_full;
            double each = row_mean_each_way(&sums, b, &sink);
            double each_full = row_mean_each_way(&full, b, &sink_full);
            double evicted = strategy->evicts ? evict_bound(s, p, strategy, each_full, sink) : 0;
            row_bounds bound = strategy->evicts ? (row_bounds){evicted, evicted}
                                                : few_bits_bound(s, p, strategy, each, sink_full);
            strategy_error *out = &errors[2 * k + without];
            add_error(s, p->heads->config->head_dim, each, each_full, bound,
                      place_rounding_bound(p), out);
            out->vacuous += bound.own > (2 - sink - sink_full) * p->most_value;
            out->rows++;
        }
    }
}

// The scores that a strategy needs: NULL: all of them.
static void score_row(work *s, const place *p, const cache_strategy *strategy, bool all) {
    size_t few = strategy == NULL ? 0 : cache_format_index(strategy->bits);
    for (size_t f = 0; f < FORMATS; f++)
        if (all || f == few || (f == 0 && strategy->first))
            heads_row_scores(p->heads, s->caches[f].k_gdn, p->h, p->i, s->s_fj + f * p->heads->n);
}

static void compare_layer(void *context, const layer_heads *heads) {
    work *s = context;
    strategy_error *errors = s->out->errors + heads->layer * STRATEGY_COUNT * 2;
    fill_caches(s, heads);
    for (size_t h = 0; h < heads->config->n_heads; h++)
        for (size_t i = 0; i < heads->n; i++) {
            place p = row_place(s, heads, h, i);
            score_row(s, &p, NULL, true);
            compare_row(s, &p, errors);
        }
    s->progress(s->progress_context,
                s->share_of * (double)(heads->layer + 1) / (double)s->out->n_layers);
}

// ---- a whole run -------------------------------------------------------------------------------

// Replaces the engine's attention by the strategy's.
static void strategy_attend(void *context, const layer_heads *heads) {
    work *s = context;
    const sinkproof_config *c = heads->config;
    const cache_strategy *strategy =
        s->strategy < STRATEGY_COUNT ? &cache_strategies[s->strategy] : NULL;
    fill_caches(s, heads);
    for (size_t h = 0; h < c->n_heads; h++)
        for (size_t i = 0; i < heads->n; i++) {
            double sink, *o_d = heads->o_nhd + (i * c->n_heads + h) * c->head_dim;
            place p = row_place(s, heads, h, i);
            score_row(s, &p, strategy, false);
            heads_row_sums sums = sum_row_exponentials(s, &p, strategy, s->e_j, o_d);
            double each = row_mean_each_way(&sums, place_sink_logit(&p, s->sinks), &sink);
            for (size_t e = 0; e < c->head_dim; e++) o_d[e] *= each;
        }
}

// Mean of -ln p(next token) over the rows from `from` on; NAN if none has a next token.
static double mean_loss(size_t from, size_t n, size_t vocab, const int32_t *tokens_n,
                        const double *logits_nv) {
    double loss = 0;
    for (size_t i = from; i + 1 < n; i++) {
        const double *logits_v = logits_nv + i * vocab;
        double top = logits_v[0], sum = 0;
        for (size_t v = 1; v < vocab; v++) top = fmax(top, logits_v[v]);
        for (size_t v = 0; v < vocab; v++) sum += exp(logits_v[v] - top);
        loss += top + log(sum) - logits_v[tokens_n[i + 1]];
    }
    return from + 1 < n ? loss / (double)(n - 1 - from) : NAN;
}

static void keep_state(void *context, sinkproof_trace_point point, size_t layer, size_t count,
                       const double *values) {
    work *s = context;
    size_t n = s->out->n;
    (void)layer;
    if (point == TRACE_F2 && s->state_nc != NULL)
        s->loss = mean_loss(s->plan->first + s->plan->recent, n, count / n, s->tokens_n, values);
    if (point == TRACE_F1 && s->state_nc != NULL)
        memcpy(s->state_nc, values, count * sizeof(double));
}

static bool run_once(work *s, const sinkproof_model *model, sinkproof_runner *runner, bool local,
                     size_t n, const int32_t *tokens_n, double *logits_v, sinkproof_error *error) {
    sinkproof_observer observer;
    heads_observer w = {.context = s,
                        .heads = local ? compare_layer : strategy_attend,
                        .point = keep_state,
                        .logits = !local};
    bool good = heads_observer_begin(&w, model, n, &observer, error);
    sinkproof_runner_reset(runner);
    good = good && sinkproof_runner_forward(runner, n, tokens_n, logits_v, &observer, error);
    if (good && w.incomplete)
        good = sinkproof_fail(error, "the engine shows A11 without A4.q, A4.k and A2.v");
    heads_observer_free(&w);
    return good;
}

static double relative_error(size_t count, const double *full, const double *x) {
    sinkproof_moved moved = sinkproof_row_distance(count, full, x);
    return moved.off == 0 ? 0 : moved.off / moved.size;
}

static size_t largest_index(size_t count, const double *x) {
    size_t top = 0;
    for (size_t i = 1; i < count; i++)
        if (x[i] > x[top]) top = i;
    return top;
}

// Runs all strategies with the model's sinks, then without if it has any.
static bool run_with_and_without_sinks(work *s, const sinkproof_model *model,
                                       sinkproof_runner *runner, size_t n, const int32_t *tokens_n,
                                       sinkproof_error *error) {
    const sinkproof_config *c = sinkproof_model_config(model);
    double *states = malloc(2 * n * c->hidden * sizeof(double));
    double *logits = malloc(2 * c->vocab * sizeof(double));
    bool good =
        (states != NULL && logits != NULL) ||
        sinkproof_fail(error, "no memory for the states of %s", sinkproof_counted(n, "token").text);
    size_t runs = s->out->runs * (STRATEGY_COUNT + 1);
    for (size_t run = 0; good && run < runs; run++) {
        bool without = run > STRATEGY_COUNT, full = run % (STRATEGY_COUNT + 1) == 0;
        s->sinks = !without;
        s->strategy = full ? STRATEGY_COUNT : run % (STRATEGY_COUNT + 1) - 1;
        s->state_nc = full ? states : states + n * c->hidden;
        double *logits_v = full ? logits : logits + c->vocab;
        good = run_once(s, model, runner, false, n, tokens_n, logits_v, error);
        s->progress(s->progress_context,
                    s->share_of + (1 - s->share_of) * (double)(run + 1) / (double)runs);
        if (full) s->out->full_loss[without] = s->loss;
        if (full || !good) continue;
        s->out->end[s->strategy][without] = (strategy_end){
            .state = relative_error(n * c->hidden, states, s->state_nc),
            .logits = relative_error(c->vocab, logits, logits_v),
            .same_token = largest_index(c->vocab, logits) == largest_index(c->vocab, logits_v),
            .loss = s->loss};
    }
    free(states);
    free(logits);
    s->state_nc = NULL;
    return good;
}

// ---- memory, and the results --------------------------------------------------------------------

static bool study_new(work *s, const sinkproof_config *c, size_t n, sinkproof_error *error) {
    size_t d = c->head_dim, kept = n * c->n_kv_heads * d, tokens = n * c->n_kv_heads;
    size_t sizes[4 * FORMATS + 12], count = 0;
    double **places[4 * FORMATS + 12];
    for (size_t f = 0; f < FORMATS; f++) {
        cache *one = &s->caches[f];
        double **arrays[] = {&one->k_gdn, &one->v_ngd, &one->key_off_gn, &one->value_off_gn};
        for (size_t k = 0; k < 4; k++) {
            places[count] = arrays[k];
            sizes[count++] = k < 2 ? kept : tokens;
        }
    }
    double **more[] = {&s->most_key_gn, &s->most_value_gn, &s->row_d,   &s->kept_d,
                       &s->full_d,      &s->out_d,         &s->e_j,     &s->full_e_j,
                       &s->delta_j,     &s->eps_j,         &s->alpha_j, &s->s_fj};
    for (size_t k = 0; k < 12; k++) {
        places[count] = more[k];
        sizes[count++] = k < 2 ? tokens : k < 6 ? d : k < 11 ? n : FORMATS * n;
    }
    size_t all = 0;
    for (size_t k = 0; k < count; k++) all += sizes[k];
    s->memory = malloc(all * sizeof(double));
    if (s->memory == NULL)
        return sinkproof_fail(error, "no memory for the caches of %s",
                              sinkproof_counted(n, "token").text);
    for (size_t k = 0, at = 0; k < count; at += sizes[k++]) *places[k] = s->memory + at;
    return true;
}

static void no_progress(void *context, double share) {
    (void)context, (void)share;
}

bool strategy_run(const sinkproof_model *model, sinkproof_runner *runner, const strategy_plan *plan,
                  bool whole, size_t n, const int32_t *tokens_n,
                  void (*progress)(void *context, double share), void *progress_context,
                  strategy_study *out, sinkproof_error *error) {
    const sinkproof_config *c = sinkproof_model_config(model);
    work s = {.out = out,
              .plan = plan,
              .tokens_n = tokens_n,
              .progress = progress != NULL ? progress : no_progress,
              .progress_context = progress_context,
              .share_of = whole ? 0.25 : 1};
    *out = (strategy_study){.plan = *plan,
                            .n_layers = c->n_layers,
                            .n = n,
                            .runs = heads_have_no_sinks(c) ? 1 : 2,
                            .whole = whole};
    out->errors = calloc(c->n_layers * STRATEGY_COUNT * 2, sizeof *out->errors);
    bool good = out->errors != NULL || sinkproof_fail(error, "no memory for %s",
                                                      sinkproof_counted(c->n_layers, "layer").text);
    good = good && study_new(&s, c, n, error) &&
           run_once(&s, model, runner, true, n, tokens_n, NULL, error) &&
           (!whole || run_with_and_without_sinks(&s, model, runner, n, tokens_n, error));
    free(s.memory);
    return good;
}

void strategy_free(strategy_study *study) {
    free(study->errors);
    *study = (strategy_study){.errors = NULL};
}

const strategy_error *strategy_at(const strategy_study *study, size_t layer, size_t strategy,
                                  size_t run) {
    return &study->errors[(layer * STRATEGY_COUNT + strategy) * 2 + run];
}

strategy_error strategy_total_error(const strategy_study *study, size_t strategy, size_t run) {
    strategy_error total = {0};
    for (size_t l = 0; l < study->n_layers; l++) {
        const strategy_error *e = strategy_at(study, l, strategy, run);
        total.error += e->error;
        total.truth += e->truth;
        total.bound += e->bound;
        total.row_bound += e->row_bound;
        total.largest = sinkproof_keep_worst(total.largest, e->largest);
        total.rows += e->rows;
        total.vacuous += e->vacuous;
        total.worst = sinkproof_keep_worst(total.worst, e->worst);
    }
    return total;
}

double strategy_relative_error(const strategy_error *e) {
    return e->error == 0 ? 0 : sqrt(e->error / e->truth);
}
double strategy_relative_bound(const strategy_error *e) {
    return sqrt(e->bound / e->truth);
}
double strategy_relative_row_bound(const strategy_error *e) {
    return sqrt(e->row_bound / e->truth);
}
double strategy_vacuous_share(const strategy_error *e) {
    return (double)e->vacuous / (double)e->rows;
}
