// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The honest set of the softmax with a sink (bound.softmax-sink), in every form (bound.form-*).
//
// The definition. With t_j = z_j - m, m the row's maximum with the sink, the engine computes
// e_j = exp(t_j (1 + d)) (1 + eps), |d| <= u, |eps| <= the declared error of exp, so e_j lies
// within a factor 1 ± eta_j of the real one, eta_j = exp(|t_j| u) (1 + declared) - 1: no
// second-order term is dropped. The sum of n + 1 positive terms errs by gamma_n whatever its order,
// the quotient by two roundings. Weight i is largest when its own numerator is largest and every
// other is smallest: alpha_i = e_i / (e_i + sum of the others).
//
// The forms change the distance of an exponent from t_j (base 2), the errors of the sum and its
// numerators (a running maximum), and the last step (LSE subtracted, or a gate by LSE - b).
#include "proofs/bounds/softmax_row.h"

#include <float.h>
#include <stdlib.h>

// ---- one row ------------------------------------------------------------------------------------

static double smallest_normal(const sinkproof_setting *s) {
    return s->policy->inside == SINKPROOF_F32 ? 0x1p-126 : 0x1p-1022;
}

//> bound.exp-growing
// exp's declared relative error is a + b |x|: within (1 ± a) e^(± b' |x|), b' = b / (1 - a - b X)
// where |x| <= X. So the second part is an error of the exponent, and a product of exponentials (a
// numerator and its rescalings) has no more of it than one exponential of the summed arguments.
// Beyond X = 800 each is below the smallest number of any format.
static const double largest_argument = 800;

static double exp_error_growth(const sinkproof_setting *s) {
    double a = s->policy->ulp[SINKPROOF_EXP] * 2 * s->u, b = s->policy->exp_growth * 2 * s->u;
    return b / (1 - a - b * largest_argument) * (1 + 0x1p-50);
}

static double grown_error(const softmax_row *row, double argument) {
    return row->growth * fmin(argument, largest_argument);
}
//< bound.exp-growing

//> bound.form-base2
// How far the exponent may be from z - m, without what all terms of a row share, since it cancels.
// far = |z - m|, size = |z|. Natural: the difference is rounded. Base 2: y = z (1 + kappa) (1 +
// delta): kappa, of the constants log2(e) and scale, is the same in all terms; delta is the
// product's and that of the rounding of A6, which such a kernel does not do. Only kappa (z - m) of
// the first remains; all of the second does, since large scores round to coarse steps. With a
// running maximum, m log2(e) is rounded at each maximum apart from the scores.
static double exponent_error(const softmax_row *row, double far, double size) {
    double u = row->s->u, difference = u + 0x1p-52; // 0x1p-52: this evaluation
    if (!row->base_2) return far * difference + grown_error(row, far * (1 + difference));
    double kappa = sinkproof_gamma(2, u), delta = sinkproof_gamma(2, u);
    double before = kappa * far + (1 + kappa) * delta * size;
    double after = difference * (1 + kappa) * (far + delta * (size + row->top));
    double maxima = row->running ? (1 + kappa) * (2 * u * fmax(size, row->top) + u * far) : 0;
    double error = before + after + maxima;
    return error + grown_error(row, far + error);
}

// An exponential below the smallest number of a format is lost relative to the engine's own maximum
// m': relative to e^(z - m) the loss is e^(m' - m) times as large, for the largest possible m'. In
// base 2 that maximum also errs by M, the same in all terms: e^M times as large again.
static double underflow_lift(const softmax_row *row) {
    double above = row->m_hi - row->m;
    double kappa = sinkproof_gamma(2, row->s->u), delta = sinkproof_gamma(2, row->s->u);
    if (row->base_2) above += (1 + kappa) * delta * row->top;
    return above > 0 ? exp(above * (1 + 0x1p-50)) * (1 + 0x1p-50) : 1; // 0x1p-50: this evaluation
}
//< bound.form-base2

