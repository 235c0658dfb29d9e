// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A plug-in of honest float32 kernels for tests/audit/test_plugin.py, which builds it as a stranger
// would: against the public header alone. The environment's PLANTED names changes, mistakes or
// other honest ways.
#include "audit/sinkproof.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TILE = 32, MOST = 512 };

// clang-format off
#define CHANGES(P) \
    P(REVERSED, "reversed") \
    P(BASE_2, "base-2") \
    P(SINK_DROPPED, "sink-dropped") \
    P(SINK_LAST, "sink-last") \
    P(NAN_WITHOUT_SINK, "nan-without-sink") \
    P(NO_MAXIMUM, "no-maximum") \
    P(TILE_EDGE, "tile-edge") \
    P(SINK_PER_PART, "sink-per-part") \
    P(SINK_VALUE, "sink-value") \
    P(WINDOW_WIDE, "window-wide") \
    P(WINDOW_ALWAYS, "window-always") \
    P(WINDOW_NEVER, "window-never") \
    P(SERVES_NOTHING, "serves-nothing") \
    P(CRASH, "crash") \
    P(HANG, "hang") \
    P(EXIT, "exit") \
    P(REFUSE, "refuse") \
    P(INPUT, "input") \
    P(BEYOND, "beyond") \
    P(FIRST_FORGOTTEN, "first-forgotten") \
    P(CACHE_UNREAD, "cache-unread") \
    P(PIECE_ALONE, "piece-alone") \
    P(PIECE_ANEW, "piece-anew") \
    P(SINK_LOG2E, "sink-log2e") \
    P(WINDOW_NARROW, "window-narrow") \
    P(TAIL, "tail") \
    P(GROUP_MODULUS, "group-modulus") \
    P(FUTURE, "future") \
    P(SINK_OF_NEXT, "sink-of-next") \
    P(SCALE, "scale") \
    P(ALPHA, "alpha") \
    P(SWAPPED, "swapped") \
    P(CLAMP_ONE_SIDED, "clamp-one-sided") \
    P(CLAMP_GATE, "clamp-gate") \
    P(TANH, "tanh") \
    P(PLUS_ONE, "plus-one") \
    P(EPS, "eps") \
    P(EPS_OUTSIDE, "eps-outside") \
    P(LAST_OF_TIES, "last-of-ties") \
    P(TWICE, "twice") \
    P(SOFTMAX_FIRST, "softmax-first") \
    P(BIAS, "bias") \
    P(FMA, "fma") \
    P(TWO_SUMS, "two-sums") \
    P(NARROW_SUM, "narrow-sum") \
    P(LAST_COLUMN, "last-column") \
    P(INEXACT, "inexact") \
    P(LSE, "lse") \
    P(LSE_NEXT_HEAD, "lse-next-head") \
    P(LSE_UNWRITTEN, "lse-unwritten") \
    P(LSE_WORD, "lse-word") \
    P(OLDER, "older") \
    P(TOO_SMALL, "too-small") \
    P(UNKNOWN_STAGE, "unknown-stage") \
    P(OTHER_POLICY, "other-policy") \
    P(LONG_POLICY, "long-policy") \
    P(CANNOT_RUN, "cannot-run")
// clang-format on

typedef enum change {
#define CHANGE(id, name) id,
    CHANGES(CHANGE)
#undef CHANGE
        COUNT
} change;

static const char *const names[COUNT] = {
#define NAME(id, name) name,
    CHANGES(NAME)
#undef NAME
};

static bool planted[COUNT];

// `words`: names between commas.
static void plant(const char *words) {
    for (int c = 0; c < COUNT; c++)
        for (const char *word = words; word != NULL && *word != '\0';) {
            size_t length = strcspn(word, ",");
            if (strlen(names[c]) == length && strncmp(word, names[c], length) == 0)
                planted[c] = true;
            word += length + (word[length] == ',');
        }
}

// ---- attention: keys in tiles, a running maximum --------------------------------------------

