// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Searches for one change of the policy that explains a failure: known mistakes and known freedoms
// are tried in turn.
#include "audit/judge/judge_cause.h"

#include "audit/judge/judge_candidates.h"
#include "audit/judge/judge_evidence.h"
#include "audit/trace/trace_points.h"
#include "base/words.h"
#include "ref/walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The known mistakes and freedoms that a single override states, each with the point that it
// touches.
static const struct single_override {
    const char *text, *meaning;
    sinkproof_trace_point points[3];
    size_t n_points;
} overrides[] = {
    {"M8.alpha=bf16", "the constant 1.702 is rounded to bfloat16 (1.703125)", {TRACE_M8}, 1},
    {"yarn=truncate",
     "the ends of the YaRN ramp are rounded to whole dimensions",
     {TRACE_A4_Q, TRACE_A4_K},
     2},
    {"A9.max=bf16", "the row's maximum is subtracted in bfloat16", {TRACE_A9, TRACE_A10}, 2},
    {"A9.max=real",
     "the row's maximum is subtracted without a rounding to bfloat16",
     {TRACE_A9, TRACE_A10},
     2},
    {"M11.sum=bf16", "the sum over experts is kept in bfloat16", {TRACE_M11, TRACE_M12}, 2},
};

// What a deployment may do, which is no mistake: the report says on what the verdict would rest.
#define RANKS(r, n)                                                                                \
    {                                                                                              \
        "ranks=" r,                                                                                \
            "honest if " n                                                                         \
            " ranks computed it: each rounds its part of a sum before all are added",              \
            {TRACE_A12, TRACE_M9, TRACE_M11}, 3                                                    \
    }
static const struct single_override ranks[] = {RANKS("2", "two"), RANKS("4", "four"),
                                               RANKS("8", "eight")};

// The same ranks where they mix slices of the experts, which is narrower.
#define SLICES(r, n)                                                                               \
    {                                                                                              \
        "slices=" r,                                                                               \
            "honest if " n                                                                         \
            " ranks computed it: each mixes its slices of the experts, and rounds what it has "    \
            "before all are added",                                                                \
            {TRACE_A12, TRACE_M11}, 2                                                              \
    }
static const struct single_override slices[] = {SLICES("2", "two"), SLICES("4", "four"),
                                                SLICES("8", "eight")};

// The products that may be split, each with the points that it touches.
static const struct split_product {
    sinkproof_point acc;
    sinkproof_trace_point points[3];
    size_t n_points;
} splits[] = {
    {AT_A2_ACC, {TRACE_A2_Q, TRACE_A2_K, TRACE_A2_V}, 3},
    {AT_A12_ACC, {TRACE_A12}, 1},
    {AT_M2_ACC, {TRACE_M2}, 1},
    {AT_M5_ACC, {TRACE_M5}, 1},
    {AT_M9_ACC, {TRACE_M9}, 1},
    {AT_F2_ACC, {TRACE_F2}, 1},
};

// Whether the values at `from` reach `point` without passing another traced point.
static bool point_reaches_unseen(const sinkproof_model *model, const sinkproof_trace *trace,
                                 sinkproof_trace_point from, sinkproof_trace_point point,
                                 size_t layer) {
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    if (point == from) return true;
    size_t n = sinkproof_trace_inputs(sinkproof_model_config(model), point, layer, inputs);
    for (size_t i = 0; i < n; i++)
        if (sinkproof_trace_find(trace, inputs[i].point, inputs[i].layer) == NULL &&
            point_reaches_unseen(model, trace, from, inputs[i].point, inputs[i].layer))
            return true;
    return false;
}

// Whether the override reaches every failing point; otherwise it cannot explain the failure.
static bool reaches_failures(const sinkproof_model *model, const sinkproof_trace *trace,
                             const sinkproof_trace_point *points, size_t n_points,
                             const sinkproof_judgement *j) {
    for (size_t i = 0; i < j->n_reports; i++) {
        const sinkproof_point_report *r = &j->reports[i];
        bool touched = r->verdict < SINKPROOF_VERDICT_SUSPICIOUS;
        for (size_t p = 0; p < n_points; p++)
            touched = touched || point_reaches_unseen(model, trace, points[p], r->point, r->layer);
        if (!touched) return false;
    }
    return true;
}

