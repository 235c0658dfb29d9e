// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Gradients of a fused attention kernel, judged through weights that its trace does not show:
// honest kernels of drawn freedoms are inside, also with tensors left out, and sixteen planted
// mistakes are outside and named. DRAWS=N draws N kernels of each policy.
#include "audit/diagnose/backward_causes.h"
#include "audit/judge/judge_backward.h"
#include "tests/shared/backward_engine.h"

static const char *const MODEL = "synthetic:tiny";

static sinkproof_gradient_judgement judge(const sinkproof_model *model,
                                          const sinkproof_trace *trace, const char *name) {
    sinkproof_policy policy;
    sinkproof_error error;
    sinkproof_gradient_judgement j;
    need(sinkproof_policy_parse(name, &policy, &error), &error);
    need(
        sinkproof_judge_gradients(model, trace, &policy, (sinkproof_layer_range){0, 0}, &j, &error),
        &error);
    if (j.first != NULL) sinkproof_backward_explain(model, trace, &policy, &j);
    return j;
}

// ---- honest kernels --------------------------------------------------------------------------

static fused_kernel drawn_kernel(uint64_t *seed, sinkproof_format narrow, bool eager) {
    uint64_t bits = sinkproof_draw(seed) >> 20;
    bool is_narrow = narrow != SINKPROOF_F32;
    return (fused_kernel){.seed = sinkproof_draw(seed),
                          .delta_of_output = (bits & 1) != 0,
                          .output_stored = (bits & 2) != 0,
                          .weights_kept = eager || (bits & 4) != 0,
                          .narrow_operands = is_narrow && (bits & 8) != 0,
                          .eager = eager,
                          .narrow = narrow};
}

static void honest_kernels(const sinkproof_model *model, const char *policy,
                           sinkproof_format narrow, bool eager, size_t draws) {
    size_t judged = 0, bugs = 0, open = 0, elements = 0;
    double worst = 0;
    uint64_t seed = 7;
    for (size_t d = 0; d < draws; d++) {
        step s = step_new(sinkproof_model_config(model), 20 + d % 3 * 7, seed + d, narrow);
        fused_kernel e = drawn_kernel(&seed, narrow, eager);
        run_step(&e, model, &s);
        bool wide = !eager && d % 2 == 1; // gradients kept in float32
        sinkproof_trace *trace = step_trace(model, &s, eager ? "A11" : "A11,A9.lse", ~0ull,
                                            wide ? SINKPROOF_F32 : narrow);
        sinkproof_gradient_judgement j = judge(model, trace, policy);
        for (size_t i = 0; i < j.n_reports; i++) {
            bool given = strcmp(j.reports[i].missing, "what the loss has there") == 0;
            if (given) continue;
            judged++, bugs += j.reports[i].outside > 0;
            open += j.reports[i].verdict == SINKPROOF_VERDICT_UNDECIDED;
            elements += j.reports[i].elements;
            worst = fmax(worst, j.reports[i].share_worst);
            if (j.reports[i].outside > 0)
                note("draw %zu: %s, %zu of %zu outside", d, j.reports[i].name, j.reports[i].outside,
                     j.reports[i].elements);
        }
        sinkproof_gradient_judgement_free(&j);
        sinkproof_trace_close(trace);
        step_free(&s);
    }
    ok(bugs == 0 && judged == draws * 2 * 5,
       "grad.rounded honest kernels under %s: draws=%zu gradients=%zu elements=%zu outside=%zu "
       "undecided=%zu worst=%.3g bound=1",
       policy, draws, judged, elements, bugs, open, worst);
}

// ---- parts of a trace ------------------------------------------------------------------------

