// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Runs the panels one after the other and keeps only the attention of each.
#include "audit/studies/mechanism/panel.h"

#include "audit/report/page.h"
#include "audit/studies/sinks/part_shared.h"
#include "base/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- of a run ----------------------------------------------------------------------------------

static void add_maps(const sinkproof_mechanism *m, const double *none_i, attended_map *out) {
    for (size_t l = 0; l < out->n_layers; l++)
        for (size_t h = 0; h < out->n_heads; h++)
            sinkproof_sinks_maps_add(
                out->maps,
                &(sinkproof_map_rows){.layer = l,
                                      .head = h,
                                      .rows = m->n,
                                      .keys = m->n,
                                      .stride = m->n,
                                      .alpha_ij = m->layers[l].weight_hij + h * m->n * m->n,
                                      .sink_i = none_i});
}

bool sinkproof_attended_take(const sinkproof_mechanism *m, attended_map *out,
                             sinkproof_error *error) {
    *out =
        (attended_map){.n = m->n, .n_layers = m->config->n_layers, .n_heads = m->config->n_heads};
    size_t row = out->n_heads * m->n;
    double *none_i = calloc(m->n, sizeof *none_i);
    out->alpha_lhj = malloc(out->n_layers * row * sizeof *out->alpha_lhj);
    bool good = none_i != NULL && out->alpha_lhj != NULL;
    if (!good)
        sinkproof_fail(error, "no memory for the attention of %s",
                       sinkproof_counted(m->n, "token").text);
    good = good && sinkproof_sinks_maps_new(m->config, m->n, NULL, &out->maps, error);
    if (good) {
        add_maps(m, none_i, out);
        for (size_t l = 0; l < out->n_layers; l++)
            memcpy(out->alpha_lhj + l * row, m->layers[l].alpha_hj, row * sizeof *out->alpha_lhj);
    }
    free(none_i);
    return good;
}

void sinkproof_attended_free(attended_map *attention) {
    sinkproof_sinks_maps_free(attention->maps);
    free(attention->alpha_lhj);
    *attention = (attended_map){0};
}

double attended_mean_alpha(const attended_map *a, size_t layer, int head, size_t j) {
    const double *alpha_hj = a->alpha_lhj + layer * a->n_heads * a->n;
    double sum = 0;
    if (head != SINKPROOF_ALL_HEADS) return alpha_hj[(size_t)head * a->n + j];
    for (size_t h = 0; h < a->n_heads; h++) sum += alpha_hj[h * a->n + j];
    return sum / (double)a->n_heads;
}

double attended_map_cell(const attended_map *a, size_t layer, int head, size_t row, size_t column) {
    size_t from = head == SINKPROOF_ALL_HEADS ? 0 : (size_t)head;
    size_t to = head == SINKPROOF_ALL_HEADS ? a->n_heads : (size_t)head + 1;
    double sum = 0;
    for (size_t h = from; h < to; h++) {
        sinkproof_sinks_map one = sinkproof_sinks_maps_find(a->maps, layer, h);
        sum += sinkproof_sinks_map_weight(&one, row, column);
    }
    return sum / (double)(to - from);
}

// ---- the seven ---------------------------------------------------------------------------------

// The reason why a panel does not apply to this input, or NULL.
static const char *panel_missing(const sinkproof_interventions *changes,
                                 const sinkproof_mechanism *m) {
    if (changes->n_moves > 0 && m->n < 2) return "there is one position";
    bool massive = changes->massive_rows || changes->n_random == SINKPROOF_AS_MASSIVE;
    return massive && m->rule.n == 0 ? "no coordinate of EPE_1 is massive" : NULL;
}

