// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What an expert's product reads for each slot: the row of another token, or its row rounded with
// one scale for all of the expert's tokens; and elements that hold what stands beside them in
// memory, in the row before or behind.
#include "audit/diagnose/composed_made.h"
#include "base/words.h"
#include "proofs/bounds/honest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum gather_rule {
    QUOTIENT,        // the slot's number, of all, over a
    MODULO,          // modulo the tokens
    SORTED_QUOTIENT, // its place in the order of the experts, over the slots of a token
    SORTED_MODULO,   // the same, modulo the tokens
    PLACE,           // its place among the slots of its expert
    OF_BATCH         // the token's own row, rounded with one scale for the expert's tokens
} gather_rule;

enum { RULE, A, FORMAT, LEVELS }; // the numbers

// The place of a slot in the order of the experts, and among those of its own.
static size_t place_of(const sinkproof_making *of, size_t q, bool sorted) {
    size_t pairs = of->n * of->config->n_chosen, before = 0;
    for (size_t o = 0; o < pairs; o++) {
        bool same = of->chosen_nk[o] == of->chosen_nk[q];
        before += (same && o < q) || (sorted && of->chosen_nk[o] < of->chosen_nk[q]);
    }
    return before;
}

static size_t token_read(const sinkproof_making *of, size_t q) {
    size_t k = of->config->n_chosen, row = q / k;
    switch ((gather_rule)of->numbers[RULE]) {
    case QUOTIENT:
        row = q / (size_t)of->numbers[A];
        break;
    case MODULO:
        row = q % of->n;
        break;
    case SORTED_QUOTIENT:
        row = place_of(of, q, true) / k;
        break;
    case SORTED_MODULO:
        row = place_of(of, q, true) % of->n;
        break;
    case PLACE:
        row = place_of(of, q, false);
        break;
    default:
        break;
    }
    return row < of->n ? row : of->n - 1;
}

// ---- one scale for the tokens of an expert

// What the rows of slots become: x[pairs][each]. A row of `x` belongs to a token where by_token.
static double scale_of_batch(const sinkproof_making *of, const double *x, size_t each,
                             bool by_token, int32_t expert) {
    size_t k = of->config->n_chosen, pairs = of->n * k;
    double largest = 0, code = of->numbers[LEVELS];
    for (size_t q = 0; q < pairs; q++) {
        const double *row = &x[(by_token ? q / k : q) * each];
        for (size_t i = 0; of->chosen_nk[q] == expert && i < each; i++)
            largest = fmax(largest, fabs(row[i]));
    }
    if (code <= 0) code = of->numbers[FORMAT] == SINKPROOF_E5M2 ? 57344 : 448;
    return largest / code;
}

static double rounded_by(const sinkproof_making *of, double x, double scale) {
    if (!(scale > 0)) return x;
    double code = x / scale;
    return scale * (of->numbers[LEVELS] > 0
                        ? nearbyint(code)
                        : sinkproof_round((sinkproof_format)of->numbers[FORMAT], code));
}

static bool make_rounded_batches(const sinkproof_making *of, double *y, double *width) {
    size_t pairs = of->n * of->config->n_chosen, each = of->all / pairs;
    (void)width;
    if (of->chosen_nk == NULL) return false;
    for (int32_t e = 0; e < (int32_t)of->config->n_experts; e++) {
        double scale = scale_of_batch(of, of->x, each, false, e);
        for (size_t q = 0; q < pairs; q++)
            for (size_t i = 0; of->chosen_nk[q] == e && i < each; i++)
                y[q * each + i] = rounded_by(of, of->x[q * each + i], scale);
    }
    return true;
}

// ---- M5 of other rows

typedef struct gathered {
    double *x_nd, *scale_e, *row_d, *weight_d;
    sinkproof_matrix w;
} gathered;

static void gathered_free(gathered *g) {
    free(g->x_nd);
}

static bool gathered_read(const sinkproof_making *of, gathered *g) {
    const sinkproof_tensor *m1 = sinkproof_trace_find(of->trace, TRACE_M1, of->layer);
    size_t d = of->config->hidden, all = of->n * d, experts = of->config->n_experts;
    *g = (gathered){.w = sinkproof_model_slot(of->model, of->layer, SINKPROOF_W_UP)};
    if (m1 == NULL || of->chosen_nk == NULL || sinkproof_tensor_elements(m1) != all ||
        g->w.cols != d || g->w.count != experts)
        return false;
    g->x_nd = calloc(all + experts + 2 * d + 1, sizeof *g->x_nd);
    if (g->x_nd == NULL) return false;
    g->scale_e = g->x_nd + all, g->row_d = g->scale_e + experts, g->weight_d = g->row_d + d;
    for (size_t at = 0; at < all; at++) g->x_nd[at] = sinkproof_tensor_value(m1, at);
    bool rounds = of->numbers[RULE] == OF_BATCH;
    for (size_t e = 0; rounds && e < experts; e++)
        g->scale_e[e] = scale_of_batch(of, g->x_nd, d, true, (int32_t)e);
    return true;
}

