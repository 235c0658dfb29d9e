// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The ids on a test's command line: it then checks these statements alone. `make mutants` asks so,
// since a mistake in the code of one statement need not wait for the checks of all others.
#ifndef SINKPROOF_TESTS_ONLY_H
#define SINKPROOF_TESTS_ONLY_H

#include <stdbool.h>
#include <string.h>

static char **only_ids; // until NULL; main says: only_ids = argv + 1

static bool is_asked(const char *id) {
    bool asked = *only_ids == NULL;
    for (char **one = only_ids; *one != NULL; one++) asked |= strcmp(*one, id) == 0;
    return asked;
}

#endif
