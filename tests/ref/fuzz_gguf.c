// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// libFuzzer: any bytes as a GGUF file. What is accepted is read whole: every value of the metadata
// and every byte of every tensor lies in the file.
#include "ref/model/gguf.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static volatile double kept; // so that no read is optimised away

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    sinkproof_gguf *file;
    sinkproof_error error = {""};
    if (!sinkproof_gguf_parse(bytes, length, "fuzz", &file, &error)) {
        if (error.text[0] == '\0' || file != NULL) abort(); // refused without a reason
        return 0;
    }
    for (size_t i = 0; i < sinkproof_gguf_pairs(file); i++) {
        const sinkproof_gguf_pair *pair = sinkproof_gguf_pair_at(file, i);
        char shown[80];
        double value;
        if (sinkproof_gguf_find(file, pair->key) != pair) abort();
        if (strlen(sinkproof_gguf_shown(pair, shown, sizeof shown)) >= sizeof shown) abort();
        if (sinkproof_gguf_number(pair, &value)) kept = value;
        sinkproof_gguf_is_text(pair, "yarn");
    }
    size_t total = 0;
    for (size_t i = 0; i < sinkproof_gguf_count(file); i++) {
        const sinkproof_tensor *tensor = sinkproof_gguf_at(file, i);
        for (size_t j = 0; j < tensor->bytes; j++) kept = tensor->data[j];
        total += tensor->bytes;
    }
    if (total > length) abort(); // tensors never overlap
    sinkproof_gguf_close(file);
    return 0;
}
