// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What a norm divides by, in the place of the root of the row's mean square: another number of the
// row, the mean square of some coordinates, of another row or of another tensor, or one that is
// rounded on the way. The factor of each row tells which are worth a trial.
#include "audit/diagnose/composed_norms.h"
#include "audit/diagnose/composed_values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef enum statistic_kind {
    OF_SPAN,     // the sum of squares of coordinates [a, b), over c
    OF_STEPS,    // of coordinates a, a + b, ...
    OF_PARTS,    // of each of a equal parts, in the part
    OF_ROW,      // of row a
    OF_ROW_BY,   // of the row a places on
    OF_MODULO,   // of the row with this number modulo a
    OF_FIRST,    // of the first row of a block of a
    OF_ROWS,     // the mean over rows 0 .. i
    OF_ALL,      // over all rows
    OF_WORST,    // the largest of all rows
    OF_COLUMNS,  // of each coordinate over all rows
    OF_TENSOR,   // of point a, of the layer b away
    OF_RESIDUAL, // of the residual that enters the layer
    OF_READ,     // of x, rounded to a format
    OF_SQUARES,  // of squares that are rounded to it
    OF_MEAN,     // the mean square, rounded to it
    OF_ROOT,     // its root with epsilon, rounded to it
    OF_INVERSE,  // 1 over that, rounded to it
    OF_RUNNING,  // a running sum in it
    OF_SIZES,    // the square of the mean of the sizes
    OF_LARGEST,  // the square of the largest size
    OF_SQUARE,   // without the root
    OF_ONE,
    OF_SPREAD,  // the variance
    OF_OTHERS,  // the variance over n - 1
    OF_SCALED,  // of the row times the scales
    OF_TWICE,   // what remains of a second norm: the scales are squared
    OF_NOTHING, // no norm: the scales are ones, and the divisor is 1
    OF_CENTRED  // the numerator is less the mean of the row, and the mean square is the row's
} statistic_kind;

// Where epsilon is added.
enum { EPS_INSIDE, EPS_OUTSIDE, EPS_NOWHERE };
enum { KIND, A, B, EPS, FORMAT, DIVISOR }; // the numbers

static double square_sum(const double *x, size_t first, size_t end, size_t step) {
    double sum = 0;
    for (size_t i = first; i < end; i += step) sum += x[i] * x[i];
    return sum;
}

static double mean_of_tensor(const sinkproof_norm_question *q, sinkproof_trace_point point,
                             size_t layer) {
    const sinkproof_tensor *t = sinkproof_trace_find(q->trace, point, layer);
    double sum = 0;
    if (t == NULL || sinkproof_tensor_elements(t) != q->n * q->d) return NAN;
    for (size_t i = 0; i < q->d; i++) {
        double x = sinkproof_tensor_value(t, q->token * q->d + i);
        sum += x * x;
    }
    return sum / (double)q->d;
}

static double mean_of_other_tensor(const sinkproof_norm_question *q, statistic_kind kind) {
    size_t layers = q->config->n_layers, layer = q->layer < layers ? q->layer : layers - 1;
    if (kind == OF_TENSOR && q->numbers[B] < 0 && layer == 0) return NAN;
    if (kind == OF_TENSOR)
        return mean_of_tensor(q, (sinkproof_trace_point)q->numbers[A],
                              layer + (size_t)((int)q->numbers[B] + 1) - 1);
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    sinkproof_trace_inputs(q->config, TRACE_A1, layer, inputs);
    return mean_of_tensor(q, inputs[0].point, inputs[0].layer);
}

static double rounded_mean(const sinkproof_norm_question *q, const double *x,
                           sinkproof_format format, statistic_kind kind) {
    double sum = 0;
    for (size_t i = 0; i < q->d; i++) {
        double one = kind == OF_READ ? sinkproof_round(format, x[i]) : x[i];
        one *= one;
        if (kind == OF_SQUARES) one = sinkproof_round(format, one);
        sum += one;
        if (kind == OF_RUNNING) sum = sinkproof_round(format, sum);
    }
    return sum / (double)q->d;
}

