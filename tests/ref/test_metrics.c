// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The metrics of sinks as functions: on numbers whose sums are exact, so that every order of
// summation agrees and equality is asked for; their edges; NaN. 0.1 CPU seconds.
#include "ref/metrics.h"
#include "tests/shared/reference.h"

#include <math.h>

enum { N = 23, D = 6, MOST = 400 };

// A multiple of 1/64 in [0, 2): sums of a thousand of them are exact.
static double next_share(uint64_t *state) {
    return (double)(next_bits(state) >> 57) / 64;
}

static void columns(void) {
    uint64_t state = 25;
    double a_ij[N * N + 1] = {0}, sum_k[N + 1] = {0}, parts_k[N + 1] = {0};
    bool good = true;
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j <= i; j++) a_ij[i * N + j] = next_share(&state);
    a_ij[N * N] = NAN; // behind the last row's keys
    for (size_t i = 0; i < N; i++) {
        size_t first = i > 4 ? i - 4 : 0; // and as a window has them: from `first` on
        sinkproof_metric_add_row(0, i + 1, a_ij + i * N, sum_k);
        sinkproof_metric_add_row(first, i + 1 - first, a_ij + i * N + first, parts_k);
    }
    for (size_t k = 0; k < N; k++) {
        double whole = 0, part = 0;
        for (size_t i = N; i-- > k;) whole += a_ij[i * N + k];
        for (size_t i = k; i < N && i <= k + 4; i++) part += a_ij[i * N + k];
        good = good && sum_k[k] == whole && parts_k[k] == part && sum_k[N] == 0;
        // The divisor is the number of rows from k on, k itself included.
        good = good && sinkproof_metric_alpha(N, k, sum_k[k]) == whole / (double)(N - k);
    }
    ok(good, "metric.sink columns of a map over the rows from k on: keys=%d", N);
}

static void thresholds(void) {
    double alpha_h[] = {0.9, 0.3, nextafter(0.3, 1), nextafter(0.3, 0), 1, 0, NAN, 1};
    ok(!sinkproof_metric_is_sink(0.3, 0.3) && sinkproof_metric_is_sink(nextafter(0.3, 1), 0.3) &&
           !sinkproof_metric_is_sink(NAN, 0.3) && sinkproof_metric_sinks(7, alpha_h, 0.3) == 3 &&
           sinkproof_metric_sinks(0, alpha_h, 0.3) == 0,
       "metric.sink is strict: 0.3 is none at 0.3, the next number is, NaN is none");
    bool good = sinkproof_metric_uniform(1) == 1 && sinkproof_metric_uniform(2) == 0.75;
    for (size_t n = 1; n <= MOST; n++)
        good = good && sinkproof_metric_is_sink(sinkproof_metric_uniform(n), 0.3) == (n <= 9);
    ok(good, "metric.sink equal weights pass 0.3 up to T = 9 and never after: T up to %d", MOST);
}

static void stars(void) {
    uint64_t state = 7;
    double sink_i[N + 1], sum = 0;
    for (size_t i = 0; i < N; i++) sum += sink_i[i] = next_share(&state);
    sink_i[N] = NAN; // behind the last row
    ok(sinkproof_metric_star(N, sink_i) == sum / N &&
           sinkproof_metric_star_published(N, sink_i) == (1 + sum) / (N + 1) &&
           sinkproof_metric_star_published(1, (double[]){0}) == 0.5 &&
           isnan(sinkproof_metric_star(2, (double[]){0.5, NAN})),
       "metric.sink-star over all rows, and with the published row of the sink itself");
}

static void shares(void) {
    ok(sinkproof_metric_share(3, 8) == 0.375 && sinkproof_metric_share(0, 8) == 0 &&
           sinkproof_metric_share(8, 8) == 1 && isnan(sinkproof_metric_share(0, 0)),
       "table.inputs a share of all heads of all sequences, and none of none");
}

