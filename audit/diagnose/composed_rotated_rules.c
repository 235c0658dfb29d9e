// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/diagnose/composed_rotated.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// ---- positions

typedef struct position_rule {
    long start, over, modulo, plus; // from row `start` on: position / over, mod modulo, plus
} position_rule;

static double ruled_position(const position_rule *r, double position) {
    long at = (long)position;
    if (at < r->start) return position;
    at /= r->over;
    if (r->modulo > 0) at %= r->modulo;
    return (double)(at + r->plus);
}

static double pair_misfit(const turns *t, size_t p, const position_rule *r) {
    double apart = 0, size = 0;
    for (size_t i = 0; i < t->n; i++) {
        const double *e = t->used + ENTRY * (i * t->half + p);
        double a = ruled_position(r, t->position_i[i]) * t->frequency_p[p];
        double off[2] = {e[COSINE] - t->by * cos(a), e[SINE] - t->by * sin(a)};
        apart += off[0] * off[0] + off[1] * off[1];
        size += e[COSINE] * e[COSINE] + e[SINE] * e[SINE];
    }
    return size > 0 ? apart / size : INFINITY;
}

static size_t say_position(const position_rule *r, char *text, size_t size) {
    char over[48] = "position";
    if (r->modulo == 1) return (size_t)snprintf(text, size, "%ld", r->plus);
    if (r->over > 1) snprintf(over, sizeof over, "position / %ld (cut)", r->over);
    int wrote = snprintf(text, size, "%s", over);
    if (r->modulo > 0) wrote += snprintf(text + wrote, size - (size_t)wrote, " mod %ld", r->modulo);
    if (r->plus != 0) wrote += snprintf(text + wrote, size - (size_t)wrote, " %+ld", r->plus);
    return (size_t)wrote;
}

// One rule for all pairs from a position on: groups of tokens share one, as in self-extension.
bool turns_in_groups(turns *t) {
    long n = (long)t->n, first = (long)t->position_i[0];
    position_rule best = {.over = 1};
    double least = 1e-2;
    if (t->n > 512) return true;
    for (long over = 2; over <= 16; over++)
        for (long start = first; start < first + n; start++)
            for (int join = 0; join < 2; join++) {
                // joined: the position of the first of them is its own
                position_rule r = {.start = start, .over = over, .plus = start - start / over};
                if (join == 0) r.plus = 0;
                double misfit = 0;
                for (size_t p = 0; p < t->half; p++) misfit = fmax(misfit, pair_misfit(t, p, &r));
                // of starts that read the same, that at a whole group
                bool same = misfit <= least * (1 + 1e-9) + 1e-15 && over == best.over &&
                            start % over == 0 && best.start % over != 0;
                if (misfit < least * (1 - 1e-9) || same) least = misfit, best = r;
            }
    if (best.over == 1) return true;
    for (size_t i = 0; i < t->n; i++)
        for (size_t p = 0; p < t->half; p++) {
            double *e = t->rule + ENTRY * (i * t->half + p);
            double a = ruled_position(&best, t->position_i[i]) * t->frequency_p[p];
            e[COSINE] = t->by * cos(a), e[SINE] = t->by * sin(a);
        }
    char id[64], text[240], how[96];
    say_position(&best, how, sizeof how);
    snprintf(id, sizeof id, "positions-from-%ld-over-%ld%+ld", best.start, best.over, best.plus);
    snprintf(text, sizeof text,
             "is rotated by other positions from position %ld on: %s; groups of %ld tokens share "
             "one (self-extension)",
             best.start, how, best.over);
    return turns_are_near(t) ? turns_try(t, id, text) : true;
}

// A rule of its own for each pair: sections of a rotation with several positions.
bool turns_in_sections(turns *t) {
    position_rule *of_p = calloc(t->half, sizeof *of_p);
    if (of_p == NULL) return fail_for_memory(t->c->s);
    char text[300] = "is rotated by other positions in sections of pairs: ";
    size_t used = 0, other = 0, n = t->n < 64 ? t->n : 64;
    while (text[used] != '\0') used++;
    for (size_t p = 0; p < t->half; p++) {
        double least = INFINITY;
        for (long over = 1; over <= (long)n / 2; over++)
            for (long modulo = 0; modulo <= (long)n / 2; modulo++) {
                position_rule r = {.over = over, .modulo = modulo};
                if (modulo == 1 && over > 1) continue;
                double misfit = pair_misfit(t, p, &r);
                if (misfit < 0.9 * least) least = misfit, of_p[p] = r;
                // of rules that fit as well that of the pair before
                bool as_before = p > 0 && over == of_p[p - 1].over && modulo == of_p[p - 1].modulo;
                if (as_before && misfit < 1.1 * least + 1e-9) of_p[p] = r;
            }
        other += of_p[p].over != 1 || of_p[p].modulo != 0;
    }
    for (size_t i = 0; i < t->n; i++)
        for (size_t p = 0; p < t->half; p++) {
            double *e = t->rule + ENTRY * (i * t->half + p);
            double a = ruled_position(&of_p[p], t->position_i[i]) * t->frequency_p[p];
            e[COSINE] = t->by * cos(a), e[SINE] = t->by * sin(a);
        }
    for (size_t p = 0, end; p < t->half && used + 64 < sizeof text; p = end) {
        for (end = p + 1;
             end < t->half && of_p[end].over == of_p[p].over && of_p[end].modulo == of_p[p].modulo;)
            end++;
        used += (size_t)snprintf(text + used, sizeof text - used, "%spairs %zu-%zu by ",
                                 p > 0 ? ", " : "", p, end - 1);
        used += say_position(&of_p[p], text + used, sizeof text - used);
    }
    free(of_p);
    return other > 0 && turns_are_near(t) ? turns_try(t, "positions-in-sections", text) : true;
}

