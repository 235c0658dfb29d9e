// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Measures the peak rate of arithmetic units: loops of one instruction on independent accumulators,
// all in registers. A multiply-add takes about four cycles and two start per cycle, so that eight
// chains are the minimum; sixteen are used. No memory is read or written.
#include "audit/bench/bench.h"

#include "base/splitmix.h"

#include <math.h>
#include <string.h>

void bench_fill_panels(sinkproof_panel_format format, uint8_t *data, size_t bytes) {
    enum { PART = 1 << 20 };
    // Sign and fraction are random; the exponent is that of [0.5, 1).
    const uint64_t keep = format == SINKPROOF_PANEL_F32    ? 0x807fffff807fffffu
                          : format == SINKPROOF_PANEL_BF16 ? 0x807f807f807f807fu
                                                           : ~UINT64_C(0);
    const uint64_t set = format == SINKPROOF_PANEL_F32    ? 0x3f0000003f000000u
                         : format == SINKPROOF_PANEL_BF16 ? 0x3f003f003f003f00u
                                                          : 0;
#pragma omp parallel for schedule(static)
    for (size_t part = 0; part < (bytes + PART - 1) / PART; part++) {
        uint64_t state = part << 32;
        size_t end = (part + 1) * PART < bytes ? (part + 1) * PART : bytes;
        for (size_t at = part * PART; at + 8 <= end; at += 8) {
            uint64_t word = (sinkproof_draw(&state) & keep) | set;
            memcpy(data + at, &word, 8);
        }
    }
}

// In plain C, as the portable lanes have it: fmaf is whatever the library makes of it.
static void fma_portable(size_t turns) {
    float a[16], b[16], sum[16] = {0};
    for (int l = 0; l < 16; l++) a[l] = 1.0f, b[l] = 0.5f;
    __asm__ volatile("" : : "r"(a), "r"(b) : "memory"); // hides the values from the compiler
    for (size_t i = 0; i < turns; i++)
#pragma GCC unroll 16
        for (int l = 0; l < 16; l++) sum[l] = fmaf(a[l], b[l], sum[l]);
    __asm__ volatile("" : : "r"(sum) : "memory");
}
static const bench_peak peak_portable = {"fmaf of C", 32, fma_portable};

#if defined(__x86_64__)

static const float ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

#define LOW_REGISTERS                                                                              \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",       \
        "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#define HIGH_REGISTERS "xmm16", "xmm17"
#define TWELVE(what)                                                                               \
    what("0") what("1") what("2") what("3") what("4") what("5") what("6") what("7") what("8")      \
        what("9") what("10") what("11")
#define SIXTEEN(what) TWELVE(what) what("12") what("13") what("14") what("15")

#define CLEAR_YMM(r) "vxorps %%ymm" r ", %%ymm" r ", %%ymm" r "\n\t"
#define FMA_YMM(r)   "vfmadd231ps %%ymm14, %%ymm15, %%ymm" r "\n\t"
#define CLEAR_ZMM(r) "vpxord %%zmm" r ", %%zmm" r ", %%zmm" r "\n\t"
#define FMA_ZMM(r)   "vfmadd231ps %%zmm16, %%zmm17, %%zmm" r "\n\t"
#define PAIRS_ZMM(r) "vdpbf16ps %%zmm16, %%zmm17, %%zmm" r "\n\t"

__attribute__((target("avx2,fma"))) static void fma_avx2(size_t turns) {
    __asm__ volatile("vmovups %1, %%ymm14\n\tvmovups %1, %%ymm15\n\t" TWELVE(
                         CLEAR_YMM) "1:\n\t" TWELVE(FMA_YMM) "dec %0\n\tjnz 1b\n\tvzeroupper"
                     : "+r"(turns)
                     : "m"(ones)
                     : "cc", LOW_REGISTERS);
}
static const bench_peak peak_avx2 = {"vfmadd231ps ymm", 12 * 16, fma_avx2};

__attribute__((target("avx512f"))) static void fma_avx512(size_t turns) {
    __asm__ volatile("vmovups %1, %%zmm16\n\tvmovups %1, %%zmm17\n\t" SIXTEEN(
                         CLEAR_ZMM) "1:\n\t" SIXTEEN(FMA_ZMM) "dec %0\n\tjnz 1b\n\tvzeroupper"
                     : "+r"(turns)
                     : "m"(ones)
                     : "cc", LOW_REGISTERS, HIGH_REGISTERS);
}
static const bench_peak peak_avx512 = {"vfmadd231ps zmm", 16 * 32, fma_avx512};

