// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// GPT-2's alphabet: bytes as characters that a text file can hold. The 188 printable bytes of
// Latin-1 stand for themselves; the other 68, in order, are U+0100 to U+0143.
#include "audit/studies/text/parts.h"

static bool stands_for_itself(unsigned byte) {
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

// The byte of a character, or -1.
static int character_byte(unsigned character) {
    if (character < 0x100) return stands_for_itself(character) ? (int)character : -1;
    unsigned left = character - 0x100;
    for (unsigned byte = 0; byte < 0x100; byte++)
        if (!stands_for_itself(byte) && left-- == 0) return (int)byte;
    return -1;
}

bool alphabet_decode(const char *text, size_t length, uint8_t *out, size_t *n) {
    *n = 0;
    for (size_t at = 0; at < length;) {
        uint8_t first = (uint8_t)text[at];
        // Every character of the alphabet is one or two bytes of UTF-8.
        bool two = (first & 0xe0) == 0xc0 && at + 1 < length;
        if (first >= 0x80 && !two) return false;
        unsigned character = two ? (first & 0x1fu) << 6 | ((uint8_t)text[at + 1] & 0x3fu) : first;
        int byte = character_byte(character);
        if (byte < 0) return false;
        out[(*n)++] = (uint8_t)byte;
        at += two ? 2 : 1;
    }
    return true;
}
