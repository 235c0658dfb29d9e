// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The mistakes that test_diagnosis plants: single ones, pairs, mistakes that no trace can show, and
// mistakes outside the catalogue.
#ifndef SINKPROOF_TESTS_MISTAKES_PLANTED_H
#define SINKPROOF_TESTS_MISTAKES_PLANTED_H

#include "tests/shared/mistaken_stages.h"

static void window_by(sinkproof_config *c, double by) {
    c->window = (size_t)((double)c->window + by);
}
static void window_times(sinkproof_config *c, double by) {
    c->window = (size_t)((double)c->window * by);
}
static void slide_none(sinkproof_config *c, double by) {
    (void)by;
    memset(c->sliding, 0, sizeof c->sliding);
}
static void slide_all(sinkproof_config *c, double by) {
    (void)by;
    for (size_t l = 0; l < c->n_layers; l++) c->sliding[l] = true;
}
static void slide_others(sinkproof_config *c, double by) {
    (void)by;
    for (size_t l = 0; l < c->n_layers; l++) c->sliding[l] = !c->sliding[l];
}
static void eps(sinkproof_config *c, double by) {
    c->rms_eps = by;
}
static void alpha(sinkproof_config *c, double by) {
    c->swiglu.alpha = by;
}
static void limit(sinkproof_config *c, double by) {
    c->swiglu.limit = by;
}
static void theta(sinkproof_config *c, double by) {
    c->rotation.theta = by;
}
static void factor(sinkproof_config *c, double by) {
    c->rotation.factor = by;
}
static void inverted(sinkproof_config *c, double by) {
    c->rotation.beta_fast = 1, c->rotation.beta_slow = by;
}
static void context(sinkproof_config *c, double by) {
    c->rotation.original_context = by > 0 ? (size_t)by : c->max_context;
}

#define OF(slot) (1u << SINKPROOF_##slot)

