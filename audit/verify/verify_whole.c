// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Evidence that needs many values: the whole model, judged point by point; and the statistics of a
// tensor's errors (stat.*): honest float32 sums stay within their limits, and planted mistakes (an
// accumulator that truncates, random low bits) do not.
#include "audit/judge/judge.h"
#include "audit/trace/trace_write.h"
#include "audit/verify/verify_near.h"
#include "ref/forward.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

static const double RATE = 1e-9; // rate of false alarms per tensor

// ---- model.forward, gpt2.forward

// Runs ref/ in binary64 on the embedded model, writes a trace and judges it: every point from its
// own inputs.
static bool judge_reference(sinkproof_model *model, const char *path, const int32_t *tokens,
                            size_t n, sinkproof_judgement *judgement, sinkproof_error *error) {
    sinkproof_policy policy = policy_named("real-f64");
    sinkproof_trace_writer *writer = NULL;
    sinkproof_trace *trace = NULL;
    if (!sinkproof_trace_writer_new(path, model, &policy, "ref", NULL, n, &writer, error))
        return false;
    sinkproof_session *session = sinkproof_session_new(model, &policy);
    bool fine = sinkproof_forward(session, n, tokens, NULL, sinkproof_trace_writer_observer(writer),
                                  error) &&
                sinkproof_trace_writer_finish(writer, tokens, error) &&
                sinkproof_trace_open(path, sinkproof_model_config(model), &trace, error) &&
                sinkproof_judge(model, trace, &policy, &(sinkproof_judge_options){.rate = RATE},
                                judgement, error);
    sinkproof_trace_close(trace);
    sinkproof_trace_writer_free(writer);
    sinkproof_session_free(session);
    return fine;
}

static void verify_model(const char *spec, verify_measure *result, uint64_t seed) {
    enum { TOKENS = 6 };
    int32_t tokens[TOKENS];
    char path[1024];
    const char *folder = getenv("TMPDIR");
    sinkproof_error error = {""};
    sinkproof_model *model = NULL;
    sinkproof_judgement judgement;
    snprintf(path, sizeof path, "%s/sinkproof-verify-XXXXXX", folder != NULL ? folder : "/tmp");
    int file = mkstemp(path);
    if (file < 0 || !sinkproof_model_open(spec, &model, &error)) {
        if (file >= 0) close(file), unlink(path);
        return; // nothing measured: the statement lacks evidence
    }
    close(file);
    size_t vocab = sinkproof_model_config(model)->vocab;
    for (size_t i = 0; i < TOKENS; i++)
        tokens[i] = (int32_t)sinkproof_draw_from_to(&seed, 0, vocab - 1);
    if (judge_reference(model, path, tokens, TOKENS, &judgement, &error)) {
        for (size_t r = 0; r < judgement.n_reports; r++) {
            const sinkproof_point_report *report = &judgement.reports[r];
            result->values += report->elements - report->undecided;
            result->wrong += report->outside + report->nans;
            double worst = report->outside + report->nans > 0 ? INFINITY : report->share_worst;
            result->worst = sinkproof_keep_worst(result->worst, worst);
        }
        sinkproof_judgement_free(&judgement);
    }
    unlink(path);
    sinkproof_model_close(model);
}

void verify_forward(verify_measure *result, uint64_t seed) {
    verify_model("synthetic:tiny", result, seed);
}
void verify_gpt2(verify_measure *result, uint64_t seed) {
    verify_model("synthetic:tiny-gpt2", result, seed);
}

// ---- stat.drift, stat.spread, stat.equal-rows ---------------------------------------------------

enum { ROWS = 24, COLS = 96, K = 128, TENSORS = 4 };

typedef enum engine { HONEST, TRUNCATES, CUTS, REDRAWS } engine; // CUTS: the last bit of most sums

// sum_k a_k b_k in float32, ascending; TRUNCATES: towards zero after each addition.
static float engine_dot(engine e, const float *a, const float *b) {
    float sum = 0;
    for (size_t k = 0; k < K; k++) {
        double exact = (double)sum + (double)a[k] * (double)b[k];
        sum = (float)exact;
        if (e == TRUNCATES && fabs((double)sum) > fabs(exact)) sum = nextafterf(sum, 0);
    }
    return sum;
}

