// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Every point of the truth of a whole model, computed again. What each point reads was replaced by
// drawn numbers, and its enclosure must meet the point's formula in long double, up to the
// roundings of the comparison. Two layers of GPT-OSS (one slides; logits or keys as sinks; ramps
// with integer and with fractional ends) and of GPT-2. Also the order of the points, their shapes,
// the account of the routing, and what is refused. 0.1 CPU seconds.
#include "model/container.h"
#include "tests/shared/point_formulas.h"

#include <unistd.h>

static const uint64_t SEED = 20261123;
enum { BITS = 128 };

// The statements that a point shows, of GPT-OSS.
static const char *const ids[POINTS] = {
    [T0] = "model.forward",
    [A1] = "model.forward rmsnorm.forward",
    [A2_Q] = "model.forward attn.qkv",
    [A4_Q] = "model.forward rope.rotate rope.orthogonal yarn.ramp yarn.concentration yarn.truncate",
    [A2_K] = "model.forward attn.qkv",
    [A4_K] = "model.forward rope.rotate rope.orthogonal yarn.ramp yarn.concentration yarn.truncate",
    [A2_V] = "model.forward attn.qkv",
    [A6] = "model.forward attn.score",
    [A9] = "model.forward sink.alpha sink.alpha-sink sink.key-bias",
    [A10] = "model.forward",
    [A11] = "model.forward sink.attn-values",
    [A12] = "model.forward",
    [A13] = "model.forward",
    [M1] = "model.forward rmsnorm.forward",
    [M2] = "model.forward",
    [M3] = "model.forward router.topk",
    [M4] = "model.forward router.softmax-after",
    [M5] = "model.forward",
    [M6] = "model.forward",
    [M8] = "model.forward swiglu.clamped",
    [M9] = "model.forward",
    [M10] = "model.forward",
    [M11] = "model.forward moe.sum",
    [M12] = "model.forward",
    [F1] = "model.forward",
    [F2] = "model.forward"};

static const char *ids_gpt2(which p) {
    return p == A1 || p == M1 || p == F1 ? "gpt2.forward layernorm.forward"
           : p == M8                     ? "gpt2.forward gelu.tanh"
                                         : "gpt2.forward";
}

// ---- the walk -----------------------------------------------------------------------------------

// The points of one layer in their order, and those around all layers.
static size_t points_of(const walk *w, which *order) {
    static const which oss[] = {A1, A2_Q, A2_K, A2_V, A4_Q, A4_K, A6, A9, A10, A11, A12, A13,
                                M1, M2,   M3,   M4,   M5,   M6,   M8, M9, M10, M11, M12};
    static const which gpt2[] = {A1,  A2_Q, A2_K, A2_V, A6, A9,  A10, A11,
                                 A12, A13,  M1,   M6,   M8, M10, M12};
    const which *one = w->gpt2 ? gpt2 : oss;
    size_t each = w->gpt2 ? sizeof gpt2 / sizeof *gpt2 : sizeof oss / sizeof *oss, count = 0;
    order[count++] = T0;
    for (size_t l = 0; l < w->c->n_layers; l++)
        for (size_t p = 0; p < each; p++) order[count++] = one[p];
    order[count++] = F1;
    order[count++] = F2;
    return count;
}

static which point_at(const walk *w, size_t k) {
    which order[128];
    return k < points_of(w, order) ? order[k] : POINTS;
}

static void account(walk *w, const double *logit_ne) {
    size_t n = w->c->n_experts, k = w->c->n_chosen;
    for (size_t i = 0; i < N; i++, w->choices++) {
        real least = INFINITY, most = -INFINITY;
        for (size_t e = 0; e < n; e++) {
            real logit = logit_ne[i * n + e];
            if (rank_of(logit_ne + i * n, n, e) < k)
                least = fminl(least, logit);
            else
                most = fmaxl(most, logit);
        }
        w->ties += least == most;
        if (w->choices > 0 && !(least - most < w->thinnest)) continue;
        w->thinnest = least - most, w->thin_layer = w->l, w->thin_token = i;
    }
}

