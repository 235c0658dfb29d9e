// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Attention in one pass: against the reference's three stages on inputs where both are exact, and
// bit for bit against a second telling that makes every span apart and joins them afterwards. The
// positions lie around blocks of 32 and spans of 256 keys, the windows around 1, 128 and 256. Keys
// and values that no query of the block sees hold NaN.
#include "tests/shared/lanes.h"

static const size_t positions[] = {0,   1,   30,  31,  32,  126, 127, 128, 254, 255,
                                   256, 257, 383, 384, 510, 511, 512, 513, 767, 768};
static const size_t windows[] = {0, 1, 2, 127, 128, 129, 255, 256, 257};
static const double sinks[] = {-INFINITY, -1000, 0, 1.5, 1000};
enum {
    POSITIONS = sizeof positions / sizeof positions[0],
    WINDOWS = sizeof windows / sizeof windows[0],
    SINKS = sizeof sinks / sizeof sinks[0],
    SPAN = 256,
    ROWS = 3,
    KEYS = 768 + ROWS + 2, // two keys after the last query
    WIDEST = 64,
};

// One key/value head of two, read with strides: the other head's numbers are NaN.
static double k_jd[KEYS * 2 * WIDEST], v_jd[KEYS * 2 * WIDEST], q_id[ROWS * 2 * WIDEST];
static double o_id[ROWS * 2 * WIDEST], told[ROWS * 2 * WIDEST];
static double s_ij[ROWS * KEYS], alpha_ij[ROWS * (KEYS + 1)];

static sinkproof_block block_at(size_t p, size_t w, size_t head_dim) {
    return (sinkproof_block){
        .rows = ROWS,
        .keys = positions[p] + ROWS + 2,
        .first = positions[p],
        .window = windows[w],
        .head_dim = head_dim,
        .q_stride = 2 * head_dim,
        .kv_stride = 2 * head_dim,
    };
}

// NaN wherever no query of the block may look.
static void poison(const sinkproof_block *b) {
    size_t first = sinkproof_mask_first(b->window, b->first), last = b->first + b->rows;
    for (size_t j = 0; j < b->keys; j++)
        for (size_t d = 0; d < b->kv_stride; d++)
            if (j < first || j >= last || d >= b->head_dim)
                k_jd[j * b->kv_stride + d] = v_jd[j * b->kv_stride + d] = NAN;
    for (size_t i = 0; i < b->rows; i++)
        for (size_t d = b->head_dim; d < b->q_stride; d++) q_id[i * b->q_stride + d] = NAN;
}

// Coordinate 0 of a key is 0 or far below; the query's is 1, the others 0 or, in the key, 0: a
// weight is 1 or, e^-128 and less, 0, and values are integers above 0 (nothing cancels). `falling`:
// the scores of the first span stand above all others, so that later spans count for nothing.
static void exact_inputs(const sinkproof_block *b, bool falling, uint64_t *state) {
    for (size_t j = 0; j < b->keys; j++)
        for (size_t d = 0; d < b->kv_stride; d++) {
            double low = -1024 * (double)(next_bits(state) % 3 == 0);
            if (falling && j >= SPAN) low -= 2048;
            k_jd[j * b->kv_stride + d] = d == 0 ? low : 0;
            v_jd[j * b->kv_stride + d] = next_integer(state, 49) + 50;
        }
    for (size_t i = 0; i < b->rows; i++)
        for (size_t d = 0; d < b->q_stride; d++)
            q_id[i * b->q_stride + d] = d == 0 ? 1 : next_integer(state, 9);
}

static const double *sink_of_rows(double sink) {
    static double b_i[ROWS];
    for (size_t i = 0; i < ROWS; i++) b_i[i] = sink;
    return b_i;
}

// The reference in binary64 rounds by far less than the distance of sum / z from a tie of float32
// (z <= 772, the sum an integer below 2^17), so its float32 is the exact quotient's.
static void test_exact(size_t head_dim) {
    sinkproof_policy f32 = policy_of("f32"), real = policy_of("real-f64");
    size_t wrong = 0, cases = 0;
    uint64_t state = 21;
    for (size_t p = 0; p < POSITIONS; p++)
        for (size_t w = 0; w < WINDOWS; w++)
            for (size_t s = 0; s < SINKS; s++, cases++) {
                if (sinks[s] == 1.5) continue; // e^1.5 is not exact
                sinkproof_block b = block_at(p, w, head_dim);
                exact_inputs(&b, cases % 2 == 1, &state);
                poison(&b);
                const double *b_i = sink_of_rows(sinks[s]);
                lanes_attention(&f32, &b, b_i, q_id, k_jd, v_jd, o_id);
                sinkproof_scores(&real, &b, q_id, k_jd, s_ij);
                sinkproof_softmax_sink(&real, &b, b_i, s_ij, alpha_ij);
                sinkproof_values(&real, &b, alpha_ij, v_jd, told);
                for (size_t i = 0; i < ROWS; i++)
                    for (size_t d = 0; d < head_dim; d++)
                        wrong += !(o_id[i * b.q_stride + d] == (float)told[i * b.q_stride + d]);
            }
    ok(wrong == 0, "sink.attn-values lanes, head_dim %zu, exact inputs worst=%zu bound=0 of %zu",
       head_dim, wrong, cases);
}

