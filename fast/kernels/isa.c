// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Dispatch. A table runs if the processor has every instruction that its files were compiled for
// (the Makefile's SET_...) and the system saves the registers that they use: XCR0 has a bit for
// each part of the state that the system saves (Intel SDM vol. 1, 13.3). AMX also needs permission:
// Linux gives a process the eight kilobytes of tiles only on request
// (Documentation/arch/x86/xstate.rst). This file is compiled for the baseline of the architecture
// and calls no kernel.
#include "fast/kernels/isa.h"

#include "base/words.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

static const sinkproof_kernels *const tables[] = {
    // Slowest first.
    &kernels_portable,
#if defined(__x86_64__)
    &kernels_avx2,
    &kernels_avx512,
    &kernels_avx512bf16,
    &kernels_amx,
#elif defined(__aarch64__)
    &kernels_neon,
#endif
    NULL,
};

const sinkproof_kernels *const *sinkproof_isa_all(void) {
    return tables;
}

#if defined(__x86_64__)

enum { EAX, EBX, ECX, EDX };
enum { STATE_YMM = 0x6, STATE_ZMM = 0xe6, STATE_TILES = 0x60000 }; // bits of XCR0
enum { REQUEST_STATE = 0x1023, TILE_DATA = 18 };                   // arch_prctl(2), Linux 5.16

typedef struct need {
    uint32_t leaf, subleaf;
    int reg, bit;
    const char *why;
} need;

// The requirements of each table, in the order of `tables`: each also requires those before it.
enum { PORTABLE, AVX2, AVX512, AVX512BF16, AMX, SETS };
static const char *const set_names[SETS] = {"portable", "avx2", "avx512", "avx512bf16", "amx"};
static const need avx2_needs[] = {{1, 0, ECX, 28, "the processor lacks AVX"},
                                  {7, 0, EBX, 5, "the processor lacks AVX2"},
                                  {1, 0, ECX, 12, "the processor lacks FMA"},
                                  {1, 0, ECX, 29, "the processor lacks F16C"},
                                  {0}};
static const need avx512_needs[] = {{7, 0, EBX, 16, "the processor lacks AVX512F"},
                                    {7, 0, EBX, 17, "the processor lacks AVX512DQ"},
                                    {7, 0, EBX, 30, "the processor lacks AVX512BW"},
                                    {7, 0, EBX, 31, "the processor lacks AVX512VL"},
                                    {0}};
static const need bf16_needs[] = {{7, 1, EAX, 5, "the processor lacks AVX512_BF16"}, {0}};
static const need amx_needs[] = {{7, 0, EDX, 24, "the processor lacks AMX_TILE"},
                                 {7, 0, EDX, 22, "the processor lacks AMX_BF16"},
                                 {0}};

static bool processor_has(const need *n) {
    uint32_t r[4];
    return __get_cpuid_count(n->leaf, n->subleaf, &r[EAX], &r[EBX], &r[ECX], &r[EDX]) != 0 &&
           (r[n->reg] >> n->bit & 1) != 0;
}

static const char *processor_lacks(const need *n) {
    for (; n->why != NULL; n++)
        if (!processor_has(n)) return n->why;
    return NULL;
}

