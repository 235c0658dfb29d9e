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
    return m->by != 0 ? m : NULL;
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

// Whether the rule gives the factors that were found, and 1 where the point is inside.
static bool rule_holds(const layer_rule *rule, const sinkproof_diagnosis *d,
                       const sinkproof_judgement *j, const diagnosed_finding *first) {
    const composed_mistake *m = factor_of(first);
    double layers = (double)j->n_layers;
    for (size_t i = 0; i < d->n; i++) {
        const composed_mistake *other = factor_of(&d->findings[i]);
        if (other == NULL || d->findings[i].points != first->points || !same_stem(m, other))
            continue;
        for (size_t l = 0; l < j->n_layers; l++)
            if (d->findings[i].layers[l] &&
                !(fabs(other->by - rule->of((double)l, layers)) <= 2e-3 * fabs(other->by)))
                return false;
    }
    for (size_t i = 0; i < j->n_reports; i++) {
        const sinkproof_point_report *r = &j->reports[i];
        if (r->point == first->point && r->layer < j->n_layers && r->outside == 0 &&
            fabs(rule->of((double)r->layer, layers) - 1) > 1e-6)
            return false;
    }
    return true;
}

static size_t factors_like(const sinkproof_diagnosis *d, const diagnosed_finding *first) {
    const composed_mistake *m = factor_of(first);
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++) {
        const composed_mistake *other = factor_of(&d->findings[i]);
        n += other != NULL && d->findings[i].points == first->points && same_stem(m, other);
    }
    return n;
}

void composed_say_layers(sinkproof_diagnosis *d, const sinkproof_judgement *j) {
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
        if (m == NULL || factors_like(d, &d->findings[i]) < FEWEST) continue;
        for (size_t k = 0; k < sizeof rules / sizeof rules[0]; k++) {
            if (!rule_holds(&rules[k], d, j, &d->findings[i])) continue;
            composed_say(m, "; over the layers l of L the factor depends on the layer: it is %s",
                         rules[k].words);
            break;
        }
    }
}
