// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A policy says what happens at every rounding point of the model (the points A1 ... F2
// of the specification of the forward pass) and how good the functions in between are.
// The reference is written once; the policy is data. The judge reads the same data:
// what a policy fixes is applied, what it leaves open becomes an interval.
#ifndef SINKPROOF_POLICY_H
#define SINKPROOF_POLICY_H

#include "base/error.h"
#include "model/round.h"
#include "ref/points.h"

#include <stddef.h>

// The numbers that share a scale: none has one; all have a stated one; those of a tensor, of a
// head, of a token, or of a token's head have that of their largest size (ref/scaled.h).
typedef enum sinkproof_scale {
    SINKPROOF_SCALE_NONE,
    SINKPROOF_SCALE_STATED,
    SINKPROOF_SCALE_OF_TENSOR,
    SINKPROOF_SCALE_OF_HEAD,
    SINKPROOF_SCALE_OF_TOKEN,
    SINKPROOF_SCALE_OF_TOKEN_HEAD,
    SINKPROOF_SCALES
} sinkproof_scale;

enum { SINKPROOF_MAX_RANKS = 64, SINKPROOF_MAX_LEVELS = 16 };

typedef struct sinkproof_rounding {
    sinkproof_format format; // SINKPROOF_REAL: nothing is rounded here
    bool optional;           // "bf16?": an engine may keep more precision here
    // Of an operand that a product reads: who shares a scale, and the stated one, a float32 number.
    sinkproof_scale scale;
    double stated;
    // Of a running sum, or else 0. A matrix unit: bits, block, parts (ref/tensor_core.h).
    // At A11.part a format has parts: how many outputs are rounded on a key's way, 0 for one.
    // SINKPROOF_RANKS: parts and their format. SINKPROOF_BLOCKS: block, its products, and their
    // format.
    unsigned char bits, parts;
    unsigned short block;
    sinkproof_format part;
} sinkproof_rounding;

// Functions whose accuracy a policy declares, in ulp of the inner format. 2^x counts as exp. DIV is
// a quotient; RCP is a reciprocal, by which the numerator is then multiplied, with one rounding.
// 0.5 ulp is a correct rounding. They are of quotients of computed numbers (bound.quotient).
typedef enum sinkproof_function {
    SINKPROOF_EXP,
    SINKPROOF_RSQRT,
    SINKPROOF_SINCOS,
    SINKPROOF_POW,
    SINKPROOF_LOG,
    SINKPROOF_TANH,
    SINKPROOF_DIV,
    SINKPROOF_RCP,
    SINKPROOF_FUNCTION_COUNT
} sinkproof_function;

// Stages that engines evaluate in several forms, equal over the reals (form.*). A policy says which
// forms it admits, as a set of bits: 1 << form. Form 0 is the definition, which the reference
// computes.
typedef enum sinkproof_formed {
    SINKPROOF_FORM_OF_A4_FREQ,
    SINKPROOF_FORM_OF_A4,
    SINKPROOF_FORM_OF_A9,
    SINKPROOF_FORM_OF_M4,
    SINKPROOF_FORM_OF_M8,
    SINKPROOF_FORMED_COUNT
} sinkproof_formed;

enum { SINKPROOF_FORM_DEFINITION = 0 };
enum { SINKPROOF_A4_FREQ_RUNNING = 1 }; // angles by a running product: n, n s, n s s, ...
enum { SINKPROOF_A4_SCALED_FIRST = 1 }; // the concentration times the vector, then the rotation
enum {                                  // of the attention weights, A9
    SINKPROOF_A9_BASE_2 = 1,            // log2(e) folded into the scale, exponentials in base 2
    SINKPROOF_A9_RUNNING_MAX,           // the sum rescaled at each new maximum: flash kernels
    SINKPROOF_A9_LSE_SUBTRACTED,        // alpha = exp(s - LSE)
    SINKPROOF_A9_LSE_GATED              // the softmax without the sink times sigmoid(LSE - b)
};
enum { SINKPROOF_M4_ALL_RENORMALISED = 1 }; // softmax over all experts, the chosen over their sum
enum { SINKPROOF_M8_TANH = 1 };             // sigmoid(t) = (1 + tanh(t / 2)) / 2

// Room for a policy's name, including its end: an override of every point.
enum { SINKPROOF_POLICY_NAME = 2048 };

typedef struct sinkproof_policy {
    char name[SINKPROOF_POLICY_NAME]; // as given: "openai-bf16,M8.alpha=bf16"
    sinkproof_rounding at[AT_POINTS];
    sinkproof_format inside; // arithmetic between rounding points: F32 or F64
    double ulp[SINKPROOF_FUNCTION_COUNT];
    double exp_growth; // additional error of exp in ulp for each unit of |argument|
    unsigned forms[SINKPROOF_FORMED_COUNT]; // the forms that an engine may use
    bool unrounded[AT_POINTS];              // the next operation may read it before its rounding
    sinkproof_format weights; // format in which an engine stores them, or products read them; REAL:
                              // the container's
    bool ftz;           // a processor may read subnormal numbers as zero and flush results to it
    bool yarn_truncate; // round the YaRN ramp's ends to whole dimensions whatever the model says
} sinkproof_policy;

