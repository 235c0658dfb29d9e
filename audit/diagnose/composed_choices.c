// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The router's choice, M3, from other logits: those of other positions, experts or layers, rounded
// ones, of some experts or groups alone. Every row must be chosen as shown, and some must not be
// chosen so by the definition: some rule explains a few rows by chance.
#include "audit/diagnose/composed_changes.h"
#include "audit/diagnose/composed_made.h"
#include "audit/diagnose/places.h"
#include "base/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEWEST_ROWS = 4, MOST_EXPERTS = 256 };
#define BARRED (-1e30)

// ---- what is made of the logits. numbers: a kind, and what it needs

typedef enum logits_kind {
    WITH_BIAS,    // plus a times the router's bias
    OF_ROW_BY,    // of the row a places on
    OF_ROW,       // of row a
    OF_MODULO,    // of the row with this number modulo a
    OF_QUOTIENT,  // over a
    OF_EXPERT_BY, // each expert has those of the expert a on, in a circle
    EXCHANGED,    // experts a and b
    MIRRORED,     // experts in reverse order
    NEVER,        // experts [a, b)
    ALWAYS,
    OF_LAYER_BY,      // of the layer a on
    IN_FORMAT,        // rounded to format a
    IN_WHOLE,         // to whole numbers up to a, with a scale for each row
    IN_GROUPS,        // of the best `keep` of `a` groups, by score b
    CAPACITY,         // an expert takes a tokens at most
    WITHOUT_PREVIOUS, // not the experts of the token before
    NEGATED,
    SCORED_WITH_BIAS, // the score of the logit without its bias, plus the bias: a is the score
    NOT_BELOW,        // a where they are less: of those the first expert is the best
    ZEROED,           // experts [a, b) have 0
    OF_SHARES         // as many of each part of a experts (b: those below a, and the others)
} logits_kind;

enum { KIND, A, B, KEEP };
enum { BY_LARGEST, BY_SUM, BY_TWO, SCORES };

static double logit(const sinkproof_making *of, long i, size_t e) {
    size_t experts = of->config->n_experts;
    return i >= 0 && i < (long)of->n ? of->x[(size_t)i * experts + e] : NAN;
}

static size_t rank_of(const double *g, size_t n, size_t e) {
    size_t above = 0;
    for (size_t o = 0; o < n; o++) above += g[o] > g[e] || (g[o] == g[e] && o < e);
    return above;
}

// How many are larger: equal ones may be chosen in any order.
static size_t larger_than(const double *g, size_t n, size_t e) {
    size_t above = 0;
    for (size_t o = 0; o < n; o++) above += g[o] > g[e];
    return above;
}

static double group_score(const double *g, size_t n, int by) {
    double largest = -INFINITY, next = -INFINITY, sum = 0;
    for (size_t e = 0; e < n; e++) {
        sum += g[e];
        if (g[e] > largest)
            next = largest, largest = g[e];
        else
            next = fmax(next, g[e]);
    }
    return by == BY_LARGEST ? largest : by == BY_SUM ? sum : largest + next;
}

// Bars the experts of all but the best groups; the first groups are the larger ones.
static void keep_groups(const sinkproof_making *of, const double *g, double *y) {
    size_t experts = of->config->n_experts, groups = (size_t)of->numbers[A];
    size_t first_g[MOST_EXPERTS + 1], each = (experts + groups - 1) / groups;
    double score_g[MOST_EXPERTS];
    for (size_t k = 0; k <= groups; k++) first_g[k] = k * each < experts ? k * each : experts;
    for (size_t k = 0; k < groups; k++)
        score_g[k] = group_score(&g[first_g[k]], first_g[k + 1] - first_g[k], (int)of->numbers[B]);
    for (size_t k = 0; k < groups; k++)
        for (size_t e = first_g[k]; e < first_g[k + 1]; e++)
            y[e] = rank_of(score_g, groups, k) < (size_t)of->numbers[KEEP] ? g[e] : BARRED;
}

// Token by token: an expert that has been chosen a times is barred.
static bool fill_experts(const sinkproof_making *of, double *y) {
    size_t experts = of->config->n_experts, k = of->config->n_chosen, taken_e[MOST_EXPERTS] = {0};
    for (size_t i = 0; i < of->n; i++) {
        double *g = &y[i * experts];
        size_t chosen = 0;
        for (size_t e = 0; e < experts; e++) {
            g[e] = of->x[i * experts + e];
            if ((double)taken_e[e] >= of->numbers[A]) g[e] = BARRED - (double)e;
        }
        for (size_t e = 0; e < experts; e++)
            if (rank_of(g, experts, e) < k) taken_e[e]++, chosen += g[e] > BARRED;
        if (chosen < k) return false; // who is chosen then is another rule
    }
    return true;
}

