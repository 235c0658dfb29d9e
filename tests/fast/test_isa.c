// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The dispatch: which tables there are, in which order; that each is whole; that what it says of
// this machine is what the system says; that choosing gives the one asked for and no other.
#include "fast/kernels/isa.h"
#include "tests/shared/ran_on.h"

#include <stdlib.h>
#include <string.h>

// Slowest first; flags: what Linux calls the instructions in /proc/cpuinfo. Linux lists them only
// when it saves their registers.
static const struct expected {
    const char *isa, *mode, *flags;
} all[] = {
    {"portable", "lanes", ""},
#if defined(__x86_64__)
    {"avx2", "lanes", "avx avx2 fma f16c"},
    {"avx512", "lanes", "avx512f avx512dq avx512bw avx512vl"},
    {"avx512bf16", "lanes", "avx512_bf16"},
    {"amx", "amx", "amx_tile amx_bf16"},
#elif defined(__aarch64__)
    {"neon", "lanes", "asimd"},
#endif
};
enum { TABLES = sizeof all / sizeof *all };

static size_t count(void) {
    size_t n = 0;
    while (sinkproof_isa_all()[n] != NULL) n++;
    return n;
}

static void order(void) {
    const sinkproof_kernels *const *tables = sinkproof_isa_all();
    bool good = count() == TABLES;
    for (size_t i = 0; good && i < TABLES; i++)
        good = strcmp(tables[i]->isa, all[i].isa) == 0 && strcmp(tables[i]->mode, all[i].mode) == 0;
    ok(good, "the tables are the %d expected, slowest first, each in its numeric mode", TABLES);
}

static void whole(const sinkproof_kernels *k) {
    const struct {
        const char *name;
        bool there;
    } kernels[] = {
        {"linear", k->linear != NULL},
        {"rmsnorm", k->rmsnorm != NULL},
        {"rope", k->rope != NULL},
        {"attend", k->attend != NULL},
        {"attend_spans", k->attend_spans != NULL},
        {"merge_spans", k->merge_spans != NULL},
        {"swiglu", k->swiglu != NULL},
        {"mixture", k->mixture != NULL},
        {"add", k->add != NULL},
        {"round_bf16", k->round_bf16 != NULL},
        {"exp", k->exp != NULL},
    };
    size_t n = sizeof kernels / sizeof *kernels, missing = 0;
    for (size_t i = 0; i < n; i++)
        if (!kernels[i].there) {
            note("%s has no %s", k->isa, kernels[i].name);
            missing++;
        }
    ok(missing == 0, "%s has its %zu kernels", k->isa, n);
}

// Whether /proc/cpuinfo lists every word of `flags`.
static bool listed(const char *flags) {
    char line[8192] = "", words[128];
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "flags", 5) == 0 || strncmp(line, "Features", 8) == 0) break;
    if (file != NULL) fclose(file);
    line[strcspn(line, "\n")] = '\0';
    strcat(line, " ");
    strcpy(words, flags);
    for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " ")) {
        char between[64];
        snprintf(between, sizeof between, " %s ", word);
        if (strstr(line, between) == NULL) return false;
    }
    return true;
}

// One table: what it claims, and one kernel of it that meets its instructions.
static void claim(const sinkproof_kernels *k, bool flags, bool compared) {
    const char *why = "unset";
    bool runs = sinkproof_isa_runs(k, &why);
    const char *said = why != NULL ? why : "runs here";
    ok(runs == (why == NULL) && (runs || strlen(said) > 10), "%s: %s", k->isa, said);
    // A kernel may refuse the tiles of a processor that has them.
    bool agrees = runs == flags || (flags && why != NULL && strstr(why, "kernel refuses") != NULL);
    if (compared)
        ok(agrees, "%s: /proc/cpuinfo agrees", k->isa);
    else
        note("an emulated processor: /proc/cpuinfo may be the host's and is not compared");
    if (!runs) return;
    tap_ran_on(k->isa, compared);
    float x[64], t[64];
    size_t wrong = 0;
    for (size_t i = 0; i < 64; i++) x[i] = (float)i, t[i] = 0.25f;
    k->add(64, t, x);
    for (size_t i = 0; i < 64; i++) wrong += x[i] != (float)i + 0.25f;
    ok(wrong == 0, "%s adds 64 numbers exactly", k->isa);
    tap_ran_on(NULL, false);
}

