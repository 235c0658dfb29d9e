// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Outputs of parts of the keys that are rounded and merged (bound.parts-merged). Engines split the
// keys at drawn places, in natural units or in base 2, merge all parts at once, one after the
// other, or in two levels, and have the sink in one part, at the merge or in a gate. Cascades of
// two to eight levels round what they have merged at each. All are inside, and outside the set of
// one part. A part's LSE off by ln 2, a part left out, LSE rounded to bfloat16, and a sink in every
// part are outside.
#include "tests/shared/forms_engine.h"

static const uint64_t SEED = 20261128;
enum { KEYS = 300, DIM = 8, PARTS = 12 };

typedef struct drawn_row {
    size_t n;
    float z[KEYS], b, v[KEYS][DIM];
} drawn_row;

static void draw_keys(uint64_t *state, sinkproof_format format, drawn_row *r) {
    static const double spreads[] = {0.5, 2, 6};
    double spread = spreads[draw_below(state, 3)], level = 10 * draw_gauss(state);
    r->n = 4 + draw_below(state, draw_below(state, 2) ? KEYS - 4 : 20);
    for (size_t j = 0; j < r->n; j++) {
        r->z[j] = (float)(level + spread * draw_gauss(state));
        for (size_t d = 0; d < DIM; d++) r->v[j][d] = (float)draw_from(state, format, 1);
    }
    float m = top_of(r->n, r->z);
    r->b = (float)((double)m + log((double)r->n) - spread + 2 * draw_gauss(state));
}

// ---- the engine

typedef enum slip { NO_SLIP, LSE_OFF, PART_LOST, LSE_IN_BF16, SINK_IN_EACH, SLIPS } slip;
static const char *const slip_names[SLIPS] = {"", "LSE of a part off by ln 2", "a part left out",
                                              "LSE rounded to bfloat16", "the sink in each part"};
typedef enum merging { AT_ONCE, ONE_BY_ONE, TWO_LEVELS, GATED, MERGINGS } merging;

typedef struct merger {
    machine f;
    sinkproof_format format;
    bool base_2, kept; // kept: exponentials are rounded to bfloat16 before they meet the values
    bool divided;      // kept, but they are divided by the part's sum before that
    merging how;
    slip wrong;
} merger;

// The output of some keys and their LSE, in base 2 if the engine says so.
typedef struct part_output {
    float o[DIM], lse;
} part_output;

static float power_of(const merger *e, float x) {
    return e->base_2 ? exp2_of(&e->f, x) : exp_of(&e->f, x);
}
static float log_sum(const merger *e, float sum) {
    if (!e->base_2) return log_of(&e->f, sum);
    return within_ulps(e->f.state, log2((double)sum), 2, e->f.lean);
}
static float in_units(const merger *e, float z) {
    return e->base_2 ? z * log2_e : z;
}

// Keys [first, end), with the sink or without it.
static part_output attend(const merger *e, const drawn_row *r, size_t first, size_t end,
                          bool sink) {
    part_output p = {.o = {0}};
    float y[KEYS + 1], sum = 0, m = sink ? in_units(e, r->b) : -INFINITY;
    for (size_t j = first; j < end; j++) m = fmaxf(m, y[j] = in_units(e, r->z[j]));
    if (sink) sum = power_of(e, in_units(e, r->b) - m);
    for (size_t j = first; j < end; j++) {
        float x = y[j] = power_of(e, y[j] - m);
        sum += x;
        if (e->kept) x = (float)sinkproof_round(SINKPROOF_BF16, (double)x);
        for (size_t d = 0; d < DIM; d++) p.o[d] += x * r->v[j][d];
    }
    for (size_t d = 0; d < DIM; d++) p.o[d] = e->divided ? 0 : p.o[d] / sum;
    for (size_t j = first; e->divided && j < end; j++) {
        float x = (float)sinkproof_round(SINKPROOF_BF16, (double)(y[j] / sum));
        for (size_t d = 0; d < DIM; d++) p.o[d] += x * r->v[j][d];
    }
    p.lse = m + log_sum(e, sum);
    return p;
}

