// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A plug-in drilled in this process, through the public functions: an honest kernel acquitted,
// mistakes convicted and named, what breaks said in a sentence, and what is refused.
#include "audit/sinkproof.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_KEYS = 512 };
typedef enum mistake {
    HONEST,
    UNCACHED,
    NAN_LAST,
    UNWRITTEN,
    INTO_INPUT,
    FAILS,
    STOPS,
    SERVES_NOTHING,
    LSE_BASE_2,
    LSE_OFF
} mistake;

typedef struct kernel {
    mistake planted;
    size_t calls, cached, released; // released: 64 heads on 8 of size 64
    sinkproof_error said;
    bool stop, wrong_dtype, with_sink; // with_sink: of A9.lse
    size_t lse_calls;
} kernel;

static sinkproof_error error;
static kernel *older; // of a plug-in without a context

// Queries [n, heads, dim], keys and values [first + n, kv_heads, dim]: softmax with a sink.
static void attend(const sinkproof_drill *d, mistake planted, bool with_sink, size_t i, size_t h) {
    double w_j[MOST_KEYS];
    size_t dim = d->head_dim, g = h / (d->heads / d->kv_heads), last = d->first + i;
    size_t least = d->window > 0 && last >= d->window ? last + 1 - d->window : 0;
    if (planted == UNCACHED && least < d->first) least = d->first;
    const float *q = d->inputs[0].values + (i * d->heads + h) * dim;
    double sink = d->inputs[3].values[h], top = sink, sum;
    for (size_t j = least; j <= last; j++) {
        const float *k = d->inputs[1].values + (j * d->kv_heads + g) * dim;
        w_j[j] = 0;
        for (size_t c = 0; c < dim; c++) w_j[j] += (double)q[c] * k[c];
        w_j[j] /= sqrt((double)dim);
        top = fmax(top, w_j[j]);
    }
    sum = exp(sink - top);
    double keys = 0;
    for (size_t j = least; j <= last; j++) keys += w_j[j] = exp(w_j[j] - top);
    sum += keys;
    if (d->n_outputs > 1) {
        double lse = top + log(with_sink ? sum : keys);
        if (planted == LSE_BASE_2) lse /= log(2);
        if (planted == LSE_OFF) lse += log(2);
        d->outputs[1].values[h * d->n + i] = (float)lse;
    }
    for (size_t c = 0; c < dim; c++) {
        double o = 0;
        for (size_t j = least; j <= last; j++)
            o += w_j[j] * d->inputs[2].values[(j * d->kv_heads + g) * dim + c];
        d->outputs[0].values[(i * d->heads + h) * dim + c] = (float)(o / sum);
    }
}

static int attention(void *context, const sinkproof_drill *d) {
    kernel *k = context != NULL ? context : older;
    size_t end = d->n * d->heads * d->head_dim - 1;
    k->calls++;
    k->lse_calls += d->n_outputs == 2 && strcmp(d->outputs[1].name, "A9.lse") == 0 &&
                    d->outputs[1].shape[0] == d->heads && d->outputs[1].shape[1] == d->n;
    k->cached += d->first > 0;
    k->released += d->heads == 64 && d->kv_heads == 8 && d->head_dim == 64;
    k->wrong_dtype = k->wrong_dtype || strcmp(d->dtype, "F32") != 0;
    if (k->planted == SERVES_NOTHING) return 1;
    if (k->planted == FAILS || k->planted == STOPS) {
        snprintf(k->said.text, sizeof k->said.text, "it has no page %zu", d->n);
        k->stop = k->planted == STOPS;
        return 2;
    }
    for (size_t i = 0; i < d->n; i++)
        for (size_t h = 0; h < d->heads; h++)
            if (k->planted != UNWRITTEN || i + 1 < d->n) attend(d, k->planted, k->with_sink, i, h);
    if (k->planted == NAN_LAST) d->outputs[0].values[end] = NAN;
    if (k->planted == INTO_INPUT) d->inputs[3].values[0] = 0;
    return 0;
}

