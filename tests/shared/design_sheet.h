// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The intermediate results of an engine of a design, computed by the reference and written to a
// file in memory, and the judge's verdicts on it. Two heads share keys and values.
#ifndef SINKPROOF_DESIGN_SHEET_H
#define SINKPROOF_DESIGN_SHEET_H

#include "audit/designs/choices.h"
#include "audit/designs/design_judge.h"
#include "proofs/truth/lattice.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <string.h>

enum { N = SINKPROOF_EDGE_N, DIM = SINKPROOF_EDGE_DIM, HIDDEN = SINKPROOF_EDGE_HIDDEN, HEADS = 2 };
enum { MOST = 2048, DESIGNS = 80 };

// ---- the file's arrays

typedef struct array {
    char name[32];
    sinkproof_dtype dtype;
    size_t rank, shape[3], count;
    double *x; // or int32_t
} array;

typedef struct sheet {
    size_t count, designs;
    array arrays[MOST];
    char design[DESIGNS][64];
    const char *format;
} sheet;

static char message[1024]; // the error about the last file

static void drop(sheet *s) {
    for (size_t i = 0; i < s->count; i++) free(s->arrays[i].x);
    s->count = s->designs = 0;
}

static array *add(sheet *s, size_t layer, const char *name, size_t rank, const size_t *shape) {
    array *a = &s->arrays[s->count++];
    *a = (array){.dtype = SINKPROOF_DTYPE_F64, .rank = rank, .count = 1};
    snprintf(a->name, sizeof a->name, "%02zu.%s", layer, name);
    for (size_t r = 0; r < rank; r++) a->count *= a->shape[r] = shape[r];
    a->x = calloc(a->count, sizeof *a->x);
    must(a->x != NULL);
    return a;
}

static array *find(sheet *s, size_t layer, const char *name) {
    char full[32];
    snprintf(full, sizeof full, "%02zu.%s", layer, name);
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->arrays[i].name, full) == 0) return &s->arrays[i];
    return NULL;
}

// Writes the arrays that `kept` keeps, of one layer or of all (layer == DESIGNS), to a file in
// memory.
static void write_file(const sheet *s, size_t layer, uint64_t left_out, char **bytes,
                       size_t *length) {
    sinkproof_safetensors_writer *w = sinkproof_safetensors_writer_new();
    sinkproof_error error = {{0}};
    char key[32], prefix[24];
    snprintf(prefix, sizeof prefix, "%02zu.", layer);
    sinkproof_safetensors_writer_metadata(w, "format", s->format);
    for (size_t l = 0; l < s->designs; l++) {
        snprintf(key, sizeof key, "%02zu.design", l);
        sinkproof_safetensors_writer_metadata(w, key, s->design[l]);
    }
    for (int pass = 0; pass < 2; pass++) {
        size_t place = 0;
        if (pass == 1) must(sinkproof_safetensors_writer_begin_memory(w, bytes, length, &error));
        for (size_t i = 0; i < s->count; i++) {
            const array *a = &s->arrays[i];
            if (layer < DESIGNS && strncmp(a->name, prefix, strlen(prefix)) != 0) continue;
            if (left_out >> (place++ % 64) & 1) continue;
            size_t size = a->dtype == SINKPROOF_DTYPE_F64 ? sizeof(double) : sizeof(int32_t);
            if (pass == 0)
                sinkproof_safetensors_writer_declare(w, a->name, a->dtype, a->rank, a->shape);
            else
                must(sinkproof_safetensors_writer_bytes(w, a->x, a->count * size, &error));
        }
    }
    must(sinkproof_safetensors_writer_finish(w, &error));
    sinkproof_safetensors_writer_free(w);
}

// ---- its verdicts

typedef struct hearing {
    char *bytes;
    sinkproof_design_trace trace;
    sinkproof_design_judgement judged;
    bool read, fine;
} hearing;

static hearing hear(const sheet *s, size_t layer, uint64_t left_out, const char *policy) {
    hearing out = {0};
    size_t length;
    sinkproof_error error = {{0}};
    sinkproof_policy parsed;
    write_file(s, layer, left_out, &out.bytes, &length);
    must(sinkproof_policy_parse(policy, &parsed, &error));
    out.read = sinkproof_design_trace_parse((uint8_t *)out.bytes, length, "engine.safetensors",
                                            &out.trace, &error);
    out.fine = out.read && sinkproof_design_judge(&out.trace, &parsed, &out.judged, &error);
    memcpy(message, error.text, sizeof message);
    return out;
}