static void round_output(const merger *e, part_output *p) {
    for (size_t d = 0; d < DIM; d++) p->o[d] = (float)sinkproof_round(e->format, (double)p->o[d]);
}

static part_output merge(const merger *e, size_t n, const part_output *part) {
    part_output all = {.o = {0}};
    float m = -INFINITY, sum = 0, w[PARTS + 1];
    for (size_t p = 0; p < n; p++) m = fmaxf(m, part[p].lse);
    for (size_t p = 0; p < n; p++) sum += w[p] = power_of(e, part[p].lse - m);
    for (size_t p = 0; p < n; p++)
        for (size_t d = 0; d < DIM; d++) all.o[d] += w[p] / sum * part[p].o[d];
    all.lse = m + log_sum(e, sum);
    return all;
}

static void shuffle_parts(uint64_t *state, size_t n, part_output *part) {
    for (size_t left = n; left > 1; left--) {
        size_t i = draw_below(state, left);
        part_output last = part[left - 1];
        part[left - 1] = part[i], part[i] = last;
    }
}

static part_output merge_parts(const merger *e, size_t n, part_output *part) {
    part_output all;
    if (e->how == AT_ONCE || e->how == GATED) {
        for (size_t p = 0; p < n; p++) round_output(e, &part[p]);
        return merge(e, n, part);
    }
    if (e->how == ONE_BY_ONE) {
        for (size_t p = 0; p < n; p++) round_output(e, &part[p]);
        all = part[0];
        for (size_t p = 1; p < n; p++) all = merge(e, 2, (part_output[]){all, part[p]});
        return all;
    }
    size_t half = (n + 1) / 2; // splits in float32, then a prefix and the rest, rounded
    part_output level[2] = {merge(e, half, part), merge(e, n - half, part + half)};
    for (size_t p = 0; p < 2; p++) round_output(e, &level[p]);
    return merge(e, 2, level);
}

// The sink after all keys: sigmoid(LSE - b) times the output, which was rounded.
static void gate(const merger *e, const drawn_row *r, part_output *all) {
    float lse = all->lse;
    if (e->wrong == LSE_IN_BF16) lse = (float)sinkproof_round(SINKPROOF_BF16, (double)lse);
    float g = 1 / (1 + power_of(e, in_units(e, r->b) - lse));
    for (size_t d = 0; d < DIM; d++) all->o[d] *= g;
}

static part_output run_engine(const merger *e, const drawn_row *r) {
    part_output part[PARTS + 1];
    size_t most = e->how == ONE_BY_ONE ? 4 : PARTS, n = 0, first = 0;
    uint64_t *state = e->f.state;
    bool gated = e->how == GATED, at_merge = !gated && draw_below(state, 2);
    for (size_t end; first < r->n; first = end, n++) {
        bool last = n + 2 >= most || r->n - first < 2;
        end = last ? r->n : first + 1 + draw_below(state, r->n - first);
        bool sink = e->wrong == SINK_IN_EACH || (!gated && !at_merge && n == 0);
        part[n] = attend(e, r, first, end, sink);
    }
    if (e->wrong == LSE_OFF) part[n - 1].lse += in_units(e, logf(2));
    if (e->wrong == PART_LOST && n > 1) n--;
    for (size_t p = 0; e->wrong == LSE_IN_BF16 && !gated && p < n; p++)
        part[p].lse = (float)sinkproof_round(SINKPROOF_BF16, (double)part[p].lse);
    if (at_merge && e->wrong != SINK_IN_EACH) part[n++] = (part_output){.lse = in_units(e, r->b)};
    if (gated && n == 1) round_output(e, &part[0]);
    if (e->wrong == NO_SLIP || e->wrong == LSE_OFF) shuffle_parts(state, n, part);
    part_output all = n == 1 ? part[0] : merge_parts(e, n, part);
    if (gated && n > 1 && draw_below(state, 2) == 0 && e->how != GATED) round_output(e, &all);
    if (gated && e->wrong != SINK_IN_EACH) gate(e, r, &all);
    return all;
}

