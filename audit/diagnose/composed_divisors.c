// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What a norm divides by, computed otherwise: by an approximate root, by a sum in a narrower format
// in some order, of some rows together; or any number, one for each row.
#include "audit/diagnose/composed_made.h"
#include "audit/diagnose/composed_norms.h"
#include "audit/diagnose/normal_equations.h"
#include "base/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum divisor_kind {
    MEAN_OF_BLOCK, // of the mean squares of each a rows
    WORST_OF_BLOCK,
    MEAN_OF_ROOTS, // of a equal parts of the coordinates
    WORST_OF_PARTS,
    BY_BITS, // 1 over the root by a shift of its bits and a steps of Newton
    POWER,   // rounded to a power of two: up (a > 0), down (a < 0) or to the nearest
    // in format `FORMAT`, in the order a, of squares (b: 0), of rounded ones (1), of those of
    // numbers that are rounded (2)
    SUMMED,
    OF_WINDOW, // the mean of the mean squares of the rows from a to b places on
    OF_SHARES, // the squares of each of a parts times a number of its own (b: parts by the modulo)
    OF_ROW
} divisor_kind;

enum { KIND, A, B, FORMAT }; // the numbers

static double mean_square(const double *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sum / (double)n;
}

static double square_of_block(const sinkproof_norm_question *q, size_t size, bool worst) {
    size_t first = q->token / size * size, end = first + size < q->n ? first + size : q->n;
    double sum = 0, most = 0;
    for (size_t i = first; i < end; i++) {
        double one = mean_square(&q->x_nd[i * q->d], q->d);
        sum += one / (double)(end - first), most = fmax(most, one);
    }
    return worst ? most : sum;
}

// eps is added in each part.
static double square_of_parts(const sinkproof_norm_question *q, const double *x, size_t parts,
                              bool worst) {
    double sum = 0, most = 0;
    size_t each = q->d / parts;
    for (size_t p = 0; p < parts; p++) {
        double one = mean_square(&x[p * each], each) + q->eps;
        sum += sqrt(one) / (double)parts, most = fmax(most, one);
    }
    return worst ? most : sum * sum;
}

static double square_by_bits(double square, int steps) {
    float x = (float)square, y;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = 0x5f3759df - (bits >> 1);
    memcpy(&y, &bits, sizeof y);
    for (int i = 0; i < steps; i++) y = y * (1.5F - 0.5F * x * y * y);
    return 1 / ((double)y * (double)y);
}

static double power_of_two(double square, double how) {
    double power = 0.5 * log2(square);
    return exp2(2 * (how > 0 ? ceil(power) : how < 0 ? floor(power) : nearbyint(power)));
}

// order 0: one after the other; l > 0: l running sums of every l-th term, which are added up by
// halves; l < 0: sums of -l neighbours, which are added up one after the other.
static double sum_in_format(const sinkproof_norm_question *q, const double *x, int reads,
                            long order) {
    enum { MOST_LANES = 128 };
    const sinkproof_format f = (sinkproof_format)q->numbers[FORMAT];
    double lanes[MOST_LANES] = {0}, total = 0, part = 0;
    size_t n = order > 0 ? (size_t)order : 1;
    for (size_t i = 0; i < q->d; i++) {
        double at = reads == 2 ? sinkproof_round(f, x[i]) : x[i];
        double one = reads > 0 ? sinkproof_round(f, at * at) : at * at;
        if (order >= 0)
            lanes[i % n] = sinkproof_round(f, lanes[i % n] + one);
        else if (part = sinkproof_round(f, part + one), (i + 1) % (size_t)-order == 0)
            total = sinkproof_round(f, total + part), part = 0;
    }
    if (order < 0) return sinkproof_round(f, total + part);
    for (n /= 2; n > 0; n /= 2)
        for (size_t l = 0; l < n; l++) lanes[l] = sinkproof_round(f, lanes[l] + lanes[l + n]);
    return lanes[0];
}

static double square_of_window(const sinkproof_norm_question *q) {
    double sum = 0;
    size_t rows = 0;
    for (long by = (long)q->numbers[A]; by <= (long)q->numbers[B]; by++) {
        long i = (long)q->token + by;
        if (i < 0 || i >= (long)q->n) continue;
        sum += mean_square(&q->x_nd[(size_t)i * q->d], q->d), rows++;
    }
    return rows > 0 ? sum / (double)rows : NAN;
}

// The part of a coordinate.
static size_t part_of(size_t k, size_t d, size_t parts, bool modulo) {
    return modulo ? k % parts : k / (d / parts);
}

