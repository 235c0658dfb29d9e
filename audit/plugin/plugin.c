// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// From the options to a report: drives a plug-in, writes inputs to files, or collects outputs from
// files.
#include "audit/plugin/drive.h"

#include "base/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STAGES = 32 };

// The parsed command line.
typedef struct trial {
    const sinkproof_plugin_options *o;
    call_driver driver;
    const call_opener *opener;
    sinkproof_policy made; // of collected calls: in whose formats their inputs are
    stage_case base;       // sizes that are not varied
    case_plan plan;        // of the current stage, or of all
    stage_result results[MOST_STAGES];
    stage_kinds *collected; // [MOST_STAGES], of outputs in files
    size_t n_results;
    lse_kinds lse; // of the collected calls that have A9.lse
} trial;

// ---- words -----------------------------------------------------------------------------------

// Whether the list names the stage; NULL names all.
static bool stage_is_listed(const char *list, const stage_row *stage) {
    for (const char *word = list; word != NULL && *word != '\0';) {
        size_t length = strcspn(word, ",");
        if (stage_named(word, length) == stage) return true;
        word += length + (word[length] == ',');
    }
    return list == NULL;
}

static bool check_stages(const char *list, sinkproof_error *error) {
    for (const char *word = list; word != NULL && *word != '\0';) {
        size_t length = strcspn(word, ",");
        if (stage_named(word, length) == NULL) return stage_name_error(word, length, error);
        word += length + (word[length] == ',');
    }
    return true;
}

bool sinkproof_plugin_check(const sinkproof_plugin_options *o, sinkproof_error *error) {
    const stage_case base = {.n = 1, .heads = 1, .kv = 1, .dim = 2};
    stage_case c;
    return check_stages(o->stages, error) &&
           (o->only == NULL || case_parse(o->only, &base, &c, error)) &&
           (o->policy == NULL || sinkproof_policy_check(o->policy, error));
}

// ---- sizes -----------------------------------------------------------------------------------

static bool use_model_sizes(trial *t, const char *spec, sinkproof_error *error) {
    sinkproof_model *model;
    const sinkproof_config *f = &t->driver.config;
    if (spec == NULL) {
        sinkproof_config_named("tiny", &t->driver.config);
        t->base = (stage_case){.n = 17, .heads = 4, .kv = 2, .dim = 64, .hidden = 96};
        t->base.inter = 48, t->base.experts = 5, t->base.chosen = 3, t->base.vocab = 40;
    } else {
        if (!sinkproof_model_inspect(spec, &model, error)) return false;
        t->driver.config = *sinkproof_model_config(model);
        sinkproof_model_close(model);
        if (f->architecture != SINKPROOF_GPT_OSS)
            return sinkproof_fail(error, "%.400s: the stages of a plug-in are GPT-OSS's, found %s",
                                  spec, sinkproof_architecture_name(f->architecture));
        t->base = (stage_case){.n = 17, .heads = f->n_heads, .kv = f->n_kv_heads};
        t->base.dim = f->head_dim, t->base.hidden = f->hidden, t->base.inter = f->inter;
        t->base.experts = f->n_experts, t->base.chosen = f->n_chosen, t->base.vocab = f->vocab;
        t->base.window = f->window;
    }
    t->base.seed = t->o->seed;
    t->base.lse = t->driver.maker.lse.has;
    t->base.dlse = t->base.lse || t->o->emit != NULL || t->o->collect != NULL;
    return true;
}

static bool plan_stage(trial *t, const stage_row *stage, sinkproof_error *error) {
    stage_case base = t->base;
    size_t from = t->plan.count;
    base.stage = stage;
    return plan_add_stage_cases(&base, t->o->model != NULL, &t->plan, error) &&
           (t->o->limit == 0 || plan_keep_some(&t->plan, from, t->o->limit, error));
}

// ---- driving ---------------------------------------------------------------------------------

static bool has_stage(const trial *t, const stage_row *stage) {
    return t->driver.maker.has_stage(t->driver.maker.context, stage);
}

