// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// libFuzzer: bytes as a trace of the tiny model. Whatever opens may be read to its last element,
// and each of its sequences is a trace of its own.
#include "audit/trace/trace_alone.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static volatile double kept; // so that no read is optimised away

static void read_all(const sinkproof_trace *trace, size_t n_layers) {
    double sum = (double)sinkproof_trace_first(trace);
    for (size_t t = 0; t < sinkproof_trace_length(trace); t++)
        sum += sinkproof_trace_tokens(trace)[t] + sinkproof_trace_positions(trace)[t];
    for (size_t t = 0; t < sinkproof_trace_length(trace); t++)
        sum += (double)(sinkproof_trace_sequence_of(trace, t).rows +
                        sinkproof_trace_sequence_of(trace, t).keys);
    for (size_t l = 0; l < n_layers; l++)
        for (int p = 0; p < TRACE_POINTS; p++) {
            const sinkproof_tensor *tensor =
                sinkproof_trace_find(trace, (sinkproof_trace_point)p, l);
            size_t count = tensor != NULL ? sinkproof_tensor_elements(tensor) : 0;
            if (count > 0) sum += sinkproof_tensor_value(tensor, 0);
            if (count > 0) sum += sinkproof_tensor_value(tensor, count - 1);
            const sinkproof_tensor *before =
                sinkproof_trace_before(trace, (sinkproof_trace_point)p, l);
            size_t earlier = before != NULL ? sinkproof_tensor_elements(before) : 0;
            if (earlier > 0) sum += sinkproof_tensor_value(before, earlier - 1);
        }
    const uint8_t *calls = sinkproof_trace_calls(trace);
    for (size_t t = 0; calls != NULL && t < sinkproof_trace_length(trace); t++) sum += calls[t];
    kept = sum;
}

// A sequence has its rows and positions; none of a trace that opens is refused.
static void read_alone(const sinkproof_trace *trace, const sinkproof_config *config) {
    enum { MOST = 4 };
    for (size_t i = 0; i < sinkproof_trace_sequences(trace) && i < MOST; i++) {
        sinkproof_sequence s = sinkproof_trace_sequence(trace, i);
        sinkproof_trace *alone;
        sinkproof_error error;
        if (!sinkproof_trace_alone(trace, config, i, &alone, &error)) abort();
        if (sinkproof_trace_length(alone) != s.rows || sinkproof_trace_first(alone) != s.first ||
            sinkproof_trace_prefix_length(alone) != s.named ||
            sinkproof_trace_sequences(alone) != 1)
            abort();
        read_all(alone, config->n_layers);
        sinkproof_trace_close(alone);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    sinkproof_config config;
    sinkproof_error error;
    sinkproof_trace *trace;
    if (!sinkproof_config_named("tiny", &config)) abort();
    if (!trace_parse(bytes, length, "fuzz", &config, &trace, &error)) return 0;
    read_all(trace, config.n_layers);
    read_alone(trace, &config);
    sinkproof_trace_close(trace);
    return 0;
}
