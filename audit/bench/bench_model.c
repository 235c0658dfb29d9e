// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Measures the whole model: tokens per second of decoding at each depth, of prefill at each length,
// and of batches. Tokens come from a counter, so that the experts differ from token to token.
// Roofs: the bytes that a pass must read (the weights that its tokens use, their keys and values)
// and the operations that it must do. Where several tokens share a pass, the number of experts that
// they use together is estimated as if each token chose evenly among all.
#include "audit/bench/bench_model.h"

#include "base/splitmix.h"
#include "base/words.h"
#include "fast/kernels/panels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { CHUNK = 512 };

// ---- the needs of a token -----------------------------------------------------------------------

static double packed_bytes(const sinkproof_matrix *matrix, size_t rows, size_t cols) {
    return (double)sinkproof_panels_bytes(sinkproof_panels_format(matrix), rows, cols);
}

// Bytes of one expert in every layer, and the parameters that a token uses.
static void count_work(bench_engine *e) {
    const sinkproof_config *c = sinkproof_model_config(e->model);
    double hidden = (double)c->hidden, wide = (double)(c->n_heads * c->head_dim);
    double narrow = (double)(c->n_kv_heads * c->head_dim), layers = (double)c->n_layers;
    sinkproof_layer layer = sinkproof_model_layer(e->model, 0);
    size_t up = layer.w_up.rows; // gates and ups, or only the activated rows
    e->expert_bytes = layers * (packed_bytes(&layer.w_up, up, c->hidden) +
                                packed_bytes(&layer.w_down, c->hidden, c->inter));
    e->layer_products = layers * hidden *
                        (2 * wide + 2 * narrow + (double)layer.w_router.rows +
                         (double)c->n_chosen * ((double)up + (double)c->inter));
    e->head_products = hidden * (double)c->vocab;
    for (size_t l = 0; l < c->n_layers; l++) e->sliding += c->sliding[l] ? 1 : 0;
}

// Keys seen by the queries at positions first .. first + n - 1, summed over all layers.
static double count_visible_keys(const bench_engine *e, size_t first, size_t n) {
    const sinkproof_config *c = sinkproof_model_config(e->model);
    double full = (double)n * ((double)first + 0.5 * ((double)n + 1)), window = 0;
    for (size_t i = 0; i < n; i++)
        window += (double)(first + i + 1 < c->window ? first + i + 1 : c->window);
    return full * (double)(c->n_layers - e->sliding) + window * (double)e->sliding;
}

// need[BENCH_RESOURCES] of n tokens from position first on, for each of `sequences`.
static void count_need(const sinkproof_bench *bench, const bench_engine *e, size_t sequences,
                       size_t first, size_t n, double *need) {
    const sinkproof_config *c = sinkproof_model_config(e->model);
    double tokens = (double)(sequences * n), logits = (double)sequences;
    double passes = ceil((double)n / (double)CHUNK);
    double chosen = (double)c->n_chosen, experts = (double)c->n_experts;
    double used = experts * (1 - pow(1 - chosen / experts, tokens / passes));
    double dense = (double)sinkproof_engine_token_bytes(e->engine) - chosen * e->expert_bytes;
    double position_bytes = 2 * (double)(c->n_kv_heads * c->head_dim) *
                            (double)sinkproof_panel_block_bytes(e->cache_format) / 512;
    // A pass reads each key from memory once, for all of its queries.
    double keys = count_visible_keys(e, first + n - 1, 1) * logits;
    double scores = count_visible_keys(e, first, n) * (double)sequences * (double)c->n_heads;
    bool as_pairs = bench->table->pairs && e->bf16_operands;
    double products = 2 * (tokens * e->layer_products + logits * e->head_products);
    memset(need, 0, BENCH_RESOURCES * sizeof *need);
    need[BENCH_MEMORY] = passes * (dense + used * e->expert_bytes) + keys * position_bytes;
    need[as_pairs ? BENCH_PAIRS : BENCH_FMA] = products;
    bench_count_score_work(bench->table, e->cache_format, c->head_dim, scores, need);
}

// ---- the engine ---------------------------------------------------------------------------------

