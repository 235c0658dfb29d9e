// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What the truth reports about its routing: choices, ties, ambiguous and contested choices, the
// thinnest margin and the first ambiguous choice, each with its layer and token. The router logits
// were planned for every layer and token. No two sizes of the model are equal; a point outside all
// layers reports layer 0. 0.5 CPU seconds.
#include "proofs/truth/forward.h"
#include "tests/shared/opened.h"
#include "tests/shared/stated.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 4, TOKENS = 4, EXPERTS = 7, CHOSEN = 3, BITS = 96, UNIT = -66 };
static const uint64_t EIGHTH = 1ULL << 63; // 2^-3 in units of 2^-66: margins of 64 bits

// A letter for each token of each layer.
typedef struct plan {
    const char *what;
    const char *margins;  // see margin_of
    const char *replaced; // '-' not, 'r' in reverse, 'x' with the least likely, 'y' with the next
} plan;

typedef struct margin {
    uint64_t middle, radius; // in units of 2^-66
} margin;

static margin margin_of(char kind) {
    switch (kind) {
    case 't': // a tie
        return (margin){0, 0};
    case 'a': // ambiguous
        return (margin){EIGHTH, EIGHTH + EIGHTH / 2};
    case 'b': // ambiguous, otherwise
        return (margin){EIGHTH / 2, EIGHTH};
    case 'n': // thin
        return (margin){EIGHTH / 4, 0};
    case 'w': // its lower end is thinner, its middle is not
        return (margin){EIGHTH, EIGHTH - EIGHTH / 8};
    case '1': // these differ in the last of 64 bits:
    case '2':
    case '3':
        return (margin){EIGHTH + (uint64_t)(kind - '0'), 0};
    default: // wide
        return (margin){EIGHTH + EIGHTH / 2, 0};
    }
}

typedef struct walk {
    const plan *plan;
    size_t wrong, points;
} walk;

// The expert of a rank; ranks 0 ... 2 are chosen, unless the margin is a tie.
static size_t expert_of(size_t rank, size_t layer, size_t token) {
    return (rank + layer + 2 * token) % EXPERTS;
}

static void see(void *context, const sinkproof_truth_place *place, arb_srcptr values) {
    walk *w = context;
    (void)values;
    w->points++;
    if (strchr(place->name, '.') == NULL) w->wrong += place->layer != 0; // T0, F1, F2
    if (strcmp(place->point, "M2") == 0)
        w->wrong += place->rank != 2 || place->shape[0] != TOKENS || place->shape[1] != EXPERTS;
}

// Logits 6, 5, 4; 4 less the margin; -1, -2, -3.
static void replay(void *context, const sinkproof_truth_place *place, arb_ptr values) {
    const walk *w = context;
    if (strcmp(place->point, "M2") != 0) return;
    for (size_t i = 0; i < TOKENS; i++) {
        margin m = margin_of(w->plan->margins[place->layer * TOKENS + i]);
        for (size_t rank = 0; rank < EXPERTS; rank++) {
            arb_ptr z = values + i * EXPERTS + expert_of(rank, place->layer, i);
            arb_set_si(z, (rank < CHOSEN ? 6 : 3) - (slong)rank);
            if (rank != CHOSEN) continue;
            arb_set_ui(z, m.middle);
            arb_mul_2exp_si(z, z, UNIT);
            arb_sub_ui(z, z, 4, BITS);
            arb_neg(z, z);
            mag_set_ui_2exp_si(arb_radref(z), m.radius, UNIT);
        }
    }
}

static bool choose(void *context, size_t layer, size_t *chosen_nk) {
    const walk *w = context;
    if (w->plan->replaced[0] == 0) return false;
    for (size_t i = 0; i < TOKENS; i++) {
        char how = w->plan->replaced[layer * TOKENS + i];
        size_t *chosen_k = chosen_nk + i * CHOSEN, first = chosen_k[0];
        if (how == 'r') chosen_k[0] = chosen_k[2], chosen_k[2] = first;
        if (how == 'x') chosen_k[1] = expert_of(EXPERTS - 1, layer, i);
        if (how == 'y') chosen_k[2] = expert_of(CHOSEN, layer, i);
    }
    return true;
}

// ---- the same account by hand -------------------------------------------------------------------

