// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Constants of an operation, which are fitted step by step: alpha and the limit of the activation,
// what is added to up, the base and the factor of the rotation, its concentration.
#include "audit/diagnose/composed_fit.h"

#include "ref/stages.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct parameter {
    const char *id, *words;
    unsigned points;
    double (*own)(const sinkproof_config *config);
    mistake_suppose *operate; // numbers: the value
} parameter;

static double value_of(const known_mistake *k) {
    return ((const composed_mistake *)(const void *)k)->numbers[0];
}

static double own_alpha(const sinkproof_config *c) {
    return c->swiglu.alpha;
}
static double own_limit(const sinkproof_config *c) {
    return isfinite(c->swiglu.limit) ? c->swiglu.limit : 0;
}
static double own_plus(const sinkproof_config *c) {
    (void)c;
    return 1;
}
static double own_theta(const sinkproof_config *c) {
    return c->rotation.kind == SINKPROOF_NO_ROTATION ? 0 : c->rotation.theta;
}
static double own_factor(const sinkproof_config *c) {
    return c->rotation.factor > 1 ? c->rotation.factor : 0;
}
static double own_beta_fast(const sinkproof_config *c) {
    return c->rotation.factor > 1 ? c->rotation.beta_fast : 0;
}
static double own_beta_slow(const sinkproof_config *c) {
    return c->rotation.factor > 1 ? c->rotation.beta_slow : 0;
}
static double own_context(const sinkproof_config *c) {
    return c->rotation.factor > 1 ? (double)c->rotation.original_context : 0;
}
static double own_concentration(const sinkproof_config *c) {
    return c->rotation.kind == SINKPROOF_NO_ROTATION ? 0 : sinkproof_yarn_concentration(c);
}

static bool set_own_alpha(supposed_engine *s, const known_mistake *k) {
    s->config.swiglu.alpha = value_of(k);
    return true;
}
static bool set_own_limit(supposed_engine *s, const known_mistake *k) {
    s->config.swiglu.limit = value_of(k);
    return value_of(k) >= 0;
}
static bool set_own_plus(supposed_engine *s, const known_mistake *k) {
    s->meaning.up_plus = value_of(k);
    return true;
}
static bool set_own_theta(supposed_engine *s, const known_mistake *k) {
    s->config.rotation.theta = value_of(k);
    return value_of(k) > 1;
}
static bool set_own_factor(supposed_engine *s, const known_mistake *k) {
    s->config.rotation.factor = value_of(k);
    return value_of(k) >= 1;
}
static bool set_own_beta_fast(supposed_engine *s, const known_mistake *k) {
    s->config.rotation.beta_fast = value_of(k);
    return value_of(k) > s->config.rotation.beta_slow;
}
static bool set_own_beta_slow(supposed_engine *s, const known_mistake *k) {
    s->config.rotation.beta_slow = value_of(k);
    return value_of(k) > 0 && value_of(k) < s->config.rotation.beta_fast;
}
static bool set_own_context(supposed_engine *s, const known_mistake *k) {
    s->config.rotation.original_context = (size_t)value_of(k);
    return value_of(k) >= 1 && value_of(k) < 1e9;
}
static bool set_concentration(supposed_engine *s, const known_mistake *k) {
    double times = value_of(k) / sinkproof_yarn_concentration(&s->config);
    s->meaning.query.concentration = s->meaning.key.concentration = times;
    return value_of(k) > 0;
}

#define AT_M8 (1u << TRACE_M8)
#define AT_A4 (1u << TRACE_A4_Q | 1u << TRACE_A4_K)
static const parameter parameters[] = {
    {"alpha", "alpha", AT_M8, own_alpha, set_own_alpha},
    {"limit", "the limit of the clamps", AT_M8, own_limit, set_own_limit},
    {"up-plus", "the number that is added to up", AT_M8, own_plus, set_own_plus},
    {"concentration", "the concentration of the rotation", AT_A4, own_concentration,
     set_concentration},
    {"theta", "the base of RoPE", AT_A4, own_theta, set_own_theta},
    {"yarn-factor", "the factor of YaRN", AT_A4, own_factor, set_own_factor},
    {"beta-fast", "YaRN's beta_fast", AT_A4, own_beta_fast, set_own_beta_fast},
    {"beta-slow", "YaRN's beta_slow", AT_A4, own_beta_slow, set_own_beta_slow},
    {"original-context", "YaRN's original context", AT_A4, own_context, set_own_context},
};

static composed_mistake *parameter_new(composing *c, const parameter *p, double value) {
    composed_mistake *m = composing_new(c);
    if (m == NULL) return NULL;
    m->operate = p->operate, m->numbers[0] = value, m->mistake.points = p->points & c->left;
    return m;
}