static const planted mistakes[] = {
    {.id = "window-wide", .at = "00.A9", .config = window_by, .by = 1},
    {.id = "window-narrow", .at = "00.A9", .config = window_by, .by = -1},
    {.id = "window-double", .at = "00.A9", .config = window_times, .by = 2},
    {.id = "window-half", .at = "00.A9", .config = window_times, .by = 0.5},
    {.id = "window-off", .at = "00.A9", .config = slide_none, .by = 0},
    {.id = "window-everywhere", .at = "01.A9", .config = slide_all, .by = 0},
    {.id = "window-parity", .at = "00.A9", .config = slide_others, .by = 0},
    {.id = "eps-1e-6", .at = "00.A1", .config = eps, .by = 1e-6},
    {.id = "eps-1e-4", .at = "00.A1", .config = eps, .by = 1e-4},
    {.id = "eps-1e-3", .at = "00.A1", .config = eps, .by = 1e-3},
    {.id = "eps-0", .at = "00.A1", .config = eps, .by = 0},
    {.id = "theta-10000", .at = "00.A4.q", .config = theta, .by = 10000},
    {.id = "theta-1000000", .at = "00.A4.q", .config = theta, .by = 1e6},
    {.id = "yarn-missing", .at = "00.A4.q", .config = factor, .by = 1},
    {.id = "yarn-factor-16", .at = "00.A4.q", .config = factor, .by = 16},
    {.id = "yarn-inverted", .at = "00.A4.q", .config = inverted, .by = 32},
    {.id = "context-max", .at = "00.A4.q", .config = context, .by = 0},
    {.id = "context-8192", .at = "00.A4.q", .config = context, .by = 8192},
    {.id = "alpha-1", .at = "00.M8", .config = alpha, .by = 1},
    {.id = "alpha-1.7", .at = "00.M8", .config = alpha, .by = 1.7},
    {.id = "limit-off", .at = "00.M8", .config = limit, .by = INFINITY},
    {.id = "limit-6", .at = "00.M8", .config = limit, .by = 6},
    {.id = "limit-0", .at = "00.M8", .config = limit, .by = 0},
    {.id = "yarn-truncate", .at = "00.A4.q", .runs = "yarn=truncate"},
    {.id = "alpha-bf16", .at = "00.M8", .runs = "M8.alpha=bf16"},
    {.id = "A6-bf16", .at = "00.A6", .runs = "A6=bf16"},
    {.id = "A9-bf16", .at = "00.A9", .runs = "A9=bf16"},
    {.id = "A11-f16", .at = "00.A11", .runs = "A11=f16"},
    {.id = "M2-bf16", .at = "00.M2", .runs = "M2=bf16"},
    {.id = "A4.cos-bf16", .at = "00.A4.q", .runs = "A4.cos=bf16"},
    {.id = "M8-f16", .at = "00.M8", .runs = "M8=f16"},
    {.id = "A13-bf16", .at = "00.A13", .runs = "A13=bf16"},
    {.id = "A1-bf16", .at = "00.A1", .runs = "A1=bf16"},
    {.id = "F2-bf16", .at = "F2", .runs = "F2=bf16"},
    {.id = "sink-dropped", .at = "00.A9", .by = -INFINITY, .slots = OF(SINKS), .spoil = CONSTANT},
    {.id = "sink-zero", .at = "00.A9", .by = 0, .slots = OF(SINKS), .spoil = CONSTANT},
    {.id = "sink-scaled", .at = "00.A9", .by = 0.25, .slots = OF(SINKS), .spoil = TIMES},
    {.id = "sink-prescaled", .at = "00.A9", .by = 4, .slots = OF(SINKS), .spoil = TIMES},
    {.id = "sink-log2e",
     .at = "00.A9",
     .by = 1.4426950408889634,
     .slots = OF(SINKS),
     .spoil = TIMES},
    {.id = "sink-ln2", .at = "00.A9", .by = 0.6931471805599453, .slots = OF(SINKS), .spoil = TIMES},
    {.id = "sink-negated", .at = "00.A9", .by = -1, .slots = OF(SINKS), .spoil = TIMES},
    {.id = "sink-next-head", .at = "00.A9", .by = 1, .slots = OF(SINKS), .spoil = HEAD_SHIFT},
    {.id = "sink-previous-head", .at = "00.A9", .by = -1, .slots = OF(SINKS), .spoil = HEAD_SHIFT},
    {.id = "sink-reversed", .at = "00.A9", .by = 0, .slots = OF(SINKS), .spoil = REVERSED},
    {.id = "sink-by-group", .at = "00.A9", .by = 0, .slots = OF(SINKS), .spoil = BY_GROUP},
    {.id = "sink-of-first-in-group",
     .at = "00.A9",
     .by = 0,
     .slots = OF(SINKS),
     .spoil = FIRST_OF_GROUP},
    {.id = "sink-next-layer", .at = "00.A9", .by = 0, .slots = OF(SINKS), .spoil = NEXT_LAYER},
    {.id = "bias-dropped-q", .at = "00.A2.q", .by = 0, .slots = OF(B_Q), .spoil = TIMES},
    {.id = "bias-dropped-k", .at = "00.A2.k", .by = 0, .slots = OF(B_K), .spoil = TIMES},
    {.id = "bias-dropped-v", .at = "00.A2.v", .by = 0, .slots = OF(B_V), .spoil = TIMES},
    {.id = "bias-dropped-o", .at = "00.A12", .by = 0, .slots = OF(B_O), .spoil = TIMES},
    {.id = "bias-dropped-router", .at = "00.M2", .by = 0, .slots = OF(B_ROUTER), .spoil = TIMES},
    {.id = "bias-dropped-up", .at = "00.M6", .by = 0, .slots = OF(B_UP), .spoil = TIMES},
    {.id = "bias-dropped-down", .at = "00.M10", .by = 0, .slots = OF(B_DOWN), .spoil = TIMES},
    {.id = "bias-twice-v", .at = "00.A2.v", .by = 2, .slots = OF(B_V), .spoil = TIMES},
    {.id = "bias-twice-o", .at = "00.A12", .by = 2, .slots = OF(B_O), .spoil = TIMES},
    {.id = "bias-twice-down", .at = "00.M10", .by = 2, .slots = OF(B_DOWN), .spoil = TIMES},
    {.id = "bias-dropped-qkv",
     .at = "00.A2.q",
     .by = 0,
     .slots = OF(B_Q) | OF(B_K) | OF(B_V),
     .spoil = TIMES},
    {.id = "norm-plus-one",
     .at = "00.A1",
     .by = 1,
     .slots = OF(ATTN_NORM) | OF(MLP_NORM) | OF(FINAL_NORM),
     .spoil = PLUS},
    {.id = "norm-unscaled",
     .at = "00.A1",
     .by = 1,
     .slots = OF(ATTN_NORM) | OF(MLP_NORM) | OF(FINAL_NORM),
     .spoil = CONSTANT},
    {.id = "norm-next-layer",
     .at = "00.A1",
     .by = 0,
     .slots = OF(ATTN_NORM) | OF(MLP_NORM),
     .spoil = NEXT_LAYER},
    {.id = "rows-halves-q", .at = "00.A2.q", .by = 16, .slots = OF(W_Q) | OF(B_Q), .spoil = MERGED},
    {.id = "rows-neighbours-k",
     .at = "00.A2.k",
     .by = 16,
     .slots = OF(W_K) | OF(B_K),
     .spoil = SPLIT},
    {.id = "bias-halves-k", .at = "00.A2.k", .by = 16, .slots = OF(B_K), .spoil = MERGED},
    {.id = "outputs-transposed", .at = "00.A12", .by = 0, .slots = OF(W_O), .spoil = COLUMN_HEADS},
    {.id = "expert-next",
     .at = "00.M5",
     .by = 0,
     .slots = OF(W_UP) | OF(B_UP) | OF(W_DOWN) | OF(B_DOWN),
     .spoil = NEXT_EXPERT},
    {.id = "expert-bias-next-up", .at = "00.M6", .by = 0, .slots = OF(B_UP), .spoil = NEXT_EXPERT},
    {.id = "expert-bias-next-down",
     .at = "00.M10",
     .by = 0,
     .slots = OF(B_DOWN),
     .spoil = NEXT_EXPERT},
    {.id = "nibbles-exchanged-up",
     .at = "00.M5",
     .by = 0,
     .slots = OF(W_UP),
     .spoil = COLUMN_PAIRS},
    {.id = "nibbles-exchanged-down",
     .at = "00.M9",
     .by = 0,
     .slots = OF(W_DOWN),
     .spoil = COLUMN_PAIRS},
    {.id = "nibbles-neighbours-up",
     .at = "00.M5",
     .by = 32,
     .slots = OF(W_UP),
     .spoil = COLUMN_SPLIT},
    {.id = "scales-double-up", .at = "00.M5", .by = 2, .slots = OF(W_UP), .spoil = TIMES},
    {.id = "scales-half-down", .at = "00.M9", .by = 0.5, .slots = OF(W_DOWN), .spoil = TIMES},
    {.id = "bias-halves-up", .at = "00.M6", .by = 256, .slots = OF(B_UP), .spoil = MERGED},
    {.id = "rows-exchanged-up",
     .at = "00.M5",
     .by = 0,
     .slots = OF(W_UP) | OF(B_UP),
     .spoil = PAIRS},
    {.id = "router-shifted",
     .at = "00.M2",
     .by = 1,
     .slots = OF(W_ROUTER) | OF(B_ROUTER),
     .spoil = HEAD_SHIFT},
    {.id = "router-next-layer",
     .at = "00.M2",
     .by = 0,
     .slots = OF(W_ROUTER) | OF(B_ROUTER),
     .spoil = NEXT_LAYER},
    {.id = "embedding-shifted", .at = "T0", .by = 1, .slots = OF(EMBEDDING), .spoil = HEAD_SHIFT},
    {.id = "logits-shifted", .at = "F2", .by = 1, .slots = OF(UNEMBEDDING), .spoil = HEAD_SHIFT},
    {.id = "embedding-scaled",
     .at = "T0",
     .by = 9.797958971132712,
     .slots = OF(EMBEDDING),
     .spoil = TIMES},
    {.id = "mask-off", .at = "00.A9", .by = 0, .wrong = MASK_OFF, .slots = 0},
    {.id = "sink-in-max-only", .at = "00.A9", .by = 0, .wrong = SINK_IN_MAX_ONLY, .slots = 0},
    {.id = "sink-renormalised", .at = "00.A9", .by = 0, .wrong = SINK_RENORMALISED, .slots = 0},
    {.id = "sink-per-part-16", .at = "00.A9", .by = 16, .wrong = SINK_PER_PART, .slots = 0},
    {.id = "sink-per-part-32", .at = "00.A9", .by = 32, .wrong = SINK_PER_PART, .slots = 0},
    {.id = "sink-unshifted", .at = "00.A9", .by = 0, .wrong = SINK_UNSHIFTED, .slots = 0},
    {.id = "sink-has-value", .at = "00.A11", .by = 0, .wrong = SINK_VALUE, .slots = 0},
    {.id = "score-unscaled", .at = "00.A6", .by = 0.5, .wrong = SCORE_TIMES, .slots = 0},
    {.id = "score-scaled-twice", .at = "00.A6", .by = -0.5, .wrong = SCORE_TIMES, .slots = 0},
    {.id = "heads-by-modulus", .at = "00.A6", .by = 0, .wrong = MODULUS, .slots = 0},
    {.id = "concentration-missing", .at = "00.A4.q", .by = -1, .wrong = CONCENTRATION, .slots = 3},
    {.id = "concentration-missing-q",
     .at = "00.A4.q",
     .by = -1,
     .wrong = CONCENTRATION,
     .slots = 1},
    {.id = "concentration-missing-k",
     .at = "00.A4.k",
     .by = -1,
     .wrong = CONCENTRATION,
     .slots = 2},
    {.id = "concentration-twice", .at = "00.A4.q", .by = 1, .wrong = CONCENTRATION, .slots = 3},
    {.id = "rope-neighbours", .at = "00.A4.q", .by = 0, .wrong = NEIGHBOURS, .slots = 3},
    {.id = "rope-neighbours-k", .at = "00.A4.k", .by = 0, .wrong = NEIGHBOURS, .slots = 2},
    {.id = "rope-backwards", .at = "00.A4.q", .by = 0, .wrong = BACKWARDS, .slots = 3},
    {.id = "rope-missing", .at = "00.A4.q", .by = 0, .wrong = UNTURNED, .slots = 3},
    {.id = "rope-missing-k", .at = "00.A4.k", .by = 0, .wrong = UNTURNED, .slots = 2},
    {.id = "positions-late", .at = "00.A4.q", .by = 1, .wrong = POSITIONS, .slots = 3},
    {.id = "positions-early-q", .at = "00.A4.q", .by = -1, .wrong = POSITIONS, .slots = 1},
    {.id = "positions-late-k", .at = "00.A4.k", .by = 1, .wrong = POSITIONS, .slots = 2},
    {.id = "select-smallest", .at = "00.M3", .by = 0, .wrong = SELECT_SMALLEST, .slots = 0},
    {.id = "select-shifted", .at = "00.M3", .by = 0, .wrong = SELECT_SHIFTED, .slots = 0},
    {.id = "select-runner-up", .at = "00.M3", .by = 0, .wrong = SELECT_RUNNER_UP, .slots = 0},
    {.id = "shares-softmax-before", .at = "00.M4", .by = 0, .wrong = SHARE_BEFORE, .slots = 0},
    {.id = "shares-sigmoid", .at = "00.M4", .by = 0, .wrong = SHARE_SIGMOID, .slots = 0},
    {.id = "shares-sigmoid-normalised",
     .at = "00.M4",
     .by = 0,
     .wrong = SHARE_SIGMOIDS,
     .slots = 0},
    {.id = "shares-even", .at = "00.M4", .by = 0, .wrong = SHARE_EVEN, .slots = 0},
    {.id = "shares-ones", .at = "00.M4", .by = 0, .wrong = SHARE_ONE, .slots = 0},
    {.id = "shares-logits", .at = "00.M4", .by = 0, .wrong = SHARE_LOGIT, .slots = 0},
    {.id = "shares-backwards", .at = "00.M4", .by = 0, .wrong = SHARE_BACKWARDS, .slots = 0},
    {.id = "pairs-swapped", .at = "00.M8", .by = 0, .wrong = ACT_SWAPPED, .slots = 0},
    {.id = "pairs-halves", .at = "00.M8", .by = 0, .wrong = ACT_HALVES, .slots = 0},
    {.id = "gate-both", .at = "00.M8", .by = 0, .wrong = ACT_GATE_BOTH, .slots = 0},
    {.id = "gate-free", .at = "00.M8", .by = 0, .wrong = ACT_GATE_FREE, .slots = 0},
    {.id = "up-above", .at = "00.M8", .by = 0, .wrong = ACT_UP_ABOVE, .slots = 0},
    {.id = "up-free", .at = "00.M8", .by = 0, .wrong = ACT_UP_FREE, .slots = 0},
    {.id = "up-plus-missing", .at = "00.M8", .by = 0, .wrong = ACT_PLUS, .slots = 0},
    {.id = "up-plus-two", .at = "00.M8", .by = 2, .wrong = ACT_PLUS, .slots = 0},
    {.id = "mixture-twice", .at = "00.M11", .by = 2, .wrong = MIX_TIMES, .slots = 0},
    {.id = "mixture-averaged", .at = "00.M11", .by = 0, .wrong = MIX_TIMES, .slots = 0},
    {.id = "mixture-even", .at = "00.M11", .by = 0, .wrong = MIX_EVEN, .slots = 0},
    {.id = "mixture-ones", .at = "00.M11", .by = 0, .wrong = MIX_ONES, .slots = 0},
    {.id = "mixture-backwards", .at = "00.M11", .by = 0, .wrong = MIX_BACKWARDS, .slots = 0},
    {.id = "mixture-last-missing", .at = "00.M11", .by = 0, .wrong = MIX_LAST_MISSING, .slots = 0},
    {.id = "eps-outside", .at = "00.A1", .by = 0, .wrong = EPS_OUTSIDE, .slots = 0},
    {.id = "norm-centred", .at = "00.A1", .by = 0, .wrong = CENTRED, .slots = 0},
    {.id = "residual-dropped-attention", .at = "00.A13", .by = 0, .wrong = RESIDUAL, .slots = 1},
    {.id = "residual-unchanged-experts", .at = "00.M12", .by = 1, .wrong = RESIDUAL, .slots = 0},
    {.id = "residual-twice-attention", .at = "00.A13", .by = 1, .wrong = RESIDUAL, .slots = 2},
    {.id = "residual-doubled-experts", .at = "00.M12", .by = 2, .wrong = RESIDUAL, .slots = 1},
    {.id = "sink-lse-bf16", .at = "00.A9", .runs = "A9.lse=bf16"},
    {.id = "sink-gate-bf16", .at = "00.A9", .runs = "A9.lse=bf16,A9.gate=bf16"},
    {.id = "sink-log2e-bf16",
     .at = "00.A9",
     .by = 1.4426950408889634,
     .slots = OF(SINKS),
     .spoil = TIMES_BF16},
};
enum { MISTAKES = sizeof mistakes / sizeof mistakes[0] };

