// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Gradients in a trace that is built from arrays: their names, shapes and dtypes, and what is
// refused.
#include "audit/sinkproof.h"
#include "tests/shared/opened.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <string.h>

enum { N = 5 };

static sinkproof_model *model;
static sinkproof_error error;

// Each gradient that the model has by its name, with its shape and a dtype.
static const struct {
    const char *name, *dtype;
    size_t rank, shape[3];
} some[] = {
    {"03.dA11", "F32", 3, {N, 10, 16}},    {"00.dA9", "BF16", 3, {10, N, N + 1}},
    {"01.dsink", "F64", 1, {10}},          {"02.dW.up", "F16", 3, {7, 256, 96}},
    {"00.db.router", "BF16", 1, {7}},      {"dF2", "F32", 2, {N, 211}},
    {"dW.embedding", "F64", 2, {211, 96}},
};
enum { SOME = sizeof some / sizeof *some };

static sinkproof_trace_builder *new_builder(void) {
    sinkproof_trace_builder *b;
    const int32_t tokens[N] = {3, 1, 4, 1, 5};
    need(sinkproof_trace_builder_new(model, "mine", NULL, N, tokens, &b, &error), &error);
    return b;
}

static size_t elements(size_t i) {
    size_t count = 1;
    for (size_t d = 0; d < some[i].rank; d++) count *= some[i].shape[d];
    return count;
}

static uint8_t *some_bytes(size_t i) {
    size_t bytes = elements(i) * sizeof(double);
    uint8_t *data = malloc(bytes);
    if (data == NULL) abort();
    for (size_t k = 0; k < bytes; k++) data[k] = (uint8_t)(k * (i + 1) % 61); // all finite
    return data;
}

static bool add(sinkproof_trace_builder *b, const char *name, size_t i, size_t cut) {
    uint8_t *data = some_bytes(i);
    size_t shape[3];
    memcpy(shape, some[i].shape, sizeof shape);
    shape[0] -= cut;
    bool added =
        sinkproof_trace_builder_add(b, name, some[i].dtype, some[i].rank, shape, data, &error);
    free(data);
    return added;
}

static void check_shapes(void) {
    size_t good = 0, rank, shape[SINKPROOF_RANK];
    for (size_t i = 0; i < SOME; i++)
        good += sinkproof_point_shape(sinkproof_model_config(model), some[i].name, N, &rank, shape,
                                      &error) &&
                rank == some[i].rank && memcmp(shape, some[i].shape, rank * sizeof *shape) == 0;
    ok(good == SOME, "the shapes of %d gradients by their names", (int)SOME);
}

static void check_built(void) {
    sinkproof_trace_builder *b = new_builder();
    sinkproof_trace *trace;
    sinkproof_view v = {.size = sizeof v};
    size_t same = 0;
    for (size_t i = 0; i < SOME; i++) need(add(b, some[i].name, i, 0), &error);
    need(sinkproof_trace_builder_loss(b, "cross-entropy", &error), &error);
    need(sinkproof_trace_builder_finish(b, &trace, &error), &error);
    const char *loss = sinkproof_trace_metadata(trace, "loss");
    ok(loss != NULL && strcmp(loss, "cross-entropy") == 0, "what the loss reads is kept");
    for (size_t i = 0; i < SOME; i++) {
        uint8_t *data = some_bytes(i);
        same += sinkproof_trace_named(trace, some[i].name, &v) && v.rank == some[i].rank &&
                strcmp(v.dtype, some[i].dtype) == 0 && memcmp(v.data, data, v.bytes) == 0 &&
                memcmp(v.shape, some[i].shape, v.rank * sizeof *v.shape) == 0;
        free(data);
    }
    ok(same == SOME && sinkproof_trace_count(trace) == SOME + 2,
       "%d gradients through a builder: the same names, shapes, dtypes and bits", (int)SOME);
    sinkproof_trace_close(trace);
    sinkproof_trace_builder_free(b);
}

static bool says(const char *part) {
    return strstr(error.text, part) != NULL && strchr(error.text, '\n') == NULL;
}

static void check_refused(void) {
    sinkproof_trace_builder *b = new_builder();
    const size_t rows[] = {N}, firsts[] = {2};
    ok(!add(b, "03.dA11", 0, 1) && says("03.dA11: expected shape [5, 10, 16]"),
       "another shape is refused");
    ok(!add(b, "04.dA11", 0, 0) && says("04.dA11: the model has no such point or weight"),
       "a layer that the model does not have is refused: %s", error.text);
    ok(!add(b, "03.dW.q_norm", 2, 0) && says("03.dW.q_norm: the model has no such point or weight"),
       "a weight that the model does not have is refused");
    ok(!add(b, "03.dM3", 2, 0) && says("unknown point '03.dM3'"), "indices have no gradient");
    ok(!sinkproof_trace_builder_add(b, "01.dsink", "I32", 1, some[2].shape, rows, &error) &&
           says("01.dsink: expected dtype BF16, F16, F32 or F64, found I32"),
       "whole numbers are refused");
    need(add(b, "01.dsink", 2, 0), &error);
    ok(!add(b, "01.dsink", 2, 0) && says("01.dsink: it is already there"),
       "the same gradient again is refused");
    char *longer = calloc(1, 4096);
    if (longer == NULL) abort();
    memset(longer, 'x', 4095);
    ok(!sinkproof_trace_builder_loss(b, longer, &error) &&
           says("expected a loss of at most 2047 characters, found 4095"),
       "a loss of too many characters is refused");
    free(longer);
    ok(!sinkproof_trace_builder_place(b, 1, rows, firsts, &error) && says("before any gradient"),
       "positions after a gradient are refused");
    sinkproof_trace_builder_free(b);
}

int main(void) {
    model = open_model("synthetic:tiny");
    check_shapes();
    check_built();
    check_refused();
    sinkproof_model_close(model);
    return tap_done();
}
