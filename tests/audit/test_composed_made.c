// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Mistakes that no catalogue lists, planted in complete engines: numbers that are made from others
// of the trace, tables of codes, what is fitted to rows. Mistakes that look like one are not called
// by its name.
#include "tests/shared/planted.h"

// ---- norms and activations

static double square_of(const double *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sum;
}
// The norm of each row over another square: the reference's own times the quotient of the roots.
static void divide(shown *s, size_t row, double square) {
    size_t d = s->c->hidden;
    double own = square_of(&s->residual[row * d], d) / (double)d + s->c->rms_eps;
    for (size_t k = row * d; k < (row + 1) * d; k++)
        s->v[k] = rounded(s, s->v[k] * sqrt(own / (square + s->c->rms_eps)));
}
static void without_tail(shown *s, double by) {
    size_t d = s->c->hidden;
    for (size_t i = 0; i < s->n; i++)
        divide(s, i, square_of(&s->residual[i * d], d - (size_t)by) / (double)d);
}
static void mean_in_bf16(shown *s, double by) {
    size_t d = s->c->hidden;
    (void)by;
    for (size_t i = 0; i < s->n; i++)
        divide(s, i,
               sinkproof_round(SINKPROOF_BF16, square_of(&s->residual[i * d], d) / (double)d));
}
static void over_block(shown *s, double by) {
    size_t d = s->c->hidden, block = (size_t)by;
    for (size_t i = 0; i < s->n; i++)
        divide(s, i, square_of(&s->residual[i / block * block * d], d) / (double)d);
}
static void scattered(shown *s, double by) { // no statistic
    size_t d = s->c->hidden;
    for (size_t i = 0; i < s->n; i++)
        divide(s, i,
               square_of(&s->residual[i * d], d) / (double)d * (1 + by * (double)(i * 7 % 5)));
}

static void alpha_outside(shown *s, double by) {
    for (size_t i = 0; i < s->count; i++) {
        double limit = s->c->swiglu.limit, g = fmin(s->up[2 * i], limit);
        double u = fmin(fmax(s->up[2 * i + 1], -limit), limit);
        s->v[i] = rounded(s, s->c->swiglu.alpha * g / (1 + exp(-by * g)) * (u + 1));
    }
}
static void one_to_the_gate(shown *s, double by) {
    for (size_t i = 0; i < s->count; i++) {
        double limit = s->c->swiglu.limit, g = fmin(s->up[2 * i], limit);
        double u = fmin(fmax(s->up[2 * i + 1], -limit), limit);
        s->v[i] = rounded(s, (g + by) / (1 + exp(-s->c->swiglu.alpha * g)) * u);
    }
}

// ---- experts

static const double *of(const shown *s, sinkproof_trace_point point) {
    return s->latest[point];
}
static size_t expert_at(const shown *s, size_t q) {
    return (size_t)of(s, TRACE_M3)[q];
}
static size_t place_of(const shown *s, size_t q) {
    size_t before = 0;
    for (size_t o = 0; o < q; o++) before += expert_at(s, o) == expert_at(s, q);
    return before;
}

