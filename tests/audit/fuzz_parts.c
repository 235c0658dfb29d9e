// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// libFuzzer: bytes, cut in two, as the two files of a trace. Whatever is read as one may be read to
// its last byte.
#include "model/safetensors_file.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static volatile size_t kept; // so that no read is optimised away

static void read_all(const sinkproof_safetensors *all) {
    size_t n, sum = 0;
    for (size_t i = 0; i < sinkproof_safetensors_count(all); i++) {
        const sinkproof_tensor *tensor = sinkproof_safetensors_at(all, i);
        if (sinkproof_safetensors_find(all, tensor->name) != tensor) abort();
        for (size_t b = 0; b < tensor->bytes; b++) sum += tensor->data[b];
        sinkproof_safetensors_forget(all, tensor);
    }
    for (size_t i = 0; i < sinkproof_safetensors_parts(all); i++)
        sum += sinkproof_safetensors_bytes(all, i, &n)[0] + n;
    kept = sum;
}

// The first two bytes say where the second file begins; a third part is the first once more.
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    static char first[] = "first", second[] = "second";
    char *const names[] = {first, second};
    sinkproof_error error;
    if (length < 2) return 0;
    size_t cut = 2 + (bytes[0] | (size_t)bytes[1] << 8);
    if (cut > length) cut = 2; // both are the same
    const uint8_t *two = cut == 2 ? bytes + 2 : bytes + cut;
    size_t one = cut == 2 ? length - 2 : cut - 2;
    sinkproof_safetensors **files = calloc(2, sizeof *files), *all;
    if (files == NULL) abort();
    bool a = sinkproof_safetensors_parse(bytes + 2, one, first, &files[0], &error);
    bool b = a && sinkproof_safetensors_parse(two, length - (size_t)(two - bytes), second,
                                              &files[1], &error);
    if (!b) {
        sinkproof_safetensors_close(files[0]);
        free(files);
        return 0;
    }
    if (safetensors_join(2, files, names, &all, &error)) {
        read_all(all);
        sinkproof_safetensors_close(all);
    }
    return 0;
}
