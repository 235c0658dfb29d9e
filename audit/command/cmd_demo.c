// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof demo`: the tour on the embedded model. Every step runs the real program: the identity
// of the sink, the reference against the enclosed truth, honest traces acquitted, planted bugs
// convicted. It exits with 0 only if each step has the announced result.
#include "audit/command/command.h"
#include "audit/judge/judge_report.h"
#include "audit/trace/trace_write.h"
#include "audit/verify/truth_bits.h"
#include "base/share.h"
#include "base/words.h"
#include "proofs/bounds/worst.h"
#include "proofs/truth/forward.h"
#include "ref/stages.h"

#include <argp.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TOKENS = 40, TRUTH_TOKENS = 12 };

static const struct argp parser = {
    .doc = "The tour on the embedded model synthetic:tiny: the sink's identity, the reference "
           "against the truth, honest engines acquitted, planted bugs convicted.",
};

typedef struct tour {
    const sinkproof_model *model;
    int32_t tokens_n[TOKENS];
    bool good; // every step so far had the announced result
    char path[1024];
} tour;

static void print_step(tour *t, bool good, const char *what) {
    printf("  %s %s\n\n", good ? "[holds]" : "[BROKEN]", what);
    t->good = t->good && good;
}

// ---- 1: the sink's mass

// sum_j alpha_j + alpha_sink over the rows of every head and layer: the largest distance from 1.
typedef struct mass {
    double worst, least, most; // least, most: the extreme sink weights
    size_t rows, keys;
} mass;

static void observe_mass(void *context, const char *name, size_t rank, const size_t *shape,
                         const double *alpha_hij) {
    mass *m = context;
    if (rank != 3 || strcmp(name + 2, ".A9") != 0) return;
    for (size_t r = 0; r < shape[0] * shape[1]; r++) {
        const double *alpha_j = alpha_hij + r * shape[2];
        double sum = 0, sink = alpha_j[shape[2] - 1];
        for (size_t j = 0; j + 1 < shape[2]; j++) sum += alpha_j[j];
        m->worst = sinkproof_keep_worst(m->worst, fabs(sum - (1 - sink)));
        m->least = sinkproof_keep_least(m->least, sink),
        m->most = sinkproof_keep_worst(m->most, sink);
        m->rows++;
        m->keys = shape[2] - 1;
    }
}

static bool show_mass(tour *t, sinkproof_error *error) {
    sinkproof_policy policy;
    mass m = {.least = 1};
    sinkproof_observer observer = {.see = observe_mass, .context = &m};
    printf("1. The sink takes its share (sink.mass): sum_j alpha_ij = 1 - alpha_sink.\n");
    if (!sinkproof_policy_parse("real-f64", &policy, error)) return false;
    sinkproof_session *session = sinkproof_session_new(t->model, &policy);
    bool fine = sinkproof_forward(session, TOKENS, t->tokens_n, NULL, &observer, error);
    sinkproof_session_free(session);
    if (!fine) return false;
    // keys + 1 quotients, each rounded, two sums: at most 2 (keys + 3) roundings of numbers up
    // to 1.
    double bound = sinkproof_gamma(2 * ((double)m.keys + 3), 0x1p-53);
    int digits = sinkproof_digits_apart(m.worst, bound, 2);
    printf("   %s of attention; sink weights from %.2g to %.2g; worst %.*g, bound %.*g "
           "(bound.dot)\n",
           sinkproof_counted(m.rows, "row").text, m.least, m.most, digits, m.worst, digits, bound);
    print_step(t, m.rows > 0 && m.worst <= bound, "the weights sum to 1 - alpha_sink, to rounding");
    return true;
}

// ---- 2: the reference against the truth