// The up-projection of slot q with the weights of expert e.
static void project(shown *s, size_t q, size_t e) {
    size_t d = s->c->hidden, rows = 2 * s->c->inter;
    const double *x = &of(s, TRACE_M1)[q / s->c->n_chosen * d];
    sinkproof_matrix w = sinkproof_model_slot(s->model, s->layer, SINKPROOF_W_UP);
    sinkproof_matrix one = sinkproof_matrix_at(&w, e);
    double *row = malloc(d * sizeof *row);
    must(row != NULL);
    for (size_t r = 0; r < rows; r++) {
        double sum = 0;
        sinkproof_matrix_row(&one, r, row);
        for (size_t k = 0; k < d; k++) sum += row[k] * x[k];
        s->v[q * rows + r] = rounded(s, sum);
    }
    free(row);
}
static void next_experts_tile(shown *s, double by) {
    for (size_t q = 0; q < s->n * s->c->n_chosen; q++)
        if (place_of(s, q) >= (size_t)by) project(s, q, (expert_at(s, q) + 1) % s->c->n_experts);
}
static void any_expert(shown *s, double by) { // no rule
    for (size_t q = 0; q < s->n * s->c->n_chosen; q++)
        project(s, q, (size_t)(q * 7 + q * q * 3 + (size_t)by) % s->c->n_experts);
}
static void bias_by_slot(shown *s, double by) {
    size_t rows = 2 * s->c->inter, k = s->c->n_chosen;
    sinkproof_matrix b = sinkproof_model_slot(s->model, s->layer, SINKPROOF_B_UP);
    double *row = malloc(rows * sizeof *row);
    (void)by;
    must(row != NULL);
    for (size_t q = 0; q < s->n * k; q++) {
        sinkproof_matrix one = sinkproof_matrix_at(&b, q % k);
        sinkproof_matrix_row(&one, 0, row);
        for (size_t r = 0; r < rows; r++)
            s->v[q * rows + r] = rounded(s, of(s, TRACE_M5)[q * rows + r] + row[r]);
    }
    free(row);
}
static void beyond_capacity(shown *s, double by) {
    size_t each = s->count / (s->n * s->c->n_chosen);
    for (size_t q = 0; q < s->n * s->c->n_chosen; q++)
        if (place_of(s, q) >= (size_t)by) memset(&s->v[q * each], 0, each * sizeof *s->v);
}

// ---- the sum over the experts

typedef double share(const shown *s, size_t q);
static void mix(shown *s, share *share_of, long experts_from, long late) {
    size_t d = s->c->hidden, k = s->c->n_chosen;
    double *sum = calloc(s->count, sizeof *sum);
    must(sum != NULL);
    for (size_t q = 0; q < s->n * k; q++) {
        size_t to = q / k + ((long)expert_at(s, q) >= experts_from ? (size_t)late : 0);
        for (size_t c = 0; c < d && to < s->n; c++)
            sum[to * d + c] += share_of(s, q) * of(s, TRACE_M10)[q * d + c];
    }
    for (size_t i = 0; i < s->count; i++) s->v[i] = rounded(s, sum[i]);
    free(sum);
}
static double own_share(const shown *s, size_t q) {
    return of(s, TRACE_M4)[q];
}
static double equal_share(const shown *s, size_t q) {
    (void)q;
    return (double)(float)(1 / (double)s->c->n_chosen);
}
static double share_anew(const shown *s, size_t q) {
    return of(s, TRACE_M4)[q % (8 * s->c->n_chosen)];
}
static double large_share(const shown *s, size_t q) {
    return own_share(s, q) >= 0.25 ? own_share(s, q) : 0;
}
static void equal_shares(shown *s, double by) {
    (void)by;
    mix(s, equal_share, 1000, 0);
}
static void shares_anew(shown *s, double by) {
    (void)by;
    mix(s, share_anew, 1000, 0);
}
static void large_shares(shown *s, double by) {
    (void)by;
    mix(s, large_share, 1000, 0);
}
static void late_experts(shown *s, double by) {
    mix(s, own_share, (long)by, 1);
}

static void sorted_by_first(shown *s, double by) {
    size_t k = s->c->n_chosen, at = 0;
    double *kept = malloc(s->count * sizeof *kept);
    (void)by;
    must(kept != NULL);
    memcpy(kept, s->v, s->count * sizeof *kept);
    for (size_t e = 0; e < s->c->n_experts; e++)
        for (size_t i = 0; i < s->n; i++)
            if (expert_at(s, i * k) == e) memcpy(&s->v[at++ * k], &kept[i * k], k * sizeof *kept);
    free(kept);
}
static void best_group(shown *s, double by) {
    size_t experts = s->c->n_experts, k = s->c->n_chosen, half = (experts + 1) / 2;
    (void)by;
    for (size_t i = 0; i < s->n; i++) {
        const double *g = &of(s, TRACE_M2)[i * experts];
        double one = -INFINITY, two = -INFINITY;
        for (size_t e = 0; e < half; e++) one = fmax(one, g[e]);
        for (size_t e = half; e < experts; e++) two = fmax(two, g[e]);
        for (size_t slot = 0; slot < k; slot++) {
            double best = -INFINITY;
            for (size_t e = one >= two ? 0 : half; e < (one >= two ? half : experts); e++) {
                bool taken = false;
                for (size_t o = 0; o < slot; o++) taken = taken || (size_t)s->v[i * k + o] == e;
                if (!taken && g[e] > best) best = g[e], s->v[i * k + slot] = (double)e;
            }
        }
    }
}

