// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Prints a measured mechanism as text of 100 columns. Layers, heads, positions and keys count from
// 1 here, coordinates from 0, as in the paper. A dash stands for an unknown number.
#include "audit/studies/mechanism/mechanism_show.h"
#include "audit/studies/sinks/part_shared.h"
#include "base/words.h"
#include "ref/metrics.h"

#include <string.h>

// characters of an input's text; massive coordinates in a table
enum { SHOWN = 60, COORDINATES = 6 };

// Three decimals; a zero has no sign.
static part_cell fixed_cell(double x) {
    return part_text("%.3f", fabs(x) < 0.0005 ? 0 : x);
}

static double score_scale(const sinkproof_mechanism *m) {
    return 1.0 / sqrt((double)m->config->head_dim);
}

static void name_row(char name[24], size_t number, bool head) {
    snprintf(name, 24, head ? "  .%zu" : "%zu", number + 1);
}

// ---- what was run ------------------------------------------------------------------------------

static void print_run(const sinkproof_mechanism *m, const sinkproof_mechanism_about *about,
                      FILE *out) {
    const sinkproof_config *config = m->config;
    fprintf(out, "%.90s: %s of %s, width %zu\n", about->model_name,
            sinkproof_counted(config->n_layers, "layer").text,
            sinkproof_counted(config->n_heads, "head").text, config->hidden);
    fprintf(out, "%.*s%s: %s; the reference, policy %s\n", SHOWN, about->input,
            strlen(about->input) > SHOWN ? "..." : "", sinkproof_counted(m->n, "token").text,
            about->policy->name);
    fprintf(out, "Every number is estimated: computed in binary64 from what the run holds. Layers, "
                 "heads and\npositions count from 1, coordinates from 0.\n");
    if (strcmp(sinkproof_model_layout(about->model), "synthetic") == 0)
        fprintf(out, "Its weights are no trained ones: what training makes of a position is not in "
                     "them.\n");
    if (sinkproof_interventions_any(&m->did))
        fprintf(out, "With %s.\n", sinkproof_interventions_describe(&m->did).text);
}

// The massive coordinate with the i-th largest |EPE_1|, as an index into massive_at; the first of
// several equal ones.
static size_t nth_largest_massive(const sinkproof_mechanism *m, size_t i) {
    for (size_t a = 0; a < m->rule.n; a++) {
        size_t before = 0;
        for (size_t b = 0; b < m->rule.n; b++) {
            double of_a = fabs(m->epe_ic[m->massive_at[a]]),
                   of_b = fabs(m->epe_ic[m->massive_at[b]]);
            before += of_b > of_a || (of_b == of_a && b < a);
        }
        if (before == i) return a;
    }
    return 0;
}

static void print_epe(const sinkproof_mechanism *m, const sinkproof_mechanism_about *about,
                      FILE *out) {
    sinkproof_span check = sinkproof_metric_span(m->n, m->epe_check_i);
    fprintf(out, "\nEPE_i = MLP(p_i) + p_i, the first layer's perceptron of %s\n",
            about->normed ? "LayerNorm(p_i)" : "the raw row");
    fprintf(
        out,
        "|EPE_1|: mean %.4g, standard deviation %.4g; beyond three of them above it: %zu of %zu\n",
        m->rule.mean, m->rule.deviation, m->rule.n, m->config->hidden);
    for (size_t i = 0; i < m->rule.n && i < COORDINATES; i++) {
        size_t c = m->massive_at[nth_largest_massive(m, i)];
        fprintf(out, "  coordinate %-5zu %12.5g  %8.2f deviations\n", c, m->epe_ic[c],
                (fabs(m->epe_ic[c]) - m->rule.mean) / m->rule.deviation);
    }
    if (m->rule.n > COORDINATES)
        fprintf(out, "  and %zu more, in the JSON\n", m->rule.n - COORDINATES);
    fprintf(out, "cos(EPE_i, R_i - O_i): %s to %s, mean %s\n", part_text("%.4f", check.least).text,
            part_text("%.4f", check.most).text, part_text("%.4f", check.mean).text);
}

// ---- layers ------------------------------------------------------------------------------------

// Prints Delta before the split and in scores, and cosines, for a layer or one of its heads. heads:
// the number of heads that share this Delta.
static void print_delta_row(const sinkproof_mechanism *m, const char *name, const double *delta_j,
                            const double *align_j, size_t heads, double lead, FILE *out) {
    double unit = score_scale(m) / (double)heads;
    sinkproof_span delta = sinkproof_metric_span(m->n - 1, delta_j + 1);
    sinkproof_span align = sinkproof_metric_span(m->n - 1, align_j + 1);
    fprintf(out, "%-7s %10s %10s %10s %10s %10s %10s %9s %8s %7s\n", name,
            part_text("%.4g", delta_j[0]).text, part_text("%.4g", delta.mean).text,
            part_text("%.4g", delta.most).text, part_text("%.4g", unit * delta_j[0]).text,
            part_text("%.4g", unit * delta.mean).text, part_text("%.4g", lead).text,
            fixed_cell(align_j[0]).text, fixed_cell(align.mean).text, fixed_cell(align.most).text);
}

