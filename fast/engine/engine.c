// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Creates an engine and its sequences, and splits a request into passes. Everything that can fail
// does so before a cache changes.
#include "fast/engine/engine.h"

#include "base/words.h"
#include "fast/engine/internal.h"
#include "fast/engine/packed_file.h"
#include "fast/kernels/isa.h"
#include "fast/lanes/lanes.h"
#include "model/sinks.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 512 }; // tokens per pass through the layers

static size_t round_up_to_panel(size_t n) {
    return (n + SINKPROOF_PANEL_COLS - 1) / SINKPROOF_PANEL_COLS * SINKPROOF_PANEL_COLS;
}

static size_t smaller_size(size_t a, size_t b) {
    return a < b ? a : b;
}

// ---- weights ---------------------------------------------------------------------------------

static void pack_weights(sinkproof_engine *e, const pack_list *list) {
#pragma omp parallel for schedule(dynamic) num_threads(e->threads)
    for (size_t unit = 0; unit < list->units; unit++)
        pack_unit(list, unit, e->workers[omp_get_thread_num()].work);
}

// The bytes that a decoded token reads of one layer's tensors: all except the experts that it does
// not choose.
static size_t token_layer_bytes(const sinkproof_config *config, const pack_list *list) {
    size_t experts = 0, fixed = 0;
    for (size_t j = 0; j < list->n_jobs; j++) {
        const pack_job *job = &list->jobs[j];
        size_t next = j + 1 < list->n_jobs ? (size_t)(list->jobs[j + 1].to - job->to)
                                           : (size_t)(list->jobs[0].to + list->bytes - job->to);
        if (j + 4 * config->n_experts >= list->n_jobs)
            experts += next;
        else
            fixed += next;
    }
    return fixed + experts / config->n_experts * config->n_chosen;
}

// Bytes of the layers and of the tensors after them; all of it is one region.
static bool measure_layer_bytes(sinkproof_engine *e, size_t *all, sinkproof_error *error) {
    size_t layers = e->config->n_layers, kept = e->options.streamed ? 1 : layers;
    sinkproof_matrix norm = sinkproof_model_final_norm(e->model);
    sinkproof_matrix unembedding = sinkproof_model_unembedding(e->model);
    pack_norm_and_unembedding(&norm, &unembedding, NULL, &e->list, &e->final_norm_c, &e->unembed);
    size_t end_bytes = e->list.bytes;
    for (size_t l = 0; l < layers; l++) { // containers may store layers differently
        pack_layer(e->model, l, NULL, &e->list, &e->layers[0]);
        if (e->list.bytes > e->layer_bytes) e->layer_bytes = e->list.bytes;
    }
    if (e->layer_bytes > (SIZE_MAX / 4 - end_bytes) / layers)
        return sinkproof_fail(error, "no memory for weights: too large");
    *all = kept * e->layer_bytes + end_bytes;
    e->weight_bytes = end_bytes + layers * e->layer_bytes;
    e->token_bytes = end_bytes;
    return true;
}

static void report_packed(const sinkproof_engine *e, size_t done) {
    if (e->options.progress != NULL)
        e->options.progress(e->options.context, "pack layer", done, e->config->n_layers);
}

// Places the layers (all, or room for one), then the final norm and the unembedding, in the region,
// and fills them unless they are already there.
static void place_layers(sinkproof_engine *e, bool there) {
    size_t layers = e->config->n_layers, kept = e->options.streamed ? 1 : layers;
    sinkproof_matrix norm = sinkproof_model_final_norm(e->model);
    sinkproof_matrix unembedding = sinkproof_model_unembedding(e->model);
    bool fills = !there && !e->options.streamed;
    for (size_t l = 0; l < kept; l++) {
        pack_layer(e->model, l, e->weights.data + l * e->layer_bytes, &e->list, &e->layers[l]);
        if (fills) {
            report_packed(e, l);
            pack_weights(e, &e->list);
        }
    }
    e->token_bytes += layers * token_layer_bytes(e->config, &e->list);
    pack_norm_and_unembedding(&norm, &unembedding, e->weights.data + kept * e->layer_bytes,
                              &e->list, &e->final_norm_c, &e->unembed);
    if (!there) pack_weights(e, &e->list);
    if (fills) report_packed(e, layers);
}

