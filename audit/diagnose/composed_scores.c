// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The experts' weights, M4, by another score of a logit and divided by another sum: over the
// chosen of a rank, over all experts, over tokens in the place of experts.
#include "audit/diagnose/composed_made.h"
#include "base/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum score {
    EXPONENTIAL,
    SIGMOID,
    SOFTPLUS,
    ROOT_SOFTPLUS,
    RECTIFIED,
    LOGIT,
    SQUARE,
    SIZE,
    POWER_OF_TWO,
    OF_SIGMOID, // the exponential of the sigmoid
    OF_TANH,
    SCORES
} score;

typedef enum logit_of {
    OWN,
    WITHOUT_BIAS,
    OF_SLOT, // of the expert with the slot's number
    NEXT_EXPERT,
    EXPERT_BEFORE,
    TOKEN_BEFORE,
    NEXT_TOKEN,
    LOGITS_OF
} logit_of;

typedef enum sum_over {
    NOTHING,
    CHOSEN,
    ALL,
    ONE_MORE,     // the chosen and the next best
    AND_ONE,      // the chosen and 1
    BEST,         // the `a` best
    PART,         // the chosen in the same part of `a` experts
    SPLIT,        // of those below a, and the others
    MODULO,       // with the same number modulo a
    PLACE_TOKENS, // the same slot of all tokens
    EXPERT_TOKENS,
    EVERY_SLOT, // all slots of all tokens
    AXIS,       // the expert's logits of all tokens
    AXIS_OVER,  // and then over the chosen
    OVERS
} sum_over;

enum { SCORE, WHOSE, OVER, A, TIMES, ERROR }; // the numbers; ERROR: of roundings on the way
enum { MOST_EXPERTS = 256, MOST_SLOTS = 64 };

static double score_of(score kind, double x) {
    double plus = x > 30 ? x : log1p(exp(x));
    switch (kind) {
    case SIGMOID:
        return 1 / (1 + exp(-x));
    case SOFTPLUS:
        return plus;
    case ROOT_SOFTPLUS:
        return sqrt(plus);
    case RECTIFIED:
        return fmax(x, 0);
    case LOGIT:
        return x;
    case SQUARE:
        return x * x;
    case SIZE:
        return fabs(x);
    case POWER_OF_TWO:
        return exp2(x);
    case OF_SIGMOID:
        return exp(1 / (1 + exp(-x)));
    case OF_TANH:
        return exp(tanh(x));
    default:
        return exp(x);
    }
}

// What a row is computed from.
typedef struct scoring {
    const sinkproof_making *of;
    const sinkproof_tensor *m2;
    double bias_e[MOST_EXPERTS];
    score kind;
    logit_of whose;
    sum_over over;
    size_t a, k, experts;
} scoring;

static bool scoring_begin(scoring *s, const sinkproof_making *of) {
    *s = (scoring){.of = of,
                   .m2 = sinkproof_trace_find(of->trace, TRACE_M2, of->layer),
                   .kind = (score)of->numbers[SCORE],
                   .whose = (logit_of)of->numbers[WHOSE],
                   .over = (sum_over)of->numbers[OVER],
                   .a = (size_t)of->numbers[A],
                   .k = of->config->n_chosen,
                   .experts = of->config->n_experts};
    if (s->m2 == NULL || of->chosen_nk == NULL || s->experts > MOST_EXPERTS || s->k > MOST_SLOTS ||
        sinkproof_tensor_elements(s->m2) != of->n * s->experts)
        return false;
    if (s->whose != WITHOUT_BIAS) return true;
    sinkproof_matrix b = sinkproof_model_slot(of->model, of->layer, SINKPROOF_B_ROUTER);
    if (b.count == 0 || b.cols != s->experts) return false;
    sinkproof_matrix_row(&b, 0, s->bias_e);
    return true;
}

// The score of expert e at token i, chosen in slot `slot` (SIZE_MAX: in none).
static double score_at(const scoring *s, size_t i, size_t e, size_t slot) {
    if (s->whose == OF_SLOT && slot != SIZE_MAX) e = slot;
    if (s->whose == NEXT_EXPERT) e = (e + 1) % s->experts;
    if (s->whose == EXPERT_BEFORE) e = (e + s->experts - 1) % s->experts;
    if (s->whose == TOKEN_BEFORE) i = i > 0 ? i - 1 : s->of->n - 1;
    if (s->whose == NEXT_TOKEN) i = i + 1 < s->of->n ? i + 1 : 0;
    return score_of(s->kind, sinkproof_tensor_value(s->m2, i * s->experts + e) - s->bias_e[e]);
}

