// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Edge cases of the truth's stages: what a request is refused for and in which words, and what is
// only just accepted; impossible selections; constants as decimals; margins of any selection; balls
// as narrow as the formula's own steps allow. 0.5 CPU seconds.
#include "proofs/truth/exact_dot.h"
#include "proofs/truth/forward.h"
#include "proofs/truth/lattice.h"
#include "proofs/truth/variants.h"
#include "tests/shared/opened.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 128 };

// ---- requests -----------------------------------------------------------------------------------

// What a walk is refused for; "" when it is not.
static const char *refusal(const sinkproof_truth_request *request) {
    static sinkproof_error error;
    sinkproof_truth_result result;
    error.text[0] = 0;
    if (sinkproof_truth_forward(request, &result, &error)) sinkproof_truth_result_clear(&result);
    return error.text;
}

static void requests(void) {
    enum { CONTEXT = 131072, FEW = 64 }; // of the two models
    static int32_t tokens_n[CONTEXT + 1], none_n[1] = {-1};
    sinkproof_model *turned = open_model("synthetic:tiny"),
                    *learned = open_model("synthetic:tiny-gpt2");
    const struct {
        const sinkproof_model *model;
        size_t n;
        const int32_t *tokens_n;
        slong bits;
        const char *words;
    } asked[] = {
        {turned, 0, tokens_n, 64, "truth needs at least one token"},
        {turned, INT32_MAX, none_n, 64, "token 0 is -1, the vocabulary has 211 entries"},
        {turned, (size_t)INT32_MAX + 1, none_n, 64, "truth needs at least one token"},
        {turned, 1, tokens_n, 31, "truth needs 32 to 1048576 bits of working precision, not 31"},
        {turned, 1, none_n, 32, "token 0 is -1, the vocabulary has 211 entries"},
        {turned, 1, none_n, 1 << 20, "token 0 is -1, the vocabulary has 211 entries"},
        {turned, 1, none_n, (1 << 20) + 1,
         "truth needs 32 to 1048576 bits of working precision, not 1048577"},
        {turned, CONTEXT + 1, tokens_n, 64, "131073 tokens, the model's context is 131072"},
        {learned, FEW, none_n, 64, "token 0 is -1, the vocabulary has 211 entries"},
        {learned, FEW + 1, none_n, 64, "65 tokens exceed the model's context of 64"},
        {learned, FEW, tokens_n, 32, ""},
    };
    for (size_t k = 0; k < sizeof asked / sizeof *asked; k++) {
        sinkproof_truth_request request = {.model = asked[k].model,
                                           .n = asked[k].n,
                                           .tokens_n = asked[k].tokens_n,
                                           .bits = asked[k].bits,
                                           .last_logits = true};
        const char *words = refusal(&request);
        ok(strcmp(words, asked[k].words) == 0, "model.forward %zu tokens, %ld bits: \"%s\"",
           asked[k].n, (long)asked[k].bits, words);
    }
    sinkproof_model_close(turned);
    sinkproof_model_close(learned);
}

// ---- selections ---------------------------------------------------------------------------------

// In layer 1, of token 2: the experts that are chosen.
static bool choose(void *context, size_t layer, size_t *chosen_nk) {
    const size_t *instead_k = context;
    if (layer != 1) return false;
    memcpy(chosen_nk + (size_t)2 * 3, instead_k, 3 * sizeof *instead_k);
    return true;
}

static void selections(void) {
    static const int32_t tokens_n[4] = {5, 0, 12, 7};
    sinkproof_model *model = open_model("synthetic:tiny"); // 3 of 7 experts
    struct {
        size_t instead_k[3];
        const char *words;
    } chosen[] = {
        {{9, 0, 1}, "01.M3: expert 9 of token 2 where the model has 7 experts"},
        {{0, 1, 7}, "01.M3: expert 7 of token 2 where the model has 7 experts"},
        {{4, 0, 4}, "01.M3: token 2 chooses expert 4 twice"},
        {{5, 6, 4}, ""},
    };
    for (size_t k = 0; k < sizeof chosen / sizeof *chosen; k++) {
        sinkproof_truth_hooks hooks = {NULL, NULL, choose, NULL, chosen[k].instead_k};
        sinkproof_truth_request request = {.model = model,
                                           .n = 4,
                                           .tokens_n = tokens_n,
                                           .bits = 64,
                                           .last_logits = true,
                                           .hooks = &hooks};
        const char *words = refusal(&request);
        ok(strcmp(words, chosen[k].words) == 0,
           "model.forward router.topk experts %zu %zu %zu: \"%s\"", chosen[k].instead_k[0],
           chosen[k].instead_k[1], chosen[k].instead_k[2], words);
    }
    sinkproof_model_close(model);
}

