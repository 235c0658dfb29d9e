// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One function for each structure passes its members, for the writer and the reader alike: the two
// cannot differ.
#include "audit/verify/truth_store.h"
#include "base/fnv.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct stream {
    bool writes, good; // good: every word was there and fits
    uint8_t *made;     // the writer's
    const uint8_t *read;
    size_t at, length, room;
} stream;

static void write_bytes(stream *s, const void *bytes, size_t length) {
    if (s->at + length > s->room) {
        s->room = 2 * (s->at + length) + 4096;
        s->made = realloc(s->made, s->room);
        if (s->made == NULL) abort();
    }
    memcpy(s->made + s->at, bytes, length);
    s->at += length;
}

static uint64_t pass_word(stream *s, uint64_t word) {
    uint8_t byte[8];
    if (s->writes) {
        for (int i = 0; i < 8; i++) byte[i] = (uint8_t)(word >> 8 * i);
        write_bytes(s, byte, sizeof byte);
        return word;
    }
    if (s->length - s->at < 8) s->good = false;
    if (!s->good) return 0;
    word = 0;
    for (int i = 0; i < 8; i++) word |= (uint64_t)s->read[s->at++] << 8 * i;
    return word;
}

static void pass_size(stream *s, size_t *size, size_t most) {
    uint64_t word = pass_word(s, *size);
    if (word > most) s->good = false;
    *size = s->good ? (size_t)word : 0;
}

static void pass_real(stream *s, double *real) {
    uint64_t word;
    memcpy(&word, real, sizeof word);
    word = pass_word(s, word);
    memcpy(real, &word, sizeof word);
}

// ---- balls

enum { IS_ZERO, IS_NUMBER, IS_INFINITE, IS_NAN }; // the lowest two bits of a midpoint's first word
enum { LIMB_BITS = 64 };
static const uint64_t most_exponent = UINT64_C(1) << 60;

// An exponent as an unsigned word around 2^60.
static bool exponent_word(const fmpz *exponent, uint64_t *word) {
    if (COEFF_IS_MPZ(*exponent) || *exponent < -(slong)most_exponent ||
        *exponent > (slong)most_exponent)
        return false;
    *word = (uint64_t)*exponent + most_exponent;
    return true;
}

static bool pass_exponent(stream *s, uint64_t *word, slong *exponent) {
    *word = pass_word(s, *word);
    if (*word > 2 * most_exponent) s->good = false;
    if (s->good) *exponent = (slong)*word - (slong)most_exponent;
    return s->good;
}

static void write_middle(stream *s, arf_srcptr x) {
    mp_srcptr limb_k = NULL;
    mp_size_t n = 0;
    uint64_t word = 0, sign = !arf_is_nan(x) && arf_sgn(x) < 0;
    uint64_t kind = arf_is_nan(x)       ? IS_NAN
                    : arf_is_zero(x)    ? IS_ZERO
                    : arf_is_special(x) ? IS_INFINITE
                                        : IS_NUMBER;
    if (kind == IS_NUMBER) {
        ARF_GET_MPN_READONLY(limb_k, n, x);
        s->good = exponent_word(ARF_EXPREF(x), &word) && s->good;
    }
    pass_word(s, kind | sign << 2 | (uint64_t)n << 3);
    if (kind == IS_NUMBER) pass_word(s, word);
    for (mp_size_t k = 0; k < n; k++) pass_word(s, limb_k[k]);
}

// A fraction in [1/2, 1) of n limbs times 2^exponent; the first limb and the last are not 0.
static void read_number(stream *s, arf_ptr x, size_t n, bool negative) {
    uint64_t word = 0;
    slong exponent;
    if (n == 0 || n > (s->length - s->at) / 8) s->good = false;
    if (!s->good || !pass_exponent(s, &word, &exponent)) return;
    mp_ptr limb_k = malloc(n * sizeof *limb_k);
    if (limb_k == NULL) abort();
    for (size_t k = 0; k < n; k++) limb_k[k] = pass_word(s, 0);
    if (s->good && limb_k[n - 1] >> (LIMB_BITS - 1) == 1 && limb_k[0] != 0) {
        arf_set_mpn(x, limb_k, (mp_size_t)n, negative);
        arf_mul_2exp_si(x, x, exponent - LIMB_BITS * (slong)n);
    } else {
        s->good = false;
    }
    free(limb_k);
}