static bool show_truth(tour *t, sinkproof_error *error) {
    size_t vocab = sinkproof_model_config(t->model)->vocab;
    const sinkproof_config *config = sinkproof_model_config(t->model);
    long bits = sinkproof_truth_bits_for(sinkproof_truth_loss(config, config->n_layers));
    sinkproof_truth_request request = {
        .model = t->model, .n = TRUTH_TOKENS, .tokens_n = t->tokens_n, .bits = bits};
    sinkproof_truth_result truth;
    sinkproof_policy policy;
    double *logits = malloc(TRUTH_TOKENS * vocab * sizeof *logits);
    printf("2. The truth: every logit enclosed at %ld bits, tokens to logits (FLINT/Arb).\n", bits);
    if (logits == NULL) return sinkproof_fail(error, "out of memory");
    if (!sinkproof_policy_parse("real-f64", &policy, error) ||
        !sinkproof_truth_forward(&request, &truth, error)) {
        free(logits);
        return false;
    }
    sinkproof_session *session = sinkproof_session_new(t->model, &policy);
    bool fine = sinkproof_forward(session, TRUTH_TOKENS, t->tokens_n, logits, NULL, error);
    double worst = 0, largest = 0, radius = -INFINITY;
    for (size_t v = 0; fine && v < TRUTH_TOKENS * vocab; v++) {
        arb_srcptr ball = truth.logits_nv + v;
        double mid = arf_get_d(arb_midref(ball), ARF_RND_NEAR);
        worst = sinkproof_keep_worst(worst, fabs(logits[v] - mid));
        largest = sinkproof_keep_worst(largest, fabs(mid));
        radius = sinkproof_keep_worst(radius, -(double)arb_rel_accuracy_bits(ball));
    }
    if (fine) {
        printf("   %d tokens, %s up to %.3g; widest ball 2^%.0f relative (enclosed)\n",
               TRUTH_TOKENS, sinkproof_counted(TRUTH_TOKENS * vocab, "logit").text, largest,
               radius);
        printf("   routing: %s of experts, %zu not certified\n",
               sinkproof_counted(truth.routing.choices, "choice").text, truth.routing.ambiguous);
        printf("   the scalar reference in binary64 is off by at most %.2g (estimated)\n", worst);
        print_step(
            t, radius < -100 && truth.routing.ambiguous == 0 && worst < INFINITY,
            "every logit is known to 100 bits, every choice certified, the reference has no NaN");
    }
    sinkproof_session_free(session);
    sinkproof_truth_result_clear(&truth);
    free(logits);
    return fine;
}

// ---- 3 and 4: engines judged

// Runs `stages` under one policy and judges the trace under another.
static bool run_and_judge(tour *t, const sinkproof_stages *stages, const char *runs,
                          const char *declared, sinkproof_judgement *j, sinkproof_error *error) {
    sinkproof_policy policy, other;
    sinkproof_trace_writer *writer = NULL;
    sinkproof_trace *trace = NULL;
    if (!sinkproof_policy_parse(runs, &policy, error) ||
        !sinkproof_policy_parse(declared, &other, error) ||
        !sinkproof_trace_writer_new(t->path, t->model, &policy, "demo", NULL, TOKENS, &writer,
                                    error))
        return false;
    sinkproof_session *session = sinkproof_session_with(t->model, &policy, stages);
    bool fine = sinkproof_forward(session, TOKENS, t->tokens_n, NULL,
                                  sinkproof_trace_writer_observer(writer), error) &&
                sinkproof_trace_writer_finish(writer, t->tokens_n, error) &&
                sinkproof_trace_open(t->path, sinkproof_model_config(t->model), &trace, error) &&
                sinkproof_judge(t->model, trace, &other, &(sinkproof_judge_options){.rate = 1e-9},
                                j, error);
    sinkproof_trace_close(trace);
    sinkproof_trace_writer_free(writer);
    sinkproof_session_free(session);
    unlink(t->path);
    return fine;
}

static bool show_honest(tour *t, sinkproof_error *error) {
    static const char *const policies[] = {"f32", "openai-bf16", "hf-bf16"};
    bool good = true;
    printf("3. Honest engines: the reference under three policies, each trace judged point by "
           "point.\n");
    for (size_t p = 0; p < sizeof policies / sizeof policies[0]; p++) {
        sinkproof_judgement j;
        if (!run_and_judge(t, &sinkproof_reference_stages, policies[p], policies[p], &j, error))
            return false;
        size_t elements = 0, several = 0;
        for (size_t i = 0; i < j.n_reports; i++)
            elements += j.reports[i].elements, several += j.reports[i].several;
        printf("   %-12s %3zu tensors, %7zu elements, %7s known to the last bit in advance: %s\n",
               policies[p], j.n_reports, elements,
               sinkproof_share_percent(sinkproof_count_share(elements - several, elements), 1).text,
               sinkproof_verdict_name(j.verdict));
        good = good && j.verdict <= SINKPROOF_VERDICT_WITHIN;
        sinkproof_judgement_free(&j);
    }
    print_step(t, good, "nothing outside what honest rounding can do, nothing suspicious");
    return true;
}

