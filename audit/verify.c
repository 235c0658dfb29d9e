// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The inventory of statements, and the evidence of one gathered from every room.
#include "audit/verify.h"

#include <math.h>
#include <string.h>

static const verify_statement inventory[] = {
    // the derivation
    {"attn.qkv", "D", "queries, keys and values are affine maps of the input"},
    {"attn.score", "D", "s_ij = q_i k_j / sqrt(d')"},
    {"sink.alpha", "D", "the weight of a key"},
    {"sink.alpha-sink", "D", "the weight of the sink"},
    {"sink.mass", "CQB", "the weights of the keys sum to 1 - alpha_s"},
    {"sink.mass-below-one", "CB", "both masses lie strictly between 0 and 1"},
    {"sink.attn-concat", "D", "the heads side by side, times W^O"},
    {"sink.attn-headsum", "CQ", "a sum over heads, by block rows of W^O"},
    {"sink.attn-values", "CQ", "a head is a weighted sum of values"},
    {"sink.attn-expand", "CQ", "values are affine: x_j W^V + b^V"},
    {"sink.attn-inside", "CQ", "W^O moved inside the sum over keys"},
    {"sink.attn-distribute", "CQ", "W^O distributed over value and bias"},
    {"sink.attn-split", "CQ", "the two sums apart"},
    {"sink.attn-factor", "CQ", "the mass factored out of the bias sum"},
    {"sink.attn-mass", "CQB", "the value bias has intensity 1 - alpha_s"},
    {"sink.attn-one-minus", "CQ", "the full bias minus the sink's share"},
    {"sink.attn-reorder", "CQ", "the sink's share as a term of its own"},
    {"sink.attn-final", "CQB", "the last line: ... + b^V W^O + b^O"},
    {"sink.bias-intensity", "CB", "the bias term's slope in alpha_s and in b"},
    {"sink.bias-limits", "CB", "b to -inf: full bias; b to +inf: only b^O"},
    {"sink.general", "CQB", "the chain for grouped heads and any mask"},
    {"sink.bf16-mass", "C/B", "with bf16 weights: row sum against 1 - alpha_s"},
    // equivalences of the sink
    {"sink.concat-slice", "CQB", "softmax(cat([s, b]))[:-1]"},
    {"sink.softmax1", "CQB", "softmax_1 is the sink at b = 0"},
    {"sink.shifted-softmax1", "CB", "alpha(s, b) = softmax_1(s - b)"},
    {"sink.zero-pad", "CQB", "softmax_1 is a zero logit with a zero value"},
    {"sink.stable", "CB", "shifting by max(b, max s) changes nothing"},
    {"sink.limit", "CB", "b = -inf is the ordinary softmax"},
    {"sink.lse", "CB", "LSE_sink = log(e^LSE + e^b)"},
    {"sink.gate", "CB", "1 - alpha_s = sigmoid(LSE - b): a gate"},
    {"sink.online", "CB", "the online recurrence, sink first or last"},
    {"sink.split-kv", "CB", "parts merge to the whole, the sink once"},
    {"sink.key-bias", "CQB", "a learned key with a zero value"},
    {"sink.scale-inside", "CQB", "a logit inside of 1/sqrt(d') is that over sqrt(d')"},
    {"sink.kv-bias", "CQB", "a learned key and value"},
    {"sink.sink-token", "DB", "a learned token in front"},
    {"sink.value-bias-only", "CB", "a learned value: the weights still sum to 1"},
    {"sink.low-rank-key", "DB", "a learned key of d_a coordinates"},
    {"sink.fixed-value", "DB", "a fixed value m v'"},
    {"sink.gated", "DC", "Qwen3-Next's gate, and when it is the sink"},
    {"sink.hybrid", "DB", "MiMo-V2-Flash: sinks on sliding layers only"},
    // the first token
    {"first.token", "CQB", "it sees only itself: a function of its embedding"},
    {"sink.absolute", "CQB", "a window leaves the first key, not the sink, behind"},
    {"mask.first-recent", "CQB", "what is kept, times 1 - mu, and what is evicted"},
    {"bound.evict", "CB", "evicting keys of mass mu moves the output by 2 mu V"},
    // forms that kernels evaluate
    {"form.base2", "CB", "exponentials in base 2"},
    {"form.running-max", "CB", "numerators rescaled at each new maximum"},
    {"form.lse-subtract", "CB", "e^(s - LSE)"},
    {"form.lse-gate", "CB", "softmax times sigmoid(LSE - b)"},
    {"form.sigmoid-tanh", "CB", "sigmoid(t) = (1 + tanh(t / 2)) / 2"},
    // the model as built
    {"model.config", "D", "the numbers that define a model"},
    {"mxfp4.decode", "DQ", "E2M1 times 2^(s - 127), all 256 x 16 codes"},
    {"mxfp4.exact", "DQ", "bf16 holds every weight up to scale byte 252"},
    {"bf16.round", "D", "to nearest, ties to even"},
    {"rmsnorm.forward", "DB", "a token over its root mean square"},
    {"rope.rotate", "CB", "rotation by halves"},
    {"rope.orthogonal", "CB", "lengths are kept, only i - j counts"},
    {"yarn.ramp", "DB", "frequencies below and above the ramp"},
    {"yarn.concentration", "DB", "the factor of cosine and sine"},
    {"yarn.truncate", "DB", "the ends of the ramp as whole numbers"},
    {"router.topk", "CQB", "the largest K, the lower index first"},
    {"router.softmax-after", "CQB", "softmax after the choice"},
    {"swiglu.clamped", "DB", "the experts' activation"},
    {"swiglu.gelu-fit", "CB", "what 1.702 fits, and by how much it errs"},
    {"swiglu.plus-one", "CB", "the gradient at 0"},
    {"moe.sum", "CQ", "the mixture, in any order"},
    {"model.forward", "DB", "the composition"},
    {"model.biases", "DE", "which linear layers have a bias"},
    {"model.parameters", "DE", "all parameters, and those that a token meets"},
    {"train.tokens", "E", "tokens from accelerator hours"},
    // errors and laws
    {"bound.dot", "C", "a sum of products in any order"},
    {"bound.dot-exact", "C", "when a binary64 dot product is exact"},
    {"bound.dot-likely", "C/B", "independent centred roundings"},
    {"stat.drift", "DE", "signed errors over a tensor"},
    {"stat.equal-rows", "DE", "rows that are alike are one unit"},
    {"stat.spread", "CE", "squared errors over a tensor"},
    {"bound.exp", "B", "the error of exp"},
    {"bound.softmax-sink", "C/B", "the error of the weights"},
    {"bound.one-minus", "CB", "two ways to form 1 - alpha_s"},
    {"bound.value", "C/B", "the error of weighted values"},
    {"bound.rmsnorm", "C/B", "the error of RMSNorm"},
    {"bound.rope", "C/B", "the error of the rotation"},
    {"bound.swiglu", "C/B", "the error of the activation"},
    {"bound.linear", "C/B", "the error of a linear layer"},
    {"bound.ftz", "C/B", "subnormal numbers read as zero"},
    {"bound.form-base2", "C/B", "the error of base 2"},
    {"bound.form-running-max", "C/B", "the error of rescaling"},
    {"bound.form-lse", "C/B", "the error of weights from the log-sum-exp"},
    {"bound.form-router", "C/B", "the error of weights renormalised"},
    {"bound.form-tanh", "C/B", "the error of a sigmoid by tanh"},
    {"law.shift", "CQ", "scores and sink shifted together"},
    {"law.permute", "CQ", "keys reordered"},
    {"law.constant-value", "CQ", "equal values come back times the mass"},
    {"law.gqa-repeat", "CQ", "key/value heads repeated"},
    {"law.linear-value", "CQ", "linear in the values"},
    // the optimized path
    {"lanes.linear", "DC", "the order of a product, and its error"},
    {"lanes.attention", "DC", "spans taken in by the state of a row"},
};

