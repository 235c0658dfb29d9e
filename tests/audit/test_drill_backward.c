// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A plug-in whose attention goes back: honest under two policies and both kinds of log-sum-exp;
// mistaken, it is convicted and its mistake is named. What it is given is checked too.
#include "audit/sinkproof.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum mistake { HONEST, SIGN_LOST, LSE_IGNORED, WINDOW_LOST } mistake;

typedef struct kernel {
    mistake made;
    bool keys_alone; // its log-sum-exp is that of the keys
    size_t calls, with_dlse, wrong;
} kernel;

static const sinkproof_array *named(const sinkproof_drill *d, const char *name) {
    for (size_t i = 0; i < d->n_inputs; i++)
        if (strcmp(d->inputs[i].name, name) == 0) return &d->inputs[i];
    printf("Bail out! no input %s\n", name);
    exit(1);
}

static const float *in(const sinkproof_drill *d, const char *name) {
    return named(d, name)->values;
}

static const float *row(const float *x, size_t heads, size_t dim, size_t i, size_t h) {
    return x + (i * heads + h) * dim;
}

static float dot(size_t n, const float *x, const float *y) {
    float sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

// One query of one head, from the log-sum-exp and the output that the call hands over.
static void one_row(const sinkproof_drill *d, const kernel *k, size_t i, size_t h) {
    size_t dim = d->head_dim, kv = d->kv_heads, g = h / (d->heads / kv);
    size_t window = k->made == WINDOW_LOST ? 0 : d->window;
    size_t first = window > 0 && i >= window ? i + 1 - window : 0;
    const float *q = row(in(d, "A4.q"), d->heads, dim, i, h);
    const float *dout = row(in(d, "dA11"), d->heads, dim, i, h);
    float scale = 1 / sqrtf((float)dim), lse = in(d, "A9.lse")[h * d->n + i], sink;
    float delta = dot(dim, dout, row(in(d, "A11"), d->heads, dim, i, h)), of_keys = 0;
    float dlse = k->made == LSE_IGNORED ? 0 : in(d, "dA9.lse")[h * d->n + i];
    float *dq = d->outputs[0].values + (i * d->heads + h) * dim;
    sink = expf(in(d, "sinks")[h] - lse);
    float most = -INFINITY; // of the keys' scores: e^-lse alone may be too small to divide by
    for (size_t j = first; j <= i; j++)
        most = fmaxf(most, dot(dim, q, row(in(d, "A4.k"), kv, dim, j, g)) * scale);
    for (size_t j = first; j <= i; j++)
        of_keys += expf(dot(dim, q, row(in(d, "A4.k"), kv, dim, j, g)) * scale - most);
    for (size_t j = first; j <= i; j++) {
        const float *key = row(in(d, "A4.k"), kv, dim, j, g);
        float *dk = d->outputs[1].values + (j * kv + g) * dim;
        float *dv = d->outputs[2].values + (j * kv + g) * dim;
        float z = dot(dim, q, key) * scale, p = expf(z - lse);
        float dp = dot(dim, dout, row(in(d, "A2.v"), kv, dim, j, g));
        float of_lse = k->keys_alone ? expf(z - most) / of_keys : p;
        float ds = (p * (dp - delta) + of_lse * dlse) * scale;
        for (size_t c = 0; c < dim; c++) {
            dq[c] += ds * key[c];
            dk[c] += ds * q[c];
            dv[c] += p * dout[c];
        }
    }
    float db = sink * ((k->keys_alone ? 0 : dlse) - delta);
    d->outputs[3].values[h] += k->made == SIGN_LOST ? -db : db;
}

static int attention_backward(void *context, const sinkproof_drill *d) {
    static const char *const names[] = {"dA4.q", "dA4.k", "dA2.v", "dsink"};
    kernel *k = context;
    float dlse = 0;
    k->calls++;
    for (size_t t = 0; t < 4; t++) {
        size_t count = 1;
        for (size_t r = 0; r < d->outputs[t].rank; r++) count *= d->outputs[t].shape[r];
        memset(d->outputs[t].values, 0, count * sizeof(float));
        k->wrong += d->n_outputs != 4 || strcmp(d->outputs[t].name, names[t]) != 0;
    }
    for (size_t i = 0; i < d->heads * d->n; i++) dlse += fabsf(in(d, "dA9.lse")[i]);
    k->with_dlse += dlse > 0;
    k->wrong += d->first != 0 || named(d, "A9.lse")->shape[0] != d->heads;
    for (size_t h = 0; h < d->heads; h++)
        for (size_t i = 0; i < d->n; i++) one_row(d, k, i, h);
    return 0;
}

static sinkproof_drill_ruling *drilled(kernel *k, const char *policy, const char *lse) {
    const sinkproof_plugin_entry entry = {"attention_backward", attention_backward};
    const sinkproof_plugin plugin = {.size = sizeof plugin,
                                     .name = "mine",
                                     .n_stages = 1,
                                     .stages = &entry,
                                     .policy = policy,
                                     .context = k,
                                     .lse = lse};
    const sinkproof_drill_options how = {.size = sizeof how, .limit = 20};
    sinkproof_drill_ruling *ruling;
    sinkproof_error error;
    if (sinkproof_drill_plugin(&plugin, &how, &ruling, &error)) return ruling;
    printf("Bail out! %s\n", error.text);
    exit(1);
}

static void check_honest(const char *policy, const char *lse, bool keys_alone, const char *said) {
    kernel k = {.made = HONEST, .keys_alone = keys_alone};
    sinkproof_drill_ruling *ruling = drilled(&k, policy, lse);
    const char *text = sinkproof_drill_ruling_text(ruling);
    bool some = lse != NULL ? k.with_dlse > 4 && k.with_dlse < 16 : k.with_dlse == 0;
    ok(sinkproof_drill_ruling_exit(ruling) == 0 && k.calls == 20 && k.wrong == 0 && some,
       "grad.chain honest under %s, lse %s: %zu of %zu losses read the log-sum-exp", policy,
       lse != NULL ? lse : "none", k.with_dlse, k.calls);
    ok(said == NULL || strstr(text, said) != NULL, "its report says: %s",
       said != NULL ? said : "nothing of a log-sum-exp");
    if (sinkproof_drill_ruling_exit(ruling) != 0) printf("# %s\n", text);
    sinkproof_drill_ruling_free(ruling);
}

static void check_mistaken(const char *policy, mistake made, const char *output,
                           const char *cause) {
    kernel k = {.made = made};
    sinkproof_drill_ruling *ruling = drilled(&k, policy, "with-sink");
    const char *text = sinkproof_drill_ruling_text(ruling);
    bool named_so = strstr(text, cause) != NULL && strstr(text, output) != NULL;
    ok(sinkproof_drill_ruling_exit(ruling) == 1 && named_so, "convicted under %s: %s", policy,
       cause);
    if (!named_so) printf("# %s\n", text);
    sinkproof_drill_ruling_free(ruling);
}

int main(void) {
    check_honest("f32", "with-sink", false, "dA9.lse is judged with the sink");
    check_honest("f32", "without-sink", true, "dA9.lse is judged without the sink");
    check_honest("f32", NULL, false, NULL);
    check_honest("flash-bf16", "with-sink", false, "dA9.lse is judged with the sink");
    check_mistaken("flash-bf16", SIGN_LOST, "attention_backward: dsink[", "the sign is wrong");
    check_mistaken("f32", LSE_IGNORED, "attention_backward: d",
                   "Cause: the gradient of the log-sum-exp is ignored");
    check_mistaken("f32", WINDOW_LOST, "attention_backward: dA4.q[",
                   "Cause: the window is lost going back");
    check_honest("f32", "either", true, "dA9.lse fits without the sink, and not with it");
    return tap_done();
}
