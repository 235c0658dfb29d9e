// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The judge of attention designs behind audit/sinkproof.h, and the functions that only the command
// needs.
#ifndef SINKPROOF_FACE_DESIGNS_H
#define SINKPROOF_FACE_DESIGNS_H

#include "audit/sinkproof.h"

#include <jansson.h>

// The steps, as sinkproof_design_json makes them; owned by the ruling.
json_t *sinkproof_design_ruling_results(const sinkproof_design_ruling *ruling);

#endif
