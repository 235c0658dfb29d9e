// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Mistakes planted in complete engines, and what the diagnosis says of their traces: each is
// convicted, and named or not. The kill table of the book is what this test prints.
#include "audit/diagnose/diagnose.h"
#include "tests/shared/judged.h"
#include "tests/shared/mistaken.h"

#include <omp.h>

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
    c->swiglu_alpha = by;
}
static void limit(sinkproof_config *c, double by) {
    c->swiglu_limit = by;
}
static void theta(sinkproof_config *c, double by) {
    c->rope_theta = by;
}
static void factor(sinkproof_config *c, double by) {
    c->yarn_factor = by;
}
static void inverted(sinkproof_config *c, double by) {
    c->yarn_beta_fast = 1, c->yarn_beta_slow = by;
}
static void context(sinkproof_config *c, double by) {
    c->yarn_original_context = by > 0 ? (size_t)by : c->max_context;
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
};
enum { MISTAKES = sizeof mistakes / sizeof mistakes[0] };

// Two at once: at one point, or at different ones.
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

// Mistakes that a trace cannot show: a prompt that is too short, or values that are the same.
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

// In no catalogue: some values of a point off by a share.
static const planted unknown[] = {
    {.id = "noise", .at = "00.A11", .wrong = NOISE, .by = 0x1p-6, .slots = 7},
    {.id = "noise", .at = "01.A4.q", .wrong = NOISE, .by = -0x1p-9, .slots = 5},
    {.id = "noise", .at = "00.M10", .wrong = NOISE, .by = 0.3, .slots = 11},
    {.id = "noise", .at = "02.A2.v", .wrong = NOISE, .by = 0x1p-12, .slots = 3},
    {.id = "noise", .at = "00.M12", .wrong = NOISE, .by = 0x1p-5, .slots = 96},
    {.id = "noise", .at = "F1", .wrong = NOISE, .by = 1, .slots = 2},
    {.id = "noise", .at = "T0", .wrong = NOISE, .by = 0x1p-7, .slots = 13},
    {.id = "noise", .at = "03.A1", .wrong = NOISE, .by = 0x1p-10, .slots = 9},
    {.id = "sinks of another size", .at = "00.A9", .by = 1.1, .slots = OF(SINKS), .spoil = TIMES},
    {.id = "another alpha", .at = "00.M8", .config = alpha, .by = 1.65},
    {.id = "another window", .at = "00.A9", .config = window_by, .by = 3},
    {.id = "another base", .at = "00.A4.q", .config = theta, .by = 123456},
};

static const planted *planted_named(const char *id) {
    for (size_t i = 0; i < MISTAKES; i++)
        if (strcmp(mistakes[i].id, id) == 0) return &mistakes[i];
    must(false);
    return NULL;
}

// ---- one engine

typedef struct diagnosed {
    sinkproof_judgement j;
    sinkproof_diagnosis d;
} diagnosed;

static diagnosed diagnose(const sinkproof_model *model, size_t n_planted,
                          const planted *const *list, const char *policy, const char *points,
                          size_t n) {
    sinkproof_error error = {{0}};
    sinkproof_policy declared;
    diagnosed of = {.d = {.n = 0}};
    int32_t tokens[256];
    some_tokens(n, sinkproof_model_config(model)->vocab, 7, tokens);
    sinkproof_trace *trace = mistaken_trace(model, n_planted, list, policy, points, n, tokens);
    bool fine =
        sinkproof_policy_parse(policy, &declared, &error) &&
        sinkproof_judge(model, trace, &declared, &(sinkproof_judge_options){.rate = 1e-9}, &of.j,
                        &error) &&
        sinkproof_diagnose(model, trace, &of.j,
                           &(sinkproof_diagnose_options){.rate = 1e-9, .places = 2, .pairs = 150},
                           &of.d, &error);
    if (!fine) {
        printf("Bail out! %s\n", error.text);
        exit(1);
    }
    sinkproof_trace_close(trace);
    return of;
}

static void discard(diagnosed *of) {
    sinkproof_judgement_free(&of->j);
    sinkproof_diagnosis_free(&of->d);
}

