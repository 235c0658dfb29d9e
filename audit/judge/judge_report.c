// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Prints the report of a judgement. The kinds of numbers: sets are enclosed, shares of a set
// are exact quotients, medians and errors against the truth are estimated.
#include "audit/judge/judge_report.h"

#include "audit/judge/judge_finite.h"
#include "audit/trace/trace_points.h"
#include "base/share.h"
#include "base/words.h"
#include "model/json_number.h"

#include <math.h>
#include <string.h>

// One line of the table: a point in one layer, or over all layers.
typedef struct line {
    const char *name;
    sinkproof_verdict verdict;
    bool bridged;
    size_t elements, several, outside, unlikely;
    double share_worst, gain, limit, smallest, single; // of the layer nearest to failing
    double noise; // of the layer with the least power; infinite: none would be seen; 0: not asked
} line;

static void line_add_drift(line *out, const sinkproof_drift_result *r) {
    if (r->bin >= 0 && (out->limit == 0 || fabs(r->gain) / r->limit > fabs(out->gain) / out->limit))
        out->gain = r->gain, out->limit = r->limit;
}

// together: also take the drift of its layers together.
static void line_add_report(line *out, const sinkproof_point_report *r, bool together) {
    out->verdict = r->verdict > out->verdict ? r->verdict : out->verdict;
    out->bridged = out->bridged || r->bridged;
    out->elements += r->elements, out->several += r->several;
    out->outside += r->outside, out->unlikely += r->unlikely;
    out->share_worst = fmax(out->share_worst, r->share_worst);
    out->single = fmax(out->single, r->power_single);
    out->smallest = fmax(out->smallest, isfinite(r->drift.smallest) ? r->drift.smallest : 0);
    if (r->several > 0)
        out->noise = fmax(out->noise, r->bridged ? INFINITY : r->drift.spread.noise);
    line_add_drift(out, &r->drift);
    if (together && r->layers_together > 0) line_add_drift(out, &r->together);
}

static void print_line(FILE *out, const line *l) {
    sinkproof_share_text share = {"-"}, drift = {"-"},
                         single = sinkproof_share_percent(
                             sinkproof_count_share(l->elements - l->several, l->elements), 2);
    char gain[16] = "-", noise[16] = "-", width[16] = "1"; // a set of one value: one step is seen
    if (l->several > 0) share = sinkproof_share_digits(l->share_worst, 2);
    if (l->limit > 0 && isfinite(l->limit))
        drift = sinkproof_share_fixed(fabs(l->gain) / l->limit, 2);
    if (l->smallest > 0) snprintf(gain, sizeof gain, "%.1e", l->smallest);
    if (l->single >= HISTOGRAM_TOP)
        snprintf(width, sizeof width, ">%.0f", HISTOGRAM_TOP);
    else if (l->single > 0)
        snprintf(width, sizeof width, "%.1f", l->single);
    if (l->noise > 0 && isfinite(l->noise)) snprintf(noise, sizeof noise, "%.2g", l->noise);
    fprintf(out, "%-7s%s %9zu %8s %8zu %8zu %8s %5s | %7s %8s %7s | %s\n", l->name,
            l->bridged ? "~" : " ", l->elements, single.text, l->outside, l->unlikely, share.text,
            drift.text, gain, width, noise, sinkproof_verdict_name(l->verdict));
}

static void print_header(FILE *out) {
    fprintf(out, "%-8s %9s %8s %8s %8s %8s %5s | %24s |\n", "", "", "single-", "outside", "outside",
            "share of", "", "would see");
    fprintf(out, "%-8s %9s %8s %8s %8s %8s %5s | %7s %8s %7s | %s\n", "point", "elements", "valued",
            "honest", "likely", "set used", "drift", "factor", "one, ulp", "noise", "verdict");
}

