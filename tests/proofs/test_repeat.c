// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One repeated token: closed forms against the stage's rows, for every number of keys up to 4096,
// at 128 bits; the bound of rotary positions on every row; the figures that were published for 64
// tokens and other lengths; and a model's own states, which are equal without a sink and differ
// with each kind of sink.
#include "proofs/bounds/worst.h"
#include "proofs/truth/forward.h"
#include "proofs/truth/repeat.h"
#include "tests/shared/only.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <string.h>

enum { N = 4096, BITS = 128, PAIRS = 4, CHANNELS = 2 * PAIRS };
static const double unit = 0x1p-127; // of one operation: 2^(1 - bits)

static void slope_of(arb_t slope, int k) { // 2^-k
    arb_one(slope);
    arb_mul_2exp_si(slope, slope, -k);
}

// What t additions, T = |largest argument| and a quotient move (proofs/truth/identities.h).
static double allowed(double largest, size_t t) {
    return 1.01 * (4 * largest + 3 * (double)t + 32) * unit;
}
static double relative(const arb_t ball) {
    return exp2(sinkproof_truth_relative_log2(ball));
}

// ---- closed forms, every row ------------------------------------------------------------

typedef struct agreement {
    size_t rows, apart;
    double share; // the largest radius / allowed
} agreement;

static void agree(agreement *a, const arb_t left, const arb_t right, double bound) {
    double share = sinkproof_keep_worst(relative(left), relative(right)) / bound;
    a->rows++;
    a->apart += !(arb_overlaps(left, right) && share <= 1);
    a->share = sinkproof_keep_worst(a->share, share);
}

static void closed_forms(void) {
    arb_ptr g = _arb_vec_init(N), a = _arb_vec_init(N);
    arb_t closed, slope;
    balls_init(closed, slope);
    agreement even = {0}, alibi = {0}, mean = {0};
    repeat_first(a, g, N, BITS); // g = 0
    for (size_t t = 1; t <= N; t++) {
        arb_one(closed);
        arb_div_ui(closed, closed, t, BITS);
        agree(&even, a + t - 1, closed, allowed(0, t));
    }
    for (size_t t = 1; t <= N; t = 3 * t + 1) {
        repeat_mean(closed, a, t, BITS);
        repeat_even_mean(slope, t, BITS);
        agree(&mean, closed, slope, allowed(0, 2 * t));
    }
    ok(even.rows == N && even.apart == 0 && mean.apart == 0 && mean.rows == 8,
       "repeat.nope A_t1 = 1/t and alpha_1 = H_t/t bits=%d rows=%zu apart=%zu worst=%.3g bound=1",
       BITS, even.rows, even.apart + mean.apart, sinkproof_keep_worst(even.share, mean.share));
    for (int k = 1; k <= 8; k++) {
        slope_of(slope, k);
        repeat_alibi(g, N, slope, BITS);
        repeat_first(a, g, N, BITS);
        for (size_t t = 1; t <= N; t++) {
            repeat_alibi_closed(closed, t, slope, BITS);
            agree(&alibi, a + t - 1, closed, allowed(ldexp((double)t, -k), t));
        }
    }
    ok(alibi.rows == 8 * N && alibi.apart == 0,
       "repeat.alibi slopes 2^-1 ... 2^-8 bits=%d rows=%zu apart=%zu worst=%.3g bound=1", BITS,
       alibi.rows, alibi.apart, alibi.share);
    balls_clear(closed, slope);
    _arb_vec_clear(g, N);
    _arb_vec_clear(a, N);
}

// ---- the same by whole rows of the stage ------------------------------------------------

// Row t by the truth of the stage: all its scores, no sink. The first key's weight.
static void first_of_row(arb_t first, arb_srcptr g_d, size_t t) {
    arb_ptr z = _arb_vec_init((slong)t), w = _arb_vec_init((slong)t + 1);
    arb_t none;
    arb_init(none);
    arb_neg_inf(none);
    for (size_t j = 0; j < t; j++) arb_add_ui(z + j, g_d + t - 1 - j, 3, BITS); // content 3
    sinkproof_truth_softmax_sink(w, w + t, z, t, none, BITS);
    arb_set(first, w);
    arb_clear(none);
    _arb_vec_clear(z, (slong)t);
    _arb_vec_clear(w, (slong)t + 1);
}

