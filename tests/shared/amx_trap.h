// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Runs the machine code of the AMX kernels on processors without AMX. Such a processor raises
// SIGILL at a tile instruction; the handler decodes it, emulates it as the SDM defines it (vol. 2,
// LDTILECFG, TILEZERO, TILELOADD, TILESTORED, TDPBF16PS, TILERELEASE) on eight tiles per thread,
// and skips it. An instruction that would fault is noted in amx_trap_fault, and does nothing. Any
// other illegal instruction ends the program as it would without the handler.
#ifndef SINKPROOF_TESTS_AMX_TRAP_H
#define SINKPROOF_TESTS_AMX_TRAP_H

#if defined(__x86_64__)

#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

enum {
    AMX_LDTILECFG,
    AMX_TILERELEASE,
    AMX_TILEZERO,
    AMX_TILELOADD,
    AMX_TILESTORED,
    AMX_TDPBF16PS,
    AMX_KINDS
};

typedef struct amx_tile {
    int rows, row_bytes; // 0: not configured
    uint8_t data[16][64];
} amx_tile;

static _Thread_local amx_tile amx_tiles[8];
static _Thread_local bool amx_configured;
static const char *volatile amx_trap_fault;     // of any thread, or NULL
static unsigned long amx_trap_count[AMX_KINDS]; // of all threads

static void amx_counted(int kind) {
    __atomic_fetch_add(&amx_trap_count[kind], 1, __ATOMIC_RELAXED);
}

static void amx_fault(const char *what) {
    if (amx_trap_fault == NULL) amx_trap_fault = what;
}

// ---- the instructions ----------------------------------------------------------------------

static void amx_release(void) {
    memset(amx_tiles, 0, sizeof amx_tiles);
    amx_configured = false;
}

// 64 bytes: palette, start_row, 14 reserved, 8 words of bytes per row, 16 reserved, 8 bytes of
// rows, 8 reserved. Loading clears the tiles.
static void amx_configure(const uint8_t *from) {
    uint8_t c[64];
    memcpy(c, from, sizeof c);
    amx_release();
    if (c[0] == 0) return;
    if (c[0] != 1) {
        amx_fault("LDTILECFG: the palette is not 1");
        return;
    }
    for (int i = 0; i < 64; i++) {
        bool reserved = (i >= 2 && i < 16) || (i >= 32 && i < 48) || i >= 56;
        if (c[i] != 0 && (reserved || i == 1)) {
            amx_fault("LDTILECFG: a reserved byte or start_row is not 0");
            return;
        }
    }
    for (int t = 0; t < 8; t++) {
        int row_bytes = c[16 + 2 * t] | c[17 + 2 * t] << 8, rows = c[48 + t];
        if (row_bytes > 64 || rows > 16 || (row_bytes == 0) != (rows == 0)) {
            amx_fault("LDTILECFG: a tile is no larger than 16 rows of 64 bytes");
            amx_release();
            return;
        }
        amx_tiles[t].rows = rows;
        amx_tiles[t].row_bytes = row_bytes;
    }
    amx_configured = true;
}

static bool amx_ready(int t) {
    if (amx_configured && amx_tiles[t].rows > 0) return true;
    amx_fault("a tile is used that is not configured");
    return false;
}

static void amx_zero(int t) {
    if (amx_ready(t)) memset(amx_tiles[t].data, 0, sizeof amx_tiles[t].data);
}

static void amx_load(int t, const uint8_t *from, ptrdiff_t stride) {
    if (!amx_ready(t)) return;
    amx_zero(t);
    for (int r = 0; r < amx_tiles[t].rows; r++)
        memcpy(amx_tiles[t].data[r], from + r * stride, (size_t)amx_tiles[t].row_bytes);
}

static void amx_store(int t, uint8_t *to, ptrdiff_t stride) {
    if (!amx_ready(t)) return;
    for (int r = 0; r < amx_tiles[t].rows; r++)
        memcpy(to + r * stride, amx_tiles[t].data[r], (size_t)amx_tiles[t].row_bytes);
}

