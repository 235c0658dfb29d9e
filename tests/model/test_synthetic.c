// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Synthetic models: the same bits on every machine (golden fingerprints and elements), rows
// that do not depend on the order of asking, streams that differ, and spreads that are what
// the recipes aim at. The statistics are held against Hoeffding's inequality at odds of 1e-9.
#include "model/bf16.h"
#include "model/mxfp4.h"
#include "model/synthetic.h"
#include "proofs/bounds/worst.h"
#include "tests/shared/opened.h"
#include "tests/shared/tap.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void check_golden(const char *spec, uint64_t expected) {
    sinkproof_model *model = open_model(spec);
    uint64_t found = 0;
    sinkproof_error error;
    ok(sinkproof_model_fingerprint(model, &found, &error) && found == expected,
       "%s has fingerprint %016" PRIx64 ", expected %016" PRIx64, spec, found, expected);
    sinkproof_model_close(model);
}

// A row-major matrix is one sequence of elements: cut into rows of 7 or into one of 140.
static void check_rows(const sinkproof_model *model) {
    double whole[140], part[7];
    unsigned wrong = 0;
    sinkproof_matrix one = sinkproof_model_embedding(model);
    one.rows = 1;
    one.cols = 140;
    sinkproof_matrix_row(&one, 0, whole);
    sinkproof_matrix many = one;
    many.rows = 20;
    many.cols = 7;
    for (size_t r = 20; r-- > 0;) {
        sinkproof_matrix_row(&many, r, part);
        wrong += memcmp(part, whole + 7 * r, sizeof part) != 0;
    }
    ok(wrong == 0, "rows of any width in any order hold the same elements, worst=%u bound=0",
       wrong);
}

static void check_codes(const sinkproof_model *model) {
    sinkproof_layer layer = sinkproof_model_layer(model, 1);
    sinkproof_matrix w = sinkproof_matrix_at(&layer.w_down, 3);
    uint8_t codes[64], scales[4], only[4];
    double row[128], decoded[128];
    unsigned wrong = 0;
    for (size_t r = 0; r < w.rows; r++) {
        sinkproof_matrix_row(&w, r, row);
        synthetic_codes(&w, r, codes, scales);
        synthetic_codes(&w, r, NULL, only);
        sinkproof_mxfp4_decode(codes, scales, 4, decoded);
        wrong += memcmp(row, decoded, sizeof row) != 0 || memcmp(scales, only, sizeof only) != 0;
    }
    ok(w.cols == 128 && wrong == 0, "mxfp4.decode of a row's codes is the row, worst=%u bound=0",
       wrong);
}

// 64 codes or more of any two streams cannot agree but by a mistake.
static void check_streams(const sinkproof_model *model, const sinkproof_model *other) {
    double rows[7][128];
    sinkproof_layer layer = sinkproof_model_layer(model, 0), next = sinkproof_model_layer(model, 1);
    sinkproof_layer seed = sinkproof_model_layer(other, 0);
    sinkproof_matrix w[7] = {sinkproof_matrix_at(&layer.w_down, 0),
                             sinkproof_matrix_at(&layer.w_down, 1),
                             sinkproof_matrix_at(&next.w_down, 0),
                             sinkproof_matrix_at(&seed.w_down, 0),
                             layer.w_q,
                             layer.w_k,
                             next.w_q};
    unsigned equal = 0;
    for (int i = 0; i < 7; i++) sinkproof_matrix_row(&w[i], 0, rows[i]);
    for (int i = 0; i < 7; i++)
        for (int j = 0; j < i; j++) equal += memcmp(rows[i], rows[j], 96 * sizeof(double)) == 0;
    ok(equal == 0, "slots, layers, experts and seeds differ, worst=%u bound=0", equal);
}

// A slot's stream is its own: no two have one number, and none is beyond a stream's eight bits.
static void check_numbers(void) {
    unsigned taken[STREAM_SLOTS] = {0}, wrong = 0;
    for (int s = 0; s < SINKPROOF_SLOTS; s++) {
        unsigned number = slot_stream((sinkproof_slot)s);
        if (number >= STREAM_SLOTS || taken[number]++ > 0) wrong++;
    }
    ok(wrong == 0, "every slot has a stream of its own, worst=%u bound=0", wrong);
}

static void check_values(const sinkproof_model *model) {
    const sinkproof_config *c = sinkproof_model_config(model);
    sinkproof_layer layer = sinkproof_model_layer(model, 0);
    double sinks[64], norm[4096], low = 0, high = 0, widest = 0;
    unsigned inexact = 0, same = 0;
    sinkproof_matrix_row(&layer.sinks, 0, sinks);
    sinkproof_matrix_row(&layer.attn_norm, 0, norm);
    for (size_t h = 0; h < c->n_heads; h++) {
        low = sinkproof_keep_least(low, sinks[h]);
        high = sinkproof_keep_worst(high, sinks[h]);
        inexact += sinkproof_bf16_value(sinkproof_bf16_bits(sinks[h])) != sinks[h];
    }
    for (size_t d = 0; d < c->hidden; d++) {
        widest = sinkproof_keep_worst(widest, fabs(norm[d] - 1));
        same += norm[d] == norm[0];
        inexact += sinkproof_bf16_value(sinkproof_bf16_bits(norm[d])) != norm[d];
    }
    ok(low < -5 && high > 5 && low >= -10 && high <= 10, "sinks reach from %g to %g", low, high);
    ok(widest <= 0.5 && widest > 0.25 && same < c->hidden / 2, "norms are 1 by at most %g", widest);
    ok(inexact == 0, "bf16.round holds every synthetic bf16 value, worst=%u bound=0", inexact);
}

