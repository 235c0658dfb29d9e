// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Collects what the walk over the reals computes, and writes it as a trace.
#include "audit/verify/truth_study.h"

#include "audit/trace/trace_points.h"
#include "audit/verify/truth_bits.h"
#include "audit/version.h"
#include "proofs/bounds/worst.h"
#include "ref/stages.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void sinkproof_study_init(truth_study *study, const sinkproof_config *config,
                          const sinkproof_trace *trace, size_t n, bool local, bool keep) {
    *study = (truth_study){.config = config, .trace = trace, .n = n, .local = local, .keep = keep};
    for (size_t point = 0; point < TRACE_POINTS; point++) {
        study->points[point].radius_log2 = -INFINITY;
        study->points[point].relative_log2 = -INFINITY;
    }
    study->layers = calloc(config->n_layers + 1, sizeof *study->layers);
    if (study->layers == NULL) abort();
}

void sinkproof_study_clear(truth_study *study) {
    free(study->kept);
    free(study->layers);
}

static size_t place_elements(const sinkproof_truth_place *place) {
    size_t elements = 1;
    for (size_t d = 0; d < place->rank; d++) elements *= place->shape[d];
    return elements;
}

static size_t place_point(const sinkproof_truth_place *place) {
    for (size_t point = 0; point < TRACE_POINTS; point++)
        if (strcmp(sinkproof_trace_point_name((sinkproof_trace_point)point), place->point) == 0)
            return point;
    return TRACE_POINTS;
}

// Whether it is the score of a masked key, before the mask: engines may hold anything there.
static bool key_is_hidden(const truth_study *study, size_t point, size_t layer, size_t at) {
    if (!sinkproof_trace_point_is_before_mask((sinkproof_trace_point)point)) return false;
    size_t j = at % study->n, i = at / study->n % study->n;
    size_t window = study->config->sliding[layer] ? study->config->window : 0;
    return j > i || j < sinkproof_mask_first(window, i);
}

static void summary_measure(truth_summary *s, const sinkproof_truth_place *place, arb_srcptr values,
                            size_t elements) {
    s->rank = place->rank;
    memcpy(s->shape, place->shape, place->rank * sizeof *s->shape);
    for (size_t i = 0; i < elements; i++) {
        double radius = sinkproof_truth_radius_log2(values + i);
        double relative = sinkproof_truth_relative_log2(values + i);
        s->infinite += radius == INFINITY;
        s->radius_log2 = sinkproof_keep_worst(s->radius_log2, radius);
        if (!(relative > s->relative_log2)) continue;
        s->relative_log2 = relative;
        s->relative_layer = place->layer;
        s->relative_at = i;
    }
    s->elements += elements;
}

static void measure_depth(truth_depth *depth, arb_srcptr values, size_t elements) {
    depth->radius_log2 = -INFINITY;
    depth->elements = elements;
    for (size_t i = 0; i < elements; i++) {
        arb_srcptr x = values + i;
        depth->known += arb_is_exact(x) || (arb_is_finite(x) && !arb_contains_zero(x));
        depth->radius_log2 =
            sinkproof_keep_worst(depth->radius_log2, sinkproof_truth_radius_log2(x));
    }
}

size_t sinkproof_study_unknown_layer(const truth_study *study) {
    size_t layers = study->config->n_layers, layer = 0;
    while (layer < layers && study->layers[layer].known > 0) layer++;
    return layer;
}

long sinkproof_study_bits_wanted(const truth_study *study, long bits) {
    size_t layers = study->config->n_layers, known = sinkproof_study_unknown_layer(study);
    double lost = sinkproof_truth_loss(study->config, layers);
    if (known > 0 && isfinite(study->layers[known - 1].radius_log2)) {
        double here = study->layers[known - 1].radius_log2 + (double)bits;
        double ends = sinkproof_truth_loss(study->config, 0);
        lost = fmax(lost, here / (double)known * (double)layers + ends);
    }
    return sinkproof_truth_bits_for(lost);
}

