// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The weights that audit/sinkproof.h names are those that a model has, of either architecture, and
// no others; what a model lacks is refused with a list of what it has.
#include "audit/sinkproof.h"
#include "tests/shared/tap.h"

#include <string.h>

static const char *const both[] = {
    "attn_norm", "w_q",  "w_k",  "w_v",    "b_q",    "b_k",       "b_v",        "w_o",        "b_o",
    "mlp_norm",  "w_up", "b_up", "w_down", "b_down", "embedding", "final_norm", "unembedding"};
static const char *const gpt_oss[] = {"sinks", "w_router", "b_router"};
static const char *const gpt2[] = {"attn_norm_b", "mlp_norm_b", "final_norm_b", "positions"};

// How many of the names the model serves, and how many the refusal of another name lists.
static size_t served(const sinkproof_model *model, const char *list, const char *const *names,
                     size_t n, size_t *listed) {
    size_t good = 0, shape[2];
    for (size_t i = 0; i < n; i++) {
        char word[32];
        snprintf(word, sizeof word, " %s,", names[i]);
        good += sinkproof_model_weight(model, names[i], 0, 0, shape, NULL, NULL) && shape[1] > 0 &&
                (strchr("bs", names[i][0]) == NULL || shape[0] == 1);
        *listed += strstr(list, word) != NULL;
    }
    return good;
}

static void weights_of(const char *spec, const char *const *own, size_t n_own,
                       const char *const *others, size_t n_others) {
    enum { BOTH = sizeof both / sizeof *both };
    sinkproof_error error;
    sinkproof_model *model;
    size_t shape[2], listed = 0, foreign = 0, commas = 0;
    char list[sizeof error.text + 4];
    must(sinkproof_model_open(spec, &model, &error));
    bool refused = !sinkproof_model_weight(model, "w_nothing", 0, 0, shape, NULL, &error);
    snprintf(list, sizeof list, "%s,", error.text);
    refused = refused && strstr(list, "the model has no weight 'w_nothing': it has ") != NULL;
    for (const char *c = list; *c != '\0'; c++) commas += *c == ',';
    size_t all =
        served(model, list, both, BOTH, &listed) + served(model, list, own, n_own, &listed);
    size_t none = served(model, list, others, n_others, &foreign);
    ok(refused && all == BOTH + n_own && listed == all && commas == all && none == 0 &&
           foreign == 0,
       "%s: %zu weights are served, listed are %zu of %zu, and %zu of another architecture", spec,
       all, listed, commas, none + foreign);
    bool said = !sinkproof_model_weight(model, others[0], 0, 0, shape, NULL, &error) &&
                strstr(error.text, others[0]) != NULL && strstr(error.text, "no weight") != NULL;
    ok(said, "%s: %.60s", spec, error.text);
    sinkproof_model_close(model);
}

int main(void) {
    weights_of("synthetic:tiny", gpt_oss, 3, gpt2, 4);
    weights_of("synthetic:tiny-gpt2", gpt2, 4, gpt_oss, 3);
    return tap_done();
}
