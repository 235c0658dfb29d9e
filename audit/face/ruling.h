// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Judges a trace as `sinkproof judge` does: finds the policy if it is `auto`, the forms, and the
// cause that explains a bug; reports as text and as JSON. It implements the public judge
// (audit/sinkproof.h) and adds the functions that only the command needs.
#ifndef SINKPROOF_RULING_H
#define SINKPROOF_RULING_H

#include "audit/judge/judge.h"
#include "audit/judge/judge_backward.h"
#include "audit/sinkproof.h"

#include <jansson.h>

// The judgement and its points, as sinkproof_judgement_json makes them; owned by the ruling.
json_t *sinkproof_ruling_results(const sinkproof_ruling *ruling);

// The trace's judgement; owned by the ruling.
const sinkproof_judgement *sinkproof_ruling_judgement(const sinkproof_ruling *ruling);

// That of its gradients; owned by the ruling. Without reports where the trace holds none.
const sinkproof_gradient_judgement *sinkproof_ruling_gradients(const sinkproof_ruling *ruling);

// Notes that the trace's metadata name another model, or declare another policy than the judge's;
// "" if they do not. Both are owned by the ruling.
const char *sinkproof_ruling_model_note(const sinkproof_ruling *ruling);
const char *sinkproof_ruling_declared_note(const sinkproof_ruling *ruling);

// Whether all known changes of the policy were tried on the failing points.
bool sinkproof_ruling_asked_cause(const sinkproof_ruling *ruling);

#endif