static double mean_of_rows(const sinkproof_norm_question *q, size_t end, bool largest) {
    double sum = 0, most = 0;
    for (size_t i = 0; i < end; i++) {
        double one = square_sum(&q->x_nd[i * q->d], 0, q->d, 1) / (double)q->d;
        sum += one / (double)end, most = fmax(most, one);
    }
    return largest ? most : sum;
}

static double mean_of_column(const sinkproof_norm_question *q, size_t k) {
    double sum = 0;
    for (size_t i = 0; i < q->n; i++) sum += q->x_nd[i * q->d + k] * q->x_nd[i * q->d + k];
    return sum / (double)q->n;
}

static double scaled_mean(const sinkproof_norm_question *q, const double *x, bool twice) {
    double sum = 0;
    for (size_t i = 0; i < q->d; i++)
        sum += x[i] * x[i] * (twice ? fabs(q->scale_d[i]) : q->scale_d[i] * q->scale_d[i]);
    return sum / (double)q->d;
}

static double of_sizes(const sinkproof_norm_question *q, const double *x, statistic_kind kind) {
    double d = (double)q->d, sizes = 0, largest = 0, mean = 0;
    for (size_t i = 0; i < q->d; i++) {
        sizes += fabs(x[i]) / d, mean += x[i] / d;
        largest = fmax(largest, fabs(x[i]));
    }
    double variance = square_sum(x, 0, q->d, 1) / d - mean * mean;
    return kind == OF_SIZES     ? sizes * sizes
           : kind == OF_LARGEST ? largest * largest
           : kind == OF_SPREAD  ? variance
                                : variance * d / (d - 1);
}

// The number in the place of the mean square of the row.
static double statistic(const sinkproof_norm_question *q) {
    const statistic_kind kind = (statistic_kind)q->numbers[KIND];
    const double *x = &q->x_nd[q->token * q->d];
    size_t d = q->d, a = (size_t)fmax(q->numbers[A], 0), b = (size_t)fmax(q->numbers[B], 0);
    long other = (long)q->token + (long)q->numbers[A];
    switch (kind) {
    case OF_SPAN:
        return square_sum(x, a, b < d ? b : d, 1) / q->numbers[DIVISOR];
    case OF_STEPS:
        return square_sum(x, a, d, b) / q->numbers[DIVISOR];
    case OF_ROW:
        return square_sum(&q->x_nd[(a < q->n ? a : 0) * d], 0, d, 1) / (double)d;
    case OF_ROW_BY:
        if (other >= 0 && other < (long)q->n) x = &q->x_nd[(size_t)other * d];
        return square_sum(x, 0, d, 1) / (double)d;
    case OF_MODULO:
        return square_sum(&q->x_nd[q->token % a * d], 0, d, 1) / (double)d;
    case OF_FIRST:
        return square_sum(&q->x_nd[q->token / a * a * d], 0, d, 1) / (double)d;
    case OF_ROWS:
        return mean_of_rows(q, q->token + 1, false);
    case OF_ALL:
    case OF_WORST:
        return mean_of_rows(q, q->n, kind == OF_WORST);
    case OF_TENSOR:
    case OF_RESIDUAL:
        return mean_of_other_tensor(q, kind);
    case OF_READ:
    case OF_SQUARES:
    case OF_RUNNING:
        return rounded_mean(q, x, (sinkproof_format)q->numbers[FORMAT], kind);
    case OF_SIZES:
    case OF_LARGEST:
    case OF_SPREAD:
    case OF_OTHERS:
        return of_sizes(q, x, kind);
    case OF_SCALED:
    case OF_TWICE:
        return scaled_mean(q, x, kind == OF_TWICE);
    default:
        return square_sum(x, 0, d, 1) / (double)d;
    }
}

static double with_eps(const sinkproof_norm_question *q, double square) {
    if (q->numbers[EPS] == EPS_OUTSIDE) return pow(sqrt(square) + q->eps, 2);
    return square + (q->numbers[EPS] == EPS_NOWHERE ? 0 : q->eps);
}

