// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One pass of the judge, from tokens to logits: every point is compared in the order of the forward
// pass.
#include "audit/judge/judge_internal.h"
#include "audit/judge/judge_prefix.h"

#include "audit/trace/trace_points.h"
#include "base/words.h"
#include "model/slots.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- the conclusion

static bool reads_earlier(sinkproof_trace_point point) {
    return point == TRACE_A6 || point == TRACE_A11;
}

// A point is bridged when the trace lacks one of its inputs. Three exceptions. A product before its
// bias need not exist in an engine, so its own inputs count instead. The selection is found from
// the logits. A sink's logit that follows the query is in no trace, so that A9 is then always
// bridged.
static bool is_bridged(const judge_pass *pass, sinkproof_trace_point point, size_t layer) {
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    size_t n = sinkproof_trace_inputs(pass->config, point, layer, inputs);
    if (reads_earlier(point) && pass->judgement->unread[layer] > 0) return true;
    if (point == TRACE_A9 && !sinkproof_sinks_are_constant(pass->config)) return true;
    for (size_t i = 0; i < n; i++) {
        sinkproof_trace_point from = inputs[i].point;
        if (sinkproof_trace_point_is_index(from) || point_is_traced(pass, from, inputs[i].layer))
            continue;
        if (point == TRACE_A11 && from == TRACE_A9 && point_is_traced(pass, TRACE_A10, layer))
            continue;
        bool through = sinkproof_trace_point_held(from) == SINKPROOF_UNBIASED;
        if (!through || is_bridged(pass, from, inputs[i].layer)) return true;
    }
    return false;
}

// The sequence and the position of the worst element.
static void find_sequence(const judge_pass *pass, sinkproof_point_report *r) {
    size_t index[SINKPROOF_MAX_RANK];
    sinkproof_trace_index(r->rank, r->shape, r->worst_at, index);
    bool heads_first = sinkproof_trace_point_is_offered(r->point)
                           ? !sinkproof_trace_lse_by_token(pass->trace)
                           : sinkproof_trace_point_is_by_head(r->point);
    size_t row = index[heads_first];
    r->rows_first = !heads_first;
    r->begins = pass->first;
    r->n_sequences = sinkproof_trace_sequences(pass->trace);
    r->sequence = sinkproof_trace_sequence_of(pass->trace, row).number;
    r->position = (size_t)sinkproof_trace_positions(pass->trace)[row];
}

static bool conclude_point(const judge_pass *pass, sinkproof_point_report *r) {
    if (!sinkproof_drift_judge(&r->drift_sums, pass->options->rate, &r->drift)) return false;
    r->share_median = histogram_median(&r->shares);
    r->power_single = histogram_median(&r->widths);
    r->bridged = is_bridged(pass, r->point, r->layer);
    find_sequence(pass, r);
    // Inputs that are not traced leave errors in no random order, so no spread is asked for.
    bool leans =
        sinkproof_drift_leans(&r->drift) || (!r->bridged && sinkproof_drift_spreads(&r->drift));
    r->verdict = r->outside > 0                                       ? SINKPROOF_VERDICT_BUG
                 : r->unlikely > 0 || leans                           ? SINKPROOF_VERDICT_SUSPICIOUS
                 : r->open_nans > 0 || 2 * r->undecided > r->elements ? SINKPROOF_VERDICT_UNDECIDED
                 : r->several == 0                                    ? SINKPROOF_VERDICT_EXACT
                                                                      : SINKPROOF_VERDICT_WITHIN;
    return judge_describe_inputs(pass, r);
}

static bool conclude_judgement(judge_pass *pass) {
    sinkproof_judgement *j = pass->judgement;
    for (size_t i = 0; i < j->n_reports; i++)
        if (!conclude_point(pass, &j->reports[i])) return false;
    if (!judge_layers_together(j)) return false;
    for (size_t i = 0; i < j->n_reports; i++) {
        const sinkproof_point_report *r = &j->reports[i];
        if (r->verdict == SINKPROOF_VERDICT_UNDECIDED)
            j->undecided++;
        else if (r->verdict > j->verdict)
            j->verdict = r->verdict;
        j->open_nans += r->open_nans;
        if (r->verdict == SINKPROOF_VERDICT_BUG && j->first == NULL) j->first = r;
        if (r->verdict == SINKPROOF_VERDICT_SUSPICIOUS && j->first_suspicious == NULL)
            j->first_suspicious = r;
    }
    bool open = j->undecided == j->n_reports || j->open_nans > 0;
    if (open && j->verdict < SINKPROOF_VERDICT_UNDECIDED) j->verdict = SINKPROOF_VERDICT_UNDECIDED;
    return true;
}

