// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Norms under the generic policies, which leave open whether a norm is rounded before its weight:
// a row is the work of one kernel, so the freedom is one of rows, and hides no eps. Engines that
// round before, after, or by turns are within; one that rounds some elements of a row before their
// weight is not, nor is one with another eps, whichever kernel it has.
#include "tests/shared/judged.h"
#include "tests/shared/opened.h"

static const sinkproof_stages *const ref = &sinkproof_reference_stages;
enum { TOKENS = 48, SEED = 7, WIDEST = 256 };
enum {
    WITHIN = SINKPROOF_VERDICT_WITHIN,
    SUSPICIOUS = SINKPROOF_VERDICT_SUSPICIOUS,
    BUG = SINKPROOF_VERDICT_BUG
};

// Rounded before their weight: every second row, or every second element of each row.
static void norm_by_two(const sinkproof_policy *p, sinkproof_point point,
                        const sinkproof_matrix *scale, double eps, size_t n, const double *x,
                        double *out, double *work, bool rows) {
    static double other[TOKENS * WIDEST];
    sinkproof_policy before = *p;
    before.at[sinkproof_point_before_weight(point)] = p->at[point];
    must(n * scale->cols <= TOKENS * WIDEST);
    ref->rmsnorm(p, point, scale, eps, n, x, out, work);
    ref->rmsnorm(&before, point, scale, eps, n, x, other, work);
    for (size_t i = 0; i < n * scale->cols; i++)
        if ((rows ? i / scale->cols : i) % 2 == 1) out[i] = other[i];
}

static void by_rows(const sinkproof_policy *p, sinkproof_point point, const sinkproof_matrix *scale,
                    double eps, size_t n, const double *x, double *out, double *work) {
    norm_by_two(p, point, scale, eps, n, x, out, work, true);
}
static void by_elements(const sinkproof_policy *p, sinkproof_point point,
                        const sinkproof_matrix *scale, double eps, size_t n, const double *x,
                        double *out, double *work) {
    norm_by_two(p, point, scale, eps, n, x, out, work, false);
}
static void large_eps(const sinkproof_policy *p, sinkproof_point point,
                      const sinkproof_matrix *scale, double eps, size_t n, const double *x,
                      double *out, double *work) {
    ref->rmsnorm(p, point, scale, eps * 10, n, x, out, work);
}
static void no_eps(const sinkproof_policy *p, sinkproof_point point, const sinkproof_matrix *scale,
                   double eps, size_t n, const double *x, double *out, double *work) {
    (void)eps;
    ref->rmsnorm(p, point, scale, 0, n, x, out, work);
}

typedef void norm_stage(const sinkproof_policy *p, sinkproof_point point,
                        const sinkproof_matrix *scale, double eps, size_t n, const double *x,
                        double *out, double *work);

#define BEFORE(format) ",A1.norm=" format ",M1.norm=" format ",F1.norm=" format
static const struct engine {
    const char *name, *runs, *declared;
    norm_stage *norm; // NULL: the reference's
    // WITHIN: that or better; else at 00.A1 first
    int verdict;
} engines[] = {
    {"norms rounded once", "openai-bf16", "bf16", NULL, WITHIN},
    {"norms rounded before their weight", "openai-bf16" BEFORE("bf16"), "bf16", NULL, WITHIN},
    {"the same in float16", "f16,A9.unnorm=real" BEFORE("f16"), "f16", NULL, WITHIN},
    {"every second row rounded before its weight", "openai-bf16", "bf16", by_rows, WITHIN},
    {"every second element of a row", "openai-bf16", "bf16", by_elements, BUG},
    {"eps times 10, rounded once", "openai-bf16", "bf16", large_eps, BUG},
    {"eps times 10, rounded before", "openai-bf16" BEFORE("bf16"), "bf16", large_eps, BUG},
    {"no eps, rounded once", "openai-bf16", "bf16", no_eps, BUG},
    {"no eps, rounded before", "openai-bf16" BEFORE("bf16"), "bf16", no_eps, SUSPICIOUS},
};

static void judge_engine(const sinkproof_model *model, const struct engine *e) {
    sinkproof_stages stages = *ref;
    if (e->norm != NULL) stages.rmsnorm = e->norm;
    sinkproof_judgement j = judged(model, &stages, e->runs, e->declared, TOKENS, 0, SEED, NULL);
    const sinkproof_point_report *r = judgement_report(&j, TRACE_A1, 0);
    const sinkproof_point_report *first = j.first != NULL ? j.first : j.first_suspicious;
    bool good = e->verdict == WITHIN ? (int)j.verdict <= WITHIN
                                     : (int)j.verdict == e->verdict && first == r;
    ok(good, "bound.norm-rounded %s, under %s: %s, %zu of %zu outside at 00.A1", e->name,
       e->declared, sinkproof_verdict_name(j.verdict), r->outside, r->elements);
    sinkproof_judgement_free(&j);
}

// The share of the norms' sets that hold one value, of an engine that rounds as `runs` says.
static void still_narrow(const sinkproof_model *model, const char *what, const char *runs,
                         double least) {
    sinkproof_judgement j = judged(model, ref, runs, "bf16", TOKENS, 0, SEED, NULL);
    size_t elements = 0, several = 0;
    for (size_t i = 0; i < j.n_reports; i++) {
        const sinkproof_point_report *r = &j.reports[i];
        if (r->point != TRACE_A1 && r->point != TRACE_M1 && r->point != TRACE_F1) continue;
        elements += r->elements, several += r->several;
    }
    double single = 1 - (double)several / (double)elements;
    ok(j.verdict <= SINKPROOF_VERDICT_WITHIN && single >= least,
       "bound.norm-rounded %s: %.2f %% of %zu sets of norms hold one value under bf16", what,
       100 * single, elements);
    sinkproof_judgement_free(&j);
}

int main(void) {
    sinkproof_model *model = open_model("synthetic:tiny,layers=1");
    sinkproof_model *centred = open_model("synthetic:tiny-gpt2,layers=1");
    for (size_t e = 0; e < sizeof engines / sizeof *engines; e++) judge_engine(model, &engines[e]);
    still_narrow(model, "RMSNorm rounded once", "openai-bf16", 0.99);
    still_narrow(model, "RMSNorm rounded before its weight", "openai-bf16" BEFORE("bf16"), 0.99);
    still_narrow(centred, "LayerNorm", "bf16" BEFORE("real"), 0.9);
    still_narrow(centred, "LayerNorm rounded before its weight", "bf16" BEFORE("bf16"), 0.9);
    sinkproof_model_close(model), sinkproof_model_close(centred);
    return tap_done();
}
