// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The truth of whole models: its balls are narrow and consistent between precisions, it says where
// it cannot certify the routing, and it lies where it should beside the reference in binary64 and
// the published torch implementation in binary32.
#include "audit/trace/trace.h"
#include "proofs/bounds/worst.h"
#include "proofs/truth/forward.h"
#include "ref/forward.h"
#include "tests/shared/tap.h"
#include "tests/shared/truth_random.h"

#include <sys/stat.h>

enum { N = 10 };

static sinkproof_model *open_model(const char *spec) {
    sinkproof_error error = {""};
    sinkproof_model *model = NULL;
    if (sinkproof_model_open(spec, &model, &error)) return model;
    note("%s", error.text);
    return NULL;
}

static void draw_tokens(uint64_t seed, size_t vocab, size_t n, int32_t *tokens_n) {
    for (size_t i = 0; i < n; i++) tokens_n[i] = (int32_t)draw_below(&seed, vocab);
}

// Every point of one walk, in order.
typedef struct record {
    size_t points, capacity;
    struct kept {
        char name[32];
        arb_ptr values;
        size_t elements;
    } * kept;
    const struct record *other; // compare with this one instead of keeping
    bool overlap, same_shapes;
    size_t unequal;
    double worst_shrink; // least log2(radius there / radius here) over points with radii
} record;

static void see(void *context, const sinkproof_truth_place *place, arb_srcptr values) {
    record *r = context;
    size_t elements = 1;
    for (size_t d = 0; d < place->rank; d++) elements *= place->shape[d];
    if (r->other != NULL) {
        const struct kept *k = &r->other->kept[r->points++];
        r->same_shapes =
            r->same_shapes && k->elements == elements && strcmp(k->name, place->name) == 0;
        for (size_t i = 0; r->same_shapes && i < elements; i++)
            r->overlap = r->overlap && arb_overlaps(values + i, k->values + i);
        for (size_t i = 0; r->same_shapes && i < elements; i++)
            r->unequal += !arb_equal(values + i, k->values + i);
        double here = worst_radius_log2(values, elements);
        double there = worst_radius_log2(k->values, elements);
        if (here > -INFINITY) r->worst_shrink = sinkproof_keep_least(r->worst_shrink, there - here);
        return;
    }
    if (r->points == r->capacity) {
        r->capacity = 2 * r->capacity + 64;
        r->kept = realloc(r->kept, r->capacity * sizeof *r->kept);
        if (r->kept == NULL) abort();
    }
    struct kept *k = &r->kept[r->points++];
    snprintf(k->name, sizeof k->name, "%s", place->name);
    k->elements = elements;
    k->values = _arb_vec_init((slong)elements);
    _arb_vec_set(k->values, values, (slong)elements);
}

static void forget(record *r) {
    for (size_t p = 0; p < r->points; p++)
        _arb_vec_clear(r->kept[p].values, (slong)r->kept[p].elements);
    free(r->kept);
}