static bool is(const arb_t ball, margin m) {
    arb_t x;
    arb_init(x);
    arb_set_ui(x, m.middle);
    mag_set_ui(arb_radref(x), m.radius);
    arb_mul_2exp_si(x, x, UNIT);
    bool same = arf_equal(arb_midref(ball), arb_midref(x)) && arb_contains(ball, x) &&
                mag_cmp_2exp_si(arb_radref(ball), m.radius > 0 ? -1 : -90) < 0;
    arb_clear(x);
    return same;
}

static real lower_end(margin m) { // exact: 64 bits at most
    return (real)m.middle - (real)m.radius;
}

static bool counted(const plan *p, const sinkproof_truth_routing *r) {
    size_t ties = 0, ambiguous = 0, contested = 0, thin = 0, first = 0;
    for (size_t c = 0; c < LAYERS * TOKENS; c++) {
        margin m = margin_of(p->margins[c]);
        ties += m.middle == 0;
        if (m.radius > m.middle && ambiguous++ == 0) first = c;
        if (lower_end(m) < lower_end(margin_of(p->margins[thin]))) thin = c;
        contested += p->replaced[0] != 0 && p->replaced[c] == 'x';
    }
    bool none = ambiguous == 0;
    return r->choices == LAYERS * TOKENS && r->ties == ties && r->ambiguous == ambiguous &&
           r->contested == contested && r->layer == thin / TOKENS && r->token == thin % TOKENS &&
           is(r->margin, margin_of(p->margins[thin])) && r->first_layer == first / TOKENS &&
           r->first_token == first % TOKENS &&
           (none ? mag_is_zero(arb_radref(r->first_margin)) && arb_is_positive(r->first_margin) &&
                       !arb_is_finite(r->first_margin)
                 : is(r->first_margin, margin_of(p->margins[first])));
}

static bool walked(const char *spec, const plan *p, walk *w, sinkproof_truth_result *result) {
    static const int32_t tokens_n[TOKENS] = {5, 0, 12, 7};
    sinkproof_error error = {""};
    sinkproof_truth_hooks hooks = {see, replay, choose, NULL, w};
    *w = (walk){.plan = p};
    sinkproof_model *model = open_model(spec);
    sinkproof_truth_request request = {.model = model,
                                       .n = TOKENS,
                                       .tokens_n = tokens_n,
                                       .bits = BITS,
                                       .last_logits = true,
                                       .hooks = &hooks};
    bool done = sinkproof_truth_forward(&request, result, &error);
    sinkproof_model_close(model);
    return ok(done && w->wrong == 0,
              "model.forward %s, %s: %zu points, misshapen worst=%zu bound=0%s", spec, p->what,
              w->points, w->wrong, error.text);
}

int main(void) {
    static const plan plans[] = {
        {"all plain", "................", ""},
        {"contested at all but the first", ".....w..n.......", "-xrxxxxrxx-xxxxx"},
        {"contested at the last, a tie", "..w.n....t......", "---r-----------x"},
        {"ambiguous, and with the next in its place", "......b..na...tt", "-r----yr--y---r-"},
        {"the same after another", "....w.a.b.......", "------y-y-------"},
        {"margins behind the ends' bits", "....1111........", ""},
        {"less behind the ends' bits", "3...3.2.........", ""},
        {"the first of those that are alike", "3333332323332223", "----------------"},
    };
    walk w;
    sinkproof_truth_result result;
    for (size_t k = 0; k < sizeof plans / sizeof *plans; k++) {
        if (!walked("synthetic:tiny", &plans[k], &w, &result)) continue;
        const sinkproof_truth_routing *r = &result.routing;
        ok(counted(&plans[k], r),
           "router.topk model.forward %s: %zu choices, %zu ties, %zu ambiguous, %zu contested, the "
           "thinnest at layer %zu, token %zu, as counted",
           plans[k].what, r->choices, r->ties, r->ambiguous, r->contested, r->layer, r->token);
        sinkproof_truth_result_clear(&result);
    }
    if (walked("synthetic:tiny-gpt2", &plans[0], &w, &result)) {
        const sinkproof_truth_routing *r = &result.routing;
        ok(r->choices == 0 && arb_is_positive(r->margin) && !arb_is_finite(r->margin) &&
               arb_is_positive(r->first_margin) && !arb_is_finite(r->first_margin),
           "gpt2.forward without a choice no margin is finite");
        sinkproof_truth_result_clear(&result);
    }
    flint_cleanup();
    mpfr_free_cache();
    return tap_done();
}
