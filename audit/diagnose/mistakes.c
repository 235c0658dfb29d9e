// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The catalogue of mistakes: an entry each, and the few changes that they are made of. The mistakes
// of rounding follow the others (roundings.c).
#include "audit/diagnose/mistakes.h"

#include "audit/diagnose/places.h"
#include "audit/diagnose/roundings.h"
#include "model/sinks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- changes of the configuration

static bool any_sliding(const sinkproof_config *c, bool sliding) {
    bool any = false;
    for (size_t l = 0; l < c->n_layers; l++) any = any || c->sliding[l] == sliding;
    return any;
}

static bool window_by(sinkproof_supposition *s, const sinkproof_mistake *m) {
    double window = (double)s->config.window + m->by;
    s->config.window = window >= 1 ? (size_t)window : 1;
    return any_sliding(&s->config, true) && window >= 1;
}

static bool window_times(sinkproof_supposition *s, const sinkproof_mistake *m) {
    double window = floor((double)s->config.window * m->by);
    s->config.window = window >= 1 ? (size_t)window : 1;
    return any_sliding(&s->config, true) && window >= 1;
}

// by 0: no layer slides; 1: every layer slides; -1: the layers that slide are exchanged.
static bool layers_slide(sinkproof_supposition *s, const sinkproof_mistake *m) {
    sinkproof_config *c = &s->config;
    for (size_t l = 0; l < c->n_layers; l++) c->sliding[l] = m->by < 0 ? !c->sliding[l] : m->by > 0;
    return true;
}

static bool eps_is(sinkproof_supposition *s, const sinkproof_mistake *m) {
    s->config.rms_eps = m->by;
    return true;
}

static bool alpha_is(sinkproof_supposition *s, const sinkproof_mistake *m) {
    s->config.swiglu.alpha = m->by;
    return true;
}

static bool limit_is(sinkproof_supposition *s, const sinkproof_mistake *m) {
    s->config.swiglu.limit = m->by;
    return true;
}

static bool theta_is(sinkproof_supposition *s, const sinkproof_mistake *m) {
    s->config.rotation.theta = m->by;
    return true;
}

static bool factor_is(sinkproof_supposition *s, const sinkproof_mistake *m) {
    s->config.rotation.factor = m->by;
    return true;
}

// Trained frequencies that are all interpolated: positions are divided by the factor.
static bool interpolated(sinkproof_supposition *s, const sinkproof_mistake *m) {
    (void)m;
    s->meaning.query.position_times = s->meaning.key.position_times = 1 / s->config.rotation.factor;
    s->config.rotation.factor = 1;
    return true;
}

// Trained frequencies with the concentration of the definition.
static bool concentrated_alone(sinkproof_supposition *s, const sinkproof_mistake *m) {
    double concentration =
        s->config.rotation.factor > 1 ? 0.1 * log(s->config.rotation.factor) + 1 : 1;
    (void)m;
    s->meaning.query.concentration = s->meaning.key.concentration = concentration;
    s->config.rotation.factor = 1;
    return true;
}

static bool ramp_inverted(sinkproof_supposition *s, const sinkproof_mistake *m) {
    double fast = s->config.rotation.beta_fast;
    (void)m;
    s->config.rotation.beta_fast = s->config.rotation.beta_slow,
    s->config.rotation.beta_slow = fast;
    return true;
}

static bool context_is(sinkproof_supposition *s, const sinkproof_mistake *m) {
    s->config.rotation.original_context = m->by > 0 ? (size_t)m->by : s->config.max_context;
    return true;
}

// ---- changes of the meaning

static bool share_of_sink(sinkproof_supposition *s, const sinkproof_mistake *m) {
    s->meaning.sink_share = (sinkproof_sink_share)m->by;
    return true;
}

static bool sink_per_part(sinkproof_supposition *s, const sinkproof_mistake *m) {
    s->meaning.sink_share = SINKPROOF_SINK_PER_PART;
    s->meaning.sink_tile = (size_t)m->by;
    return true;
}

static bool sink_has_value(sinkproof_supposition *s, const sinkproof_mistake *m) {
    (void)m;
    s->meaning.sink_has_value = true;
    return true;
}

static bool sees_all(sinkproof_supposition *s, const sinkproof_mistake *m) {
    (void)m;
    s->meaning.sees_all = true;
    return true;
}

// by: the power of sqrt(head_dim) that multiplies the score.
static bool score_times(sinkproof_supposition *s, const sinkproof_mistake *m) {
    s->meaning.score_times *= pow((double)s->config.head_dim, m->by / 2);
    return true;
}

static bool heads_by_modulus(sinkproof_supposition *s, const sinkproof_mistake *m) {
    (void)m;
    s->meaning.heads_by_modulus = true;
    return s->config.n_kv_heads > 1 && s->config.n_kv_heads < s->config.n_heads;
}

