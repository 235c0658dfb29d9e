// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Rules of factors of the scores by the query's position.
#ifndef SINKPROOF_COMPOSED_SCORE_RULES_H
#define SINKPROOF_COMPOSED_SCORE_RULES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct score_rule {
    size_t tried; // 0 before the first
    int kind;
    double number, scale;
    char id[48], text[160]; // the factor
} score_rule;

double score_rule_factor(const score_rule *rule, size_t i);
// The next rule whose factors are those of the table, [n], but for that of row 0; false: there is
// none.
bool score_rule_next(size_t n, double room, const double *table, score_rule *rule);

#endif