// Moves the reports out of the pass, in the order of the forward pass: T0, the layers, F1 and F2.
// Only as many are allocated as there are: a report is large, and most passes judge a few points.
static bool collect_reports(judge_pass *pass) {
    sinkproof_judgement *j = pass->judgement;
    size_t layers = pass->config->n_layers, count = 0;
    for (size_t i = 0; i < (layers + 1) * TRACE_POINTS; i++) count += pass->report_of[i] != NULL;
    j->reports = calloc(count + 1, sizeof *j->reports);
    if (j->reports == NULL) return false;
    for (size_t at = 0; at < layers + 2; at++) {
        size_t layer =
            at == 0 ? layers : at - 1; // points outside the layers are stored after the layers
        for (size_t p = 0; p < TRACE_POINTS; p++) {
            sinkproof_point_report **from = &pass->report_of[layer * TRACE_POINTS + p];
            sinkproof_trace_point point = (sinkproof_trace_point)p;
            const sinkproof_tensor *tensor = sinkproof_trace_find(pass->trace, point, layer);
            bool behind = at > layers && p == TRACE_T0, before = at == 0 && p != 0;
            if (*from == NULL || tensor == NULL || behind || before) continue;
            sinkproof_point_report *r = &j->reports[j->n_reports++];
            *r = **from;
            (*from)->drift_sums = (sinkproof_drift){0}; // r owns the rows now
            r->point = point;
            r->layer = sinkproof_trace_point_is_layered(point) ? layer : 0;
            r->rank = tensor->rank;
            memcpy(r->shape, tensor->shape, sizeof r->shape);
            snprintf(r->name, sizeof r->name, "%s", tensor->name);
        }
    }
    return true;
}

// The earlier positions that a sequence's first token reads in a layer, and that have no key or no
// value in the trace: the most of all sequences.
static size_t count_unread(const judge_pass *pass, size_t layer) {
    const sinkproof_trace_point read[] = {sinkproof_trace_keys(pass->config), TRACE_A2_V};
    size_t most = 0;
    for (size_t n = 0; n < sinkproof_trace_sequences(pass->trace); n++)
        for (size_t i = 0; i < 2; i++) {
            sinkproof_sequence s = sinkproof_trace_sequence(pass->trace, n);
            size_t first = s.first;
            size_t low = first_seen_key(pass->config, layer, first);
            const sinkproof_tensor *before = sinkproof_trace_before(pass->trace, read[i], layer);
            size_t earlier = before == NULL                          ? 0
                             : sinkproof_trace_is_apart(pass->trace) ? s.keys - s.rows
                                                                     : before->shape[0];
            size_t from = first - earlier;
            if (from > low && from - low > most) most = from - low;
        }
    return most;
}

static bool judge_all(judge_pass *pass, sinkproof_error *error) {
    sinkproof_judgement *j = pass->judgement;
    const sinkproof_config *c = pass->config;
    size_t slots = (c->n_layers + 1) * TRACE_POINTS, k = c->n_chosen;
    j->begins = pass->first;
    j->n_sequences = sinkproof_trace_sequences(pass->trace);
    for (size_t s = 0; s < j->n_sequences; s++)
        j->later = j->later || sinkproof_trace_sequence(pass->trace, s).first > 0;
    j->open = calloc(c->n_layers, sizeof *j->open);
    j->unread = calloc(c->n_layers, sizeof *j->unread);
    for (size_t l = 0; j->unread != NULL && l < c->n_layers; l++)
        j->unread[l] = count_unread(pass, l);
    pass->report_of = calloc(slots, sizeof *pass->report_of);
    pass->chosen = j->chosen = calloc(c->n_layers * pass->n * k, sizeof *pass->chosen);
    pass->all = judge_all_work(pass);
    if (pass->options->end_to_end) pass->all *= 2;
    bool fine = j->open != NULL && j->unread != NULL && pass->report_of != NULL &&
                pass->chosen != NULL && judge_all_points(pass);
    if (!fine)
        return sinkproof_fail(error, "no memory to judge %s",
                              sinkproof_counted(pass->n, "token").text);
    if (pass_has_ended(pass)) return true;
    judge_settle_lse(pass);
    fine = collect_reports(pass);
    if (fine && j->n_reports == 0)
        return sinkproof_fail(error, "the trace holds none of the points that can be judged");
    fine = fine && conclude_judgement(pass) && (!pass->options->end_to_end || judge_truth(pass));
    return fine || sinkproof_fail(error, "no memory to judge %s",
                                  sinkproof_counted(j->n_reports, "point").text);
}