static void no_sink_logits(const sinkproof_policy *policy, const sinkproof_block *block,
                           const sinkproof_normaliser *normaliser, const double *q_id,
                           double *b_i) {
    (void)policy;
    (void)normaliser;
    (void)q_id;
    for (size_t i = 0; i < block->rows; i++) b_i[i] = -INFINITY;
}

static void softmax_wide_window(const sinkproof_policy *policy, const sinkproof_block *block,
                                const double *b_i, const double *s_ij, double *alpha_ij) {
    sinkproof_block wide = *block;
    if (wide.window > 0) wide.window++;
    sinkproof_softmax_sink(policy, &wide, b_i, s_ij, alpha_ij);
}

static bool show_bugs(tour *t, sinkproof_error *error) {
    sinkproof_stages no_sink = sinkproof_reference_stages, wide = sinkproof_reference_stages;
    no_sink.sink_logits = no_sink_logits;
    wide.softmax_sink = softmax_wide_window;
    const struct {
        const char *what, *runs, *at;
        const sinkproof_stages *stages;
    } bugs[] = {
        {"the sink dropped from the denominator", "openai-bf16", "00.A9", &no_sink},
        {"a window one key too wide", "openai-bf16", "00.A9", &wide},
        {"the YaRN range truncated", "openai-bf16,yarn=truncate", "00.A4.q",
         &sinkproof_reference_stages},
        {"SwiGLU's 1.702 rounded to bfloat16", "openai-bf16,M8.alpha=bf16", "00.M8",
         &sinkproof_reference_stages},
    };
    bool good = true;
    printf("4. Planted bugs, each seen in a real engine (first divergence, elements outside):\n");
    for (size_t b = 0; b < sizeof bugs / sizeof bugs[0]; b++) {
        sinkproof_judgement j;
        if (!run_and_judge(t, bugs[b].stages, bugs[b].runs, "openai-bf16", &j, error)) return false;
        const char *at = j.first != NULL ? j.first->name : "nowhere";
        printf("   %-40s %-8s %6zu of %zu\n", bugs[b].what, at,
               j.first != NULL ? j.first->outside : 0, j.first != NULL ? j.first->elements : 0);
        good = good && strcmp(at, bugs[b].at) == 0;
        sinkproof_judgement_free(&j);
    }
    print_step(t, good, "each convicted at the operation where it happens");
    return true;
}

int cmd_demo(int argc, char **argv) {
    command_parse_line(&parser, argc, argv, NULL);
    sinkproof_error error = {{0}};
    sinkproof_model *model = NULL;
    if (!sinkproof_model_open("synthetic:tiny", &model, &error))
        return exit_bad_input("demo", &error);
    const sinkproof_config *c = sinkproof_model_config(model);
    tour t = {.model = model, .good = true};
    const char *folder = getenv("TMPDIR");
    snprintf(t.path, sizeof t.path, "%.900s/sinkproof-demo-%ld", folder != NULL ? folder : "/tmp",
             (long)getpid());
    for (size_t i = 0; i < TOKENS; i++) t.tokens_n[i] = (int32_t)(i * i * 31 % c->vocab);
    printf("The embedded model: %s, hidden %zu, %s on %s of size %zu,\n"
           "window %zu on even layers, %s of which %zu %s chosen.\n\n",
           sinkproof_counted(c->n_layers, "layer").text, c->hidden,
           sinkproof_counted(c->n_heads, "head").text,
           sinkproof_counted(c->n_kv_heads, "key/value head").text, c->head_dim, c->window,
           sinkproof_counted(c->n_experts, "expert").text, c->n_chosen,
           sinkproof_is_or_are(c->n_chosen));
    bool fine = show_mass(&t, &error) && show_truth(&t, &error) && show_honest(&t, &error) &&
                show_bugs(&t, &error);
    sinkproof_model_close(model);
    if (!fine) return exit_bad_input("demo", &error);
    printf("%s\n", t.good ? "The tour holds. Next: sinkproof judge --help, and the book in doc/."
                          : "The tour is broken: a step did not come out as announced.");
    return t.good ? EXIT_HOLDS : EXIT_BUG;
}
