// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The known policies: one column each in a table of rounding points. Nothing is computed here; a
// new engine is a new column.
#include "ref/policy.h"

#include "ref/policy_engines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The words of the table: a format; with _OR an engine may keep more precision there (optional).
enum { OPTIONAL = 64 };
#define ABSENT  SINKPROOF_REAL
#define F32     SINKPROOF_F32
#define F16     SINKPROOF_F16
#define BF16    SINKPROOF_BF16
#define F32_OR  (SINKPROOF_F32 | OPTIONAL)
#define F16_OR  (SINKPROOF_F16 | OPTIONAL)
#define BF16_OR (SINKPROOF_BF16 | OPTIONAL)
#define AT(id)  [AT_##id]

// The roundings of each policy, and their reasons:
//
// f32            Any engine that stores float32. Inside a stage it may fuse a product into a sum
//                (A4.prod), scale the query before the dot (A5), add a bias to an accumulator (M5,
//                M9), or evaluate the activation in one fused expression (M8.*).
// bf16-operands  Any engine that keeps float32 and rounds each operand of a matrix product to bf16,
//                so that it may use an instruction for pairs of bf16 numbers: activations before a
//                linear layer, queries, keys and values. The attention's weights are multiplied
//                with the values unrounded.
// openai-bf16    gpt_oss/torch/model.py in bfloat16, point by point
//                (doc/99-bibliography.md#openai-source). The rotation's angles and the activation's
//                constant stay in float32 (a Python scalar and a bf16 tensor are combined in
//                the wider arithmetic type); the mixture is one einsum, rounded once.
// hf-bf16        transformers' GptOssForCausalLM (eager attention) in bfloat16. It differs at
//                A9.max, where the row's maximum over [scores, sink] is subtracted in bf16 before
//                the softmax; at M11.prod, where each expert's output times its weight is a bf16
//                tensor; and at M11.sum: the "eager" experts add into a bf16 tensor, expert by
//                expert in ascending order, whereas "grouped_mm" and "batched_mm" sum in float32:
//                hence optional. State M11.sum=bf16 or M11.sum=real to fix one of them.
//                GptOssRMSNorm (weight kept in float32, one cast at the end), the cosines (float32
//                times the concentration, then bf16), the router's softmax and the activation round
//                as openai-bf16 does.
// bf16           Any engine that stores bf16. Fixed: what passes through memory between two kernels
//                in every engine (the operands of the big products, the cached keys, the residual).
//                Optional: whatever a fused kernel may keep in registers. If a trace holds such a
//                point in bf16, nothing is lost: no second bf16 value lies between a number and its
//                rounding. The constant 1.702 may not be rounded to bf16: that is a known
//                mistake, not a freedom.
//                What fused kernels do is free as well: exponentials may be rounded before their
//                division instead of the weights after it, and exp may be 2^(x log2 e) with that
//                product rounded (on an H200 up to 62.7 ulp, at -87). Parts of the keys may be
//                attended to apart, and their outputs rounded before they are merged. A division
//                may be Triton's `div.full.f32` (1.93 ulp at most on an H200), or a product with a
//                reciprocal, `rcp.approx` (0.98).
//                A norm may be rounded before its weight multiplies it, as Llama, vLLM and MLX do.
// f16            Any engine that stores binary16, by the same rule.
//
// real-f64 has no column, since it rounds nothing. Points that no policy rounds (A2.term, A2.acc
// ...) have no row.
enum { OF_F32, OF_OPERANDS, OF_OPENAI, OF_HF, OF_BF16, OF_F16, COLUMNS, NO_COLUMN };