// A query and a key with entries a/8, |a| <= 8, by a rule; base 10000.
static void vectors(arb_ptr q, arb_ptr k, int which) {
    for (int c = 0; c < CHANNELS; c++) {
        arb_set_si(q + c, (5 * c + 3 * which + 2) % 17 - 8);
        arb_set_si(k + c, which == 0 ? (5 * c + 2) % 17 - 8 : (7 * c + 4 * which) % 17 - 8);
        arb_mul_2exp_si(q + c, q + c, -3);
        arb_mul_2exp_si(k + c, k + c, -3);
    }
}

static void whole_rows(void) {
    static const size_t rows[] = {1, 2, 3, 5, 16, 17, 33, 64, 127, 256, 513, 1024, 2047, 4096};
    static const char *const ids[] = {"repeat.relative T5's buckets", "repeat.relative buckets / 8",
                                      "repeat.rope"};
    arb_ptr g = _arb_vec_init(N), a = _arb_vec_init(N), q = _arb_vec_init(2 * CHANNELS);
    arb_t first;
    arb_init(first);
    for (int kind = 0; kind < 3; kind++) {
        agreement all = {0};
        repeat_buckets(g, N, 32, 128);
        for (size_t d = 0; kind == 1 && d < N; d++) arb_mul_2exp_si(g + d, g + d, -3);
        vectors(q, q + CHANNELS, 1);
        if (kind == 2) repeat_rotary(g, N, PAIRS, q, q + CHANNELS, 10000, BITS);
        repeat_first(a, g, N, BITS);
        double radius = 0; // of a score, and so of its exponential and of a sum of those
        for (size_t d = 0; d < N; d++)
            radius = sinkproof_keep_worst(radius, exp2(sinkproof_truth_radius_log2(g + d)));
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
            first_of_row(first, g, rows[r]);
            agree(&all, a + rows[r] - 1, first, allowed(34, rows[r]) + 2 * radius);
        }
        ok(all.rows == 14 && all.apart == 0,
           "%s rows of the stage and one pass over distances bits=%d rows=%zu apart=%zu "
           "worst=%.3g bound=1",
           ids[kind], BITS, all.rows, all.apart, all.share);
    }
    arb_clear(first);
    _arb_vec_clear(g, N);
    _arb_vec_clear(a, N);
    _arb_vec_clear(q, 2 * CHANNELS);
}

// half + floor(half log(d / half) / log(far / half)), enclosed; whole numbers where it is exact.
static void buckets(void) {
    size_t wrong = 0, unsure = 0, logarithmic = 0;
    arb_t x, y;
    fmpz_t k;
    balls_init(x, y);
    fmpz_init(k);
    for (size_t d = 0; d <= N; d++) {
        size_t bucket = repeat_t5_bucket(d, 32, 128);
        if (d < 16 || d == 16 || d >= 128) {
            wrong += bucket != (d <= 16 ? d : 31);
            continue;
        }
        arb_log_ui(x, d, BITS);
        arb_log_ui(y, 16, BITS);
        arb_sub(x, x, y, BITS);
        arb_log_ui(y, 8, BITS);
        arb_div(x, x, y, BITS);
        arb_mul_2exp_si(x, x, 4);
        arb_floor(x, x, BITS);
        unsure += !arb_get_unique_fmpz(k, x);
        wrong += bucket != 16 + fmpz_get_ui(k);
        logarithmic++;
    }
    ok(wrong == 0 && unsure == 0 && logarithmic == 111,
       "repeat.relative T5's buckets by whole numbers and by logarithms wrong=%zu of %d", wrong,
       N + 1);
    // 8 buckets up to 64: 4 16^(k/4), so that 16 is where the sixth begins, exactly.
    size_t ends[] = {repeat_t5_bucket(15, 8, 64), repeat_t5_bucket(16, 8, 64)};
    ok(ends[0] == 5 && ends[1] == 6, "repeat.relative a bucket begins at a whole number: %zu, %zu",
       ends[0], ends[1]);
    balls_clear(x, y);
    fmpz_clear(k);
}

