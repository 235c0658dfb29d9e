// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// YaRN's frequencies in balls and in MPFR where the ramp leaves the head: an end below 0, an end
// beyond the last element, a ramp without width; factors of 1 and less. 0.01 CPU seconds.
#include "tests/shared/stated.h"

#include "proofs/truth/truth.h"

#include <math.h>

enum { BITS = 160 };

typedef struct yarn {
    const char *what;
    size_t head_dim, context;
    double fast, slow, theta, factor;
    bool truncate;
} yarn;

typedef struct ends {
    real low, high;
} ends;

static real correction(const yarn *y, double beta) {
    real turns = (real)y->context / (2 * acosl(-1) * beta);
    return (real)(y->head_dim / 2) * logl(turns) / logl(y->theta);
}

static ends ends_of(const yarn *y) {
    ends e = {correction(y, y->fast), correction(y, y->slow)};
    if (y->truncate) e = (ends){floorl(e.low), ceill(e.high)};
    e = (ends){fmaxl(e.low, 0), fminl(e.high, (real)y->head_dim - 1)};
    if (e.low == e.high) e.high += 0.001L;
    return e;
}

static real frequency(const yarn *y, size_t d) {
    ends e = ends_of(y);
    real ramp = fminl(fmaxl(((real)d - e.low) / (e.high - e.low), 0), 1);
    return (ramp / y->factor + 1 - ramp) * powl(y->theta, -(real)d / (real)(y->head_dim / 2));
}

// Within two roundings of binary64 and what long double leaves of a quotient of differences.
static bool close_to(const arb_t ball, real stated) {
    double at = (double)stated, room = (double)(fabsl(stated) * 0x1p-52L) + 0x1p-60;
    return sinkproof_truth_distance(ball, at) <= room;
}

static void ask(const yarn *y) {
    sinkproof_config config = {.head_dim = y->head_dim, .rotation.theta = y->theta};
    config.rotation.original_context = y->context, config.rotation.factor = y->factor;
    config.rotation.beta_fast = y->fast, config.rotation.beta_slow = y->slow;
    config.rotation.truncate = y->truncate;
    sinkproof_truth_yarn table;
    sinkproof_truth_yarn_init(&table, &config, BITS);
    size_t half = y->head_dim / 2, wrong = 0;
    mpfr_ptr inv_freq_d = truth_mpfr_vector(half, BITS);
    mpfr_ptr concentration = truth_mpfr_vector(1, BITS);
    truth_mpfr_yarn(inv_freq_d, concentration, &config, BITS);
    arb_t ball;
    arb_init(ball);
    real stated = y->factor > 1 ? 1 + logl(y->factor) / 10 : 1;
    wrong += !close_to(table.concentration, stated);
    arb_set_interval_mpfr(ball, concentration, concentration, BITS);
    wrong += !close_to(ball, stated);
    ok(wrong == 0, "yarn.concentration %s: worst=%zu bound=0", y->what, wrong);
    ends e = ends_of(y);
    wrong = !close_to(table.low, e.low) + !close_to(table.high, e.high);
    for (size_t d = 0; d < half; d++) {
        arb_set_interval_mpfr(ball, inv_freq_d + d, inv_freq_d + d, BITS);
        wrong +=
            !close_to(table.inv_freq_d + d, frequency(y, d)) + !close_to(ball, frequency(y, d));
    }
    ok(wrong == 0, "yarn.ramp yarn.truncate %s, from %.6Lg to %.6Lg: worst=%zu bound=0", y->what,
       e.low, e.high, wrong);
    arb_clear(ball);
    truth_mpfr_vector_free(inv_freq_d, half);
    truth_mpfr_vector_free(concentration, 1);
    sinkproof_truth_yarn_clear(&table);
}

int main(void) {
    static const yarn asked[] = {
        {"a ramp inside", 64, 4096, 32, 1, 150000, 32, false},
        {"whole ends inside", 64, 4096, 32, 1, 150000, 32, true},
        {"an end below 0", 16, 64, 32, 1, 500, 1.5, false},
        {"a whole end below 0", 16, 64, 32, 1, 500, 1.5, true},
        {"an end beyond the head", 8, 4096, 64, 0x1p-40, 10000, 4, false},
        {"a whole end beyond the head", 8, 4096, 64, 0x1p-40, 10000, 4, true},
        {"an end half beyond the last", 8, 4096, 326, 3.6, 16, 4, false},
        {"an end half before the last", 8, 4096, 326, 7.2, 16, 4, false},
        {"no width at 0", 16, 6, 32, 1, 150000, 8, true},
        {"no width at the last", 8, 134217728, 1, 0x1p-20, 10000, 2, true},
        {"a factor of 1", 16, 4096, 32, 1, 10000, 1, false},
        {"a factor of a half", 16, 4096, 32, 1, 10000, 0.5, true},
    };
    for (size_t k = 0; k < sizeof asked / sizeof *asked; k++) ask(&asked[k]);
    flint_cleanup();
    mpfr_free_cache();
    return tap_done();
}
