// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// False alarms of the forms: the reference with its attention weights from a float32 kernel of each
// form, and its experts' weights renormalised over all experts, judged under the generic policies:
// whole traces and traces that lack the scores and the weights. None may be outside, none
// suspicious. And at scores of hundreds, where the forms part, which of them each kernel's trace
// fits.
#include "audit/judge/judge_report.h"
#include "proofs/bounds/worst.h"
#include "tests/shared/forms_engine.h"
#include "tests/shared/judged.h"
#include "tests/shared/opened.h"

static const uint64_t SEED = 20260213;
static const kernel *form;
static uint64_t state;

// A7 to A10 by the kernel; the scores as float32 holds them.
static void softmax_by_form(const sinkproof_policy *policy, const sinkproof_block *block,
                            const double *b_i, const double *s_ij, double *alpha_ij) {
    static row r;
    static float alpha[MOST + 1];
    r.scale = (float)(1 / sqrt((double)block->head_dim));
    for (size_t i = 0; i < block->rows; i++) {
        r.b = (float)round_at(policy, AT_A8, b_i[i]);
        size_t last = block->first + i, first = sinkproof_mask_first(block->window, last);
        double *out = alpha_ij + i * (block->keys + 1);
        memset(out, 0, block->keys * sizeof *out);
        r.n = last + 1 - first;
        for (size_t j = 0; j < r.n; j++) {
            r.z[j] = (float)s_ij[i * block->keys + first + j];
            r.raw[j] = r.z[j] / r.scale;
        }
        machine f = draw_machine(&state);
        form->run(&f, &r, alpha);
        for (size_t j = 0; j < r.n; j++) out[first + j] = round_at(policy, AT_A9, alpha[j]);
        out[block->keys] = round_at(policy, AT_A9, alpha[r.n]);
    }
}

// M4: a softmax over all experts, the chosen over their sum.
static void router_renormalised(const sinkproof_policy *policy, const sinkproof_layer *layer,
                                size_t n, size_t n_chosen, const double *t_nc, double *logits_ne,
                                int32_t *chosen_nk, double *weights_nk, double *work) {
    size_t experts = layer->w_router.rows;
    sinkproof_router(policy, layer, n, n_chosen, t_nc, logits_ne, chosen_nk, weights_nk, work);
    for (size_t t = 0; t < n; t++) {
        const double *g = logits_ne + t * experts;
        const int32_t *chosen = chosen_nk + t * n_chosen;
        float sum = 0, kept = 0, p[SINKPROOF_MAX_CHOSEN], top = (float)g[chosen[0]];
        for (size_t e = 0; e < experts; e++) sum += expf((float)g[e] - top);
        for (size_t k = 0; k < n_chosen; k++) kept += p[k] = expf((float)g[chosen[k]] - top) / sum;
        for (size_t k = 0; k < n_chosen; k++)
            weights_nk[t * n_chosen + k] = round_at(policy, AT_M4, p[k] / kept);
    }
}

static const char *const kept[] = {NULL, "A4,A11,A13,M1,M2,M3,M8,M12", "T0,A13,M2,M3,M12,F1,F2"};
static const size_t lengths[] = {1, 9, 40}; // one token, one more than the window, many

static void honest(const sinkproof_stages *stages, const char *policy, const char *what) {
    size_t runs = 0, outside = 0, unlikely = 0, wrong = 0;
    double share = 0, drift = 0;
    for (uint64_t run = 0; run < 3; run++) {
        char spec[64];
        snprintf(spec, sizeof spec, "synthetic:tiny,layers=2,seed=%d", (int)run + 1);
        sinkproof_model *model = open_model(spec);
        sinkproof_judgement j =
            judged(model, stages, policy, policy, lengths[run], 0, SEED + run, kept[run]);
        for (size_t i = 0; i < j.n_reports; i++) {
            const sinkproof_point_report *r = &j.reports[i];
            outside += r->outside, unlikely += r->unlikely;
            share = sinkproof_keep_worst(share, r->share_worst);
            if (r->drift.bin >= 0)
                drift = sinkproof_keep_worst(drift, fabs(r->drift.gain) / r->drift.limit);
            if (r->verdict > SINKPROOF_VERDICT_WITHIN)
                note("%s: %s in run %d", r->name, sinkproof_verdict_name(r->verdict), (int)run);
        }
        wrong += j.verdict > SINKPROOF_VERDICT_WITHIN;
        runs++;
        sinkproof_judgement_free(&j);
        sinkproof_model_close(model);
    }
    ok(wrong == 0 && outside == 0 && unlikely == 0,
       "%s: %zu honest runs under %s, %zu outside, %zu unlikely worst=%.3g bound=1 (drift %.3g of "
       "1)",
       what, runs, policy, outside, unlikely, share, drift);
}

