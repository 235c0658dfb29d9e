// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Judges the gradients of a trace one by one, each from the trace's own inputs.
#include "audit/judge/judge_backward.h"

#include "audit/judge/judge_backward_internal.h"
#include "audit/trace/trace_points.h"
#include "base/words.h"
#include "proofs/bounds/worst.h"
#include "ref/backward/backward.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- one pass --------------------------------------------------------------------------------

static bool pass_begin(backward_pass *pass, const sinkproof_model *kept,
                       const sinkproof_trace *trace, const sinkproof_policy *policy,
                       const sinkproof_backward_meaning *meaning) {
    sinkproof_point where;
    sinkproof_error unserved;
    *pass = (backward_pass){.model = kept,
                            .config = sinkproof_model_config(kept),
                            .trace = trace,
                            .policy = policy,
                            .meaning = meaning,
                            .n = sinkproof_trace_length(trace)};
    if (!sinkproof_backward_serves(pass->config, &unserved)) {
        backward_lacks(pass, "a statement for this architecture", "");
        return false;
    }
    if (sinkproof_gradient_arithmetic_of(policy, &pass->arithmetic, &where)) return true;
    backward_lacks(pass, "a statement for the policy's format at ", sinkproof_point_name(where));
    return false;
}

// The sets of a gradient, or NULL: `missing` says why, unless memory ran out.
static near_set *gradient_sets(backward_pass *pass, const sinkproof_gradient *g,
                               const char **statement) {
    bool own_share =
        !g->of_weight && g->point != TRACE_F2 && backward_loss_reads(pass, g->point, g->layer);
    *statement = "grad.chain";
    if (own_share) return backward_lacks(pass, "what the loss has there", "");
    if (g->of_weight) return backward_weight_sets(pass, g->slot, g->layer, statement);
    return backward_point_sets(pass, g->point, g->layer, statement);
}

// ---- comparing -------------------------------------------------------------------------------

// The set of a stored gradient: it may be rounded to the policy's narrow format, and is rounded to
// the trace's.
static sinkproof_honest stored_set(const backward_pass *pass, sinkproof_format format, near_set x) {
    sinkproof_honest set = sinkproof_near_set(x);
    sinkproof_format narrow = pass->arithmetic.narrow;
    double largest = sinkproof_format_largest(format);
    if (narrow != SINKPROOF_REAL) {
        set.lo = smaller_double(set.lo, sinkproof_round(narrow, set.lo));
        set.hi = larger_double(set.hi, sinkproof_round(narrow, set.hi));
        largest = smaller_double(largest, sinkproof_format_largest(narrow));
    }
    // A sum that may overflow on its way may be an infinity, or NaN.
    if (set_largest_size(set) > largest) return sinkproof_unknown_set(x.mid);
    set.lo = sinkproof_round(format, set.lo), set.hi = sinkproof_round(format, set.hi);
    set.mid = sinkproof_round(format, set.mid);
    set.likely_lo = set.lo, set.likely_hi = set.hi;
    return set;
}

static void compare_element(sinkproof_gradient_report *r, sinkproof_format format, size_t at,
                            double v, sinkproof_honest set) {
    r->elements++;
    if (isnan(v)) r->nans++;
    if (isinf(v)) r->infinities++;
    if (isnan(v) && sinkproof_is_unknown(&set)) {
        r->open_nans++;
        return;
    }
    bool inside = v >= set.lo && v <= set.hi; // NaN is outside
    if (set.lo != set.hi) r->several++;
    double ulp = sinkproof_ulp(format, set.mid), radius = sinkproof_radius(&set);
    double share = v == set.mid ? 0 : fabs(v - set.mid) / radius;
    double beyond = inside ? 0 : (v > set.hi ? v - set.hi : set.lo - v) / ulp;
    if (isnan(beyond)) beyond = INFINITY;
    bool worse = inside ? r->outside == 0 && share >= r->share_worst
                        : r->outside == 0 || beyond > r->excess_ulp;
    if (!inside) r->outside++;
    if (inside && share > r->share_worst) r->share_worst = share;
    if (worse || r->elements == 1)
        r->worst_at = at, r->worst_value = v, r->worst_set = set,
        r->excess_ulp = inside ? 0 : beyond;
}