static void see(void *context, const sinkproof_truth_place *place, arb_srcptr values) {
    walk *w = context;
    which p = point_at(w, w->expected++);
    bool layered = p != T0 && p != F1 && p != F2;
    size_t shape[3] = {0}, elements = 1;
    char name[32];
    snprintf(name, sizeof name, "%02zu.%s", layered ? place->layer : 0, names[p % POINTS]);
    bool right = p < POINTS && strcmp(place->point, names[p]) == 0 &&
                 strcmp(place->name, layered ? name : names[p]) == 0;
    w->misplaced += !right;
    if (!right) return;
    if (layered) w->l = place->layer, w->layer = sinkproof_model_layer(w->model, w->l);
    shape_of(w, p, shape);
    for (size_t r = 0; r < place->rank; r++) elements *= place->shape[r];
    bool fits = place->rank == (shape[2] > 0 ? 3 : 2) && elements <= MOST;
    for (size_t r = 0; fits && r < place->rank; r++) fits = place->shape[r] == shape[r];
    w->misshapen += !fits;
    if (!fits) return;
    for (size_t e = 0; e < elements; e++) {
        double found = arf_get_d(arb_midref(values + e), ARF_RND_NEAR);
        stated s = state_of(w, p, e);
        near(&w->d[p], found, s.value, s.scale, s.roundings);
        if (s.scale > 0)
            w->widest = sinkproof_keep_worst(w->widest,
                                             mag_get_d(arb_radref(values + e)) / (double)s.scale);
        else
            w->widest += !arb_is_exact(values + e);
    }
}

static void replay(void *context, const sinkproof_truth_place *place, arb_ptr values) {
    walk *w = context;
    which p = point_at(w, w->expected - 1);
    size_t shape[3] = {0};
    if (p == POINTS || p == M3 || p == F2) return;
    shape_of(w, p, shape);
    size_t elements = shape[0] * shape[1] * (shape[2] > 0 ? shape[2] : 1);
    must(place->rank == (shape[2] > 0 ? 3 : 2) && elements <= MOST);
    double reach = p == M6 || p == M5 ? 12 : 2;
    for (size_t e = 0; e < elements; e++) {
        double x = reach * ((double)draw_below(&w->state, 4096) / 2048 - 1);
        if (p == M2 && draw_below(&w->state, 4) == 0) x = 1; // ties
        w->at[p][e] = x;
        arb_set_d(values + e, x);
    }
    if (p == T0 || p == A13 || p == M12) memcpy(w->before, w->at[p], sizeof w->before);
    if (p == M2) account(w, w->at[M2]);
}

// The best k experts but for the first token, where the worst one stands in for the best.
static bool choose(void *context, size_t layer, size_t *chosen_nk) {
    walk *w = context;
    size_t n = w->c->n_experts, k = w->c->n_chosen;
    w->misplaced += layer != w->l;
    for (size_t s = 0; s < N * k; s++) {
        const double *logit_e = w->at[M2] + s / k * n;
        for (size_t e = 0; e < n; e++) {
            size_t rank = rank_of(logit_e, n, e);
            if (rank == (s == 0 ? n - 1 : s % k)) chosen_nk[s] = e;
        }
        w->chosen_nk[s] = chosen_nk[s];
    }
    real worst = w->at[M2][chosen_nk[0]], best = -INFINITY;
    for (size_t e = 0; e < n; e++)
        if (rank_of(w->at[M2], n, e) == 0) best = w->at[M2][e];
    w->contested += worst < best;
    return true;
}

static bool layer(void *context, const sinkproof_truth_state *state, sinkproof_error *error) {
    walk *w = context;
    (void)error;
    w->misplaced += state->layers != ++w->done;
    return true;
}

static const char gpt2_config[] =
    "{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 32, \"n_inner\": 32, \"n_head\": 4,"
    " \"vocab_size\": 13, \"n_positions\": 8, \"layer_norm_epsilon\": 1e-05}";

