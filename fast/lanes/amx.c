// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The order of a tile's sums, from the pseudocode of TDPBF16PS (Intel SDM vol. 2): within a block
// of 32 columns the even and the odd ones are summed separately, and their sum is added to the
// total. In attention a weight has 24 bits and a tile's operand eight: three products replace one.
#include "fast/lanes/amx.h"

#include <math.h>
#include <string.h>

enum { BLOCK = LANES_BLOCK, PARTS = 3 };

float amx_block_sum(const float *w_c, const float *x_c) {
    float even = 0, odd = 0;
    for (size_t c = 0; c < BLOCK; c += 2) {
        even = fmaf(w_c[c], x_c[c], even);
        odd = fmaf(w_c[c + 1], x_c[c + 1], odd);
    }
    return even + odd;
}

float amx_dot(size_t n, const float *w_c, const float *x_c) {
    float total = 0;
    for (size_t first = 0; first < n; first += BLOCK)
        total += amx_block_sum(w_c + first, x_c + first);
    return total;
}

bool amx_can_multiply(double least_w, double least_x) {
    return least_w >= 0x1p-126 && least_x >= 0x1p-126 && least_w * least_x >= 0x1p-111;
}

// The bf16 number whose bits are p's upper half.
static float bf16_upper_half(float p) {
    uint32_t bits;
    memcpy(&bits, &p, sizeof bits);
    bits &= 0xffff0000u;
    memcpy(&p, &bits, sizeof p);
    return p;
}

void amx_split_weight(float p, float *part) {
    part[0] = bf16_upper_half(p);
    part[1] = bf16_upper_half(p - part[0]);
    part[2] = p - part[0] - part[1];
}

float amx_weighted_sum(size_t n, const float *v_j, const float *p_j) {
    float total = 0;
    for (size_t first = 0; first < n; first += BLOCK) {
        float part[PARTS], part_kj[PARTS][BLOCK];
        for (size_t j = 0; j < BLOCK; j++) {
            amx_split_weight(p_j[first + j] * 0x1p96f, part);
            for (size_t k = 0; k < PARTS; k++) part_kj[k][j] = part[k];
        }
        for (size_t k = 0; k < PARTS; k++) total += amx_block_sum(v_j + first, part_kj[k]);
    }
    return total * 0x1p-96f;
}

bool amx_can_attend(double least_k, double least_q, double least_v, double most_v) {
    return amx_can_multiply(least_k, least_q) && least_v >= 0x1p-58 && most_v < 0x1p20;
}