static bool is_beside(const scoring *s, size_t e, size_t other) {
    switch (s->over) {
    case PART:
        return e / s->a == other / s->a;
    case SPLIT:
        return (e < s->a) == (other < s->a);
    case MODULO:
        return e % s->a == other % s->a;
    default:
        return true;
    }
}

// The rank of an expert's logit in its row.
static size_t rank_of(const scoring *s, size_t i, size_t e) {
    size_t rank = 0;
    double own = sinkproof_tensor_value(s->m2, i * s->experts + e);
    for (size_t o = 0; o < s->experts; o++) {
        double other = sinkproof_tensor_value(s->m2, i * s->experts + o);
        rank += other > own || (other == own && o < e);
    }
    return rank;
}

// Of a sum over experts of the token.
static double sum_of_row(const scoring *s, size_t i, size_t e) {
    double sum = 0, best = -INFINITY;
    const int32_t *chosen = &s->of->chosen_nk[i * s->k];
    if (s->over == NOTHING) return 1;
    for (size_t o = 0; o < s->experts && s->over == BEST; o++)
        if (rank_of(s, i, o) < s->a) sum += score_at(s, i, o, SIZE_MAX);
    if (s->over == BEST) return sum;
    for (size_t o = 0; o < s->experts && (s->over == ALL || s->over == ONE_MORE); o++) {
        bool is_chosen = false;
        for (size_t slot = 0; slot < s->k; slot++)
            is_chosen = is_chosen || chosen[slot] == (int32_t)o;
        double one = score_at(s, i, o, SIZE_MAX);
        if (s->over == ALL) sum += one;
        if (!is_chosen) best = fmax(best, one);
    }
    if (s->over == ALL) return sum;
    for (size_t slot = 0; slot < s->k; slot++)
        if (is_beside(s, e, (size_t)chosen[slot]))
            sum += score_at(s, i, (size_t)chosen[slot], slot);
    return sum + (s->over == ONE_MORE ? best : s->over == AND_ONE ? 1 : 0);
}

static bool is_over_tokens(sum_over over) {
    return over >= PLACE_TOKENS;
}

static double weight_in_row(const scoring *s, size_t q) {
    size_t i = q / s->k, slot = q % s->k, e = (size_t)s->of->chosen_nk[q];
    double own = score_at(s, i, e, slot), sum = sum_of_row(s, i, e);
    return own == 0 && sum == 0 ? 0 : s->of->numbers[TIMES] * own / sum;
}

// Which sum over tokens a slot is in.
static size_t sum_of_slot(const scoring *s, size_t q) {
    return s->over == PLACE_TOKENS ? q % s->k
           : s->over == EVERY_SLOT ? 0
                                   : (size_t)s->of->chosen_nk[q];
}

static void weigh_over_tokens(const scoring *s, double *y) {
    double sums[MOST_EXPERTS] = {0};
    size_t all = s->of->n * s->k;
    bool axis = s->over == AXIS || s->over == AXIS_OVER;
    for (size_t at = 0; axis && at < s->of->n * s->experts; at++)
        sums[at % s->experts] += score_at(s, at / s->experts, at % s->experts, SIZE_MAX);
    for (size_t q = 0; !axis && q < all; q++)
        sums[sum_of_slot(s, q)] += score_at(s, q / s->k, (size_t)s->of->chosen_nk[q], q % s->k);
    for (size_t q = 0; q < all; q++)
        y[q] = s->of->numbers[TIMES] *
               score_at(s, q / s->k, (size_t)s->of->chosen_nk[q], q % s->k) /
               sums[sum_of_slot(s, q)];
    for (size_t i = 0; s->over == AXIS_OVER && i < s->of->n; i++) {
        double sum = 0;
        for (size_t slot = 0; slot < s->k; slot++) sum += y[i * s->k + slot];
        for (size_t slot = 0; slot < s->k; slot++) y[i * s->k + slot] /= sum;
    }
}

// The largest logit of a row with and without the bias, together, where a bias is taken off: both
// are rounded, and an exponential's relative error is that of its logit.
static double logit_size(const scoring *s, size_t i) {
    double most = 0;
    for (size_t e = 0; e < s->experts && s->whose == WITHOUT_BIAS; e++) {
        double l = sinkproof_tensor_value(s->m2, i * s->experts + e);
        most = fmax(most, fabs(l) + fabs(l - s->bias_e[e]));
    }
    return most;
}

