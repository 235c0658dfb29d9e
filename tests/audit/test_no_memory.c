// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Memory runs out at the first allocation, at the second, and so on to the last one; in the judge,
// which makes thousands, at the first two that each place asks for. Each time the call returns
// false (or NULL) with a sentence that says so, nothing ends the program, nothing stays allocated
// or mapped; and a last run without a failure holds what the first one held.
//
// Allocations of our own objects are counted, by the linker's --wrap (Makefile). What OpenBLAS, the
// OpenMP runtime, Jansson and libc take for themselves is not ours: they answer for it, some of
// them by ending the process.
#include "audit/diagnose/diagnose.h"
#include "audit/intervene/interventions.h"
#include "audit/studies/text/harmony.h"
#include "fast/engine/engine.h"
#include "tests/shared/judged.h"

#include <errno.h>
#include <execinfo.h>
#include <omp.h>
#include <stdarg.h>
#include <sys/mman.h>

// ---- the allocations

static size_t met, failing; // allocations of this run; which one fails, 0: none
static bool lasting;        // and all that follow it
static ptrdiff_t blocks;    // allocated and not freed
static ptrdiff_t mapped;    // bytes, the same

enum {
    MOST = 1 << 14,
    DEEP = 5
}; // allocations of a run; calls that tell a place, two of them here
static uintptr_t place_n[MOST + 1];
static bool noting; // where each allocation is asked for

static uintptr_t place_here(void) {
    void *calls[DEEP];
    uintptr_t place = 0;
    for (int c = backtrace(calls, DEEP); c-- > 0;) place = place * 31 + (uintptr_t)calls[c];
    return place;
}

static bool fails(void) {
    size_t n = __atomic_add_fetch(&met, 1, __ATOMIC_RELAXED);
    if (noting && n <= MOST) place_n[n] = place_here();
    bool now = failing > 0 && (n == failing || (lasting && n > failing));
    if (now) errno = ENOMEM;
    return now;
}

static void *counted(void *block) {
    if (block != NULL) __atomic_add_fetch(&blocks, 1, __ATOMIC_RELAXED);
    return block;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void __real_free(void *block);
char *__real_strdup(const char *text);
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset);
int __real_munmap(void *at, size_t bytes);
char *__real_json_dumps(const json_t *json, size_t flags);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void __wrap_free(void *block);
char *__wrap_strdup(const char *text);
int __wrap_asprintf(char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset);
int __wrap_munmap(void *at, size_t bytes);
char *__wrap_json_dumps(const json_t *json, size_t flags);

void *__wrap_malloc(size_t size) {
    return fails() ? NULL : counted(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size) {
    return fails() ? NULL : counted(__real_calloc(count, size));
}

void *__wrap_realloc(void *block, size_t size) {
    if (fails()) return NULL;
    return block == NULL ? counted(__real_malloc(size)) : __real_realloc(block, size);
}

void __wrap_free(void *block) {
    if (block != NULL) __atomic_sub_fetch(&blocks, 1, __ATOMIC_RELAXED);
    __real_free(block);
}

char *__wrap_strdup(const char *text) {
    return fails() ? NULL : counted(__real_strdup(text));
}

int __wrap_asprintf(char **text, const char *format, ...) {
    if (fails()) return -1;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(text, format, arguments);
    va_end(arguments);
    if (length >= 0) counted(*text);
    return length;
}

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
    if (fails()) return MAP_FAILED;
    void *map = __real_mmap(at, bytes, protection, flags, file, offset);
    if (map != MAP_FAILED) mapped += (ptrdiff_t)bytes;
    return map;
}

int __wrap_munmap(void *at, size_t bytes) {
    mapped -= (ptrdiff_t)bytes;
    return __real_munmap(at, bytes);
}

char *__wrap_json_dumps(const json_t *json, size_t flags) {
    return counted(__real_json_dumps(json, flags)); // Jansson's; ours to free
}

// ---- what is run

enum { TOKENS = 3, ROOM = REPORT_ROOM };

// One way through the library, and what it leaves behind when all goes well.
typedef struct way {
    const char *what, *model, *policy;
    bool (*run)(const struct way *way, char *out, sinkproof_error *error);
    const char *points;     // of the trace; NULL: all
    bool end_to_end, forms; // of the judge
    const char *traced;     // the policy of an engine that is judged; NULL: the same
    bool refused;           // the judge ends at the first element outside, as a trial does
} way;

