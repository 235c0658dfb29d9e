// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Rotations by other cosines and sines than those of the positions. For each row and pair of
// coordinates least squares over the heads give the cosine and the sine that the engine used. Rules
// are compared with them: of a part of the coordinates, cosines and sines of different positions or
// sizes, positions of each pair, sizes that grow with the position, frequencies of each pass. What
// the rule says makes the numbers that the judge's sets are compared with.
#include "audit/diagnose/composed_rotated.h"
#include "base/words.h"
#include "ref/stages.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// ---- the cosines and sines that were used

// Returns false where no cosine and sine fit the heads of a row.
static bool find_used(turns *t) {
    const composing *c = t->c;
    const sinkproof_making of = composing_making(c);
    const sinkproof_tensor *x = turned_from(&of);
    size_t each = c->elements / c->n, heads = each / t->d, far = 0, pairs = 0;
    for (size_t i = 0; i < t->n && x != NULL; i++)
        for (size_t p = 0; p < t->half; p++) {
            double xx = 0, cosine = 0, sine = 0, rest = 0, size = 0;
            for (size_t h = 0; h < heads; h++) {
                size_t a = i * each + h * t->d + p, b = a + t->half;
                double xa = sinkproof_tensor_value(x, a), xb = sinkproof_tensor_value(x, b);
                xx += xa * xa + xb * xb;
                cosine += xa * c->v[a] + xb * c->v[b], sine += xa * c->v[b] - xb * c->v[a];
            }
            double *e = t->used + ENTRY * (i * t->half + p);
            e[COSINE] = xx > 0 ? cosine / xx : 1, e[SINE] = xx > 0 ? sine / xx : 0;
            for (size_t h = 0; h < heads; h++) {
                size_t a = i * each + h * t->d + p, b = a + t->half;
                double xa = sinkproof_tensor_value(x, a), xb = sinkproof_tensor_value(x, b);
                double ra = e[COSINE] * xa - e[SINE] * xb - c->v[a];
                double rb = e[COSINE] * xb + e[SINE] * xa - c->v[b];
                rest += ra * ra + rb * rb, size += c->v[a] * c->v[a] + c->v[b] * c->v[b];
            }
            far += rest > 1e-3 * size, pairs++;
        }
    return x != NULL && heads > 1 && 16 * far <= pairs;
}

// The table of cosines of angles and sines of others, each times a number.
typedef double angle(const turns *t, size_t i, size_t p);
static void fill(turns *t, angle *of_cosine, angle *of_sine, double by_cosine, double by_sine) {
    for (size_t i = 0; i < t->n; i++)
        for (size_t p = 0; p < t->half; p++) {
            double *e = t->rule + ENTRY * (i * t->half + p);
            e[COSINE] = by_cosine * cos(of_cosine(t, i, p));
            e[SINE] = by_sine * sin(of_sine(t, i, p));
        }
}

static double own_angle(const turns *t, size_t i, size_t p) {
    return t->position_i[i] * t->frequency_p[p];
}

// ---- sizes

// Cosines and sines are multiplied by different numbers, or by others than the concentration.
static bool try_sizes(turns *t) {
    double number[2], along[2] = {0, 0}, square[2] = {0, 0};
    char text[320];
    fill(t, own_angle, own_angle, 1, 1);
    for (size_t at = 0; at < ENTRY * t->n * t->half; at++)
        along[at % ENTRY] += t->rule[at] * t->used[at],
            square[at % ENTRY] += t->rule[at] * t->rule[at];
    for (int k = 0; k < 2; k++) {
        number[k] = square[k] > 0 ? along[k] / square[k] : 1;
        const double likely[] = {1, t->by, t->by * t->by, 1 / t->by, 0, -1, -t->by, 2, 0.5};
        for (size_t l = 0; l < sizeof likely / sizeof likely[0]; l++)
            if (fabs(number[k] - likely[l]) < t->c->step + 1e-4) {
                number[k] = likely[l];
                break;
            }
    }
    fill(t, own_angle, own_angle, number[COSINE], number[SINE]);
    if (!turns_are_near(t)) return true;
    if (number[COSINE] == number[SINE])
        snprintf(text, sizeof text,
                 "is rotated by cosines and sines that are multiplied by %.5g, not by the "
                 "concentration %.5g%s",
                 number[0], t->by, number[0] == 1 ? ": the concentration is left out" : "");
    else
        snprintf(text, sizeof text,
                 "is rotated by cosines that are multiplied by %.5g and sines that are multiplied "
                 "by %.5g, where the concentration is %.5g for both",
                 number[COSINE], number[SINE], t->by);
    return turns_try(t, "cosines-sines-times", text);
}

// A size that is multiplied by one number for each position, of every pair alike or of each.
static bool try_growth(turns *t) {
    double sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0, count = 0;
    for (size_t i = 0; i < t->n; i++)
        for (size_t p = 0; p < t->half; p++) {
            const double *e = t->used + ENTRY * (i * t->half + p);
            double size = turn_size(e) / t->by;
            if (!(size > 0)) return true;
            double x = t->position_i[i], y = log(size);
            sum_x += x, sum_y += y, sum_xx += x * x, sum_xy += x * y, count++;
        }
    double spread = sum_xx - sum_x * sum_x / count;
    if (!(spread > 0)) return true;
    double slope = (sum_xy - sum_x * sum_y / count) / spread,
           at_0 = (sum_y - slope * sum_x) / count, each = exp(slope);
    double short_one = nearbyint(each * 1e4) / 1e4, over_short = 1 / (nearbyint(1e4 / each) / 1e4);
    if (fabs(over_short - each) < fabs(short_one - each)) short_one = over_short;
    if (fabs(short_one - each) < 2e-6) each = short_one;
    if (fabs(at_0) < 1e-3) at_0 = 0;
    if (fabs(each - 1) < 1e-5) return true;
    for (size_t i = 0; i < t->n; i++)
        for (size_t p = 0; p < t->half; p++) {
            double *e = t->rule + ENTRY * (i * t->half + p), a = own_angle(t, i, p);
            double size = t->by * exp(at_0) * pow(each, t->position_i[i]);
            e[COSINE] = size * cos(a), e[SINE] = size * sin(a);
        }
    char text[320];
    snprintf(text, sizeof text,
             "is rotated and multiplied by %.6g for each position: its size depends on the "
             "position (a decay, as of xPos)",
             each);
    return turns_are_near(t) ? turns_try(t, "times-each-position", text) : true;
}

