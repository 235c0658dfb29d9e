// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Which rule the numbers of a table follow, and how they are said.
#include "audit/diagnose/composed_score_rules.h"
#include "audit/diagnose/composed_weighings.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct weighing_search {
    const operation *o;
    kernel *x;
    double *ruled; // room for a table
} weighing_search;

// ---- words

static void add_words(char *text, size_t size, const char *format, ...) {
    size_t n = strlen(text);
    va_list given;
    va_start(given, format);
    if (n + 1 < size) vsnprintf(text + n, size - n, format, given);
    va_end(given);
}

// Runs of equal numbers, or of numbers one more or less each: "12 at positions 0-35, ...".
static void say_runs(size_t n, const double *table, const char *of, char *text, size_t size) {
    enum { RUNS = 7 };
    size_t runs = 0;
    for (size_t at = 0, end; at < n && runs < RUNS; at = end, runs++) {
        double by = at + 1 < n ? table[at + 1] - table[at] : 0;
        if (fabs(by) != 1) by = 0;
        for (end = at + 1; end < n && table[end] - table[end - 1] == by; end++) {
        }
        if (end == at + 1)
            add_words(text, size, "%s%.4g at %s %zu", runs > 0 ? ", " : "", table[at], of, at);
        else if (by == 0)
            add_words(text, size, "%s%.4g at %ss %zu-%zu", runs > 0 ? ", " : "", table[at], of, at,
                      end - 1);
        else
            add_words(text, size, "%s%.4g to %.4g at %ss %zu-%zu", runs > 0 ? ", " : "", table[at],
                      table[end - 1], of, at, end - 1);
        if (end < n && runs + 1 == RUNS) add_words(text, size, ", ...");
    }
}

static void say_heads(size_t heads, const double *table, char *text, size_t size) {
    enum { SAID = 12 };
    for (size_t h = 0; h < heads && h < SAID; h++)
        add_words(text, size, "%s%.4g", h > 0 ? ", " : "", table[h]);
    if (heads > SAID) add_words(text, size, ", ...");
}

static bool are_whole(size_t n, const double *table, double room, double *whole) {
    bool all = true;
    for (size_t i = 0; i < n; i++) {
        whole[i] = nearbyint(table[i]);
        all = all && fabs(table[i] - whole[i]) <= room && whole[i] >= 0;
    }
    return all;
}

static bool try_words(const weighing_search *s, weighing_kind kind, weighing_by by,
                      const double *table, const char *id, const char *text) {
    const weighing w = {kind, by, table};
    made_kind made = {.fitted = true};
    snprintf(made.id, sizeof made.id, "%s", id);
    snprintf(made.text, sizeof made.text, "%s", text);
    return weighing_try(s->o, s->x, &w, &made);
}

// ---- numbers of each distance or key

