// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What the points of a trace and its gradients say together.
#include "audit/face/ruling_gradients.h"

#include "audit/trace/trace_points.h"
#include "base/words.h"

#include <math.h>
#include <string.h>

static bool has_gradients(ruled r) {
    return r.gradients->n_reports > 0;
}

// The graver of both. Where one of them decides nothing the other one decides, except that nothing
// is within whose gradients are all undecided.
sinkproof_verdict ruled_verdict(ruled r) {
    sinkproof_verdict points = r.points->verdict, gradients = r.gradients->verdict;
    bool open = r.points->open_nans > 0;
    if (!has_gradients(r)) return points;
    if (points == SINKPROOF_VERDICT_UNDECIDED && !open && gradients != SINKPROOF_VERDICT_ABSENT)
        return gradients;
    return points > gradients ? points : gradients;
}

static size_t all_undecided(ruled r) {
    return r.points->undecided + r.gradients->undecided;
}

int ruled_exit(ruled r, bool strict) {
    sinkproof_verdict verdict = ruled_verdict(r);
    if (verdict == SINKPROOF_VERDICT_BUG) return 1;
    if (verdict == SINKPROOF_VERDICT_SUSPICIOUS) return strict ? 1 : 4;
    bool open = verdict == SINKPROOF_VERDICT_UNDECIDED || (strict && all_undecided(r) > 0);
    return open ? 4 : 0;
}

static void print_undecided(FILE *out, ruled r, const char *before) {
    if (r.points->undecided > 0)
        fprintf(out, "%s%zu of %s undecided", before, r.points->undecided,
                sinkproof_counted(r.points->n_reports, "point").text);
    if (r.gradients->undecided > 0)
        fprintf(out, "%s%zu of %s undecided", r.points->undecided > 0 ? ", " : before,
                r.gradients->undecided, sinkproof_counted(r.gradients->n_reports, "gradient").text);
}

void ruled_print_conclusion(FILE *out, ruled r, int code) {
    const sinkproof_judgement *j = r.points;
    sinkproof_verdict verdict = ruled_verdict(r);
    fprintf(out, "\nVerdict under %s: ", j->policy.name);
    if (verdict == SINKPROOF_VERDICT_UNDECIDED) {
        fprintf(out, "undecided");
        if (j->open_nans > 0 || has_gradients(r)) print_undecided(out, r, ", ");
        fprintf(out, " (exit %d).\n", code);
        if (j->open_nans > 0)
            fprintf(out, "%s %s NaN where nothing bounds what an honest engine has.\n",
                    sinkproof_counted(j->open_nans, "element").text,
                    sinkproof_is_or_are(j->open_nans));
        else if (!has_gradients(r))
            fprintf(out, "This trace decides nothing; add A13, M3 and M12.\n");
        return;
    }
    fprintf(out, "%s",
            verdict == SINKPROOF_VERDICT_BUG          ? "a bug"
            : verdict == SINKPROOF_VERDICT_SUSPICIOUS ? "suspicious"
                                                      : "within what honest rounding can do");
    print_undecided(out, r, ", ");
    fprintf(out, " (exit %d).\n", code);
}

sinkproof_finding ruled_finding(const sinkproof_point_report *r) {
    sinkproof_finding f = {.name = r->name,
                           .layer = r->layer,
                           .verdict = r->verdict,
                           .bridged = r->bridged,
                           .elements = r->elements,
                           .several = r->several,
                           .outside = r->outside,
                           .unlikely = r->unlikely,
                           .undecided = r->undecided,
                           .nans = r->nans,
                           .rank = r->rank,
                           .worst_value = r->worst_value,
                           .worst_low = r->worst_set.lo,
                           .worst_emulation = r->worst_set.mid,
                           .worst_high = r->worst_set.hi,
                           .worst_inputs = r->worst_inputs,
                           .excess_ulp = r->excess_ulp,
                           .share_worst = r->share_worst,
                           .share_median = r->share_median,
                           .drift = r->drift.gain,
                           .drift_limit = r->drift.limit,
                           .spread = r->drift.spread.mean,
                           .spread_limit = r->drift.spread.limit,
                           .error = sinkproof_error_relative(r->errors.error, r),
                           .local = sinkproof_error_relative(r->errors.local, r),
                           .inherited = sinkproof_error_relative(r->errors.inherited, r),
                           .infinities = r->infinities,
                           .layers_together = r->layers_together,
                           .drift_together = r->together.gain,
                           .drift_together_limit = r->together.limit};
    sinkproof_trace_index(r->rank, r->shape, r->worst_at, f.worst_index);
    memcpy(f.shape, r->shape, r->rank * sizeof *f.shape);
    return f;
}

sinkproof_finding gradient_finding(const sinkproof_gradient_report *r) {
    sinkproof_finding f = {.name = r->name,
                           .layer = r->of.layer,
                           .verdict = r->verdict,
                           .elements = r->elements,
                           .several = r->several,
                           .outside = r->outside,
                           .undecided = r->undecided,
                           .nans = r->nans,
                           .infinities = r->infinities,
                           .rank = r->rank,
                           .worst_value = r->worst_value,
                           .worst_low = r->worst_set.lo,
                           .worst_emulation = r->worst_set.mid,
                           .worst_high = r->worst_set.hi,
                           .worst_inputs = r->cause[0] != '\0' ? r->cause : r->missing,
                           .excess_ulp = r->excess_ulp,
                           .share_worst = r->share_worst,
                           .share_median = NAN,
                           .error = NAN,
                           .local = NAN,
                           .inherited = NAN};
    sinkproof_trace_index(r->rank, r->shape, r->worst_at, f.worst_index);
    memcpy(f.shape, r->shape, r->rank * sizeof *f.shape);
    return f;
}
