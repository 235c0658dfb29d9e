// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Judges the outputs of a case, as a trace of one layer. The inputs are in the trace too, so that
// the set of each output is that of the operation on exactly these numbers; the judge's verdicts on
// the inputs are ignored, since no engine computed them.
#include "audit/judge/judge_backward.h"
#include "audit/plugin/drill.h"
#include "base/words.h"
#include "model/bf16.h"
#include "model/held.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const float *held_weight(void *context, size_t l, sinkproof_slot slot) {
    const call_arrays *a = context;
    (void)l;
    return a->weight[slot];
}

// Converts whole numbers to I32; any other number becomes a value that the trace's reader refuses.
static int32_t *convert_to_whole(const float *values, size_t count) {
    int32_t *whole = malloc(count * sizeof *whole);
    for (size_t i = 0; whole != NULL && i < count; i++) {
        bool fits = values[i] >= 0 && values[i] < 1 << 24 && floorf(values[i]) == values[i];
        whole[i] = fits ? (int32_t)values[i] : -1;
    }
    return whole;
}

// "00.A4.q", "00.dA4.q", "00.dsink", "dF1"; of a log-sum-exp of the keys alone "00.dA9.lse-keys".
static void trace_name(array_id id, size_t kind, char name[SINKPROOF_TRACE_NAME]) {
    char own[ARRAY_NAME];
    sinkproof_trace_point point;
    bool layered = array_point(id, &point) ? sinkproof_trace_point_is_layered(point)
                                           : id - ARRAY_WEIGHTS < SINKPROOF_LAYER_SLOTS;
    bool keys = id == ARRAY_GRADIENTS + TRACE_LSE && kind == LSE_OF_KEYS;
    snprintf(name, SINKPROOF_TRACE_NAME, "%s%s", layered ? "00." : "",
             array_name(keys ? ARRAY_GRADIENTS + TRACE_LSE_KEYS : id, own));
}

static bool add_narrow(sinkproof_trace_builder *b, const char *name, sinkproof_dtype dtype,
                       size_t rank, const size_t *shape, const float *values, size_t count,
                       sinkproof_error *error) {
    size_t size = sinkproof_dtype_size(dtype);
    uint8_t *bytes = malloc(count * size);
    for (size_t i = 0; bytes != NULL && i < count; i++)
        sinkproof_element_encode(dtype, values[i], bytes + i * size);
    bool good = bytes != NULL || sinkproof_fail(error, "%s: no memory", name);
    good = good && sinkproof_trace_builder_add(b, name, sinkproof_dtype_name(dtype), rank, shape,
                                               bytes, error);
    free(bytes);
    return good;
}

static bool add_array(sinkproof_trace_builder *b, const call_arrays *a, array_id id,
                      sinkproof_dtype dtype, size_t kind, sinkproof_error *error) {
    char name[SINKPROOF_TRACE_NAME];
    size_t shape[SINKPROOF_RANK], rank = array_shape(&a->config, id, a->n, shape);
    trace_name(id, kind, name);
    if (dtype == SINKPROOF_DTYPE_BF16 || dtype == SINKPROOF_DTYPE_F16)
        return add_narrow(b, name, dtype, rank, shape, a->at[id], array_count(a, id), error);
    if (dtype != SINKPROOF_DTYPE_I32)
        return sinkproof_trace_builder_add(b, name, "F32", rank, shape, a->at[id], error);
    int32_t *whole = convert_to_whole(a->at[id], array_count(a, id));
    bool good = whole != NULL || sinkproof_fail(error, "%s: no memory", name);
    good = good && sinkproof_trace_builder_add(b, name, "I32", rank, shape, whole, error);
    free(whole);
    return good;
}

// Whether the judge is shown an input. What the forward pass of a kernel made is the kernel's own,
// and not the reference's, which it is given.
static bool is_shown(const stage_case *c, array_id id) {
    if (id == ARRAY_GRADIENTS + TRACE_LSE) return c->dlse;
    return !stage_reads_lse(c->stage) || (id != TRACE_A11 && id != TRACE_LSE);
}

