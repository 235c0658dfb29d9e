// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Runs a study: one run over the reals whose values are kept, then one run for each policy and one
// for each of its roundings alone, in parallel.
#include "audit/studies/precision/precision.h"

#include "audit/trace/trace_points.h"
#include "base/splitmix.h"
#include "base/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- the real run ----------------------------------------------------------------------------

// Every point of the real run: values[layer][point]; layer n_layers holds the points outside the
// layers.
typedef struct kept {
    const sinkproof_config *config;
    size_t n;
    double **values;
    size_t *counts;
    bool short_of_memory;
} kept;

static size_t kept_index(const kept *k, sinkproof_trace_point point, size_t layer) {
    return (sinkproof_trace_point_is_layered(point) ? layer : k->config->n_layers) * TRACE_POINTS +
           (size_t)point;
}

static size_t shape_elements(size_t rank, const size_t *shape) {
    size_t count = 1;
    for (size_t d = 0; d < rank; d++) count *= shape[d];
    return count;
}

static void keep_point(void *context, const char *name, size_t rank, const size_t *shape,
                       const double *values) {
    kept *k = context;
    sinkproof_trace_point point;
    size_t layer, count = shape_elements(rank, shape);
    if (!sinkproof_trace_name_parse(name, &point, &layer)) return;
    size_t slot = kept_index(k, point, layer);
    k->values[slot] = malloc(count * sizeof(double));
    k->short_of_memory = k->short_of_memory || k->values[slot] == NULL;
    if (k->values[slot] == NULL) return;
    memcpy(k->values[slot], values, count * sizeof(double));
    k->counts[slot] = count;
}

static void forget_points(kept *k) {
    size_t slots = (k->config->n_layers + 1) * TRACE_POINTS;
    for (size_t s = 0; k->values != NULL && s < slots; s++) free(k->values[s]);
    free(k->values);
    free(k->counts);
}

// ---- a run compared with it ---------------------------------------------------------------------

typedef struct beside {
    const kept *real;
    const sinkproof_policy *policy;
    // [slots]; truth and error are 0 for points that were not seen
    precision_point *points;
    size_t flips;
    double *final_nc;  // F1 minus the real F1
    double perturbed;  // size of the perturbation of T0, or 0
    double *router_ne; // M2 of the current layer
    bool replayed;     // M3 holds another selection than the run's own
} beside;

static bool set_holds_expert(size_t k, const double *set, double expert) {
    for (size_t i = 0; i < k; i++)
        if (set[i] == expert) return true;
    return false;
}

// Replaces the run's experts by the real model's.
static void replay_experts(beside *b, size_t layer, double *chosen_nk) {
    size_t k = b->real->config->n_chosen;
    const double *real_nk = b->real->values[kept_index(b->real, TRACE_M3, layer)];
    b->replayed = memcmp(chosen_nk, real_nk, b->real->n * k * sizeof(double)) != 0;
    for (size_t i = 0; i < b->real->n; i++) {
        bool same = true;
        for (size_t j = 0; j < k; j++)
            same = same && set_holds_expert(k, real_nk + i * k, chosen_nk[i * k + j]);
        b->flips += !same;
    }
    memcpy(chosen_nk, real_nk, b->real->n * k * sizeof(double));
}

// The weights of the replayed experts: the softmax over the run's own logits of these experts.
static void reweigh_experts(const beside *b, size_t layer, double *weights_nk) {
    size_t k = b->real->config->n_chosen, experts = b->real->config->n_experts;
    const double *chosen_nk = b->real->values[kept_index(b->real, TRACE_M3, layer)];
    for (size_t i = 0; i < b->real->n; i++) {
        const double *logits_e = b->router_ne + i * experts;
        double top = -INFINITY, sum = 0;
        for (size_t j = 0; j < k; j++) {
            double logit = logits_e[(size_t)chosen_nk[i * k + j]];
            top = logit > top ? logit : top;
        }
        for (size_t j = 0; j < k; j++) sum += exp(logits_e[(size_t)chosen_nk[i * k + j]] - top);
        for (size_t j = 0; j < k; j++)
            weights_nk[i * k + j] =
                round_at(b->policy, AT_M4, exp(logits_e[(size_t)chosen_nk[i * k + j]] - top) / sum);
    }
}

static void perturb_values(const beside *b, size_t count, double *values) {
    uint64_t state = 1;
    for (size_t i = 0; i < count; i++)
        values[i] *= 1 + b->perturbed * ((double)(sinkproof_draw(&state) >> 11) * 0x1p-52 - 1);
}

