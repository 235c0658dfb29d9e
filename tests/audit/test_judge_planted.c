// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Real bugs, planted in the reference's stages one at a time: the judge must convict each at
// the point where it happens, in float32 and in bfloat16, and acquit what only looks wrong.
// Each row names the report in public issue trackers that it stands for (M12: a window one key
// too wide, and so on).
#include "tests/shared/judged.h"
#include "tests/shared/opened.h"
#include "tests/shared/sink_value.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <string.h>

static const sinkproof_stages *const ref = &sinkproof_reference_stages;
enum { CHOSEN_MAX = 16 };

// ---- attention

static sinkproof_block widened(const sinkproof_block *block, int by) {
    sinkproof_block b = *block;
    if (b.window > 0) b.window = (size_t)((int)b.window + by);
    return b;
}
static void softmax_wide(const sinkproof_policy *p, const sinkproof_block *block, const double *b_i,
                         const double *s, double *a) {
    sinkproof_block b = widened(block, 1);
    ref->softmax_sink(p, &b, b_i, s, a);
}
static void softmax_narrow(const sinkproof_policy *p, const sinkproof_block *block,
                           const double *b_i, const double *s, double *a) {
    sinkproof_block b = widened(block, -1);
    ref->softmax_sink(p, &b, b_i, s, a);
}
static void values_wide(const sinkproof_policy *p, const sinkproof_block *block, const double *a,
                        const double *v, double *o) {
    sinkproof_block b = widened(block, 1);
    ref->values(p, &b, a, v, o);
}
static void sink_scaled(const sinkproof_policy *p, const sinkproof_block *block,
                        const sinkproof_normaliser *normaliser, const double *q, double *b_i) {
    ref->sink_logits(p, block, normaliser, q, b_i);
    for (size_t i = 0; i < block->rows; i++) b_i[i] /= sqrt((double)block->head_dim);
}
static void softmax_renormalised(const sinkproof_policy *p, const sinkproof_block *block,
                                 const double *b_i, const double *s, double *a) {
    ref->softmax_sink(p, block, b_i, s, a);
    for (size_t i = 0; i < block->rows; i++) {
        double *row = a + i * (block->keys + 1);
        for (size_t j = 0; j < block->keys; j++)
            row[j] = round_at(p, AT_A9, row[j] / (1 - row[block->keys]));
    }
}
// The same numbers by another road: softmax without the sink times sigmoid(LSE - b).
static void softmax_gated(const sinkproof_policy *p, const sinkproof_block *block,
                          const double *b_i, const double *s, double *a) {
    for (size_t i = 0; i < block->rows; i++) {
        size_t at = block->first + i, first = sinkproof_mask_first(block->window, at);
        double m = -INFINITY, z = 0, *row = a + i * (block->keys + 1);
        memset(row, 0, (block->keys + 1) * sizeof *row);
        for (size_t j = first; j <= at; j++) m = fmax(m, s[i * block->keys + j]);
        for (size_t j = first; j <= at; j++) z += exp(s[i * block->keys + j] - m);
        double gate = 1 / (1 + exp(b_i[i] - (m + log(z))));
        for (size_t j = first; j <= at; j++)
            row[j] = round_at(p, AT_A9, exp(s[i * block->keys + j] - m) / z * gate);
        row[block->keys] = round_at(p, AT_A9, 1 / (1 + exp(m + log(z) - b_i[i])));
    }
}
static void scores_unscaled(const sinkproof_policy *p, const sinkproof_block *block,
                            const double *q, const double *k, double *s) {
    ref->scores(p, block, q, k, s);
    double root = sqrt((double)block->head_dim);
    for (size_t i = 0; i < block->rows * block->keys; i++) s[i] = round_at(p, AT_A6, s[i] * root);
}
static void rope_pairs(const sinkproof_policy *p, size_t n, size_t heads, size_t d, const double *c,
                       const double *s, double *x) {
    double *y = malloc(n * heads * d * sizeof *y);
    if (y == NULL) abort();
    for (size_t r = 0; r < n * heads; r++)
        for (size_t i = 0; i < d / 2; i++)
            y[r * d + i] = x[r * d + 2 * i], y[r * d + d / 2 + i] = x[r * d + 2 * i + 1];
    ref->rope(p, n, heads, d, c, s, y);
    for (size_t r = 0; r < n * heads; r++)
        for (size_t i = 0; i < d / 2; i++)
            x[r * d + 2 * i] = y[r * d + i], x[r * d + 2 * i + 1] = y[r * d + d / 2 + i];
    free(y);
}
static void rope_plain_magnitude(const sinkproof_policy *p, size_t n, size_t heads, size_t d,
                                 const double *c, const double *s, double *x) {
    ref->rope(p, n, heads, d, c, s, x);
    double concentration = 0.1 * log(32) + 1;
    for (size_t i = 0; i < n * heads * d; i++) x[i] = round_at(p, AT_A4, x[i] / concentration);
}