static bool keep_rows(const sinkproof_mechanism *m, paper_panel *panel, sinkproof_error *error) {
    if (m->n_rows == 0) return true;
    panel->row_at = malloc(m->n_rows * sizeof *panel->row_at);
    if (panel->row_at == NULL)
        return sinkproof_fail(error, "no memory for %s", sinkproof_counted(m->n_rows, "row").text);
    memcpy(panel->row_at, m->row_at, m->n_rows * sizeof *panel->row_at);
    panel->n_rows = m->n_rows;
    return true;
}

bool sinkproof_paper_panels_run(const sinkproof_model *model, const sinkproof_policy *policy,
                                size_t n, const int32_t *tokens_n,
                                const sinkproof_mechanism_options *options,
                                const sinkproof_mechanism *baseline, paper_panels *out,
                                sinkproof_error *error) {
    bool good = true;
    *out = (paper_panels){0};
    for (size_t p = 0; good && p < PAPER_PANELS; p++) {
        const intervention_panel *of = sinkproof_intervention_panel_at(p);
        paper_panel *panel = &out->panel_p[p];
        sinkproof_mechanism changed = {0};
        sinkproof_mechanism_options how = *options;
        how.changes = &of->changes;
        panel->name = of->name;
        panel->what = of->what;
        panel->missing = panel_missing(&of->changes, baseline);
        if (panel->missing != NULL) continue;
        bool as_it_is = !sinkproof_interventions_any(&of->changes);
        if (!as_it_is)
            good = sinkproof_mechanism_run(model, policy, n, tokens_n, &how, &changed, error);
        good = good &&
               sinkproof_attended_take(as_it_is ? baseline : &changed, &panel->attention, error);
        good = good && keep_rows(&changed, panel, error);
        if (!as_it_is) sinkproof_mechanism_free(&changed);
    }
    return good;
}

void sinkproof_paper_panels_free(paper_panels *panels) {
    for (size_t p = 0; p < PAPER_PANELS; p++) {
        sinkproof_attended_free(&panels->panel_p[p].attention);
        free(panels->panel_p[p].row_at);
    }
}

// ---- print ------------------------------------------------------------------------------------

static const attended_map *first_attention(const paper_panels *panels) {
    return &panels->panel_p[0].attention; // without interventions: always present
}

static size_t keys_to_show(const paper_panels *panels) {
    return first_attention(panels)->n < 2 ? 1 : 2;
}

// Prints a line such as "zero-wk-rows: rows 138, 378, 447 of W_k are 0."
static void say_rows(FILE *out, const paper_panel *panel) {
    fprintf(out, "%s: row%s ", panel->name, panel->n_rows == 1 ? "" : "s");
    for (size_t r = 0; r < panel->n_rows; r++)
        fprintf(out, "%s%zu", r > 0 ? ", " : "", panel->row_at[r]);
    fputs(panel->n_rows == 1 ? " of W_k is 0." : " of W_k are 0.", out);
}

static void print_key(const paper_panels *panels, int head, size_t j, FILE *out) {
    fprintf(out, "\nweight of position %zu, mean over the queries that see it%s\nlayer", j + 1,
            head == SINKPROOF_ALL_HEADS ? " and the heads" : ", of one head");
    for (size_t p = 0; p < PAPER_PANELS; p++)
        fprintf(out, "%*s", p == PAPER_PANELS - 1 ? 15 : 13, panels->panel_p[p].name);
    fputc('\n', out);
    for (size_t l = 0; l < first_attention(panels)->n_layers; l++) {
        fprintf(out, "%5zu", l + 1);
        for (size_t p = 0; p < PAPER_PANELS; p++) {
            const paper_panel *panel = &panels->panel_p[p];
            double alpha =
                panel->missing != NULL ? NAN : attended_mean_alpha(&panel->attention, l, head, j);
            fprintf(out, "%*s", p == PAPER_PANELS - 1 ? 15 : 13, part_text("%.4f", alpha).text);
        }
        fputc('\n', out);
    }
}

