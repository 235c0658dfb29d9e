// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Which weights and biases a product has really used. For each coordinate of the point its numbers
// over the rows of the trace are compared with the product of the input and each row of the weights
// of queries, keys and values, of every layer; for each head its bias with that of each other head.
#include "audit/diagnose/composed_product.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum map_kind { ROWS, BIASES } map_kind;
enum { KIND, OWN_BIAS }; // the numbers; OWN_BIAS: not that of the other row
enum { SOURCE_SLOT, SOURCE_LAYER, SOURCE_ROW, SOURCE_NUMBERS }; // of each row in the table

// ---- what is made

static sinkproof_slot bias_of(sinkproof_slot weight) {
    return (sinkproof_slot)(weight + 1); // the row behind it in the table of slots
}

// The bias of a weight; NULL: it has none, or no memory.
static double *bias_row(const sinkproof_model *model, size_t layer, sinkproof_slot weight) {
    sinkproof_matrix bias = sinkproof_model_slot(model, layer, bias_of(weight));
    double *b_r = bias.count == 1 ? malloc((bias.cols + 1) * sizeof *b_r) : NULL;
    if (b_r != NULL) sinkproof_matrix_row(&bias, 0, b_r);
    return b_r;
}

// The rows of other weights, and their biases.
static bool make_rows(const sinkproof_making *of, const dense_product *p, double *y) {
    double *row_c = malloc((p->ins + p->outs + 1) * sizeof *row_c);
    for (size_t r = 0; row_c != NULL && r < p->outs; r++) {
        const double *source = of->table + r * SOURCE_NUMBERS;
        sinkproof_slot slot = (sinkproof_slot)source[SOURCE_SLOT];
        long layer = (long)of->layer + (long)source[SOURCE_LAYER];
        if (layer < 0 || layer >= (long)of->config->n_layers) break;
        sinkproof_matrix w = sinkproof_model_slot(of->model, (size_t)layer, slot);
        sinkproof_matrix_row(&w, (size_t)source[SOURCE_ROW], row_c);
        double b = p->b_r[r];
        double *b_r = of->numbers[OWN_BIAS] == 0 ? bias_row(of->model, (size_t)layer, slot) : NULL;
        if (b_r != NULL) b = b_r[(size_t)source[SOURCE_ROW]];
        free(b_r);
        for (size_t i = 0; i < p->n; i++)
            y[i * p->outs + r] = b + dense_dot(p->x_nc + i * p->ins, row_c, p->ins);
        if (r + 1 == p->outs) {
            free(row_c);
            return true;
        }
    }
    free(row_c);
    return false;
}

// The biases of other heads, with the weights as they are.
static bool make_biases(const sinkproof_making *of, const dense_product *p, double *y) {
    for (size_t r = 0; r < p->outs; r++) {
        const double *source = of->table + r * SOURCE_NUMBERS;
        long layer = (long)of->layer + (long)source[SOURCE_LAYER];
        if (layer < 0 || layer >= (long)of->config->n_layers) return false;
        double *b_r = bias_row(of->model, (size_t)layer, (sinkproof_slot)source[SOURCE_SLOT]);
        if (b_r == NULL) return false;
        for (size_t i = 0; i < p->n; i++)
            y[i * p->outs + r] =
                of->x[i * p->outs + r] - p->b_r[r] + b_r[(size_t)source[SOURCE_ROW]];
        free(b_r);
    }
    return true;
}

static bool make_mapped(const sinkproof_making *of, double *y, double *width) {
    dense_product p;
    bool known, fine = dense_product_read(of, &p, &known) && known;
    fine = fine && (of->numbers[KIND] == ROWS ? make_rows(of, &p, y) : make_biases(of, &p, y));
    if (fine) dense_widths(of, &p, y, width);
    dense_product_free(&p);
    return fine;
}

// ---- rows

typedef struct row_search {
    composing *c;
    const operation *o;
    const dense_product *p;
    double *source_r; // SOURCE_NUMBERS of each
    double *misfit_r;
} row_search;

