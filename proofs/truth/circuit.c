// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The derivation. Reserved coordinates hold the contributions of a position and of the first
// perceptron through all layers; the length of the other coordinates is bounded layer by layer. So
// the deviation by which a norm divides lies between two numbers, and so does the product of each
// head's query bias with a key; the rest of the score is bounded.
#include "proofs/truth/circuit_internal.h"

struct sinkproof_circuit {
    slong bits;
    size_t layers, heads, n;
    arb_ptr score_lhj; // for any tokens, up to a constant of the row
    arb_ptr delta_lj;
};

arb_ptr circuit_weight_as_balls(const circuit_derivation *d, size_t l, sinkproof_slot slot,
                                size_t *rows, size_t *cols) {
    sinkproof_matrix matrix = sinkproof_model_slot(d->run->model, l, slot);
    arb_ptr a = ball_vector(matrix.rows * matrix.cols);
    double *row = malloc(matrix.cols * sizeof *row);
    if (row == NULL) abort();
    for (size_t r = 0; r < matrix.rows; r++)
        sinkproof_truth_row(a + r * matrix.cols, &matrix, r, row);
    free(row);
    *rows = matrix.rows, *cols = matrix.cols;
    return a;
}

void circuit_norm(arb_t out, arb_srcptr x_c, const bool *left_out_c, size_t n, slong bits) {
    arb_zero(out);
    for (size_t c = 0; c < n; c++)
        if (left_out_c == NULL || !left_out_c[c]) arb_addmul(out, x_c + c, x_c + c, bits);
    arb_sqrtpos(out, out, bits);
}

bool circuit_premise(const circuit_derivation *d, bool holds, size_t l, const char *what) {
    return holds || sinkproof_fail(d->error, "%s, layer %zu: nothing is derived: %s",
                                   sinkproof_model_spec(d->run->model), l, what);
}

//> gpt2.circuit
// ---- the random part: bounds on its length

// |W x + b| <= |W| |x| + |b|, |x| <= sqrt(hidden) after a norm.
static void bound_projection(const circuit_derivation *d, arb_t out, arb_srcptr w_rc,
                             arb_srcptr b_r, size_t rows) {
    arb_t t;
    arb_init(t);
    arb_sqrt_ui(t, d->hidden, d->bits);
    truth_operator_norm(out, w_rc, rows, d->hidden, d->bits);
    arb_mul(out, out, t, d->bits);
    circuit_norm(t, b_r, NULL, rows, d->bits);
    arb_add(out, out, t, d->bits);
    arb_clear(t);
}

// A head's output is a weighted mean of its values; W_o is applied to the heads side by side.
static void bound_attention(const circuit_derivation *d, size_t l) {
    size_t rows, cols, one, head = d->config->head_dim;
    arb_ptr w_v = circuit_weight_as_balls(d, l, SINKPROOF_W_V, &rows, &cols);
    arb_ptr b_v = circuit_weight_as_balls(d, l, SINKPROOF_B_V, &one, &rows);
    arb_ptr w_o = circuit_weight_as_balls(d, l, SINKPROOF_W_O, &cols, &rows);
    arb_ptr b_o = circuit_weight_as_balls(d, l, SINKPROOF_B_O, &one, &cols);
    arb_ptr out = d->attention_l + l;
    arb_t t;
    arb_init(t);
    for (size_t r = 0; r < rows; r += head) {
        bound_projection(d, t, w_v + r * d->hidden, b_v + r, head);
        arb_addmul(out, t, t, d->bits);
    }
    arb_sqrt(out, out, d->bits);
    truth_operator_norm(t, w_o, cols, rows, d->bits);
    arb_mul(out, out, t, d->bits);
    circuit_norm(t, b_o, NULL, cols, d->bits);
    arb_add(out, out, t, d->bits);
    arb_clear(t);
    ball_vector_release(w_v, rows * d->hidden);
    ball_vector_release(b_v, rows);
    ball_vector_release(w_o, cols * rows);
    ball_vector_release(b_o, cols);
}

