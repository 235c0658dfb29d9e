// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The instructions of AMX by name, for the files that are compiled for it. Any compiler that
// assembles them builds this, and the operand of LDTILECFG is the whole structure. (GCC 12's
// intrinsic names eight bytes of it, so that -O3 drops the other stores.)
#ifndef SINKPROOF_TILES_AMX_H
#define SINKPROOF_TILES_AMX_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TILE = 1024, // bytes: 16 rows of 64
    ROW = 64,    // bytes
};

// What LDTILECFG reads (SDM vol. 1, 18.2): palette 1 has eight tiles of 16 rows of 64 bytes.
typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;
_Static_assert(sizeof(tile_config) == 64, "LDTILECFG reads 64 bytes");

#define TILE_CONFIGURE(config) __asm__ volatile("ldtilecfg %0" : : "m"(config) : "memory")
#define TILE_RELEASE()         __asm__ volatile("tilerelease" : : : "memory")
#define TILE_ZERO(t)           __asm__ volatile("tilezero %%tmm" #t : : : "memory")
// Rows `stride` bytes apart.
#define TILE_LOAD(t, from, stride)                                                                 \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t                                               \
                     :                                                                             \
                     : "r"(from), "r"((size_t)(stride))                                            \
                     : "memory")
#define TILE_STORE(t, to, stride)                                                                  \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)"                                           \
                     :                                                                             \
                     : "r"(to), "r"((size_t)(stride))                                              \
                     : "memory")
// Sums in tile c += A tile a times B tile b.
#define TILE_PRODUCT(c, a, b)                                                                      \
    __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c : : : "memory")

#endif
