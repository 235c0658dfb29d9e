// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Checkpoints: what `synth` writes opens in each layout with every element equal to the
// synthetic source; sharded files are the same model; one thing wrong at a time is refused
// with a sentence that names the tensor. The sentences are printed.
#include "audit/command/command.h"
#include "model/container.h"
#include "tests/shared/tap.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/sinkproof-checkpoint-XXXXXX";

static const char *path_of(const char *directory, const char *file) {
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s%s%s", root, directory, file[0] == '\0' ? "" : "/", file);
    return path;
}

static void remove_directory(const char *path) {
    DIR *listing = opendir(path);
    if (listing == NULL) return;
    for (struct dirent *item = readdir(listing); item != NULL; item = readdir(listing)) {
        char inside[600];
        if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0) continue;
        snprintf(inside, sizeof inside, "%s/%s", path, item->d_name);
        if (unlink(inside) != 0) remove_directory(inside);
    }
    closedir(listing);
    rmdir(path);
}

static int synth(const char *model, const char *out, const char *layout, bool dequantize) {
    char command[] = "sinkproof synth", flag_out[] = "--out", flag_layout[] = "--layout";
    char flag_dequantize[] = "--dequantize", model_copy[256], out_copy[256], layout_copy[16];
    snprintf(model_copy, sizeof model_copy, "%s", model);
    snprintf(out_copy, sizeof out_copy, "%s", path_of(out, ""));
    snprintf(layout_copy, sizeof layout_copy, "%s", layout);
    char *argv[] = {command,
                    model_copy,
                    flag_out,
                    out_copy,
                    flag_layout,
                    layout_copy,
                    dequantize ? flag_dequantize : NULL,
                    NULL};
    return cmd_synth(dequantize ? 7 : 6, argv);
}

// Elements of `b` that differ from `a`, over all slots; SIZE_MAX when shapes do.
static size_t differences(const sinkproof_model *a, const sinkproof_model *b) {
    const sinkproof_config *config = sinkproof_model_config(a);
    size_t differ = 0;
    double row_a[1024], row_b[1024];
    for (size_t l = 0; l < config->n_layers; l++)
        for (int s = 0; s < SINKPROOF_SLOTS; s++) {
            sinkproof_matrix x = sinkproof_model_slot(a, l, (sinkproof_slot)s);
            sinkproof_matrix y = sinkproof_model_slot(b, l, (sinkproof_slot)s);
            if (x.count != y.count || x.rows != y.rows || x.cols != y.cols || x.cols > 1024)
                return SIZE_MAX;
            for (size_t e = 0; e < x.count; e++) {
                sinkproof_matrix xe = sinkproof_matrix_at(&x, e), ye = sinkproof_matrix_at(&y, e);
                for (size_t r = 0; r < x.rows; r++) {
                    sinkproof_matrix_row(&xe, r, row_a);
                    sinkproof_matrix_row(&ye, r, row_b);
                    for (size_t c = 0; c < x.cols; c++) // bits: minus zero is a value of its own
                        differ += memcmp(&row_a[c], &row_b[c], sizeof row_a[c]) != 0;
                }
            }
        }
    return differ;
}

static void check_round_trip(const char *model, const char *out, const char *layout,
                             bool dequantize, const char *expected_layout) {
    sinkproof_model *source = NULL, *copy = NULL;
    sinkproof_error error = {""};
    ok(synth(model, out, layout, dequantize) == 0, "mxfp4.decode synth of %s as %s", model,
       expected_layout);
    bool open = sinkproof_model_open(model, &source, &error) &&
                sinkproof_model_open(path_of(out, ""), &copy, &error);
    ok(open && strcmp(sinkproof_model_layout(copy), expected_layout) == 0 &&
           sinkproof_model_odd_count(copy) == 0,
       "model.config it opens as %s and nothing is odd %s", expected_layout, error.text);
    size_t differ = open ? differences(source, copy) : SIZE_MAX;
    ok(differ == 0, "mxfp4.decode every element of %s equals the source, worst=%zu bound=0",
       expected_layout, differ);
    uint64_t ours = 0, theirs = 0;
    ok(open && sinkproof_model_fingerprint(source, &ours, &error) &&
           sinkproof_model_fingerprint(copy, &theirs, &error) && ours == theirs,
       "the fingerprint tells numbers, neither formats nor containers");
    sinkproof_model_close(source);
    sinkproof_model_close(copy);
}

