// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The kinds of sinks: what a layer stores for each, the logit that it makes of a row, in the
// reference and over the reals, and what is one model under two names: off by one is a sink logit
// of zero, a key of zeros is off by one, and a key that meets a constant coordinate is a number.
#include "fast/engine/engine.h"
#include "fast/lanes/lanes.h"
#include "model/slots.h"
#include "proofs/truth/forward.h"
#include "tests/shared/opened.h"
#include "tests/shared/reference.h"

#include <math.h>

// ---- one row's logit

enum { ROWS = 5, DIM = 16, STRIDE = 3 * DIM };
static const sinkproof_block block = {
    .rows = ROWS, .keys = 9, .first = 4, .window = 3, .head_dim = DIM, .q_stride = STRIDE};

static void logits(const char *policy_name, const sinkproof_normaliser *normaliser,
                   const double *q_id, double *b_i) {
    sinkproof_policy policy = policy_of(policy_name);
    sinkproof_sink_logits(&policy, &block, normaliser, q_id, b_i);
}

// Small integers and head_dim 16: every sum and the scale, 1/4, are exact in each format.
static void test_exact(void) {
    static const char *const policies[] = {"real-f64", "f32", "openai-bf16", "hf-bf16"};
    double q_id[ROWS * STRIDE], k_d[DIM], b_i[ROWS];
    uint64_t state = 71;
    size_t wrong = 0, balls = 0;
    fill_integers(&state, 2, ROWS * STRIDE, q_id);
    fill_integers(&state, 2, DIM, k_d);
    const sinkproof_normaliser key = {.key_d = k_d};
    arb_ptr q_b = _arb_vec_init(DIM);
    arb_t b;
    arb_init(b);
    for (size_t i = 0; i < ROWS; i++) {
        double told = 0;
        for (size_t d = 0; d < DIM; d++) {
            told += q_id[i * STRIDE + d] * k_d[d];
            arb_set_d(q_b + d, q_id[i * STRIDE + d]);
        }
        for (size_t p = 0; p < 4; p++) {
            logits(policies[p], &key, q_id, b_i);
            wrong += b_i[i] != told / 4;
        }
        truth_sink_logit(b, &key, q_b, DIM, 128);
        balls += !(arb_is_exact(b) && arf_cmp_d(arb_midref(b), told / 4) == 0);
    }
    ok(wrong == 0, "sink.key-bias ref, exact on integers worst=%zu bound=0 seed=71", wrong);
    ok(balls == 0, "sink.key-bias truth, exact on integers worst=%zu bound=0 seed=71", balls);
    _arb_vec_clear(q_b, DIM);
    arb_clear(b);
}

// head_dim products, their sum, the scale and its product: gamma_(head_dim + 3) of the sizes.
static void test_bound(void) {
    double q_id[ROWS * STRIDE], k_d[DIM], b_i[ROWS], worst = 0;
    uint64_t state = 73;
    size_t outside = 0;
    arb_ptr q_b = _arb_vec_init(DIM);
    arb_t b, at;
    balls_init(b, at);
    for (int trial = 0; trial < 200; trial++) {
        fill_reals(&state, ldexp(1, trial % 9), ROWS * STRIDE, q_id);
        fill_reals(&state, 4, DIM, k_d);
        const sinkproof_normaliser key = {.key_d = k_d};
        logits("real-f64", &key, q_id, b_i);
        for (size_t i = 0; i < ROWS; i++) {
            long double sum = 0, size = 0;
            for (size_t d = 0; d < DIM; d++) {
                sum += (long double)q_id[i * STRIDE + d] * k_d[d];
                size += fabsl((long double)q_id[i * STRIDE + d] * k_d[d]);
                arb_set_d(q_b + d, q_id[i * STRIDE + d]);
            }
            double bound = gamma53(DIM + 3) * (double)(size / 4);
            keep_worst(&worst, fabs((double)(b_i[i] - sum / 4)) / bound);
            truth_sink_logit(b, &key, q_b, DIM, 128);
            arb_set_d(at, b_i[i]);
            mag_set_d(arb_radref(at), bound);
            outside += !arb_contains(at, b);
        }
    }
    ok(worst <= 1, "sink.key-bias ref worst=%.3g bound=1 seed=73", worst);
    ok(outside == 0, "sink.key-bias truth, beside the reference worst=%zu bound=0 seed=73",
       outside);
    _arb_vec_clear(q_b, DIM);
    balls_clear(b, at);
}

