// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What `sinkproof verify` checks: the inventory of statements, and the evidence of each: exact
// instances, enclosures, the error of ref/ against its bound, and the record of formal proofs.
#ifndef SINKPROOF_VERIFY_H
#define SINKPROOF_VERIFY_H

#include "proofs/exact/exact.h"
#include "proofs/truth/identities.h"

// One statement of the book. needs: what discharges it, as letters: C formal proof, Q exact,
// B enclosure, D definition, E experiment; as the inventory of equations has them.
typedef struct verify_statement {
    const char *id, *needs, *title;
} verify_statement;

const verify_statement *sinkproof_verify_statement_at(size_t k); // NULL after the last

// What ref/ errs by, in binary64 (the policy real-f64), against the enclosed real value.
typedef struct verify_measure {
    const char *bound;    // the id of the bound; NULL: nothing is measured for this statement
    size_t values, wrong; // how many were compared; how many were not within their bound
    double worst;         // the largest error / bound
} verify_measure;

verify_measure sinkproof_verify_measure(const char *id, uint64_t seed);

// The stages of ref/, in groups that share a run (verify_ref.c, verify_bounds.c).
void sinkproof_verify_linear(verify_measure *result, uint64_t seed);
void sinkproof_verify_scores(verify_measure *result, uint64_t seed);
void sinkproof_verify_softmax(verify_measure *result, uint64_t seed);
void sinkproof_verify_mass(verify_measure *result, uint64_t seed);
void sinkproof_verify_values(verify_measure *result, uint64_t seed);
void sinkproof_verify_rmsnorm(verify_measure *result, uint64_t seed);
void sinkproof_verify_yarn(verify_measure *result, uint64_t seed);
void sinkproof_verify_rotate(verify_measure *result, uint64_t seed);
void sinkproof_verify_router(verify_measure *result, uint64_t seed);
void sinkproof_verify_swiglu(verify_measure *result, uint64_t seed);
void sinkproof_verify_mixture(verify_measure *result, uint64_t seed);
void sinkproof_verify_dot(verify_measure *result, uint64_t seed);
void sinkproof_verify_dot_likely(verify_measure *result, uint64_t seed);
void sinkproof_verify_exp(verify_measure *result, uint64_t seed);
void sinkproof_verify_gelu_fit(verify_measure *result, uint64_t seed);
void sinkproof_verify_one_minus(verify_measure *result, uint64_t seed);

// Adds one comparison: an error that is no number, or not within a bound, is wrong.
void sinkproof_verify_put(verify_measure *result, double error, double bound);

// The formal proof of a statement: the file and hash of its region, or NULL. Presence is recorded
// when the program is built.
typedef struct verify_formal {
    const char *id, *file, *hash;
    bool complete; // the file is without Admitted and axioms of its own
} verify_formal;

extern const verify_formal sinkproof_verify_formal_record[]; // ended by an entry without an id
const verify_formal *sinkproof_verify_formal(const char *id);
bool sinkproof_verify_formal_recorded(void); // false: built without the record

// All evidence of one statement.
typedef struct verify_result {
    const verify_statement *statement;
    sinkproof_exact_outcome exact; // over all its forms
    size_t exact_forms, wrong_forms, wrong_refuted;
    sinkproof_identity_outcome ball; // over all its identities
    size_t identities;
    sinkproof_grid_outcome grid; // cases > 0 for the statements that have it
    verify_measure measure;
    const verify_formal *formal;
    char missing[4]; // letters of `needs` without evidence here: of C, Q, B
    bool holds;
} verify_result;

typedef struct verify_options {
    slong bits;
    uint64_t seed;
    size_t instances;
} verify_options;

// For tests: a statement to check in place of those of the registry (NULL: the registry's).
typedef struct verify_plant {
    const sinkproof_exact_statement *exact; // replaces the forms of its id
    const sinkproof_identity *identity;     // replaces the identities of its id
} verify_plant;
verify_result sinkproof_verify(const verify_statement *statement, const verify_options *options,
                               const verify_plant *plant);

// The command itself; sinkproof_cmd_verify plants nothing.
int sinkproof_verify_command(int argc, char **argv, const verify_plant *plant);

#endif
