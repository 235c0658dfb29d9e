// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof sinks MODEL --perturb`: the effect of one changed token against the length of the
// context, as a table and as JSON.
#include "audit/studies/sinks/mixing.h"
#include "audit/studies/sinks/part.h"
#include "audit/studies/sinks/part_shared.h"
#include "base/share.h"
#include "base/words.h"

#include <stdlib.h>

typedef struct perturbed { // one input
    mix_plan plan;
    size_t count;
    mixing_study *mixes; // [lengths][modes]
} perturbed;

static void free_state(void *state) {
    perturbed *all = state;
    for (perturbed *p = all; p != NULL && p->mixes != NULL; p++) {
        for (size_t k = 0; k < p->count; k++) mix_free(&p->mixes[k]);
        free(p->mixes);
    }
    free(all);
}

static bool mixing_run_part(const sinkproof_sinks_job *job, const char *asked, void **state,
                            sinkproof_error *error) {
    const sinkproof_config *config = sinkproof_model_config(job->model);
    perturbed *all = calloc(job->n_inputs + 1, sizeof *all);
    *state = all;
    if (all == NULL)
        return sinkproof_fail(error, "no memory for %s",
                              sinkproof_counted(job->n_inputs, "input").text);
    if (!sinkproof_runner_replaces(job->how.engine, job->policy, TRACE_A11))
        return sinkproof_fail(error,
                              "--perturb: %s does not go on from A11 under this policy, "
                              "expected one of --engine ref or --policy f32",
                              job->how.engine);
    for (size_t i = 0; i < job->n_inputs; i++) {
        const sinkproof_sinks_input *in = &job->inputs[i];
        perturbed *p = &all[i];
        part_share share = {job, i};
        if (!mix_parse(asked, in->n, in->tokens_n, config, &p->plan, error)) return false;
        p->count = p->plan.n_lengths * p->plan.n_modes;
        p->mixes = calloc(p->count, sizeof *p->mixes);
        if (p->mixes == NULL)
            return sinkproof_fail(error, "no memory for %s",
                                  sinkproof_counted(p->count, "run").text);
        if (!mix_perturb_run(job->model, job->runner, &p->plan, in->tokens_n, part_report_share,
                             &share, p->mixes, error))
            return false;
    }
    return true;
}

// ---- the table ---------------------------------------------------------------------------------

static const char *change_cell(double x, char text[16]) {
    snprintf(text, 16, isnan(x) ? "-" : "%.3e", x);
    return text;
}

static void print_reach(FILE *out, const mixing_study *mix, size_t position, size_t l) {
    char at[16], later[16], last[16];
    mix_reach r = mix_reach_at(mix, position, l);
    fprintf(out, "%11s %11s %11s %13s\n", change_cell(r.at, at), change_cell(r.later, later),
            change_cell(r.last, last), sinkproof_share_fixed(r.share, 5).text);
}

static void print_hidden(FILE *out, const perturbed *p) {
    heads_hidden hidden = p->plan.hidden;
    if (hidden.first == 0) return;
    if (p->plan.modes[1] == MIX_HIDDEN)
        fprintf(out, "No head of this model has a sink of its own, so there is no run without.\n");
    fprintf(out, "First hidden: rows from %zu on do not see the first %s.\n", hidden.from,
            hidden.first == 1 ? "key" : sinkproof_counted(hidden.first, "key").text);
    if (hidden.from == hidden.first)
        fprintf(out, "No other row sees them: that only makes the next token the first of a text, "
                     "and takes no\nsink away. Hide from a later row on to take it away.\n");
}

