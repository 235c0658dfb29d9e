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

static bool widen_window(supposed_engine *s, const known_mistake *m) {
    double window = (double)s->config.window + m->by;
    s->config.window = window >= 1 ? (size_t)window : 1;
    return any_sliding(&s->config, true) && window >= 1;
}

static bool scale_window(supposed_engine *s, const known_mistake *m) {
    double window = floor((double)s->config.window * m->by);
    s->config.window = window >= 1 ? (size_t)window : 1;
    return any_sliding(&s->config, true) && window >= 1;
}

// by 0: no layer slides; 1: every layer slides; -1: the layers that slide are exchanged.
static bool change_sliding_layers(supposed_engine *s, const known_mistake *m) {
    sinkproof_config *c = &s->config;
    for (size_t l = 0; l < c->n_layers; l++) c->sliding[l] = m->by < 0 ? !c->sliding[l] : m->by > 0;
    return true;
}

static bool set_eps(supposed_engine *s, const known_mistake *m) {
    s->config.rms_eps = m->by;
    return true;
}

static bool set_alpha(supposed_engine *s, const known_mistake *m) {
    s->config.swiglu.alpha = m->by;
    return true;
}

static bool set_limit(supposed_engine *s, const known_mistake *m) {
    s->config.swiglu.limit = m->by;
    return true;
}

static bool set_theta(supposed_engine *s, const known_mistake *m) {
    s->config.rotation.theta = m->by;
    return true;
}

static bool set_factor(supposed_engine *s, const known_mistake *m) {
    s->config.rotation.factor = m->by;
    return true;
}

// Trained frequencies that are all interpolated: positions are divided by the factor.
static bool interpolate_all_frequencies(supposed_engine *s, const known_mistake *m) {
    (void)m;
    s->meaning.query.position_times = s->meaning.key.position_times = 1 / s->config.rotation.factor;
    s->config.rotation.factor = 1;
    return true;
}

// Trained frequencies with the concentration of the definition.
static bool concentrated_alone(supposed_engine *s, const known_mistake *m) {
    double concentration =
        s->config.rotation.factor > 1 ? 0.1 * log(s->config.rotation.factor) + 1 : 1;
    (void)m;
    s->meaning.query.concentration = s->meaning.key.concentration = concentration;
    s->config.rotation.factor = 1;
    return true;
}

static bool invert_ramp(supposed_engine *s, const known_mistake *m) {
    double fast = s->config.rotation.beta_fast;
    (void)m;
    s->config.rotation.beta_fast = s->config.rotation.beta_slow,
    s->config.rotation.beta_slow = fast;
    return true;
}

static bool set_context(supposed_engine *s, const known_mistake *m) {
    s->config.rotation.original_context = m->by > 0 ? (size_t)m->by : s->config.max_context;
    return true;
}

// ---- changes of the meaning

static bool change_sink_share(supposed_engine *s, const known_mistake *m) {
    s->meaning.sink_share = (sinkproof_sink_share)m->by;
    return true;
}

static bool count_sink_per_part(supposed_engine *s, const known_mistake *m) {
    s->meaning.attending.sink_per_part = true;
    s->meaning.attending.parting = SINKPROOF_PARTS_OF, s->meaning.attending.part = (size_t)m->by;
    return true;
}

static bool sink_has_value(supposed_engine *s, const known_mistake *m) {
    (void)m;
    s->meaning.sink_has_value = true;
    return true;
}

static bool see_all_keys(supposed_engine *s, const known_mistake *m) {
    (void)m;
    s->meaning.sees_all = true;
    return true;
}

// Mistakes of single kernels, which were found in calls. In traces of whole models they are not
// supposed.
static bool see_later_keys(supposed_engine *s, const known_mistake *m) {
    s->meaning.sees_later = (size_t)m->by;
    if (s->pass > 0) s->meaning.passes = (sinkproof_passes){s->pass, s->pass};
    return s->call && s->rows > 1;
}