// In which the judge is shown an array: whole numbers, float32, or of the inputs of a stage that
// goes back the format in which they were made, so that nothing is open about them.
static sinkproof_dtype shown_dtype(const stage_case *c, const call_arrays *a, array_id id,
                                   bool input) {
    sinkproof_dtype dtype = array_dtype(a->made, id);
    return dtype == SINKPROOF_DTYPE_I32 || (input && stage_goes_back(c->stage))
               ? dtype
               : SINKPROOF_DTYPE_F32;
}

static bool add_arrays(sinkproof_trace_builder *b, const stage_case *c, const call_arrays *a,
                       size_t kind, sinkproof_error *error) {
    const stage_row *s = c->stage;
    bool good = true;
    for (size_t i = 0; good && i < s->n_from; i++)
        if (is_shown(c, s->from[i]))
            good = add_array(b, a, s->from[i], shown_dtype(c, a, s->from[i], true), kind, error);
    for (size_t i = 0; good && i < case_outputs(c); i++)
        good = add_array(b, a, s->to[i], shown_dtype(c, a, s->to[i], false), kind, error);
    return good;
}

bool case_model(const stage_case *c, const call_arrays *a, sinkproof_model **model,
                sinkproof_error *error) {
    char text[CASE_TEXT];
    case_print(c, text);
    return sinkproof_model_held(text, &a->config, held_weight, (void *)a, model, error);
}

sinkproof_trace *case_trace(const sinkproof_model *model, const stage_case *c, const call_arrays *a,
                            size_t kind, sinkproof_error *error) {
    sinkproof_trace_builder *b = NULL;
    sinkproof_trace *trace = NULL;
    int32_t *tokens = calloc(a->n, sizeof *tokens);
    bool good = tokens != NULL ||
                sinkproof_fail(error, "no memory for %s", sinkproof_counted(a->n, "token").text);
    good = good && sinkproof_trace_builder_new(model, "plug-in", NULL, a->n, tokens, &b, error) &&
           (!c->lse || sinkproof_trace_builder_lse(b, lse_word(kind), "heads,tokens", error)) &&
           (!stage_goes_back(c->stage) || sinkproof_trace_builder_loss(b, "F2", error)) &&
           add_arrays(b, c, a, kind, error) && sinkproof_trace_builder_finish(b, &trace, error);
    sinkproof_trace_builder_free(b);
    free(tokens);
    return trace;
}

// ---- words

// The log-sum-exp has one name, whichever of its kinds it is.
static sinkproof_trace_point output_of_report(const sinkproof_point_report *r) {
    return r->point == TRACE_LSE_KEYS ? TRACE_LSE : r->point;
}

// A logarithm of another base, and one that is off by ln 2.
static void say_of_lse(const sinkproof_point_report *r, char *why, size_t size) {
    const double x = r->worst_value, ln_2 = log(2);
    const struct {
        double value;
        const char *words;
    } others[] = {{x * ln_2, "times ln 2"}, {x - ln_2, "less ln 2"}, {x + ln_2, "plus ln 2"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].value >= r->worst_set.lo && others[i].value <= r->worst_set.hi) {
            snprintf(why, size, "; %s it is inside", others[i].words);
            return;
        }
}

// An element outside its set, and how many elements of its tensor are outside.
typedef struct outsider {
    const char *name;
    sinkproof_index_text index;
    double value;
    sinkproof_honest set;
    size_t outside, elements;
} outsider;

static size_t say_outsider(const outsider *o, char *why, size_t size) {
    const sinkproof_honest *set = &o->set;
    int used = snprintf(why, size, "%s[%s] is ", o->name, o->index.text);
    used += isnan(o->value)
                ? snprintf(why + used, size - (size_t)used, "NaN, ")
                : snprintf(why + used, size - (size_t)used, "%a (%.9g), ", o->value, o->value);
    if (set->lo == set->hi)
        used += snprintf(why + used, size - (size_t)used, "expected %a (%.9g)", set->lo, set->lo);
    else
        used += snprintf(why + used, size - (size_t)used, "expected %a to %a (%.9g)", set->lo,
                         set->hi, set->mid);
    used += snprintf(why + used, size - (size_t)used, "; %zu of %s outside", o->outside,
                     sinkproof_counted(o->elements, "element").text);
    return (size_t)used;
}

