// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// An operation that reads the rows of other positions: for some rows that are wrong, the rows of
// its input that explain them; a rule that all of them follow is tried.
#include "audit/diagnose/composed_made.h"
#include "audit/diagnose/places.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 1024 };

typedef struct row_sources {
    const operation *o;
    size_t input, n_asked, asked[SAMPLED_ROWS];
    double *y;        // the input with one row from elsewhere
    uint8_t *near_an; // whether row n explains asked row a
} row_sources;

// Whether the samples of row i are near if its input is that of row `from`.
static bool row_is_near(const row_sources *s, size_t i, size_t from) {
    const operation *o = s->o;
    size_t width = o->width[s->input], each = o->c->elements / o->c->n, far = 0, all = 0;
    const double *x = o->x[s->input];
    const operation_change change = {.input = s->input, .x = s->y};
    memcpy(&s->y[i * width], &x[from * width], width * sizeof *x);
    for (size_t k = 0; k < o->n && 8 * far <= o->n; k++) {
        if (o->at[k] / each != i) continue;
        all++;
        far += !value_is_near(o->c, o->at[k], operation_value(o, &change, o->at[k]));
    }
    memcpy(&s->y[i * width], &x[i * width], width * sizeof *x);
    return all > 0 && 8 * far <= all;
}

static bool find_sources(row_sources *s) {
    const operation *o = s->o;
    size_t n = o->c->n, each = o->c->elements / n, width = o->width[s->input];
    for (size_t k = 0; k < o->n; k++) {
        size_t i = o->at[k] / each;
        bool is_new = s->n_asked == 0 || s->asked[s->n_asked - 1] != i;
        if (is_new && s->n_asked < SAMPLED_ROWS) s->asked[s->n_asked++] = i;
    }
    s->y = malloc((width * n + 1) * sizeof *s->y);
    s->near_an = calloc(s->n_asked * n + 1, 1);
    if (s->y == NULL || s->near_an == NULL) return fail_for_memory(o->c->s);
    memcpy(s->y, o->x[s->input], width * n * sizeof *s->y);
    for (size_t a = 0; a < s->n_asked; a++)
        for (size_t from = 0; from < n; from++)
            s->near_an[a * n + from] = from != s->asked[a] && row_is_near(s, s->asked[a], from);
    return true;
}

static bool rule_holds(const row_sources *s, const sinkproof_from *rule) {
    size_t n = s->o->c->n, far = 0;
    for (size_t a = 0; a < s->n_asked; a++) {
        size_t from = sinkproof_from_index(rule, s->asked[a], n);
        far += from == SIZE_MAX || s->near_an[a * n + from] == 0;
    }
    return s->n_asked > 0 && far <= (s->n_asked > 4 ? 1 : 0); // rounded rows may seem far
}

static bool try_rule(const row_sources *s, const sinkproof_from *rule, const char *id,
                     const char *text) {
    const operation *o = s->o;
    composing *c = o->c;
    bool fine = true;
    if (!rule_holds(s, rule)) return true;
    for (size_t r = 0; r < c->n_regions && fine && c->found == NULL; r++) {
        composed_mistake *m = composing_reads(c, &o->inputs[s->input]);
        if (m == NULL) return false;
        m->input.moving.from = *rule, m->region = c->regions[r];
        composed_name(m, "%s-reads-%s-%s", sinkproof_trace_point_name(c->point),
                      sinkproof_trace_point_name(o->inputs[s->input].point), id);
        composed_say_reads(c, m, &o->inputs[s->input]);
        composed_say(m, "%s", text);
        composed_say_region(c, m);
        fine = composing_try(c, m);
    }
    return fine;
}

static void say_shift(char *text, size_t size, long by) {
    if (by == 1 || by == -1)
        snprintf(text, size, "of the %s position", by < 0 ? "previous" : "next");
    else
        snprintf(text, size, "of the position %ld %s", labs(by), by < 0 ? "before" : "on");
}

// The rules that the source `from` of a row allows.
static bool try_rules_of(const row_sources *s, size_t row, size_t from) {
    long i = (long)row, by = (long)from - i, n = (long)s->o->c->n;
    char id[48], text[160];
    snprintf(id, sizeof id, "%+ld", by);
    say_shift(text, sizeof text, by);
    bool fine =
        try_rule(s, &(sinkproof_from){.source = SINKPROOF_FROM_SHIFTED, .by = by}, id, text);
    if (!fine || s->o->c->found != NULL) return fine;
    snprintf(id, sizeof id, "rolled%+ld", by);
    say_shift(text, sizeof text - 16, by);
    strcat(text, ", in a circle");
    fine = try_rule(s, &(sinkproof_from){.source = SINKPROOF_FROM_ROLLED, .by = by}, id, text);
    if (!fine || s->o->c->found != NULL) return fine;
    snprintf(id, sizeof id, "at-%zu", from);
    snprintf(text, sizeof text, "of position %zu", from);
    fine =
        try_rule(s, &(sinkproof_from){.source = SINKPROOF_FROM_FIXED, .by = (long)from}, id, text);
    if (!fine || s->o->c->found != NULL) return fine;
    snprintf(id, sizeof id, "mirrored-%ld", by + 2 * i);
    snprintf(text, sizeof text, "of the position whose number is %ld minus its own%s", by + 2 * i,
             by + 2 * i == n - 1 ? ": in reverse order" : "");
    return try_rule(s, &(sinkproof_from){.source = SINKPROOF_FROM_MIRRORED, .by = by + 2 * i}, id,
                    text);
}

static bool try_counts(const row_sources *s) {
    bool fine = true;
    size_t n = s->o->c->n;
    for (size_t of = 2; of < n && fine && s->o->c->found == NULL; of++) {
        const struct {
            size_t (*rule)(size_t i, size_t size, size_t by);
            const char *id, *text;
        } rules[] = {{read_from_modulo, "modulo",
                      "of the position with its number modulo %zu: positions begin anew"},
                     {read_from_quotient, "over", "of the position with its number over %zu, cut"},
                     {read_from_first_of, "first-of", "of the first position of its block of %zu"}};
        for (size_t k = 0; k < 3 && fine && s->o->c->found == NULL; k++) {
            char id[48], text[160];
            const sinkproof_from rule = {
                .source = SINKPROOF_FROM_RULE, .by = (long)of, .rule = rules[k].rule};
            snprintf(id, sizeof id, "%s-%zu", rules[k].id, of);
            snprintf(text, sizeof text, rules[k].text, of);
            fine = try_rule(s, &rule, id, text);
        }
    }
    return fine;
}

static bool try_rows(const operation *o, size_t input) {
    row_sources s = {.o = o, .input = input};
    bool fine = find_sources(&s);
    for (size_t a = 0; a < s.n_asked && a < 2; a++)
        for (size_t from = 0; fine && from < o->c->n && o->c->found == NULL; from++)
            if (s.near_an[a * o->c->n + from]) fine = try_rules_of(&s, s.asked[a], from);
    if (fine && o->c->found == NULL) fine = try_counts(&s);
    free(s.y);
    free(s.near_an);
    return fine;
}

bool compose_rows(composing *c) {
    operation o;
    if (sinkproof_trace_point_is_by_head(c->point) || c->point == TRACE_A11 || c->n > MOST_ROWS)
        return true;
    bool fine = operation_read(c, &o);
    for (size_t i = 0; fine && o.whole && i < o.n_inputs && c->found == NULL; i++)
        if (o.inputs[i].point != TRACE_M3 && composed_input_words(o.inputs[i].point) != NULL)
            fine = try_rows(&o, i);
    operation_free(&o);
    return fine;
}