// The square of what the row is divided by, of a mean square that is about `square`.
static double divisor_square(const sinkproof_norm_question *q, double square) {
    const sinkproof_format format = (sinkproof_format)q->numbers[FORMAT];
    const double *x = &q->x_nd[q->token * q->d];
    switch ((statistic_kind)q->numbers[KIND]) {
    case OF_SQUARE:
        return pow(square + q->eps, 2);
    case OF_ONE:
    case OF_NOTHING:
        return 1;
    case OF_TWICE:
        return square + q->eps * (square_sum(x, 0, q->d, 1) / (double)q->d + q->eps);
    case OF_MEAN:
        return with_eps(q, sinkproof_round(format, square));
    case OF_ROOT:
        return pow(sinkproof_round(format, sqrt(with_eps(q, square))), 2);
    case OF_INVERSE:
        return pow(sinkproof_round(format, 1 / sqrt(with_eps(q, square))), -2);
    default:
        return with_eps(q, square);
    }
}

static bool divide_by_statistic(const sinkproof_norm_question *q, double *lo_d, double *hi_d) {
    const statistic_kind kind = (statistic_kind)q->numbers[KIND];
    size_t d = q->d, parts = (size_t)fmax(q->numbers[A], 1);
    size_t each = kind == OF_PARTS ? d / parts : d;
    double square = statistic(q), error = (double)(d + 8) * 0x1p-24;
    bool rounds = kind == OF_MEAN || kind == OF_ROOT || kind == OF_INVERSE;
    double one = divisor_square(q, square * (rounds ? 1 - error : 1));
    double other = rounds ? divisor_square(q, square * (1 + error)) : one;
    for (size_t i = 0; i < d; i++) {
        lo_d[i] = fmin(one, other), hi_d[i] = fmax(one, other);
        if (kind == OF_COLUMNS) lo_d[i] = hi_d[i] = with_eps(q, mean_of_column(q, i));
        if (kind != OF_PARTS) continue;
        size_t first = i / each * each, end = first + each < d ? first + each : d;
        const double *x = &q->x_nd[q->token * d];
        lo_d[i] = hi_d[i] = with_eps(q, square_sum(x, first, end, 1) / (double)(end - first));
    }
    return isfinite(square) && square > 0;
}

static bool norm_by_statistic(supposed_engine *s, const known_mistake *k) {
    const composed_mistake *m = (const composed_mistake *)(const void *)k;
    s->meaning.norm_squares = divide_by_statistic;
    for (size_t i = 0; i < SINKPROOF_NORM_NUMBERS; i++) s->meaning.norm_numbers[i] = m->numbers[i];
    s->meaning.centred = s->meaning.centred || m->numbers[KIND] == OF_CENTRED;
    if (m->numbers[KIND] != OF_TWICE && m->numbers[KIND] != OF_NOTHING) return true;
    mistake_weight_edit *e = add_weight_edit(s, k->slots);
    if (e != NULL && m->numbers[KIND] == OF_NOTHING)
        e->reading.factor = 0, e->reading.addend = 1;
    else if (e != NULL)
        e->rewritten = true, e->change.kind = SINKPROOF_CHANGE_SQUARE;
    return e != NULL;
}

// ---- a trial

// Whether the elements outside are near the row itself, or near it less its mean.
static bool rows_are_near(const norm_divisors *s, bool centred) {
    const composing *c = s->c;
    size_t d = s->rows.d, far = 0, outside = 0;
    for (size_t i = 0; i < s->rows.n; i++) {
        const double *x = &s->rows.x[i * d];
        double root = sqrt(s->rows.square_n[i] + c->s->trials.config->rms_eps), mean = 0;
        for (size_t k = 0; k < d; k++) mean += x[k] / (double)d;
        for (size_t k = 0; k < d; k++) {
            double value = centred ? s->scale_d[k] * (x[k] - mean) / root : x[k];
            if (!c->marks[i * d + k]) continue;
            outside++;
            far += !value_is_near(c, i * d + k, value);
        }
    }
    return outside > 0 && 8 * far <= outside;
}

