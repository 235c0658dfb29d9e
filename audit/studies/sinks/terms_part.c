// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof sinks MODEL --decompose`: the four terms of every head's scores, as a table, as JSON
// and as grids of layers and heads.
#include "audit/report/page.h"
#include "audit/studies/sinks/figures.h"
#include "audit/studies/sinks/part_shared.h"
#include "audit/studies/sinks/terms.h"
#include "base/words.h"
#include "model/architecture.h"
#include "proofs/bounds/worst.h"

#include <stdlib.h>

typedef struct words {
    char text[64];
} words;

static const struct {
    const char *name, *product, *tensor;
} terms[SINKPROOF_TERMS] = {[SINKPROOF_TERM_CONTENT] = {"content", "a c", "a c^T"},
                            [SINKPROOF_TERM_QUERY] = {"query", "a b_K", "a b_K^T"},
                            [SINKPROOF_TERM_KEY] = {"key", "b_Q c", "b_Q c^T"},
                            [SINKPROOF_TERM_CONSTANT] = {"constant", "b_Q b_K", "b_Q b_K^T"}};

typedef struct decomposed {
    size_t n_inputs;
    score_terms_study of[]; // [n_inputs]
} decomposed;

static bool terms_prepare(const sinkproof_sinks_job *job, const char *asked, void **state,
                          sinkproof_error *error) {
    decomposed *all = calloc(1, sizeof *all + job->n_inputs * sizeof *all->of);
    (void)asked;
    *state = all;
    if (all == NULL)
        return sinkproof_fail(error, "no memory for %s",
                              sinkproof_counted(job->n_inputs, "input").text);
    all->n_inputs = job->n_inputs;
    for (size_t i = 0; i < job->n_inputs; i++)
        if (!terms_new(job->model, job->policy, job->inputs[i].n, &all->of[i], error)) return false;
    return true;
}

static bool terms_show_point(void *state, size_t input, sinkproof_trace_point at, size_t layer,
                             size_t head, const double *values, sinkproof_error *error) {
    decomposed *all = state;
    return terms_take_point(&all->of[input], at, layer, head, values, error);
}

static bool end_layer(void *state, size_t input, size_t layer, sinkproof_error *error) {
    decomposed *all = state;
    return terms_end_layer(&all->of[input], layer, error);
}

static bool terms_run_part(const sinkproof_sinks_job *job, const char *asked, void **state,
                           sinkproof_error *error) {
    const decomposed *all = *state;
    (void)asked;
    for (size_t i = 0; i < all->n_inputs; i++)
        if (terms_known_layers(&all->of[i]) == 0)
            return sinkproof_fail(error,
                                  "%.300s: --decompose: expected tensors A2.q and A2.k in some "
                                  "layer, found none with both",
                                  job->inputs[i].text);
    return true;
}

static void free_state(void *state) {
    decomposed *all = state;
    for (size_t i = 0; all != NULL && i < all->n_inputs; i++) terms_free(&all->of[i]);
    free(all);
}

// ---- the table ---------------------------------------------------------------------------------

// The means over a layer's heads.
static terms_head over_heads(const score_terms_study *t, const terms_layer *at) {
    terms_head mean = {0};
    double heads = (double)t->config->n_heads;
    for (size_t h = 0; h < t->config->n_heads; h++) {
        mean.logit += at->heads[h].logit / heads;
        for (size_t m = 0; m < SINKPROOF_TERMS; m++) {
            const term_measure *x = &at->heads[h].term[m];
            mean.term[m].level += x->level / heads;
            mean.term[m].spread += x->spread / heads;
            mean.term[m].lead += x->lead / heads;
            mean.term[m].sink += x->sink / heads;
            mean.term[m].first += x->first / heads;
            mean.term[m].variation += x->variation / heads;
        }
    }
    return mean;
}

static void print_head(FILE *out, const char *name, const char *keys, const terms_head *head,
                       const words most_m[SINKPROOF_TERMS]) {
    for (size_t m = 0; m < SINKPROOF_TERMS; m++) {
        const term_measure *x = &head->term[m];
        fprintf(out, "%-7s %6s  %-8s %9s %9s %9s %9s %9s %9s %15s\n", m == 0 ? name : "",
                m == 0 ? keys : "", terms[m].product, part_text("%.3g", x->level).text,
                part_text("%.3g", x->spread).text, part_text("%.3g", x->lead).text,
                part_text("%+.3g", x->sink).text, part_text("%+.3g", x->first).text,
                part_text("%.3g", x->variation).text, most_m[m].text);
    }
    if (isfinite(head->logit))
        fprintf(out, "%-7s %6s  %-8s %9.3g\n", "", "", "the sink", head->logit);
}

// The largest variation among a layer's heads, and its head; NaN if one is NaN.
static words largest_variation(const score_terms_study *t, const terms_layer *at, size_t m) {
    words said;
    size_t most = 0;
    for (size_t h = 1; h < t->config->n_heads; h++) {
        const terms_head *worst = &at->heads[most];
        if (sinkproof_is_worse(worst->term[m].variation, at->heads[h].term[m].variation)) most = h;
    }
    snprintf(said.text, sizeof said.text, "%s in %zu",
             part_text("%.3g", at->heads[most].term[m].variation).text, most);
    return said;
}

