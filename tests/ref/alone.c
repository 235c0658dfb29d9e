// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The whole of ref/ as a program: tokens to logits over the real numbers, in binary64, with nothing
// but libc, libm and Jansson. `make ref` builds it; it prints what `sinkproof run` does.
//
//   build/release/alone/sinkproof-ref synthetic:tiny 1 2 3
#include "ref/forward.h"

#include <stdio.h>
#include <stdlib.h>

enum { TOP = 5 };

// The id after `last` in rank (vocab: the first): the largest logit, ties in ascending id.
static size_t next_largest(size_t vocab, const double *logits_v, size_t last) {
    size_t best = vocab;
    for (size_t v = 0; v < vocab; v++) {
        bool after = last == vocab || logits_v[v] < logits_v[last] ||
                     (logits_v[v] == logits_v[last] && v > last);
        if (after && (best == vocab || logits_v[v] > logits_v[best])) best = v;
    }
    return best;
}

static void print_largest(size_t vocab, const double *logits_v) {
    size_t v = vocab;
    for (size_t i = 0; i < TOP && i < vocab; i++) {
        v = next_largest(vocab, logits_v, v);
        printf("%8zu  %.17g\n", v, logits_v[v]);
    }
}

// Opens a model, runs the tokens and prints the largest logits after the last one.
static bool run(const char *spec, size_t n, const int32_t *tokens_n, sinkproof_error *error) {
    sinkproof_model *model;
    sinkproof_policy policy;
    if (!sinkproof_policy_parse("real-f64", &policy, error) ||
        !sinkproof_model_open(spec, &model, error))
        return false;
    size_t vocab = sinkproof_model_config(model)->vocab;
    sinkproof_session *session = sinkproof_session_new(model, &policy);
    double *logits_nv = calloc(n, vocab * sizeof *logits_nv);
    bool good = session != NULL && logits_nv != NULL;
    if (!good) sinkproof_fail(error, "%s: no memory for a session", spec);
    good = good && sinkproof_forward(session, n, tokens_n, logits_nv, NULL, error);
    if (good) {
        printf("largest logits after token %zu (policy %s)\n", n - 1, policy.name);
        print_largest(vocab, logits_nv + (n - 1) * vocab);
    }
    free(logits_nv);
    sinkproof_session_free(session);
    sinkproof_model_close(model);
    return good;
}

// A token's id; -1, which no model has, when the text is no number.
static int32_t parse_token(const char *text) {
    char *end;
    long id = strtol(text, &end, 10);
    return *text != '\0' && *end == '\0' && id >= 0 && id <= INT32_MAX ? (int32_t)id : -1;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: sinkproof-ref MODEL TOKEN...\n");
        return 2;
    }
    size_t n = (size_t)argc - 2;
    int32_t *tokens_n = malloc(n * sizeof *tokens_n);
    sinkproof_error error = {"no memory for the tokens"};
    for (size_t t = 0; tokens_n != NULL && t < n; t++) tokens_n[t] = parse_token(argv[2 + t]);
    bool good = tokens_n != NULL && run(argv[1], n, tokens_n, &error);
    if (!good) fprintf(stderr, "sinkproof-ref: %s\n", error.text);
    free(tokens_n);
    return good ? 0 : 3;
}
