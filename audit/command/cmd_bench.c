// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof bench`: the speed of limits, kernels and the whole model, measured in one run and
// compared with the machine's limits. There is no verdict on time: the exit code tells whether it
// ran.
#include "audit/bench/bench.h"
#include "audit/command/command.h"
#include "audit/command/fastest.h"

#include "base/words.h"
#include "fast/engine/engine.h"
#include "fast/engine/memory.h"
#include "model/model.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    KEY_THREADS = 256,
    KEY_PROMPT,
    KEY_DECODE,
    KEY_DEPTH,
    KEY_BATCH,
    KEY_REPEAT,
    MOST_THREADS = 1024,
    MOST_TOKENS = 1 << 24
};

typedef struct arguments {
    sinkproof_bench bench;
    bool kernels, truth;
    const char *isa, *policy, *json;
} arguments;

static const struct argp_option argp_options[] = {
    {0, 0, 0, 0, "What is measured (without any: the kernels):", 1},
    {"kernels", KEPT(arguments, kernels), 0, 0, "The kernels, also when there is a model", 1},
    {"model", KEPT(arguments, bench.model), "MODEL", 0,
     "The whole model: decoding, prefill, batches", 1},
    {"truth", KEPT(arguments, truth), 0, 0,
     "Exact products of the truth, and the same by arb_mat_mul, arb_dot and mpfr_fma, on one "
     "thread",
     1},
    {"scaling", KEPT(arguments, bench.scaling), "AXIS", 0,
     "Seconds per token against context, batch or threads, as columns for gnuplot; the model is "
     "synthetic:gpt-oss-20b,layers=2 unless --model names one (context: the attention of one "
     "layer, and with --model decoding at each --depth)",
     1},
    {"only", KEPT(arguments, bench.only), "SUBSTRING", 0,
     "Only the cases whose id contains it; limits always", 1},
    {0, 0, 0, 0, "How:", 2},
    {"threads", KEY_THREADS, "N", 0, "Threads (default: as many as the process may use)", 2},
    {"isa", KEPT(arguments, isa), "NAME", 0,
     "Instruction set (default: SINKPROOF_ISA, or the fastest here, as `sinkproof info --cpu` "
     "measures it; where that is another for one token, the model runs on both, the kernels on "
     "that of many)",
     2},
    {"policy", KEPT(arguments, policy), "P", 0, "The model's numbers (default: bf16-operands)", 2},
    {"prompt", KEY_PROMPT, "N,N...", 0, "Lengths of prefill (default: 32,128,512)", 2},
    {"decode", KEY_DECODE, "N", 0, "Tokens that each decoding measures (default: 32)", 2},
    {"depth", KEY_DEPTH, "N,N...", 0,
     "Tokens in the cache before decoding (default: 0,4096; with --scaling powers of two up to "
     "4096)",
     2},
    {"batch", KEY_BATCH, "N,N...", 0, "Sequences decoded together (default: 4,16)", 2},
    {"repeat", KEY_REPEAT, "R", 0,
     "Times of each case, at most (default: 9; fewer where a case takes long)", 2},
    {"quick", KEPT(arguments, bench.quick), 0, 0,
     "Small shapes, a few seconds: does it run? Not: how fast is it?", 2},
    {0, 0, 0, 0, "Result:", 3},
    {"json", KEPT(arguments, json), "FILE|-", 0,
     "Write the result as JSON; with - nothing else is printed", 3},
    {0},
};

static const char documentation[] =
    "Measures the machine's limits (reading from memory, arithmetic of the instruction set), the "
    "kernels and the model, all in one run."
    "\v" HELP_MODEL_IS ".\n\n"
    "Of each case the median of R times is reported, with the least and the largest; the limit is "
    "the roof that the case stands under: \"memory\", the bytes that it must read at the bandwidth "
    "just measured; \"arithmetic\", its operations at the unit's peak; \"cache\", what it reads "
    "and writes at the speed of copying in the first-level cache. share = value / limit.\n\n"
    "A run is disturbed when the system took a processor away and the run's threads were at work "
    "for less than 15/16 of its time. Up to three times R runs are made for R undisturbed ones; "
    "disturbed ones are left out where three others remain. (A step of decoding is not repeated.) "
    "What a hypervisor takes is not seen.\n\n"
    "In JSON a row has id, value, unit, limit, share, roof, median and spread (seconds of one "
    "call; of 10^9 for limit.*), repeats (in the median), taken (all), disturbed (what of case, "
    "limit, share: the case's runs, its limit's, a share above 1), isa (A+B: A for passes of one "
    "token), mode, threads, processor. There is no verdict on "
    "time: the exit code is 0 when it ran, 2 for a wrong command line, 3 for a missing or "
    "malformed MODEL.";

