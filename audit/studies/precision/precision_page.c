// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A study as a page: the policies side by side, the cost of each rounding, and the growth of the
// error.
#include "audit/report/chart.h"
#include "audit/report/page.h"
#include "audit/studies/precision/precision_print.h"
#include "base/share.h"
#include "base/words.h"

#include <math.h>

static void write_number_cell(FILE *page, const char *format, double value) {
    char text[64] = "";
    if (isfinite(value)) snprintf(text, sizeof text, format, value);
    fprintf(page, "<td class=\"num\">%s</td>", text);
}

static void write_error_cell(FILE *page, double error) {
    if (isinf(error))
        fputs("<td class=\"num\">overflows</td>", page);
    else
        write_number_cell(page, "%.3g", error);
}

// ---- policies side by side -------------------------------------------------------------------

static void write_policies(FILE *page, const sinkproof_precision_study *study) {
    fputs(
        "<h2>The policies</h2>\n<div class=\"wide\"><table><thead><tr><th>policy</th><th>error of "
        "F1</th><th>error of F2</th><th>choices of experts that flip</th><th>KiB a token</th>"
        "</tr></thead>\n<tbody>",
        page);
    for (size_t p = 0; p < study->n_policies; p++) {
        const precision_audit *r = &study->policies[p];
        fputs("<tr><th>", page);
        sinkproof_page_text(page, r->policy.name);
        fputs("</th>", page);
        write_error_cell(page, r->final);
        write_error_cell(page, r->logits);
        fprintf(page, "<td class=\"num\">%zu of %zu</td>", r->flips, r->choices);
        write_number_cell(page, "%.1f", r->kib);
        fputs("</tr>\n", page);
    }
    fputs("</tbody></table></div>\n", page);
    sinkproof_chart_place places[16];
    for (size_t p = 0; p < study->n_policies; p++) {
        snprintf(places[p].name, sizeof places[p].name, "%.39s", study->policies[p].policy.name);
        places[p].at = study->policies[p].kib;
        places[p].value[0] = study->policies[p].final;
    }
    fputs("<figure>", page);
    if (sinkproof_chart_scatter(page, "KiB of traced points a token", study->n_policies, places))
        fputs(
            "<figcaption>What is stored against what it costs: to the left and below is better; a "
            "policy with another both to its left and below it is never the one to take.</"
            "figcaption>",
            page);
    fputs("</figure>\n", page);
}

// ---- one policy ------------------------------------------------------------------------------

static const precision_point *find_point(const precision_audit *r, int point, size_t layer) {
    for (size_t i = 0; i < r->n_points; i++)
        if ((int)r->points[i].point == point && r->points[i].layer == layer) return &r->points[i];
    return NULL;
}

// Each decade of error from 1e-9 on has a shade.
static void write_cell(FILE *page, const precision_audit *r, const precision_point *p) {
    double error = p != NULL ? precision_error(p) : NAN;
    if (isinf(error)) {
        fputs("<td style=\"background:var(--heat);color:var(--paper)\">&infin;</td>", page);
        return;
    }
    if (!isfinite(error)) {
        fputs("<td></td>", page);
        return;
    }
    int shade = error > 0 ? (int)fmin(90, fmax(0, 10 * (log10(error) + 9))) : 0;
    fprintf(page,
            "<td style=\"background:color-mix(in srgb,var(--heat) %d%%,var(--paper))%s\" title=\"",
            shade, shade > 60 ? ";color:var(--paper)" : "");
    sinkproof_page_say(page, "%02zu.%s: error %.3g, largest value %.3g", p->layer,
                       sinkproof_trace_point_name(p->point), error, p->largest);
    double headroom = precision_headroom(&r->policy, p);
    if (isfinite(headroom)) sinkproof_page_say(page, ", %.1f bits from overflow", headroom);
    fprintf(page, "\">%.0e</td>", error);
}

static void write_points(FILE *page, const sinkproof_precision_study *study,
                         const precision_audit *r) {
    fputs("<details open><summary>Error by point and layer</summary><div class=\"wide\">"
          "<table class=\"map\"><thead><tr><th>layer</th>",
          page);
    for (size_t l = 0; l < study->n_layers; l++) fprintf(page, "<th>%zu</th>", l);
    fputs("<th>least headroom, bits</th></tr></thead>\n<tbody>", page);
    for (int point = 0; point < TRACE_POINTS; point++) {
        sinkproof_trace_point at = (sinkproof_trace_point)point;
        if (sinkproof_trace_point_is_index(at) || find_point(r, point, 0) == NULL) continue;
        bool layered = sinkproof_trace_point_is_layered(at);
        double headroom = INFINITY;
        fprintf(page, "<tr><th>%s</th>", sinkproof_trace_point_name(at));
        for (size_t l = 0; l < study->n_layers; l++) {
            const precision_point *p = layered || l == 0 ? find_point(r, point, l) : NULL;
            write_cell(page, r, p);
            if (p != NULL) headroom = fmin(headroom, precision_headroom(&r->policy, p));
        }
        write_number_cell(page, "%.1f", headroom);
        fputs("</tr>\n", page);
    }
    fputs("</tbody></table></div></details>\n", page);
}