// ---- others

static void average_heads(shown *s, double by) {
    size_t d = s->shape[2], heads = s->shape[1];
    (void)by;
    for (size_t i = 0; i < s->shape[0]; i++)
        for (size_t k = 0; k < d; k++) {
            double sum = 0;
            for (size_t h = 0; h < heads; h++) sum += s->v[(i * heads + h) * d + k];
            for (size_t h = 0; h < heads; h++)
                s->v[(i * heads + h) * d + k] = rounded(s, sum / (double)heads);
        }
}
static void normalise(shown *s, double by) {
    size_t d = s->c->hidden;
    for (size_t i = 0; i < s->n; i++) {
        double root = sqrt(square_of(&s->v[i * d], d) / (double)d + by);
        for (size_t k = i * d; k < (i + 1) * d; k++) s->v[k] = rounded(s, s->v[k] / root);
    }
}
static void tokens_modulo(shown *s, double by) {
    sinkproof_matrix e = sinkproof_model_slot(s->model, 0, SINKPROOF_EMBEDDING);
    for (size_t i = 0; i < s->n; i++) {
        sinkproof_matrix_row(&e, (size_t)s->tokens[i] % (size_t)by, &s->v[i * s->c->hidden]);
        for (size_t k = 0; k < s->c->hidden; k++)
            s->v[i * s->c->hidden + k] = rounded(s, s->v[i * s->c->hidden + k]);
    }
}
static void add_bias(shown *s, double by) {
    sinkproof_matrix b = sinkproof_model_slot(s->model, s->layer, SINKPROOF_B_K);
    double *row = malloc(b.cols * sizeof *row);
    must(row != NULL);
    sinkproof_matrix_row(&b, 0, row);
    for (size_t i = 0; i < s->count; i++) s->v[i] = rounded(s, s->v[i] + by * row[i % b.cols]);
    free(row);
}
static void twice_and_bias(shown *s, double by) {
    sinkproof_matrix b = sinkproof_model_slot(s->model, s->layer, SINKPROOF_B_K);
    double *row = malloc(b.cols * sizeof *row);
    must(row != NULL);
    sinkproof_matrix_row(&b, 0, row);
    for (size_t i = 0; i < s->count; i++) s->v[i] = rounded(s, 2 * s->v[i] + by * row[i % b.cols]);
    free(row);
}
static void add_of_rank(shown *s, size_t rank, double by) {
    size_t cols = s->count / s->n;
    for (size_t i = 0; i < s->n; i++)
        for (size_t c = 0; c < cols; c++) {
            double sum = 0;
            for (size_t k = 0; k < rank; k++)
                sum +=
                    sin((double)(i * (2 * k + 3) + k)) * cos((double)((c + 3) * (c + k) + 7 * k));
            s->v[i * cols + c] = rounded(s, s->v[i * cols + c] + by * sum);
        }
}
static void add_of_rank_2(shown *s, double by) {
    add_of_rank(s, 2, by);
}
static void add_of_rank_3(shown *s, double by) {
    add_of_rank(s, 3, by);
}
static void by_layer(shown *s, double by) {
    for (size_t i = 0; i < s->count; i++)
        s->v[i] = rounded(s, s->residual[i] + s->added[i] / ((double)s->layer + by));
}

