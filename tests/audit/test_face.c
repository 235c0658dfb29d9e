// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The public face beside the rooms' own headers, so that the compiler holds their declarations
// equal; stages replaced in every engine; arrays made a trace; and what is refused, in a sentence.
#include "audit/engine/runner.h"
#include "audit/judge/judge.h"
#include "audit/sinkproof.h"
#include "audit/trace/trace_points.h"
#include "audit/version.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert((int)SINKPROOF_RANK == (int)SINKPROOF_MAX_RANK, "one rank");

enum { N = 12 };
static sinkproof_model *model;
static const sinkproof_config *config;
static int32_t tokens[N];
static sinkproof_error error;

static void need(bool good) {
    if (good) return;
    printf("Bail out! %s\n", error.text);
    exit(1);
}

// Does the last sentence have this in it?
static bool says(const char *what) {
    bool good = strstr(error.text, what) != NULL;
    if (!good) note("says: %s", error.text);
    return good;
}

static sinkproof_run *new_run(const char *engine, size_t chunk) {
    sinkproof_run *run;
    sinkproof_run_options how = {.size = sizeof how, .threads = 2, .chunk = chunk};
    need(sinkproof_run_new(model, engine, "f32", &how, &run, &error));
    return run;
}

static sinkproof_trace *trace_of(sinkproof_run *run) {
    sinkproof_trace *trace;
    need(sinkproof_run_trace(run, N, tokens, NULL, NULL, &trace, &error));
    return trace;
}

static sinkproof_ruling *ruling_of(const sinkproof_trace *trace) {
    sinkproof_ruling *ruling;
    sinkproof_trial_options how = {
        .size = sizeof how, .policy = "f32", .local = true, .no_hint = true};
    need(sinkproof_judge_trace(model, trace, &how, &ruling, &error));
    return ruling;
}

// Tensors of a that b has too, and with other bits.
static size_t apart(const sinkproof_trace *a, const sinkproof_trace *b, size_t *shared) {
    size_t other = 0;
    sinkproof_view x = {.size = sizeof x}, y = {.size = sizeof y};
    for (size_t i = *shared = 0; sinkproof_trace_at(a, i, &x); i++) {
        if (!sinkproof_trace_named(b, x.name, &y)) continue;
        (*shared)++;
        other += x.bytes != y.bytes || memcmp(x.data, y.data, x.bytes) != 0;
    }
    return other;
}

// ---- stages ----------------------------------------------------------------------------------

static bool leave(void *context, const sinkproof_call *call, double *values, sinkproof_error *e) {
    (void)call, (void)values, (void)e;
    ++*(size_t *)context;
    return true;
}

static size_t elements(const sinkproof_call *call) {
    size_t count = 1;
    for (size_t d = 0; d < call->rank; d++) count *= call->shape[d];
    return count;
}

static bool enlarge(void *context, const sinkproof_call *call, double *values, sinkproof_error *e) {
    (void)context, (void)e;
    for (size_t i = 0; i < elements(call); i++) values[i] = (float)(values[i] * 1.01);
    return true;
}

// The sum of two inputs, in float32.
static bool add(void *context, const sinkproof_call *call, double *values, sinkproof_error *e) {
    const char *const *names = context;
    const double *a = sinkproof_call_input(call, names[0]);
    const double *b = sinkproof_call_input(call, names[1]);
    if (a == NULL || b == NULL || sinkproof_call_input(call, "A1") != NULL)
        return sinkproof_fail(e, "expected two inputs and no other");
    for (size_t i = 0; i < elements(call); i++) values[i] = (float)a[i] + (float)b[i];
    return true;
}