// The row that slot q reads.
static void gather_row(const sinkproof_making *of, gathered *g, size_t q) {
    size_t d = of->config->hidden, row = token_read(of, q);
    for (size_t i = 0; i < d; i++) {
        double x = g->x_nd[row * d + i];
        g->row_d[i] =
            of->numbers[RULE] == OF_BATCH ? rounded_by(of, x, g->scale_e[of->chosen_nk[q]]) : x;
    }
}

// The sum, and what any order of adding it up in binary32 may change (bound.dot).
static double product(const sinkproof_making *of, gathered *g, size_t q, size_t r, double *error) {
    size_t d = of->config->hidden;
    sinkproof_matrix one = sinkproof_matrix_at(&g->w, (size_t)of->chosen_nk[q]);
    double sum = 0, sizes = 0;
    sinkproof_matrix_row(&one, r, g->weight_d);
    for (size_t i = 0; i < d; i++) {
        double term = g->weight_d[i] * g->row_d[i];
        sum += term, sizes += fabs(term);
    }
    *error = sizes * sinkproof_gamma((double)d, 0x1p-24);
    return sum;
}

static bool make_gathered(const sinkproof_making *of, double *y, double *width) {
    gathered g;
    size_t pairs = of->n * of->config->n_chosen, rows = of->all / pairs;
    bool read = gathered_read(of, &g) && g.w.rows == rows;
    for (size_t q = 0; read && q < pairs; q++) {
        bool own = of->numbers[RULE] != OF_BATCH && token_read(of, q) == q / of->config->n_chosen;
        for (size_t at = q * rows; own && of->radius != NULL && at < (q + 1) * rows; at++)
            width[at] = of->radius[at];
        if (own || of->chosen_nk[q] < 0) continue;
        gather_row(of, &g, q);
        for (size_t r = 0; r < rows; r++)
            y[q * rows + r] = product(of, &g, q, r, &width[q * rows + r]);
    }
    gathered_free(&g);
    return read;
}

// Whether the sample is near; far fewer numbers than the point's.
static bool gather_is_near(const operation *o, const made_kind *kind) {
    const composing *c = o->c;
    sinkproof_making of = composing_making(c);
    gathered g;
    size_t rows = c->elements / (c->n * of.config->n_chosen), far = 0;
    double error;
    of.numbers = kind->numbers;
    bool read = gathered_read(&of, &g) && g.w.rows == rows;
    for (size_t s = 0; read && s < o->n && 8 * far <= o->n; s++) {
        size_t q = o->at[s] / rows;
        if (c->chosen_nk[q] < 0) continue;
        gather_row(&of, &g, q);
        far += !value_is_near(c, o->at[s], product(&of, &g, q, o->at[s] % rows, &error));
    }
    gathered_free(&g);
    return read && o->n > 0 && 8 * far <= o->n;
}

static bool try_gather(const operation *o, made_kind *kind, const char *id, const char *text) {
    kind->make = make_gathered;
    snprintf(kind->id, sizeof kind->id, "gathered-%s", id);
    snprintf(kind->text, sizeof kind->text, "%s", text);
    if (o->c->found != NULL || !gather_is_near(o, kind)) return true;
    return composing_try_made(o, kind);
}

static bool try_rows(const operation *o) {
    enum { MOST_QUOTIENT = 16 };
    static const struct {
        gather_rule rule;
        const char *id, *text;
    } rules[] = {
        {MODULO, "modulo",
         "reads for each slot the row of another token: the slot's number modulo the tokens, as "
         "if all first choices came before all second ones"},
        {SORTED_QUOTIENT, "sorted",
         "reads for each slot the row of another token: that at the slot's place in the order of "
         "the experts, not at its own"},
        {SORTED_MODULO, "sorted-modulo",
         "reads for each slot the row of another token: the slot's place in the order of the "
         "experts, modulo the tokens"},
        {PLACE, "place",
         "reads for each slot the row of another token: that whose number is the place in the "
         "expert's batch"}};
    size_t k = o->c->s->trials.config->n_chosen;
    bool fine = true;
    char id[40], text[240];
    for (size_t a = 1; a <= MOST_QUOTIENT && fine; a++) {
        made_kind kind = {.numbers = {[RULE] = QUOTIENT, [A] = (double)a}};
        if (a == k) continue;
        snprintf(id, sizeof id, "over-%zu", a);
        snprintf(text, sizeof text,
                 "reads for each slot the row of another token: the slot's number over %zu (the "
                 "model chooses %s for a token)",
                 a, sinkproof_counted(k, "expert").text);
        fine = try_gather(o, &kind, id, text);
    }
    for (size_t i = 0; i < sizeof rules / sizeof rules[0] && fine; i++) {
        made_kind kind = {.numbers = {[RULE] = rules[i].rule}};
        fine = try_gather(o, &kind, rules[i].id, rules[i].text);
    }
    return fine;
}