static void spans(void) {
    double x_i[] = {3, -1, 2, 0};
    sinkproof_span span = sinkproof_metric_span(4, x_i), none = sinkproof_metric_span(0, NULL);
    x_i[2] = NAN;
    sinkproof_span odd = sinkproof_metric_span(4, x_i);
    ok(span.mean == 1 && span.least == -1 && span.most == 3 && isnan(none.mean) &&
           isnan(odd.mean) && isnan(odd.least) && isnan(odd.most),
       "metric.sink a mean with its ends; of nothing, and of a NaN, there is none");
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void medians(void) {
    uint64_t state = 11;
    double x_i[MOST], sorted_i[MOST];
    bool good = isnan(metric_median(0, x_i));
    for (size_t n = 1; n <= MOST; n++) {
        // Few values, so that many are equal; or many.
        for (size_t i = 0; i < n; i++)
            x_i[i] = n % 2 ? next_share(&state) : (double)(next_bits(&state) >> 62);
        memcpy(sorted_i, x_i, n * sizeof *x_i);
        qsort(sorted_i, n, sizeof *sorted_i, ascending);
        double middle = (sorted_i[(n - 1) / 2] + sorted_i[n / 2]) / 2;
        good = good && metric_median(n, x_i) == middle;
    }
    ok(good, "metric.massive the median is that of the sorted numbers: n up to %d", MOST);
    x_i[0] = 1, x_i[1] = NAN, x_i[2] = 2;
    ok(isnan(metric_median(3, x_i)), "metric.massive of a NaN there is no median");
}

static void states(void) {
    double x_nc[4 * 5] = {1, 1, 1, 1, 0, 0, -9, 0, 9, 0, 3, 0, 4, 0, 0, 0, 0, 0, 0, 6};
    sinkproof_massive m;
    bool got = sinkproof_metric_massive(4, 5, x_nc, &m);
    ok(got && m.largest == 9 && m.position == 1 && m.coordinate == 1 && m.median == 0 &&
           isinf(m.ratio) && m.first == 2 && m.others == (sqrt(162) + 5 + 6) / 3,
       "metric.massive the first of equal sizes; a ratio to a median of 0 is infinite");
    got = sinkproof_metric_massive(2, 2, (double[]){1, -2, 4, 3}, &m);
    ok(got && m.largest == 4 && m.position == 1 && m.coordinate == 0 && m.median == 2.5 &&
           m.ratio == 1.6,
       "metric.massive the largest in absolute value over the median of all");
    got = sinkproof_metric_massive(1, 3, (double[]){-7, 6, 1}, &m);
    ok(got && m.largest == 7 && m.position == 0 && m.coordinate == 0 && m.ratio == 7.0 / 6,
       "metric.massive the first may be the largest");
    got = sinkproof_metric_massive(1, 2, (double[]){0, 0, NAN}, &m);
    ok(got && m.largest == 0 && m.coordinate == 0 && isnan(m.ratio),
       "metric.massive of zeros the first, and their ratio is none");
    got = sinkproof_metric_massive(1, 3, (double[]){1, NAN, 2}, &m);
    ok(got && isnan(m.largest) && isnan(m.median) && isnan(m.ratio) && isnan(m.others),
       "metric.massive a NaN stays one; one token has no others");
}

static void spikes(void) {
    double x_c[] = {1, -5, 2, 5, 3, 0}, y_c[] = {1, 2, 0, 4, 2, 1}, zero_c[6] = {0};
    sinkproof_spikes s = sinkproof_metric_spikes(6, x_c);
    ok(s.n == 3 && s.at[0] == 1 && s.at[1] == 3 && s.at[2] == 4 && s.share == 59.0 / 64 &&
           sinkproof_metric_spike_share(&s, 6, y_c) == 24.0 / 26 &&
           isnan(sinkproof_metric_spike_share(&s, 6, zero_c)),
       "metric.massive three spikes and their share before a norm and after it");
    s = sinkproof_metric_spikes(2, x_c);
    ok(s.n == 2 && s.share == 1, "metric.massive a state of two coordinates has two spikes");
}

static void drains(void) {
    // Pairs, three apart, and one too many.
    double x_nd[] = {24, 7, 7, 3, 4, 7, 0, 2, 7, 6, 8, 7, 0, 1, 7, NAN, NAN};
    sinkproof_drain drain;
    bool got = sinkproof_metric_drain(5, 2, 3, x_nd, &drain);
    ok(got && drain.first == 25 && drain.mean == 4.5 && drain.median == 3.5,
       "metric.value-drain the first norm beside mean and median of the others");
    got = sinkproof_metric_drain(2, 2, 3, x_nd, &drain);
    ok(got && drain.mean == 5 && drain.median == 5, "metric.value-drain of two, one is the others");
    got = sinkproof_metric_drain(1, 2, 3, x_nd + 3, &drain);
    ok(got && drain.first == 5 && isnan(drain.mean) && isnan(drain.median),
       "metric.value-drain one value has no others");
}

// Vectors along the axes, of lengths that are powers of two: every cosine is -1, 0 or 1.
static void directions(void) {
    enum { GROUPS = 2 };
    uint64_t state = 3;
    double q_nd[(N + 1) * D], k_ngd[(N + 1) * GROUPS * D], work[(N + 2) * (D + 1)];
    bool good = true;
    for (int time = 0; time < 40; time++) {
        size_t window = (size_t)time % 8, n = 2 + (size_t)time % (N - 1);
        memset(q_nd, 0, sizeof q_nd);
        memset(k_ngd, 0, sizeof k_ngd);
        for (size_t d = 0; d < D; d++) q_nd[n * D + d] = NAN; // behind the last row
        for (size_t i = 0; i < n; i++) {
            double size = i % 5 == 3 ? 0 : 0.25 * (double)(1 << next_bits(&state) % 5);
            q_nd[i * D + next_bits(&state) % D] = i % 7 == 6 ? 0 : size;
            k_ngd[i * GROUPS * D + D + next_bits(&state) % D] = i % 2 ? -size : size;
        }
        double first = 0, firsts = 0, others = 0, pairs = 0;
        for (size_t i = 1; i < n; i++)
            for (size_t j = 0; j <= i; j++) {
                double dot = 0, qq = 0, kk = 0;
                for (size_t d = 0; d < D; d++) {
                    double q = q_nd[i * D + d], k = k_ngd[j * GROUPS * D + D + d];
                    dot += q * k, qq += q * q, kk += k * k;
                }
                if (qq == 0 || kk == 0 || (window > 0 && i - j >= window)) continue;
                double cosine = dot / (sqrt(qq) * sqrt(kk));
                first += j == 0 ? cosine : 0, firsts += j == 0;
                others += j > 0 ? cosine : 0, pairs += j > 0;
            }
        sinkproof_geometry g =
            sinkproof_metric_geometry(n, D, window, D, q_nd, GROUPS * D, k_ngd + D, work);
        good = good && (firsts > 0 ? g.first == first / firsts : isnan(g.first));
        good = good && (pairs > 0 ? g.others == others / pairs : isnan(g.others));
    }
    ok(good, "metric.key-geometry every pair that a window shows, zeros left out: 40 draws");
    q_nd[D] = NAN;
    sinkproof_geometry g = sinkproof_metric_geometry(3, D, 0, D, q_nd, D, q_nd + 3 * D, work);
    ok(isnan(g.first) && isnan(g.others), "metric.key-geometry a NaN stays one");
}

static void squares(void) {
    uint64_t state = 19;
    double w_dc[3 * 4], g_dd[9] = {0}, x_d[3], through_c[4] = {0}, square = 0;
    for (size_t at = 0; at < 12; at++) w_dc[at] = (double)(next_bits(&state) % 17) - 8;
    for (size_t d = 0; d < 3; d++) x_d[d] = (double)(next_bits(&state) % 9) - 4;
    for (size_t a = 0; a < 3; a++)
        for (size_t b = 0; b < 3; b++)
            for (size_t c = 0; c < 4; c++) g_dd[a * 3 + b] += w_dc[a * 4 + c] * w_dc[b * 4 + c];
    for (size_t d = 0; d < 3; d++)
        for (size_t c = 0; c < 4; c++) through_c[c] += x_d[d] * w_dc[d * 4 + c];
    for (size_t c = 0; c < 4; c++) square += through_c[c] * through_c[c];
    ok(sinkproof_metric_length(3, g_dd, x_d) == sqrt(square) && square > 0 &&
           sinkproof_metric_left(0.25, 8) == 6 && sinkproof_metric_left(1, 8) == 0 &&
           isnan(sinkproof_metric_left(NAN, 8)),
       "metric.value-bias the length of x W from W's products: %g", square);
}

int main(void) {
    columns();
    thresholds();
    stars();
    shares();
    spans();
    medians();
    states();
    spikes();
    drains();
    directions();
    squares();
    return tap_done();
}
