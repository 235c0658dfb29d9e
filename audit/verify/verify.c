// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Collects the evidence for one statement from all rooms and compares it with the letters of its
// heading.
#include "audit/verify/verify.h"

#include <math.h>
#include <string.h>

size_t sinkproof_verify_count(void) {
    size_t n = 0;
    while (sinkproof_verify_inventory[n].id != NULL) n++;
    return n;
}

const verify_statement *sinkproof_verify_statement_at(size_t k) {
    return k < sinkproof_verify_count() ? &sinkproof_verify_inventory[k] : NULL;
}

static void try_exact(verify_result *r, const sinkproof_exact_statement *s,
                      const verify_options *options) {
    sinkproof_exact_outcome o = sinkproof_exact_check(s, options->seed, options->instances);
    if (o.unequal > 0 && r->exact.unequal == 0) r->exact.first_unequal = o.first_unequal;
    r->exact.instances += o.instances;
    r->exact.unequal += o.unequal;
    r->exact_forms++;
}

static void gather_exact(verify_result *r, const verify_options *options,
                         const verify_plant *plant) {
    const char *id = r->statement->id;
    const sinkproof_exact_statement *s;
    bool planted = plant != NULL && plant->exact != NULL && strcmp(plant->exact->id, id) == 0;
    if (planted) try_exact(r, plant->exact, options);
    for (size_t k = 0; !planted && (s = sinkproof_exact_statement_at(k)) != NULL; k++)
        if (strcmp(s->id, id) == 0) try_exact(r, s, options);
    for (size_t k = 0; (s = sinkproof_exact_wrong_form_at(k)) != NULL; k++) {
        if (strcmp(s->id, id) != 0) continue;
        r->wrong_forms++;
        r->wrong_refuted += sinkproof_exact_refute(s, options->seed, 1000).unequal > 0;
    }
}

static void try_identity(verify_result *r, const sinkproof_identity *identity,
                         const verify_options *options) {
    // Balls cost more than fractions: a quarter of the instances.
    size_t count = (options->instances + 3) / 4;
    sinkproof_identity_outcome o =
        sinkproof_identity_check(identity, options->seed, count, options->bits);
    if (o.broken > 0 && r->ball.broken == 0) r->ball.first_broken = o.first_broken;
    r->ball.instances += o.instances;
    r->ball.entries += o.entries;
    r->ball.broken += o.broken;
    r->ball.bits = o.bits > r->ball.bits ? o.bits : r->ball.bits;
    r->ball.radius_log2 = sinkproof_keep_worst(r->ball.radius_log2, o.radius_log2);
    r->ball.allowed_log2 = sinkproof_keep_worst(r->ball.allowed_log2, o.allowed_log2);
    r->ball.share = sinkproof_keep_worst(r->ball.share, o.share);
    r->identities++;
}

// The grid serves two statements and is computed once for both.
static sinkproof_grid_outcome grid_outcome(const verify_options *options) {
    static verify_options last;
    static sinkproof_grid_outcome grid;
    static const double sinks[] = {-INFINITY, -1e4, -300, -1, 0, 0.5, 300, 1e4};
    static const size_t lengths[] = {1, 2, 3, 127, 128, 129, 1024, 4096, 131072};
    if (grid.cases == 0 || last.bits != options->bits || last.seed != options->seed)
        grid = sinkproof_identity_grid(sizeof lengths / sizeof *lengths, lengths, 8, sinks, 300,
                                       options->seed, options->bits);
    last = *options;
    return grid;
}

static void gather_balls(verify_result *r, const verify_options *options,
                         const verify_plant *plant) {
    const char *id = r->statement->id;
    const sinkproof_identity *identity;
    bool planted = plant != NULL && plant->identity != NULL && strcmp(plant->identity->id, id) == 0;
    r->ball.radius_log2 = r->ball.allowed_log2 = -INFINITY;
    if (planted) try_identity(r, plant->identity, options);
    for (size_t k = 0; !planted && (identity = sinkproof_identity_at(k)) != NULL; k++)
        if (strcmp(identity->id, id) == 0) try_identity(r, identity, options);
    bool mass = strcmp(id, "sink.attn-mass") == 0, gate = strcmp(id, "sink.gate") == 0;
    if (!mass && !gate) return;
    r->grid = grid_outcome(options);
    double share = mass ? r->grid.mass_share : r->grid.gate_share;
    double radius = mass ? r->grid.mass_radius_log2 : r->grid.gate_radius_log2;
    r->ball.radius_log2 = sinkproof_keep_worst(r->ball.radius_log2, radius);
    r->ball.share = sinkproof_keep_worst(r->ball.share, share);
}

// Whether this kind of evidence is present. A definition is code that was built; a proof counts if
// it was checked under the present hashes, on this machine or elsewhere.
static bool has_evidence(const verify_result *r, char letter) {
    switch (letter) {
    case 'C':
        return r->statement->proof.state >= VERIFY_PROOF_RECORDED;
    case 'Q':
        return r->exact.instances > 0;
    case 'B':
        return r->ball.entries > 0 || r->measure.values > 0;
    case 'D':
        return r->statement->defined[0] != '\0';
    case 'E':
        return r->experiment.values > 0;
    default:
        return false;
    }
}

static void find_missing(verify_result *r) {
    size_t n = 0;
    for (const char *letter = r->statement->letters; *letter != '\0'; letter++)
        if (!has_evidence(r, *letter) && n + 1 < sizeof r->missing) r->missing[n++] = *letter;
}

verify_result sinkproof_verify(const verify_statement *statement, const verify_options *options,
                               const verify_plant *plant) {
    verify_result r = {.statement = statement};
    gather_exact(&r, options, plant);
    gather_balls(&r, options, plant);
    r.measure = verify_measure_check(statement->id, 'B', options->seed);
    r.experiment = verify_measure_check(statement->id, 'E', options->seed);
    find_missing(&r);
    r.held_from_below =
        sinkproof_verify_reaches(&r.measure) && sinkproof_verify_reaches(&r.experiment);
    r.holds = r.held_from_below && r.exact.unequal == 0 && r.wrong_refuted == r.wrong_forms &&
              r.ball.broken == 0 && r.grid.broken == 0 && r.ball.share <= 1 &&
              r.measure.wrong == 0 && r.experiment.wrong == 0;
    return r;
}
