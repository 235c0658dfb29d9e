// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Makes the inputs of a case by its recipe: each is a number of float32 and of the format to which
// the policy rounds its point; weights are bfloat16 numbers.
#include "audit/plugin/drill.h"
#include "base/splitmix.h"
#include "model/round.h"
#include "ref/stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// The arguments for the arrays of one case.
typedef struct maker {
    const stage_case *c;
    const sinkproof_policy *policy;
    call_arrays *a;
    uint64_t state;
    double largest; // the largest number that is in every format of the policy
} maker;

// ---- numbers

// Approximately normal: a sum of four uniform numbers with variance 1. Its square is at most 12.
static double draw_normal(uint64_t *state) {
    double sum = 0;
    for (int i = 0; i < 4; i++) sum += (double)(sinkproof_draw(state) >> 11) * 0x1p-53;
    return (sum - 2) * 1.7320508075688772;
}

static double draw_sign(uint64_t *state) {
    return sinkproof_draw(state) >> 63 != 0 ? -1 : 1;
}

static sinkproof_format point_format(const maker *m, array_id id) {
    sinkproof_trace_point point;
    sinkproof_point at;
    return array_point(id, &point) && sinkproof_trace_rounding(point, &at)
               ? m->policy->at[at].format
               : SINKPROOF_REAL;
}

// The scales of q8_0 are float16 numbers.
static double policy_largest_number(const sinkproof_policy *policy) {
    double largest = sinkproof_format_largest(SINKPROOF_F32);
    for (size_t p = 0; p < AT_POINTS; p++) {
        sinkproof_format format = policy->at[p].format;
        if (format == SINKPROOF_Q8_0) format = SINKPROOF_F16;
        largest = fmin(largest, sinkproof_format_largest(format));
    }
    return largest;
}

// `much`, or less where `room` times as much would overflow a format: so that honest results are
// finite.
static double limit_to_finite(const maker *m, double much, double room) {
    return fmin(much, m->largest / room);
}

// A number of a point without a special structure.
static double draw_plain(maker *m, double scale) {
    uint64_t *state = &m->state;
    switch (m->c->recipe) {
    case RECIPE_EXACT:
    case RECIPE_TIES:
        return (double)(sinkproof_draw(state) % 3) - 1;
    case RECIPE_ZEROS:
        return copysign(0, draw_sign(state));
    case RECIPE_SUBNORMAL: // 2^-149 is the smallest positive float32
        return draw_sign(state) * ldexp((double)(sinkproof_draw(state) % 64), -149);
    case RECIPE_HUGE:
        return draw_normal(state) * limit_to_finite(m, 0x1p40, 16);
    default:
        return draw_normal(state) * scale;
    }
}

// ---- points

// EXACT and TIES: at most TERMS of a sum's `terms` are not 0, so that with weights up to 2 and a
// bias no partial sum is above 66: exact in every format and in every order.
enum { TERMS = 32 };
static bool is_left_out(const maker *m, size_t i, size_t terms) {
    size_t each = (terms + TERMS - 1) / TERMS;
    bool sparse = m->c->recipe == RECIPE_EXACT || m->c->recipe == RECIPE_TIES;
    return sparse && i % terms % each != i / terms % each;
}

static void fill_rows(maker *m, sinkproof_trace_point point, double scale, size_t terms) {
    size_t count = array_count(m->a, point), row = count / m->a->n;
    sinkproof_format format = point_format(m, point);
    float *x = m->a->at[point];
    for (size_t i = 0; i < count; i++) {
        double fresh = draw_plain(m, scale);
        bool repeats = m->c->recipe == RECIPE_EQUAL && i >= row;
        x[i] = repeats                    ? x[i % row]
               : is_left_out(m, i, terms) ? 0
                                          : number_as_stored(format, fresh);
    }
}

