// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The numbers of a configuration as a table: the code that reads, writes, checks, prints and
// fingerprints a configuration uses it. A new number is a member, a row here, and a key in each
// container that has one.
#ifndef SINKPROOF_FIELDS_H
#define SINKPROOF_FIELDS_H

#include "model/config.h"

typedef enum field_type {
    FIELD_SIZE, // 1 to 2^30
    FIELD_BOOL,
    FIELD_REAL, // above `above`, finite unless `endless`
} field_type;

// Whether the model's fingerprint includes it.
typedef enum field_mark {
    MARK_ALWAYS,
    MARK_OTHER, // only if it is not the released value: for numbers that were added later
    MARK_NEVER, // never: it limits a run and changes no result
} field_mark;

typedef struct sinkproof_field {
    const char *name;  // of the member
    const char *shown; // in info's JSON
    const char *said;  // in errors
    field_type type;
    size_t offset;
    double released; // the value in gpt-oss-20b
    bool required;   // every container must state it
    double above;
    field_mark mark;
    const char *line; // of info, that tells it as "SAID VALUE"; or NULL: info tells it in words
    bool endless;     // infinity is allowed: there is no limit
    int of;           // which models have it
} sinkproof_field;

// Whether a model has the number: its kinds need it, it is finite, and a number that came later is
// not the released one.
bool sinkproof_field_exists(const sinkproof_field *field, const sinkproof_config *config);

// The i-th number, NULL if i is too large: sizes first, then the truncation, then the real numbers,
// in the order of the fingerprint.
const sinkproof_field *sinkproof_field_at(size_t i);
// The number of a member: sinkproof_field_find(offsetof(sinkproof_config, rms_eps)).
const sinkproof_field *sinkproof_field_find(size_t offset);

// Its value, of any type: sizes are below 2^53.
double sinkproof_field_value(const sinkproof_field *field, const sinkproof_config *config);
void field_set(const sinkproof_field *field, sinkproof_config *config, double value);

// The defaults of a container: the released numbers, zeros for required ones, and alternating
// layers.
void fields_default(sinkproof_config *config);
// Every number of gpt-oss-20b.
void fields_set_released(sinkproof_config *config);
bool fields_equal(const sinkproof_config *a, const sinkproof_config *b);
// Checks that each value is valid for its type; `name` is used in the error.
bool fields_check(const sinkproof_config *config, const char *name, field_type type,
                  sinkproof_error *error);

#endif