// by: the passes are known (1), or the call has a second piece that begins at a supposed row (2).
static bool suppose_passes(supposed_engine *s, const known_mistake *m) {
    size_t first = m->by == 1 ? s->pass : s->piece;
    s->meaning.passes = (sinkproof_passes){first, m->by == 1 ? first : s->rows};
    return s->call && first > 0 && first < s->rows;
}

static bool leave_cache_unread(supposed_engine *s, const known_mistake *m) {
    s->meaning.cache_unread = true;
    return suppose_passes(s, m);
}

static bool begin_positions_anew(supposed_engine *s, const known_mistake *m) {
    s->meaning.positions_anew = true;
    return suppose_passes(s, m);
}

// by: the power of sqrt(head_dim) that multiplies the score.
static bool scale_scores(supposed_engine *s, const known_mistake *m) {
    s->meaning.attending.score_times *= pow((double)s->config.head_dim, m->by / 2);
    return true;
}

static bool map_heads_by_modulus(supposed_engine *s, const known_mistake *m) {
    (void)m;
    s->meaning.attending.group = SINKPROOF_GROUP_MODULUS;
    return s->config.n_kv_heads > 1 && s->config.n_kv_heads < s->config.n_heads;
}

// Bits of `slots`: which of the two rotations.
enum { QUERIES = 1, KEYS = 2, BOTH = 3 };
typedef void turning_change(sinkproof_turning *turning, double by);

static bool change_turning(supposed_engine *s, const known_mistake *m, turning_change *change) {
    if (m->slots & QUERIES) change(&s->meaning.query, m->by);
    if (m->slots & KEYS) change(&s->meaning.key, m->by);
    return true;
}

static void turn_neighbours(sinkproof_turning *t, double by) {
    (void)by;
    t->neighbours = true;
}
static void reverse_turning(sinkproof_turning *t, double by) {
    (void)by;
    t->backwards = true;
}
static void skip_turning(sinkproof_turning *t, double by) {
    (void)by;
    t->turned = false;
}
static void shift_turning_position(sinkproof_turning *t, double by) {
    t->position_by += by;
}
static void drop_turning_concentration(sinkproof_turning *t, double by) {
    t->without_concentration += (int)by;
}

static bool turn_neighbour_pairs(supposed_engine *s, const known_mistake *m) {
    return change_turning(s, m, turn_neighbours);
}
static bool turn_backwards(supposed_engine *s, const known_mistake *m) {
    return change_turning(s, m, reverse_turning);
}
static bool leave_unturned(supposed_engine *s, const known_mistake *m) {
    return change_turning(s, m, skip_turning);
}
static bool change_turn_position(supposed_engine *s, const known_mistake *m) {
    return change_turning(s, m, shift_turning_position);
}
static bool drop_concentration(supposed_engine *s, const known_mistake *m) {
    return s->config.rotation.factor > 1 && change_turning(s, m, drop_turning_concentration);
}

static bool add_eps_outside(supposed_engine *s, const known_mistake *m) {
    (void)m;
    s->meaning.eps_outside = true;
    return true;
}

static bool centre_norm(supposed_engine *s, const known_mistake *m) {
    (void)m;
    s->meaning.centred = true;
    return true;
}

// The sum of a residual: `by` multiplies x, `slots` changes t.
static bool change_residual(supposed_engine *s, const known_mistake *m) {
    bool attention = (m->points & 1u << TRACE_A13) != 0;
    sinkproof_joining *how = attention ? &s->meaning.after_values : &s->meaning.after_experts;
    *how = (sinkproof_joining){m->by, m->slots};
    return true;
}

static bool change_selection(supposed_engine *s, const known_mistake *m) {
    s->meaning.selection = (sinkproof_selection)m->by;
    return s->config.n_chosen < s->config.n_experts;
}

static bool change_expert_shares(supposed_engine *s, const known_mistake *m) {
    s->meaning.share = (sinkproof_expert_share)m->by;
    return true;
}

