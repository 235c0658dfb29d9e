// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/command/truth_sequences.h"

#include "audit/trace/trace_alone.h"

#include <stdlib.h>
#include <string.h>

bool truth_sequences_open(const sinkproof_trace *trace, const sinkproof_config *config, bool alone,
                          sinkproof_trace ***sequences, input_list *prompts,
                          sinkproof_error *error) {
    size_t n = sinkproof_trace_sequences(trace);
    bool good = true;
    *sequences = NULL;
    if (n == 1) return sinkproof_trace_from_start(trace, error);
    if (alone)
        return sinkproof_fail(error,
                              "%.300s: expected a trace of one sequence beside --tokens, --trace "
                              "and --work, found %zu",
                              sinkproof_trace_path(trace), n);
    *sequences = calloc(n, sizeof **sequences);
    prompts->at = calloc(n, sizeof *prompts->at);
    if (*sequences == NULL || prompts->at == NULL) abort();
    for (size_t i = 0; good && i < n; i++) {
        sinkproof_trace **at = &(*sequences)[i];
        good = sinkproof_trace_alone(trace, config, i, at, error) &&
               sinkproof_trace_from_start(*at, error);
        if (!good) break;
        command_input *input = &prompts->at[prompts->n++];
        *input = (command_input){strdup(sinkproof_trace_path(*at)), strdup(""), NULL};
        if (input->name == NULL || input->said == NULL) abort();
    }
    return good;
}

void truth_sequences_close(const sinkproof_trace *trace, sinkproof_trace **sequences) {
    size_t n = sequences != NULL ? sinkproof_trace_sequences(trace) : 0;
    for (size_t i = 0; i < n; i++) sinkproof_trace_close(sequences[i]);
    free(sequences);
}