// How far a coordinate is from t times a row's product plus a constant, over its spread.
static double row_misfit(const dense_product *p, size_t r, const double *q_n) {
    double n = (double)p->n, qs = 0, vs = 0, qq = 0, qv = 0, vv = 0;
    for (size_t i = 0; i < p->n; i++) {
        double q = q_n[i], v = p->v_nr[i * p->outs + r];
        qs += q, vs += v, qq += q * q, qv += q * v, vv += v * v;
    }
    // its factor is 1: only the constant is free
    double mean = (vs - qs) / n, far = vv + qq - 2 * qv - n * mean * mean;
    double spread = vv - vs * vs / n;
    return spread > 0 ? far / spread : INFINITY;
}

// The same with the product of the input and each row of a slot.
static bool compare_slot(row_search *s, size_t layer, sinkproof_slot slot) {
    const dense_product *p = s->p;
    size_t rows = 0;
    double *w_rc = dense_weights(s->c->s->trials.suspect.model, layer, slot, p->ins, &rows);
    double *q_n = malloc((p->n + 1) * sizeof *q_n);
    for (size_t j = 0; w_rc != NULL && q_n != NULL && j < rows; j++) {
        for (size_t i = 0; i < p->n; i++)
            q_n[i] = dense_dot(p->x_nc + i * p->ins, w_rc + j * p->ins, p->ins);
        for (size_t r = 0; r < p->outs; r++) {
            double misfit = row_misfit(p, r, q_n);
            if (!(misfit < s->misfit_r[r])) continue;
            s->misfit_r[r] = misfit;
            double *source = s->source_r + r * SOURCE_NUMBERS;
            source[SOURCE_SLOT] = slot, source[SOURCE_ROW] = (double)j;
            source[SOURCE_LAYER] = (double)layer - (double)s->c->place;
        }
    }
    free(w_rc);
    free(q_n);
    return true;
}

static const char *kind_words(sinkproof_slot slot) {
    return slot == SINKPROOF_W_Q   ? "queries"
           : slot == SINKPROOF_W_K ? "keys"
           : slot == SINKPROOF_W_V ? "values"
                                   : "weight";
}

// "rows 0-15 are rows 144-159 of the queries": runs of rows that follow one another; `are`: the
// verb.
static void say_sources(const row_search *s, const char *are, char *text, size_t size) {
    enum { MOST_RUNS = 5 };
    size_t used = 0, runs = 0, outs = s->p->outs;
    for (size_t r = 0, end; r < outs && used < size; r = end) {
        const double *from = s->source_r + r * SOURCE_NUMBERS, *at = from;
        for (end = r + 1; end < outs; end++) {
            at = s->source_r + end * SOURCE_NUMBERS;
            if (at[SOURCE_SLOT] != from[SOURCE_SLOT] || at[SOURCE_LAYER] != from[SOURCE_LAYER] ||
                at[SOURCE_ROW] != from[SOURCE_ROW] + (double)(end - r))
                break;
        }
        bool own = from[SOURCE_SLOT] == (double)s->o->slots[0] && from[SOURCE_LAYER] == 0;
        if (own && from[SOURCE_ROW] == (double)r) continue;
        if (runs++ == MOST_RUNS) {
            snprintf(text + used, size - used, ", ...");
            return;
        }
        int wrote;
        size_t last = (size_t)from[SOURCE_ROW] + end - r - 1;
        if (end > r + 1)
            wrote = snprintf(text + used, size - used, "%srows %zu-%zu %s rows %g-%zu",
                             runs > 1 ? ", " : "", r, end - 1, are, from[SOURCE_ROW], last);
        else
            wrote = snprintf(text + used, size - used, "%srow %zu is row %g", runs > 1 ? ", " : "",
                             r, from[SOURCE_ROW]);
        used += (size_t)wrote;
        if (!own && used < size)
            used += (size_t)snprintf(text + used, size - used, " of the %s%s",
                                     kind_words((sinkproof_slot)from[SOURCE_SLOT]),
                                     from[SOURCE_LAYER] == 0   ? ""
                                     : from[SOURCE_LAYER] == 1 ? " of the next layer"
                                     : from[SOURCE_LAYER] < 0  ? " of an earlier layer"
                                                               : " of a later layer");
    }
}

