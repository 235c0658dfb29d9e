// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The last line of the derivation (sink.attn-gate) against the reference's own output, in a layer
// that slides and in one that does not, with grouped heads. The line is evaluated in balls, from
// the inputs and the scores that ref/ computed in binary64:
//
//   sum_h (1 - alpha_s,h) [sum_j softmax_j x_j W^V_g(h) + b^V_g(h)] W^O_h + b^O
//
// The honest set of ref's roundings must contain ref's output, which follows the definition, and
// must contain the line. A line whose bias is not multiplied by 1 - alpha_s must be far outside.
#include "proofs/bounds/bounds.h"
#include "proofs/truth/truth.h"
#include "ref/forward.h"
#include "ref/stages.h"
#include "tests/shared/bounds_engine.h"

enum { N = 24, BITS = 128, LAYERS = 2 };

typedef struct layer_run { // what ref/ computed in one layer
    double *x_nc, *z_hnj, *out_nc;
} layer_run;

typedef struct whole {
    layer_run at[LAYERS];
} whole;

static double *kept(size_t rank, const size_t *shape, const double *values) {
    size_t n = 1;
    for (size_t d = 0; d < rank; d++) n *= shape[d];
    double *copy = malloc(n * sizeof *copy);
    if (copy == NULL) abort();
    memcpy(copy, values, n * sizeof *copy);
    return copy;
}

static void see(void *context, const char *name, size_t rank, const size_t *shape,
                const double *values) {
    whole *w = context;
    size_t layer = (size_t)strtoul(name, NULL, 10);
    const char *point = strchr(name, '.');
    if (point == NULL || layer >= LAYERS) return;
    layer_run *run = &w->at[layer];
    if (strcmp(point, ".A1") == 0) run->x_nc = kept(rank, shape, values);
    if (strcmp(point, ".A6") == 0) run->z_hnj = kept(rank, shape, values);
    if (strcmp(point, ".A12") == 0) run->out_nc = kept(rank, shape, values);
}

static double *row_of(const sinkproof_matrix *b, size_t n) {
    double *row = malloc(n * sizeof *row);
    if (row == NULL) abort();
    sinkproof_matrix_row(b, 0, row);
    return row;
}

// The line for token i. b_faded: whether 1 - alpha_s multiplies the bias too, as it should.
static void last_line(arb_ptr out_c, const sinkproof_config *config, const sinkproof_layer *layer,
                      const layer_run *run, size_t first, size_t i, bool b_faded) {
    size_t dim = config->head_dim, hidden = config->hidden, heads = config->n_heads;
    size_t visible = i + 1 - first, kv = config->n_kv_heads;
    arb_ptr x = _arb_vec_init((slong)(visible * hidden)), z = _arb_vec_init((slong)visible);
    arb_ptr v = _arb_vec_init((slong)(visible * kv * dim)), a = _arb_vec_init((slong)visible);
    arb_ptr o = _arb_vec_init((slong)(heads * dim));
    double *b_v = row_of(&layer->b_v, kv * dim), *b_s = row_of(&layer->sinks, heads);
    arb_t left, none, sink, ignored;
    balls_init(left, none, sink, ignored);
    arb_neg_inf(none); // an ordinary softmax
    for (size_t k = 0; k < visible * hidden; k++) arb_set_d(x + k, run->x_nc[first * hidden + k]);
    sinkproof_truth_linear(v, x, visible, &layer->w_v, NULL, BITS); // x_j W^V, without the bias
    for (size_t h = 0; h < heads; h++) {
        size_t g = h / (heads / kv);
        for (size_t j = 0; j < visible; j++)
            arb_set_d(z + j, run->z_hnj[(h * N + i) * N + first + j]);
        arb_set_d(sink, b_s[h]);
        sinkproof_truth_softmax_sink(a, left, z, visible, sink, BITS); // alpha_s
        arb_sub_ui(left, left, 1, BITS);
        arb_neg(left, left);
        sinkproof_truth_softmax_sink(a, ignored, z, visible, none, BITS);
        sinkproof_truth_values(o + h * dim, a, v + g * dim, visible, kv * dim, dim, BITS);
        for (size_t d = 0; d < dim; d++) {
            arb_ptr here = o + h * dim + d;
            arb_set_d(sink, b_v[g * dim + d]);
            if (b_faded) arb_add(here, here, sink, BITS);
            arb_mul(here, here, left, BITS);
            if (!b_faded) arb_add(here, here, sink, BITS);
        }
    }
    sinkproof_truth_linear(out_c, o, 1, &layer->w_o, &layer->b_o, BITS);
    balls_clear(left, none, sink, ignored);
    _arb_vec_clear(x, (slong)(visible * hidden)), _arb_vec_clear(z, (slong)visible);
    _arb_vec_clear(v, (slong)(visible * kv * dim)), _arb_vec_clear(a, (slong)visible);
    _arb_vec_clear(o, (slong)(heads * dim));
    free(b_v), free(b_s);
}

