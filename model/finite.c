// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Finds stored weights that are not numbers: infinities, NaN, and MXFP4's scale byte 255. No
// verdict could rest on them, since engines propagate them, flush them, or read the byte as a power
// of two (mxfp4.decode). One is legal: a sink of -infinity, whose exponential is 0, means a head
// without a sink.
#include "model/container.h"

#include "model/bf16.h"
#include "model/ggml_blocks.h"
#include "model/mxfp4.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    BLOCK = 4096, // numbers that are scanned at once
};

// The invalid values of one tensor.
typedef struct finding {
    uint64_t count;
    size_t first; // element
    double value; // its value
} finding;

// Whether one of BLOCK numbers of two bytes has all bits of `exponent` set. The loop has a constant
// count and no branch, so that the compiler vectorises it.
static bool block_has_exponent_16(const uint8_t *data, uint16_t exponent) {
    uint16_t found = 0;
    for (size_t i = 0; i < BLOCK; i++) {
        uint16_t bits;
        memcpy(&bits, data + 2 * i, sizeof bits);
        found |= (uint16_t) - ((bits & exponent) == exponent);
    }
    return found != 0;
}

static bool block_has_exponent_32(const uint8_t *data, uint32_t exponent) {
    uint32_t found = 0;
    for (size_t i = 0; i < BLOCK; i++) {
        uint32_t bits;
        memcpy(&bits, data + 4 * i, sizeof bits);
        found |= -(uint32_t)((bits & exponent) == exponent);
    }
    return found != 0;
}

static bool block_is_suspect(const sinkproof_tensor *tensor, size_t i, size_t n) {
    const uint8_t *data = tensor->data + i * sinkproof_dtype_size(tensor->dtype);
    if (n < BLOCK) return true;
    if (tensor->dtype == SINKPROOF_DTYPE_BF16) return block_has_exponent_16(data, 0x7f80);
    if (tensor->dtype == SINKPROOF_DTYPE_F16) return block_has_exponent_16(data, 0x7c00);
    return block_has_exponent_32(data, 0x7f800000);
}

static void find_first_not_finite(const sinkproof_tensor *tensor, size_t from, size_t to,
                                  bool sinks, finding *found) {
    for (size_t i = from; i < to; i++) {
        double x = sinkproof_tensor_value(tensor, i);
        if (isfinite(x) || (sinks && x == -INFINITY)) continue;
        if (found->count++ > 0) continue;
        found->first = i;
        found->value = x;
    }
}

static finding check_numbers(const sinkproof_tensor *tensor, bool sinks) {
    size_t n = sinkproof_tensor_elements(tensor), length;
    finding found = {0, 0, 0};
    for (size_t i = 0; i < n; i += length) {
        length = n - i < BLOCK ? n - i : BLOCK;
        if (block_is_suspect(tensor, i, length))
            find_first_not_finite(tensor, i, i + length, sinks, &found);
    }
    return found;
}

static finding check_scales(const sinkproof_tensor *tensor) {
    finding found = {0, 0, NAN};
    const uint8_t *at = tensor->data, *end = at + tensor->bytes;
    while (at < end && (at = memchr(at, SINKPROOF_MXFP4_NAN_SCALE, (size_t)(end - at))) != NULL) {
        if (found.count++ == 0) found.first = (size_t)(at - tensor->data);
        at++;
    }
    return found;
}

static bool is_in_ggml_blocks(const sinkproof_tensor *tensor) {
    return sinkproof_dtype_size(tensor->dtype) == 0;
}

// The sum of a block's scales, which is finite if all of them are: float16 numbers cannot overflow
// in binary64.
static double scales_of_block(sinkproof_dtype dtype, const uint8_t *block) {
    const ggml_blocks *format = sinkproof_ggml_blocks_of(dtype);
    double sum = 0;
    if (format == NULL) return sinkproof_mxfp4_value(2, block[0]);
    for (size_t s = 0; s < format->n_scales; s++)
        sum += element_decode(SINKPROOF_DTYPE_F16, block + format->scale_at[s]);
    return sum;
}

// A tensor in ggml's blocks: finds the first number with an invalid scale.
static finding check_blocks(const sinkproof_tensor *tensor) {
    size_t elements = sinkproof_dtype_block(tensor->dtype),
           size = sinkproof_dtype_bytes_for(tensor->dtype, elements);
    finding found = {0, 0, NAN};
    for (size_t i = 0; i < tensor->bytes; i += size) {
        double scale = scales_of_block(tensor->dtype, tensor->data + i);
        if (isfinite(scale)) continue;
        if (found.count++ > 0) continue;
        found.first = i / size * elements;
        found.value = scale;
    }
    return found;
}

// The indices "(3, 17)" of element i of the tensor.
static const char *element_place_text(const sinkproof_tensor *tensor, size_t i, char *text,
                                      size_t size) {
    size_t index[SINKPROOF_MAX_RANK], used = 0;
    for (size_t r = tensor->rank; r-- > 0; i /= tensor->shape[r]) index[r] = i % tensor->shape[r];
    for (size_t r = 0; r < tensor->rank; r++)
        used += (size_t)snprintf(text + used, size - used, "%s%zu", r == 0 ? "(" : ", ", index[r]);
    snprintf(text + used, size - used, ")");
    return text;
}

static bool report_finding(const checkpoint_entry *entry, finding found, model_tell *tell,
                           void *context) {
    char sentence[900], place[192];
    bool scales = entry->role == ROLE_SCALES || entry->tensor->dtype == SINKPROOF_DTYPE_MXFP4;
    snprintf(sentence, sizeof sentence,
             "%.400s: tensor %.200s: expected %s, found %s at %s (%llu in all)", entry->path,
             entry->tensor->name,
             scales                      ? "scale bytes up to 254"
             : entry->role == ROLE_SINKS ? "finite numbers or -infinity"
                                         : "finite numbers",
             scales               ? "255 (NaN)"
             : isnan(found.value) ? "NaN"
             : found.value > 0    ? "infinity"
                                  : "-infinity",
             element_place_text(entry->tensor, found.first, place, sizeof place),
             (unsigned long long)found.count);
    return tell(context, sentence);
}

void sinkproof_model_not_finite(const sinkproof_model *model, model_tell *tell, void *context) {
    const weight_files *checkpoint = &model->checkpoint;
    for (size_t i = 0; i < checkpoint->n_entries; i++) {
        const checkpoint_entry *entry = &checkpoint->entries[i];
        finding found = {0, 0, 0};
        if (entry->role == ROLE_SCALES)
            found = check_scales(entry->tensor);
        else if (entry->role != ROLE_NONE && is_in_ggml_blocks(entry->tensor))
            found = check_blocks(entry->tensor);
        else if (entry->role != ROLE_NONE)
            found = check_numbers(entry->tensor, entry->role == ROLE_SINKS);
        if (found.count > 0 && !report_finding(entry, found, tell, context)) return;
    }
}
