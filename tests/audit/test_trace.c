// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Traces: what is written is what was seen, chunked or not, in the policy's formats; and every kind
// of malformed trace is refused by one sentence that names the tensor.
#include "audit/sinkproof.h"
#include "audit/trace/trace.h"
#include "audit/trace/trace_points.h"
#include "audit/trace/trace_write.h"
#include "model/bf16.h"
#include "tests/shared/opened.h"
#include "tests/shared/reference.h"

#include <unistd.h>

static sinkproof_model *model;
static const sinkproof_config *config;
static char path[64];
static const int32_t tokens[12] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8};

// A trace of the 12 tokens in pieces of `piece`.
static sinkproof_trace *written(const char *policy_name, const char *points, size_t piece) {
    sinkproof_policy policy = policy_of(policy_name);
    sinkproof_error error;
    sinkproof_trace_writer *writer;
    sinkproof_trace *trace;
    sinkproof_session *session = sinkproof_session_new(model, &policy);
    need(sinkproof_trace_writer_new(path, model, &policy, "test", points, 12, &writer, &error),
         &error);
    for (size_t done = 0; done < 12; done += piece)
        need(sinkproof_forward(session, 12 - done < piece ? 12 - done : piece, tokens + done, NULL,
                               sinkproof_trace_writer_observer(writer), &error),
             &error);
    need(sinkproof_trace_writer_finish(writer, tokens, &error), &error);
    need(sinkproof_trace_open(path, config, &trace, &error), &error);
    sinkproof_trace_writer_free(writer);
    sinkproof_session_free(session);
    return trace;
}

// Elements that differ, the keys after each query aside where `causal` is set.
static size_t apart(const sinkproof_tensor *a, const sinkproof_tensor *b, bool causal) {
    size_t count = 0, n = 12;
    for (size_t i = 0; i < sinkproof_tensor_elements(a); i++) {
        if (causal && i % n > i / n % n) continue;
        double x = sinkproof_tensor_value(a, i), y = sinkproof_tensor_value(b, i);
        count += memcmp(&x, &y, sizeof x) != 0;
    }
    return count;
}

static void test_chunked(const char *policy) {
    sinkproof_trace *one = written(policy, NULL, 12), *many = written(policy, NULL, 5);
    size_t wrong = 0, points = 0;
    for (size_t l = 0; l < config->n_layers; l++)
        for (int p = 0; p < TRACE_POINTS; p++) {
            if (!sinkproof_trace_point_exists(config, (sinkproof_trace_point)p, 0)) continue;
            const sinkproof_tensor *a = sinkproof_trace_find(one, (sinkproof_trace_point)p, l);
            const sinkproof_tensor *b = sinkproof_trace_find(many, (sinkproof_trace_point)p, l);
            wrong += a == NULL || b == NULL || a->dtype != b->dtype;
            if (a != NULL && b != NULL) wrong += apart(a, b, p == TRACE_A6);
            points++;
        }
    ok(wrong == 0, "trace %s chunked = one shot worst=%zu bound=0 of %zu tensors", policy, wrong,
       points);
    sinkproof_trace_close(one);
    sinkproof_trace_close(many);
}

static sinkproof_dtype dtype_of(const sinkproof_trace *trace, sinkproof_trace_point point) {
    const sinkproof_tensor *tensor = sinkproof_trace_find(trace, point, 0);
    return tensor != NULL ? tensor->dtype : SINKPROOF_DTYPES;
}

