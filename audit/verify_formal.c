// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The record of formal proofs, as it was when the program was built: tests/formal_registry.py
// reads proofs/formal/*.v and writes the array below as a C file, which is linked beside main.
// A program that was linked without it has no record, and says so.
#include "audit/verify.h"

#include <string.h>

__attribute__((weak)) extern const verify_formal sinkproof_verify_formal_record[];

const verify_formal *sinkproof_verify_formal(const char *id) {
    if (!sinkproof_verify_formal_recorded()) return NULL;
    for (const verify_formal *f = sinkproof_verify_formal_record; f->id != NULL; f++)
        if (strcmp(f->id, id) == 0) return f;
    return NULL;
}

bool sinkproof_verify_formal_recorded(void) {
    return sinkproof_verify_formal_record != NULL;
}
