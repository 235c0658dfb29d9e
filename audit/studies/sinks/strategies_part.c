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

static const char *run_name(const strategy_study *s, size_t run) {
    return s->runs == 1 ? "" : run == 0 ? "sinks" : "without";
}

static void print_layers(FILE *out, const strategy_study *s) {
    fprintf(out, "%-6s", "layer");
    for (size_t k = 0; k < STRATEGY_COUNT; k++) fprintf(out, " %12s", cache_strategies[k].name);
    fprintf(out, "\n");
    for (size_t l = 0; l < s->n_layers; l++) {
        fprintf(out, "%-6zu", l);
        for (size_t k = 0; k < STRATEGY_COUNT; k++)
            fprintf(out, " %12.3e", strategy_relative_error(strategy_at(s, l, k, 0)));
        fprintf(out, "\n");
    }
}

static void print_rows(FILE *out, const strategy_study *s) {
    fprintf(out, "%-13s %-7s %10s %10s %10s %8s %8s\n", "cache", "", "A11 off", "its bound",
            "row-wise", "worst", "vacuous");
    for (size_t k = 0; k < STRATEGY_COUNT; k++)
        for (size_t run = 0; run < s->runs; run++) {
            strategy_error e = strategy_total_error(s, k, run);
            fprintf(out, "%-13s %-7s %10.3e %10.3e %10.3e %8.5f %8.5f\n", cache_strategies[k].name,
                    run_name(s, run), strategy_relative_error(&e), strategy_relative_bound(&e),
                    strategy_relative_row_bound(&e), e.worst, strategy_vacuous_share(&e));
        }
}

// A bound says nothing of a row where any two averages of its values satisfy it.
static void print_vacuous(FILE *out, const strategy_study *s) {
    for (size_t k = 0; k < STRATEGY_COUNT; k++) {
        strategy_error e = strategy_total_error(s, k, 0);
        if (e.vacuous == 0) continue;
        fprintf(out,
                "%s: in %zu of %s its bound says nothing, since any two averages of the values\n"
                "satisfy it. The row-wise bound is %.3g of the outputs' size.\n",
                cache_strategies[k].name, e.vacuous, sinkproof_counted(e.rows, "row").text,
                strategy_relative_row_bound(&e));
    }
}

static void print_whole(FILE *out, const strategy_study *s) {
    size_t from = s->plan.first + s->plan.recent;
    fprintf(out,
            "A run whose attention is the strategy's in every layer; loss: mean of -ln p(next "
            "token) over\nthe rows from %zu on\n%-13s %-7s %10s %10s %-9s %9s %11s\n",
            from, "cache", "", "F1 off", "logits off", "top token", "loss", "perplexity");
    for (size_t run = 0; run < s->runs; run++)
        fprintf(out, "%-13s %-7s %10s %10s %-9s %9s %11s\n", "full", run_name(s, run), "0", "0",
                "same", part_text("%.4f", s->full_loss[run]).text,
                part_text("%.4g", exp(s->full_loss[run])).text);
    for (size_t k = 0; k < STRATEGY_COUNT; k++)
        for (size_t run = 0; run < s->runs; run++) {
            const strategy_end *end = &s->end[k][run];
            fprintf(out, "%-13s %-7s %10.3e %10.3e %-9s %9s %11s\n", cache_strategies[k].name,
                    run_name(s, run), end->state, end->logits, end->same_token ? "same" : "other",
                    part_text("%.4f", end->loss).text, part_text("%.4g", exp(end->loss)).text);
        }
}