static bool change_mixing(supposed_engine *s, const known_mistake *m) {
    s->meaning.mixed = (sinkproof_mixing)m->by;
    return true;
}

static bool scale_mixture(supposed_engine *s, const known_mistake *m) {
    s->meaning.mixture_times = m->by > 0 ? m->by : 1 / (double)s->config.n_chosen;
    return true;
}

static bool leave_out_slots(supposed_engine *s, const known_mistake *m) {
    s->meaning.slots_left_out = (size_t)m->by;
    return s->config.n_chosen > s->meaning.slots_left_out;
}

static bool change_pairing(supposed_engine *s, const known_mistake *m) {
    s->meaning.pairing = (sinkproof_pairing)m->by;
    return true;
}

static bool set_gate_low(supposed_engine *s, const known_mistake *m) {
    s->meaning.gate_low = m->by;
    return true;
}
static bool set_gate_high(supposed_engine *s, const known_mistake *m) {
    s->meaning.gate_high = m->by;
    return true;
}
static bool set_up_low(supposed_engine *s, const known_mistake *m) {
    s->meaning.up_low = m->by;
    return true;
}
static bool set_up_limits(supposed_engine *s, const known_mistake *m) {
    s->meaning.up_low = -m->by, s->meaning.up_high = m->by;
    return true;
}
static bool set_up_offset(supposed_engine *s, const known_mistake *m) {
    s->meaning.up_plus = m->by;
    return true;
}

// ---- changes of weights

mistake_weight_edit *add_weight_edit(supposed_engine *s, unsigned slots) {
    if (s->n_edits == WEIGHT_EDITS) return NULL;
    s->edits[s->n_edits] = (mistake_weight_edit){.slots = slots, .reading = {.factor = 1}};
    return &s->edits[s->n_edits++];
}

static bool scale_weights(supposed_engine *s, const known_mistake *m) {
    mistake_weight_edit *e = add_weight_edit(s, m->slots);
    if (e != NULL) e->reading.factor = m->by;
    return e != NULL;
}

// by: the power of sqrt(hidden).
static bool scale_weights_by_width(supposed_engine *s, const known_mistake *m) {
    mistake_weight_edit *e = add_weight_edit(s, m->slots);
    if (e != NULL) e->reading.factor = pow((double)s->config.hidden, m->by / 2);
    return e != NULL;
}

static bool add_to_weights(supposed_engine *s, const known_mistake *m) {
    mistake_weight_edit *e = add_weight_edit(s, m->slots);
    if (e != NULL) e->reading.addend = m->by;
    return e != NULL;
}

static bool set_weights(supposed_engine *s, const known_mistake *m) {
    mistake_weight_edit *e = add_weight_edit(s, m->slots);
    if (e != NULL) e->reading.factor = 0, e->reading.addend = m->by;
    return e != NULL;
}

static bool borrow_layer(supposed_engine *s, const known_mistake *m) {
    mistake_weight_edit *e = add_weight_edit(s, m->slots);
    if (e != NULL) e->borrowed = true, e->from = SINKPROOF_SLOTS, e->layer_by = (int)m->by;
    return e != NULL && s->config.n_layers > 1;
}

static bool borrow_expert(supposed_engine *s, const known_mistake *m) {
    mistake_weight_edit *e = add_weight_edit(s, m->slots);
    double experts = (double)s->config.n_experts;
    if (e != NULL) e->reading.expert_by = (size_t)fmod(m->by + experts, experts);
    return e != NULL && s->config.n_experts > 1;
}

static bool borrow_slot(supposed_engine *s, sinkproof_slot slot, sinkproof_slot from) {
    mistake_weight_edit *e = add_weight_edit(s, 1u << slot);
    if (e != NULL) e->borrowed = true, e->from = from;
    return e != NULL;
}