static void subsets(const sinkproof_model *model, size_t draws) {
    size_t bugs = 0, lacking = 0;
    uint64_t seed = 3;
    step s = step_new(sinkproof_model_config(model), 20, 1, SINKPROOF_F32);
    fused_kernel e = {.narrow = SINKPROOF_F32, .seed = 5};
    run_step(&e, model, &s);
    for (size_t d = 0; d < draws; d++) {
        uint64_t kept = sinkproof_draw(&seed) | sinkproof_draw(&seed) | 1;
        sinkproof_trace *trace = step_trace(model, &s, "A11,A9.lse", kept, SINKPROOF_F32);
        sinkproof_gradient_judgement j = judge(model, trace, "f32");
        for (size_t i = 0; i < j.n_reports; i++) {
            bugs += j.reports[i].verdict == SINKPROOF_VERDICT_BUG;
            lacking += j.reports[i].missing[0] != '\0';
        }
        sinkproof_gradient_judgement_free(&j);
        sinkproof_trace_close(trace);
    }
    ok(bugs == 0 && lacking > 0,
       "grad.rounded no part of an honest trace is a bug: parts=%zu bugs=%zu, %zu gradients lack "
       "an "
       "input",
       draws, bugs, lacking);
    // What is missing is named.
    uint64_t without_keys = ~0ull & ~2ull, without_lse = ~0ull & ~32ull;
    sinkproof_trace *trace = step_trace(model, &s, "A11,A9.lse", without_keys, SINKPROOF_F32);
    sinkproof_gradient_judgement j = judge(model, trace, "f32");
    bool named = false;
    for (size_t i = 0; i < j.n_reports; i++)
        named = named || (strcmp(j.reports[i].name, "00.dA4.q") == 0 &&
                          strcmp(j.reports[i].missing, "00.A4.k") == 0);
    ok(named, "without its keys a query's gradient is undecided, and 00.A4.k is named");
    sinkproof_gradient_judgement_free(&j);
    sinkproof_trace_close(trace);
    trace = step_trace(model, &s, "A11,A9.lse", without_lse, SINKPROOF_F32);
    j = judge(model, trace, "f32");
    named = false;
    for (size_t i = 0; i < j.n_reports; i++)
        named = named || (strcmp(j.reports[i].name, "00.dsink") == 0 &&
                          strcmp(j.reports[i].missing, "00.dA9.lse") == 0);
    ok(named && j.first == NULL,
       "grad.lse a loss that reads a log-sum-exp: without its gradient dsink is undecided");
    sinkproof_gradient_judgement_free(&j);
    sinkproof_trace_close(trace);
    step_free(&s);
}

// ---- several sequences, numbers that are none ------------------------------------------------

static void sequences(const sinkproof_model *model) {
    const sinkproof_config *c = sinkproof_model_config(model);
    fused_kernel e = {.narrow = SINKPROOF_F32, .seed = 5};
    step x = step_new(c, 9, 1, SINKPROOF_F32), y = step_new(c, 14, 2, SINKPROOF_F32), s;
    run_step(&e, model, &x), run_step(&e, model, &y);
    s = joined(c, &x, &y);
    sinkproof_trace *trace = step_trace(model, &s, "A11,A9.lse", ~0ull, SINKPROOF_F32);
    sinkproof_gradient_judgement j = judge(model, trace, "f32");
    ok(j.first == NULL && j.verdict == SINKPROOF_VERDICT_WITHIN && j.undecided == 4,
       "grad.rounded two sequences end to end: no query sees the other's keys");
    sinkproof_gradient_judgement_free(&j);
    sinkproof_trace_close(trace);
    step_free(&x), step_free(&y), step_free(&s);
}

static void not_numbers(const sinkproof_model *model) {
    static const struct {
        const char *what;
        float value;
        bool of_input, bug;
    } put_at[] = {{"an infinity in dO", INFINITY, true, false},
                  {"NaN in dO", NAN, true, false},
                  {"NaN in dq of finite numbers", NAN, false, true},
                  {"an infinity in dq of finite numbers", INFINITY, false, true}};
    fused_kernel e = {.narrow = SINKPROOF_F32, .seed = 5};
    for (size_t i = 0; i < sizeof put_at / sizeof *put_at; i++) {
        step s = step_new(sinkproof_model_config(model), 12, 1, SINKPROOF_F32);
        if (put_at[i].of_input) s.dout[0][3 * s.heads * s.dim] = put_at[i].value;
        run_step(&e, model, &s);
        if (!put_at[i].of_input) s.dq[0][5] = put_at[i].value;
        sinkproof_trace *trace = step_trace(model, &s, "A11,A9.lse", ~0ull, SINKPROOF_F32);
        sinkproof_gradient_judgement j = judge(model, trace, "f32");
        bool as_due = put_at[i].bug ? j.first != NULL && strcmp(j.first->name, "00.dA4.q") == 0
                                    : j.first == NULL && j.verdict == SINKPROOF_VERDICT_UNDECIDED;
        ok(as_due, "%s: %s", put_at[i].what, put_at[i].bug ? "a bug" : "undecided");
        sinkproof_gradient_judgement_free(&j);
        sinkproof_trace_close(trace);
        step_free(&s);
    }
}

// ---- mistakes --------------------------------------------------------------------------------