// Cosines of one position and sines of another.
static bool try_apart(turns *t) {
    for (int a = -3; a <= 3; a++)
        for (int b = -3; b <= 3; b++) {
            char id[48], text[320];
            if (a == b) continue; // a shift is told as one
            for (size_t i = 0; i < t->n; i++)
                for (size_t p = 0; p < t->half; p++) {
                    double *e = t->rule + ENTRY * (i * t->half + p);
                    e[COSINE] = t->by * cos((t->position_i[i] + a) * t->frequency_p[p]);
                    e[SINE] = t->by * sin((t->position_i[i] + b) * t->frequency_p[p]);
                }
            if (!turns_are_near(t)) continue;
            snprintf(id, sizeof id, "cosine%+d-sine%+d", a, b);
            snprintf(
                text, sizeof text,
                "is rotated by the cosine of the position %+d and the sine of the position %+d", a,
                b);
            return turns_try(t, id, text);
        }
    return true;
}

// ---- a part of the coordinates

static bool try_part(turns *t) {
    static const char *const ids[] = {"first", "base", "every"};
    static const char *const words[] = {"those of the first pairs of a whole head", NULL,
                                        "those of pairs of a whole head, some left out"};
    double base = t->c->s->trials.config->rotation.theta, *own = t->room_p;
    size_t whole = t->half;
    bool fine = true;
    for (size_t p = 0; p < whole; p++) own[p] = t->frequency_p[p];
    for (size_t parts = 2; parts <= 4 && fine && t->c->found == NULL; parts *= 2) {
        t->half = whole / parts;
        if (t->half < 1 || whole % parts != 0 || !find_used(t)) continue;
        for (int f = 0; f < 3 && fine && t->c->found == NULL; f++)
            for (int with = 0; with < 2 && fine && t->c->found == NULL; with++) {
                char id[64], text[400], of[64];
                double by = with ? t->by : 1;
                for (size_t p = 0; p < t->half; p++)
                    t->frequency_p[p] = f == 0   ? own[p]
                                        : f == 1 ? pow(base, -(double)p / (double)t->half)
                                                 : own[p * parts];
                fill(t, own_angle, own_angle, by, by);
                if (!turns_are_near(t)) continue;
                if (f == 1)
                    snprintf(of, sizeof of, "the base to the power of -2 p / %zu", 2 * t->half);
                else
                    snprintf(of, sizeof of, "%s", words[f]);
                snprintf(id, sizeof id, "first-%zu-%s-%d", 2 * t->half, ids[f], with);
                snprintf(text, sizeof text,
                         "is rotated in the first %zu of the %s of a head alone, in "
                         "pairs %zu apart (a partial rotation); frequencies: %s%s",
                         2 * t->half, sinkproof_counted(t->d, "coordinate").text, t->half, of,
                         with || t->by == 1 ? "" : ", without the concentration");
                fine = turns_try(t, id, text);
            }
    }
    t->half = whole;
    for (size_t p = 0; p < whole; p++) t->frequency_p[p] = own[p];
    return fine;
}

// ---- all

static bool try_rules(turns *t) {
    static turns_attempt *const attempts[] = {
        try_sizes,         try_apart,          try_growth,     turns_in_groups,
        turns_in_sections, turns_at_positions, turns_of_bases, turns_of_frequencies,
        turns_in_classes};
    bool fine = true;
    if (find_used(t))
        for (size_t k = 0; k < sizeof attempts / sizeof attempts[0]; k++)
            if (fine && t->c->found == NULL) fine = attempts[k](t);
    if (fine && t->c->found == NULL) fine = turns_by_heads(t);
    return fine && (t->c->found != NULL || try_part(t));
}

bool compose_rotated(composing *c) {
    const sinkproof_config *config = c->s->trials.config;
    if (c->point != TRACE_A4_Q && c->point != TRACE_A4_K) return true;
    if (config->rotation.kind == SINKPROOF_NO_ROTATION || config->head_dim < 4) return true;
    operation o;
    size_t half = config->head_dim / 2;
    const int32_t *positions = sinkproof_trace_positions(c->s->trials.suspect.trace);
    turns t = {.c = c, .o = &o, .n = c->n, .d = config->head_dim, .half = half};
    double *room = calloc(2 * half + c->n + 2 * ENTRY * c->n * half + 1, sizeof *room);
    bool fine = operation_read(c, &o) && (room != NULL || fail_for_memory(c->s));
    if (fine && o.whole && o.n > 0) {
        t.frequency_p = room, t.room_p = room + half, t.position_i = room + 2 * half;
        t.used = t.position_i + c->n, t.rule = t.used + ENTRY * c->n * half;
        t.by = sinkproof_yarn_concentration(config);
        sinkproof_yarn_frequencies(c->s->trials.suspect.policy, config, t.frequency_p);
        for (size_t i = 0; i < c->n; i++) t.position_i[i] = (double)positions[i];
        fine = try_rules(&t);
    }
    free(room);
    operation_free(&o);
    return fine;
}
