// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Writes safetensors: the header from the declarations, padded with blanks so that the data begins
// at a multiple of 8, then the bytes in order. The file gets its name only once every declared byte
// is in it.
#include "model/safetensors.h"

#include "base/words.h"
#include "model/bytes.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

struct sinkproof_safetensors_writer {
    json_t *header;
    size_t declared, written; // bytes of data
    sinkproof_output output;
    sinkproof_error problem; // error of a declaration, reported by begin
};

sinkproof_safetensors_writer *sinkproof_safetensors_writer_new(void) {
    sinkproof_safetensors_writer *writer = calloc(1, sizeof *writer);
    if (writer != NULL) writer->header = json_object();
    if (writer != NULL && writer->header != NULL) return writer;
    free(writer);
    return NULL;
}

void sinkproof_safetensors_writer_metadata(sinkproof_safetensors_writer *writer, const char *key,
                                           const char *value) {
    if (writer == NULL) return; // begin reports it
    json_t *metadata = json_object_get(writer->header, "__metadata__");
    if (metadata == NULL) {
        metadata = json_object();
        json_object_set_new(writer->header, "__metadata__", metadata);
    }
    if (json_object_set_new(metadata, key, json_string(value)) != 0)
        sinkproof_fail(&writer->problem, "expected metadata %.100s in UTF-8", key);
}

void sinkproof_safetensors_writer_declare(sinkproof_safetensors_writer *writer, const char *name,
                                          sinkproof_dtype dtype, size_t rank, const size_t *shape) {
    if (writer == NULL) return; // begin reports it
    size_t bytes = sinkproof_dtype_size(dtype), end;
    bool good = bytes > 0 && rank <= SINKPROOF_MAX_RANK;
    json_t *dimensions = json_array();
    for (size_t i = 0; i < rank; i++) {
        good = !__builtin_mul_overflow(bytes, shape[i], &bytes) && good;
        json_array_append_new(dimensions, json_integer((json_int_t)shape[i]));
    }
    good = !__builtin_add_overflow(writer->declared, bytes, &end) && end < (size_t)1 << 62 && good;
    if (!good || json_object_get(writer->header, name) != NULL)
        sinkproof_fail(&writer->problem,
                       "tensor %.200s: expected a name used once, a plain dtype and a sane shape",
                       name);
    json_t *entry =
        json_pack("{s:s, s:o, s:[I, I]}", "dtype", sinkproof_dtype_name(dtype), "shape", dimensions,
                  "data_offsets", (json_int_t)writer->declared, (json_int_t)end);
    if (json_object_set_new(writer->header, name, entry) != 0)
        sinkproof_fail(&writer->problem, "tensor %.200s: expected a name in UTF-8", name);
    writer->declared = end;
}

// The length of the header and the header, to an output that is already open or not.
static bool write_header(sinkproof_safetensors_writer *writer, bool open, sinkproof_error *error) {
    char *text = open ? json_dumps(writer->header, JSON_COMPACT) : NULL;
    if (open && text == NULL) sinkproof_fail(error, "%s: out of memory", writer->output.path);
    if (text == NULL) return false;
    size_t length = strlen(text), padded = (length + 7) / 8 * 8;
    uint8_t prefix[8];
    for (int i = 0; i < 8; i++) prefix[i] = (uint8_t)((uint64_t)padded >> 8 * i);
    fwrite(prefix, 1, 8, writer->output.stream); // finish checks ferror
    fprintf(writer->output.stream, "%-*s", (int)padded, text);
    free(text);
    return true;
}

bool sinkproof_safetensors_writer_begin(sinkproof_safetensors_writer *writer, const char *path,
                                        sinkproof_error *error) {
    if (writer == NULL) return sinkproof_fail(error, "%s: out of memory", path);
    if (writer->problem.text[0] != '\0')
        return sinkproof_fail(error, "%s: %.900s", path, writer->problem.text);
    return write_header(writer, sinkproof_output_open(&writer->output, path, error), error);
}

bool sinkproof_safetensors_writer_begin_memory(sinkproof_safetensors_writer *writer, char **bytes,
                                               size_t *length, sinkproof_error *error) {
    *bytes = NULL;
    if (writer == NULL) return sinkproof_fail(error, "(memory): out of memory");
    if (writer->problem.text[0] != '\0')
        return sinkproof_fail(error, "%.900s", writer->problem.text);
    return write_header(writer, sinkproof_output_memory(&writer->output, bytes, length, error),
                        error);
}

bool sinkproof_safetensors_writer_bytes(sinkproof_safetensors_writer *writer, const void *bytes,
                                        size_t length, sinkproof_error *error) {
    const char *path = writer->output.path == NULL ? "safetensors" : writer->output.path;
    if (writer->output.stream == NULL || length > writer->declared - writer->written)
        return sinkproof_fail(error, "%s: expected %s of tensors as declared, found more", path,
                              sinkproof_counted(writer->declared, "byte").text);
    if (length > 0 && fwrite(bytes, 1, length, writer->output.stream) != length)
        return sinkproof_fail(error, "%s: cannot write: %s", path, strerror(errno));
    writer->written += length;
    return true;
}

bool sinkproof_safetensors_writer_finish(sinkproof_safetensors_writer *writer,
                                         sinkproof_error *error) {
    if (writer->output.stream == NULL)
        return sinkproof_fail(error, "safetensors: expected begin before finish");
    if (writer->written != writer->declared)
        return sinkproof_fail(error, "%s: expected %s of tensors as declared, found %zu",
                              writer->output.path, sinkproof_counted(writer->declared, "byte").text,
                              writer->written);
    return sinkproof_output_finish(&writer->output, error);
}

void sinkproof_safetensors_writer_free(sinkproof_safetensors_writer *writer) {
    if (writer == NULL) return;
    sinkproof_output_drop(&writer->output);
    json_decref(writer->header);
    free(writer);
}