// |gelu(y)| <= |y|. The step's neurons write only into reserved coordinates.
static void bound_mlp(const circuit_derivation *d, size_t l) {
    size_t inter, one, hidden = d->hidden;
    arb_ptr up = circuit_weight_as_balls(d, l, SINKPROOF_W_UP, &inter, &hidden);
    arb_ptr b_up = circuit_weight_as_balls(d, l, SINKPROOF_B_UP, &one, &inter);
    arb_ptr down = circuit_weight_as_balls(d, l, SINKPROOF_W_DOWN, &hidden, &inter);
    arb_ptr b_down = circuit_weight_as_balls(d, l, SINKPROOF_B_DOWN, &one, &hidden);
    arb_ptr out = d->mlp_l + l;
    arb_t t;
    arb_init(t);
    for (size_t f = 0; f < inter && l == 0; f++) {
        if (!d->step_f[f]) continue;
        arb_zero(b_up + f);
        _arb_vec_zero(up + f * hidden, (slong)hidden);
        for (size_t c = 0; c < hidden; c++) arb_zero(down + c * inter + f);
    }
    bound_projection(d, out, up, b_up, inter);
    truth_operator_norm(t, down, hidden, inter, d->bits);
    arb_mul(out, out, t, d->bits);
    circuit_norm(t, b_down, NULL, hidden, d->bits);
    arb_add(out, out, t, d->bits);
    arb_clear(t);
    ball_vector_release(up, inter * hidden);
    ball_vector_release(b_up, inter);
    ball_vector_release(down, hidden * inter);
    ball_vector_release(b_down, hidden);
}

// An upper bound on the length of the rest of position i before layer l.
static void bound_rest_before(const circuit_derivation *d, arb_t rest, size_t l, size_t i) {
    arb_set(rest, d->start_i + i);
    if (l > 0) arb_add(rest, rest, d->joined_i + i, d->bits);
    for (size_t k = 0; k < l; k++) {
        arb_add(rest, rest, d->attention_l + k, d->bits);
        arb_add(rest, rest, d->mlp_l + k, d->bits);
    }
}

// hidden (sigma^2 - eps) is the smallest sum of squares around any number. For the reserved
// coordinates alone it is sum m^2 - (sum m)^2 over their number; with the rest around 0 it is sum
// m^2 + |rest|^2.
static void bound_deviation(const circuit_derivation *d, arb_t least, arb_t most, arb_srcptr m_c,
                            const arb_t rest) {
    arb_t sum, squares, eps;
    balls_init(sum, squares, eps);
    sinkproof_truth_decimal(eps, d->config->rms_eps, d->bits);
    for (size_t c = 0; c < d->hidden; c++) {
        arb_add(sum, sum, m_c + c, d->bits);
        arb_addmul(squares, m_c + c, m_c + c, d->bits);
    }
    arb_mul(most, rest, rest, d->bits);
    arb_add(most, most, squares, d->bits);
    arb_mul(sum, sum, sum, d->bits);
    arb_div_ui(sum, sum, d->n_reserved, d->bits);
    arb_sub(least, squares, sum, d->bits);
    arb_nonnegative_part(least, least);
    for (int k = 0; k < 2; k++) {
        arb_ptr v = k == 0 ? least : most;
        arb_div_ui(v, v, d->hidden, d->bits);
        arb_add(v, v, eps, d->bits);
        arb_sqrt(v, v, d->bits);
    }
    balls_clear(sum, squares, eps);
}

// ---- the scores

// The constants of a head: gamma = b_Q W_k, and a bound on its score, times sqrt(head_dim), apart
// from the product of gamma with the massive coordinates.
typedef struct head {
    arb_ptr gamma_c;
    arb_t besides;
} head;