static void dismiss(hearing *h) {
    if (h->fine) sinkproof_design_judgement_free(&h->judged);
    if (h->read) sinkproof_design_trace_close(&h->trace);
    free(h->bytes);
}

static const design_verdict *verdict(const hearing *h, size_t layer, const char *name) {
    for (size_t k = 0; h->fine && k < h->judged.count; k++) {
        const design_verdict *v = &h->judged.verdicts[k];
        if (v->layer->layer == layer && strcmp(design_tensor_name(v->tensor), name) == 0) return v;
    }
    return NULL;
}

static size_t outside(const hearing *h) {
    size_t all = 0;
    for (size_t k = 0; h->fine && k < h->judged.count; k++) all += h->judged.verdicts[k].outside;
    return all;
}

// The first step with an element outside, such as "00.alpha"; "" if there is none.
static const char *convicted(const hearing *h) {
    static char name[32];
    name[0] = '\0';
    for (size_t k = 0; h->fine && name[0] == '\0' && k < h->judged.count; k++)
        if (h->judged.verdicts[k].outside > 0)
            snprintf(name, sizeof name, "%02zu.%s", h->judged.verdicts[k].layer->layer,
                     design_tensor_name(h->judged.verdicts[k].tensor));
    return name;
}

// ---- the reference's results

// The second head has queries, a star, a slope and a gate of its own.
static void draw(sinkproof_drawn_head drawn[HEADS]) {
    sinkproof_drawn_head other;
    sinkproof_head_draw(&drawn[0], 7);
    sinkproof_head_draw(&other, 8);
    drawn[1] = drawn[0];
    memcpy(drawn[1].wq_cd, other.wq_cd, sizeof other.wq_cd);
    memcpy(drawn[1].gate_cd, other.gate_cd, sizeof other.gate_cd);
    memcpy(drawn[1].key_d, other.key_d, sizeof other.key_d);
    memcpy(drawn[1].value_d, other.value_d, sizeof other.value_d);
    memcpy(drawn[1].bucket_b, other.bucket_b, sizeof other.bucket_b);
    drawn[1].logit = other.logit;
    drawn[1].slope = drawn[0].slope / 2;
}

// Copies the rows of a head into [rows, HEADS or 1, width].
static void gather(array *a, size_t h, const double *x) {
    size_t heads = a->shape[1], width = a->shape[2];
    if (h >= heads) return;
    for (size_t i = 0; i < a->shape[0]; i++)
        memcpy(a->x + (i * heads + h) * width, x + i * width, width * sizeof *x);
}

// Copies the rows of a head into [HEADS, rows, width], from rows of width `from`.
static void stack(array *a, size_t h, const double *x, size_t from) {
    size_t rows = a->shape[1], width = a->shape[2];
    for (size_t i = 0; i < rows; i++)
        memcpy(a->x + (h * rows + i) * width, x + i * from, width * sizeof *x);
}

static void parameters(sheet *s, size_t layer, const sinkproof_variant *v,
                       const sinkproof_drawn_head *drawn) {
    const size_t by_key[] = {HEADS, DIM}, by_head[] = {HEADS}, by_bucket[] = {HEADS, 32},
                 square[] = {1, DIM, DIM}, rows[] = {N};
    bool learned = v->star_value == SINKPROOF_STAR_VALUE_LEARNED || v->value_bias;
    bool mlp = v->feature == SINKPROOF_FEATURE_MLP, key = v->star == SINKPROOF_STAR_KEY;
    array *k = key ? add(s, layer, "star.key", 2, by_key) : NULL;
    array *value = learned ? add(s, layer, "star.value", 2, by_key) : NULL;
    array *b = v->star == SINKPROOF_STAR_SCORE ? add(s, layer, "star.logit", 1, by_head) : NULL;
    array *slope = v->places == SINKPROOF_PLACES_ALIBI ? add(s, layer, "slope", 1, by_head) : NULL;
    array *bucket =
        v->places == SINKPROOF_PLACES_RELATIVE ? add(s, layer, "buckets", 2, by_bucket) : NULL;
    array *w1 = mlp ? add(s, layer, "mlp.1", 3, square) : NULL;
    array *w2 = mlp ? add(s, layer, "mlp.2", 3, square) : NULL;
    for (size_t h = 0; h < HEADS; h++) {
        if (k != NULL) memcpy(k->x + h * DIM, drawn[h].key_d, sizeof drawn[h].key_d);
        if (value != NULL) memcpy(value->x + h * DIM, drawn[h].value_d, sizeof drawn[h].value_d);
        if (b != NULL) b->x[h] = drawn[h].logit;
        if (slope != NULL) slope->x[h] = drawn[h].slope;
        if (bucket != NULL) memcpy(bucket->x + h * 32, drawn[h].bucket_b, 32 * sizeof *bucket->x);
    }
    if (w1 != NULL) memcpy(w1->x, drawn[0].mlp_1_dd, sizeof drawn[0].mlp_1_dd);
    if (w2 != NULL) memcpy(w2->x, drawn[0].mlp_2_dd, sizeof drawn[0].mlp_2_dd);
    if (v->seen != SINKPROOF_SEEN_PACKED) return;
    array *documents = add(s, layer, "documents", 1, rows);
    documents->dtype = SINKPROOF_DTYPE_I32;
    memcpy(documents->x, drawn[0].document_n, N * sizeof(int32_t));
}