// Queries and keys whose scores rise or fall by one per key, are huge, or are all equal.
static void fill_keys(maker *m, sinkproof_trace_point point) {
    size_t count = array_count(m->a, point), d = m->c->dim, row = count / m->a->n;
    sinkproof_format format = point_format(m, point);
    input_recipe recipe = m->c->recipe;
    bool queries = point == TRACE_A4_Q;
    // q k <= 12 d most^2
    double most = sqrt(limit_to_finite(m, 0x1p12, 12 * (double)d));
    float *x = m->a->at[point];
    fill_rows(m, point, 1, d);
    for (size_t i = 0; i < count; i++) {
        double j = (double)(i / row);
        if (recipe == RECIPE_HUGE) x[i] = number_as_stored(format, draw_normal(&m->state) * most);
        if (recipe == RECIPE_SUBNORMAL) x[i] = number_as_stored(format, draw_normal(&m->state));
        if (recipe != RECIPE_RISING && recipe != RECIPE_FALLING) continue;
        double step = queries ? sqrt((double)d) : recipe == RECIPE_RISING ? j : -j;
        x[i] = number_as_stored(format, i % d == 0 ? step : 0);
    }
}

// Values are never all zero, so that their weights show.
static void fill_values(maker *m) {
    sinkproof_format format = point_format(m, TRACE_A2_V);
    size_t count = array_count(m->a, TRACE_A2_V);
    fill_rows(m, TRACE_A2_V, 1, 1);
    for (size_t i = 0; m->c->recipe == RECIPE_ZEROS && i < count; i++)
        m->a->at[TRACE_A2_V][i] = number_as_stored(format, draw_normal(&m->state));
}

// Scores [heads, n, keys]. Masked scores are as large as the others.
static void fill_scores(maker *m) {
    size_t count = array_count(m->a, TRACE_A6), n = m->a->n;
    sinkproof_format format = point_format(m, TRACE_A6);
    double most = limit_to_finite(m, 1e4, 16); // two scores differ by less than 16 times that
    for (size_t i = 0; i < count; i++) {
        double j = (double)(i % n), x = draw_normal(&m->state) * 2;
        if (m->c->recipe == RECIPE_RISING) x = j;
        if (m->c->recipe == RECIPE_FALLING) x = -j;
        if (m->c->recipe == RECIPE_HUGE) x *= most;
        if (m->c->recipe == RECIPE_EQUAL) x = 0.75;
        if (m->c->recipe == RECIPE_ZEROS || m->c->recipe == RECIPE_SUBNORMAL) x = draw_plain(m, 1);
        m->a->at[TRACE_A6][i] = number_as_stored(format, x);
    }
}

// Weights [heads, n, keys + 1] that sum to at most 1, the sink's last; powers of two when EXACT.
static void fill_weights(maker *m) {
    const stage_case *c = m->c;
    size_t n = m->a->n, rows = c->heads * n;
    sinkproof_format format = point_format(m, TRACE_A9);
    for (size_t r = 0; r < rows; r++) {
        size_t i = r % n, first = sinkproof_mask_first(c->window, i);
        float *w_j = &m->a->at[TRACE_A9][r * (n + 1)];
        double sum = 0;
        for (size_t j = 0; j <= n; j++) {
            bool seen = (j >= first && j <= i) || j == n;
            double place = j == n ? 0 : (double)j - (double)i, x = draw_normal(&m->state);
            if (c->recipe == RECIPE_RISING) x = place;
            if (c->recipe == RECIPE_FALLING) x = (double)first - (double)j;
            if (c->recipe == RECIPE_ZEROS || c->recipe == RECIPE_EQUAL) x = 0;
            w_j[j] = seen ? (float)exp(x) : 0;
            sum += w_j[j];
        }
        for (size_t j = 0; j <= n; j++) w_j[j] = number_as_stored(format, w_j[j] / sum);
        for (size_t j = 0; c->recipe == RECIPE_EXACT && j <= n; j++)
            w_j[j] = w_j[j] > 0 && (j >= i || i - j < 7) ? 0.125f : 0;
    }
}

// A token's experts: distinct, in random order.
static void fill_chosen(maker *m) {
    size_t k = m->c->chosen, experts = m->c->experts;
    for (size_t i = 0; i < m->a->n; i++)
        for (size_t s = 0; s < k; s++) {
            float *e = &m->a->at[TRACE_M3][i * k];
            bool taken = true;
            while (taken) {
                e[s] = (float)(sinkproof_draw(&m->state) % experts);
                taken = false;
                for (size_t before = 0; before < s; before++) taken = taken || e[before] == e[s];
            }
        }
}

