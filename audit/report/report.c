// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The page of a judgement, from the verdict in a sentence down to where each number comes from.
#include "audit/report/report.h"

#include "audit/judge/judge_finite.h"
#include "audit/report/chart.h"
#include "audit/report/gradients.h"
#include "audit/report/page.h"
#include "audit/report/verdicts.h"
#include "audit/trace/trace_points.h"
#include "audit/version.h"
#include "base/fnv.h"
#include "base/share.h"
#include "base/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

// The data of every part of the page.
typedef struct part {
    FILE *page;
    const sinkproof_model *model;
    const char *model_name;
    const sinkproof_page_trial *trial;
    const sinkproof_judgement *j;
} part;

static bool is_outside(const sinkproof_point_report *r) {
    return r->verdict >= SINKPROOF_VERDICT_SUSPICIOUS;
}

// ---- the verdict in a sentence ---------------------------------------------------------------

static void write_index(FILE *page, const sinkproof_point_report *r) {
    fprintf(page, "(%s)", sinkproof_trace_index_text(r->rank, r->shape, r->worst_at).text);
}

static void write_note(FILE *page, const char *note) {
    if (note[0] == '\0') return;
    fputs("<p><b>", page);
    sinkproof_page_text(page, note);
    fputs("</b></p>\n", page);
}

static void write_sentence(const part *p) {
    const sinkproof_judgement *j = p->j;
    const sinkproof_point_report *r = j->first != NULL ? j->first : j->first_suspicious;
    const sinkproof_gradient_judgement *back = sinkproof_ruling_gradients(p->trial->ruling);
    sinkproof_verdict verdict = sinkproof_ruling_verdict(p->trial->ruling);
    fprintf(p->page, "<h1 class=\"%s\">", verdict_css_class(verdict));
    if (j->first == NULL && write_gradient_title(p->page, back, j->policy.name))
        ; // said
    else if (verdict == SINKPROOF_VERDICT_UNDECIDED)
        fputs(j->open_nans > 0 ? "Undecided: NaN where nothing bounds what an honest engine has"
                               : "Undecided: this trace decides nothing",
              p->page);
    else if (r == NULL)
        sinkproof_page_say(p->page, "Within what honest rounding can do under %s", j->policy.name);
    else if (j->first != NULL)
        sinkproof_page_say(p->page, "A bug at %s: %zu of %s are not what %s allows", r->name,
                           r->outside, sinkproof_counted(r->elements, "element").text,
                           j->policy.name);
    else
        sinkproof_page_say(p->page, "Suspicious at %s: nothing is outside what %s allows, but odds",
                           r->name, j->policy.name);
    fputs("</h1>\n", p->page);
    write_note(p->page, sinkproof_ruling_model_note(p->trial->ruling));
    write_note(p->page, sinkproof_ruling_declared_note(p->trial->ruling));
    fputs("<p>", p->page);
    const char *cause = sinkproof_ruling_explained_by(p->trial->ruling);
    if (cause != NULL)
        sinkproof_page_say(p->page, "Every point that fails would be within under %s. ", cause);
    else if (r != NULL && sinkproof_ruling_asked_cause(p->trial->ruling))
        fputs("No known change of the policy explains it. ", p->page);
    if (j->undecided > 0)
        sinkproof_page_say(p->page, "%zu of %s are undecided. ", j->undecided,
                           sinkproof_counted(j->n_reports, "point").text);
    char not_finite[SINKPROOF_NOT_FINITE_TEXT];
    sinkproof_not_finite_text(j, not_finite);
    sinkproof_page_say(p->page, "%s", not_finite);
    const char *engine = sinkproof_trace_metadata(p->trial->trace, "engine");
    sinkproof_page_say(p->page, "Engine: %s. %s, %s.", engine != NULL ? engine : "not named",
                       sinkproof_counted(j->n_tokens, "token").text,
                       sinkproof_counted(j->n_layers, "layer").text);
    fputs("</p>\n<p>The command that shows it again:</p>\n<pre>", p->page);
    sinkproof_page_say(p->page, "sinkproof judge %s %s --policy '%s' --rate %g%s", p->model_name,
                       p->trial->name, j->policy.name, j->rate,
                       sinkproof_ruling_model_note(p->trial->ruling)[0] != '\0' ? " --any-model"
                                                                                : "");
    fputs("</pre>\n", p->page);
}

// ---- layer x point ---------------------------------------------------------------------------

typedef void cell_writer(FILE *page, const sinkproof_point_report *r);

