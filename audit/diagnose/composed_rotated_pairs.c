// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Rotations in which each pair of coordinates has what is its own: a frequency, or the positions of
// its class of pairs, of whatever order.
#include "audit/diagnose/composed_rotated.h"
#include "base/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double *used_by(const turns *t, size_t i, size_t p) {
    return t->used + ENTRY * (i * t->half + p);
}

static void set_rule(turns *t, size_t i, size_t p, double angle, double size) {
    double *e = t->rule + ENTRY * (i * t->half + p);
    e[COSINE] = size * cos(angle), e[SINE] = size * sin(angle);
}

// ---- frequencies

// The frequency that fits the angles of a pair, from the first positions on; NAN: none does.
static double fitted_frequency(const turns *t, size_t p) {
    double f = 0, along = 0, square = 0;
    for (size_t i = 0; i < t->n; i++) {
        const double *e = used_by(t, i, p);
        double position = t->position_i[i], angle = atan2(e[SINE], e[COSINE]);
        if (position == 0) continue;
        if (square == 0 && position != 1) return NAN;
        double off = remainder(angle - position * f, 2 * 3.14159265358979323846);
        if (square > 0 && fabs(off) > 1.5) return NAN;
        along += position * (off + position * f), square += position * position;
        f = along / square;
    }
    return square > 0 ? f : NAN;
}

bool turns_of_frequencies(turns *t) {
    char text[352] = "is rotated by other frequencies of its pairs: ";
    size_t used = strlen(text), other = 0;
    double sizes = 0, count = 0;
    for (size_t i = 0; i < t->n; i++)
        for (size_t p = 0; p < t->half; p++) sizes += turn_size(used_by(t, i, p)), count++;
    double size = sizes / count, room = t->c->step + 1e-6;
    bool own_size = fabs(size - t->by) <= room * t->by;
    if (own_size) size = t->by;
    if (fabs(size - 1) <= room) size = 1;
    for (size_t p = 0; p < t->half; p++) {
        double f = fitted_frequency(t, p), apart = 0;
        if (!isfinite(f)) return true;
        for (size_t i = 0; i < t->n; i++)
            apart = fmax(apart, t->position_i[i] * fabs(f - t->frequency_p[p]));
        if (apart <= 4 * room) f = t->frequency_p[p];
        for (size_t i = 0; i < t->n; i++) set_rule(t, i, p, t->position_i[i] * f, size);
        if (f == t->frequency_p[p]) continue;
        if (other++ < 8 && used + 48 < sizeof text)
            used +=
                (size_t)snprintf(text + used, sizeof text - used, "%spair %zu by %.3g of its own",
                                 other > 1 ? ", " : "", p, f / t->frequency_p[p]);
    }
    if (!own_size && used + 48 < sizeof text)
        snprintf(text + used, sizeof text - used, "; multiplied by %.5g, not by %.5g", size, t->by);
    return other > 0 && turns_are_near(t) ? turns_try(t, "frequencies-of-pairs", text) : true;
}

// ---- positions of classes

enum { MOST_CLASSES = 4, MOST_ROWS = 512 };

static double apart_at(const turns *t, size_t i, size_t p, double position) {
    const double *e = used_by(t, i, p);
    double a = position * t->frequency_p[p];
    return fmax(fabs(e[COSINE] - t->by * cos(a)), fabs(e[SINE] - t->by * sin(a)));
}

// Of row i the whole position nearest to its own whose turn is that of the pair; NAN: none.
static double position_of_pair(const turns *t, size_t i, size_t p, double near) {
    double own = t->position_i[i], most = own + 2 * (double)t->n + 64;
    for (double by = 0; by <= most; by++) {
        if (own - by >= 0 && apart_at(t, i, p, own - by) <= near) return own - by;
        if (own + by <= most && apart_at(t, i, p, own + by) <= near) return own + by;
    }
    return NAN;
}

// How far a pair is from the positions of a class; infinity: it is not of the class.
static double apart_from_class(const turns *t, size_t p, const double *position_i, double near) {
    double sum = 0;
    for (size_t i = 0; i < t->n; i++) {
        double apart = apart_at(t, i, p, position_i[i]);
        sum += apart <= near ? apart * apart : INFINITY;
    }
    return sum;
}

