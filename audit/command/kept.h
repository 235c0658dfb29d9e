// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Results kept in a directory (--out): run.json says what the whole is, and each unit has a file of
// its own, which is written under another name and renamed. A unit is not worked on again if its
// result was made from the same input (path, size and time of modification), by the same version,
// of the same model, with the same options.
#ifndef SINKPROOF_COMMAND_KEPT_H
#define SINKPROOF_COMMAND_KEPT_H

#include "audit/command/batch.h"
#include "model/model.h"

// What results depend on beside their inputs: command, version, MODEL as it was given and its
// fingerprint, policy (of a file also its text), and the command's options, which it takes
// ownership of.
json_t *kept_how(const char *command, const char *spec, const sinkproof_model *model,
                 const char *policy, json_t *options, sinkproof_error *error);

// The size and the time of modification of a file; null where there is none.
json_t *kept_stamp(const char *path);
json_t *kept_adapter(const char *directory); // the same of its two files, and its name

// What identifies a unit: its name, what it was said to be, its layers, and its file.
json_t *kept_unit(const batch_unit *unit);

// The whole: {"kept": 1, "how": {...}, "of": "trace", "title": ..., "units": [...]}. In a unit here
// is its name and its layers, not its file.
json_t *kept_run(const batch *b);

// Makes the directory, unless it is there, and writes run.json.
bool kept_begin(const char *directory, const json_t *run, sinkproof_error *error);

// The result of a unit that is kept and may be taken, or NULL.
json_t *kept_find(const batch *b, const json_t *unit);
bool kept_write(const batch *b, const json_t *unit, json_t *result, sinkproof_error *error);

// Parse run.json and a result, as strangers may have written them. NULL is an error.
json_t *kept_parse_run(const uint8_t *bytes, size_t length, const char *name,
                       sinkproof_error *error);
json_t *kept_parse(const uint8_t *bytes, size_t length, const char *name, sinkproof_error *error);

// Whether both are of one input and the same layers.
bool kept_same_unit(const json_t *a, const json_t *b);

#endif