void sinkproof_paper_panels_print(const paper_panels *panels, int head, FILE *out) {
    for (size_t j = 0; j < keys_to_show(panels); j++) print_key(panels, head, j, out);
    for (size_t p = 0; p < PAPER_PANELS; p++)
        if (panels->panel_p[p].missing != NULL)
            fprintf(out, "%s was not run: %s.\n", panels->panel_p[p].name,
                    panels->panel_p[p].missing);
        else if (panels->panel_p[p].n_rows > 0) {
            say_rows(out, &panels->panel_p[p]);
            fputc('\n', out);
        }
}

static void write_key(const paper_panels *panels, int head, size_t j, FILE *page) {
    fprintf(page, "<h4>Position %zu</h4>\n<div class=\"wide\"><table><tr><th>layer</th>", j + 1);
    for (size_t p = 0; p < PAPER_PANELS; p++) fprintf(page, "<th>%s</th>", panels->panel_p[p].what);
    fputs("</tr>\n", page);
    for (size_t l = 0; l < first_attention(panels)->n_layers; l++) {
        fprintf(page, "<tr><th>%zu</th>", l + 1);
        for (size_t p = 0; p < PAPER_PANELS; p++) {
            const paper_panel *panel = &panels->panel_p[p];
            if (panel->missing == NULL)
                fprintf(page, "<td>%.4f</td>", attended_mean_alpha(&panel->attention, l, head, j));
            else
                fputs("<td class=\"undecided\">not run</td>", page);
        }
        fputs("</tr>\n", page);
    }
    fputs("</table></div>\n", page);
}

void paper_panels_html(const paper_panels *panels, int head, FILE *page) {
    fputs("<h3>Sink strength under the interventions</h3>\n<p>", page);
    sinkproof_page_say(page, "The weight of a position by layer, the mean over %s and ",
                       sinkproof_counted(first_attention(panels)->n, "query").text);
    if (head == SINKPROOF_ALL_HEADS)
        fputs("the heads.", page);
    else
        fprintf(page, "of head %d.", head + 1);
    fputs(" Defined by <code>metric.sink</code>.", page);
    for (size_t p = 0; p < PAPER_PANELS; p++)
        if (panels->panel_p[p].missing != NULL)
            fprintf(page, " Not run: %s, since %s.", panels->panel_p[p].what,
                    panels->panel_p[p].missing);
        else if (panels->panel_p[p].n_rows > 0) {
            fputc(' ', page);
            say_rows(page, &panels->panel_p[p]);
        }
    fputs("</p>\n", page);
    for (size_t j = 0; j < keys_to_show(panels); j++) write_key(panels, head, j, page);
}

static json_t *layer_json(const attended_map *a, size_t l) {
    json_t *heads = json_array();
    for (size_t h = 0; h < a->n_heads; h++) {
        json_t *alpha = json_array();
        for (size_t j = 0; j < a->n; j++)
            json_array_append_new(alpha,
                                  sinkproof_number_json(attended_mean_alpha(a, l, (int)h, j)));
        json_array_append_new(heads, alpha);
    }
    return heads;
}

json_t *sinkproof_paper_panels_json(const paper_panels *panels) {
    json_t *all = json_array();
    for (size_t p = 0; p < PAPER_PANELS; p++) {
        const paper_panel *panel = &panels->panel_p[p];
        json_t *layers = json_array(), *rows = json_array();
        for (size_t r = 0; r < panel->n_rows; r++)
            json_array_append_new(rows, part_count(panel->row_at[r]));
        for (size_t l = 0; panel->missing == NULL && l < panel->attention.n_layers; l++)
            json_array_append_new(layers, layer_json(&panel->attention, l));
        json_t *one = json_pack("{s:s, s:s, s:o, s:o}", "panel", panel->name, "what", panel->what,
                                "rows", rows, "alpha", layers);
        if (panel->missing != NULL)
            json_object_set_new(one, "missing", json_string(panel->missing));
        json_array_append_new(all, one);
    }
    return all;
}
