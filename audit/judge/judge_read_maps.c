// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What is made of queries, keys or values when attention reads them: stood elsewhere, rotated, less
// a mean, changed. Each x is [rows, heads, head_dim].
#include "audit/judge/judge_seen.h"
#include "ref/stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void stand_elsewhere(const sinkproof_read_as *read, size_t rows, size_t heads, size_t d,
                            const sinkproof_honest *x, sinkproof_honest *y) {
    for (size_t at = 0; at < rows * heads * d; at++)
        y[at] = x[sinkproof_read_place(read, rows, heads, d, at)];
}

// The sum of `count` sets that are `stride` apart.
static sinkproof_honest set_sum(const sinkproof_honest *x, size_t count, size_t stride) {
    sinkproof_honest sum = x[0];
    for (size_t i = 1; i < count; i++) sum = sinkproof_honest_add(sum, x[i * stride]);
    return sum;
}

// What is made is stored in a format, or is read as it is.
static sinkproof_honest set_stored(sinkproof_format format, sinkproof_honest x) {
    return format == SINKPROOF_REAL ? x : set_hull(x, sinkproof_honest_rounded(format, x));
}

static sinkproof_honest set_mean(const sinkproof_setting *s, sinkproof_format format,
                                 const sinkproof_honest *x, size_t count, size_t stride) {
    double over = 1 / (double)count, largest = 0;
    for (size_t i = 0; i < count; i++) largest = fmax(largest, fabs(x[i * stride].mid));
    sinkproof_honest mean =
        sinkproof_honest_mul(set_sum(x, count, stride), sinkproof_exact_set(over));
    // a sum in any order, and a quotient
    mean = sinkproof_honest_declared(mean, 4 * s->u, (double)count * s->u * largest);
    return set_stored(format, mean);
}

static void take_means(const sinkproof_setting *s, sinkproof_format format, bool heads_alike,
                       size_t rows, size_t heads, size_t d, const sinkproof_honest *x,
                       sinkproof_honest *y) {
    size_t width = heads * d;
    for (size_t k = 0; !heads_alike && k < width; k++) {
        sinkproof_honest mean = set_mean(s, format, x + k, rows, width);
        for (size_t i = 0; i < rows; i++)
            y[i * width + k] =
                sinkproof_honest_roundings(s, sinkproof_honest_sub(x[i * width + k], mean), 1);
    }
    for (size_t i = 0; heads_alike && i < rows; i++)
        for (size_t at = 0; at < width; at++)
            y[i * width + at] = set_mean(s, format, x + i * width + at % d, heads, d);
}

// The table of a position: without the concentration it may also be one with it that was divided.
static void turn_table(const judge_pass *pass, const sinkproof_setting *s, bool scaled,
                       double position, sinkproof_honest *c_p, sinkproof_honest *s_p,
                       sinkproof_honest *room) {
    size_t half = pass->config->head_dim / 2;
    double by = 1 / sinkproof_yarn_concentration(pass->config);
    sinkproof_honest_rope_table(s, pass->config, position, c_p, s_p);
    if (scaled || by == 1) return;
    sinkproof_honest_rope_plain(s, pass->config, position, room, room + half);
    for (size_t p = 0; p < 2 * half; p++) {
        sinkproof_honest *x = p < half ? &c_p[p] : &s_p[p - half];
        *x = sinkproof_honest_roundings(s, sinkproof_honest_mul(*x, sinkproof_exact_set(by)), 1);
        *x = set_hull(sinkproof_honest_at(s, AT_A4_COS, *x), room[p]);
    }
}

static bool turn_rows(const judge_pass *pass, const sinkproof_setting *s,
                      const sinkproof_read_as *read, size_t first, size_t rows, size_t heads,
                      const sinkproof_honest *x, sinkproof_honest *y) {
    size_t d = pass->config->head_dim, width = heads * d;
    sinkproof_honest *c_p = malloc((2 * d + 1) * sizeof *c_p), *s_p = c_p + d / 2;
    for (size_t i = 0; c_p != NULL && i < rows; i++) {
        double position = (double)(first + i) * read->turn_times + read->turn_by;
        turn_table(pass, s, read->turn_scaled, position, c_p, s_p, c_p + d);
        for (size_t h = 0; h < heads; h++)
            sinkproof_honest_rotate(s, d, x + i * width + h * d, c_p, s_p, y + i * width + h * d);
    }
    free(c_p);
    return c_p != NULL;
}

static bool change_rows(const sinkproof_setting *s, const sinkproof_change *change, size_t rows,
                        size_t d, sinkproof_honest *y) {
    double *room = malloc(d * (2 * sizeof *room + sizeof *y)), amax = 0;
    for (size_t at = 0; at < rows * d; at++) amax = fmax(amax, fabs(y[at].mid));
    for (size_t r = 0; room != NULL && r < rows; r++)
        change_sets(s, change, amax, d, y + r * d, room);
    free(room);
    return room != NULL;
}

bool map_read_sets(const judge_pass *pass, const sinkproof_setting *s, size_t first, size_t rows,
                   size_t heads, sinkproof_format format, sinkproof_honest *y) {
    const sinkproof_read_as *read = &pass->meaning->attending.read;
    size_t d = pass->config->head_dim, count = rows * heads * d;
    bool maps = read->map != SINKPROOF_MAP_NONE, fine = true;
    bool numbers = maps && read->map > SINKPROOF_MAP_LAYOUT;
    sinkproof_honest *x = maps ? malloc((count + 1) * sizeof *x) : NULL;
    if (maps && x == NULL) return false;
    if (maps) memcpy(x, y, count * sizeof *x);
    if (read->map == SINKPROOF_MAP_ORDER || read->map == SINKPROOF_MAP_LAYOUT)
        stand_elsewhere(read, rows, heads, d, x, y);
    else if (read->map == SINKPROOF_MAP_TURNED)
        fine = turn_rows(pass, s, read, first, rows, heads, x, y);
    else if (maps)
        take_means(s, format, read->map == SINKPROOF_MAP_HEADS, rows, heads, d, x, y);
    free(x);
    if (fine && read->change.kind != SINKPROOF_UNCHANGED)
        fine = change_rows(s, &read->change, rows * heads, d, y), numbers = true;
    for (size_t i = 0; numbers && i < count; i++) y[i] = set_stored(format, y[i]);
    return fine;
}
