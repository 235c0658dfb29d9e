// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The sum over the experts with other shares, or in which what some experts or slots give comes
// from another token, or comes to it once more.
#include "audit/diagnose/composed_made.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- shares

typedef enum share_kind {
    EQUAL,
    ONES,
    OF_ALL,        // softmax over all experts
    SIGMOIDS,      // of the logits
    SIGMOIDS_OVER, // over their sum
    LOGITS,
    OVER_LARGEST,
    BY_FIRST, // each slot has the share of the first
    BY_LAST,
    COMPLEMENT, // 1 - w
    SQUARED,
    ROOTS,
    ONE_HOT,    // 1 for the first, 0 for the others
    ABOVE,      // 0 below b
    ABOVE_OVER, // and divided by their sum
    UP_TO,      // 0 where the larger ones add up to b or more
    UP_TO_OVER, // and divided by their sum
    BEST_OVER,  // the b largest, divided by their sum
    POWER_OVER, // to the power b, divided by their sum
    OF_STEPS,   // rounded to multiples of 1/b
    SHARE_KINDS
} share_kind;

enum { SHARE, B, ERROR, STEP = 5 }; // the numbers; ERROR: of roundings on the way

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static double softmax_over_all(const sinkproof_tensor *m2, size_t experts, size_t i, size_t e) {
    double largest = -INFINITY, sum = 0;
    for (size_t o = 0; o < experts; o++)
        largest = fmax(largest, sinkproof_tensor_value(m2, i * experts + o));
    for (size_t o = 0; o < experts; o++)
        sum += exp(sinkproof_tensor_value(m2, i * experts + o) - largest);
    return exp(sinkproof_tensor_value(m2, i * experts + e) - largest) / sum;
}

// The sum of the larger shares of the token; *rank: their number.
static double larger_shares(const sinkproof_making *of, size_t q, size_t *rank) {
    size_t k = of->config->n_chosen;
    double sum = 0;
    *rank = 0;
    for (size_t s = q / k * k; s < q / k * k + k; s++)
        if (of->x[s] > of->x[q] || (of->x[s] == of->x[q] && s < q)) sum += of->x[s], ++*rank;
    return sum;
}

// Whether a share is not set to 0.
static bool is_kept(const sinkproof_making *of, share_kind kind, size_t q) {
    size_t rank;
    if (kind >= POWER_OVER) return true;
    if (kind == ABOVE || kind == ABOVE_OVER) return of->x[q] >= of->numbers[B];
    double before = larger_shares(of, q, &rank);
    return kind == BEST_OVER ? (double)rank < of->numbers[B] : before < of->numbers[B];
}

static double share_of(const sinkproof_making *of, const sinkproof_tensor *m2, size_t q) {
    size_t k = of->config->n_chosen, experts = of->config->n_experts, i = q / k;
    size_t e = (size_t)of->chosen_nk[q];
    share_kind kind = (share_kind)of->numbers[SHARE];
    double own = of->x[q], largest = 0, sum = 0, kept = 0;
    double logit = m2 != NULL ? sinkproof_tensor_value(m2, i * experts + e) : NAN;
    for (size_t s = i * k; s < i * k + k; s++) {
        size_t other = (size_t)of->chosen_nk[s];
        largest = fmax(largest, of->x[s]);
        if (kind >= ABOVE && is_kept(of, kind, s))
            kept += kind == POWER_OVER ? pow(of->x[s], of->numbers[B]) : of->x[s];
        sum += m2 != NULL ? sigmoid(sinkproof_tensor_value(m2, i * experts + other)) : NAN;
    }
    switch (kind) {
    case EQUAL:
        return 1 / (double)k;
    case ONES:
        return 1;
    case OF_ALL:
        return m2 != NULL ? softmax_over_all(m2, experts, i, e) : NAN;
    case SIGMOIDS:
        return sigmoid(logit);
    case SIGMOIDS_OVER:
        return sigmoid(logit) / sum;
    case LOGITS:
        return logit;
    case OVER_LARGEST:
        return own / largest;
    case BY_FIRST:
        return of->x[i * k];
    case BY_LAST:
        return of->x[i * k + k - 1];
    case COMPLEMENT:
        return 1 - own;
    case SQUARED:
        return own * own;
    case ONE_HOT:
        return q % k == 0;
    case ABOVE:
    case UP_TO:
        return is_kept(of, kind, q) ? own : 0;
    case OF_STEPS:
        return nearbyint(own * of->numbers[B]) / of->numbers[B];
    case POWER_OVER:
        return pow(own, of->numbers[B]) / kept;
    case ABOVE_OVER:
    case UP_TO_OVER:
    case BEST_OVER:
        return is_kept(of, kind, q) ? own / kept : 0;
    default:
        return sqrt(own);
    }
}