bool bench_engine_open(const sinkproof_bench *bench, const char *spec, int threads, bench_engine *e,
                       sinkproof_error *error) {
    *e = (bench_engine){.threads = threads};
    if (!sinkproof_model_open(spec, &e->model, error)) return false;
    sinkproof_engine_options options = {.kernels = bench->table,
                                        .kernels_of_one = bench->table_of_one,
                                        .threads = threads,
                                        .chunk = CHUNK,
                                        .progress = bench->progress};
    double start = bench_clock_seconds();
    if (!sinkproof_engine_new(e->model, &bench->policy, &options, &e->engine, error)) {
        sinkproof_model_close(e->model);
        return false;
    }
    e->seconds_to_pack = bench_clock_seconds() - start;
    e->bf16_operands = bench->policy.at[AT_M1].format == SINKPROOF_BF16;
    e->cache_format = bench->policy.at[AT_A4].format == SINKPROOF_BF16 ? SINKPROOF_PANEL_BF16
                                                                       : SINKPROOF_PANEL_F32;
    sinkproof_isa_names(bench->table_of_one, bench->table, e->isa);
    count_work(e);
    return true;
}

void bench_engine_close(bench_engine *e) {
    sinkproof_engine_free(e->engine);
    sinkproof_model_close(e->model);
}

// ---- measuring ----------------------------------------------------------------------------------

static int32_t token_at(const bench_engine *e, uint64_t counter) {
    uint64_t high = sinkproof_draw_nth(0, counter) >> 32;
    return (int32_t)(high * sinkproof_model_config(e->model)->vocab >> 32);
}

bool bench_group_open(const bench_engine *e, size_t count, size_t max_tokens, bench_group *group,
                      sinkproof_error *error) {
    size_t vocab = sinkproof_model_config(e->model)->vocab;
    *group = (bench_group){
        .count = count,
        .sequences = calloc(count, sizeof(sinkproof_sequence *)),
        .tokens = calloc(count * CHUNK, sizeof(int32_t)),
        .parts = calloc(count, sizeof(sinkproof_part)),
        .logits = calloc(count * vocab, sizeof(float)),
    };
    bool good = group->sequences != NULL && group->tokens != NULL && group->parts != NULL &&
                group->logits != NULL;
    if (!good) sinkproof_fail(error, "no memory for %s", sinkproof_counted(count, "sequence").text);
    for (size_t s = 0; good && s < count; s++) {
        group->sequences[s] = sinkproof_sequence_new(e->engine, max_tokens, error);
        good = group->sequences[s] != NULL;
    }
    if (!good) bench_group_close(group);
    return good;
}

void bench_group_close(bench_group *group) {
    for (size_t s = 0; group->sequences != NULL && s < group->count; s++)
        if (group->sequences[s] != NULL) sinkproof_sequence_free(group->sequences[s]);
    free(group->sequences);
    free(group->tokens);
    free(group->parts);
    free(group->logits);
}

// A pass of n tokens, at most a chunk, for each sequence; each sequence has its own place in the
// counter.
static bool run_pass(const bench_engine *e, bench_group *group, size_t n, bool with_logits,
                     double *seconds, sinkproof_error *error) {
    size_t vocab = sinkproof_model_config(e->model)->vocab;
    for (size_t s = 0; s < group->count; s++) {
        size_t at = sinkproof_sequence_length(group->sequences[s]);
        for (size_t i = 0; i < n; i++)
            group->tokens[s * n + i] = token_at(e, (uint64_t)s << 32 | (at + i));
        group->parts[s] =
            (sinkproof_part){.sequence = group->sequences[s],
                             .n = n,
                             .tokens_n = group->tokens + s * n,
                             .logits = with_logits ? group->logits + s * vocab : NULL};
    }
    double start = bench_clock_seconds();
    bool good = sinkproof_engine_forward(e->engine, group->count, group->parts, NULL, error);
    *seconds = bench_clock_seconds() - start;
    return good;
}

static void say_rate(const char *id, size_t done, size_t total, double rate) {
    if (!isatty(STDERR_FILENO)) return;
    char text[256];
    snprintf(text, sizeof text, "%s: %zu of %.60s, %.1f tokens/s", id, done,
             sinkproof_counted(total, "token").text, rate);
    sinkproof_bench_say(text);
}