// Whether a linear layer is summed in parts.
static bool policy_has_parts(const sinkproof_policy *policy) {
    bool any = false;
    for (int p = 0; p < AT_POINTS; p++)
        any =
            any ||
            (sinkproof_point_is_running_sum((sinkproof_point)p) &&
             (policy->at[p].format == SINKPROOF_RANKS || policy->at[p].format == SINKPROOF_BLOCKS));
    return any;
}

// Starts a pass over the model with its weights as the policy stores them; the caller closes it.
static bool begin_pass(judge_pass *pass, const sinkproof_model *model, const sinkproof_trace *trace,
                       const sinkproof_policy *policy, const sinkproof_judge_options *options,
                       sinkproof_judgement *judgement, sinkproof_error *error) {
    *pass = (judge_pass){.config = sinkproof_model_config(model),
                         .trace = trace,
                         .policy = policy,
                         .before = policy_without_optional(policy),
                         .options = options,
                         .meaning = options->meaning != NULL ? options->meaning
                                                             : &sinkproof_meaning_as_defined,
                         .n = sinkproof_trace_length(trace),
                         .first = sinkproof_trace_first(trace),
                         .keys = sinkproof_trace_columns(trace),
                         .judgement = judgement,
                         .all = 1};
    if (options->stretch == NULL && !sinkproof_model_fits(model, policy->weights, error))
        return false;
    if (sinkproof_model_adapter(model) != NULL && policy_has_parts(policy))
        return sinkproof_fail(error,
                              "policy %.200s: expected one without ranks and blocks beside an "
                              "adapter that is not merged: no set says how its parts are added",
                              policy->name);
    sinkproof_model *kept = sinkproof_model_kept(model, policy->weights);
    if (kept == NULL) return sinkproof_fail(error, "no memory for a view of the model");
    pass->model = pass->kept = kept;
    sinkproof_times_begin(); // the parts are the threads
    return true;
}

static void end_pass(judge_pass *pass) {
    sinkproof_times_end();
    sinkproof_model_close(pass->kept);
}

// A part of the model, or a mistake that is supposed, finds no prefix: what reads it is undecided,
// unless the options have its sets.
static bool knows_prefix(const sinkproof_trace *trace, const sinkproof_judge_options *options) {
    bool defined = options->meaning == NULL || options->meaning == &sinkproof_meaning_as_defined;
    return sinkproof_trace_prefix(trace) != NULL && options->stretch == NULL && defined;
}

// Walks through the model with the prefix's tokens.
static bool find_prefix(const sinkproof_model *model, const sinkproof_trace *trace,
                        const sinkproof_policy *policy, const sinkproof_judge_options *options,
                        judge_prefix **prefix, sinkproof_error *error) {
    const sinkproof_config *c = sinkproof_model_config(model);
    size_t n = sinkproof_trace_prefix_length(trace), slots = (c->n_layers + 1) * TRACE_POINTS;
    sinkproof_stretch stretch;
    const sinkproof_judge_options how = {.rate = options->rate, .stretch = &stretch};
    sinkproof_judgement none = {.rate = options->rate, .thinnest_margin = INFINITY};
    judge_pass pass;
    if (!sinkproof_model_fits(model, policy->weights, error)) return false;
    sinkproof_trace *tokens = prefix_trace(model, trace, policy, &stretch, error);
    bool fine = tokens != NULL && begin_pass(&pass, model, tokens, policy, &how, &none, error);
    if (fine) {
        *prefix = pass.kept_prefix = prefix_new(n, c->n_layers);
        pass.report_of = calloc(slots, sizeof *pass.report_of);
        pass.chosen = none.chosen = calloc(c->n_layers * n * c->n_chosen, sizeof *pass.chosen);
        none.open = calloc(c->n_layers, sizeof *none.open);
        none.unread = calloc(c->n_layers, sizeof *none.unread);
        fine = *prefix != NULL && pass.report_of != NULL && pass.chosen != NULL &&
               none.open != NULL && none.unread != NULL && judge_all_points(&pass);
        if (!fine)
            sinkproof_fail(error, "no memory for a prefix of %s",
                           sinkproof_counted(n, "token").text);
        for (size_t i = 0; pass.report_of != NULL && i < slots; i++) report_free(pass.report_of[i]);
        free(pass.report_of);
        free(pass.unmoved);
        sinkproof_judgement_free(&none);
        end_pass(&pass);
    }
    sinkproof_trace_close(tokens);
    return fine;
}

