// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/diagnose/composed_score_rules.h"

#include <math.h>
#include <stdio.h>

enum { LOG_OF_POSITION, LOG_OF_BLOCKS, ROOT_OF_POSITION, LOG_OF_COUNT, KINDS };

double score_rule_factor(const score_rule *rule, size_t i) {
    double at = (double)i;
    switch (rule->kind) {
    case LOG_OF_POSITION:
        return at > rule->number ? log(at) / log(rule->number) : 1;
    case LOG_OF_COUNT:
        return at + 1 > rule->number ? log(at + 1) / log(rule->number) : 1;
    case LOG_OF_BLOCKS:
        return 1 + rule->scale * log(floor((at + 1) / rule->number) + 1);
    default:
        return rule->scale / sqrt(at + 1);
    }
}

static void say(score_rule *r) {
    size_t number = (size_t)r->number;
    if (r->kind == LOG_OF_POSITION)
        snprintf(r->text, sizeof r->text,
                 "ln(position) / ln(%zu) from position %zu on: the logarithm of the length", number,
                 number);
    else if (r->kind == LOG_OF_COUNT)
        snprintf(r->text, sizeof r->text,
                 "ln(position + 1) / ln(%zu) from position %zu on: the logarithm of the length",
                 number, number);
    else if (r->kind == LOG_OF_BLOCKS)
        snprintf(r->text, sizeof r->text,
                 "1 + %.4g ln(floor((position + 1) / %zu) + 1): a temperature of the query's "
                 "position",
                 r->scale, number);
    else
        snprintf(r->text, sizeof r->text, "%.4g / sqrt(position + 1): by the number of keys",
                 r->scale);
    snprintf(r->id, sizeof r->id, "by-position-%d-%zu", r->kind, number);
}

bool score_rule_next(size_t n, double room, const double *table, score_rule *rule) {
    size_t last = n - 1, numbers = n / 3;
    for (; rule->tried < KINDS * numbers; rule->tried++) {
        rule->kind = (int)(rule->tried / numbers);
        rule->number = (double)(rule->tried % numbers + 2), rule->scale = 1;
        if (rule->kind == LOG_OF_BLOCKS)
            rule->scale = (table[last] - 1) / log(floor(((double)last + 1) / rule->number) + 1);
        if (rule->kind == ROOT_OF_POSITION) rule->scale = table[last] * sqrt((double)last + 1);
        rule->scale = nearbyint(rule->scale * 1e4) / 1e4;
        if (rule->scale == 0 || (rule->kind == ROOT_OF_POSITION && rule->number > 2)) continue;
        bool all = true;
        for (size_t i = 1; i < n && all; i++) // the first score may be any multiple of 0
            all = fabs(table[i] - score_rule_factor(rule, i)) <= room;
        if (!all) continue;
        rule->tried++;
        say(rule);
        return true;
    }
    return false;
}
