// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Chooses instruction sets by measurement, and keeps the measurements in a file. Whatever the file
// says, only sets that run here in the requested mode are chosen: the bits are the same.
#include "audit/command/fastest.h"

#include "audit/command/command.h"
#include "base/fnv.h"
#include "fast/engine/engine.h"
#include "fast/kernels/isa.h"
#include "model/bytes.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    VERSION = 2,        // of the kernels: raise it when their speed changes
    MOST_BYTES = 4096,  // of the file
    MOST_SECONDS = 1000 // longest plausible time of a product
};

static const char head[] =
    "sinkproof: seconds of products, from which an instruction set is chosen; safe to delete\n";

// ---- the path of the file ---------------------------------------------------------------------

// What distinguishes this processor and these kernels from others.
static const char *processor_key(char *text, size_t size) {
    snprintf(text, size, "%s; sinkproof %s, kernels %d, compiler %s", sinkproof_isa_processor(),
             SINKPROOF_VERSION, VERSION, __VERSION__);
    return text;
}

bool fastest_file_path(const char *key, char *path, size_t size) {
    const char *own = getenv("SINKPROOF_CACHE"), *base = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME"), *in = "", *under = "";
    if (own != NULL)
        in = own;
    else if (base != NULL && base[0] == '/')
        in = base, under = "/sinkproof";
    else if (home != NULL && home[0] == '/')
        in = home, under = "/.cache/sinkproof";
    int length = snprintf(path, size, "%s%s/isa-%016" PRIx64, in, under,
                          sinkproof_fnv(SINKPROOF_FNV_NOTHING, key, strlen(key)));
    bool good = in[0] != '\0' && length > 0 && (size_t)length < size;
    if (!good) path[0] = '\0';
    return good;
}

// ---- the file -----------------------------------------------------------------------------------

// Reads a regular file as text; returns false for any other file, or for one that is too long.
static bool read_text(const char *path, char *text) {
    struct stat is;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0) return false;
    ssize_t got = fstat(file, &is) == 0 && S_ISREG(is.st_mode) ? read(file, text, MOST_BYTES) : -1;
    close(file);
    if (got <= 0 || got == MOST_BYTES) return false;
    text[got] = '\0';
    return strlen(text) == (size_t)got;
}

// Returns the place after `expected` at `text`, or NULL if the text differs.
static const char *text_after(const char *text, const char *expected) {
    size_t length = strlen(expected);
    return text != NULL && strncmp(text, expected, length) == 0 ? text + length : NULL;
}

// Parses " 1.5e-05", a number of seconds; 0: not measured.
static const char *read_seconds(const char *text, double *seconds) {
    char *end;
    text = text_after(text, " ");
    if (text == NULL || text[0] < '0' || text[0] > '9') return NULL;
    *seconds = strtod(text, &end);
    return *seconds >= 0 && *seconds < MOST_SECONDS ? end : NULL;
}

bool fastest_read_kept(const char *path, const char *key, const sinkproof_kernels *const *tables,
                       sinkproof_isa_times *times) {
    char text[MOST_BYTES + 1];
    *times = (sinkproof_isa_times){0};
    if (!read_text(path, text)) return false;
    const char *at = text_after(text_after(text_after(text, head), key), "\n");
    sinkproof_isa_times found = {0};
    for (size_t i = 0; i < SINKPROOF_ISA_SETS && tables[i] != NULL; i++) {
        if (!sinkproof_isa_runs(tables[i], NULL)) continue;
        at = text_after(at, tables[i]->isa);
        for (int use = 0; use < SINKPROOF_ISA_USES; use++)
            at = read_seconds(at, &found.seconds[i][use]);
        at = text_after(at, "\n");
    }
    if (at == NULL || *at != '\0') return false;
    *times = found;
    return true;
}

// Creates the directory of the file and its parent if they do not exist, without access for other
// users.
static void make_directories(const char *path) {
    char part[FASTEST_PATH];
    snprintf(part, sizeof part, "%s", path);
    char *last = strrchr(part, '/');
    if (last == NULL) return;
    *last = '\0';
    char *above = strrchr(part, '/');
    if (above != NULL && above != part) {
        *above = '\0';
        mkdir(part, 0700);
        *above = '/';
    }
    mkdir(part, 0700);
}

bool fastest_write_kept(const char *path, const char *key, const sinkproof_kernels *const *tables,
                        const sinkproof_isa_times *times) {
    sinkproof_output output;
    sinkproof_error ignored;
    make_directories(path);
    if (!sinkproof_output_open(&output, path, &ignored)) return false;
    fprintf(output.stream, "%s%s\n", head, key);
    for (size_t i = 0; i < SINKPROOF_ISA_SETS && tables[i] != NULL; i++)
        if (sinkproof_isa_runs(tables[i], NULL))
            fprintf(output.stream, "%s %.17g %.17g\n", tables[i]->isa,
                    times->seconds[i][SINKPROOF_ISA_ONE], times->seconds[i][SINKPROOF_ISA_MANY]);
    return sinkproof_output_finish(&output, &ignored);
}

