// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Judges a design head by head, row by row, step by step:
//   f.q, f.k   from q, k                   bias    from slope or buckets
//   s          from f.q, f.k or q, k       alpha   from s, or from the sets of s
//   o          from alpha and v            gate    from g        gated   from o and gate
#include "audit/designs/design_judge.h"

#include "audit/designs/design_needs.h"
#include "proofs/bounds/variants.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// One head of a layer: its numbers as binary64, NULL where the file lacks them.
typedef struct court {
    const design_layer *l;
    sinkproof_setting s;
    sinkproof_variant_head head, of_values; // the widths of keys and of values
    size_t h, columns;                      // columns: rows + 1
    bool star_known;                        // the file has the inputs of the star's score
    double *at[DESIGN_TENSORS];
    double *meets_q, *meets_k; // features, if the design has some; not owned
    double *alpha_j;           // [columns]
    bool *seen_j;              // [columns]
    sinkproof_honest *s_j, *set;
    design_verdict *verdicts; // [DESIGN_TENSORS]
} court;

static const design_tensor steps[] = {AT(COS),  AT(SIN), AT(Q),     AT(K), AT(FQ),   AT(FK),
                                      AT(BIAS), AT(S),   AT(ALPHA), AT(O), AT(GATE), AT(GATED)};
enum { STEPS = sizeof steps / sizeof steps[0] };

static void open_verdicts(const design_layer *l, design_verdict *verdicts) {
    for (int t = 0; t < DESIGN_TENSORS; t++) {
        verdicts[t] = (design_verdict){.layer = l, .tensor = (design_tensor)t};
        design_write_missing(l, (design_tensor)t, verdicts[t].missing, sizeof verdicts[t].missing);
    }
    verdicts[AT(ALPHA)].bridged = !has_tensor(l, AT(S));
    verdicts[AT(GATED)].bridged = !has_tensor(l, AT(GATE));
}

static bool tensor_is_judged(const court *c, design_tensor t) {
    return is_computed_in_file(c->l, t) && c->verdicts[t].missing[0] == '\0';
}

// ---- comparing -----------------------------------------------------------------------------