// XCR0, or 0 if the system has not enabled XSAVE. Inline assembly, since the intrinsic would need
// this file compiled with -mxsave.
static uint64_t read_xcr0(void) {
    static const need osxsave = {1, 0, ECX, 27, ""};
    uint32_t low, high;
    if (!processor_has(&osxsave)) return 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

// The reason why the set does not run; NULL if it runs.
static const char *why_set_does_not_run(int set) {
    uint64_t saved = read_xcr0();
    const char *why = NULL;
    if (set >= AVX2) why = processor_lacks(avx2_needs);
    if (why == NULL && set >= AVX2 && (saved & STATE_YMM) != STATE_YMM)
        return "the system does not save the ymm registers";
    if (why == NULL && set >= AVX512) why = processor_lacks(avx512_needs);
    if (why == NULL && set >= AVX512 && (saved & STATE_ZMM) != STATE_ZMM)
        return "the system does not save the zmm registers";
    if (why == NULL && set >= AVX512BF16) why = processor_lacks(bf16_needs);
    if (why == NULL && set >= AMX) why = processor_lacks(amx_needs);
    if (why == NULL && set >= AMX && (saved & STATE_TILES) != STATE_TILES)
        return "the system does not save the tile registers";
    // Granted to the whole process, including later threads; asking again changes nothing.
    if (why == NULL && set >= AMX && syscall(SYS_arch_prctl, REQUEST_STATE, TILE_DATA) != 0)
        return "the kernel refuses the tile registers (arch_prctl ARCH_REQ_XCOMP_PERM)";
    return why;
}

bool sinkproof_isa_runs(const sinkproof_kernels *kernels, const char **why) {
    const char *reason = "this file does not know its instructions";
    for (int set = 0; set < SETS; set++)
        if (strcmp(kernels->isa, set_names[set]) == 0) reason = why_set_does_not_run(set);
    if (why != NULL) *why = reason;
    return reason == NULL;
}

const char *sinkproof_isa_processor(void) {
    static char name[49];
    uint32_t r[12], top = __get_cpuid_max(0x80000000u, NULL);
    char text[49] = "";
    if (top < 0x80000004u) return "unknown";
    for (uint32_t i = 0; i < 3; i++)
        __get_cpuid(0x80000002u + i, &r[4 * i], &r[4 * i + 1], &r[4 * i + 2], &r[4 * i + 3]);
    memcpy(text, r, 48);
    const char *first = text + strspn(text, " ");
    size_t length = strlen(first);
    while (length > 0 && first[length - 1] == ' ') length--;
    if (length == 0) return "unknown";
    memcpy(name, first, length); // every thread writes the same
    return name;
}

#else

bool sinkproof_isa_runs(const sinkproof_kernels *kernels, const char **why) {
    const char *reason = NULL;
#if defined(__aarch64__)
    enum { HWCAP_ADVANCED_SIMD = 1 << 1 };
    if (strcmp(kernels->isa, "portable") != 0 && (getauxval(AT_HWCAP) & HWCAP_ADVANCED_SIMD) == 0)
        reason = "the processor lacks Advanced SIMD";
#else
    (void)kernels;
#endif
    if (why != NULL) *why = reason;
    return reason == NULL;
}

// An arm processor has numbers instead of a name: some of those in Linux's
// arch/arm64/include/asm/cputype.h. The register is readable if the system says so (HWCAP_CPUID).
const char *sinkproof_isa_processor(void) {
#if defined(__aarch64__)
    static const struct {
        unsigned implementer, part;
        const char *name;
    } known[] = {
        {0x41, 0xd03, "Arm Cortex-A53"},  {0x41, 0xd07, "Arm Cortex-A57"},
        {0x41, 0xd08, "Arm Cortex-A72"},  {0x41, 0xd0b, "Arm Cortex-A76"},
        {0x41, 0xd0c, "Arm Neoverse-N1"}, {0x41, 0xd40, "Arm Neoverse-V1"},
        {0x41, 0xd49, "Arm Neoverse-N2"}, {0x41, 0xd4f, "Arm Neoverse-V2"},
        {0xc0, 0xac3, "Ampere-1"},        {0x46, 0x001, "Fujitsu A64FX"},
    };
    static char text[64];
    enum { HWCAP_ID_REGISTERS = 1 << 11 };
    uint64_t midr;
    if ((getauxval(AT_HWCAP) & HWCAP_ID_REGISTERS) == 0) return "unknown";
    __asm__("mrs %0, midr_el1" : "=r"(midr));
    unsigned implementer = midr >> 24 & 0xff, part = midr >> 4 & 0xfff;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].implementer == implementer && known[i].part == part) return known[i].name;
    snprintf(text, sizeof text, "aarch64, implementer 0x%02x, part 0x%03x", implementer, part);
    return text;
#else
    return "unknown";
#endif
}

#endif

// The names of all tables, or of those that run, separated by commas.
static const char *table_names(bool running, char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; tables[i] != NULL; i++)
        if (!running || sinkproof_isa_runs(tables[i], NULL))
            used += (size_t)snprintf(text + used, size - used, "%s%s", used == 0 ? "" : ", ",
                                     tables[i]->isa);
    return text;
}

const sinkproof_kernels *sinkproof_isa_choose(const char *name, sinkproof_error *error) {
    const char *asked = "the instruction set", *why;
    char all[160], running[160];
    if (name == NULL) {
        asked = "SINKPROOF_ISA";
        name = getenv("SINKPROOF_ISA");
    }
    const sinkproof_kernels *best = NULL;
    for (size_t i = 0; tables[i] != NULL; i++) {
        if (name == NULL) {
            if (strcmp(tables[i]->mode, "lanes") == 0 && sinkproof_isa_runs(tables[i], NULL))
                best = tables[i];
        } else if (strcmp(tables[i]->isa, name) == 0) {
            if (sinkproof_isa_runs(tables[i], &why)) return tables[i];
            sinkproof_fail(error, "%s \"%s\" does not run here: %s; these run: %s", asked, name,
                           why, table_names(true, running, sizeof running));
            return NULL;
        }
    }
    if (name != NULL)
        sinkproof_fail(error, "%s \"%.40s\" is unknown: %sexpected one of %s; these run here: %s",
                       asked, name,
                       sinkproof_guess_in_list(name, table_names(false, all, sizeof all)).text, all,
                       table_names(true, running, sizeof running));
    else if (best == NULL)
        sinkproof_fail(error, "none of the instruction sets %s runs here",
                       table_names(false, all, sizeof all));
    return best;
}