static void test_formats(void) {
    const struct {
        const char *policy;
        sinkproof_dtype dtype;
    } rows[] = {{"real-f64", SINKPROOF_DTYPE_F64},
                {"f32", SINKPROOF_DTYPE_F32},
                {"hf-bf16", SINKPROOF_DTYPE_BF16},
                {"f16", SINKPROOF_DTYPE_F16}};
    for (size_t i = 0; i < 4; i++) {
        sinkproof_trace *t = written(rows[i].policy, "T0,A4,00.M3,M8", 12);
        ok(dtype_of(t, TRACE_T0) == rows[i].dtype && dtype_of(t, TRACE_A4_Q) == rows[i].dtype &&
               dtype_of(t, TRACE_A4_K) == rows[i].dtype &&
               dtype_of(t, TRACE_M3) == SINKPROOF_DTYPE_I32 &&
               dtype_of(t, TRACE_A9) == SINKPROOF_DTYPES &&
               sinkproof_trace_find(t, TRACE_M3, 1) == NULL &&
               sinkproof_trace_find(t, TRACE_M8, config->n_layers - 1) != NULL,
           "trace %s holds %s, and only the points asked for", rows[i].policy,
           sinkproof_dtype_name(rows[i].dtype));
        ok(strcmp(sinkproof_trace_metadata(t, "policy"), rows[i].policy) == 0 &&
               sinkproof_trace_length(t) == 12 && sinkproof_trace_tokens(t)[5] == 9 &&
               sinkproof_trace_positions(t)[11] == 11,
           "trace %s: metadata, tokens, positions", rows[i].policy);
        sinkproof_trace_close(t);
    }
}

// A value survives the file: every format's rounding of it is what is read back.
static void keep(void *context, const char *name, size_t rank, const size_t *shape,
                 const double *values) {
    double *kept = context;
    if (rank == 2 && strcmp(name, "F2") == 0)
        memcpy(kept, values, shape[0] * shape[1] * sizeof *kept);
}

static void test_values(const char *policy_name) {
    sinkproof_policy policy = policy_of(policy_name);
    sinkproof_error error;
    double *kept = calloc(12 * config->vocab, sizeof *kept);
    sinkproof_observer observer = {.see = keep, .context = kept};
    sinkproof_session *session = sinkproof_session_new(model, &policy);
    need(sinkproof_forward(session, 12, tokens, NULL, &observer, &error), &error);
    sinkproof_trace *t = written(policy_name, "F2", 12);
    const sinkproof_tensor *f2 = sinkproof_trace_find(t, TRACE_F2, 0);
    size_t wrong = 0;
    for (size_t i = 0; i < 12 * config->vocab; i++)
        wrong += sinkproof_tensor_value(f2, i) != kept[i];
    ok(wrong == 0, "trace %s values worst=%zu bound=0", policy_name, wrong);
    sinkproof_trace_close(t);
    sinkproof_session_free(session);
    free(kept);
}

// One malformed trace: tokens and positions, and one more tensor.
typedef struct forgery {
    const char *format, *name, *word; // word: what the sentence must contain
    sinkproof_dtype dtype;
    size_t rank, shape[3];
    int32_t token, position, value; // the last token and position; every element (I32)
} forgery;

static void forge(const forgery *f) {
    const size_t n = 3;
    const int32_t ids[6] = {1, 2, f->token, 0, 1, f->position};
    sinkproof_error error = {{0}};
    sinkproof_trace *trace = NULL;
    sinkproof_safetensors_writer *w = sinkproof_safetensors_writer_new();
    sinkproof_safetensors_writer_metadata(w, "format", f->format);
    sinkproof_safetensors_writer_declare(w, "tokens", SINKPROOF_DTYPE_I32, 1, &n);
    sinkproof_safetensors_writer_declare(w, "positions", SINKPROOF_DTYPE_I32, 1, &n);
    sinkproof_safetensors_writer_declare(w, f->name, f->dtype, f->rank, f->shape);
    size_t bytes = sinkproof_dtype_size(f->dtype);
    for (size_t r = 0; r < f->rank; r++) bytes *= f->shape[r];
    int32_t *values = calloc(bytes / 4 + 1, sizeof *values);
    for (size_t i = 0; i < bytes / 4; i++) values[i] = f->value;
    need(sinkproof_safetensors_writer_begin(w, path, &error) &&
             sinkproof_safetensors_writer_bytes(w, ids, sizeof ids, &error) &&
             sinkproof_safetensors_writer_bytes(w, values, bytes, &error) &&
             sinkproof_safetensors_writer_finish(w, &error),
         &error);
    bool opened = sinkproof_trace_open(path, config, &trace, &error);
    if (opened) sinkproof_trace_close(trace);
    if (f->word == NULL)
        ok(opened, "a sound trace of %s is read", f->name);
    else
        ok(!opened && strstr(error.text, f->word) != NULL && strstr(error.text, path) != NULL,
           "refused: %s", error.text);
    free(values);
    sinkproof_safetensors_writer_free(w);
}