static size_t parse_count(struct argp_state *state, const char *name, const char *text,
                          size_t least, size_t most) {
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || n < least || n > most)
        argp_error(state, "--%s %s: expected a number from %zu to %zu", name, text, least, most);
    return (size_t)n;
}

static void parse_list(struct argp_state *state, const char *name, const char *text, size_t least,
                       size_t most, sinkproof_bench_list *list) {
    char copy[512];
    if (strlen(text) >= sizeof copy)
        argp_error(state, "--%s: a list of %s", name, sinkproof_counted(strlen(text), "byte").text);
    snprintf(copy, sizeof copy, "%s", text);
    list->n = 0;
    for (char *at = copy, *comma; at != NULL; at = comma) {
        comma = strchr(at, ',');
        if (comma != NULL) *comma++ = '\0';
        if (list->n == SINKPROOF_BENCH_LIST)
            argp_error(state, "--%s: at most %d numbers", name, SINKPROOF_BENCH_LIST);
        else
            list->at[list->n++] = parse_count(state, name, at, least, most);
    }
}

static void check_scaling(struct argp_state *state, const char *axis) {
    if (strcmp(axis, "context") != 0 && strcmp(axis, "batch") != 0 && strcmp(axis, "threads") != 0)
        argp_error(state, "--scaling %s: expected context, batch or threads", axis);
}