// clang-format off
static const unsigned char roundings[AT_POINTS][COLUMNS] = {
    //                  f32      operands openai   hf       bf16     f16
    AT(T0)          = {F32,     F32,     BF16,    BF16,    BF16,    F16},
    AT(A1)          = {F32,     BF16,    BF16,    BF16,    BF16,    F16},
    AT(A2_PRODUCT)  = {ABSENT,  ABSENT,  ABSENT,  ABSENT,  BF16_OR, F16_OR},
    AT(A2)          = {F32,     BF16,    BF16,    BF16,    BF16_OR, F16_OR},
    AT(A3)          = {F32,     F32,     BF16,    BF16,    BF16_OR, F16_OR},
    AT(A4_FREQ)     = {F32,     F32,     F32,     F32,     F32_OR,  F32_OR},
    AT(A4_ANGLE)    = {F32,     F32,     F32,     F32,     F32_OR,  F32_OR},
    AT(A4_COS)      = {F32,     F32,     BF16,    BF16,    BF16_OR, F16_OR},
    AT(A4_PROD)     = {F32_OR,  F32_OR,  BF16,    BF16,    BF16_OR, F16_OR},
    AT(A4)          = {F32,     BF16,    BF16,    BF16,    BF16,    F16},
    AT(A5)          = {F32_OR,  F32_OR,  BF16,    BF16,    BF16_OR, F16_OR},
    AT(A6)          = {F32,     F32,     BF16,    BF16,    BF16_OR, F16_OR},
    AT(A8)          = {F32,     F32,     BF16,    BF16,    BF16_OR, F16_OR},
    AT(A9_MAX)      = {ABSENT,  ABSENT,  ABSENT,  BF16,    BF16_OR, F16_OR},
    AT(A9)          = {F32,     F32,     BF16,    BF16,    BF16_OR, F16_OR},
    AT(A11)         = {F32,     BF16,    BF16,    BF16,    BF16,    F16},
    AT(A12_PRODUCT) = {ABSENT,  ABSENT,  ABSENT,  ABSENT,  BF16_OR, F16_OR},
    AT(A12)         = {F32,     F32,     BF16,    BF16,    BF16_OR, F16_OR},
    AT(A13)         = {F32,     F32,     BF16,    BF16,    BF16,    F16},
    AT(M1)          = {F32,     BF16,    BF16,    BF16,    BF16,    F16},
    AT(M2_PRODUCT)  = {ABSENT,  ABSENT,  ABSENT,  ABSENT,  BF16_OR, F16_OR},
    AT(M2)          = {F32,     F32,     BF16,    BF16,    BF16_OR, F16_OR},
    AT(M4)          = {F32,     F32,     BF16,    BF16,    BF16_OR, F16_OR},
    AT(M5)          = {F32_OR,  F32_OR,  BF16,    BF16,    BF16_OR, F16_OR},
    AT(M6_PRODUCT)  = {ABSENT,  ABSENT,  ABSENT,  ABSENT,  BF16_OR, F16_OR},
    AT(M6)          = {F32,     F32,     BF16,    BF16,    BF16_OR, F16_OR},
    AT(M8_ALPHA)    = {F32_OR,  F32_OR,  F32,     F32,     F32_OR,  F32_OR},
    AT(M8_SCALED)   = {F32_OR,  F32_OR,  BF16,    BF16,    BF16_OR, F16_OR},
    AT(M8_SIGMOID)  = {F32_OR,  F32_OR,  BF16,    BF16,    BF16_OR, F16_OR},
    AT(M8_SWISH)    = {F32_OR,  F32_OR,  BF16,    BF16,    BF16_OR, F16_OR},
    AT(M8_UP)       = {F32_OR,  F32_OR,  BF16,    BF16,    BF16_OR, F16_OR},
    AT(M8_SQUARE)   = {F32_OR,  F32_OR,  BF16,    BF16,    BF16_OR, F16_OR},
    AT(M8_CUBE)     = {F32_OR,  F32_OR,  BF16,    BF16,    BF16_OR, F16_OR},
    AT(M8_CUBIC)    = {F32_OR,  F32_OR,  BF16,    BF16,    BF16_OR, F16_OR},
    AT(M8_SUM)      = {F32_OR,  F32_OR,  BF16,    BF16,    BF16_OR, F16_OR},
    AT(M8_INNER)    = {F32_OR,  F32_OR,  BF16,    BF16,    BF16_OR, F16_OR},
    AT(M8_TANH)     = {F32_OR,  F32_OR,  BF16,    BF16,    BF16_OR, F16_OR},
    AT(M8_ONE)      = {F32_OR,  F32_OR,  BF16,    BF16,    BF16_OR, F16_OR},
    AT(M8)          = {F32,     BF16,    BF16,    BF16,    BF16,    F16},
    AT(M9)          = {F32_OR,  F32_OR,  BF16,    BF16,    BF16_OR, F16_OR},
    AT(M10_PRODUCT) = {ABSENT,  ABSENT,  ABSENT,  ABSENT,  BF16_OR, F16_OR},
    AT(M10)         = {F32,     F32,     BF16,    BF16,    BF16_OR, F16_OR},
    AT(M11_PROD)    = {ABSENT,  ABSENT,  ABSENT,  BF16,    BF16_OR, F16_OR},
    AT(M11_SUM)     = {ABSENT,  ABSENT,  ABSENT,  BF16_OR, BF16_OR, F16_OR},
    AT(M11)         = {F32,     F32,     BF16,    BF16,    BF16_OR, F16_OR},
    AT(M12)         = {F32,     F32,     BF16,    BF16,    BF16,    F16},
    AT(F1)          = {F32,     BF16,    BF16,    BF16,    BF16,    F16},
    AT(F2)          = {F32,     F32,     BF16,    BF16,    BF16_OR, F16_OR},
};
// clang-format on