static void read_middle(stream *s, arf_ptr x) {
    uint64_t word = pass_word(s, 0);
    bool negative = word >> 2 & 1;
    switch (word & 3) {
    case IS_NUMBER:
        read_number(s, x, (size_t)(word >> 3), negative);
        return;
    case IS_INFINITE:
        if (negative)
            arf_neg_inf(x);
        else
            arf_pos_inf(x);
        return;
    case IS_NAN:
        arf_nan(x);
        return;
    default:
        arf_zero(x);
    }
}

// The radius: 0, 1 for an infinite one, or a mantissa of MAG_BITS bits and the exponent.
static void pass_radius(stream *s, mag_ptr x) {
    uint64_t mantissa = 0, word = 0;
    slong exponent;
    if (s->writes) {
        mantissa = mag_is_inf(x) ? 1 : mag_is_zero(x) ? 0 : MAG_MAN(x);
        if (mantissa > 1) s->good = exponent_word(MAG_EXPREF(x), &word) && s->good;
    }
    mantissa = pass_word(s, mantissa);
    if (mantissa > 1 && !pass_exponent(s, &word, &exponent)) return;
    if (s->writes) return;
    if (mantissa == 1)
        mag_inf(x);
    else if (mantissa == 0)
        mag_zero(x);
    else if (mantissa >> (MAG_BITS - 1) == 1)
        mag_set_ui_2exp_si(x, mantissa, exponent - MAG_BITS);
    else
        s->good = false;
}

static void pass_ball(stream *s, arb_ptr x) {
    if (s->writes)
        write_middle(s, arb_midref(x));
    else
        read_middle(s, arb_midref(x));
    pass_radius(s, arb_radref(x));
}

// ---- the state and the accounts

static void pass_routing(stream *s, sinkproof_truth_routing *r, const truth_study *study) {
    size_t layers = study->config->n_layers;
    pass_size(s, &r->choices, SIZE_MAX);
    pass_size(s, &r->ties, r->choices);
    pass_size(s, &r->ambiguous, r->choices);
    pass_size(s, &r->contested, r->choices);
    pass_size(s, &r->layer, layers);
    pass_size(s, &r->token, study->n);
    pass_ball(s, r->margin);
    pass_size(s, &r->first_layer, layers);
    pass_size(s, &r->first_token, study->n);
    pass_ball(s, r->first_margin);
}

static void pass_summary(stream *s, truth_summary *m, sinkproof_trace_point point,
                         const truth_study *study) {
    size_t format = m->format;
    pass_size(s, &m->elements, SIZE_MAX);
    pass_size(s, &m->infinite, m->elements);
    pass_real(s, &m->radius_log2);
    pass_real(s, &m->relative_log2);
    pass_size(s, &m->relative_layer, study->config->n_layers);
    pass_size(s, &m->relative_at, m->elements);
    pass_size(s, &m->compared, m->elements);
    pass_size(s, &format, SINKPROOF_FORMATS - 1);
    pass_real(s, &m->distance);
    pass_real(s, &m->ulp);
    pass_size(s, &m->ulp_layer, study->config->n_layers);
    pass_size(s, &m->ulp_at, m->elements);
    m->format = (sinkproof_format)format;
    if (m->elements > 0) m->rank = sinkproof_trace_shape(study->config, point, study->n, m->shape);
}

static void pass_depth(stream *s, truth_depth *depth) {
    pass_size(s, &depth->elements, SIZE_MAX);
    pass_size(s, &depth->known, depth->elements);
    pass_real(s, &depth->radius_log2);
}

