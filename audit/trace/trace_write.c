// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Assembles a trace. Every tensor has a fixed place in a spool file, since all shapes follow from
// the configuration and n; each piece is written to its rows as it is computed.
#include "audit/trace/trace_write.h"

#include "audit/trace/trace_points.h"
#include "audit/version.h"
#include "base/words.h"
#include "model/bf16.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// One tensor of the trace.
typedef struct slot {
    bool wanted;
    sinkproof_dtype dtype;
    size_t rank, shape[SINKPROOF_MAX_RANK];
    size_t offset, bytes; // in the spool
    size_t rows;          // tokens written so far
} slot;

// A tensor beside the points.
typedef struct added {
    char name[SINKPROOF_TRACE_NAME];
    slot at;
} added;

struct sinkproof_trace_writer {
    char *path, policy[SINKPROOF_POLICY_NAME], engine[64], loss[2048];
    const sinkproof_model *model;
    size_t n, n_layers;
    slot *slots_lp; // [n_layers, TRACE_POINTS]; unlayered points in layer 0
    added *added;
    size_t n_added, end; // end: of the spool
    FILE *spool;
    uint8_t *memory; // replaces the spool when the trace is made in memory
    uint8_t *bytes;  // of the current piece
    size_t room;
    sinkproof_observer observer;
    sinkproof_error problem; // the first error; an empty text if there is none
};

static sinkproof_dtype stored_dtype(const sinkproof_policy *policy, sinkproof_trace_point point) {
    sinkproof_point rounding;
    if (!sinkproof_trace_rounding(point, &rounding)) return SINKPROOF_DTYPE_I32;
    switch (policy->at[rounding].format) {
    case SINKPROOF_F32:
        return SINKPROOF_DTYPE_F32;
    case SINKPROOF_F16:
        return SINKPROOF_DTYPE_F16;
    case SINKPROOF_BF16:
        return SINKPROOF_DTYPE_BF16;
    default:
        return SINKPROOF_DTYPE_F64;
    }
}

// The bits of a double that is a binary16 number (others were rounded before).
static uint16_t f16_bits(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
    if (x != x) return 0x7e00;
    double size = x < 0 ? -x : x;
    if (size > 65504) return sign | 0x7c00;
    if (size < 0x1p-14) return sign | (uint16_t)(size * 0x1p24); // zero and subnormals
    uint64_t exponent = (bits >> 52 & 0x7ff) - 1023 + 15, fraction = bits >> 42 & 0x3ff;
    return sign | (uint16_t)(exponent << 10 | fraction);
}

static void put_little_endian(uint8_t *to, uint64_t bits, size_t size) {
    for (size_t i = 0; i < size; i++) to[i] = (uint8_t)(bits >> 8 * i); // little-endian
}

static void encode_number(sinkproof_dtype dtype, double x, uint8_t *to) {
    uint64_t bits64;
    uint32_t bits32;
    float narrow = (float)x;
    memcpy(&bits64, &x, sizeof x);
    memcpy(&bits32, &narrow, sizeof narrow);
    switch (dtype) {
    case SINKPROOF_DTYPE_BF16:
        put_little_endian(to, sinkproof_bf16_bits(x), 2);
        break;
    case SINKPROOF_DTYPE_F16:
        put_little_endian(to, f16_bits(x), 2);
        break;
    case SINKPROOF_DTYPE_F32:
        put_little_endian(to, bits32, 4);
        break;
    case SINKPROOF_DTYPE_I32:
        put_little_endian(to, (uint32_t)(int32_t)x, 4);
        break;
    default:
        put_little_endian(to, bits64, 8);
        break;
    }
}

static void spool_write(sinkproof_trace_writer *w, const uint8_t *bytes, size_t length,
                        size_t offset) {
    if (w->memory != NULL) {
        memcpy(w->memory + offset, bytes, length);
        return;
    }
    while (length > 0 && w->problem.text[0] == '\0') {
        ssize_t done = pwrite(fileno(w->spool), bytes, length, (off_t)offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) {
            sinkproof_fail(&w->problem, "%.400s: a temporary file beside it: %s", w->path,
                           strerror(errno));
            return;
        }
        bytes += done;
        length -= (size_t)done;
        offset += (size_t)done;
    }
}