static void write_set_cell(FILE *page, const sinkproof_point_report *r) {
    if (r->outside > 0)
        fprintf(page, "%zu", r->outside);
    else if (r->verdict == SINKPROOF_VERDICT_UNDECIDED)
        fputs("?", page);
    else if (r->several > 0)
        fputs(sinkproof_share_fixed(r->share_worst, 2).text, page);
    else
        fputs("=", page);
}

static void write_drift_cell(FILE *page, const sinkproof_point_report *r) {
    bool asked = r->drift.bin >= 0 && isfinite(r->drift.limit) && r->drift.limit > 0;
    if (asked)
        fputs(sinkproof_share_fixed(fabs(r->drift.gain) / r->drift.limit, 2).text, page);
    else
        fputs("&nbsp;", page);
}

static void write_together_cell(FILE *page, const sinkproof_point_report *r) {
    bool asked = r->layers_together > 0 && isfinite(r->together.limit) && r->together.limit > 0;
    const char *class = sinkproof_drift_leans(&r->together) ? "suspicious" : "within";
    if (!asked) {
        fputs("<td></td>", page);
        return;
    }
    fprintf(page, "<td class=\"%s\" title=\"%s of %s together\">%s</td>", class,
            sinkproof_trace_point_name(r->point),
            sinkproof_counted(r->layers_together, "layer").text,
            sinkproof_share_fixed(fabs(r->together.gain) / r->together.limit, 2).text);
}

static void write_local_cell(FILE *page, const sinkproof_point_report *r) {
    double local = sinkproof_error_relative(r->errors.local, r);
    if (isfinite(local))
        fprintf(page, "%.0e", local);
    else
        fputs("&nbsp;", page);
}

static const sinkproof_point_report *report_at(const sinkproof_judgement *j, int point,
                                               size_t layer) {
    for (size_t i = 0; i < j->n_reports; i++)
        if ((int)j->reports[i].point == point && j->reports[i].layer == layer)
            return &j->reports[i];
    return NULL;
}

// A layer of a point whose layers were judged together; NULL: they were not.
static const sinkproof_point_report *together_report_find(const sinkproof_judgement *j, int point) {
    for (size_t i = 0; i < j->n_reports; i++)
        if ((int)j->reports[i].point == point && j->reports[i].layers_together > 0)
            return &j->reports[i];
    return NULL;
}

static void write_together(const part *p, int point) {
    const sinkproof_point_report *r = together_report_find(p->j, point);
    if (r != NULL)
        write_together_cell(p->page, r);
    else
        fputs("<td></td>", p->page);
}

static void write_row(const part *p, int point, cell_writer *write) {
    bool layered = sinkproof_trace_point_is_layered((sinkproof_trace_point)point);
    fprintf(p->page, "<tr><th>%s</th>", sinkproof_trace_point_name((sinkproof_trace_point)point));
    for (size_t l = 0; l < (layered ? p->j->n_layers : 1); l++) {
        const sinkproof_point_report *r = report_at(p->j, point, l);
        if (r == NULL) {
            fputs("<td></td>", p->page);
            continue;
        }
        fprintf(p->page, "<td class=\"%s\" title=\"", sinkproof_verdict_name(r->verdict));
        sinkproof_page_say(p->page, "%s: %s; %s, %zu outside the honest set, %zu unlikely", r->name,
                           sinkproof_verdict_name(r->verdict),
                           sinkproof_counted(r->elements, "element").text, r->outside, r->unlikely);
        fputs("\">", p->page);
        write(p->page, r);
        fputs("</td>", p->page);
    }
    if (write == write_drift_cell && layered) write_together(p, point);
    fputs("</tr>\n", p->page);
}

static void write_map(const part *p, const char *title, bool open, cell_writer *write) {
    fprintf(p->page, "<details%s><summary>%s</summary>\n<div class=\"wide\"><table class=\"map\">",
            open ? " open" : "", title);
    fputs("<thead><tr><th>layer</th>", p->page);
    for (size_t l = 0; l < p->j->n_layers; l++) fprintf(p->page, "<th>%zu</th>", l);
    if (write == write_drift_cell) fputs("<th>together</th>", p->page);
    fputs("</tr></thead>\n<tbody>", p->page);
    for (int point = 0; point < TRACE_POINTS; point++) {
        bool traced = false;
        for (size_t i = 0; i < p->j->n_reports; i++)
            traced = traced || (int)p->j->reports[i].point == point;
        if (traced) write_row(p, point, write);
    }
    fputs("</tbody></table></div></details>\n", p->page);
}

