// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof truth`: certified enclosures of every point of a run, end to end from the tokens or
// operation by operation from an engine's trace. It gives no verdict on an engine: it reports the
// distance to the truth; `sinkproof judge` decides what honest rounding may cost.
#include "audit/command/batch.h"
#include "audit/command/command.h"
#include "audit/command/cpu.h"
#include "audit/command/kept.h"
#include "audit/command/text.h"
#include "audit/command/truth_layers.h"
#include "audit/command/truth_plan.h"
#include "audit/command/truth_precision.h"
#include "audit/command/truth_print.h"
#include "audit/command/truth_sequences.h"
#include "audit/trace/trace_model.h"
#include "audit/verify/truth_bits.h"
#include "audit/verify/truth_study.h"
#include "base/words.h"
#include "model/json_number.h"

#include <argp.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// --points layers: what each layer passes on, its choice of experts, and the logits.
#define LAYERS_POINTS "T0,M3,M12,F1,F2"

enum { KEY_BITS = 256, KEY_CERTIFIED, KEY_CHECK, PROMPTS, MOST_BITS = 1 << 20, MOST_REPEATS = 2 };

typedef struct options {
    const char *model, *tokens, *local, *route, *trace, *points, *work, *json;
    const char *out, *shard;
    work_shard share;
    input_list prompts;
    long bits, certified, check;
    bool any_model, plan;
} options;

static const struct argp_option option_table[] = {
    HELP_TOKENS(KEPT(options, tokens), ""),
    HELP_PROMPTS(PROMPTS),
    HELP_OUT(KEPT(options, out)),
    HELP_SHARD(KEPT(options, shard)),
    {"bits", KEY_BITS, "N", 0,
     "working precision (default: what the depth is estimated to lose and those of --certified "
     "more, 256 at least; raised while a run leaves fewer, or anything ambiguous)",
     0},
    {"certified", KEY_CERTIFIED, "N", 0, "bits that each logit is to have (default: 64)", 0},
    {"check", KEY_CHECK, "N", 0, "check N results of each product with GMP integers", 0},
    {"plan", KEPT(options, plan), 0, 0,
     "what the products will do at this precision: the spread of the weights, the slices; with "
     "--tokens also the memory of the run; nothing is run",
     0},
    {"local", KEPT(options, local), "TRACE", 0,
     "the truth of each operation from this trace's own inputs, of several sequences each by "
     "itself",
     0},
    {"route", KEPT(options, route), "TRACE", 0,
     "end to end, but with the experts (M3) that this trace chose; without --tokens of the trace's "
     "own, of several sequences each by itself",
     0},
    HELP_ANY_MODEL(KEPT(options, any_model)),
    {"trace", KEPT(options, trace), "OUT", 0,
     "write midpoints (F64) and NAME.radius as safetensors, for judge --truth", 0},
    {"points", KEPT(options, points), "LIST", 0,
     "of --trace: only these points, as A9,03.M8,A4; layers stands for " LAYERS_POINTS, 0},
    {"work", KEPT(options, work), "FILE", 0,
     "keep the state of the run in FILE and FILE.points after each layer (default: OUT.work of "
     "--trace): the same command goes on from there after it was killed",
     0},
    {"json", KEPT(options, json), "FILE", 0, "write the result as JSON (- is stdout)", 0},
    {0}};