static bool load_layers(sinkproof_engine *e, sinkproof_error *error) {
    const char *file = e->options.streamed ? NULL : e->options.packed;
    uint64_t fingerprint = 0;
    size_t all;
    bool there = false;
    if (!measure_layer_bytes(e, &all, error)) return false;
    if (file != NULL && !sinkproof_model_fingerprint(e->model, &fingerprint, error)) return false;
    if (file != NULL && !packed_file_open(file, fingerprint, all, &there, &e->weights, error))
        return false;
    if (!there && !sinkproof_pages_new(all, SINKPROOF_LARGE_PAGES, "weights", &e->weights, error))
        return false;
    place_layers(e, there);
    return file == NULL || there || packed_file_write(file, fingerprint, &e->weights, all, error);
}

// ---- the engine ------------------------------------------------------------------------------

static bool engine_allocate(sinkproof_engine *e, sinkproof_error *error) {
    const sinkproof_config *c = e->config;
    size_t kept = e->options.streamed ? 1 : c->n_layers;
    e->layers = calloc(kept, sizeof *e->layers);
    if (e->layers == NULL) return sinkproof_fail(error, "no memory for an engine");
    packed_matrix *experts = calloc(kept * c->n_experts, 2 * sizeof *experts);
    e->freq_d = calloc(c->head_dim, sizeof *e->freq_d);
    e->row =
        calloc(c->hidden + (c->hidden > c->head_dim ? c->hidden : c->head_dim), sizeof *e->row);
    e->layers[0].up_e = experts;
    if (experts == NULL || e->freq_d == NULL || e->row == NULL)
        return sinkproof_fail(error, "no memory for an engine");
    for (size_t l = 0; l < kept; l++) {
        e->layers[l].up_e = experts + 2 * l * c->n_experts;
        e->layers[l].down_e = e->layers[l].up_e + c->n_experts;
    }
    if (c->rotation.kind != SINKPROOF_NO_ROTATION)
        sinkproof_yarn_frequencies(&e->policy, c, e->freq_d);
    return pack_list_new(c, &e->list, error) && workers_new(e, error);
}

bool sinkproof_engine_serves(const sinkproof_kernels *kernels, const sinkproof_policy *policy,
                             sinkproof_error *error) {
    if (!sinkproof_lanes_serves(policy, error)) return false;
    bool bf16 = policy->at[AT_A1].format == SINKPROOF_BF16;
    return bf16 || strcmp(kernels->mode, "lanes") == 0 ||
           sinkproof_fail(error, "%s multiplies bf16 numbers alone: expected bf16-operands, not %s",
                          kernels->isa, policy->name);
}

// Checks the limits of the arrays in kernels and passes. Every other size is a loop's bound or an
// allocation's size.
static bool check_limits(const sinkproof_engine *e, sinkproof_error *error) {
    const struct {
        const char *key;
        size_t found, most;
    } limits[] = {{"head_dim", e->config->head_dim, SINKPROOF_WIDEST_HEAD},
                  {"number of experts", e->config->n_experts, ENGINE_MOST_EXPERTS}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].found > limits[i].most)
            return sinkproof_fail(error,
                                  "%.400s: the fast path takes a %s up to %zu, found %zu; the "
                                  "engines ref and lanes take any",
                                  sinkproof_model_spec(e->model), limits[i].key, limits[i].most,
                                  limits[i].found);
    return sinkproof_sinks_are_constant(e->config) ||
           sinkproof_fail(error,
                          "%.400s: the fast path takes a sink logit for each head, found the "
                          "attention sink \"%s\"; the engines ref and lanes take any",
                          sinkproof_model_spec(e->model), sinkproof_sinks_name(e->config->sink));
}