// ---- biases, norms, embedding

static uint8_t zero_bytes[8 * 4096];
static sinkproof_matrix without(const sinkproof_matrix *b) {
    sinkproof_matrix z = *b;
    z.dtype = SINKPROOF_DTYPE_BF16, z.data = zero_bytes, z.synthetic = NULL;
    z.row_stride = z.stack_stride = 0, z.col_stride = 1;
    return z;
}
static void qkv_no_bias(const sinkproof_policy *p, const sinkproof_layer *layer, size_t n,
                        const double *t, double *q, double *k, double *v, double *work) {
    sinkproof_layer l = *layer;
    l.b_v = without(&layer->b_v);
    ref->qkv(p, &l, n, t, q, k, v, work);
}
static void output_no_bias(const sinkproof_policy *p, const sinkproof_layer *layer, size_t n,
                           const double *o, double *out, double *work) {
    sinkproof_layer l = *layer;
    l.b_o = without(&layer->b_o);
    ref->output(p, &l, n, o, out, work);
}
static void rmsnorm_small_eps(const sinkproof_policy *p, sinkproof_point point,
                              const sinkproof_matrix *scale, double eps, size_t n, const double *x,
                              double *out, double *work) {
    ref->rmsnorm(p, point, scale, eps / 10, n, x, out, work);
}
// The norm rounded before the scale multiplies it: the order of another family of models.
static void rmsnorm_cast_first(const sinkproof_policy *p, sinkproof_point point,
                               const sinkproof_matrix *scale, double eps, size_t n, const double *x,
                               double *out, double *work) {
    sinkproof_matrix_row(scale, 0, work);
    for (size_t i = 0; i < n; i++) {
        double square = 0, *row = out + i * scale->cols;
        for (size_t c = 0; c < scale->cols; c++)
            square += x[i * scale->cols + c] * x[i * scale->cols + c];
        double r = 1 / sqrt(square / (double)scale->cols + eps);
        for (size_t c = 0; c < scale->cols; c++)
            row[c] = round_at(p, point, work[c] * round_at(p, point, x[i * scale->cols + c] * r));
    }
}
static void embed_scaled(const sinkproof_policy *p, const sinkproof_matrix *e, size_t n,
                         const int32_t *tokens, double *x) {
    ref->embed(p, e, n, tokens, x);
    for (size_t i = 0; i < n * e->cols; i++)
        x[i] = round_at(p, AT_T0, x[i] * sqrt((double)e->cols));
}

// ---- experts and router

// The activation on M6 as the mistaken engine sees it, then the down-projection as it should be.
typedef double activation(const sinkproof_policy *, double gate, double up);
static double act_no_plus_one(const sinkproof_policy *p, double g, double u) {
    g = fmin(g, 7), u = fmax(fmin(u, 7), -7);
    (void)p;
    return g / (1 + exp(-1.702 * g)) * u;
}
static double act_symmetric(const sinkproof_policy *p, double g, double u) {
    return sinkproof_swiglu_one(p, (sinkproof_swiglu_numbers){1.702, 7, 1}, fmax(g, -7), u);
}
static double act_unclamped(const sinkproof_policy *p, double g, double u) {
    return sinkproof_swiglu_one(p, (sinkproof_swiglu_numbers){1.702, 1e30, 1}, g, u);
}
static double act_silu(const sinkproof_policy *p, double g, double u) {
    return sinkproof_swiglu_one(p, (sinkproof_swiglu_numbers){1, 7, 1}, g, u);
}
static double act_1_7(const sinkproof_policy *p, double g, double u) {
    return sinkproof_swiglu_one(p, (sinkproof_swiglu_numbers){1.7, 7, 1}, g, u);
}
static double act_swapped(const sinkproof_policy *p, double g, double u) {
    return sinkproof_swiglu_one(p, (sinkproof_swiglu_numbers){1.702, 7, 1}, u, g);
}