// So many outputs on the way of the first keys are rounded: the first part's, and what each merge
// but the last gives. The sink is in a part, or joins last.
static part_output run_cascade(const merger *e, const drawn_row *r, size_t levels) {
    uint64_t *state = e->f.state;
    part_output part[PARTS + 1];
    bool joins = draw_below(state, 2);
    size_t n = joins ? levels : levels + 1, holds = joins ? n : draw_below(state, n);
    for (size_t p = 0; p < n; p++)
        part[p] =
            attend(e, r, p * r->n / n, (p + 1) * r->n / n, p == holds || e->wrong == SINK_IN_EACH);
    if (e->wrong == LSE_OFF) part[n - 1].lse += in_units(e, logf(2));
    if (e->wrong == PART_LOST) part[n - 1] = part[0];
    for (size_t p = 0; e->wrong == LSE_IN_BF16 && p < n; p++)
        part[p].lse = (float)sinkproof_round(SINKPROOF_BF16, (double)part[p].lse);
    shuffle_parts(state, n, part);
    if (joins) part[n++] = (part_output){.lse = in_units(e, r->b)};
    for (size_t p = 0; p < n; p++) round_output(e, &part[p]);
    part_output all = part[0];
    for (size_t p = 1; p < n; p++) {
        all = merge(e, 2, (part_output[]){all, part[p]});
        if (p + 1 < n) round_output(e, &all);
    }
    return all;
}

// ---- its set

static void set_of_row(const char *text, const drawn_row *r, sinkproof_honest *o_d) {
    static sinkproof_honest z_j[KEYS], a_j[KEYS + 1], v_dj[DIM * KEYS];
    sinkproof_policy policy = policy_named(text);
    sinkproof_setting s = sinkproof_setting_for(&policy, 1000, STANDARD_RATE);
    double common, terms = (double)r->n;
    for (size_t j = 0; j < r->n; j++) {
        z_j[j] = sinkproof_exact_set((double)r->z[j]);
        for (size_t d = 0; d < DIM; d++)
            v_dj[d * r->n + j] = sinkproof_exact_set((double)r->v[j][d]);
    }
    sinkproof_honest b = sinkproof_exact_set((double)r->b);
    must(sinkproof_honest_softmax(&s, AT_A9, r->n, z_j, b, a_j, &common));
    sinkproof_planes w = sinkproof_planes_new(a_j, 1, r->n, r->n),
                     v = sinkproof_planes_new(v_dj, DIM, r->n, r->n);
    const sinkproof_accumulator sum = sinkproof_accumulator_at(&policy, AT_A11_TERM, AT_A11_ACC);
    must(sinkproof_honest_accumulated(&s, &sum, &w, &v, &terms, true, o_d, DIM));
    if (sinkproof_honest_merges_parts(&policy)) {
        double error = sinkproof_honest_merge_error(&s, r->n, z_j, b);
        must(sinkproof_honest_merged(&s, &w, &v, &terms, &error, o_d, DIM));
    }
    sinkproof_honest_finish(&s, AT_A11, DIM, o_d);
    sinkproof_planes_free(&w);
    sinkproof_planes_free(&v);
}

static merger draw_merger(uint64_t *state, sinkproof_format format, size_t i) {
    return (merger){.f = draw_machine(state),
                    .format = format,
                    .base_2 = i % 2 == 1,
                    .kept = i % 3 == 0 && format == SINKPROOF_BF16,
                    .how = (merging)(i / 2 % MERGINGS)};
}

// The policy that says what the engine does, with A11.part as `part`.
static const char *policy_of(const merger *e, const char *part) {
    static char text[160];
    snprintf(text, sizeof text, "f32,A9=real,A9.form=any,A9.unnorm=%s,A11.part=%s,A11=%s",
             e->kept ? "bf16?" : "real", part, sinkproof_format_name(e->format));
    return text;
}

