// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Whole runs of engines that round operands, products and running sums, judged like a stranger's:
// under the policy that says so nothing is outside and nothing suspicious, under the one that does
// not they are convicted, and a mistake beside the freedom is convicted still.
#include "tests/shared/judged.h"
#include "tests/shared/opened.h"

enum { TOKENS = 12 };

static const struct freedom {
    const char *runs, *without, *ids;
    sinkproof_trace_point first; // where the policy without the freedom convicts
} freedoms[] = {
    {"f32,A2.in=bf16", "f32", "bound.operands", TRACE_A2_Q},
    {"f32,A12.in=f16,M2.in=bf16,F2.in=bf16", "f32", "bound.operands", TRACE_A12},
    {"f32,A5.q=f16,A5.k=f16,A11.weights=f16,A11.v=f16", "f32", "bound.operands", TRACE_A6},
    {"f32,M5.in=q8_0,M9.in=q8_0", "f32", "bound.q8", TRACE_M5},
    {"llama-cpp", "f32,yarn=truncate", "bound.operands bound.q8", TRACE_A2_Q},
    {"f32,A2.in=tf32,M5.in=tf32-cut,A5.q=tf32-cut,A5.k=tf32,A9.unnorm=tf32-cut,weights=tf32", "f32",
     "bound.operands", TRACE_A2_Q},
    {"bf16,A5.k=e4m3,A11.v=e4m3", "bf16", "bound.scaled", TRACE_A11},
    {"bf16,A5.k=e4m3(token),A11.v=int8(token-head),A5.q=e4m3(0.03)", "bf16", "bound.scaled",
     TRACE_A11},
    {"bf16,A2.in=e4m3(token),M5.in=mxfp8,M9.in=nvfp4(token),F2.in=int8(token)", "bf16",
     "bound.scaled", TRACE_A2_Q},
    {"f32,A12.in=nvfp4,M2.in=mxfp8-up,A11.weights=e4m3(0.002),F2.in=e5m2", "f32", "bound.scaled",
     TRACE_A12},
    {"openai-bf16,A2.product=bf16,A12.product=bf16,M2.product=bf16", "openai-bf16",
     "bound.operands", TRACE_A2_Q},
    {"openai-bf16,M5.term=bf16,M5.acc=bf16", "openai-bf16", "bound.accumulator", TRACE_M5},
    {"f32,A11.acc=f16", "f32", "bound.accumulator", TRACE_A11},
    {"f32,A5.acc=f16,A12.acc=bf16,M2.acc=bf16,F2.acc=f16", "f32", "bound.accumulator", TRACE_A6},
};
enum { FREEDOMS = sizeof freedoms / sizeof freedoms[0] };

static const char *const kept[] = {NULL, "T0,A13,M2,M3,M12,F1,F2", "A4,A11,A13,M1,M2,M3,M8,M12"};

static sinkproof_model *tiny(int seed, int layers) {
    char spec[64];
    snprintf(spec, sizeof spec, "synthetic:tiny,seed=%d,layers=%d", seed, layers);
    return open_model(spec);
}

static void honest(const struct freedom *f) {
    for (size_t k = 0; k < 3; k++) {
        sinkproof_model *model = tiny((int)k + 1, 2);
        char what[200];
        snprintf(what, sizeof what, "%s %s%s%s", f->ids, f->runs, kept[k] ? " keeping " : "",
                 kept[k] ? kept[k] : "");
        sinkproof_judgement j = judged(model, &sinkproof_reference_stages, f->runs, f->runs, TOKENS,
                                       k == 1 ? 7 : 0, k, kept[k]);
        ok_within(&j, what, TOKENS);
        sinkproof_model_close(model);
    }
}

static void convicted_without(const sinkproof_model *model, const struct freedom *f) {
    sinkproof_judgement j =
        judged(model, &sinkproof_reference_stages, f->runs, f->without, TOKENS, 0, 5, NULL);
    size_t outside = 0, elements = 0;
    for (size_t i = 0; i < j.n_reports; i++)
        if (j.reports[i].point == f->first)
            outside += j.reports[i].outside, elements += j.reports[i].elements;
    ok(j.verdict == SINKPROOF_VERDICT_BUG && j.first != NULL && outside > 0,
       "%s %s is convicted under %s: %zu of %zu outside at %s", f->ids, f->runs, f->without,
       outside, elements, sinkproof_trace_point_name(f->first));
    sinkproof_judgement_free(&j);
}

// ---- mistakes beside the freedom
// -----------------------------------------------------------------

static void swiglu_rounded(const sinkproof_policy *policy, const sinkproof_config *config,
                           const sinkproof_layer *layer, size_t n, const double *t_nc,
                           const int32_t *chosen_nk, const sinkproof_expert_outputs *out,
                           double *work) {
    sinkproof_policy wrong = *policy; // 1.702 rounded to bfloat16
    wrong.at[AT_M8_ALPHA] = (sinkproof_rounding){.format = SINKPROOF_BF16, .optional = false};
    stage_experts(&wrong, config, layer, n, t_nc, chosen_nk, out, work);
}

static void no_bias(const sinkproof_policy *policy, const sinkproof_layer *layer, size_t n,
                    const double *t_nc, double *q_nhd, double *k_ngd, double *v_ngd, double *work) {
    stage_qkv(policy, layer, n, t_nc, q_nhd, k_ngd, v_ngd, work);
    sinkproof_linear(policy, AT_A2, n, &layer->w_v, NULL, t_nc, v_ngd, work);
}

