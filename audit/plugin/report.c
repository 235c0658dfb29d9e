// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The report on a plug-in: a line for each stage, and for each failing stage its smallest failing
// call, the error, the command that repeats it, and traits that only failing calls have.
#include "audit/plugin/drive.h"

#include "base/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sinkproof_verdict stage_verdict(const stage_result *r) {
    if (r->failing > 0) return SINKPROOF_VERDICT_BUG;
    if (r->suspicious > 0) return SINKPROOF_VERDICT_SUSPICIOUS;
    return r->undecided == r->calls ? SINKPROOF_VERDICT_UNDECIDED : SINKPROOF_VERDICT_WITHIN;
}

int results_exit_code(const stage_result *results, size_t n, bool strict) {
    bool bug = false, suspicious = false, open = false, decided = false;
    for (size_t i = 0; i < n; i++) {
        sinkproof_verdict verdict = stage_verdict(&results[i]);
        bug = bug || verdict == SINKPROOF_VERDICT_BUG;
        suspicious = suspicious || verdict == SINKPROOF_VERDICT_SUSPICIOUS;
        open = open || verdict == SINKPROOF_VERDICT_UNDECIDED;
        decided = decided || verdict != SINKPROOF_VERDICT_UNDECIDED;
    }
    if (bug || (suspicious && strict)) return 1;
    return suspicious || !decided || (open && strict) ? 4 : 0;
}

// Prints the traits that all failing calls have and that the fewest other calls have, if less than
// half of these do.
static void print_traits(FILE *out, const stage_result *r) {
    size_t passing = r->calls - r->failing, best = PLUGIN_TRAITS;
    for (size_t t = 0; t < PLUGIN_TRAITS; t++)
        if (r->failing_with[t] == r->failing && 2 * r->passing_with[t] < passing &&
            (best == PLUGIN_TRAITS || r->passing_with[t] < r->passing_with[best]))
            best = t;
    if (r->failing < 3 || best == PLUGIN_TRAITS) return;
    fprintf(out, "    all %s %s", sinkproof_counted(r->failing, "failing call").text,
            trait_sentence(best));
    if (r->passing_with[best] == 0)
        fprintf(out, ", and no other call does\n");
    else
        fprintf(out, "; so do %zu of the %s\n", r->passing_with[best],
                sinkproof_counted(passing, "other").text);
}

static void print_stage(FILE *out, const stage_result *r, const char *again) {
    char text[CASE_TEXT];
    if (r->failing + r->suspicious == 0) return;
    case_print(&r->at, text);
    fprintf(out, "\n%s: %s\n", r->stage->name, r->worst.why);
    fprintf(out, "    %s: %s\n",
            r->failing > 0 ? "the smallest call that fails" : "a suspicious call", text);
    if (again != NULL) fprintf(out, "    again: %s --case %s\n", again, text);
    print_traits(out, r);
    stage_result_print_cause(out, r);
    if (r->left_out) fprintf(out, "    the other calls of this stage were left out\n");
}

// Which log-sum-exp the calls have.
static void print_lse(FILE *out, const stage_result *r) {
    const size_t *outside = r->lse.outside, kind = r->lse.kind, other = 1 - kind;
    const char *what = stage_reads_lse(r->stage) ? "dA9.lse" : "A9.lse";
    static const char *const with[LSE_KINDS] = {"with", "without"};
    if (r->lse.calls == 0) return;
    if (!r->lse.tried)
        fprintf(out, "\n%s is judged %s the sink, as is said of it.\n", what, with[kind]);
    else if (outside[kind] > 0)
        fprintf(out, "\n%s fits neither with the sink (%s outside) nor without it (%zu).\n", what,
                sinkproof_counted(outside[LSE_WITH_SINK], "call").text, outside[LSE_OF_KEYS]);
    else if (outside[other] == 0)
        fprintf(out, "\n%s fits with the sink and without it.\n", what);
    else
        fprintf(out, "\n%s fits %s the sink, and not %s it (%s outside).\n", what, with[kind],
                with[other], sinkproof_counted(outside[other], "call").text);
}

static void print_result(FILE *out, const stage_result *r, int width) {
    fprintf(out, "%-*s %6zu %8zu %11zu %10zu %11zu  %s\n", width, r->stage->name, r->calls,
            r->failing, r->suspicious, r->undecided, r->not_served,
            r->calls == 0 ? "not served" : sinkproof_verdict_name(stage_verdict(r)));
}

static json_t *stage_result_json(const stage_result *r, const char *again) {
    char text[CASE_TEXT];
    sinkproof_verdict verdict = stage_verdict(r);
    json_t *o =
        json_pack("{s:s, s:b, s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "id", r->stage->name, "ok",
                  (int)(verdict <= SINKPROOF_VERDICT_WITHIN), "label", "judged", "verdict",
                  sinkproof_verdict_name(verdict), "calls", (json_int_t)r->calls, "failing",
                  (json_int_t)r->failing, "suspicious", (json_int_t)r->suspicious, "undecided",
                  (json_int_t)r->undecided, "not_served", (json_int_t)r->not_served);
    if (o != NULL && r->lse.calls > 0)
        json_object_set_new(o, "lse",
                            json_pack("{s:s, s:b, s:I}", "kind", lse_word(r->lse.kind), "tried",
                                      (int)r->lse.tried, "calls", (json_int_t)r->lse.calls));
    if (o == NULL || r->failing + r->suspicious == 0) return o;
    case_print(&r->at, text);
    json_object_set_new(o, "case", json_string(text));
    json_object_set_new(o, "why", json_string(r->worst.why));
    json_object_set_new(o, "cause", stage_result_cause_json(r));
    if (again != NULL) json_object_set_new(o, "command", json_sprintf("%s --case %s", again, text));
    return o;
}

static void print_results(FILE *out, const stage_result *results, size_t n, const char *title,
                          const char *again, int code) {
    static const char *const words[] = {"within what honest rounding can do", "a bug", "", "",
                                        "suspicious, or nothing decided"};
    int width = 13; // of the longest name
    for (size_t i = 0; i < n; i++)
        if (strlen(results[i].stage->name) > (size_t)width)
            width = (int)strlen(results[i].stage->name);
    fprintf(out, "%s\n%-*s %6s %8s %11s %10s %11s  %s\n", title, width, "stage", "calls", "failing",
            "suspicious", "undecided", "not served", "verdict");
    for (size_t i = 0; i < n; i++) print_result(out, &results[i], width);
    for (size_t i = 0; i < n; i++) print_lse(out, &results[i]);
    for (size_t i = 0; i < n; i++) print_stage(out, &results[i], again);
    fprintf(out, "\nVerdict: %s (exit %d).\n", words[code], code);
}

bool results_write_report(const stage_result *results, size_t n, const char *title,
                          const char *again, int code, sinkproof_plugin_ruling *ruling,
                          sinkproof_error *error) {
    size_t length;
    ruling->exit = code;
    FILE *out = open_memstream(&ruling->text, &length);
    ruling->results = json_array();
    if (out != NULL) print_results(out, results, n, title, again, code);
    bool good = out != NULL && fclose(out) == 0 && ruling->results != NULL;
    for (size_t i = 0; good && i < n; i++)
        good = json_array_append_new(ruling->results, stage_result_json(&results[i], again)) == 0;
    return good || sinkproof_fail(error, "no memory for a report");
}