// The gate before its sigmoid, for a design without positions in its input.
static void gate_input(array *g, size_t h, const sinkproof_policy *policy,
                       const sinkproof_drawn_head *drawn, size_t width) {
    for (size_t i = 0; i < N; i++)
        for (size_t d = 0; d < width; d++) {
            double sum = 0;
            for (size_t c = 0; c < HIDDEN; c++)
                sum += drawn->x_nc[i * HIDDEN + c] * drawn->gate_cd[c * width + d];
            g->x[(i * HEADS + h) * width + d] = round_at(policy, AT_A2, sum);
        }
}

static void write_layer(sheet *s, size_t layer, const char *words, const sinkproof_policy *policy,
                        const sinkproof_drawn_head *drawn) {
    sinkproof_variant v;
    sinkproof_error error = {{0}};
    must(design_parse(words, &v, &error));
    snprintf(s->design[layer], sizeof s->design[layer], "%s", words);
    s->designs = layer + 1;
    size_t n = N + (v.star == SINKPROOF_STAR_TOKEN), columns = n + sinkproof_variant_has_column(&v);
    const size_t by_query[] = {n, HEADS, DIM}, by_key[] = {n, 1, DIM}, map[] = {HEADS, n, columns};
    size_t width = v.gate == SINKPROOF_GATE_HEAD ? 1 : DIM;
    const size_t by_gate[] = {n, HEADS, width};
    bool features = v.feature != SINKPROOF_FEATURE_SELF, gated = v.gate != SINKPROOF_GATE_NONE;
    array *q = add(s, layer, "q", 3, by_query), *k = add(s, layer, "k", 3, by_key);
    array *value = add(s, layer, "v", 3, by_key), *scores = add(s, layer, "s", 3, map);
    array *alpha = add(s, layer, "alpha", 3, map), *o = add(s, layer, "o", 3, by_query);
    array *fq = features ? add(s, layer, "f.q", 3, by_query) : NULL;
    array *fk = features ? add(s, layer, "f.k", 3, by_key) : NULL;
    array *g = gated ? add(s, layer, "g", 3, by_gate) : NULL;
    array *gate = gated ? add(s, layer, "gate", 3, by_query) : NULL;
    array *result = gated ? add(s, layer, "gated", 3, by_query) : NULL;
    parameters(s, layer, &v, drawn);
    for (size_t h = 0; h < HEADS; h++) {
        sinkproof_variant_head head = sinkproof_edge_head_view(&drawn[h]);
        sinkproof_variant_result r;
        must(sinkproof_variant_attend(policy, &v, &head, &r, &error));
        gather(q, h, r.turned_q_id);
        gather(k, h, r.turned_k_jd);
        gather(value, h, r.v_jd);
        stack(scores, h, r.s_ij, n + 1);
        stack(alpha, h, r.alpha_ij, n + 1);
        gather(o, h, r.o_id);
        if (features) gather(fq, h, r.q_id);
        if (features) gather(fk, h, r.k_jd);
        if (gated) gate_input(g, h, policy, &drawn[h], width);
        if (gated) gather(gate, h, r.gate_id);
        if (gated) gather(result, h, r.gated_id);
        sinkproof_variant_result_free(&r);
    }
}

#endif
