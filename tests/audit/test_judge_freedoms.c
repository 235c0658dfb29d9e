// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Whole engines with the freedoms that engines showed, judged: a norm rounded before its weight,
// exponentials rounded before they meet the values, values read before they are rounded, angles by
// a running product, the concentration first, an exponential that errs more the larger its
// argument, a quotient that is off; matrix units and ranks. Each is acquitted by the policy that
// says so and convicted by the one that does not; mistakes are convicted under both.
#include "tests/shared/judged.h"
#include "tests/shared/opened.h"

#include <string.h>

static const sinkproof_stages *const ref = &sinkproof_reference_stages;
static const uint64_t SEED = 20261123;
enum { TOKENS = 24, FAR = 300 }; // FAR: where a product has run for long

static sinkproof_model *model;
static const sinkproof_config *config;

static sinkproof_policy without(const sinkproof_policy *policy, sinkproof_point point) {
    sinkproof_policy p = *policy;
    p.at[point] = (sinkproof_rounding){.format = SINKPROOF_REAL, .optional = false};
    return p;
}

static void round_all(const sinkproof_policy *policy, sinkproof_point point, size_t n, double *x) {
    for (size_t i = 0; i < n; i++) x[i] = round_at(policy, point, x[i]);
}

// ---- engines ------------------------------------------------------------------------------------

// The up-projections stay in float32 until the activation has read them, the down-projections until
// the mixture has.
static double down_unrounded[FAR * 8 * 256];
static void experts_unrounded(const sinkproof_policy *p, const sinkproof_config *c,
                              const sinkproof_layer *layer, size_t n, const double *t,
                              const int32_t *chosen, const sinkproof_expert_outputs *out,
                              double *work) {
    sinkproof_policy open = without(p, AT_M6);
    open = without(&open, AT_M10);
    ref->experts(&open, c, layer, n, t, chosen, out, work);
    size_t slots = n * c->n_chosen;
    memcpy(down_unrounded, out->down, slots * c->hidden * sizeof *out->down);
    round_all(p, AT_M6, slots * 2 * c->inter, out->up);
    round_all(p, AT_M10, slots * c->hidden, out->down);
}
static void mixture_of_unrounded(const sinkproof_policy *p, size_t n, size_t k, size_t hidden,
                                 const int32_t *chosen, const double *w, const double *down,
                                 double *out) {
    (void)down;
    ref->mixture(p, n, k, hidden, chosen, w, down_unrounded, out);
}

// One kernel adds the residual and takes the norm: the mean square of M1 is of the unrounded sum.
static double residual_before[FAR * 256], added[FAR * 256];
static void output_kept(const sinkproof_policy *p, const sinkproof_layer *layer, size_t n,
                        const double *o, double *out, double *work) {
    ref->output(p, layer, n, o, out, work);
    memcpy(added, out, n * config->hidden * sizeof *out);
}
static void norm_of_unrounded(const sinkproof_policy *p, sinkproof_point point,
                              const sinkproof_matrix *scale, double eps, size_t n, const double *x,
                              double *out, double *work) {
    size_t d = scale->cols;
    ref->rmsnorm(p, point, scale, eps, n, x, out, work);
    if (point == AT_A1) memcpy(residual_before, x, n * d * sizeof *x);
    if (point != AT_M1) return;
    sinkproof_matrix_row(scale, 0, work);
    for (size_t t = 0; t < n; t++) {
        double sum = 0;
        for (size_t c = t * d; c < (t + 1) * d; c++)
            sum += (residual_before[c] + added[c]) * (residual_before[c] + added[c]);
        double inverse = 1 / sqrt(sum / (double)d + eps);
        for (size_t c = 0; c < d; c++)
            out[t * d + c] = round_at(p, point, x[t * d + c] * inverse * work[c]);
    }
}