static double squared_distance(const composing *c, const sinkproof_region *region,
                               const double *mid) {
    double sum = 0;
    for (size_t at = 0; at < c->elements; at++) {
        double width = fmax(fmax(c->hi[at] - c->lo[at], fabs(c->v[at]) * c->step) / 2, c->least);
        double apart = (c->v[at] - mid[at]) / width;
        if (isfinite(apart) && composing_holds(c, region, at)) sum += apart * apart;
    }
    return sum;
}

// One step of Gauss and Newton from `value`. *moved: it leads somewhere.
static bool improve(composing *c, composed_mistake *probe, const sinkproof_region *region,
                    bool positive, double *value, fitted_range *t, bool *moved) {
    // between the two engines that are compared: more than roundings hide
    const double apart = fmax(1e-3, 16 * c->step);
    bool fine = true;
    *moved = false;
    probe->numbers[0] = *value;
    double *here = composing_see(c, &probe->mistake, &fine);
    probe->numbers[0] = *value * (1 + apart);
    double *there = here != NULL ? composing_see(c, &probe->mistake, &fine) : NULL;
    if (fine && there != NULL && fit_number(c, region, here, there, t)) {
        double by = t->best * apart;
        if (positive) by = fmax(fmin(by, 1), -0.5);
        double next = *value * (1 + by);
        double scale = *value * apart;
        t->lo = *value + t->lo * scale, t->hi = *value + t->hi * scale, t->best = next;
        *moved = isfinite(next);
        if (*moved) *value = next;
    }
    free(here);
    free(there);
    return fine;
}

static bool try_value(composing *c, const parameter *p, const sinkproof_region *region,
                      const chosen_number *by) {
    composed_mistake *m = parameter_new(c, p, by->value);
    if (m == NULL) return false;
    m->region = *region;
    composed_name(m, "%s-%s", p->id, by->text);
    composed_say(m, "%s is %s", p->words, by->text);
    composed_say_region(c, m);
    return composing_try(c, m);
}

typedef struct parameter_probe {
    const parameter *p;
    composed_mistake *m;
} parameter_probe;

static size_t count_for_value(composing *c, void *of, double value, bool *fine) {
    parameter_probe *probe = of;
    probe->m->numbers[0] = value;
    return composing_count(c, &probe->m->mistake, fine);
}

static bool try_values(composing *c, const parameter *p, const sinkproof_region *region,
                       const fitted_range *t) {
    chosen_number by[FIT_CHOICES];
    size_t n = fit_choose(c, t, by);
    bool fine = true;
    for (size_t i = 0; i < n && fine && c->found == NULL; i++)
        fine = try_value(c, p, region, &by[i]);
    return fine;
}

static bool fit_and_try(composing *c, const parameter *p, const sinkproof_region *region) {
    double value = p->own(c->s->trials.config), before = squared_distance(c, region, c->mid);
    composed_mistake *probe = parameter_new(c, p, value);
    fitted_range t = {.best = value};
    bool fine = probe != NULL, moved = true;
    for (int step = 0; step < 8 && fine && moved; step++) {
        double was = value;
        fine = improve(c, probe, region, p->own != own_plus, &value, &t, &moved);
        if (moved && fabs(value - was) < 1e-7 * fabs(was)) break;
    }
    if (!fine || !moved || value == p->own(c->s->trials.config)) return fine;
    probe->numbers[0] = value;
    double *mid = composing_see(c, &probe->mistake, &fine);
    bool better = mid != NULL && squared_distance(c, region, mid) < 0.1 * before;
    free(mid);
    if (!fine || !better) return fine;
    parameter_probe of = {p, probe}; // rounded numbers mislead least squares
    probe->region = *region;
    return fit_by_count(c, count_for_value, &of, &t) && try_values(c, p, region, &t);
}

bool compose_parameters(composing *c) {
    bool fine = true;
    for (size_t i = 0; i < sizeof parameters / sizeof parameters[0] && fine; i++) {
        const parameter *p = &parameters[i];
        if ((p->points & point_bit(c->point)) == 0 || p->own(c->s->trials.config) == 0) continue;
        size_t regions = (p->points & AT_A4) != 0 ? 1 : c->n_ranges; // a table is of all heads
        for (size_t r = 0; r < regions && fine && c->found == NULL; r++)
            fine = fit_and_try(c, p, &c->regions[r]);
    }
    return fine;
}

// ---- an expert in the mixture

// numbers: the first expert, the end, and what multiplies what they give.
static bool mix_otherwise(supposed_engine *s, const known_mistake *k) {
    const composed_mistake *m = (const composed_mistake *)(const void *)k;
    s->meaning.weighed_first = (size_t)m->numbers[0];
    s->meaning.weighed_end = (size_t)m->numbers[1];
    s->meaning.weighed_times = m->numbers[2];
    return true;
}

