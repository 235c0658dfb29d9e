// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// sinkproof synth MODEL --out DIR --layout hf|openai: writes a model, synthetic or not, as a
// real checkpoint: config.json and model.safetensors. Rows are made or read, written and
// forgotten: a full-size model is never in memory. Nothing is quantized here; MXFP4 experts
// can be written as bf16 (--dequantize), which is exact or refused.
#include "audit/command/command.h"
#include "ref/model/bf16.h"
#include "ref/model/model.h"
#include "ref/model/mxfp4.h"
#include "ref/model/safetensors.h"
#include "ref/model/slots.h"
#include "ref/model/synthetic.h"

#include <argp.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct arguments {
    const char *model, *out, *layout;
    bool dequantize;
} arguments;

// One checkpoint on its way out.
typedef struct job {
    const sinkproof_model *model;
    const sinkproof_config *config;
    bool hf, dequantize;
    sinkproof_safetensors_writer *writer;
    uint8_t *bytes; // a row, or a whole dequantized expert
    double *row_c;
    sinkproof_error *error;
} job;

static const struct argp_option options[] = {
    {"out", 'o', "DIR", 0, "the directory to make; it must not exist or be empty", 0},
    {"layout", 'l', "hf|openai|gguf", 0,
     "Hugging Face's tensors (the default) or OpenAI's original ones; gguf is not supported yet",
     0},
    {"dequantize", 'd', NULL, 0, "hf only: write MXFP4 experts as bf16, transposed", 0},
    {0}};

