// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Roundings at other places, and functions with another error. A float32 engine rounds a norm
// before its weight (bound.norm-rounded) or exponentials before they are multiplied by the values
// (bound.unnormalised), has an exponential whose error grows with its argument (bound.exp-growing),
// computes angles by a running product (bound.form-running-angle), or applies the concentration
// first (bound.form-scaled-first). It is inside the set of a policy that allows this, in every
// order of its sums, and outside the set of the same policy without it. A mistake that resembles it
// is outside both.
#include "proofs/bounds/worst.h"
#include "ref/stages.h"
#include "tests/shared/bounds_engine.h"

static const uint64_t SEED = 20261122;
enum { MOST = 512 };

// `own`: inside the set of the policy that says what the engine does. `without`: how many leave the
// set of the policy that does not; `slip`: how many of a mistake leave the first.
static void told(const char *id, const char *what, const tally *own, const tally *without,
                 const tally *slip) {
    inside_ok(own, id, what);
    ok(without->outside > 0 && own->unlikely == 0,
       "%s %s: unlikely=%zu with it, outside=%zu of=%zu without", id, what, own->unlikely,
       without->outside, without->checked);
    ok(slip->outside > 0, "%s %s: a mistake is outside=%zu of=%zu with it", id, what, slip->outside,
       slip->checked);
}

static float narrow(sinkproof_format format, float x) {
    return (float)sinkproof_round(format, x);
}

// ---- a norm rounded before its weight
// ------------------------------------------------------------

typedef struct norm_engine {
    summation order;
    bool fused, divided;
    leaning lean;
    sinkproof_format before;
    bool twice_elsewhere; // the mistake: the weight's product with the input is rounded instead
} norm_engine;

static void norm(uint64_t *state, const norm_engine *e, size_t d, const float *x, const float *w,
                 float *y) {
    float square = engine_dot(state, e->order, e->fused, d, x, x, NULL, false) / (float)d + 1e-5f;
    float root = within_ulps(state, 1 / sqrt((double)square), 2, e->lean);
    for (size_t c = 0; c < d; c++) {
        float normed = e->divided ? x[c] / sqrtf(square) : x[c] * root;
        y[c] = e->twice_elsewhere ? narrow(e->before, x[c] * w[c]) * root
                                  : narrow(e->before, normed) * w[c];
    }
}

static void norm_set(const char *policy_name, size_t d, const float *x, const double *w,
                     sinkproof_honest *y_d) {
    static sinkproof_honest x_d[MOST];
    sinkproof_policy policy = policy_named(policy_name);
    sinkproof_setting s = sinkproof_setting_for(&policy, d, STANDARD_RATE);
    double common;
    for (size_t c = 0; c < d; c++) x_d[c] = sinkproof_exact_set(x[c]);
    sinkproof_honest_rmsnorm(&s, AT_M1, &(sinkproof_norm){d, w, 1e-5}, x_d, y_d, &common);
}

