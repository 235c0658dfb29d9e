// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Judges one trace and reports it. The report is written into memory during the judgement.
#include "audit/face/ruling.h"

#include "audit/diagnose/backward_causes.h"
#include "audit/diagnose/diagnosed_cause.h"
#include "audit/diagnose/diagnosis_report.h"
#include "audit/face/ruling_adapter.h"
#include "audit/face/ruling_gradients.h"
#include "audit/judge/judge_backward_report.h"
#include "audit/judge/judge_candidates.h"
#include "audit/judge/judge_certified_report.h"
#include "audit/judge/judge_report.h"
#include "audit/trace/trace_model.h"
#include "audit/trace/trace_points.h"
#include "base/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sinkproof_ruling {
    sinkproof_judgement judgement;
    sinkproof_cause cause;
    bool explained, asked; // by the cause; a cause was searched for everywhere
    sinkproof_diagnosis diagnosis;
    sinkproof_note model, declared; // where the metadata differ from the arguments
    sinkproof_gradient_judgement gradients;
    int exit;
    char *text, *json;
    json_t *results;
};

static ruled together(const sinkproof_ruling *r) {
    return (ruled){&r->judgement, &r->gradients};
}

// ---- judging ---------------------------------------------------------------------------------

// The arguments of a trial, and the output of its report.
typedef struct trial {
    const sinkproof_model *model;
    const sinkproof_trace *trace;
    sinkproof_trial_options o;
    truth_file truth;      // open where the options name one
    ruled_adapter adapter; // the same; `model` then has it
    const char *tried;     // the policy of the current judgement
    FILE *out;
} trial;

static void pass_progress(void *context, double share) {
    const trial *t = context;
    t->o.progress(t->o.context, t->tried, share);
}

static sinkproof_judge_options trial_judge_options(trial *t, bool end_to_end, const char *tried) {
    t->tried = tried;
    return (sinkproof_judge_options){.rate = t->o.rate,
                                     .end_to_end = end_to_end,
                                     .truth = t->truth.trace != NULL ? &t->truth : NULL,
                                     .layers = {t->o.first_layer, t->o.end_layer},
                                     .progress = t->o.progress != NULL ? pass_progress : NULL,
                                     .context = t};
}

static bool judge_under(trial *t, const char *text, bool end_to_end, sinkproof_judgement *j,
                        sinkproof_error *error) {
    sinkproof_policy policy;
    sinkproof_judge_options how = trial_judge_options(t, end_to_end, text);
    return sinkproof_policy_parse(text, &policy, error) &&
           sinkproof_judge(t->model, t->trace, &policy, &how, j, error);
}

static bool is_honest(const sinkproof_judgement *j) {
    return j->verdict <= SINKPROOF_VERDICT_UNDECIDED;
}

static const char *first_failing_name(const sinkproof_judgement *j) {
    return j->first != NULL              ? j->first->name
           : j->first_suspicious != NULL ? j->first_suspicious->name
                                         : "";
}

// Whether no gradient is outside under the policy of a judgement; else the first that is.
static bool gradients_fit(trial *t, const sinkproof_judgement *j, char first[40]) {
    sinkproof_gradient_judgement g;
    sinkproof_layer_range layers = {t->o.first_layer, t->o.end_layer};
    if (!sinkproof_judge_gradients(t->model, t->trace, &j->policy, layers, &g, NULL)) return true;
    bool fit = g.first == NULL;
    if (!fit) snprintf(first, 40, "%s", g.first->name);
    sinkproof_gradient_judgement_free(&g);
    return fit;
}