static sinkproof_model *small(bool gpt2, const char *sink, bool truncate) {
    char path[] = "/tmp/sinkproof-truth-XXXXXX", spec[64];
    sinkproof_config c;
    sinkproof_error error = {""};
    sinkproof_model *model = NULL;
    int descriptor = mkstemp(path);
    bool written = descriptor >= 0;
    if (written && gpt2) {
        written = write(descriptor, gpt2_config, sizeof gpt2_config - 1) > 0;
    } else if (written && sinkproof_config_named("tiny", &c)) {
        c.n_layers = 2, c.hidden = 32, c.inter = 32, c.vocab = 13, c.n_heads = 4, c.n_kv_heads = 2;
        c.head_dim = 8, c.n_experts = 5, c.n_chosen = 2, c.window = 3,
        c.rotation.truncate = truncate;
        config_alternate_windows(&c);
        written = sink_kind_find(sink, &c.sink) &&
                  config_write(path, &c, sinkproof_container_named("hf"), false, &error);
    }
    snprintf(spec, sizeof spec, "synthetic:%s", path);
    if (!written || !sinkproof_model_open(spec, &model, &error)) {
        printf("Bail out! %s\n", error.text);
        exit(1);
    }
    close(descriptor);
    unlink(path);
    return model;
}

static void points(bool gpt2, const char *sink, bool truncate, bool last) {
    sinkproof_model *model = small(gpt2, sink, truncate);
    walk *w = calloc(1, sizeof *w);
    must(w != NULL);
    int32_t tokens_n[N] = {5, 0, 12, 5, 7};
    *w = (walk){.model = model,
                .c = sinkproof_model_config(model),
                .tokens_n = tokens_n,
                .rows = last ? 1 : N,
                .gpt2 = gpt2,
                .state = SEED + truncate};
    sinkproof_truth_hooks hooks = {see, replay, choose, layer, w};
    sinkproof_truth_request request = {.model = model,
                                       .n = N,
                                       .tokens_n = tokens_n,
                                       .bits = BITS,
                                       .last_logits = last,
                                       .hooks = &hooks};
    sinkproof_truth_result result;
    sinkproof_error error = {""};
    which order[128];
    char what[80];
    snprintf(what, sizeof what, "%s%s", gpt2 ? "GPT-2" : sink, truncate ? ", whole ends" : "");
    if (!ok(sinkproof_truth_forward(&request, &result, &error), "%s %s is walked %s",
            gpt2 ? "gpt2.forward" : "model.forward", what, error.text))
        return;
    for (which p = T0; p < POINTS; p++) {
        char said[120];
        if (w->d[p].compared == 0) continue;
        snprintf(said, sizeof said, "%s, %s", what, names[p]);
        report(&w->d[p], gpt2 ? ids_gpt2(p) : ids[p], said, SEED);
    }
    size_t seen = points_of(w, order);
    const sinkproof_truth_routing *r = &result.routing;
    bool routed = gpt2 || (r->layer == w->thin_layer && r->token == w->thin_token &&
                           arb_is_exact(r->margin) && r->contested == w->contested &&
                           arf_get_d(arb_midref(r->margin), ARF_RND_NEAR) == (double)w->thinnest);
    ok(w->expected == seen && w->misplaced == 0 && w->misshapen == 0 && w->done == w->c->n_layers &&
           result.n == w->rows && result.vocab == w->c->vocab,
       "%s %s: %zu points in their order, misplaced worst=%zu bound=0, misshapen worst=%zu bound=0",
       gpt2 ? "gpt2.forward" : "model.forward", what, w->expected, w->misplaced, w->misshapen);
    ok(w->widest <= 0x1p-90, "%s %s: the widest radius beside its sum worst=%.3g bound=2^-90",
       gpt2 ? "gpt2.forward" : "model.forward", what, w->widest);
    ok(routed && r->choices == w->choices && r->ties == w->ties && r->ambiguous == 0,
       "%s %s: %zu choices, %zu ties, %zu contested, the thinnest at layer %zu, token %zu, as "
       "counted",
       gpt2 ? "gpt2.forward" : "router.topk model.forward", what, r->choices, r->ties, r->contested,
       r->layer, r->token);
    sinkproof_truth_result_clear(&result);
    free(w);
    sinkproof_model_close(model);
}