static void print_layer(FILE *out, const score_terms_study *t, size_t l, bool every_head) {
    static const words none_m[SINKPROOF_TERMS] = {{""}};
    const terms_layer *at = &t->layers[l];
    char name[24], keys[24] = "all";
    words most_m[SINKPROOF_TERMS];
    snprintf(name, sizeof name, "%zu", l);
    if (at->window > 0) snprintf(keys, sizeof keys, "%zu", at->window);
    if (!at->known) {
        fprintf(out, "%-7s %6s  -\n", name, keys);
        return;
    }
    terms_head mean = over_heads(t, at);
    for (size_t m = 0; m < SINKPROOF_TERMS; m++) most_m[m] = largest_variation(t, at, m);
    print_head(out, name, keys, &mean, most_m);
    for (size_t h = 0; every_head && h < t->config->n_heads; h++) {
        snprintf(name, sizeof name, "  .%zu", h);
        print_head(out, name, "", &at->heads[h], none_m);
    }
}

// The distance of the sum of the terms from the scores of that source.
static void print_apart(FILE *out, const score_terms_study *t, terms_source source) {
    size_t layers = 0, worst = 0;
    for (size_t l = 0; l < t->config->n_layers; l++) {
        const terms_layer *at = &t->layers[l];
        if (!at->known || at->source != source) continue;
        if (layers++ == 0 || sinkproof_is_worse(t->layers[worst].apart, at->apart)) worst = l;
    }
    if (layers == 0) return;
    const char *from = source == SCORES_SHOWN ? "the engine's scores (A6)"
                       : t->cos_nd == NULL    ? "the products of A2.q and A2.k"
                                              : "the products of A4.q and A4.k";
    fprintf(out,
            "Of %zu of the layers the sum of the terms beside %s: at most %.3g apart,\n"
            "in layer %zu, where the largest score is %.4g.\n",
            layers, from, t->layers[worst].apart, worst, t->layers[worst].score);
}

static void print_input(FILE *out, const score_terms_study *t, const sinkproof_sinks_input *in,
                        bool every_head) {
    size_t known = terms_known_layers(t);
    fprintf(out,
            "\n%.60s: the terms of q k^T / sqrt(%zu), q = a + b_Q, k = c + b_K%s\n"
            "%-7s %6s  %-8s %29s %39s\n%-7s %6s  %-8s %9s %9s %9s %9s %9s %9s %15s\n",
            in->text, t->config->head_dim, t->cos_nd != NULL ? ", rotated" : "", "", "", "",
            "the term over the keys", "without it, the weights change by", "layer", "keys", "term",
            "level", "spread", "lead", "alpha_s", "alpha_1", "in all", "the most");
    for (size_t l = 0; l < t->config->n_layers; l++) print_layer(out, t, l, every_head);
    print_apart(out, t, SCORES_SHOWN);
    print_apart(out, t, SCORES_COMPUTED);
    if (known < t->config->n_layers)
        fprintf(out, "Of %zu of the layers A2.q and A2.k are not both there.\n",
                t->config->n_layers - known);
}

static void terms_print(const void *state, const sinkproof_sinks_job *job, FILE *out) {
    const decomposed *all = state;
    for (size_t i = 0; i < job->n_inputs; i++)
        print_input(out, &all->of[i], &job->inputs[i], job->every_head);
    fprintf(out,
            "Level, spread: mean and standard deviation over the keys that a row sees; lead: of "
            "key 1 less\nthe mean of the others; in all: half the sum of what every weight moves, "
            "the sink's with them.\nMeans over the rows, of a layer over its heads. Estimated.\n");
}

// ---- JSON --------------------------------------------------------------------------------------

static json_t *head_json(const terms_head *head) {
    json_t *list = json_array();
    for (size_t m = 0; m < SINKPROOF_TERMS; m++) {
        const term_measure *x = &head->term[m];
        json_array_append_new(
            list,
            json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "term", terms[m].name, "level",
                      sinkproof_number_json(x->level), "spread", sinkproof_number_json(x->spread),
                      "lead", sinkproof_number_json(x->lead), "sink",
                      sinkproof_number_json(x->sink), "first", sinkproof_number_json(x->first),
                      "variation", sinkproof_number_json(x->variation)));
    }
    return json_pack("{s:o, s:o}", "logit", sinkproof_number_json(head->logit), "terms", list);
}

static json_t *layer_json(const score_terms_study *t, size_t l) {
    static const char *const sources[] = {"unknown", "A6", "A4"};
    const terms_layer *at = &t->layers[l];
    bool placed = at->source == SCORES_COMPUTED && t->cos_nd == NULL;
    json_t *heads = json_array();
    for (size_t h = 0; at->known && h < t->config->n_heads; h++)
        json_array_append_new(heads, head_json(&at->heads[h]));
    return json_pack("{s:o, s:o, s:s, s:o, s:o, s:o}", "layer", part_count(l), "window",
                     at->window > 0 ? part_count(at->window) : json_null(), "scores",
                     placed ? "A2" : sources[at->source], "apart", sinkproof_number_json(at->apart),
                     "largest", sinkproof_number_json(at->score), "heads", heads);
}