// The definition, in binary64 and rounded once: reads every key and value.
static bool attend(void *context, const sinkproof_call *call, double *values, sinkproof_error *e) {
    const double *q = sinkproof_call_input(call, "A4.q"), *k = sinkproof_call_input(call, "A4.k");
    const double *v = sinkproof_call_input(call, "A2.v");
    size_t heads = config->n_heads, groups = config->n_kv_heads, dim = config->head_dim, shape[2];
    double sinks[64], weight_j[N];
    if (!sinkproof_model_weight(call->model, "sinks", call->layer, 0, shape, sinks, e))
        return false;
    for (size_t i = 0; i < call->n * heads; i++) {
        size_t h = i % heads, g = h / (heads / groups), last = call->first + i / heads;
        size_t first = call->window > 0 && last >= call->window ? last + 1 - call->window : 0;
        double sum = *(bool *)context ? exp(sinks[h]) : 0;
        for (size_t j = first; j <= last; j++) {
            double s = 0;
            for (size_t d = 0; d < dim; d++) s += q[i * dim + d] * k[(j * groups + g) * dim + d];
            sum += weight_j[j] = exp(s / sqrt((double)dim));
        }
        for (size_t d = 0; d < dim; d++) {
            double o = 0;
            for (size_t j = first; j <= last; j++) o += weight_j[j] * v[(j * groups + g) * dim + d];
            values[i * dim + d] = (float)(o / sum);
        }
    }
    return true;
}

static bool put(void *context, const sinkproof_call *call, double *values, sinkproof_error *e) {
    (void)call, (void)e;
    values[0] = *(double *)context;
    return true;
}

static bool refuse(void *context, const sinkproof_call *call, double *values, sinkproof_error *e) {
    (void)values;
    return sinkproof_fail(e, "%s at %zu keys", (const char *)context, call->keys);
}

// ---- what replacing does -----------------------------------------------------------------------

static const char *const froms[][2] = {
    {"T0", ""},       {"A1", "RESIDUAL"},      {"A2.q", "A1"},   {"A2.k", "RESIDUAL"},
    {"A2.v", "A1"},   {"A4.q", "A2.q"},        {"A4.k", "A2.k"}, {"A11", "A4.q,A4.k,A2.v"},
    {"A12", "A11"},   {"A13", "A12,RESIDUAL"}, {"M1", "A13"},    {"M4", "M2,M3"},
    {"M10", "M1,M3"}, {"M11", "M1"},           {"M12", "A13"},   {"F1", "RESIDUAL"},
    {"F2", "F1"}};

// A function that changes nothing, in each place: the same bits, and an honest trace.
static void check_untouched(const char *engine) {
    sinkproof_policy policy;
    sinkproof_run *plain = new_run(engine, 0);
    sinkproof_trace *expected = trace_of(plain);
    size_t places = 0, other = 0, tensors = 0, calls = 0, dishonest = 0, judged = 0, shared;
    need(sinkproof_policy_parse("f32", &policy, &error));
    for (size_t i = 0; i < sizeof froms / sizeof froms[0]; i++) {
        sinkproof_run *run = new_run(engine, 0);
        if (sinkproof_run_replace(run, froms[i][0], froms[i][1], leave, &calls, &error)) {
            sinkproof_trace *trace = trace_of(run);
            other += apart(expected, trace, &shared);
            tensors += shared;
            if (shared < sinkproof_trace_count(expected)) { // the others are the plain trace
                sinkproof_ruling *ruling = ruling_of(trace);
                dishonest += sinkproof_ruling_verdict(ruling) > SINKPROOF_VERDICT_UNDECIDED;
                sinkproof_ruling_free(ruling);
                judged++;
            }
            sinkproof_trace_close(trace);
            places++;
        }
        sinkproof_run_free(run);
    }
    ok(places == (strcmp(engine, "fast") == 0 ? 12 : 17) && other == 0 && calls >= places,
       "%s: a stage that leaves what it finds, in %zu places, %zu calls: the same bits in all %zu "
       "tensors",
       engine, places, calls, tensors);
    ok(dishonest == 0 && judged > 2,
       "%s: %zu of the traces leave points out, and none is called a bug or suspicious", engine,
       judged);
    sinkproof_trace_close(expected);
    sinkproof_run_free(plain);
}

