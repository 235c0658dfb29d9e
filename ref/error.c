// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "ref/error.h"

#include <stdarg.h>
#include <stdio.h>

bool sinkproof_fail(sinkproof_error *error, const char *format, ...) {
    if (error == NULL) return false;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return false;
}
