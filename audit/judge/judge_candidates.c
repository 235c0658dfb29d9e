// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Finds the formats that hold the numbers of a trace, and from them the policies that its engine
// may have followed.
#include "audit/judge/judge_candidates.h"

#include "audit/trace/trace_points.h"

#include <math.h>
#include <string.h>

typedef bool point_filter(sinkproof_trace_point point);

static bool is_value_point(sinkproof_trace_point point) {
    return !sinkproof_trace_point_is_index(point);
}
// A sum of the residual stream: any of its points but the embedding.
static bool is_residual_sum(sinkproof_trace_point point) {
    return sinkproof_trace_point_is_stream(point) && point != TRACE_T0;
}

// Of the tensors of some points: how many there are, how many are stored in `dtype`, and how many
// have all their values in `format`.
typedef struct census {
    size_t tensors, stored, fitting;
} census;

static bool tensor_fits_format(const sinkproof_tensor *tensor, sinkproof_format format) {
    size_t n = sinkproof_tensor_elements(tensor);
    for (size_t i = 0; i < n; i++) {
        double x = sinkproof_tensor_value(tensor, i);
        if (sinkproof_round(format, x) != x && !isnan(x)) return false;
    }
    return true;
}

static census count_tensors(const sinkproof_trace *trace, const sinkproof_config *config,
                            point_filter *among, sinkproof_dtype dtype, sinkproof_format format) {
    census c = {0, 0, 0};
    for (int p = 0; p < TRACE_POINTS; p++) {
        sinkproof_trace_point point = (sinkproof_trace_point)p;
        for (size_t l = 0; among(point) && sinkproof_trace_point_exists(config, point, l); l++) {
            const sinkproof_tensor *t = sinkproof_trace_find(trace, point, l);
            if (t == NULL) continue;
            c.tensors++;
            c.stored += t->dtype == dtype;
            if (c.fitting + 1 == c.tensors)
                c.fitting += tensor_fits_format(t, format); // until a misfit
        }
    }
    return c;
}

static bool all_values_fit(const sinkproof_trace *trace, const sinkproof_config *config,
                           point_filter *among, sinkproof_format format) {
    census c = count_tensors(trace, config, among, SINKPROOF_DTYPE_F32, format);
    return c.tensors > 0 && c.fitting == c.tensors;
}

static bool any_tensor_stored_as(const sinkproof_trace *trace, const sinkproof_config *config,
                                 point_filter *among, sinkproof_dtype dtype) {
    return count_tensors(trace, config, among, dtype, SINKPROOF_REAL).stored > 0;
}

// The narrower format that holds every value of a trace stored in float32 or float64; or NULL.
static const char *narrowest_exact_format(const sinkproof_trace *trace,
                                          const sinkproof_config *config, bool f64) {
    if (all_values_fit(trace, config, is_value_point, SINKPROOF_BF16)) return "bf16";
    if (all_values_fit(trace, config, is_value_point, SINKPROOF_F16)) return "f16";
    return f64 && all_values_fit(trace, config, is_value_point, SINKPROOF_F32) ? "f32" : NULL;
}

// The policies that auto tries, narrowest first: those of the trace's stored format, and before
// them those of a narrower format that holds all its values, or the sums of the residual, or the
// operands of the weights. *narrower names the format that holds every value.
//
// In bf16-operands, operands are bf16 and the residual is float32; a trace without a sum of the
// residual may also be of that kind. openai-bf16 and hf-bf16 are of engines of GPT-OSS.
static const char *const *candidates_in_bf16(const sinkproof_trace *trace,
                                             const sinkproof_config *config) {
    static const char *const sums_f32[] = {"bf16-operands", "openai-bf16", "hf-bf16", "bf16", NULL};
    static const char *const no_sums[] = {"openai-bf16", "hf-bf16", "bf16-operands", "bf16", NULL};
    static const char *const llama[] = {"bf16-operands", "hf-llama-bf16", "bf16", NULL};
    static const char *const llama_no_sums[] = {"hf-llama-bf16", "bf16-operands", "bf16", NULL};
    bool is_llama = config->architecture == SINKPROOF_LLAMA;
    const char *const *all = is_llama ? llama : sums_f32;
    if (any_tensor_stored_as(trace, config, sinkproof_trace_point_is_stream, SINKPROOF_DTYPE_F32))
        return all;
    if (any_tensor_stored_as(trace, config, is_residual_sum, SINKPROOF_DTYPE_BF16)) return all + 1;
    return is_llama ? llama_no_sums : no_sums;
}

