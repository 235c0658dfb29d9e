// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What a cause may not claim. Two mistakes of one layer are told each by its own, and one mistake
// of two points once; a cause of some rows is told of no point that fails in other rows too; a rule
// comes before the rows that it leaves out; numbers that are fitted do not explain noise; and a
// layer that nothing explains leaves the next one a part of the budget.
#include "base/splitmix.h"
#include "tests/shared/attended.h"

// ---- attention

static void an_eighth_more(shown *s, double by) {
    for (size_t at = 0; at < s->count; at++) s->v[at] = rounded(s, s->v[at] * by);
}

static bool sees(const shown *s, size_t i, size_t j) {
    return j <= i && (!s->c->sliding[s->layer] || i - j < s->c->window);
}

// The weights of row r over all heads, of the keys that `seen` has, from the scores shown.
static void weigh(shown *s, size_t r, bool (*seen)(const shown *, size_t, size_t)) {
    size_t columns = s->shape[2], i = r % s->n;
    double sink_h[64], sum = 0, *row = &s->v[r * columns];
    const double *z = &s->latest[TRACE_A6][r * (columns - 1)];
    sinkproof_matrix sinks = sinkproof_model_slot(s->model, s->layer, SINKPROOF_SINKS);
    must(sinks.cols <= 64);
    sinkproof_matrix_row(&sinks, 0, sink_h);
    for (size_t j = 0; j < columns; j++) {
        bool last = j + 1 == columns;
        row[j] = last || seen(s, i, j) ? exp(last ? sink_h[r / s->n] : z[j]) : 0;
        sum += row[j];
    }
    for (size_t j = 0; j < columns; j++) row[j] = rounded(s, row[j] / sum);
}

static bool but_key_3(const shown *s, size_t i, size_t j) {
    return sees(s, i, j) && (j != 3 || i == 3);
}
static void without_key_3(shown *s, double by) {
    (void)by;
    for (size_t r = 0; r < s->count / s->shape[2]; r++) weigh(s, r, but_key_3);
}

// The window is narrower at first, by a rule of its own, and one key wider from row 16 on.
static bool in_its_window(const shown *s, size_t i, size_t j) {
    return j <= i && i - j < (i < 16 ? 3 + i * 5 % 3 : s->c->window + 1);
}
static void by_the_row(shown *s, double by) {
    (void)by;
    for (size_t r = 0; s->c->sliding[s->layer] && r < s->count / s->shape[2]; r++)
        weigh(s, r, in_its_window);
}

// Keys and values rounded to eight bits.
static void in_eight_bits(const shown *s, double by, double *x, size_t width) {
    (void)by;
    for (size_t at = 0; at < s->n * width; at++) x[at] = sinkproof_round(SINKPROOF_E4M3, x[at]);
}
static void scores_of_rounded(shown *s, double by) {
    attend_scores(s, in_eight_bits, by);
}
static void as_scored(shown *s, double by) {
    (void)by;
    for (size_t r = 0; r < s->count / s->shape[2]; r++) weigh(s, r, sees);
}

// What follows from the weights.
static void as_weighed(shown *s, double by) {
    size_t columns = s->shape[2];
    (void)by;
    for (size_t at = 0; at < s->count; at++)
        s->v[at] = s->latest[TRACE_A9][at / columns * (columns + 1) + at % columns];
}
static void sum_values(shown *s, remake *values, double by) {
    size_t heads = s->shape[1], d = s->shape[2], groups = s->c->n_kv_heads;
    double *v = remade(s, TRACE_A2_V, values, by);
    for (size_t at = 0; at < s->count; at++) {
        size_t i = at / (heads * d), h = at / d % heads, g = h / (heads / groups);
        double sum = 0;
        for (size_t j = 0; j <= i; j++)
            sum +=
                s->latest[TRACE_A10][(h * s->n + i) * s->n + j] * v[(j * groups + g) * d + at % d];
        s->v[at] = rounded(s, sum);
    }
    free(v);
}
static void as_summed(shown *s, double by) {
    sum_values(s, NULL, by);
}
static void summed_from_rounded(shown *s, double by) {
    sum_values(s, in_eight_bits, by);
}

