// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The paper's sentences as inputs, and the published values that are printed with each measurement.
#include "audit/command/gpt2_paper.h"

#include "audit/command/command.h"

#include <stdlib.h>
#include <string.h>

enum { KEY_HEAD = 4000 };

static const struct argp_option shown_options[] = {
    {"sentence", KEPT(gpt2_shown, sentence), "N|all", 0,
     "A sentence of the paper as input: 0 of its main text, 1 to 5 of its appendix C", 0},
    {"sentences", KEPT(gpt2_shown, list), 0, 0, "List these sentences, with their token ids", 0},
    {"published", KEPT(gpt2_shown, published), 0, 0,
     "What the paper prints beside what is measured, for a model of the released shape; without "
     "another input, of sentence 0",
     0},
    {"panel", KEPT(gpt2_shown, panel), 0, 0,
     "Run all five interventions and the control too: figures 3 and 8 to 14", 0},
    {"head", KEY_HEAD, "N", 0, "Maps and panels of head N, from 1 (the mean over the heads)", 0},
    {"html", KEPT(gpt2_shown, html), "FILE", 0,
     "Write a page with the figures: one file, no script", 0},
    {"svg", KEPT(gpt2_shown, svg), "DIR", 0, "Write each figure as a file of its own", 0},
    {0}};

static bool is_sentence(const char *text) {
    bool digit = text[0] >= '0' && text[0] < '0' + SINKPROOF_SENTENCES && text[1] == '\0';
    return digit || strcmp(text, "all") == 0;
}

static void check_shown_options(const gpt2_shown *o, struct argp_state *state) {
    if (o->sentence != NULL && !is_sentence(o->sentence))
        argp_error(state, "--sentence: expected 0 to %d or all, found \"%.40s\"",
                   SINKPROOF_SENTENCES - 1, o->sentence);
    if (o->head > 0 && o->html == NULL && o->svg == NULL && !o->panel)
        argp_error(state, "--head: expected --html, --svg or --panel too");
}

static size_t parse_head(struct argp_state *state, const char *text) {
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || n == 0 || n > INT32_MAX)
        argp_error(state, "--head: expected a number from 1 on, found \"%.40s\"", text);
    return (size_t)n;
}

