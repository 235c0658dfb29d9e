// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The row of the embedding that each token reads: the rows that explain some tokens, and a rule
// that all of them follow.
#include "audit/diagnose/composed_made.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef enum row_kind {
    TOKEN_BY,   // the token plus a, in a circle
    MODULO,     // the token modulo a
    QUOTIENT,   // over a
    MIRRORED,   // a less the token
    FIXED,      // a
    AT_MOST,    // a, if the token is larger
    POSITION,   // the position plus a
    EXCLUSIVE,  // the token with the bits of a turned
    OF_POSITION // the token of the position a on
} row_kind;

enum { KIND, A };

static long row_of(const sinkproof_making *of, const int32_t *tokens, size_t i) {
    long vocab = (long)of->config->vocab, t = tokens[i], a = (long)of->numbers[A];
    long at = (long)i + a;
    switch ((row_kind)of->numbers[KIND]) {
    case TOKEN_BY:
        return ((t + a) % vocab + vocab) % vocab;
    case MODULO:
        return t % a;
    case QUOTIENT:
        return t / a;
    case MIRRORED:
        return a - t;
    case FIXED:
        return a;
    case AT_MOST:
        return t < a ? t : a;
    case POSITION:
        return at;
    case EXCLUSIVE:
        return t ^ a;
    case OF_POSITION:
        return at >= 0 && at < (long)of->n ? tokens[at] : t;
    }
    return t;
}

static bool make_embedding(const sinkproof_making *of, double *y, double *width) {
    const int32_t *tokens = sinkproof_trace_tokens(of->trace);
    size_t d = of->config->hidden;
    sinkproof_matrix e = sinkproof_model_slot(of->model, 0, SINKPROOF_EMBEDDING);
    for (size_t i = 0; i < of->n; i++) {
        long row = row_of(of, tokens, i);
        if (row < 0 || row >= (long)of->config->vocab || e.cols != d) return false;
        sinkproof_matrix_row(&e, (size_t)row, &y[i * d]);
        for (size_t k = 0; k < d; k++) width[i * d + k] = 0;
    }
    return true;
}

static bool try_rows(const operation *o, row_kind kind, long a, const char *text) {
    made_kind made = {.make = make_embedding, .numbers = {kind, (double)a}};
    if (o->c->found != NULL) return true;
    snprintf(made.id, sizeof made.id, "row-%d%+ld", (int)kind, a);
    snprintf(made.text, sizeof made.text, "holds the embedding of %s", text);
    return composing_try_made(o, &made);
}

// The rules that a row allows for the token at position i.
static bool try_rules(const operation *o, size_t i, long row) {
    long vocab = (long)o->c->s->trials.config->vocab;
    long t = sinkproof_trace_tokens(o->c->s->trials.suspect.trace)[i], by = row - t;
    bool fine = true;
    char text[120];
    snprintf(text, sizeof text, "the token %ld %s, in a circle", labs(by),
             by < 0 ? "before" : "on");
    if (by != 0) fine = try_rows(o, TOKEN_BY, by, text);
    snprintf(text, sizeof text, "token %ld in the place of each", row);
    if (fine) fine = try_rows(o, FIXED, row, text);
    snprintf(text, sizeof text, "token %ld in the place of larger ones", row);
    if (fine) fine = try_rows(o, AT_MOST, row, text);
    snprintf(text, sizeof text, "the token whose number is %ld minus its own", row + t);
    if (fine) fine = try_rows(o, MIRRORED, row + t, text);
    snprintf(text, sizeof text, "its position%s, not of its token",
             row == (long)i ? "" : " (shifted)");
    if (fine) fine = try_rows(o, POSITION, row - (long)i, text);
    snprintf(text, sizeof text, "the token with the bits %ld of its number turned", row ^ t);
    if (fine) fine = try_rows(o, EXCLUSIVE, row ^ t, text);
    for (long a = 2; a < vocab && fine && o->c->found == NULL; a++) {
        snprintf(text, sizeof text, "its token modulo %ld", a);
        if (t % a == row) fine = try_rows(o, MODULO, a, text);
        snprintf(text, sizeof text, "its token over %ld, cut", a);
        if (fine && t / a == row) fine = try_rows(o, QUOTIENT, a, text);
    }
    return fine;
}

// Whether a row of the embedding explains a token.
static bool row_explains(const operation *o, size_t i, const double *row_d) {
    const composing *c = o->c;
    size_t d = c->elements / c->n, far = 0;
    for (size_t k = 0; k < d && 8 * far <= d; k++) far += !value_is_near(c, i * d + k, row_d[k]);
    return 8 * far <= d;
}

bool compose_embedding(composing *c) {
    operation o;
    if (c->point != TRACE_T0) return true;
    bool fine = operation_read(c, &o);
    size_t d = c->elements / c->n, vocab = c->s->trials.config->vocab;
    double *row_d = malloc((d + 1) * sizeof *row_d);
    if (fine && row_d == NULL) fine = fail_for_memory(c->s);
    char text[80];
    for (long by = -8; by <= 8 && fine && o.n > 0; by++) {
        snprintf(text, sizeof text, "the token %ld positions %s", labs(by),
                 by < 0 ? "before" : "on");
        if (by != 0) fine = try_rows(&o, OF_POSITION, by, text);
    }
    size_t i = o.n > 0 ? o.at[o.n / 2] / d : 0;
    for (size_t row = 0; row < vocab && o.n > 0 && fine && c->found == NULL; row++) {
        sinkproof_matrix_row(&o.weights[0], row, row_d);
        if (row_explains(&o, i, row_d)) fine = try_rules(&o, i, (long)row);
    }
    free(row_d);
    operation_free(&o);
    return fine;
}