static double square_by_shares(const sinkproof_norm_question *q, const double *x) {
    size_t parts = (size_t)q->numbers[A];
    double sum = 0;
    for (size_t k = 0; k < q->d; k++)
        sum += q->table[part_of(k, q->d, parts, q->numbers[B] != 0)] * x[k] * x[k];
    return sum / (double)q->d;
}

static bool divide_otherwise(const sinkproof_norm_question *q, double *lo_d, double *hi_d) {
    const double *x = &q->x_nd[q->token * q->d];
    size_t a = (size_t)fmax(q->numbers[A], 0);
    double square = mean_square(x, q->d), error = 0;
    switch ((divisor_kind)q->numbers[KIND]) {
    case MEAN_OF_BLOCK:
    case WORST_OF_BLOCK:
        square = square_of_block(q, a, q->numbers[KIND] == WORST_OF_BLOCK) + q->eps;
        break;
    case MEAN_OF_ROOTS:
    case WORST_OF_PARTS:
        square = square_of_parts(q, x, a, q->numbers[KIND] == WORST_OF_PARTS);
        break;
    case BY_BITS:
        square = square_by_bits(square + q->eps, (int)a);
        error = 2 * 0x1p-24; // of the sum
        break;
    case POWER:
        square = power_of_two(square + q->eps, q->numbers[A]);
        break;
    case SUMMED:
        square =
            sum_in_format(q, x, (int)q->numbers[B], (long)q->numbers[A]) / (double)q->d + q->eps;
        break;
    case OF_WINDOW:
        square = square_of_window(q) + q->eps;
        break;
    case OF_SHARES:
        if (q->table == NULL) return false;
        square = square_by_shares(q, x) + q->eps;
        break;
    case OF_ROW:
        if (q->table == NULL) return false;
        square = q->table[2 * q->token], error = q->table[2 * q->token + 1];
        break;
    }
    for (size_t i = 0; i < q->d; i++)
        lo_d[i] = square * (1 - error), hi_d[i] = square * (1 + error);
    return isfinite(square) && square > 0;
}

static bool norm_by_divisor(supposed_engine *s, const known_mistake *k) {
    const composed_mistake *m = (const composed_mistake *)(const void *)k;
    s->meaning.norm_squares = divide_otherwise;
    s->meaning.norm_table = m->table;
    for (size_t i = 0; i < SINKPROOF_NORM_NUMBERS; i++) s->meaning.norm_numbers[i] = m->numbers[i];
    return true;
}

// ---- trials

static bool try_divisor(norm_divisors *s, const double *numbers, const double *table,
                        const char *text) {
    composing *c = s->c;
    bool fine = true;
    if (c->found != NULL) return true;
    if (numbers[KIND] != OF_ROW && !norm_divisors_are_near(s, divide_otherwise, numbers, table))
        return true;
    const sinkproof_region *region;
    for (size_t r = 0; fine && c->found == NULL; r++) {
        region = norm_divisors_region(s, r);
        if (region == NULL) break;
        composed_mistake *m = composed_norm_new(c, norm_by_divisor, region);
        if (m == NULL) return false;
        memcpy(m->numbers, numbers, sizeof m->numbers);
        m->table = table;
        composed_name(m, "%s-divisor-%g-%g-%g-%g", sinkproof_trace_point_name(c->point),
                      numbers[KIND], numbers[A], numbers[B], numbers[FORMAT]);
        composed_say(m, "%s %s", composed_norm_words(c), text);
        composed_say_region(c, m);
        fine = composing_try(c, m);
    }
    return fine;
}

static bool try_kind(norm_divisors *s, divisor_kind kind, double a, const char *text) {
    const double numbers[COMPOSED_NUMBERS] = {[KIND] = kind, [A] = a};
    return try_divisor(s, numbers, NULL, text);
}

static bool try_sums(norm_divisors *s) {
    static const struct {
        sinkproof_format format;
        const char *name;
    } formats[] = {{SINKPROOF_BF16, "bfloat16"}, {SINKPROOF_F16, "binary16"}};
    bool fine = true;
    char text[200], order[96];
    for (int f = 0; f < 2; f++)
        for (int reads = 0; reads < 3; reads++)
            for (int i = 0; i < 15 && fine; i++) {
                long by = i == 0 ? 0 : i < 8 ? 1L << i : -(1L << (i - 7));
                if (labs(by) >= (long)s->rows.d) continue;
                if (by > 0)
                    snprintf(order, sizeof order, "in %ld running sums", by);
                else if (by < 0)
                    snprintf(order, sizeof order, "in sums of %ld neighbours each", -by);
                else
                    snprintf(order, sizeof order, "one after the other");
                snprintf(text, sizeof text, "adds up the squares in %s, %s%s", formats[f].name,
                         order,
                         reads == 2   ? ", of numbers and squares that are rounded to it"
                         : reads == 1 ? ", each square rounded to it"
                                      : "");
                const double numbers[COMPOSED_NUMBERS] = {
                    [KIND] = SUMMED, [A] = (double)by, [B] = reads, [FORMAT] = formats[f].format};
                fine = try_divisor(s, numbers, NULL, text);
            }
    return fine;
}