static void say_outside(const sinkproof_point_report *r, char *why, size_t size) {
    const outsider o = {sinkproof_trace_point_name(output_of_report(r)),
                        sinkproof_trace_index_text(r->rank, r->shape, r->worst_at),
                        r->worst_value,
                        r->worst_set,
                        r->outside,
                        r->elements};
    size_t used = say_outsider(&o, why, size);
    if (output_of_report(r) == TRACE_LSE && used < size) say_of_lse(r, why + used, size - used);
}

static void say_gradient(const sinkproof_gradient_report *r, const char *name, char *why,
                         size_t size) {
    const outsider o = {name,           sinkproof_trace_index_text(r->rank, r->shape, r->worst_at),
                        r->worst_value, r->worst_set,
                        r->outside,     r->elements};
    say_outsider(&o, why, size);
}

static void say_suspicious(const sinkproof_point_report *r, char *why, size_t size) {
    if (r->unlikely > 0)
        snprintf(why, size, "%s: %zu of %s outside what is likely",
                 sinkproof_trace_point_name(output_of_report(r)), r->unlikely,
                 sinkproof_counted(r->elements, "element").text);
    else
        snprintf(why, size, "%s: its errors lean or spread more than chance does",
                 sinkproof_trace_point_name(output_of_report(r)));
}

// ---- the verdict

// Drift and the likely set assume random errors: they are asked only for RANDOM inputs.
static sinkproof_verdict case_point_verdict(const stage_case *c, const sinkproof_point_report *r) {
    if (r->verdict != SINKPROOF_VERDICT_SUSPICIOUS || c->recipe == RECIPE_RANDOM) return r->verdict;
    return 2 * r->undecided > r->elements ? SINKPROOF_VERDICT_UNDECIDED : SINKPROOF_VERDICT_WITHIN;
}

static void weigh_point(const stage_case *c, const sinkproof_point_report *r, bool exactly,
                        case_outcome *out) {
    sinkproof_verdict verdict = case_point_verdict(c, r);
    if (output_of_report(r) == TRACE_LSE && r->outside > 0) out->lse_outside = true;
    if (verdict <= out->verdict) return;
    out->verdict = verdict;
    if (verdict == SINKPROOF_VERDICT_SUSPICIOUS) say_suspicious(r, out->why, sizeof out->why);
    if (verdict != SINKPROOF_VERDICT_BUG) return;
    say_outside(r, out->why, sizeof out->why);
    size_t used = strlen(out->why);
    if (exactly)
        snprintf(out->why + used, sizeof out->why - used,
                 " (small whole numbers: no order of summation rounds here)");
}

// How the outputs of a case are judged.
typedef struct asked {
    const stage_case *c;
    const sinkproof_policy *policy;
    double rate;
    size_t kind;      // of A9.lse
    unsigned outputs; // bits of stage->to
    bool exactly;     // for the words
} asked;

static sinkproof_trace_point asked_point(const asked *q, size_t t) {
    sinkproof_trace_point point = (sinkproof_trace_point)q->c->stage->to[t];
    return point == TRACE_LSE && q->kind == LSE_OF_KEYS ? TRACE_LSE_KEYS : point;
}

static void weigh_gradient(const stage_case *c, const sinkproof_gradient_report *r, array_id id,
                           case_outcome *out) {
    char name[ARRAY_NAME];
    if (c->dlse && r->outside > 0) out->lse_outside = true;
    if (r->verdict <= out->verdict) return;
    out->verdict = r->verdict;
    if (r->verdict == SINKPROOF_VERDICT_BUG)
        say_gradient(r, array_name(id, name), out->why, sizeof out->why);
}

