// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What was read in the place of each value, or of each key, is solved from the trace: A11 is linear
// in the values, A6 in the keys, and several heads share them. The vectors are then compared with
// those of all tokens and heads, and with the own one clamped or multiplied.
#include "audit/diagnose/composed_read.h"
#include "base/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- where it is from

// How far a part of the coordinates of `a` is from one of `b`, for its size.
static double distance(size_t d, const double *a, const double *b) {
    double off = 0, size = 0;
    for (size_t c = 0; c < d; c++) off += (a[c] - b[c]) * (a[c] - b[c]), size += a[c] * a[c];
    return size > 0 ? sqrt(off / size) : off > 0 ? INFINITY : 0;
}

typedef struct sources {
    size_t parts; // of the coordinates
    size_t *from; // [n, groups, parts]: which part of the trace is read in the place of each
} sources;

// The source of each part of each vector; false: of some there is none. Of sources that are alike,
// as the values of one token twice in a text, that at the distance of the token before.
static bool find_sources(const reading *r, const double *own, const double *y, const uint8_t *told,
                         const sources *s) {
    const kernel *x = r->x;
    size_t each = x->d / s->parts, width = x->groups * s->parts;
    double near = r->o->c->step > 0x1p-12 ? 0.2 : 0.02;
    for (size_t at = 0; at < x->n * width; at++) {
        const double *y_c = y + at * each;
        size_t from = at; // in units of parts
        double least = distance(each, y_c, own + from * each);
        size_t before = at >= width ? s->from[at - width] + width : at;
        if (before != at && before < x->n * width) {
            double off = distance(each, y_c, own + before * each);
            bool open = !told[at / s->parts]; // then as the token before
            if (open || (off < least && off < near)) from = before, least = off;
        }
        for (size_t o = 0; o < x->n * width && told[at / s->parts] && least > near / 4; o++) {
            double off = distance(each, y_c, own + o * each);
            if (off < least) least = off, from = o;
        }
        if (told[at / s->parts] && least > near) return false;
        s->from[at] = from;
    }
    return true;
}

static void say_tokens(size_t first, size_t last, char *text, size_t size) {
    if (first == last)
        snprintf(text, size, "token %zu", first);
    else
        snprintf(text, size, "tokens %zu-%zu", first, last);
}

// Runs of tokens that are read from others at one distance, of one group and part.
static void say_runs(const reading *r, const sources *s, char *text, size_t size) {
    enum { SAID = 4 };
    const kernel *x = r->x;
    size_t width = x->groups * s->parts, each = x->d / s->parts, said = 0;
    for (size_t p = 0; p < width; p++)
        for (size_t j = 0, end; j < x->n; j = end) {
            size_t from = s->from[j * width + p], group = from / s->parts % x->groups;
            size_t token = from / width, length = strlen(text);
            for (end = j + 1; end < x->n; end++)
                if (s->from[end * width + p] != from + (end - j) * width) break;
            if (from == j * width + p || said++ > SAID) continue;
            char of[64] = "", at[64] = "";
            if (s->parts > 1) {
                size_t c = p % s->parts * each, o = from % s->parts * each;
                snprintf(of, sizeof of, ", coordinates %zu-%zu", c, c + each - 1);
                snprintf(at, sizeof at, ", coordinates %zu-%zu", o, o + each - 1);
            }
            char tokens[64], others[64];
            say_tokens(j, end - 1, tokens, sizeof tokens);
            say_tokens(token, token + end - 1 - j, others, sizeof others);
            if (said > SAID)
                snprintf(text + length, size - length, "; and so on");
            else
                snprintf(text + length, size - length,
                         "%sfor %s of head %zu%s those of %s of head "
                         "%zu%s",
                         said > 1 ? "; " : "", tokens, p / s->parts, of, others, group, at);
        }
}

static bool try_sources(const reading *r, const double *own, const double *y, const uint8_t *told,
                        double *made) {
    const kernel *x = r->x;
    size_t d = x->d, most = 4, all = x->n * x->groups * most;
    size_t *room = calloc(all + 1, sizeof *room);
    bool fine = room != NULL || fail_for_memory(r->o->c->s);
    for (size_t parts = 1; fine && parts <= most && r->o->c->found == NULL; parts *= 2) {
        const sources s = {parts, room};
        if (d % parts != 0 || d / parts < 4 || !find_sources(r, own, y, told, &s)) continue;
        char text[320] = "", id[64];
        size_t each = d / parts;
        for (size_t at = 0; at < x->n * x->groups * parts; at++)
            memcpy(made + at * each, own + room[at] * each, each * sizeof *made);
        snprintf(text, sizeof text, "%s in other places: ", r->of_keys ? "keys" : "values");
        say_runs(r, &s, text, sizeof text);
        snprintf(id, sizeof id, "%s-of-others-%zu", r->of_keys ? "keys" : "values", parts);
        fine = reading_try_passes(r, made, id, text);
    }
    free(room);
    return fine;
}

