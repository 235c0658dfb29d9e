// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Rows that are alike (stat.equal-rows): which rows the key calls alike; how often drift accuses
// honest tensors with repeated rows, and that it would accuse them without the classes; that rows
// which all differ are judged with the same power as before; that a tensor in blocks gives the same
// result; and honest engines on prompts that repeat one to four tokens.
#include "fast/lanes/lanes.h"
#include "proofs/bounds/worst.h"
#include "tests/shared/bounds_engine.h"
#include "tests/shared/judged.h"

static const uint64_t SEED = 20260214;

static bool suspicious(const sinkproof_drift_result *r) {
    return sinkproof_drift_leans(r) || sinkproof_drift_spreads(r);
}

// ---- the key
// --------------------------------------------------------------------------------------

enum { MOST_COLS = 384 };

static void some_row(uint64_t *state, size_t n, double outlier, sinkproof_honest *x) {
    for (size_t i = 0; i < n; i++)
        x[i] = sinkproof_exact_set(draw_gauss(state) * (i == n / 3 ? outlier : 1));
}

// A few honest float32 steps, or one bfloat16 step in every tenth element.
static void nearly(uint64_t *state, size_t n, bool steps, sinkproof_honest *x) {
    for (size_t i = 0; i < n; i++) {
        double c = x[i].mid, far = (2 * draw_unit(state) - 1) * 0x1p-22;
        if (steps) far = draw_below(state, 10) == 0 ? 0x1p-8 : 0;
        x[i] = sinkproof_exact_set(c * (1 + far));
    }
}

static int compare_keys(const void *p, const void *q) {
    uint64_t a = *(const uint64_t *)p, b = *(const uint64_t *)q;
    return a < b ? -1 : a > b;
}

static void other_rows(size_t n, double outlier) {
    enum { ROWS = 12000 };
    static uint64_t keys[ROWS];
    static sinkproof_honest x[MOST_COLS];
    uint64_t state = SEED + n;
    size_t alike = 0;
    for (int r = 0; r < ROWS; r++) some_row(&state, n, outlier, x), keys[r] = alike_row_key(n, x);
    qsort(keys, ROWS, sizeof *keys, compare_keys);
    for (int r = 1; r < ROWS; r++) alike += keys[r] == keys[r - 1];
    // pairs of rows, each alike with odds of 2^-32 or less: 0.02 are expected
    ok(alike <= 2,
       "stat.equal-rows %zu elements, one of %g: other rows taken as alike worst=%zu "
       "bound=2 of=%d",
       n, outlier, alike, ROWS);
}

static void near_rows(size_t n, bool steps, size_t most) {
    enum { ROWS = 2000 };
    static sinkproof_honest x[MOST_COLS];
    uint64_t state = SEED + 1;
    size_t missed = 0;
    for (int r = 0; r < ROWS; r++) {
        some_row(&state, n, 1, x);
        uint64_t key = alike_row_key(n, x);
        nearly(&state, n, steps, x);
        missed += alike_row_key(n, x) != key;
    }
    ok(missed <= most,
       "stat.equal-rows %zu elements, %s: not seen as alike worst=%zu bound=%zu of=%d", n,
       steps ? "a tenth one bfloat16 step off" : "some float32 steps off", missed, most, ROWS);
}

// ---- tensors
// --------------------------------------------------------------------------------------

enum { ROWS = 120, COLS = 64 };

// Rows of `tokens` kinds (0: all differ), errors uniform with the stated variance and the same in
// rows of one kind, up to some steps; `shares` gives rows a common error too.
typedef struct tensor {
    size_t kinds;
    bool shares, hides; // hides: the rows' likeness, as if nobody looked
    double factor;
} tensor;

static void fill_row(uint64_t *state, const tensor *t, sinkproof_honest *x, double *v,
                     sinkproof_setting *s) {
    const double sigma = 0x1p-22;
    double row = t->shares ? 0x1p-20 * sqrt(3) * (2 * draw_unit(state) - 1) : 0;
    for (size_t i = 0; i < COLS; i++) {
        double y = draw_gauss(state), size = fabs(y) + 0.1;
        double own = sigma * size * sqrt(3) * (2 * draw_unit(state) - 1);
        double likely = sigma * size * sqrt(6 * s->odds) + (t->shares ? 0x1p-18 * fabs(y) : 0);
        v[i] = y + own + row * y;
        x[i] = sinkproof_set_around(y, 4 * likely, likely, sigma * sigma * size * size, 0);
    }
}