// By how many rows the weights are read too late from one weight of queries, keys and values; 0:
// they are not.
static long fused_shift(const row_search *s) {
    const sinkproof_config *config = s->c->s->trials.config;
    size_t d = config->head_dim;
    size_t begins[3] = {0, config->n_heads * d, (config->n_heads + config->n_kv_heads) * d};
    long shift = 0;
    for (size_t r = 0; r < s->p->outs; r++) {
        const double *from = s->source_r + r * SOURCE_NUMBERS;
        if (from[SOURCE_LAYER] != 0 || s->o->slots[0] == SINKPROOF_W_O) return 0;
        size_t own = (size_t)(s->o->slots[0] - SINKPROOF_W_Q) / 2,
               other = (size_t)((sinkproof_slot)from[SOURCE_SLOT] - SINKPROOF_W_Q) / 2;
        if (own > 2 || other > 2) return 0;
        long by = (long)begins[other] + (long)from[SOURCE_ROW] - (long)begins[own] - (long)r;
        if (r > 0 && by != shift) return 0;
        shift = by;
    }
    return shift;
}

static bool try_row_sources(const row_search *s) {
    composing *c = s->c;
    made_kind made = {.make = make_mapped, .numbers = {[KIND] = ROWS}};
    size_t moved = 0;
    char sources[240] = "";
    for (size_t r = 0; r < s->p->outs; r++) {
        const double *from = s->source_r + r * SOURCE_NUMBERS;
        if (!(s->misfit_r[r] < 0.05)) return true;
        moved += from[SOURCE_ROW] != (double)r || from[SOURCE_LAYER] != 0 ||
                 from[SOURCE_SLOT] != (double)s->o->slots[0];
    }
    if (moved == 0) return true;
    made.table = composing_keep_numbers(c, s->p->outs * SOURCE_NUMBERS, s->source_r);
    if (made.table == NULL) return false;
    long shift = fused_shift(s);
    say_sources(s, "are", sources, sizeof sources);
    for (int own = 0; own < 2 && c->found == NULL; own++) {
        made.numbers[OWN_BIAS] = own;
        if (shift != 0) {
            snprintf(made.id, sizeof made.id, "rows-at%+ld%s", shift, own ? "-bias-own" : "");
            snprintf(
                made.text, sizeof made.text,
                "is computed with other rows of the weights: those that are %ld rows too %s in "
                "one weight of queries, keys and values (%s)",
                labs(shift), shift < 0 ? "early" : "late", sources);
        } else {
            snprintf(made.id, sizeof made.id, "rows-of-others%s", own ? "-bias-own" : "");
            snprintf(made.text, sizeof made.text, "is computed with other rows of the weights: %s",
                     sources);
        }
        size_t used = strlen(made.text);
        snprintf(made.text + used, sizeof made.text - used, "%s",
                 own ? "; the bias is its own" : "; the bias too");
        if (!composing_try_made(s->o, &made)) return false;
    }
    return true;
}

static bool search_rows(const operation *o, const dense_product *p) {
    static const sinkproof_slot slots[] = {SINKPROOF_W_Q, SINKPROOF_W_K, SINKPROOF_W_V};
    const sinkproof_config *config = o->c->s->trials.config;
    row_search s = {.c = o->c, .o = o, .p = p};
    s.source_r = calloc(p->outs * (SOURCE_NUMBERS + 1) + 1, sizeof *s.source_r);
    if (s.source_r == NULL) return fail_for_memory(o->c->s);
    s.misfit_r = s.source_r + p->outs * SOURCE_NUMBERS;
    for (size_t r = 0; r < p->outs; r++) s.misfit_r[r] = INFINITY;
    bool attention = o->slots[0] == SINKPROOF_W_Q || o->slots[0] == SINKPROOF_W_K ||
                     o->slots[0] == SINKPROOF_W_V;
    double work = (double)p->n * (double)p->outs * (double)(3 * p->outs + 3 * p->ins);
    compare_slot(&s, o->layer, o->slots[0]); // the nearest first: of equal ones it is kept
    for (int k = 0; attention && k < 3; k++) compare_slot(&s, o->layer, slots[k]);
    for (size_t l = 0; l < config->n_layers && work * (double)config->n_layers < 1e9; l++)
        for (int k = 0; attention && k < 3; k++) compare_slot(&s, l, slots[k]);
    bool fine = try_row_sources(&s);
    free(s.source_r);
    return fine;
}

