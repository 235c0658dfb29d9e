// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Shared by all commands: errors, token lists, progress, the JSON envelope.
#include "audit/command/command.h"

#include "base/splitmix.h"
#include "base/words.h"
#include "model/bytes.h"
#include "ref/policy.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

void command_parse_line(const struct argp *parser, int argc, char **argv, void *options) {
    argp_err_exit_status = EXIT_USAGE;
    if (argp_parse(parser, argc, argv, 0, NULL, options) != 0) exit(EXIT_USAGE);
}

bool option_keep(void *options, int key, const char *argument) {
    if (key < KEPT_OPTIONS || key >= 2 * KEPT_OPTIONS) return false;
    void *member = (char *)options + (key - KEPT_OPTIONS);
    if (argument == NULL)
        *(bool *)member = true;
    else
        *(const char **)member = argument;
    return true;
}

long option_number(struct argp_state *state, const char *name, const char *text, long least,
                   long most) {
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || number < least || number > most)
        argp_error(state, "--%s takes a whole number from %ld to %ld, not \"%s\"", name, least,
                   most, text);
    return number;
}

int exit_bad_input(const char *command, const sinkproof_error *error) {
    fprintf(stderr, "sinkproof %s: %s\n", command, error->text);
    return EXIT_BAD_INPUT;
}

// A list under construction.
typedef struct token_list {
    int32_t *ids;
    size_t n, room;
} token_list;

static bool token_list_append(token_list *list, int32_t id, sinkproof_error *error) {
    if (list->n == list->room) {
        size_t room = list->room == 0 ? 64 : 2 * list->room;
        int32_t *larger = realloc(list->ids, room * sizeof *larger);
        if (larger == NULL)
            return sinkproof_fail(error, "no memory for %s", sinkproof_counted(room, "token").text);
        list->ids = larger;
        list->room = room;
    }
    list->ids[list->n++] = id;
    return true;
}

// Parses ids separated by commas, in a file also by white space. Errors name `source`.
static bool parse_ids(const char *text, const char *source, bool spaces, size_t vocab,
                      token_list *list, sinkproof_error *error) {
    const char *at = text;
    for (;;) {
        while (*at == ',' || (spaces && isspace((unsigned char)*at))) at++;
        if (*at == '\0') break;
        size_t length = strcspn(at, spaces ? ", \t\r\n\v\f" : ",");
        char *end;
        errno = 0;
        long long id = strtoll(at, &end, 10);
        bool number = isdigit((unsigned char)*at) && end == at + length && errno == 0;
        if (!number)
            return sinkproof_fail(error, "%.200s: '%.*s' is not a token id%s%.200s%s", source,
                                  (int)(length < 40 ? length : 40), at,
                                  spaces ? "" : ": for a text say \"text:", spaces ? "" : text,
                                  spaces ? "" : "\"");
        if ((unsigned long long)id >= vocab || id > INT32_MAX)
            return sinkproof_fail(error,
                                  "%.200s: token id %lld: expected 0 to %zu (the vocabulary)",
                                  source, id, vocab - 1);
        if (!token_list_append(list, (int32_t)id, error)) return false;
        at = end;
    }
    if (list->n == 0)
        return sinkproof_fail(error, "%.200s: expected token ids, found none", source);
    return true;
}

static bool parse_file(const char *path, size_t vocab, token_list *list, sinkproof_error *error) {
    uint8_t *bytes;
    size_t length;
    if (!sinkproof_read_file(path, &bytes, &length, error)) return false;
    char *text = malloc(length + 1);
    bool good = text != NULL || sinkproof_fail(error, "%.400s: no memory", path);
    if (good && memchr(bytes, '\0', length) != NULL)
        good = sinkproof_fail(error, "%.400s: expected token ids in text, found a zero byte", path);
    if (good) {
        memcpy(text, bytes, length);
        text[length] = '\0';
        good = parse_ids(text, path, true, vocab, list, error);
    }
    free(text);
    free(bytes);
    return good;
}

// Parses "N" or "N,seed=S" after "random:" or "repeat:".
static bool parse_drawn(const char *kind, const char *text, size_t vocab, token_list *list,
                        sinkproof_error *error) {
    unsigned long long n = 0, seed = 0;
    bool repeated = strcmp(kind, "repeat") == 0;
    char *end;
    errno = 0;
    n = strtoull(text, &end, 10);
    bool good = isdigit((unsigned char)*text) && errno == 0 && n > 0 && n <= 1u << 24;
    if (good && strncmp(end, ",seed=", 6) == 0 && isdigit((unsigned char)end[6]))
        seed = strtoull(end + 6, &end, 10);
    if (!good || *end != '\0' || errno != 0)
        return sinkproof_fail(error, "'%s:%.100s': expected %s:N[,seed=S], N from 1 to %u", kind,
                              text, kind, 1u << 24);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t high = sinkproof_draw_nth(seed, repeated ? 0 : i) >> 32;
        // high * vocab / 2^32 < vocab
        if (!token_list_append(list, (int32_t)(high * (uint64_t)vocab >> 32), error)) return false;
    }
    return true;
}

