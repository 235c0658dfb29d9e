// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/command/plan.h"

#include "audit/command/command.h"
#include "audit/trace/trace_points.h"
#include "base/words.h"
#include "model/json_number.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { FEW = 16, MORE = 48 }; // tokens that are judged

// ---- the first tokens of a layer -------------------------------------------------------------

// Scores and weights have a column for each key, A9 one for the sink behind them.
static bool is_square(sinkproof_trace_point point) {
    return point == TRACE_A6 || point == TRACE_A9 || point == TRACE_A10;
}

static uint8_t *crop_square(const sinkproof_tensor *tensor, size_t m) {
    size_t heads = tensor->shape[0], n = tensor->shape[1], width = tensor->shape[2];
    size_t size = sinkproof_dtype_size(tensor->dtype), sink = width - n;
    uint8_t *out = malloc(heads * m * (m + sink) * size + 1), *to = out;
    for (size_t r = 0; out != NULL && r < heads * m; r++) {
        const uint8_t *row = tensor->data + (r / m * n + r % m) * width * size;
        memcpy(to, row, m * size);
        memcpy(to + m * size, row + n * size, sink * size);
        to += (m + sink) * size;
    }
    return out;
}

static bool add_point(sinkproof_trace_builder *builder, const sinkproof_trace *trace,
                      sinkproof_trace_point point, size_t layer, size_t m, sinkproof_error *error) {
    const sinkproof_tensor *tensor = sinkproof_trace_find(trace, point, layer);
    size_t shape[SINKPROOF_MAX_RANK];
    bool square = is_square(point);
    // with columns of earlier keys a crop would be another trace
    if (tensor == NULL ||
        (square && sinkproof_trace_columns(trace) != sinkproof_trace_length(trace)))
        return true;
    memcpy(shape, tensor->shape, sizeof shape);
    uint8_t *cropped = square ? crop_square(tensor, m) : NULL;
    if (square && cropped == NULL) return sinkproof_fail(error, "no memory for a plan");
    if (square) shape[2] = m + shape[2] - shape[1];
    shape[square ? 1 : 0] = m;
    bool good =
        sinkproof_trace_builder_add(builder, tensor->name, sinkproof_dtype_name(tensor->dtype),
                                    tensor->rank, shape, square ? cropped : tensor->data, error);
    free(cropped);
    return good;
}

// The first m tokens of a layer and what it is computed from.
static bool crop_layer(const sinkproof_model *model, const sinkproof_trace *trace, size_t layer,
                       size_t m, sinkproof_trace **cropped, sinkproof_error *error) {
    sinkproof_trace_builder *builder;
    if (!sinkproof_trace_builder_new(model, "plan", NULL, m, sinkproof_trace_tokens(trace),
                                     &builder, error))
        return false;
    bool good = layer > 0 ? add_point(builder, trace, TRACE_M12, layer - 1, m, error)
                          : add_point(builder, trace, TRACE_T0, 0, m, error);
    for (int p = 0; good && p < TRACE_POINTS; p++)
        if (sinkproof_trace_point_is_layered((sinkproof_trace_point)p))
            good = add_point(builder, trace, (sinkproof_trace_point)p, layer, m, error);
    good = good && sinkproof_trace_builder_finish(builder, cropped, error);
    sinkproof_trace_builder_free(builder);
    return good;
}

// ---- measuring -------------------------------------------------------------------------------

// A judgement of some tokens of a layer: what it took.
typedef struct measured {
    double seconds, processors, work; // processors: the seconds of all of them
    size_t tokens, bytes, memory;     // of the trace; memory: the most that the process had
} measured;

static double processor_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static bool measure(const sinkproof_model *model, const sinkproof_trace *trace, size_t layer,
                    size_t m, const sinkproof_policy *policy, measured *took,
                    sinkproof_error *error) {
    sinkproof_trace *few;
    sinkproof_judgement j;
    sinkproof_judge_size size;
    struct rusage usage;
    const sinkproof_judge_options how = {.rate = 1e-9, .layers = {layer, layer + 1}};
    if (!crop_layer(model, trace, layer, m, &few, error)) return false;
    double began = clock_seconds(), before = processor_seconds();
    bool good = sinkproof_judge(model, few, policy, &how, &j, error);
    took->seconds = clock_seconds() - began;
    took->processors = processor_seconds() - before;
    sinkproof_judge_measure(model, few, how.layers, &size);
    getrusage(RUSAGE_SELF, &usage);
    took->tokens = m, took->work = size.layer, took->bytes = size.at_once;
    took->memory = (size_t)usage.ru_maxrss * 1024;
    if (good) sinkproof_judgement_free(&j);
    sinkproof_trace_close(few);
    return good;
}

