// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What a gradient is judged by: points, gradients and weights as a backward pass may read them. A
// value of the trace is the engine's own. Where the policy leaves open whether the engine rounded
// it to a narrow format before it went on, the number that was read is near it.
#include "audit/judge/judge_backward_internal.h"
#include "audit/trace/trace_points.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const sinkproof_backward_meaning backward_as_defined = {.times = 1};

void *backward_allocate(backward_pass *pass, size_t count, size_t size) {
    void *x = calloc(count + 1, size);
    if (x == NULL) pass->failed = true;
    return x;
}

void *backward_lacks(backward_pass *pass, const char *what, const char *name) {
    if (pass->missing[0] == '\0') snprintf(pass->missing, sizeof pass->missing, "%s%s", what, name);
    return NULL;
}

// Whether what the trace holds is what is read: the policy rounds there, and nothing keeps more.
static bool is_as_stored(const backward_pass *pass, sinkproof_trace_point point,
                         const sinkproof_tensor *tensor) {
    sinkproof_point at;
    if (pass->arithmetic.narrow == SINKPROOF_REAL) return true;
    if (!sinkproof_trace_rounding(point, &at)) return true;
    sinkproof_rounding rounding = pass->policy->at[at];
    double stored = sinkproof_unit_roundoff(sinkproof_trace_format(tensor->dtype));
    return rounding.format != SINKPROOF_REAL && !rounding.optional &&
           !pass->policy->unrounded[at] && stored >= sinkproof_unit_roundoff(rounding.format);
}

static near_set *read_tensor(backward_pass *pass, sinkproof_trace_point point,
                             const sinkproof_tensor *tensor, bool rounded) {
    size_t count = sinkproof_tensor_elements(tensor);
    near_set *x = backward_allocate(pass, count, sizeof *x);
    bool open = pass->arithmetic.narrow != SINKPROOF_REAL && !rounded;
    for (size_t i = 0; x != NULL && i < count; i++) {
        x[i] = sinkproof_near_exact(sinkproof_tensor_value(tensor, i));
        if (open && x[i].mid != 0) {
            double size = fabs(x[i].mid);
            x[i].off += 2 * pass->arithmetic.narrow_u * size + 2 * pass->arithmetic.narrow_least;
        }
    }
    (void)point;
    return x;
}

near_set *backward_read_point(backward_pass *pass, sinkproof_trace_point point, size_t layer) {
    const sinkproof_tensor *tensor = sinkproof_trace_find(pass->trace, point, layer);
    char name[SINKPROOF_TRACE_NAME];
    sinkproof_trace_name(point, layer, name);
    if (tensor == NULL) return backward_lacks(pass, "", name);
    return read_tensor(pass, point, tensor, is_as_stored(pass, point, tensor));
}

// "03.dA4.q" of "03.A4.q"
static void gradient_name(sinkproof_trace_point point, size_t layer, char *name, size_t size) {
    if (sinkproof_trace_point_is_layered(point))
        snprintf(name, size, "%02zu.d%s", layer, sinkproof_trace_point_name(point));
    else
        snprintf(name, size, "d%s", sinkproof_trace_point_name(point));
}

static const sinkproof_tensor *find_gradient(const backward_pass *pass, sinkproof_trace_point point,
                                             size_t layer) {
    char name[SINKPROOF_TRACE_NAME];
    gradient_name(point, layer, name, sizeof name);
    return sinkproof_safetensors_find(sinkproof_trace_file(pass->trace), name);
}

bool backward_has_gradient(const backward_pass *pass, sinkproof_trace_point point, size_t layer) {
    return find_gradient(pass, point, layer) != NULL;
}

near_set *backward_read_gradient(backward_pass *pass, sinkproof_trace_point point, size_t layer) {
    const sinkproof_tensor *tensor = find_gradient(pass, point, layer);
    char name[SINKPROOF_TRACE_NAME];
    gradient_name(point, layer, name, sizeof name);
    if (tensor == NULL) return backward_lacks(pass, "", name);
    return read_tensor(pass, point, tensor, is_as_stored(pass, point, tensor));
}

near_set *backward_read_passed(backward_pass *pass, sinkproof_trace_point point,
                               sinkproof_trace_point residual, size_t layer) {
    if (backward_has_gradient(pass, point, layer))
        return backward_read_gradient(pass, point, layer);
    // The sum's gradient is that of both its terms, unless the loss reads one of them.
    return backward_read_gradient(pass, residual, layer);
}

