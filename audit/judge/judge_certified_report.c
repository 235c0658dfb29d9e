// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Prints the comparison with certified truth, and writes it as JSON.
#include "audit/judge/judge_certified_report.h"

#include "audit/trace/trace_points.h"
#include "base/words.h"
#include "model/json_number.h"

#include <math.h>
#include <string.h>

static const char *label_of(const certified_comparison *c) {
    return c->encloses ? "enclosed" : "estimated";
}

// ---- text

typedef struct word {
    char text[32];
} word;

static word number(double x) {
    word w = {"-"};
    if (x == INFINITY)
        snprintf(w.text, sizeof w.text, "infinite");
    else if (!isnan(x))
        snprintf(w.text, sizeof w.text, "%.3g", x);
    return w;
}

// Three digits where both bounds have them; else both.
static word span_text(certified_span s) {
    word lo = number(s.lo), hi = number(s.hi), both;
    if (strcmp(lo.text, hi.text) == 0) return lo;
    snprintf(both.text, sizeof both.text, "%.9s..%.9s", lo.text, hi.text);
    return both;
}

static word in_roundoffs(const certified_point *p, certified_span s) {
    double u = sinkproof_unit_roundoff(p->format); // a power of two: exact
    return span_text((certified_span){s.lo / u, s.hi / u});
}

static void print_point(FILE *out, const certified_point *p, bool staged) {
    fprintf(out, "%-8s %9s %9s %5s %9s %9s", p->name, span_text(p->rms).text,
            span_text(p->worst).text, sinkproof_format_name(p->format),
            in_roundoffs(p, p->rms).text, in_roundoffs(p, p->worst).text);
    if (staged)
        fprintf(out, " | %9s %9s | %9s %9s", number(p->local_rms).text, number(p->local_worst).text,
                number(p->inherited_rms).text, number(p->inherited_worst).text);
    fputs("\n", out);
}

// Whether no later point of its layer follows.
static bool ends_layer(const certified_comparison *c, size_t i) {
    const certified_point *p = &c->points[i], *next = p + 1;
    return i + 1 == c->n_points || !sinkproof_trace_point_is_layered(p->point) ||
           !sinkproof_trace_point_is_layered(next->point) || next->layer != p->layer;
}

static void print_file(FILE *out, const certified_comparison *c, const truth_file *file) {
    fprintf(out, "\nAgainst certified truth: %s\n", sinkproof_trace_path(file->trace));
    fprintf(out, "%s bits; it certifies the argmax of %zu of %s", file->bits, file->argmaxes,
            sinkproof_counted(file->tokens, "token").text);
    if (file->choices > 0)
        fprintf(out, ", and %zu of %s of experts", file->certain,
                sinkproof_counted(file->choices, "choice").text);
    fprintf(out, ".\n");
    if (file->routed)
        fputs("It is the truth with the experts that another trace chose: estimated.\n", out);
    else if (!c->encloses)
        fputs("Behind a choice of experts that is not certified it may be another model's: "
              "estimated.\n",
              out);
}

static void print_left_out(FILE *out, const certified_comparison *c) {
    size_t other = 0, zero = 0, not_finite = 0;
    for (size_t i = 0; i < c->n_points; i++) {
        const certified_point *p = &c->points[i];
        other += p->other, zero += p->zero, not_finite += p->not_finite;
    }
    if (other > 0)
        fprintf(out, "Left out at M4 to M10: %s with other experts, or in another order.\n",
                sinkproof_counted(other, "row").text);
    if (zero > 0) fprintf(out, "Left out: %s of zeros.\n", sinkproof_counted(zero, "row").text);
    if (not_finite > 0)
        fprintf(out, "%s of the engine %s not finite: the error is infinite.\n",
                sinkproof_counted(not_finite, "number").text, sinkproof_is_or_are(not_finite));
}

static void print_argmax(FILE *out, const certified_argmax *a) {
    if (a->tokens == 0) return;
    size_t certain = a->tokens - a->open;
    fprintf(out,
            "argmax certified for %zu of %s: the engine agrees in %zu, has a tie with it in %zu, "
            "differs in %zu",
            certain, sinkproof_counted(a->tokens, "token").text, a->agrees, a->ties, a->differs);
    if (a->differs > 0) fprintf(out, " (the first is token %zu)", a->first_differs);
    if (a->nans > 0) fprintf(out, ", has NaN in %zu", a->nans);
    fprintf(out, ".\n");
    if (a->open > 0)
        fprintf(out, "For %zu the truth itself is a tie within its radius.\n", a->open);
}