// ---- what is refused ----------------------------------------------------------------------------

static bool other_expert(void *context, size_t layer, size_t *chosen_nk) {
    const char *how = context;
    if (layer == 1) chosen_nk[3] = *how == 't' ? chosen_nk[2] : 5; // of token 1
    return layer == 1;
}

static void refusals(void) {
    sinkproof_model *models[] = {small(false, "logit", false), small(true, NULL, false)};
    const sinkproof_config *gpt2 = sinkproof_model_config(models[1]);
    int32_t *many_n = calloc(gpt2->max_context + 1, sizeof *many_n), low = -1, high = 13, top = 12;
    must(many_n != NULL);
    char beyond[120];
    snprintf(beyond, sizeof beyond, "%zu tokens exceed the model's context of %zu",
             gpt2->max_context + 1, gpt2->max_context);
    const struct {
        size_t model, n;
        const int32_t *tokens_n;
        slong bits;
        const char *chosen, *sentence; // NULL: taken
    } all[] = {
        {0, 1, &top, 32, NULL, NULL},
        {0, 1, &top, 31, NULL, "truth needs 32 to 1048576 bits of working precision, not 31"},
        {0, 1, &top, 1048577, NULL,
         "truth needs 32 to 1048576 bits of working precision, not 1048577"},
        {0, 0, &top, 64, NULL, "truth needs at least one token"},
        {0, (size_t)INT32_MAX + 1, &top, 64, NULL, "truth needs at least one token"},
        {0, 1, &low, 64, NULL, "token 0 is -1, the vocabulary has 13 entries"},
        {0, 1, &high, 64, NULL, "token 0 is 13, the vocabulary has 13 entries"},
        {1, gpt2->max_context + 1, many_n, 64, NULL, beyond},
        {0, 2, many_n, 64, "five", "01.M3: expert 5 of token 1 where the model has 5 experts"},
        {0, 2, many_n, 64, "twice", "01.M3: token 1 chooses expert 0 twice"},
    };
    size_t wrong = 0, cases = sizeof all / sizeof *all;
    for (size_t k = 0; k < cases; k++) {
        char how[8] = "";
        if (all[k].chosen != NULL) snprintf(how, sizeof how, "%s", all[k].chosen);
        sinkproof_truth_hooks hooks = {.choose = other_expert, .context = how};
        sinkproof_truth_request request = {.model = models[all[k].model],
                                           .n = all[k].n,
                                           .tokens_n = all[k].tokens_n,
                                           .bits = all[k].bits};
        if (all[k].chosen != NULL) request.hooks = &hooks;
        sinkproof_truth_result result;
        sinkproof_error error = {""};
        bool taken = sinkproof_truth_forward(&request, &result, &error);
        if (taken) sinkproof_truth_result_clear(&result);
        const char *twice = strstr(all[k].sentence == NULL ? "" : all[k].sentence, "twice");
        bool same = all[k].sentence != NULL &&
                    (twice != NULL ? strstr(error.text, "01.M3: token 1 chooses expert") != NULL &&
                                         strstr(error.text, "twice") != NULL
                                   : strcmp(error.text, all[k].sentence) == 0);
        if (taken == (all[k].sentence == NULL) && (taken || same)) continue;
        wrong++;
        note("case %zu: %s", k, error.text);
    }
    ok(wrong == 0,
       "model.forward gpt2.forward %zu requests taken or refused, each by its sentence: "
       "worst=%zu bound=0",
       cases, wrong);
    free(many_n);
    sinkproof_model_close(models[0]);
    sinkproof_model_close(models[1]);
}

int main(void) {
    points(false, "logit", false, false);
    points(false, "key", true, true);
    points(true, NULL, false, false);
    refusals();
    flint_cleanup();
    mpfr_free_cache();
    return tap_done();
}
