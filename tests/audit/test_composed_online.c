// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Slips of a fused kernel of attention that no catalogue lists, planted in complete engines: what
// an online softmax keeps and rescales, whose sum divides, how exponentials and sums are rounded,
// what is added to values and outputs. Mistakes that look like one are not called by its name.
#include "tests/shared/planted.h"

enum { MOST = 64 };

// The scores of a query, the sink first; those of keys that it does not see are -infinity.
typedef struct query {
    const shown *s;
    size_t i, h, g;
    double sink, z[MOST], *y;
} query;
typedef void attend(query *q, double by);

static double value(const query *q, size_t j, size_t c) {
    const sinkproof_config *config = q->s->c;
    size_t at = (j * config->n_kv_heads + q->g) * config->head_dim + c;
    return q->s->latest[TRACE_A2_V][at];
}
static void see_keys(query *q) {
    const sinkproof_config *c = q->s->c;
    size_t d = c->head_dim, window = c->sliding[q->s->layer] ? c->window : q->s->n;
    for (size_t j = 0; j < q->s->n; j++) {
        double sum = 0;
        for (size_t k = 0; k < d; k++)
            sum += q->s->latest[TRACE_A4_Q][(q->i * c->n_heads + q->h) * d + k] *
                   q->s->latest[TRACE_A4_K][(j * c->n_kv_heads + q->g) * d + k];
        bool seen = j <= q->i && j + window > q->i;
        q->z[j] = seen ? sum / sqrt((double)d) : -INFINITY;
    }
}
static void of_all(shown *s, attend *how, double by) {
    const sinkproof_config *c = s->c;
    double sink_h[MOST];
    sinkproof_matrix sinks = sinkproof_model_slot(s->model, s->layer, SINKPROOF_SINKS);
    must(s->n <= MOST && c->n_heads <= MOST && sinks.rows == 1 && sinks.cols == c->n_heads);
    sinkproof_matrix_row(&sinks, 0, sink_h);
    for (size_t at = 0; at < s->n * c->n_heads; at++) {
        query q = {.s = s, .i = at / c->n_heads, .h = at % c->n_heads};
        q.g = q.h / (c->n_heads / c->n_kv_heads), q.sink = sink_h[q.h];
        q.y = s->v + at * c->head_dim;
        see_keys(&q);
        for (size_t k = 0; k < c->head_dim; k++) q.y[k] = 0;
        how(&q, by);
        for (size_t k = 0; k < c->head_dim; k++) q.y[k] = rounded(s, q.y[k]);
    }
}

static double top_of(const query *q, size_t first, size_t end) {
    double top = -INFINITY;
    for (size_t j = first; j < end && j < q->s->n; j++) top = fmax(top, q->z[j]);
    return top;
}
static void add(query *q, size_t j, double weight) {
    for (size_t c = 0; weight != 0 && c < q->s->c->head_dim; c++)
        q->y[c] += weight * value(q, j, c);
}
static void times(query *q, double by) {
    for (size_t c = 0; c < q->s->c->head_dim; c++) q->y[c] *= by;
}

static void online(query *q, double bits, bool own_maximum) {
    enum { TILE = 8 };
    double top = q->sink, sum = 1;
    for (size_t at = 0; at <= q->i; at += TILE) {
        double own = top_of(q, at, at + TILE), next = fmax(top, own);
        if (own == -INFINITY) continue;
        if (own_maximum || (next - top) * 1.4426950408889634 > bits) times(q, exp(top - next));
        sum *= exp(top - next);
        for (size_t j = at; j < at + TILE && j <= q->i; j++) {
            double e = exp(q->z[j] - (own_maximum ? own : next));
            sum += e;
            add(q, j, e);
        }
        top = next;
    }
    times(q, 1 / sum);
}
static void own_maxima(query *q, double by) {
    (void)by;
    online(q, 0, true);
}
static void tiles_own_maximum(shown *s, double by) {
    of_all(s, own_maxima, by);
}
static void keep_small_rises(query *q, double by) {
    online(q, by, false);
}
static void outputs_kept(shown *s, double by) {
    of_all(s, keep_small_rises, by);
}

