// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The identities in ball arithmetic, at 64 to 1024 bits: both sides are enclosed, and no radius is
// above what the precision allows. The check finds a broken identity.
#include "proofs/truth/identities.h"
#include "tests/shared/only.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { INSTANCES = 48, SEED = 1 };
static const slong precisions[] = {64, 128, 256, 512, 1024};

static void notes(char *text) {
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
        note("%.200s", line);
    free(text);
}

static void identities(void) {
    const sinkproof_identity *identity;
    for (size_t k = 0; (identity = sinkproof_identity_at(k)) != NULL; k++) {
        if (!is_asked(identity->id)) continue;
        for (size_t p = 0; p < 5; p += 2) {
            slong bits = precisions[p];
            bool less = identity->relation == SINKPROOF_BALL_LESS;
            if (less && p > 0) continue; // it chooses its own precision
            sinkproof_identity_outcome o =
                sinkproof_identity_check(identity, SEED, INSTANCES, bits);
            if (!ok(o.entries > 0 && o.broken == 0,
                    "%s %s bits=%ld instances=%zu entries=%zu broken=%zu radius=2^%.1f worst=%.3g "
                    "bound=1 seed=%d, %s %s %s",
                    identity->id, less ? "disjoint" : "enclosed", o.bits, o.instances, o.entries,
                    o.broken, o.radius_log2, o.share, SEED, identity->left_text, less ? "<" : "=",
                    identity->right_text))
                notes(sinkproof_identity_describe(identity, SEED, o.first_broken, bits));
        }
    }
}

// MPFR at 512 bits, with its own error, meets both sides' balls at 128.
static void mpfr(void) {
    if (!is_asked("sink.mass") && !is_asked("sink.gate")) return;
    size_t inside = 0, tried = 0;
    arb_ptr sides = _arb_vec_init(4);
    arb_t x;
    arb_init(x);
    for (size_t k = 0; sinkproof_identity_at(k) != NULL; k++) {
        const sinkproof_identity *identity = sinkproof_identity_at(k);
        bool mass = strcmp(identity->id, "sink.mass") == 0;
        bool gate = strcmp(identity->id, "sink.gate") == 0 && identity->size == BALL_ONE;
        for (uint64_t number = 0; (mass || gate) && number < INSTANCES; number++) {
            sinkproof_ball_ranges ranges = {0, 0, 300, NAN};
            sinkproof_ball_instance m = sinkproof_ball_draw(ranges, SEED, number);
            mpfr_ptr out = truth_mpfr_vector(2, 512);
            truth_mpfr_mass_and_gate(out, &m, 512);
            identity->left(sides, &m, 128);
            identity->right(sides + 1, &m, 128);
            arf_set_mpfr(arb_midref(x), out + (gate ? 1 : 0));
            double own = identity_allowed_log2(identity, &m, 512);
            mag_zero(arb_radref(x));
            arb_add_error_2exp_si(x, (slong)ceil(own));
            inside += arb_overlaps(sides, x) && arb_overlaps(sides + 1, x);
            tried++;
            truth_mpfr_vector_free(out, 2);
            sinkproof_ball_clear(&m);
        }
    }
    ok(tried == 2 * INSTANCES && inside == tried,
       "sink.mass sink.gate mpfr at 512 bits in both balls at 128 bits: %zu of %zu", inside, tried);
    arb_clear(x);
    _arb_vec_clear(sides, 4);
}

// Planted mistakes: a side off by 2^-40 of itself, and a side with too wide a ball.
static ball_side_fn planted;
static void off_a_little(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    planted(out, m, bits);
    arb_t t;
    arb_init(t);
    arb_mul_2exp_si(t, out, -40);
    arb_add(out, out, t, bits);
    arb_clear(t);
}
static void too_wide(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    planted(out, m, bits);
    arb_add_error_2exp_si(out, -bits / 2);
}
static void swapped_sides(const sinkproof_identity *identity, sinkproof_identity *broken) {
    *broken = *identity;
    broken->left = identity->right;
    broken->right = identity->left;
}

static void planted_mistakes(void) {
    const sinkproof_identity *identity;
    size_t identities_seen = 0, caught = 0;
    for (size_t k = 0; (identity = sinkproof_identity_at(k)) != NULL; k++) {
        if (!is_asked(identity->id)) continue;
        sinkproof_identity broken = *identity;
        bool all = true;
        if (identity->relation == SINKPROOF_BALL_LESS) {
            swapped_sides(identity, &broken);
            all = sinkproof_identity_check(&broken, SEED, 8, 128).broken > 0;
        } else {
            planted = identity->left;
            broken.left = off_a_little;
            if (identity->relation == SINKPROOF_BALL_EQUAL)
                all = sinkproof_identity_check(&broken, SEED, 8, 128).broken > 0;
            broken.left = too_wide;
            all = all && (identity->relation == SINKPROOF_BALL_DERIVATIVE ||
                          sinkproof_identity_check(&broken, SEED, 8, 128).broken > 0);
        }
        identities_seen++;
        caught += all;
        if (!all) note("%s: a planted mistake was not seen", identity->id);
    }
    ok(identities_seen > 0 && caught == identities_seen,
       "planted mistakes: caught=%zu of %zu identities", caught, identities_seen);
}

int main(int argc, char **argv) {
    (void)argc;
    only_ids = argv + 1;
    identities();
    mpfr();
    planted_mistakes();
    flint_cleanup();
    mpfr_free_cache();
    return tap_done();
}