static bool make_shares(const sinkproof_making *of, double *y, double *width) {
    const sinkproof_tensor *m2 = sinkproof_trace_find(of->trace, TRACE_M2, of->layer);
    for (size_t q = 0; of->chosen_nk != NULL && q < of->all; q++) {
        if (of->chosen_nk[q] < 0) return false;
        y[q] = sinkproof_round(SINKPROOF_F32, share_of(of, m2, q));
        width[q] = (of->numbers[ERROR] + 0x1p-22) * fabs(y[q]); // a sum and a quotient
        if (!isfinite(y[q])) return false;
    }
    return of->chosen_nk != NULL;
}

// M11 with such shares. An input is read as it is made: what a sum and a quotient round is in the
// widths of the result.
static bool make_mixture(const sinkproof_making *of, double *y, double *width) {
    const sinkproof_tensor *m4 = sinkproof_trace_find(of->trace, TRACE_M4, of->layer);
    const sinkproof_tensor *m10 = sinkproof_trace_find(of->trace, TRACE_M10, of->layer);
    size_t k = of->config->n_chosen, d = of->config->hidden, pairs = of->n * k;
    if (m4 == NULL || m10 == NULL || of->chosen_nk == NULL || of->all != of->n * d) return false;
    double *share_q = malloc((3 * pairs + 1) * sizeof *share_q);
    double *made_q = share_q + pairs, *error_q = made_q + pairs;
    if (share_q == NULL) return false;
    sinkproof_making shares = *of;
    shares.x = share_q, shares.all = pairs;
    for (size_t q = 0; q < pairs; q++) share_q[q] = sinkproof_tensor_value(m4, q);
    bool fine = make_shares(&shares, made_q, error_q);
    for (size_t at = 0; fine && at < of->all; at++) {
        y[at] = 0;
        for (size_t q = at / d * k; q < at / d * k + k; q++) {
            double term = sinkproof_tensor_value(m10, q * d + at % d);
            y[at] += made_q[q] * term;
            width[at] += (error_q[q] + of->numbers[STEP] * (double)k * made_q[q]) * fabs(term);
        }
    }
    free(share_q);
    return fine;
}

// input -1: the point itself, M4. Narrow formats may round the shares, their sum and the quotient.
static bool try_share(const operation *o, int input, share_kind kind, double b, const char *text) {
    const composing *c = o->c;
    made_kind made = {.make = make_shares, .numbers = {[SHARE] = kind, [B] = b, [STEP] = c->step}};
    bool fine = true, narrow = c->step > 0x1p-12 && kind > ABOVE,
         mixed = input >= 0 && kind > ABOVE;
    snprintf(made.id, sizeof made.id, "shares-%d-%g", kind, b);
    snprintf(made.text, sizeof made.text, "%s%s",
             input < 0 ? "is taken "
             : mixed   ? "reads the experts' weights (M4) "
                       : "",
             text);
    if (mixed) made.make = make_mixture;
    for (int rounded = 0; rounded <= narrow && fine && c->found == NULL; rounded++) {
        if (rounded) made.numbers[ERROR] = c->step * (1 + (double)c->s->trials.config->n_chosen);
        fine = input < 0 || mixed ? composing_try_made(o, &made)
                                  : composing_try_made_input(o, (size_t)input, &made);
    }
    return fine;
}

static int compare_numbers(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The shortest number in (low, high].
static double shortest_between(double low, double high) {
    char text[32];
    for (int digits = 1; digits < 6; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (low + high) / 2);
        double limit = strtod(text, NULL);
        if (limit > low && limit <= high) return limit;
    }
    return high;
}

