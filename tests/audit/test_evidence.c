// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What counts as evidence for a supposition, policies without a choice, and elements that have
// nothing in common.
#include "audit/diagnose/diagnose.h"
#include "audit/judge/judge_evidence.h"
#include "tests/shared/tap.h"

#include <string.h>

static void counts(void) {
    static const struct {
        sinkproof_evidence e; // outside, of these moved, moved and inside
        bool tells;
        const char *what;
    } cases[] = {
        {{0, 0, 0}, true, "nothing that has bounds is outside: not asked"},
        {{40, 40, 0}, true, "all that is outside is moved, and no more"},
        {{40, 40, 40}, true, "as much as is moved and inside"},
        {{40, 40, 41}, false, "less than is moved and inside"},
        {{1, 1, 9000}, false, "one element, where all would be moved"},
        {{1, 0, 0}, false, "nothing is moved"},
        {{40, 20, 0}, true, "half of what is outside is moved"},
        {{40, 19, 0}, false, "less than half of what is outside is moved"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ok(sinkproof_evidence_tells(&cases[i].e) == cases[i].tells, "%s: %s", cases[i].what,
           cases[i].tells ? "explained" : "not explained");
}

static bool has_no_choice(const sinkproof_policy *p) {
    bool none = true;
    for (int at = 0; at < AT_POINTS; at++) none = none && !p->at[at].optional;
    for (int s = 0; s < SINKPROOF_FORMED_COUNT; s++)
        none = none && __builtin_popcount(p->forms[s]) == 1;
    return none;
}

static void choices(void) {
    sinkproof_policy p;
    static const char *const names[] = {"f32", "openai-bf16", "bf16", "f16", "f32,A9=bf16?"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        ok(sinkproof_policy_parse(names[i], &p, NULL) && sinkproof_policy_is_open(&p) == (i > 1),
           "%s leaves roundings open: %s", names[i], i > 1 ? "yes" : "no");
        sinkproof_format as = p.at[AT_A9].format;
        for (int rounded = 0; rounded < 2; rounded++) {
            sinkproof_policy settled = p;
            sinkproof_policy_settle(&settled, rounded);
            bool left_out = !rounded && i > 1;
            ok(has_no_choice(&settled) && !sinkproof_policy_is_open(&settled) &&
                   settled.at[AT_A9].format == (left_out ? SINKPROOF_REAL : as),
               "%s settled, %s", names[i], rounded ? "rounded" : "left out");
        }
    }
    ok(sinkproof_policy_parse("f32,A9.form=lse-subtracted|lse-gated", &p, NULL), "two forms");
    sinkproof_policy_settle(&p, true);
    ok(p.forms[SINKPROOF_FORM_OF_A9] == 1u << SINKPROOF_A9_LSE_SUBTRACTED, "the first is left");
}

static void isolated(void) {
    sinkproof_point_report r = {.point = TRACE_A9, .rank = 3, .shape = {4, 24, 25}};
    static uint8_t marks[4 * 24 * 25];
    static const struct {
        size_t n, at[3][3];
        bool isolated;
        const char *what;
    } cases[] = {
        {0, {{0}}, false, "none"},
        {1, {{3, 5, 2}}, true, "one"},
        {2, {{3, 5, 2}, {0, 20, 4}}, true, "two that share no index"},
        {2, {{3, 5, 2}, {0, 5, 4}}, false, "two of one position"},
        {2, {{3, 5, 2}, {3, 20, 4}}, false, "two of one head"},
        {2, {{3, 5, 2}, {0, 9, 6}}, false, "two keys as far before their queries"},
        {3, {{3, 5, 2}, {0, 20, 4}, {1, 5, 19}}, false, "a third of the first one's position"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memset(marks, 0, sizeof marks);
        for (size_t m = 0; m < cases[i].n; m++)
            marks[(cases[i].at[m][0] * 24 + cases[i].at[m][1]) * 25 + cases[i].at[m][2]] = 1;
        ok(marks_are_isolated(&r, marks) == cases[i].isolated, "%s: %s", cases[i].what,
           cases[i].isolated ? "isolated" : "not isolated");
    }
    r = (sinkproof_point_report){.point = TRACE_A13, .rank = 2, .shape = {1, 1}};
    ok(!marks_are_isolated(&r, (const uint8_t[]){1}), "all there are: not isolated");
}

int main(void) {
    counts();
    choices();
    isolated();
    return tap_done();
}
