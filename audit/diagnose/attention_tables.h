// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// How often each query read each key, found from what it computed: the output of a query is linear
// in these counts once it is multiplied by the sum that divides it, so least squares find them. A
// rule of a cache is then compared with the counts, whole numbers with whole numbers.
#ifndef SINKPROOF_ATTENTION_TABLES_H
#define SINKPROOF_ATTENTION_TABLES_H

#include "audit/diagnose/attention_screen.h"

enum { TABLE_ROWS = 40, TABLE_KEYS = 320 };
// In the place of a count or of a token.
enum { COUNT_OPEN = -1, TOKEN_OPEN = -1, TOKEN_NONE = -2 };

typedef struct key_row {
    size_t row;
    bool fails;
} key_row;

// Rows that fail come first.
typedef struct key_table {
    const attention_view *view;
    size_t n, n_rows, n_failing; // n: keys
    bool of_tokens;              // at A6: each row has the token that is read for each key
    key_row rows[TABLE_ROWS];
    // by position: where a row fails and the one before it does not, or the opposite
    uint8_t turns[TABLE_KEYS];
    // [rows, n + 1]: the counts of the keys and of keys of zeros; or the tokens
    short *of_rk;
} key_table;

// *there: the counts of the rows that fail are known. Returns false if memory runs out.
bool key_table_open(const attention_view *view, key_table *table, bool *there);
void key_table_close(key_table *table);
// Whether what is meant reads the keys as the table has it.
bool key_table_holds(const key_table *table, const sinkproof_attending *how);

// Whether all queries read the same keys under both.
bool key_table_same(const key_table *table, const sinkproof_attending *a,
                    const sinkproof_attending *b);

// ---- attention_access.c: rules that the counts themselves show. Each is to be tried; none need
// hold.
enum { ACCESS_RULES = 4 };
// Documents and stretches; returns how many.
size_t access_rules(const key_table *table, sinkproof_attending rules[ACCESS_RULES]);
// Sets of keys.
size_t access_sets(const key_table *table, sinkproof_attending rules[ACCESS_RULES]);

#endif
