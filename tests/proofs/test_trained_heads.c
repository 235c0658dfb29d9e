// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Trained heads from the study of doc/27 (tests/audit/training_study.py), one of each design, as
// torch computed them in float32. Queries, keys and values (from the layer's input), scores,
// weights and results (each from torch's previous step) are inside the honest sets of that design.
// What the study says of the first token and of the star is computed again here.
//
//   test_trained_heads [FOLDER]     heads.safetensors, inputs.safetensors; tests/vectors/training
#include "model/safetensors.h"
#include "proofs/bounds/variants.h"
#include "proofs/bounds/worst.h"
#include "proofs/truth/variants.h"
#include "tests/shared/tap.h"

#include <string.h>

enum { DIM = 16, HIDDEN = 32, MOST = 66 }; // the study's; MOST: rows and one more

typedef struct head_file {
    sinkproof_safetensors *heads, *inputs;
    char layer[24];
    size_t rows;
    const sinkproof_variant *variant;
} head_file;

static const sinkproof_tensor *tensor_of(const sinkproof_safetensors *file, const head_file *at,
                                         const char *what) {
    char name[64];
    snprintf(name, sizeof name, "%s.%s", at->layer, what);
    return sinkproof_safetensors_find(file, name);
}

// A tensor as binary64, to be freed; NULL when it is not there.
static double *numbers(const sinkproof_safetensors *file, const head_file *at, const char *what) {
    const sinkproof_tensor *tensor = tensor_of(file, at, what);
    if (tensor == NULL) return NULL;
    size_t n = sinkproof_tensor_elements(tensor);
    double *x = malloc((n + 1) * sizeof *x);
    must(x != NULL);
    for (size_t i = 0; i < n; i++) x[i] = sinkproof_tensor_value(tensor, i);
    return x;
}

// Everything that one head has, and where a number is not inside its set.
typedef struct trained {
    sinkproof_variant_head head;
    sinkproof_variant_result r;
    double *x_ic, *wq, *wk, *wv, *wg, *g_id, *gated_id, *key, *value, *logit;
    size_t elements, outside;
    double worst;
} trained;

static void count(trained *t, double v, const sinkproof_honest *set) {
    double half = sinkproof_radius(set);
    t->elements++;
    t->outside += !(v >= set->lo && v <= set->hi && set->hi - set->lo < INFINITY);
    if (half > 0) t->worst = sinkproof_keep_worst(t->worst, fabs(v - set->mid) / half);
}

static trained read_head(const head_file *at) {
    trained t = {.x_ic = numbers(at->inputs, at, "x"), .wq = numbers(at->inputs, at, "wq")};
    t.wk = numbers(at->inputs, at, "wk");
    t.wv = numbers(at->inputs, at, "wv");
    t.wg = numbers(at->inputs, at, "wg");
    t.key = numbers(at->heads, at, "star.key");
    t.value = numbers(at->heads, at, "star.value");
    t.logit = numbers(at->heads, at, "star.logit");
    t.g_id = numbers(at->heads, at, "gate");
    t.gated_id = numbers(at->heads, at, "gated");
    t.r = (sinkproof_variant_result){.rows = at->rows, .keys = at->rows};
    t.r.q_id = numbers(at->heads, at, "q");
    t.r.k_jd = numbers(at->heads, at, "k");
    t.r.v_jd = numbers(at->heads, at, "v");
    t.r.o_id = numbers(at->heads, at, "o");
    t.head = (sinkproof_variant_head){.n = at->rows - (at->variant->star == SINKPROOF_STAR_TOKEN),
                                      .hidden = HIDDEN,
                                      .dim = DIM,
                                      .key_d = t.key,
                                      .value_d = t.value,
                                      .logit = t.logit != NULL ? *t.logit : 0,
                                      .rotary_base = 10000};
    // Scores and weights have a star's column only where there is a star; here there is always one.
    size_t columns = at->rows + 1, had = at->rows + sinkproof_variant_has_column(at->variant);
    double *s = numbers(at->heads, at, "s"), *alpha = numbers(at->heads, at, "alpha");
    t.r.s_ij = calloc(at->rows * columns, sizeof *s);
    t.r.alpha_ij = calloc(at->rows * columns, sizeof *s);
    must(t.r.s_ij != NULL && t.r.alpha_ij != NULL);
    for (size_t i = 0; i < at->rows; i++) {
        memcpy(t.r.s_ij + i * columns, s + i * had, had * sizeof *s);
        memcpy(t.r.alpha_ij + i * columns, alpha + i * had, had * sizeof *s);
    }
    free(s);
    free(alpha);
    return t;
}