// A row whose sets are together as wide as its values tells nothing unless one leaves its set.
static size_t undecided_in_row(size_t count, const sinkproof_honest *set) {
    double width = 0, size = 0;
    size_t unbounded = 0, bounded = 0;
    for (size_t i = 0; i < count; i++) {
        double radius = sinkproof_radius(&set[i]);
        if (radius < INFINITY)
            width += radius * radius, size += set[i].mid * set[i].mid, bounded++;
        else
            unbounded++;
    }
    return unbounded + (width > 0 && !(width < size) ? bounded : 0);
}

// The radius of an element that is not compared.
#define NOT_ASKED (-1.0)

// x: the sets of `count` elements from `begin` on, whole rows.
static bool compare(backward_pass *pass, const sinkproof_tensor *tensor, const near_set *x,
                    size_t begin, size_t count, sinkproof_gradient_report *r) {
    sinkproof_format format = sinkproof_trace_format(tensor->dtype);
    double times = pass->meaning->times;
    size_t row = r->shape[r->rank - 1];
    sinkproof_honest *set_i = backward_allocate(pass, row, sizeof *set_i);
    for (size_t first = 0; set_i != NULL && first < count; first += row) {
        size_t kept = 0;
        for (size_t i = 0; i < row; i++) {
            if (x[first + i].off == NOT_ASKED) continue;
            near_set y = times != 1 ? sinkproof_near_scaled(x[first + i], times) : x[first + i];
            sinkproof_honest *set = &set_i[kept++];
            *set = stored_set(pass, format, y);
            size_t at = begin + first + i;
            compare_element(r, format, at, sinkproof_tensor_value(tensor, at), *set);
        }
        r->undecided += undecided_in_row(kept, set_i);
    }
    free(set_i);
    return !pass->failed;
}

// Of masked weights an engine may show what it made of them, or 0.
static bool masked_is_free(const sinkproof_gradient *g) {
    return !g->of_weight && (g->point == TRACE_A9 || g->point == TRACE_A10);
}

static void free_masked(const backward_pass *pass, const sinkproof_gradient *g, near_set *x) {
    size_t n = pass->n, columns = g->point == TRACE_A9 ? n + 1 : n;
    size_t window = pass->config->sliding[g->layer] ? pass->config->window : 0;
    for (size_t r = 0; r < pass->config->n_heads * n; r++)
        for (size_t j = 0; j < n; j++) {
            size_t i = r % n, begins = sinkproof_trace_sequence_of(pass->trace, i).row;
            bool seen = j <= i && j >= begins && (window == 0 || j + window > i);
            if (!seen) x[r * columns + j].off = NOT_ASKED;
        }
}

static void conclude(sinkproof_gradient_report *r) {
    size_t decided_nans = r->nans - r->open_nans;
    r->verdict = r->outside > 0 || decided_nans > r->outside          ? SINKPROOF_VERDICT_BUG
                 : r->missing[0] != '\0'                              ? SINKPROOF_VERDICT_UNDECIDED
                 : r->open_nans > 0 || 2 * r->undecided > r->elements ? SINKPROOF_VERDICT_UNDECIDED
                 : r->several == 0                                    ? SINKPROOF_VERDICT_EXACT
                                                                      : SINKPROOF_VERDICT_WITHIN;
}

// Elements of a weight whose sets are made together.
enum { TOGETHER = 1 << 22 };

// Of a weight, the rows that its sets are made for: those of its matrix or stack of matrices; of a
// vector that a stack has, its numbers.
static size_t weight_rows(const sinkproof_gradient *g, const sinkproof_gradient_report *r,
                          size_t count, size_t *cols) {
    bool biases = g->of_weight && (g->slot == SINKPROOF_B_UP || g->slot == SINKPROOF_B_DOWN);
    *cols = r->rank > 1 && !biases ? r->shape[r->rank - 1] : 1;
    return count / *cols;
}