// ---- what rotary positions allow ---------------------------------------------------------

static void rotary_bound(void) {
    arb_ptr g = _arb_vec_init(N), a = _arb_vec_init(N), bound = _arb_vec_init(N);
    arb_ptr least = _arb_vec_init(N), q = _arb_vec_init(2 * CHANNELS), k = q + CHANNELS;
    arb_t xi;
    arb_init(xi);
    size_t outside = 0, rows = 0;
    double nearest = 0;
    for (int which = 0; which < 3; which++) {
        vectors(q, k, which);
        if (which == 0) _arb_vec_neg(k, q, CHANNELS); // the key against the query
        repeat_rotary(g, N, PAIRS, q, k, 10000, BITS);
        repeat_first(a, g, N, BITS);
        repeat_xi(xi, q, k, CHANNELS, BITS);
        repeat_bound(bound, N, xi, BITS);
        arb_neg(xi, xi);
        repeat_bound(least, N, xi, BITS);
        if (which == 0)
            ok(arb_overlaps(xi, g) && relative(xi) <= allowed(0, CHANNELS),
               "repeat.rope the score of k = -q at distance 0 is -xi");
        for (size_t t = 1; t <= N; t++, rows++) {
            bool inside =
                t == 1 ? arb_contains_si(a, 1)
                       : arb_lt(a + t - 1, bound + t - 1) && arb_lt(least + t - 1, a + t - 1);
            outside += !inside;
            if (t < 2) continue;
            arb_div(xi, a + t - 1, bound + t - 1, BITS);
            nearest = sinkproof_keep_worst(nearest, arf_get_d(arb_midref(xi), ARF_RND_UP));
        }
    }
    ok(outside == 0 && rows == 3 * N,
       "repeat.rope within e^(+-2xi) / (e^(+-2xi) + t - 1) rows=%zu outside=%zu worst=%.3g bound=1",
       rows, outside, nearest);
    arb_clear(xi);
    _arb_vec_clear(g, N);
    _arb_vec_clear(a, N);
    _arb_vec_clear(bound, N);
    _arb_vec_clear(least, N);
    _arb_vec_clear(q, 2 * CHANNELS);
}

// ---- published figures ------------------------------------------------------------------

// Whether every number of the ball rounds to the printed one, of so many digits after the point.
static bool rounds_to(const arb_t ball, double printed, ulong digits) {
    arb_t half, apart;
    balls_init(half, apart);
    arb_set_ui(half, 10);
    arb_pow_ui(half, half, digits, BITS);
    arb_mul_2exp_si(half, half, 1);
    arb_inv(half, half, BITS);
    sinkproof_truth_decimal(apart, printed, BITS);
    arb_sub(apart, ball, apart, BITS);
    arb_abs(apart, apart);
    bool rounds = arb_lt(apart, half);
    balls_clear(half, apart);
    return rounds;
}

