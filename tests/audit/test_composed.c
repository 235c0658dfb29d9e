// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Mistakes that no catalogue lists, planted in complete engines: an operation at a place. Each is
// named by its operation and place; mistakes that look like one are not called by its name; an
// honest trace has no cause.
#include "tests/shared/planted.h"

// ---- changes

static void times(shown *s, double by) {
    for (size_t i = 0; i < s->count; i++) s->v[i] = rounded(s, s->v[i] * by);
}
static void times_of_layer(shown *s, double by) {
    const double of_layer[] = {0.5, 0.9, 0.6};
    times(s, s->layer < 3 ? of_layer[s->layer] * by : 1);
}
static void negate_head_1(shown *s, double by) {
    size_t d = s->shape[2], heads = s->shape[1];
    (void)by;
    for (size_t i = 0; i < s->count; i++)
        if (i / d % heads == 1) s->v[i] = -s->v[i];
}
static void zero_from(shown *s, double by) {
    size_t each = s->count / s->shape[0];
    for (size_t i = (size_t)by * each; i < s->count; i++) s->v[i] = 0;
}
static void previous_row(shown *s, double by) {
    size_t each = s->count / s->shape[0];
    for (size_t i = s->shape[0]; i-- > (size_t)by;)
        memcpy(&s->v[i * each], &s->v[(i - 1) * each], each * sizeof *s->v);
}
static void exchange_heads_0_and_1(shown *s, double by) {
    size_t d = s->shape[2], heads = s->shape[1];
    (void)by;
    for (size_t i = 0; i < s->shape[0]; i++)
        for (size_t k = 0; k < d; k++) {
            double *row = &s->v[i * heads * d], kept = row[k];
            row[k] = row[d + k], row[d + k] = kept;
        }
}
static void add_times(shown *s, double by) {
    for (size_t i = 0; i < s->count; i++)
        s->v[i] = rounded(s, s->residual[i] + rounded(s, by * s->added[i]));
}
static void plus(shown *s, double by) {
    for (size_t i = 0; i < s->count; i++) s->v[i] = rounded(s, s->v[i] + by);
}
// Near misses: a factor that is another in every row, rows that are in no order.
static void times_by_row(shown *s, double by) {
    size_t each = s->count / s->shape[0];
    for (size_t i = 0; i < s->count; i++)
        s->v[i] = rounded(s, s->v[i] * (by + 0.01 * (double)(i / each * 7 % 5)));
}
static void mix_rows(shown *s, double by) {
    size_t each = s->count / s->shape[0];
    (void)by;
    for (size_t i = 0; i + 5 < s->count; i++)
        if (i / each % 3 == 1) s->v[i] = rounded(s, 0.5 * (s->v[i] + s->v[i + 5]));
}

