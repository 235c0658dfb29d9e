// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The frequencies that a rotation used: the one of each pair that fits the angles of all rows best.
// A rule for all pairs is then looked for: another base, no scaling, all of them scaled, rounded;
// if there is none, the frequencies are told as they are.
#include "audit/diagnose/composed_frequencies.h"
#include "ref/stages.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WITHOUT, TIMES, ERROR }; // numbers

static bool turn_by_frequencies(supposed_engine *s, const known_mistake *k) {
    const composed_mistake *m = (const composed_mistake *)(const void *)k;
    sinkproof_turning *of[2] = {&s->meaning.query, &s->meaning.key};
    for (int i = 0; i < 2; i++) {
        of[i]->frequency_p = m->frequency_p, of[i]->frequency_error = m->numbers[ERROR];
        of[i]->without_concentration = (int)m->numbers[WITHOUT];
        of[i]->concentration = m->numbers[TIMES];
    }
    return s->config.rotation.kind != SINKPROOF_NO_ROTATION;
}

static double wrapped(double angle) {
    return remainder(angle, 2 * 3.14159265358979323846);
}

// The turn of pair p in row i, and how large it makes the pair.
static double complex turn_of(const composing *c, const sinkproof_tensor *x, size_t i, size_t p) {
    size_t d = c->s->trials.config->head_dim, each = c->elements / c->n;
    double complex sum = 0;
    double square = 0;
    for (size_t at = i * each + p; at < (i + 1) * each; at += d) {
        double complex from =
            sinkproof_tensor_value(x, at) + I * sinkproof_tensor_value(x, at + d / 2);
        double complex to = c->v[at] + I * c->v[at + d / 2];
        sum += to * conj(from), square += creal(from * conj(from));
    }
    return square > 0 ? sum / square : 0;
}

// The frequency of a pair: from the angle of one position on, refined by those of more and more.
static bool fit_pair(const composing *c, const sinkproof_tensor *x, size_t p, frequency_fit *fit,
                     double *sizes, double *size_count) {
    double f = 0, along = 0, square = 0, off = 0, count = 0;
    for (size_t i = 1; i < c->n; i++) {
        double complex turn = turn_of(c, x, i, p);
        double position = (double)sinkproof_trace_positions(c->s->trials.suspect.trace)[i];
        double from = cabs(turn) > 0 ? wrapped(carg(turn) - position * f) : NAN;
        if (!(fabs(from) < 1.5) || position <= 0) {
            if (position == 1)
                f = carg(turn), from = 0;
            else
                return false;
        }
        along += position * (from + position * f), square += position * position;
        f = along / square;
        *sizes += cabs(turn), *size_count += 1;
    }
    for (size_t i = 1; i < c->n && square > 0; i++) {
        double position = (double)sinkproof_trace_positions(c->s->trials.suspect.trace)[i];
        double from = wrapped(carg(turn_of(c, x, i, p)) - position * f);
        off += from * from, count++;
    }
    if (count < 3) return false;
    fit->f[p] = f, fit->error[p] = 4 * sqrt(off / count / square) + 0x1p-40;
    fit->wrong = fit->wrong || fabs(f - fit->defined[p]) > 3 * fit->error[p];
    return off / count < 0.01;
}

static bool fit_all(const composing *c, frequency_fit *fit) {
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    size_t n = sinkproof_trace_inputs(fit->config, c->point, c->place, inputs);
    const sinkproof_tensor *x =
        n > 0 ? sinkproof_trace_find(c->s->trials.suspect.trace, inputs[0].point, inputs[0].layer)
              : NULL;
    double sizes = 0, count = 0, concentration = sinkproof_yarn_concentration(fit->config);
    if (x == NULL || sinkproof_tensor_elements(x) != c->elements) return false;
    for (size_t p = 0; p < fit->half; p++)
        if (!fit_pair(c, x, p, fit, &sizes, &count)) return false;
    double size = sizes / count / concentration, room = 4 * c->step / sqrt(count) + 1e-6;
    fit->without = 0, fit->times = 1;
    if (concentration != 1 && fabs(size * concentration - 1) <= room * 8)
        fit->without = 1;
    else if (concentration != 1 && fabs(size / concentration - 1) <= room * 8)
        fit->without = -1;
    else if (fabs(size - 1) > room * 8)
        fit->times = size;
    return fit->wrong;
}

