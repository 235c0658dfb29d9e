// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof judge MODEL TRACE...`: prints the verdict on an engine's trace.
#include "audit/command/batch.h"
#include "audit/command/bisect.h"
#include "audit/command/command.h"
#include "audit/command/kept.h"
#include "audit/command/plan.h"
#include "audit/command/text.h"
#include "audit/face/ruling.h"
#include "audit/plugin/plugin.h"
#include "audit/report/report.h"
#include "base/words.h"

#include <argp.h>
#include <limits.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdlib.h>
#include <string.h>

typedef struct options {
    const char *model, *policy, *json, *html, *bisect, *tokens, *out, *shard, *truth, *adapter;
    work_shard share;
    size_t first_layer, end_layer, apart; // end_layer 0: all; apart 0: together
    char **traces;
    size_t n_traces;
    double rate;
    bool strict, all, local_only, no_hint, forms, no_diagnosis, any_model, plan, truth_alone;
    sinkproof_plugin_options plugin; // stages in a shared object, instead of traces
} options;

enum { RATE = 256, SECONDS, SEED, LAYERS, APART, LIMIT };

static const struct argp_option argp_options[] = {
    {"policy", 'p', "POLICY", 0,
     "what the engine declares: auto (default: the narrowest known policy that the trace fits), "
     "POLICIES, with overrides "
     "(f32,exp=4ulp,div=2ulp; openai-bf16,M8.alpha=bf16)",
     0},
    {"json", 'j', "FILE", 0,
     "write the result as JSON too (- is standard output, instead of the report)", 0},
    {"html", KEPT(options, html), "FILE", 0,
     "write a page to attach to a bug report too: one file, no script, nothing to fetch", 0},
    {"layers", LAYERS, "A-B", 0,
     "judge layers A to B alone (T0 belongs to the first layer, F1 and F2 to the last); without "
     "the comparison end to end",
     0},
    {"plan", KEPT(options, plan), 0, 0,
     "judge nothing: say what judging would read, keep and take, time and memory estimated from a "
     "few tokens of one layer",
     0},
    {"layers-apart", APART, "N", 0,
     "judge each N layers of a trace apart, as a result of its own that a --shard may have; asks "
     "for a --policy",
     2},
    HELP_OUT(KEPT(options, out)),
    HELP_SHARD(KEPT(options, shard)),
    {"strict", KEPT(options, strict), 0, 0,
     "a suspicious trace exits 1, not 4; one with points undecided exits 4, not 0", 0},
    {"all", KEPT(options, all), 0, 0, "one line per layer and point, not one per point", 0},
    {"rate", RATE, "P", 0,
     "false alarms per tensor of the likely set, drift and spread, and of the drift of a point's "
     "layers together (default 1e-9)",
     0},
    {"local", KEPT(options, local_only), 0, 0, "leave out the comparison with the truth end to end",
     0},
    {"truth", KEPT(options, truth), "FILE", 0,
     "also compare each trace end to end with FILE, which truth --trace wrote of the same MODEL "
     "and tokens",
     0},
    {"truth-alone", KEPT(options, truth_alone), 0, 0,
     "of --truth: only this comparison, without the model and in seconds; nothing is judged (exit "
     "4)",
     0},
    {"adapter", KEPT(options, adapter), "DIR", 0,
     "the engine has a LoRA of PEFT beside the weights of MODEL, not merged: y = W x + s B (A x)",
     0},
    {"no-hint", KEPT(options, no_hint), 0, 0, "do not look for overrides that would explain a bug",
     0},
    {"no-diagnosis", KEPT(options, no_diagnosis), 0, 0,
     "do not look for the known mistakes, one or two together, that explain a bug", 0},
    {"bisect", KEPT(options, bisect), "CMD", 0,
     "no TRACE, but a shell command that writes one of {tokens} (ids) to {out}: run on ever fewer "
     "of "
     "the first tokens, until n of them fail and n - 1 do not; without {out} its exit code says "
     "it, 0 or 1; {n} is how many",
     0},
    {"tokens", KEPT(options, tokens), "IDS", 0,
     "of --bisect: ids separated by commas, @FILE, random:N[,seed=S], repeat:N[,seed=S], "
     "text:TEXT, prompt:TEXT or chat:FILE, also behind a beginning as in bos+repeat:64",
     0},
    HELP_ANY_MODEL(KEPT(options, any_model)),
    {"forms", KEPT(options, forms), 0, 0,
     "name the form that the trace fits, where the policy admits several and only one fits: one "
     "more judgement per form (up to nine); --all names several too",
     0},
    {"plugin", KEPT(options, plugin.path), "ENGINE.so", 0,
     "judge the stages of a shared object in place of traces (or of builtin:fast): called over "
     "lengths, windows, heads and sinks, each call by its honest set; a MODEL's sizes, or small "
     "ones",
     1},
    {"stages", KEPT(options, plugin.stages), "LIST", 0, "these stages alone: attention,swiglu", 1},
    {"case", KEPT(options, plugin.only), "CALL", 0, "one call, as a report prints it", 1},
    {"first", KEPT(options, plugin.first), 0, 0, "leave a stage at the first calls that fail", 1},
    {"limit", LIMIT, "N", 0,
     "calls of each stage at most, spread over all of them, a third over a cache", 1},
    {"seed", SEED, "S", 0, "of the inputs (default 1)", 1},
    {"seconds", SECONDS, "S", 0, "that one call may take before it counts as hung (default 30)", 1},
    {"emit", KEPT(options, plugin.emit), "DIR", 0,
     "write the inputs of all calls and a manifest there, for an engine in any language; says "
     "their size first, and refuses a disk that has not so much room",
     1},
    {"collect", KEPT(options, plugin.collect), "DIR", 0,
     "judge the outputs that it wrote beside them: of attention A11, and A9.lse if it has one", 1},
    {0}};