static sinkproof_drift_result judged_tensor(uint64_t *state, const tensor *t, double rate) {
    static sinkproof_honest x[4][COLS];
    static double v[4][COLS];
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, ROWS * COLS, STANDARD_RATE);
    sinkproof_drift drift = {0};
    for (size_t k = 0; k < t->kinds; k++) fill_row(state, t, x[k], v[k], &s);
    for (size_t r = 0; r < ROWS; r++) {
        size_t k = t->kinds > 0 ? draw_below(state, t->kinds) : 0;
        if (t->kinds == 0) fill_row(state, t, x[0], v[0], &s);
        static double v_i[COLS];
        for (size_t i = 0; i < COLS; i++) v_i[i] = v[k][i] * t->factor;
        sinkproof_drift_row(&drift, COLS, v_i, x[k], t->shares ? 0x1p-40 : 0,
                            (double)r / (double)ROWS);
    }
    for (size_t r = 0; t->hides && r < drift.n_rows; r++) drift.rows[r].key = r;
    sinkproof_drift_result result;
    must(sinkproof_drift_judge(&drift, rate, &result));
    sinkproof_drift_free(&drift);
    return result;
}

static void false_alarms(size_t kinds, bool shares) {
    enum { TENSORS = 100 };
    const double rate = 1e-2;
    uint64_t state = SEED + 10 + kinds, again = state;
    size_t alarms = 0, hidden = 0, bound = most_alarms(TENSORS, 2 * rate);
    for (int i = 0; i < TENSORS; i++) {
        tensor t = {kinds, shares, false, 1};
        sinkproof_drift_result r = judged_tensor(&state, &t, rate);
        alarms += suspicious(&r);
        t.hides = true;
        r = judged_tensor(&again, &t, rate);
        hidden += suspicious(&r);
    }
    ok(alarms < bound && hidden >= bound,
       "stat.equal-rows %zu kinds of rows%s: false alarms worst=%zu bound=%zu of=%d at rate %g "
       "(each row by itself: %zu)",
       kinds, shares ? " that share a factor" : "", alarms, bound, TENSORS, rate, hidden);
}

// Rows that all differ: limit and power are those of rows by themselves, to the bit.
static void power_is_kept(bool shares) {
    enum { TENSORS = 50 };
    uint64_t state = SEED + 20, again = state;
    size_t other = 0, missed = 0;
    double smallest = 0;
    for (int i = 0; i < TENSORS; i++) {
        tensor t = {0, shares, false, 1};
        uint64_t third = state;
        sinkproof_drift_result r = judged_tensor(&state, &t, STANDARD_RATE);
        t.hides = true;
        sinkproof_drift_result alone = judged_tensor(&again, &t, STANDARD_RATE);
        other += r.limit != alone.limit || r.smallest != alone.smallest || r.alike != 1 ||
                 r.spread.limit != alone.spread.limit;
        t.hides = false, t.factor = 1 + 1.6 * r.smallest;
        smallest = sinkproof_keep_worst(smallest, r.smallest);
        r = judged_tensor(&third, &t, STANDARD_RATE);
        missed += !sinkproof_drift_leans(&r);
    }
    ok(other == 0 && missed == 0,
       "stat.equal-rows all rows differ%s: power other than without classes worst=%zu bound=0 "
       "of=%d, a factor missed %zu times (limit %.3g)",
       shares ? " but share a factor" : "", other, TENSORS, missed, smallest);
}

static void blocks_say_the_same(void) {
    uint64_t state = SEED + 30;
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, ROWS * COLS, STANDARD_RATE);
    sinkproof_drift whole = {0}, block[4] = {{.n_rows = 0}};
    sinkproof_honest x[COLS];
    double v[COLS];
    for (size_t r = 0; r < ROWS; r++) {
        tensor t = {0, r % 3 == 0, false, 1};
        if (r % 7 != 1) fill_row(&state, &t, x, v, &s); // some repeat
        double common = t.shares ? 0x1p-40 : 0, where = (double)r / ROWS;
        sinkproof_drift_row(&whole, COLS, v, x, common, where);
        sinkproof_drift_row(&block[r * 4 / ROWS], COLS, v, x, common, where);
    }
    for (int b = 1; b < 4; b++) {
        sinkproof_drift_merge(&block[0], &block[b]);
        sinkproof_drift_free(&block[b]);
    }
    size_t rows_differ = whole.n_rows != block[0].n_rows;
    for (size_t r = 0; rows_differ == 0 && r < whole.n_rows; r++)
        rows_differ += whole.rows[r].key != block[0].rows[r].key;
    sinkproof_drift_result a;
    must(sinkproof_drift_judge(&whole, STANDARD_RATE, &a));
    sinkproof_drift_result b;
    must(sinkproof_drift_judge(&block[0], STANDARD_RATE, &b));
    const double apart[] = {a.gain / b.gain,
                            a.limit / b.limit,
                            a.smallest / b.smallest,
                            a.spread.mean / b.spread.mean,
                            a.spread.limit / b.spread.limit,
                            a.spread.noise / b.spread.noise};
    double worst = 0, bound = sinkproof_gamma(4 * ROWS * COLS, 0x1p-53) * 4;
    bound += 0x1p-23; // norms of rows are floats
    for (int i = 0; i < 6; i++) worst = sinkproof_keep_worst(worst, fabs(apart[i] - 1));
    ok(worst <= bound && rows_differ == 0 && a.bin == b.bin && a.alike == b.alike && a.alike > 1,
       "stat.equal-rows four blocks merged worst=%.3g bound=%.3g rows=%zu", worst, bound,
       whole.n_rows);
    sinkproof_drift_free(&whole), sinkproof_drift_free(&block[0]);
}