// Judges under one policy of auto; its judgement replaces `best` if it is nearer, and with
// `at_last` only if it fits. Returns false on an error.
static bool try_policy(trial *t, const char *name, bool at_last, bool *any, bool *honest,
                       sinkproof_judgement *best, sinkproof_error *error) {
    sinkproof_judgement j;
    if (!judge_under(t, name, false, &j, error)) return false;
    *honest = is_honest(&j);
    char gradient[40] = "";
    bool forward = *honest;
    *honest = *honest && gradients_fit(t, &j, gradient);
    fprintf(t->out, "auto: %s %s%s\n", name,
            *honest ? "fits" : "does not fit: ", forward ? gradient : first_failing_name(&j));
    bool nearer = at_last
                      ? *honest
                      : !*any || sinkproof_judgement_misfit(&j) < sinkproof_judgement_misfit(best);
    if (nearer && *any) sinkproof_judgement_free(best);
    if (nearer)
        *best = j;
    else
        sinkproof_judgement_free(&j);
    *any = true;
    return true;
}

// The ranks of the trace's metadata from 2 on; 0 where they name none, or one. Says so where what
// they name is no number of ranks.
static int declared_ranks(const trial *t) {
    const char *said = sinkproof_trace_metadata(t->trace, "ranks");
    sinkproof_policy policy;
    char text[48];
    if (said == NULL || strcmp(said, "1") == 0) return 0;
    snprintf(text, sizeof text, "f32,ranks=%.30s", said);
    if (strspn(said, "0123456789") == strlen(said) && sinkproof_policy_parse(text, &policy, NULL))
        return (int)strtol(said, NULL, 10);
    snprintf(text, sizeof text, "%.40s", said);
    sinkproof_make_printable(text);
    fprintf(t->out, "The metadata say \"ranks\": \"%s\", which is no number from 1 to 64.\n", text);
    return 0;
}

// The same policies, with the ranks that the metadata name; one is kept only if it fits.
static bool try_with_ranks(trial *t, const char *const *names, int ranks, bool *any, bool *honest,
                           sinkproof_judgement *best, sinkproof_error *error) {
    bool fine = true;
    for (; ranks > 0 && fine && !*honest && *names != NULL; names++) {
        char text[64];
        snprintf(text, sizeof text, "%s,ranks=%d", *names, ranks);
        fine = try_policy(t, text, true, any, honest, best, error);
    }
    return fine;
}

// Judges under the known policies until one fits; otherwise keeps the nearest of the generic ones.
static bool judge_auto(trial *t, sinkproof_judgement *best, sinkproof_error *error) {
    const char *narrower;
    const sinkproof_config *config = sinkproof_model_config(t->model);
    const char *const *names = sinkproof_candidates_for(t->trace, config, &narrower);
    const char *const *at_last = sinkproof_candidates_at_last(names, config);
    if (narrower != NULL)
        fprintf(t->out, "every value is a %s number, though stored wider\n", narrower);
    const char *const *first = names;
    int ranks = declared_ranks(t);
    bool any = false, honest = false, fine = true;
    for (; fine && !honest && *names != NULL; names++)
        fine = try_policy(t, *names, false, &any, &honest, best, error);
    fine = fine && try_with_ranks(t, first, ranks, &any, &honest, best, error);
    for (const char *const *last = at_last; fine && !honest && *last != NULL; last++)
        fine = try_policy(t, *last, true, &any, &honest, best, error);
    fine = fine && try_with_ranks(t, at_last, ranks, &any, &honest, best, error);
    if (!fine && any) sinkproof_judgement_free(best);
    return fine;
}

// Judges under the stated policy, or under the one that `auto` finds; end to end unless that is
// skipped.
static bool judge_stated(trial *t, sinkproof_judgement *j, sinkproof_error *error) {
    if (strcmp(t->o.policy, "auto") != 0) return judge_under(t, t->o.policy, !t->o.local, j, error);
    if (!judge_auto(t, j, error)) return false;
    sinkproof_judge_options how = trial_judge_options(t, true, j->policy.name);
    if (t->o.local || sinkproof_judge_end_to_end(t->model, t->trace, &how, j, error)) return true;
    sinkproof_judgement_free(j);
    return false;
}

static bool judge_forms(trial *t, sinkproof_judgement *j, sinkproof_error *error) {
    sinkproof_judge_options how = trial_judge_options(t, false, "forms");
    if (!t->o.forms || sinkproof_judge_forms(t->model, t->trace, &how, j, error)) return true;
    sinkproof_judgement_free(j);
    return false;
}