static void test_forgeries(void) {
    const char *good = "sinkproof-trace-1";
    const size_t h = config->hidden, k = config->n_chosen;
    const forgery forgeries[] = {
        {good, "00.A1", NULL, SINKPROOF_DTYPE_F32, 2, {3, h}, 3, 2, 0},
        {good, "00.A1", NULL, SINKPROOF_DTYPE_BF16, 2, {3, h}, 3, 2, 0},
        {"sinkproof-trace-2",
         "00.A1",
         "sinkproof-trace-1",
         SINKPROOF_DTYPE_F32,
         2,
         {3, h},
         3,
         2,
         0},
        {good, "00.A1", "shape", SINKPROOF_DTYPE_F32, 2, {h, 3}, 3, 2, 0},
        {good, "00.A1", "shape", SINKPROOF_DTYPE_F32, 1, {3 * h}, 3, 2, 0},
        {good, "00.A1", "I32", SINKPROOF_DTYPE_I32, 2, {3, h}, 3, 2, 0},
        {good, "00.A1x", "00.A1", SINKPROOF_DTYPE_F32, 2, {3, h}, 3, 2, 0},
        {good, "0.A1", "00.A1", SINKPROOF_DTYPE_F32, 2, {3, h}, 3, 2, 0},
        {good, "000.A1", "00.A1", SINKPROOF_DTYPE_F32, 2, {3, h}, 3, 2, 0},
        {good, "01.A2q", "01.A2.q", SINKPROOF_DTYPE_F32, 2, {3, h}, 3, 2, 0},
        {good, "03.T0", "T0", SINKPROOF_DTYPE_F32, 2, {3, h}, 3, 2, 0},
        {good, "77.A1", "layer below", SINKPROOF_DTYPE_F32, 2, {3, h}, 3, 2, 0},
        {good, "00.A1", "element 2", SINKPROOF_DTYPE_F32, 2, {3, h}, 1000, 2, 0},
        {good, "00.A1", "element 2", SINKPROOF_DTYPE_F32, 2, {3, h}, -1, 2, 0},
        {good, "00.A1", "positions", SINKPROOF_DTYPE_F32, 2, {3, h}, 3, 1, 0},
        {good, "00.A1", "positions", SINKPROOF_DTYPE_F32, 2, {3, h}, 3, 3, 0},
        {good, "00.M3", "twice", SINKPROOF_DTYPE_I32, 2, {3, k}, 3, 2, 1},
        {good, "00.M3", "element 0", SINKPROOF_DTYPE_I32, 2, {3, k}, 3, 2, 99},
        {good, "00.M3", "F32", SINKPROOF_DTYPE_F32, 2, {3, k}, 3, 2, 0},
        {good, "00.A9", "shape", SINKPROOF_DTYPE_F32, 3, {config->n_heads, 3, 3}, 3, 2, 0},
        {good,
         "00.A4.k",
         "shape [3, ",
         SINKPROOF_DTYPE_F32,
         3,
         {4, config->n_kv_heads, config->head_dim},
         3,
         2,
         0},
        {good, "cu_seqlens", "from 0 to 3", SINKPROOF_DTYPE_I32, 1, {2}, 3, 2, 0},
        {good, "cu_seqlens", "from 0 to 3", SINKPROOF_DTYPE_I32, 2, {2, 1}, 3, 2, 0},
        {good, "cu_seqlens", "I32", SINKPROOF_DTYPE_F32, 1, {2}, 3, 2, 0},
    };
    for (size_t i = 0; i < sizeof forgeries / sizeof forgeries[0]; i++) forge(&forgeries[i]);
}

