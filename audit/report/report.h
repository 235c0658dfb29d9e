// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Writes a judgement as a part of a page to attach to a bug report: one file, no script, nothing to
// fetch. It shows the ruling and the trace; it computes no verdict of its own.
#ifndef SINKPROOF_REPORT_H
#define SINKPROOF_REPORT_H

#include "audit/face/ruling.h"

typedef struct sinkproof_page_trial {
    const char *name; // the trace's path, as the user gave it
    sinkproof_trace *trace;
    sinkproof_ruling *ruling;
} sinkproof_page_trial;

// Writes the part of a page (audit/report/page.h) that shows a trial. model_name: as the user gave
// it to the command.
bool sinkproof_report_part(FILE *page, const sinkproof_model *model, const char *model_name,
                           const sinkproof_page_trial *trial, sinkproof_error *error);

#endif