// Takes the kernels of the options; passes of one token may have others of the same mode.
static bool choose_kernels(sinkproof_engine *e, const sinkproof_policy *policy,
                           sinkproof_error *error) {
    const sinkproof_kernels *of_many = e->options.kernels, *of_one = e->options.kernels_of_one;
    if (of_many == NULL) of_many = sinkproof_isa_choose(NULL, error);
    if (of_many == NULL || !sinkproof_engine_serves(of_many, policy, error)) return false;
    if (of_one == NULL) of_one = of_many;
    if (strcmp(of_one->mode, of_many->mode) != 0)
        return sinkproof_fail(error, "passes of one token on %s (mode %s): expected mode %s, as %s",
                              of_one->isa, of_one->mode, of_many->mode, of_many->isa);
    e->kernels_of_one = of_one;
    e->kernels_of_many = e->kernels = of_many;
    return true;
}

// The number of processors of the process, or OMP_NUM_THREADS if that is smaller.
static int count_threads(void) {
    int processors = omp_get_num_procs(), most = omp_get_max_threads();
    return most < processors ? most : processors;
}

static bool engine_start_up(sinkproof_engine *e, const sinkproof_policy *policy,
                            sinkproof_error *error) {
    const sinkproof_config *c = e->config;
    if (!check_limits(e, error)) return false;
    if (!choose_kernels(e, policy, error)) return false;
    e->bf16_operands = policy->at[AT_A1].format == SINKPROOF_BF16;
    e->bf16_cache = policy->at[AT_A4].format == SINKPROOF_BF16;
    e->threads = e->options.threads > 0 ? e->options.threads : count_threads();
    e->chunk = e->options.chunk > 0 ? e->options.chunk : CHUNK;
    e->width = (engine_widths){.hidden = round_up_to_panel(c->hidden),
                               .q = round_up_to_panel(c->n_heads * c->head_dim),
                               .kv = round_up_to_panel(c->n_kv_heads * c->head_dim),
                               .experts = round_up_to_panel(c->n_experts),
                               .up = round_up_to_panel(2 * c->inter),
                               .act = round_up_to_panel(c->inter),
                               .vocab = round_up_to_panel(c->vocab)};
    return engine_allocate(e, error) && load_layers(e, error);
}

bool sinkproof_engine_new(const sinkproof_model *model, const sinkproof_policy *policy,
                          const sinkproof_engine_options *options, sinkproof_engine **engine,
                          sinkproof_error *error) {
    sinkproof_engine *e = calloc(1, sizeof *e);
    *engine = NULL;
    if (e == NULL) return sinkproof_fail(error, "no memory for an engine");
    e->model = model;
    e->config = sinkproof_model_config(model);
    e->policy = *policy;
    if (options != NULL) e->options = *options;
    if (!engine_start_up(e, policy, error)) {
        sinkproof_engine_free(e);
        return false;
    }
    *engine = e;
    return true;
}

void sinkproof_engine_free(sinkproof_engine *e) {
    if (e == NULL) return;
    workers_free(e);
    fast_buffers_free(&e->b);
    sinkproof_pages_free(&e->weights);
    pack_list_free(&e->list);
    if (e->layers != NULL) free(e->layers[0].up_e);
    free(e->layers);
    free(e->freq_d);
    free(e->row);
    free(e);
}

const sinkproof_kernels *sinkproof_engine_kernels(const sinkproof_engine *engine) {
    return engine->kernels_of_many;
}

const sinkproof_kernels *sinkproof_engine_kernels_one_token(const sinkproof_engine *engine) {
    return engine->kernels_of_one;
}

int sinkproof_engine_threads(const sinkproof_engine *engine) {
    return engine->threads;
}