// Encodes `count` values in the slot's dtype, to w->bytes.
static bool encode_piece(sinkproof_trace_writer *w, const slot *s, size_t count,
                         const double *values) {
    size_t size = sinkproof_dtype_size(s->dtype);
    if (w->room < count * size) {
        uint8_t *larger = realloc(w->bytes, count * size);
        if (larger == NULL) return sinkproof_fail(&w->problem, "%.400s: no memory", w->path);
        w->bytes = larger;
        w->room = count * size;
    }
    for (size_t i = 0; i < count; i++) encode_number(s->dtype, values[i], w->bytes + i * size);
    return true;
}

// Writes [m, ...] of a chunk after the tokens written so far.
static void place_rows(sinkproof_trace_writer *w, const slot *s, size_t count) {
    size_t size = sinkproof_dtype_size(s->dtype), row = s->bytes / w->n;
    spool_write(w, w->bytes, count * size, s->offset + s->rows * row);
}

// Writes [heads, m, keys (+ 1)] of a chunk row by row, with the sink (A9) in the last column.
static void place_keys(sinkproof_trace_writer *w, const slot *s, const size_t *shape, bool sink) {
    size_t size = sinkproof_dtype_size(s->dtype), m = shape[1], columns = shape[2];
    size_t keys = sink ? columns - 1 : columns;
    for (size_t h = 0; h < shape[0]; h++)
        for (size_t i = 0; i < m; i++) {
            const uint8_t *from = w->bytes + (h * m + i) * columns * size;
            size_t row = s->offset + (h * w->n + s->rows + i) * s->shape[2] * size;
            spool_write(w, from, keys * size, row);
            if (sink) spool_write(w, from + keys * size, size, row + w->n * size);
        }
}

static void write_shown_piece(void *context, const char *name, size_t rank, const size_t *shape,
                              const double *values) {
    sinkproof_trace_writer *w = context;
    sinkproof_trace_point point;
    size_t layer, count = 1;
    if (!sinkproof_trace_name_parse(name, &point, &layer) ||
        !sinkproof_trace_point_exists(sinkproof_model_config(w->model), point, layer))
        return;
    slot *s = &w->slots_lp[layer * TRACE_POINTS + (size_t)point];
    bool by_head = sinkproof_trace_point_is_by_head(point);
    size_t m = by_head ? shape[1] : shape[0];
    if (!s->wanted || w->problem.text[0] != '\0') return;
    if (m > w->n - s->rows) {
        sinkproof_fail(&w->problem, "%.400s: %s: more than the %s announced", w->path, name,
                       sinkproof_counted(w->n, "token").text);
        return;
    }
    for (size_t r = 0; r < rank; r++) count *= shape[r];
    if (!encode_piece(w, s, count, values)) return;
    if (by_head)
        place_keys(w, s, shape, s->shape[2] > w->n);
    else
        place_rows(w, s, count);
    s->rows += m;
}

// Marks the points in the list; an unknown word is an error.
static bool mark_wanted_points(sinkproof_trace_writer *w, const char *points,
                               sinkproof_error *error) {
    if (!sinkproof_trace_list_check(points, w->n_layers, error)) return false;
    for (size_t l = 0; l < w->n_layers; l++)
        for (int p = 0; p < TRACE_POINTS; p++)
            w->slots_lp[l * TRACE_POINTS + (size_t)p].wanted =
                sinkproof_trace_list_names(points, (sinkproof_trace_point)p, l);
    return true;
}