// ---- reporting -------------------------------------------------------------------------------

static void print_head(const trial *t) {
    const char *named = sinkproof_trace_metadata(t->trace, "engine");
    char engine[128];
    snprintf(engine, sizeof engine, "%s", named != NULL ? named : "not named");
    sinkproof_make_printable(engine);
    size_t sequences = sinkproof_trace_sequences(t->trace);
    fprintf(t->out, "%s\n%s", t->o.name,
            sinkproof_counted(sinkproof_trace_length(t->trace), "token").text);
    if (sequences > 1) fprintf(t->out, " in %s", sinkproof_counted(sequences, "sequence").text);
    fprintf(t->out, ", engine %s\n", engine);
    size_t first = t->o.first_layer, end = t->o.end_layer,
           layers = sinkproof_model_config(t->model)->n_layers;
    if (end == first + 1) fprintf(t->out, "Layer %zu alone, of %zu.\n", first, layers);
    if (end > first + 1)
        fprintf(t->out, "Layers %zu to %zu alone, of %zu.\n", first, end - 1, layers);
}

static json_t *notes_json(const trial *t, const sinkproof_ruling *r) {
    json_t *notes = json_array();
    if (r->model.text[0] != '\0') json_array_append_new(notes, json_string(r->model.text));
    if (r->declared.text[0] != '\0') json_array_append_new(notes, json_string(r->declared.text));
    if (t->adapter.said[0] != '\0') json_array_append_new(notes, json_string(t->adapter.said));
    if (r->gradients.freedoms[0] != '\0')
        json_array_append_new(notes, json_string(r->gradients.freedoms));
    return notes;
}

static bool write_ruling_report(trial *t, sinkproof_ruling *r, sinkproof_error *error) {
    const sinkproof_config *config = sinkproof_model_config(t->model);
    const sinkproof_judgement *j = &r->judgement;
    if (!t->o.truth_alone)
        r->declared =
            sinkproof_declared_note(sinkproof_trace_metadata(t->trace, "policy"), &j->policy);
    if (r->explained) sinkproof_cause_print(t->out, j, &r->cause);
    if (r->declared.text[0] != '\0') fprintf(t->out, "%s\n", r->declared.text);
    if (!t->o.truth_alone) sinkproof_judgement_print(t->out, config, j, t->o.all);
    sinkproof_diagnosis_print(t->out, config, &r->diagnosis);
    sinkproof_gradients_print(t->out, &r->gradients, j->policy.name, t->o.all);
    if (j->certified != NULL) sinkproof_certified_print(t->out, j->certified, &t->truth, t->o.all);
    if (!t->o.truth_alone) ruled_print_conclusion(t->out, together(r), r->exit);
    if (t->o.truth_alone) fprintf(t->out, "\nNothing was judged (exit %d).\n", r->exit);
    r->results = json_array();
    if (r->results == NULL) return sinkproof_fail(error, "no memory for a report");
    sinkproof_judgement_json(r->results, t->o.name, config, j, sinkproof_ruling_explained_by(r),
                             r->exit);
    json_object_set_new(json_array_get(r->results, 0), "diagnosis",
                        sinkproof_diagnosis_json(config, &r->diagnosis));
    json_object_set_new(json_array_get(r->results, 0), "notes", notes_json(t, r));
    json_object_set_new(json_array_get(r->results, 0), "verdict",
                        json_string(sinkproof_verdict_name(ruled_verdict(together(r)))));
    sinkproof_gradients_json(r->results, &r->gradients);
    if (j->certified != NULL) sinkproof_certified_json(r->results, j->certified, &t->truth);
    r->json = json_dumps(r->results, JSON_INDENT(2));
    return r->json != NULL || sinkproof_fail(error, "no memory for a report");
}

// ---- the face --------------------------------------------------------------------------------

