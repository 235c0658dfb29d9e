// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The stages that a plug-in may define, and the text form of a call.
#include "audit/plugin/drill.h"

#include "base/splitmix.h"
#include "base/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BIT(recipe) (1u << RECIPE_##recipe)
enum {
    ROWS = BIT(RANDOM) | BIT(ZEROS) | BIT(SUBNORMAL) | BIT(HUGE) | BIT(EQUAL),
    SUMS = ROWS | BIT(EXACT),
    EDGES = ROWS | BIT(RISING) | BIT(FALLING),
    BACK = BIT(RANDOM) | BIT(ZEROS) | BIT(EQUAL),
    HEADS = STAGE_KNOWS_HEADS,
    KEYS = STAGE_KNOWS_HEADS | STAGE_KNOWS_KEYS | STAGE_KNOWS_PASSES,
    ALL_KEYS = STAGE_KNOWS_HEADS | STAGE_KNOWS_KEYS, // all rows at once
    SINKS = STAGE_KNOWS_SINKS,
    HIDDEN = STAGE_KNOWS_HIDDEN,
    INTER = STAGE_KNOWS_INTER,
    EXPERTS = STAGE_KNOWS_EXPERTS,
    VOCAB = STAGE_KNOWS_VOCAB,
    LOSS = STAGE_KNOWS_LOSS,
};

// A count and an array.
#define P(...)                                                                                     \
    sizeof(size_t[]){__VA_ARGS__} / sizeof(size_t), {                                              \
        __VA_ARGS__                                                                                \
    }
#define W(...) P(__VA_ARGS__)
#define NOTHING                                                                                    \
    0, {                                                                                           \
        SINKPROOF_SLOTS                                                                            \
    }
#define AT(id)   TRACE_##id
#define D(id)    (ARRAY_GRADIENTS + TRACE_##id)
#define DW(id)   (ARRAY_WEIGHTS + SINKPROOF_##id)
#define SLOT(id) SINKPROOF_##id

// Name, sizes that it uses, recipes, exact outputs, inputs, weights, outputs.
// clang-format off
static const stage_row stages[] = {
    {"rmsnorm", HIDDEN, ROWS, 0, P(AT(T0)), W(SLOT(ATTN_NORM)), P(AT(A1))},
    {"qkv", HEADS | HIDDEN, SUMS, 7, P(AT(A1)),
     W(SLOT(W_Q), SLOT(B_Q), SLOT(W_K), SLOT(B_K), SLOT(W_V), SLOT(B_V)),
     P(AT(A2_Q), AT(A2_K), AT(A2_V))},
    {"rope", HEADS, ROWS, 0, P(AT(A2_Q), AT(A2_K)), NOTHING, P(AT(A4_Q), AT(A4_K))},
    {"scores", KEYS, EDGES | BIT(EXACT), 1, P(AT(A4_Q), AT(A4_K)), NOTHING, P(AT(A6))},
    {"softmax_sink", KEYS | SINKS, EDGES, 0, P(AT(A6)), W(SLOT(SINKS)), P(AT(A9))},
    {"values", KEYS, EDGES | BIT(EXACT), 1, P(AT(A9), AT(A2_V)), NOTHING, P(AT(A11))},
    {"attention", KEYS | SINKS, EDGES, 0, P(AT(A4_Q), AT(A4_K), AT(A2_V)), W(SLOT(SINKS)),
     P(AT(A11), AT(LSE))},
    {"output", HEADS | HIDDEN, SUMS, 1, P(AT(A11)), W(SLOT(W_O), SLOT(B_O)), P(AT(A12))},
    {"router", HIDDEN | EXPERTS, SUMS | BIT(TIES), 1, P(AT(M1)),
     W(SLOT(W_ROUTER), SLOT(B_ROUTER)), P(AT(M2), AT(M3), AT(M4))},
    {"experts", HIDDEN | INTER | EXPERTS, ROWS, 0, P(AT(M1), AT(M3)),
     W(SLOT(W_UP), SLOT(B_UP), SLOT(W_DOWN), SLOT(B_DOWN)), P(AT(M10))},
    {"swiglu", INTER | EXPERTS, ROWS | BIT(LIMITS), 0, P(AT(M6)), NOTHING, P(AT(M8))},
    {"mixture", HIDDEN | EXPERTS, SUMS, 1, P(AT(M10), AT(M3), AT(M4)), NOTHING, P(AT(M11))},
    {"unembed", HIDDEN | VOCAB, SUMS, 1, P(AT(F1)), W(SLOT(UNEMBEDDING)), P(AT(F2))},
    {"attention_backward", ALL_KEYS | SINKS | LOSS, BACK | BIT(RISING) | BIT(FALLING), 0,
     P(AT(A4_Q), AT(A4_K), AT(A2_V), AT(A11), AT(LSE), D(A11), D(LSE)), W(SLOT(SINKS)),
     P(D(A4_Q), D(A4_K), D(A2_V), DW(SINKS))},
    {"swiglu_backward", INTER | EXPERTS | LOSS, BACK | BIT(LIMITS), 0, P(AT(M6), D(M8)), NOTHING, P(D(M6))},
    {"rmsnorm_backward", HIDDEN | LOSS, BACK, 0, P(AT(M12), D(F1)), W(SLOT(FINAL_NORM)),
     P(D(M12), DW(FINAL_NORM))},
    {"linear_backward", HEADS | HIDDEN | LOSS, BACK, 0, P(AT(A11), D(A12)), W(SLOT(W_O), SLOT(B_O)),
     P(D(A11), DW(W_O), DW(B_O))},
};
// clang-format on

