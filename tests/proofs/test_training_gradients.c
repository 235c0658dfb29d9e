// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One step of the training study (doc/27, tests/audit/training_trace.py): every gradient that
// torch's autograd has, of points and weights, is what its stage makes of torch's own inputs,
// within as many float32 roundings (grad.rounded). So are the reference's of the same model and
// text, in binary64. And mistakes are outside.
//
//   test_training_gradients [FOLDER]     of the model, trace.safetensors and angles.safetensors
#include "model/safetensors.h"
#include "tests/shared/backward_reference.h"

enum { MOST_TOKENS = 64 };

static sinkproof_safetensors *open_tensors(const char *folder, const char *name) {
    char path[512];
    sinkproof_error error;
    sinkproof_safetensors *file;
    snprintf(path, sizeof path, "%s/%s.safetensors", folder, name);
    need(sinkproof_safetensors_open(path, &file, &error), &error);
    return file;
}

// A tensor as binary64, to be freed, and its size.
static double *numbers(const sinkproof_tensor *tensor, size_t *count) {
    must(tensor != NULL);
    *count = sinkproof_tensor_elements(tensor);
    double *x = malloc((*count + 1) * sizeof *x);
    must(x != NULL);
    for (size_t i = 0; i < *count; i++) x[i] = sinkproof_tensor_value(tensor, i);
    return x;
}

static void keep_point(composed *w, const char *name, const double *x, size_t count) {
    const char *of = strncmp(name, "00.", 3) == 0 ? name + 3 : name;
    for (int p = 0; p < TRACE_POINTS; p++) {
        both to = w->act_lp[p];
        if (to.v == NULL || strcmp(of, sinkproof_trace_point_name((sinkproof_trace_point)p)) != 0)
            continue;
        must(to.n == count);
        for (size_t i = 0; i < count; i++) arb_set_d(to.v + i, x[i]);
        both_size(to);
    }
}

static bool is_gradient(const char *name) {
    return name[0] == 'd' || (strncmp(name, "00.", 3) == 0 && name[3] == 'd');
}

typedef struct training_step {
    sinkproof_model *model;
    sinkproof_safetensors *trace, *angles;
    int32_t tokens_n[MOST_TOKENS];
    size_t n;
} training_step;

// A walk whose witness is the trace.
static composed *trace_walk(const training_step *of) {
    composed *w = walk_new(of->model, of->n, of->tokens_n, false);
    size_t count;
    w->unit = 0x1p-24, w->witness = w->weighs = w->lacks_weights = true;
    for (size_t t = 0; t < sinkproof_safetensors_count(of->trace); t++) {
        const sinkproof_tensor *tensor = sinkproof_safetensors_at(of->trace, t);
        double *x = numbers(tensor, &count);
        if (is_gradient(tensor->name))
            keep_gradient(w, tensor->name, 1, &count, x);
        else
            keep_point(w, tensor->name, x, count);
        free(x);
    }
    w->cos_nd = numbers(sinkproof_safetensors_find(of->angles, "cos"), &count);
    w->sin_nd = numbers(sinkproof_safetensors_find(of->angles, "sin"), &count);
    must(count == of->n * w->c->head_dim / 2);
    return w;
}

static void read_tokens(training_step *to) {
    const sinkproof_tensor *tensor = sinkproof_safetensors_find(to->trace, "tokens");
    must(tensor != NULL);
    to->n = sinkproof_tensor_elements(tensor);
    must(to->n >= 2 && to->n <= MOST_TOKENS);
    for (size_t t = 0; t < to->n; t++) to->tokens_n[t] = (int32_t)sinkproof_tensor_value(tensor, t);
}

// ---- mistakes --------------------------------------------------------------------------------

typedef struct mistake {
    const char *what, *name, *id;
    double times; // of every element
} mistake;

static const mistake mistakes[] = {
    {"without its sign", "00.dsink", "grad.sink", -1},
    {"counted twice", "00.dsink", "grad.sink", 2},
    {"a part in 2^12 off", "00.dA6", "grad.softmax", 1 + 0x1p-12},
    {"a part in 2^12 off", "00.dA11", "grad.linear", 1 + 0x1p-12},
    {"a part in 2^12 off", "00.dA4.k", "grad.qkv", 1 + 0x1p-12},
    {"a part in 2^12 off", "00.dA2.v", "grad.values", 1 + 0x1p-12},
    {"a part in 2^12 off", "00.dM6", "grad.swiglu", 1 + 0x1p-12},
    {"a part in 2^12 off", "dW.embedding", "grad.embedding", 1 + 0x1p-12},
};

static void plant(const training_step *of) {
    for (size_t m = 0; m < sizeof mistakes / sizeof *mistakes; m++) {
        composed *w = trace_walk(of);
        named_gradient *g = find(w, mistakes[m].name);
        for (size_t i = 0; i < g->ref_n; i++) g->ref[i] *= mistakes[m].times;
        bool had = g->ref != NULL; // softmax has no sink
        compose(w);
        if (had)
            ok(w->outside > 0, "%s a trained model's %s, %s: outside=%zu", mistakes[m].id,
               mistakes[m].name, mistakes[m].what, w->outside);
        reference_free(w);
    }
}

static void within(composed *w, const char *whose, size_t lacking) {
    compose(w);
    ok(w->outside == 0 && w->worst <= 1 && w->lacking == lacking,
       "grad.rounded grad.chain a trained model, %s: elements=%zu outside=%zu worst=%.3g bound=1 "
       "at %s",
       whose, w->elements, w->outside, w->worst, w->at);
    reference_free(w);
}

int main(int argc, char **argv) {
    const char *folder = argc > 1 ? argv[1] : "tests/vectors/training/step";
    training_step of = {.model = open_model(folder),
                        .trace = open_tensors(folder, "trace"),
                        .angles = open_tensors(folder, "angles")};
    read_tokens(&of);
    within(trace_walk(&of), "torch's", 8); // the study has no biases, and no router
    within(reference_walk(of.model, of.n, of.tokens_n, false), "the reference's", 0);
    plant(&of);
    sinkproof_safetensors_close(of.trace);
    sinkproof_safetensors_close(of.angles);
    sinkproof_model_close(of.model);
    return tap_done();
}
