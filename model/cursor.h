// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Reads the bytes of an untrusted file in order, and never beyond the end. Private to model/.
#ifndef SINKPROOF_CURSOR_H
#define SINKPROOF_CURSOR_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { CURSOR_NAME = 201 }; // most bytes of a name, including its 0

// The remaining bytes; `name` and `error` are used in errors. The first failure is reported and
// stops all further reading: later results are NULL or 0.
typedef struct file_cursor {
    const char *name;
    sinkproof_error *error;
    const uint8_t *begin, *at, *end;
    char *names; // destination of the next name
    bool failed;
} file_cursor;

// Sets the error "NAME: SENTENCE"; returns false.
bool cursor_fail(file_cursor *in, const char *format, ...) SINKPROOF_PRINTF(2, 3);

// The next n bytes, or NULL; `what` is used in the error: "a key".
const uint8_t *cursor_take_bytes(file_cursor *in, uint64_t n, const char *what);
// A little-endian number of at most 8 bytes.
uint64_t cursor_number(file_cursor *in, size_t n, const char *what);
uint64_t cursor_little_endian(const uint8_t *bytes, size_t n);
// A name after its length in eight bytes: 1 to 200 printable characters without blanks, since it
// may be printed on a terminal. It is copied with a 0 after it; or NULL.
const char *cursor_name(file_cursor *in, const char *what);

#endif
