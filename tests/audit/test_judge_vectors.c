// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The published torch reference, judged (tests/vectors/openai-torch): float32 honest, bfloat16
// honest but for one constant, 1.702 rounded to bfloat16 by that torch's kernels. And the sets
// must be sharp: at the points of attention nearly every one is a single value.
#include "audit/judge/judge.h"
#include "proofs/bounds/worst.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <string.h>

static const char *const folder = "tests/vectors/openai-torch";

static sinkproof_judgement judge(const char *model_name, const char *dtype, const char *declared) {
    sinkproof_error error = {{0}};
    sinkproof_model *model = NULL;
    sinkproof_trace *trace = NULL;
    sinkproof_policy policy;
    sinkproof_judgement j = {0};
    char model_path[128], path[160];
    snprintf(model_path, sizeof model_path, "%s/%s", folder, model_name);
    snprintf(path, sizeof path, "%s/trace-%s.safetensors", model_path, dtype);
    if (!sinkproof_policy_parse(declared, &policy, &error) ||
        !sinkproof_model_open(model_path, &model, &error) ||
        !sinkproof_trace_open(path, sinkproof_model_config(model), &trace, &error) ||
        !sinkproof_judge(model, trace, &policy,
                         &(sinkproof_judge_options){.rate = 1e-9, .end_to_end = true}, &j, &error))
        ok(false, "%s", error.text);
    if (trace != NULL) sinkproof_trace_close(trace);
    if (model != NULL) sinkproof_model_close(model);
    return j;
}

// The share of sets that are a single value over all layers of one point.
static double single_valued(const sinkproof_judgement *j, sinkproof_trace_point point) {
    size_t several = 0, elements = 0;
    for (size_t i = 0; i < j->n_reports; i++)
        if (j->reports[i].point == point)
            several += j->reports[i].several, elements += j->reports[i].elements;
    return elements > 0 ? 1 - (double)several / (double)elements : 0;
}

static void honest(const char *model, const char *dtype, const char *policy) {
    sinkproof_judgement j = judge(model, dtype, policy);
    double share = 0;
    for (size_t i = 0; i < j.n_reports; i++)
        share = sinkproof_keep_worst(share, j.reports[i].share_worst);
    ok(j.n_reports > 0 && j.verdict <= SINKPROOF_VERDICT_WITHIN,
       "bound.linear %s %s under %s: %s at all %zu points worst=%.3g bound=1", model, dtype, policy,
       sinkproof_verdict_name(j.verdict), j.n_reports, share);
    sinkproof_judgement_free(&j);
}

static double to_bf16(double x) { // to nearest, ties to even, by adding and cutting float32's bits
    union {
        float value;
        uint32_t bits;
    } b = {.value = (float)x};
    b.bits = (b.bits + 0x7fff + (b.bits >> 16 & 1)) & 0xffff0000;
    return b.value;
}

// openai-bf16's M8 of one gate and up, its five roundings written out, with 1.702 in float32; the
// sigmoid off by `part`, which stands for the float32 arithmetic inside.
static double activation(double gate, double up, double part) {
    double g = gate < 7 ? gate : 7, u = up > 7 ? 7 : up > -7 ? up : -7;
    double sigmoid = to_bf16((1 + part) / (1 + exp(-to_bf16((double)1.702f * g))));
    return to_bf16(to_bf16(g * sigmoid) * to_bf16(u + 1));
}

// Elements of the trace's M8 that no such activation of its own M6 gives: between the two ends of a
// sigmoid that is off by 2^-22, four units of float32, whose neighbours in bf16 lie 2^-9 apart.
static size_t activations_outside(const char *model_name) {
    sinkproof_error error = {{0}};
    sinkproof_safetensors *file = NULL;
    char path[160], m6[8], m8[8];
    snprintf(path, sizeof path, "%s/%s/trace-bf16.safetensors", folder, model_name);
    if (!sinkproof_safetensors_open(path, &file, &error)) {
        ok(false, "%s", error.text);
        return 0;
    }
    size_t outside = 0;
    for (unsigned layer = 0; layer < 100; layer++) {
        snprintf(m6, sizeof m6, "%02u.M6", layer);
        snprintf(m8, sizeof m8, "%02u.M8", layer);
        const sinkproof_tensor *gate_up = sinkproof_safetensors_find(file, m6);
        const sinkproof_tensor *act = sinkproof_safetensors_find(file, m8);
        if (gate_up == NULL || act == NULL) break;
        for (size_t i = 0; i < sinkproof_tensor_elements(act); i++) {
            double gate = sinkproof_tensor_value(gate_up, 2 * i);
            double up = sinkproof_tensor_value(gate_up, 2 * i + 1);
            double v = sinkproof_tensor_value(act, i), a = activation(gate, up, -0x1p-22),
                   b = activation(gate, up, 0x1p-22);
            outside += !((a <= v && v <= b) || (b <= v && v <= a));
        }
    }
    sinkproof_safetensors_close(file);
    return outside;
}

static void convicted(const char *model) {
    sinkproof_judgement j = judge(model, "bf16", "openai-bf16");
    size_t expected_outside = activations_outside(model);
    size_t outside = 0;
    bool only_m8 = true, all_m8 = true;
    for (size_t i = 0; i < j.n_reports; i++) {
        const sinkproof_point_report *r = &j.reports[i];
        outside += r->outside;
        bool here = r->point == TRACE_M8, bad = r->verdict > SINKPROOF_VERDICT_WITHIN;
        only_m8 = only_m8 && (here || !bad);
        all_m8 = all_m8 && (!here || r->verdict == SINKPROOF_VERDICT_BUG);
    }
    ok(j.first != NULL && strcmp(j.first->name, "00.M8") == 0, "%s bf16: first divergence at %s",
       model, j.first != NULL ? j.first->name : "none");
    ok(only_m8 && all_m8, "%s bf16: every M8 point is convicted, and nothing else", model);
    ok(outside == expected_outside && outside > 0,
       "bound.swiglu %s bf16: %zu elements outside, counted again from M6 and M8 alone %zu", model,
       outside, expected_outside);
    static const struct {
        sinkproof_trace_point point;
        const char *id;
    } sharp[] = {{TRACE_A1, "bound.rmsnorm"}, {TRACE_A4_Q, "bound.rope"},
                 {TRACE_A4_K, "bound.rope"},  {TRACE_A9, "bound.softmax-sink"},
                 {TRACE_A11, "bound.linear"}, {TRACE_A13, "bound.linear"}};
    for (size_t p = 0; p < sizeof sharp / sizeof sharp[0]; p++) {
        double share = single_valued(&j, sharp[p].point);
        ok(share >= 0.98, "%s %s %s: %.4f of the sets are single values, required 0.98",
           sharp[p].id, model, sinkproof_trace_point_name(sharp[p].point), share);
    }
    sinkproof_judgement_free(&j);
}

int main(void) {
    honest("small", "f32", "f32");
    honest("window", "f32", "f32");
    honest("small", "bf16", "openai-bf16,M8.alpha=bf16");
    honest("window", "bf16", "openai-bf16,M8.alpha=bf16");
    convicted("small");
    convicted("window");
    return tap_done();
}
