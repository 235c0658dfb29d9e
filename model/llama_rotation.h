// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The rotation's keys of Llama and its relatives. Private to model/: shared by its container's two
// halves.
#ifndef SINKPROOF_LLAMA_ROTATION_H
#define SINKPROOF_LLAMA_ROTATION_H

#include "model/config_reader.h"

void llama_read_rotation(config_reader *in);
// The keys of a rotation that is scaled; rope_theta is written with the other numbers.
void llama_make_rotation(const sinkproof_config *config, json_t *out);

#endif