// Logits 0, 1, 4, 9, ...: of any three, in any order, the least less the largest of the others.
static void margins(void) {
    enum { EXPERTS = 5, CHOSEN = 3 };
    arb_ptr z = _arb_vec_init(EXPERTS);
    arb_t margin;
    arb_init(margin);
    size_t wrong = 0, asked = 0;
    for (slong e = 0; e < EXPERTS; e++) arb_set_si(z + e, e * e);
    for (size_t code = 0; code < EXPERTS * EXPERTS * EXPERTS; code++) {
        const size_t c[CHOSEN] = {code % EXPERTS, code / EXPERTS % EXPERTS,
                                  code / EXPERTS / EXPERTS};
        if (c[0] == c[1] || c[0] == c[2] || c[1] == c[2]) continue;
        slong least = EXPERTS, other = 0;
        for (slong e = EXPERTS - 1; e >= 0; e--) {
            bool is = c[0] == (size_t)e || c[1] == (size_t)e || c[2] == (size_t)e;
            if (is) least = e;
            if (!is && e > other) other = e;
        }
        truth_choice choice = truth_margin(margin, c, z, EXPERTS, CHOSEN, BITS);
        wrong += !arb_equal_si(margin, least * least - other * other);
        wrong += (choice == CHOICE_CERTIFIED) != (least > other);
        asked++;
    }
    ok(asked == 60 && wrong == 0,
       "router.topk the margin of a selection in any order: %zu, worst=%zu bound=0", asked, wrong);
    const size_t all[EXPERTS] = {3, 1, 4, 0, 2};
    arb_indeterminate(z + 1);
    truth_choice choice = truth_margin(margin, all, z, EXPERTS, EXPERTS, BITS);
    ok(choice == CHOICE_CERTIFIED && arf_is_pos_inf(arb_midref(margin)) &&
           mag_is_zero(arb_radref(margin)),
       "router.topk all experts chosen: the margin is infinite, whatever the logits");
    arb_clear(margin);
    _arb_vec_clear(z, EXPERTS);
}

// ---- constants ----------------------------------------------------------------------------------

static void constants(void) {
    static const struct {
        double value;
        const char *text;
    } known[] = {
        {0.1, "0.1"},
        {1e-5, "1e-05"},
        {150000, "150000"},
        {0x1p-1074, "4.94065645841247e-324"},          // 14 digits read back as well
        {0x1.1111111111111p-4, "0.06666666666666667"}, // 16
        {0x1.3333333333334p-2, "0.30000000000000004"}, // 17
    };
    arb_t ball, decimal;
    balls_init(ball, decimal);
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        char text[40];
        truth_decimal_text(known[k].value, text);
        sinkproof_truth_decimal(ball, known[k].value, BITS);
        arb_set_str(decimal, known[k].text, BITS);
        ok(strcmp(text, known[k].text) == 0 && arb_equal(ball, decimal),
           "swiglu.clamped the constant %a is %s", known[k].value, text);
    }
    const double not_numbers[] = {INFINITY, -INFINITY, NAN};
    for (size_t k = 0; k < 3; k++) {
        sinkproof_truth_decimal(ball, not_numbers[k], BITS);
        ok(arf_is_nan(arb_midref(ball)) && mag_is_inf(arb_radref(ball)),
           "swiglu.clamped nothing is known of the constant %g", not_numbers[k]);
    }
    balls_clear(ball, decimal);
}

// ---- stages -------------------------------------------------------------------------------------

