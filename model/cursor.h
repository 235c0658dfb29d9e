// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Reading the bytes of a file that a stranger wrote, one after the other and never beyond the end.
// Private to model/.
#ifndef SINKPROOF_CURSOR_H
#define SINKPROOF_CURSOR_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { SINKPROOF_CURSOR_NAME = 201 }; // bytes of a name with its 0, at most

// What is still to be read; `name` and `error` for sentences. The first failure is told and stops
// all further reading: what is taken after it is NULL or 0.
typedef struct sinkproof_cursor {
    const char *name;
    sinkproof_error *error;
    const uint8_t *begin, *at, *end;
    char *names; // where the next name is copied to
    bool failed;
} sinkproof_cursor;

// Notes the failure "NAME: SENTENCE"; returns false.
bool sinkproof_cursor_fail(sinkproof_cursor *in, const char *format, ...) SINKPROOF_PRINTF(2, 3);

// The next n bytes, or NULL; `what` stands in the error: "a key".
const uint8_t *sinkproof_cursor_take(sinkproof_cursor *in, uint64_t n, const char *what);
// A little-endian number of n bytes, 8 at most.
uint64_t sinkproof_cursor_number(sinkproof_cursor *in, size_t n, const char *what);
uint64_t sinkproof_little_endian(const uint8_t *bytes, size_t n);
// A name behind its length of eight bytes: 1 to 200 printable characters without blanks, since it
// would reach somebody's terminal. Copied, with a 0 behind it; or NULL.
const char *sinkproof_cursor_name(sinkproof_cursor *in, const char *what);

#endif