// Extends every sequence to `depth` tokens, a chunk at a time; optionally with the last token's
// logits.
static bool fill_to_depth(const bench_engine *e, bench_group *group, size_t depth, bool with_logits,
                          const char *id, double *spent, sinkproof_error *error) {
    *spent = 0;
    if (sinkproof_sequence_length(group->sequences[0]) > depth)
        for (size_t s = 0; s < group->count; s++) sinkproof_sequence_reset(group->sequences[s]);
    for (size_t at; (at = sinkproof_sequence_length(group->sequences[0])) < depth;) {
        size_t n = depth - at < CHUNK ? depth - at : CHUNK;
        double seconds;
        if (!run_pass(e, group, n, with_logits && at + n == depth, &seconds, error)) return false;
        *spent += seconds;
        say_rate(id, at + n, depth, (double)(n * group->count) / seconds);
    }
    return true;
}

static size_t step_count(const sinkproof_bench *bench) {
    return bench->decode < SINKPROOF_BENCH_REPEATS ? bench->decode : SINKPROOF_BENCH_REPEATS;
}

static void add_model_row(sinkproof_bench *bench, bench_case *c, bench_times *times,
                          bench_watched *seen) {
    bench_times_settle(times);
    bench_settle_limits(bench, c->need, c->threads, seen);
    bench->matched++;
    bench_add_row(bench, bench_row_json(bench, c, times, seen));
    json_decref(c->more);
    sinkproof_bench_say(NULL);
}

// The further members of a model's row: needs per token, and its place in a figure.
static json_t *model_row_extras(const double *need, double tokens, const bench_group *group,
                                const bench_label *label) {
    size_t cache = 0;
    for (size_t s = 0; s < group->count; s++)
        cache += sinkproof_sequence_bytes(group->sequences[s]);
    json_t *more = json_pack("{sf sf sI}", "tokens", tokens, "bytes_per_token",
                             need[BENCH_MEMORY] / tokens, "cache_bytes", (json_int_t)cache);
    if (label->series == NULL) return more;
    json_object_set_new(more, "series", json_string(label->series));
    json_object_set_new(more, "at", json_integer((json_int_t)label->at));
    return more;
}

size_t bench_steps_room(const sinkproof_bench *bench) {
    return step_count(bench) + 1;
}

bool bench_decode(sinkproof_bench *bench, const bench_engine *e, bench_group *group, size_t depth,
                  const bench_label *label, sinkproof_error *error) {
    size_t steps = step_count(bench), most = sinkproof_model_config(e->model)->max_context;
    size_t room = bench_steps_room(bench);
    if (depth > most)
        return sinkproof_fail(error,
                              "%s: the model's context ends at %zu: expected another --depth",
                              label->id, most);
    if (depth + room > most) depth = most > room ? most - room : 0; // at the end of the context
    double seconds, tokens = (double)group->count;
    bench_times times = {0};
    bench_case c = {.threads = e->threads, .isa = e->isa, .amount = tokens, .unit = "tok/s"};
    snprintf(c.id, sizeof c.id, "%s", label->id);
    count_need(bench, e, group->count, depth + steps / 2, 1, c.need);
    bench_watched *m = calloc(1, sizeof *m);
    if (m == NULL)
        return sinkproof_fail(error, "no memory for the times of %s",
                              sinkproof_counted(steps, "step").text);
    sinkproof_bench_say(label->id);
    // One step that is not counted loads code and pages.
    bool good = fill_to_depth(e, group, depth, false, label->id, &seconds, error) &&
                run_pass(e, group, 1, true, &seconds, error);
    while (good && times.n < steps) {
        if (times.n % 4 == 0) bench_watch_limits(bench, c.need, e->threads, m);
        bench_gauge begin = bench_begin(e->threads);
        good = run_pass(e, group, 1, true, &seconds, error);
        bench_gauge step = bench_end(&begin);
        bench_times_add(&times, seconds, bench_is_disturbed(&step));
        if (times.n % 8 == 0) say_rate(label->id, times.n, steps, tokens / seconds);
    }
    if (good) {
        c.more = model_row_extras(c.need, tokens, group, label);
        add_model_row(bench, &c, &times, m);
    }
    free(m);
    return good;
}

