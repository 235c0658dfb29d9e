// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One rule for a factor that is another in each layer.
#include "audit/diagnose/composed.h"

#include <math.h>
#include <string.h>

// The factor of a finding that one composed mistake explains; NULL: it has none.
static composed_mistake *factor_of(const diagnosed_finding *f) {
    if (f->n_alike != 1 || f->alike[0].n != 1) return NULL;
    const known_mistake *k = f->alike[0].mistakes[0];
    if (k->suppose != suppose_composed) return NULL;
    composed_mistake *m = (composed_mistake *)(uintptr_t)k; // its first member
    return m->by != NULL ? m : NULL;
}

// What is said of both, but for the number.
static bool same_stem(const composed_mistake *a, const composed_mistake *b) {
    const char *end = strstr(a->id, "-times-");
    return end != NULL && strncmp(a->id, b->id, (size_t)(end - a->id) + 7) == 0;
}

typedef struct layer_rule {
    double (*of)(double l, double layers);
    const char *words;
} layer_rule;

static double inverse(double l, double layers) {
    return layers > 0 ? 1 / (l + 1) : 0;
}
static double number(double l, double layers) {
    return layers > 0 ? l + 1 : 0;
}
static double inverse_root(double l, double layers) {
    return layers > 0 ? 1 / sqrt(l + 1) : 0;
}
static double root(double l, double layers) {
    return layers > 0 ? sqrt(l + 1) : 0;
}
static double two_inverse_root(double l, double layers) {
    return layers > 0 ? 1 / sqrt(2 * (l + 1)) : 0;
}
static double halved(double l, double layers) {
    return layers > 0 ? exp2(-l) : 0;
}
static double halved_more(double l, double layers) {
    return layers > 0 ? exp2(-l - 1) : 0;
}
static double doubled(double l, double layers) {
    return layers > 0 ? exp2(l) : 0;
}
static double share(double l, double layers) {
    return (l + 1) / layers;
}
static double share_left(double l, double layers) {
    return 1 - l / layers;
}
static double own_number(double l, double layers) {
    return layers > 0 ? l : 0;
}
static double inverse_next(double l, double layers) {
    return layers > 0 ? 1 / (l + 2) : 0;
}

// Whether the mistake explains the finding in each of its layers with the rule's factor there.
static bool finding_follows(search *s, const diagnosed_finding *f, const layer_rule *rule,
                            bool *follows) {
    composed_mistake *m = factor_of(f);
    const double found = *m->by;
    bool fine = true;
    for (size_t l = 0; l < s->trials.config->n_layers && fine && *follows; l++) {
        mistake_trial t = {.what = f->alike[0], .rows = f->rows};
        bool possible = false;
        if (!f->layers[l]) continue;
        *m->by = rule->of((double)l, (double)s->trials.config->n_layers);
        fine = trial_try_whether(&s->trials, l, &t, &possible);
        *follows = fine && possible && trial_explains(&t, f->points);
    }
    *m->by = found;
    return fine;
}

static bool is_like(const diagnosed_finding *f, const diagnosed_finding *first) {
    const composed_mistake *m = factor_of(f);
    return m != NULL && f->points == first->points && same_stem(factor_of(first), m);
}

// Whether the rule is 1 where the point is inside; elsewhere one of the findings has the layer.
static bool rule_is_possible(const search *s, const layer_rule *rule,
                             const diagnosed_finding *first) {
    size_t layers = s->trials.config->n_layers;
    for (size_t i = 0; i < s->trials.j->n_reports; i++) {
        const sinkproof_point_report *r = &s->trials.j->reports[i];
        bool possible = rule->of((double)r->layer, (double)layers) == 1;
        if (r->point != first->point || r->layer >= layers) continue;
        for (size_t k = 0; k < s->out->n && r->outside > 0; k++) {
            const diagnosed_finding *f = &s->out->findings[k];
            possible = f->layers[r->layer] && is_like(f, first);
            if (possible) break;
        }
        if (!possible) return false;
    }
    return true;
}

// Whether the rule explains each layer of the findings that are like the first. Returns false on
// error.
static bool rule_holds(search *s, const layer_rule *rule, const diagnosed_finding *first,
                       bool *holds) {
    *holds = rule_is_possible(s, rule, first);
    for (size_t i = 0; i < s->out->n && *holds; i++)
        if (is_like(&s->out->findings[i], first) &&
            !finding_follows(s, &s->out->findings[i], rule, holds))
            return false;
    return true;
}

static size_t factors_like(const sinkproof_diagnosis *d, const diagnosed_finding *first) {
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++) n += is_like(&d->findings[i], first);
    return n;
}

bool composed_say_layers(search *s) {
    const sinkproof_diagnosis *d = s->out;
    static const layer_rule rules[] = {{inverse, "1/(l + 1)"},
                                       {number, "l + 1"},
                                       {inverse_root, "1/sqrt(l + 1)"},
                                       {root, "sqrt(l + 1)"},
                                       {two_inverse_root, "1/sqrt(2 (l + 1))"},
                                       {halved, "2^-l"},
                                       {halved_more, "2^-(l + 1)"},
                                       {doubled, "2^l"},
                                       {share, "(l + 1)/L"},
                                       {share_left, "1 - l/L"},
                                       {own_number, "l"},
                                       {inverse_next, "1/(l + 2)"}};
    enum { FEWEST = 2 };
    for (size_t i = 0; i < d->n; i++) {
        composed_mistake *m = factor_of(&d->findings[i]);
        size_t said = 0;
        if (m == NULL || factors_like(d, &d->findings[i]) < FEWEST) continue;
        for (size_t k = 0; k < sizeof rules / sizeof rules[0]; k++) {
            bool holds;
            if (!rule_holds(s, &rules[k], &d->findings[i], &holds)) return false;
            if (!holds) continue;
            composed_say(m, "%s%s",
                         said++ > 0
                             ? " or "
                             : "; over the layers l of L the factor depends on the layer: it "
                               "is ",
                         rules[k].words);
        }
    }
    return true;
}