static bool names(const char *text, bool running) {
    for (size_t i = 0; sinkproof_isa_all()[i] != NULL; i++) {
        const sinkproof_kernels *k = sinkproof_isa_all()[i];
        if ((!running || sinkproof_isa_runs(k, NULL)) && strstr(text, k->isa) == NULL) return false;
    }
    return true;
}

static void choose_by_name(void) {
    sinkproof_error error;
    size_t wrong = 0, refused = 0;
    for (size_t i = 0; sinkproof_isa_all()[i] != NULL; i++) {
        const sinkproof_kernels *k = sinkproof_isa_all()[i];
        const char *why;
        bool runs = sinkproof_isa_runs(k, &why);
        for (int by_variable = 0; by_variable < 2; by_variable++) {
            error.text[0] = '\0';
            if (by_variable) setenv("SINKPROOF_ISA", k->isa, 1);
            const sinkproof_kernels *found =
                sinkproof_isa_choose(by_variable ? NULL : k->isa, &error);
            wrong += found != (runs ? k : NULL);
            wrong += !runs && !(strstr(error.text, why) != NULL && names(error.text, true));
            refused += !runs;
        }
    }
    ok(wrong == 0, "a name gives its table, or the reason and what runs (%zu refused)", refused);
    static const char *const unknown[] = {"", "AVX2", "avx", "avx512 ", "nonsense", "%s%n"};
    wrong = 0;
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        setenv("SINKPROOF_ISA", unknown[i], 1);
        for (int by_variable = 0; by_variable < 2; by_variable++) {
            error.text[0] = '\0';
            wrong += sinkproof_isa_choose(by_variable ? NULL : unknown[i], &error) != NULL;
            wrong += !(strstr(error.text, unknown[i]) != NULL && names(error.text, false));
            wrong += (strstr(error.text, "SINKPROOF_ISA") != NULL) != by_variable;
        }
    }
    ok(wrong == 0, "an unknown name is an error that lists the known ones");
}

static void choose_by_default(void) {
    sinkproof_error error;
    unsetenv("SINKPROOF_ISA");
    const sinkproof_kernels *best = NULL, *found = sinkproof_isa_choose(NULL, &error);
    for (size_t i = 0; sinkproof_isa_all()[i] != NULL; i++) {
        const sinkproof_kernels *k = sinkproof_isa_all()[i];
        if (strcmp(k->mode, "lanes") == 0 && sinkproof_isa_runs(k, NULL)) best = k;
    }
    ok(found != NULL && found == best, "without a name the fastest of mode lanes: %s",
       found == NULL ? "none" : found->isa);
}

int main(void) {
    const char *emulated = getenv("SINKPROOF_EMULATED");
    bool flags = true;
    note("processor: %s", sinkproof_isa_processor());
    ok(strlen(sinkproof_isa_processor()) > 3, "the processor has a name");
    order();
    for (size_t i = 0; i < count(); i++) {
        const sinkproof_kernels *k = sinkproof_isa_all()[i];
        for (size_t e = 0; e < TABLES; e++) // each set needs those before it
            if (strcmp(all[e].isa, k->isa) == 0) flags = flags && listed(all[e].flags);
        whole(k);
        claim(k, flags, emulated == NULL);
    }
    ok(count() > 0 && sinkproof_isa_runs(sinkproof_isa_all()[0], NULL), "portable runs everywhere");
    choose_by_name();
    choose_by_default();
    return tap_done();
}
