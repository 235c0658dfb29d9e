// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Prints the report on gradients: sets are enclosed, shares of a set exact quotients.
#include "audit/judge/judge_backward_report.h"

#include "audit/judge/judge_report.h"
#include "audit/trace/trace_points.h"
#include "base/share.h"
#include "base/words.h"
#include "model/json_number.h"

#include <math.h>
#include <string.h>

// A gradient in one layer, or over all layers.
typedef struct line {
    const char *name, *statement;
    sinkproof_verdict verdict;
    size_t elements, several, outside, undecided;
    double share;
} line;

// "dA4.q" of "03.dA4.q"
static const char *without_layer(const char *name) {
    size_t digits = strspn(name, "0123456789");
    return digits > 0 ? name + digits + 1 : name;
}

static void add(line *to, const sinkproof_gradient_report *r) {
    to->statement = r->statement;
    to->verdict = r->verdict > to->verdict ? r->verdict : to->verdict;
    to->elements += r->elements, to->several += r->several;
    to->outside += r->outside, to->undecided += r->undecided;
    to->share = fmax(to->share, r->share_worst);
}

static void print_line(FILE *out, const line *l) {
    sinkproof_share_text share = {"-"};
    if (l->several > 0) share = sinkproof_share_digits(l->share, 2);
    fprintf(out, "%-16s %10zu %8s %8zu %9zu %8s %-18s | %s\n", l->name, l->elements,
            sinkproof_share_percent(sinkproof_count_share(l->elements - l->several, l->elements), 2)
                .text,
            l->outside, l->undecided, share.text, l->statement, sinkproof_verdict_name(l->verdict));
}

static bool named_before(const sinkproof_gradient_judgement *j, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (strcmp(without_layer(j->reports[k].name), without_layer(j->reports[i].name)) == 0)
            return true;
    return false;
}

static void print_table(FILE *out, const sinkproof_gradient_judgement *j, bool all) {
    fprintf(out, "\n%-16s %10s %8s %8s %9s %8s %-18s |\n", "", "", "single-", "outside", "",
            "share of", "");
    fprintf(out, "%-16s %10s %8s %8s %9s %8s %-18s | %s\n", "gradient", "elements", "valued",
            "honest", "undecided", "set used", "statement", "verdict");
    for (size_t i = 0; i < j->n_reports; i++) {
        line l = {.name = all ? j->reports[i].name : without_layer(j->reports[i].name)};
        if (!all && named_before(j, i)) continue;
        for (size_t k = i; k < j->n_reports; k++)
            if (k == i || (!all && strcmp(without_layer(j->reports[k].name), l.name) == 0))
                add(&l, &j->reports[k]);
        print_line(out, &l);
    }
}

static void print_missing(FILE *out, const sinkproof_gradient_judgement *j) {
    size_t open = 0, shown = 0;
    for (size_t i = 0; i < j->n_reports; i++) open += j->reports[i].missing[0] != '\0';
    if (open == 0) return;
    fprintf(out, "Undecided, and what the trace lacks for it:");
    for (size_t i = 0; i < j->n_reports && shown < 6; i++)
        if (j->reports[i].missing[0] != '\0')
            fprintf(out, "%s %s: %s", shown++ > 0 ? ";" : "", j->reports[i].name,
                    j->reports[i].missing);
    if (open > shown)
        fprintf(out, "; and %s more", sinkproof_counted(open - shown, "gradient").text);
    fprintf(out, ".\n");
}

