// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// An engine with mistakes: the reference with some stages, weights or settings wrong. Nothing here
// is shared with audit/diagnose/, which must find the mistakes from the trace.
#ifndef SINKPROOF_TESTS_MISTAKEN_H
#define SINKPROOF_TESTS_MISTAKEN_H

#include "tests/shared/mistaken_stages.h"
#include "tests/shared/opened.h"

// ---- weights

// A changed weight, with its own numbers.
typedef struct spoilt {
    struct spoilt *next;
    double values[];
} spoilt;

static spoilt *all_spoilt;

static void forget_spoilt(void) {
    for (spoilt *next; all_spoilt != NULL; all_spoilt = next) {
        next = all_spoilt->next;
        free(all_spoilt);
    }
}

// The source of row or element i of `count`.
static size_t taken_from(const planted *w, size_t i, size_t count) {
    size_t group = now.c->n_heads / now.c->n_kv_heads, block = (size_t)w->by;
    switch (w->spoil) {
    case HEAD_SHIFT:
        return (i + count + (size_t)((long)w->by + 1) - 1) % count;
    case REVERSED:
        return count - 1 - i;
    case BY_GROUP:
        return i / group;
    case FIRST_OF_GROUP:
        return i / group * group;
    case PAIRS:
        return i % 2 == 0 ? i + 1 : i - 1;
    case SPLIT:
        return i / block * block +
               (i % block < block / 2 ? 2 * (i % block) : 2 * (i % block - block / 2) + 1);
    case MERGED:
        return i / block * block + i % block / 2 + (i % 2 == 0 ? 0 : block / 2);
    default:
        return i;
    }
}

static size_t column_from(const planted *w, size_t i, size_t count) {
    planted split = *w;
    if (w->spoil == COLUMN_PAIRS) return i % 2 == 0 ? i + 1 : i - 1;
    split.spoil = SPLIT;
    if (w->spoil == COLUMN_SPLIT) return taken_from(&split, i, count);
    if (w->spoil == COLUMN_HEADS) return i % now.c->n_heads * now.c->head_dim + i / now.c->n_heads;
    return i;
}

static double spoilt_value(const planted *w, double x) {
    if (w->spoil == TIMES) return x * w->by;
    if (w->spoil == TIMES_BF16) return sinkproof_round(SINKPROOF_BF16, x * w->by) / w->by;
    if (w->spoil == CONSTANT) return w->by;
    return w->spoil == PLUS ? x + w->by : x;
}

static void spoil_weight(const planted *w, const sinkproof_matrix *from, sinkproof_matrix *weight) {
    size_t rows = from->rows, cols = from->cols, count = from->count;
    spoilt *s = fresh(1, sizeof *s + (count * rows + 1) * cols * sizeof *s->values);
    double *line = s->values + count * rows * cols;
    s->next = all_spoilt, all_spoilt = s;
    for (size_t e = 0; e < count; e++)
        for (size_t r = 0; r < rows; r++) {
            sinkproof_matrix one =
                sinkproof_matrix_at(from, w->spoil == NEXT_EXPERT ? (e + 1) % count : e);
            sinkproof_matrix_row(&one, rows > 1 ? taken_from(w, r, rows) : r, line);
            for (size_t c = 0; c < cols; c++) {
                size_t at = rows == 1 ? taken_from(w, c, cols) : column_from(w, c, cols);
                s->values[(e * rows + r) * cols + c] = spoilt_value(w, line[at]);
            }
        }
    weight->dtype = SINKPROOF_DTYPE_F64, weight->data = (const uint8_t *)s->values;
    weight->synthetic = NULL, weight->scales = NULL, weight->odd = NULL;
    weight->stack_stride = rows * cols, weight->row_stride = cols, weight->col_stride = 1;
}

static void spoil_slot(void *context, size_t l, sinkproof_slot slot, sinkproof_matrix *weight) {
    const sinkproof_model *model = context;
    for (size_t i = 0; i < now.n; i++) {
        const planted *w = now.list[i];
        if (w->spoil == KEPT || (w->slots >> slot & 1) == 0) continue;
        sinkproof_matrix from = *weight;
        if (w->spoil == NEXT_LAYER)
            from = sinkproof_model_slot(model, (l + 1) % now.c->n_layers, slot);
        spoil_weight(w, &from, weight);
    }
}

// ---- the whole engine

static const sinkproof_stages bad_stages = {
    .embed = sinkproof_embed,
    .rmsnorm = bad_norm,
    .qkv = stage_qkv,
    .rope = bad_rope,
    .scores = bad_scores,
    .sink_logits = sinkproof_sink_logits,
    .softmax_sink = bad_softmax,
    .values = bad_values,
    .output = stage_output,
    .router = bad_router,
    .experts = bad_experts,
    .mixture = bad_mixture,
    .unembed = stage_unembed,
};

