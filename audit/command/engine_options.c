// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The options --engine, --policy, --threads, --isa, --streamed, --packed.
#include "audit/command/engine_options.h"

#include "base/words.h"
#include "model/architecture.h"
#include "model/sinks.h"
#include "proofs/exact/parameters.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 1024, KEY_THREADS = 512 };

static const struct argp_option options[] = {
    {"engine", KEPT(engine_choice, engine), "NAME", 0, "(complete_help lists them)", 0},
    {"policy", KEPT(engine_choice, policy), "P", 0,
     "What rounds where, real-f64 (ref's default), f32 (that of fast and lanes) or another of "
     "POLICIES, each with overrides",
     0},
    {"threads", KEY_THREADS, "N", 0,
     "fast: threads (as many as processors, or as OMP_NUM_THREADS says); the same bits", 0},
    {"isa", KEPT(engine_choice, isa), "NAME", 0,
     "fast: instruction set (SINKPROOF_ISA, or what `sinkproof info --cpu` measures to be the "
     "fastest here; the same bits but for amx)",
     0},
    {"streamed", KEPT(engine_choice, streamed), 0, 0,
     "fast: keep one layer's weights in memory at a time, for models larger than it", 0},
    {"packed", KEPT(engine_choice, packed), "FILE", 0,
     "fast: keep the packed weights in FILE: written the first time, mapped afterwards", 0},
    {0}};

size_t option_count(struct argp_state *state, const char *name, const char *text,
                    unsigned long long most) {
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || n == 0 || n > most)
        argp_error(state, "--%s %s: expected a number from 1 to %llu", name, text, most);
    return (size_t)n;
}

double option_epsilon(struct argp_state *state, const char *text) {
    char *end;
    double epsilon = strtod(text, &end);
    if (end == text || *end != '\0' || !(epsilon >= 0 && epsilon < 1))
        argp_error(state, "--epsilon %s: expected a number from 0 to less than 1", text);
    return epsilon;
}

// The first engine of the list is the default.
static char *complete_help(int key, const char *text, void *input) {
    if (key != KEPT(engine_choice, engine)) return help_list_policies(key, text, input);
    char list[512] = "";
    size_t used = 0;
    const char *const *names = sinkproof_runner_names();
    for (size_t i = 0; names[i] != NULL && used < sizeof list; i++) {
        const char *about = i == 0 ? "the default" : sinkproof_runner_about(names[i]);
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s%s%s%s", i == 0 ? "" : ", ",
                                 names[i], about != NULL ? " (" : "", about != NULL ? about : "",
                                 about != NULL ? ")" : "");
    }
    return strdup(list); // argp frees it
}

// Refuses options that need another option.
static void check_engine_options(engine_choice *o, struct argp_state *state) {
    const char *needing = o->threads > 0   ? "threads"
                          : o->isa != NULL ? "isa"
                          : o->streamed    ? "streamed"
                                           : "packed";
    bool tuned = o->threads > 0 || o->isa != NULL || o->streamed || o->packed != NULL;
    o->unnamed = o->engine == NULL;
    if (o->unnamed) o->engine = sinkproof_runner_names()[0];
    if (!sinkproof_runner_is_known(o->engine))
        argp_error(
            state, "unknown engine '%s': %sknown are %s", o->engine,
            sinkproof_guess_in_list(o->engine, sinkproof_runner_list_names(false, " and ").text)
                .text,
            sinkproof_runner_list_names(false, " and ").text);
    if (tuned && !sinkproof_runner_is_tuned(o->engine))
        argp_error(state, "--%s needs --engine %s", needing,
                   sinkproof_runner_list_names(true, " or ").text);
    if (o->packed != NULL && o->streamed)
        argp_error(state, "--packed keeps all layers, --streamed one: expected one of them");
}

static error_t parse_engine_option(int key, char *argument, struct argp_state *state) {
    engine_choice *o = state->input;
    if (option_keep(o, key, argument)) return 0;
    if (key == KEY_THREADS)
        o->threads = option_count(state, "threads", argument, MAX_THREADS);
    else if (key == ARGP_KEY_END)
        check_engine_options(o, state);
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

const struct argp engine_parser = {
    .options = options, .parser = parse_engine_option, .help_filter = complete_help};

void engine_choose_suited(engine_choice *o, const sinkproof_config *config, size_t n) {
    const double products = 0x1p35; // weights times tokens: some 20 s of the reference
    engine_choice fast = {.engine = "fast", .policy = o->policy, .streamed = true};
    sinkproof_policy policy;
    sinkproof_error error;
    double met =
        (double)(sinkproof_parameters_count(config).active - config->vocab * config->hidden);
    if (!o->unnamed || met * (double)n < products || config->architecture != SINKPROOF_GPT_OSS ||
        !sinkproof_sinks_are_constant(config) || !engine_settle_policy(&fast, &policy, &error))
        return;
    fast.unnamed = true;
    *o = fast;
}

bool engine_settle_policy(engine_choice *o, sinkproof_policy *policy, sinkproof_error *error) {
    if (o->policy == NULL) o->policy = sinkproof_runner_policy(o->engine);
    // for every later choice of a set in this process
    if (o->isa != NULL) setenv("SINKPROOF_ISA", o->isa, 1);
    return sinkproof_policy_parse(o->policy, policy, error) &&
           sinkproof_runner_serves(o->engine, policy, error) &&
           (!sinkproof_runner_is_tuned(o->engine) || fastest_choose_set(NULL, &o->fastest, error));
}

static const char *loading; // the waiting command: one at a time

static void show_loading(void *context, const char *what, size_t done, size_t total) {
    (void)context;
    progress_show(loading, what, done, total);
}

sinkproof_runner_options engine_runner_options(const engine_choice *o, size_t max_tokens) {
    return (sinkproof_runner_options){.engine = o->engine,
                                      .threads = (int)o->threads,
                                      .streamed = o->streamed,
                                      .packed = o->packed,
                                      .max_tokens = max_tokens,
                                      .kernels = o->fastest.of_many,
                                      .kernels_of_one = o->fastest.of_one,
                                      .progress = show_loading};
}

bool engine_runner_start(const char *command, const engine_choice *o, const sinkproof_model *model,
                         const sinkproof_policy *policy, size_t max_tokens,
                         sinkproof_runner **runner, sinkproof_error *error) {
    sinkproof_runner_options how = engine_runner_options(o, max_tokens);
    double start = clock_seconds();
    loading = command;
    if (!sinkproof_runner_new(model, policy, &how, runner, error)) return false;
    if (sinkproof_runner_isa(*runner) == NULL) return true;
    fprintf(stderr, "sinkproof %s: engine %s, %s, threads %d, %zu MiB of weights %s in %.2f s\n",
            command, o->engine, sinkproof_runner_isa(*runner), sinkproof_runner_threads(*runner),
            sinkproof_runner_weight_bytes(*runner) >> 20,
            o->streamed         ? "to stream, ready"
            : o->packed != NULL ? "ready"
                                : "packed",
            clock_seconds() - start);
    fastest_say_chosen(command, &o->fastest, policy);
    return true;
}