//> bound.exp
// The largest exponential of t with that error. A NaN counts as no bound: infinity.
static double largest_exponential(const softmax_row *row, double t, double error) {
    double reach = t + error + (fabs(t) + error) * 0x1p-50; // 0x1p-50: this evaluation
    double most = exp(reach) * (1 + row->declared) * (1 + 0x1p-50);
    return most >= 0 ? most : INFINITY;
}

// z [j] of the row, shifted by m; m_lo <= the engine's maximum <= m_hi.
static numerator key_numerator(const softmax_row *row, size_t j) {
    const double libm = 0x1p-50; // binary64 exp here: a few ulp, checked against Arb by the tests
    sinkproof_honest z = row->t_j[j];
    numerator e = {.mid = exp(z.mid - row->m), .own = 1};
    e.lo = e.hi = e.likely_lo = e.likely_hi = e.mid;
    if (z.hi == -INFINITY) return e;
    double far = fmax(fabs(z.lo - row->m_hi), fabs(z.hi - row->m_lo));
    // A sink that is added to a finished sum is shifted by the maximum of the keys.
    if (j == row->n && j > 0 && row->running) far = fmax(far, fabs(z.hi - row->keys_lo));
    double size = row->base_2 ? set_largest_size(j < row->n ? row->z_j[j] : row->b) : 0;
    double error = exponent_error(row, far, size);
    double eta = expm1(error) * (1 + row->declared) + row->declared + libm;
    e.own = eta < 1 ? (1 + eta) / (1 - eta) : DBL_MAX;
    double flush =
        smallest_normal(row->s) * row->lift; // a vectorised exp may flush subnormal numbers
    // e^t may be 0 and e^error infinite here, so the exponents are added first
    if (!(eta < 0x1p40)) {
        e.lo = e.likely_lo = 0;
        e.hi = largest_exponential(row, z.hi - row->m, error) + flush;
        e.likely_hi = largest_exponential(row, z.likely_hi - row->m, error) + flush;
        return e;
    }
    flush += 0x1p-1074 * (1 + eta); // what exp loses below 2^-1022 in this evaluation
    if (z.lo != z.hi) {
        e.lo = exp(z.lo - row->m), e.hi = exp(z.hi - row->m);
        e.likely_lo = exp(z.likely_lo - row->m), e.likely_hi = exp(z.likely_hi - row->m);
    }
    e.lo = fmax(e.lo * (1 - eta) - flush, 0), e.hi = e.hi * (1 + eta) + flush;
    e.likely_lo = fmax(e.likely_lo * (1 - eta) - flush, 0);
    e.likely_hi = e.likely_hi * (1 + eta) + flush;
    return e;
}
//< bound.exp

static bool admits_form(const sinkproof_setting *s, sinkproof_point point, int form) {
    return point == AT_A9 && sinkproof_policy_admits(s->policy, SINKPROOF_FORM_OF_A9, form);
}

void add_numerator(numerator *sum, const numerator *e) {
    sum->lo += e->lo, sum->hi += e->hi;
    sum->likely_lo += e->likely_lo, sum->likely_hi += e->likely_hi;
    sum->mid += e->mid;
}

static void find_row_maxima(softmax_row *row) {
    sinkproof_honest top = sinkproof_exact_set(-INFINITY), unshifted = top;
    for (size_t j = 0; j < row->n; j++) {
        top = set_larger(top, row->t_j[j]);
        unshifted = set_larger(unshifted, row->z_j[j]);
    }
    row->keys_lo = top.lo, row->keys_hi = top.hi, row->keys_top = set_largest_size(unshifted);
    top = set_larger(top, row->t_j[row->n]);
    row->m = top.mid, row->m_lo = top.lo, row->m_hi = top.hi;
    row->top = set_largest_size(set_larger(unshifted, row->b));
    row->lift = underflow_lift(row);
    double error = exponent_error(row, 0, row->base_2 ? row->top : 0);
    row->one = 1 - expm1(error) * (1 + row->declared) - row->declared - 0x1p-50;
}

