// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof sinks MODEL --strategies`: the cost of shorter caches, as a table and as JSON.
#include "audit/studies/sinks/part.h"
#include "audit/studies/sinks/part_shared.h"
#include "audit/studies/sinks/strategies.h"
#include "base/words.h"

#include <stdlib.h>

static void free_state(void *state) {
    strategy_study *all = state;
    for (strategy_study *s = all; s != NULL && s->errors != NULL; s++) strategy_free(s);
    free(all);
}

static bool strategies_run_part(const sinkproof_sinks_job *job, const char *asked, void **state,
                                sinkproof_error *error) {
    strategy_plan plan;
    bool whole = sinkproof_runner_replaces(job->how.engine, job->policy, TRACE_A11);
    strategy_study *all = calloc(job->n_inputs + 1, sizeof *all);
    *state = all;
    if (all == NULL)
        return sinkproof_fail(error, "no memory for %s",
                              sinkproof_counted(job->n_inputs, "input").text);
    if (!strategy_parse(asked, &plan, error)) return false;
    for (size_t i = 0; i < job->n_inputs; i++) {
        part_share share = {job, i};
        if (!strategy_run(job->model, job->runner, &plan, whole, job->inputs[i].n,
                          job->inputs[i].tokens_n, part_report_share, &share, &all[i], error))
            return false;
    }
    return true;
}

// ---- the table ---------------------------------------------------------------------------------

static void print_layers(FILE *out, const strategy_study *s, bool sinks) {
    fprintf(out, "%-6s", "layer");
    for (size_t k = 0; k < STRATEGY_COUNT; k++) fprintf(out, " %12s", cache_strategies[k].name);
    fprintf(out, "\n");
    for (size_t l = 0; l < s->n_layers; l++) {
        fprintf(out, "%-6zu", l);
        for (size_t k = 0; k < STRATEGY_COUNT; k++)
            fprintf(out, " %12.3e", strategy_relative_error(strategy_at(s, l, k, sinks)));
        fprintf(out, "\n");
    }
}

static void print_total(FILE *out, const strategy_study *s, size_t k, bool sinks) {
    strategy_error e = strategy_total_error(s, k, sinks);
    const strategy_end *end = &s->end[k][sinks ? 0 : 1];
    fprintf(out, "%-13s %-7s %10.3e %10.3e %8.5f %8.5f", cache_strategies[k].name,
            sinks ? "sinks" : "without", strategy_relative_error(&e), strategy_relative_bound(&e),
            e.worst, strategy_vacuous_share(&e));
    if (s->whole)
        fprintf(out, " %10.3e %10.3e %s\n", end->state, end->logits,
                end->same_token ? "same" : "other");
    else
        fprintf(out, " %10s %10s -\n", "-", "-");
}

static void strategies_print(const void *state, const sinkproof_sinks_job *job, FILE *out) {
    const strategy_study *all = state;
    for (size_t i = 0; i < job->n_inputs; i++) {
        const strategy_study *s = &all[i];
        fprintf(out,
                "\n%s: %s from caches that keep %zu first and %s\n"
                "%-13s %-7s %10s %10s %8s %8s %10s %10s %s\n",
                job->inputs[i].text, sinkproof_counted(s->n, "token").text, s->plan.first,
                sinkproof_counted(s->plan.recent, "recent token").text, "cache", "", "A11 off",
                "its bound", "worst", "vacuous", "F1 off", "logits off", "top token");
        for (size_t k = 0; k < 2 * STRATEGY_COUNT; k++) print_total(out, s, k / 2, k % 2 == 0);
        fprintf(out, "A11 off by layer, with the model's sinks:\n");
        print_layers(out, s, true);
    }
    fprintf(
        out,
        "A11: every row from the same queries, keys and values as the full row, in binary64;\n"
        "errors as roots of sums of squares over those of the full rows; worst: of one number,\n"
        "over its bound (bound.evict, bound.quantized-cache); vacuous: the share of the rows "
        "whose\n"
        "bound is above what two averages of their values can differ. F1, logits of the last "
        "token: ");
    fprintf(out, all[0].whole
                     ? "a run\nwhose attention is the strategy's in every layer, against the "
                       "full one. Measured.\n"
                     : "not\nmeasured, the engine does not go on from A11 under this policy.\n");
}

// ---- JSON --------------------------------------------------------------------------------------

static json_t *error_json(const strategy_error *e) {
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o}", "relative", part_number(strategy_relative_error(e)), "bound",
        part_number(strategy_relative_bound(e)), "worst", part_number(e->worst), "largest",
        part_number(e->largest), "vacuous", part_number(strategy_vacuous_share(e)));
}

static json_t *strategy_json(const sinkproof_sinks_job *job, size_t input, const strategy_study *s,
                             size_t k, bool sinks) {
    const cache_strategy *strategy = &cache_strategies[k];
    strategy_error total = strategy_total_error(s, k, sinks);
    json_t *layers = json_array();
    for (size_t l = 0; l < s->n_layers; l++)
        json_array_append_new(layers, error_json(strategy_at(s, l, k, sinks)));
    json_t *one = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:o, s:b, s:o, s:o, s:o, s:o}", "strategy", strategy->name,
        "what", strategy->what, "id", strategy->evicts ? "bound.evict" : "bound.quantized-cache",
        "label", "estimated", "input", job->inputs[input].text, "tokens", part_count(s->n), "sinks",
        (int)sinks, "first", part_count(s->plan.first), "recent", part_count(s->plan.recent),
        "attention", error_json(&total), "layers", layers);
    if (!s->whole) return one;
    const strategy_end *end = &s->end[k][sinks ? 0 : 1];
    json_object_set_new(one, "whole",
                        json_pack("{s:o, s:o, s:b}", "state", part_number(end->state), "logits",
                                  part_number(end->logits), "same_token", (int)end->same_token));
    return one;
}

static void strategies_json(const void *state, const sinkproof_sinks_job *job, json_t *results) {
    const strategy_study *all = state;
    for (size_t i = 0; i < job->n_inputs; i++)
        for (size_t k = 0; k < 2 * STRATEGY_COUNT; k++)
            json_array_append_new(results, strategy_json(job, i, &all[i], k / 2, k % 2 == 0));
}

const sinkproof_sinks_part sinkproof_part_strategies = {
    .name = "strategies",
    .takes = "FIRST,RECENT",
    .help = "what shorter caches cost, with sinks and without: keys evicted but the first and the "
            "recent ones, keys and values in 8 and 4 bits with the first tokens whole and not",
    .needs_run = true,
    .run = strategies_run_part,
    .print = strategies_print,
    .json = strategies_json,
    .free = free_state,
};