// A model whose scores reach hundreds: YaRN's concentration grows with the logarithm of the factor.
static const char steep[] =
    "{\"num_hidden_layers\": 2, \"num_experts\": 2, \"experts_per_token\": 1, \"vocab_size\": 97,"
    " \"hidden_size\": 64, \"intermediate_size\": 32, \"head_dim\": 16, \"num_attention_heads\": 4,"
    " \"num_key_value_heads\": 2, \"sliding_window\": 16, \"initial_context_length\": 4096,"
    " \"rope_scaling_factor\": 1e30}";

// What the judgement, its report and its JSON say of the forms that a trace fits: of A9, as bits.
typedef struct named_forms {
    sinkproof_verdict verdict;
    bool asked;
    unsigned fitting;
    char text[16384], json[64];
} named_forms;

static void describe(const sinkproof_model *model, const sinkproof_judgement *j, named_forms *f) {
    const sinkproof_config *config = sinkproof_model_config(model);
    FILE *out = fmemopen(f->text, sizeof f->text, "w");
    json_t *results = json_array();
    if (out == NULL) abort();
    sinkproof_judgement_print(out, config, j, true);
    fclose(out);
    sinkproof_judgement_json(results, "forms", config, j, NULL, 0);
    json_t *forms = json_object_get(json_array_get(results, 0), "forms");
    const char *one = json_string_value(json_object_get(forms, "A9.form"));
    snprintf(f->json, sizeof f->json, "%s", one != NULL ? one : "null");
    json_decref(results);
    f->verdict = j->verdict;
    f->asked = j->forms_asked[SINKPROOF_FORM_OF_A9];
    f->fitting = j->forms_fitting[SINKPROOF_FORM_OF_A9];
}

static void name_forms(const sinkproof_stages *stages, const char *policy, named_forms *f) {
    enum { N = 32 };
    sinkproof_model *model = open_config(steep);
    sinkproof_policy p;
    sinkproof_error error = {{0}};
    sinkproof_trace_writer *writer = NULL;
    sinkproof_trace *trace = NULL;
    sinkproof_judgement j;
    sinkproof_judge_options how = {.rate = 1e-9};
    judged_stages of = {stages, 0};
    int32_t tokens[N];
    char path[64];
    some_tokens(N, sinkproof_model_config(model)->vocab, SEED, tokens);
    snprintf(path, sizeof path, "/tmp/sinkproof-forms-%ld.safetensors", (long)getpid());
    bool fine =
        sinkproof_policy_parse(policy, &p, &error) &&
        sinkproof_trace_writer_new(path, model, &p, "forms", NULL, N, &writer, &error) &&
        run_stages(&of, model, &p, N, tokens, sinkproof_trace_writer_observer(writer), &error) &&
        sinkproof_trace_writer_finish(writer, tokens, &error) &&
        sinkproof_trace_open(path, sinkproof_model_config(model), &trace, &error) &&
        sinkproof_judge(model, trace, &p, &how, &j, &error) &&
        sinkproof_judge_forms(model, trace, &how, &j, &error);
    need(fine, &error);
    describe(model, &j, f);
    sinkproof_judgement_free(&j);
    sinkproof_trace_close(trace);
    sinkproof_trace_writer_free(writer);
    sinkproof_model_close(model);
    unlink(path);
}

// The kernel that a test's mixture gives to the heads in turn.
static const kernel *mixed[2];
static size_t mixed_calls;

static void softmax_mixed(const sinkproof_policy *policy, const sinkproof_block *block,
                          const double *b_i, const double *s_ij, double *alpha_ij) {
    form = mixed[mixed_calls++ % 2];
    softmax_by_form(policy, block, b_i, s_ij, alpha_ij);
}