static const int32_t tokens[TOKENS] = {3, 1, 4};
static char trace_path[64], packed_path[64];

static bool opens_model(const way *w, char *out, sinkproof_error *error) {
    sinkproof_model *model;
    if (!sinkproof_model_open(w->model, &model, error)) return false;
    snprintf(out, ROOM, "%s", sinkproof_model_spec(model));
    sinkproof_model_close(model);
    return true;
}

// A tokenizer (in place of a model), a text, a conversation, and both back again.
static bool run_text(const way *w, char *out, sinkproof_error *error) {
    static const char text[] = "hello there, aaaa  123<|end|>";
    const sinkproof_message message = {.role = "user", .content = text};
    sinkproof_tokenizer *t;
    sinkproof_ids ids = {NULL, 0, 0};
    char *back = NULL;
    size_t length;
    if (!sinkproof_tokenizer_open(w->model, &t, error)) return false;
    bool good = sinkproof_text_encode(t, text, sizeof text - 1, true, &ids, error) &&
                (w->points == NULL || sinkproof_harmony_render(t, 1, &message, &ids, error)) &&
                sinkproof_text_printable(t, ids.n, ids.id_t, &back, &length, error);
    if (good) snprintf(out, ROOM, "%s", back);
    free(back);
    free(ids.id_t);
    sinkproof_tokenizer_free(t);
    return good;
}

// Every intervention on a GPT-2 at once: the rows that it draws.
static bool run_intervened(const way *w, char *out, sinkproof_error *error) {
    static const sinkproof_interventions changes = {.zero_bq = true,
                                                    .zero_bos = true,
                                                    .late = true,
                                                    .n_moves = 1,
                                                    .move_n = {{.to = 1}},
                                                    .massive_rows = true,
                                                    .n_random = 3};
    static const double epe_ic[TOKENS * 96];
    static const size_t massive_at[] = {7};
    sinkproof_policy policy;
    sinkproof_model *model;
    sinkproof_intervened *made = NULL;
    if (!sinkproof_model_open(w->model, &model, error)) return false;
    bool good = sinkproof_policy_parse(w->policy, &policy, error) &&
                sinkproof_intervened_new(model, &changes, &policy, TOKENS, epe_ic, 1, massive_at,
                                         &made, error);
    size_t n = 0, used = 0;
    const size_t *row_n = good ? sinkproof_intervened_zero_rows(made, &n) : NULL;
    for (size_t i = 0; i < n; i++)
        used += (size_t)snprintf(out + used, ROOM - used, "%zu ", row_n[i]);
    sinkproof_intervened_free(made);
    sinkproof_model_close(model);
    return good;
}

// Writes the trace of w, with an opened model.
static bool write_trace(const way *w, const sinkproof_model *model, sinkproof_error *error) {
    sinkproof_policy policy;
    sinkproof_trace_writer *writer = NULL;
    if (!sinkproof_policy_parse(w->traced != NULL ? w->traced : w->policy, &policy, error))
        return false;
    sinkproof_session *session = sinkproof_session_new(model, &policy);
    bool good = session != NULL || sinkproof_fail(error, "no memory for a session");
    good = good &&
           sinkproof_trace_writer_new(trace_path, model, &policy, "ref", w->points, TOKENS, &writer,
                                      error) &&
           sinkproof_forward(session, TOKENS, tokens, NULL, sinkproof_trace_writer_observer(writer),
                             error) &&
           sinkproof_trace_writer_finish(writer, tokens, error);
    sinkproof_trace_writer_free(writer);
    sinkproof_session_free(session);
    return good;
}

static bool run_reference(const way *w, char *out, sinkproof_error *error) {
    sinkproof_model *model;
    if (!sinkproof_model_open(w->model, &model, error)) return false;
    bool good = write_trace(w, model, error);
    FILE *trace = good ? fopen(trace_path, "rb") : NULL;
    if (trace != NULL) {
        size_t length = fread(out, 1, ROOM - 1, trace);
        for (size_t i = 0; i < length; i++) out[i] = (char)(out[i] != 0 ? out[i] : '0');
        fclose(trace);
    }
    if (!good && access(trace_path, F_OK) == 0) sinkproof_fail(error, "half a trace is left");
    unlink(trace_path);
    sinkproof_model_close(model);
    return good;
}

