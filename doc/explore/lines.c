// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Each line computes its own right side, in binary64, from the same weights. Over the reals all are
// equal. The weights are those of the row's policy: where it rounds them, their sum is not 1 -
// alpha_s any more, and the lines from sink.attn-mass on are another number (sink.bf16-mass).
#include "doc/explore/lines.h"

#include <math.h>
#include <string.h>

enum { H = LINE_HEADS, D = ROW_SHOWN };

static const double W[H][D] = {{0.8, 0.6}, {-0.6, 0.8}}; // W^O: row h is head h's block
static const double b_out[D] = {0.5, 0.25};

typedef struct heads {
    size_t n;
    double alpha[H][ROW_KEYS], alpha_sink[H], soft[H][ROW_KEYS]; // soft: without the sink
    double x[ROW_KEYS][H], bias[H];                              // x_j W^V_h and b^V_h
} heads;

static double mass(const heads *m, size_t h) {
    double sum = 0;
    for (size_t j = 0; j < m->n; j++) sum += m->alpha[h][j];
    return sum;
}

// Adds factor times head h's block of W^O.
static void add_block(double factor, size_t h, double part[D]) {
    for (size_t d = 0; d < D; d++) part[d] += factor * W[h][d];
}

static void add_output_bias(double part[D]) {
    for (size_t d = 0; d < D; d++) part[d] += b_out[d];
}

static double head(const heads *m, size_t h) {
    double sum = 0;
    for (size_t j = 0; j < m->n; j++) sum += m->alpha[h][j] * (m->x[j][h] + m->bias[h]);
    return sum;
}

// sum_h sum_j alpha_ijh x_j W^V_h W^O_h
static void add_tokens(const heads *m, double part[D]) {
    for (size_t h = 0; h < H; h++)
        for (size_t j = 0; j < m->n; j++) add_block(m->alpha[h][j] * m->x[j][h], h, part);
}

// sum_h factor_h b^V_h W^O_h
static void add_bias(const heads *m, const double factor[H], double part[D]) {
    for (size_t h = 0; h < H; h++) add_block(factor[h] * m->bias[h], h, part);
}

static void first_lines(const heads *m, line_value *line) {
    for (size_t h = 0; h < H;
         h++) { // sink.attn-concat, sink.attn-headsum: the vector of heads, cut in blocks
        for (size_t d = 0; d < D; d++) line[0].part[0][d] += head(m, h) * W[h][d];
        add_block(head(m, h), h, line[1].part[h]);
    }
    for (size_t h = 0; h < H; h++) {
        double values = 0, expanded = 0;
        for (size_t j = 0; j < m->n; j++) {
            double v = m->x[j][h] + m->bias[h];
            values += m->alpha[h][j] * v;                           // sink.attn-values
            expanded += m->alpha[h][j] * (m->x[j][h] + m->bias[h]); // sink.attn-expand
            for (size_t d = 0; d < D; d++) {
                line[4].part[h][d] += m->alpha[h][j] * (v * W[h][d]); // sink.attn-inside
                // sink.attn-distribute
                line[5].part[h][d] +=
                    m->alpha[h][j] * (m->x[j][h] * W[h][d] + m->bias[h] * W[h][d]);
            }
        }
        add_block(values, h, line[2].part[h]);
        add_block(expanded, h, line[3].part[h]);
    }
    add_output_bias(line[0].part[1]);
    for (size_t k = 1; k < 6; k++) add_output_bias(line[k].part[2]);
}

static void last_lines(const heads *m, line_value *line) {
    double sums[H], left[H], sink[H], one[H];
    for (size_t h = 0; h < H; h++) {
        sums[h] = mass(m, h), left[h] = 1 - m->alpha_sink[h], sink[h] = -m->alpha_sink[h],
        one[h] = 1;
        for (size_t j = 0; j < m->n; j++)
            add_block(m->alpha[h][j] * m->bias[h], h, line[6].part[1]);
    }
    for (size_t k = 6; k < 12; k++) add_tokens(m, line[k].part[0]);
    add_bias(m, sums, line[7].part[1]); // sink.attn-factor
    add_bias(m, left, line[8].part[1]); // sink.attn-mass
    add_bias(m, one, line[9].part[1]);  // sink.attn-one-minus
    add_bias(m, sink, line[9].part[2]);
    add_bias(m, sink, line[10].part[1]); // sink.attn-reorder
    add_bias(m, one, line[10].part[2]);
    add_bias(m, sink, line[11].part[1]); // sink.attn-final
    for (size_t d = 0; d < D; d++)
        line[11].part[2][d] = m->bias[0] * W[0][d] + m->bias[1] * W[1][d];
    for (size_t k = 6; k < 9; k++) add_output_bias(line[k].part[2]);
    for (size_t k = 9; k < 12; k++) add_output_bias(line[k].part[3]);
    for (size_t h = 0; h < H; h++) { // sink.attn-gate
        double soft = 0;
        for (size_t j = 0; j < m->n; j++) soft += m->soft[h][j] * m->x[j][h];
        add_block(left[h] * (soft + m->bias[h]), h, line[12].part[h]);
    }
    add_output_bias(line[12].part[2]);
}

// The keys that are seen, with the weights of the reference.
static void make_heads(const row_given *given, heads *m, lines_result *result) {
    for (size_t h = 0; h < H; h++) {
        row_given one = *given;
        row_result row;
        size_t keys = (size_t)given->keys;
        one.form = FORM_RIGHT;
        if (h == 1) one.sink = 0;
        for (size_t j = 0; j < keys && h == 1; j++) one.score[j] = given->score[keys - 1 - j];
        row_compute(&one, &row);
        size_t first = (size_t)row.first;
        m->n = keys - first, m->alpha_sink[h] = result->alpha_sink[h] = row.alpha_sink;
        m->bias[h] = given->bias[h];
        for (size_t j = 0; j < m->n; j++) {
            m->alpha[h][j] = result->alpha[h][first + j] = row.alpha[first + j];
            m->soft[h][j] = exp(row.score[first + j] - row.lse);
            m->x[j][h] = given->value[first + j][h];
        }
    }
}

void lines_compute(const row_given *given, lines_result *result) {
    heads m;
    memset(result, 0, sizeof *result);
    make_heads(given, &m, result);
    first_lines(&m, result->line);
    last_lines(&m, result->line);
    // Sizes of all summands of any line: a line has 6 n + 12 roundings at most on a term's way, and
    // two lines err; the weights themselves keep 1 - alpha_s within the bounds of laws.c, in
    // binary64 (4 n + 30 + the range of scores) 2^-53.
    double size = fabs(b_out[0]) + fabs(b_out[1]), range = 0;
    for (size_t h = 0; h < H; h++) {
        for (size_t j = 0; j < m.n; j++) size += fabs(m.x[j][h]);
        size += 3 * fabs(m.bias[h]);
    }
    for (size_t j = 0; j < (size_t)given->keys; j++)
        range = fmax(range, fabs(given->score[j]) + fabs(given->sink));
    result->bound = size * (double)(16 * m.n + 54) * 0x1p-53 + size * 6 * range * 0x1p-53;
    for (size_t k = 0; k < LINES; k++) {
        line_value *line = &result->line[k];
        for (size_t d = 0; d < D; d++) {
            for (size_t p = 0; p < LINE_PARTS; p++) line->total[d] += line->part[p][d];
            line->residue = fmax(line->residue, fabs(line->total[d] - result->line[0].total[d]));
        }
    }
}