// "drift of the layers together: A1 0.12, A12 1.93"
static void print_together(FILE *out, const sinkproof_judgement *j) {
    const char *between = "drift of all layers together, of its limit:";
    int column = 0;
    for (int p = 0; p < TRACE_POINTS; p++) {
        const sinkproof_point_report *r = NULL;
        for (size_t i = 0; i < j->n_reports; i++)
            if (j->reports[i].point == (sinkproof_trace_point)p &&
                j->reports[i].layers_together > 0)
                r = &j->reports[i];
        if (r == NULL || !isfinite(r->together.limit)) continue;
        column +=
            fprintf(out, "%s %s %s", between, sinkproof_trace_point_name(r->point),
                    sinkproof_share_fixed(fabs(r->together.gain) / r->together.limit, 2).text);
        between = column > 84 ? ",\n " : ",";
        column = column > 84 ? 0 : column;
    }
    if (between[0] == ',') fprintf(out, "\n");
}

static void print_table(FILE *out, const sinkproof_judgement *j, bool all) {
    print_header(out);
    for (size_t i = 0; all && i < j->n_reports; i++) {
        line l = {.name = j->reports[i].name};
        line_add_report(&l, &j->reports[i], false);
        print_line(out, &l);
    }
    for (int p = 0; !all && p < TRACE_POINTS; p++) {
        line l = {.name = sinkproof_trace_point_name((sinkproof_trace_point)p)};
        for (size_t i = 0; i < j->n_reports; i++)
            if (j->reports[i].point == (sinkproof_trace_point)p)
                line_add_report(&l, &j->reports[i], true);
        if (l.elements > 0) print_line(out, &l);
    }
    if (all) print_together(out, j);
    fprintf(out, "~ bridged: an input of the operation is not in the trace, so its set is wider\n");
}

// "(3, 1, 17)", and in a trace that is not one sequence from its start ", sequence 1, position 3"
static void print_index(FILE *out, const sinkproof_point_report *r) {
    fprintf(out, "(%s)", sinkproof_trace_index_text(r->rank, r->shape, r->worst_at).text);
    if (r->n_sequences > 1) fprintf(out, ", sequence %zu", r->sequence);
    if (r->n_sequences > 1 || r->begins > 0) fprintf(out, ", position %zu", r->position);
}

// The worst element is NaN: prints how many bounded elements are NaN, and where the worst is.
static void print_nan(FILE *out, const sinkproof_point_report *r) {
    fprintf(out, "%zu NaN; the set is bounded at ", r->nans - r->open_nans);
    print_index(out, r);
    fprintf(out, "\n");
}

static void print_element(FILE *out, const sinkproof_point_report *r) {
    fprintf(out, "  engine    %-24a %.9g\n", r->worst_value, r->worst_value);
    fprintf(out, "  emulation %-24a %.9g\n", r->worst_set.mid, r->worst_set.mid);
    fprintf(out, "  honest    [%a, %a] (enclosed)\n", r->worst_set.lo, r->worst_set.hi);
    if (r->worst_inputs[0] != '\0') fprintf(out, "  inputs    %s\n", r->worst_inputs);
}

static void print_bug(FILE *out, const sinkproof_judgement *j) {
    const sinkproof_point_report *r = j->first;
    fprintf(out, "\nFirst divergence: %s. Tensor is not what %s allows there.\n", r->name,
            j->policy.name);
    fprintf(out, "Mismatched elements: %zu / %zu (%s)\n", r->outside, r->elements,
            sinkproof_share_percent_digits(sinkproof_count_share(r->outside, r->elements), 3).text);
    if (isnan(r->worst_value)) {
        print_nan(out, r);
    } else {
        fprintf(out, "Greatest distance outside the honest set: %.3g ulp at index ", r->excess_ulp);
        print_index(out, r);
        fprintf(out, "\n");
    }
    print_element(out, r);
    size_t others = 0;
    for (size_t i = 0; i < j->n_reports; i++)
        others += j->reports[i].verdict == SINKPROOF_VERDICT_BUG;
    if (others > 1) {
        fprintf(out, "Also outside, judged each from its own inputs:\n ");
        for (size_t i = 0, shown = 0; i < j->n_reports && shown < 10; i++)
            if (j->reports[i].verdict == SINKPROOF_VERDICT_BUG && &j->reports[i] != r)
                fprintf(out, " %s", j->reports[i].name), shown++;
        if (others > 11) fprintf(out, " ... (%s in all)", sinkproof_counted(others, "point").text);
        fputs("\n", out);
    }
}