static bool no_such_stage(const trial *t, const stage_row *stage, sinkproof_error *error) {
    const char *name = t->o->path != NULL ? t->o->path : t->driver.maker.name;
    return sinkproof_fail(error, "%.400s: it has no stage %s", name, stage->name);
}

static bool drive_one(trial *t, const stage_row *stage, sinkproof_error *error) {
    t->plan.count = 0;
    return plan_stage(t, stage, error) &&
           driver_run_stage(&t->driver, &t->plan, &t->results[t->n_results++], error);
}

static bool drive_only(trial *t, sinkproof_error *error) {
    stage_case c;
    case_plan one = {1, 1, &c};
    if (!case_parse(t->o->only, &t->base, &c, error)) return false;
    if (!has_stage(t, c.stage)) return no_such_stage(t, c.stage, error);
    return driver_run_stage(&t->driver, &one, &t->results[t->n_results++], error);
}

static bool drive_all(trial *t, sinkproof_error *error) {
    const stage_row *stage;
    if (t->o->only != NULL) return drive_only(t, error);
    for (size_t i = 0; (stage = stage_at(i)) != NULL; i++) {
        bool has = has_stage(t, stage);
        if (!has && t->o->stages != NULL && stage_is_listed(t->o->stages, stage))
            return no_such_stage(t, stage, error);
        if (has && stage_is_listed(t->o->stages, stage) && !drive_one(t, stage, error))
            return false;
    }
    return true;
}

// ---- out of process --------------------------------------------------------------------------

static void say_size(const sinkproof_plugin_options *o, size_t calls, size_t left_out,
                     double bytes) {
    char text[512];
    size_t used = (size_t)snprintf(text, sizeof text, "Writing %s, at most %.0f bytes",
                                   sinkproof_counted(calls, "call").text, bytes);
    if (left_out > 0)
        snprintf(text + used, sizeof text - used, "; without %s of more than half a GiB",
                 sinkproof_counted(left_out, "call").text);
    if (o->writes != NULL) o->writes(o->context, text);
}

static bool emit_cases(trial *t, sinkproof_error *error) {
    const stage_row *stage;
    for (size_t i = 0; (stage = stage_at(i)) != NULL; i++)
        if (stage_is_listed(t->o->stages, stage) && !plan_stage(t, stage, error)) return false;
    size_t all = t->plan.count, kept = 0;
    for (size_t i = 0; i < all; i++)
        if (!case_is_too_large(&t->plan.cases[i], &t->driver.config))
            t->plan.cases[kept++] = t->plan.cases[i];
    t->plan.count = kept;
    double bytes = cases_bytes(&t->plan, &t->driver.config, &t->driver.policy);
    if (!cases_have_room(t->o->emit, kept, bytes, error)) return false;
    say_size(t->o, kept, all - kept, bytes);
    return cases_write_inputs(t->o->emit, &t->plan, &t->driver.config, &t->driver.policy,
                              t->o->model, error);
}

// As both kinds, until a call has A9.lse.
static stage_kinds *collected_stage(trial *t, const stage_row *stage) {
    const lse_kinds open = {.has = true, .as = {true, true}};
    for (size_t i = 0; i < t->n_results; i++)
        if (t->collected[i].of[0].stage == stage) return &t->collected[i];
    t->collected[t->n_results] = stage_kinds_begin(stage, open);
    return &t->collected[t->n_results++];
}

static bool remake_collected(void *context, const stage_case *c, call_arrays *a, bool *there,
                             sinkproof_error *error) {
    const trial *t = context;
    stage_case with = *c;
    lse_kinds lse;
    *there = false;
    return arrays_make(c, &t->driver.config, &t->made, a, error) &&
           case_read_outputs(t->o->collect, &with, a, there, &lse, error);
}

// What the calls say of A9.lse is the same in all of them.
static bool same_lse(trial *t, const stage_case *c, const lse_kinds *lse, sinkproof_error *error) {
    bool same = !t->lse.has || memcmp(&t->lse, lse, sizeof *lse) == 0;
    if (!t->lse.has) t->lse = *lse;
    return same ||
           sinkproof_fail(error,
                          "%.300s/%05zu.out.safetensors: its metadata say something else of "
                          "A9.lse than those of the outputs before it",
                          t->o->collect, c->number);
}