static double logarithm(double at) {
    return log1p(at);
}
static const struct {
    double (*of)(double at);
    const char *id, *text;
} shapes[] = {{sqrt, "root", "times the square root of the distance"},
              {logarithm, "log", "times ln(1 + distance)"}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

// Fits s to ln table = s * shape, to so many digits, and makes the table of it: 0 where it is 0.
static double fit_shape(size_t n, const double *table, double (*of)(double), int digits,
                        double *ruled) {
    double along = 0, square = 0;
    for (size_t p = 1; p < n; p++) {
        double x = of((double)p);
        if (table[p] > 1e-3) along += x * log(table[p]), square += x * x;
    }
    double s = square > 0 ? along / square : 0;
    if (s != 0) {
        double unit = pow(10, digits - 1 - floor(log10(fabs(s))));
        s = nearbyint(s * unit) / unit;
    }
    for (size_t p = 0; p < n; p++) ruled[p] = table[p] > 1e-3 ? exp(s * of((double)p)) : 0;
    return s;
}

static bool try_shapes(const weighing_search *s, const double *table) {
    bool fine = true;
    for (size_t i = 0; i < SHAPES * 4 && fine && s->o->c->found == NULL; i++) {
        char id[64], text[300] = "";
        double slope = fit_shape(s->x->n, table, shapes[i / 4].of, (int)(i % 4) + 1, s->ruled);
        snprintf(id, sizeof id, "%s-by-distance", shapes[i / 4].id);
        snprintf(text, sizeof text,
                 "has scores that are %s for the distance between query and key: by %.4g %s",
                 slope < 0 ? "smaller" : "larger", fabs(slope), shapes[i / 4].text);
        fine = try_words(s, WEIGH_KEYS, BY_DISTANCE, s->ruled, id, text);
    }
    return fine;
}

// A slope of each head.
static bool try_head_slopes(const weighing_search *s, weighing_kind kind, double *table) {
    const weighing w = {kind, BY_HEAD, table};
    char text[340] = "";
    bool key = kind == WEIGH_BY_KEY;
    if (!weighing_fit_scores(s->o->c, s->x, &w, table)) return fail_for_memory(s->o->c->s);
    add_words(text, sizeof text,
              key ? "has scores to which a slope of each head times the key's position is added, "
                    "not times its distance, which leaves the sink behind: "
                  : "has scores that are less by a slope of each head times the distance between "
                    "query and key: ");
    say_heads(s->x->heads, table, text, sizeof text);
    return try_words(s, kind, BY_HEAD, table, key ? "slopes-by-key" : "slopes-by-distance", text);
}

// Only 0 and 1: which keys are seen.
static void say_seen(size_t n, const double *seen, char *text, size_t size) {
    bool any = false;
    for (size_t at = 0, end; at < n; at = end) {
        for (end = at + 1; end < n && seen[end] == seen[at]; end++) {
        }
        if (seen[at] == 0) continue;
        if (end == at + 1)
            add_words(text, size, "%s%zu", any ? ", " : "", at);
        else
            add_words(text, size, "%s%zu-%zu", any ? ", " : "", at, end - 1);
        any = true;
    }
    if (!any) add_words(text, size, "none");
}

static bool try_seen(const weighing_search *s, weighing_by by, const double *table) {
    size_t n = s->x->n, all = weighing_numbers(s->x, by), heads = all / n;
    char text[340] = "";
    bool key = by == BY_KEY || by == BY_HEAD_KEY, same = true;
    if (!are_whole(all, table, 0.25, s->ruled)) return true;
    for (size_t p = 0; p < all; p++) same = same && s->ruled[p] <= 1;
    if (!same) return true;
    add_words(text, sizeof text, "sees other keys%s: those %s ", heads > 1 ? " in each head" : "",
              key ? "at the positions" : "at the distances");
    for (size_t h = 0; h < heads; h++) {
        say_seen(n, s->ruled + h * n, text, sizeof text);
        if (heads > 1) add_words(text, sizeof text, " in head %zu%s", h, h + 1 < heads ? "; " : "");
    }
    if (!key) add_words(text, sizeof text, " before the query");
    return try_words(s, WEIGH_KEYS, by, s->ruled,
                     key ? (heads > 1 ? "seen-by-head-and-key" : "seen-by-key")
                         : (heads > 1 ? "seen-by-head-and-distance" : "seen-by-distance"),
                     text);
}

static bool try_numbers_of(const weighing_search *s, weighing_by by, const double *table) {
    bool key = by == BY_KEY || by == BY_HEAD_KEY,
         heads = by == BY_HEAD_DISTANCE || by == BY_HEAD_KEY;
    char text[340] = "", id[64];
    for (size_t p = 0; p < weighing_numbers(s->x, by); p++)
        if (!(table[p] >= -0.05)) return true; // no weight is negative
    for (size_t p = 0; p < weighing_numbers(s->x, by); p++) s->ruled[p] = fmax(table[p], 0);
    add_words(text, sizeof text,
              "has scores to which a number is added that depends on %s alone, %s%s",
              key ? "the key's position" : "the distance between query and key",
              heads ? "of each head its own" : "the same in all heads",
              key ? " (a bias of keys)" : " (a bias of relative positions)");
    snprintf(id, sizeof id, "bias-by-%s%s", heads ? "head-and-" : "", key ? "key" : "distance");
    return try_words(s, WEIGH_KEYS, by, s->ruled, id, text);
}

static bool try_keys(const weighing_search *s, bool key, bool heads, const double *table) {
    weighing_by by = heads ? (key ? BY_HEAD_KEY : BY_HEAD_DISTANCE) : key ? BY_KEY : BY_DISTANCE;
    // a number of each head and distance: enough elements for each
    if (heads && (s->x->d < 8 || s->x->heads < 2)) return true;
    return try_seen(s, by, table) && try_numbers_of(s, by, table);
}

// ---- numbers of each row or head

static bool try_terms(const weighing_search *s, weighing_kind kind, double *table) {
    const weighing w = {kind, BY_ROW, table};
    char text[340] = "";
    weighing_fit_terms(s->o->c, s->x, &w, table);
    if (!are_whole(s->x->n, table, 0.1, s->ruled)) return true;
    add_words(text, sizeof text,
              kind == WEIGH_SINK ? "has a sink that is counted so often in the sum: "
                                 : "has so many more keys of score 0, without a value, in the sum "
                                   "(as of padding that is "
                                   "not masked): ");
    say_runs(s->x->n, s->ruled, "position", text, sizeof text);
    return try_words(s, kind, BY_ROW, s->ruled,
                     kind == WEIGH_SINK ? "sinks-by-row" : "zeros-by-row", text);
}

static bool try_one_sink(const weighing_search *s, double *number) {
    const weighing w = {WEIGH_SINK, BY_ALL, number};
    char text[340];
    weighing_fit_terms(s->o->c, s->x, &w, number);
    if (!(*number > 0)) return true;
    snprintf(text, sizeof text,
             "has a sink that is counted about %.3g times in the sum, not once (or its logit is %s "
             "by about %.3g in all heads)",
             *number, *number < 1 ? "smaller" : "larger", fabs(log(*number)));
    return try_words(s, WEIGH_SINK, BY_ALL, number, "sink-counted", text);
}

// Whether the logits of the sinks are those of other heads of the layer.
static bool say_other_heads(const kernel *x, const double *table, char *text, size_t size) {
    bool all = true;
    add_words(text, size, ": that of head ");
    for (size_t h = 0; h < x->heads && all; h++) {
        size_t from = x->heads;
        double logit = x->sink_h[h] + log(table[h]);
        for (size_t o = 0; o < x->heads && from == x->heads; o++)
            if (fabs(x->sink_h[o] - logit) < 1e-3) from = o;
        all = from < x->heads;
        if (h < 12) add_words(text, size, "%s%zu for head %zu", h > 0 ? ", " : "", from, h);
    }
    return all;
}

static bool try_head_sinks(const weighing_search *s, double *table) {
    const weighing w = {WEIGH_SINK, BY_HEAD, table};
    size_t heads = s->x->heads;
    char text[340] = "has a sink whose logit is another in each head", of[300] = "";
    weighing_fit_terms(s->o->c, s->x, &w, table);
    for (size_t h = 0; h < heads; h++)
        if (!(table[h] > 0)) return true;
    if (say_other_heads(s->x, table, of, sizeof of)) {
        add_words(text, sizeof text, "%s", of);
    } else {
        for (size_t h = 0; h < heads; h++) s->ruled[h] = log(table[h]);
        add_words(text, sizeof text, ", by ");
        say_heads(heads, s->ruled, text, sizeof text);
        add_words(text, sizeof text, " (or scores that are less by these)");
    }
    return try_words(s, WEIGH_SINK, BY_HEAD, table, "sinks-by-head", text);
}

static bool try_score_factors(const weighing_search *s, double *table) {
    composing *c = s->o->c;
    char id[64], text[340];
    size_t n = s->x->n;
    bool fine = true;
    const weighing rows = {WEIGH_SCORES, BY_ROW, table}, heads = {WEIGH_SCORES, BY_HEAD, table};
    if (!weighing_fit_scores(c, s->x, &rows, table)) return fail_for_memory(c->s);
    // row 0 sees one key alone, whose score may be near any other
    score_rule rule = {0};
    while (fine && c->found == NULL && score_rule_next(n, 1e-4 + 4 * c->step, table, &rule)) {
        for (size_t i = 0; i < n; i++) s->ruled[i] = score_rule_factor(&rule, i);
        snprintf(text, sizeof text, "has scores multiplied by %s", rule.text);
        snprintf(id, sizeof id, "scores-%s", rule.id);
        fine = try_words(s, WEIGH_SCORES, BY_ROW, s->ruled, id, text);
    }
    fine = fine && try_words(s, WEIGH_SCORES, BY_ROW, table, "scores-by-position",
                             "has scores that are multiplied by a number of its own for each "
                             "query's position, the same in all heads");
    if (!fine || c->found != NULL) return fine;
    if (!weighing_fit_scores(c, s->x, &heads, table)) return fail_for_memory(c->s);
    snprintf(text, sizeof text, "has scores that are multiplied by a number of each head: ");
    say_heads(s->x->heads, table, text, sizeof text);
    return try_words(s, WEIGH_SCORES, BY_HEAD, table, "scores-by-head", text);
}

// The causes of few numbers first. room: of each head and key.
static bool try_all(const weighing_search *s, double *shared, double *room) {
    kernel *x = s->x;
    bool there = weighing_fit_keys(s->o->c, x, BY_HEAD_DISTANCE, shared, room);
    double *few = shared + x->n;
    return (!there || (try_seen(s, BY_DISTANCE, shared) && try_shapes(s, shared))) &&
           try_one_sink(s, few) && try_head_sinks(s, few) &&
           try_head_slopes(s, WEIGH_BY_DISTANCE, few) && try_head_slopes(s, WEIGH_BY_KEY, few) &&
           (!there || try_numbers_of(s, BY_DISTANCE, shared)) && try_terms(s, WEIGH_SINK, few) &&
           try_terms(s, WEIGH_ZEROS, few) && try_score_factors(s, few) &&
           (!there || try_keys(s, false, true, room)) &&
           (!weighing_fit_keys(s->o->c, x, BY_HEAD_KEY, shared, room) ||
            (try_keys(s, true, false, shared) && try_keys(s, true, true, room)));
}

bool compose_weighings(composing *c) {
    enum { MOST = 1 << 28 }; // multiplications of the fit
    operation o;
    kernel x;
    if (!kernel_is_asked(c) || (double)c->elements * (double)c->n * (double)c->n / 4 > MOST)
        return true;
    const sinkproof_making of = composing_making(c);
    bool fine = operation_read(c, &o);
    if (fine && o.n > 0 && kernel_open(&of, &x)) {
        size_t all = x.heads * x.n;
        double *room = malloc((2 * all + 2 * x.n + x.heads + 2) * sizeof *room);
        double *shared = room + 2 * all;
        const weighing_search s = {&o, &x, room};
        fine = room != NULL || fail_for_memory(c->s);
        fine = fine && (x.weights != NULL || try_all(&s, shared, room + all));
        free(room);
        kernel_close(&x);
    }
    operation_free(&o);
    return fine;
}
