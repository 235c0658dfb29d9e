// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Frequencies that are scaled by another rule than YaRN's: other ends of its ramp, another use of
// its factor, the scaling of Llama 3.
#include "audit/diagnose/composed_frequencies.h"
#include "ref/stages.h"

#include <math.h>
#include <stdio.h>

#define TWO_PI 6.283185307179586

// How a pair's frequency is made of its trained one and its share of interpolation.
typedef enum scaling { DIVIDED, MULTIPLIED, BY_ROOT, WAVELENGTHS, GEOMETRIC, SCALINGS } scaling;

static double scaled(scaling how, double trained, double factor, double share) {
    switch (how) {
    case MULTIPLIED:
        return trained * (1 - share) + trained * factor * share;
    case BY_ROOT:
        return trained * (1 - share) + trained / sqrt(factor) * share;
    case WAVELENGTHS:
        return trained / (1 - share + factor * share);
    case GEOMETRIC:
        return trained * pow(factor, -share);
    case DIVIDED:
    case SCALINGS:
        break;
    }
    return trained * (1 - share) + trained / factor * share;
}

static bool try_ramp(composing *c, const frequency_fit *fit, double low, double high, scaling how,
                     const char *id, const char *text) {
    static const char *const uses[][2] = {
        [DIVIDED] = {"", ""},
        [MULTIPLIED] = {"-multiplied", "interpolated frequencies are multiplied by the factor of "
                                       "YaRN, not divided by it"},
        [BY_ROOT] = {"-by-root",
                     "interpolated frequencies are divided by the root of the factor of "
                     "YaRN"},
        [WAVELENGTHS] = {"-wavelengths", "the ramp of YaRN mixes wavelengths, not frequencies"},
        [GEOMETRIC] = {"-geometric", "the ramp of YaRN mixes the logarithms of frequencies"}};
    char ids[80], texts[384];
    bool other = text[0] != '\0';
    if (!other && how == DIVIDED) return true; // as defined
    for (size_t p = 0; p < fit->half; p++) {
        double share = high == low ? (double)p > low : ((double)p - low) / (high - low);
        fit->rule[p] =
            scaled(how, fit->plain[p], fit->config->rotation.factor, fmin(fmax(share, 0), 1));
    }
    snprintf(ids, sizeof ids, "ramp%s%s", id, uses[how][0]);
    snprintf(texts, sizeof texts, "%s%s%s", text, other && how != DIVIDED ? "; and " : "",
             uses[how][1]);
    return frequencies_try(c, fit, ids, texts);
}

static bool try_ramp_always(composing *c, const frequency_fit *fit, double low, double high,
                            const char *id, const char *text) {
    char full[320];
    double own_low, own_high;
    sinkproof_yarn_range(fit->config, false, &own_low, &own_high);
    low = fmax(low, 0), high = fmin(high, (double)fit->config->head_dim - 1);
    snprintf(full, sizeof full,
             "%s: the ramp of YaRN runs from pair %.4g to pair %.4g, not from %.4g to %.4g", text,
             low, high, own_low, own_high);
    bool fine = true;
    for (int how = DIVIDED; how < SCALINGS && fine && c->found == NULL; how++)
        fine = try_ramp(c, fit, low, high, (scaling)how, id, full);
    return fine;
}

// The number of the pair that turns `rotations` times within a context.
static double pair_of(const sinkproof_config *config, double rotations, double context,
                      double theta) {
    return (double)config->head_dim * log(context / (rotations * TWO_PI)) / (2 * log(theta));
}

// The ends that formulas with a slip give.
static bool try_slips(composing *c, const frequency_fit *fit, double low, double high) {
    const sinkproof_rotation *r = &fit->config->rotation;
    double context = (double)r->original_context, log2e = 1 / log(2), log10e = 1 / log(10);
    const struct {
        double low, high;
        const char *id, *text;
    } ends[] = {
        {2 * low, 2 * high, "-twice",
         "the 2 in the denominator of the correction dimension is missing"},
        {low / 2, high / 2, "-half",
         "the ends of the ramp are half as high: pairs are counted as coordinates"},
        {high, low, "-ends-exchanged",
         "the ends of the ramp are exchanged (beta_fast and beta_slow)"},
        {pair_of(fit->config, r->beta_fast / TWO_PI, context, r->theta),
         pair_of(fit->config, r->beta_slow / TWO_PI, context, r->theta), "-without-2pi",
         "2 pi is missing in the correction dimension"},
        {low * log2e, high * log2e, "-log2",
         "one logarithm of the correction dimension has base 2"},
        {low * log10e, high * log10e, "-log10",
         "one logarithm of the correction dimension has base 10"},
        {pair_of(fit->config, r->beta_fast, context, 10000),
         pair_of(fit->config, r->beta_slow, context, 10000), "-base-10000",
         "the ramp is computed with the base 10000"},
        {pair_of(fit->config, r->beta_fast, context * r->factor, r->theta),
         pair_of(fit->config, r->beta_slow, context * r->factor, r->theta), "-extended-context",
         "the ramp is computed with the extended context"},
        {floor(low), floor(high), "-floors", "both ends of the ramp are rounded down"},
        {ceil(low), ceil(high), "-ceilings", "both ends of the ramp are rounded up"},
        {nearbyint(low), nearbyint(high), "-rounded", "both ends of the ramp are rounded"},
        {ceil(low), floor(high), "-narrowed", "the ends of the ramp are rounded inward"},
        {floor(low), high, "-low-floor", "the lower end of the ramp is rounded down"},
        {low, ceil(high), "-high-ceiling", "the upper end of the ramp is rounded up"},
        {0, high, "-from-0", "the ramp begins at pair 0"},
        {low, (double)fit->half - 1, "-to-last", "the ramp ends at the last pair"},
        {0, (double)fit->half - 1, "-over-all", "the ramp runs over all pairs"},
        {low, low, "-step-at-low", "there is no ramp but a step at its lower end"},
        {high, high, "-step-at-high", "there is no ramp but a step at its upper end"},
        {(low + high) / 2, (low + high) / 2, "-step", "there is no ramp but a step in its middle"}};
    bool fine = true;
    for (int how = MULTIPLIED; how < SCALINGS && fine; how++)
        fine = try_ramp(c, fit, low, high, (scaling)how, "", "");
    for (size_t i = 0; i < sizeof ends / sizeof ends[0] && fine && c->found == NULL; i++)
        fine = try_ramp_always(c, fit, ends[i].low, ends[i].high, ends[i].id, ends[i].text);
    return fine;
}

