// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Products whose columns are added up in equal parts, each rounded to a narrow format before the
// parts are added, as ranks or a kernel that splits the columns leave them.
#include "audit/diagnose/composed_made.h"
#include "proofs/bounds/honest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// The numbers. RUNNING: the sum of the parts is rounded after each. REPEATED: each part has the
// weights of the first. BIAS_FIRST: the bias is in the first part, not behind the sum.
enum { PARTS, FORMAT, RUNNING, REPEATED, BIAS_FIRST };

typedef struct partial_product {
    const sinkproof_making *of;
    point_operation kind;
    const sinkproof_tensor *x;
    sinkproof_matrix w, b; // b.count 0: no bias
    size_t width;          // of a token's input
    double *row_c, *bias_r;
} partial_product;

static bool product_read(const sinkproof_making *of, partial_product *p) {
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    sinkproof_slot slots[SINKPROOF_MAX_WEIGHTS];
    *p = (partial_product){.of = of, .kind = sinkproof_trace_operation(of->config, of->point)};
    if (p->kind != SINKPROOF_LINEAR && p->kind != SINKPROOF_MULTIPLY) return false;
    if (sinkproof_trace_inputs(of->config, of->point, of->layer, inputs) < 1) return false;
    size_t weights = sinkproof_trace_weights(of->config, of->point, slots);
    p->x = sinkproof_trace_find(of->trace, inputs[0].point, inputs[0].layer);
    if (p->x == NULL || weights < 1) return false;
    p->w = sinkproof_model_slot(of->model, of->layer, slots[0]);
    if (weights > 1) p->b = sinkproof_model_slot(of->model, of->layer, slots[1]);
    p->width = sinkproof_tensor_elements(p->x) / of->n;
    if (p->w.cols == 0 || p->width % p->w.cols != 0) return false;
    p->row_c = calloc(p->w.cols + p->b.cols + 1, sizeof *p->row_c);
    p->bias_r = p->row_c != NULL ? p->row_c + p->w.cols : NULL;
    if (p->row_c != NULL && p->b.count > 0) sinkproof_matrix_row(&p->b, 0, p->bias_r);
    return p->row_c != NULL;
}

static double rounded(const sinkproof_making *of, double x) {
    return sinkproof_round((sinkproof_format)of->numbers[FORMAT], x);
}

// The least and the largest sum of the parts at an element: a part's own sum may be added up in
// binary32 in any order (bound.dot). Returns false where the element reads no weights.
static bool sum_parts(const partial_product *p, size_t at, double *lo, double *hi) {
    const sinkproof_making *of = p->of;
    size_t each = of->all / of->n, i = at / each, cols = p->w.cols;
    bool experts = p->kind == SINKPROOF_MULTIPLY, slots = experts && p->width > cols;
    size_t rows = p->w.rows, q = at / rows, first = i * p->width;
    if (experts && (of->chosen_nk == NULL || of->chosen_nk[q] < 0)) return false;
    if (slots) first += q % of->config->n_chosen * cols;
    sinkproof_matrix one = sinkproof_matrix_at(&p->w, experts ? (size_t)of->chosen_nk[q] : 0);
    sinkproof_matrix_row(&one, at % rows, p->row_c);
    size_t parts = (size_t)of->numbers[PARTS], part = cols / parts;
    double bias = p->b.count > 0 ? p->bias_r[at % rows] : 0;
    *lo = *hi = 0;
    for (size_t k = 0; k < parts; k++) {
        double sum = 0, sizes = 0;
        for (size_t c = k * part; c < (k + 1) * part; c++) {
            double w = p->row_c[of->numbers[REPEATED] != 0 ? c % part : c];
            double term = w * sinkproof_tensor_value(p->x, first + c);
            sum += term, sizes += fabs(term);
        }
        if (k == 0 && of->numbers[BIAS_FIRST] != 0) sum += bias, sizes += fabs(bias);
        double error = sizes * sinkproof_gamma((double)part + 1, 0x1p-24);
        *lo += rounded(of, sum - error), *hi += rounded(of, sum + error);
        bool last = k + 1 == parts && (bias == 0 || of->numbers[BIAS_FIRST] != 0);
        if (of->numbers[RUNNING] != 0 && !last) *lo = rounded(of, *lo), *hi = rounded(of, *hi);
    }
    if (of->numbers[BIAS_FIRST] == 0) *lo += bias, *hi += bias;
    return true;
}