static bool try_blocks(norm_divisors *s) {
    enum { MOST_ROWS = 512 };
    bool fine = true;
    char text[160];
    for (size_t a = 2; a < s->rows.n && a < MOST_ROWS && fine && s->c->found == NULL; a++)
        for (int worst = 0; worst < 2 && fine; worst++) {
            snprintf(text, sizeof text,
                     "divides the rows of each block of %zu by one number: the %s of the block", a,
                     worst ? "largest root mean square" : "root mean square of all rows");
            fine = try_kind(s, worst ? WORST_OF_BLOCK : MEAN_OF_BLOCK, (double)a, text);
        }
    return fine;
}

static bool try_parts(norm_divisors *s) {
    bool fine = true;
    char text[200];
    for (size_t parts = 2; parts <= 64 && fine && s->c->found == NULL; parts++)
        for (int worst = 0; worst < 2 && fine; worst++) {
            if (s->rows.d % parts != 0) continue;
            snprintf(text, sizeof text,
                     "divides each row by the %s of %zu equal parts (shards) of its coordinates%s",
                     worst ? "largest root mean square" : "mean of the root mean squares", parts,
                     worst ? "" : ", not by the root of the mean of all");
            fine = try_kind(s, worst ? WORST_OF_PARTS : MEAN_OF_ROOTS, (double)parts, text);
        }
    return fine;
}

static bool try_windows(norm_divisors *s) {
    enum { WIDEST = 8 };
    bool fine = true;
    char text[200], rows[24];
    for (int w = 1; w <= WIDEST && fine && s->c->found == NULL; w++)
        for (int k = 0; k < 3 && fine; k++) {
            const double numbers[COMPOSED_NUMBERS] = {
                [KIND] = OF_WINDOW, [A] = k == 1 ? 0 : -w, [B] = k == 0 ? 0 : w};
            snprintf(rows, sizeof rows, w == 1 ? "row" : "%d rows", w);
            snprintf(text, sizeof text,
                     "divides each row by the root of the mean square of the row and the %s %s it",
                     rows,
                     k == 0   ? "before"
                     : k == 1 ? "after"
                              : "on each side of");
            fine = try_divisor(s, numbers, NULL, text);
        }
    return fine;
}

// ---- parts of the coordinates whose squares count more or less often

enum { MOST_PARTS = 16 };

// What multiplies the squares of each part, by least squares over the rows, relative to the
// divisor; false: no halves of whole numbers, or all the same.
static bool fit_shares(const norm_divisors *s, size_t parts, bool modulo, double *times_p) {
    double a[MOST_PARTS * MOST_PARTS] = {0}, y[MOST_PARTS] = {0}, of[MOST_PARTS];
    size_t d = s->rows.d, rows = 0;
    double eps = s->c->s->trials.config->rms_eps;
    for (size_t i = 0; i < s->rows.n; i++) {
        const double *x = &s->rows.x[i * d], factor = s->rows.factor_n[i];
        double to = (s->rows.square_n[i] + eps) / (factor * factor), all = s->rows.square_n[i];
        if (!s->rows.fits_n[i] || !(all > 0)) continue;
        for (size_t p = 0; p < parts; p++) of[p] = 0;
        for (size_t k = 0; k < d; k++)
            of[part_of(k, d, parts, modulo)] += x[k] * x[k] / (double)d / all;
        for (size_t p = 0; p < parts; p++) {
            y[p] += of[p] * (to - eps) / all;
            for (size_t o = p; o < parts; o++) a[p * parts + o] += of[p] * of[o];
        }
        rows++;
    }
    if (rows < 2 * parts || solve_normal(parts, a, y, NORMAL_DEPENDENT) > 0) return false;
    bool alike = true;
    for (size_t p = 0; p < parts; p++) {
        times_p[p] = nearbyint(2 * y[p]) / 2 + 0.0; // no -0
        if (!(fabs(times_p[p] - y[p]) < 0.1) || times_p[p] < 0 || times_p[p] > 8) return false;
        alike = alike && !(times_p[p] < times_p[0]) && !(times_p[p] > times_p[0]);
    }
    return !alike;
}

