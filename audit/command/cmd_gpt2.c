// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof gpt2`: measures the mechanism of GPT-2's sink on a run of the reference, and the
// effect of interventions on it.
#include "audit/command/engine_options.h"
#include "audit/command/gpt2_paper.h"
#include "audit/command/intervention_options.h"
#include "audit/command/text.h"

#include <stdlib.h>
#include <string.h>

typedef struct arguments {
    text_words words;
    const char *model, *policy, *epe, *json;
    double epsilon;
    bool heads;
    sinkproof_interventions changes;
    gpt2_shown shown;
} arguments;

enum { KEY_EPSILON = 256 };

static const struct argp_option argp_options[] = {
    {"text", KEPT(arguments, words.text), "TEXT|-", 0, "A text as it stands; - is standard input",
     0},
    {"tokens", KEPT(arguments, words.tokens), "IDS", 0,
     "Ids separated by commas, @FILE, random:N[,seed=S], repeat:N[,seed=S] or text:TEXT; "
     "bos+ or ids and + before them are a beginning",
     0},
    {"tokenizer", KEPT(arguments, words.tokenizer), "PATH", 0,
     "Of the text; the one beside MODEL unless named", 0},
    {"policy", KEPT(arguments, policy), "P", 0,
     "What rounds where, real-f64 (the default) or another of POLICIES, each with overrides", 0},
    {"epe", KEPT(arguments, epe), "raw|normed", 0,
     "What the first perceptron takes of a position: its row, as the paper writes it (raw), or the "
     "row behind the layer's LayerNorm (normed)",
     0},
    {"epsilon", KEY_EPSILON, "E", 0, "A head has a sink at a key with a mean weight above E (0.3)",
     0},
    {"heads", KEPT(arguments, heads), 0, 0, "Every head in the tables, not each layer alone", 0},
    {"json", KEPT(arguments, json), "FILE|-", 0,
     "write the result as JSON; with - nothing else is printed", 0},
    {0}};

// Selects the paper's sentences if no tokens are given; --list needs no model.
static void check_gpt2_options(arguments *in, struct argp_state *state) {
    gpt2_shown *shown = &in->shown;
    bool tokens = in->words.text != NULL || in->words.tokens != NULL;
    if (shown->list && (in->model != NULL || tokens || shown->sentence != NULL))
        argp_error(state, "--sentences stands alone, or with --json");
    if (shown->list) return;
    if (in->model == NULL) argp_error(state, "expected a MODEL");
    if (shown->published && !tokens && shown->sentence == NULL) shown->sentence = "0";
    if ((in->words.text != NULL) + (in->words.tokens != NULL) + (shown->sentence != NULL) != 1)
        argp_error(state, "expected one of --text, --tokens and --sentence");
    if ((shown->published || shown->panel) && sinkproof_interventions_any(&in->changes))
        argp_error(state, "--%s is of the model as it is: expected no intervention",
                   shown->panel ? "panel" : "published");
    if (strcmp(in->epe, "raw") != 0 && strcmp(in->epe, "normed") != 0)
        argp_error(state, "--epe %s: expected raw or normed", in->epe);
}

