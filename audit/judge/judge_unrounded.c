// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Values that the next operation may read before they are rounded (bound.unrounded): a compiler
// that fuses two operations stores the rounded value and passes on the unrounded one. The sets of
// such a point are therefore computed without its last rounding, and compared with the trace after
// rounding. The next operation reads the hull of the stored value and of every value in the set
// that rounds to it.
#include "audit/judge/judge_internal.h"
#include "model/bf16.h"

sinkproof_policy policy_without_optional(const sinkproof_policy *policy) {
    sinkproof_policy before = *policy;
    for (int p = 0; p < AT_POINTS; p++)
        if (policy->unrounded[p]) before.at[p] = (sinkproof_rounding){.format = SINKPROOF_REAL};
    return before;
}

bool point_may_be_unrounded(const judge_pass *pass, sinkproof_trace_point point) {
    sinkproof_point at;
    return sinkproof_trace_rounding(point, &at) && pass->policy->unrounded[at];
}

sinkproof_honest set_after_rounding(const judge_pass *pass, sinkproof_trace_point point,
                                    sinkproof_honest x) {
    sinkproof_setting s = {.policy = pass->policy}; // a rounding point asks for no odds
    sinkproof_point at = AT_T0;
    sinkproof_trace_rounding(point, &at);
    return sinkproof_honest_at(&s, at, x);
}

sinkproof_honest set_read_value(const judge_pass *pass, sinkproof_trace_point point, double v,
                                sinkproof_honest unrounded) {
    sinkproof_point at = AT_T0;
    sinkproof_trace_rounding(point, &at);
    return sinkproof_honest_read(pass->policy->at[at].format, v, unrounded);
}

// Writes zeros where the trace has no tensor: nothing reads them.
void set_read_given(const judge_pass *pass, sinkproof_trace_point point,
                    const sinkproof_tensor *tensor, size_t from, size_t count,
                    sinkproof_honest *x) {
    enum { AT_ONCE = 256 };
    bool open = tensor != NULL && point_may_be_unrounded(pass, point);
    size_t size = tensor != NULL ? sinkproof_dtype_size(tensor->dtype) : 0;
    double v[AT_ONCE] = {0};
    for (size_t i = 0; i < count; i++) {
        size_t some = count - i < AT_ONCE ? count - i : AT_ONCE, k = i % AT_ONCE;
        if (k == 0 && tensor != NULL)
            sinkproof_decode_many(tensor->dtype, tensor->data + (from + i) * size, 1, some, v);
        x[i] = open ? set_read_value(pass, point, v[k], sinkproof_unknown_set(v[k]))
                    : sinkproof_exact_set(v[k]);
    }
}

// The hull of x and of x rounded: an engine reads one of the two throughout.
void set_read_untraced(const judge_pass *pass, sinkproof_trace_point point, size_t count,
                       sinkproof_honest *x) {
    if (!point_may_be_unrounded(pass, point)) return;
    for (size_t i = 0; i < count; i++)
        x[i] = sinkproof_honest_choice(set_after_rounding(pass, point, x[i]), x[i]);
}
