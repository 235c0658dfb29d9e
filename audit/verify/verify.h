// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The checks of `sinkproof verify`: the statements of the book and the evidence for each: exact
// instances, enclosures, the error of ref/ against its bound, experiments, formal proofs.
#ifndef SINKPROOF_VERIFY_H
#define SINKPROOF_VERIFY_H

#include "proofs/bounds/honest.h"
#include "proofs/bounds/worst.h"
#include "proofs/exact/exact.h"
#include "proofs/truth/identities.h"

// The state of a formal proof, as tests/gates/inventory.py found it when the program was built.
typedef enum verify_proof_state {
    VERIFY_PROOF_NONE,     // proofs/formal has no region of it
    VERIFY_PROOF_DEFINED,  // its region has definitions but no theorem
    VERIFY_PROOF_OUTDATED, // never checked in its present form: see `why`
    VERIFY_PROOF_RECORDED, // checked elsewhere: the committed record has the present hashes
    VERIFY_PROOF_PROVED,   // checked on this machine (make formal), under the present hashes
} verify_proof_state;

typedef struct verify_proof {
    verify_proof_state state;
    const char *file, *hash;       // file in proofs/formal; hash of the theorems' statements
    const char *theorems, *axioms; // theorems that the prover accepted, and their axioms
    const char *why;               // since when it is outdated
} verify_proof;

// One statement of the book. letters: the kinds of evidence that it asks for: C formal proof, Q
// exact, B enclosure or bound, D definition, E experiment. The table is generated from the headings
// of doc/*.md.
typedef struct verify_statement {
    const char *id, *letters, *title;
    const char *chapter, *section, *formula; // formula: TeX lines
    const char *defined;                     // the files of ref/ and proofs/ that compute it
    verify_proof proof;
} verify_statement;

extern const verify_statement sinkproof_verify_inventory[]; // ends with an entry without an id
size_t sinkproof_verify_count(void);
const verify_statement *sinkproof_verify_statement_at(size_t k); // NULL: k is too large

// A measurement: errors against their bound.
typedef struct verify_measure {
    const char *bound;      // the id of the bound; NULL: nothing is measured for this statement
    size_t values, wrong;   // compared values, and those that exceed their bound
    double worst;           // the largest error / bound
    size_t exact, enclosed; // errors against an exact truth, and against an enclosed one
    double floor;           // share of the bound that operands built for it must reach; 0: none
    // the share that they reach; of several kinds, the one that is least above its floor
    double reached;
} verify_measure;

// Whether operands built for a bound reach its floor. NaN does not.
bool sinkproof_verify_reaches(const verify_measure *measure);

// The measurements of a statement, and the letter that each supports: B, the error of an
// implementation against a bound; E, an experiment. An id may have several; their results are added
// up. floor: the smallest acceptable value of this one's largest error / bound.
typedef struct verify_check {
    const char *id;
    char letter;
    const char *bound;
    void (*run)(verify_measure *result, uint64_t seed);
    double floor;
} verify_check;

const verify_check *verify_check_at(size_t k); // NULL: k is too large
verify_measure verify_measure_check(const char *id, char letter, uint64_t seed);

