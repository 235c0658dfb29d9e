// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The judge's sets of attention's gradients, made from q, k, v, dO and the sinks alone, against
// what an H200 gave (tests/vectors/gpu/backward.safetensors): torch's eager attention, and fla's
// Triton kernel, each under its policy.
#include "audit/judge/judge_backward_attention.h"
#include "tests/shared/backward_file.h"

#include <math.h>

static sinkproof_near *numbers(const sinkproof_safetensors *file, const char *which, const char *of,
                               const char *name, size_t *n) {
    double *exact = backward_numbers(file, which, of, name, n);
    sinkproof_near *x = calloc(*n + 1, sizeof *x);
    must(x != NULL);
    for (size_t i = 0; i < *n; i++) x[i] = sinkproof_near_exact(exact[i]);
    free(exact);
    return x;
}

typedef struct counted {
    size_t elements, outside;
    double radius, size; // of all sets, and of their middles
} counted;

static void compare(counted *to, const sinkproof_near *engine, const sinkproof_near *set, size_t n,
                    sinkproof_format format) {
    for (size_t i = 0; i < n; i++) {
        double lo = sinkproof_round(format, set[i].mid - set[i].off);
        double hi = sinkproof_round(format, set[i].mid + set[i].off);
        to->elements++;
        to->outside += !(lo <= engine[i].mid && engine[i].mid <= hi);
        to->radius += set[i].off * set[i].off, to->size += set[i].mid * set[i].mid;
    }
}

typedef struct engine {
    const char *name, *policy;
    sinkproof_format format;
    bool log2_sink;
} engine;

static counted judge(const sinkproof_safetensors *file, const char *which, size_t window, engine by,
                     const sinkproof_backward_meaning *meaning) {
    static const char *const names[] = {"dq", "dk", "dv", "ds"};
    sinkproof_policy policy;
    sinkproof_gradient_arithmetic a;
    sinkproof_point where;
    size_t n, counts[] = {N * HEADS * DIM, N * GROUPS * DIM, N * GROUPS * DIM, HEADS};
    sinkproof_near *in[5], *out[4];
    static const char *const inputs[] = {"q", "k", "v", "do", "s"};
    double sink_h[HEADS];
    must(sinkproof_policy_known(by.policy, &policy));
    must(sinkproof_gradient_arithmetic_of(&policy, &a, &where));
    for (int i = 0; i < 5; i++) in[i] = numbers(file, which, "in", inputs[i], &n);
    for (int i = 0; i < 4; i++) out[i] = calloc(counts[i], sizeof *out[i]);
    for (size_t h = 0; h < HEADS; h++) {
        double log2_e = 1.4426950408889634;
        sink_h[h] = by.log2_sink ? sinkproof_round(by.format, in[4][h].mid * log2_e) / log2_e
                                 : in[4][h].mid;
    }
    sinkproof_backward_inputs from = {.policy = &policy,
                                      .arithmetic = &a,
                                      .meaning = meaning,
                                      .n = N,
                                      .heads = HEADS,
                                      .groups = GROUPS,
                                      .dim = DIM,
                                      .window = window,
                                      .rate = 1e-9,
                                      .q = in[0],
                                      .k = in[1],
                                      .v = in[2],
                                      .dout = in[3],
                                      .sink_h = sink_h};
    sinkproof_backward_outputs to = {.dq = out[0], .dk = out[1], .dv = out[2], .dsink_h = out[3]};
    must(attention_back_lacks(&from, &to) == NULL && attention_back(&from, &to));
    counted all = {0, 0, 0, 0};
    for (int i = 0; i < 4; i++) {
        sinkproof_near *engine_values = numbers(file, which, by.name, names[i], &n);
        compare(&all, engine_values, out[i], counts[i], by.format);
        free(engine_values);
        free(out[i]);
    }
    for (int i = 0; i < 5; i++) free(in[i]);
    return all;
}

static const struct {
    const char *name, *what;
    size_t window;
} cases[] = {{"n33-h4-g2-d64-w0-around", "sinks around the scores", 0},
             {"n33-h4-g2-d64-w8-around", "sinks around the scores, window 8", 8},
             {"n33-h4-g2-d64-w0-above", "sinks above the scores", 0},
             {"n33-h4-g2-d64-w0-far-below", "sinks far below the scores", 0}};

int main(void) {
    sinkproof_safetensors *file;
    sinkproof_error error;
    static const engine engines[] = {{"eager-f32", "f32", SINKPROOF_F32, false},
                                     {"eager-bf16", "hf-bf16", SINKPROOF_BF16, false},
                                     {"fla-bf16", "flash-bf16", SINKPROOF_BF16, true}};
    if (!sinkproof_safetensors_open(FILE_NAME, &file, &error)) {
        printf("Bail out! %s\n", error.text);
        return 1;
    }
    for (size_t e = 0; e < 3; e++)
        for (size_t c = 0; c < 4; c++) {
            counted all =
                judge(file, cases[c].name, cases[c].window, engines[e], &backward_as_defined);
            ok(all.elements == 16900 && all.outside == 0,
               "grad.rounded %s under %s, %s: elements=%zu outside=%zu, sets as wide as %.2g of "
               "the values",
               engines[e].name, engines[e].policy, cases[c].what, all.elements, all.outside,
               sqrt(all.radius / all.size));
            sinkproof_backward_meaning wrong = backward_as_defined;
            wrong.lse = SINKPROOF_LSE_WITHOUT_SINK;
            all = judge(file, cases[c].name, cases[c].window, engines[e], &wrong);
            bool tells = c != 3; // a sink far below has no weight
            ok(!tells || all.outside > 0,
               "grad.rounded %s, weights without the sink, %s: %zu of %zu outside", engines[e].name,
               cases[c].what, all.outside, all.elements);
        }
    // fla holds the sink's logit in base 2: undeclared, that rounding shows.
    engine undeclared = engines[2];
    undeclared.log2_sink = false;
    for (size_t c = 2; c < 4; c++) {
        counted all = judge(file, cases[c].name, cases[c].window, undeclared, &backward_as_defined);
        ok(all.outside > 0,
           "grad.rounded fla-bf16, its sink in base 2 not declared, %s: %zu outside", cases[c].what,
           all.outside);
    }
    sinkproof_safetensors_close(file);
    return tap_done();
}