// synthetic:tiny at 256 bits, and every point again at 512.
static void tiny(const sinkproof_model *model) {
    const sinkproof_config *config = sinkproof_model_config(model);
    int32_t tokens_n[N];
    draw_tokens(41, config->vocab, N, tokens_n);
    record first = {.other = NULL};
    sinkproof_truth_hooks hooks = {.see = see, .context = &first};
    sinkproof_truth_request request = {
        .model = model, .n = N, .tokens_n = tokens_n, .bits = 256, .hooks = &hooks};
    sinkproof_truth_result result;
    sinkproof_error error = {""};
    if (!ok(sinkproof_truth_forward(&request, &result, &error), "model.forward tiny %s",
            error.text))
        return;
    double worst = worst_relative_log2(result.logits_nv, result.n * result.vocab);
    ok(worst < -100,
       "model.forward tiny, %d tokens, 256 bits: worst relative radius of a logit "
       "worst=2^%.1f bound=2^-100 seed=41",
       N, worst);
    ok(result.routing.choices == N * config->n_layers && result.routing.ambiguous == 0,
       "router.topk tiny choices=%zu ambiguous=%zu bound=0 seed=41", result.routing.choices,
       result.routing.ambiguous);
    sinkproof_truth_result_clear(&result);

    record threaded = {
        .other = &first, .overlap = true, .same_shapes = true, .worst_shrink = INFINITY};
    hooks.context = &threaded;
    request.threads = 3;
    request.check_rows = 8;
    if (ok(sinkproof_truth_forward(&request, &result, &error), "model.forward tiny in threads")) {
        ok(threaded.points == first.points && threaded.same_shapes && threaded.unequal == 0,
           "model.forward tiny points=%zu: three threads change %zu balls, bound=0 seed=41",
           first.points, threaded.unequal);
        // q, k, v, output, router and two of the experts in a layer, and the logits
        size_t products = 7 * config->n_layers + 1;
        ok(result.checks.products == products && result.checks.rows == 8 * products &&
               result.checks.broken == 0 && result.checks.unchecked == 0,
           "slices.exact tiny products=%zu results=%zu not-enclosed=%zu bound=0 seed=41",
           result.checks.products, result.checks.rows, result.checks.broken);
        sinkproof_truth_result_clear(&result);
    }

    record finer = {
        .other = &first, .overlap = true, .same_shapes = true, .worst_shrink = INFINITY};
    hooks.context = &finer;
    request.bits = 512;
    if (ok(sinkproof_truth_forward(&request, &result, &error), "model.forward tiny at 512 bits")) {
        ok(finer.points == first.points && finer.same_shapes && finer.overlap,
           "model.forward tiny points=%zu: 256 and 512 bits overlap at every element",
           first.points);
        ok(finer.worst_shrink > 128,
           "model.forward tiny radii follow the precision: "
           "gained=%.1f of 256 bound=128",
           finer.worst_shrink);
        sinkproof_truth_result_clear(&result);
    }
    forget(&first);
}

// Precision that cannot carry four layers: nothing may be certified by luck.
static void too_few_bits(const sinkproof_model *model) {
    int32_t tokens_n[N];
    draw_tokens(42, sinkproof_model_config(model)->vocab, N, tokens_n);
    sinkproof_truth_request request = {.model = model, .n = N, .tokens_n = tokens_n, .bits = 32};
    sinkproof_truth_result result;
    sinkproof_error error = {""};
    if (!sinkproof_truth_forward(&request, &result, &error)) {
        ok(false, "router.topk at 32 bits: %s", error.text);
        return;
    }
    const sinkproof_truth_routing *r = &result.routing;
    ok(r->ambiguous > 0 && !arb_is_positive(r->first_margin),
       "router.topk at 32 bits: ambiguous=%zu of %zu, first at layer %zu, token %zu, its margin "
       "reaches 0",
       r->ambiguous, r->choices, r->first_layer, r->first_token);
    sinkproof_truth_result_clear(&result);
}

static void refusals(const sinkproof_model *model) {
    int32_t tokens_n[2] = {0, (int32_t)sinkproof_model_config(model)->vocab};
    sinkproof_truth_request request = {.model = model, .n = 2, .tokens_n = tokens_n, .bits = 64};
    sinkproof_truth_result result;
    sinkproof_error error = {""};
    ok(!sinkproof_truth_forward(&request, &result, &error) && error.text[0] != '\0',
       "model.forward refuses: %s", error.text);
    request.n = 0;
    ok(!sinkproof_truth_forward(&request, &result, &error), "model.forward refuses: %s",
       error.text);
    request.n = 1;
    request.bits = 16;
    ok(!sinkproof_truth_forward(&request, &result, &error), "model.forward refuses: %s",
       error.text);
}

// Another implementation's logits and choices beside the truth.
typedef struct beside {
    const sinkproof_config *config;
    size_t n;
    double *logits_nv; // [n, vocab]
    int32_t *chosen;   // [layers, n, k], or NULL
    size_t other_choices;
} beside;

static void see_choices(void *context, const sinkproof_truth_place *place, arb_srcptr values) {
    beside *b = context;
    size_t slots = b->n * b->config->n_chosen;
    if (b->chosen == NULL || strcmp(place->point, "M3") != 0) return;
    for (size_t s = 0; s < slots; s++)
        b->other_choices += !arb_equal_si(values + s, b->chosen[place->layer * slots + s]);
}

static size_t argmax(const double *logit_v, size_t vocab) {
    size_t best = 0;
    for (size_t v = 1; v < vocab; v++)
        if (logit_v[v] > logit_v[best]) best = v;
    return best;
}