// The first of the layers that has a traced point.
static bool find_layer(const sinkproof_trace *trace, sinkproof_layer_range layers, size_t *layer) {
    for (*layer = layers.first; *layer < layers.end; ++*layer)
        for (int p = 0; p < TRACE_POINTS; p++)
            if (sinkproof_trace_point_is_layered((sinkproof_trace_point)p) &&
                sinkproof_trace_find(trace, (sinkproof_trace_point)p, *layer) != NULL)
                return true;
    return false;
}

static const char *policy_of_auto(const sinkproof_trace *trace, size_t layer) {
    for (int p = 0; p < TRACE_POINTS; p++) {
        const sinkproof_tensor *t = sinkproof_trace_find(trace, (sinkproof_trace_point)p, layer);
        if (t != NULL && t->dtype == SINKPROOF_DTYPE_BF16) return "bf16";
        if (t != NULL && t->dtype == SINKPROOF_DTYPE_F16) return "f16";
    }
    return "f32";
}

// Seconds of `layers` layers and of `rest`, the work outside them: each layer costs something once,
// and something for each multiply-add. few, more: the seconds of the two measurements.
static double extrapolate(double few, double more, const measured took[2], size_t layers,
                          double layer, double rest) {
    double each = (more - few) / (took[1].work - took[0].work);
    if (took[1].work <= took[0].work || !(each > 0)) each = more / took[1].work;
    double once = more - each * took[1].work;
    if (once < 0) once = 0;
    return (double)layers * (once + each * layer) + each * rest;
}

// Bytes: what is not the trace grows with the tokens.
static size_t extrapolate_memory(const measured took[2], size_t tokens, size_t at_once) {
    double few = (double)took[0].memory - (double)took[0].bytes,
           more = (double)took[1].memory - (double)took[1].bytes;
    double each = took[1].tokens > took[0].tokens
                      ? (more - few) / (double)(took[1].tokens - took[0].tokens)
                      : 0;
    if (!(each > 0)) each = 0;
    return (size_t)(more + each * (double)(tokens - took[1].tokens)) + at_once;
}

// ---- the plan --------------------------------------------------------------------------------

static const double GIB = 1 << 30;

typedef struct plan {
    sinkproof_judge_size size;
    size_t tokens, prefix, files, layers, layer, memory, gradients;
    double seconds, processors, took; // took: the measurement
    const char *policy;
    measured last;
} plan;

static char *spell_plan(const plan *p, const char *name, sinkproof_layer_range layers) {
    char *text = NULL, time[32], processors[32];
    size_t length;
    FILE *out = open_memstream(&text, &length);
    if (out == NULL) abort();
    spell_seconds(p->seconds, time);
    spell_seconds(p->processors, processors);
    fprintf(out, "plan of %s\n%s, layers %zu to %zu: %s, %.3g GiB in %s\n", name,
            sinkproof_counted(p->tokens, "token").text, layers.first, layers.end - 1,
            sinkproof_counted(p->size.points, "point").text, (double)p->size.bytes / GIB,
            sinkproof_counted(p->files, "file").text);
    fprintf(out,
            "memory: at most %.3g GiB of the trace at once; its sets take %.3g GiB at most;\n"
            "with weights and threads %.3g GiB (estimated)\n",
            (double)p->size.at_once / GIB, (double)p->size.sets / GIB, (double)p->memory / GIB);
    fprintf(out,
            "time: %s here, %s of processors, for one reading under %s, without the\n"
            "comparison end to end (estimated, from %s of layer %zu, which took %.2g s)\n",
            time, processors, p->policy, sinkproof_counted(p->last.tokens, "token").text, p->layer,
            p->took);
    if (p->prefix > 0)
        fprintf(out,
                "prefix: %s before the trace, computed through all layers first (in this time);\n"
                "the sets of its keys and values take %.3g GiB at most\n",
                sinkproof_counted(p->prefix, "token").text, (double)p->size.prefix_sets / GIB);
    if (p->gradients > 0)
        fprintf(out, "gradients: %s more, which are judged too; this estimate is without them\n",
                sinkproof_counted(p->gradients, "tensor").text);
    if (fclose(out) != 0) abort();
    return text;
}