// Whatever the list of containers holds: what one writes, it alone recognises, and holds the model.
static void check_containers(const char *spec) {
    const sinkproof_container *container;
    const sinkproof_writing how = {.dequantize = false};
    sinkproof_model *source = NULL, *copy = NULL;
    uint64_t expected = 0, found = 1;
    sinkproof_error error = {""};
    if (!sinkproof_model_open(spec, &source, &error)) abort();
    for (size_t i = 0; (container = sinkproof_container_at(i)) != NULL; i++) {
        if (container->write == NULL) continue;
        char name[32];
        snprintf(name, sizeof name, "container%s",
                 container->suffix != NULL ? container->suffix : "");
        const char *path = path_of(name, "");
        ok(sinkproof_container_named(container->name) == container &&
               container->write(container, source, path, &how, &error) &&
               container_recognise(path) == container &&
               sinkproof_model_open(path, &copy, &error) && differences(source, copy) == 0 &&
               sinkproof_model_fingerprint(copy, &found, &error) &&
               sinkproof_model_fingerprint(source, &expected, &error) && found == expected,
           "model.config container %s reads what it writes %s", container->name, error.text);
        sinkproof_model_close(copy);
        if (unlink(path) != 0) remove_directory(path);
    }
    sinkproof_model_close(source);
}

static void put_text(const char *directory, const char *file, const char *text) {
    FILE *stream = fopen(path_of(directory, file), "w");
    if (stream == NULL || fputs(text, stream) < 0 || fclose(stream) != 0) abort();
}

static void copy_config(const char *from, const char *to) {
    sinkproof_config config;
    if (mkdir(path_of(to, ""), 0777) != 0 ||
        !config_read(path_of(from, "config.json"), &config, NULL) ||
        !config_write(path_of(to, "config.json"), &config, container_recognise(path_of(from, "")),
                      false, NULL))
        abort();
}

// A copy of one tensor with something wrong in it.
typedef struct mutation {
    const char *tensor, *rename;
    bool drop, swap_shape, nan_scale;
    uint16_t last; // bits of the last number, a bf16; 0: as it was
    bool retype;   // zeros of the same shape and of `dtype`
    sinkproof_dtype dtype;
} mutation;

static bool is_target(const mutation *m, const sinkproof_tensor *tensor) {
    return m->tensor != NULL && strcmp(m->tensor, tensor->name) == 0;
}

static void declare_copy(sinkproof_safetensors_writer *writer, const sinkproof_tensor *tensor,
                         const mutation *m) {
    size_t shape[SINKPROOF_MAX_RANK];
    memcpy(shape, tensor->shape, sizeof shape);
    bool target = is_target(m, tensor);
    if (target && m->drop) return;
    if (target && m->swap_shape) {
        shape[0] = tensor->shape[tensor->rank - 1];
        shape[tensor->rank - 1] = tensor->shape[0];
    }
    sinkproof_safetensors_writer_declare(
        writer, target && m->rename != NULL ? m->rename : tensor->name,
        target && m->retype ? m->dtype : tensor->dtype, tensor->rank, shape);
}

static bool write_copy(sinkproof_safetensors_writer *writer, const sinkproof_tensor *tensor,
                       const mutation *m) {
    bool target = is_target(m, tensor);
    if (target && m->drop) return true;
    bool zeros = target && m->retype;
    size_t length =
        zeros ? sinkproof_tensor_elements(tensor) * sinkproof_dtype_size(m->dtype) : tensor->bytes;
    uint8_t *bytes = calloc(length + 1, 1);
    if (bytes == NULL) abort();
    if (!zeros) memcpy(bytes, tensor->data, tensor->bytes);
    if (target && m->nan_scale) bytes[tensor->bytes - 1] = 255;
    if (target && m->last != 0) memcpy(bytes + tensor->bytes - 2, &m->last, 2);
    bool good = sinkproof_safetensors_writer_bytes(writer, bytes, length, NULL);
    free(bytes);
    return good;
}

