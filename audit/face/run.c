// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// An engine in which functions of the caller compute some stages. The engine shows each point;
// inputs of a replaced point are kept until they are needed; then the caller's function runs, and
// the engine continues from its result.
#include "audit/engine/runner.h"
#include "audit/face/stages.h"
#include "audit/trace/trace_points.h"
#include "audit/trace/trace_write.h"
#include "base/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A point as the pass showed it, or the cache of a point.
typedef struct kept {
    double *values;
    size_t count, room;
} kept;

// The inputs that a stage may ask for.
typedef struct sinkproof_seen {
    const kept *held_p; // [FACE_MOST_INPUTS] of this pass
    const kept *keys, *values;
    point_set from;
} sinkproof_seen;

struct sinkproof_run {
    const sinkproof_model *model;
    sinkproof_model *view; // with its weights as the policy stores them; NULL: use `model`
    const sinkproof_config *config;
    char engine[16];
    sinkproof_policy policy;
    sinkproof_runner *runner;
    size_t chunk;
    replaced_point *replaced_lp;   // [n_layers, TRACE_POINTS]
    point_set *needed_l;           // inputs of the stages of a layer
    kept held_p[FACE_MOST_INPUTS]; // of the current pass and layer
    kept *keys_l, *values_l;       // A4.k and A2.v of all tokens, if a stage needs them
    size_t n, first;               // of the current pass
    const int32_t *tokens_n;
    const sinkproof_observer *onward; // the trace's writer, or NULL
    sinkproof_error problem;          // the first error; an empty text if there is none
};

static bool is_replaced(const sinkproof_run *r) {
    for (size_t i = 0; i < r->config->n_layers * TRACE_POINTS; i++)
        if (r->replaced_lp[i].stage != NULL) return true;
    return false;
}

static replaced_point *replaced_point_entry(const sinkproof_run *r, size_t layer,
                                            sinkproof_trace_point point) {
    return &r->replaced_lp[layer * TRACE_POINTS + (size_t)point];
}

// ---- what a pass shows -----------------------------------------------------------------------

static bool keep_point_values(sinkproof_run *r, kept *k, size_t before, size_t count,
                              const double *values) {
    if (k->room < before + count) {
        size_t room = before + count + before / 2;
        double *larger = realloc(k->values, room * sizeof *larger);
        if (larger == NULL) return sinkproof_fail(&r->problem, "no memory for a stage's inputs");
        k->values = larger;
        k->room = room;
    }
    memcpy(k->values + before, values, count * sizeof *values);
    k->count = before + count;
    return true;
}

static bool layer_needs_point(const sinkproof_run *r, size_t layer, int point) {
    return (r->needed_l[layer] >> point & 1) != 0;
}

// Whether a stage of a later sublayer needs the residual stream at this point.
static bool leaves_residual(sinkproof_trace_point point) {
    return point == TRACE_T0 || point == TRACE_M12;
}

static void keep_shown(sinkproof_run *r, sinkproof_trace_point point, size_t layer, size_t count,
                       const double *values) {
    size_t row = r->n > 0 ? count / r->n : 0;
    if (leaves_residual(point)) keep_point_values(r, &r->held_p[POINT_RESIDUAL], 0, count, values);
    if (!layer_needs_point(r, layer, (int)point)) return;
    if (point == TRACE_A4_K)
        keep_point_values(r, &r->keys_l[layer], r->first * row, count, values);
    else if (point == TRACE_A2_V)
        keep_point_values(r, &r->values_l[layer], r->first * row, count, values);
    else
        keep_point_values(r, &r->held_p[point], 0, count, values);
}

static void keep_shown_values(void *context, const char *name, size_t rank, const size_t *shape,
                              const double *values) {
    sinkproof_run *r = context;
    sinkproof_trace_point point;
    size_t layer, count = 1;
    if (r->problem.text[0] != '\0') return;
    for (size_t d = 0; d < rank; d++) count *= shape[d];
    if (sinkproof_trace_name_parse(name, &point, &layer))
        keep_shown(r, point, layer, count, values);
    if (r->onward != NULL) r->onward->see(r->onward->context, name, rank, shape, values);
}

