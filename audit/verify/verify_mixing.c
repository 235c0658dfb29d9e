// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// mix.perturb as an experiment: one token of the embedded model changed, with its sinks and
// without.
#include "audit/sinks/mixing.h"
#include "audit/verify/verify.h"
#include "proofs/bounds/mixing.h"
#include "ref/splitmix.h"

#include <math.h>
#include <stdlib.h>

// |x' - x| of the embeddings of two tokens.
static double embeddings_apart(const sinkproof_model *model, int32_t a, int32_t b) {
    sinkproof_matrix embedding = sinkproof_model_embedding(model);
    double *rows = malloc(2 * embedding.cols * sizeof *rows);
    if (rows == NULL) return NAN;
    sinkproof_matrix_row(&embedding, (size_t)a, rows);
    sinkproof_matrix_row(&embedding, (size_t)b, rows + embedding.cols);
    double off = sinkproof_row_moved(embedding.cols, rows, rows + embedding.cols).off;
    free(rows);
    return off;
}

// Before any layer the token has moved by what its embedding has, and nothing else has; earlier
// tokens never move; the later ones have in the end.
static void put_mixing(verify_measure *result, const sinkproof_mixing *mix, size_t at, double off) {
    size_t last = (mix->rows - 1) * mix->n;
    sinkproof_verify_put(result, (double)mix->earlier, 0);
    for (size_t i = 0; i < mix->n; i++)
        sinkproof_verify_put(result, fabs(mix->off_ln[i] - (i == at ? off : 0)), 0);
    for (size_t i = at; i < mix->n; i++)
        sinkproof_verify_put(result, mix->off_ln[last + i] > 0 ? 0 : 1, 0);
}

void sinkproof_verify_perturbed(verify_measure *result, uint64_t seed) {
    enum { TOKENS = 7, MODES = 2 };
    int32_t tokens_n[TOKENS];
    sinkproof_error error = {""};
    sinkproof_model *model = NULL;
    sinkproof_runner *runner = NULL;
    sinkproof_mixing mixes[MODES] = {{0}};
    sinkproof_policy policy;
    sinkproof_runner_options how = {.engine = "ref", .max_tokens = TOKENS};
    sinkproof_policy_known("real-f64", &policy);
    if (!sinkproof_model_open("synthetic:tiny", &model, &error)) return; // nothing is counted
    size_t vocab = sinkproof_model_config(model)->vocab;
    for (size_t i = 0; i < TOKENS; i++) tokens_n[i] = (int32_t)(sinkproof_draw(&seed) % vocab);
    sinkproof_mix_plan plan = {
        .position = (size_t)(sinkproof_draw(&seed) % TOKENS), .n_lengths = 1, .lengths = {TOKENS}};
    plan.token = (int32_t)(((size_t)tokens_n[plan.position] + 1) % vocab);
    if (sinkproof_runner_new(model, &policy, &how, &runner, &error) &&
        sinkproof_mix_run(model, runner, &plan, tokens_n, NULL, NULL, mixes, &error))
        for (size_t k = 0; k < MODES; k++)
            put_mixing(result, &mixes[k], plan.position,
                       embeddings_apart(model, tokens_n[plan.position], plan.token));
    for (size_t k = 0; k < MODES; k++) sinkproof_mix_free(&mixes[k]);
    sinkproof_runner_free(runner);
    sinkproof_model_close(model);
}
