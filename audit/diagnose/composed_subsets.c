// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A sum whose parts (of heads, of experts) have factors of their own: least squares give a factor
// for each part, and those that are not 1 are a place, whatever their numbers.
#include "audit/diagnose/composed_values.h"
#include "audit/diagnose/normal_equations.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_UNITS = 128, EACH_UNIT = 12 };

typedef struct parted_sum {
    composing *c;
    operation o;
    size_t input, units;
    sinkproof_dimension along;
    double *y;    // an input with one part alone
    double *rows; // [samples][units + 1]: what the parts give, and the value less what none gives
    size_t n, at[MOST_UNITS * EACH_UNIT];
} parted_sum;

static sinkproof_moving part_alone(const parted_sum *s, size_t unit) {
    sinkproof_moving how = {
        .on = true, .point = s->o.inputs[s->input].point, .along = ALONG_ROWS, .factor = 0};
    how.region.along[s->along] = (sinkproof_indices){.first = unit, .end = unit + 1};
    return how;
}

// A sample of all elements, spread over the point.
static void draw(parted_sum *s) {
    size_t all = s->c->elements, want = s->units * EACH_UNIT;
    size_t step = all > want ? all / want : 1;
    if (step > 1 && step % 2 == 0) step++;
    for (size_t at = 0; at < all && s->n < want; at += step) s->at[s->n++] = at;
}

// The values of the sample with each part left out, and with all: their differences.
static bool see_parts(parted_sum *s, bool *sees) {
    const composing *c = s->c;
    size_t all = s->o.width[s->input] * c->n, width = s->units + 1;
    const operation_change none = {.edit = NULL};
    const sinkproof_tensor_numbers of = {
        .config = c->s->trials.config, .n = c->n, .chosen_nk = c->chosen_nk, .x = s->o.x[s->input]};
    double *whole = malloc((s->n + 1) * sizeof *whole);
    if (whole == NULL) return fail_for_memory(c->s);
    for (size_t k = 0; k < s->n; k++) {
        whole[k] = operation_value(&s->o, &none, s->at[k]);
        s->rows[k * width + s->units] = c->v[s->at[k]] - whole[k];
    }
    bool fine = true;
    for (size_t u = 0; u < s->units && fine; u++) {
        const sinkproof_moving how = part_alone(s, u);
        const operation_change without = {.input = s->input, .x = s->y};
        fine = sinkproof_moved_numbers(&how, &of, 0, all, s->y) || fail_for_memory(c->s);
        for (size_t k = 0; k < s->n && fine; k++)
            s->rows[k * width + u] = whole[k] - operation_value(&s->o, &without, s->at[k]);
    }
    *sees = fine && s->n > 0 && isfinite(whole[0]);
    free(whole);
    return fine;
}

// factor_u - 1 of each part, by least squares. Returns false if the elements do not tell.
static bool solve(const parted_sum *s, double *by_u) {
    size_t m = s->units, width = m + 1;
    double *a = calloc(m * m, sizeof *a);
    if (a == NULL) return false;
    memset(by_u, 0, m * sizeof *by_u);
    for (size_t k = 0; k < s->n; k++)
        for (size_t i = 0; i < m; i++) {
            const double *row = &s->rows[k * width];
            for (size_t j = i; j < m; j++) a[i * m + j] += row[i] * row[j];
            by_u[i] += row[i] * row[m];
        }
    size_t dependent = solve_normal(m, a, by_u, NORMAL_DEPENDENT);
    free(a);
    return dependent == 0;
}

// Whether a part has another factor than 1, and whether all these have one factor.
static bool one_factor(const parted_sum *s, const double *by_u, uint8_t *has, double *factor) {
    const double near = 0.02 + 4 * s->c->step;
    size_t n = 0;
    double sum = 0;
    bool one = true;
    for (size_t u = 0; u < s->units; u++) {
        has[u] = fabs(by_u[u]) > 2.5 * near;
        if (has[u]) sum += by_u[u], n++;
    }
    for (size_t u = 0; u < s->units; u++)
        one = one && (!has[u] ||
                      fabs(by_u[u] - sum / (double)n) <= 2 * near * (1 + fabs(sum / (double)n)));
    *factor = n > 0 ? 1 + sum / (double)n : 1;
    return one && n > 1 && n < s->units;
}