// The whole position whose cosines and sines are the nearest to those of row i.
static double nearest_position(const turns *t, size_t i) {
    double least = INFINITY, best = 0;
    for (size_t at = 0; at <= 2 * t->n + 64; at++) {
        double apart = 0;
        for (size_t p = 0; p < t->half; p++) {
            const double *e = t->used + ENTRY * (i * t->half + p);
            double a = (double)at * t->frequency_p[p];
            apart += pow(e[COSINE] - t->by * cos(a), 2) + pow(e[SINE] - t->by * sin(a), 2);
        }
        if (apart < 0.9 * least) least = apart, best = (double)at;
    }
    return best;
}

// A whole position of each row, the same for all pairs, by no rule: runs of rows with one position,
// or with positions that are all off by one number.
bool turns_at_positions(turns *t) {
    char text[300] = "is rotated by other positions: ";
    size_t used = 0, runs = 0, off = 0;
    double *best_i = malloc((t->n + 1) * sizeof *best_i);
    if (best_i == NULL) return fail_for_memory(t->c->s);
    while (text[used] != '\0') used++;
    for (size_t i = 0; i < t->n; i++) {
        best_i[i] = nearest_position(t, i);
        off += best_i[i] != t->position_i[i];
        for (size_t p = 0; p < t->half; p++) {
            double *e = t->rule + ENTRY * (i * t->half + p), a = best_i[i] * t->frequency_p[p];
            e[COSINE] = t->by * cos(a), e[SINE] = t->by * sin(a);
        }
    }
    for (size_t i = 0, end; i < t->n; i = end) {
        size_t one = i + 1, shifted = i + 1;
        while (one < t->n && best_i[one] == best_i[i]) one++;
        while (shifted < t->n &&
               best_i[shifted] - t->position_i[shifted] == best_i[i] - t->position_i[i])
            shifted++;
        end = one > shifted ? one : shifted;
        if (best_i[i] == t->position_i[i] && shifted >= one) continue; // as defined
        if (used + 64 > sizeof text) {
            snprintf(text + used, sizeof text - used, ", ...");
            break;
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%g", runs++ > 0 ? ", " : "",
                                 best_i[i]);
        if (one < shifted)
            used += (size_t)snprintf(text + used, sizeof text - used, " to %g", best_i[end - 1]);
        used += (size_t)snprintf(text + used, sizeof text - used, " at position%s %g",
                                 end > i + 1 ? "s" : "", t->position_i[i]);
        if (end > i + 1)
            used +=
                (size_t)snprintf(text + used, sizeof text - used, "-%g", t->position_i[end - 1]);
    }
    free(best_i);
    return off > 0 && turns_are_near(t) ? turns_try(t, "positions-other", text) : true;
}

// ---- frequencies

// Another base in each stretch of rows, without YaRN: as it is made anew when a sequence grows.
bool turns_of_bases(turns *t) {
    enum { STEPS = 600 };
    double d = (double)t->d, last = 0;
    size_t stretches = 0, used = 0;
    char text[300];
    used = (size_t)snprintf(text, sizeof text,
                            "is rotated by plain frequencies whose base changes (dynamic NTK): ");
    for (size_t i = 0; i < t->n; i++) {
        double least = INFINITY, base = 0, lo = log(1e3), hi = log(1e9);
        for (int zoom = 0; zoom < 5; zoom++) {
            double at = base;
            for (int s = 0; s <= STEPS; s++) {
                double one = lo + (hi - lo) * s / STEPS, apart = 0;
                for (size_t p = 0; p < t->half; p++) {
                    const double *e = t->used + ENTRY * (i * t->half + p);
                    double a = t->position_i[i] * exp(-one * 2 * (double)p / d);
                    apart += pow(atan2(sin(a) * e[COSINE] - cos(a) * e[SINE],
                                       cos(a) * e[COSINE] + sin(a) * e[SINE]),
                                 2);
                }
                if (apart < least) least = apart, at = one;
            }
            base = at;
            double span = (hi - lo) / STEPS * 2;
            lo = base - span, hi = base + span;
        }
        if (t->position_i[i] == 0) base = last; // tells nothing
        bool begins = fabs(base - last) > 0.01 && t->position_i[i] != 0;
        if (begins) {
            if (stretches++ == 6) return true;
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%.4g from position %g on",
                                     stretches > 1 ? ", " : "", exp(base),
                                     stretches > 1 ? t->position_i[i] : t->position_i[0]);
            last = base;
        }
        for (size_t p = 0; p < t->half; p++) {
            double *e = t->rule + ENTRY * (i * t->half + p);
            double a = t->position_i[i] * exp(-base * 2 * (double)p / d),
                   size = turn_size(t->used + ENTRY * (i * t->half + p));
            size = fabs(size - 1) < fabs(size - t->by) ? 1 : t->by;
            e[COSINE] = size * cos(a), e[SINE] = size * sin(a);
        }
    }
    return stretches > 1 && turns_are_near(t) ? turns_try(t, "bases-in-stretches", text) : true;
}