// Whether two policies differ in nothing but the name: such an override changes nothing.
static bool same_policy(const sinkproof_policy *a, const sinkproof_policy *b) {
    sinkproof_policy renamed = *a;
    memcpy(renamed.name, b->name, sizeof renamed.name);
    return memcmp(&renamed, b, sizeof renamed) == 0; // a parsed policy has no stray bytes
}

void sinkproof_cause_begin(sinkproof_cause *cause, const sinkproof_judgement *j) {
    *cause = (sinkproof_cause){.n = 0};
    snprintf(cause->policy, sizeof cause->policy, "%s", j->policy.name);
    cause->at = strlen(cause->policy) + 1;
}

// Appends `between` and `text`. Returns false if they do not fit.
static bool append_text(char *to, size_t size, const char *between, const char *text) {
    size_t used = strlen(to);
    int length = snprintf(to + used, size - used, "%s%s", between, text);
    return length >= 0 && (size_t)length < size - used;
}

bool sinkproof_cause_add(sinkproof_cause *cause, const char *override, const char *meaning) {
    return append_text(cause->policy, sizeof cause->policy, ",", override) &&
           append_text(cause->meaning, sizeof cause->meaning, cause->n++ > 0 ? ";\n " : "",
                       meaning);
}

bool sinkproof_cause_explains(const sinkproof_model *model, const sinkproof_trace *trace,
                              const sinkproof_judge_options *options, const sinkproof_judgement *j,
                              const sinkproof_cause *cause) {
    sinkproof_refusal refusal = {.points = ~0u, .beyond = 0}; // one element outside is enough
    sinkproof_judge_options how = *options;
    sinkproof_policy policy;
    sinkproof_judgement k;
    how.refusal = &refusal;
    if (!sinkproof_policy_parse(cause->policy, &policy, NULL) || same_policy(&policy, &j->policy))
        return false;
    if (!sinkproof_judge(model, trace, &policy, &how, &k, NULL)) return false;
    bool honest = !refusal.refused && k.verdict <= SINKPROOF_VERDICT_WITHIN;
    sinkproof_judgement_free(&k);
    return honest;
}

// ---- does the trace show what the policy makes different? (judge_evidence.h)

typedef struct other_policy {
    const sinkproof_model *model;
    const sinkproof_trace *trace;
    const sinkproof_policy *declared, *supposed;
    double rate;
} other_policy;

static bool judge_variant(void *context, sinkproof_evidence_variant variant,
                          const sinkproof_judge_options *how, sinkproof_error *error) {
    const other_policy *of = context;
    sinkproof_judge_options o = *how;
    sinkproof_judgement under;
    o.rate = of->rate;
    sinkproof_policy policy =
        *(variant == SINKPROOF_VARIANT_DECLARED ? of->declared : of->supposed);
    if (variant != SINKPROOF_VARIANT_DECLARED)
        sinkproof_policy_settle(&policy, variant == SINKPROOF_VARIANT_ROUNDED);
    if (!sinkproof_judge(of->model, of->trace, &policy, &o, &under, error)) return false;
    sinkproof_judgement_free(&under);
    return true;
}

// Marks what must be computed to judge the failing points of a place. Returns false if none fails.
static bool stretch_to_failing(const sinkproof_judgement *j, const sinkproof_config *config,
                               const sinkproof_trace *trace, size_t place,
                               sinkproof_stretch *stretch) {
    bool fresh = true;
    for (size_t i = 0; i < j->n_reports; i++) {
        const sinkproof_point_report *r = &j->reports[i];
        bool layered = sinkproof_trace_point_is_layered(r->point);
        if (r->outside == 0 || (layered ? r->layer : config->n_layers) != place) continue;
        sinkproof_stretch_to(stretch, config, &j->policy, trace, r->point, r->layer, fresh);
        fresh = false;
    }
    return !fresh;
}

static bool trace_distinguishes(const sinkproof_model *model, const sinkproof_trace *trace,
                                const sinkproof_judge_options *options,
                                const sinkproof_judgement *j, const sinkproof_cause *cause) {
    const sinkproof_config *config = sinkproof_model_config(model);
    sinkproof_policy supposed;
    sinkproof_evidence evidence = {0, 0, 0};
    sinkproof_stretch *stretch = malloc(sizeof *stretch);
    bool fine = stretch != NULL && sinkproof_policy_parse(cause->policy, &supposed, NULL);
    other_policy of = {model, trace, &j->policy, &supposed, options->rate};
    for (size_t place = 0; fine && place <= config->n_layers; place++) {
        if (!stretch_to_failing(j, config, trace, place, stretch)) continue;
        const sinkproof_evidence_question question = {.config = config,
                                                      .judgement = j,
                                                      .place = place,
                                                      .stretch = stretch,
                                                      .open = sinkproof_policy_is_open(&supposed),
                                                      .judge = judge_variant,
                                                      .context = &of};
        fine = sinkproof_evidence_add(&question, &evidence, NULL);
    }
    free(stretch);
    return fine && sinkproof_evidence_tells(&evidence);
}