// A kernel of one's own is acquitted, without the sink convicted, at A11 alone; the run goes on
// from it.
static void check_kernel(const char *engine) {
    bool sink = true;
    size_t shared;
    sinkproof_view view = {.size = sizeof view};
    sinkproof_run *run = new_run(engine, 0);
    sinkproof_trace *plain = trace_of(run), *honest, *wrong;
    need(sinkproof_run_replace(run, "A11", "A4.q,A4.k,A2.v", attend, &sink, &error));
    honest = trace_of(run);
    sinkproof_ruling *ruling = ruling_of(honest);
    ok(sinkproof_ruling_exit(ruling) == 0 && apart(plain, honest, &shared) > 0,
       "%s: an attention kernel of one's own is acquitted", engine);
    ok(!sinkproof_trace_named(honest, "00.A6", &view) &&
           !sinkproof_trace_named(honest, "00.A9", &view) &&
           !sinkproof_trace_named(honest, "00.A10", &view) &&
           sinkproof_trace_named(honest, "00.A11", &view),
       "%s: its trace leaves A6, A9 and A10 out", engine);
    sinkproof_ruling_free(ruling);
    sink = false;
    wrong = trace_of(run);
    ruling = ruling_of(wrong);
    sinkproof_finding f = {.size = sizeof f};
    size_t bugs = 0;
    for (size_t i = 0; sinkproof_ruling_at(ruling, i, &f); i++)
        bugs += f.verdict == SINKPROOF_VERDICT_BUG && strcmp(f.name + 3, "A11") != 0;
    need(sinkproof_ruling_named(ruling, "00.A11", &f));
    ok(sinkproof_ruling_exit(ruling) == 1 &&
           strcmp(sinkproof_ruling_first(ruling), "00.A11") == 0 && bugs == 0 && f.outside > 0 &&
           !(f.worst_value >= f.worst_low && f.worst_value <= f.worst_high),
       "%s: without the sink it is convicted, at A11 and nowhere else", engine);
    sinkproof_ruling_free(ruling);
    sinkproof_trace_close(plain);
    sinkproof_trace_close(honest);
    sinkproof_trace_close(wrong);
    sinkproof_run_free(run);
}

// Token by token the cache of keys and values is what one pass has: the same bits.
static void check_chunks(const char *engine) {
    bool sink = true;
    size_t shared = 0, other = 0;
    sinkproof_run *whole = new_run(engine, 0);
    need(sinkproof_run_replace(whole, "A11", "A4.q,A4.k,A2.v", attend, &sink, &error));
    sinkproof_trace *expected = trace_of(whole);
    for (size_t chunk = 1; chunk < 8; chunk += 6) {
        sinkproof_run *run = new_run(engine, chunk);
        need(sinkproof_run_replace(run, "A11", "A4.q,A4.k,A2.v", attend, &sink, &error));
        sinkproof_trace *trace = trace_of(run);
        other += apart(expected, trace, &shared);
        sinkproof_trace_close(trace);
        sinkproof_run_free(run);
    }
    ok(other == 0 && shared > 40, "%s: in passes of 1 and of 7 tokens the same bits in %zu tensors",
       engine, shared);
    sinkproof_trace_close(expected);
    sinkproof_run_free(whole);
}

static void check_inputs(void) {
    static const char *const sum[] = {"A12", "RESIDUAL"}, *const last[] = {"M11", "A13"};
    size_t shared;
    sinkproof_run *run = new_run("ref", 0);
    sinkproof_trace *plain = trace_of(run);
    need(sinkproof_run_replace(run, "A13", "A12,RESIDUAL", add, (void *)(uintptr_t)sum, &error));
    need(sinkproof_run_replace(run, "M12", "M11,A13", add, (void *)(uintptr_t)last, &error));
    sinkproof_trace *own = trace_of(run);
    size_t different = apart(plain, own, &shared);
    ok(different == 0 && shared > 45,
       "both residual sums made by the caller from what it is given: the same bits in %zu tensors",
       shared);
    const char *engine = sinkproof_trace_metadata(own, "engine");
    ok(strcmp(engine, "sinkproof ref with A13, M12 replaced") == 0, "the trace names it: %s",
       engine);
    sinkproof_trace_close(own);
    need(sinkproof_run_replace(run, "A13", NULL, NULL, NULL, &error));
    need(sinkproof_run_replace(run, "M12", NULL, NULL, NULL, &error));
    need(sinkproof_run_replace(run, "01.A1", "RESIDUAL", enlarge, NULL, &error));
    own = trace_of(run);
    sinkproof_ruling *ruling = ruling_of(own);
    ok(sinkproof_ruling_exit(ruling) == 1 && strcmp(sinkproof_ruling_first(ruling), "01.A1") == 0,
       "one layer's stage alone: convicted at %s", sinkproof_ruling_first(ruling));
    sinkproof_ruling_free(ruling);
    sinkproof_trace_close(own);
    sinkproof_trace_close(plain);
    sinkproof_run_free(run);
}