// Tensors begin <= i < end of from/model.safetensors into to/file, mutated.
static void copy_tensors(const char *from, const char *to, const char *file, size_t begin,
                         size_t end, const mutation *m) {
    sinkproof_safetensors *in;
    if (!sinkproof_safetensors_open(path_of(from, "model.safetensors"), &in, NULL)) abort();
    sinkproof_safetensors_writer *writer = sinkproof_safetensors_writer_new();
    if (end > sinkproof_safetensors_count(in)) end = sinkproof_safetensors_count(in);
    for (size_t i = begin; i < end; i++) declare_copy(writer, sinkproof_safetensors_at(in, i), m);
    bool good = sinkproof_safetensors_writer_begin(writer, path_of(to, file), NULL);
    for (size_t i = begin; i < end; i++)
        good = good && write_copy(writer, sinkproof_safetensors_at(in, i), m);
    if (!good || !sinkproof_safetensors_writer_finish(writer, NULL)) abort();
    sinkproof_safetensors_writer_free(writer);
    sinkproof_safetensors_close(in);
}

static void check_refused(const char *directory, const char *told, const char *what) {
    sinkproof_model *model;
    sinkproof_error error = {""};
    bool refused = !sinkproof_model_open(path_of(directory, ""), &model, &error);
    ok(refused && model == NULL && strstr(error.text, told) != NULL, "%s: %s", what,
       refused ? error.text : "accepted");
    if (!refused) sinkproof_model_close(model);
}