static void write_maps(const part *p) {
    bool compared = false;
    for (size_t i = 0; i < p->j->n_reports; i++)
        compared = compared || p->j->reports[i].errors.truth > 0;
    fputs("<h2>Every operation, from its own inputs</h2>\n", p->page);
    write_map(p,
              "The largest share of its honest set that an element uses; = where every set is one "
              "value; a whole number counts the elements outside",
              true, write_set_cell);
    write_map(p,
              "Drift: how far errors lean one way, of what independent ones may; "
              "last, the layers together",
              false, write_drift_cell);
    if (compared)
        write_map(p, "The error that arose in the operation, relative (estimated in binary64)",
                  false, write_local_cell);
}

// ---- elements --------------------------------------------------------------------------------

static void write_element(FILE *page, const sinkproof_point_report *r) {
    fprintf(page, "<tr><td>%s</td><td class=\"%s\">%s</td><td class=\"num\">", r->name,
            verdict_css_class(r->verdict), sinkproof_verdict_name(r->verdict));
    write_index(page, r);
    fprintf(page, "</td><td class=\"num\">%a<br>%.9g</td><td class=\"num\">%a<br>%.9g</td>",
            r->worst_value, r->worst_value, r->worst_set.mid, r->worst_set.mid);
    fprintf(page, "<td class=\"num\">[%a,<br>%a]</td><td class=\"num\">", r->worst_set.lo,
            r->worst_set.hi);
    sinkproof_page_text(page, r->worst_inputs);
    fputs("</td></tr>\n", page);
}

static int compare_excess(const void *a, const void *b) {
    const sinkproof_point_report *x = *(const sinkproof_point_report *const *)a;
    const sinkproof_point_report *y = *(const sinkproof_point_report *const *)b;
    if (x->verdict != y->verdict) return x->verdict > y->verdict ? -1 : 1;
    return x->worst_excess > y->worst_excess ? -1 : x->worst_excess < y->worst_excess;
}

enum { MOST_ELEMENTS = 12, MOST_HONEST = 4 };

static bool write_elements(const part *p) {
    const sinkproof_point_report **r = malloc((p->j->n_reports + 1) * sizeof *r);
    if (r == NULL) return false;
    size_t n = 0;
    for (size_t i = 0; i < p->j->n_reports; i++)
        if (p->j->reports[i].several > 0 || is_outside(&p->j->reports[i]))
            r[n++] = &p->j->reports[i];
    qsort(r, n, sizeof *r, compare_excess);
    if (n > 0)
        fputs("<h2>The worst element of each point</h2>\n<div class=\"wide\"><table><thead><tr>"
              "<th>point</th><th>verdict</th><th>at</th><th>engine</th><th>emulation</th>"
              "<th>honest set (enclosed)</th><th>inputs</th></tr></thead>\n<tbody>",
              p->page);
    for (size_t i = 0; i < n && i < MOST_ELEMENTS; i++)
        if (is_outside(r[i]) || i < MOST_HONEST) write_element(p->page, r[i]);
    if (n > 0) fputs("</tbody></table></div>\n", p->page);
    free(r);
    return true;
}

// ---- growth ----------------------------------------------------------------------------------

// The place of a point of the residual stream, or of the ends, on the axis.
static bool report_chart_place(const sinkproof_point_report *r, size_t layers, double *at) {
    switch (r->point) {
    case TRACE_T0:
        *at = 0;
        return true;
    case TRACE_A13:
        *at = (double)r->layer + 0.5;
        return true;
    case TRACE_M12:
        *at = (double)r->layer + 1;
        return true;
    case TRACE_F2:
        *at = (double)layers + 0.5;
        return true;
    default:
        return false;
    }
}

static bool write_growth(const part *p) {
    static const char *const names[CHART_LINES] = {"error", "of it local", "inherited"};
    sinkproof_chart_place *places = malloc((p->j->n_reports + 1) * sizeof *places);
    if (places == NULL) return false;
    size_t n = 0;
    for (size_t i = 0; i < p->j->n_reports; i++) {
        const sinkproof_point_report *r = &p->j->reports[i];
        sinkproof_chart_place *place = &places[n];
        if (!(r->errors.truth > 0) || !report_chart_place(r, p->j->n_layers, &place->at)) continue;
        snprintf(place->name, sizeof place->name, "%s", r->name);
        place->value[0] = sinkproof_error_relative(r->errors.error, r);
        place->value[1] = r->bridged ? NAN : sinkproof_error_relative(r->errors.local, r);
        place->value[2] = r->bridged ? NAN : sinkproof_error_relative(r->errors.inherited, r);
        n++;
    }
    fputs("<h2>Growth along the residual stream</h2>\n<figure>", p->page);
    if (sinkproof_chart_lines(p->page, names, n, places))
        fputs("<figcaption>Against the truth end to end, relative in the 2-norm (estimated in "
              "binary64). Layer 3 begins at 3; its residual after attention is at 3.5, that after "
              "the experts at 4; the logits are last.</figcaption>",
              p->page);
    else
        fputs(
            "<figcaption>Not drawn: it takes a comparison with the truth end to end (not --local) "
            "and two traced points of the residual stream with an error.</figcaption>",
            p->page);
    fputs("</figure>\n", p->page);
    free(places);
    return true;
}