const double *sinkproof_call_input(const sinkproof_call *call, const char *name) {
    point_set one;
    if (call == NULL || name == NULL || !point_set_parse(name, &one, NULL)) return NULL;
    for (int p = 0; p < FACE_MOST_INPUTS; p++) {
        if (one != (point_set)1 << p || (call->seen->from & one) == 0) continue;
        return p == TRACE_A4_K   ? call->seen->keys->values
               : p == TRACE_A2_V ? call->seen->values->values
                                 : call->seen->held_p[p].values;
    }
    return NULL;
}

// ---- a stage of the caller's -----------------------------------------------------------------

// Checks that experts are whole numbers below n_experts, and different for each token.
static bool check_chosen(sinkproof_run *r, const char *name, size_t count, const double *values) {
    size_t k = r->config->n_chosen, experts = r->config->n_experts;
    for (size_t i = 0; i < count; i++) {
        bool good = values[i] >= 0 && values[i] < (double)experts && floor(values[i]) == values[i];
        for (size_t j = i - i % k; good && j < i; j++) good = values[i] != values[j];
        if (!good)
            return sinkproof_fail(
                &r->problem, "%s: element %zu is %g: expected an expert below %zu, once a token",
                name, i, values[i], experts);
    }
    return true;
}

// Checks that the numbers have the format to which the policy rounds the point: a trace holds no
// others.
static bool check_made(sinkproof_run *r, const char *name, sinkproof_trace_point point,
                       size_t count, const double *values) {
    sinkproof_point rounding;
    if (!sinkproof_trace_rounding(point, &rounding)) return check_chosen(r, name, count, values);
    sinkproof_format format = r->policy.at[rounding].format;
    for (size_t i = 0; i < count; i++)
        if (!isnan(values[i]) && sinkproof_round(format, values[i]) != values[i])
            return sinkproof_fail(&r->problem,
                                  "%s: the stage left %a as element %zu, which is no %s number: "
                                  "policy %s rounds to that format here",
                                  name, values[i], i, sinkproof_format_name(format),
                                  r->policy.name);
    return true;
}

static void replace_shown(void *context, const char *name, size_t rank, const size_t *shape,
                          double *values) {
    sinkproof_run *r = context;
    sinkproof_trace_point point;
    size_t layer, count = 1;
    if (r->problem.text[0] != '\0' || !sinkproof_trace_name_parse(name, &point, &layer)) return;
    const replaced_point *own = replaced_point_entry(r, layer, point);
    if (own->stage == NULL) return;
    for (size_t d = 0; d < rank; d++) count *= shape[d];
    sinkproof_seen seen = {r->held_p, &r->keys_l[layer], &r->values_l[layer], own->from};
    sinkproof_call call = {.name = name,
                           .layer = layer,
                           .n = r->n,
                           .first = r->first,
                           .keys = r->first + r->n,
                           .window = r->config->sliding[layer] ? r->config->window : 0,
                           .rank = rank,
                           .shape = shape,
                           .tokens = r->tokens_n,
                           .model = r->view != NULL ? r->view : r->model,
                           .seen = &seen};
    sinkproof_error said = {{0}};
    if (!own->stage(own->context, &call, values, &said)) {
        said.text[sizeof said.text - 1] = '\0';
        sinkproof_fail(&r->problem, "%s: the stage failed: %.900s", name,
                       said.text[0] != '\0' ? said.text : "it does not say why");
        return;
    }
    check_made(r, name, point, count, values);
}

// ---- a run -----------------------------------------------------------------------------------

static bool known_engine(const char *engine, sinkproof_error *error) {
    if (engine != NULL && sinkproof_runner_is_known(engine)) return true;
    if (engine == NULL) engine = "NULL";
    sinkproof_runner_list known = sinkproof_runner_list_names(false, " and ");
    return sinkproof_fail(error, "unknown engine '%.40s': %sknown are %s", engine,
                          sinkproof_guess_in_list(engine, known.text).text, known.text);
}

