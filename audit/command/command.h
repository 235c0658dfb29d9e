// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Shared by all commands of `sinkproof`: exit codes, errors on stderr, token lists, progress, and
// the JSON envelope. A command is one file, audit/command/cmd_NAME.c, with one function.
#ifndef SINKPROOF_COMMAND_H
#define SINKPROOF_COMMAND_H

#include "audit/version.h"
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum command_exit {
    EXIT_HOLDS = 0,        // holds, within bounds
    EXIT_BUG = 1,          // a bug or a broken equation
    EXIT_USAGE = 2,        // the command line is wrong
    EXIT_BAD_INPUT = 3,    // input missing, unreadable or malformed
    EXIT_INCONCLUSIVE = 4, // suspicious, nothing decided, or NaN
};

typedef struct cli_command {
    const char *name, *summary;        // summary: one line for `sinkproof --help`
    int (*run)(int argc, char **argv); // argv[0] is "sinkproof NAME"; returns an exit code
} cli_command;

int cmd_demo(int argc, char **argv);
int cmd_synth(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_truth(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_judge(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_join(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_audit(int argc, char **argv);
int cmd_next(int argc, char **argv);
int cmd_curve(int argc, char **argv);
int cmd_sinks(int argc, char **argv);
int cmd_gpt2(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_tokens(int argc, char **argv);

// Parses the command line into `options`; an invalid one ends the program with EXIT_USAGE.
struct argp;
struct argp_state;
void command_parse_line(const struct argp *parser, int argc, char **argv, void *options);

// The key of an option that is kept as it is given: its argument, or, where it takes none, that it
// was given. The key says where: in this member of the options, a const char * or a bool.
enum { KEPT_OPTIONS = 1 << 16 };
#define KEPT(type, member) (KEPT_OPTIONS + (int)offsetof(type, member))
// Keeps an option with such a key, and returns whether it is one.
bool option_keep(void *options, int key, const char *argument);
// Parses the whole number of the option --`name`, or ends with a usage error.
long option_number(struct argp_state *state, const char *name, const char *text, long least,
                   long most);

// Prints "sinkproof COMMAND: SENTENCE" on stderr and returns EXIT_BAD_INPUT.
int exit_bad_input(const char *command, const sinkproof_error *error);

// Parses "--tokens": ids separated by commas, "@FILE" with ids separated by commas or white space,
// "random:N[,seed=S]", or "repeat:N[,seed=S]", which is the first token of random:N,seed=S, N
// times. Fills a malloc'ed array. Ids must be below vocab.
bool command_parse_tokens(const char *text, size_t vocab, int32_t **tokens_n, size_t *n,
                          sinkproof_error *error);

// Shows progress on stderr if it is a terminal: "judge: layer 3 of 24". done == total ends it.
void progress_show(const char *command, const char *what, size_t done, size_t total);

double clock_seconds(void);                       // of the monotonic clock
void spell_seconds(double seconds, char out[32]); // "1 h 5 min", "2 min 5 s", "40 s"

// The progress of a long piece of work on standard error, if it is a terminal: one line that
// rewrites itself, "judge: layers 34 %, 1 min 20 s left". All members but the names start as zero;
// share 1 ends it.
typedef struct progress_watch {
    const char *command, *what;
    double began; // seconds of the monotonic clock; 0: not started
} progress_watch;
void progress_show_share(progress_watch *watch, double share);

// A sentence about the input, before the result: printed on standard output if `print`, and always
// stored under "notes" of the JSON that is written later. "" is ignored.
void note_tell(const char *sentence, bool print);

// The option --any-model for argp, with this key.
#define HELP_ANY_MODEL(key)                                                                        \
    {                                                                                              \
        "any-model", key, 0, 0,                                                                    \
            "take a trace whose metadata name the fingerprint of another model than MODEL too, "   \
            "which is "                                                                            \
            "refused otherwise (exit 3); the result says so",                                      \
            0                                                                                      \
    }

// The description of a MODEL for --help.
#define HELP_MODEL_IS                                                                              \
    "MODEL is a directory (Hugging Face or OpenAI layout), a .gguf file or "                       \
    "synthetic:NAME[,seed=N][,layers=N][,sink=KIND]"
// A help_filter for argp: puts the names of all policies in place of POLICIES.
char *help_list_policies(int key, const char *text, void *input);
#define HELP_NAME_IS                                                                               \
    "where NAME is tiny, gpt-oss-20b, gpt-oss-120b, tiny-gpt2, gpt2, tiny-llama, tiny-qwen3, "     \
    "gpt2-circuit, gpt2-null or the path of a config.json"

// A JSON string of any text; where it is no UTF-8, what is not ASCII is '?' in it.
json_t *text_json(const char *text);

// Writes the envelope {"sinkproof": version, "schema": 1, "command": ..., "exit": code, "results":
// [...], "machine": {...}} to PATH ("-" is stdout); takes ownership of `results`.
bool envelope_write_json(const char *path, const char *command, int exit_code, json_t *results,
                         sinkproof_error *error);
// The same as the last act of a command, if path is not NULL. Returns the exit code, or that of bad
// input, after its sentence, where the file cannot be written.
int exit_with_results(const char *path, const char *command, int exit_code, json_t *results);

#endif
