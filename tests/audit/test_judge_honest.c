// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// False alarms: honest runs of the reference under every policy, over seeds, lengths around the
// window and splits, whole traces and traces with most points missing. None may be outside its
// set, none suspicious. Reports the largest share of a set and of a drift limit that was used.
#include "proofs/bounds/worst.h"
#include "tests/shared/judged.h"
#include "tests/shared/opened.h"
#include "tests/shared/tap.h"

#include <math.h>

static const char *const policies[] = {"real-f64",
                                       "f32",
                                       "openai-bf16",
                                       "hf-bf16",
                                       "hf-bf16,M11.sum=bf16",
                                       "bf16",
                                       "f16",
                                       "openai-bf16,M8.alpha=bf16"};

// What an engine's log may hold: everything, or little, so that most operations are bridged.
static const char *const kept[] = {NULL, NULL, "T0,A13,M2,M3,M12,F1,F2",
                                   "A4,A11,A13,M1,M2,M3,M8,M12",
                                   "A2,A9,A12,A13,M2,M3,M6,M11,M12,F2"};

typedef struct tally {
    size_t runs, bugs, doubts;
    double share, drift;
} tally;

static void add(tally *t, const sinkproof_judgement *j) {
    t->runs++;
    t->bugs += j->verdict == SINKPROOF_VERDICT_BUG;
    t->doubts += j->verdict == SINKPROOF_VERDICT_SUSPICIOUS;
    for (size_t i = 0; i < j->n_reports; i++) {
        const sinkproof_point_report *r = &j->reports[i];
        t->share = sinkproof_keep_worst(t->share, r->share_worst);
        if (r->drift.bin >= 0)
            t->drift = sinkproof_keep_worst(t->drift, fabs(r->drift.gain) / r->drift.limit);
    }
}

int main(void) {
    static const size_t lengths[] = {1, 2, 7, 8, 9, 24, 40};
    for (size_t p = 0; p < sizeof policies / sizeof policies[0]; p++) {
        tally t = {0};
        for (uint64_t run = 0; run < 15; run++) {
            char spec[64];
            snprintf(spec, sizeof spec, "synthetic:tiny,layers=2,seed=%d", (int)(run % 5) + 1);
            sinkproof_model *model = open_model(spec);
            const char *points = kept[run % (sizeof kept / sizeof kept[0])];
            sinkproof_judgement j =
                judged(model, &sinkproof_reference_stages, policies[p], policies[p],
                       lengths[run % 7], run % 3 == 0 ? 5 : 0, 100 * p + run, points);
            if (j.verdict > SINKPROOF_VERDICT_WITHIN) {
                const sinkproof_point_report *r = j.first != NULL ? j.first : j.first_suspicious;
                note("%s: run %d: %s at %s", policies[p], (int)run,
                     sinkproof_verdict_name(j.verdict), r->name);
            }
            add(&t, &j);
            sinkproof_judgement_free(&j);
            sinkproof_model_close(model);
        }
        ok(t.bugs == 0 && t.doubts == 0,
           "bound.linear stat.drift stat.spread %s: %zu honest runs, %zu outside, %zu suspicious "
           "worst=%.3g "
           "bound=1 "
           "(drift %.3g of 1)",
           policies[p], t.runs, t.bugs, t.doubts, t.share, t.drift);
    }
    return tap_done();
}