// Whether the rule is within what the fit may be off by.
static bool rule_is_near(const frequency_fit *fit) {
    bool near = true;
    for (size_t p = 0; p < fit->half; p++)
        near = near && fabs(wrapped(fit->rule[p] - fit->f[p])) <=
                           2 * fit->error[p] + 1e-6 * fabs(fit->rule[p]);
    return near;
}

static composed_mistake *frequencies_new(composing *c, const frequency_fit *fit, double error) {
    composed_mistake *m = composing_new(c);
    if (m == NULL) return NULL;
    m->frequency_p = (const double *)(const void *)composing_keep_marks(
        c, fit->half * sizeof *fit->rule, (const uint8_t *)(const void *)fit->rule);
    if (m->frequency_p == NULL) return NULL;
    m->operate = turn_by_frequencies, m->mistake.points = composing_rotated_points(c);
    m->numbers[WITHOUT] = fit->without, m->numbers[TIMES] = fit->times, m->numbers[ERROR] = error;
    return m;
}

static const char *whose(const composing *c) {
    return composing_rotated_points(c) != point_bit(c->point) ? "queries and keys"
           : c->point == TRACE_A4_Q                           ? "queries"
                                                              : "keys";
}

bool frequencies_try(composing *c, const frequency_fit *fit, const char *id, const char *text) {
    if (c->found != NULL || !rule_is_near(fit)) return true;
    // a frequency is a power and a few operations in float32
    composed_mistake *m = frequencies_new(c, fit, 0x1p-21);
    if (m == NULL) return false;
    composed_name(m, "frequencies-%s", id);
    composed_say(m, "%s", text);
    if (fit->without > 0) composed_say(m, ", and without the concentration");
    if (fit->without < 0) composed_say(m, ", and with the concentration twice");
    if (fit->times != 1) composed_say(m, ", and what is rotated is multiplied by %.6g", fit->times);
    composed_say(m, " (rotation of %s)", whose(c));
    return composing_try(c, m);
}

static bool try_rounded(composing *c, const frequency_fit *fit) {
    static const sinkproof_format formats[] = {SINKPROOF_BF16, SINKPROOF_F16};
    bool fine = true;
    for (size_t i = 0; i < 2 && fine; i++) {
        char text[96];
        for (size_t p = 0; p < fit->half; p++)
            fit->rule[p] = sinkproof_round(formats[i], fit->defined[p]);
        snprintf(text, sizeof text, "the inverse frequencies are rounded to %s",
                 sinkproof_format_name(formats[i]));
        fine = frequencies_try(c, fit, sinkproof_format_name(formats[i]), text);
    }
    return fine;
}

static bool try_scalings(composing *c, const frequency_fit *fit) {
    double factor = fit->config->rotation.factor;
    char text[160];
    if (fit->config->rotation.kind == SINKPROOF_PLAIN_ROTATION) return true;
    memcpy(fit->rule, fit->plain, fit->half * sizeof *fit->rule);
    if (!frequencies_try(c, fit, "unscaled",
                         "the frequencies are not scaled: the rotation is plain"))
        return false;
    for (size_t p = 0; p < fit->half; p++) fit->rule[p] = fit->plain[p] / factor;
    snprintf(
        text, sizeof text,
        "all frequencies are divided by %g: linear interpolation of every position, not of the "
        "slow pairs alone",
        factor);
    return frequencies_try(c, fit, "all-interpolated", text);
}

// The base for which f_p / of_p = base^(-p / half); by the pairs that tell it best.
static double fitted_base(const frequency_fit *fit, const double *of) {
    double along = 0, square = 0;
    for (size_t p = 1; p < fit->half; p++) {
        double relative = fit->error[p] / fit->f[p];
        double x = (double)p / (double)fit->half, y = -log(fit->f[p] / of[p]);
        if (!(fit->f[p] > 0) || !(relative < 1)) continue;
        along += x * y / (relative * relative), square += x * x / (relative * relative);
    }
    return square > 0 ? exp(along / square) : NAN;
}

