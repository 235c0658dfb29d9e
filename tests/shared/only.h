// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Ids on a test's command line restrict it to these statements. `make mutants` uses this, since a
// mutant in the code of one statement need not wait for the checks of all others.
#ifndef SINKPROOF_TESTS_ONLY_H
#define SINKPROOF_TESTS_ONLY_H

#include <stdbool.h>
#include <string.h>

static char **only_ids; // set by main: only_ids = argv + 1

static bool is_asked(const char *id) {
    bool asked = *only_ids == NULL;
    for (char **one = only_ids; *one != NULL; one++) asked |= strcmp(*one, id) == 0;
    return asked;
}

#endif