// Prints "Errors lean one way (common factor): -2.96e-08;" and the limit of chance.
static void print_lean(FILE *out, const char *what, const sinkproof_drift_result *r, double rate) {
    int digits = sinkproof_digits_apart(fabs(r->gain), r->limit, 3);
    fprintf(out,
            "%s (%s): %.*g;\n"
            "independent ones of either sign stay below %.*g (odds %g)\n",
            what, sinkproof_drift_bin_name(r->bin), digits, r->gain, digits, r->limit, rate);
}

static void print_suspicion(FILE *out, const sinkproof_judgement *j) {
    const sinkproof_point_report *r = j->first_suspicious;
    fprintf(out, "\nFirst suspicion: %s.\n", r->name);
    if (r->unlikely > 0) {
        fprintf(out,
                "%zu of %s %s unlikely: outside the likely set\n"
                "(fixed order, independent centred roundings: odds %g for the tensor; sorted sums "
                "leave "
                "it);\nthe worst is ",
                r->unlikely, sinkproof_counted(r->elements, "element").text,
                sinkproof_is_or_are(r->unlikely), j->rate);
        print_index(out, r);
        fprintf(out, "\n");
        print_element(out, r);
    }
    if (r->drift.bin >= 0 && !(fabs(r->drift.gain) <= r->drift.limit))
        print_lean(out, "Errors lean one way", &r->drift, j->rate);
    if (r->leans_together) {
        char what[256];
        snprintf(what, sizeof what,
                 "Errors of %s of %s lean one way together, in none too far alone",
                 sinkproof_counted(r->layers_together, "layer").text,
                 sinkproof_trace_point_name(r->point));
        print_lean(out, what, &r->together, j->rate);
    }
    if (!r->bridged && sinkproof_drift_spreads(&r->drift)) {
        const sinkproof_spread_result *spread = &r->drift.spread;
        int digits = sinkproof_digits_apart(spread->mean, spread->limit, 3);
        fprintf(out,
                "Errors are too large (%s): their squares %.*g times\n"
                "the variance of rounding to nearest; independent ones stay below %.*g (odds %g)\n",
                sinkproof_spread_part_name(spread->part), digits, spread->mean, digits,
                spread->limit, j->rate);
    }
}

// Prints ", base-2" for each admitted form whose fit equals `fitting`; the first without its comma.
static void print_forms(FILE *out, const sinkproof_judgement *j, sinkproof_formed stage,
                        bool fitting) {
    const char *comma = "";
    for (int form = 0; sinkproof_form_name(stage, form) != NULL; form++) {
        if (!sinkproof_policy_admits(&j->policy, stage, form)) continue;
        if ((j->forms_fitting[stage] >> form & 1) != fitting) continue;
        fprintf(out, "%s%s", comma, sinkproof_form_name(stage, form));
        comma = ", ";
    }
}

