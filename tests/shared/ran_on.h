// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Checks that name the instruction set on which they ran: with this file included, each line of
// ok() ends with it and with the kind of machine, "[avx2: on hardware]". tests/run.py lists them.
#ifndef SINKPROOF_RAN_ON_H
#define SINKPROOF_RAN_ON_H

#include "tests/shared/tap.h"

static char ran_on[64]; // empty: no particular set

// NULL: no particular set from now on.
static inline void tap_ran_on(const char *isa, bool hardware) {
    ran_on[0] = '\0';
    if (isa != NULL)
        snprintf(ran_on, sizeof ran_on, " [%s: %s]", isa, hardware ? "on hardware" : "emulated");
}

__attribute__((format(printf, 2, 3), unused)) static bool ok_ran(bool passed, const char *format,
                                                                 ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return ok(passed, "%s%s", text, ran_on);
}
#define ok ok_ran

#endif