static bool is_near(const norm_divisors *s, const double *numbers) {
    statistic_kind kind = (statistic_kind)numbers[KIND];
    if (kind == OF_NOTHING || kind == OF_CENTRED) return rows_are_near(s, kind == OF_CENTRED);
    return kind == OF_PARTS || kind == OF_TWICE || kind == OF_COLUMNS ||
           norm_divisors_are_near(s, divide_by_statistic, numbers, NULL);
}

static bool try_statistic(norm_divisors *s, const double *numbers, const char *text) {
    composing *c = s->c;
    bool fine = true;
    if (c->found != NULL || !is_near(s, numbers)) return true;
    const sinkproof_region *region;
    for (size_t r = 0; fine && c->found == NULL; r++) {
        region = norm_divisors_region(s, r);
        if (region == NULL) break;
        composed_mistake *m = composed_norm_new(c, norm_by_statistic, region);
        if (m == NULL) return false;
        for (size_t i = 0; i < COMPOSED_NUMBERS; i++) m->numbers[i] = numbers[i];
        composed_name(m, "%s-over-%g-%g-%g", sinkproof_trace_point_name(c->point), numbers[KIND],
                      numbers[A], numbers[B]);
        if (numbers[EPS] != EPS_INSIDE)
            composed_name(m, "%s", numbers[EPS] == EPS_OUTSIDE ? "+eps" : "-eps");
        if (numbers[FORMAT] != 0) composed_name(m, "-%g", numbers[FORMAT]);
        composed_say(m, "%s %s%s", composed_norm_words(c), text,
                     numbers[EPS] == EPS_OUTSIDE   ? ", plus epsilon"
                     : numbers[EPS] == EPS_NOWHERE ? ", without epsilon"
                                                   : "");
        composed_say_region(c, m);
        fine = composing_try(c, m);
    }
    return fine;
}

// ---- kinds

enum { MOST_ROWS = 512 };

static bool try_kinds(norm_divisors *s) {
    static const struct {
        statistic_kind kind;
        double a;
        const char *text;
    } kinds[] = {
        {OF_SQUARE, 0, "divides by the mean square itself: the root is missing"},
        {OF_ONE, 0,
         "is left out but for its scales: rows are not divided by their root mean square"},
        {OF_TWICE, 0, "is applied twice"},
        {OF_NOTHING, 0, "is left out, with its scales: the rows are its input"},
        {OF_CENTRED, 0,
         "subtracts the mean of the row, and divides by the root mean square of the row with it"},
        {OF_SPREAD, 0, "divides by the standard deviation, and the mean is not subtracted"},
        {OF_OTHERS, 0,
         "divides by the standard deviation (over n - 1), and the mean is not subtracted"},
        {OF_ROWS, 0, "divides each row by the root mean square of all rows up to it"},
        {OF_ALL, 0, "divides each row by the root mean square of all rows together"},
        {OF_WORST, 0, "divides each row by the largest root mean square of all rows"},
        {OF_COLUMNS, 0, "divides each coordinate by its root mean square over all rows"},
        {OF_SCALED, 0, "takes the mean square of the row times its scales, behind the scales"},
        {OF_LARGEST, 0, "divides by the largest absolute value in the row"},
        {OF_SIZES, 0,
         "divides by the mean of the absolute values, not by the root of the mean square"}};
    bool fine = true;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && fine; i++)
        for (int eps = EPS_INSIDE; eps <= EPS_NOWHERE && fine; eps++) {
            bool all = kinds[i].kind >= OF_ROWS && kinds[i].kind <= OF_COLUMNS;
            if (all && s->rows.n > MOST_ROWS) continue; // a square of the rows
            const double numbers[COMPOSED_NUMBERS] = {
                [KIND] = kinds[i].kind, [A] = kinds[i].a, [EPS] = eps};
            bool without = kinds[i].kind == OF_SQUARE || kinds[i].kind == OF_ONE ||
                           kinds[i].kind == OF_NOTHING;
            if (eps > EPS_INSIDE && without) continue;
            fine = try_statistic(s, numbers, kinds[i].text);
        }
    return fine;
}