// Same experts, same argmax of every token, both certified; the distance is printed.
static void compare(const char *what, const sinkproof_model *model, const int32_t *tokens_n,
                    beside *b) {
    sinkproof_truth_hooks hooks = {.see = see_choices, .context = b};
    sinkproof_truth_request request = {
        .model = model, .n = b->n, .tokens_n = tokens_n, .bits = 256, .hooks = &hooks};
    sinkproof_truth_result result;
    sinkproof_error error = {""};
    if (!sinkproof_truth_forward(&request, &result, &error)) {
        ok(false, "model.forward %s: %s", what, error.text);
        return;
    }
    double worst = 0, largest = 0;
    size_t other = 0, uncertified = 0, vocab = result.vocab;
    for (size_t i = 0; i < b->n; i++) {
        bool certified;
        size_t best =
            sinkproof_truth_argmax(result.logits_nv + i * vocab, vocab, &certified, NULL, 256);
        uncertified += !certified;
        other += best != argmax(b->logits_nv + i * vocab, vocab);
        for (size_t v = 0; v < vocab; v++) {
            double x = b->logits_nv[i * vocab + v];
            worst = sinkproof_keep_worst(
                worst, sinkproof_truth_distance(result.logits_nv + i * vocab + v, x));
            largest = sinkproof_keep_worst(largest, fabs(x));
        }
    }
    ok(uncertified == 0 && other == 0 && result.routing.ambiguous == 0 && b->other_choices == 0,
       "model.forward %s tokens=%zu: argmax differs at %zu, uncertified %zu, experts differ at "
       "%zu, "
       "all bound=0; distance of the logits %.3g (values to %.3g)",
       what, b->n, other, uncertified, b->other_choices, worst, largest);
    sinkproof_truth_result_clear(&result);
}

static void catch_choices(void *context, const char *name, size_t rank, const size_t *shape,
                          const double *values) {
    beside *b = context;
    (void)rank;
    (void)shape;
    size_t slots = b->n * b->config->n_chosen, length = strlen(name);
    if (length < 3 || strcmp(name + length - 3, ".M3") != 0) return;
    size_t layer = (size_t)strtoul(name, NULL, 10);
    for (size_t s = 0; s < slots; s++) b->chosen[layer * slots + s] = (int32_t)values[s];
}

static void reference(const char *spec, uint64_t seed) {
    sinkproof_model *model = open_model(spec);
    sinkproof_policy policy;
    sinkproof_error error = {""};
    if (model == NULL || !sinkproof_policy_parse("real-f64", &policy, &error)) {
        ok(false, "model.forward %s: %s", spec, error.text);
        return;
    }
    const sinkproof_config *config = sinkproof_model_config(model);
    beside b = {.config = config, .n = 14};
    int32_t tokens_n[14];
    draw_tokens(seed, config->vocab, b.n, tokens_n);
    b.logits_nv = calloc(b.n * config->vocab, sizeof *b.logits_nv);
    b.chosen = calloc(config->n_layers * b.n * config->n_chosen, sizeof *b.chosen);
    sinkproof_session *session = sinkproof_session_new(model, &policy);
    if (b.logits_nv == NULL || b.chosen == NULL || session == NULL) abort();
    sinkproof_observer observer = {.see = catch_choices, .context = &b};
    if (sinkproof_forward(session, b.n, tokens_n, b.logits_nv, &observer, &error)) {
        char what[128];
        snprintf(what, sizeof what, "%s beside ref real-f64 seed=%llu", spec,
                 (unsigned long long)seed);
        compare(what, model, tokens_n, &b);
    } else {
        ok(false, "model.forward %s: %s", spec, error.text);
    }
    sinkproof_session_free(session);
    free(b.logits_nv);
    free(b.chosen);
    sinkproof_model_close(model);
}

// Local truth of a trace at the two points that the format of the trace alone decides: an
// embedding row is copied (distance 0), a residual is one addition, rounded once (half an ulp).
typedef struct local {
    const sinkproof_trace *trace;
    sinkproof_format format;
    double embedding, residual; // worst distance in ulp
    size_t seen;
} local;