// "A9 fits one form only: base-2 (not definition, lse-gated)."
static void print_fitting(FILE *out, const sinkproof_judgement *j, bool all) {
    const char *gap = "\n"; // before the first line
    for (int s = 0; s < SINKPROOF_FORMED_COUNT; s++) {
        sinkproof_formed stage = (sinkproof_formed)s;
        int fitting = __builtin_popcount(j->forms_fitting[s]);
        const char *name = sinkproof_formed_name(stage);
        if (!j->forms_asked[s] || (fitting > 1 && !all)) continue;
        fprintf(out, "%s%.*s fits %s", gap, (int)(strlen(name) - strlen(".form")), name,
                fitting == 0   ? "no form alone, only the hull of "
                : fitting == 1 ? "one form only: "
                               : "several forms: ");
        print_forms(out, j, stage, fitting > 0);
        if (fitting > 0 && j->forms_fitting[s] != j->policy.forms[s]) {
            fprintf(out, " (not ");
            print_forms(out, j, stage, false);
            fprintf(out, ")");
        }
        fprintf(out, ".\n");
        gap = "";
    }
}

double sinkproof_error_relative(double square, const sinkproof_point_report *r) {
    return r->errors.truth > 0 ? sqrt(square / r->errors.truth) : NAN;
}

// Prints the error of the last traced point against the truth, and the operation that adds most to
// it.
static void print_inherited(FILE *out, const sinkproof_judgement *j) {
    const sinkproof_point_report *last = NULL, *most = NULL;
    for (size_t i = 0; i < j->n_reports; i++) {
        const sinkproof_point_report *r = &j->reports[i];
        if (!(r->errors.truth > 0) || !isfinite(r->errors.error)) continue;
        last = r;
        if (r->bridged) continue;
        if (most == NULL || sinkproof_error_relative(r->errors.local, r) >
                                sinkproof_error_relative(most->errors.local, most))
            most = r;
    }
    if (last == NULL) return;
    fprintf(out,
            "\nAgainst the truth end to end, relative in the 2-norm (estimated in binary64):\n");
    fprintf(out, "%s is off by %.3g; ", last->name,
            sinkproof_error_relative(last->errors.error, last));
    if (last->bridged)
        fprintf(out, "where that arose is not told: its inputs are not traced.\n");
    else
        fprintf(out, "%.3g arose in this operation, %.3g is inherited from its inputs.\n",
                sinkproof_error_relative(last->errors.local, last),
                sinkproof_error_relative(last->errors.inherited, last));
    if (most != NULL)
        fprintf(out, "Of the operations whose inputs are traced %s adds most: %.3g.\n", most->name,
                sinkproof_error_relative(most->errors.local, most));
}

// Which log-sum-exp the trace has, where nothing said it.
static void print_lse(FILE *out, const sinkproof_judgement *j) {
    size_t with = j->lse_outside[0], without = j->lse_outside[1];
    if (!j->lse_tried) return;
    if (with > 0 && without > 0)
        fprintf(out, "\nA9.lse fits neither with the sink (%zu outside) nor without it (%zu).\n",
                with, without);
    else if (with == without)
        fputs("\nA9.lse fits with the sink and without it.\n", out);
    else
        fprintf(out, "\nA9.lse fits %s the sink, and not %s it (%s outside).\n",
                with == 0 ? "with" : "without", with == 0 ? "without" : "with",
                sinkproof_counted(with + without, "element").text);
}

// What is said of a trace that is not one sequence from its start.
static void print_sequences(FILE *out, const sinkproof_judgement *j) {
    if (j->n_sequences > 1)
        fprintf(out, "\nThe trace holds %s, counted from 0%s\n",
                sinkproof_counted(j->n_sequences, "sequence").text,
                j->later ? "; one or more begin after position 0." : ".");
    else if (j->later)
        fprintf(out, "\nThe trace begins at position %zu.\n", j->begins);
    if (j->later)
        fputs("It is not compared with the truth end to end, which needs the tokens before.\n",
              out);
}

