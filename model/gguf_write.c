// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Writing a model as a GGUF file that llama.cpp loads: its names, vectors and routers in float32,
// gate and up apart. Rows are made or read, written and forgotten. This is the one place where
// weights may be rounded, and only to the type that is asked for.
#include "base/words.h"
#include "model/bytes.h"
#include "model/fields.h"
#include "model/gguf.h"
#include "model/gguf_names.h"
#include "model/gguf_rows.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The rows of a matrix, or the elements of a vector, that a tensor contains.
typedef enum half { ALL, GATES, UPS } half; // gates are the even ones

// One tensor of the file.
typedef struct piece {
    char name[TENSOR_NAME];
    sinkproof_matrix weight;
    half half;
    bool vector;
    sinkproof_dtype dtype;
    size_t rank, shape[3]; // slowest first
} piece;

// The arguments and state of one file being written.
typedef struct job {
    const sinkproof_model *model;
    const sinkproof_config *config;
    const gguf_kind *kind;
    sinkproof_reading rows, elements; // of queries and keys, where the file turns them
    const sinkproof_writing *how;
    sinkproof_output output;
    size_t n_pairs, n_tensors; // described so far
    uint64_t offset;           // of the next tensor
    double *row_c;
    uint8_t *bytes; // a row in the file's type
    sinkproof_error *error;
} job;

static void put_bytes(job *out, const void *bytes, size_t n) {
    fwrite(bytes, 1, n, out->output.stream); // finish checks ferror
}

static void put_number(job *out, uint64_t value, size_t n) {
    uint8_t bytes[8];
    for (size_t i = 0; i < n; i++) bytes[i] = (uint8_t)(value >> 8 * i);
    put_bytes(out, bytes, n);
}

static void put_text(job *out, const char *text) {
    put_number(out, strlen(text), 8);
    put_bytes(out, text, strlen(text));
}

// ---- metadata ----------------------------------------------------------------------------------

static void put_pair(job *out, const char *prefix, const char *key, gguf_type type) {
    put_number(out, strlen(prefix) + strlen(key), 8);
    put_bytes(out, prefix, strlen(prefix));
    put_bytes(out, key, strlen(key));
    put_number(out, type, 4);
    out->n_pairs++;
}

static void put_text_pair(job *out, const char *key, const char *text) {
    put_pair(out, "", key, GGUF_STRING);
    put_text(out, text);
}

static void put_size_pair(job *out, const char *prefix, const char *key, size_t value) {
    put_pair(out, prefix, key, GGUF_U32);
    put_number(out, value, 4);
}

static void put_real_pair(job *out, const char *key, double value) {
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    put_pair(out, out->kind->prefix, key, GGUF_F32);
    put_number(out, bits, 4);
}

// Writes every key; the betas only if they differ from llama.cpp's defaults.
static void put_pairs(job *out) {
    const sinkproof_config *c = out->config;
    put_text_pair(out, "general.architecture", out->kind->name);
    put_size_pair(out, "", "general.quantization_version", 2); // of ggml's block formats
    put_text_pair(out, "tokenizer.ggml.model", "none");
    for (const gguf_name *name = out->kind->numbers; name->key != NULL; name++) {
        const sinkproof_field *field = sinkproof_field_find(name->offset);
        double value = sinkproof_field_value(field, c);
        bool size = field->type == FIELD_SIZE;
        if (size)
            put_size_pair(out, out->kind->prefix, name->key, (size_t)value);
        else if (name->required || value != field->released)
            put_real_pair(out, name->key, value);
    }
    if (out->kind->architecture == SINKPROOF_GPT_OSS)
        put_size_pair(out, out->kind->prefix, "feed_forward_length", c->inter);
    put_size_pair(out, out->kind->prefix, "attention.value_length", c->head_dim);
    if (c->rotation.kind != SINKPROOF_YARN) return;
    put_pair(out, out->kind->prefix, "rope.scaling.type", GGUF_STRING);
    put_text(out, "yarn");
}

// ---- tensors -----------------------------------------------------------------------------------

