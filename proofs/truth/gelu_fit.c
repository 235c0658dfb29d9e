// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// How well x sigmoid(alpha x) fits GELU, x Phi(x), and sigmoid(alpha x) the normal distribution
// function Phi: largest differences over the whole line, enclosed. With w = 1 or w = 0,
//     f(x) = x^w (Phi(x) - sigmoid(alpha x))
// is even or odd, so that x >= 0 suffices. On [0, 16] by branch and bound: f lies within
// f(m) + f'(I) (I - m) on an interval I with midpoint m. Beyond it
//     x (1 - Phi(x)) <= phi(x),   x (1 - sigmoid(alpha x)) <= x e^(-alpha x),
// both falling, the second for x > 1 / alpha; and the size of their difference is at most the
// larger.
#include "proofs/truth/truth.h"

#if __has_include(<flint/arb_hypgeom.h>)
#include <flint/arb_hypgeom.h>
#else
#include <arb_hypgeom.h>
#endif

enum { END = 16, MOST = 100000 };

// erfc(-x / sqrt 2) / 2
static void normal_distribution(arb_t out, const arb_t x, slong bits) {
    arb_t root;
    arb_init(root);
    arb_sqrt_ui(root, 2, bits);
    arb_div(out, x, root, bits);
    arb_neg(out, out);
    arb_hypgeom_erfc(out, out, bits);
    arb_mul_2exp_si(out, out, -1);
    arb_clear(root);
}

void sinkproof_truth_gelu(arb_t out, const arb_t x, slong bits) {
    arb_t phi;
    arb_init(phi);
    normal_distribution(phi, x, bits);
    arb_mul(out, x, phi, bits);
    arb_clear(phi);
}

// f and f' on a ball of x >= 0.
//> swiglu.gelu-fit
static void fit_difference(arb_t f, arb_t slope, const arb_t x, const arb_t alpha, int w,
                           slong bits) {
    arb_t t, u;
    balls_init(t, u);
    arb_mul(u, alpha, x, bits);
    arb_cosh(t, u, bits); // sigmoid' = 1 / (2 + 2 cosh)
    arb_mul_2exp_si(t, t, 1);
    arb_add_ui(t, t, 2, bits);
    arb_div(slope, alpha, t, bits);
    arb_neg(u, u);
    arb_exp(u, u, bits);
    arb_add_ui(u, u, 1, bits);
    arb_inv(u, u, bits); // sigmoid(alpha x)
    normal_distribution(f, x, bits);
    arb_sub(f, f, u, bits);
    arb_mul(t, x, x, bits);
    arb_mul_2exp_si(t, t, -1);
    arb_neg(t, t);
    arb_exp(t, t, bits);
    arb_const_pi(u, bits);
    arb_mul_2exp_si(u, u, 1);
    arb_rsqrt(u, u, bits);
    arb_mul(t, t, u, bits); // phi(x) = e^(-x^2 / 2) / sqrt(2 pi)
    arb_sub(slope, t, slope, bits);
    if (w == 1) { // (x d)' = d + x d'
        arb_mul(slope, slope, x, bits);
        arb_add(slope, slope, f, bits);
        arb_mul(f, f, x, bits);
    }
    balls_clear(t, u);
}
//< swiglu.gelu-fit

typedef struct search {
    const arb_struct *alpha;
    int w, sign;
    slong bits;
    arf_t least, most; // bounds of the supremum: a value that is reached, and an upper bound
    // processed; beyond MOST the bound becomes infinite: undecided, but the search ends
    size_t intervals;
} search;

// Processes the interval [k, k + 1] 2^-depth: raises `least` by the value at its middle; returns
// true if the interval needs no further division, because f is below `least` there or because it
// has the smallest size, whose bound is kept.
static bool interval_is_settled(search *s, ulong k, slong depth) {
    arb_t middle, whole, f, slope, bound;
    balls_init(middle, whole, f, slope, bound);
    arb_set_ui(middle, 2 * k + 1);
    arb_mul_2exp_si(middle, middle, -depth - 1);
    arb_set(whole, middle);
    arb_add_error_2exp_si(whole, -depth - 1);
    fit_difference(bound, slope, whole, s->alpha, s->w, s->bits);
    fit_difference(f, bound, middle, s->alpha, s->w, s->bits);
    if (s->sign < 0) arb_neg(f, f);
    arb_sub(whole, whole, middle, s->bits);
    arb_mul(bound, slope, whole, s->bits);
    arb_add(bound, bound, f, s->bits);
    arf_t low, high;
    arf_init(low);
    arf_init(high);
    arb_get_lbound_arf(low, f, s->bits);
    arb_get_ubound_arf(high, bound, s->bits);
    arf_max(s->least, s->least, low);
    bool below = arf_cmp(high, s->least) < 0;
    bool last = !below && depth >= s->bits / 2;
    if (last) arf_max(s->most, s->most, high);
    arf_clear(low);
    arf_clear(high);
    balls_clear(middle, whole, f, slope, bound);
    return below || last;
}