// Rotations of their own: positions are the tokens' places, the table is not read. Frequencies as
// the reference has them, or by a running product; the concentration in the table or first.
static void rotate(const sinkproof_policy *p, size_t n, size_t heads, size_t d, bool running,
                   bool first, double *x) {
    double freq_p[256], low, high, c = sinkproof_yarn_concentration(config);
    sinkproof_yarn_frequencies(p, config, freq_p);
    sinkproof_yarn_range(config, p->yarn_truncate || config->rotation.truncate, &low, &high);
    c = (float)round_at(p, AT_A4_CONC, c);
    float ratio = (float)pow(config->rotation.theta, -2.0 / (double)d);
    for (size_t t = 0; t < n; t++) {
        float product = (float)t;
        for (size_t i = 0; i < d / 2; i++, product *= ratio) {
            float ramp = ((float)i - (float)low) / ((float)high - (float)low);
            float keep = 1 - fminf(1, fmaxf(0, ramp)), slow = 1 / (float)config->rotation.factor;
            float angle = (float)t * (float)freq_p[i];
            if (running) angle = slow * product * (1 - keep) + product * keep;
            double more = first ? 1 : c;
            double cosine = round_at(p, AT_A4_COS, (float)cosf(angle) * more);
            double sine = round_at(p, AT_A4_COS, (float)sinf(angle) * more);
            for (size_t h = 0; h < heads; h++) {
                double *a = &x[(t * heads + h) * d + i], *b = a + d / 2;
                double u = first ? round_at(p, AT_A4_SCALED, *a * c) : *a;
                double v = first ? round_at(p, AT_A4_SCALED, *b * c) : *b;
#define PROD(y) round_at(p, AT_A4_PROD, (y))
                *a = round_at(p, AT_A4, PROD(u * cosine) - PROD(v * sine));
                *b = round_at(p, AT_A4, PROD(v * cosine) + PROD(u * sine));
#undef PROD
            }
        }
    }
}
static void rope_running(const sinkproof_policy *p, size_t n, size_t heads, size_t d,
                         const double *c, const double *s, double *x) {
    (void)c, (void)s;
    rotate(p, n, heads, d, true, false, x);
}
static void rope_scaled_first(const sinkproof_policy *p, size_t n, size_t heads, size_t d,
                              const double *c, const double *s, double *x) {
    (void)c, (void)s;
    rotate(p, n, heads, d, false, true, x);
}

// e^x as 2^(x log2 e), that product rounded.
static double exp_by_product(double x) {
    float y = (float)x * 1.44269502f;
    return (float)exp2((double)y);
}
static double quotient_off(const sinkproof_policy *p, double e, double z, double ulps) {
    double x = e / (float)z;
    return round_at(p, AT_A9, x + ulps * sinkproof_ulp(SINKPROOF_F32, x));
}

// A softmax whose exponentials are `e_to` and whose quotients are off by `ulps`.
static void softmax_with(const sinkproof_policy *p, const sinkproof_block *block, const double *b,
                         const double *s, double *a, double (*e_to)(double), double ulps) {
    for (size_t i = 0; i < block->rows; i++) {
        size_t last = block->first + i, first = sinkproof_mask_first(block->window, last);
        double *row = a + i * (block->keys + 1), m = b[i], z;
        const double *s_j = s + i * block->keys;
        memset(row, 0, block->keys * sizeof *row);
        for (size_t j = first; j <= last; j++) m = fmax(m, s_j[j]);
        row[block->keys] = z = e_to((float)b[i] - (float)m);
        for (size_t j = first; j <= last; j++) z += row[j] = e_to((float)s_j[j] - (float)m);
        for (size_t j = first; j <= last; j++) row[j] = quotient_off(p, row[j], z, ulps);
        row[block->keys] = quotient_off(p, row[block->keys], z, ulps);
    }
}
static void softmax_growing(const sinkproof_policy *p, const sinkproof_block *block,
                            const double *b, const double *s, double *a) {
    softmax_with(p, block, b, s, a, exp_by_product, 0);
}
static void softmax_divided(const sinkproof_policy *p, const sinkproof_block *block,
                            const double *b, const double *s, double *a) {
    softmax_with(p, block, b, s, a, exp, 100);
}
static void softmax_divided_worse(const sinkproof_policy *p, const sinkproof_block *block,
                                  const double *b, const double *s, double *a) {
    softmax_with(p, block, b, s, a, exp, 400);
}