// The stages of ref/, in groups that share a run (verify_ref.c); single operations
// (verify_bounds.c), the forms of kernels (verify_forms.c), the whole model and the statistics
// (verify_whole.c), its size and training (verify_size.c).
void verify_linear(verify_measure *result, uint64_t seed);
void verify_scores(verify_measure *result, uint64_t seed);
void verify_softmax(verify_measure *result, uint64_t seed);
void verify_mass(verify_measure *result, uint64_t seed);
void verify_values(verify_measure *result, uint64_t seed);
void verify_rmsnorm(verify_measure *result, uint64_t seed);
void verify_layernorm(verify_measure *result, uint64_t seed);
void verify_yarn(verify_measure *result, uint64_t seed);
void verify_llama3(verify_measure *result, uint64_t seed);
void verify_rotate(verify_measure *result, uint64_t seed);
void verify_router(verify_measure *result, uint64_t seed);
void verify_swiglu(verify_measure *result, uint64_t seed);
void verify_gelu(verify_measure *result, uint64_t seed);
void verify_mixture(verify_measure *result, uint64_t seed);
void verify_dot(verify_measure *result, uint64_t seed);
void verify_dot_likely(verify_measure *result, uint64_t seed);
void verify_exp(verify_measure *result, uint64_t seed);
void verify_gelu_fit(verify_measure *result, uint64_t seed);
void verify_one_minus(verify_measure *result, uint64_t seed);
void verify_dot_exact(verify_measure *result, uint64_t seed);
void verify_form_base2(verify_measure *result, uint64_t seed);
void verify_form_running_max(verify_measure *result, uint64_t seed);
void verify_form_lse(verify_measure *result, uint64_t seed);
void verify_form_router(verify_measure *result, uint64_t seed);
void verify_form_tanh(verify_measure *result, uint64_t seed);
void verify_sigmoid_exp(verify_measure *result, uint64_t seed);
void verify_norm_rounded(verify_measure *result, uint64_t seed);
void verify_unnormalised(verify_measure *result, uint64_t seed);
void verify_lse_rounded(verify_measure *result, uint64_t seed);
void verify_unrounded(verify_measure *result, uint64_t seed);
void verify_exp_growing(verify_measure *result, uint64_t seed);
void verify_quotient(verify_measure *result, uint64_t seed);
void verify_running_angle(verify_measure *result, uint64_t seed);
// Designs of attention by name (verify_variants.c), all designs together, and the edges between
// them.
void verify_plain(verify_measure *result, uint64_t seed);
void verify_sigmoid(verify_measure *result, uint64_t seed);
void verify_sigmoid_norm(verify_measure *result, uint64_t seed);
void verify_elu(verify_measure *result, uint64_t seed);
void verify_elu_norm(verify_measure *result, uint64_t seed);
void verify_elu_linear(verify_measure *result, uint64_t seed);
void verify_elu_linear_raw(verify_measure *result, uint64_t seed);
void verify_identity(verify_measure *result, uint64_t seed);
void verify_identity_max(verify_measure *result, uint64_t seed);
void verify_mlp(verify_measure *result, uint64_t seed);
void verify_mlp_max(verify_measure *result, uint64_t seed);
void verify_similarities(verify_measure *result, uint64_t seed);
void verify_edges(verify_measure *result, uint64_t seed);
// The embedded model with one token changed (verify_mixing.c).
void verify_perturbed(verify_measure *result, uint64_t seed);
void verify_sinks_learned(verify_measure *result, uint64_t seed); // verify_training.c
void verify_star_learned(verify_measure *result, uint64_t seed);
void verify_scaled_first(verify_measure *result, uint64_t seed);
void verify_ftz(verify_measure *result, uint64_t seed);
void verify_overflow(verify_measure *result, uint64_t seed);
void verify_operands(verify_measure *result, uint64_t seed);
void verify_q8(verify_measure *result, uint64_t seed);
void verify_q8_minima(verify_measure *result, uint64_t seed);
// The set of a sum of one row of weights times x, as the experts' first layer reads it.
sinkproof_honest operand_row_set(const sinkproof_policy *policy, const sinkproof_matrix *w,
                                 const double *x);