// The forms that an engine may use for the row, and its logits; nothing is computed yet.
softmax_row softmax_row_begin(const sinkproof_setting *s, sinkproof_point point, size_t n,
                              const sinkproof_honest *z_j, sinkproof_honest b) {
    softmax_row row = {.s = s, .n = n, .z_j = z_j, .b = b};
    row.base_2 = admits_form(s, point, SINKPROOF_A9_BASE_2);
    row.running = admits_form(s, point, SINKPROOF_A9_RUNNING_MAX);
    row.lse_subtracted = admits_form(s, point, SINKPROOF_A9_LSE_SUBTRACTED);
    row.lse_gated = admits_form(s, point, SINKPROOF_A9_LSE_GATED) || lse_is_rounded(s, point);
    row.quotient = row.base_2 || row.running || !(row.lse_subtracted || row.lse_gated);
    if (admits_form(s, point, SINKPROOF_FORM_DEFINITION)) row.quotient = true;
    row.declared = s->policy->ulp[SINKPROOF_EXP] * 2 * s->u;
    row.growth = exp_error_growth(s);
    row.declared_log = s->policy->ulp[SINKPROOF_LOG] * 2 * s->u;
    return row;
}

// The logits, minus the row's maximum if the policy rounds the difference, and the maxima.
void shift_by_maximum(softmax_row *row, sinkproof_point point) {
    const sinkproof_setting *s = row->s;
    for (size_t j = 0; j < row->n; j++) row->t_j[j] = row->z_j[j];
    row->t_j[row->n] = row->b; // the sink is one more term of the denominator
    if (point == AT_A9 && s->policy->at[AT_A9_MAX].format != SINKPROOF_REAL)
        logits_subtract_maximum(s, row->n + 1, row->t_j);
    find_row_maxima(row);
}

// Variance and lean of one term's exponent, t = z - m.
static double term_variance(const softmax_row *row, size_t j) {
    double u = row->s->u, t = row->t_j[j].mid - row->m;
    double size = row->base_2 ? (j < row->n ? row->z_j[j].mid : row->b.mid) : 0;
    return row->t_j[j].var + (t * t + 4 * size * size) * u * u / 3;
}

void fill_exponentials(softmax_row *row) {
    for (size_t j = 0; j <= row->n; j++) row->e_j[j] = key_numerator(row, j);
    for (size_t j = 0; row->kept_j != NULL && j < row->n; j++)
        row->kept_j[j] = kept_exponential(row, j, term_variance(row, j));
}

// ---- the effect of a form on the row ------------------------------------------------------------

//> bound.form-running-max
// What n rescalings of a running maximum may add, relatively: in the worst case, and likely. Each
// new maximum multiplies the sum so far by one more exp. The exponents of a term's factors add up
// to t_j, so their roundings stay within exp(|t_j| u), but each factor brings the declared error
// and one rounding: R rescalings err by at most rho = ((1 + declared)(1 + u))^R - 1, R <= n. The
// numerator may be computed by another exp than the term of the denominator, or be rescaled with
// it; so both get rho, and the numerator's own eta no longer cancels. Likely: if the order of the
// keys is independent of their scores, key i is a new maximum with probability 1/i and then
// rescales a share i/n of the sum. E exp(x sum_i B_i i/n) <= exp(e^x - 1): the effective number of
// rescalings exceeds r with probability below exp(r - 1 - r log r), as for a Poisson variable of
// mean 1.
rescaling row_rescaling(const softmax_row *row, double n) {
    if (!row->running) return (rescaling){0, 0};
    double each = log1p(row->declared) + row->s->u;
    double r = 1;
    while (r < n && r * (log(r) - 1) + 1 < row->s->odds) r++;
    return (rescaling){expm1(n * each) * (1 + 0x1p-50), expm1(fmin(r, n) * each)};
}
//< bound.form-running-max

//> bound.form-lse
// How far LSE may be from the log of the computed sum: the log's declared error, the sink's entry
// by one more exp and log1p, and the intermediate roundings: m + log(sum) and max + log1p(...); in
// base 2 also m times the scale, the constants log2(e) and scale on both sides, and LSE times
// log2(e). Each rounds a number of size |m| + log(sum) + 1 at most.
double lse_error(const softmax_row *row, double top, double log_sum) {
    double roundings = sinkproof_gamma(row->base_2 ? 7 : 2, row->s->u);
    double joined = row->declared + row->growth; // of the sink's entry, since x e^-x < 1
    return roundings * (top + log_sum + 1) + row->declared_log * (log_sum + 1) + joined;
}

