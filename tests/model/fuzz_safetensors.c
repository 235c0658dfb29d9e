// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// libFuzzer: any bytes as a safetensors file. What is accepted is read whole: every element
// of every tensor lies in the file.
#include "model/safetensors.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static volatile double kept; // so that no read is optimised away

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    sinkproof_safetensors *file;
    sinkproof_error error = {""};
    if (!sinkproof_safetensors_parse(bytes, length, "fuzz", &file, &error)) {
        if (error.text[0] == '\0' || file != NULL) abort(); // refused without a reason
        return 0;
    }
    size_t total = 0;
    for (size_t i = 0; i < sinkproof_safetensors_count(file); i++) {
        const sinkproof_tensor *tensor = sinkproof_safetensors_at(file, i);
        if (sinkproof_safetensors_find(file, tensor->name) != tensor) abort();
        for (size_t j = 0; j < sinkproof_tensor_elements(tensor); j++)
            kept = sinkproof_tensor_value(tensor, j);
        total += tensor->bytes;
    }
    if (total > length) abort(); // tensors never overlap
    sinkproof_safetensors_metadata(file, "format");
    sinkproof_safetensors_close(file);
    return 0;
}
