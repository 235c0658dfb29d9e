// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Errors are values: a function that can fail returns false and leaves one
// sentence that names the file, the tensor, what was expected and what was found.
#ifndef SINKPROOF_ERROR_H
#define SINKPROOF_ERROR_H

#include <stdbool.h>

#ifndef SINKPROOF_ERROR_DEFINED // the public face has the same struct
#define SINKPROOF_ERROR_DEFINED
typedef struct sinkproof_error {
    char text[1024];
} sinkproof_error;
#endif

#if defined(__GNUC__)
#define SINKPROOF_PRINTF(format_index, first_argument)                                             \
    __attribute__((format(printf, format_index, first_argument)))
#else
#define SINKPROOF_PRINTF(format_index, first_argument)
#endif

// Writes the sentence into *error (which may be NULL) and returns false.
bool sinkproof_fail(sinkproof_error *error, const char *format, ...) SINKPROOF_PRINTF(2, 3);

// Replaces every control character (C0, DEL, and C1 in UTF-8) by '?', so that untrusted text cannot
// send commands to a terminal. sinkproof_fail applies it to every sentence.
void sinkproof_make_printable(char *text);

#endif
