// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The table of the lane arithmetic's stages, and the policies that it supports. The embedding, the
// sink's logits and the residual sums are the reference's stages: they copy a stored row or round
// one addition, and a binary64 addition rounded to float32 is the float32 addition. GPT-2's norm
// and activation are the reference's too: binary64, rounded as the policy says.
#include "fast/lanes/stages.h"

const sinkproof_stages sinkproof_lanes_stages = {
    .embed = sinkproof_embed,
    .rmsnorm = lanes_rmsnorm,
    .layernorm = sinkproof_layernorm,
    .swiglu = lanes_activate,
    .gelu = sinkproof_gelu,
    .linear = lanes_linear,
    .qkv = lanes_qkv,
    .rope = lanes_rope,
    .scores = lanes_scores,
    .sink_logits = sinkproof_sink_logits,
    .attention = lanes_attention,
    .output = lanes_output,
    .router = lanes_router,
    .experts = lanes_experts,
    .mixture = lanes_mixture,
    .unembed = lanes_unembed,
};

// Does `policy` round as `known` does, apart from A2 and A4, that are both bf16 when `cached`?
static bool policy_rounds_like(const sinkproof_policy *policy, const sinkproof_policy *known,
                               bool cached, size_t *where) {
    sinkproof_policy wanted = *known;
    if (cached)
        wanted.at[AT_A2] = wanted.at[AT_A4] = (sinkproof_rounding){.format = SINKPROOF_BF16};
    for (*where = 0; *where < AT_POINTS; ++*where)
        if (!sinkproof_rounding_same(policy->at[*where], wanted.at[*where])) return false;
    return true;
}

bool sinkproof_lanes_serves(const sinkproof_policy *policy, sinkproof_error *error) {
    static const char *const what =
        "the lane arithmetic follows f32, f32,A2=bf16,A4=bf16 and bf16-operands";
    sinkproof_policy f32, operands;
    static const int forms[SINKPROOF_FORMED_COUNT] = {[SINKPROOF_FORM_OF_A9] =
                                                          SINKPROOF_A9_RUNNING_MAX};
    size_t where = 0, unused;
    if (!sinkproof_policy_known("f32", &f32) || !sinkproof_policy_known("bf16-operands", &operands))
        return sinkproof_fail(error, "the policies f32 and bf16-operands are not known");
    if (policy->inside != SINKPROOF_F32)
        return sinkproof_fail(error, "%s: not %s, with inside=%s", what, policy->name,
                              sinkproof_format_name(policy->inside));
    for (size_t f = 0; f < SINKPROOF_FUNCTION_COUNT; f++)
        if (!(policy->ulp[f] >= f32.ulp[f]))
            return sinkproof_fail(error, "%s: not %s, whose %s errs by at most %g ulp", what,
                                  policy->name, sinkproof_function_name((sinkproof_function)f),
                                  policy->ulp[f]);
    if (policy_rounds_like(policy, &operands, false, &unused) ||
        policy_rounds_like(policy, &f32, true, &unused) ||
        policy_rounds_like(policy, &f32, false, &where)) {
        if (policy->weights == SINKPROOF_REAL)
            return sinkproof_policy_admits_all(policy, forms, error);
        return sinkproof_fail(error, "%s, with the weights as they are stored: not weights=%s",
                              what, sinkproof_format_name(policy->weights));
    }
    return sinkproof_fail(error, "%s: not %s, with %s at %s", what, policy->name,
                          sinkproof_rounding_say(policy->at[where]).text,
                          sinkproof_point_name((sinkproof_point)where));
}
