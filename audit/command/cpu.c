// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof info --cpu`: the processor as fast/kernels/isa.c detects it, the data behind the
// choice of an instruction set, and the system's memory.
#include "audit/command/cpu.h"

#include "audit/command/blas_core.h"
#include "audit/command/fastest.h"
#include "fast/kernels/isa.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cpu_processors(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
    return (int)sysconf(_SC_NPROCESSORS_ONLN); // more processors than a cpu_set_t holds
}

typedef struct memory {
    long page, huge_page;       // bytes; 0: unknown
    char huge_pages[16];        // "always", "madvise", "never", or "unknown"
    long l1_data, l2, l3, line; // bytes; 0: unknown
} memory;

static bool read_line(const char *path, char *text, int size) {
    FILE *file = fopen(path, "r");
    bool good = file != NULL && fgets(text, size, file) != NULL;
    if (file != NULL) fclose(file);
    return good;
}

static long system_value(int name) {
    long value = sysconf(name);
    return value > 0 ? value : 0;
}

static memory measure_memory(void) {
    memory m = {.page = system_value(_SC_PAGESIZE), .huge_pages = "unknown"};
    char text[128];
    // "always [madvise] never": the active value is in brackets.
    if (read_line("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof text)) {
        char *open = strchr(text, '['), *close = strchr(text, ']');
        if (open != NULL && close > open && close - open <= (long)sizeof m.huge_pages) {
            *close = '\0';
            strcpy(m.huge_pages, open + 1);
        }
    }
    if (read_line("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", text, sizeof text))
        m.huge_page = strtol(text, NULL, 10);
#ifdef _SC_LEVEL1_DCACHE_SIZE // glibc
    m.l1_data = system_value(_SC_LEVEL1_DCACHE_SIZE);
    m.l2 = system_value(_SC_LEVEL2_CACHE_SIZE);
    m.l3 = system_value(_SC_LEVEL3_CACHE_SIZE);
    m.line = system_value(_SC_LEVEL1_DCACHE_LINESIZE);
#endif
    return m;
}

static const char *const sources[] = {
    [FASTEST_ASKED] = "asked", [FASTEST_MEASURED] = "measured", [FASTEST_KEPT] = "kept"};

static json_t *seconds_json(double seconds) {
    return seconds > 0 ? json_real(seconds) : json_null();
}

// The measured times and the file that keeps them; no times if a set was requested.
static json_t *choice_json(const fastest_sets *f) {
    const sinkproof_kernels *const *tables = sinkproof_isa_all();
    json_t *times = json_array();
    for (size_t i = 0; tables[i] != NULL; i++) {
        const double *t = f->times.seconds[i];
        if (!(t[SINKPROOF_ISA_ONE] > 0)) continue;
        json_array_append_new(times, json_pack("{s:s, s:o, s:o}", "name", tables[i]->isa, "one",
                                               seconds_json(t[SINKPROOF_ISA_ONE]), "many",
                                               seconds_json(t[SINKPROOF_ISA_MANY])));
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:o, s:s?}", "label", "estimated", "source",
                     sources[f->source], "of_one", f->of_one->isa, "of_many", f->of_many->isa,
                     "tokens", SINKPROOF_ISA_TOKENS, "seconds", times, "file",
                     f->file[0] != '\0' ? f->file : NULL);
}

// One result of the JSON envelope, id "cpu".
static json_t *cpu_json(const fastest_sets *fastest) {
    const sinkproof_kernels *chosen = fastest->of_many;
    memory m = measure_memory();
    json_t *sets = json_array(), *caches = json_object();
    for (const sinkproof_kernels *const *k = sinkproof_isa_all(); *k != NULL; k++) {
        const char *why;
        bool runs = sinkproof_isa_runs(*k, &why);
        json_t *set =
            json_pack("{s:s, s:s, s:b}", "name", (*k)->isa, "mode", (*k)->mode, "runs", (int)runs);
        if (!runs) json_object_set_new(set, "why", json_string(why));
        json_array_append_new(sets, set);
    }
    const struct {
        const char *name;
        long bytes;
    } sizes[] = {{"l1_data", m.l1_data}, {"l2", m.l2}, {"l3", m.l3}, {"line", m.line}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].bytes > 0)
            json_object_set_new(caches, sizes[i].name, json_integer(sizes[i].bytes));
    blas_core blas = blas_core_known();
    return json_pack(
        "{s:s, s:b, s:s, s:s, s:o, s:s, s:s, s:i, s:I, s:I, s:s, s:o, s:o, s:{s:s, s:s, s:s?}}",
        "id", "cpu", "ok", 1, "label", "exact", "processor", sinkproof_isa_processor(), "sets",
        sets, "chosen", chosen->isa, "mode", chosen->mode, "threads", cpu_processors(),
        "page_bytes", (json_int_t)m.page, "huge_page_bytes", (json_int_t)m.huge_page, "huge_pages",
        m.huge_pages, "cache_bytes", caches, "choice", choice_json(fastest), "openblas", "core",
        blas.core, "why", blas.why, "own", blas.own);
}