// ---- engines
// --------------------------------------------------------------------------------------

// A token again and again, two in turn, three in turn, four at random, and one among others.
static const char *const prompt_names[] = {"one token", "two in turn", "three in turn",
                                           "four at random", "one among others"};
enum { PROMPTS = sizeof prompt_names / sizeof prompt_names[0] };

static void prompt(uint64_t *state, int kind, size_t vocab, size_t n, int32_t *tokens) {
    int32_t few[4];
    for (int i = 0; i < 4; i++) few[i] = (int32_t)draw_below(state, vocab);
    for (size_t i = 0; i < n; i++)
        tokens[i] = kind < 3                   ? few[i % (size_t)(kind + 1)]
                    : kind == 3                ? few[draw_below(state, 4)]
                    : draw_below(state, 2) > 0 ? few[0]
                                               : (int32_t)draw_below(state, vocab);
}

typedef struct outcome {
    size_t runs, accused;
    double drift, spread, alike;
} outcome;

static void add(outcome *o, const sinkproof_judgement *j) {
    o->runs++, o->accused += j->verdict > SINKPROOF_VERDICT_WITHIN;
    for (size_t i = 0; i < j->n_reports; i++) {
        const sinkproof_drift_result *r = &j->reports[i].drift;
        if (r->bin >= 0) o->drift = sinkproof_keep_worst(o->drift, fabs(r->gain) / r->limit);
        if (r->spread.part >= 0)
            o->spread = sinkproof_keep_worst(o->spread, r->spread.mean / r->spread.limit);
        o->alike = sinkproof_keep_worst(o->alike, r->alike);
    }
}

static void engines(const sinkproof_stages *stages, const char *policy, const char *points) {
    enum { SEEDS = 1, N = 40 };
    outcome o = {0};
    uint64_t state = SEED + 40;
    for (int seed = 0; seed < SEEDS * PROMPTS; seed++) {
        sinkproof_error error;
        sinkproof_model *model;
        char spec[64];
        snprintf(spec, sizeof spec, "synthetic:tiny,seed=%d,layers=2", seed + 3);
        if (!sinkproof_model_open(spec, &model, &error)) abort();
        int32_t tokens[N];
        size_t n = seed % 2 ? N : 20;
        prompt(&state, seed % PROMPTS, sinkproof_model_config(model)->vocab, n, tokens);
        judged_stages of = {stages, 0};
        sinkproof_judgement j =
            judged_tokens(model, run_stages, &of, policy, policy, n, tokens, points);
        if (j.verdict > SINKPROOF_VERDICT_WITHIN)
            note("%s: %s", prompt_names[seed % PROMPTS],
                 (j.first != NULL ? j.first : j.first_suspicious)->name);
        add(&o, &j);
        sinkproof_judgement_free(&j);
        sinkproof_model_close(model);
    }
    ok(o.accused == 0 && o.alike > 1,
       "stat.equal-rows stat.drift stat.spread %s, prompts of few tokens: accused worst=%zu "
       "bound=0 of=%zu (drift %.3g of 1, spread %.3g of 1, up to %g rows alike)",
       policy, o.accused, o.runs, o.drift, o.spread, o.alike);
}

int main(void) {
    static const size_t lengths[] = {1, 2, 3, 4, 7, 8, 9, 64, 65, MOST_COLS};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) other_rows(lengths[i], 1);
    other_rows(MOST_COLS, 1e4);
    for (size_t i = 2; i < sizeof lengths / sizeof lengths[0]; i++)
        near_rows(lengths[i], false, 20); // 1 of 100
    near_rows(64, true, 400);             // 1 of 5
    near_rows(MOST_COLS, true, 400);
    for (size_t kinds = 1; kinds <= 4; kinds++)
        for (int shares = 0; shares < 2; shares++) false_alarms(kinds, shares);
    power_is_kept(false);
    power_is_kept(true);
    blocks_say_the_same();
    engines(&sinkproof_lanes_stages, "f32", one_pass_points);
    engines(&sinkproof_lanes_stages, "bf16-operands", one_pass_points);
    static const char *const policies[] = {"f32", "openai-bf16", "hf-bf16", "bf16"};
    for (size_t p = 0; p < 4; p++) engines(&sinkproof_reference_stages, policies[p], NULL);
    return tap_done();
}