// Whether a loss may read the point, and the metadata do not say what it reads: the stream, a
// norm's result, the router, the weights of attention and its output. No known loss reads another.
static bool may_be_read(const sinkproof_trace *trace, const sinkproof_gradient *g) {
    if (g->of_weight || sinkproof_trace_metadata(trace, "loss") != NULL) return false;
    switch (g->point) {
    case TRACE_T0:
    case TRACE_A9:
    case TRACE_A10:
    case TRACE_A11:
    case TRACE_A13:
    case TRACE_M2:
    case TRACE_M4:
    case TRACE_M12:
    case TRACE_F1:
        return true;
    default:
        return false;
    }
}

static bool judge_one(const sinkproof_model *kept, const sinkproof_trace *trace,
                      const sinkproof_policy *policy, const sinkproof_backward_meaning *meaning,
                      const sinkproof_tensor *tensor, sinkproof_gradient_report *r) {
    backward_pass pass;
    size_t count = sinkproof_tensor_elements(tensor), cols,
           rows = weight_rows(&r->of, r, count, &cols);
    size_t each = r->of.of_weight && cols > 1 ? TOGETHER / cols + 1 : rows;
    bool fine = pass_begin(&pass, kept, trace, policy, meaning);
    r->statement = "grad.chain";
    for (size_t first = 0; fine && first < rows; first += each) {
        pass.first_row = first, pass.end_row = rows - first < each ? rows : first + each;
        near_set *x = gradient_sets(&pass, &r->of, &r->statement);
        fine = x != NULL;
        if (fine && masked_is_free(&r->of)) free_masked(&pass, &r->of, x);
        if (fine) fine = compare(&pass, tensor, x, first * cols, (pass.end_row - first) * cols, r);
        free(x);
    }
    if (!fine && !pass.failed) {
        if (pass.missing[0] == '\0') backward_lacks(&pass, "an input", "");
        memcpy(r->missing, pass.missing, sizeof r->missing);
        r->elements = r->undecided = count;
    }
    conclude(r);
    if (r->verdict == SINKPROOF_VERDICT_BUG && may_be_read(trace, &r->of)) {
        r->verdict = SINKPROOF_VERDICT_UNDECIDED;
        snprintf(
            r->missing, sizeof r->missing,
            "metadata that say what the loss reads (%.60s outside, unless it reads this point)",
            sinkproof_counted(r->outside, "element").text);
    }
    return !pass.failed;
}

// ---- all gradients ---------------------------------------------------------------------------

// The place of a gradient in the order of the backward pass.
static size_t place(const sinkproof_config *c, const sinkproof_gradient *g) {
    size_t each = 4 * (TRACE_POINTS + SINKPROOF_SLOTS), last = (c->n_layers + 2) * each;
    size_t point = (size_t)g->point;
    if (g->of_weight && g->slot == SINKPROOF_SINKS) point = TRACE_A6;
    bool late = g->of_weight && g->slot != SINKPROOF_SINKS;
    size_t within = late ? 4 * TRACE_POINTS + (size_t)g->slot
                         : 2 * (TRACE_POINTS - point) + (size_t)g->of_weight;
    bool layered =
        g->of_weight ? g->slot < SINKPROOF_LAYER_SLOTS : sinkproof_trace_point_is_layered(g->point);
    if (layered) return (c->n_layers - g->layer) * each + within;
    bool first = g->of_weight ? g->slot == SINKPROOF_EMBEDDING : g->point == TRACE_T0;
    return first ? last + within : within;
}

static bool in_layers(const sinkproof_config *c, sinkproof_layer_range layers,
                      const sinkproof_gradient *g) {
    bool layered =
        g->of_weight ? g->slot < SINKPROOF_LAYER_SLOTS : sinkproof_trace_point_is_layered(g->point);
    bool first = g->of_weight ? g->slot == SINKPROOF_EMBEDDING : g->point == TRACE_T0;
    size_t layer = layered ? g->layer : first ? 0 : c->n_layers - 1;
    return layers.end == 0 || (layer >= layers.first && layer < layers.end);
}

static void insert(const sinkproof_config *c, sinkproof_gradient_judgement *j,
                   const sinkproof_gradient_report *r) {
    size_t at = j->n_reports++;
    for (; at > 0 && place(c, &j->reports[at - 1].of) > place(c, &r->of); at--)
        j->reports[at] = j->reports[at - 1];
    j->reports[at] = *r;
}