static void print_size(const char *name, long bytes) {
    if (bytes == 0) return;
    bool whole = bytes % (1 << 20) == 0;
    printf("%s %ld %s", name, bytes >> (whole ? 20 : 10), whole ? "MiB" : "KiB");
}

static void print_time(double seconds) {
    if (seconds > 0)
        printf("%12.1f us", 1e6 * seconds);
    else
        printf("%15s", "not asked");
}

// Prints the data behind the choice, in sentences.
static void print_choice(const fastest_sets *f) {
    const sinkproof_kernels *const *tables = sinkproof_isa_all();
    char names[SINKPROOF_ISA_NAMES];
    printf("\nchosen      %s (mode %s)\n", sinkproof_isa_names(f->of_one, f->of_many, names),
           f->of_many->mode);
    if (f->source == FASTEST_ASKED) {
        printf("because     SINKPROOF_ISA names it: nothing was measured\n");
        return;
    }
    printf("because     of the sets of its mode, which give the same bits, %s took the least time "
           "for one\n            token and %s for %d, or none of a lower place took less than "
           "%d/%d of its time\n",
           f->of_one->isa, f->of_many->isa, SINKPROOF_ISA_TOKENS, SINKPROOF_ISA_RANK,
           SINKPROOF_ISA_RANK + 1);
    printf("estimated   the sum of a bf16 and an MXFP4 product (512 x 1024) on one thread, in the "
           "caches:\n            the least of up to 12 times, %s\n",
           f->source == FASTEST_KEPT ? "kept from an earlier measurement" : "measured just now");
    if (f->file[0] != '\0') printf("kept in     %s\n", f->file);
    printf("\n%-12s%15s %11d tokens\n", "set", "one token", SINKPROOF_ISA_TOKENS);
    for (size_t i = 0; tables[i] != NULL; i++) {
        const double *t = f->times.seconds[i];
        if (!(t[SINKPROOF_ISA_ONE] > 0)) continue;
        printf("%-12s", tables[i]->isa);
        print_time(t[SINKPROOF_ISA_ONE]);
        print_time(t[SINKPROOF_ISA_MANY]);
        printf("\n");
    }
}

static void print_others(const fastest_sets *f) {
    char text[1024];
    sinkproof_policy policy;
    if (!sinkproof_policy_known("bf16-operands", &policy)) return;
    fastest_tell_others(sinkproof_isa_all(), f, &policy, text, sizeof text);
    if (text[0] != '\0') printf("\n%s\n", text);
}

static void print_cpu(const fastest_sets *fastest) {
    memory m = measure_memory();
    printf("processor   %s\n", sinkproof_isa_processor());
    printf("threads     %d\n", cpu_processors());
    printf("pages       %ld bytes; transparent huge pages", m.page);
    print_size(" of", m.huge_page);
    printf(": %s\ncaches      ", m.huge_pages);
    if (m.l1_data == 0) printf("not known");
    print_size("L1 data", m.l1_data);
    print_size(", L2", m.l2);
    print_size(", L3", m.l3);
    if (m.line > 0) printf(", lines of %ld bytes", m.line);
    blas_core blas = blas_core_known();
    printf("\nOpenBLAS    core %s, %s%s%s\n", blas.core, blas.why, blas.own != NULL ? ", " : "",
           blas.own != NULL ? blas.own : "");
    printf("\n%-12s%-6s%s\n", "set", "runs", "mode");
    for (const sinkproof_kernels *const *k = sinkproof_isa_all(); *k != NULL; k++) {
        const char *why;
        bool runs = sinkproof_isa_runs(*k, &why);
        printf("%-12s%-6s%s%s%s\n", (*k)->isa, runs ? "yes" : "no", (*k)->mode, runs ? "" : "   ",
               runs ? "" : why);
    }
    print_choice(fastest);
    print_others(fastest);
}

int cmd_info_cpu(const char *json) {
    sinkproof_error error;
    fastest_sets fastest;
    if (!fastest_choose_set(NULL, &fastest, &error)) {
        fprintf(stderr, "sinkproof info: %s\n", error.text);
        return EXIT_USAGE;
    }
    if (json == NULL || strcmp(json, "-") != 0) print_cpu(&fastest);
    return exit_with_results(json, "info", EXIT_HOLDS, json_pack("[o]", cpu_json(&fastest)));
}