// What binary64 may make of the definition, from the same inputs and scores.
static void honest_output(sinkproof_honest *out_c, const sinkproof_setting *s,
                          const sinkproof_config *config, const sinkproof_layer *layer,
                          const layer_run *run, size_t first, size_t i) {
    size_t dim = config->head_dim, hidden = config->hidden, heads = config->n_heads;
    size_t visible = i + 1 - first, kv = config->n_kv_heads, most = visible * hidden;
    sinkproof_honest *x = malloc(most * sizeof *x), *o = malloc(heads * dim * sizeof *o);
    sinkproof_honest *v = malloc(visible * kv * dim * sizeof *v);
    sinkproof_honest *v_dj = malloc(visible * dim * sizeof *v_dj);
    sinkproof_honest *z = malloc(visible * sizeof *z), *a = malloc((visible + 1) * sizeof *a);
    double *b_v = row_of(&layer->b_v, kv * dim), *b_s = row_of(&layer->sinks, heads);
    double *b_o = row_of(&layer->b_o, hidden), common;
    if (x == NULL || o == NULL || v == NULL || v_dj == NULL || z == NULL || a == NULL) abort();
    for (size_t k = 0; k < most; k++) x[k] = sinkproof_exact_set(run->x_nc[first * hidden + k]);
    sinkproof_planes p = sinkproof_planes_new(x, visible, hidden, hidden);
    must(sinkproof_honest_linear(s, &p, &(sinkproof_weight_rows){&layer->w_v, 0, kv * dim, b_v}, v,
                                 kv * dim));
    sinkproof_planes_free(&p);
    for (size_t h = 0; h < heads; h++) {
        size_t g = h / (heads / kv);
        for (size_t j = 0; j < visible; j++) {
            z[j] = sinkproof_exact_set(run->z_hnj[(h * N + i) * N + first + j]);
            for (size_t d = 0; d < dim; d++) v_dj[d * visible + j] = v[j * kv * dim + g * dim + d];
        }
        must(sinkproof_honest_softmax(s, AT_A9, visible, z, sinkproof_exact_set(b_s[h]), a,
                                      &common));
        sinkproof_planes left = sinkproof_planes_new(a, 1, visible, visible);
        sinkproof_planes right = sinkproof_planes_new(v_dj, dim, visible, visible);
        must(sinkproof_honest_products(s, &left, &right, NULL, NULL, o + h * dim, dim));
        sinkproof_planes_free(&left), sinkproof_planes_free(&right);
    }
    p = sinkproof_planes_new(o, 1, heads * dim, heads * dim);
    must(sinkproof_honest_linear(s, &p, &(sinkproof_weight_rows){&layer->w_o, 0, hidden, b_o},
                                 out_c, hidden));
    sinkproof_planes_free(&p);
    free(x), free(o), free(v), free(v_dj), free(z), free(a), free(b_v), free(b_s), free(b_o);
}

typedef struct found {
    size_t compared, outside, line_outside, unfaded_inside;
    double worst; // |ref - line| over the half of the set that it is in
} found;

// Whether the whole ball, not its middle alone, is in the set.
static bool ball_inside(const sinkproof_honest *set, const arb_t x) {
    arf_t lo, hi;
    arf_init(lo), arf_init(hi);
    arb_get_interval_arf(lo, hi, x, BITS);
    bool inside = arf_cmp_d(lo, set->lo) >= 0 && arf_cmp_d(hi, set->hi) <= 0;
    arf_clear(lo), arf_clear(hi);
    return inside;
}