// Sets shapes, dtypes and places of the wanted tensors; points outside the layers exist once.
static bool lay_out_tensors(sinkproof_trace_writer *w, const sinkproof_policy *policy,
                            sinkproof_error *error) {
    const sinkproof_config *config = sinkproof_model_config(w->model);
    size_t end = 0;
    for (size_t l = 0; l < w->n_layers; l++)
        for (int p = 0; p < TRACE_POINTS; p++) {
            slot *s = &w->slots_lp[l * TRACE_POINTS + (size_t)p];
            sinkproof_trace_point point = (sinkproof_trace_point)p;
            if (!sinkproof_trace_point_exists(config, point, l)) s->wanted = false;
            if (!s->wanted) continue;
            s->dtype = stored_dtype(policy, point);
            s->rank = sinkproof_trace_shape(config, point, w->n, s->shape);
            s->bytes = sinkproof_dtype_size(s->dtype);
            s->offset = end;
            bool fits = true;
            for (size_t r = 0; r < s->rank; r++)
                fits = fits && !__builtin_mul_overflow(s->bytes, s->shape[r], &s->bytes);
            if (!fits || __builtin_add_overflow(end, s->bytes, &end) || end > (size_t)1 << 60)
                return sinkproof_fail(error, "%.400s: a trace of %s is too large", w->path,
                                      sinkproof_counted(w->n, "token").text);
        }
    w->end = end;
    if (w->spool == NULL) {
        w->memory = calloc(end > 0 ? end : 1, 1);
        return w->memory != NULL || sinkproof_fail(error, "no memory for a trace of %s",
                                                   sinkproof_counted(end, "byte").text);
    }
    if (ftruncate(fileno(w->spool), (off_t)end) != 0)
        return sinkproof_fail(error, "%.400s: no room for a temporary file of %s: %s", w->path,
                              sinkproof_counted(end, "byte").text, strerror(errno));
    return true;
}

// Opens an unnamed file in the directory of `path`: it vanishes with the process.
static FILE *open_spool(const char *path, sinkproof_error *error) {
    char *name = NULL;
    if (asprintf(&name, "%s.spool-XXXXXX", path) < 0) {
        sinkproof_fail(error, "%.400s: no memory", path);
        return NULL;
    }
    int descriptor = mkstemp(name);
    FILE *spool = descriptor < 0 ? NULL : fdopen(descriptor, "w+b");
    if (spool == NULL)
        sinkproof_fail(error, "%.400s: cannot make a temporary file beside it: %s", path,
                       strerror(errno));
    if (descriptor >= 0) unlink(name);
    if (descriptor >= 0 && spool == NULL) close(descriptor);
    free(name);
    return spool;
}

bool sinkproof_trace_writer_new(const char *path, const sinkproof_model *model,
                                const sinkproof_policy *policy, const char *engine,
                                const char *points, size_t n, sinkproof_trace_writer **writer,
                                sinkproof_error *error) {
    sinkproof_trace_writer *w = calloc(1, sizeof *w);
    if (w == NULL) return sinkproof_fail(error, "no memory for a trace");
    w->model = model;
    w->n = n;
    w->n_layers = sinkproof_model_config(model)->n_layers;
    w->path = strdup(path != NULL ? path : "(memory)");
    w->slots_lp = calloc(w->n_layers * TRACE_POINTS, sizeof *w->slots_lp);
    w->observer = (sinkproof_observer){.see = write_shown_piece, .context = w};
    snprintf(w->policy, sizeof w->policy, "%s", policy->name);
    snprintf(w->engine, sizeof w->engine, "%s", engine);
    bool good = w->path != NULL && w->slots_lp != NULL && n > 0;
    if (!good)
        sinkproof_fail(error, "no memory for a trace of %s", sinkproof_counted(n, "token").text);
    good = good && mark_wanted_points(w, points, error);
    good = good && (path == NULL || (w->spool = open_spool(path, error)) != NULL) &&
           lay_out_tensors(w, policy, error);
    if (good)
        *writer = w;
    else
        sinkproof_trace_writer_free(w);
    return good;
}