static double parse_rate(struct argp_state *state, const char *text) {
    char *end;
    double rate = strtod(text, &end);
    if (*end != '\0' || !(rate > 0 && rate < 1))
        argp_error(state, "--rate is a probability between 0 and 1, not '%s'", text);
    return rate;
}

static bool is_plugin(const options *o) {
    return o->plugin.path != NULL || o->plugin.emit != NULL || o->plugin.collect != NULL;
}

static void parse_number(struct argp_state *state, options *o, int key, const char *text) {
    char *end;
    if (key == SEED)
        o->plugin.seed = strtoull(text, &end, 10);
    else
        o->plugin.seconds = strtod(text, &end);
    if (*text == '\0' || *end != '\0' || !(o->plugin.seconds > 0 && o->plugin.seconds < 1e6))
        argp_error(state, "--%s is a number, not '%s'", key == SEED ? "seed" : "seconds", text);
}

static size_t parse_limit(struct argp_state *state, const char *text) {
    char *end;
    unsigned long long limit = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || limit == 0)
        argp_error(state, "--limit is a number of calls from 1 on, not '%s'", text);
    return (size_t)limit;
}

// "3", "0-5"
static void parse_layers(struct argp_state *state, options *o, const char *text) {
    int end = 0, fields = sscanf(text, "%5zu-%5zu%n", &o->first_layer, &o->end_layer, &end);
    if (fields == 1) {
        fields = sscanf(text, "%5zu%n", &o->end_layer, &end) + 1;
    }
    if (fields != 2 || text[end] != '\0' || text[0] == '-' || o->end_layer < o->first_layer)
        argp_error(state, "--layers is A-B, from 0, not '%s'", text);
    o->end_layer++;
}

static void parse_apart(struct argp_state *state, options *o, const char *text) {
    int end = 0;
    if (sscanf(text, "%5zu%n", &o->apart, &end) != 1 || text[end] != '\0' || o->apart == 0)
        argp_error(state, "--layers-apart is a number of layers, not '%s'", text);
}