// The class that a pair is nearest to; `classes`: it is of none.
static size_t nearest_class(const turns *t, size_t p, const double *position_ki, size_t classes,
                            double near) {
    double least = INFINITY;
    size_t best = classes;
    for (size_t k = 0; k < classes; k++) {
        double apart = apart_from_class(t, p, position_ki + k * t->n, near);
        if (apart < least) least = apart, best = k;
    }
    return best;
}

// Writes where the positions are not the rows' own, as runs.
static size_t say_positions(const turns *t, const double *position_i, char *text, size_t size) {
    size_t used = 0, runs = 0;
    for (size_t i = 0, end; i < t->n; i = end) {
        double by = position_i[i] - t->position_i[i];
        bool same = i + 1 < t->n && position_i[i + 1] == position_i[i];
        for (end = i + 1; end < t->n; end++)
            if (same ? position_i[end] != position_i[i]
                     : position_i[end] - t->position_i[end] != by)
                break;
        if (by == 0 && (!same || end == i + 1)) continue;
        if (runs++ == 4 || used + 64 > size) {
            used += (size_t)snprintf(text + used, size - used, ", ...");
            break;
        }
        used +=
            (size_t)snprintf(text + used, size - used, "%s%g", runs > 1 ? ", " : "", position_i[i]);
        if (!same && end > i + 1)
            used += (size_t)snprintf(text + used, size - used, " to %g", position_i[end - 1]);
        used += (size_t)snprintf(text + used, size - used, " at %g", t->position_i[i]);
        if (end > i + 1)
            used += (size_t)snprintf(text + used, size - used, "-%g", t->position_i[end - 1]);
    }
    return used;
}

// Classes of pairs, each with a position of its own for each row: the sections of a rotation with
// several positions, one behind another or in turns.
bool turns_in_classes(turns *t) {
    double near = 4 * t->c->step + 1e-5;
    size_t n = t->n, classes = 0, used = 0, other = 0;
    char text[352] = "is rotated by other positions in classes of pairs: ";
    if (n > MOST_ROWS) return true;
    double *position_ki = malloc((MOST_CLASSES * n + 1) * sizeof *position_ki);
    size_t *class_p = malloc((t->half + 1) * sizeof *class_p);
    bool known = position_ki != NULL && class_p != NULL, fine = known || fail_for_memory(t->c->s);
    for (size_t p = 0; known && p < t->half; p++) {
        size_t k = nearest_class(t, p, position_ki, classes, near);
        class_p[p] = k;
        if (k < classes) continue;
        known = classes < MOST_CLASSES;
        for (size_t i = 0; known && i < n; i++) {
            position_ki[k * n + i] = position_of_pair(t, i, p, near);
            known = isfinite(position_ki[k * n + i]);
        }
        classes++;
    }
    used = strlen(text);
    for (size_t k = 0; known && k < classes; k++) {
        char how[200];
        size_t said = 0, wrote = say_positions(t, position_ki + k * n, how, sizeof how);
        if (wrote == 0) continue;
        for (size_t p = 0; p < t->half; p++) {
            if (class_p[p] != k || used + 40 > sizeof text) continue;
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%zu",
                                     said++ > 0  ? ", "
                                     : other > 0 ? "; pairs "
                                                 : "pairs ",
                                     p);
        }
        other++;
        snprintf(text + used, sizeof text - used, ": %s", how);
        used = strlen(text);
    }
    for (size_t p = 0; known && p < t->half; p++)
        for (size_t i = 0; i < n; i++)
            set_rule(t, i, p, position_ki[class_p[p] * n + i] * t->frequency_p[p], t->by);
    if (known && classes > 1 && other > 0 && turns_are_near(t))
        fine = turns_try(t, "positions-in-classes", text);
    free(position_ki);
    free(class_p);
    return fine;
}

// ---- positions of heads

typedef enum head_rule {
    HEAD,           // the number of the head
    FLAT,           // of the row among those of all heads, token by token
    FLAT_MODULO,    // the same, modulo the tokens
    FLAT_OVER,      // over the tokens
    BY_HEAD,        // of the row, head by head
    BY_HEAD_OVER,   // over the heads
    BY_HEAD_MODULO, // modulo the heads
    PLUS_HEAD,
    LESS_HEAD,
    OVER_HEADS,
    MODULO_HEADS,
    HEAD_RULES
} head_rule;

enum { RULE, HEADS, STEP }; // the numbers

