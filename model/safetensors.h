// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// safetensors: 8 bytes of header length, a JSON header, the tensors' bytes. The reader maps the
// file and trusts nothing in it: it checks lengths, overlaps, gaps, overflow, duplicate names, and
// shapes that contradict the bytes.
#ifndef SINKPROOF_SAFETENSORS_H
#define SINKPROOF_SAFETENSORS_H

#include "base/error.h"
#include "model/matrix.h"

enum { SINKPROOF_MAX_RANK = 8 };

typedef struct sinkproof_tensor {
    const char *name;
    sinkproof_dtype dtype;
    size_t rank, shape[SINKPROOF_MAX_RANK];
    const uint8_t *data; // in the mapped file, at any alignment; in GGUF it may be blocks
    size_t bytes;
} sinkproof_tensor;

typedef struct sinkproof_safetensors sinkproof_safetensors;

bool sinkproof_safetensors_open(const char *path, sinkproof_safetensors **file,
                                sinkproof_error *error);
// The same from memory, which must outlive the result (for tests and fuzzing); `name` is used in
// errors.
bool sinkproof_safetensors_parse(const uint8_t *bytes, size_t length, const char *name,
                                 sinkproof_safetensors **file, sinkproof_error *error);
void sinkproof_safetensors_close(sinkproof_safetensors *file);

// One file, or several that are read as one: an index NAME.index.json, which names the file of each
// tensor, or a file of a series NAME-00001-of-00004.safetensors. No tensor may be in two of them,
// but tokens and positions, which must be the same.
bool sinkproof_safetensors_open_parts(const char *path, sinkproof_safetensors **file,
                                      sinkproof_error *error);
// The paths of these files, which the function below frees.
bool sinkproof_safetensors_names(const char *path, char ***names, size_t *n,
                                 sinkproof_error *error);
void sinkproof_safetensors_free_names(char **names, size_t n);

// The whole of a file, header and tensors; there is one part, unless it is several files.
size_t sinkproof_safetensors_parts(const sinkproof_safetensors *file);
const uint8_t *sinkproof_safetensors_bytes(const sinkproof_safetensors *file, size_t part,
                                           size_t *length);
// Gives back the memory of a tensor of a mapped file; reading it again reads the file.
void sinkproof_safetensors_forget(const sinkproof_safetensors *file,
                                  const sinkproof_tensor *tensor);
size_t sinkproof_safetensors_count(const sinkproof_safetensors *file);
const sinkproof_tensor *sinkproof_safetensors_at(const sinkproof_safetensors *file, size_t i);
const sinkproof_tensor *sinkproof_safetensors_find(const sinkproof_safetensors *file,
                                                   const char *name); // NULL if absent
// A value of __metadata__, or NULL.
const char *sinkproof_safetensors_metadata(const sinkproof_safetensors *file, const char *key);

// Element i of a tensor of any numeric dtype, exactly, as binary64.
double sinkproof_tensor_value(const sinkproof_tensor *tensor, size_t i);
size_t sinkproof_tensor_elements(const sinkproof_tensor *tensor);

// Writing: declare every tensor, then write the bytes of each in the declared order. The file is
// created under a temporary name beside `path` and renamed by finish: nothing half-written is ever
// left at `path`.
typedef struct sinkproof_safetensors_writer sinkproof_safetensors_writer;
sinkproof_safetensors_writer *
sinkproof_safetensors_writer_new(void); // NULL: no memory; begin reports it
void sinkproof_safetensors_writer_metadata(sinkproof_safetensors_writer *writer, const char *key,
                                           const char *value);
void sinkproof_safetensors_writer_declare(sinkproof_safetensors_writer *writer, const char *name,
                                          sinkproof_dtype dtype, size_t rank, const size_t *shape);
bool sinkproof_safetensors_writer_begin(sinkproof_safetensors_writer *writer, const char *path,
                                        sinkproof_error *error);
// The same into memory: after finish *bytes holds *length bytes, which the caller frees, whatever
// finish returned.
bool sinkproof_safetensors_writer_begin_memory(sinkproof_safetensors_writer *writer, char **bytes,
                                               size_t *length, sinkproof_error *error);
bool sinkproof_safetensors_writer_bytes(sinkproof_safetensors_writer *writer, const void *bytes,
                                        size_t length, sinkproof_error *error);
bool sinkproof_safetensors_writer_finish(sinkproof_safetensors_writer *writer,
                                         sinkproof_error *error);
// Frees the writer; removes the temporary file if finish was not called.
void sinkproof_safetensors_writer_free(sinkproof_safetensors_writer *writer);

#endif