static void print_input(FILE *out, const perturbed *p, const sinkproof_sinks_input *in) {
    size_t earlier = 0, longest = 0, at = p->plan.position;
    fprintf(out,
            "\n%s: token %zu changed from %d to %d. |x' - x| / |x| of the final states: at the\n"
            "token, mean over the later rows, in the last row; the last row's share of the paths\n"
            "that begin at the token, in the product of (I + the mean of the heads' maps).\n",
            in->text, at, (int)in->tokens_n[at], (int)p->plan.token);
    fprintf(out, "%7s  %-14s %11s %11s %11s %13s\n", "length", "attention", "at it", "later",
            "last", "share of paths");
    for (size_t k = 0; k < p->count; k++) {
        const mixing_study *m = &p->mixes[k];
        fprintf(out, "%7zu  %-14s ", m->n, mix_mode_name(m->mode));
        print_reach(out, m, at, m->rows - 1);
        earlier += m->earlier;
        longest = m->n > p->mixes[longest].n ? k : longest;
    }
    print_hidden(out, p);
    const mixing_study *m = &p->mixes[longest];
    fprintf(out, "%7s  as it is, %s, after each layer\n", "layers",
            sinkproof_counted(m->n, "token").text);
    for (size_t l = 0; l < m->rows; l++) {
        fprintf(out, "%7zu  %-14s ", l, l == 0 ? "embedding" : "");
        print_reach(out, m, at, l);
    }
    if (earlier == 0)
        fprintf(out, "States before token %zu: every one the same in both runs.\n", at);
    else
        fprintf(out, "States before token %zu: %zu changed, so that a row has seen later ones.\n",
                at, earlier);
}

static void mixing_print(const void *state, const sinkproof_sinks_job *job, FILE *out) {
    const perturbed *all = state;
    for (size_t i = 0; i < job->n_inputs; i++) print_input(out, &all[i], &job->inputs[i]);
    fprintf(out,
            "Measured on the engine; attention without sinks, or with raised ones, is computed "
            "in binary64\nfrom its own queries, keys and values. The paths are estimated: no "
            "bound of what is measured.\n");
}

// ---- JSON --------------------------------------------------------------------------------------

static json_t *layers_json(const mixing_study *m) {
    json_t *layers = json_array();
    for (size_t l = 0; l < m->rows; l++) {
        json_t *off = json_array();
        for (size_t i = 0; i < m->n; i++)
            json_array_append_new(off, sinkproof_number_json(m->off_ln[l * m->n + i]));
        json_array_append_new(
            layers,
            json_pack("{s:o, s:o, s:o, s:o}", "layer", part_count(l), "off", off, "relative",
                      part_ratios(m->n, m->off_ln + l * m->n, m->size_ln + l * m->n), "paths",
                      part_ratios(m->n, m->paths_ln + l * m->n, m->from_ln + l * m->n)));
    }
    return layers;
}

static void mixing_json(const void *state, const sinkproof_sinks_job *job, json_t *results) {
    const perturbed *all = state;
    for (size_t i = 0; i < job->n_inputs; i++)
        for (size_t k = 0; k < all[i].count; k++) {
            const perturbed *p = &all[i];
            const mixing_study *m = &p->mixes[k];
            size_t at = p->plan.position;
            json_t *one =
                json_pack("{s:s, s:s, s:s, s:o, s:o, s:i, s:i, s:s, s:o, s:o}", "perturbed",
                          job->inputs[i].text, "id", "mix.perturb", "label", "estimated", "tokens",
                          part_count(m->n), "position", part_count(at), "from",
                          (int)job->inputs[i].tokens_n[at], "to", (int)p->plan.token, "attention",
                          mix_mode_name(m->mode), "earlier_changed", part_count(m->earlier),
                          "states", layers_json(m));
            if (m->mode == MIX_RAISED)
                json_object_set_new(one, "raised", json_real(p->plan.raised));
            if (m->mode == MIX_HIDDEN) {
                json_object_set_new(one, "hidden", part_count(p->plan.hidden.first));
                json_object_set_new(one, "hidden_from", part_count(p->plan.hidden.from));
            }
            json_array_append_new(results, one);
        }
}

const sinkproof_sinks_part sinkproof_part_perturb = {
    .name = "perturb",
    .takes = "POS:ID",
    .help =
        "change one token and say how far it reaches, with sinks and without: POS:ID or drawn; "
        "after commas lengths=N+N... of the context, raise=X of the sinks, hide=K@R (the first K "
        "keys hidden from row R on; a model without sinks has one hidden anyway), seed=S",
    .needs_run = true,
    .run = mixing_run_part,
    .print = mixing_print,
    .json = mixing_json,
    .free = free_state,
};