// Compares the engine's values with the truth of the operation. NaN is infinitely far away.
static void summary_compare_trace(const truth_study *study, truth_summary *s, size_t point,
                                  const sinkproof_truth_place *place, arb_srcptr values,
                                  size_t elements, const sinkproof_tensor *tensor) {
    s->format = sinkproof_trace_format(tensor->dtype);
    for (size_t i = 0; i < elements; i++) {
        if (key_is_hidden(study, point, place->layer, i)) continue;
        double distance = sinkproof_truth_distance(values + i, sinkproof_tensor_value(tensor, i));
        double truth = arf_get_d(arb_midref(values + i), ARF_RND_NEAR);
        double ulp = distance / sinkproof_ulp(s->format, truth);
        s->compared++;
        s->distance = sinkproof_keep_worst(s->distance, distance);
        if (sinkproof_is_worse(s->ulp, ulp)) {
            s->ulp = ulp;
            s->ulp_layer = place->layer;
            s->ulp_at = i;
        }
    }
}

static void keep_point(truth_study *study, const char *name, size_t rank, const size_t *shape,
                       bool whole) {
    truth_kept *list = realloc(study->kept, (study->n_kept + 1) * sizeof *list);
    if (list == NULL) abort();
    study->kept = list;
    truth_kept *k = &list[study->n_kept++];
    *k = (truth_kept){.rank = rank, .elements = 1, .whole = whole};
    snprintf(k->name, sizeof k->name, "%s", name);
    memcpy(k->shape, shape, rank * sizeof *k->shape);
    for (size_t d = 0; d < rank; d++) k->elements *= shape[d];
}

// The end of the layer sees whether the file could be written.
static void keep_values(truth_study *study, const sinkproof_truth_place *place, arb_srcptr values,
                        size_t elements, bool whole) {
    keep_point(study, place->name, place->rank, place->shape, whole);
    for (size_t i = 0; i < elements && whole; i++) {
        int32_t id = (int32_t)arf_get_si(arb_midref(values + i), ARF_RND_NEAR);
        fwrite(&id, sizeof id, 1, study->kept_file);
    }
    if (whole) return;
    for (size_t i = 0; i < elements; i++) {
        double middle = arf_get_d(arb_midref(values + i), ARF_RND_NEAR);
        fwrite(&middle, sizeof middle, 1, study->kept_file);
    }
    for (size_t i = 0; i < elements; i++) {
        double middle = arf_get_d(arb_midref(values + i), ARF_RND_NEAR);
        double radius = sinkproof_truth_distance(values + i, middle);
        fwrite(&radius, sizeof radius, 1, study->kept_file);
    }
}

void sinkproof_study_keep_done(truth_study *study, size_t layers) {
    for (size_t l = 0; l < layers && study->keep; l++)
        for (int p = 0; p < TRACE_POINTS; p++) {
            sinkproof_trace_point point = (sinkproof_trace_point)p;
            char name[SINKPROOF_TRACE_NAME];
            size_t shape[3];
            bool layered = sinkproof_trace_point_is_layered(point);
            if ((!layered && (l > 0 || point != TRACE_T0)) ||
                !sinkproof_trace_point_exists(study->config, point, l) ||
                !sinkproof_trace_list_names(study->points_kept, point, l))
                continue;
            sinkproof_trace_name(point, l, name);
            size_t rank = sinkproof_trace_shape(study->config, point, study->n, shape);
            keep_point(study, name, rank, shape, sinkproof_trace_point_is_index(point));
        }
}

