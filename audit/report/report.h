// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Writes a judgement as a page to attach to a bug report: one file, no script, nothing to fetch. It
// shows the ruling and the trace; it computes no verdict of its own.
#ifndef SINKPROOF_REPORT_H
#define SINKPROOF_REPORT_H

#include "audit/face/ruling.h"

typedef struct sinkproof_page_trial {
    const char *name; // the trace's path, as the user gave it
    sinkproof_trace *trace;
    sinkproof_ruling *ruling;
} sinkproof_page_trial;

// Writes the page, with a part for each trial. model_name: as the user gave it to the command.
bool sinkproof_report_write(const char *path, const sinkproof_model *model, const char *model_name,
                            size_t n, const sinkproof_page_trial *trials, sinkproof_error *error);

#endif