// A base that has a reason; the others to six digits.
static double named_base(const frequency_fit *fit, double base, char *why, size_t size) {
    double d = 2 * (double)fit->half, theta = fit->config->rotation.theta;
    double ntk = theta * pow(fit->config->rotation.factor, d / (d - 2));
    double spaced = pow(theta, d / (d - 2)), digits = pow(10, floor(log10(base)) - 3);
    double rounded = nearbyint(base / digits) * digits;
    why[0] = '\0';
    if (fabs(base / ntk - 1) < 1e-3) {
        snprintf(why, size, ", as NTK-aware scaling raises it: %g times %g^(%g/%g)", theta,
                 fit->config->rotation.factor, d, d - 2);
        return ntk;
    }
    if (fabs(base / spaced - 1) < 1e-3) {
        snprintf(why, size,
                 ": the exponents are i/%g, not i/%g, so that the last pair has the full base",
                 d / 2 - 1, d / 2);
        return spaced;
    }
    return fabs(base / rounded - 1) < 1e-4 ? rounded : base;
}

static bool try_bases(composing *c, const frequency_fit *fit) {
    bool fine = true, scaled = fit->config->rotation.kind != SINKPROOF_PLAIN_ROTATION;
    double *of = calloc(fit->half, sizeof *of);
    if (of == NULL) return fail_for_memory(c->s);
    for (int kept = 0; kept < 1 + scaled && fine; kept++) {
        char id[40], text[256], why[128];
        for (size_t p = 0; p < fit->half; p++) of[p] = kept ? fit->defined[p] / fit->plain[p] : 1;
        double base = named_base(fit, fitted_base(fit, of), why, sizeof why);
        if (!(base > 1)) continue;
        for (size_t p = 0; p < fit->half; p++)
            fit->rule[p] = of[p] * pow(base, -(double)p / (double)fit->half);
        snprintf(id, sizeof id, "base-%.6g%s", base, scaled && !kept ? "-unscaled" : "");
        snprintf(text, sizeof text, "the base of the frequencies is %.7g, not %g%s%s", base,
                 fit->config->rotation.theta, why,
                 scaled && !kept ? ", and they are not scaled otherwise" : "");
        fine = frequencies_try(c, fit, id, text);
    }
    free(of);
    return fine;
}

// What the fit tells, where no rule holds and where it tells more than the last digits.
static bool try_told(composing *c, const frequency_fit *fit) {
    double error = 0;
    size_t told = 0;
    if (c->found != NULL) return true;
    for (size_t p = 0; p < fit->half; p++) error = fmax(error, fit->error[p] / fit->f[p]);
    if (!(error < 1e-3)) return true;
    memcpy(fit->rule, fit->f, fit->half * sizeof *fit->rule);
    composed_mistake *m = frequencies_new(c, fit, error);
    if (m == NULL) return false;
    composed_name(m, "frequencies-other");
    composed_say(m, "the pairs are rotated by other frequencies: ");
    for (size_t p = 0; p < fit->half && told < 8; p++) {
        if (fabs(fit->f[p] - fit->defined[p]) <= 3 * fit->error[p]) continue;
        composed_say(m, "%spair %zu by %.5g times its own", told++ == 0 ? "" : ", ", p,
                     fit->f[p] / fit->defined[p]);
    }
    composed_say(m, " (rotation of %s)", whose(c));
    return composing_try(c, m);
}

bool frequencies_fit_and_try(composing *c, frequency_rules *try) {
    frequency_fit fit = {.config = c->s->trials.config, .half = c->s->trials.config->head_dim / 2};
    if (c->point != TRACE_A4_Q && c->point != TRACE_A4_K) return true;
    double *room = calloc(5 * fit.half + 1, sizeof *room);
    if (room == NULL) return fail_for_memory(c->s);
    fit.f = room, fit.error = room + fit.half, fit.defined = room + 2 * fit.half;
    fit.plain = room + 3 * fit.half, fit.rule = room + 4 * fit.half;
    sinkproof_yarn_frequencies(c->s->trials.suspect.policy, fit.config, fit.defined);
    for (size_t p = 0; p < fit.half; p++)
        fit.plain[p] = pow(fit.config->rotation.theta, -(double)p / (double)fit.half);
    bool fine = !fit_all(c, &fit) || try(c, &fit);
    free(room);
    return fine;
}

static bool try_rules(composing *c, const frequency_fit *fit) {
    return try_rounded(c, fit) && try_scalings(c, fit) && try_bases(c, fit);
}

bool compose_frequencies(composing *c) {
    return frequencies_fit_and_try(c, try_rules);
}

bool compose_told_frequencies(composing *c) {
    return frequencies_fit_and_try(c, try_told);
}