static double sum_of(query *q, double top) {
    double sum = exp(q->sink - top);
    for (size_t j = 0; j <= q->i; j++) sum += exp(q->z[j] - top);
    return sum;
}
static void whole(query *q, double sum, sinkproof_format terms) {
    double top = fmax(top_of(q, 0, q->i + 1), q->sink);
    for (size_t j = 0; j <= q->i; j++) add(q, j, sinkproof_round(terms, exp(q->z[j] - top)));
    times(q, 1 / sum);
}
static void other_sum(query *q, double by) {
    query other = *q;
    (void)by;
    other.i ^= 1;
    if (other.i >= q->s->n) other.i = q->i;
    see_keys(&other);
    whole(q, sum_of(&other, fmax(top_of(&other, 0, other.i + 1), q->sink)), SINKPROOF_REAL);
}
static void sum_of_pair(shown *s, double by) {
    of_all(s, other_sum, by);
}
static void round_sum(query *q, double by) {
    double sum = sum_of(q, fmax(top_of(q, 0, q->i + 1), q->sink));
    (void)by;
    whole(q, sinkproof_round(SINKPROOF_BF16, sum), SINKPROOF_REAL);
}
static void sum_in_bf16(shown *s, double by) {
    of_all(s, round_sum, by);
}
static void round_terms(query *q, double by) {
    (void)by;
    whole(q, sum_of(q, fmax(top_of(q, 0, q->i + 1), q->sink)), SINKPROOF_E4M3);
}
static void terms_in_e4m3(shown *s, double by) {
    of_all(s, round_terms, by);
}
static void right(query *q, double *sink) {
    double top = fmax(top_of(q, 0, q->i + 1), q->sink), sum = sum_of(q, top);
    whole(q, sum, SINKPROOF_REAL);
    *sink = exp(q->sink - top) / sum;
}
static void sink_on_key_0(query *q, double by) {
    double sink;
    (void)by;
    right(q, &sink);
    add(q, 0, sink);
}
static void sink_to_key_0(shown *s, double by) {
    of_all(s, sink_on_key_0, by);
}
static void add_own(query *q, double by) {
    double sink;
    right(q, &sink);
    add(q, q->i, by);
}
static void own_value(shown *s, double by) {
    of_all(s, add_own, by);
}
static void gate(query *q, double by) {
    double sink;
    (void)by;
    right(q, &sink);
    times(q, 1 / (1 + exp(-q->sink)));
}
static void gated(shown *s, double by) {
    of_all(s, gate, by);
}
static void mix_before(query *q, double by) {
    double top = fmax(top_of(q, 0, q->i + 1), q->sink), sum = sum_of(q, top);
    for (size_t j = 0; j <= q->i; j++) {
        add(q, j, (1 - by) * exp(q->z[j] - top) / sum);
        add(q, j > 0 ? j - 1 : 0, by * exp(q->z[j] - top) / sum);
    }
}
static void values_with_before(shown *s, double by) {
    of_all(s, mix_before, by);
}
static void scatter(query *q, double by) {
    double sink;
    right(q, &sink);
    for (size_t j = 0; j <= q->i; j++)
        if (q->z[j] > -INFINITY) add(q, j, by * (double)((j * 7 + q->i * 5 + q->h * 3) % 11) / 11);
}
static void no_slip(shown *s, double by) {
    of_all(s, scatter, by);
}

static const plant plants[] = {
    {AT("A11"), .change = tiles_own_maximum, .f32 = true,
     .says = "in tiles of 8 keys, each of which subtracts its own maximum, not the running "
             "maximum"},
    {AT("A11"), .change = outputs_kept, .by = 8, .f32 = true,
     .says = "in tiles of 8 keys, and where the running maximum rises by at most 8 bits the "
             "accumulated output is not rescaled"},
    {AT("A11"), .change = sum_of_pair,
     .says = "the sum (the denominator) of the other row of each"},
    {AT("A11"), .change = sum_in_bf16, .f32 = true,
     .says = "a sum (the denominator) that is rounded to bfloat16"},
    {AT("A11"), .change = terms_in_e4m3, .f32 = true,
     .says = "times exponentials that are rounded to E4M3 (fp8), and the sum that divides"},
    {AT("A11"), .change = sink_to_key_0, .f32 = true, .says = "key 0"},
    {AT("A11"), .change = own_value, .by = -0.1, .f32 = true,
     .says = "the query's own value added once more, times -0.1"},
    {AT("A11"), .change = gated, .f32 = true, .says = "the sigmoid of the sink's logit"},
    {AT("A11"), .change = values_with_before, .by = 0.25, .f32 = true,
     .says = "those of the token before (token 0 with its own), whose share is 0.25"},
    {AT("A11"), .change = no_slip, .by = 0.1, .f32 = true, .not = "A11"},
};

int main(int argc, char **argv) {
    return try_plants(plants, sizeof plants / sizeof plants[0], argc, argv);
}