// ---- mistakes -----------------------------------------------------------------------------------

static void values_wide(const sinkproof_policy *p, const sinkproof_block *block, const double *a,
                        const double *v, double *o) {
    ref->values(p, block, a, v, o);
    for (size_t i = 0; i < block->rows; i++)
        for (size_t d = 0; d < block->head_dim; d++)
            o[i * block->q_stride + d] = round_at(p, AT_A11, o[i * block->q_stride + d] * 1.02);
}
static void rmsnorm_small_eps(const sinkproof_policy *p, sinkproof_point point,
                              const sinkproof_matrix *scale, double eps, size_t n, const double *x,
                              double *out, double *work) {
    ref->rmsnorm(p, point, scale, point == AT_A1 ? 1e-2 : eps, n, x, out, work);
}
static void rope_plain_magnitude(const sinkproof_policy *p, size_t n, size_t heads, size_t d,
                                 const double *c, const double *s, double *x) {
    double concentration = sinkproof_yarn_concentration(config);
    for (size_t i = 0; i < n * heads * d; i++) x[i] /= concentration;
    ref->rope(p, n, heads, d, c, s, x);
}

static const struct mistake {
    const char *name, *point; // where it is convicted first
    sinkproof_stages stages;
} mistakes[] = {
    {"the sink dropped", "00.A11", {.sink_logits = logits_gone}},
    {"values 2 % too large", "00.A11", {.values = values_wide}},
    {"eps of 0.01", "00.A1", {.rmsnorm = rmsnorm_small_eps}},
    {"the concentration left out", "00.A4.q", {.rope = rope_plain_magnitude}},
};
enum { MISTAKES = sizeof mistakes / sizeof *mistakes };

// ---- judged -------------------------------------------------------------------------------------

// `stages` has what is not the reference's.
static sinkproof_stages engine_of(const sinkproof_stages *stages) {
    sinkproof_stages s = *ref;
    if (stages->rmsnorm != NULL) s.rmsnorm = stages->rmsnorm;
    if (stages->rope != NULL) s.rope = stages->rope;
    if (stages->scores != NULL) s.scores = stages->scores;
    if (stages->sink_logits != NULL) s.sink_logits = stages->sink_logits;
    if (stages->softmax_sink != NULL) s.softmax_sink = stages->softmax_sink;
    if (stages->values != NULL) s.values = stages->values;
    if (stages->output != NULL) s.output = stages->output;
    if (stages->experts != NULL) s.experts = stages->experts;
    if (stages->mixture != NULL) s.mixture = stages->mixture;
    return s;
}

static sinkproof_judgement run(const sinkproof_stages *stages, const char *runs,
                               const char *declared, const char *points) {
    sinkproof_stages s = engine_of(stages);
    size_t n = stages->rope == rope_running ? FAR : TOKENS;
    return judged(model, &s, runs, declared, n, 0, SEED, points);
}

static const sinkproof_point_report *report_at(const sinkproof_judgement *j, const char *name) {
    for (size_t i = 0; i < j->n_reports; i++)
        if (strcmp(j->reports[i].name, name) == 0) return &j->reports[i];
    return NULL;
}