static bool exchange_norms(supposed_engine *s, const known_mistake *m) {
    (void)m;
    return !s->call && borrow_slot(s, SINKPROOF_ATTN_NORM, SINKPROOF_MLP_NORM) &&
           borrow_slot(s, SINKPROOF_MLP_NORM, SINKPROOF_ATTN_NORM);
}

static bool exchange_values(supposed_engine *s, const known_mistake *m) {
    (void)m;
    return borrow_slot(s, SINKPROOF_W_K, SINKPROOF_W_V) &&
           borrow_slot(s, SINKPROOF_B_K, SINKPROOF_B_V) &&
           borrow_slot(s, SINKPROOF_W_V, SINKPROOF_W_K) &&
           borrow_slot(s, SINKPROOF_B_V, SINKPROOF_B_K);
}

static bool tie_unembedding(supposed_engine *s, const known_mistake *m) {
    (void)m;
    return !s->call && borrow_slot(s, SINKPROOF_UNEMBEDDING, SINKPROOF_EMBEDDING);
}

static bool has_sink_logits(const sinkproof_config *c) {
    return sinkproof_sinks_stored(c) == SINKPROOF_SINK_NUMBER;
}

// Reads the rows of a matrix, or the elements of a vector, from other places.
static bool move_rows(supposed_engine *s, unsigned slots, sinkproof_read_from *from, size_t by) {
    for (int slot = 0; slot < SINKPROOF_SLOTS; slot++) {
        if ((slots >> slot & 1) == 0) continue;
        mistake_weight_edit *e = add_weight_edit(s, 1u << slot);
        if (e == NULL) return false;
        if (sinkproof_slot_is_vector((sinkproof_slot)slot, &s->config))
            e->reading.column = from, e->reading.column_by = by;
        else
            e->reading.row = from, e->reading.row_by = by;
    }
    return true;
}

static bool drop_sinks(supposed_engine *s, const known_mistake *m) {
    return has_sink_logits(&s->config) && set_weights(s, m);
}
static bool scale_sinks(supposed_engine *s, const known_mistake *m) {
    return has_sink_logits(&s->config) && scale_weights(s, m);
}
#define LOG2E 1.4426950408889634
// In base 2, with the product by log2(e) rounded to bfloat16.
static bool round_sinks_in_base_2(supposed_engine *s, const known_mistake *m) {
    mistake_weight_edit *e = has_sink_logits(&s->config) ? add_weight_edit(s, m->slots) : NULL;
    if (e == NULL) return false;
    e->reading.factor = m->by, e->reading.product = SINKPROOF_BF16, e->reading.then = 1 / LOG2E;
    return true;
}
// by: the power of sqrt(head_dim).
static bool scale_sinks_like_scores(supposed_engine *s, const known_mistake *m) {
    mistake_weight_edit *e = add_weight_edit(s, m->slots);
    if (e != NULL) e->reading.factor = pow((double)s->config.head_dim, m->by / 2);
    return e != NULL && has_sink_logits(&s->config);
}
static bool shift_sinks(supposed_engine *s, const known_mistake *m) {
    size_t heads = s->config.n_heads, by = m->by < 0 ? heads - 1 : 1;
    return has_sink_logits(&s->config) && move_rows(s, m->slots, read_from_shifted, by);
}
static bool share_group_sinks(supposed_engine *s, const known_mistake *m) {
    size_t each = s->config.n_heads / s->config.n_kv_heads;
    return has_sink_logits(&s->config) && each > 1 &&
           move_rows(s, m->slots, m->by > 0 ? read_from_first_of : read_from_quotient, each);
}
static bool transpose_sinks(supposed_engine *s, const known_mistake *m) {
    return has_sink_logits(&s->config) &&
           move_rows(s, m->slots, read_from_transposed, s->config.n_kv_heads);
}
static bool reverse_sinks(supposed_engine *s, const known_mistake *m) {
    return has_sink_logits(&s->config) && move_rows(s, m->slots, read_from_reversed, 0);
}

