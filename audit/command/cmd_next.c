// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof next MODEL --policy P --tokens IDS`: what honest rounding can do to the next token.
#include "audit/command/batch.h"
#include "audit/command/command.h"
#include "audit/command/cpu.h"
#include "audit/command/kept.h"
#include "audit/command/text.h"
#include "audit/studies/next/next_print.h"
#include "audit/verify/truth_bits.h"
#include "base/words.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_BITS = 256,
    KEY_DRAWS,
    KEY_SEED,
    KEY_BRANCHES,
    PROMPTS,
    MOST_BITS = 1 << 20,
    MOST_DRAWS = 1 << 16
};

typedef struct options {
    const char *model, *tokens, *json, *out, *shard, *policy;
    work_shard share;
    input_list prompts;
    long bits, draws, seed, branches;
    bool no_derivative, no_steering, last;
} options;

static const struct argp_option option_table[] = {
    {"policy", KEPT(options, policy), "POLICY", 0,
     "what engines would round and where (default bf16): POLICIES, with overrides "
     "(f32,exp=4ulp)",
     0},
    HELP_TOKENS(KEPT(options, tokens), " (default random:12)"),
    HELP_PROMPTS(PROMPTS),
    HELP_OUT(KEPT(options, out)),
    HELP_SHARD(KEPT(options, shard)),
    {"bits", KEY_BITS, "N", 0,
     "working precision of the truth (default: what its depth is estimated to need)", 0},
    {"branches", KEY_BRANCHES, "N", 0,
     "follow all honest runs where they are at most N (default 16; 0: none)", 0},
    {"draws", KEY_DRAWS, "N", 0, "engines with drawn orders and roundings (default 8)", 0},
    {"seed", KEY_SEED, "S", 0, "of the engines (default 1)", 0},
    {"no-derivative", KEPT(options, no_derivative), 0, 0, "leave out the estimate to first order",
     0},
    {"no-steering", KEPT(options, no_steering), 0, 0,
     "leave out the engine that is steered against each position", 0},
    {"last", KEPT(options, last), 0, 0,
     "estimate and steer for the last position alone: a pass backward and an engine for each "
     "position less",
     0},
    {"json", 'j', "FILE", 0,
     "write the result as JSON too (- is standard output, instead of the text)", 0},
    {0}};