static composed_mistake *mixed_new(composing *c, size_t first, size_t end, double times) {
    composed_mistake *m = composing_new(c);
    if (m == NULL) return NULL;
    m->operate = mix_otherwise;
    m->numbers[0] = (double)first, m->numbers[1] = (double)end, m->numbers[2] = times;
    return m;
}

static bool try_experts_in(composing *c, size_t first, size_t end, const double *base,
                           composed_mistake *without, const sinkproof_region *region) {
    fitted_range t;
    chosen_number by[FIT_CHOICES];
    bool fine = true, fits = fit_number(c, region, base, c->mid, &t) && t.good;
    without->region = *region;
    if (fits) {
        without->numbers[2] = t.best;
        fine = fit_refine(c, &without->mistake, region, base, c->mid, &t);
    }
    size_t n = fits && fine ? fit_choose(c, &t, by) : 0;
    for (size_t i = 0; i < n && fine && c->found == NULL; i++) {
        composed_mistake *m = by[i].value != 1 ? mixed_new(c, first, end, by[i].value) : NULL;
        if (m == NULL) return by[i].value == 1;
        composed_name(m, "expert-%zu", first);
        if (end > first + 1) composed_name(m, "-%zu", end - 1);
        composed_name(m, "-in-the-sum-times-%s", by[i].text);
        if (end > first + 1)
            composed_say(m, "the output of experts %zu-%zu", first, end - 1);
        else
            composed_say(m, "the output of expert %zu", first);
        if (by[i].value == 0)
            composed_say(m, " is left out of the sum over the experts");
        else if (by[i].value == 2)
            composed_say(m, " is added twice to the sum over the experts");
        else
            composed_say(m, " is multiplied by %s in the sum over the experts", by[i].text);
        m->region = *region;
        composed_say_region(c, m);
        fine = composing_try(c, m);
    }
    return fine;
}

static bool try_experts(composing *c, size_t first, size_t end) {
    composed_mistake *without = mixed_new(c, first, end, 0);
    bool fine = without != NULL;
    double *base = fine ? composing_see(c, &without->mistake, &fine) : NULL;
    for (size_t r = 0; r < c->n_ranges && base != NULL && fine && c->found == NULL; r++)
        fine = try_experts_in(c, first, end, base, without, &c->regions[r]);
    free(base);
    return fine;
}

// One expert, or those of one of several ranks.
bool compose_mixtures(composing *c) {
    size_t experts = c->s->trials.config->n_experts;
    bool fine = true;
    if (c->point != TRACE_M11 || experts > 128) return true;
    for (size_t e = 0; e < experts && fine && c->found == NULL; e++)
        fine = try_experts(c, e, e + 1);
    for (size_t end = 2; end < experts && fine && c->found == NULL; end++)
        fine = try_experts(c, 0, end);
    for (size_t first = 1; first + 1 < experts && fine && c->found == NULL; first++)
        fine = try_experts(c, first, experts);
    return fine;
}

// ---- shares by another function

// numbers: the function.
static bool share_otherwise(supposed_engine *s, const known_mistake *k) {
    s->meaning.share = (sinkproof_expert_share)value_of(k);
    return !s->config.dense;
}

static bool try_share(composing *c, sinkproof_expert_share share, const char *id, const char *text,
                      const sinkproof_region *region) {
    composed_mistake *m = composing_new(c);
    if (m == NULL) return false;
    m->operate = share_otherwise, m->numbers[0] = share, m->region = *region;
    composed_name(m, "%s", id);
    composed_say(m, "%s", text);
    composed_say_region(c, m);
    return composing_try(c, m);
}

bool compose_shares(composing *c) {
    static const struct {
        sinkproof_expert_share share;
        const char *id, *text;
    } known[] = {{SINKPROOF_SHARE_PLUS_ONE, "shares-plus-one",
                  "a 1 is added to the denominator of the experts' shares"},
                 {SINKPROOF_SHARE_TWICE, "shares-twice",
                  "the softmax of the experts' shares is taken twice"},
                 {SINKPROOF_SHARE_OF_BF16, "shares-of-bf16",
                  "the experts' shares are made from logits that are rounded to bfloat16"},
                 {SINKPROOF_SHARE_OF_F16, "shares-of-f16",
                  "the experts' shares are made from logits that are rounded to binary16"}};
    bool fine = true;
    for (size_t r = 0; r < c->n_regions && c->point == TRACE_M4; r++)
        for (size_t i = 0; i < sizeof known / sizeof known[0] && fine && c->found == NULL; i++)
            fine = try_share(c, known[i].share, known[i].id, known[i].text, &c->regions[r]);
    return fine;
}