// ---- what is refused ---------------------------------------------------------------------------

static bool refused(sinkproof_run *run, const char *point, const char *from, const char *saying) {
    size_t calls;
    return !sinkproof_run_replace(run, point, from, leave, &calls, &error) && says(saying);
}

static void check_refused_places(void) {
    sinkproof_run *run = new_run("ref", 0), *fast = new_run("fast", 0);
    ok(refused(run, "A9", "A6",
               "shows before it uses them T0, A1, A2.q, A2.k, A2.v, A4.q, A4.k, A11, "
               "A12, A13, M1, M2, M3, M4, M10, M11, M12, F1, F2"),
       "A9 of ref is refused, and what may be replaced is listed");
    ok(refused(fast, "A12", "A11", "T0, A1, A2.q, A2.k, A2.v, A4.q, A4.k, A11, A13, M1, M12, F1"),
       "A12 of fast is refused, and what may be replaced is listed");
    ok(refused(run, "A11", "A4.q,A4.k", "needs A2.v too"), "A11 without the values is refused");
    ok(refused(run, "A11", "A9,A2.v,A1", "not computed from A1"), "an input too many is refused");
    ok(refused(fast, "A11", "A9,A2.v", "never holds A9"),
       "an input that fast never holds is refused");
    ok(refused(run, "A11", "A7", "found 'A7'"), "an input that is no point is refused");
    ok(refused(run, "99.A11", "A4.q,A4.k,A2.v", "'99.A11'"),
       "a layer that is not there is refused");
    sinkproof_run_free(run);
    sinkproof_run_free(fast);
}

static bool fails(sinkproof_run *run, const char *saying) {
    sinkproof_trace *trace = NULL;
    bool failed = !sinkproof_run_trace(run, N, tokens, NULL, NULL, &trace, &error);
    return failed && trace == NULL && sinkproof_run_length(run) == 0 && says(saying);
}

static void check_refused_runs(void) {
    double fine = 0x1.000001p0, twice = 1;
    size_t calls = 0;
    char reason[] = "enough";
    sinkproof_trace *trace;
    sinkproof_run *run = new_run("ref", 0);
    need(sinkproof_run_replace(run, "01.A12", "A11", put, &fine, &error));
    ok(fails(run, "01.A12: the stage left 0x1.000001p+0 as element 0, which is no f32 number"),
       "a number that the policy's format does not hold is refused");
    need(sinkproof_run_replace(run, "A12", "A11", refuse, reason, &error));
    ok(fails(run, "00.A12: the stage failed: enough at 12 keys"), "a stage's own sentence is told");
    need(sinkproof_run_replace(run, "A12", NULL, NULL, NULL, &error));
    need(sinkproof_run_replace(run, "M3", "M2", leave, &calls, &error));
    ok(fails(run, "M3 is replaced and M4 is not"), "M3 without M4 is refused");
    need(sinkproof_run_replace(run, "M4", "M2,M3", leave, &calls, &error));
    trace = trace_of(run);
    ok(calls == 2 * config->n_layers, "with it the router is the caller's");
    sinkproof_trace_close(trace);
    sinkproof_view view = {.size = sizeof view};
    trace = trace_of(run);
    need(sinkproof_trace_named(trace, "00.M3", &view));
    int32_t chosen[2];
    memcpy(chosen, view.data, sizeof chosen);
    twice = chosen[1];
    need(sinkproof_run_replace(run, "M3", "M2", put, &twice, &error));
    ok(fails(run, "once a token"), "an expert chosen twice is refused");
    sinkproof_trace_close(trace);
    sinkproof_run_free(run);
    run = new_run("ref", 0);
    need(sinkproof_run_replace(run, "A11", "A4.q,A4.k,A2.v", leave, &calls, &error));
    ok(!sinkproof_run_trace(run, N, tokens, "A9", NULL, &trace, &error) &&
           says("00.A9 is left out of the trace: the stage in the place of A11 goes around it"),
       "a point that is left out cannot be asked for");
    sinkproof_run_free(run);
}