// `before` is where the engine rounds, `says` what the policy says of it.
static void norms(const char *base, sinkproof_format before, const char *says) {
    static float x[MOST], w[MOST], y[MOST];
    static double scale[MOST];
    static sinkproof_honest own_d[MOST], without_d[MOST];
    char with[80], alone[80], what[120];
    snprintf(with, sizeof with, "%s,M1.norm=%s", base, says);
    snprintf(alone, sizeof alone, "%s,M1.norm=real", base);
    sinkproof_format stored = policy_named(base).at[AT_M1].format;
    uint64_t state = SEED;
    tally own = {0}, without = {0}, slip = {0};
    for (size_t row = 0; row < 400; row++) {
        size_t d = row % 2 ? MOST : 33;
        for (size_t c = 0; c < d; c++) {
            x[c] = (float)draw_from(&state, stored, row % 5 ? 1 : 1e-3);
            w[c] = (float)draw_from(&state, SINKPROOF_BF16, 1);
            scale[c] = w[c];
        }
        norm_set(with, d, x, scale, own_d), norm_set(alone, d, x, scale, without_d);
        norm_engine e = {(summation)(row % ORDERS),  row >> 3 & 1, row >> 4 & 1,
                         (leaning)(row / 3 % LEANS), before,       false};
        norm(&state, &e, d, x, w, y);
        for (size_t c = 0; c < d; c++) meet(&own, &own_d[c], narrow(stored, y[c]));
        for (size_t c = 0; c < d; c++) meet(&without, &without_d[c], narrow(stored, y[c]));
        e.twice_elsewhere = true;
        norm(&state, &e, d, x, w, y);
        for (size_t c = 0; c < d; c++) meet(&slip, &own_d[c], narrow(stored, y[c]));
    }
    snprintf(what, sizeof what, "a norm, %s", with);
    if (before != SINKPROOF_REAL) {
        told("bound.norm-rounded", what, &own, &without, &slip);
    } else {
        snprintf(what, sizeof what, "a norm that keeps more, %s", with);
        inside_ok(&own, "bound.norm-rounded", what);
    }
}

// ---- an exponential whose error grows
// ------------------------------------------------------------

// e^x as 2^(x log2 e) with the product rounded to float32, and the constant with it; then 2^f
// within 2 ulp. `log2_e` of a mistake is a bfloat16 number.
static float exp_by_product(uint64_t *state, float x, float log2_e, leaning lean) {
    float y = x * log2_e, whole = floorf(y + 0.5f), part = y - whole;
    return ldexpf(within_ulps(state, exp2((double)part), x == 0 ? 0 : 2, lean), (int)whole);
}

typedef struct softmax_engine {
    summation order;
    leaning lean;
    float log2_e;
} softmax_engine;

static void softmax(uint64_t *state, const softmax_engine *e, size_t n, const float *z, float b,
                    float *alpha) {
    float m = b;
    for (size_t j = 0; j < n; j++) m = fmaxf(m, z[j]);
    for (size_t j = 0; j < n; j++) alpha[j] = exp_by_product(state, z[j] - m, e->log2_e, e->lean);
    alpha[n] = exp_by_product(state, b - m, e->log2_e, e->lean);
    float sum = engine_sum(state, e->order, n + 1, alpha);
    for (size_t j = 0; j <= n; j++) alpha[j] /= sum;
}

static void softmax_set(const char *policy_name, size_t n, const float *z, double b,
                        sinkproof_honest *a_j) {
    static sinkproof_honest z_j[MOST];
    sinkproof_policy policy = policy_named(policy_name);
    sinkproof_setting s = sinkproof_setting_for(&policy, n, STANDARD_RATE);
    double common;
    for (size_t j = 0; j < n; j++) z_j[j] = sinkproof_exact_set(z[j]);
    must(sinkproof_honest_softmax(&s, AT_A9, n, z_j, sinkproof_exact_set(b), a_j, &common));
}

static void meet_all(tally *t, size_t n, const sinkproof_honest *x, const float *v) {
    for (size_t i = 0; i < n; i++) meet(t, &x[i], v[i]);
}

