// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// sinkproof demo: the tour on the embedded model. So far: one forward pass of the reference in
// two policies, and the sink's mass in one head (sink.mass).
#include "audit/command.h"
#include "ref/forward.h"

#include <argp.h>
#include <string.h>

static const struct argp parser = {
    .doc = "The tour on the embedded model synthetic:tiny: tokens to logits, and where the sink's "
           "share of the attention goes.",
};

// What the observer keeps of layer 0's attention: the last row of head 0.
typedef struct row {
    size_t keys;
    double alpha_sink, sum;
} row;

static void see_weights(void *context, const char *name, size_t rank, const size_t *shape,
                        const double *values) {
    row *r = context;
    if (rank != 3 || strcmp(name, "00.A9") != 0) return;
    size_t keys = shape[2] - 1;
    const double *alpha_j = values + (shape[1] - 1) * shape[2];
    *r = (row){keys, alpha_j[keys], 0};
    for (size_t j = 0; j < keys; j++) r->sum += alpha_j[j];
}

static bool tour(const sinkproof_model *model, const char *policy_name, sinkproof_error *error) {
    static const int32_t tokens_n[] = {3, 1, 4, 1, 5, 9, 2, 6};
    sinkproof_policy policy;
    row r = {0, 0, 0};
    sinkproof_observer observer = {see_weights, &r};
    if (!sinkproof_policy_parse(policy_name, &policy, error)) return false;
    sinkproof_session *session = sinkproof_session_new(model, &policy);
    if (session == NULL) return sinkproof_fail(error, "no memory for a session");
    bool good = sinkproof_forward(session, 8, tokens_n, NULL, &observer, error);
    sinkproof_session_free(session);
    if (good)
        printf("%-12s layer 0, head 0, query 7 of %zu keys: alpha_sink = %.6f, sum of the others = "
               "%.6f, together 1 %+.1e\n",
               policy_name, r.keys, r.alpha_sink, r.sum, r.alpha_sink + r.sum - 1);
    return good;
}

int sinkproof_cmd_demo(int argc, char **argv) {
    argp_err_exit_status = SINKPROOF_USAGE;
    if (argp_parse(&parser, argc, argv, 0, NULL, NULL) != 0) return SINKPROOF_USAGE;
    sinkproof_error error = {{0}};
    sinkproof_model *model = NULL;
    bool good = sinkproof_model_open("synthetic:tiny", &model, &error) &&
                tour(model, "real-f64", &error) && tour(model, "openai-bf16", &error);
    sinkproof_model_close(model);
    return good ? SINKPROOF_HOLDS : sinkproof_bad_input("demo", &error);
}
