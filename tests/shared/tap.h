// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// TAP, as `prove` reads it. A test reports the ids of the statements that it checked, with its
// measurements: "ok 12 - sink.mass ref worst=0.31 bound=1 seed=7".
#ifndef SINKPROOF_TAP_H
#define SINKPROOF_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static int tap_count, tap_failures;

__attribute__((format(printf, 2, 3), unused)) static bool ok(bool passed, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("%sok %d - ", passed ? "" : "not ", ++tap_count);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    if (!passed) tap_failures++;
    fflush(stdout);
    return passed;
}

__attribute__((format(printf, 1, 2), unused)) static void skip(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("ok %d # SKIP ", ++tap_count);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
}

__attribute__((format(printf, 1, 2), unused)) static void note(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("# ");
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
}

// For a precondition of a test that is not under test: memory.
static inline void must(bool done) {
    if (done) return;
    printf("Bail out! no memory\n");
    exit(1);
}

// The last call in main: prints the plan and returns the exit status.
static int tap_done(void) {
    printf("1..%d\n", tap_count);
    return tap_failures == 0 && tap_count > 0 ? 0 : 1;
}

#endif