static bool open_runner(sinkproof_run *r, const sinkproof_run_options *options,
                        sinkproof_error *error) {
    sinkproof_runner_options how = {.engine = r->engine, .threads = options->threads};
    r->chunk = options->chunk;
    if (r->policy.weights != SINKPROOF_REAL) {
        r->view = sinkproof_model_kept(r->model, r->policy.weights);
        if (r->view == NULL) return sinkproof_fail(error, "no memory for a run");
    }
    size_t layers = r->config->n_layers;
    r->replaced_lp = calloc(layers * TRACE_POINTS, sizeof *r->replaced_lp);
    r->needed_l = calloc(layers, sizeof *r->needed_l);
    r->keys_l = calloc(layers, sizeof *r->keys_l);
    r->values_l = calloc(layers, sizeof *r->values_l);
    if (r->replaced_lp == NULL || r->needed_l == NULL || r->keys_l == NULL || r->values_l == NULL)
        return sinkproof_fail(error, "no memory for a run");
    return sinkproof_runner_new(r->model, &r->policy, &how, &r->runner, error);
}

bool sinkproof_run_new(const sinkproof_model *model, const char *engine, const char *policy,
                       const sinkproof_run_options *options, sinkproof_run **run,
                       sinkproof_error *error) {
    sinkproof_run_options how = {.size = sizeof how};
    if (run == NULL) return sinkproof_fail(error, "expected a place for the run, found NULL");
    *run = NULL;
    if (model == NULL) return sinkproof_fail(error, "expected a model, found NULL");
    if (options != NULL && options->size < sizeof how)
        return sinkproof_fail(error, "expected sinkproof_run_options with its size, found %zu",
                              options->size);
    if (options != NULL) how = *options;
    if (how.threads < 0 || how.threads > 4096)
        return sinkproof_fail(error, "expected 0 to 4096 threads, found %d", how.threads);
    if (!known_engine(engine, error)) return false;
    sinkproof_run *r = calloc(1, sizeof *r);
    if (r == NULL) return sinkproof_fail(error, "no memory for a run");
    r->model = model;
    r->config = sinkproof_model_config(model);
    snprintf(r->engine, sizeof r->engine, "%s", engine);
    if (policy == NULL) policy = sinkproof_runner_policy(engine);
    bool good = sinkproof_policy_parse(policy, &r->policy, error) &&
                sinkproof_runner_serves(engine, &r->policy, error) && open_runner(r, &how, error);
    if (good)
        *run = r;
    else
        sinkproof_run_free(r);
    return good;
}

void sinkproof_run_free(sinkproof_run *r) {
    if (r == NULL) return;
    for (size_t l = 0; l < r->config->n_layers; l++) {
        if (r->keys_l != NULL) free(r->keys_l[l].values);
        if (r->values_l != NULL) free(r->values_l[l].values);
    }
    for (size_t p = 0; p < FACE_MOST_INPUTS; p++) free(r->held_p[p].values);
    free(r->keys_l);
    free(r->values_l);
    free(r->needed_l);
    free(r->replaced_lp);
    sinkproof_runner_free(r->runner);
    sinkproof_model_close(r->view);
    free(r);
}

size_t sinkproof_run_length(const sinkproof_run *run) {
    return run != NULL ? sinkproof_runner_length(run->runner) : 0;
}

void sinkproof_run_reset(sinkproof_run *run) {
    if (run != NULL) sinkproof_runner_reset(run->runner);
}

// ---- replacing -------------------------------------------------------------------------------

// Whether the model has the point, and the engine shows it before it uses it.
static bool is_replaceable(const sinkproof_run *r, sinkproof_trace_point point) {
    return sinkproof_trace_point_exists(r->config, point, 0) &&
           sinkproof_runner_replaces(r->engine, &r->policy, point);
}

// The error that lists the points that may be replaced, "T0, A1, ...".
static bool refuse_point(const sinkproof_run *r, const char *point, sinkproof_error *error) {
    char list[256] = "";
    for (int p = 0, used = 0; p < TRACE_POINTS; p++) {
        sinkproof_trace_point q = (sinkproof_trace_point)p;
        if (is_replaceable(r, q))
            used += snprintf(list + used, sizeof list - (size_t)used, "%s%s", used > 0 ? ", " : "",
                             sinkproof_trace_point_name(q));
    }
    return sinkproof_fail(error,
                          "'%.40s' cannot be replaced: engine %s under %s shows before it uses "
                          "them %s",
                          point, r->engine, r->policy.name, list);
}

// Checks that the engine shows the points that a stage wants.
static bool check_shown(const sinkproof_run *r, point_set from, sinkproof_error *error) {
    for (int p = 0; p < TRACE_POINTS; p++) {
        const char *name = sinkproof_trace_point_name((sinkproof_trace_point)p);
        if ((from >> p & 1) != 0 && !sinkproof_runner_shows(r->engine, name, error)) return false;
    }
    return true;
}

