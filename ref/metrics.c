// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The metrics of attention sinks, each a few lines of its definition. They have only the roundings
// of binary64, in the order of the code.
#include "ref/metrics.h"

#include "ref/stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

sinkproof_span sinkproof_metric_span(size_t n, const double *x_i) {
    sinkproof_span span = {NAN, NAN, NAN};
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += x_i[i];
        if (i == 0 || x_i[i] < span.least) span.least = x_i[i];
        if (i == 0 || x_i[i] > span.most) span.most = x_i[i];
    }
    if (n > 0) span.mean = sum / (double)n;
    if (isnan(span.mean)) span.least = span.most = NAN;
    return span;
}

void sinkproof_metric_add_row(size_t first, size_t keys, const double *alpha_j, double *sum_k) {
    //> metric.sink
    for (size_t j = 0; j < keys; j++) sum_k[first + j] += alpha_j[j];
    //< metric.sink
}

double sinkproof_metric_alpha(size_t n, size_t k, double sum) {
    //> metric.sink
    return sum / (double)(n - k); // k counts from 0: rows k to n - 1
    //< metric.sink
}

bool sinkproof_metric_is_sink(double alpha, double epsilon) {
    //> metric.sink
    return alpha > epsilon;
    //< metric.sink
}

size_t sinkproof_metric_sinks(size_t heads, const double *alpha_h, double epsilon) {
    //> metric.sink
    size_t sinks = 0;
    for (size_t h = 0; h < heads; h++) sinks += sinkproof_metric_is_sink(alpha_h[h], epsilon);
    return sinks;
    //< metric.sink
}

double sinkproof_metric_uniform(size_t n) {
    double sum = 0;
    for (size_t t = 1; t <= n; t++) sum += 1 / (double)t;
    return sum / (double)n;
}

double sinkproof_metric_star(size_t n, const double *sink_i) {
    //> metric.sink-star
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += sink_i[i];
    return sum / (double)n;
    //< metric.sink-star
}

double sinkproof_metric_star_published(size_t n, const double *sink_i) {
    //> metric.sink-star
    double sum = 1; // the sink's own row
    for (size_t i = 0; i < n; i++) sum += sink_i[i];
    return sum / (double)(n + 1);
    //< metric.sink-star
}

double sinkproof_metric_share(size_t sinks, size_t heads) {
    //> table.inputs
    return (double)sinks / (double)heads;
    //< table.inputs
}

double sinkproof_metric_length(size_t d, const double *g_dd, const double *x_d) {
    //> metric.value-bias
    double square = 0;
    for (size_t a = 0; a < d; a++) {
        double row = 0;
        for (size_t b = 0; b < d; b++) row += g_dd[a * d + b] * x_d[b];
        square += row * x_d[a];
    }
    return sqrt(square);
    //< metric.value-bias
}

double sinkproof_metric_left(double alpha_sink, double length) {
    //> metric.value-bias
    return (1 - alpha_sink) * length;
    //< metric.value-bias
}

// ---- medians -----------------------------------------------------------------------------------

static void swap(double *a, double *b) {
    double kept = *a;
    *a = *b;
    *b = kept;
}

// Moves the k-th smallest of x[n] to index k, with nothing larger before it and nothing smaller
// after it.
static void place_kth_smallest(size_t n, double *x, size_t k) {
    size_t low = 0, high = n - 1;
    while (low < high) {
        double pivot = x[low + (high - low) / 2];
        size_t i = low, j = high;
        for (;;) {
            while (x[i] < pivot) i++;
            while (pivot < x[j]) j--;
            if (i >= j) break;
            swap(&x[i++], &x[j--]);
        }
        if (k <= j)
            high = j;
        else
            low = j + 1;
    }
}

double metric_median(size_t n, double *x_i) {
    for (size_t i = 0; i < n; i++)
        if (isnan(x_i[i])) return NAN;
    if (n == 0) return NAN;
    place_kth_smallest(n, x_i, n / 2);
    double upper = x_i[n / 2], lower = upper;
    if (n % 2 == 1) return upper;
    lower = x_i[0];
    for (size_t i = 1; i < n / 2; i++) lower = fmax(lower, x_i[i]);
    return (lower + upper) / 2;
}

// ---- states ------------------------------------------------------------------------------------

static double vector_norm(size_t d, const double *x_d) {
    double square = 0;
    for (size_t c = 0; c < d; c++) square += x_d[c] * x_d[c];
    return sqrt(square);
}