// llama.cpp adds biases, multiplies norms and routes in float32. The other weights have the
// requested type, or else their stored one; but blocks of four to six bits are read alone, and
// written as the float32 numbers that they are.
static sinkproof_dtype written_dtype(const job *out, sinkproof_slot slot,
                                     const sinkproof_matrix *w) {
    const sinkproof_writing *how = out->how;
    bool codes = w->dtype == SINKPROOF_DTYPE_MXFP4;
    if (sinkproof_slot_is_vector(slot, out->config) || slot == SINKPROOF_W_ROUTER)
        return SINKPROOF_DTYPE_F32;
    if (codes && !how->dequantize) return SINKPROOF_DTYPE_MXFP4;
    if (how->converts) return how->dense;
    if (codes) return SINKPROOF_DTYPE_BF16;
    bool few = sinkproof_dtype_size(w->dtype) == 0 && w->dtype != SINKPROOF_DTYPE_Q8_0;
    return few ? SINKPROOF_DTYPE_F32 : w->dtype;
}

static piece piece_for_slot(const job *out, size_t l, sinkproof_slot slot, half part) {
    piece made = {.weight = sinkproof_model_slot(out->model, l, slot),
                  .half = part,
                  .vector = sinkproof_slot_is_vector(slot, out->config)};
    const sinkproof_matrix *w = &made.weight;
    if (out->kind->turned && gguf_reorders_slot(slot))
        made.weight.reading = made.vector ? &out->elements : &out->rows;
    size_t parts = part == ALL ? 1 : 2;
    if (part == UPS)
        layout_second_name(out->kind->layout, l, slot, made.name);
    else
        layout_name(out->kind->layout, l, slot, "", made.name);
    made.dtype = written_dtype(out, slot, w);
    if (sinkproof_slot_is_stacked(slot, out->config)) made.shape[made.rank++] = w->count;
    if (!made.vector) made.shape[made.rank++] = w->rows / parts;
    made.shape[made.rank++] = made.vector ? w->cols / parts : w->cols;
    return made;
}

// Calls `take` for every tensor of layer l; for layer n_layers: those outside the layers.
static bool visit_pieces(job *out, size_t l, bool (*take)(job *out, const piece *p)) {
    bool inside = l < out->config->n_layers, good = true;
    int s = inside ? 0 : SINKPROOF_LAYER_SLOTS,
        end = inside ? SINKPROOF_LAYER_SLOTS : SINKPROOF_SLOTS;
    for (; good && s < end; s++) {
        sinkproof_slot slot = (sinkproof_slot)s;
        bool two = out->kind->layout->second[slot] != NULL;
        if (sinkproof_model_slot(out->model, inside ? l : 0, slot).count == 0) continue;
        if (slot == SINKPROOF_UNEMBEDDING && out->config->tied) continue;
        piece first = piece_for_slot(out, inside ? l : 0, slot, two ? GATES : ALL);
        good = take(out, &first);
        if (!two || !good) continue;
        piece second = piece_for_slot(out, l, slot, UPS);
        good = take(out, &second);
    }
    return good;
}

static size_t piece_bytes(const piece *p) {
    size_t elements = 1;
    for (size_t i = 0; i < p->rank; i++) elements *= p->shape[i];
    return sinkproof_dtype_bytes_for(p->dtype, elements);
}

static size_t padding_after(uint64_t length) {
    return (size_t)(-length % GGUF_ALIGNMENT);
}

static bool describe_piece(job *out, const piece *p) {
    uint32_t code;
    size_t bytes = piece_bytes(p), cols = p->shape[p->rank - 1];
    if (!gguf_type_code(p->dtype, &code)) return false;
    if (cols % sinkproof_dtype_block(p->dtype) != 0)
        return sinkproof_fail(out->error,
                              "tensor %s: expected a row of blocks of %zu for %s, found "
                              "%s",
                              p->name, sinkproof_dtype_block(p->dtype),
                              sinkproof_dtype_name(p->dtype),
                              sinkproof_counted(cols, "number").text);
    put_text(out, p->name);
    put_number(out, p->rank, 4);
    for (size_t i = p->rank; i-- > 0;) put_number(out, p->shape[i], 8); // fastest first
    put_number(out, code, 4);
    put_number(out, out->offset, 8);
    out->offset += bytes + padding_after(bytes);
    out->n_tensors++;
    return true;
}