static void test_names(void) {
    size_t wrong = 0;
    for (int p = 0; p < TRACE_POINTS; p++)
        for (size_t l = 0; l < 120; l += 7) {
            char name[SINKPROOF_TRACE_NAME];
            sinkproof_trace_point point;
            size_t layer,
                expected = sinkproof_trace_point_is_layered((sinkproof_trace_point)p) ? l : 0;
            sinkproof_trace_name((sinkproof_trace_point)p, l, name);
            wrong += !sinkproof_trace_name_parse(name, &point, &layer) || (int)point != p ||
                     layer != expected;
        }
    ok(wrong == 0, "trace names there and back worst=%zu bound=0", wrong);
}

// A norm's result is one whose own rounding point has another before it: "A1" has "A1.norm".
static void test_norms(void) {
    size_t wrong = 0, norms = 0;
    for (int p = 0; p < TRACE_POINTS; p++) {
        sinkproof_trace_point point = (sinkproof_trace_point)p;
        sinkproof_point at, before = AT_POINTS;
        char name[SINKPROOF_TRACE_NAME];
        bool rounds = sinkproof_trace_rounding(point, &at);
        snprintf(name, sizeof name, "%s.norm", rounds ? sinkproof_point_name(at) : "");
        for (int q = 0; q < AT_POINTS; q++)
            if (strcmp(sinkproof_point_name((sinkproof_point)q), name) == 0)
                before = (sinkproof_point)q;
        bool has = before != AT_POINTS;
        wrong += sinkproof_trace_point_is_norm(point) != has;
        wrong += has && sinkproof_point_before_weight(at) != before;
        norms += has;
    }
    ok(wrong == 0 && norms == 5,
       "A1, A3 twice, M1 and F1 are norms: %zu of them, worst=%zu bound=0", norms, wrong);
}

static void test_refused_points(void) {
    sinkproof_policy policy = policy_of("f32");
    sinkproof_error error = {{0}};
    sinkproof_trace_writer *writer;
    const char *const lists[] = {"A99", "A9,,A1", "", "09.A9", "A"};
    for (size_t i = 0; i < 5; i++)
        ok(!sinkproof_trace_writer_new(path, model, &policy, "test", lists[i], 12, &writer, &error),
           "refused: %s", error.text);
}

// What does not fit is refused, not cut: a policy that was cut would be another.
static void test_long_policy(void) {
    char text[SINKPROOF_POLICY_NAME + 1];
    sinkproof_error error = {{0}};
    sinkproof_trace_builder *builder = NULL;
    const int32_t token = 1;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    bool made = sinkproof_trace_builder_new(model, "e", text, 1, &token, &builder, &error);
    ok(!made && builder == NULL && strstr(error.text, "characters") != NULL,
       "a policy that is too long is refused: %s", error.text);
    text[sizeof text - 2] = '\0';
    made = sinkproof_trace_builder_new(model, "e", text, 1, &token, &builder, &error);
    sinkproof_trace *trace = NULL;
    made = made && sinkproof_trace_builder_finish(builder, &trace, &error);
    ok(made && strcmp(sinkproof_trace_metadata(trace, "policy"), text) == 0,
       "the longest that fits is kept whole");
    sinkproof_trace_close(trace);
    sinkproof_trace_builder_free(builder);
}

int main(void) {
    sinkproof_error error;
    snprintf(path, sizeof path, "/tmp/sinkproof-test-trace-%ld.safetensors", (long)getpid());
    need(sinkproof_model_open("synthetic:tiny", &model, &error), &error);
    config = sinkproof_model_config(model);
    test_names();
    test_norms();
    test_chunked("real-f64");
    test_chunked("openai-bf16");
    test_chunked("f16");
    test_formats();
    test_values("real-f64");
    test_values("f32");
    test_values("hf-bf16");
    test_values("f16,F2=f16");
    test_forgeries();
    test_refused_points();
    test_long_policy();
    unlink(path);
    sinkproof_model_close(model);
    return tap_done();
}
