// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/trace/trace_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { DIGITS = 16 };

bool sinkproof_is_fingerprint(const char *text) {
    return text != NULL && strlen(text) == DIGITS &&
           strspn(text, "0123456789abcdefABCDEF") == DIGITS;
}

// *other: the fingerprint in the metadata if it differs from MODEL's, which is written to `own`;
// else NULL.
static bool find_other_fingerprint(const sinkproof_safetensors *file, const sinkproof_model *model,
                                   const char **other, char own[DIGITS + 1],
                                   sinkproof_error *error) {
    uint64_t known, before;
    char own_before[DIGITS + 1];
    *other = NULL;
    const char *said = sinkproof_safetensors_metadata(file, "model");
    if (!sinkproof_is_fingerprint(said)) return true;
    if (!sinkproof_model_fingerprint(model, &known, error)) return false;
    snprintf(own, DIGITS + 1, "%016" PRIx64, known);
    if (strcasecmp(said, own) == 0) return true;
    if (!sinkproof_model_fingerprint_before(model, &before, error)) return false;
    snprintf(own_before, sizeof own_before, "%016" PRIx64, before);
    if (strcasecmp(said, own_before) != 0) *other = said;
    return true;
}

bool sinkproof_file_matches_model(const char *name, const sinkproof_safetensors *file,
                                  const sinkproof_model *model, sinkproof_error *error) {
    const char *other;
    char own[DIGITS + 1];
    if (!find_other_fingerprint(file, model, &other, own, error)) return false;
    if (other == NULL) return true;
    return sinkproof_fail(
        error,
        "%.300s is a trace of another model: its metadata name the fingerprint %s, MODEL %.300s "
        "has %s: give the model that the engine ran, or say that any will do (--any-model; "
        "any_model in C and Python)",
        name, other, sinkproof_model_spec(model), own);
}

bool sinkproof_trace_model_note(const sinkproof_trace *trace, const sinkproof_model *model,
                                sinkproof_note *note, sinkproof_error *error) {
    const char *other;
    char own[DIGITS + 1];
    note->text[0] = '\0';
    if (!find_other_fingerprint(sinkproof_trace_file(trace), model, &other, own, error))
        return false;
    if (other != NULL)
        snprintf(note->text, sizeof note->text,
                 "Another model: the trace's metadata name fingerprint %s, MODEL has %s.", other,
                 own);
    return true;
}

// Whether two policies are equal except for their names.
static bool same_policy(const sinkproof_policy *a, const sinkproof_policy *b) {
    bool same = a->inside == b->inside && a->exp_growth == b->exp_growth &&
                a->weights == b->weights && a->ftz == b->ftz &&
                a->yarn_truncate == b->yarn_truncate;
    for (int p = 0; p < AT_POINTS; p++)
        same = same && sinkproof_rounding_same(a->at[p], b->at[p]) &&
               a->unrounded[p] == b->unrounded[p];
    for (int f = 0; f < SINKPROOF_FUNCTION_COUNT; f++) same = same && a->ulp[f] == b->ulp[f];
    for (int f = 0; f < SINKPROOF_FORMED_COUNT; f++) same = same && a->forms[f] == b->forms[f];
    return same;
}

sinkproof_note sinkproof_declared_note(const char *declared, const sinkproof_policy *judged) {
    sinkproof_note note = {""};
    sinkproof_policy said;
    if (declared == NULL || declared[0] == '\0' || declared[0] == '@') return note;
    if (sinkproof_policy_parse(declared, &said, NULL) && same_policy(&said, judged)) return note;
    snprintf(note.text, sizeof note.text, "The metadata declare %.300s; it is judged under %.300s.",
             declared, judged->name);
    sinkproof_make_printable(note.text);
    return note;
}
