// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The options --zero-bq to --zero-wk-random.
#include "audit/command/intervention_options.h"

#include <errno.h>

enum { ZERO_BQ = 3000, SWAP, MOVE, LATE, ZERO_BOS, ROWS, RANDOM };

static const struct argp_option options[] = {
    {"zero-bq", ZERO_BQ, 0, 0, "Intervention 1: the query's bias is 0 in every layer", 2},
    {"swap-epe", SWAP, "A:B", 0,
     "Intervention 2: after the first layer, position A (from 1) has the EPE of B, which keeps it",
     2},
    {"move-epe", MOVE, "A:B", 0,
     "Intervention 3: after the first layer, positions A and B have each other's EPE", 2},
    {"late-epe", LATE, 0, 0,
     "Positions are not added to the embeddings; their EPE, as --swap-epe and --move-epe leave "
     "them, are added after the first layer",
     2},
    {"zero-bos", ZERO_BOS, 0, 0,
     "Intervention 4: the first token's embedding is 0, its position is added", 2},
    {"zero-wk-rows", ROWS, "LIST", 0,
     "Intervention 5: these rows of W_k (coordinates from 0, separated by commas) are 0 in every "
     "layer; auto: those where EPE_1 is massive",
     2},
    {"zero-wk-random", RANDOM, "N[,SEED]", 0,
     "The control: so many other rows are 0, drawn by SEED (1); auto: as many as are massive", 2},
    {0}};

static error_t parse_intervention_option(int key, char *argument, struct argp_state *state) {
    sinkproof_error error;
    for (const struct argp_option *o = options; o->name != NULL; o++) {
        if (o->key != key) continue;
        if (sinkproof_intervention_read(o->name, argument, state->input, &error)) return 0;
        argp_error(state, "%s", error.text);
        return EINVAL;
    }
    return ARGP_ERR_UNKNOWN;
}

const struct argp interventions_parser = {.options = options, .parser = parse_intervention_option};