static sinkproof_drill_ruling *drilled_with(kernel *k, const char *lse, size_t limit,
                                            const char *only) {
    const sinkproof_plugin_entry stages[] = {{"attention", attention}};
    const sinkproof_plugin plugin = {.size = sizeof plugin,
                                     .name = "mine",
                                     .n_stages = 1,
                                     .stages = stages,
                                     .context = k,
                                     .lse = lse};
    const sinkproof_drill_options how = {.size = sizeof how,
                                         .limit = limit,
                                         .only = only,
                                         .first = k->planted != HONEST,
                                         .no_cause = lse != NULL || k->planted == NAN_LAST,
                                         .said = &k->said,
                                         .stop = &k->stop};
    sinkproof_drill_ruling *ruling = NULL;
    error.text[0] = '\0';
    if (!sinkproof_drill_plugin(&plugin, &how, &ruling, &error)) note("%s", error.text);
    return ruling;
}

static sinkproof_drill_ruling *drilled(kernel *k, size_t limit, const char *only) {
    return drilled_with(k, NULL, limit, only);
}

static void check_honest(void) {
    kernel k = {.planted = HONEST};
    sinkproof_drill_ruling *r = drilled(&k, 40, NULL);
    ok(r != NULL && sinkproof_drill_ruling_exit(r) == 0 &&
           strstr(sinkproof_drill_ruling_text(r), "mine under f32\n") != NULL &&
           strstr(sinkproof_drill_ruling_text(r), "\nattention         40        0") != NULL &&
           strstr(sinkproof_drill_ruling_json(r), "\"verdict\": \"within\"") != NULL,
       "40 calls of an honest kernel are within");
    sinkproof_drill_ruling_free(r);
    ok(k.calls > 60 && k.cached > 30 && k.released > 0 && !k.wrong_dtype,
       "among them passes over a cache, and the released heads: %zu calls, %zu over a cache, %zu",
       k.calls, k.cached, k.released);
    k = (kernel){.planted = HONEST};
    r = drilled(&k, 0, "attention:n=5,chunk=2,window=3,heads=4,kv=2,dim=16");
    ok(r != NULL && sinkproof_drill_ruling_exit(r) == 0 && k.calls == 3 && k.cached == 2,
       "one call of five rows, two at a time");
    sinkproof_drill_ruling_free(r);
}

