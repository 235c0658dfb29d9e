// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Prints the inputs of a point's worst element, as hex floats from the trace.
#include "audit/judge/judge_internal.h"
#include "ref/stages.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static double traced_value(const judge_pass *pass, sinkproof_trace_point point, size_t layer,
                           size_t at) {
    const sinkproof_tensor *tensor = sinkproof_trace_find(pass->trace, point, layer);
    return tensor != NULL && at < sinkproof_tensor_elements(tensor)
               ? sinkproof_tensor_value(tensor, at)
               : NAN;
}

// A number such as "0x1.8p+1", or a note that the trace does not hold it.
typedef struct hex_text {
    char text[32];
} hex_text;

static hex_text hex_or_not_traced(double x) {
    hex_text h;
    if (isnan(x))
        snprintf(h.text, sizeof h.text, "not traced");
    else
        snprintf(h.text, sizeof h.text, "%a", x);
    return h;
}

// The sink's logit of row i of head h, over the reals: NAN where it follows from a query that the
// trace lacks. Returns false if memory runs out.
static bool sink_logit(const judge_pass *pass, size_t l, size_t h, size_t i, double *b) {
    const sinkproof_config *c = pass->config;
    const sinkproof_block row = {.rows = 1, .head_dim = c->head_dim};
    sinkproof_policy real;
    sinkproof_layer layer = sinkproof_model_layer(pass->model, l);
    double *work = malloc(sinkproof_normaliser_work(c) * sizeof *work);
    double *q_d = malloc(c->head_dim * sizeof *q_d);
    bool fine = sinkproof_policy_known("real-f64", &real) && work != NULL && q_d != NULL;
    for (size_t d = 0; fine && d < c->head_dim; d++)
        q_d[d] = traced_value(pass, TRACE_A4_Q, l, (i * c->n_heads + h) * c->head_dim + d);
    if (fine) {
        sinkproof_normaliser normaliser = sinkproof_head_normaliser(c, &layer, h, work);
        sinkproof_sink_logits(&real, &row, &normaliser, q_d, b);
    }
    free(work);
    free(q_d);
    return fine;
}

// A9, A10: the column, and the logit that its weight comes from.
static bool describe_weight(const judge_pass *pass, const sinkproof_point_report *r, char *out,
                            size_t size) {
    size_t last = r->shape[2], row = r->worst_at / last, j = r->worst_at % last;
    size_t i = row % r->shape[1], h = row / r->shape[1];
    double sink;
    if (!sink_logit(pass, r->layer, h, i, &sink)) return false;
    sinkproof_sequence of = sinkproof_trace_sequence_of(pass->trace, i);
    size_t at = of.first + i - of.row, column = of.key + of.keys - of.rows + i - of.row;
    size_t low = first_seen_key(pass->config, r->layer, at);
    bool seen = j <= column && (size_t)(column - j) <= at - low && j >= of.key;
    if (j == pass->keys)
        snprintf(out, size, "the sink, logit %s", hex_or_not_traced(sink).text);
    else
        snprintf(
            out, size, "a %s key, score %s; sink logit %s", seen ? "visible" : "masked",
            hex_or_not_traced(traced_value(pass, TRACE_A6, r->layer, row * pass->keys + j)).text,
            hex_or_not_traced(sink).text);
    return true;
}

// A norm: the element and its row's mean square.
static void describe_norm(const judge_pass *pass, const sinkproof_point_report *r, char *out,
                          size_t size) {
    sinkproof_input in[SINKPROOF_MAX_INPUTS];
    size_t last = r->shape[r->rank - 1], row = r->worst_at / last;
    double square = 0;
    sinkproof_trace_inputs(pass->config, r->point, r->layer, in);
    for (size_t d = 0; d < last; d++) {
        double x = traced_value(pass, in[0].point, in[0].layer, row * last + d);
        square += x * x;
    }
    snprintf(out, size, "x %s, mean square %s",
             hex_or_not_traced(traced_value(pass, in[0].point, in[0].layer, r->worst_at)).text,
             hex_or_not_traced(square / (double)last).text);
}

// A4: the pair that was turned.
static void describe_pair(const judge_pass *pass, const sinkproof_point_report *r, char *out,
                          size_t size) {
    sinkproof_input in[SINKPROOF_MAX_INPUTS];
    size_t last = r->shape[2], half = last / 2, row = r->worst_at / last;
    size_t pair = r->worst_at % last % half;
    sinkproof_trace_inputs(pass->config, r->point, r->layer, in);
    snprintf(
        out, size, "pair %zu: x1 %s, x2 %s, position %d", pair,
        hex_or_not_traced(traced_value(pass, in[0].point, r->layer, row * last + pair)).text,
        hex_or_not_traced(traced_value(pass, in[0].point, r->layer, row * last + pair + half)).text,
        (int)sinkproof_trace_positions(pass->trace)[row / r->shape[1]]);
}

// A13, M12: the residual stream and the sublayer's output that is added to it.
static void describe_sum(const judge_pass *pass, const sinkproof_point_report *r, const char *added,
                         char *out, size_t size) {
    sinkproof_input in[SINKPROOF_MAX_INPUTS]; // the addend, then the residual stream
    sinkproof_trace_inputs(pass->config, r->point, r->layer, in);
    snprintf(out, size, "residual %s, %s %s",
             hex_or_not_traced(traced_value(pass, in[1].point, in[1].layer, r->worst_at)).text,
             added,
             hex_or_not_traced(traced_value(pass, in[0].point, in[0].layer, r->worst_at)).text);
}

bool judge_describe_inputs(const judge_pass *pass, sinkproof_point_report *r) {
    char *out = r->worst_inputs;
    size_t size = sizeof r->worst_inputs, at = r->worst_at, l = r->layer;
    if (sinkproof_trace_point_is_norm(r->point)) {
        describe_norm(pass, r, out, size);
        return true;
    }
    switch (r->point) {
    case TRACE_A4_Q:
    case TRACE_A4_K:
        describe_pair(pass, r, out, size);
        return true;
    case TRACE_A9:
    case TRACE_A10:
        return describe_weight(pass, r, out, size);
    case TRACE_LSE:
    case TRACE_LSE_KEYS:
        snprintf(out, size, "the same in base 2: %a", r->worst_set.mid / log(2));
        return true;
    case TRACE_A13:
        describe_sum(pass, r, "attention", out, size);
        return true;
    case TRACE_M8: // gate and up are neighbours in M6
        if (pass->config->activation != SINKPROOF_SWIGLU) {
            snprintf(out, size, "x %s",
                     hex_or_not_traced(traced_value(pass, TRACE_M6, l, at)).text);
            return true;
        }
        snprintf(out, size, "gate %s, up %s",
                 hex_or_not_traced(traced_value(pass, TRACE_M6, l, 2 * at)).text,
                 hex_or_not_traced(traced_value(pass, TRACE_M6, l, 2 * at + 1)).text);
        return true;
    case TRACE_M12:
        describe_sum(pass, r, "mixture", out, size);
        return true;
    default: // a sum of many products: its set is description enough
        out[0] = '\0';
        return true;
    }
}