// Shares below a limit are lost, or those behind shares that add up to it. It is between two of the
// numbers that are compared with it: the shortest number there.
static bool try_limits(const operation *o, int input, const double *x, bool sums) {
    enum { MOST_SHARES = 1024 };
    size_t n = o->c->n * o->c->s->trials.config->n_chosen, rank;
    double *sorted = n <= MOST_SHARES ? malloc((n + 1) * sizeof *sorted) : NULL;
    bool fine = true;
    if (sorted == NULL) return n > MOST_SHARES || fail_for_memory(o->c->s);
    sinkproof_making of = composing_making(o->c);
    of.x = x;
    for (size_t q = 0; q < n; q++) sorted[q] = sums ? larger_shares(&of, q, &rank) : x[q];
    qsort(sorted, n, sizeof *sorted, compare_numbers);
    for (size_t i = 1; i < n && fine && o->c->found == NULL; i++) {
        char text[160], where[100];
        if (!(sorted[i] > sorted[i - 1])) continue;
        double limit = shortest_between(sorted[i - 1], sorted[i]);
        snprintf(where, sizeof where, "as 0 where %s (about %g)",
                 sums ? "the larger ones of the token add up to a limit" : "they are below a limit",
                 limit);
        fine = try_share(o, input, sums ? UP_TO : ABOVE, limit, where);
        snprintf(text, sizeof text, "%s, and renormalised", where);
        if (fine) fine = try_share(o, input, sums ? UP_TO_OVER : ABOVE_OVER, limit, text);
    }
    free(sorted);
    return fine;
}

// All but the largest of each token are lost.
static bool try_best(const operation *o, int input) {
    bool fine = true;
    for (size_t m = o->c->s->trials.config->n_chosen; fine && m-- > 1;) {
        char text[120];
        snprintf(text, sizeof text,
                 "as 0 for all but the %zu largest of the token, and renormalised", m);
        fine = try_share(o, input, BEST_OVER, (double)m, text);
    }
    return fine;
}

static bool try_shares(const operation *o, int input, const double *x) {
    static const char *const texts[ABOVE] = {
        [EQUAL] = "as equal shares (1/k): the experts are averaged, their shares are not used",
        [ONES] = "as ones: the shares are not used",
        [OF_ALL] = "as the softmax over all experts, which is not renormalised over the chosen",
        [SIGMOIDS] = "as the sigmoids of the logits",
        [SIGMOIDS_OVER] = "as the sigmoids of the logits over their sum",
        [LOGITS] = "as the logits themselves",
        [OVER_LARGEST] = "divided by the largest of the token",
        [BY_FIRST] = "of the first chosen expert for every slot",
        [BY_LAST] = "of the last chosen expert for every slot",
        [COMPLEMENT] = "as 1 less the share",
        [SQUARED] = "squared: a share is multiplied twice",
        [ROOTS] = "as their square roots",
        [ONE_HOT] = "as 1 for the first chosen expert and 0 for the others"};
    bool fine = true;
    for (int kind = 0; kind < ABOVE && fine; kind++)
        fine = try_share(o, input, (share_kind)kind, 0, texts[kind]);
    if (fine)
        fine = try_share(o, input, POWER_OVER, 2,
                         "squared and renormalised: a softmax of twice the logits") &&
               try_share(o, input, POWER_OVER, 0.5,
                         "as their roots, renormalised: a softmax of half the logits");
    static const double steps[] = {127, 128, 255, 256, 15, 16, 32, 64, 10, 100, 1000};
    for (size_t k = 0; k < sizeof steps / sizeof steps[0] && fine; k++) {
        char text[64];
        snprintf(text, sizeof text, "rounded to multiples of 1/%g", steps[k]);
        fine = try_share(o, input, OF_STEPS, steps[k], text);
    }
    return fine && try_best(o, input) && try_limits(o, input, x, false) &&
           try_limits(o, input, x, true);
}

bool compose_other_shares(composing *c) {
    operation o;
    if (c->point != TRACE_M4 || c->chosen_nk == NULL || c->s->trials.config->dense) return true;
    bool fine = operation_read(c, &o) && (!o.whole || try_shares(&o, -1, c->mid));
    operation_free(&o);
    return fine;
}

// ---- contributions

enum { FIRST, END, SLOTS, BY, HOW }; // the numbers, and STEP
enum { TAKEN = 1, IN_CIRCLE = 2 };   // how

static void add_terms(const sinkproof_making *of, const sinkproof_tensor *m10, double w, size_t q,
                      size_t i, double *y, double *width) {
    size_t d = of->config->hidden;
    for (size_t c = 0; c < d; c++) {
        double term = w * sinkproof_tensor_value(m10, q * d + c);
        y[i * d + c] += term;
        width[i * d + c] += of->numbers[STEP] * (double)of->config->n_chosen * fabs(term);
    }
}