// ---- biases

// For each head the head of queries, keys or values, of any layer, whose bias fits best.
static void compare_biases(row_search *s, size_t layer, sinkproof_slot slot) {
    const dense_product *p = s->p;
    size_t d = s->c->s->trials.config->head_dim;
    sinkproof_matrix bias =
        sinkproof_model_slot(s->c->s->trials.suspect.model, layer, bias_of(slot));
    double *b_r = bias_row(s->c->s->trials.suspect.model, layer, slot);
    for (size_t first = 0; b_r != NULL && first < p->outs; first += d)
        for (size_t from = 0; from + d <= bias.cols && first + d <= p->outs; from += d) {
            double misfit = 0;
            for (size_t at = 0; at < p->n * d; at++) {
                size_t r = first + at % d, e = at / d * p->outs + r;
                double off = s->c->v[e] - (s->c->mid[e] - p->b_r[r] + b_r[from + at % d]);
                double width = fmax(s->c->hi[e] - s->c->lo[e], s->c->least);
                misfit += off * off / (width * width) / (double)(p->n * d);
            }
            if (!(misfit < s->misfit_r[first])) continue;
            for (size_t r = first; r < first + d; r++) {
                double *source = s->source_r + r * SOURCE_NUMBERS;
                s->misfit_r[r] = misfit, source[SOURCE_SLOT] = slot;
                source[SOURCE_ROW] = (double)(from + r - first);
                source[SOURCE_LAYER] = (double)layer - (double)s->c->place;
            }
        }
    free(b_r);
}

static bool search_biases(const operation *o, const dense_product *p) {
    static const sinkproof_slot slots[] = {SINKPROOF_W_Q, SINKPROOF_W_K, SINKPROOF_W_V};
    composing *c = o->c;
    row_search s = {.c = c, .o = o, .p = p};
    made_kind made = {.make = make_mapped, .numbers = {[KIND] = BIASES}};
    char sources[240] = "";
    bool attention = false, moved = false, near = true, fine = true;
    for (int k = 0; k < 3; k++) attention = attention || o->slots[0] == slots[k];
    if (!attention || o->n_weights < 2) return true;
    s.source_r = calloc(p->outs * (SOURCE_NUMBERS + 1) + 1, sizeof *s.source_r);
    if (s.source_r == NULL) return fail_for_memory(c->s);
    s.misfit_r = s.source_r + p->outs * SOURCE_NUMBERS;
    for (size_t r = 0; r < p->outs; r++) s.misfit_r[r] = INFINITY;
    compare_biases(&s, o->layer, o->slots[0]); // of equal ones the nearest is kept
    for (int k = 0; k < 3; k++) compare_biases(&s, o->layer, slots[k]);
    for (size_t l = 0; l < c->s->trials.config->n_layers; l++)
        for (int k = 0; k < 3; k++) compare_biases(&s, l, slots[k]);
    for (size_t r = 0; r < p->outs; r++) {
        const double *from = s.source_r + r * SOURCE_NUMBERS;
        near = near && s.misfit_r[r] < 16;
        moved = moved || from[SOURCE_ROW] != (double)r || from[SOURCE_LAYER] != 0 ||
                from[SOURCE_SLOT] != (double)o->slots[0];
    }
    if (near && moved) {
        say_sources(&s, "have those of", sources, sizeof sources);
        made.table = composing_keep_numbers(c, p->outs * SOURCE_NUMBERS, s.source_r);
        snprintf(made.id, sizeof made.id, "biases-of-other-heads");
        snprintf(made.text, sizeof made.text,
                 "has biases of other heads, the weights are its own: %s", sources);
        fine = made.table != NULL && composing_try_made(o, &made);
    }
    free(s.source_r);
    return fine;
}

bool compose_weight_maps(composing *c) {
    dense_search *const searches[] = {search_biases, search_rows};
    return compose_dense(c, 2, searches);
}