static error_t parse(int key, char *value, struct argp_state *state) {
    arguments *in = state->input;
    if (key == 'o')
        in->out = value;
    else if (key == 'l')
        in->layout = value;
    else if (key == 'd')
        in->dequantize = true;
    else if (key == ARGP_KEY_ARG && state->arg_num == 0)
        in->model = value;
    else if (key == ARGP_KEY_ARG)
        argp_error(state, "expected one MODEL, found \"%s\" too", value);
    else if (key == ARGP_KEY_END) {
        if (in->model == NULL) argp_error(state, "expected a MODEL");
        if (in->out == NULL) argp_error(state, "expected --out DIR");
        if (strcmp(in->layout, "gguf") == 0) argp_error(state, "layout gguf is not supported yet");
        if (strcmp(in->layout, "hf") != 0 && strcmp(in->layout, "openai") != 0)
            argp_error(state, "expected layout hf or openai, found \"%s\"", in->layout);
        if (in->dequantize && strcmp(in->layout, "hf") != 0)
            argp_error(state, "--dequantize needs --layout hf: the original layout is MXFP4");
    } else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

// The q, k and v that the original layout fuses: the first of three slots, two apart.
static bool is_fused(const job *out, sinkproof_slot slot) {
    return !out->hf && slot >= SINKPROOF_W_Q && slot <= SINKPROOF_B_V;
}

static bool is_fused_tail(const job *out, sinkproof_slot slot) {
    return is_fused(out, slot) && slot != SINKPROOF_W_Q && slot != SINKPROOF_B_Q;
}

static void name_of(const job *out, size_t l, sinkproof_slot slot, const char *suffix, char *name,
                    size_t size) {
    const char *base = out->hf ? sinkproof_slot_hf(slot) : sinkproof_slot_openai(slot);
    if (slot >= SINKPROOF_LAYER_SLOTS)
        snprintf(name, size, "%s%s", base, suffix);
    else
        snprintf(name, size, "%s.%zu.%s%s", out->hf ? "model.layers" : "block", l, base, suffix);
}

static void declare(const job *out, size_t l, sinkproof_slot slot) {
    char name[128];
    sinkproof_matrix w = sinkproof_model_slot(out->model, l, slot);
    size_t shape[4], rank = 0, rows = w.rows, cols = w.cols;
    if (is_fused_tail(out, slot)) return;
    if (is_fused(out, slot)) {
        size_t width = (out->config->n_heads + 2 * out->config->n_kv_heads) * out->config->head_dim;
        *(sinkproof_slot_is_vector(slot) ? &cols : &rows) = width;
    }
    if (sinkproof_slot_is_stacked(slot)) shape[rank++] = w.count;
    if (w.dtype == SINKPROOF_DTYPE_MXFP4 && !out->dequantize) {
        const size_t blocks[4] = {w.count, rows, cols / SINKPROOF_MXFP4_BLOCK,
                                  SINKPROOF_MXFP4_BYTES};
        name_of(out, l, slot, out->hf ? "_blocks" : ".blocks", name, sizeof name);
        sinkproof_safetensors_writer_declare(out->writer, name, SINKPROOF_DTYPE_U8, 4, blocks);
        name_of(out, l, slot, out->hf ? "_scales" : ".scales", name, sizeof name);
        sinkproof_safetensors_writer_declare(out->writer, name, SINKPROOF_DTYPE_U8, 3, blocks);
        return;
    }
    bool transposed = sinkproof_slot_is_expert_matrix(slot);
    if (!sinkproof_slot_is_vector(slot)) shape[rank++] = transposed ? cols : rows;
    shape[rank++] = transposed ? rows : cols;
    name_of(out, l, slot, "", name, sizeof name);
    sinkproof_dtype dtype = w.dtype == SINKPROOF_DTYPE_MXFP4 ? SINKPROOF_DTYPE_BF16 : w.dtype;
    sinkproof_safetensors_writer_declare(out->writer, name, dtype, rank, shape);
}

static bool put(const job *out, const void *bytes, size_t length) {
    return sinkproof_safetensors_writer_bytes(out->writer, bytes, length, out->error);
}

// Codes first (part 0), then scales (part 1).
static bool write_mxfp4(const job *out, const sinkproof_matrix *stack, int part) {
    size_t half = stack->cols / 2, blocks = stack->cols / SINKPROOF_MXFP4_BLOCK;
    bool good = true;
    for (size_t e = 0; good && e < stack->count; e++) {
        sinkproof_matrix w = sinkproof_matrix_at(stack, e);
        for (size_t r = 0; good && r < w.rows; r++) {
            const uint8_t *codes = out->bytes, *scales = out->bytes + half;
            if (w.data == NULL) {
                sinkproof_synthetic_codes(&w, r, out->bytes, out->bytes + half);
            } else {
                codes = w.data + r * half;
                scales = w.scales + r * blocks;
            }
            good = part == 0 ? put(out, codes, half) : put(out, scales, blocks);
        }
    }
    return good;
}

// x as two bytes of bf16, if that is what it is.
static bool encode(const job *out, const sinkproof_matrix *w, double x, uint8_t *bytes) {
    uint16_t bits = sinkproof_bf16_bits(x);
    bytes[0] = (uint8_t)bits;
    bytes[1] = (uint8_t)(bits >> 8);
    return sinkproof_bf16_value(bits) == x ||
           sinkproof_fail(out->error,
                          "tensor %s: expected values that bf16 holds exactly, found "
                          "%a",
                          w->name, x);
}

// [rows, cols] of each expert, written as [cols, rows].
static bool write_dequantized(const job *out, const sinkproof_matrix *stack) {
    bool good = true;
    for (size_t e = 0; good && e < stack->count; e++) {
        sinkproof_matrix w = sinkproof_matrix_at(stack, e);
        for (size_t r = 0; good && r < w.rows; r++) {
            sinkproof_matrix_row(&w, r, out->row_c);
            for (size_t c = 0; good && c < w.cols; c++)
                good = encode(out, &w, out->row_c[c], out->bytes + 2 * (c * w.rows + r));
        }
        good = good && put(out, out->bytes, 2 * w.rows * w.cols);
    }
    return good;
}

// Stored weights are copied as the bytes that they are (a transposed expert too: the whole
// of it is contiguous); synthetic ones are bf16.
static bool write_plain(const job *out, const sinkproof_matrix *stack) {
    bool good = true;
    for (size_t e = 0; good && e < stack->count; e++) {
        sinkproof_matrix w = sinkproof_matrix_at(stack, e);
        size_t size = sinkproof_dtype_size(w.dtype);
        if (w.data != NULL) good = put(out, w.data, w.rows * w.cols * size);
        for (size_t r = 0; good && w.data == NULL && r < w.rows; r++) {
            sinkproof_matrix_row(&w, r, out->row_c);
            for (size_t c = 0; good && c < w.cols; c++)
                good = encode(out, &w, out->row_c[c], out->bytes + 2 * c);
            good = good && put(out, out->bytes, 2 * w.cols);
        }
    }
    return good;
}

static bool write_slot(const job *out, size_t l, sinkproof_slot slot) {
    sinkproof_matrix w = sinkproof_model_slot(out->model, l, slot);
    if (is_fused_tail(out, slot)) return true;
    if (is_fused(out, slot)) { // q, k, v: every second slot
        sinkproof_matrix k = sinkproof_model_slot(out->model, l, (sinkproof_slot)(slot + 2));
        sinkproof_matrix v = sinkproof_model_slot(out->model, l, (sinkproof_slot)(slot + 4));
        if (k.dtype != w.dtype || v.dtype != w.dtype)
            return sinkproof_fail(out->error, "tensor %s: expected q, k and v of one dtype",
                                  w.name);
        return write_plain(out, &w) && write_plain(out, &k) && write_plain(out, &v);
    }
    if (w.dtype != SINKPROOF_DTYPE_MXFP4) return write_plain(out, &w);
    if (out->dequantize) return write_dequantized(out, &w);
    return write_mxfp4(out, &w, 0) && write_mxfp4(out, &w, 1);
}

// Layers first, then what is outside them; once to declare, once to write.
static bool write_tensors(const job *out, const char *path) {
    size_t n_layers = out->config->n_layers;
    bool good = true;
    sinkproof_safetensors_writer_metadata(out->writer, "format", "pt"); // transformers asks for it
    for (size_t l = 0; l <= n_layers; l++)
        for (int s = l < n_layers ? 0 : SINKPROOF_LAYER_SLOTS;
             s < (l < n_layers ? SINKPROOF_LAYER_SLOTS : SINKPROOF_SLOTS); s++)
            declare(out, l < n_layers ? l : 0, (sinkproof_slot)s);
    good = sinkproof_safetensors_writer_begin(out->writer, path, out->error);
    for (size_t l = 0; good && l <= n_layers; l++) {
        for (int s = l < n_layers ? 0 : SINKPROOF_LAYER_SLOTS;
             good && s < (l < n_layers ? SINKPROOF_LAYER_SLOTS : SINKPROOF_SLOTS); s++)
            good = write_slot(out, l < n_layers ? l : 0, (sinkproof_slot)s);
        sinkproof_progress("synth", "layer", l, n_layers);
    }
    return good && sinkproof_safetensors_writer_finish(out->writer, out->error);
}

// Room for the largest row as numbers, and as bytes (or a whole expert when transposed).
static bool make_room(job *out) {
    size_t widest = 0, largest = 0;
    for (int s = 0; s < SINKPROOF_SLOTS; s++) {
        sinkproof_matrix w = sinkproof_model_slot(out->model, 0, (sinkproof_slot)s);
        bool whole = out->dequantize && w.dtype == SINKPROOF_DTYPE_MXFP4;
        size_t elements = whole ? w.rows * w.cols : w.cols;
        if (w.cols > widest) widest = w.cols;
        if (elements > largest) largest = elements;
    }
    out->row_c = malloc(widest * sizeof *out->row_c);
    out->bytes = malloc(2 * largest);
    out->writer = sinkproof_safetensors_writer_new();
    return (out->row_c != NULL && out->bytes != NULL && out->writer != NULL) ||
           sinkproof_fail(out->error, "out of memory for a row of %zu numbers", widest);
}

// Makes the directory, or accepts an empty one.
static bool make_directory(const char *path, bool *made, sinkproof_error *error) {
    *made = mkdir(path, 0777) == 0;
    if (*made) return true;
    if (errno != EEXIST) return sinkproof_fail(error, "%s: cannot make: %s", path, strerror(errno));
    DIR *listing = opendir(path);
    if (listing == NULL) return sinkproof_fail(error, "%s: cannot list: %s", path, strerror(errno));
    size_t entries = 0;
    while (readdir(listing) != NULL) entries++; // "." and ".." are always there
    closedir(listing);
    return entries <= 2 ||
           sinkproof_fail(error, "%s: expected a new or empty directory, found files in it", path);
}

// config.json first, so that what it cannot say is known before any weight is written.
static bool write_checkpoint(job *out, const char *directory) {
    bool made = false;
    size_t length = strlen(directory) + 32;
    char *config = malloc(length), *tensors = malloc(length);
    if (config == NULL || tensors == NULL) abort();
    snprintf(config, length, "%s/config.json", directory);
    snprintf(tensors, length, "%s/model.safetensors", directory);
    sinkproof_layer layer = sinkproof_model_layer(out->model, 0);
    bool mxfp4 = layer.w_up.dtype == SINKPROOF_DTYPE_MXFP4 && !out->dequantize;
    bool good = mxfp4 || out->hf ||
                sinkproof_fail(out->error,
                               "tensor %s: expected MXFP4, which the original layout "
                               "consists of, found %s",
                               layer.w_up.name, sinkproof_dtype_name(layer.w_up.dtype));
    good = good && make_room(out) && make_directory(directory, &made, out->error);
    bool begun = good;
    if (good && out->hf && mxfp4)
        good = sinkproof_config_write_mxfp4(config, out->config, out->error);
    else if (good)
        good = sinkproof_config_write(config, out->config, out->hf, out->error);
    good = good && write_tensors(out, tensors);
    if (!good && begun) unlink(config);
    sinkproof_safetensors_writer_free(out->writer); // and its temporary file
    if (!good && made) rmdir(directory);
    free(config);
    free(tensors);
    free(out->row_c);
    free(out->bytes);
    return good;
}

int sinkproof_cmd_synth(int argc, char **argv) {
    static const char document[] =
        "Write MODEL as a checkpoint that other engines load: config.json and model.safetensors "
        "in the Hugging Face or the original layout."
        "\vMODEL is a directory or synthetic:NAME[,seed=N][,layers=N], where NAME is tiny, "
        "gpt-oss-20b, gpt-oss-120b or the path of a config.json.";
    const struct argp argp = {options, parse, "MODEL", document, NULL, NULL, NULL};
    arguments in = {.layout = "hf"};
    argp_err_exit_status = SINKPROOF_USAGE;
    if (argp_parse(&argp, argc, argv, 0, NULL, &in) != 0) return SINKPROOF_USAGE;
    sinkproof_error error;
    sinkproof_model *model;
    if (!sinkproof_model_open(in.model, &model, &error))
        return sinkproof_bad_input("synth", &error);
    job out = {.model = model,
               .config = sinkproof_model_config(model),
               .hf = strcmp(in.layout, "hf") == 0,
               .dequantize = in.dequantize,
               .error = &error};
    bool good = write_checkpoint(&out, in.out);
    sinkproof_model_close(model);
    return good ? SINKPROOF_HOLDS : sinkproof_bad_input("synth", &error);
}