static void write_budget(FILE *page, const precision_audit *r) {
    if (r->n_parts == 0) return;
    fputs("<details open><summary>Error budget: each rounding alone, at F1</summary><div "
          "class=\"wide\"><table><thead><tr><th>point</th><th>error</th><th></th><th>share</th>"
          "<th>what is rounded</th></tr></thead>\n<tbody>",
          page);
    size_t beyond = r->n_parts - r->n_finite; // infinite ones come first
    double most = beyond < r->n_parts ? r->parts[beyond].error : 0;
    for (size_t i = 0; i < r->n_parts; i++) {
        const precision_part *part = &r->parts[i];
        double share = most > 0 && isfinite(part->error) ? part->error / most : 0;
        fprintf(page, "<tr><th>%s</th>", part->name);
        write_error_cell(page, part->error);
        fprintf(page,
                "<td><svg viewBox=\"0 0 160 12\" width=\"160\" height=\"12\" role=\"img\" "
                "aria-label=\"bar\"><rect class=\"bar\" width=\"%.1f\" height=\"12\"/></svg></td>",
                160 * share);
        fprintf(page, "<td class=\"num\">%s</td>",
                isfinite(part->share) ? sinkproof_share_percent(part->share, 1).text : "");
        fputs("<td>", page);
        sinkproof_page_text(page, part->what);
        fputs("</td></tr>\n", page);
    }
    fputs("</tbody></table></div>\n<p>", page);
    if (beyond > 0)
        sinkproof_page_say(page, "%zu of %zu overflow alone; the shares are of the others. ",
                           beyond, r->n_parts);
    sinkproof_page_say(page, "In quadrature %.3g, ", r->quadrature);
    if (isfinite(r->final))
        sinkproof_page_say(page, "all together %.3g. ", r->final);
    else
        sinkproof_page_say(page, "all together they overflow. ");
    sinkproof_page_say(page, "As vectors the parts' errors add up to %.3g", r->linear);
    if (isfinite(r->correlation))
        sinkproof_page_say(page,
                           "; its correlation with the whole error is %.2f: near 0, the whole is "
                           "another draw of the same sizes",
                           r->correlation);
    sinkproof_page_say(page, ". The share is of the squares.");
    fputs("</p></details>\n", page);
}

// ---- the real model --------------------------------------------------------------------------

static void write_model(FILE *page, const sinkproof_precision_study *study) {
    fputs(
        "<h2>The real model alone</h2>\n<div class=\"wide\"><table><thead><tr><th>layer</th><th>"
        "1 &minus; &alpha;<sub>s</sub>, least</th><th>median</th><th>bits lost by a difference</th>"
        "<th>a perturbation grew</th></tr></thead>\n<tbody>",
        page);
    for (size_t l = 0; l < study->n_layers; l++) {
        const precision_layer *layer = &study->layers[l];
        fprintf(page, "<tr><th>%zu</th>", l);
        write_number_cell(page, "%.3g", layer->mass_least);
        write_number_cell(page, "%.3g", layer->mass_median);
        write_number_cell(page, "%.1f", -log2(layer->mass_least));
        write_number_cell(page, "%.3g", layer->growth);
        fputs("</tr>\n", page);
    }
    fputs("</tbody></table></div>\n<p>", page);
    sinkproof_page_say(
        page,
        "The least mass that the sinks leave to the keys, over heads and queries; one "
        "who computes it as a difference loses so many bits there. A random change of "
        "the embedding by up to %.1e of each element grew so much, relatively, up to "
        "the layer's end.",
        study->perturbed);
    fputs("</p>\n<p>Thinnest choices of experts:", page);
    for (size_t i = 0; i < PRECISION_ROWS && isfinite(study->thinnest[i].margin); i++)
        sinkproof_page_say(page, "%s layer %zu, token %zu: %.3g", i > 0 ? ";" : "",
                           study->thinnest[i].layer, study->thinnest[i].token,
                           study->thinnest[i].margin);
    fputs(".</p>\n", page);
}

bool sinkproof_precision_part(FILE *page, const sinkproof_precision_study *study,
                              const char *model_name, const char *tokens, sinkproof_error *error) {
    uint64_t fingerprint;
    if (!sinkproof_model_fingerprint(study->model, &fingerprint, error)) return false;
    fputs("<h1>What a choice of precision costs</h1>\n<p>", page);
    sinkproof_page_say(page,
                       "Model %s, %s (%.300s), %s. Against the same model over the "
                       "reals, relative in the 2-norm, with the real model's choice of experts. "
                       "Every number is estimated: both runs are in binary64. Sums are in binary64 "
                       "whatever the policy: what a narrower accumulator adds is not in here.",
                       model_name, sinkproof_counted(study->n, "token").text, tokens,
                       sinkproof_counted(study->n_layers, "layer").text);
    fputs("</p>\n", page);
    write_policies(page, study);
    for (size_t p = 0; p < study->n_policies; p++) {
        fputs("<h2>", page);
        sinkproof_page_text(page, study->policies[p].policy.name);
        fputs("</h2>\n", page);
        char name[PRECISION_NAME];
        if (study->policies[p].overflow != NULL)
            fprintf(page, "<p>The first point that overflows: %s.</p>\n",
                    precision_name(study->policies[p].overflow, name));
        write_points(page, study, &study->policies[p]);
        write_budget(page, &study->policies[p]);
    }
    write_model(page, study);
    sinkproof_page_model(page, fingerprint);
    return true;
}