// Weights of the chosen experts, which sum to 1.
static void fill_shares(maker *m) {
    size_t k = m->c->chosen;
    sinkproof_format format = point_format(m, TRACE_M4);
    for (size_t i = 0; i < m->a->n; i++) {
        float *w_k = &m->a->at[TRACE_M4][i * k];
        double sum = 0;
        for (size_t s = 0; s < k; s++) sum += w_k[s] = (float)exp(draw_normal(&m->state));
        for (size_t s = 0; s < k; s++)
            w_k[s] = m->c->recipe == RECIPE_EXACT ? 0.25f : number_as_stored(format, w_k[s] / sum);
    }
}

// Gate and up at the clamp, one step beside it, at zeros of both signs, and where exp(alpha gate)
// leaves its range: every pair of these in turn.
static void fill_limits(maker *m) {
    double limit = m->a->config.swiglu.limit;
    sinkproof_format format = point_format(m, TRACE_M6);
    double step = sinkproof_ulp(
        format == SINKPROOF_REAL || format == SINKPROOF_F64 ? SINKPROOF_F32 : format, limit);
    const double edges[] = {
        limit, limit + step, limit - step, -limit,     -limit - step, -limit + step, 0,  -0.0,
        1,     -1,           2 * limit,    -2 * limit, 0.5,           -0.25,         30, -30,
        50,    -50,          1e4,          1e30};
    enum { EDGES = sizeof edges / sizeof *edges };
    size_t count = array_count(m->a, TRACE_M6);
    size_t first = (size_t)(m->c->seed % (EDGES * EDGES));
    for (size_t i = 0; i + 1 < count; i += 2) { // gate and up are neighbours
        size_t pair = (first + i / 2) % (EDGES * EDGES);
        m->a->at[TRACE_M6][i] = number_as_stored(format, edges[pair % EDGES]);
        m->a->at[TRACE_M6][i + 1] = number_as_stored(format, edges[pair / EDGES]);
    }
}

// What comes back, whatever the recipe. A loss that does not read a log-sum-exp has 0 there.
static void fill_gradient(maker *m, array_id id) {
    size_t count = array_count(m->a, id);
    sinkproof_format format = point_format(m, id);
    bool zero = id == ARRAY_GRADIENTS + TRACE_LSE && !m->c->dlse;
    for (size_t i = 0; i < count; i++)
        m->a->at[id][i] = zero ? 0 : number_as_stored(format, draw_normal(&m->state));
}

static void fill_point(maker *m, array_id id) {
    if (array_is_gradient(id)) {
        fill_gradient(m, id);
        return;
    }
    sinkproof_trace_point point = (sinkproof_trace_point)id;
    switch (point) {
    case TRACE_A4_Q:
    case TRACE_A4_K:
        fill_keys(m, point);
        break;
    case TRACE_A6:
        fill_scores(m);
        break;
    case TRACE_A9:
        fill_weights(m);
        break;
    case TRACE_M3:
        fill_chosen(m);
        break;
    case TRACE_M4:
        fill_shares(m);
        break;
    case TRACE_M6:
        if (m->c->recipe == RECIPE_LIMITS)
            fill_limits(m);
        else
            fill_rows(m, point, 4, 1);
        break;
    case TRACE_A2_V:
        fill_values(m);
        break;
    default:
        fill_rows(m, point, 1, array_count(m->a, point) / m->a->n);
    }
}

// ---- weights

static double draw_sink(maker *m, size_t h) {
    double x = draw_normal(&m->state);
    switch (m->c->sinks) {
    case SINK_NONE:
        return -INFINITY;
    case SINK_FAR_BELOW:
        return -1e4 - (double)h;
    case SINK_BELOW:
        return -20 + x;
    case SINK_ABOVE:
        return 20 + x;
    case SINK_OVERFLOWING: // the scores of the recipe are below 7
        return 98 + x / 2;
    case SINK_FAR_ABOVE:
        return limit_to_finite(m, 1e6, 2) + (double)h;
    default:
        return x;
    }
}

// Normal numbers; small whole ones for EXACT. TIES: every second expert repeats the one before it.
static double draw_weight_element(maker *m, const size_t *shape, size_t rank) {
    size_t cols = shape[rank - 1];
    if (m->c->recipe == RECIPE_EXACT || m->c->recipe == RECIPE_TIES)
        return (double)(sinkproof_draw(&m->state) % 4) - 1;
    return draw_normal(&m->state) / (rank == 1 ? 1 : sqrt((double)cols));
}