static void replace_point(void *context, const char *name, size_t rank, const size_t *shape,
                          double *values) {
    beside *b = context;
    sinkproof_trace_point point;
    size_t layer;
    if (!sinkproof_trace_name_parse(name, &point, &layer)) return;
    if (point == TRACE_M3) replay_experts(b, layer, values);
    if (point == TRACE_M4 && b->replayed) reweigh_experts(b, layer, values);
    if (point == TRACE_T0 && b->perturbed > 0)
        perturb_values(b, shape_elements(rank, shape), values);
}

static void compare_point(void *context, const char *name, size_t rank, const size_t *shape,
                          const double *values) {
    beside *b = context;
    sinkproof_trace_point point;
    size_t layer, count = shape_elements(rank, shape);
    if (!sinkproof_trace_name_parse(name, &point, &layer)) return;
    size_t slot = kept_index(b->real, point, layer);
    const double *real = b->real->values[slot];
    precision_point *p = &b->points[slot];
    *p = (precision_point){.point = point, .layer = layer};
    if (point == TRACE_M2) memcpy(b->router_ne, values, count * sizeof(double));
    for (size_t i = 0; i < count; i++) {
        double off = values[i] - real[i], size = fabs(real[i]);
        bool masked = values[i] == real[i]; // both may be infinite
        p->error += masked ? 0 : off * off;
        p->truth += isfinite(real[i]) ? real[i] * real[i] : 0;
        if (isfinite(size) && size > p->largest) p->largest = size;
        if (point == TRACE_F1) b->final_nc[i] = off;
    }
}

static bool beside_new(beside *b, const kept *real, const sinkproof_policy *policy) {
    const sinkproof_config *c = real->config;
    *b = (beside){.real = real, .policy = policy};
    b->points = calloc((c->n_layers + 1) * TRACE_POINTS, sizeof *b->points);
    b->final_nc = calloc(real->n * c->hidden, sizeof(double));
    b->router_ne = malloc(real->n * c->n_experts * sizeof(double));
    return b->points != NULL && b->final_nc != NULL && b->router_ne != NULL;
}

static void beside_free(beside *b) {
    free(b->points);
    free(b->final_nc);
    free(b->router_ne);
}

// Runs the model under a policy, with its weights as the policy stores them.
static bool run_model_under_policy(const sinkproof_model *model, const sinkproof_policy *policy,
                                   size_t n, const int32_t *tokens_n,
                                   const sinkproof_observer *observer, sinkproof_error *error) {
    sinkproof_model *weights = sinkproof_model_kept(model, policy->weights);
    sinkproof_session *session = weights != NULL ? sinkproof_session_new(weights, policy) : NULL;
    bool good = session != NULL ? sinkproof_forward(session, n, tokens_n, NULL, observer, error)
                                : sinkproof_fail(error, "no memory to run %s",
                                                 sinkproof_counted(n, "token").text);
    sinkproof_session_free(session);
    sinkproof_model_close(weights);
    return good;
}

static double point_relative_error(const beside *b, sinkproof_trace_point point) {
    return precision_error(&b->points[kept_index(b->real, point, 0)]);
}

// ---- all runs --------------------------------------------------------------------------------

// One run of the study: a policy, one of its roundings alone, or the perturbed run.
typedef struct job {
    sinkproof_policy policy;
    size_t of;  // the index of the policy; SIZE_MAX: the perturbed run
    bool whole; // the whole policy, not a part
    precision_part part;
    beside b;
    bool good;
    sinkproof_error error;
} job;

// Makes the policy with one rounding alone; point AT_POINTS stands for what the policy
// changes apart from its rounding points. Roundings after F1 do not affect its error.
static bool policy_with_one_rounding(const sinkproof_policy *whole, int point,
                                     sinkproof_policy *out) {
    sinkproof_policy real;
    sinkproof_policy_known("real-f64", &real);
    if (point < AT_POINTS) {
        if (whole->at[point].format == SINKPROOF_REAL || point > AT_F1) return false;
        *out = real;
        out->at[point] = whole->at[point];
        return true;
    }
    *out = *whole;
    memcpy(out->at, real.at, sizeof out->at);
    return whole->weights != real.weights || whole->yarn_truncate != real.yarn_truncate;
}