// Squares of some tokens and as many coordinates that are transposed.
static bool try_squares(const reading *r, const double *own, double *made) {
    const kernel *x = r->x;
    size_t d = x->d;
    bool fine = true;
    for (size_t side = 2; side <= d && side <= x->n && fine; side *= 2) {
        char id[64], text[120];
        if (d % side != 0) break;
        memcpy(made, own, x->n * x->groups * d * sizeof *made);
        for (size_t at = 0; at < x->n / side * side * x->groups * d; at++) {
            size_t j = at / d / x->groups, g = at / d % x->groups, c = at % d;
            size_t from = j / side * side + c % side, to = c / side * side + j % side;
            made[at] = own[(from * x->groups + g) * d + to];
        }
        snprintf(id, sizeof id, "%s-squares-%zu", r->of_keys ? "keys" : "values", side);
        snprintf(text, sizeof text,
                 "%s whose squares of %.40s and as many coordinates are transposed",
                 r->of_keys ? "keys" : "values", sinkproof_counted(side, "token").text);
        fine = reading_try_passes(r, made, id, text);
    }
    return fine;
}

// Clamped to the largest size that was read, or to a multiple of 1/4.
static bool try_clamps(const reading *r, const double *own, const double *y, double *made) {
    enum { CLAMPS = 48 };
    size_t all = r->x->n * r->x->groups * r->x->d;
    double largest = 0, was = 0;
    bool fine = true;
    for (size_t i = 0; i < all; i++)
        largest = fmax(largest, fabs(y[i])), was = fmax(was, fabs(own[i]));
    for (int i = 0; i < CLAMPS && fine && r->o->c->found == NULL; i++) {
        // roundings of 16 bits hide the largest
        double limit = i + 1 == CLAMPS ? nearbyint(largest * 1024) / 1024 : (double)(i + 1) / 4;
        char id[64], text[100];
        if (!(limit < was) || (i + 1 == CLAMPS && r->o->c->step > 0x1p-12)) continue;
        for (size_t e = 0; e < all; e++) made[e] = fmax(-limit, fmin(limit, own[e]));
        snprintf(id, sizeof id, "%s-clamped-%g", r->of_keys ? "keys" : "values", limit);
        snprintf(text, sizeof text, "%s that are clamped to %g on both sides",
                 r->of_keys ? "keys" : "values", limit);
        fine = reading_try_passes(r, made, id, text);
    }
    return fine;
}

// The part of an element: its head, its token or its channel.
static size_t part_of(const kernel *x, int by, size_t at) {
    size_t width = x->groups * x->d;
    return by == 0 ? at % width / x->d : by == 1 ? at / width : at % width;
}

// Times one number: the shortest that explains it.
static bool try_factor(const reading *of, double times, const double *own, double *made) {
    enum { FEWEST_DIGITS = 2, MOST_DIGITS = 6 };
    reading r = *of;
    size_t all = r.x->n * r.x->groups * r.x->d;
    bool fine = true;
    for (int digits = FEWEST_DIGITS; digits <= MOST_DIGITS && fine && r.o->c->found == NULL;
         digits++) {
        char number[32], text[100], id[64];
        snprintf(number, sizeof number, "%.*g", digits, times);
        double told = strtod(number, NULL);
        if (told == r.times) continue; // as of fewer digits
        r.times = told;
        for (size_t at = 0; told != 0 && at < all; at++) made[at] = told * own[at];
        snprintf(text, sizeof text, "%s that are multiplied by %s", r.of_keys ? "keys" : "values",
                 number);
        snprintf(id, sizeof id, "%s-times=%s", r.of_keys ? "keys" : "values", number);
        fine = told == 0 || told == 1 || reading_try_passes(&r, made, id, text);
    }
    return fine;
}