// Another row's: `a` is the kind's number.
static bool try_row(norm_divisors *s, statistic_kind kind, long a, const char *whose) {
    char text[160];
    const double numbers[COMPOSED_NUMBERS] = {[KIND] = kind, [A] = (double)a};
    snprintf(text, sizeof text, "divides each row by the root mean square of %s", whose);
    return try_statistic(s, numbers, text);
}

static bool try_rows(norm_divisors *s) {
    long n = (long)s->rows.n;
    bool fine = true;
    char whose[96];
    for (long a = 0; a < n && a < MOST_ROWS && fine && s->c->found == NULL; a++) {
        snprintf(whose, sizeof whose, "the row %ld before", a);
        if (a > 0) fine = try_row(s, OF_ROW_BY, -a, a == 1 ? "the row before" : whose);
        snprintf(whose, sizeof whose, "the row %ld on", a);
        if (fine && a > 0) fine = try_row(s, OF_ROW_BY, a, a == 1 ? "the next row" : whose);
        snprintf(whose, sizeof whose, "row %ld", a);
        if (fine) fine = try_row(s, OF_ROW, a, a == 0 ? "the first row" : whose);
        snprintf(whose, sizeof whose, "the row with its number modulo %ld", a);
        if (fine && a > 1) fine = try_row(s, OF_MODULO, a, whose);
        snprintf(whose, sizeof whose, "the first row of its block of %ld", a);
        if (fine && a > 1) fine = try_row(s, OF_FIRST, a, whose);
    }
    return fine;
}

static bool try_formats(norm_divisors *s) {
    static const struct {
        statistic_kind kind;
        const char *text;
    } kinds[] = {
        {OF_MEAN, "rounds the mean square to"},
        {OF_ROOT, "rounds the root of the mean square to"},
        {OF_INVERSE, "rounds the factor of each row, 1 over the root of its mean square, to"},
        {OF_READ, "takes the mean square of numbers that are rounded to"},
        {OF_SQUARES, "takes the mean of squares that are rounded to"},
        {OF_RUNNING, "adds the squares in a running sum of"}};
    static const struct {
        sinkproof_format format;
        const char *name;
    } formats[] = {{SINKPROOF_BF16, "bfloat16"},
                   {SINKPROOF_F16, "binary16"},
                   {SINKPROOF_E4M3, "e4m3"},
                   {SINKPROOF_E5M2, "e5m2"}};
    bool fine = true;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (size_t f = 0; f < sizeof formats / sizeof formats[0] && fine; f++) {
            char text[120];
            const double numbers[COMPOSED_NUMBERS] = {
                [KIND] = kinds[k].kind, [FORMAT] = formats[f].format};
            snprintf(text, sizeof text, "%s %s", kinds[k].text, formats[f].name);
            fine = try_statistic(s, numbers, text);
        }
    return fine;
}

static bool try_tensors(norm_divisors *s) {
    const composing *c = s->c;
    const double residual[COMPOSED_NUMBERS] = {[KIND] = OF_RESIDUAL};
    bool fine = c->point != TRACE_M1 ||
                try_statistic(s, residual,
                              "divides by the root mean square of the layer's input: of the "
                              "residual before attention's output was added");
    for (int by = 0; by >= -1; by--)
        for (int p = 0; p < TRACE_POINTS && fine && c->found == NULL; p++) {
            sinkproof_trace_point point = (sinkproof_trace_point)p;
            char text[160];
            size_t shape[SINKPROOF_MAX_RANK];
            if (composed_input_words(point) == NULL || point == c->point) continue;
            if (sinkproof_trace_shape(c->s->trials.config, point, 1, shape) != 2 ||
                shape[1] != s->rows.d)
                continue;
            snprintf(text, sizeof text, "divides by the root mean square of %s%s (%s)",
                     composed_input_words(point), by < 0 ? " of the layer before" : "",
                     sinkproof_trace_point_name(point));
            const double numbers[COMPOSED_NUMBERS] = {[KIND] = OF_TENSOR, [A] = point, [B] = by};
            fine = try_statistic(s, numbers, text);
        }
    return fine;
}