static const kernel *kernel_named(const char *name) {
    for (size_t k = 0; k < KERNELS; k++)
        if (strcmp(kernels[k].name, name) == 0) return &kernels[k];
    abort();
}

static void names_of(const char *policy, const char *first, const char *second, named_forms *f) {
    sinkproof_stages stages = sinkproof_reference_stages;
    mixed[0] = kernel_named(first), mixed[1] = kernel_named(second);
    mixed_calls = 0, state = SEED;
    stages.softmax_sink = softmax_mixed;
    name_forms(&stages, policy, f);
}

// No honest kernel's own form is refuted, and at these scores some forms are.
static void own_forms_fit(void) {
    size_t own = 0, single = 0, refuted = 0;
    named_forms f;
    for (size_t k = 0; k < KERNELS; k++) {
        names_of("f32", kernels[k].name, kernels[k].name, &f);
        refuted += !(f.fitting & 1u << SINKPROOF_FORM_DEFINITION);
        for (int form_a = 0; sinkproof_form_name(SINKPROOF_FORM_OF_A9, form_a) != NULL; form_a++) {
            if (strcmp(kernels[k].forms, sinkproof_form_name(SINKPROOF_FORM_OF_A9, form_a)) != 0)
                continue;
            single++;
            own += f.verdict == SINKPROOF_VERDICT_WITHIN && (f.fitting >> form_a & 1);
        }
    }
    ok(single > 0 && own == single && refuted > 0,
       "bound.form-base2 bound.form-lse %zu of %zu kernels fit their own form; the definition is "
       "refuted for %zu of %d",
       own, single, refuted, KERNELS);
}

static void named(void) {
    named_forms f;
    names_of("f32", "exp(s - LSE) in base 2", "exp(s - LSE) in base 2", &f);
    ok(strstr(f.text, "A9 fits one form only: lse-subtracted (not definition, base-2, running-max, "
                      "lse-gated).\n") != NULL &&
           strcmp(f.json, "lse-subtracted") == 0,
       "bound.form-lse one form fits, and the report and JSON name it");
    names_of("f32", "the definition", "the definition", &f);
    ok(strstr(f.text, "A9 fits several forms: definition, base-2, running-max, lse-subtracted, "
                      "lse-gated.\n") != NULL &&
           strcmp(f.json, "null") == 0,
       "bound.softmax-sink the definition at the same scores fits every form, and none is named");
    names_of("f32,A9.form=base-2|running-max", "base 2 unfused", "exp(s - LSE)", &f);
    ok(f.verdict == SINKPROOF_VERDICT_WITHIN && f.asked && f.fitting == 0 &&
           strstr(f.text, "A9 fits no form alone, only the hull of base-2, running-max.\n") !=
               NULL &&
           strcmp(f.json, "null") == 0,
       "bound.form-base2 two kernels in turn fit the hull of two forms, neither alone");
    names_of("f32,A9.form=base-2", "base 2 unfused", "base 2 unfused", &f);
    ok(f.verdict == SINKPROOF_VERDICT_WITHIN && !f.asked && strstr(f.text, "A9 fits") == NULL,
       "bound.form-base2 a policy that admits one form is not asked");
    names_of("f32,A9.form=definition|running-max", "base 2 unfused", "base 2 unfused", &f);
    ok(f.verdict == SINKPROOF_VERDICT_BUG && !f.asked && strstr(f.text, "A9 fits") == NULL,
       "bound.form-base2 nor a trace that does not fit");
}

int main(void) {
    own_forms_fit();
    named();
    static const char *const policies[] = {"f32", "bf16"};
    char what[120];
    for (size_t p = 0; p < 2; p++) {
        for (size_t k = 0; k < KERNELS; k++) {
            sinkproof_stages stages = sinkproof_reference_stages;
            form = &kernels[k], state = SEED;
            stages.softmax_sink = softmax_by_form;
            snprintf(what, sizeof what, "%s %s", form->id, form->name);
            honest(&stages, policies[p], what);
        }
        sinkproof_stages stages = sinkproof_reference_stages;
        stages.router = router_renormalised;
        honest(&stages, policies[p], "bound.form-router renormalised over all experts");
    }
    return tap_done();
}