// alpha_j = exp(z_j - LSE): the error of LSE, and what rounding the difference adds to z_j - m.
static double subtraction_error(const softmax_row *row) {
    double difference = sinkproof_gamma(row->base_2 ? 3 : 1, row->s->u) * (row->log_sum + 1);
    double error = lse_error(row, row->top, row->log_sum) * (1 + row->s->u) + difference;
    return error + grown_error(row, row->log_sum + error); // |z - LSE| <= |z - m| + log of the sum
}

// The error of LSE - b (LSE of the keys alone) and of the sigmoid's exponential, as exponents.
static double gate_error(const softmax_row *row) {
    const sinkproof_honest *b = &row->t_j[row->n];
    if (b->lo == -INFINITY) return 0; // no sink: the gate is open
    double argument =
        fmax(fabs(row->keys_hi + row->log_keys - b->lo), fabs(b->hi - row->keys_lo)) + 1;
    return lse_error(row, row->keys_top, row->log_keys) * (1 + row->s->u) +
           sinkproof_gamma(1, row->s->u) * argument + grown_error(row, argument) -
           log1p(-row->declared);
}
//< bound.form-lse

static range range_hull(range x, range y) {
    return (range){fmin(x.lo, y.lo), fmax(x.hi, y.hi)};
}

// The factors that the relative error `sum` of a row's sum, and rescalings, rho, leave of a
// quotient with `roundings` of its own.
static range quotient_factors(double sum, double rho, double roundings) {
    double lo = (1 - roundings) / ((1 + sum) * (1 + rho)) * fmax(1 - rho, 0);
    bool bounded = rho < 1 && sum < 1;
    return (range){lo, bounded ? (1 + roundings) / ((1 - sum) * (1 - rho)) * (1 + rho) : INFINITY};
}

// e / (e + others): largest when the term is largest and the others are smallest.
static range range_share(range e, range others, double own) {
    double lo = e.lo > 0 ? e.lo / (e.lo * own + others.hi) : 0;
    return (range){lo, isfinite(e.hi) ? e.hi / (e.hi / own + others.lo) : own};
}

static range scale(range x, range y) {
    return (range){x.lo * y.lo, x.hi * y.hi};
}

static range numerator_ends(const numerator *e, bool likely) {
    return likely ? (range){e->likely_lo, e->likely_hi} : (range){e->lo, e->hi};
}

// The data that all weights of a row share, in the worst case or likely: the sums of numerators and
// the factors of each form.
typedef struct summed {
    bool likely;
    double here; // relative error of evaluating the sums here
    range keys, all;
    range quotient, subtraction, gate; // factors of a key's weight
    range sink; // sigmoid(b - LSE), the sink's whole weight in the gated form
} summed;

// A sum minus one of its terms. The evaluation's relative error `here` is subtracted as well.
static range range_minus(range sum, range e, double here) {
    return (range){fmax(sum.lo * (1 - here) - e.lo, 0), sum.hi * (1 + here) - e.hi};
}

static range kept_share(const softmax_row *row, size_t j, const summed *w, range others) {
    const sinkproof_honest *k = &row->kept_j[j];
    range kept = w->likely ? (range){k->likely_lo, k->likely_hi} : (range){k->lo, k->hi};
    range share = kept_range_share(kept, numerator_ends(&row->e_j[j], w->likely), others);
    return (range){share.lo, fmin(share.hi, most_of_kept_share(row, j))};
}