// ---- some coordinates

static bool try_span(norm_divisors *s, size_t first, size_t end, bool over_all) {
    size_t d = s->rows.d, count = end - first;
    char text[200], share[40] = "";
    if (count == 0 || count >= d) return true;
    const double numbers[COMPOSED_NUMBERS] = {[KIND] = OF_SPAN,
                                              [A] = (double)first,
                                              [B] = (double)end,
                                              [DIVISOR] = (double)(over_all ? d : count)};
    if (d % count == 0) snprintf(share, sizeof share, ", 1/%zu of the coordinates", d / count);
    const char *which = first == 0 ? "the first " : end == d ? "the last " : "";
    if (over_all)
        snprintf(text, sizeof text,
                 "takes the sum of squares of coordinates %zu-%zu alone (%s%zu%s) and divides it "
                 "by %zu: the others are left out",
                 first, end - 1, which, count, share, d);
    else
        snprintf(text, sizeof text, "takes the mean square of coordinates %zu-%zu alone (%s%zu%s)",
                 first, end - 1, which, count, share);
    return try_statistic(s, numbers, text);
}

static bool try_spans(norm_divisors *s) {
    size_t d = s->rows.d, fewest = d < 16 ? 1 : d / 16;
    bool fine = true;
    for (int over_all = 0; over_all < 2; over_all++)
        for (size_t count = fewest; count < d && fine && s->c->found == NULL; count++) {
            bool even = d % 8 == 0 && count % (d / 8) == 0;
            fine = try_span(s, 0, count, over_all) && try_span(s, d - count, d, over_all);
            for (size_t first = d / 8; even && fine && first + count < d; first += d / 8)
                fine = try_span(s, first, first + count, over_all);
        }
    for (size_t step = 2; step <= 4; step++)
        for (size_t first = 0; first < step && fine && s->c->found == NULL; first++) {
            char text[120];
            double count = (double)((d - first + step - 1) / step);
            snprintf(text, sizeof text, "takes the mean square of every %s coordinate from %zu on",
                     step == 2   ? "second"
                     : step == 3 ? "third"
                                 : "fourth",
                     first);
            const double numbers[COMPOSED_NUMBERS] = {
                [KIND] = OF_STEPS, [A] = (double)first, [B] = (double)step, [DIVISOR] = count};
            fine = try_statistic(s, numbers, text);
        }
    return fine;
}

static bool try_parts(norm_divisors *s) {
    const size_t counts[] = {2, 3, 4, 6, 8, 16, s->c->s->trials.config->n_heads};
    bool fine = true;
    for (size_t k = 0; k < sizeof counts / sizeof counts[0] && fine; k++) {
        char text[120];
        if (s->rows.d % counts[k] != 0) continue;
        snprintf(text, sizeof text, "normalises each of %zu equal parts of the coordinates alone",
                 counts[k]);
        const double numbers[COMPOSED_NUMBERS] = {[KIND] = OF_PARTS, [A] = (double)counts[k]};
        fine = try_statistic(s, numbers, text);
    }
    return fine;
}

static bool try_all(norm_divisors *s) {
    return try_kinds(s) && try_rows(s) && try_formats(s) && try_tensors(s) && try_spans(s) &&
           try_parts(s);
}

bool compose_statistics(composing *c) {
    norm_divisors s;
    bool known, fine = norm_divisors_read(c, NULL, &s, &known);
    if (fine && known) fine = try_all(&s);
    norm_divisors_free(&s);
    const sinkproof_region *some;
    for (size_t r = 0; fine && known && c->found == NULL;) {
        some = norm_region_of_coordinates(c, &r);
        if (some == NULL) break;
        fine = norm_divisors_read(c, some, &s, &known);
        if (fine && known) fine = try_all(&s);
        norm_divisors_free(&s);
    }
    return fine;
}