static float replace_low_bits(float x, unsigned bits, uint32_t drawn) {
    uint32_t pattern, low = (UINT32_C(1) << bits) - 1;
    memcpy(&pattern, &x, sizeof pattern);
    pattern = (pattern & ~low) | (drawn & low);
    memcpy(&x, &pattern, sizeof x);
    return x;
}

// The drift of a tensor x W^T of ROWS rows, `kinds` of them distinct, as the engine computes it;
// the caller frees it.
static sinkproof_drift products_drift(uint64_t *seed, size_t kinds, engine e) {
    static float x[ROWS * K], w[COLS * K];
    static sinkproof_honest x_k[ROWS * K], w_k[COLS * K], y[ROWS * COLS];
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, ROWS * COLS, RATE);
    for (size_t k = 0; k < kinds * K; k++)
        x[k] = (float)between(seed, -2, 2), x_k[k] = sinkproof_exact_set(x[k]);
    for (size_t k = 0; k < COLS * K; k++)
        w[k] = (float)between(seed, -1, 1), w_k[k] = sinkproof_exact_set(w[k]);
    sinkproof_planes p = sinkproof_planes_new(x_k, kinds, K, K);
    sinkproof_planes q = sinkproof_planes_new(w_k, COLS, K, K);
    must(sinkproof_honest_products(&s, &p, &q, NULL, NULL, y, COLS));
    sinkproof_planes_free(&p);
    sinkproof_planes_free(&q);
    for (size_t k = 0; k < kinds * COLS; k++)
        y[k] = sinkproof_honest_at(&s, AT_A2, sinkproof_honest_inside(&s, y[k]));
    sinkproof_drift drift = {0};
    for (size_t i = 0; i < ROWS; i++) {
        size_t kind = i % kinds;
        double v[COLS];
        for (size_t r = 0; r < COLS; r++) {
            float sum = engine_dot(e, x + kind * K, w + r * K);
            v[r] = e == REDRAWS ? replace_low_bits(sum, 8, (uint32_t)sinkproof_draw(seed))
                   : e == CUTS && r % 4 > 0 ? replace_low_bits(sum, 1, 0)
                                            : sum;
        }
        sinkproof_drift_row(&drift, COLS, v, y + kind * COLS, 0, (double)i / ROWS);
    }
    return drift;
}

// The judged drift of such a tensor.
static sinkproof_drift_result judge_products(uint64_t *seed, size_t kinds, engine e) {
    sinkproof_drift drift = products_drift(seed, kinds, e);
    sinkproof_drift_result result;
    must(sinkproof_drift_judge(&drift, RATE, &result));
    sinkproof_drift_free(&drift);
    return result;
}

void verify_drift(verify_measure *result, uint64_t seed) {
    for (int t = 0; t < TENSORS; t++) {
        sinkproof_drift_result r = judge_products(&seed, ROWS, HONEST);
        verify_add_comparison(result, fabs(r.gain), r.limit);
    }
}
void verify_drift_found(verify_measure *result, uint64_t seed) {
    for (int t = 0; t < TENSORS; t++) {
        sinkproof_drift_result r = judge_products(&seed, ROWS, TRUNCATES);
        verify_add_comparison(result, r.limit, fabs(r.gain));
    }
}

// As many tensors as layers, judged together; `alone`, if given, gets the result of each.
static sinkproof_drift_result judge_layers(uint64_t *seed, engine e, verify_measure *alone) {
    enum { LAYERS = 8 };
    sinkproof_drift drift[LAYERS];
    const sinkproof_drift *layers[LAYERS];
    sinkproof_drift_result own, together;
    for (size_t l = 0; l < LAYERS; l++) {
        layers[l] = &drift[l], drift[l] = products_drift(seed, ROWS, e);
        must(sinkproof_drift_judge(&drift[l], RATE, &own));
        if (alone != NULL) verify_add_comparison(alone, fabs(own.gain), own.limit);
    }
    must(sinkproof_drift_pooled(LAYERS, layers, RATE, &together));
    for (size_t l = 0; l < LAYERS; l++) sinkproof_drift_free(&drift[l]);
    return together;
}