const char *const *sinkproof_candidates_for(const sinkproof_trace *trace,
                                            const sinkproof_config *config, const char **narrower) {
    static const char *const in_f16[] = {"f16", NULL};
    // real-f64 is left out where nothing is stored as float64. Where real-f64 does not fit, the
    // engine may have computed in float32 and stored some numbers, or all of them, in a wider
    // format.
    static const char *const in_f32[] = {"real-f64", "f32", "bf16-operands", NULL};
    static const char *const bf16_in_f32[] = {"real-f64",      "openai-bf16", "hf-bf16", "bf16",
                                              "bf16-operands", "f32",         NULL};
    static const char *const llama_in_f32[] = {"real-f64",      "hf-llama-bf16", "bf16",
                                               "bf16-operands", "f32",           NULL};
    static const char *const operands_in_f32[] = {"real-f64", "bf16-operands", "bf16", "f32", NULL};
    static const char *const f16_in_f32[] = {"real-f64", "f16", "f32", NULL};
    bool f64 = any_tensor_stored_as(trace, config, is_value_point, SINKPROOF_DTYPE_F64);
    *narrower = NULL;
    if (any_tensor_stored_as(trace, config, is_value_point, SINKPROOF_DTYPE_BF16))
        return candidates_in_bf16(trace, config);
    if (any_tensor_stored_as(trace, config, is_value_point, SINKPROOF_DTYPE_F16)) return in_f16;
    *narrower = narrowest_exact_format(trace, config, f64);
    if (all_values_fit(trace, config, is_value_point, SINKPROOF_BF16) ||
        all_values_fit(trace, config, is_residual_sum, SINKPROOF_BF16))
        return (config->architecture == SINKPROOF_LLAMA ? llama_in_f32 : bf16_in_f32) + !f64;
    if (all_values_fit(trace, config, sinkproof_trace_point_is_operand, SINKPROOF_BF16))
        return operands_in_f32 + !f64;
    if (all_values_fit(trace, config, is_value_point, SINKPROOF_F16) ||
        all_values_fit(trace, config, is_residual_sum, SINKPROOF_F16) ||
        all_values_fit(trace, config, sinkproof_trace_point_is_operand, SINKPROOF_F16))
        return f16_in_f32 + !f64;
    return in_f32 + !f64;
}

// Policies of single engines, with freedoms that no generic policy has: a norm reads the residual's
// sum before its rounding, or a vector is scaled before it is rotated. Those of llama.cpp contain a
// known mistake of YaRN, and are tried where the rotation has none. Where float32 numbers show no
// narrower format, bf16 and f16 are tried too: they leave open which values stay in float32, and an
// engine may have saved only those.
const char *const *sinkproof_candidates_at_last(const char *const *names,
                                                const sinkproof_config *config) {
    static const char *const in_bf16[] = {"vllm-bf16", "mlx", NULL};
    static const char *const in_f16[] = {"onnxruntime", NULL};
    static const char *const llama_in_f32[] = {
        "llama-cpp", "llama-cpp-flash", "llama-cpp-flash,A5.q=real,A11.acc=real", "bf16", "f16",
        NULL};
    const char *const *in_f32 = llama_in_f32 + (config->architecture == SINKPROOF_LLAMA ? 0 : 3);
    for (; *names != NULL; names++) {
        if (strcmp(*names, "bf16") == 0) return in_bf16;
        if (strcmp(*names, "f16") == 0) return in_f16;
    }
    return in_f32;
}