static void check_planted(void) {
    static const struct {
        mistake planted;
        int exit;
        const char *says;
    } rows[] = {
        {UNCACHED, 1, "[cache-unread]"},          {NAN_LAST, 1, "is NaN, expected "},
        {UNWRITTEN, 1, "of A11 unwritten"},       {INTO_INPUT, 1, "it wrote into its input sinks"},
        {FAILS, 1, "attention: it has no page "}, {SERVES_NOTHING, 4, "not served"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kernel k = {.planted = rows[i].planted};
        sinkproof_drill_ruling *r = drilled(&k, 30, NULL);
        const char *text = r != NULL ? sinkproof_drill_ruling_text(r) : "";
        ok(r != NULL && sinkproof_drill_ruling_exit(r) == rows[i].exit &&
               strstr(text, rows[i].says) != NULL && strstr(text, "again: ") == NULL,
           "exit %d: %s", rows[i].exit, rows[i].says);
        if (r != NULL && strstr(text, rows[i].says) == NULL) note("%s", text);
        sinkproof_drill_ruling_free(r);
    }
    kernel k = {.planted = STOPS};
    ok(drilled(&k, 30, NULL) == NULL && k.calls == 1 && strcmp(error.text, "it has no page 2") == 0,
       "a stage that stops ends the drill with what it said");
}

// A9.lse as a second output: of either kind, said or found.
static void check_lse(void) {
    static const struct {
        bool with_sink;
        const char *word;
        mistake planted;
        int exit;
        const char *says;
    } rows[] = {
        {true, "with-sink", HONEST, 0, "\nA9.lse is judged with the sink, as is said of it.\n"},
        {false, "without-sink", HONEST, 0,
         "\nA9.lse is judged without the sink, as is said of it.\n"},
        {true, "either", HONEST, 0, "\nA9.lse fits with the sink, and not without it ("},
        {false, "either", HONEST, 0, "\nA9.lse fits without the sink, and not with it ("},
        {false, "with-sink", HONEST, 1, "attention: A9.lse[0, 0] is "},
        {true, "without-sink", HONEST, 1, "attention: A9.lse[0, 0] is "},
        {true, "either", LSE_BASE_2, 1, "; times ln 2 it is inside\n"},
        {true, "with-sink", LSE_OFF, 1, "; less ln 2 it is inside\n"},
        {true, "either", LSE_OFF, 1, "\nA9.lse fits neither with the sink ("},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kernel k = {.planted = rows[i].planted, .with_sink = rows[i].with_sink};
        sinkproof_drill_ruling *r = drilled_with(&k, rows[i].word, 20, NULL);
        const char *text = r != NULL ? sinkproof_drill_ruling_text(r) : "";
        ok(r != NULL && sinkproof_drill_ruling_exit(r) == rows[i].exit &&
               strstr(text, rows[i].says) != NULL && k.lse_calls == k.calls,
           "A9.lse %s the sink, said to be %s: exit %d", rows[i].with_sink ? "with" : "without",
           rows[i].word, rows[i].exit);
        if (r != NULL && strstr(text, rows[i].says) == NULL) note("%s", text);
        sinkproof_drill_ruling_free(r);
    }
    kernel k = {.planted = HONEST};
    ok(drilled_with(&k, "natural", 20, NULL) == NULL &&
           strcmp(error.text, "A9.lse: expected with-sink, without-sink or either, found "
                              "'natural'") == 0,
       "a word that is none");
}

// Plug-ins of headers whose struct ended earlier: what lies behind is no member.
static void check_older(void) {
    const sinkproof_plugin_entry stages[] = {{"attention", attention}};
    const size_t sizes[] = {offsetof(sinkproof_plugin, policy), offsetof(sinkproof_plugin, lse)};
    for (size_t i = 0; i < 2; i++) {
        kernel k = {.planted = HONEST};
        sinkproof_drill_ruling *r = NULL;
        const sinkproof_drill_options how = {.size = sizeof how, .limit = 6};
        sinkproof_plugin plugin = {
            .size = sizes[i], .n_stages = 1, .stages = stages, .context = &k};
        older = i == 0 ? &k : NULL;
        plugin.lse = "no member";
        if (i == 0) plugin.policy = "no member";
        ok(sinkproof_drill_plugin(&plugin, &how, &r, &error) &&
               sinkproof_drill_ruling_exit(r) == 0 && k.lse_calls == 0,
           "a plug-in of an older header, of %zu bytes, goes on working", sizes[i]);
        sinkproof_drill_ruling_free(r);
    }
}

static void check_refused(void) {
    kernel k = {.planted = HONEST};
    sinkproof_plugin_entry stages[] = {{"attention", attention}, {"attenti0n", attention}};
    sinkproof_plugin plugin = {
        .size = sizeof plugin, .n_stages = 2, .stages = stages, .context = &k};
    sinkproof_drill_options how = {.size = sizeof how, .limit = 1};
    sinkproof_drill_ruling *r = NULL;
    ok(!sinkproof_drill_plugin(&plugin, &how, &r, &error) &&
           strstr(error.text, "no stage 'attenti0n': the nearest known is attention") != NULL,
       "a stage that is none");
    stages[1] = (sinkproof_plugin_entry){"rope", NULL};
    ok(!sinkproof_drill_plugin(&plugin, &how, &r, &error) &&
           strcmp(error.text, "stage rope has no function") == 0,
       "a stage without a function");
    plugin.n_stages = 1;
    how.stages = "swiglu";
    ok(!sinkproof_drill_plugin(&plugin, &how, &r, &error) &&
           strcmp(error.text, "a kernel: it has no stage swiglu") == 0,
       "a stage that it has not: %s", error.text);
    how.stages = NULL, how.policy = "f33";
    ok(!sinkproof_drill_plugin(&plugin, &how, &r, &error) && strstr(error.text, "f33") != NULL,
       "a policy that is none");
    how.policy = NULL, how.rate = 2;
    ok(!sinkproof_drill_plugin(&plugin, &how, &r, &error) && strstr(error.text, "found 2") != NULL,
       "a rate that is none");
    plugin.size = 8;
    ok(!sinkproof_drill_plugin(&plugin, NULL, &r, &error) && strstr(error.text, "its size") != NULL,
       "a plug-in without its size");
    ok(!sinkproof_drill_plugin(NULL, NULL, &r, &error) && r == NULL && k.calls == 0,
       "no plug-in at all");
    sinkproof_drill_ruling_free(NULL);
}

int main(void) {
    check_honest();
    check_planted();
    check_lse();
    check_older();
    check_refused();
    return tap_done();
}
