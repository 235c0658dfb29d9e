// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The traces or prompts of a command that takes many: files, directories, and lists of them. What
// cannot be read is an input too, with its sentence, so that the others are worked on.
#ifndef SINKPROOF_COMMAND_INPUTS_H
#define SINKPROOF_COMMAND_INPUTS_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

typedef enum input_kind { INPUT_TRACE, INPUT_PROMPT } input_kind;

typedef struct command_input {
    char *name;    // in every row of a result: the trace's path; the prompt's name, file or line
    char *said;    // the path of a trace; a prompt as for --tokens; NULL: it cannot be read
    char *problem; // why; NULL where `said` is there
} command_input;

typedef struct input_list {
    size_t n, room;
    command_input *at;
} input_list;

// Adds what a word of the command line names.
//
// A trace: a path, also of an index (NAME.index.json) or of one file of NAME-00001-of-00004; a
// directory, which stands for the traces in it in the order of their names; @FILE or FILE.jsonl, a
// list. A prompt: a file of token ids, a directory of such files, FILE.jsonl.
//
// A line of a list is a path (of traces alone) or a JSON object: {"trace": PATH}; {"tokens": [1,
// 2]} or {"text": TEXT}, with "name" if it has one. A blank line is skipped.
void inputs_add_word(input_list *list, input_kind kind, const char *word);

// Adds the lines of a list; `source` names it.
void inputs_add_lines(input_list *list, input_kind kind, const char *source, const uint8_t *bytes,
                      size_t length);
void inputs_free(input_list *list);

#endif