static bool try_scales(const operation *o) {
    static const struct {
        sinkproof_format format;
        double levels;
        const char *name;
    } codes[] = {{SINKPROOF_E4M3, 0, "e4m3"},
                 {SINKPROOF_REAL, 127, "int8"},
                 {SINKPROOF_E5M2, 0, "e5m2"},
                 {SINKPROOF_REAL, 7, "int4"}};
    bool fine = true;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0] && fine && o->c->found == NULL; i++) {
        made_kind kind = {
            .make = make_rounded_batches,
            .numbers = {[RULE] = OF_BATCH, [FORMAT] = codes[i].format, [LEVELS] = codes[i].levels}};
        char text[200], id[40];
        snprintf(id, sizeof id, "%s-by-batch", codes[i].name);
        if (o->c->point == TRACE_M5) {
            snprintf(text, sizeof text,
                     "reads the norm before the experts (M1) rounded to %s with one scale for all "
                     "tokens of an expert",
                     codes[i].name);
            fine = try_gather(o, &kind, id, text);
            continue;
        }
        snprintf(kind.id, sizeof kind.id, "%s", id);
        snprintf(kind.text, sizeof kind.text,
                 "rounded to %s with one scale for all tokens of an expert", codes[i].name);
        fine = composing_try_made_input(o, 0, &kind);
    }
    return fine;
}

bool compose_gathers(composing *c) {
    enum { MOST_PAIRS = 1 << 11, MOST_PRODUCTS = 1 << 26 };
    const sinkproof_config *config = c->s->trials.config;
    operation o;
    if ((c->point != TRACE_M5 && c->point != TRACE_M9) || c->chosen_nk == NULL || config->dense)
        return true;
    if (c->n * config->n_chosen > MOST_PAIRS || c->elements * config->hidden > MOST_PRODUCTS)
        return true;
    for (size_t q = 0; q < c->n * config->n_chosen; q++)
        if (c->chosen_nk[q] < 0 || (size_t)c->chosen_nk[q] >= config->n_experts) return true;
    bool fine = operation_read(c, &o);
    if (fine && o.whole && c->point == TRACE_M5) fine = try_rows(&o);
    if (fine && o.whole && c->found == NULL) fine = try_scales(&o);
    operation_free(&o);
    return fine;
}

// ---- beside it in memory

static bool make_beside(const sinkproof_making *of, double *y, double *width) {
    long by = (long)of->numbers[A], all = (long)of->all;
    for (long at = 0; at < all; at++) {
        long from = at + by >= 0 && at + by < all ? at + by : at;
        y[at] = of->x[from];
        if (of->radius != NULL) width[at] = of->radius[from];
    }
    return true;
}

static bool beside_is_near(const operation *o, long by) {
    const composing *c = o->c;
    size_t far = 0;
    for (size_t s = 0; s < o->n && 8 * far <= o->n; s++) {
        long from = (long)o->at[s] + by;
        bool is = from >= 0 && from < (long)c->elements;
        far += !is || !value_is_near(c, o->at[s], c->mid[from]);
    }
    return o->n > 0 && 8 * far <= o->n;
}

bool compose_beside(composing *c) {
    operation o;
    long each = (long)(c->elements / c->n);
    if (!operation_read(c, &o)) return operation_free(&o), false;
    bool fine = true;
    for (long i = 2; i < 2 * each && fine && c->found == NULL; i++) {
        long by = i % 2 == 0 ? -(i / 2) : i / 2;
        if (!beside_is_near(&o, by)) continue;
        made_kind kind = {.make = make_beside, .numbers = {[A] = (double)by}};
        snprintf(kind.id, sizeof kind.id, "beside%+ld", by);
        snprintf(kind.text, sizeof kind.text,
                 "holds what stands %ld place%s %s in memory: where a row %s, the other row's "
                 "%s elements",
                 labs(by), labs(by) == 1 ? "" : "s", by < 0 ? "before" : "on",
                 by < 0 ? "begins" : "ends", by < 0 ? "last" : "first");
        fine = composing_try_made(&o, &kind);
    }
    operation_free(&o);
    return fine;
}
