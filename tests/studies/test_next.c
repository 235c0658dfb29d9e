// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What honest rounding can do to the next token: the engines that are drawn or steered are honest
// to the judge; what is certified is kept by each of them; the estimate to first order is the sum
// that it says.
#include "audit/studies/next/next_internal.h"
#include "audit/studies/next/next_print.h"
#include "tests/shared/judged.h"

#include <string.h>

enum { N = 6 };

static sinkproof_policy policy_of(const char *name) {
    sinkproof_policy policy;
    sinkproof_error error;
    need(sinkproof_policy_parse(name, &policy, &error), &error);
    return policy;
}

// ---- engines, as the judge sees them

// All but M9, of which an engine computes its own with M10, and shows none.
static const char shown[] = "T0,A1,A2,A3,A4,A6,A9,A10,A11,A12,A13,M1,M2,M3,M4,M5,M6,M8,M10,M11,M12,"
                            "F1,F2";

typedef struct ran {
    const char *policy;
    uint64_t seed;
    const next_map *against;
    next_position at_n[N];
    next_said said_n[N];
} ran;

static bool run_engine(void *of, const sinkproof_model *model, const sinkproof_policy *stored,
                       size_t n, const int32_t *tokens_n, const sinkproof_observer *observer,
                       sinkproof_error *error) {
    ran *r = of;
    sinkproof_policy policy = policy_of(r->policy);
    next_prompt prompt = {model, sinkproof_model_config(model), &policy, n, tokens_n};
    next_engine engine = {.prompt = &prompt,
                          .position_n = r->at_n,
                          .seed = r->seed,
                          .against = r->against,
                          .shown = observer,
                          .said_n = r->said_n};
    (void)stored;
    return next_engine_run(&engine, error);
}

static void honest_engines(void) {
    static const char *const models[] = {"synthetic:tiny,layers=2", "synthetic:tiny-qwen3,layers=2",
                                         "synthetic:tiny-gpt2,layers=2"};
    static const char *const policies[] = {
        "bf16", "f32", "f16", "hf-bf16", "real-f64", "f32,inside=f64", "llama-cpp"};
    size_t runs = 0, dishonest = 0, undecided = 0;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        sinkproof_model *model = open_model(models[m]);
        for (size_t p = 0; p < sizeof policies / sizeof *policies; p++)
            for (uint64_t seed = 1; seed <= 2; seed++) {
                ran r = {.policy = policies[p], .seed = seed};
                sinkproof_judgement j =
                    judged_run(model, run_engine, &r, "real-f64", policies[p], N, seed, shown);
                bool fine =
                    j.verdict == SINKPROOF_VERDICT_EXACT || j.verdict == SINKPROOF_VERDICT_WITHIN;
                if (!fine)
                    note("%s, %s, seed %d: %s at %s of layer %zu", models[m], policies[p],
                         (int)seed, sinkproof_verdict_name(j.verdict),
                         j.first != NULL ? sinkproof_trace_point_name(j.first->point) : "no point",
                         j.first != NULL ? j.first->layer : 0);
                runs++, dishonest += !fine, undecided += j.undecided;
                sinkproof_judgement_free(&j);
            }
        sinkproof_model_close(model);
    }
    ok(runs == 42 && dishonest == 0,
       "drawn engines are within what their policy allows: %zu of %zu are not, %zu points "
       "undecided",
       dishonest, runs, undecided);
}

// Each choice of a seed is made in the policy: what was fixed stays, what was optional is settled.
static void settled_policies(void) {
    static const char *const names[] = {"bf16", "f32", "f16", "flash-bf16", "vllm-bf16"};
    size_t open = 0, moved = 0, made = 0, left = 0;
    for (size_t p = 0; p < sizeof names / sizeof *names; p++)
        for (uint64_t seed = 0; seed < 8; seed++) {
            sinkproof_policy policy = policy_of(names[p]);
            sinkproof_policy drawn = next_engine_policy(&policy, seed);
            for (int at = 0; at < AT_POINTS; at++) {
                open += drawn.at[at].optional;
                moved += !policy.at[at].optional &&
                         !sinkproof_rounding_same(policy.at[at], drawn.at[at]);
                if (!policy.at[at].optional || policy.at[at].format == SINKPROOF_F32) continue;
                made += drawn.at[at].format == policy.at[at].format;
                left += drawn.at[at].format != policy.at[at].format;
            }
        }
    ok(open == 0 && moved == 0 && made > 100 && left > 100,
       "an engine's policy: %zu roundings open, %zu fixed ones moved, %zu made, %zu not", open,
       moved, made, left);
}

// ---- the study