static void free_head(trained *t) {
    double *each[] = {t->x_ic,     t->wq,     t->wk,     t->wv,        t->wg,     t->g_id,
                      t->gated_id, t->key,    t->value,  t->logit,     t->r.q_id, t->r.k_jd,
                      t->r.v_jd,   t->r.o_id, t->r.s_ij, t->r.alpha_ij};
    for (size_t k = 0; k < sizeof each / sizeof each[0]; k++) free(each[k]);
}

// sum_c x_c w_cd: any order of any tree in float32, the sum in binary64 not exact either.
static void product(const sinkproof_setting *s, const double *x_c, const double *w_cd, size_t width,
                    sinkproof_honest *y_d) {
    for (size_t d = 0; d < width; d++) {
        double sum = 0, size = 0;
        for (size_t c = 0; c < HIDDEN; c++) {
            sum += x_c[c] * w_cd[c * width + d];
            size =
                sinkproof_add_up(size, sinkproof_mul_up(fabs(x_c[c]), fabs(w_cd[c * width + d])));
        }
        double off = sinkproof_mul_up(size, sinkproof_add_up(sinkproof_gamma(HIDDEN, s->u),
                                                             sinkproof_gamma(HIDDEN, 0x1p-53)));
        y_d[d] = sinkproof_honest_at(s, AT_A2, sinkproof_set_around(sum, off, off, 0, 0));
    }
}

// Cosine and sine were rounded to float32 from binary64, whose error is far below 2^-30 of that.
static void turn(const sinkproof_setting *s, size_t i, const sinkproof_honest *x_d,
                 sinkproof_honest *y_d) {
    const double off = 0x1p-25 * (1 + 0x1p-20);
    sinkproof_honest cosines[DIM / 2], sines[DIM / 2];
    for (size_t k = 0; k < DIM / 2; k++) {
        double angle = (double)i * pow(10000, -2.0 * (double)k / DIM);
        cosines[k] = sinkproof_set_around(cos(angle), off, off, 0, 0);
        sines[k] = sinkproof_set_around(sin(angle), off, off, 0, 0);
    }
    sinkproof_honest_rotate(s, DIM, x_d, cosines, sines, y_d);
}

// Queries, keys, values and gates of row i from the layer's input.
static void judge_inputs(const sinkproof_setting *s, const sinkproof_variant *variant, trained *t,
                         size_t i) {
    const sinkproof_variant *sigmoid = sinkproof_variant_find("sigmoid");
    const double *x_c = t->x_ic + i * HIDDEN, *w[] = {t->wq, t->wk, t->wv};
    const double *found[] = {t->r.q_id, t->r.k_jd, t->r.v_jd};
    size_t width = variant->gate == SINKPROOF_GATE_ELEMENT ? DIM : 1;
    sinkproof_honest y[DIM], set[DIM];
    bool all[DIM];
    for (int k = 0; k < 3; k++) {
        product(s, x_c, w[k], DIM, y);
        if (k < 2) turn(s, i, y, set);
        for (size_t d = 0; d < DIM; d++) count(t, found[k][i * DIM + d], k < 2 ? set + d : y + d);
    }
    if (variant->gate == SINKPROOF_GATE_NONE) return;
    for (size_t d = 0; d < DIM; d++) all[d] = true;
    product(s, x_c, t->wg, width, y);
    must(sinkproof_honest_variant_weights(s, sigmoid, width, all, y, set)); // nothing divides these
    for (size_t d = 0; d < width; d++) count(t, t->g_id[i * width + d], set + d);
    for (size_t d = 0; d < DIM; d++) { // one rounding of a product that binary64 holds exactly
        double gated = t->g_id[i * width + (width > 1 ? d : 0)] * t->r.o_id[i * DIM + d];
        sinkproof_honest once = sinkproof_exact_set((float)gated);
        count(t, t->gated_id[i * DIM + d], &once);
    }
}