bool sinkproof_metric_massive(size_t n, size_t width, const double *x_nc, sinkproof_massive *out) {
    double *size_nc = calloc(n * width, sizeof *size_nc), others = 0;
    if (size_nc == NULL) return false;
    //> metric.massive
    size_t largest = 0;
    for (size_t at = 0; at < n * width; at++) {
        size_nc[at] = fabs(x_nc[at]);
        if (size_nc[at] > size_nc[largest] || isnan(size_nc[at])) largest = at;
    }
    out->largest = size_nc[largest];
    out->position = largest / width;
    out->coordinate = largest % width;
    out->median = metric_median(n * width, size_nc);
    out->ratio = out->largest / out->median;
    //< metric.massive
    for (size_t i = 1; i < n; i++) others += vector_norm(width, x_nc + i * width);
    out->first = vector_norm(width, x_nc);
    out->others = others / (double)(n - 1);
    free(size_nc);
    return true;
}

// Whether coordinate c is already among the spikes.
static bool is_listed_spike(const sinkproof_spikes *spikes, size_t c) {
    bool is = false;
    for (size_t s = 0; s < spikes->n; s++) is = is || spikes->at[s] == c;
    return is;
}

sinkproof_spikes sinkproof_metric_spikes(size_t width, const double *x_c) {
    sinkproof_spikes spikes = {0};
    //> metric.massive
    while (spikes.n < SINKPROOF_SPIKES && spikes.n < width) {
        size_t best = width;
        for (size_t c = 0; c < width; c++)
            if (!is_listed_spike(&spikes, c) && (best == width || fabs(x_c[c]) > fabs(x_c[best])))
                best = c;
        spikes.at[spikes.n++] = best;
    }
    //< metric.massive
    spikes.share = sinkproof_metric_spike_share(&spikes, width, x_c);
    return spikes;
}

double sinkproof_metric_spike_share(const sinkproof_spikes *spikes, size_t width,
                                    const double *y_c) {
    double whole = 0, part = 0;
    //> metric.massive
    for (size_t c = 0; c < width; c++) whole += y_c[c] * y_c[c];
    for (size_t s = 0; s < spikes->n; s++) part += y_c[spikes->at[s]] * y_c[spikes->at[s]];
    return part / whole;
    //< metric.massive
}

bool sinkproof_metric_drain(size_t n, size_t d, size_t stride, const double *x_nd,
                            sinkproof_drain *out) {
    double *norm_i = calloc(n, sizeof *norm_i), sum = 0;
    if (norm_i == NULL) return false;
    //> metric.value-drain
    for (size_t i = 0; i < n; i++) {
        norm_i[i] = vector_norm(d, x_nd + i * stride);
        if (i > 0) sum += norm_i[i];
    }
    out->first = norm_i[0];
    out->mean = sum / (double)(n - 1); // NaN if there are no others
    out->median = metric_median(n - 1, norm_i + 1);
    //< metric.value-drain
    free(norm_i);
    return true;
}

// ---- directions --------------------------------------------------------------------------------

// Sums over the keys before each key: directions, and the number of keys with one. Key j's is in
// row j.
static void sum_directions(size_t n, size_t d, size_t stride, const double *k_nd, double *sum_nd,
                           double *count_n) {
    memset(sum_nd, 0, d * sizeof *sum_nd);
    count_n[0] = 0;
    for (size_t j = 0; j < n; j++) {
        const double *k_d = k_nd + j * stride, *before_d = sum_nd + j * d;
        double length = vector_norm(d, k_d), *after_d = sum_nd + (j + 1) * d;
        for (size_t c = 0; c < d; c++)
            after_d[c] = before_d[c] + (length != 0 ? k_d[c] / length : 0);
        count_n[j + 1] = count_n[j] + (length != 0);
    }
}

// q . (to - from).
static double dot_with_difference(size_t d, const double *q_d, const double *from_d,
                                  const double *to_d) {
    double sum = 0;
    for (size_t c = 0; c < d; c++) sum += q_d[c] * (to_d[c] - from_d[c]);
    return sum;
}

// A sum of cosines is the query's direction times the sum of the keys' directions: one product per
// query instead of one per pair.
sinkproof_geometry sinkproof_metric_geometry(size_t n, size_t d, size_t window, size_t q_stride,
                                             const double *q_nd, size_t k_stride,
                                             const double *k_nd, double *work) {
    double *sum_nd = work, *count_n = work + (n + 1) * d;
    double first = 0, others = 0, firsts = 0, pairs = 0;
    sum_directions(n, d, k_stride, k_nd, sum_nd, count_n);
    //> metric.key-geometry
    for (size_t i = 1; i < n; i++) {
        const double *q_d = q_nd + i * q_stride;
        size_t low = sinkproof_mask_first(window, i), from = low > 0 ? low : 1;
        double length = vector_norm(d, q_d);
        if (length == 0) continue;
        if (low == 0)
            first += dot_with_difference(d, q_d, sum_nd, sum_nd + d) / length; // key 0 alone
        if (low == 0) firsts += count_n[1];
        others += dot_with_difference(d, q_d, sum_nd + from * d, sum_nd + (i + 1) * d) / length;
        pairs += count_n[i + 1] - count_n[from];
    }
    return (sinkproof_geometry){first / firsts, others / pairs}; // NaN if there are no pairs
    //< metric.key-geometry
}
