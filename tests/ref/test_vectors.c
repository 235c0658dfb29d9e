// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The reference against the published torch implementation's own traces (tests/vectors). In
// bfloat16 the small model is reproduced bit for bit, end to end; elsewhere the order of torch's
// sums shows, and the distance is reported (the judge, not this test, says what of it is honest).
#include "audit/trace/trace.h"
#include "audit/trace/trace_points.h"
#include "tests/shared/reference.h"

#include <math.h>

// One point of one layer: what the two hold.
typedef struct tally {
    size_t elements, apart, tensors, tensors_apart;
    double farthest; // of F2
    size_t argmax_apart;
} tally;

typedef struct comparison {
    const sinkproof_trace *trace;
    tally t;
} comparison;

static size_t argmax(size_t count, const double *x) {
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

static void compare_logits(tally *t, const sinkproof_tensor *theirs, const size_t *shape,
                           const double *ours_nv) {
    double *row = calloc(shape[1], sizeof *row);
    for (size_t i = 0; i < shape[0]; i++) {
        for (size_t v = 0; v < shape[1]; v++) {
            row[v] = sinkproof_tensor_value(theirs, i * shape[1] + v);
            keep_worst(&t->farthest, fabs(row[v] - ours_nv[i * shape[1] + v]));
        }
        t->argmax_apart += argmax(shape[1], row) != argmax(shape[1], ours_nv + i * shape[1]);
    }
    free(row);
}

static void see(void *context, const char *name, size_t rank, const size_t *shape,
                const double *values) {
    comparison *c = context;
    sinkproof_trace_point point;
    size_t layer, count = 1, apart = 0;
    if (!sinkproof_trace_name_parse(name, &point, &layer)) return;
    const sinkproof_tensor *theirs = sinkproof_trace_find(c->trace, point, layer);
    if (theirs == NULL) return;
    for (size_t r = 0; r < rank; r++) count *= shape[r];
    for (size_t i = 0; i < count; i++) apart += !(sinkproof_tensor_value(theirs, i) == values[i]);
    c->t.elements += count;
    c->t.apart += apart;
    c->t.tensors++;
    c->t.tensors_apart += apart > 0;
    if (point == TRACE_F2) compare_logits(&c->t, theirs, shape, values);
}

static tally run(const char *folder, const char *file, const char *policy_name) {
    char path[256];
    sinkproof_model *model;
    sinkproof_trace *trace;
    sinkproof_error error;
    sinkproof_policy policy = policy_of(policy_name);
    snprintf(path, sizeof path, "tests/vectors/openai-torch/%s/%s", folder, file);
    *strrchr(path, '/') = '\0';
    bool good = sinkproof_model_open(path, &model, &error);
    path[strlen(path)] = '/';
    if (!good || !sinkproof_trace_open(path, sinkproof_model_config(model), &trace, &error)) {
        printf("Bail out! %s\n", error.text);
        exit(1);
    }
    comparison c = {.trace = trace};
    sinkproof_observer observer = {.see = see, .context = &c};
    sinkproof_session *session = sinkproof_session_new(model, &policy);
    good = sinkproof_forward(session, sinkproof_trace_length(trace), sinkproof_trace_tokens(trace),
                             NULL, &observer, &error);
    if (!good) printf("Bail out! %s\n", error.text);
    sinkproof_session_free(session);
    sinkproof_trace_close(trace);
    sinkproof_model_close(model);
    return c.t;
}

int main(void) {
    const char *bf16 = "openai-bf16,M8.alpha=bf16";
    tally t = run("small", "trace-bf16.safetensors", bf16);
    ok(t.tensors > 60 && t.apart == 0,
       "model.forward small %s = torch, worst=%zu bound=0 of %zu elements in %zu tensors", bf16,
       t.apart, t.elements, t.tensors);
    t = run("small", "trace-bf16.safetensors", "openai-bf16");
    ok(t.apart > 0, "model.forward small openai-bf16 with alpha unrounded: %zu elements differ",
       t.apart);
    t = run("window", "trace-bf16.safetensors", bf16);
    note("window %s: %zu of %zu elements differ, logits by %.3g, argmax in %zu rows", bf16, t.apart,
         t.elements, t.farthest, t.argmax_apart);
    ok(t.tensors > 30, "the window model's bfloat16 trace was compared");
    const char *const folders[] = {"small", "window"};
    for (size_t i = 0; i < 2; i++) {
        t = run(folders[i], "trace-f32.safetensors", "f32");
        ok(t.argmax_apart == 0,
           "model.forward %s f32: the same argmax in every row, logits within %.3g", folders[i],
           t.farthest);
    }
    return tap_done();
}