// (up + 1) g / (1 + e^(-alpha g)) by the same steps, or g e^(alpha g) / (1 + e^(alpha g)) where the
// gate's middle is below 0: the ball itself, radius and all.
static void activations(void) {
    static const double middles[] = {-3, -0.5, 0, 0.25, 2};
    arb_t a, g, e, expected;
    balls_init(a, g, e, expected);
    arb_ptr u = _arb_vec_init(2), y = _arb_vec_init(1);
    size_t wrong = 0;
    arb_set_str(a, "1.702", BITS);
    for (size_t k = 0; k < sizeof middles / sizeof *middles; k++) {
        arb_set_d(g, middles[k]);
        mag_set_ui_2exp_si(arb_radref(g), 1, -3);
        arb_set(u, g);
        arb_set_ui(u + 1, 2);
        sinkproof_truth_swiglu(y, u, 1, (sinkproof_swiglu_numbers){1.702, 7, 1}, BITS);
        bool negative = middles[k] < 0;
        arb_mul(e, a, g, BITS);
        if (!negative) arb_neg(e, e);
        arb_exp(e, e, BITS);
        arb_add_ui(expected, e, 1, BITS);
        if (negative)
            arb_div(expected, e, expected, BITS);
        else
            arb_inv(expected, expected, BITS);
        arb_mul(expected, expected, g, BITS);
        arb_mul_ui(expected, expected, 3, BITS);
        wrong += !arb_equal(y, expected);
    }
    ok(wrong == 0, "swiglu.clamped balls around %zu gates, radius and all: worst=%zu bound=0",
       sizeof middles / sizeof *middles, wrong);
    balls_clear(a, g, e, expected);
    _arb_vec_clear(u, 2);
    _arb_vec_clear(y, 1);
}

// A limit of several digits, beyond it on every side, in balls and in MPFR.
static void limits(void) {
    static const double u_2i[][2] = {{100, 100}, {100, -100}, {-2, 12.25}, {12.25, -12.25}};
    arb_ptr u = _arb_vec_init(2), y = _arb_vec_init(1);
    mpfr_ptr mu = truth_mpfr_vector(2, BITS), my = truth_mpfr_vector(1, BITS);
    size_t wrong = 0;
    for (size_t k = 0; k < sizeof u_2i / sizeof *u_2i; k++) {
        for (size_t i = 0; i < 2; i++)
            arb_set_d(u + i, u_2i[k][i]), mpfr_set_d(mu + i, u_2i[k][i], MPFR_RNDN);
        sinkproof_truth_swiglu(y, u, 1, (sinkproof_swiglu_numbers){1.702, 12.125, 1}, BITS);
        truth_mpfr_swiglu(my, mu, 1, (sinkproof_swiglu_numbers){1.702, 12.125, 1}, BITS);
        double g = fmin(u_2i[k][0], 12.125), up = fmax(fmin(u_2i[k][1], 12.125), -12.125);
        double stated = (up + 1) * g / (1 + exp(-1.702 * g)), found = mpfr_get_d(my, MPFR_RNDN);
        // Ten roundings of binary64 and the error of exp, below 2^-48 together.
        wrong += !(fabs(found - stated) <= 0x1p-48 * fabs(stated));
        wrong += !(sinkproof_truth_distance(y, stated) <= 0x1p-48 * fabs(stated));
    }
    ok(wrong == 0, "swiglu.clamped limits of 12.125 in balls and MPFR: worst=%zu bound=0", wrong);
    _arb_vec_clear(u, 2);
    _arb_vec_clear(y, 1);
    truth_mpfr_vector_free(mu, 2);
    truth_mpfr_vector_free(my, 1);
}

// Features are written over what stood there; elu(x) + 1 across 0 is x + 1.
static void features(void) {
    enum { DIM = 3 };
    static const double w1[DIM * DIM] = {1, -2, 0, 0, 1, 1, 2, 0, -1};
    static const double w2[DIM * DIM] = {1, 1, 1, -1, 0, 2, 0, 3, 1};
    static const slong x[DIM] = {3, 1, -2}, stated[DIM] = {9, 15, 8};
    sinkproof_variant_head head = {.dim = DIM, .mlp_1_dd = w1, .mlp_2_dd = w2};
    sinkproof_variant variant = {.feature = SINKPROOF_FEATURE_MLP};
    arb_ptr in = _arb_vec_init(DIM), out = _arb_vec_init(DIM);
    size_t wrong = 0;
    for (size_t d = 0; d < DIM; d++) arb_set_si(in + d, x[d]), arb_set_ui(out + d, 5);
    truth_variant_feature(out, &variant, &head, in, BITS);
    for (size_t d = 0; d < DIM; d++) wrong += !arb_equal_si(out + d, stated[d]);
    ok(wrong == 0, "kernel.mlp W2 relu(W1 x), whatever stood there: worst=%zu bound=0", wrong);
    variant.feature = SINKPROOF_FEATURE_ELU_PLUS_ONE;
    wrong = 0;
    arb_set_d(in, -0.25), arb_set_ui(in + 1, 0), arb_set_d(in + 2, -0.5);
    for (size_t d = 0; d < DIM; d++) mag_set_ui_2exp_si(arb_radref(in + d), 1, -2);
    truth_variant_feature(out, &variant, &head, in, BITS);
    for (size_t d = 0; d < 2; d++) arb_add_ui(in + d, in + d, 1, BITS);
    arb_exp(in + 2, in + 2, BITS);
    for (size_t d = 0; d < DIM; d++) wrong += !arb_equal(out + d, in + d);
    ok(wrong == 0, "kernel.elu-linear balls across 0 and below: worst=%zu bound=0", wrong);
    _arb_vec_clear(in, DIM);
    _arb_vec_clear(out, DIM);
}

