// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// An attention kernel of one's own in the middle of a model, judged:
//     cc judge_my_kernel.c $(pkg-config --cflags --libs sinkproof) -lm && ./a.out
#include <math.h>
#include <sinkproof.h>
#include <stdio.h>
#include <string.h>

typedef struct shape {
    size_t heads, kv_heads, dim;
    bool sink_left_out; // the mistake, when asked for
} shape;

// One query: o_d = sum_j softmax(q.k / sqrt(dim), with the sink beside the keys)_j v_jd.
static void attend(const shape *s, const double *q_d, const double *k_jgd, const double *v_jgd,
                   size_t first, size_t last, float sink, double *o_d) {
    size_t step = s->kv_heads * s->dim;
    float sum = s->sink_left_out ? 0 : 1, o[256] = {0}, top = sink; // a sink weighs exp(sink - top)
    for (size_t j = first; j <= last; j++) {
        float score = 0;
        for (size_t d = 0; d < s->dim; d++) score += (float)q_d[d] * (float)k_jgd[j * step + d];
        score /= sqrtf((float)s->dim);
        float larger = fmaxf(top, score), kept = expf(top - larger), weight = expf(score - larger);
        sum = sum * kept + weight;
        for (size_t d = 0; d < s->dim; d++)
            o[d] = o[d] * kept + weight * (float)v_jgd[j * step + d];
        top = larger;
    }
    for (size_t d = 0; d < s->dim; d++) o_d[d] = o[d] / sum;
}

// Makes A11 [n, heads, dim] from A4.q [n, heads, dim], A4.k and A2.v [keys, kv_heads, dim].
static bool my_attention(void *context, const sinkproof_call *call, double *values,
                         sinkproof_error *error) {
    const shape *s = context;
    size_t sinks_shape[2], group = s->heads / s->kv_heads;
    double sinks[256];
    const double *q = sinkproof_call_input(call, "A4.q"), *k = sinkproof_call_input(call, "A4.k");
    const double *v = sinkproof_call_input(call, "A2.v");
    if (!sinkproof_model_weight(call->model, "sinks", call->layer, 0, sinks_shape, sinks, error))
        return false;
    for (size_t i = 0; i < call->n; i++)
        for (size_t h = 0; h < s->heads; h++) {
            size_t at = (i * s->heads + h) * s->dim, g = h / group * s->dim, last = call->first + i;
            size_t first = call->window > 0 && last >= call->window ? last + 1 - call->window : 0;
            attend(s, q + at, k + g, v + g, first, last, (float)sinks[h], values + at);
        }
    return true;
}

static size_t number(const sinkproof_model *model, const char *name) {
    double value = 0;
    sinkproof_config_number(sinkproof_model_config(model), name, &value, NULL);
    return (size_t)value;
}

int main(int argc, char **argv) {
    sinkproof_error error = {{0}};
    sinkproof_model *model = NULL;
    sinkproof_run *run = NULL;
    sinkproof_trace *trace = NULL;
    sinkproof_ruling *ruling = NULL;
    int32_t tokens[48], code = 3;
    for (int32_t t = 0; t < 48; t++) tokens[t] = (7 * t + 3) % 200;
    sinkproof_trial_options how = {.size = sizeof how, .policy = "f32"};
    if (sinkproof_model_open("synthetic:tiny", &model, &error)) {
        shape s = {number(model, "n_heads"), number(model, "n_kv_heads"), number(model, "head_dim"),
                   argc > 1 && strcmp(argv[1], "no-sink") == 0};
        if (sinkproof_run_new(model, "ref", "f32", NULL, &run, &error) &&
            sinkproof_run_replace(run, "A11", "A4.q,A4.k,A2.v", my_attention, &s, &error) &&
            sinkproof_run_trace(run, 48, tokens, NULL, "mine", &trace, &error) &&
            sinkproof_judge_trace(model, trace, &how, &ruling, &error))
            code = sinkproof_ruling_exit(ruling);
    }
    printf("%s\n", ruling != NULL ? sinkproof_ruling_text(ruling) : error.text);
    sinkproof_ruling_free(ruling);
    sinkproof_trace_close(trace);
    sinkproof_run_free(run);
    sinkproof_model_close(model);
    return code;
}