// Nearly normal: the sum of twelve uniform numbers.
static double drawn(uint64_t *state) {
    double sum = 0;
    for (int k = 0; k < 12; k++) sum += ldexp((double)(sinkproof_draw(state) >> 32), -32) - 0.5;
    return sum;
}

// Values that are each off by a drawn share of their size, in layer 0: no operation.
static void off_by_chance(const shown *s, double by, double *x, size_t width) {
    uint64_t state = (uint64_t)s->tokens[0];
    for (size_t at = 0; at < s->n * width; at++) x[at] *= 1 + by * drawn(&state);
}
static void noisy_values(shown *s, double by) {
    sum_values(s, s->layer == 0 ? off_by_chance : NULL, by);
}

// The weights of head 3 in layer 0, of scores that are each off by chance.
static void off_weights(shown *s, double by) {
    size_t columns = s->shape[2], h = 3;
    for (size_t r = h * s->n; s->layer == 0 && r < (h + 1) * s->n; r++) {
        uint64_t state = 3000 + r;
        double sum = 0, *row = &s->v[r * columns];
        for (size_t j = 0; j < columns; j++) {
            double kept = row[j];
            if (j + 1 < columns) row[j] *= exp(by * drawn(&state));
            sum += row[j] - kept;
        }
        for (size_t j = 0; j < columns; j++) row[j] = rounded(s, row[j] / (1 + sum));
    }
}

// Sinks a little larger in four heads of layer 0.
static void four_sinks(const shown *s, double by, size_t h, size_t i, double *sink, double *z) {
    (void)s, (void)i, (void)z;
    if (h == 0 || h == 2 || h == 4 || h == 9) *sink += by;
}
static void beside_larger_sinks(shown *s, double by) {
    if (s->layer == 0) attend_with(s, NULL, NULL, four_sinks, by);
}

// ---- experts

// An expert's tokens, in the order of the slots, behind the last whole block of `by` are 0.
static void block_not_computed(shown *s, double by) {
    size_t k = s->c->n_chosen, d = s->c->hidden;
    const double *chosen = s->latest[TRACE_M3];
    for (size_t e = 0; e < s->c->n_experts; e++) {
        size_t all = 0, at = 0;
        for (size_t q = 0; q < s->n * k; q++) all += (size_t)chosen[q] == e;
        for (size_t slot = 0; slot < k; slot++)
            for (size_t i = 0; i < s->n; i++) {
                size_t q = i * k + slot;
                if ((size_t)chosen[q] != e || at++ < all - all % (size_t)by) continue;
                memset(&s->v[q * d], 0, d * sizeof *s->v);
            }
    }
}

// The same but for every fourth position: no rule of the batch alone.
static void block_partly_computed(shown *s, double by) {
    size_t each = s->c->n_chosen * s->c->hidden;
    double *kept = malloc(s->count * sizeof *kept);
    must(kept != NULL);
    memcpy(kept, s->v, s->count * sizeof *kept);
    block_not_computed(s, by);
    for (size_t i = 1; i < s->n; i += 4)
        memcpy(&s->v[i * each], &kept[i * each], each * sizeof *kept);
    free(kept);
}

// ---- noise

static void third_elements_off(shown *s, double by) {
    for (size_t at = 0; s->layer == 1 && at < s->count; at += 3)
        s->v[at] = rounded(s, s->v[at] + (at % 2 == 0 ? by : -by));
}
static void noise(shown *s, double by) {
    for (size_t at = 0; s->layer == 1 && at < s->count; at++)
        s->v[at] = rounded(s, s->v[at] + by * sin((double)(at * at % 1009)));
}

// ---- the budget

// Nothing explains layer 0; the others lack a bias.
static void scattered_then_unbiased(shown *s, double by) {
    double bias[512];
    sinkproof_matrix b = sinkproof_model_slot(s->model, s->layer, SINKPROOF_B_Q);
    must(b.cols <= sizeof bias / sizeof bias[0]);
    sinkproof_matrix_row(&b, 0, bias);
    for (size_t at = 0; at < s->count; at++)
        s->v[at] = rounded(s, s->layer > 0 ? s->v[at] - bias[at % b.cols]
                                           : s->v[at] + by * (double)(at * 7 % 11));
}