static error_t parse_shown_option(int key, char *argument, struct argp_state *state) {
    gpt2_shown *o = state->input;
    if (option_keep(o, key, argument)) return 0;
    if (key == KEY_HEAD)
        o->head = parse_head(state, argument);
    else if (key == ARGP_KEY_END)
        check_shown_options(o, state);
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

const struct argp gpt2_shown_parser = {.options = shown_options, .parser = parse_shown_option};

// ---- sentences ---------------------------------------------------------------------------------

void gpt2_list_sentences(bool print, json_t *results) {
    for (size_t i = 0; sinkproof_sentence_at(i) != NULL; i++) {
        const sinkproof_sentence *s = sinkproof_sentence_at(i);
        json_t *ids = json_array();
        for (size_t t = 0; t < s->n; t++) json_array_append_new(ids, json_integer(s->token_n[t]));
        json_array_append_new(results, json_pack("{s:I, s:s, s:s, s:o}", "sentence", (json_int_t)i,
                                                 "place", s->place, "text", s->text, "ids", ids));
        if (!print) continue;
        printf("%zu  %s: %s\n   ", i, s->place, s->text);
        for (size_t t = 0; t < s->n; t++) printf("%s%d", t > 0 ? "," : "", (int)s->token_n[t]);
        printf("\n");
    }
}

void gpt2_sentence_range(const gpt2_shown *shown, size_t *from, size_t *to) {
    bool all = strcmp(shown->sentence, "all") == 0;
    *from = all ? 0 : (size_t)(shown->sentence[0] - '0');
    *to = all ? SINKPROOF_SENTENCES : *from + 1;
}

// ---- the study ---------------------------------------------------------------------------------

static bool shows_maps(const gpt2_shown *shown) {
    return shown->panel || shown->html != NULL || shown->svg != NULL;
}

bool gpt2_study_begin(gpt2_study *s, sinkproof_error *error) {
    enum { VOCABULARY = 50257 };
    const sinkproof_config *config = sinkproof_model_config(s->job.about.model);
    if (s->shown->published && !sinkproof_published_shape(config, error)) return false;
    if (s->shown->sentence != NULL && config->vocab != VOCABULARY)
        return sinkproof_fail(
            error,
            "--sentence: expected a model with GPT-2's vocabulary of %d, in whose "
            "ids the sentences are kept, found one of %zu",
            VOCABULARY, config->vocab);
    if (s->shown->head > config->n_heads)
        return sinkproof_fail(error, "--head: expected a head from 1 to %zu, found %zu",
                              config->n_heads, s->shown->head);
    s->job.head = s->shown->head > 0 ? (int)s->shown->head - 1 : SINKPROOF_ALL_HEADS;
    s->job.inputs = s->input_i;
    return true;
}

static void report_running_share(void *context, double share) {
    const gpt2_study *s = context;
    if (s->progress != NULL) s->progress(s->running, share);
}

// The options with which the study runs the model; `what` names the run in the progress.
static sinkproof_mechanism_options study_run_options(gpt2_study *s, const char *what) {
    s->running = what;
    return (sinkproof_mechanism_options){.normed = s->job.about.normed,
                                         .no_maps = !shows_maps(s->shown),
                                         .progress = report_running_share,
                                         .progress_context = s};
}

typedef struct tokens {
    size_t n;
    const int32_t *id_n;
} tokens;

static bool run_mechanism(const gpt2_study *s, tokens t, const sinkproof_mechanism_options *options,
                          sinkproof_mechanism *out, sinkproof_error *error) {
    return sinkproof_mechanism_run(s->job.about.model, s->job.about.policy, t.n, t.id_n, options,
                                   out, error);
}

// Measures the other reading of EPE too. The tables do not depend on the input and are compared
// once.
static bool compare_other_reading(gpt2_study *s, sinkproof_mechanism_input *in, tokens t,
                                  sinkproof_error *error) {
    sinkproof_mechanism other = {0};
    sinkproof_mechanism_options options = study_run_options(s, "layers, EPE read otherwise");
    options.normed = !options.normed;
    options.no_maps = true;
    in->comparison = calloc(1, sizeof *in->comparison);
    if (in->comparison == NULL) return sinkproof_fail(error, "no memory for the comparison");
    bool good = run_mechanism(s, t, &options, &other, error);
    if (good)
        sinkproof_compare_published(s->job.about.model, in->sentence,
                                    options.normed ? &in->before : &other,
                                    options.normed ? &other : &in->before, in->comparison);
    sinkproof_mechanism_free(&other);
    return good;
}

static bool run_panels(gpt2_study *s, sinkproof_mechanism_input *in, tokens t,
                       sinkproof_error *error) {
    sinkproof_mechanism_options options = study_run_options(s, "layers, panels");
    in->panels = calloc(1, sizeof *in->panels);
    if (in->panels == NULL) return sinkproof_fail(error, "no memory for the panels");
    return sinkproof_paper_panels_run(s->job.about.model, s->job.about.policy, t.n, t.id_n,
                                      &options, &in->before, in->panels, error);
}

bool gpt2_study_add(gpt2_study *s, const char *text, size_t sentence, size_t n,
                    const int32_t *tokens_n, sinkproof_error *error) {
    sinkproof_mechanism_input *in = &s->input_i[s->job.n_inputs];
    sinkproof_mechanism_options options = study_run_options(s, "layers");
    bool first = s->job.n_inputs++ == 0, changed = sinkproof_interventions_any(s->changes);
    tokens t = {n, tokens_n};
    in->text = text;
    in->sentence = sentence;
    if (changed) options.no_maps = true;
    if (!run_mechanism(s, t, &options, &in->before, error)) return false;
    if (changed) {
        options = study_run_options(s, "layers, with interventions");
        options.changes = s->changes;
        if (!run_mechanism(s, t, &options, &in->after, error)) return false;
    }
    if (shows_maps(s->shown) &&
        !sinkproof_attended_take(changed ? &in->after : &in->before, &in->attention, error))
        return false;
    if (s->shown->panel && !run_panels(s, in, t, error)) return false;
    return !s->shown->published || !first || compare_other_reading(s, in, t, error);
}

bool gpt2_study_draw(gpt2_study *s, sinkproof_error *error) {
    const gpt2_shown *o = s->shown;
    if (o->html != NULL && !sinkproof_mechanism_page(o->html, &s->job, error)) return false;
    return o->svg == NULL || sinkproof_mechanism_svg(o->svg, &s->job, error);
}

void gpt2_study_free(gpt2_study *s) {
    for (size_t i = 0; i < s->job.n_inputs; i++) {
        sinkproof_mechanism_input *in = &s->input_i[i];
        sinkproof_mechanism_free(&in->before);
        sinkproof_mechanism_free(&in->after);
        sinkproof_attended_free(&in->attention);
        if (in->panels != NULL) sinkproof_paper_panels_free(in->panels);
        free(in->panels);
        free(in->comparison);
    }
}

void gpt2_input_print(const gpt2_study *s, size_t input, FILE *out) {
    const sinkproof_mechanism_input *in = &s->input_i[input];
    sinkproof_mechanism_about about = sinkproof_mechanism_about_input(&s->job, input);
    if (input > 0) fputc('\n', out);
    sinkproof_mechanism_print(&in->before, &about, out);
    if (in->after.n > 0) sinkproof_mechanism_print_changed(&in->before, &in->after, &about, out);
    if (in->panels != NULL) sinkproof_paper_panels_print(in->panels, s->job.head, out);
    if (in->comparison != NULL) sinkproof_comparison_print(in->comparison, out);
}

void gpt2_input_json(const gpt2_study *s, size_t input, json_t *results) {
    const sinkproof_mechanism_input *in = &s->input_i[input];
    sinkproof_mechanism_about about = sinkproof_mechanism_about_input(&s->job, input);
    json_t *object = sinkproof_mechanism_json(&in->before, &about);
    if (in->sentence < SINKPROOF_SENTENCES)
        json_object_set_new(object, "sentence", json_integer((json_int_t)in->sentence));
    if (in->panels != NULL)
        json_object_set_new(object, "panels", sinkproof_paper_panels_json(in->panels));
    if (in->comparison != NULL)
        json_object_set_new(object, "published", sinkproof_comparison_json(in->comparison));
    json_array_append_new(results, object);
    if (in->after.n > 0)
        json_array_append_new(results, sinkproof_mechanism_json(&in->after, &about));
}