// clang-format off
#define POLICIES(ROW)                                                          \
    ROW("real-f64",        NO_COLUMN,   .f64 = true)                           \
    ROW("f32",             OF_F32,      .exact = false)                        \
    ROW("bf16-operands",   OF_OPERANDS, .exact = false)                        \
    ROW("openai-bf16",     OF_OPENAI,   .exact = true)                         \
    ROW("hf-bf16",         OF_HF,       .exact = true)                         \
    ROW("hf-llama-bf16",   OF_HF,       .exact = true, .refined = hf_llama)    \
    ROW("llama-cpp",       OF_F32,      .exact = true, .refined = llama_cpp)   \
    ROW("llama-cpp-flash", OF_F32,      .exact = true, .refined = llama_cpp_flash) \
    ROW("mlx",             OF_BF16,     .exact = true, .refined = mlx)         \
    ROW("vllm-bf16",       OF_BF16,     .refined = vllm_bf16)                  \
    ROW("onnxruntime",     OF_F16,      .refined = onnxruntime)                \
    ROW("flash-bf16",      OF_BF16,     .refined = flash_bf16)                 \
    ROW("flash-f16",       OF_F16,      .refined = flash_f16)                  \
    ROW("bf16",            OF_BF16,     .refined = bf16)                       \
    ROW("f16",             OF_F16,      .refined = f16)
// clang-format on
#define NAME(name, ...) name,
static const char *const policy_names[] = {POLICIES(NAME) NULL};
#define KNOWN(name, column, ...) {column, __VA_ARGS__},
static const struct known_policy {
    int column;
    bool f64, exact;     // exact: the definition of every stage, unless `refined` says other
    const char *refined; // overrides of the column; NULL: none
} known[] = {POLICIES(KNOWN)};

// The first form of each stage is the definition. Generic policies admit all forms of a stage
// except `named` ones: a wide set that few engines need must be requested.
enum { FORMS = 5 };
static const struct formed_text {
    const char *name, *forms[FORMS + 1];
    bool named;
} formed_texts[SINKPROOF_FORMED_COUNT] = {
    [SINKPROOF_FORM_OF_A4_FREQ] = {"A4.freq.form", {"powers", "running-product"}, .named = true},
    [SINKPROOF_FORM_OF_A4] = {"A4.form", {"scaled-table", "scaled-first"}, .named = true},
    [SINKPROOF_FORM_OF_A9] = {"A9.form",
                              {"definition", "base-2", "running-max", "lse-subtracted",
                               "lse-gated"},
                              .named = false},
    [SINKPROOF_FORM_OF_M4] = {"M4.form",
                              {"softmax-after", "softmax-all-renormalised"},
                              .named = false},
    [SINKPROOF_FORM_OF_M8] = {"M8.form", {"sigmoid", "tanh"}, .named = false},
};

// Accurate to 1 ulp, as torch's vectorised functions and any careful libm, times 2; quotients and
// reciprocals are correctly rounded. A policy may declare another error.
static double default_ulp(size_t function) {
    return function == SINKPROOF_DIV || function == SINKPROOF_RCP ? 0.5 : 2;
}

const char *const *sinkproof_policy_names(void) {
    return policy_names;
}