static double largest_of(size_t n, const double *x) {
    double largest = 0;
    for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs(x[i]));
    return largest;
}
static void to_e4m3(shown *s, double by) {
    (void)by;
    for (size_t i = 0; i < s->count; i++) s->v[i] = sinkproof_round(SINKPROOF_E4M3, s->v[i]);
}
static void clamp_to(shown *s, double by) {
    for (size_t i = 0; i < s->count; i++) s->v[i] = fmin(fmax(s->v[i], -by), by);
}
static void cap_at(shown *s, double by) {
    for (size_t i = 0; i < s->count; i++) s->v[i] = rounded(s, by * tanh(s->v[i] / by));
}
static void log_softmax(shown *s, double by) {
    size_t width = s->shape[s->rank - 1];
    for (size_t r = 0; r < s->count; r += width) {
        double sum = 0;
        for (size_t i = r; i < r + width; i++) sum += exp(s->v[i]);
        for (size_t i = r; i < r + width; i++) s->v[i] = rounded(s, s->v[i] - log(sum));
    }
    (void)by;
}
static void over_largest(shown *s, double by) {
    size_t width = s->shape[s->rank - 1];
    for (size_t r = 0; r < s->count; r += width) {
        double largest = largest_of(width, &s->v[r]);
        for (size_t i = r; i < r + width; i++) s->v[i] = rounded(s, s->v[i] / largest);
    }
    (void)by;
}
static void without_slot_1(shown *s, double by) {
    size_t k = s->shape[1];
    (void)by;
    for (size_t r = 0; r < s->count; r += k) {
        double left = 1 - s->v[r + 1];
        for (size_t i = r; i < r + k; i++) s->v[i] = i == r + 1 ? 0 : rounded(s, s->v[i] / left);
    }
}
static void exchange_rows(shown *s, double by) {
    size_t each = s->count / s->shape[0];
    (void)by;
    for (size_t i = 0; i + each < s->count; i++) {
        if (i / each % 2 != 0) continue;
        double kept = s->v[i];
        s->v[i] = s->v[i + each], s->v[i + each] = kept;
    }
}
static void by_mean_size(shown *s, double by) {
    size_t d = s->c->hidden;
    (void)by;
    for (size_t i = 0; i < s->count; i += d) {
        double square = 0, size = 0;
        for (size_t k = i; k < i + d; k++)
            square += s->residual[k] * s->residual[k], size += fabs(s->residual[k]);
        square = sqrt(square / (double)d + s->c->rms_eps), size = size / (double)d;
        for (size_t k = i; k < i + d; k++) s->v[k] = rounded(s, s->v[k] * square / size);
    }
}
static void gelu_gate(shown *s, double by) {
    (void)by;
    for (size_t i = 0; i < s->count; i++) {
        double limit = s->c->swiglu.limit, g = fmin(s->up[2 * i], limit);
        double u = fmin(fmax(s->up[2 * i + 1], -limit), limit);
        s->v[i] = rounded(s, rounded(s, g * erfc(-g / sqrt(2)) / 2) * rounded(s, u + 1));
    }
}
static void alpha_of(shown *s, double by) {
    for (size_t i = 0; i < s->count; i++) {
        double limit = s->c->swiglu.limit, g = fmin(s->up[2 * i], limit);
        double u = fmin(fmax(s->up[2 * i + 1], -limit), limit);
        double gate = rounded(s, 1 / (1 + exp(-rounded(s, by * g))));
        s->v[i] = rounded(s, rounded(s, g * gate) * rounded(s, u + 1));
    }
}
static void double_heads_0_and_3(shown *s, double by) {
    size_t d = s->shape[2], heads = s->shape[1];
    for (size_t i = 0; i < s->count; i++)
        if (i / d % heads == 0 || i / d % heads == 3) s->v[i] = rounded(s, s->v[i] * by);
}
static void embedding_again(shown *s, double by) {
    for (size_t i = 0; i < s->count; i++) s->v[i] = rounded(s, s->v[i] + by * s->embedding[i]);
}
static void without_upper_tokens(shown *s, double by) {
    size_t d = s->c->hidden;
    (void)by;
    for (size_t i = 0; i < s->count; i++)
        if ((size_t)s->tokens[i / d] >= s->c->vocab / 2) s->v[i] = 0;
}
// Near misses: codes that no format has, and an alpha near GELU's.
static void to_hundredths(shown *s, double by) {
    (void)by;
    for (size_t i = 0; i < s->count; i++) s->v[i] = rounded(s, nearbyint(s->v[i] * 100) / 100);
}

static void row_e4m3(size_t cols, double *row) {
    for (size_t c = 0; c < cols; c++) row[c] = sinkproof_round(SINKPROOF_E4M3, row[c]);
}
static void row_int8(size_t cols, double *row) {
    double scale = (double)(float)(largest_of(cols, row) / 127);
    for (size_t c = 0; c < cols; c++) row[c] = nearbyint((double)(float)(row[c] / scale)) * scale;
}
static void row_halves(size_t cols, double *row) {
    for (size_t c = 0; c < cols / 2; c++) {
        double kept = row[c];
        row[c] = row[cols / 2 + c], row[cols / 2 + c] = kept;
    }
}
static void row_absolute(size_t cols, double *row) {
    for (size_t c = 0; c < cols; c++) row[c] = fabs(row[c]);
}