static void growing_softmax(const char *forms) {
    static float z[MOST], alpha[MOST + 1];
    static sinkproof_honest own_j[MOST + 1], without_j[MOST + 1];
    char with[80], bare[80];
    uint64_t state = SEED + 1;
    tally own = {.floor = 0x1p-120}, without = own, slip = own;
    snprintf(with, sizeof with, "f32,A9.form=%s,exp=3ulp+0.62|x|", forms);
    snprintf(bare, sizeof bare, "f32,A9.form=%s,exp=0.5ulp", forms);
    for (size_t row = 0; row < 600; row++) {
        bool far = row % 2; // few keys, all far below the sink: x log2 e is just above 64
        size_t n = 1 + draw_below(&state, far ? 6 : MOST - 1);
        float b = far ? 0 : (float)(3 * draw_gauss(&state));
        for (size_t j = 0; j < n; j++)
            z[j] = far ? (float)(-44.4 - 4 * draw_unit(&state))
                       : (float)((row % 3 ? 3 : 40) * draw_gauss(&state) + (row % 7 ? 0 : 100));
        softmax_set(with, n, z, b, own_j), softmax_set(bare, n, z, b, without_j);
        softmax_engine e = {(summation)(row % ORDERS), (leaning)(row / 3 % LEANS), 1.44269502f};
        softmax(&state, &e, n, z, b, alpha);
        meet_all(&own, n + 1, own_j, alpha), meet_all(&without, n + 1, without_j, alpha);
        e.log2_e = 1.4423828f; // 3 e-4 of it off: binary16's nearest
        softmax(&state, &e, n, z, b, alpha);
        meet_all(&slip, n + 1, own_j, alpha);
    }
    if (strcmp(forms, "any") != 0) {
        told("bound.exp-growing", with, &own, &without, &slip);
    } else { // such wide sets hold it without
        inside_ok(&own, "bound.exp-growing", with);
        ok(slip.outside > 0, "bound.exp-growing %s: a mistake is outside=%zu of=%zu", with,
           slip.outside, slip.checked);
    }
}

// 3ulp + 0.62 |x|, an ulp being 2 u of the result, as policies count: 0.62 is (1 + 0.224) / 2, what
// the product and the constant lose, and a little.
static void product_roundings(void) {
    uint64_t state = SEED + 8;
    double worst = 0, at_60 = 0;
    for (size_t i = 0; i < 400000; i++) {
        float x = (float)(174 * draw_unit(&state) - 87);
        if (i % 4 == 0) x = (float)(-60 - draw_unit(&state));
        double e = exp((double)x), y = exp_by_product(&state, x, 1.44269502f, (leaning)(i % LEANS));
        double ulps = fabs(y / e - 1) * 0x1p23;
        worst = sinkproof_keep_worst(worst, ulps / (3 + 0.62 * fabs((double)x)));
        if (i % 4 == 0) at_60 = sinkproof_keep_worst(at_60, ulps);
    }
    ok(worst <= 1 && at_60 > 20,
       "bound.exp-growing 2^(x log2 e) with that product rounded: worst=%.3g bound=1, %.0f ulp "
       "near "
       "-60",
       worst, at_60);
}

// The same exponential in the activation.
static void growing_sigmoid(void) {
    sinkproof_policy with = policy_named("f32,M8.form=sigmoid,exp=3ulp+0.62|x|");
    sinkproof_policy bare = policy_named("f32,M8.form=sigmoid,exp=3ulp");
    sinkproof_setting s = sinkproof_setting_for(&with, 1, STANDARD_RATE), plain = s;
    sinkproof_config config;
    must(sinkproof_config_named("gpt-oss-20b", &config));
    plain.policy = &bare;
    uint64_t state = SEED + 2;
    tally own = {0}, without = {0}, slip = {0};
    for (size_t i = 0; i < 100000; i++) {
        float gate = (float)(-40 * draw_unit(&state) + (i % 2 ? 8 : 0)),
              up = (float)draw_gauss(&state);
        sinkproof_honest g = sinkproof_exact_set(gate), u = sinkproof_exact_set(up);
        sinkproof_honest set = sinkproof_honest_swiglu(&s, config.swiglu, g, u);
        sinkproof_honest narrower = sinkproof_honest_swiglu(&plain, config.swiglu, g, u);
        float clamped = fminf(gate, 7), t = 1.702f * clamped;
        leaning lean = (leaning)(i % LEANS);
        float sigmoid = 1 / (1 + exp_by_product(&state, -t, 1.44269502f, lean));
        float off = 1 / (1 + exp_by_product(&state, -t, 1.4423828f, lean));
        float one_up = fmaxf(fminf(up, 7), -7) + 1;
        meet(&own, &set, clamped * sigmoid * one_up);
        meet(&without, &narrower, clamped * sigmoid * one_up);
        meet(&slip, &set, clamped * off * one_up);
    }
    told("bound.exp-growing", "the activation", &own, &without, &slip);
}

