// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What the layer loop gives to its stages and shows to an observer: blocks of queries that cover a
// chunk once, operands as the scores read them, shapes, a choice of experts that an observer
// changes, arrays that lie apart, attention in one pass, the length of a session; perceptrons of
// more rows than columns; what an error says. Stages that look at their arguments compute by the
// reference's own. 0.1 CPU seconds.
#include "ref/mechanism.h"
#include "tests/shared/reference.h"

#include <math.h>
#include <unistd.h>

static const uint64_t SEED = 20261202;
enum { KEPT = 77 };

static void say(const char *ids, const char *what, size_t apart, size_t values) {
    ok(apart == 0 && values > 0, "%s %s, bit for bit: worst=%zu bound=0 values=%zu seed=%llu", ids,
       what, apart, values, (unsigned long long)SEED);
}

// Byte i of a sentence commands a terminal: C0 and DEL, and both bytes of C1.
static bool commands(const unsigned char *c, size_t i) {
    bool opens = c[i] == 0xc2 && c[i + 1] >= 0x80 && c[i + 1] <= 0x9f;
    bool closes = i > 0 && c[i - 1] == 0xc2 && c[i] >= 0x80 && c[i] <= 0x9f;
    return c[i] <= 0x1f || c[i] == 0x7f || opens || closes;
}

static void sentences(void) {
    static const unsigned char bytes[] = {1,    0x1f, 0x20, 'A',  0x7e, 0x7f, 0x80,
                                          0x85, 0x9f, 0xa0, 0xc2, 0xc2, 0xc3};
    enum { LENGTH = 24, TRIALS = 400 };
    uint64_t state = SEED;
    size_t apart = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        unsigned char text[LENGTH + 2] = {0}, want[LENGTH + 2] = {0};
        for (size_t i = 0; i < LENGTH; i++) text[i] = bytes[next_bits(&state) % sizeof bytes];
        for (size_t i = 0; i < LENGTH; i++) want[i] = commands(text, i) ? '?' : text[i];
        sinkproof_error error;
        apart += sinkproof_fail(&error, "%s", (char *)text);
        apart += memcmp(error.text, want, LENGTH + 1) != 0;
        sinkproof_make_printable((char *)text);
        apart += memcmp(text, want, sizeof want) != 0;
    }
    say("model.forward", "sentences that command no terminal", apart, TRIALS);
}

// ---- stages that look at their arguments --------------------------------------------------------

enum { MOST = 80, WIDEST = 4096 };

typedef struct watch {
    const sinkproof_config *config;
    size_t wrong, blocks, scored, shown;
    const double *alpha, *alpha_end; // of the last block
    const double *logits;            // the router's, [n experts]
    double logits_were[MOST];
    int32_t *chosen, want[MOST]; // the choice, and what the observer leaves of it
    bool shifts;                 // whether it puts the next expert in each place
    bool reads;                  // whether operands are compared with what was shown
    size_t head;
    double q[WIDEST], k[WIDEST], v[WIDEST], score[WIDEST];
} watch;
static watch w;

static void sink_logits(const sinkproof_policy *policy, const sinkproof_block *block,
                        const sinkproof_normaliser *normaliser, const double *q_id, double *b_i) {
    w.blocks++;
    w.wrong += block->rows == 0 || block->first + block->rows > block->keys;
    sinkproof_sink_logits(policy, block, normaliser, q_id, b_i);
}

// Queries in bfloat16, keys as they were shown: of a watched head, whose rows are one block.
static void scores(const sinkproof_policy *policy, const sinkproof_block *block, const double *q_id,
                   const double *k_jd, double *s_ij) {
    size_t heads = w.config->n_heads, groups = w.config->n_kv_heads, dim = block->head_dim;
    size_t h = w.head % heads, g = h / (heads / groups);
    for (size_t i = 0; w.reads && i < block->rows * dim; i++) {
        size_t t = i / dim, d = i % dim;
        double q = sinkproof_round(SINKPROOF_BF16, w.q[(t * heads + h) * dim + d]);
        w.wrong += q_id[t * block->q_stride + d] != q;
        w.wrong += k_jd[t * block->kv_stride + d] != w.k[(t * groups + g) * dim + d];
    }
    w.scored++;
    sinkproof_scores(policy, block, q_id, k_jd, s_ij);
}