static void add_jobs(job *jobs, size_t *n_jobs, const sinkproof_config *config,
                     const sinkproof_policy *policy, size_t of, bool budget) {
    jobs[(*n_jobs)++] = (job){.policy = *policy, .of = of, .whole = true};
    for (int p = 0; budget && p <= AT_POINTS; p++) {
        job *j = &jobs[*n_jobs];
        *j = (job){.of = of};
        bool point = p < AT_POINTS;
        if (point && !sinkproof_point_exists(config, (sinkproof_point)p)) continue;
        if (!policy_with_one_rounding(policy, p, &j->policy)) continue;
        snprintf(j->part.name, sizeof j->part.name, "%s",
                 point ? sinkproof_point_name((sinkproof_point)p) : "weights");
        j->part.what = point ? sinkproof_point_what((sinkproof_point)p)
                             : "weights as they are kept, a truncated range of YaRN";
        (*n_jobs)++;
    }
}

static void run_policy_job(const sinkproof_model *model, const kept *real, const int32_t *tokens_n,
                           double perturbed, job *j) {
    j->good = beside_new(&j->b, real, &j->policy);
    if (!j->good) {
        sinkproof_fail(&j->error, "no memory to compare %s",
                       sinkproof_counted(real->n, "token").text);
        return;
    }
    j->b.perturbed = j->of == SIZE_MAX ? perturbed : 0;
    sinkproof_observer observer = {
        .see = compare_point, .replace = replace_point, .context = &j->b, .no_logits = !j->whole};
    j->good = run_model_under_policy(model, &j->policy, real->n, tokens_n, &observer, &j->error);
}

// ---- the results -------------------------------------------------------------------------------

static int compare_errors(const void *a, const void *b) {
    const precision_part *x = a, *y = b;
    return x->error > y->error ? -1 : x->error < y->error;
}

// Collects the parts of policy p, and compares the sum of their error vectors with the whole error.
static bool sum_part_errors(precision_audit *out, const job *whole, size_t n_jobs, const job *jobs,
                            size_t of, size_t count) {
    double *sum_nc = calloc(count, sizeof(double)), squares = 0, linear = 0, square = 0, both = 0;
    out->parts = calloc(n_jobs, sizeof *out->parts);
    if (sum_nc == NULL || out->parts == NULL) {
        free(sum_nc);
        return false;
    }
    double truth = whole->b.points[kept_index(whole->b.real, TRACE_F1, 0)].truth;
    for (size_t k = 0; k < n_jobs; k++) {
        if (jobs[k].of != of || jobs[k].whole) continue;
        precision_part *part = &out->parts[out->n_parts++];
        double own = 0;
        for (size_t i = 0; i < count; i++) own += jobs[k].b.final_nc[i] * jobs[k].b.final_nc[i];
        *part = jobs[k].part;
        part->error = isfinite(own) ? sqrt(own / truth) : INFINITY;
        part->share = isfinite(own) ? own : NAN;
        if (!isfinite(own)) continue;
        for (size_t i = 0; i < count; i++) sum_nc[i] += jobs[k].b.final_nc[i];
        squares += own, out->n_finite++;
    }
    for (size_t i = 0; i < out->n_parts; i++) out->parts[i].share /= squares > 0 ? squares : 1;
    for (size_t i = 0; i < count; i++) {
        double e = whole->b.final_nc[i];
        linear += sum_nc[i] * sum_nc[i], square += e * e, both += e * sum_nc[i];
    }
    out->quadrature = sqrt(squares / truth), out->linear = sqrt(linear / truth);
    out->correlation = both / sqrt(linear * square);
    qsort(out->parts, out->n_parts, sizeof *out->parts, compare_errors);
    free(sum_nc);
    return true;
}

static double format_bits(sinkproof_format format) {
    return format == SINKPROOF_REAL || format == SINKPROOF_F64 ? 64
           : format == SINKPROOF_F32                           ? 32
                                                               : 16;
}

// The size of a token's traced points as stored; scores and weights are left out, since a kernel
// that streams over the keys stores none of them.
static double token_kib(const sinkproof_policy *policy, const beside *b) {
    double bits = 0;
    size_t slots = (b->real->config->n_layers + 1) * TRACE_POINTS;
    for (size_t s = 0; s < slots; s++) {
        sinkproof_trace_point point = (sinkproof_trace_point)(s % TRACE_POINTS);
        sinkproof_point at;
        bool keys = point == TRACE_A6 || point == TRACE_A9 || point == TRACE_A10;
        if (keys || b->real->counts[s] == 0 || !sinkproof_trace_rounding(point, &at)) continue;
        bits += format_bits(policy->at[at].format) * (double)b->real->counts[s];
    }
    return bits / 8 / 1024 / (double)b->real->n;
}