enum { BY_SIGMOID, BY_SOFTMAX };

// The score of expert e, without its bias, and its bias.
static double score_with_bias(const sinkproof_making *of, const double *bias, size_t i, size_t e) {
    size_t experts = of->config->n_experts;
    double own = logit(of, (long)i, e) - bias[e], sum = 0;
    if (of->numbers[A] == BY_SIGMOID) return 1 / (1 + exp(-own)) + bias[e];
    for (size_t o = 0; o < experts; o++) sum += exp(logit(of, (long)i, o) - bias[o] - own);
    return 1 / sum + bias[e];
}

static size_t part_of(const sinkproof_making *of, size_t e) {
    size_t a = (size_t)of->numbers[A];
    return of->numbers[B] != 0 ? e >= a : e / a;
}

// Bars the experts of each part but the best: as many as the first token has of it.
static void keep_shares(const sinkproof_making *of, const double *g, double *y) {
    size_t experts = of->config->n_experts, k = of->config->n_chosen;
    for (size_t e = 0; e < experts; e++) {
        size_t above = 0, quota = 0;
        for (size_t o = 0; o < experts; o++)
            above += part_of(of, o) == part_of(of, e) && (g[o] > g[e] || (g[o] == g[e] && o < e));
        for (size_t s = 0; s < k; s++)
            quota += part_of(of, (size_t)of->chosen_nk[s]) == part_of(of, e);
        y[e] = above < quota ? g[e] : BARRED;
    }
}

static double changed_logit(const sinkproof_making *of, const double *bias, size_t i, size_t e) {
    size_t experts = of->config->n_experts, a = (size_t)fmax(of->numbers[A], 0);
    size_t b = (size_t)fmax(of->numbers[B], 0), k = of->config->n_chosen;
    long by = (long)of->numbers[A], at = (long)i, size = (long)experts;
    double own = logit(of, at, e), other;
    switch ((logits_kind)of->numbers[KIND]) {
    case WITH_BIAS:
        return own + of->numbers[A] * bias[e];
    case OF_ROW_BY:
        other = logit(of, at + by, e);
        return isnan(other) ? own : other;
    case OF_ROW:
        return logit(of, by, e);
    case OF_MODULO:
        return logit(of, at % by, e);
    case OF_QUOTIENT:
        return logit(of, at / by, e);
    case OF_EXPERT_BY:
        return logit(of, at, (size_t)((((long)e + by) % size + size) % size));
    case EXCHANGED:
        return logit(of, at, e == a ? b : e == b ? a : e);
    case MIRRORED:
        return logit(of, at, experts - 1 - e);
    case NEVER:
        return e >= a && e < b ? BARRED : own;
    case ALWAYS:
        return e >= a && e < b ? -BARRED : own;
    case IN_FORMAT:
        return sinkproof_round((sinkproof_format)of->numbers[A], own);
    case WITHOUT_PREVIOUS:
        for (size_t s = 0; i > 0 && s < k; s++)
            if (of->chosen_nk[(i - 1) * k + s] == (int32_t)e) return BARRED;
        return own;
    case NEGATED:
        return -own;
    case SCORED_WITH_BIAS:
        return score_with_bias(of, bias, i, e);
    case NOT_BELOW:
        return own < of->numbers[A] ? of->numbers[A] - ldexp((double)e + 1, -30) : own;
    case ZEROED:
        return e >= a && e < b ? 0 : own;
    default:
        return own;
    }
}