static void fill_weight(maker *m, sinkproof_slot slot) {
    size_t shape[SINKPROOF_RANK], count = 1;
    size_t rank = weight_shape(&m->a->config, slot, shape);
    float *w = m->a->weight[slot];
    for (size_t d = 0; d < rank; d++) count *= shape[d];
    size_t row = rank == 1 ? 1 : shape[rank - 1]; // of one expert in a router
    bool router = slot == SINKPROOF_W_ROUTER || slot == SINKPROOF_B_ROUTER;
    for (size_t i = 0; i < count; i++) {
        double x = slot == SINKPROOF_SINKS ? draw_sink(m, i)
                   : slot == SINKPROOF_ATTN_NORM || slot == SINKPROOF_FINAL_NORM
                       ? 1 + draw_normal(&m->state) / 2
                       : draw_weight_element(m, shape, rank);
        bool twin = m->c->recipe == RECIPE_TIES && router && i / row % 2 == 1;
        w[i] = twin ? w[i - row] : number_as_stored(SINKPROOF_BF16, x);
    }
}

// ---- the arrays of a case

// In floating point: the product of a stranger's sizes may exceed 2^64.
static double elements_of(size_t rank, const size_t *shape) {
    double count = 1;
    for (size_t d = 0; d < rank; d++) count *= (double)shape[d];
    return count;
}

bool case_is_too_large(const stage_case *c, const sinkproof_config *base) {
    const stage_row *s = c->stage;
    const sinkproof_config config = case_config(c, base);
    size_t shape[SINKPROOF_RANK];
    double count = 0;
    for (size_t i = 0; i < s->n_from; i++)
        count += elements_of(array_shape(&config, s->from[i], c->n, shape), shape);
    for (size_t i = 0; i < case_outputs(c); i++)
        count += elements_of(array_shape(&config, s->to[i], c->n, shape), shape);
    for (size_t i = 0; i < s->n_weights; i++)
        count += elements_of(weight_shape(&config, s->weights[i], shape), shape);
    return count * sizeof(float) > CALL_BYTES;
}

static bool make_weight(call_arrays *a, sinkproof_slot slot) {
    size_t shape[SINKPROOF_RANK], count = 1;
    size_t rank = weight_shape(&a->config, slot, shape);
    for (size_t d = 0; d < rank; d++) count *= shape[d];
    a->weight[slot] = malloc(count * sizeof *a->weight[slot]);
    return a->weight[slot] != NULL;
}

bool arrays_make(const stage_case *c, const sinkproof_config *base, const sinkproof_policy *policy,
                 call_arrays *a, sinkproof_error *error) {
    const stage_row *s = c->stage;
    *a = (call_arrays){.config = case_config(c, base), .n = c->n, .made = policy};
    maker m = {c, policy, a, sinkproof_draw_nth(c->seed, c->n * 64 + (size_t)c->recipe),
               policy_largest_number(policy)};
    char text[CASE_TEXT];
    case_print(c, text);
    if (!sinkproof_config_check(&a->config, text, error)) return false;
    bool good = true;
    for (size_t i = 0; good && i < s->n_from; i++) good = array_make(a, s->from[i]);
    for (size_t i = 0; good && i < case_outputs(c); i++) good = array_make(a, s->to[i]);
    for (size_t i = 0; good && i < s->n_weights; i++) good = make_weight(a, s->weights[i]);
    for (size_t i = 0; good && i < s->n_from; i++) fill_point(&m, s->from[i]);
    for (size_t i = 0; good && i < s->n_weights; i++) fill_weight(&m, s->weights[i]);
    if (good && stage_reads_lse(s)) good = fill_forward(c, policy, a);
    if (good) return true;
    arrays_free(a);
    return sinkproof_fail(error, "%s: no memory for its arrays", text);
}

void arrays_free(call_arrays *a) {
    for (size_t i = 0; i < CALL_ARRAYS; i++) free(a->at[i]);
    for (size_t s = 0; s < SINKPROOF_SLOTS; s++) free(a->weight[s]);
    *a = (call_arrays){.n = 0};
}