static const plant plants[] = {
    {AT("A12"), .change = times, .by = 0.5, .says = "A12 is multiplied by 1/2"},
    {AT("A12"), .change = times, .by = 0.7, .says = "multiplied by 0.7"},
    {AT("A2.q"), .change = negate_head_1, .says = "opposite sign, in head 1 alone"},
    {AT("A2.q"), .change = exchange_heads_0_and_1, .says = "heads 0 and 1 of A2.q are exchanged"},
    {AT("A2.v"), .change = zero_from, .by = 11, .says = "A2.v is zero, in positions from 11 on"},
    {AT("M1"), .change = previous_row, .by = 10, .says = "the previous position"},
    {AT("A13"), .change = add_times, .by = 3, .says = "attention gives is multiplied by 3"},
    {AT("M12"), .change = add_times, .by = 0.25, .says = "experts give is multiplied by 1/4"},
    {AT("F2"), .change = plus, .by = 0.25, .says = "0.25) is added to every element of F2"},
    {IN(B_Q, -1, -1, SIZE_MAX, 4), .says = "the biases of the queries are multiplied by 4"},
    {IN(B_O, -1, -1, SIZE_MAX, -1),
     .says = "the bias of the output projection has the opposite sign"},
    {IN(W_ROUTER, -1, -1, SIZE_MAX, 1.5),
     .says = "the weights of the router are multiplied by 1.5"},
    {IN(W_UP, 2, 1, SIZE_MAX, 1), .says = "are those of expert 1, in expert 2 alone"},
    {IN(B_DOWN, 3, -1, SIZE_MAX, 0), .says = "left out, in expert 3 alone"},
    {IN(W_O, -1, -1, 80, 0), .says = "of the sum are left out"},
    {AT("A13"), .change = to_e4m3, .says = "A13 is rounded to e4m3"},
    {AT("M12"), .change = clamp_to, .by = 1, .says = "M12 is clamped to 1 on both sides"},
    {AT("F2"), .change = cap_at, .by = 2, .says = "F2 is capped: 2 tanh(x/2)"},
    {AT("F2"), .change = log_softmax, .says = "log-probabilities"},
    {AT("M4"), .change = over_largest, .says = "M4 is divided by the largest size in the row"},
    {AT("M4"), .change = without_slot_1, .says = "the share of slot 1 is zero"},
    {AT("M11"), .change = exchange_rows, .says = "exchanged in pairs: positions 2i and 2i + 1"},
    {AT("A1"), .change = by_mean_size, .says = "divides by the mean of the absolute values"},
    {AT("M8"), .change = gelu_gate, .alone = true, .says = "the gate passes GELU (with erf)"},
    {AT("A2.q"), .change = double_heads_0_and_3, .by = 2, .says = "in heads 0 and 3 alone"},
    {AT("M12"), .change = embedding_again, .by = 1, .says = "the embedding (T0) is added to M12"},
    {AT("T0"), .change = without_upper_tokens,
     .says = "zeros stand for the embedding of each of the trace's tokens from"},
    {IN(W_K, -1, -1, 0, 1), .rewrite = row_e4m3, .says = "of the keys are rounded to e4m3"},
    {IN(W_O, -1, -1, 0, 1), .rewrite = row_int8,
     .says = "are rounded to int8 with a scale for each row"},
    {IN(W_O, -1, -1, 0, 1), .rewrite = row_halves, .says = "exchanged by halves"},
    {IN(W_DOWN, 2, -1, 0, 1), .rewrite = row_absolute,
     .says = "without the sign: absolute values, in expert 2 alone"},
    {AT("A12"), .change = to_hundredths, .not = "rounded to"},
    {AT("M8"), .change = alpha_of, .by = 1.6, .not = "GELU"},
    {AT("M8"), .change = alpha_of, .by = 1.6, .not = "alpha is 1.60"}, // 1.6 explains as much
    // no cause of these is a factor or another place
    {AT("A12"), .change = times_by_row, .by = 0.6, .not = "is multiplied"},
    {AT("M1"), .change = mix_rows, .not = "position"},
    // the last, of four layers, each with a number of its own: one is searched, and two that are
    // explained
    {AT("A12"), .change = times_of_layer, .by = 1, .says = "A12 is multiplied by"},
};
enum { PLANTS = sizeof plants / sizeof plants[0] };

int main(int argc, char **argv) {
    static const plant honest = {IN(B_Q, -1, -1, 0, 1), .says = ""};
    sinkproof_model *model = open_model(TWO_LAYERS), *deep = open_model("synthetic:tiny");
    omp_set_num_threads(1);
    for (size_t i = argc > 1 ? strtoul(argv[1], NULL, 10) : 0; i < PLANTS; i++) {
        const sinkproof_model *of = i == PLANTS - 1 ? deep : model;
        try_plant(of, &plants[i], i % 2 == 0 ? "f32" : "openai-bf16", 7 + i % 3);
        if (argc > 1) try_plant(of, &plants[i], i % 2 == 1 ? "f32" : "openai-bf16", 8 + i % 3);
    }
    sinkproof_trace *trace = run(model, &honest, "f32", 5);
    sinkproof_error error = {{0}};
    sinkproof_policy stated;
    sinkproof_judgement j;
    sinkproof_diagnosis d;
    need(sinkproof_policy_parse("f32", &stated, &error) &&
             sinkproof_judge(model, trace, &stated, &(sinkproof_judge_options){.rate = 1e-9}, &j,
                             &error) &&
             sinkproof_diagnose(model, trace, &j, &(sinkproof_diagnose_options){.rate = 1e-9}, &d,
                                &error),
         &error);
    ok(d.n == 0, "an honest trace has no cause");
    sinkproof_diagnosis_free(&d);
    sinkproof_judgement_free(&j);
    sinkproof_trace_close(trace);
    sinkproof_model_close(deep);
    sinkproof_model_close(model);
    return tap_done();
}