// ---- angles by a running product
// -----------------------------------------------------------------

// theta_0 = n, theta_i = theta_(i-1) s, the ramp applied to each: in float32, as it is shipped. A
// mistake multiplies once too often.
static void running_angles(const sinkproof_config *c, float ratio, float position, bool mistake,
                           float *angle_p) {
    double low, high;
    sinkproof_yarn_range(c, true, &low, &high);
    float product = mistake ? position * ratio : position, slower = 1 / (float)c->rotation.factor;
    for (size_t p = 0; p < c->head_dim / 2; p++, product *= ratio) {
        float ramp = ((float)p - (float)low) / fmaxf(0.001f, (float)high - (float)low);
        float keep = 1 - fminf(1, fmaxf(0, ramp));
        angle_p[p] = slower * product * (1 - keep) + product * keep;
    }
}

static void table_set(const char *policy_name, const sinkproof_config *c, double position,
                      sinkproof_honest *c_p, sinkproof_honest *s_p) {
    sinkproof_policy policy = policy_named(policy_name);
    sinkproof_setting s = sinkproof_setting_for(&policy, c->head_dim, STANDARD_RATE);
    sinkproof_honest_rope_table(&s, c, position, c_p, s_p);
}

static void running_products(void) {
    enum { HALF = 32 };
    static sinkproof_honest c_p[HALF], s_p[HALF], bare_c[HALF], bare_s[HALF];
    float angle[HALF], wrong[HALF];
    sinkproof_config config;
    must(sinkproof_config_named("gpt-oss-20b", &config));
    float factor = (float)(0.1 * log(config.rotation.factor) + 1);
    uint64_t state = SEED + 3;
    tally own = {0}, without = {0}, slip = {0};
    for (size_t i = 0; i < 2000; i++) {
        float position = i < 4 ? (float)i : (float)draw_below(&state, i % 2 ? 300 : 131072);
        double power = pow(config.rotation.theta, -2.0 / (double)config.head_dim);
        float ratio = within_ulps(&state, power, 2, (leaning)(i % LEANS));
        table_set("f32,yarn=truncate,A4.freq.form=running-product", &config, position, c_p, s_p);
        table_set("f32,yarn=truncate", &config, position, bare_c, bare_s);
        running_angles(&config, ratio, position, false, angle);
        running_angles(&config, ratio, position, true, wrong);
        for (size_t p = 0; p < HALF; p++) {
            float cosine = cosf(angle[p]) * factor, sine = sinf(angle[p]) * factor;
            meet(&own, &c_p[p], cosine), meet(&own, &s_p[p], sine);
            meet(&without, &bare_c[p], cosine), meet(&without, &bare_s[p], sine);
            meet(&slip, &c_p[p], cosf(wrong[p]) * factor);
        }
    }
    told("bound.form-running-angle", "gpt-oss-20b to 131,072", &own, &without, &slip);
}

// |theta_i - n s^i| <= (((1 + e) (1 + u))^i - 1) n s^i, as the book states it, in long double.
static void running_formula(void) {
    uint64_t state = SEED + 4;
    long double worst = 0;
    for (size_t i = 0; i < 100000; i++) {
        float position = (float)(1 + draw_below(&state, 131072));
        double s = 0.05 + 0.94 * draw_unit(&state);
        float ratio = within_ulps(&state, s, 2, (leaning)(i % LEANS)), product = position;
        long double e = fabsl((long double)ratio / s - 1), grown = 1, exact = position;
        for (size_t p = 1; p < 32; p++) {
            product *= ratio, exact *= (long double)s, grown *= (1 + e) * (1 + 0x1p-24L);
            long double bound = (grown - 1) * exact;
            if (product < 0x1p-100f) break;
            worst = keep_worst_long(worst, fabsl(product - exact) / bound);
        }
    }
    ok(worst <= 1, "bound.form-running-angle the growth with the pair worst=%.3Lg bound=1", worst);
}

