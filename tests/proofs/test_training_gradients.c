// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One step of the training study (doc/27, tests/audit/training_trace.py): every gradient that
// torch's autograd has, of points and weights, is what its stage makes of torch's own inputs,
// within as many float32 roundings (grad.rounded). So are the reference's of the same model and
// text, in binary64. And mistakes are outside.
//
//   test_training_gradients [FOLDER]     config.json, model.safetensors, trace.safetensors
#include "model/safetensors.h"
#include "tests/shared/backward_reference.h"

enum { MOST_TOKENS = 64 };

static sinkproof_safetensors *open_trace(const char *folder) {
    char path[512];
    sinkproof_error error;
    sinkproof_safetensors *file;
    snprintf(path, sizeof path, "%s/trace.safetensors", folder);
    need(sinkproof_safetensors_open(path, &file, &error), &error);
    return file;
}

// A tensor as binary64, to be freed, and its size.
static double *numbers(const sinkproof_tensor *tensor, size_t *count) {
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

// A walk whose witness is the trace.
static composed *trace_walk(const sinkproof_model *model, const sinkproof_safetensors *file,
                            size_t n, const int32_t *tokens_n) {
    composed *w = walk_new(model, n, tokens_n, false);
    w->unit = 0x1p-24, w->witness = w->weighs = w->lacks_weights = true;
    for (size_t t = 0; t < sinkproof_safetensors_count(file); t++) {
        const sinkproof_tensor *tensor = sinkproof_safetensors_at(file, t);
        size_t count;
        double *x = numbers(tensor, &count);
        if (strcmp(tensor->name, "cos") == 0)
            w->cos_nd = x;
        else if (strcmp(tensor->name, "sin") == 0)
            w->sin_nd = x;
        else if (is_gradient(tensor->name))
            keep_gradient(w, tensor->name, 1, &count, x), free(x);
        else
            keep_point(w, tensor->name, x, count), free(x);
    }
    must(w->cos_nd != NULL && w->sin_nd != NULL);
    return w;
}

static size_t read_tokens(const sinkproof_safetensors *file, int32_t tokens_n[MOST_TOKENS]) {
    const sinkproof_tensor *tensor = sinkproof_safetensors_find(file, "tokens");
    must(tensor != NULL);
    size_t n = sinkproof_tensor_elements(tensor);
    must(n >= 2 && n <= MOST_TOKENS);
    for (size_t t = 0; t < n; t++) tokens_n[t] = (int32_t)sinkproof_tensor_value(tensor, t);
    return n;
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

static void plant(const sinkproof_model *model, const sinkproof_safetensors *file, size_t n,
                  const int32_t *tokens_n) {
    for (size_t m = 0; m < sizeof mistakes / sizeof *mistakes; m++) {
        composed *w = trace_walk(model, file, n, tokens_n);
        named_gradient *g = find(w, mistakes[m].name);
        for (size_t i = 0; i < g->ref_n; i++) g->ref[i] *= mistakes[m].times;
        bool had = g->ref != NULL;
        compose(w);
        if (had)
            ok(w->outside > 0, "%s a trained model's %s, %s: outside=%zu", mistakes[m].id,
               mistakes[m].name, mistakes[m].what, w->outside);
        reference_free(w);
    }
}

int main(int argc, char **argv) {
    const char *folder = argc > 1 ? argv[1] : "tests/vectors/training/step";
    sinkproof_model *model = open_model(folder);
    sinkproof_safetensors *file = open_trace(folder);
    int32_t tokens_n[MOST_TOKENS];
    size_t n = read_tokens(file, tokens_n);
    composed *w = trace_walk(model, file, n, tokens_n);
    compose(w);
    ok(w->outside == 0 && w->worst <= 1 && w->lacking == 8,
       "grad.rounded grad.chain a trained model, torch's: elements=%zu outside=%zu worst=%.3g "
       "bound=1 at %s",
       w->elements, w->outside, w->worst, w->at);
    reference_free(w);
    w = reference_walk(model, n, tokens_n, false);
    compose(w);
    ok(w->outside == 0 && w->worst <= 1,
       "grad.rounded grad.chain a trained model, the reference's: elements=%zu outside=%zu "
       "worst=%.3g bound=1 at %s",
       w->elements, w->outside, w->worst, w->at);
    reference_free(w);
    plant(model, file, n, tokens_n);
    sinkproof_safetensors_close(file);
    sinkproof_model_close(model);
    return tap_done();
}
