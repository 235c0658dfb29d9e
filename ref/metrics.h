// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The metrics of attention sinks (doc/25-measuring-sinks.md) as functions of arrays. Sums run over
// ascending indices in binary64, as numpy adds along an axis that is not the last one. A NaN in an
// argument gives a NaN in the result; NAN is also the mean of nothing.
#ifndef SINKPROOF_METRICS_H
#define SINKPROOF_METRICS_H

#include <stdbool.h>
#include <stddef.h>

// A mean with the smallest and the largest of its numbers.
typedef struct sinkproof_span {
    double mean, least, most;
} sinkproof_span;
sinkproof_span sinkproof_metric_span(size_t n, const double *x_i);

// metric.sink: sum_k += alpha_k over the keys k of one row of a head's map, which are the keys from
// `first` on. After all rows, sum_k / (T - k) is alpha_k: row k is the first that may see key k.
void sinkproof_metric_add_row(size_t first, size_t keys, const double *alpha_j, double *sum_k);
double sinkproof_metric_alpha(size_t n, size_t k, double sum);
// Strict: a weight of exactly epsilon is not a sink.
bool sinkproof_metric_is_sink(double alpha, double epsilon);
// The number of sinks among `heads` numbers: an integer, so that the mean over layers, heads and
// sequences is one division.
size_t sinkproof_metric_sinks(size_t heads, const double *alpha_h, double epsilon);
// alpha_1 of a head that gives all its keys the same weight, without a sink: (1 + 1/2 + ... + 1/T)
// / T. From T = 10 on it is less than 0.3.
double sinkproof_metric_uniform(size_t n);

// table.inputs: the share of sinks among `heads` heads, of one sequence or of many; NAN for no
// heads.
double sinkproof_metric_share(size_t sinks, size_t heads);

// metric.sink-star: the mean of the sink's column over all T rows; and the published code's count,
// which has an additional first row for the sink, whose only weight is 1, on itself.
double sinkproof_metric_star(size_t n, const double *sink_i);
double sinkproof_metric_star_published(size_t n, const double *sink_i);

// metric.value-bias: |x W|, where g_dd = W W^T; and the part of that length that a row's sink
// leaves.
double sinkproof_metric_length(size_t d, const double *g_dd, const double *x_d);
double sinkproof_metric_left(double alpha_sink, double length);

// metric.massive: of states x [n, width].
typedef struct sinkproof_massive {
    double largest;              // the largest |x|
    size_t position, coordinate; // its first place
    double median, ratio; // median of all |x|; the largest over it, infinite if the median is 0
    double first, others; // 2-norm of x_1, and the mean of the other tokens' norms
} sinkproof_massive;
// Returns false if memory runs out.
bool sinkproof_metric_massive(size_t n, size_t width, const double *x_nc, sinkproof_massive *out);

// The spikes of one state: its largest coordinates in absolute value, the first among equal ones.
enum { SINKPROOF_SPIKES = 3 };
typedef struct sinkproof_spikes {
    size_t n, at[SINKPROOF_SPIKES];
    double share; // of the state's squared norm
} sinkproof_spikes;
sinkproof_spikes sinkproof_metric_spikes(size_t width, const double *x_c);
// The share of these coordinates in the squared norm of another state.
double sinkproof_metric_spike_share(const sinkproof_spikes *spikes, size_t width,
                                    const double *y_c);

// metric.value-drain: the first vector's norm compared with those of the others; x [n] has rows of
// d numbers, `stride` apart.
typedef struct sinkproof_drain {
    double first, mean, median; // mean and median over the others
} sinkproof_drain;
bool sinkproof_metric_drain(size_t n, size_t d, size_t stride, const double *x_nd,
                            sinkproof_drain *out);

// The median of n numbers, the mean of the two middle ones if n is even; reorders x_i.
double metric_median(size_t n, double *x_i);

// metric.key-geometry: mean cosines of queries with the first key and with the others, over the
// pairs inside the window (0: all keys up to the query): rows t >= 2 and key 1; rows t >= 2 and
// keys 2 to t. A vector of length 0 has no direction: its pairs are not counted.
typedef struct sinkproof_geometry {
    double first, others;
} sinkproof_geometry;
// q and k: rows of d numbers, q_stride and k_stride apart; work: (n + 1) (d + 1) doubles.
sinkproof_geometry sinkproof_metric_geometry(size_t n, size_t d, size_t window, size_t q_stride,
                                             const double *q_nd, size_t k_stride,
                                             const double *k_nd, double *work);

#endif