static void compare(found *f, const sinkproof_honest *set_c, arb_srcptr line_c, arb_srcptr other_c,
                    const double *ref_c, size_t hidden) {
    for (size_t c = 0; c < hidden; c++) {
        double line = arf_get_d(arb_midref(line_c + c), ARF_RND_NEAR), apart = ref_c[c] - line;
        double room = apart < 0 ? line - set_c[c].lo : set_c[c].hi - line;
        double share = apart == 0 ? 0 : fabs(apart) / room;
        double other = arf_get_d(arb_midref(other_c + c), ARF_RND_NEAR);
        if (!(share <= f->worst) && f->worst == f->worst) f->worst = share;
        f->outside += !(set_c[c].lo <= ref_c[c] && ref_c[c] <= set_c[c].hi);
        f->line_outside += !ball_inside(&set_c[c], line_c + c);
        f->unfaded_inside += set_c[c].lo <= other && other <= set_c[c].hi;
        f->compared++;
    }
}

static void one_layer(const sinkproof_model *model, const sinkproof_setting *s,
                      const layer_run *run, size_t l) {
    const sinkproof_config *config = sinkproof_model_config(model);
    const sinkproof_layer layer = sinkproof_model_layer(model, l);
    size_t hidden = config->hidden, window = config->sliding[l] ? config->window : 0;
    arb_ptr line = _arb_vec_init((slong)hidden), other = _arb_vec_init((slong)hidden);
    sinkproof_honest *set = malloc(hidden * sizeof *set);
    found f = {0};
    if (set == NULL) abort();
    for (size_t i = 0; i < N; i++) {
        size_t first = sinkproof_mask_first(window, i);
        last_line(line, config, &layer, run, first, i, true);
        last_line(other, config, &layer, run, first, i, false);
        honest_output(set, s, config, &layer, run, first, i);
        compare(&f, set, line, other, run->out_nc + i * hidden, hidden);
    }
    ok(f.compared > 0 && f.outside == 0 && f.line_outside == 0 && f.worst <= 1,
       "sink.attn-gate the last line in balls against ref's output, layer %zu%s, elements=%zu "
       "outside=%zu worst=%.3g bound=1",
       l, window ? ", sliding" : "", f.compared, f.outside + f.line_outside, f.worst);
    ok(f.unfaded_inside == 0,
       "sink.attn-gate with the bias not faded %zu of %zu elements are inside, bound=0",
       f.unfaded_inside, f.compared);
    _arb_vec_clear(line, (slong)hidden), _arb_vec_clear(other, (slong)hidden);
    free(set);
}

int main(void) {
    sinkproof_error error = {""};
    sinkproof_model *model = NULL;
    sinkproof_policy policy = policy_named("real-f64");
    whole w = {0};
    int32_t tokens[N];
    uint64_t state = 20260122;
    if (!sinkproof_model_open("synthetic:tiny", &model, &error)) {
        ok(false, "sink.attn-gate: %s", error.text);
        return tap_done();
    }
    size_t vocab = sinkproof_model_config(model)->vocab;
    for (size_t i = 0; i < N; i++) tokens[i] = (int32_t)draw_below(&state, vocab);
    sinkproof_session *session = sinkproof_session_new(model, &policy);
    sinkproof_observer observer = {.see = see, .context = &w};
    if (session == NULL) abort();
    bool fine = sinkproof_forward(session, N, tokens, NULL, &observer, &error);
    sinkproof_session_free(session);
    if (!fine) ok(false, "sink.attn-gate: %s", error.text);
    const sinkproof_setting setting = {.policy = &policy, .u = 0x1p-53, .odds = 30};
    for (size_t l = 0; fine && l < LAYERS; l++) {
        one_layer(model, &setting, &w.at[l], l);
        free(w.at[l].x_nc), free(w.at[l].z_hnj), free(w.at[l].out_nc);
    }
    sinkproof_model_close(model);
    return tap_done();
}
