// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Models with another sink than GPT-OSS's, judged: honest engines of each are within under every
// policy, whatever part of their trace is kept, and the mistakes that such a sink invites are
// convicted where they happen.
#include "fast/lanes/lanes.h"
#include "model/container.h"
#include "tests/shared/judged_engine.h"
#include "tests/shared/opened.h"
#include "tests/shared/sink_value.h"

#include <string.h>

static const sinkproof_stages *const ref = &sinkproof_reference_stages;

// ---- honest engines

static const struct kind {
    const char *name, *ids;
} kinds[] = {{"off-by-one", "sink.softmax1 bound.softmax-sink"},
             {"key", "sink.key-bias bound.softmax-sink"},
             {"none", "bound.softmax-sink"}};

static void test_honest(const struct kind *kind, const sinkproof_stages *stages, const char *who,
                        const char *policy, const char *points) {
    static const size_t lengths[] = {9, 16}, chunks[] = {0, 7};
    // A part of a trace, at once and in chunks: in chunks alone.
    for (size_t i = points != NULL; i < 2; i++) {
        char spec[64], what[160];
        snprintf(spec, sizeof spec, "synthetic:tiny,layers=2,seed=%zu,sink=%s", i + 1, kind->name);
        snprintf(what, sizeof what, "%s %s %s %s%s%s", kind->ids, kind->name, who, policy,
                 points != NULL ? ", kept " : "", points != NULL ? points : "");
        sinkproof_model *model = open_model(spec);
        sinkproof_judgement j =
            judged(model, stages, policy, policy, lengths[i], chunks[i], 5 * i + 3, points);
        ok_within(&j, what, lengths[i]);
        sinkproof_model_close(model);
    }
}

static void test_fast(const char *sink, const char *what) {
    judged_engine of = {.options = {.threads = 2}, .piece = 7};
    char spec[64];
    snprintf(spec, sizeof spec, "synthetic:tiny,layers=2,sink=%s", sink);
    sinkproof_model *model = open_model(spec);
    sinkproof_judgement j =
        judged_run(model, run_engine, &of, "f32", "f32", 24, 11, one_pass_points);
    ok_within(&j, what, 24);
    sinkproof_model_close(model);
}

// Heads of 24: the scale is no power of two, so that it is one more rounding.
static void test_scale(void) {
    static const char *const policies[] = {"f32", "openai-bf16"};
    char path[] = "/tmp/sinkproof-sinks-XXXXXX", spec[64], what[96];
    int descriptor = mkstemp(path);
    sinkproof_config c;
    sinkproof_error error;
    if (descriptor < 0 || !sinkproof_config_named("tiny", &c)) abort();
    c.n_layers = 2;
    c.head_dim = 24;
    if (!sink_kind_find("key", &c.sink) ||
        !config_write(path, &c, sinkproof_container_named("hf"), false, &error))
        abort();
    snprintf(spec, sizeof spec, "synthetic:%s", path);
    sinkproof_model *model = open_model(spec);
    for (size_t p = 0; p < 2; p++) {
        sinkproof_judgement j = judged(model, ref, policies[p], policies[p], 24, 0, 3, NULL);
        snprintf(what, sizeof what, "sink.key-bias bound.softmax-sink key, heads of 24, %s",
                 policies[p]);
        ok_within(&j, what, 24);
    }
    sinkproof_model_close(model);
    close(descriptor);
    unlink(path);
}

// ---- mistakes

static void unscaled(const sinkproof_policy *p, const sinkproof_block *block,
                     const sinkproof_normaliser *normaliser, const double *q_id, double *b_i) {
    ref->sink_logits(p, block, normaliser, q_id, b_i);
    for (size_t i = 0; i < block->rows; i++)
        b_i[i] = round_at(p, AT_A6, b_i[i] * sqrt((double)block->head_dim));
}

