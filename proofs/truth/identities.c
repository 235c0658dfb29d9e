// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Draws instances of the identities, compares both sides, and computes the radius that the
// precision allows.
#include "base/splitmix.h"
#include "proofs/bounds/worst.h"
#include "proofs/truth/identities_internal.h"

#include <math.h>
#include <stdlib.h>

static double draw_uniform(uint64_t *state, double width) { // [-width/2, width/2], 53 bits
    return ((double)(sinkproof_draw(state) >> 11) * 0x1p-53 - 0.5) * width;
}
static double draw_short_number(uint64_t *state) { // 8 significant bits, 1/2 <= |x| < 8
    int exponent =
        // drawn first, so that the compiler cannot choose the order
        (int)sinkproof_draw_from_to(state, 0, 3) - 8;
    double size = ldexp((double)sinkproof_draw_from_to(state, 128, 255), exponent);
    return sinkproof_draw(state) % 2 == 0 ? size : -size;
}
static double *draw_short_numbers(uint64_t *state, size_t n) {
    double *x = ball_doubles(n);
    for (size_t k = 0; k < n; k++) x[k] = draw_short_number(state);
    return x;
}

double *ball_doubles(size_t n) {
    double *x = calloc(n + 1, sizeof *x);
    if (x == NULL) abort();
    return x;
}

sinkproof_ball_instance sinkproof_ball_draw(sinkproof_ball_ranges ranges, uint64_t seed,
                                            uint64_t number) {
    static const double sinks[] = {0, -INFINITY, 300, -1e4, 1e4, -300, 0.5, -1};
    uint64_t state = seed * UINT64_C(0xd1342543de82ef95) + number;
    sinkproof_ball_instance m = {.seed = seed, .number = number};
    size_t drawn_n = sinkproof_draw_from_to(&state, 1, 1 + (size_t)number % 40);
    m.n = ranges.n > 0 ? ranges.n : drawn_n;
    m.kv_heads = ranges.heads > 0 ? ranges.heads : sinkproof_draw_from_to(&state, 1, 2);
    m.heads = ranges.heads > 0 ? ranges.heads : m.kv_heads * sinkproof_draw_from_to(&state, 1, 2);
    m.dim = sinkproof_draw_from_to(&state, 1, SINKPROOF_BALL_DIM);
    m.hidden = sinkproof_draw_from_to(&state, 1, SINKPROOF_BALL_DIM);
    m.low_rank = sinkproof_draw_from_to(&state, 1, m.dim);
    m.s_hj = ball_doubles(m.heads * m.n);
    for (size_t k = 0; k < m.heads * m.n; k++) m.s_hj[k] = draw_uniform(&state, ranges.spread);
    for (size_t h = 0; h < m.heads; h++)
        m.b_h[h] = isnan(ranges.b) ? sinks[(number + h) % 8] : ranges.b;
    m.x_gjd = draw_short_numbers(&state, m.kv_heads * m.n * m.dim);
    m.k_jd = draw_short_numbers(&state, m.n * m.dim);
    for (size_t k = 0; k < SINKPROOF_BALL_HEADS * SINKPROOF_BALL_DIM; k++)
        m.bv_gd[k] = draw_short_number(&state);
    for (size_t k = 0; k < sizeof m.wo_hdc / sizeof *m.wo_hdc; k++)
        m.wo_hdc[k] = draw_short_number(&state);
    for (size_t d = 0; d < SINKPROOF_BALL_DIM; d++) {
        m.bo_c[d] = draw_short_number(&state), m.star_d[d] = draw_short_number(&state);
        m.q_d[d] = draw_short_number(&state), m.k_star_d[d] = draw_short_number(&state);
    }
    m.scale = (double[]){0, 1, 5, 20}[number % 4];
    m.part_j = calloc(m.n + 1, sizeof *m.part_j);
    if (m.part_j == NULL) abort();
    for (size_t j = 0; j < m.n; j++) m.part_j[j] = sinkproof_draw_from_to(&state, 0, 2);
    return m;
}

void sinkproof_ball_clear(sinkproof_ball_instance *m) {
    free(m->s_hj);
    free(m->x_gjd);
    free(m->k_jd);
    free(m->part_j);
    *m = (sinkproof_ball_instance){0};
}