enum { COUNT = sizeof stages / sizeof *stages };

const stage_row *stage_at(size_t i) {
    return i < COUNT ? &stages[i] : NULL;
}

size_t stage_offered(const stage_row *stage) {
    size_t n = 0;
    for (size_t i = 0; i < stage->n_to; i++)
        n += !array_is_gradient(stage->to[i]) &&
             sinkproof_trace_point_is_offered((sinkproof_trace_point)stage->to[i]);
    return n;
}

bool stage_goes_back(const stage_row *stage) {
    return array_is_gradient(stage->to[0]);
}

bool stage_reads_lse(const stage_row *stage) {
    bool reads = false;
    for (size_t i = 0; i < stage->n_from; i++) reads = reads || stage->from[i] == D(LSE);
    return reads;
}

const stage_row *stage_named(const char *name, size_t length) {
    for (size_t i = 0; i < COUNT; i++)
        if (strlen(stages[i].name) == length && strncmp(stages[i].name, name, length) == 0)
            return &stages[i];
    return NULL;
}

void plugin_stage_names(char *text, size_t size) {
    size_t used = 0;
    for (size_t i = 0; i < COUNT && used < size; i++)
        used +=
            (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "", stages[i].name);
}

static const char *const recipes[RECIPE_COUNT] = {"random", "exact", "rising", "falling",
                                                  "limits", "ties",  "zeros",  "subnormal",
                                                  "huge",   "equal"};
static const char *const sink_places[SINK_PLACES] = {"around", "none",      "far-below",  "below",
                                                     "above",  "far-above", "overflowing"};

// ---- a call in words -------------------------------------------------------------------------

// A number of a case: its key, its member, and the stages that use it.
typedef struct number {
    const char *word;
    size_t offset;
    unsigned known_to;
    size_t least;
} number;

#define NUMBER(word, field, known_to, least)                                                       \
    { word, offsetof(stage_case, field), known_to, least }
static const number numbers[] = {
    NUMBER("n", n, ~0u, 1),
    NUMBER("chunk", chunk, STAGE_KNOWS_PASSES, 0),
    NUMBER("window", window, STAGE_KNOWS_KEYS, 0),
    NUMBER("heads", heads, STAGE_KNOWS_HEADS, 1),
    NUMBER("kv", kv, STAGE_KNOWS_HEADS, 1),
    NUMBER("dim", dim, STAGE_KNOWS_HEADS, 2),
    NUMBER("hidden", hidden, STAGE_KNOWS_HIDDEN, 2),
    NUMBER("inter", inter, STAGE_KNOWS_INTER, 2),
    NUMBER("experts", experts, STAGE_KNOWS_EXPERTS, 1),
    NUMBER("chosen", chosen, STAGE_KNOWS_EXPERTS, 1),
    NUMBER("vocab", vocab, STAGE_KNOWS_VOCAB, 1),
};

static size_t *case_member_at(stage_case *c, const number *of) {
    return (size_t *)(void *)((char *)c + of->offset);
}

void case_print(const stage_case *c, char text[CASE_TEXT]) {
    stage_case copy = *c;
    size_t size = CASE_TEXT, used = (size_t)snprintf(text, size, "%s:", c->stage->name);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if ((numbers[i].known_to & (c->stage->knows | (i == 0))) != 0)
            used += (size_t)snprintf(text + used, size - used, "%s=%zu,", numbers[i].word,
                                     *case_member_at(&copy, &numbers[i]));
    if ((c->stage->knows & STAGE_KNOWS_SINKS) != 0)
        used += (size_t)snprintf(text + used, size - used, "sinks=%s,", sink_places[c->sinks]);
    snprintf(text + used, size - used, "inputs=%s,seed=%llu", recipes[c->recipe],
             (unsigned long long)c->seed);
}