static void published(void) {
    static const struct {
        char kind; // even, alibi (slope 2^-p), buckets, bound (xi = p / 4)
        int p;
        size_t tokens;
        double printed;
        ulong digits;
    } table[] = {
        {'e', 0, 8, 0.3397, 4},  {'e', 0, 9, 0.3143, 4},   {'e', 0, 10, 0.2929, 4},
        {'e', 0, 64, 0.0741, 4}, {'a', 1, 64, 0.0283, 4},  {'a', 8, 64, 0.0724, 4},
        {'b', 0, 17, 0.6626, 4}, {'b', 0, 32, 0.4973, 4},  {'b', 0, 64, 0.334, 3},
        {'b', 0, 128, 0.211, 3}, {'b', 0, 256, 0.1129, 4}, {'x', 1, 64, 0.103, 3},
        {'x', 2, 64, 0.144, 3},  {'x', 4, 64, 0.269, 3},   {'x', 8, 64, 0.666, 3},
        {'x', 12, 64, 0.929, 3}, {'x', 20, 64, 0.9986, 4},
    };
    static const char *const ids[] = {"repeat.nope", "repeat.alibi", "repeat.relative",
                                      "repeat.rope"};
    arb_ptr g = _arb_vec_init(256), a = _arb_vec_init(256);
    arb_t x;
    arb_init(x);
    for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
        _arb_vec_zero(g, 256);
        slope_of(x, table[k].kind == 'x' ? 2 : table[k].p);
        if (table[k].kind == 'x') arb_mul_ui(x, x, (ulong)table[k].p, BITS);
        if (table[k].kind == 'a') repeat_alibi(g, 256, x, BITS);
        if (table[k].kind == 'b') repeat_buckets(g, 256, 32, 128);
        repeat_first(a, g, 256, BITS);
        if (table[k].kind == 'x') repeat_bound(a, 256, x, BITS);
        repeat_mean(x, a, table[k].tokens, BITS);
        double middle = arf_get_d(arb_midref(x), ARF_RND_NEAR);
        ok(rounds_to(x, table[k].printed, table[k].digits),
           "%s alpha_1 at T=%zu, %c%d: enclosed %.6f, published %g",
           ids[strchr("eabx", table[k].kind) - "eabx"], table[k].tokens, table[k].kind, table[k].p,
           middle, table[k].printed);
    }
    arb_clear(x);
    _arb_vec_clear(g, 256);
    _arb_vec_clear(a, 256);
}

// Even weights pass the threshold 3/10 in short sequences alone.
static void short_rows(void) {
    arb_t mean, threshold;
    balls_init(mean, threshold);
    arb_set_ui(threshold, 3);
    arb_div_ui(threshold, threshold, 10, BITS);
    size_t wrong = 0;
    for (size_t n = 1; n <= 64; n++) {
        repeat_even_mean(mean, n, BITS);
        wrong += !(n <= 9 ? arb_gt(mean, threshold) : arb_lt(mean, threshold));
    }
    ok(wrong == 0, "repeat.nope H_T/T passes 0.3 for T <= 9 and no longer T, of 64: wrong=%zu",
       wrong);
    balls_clear(mean, threshold);
}

// ---- a model's own states -----------------------------------------------------------------

enum { TOKENS = 5, LAYERS = 2, HIDDEN = 96 };

typedef struct states {
    size_t points;
    bool equal[LAYERS];      // M12: every row overlaps the first
    bool apart[LAYERS];      // every row but the first is disjoint from the row before
    double radius, distance; // the largest radius; the largest distance of two rows
    arb_ptr q, k;            // A4, layer 0: the first query and key of each head, [heads, d']
    size_t above;            // weights of the first key that are above their bound
    double share;            // the largest weight / bound
} states;

static void compare_rows(states *s, size_t layer, size_t width, arb_srcptr x) {
    arb_t t;
    arb_init(t);
    for (size_t i = 1; i < TOKENS; i++) {
        bool disjoint = false;
        for (size_t c = 0; c < width; c++) {
            s->equal[layer] = s->equal[layer] && arb_overlaps(x + i * width + c, x + c);
            disjoint |= !arb_overlaps(x + i * width + c, x + (i - 1) * width + c);
            s->radius = sinkproof_keep_worst(s->radius,
                                             exp2(sinkproof_truth_radius_log2(x + i * width + c)));
            arb_sub(t, x + i * width + c, x + c, BITS);
            s->distance =
                sinkproof_keep_worst(s->distance, fabs(arf_get_d(arb_midref(t), ARF_RND_UP)));
        }
        s->apart[layer] = s->apart[layer] && disjoint;
    }
    arb_clear(t);
}

// The first key's weight on each row against the bound from the lengths of q and k.
static void compare_weights(states *s, size_t heads, size_t keys, arb_srcptr a9, size_t kv_heads,
                            size_t dim) {
    arb_ptr bound = _arb_vec_init(TOKENS);
    arb_t xi;
    arb_init(xi);
    for (size_t h = 0; h < heads; h++) {
        repeat_xi(xi, s->q + h * dim, s->k + h / (heads / kv_heads) * dim, dim, BITS);
        repeat_bound(bound, TOKENS, xi, BITS);
        for (size_t t = 1; t < TOKENS; t++) {
            arb_srcptr a = a9 + (h * TOKENS + t) * keys;
            s->above += !arb_lt(a, bound + t);
            arb_div(xi, a, bound + t, BITS);
            s->share = sinkproof_keep_worst(s->share, arf_get_d(arb_midref(xi), ARF_RND_UP));
        }
    }
    arb_clear(xi);
    _arb_vec_clear(bound, TOKENS);
}