static bool make_partial(const sinkproof_making *of, double *y, double *width) {
    partial_product p;
    bool known = product_read(of, &p);
    for (size_t at = 0; known && at < of->all; at++) {
        double lo, hi;
        known = sum_parts(&p, at, &lo, &hi);
        if (known) y[at] = (lo + hi) / 2, width[at] = (hi - lo) / 2;
    }
    free(p.row_c);
    return known;
}

// Whether the sample is inside, but for one of eight: roundings differ by less than what is near.
static bool sample_is_inside(const operation *o, const double *numbers) {
    const composing *c = o->c;
    sinkproof_making of = composing_making(c);
    partial_product p;
    size_t far = 0;
    of.numbers = numbers;
    bool known = product_read(&of, &p);
    for (size_t s = 0; known && s < o->n && 8 * far <= o->n; s++) {
        double lo, hi, v = c->v[o->at[s]], half = fabs(v) * c->step / 2;
        known = sum_parts(&p, o->at[s], &lo, &hi);
        far += known && !(v >= lo - half && v <= hi + half);
    }
    free(p.row_c);
    return known && o->n > 0 && 8 * far <= o->n;
}

static bool try_parts(const operation *o, const double *numbers, const char *format) {
    made_kind kind = {.make = make_partial};
    for (size_t i = 0; i < SINKPROOF_MAKING_NUMBERS; i++) kind.numbers[i] = numbers[i];
    if (o->c->found != NULL || !sample_is_inside(o, numbers)) return true;
    size_t parts = (size_t)numbers[PARTS];
    snprintf(kind.id, sizeof kind.id, "parts-%zu-%s-%g-%g-%g", parts, format, numbers[RUNNING],
             numbers[REPEATED], numbers[BIAS_FIRST]);
    snprintf(kind.text, sizeof kind.text,
             "adds up its columns in %zu equal parts (ranks, or a split of the sum), each rounded "
             "to %s before the parts are added%s%s%s",
             parts, format, numbers[RUNNING] != 0 ? ", and their sum after each" : "",
             numbers[REPEATED] != 0 ? "; each part has the weights of the first part" : "",
             numbers[BIAS_FIRST] != 0 ? "; the bias is in the first part" : "");
    return composing_try_made(o, &kind);
}

bool compose_partial_sums(composing *c) {
    enum { MOST_PRODUCTS = 1 << 27 };
    static const size_t parts[] = {2, 4, 8, 3, 6, 16};
    operation o;
    bool fine = operation_read(c, &o);
    bool product = o.kind == SINKPROOF_LINEAR || o.kind == SINKPROOF_MULTIPLY;
    product = product && fine && o.whole;
    if (product && c->elements < MOST_PRODUCTS / (o.weights[0].cols + 1))
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
            for (int how = 0; how < 16 && fine && c->found == NULL; how++) {
                bool half = how / 8 == 1, first = how / 4 % 2 == 1;
                const double numbers[SINKPROOF_MAKING_NUMBERS] = {[PARTS] = (double)parts[i],
                                                                  [FORMAT] = half ? SINKPROOF_F16
                                                                                  : SINKPROOF_BF16,
                                                                  [RUNNING] = how % 2,
                                                                  [REPEATED] = how / 2 % 2,
                                                                  [BIAS_FIRST] = first};
                bool same = (first && o.n_weights < 2) || (how % 2 == 1 && parts[i] == 2);
                if (o.weights[0].cols % parts[i] != 0 || same) continue;
                fine = try_parts(&o, numbers, half ? "binary16" : "bfloat16");
            }
    operation_free(&o);
    return fine;
}
