// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof join RANK... --out FILE`: one trace of those of several ranks.
#include "audit/command/command.h"
#include "audit/trace/join.h"
#include "base/words.h"

#include <argp.h>
#include <stdlib.h>

typedef struct options {
    const char *out;
    const char **paths;
    size_t n;
} options;

static const struct argp_option argp_options[] = {{"out", 'o', "FILE", 0, "the joined trace", 0},
                                                  {0}};

static error_t parse_join_option(int key, char *argument, struct argp_state *state) {
    options *o = state->input;
    if (key == 'o')
        o->out = argument;
    else if (key == ARGP_KEY_ARG)
        o->paths[o->n++] = argument;
    else if (key == ARGP_KEY_END && (o->n == 0 || o->out == NULL))
        argp_error(state, "the traces of all ranks and --out are needed");
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

static const struct argp argp = {
    argp_options,
    parse_join_option,
    "TRACE...",
    "Put the traces of the ranks of a parallel run together, in any order of the files.\v"
    "The metadata of each file say which rank of how many it is (rank=0, ranks=4), and how points "
    "are split, a list such as split=A11=heads,F2=coordinates,M5=experts,A12=partial: heads and "
    "coordinates follow each other in the order of the ranks; of experts each rank has the rows of "
    "its own (experts=0-15), M3 says which; positions are rows at the places that the rank's "
    "tensor `positions` names (*=positions); a partial sum is no tensor of the model and is left "
    "out; anything else is whole, the same bits on every rank. Parts that overlap, are missing, or "
    "are of other tokens are refused (exit 3). The joined trace says ranks=R, which --policy auto "
    "reads.\n\n"
    "Exit: 0 written, 2 usage, 3 bad input.",
    NULL,
    NULL,
    NULL};

int cmd_join(int argc, char **argv) {
    options o = {.paths = calloc((size_t)argc, sizeof *o.paths)};
    sinkproof_error error;
    joined_ranks joined;
    if (o.paths == NULL) abort();
    command_parse_line(&argp, argc, argv, &o);
    bool good = sinkproof_trace_join(o.paths, o.n, o.out, &joined, &error);
    free(o.paths);
    if (!good) return exit_bad_input("join", &error);
    printf("%s, %s: %s put together, %zu whole", sinkproof_counted(joined.ranks, "rank").text,
           sinkproof_counted(joined.n, "token").text,
           sinkproof_counted(joined.parted, "tensor").text, joined.whole);
    if (joined.partial > 0)
        printf(", %s left out", sinkproof_counted(joined.partial, "partial sum").text);
    printf("\n");
    return EXIT_HOLDS;
}