// Copies the caller's options over the defaults, up to the size of the caller's struct.
static bool read_options(trial *t, const sinkproof_trial_options *options, sinkproof_error *error) {
    size_t size = sizeof t->o;
    if (options != NULL && options->size < offsetof(sinkproof_trial_options, forms))
        return sinkproof_fail(error, "expected sinkproof_trial_options with its size, found %zu",
                              options->size);
    if (options != NULL) memcpy(&t->o, options, options->size < size ? options->size : size);
    if (t->o.policy == NULL) t->o.policy = "auto";
    if (t->o.name == NULL) t->o.name = sinkproof_trace_path(t->trace);
    if (!(t->o.rate >= 0 && t->o.rate < 1))
        return sinkproof_fail(error, "expected a rate between 0 and 1, found %g", t->o.rate);
    if (t->o.rate == 0) t->o.rate = 1e-9;
    if (t->o.truth_alone && t->o.truth == NULL)
        return sinkproof_fail(error, "truth_alone: expected a file of truth, found none");
    if (t->o.truth != NULL && (t->o.local || t->o.end_layer > 0 || t->o.adapter != NULL))
        return sinkproof_fail(error,
                              "a file of truth is compared end to end: expected all layers%s",
                              t->o.adapter != NULL ? ", and no adapter" : "");
    t->o.local = t->o.local || t->o.adapter != NULL; // the truth is that of the model alone
    if (t->o.end_layer == 0 && t->o.first_layer == 0) return true;
    t->o.local = true; // the truth end to end is that of all layers
    size_t layers = sinkproof_model_config(t->model)->n_layers;
    return (t->o.first_layer < t->o.end_layer && t->o.end_layer <= layers) ||
           sinkproof_fail(error, "layers %zu to %zu: expected some of %zu to %zu", t->o.first_layer,
                          t->o.end_layer > 0 ? t->o.end_layer - 1 : 0, (size_t)0, layers - 1);
}

// The files beside the trace.
static bool open_others(trial *t, sinkproof_error *error) {
    if (t->o.truth != NULL && (!sinkproof_truth_file_open(t->o.truth, t->model, &t->truth, error) ||
                               !sinkproof_truth_file_fits(&t->truth, t->trace, error)))
        return false;
    if (t->o.adapter == NULL) return ruled_adapter_is_given(t->trace, error);
    if (!ruled_adapter_open(t->o.adapter, t->model, t->trace, &t->adapter, error)) return false;
    t->model = t->adapter.view;
    return true;
}

static void close_others(trial *t) {
    sinkproof_truth_file_close(&t->truth);
    ruled_adapter_close(&t->adapter);
}

// Finds the known mistakes that explain the failing points.
static bool diagnose_outside(trial *t, sinkproof_ruling *r, sinkproof_error *error) {
    const sinkproof_diagnose_options how = {
        .rate = t->o.rate, .progress = t->o.progress != NULL ? pass_progress : NULL, .context = t};
    t->tried = "diagnosis";
    if (t->o.no_diagnosis) return true;
    if (!sinkproof_diagnose(t->model, t->trace, &r->judgement, &how, &r->diagnosis, error) ||
        !sinkproof_diagnose_alone(t->model, t->trace, &r->judgement, &how, &r->diagnosis, error))
        return false;
    sinkproof_diagnosis_place(&r->diagnosis, r->judgement.begins, r->judgement.n_sequences);
    return true;
}

// Tries in this order: a known override; the one that the diagnosis found; another policy; all that
// the diagnosis found; a deployment.
static void find_cause(trial *t, sinkproof_ruling *r) {
    sinkproof_judge_options how = trial_judge_options(t, false, "a cause");
    sinkproof_cause other;
    if (t->o.no_hint) return;
    r->asked = !t->o.no_diagnosis;
    if (sinkproof_diagnosis_isolates(&r->diagnosis)) return; // no arithmetic explains it
    r->explained = sinkproof_judge_cause(t->model, t->trace, &how, &r->judgement, &r->cause) ||
                   sinkproof_diagnosed_cause(t->model, t->trace, &how, &r->judgement, &r->diagnosis,
                                             &r->cause);
    if (r->explained && r->cause.n == 1) return;
    if (sinkproof_judge_other_policy(t->model, t->trace, &how, &r->judgement, &other) ||
        (!r->explained &&
         sinkproof_judge_deployment(t->model, t->trace, &how, &r->judgement, &other))) {
        r->explained = true;
        r->cause = other;
    }
}