static void search_interval(search *s, ulong k, slong depth) {
    if (s->intervals++ > MOST) arf_pos_inf(s->most);
    if (arf_is_pos_inf(s->most) || interval_is_settled(s, k, depth)) return;
    search_interval(s, 2 * k, depth + 1);
    search_interval(s, 2 * k + 1, depth + 1);
}

// Bounds f beyond END: by phi(END) or END e^(-alpha END), the larger.
static void add_tail(search *s) {
    arb_t x, t, u;
    arf_t high;
    balls_init(x, t, u);
    arf_init(high);
    arb_set_ui(x, END);
    arb_mul(t, s->alpha, x, s->bits);
    arb_neg(t, t);
    arb_exp(t, t, s->bits);
    arb_mul(t, t, x, s->bits);
    arb_mul(u, x, x, s->bits);
    arb_mul_2exp_si(u, u, -1);
    arb_neg(u, u);
    arb_exp(u, u, s->bits); // above phi(END)
    arb_max(t, t, u, s->bits);
    arb_get_ubound_arf(high, t, s->bits);
    arf_max(s->most, s->most, high);
    balls_clear(x, t, u);
    arf_clear(high);
}

void sinkproof_truth_gelu_fit(arb_t above, arb_t below, const arb_t alpha, int w, slong bits) {
    for (int side = 0; side < 2; side++) {
        search s = {.alpha = alpha, .w = w, .sign = side == 0 ? 1 : -1, .bits = bits};
        arf_init(s.least);
        arf_init(s.most);
        // The middles first: with a good `least` nearly every interval is discarded at once.
        for (ulong k = 0; k < 16 * END; k++) interval_is_settled(&s, k, 4);
        arf_zero(s.most);
        for (ulong k = 0; k < END; k++) search_interval(&s, k, 0);
        arf_max(s.most, s.most, s.least);
        add_tail(&s);
        arb_set_interval_arf(side == 0 ? above : below, s.least, s.most, bits);
        arf_clear(s.least);
        arf_clear(s.most);
    }
}

// 1 when `above` is the larger at alpha = x, -1 when `below` is, 0 when the balls cannot tell.
static int larger_side(arb_t above, const arf_t x, int w, slong bits) {
    arb_t alpha, below;
    balls_init(alpha, below);
    arb_set_arf(alpha, x);
    sinkproof_truth_gelu_fit(above, below, alpha, w, bits);
    int side = arb_gt(above, below) ? 1 : arb_lt(above, below) ? -1 : 0;
    balls_clear(alpha, below);
    return side;
}

// sigmoid(alpha x) grows with alpha at every x > 0: `above` falls, `below` rises, and their maximum
// is smallest where they cross. There it is `above`, between its values at low and high.
void truth_gelu_fit_best(arb_t alpha, arb_t error, int w, slong bits) {
    arf_t low, high, middle;
    arb_t above_low, above_high, above;
    arf_init(low);
    arf_init(high);
    arf_init(middle);
    balls_init(above_low, above_high, above);
    arf_set_d(low, 1.5);
    arf_set_d(high, 2);
    int side =
        larger_side(above_low, low, w, bits) == 1 && larger_side(above_high, high, w, bits) == -1;
    if (side == 0) arf_neg_inf(low); // no crossing in between
    for (slong step = 0; step < bits / 2 && side != 0; step++) {
        arf_add(middle, low, high, ARF_PREC_EXACT, ARF_RND_NEAR);
        arf_mul_2exp_si(middle, middle, -1);
        side = larger_side(above, middle, w, bits);
        if (side != 0) arf_set(side > 0 ? low : high, middle);
        if (side != 0) arb_set(side > 0 ? above_low : above_high, above);
    }
    arb_set_interval_arf(alpha, low, high, bits);
    arb_union(error, above_low, above_high, bits);
    arf_clear(low);
    arf_clear(high);
    arf_clear(middle);
    balls_clear(above_low, above_high, above);
}