static next_study study_of(const char *spec, const char *name, next_options o,
                           sinkproof_model **model) {
    sinkproof_policy policy = policy_of(name);
    sinkproof_error error;
    int32_t tokens[N];
    next_study study;
    *model = open_model(spec);
    some_tokens(N, sinkproof_model_config(*model)->vocab, 2, tokens);
    o.rate = 1e-9;
    need(sinkproof_next_run(*model, N, tokens, &policy, &o, &study, &error), &error);
    return study;
}

static void certified(void) {
    sinkproof_model *model;
    next_study s = study_of("synthetic:tiny,layers=1", "real-f64",
                            (next_options){.bits = 256, .draws = 3}, &model);
    bool kept = true;
    for (size_t i = 0; i < N; i++) {
        next_position at = s.at_n[i];
        kept = kept && at.kept > 0 && at.kept <= at.margin && at.kept <= at.least;
        kept = kept && at.fate == NEXT_CERTIFIED && at.changed == 0;
    }
    ok(kept && s.count[NEXT_CERTIFIED] == N && s.all_bounded == 1 && s.engines == 3,
       "in binary64 one layer is certified at %zu of %d positions, each margin kept by 3 engines",
       s.count[NEXT_CERTIFIED], N);
    sinkproof_next_free(&s);
    sinkproof_model_close(model);

    s = study_of("synthetic:tiny", "bf16", (next_options){.bits = 256, .draws = 12}, &model);
    size_t changed = 0;
    bool facts = true;
    for (size_t i = 0; i < N; i++) {
        next_position at = s.at_n[i];
        changed += at.changed > 0;
        facts = facts && (at.changed > 0) == (at.fate == NEXT_CHANGED);
        facts = facts && (at.changed == 0 || (at.least <= 0 && at.changed_to != at.argmax));
        facts = facts && !(at.kept > 0);
    }
    ok(facts && changed > 0 && s.count[NEXT_CERTIFIED] == 0 && s.count[NEXT_CHANGED] == changed &&
           changed + s.count[NEXT_OPEN] == N && s.all_bounded == 0 && s.some_bounded < 4,
       "in bfloat16 four layers certify nothing; engines change %zu of %d", changed, N);
    sinkproof_next_free(&s);
    sinkproof_model_close(model);

    s = study_of("synthetic:tiny", "f32", (next_options){.bits = 32}, &model);
    ok(s.count[NEXT_UNKNOWN] == N, "too few bits: the truth's token is unknown at %zu of %d",
       s.count[NEXT_UNKNOWN], N);
    sinkproof_next_free(&s);
    sinkproof_model_close(model);
}

// With one rounding, at F1, the derivative is the unembedding's: the estimate is a sum of products.
static void first_order_of_one_rounding(void) {
    sinkproof_model *model;
    next_study s = study_of("synthetic:tiny", "real-f64,F1=bf16",
                            (next_options){.bits = 256, .derivative = true}, &model);
    sinkproof_model *again;
    next_study none = study_of("synthetic:tiny", "real-f64",
                               (next_options){.bits = 256, .derivative = true}, &again);
    const sinkproof_config *c = sinkproof_model_config(model);
    sinkproof_policy real = policy_of("real-f64");
    sinkproof_error error;
    sinkproof_activations *a;
    int32_t tokens[N];
    some_tokens(N, c->vocab, 2, tokens);
    need(sinkproof_activations_new(c, N, tokens, &a, &error), &error);
    sinkproof_session *session = sinkproof_session_new(model, &real);
    must(session != NULL);
    need(sinkproof_forward(session, N, tokens, NULL, &a->observer, &error), &error);
    double *says = malloc(2 * c->hidden * sizeof *says), *next = says + c->hidden, worst = 0;
    bool sums = true;
    must(says != NULL);
    sinkproof_matrix w = sinkproof_model_unembedding(model);
    for (size_t i = 0; i < N; i++) {
        const double *f_c = sinkproof_activations_at(a, 0, TRACE_F1) + i * c->hidden;
        double sum = 0;
        sinkproof_matrix_row(&w, s.at_n[i].argmax, says);
        sinkproof_matrix_row(&w, s.at_n[i].runner, next);
        for (size_t k = 0; k < c->hidden; k++)
            sum += fabs(says[k] - next[k]) * fabs(sinkproof_round(SINKPROOF_BF16, f_c[k]) - f_c[k]);
        double over = s.at_n[i].worst - sum;
        sums = sums && over >= -0x1p-40 * sum && over <= none.at_n[i].worst + 0x1p-40 * sum;
        worst = fmax(worst, over / sum);
    }
    ok(sums,
       "first order of a rounding at F1 is its sum, and what binary64 rounds: %.2g of it more",
       worst);
    free(says);
    sinkproof_session_free(session);
    sinkproof_activations_free(a);
    sinkproof_next_free(&s);
    sinkproof_next_free(&none);
    sinkproof_model_close(model);
    sinkproof_model_close(again);
}

