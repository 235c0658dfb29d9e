// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/command/truth_layers.h"

#include "audit/command/command.h"
#include "audit/trace/trace.h"
#include "base/fnv.h"
#include "ref/walk.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

// ---- progress

static bool count_weights(void *context, const sinkproof_walk_step *step) {
    truth_layers *all = context;
    const sinkproof_config *config = sinkproof_model_config(all->model);
    double weights = (double)step->weights[0].rows * (double)step->weights[0].cols;
    if (step->operation == SINKPROOF_MULTIPLY)
        all->layer += weights * (double)config->n_chosen / (double)config->n_layers;
    else if (step->operation == SINKPROOF_LINEAR && step->point != TRACE_F2)
        all->layer += weights / (double)config->n_layers;
    else if (step->point == TRACE_F2)
        all->logits = weights;
    return true;
}

truth_layers truth_layers_begin(const sinkproof_model *model, truth_work *work,
                                const truth_study *study, size_t done) {
    truth_layers all = {
        .model = model, .work = work, .study = study, .done = done, .began = clock_seconds()};
    sinkproof_walk(model, count_weights, &all);
    return all;
}

// The time that is left, as if each weight took the same; the bits by the largest radius.
static void show_progress(const truth_layers *all, size_t done) {
    size_t layers = all->study->config->n_layers;
    double whole = (double)(done - all->done) * all->layer;
    double rest = (double)(layers - done) * all->layer + all->logits;
    char left[32];
    if (!isatty(STDERR_FILENO)) return;
    spell_seconds((clock_seconds() - all->began) * rest / whole, left);
    fprintf(stderr, "\r\033[Ktruth: ");
    if (done < layers)
        fprintf(stderr, "layer %zu of %zu", done + 1, layers);
    else
        fprintf(stderr, "logits");
    fprintf(stderr, ", %.0f bits left, %s left",
            fmax(0, floor(-all->study->layers[done - 1].radius_log2)), left);
    fflush(stderr);
}

bool truth_layer_ends(void *context, const sinkproof_truth_state *state, sinkproof_error *error) {
    truth_layers *all = context;
    show_progress(all, state->layers);
    return all->work->path == NULL || sinkproof_work_store(all->work, all->study, state, error);
}

void truth_layers_end(void) {
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r\033[K");
}

// ---- identity

static uint64_t sum_trace(const sinkproof_trace *trace) {
    const sinkproof_safetensors *file = sinkproof_trace_file(trace);
    uint64_t sum = SINKPROOF_FNV_NOTHING;
    for (size_t part = 0; part < sinkproof_safetensors_parts(file); part++) {
        size_t length;
        const uint8_t *bytes = sinkproof_safetensors_bytes(file, part, &length);
        sum = sinkproof_fnv(sum, bytes, length);
    }
    return sum;
}

char *truth_identity(const truth_asked *asked, const sinkproof_model *model, size_t n,
                     const int32_t *tokens_n, sinkproof_error *error) {
    char *text;
    size_t length;
    uint64_t fingerprint, sum = SINKPROOF_FNV_NOTHING;
    if (!sinkproof_model_fingerprint(model, &fingerprint, error)) return NULL;
    for (size_t i = 0; i < n; i++) sum = sinkproof_fnv(sum, &tokens_n[i], sizeof *tokens_n);
    FILE *out = open_memstream(&text, &length);
    if (out == NULL) abort();
    fprintf(out, "sinkproof-truth-work-1\nversion %s\nmodel %016" PRIx64 "\n", SINKPROOF_VERSION,
            fingerprint);
    fprintf(out, "tokens %zu, sum %016" PRIx64 "\n", n, sum);
    if (asked->certified > 0)
        fprintf(out, "bits chosen, %ld certified\n", asked->certified);
    else
        fprintf(out, "bits %ld\n", asked->bits);
    fprintf(out, "checked results of a product %ld\n", asked->check);
    if (asked->trace != NULL)
        fprintf(out, "%s of a trace, sum %016" PRIx64 "\n", asked->of, sum_trace(asked->trace));
    else
        fprintf(out, "end to end\n");
    fprintf(out, "points kept: %s\n", asked->points);
    if (fclose(out) != 0) abort();
    return text;
}