static void check_words(struct argp_state *state, options *o) {
    sinkproof_error error;
    batch b = {.out = o->out, .json = o->json, .html = o->html};
    batch_check_options(state, o->shard, &b);
    o->share = b.shard;
    if (o->out != NULL && (is_plugin(o) || o->bisect != NULL))
        argp_error(state, "--out keeps the results of traces");
    if (o->plan && (o->out != NULL || o->html != NULL || is_plugin(o) || o->bisect != NULL))
        argp_error(state, "--plan judges nothing: it has no --out and no --html");
    if (o->truth != NULL && (o->local_only || o->apart > 0 || o->end_layer > 0 || is_plugin(o) ||
                             o->bisect != NULL || o->plan))
        argp_error(state, "--truth compares whole traces end to end");
    if (o->adapter != NULL && (o->truth != NULL || o->plan || is_plugin(o) || o->bisect != NULL))
        argp_error(state, "--adapter asks for a TRACE, and has no --truth and no --plan");
    if (o->truth_alone && o->truth == NULL) argp_error(state, "--truth-alone asks for --truth");
    if (o->apart > 0 && o->end_layer > 0) argp_error(state, "--layers or --layers-apart");
    if (o->apart > 0 && strcmp(o->policy, "auto") == 0)
        argp_error(state,
                   "--layers-apart asks for a --policy: auto may find another for each part");
    if (is_plugin(o) && o->n_traces > 0) argp_error(state, "a plug-in takes a MODEL and no TRACE");
    if (!is_plugin(o) && (o->plugin.stages != NULL || o->plugin.only != NULL))
        argp_error(state, "--stages and --case ask for a --plugin");
    if (o->plugin.limit > 0 && o->plugin.path == NULL && o->plugin.emit == NULL)
        argp_error(state, "--limit asks for --plugin or --emit");
    if ((o->plugin.emit != NULL) + (o->plugin.collect != NULL) + (o->plugin.path != NULL) > 1)
        argp_error(state, "one of --plugin, --emit and --collect");
    if (o->bisect != NULL &&
        (o->model == NULL || o->tokens == NULL || o->n_traces > 0 || is_plugin(o)))
        argp_error(state, "--bisect needs a MODEL, --tokens and no TRACE");
    if (!is_plugin(o) && o->bisect == NULL && o->n_traces == 0)
        argp_error(state, "a MODEL and at least one TRACE are needed");
    sinkproof_plugin_options plugin = o->plugin;
    plugin.policy = strcmp(o->policy, "auto") == 0 ? NULL : o->policy;
    if (is_plugin(o) && !sinkproof_plugin_check(&plugin, &error))
        argp_error(state, "%s", error.text);
}

