// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Weights in ggml's blocks, read by a program that makes one mistake in each block, or in one.
#include "audit/diagnose/composed_values.h"
#include "model/ggml_blocks.h"

static const struct {
    block_reading reading;
    const char *id, *text;
} mistakes[] = {
    {{.mistake = BLOCKS_WITHOUT_MINIMA}, "without-minima", "without the minima of their blocks"},
    {{.mistake = BLOCKS_MINIMA_NEGATED},
     "minima-negated",
     "with the opposite sign of the minima of their blocks"},
    {{.mistake = BLOCKS_EXCHANGED},
     "scale-for-minimum",
     "with the scale of each block for its minimum, and its minimum for its scale"},
#define OTHER(kind, id, what)                                                                      \
    {{.mistake = kind, .by = 1}, id "-of-next-block", "with the " what " of the next block"},      \
        {{.mistake = kind, .by = -1},                                                              \
         id "-of-block-before",                                                                    \
         "with the " what " of the block before"},                                                 \
        {{.mistake = kind, .by = 1, .across = true},                                               \
         id "-of-next-block-stored",                                                               \
         "with the " what " of the next block, in the last one of a row with those of the next "   \
         "row's first"},                                                                           \
        {{.mistake = kind, .by = -1, .across = true},                                              \
         id "-of-block-stored-before",                                                             \
         "with the " what " of the block before, in the first one of a row with those of the "     \
         "row before"},                                                                            \
    {                                                                                              \
        {.mistake = kind, .first = true}, id "-of-first-block",                                    \
            "with the " what " of the first block in each row"                                     \
    }
    OTHER(BLOCKS_OTHER_SCALES, "scales", "scale"),
    OTHER(BLOCKS_OTHER_MINIMA, "minima", "minimum"),
    OTHER(BLOCKS_OTHER_NUMBERS, "scales-and-minima", "scale and minimum"),
    OTHER(BLOCKS_OTHER_PARTS, "scales-of-parts", "scales of the parts"),
#undef OTHER
    {{.mistake = BLOCKS_IN_TURN},
     "nibbles-in-turn",
     "with the nibbles of each byte side by side, where the lower ones of a block come first"},
    {{.mistake = BLOCKS_UPPER_FIRST},
     "upper-nibbles-first",
     "with the upper nibble of each byte for the lower one"},
    {{.mistake = BLOCKS_WITHOUT_HIGH},
     "without-high-bits",
     "without the bits of each code above the fourth"},
    {{.mistake = BLOCKS_UNSHIFTED},
     "codes-from-0",
     "with codes from 0 on, from which nothing is subtracted"},
};

enum { MISTAKES = sizeof mistakes / sizeof mistakes[0] };

// block: which of each row; SIZE_MAX: all.
static bool try_mistake(composing *c, operation *o, size_t which, size_t k, size_t block) {
    const sinkproof_matrix *stack = &o->weights[which];
    size_t size = sinkproof_dtype_block(stack->dtype);
    mistake_weight_edit edit = {
        .slots = 1u << o->slots[which], .rewritten = true, .blocks = mistakes[k].reading};
    if (block != SIZE_MAX)
        edit.columns = (sinkproof_indices){.first = block * size, .end = (block + 1) * size};
    const operation_change change = {.edit = &edit, .edited = which};
    bool fine = true;
    if (!operation_is_near(o, &change)) return true;
    for (size_t r = 0; r < c->n_regions && fine && c->found == NULL; r++) {
        composed_mistake *m = composing_new(c);
        if (m == NULL) return false;
        m->edit = edit, m->region = c->regions[r];
        const char *words = composed_slot_words(o->slots[which]);
        bool one =
            o->slots[which] == SINKPROOF_EMBEDDING || o->slots[which] == SINKPROOF_UNEMBEDDING;
        composed_name(m, "%s-%s", sinkproof_slot_name(o->slots[which]), mistakes[k].id);
        composed_say(m, "%s %s read %s", words, one ? "is" : "are", mistakes[k].text);
        if (block != SIZE_MAX) {
            composed_name(m, "@block=%zu", block);
            composed_say(m, ", in block %zu of each row", block);
        }
        composed_say_region(c, m);
        fine = composing_try(c, m);
    }
    return fine;
}

// In all blocks; then in one of each row.
static bool try_weight(composing *c, operation *o, size_t which) {
    const sinkproof_matrix *stack = &o->weights[which];
    size_t blocks = stack->cols / sinkproof_dtype_block(stack->dtype);
    bool fine = true;
    for (size_t b = SIZE_MAX; fine && (b == SIZE_MAX || b < blocks); b++)
        for (size_t k = 0; k < MISTAKES && fine && c->found == NULL; k++)
            if (blocks_have(stack->dtype, mistakes[k].reading.mistake))
                fine = try_mistake(c, o, which, k, b);
    return fine;
}

bool compose_blocks(composing *c) {
    operation o;
    bool fine = operation_read(c, &o);
    for (size_t i = o.n_weights; fine && o.whole && i-- > 0 && c->found == NULL;)
        if (sinkproof_ggml_blocks_of(o.weights[i].dtype) != NULL &&
            o.weights[i].kept == SINKPROOF_REAL && composed_slot_words(o.slots[i]) != NULL)
            fine = try_weight(c, &o, i);
    operation_free(&o);
    return fine;
}
