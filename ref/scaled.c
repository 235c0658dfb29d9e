// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Numbers as a product reads them in eight bits or four (bound.scaled). Quotients and products are
// real numbers here; only scales and codes are rounded.
#include "ref/scaled.h"

#include <math.h>

enum { LARGEST_WHOLE = 127 };

scale_groups sinkproof_scale_groups(sinkproof_scale scale, size_t tokens, size_t heads,
                                    size_t dim) {
    size_t row = heads * dim;
    switch (scale) {
    case SINKPROOF_SCALE_OF_HEAD:
        return (scale_groups){heads, dim, tokens, dim, row};
    case SINKPROOF_SCALE_OF_TOKEN:
        return (scale_groups){tokens, row, 1, row, 0};
    case SINKPROOF_SCALE_OF_TOKEN_HEAD:
        return (scale_groups){tokens * heads, dim, 1, dim, 0};
    default:
        return (scale_groups){1, 0, 1, tokens * row, 0};
    }
}

bool sinkproof_is_scaled(sinkproof_rounding how) {
    return how.scale != SINKPROOF_SCALE_NONE ||
           (how.format >= SINKPROOF_NUMBER_FORMATS && how.format < SINKPROOF_READ_FORMATS);
}

bool sinkproof_scaled_by_power(sinkproof_format format) {
    return format == SINKPROOF_MXFP8 || format == SINKPROOF_MXFP8_UP;
}

static sinkproof_format code_format(sinkproof_format format) {
    if (sinkproof_scaled_by_power(format)) return SINKPROOF_E4M3;
    return format == SINKPROOF_NVFP4 ? SINKPROOF_E2M1 : format;
}

double sinkproof_scaled_largest(sinkproof_format format) {
    if (format == SINKPROOF_INT8) return LARGEST_WHOLE;
    return sinkproof_format_largest(code_format(format));
}

//> bound.scaled
double sinkproof_scaled_code(sinkproof_format format, double t) {
    if (format == SINKPROOF_INT8) return fmin(fmax(nearbyint(t), -LARGEST_WHOLE), LARGEST_WHOLE);
    return sinkproof_round(code_format(format), t);
}

// 448 is 1.75 2^8.
double sinkproof_scaled_power(sinkproof_format format, double amax) {
    double floor_rule = ldexp(1, ilogb(amax) - 8);
    return format == SINKPROOF_MXFP8_UP && amax > 448 * floor_rule ? 2 * floor_rule : floor_rule;
}

static double read_number(sinkproof_format format, double scale, double x) {
    return scale == 0 ? 0 : sinkproof_scaled_code(format, x / scale) * scale;
}
//< bound.scaled

static double largest_size(size_t n, const double *x) {
    double largest = 0;
    for (size_t k = 0; k < n; k++)
        if (!(fabs(x[k]) <= largest)) largest = fabs(x[k]);
    return largest;
}

static double group_largest_size(const scale_groups *of, const double *x) {
    double largest = 0;
    for (size_t r = 0; r < of->runs; r++) {
        double size = largest_size(of->run, x + r * of->stride);
        if (!(size <= largest)) largest = size;
    }
    return largest;
}

// The scale of a block, under that of its group; or the group's where the format has no blocks.
static double block_scale(sinkproof_format format, double outer, double amax) {
    if (amax == 0) return 0;
    if (sinkproof_scaled_by_power(format)) return sinkproof_scaled_power(format, amax);
    if (format != SINKPROOF_NVFP4) return outer;
    double largest = sinkproof_scaled_largest(format);
    return outer == 0 ? 0 : sinkproof_round(SINKPROOF_E4M3, amax / largest / outer) * outer;
}

size_t sinkproof_scaled_block(sinkproof_format format, size_t dim) {
    if (format == SINKPROOF_NVFP4) return SINKPROOF_NVFP4_BLOCK;
    return sinkproof_scaled_by_power(format) ? SINKPROOF_MXFP8_BLOCK : dim;
}

// One row of dim numbers, in blocks where the format has any; the last may be shorter.
static void read_row(sinkproof_format format, double outer, size_t dim, double *x_k) {
    size_t length = sinkproof_scaled_block(format, dim);
    for (size_t first = 0; first < dim; first += length) {
        size_t n = dim - first < length ? dim - first : length;
        double scale = block_scale(format, outer, largest_size(n, x_k + first));
        for (size_t k = first; k < first + n; k++) x_k[k] = read_number(format, scale, x_k[k]);
    }
}

static double group_scale(sinkproof_rounding how, const scale_groups *of, const double *x) {
    if (how.scale == SINKPROOF_SCALE_NONE) return 1;
    if (how.scale == SINKPROOF_SCALE_STATED) return how.stated;
    double inner = how.format == SINKPROOF_NVFP4 ? sinkproof_format_largest(SINKPROOF_E4M3) : 1;
    double amax = group_largest_size(of, x);
    return sinkproof_round(SINKPROOF_F32, amax / sinkproof_scaled_largest(how.format) / inner);
}

sinkproof_rounding scaled_settled(sinkproof_rounding how, size_t tokens, size_t heads, size_t dim,
                                  const double *x) {
    if (how.scale != SINKPROOF_SCALE_OF_TENSOR) return how;
    scale_groups of = sinkproof_scale_groups(how.scale, tokens, heads, dim);
    how.stated = group_scale(how, &of, x), how.scale = SINKPROOF_SCALE_STATED;
    return how;
}

void sinkproof_scaled_read(sinkproof_rounding how, size_t tokens, size_t heads, size_t dim,
                           double *x) {
    if (!sinkproof_is_scaled(how)) {
        for (size_t i = 0; i < tokens * heads * dim; i++) x[i] = sinkproof_round(how.format, x[i]);
        return;
    }
    scale_groups of = sinkproof_scale_groups(how.scale, tokens, heads, dim);
    for (size_t g = 0; g < of.count; g++) {
        double *group = x + g * of.step, outer = group_scale(how, &of, group);
        for (size_t r = 0; r < of.runs; r++)
            for (size_t k = 0; k < of.run; k += dim)
                read_row(how.format, outer, dim, group + r * of.stride + k);
    }
}
