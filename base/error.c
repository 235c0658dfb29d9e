// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

bool sinkproof_fail(sinkproof_error *error, const char *format, ...) {
    if (error == NULL) return false;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    sinkproof_make_printable(error->text);
    return false;
}

void sinkproof_make_printable(char *text) {
    for (unsigned char *c = (unsigned char *)text; *c != '\0'; c++) {
        bool c1 = c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0; // U+0080 .. U+009F: two bytes
        if (c1) *c++ = '?';
        if (c1 || *c < 32 || *c == 127) *c = '?';
    }
}
