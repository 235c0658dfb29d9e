// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/trace/trace_calls.h"

#include "base/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Reads a number from 1 to `most`; 0: there is none.
static size_t read_count(const char **at, size_t most) {
    size_t count = 0;
    if (**at == '0') return 0;
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        count = 10 * count + (size_t)(**at - '0');
        if (count > most) return 0;
    }
    return count;
}

// Reads the list of a sequence: its lengths add up to its rows.
static bool read_list(const char **at, size_t rows, uint8_t *begins) {
    size_t row = 0;
    for (;; (*at)++) {
        size_t times = 1, length = read_count(at, rows - row);
        if (**at == 'x') {
            (*at)++;
            times = length;
            length = read_count(at, rows - row);
        }
        if (times == 0 || length == 0 || times > (rows - row) / length) return false;
        for (size_t i = 0; i < times; i++, row += length) begins[row] = 1;
        if (**at != ',') break;
    }
    return row == rows;
}

bool calls_read(const char *name, const char *said, trace_sequences *s, sinkproof_error *error) {
    const char *at = said;
    if (said == NULL) return true;
    s->calls_n = calloc(s->begins[s->count] + 1, 1);
    if (s->calls_n == NULL) return sinkproof_fail(error, "%.300s: no memory for its calls", name);
    for (size_t i = 0; i < s->count; i++) {
        size_t row = s->begins[i], rows = s->begins[i + 1] - row;
        bool good = read_list(&at, rows, s->calls_n + row);
        bool ends = *at == (i + 1 < s->count ? ';' : '\0');
        if (!good || !ends)
            return sinkproof_fail(error,
                                  "%.300s: metadata calls: expected lengths of calls that add up "
                                  "to %s of sequence %zu, of %zu, as in 16,16,12 or 36,8x1; found "
                                  "%.100s",
                                  name, sinkproof_counted(rows, "token").text, i, s->count, said);
        at++;
    }
    return true;
}

bool calls_write(const uint8_t *begins_n, size_t row, size_t rows, char *text, size_t size) {
    size_t used = 0;
    for (size_t i = 0; i < rows;) {
        size_t length = 1, times = 1, next;
        while (i + length < rows && !begins_n[row + i + length]) length++;
        for (next = i + length; next + length <= rows; next += length, times++) {
            bool same = next + length == rows || begins_n[row + next + length];
            for (size_t k = 1; k < length; k++) same = same && !begins_n[row + next + k];
            if (!same) break;
        }
        const char *comma = i > 0 ? "," : "";
        int wrote = times > 1
                        ? snprintf(text + used, size - used, "%s%zux%zu", comma, times, length)
                        : snprintf(text + used, size - used, "%s%zu", comma, length);
        if (wrote < 0 || (size_t)wrote >= size - used) return false;
        used += (size_t)wrote;
        i = next;
    }
    return true;
}