static void strategies_print(const void *state, const sinkproof_sinks_job *job, FILE *out) {
    const strategy_study *all = state;
    for (size_t i = 0; i < job->n_inputs; i++) {
        const strategy_study *s = &all[i];
        fprintf(out, "\n%s: %s from caches that keep %zu first and %s\n", job->inputs[i].text,
                sinkproof_counted(s->n, "token").text, s->plan.first,
                sinkproof_counted(s->plan.recent, "recent token").text);
        if (s->runs == 1)
            fprintf(out, "No head of this model has a sink of its own: it is measured once.\n");
        print_rows(out, s);
        print_vacuous(out, s);
        fprintf(out, "A11 off by layer%s:\n", s->runs == 1 ? "" : ", with the model's sinks");
        print_layers(out, s);
        if (s->whole) print_whole(out, s);
    }
    fprintf(
        out,
        "A11: every row from the same queries, keys and values as the full row, in binary64;\n"
        "errors as roots of sums of squares over those of the full rows; its bound: of "
        "bound.evict,\n"
        "bound.quantized-cache; row-wise: in each row the lesser of it and of the bound by the "
        "row's\n"
        "largest error of a score; worst: of one number, over the lesser; vacuous: the share of "
        "the rows\n"
        "whose bound is above what two averages of their values can differ.\n");
    if (!all[0].whole)
        fprintf(out, "F1, logits, loss: not measured, the engine does not go on from A11 under "
                     "this policy.\n");
}

// ---- JSON --------------------------------------------------------------------------------------

static json_t *error_json(const strategy_error *e) {
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "relative",
                     sinkproof_number_json(strategy_relative_error(e)), "bound",
                     sinkproof_number_json(strategy_relative_bound(e)), "row_bound",
                     sinkproof_number_json(strategy_relative_row_bound(e)), "worst",
                     sinkproof_number_json(e->worst), "largest", sinkproof_number_json(e->largest),
                     "vacuous", sinkproof_number_json(strategy_vacuous_share(e)));
}

static json_t *strategy_json(const sinkproof_sinks_job *job, size_t input, const strategy_study *s,
                             size_t k, size_t run) {
    const cache_strategy *strategy = &cache_strategies[k];
    strategy_error total = strategy_total_error(s, k, run);
    json_t *layers = json_array();
    for (size_t l = 0; l < s->n_layers; l++)
        json_array_append_new(layers, error_json(strategy_at(s, l, k, run)));
    json_t *one = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:o, s:b, s:o, s:o, s:o, s:o}", "strategy", strategy->name,
        "what", strategy->what, "id", strategy->evicts ? "bound.evict" : "bound.quantized-cache",
        "label", "estimated", "input", job->inputs[input].text, "tokens", part_count(s->n), "sinks",
        (int)(s->runs == 2 && run == 0), "first", part_count(s->plan.first), "recent",
        part_count(s->plan.recent), "attention", error_json(&total), "layers", layers);
    if (!s->whole) return one;
    const strategy_end *end = &s->end[k][run];
    json_object_set_new(one, "whole",
                        json_pack("{s:o, s:o, s:b, s:o, s:o}", "state",
                                  sinkproof_number_json(end->state), "logits",
                                  sinkproof_number_json(end->logits), "same_token",
                                  (int)end->same_token, "loss", sinkproof_number_json(end->loss),
                                  "full_loss", sinkproof_number_json(s->full_loss[run])));
    return one;
}

static void strategies_json(const void *state, const sinkproof_sinks_job *job, json_t *results) {
    const strategy_study *all = state;
    for (size_t i = 0; i < job->n_inputs; i++)
        for (size_t k = 0; k < STRATEGY_COUNT; k++)
            for (size_t run = 0; run < all[i].runs; run++)
                json_array_append_new(results, strategy_json(job, i, &all[i], k, run));
}

const sinkproof_sinks_part sinkproof_part_strategies = {
    .name = "strategies",
    .takes = "FIRST,RECENT",
    .help =
        "what shorter caches cost, with sinks and without, and the loss of the rows from FIRST + "
        "RECENT on: keys evicted but the first and the recent ones, the first ones alone gone, "
        "keys and values in 8 and 4 bits with the first tokens whole and not",
    .needs_run = true,
    .run = strategies_run_part,
    .print = strategies_print,
    .json = strategies_json,
    .free = free_state,
};