static bool collect(const sinkproof_trace *trace, const sinkproof_config *config,
                    sinkproof_layer_range layers, sinkproof_gradient_judgement *j) {
    const sinkproof_safetensors *file = sinkproof_trace_file(trace);
    size_t count = sinkproof_safetensors_count(file);
    j->reports = calloc(sinkproof_trace_gradients(trace) + 1, sizeof *j->reports);
    for (size_t i = 0; j->reports != NULL && i < count; i++) {
        const sinkproof_tensor *tensor = sinkproof_safetensors_at(file, i);
        sinkproof_gradient_report r = {.rank = tensor->rank};
        sinkproof_trace_point point;
        size_t layer;
        if (sinkproof_trace_name_parse(tensor->name, &point, &layer)) continue;
        if (!sinkproof_gradient_parse(tensor->name, &r.of) || !in_layers(config, layers, &r.of))
            continue;
        memcpy(r.shape, tensor->shape, sizeof r.shape);
        snprintf(r.name, sizeof r.name, "%s", tensor->name);
        insert(config, j, &r);
    }
    return j->reports != NULL;
}

static void conclude_all(sinkproof_gradient_judgement *j) {
    bool open = false;
    j->verdict = SINKPROOF_VERDICT_ABSENT;
    for (size_t i = 0; i < j->n_reports; i++) {
        const sinkproof_gradient_report *r = &j->reports[i];
        if (r->verdict == SINKPROOF_VERDICT_UNDECIDED)
            j->undecided++;
        else if (r->verdict > j->verdict)
            j->verdict = r->verdict;
        open = open || r->open_nans > 0;
        if (r->verdict == SINKPROOF_VERDICT_BUG && j->first == NULL) j->first = r;
    }
    open = open || (j->n_reports > 0 && j->undecided == j->n_reports);
    if (open && j->verdict < SINKPROOF_VERDICT_UNDECIDED) j->verdict = SINKPROOF_VERDICT_UNDECIDED;
}

// What the policy leaves open going back, in words.
static void say_freedoms(const sinkproof_trace *trace, const sinkproof_policy *policy,
                         sinkproof_gradient_judgement *j) {
    sinkproof_gradient_arithmetic a;
    sinkproof_point where;
    char narrow[192] = "", loss[128];
    const char *said = sinkproof_trace_metadata(trace, "loss");
    if (!sinkproof_gradient_arithmetic_of(policy, &a, &where)) {
        snprintf(j->freedoms, sizeof j->freedoms,
                 "Gradients under %.100s: its format at %s is none that they are stated for.",
                 policy->name, sinkproof_point_name(where));
        return;
    }
    if (a.narrow != SINKPROOF_REAL)
        snprintf(
            narrow, sizeof narrow,
            ";\nwhat a product reads, what is stored, and sums over what an index gathered, may "
            "be rounded to %s",
            sinkproof_format_name(a.narrow));
    snprintf(loss, sizeof loss, "%.100s", said != NULL ? said : "");
    sinkproof_make_printable(loss);
    bool entropy = said != NULL && strcmp(said, "cross-entropy") == 0;
    snprintf(j->freedoms, sizeof j->freedoms,
             "Gradients under %.100s: sums in any order, D a sum over keys or <dO, O>,\n"
             "the weights of attention as they were stored%s%s.\n%s%s%s",
             policy->name, a.weights_kept ? "" : " or recomputed from the log-sum-exp", narrow,
             entropy ? "The loss is the mean cross-entropy of the next tokens."
             : said == NULL
                 ? "The metadata do not say what the loss reads: taken to be the logits, "
                   "and what has a\ngradient in the trace. What another loss may read is undecided "
                   "where it is outside."
                 : "The loss reads ",
             entropy ? "" : loss, said == NULL || entropy ? "" : ".");
}

