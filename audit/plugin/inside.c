// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A plug-in that runs in this process: its outputs are painted before a call, and its inputs are
// copies, so that outputs that are left out and a write into an input are found.
#include "audit/plugin/drill.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct inside_plugin {
    sinkproof_plugin plugin; // as far as its size goes
    const sinkproof_error *said;
    const bool *stop;
} inside_plugin;

static const sinkproof_plugin_entry *entry_of(const sinkproof_plugin *plugin, const char *stage) {
    for (size_t i = 0; i < plugin->n_stages; i++)
        if (strcmp(plugin->stages[i].stage, stage) == 0) return &plugin->stages[i];
    return NULL;
}

static bool inside_has_stage(const void *context, const stage_row *stage) {
    const inside_plugin *inside = context;
    return entry_of(&inside->plugin, stage->name) != NULL;
}

static size_t array_elements(const sinkproof_array *a) {
    size_t count = 1;
    for (size_t d = 0; d < a->rank; d++) count *= a->shape[d];
    return count;
}

// Copies the inputs, so that a write into one is found.
static bool copy_inputs(const sinkproof_drill *drill, float *copies[STAGE_ARRAYS]) {
    bool good = true;
    for (size_t i = 0; i < drill->n_inputs; i++) {
        const sinkproof_array *a = &drill->inputs[i];
        size_t bytes = array_elements(a) * sizeof *a->values;
        copies[i] = malloc(bytes);
        if (copies[i] == NULL)
            good = false;
        else
            memcpy(copies[i], a->values, bytes);
    }
    return good;
}

static call_end run_stage(const inside_plugin *inside, const sinkproof_drill *drill,
                          float *copies[STAGE_ARRAYS], sinkproof_error *error) {
    sinkproof_array arrays[STAGE_ARRAYS];
    sinkproof_drill given = *drill;
    const sinkproof_plugin_entry *entry = entry_of(&inside->plugin, drill->stage);
    for (size_t i = 0; i < drill->n_inputs; i++) {
        arrays[i] = drill->inputs[i];
        arrays[i].values = copies[i];
    }
    given.inputs = arrays;
    for (size_t i = 0; i < drill->n_outputs; i++)
        output_paint(drill->outputs[i].values, array_elements(&drill->outputs[i]));
    int result = entry->run(inside->plugin.context, &given);
    if (result == 1) return CALL_NOT_SERVED;
    if (result != 0) {
        if (inside->said != NULL && inside->said->text[0] != '\0')
            sinkproof_fail(error, "%s", inside->said->text);
        else
            sinkproof_fail(error, "it failed with %d", result);
        return inside->stop != NULL && *inside->stop ? CALL_ERROR : CALL_FAILED;
    }
    for (size_t i = 0; i < drill->n_inputs; i++) {
        const sinkproof_array *a = &drill->inputs[i];
        if (memcmp(copies[i], a->values, array_elements(a) * sizeof *a->values) == 0) continue;
        sinkproof_fail(error, "it wrote into its input %s", a->name);
        return CALL_FAILED;
    }
    return CALL_DONE;
}

static call_end inside_call(void *context, const sinkproof_drill *drill, sinkproof_error *error) {
    float *copies[STAGE_ARRAYS] = {NULL};
    call_end end = CALL_ERROR;
    if (copy_inputs(drill, copies))
        end = run_stage(context, drill, copies, error);
    else
        sinkproof_fail(error, "%s: no memory for a call", drill->stage);
    for (size_t i = 0; i < STAGE_ARRAYS; i++) free(copies[i]);
    return end;
}

static bool check_plugin(const sinkproof_plugin *plugin, sinkproof_error *error) {
    if (plugin->n_stages == 0 || plugin->stages == NULL)
        return sinkproof_fail(error, "expected a plug-in with its size and a list of stages");
    for (size_t i = 0; i < plugin->n_stages; i++) {
        const sinkproof_plugin_entry *entry = &plugin->stages[i];
        const char *name = entry->stage != NULL ? entry->stage : "";
        if (stage_named(name, strlen(name)) == NULL)
            return stage_name_error(name, strlen(name), error);
        if (entry->run == NULL) return sinkproof_fail(error, "stage %s has no function", name);
    }
    return true;
}

static bool open_inside(const sinkproof_plugin_options *o, call_maker *maker,
                        sinkproof_error *error) {
    const sinkproof_plugin *given = o->inside;
    sinkproof_plugin known = {.size = 0}, *plugin = &known;
    lse_kinds lse;
    size_t size = given->size < sizeof known ? given->size : sizeof known;
    if (size >= offsetof(sinkproof_plugin, policy)) memcpy(&known, given, size);
    if (!check_plugin(plugin, error) || !lse_parse(plugin->lse, &lse, error)) return false;
    inside_plugin *inside = malloc(sizeof *inside);
    if (inside == NULL) return sinkproof_fail(error, "no memory for a plug-in");
    *inside = (inside_plugin){known, o->said, o->stop};
    *maker = (call_maker){.name = plugin->name != NULL ? plugin->name : "a kernel",
                          .policy = plugin->policy != NULL ? plugin->policy : "f32",
                          .lse = lse,
                          .has_stage = inside_has_stage,
                          .call = inside_call,
                          .context = inside};
    return true;
}

static void close_inside(call_maker *maker) {
    free(maker->context);
}

const call_opener inside_opener = {open_inside, close_inside};