// The ends that the pairs on the ramp tell, by least squares.
static bool try_ends(composing *c, const frequency_fit *fit) {
    const sinkproof_rotation *r = &fit->config->rotation;
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    if (r->kind != SINKPROOF_YARN || c->found != NULL) return true;
    for (size_t p = 0; p < fit->half; p++) {
        double share = (1 - fit->f[p] / fit->plain[p]) / (1 - 1 / r->factor), at = (double)p;
        if (!(share > 0.01 && share < 0.99)) continue;
        n++, x += at, y += share, xx += at * at, xy += at * share;
    }
    double slope = (n * xy - x * y) / (n * xx - x * x), low = (x - y / slope) / n;
    if (!(n >= 2) || !(slope > 0.01) || !(fabs(low) < 1e3)) return true;
    double high = low + 1 / slope;
    // whole numbers of rotations, where the ends are near those
    double fast = (double)r->original_context / TWO_PI /
                  pow(r->theta, 2 * low / (double)fit->config->head_dim);
    double slow = (double)r->original_context / TWO_PI /
                  pow(r->theta, 2 * high / (double)fit->config->head_dim);
    bool whole = fast > 0.5 && slow > 0.2 && fabs(fast - nearbyint(fast)) < 0.02 * fast &&
                 fabs(slow - nearbyint(4 * slow) / 4) < 0.02 * slow;
    char text[160];
    if (whole) {
        fast = nearbyint(fast), slow = nearbyint(4 * slow) / 4;
        low = pair_of(fit->config, fast, (double)r->original_context, r->theta);
        high = pair_of(fit->config, slow, (double)r->original_context, r->theta);
        snprintf(text, sizeof text, "beta_fast is %g and beta_slow is %g, not %g and %g", fast,
                 slow, r->beta_fast, r->beta_slow);
        if (!try_ramp_always(c, fit, low, high, "-betas", text)) return false;
    }
    return try_ramp_always(c, fit, low, high, "-other-ends", "the ramp of YaRN has other ends");
}

// Llama 3's share of a frequency as trained grows with the number of turns in a context.
static bool try_llama3(composing *c, const frequency_fit *fit) {
    static const double contexts[] = {0, 8192, 4096};
    const sinkproof_rotation *r = &fit->config->rotation;
    bool fine = true;
    for (size_t i = 0; i < 3 && fine && c->found == NULL; i++) {
        double context = i == 0 ? (double)r->original_context : contexts[i];
        char text[160];
        for (size_t p = 0; p < fit->half; p++) {
            double keep = (context * fit->plain[p] / TWO_PI - 1) / 3;
            fit->rule[p] = scaled(DIVIDED, fit->plain[p], r->factor, 1 - fmin(fmax(keep, 0), 1));
        }
        snprintf(
            text, sizeof text,
            "the frequencies are scaled as Llama 3 does, with the factor %g and the context %g",
            r->factor, context);
        fine = frequencies_try(c, fit, "llama3", text);
    }
    return fine;
}

static bool try_ramps(composing *c, const frequency_fit *fit) {
    double low, high;
    if (fit->config->rotation.kind != SINKPROOF_YARN || c->found != NULL) return true;
    sinkproof_yarn_range(fit->config, false, &low, &high);
    return try_slips(c, fit, low, high) && try_llama3(c, fit);
}

bool compose_ramps(composing *c) {
    return frequencies_fit_and_try(c, try_ramps);
}

bool compose_ramp_ends(composing *c) {
    return frequencies_fit_and_try(c, try_ends);
}