// DAZ and FTZ: a subnormal becomes a zero of its sign. A result that rounds to 2^-126 in float32 is
// kept; whether a processor calls it tiny matters only within 2^-150 below 2^-126.
static inline __attribute__((always_inline)) float amx_flush(float x) {
    return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

static inline __attribute__((always_inline)) float amx_bf16(const uint8_t *at) {
    uint32_t bits = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 24;
    float x;
    memcpy(&x, &bits, sizeof x);
    return amx_flush(x);
}

// c += a b: rows of c and a, pairs of columns of a are rows of b. Compiled with FMA, so that fmaf
// is one instruction; a processor with AVX-512 has it.
__attribute__((target("fma,avx2"))) static void amx_product(int c, int a, int b) {
    if (!amx_ready(c) || !amx_ready(a) || !amx_ready(b)) return;
    amx_tile *sum = &amx_tiles[c];
    const amx_tile *x = &amx_tiles[a], *w = &amx_tiles[b];
    if (c == a || c == b || a == b || sum->rows != x->rows || sum->row_bytes != w->row_bytes ||
        x->row_bytes != 4 * w->rows || x->row_bytes % 4 != 0 || w->row_bytes % 4 != 0) {
        amx_fault("TDPBF16PS: the shapes of the tiles do not match");
        return;
    }
    const int columns = sum->row_bytes / 4;
    float even[16], odd[16], total[16], weights[16][2][16];
    for (int k = 0; k < w->rows; k++)
        for (int n = 0; n < columns; n++)
            for (int i = 0; i < 2; i++) weights[k][i][n] = amx_bf16(w->data[k] + 4 * n + 2 * i);
    for (int m = 0; m < x->rows; m++) {
        for (int n = 0; n < 16; n++) even[n] = odd[n] = 0;
        for (int k = 0; k < x->row_bytes / 4; k++) {
            float x0 = amx_bf16(x->data[m] + 4 * k), x1 = amx_bf16(x->data[m] + 4 * k + 2);
            for (int n = 0; n < columns; n++) {
                even[n] = amx_flush(fmaf(x0, weights[k][0][n], even[n]));
                odd[n] = amx_flush(fmaf(x1, weights[k][1][n], odd[n]));
            }
        }
        memcpy(total, sum->data[m], (size_t)sum->row_bytes);
        for (int n = 0; n < columns; n++)
            total[n] = amx_flush(amx_flush(total[n]) + amx_flush(even[n] + odd[n]));
        memset(sum->data[m], 0, sizeof sum->data[m]);
        memcpy(sum->data[m], total, (size_t)sum->row_bytes);
    }
}

// ---- decoding ------------------------------------------------------------------------------

static uint64_t amx_register(const ucontext_t *context, int number) {
    static const int place[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                  REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                  REG_R12, REG_R13, REG_R14, REG_R15};
    return (uint64_t)context->uc_mcontext.gregs[place[number]];
}

// A memory operand: its address and, with a SIB byte, index times scale separately (the stride).
typedef struct amx_operand {
    uint64_t address, stride;
    int bytes; // bytes of ModRM, SIB and displacement
} amx_operand;

static amx_operand amx_memory(const ucontext_t *context, const uint8_t *modrm, int b, int x,
                              const uint8_t *end) {
    int mod = modrm[0] >> 6, base = modrm[0] & 7;
    amx_operand at = {.bytes = 1};
    bool displaced = mod == 0 && base == 5; // relative to the next instruction
    if (base == 4) {
        int index = (modrm[1] >> 3 & 7) | x << 3;
        if (index != 4) at.stride = amx_register(context, index) << (modrm[1] >> 6);
        base = modrm[1] & 7;
        displaced = mod == 0 && base == 5; // no base
        at.bytes = 2;
        if (!displaced) at.address = amx_register(context, base | b << 3);
    } else if (!displaced) {
        at.address = amx_register(context, base | b << 3);
    }
    int32_t displacement = 0;
    if (mod == 1) displacement = (int8_t)modrm[at.bytes++];
    if (mod == 2 || displaced) {
        memcpy(&displacement, modrm + at.bytes, sizeof displacement);
        at.bytes += 4;
    }
    if (displaced && (modrm[0] & 7) == 5) at.address = (uint64_t)(uintptr_t)(end + at.bytes);
    at.address += (uint64_t)(int64_t)displacement;
    return at;
}

// Executes one tile instruction at `code` (VEX with three bytes, map 0F38, W0, 128 bits); returns
// its length, 0: none.
static int amx_execute(const ucontext_t *context, const uint8_t *code) {
    if (code[0] != 0xc4 || (code[1] & 0x1f) != 2 || (code[2] & 0x84) != 0) return 0;
    const int x = code[1] >> 6 & 1 ? 0 : 1, b = code[1] >> 5 & 1 ? 0 : 1;
    const int prefix = code[2] & 3, vvvv = ~(code[2] >> 3) & 15; // prefix: none, 66, F3, F2
    const int opcode = code[3], reg = code[4] >> 3 & 7, rm = code[4] & 7;
    const bool memory = code[4] >> 6 != 3;
    if (opcode == 0x5c && prefix == 2 && !memory && vvvv < 8) {
        amx_counted(AMX_TDPBF16PS);
        amx_product(reg, rm, vvvv);
        return 5;
    }
    if (opcode == 0x49 && prefix == 3 && !memory && rm == 0) {
        amx_counted(AMX_TILEZERO);
        amx_zero(reg);
        return 5;
    }
    if (opcode == 0x49 && prefix == 0 && code[4] == 0xc0) {
        amx_counted(AMX_TILERELEASE);
        amx_release();
        return 5;
    }
    if (!memory) return 0;
    amx_operand at = amx_memory(context, code + 4, b, x, code + 4);
    uint8_t *place = (uint8_t *)(uintptr_t)at.address;
    if (opcode == 0x49 && prefix == 0 && reg == 0) {
        amx_counted(AMX_LDTILECFG);
        amx_configure(place + at.stride); // here index times scale is part of the address
    } else if (opcode == 0x4b && prefix == 3 && rm == 4) {
        amx_counted(AMX_TILELOADD);
        amx_load(reg, place, (ptrdiff_t)at.stride);
    } else if (opcode == 0x4b && prefix == 2 && rm == 4) {
        amx_counted(AMX_TILESTORED);
        amx_store(reg, place, (ptrdiff_t)at.stride);
    } else {
        return 0;
    }
    return 4 + at.bytes;
}

static void amx_trap(int signal_number, siginfo_t *info, void *where) {
    ucontext_t *context = where;
    (void)info;
    greg_t *at = &context->uc_mcontext.gregs[REG_RIP];
    int length = amx_execute(context, (const uint8_t *)(uintptr_t)*at);
    if (length == 0) signal(signal_number, SIG_DFL); // the instruction then raises it again
    for (; length > 0; length = amx_execute(context, (const uint8_t *)(uintptr_t)*at))
        *at += length; // tile instructions behind it need no signal of their own
}

static void amx_trap_install(void) {
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_NODEFER};
    action.sa_sigaction = amx_trap;
    sigaction(SIGILL, &action, NULL);
}

#endif
#endif
