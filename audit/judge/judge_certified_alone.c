// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A trace against certified truth without the model.
#include "audit/judge/judge_certified.h"
#include "ref/stages.h"

#include <stdlib.h>
#include <string.h>

typedef struct alone {
    const sinkproof_config *config;
    const sinkproof_trace *trace;
    const truth_file *truth;
    const sinkproof_policy *policy;
    certified_comparison *comparison;
    bool *other_n; // the experts of the layer are others, or not known
    int32_t *chosen_k;
    size_t n;
} alone;

static void compare_choices(const alone *a, size_t layer) {
    const sinkproof_tensor *own = sinkproof_trace_find(a->trace, TRACE_M3, layer);
    const sinkproof_tensor *m3 = sinkproof_trace_find(a->truth->trace, TRACE_M3, layer);
    size_t k = a->config->n_chosen;
    for (size_t i = 0; i < a->n; i++) {
        a->chosen_k[0] = -1;
        for (size_t s = 0; own != NULL && s < k; s++)
            a->chosen_k[s] = (int32_t)sinkproof_tensor_value(own, i * k + s);
        a->other_n[i] = certified_choice(a->comparison, m3, i, k, a->chosen_k);
    }
}

// The keys that row r of [heads, n] sees, and its sink.
static void measure_head_row(const alone *a, sinkproof_trace_point point, size_t layer, size_t r,
                             const sinkproof_tensor *tensor, const truth_balls *balls,
                             certified_row *row) {
    size_t window = a->config->sliding[layer] ? a->config->window : 0, i = r % a->n;
    size_t first = sinkproof_mask_first(window, i), columns = tensor->shape[2];
    certified_measure(row, tensor, balls, r * columns + first, i + 1 - first, NULL);
    if (point == TRACE_A9) certified_measure(row, tensor, balls, r * columns + a->n, 1, NULL);
}

static bool compare_point(const alone *a, sinkproof_trace_point point, size_t layer) {
    const sinkproof_tensor *tensor = sinkproof_trace_find(a->trace, point, layer);
    bool of_slots = point >= TRACE_M4 && point <= TRACE_M10 && a->config->n_chosen > 0;
    bool by_head = sinkproof_trace_point_is_by_head(point);
    size_t rows = by_head ? a->config->n_heads * a->n : a->n, other = 0;
    truth_balls balls;
    if (tensor == NULL || !sinkproof_truth_file_find(a->truth, point, layer, &balls)) return true;
    size_t width = sinkproof_tensor_elements(tensor) / rows;
    certified_row *row_r = calloc(rows, sizeof *row_r);
    if (row_r == NULL) return false;
#pragma omp parallel for schedule(static) reduction(+ : other)
    for (size_t r = 0; r < rows; r++)
        if (by_head)
            measure_head_row(a, point, layer, r, tensor, &balls, &row_r[r]);
        else if (of_slots && a->other_n[r])
            other++;
        else
            certified_measure(&row_r[r], tensor, &balls, r * width, width, NULL);
    certified_append(a->comparison, a->policy, tensor, point, layer, row_r, rows, other);
    free(row_r);
    if (point == TRACE_F2)
        a->comparison->argmax = certified_argmaxes(tensor, &balls, a->n, a->config->vocab);
    return true;
}

certified_comparison *sinkproof_certified_alone(const sinkproof_config *config,
                                                const sinkproof_trace *trace,
                                                const truth_file *truth,
                                                const sinkproof_policy *policy) {
    size_t n = sinkproof_trace_length(trace);
    alone a = {.config = config,
               .trace = trace,
               .truth = truth,
               .policy = policy,
               .comparison = certified_new(truth, (config->n_layers + 1) * TRACE_POINTS),
               .other_n = calloc(n, sizeof *a.other_n),
               .chosen_k = calloc(config->n_chosen + 1, sizeof *a.chosen_k),
               .n = n};
    bool fine = a.comparison != NULL && a.other_n != NULL && a.chosen_k != NULL &&
                compare_point(&a, TRACE_T0, 0);
    for (size_t l = 0; fine && l < config->n_layers; l++) {
        if (config->n_chosen > 0) compare_choices(&a, l);
        for (int p = 0; fine && p < TRACE_POINTS; p++)
            if (sinkproof_trace_point_is_layered((sinkproof_trace_point)p))
                fine = compare_point(&a, (sinkproof_trace_point)p, l);
        sinkproof_trace_forget_layer(trace, l);
    }
    fine = fine && compare_point(&a, TRACE_F1, 0) && compare_point(&a, TRACE_F2, 0);
    free(a.other_n);
    free(a.chosen_k);
    if (fine) return a.comparison;
    certified_free(a.comparison);
    return NULL;
}