const char *sinkproof_function_name(sinkproof_function function) {
    static const char *const names[SINKPROOF_FUNCTION_COUNT] = {"exp", "rsqrt", "sincos", "pow",
                                                                "log", "tanh",  "div",    "rcp"};
    return names[function];
}

const char *sinkproof_formed_name(sinkproof_formed stage) {
    return formed_texts[stage].name;
}

const char *sinkproof_form_name(sinkproof_formed stage, int form) {
    return form >= 0 && form <= FORMS ? formed_texts[stage].forms[form] : NULL;
}

bool sinkproof_policy_admits(const sinkproof_policy *policy, sinkproof_formed stage, int form) {
    return (policy->forms[stage] >> form & 1) != 0;
}

const int sinkproof_definitions[SINKPROOF_FORMED_COUNT] = {SINKPROOF_FORM_DEFINITION};

bool sinkproof_policy_admits_all(const sinkproof_policy *policy,
                                 const int form_s[SINKPROOF_FORMED_COUNT], sinkproof_error *error) {
    for (int f = 0; f < SINKPROOF_FORMED_COUNT; f++) {
        sinkproof_formed stage = (sinkproof_formed)f;
        if (sinkproof_policy_admits(policy, stage, form_s[f])) continue;
        return sinkproof_fail(error,
                              "policy '%s' does not admit %s=%s, which is what is computed here: "
                              "name it too, or judge a trace of an engine that has the form",
                              policy->name, sinkproof_formed_name(stage),
                              sinkproof_form_name(stage, form_s[f]));
    }
    return true;
}

bool sinkproof_policy_reads_unrounded(const sinkproof_policy *policy) {
    bool any = false;
    for (int p = 0; p < AT_POINTS; p++) any = any || policy->unrounded[p];
    return any;
}

bool sinkproof_policy_rounds_weights_once(const sinkproof_policy *policy) {
    const sinkproof_rounding *before = &policy->at[AT_A9_UNNORM], *after = &policy->at[AT_A9];
    return before->format != SINKPROOF_REAL && before->optional &&
           after->format != SINKPROOF_REAL && after->optional;
}

bool point_is_read(sinkproof_point point) {
    bool traced = false;
    for (int p = 0; p < TRACE_POINTS; p++) {
        sinkproof_point at;
        traced = traced || (sinkproof_trace_rounding((sinkproof_trace_point)p, &at) && at == point);
    }
    return traced && point != AT_M5 && point != AT_M9 && point != AT_A9_LSE;
}

// Every form that has a name, or only the definition.
static unsigned admitted_forms(sinkproof_formed stage, bool exact) {
    unsigned forms = 1;
    bool any = !exact && !formed_texts[stage].named;
    for (int form = 1; any && sinkproof_form_name(stage, form) != NULL; form++) forms |= 1u << form;
    return forms;
}

bool sinkproof_policy_known(const char *name, sinkproof_policy *policy) {
    for (size_t k = 0; policy_names[k] != NULL; k++) {
        if (strcmp(name, policy_names[k]) != 0) continue;
        for (size_t a = 0; a < AT_POINTS; a++) {
            unsigned word = known[k].column == NO_COLUMN ? ABSENT : roundings[a][known[k].column];
            policy->at[a] = (sinkproof_rounding){.format = (sinkproof_format)(word & ~OPTIONAL),
                                                 .optional = (word & OPTIONAL) != 0};
        }
        policy->inside = known[k].f64 ? SINKPROOF_F64 : SINKPROOF_F32;
        policy->exp_growth = 0;
        memset(policy->unrounded, 0, sizeof policy->unrounded);
        policy->weights = SINKPROOF_REAL;
        policy->ftz = true; // as the matrix units of AMX and AVX-512 do
        policy->yarn_truncate = false;
        for (int f = 0; f < SINKPROOF_FORMED_COUNT; f++)
            policy->forms[f] = admitted_forms((sinkproof_formed)f, known[k].exact);
        for (size_t f = 0; f < SINKPROOF_FUNCTION_COUNT; f++) policy->ulp[f] = default_ulp(f);
        return known[k].refined == NULL || policy_refine(known[k].refined, policy, NULL);
    }
    return false;
}