// Bits of `slots`: which of the two rotations.
enum { QUERIES = 1, KEYS = 2, BOTH = 3 };
typedef void turning_change(sinkproof_turning *turning, double by);

static bool turn(sinkproof_supposition *s, const sinkproof_mistake *m, turning_change *change) {
    if (m->slots & QUERIES) change(&s->meaning.query, m->by);
    if (m->slots & KEYS) change(&s->meaning.key, m->by);
    return true;
}

static void by_neighbours(sinkproof_turning *t, double by) {
    (void)by;
    t->neighbours = true;
}
static void by_negative(sinkproof_turning *t, double by) {
    (void)by;
    t->backwards = true;
}
static void by_nothing(sinkproof_turning *t, double by) {
    (void)by;
    t->turned = false;
}
static void by_position(sinkproof_turning *t, double by) {
    t->position_by += by;
}
static void by_concentration(sinkproof_turning *t, double by) {
    t->without_concentration += (int)by;
}

static bool neighbours(sinkproof_supposition *s, const sinkproof_mistake *m) {
    return turn(s, m, by_neighbours);
}
static bool backwards(sinkproof_supposition *s, const sinkproof_mistake *m) {
    return turn(s, m, by_negative);
}
static bool unturned(sinkproof_supposition *s, const sinkproof_mistake *m) {
    return turn(s, m, by_nothing);
}
static bool positions(sinkproof_supposition *s, const sinkproof_mistake *m) {
    return turn(s, m, by_position);
}
static bool unconcentrated(sinkproof_supposition *s, const sinkproof_mistake *m) {
    return s->config.rotation.factor > 1 && turn(s, m, by_concentration);
}

static bool eps_outside(sinkproof_supposition *s, const sinkproof_mistake *m) {
    (void)m;
    s->meaning.eps_outside = true;
    return true;
}

static bool centred(sinkproof_supposition *s, const sinkproof_mistake *m) {
    (void)m;
    s->meaning.centred = true;
    return true;
}

// The sum of a residual: `by` multiplies x, `slots` changes t.
static bool residual(sinkproof_supposition *s, const sinkproof_mistake *m) {
    bool attention = (m->points & 1u << SINKPROOF_TRACE_A13) != 0;
    sinkproof_joining *how = attention ? &s->meaning.after_values : &s->meaning.after_experts;
    *how = (sinkproof_joining){m->by, m->slots};
    return true;
}

static bool selects(sinkproof_supposition *s, const sinkproof_mistake *m) {
    s->meaning.selection = (sinkproof_selection)m->by;
    return s->config.n_chosen < s->config.n_experts;
}

static bool shares(sinkproof_supposition *s, const sinkproof_mistake *m) {
    s->meaning.share = (sinkproof_expert_share)m->by;
    return true;
}

static bool mixes(sinkproof_supposition *s, const sinkproof_mistake *m) {
    s->meaning.mixed = (sinkproof_mixing)m->by;
    return true;
}

static bool mixture_times(sinkproof_supposition *s, const sinkproof_mistake *m) {
    s->meaning.mixture_times = m->by > 0 ? m->by : 1 / (double)s->config.n_chosen;
    return true;
}

static bool slots_left_out(sinkproof_supposition *s, const sinkproof_mistake *m) {
    s->meaning.slots_left_out = (size_t)m->by;
    return s->config.n_chosen > s->meaning.slots_left_out;
}

static bool pairs(sinkproof_supposition *s, const sinkproof_mistake *m) {
    s->meaning.pairing = (sinkproof_pairing)m->by;
    return true;
}

static bool gate_low(sinkproof_supposition *s, const sinkproof_mistake *m) {
    s->meaning.gate_low = m->by;
    return true;
}
static bool gate_high(sinkproof_supposition *s, const sinkproof_mistake *m) {
    s->meaning.gate_high = m->by;
    return true;
}
static bool up_low(sinkproof_supposition *s, const sinkproof_mistake *m) {
    s->meaning.up_low = m->by;
    return true;
}
static bool up_free(sinkproof_supposition *s, const sinkproof_mistake *m) {
    s->meaning.up_low = -m->by, s->meaning.up_high = m->by;
    return true;
}
static bool up_plus(sinkproof_supposition *s, const sinkproof_mistake *m) {
    s->meaning.up_plus = m->by;
    return true;
}

// ---- changes of weights

static sinkproof_weight_edit *edit(sinkproof_supposition *s, unsigned slots) {
    if (s->n_edits == SINKPROOF_WEIGHT_EDITS) return NULL;
    s->edits[s->n_edits] = (sinkproof_weight_edit){.slots = slots, .reading = {.factor = 1}};
    return &s->edits[s->n_edits++];
}