// ---- the concentration first
// ---------------------------------------------------------------------

typedef struct turn_engine {
    sinkproof_format scaled, table, product, stored;
    bool fused, twice; // twice: the mistake, in the table too
} turn_engine;

static void turn(const turn_engine *e, const sinkproof_config *c, double position, const float *x,
                 float *y) {
    size_t half = c->head_dim / 2;
    float factor = (float)(0.1 * log(c->rotation.factor) + 1);
    sinkproof_policy policy = policy_named("f32");
    double freq_p[64];
    sinkproof_yarn_frequencies(&policy, c, freq_p);
    for (size_t p = 0; p < half; p++) {
        float angle = (float)position * (float)freq_p[p], more = e->twice ? factor : 1;
        float cosine = narrow(e->table, cosf(angle) * more);
        float sine = narrow(e->table, sinf(angle) * more);
        float a = narrow(e->scaled, x[p] * factor), b = narrow(e->scaled, x[p + half] * factor);
        float ac = narrow(e->product, a * cosine), bs = narrow(e->product, b * sine);
        float bc = narrow(e->product, b * cosine), as = narrow(e->product, a * sine);
        bool fused = e->fused && e->product == SINKPROOF_F32;
        y[p] = narrow(e->stored, fused ? fmaf(a, cosine, -bs) : ac - bs);
        y[p + half] = narrow(e->stored, fused ? fmaf(b, cosine, as) : bc + as);
    }
}

static void turn_set(const char *policy_name, const sinkproof_config *c, double position,
                     const float *x, sinkproof_honest *y_d) {
    enum { HALF = 32 };
    static sinkproof_honest table[4][HALF], work[4 * HALF], x_d[2 * HALF];
    sinkproof_policy policy = policy_named(policy_name);
    sinkproof_setting s = sinkproof_setting_for(&policy, c->head_dim, STANDARD_RATE);
    sinkproof_turns turns = {0};
    if (sinkproof_policy_admits(&policy, SINKPROOF_FORM_OF_A4, SINKPROOF_FORM_DEFINITION)) {
        sinkproof_honest_rope_table(&s, c, position, table[0], table[1]);
        turns.c_p = table[0], turns.s_p = table[1];
    }
    if (sinkproof_policy_admits(&policy, SINKPROOF_FORM_OF_A4, SINKPROOF_A4_SCALED_FIRST)) {
        sinkproof_honest_rope_plain(&s, c, position, table[2], table[3]);
        turns.plain_c_p = table[2], turns.plain_s_p = table[3];
    }
    for (size_t d = 0; d < c->head_dim; d++) x_d[d] = sinkproof_exact_set(x[d]);
    sinkproof_honest_turn(&s, c, &turns, x_d, work, y_d);
}