//> gpt2.bq-zero gpt2.wk-rows gpt2.wk-random gpt2.null
// |x_t W_q (x_j W_k)^T| <= hidden |W_q| |W_k|, over the rows that a query has; and gamma elsewhere.
static bool bound_head_scores(const circuit_derivation *d, head *h, arb_srcptr w_q, arb_srcptr w_k,
                              arb_srcptr b_q) {
    size_t hidden = d->hidden, rows = d->config->head_dim, used = 0;
    arb_ptr q = ball_vector(rows * hidden), k = ball_vector(rows * hidden);
    arb_t t, sum;
    balls_init(t, sum);
    _arb_vec_zero(h->gamma_c, (slong)hidden);
    for (size_t r = 0; r < rows; r++) {
        _arb_vec_scalar_addmul(h->gamma_c, w_k + r * hidden, (slong)hidden, b_q + r, d->bits);
        if (_arb_vec_is_zero(w_q + r * hidden, (slong)hidden)) continue;
        _arb_vec_set(q + used * hidden, w_q + r * hidden, (slong)hidden);
        _arb_vec_set(k + used++ * hidden, w_k + r * hidden, (slong)hidden);
    }
    for (size_t c = 0; c < hidden; c++)
        if (d->massive_c[c]) arb_add(sum, sum, h->gamma_c + c, d->bits);
    truth_operator_norm(h->besides, q, used, hidden, d->bits);
    truth_operator_norm(t, k, used, hidden, d->bits);
    arb_mul(h->besides, h->besides, t, d->bits);
    arb_mul_ui(h->besides, h->besides, hidden, d->bits);
    circuit_norm(t, h->gamma_c, d->massive_c, hidden, d->bits);
    arb_mul(t, t, t, d->bits);
    arb_mul_ui(t, t, hidden, d->bits);
    arb_sqrt(t, t, d->bits);
    arb_add(h->besides, h->besides, t, d->bits);
    bool good = arb_is_zero(sum); // so that what a norm subtracts does not count
    balls_clear(t, sum);
    ball_vector_release(q, rows * hidden);
    ball_vector_release(k, rows * hidden);
    return good;
}
//< gpt2.bq-zero gpt2.wk-rows gpt2.wk-random gpt2.null

// The range of sum over the massive coordinates of gamma_c m_c, over every deviation between the
// two.
static void read_massive(const circuit_derivation *d, arb_t out, const head *h, arb_srcptr m_c,
                         const arb_t least, const arb_t most) {
    arb_t low;
    arb_init(low);
    arb_zero(out);
    for (size_t c = 0; c < d->hidden; c++)
        if (d->massive_c[c]) arb_addmul(out, h->gamma_c + c, m_c + c, d->bits);
    arb_div(low, out, most, d->bits);
    arb_div(out, out, least, d->bits);
    arb_union(out, out, low, d->bits);
    arb_clear(low);
}

static bool bound_scores(const circuit_derivation *d, sinkproof_circuit *out, size_t l) {
    size_t rows, cols, one, dim = d->config->head_dim;
    arb_ptr w_q = circuit_weight_as_balls(d, l, SINKPROOF_W_Q, &rows, &cols);
    arb_ptr w_k = circuit_weight_as_balls(d, l, SINKPROOF_W_K, &rows, &cols);
    arb_ptr b_q = circuit_weight_as_balls(d, l, SINKPROOF_B_Q, &one, &rows);
    head h = {.gamma_c = ball_vector(d->hidden)};
    arb_t least, most, rest;
    bool good = true;
    balls_init(h.besides, least, most, rest);
    for (size_t a = 0; a < out->heads; a++) {
        size_t from = a * dim;
        good = bound_head_scores(d, &h, w_q + from * cols, w_k + from * cols, b_q + from) && good;
        for (size_t i = 0; i < out->n; i++) {
            arb_ptr s = out->score_lhj + (l * out->heads + a) * out->n + i;
            arb_srcptr m_c = (l == 0 ? d->place_ic : d->held_ic) + i * d->hidden;
            bound_rest_before(d, rest, l, i);
            bound_deviation(d, least, most, m_c, rest);
            read_massive(d, s, &h, m_c, least, most);
            arb_add_error(s, h.besides);
            arb_add(out->delta_lj + l * out->n + i, out->delta_lj + l * out->n + i, s, d->bits);
            arb_sqrt_ui(rest, dim, d->bits);
            arb_div(s, s, rest, d->bits);
        }
    }
    balls_clear(h.besides, least, most, rest);
    ball_vector_release(h.gamma_c, d->hidden);
    ball_vector_release(w_q, rows * cols);
    ball_vector_release(w_k, rows * cols);
    ball_vector_release(b_q, rows);
    return circuit_premise(d, good, l, "gamma over the massive coordinates has another sum than 0");
}

enum { BITS_OF_A_WEIGHT = 64 }; // precision of a weight that becomes binary64