static error_t parse_option(int key, char *argument, struct argp_state *state) {
    options *o = state->input;
    if (option_keep(o, key, argument)) return 0;
    switch (key) {
    case KEY_BITS:
        o->bits = option_number(state, "bits", argument, 32, MOST_BITS);
        return 0;
    case KEY_DRAWS:
        o->draws = option_number(state, "draws", argument, 0, MOST_DRAWS);
        return 0;
    case KEY_BRANCHES:
        o->branches = option_number(state, "branches", argument, 0, MOST_DRAWS);
        return 0;
    case KEY_SEED:
        o->seed = option_number(state, "seed", argument, 0, INT32_MAX);
        return 0;
    case PROMPTS:
        inputs_add_word(&o->prompts, INPUT_PROMPT, argument);
        return 0;
    case 'j':
        o->json = argument;
        return 0;
    case ARGP_KEY_ARG:
        if (o->model != NULL) argp_error(state, "one MODEL, not also \"%s\"", argument);
        o->model = argument;
        return 0;
    case ARGP_KEY_END:
        if (o->model == NULL) argp_error(state, "MODEL is missing");
        if (o->tokens != NULL && o->prompts.n > 0)
            argp_error(state, "either --tokens or --prompts");
        batch_check_prompts(state, o->shard, &(batch){.out = o->out, .json = o->json}, &o->prompts,
                            &o->share);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp parser = {
    option_table,
    parse_option,
    "MODEL",
    "What honest rounding can do to the next token: at how many positions of a prompt no engine "
    "under a policy can say another token than the truth (certified), at how many an honest engine "
    "that was run does, and the rest.\v" HELP_MODEL_IS ".\n\n"
    "The truth's token and margin are enclosed. The margin that all engines keep is that of the "
    "honest sets from the tokens on. Engines draw the orders of their sums and their optional "
    "roundings; one more is steered against each position. What rounding takes to first order is "
    "estimated.\n\n"
    "Exit: 0 done, 1 a certified position was changed, 2 usage, 3 bad input, or a prompt that is, "
    "4 the truth's token is nowhere certified.",
    NULL,
    help_list_policies,
    NULL};

typedef struct asked {
    const options *o;
    const sinkproof_model *model;
    const sinkproof_policy *policy;
} asked;

static void show_progress(void *context, const char *what, size_t done, size_t total) {
    (void)context;
    progress_show("next", what, done, total);
}

static json_t *make_result(const asked *a, const next_study *study) {
    char *text = NULL, said[128];
    size_t length;
    json_t *results = json_array();
    FILE *out = open_memstream(&text, &length);
    if (out == NULL || results == NULL) abort();
    sinkproof_next_print(out, study, a->policy);
    if (fclose(out) != 0) abort();
    sinkproof_next_json(results, study, a->policy);
    snprintf(said, sizeof said, "%zu certified, %zu changed, %zu open",
             study->count[NEXT_CERTIFIED], study->count[NEXT_CHANGED], study->count[NEXT_OPEN]);
    int code = study->broken > 0                        ? EXIT_BUG
               : study->count[NEXT_UNKNOWN] == study->n ? EXIT_INCONCLUSIVE
                                                        : EXIT_HOLDS;
    json_t *result = json_pack("{s:i, s:o, s:o, s:o}", "exit", code, "said", text_json(said),
                               "results", results, "text", text_json(text));
    free(text);
    return result;
}

static json_t *study_prompt(void *context, const batch_unit *unit, bool page,
                            sinkproof_error *error) {
    const asked *a = context;
    const sinkproof_config *config = sinkproof_model_config(a->model);
    next_study study;
    int32_t *tokens_n;
    size_t n;
    long bits = a->o->bits > 0
                    ? a->o->bits
                    : sinkproof_truth_bits_for(sinkproof_truth_loss(config, config->n_layers));
    const next_options how = {.bits = bits,
                              .threads = (size_t)cpu_processors(),
                              .branches = (size_t)a->o->branches,
                              .draws = (size_t)a->o->draws,
                              .steer = !a->o->no_steering,
                              .derivative = !a->o->no_derivative,
                              .last = a->o->last,
                              .seed = (uint64_t)a->o->seed,
                              .rate = 1e-9,
                              .progress = show_progress};
    (void)page;
    if (!command_tokens_from_text(unit->input->said, a->o->model, config->vocab, &tokens_n, &n,
                                  error))
        return NULL;
    bool good = sinkproof_next_run(a->model, n, tokens_n, a->policy, &how, &study, error);
    free(tokens_n);
    if (!good) return NULL;
    json_t *result = make_result(a, &study);
    sinkproof_next_free(&study);
    return result;
}

int cmd_next(int argc, char **argv) {
    options o = {.policy = "bf16", .draws = 8, .seed = 1, .branches = 16};
    sinkproof_policy policy;
    sinkproof_error error;
    sinkproof_model *model;
    command_parse_line(&parser, argc, argv, &o);
    if (!sinkproof_policy_parse(o.policy, &policy, &error)) {
        fprintf(stderr, "sinkproof next: %s\n", error.text);
        return EXIT_USAGE;
    }
    if (!sinkproof_model_open(o.model, &model, &error)) return exit_bad_input("next", &error);
    asked all = {&o, model, &policy};
    json_t *with = json_pack("{s:I, s:I, s:I, s:b, s:b}", "bits", (json_int_t)o.bits, "draws",
                             (json_int_t)o.draws, "seed", (json_int_t)o.seed, "no-derivative",
                             o.no_derivative, "no-steering", o.no_steering, "last", o.last);
    json_t *how = kept_how("next", o.model, model, o.policy, with, &error);
    int code = how == NULL ? exit_bad_input("next", &error)
                           : batch_prompts(&(batch){.command = "next",
                                                    .title = "sinkproof: the next token",
                                                    .json = o.json,
                                                    .work = study_prompt,
                                                    .context = &all,
                                                    .out = o.out,
                                                    .how = how,
                                                    .shard = o.share},
                                           o.tokens != NULL ? o.tokens : "random:12", &o.prompts);
    json_decref(how);
    inputs_free(&o.prompts);
    sinkproof_model_close(model);
    return code;
}