// Parses "NAME[,POINT=FORMAT[?]]...[,exp=4ulp+0.5|x|][,div=2ulp][,A9.form=any|FORM[|FORM]...]
// [,inside=f32|f64][,weights=stored|f32|f16|bf16|tf32|tf32-even|tf32-cut][,ftz=allowed|none]
// [,yarn=truncate|config][,unrounded=none|any|POINT[|POINT]...]".
// FORMAT is real, f64, f32, f16 or bf16. At A2.in, A12.in, M2.in, M5.in, M9.in, F2.in, A5.q, A5.k,
// A11.weights and A11.v it may be a format in which products read (ref/scaled.h): tf32, tf32-even,
// tf32-cut, e4m3, e4m3-nan, e5m2, e5m2-inf, e2m1; with a scale as in e4m3(0.5), e4m3(tensor),
// e4m3(token), int8(token-head), nvfp4(tensor), at A5.q, A5.k and A11.v also e4m3(head); mxfp8 and
// mxfp8-up have scales of their own. A9.unnorm takes those without a scale. Weights in tf32 are
// those of a product. At A2.in ... F2.in q8_0 or weight too (ref/operands.h), at a running sum
// (A2.acc) tensor-core(BITS,BLOCK[,PARTS]) or the name of a GPU (ref/tensor_core.h), at that of a
// weight's product also ranks(R,FORMAT)[?] and blocks(N,FORMAT)[?]. "acc=hopper" says it of every
// running sum. M11.sum and M11.part take ranks(R,FORMAT)[?], A11.part levels(L,FORMAT)[?].
// "ranks=2" says what tensor and expert parallelism may do: A12.acc, M9.acc, M11.sum and M11.part
// are ranks(2,FORMAT)?, FORMAT as A12's; "slices=2" says it of A12.acc and M11.part. Names:
// real-f64, f32, bf16-operands, openai-bf16, hf-bf16, hf-llama-bf16, llama-cpp, llama-cpp-flash,
// mlx (exact), vllm-bf16, onnxruntime, bf16, f16 (generic); or @FILE, which states a policy in
// full, one KEY=VALUE a line. Errors name the offending word and list what is known. Source:
// DESIGN, "Three meanings of one model".
bool sinkproof_policy_parse(const char *text, sinkproof_policy *policy, sinkproof_error *error);

// Applies overrides as above to a policy.
bool policy_refine(const char *overrides, sinkproof_policy *policy, sinkproof_error *error);

// The known names, NULL-terminated, narrowest first.
const char *const *sinkproof_policy_names(void);

// One of them without overrides; false if the name is unknown.
bool sinkproof_policy_known(const char *name, sinkproof_policy *policy);

const char *sinkproof_function_name(sinkproof_function function); // "exp"
const char *sinkproof_formed_name(sinkproof_formed stage);        // "A9.form"
// "base-2"; NULL: form is too large
const char *sinkproof_form_name(sinkproof_formed stage, int form);
bool sinkproof_policy_admits(const sinkproof_policy *policy, sinkproof_formed stage, int form);

// Whether the policy admits an engine that computes the form form_s[s] of each stage. The error
// names the missing form. The reference computes the definitions.
extern const int sinkproof_definitions[SINKPROOF_FORMED_COUNT];
bool sinkproof_policy_admits_all(const sinkproof_policy *policy,
                                 const int form_s[SINKPROOF_FORMED_COUNT], sinkproof_error *error);

// Points that the next operation may read before their rounding are tensors of a trace, except M5
// and M9: there only the bias follows, and an optional rounding means the same.
bool sinkproof_policy_reads_unrounded(const sinkproof_policy *policy); // any point
bool point_is_read(sinkproof_point point); // may be named in `unrounded`

// "bf16?", "tensor-core(25,16)", as an override says it.
typedef struct sinkproof_rounding_text {
    char text[40];
} sinkproof_rounding_text;
sinkproof_rounding_text sinkproof_rounding_say(sinkproof_rounding rounding);
bool sinkproof_rounding_same(sinkproof_rounding a, sinkproof_rounding b);

// Whether the attention weights are rounded once at most: after their division (A9) or before it
// (A9.unnorm), as each kernel likes. So says a policy where both roundings are optional. Whoever
// shows the weights has divided them; the reference does.
bool sinkproof_policy_rounds_weights_once(const sinkproof_policy *policy);

// x rounded at `point` by `policy`; optional roundings are applied.
static inline double round_at(const sinkproof_policy *policy, sinkproof_point point, double x) {
    return sinkproof_round(policy->at[point].format, x);
}

#endif
