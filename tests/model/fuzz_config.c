// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// libFuzzer: any bytes as config.json. What is accepted satisfies the conditions.
#include "model/config.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    sinkproof_config config;
    sinkproof_error error = {""};
    bool good = config_parse((const char *)bytes, length, "fuzz", &config, &error);
    if (good && (!sinkproof_config_check(&config, "fuzz", NULL) ||
                 config.n_layers > SINKPROOF_MAX_LAYERS || config.n_heads % config.n_kv_heads != 0))
        abort();
    // The list of what is not stated ends in its room, and was never cut.
    if (good && strnlen(config.unstated, sizeof config.unstated) + 1 >= sizeof config.unstated)
        abort();
    if (!good && error.text[0] == '\0') abort(); // refused without a reason
    return 0;
}