static void study_see_place(void *context, const sinkproof_truth_place *place, arb_srcptr values) {
    truth_study *study = context;
    size_t point = place_point(place), elements = place_elements(place);
    if (point == TRACE_POINTS) return;
    summary_measure(&study->points[point], place, values, elements);
    if (point == TRACE_M12) measure_depth(&study->layers[place->layer], values, elements);
    bool indices = sinkproof_trace_point_is_index((sinkproof_trace_point)point);
    if (study->keep &&
        sinkproof_trace_list_names(study->points_kept, (sinkproof_trace_point)point, place->layer))
        keep_values(study, place, values, elements, indices);
    if (!study->local || indices) return;
    const sinkproof_tensor *tensor =
        sinkproof_trace_find(study->trace, (sinkproof_trace_point)point, place->layer);
    if (tensor != NULL && sinkproof_tensor_elements(tensor) == elements)
        summary_compare_trace(study, &study->points[point], point, place, values, elements, tensor);
}

// Replaces the values by the engine's own, exactly, as inputs of the next operations. Masked
// weights are never read. Nothing follows the logits: they stay the truth of the engine's last
// hidden state.
static void replay_trace_values(void *context, const sinkproof_truth_place *place, arb_ptr values) {
    const truth_study *study = context;
    size_t point = place_point(place), elements = place_elements(place);
    if (point == TRACE_POINTS || point == TRACE_F2) return;
    const sinkproof_tensor *tensor =
        sinkproof_trace_find(study->trace, (sinkproof_trace_point)point, place->layer);
    if (tensor == NULL || sinkproof_tensor_elements(tensor) != elements) return;
    for (size_t i = 0; i < elements; i++) arb_set_d(values + i, sinkproof_tensor_value(tensor, i));
}

static bool replay_chosen_experts(void *context, size_t layer, size_t *chosen_nk) {
    const truth_study *study = context;
    const sinkproof_tensor *tensor = sinkproof_trace_find(study->trace, TRACE_M3, layer);
    size_t slots = study->n * study->config->n_chosen;
    if (tensor == NULL || sinkproof_tensor_elements(tensor) != slots) return false;
    for (size_t s = 0; s < slots; s++) {
        double id = sinkproof_tensor_value(tensor, s);
        chosen_nk[s] = id >= 0 ? (size_t)id : SIZE_MAX; // the walk refuses an unknown expert
    }
    return true;
}

static bool end_layer(void *context, const sinkproof_truth_state *state, sinkproof_error *error) {
    const truth_study *study = context;
    return study->layer == NULL || study->layer(study->context, state, error);
}

sinkproof_truth_hooks sinkproof_study_hooks(truth_study *study) {
    return (sinkproof_truth_hooks){.see = study_see_place,
                                   .replay = study->local ? replay_trace_values : NULL,
                                   .choose = study->trace != NULL ? replay_chosen_experts : NULL,
                                   .layer = end_layer,
                                   .context = study};
}

void sinkproof_study_where(const truth_study *study, size_t point, size_t layer, size_t at,
                           char text[TRUTH_PLACE]) {
    const truth_summary *s = &study->points[point];
    char name[SINKPROOF_TRACE_NAME];
    sinkproof_trace_name((sinkproof_trace_point)point, layer, name);
    snprintf(text, TRUTH_PLACE, "%s[%s]", name,
             sinkproof_trace_index_text(s->rank, s->shape, at).text);
}

size_t sinkproof_study_bytes(const truth_study *study) {
    size_t bytes = 0;
    for (size_t i = 0; i < study->n_kept; i++)
        bytes +=
            study->kept[i].elements * (study->kept[i].whole ? sizeof(int32_t) : 2 * sizeof(double));
    return bytes;
}

static void declare_kept(sinkproof_safetensors_writer *writer, const truth_kept *k) {
    char name[80];
    sinkproof_safetensors_writer_declare(
        writer, k->name, k->whole ? SINKPROOF_DTYPE_I32 : SINKPROOF_DTYPE_F64, k->rank, k->shape);
    if (k->whole) return;
    snprintf(name, sizeof name, "%s.radius", k->name);
    sinkproof_safetensors_writer_declare(writer, name, SINKPROOF_DTYPE_F64, k->rank, k->shape);
}