static void softmax(const sinkproof_policy *policy, const sinkproof_block *block, const double *b_i,
                    const double *s_ij, double *alpha_ij) {
    w.alpha = alpha_ij, w.alpha_end = alpha_ij + block->rows * (block->keys + 1);
    sinkproof_softmax_sink(policy, block, b_i, s_ij, alpha_ij);
}

static void values(const sinkproof_policy *policy, const sinkproof_block *block,
                   const double *alpha_ij, const double *v_jd, double *o_id) {
    size_t heads = w.config->n_heads, groups = w.config->n_kv_heads, dim = block->head_dim;
    size_t g = w.head++ % heads / (heads / groups);
    for (size_t i = 0; w.reads && i < block->rows * dim; i++)
        w.wrong += v_jd[i / dim * block->kv_stride + i % dim] !=
                   w.v[(i / dim * groups + g) * dim + i % dim];
    sinkproof_values(policy, block, alpha_ij, v_jd, o_id);
}

// The arrays of a chunk are carved in doubles: behind n chosen experts there is room.
static void router(const sinkproof_policy *policy, const sinkproof_layer *layer, size_t n,
                   size_t n_chosen, const double *t_nc, double *logits_ne, int32_t *chosen_nk,
                   double *weights_nk, double *work) {
    if (w.alpha != NULL)
        w.wrong += w.alpha < logits_ne + n * w.config->n_experts && logits_ne < w.alpha_end;
    sinkproof_router(policy, layer, n, n_chosen, t_nc, logits_ne, chosen_nk, weights_nk, work);
    chosen_nk[n * n_chosen] = KEPT;
    w.logits = logits_ne, w.chosen = chosen_nk;
    for (size_t i = 0; i < n * n_chosen && i < MOST; i++) w.want[i] = chosen_nk[i];
}

static void experts(const sinkproof_policy *policy, const sinkproof_config *config,
                    const sinkproof_layer *layer, size_t n, const double *t_nc,
                    const int32_t *chosen_nk, const sinkproof_expert_outputs *out, double *work) {
    size_t count = n * config->n_chosen;
    for (size_t i = 0; i < count && i < MOST; i++) w.wrong += chosen_nk[i] != w.want[i];
    w.wrong += chosen_nk[count] != KEPT;
    stage_experts(policy, config, layer, n, t_nc, chosen_nk, out, work);
}

static void gelu(const sinkproof_policy *policy, size_t n, const double *x_n, double *y_n) {
    w.wrong += x_n < y_n + n && y_n < x_n + n;
    sinkproof_gelu(policy, n, x_n, y_n);
}

// A5 to A11 in one pass, by the three stages that it stands for.
static void attention(const sinkproof_policy *policy, const sinkproof_block *block,
                      const double *b_i, const double *q_id, const double *k_jd, const double *v_jd,
                      double *o_id) {
    static double s_ij[MOST * MOST], alpha_ij[MOST * (MOST + 1)];
    must(block->rows <= MOST && block->keys <= MOST);
    sinkproof_scores(policy, block, q_id, k_jd, s_ij);
    sinkproof_softmax_sink(policy, block, b_i, s_ij, alpha_ij);
    sinkproof_values(policy, block, alpha_ij, v_jd, o_id);
}

static sinkproof_stages looking(bool one_pass) {
    sinkproof_stages stages = sinkproof_reference_stages;
    stages.sink_logits = sink_logits, stages.scores = scores, stages.softmax_sink = softmax;
    stages.values = values, stages.router = router, stages.experts = experts, stages.gelu = gelu;
    if (one_pass) stages.attention = attention, stages.softmax_sink = NULL, stages.values = NULL;
    return stages;
}

// ---- an observer --------------------------------------------------------------------------------

static const char *point_of(const char *name) {
    const char *dot = strchr(name, '.');
    return dot != NULL ? dot + 1 : name;
}

static void keep(double *to, const char *point, const char *name, const double *from, size_t n) {
    for (size_t i = 0; strcmp(point, name) == 0 && i < n && i < WIDEST; i++) to[i] = from[i];
}

