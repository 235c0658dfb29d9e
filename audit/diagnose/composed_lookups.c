// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The embedding of another token in the place of a token's own, or added to it. For each wrong row
// the token is found; what the tokens have in common is told.
#include "audit/diagnose/composed_made.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ADDS }; // the numbers; the table has the token for each position, -1: none

static bool make_lookups(const sinkproof_making *of, double *y, double *width) {
    const int32_t *tokens = sinkproof_trace_tokens(of->trace);
    size_t d = of->config->hidden;
    sinkproof_matrix e = sinkproof_model_slot(of->model, 0, SINKPROOF_EMBEDDING);
    double *row = malloc((2 * d + 1) * sizeof *row), *own = row + d;
    bool fine = row != NULL && of->table != NULL && e.cols == d && of->all == of->n * d;
    for (size_t i = 0; fine && i < of->n; i++) {
        if (of->table[i] < 0) continue;
        sinkproof_matrix_row(&e, (size_t)of->table[i], row);
        sinkproof_matrix_row(&e, (size_t)tokens[i], own);
        for (size_t k = 0; k < d; k++) {
            y[i * d + k] = row[k] + (of->numbers[ADDS] != 0 ? own[k] : 0);
            width[i * d + k] = 0;
        }
    }
    free(row);
    return fine;
}

// Whether a row of the embedding explains the row of a position.
static bool row_explains(const composing *c, size_t i, const double *row_d, bool adds) {
    size_t d = c->elements / c->n, far = 0;
    for (size_t k = 0; k < d && 8 * far <= d; k++) {
        size_t at = i * d + k;
        far += !value_is_near(c, at, row_d[k] + (adds ? c->mid[at] : 0));
    }
    return 8 * far <= d;
}

// Whether each position with an element outside has a token.
static bool find_tokens(const operation *o, bool adds, double *token_n) {
    const composing *c = o->c;
    size_t d = c->elements / c->n, wrong = 0, found = 0;
    double *row_d = malloc((d + 1) * sizeof *row_d);
    for (size_t i = 0; i < c->n; i++) {
        token_n[i] = -1;
        wrong += memchr(&c->marks[i * d], 1, d) != NULL;
    }
    for (size_t t = 0; row_d != NULL && t < c->s->trials.config->vocab; t++) {
        sinkproof_matrix_row(&o->weights[0], t, row_d);
        for (size_t i = 0; i < c->n; i++) {
            if (token_n[i] >= 0 || memchr(&c->marks[i * d], 1, d) == NULL) continue;
            if (row_explains(c, i, row_d, adds)) token_n[i] = (double)t, found++;
        }
    }
    free(row_d);
    return wrong > 0 && found == wrong;
}

// "token 106 (to tokens below 106) and token 0 (to others)", or a list of some.
static void say_tokens(const composing *c, const double *token_n, char *text, size_t size) {
    const int32_t *tokens = sinkproof_trace_tokens(c->s->trials.suspect.trace);
    double first = -1, other = -1;
    long first_least = INT32_MAX, first_most = -1, other_least = INT32_MAX, other_most = -1;
    bool two = true;
    for (size_t i = 0; i < c->n; i++) {
        if (token_n[i] < 0) continue;
        if (first < 0) first = token_n[i];
        if (token_n[i] != first && other < 0) other = token_n[i];
        two = two && (token_n[i] == first || token_n[i] == other);
        bool of_first = token_n[i] == first;
        long *least = of_first ? &first_least : &other_least,
             *most = of_first ? &first_most : &other_most;
        if (tokens[i] < *least) *least = tokens[i];
        if (tokens[i] > *most) *most = tokens[i];
    }
    if (other < 0) {
        snprintf(text, size, "token %g", first);
    } else if (two && (first_most < other_least || other_most < first_least)) {
        snprintf(text, size, "token %g for tokens %ld to %ld, token %g for tokens %ld to %ld",
                 first, first_least, first_most, other, other_least, other_most);
    } else {
        size_t said = 0, length = 0;
        for (size_t i = 0; i < c->n && said < 4; i++) {
            if (token_n[i] < 0) continue;
            length += (size_t)snprintf(text + length, size - length, "%stoken %g for token %d",
                                       said == 0 ? "" : ", ", token_n[i], (int)tokens[i]);
            said++;
        }
        snprintf(text + length, size - length, ", and so on");
    }
}

static bool try_lookups(const operation *o, bool adds, double *token_n) {
    composing *c = o->c;
    char which[200];
    if (!find_tokens(o, adds, token_n)) return true;
    made_kind made = {.make = make_lookups, .numbers = {[ADDS] = adds}};
    made.table = composing_keep_numbers(c, c->n, token_n);
    if (made.table == NULL) return false;
    say_tokens(c, token_n, which, sizeof which);
    snprintf(made.id, sizeof made.id, "row-of-another%s", adds ? "-added" : "");
    snprintf(made.text, sizeof made.text,
             adds ? "has the row of another token of the vocabulary added to a token's own: %s"
                  : "holds the row of another token of the vocabulary in the place of a token's "
                    "own: %s",
             which);
    return composing_try_made(o, &made);
}

bool compose_lookups(composing *c) {
    enum { MOST_NUMBERS = 1 << 25 };
    operation o;
    const sinkproof_config *config = c->s->trials.config;
    if (c->point != TRACE_T0 || config->vocab > MOST_NUMBERS / config->hidden) return true;
    double *token_n = malloc((c->n + 1) * sizeof *token_n);
    if (token_n == NULL) return fail_for_memory(c->s);
    bool fine = operation_read(c, &o);
    bool whole = fine && o.n_weights > 0 && o.weights[0].cols == c->elements / c->n;
    for (int adds = 1; adds >= 0 && whole && fine && c->found == NULL; adds--)
        fine = try_lookups(&o, adds == 1, token_n);
    operation_free(&o);
    free(token_n);
    return fine;
}