// Points are in the order of the layers; those outside the layers come last.
static const precision_point *first_overflow(const precision_audit *of) {
    const precision_point *first = NULL;
    for (size_t i = 0; i < of->n_points; i++) {
        const precision_point *p = &of->points[i];
        if (!isinf(precision_error(p))) continue;
        if (first == NULL || p->point == TRACE_T0) first = p;
    }
    return first;
}

static bool collect_policy(precision_audit *out, const sinkproof_policy *policy, size_t of,
                           const job *whole, size_t n_jobs, const job *jobs, bool budget) {
    const kept *real = whole->b.real;
    size_t slots = (real->config->n_layers + 1) * TRACE_POINTS;
    *out = (precision_audit){.policy = *policy};
    out->points = malloc(slots * sizeof *out->points);
    if (out->points == NULL) return false;
    for (size_t s = 0; s < slots; s++)
        if (whole->b.points[s].truth > 0 || !(whole->b.points[s].error <= 0))
            out->points[out->n_points++] = whole->b.points[s];
    out->overflow = first_overflow(out);
    out->choices = real->n * real->config->n_layers, out->flips = whole->b.flips;
    out->final = point_relative_error(&whole->b, TRACE_F1);
    out->logits = point_relative_error(&whole->b, TRACE_F2);
    out->kib = token_kib(policy, &whole->b);
    return !budget || sum_part_errors(out, whole, n_jobs, jobs, of, real->n * real->config->hidden);
}

// ---- the real model alone --------------------------------------------------------------------

static int compare_ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static bool collect_masses(precision_layer *out, const kept *real, size_t layer) {
    size_t rows = real->config->n_heads * real->n, columns = real->n + 1;
    const double *weights = real->values[kept_index(real, TRACE_A9, layer)];
    double *mass = malloc(rows * sizeof *mass);
    if (mass == NULL) return false;
    for (size_t r = 0; r < rows; r++) {
        mass[r] = 0; // of the keys' weights: accurate even where the sink takes nearly all
        for (size_t j = 0; j + 1 < columns; j++) mass[r] += weights[r * columns + j];
    }
    qsort(mass, rows, sizeof *mass, compare_ascending);
    out->mass_least = mass[0], out->mass_median = mass[rows / 2];
    free(mass);
    return true;
}

static void insert_row(sinkproof_precision_study *study, precision_row row) {
    for (size_t i = 0; i < PRECISION_ROWS; i++)
        if (row.margin < study->thinnest[i].margin) {
            precision_row next = study->thinnest[i];
            study->thinnest[i] = row, row = next;
        }
}

static void collect_margins(sinkproof_precision_study *study, const kept *real, size_t layer) {
    size_t experts = real->config->n_experts, k = real->config->n_chosen;
    const double *logits_ne = real->values[kept_index(real, TRACE_M2, layer)];
    const double *chosen_nk = real->values[kept_index(real, TRACE_M3, layer)];
    for (size_t i = 0; i < real->n; i++) {
        double least = INFINITY, best = -INFINITY;
        for (size_t e = 0; e < experts; e++) {
            double logit = logits_ne[i * experts + e];
            if (set_holds_expert(k, chosen_nk + i * k, (double)e))
                least = logit < least ? logit : least;
            else
                best = logit > best ? logit : best;
        }
        insert_row(study, (precision_row){layer, i, least - best});
    }
}

static bool collect_model(sinkproof_precision_study *study, const kept *real,
                          const job *perturbed) {
    const precision_point *points = perturbed->b.points;
    const precision_point *start = &points[kept_index(real, TRACE_T0, 0)];
    for (size_t i = 0; i < PRECISION_ROWS; i++) study->thinnest[i].margin = INFINITY;
    for (size_t l = 0; l < study->n_layers; l++) {
        const precision_point *end = &points[kept_index(real, TRACE_M12, l)];
        study->layers[l].growth = sqrt(end->error / end->truth) / sqrt(start->error / start->truth);
        collect_margins(study, real, l);
        if (!collect_masses(&study->layers[l], real, l)) return false;
    }
    return true;
}

// ---- the study -------------------------------------------------------------------------------