// The same of a stage that goes back.
static bool judge_gradients(const sinkproof_model *model, const sinkproof_trace *trace,
                            const asked *q, case_outcome *out, sinkproof_error *error) {
    sinkproof_gradient_judgement j;
    const stage_row *s = q->c->stage;
    if (!sinkproof_model_fits(model, q->policy->weights, error) ||
        !sinkproof_judge_gradients(model, trace, q->policy, (sinkproof_layer_range){0, 0}, &j,
                                   error))
        return false;
    for (size_t t = 0; t < s->n_to; t++)
        for (size_t i = 0; i < j.n_reports; i++) {
            char name[SINKPROOF_TRACE_NAME];
            trace_name(s->to[t], q->kind, name);
            if (strcmp(j.reports[i].name, name) == 0)
                weigh_gradient(q->c, &j.reports[i], s->to[t], out);
        }
    sinkproof_gradient_judgement_free(&j);
    return true;
}

// Judges the stage's outputs under a policy, and nothing else of the model.
static bool judge_outputs(const sinkproof_model *model, const sinkproof_trace *trace,
                          const asked *q, case_outcome *out, sinkproof_error *error) {
    sinkproof_judgement j;
    sinkproof_stretch stretch;
    if (stage_goes_back(q->c->stage)) return judge_gradients(model, trace, q, out, error);
    const sinkproof_judge_options how = {.rate = q->rate, .stretch = &stretch};
    for (size_t t = 0; t < case_outputs(q->c); t++)
        sinkproof_stretch_to(&stretch, sinkproof_model_config(model), NULL, trace,
                             asked_point(q, t), 0, t == 0);
    if (!sinkproof_model_fits(model, q->policy->weights, error) ||
        !sinkproof_judge(model, trace, q->policy, &how, &j, error))
        return false;
    for (size_t t = 0; t < case_outputs(q->c); t++)
        for (size_t i = 0; i < j.n_reports; i++)
            if (j.reports[i].point == asked_point(q, t) && (q->outputs >> t & 1) != 0)
                weigh_point(q->c, &j.reports[i], q->exactly, out);
    sinkproof_judgement_free(&j);
    return true;
}

// Whether 1 / sqrt(dim) is a power of two, or is not used.
static bool is_exact(const stage_case *c) {
    size_t d = c->dim;
    bool scaled = c->stage->to[0] == TRACE_A6;
    while (d > 3 && d % 4 == 0) d /= 4;
    return c->recipe == RECIPE_EXACT && (!scaled || d == 1);
}

static bool judge_kind(const sinkproof_model *model, const call_arrays *a, asked q,
                       case_outcome *out, sinkproof_error *error) {
    sinkproof_policy real;
    sinkproof_error said = {{0}};
    sinkproof_trace *trace = case_trace(model, q.c, a, q.kind, &said);
    bool good = true;
    *out = (case_outcome){.served = true, .verdict = SINKPROOF_VERDICT_ABSENT};
    if (trace == NULL) {
        out->broken = true;
        out->verdict = SINKPROOF_VERDICT_BUG;
        snprintf(out->why, sizeof out->why, "%.600s", said.text);
    } else {
        good = judge_outputs(model, trace, &q, out, error);
        q.policy = &real, q.outputs = q.c->stage->exact, q.exactly = true;
        if (good && is_exact(q.c))
            good = sinkproof_policy_known("real-f64", &real) &&
                   judge_outputs(model, trace, &q, out, error);
    }
    sinkproof_trace_close(trace);
    return good;
}

bool case_judge(const stage_case *c, const call_arrays *a, const sinkproof_policy *policy,
                double rate, const lse_kinds *lse, case_outcome out[LSE_KINDS],
                sinkproof_error *error) {
    sinkproof_model *model;
    const asked q = {.c = c, .policy = policy, .rate = rate, .outputs = ~0u};
    bool keys = case_has_lse(c) && lse->as[LSE_OF_KEYS], good = true;
    if (!case_model(c, a, &model, error)) return false;
    for (size_t kind = 0; good && kind < LSE_KINDS; kind++) {
        asked this = q;
        this.kind = kind;
        out[kind] = (case_outcome){.served = false};
        if (keys ? lse->as[kind] : kind == LSE_WITH_SINK)
            good = judge_kind(model, a, this, &out[kind], error);
    }
    if (!keys) out[LSE_OF_KEYS] = out[LSE_WITH_SINK];
    sinkproof_model_close(model);
    return good;
}