static json_t *plan_json(const plan *p) {
    char said[96], time[32];
    spell_seconds(p->seconds, time);
    snprintf(said, sizeof said, "%.3g GiB, %.3g GiB of memory, %s (estimated)",
             (double)p->size.bytes / GIB, (double)p->memory / GIB, time);
    return json_pack("{s:i, s:s, s:[{s:s, s:b, s:i, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, "
                     "s:s, s:o*, s:o*}]}",
                     "exit", EXIT_HOLDS, "said", said, "results", "id", "plan", "ok", 1, "exit",
                     EXIT_HOLDS, "label", "estimated", "tokens", (json_int_t)p->tokens, "points",
                     (json_int_t)p->size.points, "bytes", (json_int_t)p->size.bytes, "at_once",
                     (json_int_t)p->size.at_once, "sets", (json_int_t)p->size.sets, "memory",
                     (json_int_t)p->memory, "seconds", sinkproof_number_json(p->seconds),
                     "processor_seconds", sinkproof_number_json(p->processors), "policy", p->policy,
                     "prefix", p->prefix > 0 ? json_integer((json_int_t)p->prefix) : NULL,
                     "prefix_sets",
                     p->prefix > 0 ? json_integer((json_int_t)p->size.prefix_sets) : NULL);
}

json_t *plan_trace(const sinkproof_model *model, const sinkproof_trace *trace, const char *name,
                   sinkproof_layer_range layers, const char *policy, sinkproof_error *error) {
    size_t n_layers = sinkproof_model_config(model)->n_layers;
    plan p = {.tokens = sinkproof_trace_length(trace),
              .gradients = sinkproof_trace_gradients(trace),
              .files = sinkproof_safetensors_parts(sinkproof_trace_file(trace))};
    sinkproof_policy rounding;
    measured took[2];
    if (layers.end == 0) layers.end = n_layers;
    if (layers.end > n_layers || !find_layer(trace, layers, &p.layer)) {
        sinkproof_fail(error, "%.300s: the trace holds no point of layers %zu to %zu", name,
                       layers.first, layers.end - 1);
        return NULL;
    }
    p.policy = strcmp(policy, "auto") == 0 ? policy_of_auto(trace, p.layer) : policy;
    size_t more = p.tokens < MORE ? p.tokens : MORE, few = more > FEW ? FEW : (more + 2) / 3;
    if (!sinkproof_policy_parse(p.policy, &rounding, error) ||
        !measure(model, trace, p.layer, few, &rounding, &took[0], error) ||
        !measure(model, trace, p.layer, more, &rounding, &took[1], error))
        return NULL;
    sinkproof_judge_measure(model, trace, layers, &p.size);
    p.layers = layers.end - layers.first;
    double rest = p.size.work - (double)p.layers * p.size.layer;
    p.seconds = extrapolate(took[0].seconds, took[1].seconds, took, p.layers, p.size.layer, rest);
    p.processors =
        extrapolate(took[0].processors, took[1].processors, took, p.layers, p.size.layer, rest);
    if (sinkproof_trace_prefix(trace) != NULL) {
        p.prefix = sinkproof_trace_prefix_length(trace);
        p.seconds +=
            extrapolate(took[0].seconds, took[1].seconds, took, n_layers, p.size.prefix_layer, 0);
        p.processors += extrapolate(took[0].processors, took[1].processors, took, n_layers,
                                    p.size.prefix_layer, 0);
    }
    p.took = took[0].seconds + took[1].seconds;
    p.last = took[1];
    p.memory = extrapolate_memory(took, p.tokens, p.size.at_once);
    p.memory += p.size.prefix_sets;
    if (p.memory < p.size.sets + p.size.at_once) p.memory = p.size.sets + p.size.at_once;
    json_t *result = plan_json(&p);
    char *text = spell_plan(&p, name, layers);
    json_object_set_new(result, "text", text_json(text));
    json_object_set_new(json_array_get(json_object_get(result, "results"), 0), "gradients",
                        json_integer((json_int_t)p.gradients));
    free(text);
    return result;
}