// Experts of many columns and few rows; what follows the numbers of a certificate is not read.
static void ends(void) {
    enum { COLS = 4096, ROWS = 2 };
    static uint16_t w_erc[2 * ROWS * COLS]; // BF16: expert 1 has rows of 1 and of -2
    arb_ptr x = _arb_vec_init(COLS), y = _arb_vec_init(ROWS);
    const size_t chosen = 1;
    for (size_t c = 0; c < COLS; c++) {
        w_erc[ROWS * COLS + c] = 0x3f80, w_erc[ROWS * COLS + COLS + c] = 0xc000;
        arb_set_ui(x + c, 1 + c % 2);
    }
    sinkproof_matrix w = {.dtype = SINKPROOF_DTYPE_BF16, .count = 2, .rows = ROWS, .cols = COLS};
    w.data = (const uint8_t *)w_erc, w.stack_stride = ROWS * COLS;
    w.row_stride = COLS, w.col_stride = 1;
    truth_expert_linear(y, x, false, 1, &chosen, 1, &w, BITS, 1);
    ok(arb_equal_si(y, 3 * COLS / 2) && arb_equal_si(y + 1, -3 * COLS),
       "moe.sum an expert of %d columns and %d rows, exactly", COLS, ROWS);
    _arb_vec_clear(x, COLS);
    _arb_vec_clear(y, ROWS);
    const double a[4] = {1, 2, 3, NAN}, b[4] = {4, 5, 6, INFINITY};
    double value;
    bool certified = sinkproof_dot_certified(3, a, b, &value);
    ok(certified && value == 32, "bound.dot-exact what follows the numbers is not read: %g", value);
}

// Where no score may be above 0, no number of what makes one keeps its sign.
static void signs(void) {
    static edge_side from, to;
    const sinkproof_edge *edge = NULL;
    for (size_t k = 0; sinkproof_edge_at(k) != NULL; k++)
        if (strcmp(sinkproof_edge_at(k)->when, "no score is above 0") == 0)
            edge = sinkproof_edge_at(k);
    edge_side *const sides[] = {&from, &to};
    size_t wrong = edge == NULL;
    enum { WEIGHTS = SINKPROOF_EDGE_HIDDEN * SINKPROOF_EDGE_DIM };
    enum { INPUTS = SINKPROOF_EDGE_N * SINKPROOF_EDGE_HIDDEN };
    for (size_t s = 0; s < 2; s++) {
        sinkproof_drawn_head *head = &sides[s]->head;
        for (size_t c = 0; c < INPUTS; c++) head->x_nc[c] = -1;
        for (size_t w = 0; w < WEIGHTS; w++) head->wq_cd[w] = head->wk_cd[w] = -2;
    }
    if (edge != NULL) edge->set(&from, &to);
    for (size_t s = 0; s < 2; s++) {
        const sinkproof_drawn_head *head = &sides[s]->head;
        for (size_t c = 0; c < INPUTS; c++) wrong += head->x_nc[c] != 1;
        for (size_t w = 0; w < WEIGHTS; w++) wrong += head->wq_cd[w] != 2 || head->wk_cd[w] != -2;
    }
    ok(wrong == 0, "lattice.edges no score is above 0: of %d numbers worst=%zu bound=0",
       2 * (INPUTS + 2 * WEIGHTS), wrong);
}

int main(void) {
    requests();
    selections();
    margins();
    constants();
    activations();
    limits();
    features();
    ends();
    signs();
    flint_cleanup();
    mpfr_free_cache();
    return tap_done();
}