static bool make_logits(const sinkproof_making *of, double *y, double *width) {
    size_t experts = of->config->n_experts;
    const logits_kind kind = (logits_kind)of->numbers[KIND];
    double bias[MOST_EXPERTS] = {0};
    (void)width;
    if (experts > MOST_EXPERTS || of->all != experts * of->n) return false;
    if (kind == CAPACITY) return fill_experts(of, y);
    if (kind == OF_LAYER_BY) {
        const sinkproof_tensor *m2 = sinkproof_trace_find(
            of->trace, TRACE_M2, of->layer + (size_t)((long)of->numbers[A] + 1) - 1);
        if (m2 == NULL || sinkproof_tensor_elements(m2) != of->all) return false;
        for (size_t at = 0; at < of->all; at++) y[at] = sinkproof_tensor_value(m2, at);
        return true;
    }
    sinkproof_matrix b = sinkproof_model_slot(of->model, of->layer, SINKPROOF_B_ROUTER);
    if (b.count > 0 && b.cols == experts) sinkproof_matrix_row(&b, 0, bias);
    const sinkproof_change whole = {
        .kind = SINKPROOF_CHANGE_ROUND, .levels = of->numbers[A], .scale = SINKPROOF_SCALED_BY_ROW};
    for (size_t i = 0; i < of->n; i++) {
        for (size_t e = 0; e < experts; e++) y[i * experts + e] = changed_logit(of, bias, i, e);
        const double *g = &of->x[i * experts];
        if (kind == IN_GROUPS) keep_groups(of, g, &y[i * experts]);
        if (kind == OF_SHARES) keep_shares(of, g, &y[i * experts]);
        if (kind == IN_WHOLE) sinkproof_change_row(&whole, 0, experts, g, &y[i * experts]);
    }
    return true;
}

// ---- a trial

typedef struct choices {
    composing *c;
    operation o;
    double *y, *width;
} choices;

// Whether the experts that the trace shows are the largest of the logits y in each row of the
// region, and in how many of them some are outside.
static bool chooses_as_shown(const choices *s, const sinkproof_region *region, size_t *changed) {
    const composing *c = s->c;
    size_t k = c->s->trials.config->n_chosen, experts = c->s->trials.config->n_experts;
    *changed = 0;
    for (size_t i = 0; i < c->n; i++) {
        bool outside = false;
        if (!sinkproof_indices_hold(&region->along[ALONG_ROWS], i)) continue;
        for (size_t slot = 0; slot < k; slot++) {
            int32_t e = c->chosen_nk[i * k + slot];
            outside = outside || c->marks[i * k + slot];
            if (e < 0 || larger_than(&s->y[i * experts], experts, (size_t)e) >= k) return false;
        }
        *changed += outside;
    }
    return *changed >= FEWEST_ROWS;
}

// `alone`: the text is the whole sentence.
static bool try_logits(choices *s, logits_kind kind, double a, double b, double keep, bool alone,
                       const char *text) {
    composing *c = s->c;
    const double numbers[SINKPROOF_MAKING_NUMBERS] = {
        [KIND] = kind, [A] = a, [B] = b, [KEEP] = keep};
    sinkproof_making of = composing_making(c);
    of.point = TRACE_M2, of.all = s->o.width[0] * c->n;
    of.x = s->o.x[0], of.numbers = numbers;
    bool fine = true;
    if (c->found != NULL || !make_logits(&of, s->y, s->width)) return true;
    for (size_t r = 0; r < c->n_regions && fine && c->found == NULL; r++) {
        size_t changed;
        // Of rows that are picked out by their failing, some rule explains a few by chance.
        if (c->regions[r].along[ALONG_ROWS].some_i != NULL) continue;
        if (!chooses_as_shown(s, &c->regions[r], &changed)) continue;
        composed_mistake *m = composing_reads(c, &s->o.inputs[0]);
        if (m == NULL) return false;
        m->input.make = make_logits, m->region = c->regions[r];
        memcpy(m->input.numbers, numbers, sizeof m->input.numbers);
        composed_name(m, "choice-%d-%g-%g-%g", (int)kind, a, b, keep);
        if (!alone) composed_say(m, "the experts are chosen by logits of the router that are ");
        composed_say(m, "%s", text);
        composed_say_region(c, m);
        fine = composing_try(c, m);
    }
    return fine;
}

// ---- kinds

static bool try_biases(choices *s) {
    return try_logits(s, WITH_BIAS, -1, 0, 0, false, "without the router's bias") &&
           try_logits(s, WITH_BIAS, 1, 0, 0, false, "with the router's bias added twice") &&
           try_logits(s, WITH_BIAS, -2, 0, 0, false, "with the router's bias subtracted") &&
           try_logits(s, NEGATED, 0, 0, 0, false, "negated") &&
           try_logits(s, NOT_BELOW, 0, 0, 0, false, "0 where they are negative") &&
           try_logits(s, MIRRORED, 0, 0, 0, false, "those of the experts in reverse order") &&
           try_logits(s, WITHOUT_PREVIOUS, 0, 0, 0, true,
                      "an expert that the token before has chosen is not chosen again");
}