// k* = 0 gives softmax_1; k* = b sqrt(d') e_r gives b where the query's coordinate r is 1.
static void test_equivalent(void) {
    double q_id[ROWS * STRIDE], k_d[DIM] = {0}, b_i[ROWS], zeros[ROWS] = {0}, same[ROWS];
    uint64_t state = 79;
    fill_reals(&state, 8, ROWS * STRIDE, q_id);
    const sinkproof_normaliser key = {.key_d = k_d};
    logits("real-f64", &key, q_id, b_i);
    ok(differing(ROWS, b_i, zeros) == 0, "sink.key-bias k* = 0 is softmax off by one");
    for (size_t i = 0; i < ROWS; i++) {
        q_id[i * STRIDE + 3] = 1;
        same[i] = 1.5;
    }
    k_d[3] = 1.5 * 4;
    logits("real-f64", &key, q_id, b_i);
    ok(differing(ROWS, b_i, same) == 0, "sink.key-bias a constant coordinate makes it a number");
    const sinkproof_normaliser number = {.logit = 1.5};
    logits("real-f64", &number, q_id, b_i);
    ok(differing(ROWS, b_i, same) == 0, "a number is the logit of every row");
    q_id[2 * STRIDE + 3] = 2;
    logits("real-f64", &key, q_id, b_i);
    ok(b_i[2] == 3 && b_i[1] == 1.5, "sink.key-bias and it follows the query");
}

// ---- whole models

enum { TOKENS = 21, MOST = 1 << 19 };
static int32_t tokens[TOKENS];

// Every number that an observer sees, in order.
typedef struct shown {
    size_t n;
    double *x;
} shown;

static void see(void *context, const char *name, size_t rank, const size_t *shape,
                const double *values) {
    shown *s = context;
    size_t count = 1;
    (void)name;
    for (size_t r = 0; r < rank; r++) count *= shape[r];
    if (s->n + count > MOST) abort(); // the test itself is wrong
    memcpy(s->x + s->n, values, count * sizeof *values);
    s->n += count;
}

static void run(const char *spec, const sinkproof_stages *stages, const char *policy_name,
                shown *s) {
    sinkproof_model *model = open_model(spec);
    sinkproof_policy policy = policy_of(policy_name);
    sinkproof_session *session = sinkproof_session_with(model, &policy, stages);
    sinkproof_observer observer = {.see = see, .context = s};
    sinkproof_error error;
    s->n = 0;
    for (size_t t = 0; t < TOKENS; t++) tokens[t] = (int32_t)(31 * t * t % 211);
    if (!sinkproof_forward(session, TOKENS, tokens, NULL, &observer, &error)) exit(1);
    sinkproof_session_free(session);
    sinkproof_model_close(model);
}

static void no_logits(const sinkproof_policy *policy, const sinkproof_block *b,
                      const sinkproof_normaliser *normaliser, const double *q_id, double *b_i) {
    (void)policy;
    (void)normaliser;
    (void)q_id;
    for (size_t i = 0; i < b->rows; i++) b_i[i] = -INFINITY;
}

// Without a sink: the same weights with every logit -infinity, bit for bit at every point; and what
// a row's keys take is then all there is.
static void test_none(const sinkproof_stages *stages, const char *what, const char *policy) {
    shown a = {.x = malloc(MOST * sizeof(double))}, b = {.x = malloc(MOST * sizeof(double))};
    if (a.x == NULL || b.x == NULL) abort();
    sinkproof_stages none = *stages;
    none.sink_logits = no_logits;
    run("synthetic:tiny,sink=none", stages, policy, &a);
    run("synthetic:tiny", &none, policy, &b);
    size_t apart = a.n == b.n ? differing(a.n, a.x, b.x) : a.n;
    ok(apart == 0 && a.n > 0,
       "sink.alpha %s %s: no sink is a logit of -infinity, worst=%zu bound=0 of %zu", what, policy,
       apart, a.n);
    run("synthetic:tiny,sink=off-by-one", stages, policy, &b);
    ok(differing(a.n, a.x, b.x) > 0, "sink.alpha %s %s: another model than off by one", what,
       policy);
    free(a.x);
    free(b.x);
}

static void zero_logits(const sinkproof_policy *policy, const sinkproof_block *b,
                        const sinkproof_normaliser *normaliser, const double *q_id, double *b_i) {
    (void)policy;
    (void)normaliser;
    (void)q_id;
    for (size_t i = 0; i < b->rows; i++) b_i[i] = 0;
}