static bool try_shares(norm_divisors *s) {
    static const size_t counts[] = {2, 3, 4, 6, 8, 12, 16};
    bool fine = true;
    double times_p[MOST_PARTS];
    for (size_t i = 0; i < 2 * (sizeof counts / sizeof counts[0]) && fine; i++) {
        size_t parts = counts[i / 2], at;
        bool modulo = i % 2 == 1;
        char text[240], *end = text;
        if (s->rows.d % parts != 0 || s->c->found != NULL) continue;
        if (!fit_shares(s, parts, modulo, times_p)) continue;
        const double *kept = composing_keep_numbers(s->c, parts, times_p);
        if (kept == NULL) return false;
        const double numbers[COMPOSED_NUMBERS] = {
            [KIND] = OF_SHARES, [A] = (double)parts, [B] = modulo};
        if (modulo)
            end += snprintf(end, (size_t)(text + sizeof text - end),
                            "counts the squares of coordinates 0, 1, ... modulo %zu", parts);
        else
            end += snprintf(end, (size_t)(text + sizeof text - end),
                            "counts the squares of its parts of %s",
                            sinkproof_counted(s->rows.d / parts, "coordinate").text);
        for (at = 0; at < parts; at++)
            end += snprintf(end, (size_t)(text + sizeof text - end), "%s%g",
                            at == 0          ? " "
                            : at + 1 < parts ? ", "
                                             : " and ",
                            times_p[at]);
        snprintf(end, (size_t)(text + sizeof text - end), " times, not once each");
        fine = try_divisor(s, numbers, kept, text);
    }
    return fine;
}

bool compose_divisors(composing *c) {
    static const char *const steps[] = {"without a step of Newton", "with one step of Newton",
                                        "with two steps of Newton"};
    norm_divisors s;
    bool known, fine = norm_divisors_read(c, NULL, &s, &known);
    char text[160];
    for (int k = 0; k < 3 && fine && known; k++) {
        snprintf(text, sizeof text,
                 "takes an approximate inverse square root: by a shift of the number's bits, %s",
                 steps[k]);
        fine = try_kind(&s, BY_BITS, k, text);
    }
    if (known)
        fine = fine &&
               try_kind(&s, POWER, 0,
                        "divides each row by its root mean square rounded to the "
                        "nearest power of two") &&
               try_kind(&s, POWER, 1,
                        "divides each row by its root mean square rounded up to a "
                        "power of two") &&
               try_kind(&s, POWER, -1,
                        "divides each row by its root mean square rounded down to "
                        "a power of two") &&
               try_sums(&s) && try_parts(&s) && try_blocks(&s) && try_windows(&s) && try_shares(&s);
    norm_divisors_free(&s);
    return fine;
}

// ---- a number for each row

bool compose_row_divisors(composing *c) {
    enum { FEWEST_ROWS = 4 };
    norm_divisors s;
    bool known, fine = norm_divisors_read(c, NULL, &s, &known);
    double least = INFINITY, most = 0, eps = c->s->trials.config->rms_eps;
    double *square_n = fine && known ? malloc((2 * s.rows.n + 1) * sizeof *square_n) : NULL;
    const double *kept = NULL;
    char text[200];
    bool fits = square_n != NULL && s.rows.n >= FEWEST_ROWS;
    for (size_t i = 0; fits && i < s.rows.n; i++) {
        double factor = s.rows.factor_n[i];
        fits = s.rows.fits_n[i];
        square_n[2 * i] = (s.rows.square_n[i] + eps) / (factor * factor);
        square_n[2 * i + 1] = c->step > 0x1p-12 ? c->step / 2 : 4 * c->step;
        least = fmin(least, 1 / factor), most = fmax(most, 1 / factor);
    }
    fits = fits && most > least * (1 + c->step);
    if (fits) kept = composing_keep_numbers(c, 2 * s.rows.n, square_n);
    if (fits && kept == NULL) fine = false;
    snprintf(text, sizeof text,
             "divides each row by a number of its own, %.4g to %.4g times the root of its mean "
             "square: this number is computed otherwise (another sum, format or root)",
             least, most);
    const double numbers[COMPOSED_NUMBERS] = {[KIND] = OF_ROW};
    if (fine && fits) fine = try_divisor(&s, numbers, kept, text);
    free(square_n);
    norm_divisors_free(&s);
    return fine;
}