static void check_refused_arguments(void) {
    sinkproof_run *run = (sinkproof_run *)&error;
    sinkproof_trace *trace;
    sinkproof_ruling *ruling;
    double value;
    size_t shape[SINKPROOF_RANK];
    ok(!sinkproof_run_new(model, "fats", NULL, NULL, &run, &error) && run == NULL &&
           says("unknown engine 'fats': the nearest known is fast; known are ref, lanes and fast"),
       "an unknown engine is refused");
    ok(!sinkproof_run_new(model, "fast", "bf16", NULL, &run, &error) && run == NULL,
       "fast under bf16 is refused: %s", error.text);
    ok(!sinkproof_policy_check("f23", &error) && says("f23") &&
           sinkproof_policy_check("bf16,A8=f32", NULL),
       "a policy is checked");
    ok(!sinkproof_config_number(config, "heads", &value, &error) && says("n_heads") &&
           sinkproof_config_number(config, "n_heads", &value, NULL) &&
           value == (double)config->n_heads,
       "a number that the configuration lacks is refused, with those that it has");
    ok(!sinkproof_model_weight(model, "w_up", 0, config->n_experts, shape, NULL, &error) &&
           says("expected an expert below") &&
           !sinkproof_model_weight(model, "w_u", 0, 0, shape, NULL, &error) && says("w_up"),
       "a weight that is not there is refused");
    ok(!sinkproof_model_open(NULL, &(sinkproof_model *){NULL}, &error) &&
           !sinkproof_trace_open(NULL, config, &trace, &error) && trace == NULL &&
           !sinkproof_trace_open("x", NULL, &trace, NULL) &&
           !sinkproof_run_new(NULL, "ref", NULL, NULL, &run, NULL) &&
           !sinkproof_run_replace(NULL, "A11", "", leave, NULL, NULL) &&
           !sinkproof_run_forward(NULL, 1, tokens, NULL, NULL) &&
           !sinkproof_run_trace(NULL, 1, tokens, NULL, NULL, &trace, NULL) &&
           !sinkproof_judge_trace(model, NULL, NULL, &ruling, NULL) && ruling == NULL &&
           !sinkproof_judge_trace(model, NULL, NULL, NULL, NULL) &&
           !sinkproof_trace_builder_add(NULL, "T0", "F32", 2, shape, shape, NULL) &&
           !sinkproof_trace_builder_finish(NULL, &trace, NULL) &&
           !sinkproof_point_shape(NULL, "T0", 1, shape, shape, NULL) &&
           !sinkproof_policy_check(NULL, NULL) && !sinkproof_trace_at(NULL, 0, NULL) &&
           !sinkproof_trace_write(NULL, "x", NULL) && !sinkproof_ruling_at(NULL, 0, NULL),
       "NULL is refused by whatever takes an object");
    sinkproof_run_free(NULL);
    sinkproof_trace_close(NULL);
    sinkproof_model_close(NULL);
    sinkproof_ruling_free(NULL);
    sinkproof_trace_builder_free(NULL);
    ok(strcmp(sinkproof_verdict_name((sinkproof_verdict)77), "unknown") == 0 &&
           strcmp(sinkproof_version(), SINKPROOF_VERSION) == 0,
       "a number that is no verdict has a name too");
}

// ---- traces of arrays --------------------------------------------------------------------------

static sinkproof_trace_builder *new_builder(void) {
    sinkproof_trace_builder *b;
    need(sinkproof_trace_builder_new(model, "mine", "f32", N, tokens, &b, &error));
    return b;
}

static char *text_of(const sinkproof_trace *trace) {
    sinkproof_ruling *ruling;
    sinkproof_trial_options how = {.size = sizeof how, .name = "same"};
    need(sinkproof_judge_trace(model, trace, &how, &ruling, &error));
    char *text = strdup(strchr(sinkproof_ruling_text(ruling), '|')); // behind the engine's name
    sinkproof_ruling_free(ruling);
    return text;
}