bool sinkproof_judge_cause(const sinkproof_model *model, const sinkproof_trace *trace,
                           const sinkproof_judge_options *options, const sinkproof_judgement *j,
                           sinkproof_cause *cause) {
    if (j->verdict <= SINKPROOF_VERDICT_UNDECIDED) return false; // nothing to explain
    for (size_t c = 0; c < sizeof overrides / sizeof overrides[0]; c++) {
        if (!reaches_failures(model, trace, overrides[c].points, overrides[c].n_points, j))
            continue;
        sinkproof_cause_begin(cause, j);
        if (sinkproof_cause_add(cause, overrides[c].text, overrides[c].meaning) &&
            sinkproof_cause_explains(model, trace, options, j, cause) &&
            trace_distinguishes(model, trace, options, j, cause))
            return true;
    }
    return false;
}

// Whether no point has more than one element outside. A stray write leaves such a trace, and a more
// permissive policy would accept it like any other value.
static bool no_point_has_two_outside(const sinkproof_judgement *j) {
    size_t most = 0;
    for (size_t i = 0; i < j->n_reports; i++)
        most = j->reports[i].outside > most ? j->reports[i].outside : most;
    return most == 1;
}

bool sinkproof_judge_other_policy(const sinkproof_model *model, const sinkproof_trace *trace,
                                  const sinkproof_judge_options *options,
                                  const sinkproof_judgement *j, sinkproof_cause *cause) {
    const char *narrower;
    bool found = false;
    if (j->verdict <= SINKPROOF_VERDICT_UNDECIDED || no_point_has_two_outside(j)) return false;
    const char *const *names = // reads the whole trace
        sinkproof_candidates_for(trace, sinkproof_model_config(model), &narrower);
    for (; *names != NULL && !found; names++) {
        *cause = (sinkproof_cause){.n = 0};
        snprintf(cause->policy, sizeof cause->policy, "%s", *names);
        found = sinkproof_cause_explains(model, trace, options, j, cause) &&
                trace_distinguishes(model, trace, options, j, cause);
    }
    return found;
}

// ---- a deployment that the policy does not state

// The elements of one point that are outside under the declared policy, and those of them that an
// emulation of the supposed one hits.
typedef struct emulation_hits {
    sinkproof_trace_point point;
    uint8_t *outside, *hit;
} emulation_hits;

static void see_hit(void *context, sinkproof_trace_point point, size_t layer, size_t at, double v,
                    const sinkproof_honest *set) {
    const emulation_hits *h = context;
    (void)layer; // the stretch has one
    bool hit = v == set->mid || v == set->lo || v == set->hi;
    if (point == h->point && h->outside[at] && hit) h->hit[at] = 1;
}

// Judges the first failing point under the declared policy and under both emulations of the
// supposed one; where ranks may have slices of the experts, or whole ones, under those of either.
static bool judge_hits(const other_policy *of, const sinkproof_judge_options *options,
                       const sinkproof_point_report *r, const sinkproof_stretch *stretch,
                       emulation_hits *h) {
    sinkproof_judge_options declared = *options, supposed = *options;
    declared.stretch = supposed.stretch = stretch;
    declared.marks = h->outside, declared.marked = r->point, declared.marked_layer = r->layer;
    supposed.witness = see_hit, supposed.witnessing = h;
    sinkproof_policy whole = *of->supposed;
    other_policy unsliced = *of;
    whole.at[AT_M11_PART] = (sinkproof_rounding){.format = SINKPROOF_REAL};
    unsliced.supposed = &whole;
    return judge_variant((void *)of, SINKPROOF_VARIANT_DECLARED, &declared, NULL) &&
           judge_variant((void *)of, SINKPROOF_VARIANT_ROUNDED, &supposed, NULL) &&
           judge_variant((void *)of, SINKPROOF_VARIANT_UNROUNDED, &supposed, NULL) &&
           (of->supposed->at[AT_M11_SUM].format != SINKPROOF_RANKS ||
            judge_variant(&unsliced, SINKPROOF_VARIANT_ROUNDED, &supposed, NULL));
}