static const sinkproof_tensor *tensor_of(const local *l, const sinkproof_truth_place *place) {
    for (int point = 0; point < TRACE_POINTS; point++)
        if (strcmp(place->point, sinkproof_trace_point_name((sinkproof_trace_point)point)) == 0)
            return sinkproof_trace_find(l->trace, (sinkproof_trace_point)point, place->layer);
    return NULL;
}

static void see_local(void *context, const sinkproof_truth_place *place, arb_srcptr values) {
    local *l = context;
    const sinkproof_tensor *tensor = tensor_of(l, place);
    bool embedding = strcmp(place->point, "T0") == 0, residual = strcmp(place->point, "A13") == 0;
    if (tensor == NULL || (!embedding && !residual)) return;
    double *worst = embedding ? &l->embedding : &l->residual;
    for (size_t i = 0; i < sinkproof_tensor_elements(tensor); i++) {
        double x = sinkproof_tensor_value(tensor, i);
        double ulp = sinkproof_truth_distance(values + i, x) / sinkproof_ulp(l->format, x);
        *worst = sinkproof_keep_worst(*worst, ulp);
    }
    l->seen++;
}

static void replay_local(void *context, const sinkproof_truth_place *place, arb_ptr values) {
    const sinkproof_tensor *tensor = tensor_of(context, place);
    if (tensor == NULL) return;
    for (size_t i = 0; i < sinkproof_tensor_elements(tensor); i++)
        arb_set_d(values + i, sinkproof_tensor_value(tensor, i));
}

static void torch(const char *folder) {
    char path[128], trace_path[256];
    struct stat present;
    snprintf(path, sizeof path, "tests/vectors/openai-torch/%s", folder);
    if (stat(path, &present) != 0) {
        skip("model.forward %s is not here", path);
        return;
    }
    sinkproof_error error = {""};
    sinkproof_model *model = open_model(path);
    sinkproof_trace *trace = NULL;
    snprintf(trace_path, sizeof trace_path, "%s/trace-f32.safetensors", path);
    if (model == NULL ||
        !sinkproof_trace_open(trace_path, sinkproof_model_config(model), &trace, &error)) {
        ok(false, "model.forward %s: %s", path, error.text);
        if (model != NULL) sinkproof_model_close(model);
        return;
    }
    const sinkproof_config *config = sinkproof_model_config(model);
    const sinkproof_tensor *logits = sinkproof_trace_find(trace, TRACE_F2, 0);
    beside b = {.config = config, .n = sinkproof_trace_length(trace)};
    b.logits_nv = calloc(b.n * config->vocab, sizeof *b.logits_nv);
    if (b.logits_nv == NULL) abort();
    for (size_t i = 0; logits != NULL && i < b.n * config->vocab; i++)
        b.logits_nv[i] = sinkproof_tensor_value(logits, i);
    char what[128];
    snprintf(what, sizeof what, "%s beside torch float32", folder);
    compare(what, model, sinkproof_trace_tokens(trace), &b);

    local l = {.trace = trace, .format = SINKPROOF_F32};
    sinkproof_truth_hooks hooks = {.see = see_local, .replay = replay_local, .context = &l};
    sinkproof_truth_request request = {.model = model,
                                       .n = b.n,
                                       .bits = 128,
                                       .tokens_n = sinkproof_trace_tokens(trace),
                                       .hooks = &hooks};
    sinkproof_truth_result result;
    if (sinkproof_truth_forward(&request, &result, &error)) {
        ok(l.seen == 1 + config->n_layers && l.embedding == 0 && l.residual <= 0.5,
           "model.forward %s local truth: T0 worst=%g bound=0, A13 worst=%g bound=0.5 ulp", folder,
           l.embedding, l.residual);
        sinkproof_truth_result_clear(&result);
    } else {
        ok(false, "model.forward %s local: %s", folder, error.text);
    }
    free(b.logits_nv);
    sinkproof_trace_close(trace);
    sinkproof_model_close(model);
}

int main(void) {
    sinkproof_model *model = open_model("synthetic:tiny");
    if (ok(model != NULL, "synthetic:tiny opens")) {
        tiny(model);
        too_few_bits(model);
        refusals(model);
        sinkproof_model_close(model);
    }
    reference("synthetic:tiny", 43);
    reference("synthetic:tiny,seed=7", 44);
    torch("small");
    torch("window");
    flint_cleanup();
    mpfr_free_cache();
    return tap_done();
}