static const struct {
    planted_mistake mistake;
    const char *at, *cause;
} planted[] = {
    {PLANTED_ZERO, "00.dsink", "the sink's gradient is missing: it is zero"},
    {PLANTED_FROZEN, "01.dsink", "frozen: the numbers are those of 00.dsink"},
    {PLANTED_SIGN, "00.dsink", "the sign is wrong"},
    {PLANTED_PER_SPLIT, "00.dsink", "it is counted 3 times: once per split of the keys"},
    {PLANTED_OVER_GROUP, "00.dsink", "it is added up over the query heads of each group"},
    {PLANTED_LAST_BLOCK, "00.dsink",
     "it is that of the last block of queries alone, from row 16 on"},
    {PLANTED_SCALED, "00.dsink", "it is scaled by 0.37, which was fitted"},
    {PLANTED_SQRT, "00.dsink", "a factor 1/sqrt(head_dim) too many"},
    {PLANTED_NO_DLSE, "00.dsink", "the gradient of the log-sum-exp is ignored"},
    {PLANTED_RENORMALISED, "00.dsink",
     "D is of the renormalised weights, those of the keys over their sum"},
    {PLANTED_NO_WINDOW, "00.dA4.q", "the window is lost going back: all earlier keys are read"},
    {PLANTED_NO_MASK, "00.dA4.q", "the causal mask is lost going back: later keys are read"},
    {PLANTED_ONE_HEAD, "00.dA4.k", "the sum over the group is missing: query head 0 of each alone"},
    {PLANTED_BIAS_OF_ONES, "00.db.v", "1 stands in the place of 1 - alpha_s"},
    {PLANTED_NO_SINK, "00.dA4.q", "the weights are recomputed without the sink"},
    {PLANTED_STALE_LSE, "00.dA4.q",
     "a stale log-sum-exp: the weights are recomputed from that of the row before"},
};

// A factor is fitted to what bfloat16 stored: its first digits are told.
static bool is_as_planted(const char *cause, const char *planted_cause) {
    const char *fitted = "it is scaled by 0.37";
    if (strncmp(planted_cause, fitted, strlen(fitted)) == 0)
        return strncmp(cause, fitted, strlen(fitted)) == 0;
    return strcmp(cause, planted_cause) == 0;
}

static void mistakes(const sinkproof_model *model, const char *policy, sinkproof_format format) {
    size_t named = 0, count = sizeof planted / sizeof *planted;
    for (size_t m = 0; m < count; m++) {
        // of two blocks of 16 the last one is also no block of 8
        size_t rows = planted[m].mistake == PLANTED_LAST_BLOCK ? 26 : 20;
        step s = step_new(sinkproof_model_config(model), rows, 11 + m, format);
        fused_kernel e = {.mistake = planted[m].mistake, .narrow = format, .seed = m};
        const char *cause = "";
        size_t outside = 0;
        run_step(&e, model, &s);
        // The output is that of the forward pass, which made no mistake: it is not in the trace.
        sinkproof_trace *trace = step_trace(model, &s, "A11,A9.lse", ~0x80008ull, format);
        sinkproof_gradient_judgement j = judge(model, trace, policy);
        for (size_t i = 0; i < j.n_reports; i++)
            if (strcmp(j.reports[i].name, planted[m].at) == 0)
                cause = j.reports[i].cause, outside = j.reports[i].outside;
        bool good = outside > 0 && is_as_planted(cause, planted[m].cause);
        named += good;
        ok(good, "grad.rounded a planted mistake at %s under %s: %zu outside, cause: %s",
           planted[m].at, policy, outside, cause);
        sinkproof_gradient_judgement_free(&j);
        sinkproof_trace_close(trace);
        step_free(&s);
    }
    ok(named == count && count == 16, "grad.rounded mistakes that are named under %s: %zu of %zu",
       policy, named, count);
}

int main(void) {
    const char *said = getenv("DRAWS");
    size_t draws = said != NULL ? strtoul(said, NULL, 10) : 3;
    sinkproof_model *model = open_model(MODEL);
    honest_kernels(model, "f32", SINKPROOF_F32, false, draws);
    honest_kernels(model, "bf16", SINKPROOF_BF16, false, draws);
    honest_kernels(model, "flash-bf16", SINKPROOF_BF16, false, draws);
    honest_kernels(model, "hf-bf16", SINKPROOF_BF16, true, draws);
    subsets(model, 4 * draws);
    sequences(model);
    not_numbers(model);
    mistakes(model, "f32", SINKPROOF_F32);
    mistakes(model, "flash-bf16", SINKPROOF_BF16);
    sinkproof_model_close(model);
    return tap_done();
}