// Whether emulations of the cause's policy give, to the bit, at least half of the elements that are
// outside at the first failing point. An end of a set counts as well: with two ranks, the ends are
// what the two places of the bias give. Wide sets hold other mistakes too, but hardly ever at an
// end.
static bool emulation_hits_outside(const sinkproof_model *model, const sinkproof_trace *trace,
                                   const sinkproof_judge_options *options,
                                   const sinkproof_judgement *j, const sinkproof_cause *cause) {
    const sinkproof_point_report *r = j->first;
    sinkproof_policy supposed;
    size_t elements = 1, outside = 0, hits = 0;
    if (r == NULL || !sinkproof_policy_parse(cause->policy, &supposed, NULL)) return false;
    for (size_t d = 0; d < r->rank; d++) elements *= r->shape[d];
    emulation_hits h = {r->point, calloc(elements, 1), calloc(elements, 1)};
    sinkproof_stretch *stretch = malloc(sizeof *stretch);
    const other_policy of = {model, trace, &j->policy, &supposed, options->rate};
    bool fine = h.outside != NULL && h.hit != NULL && stretch != NULL;
    if (fine)
        sinkproof_stretch_to(stretch, sinkproof_model_config(model), &supposed, trace, r->point,
                             r->layer, true);
    fine = fine && judge_hits(&of, options, r, stretch, &h);
    for (size_t at = 0; fine && at < elements; at++) outside += h.outside[at], hits += h.hit[at];
    free(h.outside), free(h.hit), free(stretch);
    return outside > 0 && 2 * hits >= outside;
}

enum { LEAST_BLOCK = 8 };

static bool is_block(size_t block, size_t products) {
    bool power = (block & (block - 1)) == 0;
    return block <= products / 2 && (power || products % block == 0);
}

// The terms of a sum of the product, from its first weights; 0 if the model has none.
static size_t product_terms(const sinkproof_model *model, sinkproof_trace_point point) {
    sinkproof_walk_step step = sinkproof_walk_step_at(model, point, 0);
    return step.weights[0].count > 0 ? step.weights[0].cols : 0;
}

// Whether the token with the worst element of the first failing point is within under the cause's
// policy. It costs that point of one token.
static bool blocks_fit_worst(const sinkproof_model *model, const sinkproof_trace *trace,
                             const sinkproof_judge_options *options, const sinkproof_judgement *j,
                             sinkproof_stretch *stretch, const sinkproof_cause *cause) {
    const sinkproof_point_report *r = j->first != NULL ? j->first : j->first_suspicious;
    size_t index[SINKPROOF_MAX_RANK] = {0};
    sinkproof_refusal refusal = {.points = ~0u, .beyond = 0};
    sinkproof_judge_options how = *options;
    sinkproof_policy policy;
    sinkproof_judgement k;
    sinkproof_trace_index(r->rank, r->shape, r->worst_at, index);
    sinkproof_rows rows = {.first = index[0], .end = index[0] + 1};
    how.refusal = &refusal, how.rows = &rows, how.stretch = stretch;
    if (!sinkproof_policy_parse(cause->policy, &policy, NULL) ||
        !sinkproof_judge(model, trace, &policy, &how, &k, NULL))
        return false;
    sinkproof_judgement_free(&k);
    return !refusal.refused;
}

// The format of the blocks: that in which the product's result is stored, if it is narrow. *first
// receives the first failing point's stretch.
static sinkproof_format block_format(const sinkproof_model *model, const sinkproof_trace *trace,
                                     const sinkproof_judgement *j, const struct split_product *of,
                                     sinkproof_stretch *first) {
    const sinkproof_point_report *r = j->first != NULL ? j->first : j->first_suspicious;
    sinkproof_point at = of->acc;
    sinkproof_trace_rounding(of->points[0], &at);
    sinkproof_stretch_to(first, sinkproof_model_config(model), &j->policy, trace, r->point,
                         r->layer, true);
    return j->policy.at[at].format;
}