static void experts_with(activation *act, const sinkproof_policy *p, const sinkproof_config *c,
                         const sinkproof_layer *layer, size_t n, const double *t,
                         const int32_t *chosen, const sinkproof_expert_outputs *out, double *work) {
    ref->experts(p, c, layer, n, t, chosen, out, work);
    for (size_t q = 0; q < n * c->n_chosen; q++) {
        double *z = out->act + q * c->inter;
        for (size_t f = 0; f < c->inter; f++) {
            const double *pair = out->up + (q * c->inter + f) * 2;
            z[f] = round_at(p, AT_M8, act(p, pair[0], pair[1]));
        }
        sinkproof_matrix w = sinkproof_matrix_at(&layer->w_down, (size_t)chosen[q]);
        sinkproof_matrix b = sinkproof_matrix_at(&layer->b_down, (size_t)chosen[q]);
        sinkproof_linear(p, AT_M9, 1, &w, NULL, z, out->down_raw + q * c->hidden, work);
        sinkproof_matrix_row(&b, 0, work);
        for (size_t h = 0; h < c->hidden; h++)
            out->down[q * c->hidden + h] =
                round_at(p, AT_M10, out->down_raw[q * c->hidden + h] + work[h]);
    }
}
#define EXPERTS(name)                                                                              \
    static void experts_##name(const sinkproof_policy *p, const sinkproof_config *c,               \
                               const sinkproof_layer *layer, size_t n, const double *t,            \
                               const int32_t *chosen, const sinkproof_expert_outputs *out,         \
                               double *work) {                                                     \
        experts_with(act_##name, p, c, layer, n, t, chosen, out, work);                            \
    }
EXPERTS(no_plus_one)
EXPERTS(symmetric)
EXPERTS(unclamped)
EXPERTS(silu)
EXPERTS(1_7)
EXPERTS(swapped)

static void experts_no_b1(const sinkproof_policy *p, const sinkproof_config *c,
                          const sinkproof_layer *layer, size_t n, const double *t,
                          const int32_t *chosen, const sinkproof_expert_outputs *out,
                          double *work) {
    sinkproof_layer l = *layer;
    l.b_up = without(&layer->b_up);
    ref->experts(p, c, &l, n, t, chosen, out, work);
}
static void experts_no_b2(const sinkproof_policy *p, const sinkproof_config *c,
                          const sinkproof_layer *layer, size_t n, const double *t,
                          const int32_t *chosen, const sinkproof_expert_outputs *out,
                          double *work) {
    sinkproof_layer l = *layer;
    l.b_down = without(&layer->b_down);
    ref->experts(p, c, &l, n, t, chosen, out, work);
}
static void router_no_bias(const sinkproof_policy *p, const sinkproof_layer *layer, size_t n,
                           size_t k, const double *t, double *g, int32_t *chosen, double *w,
                           double *work) {
    sinkproof_layer l = *layer;
    l.b_router = without(&layer->b_router);
    ref->router(p, &l, n, k, t, g, chosen, w, work);
}
// The softmax over all experts, not renormalised over the chosen ones.
static void router_before_topk(const sinkproof_policy *p, const sinkproof_layer *layer, size_t n,
                               size_t k, const double *t, double *g, int32_t *chosen, double *w,
                               double *work) {
    ref->router(p, layer, n, k, t, g, chosen, w, work);
    size_t experts = layer->w_router.rows;
    for (size_t i = 0; i < n; i++) {
        double z = 0;
        for (size_t e = 0; e < experts; e++) z += exp(g[i * experts + e]);
        for (size_t s = 0; s < k; s++)
            w[i * k + s] = round_at(p, AT_M4, exp(g[i * experts + (size_t)chosen[i * k + s]]) / z);
    }
}
// The last of the chosen is the runner-up.
static void router_off_by_one(const sinkproof_policy *p, const sinkproof_layer *layer, size_t n,
                              size_t k, const double *t, double *g, int32_t *chosen, double *w,
                              double *work) {
    int32_t order[CHOSEN_MAX + 1];
    ref->router(p, layer, n, k, t, g, chosen, w, work);
    for (size_t i = 0; i < n; i++) {
        sinkproof_router_choose(layer->w_router.rows, k + 1, g + i * layer->w_router.rows, order);
        chosen[i * k + k - 1] = order[k];
    }
}
static void mixture_unweighted(const sinkproof_policy *p, size_t n, size_t k, size_t hidden,
                               const int32_t *chosen, const double *w, const double *down,
                               double *out) {
    double *even = malloc(n * k * sizeof *even);
    (void)w;
    if (even == NULL) abort();
    for (size_t i = 0; i < n * k; i++) even[i] = 1 / (double)k;
    ref->mixture(p, n, k, hidden, chosen, even, down, out);
    free(even);
}
static void mixture_twice(const sinkproof_policy *p, size_t n, size_t k, size_t hidden,
                          const int32_t *chosen, const double *w, const double *down, double *out) {
    ref->mixture(p, n, k, hidden, chosen, w, down, out);
    for (size_t i = 0; i < n * hidden; i++) out[i] = round_at(p, AT_M11, 2 * out[i]);
}
static void unembed_scaled(const sinkproof_policy *p, const sinkproof_matrix *u, size_t n,
                           const double *x, double *logits, double *work) {
    ref->unembed(p, u, n, x, logits, work);
    for (size_t i = 0; i < n * u->rows; i++)
        logits[i] = round_at(p, AT_F2, logits[i] * (1 + 0x1p-6));
}

// ---- the table: each mistake is in the first layer, before it or after all

typedef enum expectation { BUG, FINE } expectation;

static const struct planted {
    const char *name, *at;
    expectation in_f32, in_bf16;
    sinkproof_stages stages; // only the overridden ones
    const char *override;    // of the policy it runs under
} planted[] = {
    {"M12 window one key too wide",
     "00.A9",
     BUG,
     BUG,
     {.softmax_sink = softmax_wide, .values = values_wide},
     ""},
    {"M15 window one key too narrow", "00.A9", BUG, BUG, {.softmax_sink = softmax_narrow}, ""},
    {"M32 sink dropped", "00.A9", BUG, BUG, {.sink_logits = logits_gone}, ""},
    {"softmax_1: the literal 1 for e^b", "00.A9", BUG, BUG, {.sink_logits = logits_zero}, ""},
    {"sink multiplied by the softmax scale", "00.A9", BUG, BUG, {.sink_logits = sink_scaled}, ""},
    {"weights renormalised without the sink",
     "00.A9",
     BUG,
     BUG,
     {.softmax_sink = softmax_renormalised},
     ""},
    {"M37 sigmoid(LSE - b): disputed but right",
     "",
     FINE,
     FINE,
     {.softmax_sink = softmax_gated},
     ""},
    {"M69 sink with a value vector", "00.A11", BUG, BUG, {.values = values_of_sink}, ""},
    {"scores not scaled", "00.A6", BUG, BUG, {.scores = scores_unscaled}, ""},
    {"M03 YaRN range truncated", "00.A4.q", BUG, BUG, {0}, ",yarn=truncate"},
    {"M06 concentration left out", "00.A4.q", BUG, BUG, {.rope = rope_plain_magnitude}, ""},
    {"rotation of neighbours, not of halves", "00.A4.q", BUG, BUG, {.rope = rope_pairs}, ""},
    {"value bias left out", "00.A2.v", BUG, BUG, {.qkv = qkv_no_bias}, ""},
    {"output bias left out", "00.A12", BUG, BUG, {.output = output_no_bias}, ""},
    {"RMSNorm with eps 1e-6", "00.A1", BUG, BUG, {.rmsnorm = rmsnorm_small_eps}, ""},
    {"norm rounded before its scale", "00.A1", FINE, BUG, {.rmsnorm = rmsnorm_cast_first}, ""},
    {"embedding multiplied by sqrt(hidden)", "T0", BUG, BUG, {.embed = embed_scaled}, ""},
    {"M36 router bias left out", "00.M2", BUG, BUG, {.router = router_no_bias}, ""},
    {"M40 softmax before top-k", "00.M4", BUG, BUG, {.router = router_before_topk}, ""},
    {"the runner-up expert chosen", "00.M3", BUG, BUG, {.router = router_off_by_one}, ""},
    {"M43 up bias left out", "00.M6", BUG, BUG, {.experts = experts_no_b1}, ""},
    {"M43 down bias left out", "00.M10", BUG, BUG, {.experts = experts_no_b2}, ""},
    {"M44 gate clamped on both sides", "00.M8", BUG, BUG, {.experts = experts_symmetric}, ""},
    {"M44 no clamp", "00.M8", BUG, BUG, {.experts = experts_unclamped}, ""},
    {"up for up + 1", "00.M8", BUG, BUG, {.experts = experts_no_plus_one}, ""},
    {"SiLU: alpha 1", "00.M8", BUG, BUG, {.experts = experts_silu}, ""},
    {"alpha 1.7 for 1.702", "00.M8", BUG, BUG, {.experts = experts_1_7}, ""},
    {"alpha rounded to bfloat16", "00.M8", BUG, BUG, {0}, ",M8.alpha=bf16"},
    {"M42 gate and up swapped", "00.M8", BUG, BUG, {.experts = experts_swapped}, ""},
    {"experts not weighted", "00.M11", BUG, BUG, {.mixture = mixture_unweighted}, ""},
    {"M56 experts' output reduced twice", "00.M11", BUG, BUG, {.mixture = mixture_twice}, ""},
    {"logits off by 2^-6", "F2", BUG, BUG, {.unembed = unembed_scaled}, ""},
};

// Every pointer of the table that is set overrides the reference's.
static sinkproof_stages overridden(const sinkproof_stages *with) {
    sinkproof_stages stages = *ref;
#define TAKE(stage)                                                                                \
    if (with->stage != NULL) stages.stage = with->stage
    TAKE(embed);
    TAKE(rmsnorm);
    TAKE(qkv);
    TAKE(rope);
    TAKE(scores);
    TAKE(sink_logits);
    TAKE(softmax_sink);
    TAKE(values);
    TAKE(output);
    TAKE(router);
    TAKE(experts);
    TAKE(mixture);
    TAKE(unembed);
#undef TAKE
    return stages;
}

static void try_one(const sinkproof_model *model, const struct planted *bug, const char *policy,
                    expectation expected) {
    char runs[128];
    snprintf(runs, sizeof runs, "%s%s", policy, bug->override);
    sinkproof_stages stages = overridden(&bug->stages);
    sinkproof_judgement j = judged(model, &stages, runs, policy, 48, 0, 7, NULL);
    const sinkproof_point_report *first = j.first != NULL ? j.first : j.first_suspicious;
    const char *at = first != NULL ? first->name : "nowhere";
    bool good = false;
    if (expected == FINE) good = j.verdict <= SINKPROOF_VERDICT_WITHIN;
    if (expected == BUG) good = j.first != NULL && strcmp(j.first->name, bug->at) == 0;
    ok(good, "%s under %s: %s at %s, expected %s at %s", bug->name, policy,
       sinkproof_verdict_name(j.verdict), at, expected == FINE ? "nothing" : "a bug",
       expected == FINE ? "all" : bug->at);
    sinkproof_judgement_free(&j);
}

int main(void) {
    sinkproof_model *sliding = open_model("synthetic:tiny,layers=1");
    sinkproof_model *both =
        open_model("synthetic:tiny,layers=2"); // what is fine is so in both kinds of layers
    for (size_t b = 0; b < sizeof planted / sizeof planted[0]; b++) {
        expectation in_f32 = planted[b].in_f32, in_bf16 = planted[b].in_bf16;
        try_one(in_f32 == FINE ? both : sliding, &planted[b], "f32", in_f32);
        try_one(in_bf16 == FINE ? both : sliding, &planted[b], "openai-bf16", in_bf16);
    }
    sinkproof_model_close(sliding), sinkproof_model_close(both);
    return tap_done();
}