static void check_builder(void) {
    sinkproof_run *run = new_run("lanes", 0);
    sinkproof_trace *made = trace_of(run), *copy, *read, *again;
    sinkproof_trace_builder *b = new_builder();
    sinkproof_view v = {.size = sizeof v};
    char path[] = "/tmp/sinkproof-face-XXXXXX";
    size_t shared;
    close(mkstemp(path));
    for (size_t i = 0; sinkproof_trace_at(made, i, &v); i++)
        if (strcmp(v.name, "tokens") != 0 && strcmp(v.name, "positions") != 0)
            need(sinkproof_trace_builder_add(b, v.name, v.dtype, v.rank, v.shape, v.data, &error));
    need(sinkproof_trace_builder_finish(b, &copy, &error));
    need(sinkproof_trace_write(copy, path, &error));
    need(sinkproof_trace_open(path, config, &read, &error));
    char *first = text_of(made), *second = text_of(read);
    size_t different = apart(made, read, &shared);
    ok(different == 0 && shared == sinkproof_trace_count(made) && strcmp(first, second) == 0 &&
           strcmp(sinkproof_trace_metadata(read, "engine"), "mine") == 0,
       "%zu tensors through a builder and a file: the same bits and the same report", shared);
    need(sinkproof_trace_builder_finish(b, &again, &error));
    free(first);
    free(second);
    unlink(path);
    sinkproof_trace_close(made);
    sinkproof_trace_close(copy);
    sinkproof_trace_close(read);
    sinkproof_trace_close(again);
    sinkproof_run_free(run);
    sinkproof_trace_builder_free(b);
}

static void check_refused_arrays(void) {
    sinkproof_trace_builder *b = new_builder();
    size_t shape[SINKPROOF_RANK], rank;
    need(sinkproof_point_shape(config, "01.A1", N, &rank, shape, &error));
    float *zeros = calloc(shape[0] * shape[1], sizeof *zeros);
    ok(!sinkproof_trace_builder_add(b, "01.A14", "F32", rank, shape, zeros, &error) &&
           says("01.A1"),
       "an unknown point is refused with the nearest one");
    ok(!sinkproof_trace_builder_add(b, "01.A1", "I32", rank, shape, zeros, &error) &&
           says("expected dtype BF16, F16, F32 or F64, found I32"),
       "a dtype that no point has is refused");
    shape[1]++;
    ok(!sinkproof_trace_builder_add(b, "01.A1", "F32", rank, shape, zeros, &error) &&
           says("01.A1: expected shape ["),
       "another shape is refused");
    shape[1]--;
    need(sinkproof_trace_builder_add(b, "01.A1", "F32", rank, shape, zeros, &error));
    ok(!sinkproof_trace_builder_add(b, "01.A1", "F32", rank, shape, zeros, &error) &&
           says("already"),
       "the same point again is refused");
    free(zeros);
    sinkproof_trace_builder_free(b);
}

// Two threads judge a trace each.
static void check_threads(void) {
    sinkproof_run *run = new_run("lanes", 0);
    sinkproof_trace *trace[2] = {trace_of(run), trace_of(run)};
    char *alone = text_of(trace[0]), *text[2];
#pragma omp parallel for num_threads(2)
    for (int t = 0; t < 2; t++) {
        sinkproof_ruling *ruling = NULL;
        sinkproof_trial_options how = {.size = sizeof how, .name = "same"};
        bool good = sinkproof_judge_trace(model, trace[t], &how, &ruling, NULL);
        text[t] = good ? strdup(strchr(sinkproof_ruling_text(ruling), '|')) : strdup("");
        sinkproof_ruling_free(ruling);
    }
    ok(strcmp(text[0], alone) == 0 && strcmp(text[1], alone) == 0,
       "two threads judge their own traces: the same reports");
    for (int t = 0; t < 2; t++) {
        free(text[t]);
        sinkproof_trace_close(trace[t]);
    }
    free(alone);
    sinkproof_run_free(run);
}

int main(void) {
    need(sinkproof_model_open("synthetic:tiny,layers=2", &model, &error));
    config = sinkproof_model_config(model);
    for (int t = 0; t < N; t++) tokens[t] = (t * 37 + 11) % (int)config->vocab;
    for (const char *const *engine = sinkproof_engine_names(); *engine != NULL; engine++) {
        check_untouched(*engine);
        check_kernel(*engine);
        check_chunks(*engine);
    }
    check_inputs();
    check_refused_places();
    check_refused_runs();
    check_refused_arguments();
    check_builder();
    check_refused_arrays();
    check_threads();
    sinkproof_model_close(model);
    return tap_done();
}