static void check_mutations(const char *from, const char *layers, const char *sinks,
                            const char *scales, const char *blocks) {
    char w_o[128], sinks_name[128], scales_name[128], blocks_name[128];
    snprintf(w_o, sizeof w_o, "%s.1.%s", layers,
             from[0] == 'h' ? "self_attn.o_proj.weight" : "attn.out.weight");
    snprintf(sinks_name, sizeof sinks_name, "%s.1.%s", layers, sinks);
    snprintf(scales_name, sizeof scales_name, "%s.1.%s", layers, scales);
    snprintf(blocks_name, sizeof blocks_name, "%s.1.%s", layers, blocks);
    const struct {
        const char *what, *told;
        mutation m;
    } cases[] = {
        {"missing", "found none", {.tensor = sinks_name, .drop = true}},
        {"renamed", "found none", {.tensor = blocks_name, .rename = "other"}},
        {"no scales", "found none", {.tensor = scales_name, .drop = true}},
        {"transposed", "expected shape [96, 160]", {.tensor = w_o, .swap_shape = true}},
        {"blocks reshaped",
         "expected shape [7, 256, 3, 16]",
         {.tensor = blocks_name, .swap_shape = true}},
        {"wrong dtype",
         "expected dtype U8, found BF16",
         {.tensor = blocks_name, .retype = true, .dtype = SINKPROOF_DTYPE_BF16}},
        {"wrong dtype",
         "expected dtype BF16, F16 or F32, found I32",
         {.tensor = sinks_name, .retype = true, .dtype = SINKPROOF_DTYPE_I32}},
        {"NaN scale", "found 255 (NaN) at (6, 255, 2)", {.tensor = scales_name, .nan_scale = true}},
        {"NaN weight", "found NaN at (95, 159) (1 in all)", {.tensor = w_o, .last = 0x7fc1}},
        {"infinite weight", "found infinity at (95, 159)", {.tensor = w_o, .last = 0x7f80}},
        {"weight of -infinity", "found -infinity at (95, 159)", {.tensor = w_o, .last = 0xff80}},
        {"infinite sink",
         "expected finite numbers or -infinity, found infinity at (9)",
         {.tensor = sinks_name, .last = 0x7f80}},
        {"NaN sink", "found NaN at (9)", {.tensor = sinks_name, .last = 0xffc0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        copy_config(from, "mutant");
        copy_tensors(from, "mutant", "model.safetensors", 0, SIZE_MAX, &cases[i].m);
        char what[64];
        snprintf(what, sizeof what, "%s, %s", from, cases[i].what);
        check_refused("mutant", cases[i].told, what);
        remove_directory(path_of("mutant", ""));
    }
}

// A sink of -infinity is a head without one; what `open` refuses for its values `inspect` opens.
static void check_values(void) {
    const mutation none = {.tensor = "model.layers.1.self_attn.sinks", .last = 0xff80};
    const mutation bad = {.tensor = "model.norm.weight", .last = 0x7fc0};
    sinkproof_model *model = NULL;
    sinkproof_error error = {""};
    copy_config("hf", "mutant");
    copy_tensors("hf", "mutant", "model.safetensors", 0, SIZE_MAX, &none);
    ok(sinkproof_model_open(path_of("mutant", ""), &model, &error),
       "model.config a sink of -infinity is legal %s", error.text);
    sinkproof_model_close(model);
    copy_tensors("hf", "mutant", "model.safetensors", 0, SIZE_MAX, &bad);
    check_refused("mutant", "model.norm.weight: expected finite numbers, found NaN at (95)", "NaN");
    ok(sinkproof_model_inspect(path_of("mutant", ""), &model, &error),
       "model.config inspect opens what open refuses for its values %s", error.text);
    sinkproof_model_close(model);
    remove_directory(path_of("mutant", ""));
}

// config.json against tensors that it does not describe.
static void check_contradictions(void) {
    sinkproof_config config;
    char file[256];
    snprintf(file, sizeof file, "%s", path_of("mutant", "config.json")); // path_of reuses its room
    const struct {
        size_t *value, to;
        const char *told;
    } cases[] = {
        {&config.hidden, 128, "expected shape"},        {&config.inter, 96, "expected shape"},
        {&config.n_experts, 8, "expected shape"},       {&config.n_heads, 12, "expected shape"},
        {&config.vocab, 212, "embed_tokens"},           {&config.n_layers, 3, "layers.2"},
        {&config.n_layers, 1, "expected 1 layer from"}, {&config.hidden, 100, "expected shape"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        copy_config("hf", "mutant");
        copy_tensors("hf", "mutant", "model.safetensors", 0, SIZE_MAX, &(mutation){0});
        if (!config_read(file, &config, NULL)) abort();
        *cases[i].value = cases[i].to;
        if (!config_write(file, &config, sinkproof_container_named("hf"), false, NULL)) abort();
        check_refused("mutant", cases[i].told, "config contradicts the tensors");
        remove_directory(path_of("mutant", ""));
    }
}

// Two shards at `cut`, and an index made from what each holds.
static void make_shards(const char *from, const char *to, size_t cut) {
    sinkproof_safetensors *in;
    copy_config(from, to);
    copy_tensors(from, to, "one.safetensors", 0, cut, &(mutation){0});
    copy_tensors(from, to, "two.safetensors", cut, SIZE_MAX, &(mutation){0});
    if (!sinkproof_safetensors_open(path_of(from, "model.safetensors"), &in, NULL)) abort();
    json_t *map = json_object();
    for (size_t i = 0; i < sinkproof_safetensors_count(in); i++)
        json_object_set_new(map, sinkproof_safetensors_at(in, i)->name,
                            json_string(i < cut ? "one.safetensors" : "two.safetensors"));
    json_t *index = json_pack("{s:{}, s:o}", "metadata", "weight_map", map);
    json_dump_file(index, path_of(to, "model.safetensors.index.json"), 0);
    json_decref(index);
    sinkproof_safetensors_close(in);
}

static void check_shards(void) {
    sinkproof_model *one = NULL, *two = NULL;
    sinkproof_error error = {""};
    const char index[] = "model.safetensors.index.json";
    make_shards("hf", "hf-shards", 17);
    ok(sinkproof_model_open(path_of("hf", ""), &one, &error) &&
           sinkproof_model_open(path_of("hf-shards", ""), &two, &error) &&
           differences(one, two) == 0,
       "model.config two shards are the same model %s", error.text);
    sinkproof_model_close(one);
    sinkproof_model_close(two);
    unlink(path_of("hf-shards", "two.safetensors"));
    check_refused("hf-shards", "two.safetensors: cannot open", "missing shard");
    put_text("hf-shards", index, "{\"weight_map\": {\"a\": \"../hf/model.safetensors\"}}");
    check_refused("hf-shards", "same directory", "shard outside the directory");
    put_text("hf-shards", index, "{\"weight_map\": {\"a\": \"/etc/passwd\"}}");
    check_refused("hf-shards", "same directory", "absolute shard");
    put_text("hf-shards", index, "{\"weight_map\": {\"a\": \"one.safetensors\"}}");
    check_refused("hf-shards", "tensor a: expected in one.safetensors, found nowhere",
                  "a tensor that its shard lacks");
    put_text("hf-shards", index, "{\"weight_map\": {\"a\": 1}}");
    check_refused("hf-shards", "no string", "index without a name");
    put_text("hf-shards", index, "{\"weight_map\": {}}");
    check_refused("hf-shards", "weight_map", "empty index");
    put_text("hf-shards", index, "{\"weight_map\": {");
    check_refused("hf-shards", "expected JSON", "malformed index");
    unlink(path_of("hf-shards", index));
    check_refused("hf-shards", "found neither", "no index");
}

static void check_original_shards(void) {
    sinkproof_model *one = NULL, *two = NULL;
    sinkproof_error error = {""};
    copy_config("openai", "openai-shards");
    copy_tensors("openai", "openai-shards", "a.safetensors", 0, 9, &(mutation){0});
    copy_tensors("openai", "openai-shards", "b.safetensors", 9, SIZE_MAX, &(mutation){0});
    ok(sinkproof_model_open(path_of("openai", ""), &one, &error) &&
           sinkproof_model_open(path_of("openai-shards", ""), &two, &error) &&
           differences(one, two) == 0,
       "model.config the original layout reads every file %s", error.text);
    sinkproof_model_close(one);
    sinkproof_model_close(two);
    copy_tensors("openai", "openai-shards", "c.safetensors", 8, 9, &(mutation){0});
    check_refused("openai-shards", "expected a name used once", "a tensor in two files");
}

// The tensors of from and one that belongs to no model.
static void add_stranger(const char *from, const char *to) {
    sinkproof_safetensors *in;
    const size_t shape[1] = {3};
    if (!sinkproof_safetensors_open(path_of(from, "model.safetensors"), &in, NULL)) abort();
    sinkproof_safetensors_writer *writer = sinkproof_safetensors_writer_new();
    const mutation none = {0};
    size_t n = sinkproof_safetensors_count(in);
    for (size_t i = 0; i < n; i++) declare_copy(writer, sinkproof_safetensors_at(in, i), &none);
    sinkproof_safetensors_writer_declare(writer, "stranger", SINKPROOF_DTYPE_U8, 1, shape);
    bool good = sinkproof_safetensors_writer_begin(writer, path_of(to, "model.safetensors"), NULL);
    for (size_t i = 0; i < n; i++)
        good = good && write_copy(writer, sinkproof_safetensors_at(in, i), &none);
    good = good && sinkproof_safetensors_writer_bytes(writer, "abc", 3, NULL) &&
           sinkproof_safetensors_writer_finish(writer, NULL);
    if (!good) abort();
    sinkproof_safetensors_writer_free(writer);
    sinkproof_safetensors_close(in);
}

static void open_with_oddity(const char *what, const char *told) {
    sinkproof_model *model = NULL;
    sinkproof_error error = {""};
    bool good = sinkproof_model_open(path_of("odd", ""), &model, &error) &&
                sinkproof_model_odd_count(model) == 1 &&
                strstr(sinkproof_model_odd(model, 0), told) != NULL;
    ok(good, "%s is odd, not an error: %s", what,
       model == NULL ? error.text : sinkproof_model_odd(model, 0));
    sinkproof_model_close(model);
}

static void check_odd_and_files(void) {
    copy_config("hf", "odd");
    copy_tensors("hf", "odd", "model.safetensors", 0, SIZE_MAX, &(mutation){0});
    copy_tensors("hf", "odd", "more.safetensors", 0, 1, &(mutation){0});
    put_text("odd", "model.safetensors.index.json", "{}");
    open_with_oddity("an index beside model.safetensors", "not read");
    unlink(path_of("odd", "model.safetensors.index.json"));
    unlink(path_of("odd", "more.safetensors"));
    add_stranger("hf", "odd");
    open_with_oddity("an unknown tensor", "stranger");
    if (truncate(path_of("odd", "model.safetensors"), 100000) != 0) abort();
    check_refused("odd", "odd/model.safetensors", "truncated file");
    put_text("odd", "config.json", "{\"model_type\": ");
    check_refused("odd", "config.json: expected JSON", "malformed config");
    check_refused("absent", "expected a directory, a .gguf file or synthetic:NAME", "no directory");
}

static void check_synth_refusals(void) {
    struct stat status;
    ok(synth("synthetic:tiny,layers=2", "hf", "hf", false) == 3, "synth refuses a full directory");
    ok(synth(path_of("bf16", ""), "never", "openai", false) == 3 &&
           stat(path_of("never", ""), &status) != 0,
       "synth does not quantize, and leaves nothing");
    ok(synth("synthetic:none", "never", "hf", false) == 3 &&
           stat(path_of("never", ""), &status) != 0,
       "synth of an unknown model leaves nothing");
}

// A stack of two-byte weights, rows of inputs one after the other, as a container may hold it.
static uint8_t *by_rows(sinkproof_matrix *stack) {
    size_t length = stack->rows * stack->cols, out = 0;
    uint8_t *bytes = malloc(2 * stack->count * length);
    if (bytes == NULL) abort();
    for (size_t e = 0; e < stack->count; e++)
        for (size_t r = 0; r < stack->rows; r++)
            for (size_t c = 0; c < stack->cols; c++, out += 2)
                memcpy(bytes + out,
                       stack->data + 2 * (e * stack->stack_stride + r * stack->row_stride +
                                          c * stack->col_stride),
                       2);
    stack->data = bytes;
    stack->stack_stride = length, stack->row_stride = stack->cols, stack->col_stride = 1;
    return bytes;
}

// However a container holds its experts, a layout stores them as its own.
static void check_orders(void) {
    sinkproof_model *source = NULL, *other = NULL, *copy = NULL;
    const sinkproof_writing how = {.dequantize = false};
    const sinkproof_container *hf = sinkproof_container_named("hf");
    sinkproof_error error = {""};
    if (!sinkproof_model_open(path_of("bf16", ""), &source, &error) ||
        !sinkproof_model_open(path_of("bf16", ""), &other, &error))
        abort();
    uint8_t *up = by_rows(&other->layers[0].w_up), *down = by_rows(&other->layers[0].w_down);
    const char *path = path_of("order", "");
    bool written = differences(source, other) == 0 && hf->write(hf, other, path, &how, &error) &&
                   sinkproof_model_open(path, &copy, &error);
    size_t differ = written ? differences(source, copy) : SIZE_MAX;
    ok(differ == 0, "experts held row by row are written as hf has them worst=%zu bound=0 %s",
       differ, error.text);
    sinkproof_model_close(source);
    sinkproof_model_close(other);
    sinkproof_model_close(copy);
    free(up);
    free(down);
}

int main(void) {
    const char tiny[] = "synthetic:tiny,layers=2,seed=7";
    if (mkdtemp(root) == NULL) abort();
    check_round_trip(tiny, "hf", "hf", false, "hf-mxfp4");
    check_round_trip(tiny, "openai", "openai", false, "openai");
    check_round_trip(tiny, "bf16", "hf", true, "hf-bf16");
    check_containers(tiny);
    check_mutations("hf", "model.layers", "self_attn.sinks", "mlp.experts.gate_up_proj_scales",
                    "mlp.experts.gate_up_proj_blocks");
    check_mutations("openai", "block", "attn.sinks", "mlp.mlp1_weight.scales",
                    "mlp.mlp1_weight.blocks");
    check_values();
    check_contradictions();
    check_shards();
    check_original_shards();
    check_odd_and_files();
    check_synth_refusals();
    check_orders();
    remove_directory(root);
    return tap_done();
}