static void pass_all(stream *s, truth_store *store, truth_study *study) {
    sinkproof_truth_state *state = &store->state;
    pass_size(s, &store->bits, 1 << 20);
    pass_size(s, &store->repeats, SIZE_MAX);
    pass_size(s, &store->points, SIZE_MAX);
    store->points_sum = pass_word(s, store->points_sum);
    pass_size(s, &state->layers, study->config->n_layers);
    pass_routing(s, &state->routing, study);
    pass_size(s, &state->checks.products, SIZE_MAX);
    pass_size(s, &state->checks.rows, SIZE_MAX);
    pass_size(s, &state->checks.broken, state->checks.rows);
    pass_size(s, &state->checks.unchecked, SIZE_MAX);
    for (int p = 0; p < TRACE_POINTS; p++)
        pass_summary(s, &study->points[p], (sinkproof_trace_point)p, study);
    for (size_t l = 0; l < state->layers; l++) pass_depth(s, &study->layers[l]);
    for (size_t k = 0; k < study->n * study->config->hidden && s->good; k++)
        pass_ball(s, state->values + k);
}

uint8_t *store_bytes(const char *identity, const truth_store *store, const truth_study *study,
                     size_t *length) {
    stream s = {.writes = true, .good = true};
    truth_store same = *store; // a writer changes nothing
    truth_study *studied = (truth_study *)(uintptr_t)study;
    write_bytes(&s, identity, strlen(identity));
    write_bytes(&s, "\n", 1);
    pass_all(&s, &same, studied);
    pass_word(&s, sinkproof_fnv(SINKPROOF_FNV_NOTHING, s.made, s.at));
    *length = s.at;
    if (s.good) return s.made;
    free(s.made);
    return NULL;
}

// ---- reading

// The lines must be the same: an error names the first that is not.
static bool same_identity(const uint8_t *bytes, size_t length, const char *name,
                          const char *identity, sinkproof_error *error) {
    size_t at = 0, own = strlen(identity);
    while (at < own && at < length && bytes[at] == (uint8_t)identity[at]) at++;
    if (at == own && at < length && bytes[at] == '\n') return true;
    while (at > 0 && identity[at - 1] != '\n') at--;
    char found[80];
    size_t n = 0;
    for (; n + 1 < sizeof found && at + n < length && bytes[at + n] != '\n'; n++)
        found[n] = bytes[at + n] >= ' ' && bytes[at + n] < 127 ? (char)bytes[at + n] : '?';
    found[n] = '\0';
    return sinkproof_fail(error,
                          "%s: the work of another run: expected \"%.*s\", found \"%s\"; remove it "
                          "or name another file",
                          name, (int)strcspn(identity + at, "\n"), identity + at, found);
}

bool store_parse(const uint8_t *bytes, size_t length, const char *name, const char *identity,
                 truth_store *store, truth_study *study, sinkproof_error *error) {
    *store = (truth_store){.bits = 0};
    if (!same_identity(bytes, length, name, identity, error)) return false;
    stream s = {.good = true, .read = bytes, .at = strlen(identity) + 1, .length = length - 8};
    stream last = {.good = length >= s.at + 8, .read = bytes, .at = length - 8, .length = length};
    uint64_t sum = pass_word(&last, 0);
    if (!last.good || sum != sinkproof_fnv(SINKPROOF_FNV_NOTHING, bytes, length - 8))
        return sinkproof_fail(error, "%s: a damaged work file: its sum is not that of its bytes",
                              name);
    store->state.values = ball_vector(study->n * study->config->hidden);
    store->state.routing.margin = ball_vector(1);
    store->state.routing.first_margin = ball_vector(1);
    pass_all(&s, store, study);
    if (s.good && s.at == s.length && store->state.layers > 0 && store->bits >= 32) return true;
    sinkproof_store_clear(store, study);
    return sinkproof_fail(error, "%s: a malformed work file: no state of this model at byte %zu",
                          name, s.at);
}

void sinkproof_store_clear(truth_store *store, const truth_study *study) {
    ball_vector_release(store->state.values, study->n * study->config->hidden);
    ball_vector_release(store->state.routing.margin, 1);
    ball_vector_release(store->state.routing.first_margin, 1);
    *store = (truth_store){.bits = 0};
}