// The numbers are in the file in the order of the declarations.
static bool write_kept(sinkproof_safetensors_writer *writer, const truth_study *study,
                       sinkproof_error *error) {
    uint8_t piece[1 << 14];
    if (study->kept_file == NULL) return true;
    bool done = (fflush(study->kept_file) == 0 && !ferror(study->kept_file)) ||
                sinkproof_fail(error, "the kept points: cannot write: %s", strerror(errno));
    rewind(study->kept_file);
    for (size_t n; done && (n = fread(piece, 1, sizeof piece, study->kept_file)) > 0;)
        done = sinkproof_safetensors_writer_bytes(writer, piece, n, error);
    return done;
}

static void write_certificate(sinkproof_safetensors_writer *writer, const truth_certificate *of) {
    char text[64];
    sinkproof_safetensors_writer_metadata(writer, "truth", of->from);
    snprintf(text, sizeof text, "%ld", of->bits);
    sinkproof_safetensors_writer_metadata(writer, "bits", text);
    snprintf(text, sizeof text, "%zu of %zu", of->argmaxes, of->tokens);
    sinkproof_safetensors_writer_metadata(writer, "argmax certified", text);
    snprintf(text, sizeof text, "%zu of %zu", of->choices - of->open_choices, of->choices);
    sinkproof_safetensors_writer_metadata(writer, "routing certified", text);
    snprintf(text, sizeof text, "%.17g", of->relative_log2);
    sinkproof_safetensors_writer_metadata(writer, "largest log2 of a logit's relative radius",
                                          text);
    if (of->checks.products == 0) return;
    snprintf(text, sizeof text, "%zu of %zu", of->checks.rows - of->checks.broken, of->checks.rows);
    sinkproof_safetensors_writer_metadata(writer, "enclosed by GMP", text);
}

bool sinkproof_study_write(const truth_study *study, const char *path, const int32_t *tokens_n,
                           const sinkproof_model *model, const truth_certificate *certificate,
                           sinkproof_error *error) {
    char text[64];
    uint64_t fingerprint;
    if (!sinkproof_model_fingerprint(model, &fingerprint, error)) return false;
    sinkproof_safetensors_writer *writer = sinkproof_safetensors_writer_new();
    if (writer == NULL) return sinkproof_fail(error, "%s: no memory", path);
    sinkproof_safetensors_writer_metadata(writer, "format", "sinkproof-trace-1");
    sinkproof_safetensors_writer_metadata(writer, "engine", "sinkproof truth");
    sinkproof_safetensors_writer_metadata(writer, "version", SINKPROOF_VERSION);
    sinkproof_safetensors_writer_metadata(writer, "policy", "real");
    sinkproof_safetensors_writer_metadata(writer, "label", "enclosed");
    write_certificate(writer, certificate);
    snprintf(text, sizeof text, "%016llx", (unsigned long long)fingerprint);
    sinkproof_safetensors_writer_metadata(writer, "model", text);
    sinkproof_safetensors_writer_declare(writer, "tokens", SINKPROOF_DTYPE_I32, 1, &study->n);
    sinkproof_safetensors_writer_declare(writer, "positions", SINKPROOF_DTYPE_I32, 1, &study->n);
    for (size_t i = 0; i < study->n_kept; i++) declare_kept(writer, &study->kept[i]);
    bool done =
        sinkproof_safetensors_writer_begin(writer, path, error) &&
        sinkproof_safetensors_writer_bytes(writer, tokens_n, study->n * sizeof *tokens_n, error);
    for (size_t i = 0; i < study->n && done; i++) {
        int32_t position = (int32_t)i;
        done = sinkproof_safetensors_writer_bytes(writer, &position, sizeof position, error);
    }
    done = done && write_kept(writer, study, error) &&
           sinkproof_safetensors_writer_finish(writer, error);
    sinkproof_safetensors_writer_free(writer);
    return done;
}