static void terms_json(const void *state, const sinkproof_sinks_job *job, json_t *results) {
    const decomposed *all = state;
    for (size_t i = 0; i < job->n_inputs; i++) {
        const score_terms_study *t = &all->of[i];
        json_t *layers = json_array();
        for (size_t l = 0; l < t->config->n_layers; l++)
            json_array_append_new(layers, layer_json(t, l));
        json_array_append_new(results,
                              json_pack("{s:s, s:s, s:s, s:o, s:b, s:o}", "decomposed",
                                        job->inputs[i].text, "id", "terms.removed", "label",
                                        "estimated", "tokens", part_count(t->n), "rotated",
                                        (int)(t->cos_nd != NULL), "layers", layers));
    }
}

// ---- the page ----------------------------------------------------------------------------------

typedef struct drawn {
    const score_terms_study *terms;
    size_t m;
} drawn;

static double variation_at(const void *context, size_t l, size_t h) {
    const drawn *d = context;
    const terms_layer *at = &d->terms->layers[l];
    return at->known ? at->heads[h].term[d->m].variation : NAN;
}

static sinks_grid variation_grid(const drawn *what) {
    return (sinks_grid){what->terms->config, variation_at, what, NAN,
                        "the mean total variation without the term"};
}

static bool draw_term(FILE *out, const void *context) {
    sinks_grid grid = variation_grid(context);
    return sinks_grid_draw(out, &grid);
}

static void title_term(FILE *out, const void *context) {
    const drawn *what = context;
    sinkproof_page_say(out, "Without %s (terms.removed)", terms[what->m].tensor);
}

static void explain_term(FILE *out, const drawn *what) {
    sinkproof_page_say(out,
                       "What each head's weights, its sink's with them, would change by if "
                       "%s were not in its scores: half the sum of all distances, the mean over "
                       "the queries.",
                       terms[what->m].tensor);
}

static void say_term(FILE *out, const void *context) {
    sinks_grid grid = variation_grid(context);
    explain_term(out, context);
    sinks_grid_describe(out, &grid);
}

static void write_term(FILE *page, const drawn *what) {
    fputs("<h3>", page);
    sinkproof_page_say(page, "Without %s", terms[what->m].tensor);
    fputs("</h3>\n<figure>", page);
    bool known = draw_term(page, what);
    fputs("<figcaption>", page);
    if (known)
        say_term(page, what);
    else {
        explain_term(page, what);
        fputs(" Not drawn: no head has a number.", page);
    }
    fputs(" Defined by <code>terms.removed</code>.</figcaption></figure>\n", page);
}

static void terms_html(const void *state, const sinkproof_sinks_job *job, FILE *page) {
    const decomposed *all = state;
    for (size_t i = 0; i < job->n_inputs; i++) {
        fputs("<h2>", page);
        sinkproof_page_say(page, "The four terms of the scores: %.200s", job->inputs[i].text);
        fputs("</h2>\n<p>", page);
        sinkproof_page_say(page,
                           "A score is the sum of a c^T, a b_K^T, b_Q c^T and b_Q b_K^T over "
                           "sqrt(%zu), where a and c are query and key without their biases%s. "
                           "Each grid has a scale of its own, up to its largest number.",
                           all->of[i].config->head_dim,
                           all->of[i].cos_nd != NULL ? ", all of them rotated by their positions"
                                                     : "");
        fputs("</p>\n", page);
        for (size_t m = 0; m < SINKPROOF_TERMS; m++) write_term(page, &(drawn){&all->of[i], m});
    }
}

static bool terms_draw(const void *state, const sinkproof_sinks_job *job, size_t input,
                       const char *number, sinkproof_pictures *pictures, sinkproof_error *error) {
    (void)job;
    const decomposed *all = state;
    char name[96];
    for (size_t m = 0; m < SINKPROOF_TERMS; m++) {
        drawn what = {&all->of[input], m};
        sinkproof_picture picture = {&what, draw_term, title_term, say_term};
        snprintf(name, sizeof name, "%sterms-%s", number, terms[m].name);
        if (!sinkproof_pictures_add(pictures, name, &picture, error)) return false;
    }
    return true;
}

const sinkproof_sinks_part sinkproof_part_decompose = {
    .name = "decompose",
    .help = "take every score apart into its four terms, of content and of the biases of query and "
            "key, and say which of them move the weights",
    .prepare = terms_prepare,
    .points = terms_points,
    .n_points = TERMS_POINTS,
    .point = terms_show_point,
    .layer_end = end_layer,
    .run = terms_run_part,
    .print = terms_print,
    .json = terms_json,
    .html = terms_html,
    .draw = terms_draw,
    .free = free_state,
};