// The logit of the block's first query for all of them: a number of the head.
static void of_first_query(const sinkproof_policy *p, const sinkproof_block *block,
                           const sinkproof_normaliser *normaliser, const double *q_id,
                           double *b_i) {
    ref->sink_logits(p, block, normaliser, q_id, b_i);
    for (size_t i = 1; i < block->rows; i++) b_i[i] = b_i[0];
}

// The key rotated to the position of its query (a real key of that position), or to position 0,
// where no angle is left but the concentration is.
static const sinkproof_config *config;
static void rotated_to(const sinkproof_policy *p, const sinkproof_block *block,
                       const sinkproof_normaliser *normaliser, const double *q_id, bool to_zero,
                       double *b_i) {
    size_t d = block->head_dim;
    double *freq_d = malloc(2 * d * sizeof *freq_d), *cos_d = freq_d + d / 2, *sin_d = freq_d + d;
    double *key_d = malloc(d * sizeof *key_d);
    if (freq_d == NULL || key_d == NULL) abort();
    sinkproof_yarn_frequencies(p, config, freq_d);
    for (size_t i = 0; i < block->rows; i++) {
        sinkproof_block row = *block;
        row.rows = 1;
        memcpy(key_d, normaliser->key_d, d * sizeof *key_d);
        sinkproof_rope_table(p, config, freq_d, to_zero ? 0 : block->first + i, 1, cos_d, sin_d);
        sinkproof_rope(p, 1, 1, d, cos_d, sin_d, key_d);
        const sinkproof_normaliser turned = {.key_d = key_d};
        ref->sink_logits(p, &row, &turned, q_id + i * block->q_stride, b_i + i);
    }
    free(freq_d);
    free(key_d);
}

static void rotated(const sinkproof_policy *p, const sinkproof_block *block,
                    const sinkproof_normaliser *normaliser, const double *q_id, double *b_i) {
    rotated_to(p, block, normaliser, q_id, false, b_i);
}

static void rotated_to_zero(const sinkproof_policy *p, const sinkproof_block *block,
                            const sinkproof_normaliser *normaliser, const double *q_id,
                            double *b_i) {
    rotated_to(p, block, normaliser, q_id, true, b_i);
}

static void one_above(const sinkproof_policy *p, const sinkproof_block *block,
                      const sinkproof_normaliser *normaliser, const double *q_id, double *b_i) {
    ref->sink_logits(p, block, normaliser, q_id, b_i);
    for (size_t i = 0; i < block->rows; i++) b_i[i] = 1; // e^1 for the literal 1
}

typedef void logits(const sinkproof_policy *p, const sinkproof_block *block,
                    const sinkproof_normaliser *normaliser, const double *q_id, double *b_i);

static const struct planted {
    const char *name, *sink, *at;
    logits *sink_logits;
    bool with_value;
} planted[] = {
    {"the sink ignored", "key", "00.A9", logits_gone, false},
    {"the key's logit not scaled", "key", "00.A9", unscaled, false},
    {"one query's logit for all", "key", "00.A9", of_first_query, false},
    {"the key rotated", "key", "00.A9", rotated, false},
    {"the key rotated to position 0", "key", "00.A9", rotated_to_zero, false},
    {"the sink with a value", "key", "00.A11", NULL, true},
    {"the sink ignored", "off-by-one", "00.A9", logits_gone, false},
    {"a logit of 1 for a term of 1", "off-by-one", "00.A9", one_above, false},
    {"the sink with a value", "off-by-one", "00.A11", NULL, true},
    {"a term of 1 where there is none", "none", "00.A9", logits_zero, false},
};

static void convicted(sinkproof_judgement *j, const char *what, const char *policy,
                      const char *at) {
    const char *found = j->first != NULL ? j->first->name : "nowhere";
    ok(strcmp(found, at) == 0, "%s under %s: %s at %s, expected a bug at %s", what, policy,
       sinkproof_verdict_name(j->verdict), found, at);
    sinkproof_judgement_free(j);
}