// The index of a word in a list, or -1.
static int list_word_index(const char *const *list, int count, const char *word, size_t length) {
    for (int i = 0; i < count; i++)
        if (strlen(list[i]) == length && strncmp(list[i], word, length) == 0) return i;
    return -1;
}

// Sets a member from "key=value", whose value has `length` characters.
static bool set_word(stage_case *c, const char *word, size_t key, size_t length) {
    const char *value = word + key + 1;
    int found;
    if (key == 6 && strncmp(word, "inputs", key) == 0) {
        found = list_word_index(recipes, RECIPE_COUNT, value, length);
        c->recipe = (input_recipe)(found < 0 ? 0 : found);
        return found >= 0 && (c->stage->recipes >> found & 1) != 0;
    }
    if (key == 5 && strncmp(word, "sinks", key) == 0) {
        found = list_word_index(sink_places, SINK_PLACES, value, length);
        c->sinks = (sink_place)(found < 0 ? 0 : found);
        return found >= 0;
    }
    if (length == 0 || length > 18 || strspn(value, "0123456789") < length) return false;
    unsigned long long x = strtoull(value, NULL, 10);
    if (key == 4 && strncmp(word, "seed", key) == 0) {
        c->seed = x;
        return true;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strlen(numbers[i].word) == key && strncmp(numbers[i].word, word, key) == 0) {
            *case_member_at(c, &numbers[i]) = (size_t)x;
            return x < 1 << 24;
        }
    return false;
}

bool stage_name_error(const char *word, size_t length, sinkproof_error *error) {
    char known[256], name[64];
    plugin_stage_names(known, sizeof known);
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name), word);
    return sinkproof_fail(error, "no stage '%s': %sknown are %s", name,
                          sinkproof_guess_in_list(name, known).text, known);
}

bool case_parse(const char *text, const stage_case *base, stage_case *c, sinkproof_error *error) {
    size_t name = strcspn(text, ":");
    *c = *base;
    c->stage = stage_named(text, name);
    if (c->stage == NULL) return stage_name_error(text, name, error);
    for (const char *word = text[name] == ':' ? text + name + 1 : ""; *word != '\0';) {
        size_t whole = strcspn(word, ","), key = strcspn(word, "=");
        if (key >= whole || !set_word(c, word, key, whole - key - 1))
            return sinkproof_fail(error, "'%.*s' says nothing of a call of %s",
                                  (int)(whole < 64 ? whole : 64), word, c->stage->name);
        word += whole + (word[whole] == ',');
    }
    if (c->n == 0 || c->n > 1 << 16)
        return sinkproof_fail(error, "expected 1 to 65536 tokens, found n=%zu", c->n);
    case_settle_unknown(c);
    return true;
}

void case_settle_unknown(stage_case *c) {
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        size_t *at = case_member_at(c, &numbers[i]), least = numbers[i].least;
        bool known = i == 0 || (numbers[i].known_to & c->stage->knows) != 0;
        if (!known || *at < least) *at = least;
    }
    if ((c->stage->knows & STAGE_KNOWS_SINKS) == 0) c->sinks = SINK_AROUND;
    c->lse = c->lse && stage_offered(c->stage) > 0;
    // In half of the calls the loss does not.
    c->dlse = c->dlse && stage_reads_lse(c->stage) && sinkproof_draw_nth(c->seed, 0) >> 63 != 0;
}

bool case_has_lse(const stage_case *c) {
    return c->lse || c->dlse;
}

size_t case_outputs(const stage_case *c) {
    return c->stage->n_to - (c->lse ? 0 : stage_offered(c->stage));
}

sinkproof_config case_config(const stage_case *c, const sinkproof_config *base) {
    sinkproof_config config = *base;
    config.n_layers = 1;
    config.sliding[0] = c->window > 0;
    config.window = c->window > 0 ? c->window : 1;
    config.n_heads = c->heads;
    config.n_kv_heads = c->kv;
    config.head_dim = c->dim;
    config.hidden = c->hidden;
    config.inter = c->inter;
    config.n_experts = c->experts;
    config.n_chosen = c->chosen;
    config.vocab = c->vocab;
    config.sink = 0; // one number for each head
    if (config.max_context < c->n) config.max_context = c->n;
    return config;
}