// Room for `bytes` more at the end of the spool.
static bool extend_spool(sinkproof_trace_writer *w, size_t bytes) {
    uint8_t *memory = w->memory != NULL ? realloc(w->memory, w->end + bytes) : NULL;
    added *list = realloc(w->added, (w->n_added + 1) * sizeof *list);
    if (list != NULL) w->added = list;
    if (memory != NULL) w->memory = memory;
    if (list == NULL || (w->memory != NULL && memory == NULL))
        return sinkproof_fail(&w->problem, "%.400s: no memory", w->path);
    w->end += bytes;
    return true;
}

bool sinkproof_trace_writer_loss(sinkproof_trace_writer *writer, const char *loss) {
    if (strlen(loss) >= sizeof writer->loss) return false;
    snprintf(writer->loss, sizeof writer->loss, "%s", loss);
    return true;
}

void sinkproof_trace_writer_add(sinkproof_trace_writer *w, const char *name, size_t rank,
                                const size_t *shape, const double *values) {
    added a = {.at = {.dtype = SINKPROOF_DTYPE_F64, .rank = rank, .offset = w->end}};
    size_t count = 1;
    for (size_t r = 0; r < rank; r++) count *= a.at.shape[r] = shape[r];
    a.at.bytes = count * sizeof(double);
    snprintf(a.name, sizeof a.name, "%s", name);
    if (w->problem.text[0] != '\0' || !extend_spool(w, a.at.bytes) ||
        !encode_piece(w, &a.at, count, values))
        return;
    w->added[w->n_added++] = a;
    spool_write(w, w->bytes, a.at.bytes, a.at.offset);
}

const sinkproof_observer *sinkproof_trace_writer_observer(sinkproof_trace_writer *writer) {
    return &writer->observer;
}

void sinkproof_trace_writer_free(sinkproof_trace_writer *writer) {
    if (writer == NULL) return;
    if (writer->spool != NULL) fclose(writer->spool);
    free(writer->memory);
    free(writer->slots_lp);
    free(writer->added);
    free(writer->bytes);
    free(writer->path);
    free(writer);
}

bool trace_declare_head(sinkproof_safetensors_writer *out, const sinkproof_model *model,
                        const char *engine, const char *policy, size_t n, sinkproof_error *error) {
    char fingerprint[24];
    uint64_t known;
    if (!sinkproof_model_fingerprint(model, &known, error)) return false;
    snprintf(fingerprint, sizeof fingerprint, "%016llx", (unsigned long long)known);
    sinkproof_safetensors_writer_metadata(out, "format", "sinkproof-trace-1");
    sinkproof_safetensors_writer_metadata(out, "engine", engine);
    sinkproof_safetensors_writer_metadata(out, "version", SINKPROOF_VERSION);
    if (policy != NULL) sinkproof_safetensors_writer_metadata(out, "policy", policy);
    sinkproof_safetensors_writer_metadata(out, "model", fingerprint);
    sinkproof_safetensors_writer_declare(out, "tokens", SINKPROOF_DTYPE_I32, 1, &n);
    sinkproof_safetensors_writer_declare(out, "positions", SINKPROOF_DTYPE_I32, 1, &n);
    return true;
}

static bool declare_trace(const sinkproof_trace_writer *w, sinkproof_safetensors_writer *out,
                          sinkproof_error *error) {
    if (!trace_declare_head(out, w->model, w->engine, w->policy, w->n, error)) return false;
    if (w->loss[0] != '\0') sinkproof_safetensors_writer_metadata(out, "loss", w->loss);
    for (size_t i = 0; i < w->n_layers * TRACE_POINTS; i++) {
        const slot *s = &w->slots_lp[i];
        char name[SINKPROOF_TRACE_NAME];
        if (!s->wanted) continue;
        sinkproof_trace_name((sinkproof_trace_point)(i % TRACE_POINTS), i / TRACE_POINTS, name);
        sinkproof_safetensors_writer_declare(out, name, s->dtype, s->rank, s->shape);
    }
    for (size_t i = 0; i < w->n_added; i++)
        sinkproof_safetensors_writer_declare(out, w->added[i].name, w->added[i].at.dtype,
                                             w->added[i].at.rank, w->added[i].at.shape);
    return true;
}