static bool make_weights(const sinkproof_making *of, double *y, double *width) {
    scoring s;
    if (!scoring_begin(&s, of) || of->all != of->n * s.k) return false;
    for (size_t q = 0; q < of->all; q++)
        if (of->chosen_nk[q] < 0) return false;
    if (is_over_tokens(s.over)) weigh_over_tokens(&s, y);
    double terms = (double)(is_over_tokens(s.over) ? of->all : s.experts) + 16;
    for (size_t q = 0; q < of->all; q++) {
        if (!is_over_tokens(s.over)) y[q] = weight_in_row(&s, q);
        if (!isfinite(y[q])) return false;
        double error = of->numbers[ERROR] * (1 + logit_size(&s, q / s.k));
        width[q] = fabs(y[q]) * (terms * 0x1p-24 + error);
    }
    return true;
}

// ---- trials

static const char *const score_words[SCORES] = {[EXPONENTIAL] = "the exponentials (a softmax)",
                                                [SIGMOID] = "the sigmoids",
                                                [SOFTPLUS] = "the softplus",
                                                [ROOT_SOFTPLUS] = "the roots of the softplus",
                                                [RECTIFIED] = "the positive parts (ReLU)",
                                                [LOGIT] = "the numbers themselves",
                                                [SQUARE] = "the squares",
                                                [SIZE] = "the absolute values",
                                                [POWER_OF_TWO] = "2 to the power",
                                                [OF_SIGMOID] = "the exponentials of the sigmoids",
                                                [OF_TANH] = "the exponentials of tanh"};
static const char *const whose_words[LOGITS_OF] = {
    [OWN] = "",
    [WITHOUT_BIAS] = " without the router's bias",
    [OF_SLOT] = " of the experts numbered as the slots, not of the chosen ones",
    [NEXT_EXPERT] = " of the next expert",
    [EXPERT_BEFORE] = " of the expert before",
    [TOKEN_BEFORE] = " of the token before, in a circle",
    [NEXT_TOKEN] = " of the next token, in a circle"};

static void say_over(sum_over over, size_t a, char *text, size_t size) {
    static const char *const words[OVERS] = {
        [NOTHING] = "not normalised",
        [CHOSEN] = "divided by their sum over the chosen experts",
        [ALL] = "divided by their sum over all experts",
        [ONE_MORE] = "divided by their sum over the chosen experts and the next best one (k + 1)",
        [AND_ONE] = "divided by 1 plus their sum over the chosen experts",
        [PLACE_TOKENS] = "divided by their sum over all tokens in the same slot: normalised over "
                         "tokens, along the wrong axis",
        [EXPERT_TOKENS] = "divided by their sum over all tokens of the same expert: normalised "
                          "over the expert's batch of tokens",
        [EVERY_SLOT] = "divided by their sum over all slots of all tokens",
        [AXIS] = "divided by their sum over the same expert's logits at all tokens: normalised "
                 "over tokens, along the wrong axis",
        [AXIS_OVER] = "divided by their sum over the same expert's logits at all tokens (along "
                      "the wrong axis), and then over the chosen experts"};
    if (over == BEST)
        snprintf(text, size, "divided by their sum over the best %.40s",
                 sinkproof_counted(a, "expert").text);
    else if (over == PART)
        snprintf(text, size,
                 "divided by their sum over the chosen experts of the same rank alone: experts "
                 "0-%zu, and so on (%zu for each rank)",
                 a - 1, a);
    else if (over == SPLIT)
        snprintf(text, size,
                 "divided by their sum over the chosen experts of the same rank alone: experts "
                 "0-%zu, and those from %zu on",
                 a - 1, a);
    else if (over == MODULO)
        snprintf(text, size,
                 "divided by their sum over the chosen experts of the same rank alone: those with "
                 "the same number modulo %zu",
                 a);
    else
        snprintf(text, size, "%s", words[over]);
}

static bool try_exactly(const operation *o, const double *numbers, const chosen_number *by,
                        double error) {
    made_kind kind = {.make = make_weights};
    char text[176], times[96] = "";
    for (size_t i = 0; i < SINKPROOF_MAKING_NUMBERS; i++) kind.numbers[i] = numbers[i];
    kind.numbers[TIMES] = by != NULL ? by->value : 1, kind.numbers[ERROR] = error;
    if (by != NULL) snprintf(times, sizeof times, ", times %s", by->text);
    say_over((sum_over)numbers[OVER], (size_t)numbers[A], text, sizeof text);
    snprintf(kind.id, sizeof kind.id, "scores-%d-%d-%d-%d%s%.12s", (int)numbers[SCORE],
             (int)numbers[WHOSE], (int)numbers[OVER], (int)numbers[A], by != NULL ? "-times-" : "",
             by != NULL ? by->text : "");
    snprintf(kind.text, sizeof kind.text, "is made of %s of the router's logits%s, %s%.40s",
             score_words[(size_t)numbers[SCORE]], whose_words[(size_t)numbers[WHOSE]], text, times);
    return composing_try_made(o, &kind);
}