static bool holds(const sinkproof_explanation *e, const char *id) {
    for (size_t i = 0; i < e->n; i++)
        if (strcmp(e->mistakes[i]->id, id) == 0) return true;
    return false;
}

// Among what explains a finding, and what is told in front of it.
static bool is_named(const sinkproof_finding_of *f, const char *id) {
    for (size_t a = 0; a < f->n_alike; a++)
        if (holds(&f->alike[a], id)) return true;
    return false;
}

static size_t bugs(const sinkproof_judgement *j) {
    size_t count = 0;
    for (size_t i = 0; i < j->n_reports; i++) count += j->reports[i].outside > 0;
    return count;
}

static double farthest_ulp(const sinkproof_judgement *j) {
    double worst = 0;
    for (size_t i = 0; i < j->n_reports; i++) worst = fmax(worst, j->reports[i].excess_ulp);
    return worst;
}

// Every finding has the mistake among its explanations.
static bool named_everywhere(const diagnosed *of, const char *id) {
    bool named = of->d.n > 0;
    for (size_t i = 0; i < of->d.n; i++) named = named && is_named(&of->d.findings[i], id);
    return named;
}

static size_t alike(const diagnosed *of) {
    return of->d.n > 0 ? of->d.findings[0].n_alike + of->d.findings[0].more_alike : 0;
}

// ---- what is asked

typedef struct tally {
    size_t planted, convicted, named, alone;
} tally;

static bool only(int argc, char **argv, const char *id) {
    bool asked = argc < 2;
    for (int a = 1; a < argc; a++) asked = asked || strcmp(argv[a], id) == 0;
    return asked;
}

// Whether the book's kill table has this line.
static bool is_in_book(const char *line) {
    static char book[1 << 17];
    FILE *in = book[0] == '\0' ? fopen("doc/21-diagnosis.md", "r") : NULL;
    if (in != NULL) {
        size_t length = fread(book, 1, sizeof book - 1, in);
        book[length] = '\0';
        fclose(in);
    }
    return strstr(book, line) != NULL;
}

// The columns of the table that are the same on every machine.
static void hold_book(const planted *bug, const diagnosed *of, bool named) {
    char line[160];
    snprintf(line, sizeof line, "\n| `%s` | %s | %zu |", bug->id,
             of->j.first != NULL ? of->j.first->name : "-", bugs(&of->j));
    ok(is_in_book(line) && named, "the book has its line, and it is named: %s", line + 1);
}

// One line of the kill table. What does not name the mistake must not name another one.
static void try_one(const sinkproof_model *model, const planted *bug, const char *policy,
                    tally *t) {
    diagnosed of = diagnose(model, 1, &bug, policy, NULL, 48);
    bool convicted = of.j.first != NULL, named = convicted && named_everywhere(&of, bug->id);
    t->planted++, t->convicted += convicted, t->named += named;
    t->alone += named && alike(&of) == 1;
    const sinkproof_finding_of *f = of.d.n > 0 ? &of.d.findings[0] : NULL;
    note("kill | %s | %s | %s | %zu | %.2g | %s | %zu | %.2g", policy, bug->id,
         convicted ? of.j.first->name : "-", bugs(&of.j), farthest_ulp(&of.j),
         named                         ? "named"
         : f != NULL && f->n_alike > 0 ? f->alike[0].mistakes[0]->id
                                       : "unknown",
         alike(&of), f != NULL ? f->next_bounds : 0.0);
    if (strcmp(policy, "f32") == 0)
        ok(convicted && strcmp(of.j.first->name, bug->at) == 0,
           "%s under %s is convicted at %s (%s)%s", bug->id, policy, bug->at,
           convicted ? of.j.first->name : "nowhere", named ? " and named" : "");
    if (strcmp(policy, "f32") == 0) hold_book(bug, &of, named);
    discard(&of);
}

// The points of each are explained, by it or by the two together.
static bool both_named(const diagnosed *of, const char *a, const char *b) {
    bool found_a = false, found_b = false, all = of->d.n > 0;
    for (size_t i = 0; i < of->d.n; i++) {
        const sinkproof_finding_of *f = &of->d.findings[i];
        found_a = found_a || is_named(f, a), found_b = found_b || is_named(f, b);
        all = all && (is_named(f, a) || is_named(f, b));
    }
    return all && found_a && found_b;
}