__attribute__((target("avx512f,avx512bf16"))) static void pairs_avx512(size_t turns) {
    __asm__ volatile("vmovups %1, %%zmm16\n\tvmovups %1, %%zmm17\n\t" SIXTEEN(
                         CLEAR_ZMM) "1:\n\t" SIXTEEN(PAIRS_ZMM) "dec %0\n\tjnz 1b\n\tvzeroupper"
                     : "+r"(turns)
                     : "m"(ones)
                     : "cc", LOW_REGISTERS, HIGH_REGISTERS);
}
static const bench_peak peak_pairs = {"vdpbf16ps zmm", 16 * 64, pairs_avx512};

// Tiles of 16 rows of 64 bytes: 16 x 16 sums of 32 products each. Six tiles hold sums; the other
// two hold operands with numbers like a model's, since products of zeros take less power, and a
// processor at its power limit computes more of them per second. The whole configuration is an
// operand of the assembly.
typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;

__attribute__((target("amx-tile,amx-bf16"))) static void pairs_amx(size_t turns) {
    uint8_t numbers[2][1024];
    tile_config config = {.palette = 1};
    bench_fill_panels(SINKPROOF_PANEL_BF16, numbers[0], sizeof numbers);
    for (int t = 0; t < 8; t++) config.row_bytes[t] = 64, config.rows[t] = 16;
    __asm__ volatile("ldtilecfg %1\n\t"
                     "tilezero %%tmm0\n\ttilezero %%tmm1\n\ttilezero %%tmm2\n\ttilezero %%tmm3\n\t"
                     "tilezero %%tmm4\n\ttilezero %%tmm5\n\t"
                     "tileloadd (%2,%4,1), %%tmm6\n\ttileloadd (%3,%4,1), %%tmm7\n\t"
                     "1:\n\t"
                     "tdpbf16ps %%tmm7, %%tmm6, %%tmm0\n\ttdpbf16ps %%tmm7, %%tmm6, %%tmm1\n\t"
                     "tdpbf16ps %%tmm7, %%tmm6, %%tmm2\n\ttdpbf16ps %%tmm7, %%tmm6, %%tmm3\n\t"
                     "tdpbf16ps %%tmm7, %%tmm6, %%tmm4\n\ttdpbf16ps %%tmm7, %%tmm6, %%tmm5\n\t"
                     "dec %0\n\tjnz 1b\n\ttilerelease"
                     : "+r"(turns)
                     : "m"(config), "r"(numbers[0]), "r"(numbers[1]), "r"((size_t)64)
                     : "cc", "memory");
}
static const bench_peak peak_amx = {"tdpbf16ps", 6.0 * 16 * 16 * 64, pairs_amx};

#elif defined(__aarch64__)

#define FMLA(r)  "fmla v" r ".4s, v16.4s, v17.4s\n\t"
#define CLEAR(r) "movi v" r ".4s, #0\n\t"

static void fma_neon(size_t turns) {
    __asm__ volatile("fmov v16.4s, #1.0\n\tfmov v17.4s, #1.0\n\t" CLEAR("0") CLEAR("1") CLEAR("2")
                         CLEAR("3") CLEAR("4") CLEAR("5") CLEAR("6") CLEAR("7") CLEAR("8")
                             CLEAR("9") CLEAR("10") CLEAR("11") CLEAR("12") CLEAR("13") CLEAR("14")
                                 CLEAR("15") "1:\n\t" FMLA("0") FMLA("1") FMLA("2") FMLA("3")
                                     FMLA("4") FMLA("5") FMLA("6") FMLA("7") FMLA("8") FMLA("9")
                                         FMLA("10") FMLA("11") FMLA("12") FMLA("13") FMLA("14")
                                             FMLA("15") "subs %0, %0, #1\n\tb.ne 1b"
                     : "+r"(turns)
                     :
                     : "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10",
                       "v11", "v12", "v13", "v14", "v15", "v16", "v17");
}
static const bench_peak peak_neon = {"fmla v.4s", 16 * 8, fma_neon};

#endif

static const struct {
    const char *isa;
    const bench_peak *fma, *pairs;
} peaks[] = {
    {"portable", &peak_portable, NULL},
#if defined(__x86_64__)
    {"avx2", &peak_avx2, NULL},
    {"avx512", &peak_avx512, NULL},
    {"avx512bf16", &peak_avx512, &peak_pairs},
    {"amx", &peak_avx512, &peak_amx},
#elif defined(__aarch64__)
    {"neon", &peak_neon, NULL},
#endif
};

const bench_peak *bench_peak_find(const sinkproof_kernels *table, bool pairs) {
    for (size_t i = 0; i < sizeof peaks / sizeof peaks[0]; i++)
        if (strcmp(peaks[i].isa, table->isa) == 0) return pairs ? peaks[i].pairs : peaks[i].fma;
    return pairs ? NULL : &peak_portable;
}