// Every point in its shape, and in the middle of a layer nothing else is written.
static void see(void *context, const char *name, size_t rank, const size_t *shape,
                const double *shown) {
    watch *seen = context;
    const char *point = point_of(name);
    size_t known = 0, want[3] = {0}, count = 1, logits = seen->config->n_experts;
    for (size_t r = 0; r < rank; r++) count *= shape[r];
    for (int p = 0; p < TRACE_POINTS; p++) {
        sinkproof_trace_point at = (sinkproof_trace_point)p;
        if (strcmp(sinkproof_trace_point_name(at), point) != 0) continue;
        size_t n = shape[sinkproof_trace_point_is_by_head(at)];
        seen->wrong += sinkproof_trace_shape(seen->config, at, n, want) != rank;
        for (size_t r = 0; r < rank; r++) seen->wrong += shape[r] != want[r];
        known++;
    }
    seen->wrong += known != 1, seen->shown++;
    keep(seen->q, point, "A4.q", shown, count), keep(seen->q, point, "A2.q", shown, count);
    keep(seen->k, point, "A4.k", shown, count), keep(seen->k, point, "A2.k", shown, count);
    keep(seen->v, point, "A2.v", shown, count), keep(seen->score, point, "A6", shown, count);
    if (seen->logits == NULL) return; // no layer has chosen yet
    if (strcmp(point, "A6") == 0) memcpy(seen->logits_were, seen->logits, logits * sizeof *shown);
    if (strcmp(point, "A9") == 0) seen->wrong += differing(logits, seen->logits, seen->logits_were);
}

static void replace(void *context, const char *name, size_t rank, const size_t *shape,
                    double *shown) {
    watch *seen = context;
    if (strcmp(point_of(name), "M3") != 0) return;
    for (size_t i = 0; i < shape[0] * shape[rank - 1] && i < MOST; i++) {
        seen->wrong += seen->chosen[i] != (int32_t)shown[i];
        if (seen->shifts) shown[i] = (double)(((size_t)shown[i] + 1) % seen->config->n_experts);
        seen->want[i] = (int32_t)shown[i];
    }
}

// ---- runs ---------------------------------------------------------------------------------------

typedef struct model {
    sinkproof_model *model;
    const sinkproof_config *config;
    int32_t tokens_n[MOST];
} model;

static model open_model(const char *spec) {
    model m;
    uint64_t state = SEED;
    must(sinkproof_model_open(spec, &m.model, NULL));
    m.config = sinkproof_model_config(m.model);
    for (size_t t = 0; t < MOST; t++)
        m.tokens_n[t] = (int32_t)(next_bits(&state) % m.config->vocab);
    return m;
}

// Tokens in the given pieces, until one of none: the logits, to free.
static double *run(const model *m, const char *policy, bool one_pass, const size_t *pieces,
                   const sinkproof_observer *observer) {
    sinkproof_policy rounds = policy_of(policy);
    sinkproof_stages stages = looking(one_pass);
    sinkproof_session *session = sinkproof_session_with(m->model, &rounds, &stages);
    double *logits_nv = malloc(MOST * m->config->vocab * sizeof *logits_nv);
    must(session != NULL && logits_nv != NULL);
    for (size_t i = 0; i < MOST * m->config->vocab; i++) logits_nv[i] = NAN;
    w.config = m->config, w.head = 0, w.logits = w.alpha = w.alpha_end = NULL;
    for (size_t done = 0; *pieces > 0; done += *pieces++) {
        must(sinkproof_forward(session, *pieces, m->tokens_n + done,
                               logits_nv + done * m->config->vocab, observer, NULL));
        w.logits = NULL; // the next piece has memory of its own
        w.wrong += sinkproof_session_length(session) != done + *pieces;
    }
    sinkproof_session_free(session);
    return logits_nv;
}

// A watched piece is one block of queries, an unwatched one is blocks of 64.
static void pieces(const char *id, const model *m, const size_t *whole, const size_t *parts) {
    sinkproof_observer observer = {.see = see, .replace = replace, .context = &w};
    size_t blocks = 0, layers = m->config->n_layers * m->config->n_heads;
    size_t count = *whole * m->config->vocab;
    w = (watch){0};
    double *one = run(m, "real-f64", false, whole, &observer);
    size_t apart = w.wrong + (w.blocks != layers) + (w.scored != layers);
    w = (watch){0};
    double *two = run(m, "real-f64", false, parts, NULL);
    for (const size_t *n = parts; *n > 0; n++) blocks += *n / 64 + (*n % 64 > 0);
    apart += w.wrong + (w.blocks != blocks * layers) + differing(count, one, two);
    say(id, "one watched piece, and pieces that nobody watches", apart, count);
    free(one);
    free(two);
}

