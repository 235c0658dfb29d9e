// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The record of formal proofs, as it was when the program was built: tests/formal_registry.py
// reads proofs/formal/*.v and writes formal.h, a line SINKPROOF_FORMAL(id, file, hash, complete)
// for each theorem region. Built without it, the program says so.
#include "audit/verify.h"

#include <string.h>

#if defined(__has_include)
#if __has_include("formal.h")
#define RECORDED 1
#endif
#endif
#ifndef RECORDED
#define RECORDED 0
#endif

static const verify_formal record[] = {
#define SINKPROOF_FORMAL(id, file, hash, complete) {id, file, hash, complete},
#if RECORDED
#include "formal.h"
#endif
#undef SINKPROOF_FORMAL
    {NULL, NULL, NULL, false},
};

const verify_formal *sinkproof_verify_formal(const char *id) {
    for (const verify_formal *f = record; f->id != NULL; f++)
        if (strcmp(f->id, id) == 0) return f;
    return NULL;
}

bool sinkproof_verify_formal_recorded(void) {
    return RECORDED;
}