// Two at once, at one point or at different ones.
static const char *const together[][2] = {
    {"window-wide", "sink-zero"},        {"window-narrow", "sink-scaled"},
    {"window-wide", "sink-next-head"},   {"sink-log2e", "window-half"},
    {"yarn-truncate", "positions-late"}, {"alpha-1.7", "up-plus-missing"},
    {"gate-both", "alpha-bf16"},         {"bias-dropped-up", "nibbles-exchanged-up"},
    {"theta-10000", "rope-neighbours"},  {"norm-plus-one", "eps-1e-3"},
    {"bias-dropped-v", "window-wide"},   {"bias-dropped-router", "bias-dropped-o"},
    {"alpha-1", "sink-dropped"},         {"mixture-twice", "concentration-missing-k"},
};
enum { PAIRS_OF = sizeof together / sizeof together[0] };

// Mistakes that a trace cannot show: the prompt is too short, or the values are the same.
static const struct equivalent {
    planted mistake;
    size_t n;
    const char *points;
} equivalents[] = {
    {{.id = "a window one key too wide, as long as the prompt", .config = window_by, .by = 1},
     8,
     NULL},
    {{.id = "a window twice as wide, as long as the prompt", .config = window_times, .by = 2},
     8,
     NULL},
    {{.id = "no window, of a prompt that is as long", .config = slide_none}, 8, NULL},
    {{.id = "the layers' windows exchanged, of a prompt that is as long", .config = slide_others},
     8,
     NULL},
    {{.id = "a sink counted in every part of 64 keys, of 48", .wrong = SINK_PER_PART, .by = 64},
     48,
     NULL},
    {{.id = "positions that begin at 1, seen from the scores on",
      .wrong = POSITIONS,
      .by = 1,
      .slots = 3},
     48,
     "T0,A1,A2,A6,A9,A11,A12,A13,M1,M2,M3,M4,M6,M8,M10,M11,M12,F1,F2"},
    {{.id = "a longest context of another length", .config = context, .by = 4096}, 48, NULL},
    {{.id = "weights kept in bfloat16 that are its numbers", .runs = "weights=bf16"}, 48, NULL},
};

