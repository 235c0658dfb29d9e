// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The judge of any design of attention behind audit/sinkproof.h, and what the command needs beyond
// it.
#ifndef SINKPROOF_FACE_DESIGNS_H
#define SINKPROOF_FACE_DESIGNS_H

#include "audit/sinkproof.h"

#include <jansson.h>

// The steps, as sinkproof_design_json makes them; lives with the ruling.
json_t *sinkproof_design_ruling_results(const sinkproof_design_ruling *ruling);

#endif
