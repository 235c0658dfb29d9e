// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Runs a command on longer and shorter prompts until one of n tokens fails and one of n - 1 passes.
// A prompt fails when the command exits with 1, or when the trace that it wrote to {out} has a bug.
// Both lengths of the answer were run; the other lengths were not all tried.
#include "audit/command/bisect.h"

#include "audit/command/command.h"
#include "audit/sinkproof.h"
#include "audit/trace/trace.h"
#include "base/words.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct bisecting {
    const bisect_request *b;
    char trace[4096]; // the file for {out}
    bool judges;      // the command writes a trace
    sinkproof_error error;
} bisecting;

static void put_tokens(FILE *out, const bisect_request *b, size_t n) {
    for (size_t i = 0; i < n; i++) fprintf(out, i == 0 ? "%d" : ",%d", b->tokens_n[i]);
}

// The command with its placeholders filled in, malloc'ed; NULL if memory runs out.
static char *command_filled_in(const bisecting *s, size_t n) {
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    if (out == NULL) return NULL;
    for (const char *c = s->b->command; *c != '\0';) {
        if (strncmp(c, "{tokens}", 8) == 0)
            put_tokens(out, s->b, n), c += 8;
        else if (strncmp(c, "{n}", 3) == 0)
            fprintf(out, "%zu", n), c += 3;
        else if (strncmp(c, "{out}", 5) == 0)
            fputs(s->trace, out), c += 5;
        else
            fputc(*c++, out);
    }
    return fclose(out) == 0 ? text : NULL;
}

// Runs the command without showing its output. *status: its exit code. Returns false on an error.
static bool run_user_command(bisecting *s, size_t n, int *status) {
    char *text = command_filled_in(s, n);
    if (text == NULL) return sinkproof_fail(&s->error, "no memory for a command");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(STDERR_FILENO, STDOUT_FILENO);
        execl("/bin/sh", "sh", "-c", text, (char *)NULL);
        _exit(127);
    }
    int waited = 0;
    bool fine = child > 0 && waitpid(child, &waited, 0) == child;
    *status = fine && WIFEXITED(waited) ? WEXITSTATUS(waited) : 128;
    if (*status > 1 || (s->judges && *status != 0))
        fine = sinkproof_fail(&s->error, "'%.700s' exits %d: expected 0%s", text, *status,
                              s->judges ? "" : " or 1");
    free(text);
    return fine;
}

// Judges the trace that the command wrote: quickly, or in full.
static bool judge_written_trace(bisecting *s, size_t n, bool in_full, bool *fails) {
    sinkproof_trace *trace;
    sinkproof_ruling *ruling;
    const sinkproof_trial_options how = {.size = sizeof how,
                                         .policy = s->b->policy,
                                         .name = s->trace,
                                         .rate = s->b->rate,
                                         .local = true,
                                         .no_hint = !in_full,
                                         .no_diagnosis = !in_full,
                                         .any_model = s->b->any_model};
    if (!sinkproof_trace_open_of(s->trace, s->b->model, s->b->any_model, &trace, &s->error))
        return false;
    bool fine = sinkproof_trace_length(trace) == n ||
                sinkproof_fail(&s->error, "%s: %s, expected %zu", s->trace,
                               sinkproof_counted(sinkproof_trace_length(trace), "token").text, n);
    fine = fine && sinkproof_judge_trace(s->b->model, trace, &how, &ruling, &s->error);
    sinkproof_trace_close(trace);
    if (!fine) return false;
    *fails = sinkproof_ruling_exit(ruling) == EXIT_BUG;
    if (in_full) printf("\n%s", sinkproof_ruling_text(ruling));
    sinkproof_ruling_free(ruling);
    return true;
}

static bool try_length(bisecting *s, size_t n, bool *fails) {
    int status;
    unlink(s->trace);
    if (!run_user_command(s, n, &status)) return false;
    *fails = status == 1;
    if (s->judges && !judge_written_trace(s, n, false, fails)) return false;
    printf("%s: %s\n", sinkproof_counted(n, "token").text, *fails ? "fails" : "passes");
    return true;
}

// Bisects between `low`, which passes (or is 0), and `high`, which fails.
static bool narrow_to_shortest(bisecting *s, size_t low, size_t high, size_t *shortest) {
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        bool fails;
        if (!try_length(s, middle, &fails)) return false;
        if (fails)
            high = middle;
        else
            low = middle;
    }
    *shortest = high;
    return true;
}

static bool conclude_shortest(bisecting *s, size_t n) {
    bool again = true;
    int status;
    char *text;
    printf("\nThe mistake shows with %s", sinkproof_counted(n, "token").text);
    if (n > 1) printf(" and not with the first %zu of them", n - 1);
    printf(".\n");
    unlink(s->trace);
    if (s->judges && (!run_user_command(s, n, &status) || !judge_written_trace(s, n, true, &again)))
        return false;
    if (!again)
        return sinkproof_fail(&s->error,
                              "%s failed before and do not fail now: "
                              "expected a command that computes the same every time",
                              sinkproof_counted(n, "token").text);
    strcpy(s->trace, "trace.safetensors");
    if ((text = command_filled_in(s, n)) == NULL)
        return sinkproof_fail(&s->error, "no memory for a command");
    printf("\nRun it again:\n  %s\n", text);
    if (s->judges)
        printf("  sinkproof judge %s %s --policy %s%s\n", sinkproof_model_spec(s->b->model),
               s->trace, s->b->policy, s->b->any_model ? " --any-model" : "");
    free(text);
    return true;
}

// Creates a file with an unpredictable name in TMPDIR.
static bool make_trace_file(bisecting *s) {
    const char *folder = getenv("TMPDIR");
    int length = snprintf(s->trace, sizeof s->trace, "%s/sinkproof-bisect-XXXXXX.safetensors",
                          folder != NULL && *folder != '\0' ? folder : "/tmp");
    int file = length < (int)sizeof s->trace ? mkstemps(s->trace, (int)strlen(".safetensors")) : -1;
    if (file < 0) return sinkproof_fail(&s->error, "%.900s: cannot make a file there", s->trace);
    close(file);
    return true;
}

int bisect_prompt(const bisect_request *b) {
    bisecting s = {.b = b, .judges = strstr(b->command, "{out}") != NULL};
    if (!make_trace_file(&s)) return exit_bad_input("judge", &s.error);
    char written[sizeof s.trace];
    memcpy(written, s.trace, sizeof written);
    bool fails = false;
    size_t shortest = 0;
    bool fine = try_length(&s, b->n, &fails);
    if (fine && !fails) printf("\nNothing fails with %s.\n", sinkproof_counted(b->n, "token").text);
    if (fine && fails)
        fine = narrow_to_shortest(&s, 0, b->n, &shortest) && conclude_shortest(&s, shortest);
    unlink(written);
    if (!fine) return exit_bad_input("judge", &s.error);
    return fails ? EXIT_BUG : EXIT_HOLDS;
}