typedef struct row {
    const float *q, *k, *v; // k and v: from one key to the next `step` numbers
    size_t dim, step, first, last;
    float sink, scale;
} row;

static float score(const row *r, size_t j) {
    float sum = 0;
    for (size_t d = 0; d < r->dim; d++) {
        size_t at = planted[REVERSED] ? r->dim - 1 - d : d;
        sum += r->q[at] * r->k[j * r->step + at];
    }
    return sum * r->scale;
}

// exp(x), or 2^(x log2 e).
static float power(float x) {
    return planted[BASE_2] ? exp2f(x * 1.442695041f) : expf(x);
}

// Returns the log-sum-exp, with the sink.
static float attend(const row *r, float *o) {
    bool no_sink = planted[SINK_DROPPED], last_sink = planted[SINK_LAST];
    float top = r->sink, sum = 1, part[MOST] = {0};
    if (no_sink || last_sink || r->sink == -INFINITY) {
        top = score(r, r->first);
        sum = 0;
    }
    if (planted[NAN_WITHOUT_SINK]) { // exp(-inf - -inf)
        top = r->sink;
        sum = power(r->sink - top);
    }
    if (planted[NO_MAXIMUM]) {
        top = 0;
        sum = expf(r->sink);
    }
    for (size_t j = r->first; j <= r->last; j++) {
        if (planted[TILE_EDGE] && j % TILE == TILE - 1 && j == r->last && j > r->first) continue;
        float s = score(r, j), larger = planted[NO_MAXIMUM] ? 0 : fmaxf(top, s);
        float kept = power(top - larger), weight = power(s - larger);
        sum = sum * kept + weight;
        for (size_t d = 0; d < r->dim; d++)
            part[d] = part[d] * kept + weight * r->v[j * r->step + d];
        top = larger;
        if (planted[SINK_PER_PART] && j % TILE == TILE - 1) sum += power(r->sink - top);
    }
    if (last_sink && r->sink > -INFINITY) {
        float larger = fmaxf(top, r->sink), kept = power(top - larger);
        sum = sum * kept + power(r->sink - larger);
        for (size_t d = 0; d < r->dim; d++) part[d] *= kept;
        top = larger;
    }
    float share = planted[SINK_VALUE] ? power(r->sink - top) / sum : 0;
    for (size_t d = 0; d < r->dim; d++) o[d] = part[d] / sum + share * r->v[d];
    return top + logf(sum);
}

static size_t first_key(const sinkproof_drill *d, size_t i) {
    size_t window = d->window;
    if (planted[WINDOW_WIDE] && window > 0) window++;
    if (planted[WINDOW_NARROW] && window > 1) window--;
    if (planted[WINDOW_ALWAYS]) window = 16;
    if (planted[WINDOW_NEVER]) window = 0;
    return window > 0 && i >= window ? i + 1 - window : 0;
}