// Writes the tokens, then the positions 0 ... n - 1.
static bool write_indices(const sinkproof_trace_writer *w, const int32_t *tokens_n,
                          sinkproof_safetensors_writer *out, sinkproof_error *error) {
    for (int pass = 0; pass < 2; pass++)
        for (size_t t = 0; t < w->n; t++) {
            uint8_t bytes[4];
            put_little_endian(bytes, pass == 0 ? (uint32_t)tokens_n[t] : (uint32_t)t, 4);
            if (!sinkproof_safetensors_writer_bytes(out, bytes, 4, error)) return false;
        }
    return true;
}

static bool copy_slot(const sinkproof_trace_writer *w, const slot *s,
                      sinkproof_safetensors_writer *out, sinkproof_error *error) {
    if (w->memory != NULL)
        return sinkproof_safetensors_writer_bytes(out, w->memory + s->offset, s->bytes, error);
    uint8_t block[1 << 14];
    for (size_t done = 0; done < s->bytes;) {
        size_t left = s->bytes - done, length = left < sizeof block ? left : sizeof block;
        ssize_t got = pread(fileno(w->spool), block, length, (off_t)(s->offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            return sinkproof_fail(error, "%.400s: its temporary file cannot be read back", w->path);
        if (!sinkproof_safetensors_writer_bytes(out, block, (size_t)got, error)) return false;
        done += (size_t)got;
    }
    return true;
}

static bool trace_is_complete(const sinkproof_trace_writer *w, sinkproof_error *error) {
    if (w->problem.text[0] != '\0') return sinkproof_fail(error, "%s", w->problem.text);
    for (size_t i = 0; i < w->n_layers * TRACE_POINTS; i++)
        if (w->slots_lp[i].wanted && w->slots_lp[i].rows != w->n)
            return sinkproof_fail(
                error, "%.400s: %s has %zu of %s", w->path,
                sinkproof_trace_point_name((sinkproof_trace_point)(i % TRACE_POINTS)),
                w->slots_lp[i].rows, sinkproof_counted(w->n, "token").text);
    return true;
}

static bool write_slots(const sinkproof_trace_writer *w, const int32_t *tokens_n,
                        sinkproof_safetensors_writer *out, sinkproof_error *error) {
    bool good = write_indices(w, tokens_n, out, error);
    for (size_t i = 0; good && i < w->n_layers * TRACE_POINTS; i++)
        if (w->slots_lp[i].wanted) good = copy_slot(w, &w->slots_lp[i], out, error);
    for (size_t i = 0; good && i < w->n_added; i++)
        good = copy_slot(w, &w->added[i].at, out, error);
    return good && sinkproof_safetensors_writer_finish(out, error);
}

bool sinkproof_trace_writer_finish(sinkproof_trace_writer *w, const int32_t *tokens_n,
                                   sinkproof_error *error) {
    if (!trace_is_complete(w, error)) return false;
    sinkproof_safetensors_writer *out = sinkproof_safetensors_writer_new();
    bool good = declare_trace(w, out, error) &&
                sinkproof_safetensors_writer_begin(out, w->path, error) &&
                write_slots(w, tokens_n, out, error);
    sinkproof_safetensors_writer_free(out);
    return good;
}

bool sinkproof_trace_writer_take(sinkproof_trace_writer *w, const int32_t *tokens_n,
                                 sinkproof_trace **trace, sinkproof_error *error) {
    char *bytes = NULL;
    size_t length;
    if (!trace_is_complete(w, error)) return false;
    sinkproof_safetensors_writer *out = sinkproof_safetensors_writer_new();
    bool good = declare_trace(w, out, error) &&
                sinkproof_safetensors_writer_begin_memory(out, &bytes, &length, error) &&
                write_slots(w, tokens_n, out, error);
    sinkproof_safetensors_writer_free(out);
    if (good)
        return trace_adopt(bytes, length, w->path, sinkproof_model_config(w->model), trace, error);
    free(bytes);
    return false;
}