// Whether the policy that explains the points leaves no gradient outside.
static bool explains_gradients(trial *t, const sinkproof_ruling *r) {
    sinkproof_judgement under = {.n_reports = 0};
    char first[40];
    return sinkproof_policy_parse(r->cause.policy, &under.policy, NULL) &&
           gradients_fit(t, &under, first);
}

// Compares with the file of truth alone: nothing is judged.
static bool compare_into(trial *t, sinkproof_ruling *r, sinkproof_error *error) {
    sinkproof_judgement *j = &r->judgement;
    bool stated = strcmp(t->o.policy, "auto") != 0;
    if (!sinkproof_policy_parse(stated ? t->o.policy : "real-f64", &j->policy, error)) return false;
    if (!stated) snprintf(j->policy.name, sizeof j->policy.name, "auto");
    j->verdict = SINKPROOF_VERDICT_UNDECIDED, j->thinnest_margin = INFINITY;
    j->certified = sinkproof_certified_alone(sinkproof_model_config(t->model), t->trace, &t->truth,
                                             &j->policy);
    if (j->certified == NULL) return sinkproof_fail(error, "no memory to compare with the truth");
    r->exit = ruled_exit(together(r), t->o.strict);
    return write_ruling_report(t, r, error);
}

static bool judge_into(trial *t, sinkproof_ruling *r, sinkproof_error *error) {
    if (!sinkproof_trace_model_note(t->trace, t->model, &r->model, error)) return false;
    if (r->model.text[0] != '\0') fprintf(t->out, "%s\n", r->model.text);
    print_head(t);
    if (t->adapter.said[0] != '\0') fprintf(t->out, "%s\n", t->adapter.said);
    if (t->o.truth_alone) return compare_into(t, r, error);
    if (!judge_stated(t, &r->judgement, error) || !judge_forms(t, &r->judgement, error)) {
        r->judgement = (sinkproof_judgement){.n_reports = 0}; // freed by the function that failed
        return false;
    }
    sinkproof_layer_range layers = {t->o.first_layer, t->o.end_layer};
    if (!sinkproof_judge_gradients(t->model, t->trace, &r->judgement.policy, layers, &r->gradients,
                                   error))
        return false;
    r->exit = ruled_exit(together(r), t->o.strict);
    if (r->gradients.first != NULL && !t->o.no_diagnosis)
        sinkproof_backward_explain(t->model, t->trace, &r->judgement.policy, &r->gradients);
    if (!diagnose_outside(t, r, error)) return false;
    find_cause(t, r);
    r->explained = r->explained && (r->gradients.first == NULL || explains_gradients(t, r));
    return write_ruling_report(t, r, error);
}

bool sinkproof_judge_trace(const sinkproof_model *model, const sinkproof_trace *trace,
                           const sinkproof_trial_options *options, sinkproof_ruling **ruling,
                           sinkproof_error *error) {
    trial t = {.model = model, .trace = trace};
    if (ruling == NULL) return sinkproof_fail(error, "expected a place for the ruling, found NULL");
    *ruling = NULL;
    if (model == NULL || trace == NULL)
        return sinkproof_fail(error, "expected a model and a trace, found NULL");
    if (!read_options(&t, options, error)) return false;
    if (t.o.any_model == 0 &&
        !sinkproof_file_matches_model(t.o.name, sinkproof_trace_file(trace), model, error))
        return false;
    if (!open_others(&t, error)) {
        close_others(&t);
        return false;
    }
    sinkproof_ruling *r = calloc(1, sizeof *r);
    size_t length;
    if (r != NULL) t.out = open_memstream(&r->text, &length);
    bool good =
        t.out != NULL ? judge_into(&t, r, error) : sinkproof_fail(error, "no memory for a report");
    close_others(&t);
    if (t.out != NULL && fclose(t.out) != 0 && good)
        good = sinkproof_fail(error, "no memory for a report");
    if (good)
        *ruling = r;
    else
        sinkproof_ruling_free(r);
    return good;
}