static void print_first(FILE *out, const sinkproof_gradient_judgement *j, const char *policy) {
    const sinkproof_gradient_report *r = j->first;
    const char *at = sinkproof_trace_index_text(r->rank, r->shape, r->worst_at).text;
    size_t others = 0, shown = 0;
    fprintf(out, "\nFirst divergence going back: %s (%s). It is not what %s allows there.\n",
            r->name, r->statement, policy);
    fprintf(out, "Mismatched elements: %zu / %zu (%s)\n", r->outside, r->elements,
            sinkproof_share_percent_digits(sinkproof_count_share(r->outside, r->elements), 3).text);
    if (isnan(r->worst_value))
        fprintf(out, "%zu NaN; the set is bounded at index (%s)\n", r->nans - r->open_nans, at);
    else
        fprintf(out, "Greatest distance outside the honest set: %.3g ulp at index (%s)\n",
                r->excess_ulp, at);
    fprintf(out, "  engine    %-24a %.9g\n", r->worst_value, r->worst_value);
    fprintf(out, "  emulation %-24a %.9g\n", r->worst_set.mid, r->worst_set.mid);
    fprintf(out, "  honest    [%a, %a] (enclosed)\n", r->worst_set.lo, r->worst_set.hi);
    for (size_t i = 0; i < j->n_reports; i++)
        others += j->reports[i].verdict == SINKPROOF_VERDICT_BUG;
    if (others > 1) fprintf(out, "Gradients outside, judged each from its own inputs:\n ");
    for (size_t i = 0; others > 1 && i < j->n_reports && shown < 10; i++)
        if (j->reports[i].verdict == SINKPROOF_VERDICT_BUG && &j->reports[i] != r)
            fprintf(out, " %s", j->reports[i].name), shown++;
    if (others > 11) fprintf(out, " ... (%s in all)", sinkproof_counted(others, "gradient").text);
    if (others > 1) fprintf(out, "\n");
    for (size_t i = 0; i < j->n_reports; i++)
        if (j->reports[i].verdict == SINKPROOF_VERDICT_BUG && j->reports[i].cause[0] != '\0')
            fprintf(out, "cause of %s: %s\n", j->reports[i].name, j->reports[i].cause);
}

void sinkproof_gradients_print(FILE *out, const sinkproof_gradient_judgement *j, const char *policy,
                               bool all) {
    if (j->n_reports == 0) return;
    print_table(out, j, all);
    fprintf(out, "%s\n", j->freedoms);
    print_missing(out, j);
    if (j->first != NULL) print_first(out, j, policy);
}

// ---- JSON ------------------------------------------------------------------------------------

static json_t *text_or_null(const char *text) {
    return text[0] != '\0' ? json_string(text) : json_null();
}

static json_t *row_json(const sinkproof_gradient_report *r) {
    json_t *o = json_object();
    json_object_set_new(o, "id", json_string(r->name));
    json_object_set_new(o, "ok", json_boolean(r->verdict <= SINKPROOF_VERDICT_WITHIN));
    json_object_set_new(o, "verdict", json_string(sinkproof_verdict_name(r->verdict)));
    json_object_set_new(o, "label", json_string("enclosed"));
    json_object_set_new(o, "statement", json_string(r->statement));
    json_object_set_new(o, "elements", json_integer((json_int_t)r->elements));
    json_object_set_new(o, "several", json_integer((json_int_t)r->several));
    json_object_set_new(o, "outside", json_integer((json_int_t)r->outside));
    json_object_set_new(o, "undecided", json_integer((json_int_t)r->undecided));
    json_object_set_new(o, "nan", json_integer((json_int_t)r->nans));
    json_object_set_new(o, "infinite", json_integer((json_int_t)r->infinities));
    json_object_set_new(o, "worst",
                        sinkproof_number_json(r->outside > 0 ? INFINITY : r->share_worst));
    json_object_set_new(o, "bound", json_real(1));
    json_object_set_new(o, "missing", text_or_null(r->missing));
    json_object_set_new(o, "cause", text_or_null(r->cause));
    judgement_add_worst(o, r->rank, r->shape, r->worst_at, r->excess_ulp, r->worst_value,
                        &r->worst_set);
    return o;
}

void sinkproof_gradients_json(json_t *results, const sinkproof_gradient_judgement *j) {
    if (j->n_reports == 0) return;
    json_t *said = json_object();
    json_object_set_new(said, "count", json_integer((json_int_t)j->n_reports));
    json_object_set_new(said, "undecided", json_integer((json_int_t)j->undecided));
    json_object_set_new(said, "verdict", json_string(sinkproof_verdict_name(j->verdict)));
    json_object_set_new(said, "first_divergence",
                        j->first != NULL ? json_string(j->first->name) : json_null());
    json_object_set_new(said, "cause",
                        j->first != NULL ? text_or_null(j->first->cause) : json_null());
    json_object_set_new(json_array_get(results, 0), "gradients", said);
    for (size_t i = 0; i < j->n_reports; i++)
        json_array_append_new(results, row_json(&j->reports[i]));
}
