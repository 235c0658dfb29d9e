// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What the log-sum-exp of an attention kernel is: with the sink, or of the keys alone. Where the
// kernel does not say, its calls are judged as both, and the kind that fits is kept: one for all
// calls of a stage.
#include "audit/plugin/drive.h"

#include <string.h>

static const char *const words[LSE_KINDS] = {"with-sink", "without-sink"};

const char *lse_word(size_t kind) {
    return words[kind];
}

lse_kinds lse_of_kind(bool has, size_t kind) {
    return (lse_kinds){.has = has, .as = {kind == LSE_WITH_SINK, kind == LSE_OF_KEYS}};
}

bool lse_parse(const char *word, lse_kinds *kinds, sinkproof_error *error) {
    *kinds = lse_of_kind(word != NULL, LSE_WITH_SINK);
    if (word == NULL || strcmp(word, words[LSE_WITH_SINK]) == 0) return true;
    kinds->as[LSE_OF_KEYS] = true;
    if (strcmp(word, "either") == 0) return true;
    kinds->as[LSE_WITH_SINK] = false;
    return strcmp(word, words[LSE_OF_KEYS]) == 0 ||
           sinkproof_fail(
               error, "A9.lse: expected with-sink, without-sink or either, found '%.40s'", word);
}

void stage_kinds_say(stage_kinds *k, lse_kinds lse) {
    k->lse = lse;
    k->tried = lse.as[LSE_WITH_SINK] && lse.as[LSE_OF_KEYS];
}

stage_kinds stage_kinds_begin(const stage_row *stage, lse_kinds lse) {
    const stage_result none = {.stage = stage};
    stage_kinds k = {.of = {none, none}};
    stage_kinds_say(&k, lse);
    return k;
}

void stage_kinds_add(stage_kinds *k, const stage_case *c, const case_outcome out[LSE_KINDS]) {
    k->with_lse += c->lse && out[k->lse.as[LSE_WITH_SINK] ? LSE_WITH_SINK : LSE_OF_KEYS].served;
    for (size_t i = 0; i < LSE_KINDS; i++) {
        if (!k->lse.as[i]) continue;
        stage_result_add(&k->of[i], c, &out[i]);
        k->outside[i] += out[i].lse_outside;
    }
}

void stage_kinds_narrow(stage_kinds *k) {
    bool fits[LSE_KINDS] = {k->outside[LSE_WITH_SINK] == 0, k->outside[LSE_OF_KEYS] == 0};
    if (k->tried && fits[LSE_WITH_SINK] != fits[LSE_OF_KEYS]) memcpy(k->lse.as, fits, sizeof fits);
}

void stage_kinds_settle(const stage_kinds *k, stage_result *result) {
    bool both = k->lse.as[LSE_WITH_SINK] && k->lse.as[LSE_OF_KEYS];
    bool keys = both ? k->outside[LSE_OF_KEYS] < k->outside[LSE_WITH_SINK] : k->lse.as[LSE_OF_KEYS];
    *result = k->of[keys ? LSE_OF_KEYS : LSE_WITH_SINK];
    result->lse = (lse_finding){k->with_lse,
                                k->tried,
                                keys ? LSE_OF_KEYS : LSE_WITH_SINK,
                                {k->outside[LSE_WITH_SINK], k->outside[LSE_OF_KEYS]}};
}