static bool are_finite(const double *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

static void compare_found(court *c, design_tensor t, size_t row, size_t column, double found,
                          const sinkproof_honest *set) {
    design_verdict *v = &c->verdicts[t];
    if (!(set->hi - set->lo < INFINITY)) {
        v->unbounded++;
        return;
    }
    double half = sinkproof_radius(set), off = fabs(found - set->mid);
    double share = off == 0 ? 0 : off / half; // a set of one number: infinite
    v->elements++;
    v->several += set->lo != set->hi;
    if (!(share <= v->worst)) v->worst = isnan(share) ? INFINITY : share;
    if (found >= set->lo && found <= set->hi) return;
    if (v->outside++ > 0) return;
    v->head = c->h;
    v->row = row;
    v->column = column;
    v->lo = set->lo;
    v->hi = set->hi;
    v->found = found;
}

// ---- the steps of one row --------------------------------------------------------------------

// Computes the tables of row i, which all heads share: once, for the first head.
static bool judge_turn_tables(court *c, size_t i) {
    size_t pairs = c->l->pairs;
    double base = has_tensor(c->l, AT(BASE)) ? *c->at[AT(BASE)] : 0;
    if (c->h > 0 || !(tensor_is_judged(c, AT(COS)) || tensor_is_judged(c, AT(SIN)))) return true;
    if (!(base > 1 && base < 0x1p40)) {
        c->verdicts[AT(COS)].unbounded += pairs;
        c->verdicts[AT(SIN)].unbounded += pairs;
        return true;
    }
    // Without YaRN: its ramp begins where the pairs end.
    const sinkproof_config plain = {.head_dim = 2 * pairs,
                                    .rotation.theta = base,
                                    .rotation.factor = 1,
                                    .rotation.beta_fast = 1,
                                    .rotation.beta_slow = 1,
                                    .rotation.original_context =
                                        (size_t)(base * 7)}; // above 2 pi base
    sinkproof_honest *c_p = malloc(2 * pairs * sizeof *c_p), *s_p = c_p + pairs;
    if (c_p == NULL) return false;
    sinkproof_honest_rope_plain(&c->s, &plain, (double)i, c_p, s_p);
    for (size_t p = 0; p < pairs; p++) {
        if (tensor_is_judged(c, AT(COS)))
            compare_found(c, AT(COS), i, p, c->at[AT(COS)][i * pairs + p], &c_p[p]);
        if (tensor_is_judged(c, AT(SIN)))
            compare_found(c, AT(SIN), i, p, c->at[AT(SIN)][i * pairs + p], &s_p[p]);
    }
    free(c_p);
    return true;
}

// Turns the first 2 pairs coordinates; the others stay.
static bool judge_turns(court *c, size_t i) {
    static const design_tensor of[2][2] = {{AT(UNTURNED_Q), AT(Q)}, {AT(UNTURNED_K), AT(K)}};
    size_t dim = c->l->dim, pairs = c->l->pairs;
    sinkproof_honest *in = malloc((dim + 2 * pairs) * sizeof *in), *table = in + dim;
    if (in == NULL) return false;
    for (int a = 0; a < 2; a++) {
        design_tensor t = of[a][1];
        if (!tensor_is_judged(c, t)) continue;
        for (size_t d = 0; d < dim; d++)
            c->set[d] = in[d] = sinkproof_exact_set(c->at[of[a][0]][i * dim + d]);
        for (size_t p = 0; p < pairs; p++) {
            table[p] = sinkproof_exact_set(c->at[AT(COS)][i * pairs + p]);
            table[pairs + p] = sinkproof_exact_set(c->at[AT(SIN)][i * pairs + p]);
        }
        sinkproof_honest_rotate(&c->s, 2 * pairs, in, table, table + pairs, c->set);
        for (size_t d = 0; d < dim; d++)
            compare_found(c, t, i, d, c->at[t][i * dim + d], &c->set[d]);
    }
    free(in);
    return true;
}

static bool judge_features(court *c, size_t i) {
    static const design_tensor of[2][2] = {{AT(Q), AT(FQ)}, {AT(K), AT(FK)}};
    size_t dim = c->l->dim;
    for (int a = 0; a < 2; a++) {
        design_tensor t = of[a][1];
        if (!tensor_is_judged(c, t)) continue;
        const double *x_d = c->at[of[a][0]] + i * dim;
        if (!are_finite(x_d, dim)) {
            c->verdicts[t].unbounded += dim;
            continue;
        }
        if (!sinkproof_honest_variant_feature(&c->s, &c->l->variant, &c->head, x_d, c->set))
            return false;
        for (size_t d = 0; d < dim; d++)
            compare_found(c, t, i, d, c->at[t][i * dim + d], &c->set[d]);
    }
    return true;
}

static const double *row_bias(const court *c, size_t i) {
    if (c->at[AT(BIAS)] == NULL) return NULL;
    return c->at[AT(BIAS)] + (bias_is_shared(c->l) ? 0 : i * c->l->rows);
}

static void judge_bias(court *c, size_t i) {
    const sinkproof_variant *v = &c->l->variant;
    if (!tensor_is_judged(c, AT(BIAS))) return;
    bool once = bias_is_shared(c->l);
    if (once && i > 0) return;
    for (size_t j = 0; j < c->l->rows; j++) {
        double exact = once ? -sinkproof_variant_place_bias(v, &c->head, j)
                            : sinkproof_variant_place_bias(v, &c->head, i > j ? i - j : 0);
        if (!once && !c->seen_j[j]) continue;
        sinkproof_honest set =
            sinkproof_honest_variant_biased(&c->s, 0, sinkproof_exact_set(0), exact);
        compare_found(c, AT(BIAS), i, j, row_bias(c, i)[j], &set);
    }
}

// The sets of the row's scores from its query and keys, and of the star's score where it is known.
static bool compute_score_sets(court *c, size_t i) {
    const design_layer *l = c->l;
    sinkproof_variant v = l->variant;
    size_t n = l->rows;
    const double *bias_j = row_bias(c, i);
    bool star = c->seen_j[n];
    if (bias_j != NULL) v.places = SINKPROOF_PLACES_NONE;
    c->seen_j[n] = false; // the star's score is computed separately
    bool fine = sinkproof_honest_variant_scores(&c->s, &v, &c->head, i, n, c->seen_j,
                                                c->meets_q + i * l->dim, c->meets_k, c->s_j);
    c->seen_j[n] = star;
    for (size_t j = 0; fine && bias_j != NULL && j < n; j++)
        if (c->seen_j[j])
            c->s_j[j] = sinkproof_honest_variant_biased(&c->s, l->dim, c->s_j[j], bias_j[j]);
    return fine;
}

static bool compute_star_set(court *c, size_t i) {
    const double *q_d = c->meets_q != NULL ? c->meets_q + i * c->l->dim : NULL;
    return !c->seen_j[c->l->rows] ||
           sinkproof_honest_variant_star(&c->s, &c->l->variant, &c->head, q_d, &c->s_j[c->l->rows]);
}

// Whether the row's query, the keys that it sees, and the logit beside them are all finite.
static bool scores_have_numbers(const court *c, size_t i) {
    size_t n = c->l->rows, dim = c->l->dim;
    const double *bias_j = row_bias(c, i);
    bool good = are_finite(c->meets_q + i * dim, dim);
    for (size_t j = 0; good && j < n; j++)
        good = !c->seen_j[j] ||
               (are_finite(c->meets_k + j * dim, dim) && (bias_j == NULL || isfinite(bias_j[j])));
    return good;
}

// Fills s_j with the scores for the weights. *good: all are finite.
static bool judge_scores(court *c, size_t i, bool *good) {
    const design_layer *l = c->l;
    bool judged = tensor_is_judged(c, AT(S)), found = has_tensor(l, AT(S)),
         weighed = tensor_is_judged(c, AT(ALPHA));
    size_t width = has_star_column(l, AT(S)) ? l->rows + 1 : l->rows;
    const double *found_j = found ? c->at[AT(S)] + i * width : NULL;
    *good = judged || weighed;
    if (judged || (weighed && !found)) {
        *good = scores_have_numbers(c, i);
        if (*good && !compute_score_sets(c, i)) return false;
    }
    if (c->star_known && *good && !compute_star_set(c, i)) return false;
    for (size_t j = 0; judged && j < width; j++)
        if (c->seen_j[j] && *good)
            compare_found(c, AT(S), i, j, found_j[j], &c->s_j[j]);
        else
            c->verdicts[AT(S)].unbounded += c->seen_j[j];
    if (!found) return true;
    *good = *good || weighed;
    for (size_t j = 0; j < width; j++) {
        *good = *good && (!c->seen_j[j] || isfinite(found_j[j]));
        c->s_j[j] = sinkproof_exact_set(c->seen_j[j] ? found_j[j] : 0);
    }
    return true;
}

static bool judge_weights(court *c, size_t i, bool good) {
    const design_layer *l = c->l;
    size_t width = has_star_column(l, AT(ALPHA)) ? l->rows + 1 : l->rows;
    if (!tensor_is_judged(c, AT(ALPHA))) return true;
    if (!good) {
        c->verdicts[AT(ALPHA)].unbounded += width;
        return true;
    }
    if (!sinkproof_honest_variant_weights(&c->s, &l->variant, c->columns, c->seen_j, c->s_j,
                                          c->set))
        return false;
    for (size_t j = 0; j < width; j++)
        compare_found(c, AT(ALPHA), i, j, c->at[AT(ALPHA)][i * width + j], &c->set[j]);
    return true;
}

static bool judge_values(court *c, size_t i) {
    const design_layer *l = c->l;
    size_t n = l->rows, dim = l->value_dim, width = has_star_column(l, AT(ALPHA)) ? n + 1 : n;
    if (!tensor_is_judged(c, AT(O))) return true;
    c->alpha_j[n] = 0; // the star's value is 0 where the file lacks it
    memcpy(c->alpha_j, c->at[AT(ALPHA)] + i * width, width * sizeof *c->alpha_j);
    if (!are_finite(c->alpha_j, c->columns) || !are_finite(c->at[AT(V)], n * dim)) {
        c->verdicts[AT(O)].unbounded += dim;
        return true;
    }
    if (!sinkproof_honest_variant_values(&c->s, &l->variant, &c->of_values, n, c->alpha_j,
                                         c->at[AT(V)], c->set))
        return false;
    for (size_t d = 0; d < dim; d++)
        compare_found(c, AT(O), i, d, c->at[AT(O)][i * dim + d], &c->set[d]);
    return true;
}

static void judge_gate(court *c, size_t i) {
    const design_layer *l = c->l;
    size_t dim = l->value_dim, gates = has_tensor(l, AT(GATE)) ? l->at[AT(GATE)]->shape[2] : 0;
    size_t givens = has_tensor(l, AT(G)) ? l->at[AT(G)]->shape[2] : 0;
    const double *g_d = c->at[AT(G)] != NULL ? c->at[AT(G)] + i * givens : NULL;
    const double *gate_d = c->at[AT(GATE)] != NULL ? c->at[AT(GATE)] + i * gates : NULL;
    for (size_t d = 0; tensor_is_judged(c, AT(GATE)) && d < gates; d++) {
        sinkproof_honest set = sinkproof_honest_variant_gate(&c->s, g_d[givens > 1 ? d : 0]);
        compare_found(c, AT(GATE), i, d, gate_d[d], &set);
    }
    for (size_t d = 0; tensor_is_judged(c, AT(GATED)) && d < dim; d++) {
        double o = c->at[AT(O)][i * dim + d];
        sinkproof_honest by = gate_d != NULL
                                  ? sinkproof_exact_set(gate_d[gates > 1 ? d : 0])
                                  : sinkproof_honest_variant_gate(&c->s, g_d[givens > 1 ? d : 0]);
        sinkproof_honest set = sinkproof_honest_variant_gated(&c->s, o, by);
        compare_found(c, AT(GATED), i, d, c->at[AT(GATED)][i * dim + d], &set);
    }
}

// Marks the keys that row i sees, the star's column last. A star that is a token sees only itself,
// and every row sees it.
static void mark_seen_keys(court *c, size_t i) {
    const sinkproof_variant *v = &c->l->variant;
    size_t token = v->star == SINKPROOF_STAR_TOKEN;
    for (size_t j = 0; j < c->l->rows; j++)
        c->seen_j[j] = i < token || j < token
                           ? j < token
                           : sinkproof_variant_sees(v, c->head.document_n, i - token, j - token);
    c->seen_j[c->l->rows] = sinkproof_variant_has_column(v);
}

static bool judge_row(court *c, size_t i) {
    bool good;
    judge_gate(c, i);
    if (!judge_turn_tables(c, i) || !judge_turns(c, i) || !judge_features(c, i) ||
        !judge_values(c, i))
        return false;
    if (!tensor_is_judged(c, AT(BIAS)) && !tensor_is_judged(c, AT(S)) &&
        !tensor_is_judged(c, AT(ALPHA)))
        return true;
    memset(c->seen_j, 0, c->columns * sizeof *c->seen_j);
    if (c->l->variant.seen == SINKPROOF_SEEN_PACKED && c->head.document_n == NULL) return true;
    mark_seen_keys(c, i);
    judge_bias(c, i);
    return judge_scores(c, i, &good) && judge_weights(c, i, good);
}

// ---- one head ------------------------------------------------------------------------------

// The numbers of head h in a tensor that has one entry for each head, or one for all. NULL if
// memory runs out.
static double *head_numbers(const sinkproof_tensor *tensor, bool rows_first, size_t h) {
    size_t heads = tensor->shape[rows_first ? 1 : 0], all = sinkproof_tensor_elements(tensor);
    size_t each = all / heads, width = rows_first ? tensor->shape[2] : each;
    double *x = malloc(each * sizeof *x);
    if (heads == 1) h = 0;
    for (size_t e = 0; x != NULL && e < each; e++)
        x[e] = sinkproof_tensor_value(tensor, (e / width * heads + h) * width + e % width);
    return x;
}

static double *tensor_numbers(const sinkproof_tensor *tensor) {
    size_t all = sinkproof_tensor_elements(tensor);
    double *x = malloc(all * sizeof *x);
    for (size_t e = 0; x != NULL && e < all; e++) x[e] = sinkproof_tensor_value(tensor, e);
    return x;
}

static bool load_tensors(court *c) {
    const design_layer *l = c->l;
    size_t groups = l->kv_heads > 0 ? l->heads / l->kv_heads : 1;
    for (int t = 0; t < DESIGN_DOCUMENTS; t++) {
        bool keys = t == AT(K) || t == AT(V) || t == AT(FK) || t == AT(UNTURNED_K);
        bool common = t == AT(COS) || t == AT(SIN) || t == AT(BASE);
        if (l->at[t] == NULL) continue;
        c->at[t] = common ? tensor_numbers(l->at[t])
                          : head_numbers(l->at[t], design_has_rows_first((design_tensor)t),
                                         keys ? c->h / groups : c->h);
        if (c->at[t] == NULL) return false;
    }
    bool token = l->variant.star == SINKPROOF_STAR_TOKEN;
    // documents of the text's tokens
    const int *documents = l->document_n != NULL ? l->document_n + token : NULL;
    c->head = (sinkproof_variant_head){
        .n = l->rows - token,
        .dim = l->dim,
        .key_d = c->at[AT(STAR_KEY)],
        .value_d = c->at[AT(STAR_VALUE)],
        .logit = has_tensor(l, AT(STAR_LOGIT)) ? *c->at[AT(STAR_LOGIT)] : 0,
        .slope = has_tensor(l, AT(SLOPE)) ? *c->at[AT(SLOPE)] : 0,
        .bucket_b = c->at[AT(BUCKETS)],
        .mlp_1_dd = c->at[AT(MLP_1)],
        .mlp_2_dd = c->at[AT(MLP_2)],
        .document_n = documents};
    c->of_values = c->head;
    c->of_values.dim = l->value_dim;
    c->meets_q = c->at[has_feature_map(l) ? AT(FQ) : AT(Q)];
    c->meets_k = c->at[has_feature_map(l) ? AT(FK) : AT(K)];
    return true;
}

static bool court_allocate(court *c) {
    const design_layer *l = c->l;
    size_t widest = c->columns + l->dim + l->value_dim;
    c->alpha_j = malloc(c->columns * sizeof *c->alpha_j);
    c->seen_j = malloc(c->columns * sizeof *c->seen_j);
    c->s_j = malloc(c->columns * sizeof *c->s_j);
    c->set = malloc(widest * sizeof *c->set);
    return c->alpha_j != NULL && c->seen_j != NULL && c->s_j != NULL && c->set != NULL;
}

static void court_release(court *c) {
    for (int t = 0; t < DESIGN_TENSORS; t++) free(c->at[t]);
    free(c->alpha_j);
    free(c->seen_j);
    free(c->s_j);
    free(c->set);
}

static bool judge_head(const sinkproof_policy *policy, const design_layer *l, size_t h,
                       design_verdict *verdicts) {
    char star[160];
    design_write_missing_star(l, star, sizeof star);
    court c = {.l = l, .h = h, .columns = l->rows + 1, .verdicts = verdicts};
    c.s = sinkproof_setting_for(policy, l->rows * c.columns * l->heads, 1e-9);
    c.star_known = star[0] == '\0';
    bool fine = load_tensors(&c) && court_allocate(&c);
    for (size_t i = 0; fine && i < l->rows; i++) fine = judge_row(&c, i);
    court_release(&c);
    return fine;
}

// ---- all layers ----------------------------------------------------------------------------

// Whether the sets of the designs follow every rounding of the policy.
static bool policy_is_followed(const sinkproof_policy *policy, sinkproof_error *error) {
    static const sinkproof_point beyond[] = {AT_A5_Q,      AT_A5_K,     AT_A5_TERM, AT_A5_ACC,
                                             AT_A9_UNNORM, AT_A9_LSE,   AT_A9_GATE, AT_A11_WEIGHTS,
                                             AT_A11_V,     AT_A11_TERM, AT_A11_ACC};
    for (size_t k = 0; k < sizeof beyond / sizeof beyond[0]; k++)
        if (policy->at[beyond[k]].format != SINKPROOF_REAL &&
            !(beyond[k] == AT_A9_UNNORM && sinkproof_policy_rounds_weights_once(policy)))
            return sinkproof_fail(
                error,
                "policy %.100s rounds at %s, where the honest sets of the designs "
                "do not: expected one that does not, f32, bf16 or f16",
                policy->name, sinkproof_point_name(beyond[k]));
    for (int p = AT_A4; p <= AT_A11; p++)
        if (policy->unrounded[p])
            return sinkproof_fail(error,
                                  "policy %.100s leaves %s unrounded for what reads it, which the "
                                  "honest sets of the designs do not: expected f32, bf16 or f16",
                                  policy->name, sinkproof_point_name((sinkproof_point)p));
    return true;
}

bool sinkproof_design_judge(const sinkproof_design_trace *trace, const sinkproof_policy *policy,
                            sinkproof_design_judgement *out, sinkproof_error *error) {
    *out = (sinkproof_design_judgement){0};
    if (!policy_is_followed(policy, error)) return false;
    out->verdicts = calloc(trace->count * STEPS, sizeof *out->verdicts);
    if (out->verdicts == NULL) return sinkproof_fail(error, "no memory for verdicts");
    for (size_t k = 0; k < trace->count; k++) {
        const design_layer *l = &trace->layers[k];
        design_verdict verdicts[DESIGN_TENSORS];
        open_verdicts(l, verdicts);
        for (size_t h = 0; l->rows > 0 && h < l->heads; h++)
            if (!judge_head(policy, l, h, verdicts)) {
                sinkproof_design_judgement_free(out);
                return sinkproof_fail(error, "no memory to judge layer %zu", l->layer);
            }
        for (int t = 0; t < STEPS; t++)
            if (is_computed_in_file(l, steps[t])) out->verdicts[out->count++] = verdicts[steps[t]];
    }
    return true;
}

void sinkproof_design_judgement_free(sinkproof_design_judgement *judgement) {
    free(judgement->verdicts);
    *judgement = (sinkproof_design_judgement){0};
}

bool sinkproof_design_decided(const design_verdict *verdict) {
    return verdict->elements > 0;
}

const char *sinkproof_design_policy(const sinkproof_design_trace *trace) {
    const char *policy = "f32,A4=f32?,A6=f32?,A8=f32?,A9=f32?,A11=f32?";
    for (size_t i = 0; i < sinkproof_safetensors_count(trace->file); i++) {
        sinkproof_dtype d = sinkproof_safetensors_at(trace->file, i)->dtype;
        if (d == SINKPROOF_DTYPE_BF16) return "bf16,A4=bf16?,A11=bf16?";
        if (d == SINKPROOF_DTYPE_F16) policy = "f16,A4=f16?,A11=f16?";
    }
    return policy;
}