// Asks the first rows of a refusal, if they cost less than all.
static bool ask_first_rows(const sinkproof_model *model, const sinkproof_trace *trace,
                           const sinkproof_policy *policy, const sinkproof_judge_options *options,
                           sinkproof_error *error) {
    sinkproof_refusal first = *options->refusal;
    const sinkproof_rows rows = first.first, *all = options->rows;
    sinkproof_judge_options how = *options;
    bool among = all == NULL || (rows.first >= all->first && rows.end <= all->end);
    how.rows = &rows, how.refusal = &first, how.witness = NULL, how.marks = NULL;
    first.first = (sinkproof_rows){0, 0};
    const judge_pass asked = {.config = sinkproof_model_config(model),
                              .policy = policy,
                              .options = &how,
                              .meaning = how.meaning != NULL ? how.meaning
                                                             : &sinkproof_meaning_as_defined};
    sinkproof_judgement judgement;
    if (rows.end == 0 || !among || !judge_rows_are_few(&asked)) return true;
    if (!sinkproof_judge(model, trace, policy, &how, &judgement, error)) return false;
    sinkproof_judgement_free(&judgement);
    options->refusal->refused = first.refused;
    return true;
}

bool sinkproof_judge(const sinkproof_model *model, const sinkproof_trace *trace,
                     const sinkproof_policy *policy, const sinkproof_judge_options *options,
                     sinkproof_judgement *judgement, sinkproof_error *error) {
    const sinkproof_config *c = sinkproof_model_config(model);
    size_t n = sinkproof_trace_length(trace), slots = (c->n_layers + 1) * TRACE_POINTS;
    *judgement = (sinkproof_judgement){.policy = *policy,
                                       .rate = options->rate,
                                       .thinnest_margin = INFINITY,
                                       .n_tokens = n,
                                       .n_layers = c->n_layers};
    if (c->n_chosen > SINKPROOF_MAX_CHOSEN)
        return sinkproof_fail(error, "%.300s: %s per token, expected at most %d to judge",
                              sinkproof_model_spec(model),
                              sinkproof_counted(c->n_chosen, "expert").text, SINKPROOF_MAX_CHOSEN);
    if (options->refusal != NULL && !ask_first_rows(model, trace, policy, options, error))
        return false;
    if (options->refusal != NULL && options->refusal->refused) return true;
    judge_pass pass;
    sinkproof_judge_options own = *options;
    sinkproof_stretch *stretch = NULL;
    if (options->stretch == NULL && options->layers.end > 0) {
        if (!sinkproof_model_fits(model, policy->weights, error)) return false;
        stretch = judge_stretch_over(c, policy, trace, options->layers, judgement, error);
        if (stretch == NULL) {
            sinkproof_judgement_free(judgement);
            return false;
        }
        own.stretch = stretch;
    }
    judge_prefix *prefix = NULL;
    bool fine = options->prefix != NULL || !knows_prefix(trace, options) ||
                find_prefix(model, trace, policy, options, &prefix, error);
    fine = fine && begin_pass(&pass, model, trace, policy, &own, judgement, error);
    if (fine) {
        pass.prefix = options->prefix != NULL ? options->prefix : prefix;
        pass.alone = judge_rows_alone(&pass);
        pass.serial = judge_stretch_is_small(&pass);
        fine = judge_all(&pass, error);
        end_pass(&pass);
        for (size_t i = 0; pass.report_of != NULL && i < slots; i++) report_free(pass.report_of[i]);
        free(pass.report_of);
        free(pass.unmoved);
    }
    free(stretch);
    if (fine && judgement->first != NULL)
        judgement->prefix = prefix;
    else
        prefix_free(prefix);
    if (!fine) sinkproof_judgement_free(judgement);
    return fine;
}

bool sinkproof_judge_end_to_end(const sinkproof_model *model, const sinkproof_trace *trace,
                                const sinkproof_judge_options *options,
                                sinkproof_judgement *judgement, sinkproof_error *error) {
    judge_pass pass;
    if (!begin_pass(&pass, model, trace, &judgement->policy, options, judgement, error))
        return false;
    pass.chosen = judgement->chosen;
    bool fine = judge_truth(&pass) || sinkproof_fail(error, "no memory to judge %s",
                                                     sinkproof_counted(pass.n, "token").text);
    end_pass(&pass);
    return fine;
}

void sinkproof_judgement_free(sinkproof_judgement *judgement) {
    for (size_t i = 0; i < judgement->n_reports; i++)
        sinkproof_drift_free(&judgement->reports[i].drift_sums);
    free(judgement->reports);
    free(judgement->open);
    free(judgement->unread);
    free(judgement->chosen);
    free(judgement->held);
    certified_free(judgement->certified);
    prefix_free(judgement->prefix);
    *judgement = (sinkproof_judgement){0};
}