static void refresh_needed(sinkproof_run *r) {
    for (size_t l = 0; l < r->config->n_layers; l++) {
        r->needed_l[l] = 0;
        for (int p = 0; p < TRACE_POINTS; p++)
            r->needed_l[l] |= replaced_point_entry(r, l, (sinkproof_trace_point)p)->from;
    }
}

// Parses "A11": every layer; "03.A11": one. T0, F1 and F2 exist once, in layer 0.
static bool parse_target(const sinkproof_run *r, const char *name, sinkproof_trace_point *point,
                         size_t *first, size_t *last) {
    *first = 0;
    *last = r->config->n_layers;
    for (int p = 0; p < TRACE_POINTS; p++) {
        *point = (sinkproof_trace_point)p;
        if (strcmp(name, sinkproof_trace_point_name(*point)) != 0) continue;
        if (!sinkproof_trace_point_is_layered(*point)) *last = 1;
        return true;
    }
    if (!sinkproof_trace_name_parse(name, point, first) ||
        !sinkproof_trace_point_exists(r->config, *point, *first))
        return false;
    *last = *first + 1;
    return true;
}

bool sinkproof_run_replace(sinkproof_run *run, const char *point, const char *from,
                           sinkproof_stage_function *stage, void *context, sinkproof_error *error) {
    sinkproof_trace_point target;
    size_t first, last;
    replaced_point own = {.stage = stage, .context = context};
    if (run == NULL || point == NULL)
        return sinkproof_fail(error, "expected a run and a point, found NULL");
    if (!parse_target(run, point, &target, &first, &last) || !is_replaceable(run, target))
        return refuse_point(run, point, error);
    if (stage != NULL &&
        (!point_set_parse(from, &own.from, error) || !check_shown(run, own.from, error) ||
         !points_left_out(run->config, target, first, own.from, &own.left_out, error)))
        return false;
    for (size_t l = first; l < last; l++) *replaced_point_entry(run, l, target) = own;
    refresh_needed(run);
    sinkproof_run_reset(run); // its earlier tokens may lack the inputs of the stage
    return true;
}

// ---- passes ----------------------------------------------------------------------------------

static bool check_agreement(const sinkproof_run *r, sinkproof_error *error) {
    for (size_t l = 0; l < r->config->n_layers; l++)
        if (!replaced_points_agree(&r->replaced_lp[l * TRACE_POINTS], l, error)) return false;
    return true;
}

static bool run_pass(sinkproof_run *r, size_t n, const int32_t *tokens_n, double *logits_v,
                     const sinkproof_observer *onward, sinkproof_error *error) {
    sinkproof_observer observer = {
        .see = keep_shown_values, .context = r, .replace = replace_shown};
    bool watched = onward != NULL || is_replaced(r);
    r->n = n;
    r->first = sinkproof_runner_length(r->runner);
    r->tokens_n = tokens_n;
    r->onward = onward;
    r->problem.text[0] = '\0';
    bool good = sinkproof_runner_forward(r->runner, n, tokens_n, logits_v,
                                         watched ? &observer : NULL, error);
    if (good && r->problem.text[0] != '\0') good = sinkproof_fail(error, "%s", r->problem.text);
    if (!good) sinkproof_runner_reset(r->runner);
    return good;
}

bool sinkproof_run_forward(sinkproof_run *run, size_t n, const int32_t *tokens_n, double *logits_v,
                           sinkproof_error *error) {
    if (run == NULL || tokens_n == NULL || n == 0)
        return sinkproof_fail(error, "expected a run and one token or more");
    return check_agreement(run, error) && run_pass(run, n, tokens_n, logits_v, NULL, error);
}

// ---- a trace of a run ------------------------------------------------------------------------

// Whether the point is requested: by a word of the list, or, without a list, because the engine
// shows it.
static bool is_listed(const char *points, sinkproof_trace_point point, size_t layer) {
    for (const char *word = points; word != NULL && *word != '\0';) {
        size_t length = strcspn(word, ",");
        if (sinkproof_trace_word_names(word, length, point, layer)) return true;
        word += length + (word[length] == ',');
    }
    return points == NULL;
}