void sinkproof_judgement_print(FILE *out, const sinkproof_config *config,
                               const sinkproof_judgement *j, bool all) {
    print_table(out, j, all);
    print_fitting(out, j, all);
    if (j->first != NULL) print_bug(out, j);
    if (j->first_suspicious != NULL) print_suspicion(out, j);
    if (isfinite(j->thinnest_margin))
        fprintf(out, "\nRouting: the thinnest margin is %.3g, layer %zu, token %zu.\n",
                j->thinnest_margin, j->margin_layer, j->margin_token);
    char not_finite[SINKPROOF_NOT_FINITE_TEXT];
    sinkproof_not_finite_text(j, not_finite);
    if (not_finite[0] != '\0') fprintf(out, "\n%s", not_finite);
    judgement_print_undecided(out, config, j);
    print_lse(out, j);
    print_sequences(out, j);
    print_inherited(out, j);
}

// {"A9.form": "base-2"}: null where not exactly one form fits; stages that were not asked are
// absent.
static json_t *forms_json(const sinkproof_judgement *j) {
    json_t *o = json_object();
    for (int s = 0; s < SINKPROOF_FORMED_COUNT; s++) {
        sinkproof_formed stage = (sinkproof_formed)s;
        unsigned fitting = j->forms_fitting[s];
        if (!j->forms_asked[s]) continue;
        bool one = __builtin_popcount(fitting) == 1;
        json_object_set_new(o, sinkproof_formed_name(stage),
                            one ? json_string(sinkproof_form_name(stage, __builtin_ctz(fitting)))
                                : json_null());
    }
    return o;
}

static json_t *hex_json(double x) {
    char text[40];
    snprintf(text, sizeof text, "%a", x);
    return json_string(text);
}

static void add_counts(json_t *o, const sinkproof_point_report *r) {
    json_object_set_new(o, "elements", json_integer((json_int_t)r->elements));
    json_object_set_new(o, "several", json_integer((json_int_t)r->several));
    json_object_set_new(o, "outside", json_integer((json_int_t)r->outside));
    json_object_set_new(o, "unlikely", json_integer((json_int_t)r->unlikely));
    json_object_set_new(o, "undecided", json_integer((json_int_t)r->undecided));
    json_object_set_new(o, "nan", json_integer((json_int_t)r->nans));
    json_object_set_new(o, "infinite", json_integer((json_int_t)r->infinities));
}

void judgement_add_worst(json_t *o, size_t rank, const size_t *shape, size_t at, double excess_ulp,
                         double engine, const sinkproof_honest *set) {
    json_t *index = json_array();
    size_t index_d[SINKPROOF_MAX_RANK];
    sinkproof_trace_index(rank, shape, at, index_d);
    for (size_t d = 0; d < rank; d++)
        json_array_append_new(index, json_integer((json_int_t)index_d[d]));
    json_object_set_new(o, "excess_ulp", sinkproof_number_json(excess_ulp));
    json_object_set_new(o, "worst_index", index);
    json_object_set_new(o, "engine", hex_json(engine));
    json_object_set_new(o, "emulation", hex_json(set->mid));
    json_object_set_new(o, "honest_lo", hex_json(set->lo));
    json_object_set_new(o, "honest_hi", hex_json(set->hi));
}

static void add_drift(json_t *o, const sinkproof_drift_result *r) {
    json_object_set_new(o, "drift", sinkproof_number_json(r->gain));
    json_object_set_new(o, "drift_limit", sinkproof_number_json(r->limit));
    json_object_set_new(o, "drift_bin", json_string(sinkproof_drift_bin_name(r->bin)));
    json_object_set_new(o, "alike_rows", sinkproof_number_json(r->alike));
    json_object_set_new(o, "spread", sinkproof_number_json(r->spread.mean));
    json_object_set_new(o, "spread_limit", sinkproof_number_json(r->spread.limit));
    json_object_set_new(o, "spread_part", json_string(sinkproof_spread_part_name(r->spread.part)));
}