// Operands as attention reads them; then the same in one pass over the keys.
static void passes(const char *id, const model *m) {
    static const size_t whole[] = {6, 0};
    sinkproof_observer observer = {.see = see, .replace = replace, .context = &w};
    size_t count = whole[0] * m->config->vocab, layers = m->config->n_layers * m->config->n_heads;
    static double score[WIDEST];
    w = (watch){.reads = true};
    double *rounded = run(m, "real-f64,A5.q=bf16", false, whole, &observer);
    say(id, "queries that are rounded, keys and values that are not", w.wrong, w.shown);
    w = (watch){0};
    double *one = run(m, "real-f64", false, whole, &observer);
    size_t apart = w.wrong;
    memcpy(score, w.score, sizeof score);
    w = (watch){0};
    double *two = run(m, "real-f64", true, whole, &observer);
    apart += w.wrong + (w.scored != layers) + differing(WIDEST, score, w.score);
    w = (watch){0};
    double *three = run(m, "real-f64", true, whole, NULL);
    apart += w.wrong + (w.scored != 0) + differing(count, one, two) + differing(count, one, three);
    say(id, "attention in one pass, watched or not", apart, 2 * count);
    free(rounded);
    free(one);
    free(two);
    free(three);
}

static void choices(const model *m) {
    static const size_t whole[] = {6, 0};
    sinkproof_observer observer = {.see = see, .replace = replace, .context = &w};
    w = (watch){.shifts = true};
    free(run(m, "real-f64", false, whole, &observer));
    say("model.forward", "experts that an observer puts in place", w.wrong,
        whole[0] * m->config->n_chosen);
}

// A perceptron that is narrower than half of its input, open as "synthetic:" takes its file.
static model narrow_model(void) {
    static const char text[] =
        "{\"model_type\": \"gpt2\", \"n_layer\": 1, \"n_embd\": 128, \"n_inner\": 32,"
        " \"n_head\": 4, \"vocab_size\": 13, \"n_positions\": 8, \"layer_norm_epsilon\": 1e-05}";
    char path[] = "/tmp/sinkproof-narrow-XXXXXX", spec[64];
    int descriptor = mkstemp(path);
    must(descriptor >= 0 && write(descriptor, text, sizeof text - 1) > 0);
    snprintf(spec, sizeof spec, "synthetic:%s", path);
    model m = open_model(spec);
    close(descriptor);
    unlink(path);
    return m;
}

// More rows than the perceptron has columns, beside each row by itself.
static void perceptron(const model *m) {
    size_t hidden = m->config->hidden, n = m->config->inter + 2, apart = 0, values_seen = 0;
    size_t room = sinkproof_mechanism_epe_work(m->config, n);
    double *p_ic = calloc(n * hidden, sizeof *p_ic), *epe_ic = calloc(n * hidden, sizeof *p_ic);
    double *work = calloc(room + 1, sizeof *work), *epe_c = calloc(hidden, sizeof *epe_c);
    sinkproof_policy real = policy_of("real-f64");
    uint64_t state = SEED;
    must(p_ic != NULL && epe_ic != NULL && work != NULL && epe_c != NULL);
    fill_reals(&state, 1, n * hidden, p_ic);
    work[room] = KEPT;
    sinkproof_mechanism_epe(m->model, &real, true, n, p_ic, epe_ic, work);
    apart += work[room] != KEPT;
    for (size_t i = 0; i < n; i++, values_seen += hidden) {
        sinkproof_mechanism_epe(m->model, &real, true, 1, p_ic + i * hidden, epe_c, work);
        apart += differing(hidden, epe_c, epe_ic + i * hidden);
    }
    say("gpt2.epe", "many rows, and each by itself", apart, values_seen);
    free(p_ic);
    free(epe_ic);
    free(work);
    free(epe_c);
}

int main(void) {
    model routed = open_model("synthetic:tiny,layers=2");
    model plain = open_model("synthetic:tiny-gpt2,layers=2");
    model narrow = narrow_model();
    sentences();
    pieces("model.forward", &routed, (size_t[]){70, 0}, (size_t[]){66, 4, 0});
    pieces("model.forward", &routed, (size_t[]){8, 0}, (size_t[]){3, 5, 0});
    pieces("gpt2.forward", &plain, (size_t[]){20, 0}, (size_t[]){7, 13, 0});
    passes("model.forward", &routed);
    passes("gpt2.forward", &plain);
    choices(&routed);
    perceptron(&narrow);
    sinkproof_model_close(routed.model);
    sinkproof_model_close(plain.model);
    sinkproof_model_close(narrow.model);
    return tap_done();
}
