// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The command `sinkproof`: finds the named command and runs it.
#include "audit/command/blas_core.h"
#include "audit/command/command.h"

#include "base/words.h"

#include <string.h>

static const cli_command commands[] = {
    {"demo", "the tour: the embedded model, its equations, one planted bug found", cmd_demo},
    {"synth", "write a synthetic checkpoint as a real container", cmd_synth},
    {"info", "configuration, tensors, formats of a checkpoint, anything odd", cmd_info},
    {"run", "forward pass or generation, with a trace", cmd_run},
    {"truth", "certified enclosures of every tensor", cmd_truth},
    {"verify", "check the equations: exact, enclosed, worst error against bound", cmd_verify},
    {"judge", "the verdict on an engine's trace", cmd_judge},
    {"merge", "put results that were kept apart together: one report, JSON, page, exit code",
     cmd_merge},
    {"join", "one trace of those of the ranks of a parallel run", cmd_join},
    {"compare", "two traces: where they differ, who is nearer the truth", cmd_compare},
    {"audit", "what a choice of precision costs: error by layer and point, error budget",
     cmd_audit},
    {"next", "what honest rounding can do to the next token: certified, changed, open", cmd_next},
    {"curve", "an equation as numbers to plot: what the book's figures are drawn from", cmd_curve},
    {"sinks", "attention sinks measured, on a run or a trace; the designs of attention by name",
     cmd_sinks},
    {"gpt2", "the mechanism of GPT-2's attention sink measured, and interventions on it", cmd_gpt2},
    {"tokens", "text to token ids and back, by the tokenizer at a path", cmd_tokens},
    {"bench", "how fast: kernels and the whole model against the machine's limits", cmd_bench},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void print_help(FILE *stream) {
    fprintf(stream,
            "Usage: sinkproof COMMAND [OPTION...]\n\n"
            "Tells whether an implementation of GPT-OSS computes the right thing, and why.\n\n"
            "Commands (each has --help):\n");
    for (size_t c = 0; c < COMMANDS; c++)
        fprintf(stream, "  %-8s %s\n", commands[c].name, commands[c].summary);
    fprintf(stream,
            "\nMODEL is a directory (Hugging Face or original layout), a .gguf file or\n"
            "synthetic:NAME[,seed=N][,layers=N][,sink=KIND], NAME one of tiny,\n"
            "gpt-oss-20b, gpt-oss-120b, tiny-gpt2, gpt2, tiny-llama, tiny-qwen3, gpt2-circuit,\n"
            "gpt2-null or a config.json.\n\n"
            "Exit codes: 0 holds, 1 a bug, 2 usage, 3 input missing or malformed, 4 suspicious,\n"
            "nothing decided, or NaN that nothing bounds.\n");
}

// Sets the program's name to "sinkproof run", which `sinkproof run --help` shows.
static int run_command(const cli_command *command, int argc, char **argv) {
    char name[64];
    snprintf(name, sizeof name, "sinkproof %s", command->name);
    argv[0] = name;
    return command->run(argc, argv);
}

int main(int argc, char **argv) {
    const char *word = argc > 1 ? argv[1] : NULL;
    if (word != NULL && (strcmp(word, "--help") == 0 || strcmp(word, "help") == 0)) {
        print_help(stdout);
        return EXIT_HOLDS;
    }
    if (word != NULL && strcmp(word, "--version") == 0) {
        printf("sinkproof %s\n", SINKPROOF_VERSION);
        return EXIT_HOLDS;
    }
    blas_core_choose(argv);
    for (size_t c = 0; word != NULL && c < COMMANDS; c++)
        if (strcmp(word, commands[c].name) == 0)
            return run_command(&commands[c], argc - 1, argv + 1);
    sinkproof_guess guess = {.given = word};
    for (size_t c = 0; word != NULL && c < COMMANDS; c++)
        sinkproof_guess_try(&guess, commands[c].name);
    if (word != NULL)
        fprintf(stderr, "sinkproof: unknown command '%s': %sthese are known:\n\n", word,
                sinkproof_guess_sentence(&guess).text);
    print_help(stderr);
    return EXIT_USAGE;
}