// The drift of the point's layers together; null if it was not asked.
static json_t *together_json(const sinkproof_point_report *r) {
    if (r->layers_together == 0) return json_null();
    return json_pack("{s:I, s:o, s:o, s:s, s:o, s:b}", "layers", (json_int_t)r->layers_together,
                     "drift", sinkproof_number_json(r->together.gain), "drift_limit",
                     sinkproof_number_json(r->together.limit), "drift_bin",
                     sinkproof_drift_bin_name(r->together.bin), "power_factor",
                     sinkproof_number_json(r->together.smallest), "suspicious",
                     (int)r->leans_together);
}

static json_t *point_json(const sinkproof_point_report *r) {
    json_t *o = json_object();
    json_object_set_new(o, "id", json_string(r->name));
    json_object_set_new(o, "ok", json_boolean(r->verdict <= SINKPROOF_VERDICT_WITHIN));
    json_object_set_new(o, "verdict", json_string(sinkproof_verdict_name(r->verdict)));
    json_object_set_new(o, "label", json_string("enclosed"));
    json_object_set_new(o, "bridged", json_boolean(r->bridged));
    add_counts(o, r);
    json_object_set_new(o, "worst",
                        sinkproof_number_json(r->outside > 0 ? INFINITY : r->share_worst));
    json_object_set_new(o, "bound", json_real(1));
    json_object_set_new(o, "share_median", sinkproof_number_json(r->share_median));
    judgement_add_worst(o, r->rank, r->shape, r->worst_at, r->excess_ulp, r->worst_value,
                        &r->worst_set);
    json_object_set_new(o, "inputs", json_string(r->worst_inputs));
    add_drift(o, &r->drift);
    json_object_set_new(o, "together", together_json(r));
    json_object_set_new(o, "power_noise_ulp",
                        sinkproof_number_json(r->bridged ? INFINITY : r->drift.spread.noise));
    json_object_set_new(o, "power_factor", sinkproof_number_json(r->drift.smallest));
    json_object_set_new(o, "power_single_ulp", sinkproof_number_json(r->power_single));
    json_object_set_new(o, "power_single_or_more", json_boolean(r->power_single >= HISTOGRAM_TOP));
    if (r->errors.truth > 0) {
        json_object_set_new(o, "error",
                            sinkproof_number_json(sinkproof_error_relative(r->errors.error, r)));
        json_object_set_new(
            o, "inherited",
            sinkproof_number_json(sinkproof_error_relative(r->errors.inherited, r)));
        json_object_set_new(o, "local",
                            sinkproof_number_json(sinkproof_error_relative(r->errors.local, r)));
    }
    return o;
}

void sinkproof_judgement_json(json_t *results, const char *trace_path,
                              const sinkproof_config *config, const sinkproof_judgement *j,
                              const char *override, int exit_code) {
    json_t *o = json_object();
    json_object_set_new(o, "id", json_string("judgement"));
    json_object_set_new(o, "ok", json_boolean(exit_code == 0));
    json_object_set_new(o, "trace", json_string(trace_path));
    json_object_set_new(o, "policy", json_string(j->policy.name));
    json_object_set_new(o, "verdict", json_string(sinkproof_verdict_name(j->verdict)));
    json_object_set_new(o, "first_divergence",
                        j->first != NULL ? json_string(j->first->name) : json_null());
    json_object_set_new(o, "first_suspicion",
                        j->first_suspicious != NULL ? json_string(j->first_suspicious->name)
                                                    : json_null());
    json_object_set_new(o, "explained_by", override != NULL ? json_string(override) : json_null());
    json_object_set_new(o, "forms", forms_json(j));
    json_object_set_new(o, "undecided", json_integer((json_int_t)j->undecided));
    json_object_set_new(o, "add", judgement_remedies_json(config, j));
    json_object_set_new(o, "thinnest_margin", sinkproof_number_json(j->thinnest_margin));
    json_array_append_new(results, o);
    for (size_t i = 0; i < j->n_reports; i++)
        json_array_append_new(results, point_json(&j->reports[i]));
}