// T: a bound on every exponential's argument, every logarithm and every sink logit.
static double largest_argument(const sinkproof_identity *identity,
                               const sinkproof_ball_instance *m) {
    double most = 0;
    for (size_t k = 0; !(identity->traits & KEYED) && k < m->heads * m->n; k++)
        most = fmax(most, fabs(m->s_hj[k]));
    for (size_t h = 0; !(identity->traits & KEYED) && h < m->heads; h++)
        if (isfinite(m->b_h[h])) most = fmax(most, fabs(m->b_h[h]));
    for (size_t j = 0; (identity->traits & KEYED) && j <= m->n; j++) { // scores from q and k
        double dot = 0;
        for (size_t d = 0; d < m->dim; d++)
            dot += fabs(m->q_d[d] * (j < m->n ? m->k_jd[j * m->dim + d] : m->k_star_d[d]));
        most = fmax(most, dot);
    }
    return 2 * most + log((double)m->n + 1) + 1;
}

static double largest_size(const double *x, size_t n) {
    double most = 0;
    for (size_t k = 0; k < n; k++) most = fmax(most, fabs(x[k]));
    return most;
}

double identity_allowance_unit(const sinkproof_identity *identity,
                               const sinkproof_ball_instance *m) {
    double value = largest_size(m->x_gjd, m->kv_heads * m->n * m->dim) +
                   largest_size(m->bv_gd, m->kv_heads * m->dim) +
                   (1 + m->scale) * largest_size(m->star_d, m->dim);
    double output = 3 * value * (double)(m->heads * m->dim) *
                        largest_size(m->wo_hdc, m->heads * m->dim * m->hidden) +
                    largest_size(m->bo_c, m->hidden);
    switch (identity->size) {
    case BALL_HEAD:
        return value;
    case BALL_HIDDEN:
        return output;
    default:
        return 1;
    }
}

double identity_allowed_log2(const sinkproof_identity *identity, const sinkproof_ball_instance *m,
                             slong bits) {
    double k = 4 * largest_argument(identity, m) + 32 +
               (identity->traits & RECURRENT ? 8 : 3) * (double)m->n;
    double units = log2(1.01 * k) + 1 - (double)bits;
    if (identity->relation != SINKPROOF_BALL_DERIVATIVE) return units;
    // The quotient divides by h = 2^-(bits/4); the derivative's range over [b, b + h] has the same
    // width.
    double h = -(double)(bits / 4);
    return fmax(units - h, h) + 1;
}

static size_t identity_entries(const sinkproof_identity *identity,
                               const sinkproof_ball_instance *m) {
    switch (identity->size) {
    case BALL_FOUR:
        return 4;
    case BALL_KEYS:
        return m->n + 1;
    case BALL_HEAD:
        return m->dim;
    case BALL_HIDDEN:
        return m->hidden;
    default:
        return 1;
    }
}

static bool entry_holds(const sinkproof_identity *identity, const arb_t left, const arb_t right) {
    if (!arb_is_finite(left) || !arb_is_finite(right)) return false;
    return identity->relation == SINKPROOF_BALL_LESS ? arb_lt(left, right)
                                                     : arb_overlaps(left, right);
}

// Of an inequality: balls that are not disjoint, or none.
static bool is_open(const sinkproof_identity *identity, const arb_t left, const arb_t right) {
    return identity->relation == SINKPROOF_BALL_LESS && !entry_holds(identity, left, right) &&
           !(arb_is_finite(left) && arb_is_finite(right) && arb_ge(left, right));
}

// Computes both sides, and returns the precision used. Two numbers whose ratio is e^-T, or as near
// to 1, need T / ln 2 bits more than the radius: for an inequality the precision is doubled until
// its balls are disjoint, whichever is the lesser, or that limit is reached.
static slong compute_sides(const sinkproof_identity *identity, const sinkproof_ball_instance *m,
                           slong bits, size_t n, arb_ptr left, arb_ptr right) {
    slong most = bits + (slong)(3 * largest_argument(identity, m)) + 64;
    for (;;) {
        size_t open = 0;
        identity->left(left, m, bits);
        identity->right(right, m, bits);
        for (size_t k = 0; k < n; k++) open += is_open(identity, left + k, right + k);
        if (open == 0 || bits >= most) return bits;
        bits = 2 * bits < most ? 2 * bits : most;
    }
}