//> bound.softmax-sink
// alpha_j = e_j / sum with two roundings, a reciprocal and a product, or as the policy declares.
static range quotient_range(const softmax_row *row, size_t j, const summed *w) {
    range e = numerator_ends(&row->e_j[j], w->likely);
    double own = row->running ? row->e_j[j].own : 1;
    range others = range_minus(w->all, e, w->here);
    if (row->kept_j != NULL && j < row->n) return scale(kept_share(row, j, w, others), w->quotient);
    range a = scale(range_share(e, others, own), w->quotient);
    return (range){a.lo, fmin(a.hi, most_of_quotient(row->s))};
}
//< bound.softmax-sink

//> bound.form-lse
// Bounds of e^x and e^-x for an exponent with an error of at most x.
static range exponent_factors(double x) {
    return (range){fmax(1 - x, 0), x < 1 ? 1 / (1 - x) : INFINITY};
}

// The errors of LSE and of the difference are factors.
static range weight_by_subtraction(const softmax_row *row, size_t j, const summed *w) {
    range e = numerator_ends(&row->e_j[j], w->likely), others = range_minus(w->all, e, w->here);
    return scale(range_share(e, others, row->e_j[j].own), w->subtraction);
}

// alpha_j = e_j / (sum over keys) times sigmoid(LSE - b), alpha_s = sigmoid(b - LSE).
static range weight_by_gate(const softmax_row *row, size_t j, const summed *w) {
    if (j == row->n) return w->sink;
    range e = numerator_ends(&row->e_j[j], w->likely), others = range_minus(w->keys, e, w->here);
    if (row->kept_j != NULL) return scale(kept_share(row, j, w, others), w->gate);
    return scale(range_share(e, others, row->e_j[j].own), w->gate);
}

// An error xi of LSE - b multiplies the sink's exponential by e^xi. Five roundings: the two of the
// quotient, 1 + E, the sigmoid's quotient, and the product.
static void bound_gate(const softmax_row *row, double sum, double rho, summed *w) {
    double roundings = quotients_error(row->s, 5, 2, 2);
    range keys = {w->keys.lo * (1 - w->here), w->keys.hi * (1 + w->here)};
    range sink = scale(numerator_ends(&row->sink, w->likely), exponent_factors(row->gate));
    sink = scale(sink, quotient_factors(sum, rho, 0));
    w->sink = scale(range_share(sink, keys, 1), (range){1 - roundings, 1 + roundings});
    w->gate = scale(range_share(keys, sink, 1), quotient_factors(sum, rho, roundings));
}
//< bound.form-lse

// Relative errors of the sum and of rescalings, rho.
static summed bound_sum(const softmax_row *row, double sum, double rho, bool likely, double here) {
    summed w = {.likely = likely, .here = here, .keys = numerator_ends(&row->keys, likely)};
    range sink = numerator_ends(&row->sink, likely);
    w.all = (range){w.keys.lo + sink.lo, w.keys.hi + sink.hi};
    w.quotient = quotient_factors(sum, rho, quotients_error(row->s, 2, 0, 1));
    w.subtraction = scale(quotient_factors(sum, rho, 0), exponent_factors(row->subtraction));
    if (row->lse_gated) bound_gate(row, sum, rho, &w);
    return w;
}

// The hull over the forms; if the last step is an exponential, the result may be flushed.
static range weight_range(const softmax_row *row, size_t j, const summed *w) {
    range a = {INFINITY, 0};
    if (row->e_j[j].hi == 0) return (range){0, 0};
    if (row->quotient) a = quotient_range(row, j, w);
    if (row->lse_subtracted) a = range_hull(a, weight_by_subtraction(row, j, w));
    if (row->lse_gated) a = range_hull(a, weight_by_gate(row, j, w));
    if (!row->lse_subtracted && !row->lse_gated) return a;
    double flush = smallest_normal(row->s);
    return (range){fmax(a.lo - flush, 0), a.hi + flush};
}

static void sum_numerators(softmax_row *row) {
    for (size_t j = 0; j < row->n; j++) add_numerator(&row->keys, &row->e_j[j]);
    gate_round_lse(row);
    add_numerator(&row->sink, &row->e_j[row->n]);
    row->log_sum = log(fmax(row->keys.hi + row->sink.hi, 1)) + row->m_hi - row->m_lo + 0x1p-40;
    row->log_keys = fmax(log(row->keys.hi) + row->m - row->keys_lo, 0) + 0x1p-40;
    row->subtraction = subtraction_error(row), row->gate = gate_error(row);
}