static void print_deltas(const sinkproof_mechanism *m, bool every_head, FILE *out) {
    fprintf(out, "\n%-7s %32s %32s %26s\n%-7s %10s %10s %10s %10s %10s %10s %9s %8s %7s\n", "bias",
            "Delta_j before the split", "in the scores of a head, mean", "cos(b_Q, EPE_j W_k)",
            "layer", "key 1", "others", "most", "key 1", "others", "lead", "key 1", "others",
            "most");
    for (size_t l = 0; l < m->config->n_layers; l++) {
        const mechanism_layer *layer = &m->layers[l];
        char name[24];
        name_row(name, l, false);
        print_delta_row(m, name, layer->delta_j, layer->align_j, m->config->n_heads,
                        mechanism_mean_lead(m, l, SINKPROOF_TERM_KEY), out);
        for (size_t h = 0; every_head && h < m->config->n_heads; h++) {
            name_row(name, h, true);
            print_delta_row(m, name, layer->delta_hj + h * m->n, layer->align_hj + h * m->n, 1,
                            layer->lead_hk[h * SINKPROOF_TERMS + SINKPROOF_TERM_KEY], out);
        }
    }
    fprintf(
        out,
        "Before the split: Delta_j = b_Q W_k^T x_j^T over the whole width, as the paper has it, "
        "is the sum of\nthe heads' parts, which no softmax ever sees. A head's scores have its "
        "own part over sqrt(%zu): here\nthe mean over %s. Lead: of key 1 over the mean "
        "of keys 2 to t, mean over the rows t >= 2.\n",
        m->config->head_dim, sinkproof_counted(m->config->n_heads, "head").text);
}

static void print_gamma_row(const sinkproof_mechanism *m, const char *name, const double *gamma_c,
                            FILE *out) {
    sinkproof_massive_rule all = sinkproof_mechanism_spread(m->config->hidden, gamma_c);
    fprintf(out, "%-7s %10.4g %10.4g", name, all.mean, 2 * all.deviation);
    for (size_t i = 0; i < m->rule.n && i < COORDINATES; i++)
        fprintf(out, "%s %10.4g", i == 0 ? "  " : "",
                fabs(gamma_c[m->massive_at[nth_largest_massive(m, i)]]));
    fprintf(out, "\n");
}

static void print_gammas(const sinkproof_mechanism *m, bool every_head, FILE *out) {
    fprintf(out, "\n%-7s %21s   %s\n%-7s %10s %10s", "|gamma|", "of all coordinates",
            m->rule.n > 0 ? "where EPE_1 is massive" : "EPE_1 is massive nowhere", "layer", "mean",
            "+- 2 dev.");
    for (size_t i = 0; i < m->rule.n && i < COORDINATES; i++)
        fprintf(out, "%s %10zu", i == 0 ? "  " : "", m->massive_at[nth_largest_massive(m, i)]);
    fprintf(out, "\n");
    for (size_t l = 0; l < m->config->n_layers; l++) {
        char name[24];
        name_row(name, l, false);
        print_gamma_row(m, name, m->layers[l].gamma_c, out);
        for (size_t h = 0; every_head && h < m->config->n_heads; h++) {
            name_row(name, h, true);
            print_gamma_row(m, name, m->layers[l].gamma_hc + h * m->config->hidden, out);
        }
    }
}

static void print_term_row(const char *name, const double lead_k[SINKPROOF_TERMS], double apart,
                           double first, const char *rest, FILE *out) {
    fprintf(out, "%-7s %10s %10s %10s %10s %12s %9s%s\n", name,
            fixed_cell(lead_k[SINKPROOF_TERM_CONTENT]).text,
            fixed_cell(lead_k[SINKPROOF_TERM_QUERY]).text,
            fixed_cell(lead_k[SINKPROOF_TERM_KEY]).text,
            fixed_cell(lead_k[SINKPROOF_TERM_CONSTANT]).text, part_text("%.2g", apart).text,
            part_text("%.4f", first).text, rest);
}

static void print_term_layer(const sinkproof_mechanism *m, size_t l, double epsilon, FILE *out) {
    const mechanism_layer *layer = &m->layers[l];
    size_t heads = m->config->n_heads;
    double lead_k[SINKPROOF_TERMS], most = layer->alpha_hj[0];
    char name[24], rest[64];
    for (size_t k = 0; k < SINKPROOF_TERMS; k++)
        lead_k[k] = mechanism_mean_lead(m, l, (sinkproof_term)k);
    for (size_t h = 1; h < heads; h++)
        if (layer->alpha_hj[h * m->n] > most) most = layer->alpha_hj[h * m->n];
    name_row(name, l, false);
    snprintf(rest, sizeof rest, " %8s %8zu", part_text("%.4f", most).text,
             mechanism_sink_count(m, l, 0, epsilon));
    print_term_row(name, lead_k, sinkproof_metric_span(heads, layer->apart_h).most,
                   mechanism_mean_alpha(m, l, 0), rest, out);
}