bool bench_prefill(sinkproof_bench *bench, const bench_engine *e, size_t n,
                   const bench_label *label, sinkproof_error *error) {
    bench_group group;
    if (!bench_group_open(e, 1, n, &group, error)) return false;
    bench_times times = {0};
    bench_case c = {.threads = e->threads, .isa = e->isa, .amount = (double)n, .unit = "tok/s"};
    snprintf(c.id, sizeof c.id, "%s", label->id);
    count_need(bench, e, 1, 0, n, c.need);
    double seconds, spent = 0;
    bench_watched *m = calloc(1, sizeof *m);
    bool good = m != NULL || sinkproof_fail(error, "no memory for the times of a prompt");
    sinkproof_bench_say(label->id);
    const size_t rounds = bench_rounds(bench->repeat);
    while (good && bench_quiet_count(&times) < bench->repeat && times.n < rounds &&
           (times.n < 3 || spent < 20)) {
        bench_watch_limits(bench, c.need, e->threads, m);
        sinkproof_sequence_reset(group.sequences[0]);
        bench_gauge begin = bench_begin(e->threads);
        good = fill_to_depth(e, &group, n, true, label->id, &seconds, error);
        bench_gauge prompt = bench_end(&begin);
        bench_times_add(&times, seconds, bench_is_disturbed(&prompt));
        spent += seconds;
    }
    if (good) {
        c.more = model_row_extras(c.need, (double)n, &group, label);
        add_model_row(bench, &c, &times, m);
    }
    free(m);
    bench_group_close(&group);
    return good;
}

// ---- the command's part -------------------------------------------------------------------------

// The time to pack, and the peak memory of the process.
static void add_packing(sinkproof_bench *bench, const bench_engine *e) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    bench_times times = {.n = 1, .t = {e->seconds_to_pack}, .taken = 1};
    bench_watched seen = {.disturbed = bench->disturbed[1][BENCH_MEMORY]};
    size_t bytes = sinkproof_engine_weight_bytes(e->engine);
    bench_case c = {
        .threads = e->threads, .isa = e->isa, .amount = (double)bytes / 1e9, .unit = "GB/s"};
    snprintf(c.id, sizeof c.id, "model.pack");
    c.need[BENCH_MEMORY] = (double)bytes; // a lower bound: the packed bytes are written
    seen.rate[BENCH_MEMORY] = bench->rate[1][BENCH_MEMORY];
    c.more = json_pack("{sI sI sI}", "weight_bytes", (json_int_t)bytes, "token_bytes",
                       (json_int_t)sinkproof_engine_token_bytes(e->engine), "peak_memory_bytes",
                       (json_int_t)usage.ru_maxrss * 1024);
    bench->matched++;
    bench_add_row(bench, bench_row_json(bench, &c, &times, &seen));
    json_decref(c.more);
}

// Decodes with a group that exists for one measurement.
bool bench_decode_alone(sinkproof_bench *bench, const bench_engine *e, size_t count, size_t depth,
                        const bench_label *label, sinkproof_error *error) {
    size_t most = sinkproof_model_config(e->model)->max_context;
    size_t tokens = depth + bench_steps_room(bench);
    bench_group group;
    if (!bench_group_open(e, count, tokens < most ? tokens : most, &group, error)) return false;
    bool good = bench_decode(bench, e, &group, depth, label, error);
    bench_group_close(&group);
    return good;
}

// Whether a case is to be measured; one that would be counts as matched while the cases are looked
// through.
static bool is_measured(sinkproof_bench *bench, const char *id) {
    if (!bench_is_wanted(bench, id)) return false;
    if (bench->looks) bench->matched++;
    return !bench->looks;
}

bool sinkproof_bench_model(sinkproof_bench *bench, sinkproof_error *error) {
    bench_engine e;
    if (!bench->looks && !bench_engine_open(bench, bench->model, bench->threads, &e, error))
        return false;
    bool good = true;
    bench_label label = {.series = NULL};
    if (is_measured(bench, "model.pack")) add_packing(bench, &e);
    for (size_t i = 0; good && i < bench->depth.n; i++) {
        snprintf(label.id, sizeof label.id, "model.decode.depth%zu", bench->depth.at[i]);
        good = !is_measured(bench, label.id) ||
               bench_decode_alone(bench, &e, 1, bench->depth.at[i], &label, error);
    }
    for (size_t i = 0; good && i < bench->prompt.n; i++) {
        snprintf(label.id, sizeof label.id, "model.prefill.n%zu", bench->prompt.at[i]);
        good = !is_measured(bench, label.id) ||
               bench_prefill(bench, &e, bench->prompt.at[i], &label, error);
    }
    for (size_t i = 0; good && i < bench->batch.n; i++) {
        snprintf(label.id, sizeof label.id, "model.decode.batch%zu", bench->batch.at[i]);
        good = !is_measured(bench, label.id) ||
               bench_decode_alone(bench, &e, bench->batch.at[i], 0, &label, error);
    }
    if (!bench->looks) bench_engine_close(&e);
    return good;
}