static void next_layer_is_searched(const sinkproof_model *model) {
    sinkproof_error error = {{0}};
    sinkproof_policy stated;
    sinkproof_judgement j;
    sinkproof_diagnosis d;
    const plant p = {AT("A2.q"), .change = scattered_then_unbiased, .by = 0.1};
    sinkproof_trace *trace = run(model, &p, "f32", 7);
    const sinkproof_diagnose_options how = {.rate = 1e-9, .places = 2, .budget = 120};
    need(sinkproof_policy_parse("f32", &stated, &error) &&
             sinkproof_judge(model, trace, &stated, &(sinkproof_judge_options){.rate = 1e-9}, &j,
                             &error) &&
             sinkproof_diagnose(model, trace, &j, &how, &d, &error),
         &error);
    bool spent = false, named = false;
    for (size_t i = 0; i < d.n; i++) {
        const diagnosed_finding *f = &d.findings[i];
        spent = spent || (f->layers[0] && f->n_alike == 0 && f->limit == LIMIT_BUDGET);
        named = named || (f->layers[1] && f->n_alike > 0 &&
                          strstr(f->alike[0].mistakes[0]->text, "bias") != NULL);
    }
    ok(spent, "layer 0 spends the budget of %zu: %zu judgements in all", how.budget, d.tried);
    ok(named, "and layer 1 is explained all the same");
    sinkproof_diagnosis_free(&d);
    sinkproof_judgement_free(&j);
    sinkproof_trace_close(trace);
}

#define SUMMED                                                                                     \
    {"A10", as_weighed}, {                                                                         \
        "A11", as_summed                                                                           \
    }

static const plant plants[] = {
    {AT("A6"), .change = an_eighth_more, .by = 1.125, .more = {{"A9", without_key_3}, SUMMED},
     .f32 = true, .alone = true, .says = "the scores are multiplied by 1.125"},
    {AT("A9"), .change = without_key_3, .more = {{"A6", an_eighth_more}, SUMMED}, .by = 1.125,
     .f32 = true, .alone = true, .says = "key 3 is not seen"},
    {AT("A9"), .change = by_the_row, .by = 1, .more = {SUMMED}, .f32 = true,
     .not = "the window is one key too wide"},
    {AT("A11"), .change = beside_larger_sinks, .by = 0.01, .fused = true,
     .not = "in the sink's gate is multiplied by 1 "},
    {AT("A6"), .change = scores_of_rounded, .by = 1, .f32 = true, .alone = true,
     .more = {{"A9", as_scored}, {"A10", as_weighed}, {"A11", summed_from_rounded}},
     .says = "keys and values are rounded to e4m3"},
    {AT("M10"), .change = block_not_computed, .by = 5, .f32 = true,
     .says = "for the last, partial block of 5 of an expert's tokens"},
    {AT("M10"), .change = block_not_computed, .by = 2, .f32 = true,
     .says = "for the last, partial block of 2 of an expert's tokens"},
    {AT("A2.v"), .change = noise, .by = 0x1p-8, .not = "A2.v"},
    {AT("A2.v"), .change = third_elements_off, .by = 0x1p-12, .f32 = true, .not = "A2.v"},
    {AT("M10"), .change = block_partly_computed, .by = 4, .f32 = true, .not = "partial block"},
};

// Under a policy that keeps weights in 16 bits, which the trace does not show.
static void noise_is_no_cause(void) {
    static const plant values = {AT("A11"), .change = noisy_values, .by = 0.06, .fused = true,
                                 .not = ""};
    static const plant weights = {AT("A9"),      .change = off_weights, .by = 0.01,
                                  .fused = true, .more = {SUMMED},      .not = ""};
    sinkproof_model *model = open_model(TWO_LAYERS);
    try_plant(model, &values, "openai-bf16", 9);
    try_plant(model, &weights, "openai-bf16", 4);
    sinkproof_model_close(model);
}

int main(int argc, char **argv) {
    sinkproof_model *model = open_model("synthetic:tiny");
    omp_set_num_threads(1);
    next_layer_is_searched(model);
    sinkproof_model_close(model);
    noise_is_no_cause();
    return try_plants(plants, sizeof plants / sizeof plants[0], argc, argv);
}
