// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Joins the traces of ranks. Every tensor is written from the mapped files, piece by piece; none is
// held whole in memory.
#include "audit/trace/join.h"

#include "audit/trace/join_split.h"
#include "model/safetensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 64 };

// The file of a rank.
typedef struct part {
    const char *path;
    sinkproof_safetensors *file;
    const sinkproof_tensor *tokens, *positions;
    size_t rows;                      // its tokens
    size_t first_expert, last_expert; // of `experts`
} part;

typedef struct join {
    part parts[MOST_RANKS]; // by their rank
    size_t ranks, n;
    const char *split;
    bool scattered;    // tokens are split by positions
    double first;      // the first position
    uint16_t *owner_n; // [n]: the rank of a position, and the row there
    size_t *row_n;
} join;

// A tensor of the joined trace.
typedef struct tensor {
    const char *name;
    sinkproof_trace_point point;
    size_t layer;
    split_kind how;
    const sinkproof_tensor *of[MOST_RANKS]; // NULL: the rank has none
    const sinkproof_tensor *any;            // the first of them
    const sinkproof_tensor *chosen;         // of SPLIT_EXPERTS: M3
    size_t axis, shape[SINKPROOF_MAX_RANK];
} tensor;

// ---- metadata --------------------------------------------------------------------------------

static const char *metadata_text(const part *p, const char *key) {
    const char *text = sinkproof_safetensors_metadata(p->file, key);
    return text != NULL ? text : "";
}

static bool read_number(const part *p, const char *key, size_t least, size_t most, size_t *number,
                        sinkproof_error *error) {
    const char *text = metadata_text(p, key), *end = "";
    if (split_number(text, number, &end) && *end == '\0' && *number >= least && *number <= most)
        return true;
    return sinkproof_fail(error,
                          "%s: metadata %s: expected a number from %zu to %zu, found '%.60s'",
                          p->path, key, least, most, text);
}

static bool read_experts(part *p, sinkproof_error *error) {
    const char *text = sinkproof_safetensors_metadata(p->file, "experts"), *end = "";
    if (text == NULL) {
        p->first_expert = 1, p->last_expert = 0; // none
        return true;
    }
    if (split_number(text, &p->first_expert, &end) && *end == '-' &&
        split_number(end + 1, &p->last_expert, &end) && *end == '\0' &&
        p->first_expert <= p->last_expert)
        return true;
    return sinkproof_fail(error, "%s: metadata experts: expected FIRST-LAST, found '%.60s'",
                          p->path, text);
}

// ---- the files -------------------------------------------------------------------------------

static bool read_part(part *p, sinkproof_error *error) {
    const char *format = metadata_text(p, "format");
    if (strcmp(format, "sinkproof-trace-1") != 0)
        return sinkproof_fail(error,
                              "%s: metadata format: expected sinkproof-trace-1, found '%.60s'",
                              p->path, format);
    p->tokens = sinkproof_safetensors_find(p->file, "tokens");
    p->positions = sinkproof_safetensors_find(p->file, "positions");
    if (p->tokens == NULL || p->tokens->rank != 1 || !is_whole_dtype(p->tokens) ||
        p->tokens->shape[0] == 0)
        return sinkproof_fail(error, "%s: tokens: expected I32 or I64 [n]", p->path);
    p->rows = p->tokens->shape[0];
    if (p->positions != NULL && (p->positions->rank != 1 || !is_whole_dtype(p->positions) ||
                                 p->positions->shape[0] != p->rows))
        return sinkproof_fail(error, "%s: positions: expected I32 or I64 [%zu]", p->path, p->rows);
    return read_experts(p, error);
}

