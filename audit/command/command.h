// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What every command of `sinkproof` shares: exit codes, errors on stderr, token lists,
// progress, and the JSON envelope. A command is one file, audit/command/cmd_NAME.c, one function.
#ifndef SINKPROOF_COMMAND_H
#define SINKPROOF_COMMAND_H

#include "audit/version.h"
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum sinkproof_exit {
    SINKPROOF_HOLDS = 0,        // holds, within bounds
    SINKPROOF_BUG = 1,          // a bug or a broken equation
    SINKPROOF_USAGE = 2,        // the command line is wrong
    SINKPROOF_BAD_INPUT = 3,    // input missing, unreadable or malformed
    SINKPROOF_INCONCLUSIVE = 4, // suspicious, nothing decided, or NaN
};

typedef struct sinkproof_command {
    const char *name, *summary;        // summary: one line for `sinkproof --help`
    int (*run)(int argc, char **argv); // argv[0] is "sinkproof NAME"; returns an exit code
} sinkproof_command;

int sinkproof_cmd_demo(int argc, char **argv);
int sinkproof_cmd_synth(int argc, char **argv);
int sinkproof_cmd_info(int argc, char **argv);
int sinkproof_cmd_run(int argc, char **argv);
int sinkproof_cmd_truth(int argc, char **argv);
int sinkproof_cmd_verify(int argc, char **argv);
int sinkproof_cmd_judge(int argc, char **argv);
int sinkproof_cmd_compare(int argc, char **argv);
int sinkproof_cmd_audit(int argc, char **argv);
int sinkproof_cmd_curve(int argc, char **argv);
int sinkproof_cmd_sinks(int argc, char **argv);
int sinkproof_cmd_gpt2(int argc, char **argv);
int sinkproof_cmd_bench(int argc, char **argv);
int sinkproof_cmd_tokens(int argc, char **argv);

// The command line into `options`, by its parser; a wrong one ends the program with
// SINKPROOF_USAGE.
struct argp;
void sinkproof_parse_line(const struct argp *parser, int argc, char **argv, void *options);

// An option whose argument is kept as it stands: its key, and where it is kept in the options. A
// list ends with key 0.
typedef struct sinkproof_text_option {
    int key;
    size_t offset; // of a const char *
} sinkproof_text_option;
// Whether the key is in the list; the argument is kept then.
bool sinkproof_keep_text(const sinkproof_text_option *list, void *options, int key,
                         const char *argument);

// Prints "sinkproof COMMAND: SENTENCE" on stderr and returns SINKPROOF_BAD_INPUT.
int sinkproof_bad_input(const char *command, const sinkproof_error *error);

// "--tokens" takes ids separated by commas, "@FILE" with ids separated by commas or white
// space, "random:N[,seed=S]", or "repeat:N[,seed=S]": the first token of random:N,seed=S, N times.
// Fills a malloc'ed array. Ids must be below vocab.
bool sinkproof_parse_tokens(const char *text, size_t vocab, int32_t **tokens_n, size_t *n,
                            sinkproof_error *error);

// Progress on stderr, only when it is a terminal: "judge: layer 3 of 24". done == total ends it.
void sinkproof_progress(const char *command, const char *what, size_t done, size_t total);

double sinkproof_seconds(void); // of the monotonic clock

// A long piece of work: how much is done and how much time is left, on standard error, only when it
// is a terminal: one line that rewrites itself, "judge: layers 34 %, 1 min 20 s left". All zero but
// the names at the start; share 1 ends it.
typedef struct sinkproof_stopwatch {
    const char *command, *what;
    double began; // seconds of the monotonic clock; 0: not yet
} sinkproof_stopwatch;
void sinkproof_progress_share(sinkproof_stopwatch *watch, double share);

// One sentence on what was given, before the result: on standard output where `print`, and in any
// case under "notes" of the JSON that is written later. "" is none.
void sinkproof_tell_note(const char *sentence, bool print);

// What --any-model does, as an option of argp's with this key.
#define SINKPROOF_ANY_MODEL(key)                                                                   \
    {                                                                                              \
        "any-model", key, 0, 0,                                                                    \
            "take a trace whose metadata name the fingerprint of another model than MODEL too, "   \
            "which is "                                                                            \
            "refused otherwise (exit 3); the result says so",                                      \
            0                                                                                      \
    }

// What a MODEL is, for --help.
#define SINKPROOF_MODEL_IS                                                                         \
    "MODEL is a directory (Hugging Face or OpenAI layout), a .gguf file or "                       \
    "synthetic:NAME[,seed=N][,layers=N][,sink=KIND]"
// For a parser of argp's, as its help_filter: the names of all policies in the place of POLICIES.
char *sinkproof_help_policies(int key, const char *text, void *input);

// The envelope {"sinkproof": version, "schema": 1, "command": ..., "exit": code, "results": [...],
// "machine": {...}} written to PATH ("-" is stdout); `results` is stolen.
bool sinkproof_write_json(const char *path, const char *command, int exit_code, json_t *results,
                          sinkproof_error *error);

#endif