// N elements with |x| <= M and mean square v: the mean square found is within
// M^2 sqrt(ln(2 / 1e-9) / 2N) of v; cutting to 8 bits loses at most 2^-7 of each.
static void check_spread(const sinkproof_model *model, sinkproof_slot slot, double target,
                         size_t n_rows) {
    sinkproof_matrix stack = sinkproof_model_slot(model, 0, slot);
    sinkproof_matrix w = sinkproof_matrix_at(&stack, 0);
    double *row_c = malloc(w.cols * sizeof *row_c), sum = 0, largest = 0;
    if (row_c == NULL) abort();
    for (size_t r = 0; r < n_rows; r++) {
        sinkproof_matrix_row(&w, r, row_c);
        for (size_t c = 0; c < w.cols; c++) {
            sum += row_c[c] * row_c[c];
            largest = fmax(largest, fabs(row_c[c]));
        }
    }
    free(row_c);
    bool mxfp4 = w.dtype == SINKPROOF_DTYPE_MXFP4;
    double n = (double)(n_rows * w.cols), v = sum / n;
    double fan_in = slot == SINKPROOF_EMBEDDING ? 1 : (double)w.cols,
           aim = target * target / fan_in;
    // the elements of a block share a scale: 32 of them count as one draw
    double sampling = largest * largest * sqrt(log(2e9) / (2 * n / (mxfp4 ? 32 : 1)));
    // gain is cut by less than 1 of at least 64, boost by less than 1 of 256 times 3
    double cut = aim * (mxfp4 ? 3.0 / 256 : 1 - 63.0 / 64 * 63.0 / 64 + 0x1p-6);
    ok(fabs(v - aim) <= sampling + cut, "%s: mean square %g, aim %g, worst=%g bound=%g",
       sinkproof_slot_name(slot), v, aim, fabs(v - aim), sampling + cut);
}

static void check_distinct(void) {
    sinkproof_config c;
    sinkproof_config_named("tiny", &c);
    const size_t lengths[] = {c.hidden,
                              c.inter,
                              2 * c.inter,
                              c.n_heads * c.head_dim,
                              c.n_kv_heads * c.head_dim,
                              c.n_heads,
                              c.n_kv_heads,
                              c.n_heads / c.n_kv_heads,
                              c.head_dim,
                              c.n_experts,
                              c.n_chosen,
                              c.n_layers,
                              c.window,
                              c.vocab};
    unsigned equal = 0;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t j = 0; j < i; j++) equal += lengths[i] == lengths[j];
    ok(equal == 0, "model.config tiny has no two equal dimensions, worst=%u bound=0", equal);
}

static void check_specs(void) {
    const char *const bad[] = {"synthetic:",
                               "synthetic:huge",
                               "synthetic:tiny,seed=-1",
                               "synthetic:tiny,seed=",
                               "synthetic:tiny,layers=0",
                               "synthetic:tiny,layers=513",
                               "synthetic:tiny,seeds=1",
                               "synthetic:tiny,sink=",
                               "synthetic:tiny,sink=sigmoid",
                               "synthetic:tiny,layers=99999999999999999999",
                               "synthetic:/nonexistent/config.json",
                               "synthetic:/"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sinkproof_model *model;
        sinkproof_error error = {""};
        ok(!sinkproof_model_open(bad[i], &model, &error) && error.text[0] != '\0', "refused: %s",
           error.text);
    }
    sinkproof_model *deep = open_model("synthetic:tiny,seed=18446744073709551615,layers=6");
    const sinkproof_config *c = sinkproof_model_config(deep);
    ok(c->n_layers == 6 && c->sliding[4] && !c->sliding[5], "more layers go on alternating");
    sinkproof_model_close(deep);
}

int main(void) {
    check_golden("synthetic:tiny", 0x85d55400756d7755);
    check_golden("synthetic:tiny,sink=logit", 0x85d55400756d7755); // a stated default
    check_golden("synthetic:tiny,sink=off-by-one", 0x9b1f93b5bf18f5e5);
    check_golden("synthetic:tiny,sink=key", 0x9c2ef90de79c84bf);
    check_golden("synthetic:gpt-oss-20b", 0xf86c65f91cfccf25);
    check_golden("synthetic:gpt2-circuit", 0xf9a8473455d551be);
    check_golden("synthetic:gpt2-null", 0x34def85dafb0c01a);
    check_golden("synthetic:gpt-oss-120b,layers=2,seed=5", 0x7774851003f7fb45);
    sinkproof_model *tiny = open_model("synthetic:tiny"),
                    *other = open_model("synthetic:tiny,seed=1");
    check_rows(tiny);
    check_codes(tiny);
    check_streams(tiny, other);
    check_numbers();
    sinkproof_model *large = open_model("synthetic:gpt-oss-20b,layers=1");
    check_values(large);
    check_spread(large, SINKPROOF_EMBEDDING, 1, 400);
    check_spread(large, SINKPROOF_W_Q, 1.05, 400);
    check_spread(large, SINKPROOF_W_O, 1.5, 400);
    check_spread(large, SINKPROOF_W_UP, 3, 2000);
    check_spread(large, SINKPROOF_W_DOWN, 0.17, 2000);
    check_spread(large, SINKPROOF_UNEMBEDDING, 2.5, 400);
    check_distinct();
    check_specs();
    sinkproof_model_close(tiny);
    sinkproof_model_close(other);
    sinkproof_model_close(large);
    return tap_done();
}