// Opens a file and puts it in the place of its rank.
static bool open_part(join *j, const char *path, size_t count, sinkproof_error *error) {
    part p = {.path = path};
    size_t rank, ranks;
    if (!sinkproof_safetensors_open(path, &p.file, error)) return false;
    bool good = read_number(&p, "ranks", 1, MOST_RANKS, &ranks, error) &&
                read_number(&p, "rank", 0, ranks - 1, &rank, error) && read_part(&p, error);
    if (good && ranks != count)
        good = sinkproof_fail(error, "%s: of %s, found %s", path,
                              sinkproof_counted(ranks, "rank").text,
                              sinkproof_counted(count, "file").text);
    if (good && j->parts[rank].file != NULL)
        good = sinkproof_fail(error, "%s: rank %zu, which is %s already", path, rank,
                              j->parts[rank].path);
    if (good)
        j->parts[rank] = p;
    else
        sinkproof_safetensors_close(p.file);
    return good;
}

// Metadata that must be the same in every file.
static bool check_alike(const join *j, const char *key, sinkproof_error *error) {
    const char *first = metadata_text(&j->parts[0], key);
    for (size_t r = 1; r < j->ranks; r++) {
        const char *text = metadata_text(&j->parts[r], key);
        if (strcmp(first, text) != 0)
            return sinkproof_fail(error,
                                  "%s: metadata %s: expected '%.80s' as in %s, found '%.80s'",
                                  j->parts[r].path, key, first, j->parts[0].path, text);
    }
    return true;
}

// ---- tokens ----------------------------------------------------------------------------------

static bool check_same_tokens(join *j, sinkproof_error *error) {
    const part *first = &j->parts[0];
    j->n = first->rows;
    for (size_t r = 1; r < j->ranks; r++) {
        const part *p = &j->parts[r];
        if (p->rows != j->n)
            return sinkproof_fail(error, "%s: tokens: expected the %zu of %s, found %zu", p->path,
                                  j->n, first->path, p->rows);
        for (size_t i = 0; i < j->n; i++)
            if (sinkproof_tensor_value(p->tokens, i) != sinkproof_tensor_value(first->tokens, i))
                return sinkproof_fail(error,
                                      "%s: tokens: expected those of %s, found %.0f at position "
                                      "%zu, where that has %.0f",
                                      p->path, first->path, sinkproof_tensor_value(p->tokens, i), i,
                                      sinkproof_tensor_value(first->tokens, i));
    }
    return true;
}

static bool place_rows(join *j, size_t rank, sinkproof_error *error) {
    const part *p = &j->parts[rank];
    if (p->positions == NULL)
        return sinkproof_fail(error,
                              "%s: split by positions: expected a tensor positions, found "
                              "none",
                              p->path);
    for (size_t i = 0; i < p->rows; i++) {
        double at = sinkproof_tensor_value(p->positions, i);
        if (!(at >= 0 && at - j->first < (double)j->n))
            return sinkproof_fail(error,
                                  "%s: positions: expected %.0f to %.0f, the rows of all ranks, "
                                  "found %.0f",
                                  p->path, j->first, j->first + (double)(j->n - 1), at);
        size_t to = (size_t)(at - j->first);
        if (j->owner_n[to] < MOST_RANKS)
            return sinkproof_fail(error, "%s: positions: %.0f is in %s already", p->path, at,
                                  j->parts[j->owner_n[to]].path);
        j->owner_n[to] = (uint16_t)rank;
        j->row_n[to] = i;
    }
    return true;
}

static double first_position(const join *j) {
    double first = 0x1p63;
    for (size_t r = 0; r < j->ranks; r++)
        for (size_t i = 0; j->parts[r].positions != NULL && i < j->parts[r].rows; i++)
            first = fmin(first, sinkproof_tensor_value(j->parts[r].positions, i));
    return fmax(first, 0);
}

// The rows of all ranks are positions that follow each other: n of them, and none twice.
static bool place_all_rows(join *j, sinkproof_error *error) {
    j->n = 0;
    for (size_t r = 0; r < j->ranks; r++) j->n += j->parts[r].rows; // bytes of mapped files
    j->owner_n = malloc(j->n * sizeof *j->owner_n);
    j->row_n = malloc(j->n * sizeof *j->row_n);
    if (j->owner_n == NULL || j->row_n == NULL)
        return sinkproof_fail(error, "no memory for %s", sinkproof_counted(j->n, "position").text);
    for (size_t i = 0; i < j->n; i++) j->owner_n[i] = MOST_RANKS;
    j->first = first_position(j);
    for (size_t r = 0; r < j->ranks; r++)
        if (!place_rows(j, r, error)) return false;
    return true;
}