// The same weights with every sink logit zero, bit for bit at every point.
static void test_off_by_one(const sinkproof_stages *stages, const char *what, const char *policy) {
    shown a = {.x = malloc(MOST * sizeof(double))}, b = {.x = malloc(MOST * sizeof(double))};
    if (a.x == NULL || b.x == NULL) abort();
    sinkproof_stages zero = *stages;
    zero.sink_logits = zero_logits;
    run("synthetic:tiny,sink=off-by-one", stages, policy, &a);
    run("synthetic:tiny", &zero, policy, &b);
    size_t apart = a.n == b.n ? differing(a.n, a.x, b.x) : a.n;
    ok(apart == 0 && a.n > 0,
       "sink.softmax1 %s %s: off by one is a sink logit of 0, worst=%zu bound=0 of %zu", what,
       policy, apart, a.n);
    run("synthetic:tiny", stages, policy, &b);
    ok(differing(a.n, a.x, b.x) > 0, "sink.softmax1 %s %s: another model than with its sinks", what,
       policy);
    free(a.x);
    free(b.x);
}

// Local truth: what the walk makes of a row's own scores and query, against long double.
typedef struct replayed {
    sinkproof_model *model;
    double *a6, *q; // as the reference showed them, [heads, n, n] and [n, heads, dim]
    double *a9;     // [heads, n, n + 1]
    double worst;
    size_t rows;
} replayed;

static void keep_first(void *context, const char *name, size_t rank, const size_t *shape,
                       const double *values) {
    replayed *r = context;
    size_t count = 1;
    for (size_t d = 0; d < rank; d++) count *= shape[d];
    double *to = strcmp(name, "01.A6") == 0     ? r->a6
                 : strcmp(name, "01.A4.q") == 0 ? r->q
                 : strcmp(name, "01.A9") == 0   ? r->a9
                                                : NULL;
    if (to != NULL) memcpy(to, values, count * sizeof *values);
}

static void put(void *context, const sinkproof_truth_place *place, arb_ptr values) {
    const replayed *r = context;
    size_t count = 1;
    for (size_t d = 0; d < place->rank; d++) count *= place->shape[d];
    const double *from = strcmp(place->name, "01.A6") == 0     ? r->a6
                         : strcmp(place->name, "01.A4.q") == 0 ? r->q
                                                               : NULL;
    for (size_t i = 0; from != NULL && i < count; i++) arb_set_d(values + i, from[i]);
}

// alpha_sink of layer 1, which sees all keys: the relative error of binary64's exponent t = b - z
// is |t| u + the error of b, gamma_(dim + 3) of its terms; of the sum and the quotient n + 3 u.
static void compare(void *context, const sinkproof_truth_place *place, arb_srcptr values) {
    replayed *r = context;
    if (strcmp(place->name, "01.A9") != 0) return;
    const sinkproof_config *c = sinkproof_model_config(r->model);
    sinkproof_layer layer = sinkproof_model_layer(r->model, 1);
    double *work = malloc(sinkproof_normaliser_work(c) * sizeof *work);
    if (work == NULL) abort();
    for (size_t h = 0; h < c->n_heads; h++) {
        sinkproof_normaliser normaliser = sinkproof_head_normaliser(c, &layer, h, work);
        for (size_t i = 0; i < TOKENS; i++, r->rows++) {
            size_t at = (h * TOKENS + i) * (TOKENS + 1) + TOKENS;
            double size = 0, far = 0;
            for (size_t d = 0; normaliser.key_d != NULL && d < c->head_dim; d++)
                size += fabs(r->q[(i * c->n_heads + h) * c->head_dim + d] * normaliser.key_d[d]);
            size /= sqrt((double)c->head_dim);
            for (size_t j = 0; j <= i; j++)
                far = fmax(far, fabs(r->a6[(h * TOKENS + i) * TOKENS + j]));
            far = 2 * (far + size + fabs(normaliser.logit)); // no exponent is larger
            double bound = expm1(2 * far * U53 + 2 * gamma53((double)c->head_dim + 3) * size) +
                           gamma53((double)TOKENS + 8);
            double told = arf_get_d(arb_midref(values + at), ARF_RND_NEAR);
            keep_worst(&r->worst, fabs(r->a9[at] - told) / (bound * told));
        }
    }
    free(work);
}