// Scores, weights and results of row i, each from what the step before holds.
static void judge_row(const sinkproof_setting *s, const sinkproof_variant *variant, trained *t,
                      size_t i) {
    size_t columns = t->r.keys + 1;
    const double *s_j = t->r.s_ij + i * columns, *alpha_j = t->r.alpha_ij + i * columns;
    sinkproof_honest set[MOST], known[MOST];
    bool seen[MOST];
    sinkproof_truth_variant_seen(variant, &t->head, i, t->r.keys, seen);
    must(sinkproof_honest_variant_scores(s, variant, &t->head, i, t->r.keys, seen,
                                         t->r.q_id + i * DIM, t->r.k_jd, set));
    for (size_t j = 0; j < columns; j++) {
        if (seen[j]) count(t, s_j[j], set + j); // torch has the others' scores too, and masks them
        known[j] = sinkproof_exact_set(seen[j] ? s_j[j] : 0);
    }
    must(sinkproof_honest_variant_weights(s, variant, columns, seen, known, set));
    for (size_t j = 0; j < columns; j++) count(t, alpha_j[j], set + j);
    must(sinkproof_honest_variant_values(s, variant, &t->head, t->r.keys, alpha_j, t->r.v_jd, set));
    for (size_t d = 0; d < DIM; d++) count(t, t->r.o_id[i * DIM + d], set + d);
}

static void judge(const sinkproof_policy *policy, const sinkproof_variant *variant, trained *t) {
    sinkproof_setting s = sinkproof_setting_for(policy, t->r.rows * t->r.keys, 1e-9);
    t->elements = t->outside = 0;
    t->worst = 0;
    for (size_t i = 0; i < t->r.rows; i++) {
        judge_inputs(&s, variant, t, i);
        judge_row(&s, variant, t, i);
    }
}

// Python summed the same numbers in another order: each sum of n terms is off by gamma_n of itself.
static void compare_mean(const char *id, const head_file *at, const char *what, double here) {
    char key[64];
    snprintf(key, sizeof key, "%s.%s", at->layer, what);
    const char *told = sinkproof_safetensors_metadata(at->inputs, key);
    double there = told != NULL ? strtod(told, NULL) : NAN;
    double bound = 4 * sinkproof_gamma((double)at->rows + 3, 0x1p-53), off = fabs(here - there);
    ok(off <= bound * fabs(there), "%s %s of %s: %.6f worst=%.2g bound=1", id, what,
       at->variant->name, here, off > 0 ? off / (bound * fabs(there)) : 0);
}

static void ask(const sinkproof_policy *policy, const head_file *at) {
    const sinkproof_variant *variant = at->variant;
    bool star = variant->star != SINKPROOF_STAR_NONE;
    trained t = read_head(at);
    judge(policy, variant, &t);
    ok(t.elements > 0 && t.outside == 0,
       "%s a trained head of %s: elements=%zu outside=%zu worst=%.3g bound=1",
       star ? "train.star" : "train.sinks", variant->name, t.elements, t.outside, t.worst);
    compare_mean("train.sinks", at, "alpha_1", variant_alpha(variant, &t.r, 0));
    compare_mean("train.sinks", at, "alpha_2", variant_alpha(variant, &t.r, 1));
    if (star) compare_mean("train.star", at, "alpha_*", variant_alpha_star(variant, &t.r));
    t.r.alpha_ij[5 * (t.r.keys + 1) + 3] += 0x1p-12; // one weight of a row that sees it
    judge(policy, variant, &t);
    ok(t.outside > 0, "%s is not another weight: outside=%zu of %zu", variant->name, t.outside,
       t.elements);
    free_head(&t);
}