// The coordinates of every head: neighbours in place of halves, or halves in place of neighbours.
static bool reorder_head_halves(supposed_engine *s, const known_mistake *m) {
    return move_rows(s, m->slots, m->by > 0 ? read_from_halves : read_from_neighbours,
                     s->config.head_dim);
}
static bool transpose_heads(supposed_engine *s, const known_mistake *m) {
    return move_rows(s, m->slots, read_from_heads_modulo,
                     s->config.n_kv_heads << 32 | s->config.head_dim);
}
static bool exchange_rows(supposed_engine *s, const known_mistake *m) {
    return move_rows(s, m->slots, read_from_pairs, 0);
}
static bool order_rows_in_halves(supposed_engine *s, const known_mistake *m) {
    return move_rows(s, m->slots, m->by > 0 ? read_from_halves : read_from_neighbours,
                     2 * s->config.inter);
}
static bool shift_rows(supposed_engine *s, const known_mistake *m) {
    return move_rows(s, m->slots, read_from_shifted, (size_t)m->by);
}

static bool move_columns(supposed_engine *s, unsigned slots, sinkproof_read_from *from, size_t by) {
    mistake_weight_edit *e = add_weight_edit(s, slots);
    if (e != NULL) e->reading.column = from, e->reading.column_by = by;
    return e != NULL;
}
// The output projection's columns in the order coordinate by coordinate, not head by head.
static bool transpose_outputs(supposed_engine *s, const known_mistake *m) {
    return move_columns(s, m->slots, read_from_transposed, s->config.n_heads);
}
static bool exchange_nibbles(supposed_engine *s, const known_mistake *m) {
    return move_columns(s, m->slots, read_from_pairs, 0);
}
static bool order_nibbles_in_halves(supposed_engine *s, const known_mistake *m) {
    return move_columns(s, m->slots, m->by > 0 ? read_from_halves : read_from_neighbours, 32);
}

// ---- an override of the policy

bool rounding_override_count(supposed_engine *s, const known_mistake *m) {
    char text[sizeof s->policy.name + 64];
    sinkproof_policy before = s->policy;
    snprintf(text, sizeof text, "%s,%s", s->policy.name, m->override);
    if (!sinkproof_policy_parse(text, &s->policy, NULL)) return false;
    memcpy(before.name, s->policy.name, sizeof before.name);
    return memcmp(&before, &s->policy, sizeof before) != 0;
}

// Several roundings at once, which a kernel has together.
static bool round_in_call(supposed_engine *s, const known_mistake *m) {
    return s->call && rounding_override_count(s, m);
}

// Where the rotation is not YaRN's there is no ramp.
static bool truncate_ramp(supposed_engine *s, const known_mistake *m) {
    return s->config.rotation.kind == SINKPROOF_YARN && rounding_override_count(s, m);
}

// ---- the catalogue

#define OF(slot) (1u << SINKPROOF_##slot)
#define OF_NORMS (OF(ATTN_NORM) | OF(MLP_NORM) | OF(FINAL_NORM))
#define LN2      0.6931471805599453

// clang-format off
static const known_mistake catalogue[] = {
#include "audit/diagnose/catalogue.inc"
};
// clang-format on

enum { WRITTEN = sizeof catalogue / sizeof catalogue[0] };

size_t written_mistake_count(void) {
    return WRITTEN;
}

const known_mistake *written_mistake_at(size_t i) {
    return i < WRITTEN ? &catalogue[i] : NULL;
}

bool mistake_may_overflow(const known_mistake *m) {
    bool unshifted = m->by == SINKPROOF_SINK_UNSHIFTED || m->by == SINKPROOF_SINK_UNSHIFTED_KEYS;
    bool narrow = m->override != NULL && strstr(m->override, "=f16") != NULL;
    return narrow || (m->suppose == set_eps && m->by == 0) ||
           (m->suppose == change_sink_share && unshifted);
}

bool mistake_stands_alone(const known_mistake *m) {
    return m->override != NULL && strstr(m->override, ".acc=") != NULL;
}