static bool weights_times(sinkproof_supposition *s, const sinkproof_mistake *m) {
    sinkproof_weight_edit *e = edit(s, m->slots);
    if (e != NULL) e->reading.factor = m->by;
    return e != NULL;
}

// by: the power of sqrt(hidden).
static bool weights_times_width(sinkproof_supposition *s, const sinkproof_mistake *m) {
    sinkproof_weight_edit *e = edit(s, m->slots);
    if (e != NULL) e->reading.factor = pow((double)s->config.hidden, m->by / 2);
    return e != NULL;
}

static bool weights_plus(sinkproof_supposition *s, const sinkproof_mistake *m) {
    sinkproof_weight_edit *e = edit(s, m->slots);
    if (e != NULL) e->reading.addend = m->by;
    return e != NULL;
}

static bool weights_are(sinkproof_supposition *s, const sinkproof_mistake *m) {
    sinkproof_weight_edit *e = edit(s, m->slots);
    if (e != NULL) e->reading.factor = 0, e->reading.addend = m->by;
    return e != NULL;
}

static bool of_layer(sinkproof_supposition *s, const sinkproof_mistake *m) {
    sinkproof_weight_edit *e = edit(s, m->slots);
    if (e != NULL) e->borrowed = true, e->from = SINKPROOF_SLOTS, e->layer_by = (int)m->by;
    return e != NULL && s->config.n_layers > 1;
}

static bool of_expert(sinkproof_supposition *s, const sinkproof_mistake *m) {
    sinkproof_weight_edit *e = edit(s, m->slots);
    double experts = (double)s->config.n_experts;
    if (e != NULL) e->reading.expert_by = (size_t)fmod(m->by + experts, experts);
    return e != NULL && s->config.n_experts > 1;
}

static bool borrow(sinkproof_supposition *s, sinkproof_slot slot, sinkproof_slot from) {
    sinkproof_weight_edit *e = edit(s, 1u << slot);
    if (e != NULL) e->borrowed = true, e->from = from;
    return e != NULL;
}

static bool norms_exchanged(sinkproof_supposition *s, const sinkproof_mistake *m) {
    (void)m;
    return borrow(s, SINKPROOF_ATTN_NORM, SINKPROOF_MLP_NORM) &&
           borrow(s, SINKPROOF_MLP_NORM, SINKPROOF_ATTN_NORM);
}

static bool values_exchanged(sinkproof_supposition *s, const sinkproof_mistake *m) {
    (void)m;
    return borrow(s, SINKPROOF_W_K, SINKPROOF_W_V) && borrow(s, SINKPROOF_B_K, SINKPROOF_B_V) &&
           borrow(s, SINKPROOF_W_V, SINKPROOF_W_K) && borrow(s, SINKPROOF_B_V, SINKPROOF_B_K);
}

static bool tied(sinkproof_supposition *s, const sinkproof_mistake *m) {
    (void)m;
    return borrow(s, SINKPROOF_UNEMBEDDING, SINKPROOF_EMBEDDING);
}

static bool has_sink_logits(const sinkproof_config *c) {
    return sinkproof_sinks_stored(c) == SINKPROOF_SINK_NUMBER;
}

// Reads the rows of a matrix, or the elements of a vector, from other places.
static bool moved(sinkproof_supposition *s, unsigned slots, sinkproof_read_from *from, size_t by) {
    for (int slot = 0; slot < SINKPROOF_SLOTS; slot++) {
        if ((slots >> slot & 1) == 0) continue;
        sinkproof_weight_edit *e = edit(s, 1u << slot);
        if (e == NULL) return false;
        if (sinkproof_slot_is_vector((sinkproof_slot)slot, &s->config))
            e->reading.column = from, e->reading.column_by = by;
        else
            e->reading.row = from, e->reading.row_by = by;
    }
    return true;
}

static bool sinks_dropped(sinkproof_supposition *s, const sinkproof_mistake *m) {
    return has_sink_logits(&s->config) && weights_are(s, m);
}
static bool sinks_times(sinkproof_supposition *s, const sinkproof_mistake *m) {
    return has_sink_logits(&s->config) && weights_times(s, m);
}
// by: the power of sqrt(head_dim).
static bool sinks_times_scale(sinkproof_supposition *s, const sinkproof_mistake *m) {
    sinkproof_weight_edit *e = edit(s, m->slots);
    if (e != NULL) e->reading.factor = pow((double)s->config.head_dim, m->by / 2);
    return e != NULL && has_sink_logits(&s->config);
}
static bool sinks_shifted(sinkproof_supposition *s, const sinkproof_mistake *m) {
    size_t heads = s->config.n_heads, by = m->by < 0 ? heads - 1 : 1;
    return has_sink_logits(&s->config) && moved(s, m->slots, sinkproof_from_shifted, by);
}
static bool sinks_of_groups(sinkproof_supposition *s, const sinkproof_mistake *m) {
    size_t each = s->config.n_heads / s->config.n_kv_heads;
    return has_sink_logits(&s->config) && each > 1 &&
           moved(s, m->slots, m->by > 0 ? sinkproof_from_first_of : sinkproof_from_quotient, each);
}
static bool sinks_transposed(sinkproof_supposition *s, const sinkproof_mistake *m) {
    return has_sink_logits(&s->config) &&
           moved(s, m->slots, sinkproof_from_transposed, s->config.n_kv_heads);
}
static bool sinks_reversed(sinkproof_supposition *s, const sinkproof_mistake *m) {
    return has_sink_logits(&s->config) && moved(s, m->slots, sinkproof_from_reversed, 0);
}

