// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Every design of attention, computed by the reference, written as an engine would and judged: one
// file, a layer for each design, two heads that share keys and values. All of it is honest, and any
// part of it. The weights of the design before in the table are not, nor is any planted mistake.
#include "audit/designs/choices.h"
#include "audit/designs/design_judge.h"
#include "proofs/truth/lattice.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <string.h>

enum { N = SINKPROOF_EDGE_N, DIM = SINKPROOF_EDGE_DIM, HIDDEN = SINKPROOF_EDGE_HIDDEN, HEADS = 2 };
enum { MOST = 2048, DESIGNS = 64 };

// ---- a file in the making

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

static sheet made; // the honest file
static char message[1024];

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

// The arrays that `kept` keeps, of one layer or of all (layer == DESIGNS), as a file in memory.
static void write_file(const sheet *s, size_t layer, uint64_t left_out, char **bytes,
                       size_t *length) {
    sinkproof_safetensors_writer *w = sinkproof_safetensors_writer_new();
    sinkproof_error error = {{0}};
    char key[32], prefix[8];
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

static const sinkproof_design_verdict *verdict(const hearing *h, size_t layer, const char *name) {
    for (size_t k = 0; h->fine && k < h->judged.count; k++) {
        const sinkproof_design_verdict *v = &h->judged.verdicts[k];
        if (v->layer->layer == layer && strcmp(sinkproof_design_tensor_name(v->tensor), name) == 0)
            return v;
    }
    return NULL;
}

static size_t outside(const hearing *h) {
    size_t all = 0;
    for (size_t k = 0; h->fine && k < h->judged.count; k++) all += h->judged.verdicts[k].outside;
    return all;
}

// "00.alpha", the first step with an element outside; "" where none has.
static const char *convicted(const hearing *h) {
    static char name[32];
    name[0] = '\0';
    for (size_t k = 0; h->fine && name[0] == '\0' && k < h->judged.count; k++)
        if (h->judged.verdicts[k].outside > 0)
            snprintf(name, sizeof name, "%02zu.%s", h->judged.verdicts[k].layer->layer,
                     sinkproof_design_tensor_name(h->judged.verdicts[k].tensor));
    return name;
}

// ---- what the reference computes

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

// Rows of a head into [rows, HEADS or 1, width].
static void gather(array *a, size_t h, const double *x) {
    size_t heads = a->shape[1], width = a->shape[2];
    if (h >= heads) return;
    for (size_t i = 0; i < a->shape[0]; i++)
        memcpy(a->x + (i * heads + h) * width, x + i * width, width * sizeof *x);
}

// Rows of a head into [HEADS, rows, width], from rows of width `from`.
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

// The gate before its sigmoid, of a design without positions in its input.
static void gate_input(array *g, size_t h, const sinkproof_policy *policy,
                       const sinkproof_drawn_head *drawn, size_t width) {
    for (size_t i = 0; i < N; i++)
        for (size_t d = 0; d < width; d++) {
            double sum = 0;
            for (size_t c = 0; c < HIDDEN; c++)
                sum += drawn->x_nc[i * HIDDEN + c] * drawn->gate_cd[c * width + d];
            g->x[(i * HEADS + h) * width + d] = sinkproof_round_at(policy, SINKPROOF_AT_A2, sum);
        }
}

static void write_layer(sheet *s, size_t layer, const char *words, const sinkproof_policy *policy,
                        const sinkproof_drawn_head *drawn) {
    sinkproof_variant v;
    sinkproof_error error = {{0}};
    must(sinkproof_design_parse(words, &v, &error));
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
        sinkproof_variant_head head = sinkproof_head_of(&drawn[h]);
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

// A row of the table, its windows within the head's few rows.
static void words_of(const sinkproof_variant *v, char words[64]) {
    snprintf(words, 64, "%s%s", v->name, v->window > 0 ? ",window=6" : "");
    if (v->seen == SINKPROOF_SEEN_FIRST_RECENT) strcat(words, ",prefix=2");
}

static void write_all(const char *name) {
    static sinkproof_drawn_head drawn[HEADS];
    sinkproof_policy policy;
    char words[64];
    must(sinkproof_policy_known(name, &policy));
    draw(drawn);
    drop(&made);
    made.format = SINKPROOF_DESIGN_FORMAT;
    for (size_t l = 0; sinkproof_variant_at(l) != NULL; l++) {
        words_of(sinkproof_variant_at(l), words);
        write_layer(&made, l, words, &policy, drawn);
    }
}

// ---- tests

static void honest(const char *policy) {
    hearing h = hear(&made, DESIGNS, 0, policy);
    size_t steps = 0, open = 0, elements = 0, expected = 3 * made.designs;
    double worst = 0;
    for (size_t l = 0; h.fine && l < h.trace.count; l++)
        expected += 2 * (h.trace.layers[l].variant.feature != SINKPROOF_FEATURE_SELF) +
                    2 * (h.trace.layers[l].variant.gate != SINKPROOF_GATE_NONE);
    for (size_t k = 0; h.fine && k < h.judged.count; k++) {
        const sinkproof_design_verdict *v = &h.judged.verdicts[k];
        steps++;
        elements += v->elements;
        open += v->elements == 0 || v->missing[0] != '\0' || v->unbounded > 0 || v->bridged;
        worst = fmax(worst, v->worst);
    }
    ok(h.fine && made.designs >= 55 && steps == expected && open == 0 && outside(&h) == 0 &&
           worst <= 1,
       "bound.similarity %zu designs of the reference are honest engines: %s, steps=%zu "
       "elements=%zu outside=%zu worst=%.3g bound=1",
       made.designs, policy, steps, elements, outside(&h), worst);
    if (outside(&h) > 0) note("first: %s %s", convicted(&h), message);
    dismiss(&h);
}

// The keys' columns of the weights of the design before, in place of a design's own.
static void neighbours(const char *policy) {
    static sheet changed;
    size_t others = 0, same = 0, wrong = 0;
    for (size_t l = 1; l < made.designs; l++) {
        array *own = find(&made, l, "alpha"), *before = find(&made, l - 1, "alpha");
        size_t n = own->shape[1];
        if (before->shape[1] != n) continue;
        changed = made;
        array *a = find(&changed, l, "alpha");
        a->x = malloc(HEADS * n * n * sizeof *a->x);
        must(a->x != NULL);
        a->shape[2] = n;
        a->count = HEADS * n * n;
        bool equal = true;
        for (size_t r = 0; r < HEADS * n; r++)
            for (size_t j = 0; j < n; j++) {
                double x = before->x[r * before->shape[2] + j];
                a->x[r * n + j] = x;
                equal = equal && x == own->x[r * own->shape[2] + j];
            }
        hearing h = hear(&changed, l, 0, policy);
        const sinkproof_design_verdict *v = verdict(&h, l, "alpha");
        bool bug = v != NULL && v->outside > 0;
        if (v == NULL || bug == equal) {
            wrong++;
            note("%s of %s: %s", made.design[l], made.design[l - 1], bug ? "bug" : "honest");
        }
        others += !equal;
        same += equal;
        dismiss(&h);
        free(a->x);
    }
    ok(wrong == 0 && others >= 25,
       "bound.similarity weights of the design before: %s, convicted=%zu, the same numbers=%zu, "
       "wrong=%zu",
       policy, others - (wrong < others ? wrong : others), same, wrong);
}

static uint64_t next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 20;
}

static void subsets(const char *policy) {
    uint64_t state = 5;
    size_t bugs = 0, asked = 0, open = 0;
    for (size_t l = 0; l < made.designs; l++)
        for (int round = 0; round < 3; round++) {
            uint64_t left_out = next(&state) & next(&state) & 0xffff;
            hearing h = hear(&made, l, left_out, policy);
            bugs += h.fine && outside(&h) > 0;
            if (h.fine && outside(&h) > 0) note("%s: %s", made.design[l], convicted(&h));
            for (size_t k = 0; h.fine && k < h.judged.count; k++) {
                asked++;
                open += h.judged.verdicts[k].elements == 0;
            }
            dismiss(&h);
        }
    ok(bugs == 0 && open > 0 && open < asked,
       "no part of an honest file is a bug: %s, steps=%zu undecided=%zu bugs=%zu", policy, asked,
       open, bugs);
}

// One layer with a change, at which step it is convicted.
static void planted(const char *what, const char *words, const char *step,
                    void (*change)(sheet *, const sinkproof_policy *)) {
    static sinkproof_drawn_head drawn[HEADS];
    static sheet one;
    sinkproof_policy policy;
    char expected[32];
    must(sinkproof_policy_known("f32", &policy));
    draw(drawn);
    one.format = SINKPROOF_DESIGN_FORMAT;
    write_layer(&one, 0, words, &policy, drawn);
    hearing before = hear(&one, 0, 0, "f32");
    change(&one, &policy);
    hearing after = hear(&one, 0, 0, "f32");
    snprintf(expected, sizeof expected, step[0] != '\0' ? "00.%s" : "", step);
    ok(before.fine && outside(&before) == 0 && after.fine &&
           strcmp(convicted(&after), expected) == 0,
       "%s: honest before, then convicted at %s", what, step[0] != '\0' ? step : "no step");
    if (strcmp(convicted(&after), expected) != 0) note("at %s; %s", convicted(&after), message);
    dismiss(&before);
    dismiss(&after);
    drop(&one);
}

static void replace(sheet *s, const char *words, const sinkproof_policy *policy,
                    const char *const *names) {
    static sinkproof_drawn_head drawn[HEADS];
    static sheet other;
    draw(drawn);
    write_layer(&other, 0, words, policy, drawn);
    for (; *names != NULL; names++) {
        array *to = find(s, 0, *names), *from = find(&other, 0, *names);
        size_t width = to->shape[2] < from->shape[2] ? to->shape[2] : from->shape[2];
        for (size_t r = 0; r < to->shape[0] * to->shape[1]; r++)
            memcpy(to->x + r * to->shape[2], from->x + r * from->shape[2], width * sizeof *to->x);
    }
    drop(&other);
}

static const char *const map_and_after[] = {"alpha", "o", NULL}, *const from_scores[] = {
                                                                     "s", "alpha", "o", NULL};

static void sink_forgotten(sheet *s, const sinkproof_policy *policy) {
    replace(s, "softmax", policy, map_and_after);
}
static void one_added(sheet *s, const sinkproof_policy *policy) {
    replace(s, "off-by-one", policy, map_and_after);
}
static void window_longer(sheet *s, const sinkproof_policy *policy) {
    replace(s, "window,window=7", policy, from_scores);
}
static void window_shorter(sheet *s, const sinkproof_policy *policy) {
    replace(s, "window,window=5", policy, map_and_after);
}
static void slopes_swapped(sheet *s, const sinkproof_policy *policy) {
    (void)policy;
    array *slope = find(s, 0, "slope");
    double first = slope->x[0];
    slope->x[0] = slope->x[1];
    slope->x[1] = first;
}
static void gate_left_out(sheet *s, const sinkproof_policy *policy) {
    (void)policy;
    memcpy(find(s, 0, "gated")->x, find(s, 0, "o")->x, N * HEADS * DIM * sizeof(double));
}
static void scale_of_dim(sheet *s, const sinkproof_policy *policy) {
    (void)policy;
    array *scores = find(s, 0, "s");
    for (size_t i = 0; i < scores->count; i++) scores->x[i] /= 4;
}
static void last_is_nan(sheet *s, const sinkproof_policy *policy) {
    (void)policy;
    array *alpha = find(s, 0, "alpha");
    alpha->x[alpha->count - 1] = NAN;
}
static void query_is_nan(sheet *s, const sinkproof_policy *policy) {
    (void)policy;
    find(s, 0, "q")->x[0] = NAN; // no step of the file left it behind
}
static void heads_swapped(sheet *s, const sinkproof_policy *policy) {
    (void)policy;
    array *alpha = find(s, 0, "alpha");
    for (size_t i = 0; i < alpha->count / 2; i++) {
        double x = alpha->x[i];
        alpha->x[i] = alpha->x[alpha->count / 2 + i];
        alpha->x[alpha->count / 2 + i] = x;
    }
}
static void one_ulp_of_float16(sheet *s, const sinkproof_policy *policy) {
    (void)policy;
    find(s, 0, "alpha")->x[N * (N + 1) / 2] *= 1 + 0x1p-10;
}

// Biases of ALiBi beside the scores: of each row, and of one row for all queries, counted from the
// first key.
static void biases(sheet *s, const sinkproof_policy *policy) {
    (void)policy;
    const size_t each[] = {HEADS, N, N};
    array *bias = add(s, 0, "bias", 3, each), *slope = find(s, 0, "slope");
    for (size_t h = 0; h < HEADS; h++)
        for (size_t i = 0; i < N; i++)
            for (size_t j = 0; j <= i; j++)
                bias->x[(h * N + i) * N + j] = -slope->x[h] * (double)(i - j);
}
static void biases_from_first(sheet *s, const sinkproof_policy *policy) {
    (void)policy;
    const size_t once[] = {HEADS, 1, N};
    array *bias = add(s, 0, "bias", 3, once), *slope = find(s, 0, "slope");
    array *scores = find(s, 0, "s");
    for (size_t h = 0; h < HEADS; h++)
        for (size_t j = 0; j < N; j++) {
            bias->x[h * N + j] = slope->x[h] * (double)j;
            for (size_t i = 0; i < N; i++)
                scores->x[(h * N + i) * N + j] += slope->x[h] * (double)i;
        }
}
static void biases_of_the_next_head(sheet *s, const sinkproof_policy *policy) {
    biases(s, policy);
    slopes_swapped(s, policy);
}

static void mistakes(void) {
    planted("a sink forgotten", "gpt-oss-window,window=6", "alpha", sink_forgotten);
    planted("one is added to the denominator", "softmax", "alpha", one_added);
    planted("a window longer by one", "window,window=6", "alpha", window_longer);
    planted("a window shorter by one", "window,window=6", "alpha", window_shorter);
    planted("the slope of the next head", "alibi", "s", slopes_swapped);
    planted("the same beside its biases", "alibi", "bias", biases_of_the_next_head);
    planted("biases of each row", "alibi", "", biases);
    planted("biases from the first key", "alibi", "", biases_from_first);
    planted("the gate left out", "gated", "gated", gate_left_out);
    planted("scores over d", "softmax", "s", scale_of_dim);
    planted("a weight is NaN", "score-bias", "alpha", last_is_nan);
    planted("a query is NaN, which the file gives as it is", "softmax", "", query_is_nan);
    planted("the weights of the next head", "k-bias", "alpha", heads_swapped);
    planted("one weight off by a step of float16", "nope", "alpha", one_ulp_of_float16);
}

static void undecided(const char *words, const char *dropped, const char *step,
                      const char *missing) {
    static sinkproof_drawn_head drawn[HEADS];
    static sheet one;
    sinkproof_policy policy;
    uint64_t left_out = 0;
    must(sinkproof_policy_known("f32", &policy));
    draw(drawn);
    one.format = SINKPROOF_DESIGN_FORMAT;
    write_layer(&one, 0, words, &policy, drawn);
    for (size_t i = 0; i < one.count; i++) {
        char name[40];
        snprintf(name, sizeof name, " %s ", one.arrays[i].name + 3);
        if (strstr(dropped, name) != NULL) left_out |= UINT64_C(1) << i;
    }
    hearing h = hear(&one, 0, left_out, "f32");
    const sinkproof_design_verdict *v = verdict(&h, 0, step);
    bool open = v != NULL && (v->elements == 0) == (missing[0] != '\0');
    ok(open && strcmp(v->missing, missing) == 0 && outside(&h) == 0, "%s without%sleaves %s %s%s",
       words, dropped, step, missing[0] != '\0' ? "undecided for want of " : "decided", missing);
    if (v != NULL && strcmp(v->missing, missing) != 0) note("%s", v->missing);
    dismiss(&h);
    drop(&one);
}

static void omissions(void) {
    undecided("softmax", " q ", "s", "q");
    undecided("softmax", " q ", "alpha", "");
    undecided("softmax", " s ", "alpha", "");
    undecided("softmax", " s k ", "alpha", "k");
    undecided("score-bias", " star.logit ", "s", "star.logit");
    undecided("score-bias", " star.logit ", "alpha", "");
    undecided("score-bias", " star.logit s ", "alpha", "star.logit");
    undecided("kv-bias", " star.value ", "o", "star.value");
    undecided("k-bias", " star.key ", "s", "star.key");
    undecided("alibi", " slope ", "s", "slope");
    undecided("relative", " buckets s ", "alpha", "buckets");
    undecided("mlp", " mlp.1 ", "f.q", "mlp.1");
    undecided("mlp", " f.q ", "s", "f.q");
    undecided("packed", " documents ", "alpha", "documents");
    undecided("packed", " documents ", "o", "");
    undecided("gated", " gate ", "gated", "");
    undecided("gated", " gate g ", "gated", "g");
    undecided("gated", " o ", "gated", "o");
}

// ---- files that are none

typedef struct wrong {
    const char *what, *words, *name, *said; // a tensor to be changed or added
    size_t rank, shape[4];
} wrong;

static void refused(const wrong *w) {
    static sinkproof_drawn_head drawn[HEADS];
    static sheet one;
    sinkproof_policy policy;
    must(sinkproof_policy_known("f32", &policy));
    draw(drawn);
    one.format = w->rank == 9 ? "pt" : SINKPROOF_DESIGN_FORMAT;
    write_layer(&one, 0, "softmax", &policy, drawn);
    snprintf(one.design[0], sizeof one.design[0], "%s", w->words);
    if (w->name != NULL) {
        array *a = find(&one, 0, w->name);
        if (a != NULL) free(a->x);
        if (a != NULL) *a = one.arrays[--one.count];
        a = add(&one, 0, w->name, w->rank, w->shape);
        if (w->rank == 1) a->dtype = SINKPROOF_DTYPE_I32;
    }
    hearing h = hear(&one, DESIGNS, 0, "f32");
    ok(!h.read && strncmp(message, "engine.safetensors: ", 20) == 0 &&
           strstr(message, w->said) != NULL,
       "%s is refused: %s", w->what, w->said);
    if (strstr(message, w->said) == NULL) note("%s", message);
    dismiss(&h);
    drop(&one);
}

static void refusals(void) {
    static const wrong each[] = {
        {"a tensor of no step",
         "softmax",
         "beta",
         "tensor 00.beta: expected a layer",
         3,
         {1, 1, 1}},
        {"another number of rows",
         "softmax",
         "k",
         "tensor 00.k: expected shape [15, any, 16], found [14, 1, 16]",
         3,
         {14, 1, 16}},
        {"another width",
         "softmax",
         "s",
         "tensor 00.s: expected shape [2, 15, 15], found [2, 15, 17]",
         3,
         {2, 15, 17}},
        {"a star's column where there is no star",
         "softmax",
         "alpha",
         "tensor 00.alpha: expected shape [2, 15, 15], found [2, 15, 16]",
         3,
         {2, 15, 16}},
        {"heads of three",
         "softmax",
         "v",
         "tensor 00.v: expected shape [15, 1, any], found [15, 3, 16]",
         3,
         {15, 3, 16}},
        {"an empty dimension", "softmax", "o", "found [15, 2, 0]", 3, {15, 2, 0}},
        {"whole numbers as weights",
         "softmax",
         "star.logit",
         "expected dtype BF16, F16, F32 or F64, found I32",
         1,
         {2}},
        {"a gate that the design has not",
         "softmax",
         "g",
         "tensor 00.g: expected none, since the design softmax has no gate",
         3,
         {15, 2, 16}},
        {"a bias that it has not", "softmax", "bias", "has no bias of positions", 3, {2, 15, 15}},
        {"features that it has not", "softmax", "f.q", "has no features", 3, {15, 2, 16}},
        {"a design of no table", "softmaxx", NULL, "found \"softmaxx\"", 0, {0}},
        {"an unknown choice", "softmax,windows=3", NULL, "found \"windows=3\"", 0, {0}},
        {"a choice without a value", "softmax,window", NULL, "found \"window\"", 0, {0}},
        {"a window of none",
         "softmax,window=0",
         NULL,
         "window: expected a whole number, 1 or more, found \"0\"",
         0,
         {0}},
        {"a window of half a token", "softmax,window=2.5", NULL, "found \"2.5\"", 0, {0}},
        {"a window that nobody gave", "softmax,seen=window", NULL, "needs window=N", 0, {0}},
        {"a power that nobody gave", "softmax,divisor=power", NULL, "need by=NUMBER", 0, {0}},
        {"a similarity of no kind",
         "softmax,similarity=cosine",
         NULL,
         "expected one of exp sigmoid elu score, found \"cosine\"",
         0,
         {0}},
        {"a value of no star",
         "softmax,star-value=learned",
         NULL,
         "star-value: expected star=key",
         0,
         {0}},
        {"another format",
         "softmax",
         NULL,
         "expected metadata format sinkproof-design-1, found pt",
         9,
         {0}},
    };
    for (size_t k = 0; k < sizeof each / sizeof each[0]; k++) refused(&each[k]);
    hearing h = hear(&made, 0, 0, "llama-cpp");
    ok(h.read && !h.fine && strstr(message, "rounds at A5.q") != NULL,
       "a policy whose roundings the sets do not follow is refused");
    dismiss(&h);
}

static void words(void) {
    sinkproof_variant v;
    sinkproof_error error;
    bool fine = sinkproof_design_parse(
        "softmax,star=key,star-value=even,times=-3,dims=4,places=alibi,seen=first-recent,window=9,"
        "prefix=2,gate=head,similarity=elu,divisor=power,by=2.5,feature=mlp,value-bias=1",
        &v, &error);
    ok(fine && v.star == SINKPROOF_STAR_KEY && v.star_value == SINKPROOF_STAR_VALUE_EVEN &&
           v.star_times == -3 && v.star_dims == 4 && v.places == SINKPROOF_PLACES_ALIBI &&
           v.seen == SINKPROOF_SEEN_FIRST_RECENT && v.window == 9 && v.prefix == 2 &&
           v.gate == SINKPROOF_GATE_HEAD && v.similarity == SINKPROOF_SIMILARITY_ELU_PLUS_ONE &&
           v.divisor == SINKPROOF_DIVISOR_POWER && v.divisor_by == 2.5 &&
           v.feature == SINKPROOF_FEATURE_MLP && v.value_bias,
       "every choice is set by its word");
    fine = sinkproof_design_parse("softmax,window=4", &v, &error);
    ok(fine && v.seen == SINKPROOF_SEEN_WINDOW && v.window == 4 &&
           sinkproof_design_parse("nope,prefix=3", &v, &error) && v.seen == SINKPROOF_SEEN_PREFIX &&
           v.prefix == 3,
       "a window makes a causal design one with a window, a prefix one with a prefix");
}

int main(void) {
    const char *policies[] = {"f32", "bf16"};
    for (int p = 0; p < 2; p++) {
        write_all(policies[p]);
        honest(policies[p]);
        neighbours(policies[p]);
        subsets(policies[p]);
    }
    mistakes();
    omissions();
    refusals();
    words();
    drop(&made);
    return tap_done();
}
