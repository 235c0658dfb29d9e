// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Reading bytes in order.
#include "model/cursor.h"

#include "base/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool sinkproof_cursor_fail(sinkproof_cursor *in, const char *format, ...) {
    char sentence[600];
    va_list arguments;
    if (in->failed) return false;
    in->failed = true;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    return sinkproof_fail(in->error, "%s: %s", in->name, sentence);
}

uint64_t sinkproof_little_endian(const uint8_t *bytes, size_t n) {
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++) value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

const uint8_t *sinkproof_cursor_take(sinkproof_cursor *in, uint64_t n, const char *what) {
    size_t left = (size_t)(in->end - in->at);
    if (!in->failed && n > left)
        sinkproof_cursor_fail(in,
                              "expected %s of %s at byte %zu, found %s left: "
                              "the file is cut short, or damaged there",
                              what, sinkproof_counted(n, "byte").text, (size_t)(in->at - in->begin),
                              sinkproof_counted(left, "byte").text);
    if (in->failed) return NULL;
    const uint8_t *taken = in->at;
    in->at += n;
    return taken;
}

uint64_t sinkproof_cursor_number(sinkproof_cursor *in, size_t n, const char *what) {
    const uint8_t *bytes = sinkproof_cursor_take(in, n, what);
    return bytes == NULL ? 0 : sinkproof_little_endian(bytes, n);
}

const char *sinkproof_cursor_name(sinkproof_cursor *in, const char *what) {
    uint64_t length = sinkproof_cursor_number(in, 8, "a length");
    const uint8_t *text = sinkproof_cursor_take(in, length, what);
    if (text == NULL) return NULL;
    bool good = length > 0 && length < SINKPROOF_CURSOR_NAME;
    for (size_t i = 0; good && i < length; i++) good = text[i] > 32 && text[i] < 127;
    if (!good) {
        sinkproof_cursor_fail(in, "expected %s of 1 to %d printable characters at byte %zu", what,
                              SINKPROOF_CURSOR_NAME - 1, (size_t)(text - in->begin));
        return NULL;
    }
    char *name = memcpy(in->names, text, length);
    name[length] = '\0';
    in->names += length + 1;
    return name;
}