static bool try_formats(choices *s) {
    static const struct {
        sinkproof_format format;
        const char *text;
    } formats[] = {{SINKPROOF_BF16, "rounded to bfloat16"},
                   {SINKPROOF_F16, "rounded to binary16"},
                   {SINKPROOF_E4M3, "rounded to e4m3"},
                   {SINKPROOF_E5M2, "rounded to e5m2"},
                   {SINKPROOF_E2M1, "rounded to e2m1"}};
    bool fine = true;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0] && fine; i++)
        fine = try_logits(s, IN_FORMAT, formats[i].format, 0, 0, false, formats[i].text);
    return fine &&
           try_logits(s, IN_WHOLE, 127, 0, 0, false, "rounded to int8 with a scale for each row") &&
           try_logits(s, IN_WHOLE, 7, 0, 0, false, "rounded to int4 with a scale for each row");
}

static bool try_scored(choices *s) {
    return try_logits(s, SCORED_WITH_BIAS, BY_SIGMOID, 0, 0, true,
                      "the experts are chosen by the sigmoids of the logits without the router's "
                      "bias, plus the bias") &&
           try_logits(s, SCORED_WITH_BIAS, BY_SOFTMAX, 0, 0, true,
                      "the experts are chosen by the softmax of the logits without the router's "
                      "bias, plus the bias");
}

static bool try_parts(choices *s) {
    size_t experts = s->c->s->trials.config->n_experts;
    bool fine = true;
    char text[320];
    for (size_t a = 1; a < experts && fine && s->c->found == NULL; a++) {
        snprintf(text, sizeof text,
                 "each rank gives the same number of experts to every token: the best of experts "
                 "0-%zu, and those of the others",
                 a - 1);
        fine = try_logits(s, OF_SHARES, (double)a, 1, 0, true, text);
        snprintf(text, sizeof text,
                 "each rank of %s gives the same number of experts to every token: the "
                 "best of experts 0-%zu, and so on",
                 sinkproof_counted(a, "expert").text, a - 1);
        if (fine && a > 1) fine = try_logits(s, OF_SHARES, (double)a, 0, 0, true, text);
    }
    for (size_t a = 0; a < experts; a++)
        for (size_t b = a + 1; b <= experts && fine && s->c->found == NULL; b++) {
            if (a > 0 && b < experts && b > a + 1) continue;
            snprintf(
                text, sizeof text,
                "experts %zu-%zu have the logit 0 in the choice: masked by 0, not by -infinity", a,
                b - 1);
            fine = try_logits(s, ZEROED, (double)a, (double)b, 0, true, text);
        }
    return fine;
}

static bool try_rows(choices *s) {
    long n = (long)s->c->n;
    bool fine = true;
    char text[160];
    for (long by = 1; by < n && by <= 256 && fine && s->c->found == NULL; by++)
        for (int sign = -1; sign <= 1 && fine; sign += 2) {
            if (by == 1)
                snprintf(text, sizeof text, "those of the %s",
                         sign < 0 ? "position before" : "next position");
            else
                snprintf(text, sizeof text, "those of the position %ld %s", by,
                         sign < 0 ? "before" : "on");
            fine = try_logits(s, OF_ROW_BY, (double)(sign * by), 0, 0, false, text);
        }
    for (long a = 1; a < n && a <= 256 && fine && s->c->found == NULL; a++) {
        snprintf(text, sizeof text,
                 "those of the position with its number modulo %ld: positions begin anew", a);
        fine = try_logits(s, OF_MODULO, (double)a, 0, 0, false, text);
        snprintf(text, sizeof text, "those of the position with its number over %ld, cut", a);
        if (fine && a > 1) fine = try_logits(s, OF_QUOTIENT, (double)a, 0, 0, false, text);
        snprintf(text, sizeof text, "those of position %ld", a - 1);
        if (fine) fine = try_logits(s, OF_ROW, (double)(a - 1), 0, 0, false, text);
    }
    for (long by = -2; by <= 2 && fine; by++) {
        snprintf(text, sizeof text, "those of the layer %ld %s", labs(by),
                 by < 0 ? "before" : "on");
        if (by != 0 && (long)s->c->place + by >= 0)
            fine = try_logits(s, OF_LAYER_BY, (double)by, 0, 0, false,
                              by == -1  ? "those of the layer before"
                              : by == 1 ? "those of the next layer"
                                        : text);
    }
    return fine;
}