// Acquitted under `own`; under `bare`, which says nothing of the freedom, outside at `point` alone.
static const struct engine {
    const char *id, *name, *runs, *own, *bare, *points, *at;
    sinkproof_stages stages;
} engines[] = {
    {"bound.norm-rounded",
     "norms rounded before their weight",
     "openai-bf16,A1.norm=bf16,M1.norm=bf16,F1.norm=bf16",
     "openai-bf16,A1.norm=bf16,M1.norm=bf16,F1.norm=bf16",
     "openai-bf16",
     NULL,
     "00.A1",
     {0}},
    {"bound.norm-rounded",
     "the same to bf16, which leaves open where a norm is rounded",
     "openai-bf16,A1.norm=bf16,M1.norm=bf16,F1.norm=bf16",
     "bf16",
     "bf16,A1.norm=real,M1.norm=real,F1.norm=real",
     NULL,
     "00.A1",
     {0}},
    {"bound.norm-rounded",
     "the same to f16",
     "f16,A1.norm=f16,M1.norm=f16,F1.norm=f16,A9.unnorm=real",
     "f16",
     "f16,A1.norm=real,M1.norm=real,F1.norm=real",
     NULL,
     "00.A1",
     {0}},
    {"bound.unnormalised",
     "exponentials rounded, divided later",
     "bf16,A9.form=definition,A9.max=real,A9=real,A9.unnorm=bf16",
     "bf16,A9.form=definition,A9.max=real,A9=real,A9.unnorm=bf16",
     "bf16,A9.form=definition,A9.max=real,A9=real,A9.unnorm=real,A11.part=real",
     one_pass_points,
     "00.A11",
     {0}},
    {"bound.unnormalised",
     "the same to vllm-bf16, which leaves the shift open",
     "vllm-bf16",
     "vllm-bf16",
     "vllm-bf16,A9.unnorm=real",
     one_pass_points,
     "00.A11",
     {0}},
    {"bound.unnormalised",
     "the same to bf16, which leaves open where the weights are rounded",
     "bf16,A9.form=definition,A9.max=real,A9=real,A9.unnorm=bf16",
     "bf16",
     "bf16,A9.unnorm=real,A11.part=real",
     one_pass_points,
     "00.A11",
     {0}},
    {"bound.unnormalised",
     "the same to f16",
     "f16,A9.form=definition,A9.max=real,A9=real,A9.unnorm=f16",
     "f16",
     "f16,A9.unnorm=real,A11.part=real",
     one_pass_points,
     "00.A11",
     {0}},
    {"bound.unrounded",
     "projections of experts read before they are rounded",
     "openai-bf16",
     "openai-bf16,unrounded=M6|M10",
     "openai-bf16",
     NULL,
     "00.M8",
     {.experts = experts_unrounded, .mixture = mixture_of_unrounded}},
    {"bound.unrounded",
     "the norm's mean square of the sum before it is rounded",
     "openai-bf16",
     "openai-bf16,unrounded=A13",
     "openai-bf16",
     NULL,
     "00.M1",
     {.rmsnorm = norm_of_unrounded, .output = output_kept}},
    {"bound.form-running-angle",
     "angles by a running product",
     "f32,yarn=truncate",
     "f32,yarn=truncate,A4.freq.form=running-product",
     "f32,yarn=truncate,pow=0.5ulp,sincos=0.5ulp",
     NULL,
     "00.A4.q",
     {.rope = rope_running}},
    {"bound.form-scaled-first",
     "the concentration first",
     "openai-bf16,A4.scaled=bf16",
     "openai-bf16,A4.form=scaled-first,A4.scaled=bf16",
     "openai-bf16",
     NULL,
     "00.A4.q",
     {.rope = rope_scaled_first}},
    {"bound.form-scaled-first",
     "the same to mlx",
     "mlx",
     "mlx",
     "mlx,A4.form=scaled-table",
     NULL,
     "00.A4.q",
     {.rope = rope_scaled_first}},
    {"bound.exp-growing",
     "an exponential of a rounded product",
     "f32,A9.form=definition",
     "f32,A9.form=definition,exp=3ulp+0.62|x|",
     NULL,
     NULL,
     NULL,
     {.softmax_sink = softmax_growing}},
    {"bound.quotient",
     "quotients off by 100 ulp",
     "f32,A9.form=definition",
     "f32,A9.form=definition,div=100ulp",
     "f32,A9.form=definition",
     NULL,
     "00.A9",
     {.softmax_sink = softmax_divided}},
    {"bound.quotient",
     "reciprocals off by four times what is declared",
     "f32,A9.form=definition",
     "f32,A9.form=definition,rcp=400ulp",
     "f32,A9.form=definition,rcp=100ulp",
     NULL,
     "00.A9",
     {.softmax_sink = softmax_divided_worse}},
};
enum { ENGINES = sizeof engines / sizeof *engines };