// The sums, in which what the experts (or slots) [first, end) give goes to the token BY places
// before: in the place of its own, or too.
static bool make_contributions(const sinkproof_making *of, double *y, double *width) {
    const sinkproof_tensor *m4 = sinkproof_trace_find(of->trace, TRACE_M4, of->layer);
    const sinkproof_tensor *m10 = sinkproof_trace_find(of->trace, TRACE_M10, of->layer);
    size_t k = of->config->n_chosen;
    int how = (int)of->numbers[HOW];
    if (m4 == NULL || m10 == NULL || of->chosen_nk == NULL) return false;
    memset(y, 0, of->all * sizeof *y);
    for (size_t q = 0; q < of->n * k; q++) {
        size_t which = of->numbers[SLOTS] != 0 ? q % k : (size_t)of->chosen_nk[q];
        long to = (long)(q / k) - (long)of->numbers[BY], n = (long)of->n;
        double w = sinkproof_tensor_value(m4, q);
        if (of->chosen_nk[q] < 0) return false;
        bool moves = which >= (size_t)of->numbers[FIRST] && which < (size_t)of->numbers[END];
        if (how & IN_CIRCLE) to = (to + n) % n;
        if (!moves || (how & TAKEN) == 0) add_terms(of, m10, w, q, q / k, y, width);
        if (moves && to >= 0 && to < n) add_terms(of, m10, w, q, (size_t)to, y, width);
    }
    return true;
}

static bool try_contributions(const operation *o, size_t first, size_t end, bool slots) {
    bool fine = true;
    const char *what = slots ? "slot" : "expert";
    for (int kind = 0; kind < 8 && fine && o->c->found == NULL; kind++) {
        bool taken = kind < 4, circle = kind % 2 == 1;
        int by = kind / 2 % 2 == 0 ? -1 : 1;
        made_kind made = {.make = make_contributions};
        made.numbers[FIRST] = (double)first, made.numbers[END] = (double)end;
        made.numbers[SLOTS] = slots, made.numbers[BY] = by;
        made.numbers[HOW] = (taken ? TAKEN : 0) + (circle ? IN_CIRCLE : 0);
        made.numbers[STEP] = o->c->step;
        snprintf(made.id, sizeof made.id, "%ss-%zu-%zu%+d%s%s", what, first, end - 1, by,
                 taken ? "" : "-too", circle ? "-round" : "");
        char whose[64];
        if (end > first + 1)
            snprintf(whose, sizeof whose, "%ss %zu-%zu give", what, first, end - 1);
        else
            snprintf(whose, sizeof whose, "%s %zu gives", what, first);
        if (taken)
            snprintf(made.text, sizeof made.text, "has what %s added to the %s token%s", whose,
                     by < 0 ? "next" : "previous", circle ? ", in a circle" : "");
        else
            snprintf(made.text, sizeof made.text, "has what %s for the %s token added once more%s",
                     whose, by < 0 ? "previous" : "next", circle ? ", in a circle" : "");
        fine = composing_try_made(o, &made);
    }
    return fine;
}

bool compose_contributions(composing *c) {
    operation o;
    enum { MOST_TERMS = 1 << 22 };
    size_t experts = c->s->trials.config->n_experts, k = c->s->trials.config->n_chosen;
    if (c->point != TRACE_M11 || c->chosen_nk == NULL || c->s->trials.config->dense) return true;
    bool fine = operation_read(c, &o);
    bool few = fine && o.whole && c->elements * k <= MOST_TERMS && experts <= 32;
    if (fine && o.whole) fine = try_shares(&o, 1, o.x[1]);
    for (size_t s = 0; s < k && few && fine && c->found == NULL; s++)
        fine = try_contributions(&o, s, s + 1, true);
    for (size_t e = 0; e < experts && few && fine && c->found == NULL; e++) {
        fine = try_contributions(&o, e, experts, false);
        if (fine && c->found == NULL && e > 0) fine = try_contributions(&o, 0, e, false);
        if (fine && c->found == NULL && e > 0 && e + 1 < experts)
            fine = try_contributions(&o, e, e + 1, false);
    }
    operation_free(&o);
    return fine;
}