static bool check_experts(const join *j, sinkproof_error *error) {
    for (size_t r = 0; r < j->ranks; r++) {
        const part *p = &j->parts[r];
        if (p->first_expert > p->last_expert)
            return sinkproof_fail(
                error, "%s: split by experts: expected metadata experts, found none", p->path);
        for (size_t s = 0; s < r; s++)
            if (p->first_expert <= j->parts[s].last_expert &&
                j->parts[s].first_expert <= p->last_expert)
                return sinkproof_fail(error, "%s: experts %zu-%zu, some of which are in %s too",
                                      p->path, p->first_expert, p->last_expert, j->parts[s].path);
    }
    return true;
}

// ---- tensors ---------------------------------------------------------------------------------

// Whether a log-sum-exp is [tokens, heads]: by what is said, or else by its first dimension.
static bool lse_is_by_token(const join *j, const tensor *t) {
    const char *said = sinkproof_safetensors_metadata(j->parts[0].file, "lse_layout");
    if (said != NULL) return strcmp(said, "tokens,heads") == 0;
    return t->any->rank == 2 && t->any->shape[0] == j->parts[0].rows;
}

static bool find_lse_axis(const join *j, tensor *t) {
    t->axis = lse_is_by_token(j, t) == (t->how == SPLIT_HEADS);
    return t->any->rank == 2 && (t->how == SPLIT_HEADS || t->how == SPLIT_POSITIONS);
}

// The dimension along which ranks have parts. Returns false if the point has none of that kind.
static bool find_axis(const join *j, tensor *t, sinkproof_error *error, const char *path) {
    bool by_head = sinkproof_trace_point_is_by_head(t->point), good = true;
    size_t rank = t->any->rank;
    bool parts = t->how != SPLIT_WHOLE && t->how != SPLIT_PARTIAL;
    if (sinkproof_trace_point_is_offered(t->point) && parts) {
        good = find_lse_axis(j, t);
    } else if (t->how == SPLIT_HEADS) {
        t->axis = by_head ? 0 : 1;
        good = (by_head || split_has_heads(t->point)) && rank == 3;
    } else if (t->how == SPLIT_COORDINATES) {
        t->axis = rank - 1;
        good = !by_head && !sinkproof_trace_point_is_index(t->point) && rank >= 2;
    } else if (t->how == SPLIT_POSITIONS) {
        t->axis = by_head ? 1 : 0;
        good = rank > t->axis;
    } else if (t->how == SPLIT_EXPERTS) {
        t->axis = 2; // a row for each token and slot
        good = split_has_slots(t->point) && rank == 3;
    }
    return good || sinkproof_fail(error, "%s: %s of rank %zu has no %s to be split by", path,
                                  t->name, rank, split_word(t->how));
}

static const char *first_path(const join *j, const tensor *t) {
    for (size_t r = 0; r < j->ranks; r++)
        if (t->of[r] != NULL) return j->parts[r].path;
    return j->parts[0].path;
}