static bool write_piece(job *out, const piece *p) {
    size_t step = p->half == ALL || p->vector ? 1 : 2, first = step == 2 && p->half == UPS;
    size_t cols = p->weight.cols, size = sinkproof_dtype_size(p->dtype);
    static const uint8_t zeros[GGUF_ALIGNMENT] = {0};
    for (size_t e = 0; e < p->weight.count; e++) {
        sinkproof_matrix w = sinkproof_matrix_at(&p->weight, e);
        for (size_t r = first; r < w.rows; r += step) {
            if (!gguf_row_encode(&w, r, p->dtype, out->row_c, out->bytes, out->error)) return false;
            if (p->vector && p->half != ALL) gguf_keep_half(cols, size, p->half == UPS, out->bytes);
            put_bytes(out, out->bytes, sinkproof_dtype_bytes_for(p->dtype, p->shape[p->rank - 1]));
        }
    }
    put_bytes(out, zeros, padding_after(piece_bytes(p)));
    return true;
}

// Writes keys and descriptions of tensors to memory, since the file begins with their numbers.
static bool write_description(job *out, char **bytes, size_t *length) {
    if (!sinkproof_output_memory(&out->output, bytes, length, out->error)) return false;
    put_pairs(out);
    bool good = true;
    for (size_t l = 0; good && l <= out->config->n_layers; l++)
        good = visit_pieces(out, l, describe_piece);
    return sinkproof_output_finish(&out->output, out->error) && good;
}

static bool write_all(job *out, const char *path, const char *described, size_t length) {
    enum { HEADER = 24 };
    static const uint8_t zeros[GGUF_ALIGNMENT] = {0};
    if (!sinkproof_output_open(&out->output, path, out->error)) return false;
    put_bytes(out, "GGUF", 4);
    put_number(out, 3, 4); // version
    put_number(out, out->n_tensors, 8);
    put_number(out, out->n_pairs, 8);
    put_bytes(out, described, length);
    put_bytes(out, zeros, padding_after(HEADER + length));
    bool good = true;
    for (size_t l = 0; good && l <= out->config->n_layers; l++) {
        good = visit_pieces(out, l, write_piece);
        if (out->how->progress != NULL)
            out->how->progress(out->how->context, l, out->config->n_layers);
    }
    return good && sinkproof_output_finish(&out->output, out->error);
}

static bool make_room(job *out) {
    size_t widest = 0;
    for (int s = 0; s < SINKPROOF_SLOTS; s++) {
        size_t cols = sinkproof_model_slot(out->model, 0, (sinkproof_slot)s).cols;
        if (cols > widest) widest = cols;
    }
    out->row_c = malloc(widest * sizeof *out->row_c);
    out->bytes = malloc(widest * sizeof(float)); // the widest type
    return (out->row_c != NULL && out->bytes != NULL) ||
           sinkproof_fail(out->error, "out of memory for a row of %s",
                          sinkproof_counted(widest, "number").text);
}

// The path must have a name by which the file is recognised, and not exist.
static bool check_path(const char *path, sinkproof_error *error) {
    size_t length = strlen(path), tail = strlen(GGUF_SUFFIX);
    if (length <= tail || strcmp(path + length - tail, GGUF_SUFFIX) != 0)
        return sinkproof_fail(error, "%s: expected a file NAME" GGUF_SUFFIX, path);
    return access(path, F_OK) != 0 ||
           sinkproof_fail(error, "%s: expected a new file, found one", path);
}

bool gguf_write(const sinkproof_container *container, const sinkproof_model *model,
                const char *path, const sinkproof_writing *how, sinkproof_error *error) {
    const sinkproof_config *c = sinkproof_model_config(model);
    job out = {
        .model = model, .config = c, .kind = gguf_kind_for_config(c), .how = how, .error = error};
    size_t head_dim = c->head_dim;
    gguf_reorder_rows(gguf_row_in_halves, head_dim, false, &out.rows);
    gguf_reorder_rows(gguf_row_in_halves, head_dim, true, &out.elements);
    char *described = NULL;
    size_t length = 0;
    bool good = check_path(path, error) && gguf_can_state_config(out.config, path, error) &&
                layout_check_model(container, model, path, error) && make_room(&out) &&
                write_description(&out, &described, &length) &&
                write_all(&out, path, described, length);
    sinkproof_output_drop(&out.output); // and removes its temporary file
    free(described);
    free(out.row_c);
    free(out.bytes);
    return good;
}