static void mix_with_before(shown *s, double by) {
    size_t each = s->count / s->n;
    for (size_t i = s->count; i-- > each;)
        s->v[i] = rounded(s, (1 - by) * s->v[i] + by * s->v[i - each]);
}
static void times_position(shown *s, double by) {
    size_t each = s->count / s->n;
    for (size_t i = 0; i < s->count; i++)
        s->v[i] = rounded(s, s->v[i] * (1 + by * (double)(i / each)));
}
static void small_to_zero(shown *s, double by) {
    for (size_t i = 0; i < s->count; i++)
        if (fabs(s->v[i]) < by) s->v[i] = 0;
}
static void expert_3_from_10(shown *s, double by) {
    size_t k = s->c->n_chosen, each = s->count / (s->n * k);
    for (size_t q = 10 * k; s->layer == 0 && q < s->n * k; q++)
        for (size_t i = q * each; expert_at(s, q) == 3 && i < (q + 1) * each; i++)
            s->v[i] = rounded(s, s->v[i] * by);
}
static void next_in_block(shown *s, double by) {
    size_t each = s->count / s->n, block = (size_t)by;
    double *kept = malloc(s->count * sizeof *kept);
    must(kept != NULL);
    memcpy(kept, s->v, s->count * sizeof *kept);
    for (size_t i = 0; i < s->n; i++)
        memcpy(&s->v[i * each], &kept[(i - i % block + (i % block + 1) % block) * each],
               each * sizeof *kept);
    free(kept);
}

static void shift_weights(size_t cols, double *row) {
    double largest = 0;
    for (size_t c = 0; c < cols; c++) largest = fmax(largest, fabs(row[c]));
    for (size_t c = 0; c < cols; c++) row[c] += largest / 7;
}
static void lose_last_5(size_t cols, double *row) {
    for (size_t c = cols - 5; c < cols; c++) row[c] = 0;
}
static void flush_halves(const sinkproof_matrix *w, size_t e, size_t r, double *row) {
    float scale[64];
    sinkproof_matrix one = sinkproof_matrix_at(w, e);
    must(w->cols <= 64 * 32 && sinkproof_matrix_scales(&one, r, scale));
    for (size_t c = 0; c < w->cols; c++)
        if (fabs(row[c]) == 0.5 * (double)scale[c / 32]) row[c] = 0;
}
static void swizzle_scales(const sinkproof_matrix *w, size_t e, size_t r, double *row) {
    float own[64], other[64];
    size_t from = r % 4 * (w->rows / 4) + r / 4;
    sinkproof_matrix one = sinkproof_matrix_at(w, e);
    must(w->cols <= 64 * 32 && sinkproof_matrix_scales(&one, r, own) &&
         sinkproof_matrix_scales(&one, from, other));
    for (size_t c = 0; c < w->cols; c++) row[c] *= (double)(other[c / 32] / own[c / 32]);
}

