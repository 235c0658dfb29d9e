// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The list of engines, and their common interface.
#include "audit/engine/runner.h"

#include "audit/engine/kinds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The list: the engine NAME is the row kind_NAME, in sessions.c or fast.c.
#define ENGINES(EACH) EACH(ref) EACH(lanes) EACH(fast)
#define ROW(name)     extern const engine_kind kind_##name;
#define NAME(name)    #name,
#define KIND(name)    &kind_##name,
ENGINES(ROW)
static const char *const names[] = {ENGINES(NAME) NULL};
static const engine_kind *const kinds[] = {ENGINES(KIND)};

struct sinkproof_runner {
    const engine_kind *kind;
    void *state;
};

const char *const *sinkproof_runner_names(void) {
    return names;
}

sinkproof_runner_list sinkproof_runner_list_names(bool tuned_only, const char *conjunction) {
    sinkproof_runner_list list = {""};
    const char *of[sizeof names / sizeof *names];
    size_t n = 0, used = 0;
    for (size_t i = 0; names[i] != NULL; i++)
        if (!tuned_only || kinds[i]->tuned) of[n++] = names[i];
    for (size_t i = 0; i < n && used < sizeof list.text; i++) {
        used += (size_t)snprintf(list.text + used, sizeof list.text - used, "%s", of[i]);
        if (i + 1 < n && used < sizeof list.text)
            used += (size_t)snprintf(list.text + used, sizeof list.text - used, "%s",
                                     i + 2 == n ? conjunction : ", ");
    }
    return list;
}

bool sinkproof_runner_is_known(const char *engine) {
    for (size_t i = 0; names[i] != NULL; i++)
        if (strcmp(names[i], engine) == 0) return true;
    return false;
}

// The row of a known name.
static const engine_kind *known_engine_kind(const char *engine) {
    size_t i = 0;
    while (strcmp(names[i], engine) != 0) i++;
    return kinds[i];
}

const char *sinkproof_runner_about(const char *engine) {
    return known_engine_kind(engine)->about;
}

const char *sinkproof_runner_policy(const char *engine) {
    return known_engine_kind(engine)->policy;
}

bool sinkproof_runner_serves(const char *engine, const sinkproof_policy *policy,
                             sinkproof_error *error) {
    return known_engine_kind(engine)->serves(policy, error);
}

// A2 stands for A2.q, A2.k and A2.v.
const char *sinkproof_runner_points(const char *engine, sinkproof_runner_list *list) {
    const engine_kind *kind = known_engine_kind(engine);
    const char *last = "";
    size_t used = 0, same = 0;
    if (kind->left == SINKPROOF_HELD_COUNT) return NULL;
    for (int p = 0; p < TRACE_POINTS && used < sizeof list->text; p++) {
        const char *name = sinkproof_trace_point_name((sinkproof_trace_point)p);
        size_t word = strcspn(name, ".");
        if (sinkproof_trace_point_held((sinkproof_trace_point)p) >= kind->left) continue;
        if (word == same && strncmp(name, last, word) == 0) continue;
        used += (size_t)snprintf(list->text + used, sizeof list->text - used, "%s%.*s",
                                 used > 0 ? "," : "", (int)word, name);
        last = name;
        same = word;
    }
    return list->text;
}

bool sinkproof_runner_is_tuned(const char *engine) {
    return known_engine_kind(engine)->tuned;
}

// Finds the point in the first word of a list, such as "A9" in "03.A9,M8": its start and its
// length.
static size_t find_point_in_word(const char *word, const char **point) {
    size_t length = strcspn(word, ","), layer = strspn(word, "0123456789");
    if (layer > 0 && word[layer] == '.') layer++;
    *point = word + layer;
    return length - layer;
}

bool sinkproof_runner_shows(const char *engine, const char *points, sinkproof_error *error) {
    sinkproof_runner_list list;
    for (const char *word = points; *word != '\0';) {
        const char *point;
        size_t length = find_point_in_word(word, &point);
        for (int p = 0; p < TRACE_POINTS; p++) {
            const char *name = sinkproof_trace_point_name((sinkproof_trace_point)p);
            if (sinkproof_trace_point_held((sinkproof_trace_point)p) >=
                    known_engine_kind(engine)->unseen &&
                length == strlen(name) && strncmp(point, name, length) == 0)
                return sinkproof_fail(error, "engine %s never holds %s: known are %s", engine, name,
                                      sinkproof_runner_points(engine, &list));
        }
        word = point + length;
        if (*word == ',') word++;
    }
    return true;
}

bool sinkproof_runner_new(const sinkproof_model *model, const sinkproof_policy *policy,
                          const sinkproof_runner_options *options, sinkproof_runner **runner,
                          sinkproof_error *error) {
    sinkproof_runner *r = *runner = calloc(1, sizeof *r);
    if (r == NULL) return sinkproof_fail(error, "no memory for a session");
    r->kind = known_engine_kind(options->engine);
    return sinkproof_model_fits(model, policy->weights, error) &&
           r->kind->open(model, policy, options, &r->state, error);
}

void sinkproof_runner_free(sinkproof_runner *r) {
    if (r == NULL) return;
    r->kind->close(r->state);
    free(r);
}

bool sinkproof_runner_forward(sinkproof_runner *r, size_t n, const int32_t *tokens_n,
                              double *logits_v, const sinkproof_observer *observer,
                              sinkproof_error *error) {
    return r->kind->forward(r->state, n, tokens_n, logits_v, observer, error);
}

size_t sinkproof_runner_length(const sinkproof_runner *r) {
    return r->kind->length(r->state);
}

void sinkproof_runner_reset(sinkproof_runner *r) {
    r->kind->reset(r->state);
}

bool sinkproof_runner_replaces(const char *engine, const sinkproof_policy *policy,
                               sinkproof_trace_point point) {
    return known_engine_kind(engine)->replaces(policy, point);
}

const char *sinkproof_runner_isa(const sinkproof_runner *r) {
    return r->kind->isa != NULL ? r->kind->isa(r->state) : NULL;
}

int sinkproof_runner_threads(const sinkproof_runner *r) {
    return r->kind->threads != NULL ? r->kind->threads(r->state) : 1;
}

size_t sinkproof_runner_weight_bytes(const sinkproof_runner *r) {
    return r->kind->weight_bytes != NULL ? r->kind->weight_bytes(r->state) : 0;
}