// The coordinates of every head: neighbours in place of halves, or halves in place of neighbours.
static bool head_halves(sinkproof_supposition *s, const sinkproof_mistake *m) {
    return moved(s, m->slots, m->by > 0 ? sinkproof_from_halves : sinkproof_from_neighbours,
                 s->config.head_dim);
}
static bool heads_transposed(sinkproof_supposition *s, const sinkproof_mistake *m) {
    return moved(s, m->slots, sinkproof_from_heads_modulo,
                 s->config.n_kv_heads << 32 | s->config.head_dim);
}
static bool rows_exchanged(sinkproof_supposition *s, const sinkproof_mistake *m) {
    return moved(s, m->slots, sinkproof_from_pairs, 0);
}
static bool rows_in_halves(sinkproof_supposition *s, const sinkproof_mistake *m) {
    return moved(s, m->slots, m->by > 0 ? sinkproof_from_halves : sinkproof_from_neighbours,
                 2 * s->config.inter);
}
static bool rows_shifted(sinkproof_supposition *s, const sinkproof_mistake *m) {
    return moved(s, m->slots, sinkproof_from_shifted, (size_t)m->by);
}

static bool columns(sinkproof_supposition *s, unsigned slots, sinkproof_read_from *from,
                    size_t by) {
    sinkproof_weight_edit *e = edit(s, slots);
    if (e != NULL) e->reading.column = from, e->reading.column_by = by;
    return e != NULL;
}
// The output projection's columns in the order coordinate by coordinate, not head by head.
static bool outputs_transposed(sinkproof_supposition *s, const sinkproof_mistake *m) {
    return columns(s, m->slots, sinkproof_from_transposed, s->config.n_heads);
}
static bool nibbles_exchanged(sinkproof_supposition *s, const sinkproof_mistake *m) {
    return columns(s, m->slots, sinkproof_from_pairs, 0);
}
static bool nibbles_in_halves(sinkproof_supposition *s, const sinkproof_mistake *m) {
    return columns(s, m->slots, m->by > 0 ? sinkproof_from_halves : sinkproof_from_neighbours, 32);
}

// ---- an override of the policy

bool sinkproof_overrides(sinkproof_supposition *s, const sinkproof_mistake *m) {
    char text[sizeof s->policy.name + 64];
    sinkproof_policy before = s->policy;
    snprintf(text, sizeof text, "%s,%s", s->policy.name, m->override);
    if (!sinkproof_policy_parse(text, &s->policy, NULL)) return false;
    memcpy(before.name, s->policy.name, sizeof before.name);
    return memcmp(&before, &s->policy, sizeof before) != 0;
}

// ---- the catalogue

#define OF(slot) (1u << SINKPROOF_##slot)
#define OF_NORMS (OF(ATTN_NORM) | OF(MLP_NORM) | OF(FINAL_NORM))
#define LOG2E    1.4426950408889634
#define LN2      0.6931471805599453

// clang-format off
static const sinkproof_mistake catalogue[] = {
#include "audit/diagnose/catalogue.inc"
};
// clang-format on

enum { WRITTEN = sizeof catalogue / sizeof catalogue[0] };

size_t sinkproof_written(void) {
    return WRITTEN;
}

const sinkproof_mistake *sinkproof_written_at(size_t i) {
    return i < WRITTEN ? &catalogue[i] : NULL;
}

bool sinkproof_mistake_may_overflow(const sinkproof_mistake *m) {
    bool unshifted = m->by == SINKPROOF_SINK_UNSHIFTED || m->by == SINKPROOF_SINK_UNSHIFTED_KEYS;
    bool narrow = m->override != NULL && strstr(m->override, "=f16") != NULL;
    return narrow || (m->suppose == eps_is && m->by == 0) ||
           (m->suppose == share_of_sink && unshifted);
}

bool sinkproof_mistake_stands_alone(const sinkproof_mistake *m) {
    return m->override != NULL && strstr(m->override, ".acc=") != NULL;
}