// One span of one query as it stands alone.
typedef struct part {
    bool seen;
    float max, sum, o_d[WIDEST];
} part;

static part told_span(const sinkproof_block *b, const double *q_d, size_t start, size_t first,
                      size_t last) {
    part s = {.max = -INFINITY};
    double p_j[SPAN] = {0}, column[SPAN] = {0};
    float score_j[SPAN], p[SPAN] = {0}, scale = (float)(1 / sqrt((double)b->head_dim));
    for (size_t j = start; j < start + SPAN; j++) {
        if (j < first || j > last) continue;
        score_j[j - start] = told_dot(b->head_dim, k_jd + j * b->kv_stride, NULL, q_d) * scale;
        s.max = fmaxf(s.max, score_j[j - start]);
        s.seen = true;
    }
    for (size_t j = 0; j < SPAN; j++) {
        if (start + j < first || start + j > last) continue;
        p_j[j] = p[j] = sinkproof_lanes_exp(score_j[j] - s.max);
    }
    s.sum = told_sum16(SPAN, p);
    for (size_t d = 0; d < b->head_dim; d++) {
        for (size_t j = 0; j < SPAN; j++)
            column[j] =
                start + j < first || start + j > last ? 0 : v_jd[(start + j) * b->kv_stride + d];
        s.o_d[d] = told_dot(SPAN, column, NULL, p_j);
    }
    return s;
}

// All spans from the first position on, then joined in ascending order.
static void told_attention(const sinkproof_block *b, double sink, sinkproof_format format) {
    enum { SPANS = (KEYS + SPAN - 1) / SPAN };
    for (size_t i = 0; i < b->rows; i++) {
        size_t last = b->first + i, first = sinkproof_mask_first(b->window, last);
        part parts[SPANS];
        float m = (float)sink, l = 1, o_d[WIDEST] = {0};
        for (size_t s = 0; s < SPANS; s++)
            parts[s] = told_span(b, q_id + i * b->q_stride, s * SPAN, first, last);
        for (size_t s = 0; s < SPANS; s++) {
            const part *t = &parts[s];
            if (!t->seen) continue;
            bool up = t->max > m;
            float r = up ? sinkproof_lanes_exp(m - t->max) : sinkproof_lanes_exp(t->max - m);
            for (size_t d = 0; d < b->head_dim; d++)
                o_d[d] = up ? fmaf(o_d[d], r, t->o_d[d]) : fmaf(t->o_d[d], r, o_d[d]);
            l = up ? fmaf(l, r, t->sum) : fmaf(t->sum, r, l);
            m = up ? t->max : m;
        }
        for (size_t d = 0; d < b->head_dim; d++)
            told[i * b->q_stride + d] = sinkproof_round(format, o_d[d] / l);
    }
}

static void test_told(size_t head_dim, const char *name) {
    sinkproof_policy policy = policy_of(name);
    size_t wrong = 0, cases = 0;
    uint64_t state = 22;
    for (size_t p = 0; p < POSITIONS; p++)
        for (size_t w = 0; w < WINDOWS; w += 2, cases++) {
            sinkproof_block b = block_at(p, w, head_dim);
            double sink = sinks[(p + w) % SINKS];
            fill_floats(&state, 2, b.keys * b.kv_stride, k_jd);
            fill_floats(&state, 2, b.keys * b.kv_stride, v_jd);
            fill_floats(&state, 2, b.rows * b.q_stride, q_id);
            poison(&b);
            lanes_attention(&policy, &b, sink_of_rows(sink), q_id, k_jd, v_jd, o_id);
            told_attention(&b, sink, policy.at[AT_A11].format);
            for (size_t i = 0; i < ROWS; i++)
                wrong += differing(head_dim, o_id + i * b.q_stride, told + i * b.q_stride);
        }
    ok(wrong == 0,
       "sink.online lanes.attention lanes, %s, head_dim %zu, spans joined worst=%zu bound=0 of %zu",
       name, head_dim, wrong, cases);
}

// What an observer is shown is what the pass computes, for every key.
static void test_scores(void) {
    sinkproof_policy policy = policy_of("f32");
    sinkproof_block b = block_at(9, 0, 39);
    size_t wrong = 0;
    uint64_t state = 23;
    fill_floats(&state, 2, b.keys * b.kv_stride, k_jd);
    fill_floats(&state, 2, b.rows * b.q_stride, q_id);
    lanes_scores(&policy, &b, q_id, k_jd, s_ij);
    for (size_t i = 0; i < b.rows; i++)
        for (size_t j = 0; j < b.keys; j++) {
            float dot = told_dot(39, k_jd + j * b.kv_stride, NULL, q_id + i * b.q_stride);
            wrong += s_ij[i * b.keys + j] != dot * (float)(1 / sqrt(39));
        }
    ok(wrong == 0, "attn.score lanes worst=%zu bound=0 of %zu seed=23", wrong, b.rows * b.keys);
}

int main(void) {
    static const size_t head_dims[] = {2, 39, 64};
    for (size_t i = 0; i < 3; i++) test_exact(head_dims[i]);
    for (size_t i = 0; i < 3; i++) test_told(head_dims[i], i == 1 ? "bf16-operands" : "f32");
    test_scores();
    return tap_done();
}