// ---- errors in ulp ---------------------------------------------------------------------------

static void write_histograms(const part *p) {
    fputs("<h2>Distance from the emulation, in ulp of the traced format</h2>\n<p class=\"faint\">"
          "Each operation against the policy's emulation on the engine's own inputs, all layers. "
          "The first bar is no distance.</p>\n<div class=\"many\">",
          p->page);
    for (int point = 0; point < TRACE_POINTS; point++) {
        sinkproof_histogram all = {0};
        for (size_t i = 0; i < p->j->n_reports; i++)
            if ((int)p->j->reports[i].point == point)
                sinkproof_histogram_merge(&all, &p->j->reports[i].gaps);
        chart_histogram(p->page, sinkproof_trace_point_name((sinkproof_trace_point)point), &all);
    }
    fputs("</div>\n", p->page);
}

// ---- attention -------------------------------------------------------------------------------

enum { MOST_HEADS = 8, MOST_KEYS = 96 };

// The weights of one head: A9 with the sink's column, or A10 without.
typedef struct head_of {
    const sinkproof_tensor *weights;
    size_t head, columns, rows, first_query;
    bool with_sink;
} head_of;

static double map_weight(const void *context, size_t query, size_t key) {
    const head_of *h = context;
    size_t row = h->head * h->rows + h->first_query + query;
    return sinkproof_tensor_value(h->weights, row * h->columns + key);
}

static double map_sink(const void *context, size_t query) {
    const head_of *h = context;
    if (h->with_sink) return map_weight(h, query, h->columns - 1);
    double sum = 0;
    for (size_t key = 0; key < h->columns; key++) sum += map_weight(h, query, key);
    return 1 - sum;
}

// The layer of the first failing point, if its weights are traced; else the first traced one.
static const sinkproof_tensor *weights_to_show(const part *p, size_t *layer, bool *with_sink) {
    const sinkproof_point_report *r = p->j->first != NULL ? p->j->first : p->j->first_suspicious;
    size_t from = r != NULL && sinkproof_trace_point_is_layered(r->point) ? r->layer : 0;
    for (size_t l = 0; l < p->j->n_layers; l++) {
        *layer = (from + l) % p->j->n_layers;
        const sinkproof_tensor *a9 = sinkproof_trace_find(p->trial->trace, TRACE_A9, *layer);
        *with_sink = a9 != NULL;
        if (a9 != NULL) return a9;
        const sinkproof_tensor *a10 = sinkproof_trace_find(p->trial->trace, TRACE_A10, *layer);
        if (a10 != NULL) return a10;
    }
    return NULL;
}

static void write_attention(const part *p) {
    size_t layer;
    bool with_sink;
    const sinkproof_tensor *weights = weights_to_show(p, &layer, &with_sink);
    if (weights == NULL || weights->shape[2] != p->j->n_tokens + with_sink)
        return; // a map has as many keys as queries
    const sinkproof_config *config = sinkproof_model_config(p->model);
    size_t n = p->j->n_tokens, shown = n < MOST_KEYS ? n : MOST_KEYS;
    size_t heads = config->n_heads < MOST_HEADS ? config->n_heads : MOST_HEADS;
    fprintf(p->page,
            "<h2>Attention of layer %zu, the sink in a column of its own</h2>\n<p class=\"faint\">"
            "A row for each of the last %s, a column for each of the last %s; the "
            "column on the left is the sink%s. Each shade is a factor of two, the darkest 1/2 to "
            "1.</p>\n<div class=\"many\">",
            layer, sinkproof_counted(shown, "query").text, sinkproof_counted(shown, "key").text,
            with_sink ? "" : ", 1 less the row's sum (estimated)");
    for (size_t i = 0; i < heads; i++) {
        head_of h = {.weights = weights,
                     .head = i * config->n_heads / heads,
                     .rows = n,
                     .columns = n + with_sink,
                     .first_query = n - shown,
                     .with_sink = with_sink};
        char name[32];
        snprintf(name, sizeof name, "head %zu", h.head);
        chart_heat_map(p->page, name,
                       &(sinkproof_chart_heat){.queries = shown,
                                               .keys = shown,
                                               .first = n - shown,
                                               .weight = map_weight,
                                               .sink = map_sink,
                                               .context = &h});
    }
    fputs("</div>\n", p->page);
}

