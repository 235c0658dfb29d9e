// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Words for another softmax, for factors that follow a rule, and for masks that leak.
#include "audit/diagnose/attention_words.h"

bool say_softmax(cause_words *w) {
    const sinkproof_attending *m = w->how;
    if (say_sums(w)) return true;
    if (m->scores_kept > 0) {
        name_cause(w, "scores-kept=%zu", m->scores_kept);
        say_cause(w,
                  "of a query's scores only the largest %zu remain: the other keys are left out "
                  "before the softmax",
                  m->scores_kept);
    } else if (m->score_within > 0) {
        name_cause(w, "scores-within=%g", m->score_within);
        say_cause(w, "scores more than %g below the largest are left out before the softmax",
                  m->score_within);
    } else
        return false;
    return true;
}

// "the scores are multiplied by 1/sqrt(layer + 1)".
bool say_rules(cause_words *w) {
    static const char *const ids[] = {"",         "log-from",   "log",        "root-row",
                                      "over-row", "over-layer", "root-layer", "times-layer",
                                      "up-layer", "over-head",  "times-head", "slope-head"};
    const sinkproof_attending *m = w->how;
    sinkproof_rule rule = m->score_rule != SINKPROOF_RULE_NONE ? m->score_rule : m->output_rule;
    size_t n = m->rule_number;
    if (rule == SINKPROOF_RULE_NONE) return false;
    bool scores = m->score_rule != SINKPROOF_RULE_NONE;
    name_cause(w, "%s-%s=%zu", scores ? "score" : "values", ids[rule], n);
    say_cause(w, "%s multiplied by ",
              scores ? "the scores are" : "the values, or what is summed of them, are");
    switch (rule) {
    case SINKPROOF_RULE_LOG_FROM:
        say_cause(w, "ln(position + 1) / ln(%zu) from position %zu on: the logarithm of the length",
                  n, n);
        break;
    case SINKPROOF_RULE_LOG:
        say_cause(w, "ln(position + 1) / ln(%zu): the logarithm of the length", n);
        break;
    case SINKPROOF_RULE_ROOT_ROW:
        say_cause(w, "1/sqrt(position + 1)");
        break;
    case SINKPROOF_RULE_OVER_ROW:
        say_cause(w, "1/(position + 1)");
        break;
    case SINKPROOF_RULE_OVER_LAYER:
        say_cause(w, "1/(layer + %zu): the inverse of the layer's number", n);
        break;
    case SINKPROOF_RULE_ROOT_LAYER:
        say_cause(w, "1/sqrt(layer + %zu): by the layer's number", n);
        break;
    case SINKPROOF_RULE_TIMES_LAYER:
        say_cause(w, "(layer + %zu): the layer's number", n);
        break;
    case SINKPROOF_RULE_UP_LAYER:
        say_cause(w, "sqrt(layer + %zu): by the layer's number", n);
        break;
    case SINKPROOF_RULE_OVER_HEAD:
        say_cause(w, "1/(head + %zu): by the head's number", n);
        break;
    case SINKPROOF_RULE_TIMES_HEAD:
        say_cause(w, "(head + %zu): by the head's number", n);
        break;
    case SINKPROOF_RULE_SLOPE_HEAD:
        say_cause(w, "2^(-8 (head + 1) / heads), a slope of each head");
        break;
    case SINKPROOF_RULE_NONE:
        break;
    }
    return true;
}

bool say_leaks(cause_words *w) {
    const sinkproof_attending *m = w->how;
    static const char *const ids[] = {"", "later", "earlier", "all"};
    static const char *const which[] = {"", "keys after the query", "keys before the window",
                                        "all masked keys"};
    if (m->leak == SINKPROOF_LEAK_NONE) return false;
    bool added = m->leak == SINKPROOF_LEAK_ADDED;
    name_cause(w, "mask-%s-%s=%.7g", added ? "adds" : "is", ids[m->leaks], m->leak_number);
    if (added)
        say_cause(w,
                  "the mask adds %s to the scores of %s, not minus infinity: they are still seen",
                  number_words(w, m->leak_number).text, which[m->leaks]);
    else
        say_cause(w,
                  "the mask sets the scores of %s to %s, not to minus infinity: they are still "
                  "seen",
                  which[m->leaks], number_words(w, m->leak_number).text);
    return true;
}