// Outside the catalogue: some values of a point are off by a share.
static const planted unknown[] = {
    {.id = "noise", .at = "00.A11", .wrong = NOISE, .by = 0x1p-6, .slots = 7},
    {.id = "noise", .at = "01.A4.q", .wrong = NOISE, .by = -0x1p-9, .slots = 5},
    {.id = "noise", .at = "00.M10", .wrong = NOISE, .by = 0.3, .slots = 11},
    {.id = "noise", .at = "02.A2.v", .wrong = NOISE, .by = 0x1p-12, .slots = 3},
    {.id = "noise", .at = "00.M12", .wrong = NOISE, .by = 0x1p-5, .slots = 97},
    {.id = "noise", .at = "F1", .wrong = NOISE, .by = 1, .slots = 2},
    {.id = "noise", .at = "T0", .wrong = NOISE, .by = 0x1p-7, .slots = 13},
    {.id = "noise", .at = "03.A1", .wrong = NOISE, .by = 0x1p-10, .slots = 9},
};

// Outside the catalogue, and found by their numbers: what the diagnosis calls them begins so.
static const planted fitted[] = {
    {.id = "sink-times=1.1", .at = "00.A9", .by = 1.1, .slots = OF(SINKS), .spoil = TIMES},
    {.id = "window=11", .at = "00.A9", .config = window_by, .by = 3},
    {.id = "alpha-", .at = "00.M8", .config = alpha, .by = 1.65},
    {.id = "theta-123456", .at = "00.A4.q", .config = theta, .by = 123456},
    {.id = "M12-times-1.03125@position", .at = "00.M12", .wrong = NOISE, .by = 0x1p-5, .slots = 96},
};

#undef OF
#endif
