// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Work on many traces or prompts. Each is worked on by itself: where one fails, the others have
// their results all the same. A result is one JSON object. It is printed, written as JSON and as a
// part of a page, or kept in a directory; its bits do not depend on which process computed it.
#ifndef SINKPROOF_COMMAND_BATCH_H
#define SINKPROOF_COMMAND_BATCH_H

#include "audit/command/inputs.h"
#include "audit/command/shard.h"

#include <jansson.h>

// One piece of the work: an input, or some of its layers.
typedef struct batch_unit {
    const command_input *input;
    size_t first_layer, end_layer; // end 0: all
} batch_unit;

// The result of a unit: {"exit": 0, "said": "within", "results": [...], "text": "...", "page":
// "..."}. "said" is what a table says of it in a few words; "page" is there if a page is wanted.
typedef json_t *batch_work(void *context, const batch_unit *unit, bool page,
                           sinkproof_error *error);

typedef struct batch {
    const char *command, *title; // of the command, and of its page
    // "trace" or "prompt": the member of each row that names its input; NULL: a lone input, unnamed
    const char *of;
    size_t n;
    const batch_unit *units;
    const char *json, *html; // NULL: none; json "-": in place of the text
    batch_work *work;        // returns NULL, with an error: the unit has no result
    void *context;
    const char *out;   // the directory where results are kept, or NULL
    const json_t *how; // what a kept result depends on beside its unit
    work_shard shard;  // of the units; of 0: all
} batch;

// Works on all units, prints their texts and a table of them, if there are several, and writes JSON
// and page. Returns the gravest exit code. With `out`, results that are kept there are taken, and
// the others are kept. A shard of several prints a line for each unit; it returns EXIT_HOLDS if
// each of its units has a file in `out`, whatever the verdict.
int batch_run(const batch *b);

// The end of a run: results[n], each as work returns it, with its text.
int batch_finish(const batch *b, const json_t *results);

// The same over prompts; where there are none, over one as for --tokens, unnamed.
int batch_prompts(const batch *b, const char *tokens, const input_list *prompts);

// The option --prompts for argp, with this key.
#define HELP_TOKENS(key, more)                                                                     \
    {                                                                                              \
        "tokens", key, "IDS", 0,                                                                   \
            "ids separated by commas, @FILE, random:N[,seed=S], repeat:N[,seed=S], text:TEXT, "    \
            "prompt:TEXT or chat:FILE, also behind a beginning as in bos+repeat:64" more,          \
            0                                                                                      \
    }
#define HELP_PROMPTS(key)                                                                          \
    {                                                                                              \
        "prompts", key, "PATH", 0,                                                                 \
            "many prompts in place of --tokens, each by itself: a file of ids, a directory of "    \
            "such files, or FILE.jsonl, in each line {\"tokens\": [ID, ...]} or {\"text\": "       \
            "TEXT}, "                                                                              \
            "with \"name\" if it has one; may be repeated",                                        \
            0                                                                                      \
    }

// The graver of two exit codes, in the order 1, 3, 4, 0: a bug is graver than an input that could
// not be read, and that than an open question.
int batch_graver(int a, int b);

// The options of a command that keeps its results, for argp, with these keys.
#define HELP_OUT(key)                                                                              \
    {                                                                                              \
        "out", key, "DIR", 0,                                                                      \
            "keep each result in DIR, in a file of its own: a second run takes it if its input "   \
            "(path, size, time of modification), model, options and version are the same; under "  \
            "mpirun, srun or in a Slurm array each process does its share",                        \
            2                                                                                      \
    }
#define HELP_SHARD(key)                                                                            \
    {                                                                                              \
        "shard", key, "K/N", 0,                                                                    \
            "with --out: one of N shares of the work, 1/N to N/N, whatever the environment says; " \
            "sinkproof merge DIR puts them together",                                              \
            2                                                                                      \
    }

// Checks --out and --shard, and finds the shard; where they make no sense a sentence ends the
// program with EXIT_USAGE.
struct argp_state;
void batch_check_options(struct argp_state *state, const char *said, batch *b);
// The same for prompts: --out asks for --prompts.
void batch_check_prompts(struct argp_state *state, const char *said, const batch *b,
                         const input_list *prompts, work_shard *shard);

#endif