// Parts of one dtype, whose sizes differ along the axis alone; a split leaves none out.
static bool check_parts(const join *j, tensor *t, sinkproof_error *error) {
    bool sums = t->how == SPLIT_HEADS || t->how == SPLIT_COORDINATES || t->how == SPLIT_POSITIONS;
    const char *first = first_path(j, t);
    if (!find_axis(j, t, error, first)) return false;
    memcpy(t->shape, t->any->shape, sizeof t->shape);
    if (sums) t->shape[t->axis] = 0;
    for (size_t r = 0; r < j->ranks; r++) {
        const sinkproof_tensor *p = t->of[r];
        if (p == NULL && t->how == SPLIT_WHOLE) continue;
        if (p == NULL)
            return sinkproof_fail(error,
                                  "%s: %s: expected this rank's part, split by %s, found none",
                                  j->parts[r].path, t->name, split_word(t->how));
        bool same = p->dtype == t->any->dtype && p->rank == t->any->rank;
        for (size_t d = 0; same && d < p->rank; d++)
            same = (sums && d == t->axis) || p->shape[d] == t->any->shape[d];
        if (!same)
            return sinkproof_fail(error, "%s: %s has not the dtype or the shape of that in %s",
                                  j->parts[r].path, t->name, first);
        if (sums) t->shape[t->axis] += p->shape[t->axis];
        if (t->how == SPLIT_POSITIONS && p->shape[t->axis] != j->parts[r].rows)
            return sinkproof_fail(error, "%s: %s: expected %s, found %zu", j->parts[r].path,
                                  t->name, sinkproof_counted(j->parts[r].rows, "row").text,
                                  p->shape[t->axis]);
        if (t->how == SPLIT_WHOLE && memcmp(p->data, t->any->data, p->bytes) != 0)
            return sinkproof_fail(error, "%s: %s differs from that in %s, and no split says so",
                                  j->parts[r].path, t->name, first);
    }
    return true;
}

// M3 of the layer, which says whose expert a slot is.
static bool find_chosen(const join *j, tensor *t, sinkproof_error *error) {
    char name[SINKPROOF_TRACE_NAME];
    sinkproof_trace_name(TRACE_M3, t->layer, name);
    for (size_t r = 0; r < j->ranks && t->chosen == NULL; r++)
        t->chosen = sinkproof_safetensors_find(j->parts[r].file, name);
    if (t->chosen != NULL && is_whole_dtype(t->chosen) && t->chosen->rank == 2 &&
        t->chosen->shape[0] == t->shape[0] && t->chosen->shape[1] == t->shape[1])
        return true;
    return sinkproof_fail(error,
                          "%s: %s is split by experts: expected %s [%zu, %zu], in whole "
                          "numbers, on some rank",
                          j->parts[0].path, t->name, name, t->shape[0], t->shape[1]);
}

static bool plan_tensor(const join *j, const char *name, tensor *t, sinkproof_error *error) {
    *t = (tensor){.name = name};
    for (size_t r = 0; r < j->ranks; r++) {
        t->of[r] = sinkproof_safetensors_find(j->parts[r].file, name);
        if (t->any == NULL) t->any = t->of[r];
    }
    if (strcmp(name, "cu_seqlens") == 0 || strcmp(name, "positions") == 0)
        return check_parts(j, t, error); // whole
    if (!sinkproof_trace_name_parse(name, &t->point, &t->layer) || t->any == NULL)
        return sinkproof_fail(error, "%s: %.60s is no point of a trace", first_path(j, t), name);
    t->how = split_of(j->split, t->point, t->layer);
    if (t->any->rank == 0 || sinkproof_dtype_size(t->any->dtype) == 0)
        return sinkproof_fail(error, "%s: %s: expected rows of numbers", first_path(j, t), name);
    if (t->how == SPLIT_PARTIAL) return true;
    return check_parts(j, t, error) && (t->how != SPLIT_EXPERTS || find_chosen(j, t, error));
}

// Whether an earlier rank has a tensor of that name.
static bool is_listed(const join *j, size_t rank, const char *name) {
    for (size_t r = 0; r < rank; r++)
        if (sinkproof_safetensors_find(j->parts[r].file, name) != NULL) return true;
    return false;
}

static bool plan_tensors(const join *j, tensor **tensors, size_t *count, sinkproof_error *error) {
    size_t room = 0;
    for (size_t r = 0; r < j->ranks; r++) room += sinkproof_safetensors_count(j->parts[r].file);
    *tensors = malloc(room * sizeof **tensors);
    if (*tensors == NULL)
        return sinkproof_fail(error, "no memory for %s", sinkproof_counted(room, "tensor").text);
    for (size_t r = 0; r < j->ranks; r++)
        for (size_t i = 0; i < sinkproof_safetensors_count(j->parts[r].file); i++) {
            const char *name = sinkproof_safetensors_at(j->parts[r].file, i)->name;
            bool placed = j->scattered && strcmp(name, "positions") == 0;
            if (strcmp(name, "tokens") == 0 || placed || is_listed(j, r, name)) continue;
            if (!plan_tensor(j, name, &(*tensors)[*count], error)) return false;
            ++*count;
        }
    return true;
}

