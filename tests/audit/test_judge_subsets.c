// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Half a trace: whatever points and layers an honest engine's trace keeps, the judge never calls
// it a bug, nor suspicious; what it cannot decide it says so, and the points that it asks for
// decide it. Random subsets of the reference's traces under every policy, and the cases that once
// failed.
#include "audit/judge/judge_report.h"
#include "audit/trace/trace_points.h"
#include "base/splitmix.h"
#include "tests/shared/judged.h"
#include "tests/shared/opened.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <string.h>

// Subsets of each policy, SUBSETS=N of them: 16 unless it is said.
static size_t n_subsets(void) {
    const char *said = getenv("SUBSETS");
    return said != NULL ? strtoul(said, NULL, 10) : 10;
}

static const char *const policies[] = {"real-f64", "f32",  "bf16-operands", "openai-bf16",
                                       "hf-bf16",  "bf16", "f16",           "f32,A5=real"};

enum { TEXT = 4096 };

static uint64_t draw(uint64_t *seed, uint64_t below) {
    return (sinkproof_draw(seed) >> 33) % below;
}

static void keep_point(char *points, sinkproof_trace_point point, size_t layer) {
    char name[48];
    if (sinkproof_trace_point_is_layered(point))
        snprintf(name, sizeof name, "%02zu.%s", layer, sinkproof_trace_point_name(point));
    else
        snprintf(name, sizeof name, "%s", sinkproof_trace_point_name(point));
    if (points[0] != '\0') strcat(points, ",");
    strcat(points, name);
}

// A subset of points and of layers, and of their product; never empty.
static void draw_points(const sinkproof_config *config, uint64_t *seed, char *points) {
    const size_t layers = config->n_layers;
    points[0] = '\0';
    while (points[0] == '\0') {
        uint64_t kept[TRACE_POINTS], layer_kept = draw(seed, 1u << layers);
        uint64_t share = 1 + draw(seed, 9), thin = 4 + draw(seed, 7);
        for (int p = 0; p < TRACE_POINTS; p++) kept[p] = draw(seed, 10) < share;
        for (size_t l = 0; l < layers; l++)
            for (int p = 0; p < TRACE_POINTS; p++) {
                sinkproof_trace_point point = (sinkproof_trace_point)p;
                bool layered = sinkproof_trace_point_is_layered(point);
                bool here = layered ? (layer_kept >> l & 1) != 0 : l == 0;
                bool exists = point != TRACE_M5 && point != TRACE_M9 &&
                              sinkproof_trace_point_exists(config, point, l);
                if (kept[p] && here && exists && draw(seed, 10) < thin)
                    keep_point(points, point, l);
            }
    }
}

typedef struct tally {
    size_t runs, bugs, doubts, undecided, decided_nothing, asked, unhelped;
} tally;

// The points that the judge asked for, added: is every point decided then?
static bool remedy_decides(const sinkproof_model *model, const char *policy, size_t n,
                           uint64_t seed, const char *points, const sinkproof_judgement *j) {
    char more[2 * TEXT];
    snprintf(more, sizeof more, "%s", points);
    json_t *add = judgement_remedies_json(sinkproof_model_config(model), j);
    for (size_t i = 0; i < json_array_size(add); i++) {
        strcat(more, ",");
        strcat(more, json_string_value(json_array_get(add, i)));
    }
    json_decref(add);
    sinkproof_judgement k =
        judged(model, &sinkproof_reference_stages, policy, policy, n, 0, seed, more);
    size_t still = 0;
    for (size_t i = 0; i < j->n_reports; i++)
        for (size_t o = 0; o < k.n_reports; o++)
            still += j->reports[i].verdict == SINKPROOF_VERDICT_UNDECIDED &&
                     strcmp(j->reports[i].name, k.reports[o].name) == 0 &&
                     k.reports[o].verdict == SINKPROOF_VERDICT_UNDECIDED;
    if (still > 0)
        note("%s, %zu tokens: %zu points still undecided: %.300s", policy, n, still, more);
    sinkproof_judgement_free(&k);
    return still == 0;
}

static void try_subset(const sinkproof_model *model, const char *policy, size_t n, uint64_t seed,
                       const char *points, tally *t) {
    sinkproof_judgement j =
        judged(model, &sinkproof_reference_stages, policy, policy, n, 0, seed, points);
    t->runs++;
    t->bugs += j.verdict == SINKPROOF_VERDICT_BUG;
    t->doubts += j.verdict == SINKPROOF_VERDICT_SUSPICIOUS;
    t->undecided += j.undecided > 0;
    t->decided_nothing += j.verdict == SINKPROOF_VERDICT_UNDECIDED;
    if (j.verdict >= SINKPROOF_VERDICT_SUSPICIOUS) {
        const sinkproof_point_report *r = j.first != NULL ? j.first : j.first_suspicious;
        note("%s, %zu tokens, seed %llu: %s at %s: %.400s", policy, n, (unsigned long long)seed,
             sinkproof_verdict_name(j.verdict), r->name, points);
    }
    if (j.undecided > 0 && t->runs % 4 == 0) {
        t->asked++;
        t->unhelped += !remedy_decides(model, policy, n, seed, points, &j);
    }
    sinkproof_judgement_free(&j);
}

static void subsets_under(const sinkproof_model *model, const char *policy, uint64_t seed) {
    tally t = {0};
    char points[TEXT];
    for (size_t s = 0; s < n_subsets(); s++) {
        draw_points(sinkproof_model_config(model), &seed, points);
        try_subset(model, policy, 1 + draw(&seed, 24), 1000 + (uint64_t)s, points, &t);
    }
    ok(t.bugs == 0 && t.doubts == 0 && t.runs > 0 && t.runs == n_subsets(),
       "%s: %zu random subsets of honest traces, %zu called a bug, %zu suspicious (%zu with points "
       "undecided, %zu deciding nothing)",
       policy, t.runs, t.bugs, t.doubts, t.undecided, t.decided_nothing);
    ok(t.unhelped == 0, "%s: of %zu subsets with points undecided, the points to add left %zu so",
       policy, t.asked, t.unhelped);
}

// Traces that were once convicted: without M3 and M6 the likeliest expert was taken for known.
static void pinned(const sinkproof_model *model) {
    static const char *const points[] = {"A13,M12",        "A13,M3,M12", "00.A13,00.M12,F1,F2",
                                         "T0,A13,M2,M12",  "02.M12",     "M6,M12",
                                         "A13,M4,M10,M12", "A13,M8,M12", "A1,M3,F2"};
    for (size_t p = 0; p < sizeof points / sizeof points[0]; p++) {
        tally t = {0};
        try_subset(model, "bf16", 64, 4, points[p], &t);
        ok(t.bugs == 0 && t.doubts == 0, "bf16, %s: %zu called a bug, %zu suspicious", points[p],
           t.bugs, t.doubts);
    }
}

int main(void) {
    sinkproof_model *model = open_model("synthetic:tiny,layers=3");
    sinkproof_model *short_one = open_model("synthetic:tiny,seed=3,layers=3");
    pinned(model);
    for (size_t p = 0; p < sizeof policies / sizeof policies[0]; p++)
        subsets_under(short_one, policies[p], 77 + p);
    sinkproof_model_close(model), sinkproof_model_close(short_one);
    return tap_done();
}