static long head_position(head_rule rule, long position, long row, long h, long heads, long n) {
    switch (rule) {
    case HEAD:
        return h;
    case FLAT:
        return row * heads + h;
    case FLAT_MODULO:
        return (row * heads + h) % n;
    case FLAT_OVER:
        return (row * heads + h) / n;
    case BY_HEAD:
        return h * n + row;
    case BY_HEAD_OVER:
        return (h * n + row) / heads;
    case BY_HEAD_MODULO:
        return (h * n + row) % heads;
    case PLUS_HEAD:
        return position + h;
    case LESS_HEAD:
        return position - h;
    case OVER_HEADS:
        return position / heads;
    default:
        return position % heads;
    }
}

static bool make_by_heads(const sinkproof_making *of, double *y, double *width) {
    size_t d = of->config->head_dim, half = d / 2, heads = of->all / of->n / d;
    const int32_t *positions = sinkproof_trace_positions(of->trace);
    const sinkproof_tensor *x = turned_from(of);
    for (size_t at = 0; x != NULL && at < of->all; at++) {
        size_t k = at % d, h = at / d % heads, i = at / d / heads;
        size_t partner = k < half ? at + half : at - half;
        long position = head_position((head_rule)of->numbers[RULE], positions[i], (long)i, (long)h,
                                      (long)of->numbers[HEADS], (long)of->n);
        double a = (double)position * of->table[1 + k % half], by = of->table[0];
        double own = sinkproof_tensor_value(x, at), other = sinkproof_tensor_value(x, partner);
        double c = by * cos(a), s = (k < half ? -by : by) * sin(a);
        y[at] = c * own + s * other;
        width[at] = of->numbers[STEP] * (fabs(c * own) + fabs(s * other));
        if (of->radius != NULL) width[at] += 2 * (of->radius[at] + of->radius[partner]);
    }
    return x != NULL;
}

bool turns_by_heads(turns *t) {
    static const char *const words[HEAD_RULES] = {
        [HEAD] = "its number",
        [FLAT] = "position * %s + its number",
        [FLAT_MODULO] = "(row * %s + its number) mod the tokens",
        [FLAT_OVER] = "(row * %s + its number) / the tokens, cut",
        [BY_HEAD] = "its number * tokens + row, of %s",
        [BY_HEAD_OVER] = "(its number * tokens + row) / %s, cut",
        [BY_HEAD_MODULO] = "(its number * tokens + row) mod %s",
        [PLUS_HEAD] = "position + its number",
        [LESS_HEAD] = "position - its number",
        [OVER_HEADS] = "position / %s, cut",
        [MODULO_HEADS] = "position mod %s"};
    const sinkproof_config *config = t->c->s->trials.config;
    size_t own = t->c->elements / t->n / t->d, both = config->n_heads + config->n_kv_heads;
    const size_t heads[] = {own, config->n_heads, both, both + config->n_kv_heads};
    double *table = malloc((t->half + 1) * sizeof *table);
    bool fine = table != NULL || fail_for_memory(t->c->s);
    if (!fine) return false;
    table[0] = t->by;
    memcpy(table + 1, t->frequency_p, t->half * sizeof *table);
    const double *kept = composing_keep_numbers(t->c, t->half + 1, table);
    free(table);
    for (size_t k = 0; k < 4 && kept != NULL; k++)
        for (int rule = 0; rule < HEAD_RULES && fine && t->c->found == NULL; rule++) {
            made_kind made = {.make = make_by_heads, .table = kept};
            char how[120], plain[24];
            if (k > 0 && heads[k] == own) continue;
            made.numbers[RULE] = rule, made.numbers[HEADS] = (double)heads[k];
            made.numbers[STEP] = t->c->step > 0x1p-12 ? 2 * t->c->step : 4 * t->c->step;
            snprintf(plain, sizeof plain, "%zu", heads[k]);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            snprintf(how, sizeof how, words[rule],
                     rule == BY_HEAD ? sinkproof_counted(heads[k], "head").text : plain);
#pragma GCC diagnostic pop
            snprintf(made.id, sizeof made.id, "positions-by-heads-%d-%zu", rule, heads[k]);
            snprintf(made.text, sizeof made.text,
                     "is rotated by positions that depend on the head: each head has %s", how);
            fine = composing_try_made(t->o, &made);
        }
    return fine && kept != NULL;
}