// ---- writing ---------------------------------------------------------------------------------

static bool write_concatenated(const join *j, const tensor *t, sinkproof_safetensors_writer *w,
                               sinkproof_error *error) {
    size_t outer = shape_product(t->shape, 0, t->axis);
    for (size_t o = 0; o < outer; o++)
        for (size_t r = 0; r < j->ranks; r++) {
            size_t bytes = t->of[r]->bytes / outer;
            if (!sinkproof_safetensors_writer_bytes(w, t->of[r]->data + o * bytes, bytes, error))
                return false;
        }
    return true;
}

static bool write_scattered(const join *j, const tensor *t, sinkproof_safetensors_writer *w,
                            sinkproof_error *error) {
    size_t outer = shape_product(t->shape, 0, t->axis);
    size_t row =
        shape_product(t->shape, t->axis + 1, t->any->rank) * sinkproof_dtype_size(t->any->dtype);
    for (size_t o = 0; o < outer; o++)
        for (size_t i = 0; i < j->n; i++) {
            size_t rank = j->owner_n[i], at = o * j->parts[rank].rows + j->row_n[i];
            if (!sinkproof_safetensors_writer_bytes(w, t->of[rank]->data + at * row, row, error))
                return false;
        }
    return true;
}

static size_t rank_of_expert(const join *j, double expert) {
    for (size_t r = 0; r < j->ranks; r++)
        if (expert >= (double)j->parts[r].first_expert && expert <= (double)j->parts[r].last_expert)
            return r;
    return j->ranks;
}

static bool write_slots(const join *j, const tensor *t, sinkproof_safetensors_writer *w,
                        sinkproof_error *error) {
    size_t slots = t->shape[0] * t->shape[1], row = slots > 0 ? t->any->bytes / slots : 0;
    for (size_t s = 0; s < slots; s++) {
        double expert = sinkproof_tensor_value(t->chosen, s);
        size_t rank = rank_of_expert(j, expert);
        if (rank == j->ranks)
            return sinkproof_fail(error,
                                  "%s: %s: expert %.0f, which token %zu chose, is on no rank",
                                  j->parts[0].path, t->name, expert, s / t->shape[1]);
        if (!sinkproof_safetensors_writer_bytes(w, t->of[rank]->data + s * row, row, error))
            return false;
    }
    return true;
}

static bool write_tensor(const join *j, const tensor *t, sinkproof_safetensors_writer *w,
                         sinkproof_error *error) {
    if (shape_product(t->shape, 0, t->any->rank) == 0) return true;
    if (t->how == SPLIT_WHOLE)
        return sinkproof_safetensors_writer_bytes(w, t->any->data, t->any->bytes, error);
    if (t->how == SPLIT_POSITIONS) return write_scattered(j, t, w, error);
    if (t->how == SPLIT_EXPERTS) return write_slots(j, t, w, error);
    return write_concatenated(j, t, w, error);
}

// `of`: tokens, or NULL for the positions themselves.
static bool write_tokens(const join *j, bool tokens, sinkproof_safetensors_writer *w,
                         sinkproof_error *error) {
    for (size_t i = 0; i < j->n; i++) {
        const part *p = &j->parts[j->scattered ? j->owner_n[i] : 0];
        double x = j->first + (double)i;
        if (tokens) x = sinkproof_tensor_value(p->tokens, j->scattered ? j->row_n[i] : i);
        if (!(x >= 0 && x < 0x1p31))
            return sinkproof_fail(error, "%s: %s: expected numbers from 0 to 2^31 - 1, found %.0f",
                                  p->path, tokens ? "tokens" : "positions", x);
        uint8_t bytes[4];
        for (size_t b = 0; b < sizeof bytes; b++) bytes[b] = (uint8_t)((uint32_t)x >> 8 * b);
        if (!sinkproof_safetensors_writer_bytes(w, bytes, sizeof bytes, error)) return false;
    }
    return true;
}