static void acquitted(const struct engine *e) {
    char what[200];
    sinkproof_judgement j = run(&e->stages, e->runs, e->own, e->points);
    snprintf(what, sizeof what, "%s %s under %s", e->id, e->name, e->own);
    ok_within(&j, what, TOKENS);
}

static void convicted_without(const struct engine *e) {
    sinkproof_judgement j = run(&e->stages, e->runs, e->bare, e->points);
    const sinkproof_point_report *r = report_at(&j, e->at);
    ok(j.verdict == SINKPROOF_VERDICT_BUG && r != NULL && r->outside > 0 && j.first != NULL &&
           strcmp(j.first->name, e->at) == 0,
       "%s %s: %zu of %zu outside at %s under %s", e->id, e->name, r != NULL ? r->outside : 0,
       r != NULL ? r->elements : 0, e->at, e->bare);
    sinkproof_judgement_free(&j);
}

// The mistakes in an engine with every freedom at once, under the policy that grants them all.
static void mistakes_convicted(const char *declared, const char *ids) {
    size_t found = 0;
    for (size_t m = 0; m < MISTAKES; m++) {
        sinkproof_judgement j = run(&mistakes[m].stages, declared, declared, one_pass_points);
        bool there = j.verdict == SINKPROOF_VERDICT_BUG && j.first != NULL &&
                     strcmp(j.first->name, mistakes[m].point) == 0;
        if (!there)
            note("%s under %s: %s at %s", mistakes[m].name, declared,
                 sinkproof_verdict_name(j.verdict), j.first != NULL ? j.first->name : "no point");
        found += there;
        sinkproof_judgement_free(&j);
    }
    ok(found == MISTAKES, "%s mistakes are convicted where they are under %s: %zu of %d", ids,
       declared, found, (int)MISTAKES);
}

// How many sets hold one value alone: what is left of the judge's sight.
static void still_narrow(const char *policy, const char *ids, double least) {
    sinkproof_judgement j = run(&(sinkproof_stages){0}, policy, policy, one_pass_points);
    size_t elements = 0, several = 0;
    for (size_t i = 0; i < j.n_reports; i++)
        elements += j.reports[i].elements, several += j.reports[i].several;
    double single = 1 - (double)several / (double)elements;
    ok(j.verdict <= SINKPROOF_VERDICT_WITHIN && single >= least,
       "%s %s: %.2f %% of %zu sets hold one value, at least %.0f", ids, policy, 100 * single,
       elements, 100 * least);
    sinkproof_judgement_free(&j);
}

// An engine that rounds before the division and after it is not what "one of them" says.
static void rounds_once(void) {
    sinkproof_judgement j =
        run(&(sinkproof_stages){0}, "bf16,A9.form=definition,A9=bf16,A9.unnorm=bf16", "bf16",
            "A4,A9,A11");
    const sinkproof_point_report *r = report_at(&j, "00.A9");
    ok(j.verdict == SINKPROOF_VERDICT_BUG && r != NULL && r->outside > 0,
       "bound.unnormalised shown weights that were rounded twice are outside bf16: %zu of %zu",
       r != NULL ? r->outside : 0, r != NULL ? r->elements : 0);
    sinkproof_judgement_free(&j);
}

// ---- which form it was
// ---------------------------------------------------------------------------

// The forms of a stage that the trace of an engine on n tokens fits, of those that the policy
// admits.
static unsigned fitting(const sinkproof_stages *stages, const char *runs, const char *declared,
                        sinkproof_formed stage, size_t n) {
    sinkproof_stages s = engine_of(stages);
    judged_stages of = {&s, 0};
    sinkproof_policy policy, other;
    sinkproof_error error = {{0}};
    sinkproof_trace_writer *writer = NULL;
    sinkproof_trace *trace = NULL;
    sinkproof_judge_options how = {.rate = 1e-9};
    sinkproof_judgement j;
    int32_t tokens[FAR];
    char path[64];
    some_tokens(n, config->vocab, SEED, tokens);
    snprintf(path, sizeof path, "/tmp/sinkproof-freedoms-%ld.safetensors", (long)getpid());
    bool fine =
        sinkproof_policy_parse(runs, &policy, &error) &&
        sinkproof_policy_parse(declared, &other, &error) &&
        sinkproof_trace_writer_new(path, model, &policy, "freedoms", "A2,A4", n, &writer, &error) &&
        run_stages(&of, model, &policy, n, tokens, sinkproof_trace_writer_observer(writer),
                   &error) &&
        sinkproof_trace_writer_finish(writer, tokens, &error) &&
        sinkproof_trace_open(path, config, &trace, &error) &&
        sinkproof_judge(model, trace, &other, &how, &j, &error) &&
        sinkproof_judge_forms(model, trace, &how, &j, &error);
    need(fine, &error);
    unsigned forms = j.forms_asked[stage] ? j.forms_fitting[stage] : 0;
    sinkproof_judgement_free(&j);
    sinkproof_trace_close(trace);
    sinkproof_trace_writer_free(writer);
    unlink(path);
    return forms;
}

