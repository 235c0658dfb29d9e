// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A trace judged as `sinkproof judge` does it: the policy found when it is `auto`, the forms, the
// cause that explains a bug; the report as text and as JSON. The public face of the judge
// (audit/sinkproof.h), and what the command needs beyond it.
#ifndef SINKPROOF_RULING_H
#define SINKPROOF_RULING_H

#include "audit/judge/judge.h"
#include "audit/sinkproof.h"

#include <jansson.h>

// The judgement and its points, as sinkproof_judgement_json makes them; lives with the ruling.
json_t *sinkproof_ruling_results(const sinkproof_ruling *ruling);

// What the ruling is about; lives with it.
const sinkproof_judgement *sinkproof_ruling_judgement(const sinkproof_ruling *ruling);

// That the trace's metadata name another model, or declare another policy than the one that it was
// judged under; "" where they do not. Both live with the ruling.
const char *sinkproof_ruling_model_note(const sinkproof_ruling *ruling);
const char *sinkproof_ruling_declared_note(const sinkproof_ruling *ruling);

// Whether all known changes of the policy were tried on what fails.
bool sinkproof_ruling_asked_cause(const sinkproof_ruling *ruling);

#endif