// ---- the choice ---------------------------------------------------------------------------------

// Uses the stored times if they decide; otherwise measures, and stores the result.
static bool find_times(const char *mode, fastest_sets *f, sinkproof_error *error) {
    char key[512];
    const sinkproof_kernels *const *tables = sinkproof_isa_all();
    bool file = fastest_file_path(processor_key(key, sizeof key), f->file, sizeof f->file);
    f->source = FASTEST_KEPT;
    if (file && fastest_read_kept(f->file, key, tables, &f->times) &&
        sinkproof_isa_fastest(tables, mode, SINKPROOF_ISA_ONE, &f->times) != NULL &&
        sinkproof_isa_fastest(tables, mode, SINKPROOF_ISA_MANY, &f->times) != NULL)
        return true;
    f->source = FASTEST_MEASURED;
    if (!sinkproof_isa_measure(tables, &f->times, error)) return false;
    if (file && !fastest_write_kept(f->file, key, tables, &f->times)) f->file[0] = '\0';
    return true;
}

bool fastest_choose_set(const char *name, fastest_sets *fastest, sinkproof_error *error) {
    const sinkproof_kernels *const *tables = sinkproof_isa_all();
    const sinkproof_kernels *ranked = sinkproof_isa_choose(name, error);
    *fastest = (fastest_sets){.of_one = ranked, .of_many = ranked};
    if (ranked == NULL) return false;
    if (name != NULL || getenv("SINKPROOF_ISA") != NULL) return true;
    if (!find_times(ranked->mode, fastest, error)) return false;
    const sinkproof_isa_times *times = &fastest->times;
    fastest->of_one = sinkproof_isa_fastest(tables, ranked->mode, SINKPROOF_ISA_ONE, times);
    fastest->of_many = sinkproof_isa_fastest(tables, ranked->mode, SINKPROOF_ISA_MANY, times);
    // A clock that stands still measures nothing.
    if (fastest->of_one == NULL) fastest->of_one = ranked;
    if (fastest->of_many == NULL) fastest->of_many = ranked;
    return true;
}

static double set_seconds(const sinkproof_kernels *const *tables, const sinkproof_kernels *of,
                          const sinkproof_isa_times *times, sinkproof_isa_use use) {
    for (size_t i = 0; i < SINKPROOF_ISA_SETS && tables[i] != NULL; i++)
        if (tables[i] == of) return times->seconds[i][use];
    return 0;
}

const char *fastest_tell_others(const sinkproof_kernels *const *tables, const fastest_sets *fastest,
                                const sinkproof_policy *policy, char *text, size_t size) {
    const sinkproof_isa_times *t = &fastest->times;
    const double one = set_seconds(tables, fastest->of_one, t, SINKPROOF_ISA_ONE);
    const double many = set_seconds(tables, fastest->of_many, t, SINKPROOF_ISA_MANY);
    sinkproof_error ignored;
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < SINKPROOF_ISA_SETS && tables[i] != NULL; i++) {
        const double *other = t->seconds[i];
        if (strcmp(tables[i]->mode, fastest->of_many->mode) == 0 || !(one > 0) || !(many > 0) ||
            !(other[SINKPROOF_ISA_ONE] > 0) || !(other[SINKPROOF_ISA_MANY] > 0) ||
            !sinkproof_engine_serves(tables[i], policy, &ignored))
            continue;
        int length = snprintf(text + used, size - used,
                              "%s--isa %s is another numeric mode, with other bits: products of %d "
                              "tokens at %.2g times the speed of %s, of one token at %.2g times "
                              "that of %s (estimated: small products, one thread)",
                              used > 0 ? "; " : "", tables[i]->isa, SINKPROOF_ISA_TOKENS,
                              many / other[SINKPROOF_ISA_MANY], fastest->of_many->isa,
                              one / other[SINKPROOF_ISA_ONE], fastest->of_one->isa);
        if (length < 0 || (size_t)length >= size - used) break;
        used += (size_t)length;
    }
    text[used] = '\0';
    return text;
}

void fastest_say_chosen(const char *command, const fastest_sets *fastest,
                        const sinkproof_policy *policy) {
    char text[1024];
    fastest_tell_others(sinkproof_isa_all(), fastest, policy, text, sizeof text);
    if (text[0] != '\0') fprintf(stderr, "sinkproof %s: %s\n", command, text);
}