static void test_planted(const char *policy) {
    for (size_t b = 0; b < sizeof planted / sizeof *planted; b++) {
        char spec[64], what[96];
        snprintf(spec, sizeof spec, "synthetic:tiny,layers=2,sink=%s", planted[b].sink);
        snprintf(what, sizeof what, "%s: %s", planted[b].sink, planted[b].name);
        sinkproof_model *model = open_model(spec);
        config = sinkproof_model_config(model);
        sinkproof_stages stages = *ref;
        if (planted[b].sink_logits != NULL) stages.sink_logits = planted[b].sink_logits;
        if (planted[b].with_value) stages.values = values_of_sink;
        sinkproof_judgement j = judged(model, &stages, policy, policy, 24, 0, 7, NULL);
        convicted(&j, what, policy, planted[b].at);
        sinkproof_model_close(model);
    }
}

static void test_other(const char *runs, const char *judges) {
    char spec[64], what[96];
    snprintf(spec, sizeof spec, "synthetic:tiny,layers=2,sink=%s", runs);
    sinkproof_model *other = open_model(spec);
    snprintf(spec, sizeof spec, "synthetic:tiny,layers=2,sink=%s", judges);
    sinkproof_model *model = open_model(spec);
    snprintf(what, sizeof what, "%s run where the model says %s", runs, judges);
    sinkproof_judgement j = judged_run(model, run_other_model, other, "f32", "f32", 48, 7, NULL);
    convicted(&j, what, "f32", "00.A9");
    sinkproof_model_close(other);
    sinkproof_model_close(model);
}

// The worst element of a planted mistake is described by the logit that it should have had, where
// the trace holds the query.
static void test_described(const char *sink, const char *points, const char *told) {
    char spec[64];
    snprintf(spec, sizeof spec, "synthetic:tiny,layers=2,sink=%s", sink);
    sinkproof_model *model = open_model(spec);
    sinkproof_stages stages = *ref;
    stages.sink_logits = one_above;
    sinkproof_judgement j = judged(model, &stages, "f32", "f32", 48, 0, 7, points);
    const char *inputs = "";
    for (size_t i = 0; i < j.n_reports; i++)
        if (strcmp(j.reports[i].name, "00.A9") == 0) inputs = j.reports[i].worst_inputs;
    ok(strstr(inputs, told) != NULL, "%s, kept %s: described as \"%s\"", sink, points, inputs);
    sinkproof_judgement_free(&j);
    sinkproof_model_close(model);
}

int main(void) {
    static const char *const policies[] = {"f32",      "openai-bf16", "hf-bf16", "bf16-operands",
                                           "real-f64", "bf16",        "f16"};
    static const char *const kept[] = {"T0,A6,A9,A11,A13,M12", "A4,A9,A10,A11,A12", "A2,A6,A9",
                                       "T0,A13,M2,M3,M12,F1,F2"};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (size_t p = 0; p < sizeof policies / sizeof *policies; p++)
            test_honest(&kinds[k], ref, "ref", policies[p], NULL);
        for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
            test_honest(&kinds[k], ref, "ref", i % 2 == 0 ? "f32" : "openai-bf16", kept[i]);
        test_honest(&kinds[k], &sinkproof_lanes_stages, "lanes", "f32", one_pass_points);
        test_honest(&kinds[k], &sinkproof_lanes_stages, "lanes", "bf16-operands", one_pass_points);
    }
    test_fast("off-by-one", "sink.softmax1 bound.softmax-sink off-by-one, the fast path");
    test_fast("none", "bound.softmax-sink none, the fast path");
    test_scale();
    test_planted("f32");
    test_planted("openai-bf16");
    test_other("off-by-one", "logit");
    test_other("logit", "off-by-one");
    test_other("none", "logit");
    test_other("logit", "none");
    test_other("off-by-one", "none");
    test_described("key", "A4,A6,A9", "logit 0x1.");
    test_described("key", "A6,A9", "logit not traced");
    test_described("off-by-one", "A6,A9", "logit 0x0p+0");
    test_described("none", "A6,A9", "logit -inf");
    return tap_done();
}