static bool try_experts(choices *s) {
    size_t experts = s->c->s->trials.config->n_experts, k = s->c->s->trials.config->n_chosen;
    bool fine = true, few = experts <= 32;
    char text[160];
    for (size_t a = 1; a < experts && fine && s->c->found == NULL; a++) {
        if (a == 1 || a + 1 == experts)
            snprintf(text, sizeof text, "those of the %s, in a circle",
                     a == 1 ? "next expert" : "expert before");
        else
            snprintf(text, sizeof text, "those of the expert %zu on, in a circle", a);
        fine = try_logits(s, OF_EXPERT_BY, (double)a, 0, 0, false, text);
    }
    for (size_t a = 0; a < experts && few; a++)
        for (size_t b = a + 1; b < experts && fine && s->c->found == NULL; b++) {
            snprintf(text, sizeof text, "exchanged between experts %zu and %zu", a, b);
            fine = try_logits(s, EXCHANGED, (double)a, (double)b, 0, false, text);
        }
    for (size_t a = 0; a < experts; a++)
        for (size_t b = a + 1; b <= experts && fine && s->c->found == NULL; b++) {
            bool edge = a == 0 || b == experts || b == a + 1;
            if (!edge || b - a + k > experts) continue;
            if (b == a + 1)
                snprintf(text, sizeof text, "expert %zu is never chosen", a);
            else
                snprintf(text, sizeof text,
                         "experts %zu-%zu are never chosen: the choice is among the others", a,
                         b - 1);
            fine = try_logits(s, NEVER, (double)a, (double)b, 0, true, text);
        }
    for (size_t a = 0; a < experts && fine && s->c->found == NULL; a++) {
        snprintf(text, sizeof text, "expert %zu is always chosen", a);
        fine = try_logits(s, ALWAYS, (double)a, (double)a + 1, 0, true, text);
    }
    return fine;
}

static bool try_groups(choices *s) {
    static const char *const scores[SCORES] = {[BY_LARGEST] = "largest logit",
                                               [BY_SUM] = "sum of logits",
                                               [BY_TWO] = "sum of its two largest logits"};
    size_t experts = s->c->s->trials.config->n_experts, k = s->c->s->trials.config->n_chosen;
    bool fine = true;
    char text[240];
    for (size_t groups = 2; groups <= 16 && groups < experts; groups++)
        for (int by = 0; by < SCORES; by++)
            for (size_t keep = 1; keep < groups && fine && s->c->found == NULL; keep++) {
                size_t each = (experts + groups - 1) / groups;
                if ((groups - 1) * each >= experts || keep * each < k) continue;
                snprintf(text, sizeof text,
                         "the experts are chosen in %s of %zu: groups of %zu (0-%zu, ...), "
                         "by the %s of a group",
                         keep == 1 ? "the best group" : "the best groups", groups, each, each - 1,
                         scores[by]);
                fine = try_logits(s, IN_GROUPS, (double)groups, by, (double)keep, true, text);
            }
    for (size_t most = 1;
         most < s->c->n && s->c->n <= 512 && experts <= 32 && fine && s->c->found == NULL; most++) {
        snprintf(text, sizeof text,
                 "an expert is chosen by %s at most: later ones take the next best expert",
                 sinkproof_counted(most, "token").text);
        fine = try_logits(s, CAPACITY, (double)most, 0, 0, true, text);
    }
    return fine;
}

bool compose_choices(composing *c) {
    choices s = {.c = c};
    size_t experts = c->s->trials.config->n_experts;
    if (c->point != TRACE_M3 || c->chosen_nk == NULL || experts > MOST_EXPERTS) return true;
    bool fine = operation_read(c, &s.o);
    s.y = malloc((2 * s.o.width[0] * c->n + 1) * sizeof *s.y);
    if (fine && s.y == NULL) fine = fail_for_memory(c->s);
    s.width = s.y != NULL ? s.y + s.o.width[0] * c->n : NULL;
    if (fine && s.o.x[0] != NULL)
        fine = try_biases(&s) && try_scored(&s) && try_formats(&s) && try_experts(&s) &&
               try_groups(&s) && try_parts(&s) && try_rows(&s);
    free(s.y);
    operation_free(&s.o);
    return fine;
}
