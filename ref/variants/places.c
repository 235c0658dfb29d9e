// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// How positions enter (doc/24-variants.md): through the input, the score, or a rotation.
#include "ref/variants/variant.h"

#include <math.h>

// T5's buckets for past keys: each distance below 16 has a bucket of its own, then the logarithm of
// the distance decides, up to distance 128; all larger distances share the last.
size_t t5_bucket(size_t distance) {
    const size_t exact = SINKPROOF_BUCKETS / 2;
    if (distance < exact) return distance;
    double share = log((double)distance / (double)exact) / log(128.0 / (double)exact);
    size_t bucket = exact + (size_t)(share * (double)(SINKPROOF_BUCKETS - exact));
    return bucket < SINKPROOF_BUCKETS ? bucket : SINKPROOF_BUCKETS - 1;
}

double sinkproof_variant_place_bias(const sinkproof_variant *variant,
                                    const sinkproof_variant_head *head, size_t distance) {
    switch (variant->places) {
    case SINKPROOF_PLACES_RELATIVE:
        return head->bucket_b[t5_bucket(distance)];
    case SINKPROOF_PLACES_BUCKET:
        return (double)t5_bucket(distance);
    case SINKPROOF_PLACES_ALIBI:
        return -head->slope * (double)distance;
    default:
        return 0;
    }
}

// The angle of pair k of `width` coordinates at position i.
static double rotation_angle(double base, size_t i, size_t k, size_t width) {
    return (double)i * pow(base, -2.0 * (double)k / (double)width);
}

void variant_place_input(const sinkproof_variant *variant, const sinkproof_variant_head *head,
                         size_t i, double *x_c) {
    //> place.added
    if (variant->places == SINKPROOF_PLACES_LEARNED)
        for (size_t c = 0; c < head->hidden; c++) x_c[c] += head->place_nc[i * head->hidden + c];
    if (variant->places == SINKPROOF_PLACES_ABSOLUTE)
        for (size_t c = 0; c < head->hidden; c++) {
            double a = rotation_angle(10000, i, c / 2, head->hidden);
            x_c[c] += c % 2 == 0 ? sin(a) : cos(a);
        }
    //< place.added
}

// Halves: coordinate k turns with coordinate k + dim / 2, as in ref/rope.c.
void variant_place_turn(const sinkproof_policy *policy, const sinkproof_variant *variant,
                        const sinkproof_variant_head *head, size_t i, double *x_d) {
    size_t half = head->dim / 2;
    if (variant->places != SINKPROOF_PLACES_ROTARY) return;
    for (size_t k = 0; k < half; k++) {
        double a = rotation_angle(head->rotary_base, i, k, head->dim), x = x_d[k],
               y = x_d[k + half];
        x_d[k] = round_at(policy, AT_A4, x * cos(a) - y * sin(a));
        x_d[k + half] = round_at(policy, AT_A4, y * cos(a) + x * sin(a));
    }
}