static void test_truth(const char *spec, const char *id) {
    replayed r = {.model = open_model(spec)};
    const sinkproof_config *c = sinkproof_model_config(r.model);
    r.a6 = calloc(c->n_heads * TOKENS * TOKENS, sizeof *r.a6);
    r.q = calloc(TOKENS * c->n_heads * c->head_dim, sizeof *r.q);
    r.a9 = calloc(c->n_heads * TOKENS * (TOKENS + 1), sizeof *r.a9);
    if (r.a6 == NULL || r.q == NULL || r.a9 == NULL) abort();
    sinkproof_policy policy = policy_of("real-f64");
    sinkproof_session *session = sinkproof_session_new(r.model, &policy);
    sinkproof_observer observer = {.see = keep_first, .context = &r};
    sinkproof_error error;
    const sinkproof_truth_hooks hooks = {.see = compare, .replay = put, .context = &r};
    sinkproof_truth_request request = {
        .model = r.model, .n = TOKENS, .tokens_n = tokens, .bits = 128, .hooks = &hooks};
    sinkproof_truth_result result;
    bool fine = sinkproof_forward(session, TOKENS, tokens, NULL, &observer, &error) &&
                sinkproof_truth_forward(&request, &result, &error);
    ok(fine && r.rows == c->n_heads * TOKENS && r.worst <= 1,
       "%s truth of the sink's weight beside the reference worst=%.3g bound=1 of %zu rows", id,
       r.worst, r.rows);
    if (fine) sinkproof_truth_result_clear(&result);
    sinkproof_session_free(session);
    sinkproof_model_close(r.model);
    free(r.a6);
    free(r.q);
    free(r.a9);
}

// ---- what a model stores, and who runs it

static void test_stored(void) {
    const struct {
        const char *spec;
        size_t count, rows, cols;
        bool vector;
    } kinds[] = {{"synthetic:tiny,sink=logit", 1, 1, 10, true},
                 {"synthetic:tiny,sink=off-by-one", 0, 0, 0, true},
                 {"synthetic:tiny,sink=key", 1, 10, 16, false},
                 {"synthetic:tiny,sink=none", 0, 0, 0, true}};
    uint64_t marks[4];
    for (size_t i = 0; i < 4; i++) {
        sinkproof_error error;
        sinkproof_model *model = open_model(kinds[i].spec);
        const sinkproof_config *c = sinkproof_model_config(model);
        sinkproof_layer layer = sinkproof_model_layer(model, 1);
        ok(layer.sinks.count == kinds[i].count && layer.sinks.rows == kinds[i].rows &&
               layer.sinks.cols == kinds[i].cols &&
               sinkproof_slot_is_vector(SINKPROOF_SINKS, c) == kinds[i].vector,
           "%s stores %zu x [%zu, %zu]", kinds[i].spec, layer.sinks.count, layer.sinks.rows,
           layer.sinks.cols);
        if (!sinkproof_model_fingerprint(model, &marks[i], &error)) exit(1);
        sinkproof_model_close(model);
    }
    size_t same = 0;
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < i; j++) same += marks[i] == marks[j];
    ok(same == 0, "each kind has a fingerprint of its own");
    char names[64], short_names[8];
    ok(strcmp(sink_kind_names(names, sizeof names), "logit, off-by-one, key or none") == 0 &&
           strncmp(sink_kind_names(short_names, sizeof short_names), names, 7) == 0,
       "the kinds are %s", names);
}

static void test_refused(void) {
    sinkproof_model *model = open_model("synthetic:tiny,sink=key");
    sinkproof_policy policy = policy_of("f32");
    sinkproof_engine *engine;
    sinkproof_error error = {""};
    ok(!sinkproof_engine_new(model, &policy, NULL, &engine, &error) && engine == NULL &&
           strstr(error.text, "attention sink \"key\"") != NULL,
       "the fast path refuses what it does not run: %s", error.text);
    sinkproof_model_close(model);
}

int main(void) {
    test_exact();
    test_bound();
    test_equivalent();
    static const char *const policies[] = {"real-f64", "f32", "openai-bf16", "hf-bf16"};
    for (size_t p = 0; p < 4; p++) test_off_by_one(&sinkproof_reference_stages, "ref", policies[p]);
    for (size_t p = 0; p < 4; p++) test_none(&sinkproof_reference_stages, "ref", policies[p]);
    test_none(&sinkproof_lanes_stages, "lanes", "f32");
    test_off_by_one(&sinkproof_lanes_stages, "lanes", "f32");
    test_off_by_one(&sinkproof_lanes_stages, "lanes", "bf16-operands");
    test_truth("synthetic:tiny,layers=2,sink=off-by-one", "sink.softmax1");
    test_truth("synthetic:tiny,layers=2,sink=key", "sink.key-bias");
    test_stored();
    test_refused();
    return tap_done();
}