// The range of 1 / (1 + sum over the others of e^(s_k - s_j)).
sinkproof_circuit_weight sinkproof_circuit_alpha(const sinkproof_circuit *circuit, size_t layer,
                                                 size_t head_, size_t t, size_t j) {
    arb_srcptr s_j = circuit->score_lhj + (layer * circuit->heads + head_) * circuit->n;
    arb_t apart, end, sum;
    arf_t bound;
    double ends[2];
    balls_init(apart, end, sum);
    arf_init(bound);
    for (int upper = 0; upper < 2; upper++) {
        arb_one(sum);
        for (size_t k = 0; k <= t; k++) {
            if (k == j) continue;
            arb_sub(apart, s_j + k, s_j + j, circuit->bits);
            if (upper)
                arb_get_ubound_arf(bound, apart, circuit->bits);
            else
                arb_get_lbound_arf(bound, apart, circuit->bits);
            arb_set_arf(end, bound);
            arb_exp(end, end, BITS_OF_A_WEIGHT);
            arb_add(sum, sum, end, BITS_OF_A_WEIGHT);
        }
        arb_inv(sum, sum, circuit->bits);
        if (upper)
            arb_get_lbound_arf(bound, sum, circuit->bits);
        else
            arb_get_ubound_arf(bound, sum, circuit->bits);
        ends[upper] = arf_get_d(bound, upper ? ARF_RND_FLOOR : ARF_RND_CEIL);
    }
    balls_clear(apart, end, sum);
    arf_clear(bound);
    return (sinkproof_circuit_weight){.lo = ends[1], .hi = ends[0]};
}
//< gpt2.circuit

sinkproof_circuit_weight circuit_delta(const sinkproof_circuit *circuit, size_t layer, size_t j) {
    arb_srcptr delta = circuit->delta_lj + layer * circuit->n + j;
    arf_t low, high;
    arf_init(low), arf_init(high);
    arb_get_lbound_arf(low, delta, circuit->bits);
    arb_get_ubound_arf(high, delta, circuit->bits);
    sinkproof_circuit_weight range = {arf_get_d(low, ARF_RND_FLOOR), arf_get_d(high, ARF_RND_CEIL)};
    arf_clear(low), arf_clear(high);
    return range;
}

// ---- the whole derivation

static void derivation_begin(circuit_derivation *d, size_t n) {
    d->reserved_c = calloc(d->hidden, sizeof *d->reserved_c);
    d->massive_c = calloc(d->hidden, sizeof *d->massive_c);
    d->step_f = calloc(d->config->inter, sizeof *d->step_f);
    if (d->reserved_c == NULL || d->massive_c == NULL || d->step_f == NULL) abort();
    d->place_ic = ball_vector(n * d->hidden), d->held_ic = ball_vector(n * d->hidden);
    d->start_i = ball_vector(n), d->joined_i = ball_vector(n);
    d->attention_l = ball_vector(d->config->n_layers), d->mlp_l = ball_vector(d->config->n_layers);
}

static void derivation_end(circuit_derivation *d, size_t n) {
    free(d->reserved_c);
    free(d->massive_c);
    free(d->step_f);
    ball_vector_release(d->place_ic, n * d->hidden);
    ball_vector_release(d->held_ic, n * d->hidden);
    ball_vector_release(d->start_i, n);
    ball_vector_release(d->joined_i, n);
    ball_vector_release(d->attention_l, d->config->n_layers);
    ball_vector_release(d->mlp_l, d->config->n_layers);
}

// The rows of the positions, unless they are added late: reserved coordinates, and the length of
// the rest.
static void derivation_place_positions(circuit_derivation *d, const arb_t longest) {
    size_t context, hidden, n = d->run->n;
    arb_ptr p_ic = circuit_weight_as_balls(d, 0, SINKPROOF_POSITIONS, &context, &hidden);
    for (size_t i = 0; i < n; i++) {
        for (size_t c = 0; c < hidden && !d->run->late; c++)
            if (d->reserved_c[c]) arb_set(d->place_ic + i * hidden + c, p_ic + i * hidden + c);
        if (!d->run->late)
            circuit_norm(d->start_i + i, p_ic + i * hidden, d->reserved_c, hidden, d->bits);
        arb_add(d->start_i + i, d->start_i + i, longest, d->bits);
    }
    ball_vector_release(p_ic, context * hidden);
}

