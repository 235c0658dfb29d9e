// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The families of guesses at the softmax's sum: slots without a key that are counted, a sink under
// another maximum, a sum that is rounded term by term; and at its exponential.
#include "audit/diagnose/attention_hunt.h"

#include <math.h>

static const sinkproof_attending defined = SINKPROOF_ATTENDING;

// Slots that fill a tile, or all the room of a cache, and are not masked.
void guess_empty_slots(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    size_t n = h->view->keys;
    (void)of;
    m.zero_keys = 1;
    for (int kind = SINKPROOF_EMPTY_TAIL; kind <= SINKPROOF_EMPTY_NEXT; kind++)
        for (m.summing.unit = 2; m.summing.unit < n; // one tile is the room of the cache
             m.summing.unit = hunt_next_size(m.summing.unit))
            for (int seen = 0; seen < (h->view->layer_window > 0 ? 2 : 1); seen++) {
                m.summing.empty = (sinkproof_empty_slots)kind, m.summing.from_seen = seen != 0;
                hunt_offer(h, &m);
            }
    m.summing = (sinkproof_summing){.empty = SINKPROOF_EMPTY_ROOM};
    for (m.summing.unit = h->view->end_row; m.summing.unit <= n + 64; m.summing.unit++)
        hunt_offer(h, &m);
    for (size_t step = 16; step <= 65536; step *= 2)
        for (m.summing.unit = n / step * step + step; m.summing.unit <= n + 8 * step;
             m.summing.unit += step)
            if (m.summing.unit > n + 64) hunt_offer(h, &m);
}

// The sink's exponential under another maximum than the keys': its own, or that of the first or of
// the last tile, from which a running maximum never rescaled it.
void guess_sink_tops(hunt *h, const family_arguments *of) {
    sinkproof_attending m = defined;
    (void)of;
    for (int alone = 0; alone < 2; alone++) {
        m.summing = (sinkproof_summing){.sink_top = SINKPROOF_TOP_OWN, .top_of_keys = alone != 0};
        hunt_offer(h, &m);
        for (int top = SINKPROOF_TOP_FIRST; top <= SINKPROOF_TOP_LAST; top++)
            for (m.summing.tile = 1; m.summing.tile < h->view->keys;
                 m.summing.tile = hunt_next_size(m.summing.tile))
                m.summing.sink_top = (sinkproof_sink_top)top, hunt_offer(h, &m);
    }
}

// A sum in a narrower format than that of the trace: one key after another, in tiles, or in lanes.
static void offer_rounded_sums(hunt *h, sinkproof_attending *m) {
    sinkproof_summing *s = &m->summing;
    for (int how = 0; how < 8; how++) {
        s->terms_rounded = how % 2 != 0, s->sink_first = how / 2 % 2 != 0, s->backwards = how >= 4;
        s->lanes = s->tile = 0, hunt_offer(h, m);
        for (s->tile = 2; s->tile < h->view->keys && s->tile <= 256; s->tile *= 2) hunt_offer(h, m);
        s->tile = 0;
        for (s->lanes = 2; s->lanes <= 64 && !s->backwards; s->lanes *= 2) hunt_offer(h, m);
    }
}

void guess_rounded_sums(hunt *h, const family_arguments *of) {
    static const sinkproof_format formats[] = {SINKPROOF_BF16, SINKPROOF_F16};
    (void)of;
    for (size_t f = 0; f < 2; f++) {
        sinkproof_attending m = defined;
        m.summing.format = formats[f];
        if (sinkproof_unit_roundoff(formats[f]) > h->view->roundoff) offer_rounded_sums(h, &m);
    }
}

// ---- exponentials

static void offer_weighing(hunt *h, sinkproof_weighing weighing, double number) {
    sinkproof_attending m = defined;
    m.weighing = weighing, m.summing.number = number;
    hunt_offer(h, &m);
}

void guess_exponentials(hunt *h, const family_arguments *of) {
    // of 2^23: Schraudolph's for the least largest error, for the least mean, and others in use
    static const double shifts[] = {486411, 366393, 361007, 298765, 545948, 524288};
    (void)of;
    for (size_t i = 0; i < sizeof shifts / sizeof shifts[0]; i++)
        offer_weighing(h, SINKPROOF_WEIGH_LINEAR, shifts[i] / 0x1p23);
    offer_weighing(h, SINKPROOF_WEIGH_CUBIC, 0);
    offer_weighing(h, SINKPROOF_WEIGH_TWICE, 0);
    for (int power = 1; power <= 32; power++)
        offer_weighing(h, SINKPROOF_WEIGH_CLAMPED, power * log(2));
    for (int degree = 2; degree <= 8; degree++)
        offer_weighing(h, SINKPROOF_WEIGH_POLYNOMIAL, degree);
    for (int power = 1; power <= 16; power++) offer_weighing(h, SINKPROOF_WEIGH_POWER, exp2(power));
    for (int half = 1; half <= 60; half++) offer_weighing(h, SINKPROOF_WEIGH_CLAMPED, half / 2.0);
    for (int w = SINKPROOF_WEIGH_STEPS; w <= SINKPROOF_WEIGH_STEPS_TWO; w++) {
        for (int power = 0; power <= 12; power++)
            offer_weighing(h, (sinkproof_weighing)w, exp2(power));
        for (int ten = 10; ten <= 1000; ten *= 10) offer_weighing(h, (sinkproof_weighing)w, ten);
    }
    sinkproof_attending m = defined;
    m.weighing = SINKPROOF_WEIGH_LINEAR;
    hunt_offer_fitted(h, &m, &m.summing.number, true, 256);
}