// ---- the row's weights --------------------------------------------------------------------------

// The errors of a row that its elements share, or that lean: relative, and as a variance.
typedef struct row_errors {
    double leaning, fourth; // of the sum; sum of the squared weights
    double var, bias;       // of the denominator's terms
    double form;            // lean of every element that forms and quotients add
    double distance;        // sum_j alpha_j |t_j|
} row_errors;

static row_errors row_error_sums(const softmax_row *row, double total) {
    row_errors r = {.form = (row->lse_gated ? 2 : row->quotient) * declared_quotient(row->s)};
    error_lean lean = lean_of_rounded_sum(total, row->s->u);
    for (size_t j = 0; j <= row->n; j++) {
        double a = row->e_j[j].mid / total;
        if (!(a > 0)) continue;
        r.fourth += a * a;
        lean_add(&lean, row->e_j[j].mid);
        r.var += a * a * term_variance(row, j);
        r.bias += a * row->t_j[j].bias;
        r.distance += a * fabs(row->t_j[j].mid - row->m);
    }
    r.leaning = lean_result(&lean) / total;
    if (row->base_2) r.form += sinkproof_gamma(2, row->s->u) * r.distance;
    if (row->lse_subtracted) r.form += row->subtraction;
    return r;
}

// The further lean of element j, relative: the exponentials' declared errors, upward and downward
// (a running maximum rescales a term once more on average), log2(e), the gate's argument.
static double lean_of_element(const softmax_row *row, const row_errors *r, size_t j, double a) {
    double t = fabs(row->t_j[j].mid - row->m);
    double lean = (row->running ? 4 : 2) * row->declared + r->leaning + row->t_j[j].bias + r->bias;
    lean += grown_error(row, t) + row->growth * r->distance;
    if (row->base_2) lean += sinkproof_gamma(2, row->s->u) * t;
    double a_sink = row->sink.mid / (row->sink.mid + row->keys.mid);
    if (row->lse_gated) lean += row->gate * (j < row->n ? a_sink : 1 - a);
    return lean + r->form;
}

// Unbounded scores leave arbitrary weights: up to exp(z - LSE) of the largest score, or up to 1 and
// the quotient's roundings.
static sinkproof_honest unbounded_weights(const sinkproof_setting *s, sinkproof_point point,
                                          size_t n, const sinkproof_honest *z_j,
                                          sinkproof_honest b) {
    softmax_row row = softmax_row_begin(s, point, n, z_j, b);
    row.log_sum = log((double)n + 1);
    row.top = b.hi == -INFINITY ? 0 : set_largest_size(b);
    for (size_t j = 0; j < n; j++) row.top = fmax(row.top, set_largest_size(z_j[j]));
    double x = subtraction_error(&row) + exponent_error(&row, 2 * row.top, row.top);
    double most = most_of_quotient(s);
    if (rounds_exponentials(&row, point))
        most *= 1 + sinkproof_unit_roundoff(s->policy->at[AT_A9_UNNORM].format);
    double left = (1 - x) * (1 - sinkproof_gamma((double)n, s->u));
    if (row.lse_subtracted)
        most = x < 1 && left > 0 ? fmax(most, (1 + row.declared) / left) : DBL_MAX;
    return sinkproof_honest_at(s, point,
                               (sinkproof_honest){0, most, 0, most, 0.5, 0, 0, INFINITY, 0});
}

// The divisor of a row's weights.
typedef struct denominator {
    double total, common; // the emulation; the relative variance that all weights share
    row_errors errors;
    summed worst_case, at_odds;
} denominator;