static int attention(void *context, const sinkproof_drill *d) {
    const float *q = d->inputs[0].values, *k = d->inputs[1].values, *v = d->inputs[2].values;
    size_t group = d->heads / d->kv_heads, keys = d->first + d->n;
    (void)context;
    if (d->head_dim > MOST || planted[SERVES_NOTHING]) return 1;
    if (planted[CRASH] && d->n == 33) *(volatile int *)(uintptr_t)d->window = 1;
    if (planted[HANG] && d->n == 33) pause();
    if (planted[EXIT]) exit(7);
    if (planted[REFUSE]) return 5;
    if (planted[INPUT]) d->inputs[1].values[0] += 1;
    if (planted[BEYOND]) d->outputs[0].values[d->n * d->heads * d->head_dim] = 0;
    for (size_t i = 0; i < d->n; i++)
        for (size_t h = 0; h < d->heads; h++) {
            size_t at = (i * d->heads + h) * d->head_dim, g = h / group;
            size_t position = planted[FIRST_FORGOTTEN] ? i : d->first + i, piece = 2 * keys / 3;
            if (planted[TAIL] && d->n % TILE > 16 && i + 1 == d->n) continue;
            if (planted[GROUP_MODULUS]) g = h % d->kv_heads;
            if (planted[FUTURE] && position + 1 < keys) position++;
            if (planted[PIECE_ANEW] && position >= piece) position -= piece;
            row r = {.q = q + at, .k = k + g * d->head_dim, .v = v + g * d->head_dim};
            r.dim = d->head_dim;
            r.step = d->kv_heads * d->head_dim;
            r.first = first_key(d, position);
            if (planted[CACHE_UNREAD] && r.first < d->first) r.first = d->first;
            if (planted[PIECE_ALONE] && position >= piece && r.first < piece) r.first = piece;
            r.last = position;
            r.sink = d->inputs[3].values[planted[SINK_OF_NEXT] ? (h + 1) % d->heads : h];
            if (planted[SINK_LOG2E]) r.sink *= 1.442695041f;
            r.scale = 1 / (planted[SCALE] ? (float)d->head_dim : sqrtf((float)d->head_dim));
            float lse = attend(&r, d->outputs[0].values + at);
            size_t head = planted[LSE_NEXT_HEAD] ? (h + 1) % d->heads : h;
            if (d->n_outputs > 1 && !(planted[LSE_UNWRITTEN] && h == 0))
                d->outputs[1].values[head * d->n + i] = lse;
        }
    return 0;
}

// ---- swiglu ----------------------------------------------------------------------------------

static int swiglu(void *context, const sinkproof_drill *d) {
    float limit = (float)d->swiglu_limit;
    float alpha = planted[ALPHA] ? 1.7f : (float)d->swiglu_alpha;
    (void)context;
    for (size_t i = 0; i < d->n * d->chosen * d->inter; i++) {
        const float *pair = d->inputs[0].values + 2 * i;
        bool swapped = planted[SWAPPED];
        float gate = fminf(pair[swapped], limit);
        float up = fmaxf(fminf(pair[!swapped], limit), planted[CLAMP_ONE_SIDED] ? -1e30f : -limit);
        if (planted[CLAMP_GATE]) gate = fmaxf(gate, -limit);
        float sigmoid =
            planted[TANH] ? 0.5f + 0.5f * tanhf(alpha * gate / 2) : 1 / (1 + expf(-alpha * gate));
        d->outputs[0].values[i] = gate * sigmoid * (up + (planted[PLUS_ONE] ? 0 : 1));
    }
    return 0;
}

// ---- rmsnorm ---------------------------------------------------------------------------------

static int rmsnorm(void *context, const sinkproof_drill *d) {
    size_t cols = d->hidden;
    (void)context;
    for (size_t i = 0; i < d->n; i++) {
        const float *x = d->inputs[0].values + i * cols, *w = d->inputs[1].values;
        float sum = 0, eps = planted[EPS] ? 1e-6f : (float)d->rms_eps;
        for (size_t c = 0; c < cols; c++) sum += x[c] * x[c];
        float r = 1 / sqrtf(sum / (float)cols + eps);
        if (planted[EPS_OUTSIDE]) r = 1 / (sqrtf(sum / (float)cols) + eps);
        for (size_t c = 0; c < cols; c++) d->outputs[0].values[i * cols + c] = x[c] * r * w[c];
    }
    return 0;
}

// ---- router ----------------------------------------------------------------------------------

static void route(const sinkproof_drill *d, const float *z, float *chosen, float *weight) {
    float sum = 0, all = 0, top = z[0];
    bool taken[64] = {false}, last = planted[LAST_OF_TIES];
    for (size_t e = 0; e < d->experts; e++) top = fmaxf(top, z[e]);
    for (size_t e = 0; e < d->experts; e++) all += expf(z[e] - top);
    for (size_t k = 0; k < d->chosen; k++) {
        size_t best = d->experts;
        for (size_t e = 0; e < d->experts; e++)
            if (!taken[e] && (best == d->experts || z[e] > z[best] || (last && z[e] == z[best])))
                best = e;
        taken[best] = true;
        chosen[k] = (float)(planted[TWICE] ? 0 : best);
        weight[k] = expf(z[best] - top);
        sum += weight[k];
    }
    for (size_t k = 0; k < d->chosen; k++) weight[k] /= planted[SOFTMAX_FIRST] ? all : sum;
}