bool sinkproof_judge_gradients(const sinkproof_model *model, const sinkproof_trace *trace,
                               const sinkproof_policy *policy, sinkproof_layer_range layers,
                               sinkproof_gradient_judgement *j, sinkproof_error *error) {
    *j = (sinkproof_gradient_judgement){.verdict = SINKPROOF_VERDICT_ABSENT};
    if (sinkproof_trace_gradients(trace) == 0) return true;
    sinkproof_model *kept = sinkproof_model_kept(model, policy->weights);
    bool fine = kept != NULL && collect(trace, sinkproof_model_config(model), layers, j);
    for (size_t i = 0; fine && i < j->n_reports; i++) {
        const sinkproof_tensor *tensor =
            sinkproof_safetensors_find(sinkproof_trace_file(trace), j->reports[i].name);
        fine = judge_one(kept, trace, policy, &backward_as_defined, tensor, &j->reports[i]);
    }
    if (kept != NULL) sinkproof_model_close(kept);
    if (fine) {
        conclude_all(j);
        say_freedoms(trace, policy, j);
        return true;
    }
    sinkproof_gradient_judgement_free(j);
    return sinkproof_fail(error, "no memory to judge %s",
                          sinkproof_counted(sinkproof_trace_gradients(trace), "gradient").text);
}

bool sinkproof_gradient_explained(const sinkproof_model *model, const sinkproof_trace *trace,
                                  const sinkproof_policy *policy,
                                  const sinkproof_backward_meaning *meaning,
                                  const sinkproof_gradient_report *report) {
    sinkproof_gradient_report r = {.of = report->of, .rank = report->rank};
    const sinkproof_tensor *tensor =
        sinkproof_safetensors_find(sinkproof_trace_file(trace), report->name);
    sinkproof_model *kept = sinkproof_model_kept(model, policy->weights);
    memcpy(r.shape, report->shape, sizeof r.shape);
    bool fine = kept != NULL && tensor != NULL &&
                judge_one(kept, trace, policy, meaning, tensor, &r) &&
                (r.verdict == SINKPROOF_VERDICT_EXACT || r.verdict == SINKPROOF_VERDICT_WITHIN);
    if (kept != NULL) sinkproof_model_close(kept);
    return fine;
}

static bool fit_factor(const sinkproof_tensor *tensor, const near_set *x, double *factor) {
    double products = 0, squares = 0;
    size_t count = sinkproof_tensor_elements(tensor), used = 0;
    for (size_t i = 0; i < count; i++) {
        double v = sinkproof_tensor_value(tensor, i), size = fabs(x[i].mid);
        if (!(size > 4 * x[i].off) || x[i].off == NOT_ASKED || !isfinite(v)) continue;
        products += v * x[i].mid, squares += x[i].mid * x[i].mid, used++;
    }
    *factor = products / squares;
    return used >= 4 && isfinite(*factor) && *factor != 0;
}

bool sinkproof_gradient_factor(const sinkproof_model *model, const sinkproof_trace *trace,
                               const sinkproof_policy *policy,
                               const sinkproof_gradient_report *report, double *factor) {
    const sinkproof_tensor *tensor =
        sinkproof_safetensors_find(sinkproof_trace_file(trace), report->name);
    sinkproof_model *kept = sinkproof_model_kept(model, policy->weights);
    const char *statement;
    backward_pass pass;
    near_set *x = NULL;
    size_t count = tensor != NULL ? sinkproof_tensor_elements(tensor) : 0, cols;
    bool few = count > 0 && count <= TOGETHER;
    if (kept != NULL && few && pass_begin(&pass, kept, trace, policy, &backward_as_defined)) {
        pass.end_row = weight_rows(&report->of, report, count, &cols);
        x = gradient_sets(&pass, &report->of, &statement);
    }
    if (x != NULL && masked_is_free(&report->of)) free_masked(&pass, &report->of, x);
    bool fine = x != NULL && fit_factor(tensor, x, factor);
    free(x);
    if (kept != NULL) sinkproof_model_close(kept);
    return fine;
}

void sinkproof_gradient_judgement_free(sinkproof_gradient_judgement *judgement) {
    free(judgement->reports);
    *judgement = (sinkproof_gradient_judgement){.verdict = SINKPROOF_VERDICT_ABSENT};
}