// Steered engines take more of the margins than drawn ones, and not more than the estimate; to the
// judge they are no bug. (Their errors lean: that is how they were chosen.)
static void steered(void) {
    sinkproof_model *model, *again;
    next_options o = {.bits = 256, .draws = N, .derivative = true};
    next_study drawn = study_of("synthetic:tiny", "f32", o, &again);
    o.draws = 0, o.steer = true;
    next_study s = study_of("synthetic:tiny", "f32", o, &model);
    double of_drawn = 0, of_steered = 0, share = 0;
    for (size_t i = 0; i < N; i++) {
        double taken = s.at_n[i].margin - s.at_n[i].least;
        of_steered += taken, of_drawn += drawn.at_n[i].margin - drawn.at_n[i].least;
        share = fmax(share, taken / s.at_n[i].worst);
    }
    ok(s.steered == N && s.engines == N && of_steered > 2 * of_drawn && share < 1,
       "as many steered engines take %.3g of the margins, drawn ones %.3g; %.2g of the estimate",
       of_steered, of_drawn, share);
    ok(s.beyond_worst <= s.beyond_likely && s.beyond_likely == N &&
           s.at_n[0].likely < s.at_n[0].worst && s.at_n[0].likely > 0,
       "the likely estimate is below the worst: %.3g of %.3g", s.at_n[0].likely, s.at_n[0].worst);

    sinkproof_error error;
    sinkproof_policy policy = policy_of("f32"), real = policy_of("real-f64");
    int32_t tokens[N];
    next_map against;
    sinkproof_activations *a;
    some_tokens(N, sinkproof_model_config(model)->vocab, 2, tokens);
    next_prompt prompt = {model, sinkproof_model_config(model), &policy, N, tokens};
    need(sinkproof_activations_new(prompt.config, N, tokens, &a, &error), &error);
    sinkproof_session *session = sinkproof_session_new(model, &real);
    must(session != NULL && next_map_new(&against, prompt.config->n_layers));
    need(sinkproof_forward(session, N, tokens, NULL, &a->observer, &error), &error);
    need(next_derivatives(&prompt, a, N - 1, NULL, &s.at_n[N - 1], &against, &error), &error);
    ran r = {.policy = "f32", .seed = 3, .against = &against};
    sinkproof_judgement j =
        judged_tokens(model, run_engine, &r, "real-f64", "f32", N, tokens, shown);
    size_t outside = 0;
    for (size_t p = 0; p < j.n_reports; p++) outside += j.reports[p].outside;
    ok(j.verdict != SINKPROOF_VERDICT_BUG && outside == 0,
       "a steered engine is no bug: %zu elements outside", outside);
    sinkproof_judgement_free(&j);
    next_map_free(&against);
    sinkproof_session_free(session);
    sinkproof_activations_free(a);
    sinkproof_next_free(&s);
    sinkproof_next_free(&drawn);
    sinkproof_model_close(model);
    sinkproof_model_close(again);
}

static void same_bits(void) {
    sinkproof_model *model;
    next_options o = {.bits = 256, .draws = 4, .seed = 5};
    double first[N];
    size_t same = 0, other = 0;
    for (int run = 0; run < 3; run++, o.seed += run == 2) {
        next_study s = study_of("synthetic:tiny,layers=1", "bf16", o, &model);
        for (size_t i = 0; i < N; i++) {
            if (run == 0) first[i] = s.at_n[i].least;
            if (run == 1) same += s.at_n[i].least == first[i];
            if (run == 2) other += s.at_n[i].least != first[i];
        }
        sinkproof_next_free(&s);
        sinkproof_model_close(model);
        if (run == 1) o.seed = 6;
    }
    ok(same == N && other > 0, "a seed's engines are the same again; another seed's differ at %zu",
       other);
}

// A position that is certified and changed cannot be: the text says so.
static void broken(void) {
    next_position at = {.margin = 1,
                        .kept = 0.5,
                        .least = -1,
                        .changed = 1,
                        .worst = NAN,
                        .likely = NAN,
                        .fate = NEXT_CHANGED};
    next_study s = {.n = 1,
                    .n_layers = 1,
                    .at_n = &at,
                    .engines = 1,
                    .broken = 1,
                    .all_bounded = 1,
                    .some_bounded = 1};
    sinkproof_policy policy = policy_of("f32");
    char text[4096] = "";
    for (int told = 0; told < 2; told++, s.broken = 0) {
        FILE *out = fmemopen(text, sizeof text, "w");
        must(out != NULL);
        sinkproof_next_print(out, &s, &policy);
        fclose(out);
        ok((strstr(text, "BROKEN: 1 position is") != NULL) == (s.broken == 1),
           "what is certified and changed is called broken, and nothing else");
    }
}

int main(void) {
    settled_policies();
    honest_engines();
    certified();
    first_order_of_one_rounding();
    steered();
    same_bits();
    broken();
    return tap_done();
}