static int router(void *context, const sinkproof_drill *d) {
    (void)context;
    if (d->experts > 64) return 1;
    for (size_t i = 0; i < d->n; i++) {
        const float *x = d->inputs[0].values + i * d->hidden;
        float *z = d->outputs[0].values + i * d->experts;
        for (size_t e = 0; e < d->experts; e++) {
            const float *w = d->inputs[1].values + e * d->hidden;
            z[e] = planted[BIAS] ? 0 : d->inputs[2].values[e];
            for (size_t c = 0; c < d->hidden; c++)
                z[e] = planted[FMA] ? fmaf(w[c], x[c], z[e]) : z[e] + w[c] * x[c];
        }
        route(d, z, d->outputs[1].values + i * d->chosen, d->outputs[2].values + i * d->chosen);
    }
    return 0;
}

// ---- the unembedding: one product ------------------------------------------------------------

// To bfloat16's eight bits, toward zero.
static float cut(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= 0xffff0000u;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static int unembed(void *context, const sinkproof_drill *d) {
    size_t vocab = d->outputs[0].shape[1];
    (void)context;
    for (size_t i = 0; i < d->n; i++)
        for (size_t v = 0; v < vocab; v++) {
            float sum = 0, second = 0;
            for (size_t c = 0; c < d->hidden; c++) {
                float product =
                    d->inputs[0].values[i * d->hidden + c] * d->inputs[1].values[v * d->hidden + c];
                *(planted[TWO_SUMS] && c % 2 == 1 ? &second : &sum) += product;
                if (planted[NARROW_SUM]) sum = cut(sum);
                if (planted[LAST_COLUMN] && c + 1 == d->hidden && c % 16 == 0) sum -= product;
            }
            d->outputs[0].values[i * vocab + v] = sum + second;
            if (planted[INEXACT]) // one part in 2^23: inside every bound of a long sum
                d->outputs[0].values[i * vocab + v] = nextafterf(sum, INFINITY);
        }
    return 0;
}

// ---- the plug-in -----------------------------------------------------------------------------

static const sinkproof_plugin_entry entries[] = {{"attention", attention},
                                                 {"swiglu", swiglu},
                                                 {"rmsnorm", rmsnorm},
                                                 {"router", router},
                                                 {"unembed", unembed}};
static const sinkproof_plugin_entry unknown[] = {{"attenti0n", attention}};

const sinkproof_plugin *sinkproof_plugin_get(void) {
    static sinkproof_plugin plugin = {.size = sizeof plugin,
                                      .name = "planted",
                                      .n_stages = sizeof entries / sizeof *entries,
                                      .stages = entries,
                                      .policy = "f32"};
    static char too_long[4096];
    plant(getenv("PLANTED"));
    if (planted[OLDER]) { // of a header whose struct ended here: what lies behind is no member
        plugin.size = offsetof(sinkproof_plugin, policy);
        plugin.policy = plugin.lse = (const char *)(uintptr_t)1;
    }
    if (planted[LSE]) plugin.lse = "either";
    if (planted[LSE_WORD]) plugin.lse = "natural";
    if (planted[TOO_SMALL]) plugin.size = 8;
    if (planted[UNKNOWN_STAGE]) {
        plugin.n_stages = 1;
        plugin.stages = unknown;
    }
    if (planted[OTHER_POLICY]) plugin.policy = "f33";
    if (planted[LONG_POLICY]) plugin.policy = memset(too_long, 'x', sizeof too_long - 1);
    printf("a plug-in may print\n");
    return planted[CANNOT_RUN] ? NULL : &plugin;
}