void sinkproof_certified_print(FILE *out, const certified_comparison *c, const truth_file *file,
                               bool all) {
    print_file(out, c, file);
    if (c->n_points == 0) {
        fputs("The trace has none of its points.\n", out);
        return;
    }
    fprintf(
        out,
        "Errors over the root mean square of the truth of the token (A6, A9, A10: of the head's "
        "row),\nand these in unit roundoffs of the format of the point.\n\n");
    fprintf(out, "%26send to end (%s)", "", label_of(c));
    if (c->staged)
        fprintf(out, "%*s |   arose (estimated) | came in (estimated)", c->encloses ? 7 : 6, "");
    fputs("\n", out);
    fprintf(out, "%-8s %9s %9s %5s %9s %9s%s\n", "point", "rms", "worst", "", "rms", "worst",
            c->staged ? " |       rms     worst |       rms     worst" : "");
    for (size_t i = 0; i < c->n_points; i++)
        if (all || ends_layer(c, i)) print_point(out, &c->points[i], c->staged);
    if (c->staged)
        fputs("arose: since the points of the file before it; came in: with the engine's values "
              "there\n",
              out);
    print_left_out(out, c);
    if (c->choices > 0)
        fprintf(out, "Other experts than the truth's: in %zu of %s.\n", c->otherwise,
                sinkproof_counted(c->choices, "choice").text);
    print_argmax(out, &c->argmax);
    fputs("No verdict follows from these numbers: what honest rounding adds up to is not bounded "
          "here.\n",
          out);
}

// ---- JSON

static json_t *span_json(certified_span s) {
    return json_pack("[o, o]", sinkproof_number_json(s.lo), sinkproof_number_json(s.hi));
}

static json_t *part_json(double rms, double worst) {
    return json_pack("{s:s, s:o, s:o}", "label", "estimated", "rms", sinkproof_number_json(rms),
                     "worst", sinkproof_number_json(worst));
}

static json_t *point_json(const certified_comparison *c, const certified_point *p) {
    json_t *index = json_array();
    size_t index_d[SINKPROOF_MAX_RANK];
    sinkproof_trace_index(p->rank, p->shape, p->worst_at, index_d);
    for (size_t d = 0; d < p->rank; d++)
        json_array_append_new(index, json_integer((json_int_t)index_d[d]));
    char id[48];
    snprintf(id, sizeof id, "%s.truth", p->name);
    json_t *o = json_pack("{s:s, s:s, s:b, s:s, s:s, s:I, s:s, s:f}", "id", id, "what",
                          "against certified truth", "ok", 1, "label", label_of(c), "point",
                          sinkproof_trace_point_name(p->point), "layer", (json_int_t)p->layer,
                          "format", sinkproof_format_name(p->format), "unit_roundoff",
                          sinkproof_unit_roundoff(p->format));
    json_t *more =
        json_pack("{s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "rows", (json_int_t)p->rows,
                  "other_experts", (json_int_t)p->other, "zero", (json_int_t)p->zero, "not_finite",
                  (json_int_t)p->not_finite, "rms", span_json(p->rms), "worst", span_json(p->worst),
                  "worst_index", index, "arose", part_json(p->local_rms, p->local_worst), "came_in",
                  part_json(p->inherited_rms, p->inherited_worst));
    json_object_update(o, more);
    json_decref(more);
    return o;
}

static json_t *argmax_json(const certified_argmax *a) {
    if (a->tokens == 0) return json_null();
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "tokens", (json_int_t)a->tokens,
                     "agrees", (json_int_t)a->agrees, "ties", (json_int_t)a->ties, "differs",
                     (json_int_t)a->differs, "nan", (json_int_t)a->nans, "open",
                     (json_int_t)a->open, "first_differs",
                     a->differs > 0 ? json_integer((json_int_t)a->first_differs) : json_null());
}

void sinkproof_certified_json(json_t *results, const certified_comparison *c,
                              const truth_file *file) {
    json_array_append_new(
        results,
        json_pack("{s:s, s:s, s:b, s:s, s:s, s:s, s:[I, I], s:[I, I], s:{s:I, s:I}, s:o}", "id",
                  "truth", "what", "the file of certified truth", "ok", 1, "label", label_of(c),
                  "file", sinkproof_trace_path(file->trace), "bits", file->bits, "argmax_certified",
                  (json_int_t)file->argmaxes, (json_int_t)file->tokens, "routing_certified",
                  (json_int_t)file->certain, (json_int_t)file->choices, "experts", "choices",
                  (json_int_t)c->choices, "otherwise", (json_int_t)c->otherwise, "argmax",
                  argmax_json(&c->argmax)));
    for (size_t i = 0; i < c->n_points; i++)
        json_array_append_new(results, point_json(c, &c->points[i]));
}