size_t sinkproof_engine_weight_bytes(const sinkproof_engine *engine) {
    return engine->weight_bytes;
}

size_t sinkproof_engine_token_bytes(const sinkproof_engine *engine) {
    return engine->token_bytes;
}

// ---- sequences -------------------------------------------------------------------------------

sinkproof_sequence *sinkproof_sequence_new(const sinkproof_engine *engine, size_t max_tokens,
                                           sinkproof_error *error) {
    sinkproof_sequence *s = calloc(1, sizeof *s);
    if (s == NULL) {
        sinkproof_fail(error, "no memory for a sequence");
        return NULL;
    }
    size_t context = engine->config->max_context;
    s->engine = engine;
    s->max_tokens = max_tokens == 0 || max_tokens > context ? context : max_tokens;
    if (!cache_new(engine->config, engine->bf16_cache ? SINKPROOF_PANEL_BF16 : SINKPROOF_PANEL_F32,
                   s->max_tokens, &s->cache, error)) {
        free(s);
        return NULL;
    }
    return s;
}

void sinkproof_sequence_free(sinkproof_sequence *sequence) {
    if (sequence == NULL) return;
    cache_free(&sequence->cache);
    free(sequence);
}

void sinkproof_sequence_reset(sinkproof_sequence *sequence) {
    sequence->length = 0;
}

size_t sinkproof_sequence_length(const sinkproof_sequence *sequence) {
    return sequence->length;
}

size_t sinkproof_sequence_bytes(const sinkproof_sequence *sequence) {
    return cache_bytes(&sequence->cache, sequence->length);
}

// ---- passes ----------------------------------------------------------------------------------

static bool check_part(const sinkproof_engine *e, const sinkproof_part *part,
                       sinkproof_error *error) {
    const sinkproof_sequence *s = part->sequence;
    if (s->engine != e) return sinkproof_fail(error, "a sequence of another engine");
    if (part->n > s->max_tokens || s->length > s->max_tokens - part->n)
        return sinkproof_fail(error, "%s exceed the sequence's context of %zu",
                              sinkproof_counted(s->length + part->n, "token").text, s->max_tokens);
    for (size_t t = 0; t < part->n; t++)
        if (part->tokens_n[t] < 0 || (size_t)part->tokens_n[t] >= e->config->vocab)
            return sinkproof_fail(error,
                                  "token %zu is %d: expected an id from 0 to %zu (the vocabulary)",
                                  s->length + t, (int)part->tokens_n[t], e->config->vocab - 1);
    return true;
}

static bool check_parts(const sinkproof_engine *e, size_t n_parts, const sinkproof_part *parts,
                        sinkproof_error *error) {
    bool twice = false;
    for (size_t p = 0; p < n_parts; p++) {
        if (!check_part(e, &parts[p], error)) return false;
        parts[p].sequence->marked = 0;
    }
    for (size_t p = 0; p < n_parts; p++) twice = twice || parts[p].sequence->marked++ > 0;
    return !twice || sinkproof_fail(error, "a sequence has two parts in one pass: expected one");
}

// Adds tokens done .. done + n - 1 of a part to the pass.
static void add_segment(engine_pass *pass, const sinkproof_part *part, size_t done, size_t n) {
    sinkproof_engine *e = pass->engine;
    size_t first = part->sequence->length, vocab = e->config->vocab;
    e->b.segments[pass->n_segments++] =
        (pass_segment){.sequence = part->sequence,
                       .row = pass->n,
                       .n = n,
                       .first = first,
                       .tokens_n = part->tokens_n + done,
                       .steps = (first + n - 1) / CACHE_STEP - first / CACHE_STEP + 1};
    for (size_t i = 0; i < n; i++) {
        bool last = done + i + 1 == part->n;
        float *to = part->logits;
        if (to != NULL && part->all_logits) to += (done + i) * vocab;
        bool asked = part->logits != NULL && (part->all_logits || last);
        if (asked || pass->observer != NULL)
            e->b.wanted[pass->n_wanted++] = (wanted_rows){pass->n + i, asked ? to : NULL};
    }
    pass->n += n;
}