static error_t parse_judge_option(int key, char *argument, struct argp_state *state) {
    options *o = state->input;
    if (option_keep(o, key, argument)) return 0;
    if (key == 'p')
        o->policy = argument;
    else if (key == 'j')
        o->json = argument;
    else if (key == SECONDS || key == SEED)
        parse_number(state, o, key, argument);
    else if (key == LAYERS)
        parse_layers(state, o, argument);
    else if (key == APART)
        parse_apart(state, o, argument);
    else if (key == LIMIT)
        o->plugin.limit = parse_limit(state, argument);
    else if (key == RATE)
        o->rate = parse_rate(state, argument);
    else if (key == ARGP_KEY_ARG && o->model == NULL)
        o->model = argument;
    else if (key == ARGP_KEY_ARG)
        o->traces[o->n_traces++] = argument;
    else if (key == ARGP_KEY_END)
        check_words(state, o);
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

static const struct argp argp = {
    argp_options,
    parse_judge_option,
    "MODEL TRACE...\n--bisect=CMD --tokens=IDS MODEL\n--plugin=ENGINE.so [MODEL]\n--emit=DIR "
    "[MODEL]\n--collect=DIR [MODEL]",
    "Judge an engine's traces: is every tensor, computed from the engine's own inputs to that "
    "operation, "
    "inside what honest rounding can do?\v" HELP_MODEL_IS ". A TRACE is a "
    "safetensors file in the format sinkproof-trace-1 (one sequence, from position 0 or later; "
    "several end to end; or a padded batch), a directory of such files, or a list: @FILE or "
    "FILE.jsonl, a path or {\"trace\": PATH} in each line. Of many, each is judged by itself: one "
    "that is missing or malformed has a row with its sentence, and the others are judged.\n\n"
    "Exit: 0 within bounds, 1 a bug, 2 usage, 3 bad input or a trace of another model, 4 "
    "suspicious, "
    "nothing decided,"
    " or NaN that nothing bounds. Of several traces the gravest: 1, then 3, 4, 0.",
    NULL,
    help_list_policies,
    NULL};

// ---- judging

// Shows judgements one after the other, each on a line of its own.
static void show_progress(void *context, const char *what, double share) {
    progress_watch *watch = context;
    if (watch->what == NULL) *watch = (progress_watch){.command = "judge", .what = what};
    progress_show_share(watch, share);
    if (share >= 1) watch->what = NULL;
}

// What is judged, and how.
typedef struct trials {
    const options *o;
    const sinkproof_model *model;
} trials;

// "a bug at 00.M8 under f32"
static json_t *say_verdict(const sinkproof_ruling *ruling) {
    const sinkproof_judgement *j = sinkproof_ruling_judgement(ruling);
    sinkproof_verdict verdict = sinkproof_ruling_verdict(ruling);
    const char *first = sinkproof_ruling_first(ruling);
    if (first == NULL && j->first_suspicious != NULL) first = j->first_suspicious->name;
    char said[512], undecided[200] = "";
    size_t all = sinkproof_ruling_count(ruling), open = sinkproof_ruling_undecided(ruling);
    if (open > 0)
        snprintf(undecided, sizeof undecided, ", %zu of %s undecided", open,
                 sinkproof_counted(all, all > j->n_reports ? "tensor" : "point").text);
    snprintf(said, sizeof said, "%s%s%s%s under %.100s",
             verdict == SINKPROOF_VERDICT_BUG ? "a bug" : sinkproof_verdict_name(verdict),
             first != NULL ? " at " : "", first != NULL ? first : "", undecided, j->policy.name);
    return text_json(said);
}

static bool add_page(const trials *t, sinkproof_trace *trace, sinkproof_ruling *ruling,
                     const char *name, json_t *result, sinkproof_error *error) {
    char *text = NULL;
    size_t length;
    FILE *page = open_memstream(&text, &length);
    if (page == NULL) return sinkproof_fail(error, "no memory for a page");
    bool good = sinkproof_report_part(page, t->model, t->o->model,
                                      &(sinkproof_page_trial){name, trace, ruling}, error);
    good = fclose(page) == 0 && good;
    if (good) json_object_set_new(result, "page", text_json(text));
    free(text);
    return good;
}

static json_t *make_result(const trials *t, sinkproof_trace *trace, sinkproof_ruling *ruling,
                           const char *name, bool page, sinkproof_error *error) {
    json_t *rows = json_incref(sinkproof_ruling_results(ruling));
    int code = sinkproof_ruling_exit(ruling);
    json_object_set_new(json_array_get(rows, 0), "exit", json_integer(code));
    json_t *result = json_pack("{s:i, s:o, s:o, s:o}", "exit", code, "said", say_verdict(ruling),
                               "results", rows, "text", text_json(sinkproof_ruling_text(ruling)));
    if (!page || add_page(t, trace, ruling, name, result, error)) return result;
    json_decref(result);
    return NULL;
}

static json_t *judge_one(void *context, const batch_unit *unit, bool page, sinkproof_error *error) {
    const trials *t = context;
    const options *o = t->o;
    const char *path = unit->input->said;
    sinkproof_trace *trace;
    sinkproof_ruling *ruling;
    progress_watch watch = {.what = NULL};
    sinkproof_trial_options how = {.size = sizeof how,
                                   .policy = o->policy,
                                   .name = path,
                                   .rate = o->rate,
                                   .strict = o->strict,
                                   .all = o->all,
                                   .local = o->local_only,
                                   .no_hint = o->no_hint,
                                   .forms = o->forms,
                                   .no_diagnosis = o->no_diagnosis,
                                   .any_model = o->any_model,
                                   .first_layer = unit->first_layer,
                                   .end_layer = unit->end_layer,
                                   .truth = o->truth,
                                   .truth_alone = o->truth_alone,
                                   .adapter = o->adapter,
                                   .progress = show_progress,
                                   .context = &watch};
    json_t *result = NULL;
    if (!sinkproof_trace_open_of(path, t->model, o->any_model, &trace, error)) return NULL;
    if (o->plan) {
        sinkproof_layer_range layers = {unit->first_layer, unit->end_layer};
        result = plan_trace(t->model, trace, path, layers, o->policy, error);
    } else if (sinkproof_judge_trace(t->model, trace, &how, &ruling, error)) {
        result = make_result(t, trace, ruling, path, page, error);
        sinkproof_ruling_free(ruling);
    }
    sinkproof_trace_close(trace);
    return result;
}

// One unit for each trace, or for each part of its layers.
static batch_unit *cut_units(const options *o, const sinkproof_model *model,
                             const input_list *inputs, size_t *n) {
    size_t layers = sinkproof_model_config(model)->n_layers;
    size_t parts = o->apart > 0 ? (layers + o->apart - 1) / o->apart : 1;
    batch_unit *units = calloc(inputs->n * parts + 1, sizeof *units);
    if (units == NULL) abort();
    for (*n = 0; *n < inputs->n * parts; ++*n) {
        batch_unit *unit = &units[*n];
        size_t first = *n % parts * o->apart;
        *unit = (batch_unit){&inputs->at[*n / parts], o->first_layer, o->end_layer};
        if (o->apart == 0) continue;
        unit->first_layer = first;
        unit->end_layer = first + o->apart < layers ? first + o->apart : layers;
    }
    return units;
}

static json_t *how_judged(const options *o, const sinkproof_model *model, sinkproof_error *error) {
    json_t *with =
        json_pack("{s:f, s:b, s:b, s:b, s:b, s:b, s:b, s:b}", "rate", o->rate, "strict", o->strict,
                  "all", o->all, "local", o->local_only, "no-hint", o->no_hint, "forms", o->forms,
                  "no-diagnosis", o->no_diagnosis, "any-model", o->any_model);
    if (o->truth != NULL)
        json_object_set_new(with, "truth",
                            json_pack("{s:o, s:o, s:b}", "file", text_json(o->truth), "stamp",
                                      kept_stamp(o->truth), "alone", o->truth_alone));
    if (o->adapter != NULL) json_object_set_new(with, "adapter", kept_adapter(o->adapter));
    return kept_how("judge", o->model, model, o->policy, with, error);
}

static int judge_traces(const options *o, const sinkproof_model *model) {
    sinkproof_error error;
    trials t = {o, model};
    input_list inputs = {0, 0, NULL};
    for (size_t i = 0; i < o->n_traces; i++) inputs_add_word(&inputs, INPUT_TRACE, o->traces[i]);
    size_t n;
    batch_unit *units = cut_units(o, model, &inputs, &n);
    json_t *how = how_judged(o, model, &error);
    const batch all = {.command = "judge",
                       .title = "sinkproof: a judgement",
                       .of = "trace",
                       .n = n,
                       .units = units,
                       .json = o->json,
                       .html = o->html,
                       .work = judge_one,
                       .context = &t,
                       .out = o->out,
                       .how = how,
                       .shard = o->share};
    int code = how != NULL ? batch_run(&all) : exit_bad_input("judge", &error);
    json_decref(how);
    free(units);
    inputs_free(&inputs);
    return code;
}

static int bisect_prompt_length(const options *o, const sinkproof_model *model) {
    sinkproof_error error;
    int32_t *tokens;
    size_t n;
    if (!command_tokens_from_text(o->tokens, o->model, sinkproof_model_config(model)->vocab,
                                  &tokens, &n, &error))
        return exit_bad_input("judge", &error);
    int code = bisect_prompt(&(bisect_request){.model = model,
                                               .command = o->bisect,
                                               .policy = o->policy,
                                               .n = n,
                                               .tokens_n = tokens,
                                               .rate = o->rate,
                                               .any_model = o->any_model});
    free(tokens);
    return code;
}

// Judges every trace on the command line and returns the gravest exit code.
static int judge_all(const options *o) {
    sinkproof_error error;
    sinkproof_policy policy;
    sinkproof_model *model;
    if (strcmp(o->policy, "auto") != 0 && !sinkproof_policy_parse(o->policy, &policy, &error)) {
        fprintf(stderr, "sinkproof judge: %s\n", error.text);
        return EXIT_USAGE;
    }
    if (!sinkproof_model_open(o->model, &model, &error)) return exit_bad_input("judge", &error);
    if (o->bisect != NULL) {
        int found = bisect_prompt_length(o, model);
        sinkproof_model_close(model);
        return found;
    }
    int code = judge_traces(o, model);
    sinkproof_model_close(model);
    return code;
}

// ---- a plug-in

static void show_stage(void *context, const char *stage, double share) {
    show_progress(context, stage, share);
}

static void say_what_is_written(void *context, const char *sentence) {
    (void)context;
    printf("%s\n", sentence);
    fflush(stdout);
}

static int judge_plugin(const options *o) {
    sinkproof_error error;
    sinkproof_plugin_ruling ruling;
    progress_watch watch = {.what = NULL};
    sinkproof_plugin_options how = o->plugin;
    how.policy = strcmp(o->policy, "auto") == 0 ? NULL : o->policy;
    how.model = o->model;
    how.rate = o->rate;
    how.strict = o->strict;
    how.any_model = o->any_model;
    how.no_cause = o->no_diagnosis;
    how.progress = show_stage;
    how.context = &watch;
    bool silent = o->json != NULL && strcmp(o->json, "-") == 0;
    if (!silent) how.writes = say_what_is_written;
    if (!sinkproof_judge_plugin(&how, &ruling, &error)) return exit_bad_input("judge", &error);
    if (!silent) fputs(ruling.text, stdout);
    free(ruling.text);
    return exit_with_results(o->json, "judge", ruling.exit, ruling.results);
}

// The judge allocates and frees the same large pieces for each part of each layer: if the process
// keeps them, the system need not clear them every time.
static void keep_memory(void) {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_TOP_PAD, 64 << 20);
#endif
}

int cmd_judge(int argc, char **argv) {
    options o = {.policy = "auto", .rate = 1e-9, .plugin = {.seconds = 30, .seed = 1}};
    o.traces = calloc((size_t)argc, sizeof *o.traces);
    if (o.traces == NULL) abort();
    command_parse_line(&argp, argc, argv, &o);
    keep_memory();
    int code = is_plugin(&o) ? judge_plugin(&o) : judge_all(&o);
    free(o.traces);
    return code;
}