// ---- provenance ------------------------------------------------------------------------------

enum { WHOLE = 1 << 30, ENDS = 1 << 20 }; // bytes; of a larger file only the ends are read

// Returns whether all bytes are in the fingerprint.
static bool trace_fingerprint(const sinkproof_safetensors *file, uint64_t *hash, size_t *length) {
    bool whole = true;
    *hash = SINKPROOF_FNV_NOTHING, *length = 0;
    for (size_t i = 0, n; i < sinkproof_safetensors_parts(file); i++, *length += n) {
        const uint8_t *bytes = sinkproof_safetensors_bytes(file, i, &n);
        bool all = n <= WHOLE;
        *hash = sinkproof_fnv(*hash, bytes, all ? n : ENDS);
        if (!all) *hash = sinkproof_fnv(*hash, bytes + n - ENDS, ENDS);
        whole = whole && all;
    }
    return whole;
}

static void write_fact_row(FILE *page, const char *name, const char *value) {
    fputs("<tr><th>", page);
    sinkproof_page_text(page, name);
    fputs("</th><td class=\"num\">", page);
    sinkproof_page_text(page, value);
    fputs("</td></tr>\n", page);
}

static bool write_provenance(const part *p, sinkproof_error *error) {
    uint64_t model, file;
    size_t length;
    char text[64];
    struct utsname machine;
    if (!sinkproof_model_fingerprint(p->model, &model, error)) return false;
    bool whole = trace_fingerprint(sinkproof_trace_file(p->trial->trace), &file, &length);
    fputs("<h2>Provenance</h2>\n<div class=\"wide\"><table><tbody>", p->page);
    write_fact_row(p->page, "sinkproof", SINKPROOF_VERSION);
    write_fact_row(p->page, "model", p->model_name);
    snprintf(text, sizeof text, "%016llx", (unsigned long long)model);
    write_fact_row(p->page, "model, fingerprint (FNV-1a of its numbers)", text);
    write_fact_row(p->page, "trace", p->trial->name);
    snprintf(text, sizeof text, "%.40s, %016llx", sinkproof_counted(length, "byte").text,
             (unsigned long long)file);
    write_fact_row(p->page,
                   whole ? "trace, fingerprint (FNV-1a of its bytes)"
                         : "trace, fingerprint (FNV-1a of each file's ends)",
                   text);
    static const char *const keys[] = {"engine", "version", "policy", "model"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *value = sinkproof_trace_metadata(p->trial->trace, keys[i]);
        char name[64];
        snprintf(name, sizeof name, "said by the trace: %s", keys[i]);
        if (value != NULL) write_fact_row(p->page, name, value);
    }
    write_fact_row(p->page, "judged under", p->j->policy.name);
    snprintf(text, sizeof text, "%g each", p->j->rate);
    write_fact_row(
        p->page,
        "false alarms of the likely set, drift and spread of a tensor, and of the drift of a "
        "point's layers together",
        text);
    if (uname(&machine) == 0) {
        write_fact_row(p->page, "judged on: system", machine.sysname);
        write_fact_row(p->page, "judged on: processor", machine.machine);
    }
    write_fact_row(p->page, "compiler", __VERSION__);
    fputs("</tbody></table></div>\n", p->page);
    return true;
}

// ---- the page --------------------------------------------------------------------------------

bool sinkproof_report_part(FILE *page, const sinkproof_model *model, const char *model_name,
                           const sinkproof_page_trial *trial, sinkproof_error *error) {
    const part *p =
        &(part){page, model, model_name, trial, sinkproof_ruling_judgement(trial->ruling)};
    write_sentence(p);
    write_maps(p);
    if (!write_elements(p) || !write_growth(p))
        return sinkproof_fail(error, "no memory for a page");
    write_histograms(p);
    write_attention(p);
    write_gradients(page, sinkproof_ruling_gradients(trial->ruling));
    fputs("<h2>The report</h2>\n<details><summary>As the terminal shows it</summary><pre>",
          p->page);
    sinkproof_page_text(p->page, sinkproof_ruling_text(p->trial->ruling));
    fputs("</pre></details>\n", p->page);
    return write_provenance(p, error);
}