static void see(void *context, const sinkproof_truth_place *place, arb_srcptr values) {
    states *s = context;
    if (strcmp(place->point, "M12") == 0) {
        compare_rows(s, place->layer, place->shape[1], values);
        s->points++;
    }
    if (place->layer > 0) return;
    size_t width = place->rank == 3 ? place->shape[1] * place->shape[2] : 0;
    if (strcmp(place->point, "A4.q") == 0) _arb_vec_set(s->q, values, (slong)width);
    if (strcmp(place->point, "A4.k") == 0) _arb_vec_set(s->k, values, (slong)width);
    if (strcmp(place->point, "A9") == 0)
        compare_weights(s, place->shape[0], place->shape[2], values, 2, 16);
}

static states walk(const char *spec) {
    states s = {.q = _arb_vec_init(160), .k = _arb_vec_init(32)};
    for (size_t l = 0; l < LAYERS; l++) s.equal[l] = s.apart[l] = true;
    sinkproof_model *model = NULL;
    sinkproof_error error = {""};
    int32_t tokens_n[TOKENS] = {7, 7, 7, 7, 7};
    sinkproof_truth_hooks hooks = {.see = see, .context = &s};
    sinkproof_truth_result result;
    if (!sinkproof_model_open(spec, &model, &error)) {
        note("%s", error.text);
        return s;
    }
    sinkproof_truth_request request = {.model = model,
                                       .n = TOKENS,
                                       .tokens_n = tokens_n,
                                       .bits = BITS,
                                       .last_logits = true,
                                       .hooks = &hooks};
    if (sinkproof_truth_forward(&request, &result, &error))
        sinkproof_truth_result_clear(&result);
    else
        note("%s", error.text);
    sinkproof_model_close(model);
    _arb_vec_clear(s.q, 160);
    _arb_vec_clear(s.k, 32);
    return s;
}

// YaRN's rotary positions on every layer: equal states without a sink, other ones with each kind.
static void a_model(void) {
    static const char *const kinds[] = {"logit", "off-by-one", "key"};
    states none = walk("synthetic:tiny,layers=2,sink=none");
    ok(none.points == LAYERS && none.equal[0] && none.equal[1] && none.radius > 0,
       "repeat.lemma tiny without a sink: %d equal tokens, equal states after %d layers, "
       "radius=2^%.0f",
       TOKENS, LAYERS, log2(none.radius));
    ok(none.points == LAYERS && none.above == 0 && none.share > 0,
       "repeat.rope tiny without a sink: A_t1 below the bound of its own q and k, above=%zu "
       "worst=%.3g bound=1",
       none.above, none.share);
    for (size_t k = 0; k < 3; k++) {
        char spec[64];
        snprintf(spec, sizeof spec, "synthetic:tiny,layers=2,sink=%s", kinds[k]);
        states s = walk(spec);
        ok(s.points == LAYERS && s.apart[0] && s.apart[1] && s.distance > none.radius,
           "repeat.lemma tiny with sinks of the kind %s: no row's state is that of the row before, "
           "in no layer; up to %.3g apart",
           kinds[k], s.distance);
    }
}

int main(int argc, char **argv) {
    (void)argc;
    only_ids = argv + 1;
    if (is_asked("repeat.nope") || is_asked("repeat.alibi")) closed_forms();
    if (is_asked("repeat.relative") || is_asked("repeat.rope")) whole_rows();
    if (is_asked("repeat.relative")) buckets();
    if (is_asked("repeat.rope")) rotary_bound();
    if (is_asked("repeat.nope")) short_rows();
    published();
    if (is_asked("repeat.lemma") || is_asked("repeat.rope")) a_model();
    flint_cleanup();
    mpfr_free_cache();
    return tap_done();
}
