// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Where the elements are that are outside, in words: marks whose pattern is known, and the words.
#include "audit/diagnose/diagnose.h"
#include "tests/shared/tap.h"

#include <string.h>

enum { MOST = 4096 };
// Marked: the elements whose indices are each between first and last, in steps.
typedef struct marked {
    sinkproof_trace_point point;
    size_t rank, shape[3], first[3], last[3], step[3];
    const char *words;
} marked;

static bool is_marked(const marked *m, const size_t *index) {
    bool inside = true;
    for (size_t d = 0; d < m->rank; d++)
        inside = inside && index[d] >= m->first[d] && index[d] <= m->last[d] &&
                 (index[d] - m->first[d]) % m->step[d] == 0;
    return inside;
}

static size_t mark(const marked *m, uint8_t *marks) {
    size_t elements = 1;
    for (size_t d = 0; d < m->rank; d++) elements *= m->shape[d];
    for (size_t i = 0; i < elements; i++) {
        size_t index[3] = {0}, left = i;
        for (size_t d = m->rank; d-- > 0; left /= m->shape[d]) index[d] = left % m->shape[d];
        marks[i] = is_marked(m, index);
    }
    return elements;
}

static void hold(const marked *m, const uint8_t *marks) {
    sinkproof_point_report r = {.point = m->point, .rank = m->rank};
    char text[DIAGNOSE_PATTERN_TEXT];
    memcpy(r.shape, m->shape, sizeof m->shape);
    bool said = pattern_describe(&r, marks, text, sizeof text);
    ok(said && strcmp(text, m->words) == 0, "%s", m->words);
    if (strcmp(text, m->words) != 0) note("%s", text);
}

#define AT(id) TRACE_##id
static const marked boxes[] = {
    {AT(A11),
     3,
     {12, 4, 8},
     {9, 0, 0},
     {11, 3, 7},
     {1, 1, 1},
     "96 of 384 elements: positions from 9 on, every head, every coordinate, all of these"},
    {AT(A11),
     3,
     {12, 4, 8},
     {2, 3, 1},
     {5, 3, 7},
     {1, 1, 2},
     "16 of 384 elements: positions 2-5, head 3, odd coordinates, all of these"},
    {AT(A4_Q),
     3,
     {12, 4, 8},
     {0, 0, 0},
     {11, 2, 7},
     {1, 2, 1},
     "192 of 384 elements: every position, even heads, every coordinate, all of these"},
    {AT(M8),
     3,
     {12, 2, 16},
     {1, 1, 2},
     {11, 1, 10},
     {5, 1, 4},
     "9 of 384 elements: positions 1 to 11 in steps of 5, slot 1, coordinates 2 to 10 in steps of "
     "4, all of these"},
    {AT(F2),
     2,
     {3, 50},
     {0, 7, 0},
     {2, 7, 0},
     {1, 1, 1},
     "3 of 150 elements: every position, logit 7, all of these"},
    {AT(M2),
     2,
     {3, 8},
     {0, 0, 0},
     {2, 7, 0},
     {1, 1, 1},
     "24 of 24 elements: every position, every expert"},
    {AT(A6),
     3,
     {4, 12, 12},
     {1, 11, 0},
     {1, 11, 2},
     {1, 1, 1},
     "3 of 576 elements: head 1, position 11, keys 0-2, all of these; 3 of keys 9 to 11 before "
     "their query"},
    {AT(A9),
     3,
     {4, 12, 13},
     {0, 8, 12},
     {3, 11, 12},
     {1, 1, 1},
     "16 of 624 elements: every head, positions from 8 on, key 12, all of these; 16 of the sink"},
    {AT(A10),
     3,
     {4, 12, 12},
     {0, 3, 5},
     {3, 3, 5},
     {1, 1, 1},
     "4 of 576 elements: every head, position 3, key 5, all of these; 4 of keys after their query"},
    {AT(A6),
     3,
     {2, 12, 12},
     {1, 11, 10},
     {1, 11, 11},
     {1, 1, 1},
     "2 of 288 elements: head 1, position 11, keys from 10 on, all of these; 2 of keys 0 to 1 "
     "before their query"},
    {AT(A6),
     3,
     {2, 12, 12},
     {1, 3, 4},
     {1, 3, 4},
     {1, 1, 1},
     "1 of 288 elements: head 1, position 3, key 4, all of these; 1 of keys after their query"},
    {AT(M6),
     3,
     {4, 1, 8},
     {0, 0, 0},
     {3, 0, 4},
     {1, 1, 2},
     "12 of 32 elements: every position, slot 0, coordinates 0 to 4 in steps of 2, all of these"},
};

int main(void) {
    static uint8_t marks[MOST];
    for (size_t i = 0; i < sizeof boxes / sizeof boxes[0]; i++) {
        mark(&boxes[i], marks);
        hold(&boxes[i], marks);
    }
    // A window one key too wide: one key of each query, all as far behind it.
    marked window = {AT(A9),
                     3,
                     {2, 12, 13},
                     {0},
                     {0},
                     {0},
                     "8 of 312 elements: every head, positions from 8 on, keys 0-3; 8 of keys 8 "
                     "before their query"};
    memset(marks, 0, sizeof marks);
    for (size_t h = 0; h < 2; h++)
        for (size_t i = 8; i < 12; i++) marks[(h * 12 + i) * 13 + i - 8] = 1;
    hold(&window, marks);
    // No box, and no step: counted, not guessed.
    marked some = {AT(A13),
                   2,
                   {6, 8},
                   {0},
                   {0},
                   {0},
                   "3 of 48 elements: 3 of 6 positions, the first 0, the last 4, coordinates 1-3"};
    memset(marks, 0, sizeof marks);
    marks[1] = marks[8 + 2] = marks[4 * 8 + 3] = 1;
    hold(&some, marks);
    marked uneven = {
        AT(A13),
        2,
        {6, 8},
        {0},
        {0},
        {0},
        "3 of 48 elements: position 2, 3 of 8 coordinates, the first 0, the last 4, all of these"};
    memset(marks, 0, sizeof marks);
    marks[2 * 8] = marks[2 * 8 + 3] = marks[2 * 8 + 4] = 1;
    hold(&uneven, marks);
    return tap_done();
}