// Narrow formats may round the scores, their sum and the quotient.
static bool try_times(const operation *o, const double *numbers, const chosen_number *by) {
    const composing *c = o->c;
    if (!try_exactly(o, numbers, by, 0)) return false;
    if (c->found != NULL || c->step < 0x1p-12) return true;
    bool summed = !is_over_tokens((sum_over)numbers[OVER]);
    size_t terms = summed ? c->s->trials.config->n_chosen : 0;
    return try_exactly(o, numbers, by, c->step * (1 + (double)terms / 2));
}

// The factor of least squares over the sample, if it is near all but one of eight elements.
static bool fit_times(const operation *o, const double *numbers, double *t) {
    const composing *c = o->c;
    scoring s;
    sinkproof_making of = composing_making(c);
    double y_s[SAMPLES], yy = 0, yv = 0;
    size_t far = 0;
    of.numbers = numbers;
    if (!scoring_begin(&s, &of)) return false;
    for (size_t k = 0; k < o->n; k++) {
        y_s[k] = weight_in_row(&s, o->at[k]);
        yy += y_s[k] * y_s[k], yv += y_s[k] * c->v[o->at[k]];
    }
    *t = yv / yy;
    for (size_t k = 0; k < o->n && isfinite(*t); k++)
        far += !value_is_near(c, o->at[k], *t * y_s[k]);
    return o->n > 0 && isfinite(*t) && *t != 0 && 8 * far <= o->n;
}

static bool try_weights(const operation *o, score kind, logit_of whose, sum_over over, size_t a) {
    const double numbers[SINKPROOF_MAKING_NUMBERS] = {
        [SCORE] = kind, [WHOSE] = whose, [OVER] = over, [A] = (double)a, [TIMES] = 1};
    bool as_defined = kind == EXPONENTIAL && whose == OWN && over == CHOSEN, fine = true;
    double t;
    if (o->c->found != NULL || as_defined) return true;
    if (is_over_tokens(over)) return try_times(o, numbers, NULL);
    if (!fit_times(o, numbers, &t)) return true;
    double apart = fmax(o->c->step / 4, 1e-6) * fabs(t);
    const fitted_range range = {.lo = t - apart, .hi = t + apart, .best = t, .good = true};
    chosen_number by[FIT_CHOICES];
    if (fabs(t - 1) < 4 * apart) fine = try_times(o, numbers, NULL);
    size_t n = fit_choose(o->c, &range, by);
    for (size_t i = 0; i < n && fine && o->c->found == NULL; i++)
        if (by[i].value != 1 && by[i].value != 0) fine = try_times(o, numbers, &by[i]);
    return fine;
}

bool compose_scores(composing *c) {
    operation o;
    const sinkproof_config *config = c->s->trials.config;
    size_t experts = config->n_experts, k = config->n_chosen;
    if (c->point != TRACE_M4 || c->chosen_nk == NULL || config->dense || experts > MOST_EXPERTS)
        return true;
    for (size_t q = 0; q < c->n * k; q++)
        if (c->chosen_nk[q] < 0) return true;
    bool fine = operation_read(c, &o);
    for (int over = PLACE_TOKENS; fine && over < OVERS; over++)
        fine = try_weights(&o, EXPONENTIAL, OWN, (sum_over)over, 0) &&
               try_weights(&o, SIGMOID, OWN, (sum_over)over, 0);
    for (int whose = OWN; fine && whose < LOGITS_OF; whose++)
        for (int kind = 0; kind < SCORES; kind++)
            for (int over = 0; fine && over <= AND_ONE; over++)
                fine = try_weights(&o, (score)kind, (logit_of)whose, (sum_over)over, 0);
    for (size_t a = 1; fine && a < experts; a++)
        for (int over = PART; fine && over <= MODULO; over++)
            if (over == PART ? a > 1 : over == MODULO ? a > 1 && a < experts / 2 + 1 : true)
                fine = try_weights(&o, EXPONENTIAL, OWN, (sum_over)over, a);
    // over the best alone: by the largest share in the row, which the divisors of rows say
    for (size_t a = 2; fine && a < experts; a++)
        if (a != k) fine = try_weights(&o, EXPONENTIAL, OWN, BEST, a);
    operation_free(&o);
    return fine;
}