//> bound.softmax-sink
static denominator row_denominator(const softmax_row *row) {
    const sinkproof_setting *s = row->s;
    double k = (double)row->n + 1, total = row->keys.mid + row->sink.mid;
    double here = sinkproof_gamma(2 * k + 8, 0x1p-53); // the error of this evaluation
    row_errors r = row_error_sums(row, total);
    rescaling rho = row_rescaling(row, k - 1);
    double partial = s->u * s->u * (k / 3 + k * r.fourth / 6);
    double gamma = sinkproof_gamma(k - 1, s->u) + 2 * here;
    double likely = fmin(gamma, sqrt(2 * s->odds * partial) + r.leaning + 2 * here);
    return (denominator){.total = total,
                         .common = partial / 3 + r.var,
                         .errors = r,
                         .worst_case = bound_sum(row, gamma, rho.worst, false, here),
                         .at_odds = bound_sum(row, likely, rho.likely, true, here)};
}

static sinkproof_honest weight_quotient(const softmax_row *row, const denominator *d, size_t j) {
    sinkproof_honest a = sinkproof_exact_set(row->e_j[j].mid / d->total);
    if (!(row->e_j[j].hi > 0)) return a;
    range worst = weight_range(row, j, &d->worst_case);
    range probable = weight_range(row, j, &d->at_odds);
    a.lo = worst.lo, a.hi = worst.hi;
    a.likely_lo = probable.lo, a.likely_hi = probable.hi;
    double own = a.mid > 0 ? term_variance(row, j) : 0, u = row->s->u, bias = 0;
    if (row->kept_j != NULL && j < row->n && a.mid > 0) {
        const sinkproof_honest *kept = &row->kept_j[j];
        a.mid = kept->mid / d->total;
        own = kept->mid > 0 ? kept->var / (kept->mid * kept->mid) : 0, bias = kept->bias / d->total;
    }
    a.var = a.spread = a.mid * a.mid * (own + 2 * u * u / 3);
    if (a.mid > 0) a.bias = a.mid * lean_of_element(row, &d->errors, j, a.mid) + bias;
    return a;
}

// Rounded before the division and after it; or, where the policy lets an engine choose, the hull of
// what is rounded after it and what is rounded before.
static sinkproof_honest rounded_weight(const softmax_row *row, const denominator *d,
                                       sinkproof_point point, size_t j) {
    const sinkproof_setting *s = row->s;
    sinkproof_honest a = sinkproof_honest_inside(s, weight_quotient(row, d, j));
    if (row->kept_j == NULL || !sinkproof_policy_rounds_weights_once(s->policy))
        return sinkproof_honest_at(s, point, a);
    softmax_row divided = *row;
    divided.kept_j = NULL;
    sinkproof_honest after = sinkproof_honest_inside(s, weight_quotient(&divided, d, j));
    return sinkproof_honest_hull(sinkproof_honest_at(s, point, after), a);
}

bool sinkproof_honest_softmax(const sinkproof_setting *s, sinkproof_point point, size_t n,
                              const sinkproof_honest *z_j, sinkproof_honest b,
                              sinkproof_honest *alpha_j, double *common) {
    *common = 0;
    bool nan = weights_may_be_nan(n, z_j, b);
    if (nan || scores_exceed_exp(n, z_j, b)) {
        sinkproof_honest any =
            nan ? sinkproof_unknown_set(0.5) : unbounded_weights(s, point, n, z_j, b);
        for (size_t j = 0; j <= n; j++) alpha_j[j] = any;
        return true;
    }
    softmax_row row = softmax_row_begin(s, point, n, z_j, b);
    row.t_j = malloc((n + 1) * sizeof *row.t_j);
    row.e_j = malloc((n + 1) * sizeof *row.e_j);
    bool rounds = rounds_exponentials(&row, point);
    if (rounds) row.kept_j = malloc((n + 1) * sizeof *row.kept_j);
    bool fine = row.t_j != NULL && row.e_j != NULL && rounds == (row.kept_j != NULL);
    if (fine) {
        shift_by_maximum(&row, point);
        fill_exponentials(&row);
        sum_numerators(&row);
        denominator d = row_denominator(&row);
        *common = d.common;
        for (size_t j = 0; j <= n; j++) alpha_j[j] = rounded_weight(&row, &d, point, j);
    }
    free(row.t_j), free(row.e_j), free(row.kept_j);
    return fine;
}
//< bound.softmax-sink