static void try_pair(const sinkproof_model *model, const char *const *ids, size_t *named) {
    const planted *list[2] = {planted_named(ids[0]), planted_named(ids[1])};
    diagnosed of = diagnose(model, 2, list, "f32", NULL, 48);
    bool both = both_named(&of, ids[0], ids[1]);
    *named += both;
    note("pair | %s | %s | %zu | %s | %zu", ids[0], ids[1], bugs(&of.j),
         both ? "named" : "not named", alike(&of));
    ok(of.j.first != NULL, "%s and %s are convicted%s", ids[0], ids[1],
       both ? " and named together" : "");
    discard(&of);
}

static void try_equivalent(const sinkproof_model *model, const struct equivalent *same) {
    const planted *mistake = &same->mistake;
    diagnosed of = diagnose(model, 1, &mistake, "f32", same->points, same->n);
    ok(of.j.verdict <= SINKPROOF_VERDICT_WITHIN && of.d.n == 0, "%s: %s, %zu findings", mistake->id,
       sinkproof_verdict_name(of.j.verdict), of.d.n);
    discard(&of);
}

// Convicted where it is, and not given a name that is false: no known mistake explains it.
static void try_unknown(const sinkproof_model *model, const planted *bug) {
    diagnosed of = diagnose(model, 1, &bug, "f32", NULL, 48);
    size_t names = 0;
    for (size_t i = 0; i < of.d.n; i++) names += of.d.findings[i].n_alike;
    const char *pattern = of.d.n > 0 ? of.d.findings[0].pattern : "";
    if (names > 0 && of.d.findings[0].n_alike > 0)
        pattern = of.d.findings[0].alike[0].mistakes[0]->id;
    ok(of.j.first != NULL && strcmp(of.j.first->name, bug->at) == 0 && names == 0 &&
           pattern[0] != '\0',
       "%s at %s is convicted and unknown: %s", bug->id, bug->at, pattern);
    discard(&of);
}

int main(int argc, char **argv) {
    sinkproof_error error = {{0}};
    sinkproof_model *model;
    tally f32 = {0}, bf16 = {0};
    size_t pairs = 0, asked = 0;
    omp_set_num_threads(1); // there is little to do in each of very many judgements
    if (!sinkproof_model_open("synthetic:tiny", &model, &error)) {
        printf("Bail out! %s\n", error.text);
        return 1;
    }
    for (size_t i = 0; i < MISTAKES; i++)
        if (only(argc, argv, mistakes[i].id)) try_one(model, &mistakes[i], "f32", &f32);
    for (size_t i = 0; i < MISTAKES; i += 4)
        if (only(argc, argv, mistakes[i].id)) try_one(model, &mistakes[i], "openai-bf16", &bf16);
    for (size_t i = 0; i < PAIRS_OF; i++)
        if (only(argc, argv, "pairs")) try_pair(model, together[i], &pairs), asked++;
    for (size_t i = 0; i < sizeof equivalents / sizeof equivalents[0]; i++)
        if (only(argc, argv, "equivalent")) try_equivalent(model, &equivalents[i]);
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
        if (only(argc, argv, "unknown")) try_unknown(model, &unknown[i]);
    note("f32: %zu planted, %zu convicted, %zu named, %zu of these alone", f32.planted,
         f32.convicted, f32.named, f32.alone);
    note("openai-bf16: %zu planted, %zu convicted, %zu named, %zu of these alone", bf16.planted,
         bf16.convicted, bf16.named, bf16.alone);
    note("pairs: %zu planted, %zu named", asked, pairs);
    if (argc < 2) {
        ok(f32.convicted == MISTAKES && MISTAKES >= 80, "%zu of %d planted mistakes are convicted",
           f32.convicted, MISTAKES);
        ok(f32.named >= 60, "%zu are named by the diagnosis, 60 at least", f32.named);
        ok(pairs >= 10, "%zu pairs are named together, 10 at least", pairs);
    }
    sinkproof_model_close(model);
    return tap_done();
}