static void honest_merges(sinkproof_format format) {
    uint64_t state = SEED + (uint64_t)format;
    tally t = {0};
    size_t without = 0, rows = 1200;
    char part[8];
    snprintf(part, sizeof part, "%s?", sinkproof_format_name(format));
    for (size_t i = 0; i < rows; i++) {
        drawn_row r;
        sinkproof_honest set[DIM], one[DIM];
        draw_keys(&state, format == SINKPROOF_F32 ? SINKPROOF_BF16 : format, &r);
        merger e = draw_merger(&state, format, i);
        part_output all = run_engine(&e, &r);
        set_of_row(policy_of(&e, part), &r, set);
        set_of_row(policy_of(&e, "real"), &r, one);
        bool left = false;
        for (size_t d = 0; d < DIM; d++) {
            double y = sinkproof_round(format, (double)all.o[d]);
            meet(&t, &set[d], y);
            left = left || !(y >= one[d].lo && y <= one[d].hi);
        }
        without += left;
    }
    const char *name = sinkproof_format_name(format);
    char what[64];
    snprintf(what, sizeof what, "parts in %s, merged", name);
    inside_ok(&t, "bound.parts-merged", what);
    ok(t.unlikely == 0, "bound.parts-merged parts in %s, merged, are likely: unlikely=%zu", name,
       t.unlikely);
    ok(format == SINKPROOF_F32 || without > rows / 3,
       "bound.parts-merged parts in %s, merged: rows that leave the set of one part %zu of=%zu",
       name, without, rows);
}

static void mistakes_are_outside(sinkproof_format format) {
    char part[8];
    snprintf(part, sizeof part, "%s?", sinkproof_format_name(format));
    for (int wrong = 1; wrong < SLIPS; wrong++) {
        uint64_t state = SEED + 100 * (uint64_t)wrong;
        size_t outside = 0, rows = 400;
        for (size_t i = 0; i < rows; i++) {
            drawn_row r;
            sinkproof_honest set[DIM];
            draw_keys(&state, format, &r);
            merger e = draw_merger(&state, format, i);
            e.wrong = (slip)wrong;
            part_output all = run_engine(&e, &r);
            set_of_row(policy_of(&e, part), &r, set);
            bool left = false;
            for (size_t d = 0; d < DIM; d++) {
                double y = sinkproof_round(format, (double)all.o[d]);
                left = left || !(y >= set[d].lo && y <= set[d].hi);
            }
            outside += left;
        }
        ok(outside > rows / 5, "bound.parts-merged %s, parts in %s: rows outside %zu of=%zu",
           slip_names[wrong], sinkproof_format_name(format), outside, rows);
    }
}

// A cascade's keys: in one row of four a level has hardly any mass, in one the sink has nearly all.
static void draw_cascade(uint64_t *state, sinkproof_format format, size_t i, drawn_row *r) {
    do draw_keys(state, format, r);
    while (r->n < 2 * PARTS);
    float down = (float)(20 * draw_below(state, 4) + 10);
    for (size_t j = 0; i % 4 == 1 && j < r->n / 3; j++) r->z[j] -= down;
    if (i % 4 == 2) r->b = top_of(r->n, r->z) + (float)draw_below(state, 12);
    if (i % 4 == 3) r->b = top_of(r->n, r->z) + (float)draw_below(state, 60);
}

static bool cascade_leaves(sinkproof_format format, const part_output *all,
                           const sinkproof_honest *set) {
    bool left = false;
    for (size_t d = 0; d < DIM; d++) {
        double y = sinkproof_round(format, (double)all->o[d]);
        left = left || !(y >= set[d].lo && y <= set[d].hi);
    }
    return left;
}