static error_t parse_option(int key, char *argument, struct argp_state *state) {
    options *o = state->input;
    if (option_keep(o, key, argument)) return 0;
    switch (key) {
    case KEY_BITS:
        o->bits = option_number(state, "bits", argument, 32, MOST_BITS);
        return 0;
    case KEY_CERTIFIED:
        o->certified = option_number(state, "certified", argument, 1, MOST_BITS);
        return 0;
    case KEY_CHECK:
        o->check = option_number(state, "check", argument, 1, MOST_BITS);
        return 0;
    case PROMPTS:
        inputs_add_word(&o->prompts, INPUT_PROMPT, argument);
        return 0;
    case ARGP_KEY_ARG:
        if (o->model != NULL) argp_error(state, "one MODEL, not also \"%s\"", argument);
        o->model = argument;
        return 0;
    case ARGP_KEY_END:
        if (o->model == NULL) argp_error(state, "MODEL is missing");
        if (o->local != NULL && (o->tokens != NULL || o->route != NULL))
            argp_error(state, "--local takes tokens and experts from its trace");
        if (o->prompts.n > 0 && (o->tokens != NULL || o->local != NULL || o->route != NULL ||
                                 o->trace != NULL || o->work != NULL))
            argp_error(state, "--prompts takes the place of --tokens, and has no trace");
        batch_check_prompts(state, o->shard, &(batch){.out = o->out, .json = o->json}, &o->prompts,
                            &o->share);
        if (o->points != NULL && o->trace == NULL) argp_error(state, "--points needs --trace");
        if (o->points != NULL && strcmp(o->points, "layers") == 0) o->points = LAYERS_POINTS;
        if (o->bits > 0 && o->certified > 0)
            argp_error(state, "--certified chooses the precision, --bits states it: one of them");
        if (o->plan && (o->prompts.n > 0 || o->local != NULL || o->route != NULL ||
                        o->trace != NULL || o->work != NULL))
            argp_error(state, "--plan runs nothing: it takes no prompts and no trace");
        if (o->certified == 0) o->certified = TRUTH_BITS_LEFT;
        if (o->plan) return 0;
        if (o->local == NULL && o->route == NULL && o->tokens == NULL && o->prompts.n == 0)
            argp_error(state, "--tokens is missing");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp parser = {
    option_table,
    parse_option,
    "MODEL",
    "Certified enclosures of every point of a run, over the reals.\v" HELP_MODEL_IS ".\n\n"
    "Exit: 0 routing, radii and argmax certified; 1 --check found a ball that does not enclose; 2 "
    "usage; 3 bad input; 4 something is ambiguous or without bound. Of several prompts the "
    "gravest: 1, then 3, 4, 0.",
    NULL,
    NULL,
    NULL};

// The result of the run: the last token's argmax and the account of the routing.
typedef struct outcome {
    bool certified, argmax_certified;
    size_t argmax;
    double worst_relative_log2; // of every logit
    arb_ptr gap;                // [1]
    truth_argmaxes every;       // token's
} outcome;

static outcome conclude_truth(const truth_study *study, const sinkproof_truth_result *result,
                              slong bits) {
    outcome o = {.worst_relative_log2 = study->points[TRACE_F2].relative_log2,
                 .gap = _arb_vec_init(1),
                 .every = truth_count_argmaxes(result, bits)};
    o.argmax = sinkproof_truth_argmax(result->logits_nv + (result->n - 1) * result->vocab,
                                      result->vocab, &o.argmax_certified, o.gap, bits);
    size_t infinite = 0;
    for (size_t point = 0; point < TRACE_POINTS; point++) infinite += study->points[point].infinite;
    o.certified = infinite == 0 && result->routing.ambiguous == 0 && o.argmax_certified;
    return o;
}

// The bits to add: those that the worst logit lacks, and 64 if something is ambiguous. A chosen
// precision is raised MOST_REPEATS times: two equal numbers in balls stay ambiguous at any.
static long bits_to_add(const options *o, const truth_precision *p, const outcome *end,
                        size_t repeats) {
    if (!p->chosen || repeats >= MOST_REPEATS) return 0;
    double lacks = (double)o->certified + fmin(end->worst_relative_log2, 1024);
    if (!(lacks > 0) && !end->certified) lacks = 1;
    if (!(lacks > 0)) return 0;
    long more = 64 * (long)ceil(lacks / 64);
    return o->bits + more <= MOST_BITS ? more : 0;
}

// Explains a run in which all precision was lost.
static void say_unknown(FILE *out, const options *o, const truth_study *study) {
    size_t layer = sinkproof_study_unknown_layer(study);
    if (layer == study->config->n_layers) return;
    fprintf(out,
            "nothing is certified at the end of layer %zu: of no element of M12 the sign is known; "
            "--bits %ld would do (estimated)\n",
            layer, sinkproof_study_bits_wanted(study, o->bits));
}

static void print_text(FILE *out, const options *o, const truth_study *study,
                       const sinkproof_truth_result *result, const outcome *end) {
    fprintf(out, "truth of %s, %s, %ld bits, %s; every number is enclosed\n\n", o->model,
            sinkproof_counted(study->n, "token").text, o->bits,
            o->local != NULL ? "operation by operation" : "end to end");
    if (o->local != NULL) {
        truth_print_distances(out, study);
    } else {
        char relative[32];
        truth_print_points(out, study);
        truth_power_of_two(relative, end->worst_relative_log2);
        truth_print_logits(out, result->logits_nv + (result->n - 1) * result->vocab, result->vocab,
                           o->bits);
        fprintf(out, "worst relative radius of a logit: %s\n", relative);
    }
    fprintf(out, "argmax of the last token: %zu, %s", end->argmax,
            end->argmax_certified ? "certified" : "AMBIGUOUS");
    truth_print_ball(out, ", gap ", end->gap);
    fprintf(out, "\n");
    if (result->n > 1) truth_print_argmaxes(out, &end->every);
    if (o->local != NULL && result->routing.choices > 0)
        fprintf(out, "routing by the engine's own router logits where it traced them\n");
    truth_print_routing(out, &result->routing);
    truth_print_checks(out, &result->checks);
    say_unknown(out, o, study);
    if (o->trace != NULL)
        fprintf(out, "%s: %s with midpoints and radii, %.3g MiB\n", o->trace,
                sinkproof_counted(study->n_kept, "tensor").text,
                (double)sinkproof_study_bytes(study) / (1 << 20));
}

static json_t *precision_json(const options *o, const truth_precision *p,
                              const truth_study *study) {
    size_t layer = sinkproof_study_unknown_layer(study);
    bool all = layer == study->config->n_layers;
    double radius = study->points[TRACE_F2].radius_log2;
    return json_pack("{s:s, s:s, s:b, s:s, s:I, s:b, s:I, s:o, s:o, s:o, s:I}", "id",
                     "model.forward", "what", "bits lost on the way", "ok", all, "label",
                     "estimated", "bits", (json_int_t)o->bits, "chosen", p->chosen, "layers",
                     (json_int_t)p->layers, "lost", sinkproof_number_json(p->lost), "measured",
                     sinkproof_number_json(radius + (double)o->bits), "unknown_from_layer",
                     all ? json_null() : json_integer((json_int_t)layer), "bits_wanted",
                     (json_int_t)sinkproof_study_bits_wanted(study, o->bits));
}

static json_t *make_rows(const options *o, const truth_precision *p, const truth_study *study,
                         const sinkproof_truth_result *result, const outcome *end) {
    const sinkproof_truth_routing *routing = &result->routing;
    json_t *results = truth_points_json(study);
    json_array_append_new(results,
                          json_pack("{s:s, s:s, s:b, s:I, s:o, s:o, s:I}", "id", "model.forward",
                                    "what", "argmax of the last token", "ok", end->argmax_certified,
                                    "argmax", (json_int_t)end->argmax, "gap",
                                    truth_enclosed_json(end->gap), "worst_relative_radius_log2",
                                    sinkproof_number_json(end->worst_relative_log2), "bits",
                                    (json_int_t)o->bits));
    json_array_append_new(results, truth_argmaxes_json(&end->every));
    json_array_append_new(results, precision_json(o, p, study));
    if (result->checks.products > 0)
        json_array_append_new(results, truth_checks_json(&result->checks));
    if (routing->choices > 0) json_array_append_new(results, truth_routing_json(routing));
    return results;
}

// Takes the tokens from the command line or from the trace.
static bool find_tokens(const options *o, const char *said, const sinkproof_config *config,
                        const sinkproof_trace *trace, int32_t **tokens_n, size_t *n,
                        sinkproof_error *error) {
    if (o->local == NULL && said[0] != '\0') {
        if (!command_tokens_from_text(said, o->model, config->vocab, tokens_n, n, error))
            return false;
        if (trace == NULL || sinkproof_trace_length(trace) == *n) return true;
        free(*tokens_n);
        return sinkproof_fail(error, "%s: expected %s, found %zu", o->route,
                              sinkproof_counted(*n, "token").text, sinkproof_trace_length(trace));
    }
    *n = sinkproof_trace_length(trace);
    *tokens_n = malloc((*n + 1) * sizeof **tokens_n);
    if (*tokens_n == NULL) abort();
    memcpy(*tokens_n, sinkproof_trace_tokens(trace), *n * sizeof **tokens_n);
    return true;
}

// The model, and the trace of --local or --route. Of several sequences each is a prompt.
typedef struct truths {
    const options *o;
    const sinkproof_model *model;
    const sinkproof_trace *trace;
    sinkproof_trace **sequences; // of o->prompts; NULL: the trace is one
} truths;

// Whether stdout is for the JSON alone. The text of a prompt is made all the same: it may be kept.
static bool is_quiet(const options *o) {
    return o->prompts.n == 0 && o->json != NULL && strcmp(o->json, "-") == 0;
}

static json_t *make_result(const options *o, const truth_precision *p, const truth_study *study,
                           const sinkproof_truth_result *result, const outcome *end, FILE *out) {
    int code = result->checks.broken > 0 ? EXIT_BUG
               : end->certified          ? EXIT_HOLDS
                                         : EXIT_INCONCLUSIVE;
    char said[128];
    bool quiet = is_quiet(o);
    snprintf(said, sizeof said, "argmax %zu, %s", end->argmax,
             end->certified ? "certified" : "not all of it certified");
    if (!quiet) print_text(out, o, study, result, end);
    if (quiet) say_unknown(stderr, o, study);
    return json_pack("{s:i, s:s, s:o}", "exit", code, "said", said, "results",
                     make_rows(o, p, study, result, end));
}

static truth_certificate certify(const options *o, const sinkproof_truth_result *result,
                                 const outcome *end) {
    return (truth_certificate){.from = o->local != NULL   ? TRUTH_FROM_TRACE
                                       : o->route != NULL ? TRUTH_FROM_CHOICES
                                                          : TRUTH_FROM_TOKENS,
                               .bits = o->bits,
                               .tokens = end->every.n,
                               .argmaxes = end->every.certified,
                               .choices = result->routing.choices,
                               .open_choices = result->routing.ambiguous,
                               .relative_log2 = end->worst_relative_log2,
                               .checks = result->checks};
}

// One walk at o->bits; *more: 0, or the bits to add before the next one, and then no result.
static json_t *study_once(const truths *t, const options *o, const truth_precision *p, size_t n,
                          const int32_t *tokens_n, truth_work *work, long *more, FILE *out,
                          sinkproof_error *error) {
    truth_study study;
    truth_store store = {.bits = 0};
    sinkproof_study_init(&study, sinkproof_model_config(t->model), t->trace, n, o->local != NULL,
                         o->trace != NULL);
    study.points_kept = o->points;
    *more = 0;
    json_t *made = NULL;
    sinkproof_truth_result result;
    bool begun = work->path == NULL || sinkproof_work_begin(work, &study, &store, error);
    study.kept_file = work->points;
    sinkproof_study_keep_done(&study, store.state.layers);
    truth_layers layers = truth_layers_begin(t->model, work, &study, store.state.layers);
    study.layer = truth_layer_ends;
    study.context = &layers;
    sinkproof_truth_hooks hooks = sinkproof_study_hooks(&study);
    sinkproof_truth_request request = {.model = t->model,
                                       .n = n,
                                       .tokens_n = tokens_n,
                                       .bits = o->bits,
                                       .check_rows = (size_t)o->check,
                                       .threads = (size_t)cpu_processors(),
                                       .hooks = &hooks,
                                       .start = &store.state};
    if (begun && sinkproof_truth_forward(&request, &result, error)) {
        outcome end = conclude_truth(&study, &result, o->bits);
        *more = bits_to_add(o, p, &end, work->repeats);
        truth_certificate certificate = certify(o, &result, &end);
        if (*more == 0 &&
            (o->trace == NULL ||
             sinkproof_study_write(&study, o->trace, tokens_n, t->model, &certificate, error)))
            made = make_result(o, p, &study, &result, &end, out);
        _arb_vec_clear(end.gap, 1);
        sinkproof_truth_result_clear(&result);
    }
    truth_layers_end();
    sinkproof_store_clear(&store, &study);
    sinkproof_study_clear(&study);
    return made;
}

// Opens the work file of --work or --trace, if there is one. The precision is that of a run before.
static bool open_work(const truths *t, options *o, const truth_precision *p, size_t n,
                      const int32_t *tokens_n, truth_work *work, sinkproof_error *error) {
    truth_asked asked = {.of = o->local != NULL ? "local" : "route",
                         .points = o->trace == NULL    ? "none"
                                   : o->points == NULL ? "all"
                                                       : o->points,
                         .trace = t->trace,
                         .bits = o->bits,
                         .certified = p->chosen ? o->certified : 0,
                         .check = o->check};
    const char *path = o->work != NULL ? o->work : o->trace;
    if (path == NULL) return true;
    char *identity = truth_identity(&asked, t->model, n, tokens_n, error);
    if (identity == NULL) return false;
    char *own = malloc(strlen(path) + sizeof ".work");
    if (own == NULL) abort();
    sprintf(own, "%s%s", path, o->work != NULL ? "" : ".work");
    bool good =
        sinkproof_work_open(work, own, identity, sinkproof_model_config(t->model), n, error);
    free(own);
    free(identity);
    if (good && work->layers > 0) {
        fprintf(stderr, "sinkproof truth: %s: goes on behind layer %zu, at %s\n", work->path,
                work->layers - 1, sinkproof_counted(work->bits, "bit").text);
        o->bits = (long)work->bits;
    }
    work->bits = (size_t)o->bits;
    return good;
}

// Studies some tokens; the text goes to `out`.
static json_t *study_tokens(const truths *t, options *o, size_t n, const int32_t *tokens_n,
                            FILE *out, sinkproof_error *error) {
    const sinkproof_config *config = sinkproof_model_config(t->model);
    truth_precision p =
        truth_choose_bits(config, o->local != NULL ? t->trace : NULL, o->certified, &o->bits);
    truth_work work = {.path = NULL};
    bool quiet = is_quiet(o);
    json_t *made = NULL;
    if (!open_work(t, o, &p, n, tokens_n, &work, error)) return NULL;
    if (!quiet || truth_bits_are_few(&p, o->bits))
        truth_say_precision(quiet ? stderr : out, &p, config, o->bits);
    for (long more = 1; more > 0 && truth_fits_in_memory(t->model, n, o->bits, error);) {
        fflush(out);
        made = study_once(t, o, &p, n, tokens_n, &work, &more, out, error);
        if (more > 0 && !quiet)
            fprintf(
                out,
                "%ld bits leave fewer than %ld of a logit, or a choice open: repeated with %ld\n",
                o->bits, o->certified, o->bits + more);
        o->bits += more;
        work.bits = (size_t)o->bits;
        work.repeats++;
    }
    sinkproof_work_close(&work);
    return made;
}

static json_t *study_prompt(void *context, const batch_unit *unit, bool page,
                            sinkproof_error *error) {
    truths own = *(const truths *)context, *t = &own;
    options o = *t->o; // the bits are chosen for each prompt
    if (t->sequences != NULL) own.trace = t->sequences[unit->input - o.prompts.at];
    int32_t *tokens_n = NULL;
    size_t n = 0, length;
    char *text = NULL;
    (void)page;
    if (!find_tokens(&o, unit->input->said, sinkproof_model_config(t->model), t->trace, &tokens_n,
                     &n, error))
        return NULL;
    FILE *kept = o.prompts.n > 0 ? open_memstream(&text, &length) : NULL; // else as it comes
    if (kept != NULL && t->sequences != NULL) fprintf(kept, "%s\n", unit->input->name);
    json_t *made = study_tokens(t, &o, n, tokens_n, kept != NULL ? kept : stdout, error);
    if (kept != NULL && fclose(kept) != 0) abort();
    if (made != NULL) json_object_set_new(made, "text", text_json(kept != NULL ? text : ""));
    free(text);
    free(tokens_n);
    return made;
}

// What FLINT calls when an allocation fails.
static __attribute__((noreturn)) void out_of_memory(void) {
    fprintf(stderr, "sinkproof truth: out of memory\n");
    exit(EXIT_BAD_INPUT);
}

int cmd_truth(int argc, char **argv) {
    flint_set_abort(out_of_memory);
    options o = {.bits = 0}; // 0: depends on the depth
    command_parse_line(&parser, argc, argv, &o);
    sinkproof_error error = {""};
    sinkproof_model *model = NULL;
    sinkproof_trace *trace = NULL;
    sinkproof_note note = {""};
    const char *path = o.local != NULL ? o.local : o.route;
    json_t *how = NULL;
    int code = EXIT_BAD_INPUT;
    bool done =
        sinkproof_model_open(o.model, &model, &error) &&
        sinkproof_trace_list_check(o.points, sinkproof_model_config(model)->n_layers, &error);
    if (done && path != NULL)
        done = sinkproof_trace_open_of(path, model, o.any_model, &trace, &error) &&
               sinkproof_trace_model_note(trace, model, &note, &error);
    truths all = {&o, model, trace, NULL};
    bool alone = o.trace != NULL || o.work != NULL || o.tokens != NULL;
    if (done && path != NULL)
        done = truth_sequences_open(trace, sinkproof_model_config(model), alone, &all.sequences,
                                    &o.prompts, &error);
    if (done && o.plan) {
        size_t n = 0;
        int32_t *tokens_n = NULL;
        truth_choose_bits(sinkproof_model_config(model), NULL, o.certified, &o.bits);
        done = o.tokens == NULL || find_tokens(&o, o.tokens, sinkproof_model_config(model), NULL,
                                               &tokens_n, &n, &error);
        free(tokens_n);
        if (done) code = truth_plan_print(model, o.model, n, o.bits, o.json);
    } else if (done) {
        note_tell(note.text, o.json == NULL || strcmp(o.json, "-") != 0);
        how = kept_how("truth", o.model, model, "",
                       json_pack("{s:I, s:I}", "bits", (json_int_t)o.bits, "certified",
                                 (json_int_t)o.certified),
                       &error);
        done = how != NULL;
        const batch many = {.command = "truth",
                            .title = "sinkproof: the truth",
                            .json = o.json,
                            .work = study_prompt,
                            .context = &all,
                            .out = o.out,
                            .how = how,
                            .shard = o.share};
        if (done) code = batch_prompts(&many, o.tokens != NULL ? o.tokens : "", &o.prompts);
        json_decref(how);
    }
    truth_sequences_close(trace, all.sequences);
    inputs_free(&o.prompts);
    if (trace != NULL) sinkproof_trace_close(trace);
    if (model != NULL) sinkproof_model_close(model);
    flint_cleanup();
    return done ? code : exit_bad_input("truth", &error);
}