// The place of a text option in the arguments, or NULL.
static error_t parse_option(int key, char *value, struct argp_state *state) {
    arguments *in = state->input;
    sinkproof_bench *b = &in->bench;
    if (key == KEPT(arguments, bench.scaling)) check_scaling(state, value);
    if (option_keep(in, key, value)) return 0;
    if (key == KEY_THREADS)
        b->threads = (int)parse_count(state, "threads", value, 1, MOST_THREADS);
    else if (key == KEY_PROMPT)
        parse_list(state, "prompt", value, 1, MOST_TOKENS, &b->prompt);
    else if (key == KEY_DECODE)
        b->decode = parse_count(state, "decode", value, 1, SINKPROOF_BENCH_REPEATS);
    else if (key == KEY_DEPTH)
        parse_list(state, "depth", value, 0, MOST_TOKENS, &b->depth);
    else if (key == KEY_BATCH)
        parse_list(state, "batch", value, 1, 4096, &b->batch);
    else if (key == KEY_REPEAT)
        b->repeat = parse_count(state, "repeat", value, 1, SINKPROOF_BENCH_REPEATS);
    else if (key == ARGP_KEY_ARG)
        argp_error(state, "unexpected '%s': a model is named by --model", value);
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

static int threads_here(void) {
    int n = 0;
#pragma omp parallel reduction(+ : n)
    n += 1;
    return n;
}

static void set_list(sinkproof_bench_list *list, size_t n, const size_t *at) {
    if (list->n > 0) return;
    list->n = n;
    memcpy(list->at, at, n * sizeof *at);
}

// Fills in the defaults.
static void fill_defaults(arguments *in) {
    static const size_t prompt[] = {32, 128, 512}, depth[] = {0, 4096}, batch[] = {4, 16};
    static const size_t quick_prompt[] = {8, 32}, quick_depth[] = {0, 16}, quick_batch[] = {2};
    static const size_t scaling_depth[] = {1, 4, 16, 64, 128, 256, 512, 1024, 2048, 4096};
    sinkproof_bench *b = &in->bench;
    if (b->threads == 0) b->threads = threads_here();
    if (b->repeat == 0) b->repeat = b->quick ? 3 : 9;
    if (b->decode == 0) b->decode = b->quick ? 4 : 32;
    if (b->scaling != NULL && !b->quick)
        set_list(&b->depth, sizeof scaling_depth / sizeof scaling_depth[0], scaling_depth);
    set_list(&b->prompt, b->quick ? 2 : 3, b->quick ? quick_prompt : prompt);
    set_list(&b->depth, 2, b->quick ? quick_depth : depth);
    set_list(&b->batch, b->quick ? 1 : 2, b->quick ? quick_batch : batch);
}

static int refuse_usage(const sinkproof_error *error) {
    fprintf(stderr, "sinkproof bench: %s\n", error->text);
    return EXIT_USAGE;
}

// The size of the largest cache as the system reports it; 32 MiB if it does not.
static size_t last_level_bytes(void) {
    long bytes = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE
    bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    return bytes > 0 ? (size_t)bytes : (size_t)32 << 20;
}

// Room for weights larger than the caches, or only for the bandwidth when just a model is measured.
static void plan_room(sinkproof_bench *b, bool kernels) {
    b->last_level = last_level_bytes();
    b->arena_bytes = (size_t)(b->quick ? 48 : kernels ? 1280 : 256) << 20;
}

static bool make_room(sinkproof_bench *b, sinkproof_pages *pages, sinkproof_error *error) {
    if (!sinkproof_pages_new(b->arena_bytes, SINKPROOF_LARGE_PAGES, "the weights under test", pages,
                             error))
        return false;
    b->arena = pages->data;
    // A page never written is the system's one page of zeros.
    memset(b->arena, 1, b->arena_bytes);
    b->scratch_t = calloc((size_t)b->threads, sizeof(uint8_t *));
    if (b->scratch_t == NULL)
        return sinkproof_fail(error, "no memory for %s",
                              sinkproof_counted((size_t)b->threads, "thread").text);
    for (int t = 0; t < b->threads; t++) {
        b->scratch_t[t] = aligned_alloc(64, SINKPROOF_SCRATCH);
        if (b->scratch_t[t] == NULL)
            return sinkproof_fail(error, "no memory for %s",
                                  sinkproof_counted((size_t)b->threads, "thread").text);
        memset(b->scratch_t[t], 0, SINKPROOF_SCRATCH);
    }
    return true;
}

static bool run_cases(const arguments *in, sinkproof_bench *b, sinkproof_error *error) {
    if (in->truth && !sinkproof_bench_truth(b, error)) return false;
    if (in->kernels) {
        sinkproof_bench_products(b);
        sinkproof_bench_stages(b);
        sinkproof_bench_attention(b);
    }
    return b->model == NULL || sinkproof_bench_model(b, error);
}

// Whether --only selects any case; answered before anything is measured or packed.
static bool matches_any(const arguments *in, sinkproof_bench *b, sinkproof_error *error) {
    if (b->only == NULL || b->scaling != NULL) return true;
    b->looks = true;
    if (!run_cases(in, b, error)) return false;
    b->looks = false;
    return b->matched > 0 ||
           sinkproof_fail(error, "--only %s: no case has that in its id", b->only);
}

static bool run_benchmarks(const arguments *in, sinkproof_bench *b, sinkproof_error *error) {
    sinkproof_model *model;
    if (b->model != NULL) { // its errors are reported before anything is measured
        if (!sinkproof_model_open(b->model, &model, error)) return false;
        sinkproof_model_close(model);
    }
    sinkproof_bench_limits(b);
    if (b->scaling != NULL) return sinkproof_bench_scaling(b, error);
    return run_cases(in, b, error);
}

// Whether standard output holds JSON and nothing else.
static bool is_json_alone(const arguments *in) {
    return in->json != NULL && strcmp(in->json, "-") == 0;
}

static int report_benchmarks(arguments *in) {
    sinkproof_bench *b = &in->bench;
    if (b->scaling != NULL && !is_json_alone(in)) sinkproof_bench_print_columns(b);
    return exit_with_results(in->json, "bench", EXIT_HOLDS, json_incref(b->rows));
}

static void show_bench_progress(void *context, const char *what, size_t done, size_t total) {
    (void)context;
    progress_show("bench", what, done, total);
}

int cmd_bench(int argc, char **argv) {
    const struct argp argp = {
        .options = argp_options, .parser = parse_option, .doc = documentation};
    arguments in = {.policy = "bf16-operands"};
    sinkproof_bench *b = &in.bench;
    b->progress = show_bench_progress;
    sinkproof_error error;
    command_parse_line(&argp, argc, argv, &in);
    fill_defaults(&in);
    if (!sinkproof_policy_parse(in.policy, &b->policy, &error)) return refuse_usage(&error);
    fastest_sets fastest;
    if (!fastest_choose_set(in.isa, &fastest, &error)) return refuse_usage(&error);
    b->table = fastest.of_many;
    b->table_of_one = fastest.of_one;
    if (!sinkproof_engine_serves(b->table, &b->policy, &error)) return refuse_usage(&error);
    fastest_say_chosen("bench", &fastest, &b->policy);
    in.kernels = in.kernels || (b->model == NULL && !in.truth);
    sinkproof_pages pages = {0};
    b->rows = json_array();
    b->shows = b->scaling == NULL && !is_json_alone(&in);
    plan_room(b, in.kernels);
    if (!matches_any(&in, b, &error)) {
        json_decref(b->rows);
        return refuse_usage(&error);
    }
    bool good = make_room(b, &pages, &error) && run_benchmarks(&in, b, &error);
    sinkproof_bench_say(NULL);
    int code = good ? report_benchmarks(&in) : exit_bad_input("bench", &error);
    for (int t = 0; b->scratch_t != NULL && t < b->threads; t++) free(b->scratch_t[t]);
    free(b->scratch_t);
    sinkproof_pages_free(&pages);
    json_decref(b->rows);
    return code;
}