static bool run_fast(const way *w, char *out, sinkproof_error *error) {
    sinkproof_policy policy;
    sinkproof_model *model;
    sinkproof_engine *engine = NULL;
    sinkproof_sequence *sequence = NULL;
    static float logits_v[1 << 12];
    const sinkproof_engine_options options = {.threads = 2, .packed = packed_path};
    if (!sinkproof_model_open(w->model, &model, error)) return false;
    bool good = sinkproof_policy_parse(w->policy, &policy, error) &&
                sinkproof_engine_new(model, &policy, &options, &engine, error) &&
                (sequence = sinkproof_sequence_new(engine, 0, error)) != NULL;
    sinkproof_part part = {sequence, TOKENS, tokens, logits_v, false};
    good = good && sinkproof_engine_forward(engine, 1, &part, NULL, error);
    size_t vocab = sinkproof_model_config(model)->vocab, used = 0;
    for (size_t v = 0; good && v < vocab; v++)
        used += (size_t)snprintf(out + used, ROOM - used, "%a ", (double)logits_v[v]);
    sinkproof_sequence_free(sequence);
    sinkproof_engine_free(engine);
    sinkproof_model_close(model);
    unlink(packed_path);
    return good;
}

// What explains the trace, as one line: it has one finding.
static bool diagnose(const sinkproof_model *model, const sinkproof_trace *trace,
                     const sinkproof_judgement *j, char *out, sinkproof_error *error) {
    const sinkproof_diagnose_options options = {.rate = 1e-9};
    sinkproof_diagnosis d;
    if (!sinkproof_diagnose(model, trace, j, &options, &d, error)) return false;
    snprintf(out, ROOM, "%zu %zu %s %a", d.n, d.tried,
             d.n > 0 && d.findings[0].n_alike > 0 ? d.findings[0].alike[0].mistakes[0]->id : "",
             d.n > 0 ? d.findings[0].next_bounds : 0);
    sinkproof_diagnosis_free(&d);
    return true;
}

static bool run_judge(const way *w, char *out, sinkproof_error *error) {
    sinkproof_policy policy;
    sinkproof_model *model;
    sinkproof_trace *trace = NULL;
    sinkproof_judgement j = {0};
    sinkproof_refusal refusal = {.points = ~0u, .beyond = 0};
    const sinkproof_judge_options options = {
        .rate = 1e-9, .end_to_end = w->end_to_end, .refusal = w->refused ? &refusal : NULL};
    if (!sinkproof_model_open(w->model, &model, error)) return false;
    bool good = sinkproof_policy_parse(w->policy, &policy, error) &&
                sinkproof_trace_open(trace_path, sinkproof_model_config(model), &trace, error) &&
                sinkproof_judge(model, trace, &policy, &options, &j, error) &&
                (!w->forms || sinkproof_judge_forms(model, trace, &options, &j, error));
    if (good && w->refused)
        snprintf(out, ROOM, "%s, %zu reports", refusal.refused ? "refused" : "judged", j.n_reports);
    else if (good && w->traced != NULL)
        good = diagnose(model, trace, &j, out, error);
    else if (good)
        report_as_text(sinkproof_model_config(model), &j, out);
    sinkproof_judgement_free(&j);
    sinkproof_trace_close(trace);
    sinkproof_model_close(model);
    return good;
}

// ---- one failure after the other

static bool attempt(const way *w, size_t n, bool stays, char *out, sinkproof_error *error) {
    error->text[0] = '\0';
    memset(out, 0, ROOM);
    omp_set_num_threads(1 + (int)(n % 2));
    met = 0, failing = n, lasting = stays;
    bool good = w->run(w, out, error);
    failing = 0;
    return good;
}

// Is allocation n one of the first two of its place, under FEW=1 the first?
static bool is_early(size_t n) {
    size_t before = 0;
    for (size_t i = 1; i < n; i++) before += place_n[i] == place_n[n];
    return before < 2;
}

// Allocation n fails, and with `stays` all that follow it. False, with what is wrong: not told,
// or something is left. Where the judge ends at an element outside, two threads may not come to n.
static bool fails_well(const way *w, size_t n, bool stays, char *out) {
    sinkproof_error error;
    ptrdiff_t before = blocks, bytes = mapped;
    bool good = attempt(w, n, stays, out, &error), told = strstr(error.text, "memory") != NULL;
    bool well = good ? met < n : told;
    if (well && blocks == before && mapped == bytes) return true;
    note("allocation %zu: %s, \"%s\", %td blocks and %td bytes left", n, good ? "true" : "false",
         error.text, blocks - before, mapped - bytes);
    return false;
}