static const plant plants[] = {
    {AT("A1"), .change = without_tail, .by = 32, .says = "the sum of squares of coordinates 0-"},
    {AT("M1"), .change = over_block, .by = 4, .f32 = true,
     .says = "the first row of its block of 4"},
    {AT("M8"), .change = alpha_outside, .by = 1, .alone = true, .says = "outside of its sigmoid"},
    {AT("M8"), .change = one_to_the_gate, .by = 1, .f32 = true, .alone = true,
     .says = "added to the gate, not"},
    {AT("M5"), .change = next_experts_tile, .by = 3, .alone = true,
     .says = "those of the next expert (+1) for an expert's tokens after its first 3"},
    {AT("M6"), .change = bias_by_slot, .alone = true, .says = "read at the number of the slot"},
    {AT("M10"), .change = beyond_capacity, .by = 4, .says = "a capacity of 4 tokens"},
    {AT("M11"), .change = equal_shares, .n = MOST_TOKENS, .says = "the experts are averaged"},
    {AT("M11"), .change = shares_anew, .n = MOST_TOKENS, .says = "modulo 8: positions begin anew"},
    {AT("M11"), .change = large_shares, .says = "as 0 where they are below a limit"},
    {AT("M11"), .change = late_experts, .by = 4, .says = "give added to the next token"},
    {AT("M4"), .change = sorted_by_first, .alone = true,
     .says = "tokens sorted by their first expert"},
    {AT("M3"), .change = best_group, .alone = true, .says = "the best group of 2"},
    {AT("A2.v"), .change = average_heads, .says = "the mean of all key/value heads"},
    {AT("T0"), .change = normalise, .by = 1e-5, .says = "divided by the root mean square"},
    {AT("T0"), .change = tokens_modulo, .by = 60, .says = "its token modulo 60"},
    {.point = "A4.k",
     .slot = SINKPROOF_B_K,
     .expert = -1,
     .from_expert = -1,
     .end = SIZE_MAX,
     .both = true,
     .change = add_bias,
     .by = 1,
     .says = "after the rotation (to A4.k), not before it"},
    {AT("A2.k"), .change = twice_and_bias, .by = 3, .says = "and the biases of the keys times 3"},
    {AT("A2.q"), .change = add_of_rank_2, .by = 0.1, .says = "has a matrix of rank 2 added"},
    {AT("A2.v"), .change = add_of_rank_3, .by = 0.1, .n = MOST_TOKENS, .f32 = true,
     .says = "has a matrix of rank 3 added"},
    {IN(W_K, -1, -1, 0, 1), .rewrite = shift_weights, .f32 = true, .says = "(a zero point)"},
    {IN(W_O, -1, -1, 0, 1), .rewrite = lose_last_5, .says = "(the last) of the sum are left out"},
    {IN(W_UP, -1, -1, 0, 1), .reread = flush_halves,
     .says = "codes of 0.5 (subnormals) taken as 0"},
    {IN(W_UP, -1, -1, 0, 1), .reread = swizzle_scales, .says = "the scales of other rows"},
    {AT("A2.v"), .change = mix_with_before, .by = 0.25, .f32 = true,
     .says = "mixed with the row of the position before, which has the weight 1/4"},
    {AT("A12"), .change = times_position, .by = 0.05, .f32 = true,
     .says = "depends on the position i: 1 + i times 0.05"},
    {AT("M8"), .change = small_to_zero, .by = 0.01, .f32 = true, .alone = true,
     .says = "is 0 where its size is below a limit (about 0.01"},
    {AT("M5"), .change = expert_3_from_10, .by = 0.7, .f32 = true, .alone = true,
     .says = "of expert 3 alone"},
    {AT("M11"), .change = next_in_block, .by = 8,
     .says = "each position is the next one, in a circle of each 8"},
    {AT("A1"), .change = scattered, .by = 0.01, .not = "root mean square"},
    {AT("M5"), .change = any_expert, .by = 2, .not = "expert"},
    {AT("A1"), .change = mean_in_bf16, .f32 = true, .says = "rounds the mean square to bfloat16"},
};
enum { PLANTS = sizeof plants / sizeof plants[0] };

// The factors of three layers, and the rule that they follow.
static void try_layers(void) {
    static const plant p = {AT("A13"), .change = by_layer, .by = 1};
    sinkproof_model *model = open_model("synthetic:tiny");
    sinkproof_error error = {{0}};
    sinkproof_policy stated;
    sinkproof_judgement j;
    sinkproof_diagnosis d;
    sinkproof_trace *trace = run(model, &p, "f32", 11);
    need(sinkproof_policy_parse("f32", &stated, &error) &&
             sinkproof_judge(model, trace, &stated, &(sinkproof_judge_options){.rate = 1e-9}, &j,
                             &error) &&
             sinkproof_diagnose(model, trace, &j,
                                &(sinkproof_diagnose_options){.rate = 1e-9, .pairs = 10}, &d,
                                &error),
         &error);
    bool said = d.n > 1;
    for (size_t i = 0; i < d.n; i++)
        said = said && d.findings[i].n_alike > 0 &&
               strstr(d.findings[i].alike[0].mistakes[0]->text, "it is 1/(l + 1)") != NULL;
    ok(said, "factors of layers follow a rule (%s)",
       d.n > 0 && d.findings[0].n_alike > 0 ? d.findings[0].alike[0].mistakes[0]->text : "nothing");
    sinkproof_diagnosis_free(&d);
    sinkproof_judgement_free(&j);
    sinkproof_trace_close(trace);
    sinkproof_model_close(model);
}

int main(int argc, char **argv) {
    sinkproof_model *model = open_model(TWO_LAYERS);
    omp_set_num_threads(1);
    for (size_t i = argc > 1 ? strtoul(argv[1], NULL, 10) : 0; i < PLANTS; i++) {
        bool wide = plants[i].f32 || i % 2 == 0;
        try_plant(model, &plants[i], wide ? "f32" : "openai-bf16", 7 + i % 3);
        if (argc > 1 && !plants[i].f32)
            try_plant(model, &plants[i], wide ? "openai-bf16" : "f32", 8 + i % 3);
    }
    try_layers();
    sinkproof_model_close(model);
    return tap_done();
}
