// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Which keys a query sees in a cache that is filled pass by pass, and which tokens its slots hold.
#include "audit/judge/judge_passes.h"

#include <stdint.h>

size_t sinkproof_row_pass_begin(const sinkproof_row_passes *p, size_t row) {
    if (p->first == 0 || row >= p->single) return row;
    return row < p->first ? 0 : row - (row - p->first) % p->rows;
}

size_t row_pass_end(const sinkproof_row_passes *p, size_t row) {
    if (p->first == 0 || row >= p->single) return row + 1;
    size_t end = row < p->first ? p->first : sinkproof_row_pass_begin(p, row) + p->rows;
    return end < p->single ? end : p->single;
}

// The query's pass: its rows [begin, end).
typedef struct pass_rows {
    size_t begin, end;
} pass_rows;

static pass_rows rows_of(const sinkproof_pass_read *p, const sinkproof_pass_place *at) {
    pass_rows r = {sinkproof_row_pass_begin(&p->of, at->row), row_pass_end(&p->of, at->row)};
    if (r.end > at->n) r.end = at->n;
    return r;
}

// Whether key j is not before the window of a row.
static bool in_window(const sinkproof_pass_place *at, size_t row, size_t j) {
    return at->window == 0 || j + at->window > row;
}

static bool row_sees(const sinkproof_pass_place *at, size_t row, size_t j) {
    return j <= row && in_window(at, row, j);
}

bool pass_sees(const sinkproof_pass_read *p, const sinkproof_pass_place *at, size_t j) {
    pass_rows r = rows_of(p, at);
    bool cached = j<r.begin, later = j> at->row;
    if (j >= r.end) return false;
    switch (cached ? p->cached : p->own) {
    case SINKPROOF_SIGHT_NONE:
        return false;
    case SINKPROOF_SIGHT_ALL:
        return true;
    case SINKPROOF_SIGHT_EARLIER:
        return !later;
    case SINKPROOF_SIGHT_FIRST:
        return !later && in_window(at, r.begin, j);
    case SINKPROOF_SIGHT_LAST:
        return !later && in_window(at, r.end - 1, j);
    case SINKPROOF_SIGHT_LOCAL:
        return row_sees(at, at->row - r.begin, j);
    case SINKPROOF_SIGHT_BUT_ONE:
        return r.begin > 0 && row_sees(at, at->row, j) &&
               j < sinkproof_row_pass_begin(&p->of, r.begin - 1);
    case SINKPROOF_SIGHT_OWN:
        return j == at->row;
    case SINKPROOF_SIGHT_BUT_OWN:
        return j != at->row && row_sees(at, at->row, j);
    case SINKPROOF_SIGHT_LATER:
        return in_window(at, at->row, j);
    case SINKPROOF_SIGHT_OF_ROW:
        return row_sees(at, p->number, j);
    case SINKPROOF_SIGHT_BEFORE:
        return at->row >= p->number && row_sees(at, at->row - p->number, j);
    case SINKPROOF_SIGHT_LOCAL_WINDOW:
        return !later && in_window(at, at->row - r.begin, j);
    case SINKPROOF_SIGHT_DEFINED:
        break;
    }
    return row_sees(at, at->row, j);
}

// The last token up to `last` in a ring of `size` slots, at the slot of token j.
static size_t ring_token(size_t size, size_t last, size_t j) {
    return j + (last - j) / size * size;
}

// The same, where of the first pass only the first tokens are in it.
static size_t ring_of_first(const sinkproof_pass_read *p, size_t last, size_t j) {
    size_t token = ring_token(p->number, last, j);
    return token < p->of.first ? token % p->number : token;
}

// The token of the newest pass that reaches so far, up to row `last`.
static size_t pass_token(const sinkproof_pass_read *p, size_t last, size_t j) {
    for (size_t end = last + 1; end > 0;) {
        size_t begin = sinkproof_row_pass_begin(&p->of, end - 1);
        if (begin + j < end) return begin + j;
        end = begin;
    }
    return SIZE_MAX;
}

size_t pass_slot(const sinkproof_pass_read *p, const sinkproof_pass_place *at, size_t j) {
    pass_rows r = rows_of(p, at);
    size_t n = p->number, first = p->of.first, last = r.end - 1;
    size_t begin = sinkproof_row_pass_begin(&p->of, j), end = row_pass_end(&p->of, j);
    if ((p->own_direct && j >= r.begin) || (p->first_direct && r.begin == 0)) return j;
    switch (p->slots) {
    case SINKPROOF_SLOTS_RING:
        return ring_token(n, last, j);
    case SINKPROOF_SLOTS_RING_FIRST:
        return ring_of_first(p, last, j);
    case SINKPROOF_SLOTS_ONE:
        if (j < n) return j;
        return j == n ? last : SIZE_MAX;
    case SINKPROOF_SLOTS_EXTRA:
        return j == n && r.begin > 0 ? last : j;
    case SINKPROOF_SLOTS_LATER:
        if (j < first) return j;
        return j - first >= n ? j - n : SIZE_MAX;
    case SINKPROOF_SLOTS_EARLIER:
        if (r.begin == 0 || j + n < first) return j;
        return j + n <= last ? j + n : SIZE_MAX;
    case SINKPROOF_SLOTS_ANEW:
        return pass_token(p, last, j);
    case SINKPROOF_SLOTS_BUT_LAST:
        return j + 1 == end ? SIZE_MAX : j;
    case SINKPROOF_SLOTS_BUT_FIRST:
        return j == begin ? SIZE_MAX : j;
    case SINKPROOF_SLOTS_FIRST_PASS:
        return j >= first ? SIZE_MAX : j;
    case SINKPROOF_SLOTS_LAG:
        return end == r.begin ? SIZE_MAX : j;
    case SINKPROOF_SLOTS_WHOLE_PAGES:
        return j >= begin + (end - begin) / n * n ? SIZE_MAX : j;
    case SINKPROOF_SLOTS_OWN:
        break;
    }
    return j;
}
