// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The work file of a run of `sinkproof truth`. After each layer PATH gets what the run knows
// (truth_store.h), at once or not at all: it is written as PATH.new, flushed to the disk and
// renamed. PATH.points has the numbers of the points that are kept, each layer's behind those
// before. A run that was killed goes on from the last whole layer and ends with the same bits. At
// the end of the run the files are removed.
#ifndef SINKPROOF_TRUTH_WORK_H
#define SINKPROOF_TRUTH_WORK_H

#include "audit/verify/truth_store.h"

#include <stdio.h>

typedef struct truth_work {
    char *path, *next, *points_path; // NULL: the run has no work file
    char *identity;
    FILE *points;   // locked; what is written to it is kept
    uint8_t *found; // the file of a run before, until the walk begins
    size_t length;
    size_t layers;        // that were done, of the file that was found
    size_t bits, repeats; // of that run, or of this one
    size_t flushed;       // bytes of the points that the file tells of, and their sum
    uint64_t flushed_sum;
    bool stored, cannot_write; // a state is at PATH; the last one could not be written
} truth_work;

// identity: lines that say which run it is, of the same model, tokens and options: a run goes on
// with its own work alone. Refuses that of another, and one that another process is using.
bool sinkproof_work_open(truth_work *work, const char *path, const char *identity,
                         const sinkproof_config *config, size_t n, sinkproof_error *error);

// Begins a walk: from the state that was found, with the accounts of the study, or from the first
// layer. `store` has the state; it is to be cleared.
bool sinkproof_work_begin(truth_work *work, truth_study *study, truth_store *store,
                          sinkproof_error *error);

// The end of a layer.
bool sinkproof_work_store(truth_work *work, const truth_study *study,
                          const sinkproof_truth_state *state, sinkproof_error *error);

// Closes the files. They are removed, too, unless they have a state behind which nothing could be
// written: with more room the run can go on.
void sinkproof_work_close(truth_work *work);

#endif