static void scaled_first(const char *base, const char *more, turn_engine e) {
    enum { DIM = 64 };
    static sinkproof_honest own_d[DIM], both_d[DIM], without_d[DIM];
    float x[DIM], y[DIM];
    char with[120], both[120];
    sinkproof_config config;
    must(sinkproof_config_named("gpt-oss-20b", &config));
    uint64_t state = SEED + 5;
    tally own = {0}, any = {0}, without = {0}, slip = {0};
    snprintf(with, sizeof with, "%s%s,A4.form=scaled-first", base, more);
    snprintf(both, sizeof both, "%s%s,A4.form=any", base, more);
    for (size_t i = 0; i < 1500; i++) {
        double position = (double)draw_below(&state, i % 2 ? 200 : 131072);
        for (size_t d = 0; d < DIM; d++) x[d] = (float)draw_from(&state, e.stored, 2);
        turn_set(with, &config, position, x, own_d), turn_set(both, &config, position, x, both_d);
        turn_set(base, &config, position, x, without_d);
        e.fused = i % 3 == 0, e.twice = false;
        turn(&e, &config, position, x, y);
        meet_all(&own, DIM, own_d, y), meet_all(&any, DIM, both_d, y);
        meet_all(&without, DIM, without_d, y);
        e.twice = true;
        turn(&e, &config, position, x, y);
        meet_all(&slip, DIM, both_d, y);
    }
    inside_ok(&own, "bound.form-scaled-first", with);
    ok((without.outside > 0) == (e.stored == SINKPROOF_BF16) && slip.outside > 0,
       "bound.form-scaled-first %s: outside=%zu of=%zu without it (in float32 the definition's set "
       "has room), a mistake outside=%zu with both",
       base, without.outside, without.checked, slip.outside);
    inside_ok(&any, "bound.form-scaled-first", both);
}

// ---- exponentials rounded before they meet the values
// --------------------------------------------

typedef struct flash_engine {
    summation order;
    leaning lean;
    size_t block; // keys at a time; 0: the whole row, under its own maximum
    sinkproof_format kept;
    bool sink_last, no_sink; // no_sink: the mistake
} flash_engine;

static float exp_of(uint64_t *state, const flash_engine *e, float t) {
    return fmaxf(within_ulps(state, exp((double)t), t == 0 ? 0 : 2, e->lean), 0);
}

// o_d of one row: blocks of keys under a running maximum, the sink first or last, p rounded where
// it meets the values, the sum of p as it was.
static void flash(uint64_t *state, const flash_engine *e, size_t n, size_t d, const float *z,
                  float b, const float *v_dj, float *o_d) {
    static float p[MOST];
    float m = e->sink_last ? -INFINITY : b, sum = e->sink_last ? 0 : 1, top = b;
    for (size_t j = 0; j < n; j++) top = fmaxf(top, z[j]);
    if (e->block == 0) m = top, sum = exp_of(state, e, b - top);
    if (e->no_sink) sum = 0;
    for (size_t k = 0; k < d; k++) o_d[k] = 0;
    for (size_t first = 0, end; first < n; first = end) {
        end = e->block == 0 || first + e->block > n ? n : first + e->block;
        float next = m;
        for (size_t j = first; j < end; j++) next = fmaxf(next, z[j]);
        float factor = next == m ? 1 : m == -INFINITY ? 0 : exp_of(state, e, m - next);
        for (size_t j = first; j < end; j++) p[j - first] = exp_of(state, e, z[j] - next);
        sum = sum * factor + engine_sum(state, e->order, end - first, p);
        for (size_t j = 0; j < end - first; j++) p[j] = narrow(e->kept, p[j]);
        for (size_t k = 0; k < d; k++)
            o_d[k] = o_d[k] * factor + engine_dot(state, e->order, false, end - first, p,
                                                  v_dj + k * n + first, NULL, false);
        m = next;
    }
    if (e->sink_last && e->block > 0) {
        float last = fmaxf(m, b), factor = exp_of(state, e, m - last);
        sum = sum * factor + (e->no_sink ? 0 : exp_of(state, e, b - last));
        for (size_t k = 0; k < d; k++) o_d[k] *= factor;
    }
    for (size_t k = 0; k < d; k++) o_d[k] /= sum;
}

