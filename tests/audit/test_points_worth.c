// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The planted mistakes of test_diagnosis, seen through traces of few points: how many of them each
// set of points convicts. WHOLE=1 plants all of them and prints the rows of the table in
// chapter 14.
#include "tests/shared/judged.h"
#include "tests/shared/mistaken.h"
#include "tests/shared/mistakes_planted.h"
#include "tests/shared/opened.h"

#include <omp.h>
#include <stdlib.h>

static const char *const sets[] = {
    "A13,M3,M12", "A13,M3,M12,A4.q,A4.k,A2.v,A11", "A13,M3,M12,A4.q,A4.k,A2.v,A11,M4,M6,M8",
    "T0,A1,A2,A4,A11,A12,A13,M1,M2,M3,M4,M5,M6,M8,M9,M10,M11,M12,F1,F2"};
enum { SETS = sizeof sets / sizeof sets[0], TOKENS = 48 }; // of the table

typedef struct seen {
    size_t bug, suspicious, rest;
} seen;

static sinkproof_verdict verdict_of(const sinkproof_model *model, const planted *mistake,
                                    const char *policy, const char *points) {
    sinkproof_error error = {{0}};
    sinkproof_policy declared;
    sinkproof_judgement j;
    size_t n = getenv("WHOLE") != NULL ? TOKENS : TOKENS / 2;
    int32_t tokens[TOKENS];
    some_tokens(n, sinkproof_model_config(model)->vocab, 7, tokens);
    sinkproof_trace *trace =
        mistaken_trace(model, mistake != NULL, &mistake, policy, points, n, tokens);
    need(sinkproof_policy_parse(policy, &declared, &error) &&
             sinkproof_judge(model, trace, &declared, &(sinkproof_judge_options){.rate = 1e-9}, &j,
                             &error),
         &error);
    sinkproof_verdict verdict = j.verdict;
    sinkproof_judgement_free(&j);
    sinkproof_trace_close(trace);
    return verdict;
}

static void try_policy(const sinkproof_model *model, const char *policy, size_t step) {
    seen of[SETS] = {{0}};
    size_t planted_here = 0;
    bool grows = true;
    for (size_t s = 0; s < SETS; s++) {
        planted_here = 0;
        for (size_t i = 0; i < MISTAKES; i += step, planted_here++) {
            sinkproof_verdict v = verdict_of(model, &mistakes[i], policy, sets[s]);
            if (v != SINKPROOF_VERDICT_BUG)
                note("%s: %s is %s", sets[s], mistakes[i].id, sinkproof_verdict_name(v));
            if (v == SINKPROOF_VERDICT_BUG)
                of[s].bug++;
            else if (v == SINKPROOF_VERDICT_SUSPICIOUS)
                of[s].suspicious++;
            else
                of[s].rest++;
        }
        note("| %s | %s | %zu | %zu | %zu |", policy, sets[s], of[s].bug, of[s].suspicious,
             of[s].rest);
        grows = grows && (s == 0 || of[s].bug >= of[s - 1].bug);
        ok(verdict_of(model, NULL, policy, sets[s]) <= SINKPROOF_VERDICT_UNDECIDED,
           "%s, %s: an honest run is acquitted", policy, sets[s]);
    }
    ok(grows && of[0].bug > 0, "%s: more points convict no fewer of %zu mistakes: %zu to %zu",
       policy, planted_here, of[0].bug, of[SETS - 1].bug);
}

int main(void) {
    omp_set_num_threads(1); // there is little to do in each of very many judgements
    bool whole = getenv("WHOLE") != NULL;
    sinkproof_model *model = open_model(whole ? "synthetic:tiny" : "synthetic:tiny,layers=2");
    size_t step = whole ? 1 : 45;
    try_policy(model, "f32", step);
    sinkproof_model_close(model);
    return tap_done();
}