// Shares by hand: of signed weights, of a row of zeros, and of a token before the text.
static void by_hand(void) {
    double signed_ij[] = {-1, 0, 0, -1, 3, 0}, none_ij[6] = {0},
           token_ij[] = {1, 0, 0, 0.25, 0.75, 0};
    const sinkproof_variant *identity = sinkproof_variant_find("identity");
    const sinkproof_variant *token = sinkproof_variant_find("sink-token");
    const sinkproof_variant *score = sinkproof_variant_find("score-bias");
    double star_ij[] = {0.5, 0, 0.5, 0.5, 0.25, 0.25};
    sinkproof_variant_result r = {.rows = 2, .keys = 2, .alpha_ij = signed_ij};
    ok(variant_alpha(identity, &r, 0) == 0.625 && variant_alpha(identity, &r, 1) == 0.75,
       "train.sinks shares of signed weights");
    r.alpha_ij = none_ij;
    ok(variant_alpha(identity, &r, 0) == 0, "train.sinks a row of zeros has none");
    r.alpha_ij = token_ij;
    ok(variant_alpha(token, &r, 0) == 0.75, "train.sinks the text follows the token");
    ok(variant_alpha_star(token, &r) == 0.25, "train.star not over the token's own row");
    r.alpha_ij = star_ij;
    ok(variant_alpha_star(score, &r) == 0.375, "train.star the last column");
    sinkproof_variant beside = *sinkproof_variant_find("sigmoid");
    beside.star = SINKPROOF_STAR_SCORE;
    ok(variant_alpha(&beside, &r, 0) == 0.5 && variant_alpha_star(&beside, &r) == 0.375,
       "train.sinks train.star a share of the star's weight too");
}

static bool open_file(const char *folder, const char *name, sinkproof_safetensors **file) {
    char path[512];
    sinkproof_error error = {{0}};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (sinkproof_safetensors_open(path, file, &error)) return true;
    return ok(false, "train.sinks %s", error.text);
}

int main(int argc, char **argv) {
    const char *folder = argc > 1 ? argv[1] : "tests/vectors/training";
    head_file at = {.rows = 0};
    sinkproof_policy policy;
    size_t layers = 0;
    must(sinkproof_policy_known("f32", &policy));
    by_hand();
    if (!open_file(folder, "heads.safetensors", &at.heads)) return tap_done();
    if (!open_file(folder, "inputs.safetensors", &at.inputs)) return tap_done();
    for (;; layers++) {
        char key[48];
        snprintf(at.layer, sizeof at.layer, "%02zu", layers);
        snprintf(key, sizeof key, "%s.design", at.layer);
        const char *design = sinkproof_safetensors_metadata(at.heads, key);
        const sinkproof_tensor *q = tensor_of(at.heads, &at, "q");
        if (design == NULL || q == NULL) break;
        at.variant = sinkproof_variant_find(design);
        at.rows = q->shape[0];
        if (at.variant == NULL || at.rows + 1 > MOST || q->shape[q->rank - 1] != DIM) {
            ok(false, "train.sinks %s: not a head of this test", design);
            break;
        }
        ask(&policy, &at);
    }
    ok(layers >= 17, "train.sinks trained heads of %zu designs", layers);
    sinkproof_safetensors_close(at.heads);
    sinkproof_safetensors_close(at.inputs);
    return tap_done();
}