static void print_terms(const sinkproof_mechanism *m, const sinkproof_mechanism_about *about,
                        FILE *out) {
    char above[48];
    snprintf(above, sizeof above, "> %g", about->epsilon);
    fprintf(out, "\n%-7s %43s %12s %27s\n%-7s %10s %10s %10s %10s %12s %9s %8s %8s\n", "terms",
            "lead of key 1 in the scores, mean over heads", "", "weight of key 1, by head", "layer",
            "content", "query", "key", "constant", "apart", "mean", "most", above);
    for (size_t l = 0; l < m->config->n_layers; l++) {
        const mechanism_layer *layer = &m->layers[l];
        print_term_layer(m, l, about->epsilon, out);
        for (size_t h = 0; about->every_head && h < m->config->n_heads; h++) {
            char name[24];
            name_row(name, h, true);
            print_term_row(name, layer->lead_hk + h * SINKPROOF_TERMS, layer->apart_h[h],
                           layer->alpha_hj[h * m->n], "", out);
        }
    }
    fprintf(out,
            "The terms of query and constant are the same for every key, and lead by 0 but for "
            "rounding. Apart:\nof the scores from the sum of the four, at most, over the sum of "
            "their sizes.\n");
    double uniform = sinkproof_metric_uniform(m->n);
    fprintf(out, "At %s equal weights alone have a mean weight of key 1 of %.4f%s\n",
            sinkproof_counted(m->n, "token").text, uniform,
            sinkproof_metric_is_sink(uniform, about->epsilon)
                ? ": a head that\nattends to nothing in particular counts as a sink there."
                : ".");
}

void sinkproof_mechanism_print(const sinkproof_mechanism *m, const sinkproof_mechanism_about *about,
                               FILE *out) {
    print_run(m, about, out);
    print_epe(m, about, out);
    print_deltas(m, about->every_head, out);
    print_gammas(m, about->every_head, out);
    print_terms(m, about, out);
}

// ---- before and after --------------------------------------------------------------------------

static size_t count_all_sinks(const sinkproof_mechanism *m, size_t j, double epsilon) {
    size_t sinks = 0;
    for (size_t l = 0; l < m->config->n_layers; l++)
        sinks += mechanism_sink_count(m, l, j, epsilon);
    return sinks;
}

static void print_key(const sinkproof_mechanism *before, const sinkproof_mechanism *after, size_t j,
                      double epsilon, FILE *out) {
    char title[48], above[48];
    snprintf(title, sizeof title, "key %zu", j + 1);
    snprintf(above, sizeof above, "heads > %g", epsilon);
    fprintf(out, "\n%-7s %21s %17s %23s\n%-7s %10s %10s %8s %8s %11s %11s\n", title,
            "mean weight of the key", above, "Delta of the key", "layer", "before", "after",
            "before", "after", "before", "after");
    for (size_t l = 0; l < before->config->n_layers; l++)
        fprintf(out, "%-7zu %10s %10s %8zu %8zu %11s %11s\n", l + 1,
                part_text("%.4f", mechanism_mean_alpha(before, l, j)).text,
                part_text("%.4f", mechanism_mean_alpha(after, l, j)).text,
                mechanism_sink_count(before, l, j, epsilon),
                mechanism_sink_count(after, l, j, epsilon),
                part_text("%.4g", before->layers[l].delta_j[j]).text,
                part_text("%.4g", after->layers[l].delta_j[j]).text);
    fprintf(out, "%-7s %10s %10s %8zu %8zu\n", "all", "", "", count_all_sinks(before, j, epsilon),
            count_all_sinks(after, j, epsilon));
}

// Whether an EPE was moved to or from position j.
static bool is_moved(const sinkproof_interventions *did, size_t j) {
    bool is = false;
    for (size_t k = 0; k < did->n_moves; k++)
        is = is || did->move_n[k].from == j || (!did->move_n[k].swap && did->move_n[k].to == j);
    return is;
}

void sinkproof_mechanism_print_changed(const sinkproof_mechanism *before,
                                       const sinkproof_mechanism *after,
                                       const sinkproof_mechanism_about *about, FILE *out) {
    fprintf(out, "\nIntervention: %s\n", sinkproof_interventions_describe(&after->did).text);
    for (size_t r = 0; r < after->n_rows; r++)
        fprintf(out, "%s%zu%s",
                r == 0        ? "Rows of W_k that are 0: "
                : r % 16 == 0 ? ",\n"
                              : ", ",
                after->row_at[r], r + 1 == after->n_rows ? "\n" : "");
    fprintf(out, "Two runs of the same tokens, estimated as above; Delta before the heads are "
                 "split.\n");
    for (size_t j = 0; j < after->n; j++)
        if (j == 0 || is_moved(&after->did, j)) print_key(before, after, j, about->epsilon, out);
}