static void named(void) {
    const sinkproof_stages first = {.rope = rope_scaled_first}, running = {.rope = rope_running};
    const char *both = "openai-bf16,A4.scaled=bf16,A4.form=any";
    const char *angles = "f32,yarn=truncate,pow=0.5ulp,sincos=0.5ulp,A4.freq.form=any";
    unsigned by_first =
        fitting(&first, "openai-bf16,A4.scaled=bf16", both, SINKPROOF_FORM_OF_A4, TOKENS);
    unsigned by_table =
        fitting(&(sinkproof_stages){0}, "openai-bf16", both, SINKPROOF_FORM_OF_A4, TOKENS);
    ok(by_first == 1u << SINKPROOF_A4_SCALED_FIRST && by_table == 1u << SINKPROOF_FORM_DEFINITION,
       "bound.form-scaled-first the form is named: %x and %x of 3", by_first, by_table);
    unsigned by_product =
        fitting(&running, "f32,yarn=truncate", angles, SINKPROOF_FORM_OF_A4_FREQ, FAR);
    unsigned by_power = fitting(&(sinkproof_stages){0}, "f32,yarn=truncate", angles,
                                SINKPROOF_FORM_OF_A4_FREQ, TOKENS);
    ok(by_product == 1u << SINKPROOF_A4_FREQ_RUNNING &&
           (by_power & 1u << SINKPROOF_FORM_DEFINITION) != 0,
       "bound.form-running-angle the form is named: %x, and %x of 3", by_product, by_power);
}

int main(void) {
    model = open_model("synthetic:tiny,seed=3,layers=1");
    config = sinkproof_model_config(model);
    must(config->hidden <= 256 && config->n_chosen <= 8);
    for (size_t e = 0; e < ENGINES; e++) {
        acquitted(&engines[e]);
        if (engines[e].bare != NULL) convicted_without(&engines[e]);
    }
    mistakes_convicted("bf16,A1.norm=bf16?,M1.norm=bf16?,F1.norm=bf16?,A9.unnorm=bf16?,"
                       "A4.form=any,A4.freq.form=any,unrounded=any,exp=3ulp+0.62|x|",
                       "bound.norm-rounded bound.unnormalised bound.unrounded bound.exp-growing "
                       "bound.form-running-angle bound.form-scaled-first");
    mistakes_convicted("vllm-bf16", "bound.unnormalised bound.unrounded");
    mistakes_convicted("bf16", "bound.norm-rounded bound.unnormalised bound.exp-growing");
    mistakes_convicted("f16", "bound.norm-rounded bound.unnormalised bound.exp-growing");
    mistakes_convicted("f32,div=2ulp,rcp=1ulp", "bound.quotient");
    mistakes_convicted("bf16,acc=hopper,ranks=2", "bound.tensor-core bound.parts");
    rounds_once();
    named();
    still_narrow("openai-bf16", "bound.linear", 0.9);
    still_narrow("openai-bf16,A1.norm=bf16,M1.norm=bf16,F1.norm=bf16", "bound.norm-rounded", 0.9);
    still_narrow("openai-bf16,unrounded=A13|M12", "bound.unrounded", 0.9);
    sinkproof_model_close(model);
    return tap_done();
}
