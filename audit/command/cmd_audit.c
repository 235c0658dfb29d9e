// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof audit MODEL --policy P[,P...]`: the cost of a choice of precision, before the kernel
// is written.
#include "audit/command/batch.h"
#include "audit/command/command.h"
#include "audit/command/kept.h"
#include "audit/command/text.h"
#include "audit/studies/precision/precision_print.h"
#include "base/words.h"
#include "model/model.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_POLICIES = 16 };

typedef struct options {
    const char *model, *tokens, *json, *html, *out, *shard;
    work_shard share;
    char *policies;
    input_list prompts;
    bool no_budget;
} options;

enum { PROMPTS = 256 };

static const struct argp_option option_table[] = {
    {"policy", 'p', "P[,P...]", 0,
     "what an engine would round and where: names of policies with commas between, each with its "
     "overrides behind it (f32,openai-bf16,M8.alpha=bf16 is two); default f32,openai-bf16; known "
     "are POLICIES",
     0},
    HELP_TOKENS(KEPT(options, tokens), " (default random:48)"),
    HELP_PROMPTS(PROMPTS),
    HELP_OUT(KEPT(options, out)),
    HELP_SHARD(KEPT(options, shard)),
    {"no-budget", KEPT(options, no_budget), 0, 0,
     "leave out the runs with each rounding alone: three runs of the model instead of dozens", 0},
    {"html", KEPT(options, html), "FILE", 0,
     "write a page too: one file, no script, nothing to fetch", 0},
    {"json", 'j', "FILE", 0,
     "write the result as JSON too (- is standard output, instead of the text)", 0},
    {0}};

static error_t parse_option(int key, char *argument, struct argp_state *state) {
    options *o = state->input;
    if (option_keep(o, key, argument)) return 0;
    switch (key) {
    case 'p':
        o->policies = argument;
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
        batch_check_prompts(state, o->shard,
                            &(batch){.out = o->out, .json = o->json, .html = o->html}, &o->prompts,
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
    "What a choice of precision costs, before anyone writes the kernel: the reference under each "
    "policy beside the same model over the reals.\v" HELP_MODEL_IS ".\n\n"
    "Error by layer and point; an error budget, each rounding point alone and all together; how "
    "far values are from overflow; what sinks leave of 1 - alpha_s; how a perturbation grows; the "
    "thinnest choices of experts. Every number is estimated: both runs are in binary64.\n\n"
    "Exit: 0 done, 2 usage, 3 bad input, or a prompt that is.",
    NULL,
    help_list_policies,
    NULL};

// Splits "f32,openai-bf16,M8.alpha=bf16" into policies: a word without "=" starts the next policy.
static bool parse_policies(char *text, sinkproof_policy *policies, size_t *n,
                           sinkproof_error *error) {
    *n = 0;
    while (text != NULL && *text != '\0') {
        char *end = strchr(text, ',');
        for (; end != NULL; end = strchr(end + 1, ',')) {
            size_t word = strcspn(end + 1, ",");
            if (memchr(end + 1, '=', word) == NULL) break;
        }
        if (end != NULL) *end = '\0';
        if (*n == MOST_POLICIES)
            return sinkproof_fail(error, "more than %d policies", MOST_POLICIES);
        if (!sinkproof_policy_parse(text, &policies[(*n)++], error)) return false;
        text = end != NULL ? end + 1 : NULL;
    }
    return *n > 0 || sinkproof_fail(error, "no policy in \"\"");
}

static void show_progress(void *context, double share) {
    progress_show_share(context, share);
}

// What is studied, and how.
typedef struct studies {
    const options *o;
    const sinkproof_model *model;
    size_t n_policies;
    const sinkproof_policy *policies;
} studies;

static json_t *make_result(const studies *s, const sinkproof_precision_study *study,
                           const char *tokens, bool page, sinkproof_error *error) {
    char *text = NULL, *part = NULL;
    size_t length;
    bool good = true;
    json_t *results = json_array();
    FILE *out = open_memstream(&text, &length);
    if (out == NULL || results == NULL) abort();
    sinkproof_precision_print(out, study);
    if (fclose(out) != 0) abort();
    sinkproof_precision_json(results, study);
    json_t *result = json_pack("{s:i, s:o, s:o, s:o}", "exit", EXIT_HOLDS, "said",
                               text_json(sinkproof_counted(study->n, "token").text), "results",
                               results, "text", text_json(text));
    free(text);
    out = page ? open_memstream(&part, &length) : NULL;
    if (out != NULL) {
        good = sinkproof_precision_part(out, study, s->o->model, tokens, error);
        if (fclose(out) != 0) abort();
        json_object_set_new(result, "page", text_json(part));
        free(part);
    }
    if (good) return result;
    json_decref(result);
    return NULL;
}

static json_t *study_prompt(void *context, const batch_unit *unit, bool page,
                            sinkproof_error *error) {
    const studies *s = context;
    sinkproof_precision_study study;
    progress_watch watch = {.command = "audit", .what = "runs"};
    sinkproof_precision_options how = {!s->o->no_budget, show_progress, &watch};
    int32_t *tokens_n;
    size_t n;
    if (!command_tokens_from_text(unit->input->said, s->o->model,
                                  sinkproof_model_config(s->model)->vocab, &tokens_n, &n, error))
        return NULL;
    bool good = sinkproof_precision_run(s->model, n, tokens_n, s->n_policies, s->policies, &how,
                                        &study, error);
    free(tokens_n);
    if (!good) return NULL;
    json_t *result = make_result(s, &study, unit->input->name, page, error);
    sinkproof_precision_free(&study);
    return result;
}

int cmd_audit(int argc, char **argv) {
    char known[] = "f32,openai-bf16";
    options o = {.policies = known};
    sinkproof_policy policies[MOST_POLICIES];
    size_t n_policies;
    sinkproof_error error;
    sinkproof_model *model;
    command_parse_line(&parser, argc, argv, &o);
    char *said = strdup(o.policies); // parsing cuts them apart
    if (said == NULL) abort();
    if (!parse_policies(o.policies, policies, &n_policies, &error)) {
        fprintf(stderr, "sinkproof audit: %s\n", error.text);
        free(said);
        return EXIT_USAGE;
    }
    if (!sinkproof_model_open(o.model, &model, &error)) {
        free(said);
        return exit_bad_input("audit", &error);
    }
    studies all = {&o, model, n_policies, policies};
    json_t *with = json_pack("{s:b}", "no-budget", o.no_budget);
    json_t *how = kept_how("audit", o.model, model, said, with, &error);
    int code = how == NULL
                   ? exit_bad_input("audit", &error)
                   : batch_prompts(&(batch){.command = "audit",
                                            .title = "sinkproof: what a choice of precision costs",
                                            .json = o.json,
                                            .html = o.html,
                                            .work = study_prompt,
                                            .context = &all,
                                            .out = o.out,
                                            .how = how,
                                            .shard = o.share},
                                   o.tokens != NULL ? o.tokens : "random:48", &o.prompts);
    json_decref(how);
    free(said);
    inputs_free(&o.prompts);
    sinkproof_model_close(model);
    return code;
}