// Each allocation of a way fails, or each `early` one.
static void fail_each(const way *w, bool early, bool stays) {
    static char expected[ROOM], found[ROOM];
    sinkproof_error error;
    size_t failures = 0, wrong = 0;
    noting = true;
    must(attempt(w, 0, false, expected, &error)); // it may keep what is made once
    noting = false;
    size_t all = met;
    must(all <= MOST);
    for (size_t n = 1; n <= all && wrong < 8; n++) {
        if (early && !is_early(n)) continue;
        wrong += !fails_well(w, n, stays, found);
        failures++;
    }
    ptrdiff_t before = blocks, bytes = mapped;
    bool whole = attempt(w, 2 * MOST + 1, stays, found, &error) && strcmp(expected, found) == 0;
    ok(wrong == 0 && failures > 0 && whole && blocks == before && mapped == bytes,
       "%s: %zu of %zu allocations fail%s, each is a sentence, nothing is left, a whole run is the "
       "same",
       w->what, failures, all, stays ? " and all after them" : "");
}

static void judge_each(way w, bool stays) {
    sinkproof_model *model;
    sinkproof_error error;
    w.run = run_judge;
    must(sinkproof_model_open(w.model, &model, &error) && write_trace(&w, model, &error));
    sinkproof_model_close(model);
    fail_each(&w, true, stays);
    unlink(trace_path);
}

int main(void) {
    static const char one[] = "synthetic:tiny,layers=1", two[] = "synthetic:tiny,layers=2";
    snprintf(trace_path, sizeof trace_path, "/tmp/sinkproof-memory-%ld.safetensors",
             (long)getpid());
    snprintf(packed_path, sizeof packed_path, "/tmp/sinkproof-memory-%ld.packed", (long)getpid());
    const way opened = {.what = "opening a model", .model = two, .run = opens_model};
    const way traced[] = {
        {.what = "the reference and its trace",
         .model = one,
         .policy = "f32",
         .run = run_reference},
        {.what = "the reference under f16", .model = two, .policy = "f16", .run = run_reference}};
    const way fast[] = {
        {.what = "the fast path, 1 layer", .model = one, .policy = "f32", .run = run_fast},
        {.what = "the fast path, 2 layers",
         .model = two,
         .policy = "bf16-operands",
         .run = run_fast}};
    const way texts[] = {{.what = "tokenizer.json", .model = "tests/vectors/text/tokenizer.json"},
                         {.what = "vocab.json", .model = "tests/vectors/text/vocab.json"},
                         {.what = "ranks and a conversation",
                          .model = "tests/vectors/text/ranks.tiktoken,pattern=o200k",
                          .points = ""}};
    for (size_t i = 0; i < 6; i++) {
        way text = texts[i / 2];
        text.run = run_text;
        fail_each(&text, true, i % 2 == 1);
    }
    const way intervened = {.what = "intervening",
                            .model = "synthetic:tiny-gpt2,layers=1",
                            .policy = "f32",
                            .run = run_intervened};
    fail_each(&intervened, false, false);
    fail_each(&intervened, false, true);
    fail_each(&opened, false, false);
    fail_each(&opened, false, true);
    for (size_t i = 0; i < 2; i++) {
        fail_each(&traced[i], false, false);
        fail_each(&traced[i], false, true);
        fail_each(&fast[i], false, false);
        fail_each(&fast[i], false, true);
    }
    const way judged[] = {{.what = "judging", .model = one, .policy = "f32"},
                          {.what = "judging forms and end to end",
                           .model = one,
                           .policy = "f32",
                           .end_to_end = true,
                           .forms = true},
                          {.what = "judging a trace without the selection",
                           .model = one,
                           .policy = "bf16",
                           .points = "T0,A13,M6,M12,F2"},
                          {.what = "judging a trace of few points, end to end",
                           .model = two,
                           .policy = "f16",
                           .points = "T0,A11,M4,M12",
                           .end_to_end = true},
                          {.what = "judging until an element is outside",
                           .model = one,
                           .policy = "f32",
                           .traced = "f32,M8.alpha=bf16",
                           .refused = true},
                          {.what = "diagnosing a rounded constant",
                           .model = one,
                           .policy = "f32",
                           .traced = "f32,M8.alpha=bf16"}};
    judge_each(judged[0], true);
    for (size_t i = 0; i < sizeof judged / sizeof *judged; i++) judge_each(judged[i], false);
    return tap_done();
}