static void values_set(const char *policy_name, size_t n, size_t d, const float *z, double b,
                       const float *v_dj, sinkproof_honest *o_d) {
    static sinkproof_honest a_j[MOST + 1], v[4 * MOST];
    sinkproof_policy policy = policy_named(policy_name);
    sinkproof_setting s = sinkproof_setting_for(&policy, d, STANDARD_RATE);
    softmax_set(policy_name, n, z, b, a_j);
    for (size_t k = 0; k < n * d; k++) v[k] = sinkproof_exact_set(v_dj[k]);
    sinkproof_planes p = sinkproof_planes_new(a_j, 1, n, n), q = sinkproof_planes_new(v, d, n, n);
    must(sinkproof_honest_products(&s, &p, &q, NULL, NULL, o_d, d));
    sinkproof_planes_free(&p), sinkproof_planes_free(&q);
    sinkproof_honest_finish(&s, AT_A11, d, o_d);
}

static void unnormalised(const char *base, const char *freedom, bool blocks,
                         sinkproof_format kept) {
    enum { D = 4 };
    static float z[MOST], v[D * MOST];
    float o[D];
    sinkproof_honest own_d[D], without_d[D];
    char with[160];
    sinkproof_format stored = policy_named(base).at[AT_A11].format;
    uint64_t state = SEED + 6;
    tally own = {0}, without = {0}, slip = {0};
    snprintf(with, sizeof with, "%s,%s", base, freedom);
    for (size_t row = 0; row < 3000; row++) {
        size_t n = 1 + draw_below(&state, row % 2 ? 24 : MOST - 1);
        float b = narrow(SINKPROOF_BF16, (float)(3 * draw_gauss(&state)));
        for (size_t j = 0; j < n; j++) z[j] = (float)((row % 3 ? 2 : 12) * draw_gauss(&state));
        for (size_t k = 0; k < D * n; k++) v[k] = (float)draw_from(&state, SINKPROOF_BF16, 1);
        values_set(with, n, D, z, b, v, own_d), values_set(base, n, D, z, b, v, without_d);
        flash_engine e = {(summation)(row % ORDERS),
                          (leaning)(row / 3 % LEANS),
                          !blocks ? 0 : 1 + draw_below(&state, 64),
                          kept,
                          row >> 5 & 1,
                          false};
        flash(&state, &e, n, D, z, b, v, o);
        for (size_t k = 0; k < D; k++) {
            meet(&own, &own_d[k], narrow(stored, o[k]));
            meet(&without, &without_d[k], narrow(stored, o[k]));
        }
        e.no_sink = true;
        flash(&state, &e, n, D, z, b, v, o);
        for (size_t k = 0; k < D; k++) meet(&slip, &own_d[k], narrow(stored, o[k]));
    }
    told("bound.unnormalised", with, &own, &without, &slip);
}

int main(void) {
    norms("f32", SINKPROOF_BF16, "bf16");
    norms("bf16", SINKPROOF_BF16, "bf16");
    norms("bf16", SINKPROOF_BF16, "bf16?");
    norms("bf16", SINKPROOF_REAL, "bf16?");
    norms("f16", SINKPROOF_F16, "f16");
    product_roundings();
    growing_softmax("definition");
    growing_softmax("any");
    growing_sigmoid();
    running_products();
    running_formula();
    scaled_first(
        "f32", "",
        (turn_engine){SINKPROOF_F32, SINKPROOF_F32, SINKPROOF_F32, SINKPROOF_F32, false, false});
    scaled_first("openai-bf16", ",A4.scaled=bf16",
                 (turn_engine){SINKPROOF_BF16, SINKPROOF_BF16, SINKPROOF_BF16, SINKPROOF_BF16,
                               false, false});
    unnormalised("bf16,A9=real,A9.max=real,A9.unnorm=real,A9.form=definition", "A9.unnorm=bf16",
                 false, SINKPROOF_BF16);
    unnormalised("bf16,A9=real,A9.max=real,A9.unnorm=real,A9.form=running-max", "A9.unnorm=bf16",
                 true, SINKPROOF_BF16);
    unnormalised("f32,A9.form=running-max", "A9.unnorm=bf16", true, SINKPROOF_BF16);
    unnormalised("f32,A9.form=any", "A9.unnorm=f16", true, SINKPROOF_F16);
    return tap_done();
}