// Adds one instance to the outcome.
static void add_instance(const sinkproof_identity *identity, const sinkproof_ball_instance *m,
                         slong bits, sinkproof_identity_outcome *outcome) {
    for (size_t h = 0; (identity->traits & FINITE) && h < m->heads; h++)
        if (!isfinite(m->b_h[h])) return;
    size_t n = identity_entries(identity, m), broken = 0;
    arb_ptr left = _arb_vec_init((slong)n), right = _arb_vec_init((slong)n);
    slong spent = compute_sides(identity, m, bits, n, left, right);
    double size_log2 = log2(identity_allowance_unit(identity, m)), before = outcome->share;
    double allowed = identity_allowed_log2(identity, m, bits);
    // its balls decide, whatever their radius
    bool less = identity->relation == SINKPROOF_BALL_LESS;
    for (size_t k = 0; k < n; k++) {
        double radius =
            fmax(sinkproof_truth_radius_log2(left + k), sinkproof_truth_radius_log2(right + k)) -
            size_log2;
        double share = less ? 0 : exp2(radius - allowed);
        broken += !(entry_holds(identity, left + k, right + k) && share <= 1);
        if (less) continue;
        if (!(radius <= outcome->radius_log2)) outcome->radius_log2 = radius;
        outcome->share = sinkproof_keep_worst(outcome->share, share);
    }
    if (outcome->share > before || outcome->instances == 0) outcome->allowed_log2 = allowed;
    if (broken > 0 && outcome->broken == 0) outcome->first_broken = m->number;
    if (spent > outcome->bits) outcome->bits = spent;
    outcome->broken += broken;
    outcome->entries += n;
    outcome->instances++;
    _arb_vec_clear(left, (slong)n);
    _arb_vec_clear(right, (slong)n);
}

// Every fourth instance has moderate scores, so that no weight is negligible.
static sinkproof_ball_ranges default_ranges(uint64_t number) {
    return (sinkproof_ball_ranges){0, 0, number % 4 == 0 ? 6 : 300, NAN};
}

sinkproof_identity_outcome sinkproof_identity_check(const sinkproof_identity *identity,
                                                    uint64_t seed, size_t count, slong bits) {
    sinkproof_identity_outcome outcome = {.radius_log2 = -INFINITY, .allowed_log2 = -INFINITY};
    // A statement about finite sink logits skips the other instances.
    for (uint64_t number = 0; outcome.instances < count && number < 8 * (count + 1); number++) {
        sinkproof_ball_instance m = sinkproof_ball_draw(default_ranges(number), seed, number);
        add_instance(identity, &m, bits, &outcome);
        sinkproof_ball_clear(&m);
    }
    return outcome;
}

char *sinkproof_identity_describe(const sinkproof_identity *identity, uint64_t seed,
                                  uint64_t number, slong bits) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (out == NULL) abort();
    sinkproof_ball_instance m = sinkproof_ball_draw(default_ranges(number), seed, number);
    size_t n = identity_entries(identity, &m), shown = n < 4 ? n : 4;
    fprintf(out, "instance %llu of seed %llu: n = %zu, H = %zu, key/value heads %zu, d' = %zu\n",
            (unsigned long long)number, (unsigned long long)seed, m.n, m.heads, m.kv_heads, m.dim);
    fprintf(out, "s =");
    for (size_t j = 0; j < m.n && j < 8; j++) fprintf(out, " %.17g", m.s_hj[j]);
    fprintf(out, "%s\nb =", m.n > 8 ? " ..." : "");
    for (size_t h = 0; h < m.heads; h++) fprintf(out, " %g", m.b_h[h]);
    arb_ptr left = _arb_vec_init((slong)n), right = _arb_vec_init((slong)n);
    compute_sides(identity, &m, bits, n, left, right);
    for (int side = 0; side < 2; side++) {
        fprintf(out, "\n%s %s", side == 0 ? "left: " : "right:",
                side == 0 ? identity->left_text : identity->right_text);
        for (size_t k = 0; k < shown; k++) {
            char *ball = arb_get_str((side == 0 ? left : right) + k, 25, 0);
            fprintf(out, "\n     = %s", ball);
            flint_free(ball);
        }
    }
    fprintf(out, "\n");
    fclose(out);
    _arb_vec_clear(left, (slong)n);
    _arb_vec_clear(right, (slong)n);
    sinkproof_ball_clear(&m);
    return text;
}

const sinkproof_identity *sinkproof_identity_at(size_t k) {
    const sinkproof_identity *const tables[] = {
        identities_attention, identities_sink,     identities_forms,  identities_stages,
        identities_model,     identities_first,    identities_repeat, identities_mixing,
        identities_terms,     identities_gradients};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const sinkproof_identity *i = tables[t]; i->id != NULL; i++)
            if (k-- == 0) return i;
    return NULL;
}