void verify_scaled(verify_measure *result, uint64_t seed);
void verify_accumulator(verify_measure *result, uint64_t seed);
void verify_tensor_core(verify_measure *result, uint64_t seed);
void verify_parts(verify_measure *result, uint64_t seed);
void verify_parts_mixed(verify_measure *result, uint64_t seed);     // verify_mixed.c
void verify_parts_merged(verify_measure *result, uint64_t seed);    // verify_merged.c
void verify_gradient_linear(verify_measure *result, uint64_t seed); // verify_gradients.c
void verify_gradient_rmsnorm(verify_measure *result, uint64_t seed);
void verify_gradient_rotation(verify_measure *result, uint64_t seed);
void verify_gradient_values(verify_measure *result, uint64_t seed);
void verify_gradient_softmax(verify_measure *result, uint64_t seed);
void verify_gradient_scores(verify_measure *result, uint64_t seed);
void verify_gradient_swiglu(verify_measure *result, uint64_t seed);
void verify_gradient_router(verify_measure *result, uint64_t seed);
void verify_gradient_mixture(verify_measure *result, uint64_t seed);
void verify_gradient_cross_entropy(verify_measure *result, uint64_t seed);
void verify_gradient_rounded(verify_measure *result, uint64_t seed);
void verify_forward(verify_measure *result, uint64_t seed);
void verify_gpt2(verify_measure *result, uint64_t seed);
void verify_biases(verify_measure *result, uint64_t seed);
void verify_parameters(verify_measure *result, uint64_t seed);
void verify_tokens(verify_measure *result, uint64_t seed);
void verify_drift(verify_measure *result, uint64_t seed);
void verify_drift_found(verify_measure *result, uint64_t seed);
void verify_drift_pooled(verify_measure *result, uint64_t seed);
void verify_drift_pooled_found(verify_measure *result, uint64_t seed);
void verify_equal_rows(verify_measure *result, uint64_t seed);
void verify_equal_rows_found(verify_measure *result, uint64_t seed);
void verify_spread(verify_measure *result, uint64_t seed);
void verify_spread_found(verify_measure *result, uint64_t seed);

// The planted circuit and its interventions (verify_circuit.c).
void verify_circuit_enclosed(verify_measure *result, uint64_t seed);
void verify_circuit_run(verify_measure *result, uint64_t seed);
void verify_bq_zero_enclosed(verify_measure *result, uint64_t seed);
void verify_bq_zero_run(verify_measure *result, uint64_t seed);
void verify_epe_swap_enclosed(verify_measure *result, uint64_t seed);
void verify_epe_swap_run(verify_measure *result, uint64_t seed);
void verify_epe_move_enclosed(verify_measure *result, uint64_t seed);
void verify_epe_move_run(verify_measure *result, uint64_t seed);
void verify_bos_zero_enclosed(verify_measure *result, uint64_t seed);
void verify_bos_zero_run(verify_measure *result, uint64_t seed);
void verify_wk_rows_enclosed(verify_measure *result, uint64_t seed);
void verify_wk_rows_run(verify_measure *result, uint64_t seed);
void verify_wk_random_enclosed(verify_measure *result, uint64_t seed);
void verify_wk_random_run(verify_measure *result, uint64_t seed);
void verify_null_enclosed(verify_measure *result, uint64_t seed);
void verify_null_run(verify_measure *result, uint64_t seed);

// Adds one comparison: an error that is NaN or exceeds its bound is wrong.
void verify_add_comparison(verify_measure *result, double error, double bound);
// The same for an error against an exact truth, or against an enclosed one.
void verify_add_exact(verify_measure *result, double error, double bound);
void verify_add_enclosed(verify_measure *result, double error, double bound);
// Adds values with their honest sets and the enclosed truth, which every set contains: the error is
// compared with the room of the set on the value's side of the truth; a value outside its set is
// wrong.
void verify_add_set_values(verify_measure *result, arb_srcptr truth, const sinkproof_honest *set,
                           const double *value, size_t n);

// All evidence of one statement.
typedef struct verify_result {
    const verify_statement *statement;
    sinkproof_exact_outcome exact; // over all its forms
    size_t exact_forms, wrong_forms, wrong_refuted;
    sinkproof_identity_outcome ball; // over all its identities
    size_t identities;
    sinkproof_grid_outcome grid; // cases > 0 for the statements that have it
    verify_measure measure, experiment;
    char missing[8];      // letters of the heading that lack evidence here
    bool held_from_below; // no floor is missed
    bool holds;           // no check failed
} verify_result;

typedef struct verify_options {
    slong bits;
    uint64_t seed;
    size_t instances;
} verify_options;

// For tests: a statement to check in place of the registry's (NULL: the registry's own).
typedef struct verify_plant {
    const sinkproof_exact_statement *exact; // replaces the forms of its id
    const sinkproof_identity *identity;     // replaces the identities of its id
} verify_plant;
verify_result sinkproof_verify(const verify_statement *statement, const verify_options *options,
                               const verify_plant *plant);

// Runs the command; cmd_verify plants nothing.
int run_verify_command(int argc, char **argv, const verify_plant *plant);

#endif
