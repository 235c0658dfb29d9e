// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Scores by the query's position or by the distance, planted in complete engines. What follows
// neither is not called so.
#include "tests/shared/planted.h"

static void temperature(shown *s, double by) {
    for (size_t at = 0; at < s->count; at++) {
        double position = (double)(at / s->shape[2] % s->n);
        s->v[at] = rounded(s, s->v[at] * (1 + by * log(floor((position + 1) / 4) + 1)));
    }
}
static void of_distance(shown *s, double by) {
    for (size_t at = 0; at < s->count; at++) {
        size_t i = at / s->shape[2] % s->n, j = at % s->shape[2];
        bool near = j <= i && i - j < s->c->window; // as in the layers with a window
        if (near) s->v[at] = rounded(s, s->v[at] + by * (double)((i - j) * 5 % 7));
    }
}
static void scattered(shown *s, double by) {
    for (size_t at = 0; at < s->count; at++)
        s->v[at] = rounded(s, s->v[at] + by * (double)(at * 7 % 11));
}

static const plant plants[] = {
    {AT("A6"), .change = temperature, .by = 0.1, .f32 = true, .alone = true,
     .says = "1 + 0.1 ln(floor((position + 1) / 4) + 1): a temperature of the query's position"},
    {AT("A6"), .change = of_distance, .by = 0.3, .f32 = true, .alone = true,
     .says = "a number added that depends on the distance between query and key alone"},
    {AT("A6"), .change = scattered, .by = 0.1, .f32 = true, .not = "A6"},
};

int main(int argc, char **argv) {
    return try_plants(plants, sizeof plants / sizeof plants[0], argc, argv);
}