void verify_drift_pooled(verify_measure *result, uint64_t seed) {
    sinkproof_drift_result r = judge_layers(&seed, HONEST, NULL);
    verify_add_comparison(result, fabs(r.gain), r.limit);
}
// The last bit is cleared in three elements of four: plausible in each single layer, but not in all
// together.
void verify_drift_pooled_found(verify_measure *result, uint64_t seed) {
    sinkproof_drift_result r = judge_layers(&seed, CUTS, result);
    verify_add_comparison(result, r.limit, fabs(r.gain));
}

void verify_spread(verify_measure *result, uint64_t seed) {
    for (int t = 0; t < TENSORS; t++) {
        sinkproof_drift_result r = judge_products(&seed, ROWS, HONEST);
        verify_add_comparison(result, r.spread.mean, r.spread.limit);
    }
}
// Products just above 1, whose rounding errs by up to u of them, either way: the mean of the
// squares is nearly the whole allowed variance, u^2 / 3.
void verify_near_spread(verify_measure *result, uint64_t seed) {
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, ROWS * COLS, RATE);
    for (int t = 0; t < TENSORS; t++) {
        sinkproof_drift drift = {0};
        for (size_t i = 0; i < ROWS; i++) {
            double v[COLS];
            sinkproof_honest y[COLS];
            for (size_t r = 0; r < COLS; r++) {
                float a = (float)between(&seed, 1, 1.02), b = (float)between(&seed, 1, 1.02);
                double product = (double)a * (double)b; // exact
                v[r] = (double)(a * b);
                y[r] = sinkproof_honest_roundings(&s, sinkproof_exact_set(product), 1);
            }
            sinkproof_drift_row(&drift, COLS, v, y, 0, (double)i / ROWS);
        }
        sinkproof_drift_result r;
        must(sinkproof_drift_judge(&drift, RATE, &r));
        verify_add_comparison(result, r.spread.mean, r.spread.limit);
        sinkproof_drift_free(&drift);
    }
}
void verify_spread_found(verify_measure *result, uint64_t seed) {
    for (int t = 0; t < TENSORS; t++) {
        sinkproof_drift_result r = judge_products(&seed, ROWS, REDRAWS);
        verify_add_comparison(result, r.spread.limit, r.spread.mean);
    }
}

// The variance of a sum of rows, where rows of one class share the part rho of their errors, over
// that of independent rows; against what is allowed: the classes, then the largest.
void verify_equal_rows(verify_measure *result, uint64_t seed) {
    enum { CLASSES = 5 };
    for (int t = 0; t < 40; t++) {
        sinkproof_row rows[ROWS];
        double sums[CLASSES] = {0}, squares = 0, shared = 0, rho = between(&seed, 0, 1);
        for (size_t i = 0; i < ROWS; i++) {
            double norm = (double)sinkproof_draw_from_to(&seed, 1, 64); // whole: the sums are exact
            size_t class = sinkproof_draw_from_to(&seed, 0, CLASSES - 1);
            rows[i] = (sinkproof_row){.key = class, .model = (float)norm};
            sums[class] += norm, squares += norm * norm;
        }
        for (size_t c = 0; c < CLASSES; c++) shared += sums[c] * sums[c];
        sinkproof_alike alike;
        must(sinkproof_rows_alike(ROWS, rows, &alike));
        double variance = rho * rho * shared + (1 - rho * rho) * squares;
        verify_add_comparison(result, variance, alike.model * squares);
        verify_add_comparison(result, alike.model, alike.largest);
    }
}
// Two rows that repeat show no drift.
void verify_equal_rows_found(verify_measure *result, uint64_t seed) {
    for (int t = 0; t < TENSORS; t++) {
        sinkproof_drift_result r = judge_products(&seed, 2, HONEST);
        verify_add_comparison(result, fabs(r.gain), r.limit);
    }
}
