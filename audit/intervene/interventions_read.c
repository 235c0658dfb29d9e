// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The words that say what is changed, option by option.
#include "audit/intervene/interventions.h"

#include <stdint.h>
#include <string.h>

enum { LARGEST = INT32_MAX };
static const char auto_word[] = "auto";

// Parses the digits at *text as a number up to `most`, and moves *text behind them.
static bool take_number(const char **text, uint64_t most, uint64_t *number) {
    const char *at = *text;
    uint64_t n = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (n > (most - digit) / 10) return false;
        n = 10 * n + digit;
    }
    if (at == *text) return false;
    *text = at;
    *number = n;
    return true;
}

static bool has_another(const sinkproof_interventions *c, size_t position) {
    for (size_t m = 0; m < c->n_moves; m++)
        if (c->move_n[m].from == position || (!c->move_n[m].swap && c->move_n[m].to == position))
            return true;
    return false;
}

static bool read_move(bool swap, const char *text, sinkproof_interventions *c,
                      sinkproof_error *error) {
    const char *option = swap ? "swap-epe" : "move-epe", *at = text;
    uint64_t from, to;
    bool good = take_number(&at, LARGEST, &from) && *at++ == ':' && take_number(&at, LARGEST, &to);
    if (!good || *at != '\0' || from == 0 || to == 0 || from == to)
        return sinkproof_fail(error,
                              "--%s: expected A:B, two different positions from 1 to %d, found "
                              "\"%.60s\"",
                              option, LARGEST, text);
    if (c->n_moves == INTERVENTION_MOVES)
        return sinkproof_fail(error,
                              "--%s: expected at most %d exchanges of EPE, found \"%.60s\" too",
                              option, INTERVENTION_MOVES, text);
    size_t a = (size_t)from - 1, b = (size_t)to - 1;
    if (has_another(c, a) || (!swap && has_another(c, b)))
        return sinkproof_fail(error,
                              "--%s: expected a position that has its own EPE yet, found %zu in "
                              "\"%.60s\"",
                              option, (has_another(c, a) ? a : b) + 1, text);
    c->move_n[c->n_moves].swap = swap;
    c->move_n[c->n_moves].from = a;
    c->move_n[c->n_moves].to = b;
    c->n_moves++;
    return true;
}

static bool is_listed(const sinkproof_interventions *c, size_t row) {
    for (size_t i = 0; i < c->n_rows; i++)
        if (c->row_n[i] == row) return true;
    return false;
}

static bool read_list(const char *text, sinkproof_interventions *c, sinkproof_error *error) {
    const char *at = text;
    for (;;) {
        uint64_t row;
        if (!take_number(&at, LARGEST, &row) || (*at != ',' && *at != '\0'))
            return sinkproof_fail(error,
                                  "--zero-wk-rows: expected auto, or coordinates from 0 to %d "
                                  "separated by commas, found \"%.60s\"",
                                  LARGEST, text);
        if (c->n_rows == INTERVENTION_ROWS)
            return sinkproof_fail(
                error, "--zero-wk-rows: expected at most %d coordinates, found \"%.60s\"",
                INTERVENTION_ROWS, text);
        if (is_listed(c, (size_t)row))
            return sinkproof_fail(error,
                                  "--zero-wk-rows: expected each coordinate once, found %zu twice",
                                  (size_t)row);
        c->row_n[c->n_rows++] = (size_t)row;
        if (*at++ == '\0') return true;
    }
}

static bool read_rows(const char *text, sinkproof_interventions *c, sinkproof_error *error) {
    if (c->massive_rows || c->n_rows > 0)
        return sinkproof_fail(error, "expected --zero-wk-rows once, found \"%.60s\" too", text);
    if (strcmp(text, auto_word) != 0) return read_list(text, c, error);
    c->massive_rows = true;
    return true;
}

static bool read_random(const char *text, sinkproof_interventions *c, sinkproof_error *error) {
    const char *at = text;
    uint64_t n = 0, seed = 1;
    bool counted = strncmp(text, auto_word, sizeof auto_word - 1) != 0;
    if (c->n_random > 0)
        return sinkproof_fail(error, "expected --zero-wk-random once, found \"%.60s\" too", text);
    bool good = !counted || take_number(&at, LARGEST, &n);
    if (!counted) at += sizeof auto_word - 1;
    if (good && *at == ',') good = (at++, take_number(&at, UINT64_MAX, &seed));
    if (!good || *at != '\0' || (counted && n == 0))
        return sinkproof_fail(error,
                              "--zero-wk-random: expected N or N,SEED, N being auto or a number "
                              "from 1 to %d, found \"%.60s\"",
                              LARGEST, text);
    c->n_random = counted ? (size_t)n : SINKPROOF_AS_MASSIVE;
    c->seed = seed;
    return true;
}

// ---- the options

typedef enum kind { ZERO_BQ, SWAP, MOVE, LATE, ZERO_BOS, ROWS, RANDOM, KINDS } kind;

static const struct {
    const char *name, *takes; // NULL: no argument
} options[KINDS] = {
    [ZERO_BQ] = {"zero-bq", NULL},      [SWAP] = {"swap-epe", "A:B"},
    [MOVE] = {"move-epe", "A:B"},       [LATE] = {"late-epe", NULL},
    [ZERO_BOS] = {"zero-bos", NULL},    [ROWS] = {"zero-wk-rows", "auto or coordinates"},
    [RANDOM] = {"zero-wk-random", "N"},
};

static bool read_option(kind what, const char *argument, sinkproof_interventions *c,
                        sinkproof_error *error) {
    switch (what) {
    case ZERO_BQ:
        c->zero_bq = true;
        return true;
    case LATE:
        c->late = true;
        return true;
    case ZERO_BOS:
        c->zero_bos = true;
        return true;
    case ROWS:
        return read_rows(argument, c, error);
    case RANDOM:
        return read_random(argument, c, error);
    default:
        return read_move(what == SWAP, argument, c, error);
    }
}

bool sinkproof_intervention_read(const char *option, const char *argument,
                                 sinkproof_interventions *changes, sinkproof_error *error) {
    sinkproof_interventions kept = *changes;
    size_t o = 0;
    while (o < KINDS && strcmp(options[o].name, option) != 0) o++;
    if (o == KINDS) return sinkproof_fail(error, "expected an intervention, found --%.60s", option);
    const char *takes = options[o].takes;
    if ((argument != NULL) != (takes != NULL))
        return sinkproof_fail(error, "--%s: expected %s, found %.60s", option,
                              takes != NULL ? takes : "no argument",
                              argument != NULL ? argument : "none");
    bool good = read_option((kind)o, argument, changes, error);
    if (!good) *changes = kept;
    return good;
}