bool command_parse_tokens(const char *text, size_t vocab, int32_t **tokens_n, size_t *n,
                          sinkproof_error *error) {
    token_list list = {NULL, 0, 0};
    bool good;
    if (vocab == 0 || vocab > INT32_MAX)
        good = sinkproof_fail(error, "a vocabulary of %s has no 32-bit ids",
                              sinkproof_counted(vocab, "token").text);
    else if (text[0] == '@')
        good = parse_file(text + 1, vocab, &list, error);
    else if (strncmp(text, "random:", 7) == 0)
        good = parse_drawn("random", text + 7, vocab, &list, error);
    else if (strncmp(text, "repeat:", 7) == 0)
        good = parse_drawn("repeat", text + 7, vocab, &list, error);
    else
        good = parse_ids(text, "--tokens", false, vocab, &list, error);
    if (!good) {
        free(list.ids);
        return false;
    }
    *tokens_n = list.ids;
    *n = list.n;
    return true;
}

void progress_show(const char *command, const char *what, size_t done, size_t total) {
    if (!isatty(STDERR_FILENO)) return;
    if (done >= total)
        fprintf(stderr, "\r\033[K"); // clears the line when the work is done
    else
        fprintf(stderr, "\r\033[K%s: %s %zu of %zu", command, what, done + 1, total);
    fflush(stderr);
}

double clock_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void spell_seconds(double seconds, char out[32]) {
    long s = (long)(seconds + 0.5);
    if (s >= 3600)
        snprintf(out, 32, "%ld h %ld min", s / 3600, s % 3600 / 60);
    else if (s >= 60)
        snprintf(out, 32, "%ld min %ld s", s / 60, s % 60);
    else
        snprintf(out, 32, "%ld s", s);
}

void progress_show_share(progress_watch *watch, double share) {
    if (!isatty(STDERR_FILENO)) return;
    double time = clock_seconds();
    if (watch->began == 0) watch->began = time;
    if (share >= 1) fprintf(stderr, "\r\033[K");
    if (share >= 1 || !(share > 0)) return;
    char left[32];
    spell_seconds((time - watch->began) * (1 - share) / share, left);
    fprintf(stderr, "\r\033[K%s: %s %.0f %%, %s left", watch->command, watch->what,
            floor(100 * share), left);
    fflush(stderr);
}

static json_t *describe_machine(void) {
    struct utsname name;
    json_t *machine = json_object();
    if (uname(&name) == 0) {
        json_object_set_new(machine, "system", json_string(name.sysname));
        json_object_set_new(machine, "architecture", json_string(name.machine));
    }
    json_object_set_new(machine, "processors", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
    json_object_set_new(machine, "compiler", json_string(__VERSION__));
    return machine;
}

static bool write_text(const char *path, const char *text, sinkproof_error *error) {
    if (strcmp(path, "-") == 0) {
        if (puts(text) >= 0 && fflush(stdout) == 0) return true;
        return sinkproof_fail(error, "standard output: %s", strerror(errno));
    }
    sinkproof_output output;
    if (!sinkproof_output_open(&output, path, error)) return false;
    bool good = fprintf(output.stream, "%s\n", text) >= 0 ||
                sinkproof_fail(error, "%.400s: %s", path, strerror(errno));
    good = good && sinkproof_output_finish(&output, error);
    sinkproof_output_drop(&output);
    return good;
}

char *help_list_policies(int key, const char *text, void *input) {
    static const char place[] = "POLICIES";
    (void)key;
    (void)input;
    const char *at = text != NULL ? strstr(text, place) : NULL;
    char *made = NULL;
    size_t length;
    FILE *out = at != NULL ? open_memstream(&made, &length) : NULL;
    if (out == NULL) return (char *)(uintptr_t)text;
    fprintf(out, "%.*s", (int)(at - text), text);
    const char *const *names = sinkproof_policy_names();
    for (size_t i = 0; names[i] != NULL; i++) fprintf(out, "%s%s", i > 0 ? ", " : "", names[i]);
    fputs(at + strlen(place), out);
    return fclose(out) == 0 ? made : (char *)(uintptr_t)text; // argp frees it
}

static json_t *notes; // sentences; NULL: none

void note_tell(const char *sentence, bool print) {
    if (sentence[0] == '\0') return;
    if (print) printf("%s\n", sentence);
    if (notes == NULL) notes = json_array();
    json_array_append_new(notes, json_string(sentence));
}

// A stranger's text: of a byte that is no UTF-8 there is no JSON.
json_t *text_json(const char *text) {
    json_t *string = json_string(text);
    char *plain = string == NULL ? strdup(text) : NULL;
    for (char *c = plain; c != NULL && *c != '\0'; c++)
        if ((unsigned char)*c > 126) *c = '?';
    if (plain != NULL) string = json_string(plain);
    free(plain);
    if (string == NULL) abort();
    return string;
}

bool envelope_write_json(const char *path, const char *command, int exit_code, json_t *results,
                         sinkproof_error *error) {
    json_t *envelope = json_object();
    json_object_set_new(envelope, "sinkproof", json_string(SINKPROOF_VERSION));
    json_object_set_new(envelope, "schema", json_integer(1)); // doc/schema.json
    json_object_set_new(envelope, "command", json_string(command));
    json_object_set_new(envelope, "exit", json_integer(exit_code));
    if (notes != NULL) json_object_set(envelope, "notes", notes);
    json_object_set_new(envelope, "results", results);
    json_object_set_new(envelope, "machine", describe_machine());
    char *text = json_dumps(envelope, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    bool good = text != NULL || sinkproof_fail(error, "%.400s: no JSON could be made", path);
    good = good && write_text(path, text, error);
    free(text);
    json_decref(envelope);
    return good;
}

int exit_with_results(const char *path, const char *command, int exit_code, json_t *results) {
    sinkproof_error error;
    if (path == NULL)
        json_decref(results);
    else if (!envelope_write_json(path, command, exit_code, results, &error))
        return exit_bad_input(command, &error);
    return exit_code;
}