static bool collect_case(trial *t, size_t i, bool *any, sinkproof_error *error) {
    stage_case *c = &t->plan.cases[i];
    call_arrays a;
    case_outcome out[LSE_KINDS] = {{.served = false}};
    lse_kinds lse = lse_of_kind(false, LSE_WITH_SINK);
    bool there = false;
    bool good = arrays_make(c, &t->driver.config, &t->made, &a, error) &&
                case_read_outputs(t->o->collect, c, &a, &there, &lse, error) &&
                (!there || !case_has_lse(c) || same_lse(t, c, &lse, error));
    stage_kinds *k = good ? collected_stage(t, c->stage) : NULL;
    if (good && there && case_has_lse(c) && k->with_lse == 0) stage_kinds_say(k, lse);
    if (good && there)
        good = case_judge(c, &a, &t->driver.policy, t->driver.rate, &k->lse, out, error);
    arrays_free(&a);
    *any = *any || there;
    if (good) stage_kinds_add(k, c, out);
    if (good) stage_kinds_narrow(k);
    return good;
}

// Refuses another model than the one the inputs were made for: they are made again from the model's
// sizes and constants, and honest outputs would then be called a bug.
static bool check_made_for(const trial *t, const char *model, sinkproof_error *error) {
    if (t->o->model == NULL || t->o->any_model || strcmp(t->o->model, model) == 0) return true;
    return sinkproof_fail(error,
                          "%.400s: its inputs were made for %.300s, not for MODEL %.300s: leave "
                          "MODEL out, or say that any will do (--any-model)",
                          t->o->collect, model[0] != '\0' ? model : "small sizes, without a MODEL",
                          t->o->model);
}

// The policy that the manifest tells made the inputs; the engine is judged under it, or another.
static bool read_policies(trial *t, const char *told, sinkproof_error *error) {
    sinkproof_error said;
    if (!sinkproof_policy_parse(told, &t->made, &said))
        return sinkproof_fail(error, "%.400s/manifest.json: policy: %.500s", t->o->collect,
                              said.text);
    return sinkproof_policy_parse(t->o->policy != NULL ? t->o->policy : told, &t->driver.policy,
                                  error);
}

static bool collect_cases(trial *t, sinkproof_error *error) {
    char policy[SINKPROOF_POLICY_NAME], model[1024];
    bool any = false;
    if (!cases_read_manifest(t->o->collect, &t->base, &t->plan, policy, model, error) ||
        !check_made_for(t, model, error))
        return false;
    if (!use_model_sizes(t,
                         t->o->model != NULL ? t->o->model
                         : model[0] != '\0'  ? model
                                             : NULL,
                         error))
        return false;
    t->collected = calloc(MOST_STAGES, sizeof *t->collected);
    if (t->collected == NULL) return sinkproof_fail(error, "%s: no memory", t->o->collect);
    if (!read_policies(t, policy, error)) return false;
    for (size_t i = 0; i < t->plan.count; i++)
        if (!collect_case(t, i, &any, error)) return false;
    for (size_t i = 0; i < t->n_results; i++) stage_kinds_settle(&t->collected[i], &t->results[i]);
    return any || sinkproof_fail(error, "%s: expected outputs beside the inputs, found none",
                                 t->o->collect);
}

// ---- the report ------------------------------------------------------------------------------

// Quotes a word of a command line for a shell.
static void quote_for_shell(const char *word, char *text, size_t size) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./:,=+@?";
    size_t used = 0, length = strlen(word);
    if (strspn(word, plain) == length && length > 0) {
        snprintf(text, size, "%s", word);
        return;
    }
    text[used++] = '\'';
    for (size_t i = 0; i < length && used + 8 < size; i++)
        used +=
            (size_t)snprintf(text + used, size - used, word[i] == '\'' ? "'\\''" : "%c", word[i]);
    snprintf(text + used, size - used, "'");
}