// Residuals and noise replace shown values; x and the addend are kept for that.
static void keep(double **kept, size_t count, const double *values) {
    *kept = realloc(*kept, count * sizeof **kept);
    must(*kept != NULL);
    memcpy(*kept, values, count * sizeof **kept);
}

// The observer of the engine: `inner` sees the final values.
typedef struct wrong_observer {
    const sinkproof_observer *inner;
    const sinkproof_policy *policy;
} wrong_observer;

static void pass_on(void *context, const char *name, size_t rank, const size_t *shape,
                    const double *values) {
    const sinkproof_observer *inner = ((const wrong_observer *)context)->inner;
    inner->see(inner->context, name, rank, shape, values);
}

static void bad_replace(void *context, const char *name, size_t rank, const size_t *shape,
                        double *values) {
    const char *point = strchr(name, '.') != NULL ? strchr(name, '.') + 1 : name;
    const planted *r = is(RESIDUAL), *noise = is(NOISE);
    size_t count = 1;
    for (size_t d = 0; d < rank; d++) count *= shape[d];
    if (strcmp(point, "A12") == 0 || strcmp(point, "M11") == 0) keep(&now.added, count, values);
    if (r != NULL && strcmp(point, r->at + 3) == 0)
        for (size_t i = 0; i < count; i++)
            values[i] = round_at(((const wrong_observer *)context)->policy, AT_A13,
                                 r->by * now.x[i] + (double)r->slots * now.added[i]);
    if (noise != NULL && strcmp(name, noise->at) == 0)
        for (size_t i = noise->slots; i < count; i += noise->slots)
            values[i] = sinkproof_round(SINKPROOF_F32, values[i] * (1 + noise->by));
    if (strcmp(point, "T0") == 0 || strcmp(point, "A13") == 0 || strcmp(point, "M12") == 0)
        keep(&now.x, count, values);
}

// The policies of a run: the declared one, and that with the overrides of the mistakes.
static bool run_policies(const char *declared, sinkproof_policy *stated, sinkproof_policy *runs,
                         sinkproof_error *error) {
    char text[256];
    snprintf(text, sizeof text, "%s", declared);
    for (size_t i = 0; i < now.n; i++) {
        if (now.list[i]->runs == NULL) continue;
        strncat(text, ",", sizeof text - strlen(text) - 1);
        strncat(text, now.list[i]->runs, sizeof text - strlen(text) - 1);
    }
    return sinkproof_policy_parse(declared, stated, error) &&
           sinkproof_policy_parse(text, runs, error);
}

static bool run_mistaken(const sinkproof_model *model, const sinkproof_policy *policy, size_t n,
                         const int32_t *tokens, sinkproof_trace_writer *writer,
                         sinkproof_error *error) {
    wrong_observer of = {sinkproof_trace_writer_observer(writer), policy};
    const sinkproof_observer observer = {.see = pass_on, .context = &of, .replace = bad_replace};
    sinkproof_session *session = sinkproof_session_with(model, policy, &bad_stages);
    must(session != NULL);
    bool fine = sinkproof_forward(session, n, tokens, NULL, &observer, error);
    sinkproof_session_free(session);
    return fine;
}

// The trace of n tokens in memory. Bails out with the sentence of any error.
static sinkproof_trace *mistaken_trace(const sinkproof_model *model, size_t n_planted,
                                       const planted *const *list, const char *declared,
                                       const char *points, size_t n, const int32_t *tokens) {
    sinkproof_error error = {{0}};
    sinkproof_policy stated, runs;
    sinkproof_trace_writer *writer = NULL;
    sinkproof_trace *trace = NULL;
    sinkproof_config config = *sinkproof_model_config(model);
    now.n = n_planted, now.calls = 0, now.c = &config;
    for (size_t i = 0; i < n_planted; i++) {
        now.list[i] = list[i];
        if (list[i]->config != NULL) list[i]->config(&config, list[i]->by);
    }
    sinkproof_model *wrong_model =
        sinkproof_model_edited(model, &config, spoil_slot, (void *)(uintptr_t)model);
    must(wrong_model != NULL);
    bool fine =
        run_policies(declared, &stated, &runs, &error) &&
        sinkproof_trace_writer_new(NULL, model, &stated, "mistaken", points, n, &writer, &error) &&
        run_mistaken(wrong_model, &runs, n, tokens, writer, &error) &&
        sinkproof_trace_writer_take(writer, tokens, &trace, &error);
    need(fine, &error);
    sinkproof_trace_writer_free(writer);
    sinkproof_model_close(wrong_model);
    forget_spoilt();
    return trace;
}

#endif