// "1, 1 and 1.25" of a few parts, "1 to 1.25" of many.
static void say_factors(size_t n, const double *times_p, char *text, size_t size) {
    enum { LISTED = 8 };
    double least = INFINITY, most = -INFINITY;
    for (size_t p = 0; p < n; p++) least = fmin(least, times_p[p]), most = fmax(most, times_p[p]);
    text[0] = '\0';
    for (size_t p = 0; n <= LISTED && p < n; p++) {
        size_t length = strlen(text);
        snprintf(text + length, size - length, "%s%.3g",
                 p == 0       ? ""
                 : p + 1 == n ? " and "
                              : ", ",
                 times_p[p]);
    }
    if (n > LISTED) snprintf(text, size, "%.3g to %.3g", least, most);
}

// Times one number, or one of each head, token or channel.
static bool try_factors(const reading *r, const double *own, const double *y, const uint8_t *told,
                        double *made) {
    static const char *const words[] = {"key/value head", "token", "channel"};
    const kernel *x = r->x;
    size_t width = x->groups * x->d, all = x->n * width;
    const size_t parts[] = {x->groups, x->n, width};
    double *times_p = malloc((2 * (x->n + width) + 1) * sizeof *times_p), *square_p;
    bool fine = times_p != NULL || fail_for_memory(r->o->c->s);
    double product = 0, square = 0;
    for (size_t at = 0; at < all && fine; at++)
        if (told[at / x->d]) product += own[at] * y[at], square += own[at] * own[at];
    fine = fine && (square == 0 || try_factor(r, product / square, own, made));
    for (int by = 0; by < 3 && fine && r->o->c->found == NULL; by++) {
        char text[200], id[64], factors[120];
        square_p = times_p + parts[by];
        memset(times_p, 0, 2 * parts[by] * sizeof *times_p);
        for (size_t at = 0; at < all; at++) {
            size_t p = part_of(x, by, at);
            if (!told[at / x->d]) continue;
            times_p[p] += own[at] * y[at], square_p[p] += own[at] * own[at];
        }
        for (size_t p = 0; p < parts[by]; p++)
            times_p[p] = square_p[p] > 0 ? times_p[p] / square_p[p] : 1;
        for (size_t at = 0; at < all; at++) made[at] = times_p[part_of(x, by, at)] * own[at];
        say_factors(parts[by], times_p, factors, sizeof factors);
        snprintf(text, sizeof text, "%s that are multiplied by a number of each %s, about %s",
                 r->of_keys ? "keys" : "values", words[by], factors);
        snprintf(id, sizeof id, "%s-times-%d", r->of_keys ? "keys" : "values", by);
        fine = reading_try_passes(r, made, id, text);
    }
    free(times_p);
    return fine;
}

// Those of another layer of the trace: of all tokens, or of those that are not as they should be.
static bool try_layers(const reading *r, const double *own, const double *y, const uint8_t *told,
                       double *made) {
    const composing *c = r->o->c;
    const kernel *x = r->x;
    sinkproof_trace_point point = r->of_keys ? TRACE_A4_K : TRACE_A2_V;
    size_t d = x->d, all = x->n * x->groups * d;
    bool fine = true;
    for (size_t l = 0; l < c->s->trials.config->n_layers && fine && c->found == NULL; l++) {
        const sinkproof_tensor *t = sinkproof_trace_find(c->s->trials.suspect.trace, point, l);
        char id[64], text[120];
        if (l == c->place || t == NULL || sinkproof_tensor_elements(t) != all) continue;
        for (size_t v = 0; v < x->n * x->groups; v++) {
            bool other = !told[v] || distance(d, y + v * d, own + v * d) > 0.05;
            for (size_t k = v * d; k < (v + 1) * d; k++)
                made[k] = other ? sinkproof_tensor_value(t, k) : own[k];
        }
        snprintf(id, sizeof id, "%s-of-layer-%zu", r->of_keys ? "keys" : "values", l);
        snprintf(text, sizeof text, "%s of layer %zu", r->of_keys ? "keys" : "values", l);
        fine = reading_try_passes(r, made, id, text);
    }
    return fine;
}

// Whether a vector is nothing that is made of its own: those that are rotated or reordered are as
// long, those that are rounded or multiplied point the same way.
static bool is_foreign(size_t d, const double *y, const double *own) {
    double yy = 0, oo = 0, oy = 0;
    for (size_t c = 0; c < d; c++) yy += y[c] * y[c], oo += own[c] * own[c], oy += own[c] * y[c];
    return fabs(oy) < 0.9 * sqrt(oo * yy) && fabs(sqrt(yy / oo) - 1) > 0.01;
}

