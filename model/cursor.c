// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Reading bytes in order.
#include "model/cursor.h"

#include "base/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool cursor_fail(file_cursor *in, const char *format, ...) {
    char sentence[600];
    va_list arguments;
    if (in->failed) return false;
    in->failed = true;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    return sinkproof_fail(in->error, "%s: %s", in->name, sentence);
}

uint64_t cursor_little_endian(const uint8_t *bytes, size_t n) {
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++) value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

const uint8_t *cursor_take_bytes(file_cursor *in, uint64_t n, const char *what) {
    size_t left = (size_t)(in->end - in->at);
    if (!in->failed && n > left)
        cursor_fail(in,
                    "expected %s of %s at byte %zu, found %s left: "
                    "the file is cut short, or damaged there",
                    what, sinkproof_counted(n, "byte").text, (size_t)(in->at - in->begin),
                    sinkproof_counted(left, "byte").text);
    if (in->failed) return NULL;
    const uint8_t *taken = in->at;
    in->at += n;
    return taken;
}

uint64_t cursor_number(file_cursor *in, size_t n, const char *what) {
    const uint8_t *bytes = cursor_take_bytes(in, n, what);
    return bytes == NULL ? 0 : cursor_little_endian(bytes, n);
}

const char *cursor_name(file_cursor *in, const char *what) {
    uint64_t length = cursor_number(in, 8, "a length");
    const uint8_t *text = cursor_take_bytes(in, length, what);
    if (text == NULL) return NULL;
    bool good = length > 0 && length < CURSOR_NAME;
    for (size_t i = 0; good && i < length; i++) good = text[i] > 32 && text[i] < 127;
    if (!good) {
        cursor_fail(in, "expected %s of 1 to %d printable characters at byte %zu", what,
                    CURSOR_NAME - 1, (size_t)(text - in->begin));
        return NULL;
    }
    char *name = memcpy(in->names, text, length);
    name[length] = '\0';
    in->names += length + 1;
    return name;
}