static error_t parse_gpt2_option(int key, char *argument, struct argp_state *state) {
    arguments *in = state->input;
    if (option_keep(in, key, argument)) return 0;
    if (key == ARGP_KEY_INIT) {
        state->child_inputs[0] = &in->changes;
        state->child_inputs[1] = &in->shown;
    } else if (key == KEY_EPSILON)
        in->epsilon = option_epsilon(state, argument);
    else if (key == ARGP_KEY_ARG && in->model != NULL)
        argp_error(state, "one MODEL, not also '%s'", argument);
    else if (key == ARGP_KEY_ARG)
        in->model = argument;
    else if (key == ARGP_KEY_END)
        check_gpt2_options(in, state);
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

static const struct argp_child children[] = {
    {&interventions_parser, 0, "Interventions, which combine:", 1},
    {&gpt2_shown_parser, 0, "The paper's sentences, panels, numbers and figures:", 2},
    {0}};
static const struct argp parser = {
    .options = argp_options,
    .parser = parse_gpt2_option,
    .children = children,
    .help_filter = help_list_policies,
    .args_doc = "MODEL --text TEXT\nMODEL --tokens IDS\nMODEL --sentence N|all\nMODEL --published\n"
                "--sentences",
    .doc =
        "The mechanism of GPT-2's attention sink (chapter 31), measured on a run: what the query's "
        "bias gives to each key (Delta), by which coordinates (gamma), what a position alone "
        "brings (EPE) and how the two are aligned, the four terms of the scores, the weights of "
        "the first key. With interventions: the same tokens run twice, the sink before and after. "
        "What the paper on it prints stands beside what is measured with --published (chapter 32)."
        "\vMODEL is a directory or synthetic:NAME[,seed=N][,layers=N] of GPT-2's "
        "architecture. Every number is estimated: in binary64, from what the run holds.\n\n"
        "Exit codes: 0 holds, 2 usage, 3 bad input."};

// ---- the runs ----------------------------------------------------------------------------------

typedef struct work {
    const arguments *in;
    sinkproof_policy policy;
    sinkproof_model *model;
    int32_t *tokens_n;
    gpt2_study study;
} work;

static void show_progress_share(const char *what, double share) {
    static progress_watch watch;
    if (watch.what != what) watch = (progress_watch){.command = "gpt2", .what = what};
    progress_show_share(&watch, share);
}

static bool add_tokens(work *w, sinkproof_error *error) {
    const text_words *words = &w->in->words;
    sinkproof_tokenizer *tokenizer;
    size_t n;
    bool good = words_parse_tokens(words, w->in->model, sinkproof_model_config(w->model)->vocab,
                                   &tokenizer, &w->tokens_n, &n, error);
    sinkproof_tokenizer_free(tokenizer);
    return good && gpt2_study_add(&w->study, words->text != NULL ? words->text : words->tokens,
                                  SINKPROOF_SENTENCES, n, w->tokens_n, error);
}

static bool add_sentences(work *w, sinkproof_error *error) {
    size_t from, to;
    bool good = true;
    gpt2_sentence_range(&w->in->shown, &from, &to);
    for (size_t i = from; good && i < to; i++) {
        const sinkproof_sentence *s = sinkproof_sentence_at(i);
        good = gpt2_study_add(&w->study, s->text, i, s->n, s->token_n, error);
    }
    return good;
}

static bool measure_gpt2_inputs(work *w, sinkproof_error *error) {
    if (!sinkproof_model_open(w->in->model, &w->model, error)) return false;
    w->study.job.about.model = w->model;
    if (!gpt2_study_begin(&w->study, error)) return false;
    bool good = w->in->shown.sentence != NULL ? add_sentences(w, error) : add_tokens(w, error);
    return good && gpt2_study_draw(&w->study, error);
}

static bool write_out(const work *w, sinkproof_error *error) {
    const char *json = w->in->json;
    size_t n = w->study.job.n_inputs;
    if (json == NULL || strcmp(json, "-") != 0)
        for (size_t i = 0; i < n; i++) gpt2_input_print(&w->study, i, stdout);
    if (json == NULL) return true;
    json_t *results = json_array();
    for (size_t i = 0; i < n; i++) gpt2_input_json(&w->study, i, results);
    return envelope_write_json(json, "gpt2", EXIT_HOLDS, results, error);
}

static int list_sentences(const char *json) {
    json_t *results = json_array();
    gpt2_list_sentences(json == NULL || strcmp(json, "-") != 0, results);
    return exit_with_results(json, "gpt2", EXIT_HOLDS, results);
}

int cmd_gpt2(int argc, char **argv) {
    arguments in = {.epe = "raw", .epsilon = 0.3};
    sinkproof_error error = {{0}};
    command_parse_line(&parser, argc, argv, &in);
    if (in.shown.list) return list_sentences(in.json);
    work w = {.in = &in};
    engine_choice how = {.engine = sinkproof_runner_names()[0], .policy = in.policy};
    if (!engine_settle_policy(&how, &w.policy, &error)) {
        fprintf(stderr, "sinkproof gpt2: %s\n", error.text);
        return EXIT_USAGE;
    }
    w.study.shown = &in.shown;
    w.study.changes = &in.changes;
    w.study.progress = show_progress_share;
    w.study.job.about = (sinkproof_mechanism_about){.model_name = in.model,
                                                    .policy = &w.policy,
                                                    .normed = strcmp(in.epe, "normed") == 0,
                                                    .epsilon = in.epsilon,
                                                    .every_head = in.heads};
    bool good = measure_gpt2_inputs(&w, &error) && write_out(&w, &error);
    gpt2_study_free(&w.study);
    free(w.tokens_n);
    sinkproof_model_close(w.model);
    return good ? EXIT_HOLDS : exit_bad_input("gpt2", &error);
}