static void sink_as_value(const sinkproof_policy *policy, const sinkproof_block *block,
                          const double *alpha_ij, const double *v_jd, double *o_id) {
    sinkproof_values(policy, block, alpha_ij, v_jd, o_id);
    for (size_t i = 0; i < block->rows; i++) // the sink's weight falls to the first key
        for (size_t d = 0; d < block->head_dim; d++)
            o_id[i * block->q_stride + d] +=
                alpha_ij[i * (block->keys + 1) + block->keys] * v_jd[d];
}

static void mistakes(const sinkproof_model *model, const struct freedom *f) {
    sinkproof_stages rounded = sinkproof_reference_stages, unbiased = rounded, sunk = rounded;
    rounded.experts = swiglu_rounded, unbiased.qkv = no_bias, sunk.values = sink_as_value;
    const struct mistake {
        const char *name;
        const sinkproof_stages *stages;
        sinkproof_trace_point at;
    } made[] = {{"a rounded 1.702", &rounded, TRACE_M8},
                {"no bias of the values", &unbiased, TRACE_A2_V},
                {"the sink as a value", &sunk, TRACE_A11}};
    for (size_t m = 0; m < 3; m++) {
        sinkproof_judgement j = judged(model, made[m].stages, f->runs, f->runs, TOKENS, 0, 6, NULL);
        ok(j.verdict == SINKPROOF_VERDICT_BUG && j.first != NULL && j.first->point == made[m].at,
           "%s %s: %s is convicted at %s", f->ids, f->runs, made[m].name,
           j.first != NULL ? j.first->name : "nothing");
        sinkproof_judgement_free(&j);
    }
}

// ---- flash attention as llama.cpp computes a query
// ------------------------------------------------

static float to_f16(float x) {
    return (float)sinkproof_round(SINKPROOF_F16, (double)x);
}

// Scaled.
static float score(size_t n, const double *q_d, const double *k_d) {
    float sum_l[8] = {0};
    for (size_t d = 0; d < n; d++) sum_l[d % 8] = fmaf((float)q_d[d], (float)k_d[d], sum_l[d % 8]);
    for (size_t lanes = 4; lanes > 0; lanes /= 2)
        for (size_t l = 0; l < lanes; l++) sum_l[l] += sum_l[l + lanes];
    return sum_l[0] * (1 / sqrtf((float)n));
}

static void flash_scores(const sinkproof_policy *policy, const sinkproof_block *block,
                         const double *q_id, const double *k_jd, double *s_ij) {
    for (size_t i = 0; i < block->rows; i++)
        for (size_t j = 0; j < block->keys; j++)
            s_ij[i * block->keys + j] =
                round_at(policy, AT_A6,
                         (double)score(block->head_dim, q_id + i * block->q_stride,
                                       k_jd + j * block->kv_stride));
}

// Exponentials against the running maximum, the values in a float16 sum that is rescaled at each
// new one; the sink joins at the end.
static void flash(const sinkproof_policy *policy, const sinkproof_block *block, const double *b_i,
                  const double *q_id, const double *k_jd, const double *v_jd, double *o_id) {
    size_t dim = block->head_dim;
    for (size_t i = 0; i < block->rows; i++) {
        float sum_d[64] = {0}, top = -INFINITY, z = 0, b = (float)b_i[i];
        size_t last = block->first + i;
        for (size_t j = sinkproof_mask_first(block->window, last); j <= last; j++) {
            float s = score(dim, q_id + i * block->q_stride, k_jd + j * block->kv_stride);
            float before = s > top ? expf(top - s) : 1;
            top = fmaxf(top, s), z *= before;
            float e = expf(s - top);
            z += e;
            for (size_t d = 0; d < dim; d++) {
                float sum = before == 1 ? sum_d[d] : to_f16(sum_d[d] * before);
                sum_d[d] = to_f16(fmaf((float)v_jd[j * block->kv_stride + d], e, sum));
            }
        }
        float after = b > top ? expf(top - b) : 1;
        z = b > top ? z * after + 1 : z + expf(b - top);
        for (size_t d = 0; d < dim; d++)
            o_id[i * block->q_stride + d] =
                round_at(policy, AT_A11, (double)(sum_d[d] * after * (1 / z)));
    }
}

static void flash_judged(void) {
    sinkproof_stages stages = sinkproof_reference_stages;
    stages.attention = flash, stages.scores = flash_scores;
    for (int k = 0; k < 3; k++) {
        sinkproof_model *model = tiny(k + 1, 2);
        size_t n = (size_t[]){9, 33, 61}[k], outside = 0, elements = 0;
        sinkproof_judgement j = judged(model, &stages, "llama-cpp-flash", "llama-cpp-flash", n, 0,
                                       (uint64_t)k, one_pass_points);
        ok_within(&j, "bound.accumulator llama-cpp-flash by a float16 sum", n);
        j = judged(model, &stages, "llama-cpp-flash", "llama-cpp-flash,A11.acc=real", n, 0,
                   (uint64_t)k, one_pass_points);
        for (size_t i = 0; i < j.n_reports; i++)
            if (j.reports[i].point == TRACE_A11)
                outside += j.reports[i].outside, elements += j.reports[i].elements;
        ok(j.verdict == SINKPROOF_VERDICT_BUG && outside * 2 > elements,
           "bound.accumulator with a float32 sum %zu of %zu of A11 are outside", outside, elements);
        sinkproof_judgement_free(&j);
        sinkproof_model_close(model);
    }
}

int main(void) {
    sinkproof_model *model = tiny(1, 1);
    for (size_t f = 0; f < FREEDOMS; f++) {
        honest(&freedoms[f]);
        convicted_without(model, &freedoms[f]);
        mistakes(model, &freedoms[f]);
    }
    sinkproof_model_close(model);
    flash_judged();
    return tap_done();
}