near_set *backward_read_weight(backward_pass *pass, const sinkproof_matrix *matrix, size_t part) {
    sinkproof_matrix m = sinkproof_matrix_at(matrix, part);
    near_set *w = backward_allocate(pass, m.rows * m.cols, sizeof *w);
    double *row = backward_allocate(pass, m.cols, sizeof *row);
    for (size_t r = 0; w != NULL && row != NULL && r < m.rows; r++) {
        sinkproof_matrix_row(&m, r, row);
        for (size_t c = 0; c < m.cols; c++)
            w[r * m.cols + c] =
                sinkproof_near_narrowed(&pass->arithmetic, sinkproof_near_exact(row[c]));
    }
    free(row);
    if (!pass->failed) return w;
    free(w);
    return NULL;
}

// ---- the loss --------------------------------------------------------------------------------

// The metadata's `loss`: "cross-entropy", or the points that it reads, as in "F2,03.A9.lse".
static const char *loss_said(const backward_pass *pass) {
    return sinkproof_trace_metadata(pass->trace, "loss");
}

bool backward_loss_is_cross_entropy(const backward_pass *pass) {
    const char *said = loss_said(pass);
    return said != NULL && strcmp(said, "cross-entropy") == 0;
}

bool backward_loss_reads(const backward_pass *pass, sinkproof_trace_point point, size_t layer) {
    const char *said = loss_said(pass);
    if (said == NULL || strcmp(said, "cross-entropy") == 0) return point == TRACE_F2;
    for (const char *word = said; *word != '\0'; word += *word == ',') {
        size_t length = strcspn(word, ",");
        const char *from = word;
        size_t spaces = strspn(from, " ");
        if (length > spaces &&
            sinkproof_trace_word_names(from + spaces, length - spaces, point, layer))
            return true;
        word += length;
    }
    return false;
}

// ---- sums ------------------------------------------------------------------------------------

bool backward_sums_new(backward_pass *pass, size_t n, backward_sums *sums) {
    *sums = (backward_sums){n, backward_allocate(pass, n, sizeof *sums->terms)};
    return sums->terms != NULL;
}

near_set *backward_sums_finish(backward_pass *pass, backward_sums *sums, double terms,
                               double roundings, double narrow) {
    near_set *x =
        sums->terms != NULL && !pass->failed ? backward_allocate(pass, sums->n, sizeof *x) : NULL;
    for (size_t i = 0; x != NULL && i < sums->n; i++)
        x[i] = sinkproof_gradient_sum(&pass->arithmetic, &sums->terms[i], terms, roundings, narrow);
    free(sums->terms);
    sums->terms = NULL;
    return x;
}

near_set *backward_sums_gathered(backward_pass *pass, backward_sums *sums, size_t width,
                                 const size_t *added, double more) {
    near_set *x =
        sums->terms != NULL && !pass->failed ? backward_allocate(pass, sums->n, sizeof *x) : NULL;
    for (size_t i = 0; x != NULL && i < sums->n; i++) {
        double terms = (double)added[i / width] + more;
        x[i] = sinkproof_gradient_sum(&pass->arithmetic, &sums->terms[i], terms, 2, terms + 1);
    }
    free(sums->terms);
    sums->terms = NULL;
    return x;
}

void backward_add_inputs(size_t n, size_t rows, size_t cols, const near_set *w_rc,
                         const near_set *dy_tr, gradient_terms *dx_tc) {
#pragma omp parallel for schedule(dynamic, 1) if (n * rows * cols > 1u << 20)
    for (size_t t = 0; t < n; t++)
        for (size_t r = 0; r < rows; r++)
            for (size_t c = 0; c < cols; c++)
                sinkproof_gradient_add(&dx_tc[t * cols + c], dy_tr[t * rows + r],
                                       w_rc[r * cols + c]);
}

void backward_add_weights(size_t n, size_t rows, size_t cols, const near_set *dy_tr, size_t stride,
                          const near_set *x_tc, gradient_terms *dw_rc) {
#pragma omp parallel for schedule(dynamic, 1) if (n * rows * cols > 1u << 20)
    for (size_t r = 0; r < rows; r++)
        for (size_t t = 0; t < n; t++)
            for (size_t c = 0; c < cols; c++)
                sinkproof_gradient_add(&dw_rc[r * cols + c], dy_tr[t * stride + r],
                                       x_tc[t * cols + c]);
}