// Looks for the size of the blocks in which the product was added up, if each was rounded.
static bool find_blocks(const sinkproof_model *model, const sinkproof_trace *trace,
                        const sinkproof_judge_options *options, const sinkproof_judgement *j,
                        const struct split_product *of, sinkproof_cause *cause) {
    size_t products = product_terms(model, of->points[0]);
    sinkproof_stretch *first = malloc(sizeof *first);
    if (first == NULL) return false;
    sinkproof_format format = block_format(model, trace, j, of, first);
    bool found = false, narrow = format == SINKPROOF_BF16 || format == SINKPROOF_F16;
    for (size_t n = LEAST_BLOCK; narrow && !found && n <= products / 2; n++) {
        char text[64], meaning[320];
        if (!is_block(n, products)) continue;
        snprintf(text, sizeof text, "%s=blocks(%zu,%s)", sinkproof_point_name(of->acc), n,
                 sinkproof_format_name(format));
        snprintf(meaning, sizeof meaning,
                 "honest if the product is split: of its %s, the sum of each %zu is rounded to %s "
                 "before all are added",
                 sinkproof_counted(products, "term").text, n,
                 format == SINKPROOF_BF16 ? "bfloat16" : "float16");
        sinkproof_cause_begin(cause, j);
        found = sinkproof_cause_add(cause, text, meaning) &&
                blocks_fit_worst(model, trace, options, j, first, cause) &&
                sinkproof_cause_explains(model, trace, options, j, cause) &&
                emulation_hits_outside(model, trace, options, j, cause);
    }
    free(first);
    return found;
}

static bool ranks_explain(const sinkproof_model *model, const sinkproof_trace *trace,
                          const sinkproof_judge_options *options, const sinkproof_judgement *j,
                          const struct single_override *of, sinkproof_cause *cause) {
    if (!reaches_failures(model, trace, of->points, of->n_points, j)) return false;
    sinkproof_cause_begin(cause, j);
    return sinkproof_cause_add(cause, of->text, of->meaning) &&
           sinkproof_cause_explains(model, trace, options, j, cause);
}

// Whether the mixture of the experts is a failing point, or reaches one.
static bool mixture_reaches_failure(const sinkproof_model *model, const sinkproof_trace *trace,
                                    const sinkproof_judgement *j) {
    bool any = false;
    for (size_t i = 0; i < j->n_reports; i++) {
        const sinkproof_point_report *r = &j->reports[i];
        any = any || (r->verdict >= SINKPROOF_VERDICT_SUSPICIOUS &&
                      point_reaches_unseen(model, trace, TRACE_M11, r->point, r->layer));
    }
    return any;
}

static bool find_deployment(const sinkproof_model *model, const sinkproof_trace *trace,
                            const sinkproof_judge_options *options, const sinkproof_judgement *j,
                            sinkproof_cause *cause) {
    if (j->verdict <= SINKPROOF_VERDICT_UNDECIDED) return false;
    bool mixes = mixture_reaches_failure(model, trace, j);
    for (size_t c = 0; c < sizeof ranks / sizeof ranks[0]; c++) {
        sinkproof_cause narrower;
        if (!ranks_explain(model, trace, options, j, &ranks[c], cause) ||
            !emulation_hits_outside(model, trace, options, j, cause))
            continue;
        if (mixes && ranks_explain(model, trace, options, j, &slices[c], &narrower))
            *cause = narrower;
        return true;
    }
    for (size_t c = 0; c < sizeof splits / sizeof splits[0]; c++)
        if (reaches_failures(model, trace, splits[c].points, splits[c].n_points, j) &&
            find_blocks(model, trace, options, j, &splits[c], cause))
            return true;
    return false;
}

bool sinkproof_judge_deployment(const sinkproof_model *model, const sinkproof_trace *trace,
                                const sinkproof_judge_options *options,
                                const sinkproof_judgement *j, sinkproof_cause *cause) {
    bool found = find_deployment(model, trace, options, j, cause);
    cause->deployment = found;
    return found;
}

void sinkproof_cause_print(FILE *out, const sinkproof_judgement *j, const sinkproof_cause *found) {
    size_t failing = 0;
    for (size_t i = 0; i < j->n_reports; i++)
        failing += j->reports[i].verdict >= SINKPROOF_VERDICT_SUSPICIOUS;
    if (found->deployment)
        fprintf(out, "All of it would be within");
    else if (found->n > 1)
        fprintf(out, "%s together explain all of it", sinkproof_counted(found->n, "override").text);
    else
        fprintf(out, "%s explains all of it", found->n == 1 ? "One override" : "Another policy");
    fprintf(out, " (%s): --policy %s", sinkproof_counted(failing, "point").text, found->policy);
    if (found->n > 0)
        fprintf(out, "\n(%s).\n\n", found->meaning);
    else
        fprintf(out, "\n\n");
}