static void cascades(sinkproof_format format) {
    const char *name = sinkproof_format_name(format);
    uint64_t state = SEED + 500 + (uint64_t)format;
    tally t = {0};
    size_t of_one = 0, slipped[SLIPS] = {0}, rows = 700;
    for (size_t i = 0; i < rows; i++) {
        drawn_row r;
        sinkproof_honest set[DIM], one[DIM];
        size_t levels = 2 + i % 7;
        char part[24], once[8];
        draw_cascade(&state, format, i, &r);
        merger e = draw_merger(&state, format, i);
        e.divided = e.kept && i % 2, e.kept = e.kept && !e.divided;
        snprintf(part, sizeof part, "levels(%zu,%s)?", levels, name);
        snprintf(once, sizeof once, "%s?", name);
        merger rounds = e;
        rounds.kept = e.kept || e.divided;
        set_of_row(policy_of(&rounds, part), &r, set);
        set_of_row(policy_of(&rounds, once), &r, one);
        part_output all = run_cascade(&e, &r, levels);
        for (size_t d = 0; d < DIM; d++)
            meet(&t, &set[d], sinkproof_round(format, (double)all.o[d]));
        of_one += cascade_leaves(format, &all, one);
        for (e.wrong = LSE_OFF; e.wrong < SLIPS; e.wrong++) {
            all = run_cascade(&e, &r, levels);
            slipped[e.wrong] += cascade_leaves(format, &all, set);
        }
    }
    char what[64];
    snprintf(what, sizeof what, "cascades in %s", name);
    inside_ok(&t, "bound.parts-merged", what);
    ok(of_one > 0, "bound.parts-merged %s: rows that leave the set of one level %zu of=%zu", what,
       of_one, rows);
    for (slip k = LSE_OFF; k < SLIPS; k++)
        ok(slipped[k] > rows / 20, "bound.parts-merged %s, %s: rows outside %zu of=%zu", what,
           slip_names[k], slipped[k], rows);
}

// One part, whose output is just above a tie of bfloat16.
static void bound_is_reached(void) {
    drawn_row r = {.n = 2, .b = -INFINITY};
    sinkproof_honest set[DIM];
    for (size_t j = 0; j < r.n; j++)
        for (size_t d = 0; d < DIM; d++) r.v[j][d] = 0x1.01p0f + 0x1p-16f * (float)d;
    set_of_row("f32,A9=real,A11.part=bf16?,A11=real", &r, set);
    double least = 1;
    for (size_t d = 0; d < DIM; d++) {
        double v = (double)r.v[0][d], y = d == 0 ? 1 : sinkproof_round(SINKPROOF_BF16, v);
        least = fmin(least, share_of(&set[d], y));
    }
    ok(least > 0.9, "bound.parts-merged ties reach its floor reached=%.3g floor=0.9", least);
}

// The reference's keys are one part.
static void reference_is_inside(void) {
    uint64_t state = SEED + 9;
    size_t outside = 0, moved = 0;
    for (size_t i = 0; i < 200; i++) {
        drawn_row r;
        sinkproof_honest set[DIM];
        draw_keys(&state, SINKPROOF_BF16, &r);
        merger e = {.f = {&state, LEAN_NEAREST, FORWARD}, .format = SINKPROOF_BF16};
        part_output all = attend(&e, &r, 0, r.n, true);
        set_of_row("f32,A9=real,A11.part=bf16,A11=f32", &r, set);
        for (size_t d = 0; d < DIM; d++) {
            double y = sinkproof_round(SINKPROOF_BF16, (double)all.o[d]);
            outside += !(y >= set[d].lo && y <= set[d].hi), moved += y != (double)all.o[d];
        }
    }
    ok(outside == 0 && moved > 0, "bound.parts-merged one rounded part is inside worst=%zu bound=0",
       outside);
}

int main(void) {
    honest_merges(SINKPROOF_BF16);
    honest_merges(SINKPROOF_F16);
    honest_merges(SINKPROOF_F32);
    mistakes_are_outside(SINKPROOF_BF16);
    mistakes_are_outside(SINKPROOF_F16);
    cascades(SINKPROOF_BF16);
    cascades(SINKPROOF_F16);
    bound_is_reached();
    reference_is_inside();
    return tap_done();
}