static bool is_left_out(const sinkproof_run *r, sinkproof_trace_point point, size_t layer,
                        const char **by) {
    for (int p = 0; p < TRACE_POINTS; p++) {
        const replaced_point *own = replaced_point_entry(r, layer, (sinkproof_trace_point)p);
        *by = sinkproof_trace_point_name((sinkproof_trace_point)p);
        if (own->stage != NULL && (own->left_out >> point & 1) != 0) return true;
    }
    return false;
}

// The list for the writer: every point with its layer. The caller frees it.
static char *list_points(const sinkproof_run *r, const char *points, sinkproof_error *error) {
    sinkproof_runner_list whole;
    const char *shown = points != NULL ? points : sinkproof_runner_points(r->engine, &whole), *by;
    char *list = calloc(r->config->n_layers * TRACE_POINTS, 16), *end = list;
    if (list == NULL) sinkproof_fail(error, "no memory for a trace");
    for (size_t l = 0; list != NULL && l < r->config->n_layers; l++)
        for (int p = 0; p < TRACE_POINTS; p++) {
            sinkproof_trace_point point = (sinkproof_trace_point)p;
            char name[SINKPROOF_TRACE_NAME];
            if (!sinkproof_trace_point_exists(r->config, point, l) || !is_listed(shown, point, l))
                continue;
            sinkproof_trace_name(point, l, name);
            bool out = is_left_out(r, point, l, &by);
            if (out && points != NULL) {
                sinkproof_fail(error,
                               "%s is left out of the trace: the stage in the place of %s goes "
                               "around it",
                               name, by);
                free(list);
                return NULL;
            }
            if (!out) end += sprintf(end, "%s%s", end > list ? "," : "", name);
        }
    return list;
}

// Writes a name such as "sinkproof ref with A11 replaced".
static void name_engine(const sinkproof_run *r, const char *engine, char *name, size_t size) {
    int used = snprintf(name, size, "%s%s", engine != NULL ? "" : "sinkproof ",
                        engine != NULL ? engine : r->engine);
    for (int p = 0, count = 0; engine == NULL && p < TRACE_POINTS; p++)
        for (size_t l = 0; l < r->config->n_layers; l++) {
            if (replaced_point_entry(r, l, (sinkproof_trace_point)p)->stage == NULL) continue;
            if (used > 0 && (size_t)used < size)
                used += snprintf(name + used, size - (size_t)used, "%s%s",
                                 count++ > 0 ? ", " : " with ",
                                 sinkproof_trace_point_name((sinkproof_trace_point)p));
            break;
        }
    if (engine == NULL && is_replaced(r) && used > 0 && (size_t)used < size)
        snprintf(name + used, size - (size_t)used, " replaced");
}

static bool pass_all(sinkproof_run *r, size_t n, const int32_t *tokens_n,
                     sinkproof_trace_writer *writer, sinkproof_error *error) {
    size_t step = r->chunk > 0 ? r->chunk : n;
    for (size_t done = 0; done < n; done += step)
        if (!run_pass(r, n - done < step ? n - done : step, tokens_n + done, NULL,
                      sinkproof_trace_writer_observer(writer), error))
            return false;
    return true;
}

bool sinkproof_run_trace(sinkproof_run *run, size_t n, const int32_t *tokens_n, const char *points,
                         const char *engine, sinkproof_trace **trace, sinkproof_error *error) {
    char name[64];
    sinkproof_trace_writer *writer = NULL;
    if (trace == NULL) return sinkproof_fail(error, "expected a place for the trace, found NULL");
    *trace = NULL;
    if (run == NULL || tokens_n == NULL || n == 0)
        return sinkproof_fail(error, "expected a run and one token or more");
    if (points != NULL && !sinkproof_runner_shows(run->engine, points, error)) return false;
    if (!check_agreement(run, error)) return false;
    char *list = list_points(run, points, error);
    if (list == NULL) return false;
    name_engine(run, engine, name, sizeof name);
    sinkproof_runner_reset(run->runner);
    bool good = sinkproof_trace_writer_new(NULL, run->model, &run->policy, name,
                                           points != NULL && list[0] == '\0' ? points : list, n,
                                           &writer, error) &&
                pass_all(run, n, tokens_n, writer, error) &&
                sinkproof_trace_writer_take(writer, tokens_n, trace, error);
    sinkproof_trace_writer_free(writer);
    free(list);
    return good;
}