const verify_statement *sinkproof_verify_statement_at(size_t k) {
    return k < sizeof inventory / sizeof *inventory ? &inventory[k] : NULL;
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
    r->ball.radius_log2 = fmax(r->ball.radius_log2, o.radius_log2);
    r->ball.allowed_log2 = fmax(r->ball.allowed_log2, o.allowed_log2);
    if (!(o.share <= r->ball.share)) r->ball.share = o.share;
    r->identities++;
}

// The grid serves two statements: it is computed once for both.
static sinkproof_grid_outcome grid_of(const verify_options *options) {
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
    r->grid = grid_of(options);
    double share = mass ? r->grid.mass_share : r->grid.gate_share;
    r->ball.radius_log2 =
        fmax(r->ball.radius_log2, mass ? r->grid.mass_radius_log2 : r->grid.gate_radius_log2);
    if (!(share <= r->ball.share)) r->ball.share = share;
}

static void find_missing(verify_result *r) {
    size_t n = 0;
    bool formal = r->formal != NULL && r->formal->complete;
    bool balls = r->identities > 0 || r->measure.values > 0;
    if (strcmp(r->statement->needs, "C/B") == 0) { // either will do
        if (!formal && !balls) strcpy(r->missing, "C/B");
        return;
    }
    for (const char *letter = r->statement->needs; *letter != '\0'; letter++) {
        bool have = true;
        if (*letter == 'C') have = formal;
        if (*letter == 'Q') have = r->exact_forms > 0;
        if (*letter == 'B') have = balls;
        if (!have) r->missing[n++] = *letter;
    }
}

verify_result sinkproof_verify(const verify_statement *statement, const verify_options *options,
                               const verify_plant *plant) {
    verify_result r = {.statement = statement};
    gather_exact(&r, options, plant);
    gather_balls(&r, options, plant);
    r.measure = sinkproof_verify_measure(statement->id, options->seed);
    r.formal = sinkproof_verify_formal(statement->id);
    find_missing(&r);
    r.holds = r.exact.unequal == 0 && r.wrong_refuted == r.wrong_forms && r.ball.broken == 0 &&
              r.grid.broken == 0 && r.ball.share <= 1 && r.measure.wrong == 0 &&
              (r.formal == NULL || r.formal->complete);
    return r;
}