static void write_metadata(const join *j, sinkproof_safetensors_writer *w) {
    static const char *const kept[] = {"format", "engine", "policy",    "version",
                                       "model",  "lse",    "lse_layout"};
    char ranks[24];
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        const char *text = sinkproof_safetensors_metadata(j->parts[0].file, kept[i]);
        if (text != NULL) sinkproof_safetensors_writer_metadata(w, kept[i], text);
    }
    snprintf(ranks, sizeof ranks, "%zu", j->ranks);
    sinkproof_safetensors_writer_metadata(w, "ranks", ranks);
}

static bool write_joined(const join *j, const tensor *tensors, size_t count, const char *out,
                         joined_ranks *joined, sinkproof_error *error) {
    sinkproof_safetensors_writer *w = sinkproof_safetensors_writer_new();
    if (w == NULL) return sinkproof_fail(error, "%s: no memory", out);
    write_metadata(j, w);
    for (size_t i = 0; i < count; i++) {
        const tensor *t = &tensors[i];
        *(t->how == SPLIT_PARTIAL ? &joined->partial
          : t->how == SPLIT_WHOLE ? &joined->whole
                                  : &joined->parted) += 1;
        if (t->how != SPLIT_PARTIAL)
            sinkproof_safetensors_writer_declare(w, t->name, t->any->dtype, t->any->rank, t->shape);
    }
    sinkproof_safetensors_writer_declare(w, "tokens", SINKPROOF_DTYPE_I32, 1, &j->n);
    bool given = false; // positions are among the tensors
    for (size_t i = 0; i < count; i++) given = given || strcmp(tensors[i].name, "positions") == 0;
    if (!given) sinkproof_safetensors_writer_declare(w, "positions", SINKPROOF_DTYPE_I32, 1, &j->n);
    bool good = sinkproof_safetensors_writer_begin(w, out, error);
    for (size_t i = 0; good && i < count; i++)
        if (tensors[i].how != SPLIT_PARTIAL) good = write_tensor(j, &tensors[i], w, error);
    good = good && write_tokens(j, true, w, error) && (given || write_tokens(j, false, w, error)) &&
           sinkproof_safetensors_writer_finish(w, error);
    sinkproof_safetensors_writer_free(w);
    return good;
}

// ---- all of it -------------------------------------------------------------------------------

static bool join_files(join *j, const char *const *paths, const char *out, joined_ranks *joined,
                       sinkproof_error *error) {
    tensor *tensors = NULL;
    size_t count = 0;
    for (size_t i = 0; i < j->ranks; i++)
        if (!open_part(j, paths[i], j->ranks, error)) return false;
    j->split = metadata_text(&j->parts[0], "split");
    j->scattered = split_has(j->split, SPLIT_POSITIONS);
    bool good = check_alike(j, "split", error) && check_alike(j, "model", error) &&
                split_check(j->split, j->parts[0].path, error) &&
                (j->scattered ? place_all_rows(j, error) : check_same_tokens(j, error)) &&
                (!split_has(j->split, SPLIT_EXPERTS) || check_experts(j, error)) &&
                plan_tensors(j, &tensors, &count, error) &&
                write_joined(j, tensors, count, out, joined, error);
    joined->ranks = j->ranks, joined->n = j->n;
    free(tensors);
    return good;
}

bool sinkproof_trace_join(const char *const *paths, size_t count, const char *out,
                          joined_ranks *joined, sinkproof_error *error) {
    *joined = (joined_ranks){.ranks = 0};
    if (count == 0 || count > MOST_RANKS)
        return sinkproof_fail(error, "expected 1 to %d files, found %zu", MOST_RANKS, count);
    join *j = calloc(1, sizeof *j);
    if (j == NULL) return sinkproof_fail(error, "no memory to join traces");
    j->ranks = count;
    bool good = join_files(j, paths, out, joined, error);
    for (size_t r = 0; r < count; r++) sinkproof_safetensors_close(j->parts[r].file);
    free(j->owner_n);
    free(j->row_n);
    free(j);
    return good;
}