// Writes a command such as "sinkproof judge --plugin ./mine.so --policy f32 MODEL".
static void command_line_text(const trial *t, char *text, size_t size) {
    char word[5000];
    quote_for_shell(t->o->path, word, sizeof word);
    size_t used = (size_t)snprintf(text, size, "sinkproof judge --plugin %s", word);
    if (t->o->policy != NULL && used < size) {
        quote_for_shell(t->o->policy, word, sizeof word);
        used += (size_t)snprintf(text + used, size - used, " --policy %s", word);
    }
    if (t->o->model != NULL && used < size) {
        quote_for_shell(t->o->model, word, sizeof word);
        snprintf(text + used, size - used, " %s", word);
    }
}

static bool remake_driven(void *context, const stage_case *c, call_arrays *a, bool *there,
                          sinkproof_error *error) {
    const trial *t = context;
    return driver_remake(&t->driver, c, a, there, error);
}

static bool find_causes(trial *t, sinkproof_error *error) {
    const case_source source = {t->o->collect != NULL ? remake_collected : remake_driven, t};
    for (size_t i = 0; i < t->n_results && !t->o->no_cause; i++)
        if (!stage_result_find_cause(&source, &t->driver.policy, t->driver.rate, &t->results[i],
                                     error))
            return false;
    return true;
}

static bool tell_results(trial *t, sinkproof_plugin_ruling *ruling, sinkproof_error *error) {
    char title[400 + SINKPROOF_POLICY_NAME], again[12000];
    int code = results_exit_code(t->results, t->n_results, t->o->strict);
    const char *name = t->o->collect != NULL ? t->o->collect : t->driver.maker.name;
    snprintf(title, sizeof title, "%.300s under %s", name, t->driver.policy.name);
    sinkproof_make_printable(title);
    if (!find_causes(t, error)) return false;
    if (t->o->path != NULL) command_line_text(t, again, sizeof again);
    return results_write_report(t->results, t->n_results, title, t->o->path != NULL ? again : NULL,
                                code, ruling, error);
}

static bool run_plugin_trial(trial *t, sinkproof_plugin_ruling *ruling, sinkproof_error *error) {
    const sinkproof_plugin_options *o = t->o;
    const char *policy = o->policy != NULL ? o->policy : "f32";
    if (o->collect != NULL)
        return use_model_sizes(t, NULL, error) && collect_cases(t, error) &&
               tell_results(t, ruling, error);
    if (o->emit == NULL && !t->opener->open(o, &t->driver.maker, error)) return false;
    if (o->emit == NULL && o->policy == NULL) policy = t->driver.maker.policy;
    if (!sinkproof_policy_parse(policy, &t->driver.policy, error)) return false;
    if (!use_model_sizes(t, o->model, error)) return false;
    if (o->emit == NULL) return drive_all(t, error) && tell_results(t, ruling, error);
    size_t length = strlen(o->emit) + 64;
    ruling->text = emit_cases(t, error) ? malloc(length) : NULL;
    ruling->results = json_array();
    if (ruling->text == NULL) return false;
    snprintf(ruling->text, length, "%s in %s\n", sinkproof_counted(t->plan.count, "call").text,
             o->emit);
    return true;
}

bool plugin_judge_through(const call_opener *opener, const sinkproof_plugin_options *options,
                          sinkproof_plugin_ruling *ruling, sinkproof_error *error) {
    trial *t = calloc(1, sizeof *t);
    *ruling = (sinkproof_plugin_ruling){.exit = 0};
    if (t == NULL) return sinkproof_fail(error, "no memory to judge a plug-in");
    t->o = options;
    t->opener = opener;
    t->driver.rate = options->rate;
    t->driver.first = options->first;
    t->driver.progress = options->progress;
    t->driver.context = options->context;
    bool good = run_plugin_trial(t, ruling, error);
    if (t->driver.maker.context != NULL) opener->close(&t->driver.maker);
    free(t->plan.cases);
    free(t->collected);
    free(t);
    if (good) return true;
    json_decref(ruling->results);
    free(ruling->text);
    *ruling = (sinkproof_plugin_ruling){.exit = 0};
    return false;
}
