// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Work on many traces or prompts: each by itself, so that one that fails keeps no other's result;
// each result in one object, which is printed, written as JSON and as a part of a page, or kept in
// a directory, with the same bits whoever computed it.
#ifndef SINKPROOF_COMMAND_BATCH_H
#define SINKPROOF_COMMAND_BATCH_H

#include "audit/command/inputs.h"

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
    batch_work *work;        // NULL, with an error: the unit has no result
    void *context;
} batch;

// Works on all units, prints their texts and a table of them, if there are several, and writes JSON
// and page. Returns the gravest exit code.
int batch_run(const batch *b);

// The same over prompts; where there are none, over one as for --tokens, unnamed.
int batch_prompts(const batch *b, const char *tokens, const input_list *prompts);

// The option --prompts for argp, with this key.
#define HELP_PROMPTS(key)                                                                          \
    {                                                                                              \
        "prompts", key, "PATH", 0,                                                                 \
            "many prompts in place of --tokens, each by itself: a file of ids, a directory of "    \
            "such files, or FILE.jsonl, in each line {\"tokens\": [ID, ...]} or {\"text\": "       \
            "TEXT}, "                                                                              \
            "with \"name\" if it has one; may be repeated",                                        \
            0                                                                                      \
    }

// The graver of two exit codes: 1 (what is wrong stays wrong, whatever else is missing), then 3 (an
// input that nobody looked at), 4, 0.
int batch_graver(int a, int b);

// A JSON string of any text; bytes that are no UTF-8 are '?' in it.
json_t *batch_text(const char *text);

#endif