void sinkproof_ruling_free(sinkproof_ruling *ruling) {
    if (ruling == NULL) return;
    sinkproof_judgement_free(&ruling->judgement);
    sinkproof_diagnosis_free(&ruling->diagnosis);
    sinkproof_gradient_judgement_free(&ruling->gradients);
    json_decref(ruling->results);
    free(ruling->json);
    free(ruling->text);
    free(ruling);
}

json_t *sinkproof_ruling_results(const sinkproof_ruling *ruling) {
    return ruling->results;
}

const char *sinkproof_ruling_model_note(const sinkproof_ruling *ruling) {
    return ruling->model.text;
}

const char *sinkproof_ruling_declared_note(const sinkproof_ruling *ruling) {
    return ruling->declared.text;
}

bool sinkproof_ruling_asked_cause(const sinkproof_ruling *ruling) {
    return ruling->asked;
}

const sinkproof_judgement *sinkproof_ruling_judgement(const sinkproof_ruling *ruling) {
    return &ruling->judgement;
}

sinkproof_verdict sinkproof_ruling_verdict(const sinkproof_ruling *ruling) {
    return ruled_verdict(together(ruling));
}

int sinkproof_ruling_exit(const sinkproof_ruling *ruling) {
    return ruling->exit;
}

const char *sinkproof_ruling_policy(const sinkproof_ruling *ruling) {
    return ruling->judgement.policy.name;
}

const char *sinkproof_ruling_explained_by(const sinkproof_ruling *r) {
    if (!r->explained) return NULL;
    return r->cause.policy + (r->cause.n > 0 ? r->cause.at : 0);
}

const char *sinkproof_ruling_first(const sinkproof_ruling *ruling) {
    if (ruling->judgement.first != NULL) return ruling->judgement.first->name;
    return ruling->gradients.first != NULL ? ruling->gradients.first->name : NULL;
}

size_t sinkproof_ruling_undecided(const sinkproof_ruling *ruling) {
    return ruling->judgement.undecided + ruling->gradients.undecided;
}

const char *sinkproof_ruling_text(const sinkproof_ruling *ruling) {
    return ruling->text;
}

const char *sinkproof_ruling_json(const sinkproof_ruling *ruling) {
    return ruling->json;
}

const sinkproof_gradient_judgement *sinkproof_ruling_gradients(const sinkproof_ruling *ruling) {
    return &ruling->gradients;
}

size_t sinkproof_ruling_count(const sinkproof_ruling *ruling) {
    return ruling->judgement.n_reports + ruling->gradients.n_reports;
}

// ---- findings --------------------------------------------------------------------------------

bool sinkproof_ruling_at(const sinkproof_ruling *ruling, size_t i, sinkproof_finding *finding) {
    if (ruling == NULL || finding == NULL || i >= sinkproof_ruling_count(ruling)) return false;
    size_t points = ruling->judgement.n_reports;
    sinkproof_finding f = i < points ? ruled_finding(&ruling->judgement.reports[i])
                                     : gradient_finding(&ruling->gradients.reports[i - points]);
    f.size = finding->size < sizeof f ? finding->size : sizeof f;
    memcpy(finding, &f, f.size);
    return f.size >= sizeof f.size;
}

bool sinkproof_ruling_named(const sinkproof_ruling *ruling, const char *name,
                            sinkproof_finding *finding) {
    size_t points = ruling != NULL ? ruling->judgement.n_reports : 0;
    for (size_t i = 0; name != NULL && ruling != NULL && i < sinkproof_ruling_count(ruling); i++)
        if (strcmp(i < points ? ruling->judgement.reports[i].name
                              : ruling->gradients.reports[i - points].name,
                   name) == 0)
            return sinkproof_ruling_at(ruling, i, finding);
    return false;
}