static bool try_parts(parted_sum *s, const uint8_t *has, const chosen_number *by) {
    composing *c = s->c;
    const sinkproof_input *input = &s->o.inputs[s->input];
    composed_mistake *m = composing_new(c);
    if (m == NULL) return false;
    m->input = (mistake_input){
        .on = true,
        .point = c->point,
        .input = input->point,
        .from = input->point,
        .moving = {.on = true, .point = input->point, .along = ALONG_ROWS, .factor = by->value}};
    size_t first = s->units, end = 0;
    for (size_t u = 0; u < s->units; u++)
        if (has[u]) first = u < first ? u : first, end = u + 1;
    bool range = memchr(has + first, 0, end - first) == NULL;
    const uint8_t *kept = range ? NULL : composing_keep_marks(c, s->units, has);
    if (!range && kept == NULL) return fail_for_memory(c->s);
    m->input.moving.region.along[s->along] =
        (sinkproof_indices){.first = first, .end = end, .some_i = kept};
    const char *word = s->along == ALONG_HEADS ? "heads" : "experts";
    composed_name(m, "%s-of-%s-times-%s", sinkproof_trace_point_name(c->point), word, by->text);
    composed_say_part(c, m, input->point, &m->input.moving.region, "the terms of ");
    if (by->value == 0)
        composed_say(m, " are left out of the sum of %s", sinkproof_trace_point_name(c->point));
    else if (by->value == 2)
        composed_say(m, " are added twice to the sum of %s", sinkproof_trace_point_name(c->point));
    else
        composed_say(m, " are multiplied by %s in the sum of %s", by->text,
                     sinkproof_trace_point_name(c->point));
    return composing_try(c, m);
}

static bool solve_parts(parted_sum *s) {
    double by_u[MOST_UNITS], factor;
    uint8_t has[MOST_UNITS];
    chosen_number by[FIT_CHOICES];
    if (!solve(s, by_u) || !one_factor(s, by_u, has, &factor)) return true;
    double apart = 0.01 + s->c->step * fabs(factor);
    const fitted_range t = {.lo = factor - apart, .hi = factor + apart, .best = factor};
    size_t n = fit_choose(s->c, &t, by);
    bool fine = true;
    for (size_t i = 0; i < n && fine && s->c->found == NULL; i++)
        fine = by[i].value == 1 || try_parts(s, has, &by[i]);
    return fine;
}

bool compose_subsets(composing *c) {
    const sinkproof_config *config = c->s->trials.config;
    parted_sum *s = calloc(1, sizeof *s);
    bool heads = c->point == TRACE_A12, fine = s != NULL || fail_for_memory(c->s), sees = false;
    if (fine && (heads || (c->point == TRACE_M11 && c->chosen_nk != NULL))) {
        s->c = c, s->input = heads ? 0 : 1, s->along = heads ? ALONG_HEADS : ALONG_EXPERTS;
        s->units = heads ? config->n_heads : config->n_experts;
        fine = operation_read(c, &s->o);
        if (fine && s->o.whole && s->units > 1 && s->units <= MOST_UNITS) {
            draw(s);
            s->y = malloc((s->o.width[s->input] * c->n + 1) * sizeof *s->y);
            s->rows = malloc((s->n * (s->units + 1) + 1) * sizeof *s->rows);
            fine = (s->y != NULL && s->rows != NULL) || fail_for_memory(c->s);
            fine = fine && see_parts(s, &sees) && (!sees || solve_parts(s));
        }
        free(s->y);
        free(s->rows);
        operation_free(&s->o);
    }
    free(s);
    return fine;
}
