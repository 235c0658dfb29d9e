// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Explanations that several findings share.
#ifndef SINKPROOF_DIAGNOSE_COMMON_H
#define SINKPROOF_DIAGNOSE_COMMON_H

#include "audit/diagnose/diagnose.h"

// Numbers the findings that one explanation explains, `common` from 1 on, and puts it first.
void findings_prefer_common(sinkproof_diagnosis *d);

// Whether the explanation is one of the finding's, and acts at the same rows.
bool finding_explained_by(const diagnosed_finding *f, const mistakes_together *what,
                          sinkproof_rows rows);

#endif