// Long contexts of single tokens are split if there are too few heads for all threads.
static bool segment_is_cut(const sinkproof_engine *e, size_t heads, const pass_segment *s) {
    return s->n == 1 && s->first / ENGINE_SPAN + 1 > 2 * ENGINE_PIECE &&
           heads < 4 * (size_t)e->threads && heads % (size_t)e->threads != 0;
}

static void split_contexts(engine_pass *pass) {
    sinkproof_engine *e = pass->engine;
    size_t heads = pass->n_segments * e->config->n_kv_heads, spans = 0;
    for (size_t i = 0; i < pass->n_segments; i++) {
        pass_segment *s = &e->b.segments[i];
        size_t own = s->first / ENGINE_SPAN + 1;
        s->state = spans;
        s->pieces = segment_is_cut(e, heads, s) ? (own + ENGINE_PIECE - 1) / ENGINE_PIECE : 0;
        if (s->pieces > 0) spans += own;
    }
}

// Reserves the memory of the largest pass, before the first pass.
static bool reserve_largest_pass(sinkproof_engine *e, size_t n_parts, const sinkproof_part *parts,
                                 size_t step, bool observed, sinkproof_error *error) {
    size_t total = 0, logits = 0, spans = 0, keys = 0;
    for (size_t p = 0; p < n_parts; p++) {
        total += parts[p].n;
        size_t wanted = parts[p].logits == NULL ? 0 : parts[p].all_logits ? parts[p].n : 1;
        logits += smaller_size(wanted, step);
        // The last pass of a part may hold a single token.
        if (parts[p].n > 0) spans += (parts[p].sequence->length + parts[p].n) / ENGINE_SPAN + 1;
        keys = parts[p].sequence->length + parts[p].n;
    }
    size_t heads = e->config->n_kv_heads;
    if (e->threads == 1 || 4 * (size_t)e->threads <= heads) spans = 0; // never split
    if (e->config->vocab % SINKPROOF_PANEL_ROWS == 0) logits = 0;      // written directly
    if (observed) logits = total;
    return fast_buffers_reserve(e, smaller_size(total, step), smaller_size(logits, step),
                                observed ? keys : 0, spans, error);
}

bool sinkproof_engine_forward(sinkproof_engine *engine, size_t n_parts, const sinkproof_part *parts,
                              const sinkproof_observer *observer, sinkproof_error *error) {
    size_t total = 0, done = 0, p = 0, part_done = 0;
    if (!check_parts(engine, n_parts, parts, error)) return false;
    if (observer != NULL && n_parts != 1)
        return sinkproof_fail(error, "%s under an observer: expected one",
                              sinkproof_counted(n_parts, "part").text);
    for (size_t i = 0; i < n_parts; i++) total += parts[i].n;
    size_t step = observer != NULL ? total : engine->chunk;
    if (total > 0 && !reserve_largest_pass(engine, n_parts, parts, step, observer != NULL, error))
        return false;
    while (done < total) {
        engine_pass pass = {.engine = engine, .observer = observer};
        while (pass.n < step && p < n_parts) {
            size_t n = smaller_size(parts[p].n - part_done, step - pass.n);
            if (n > 0) add_segment(&pass, &parts[p], part_done, n);
            part_done += n;
            if (part_done < parts[p].n) break;
            p++;
            part_done = 0;
        }
        split_contexts(&pass);
        engine->kernels = pass.n == 1 ? engine->kernels_of_one : engine->kernels_of_many;
        pass_run(&pass);
        for (size_t i = 0; i < pass.n_segments; i++) {
            sinkproof_sequence *s = engine->b.segments[i].sequence;
            s->length += engine->b.segments[i].n;
            cache_settle_pages(&s->cache, s->length);
        }
        done += pass.n;
    }
    return true;
}