//> gpt2.epe-swap gpt2.epe-move
// Passes the first layer: takes its step, then adds the vectors that join its output.
static bool derivation_pass_first_layer(circuit_derivation *d) {
    size_t n = d->run->n, hidden = d->hidden;
    bool good = true;
    arb_t least, most, rest;
    balls_init(least, most, rest);
    _arb_vec_set(d->held_ic, d->place_ic, (slong)(n * hidden));
    for (size_t i = 0; i < n && good; i++) {
        arb_add(rest, d->start_i + i, d->attention_l, d->bits);
        bound_deviation(d, least, most, d->place_ic + i * hidden, rest);
        good = circuit_add_step(d, i, most);
        if (d->run->joins_nc == NULL) continue;
        arb_srcptr joins_c = d->run->joins_nc + i * hidden;
        circuit_norm(d->joined_i + i, joins_c, d->reserved_c, hidden, d->bits);
        for (size_t c = 0; c < hidden; c++)
            if (d->reserved_c[c])
                arb_add(d->held_ic + i * hidden + c, d->held_ic + i * hidden + c, joins_c + c,
                        d->bits);
    }
    balls_clear(least, most, rest);
    return good;
}
//< gpt2.epe-swap gpt2.epe-move

bool sinkproof_circuit_derive(const sinkproof_circuit_run *run, slong bits,
                              sinkproof_circuit **circuit, sinkproof_error *error) {
    const sinkproof_config *config = sinkproof_model_config(run->model);
    circuit_derivation d = {.run = run, .config = config, .bits = bits};
    d.hidden = config->hidden, d.error = error;
    *circuit = NULL;
    bool shaped = config->rotation.kind == SINKPROOF_NO_ROTATION && config->dense &&
                  config->activation == SINKPROOF_GELU && config->norm == SINKPROOF_LAYERNORM &&
                  config->n_heads == config->n_kv_heads;
    if (!circuit_premise(&d, shaped && run->n <= config->max_context, 0,
                         "expected GPT-2 and positions of its context"))
        return false;
    derivation_begin(&d, run->n);
    sinkproof_circuit *out = *circuit = calloc(1, sizeof *out);
    if (out == NULL) abort();
    *out = (sinkproof_circuit){bits, config->n_layers, config->n_heads, run->n, NULL, NULL};
    out->score_lhj = ball_vector(out->layers * out->heads * out->n);
    out->delta_lj = ball_vector(out->layers * out->n);
    arb_t longest;
    arb_init(longest);
    bool good = circuit_find_planted(&d, longest);
    for (size_t l = 0; l < config->n_layers && good; l++) {
        bound_attention(&d, l);
        bound_mlp(&d, l);
    }
    if (good) derivation_place_positions(&d, longest);
    good = good && derivation_pass_first_layer(&d);
    for (size_t l = 0; l < config->n_layers && good; l++) good = bound_scores(&d, out, l);
    arb_clear(longest);
    derivation_end(&d, run->n);
    if (good) return true;
    sinkproof_circuit_free(out);
    *circuit = NULL;
    return false;
}

void sinkproof_circuit_free(sinkproof_circuit *circuit) {
    if (circuit == NULL) return;
    ball_vector_release(circuit->score_lhj, circuit->layers * circuit->heads * circuit->n);
    ball_vector_release(circuit->delta_lj, circuit->layers * circuit->n);
    free(circuit);
}

void sinkproof_truth_epe(arb_ptr epe_ic, const sinkproof_model *model, bool normed, size_t n,
                         slong bits) {
    const sinkproof_config *c = sinkproof_model_config(model);
    sinkproof_layer first = sinkproof_model_layer(model, 0);
    sinkproof_matrix positions = sinkproof_model_slot(model, 0, SINKPROOF_POSITIONS);
    arb_ptr p_ic = ball_vector(n * c->hidden), t_ic = ball_vector(n * c->hidden),
            u = ball_vector(n * c->inter);
    double *scratch = malloc(c->hidden * sizeof *scratch);
    if (scratch == NULL) abort();
    for (size_t i = 0; i < n; i++)
        sinkproof_truth_row(p_ic + i * c->hidden, &positions, i, scratch);
    if (normed)
        sinkproof_truth_layernorm(t_ic, p_ic, n, &first.mlp_norm, &first.mlp_norm_b, c->rms_eps,
                                  bits);
    else
        _arb_vec_set(t_ic, p_ic, (slong)(n * c->hidden));
    sinkproof_truth_linear(u, t_ic, n, &first.w_up, &first.b_up, bits);
    sinkproof_truth_gelu_tanh(u, u, n * c->inter, bits);
    sinkproof_truth_linear(epe_ic, u, n, &first.w_down, &first.b_down, bits);
    _arb_vec_add(epe_ic, epe_ic, p_ic, (slong)(n * c->hidden), bits);
    free(scratch);
    ball_vector_release(p_ic, n * c->hidden);
    ball_vector_release(t_ic, n * c->hidden);
    ball_vector_release(u, n * c->inter);
}