static bool keep_real(const sinkproof_model *model, kept *real, const int32_t *tokens_n,
                      sinkproof_error *error) {
    size_t slots = (real->config->n_layers + 1) * TRACE_POINTS;
    sinkproof_policy policy;
    sinkproof_policy_known("real-f64", &policy);
    real->values = calloc(slots, sizeof *real->values);
    real->counts = calloc(slots, sizeof *real->counts);
    sinkproof_observer observer = {.see = keep_point, .context = real};
    if (real->values == NULL || real->counts == NULL)
        return sinkproof_fail(error, "no memory to keep a run");
    if (!run_model_under_policy(model, &policy, real->n, tokens_n, &observer, error)) return false;
    return !real->short_of_memory || sinkproof_fail(error, "no memory to keep a run of %s",
                                                    sinkproof_counted(real->n, "token").text);
}

static bool run_policy_jobs(const sinkproof_model *model, const kept *real, const int32_t *tokens_n,
                            double perturbed, size_t n_jobs, job *jobs,
                            const sinkproof_precision_options *options, sinkproof_error *error) {
    size_t done = 0;
#pragma omp parallel for schedule(dynamic, 1)
    for (size_t k = 0; k < n_jobs; k++) {
        run_policy_job(model, real, tokens_n, perturbed, &jobs[k]);
#pragma omp critical(precision_progress)
        if (options->progress != NULL)
            options->progress(options->context, (double)++done / (double)n_jobs);
    }
    for (size_t k = 0; k < n_jobs; k++)
        if (!jobs[k].good) {
            *error = jobs[k].error;
            return false;
        }
    return true;
}

static bool collect_all(sinkproof_precision_study *study, const kept *real, size_t n_jobs,
                        const job *jobs, const sinkproof_policy *policies, bool budget,
                        sinkproof_error *error) {
    bool good = true;
    for (size_t k = 0; k < n_jobs && good; k++) {
        if (jobs[k].of == SIZE_MAX)
            good = collect_model(study, real, &jobs[k]);
        else if (jobs[k].whole)
            good = collect_policy(&study->policies[jobs[k].of], &policies[jobs[k].of], jobs[k].of,
                                  &jobs[k], n_jobs, jobs, budget);
    }
    return good || sinkproof_fail(error, "no memory for the results of %s",
                                  sinkproof_counted(n_jobs, "run").text);
}

bool sinkproof_precision_run(const sinkproof_model *model, size_t n, const int32_t *tokens_n,
                             size_t n_policies, const sinkproof_policy *policies,
                             const sinkproof_precision_options *options,
                             sinkproof_precision_study *study, sinkproof_error *error) {
    const sinkproof_config *config = sinkproof_model_config(model);
    *study = (sinkproof_precision_study){.model = model,
                                         .n = n,
                                         .n_layers = config->n_layers,
                                         .n_policies = n_policies,
                                         .perturbed = 0x1p-30};
    if (config->architecture != SINKPROOF_GPT_OSS) // its tables speak of sinks and experts
        return sinkproof_fail(
            error, "%.400s: a study of precision needs a model of GPT-OSS, found %s",
            sinkproof_model_spec(model), sinkproof_architecture_name(config->architecture));
    kept real = {.config = config, .n = n};
    job *jobs = calloc(1 + n_policies * (AT_POINTS + 2), sizeof *jobs);
    size_t n_jobs = 0;
    study->layers = calloc(config->n_layers, sizeof *study->layers);
    study->policies = calloc(n_policies, sizeof *study->policies);
    bool good = jobs != NULL && study->layers != NULL && study->policies != NULL;
    if (!good) sinkproof_fail(error, "no memory for a study");
    for (size_t p = 0; p < n_policies && good; p++) {
        good = sinkproof_model_fits(model, policies[p].weights, error);
        if (good) add_jobs(jobs, &n_jobs, config, &policies[p], p, options->budget);
    }
    if (good) {
        sinkproof_policy_known("real-f64", &jobs[n_jobs].policy);
        jobs[n_jobs++].of = SIZE_MAX;
    }
    good =
        good && keep_real(model, &real, tokens_n, error) &&
        run_policy_jobs(model, &real, tokens_n, study->perturbed, n_jobs, jobs, options, error) &&
        collect_all(study, &real, n_jobs, jobs, policies, options->budget, error);
    for (size_t k = 0; k < n_jobs; k++) beside_free(&jobs[k].b);
    free(jobs);
    forget_points(&real);
    if (!good) sinkproof_precision_free(study);
    return good;
}

void sinkproof_precision_free(sinkproof_precision_study *study) {
    for (size_t p = 0; study->policies != NULL && p < study->n_policies; p++) {
        free(study->policies[p].points);
        free(study->policies[p].parts);
    }
    free(study->policies);
    free(study->layers);
    *study = (sinkproof_precision_study){.n = 0};
}
