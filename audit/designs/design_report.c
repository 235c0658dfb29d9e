// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The verdicts on an engine of a design, as text and as JSON.
#include "audit/designs/design_report.h"
#include "base/share.h"
#include "model/json_number.h"

// "exact" only if every set is a single value. The middle of a wider set is a sum in some library's
// order of summation: an engine that equals it is only within.
static const char *design_verdict_word(const design_verdict *v) {
    if (v->outside > 0) return "bug";
    if (v->elements == 0) return "undecided";
    return v->several == 0 ? "exact" : "within";
}

static json_t *first_json(const design_verdict *v) {
    if (v->outside == 0) return json_null();
    return json_pack("{s:I, s:I, s:I, s:o, s:o, s:o}", "head", (json_int_t)v->head, "row",
                     (json_int_t)v->row, "column", (json_int_t)v->column, "low",
                     sinkproof_number_json(v->lo), "high", sinkproof_number_json(v->hi), "found",
                     sinkproof_number_json(v->found));
}

static json_t *step_json(const design_verdict *v, const char *policy) {
    char id[64];
    snprintf(id, sizeof id, "%02zu.%s", v->layer->layer, design_tensor_name(v->tensor));
    return json_pack("{s:s, s:b, s:s, s:s, s:s, s:b, s:I, s:I, s:I, s:o, s:o, s:s}", "id", id, "ok",
                     v->outside == 0, "design", v->layer->design, "policy", policy, "verdict",
                     design_verdict_word(v), "bridged", v->bridged, "elements",
                     (json_int_t)v->elements, "outside", (json_int_t)v->outside, "unbounded",
                     (json_int_t)v->unbounded, "worst", sinkproof_number_json(v->worst), "first",
                     first_json(v), "missing", v->missing);
}

static void print_step(FILE *out, const design_verdict *v) {
    char id[64];
    sinkproof_share_text bounds = {"-"};
    snprintf(id, sizeof id, "%02zu.%s%s", v->layer->layer, design_tensor_name(v->tensor),
             v->bridged ? "~" : "");
    if (v->elements > 0) bounds = sinkproof_share_digits(v->worst, 2);
    fprintf(out, "%-10s %-22.60s %9zu %8zu %8s  %s", id, v->layer->design, v->elements, v->outside,
            bounds.text, design_verdict_word(v));
    if (v->missing[0] != '\0') fprintf(out, ": the file lacks %s", v->missing);
    if (v->unbounded > 0) fprintf(out, ", %zu without bounds", v->unbounded);
    fprintf(out, "\n");
}

static void print_first(FILE *out, const design_verdict *v) {
    bool keyed = v->tensor == DESIGN_BIAS || v->tensor == DESIGN_S || v->tensor == DESIGN_ALPHA;
    bool star = keyed && v->column == v->layer->rows;
    char column[40];
    snprintf(column, sizeof column, "%s %zu", keyed ? "key" : "coordinate", v->column);
    fprintf(out,
            "\nFirst outside: %02zu.%s, head %zu, row %zu, %s: expected %.9g to %.9g, found %.9g\n",
            v->layer->layer, design_tensor_name(v->tensor), v->head, v->row,
            star ? "the star" : column, v->lo, v->hi, v->found);
}

void sinkproof_design_print(FILE *out, const sinkproof_design_judgement *j, const char *policy) {
    const design_verdict *first = NULL;
    bool bridged = false;
    fprintf(out, "Each step from the engine's own inputs, policy %s\n\n", policy);
    fprintf(out, "%-10s %-22s %9s %8s %8s  %s\n", "tensor", "design", "elements", "outside",
            "bounds", "verdict");
    for (size_t k = 0; k < j->count; k++) {
        print_step(out, &j->verdicts[k]);
        if (first == NULL && j->verdicts[k].outside > 0) first = &j->verdicts[k];
        bridged = bridged || j->verdicts[k].bridged;
    }
    if (bridged) fprintf(out, "~ bridged: from more than one step, its set is wider\n");
    if (first != NULL) print_first(out, first);
}

json_t *sinkproof_design_json(const sinkproof_design_judgement *j, const char *policy) {
    json_t *results = json_array();
    for (size_t k = 0; k < j->count; k++)
        if (json_array_append_new(results, step_json(&j->verdicts[k], policy)) != 0) {
            json_decref(results);
            return NULL;
        }
    return results;
}