// Keys or values that match none.
static bool try_foreign(const reading *r, const double *own, const double *y, const uint8_t *told,
                        double *made) {
    enum { ELEMENTS = 3 }; // for each number that is fitted
    const kernel *x = r->x;
    size_t first = x->n, end = 0, d = x->d, others = 0, foreign = 0, outside = 0;
    char text[200], id[64];
    memcpy(made, own, x->n * x->groups * d * sizeof *made);
    for (size_t v = 0; v < x->n * x->groups; v++) {
        if (!told[v] || distance(d, y + v * d, own + v * d) < 0.05) continue;
        memcpy(made + v * d, y + v * d, d * sizeof *made);
        if (v / x->groups < first) first = v / x->groups;
        end = v / x->groups + 1;
        others++, foreign += is_foreign(d, y + v * d, own + v * d);
    }
    for (size_t at = 0; at < r->o->c->elements; at++) outside += r->o->c->marks[at];
    // roundings of 16 bits leave too much open
    bool told_so = first < end && 2 * (end - first) <= x->n && 4 * foreign >= 3 * others &&
                   ELEMENTS * others * d <= outside && r->o->c->step < 0x1p-12;
    if (!told_so) return true;
    snprintf(text, sizeof text,
             "%s of tokens %zu-%zu that the trace has none of: of another sequence, of drafts that "
             "were rejected, or never cleared",
             r->of_keys ? "keys" : "values", first, end - 1);
    snprintf(id, sizeof id, "foreign-%s-%zu-%zu", r->of_keys ? "keys" : "values", first, end - 1);
    return reading_try_passes(r, made, id, text);
}

static bool try_all(const reading *r) {
    const kernel *x = r->x;
    size_t n = x->n, d = x->d, all = n * x->groups * d, square = n > d ? n * n : d * d;
    const double *own = r->of_keys ? x->k : x->v;
    double *room = malloc((2 * all + square + n * d + n + d + 1) * sizeof *room);
    uint8_t *told = malloc(n * x->groups + 1);
    bool fine = (room != NULL && told != NULL) || fail_for_memory(r->o->c->s);
    double *y = room, *made = room + all;
    if (fine && reading_solve(r, made + all, y, told) > 0)
        fine = try_squares(r, own, made) && try_sources(r, own, y, told, made) &&
               try_clamps(r, own, y, made) && try_factors(r, own, y, told, made) &&
               try_layers(r, own, y, told, made) && try_foreign(r, own, y, told, made);
    free(room);
    free(told);
    return fine;
}

// The first row with an element outside.
static size_t first_row(const composing *c, const kernel *x) {
    size_t first = c->n, d = x->d;
    for (size_t at = 0; at < c->elements; at++) {
        size_t i = c->point == TRACE_A6 ? at / c->n % c->n : at / d / x->heads;
        if (c->marks[at] && i < first) first = i;
    }
    return first;
}

bool compose_readings(composing *c) {
    enum { MOST = 1 << 27 }; // multiplications of the fit
    const sinkproof_config *config = c->s->trials.config;
    operation o;
    kernel x;
    bool scores = kernel_scores_are_asked(c);
    double n = (double)c->n, fit = n * n * n * (double)config->n_heads;
    if ((!scores && !kernel_is_asked(c)) || fit > MOST) return true;
    const sinkproof_making of = composing_making(c);
    bool fine = operation_read(c, &o);
    if (fine && o.n > 0 && kernel_open(&of, &x)) {
        double *y_c = malloc((x.d + 1) * sizeof *y_c);
        fine = y_c != NULL || fail_for_memory(c->s);
        reading r = {&o, &x, scores, first_row(c, &x), y_c, 0};
        // as many equations again as numbers are asked
        if (fine && (scores || x.each > 1)) fine = try_all(&r);
        if (fine && !scores) fine = reading_try_places(&r);
        r.of_keys = true;
        if (fine && c->found == NULL && (scores || x.weights == NULL))
            fine = reading_try_places(&r);
        if (fine && c->found == NULL && (scores || x.weights == NULL)) fine = reading_try_turns(&r);
        free(y_c);
        kernel_close(&x);
    }
    operation_free(&o);
    return fine;
}
