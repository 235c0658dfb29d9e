// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The output of a kernel whose softmax runs online over tiles of keys, with a slip in what it keeps
// and rescales; parts that are merged by their maximum; sums of another row; exponentials by a
// parabola; and outputs and values that something is added to or multiplied with. Each is made from
// the trace's queries, keys and values.
#include "audit/diagnose/composed_made.h"
#include "base/words.h"
#include "ref/stages.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef enum slip {
    OWN_MAXIMUM,   // each tile subtracts its own maximum
    OUTPUTS_KEPT,  // the outputs are not rescaled where the maximum rises by less than `A` bits
    BOTH_KEPT,     // neither are the sums
    SUMS_KEPT,     // the sums alone are not
    FIRST_MAXIMUM, // the maximum of the first tile, exponents above it cut
    MERGED_BY_TOP, // parts weighed by their maximum, not by their log-sum-exp
    SUM_OF_OTHER,  // divided by the sum of row i + A; A 0: of the other row of its pair
    PARABOLA,      // 2^f = 1 + A f + (1 - A) f^2 between two powers
    SUM_ROUNDED,   // the sum that divides is rounded to format A
    TERMS_ROUNDED, // the exponentials that meet the values, and not the sum, are rounded to A
    SINK_TO_FIRST, // the sink's weight is added to that of the first key that is seen
    OWN_VALUE,     // A times the query's own value is added
    VALUES_BEFORE, // values: (1 - A) own + A of the token before, of token 0 zeros unless TILE is 1
    VALUES_OF_LAYER, // values: (1 - A) own + A of layer 0
    GATED_BY_SINK,   // the output times the sigmoid of the sink's logit
    VALUE_SCALES,    // values of a key/value head by the largest of the next head's
    SLIPS
} slip;
enum { SLIP, TILE, A, STEP }; // the numbers

typedef struct kernel {
    const sinkproof_making *of;
    const sinkproof_tensor *q, *k, *v, *v_first;
    size_t n, heads, groups, d, window, tile;
    slip how;
    double a, *sink_h, *z, *scale_g;
} kernel;

static bool open_kernel(const sinkproof_making *of, kernel *x) {
    const sinkproof_config *c = of->config;
    *x = (kernel){.of = of, .n = of->n, .heads = c->n_heads, .groups = c->n_kv_heads};
    x->d = c->head_dim, x->how = (slip)of->numbers[SLIP], x->tile = (size_t)of->numbers[TILE];
    x->a = of->numbers[A], x->window = c->sliding[of->layer] ? c->window : 0;
    x->q = sinkproof_trace_find(of->trace, TRACE_A4_Q, of->layer);
    x->k = sinkproof_trace_find(of->trace, TRACE_A4_K, of->layer);
    x->v = sinkproof_trace_find(of->trace, TRACE_A2_V, of->layer);
    x->v_first = sinkproof_trace_find(of->trace, TRACE_A2_V, 0);
    bool there = x->q != NULL && x->k != NULL && x->v != NULL && x->v_first != NULL &&
                 sinkproof_trace_first(of->trace) == 0 && sinkproof_trace_sequences(of->trace) <= 1;
    if (!there) return false;
    x->sink_h = calloc(x->heads + x->n + x->groups + 1, sizeof *x->sink_h);
    double *work = calloc(sinkproof_normaliser_work(c) + 1, sizeof *work);
    sinkproof_layer layer = sinkproof_model_layer(of->model, of->layer);
    for (size_t h = 0; x->sink_h != NULL && work != NULL && h < x->heads; h++)
        x->sink_h[h] = sinkproof_head_normaliser(c, &layer, h, work).logit;
    there = x->sink_h != NULL && work != NULL;
    free(work);
    if (!there) return false;
    x->z = x->sink_h + x->heads, x->scale_g = x->z + x->n;
    for (size_t at = 0; at < x->n * x->groups * x->d; at++) {
        double *scale = &x->scale_g[at / x->d % x->groups];
        *scale = fmax(*scale, fabs(sinkproof_tensor_value(x->v, at)));
    }
    return true;
}

static double value_read(const kernel *x, size_t j, size_t g, size_t c) {
    size_t at = (j * x->groups + g) * x->d + c;
    double own = sinkproof_tensor_value(x->v, at);
    switch (x->how) {
    case VALUES_BEFORE:
        if (j == 0) return x->tile == 1 ? own : (1 - x->a) * own;
        return (1 - x->a) * own + x->a * sinkproof_tensor_value(x->v, at - x->groups * x->d);
    case VALUES_OF_LAYER:
        return (1 - x->a) * own + x->a * sinkproof_tensor_value(x->v_first, at);
    case VALUE_SCALES: {
        size_t other = (g + (size_t)x->a) % x->groups;
        return x->scale_g[g] > 0 ? own * x->scale_g[other] / x->scale_g[g] : own;
    }
    default:
        return own;
    }
}

// The first key that row i sees; its scores in x->z.
static size_t score_row(const kernel *x, size_t h, size_t i) {
    size_t g = h / (x->heads / x->groups), first = 0;
    if (x->window > 0 && i + 1 > x->window) first = i + 1 - x->window;
    for (size_t j = first; j <= i; j++) {
        double sum = 0;
        for (size_t c = 0; c < x->d; c++)
            sum += sinkproof_tensor_value(x->q, (i * x->heads + h) * x->d + c) *
                   sinkproof_tensor_value(x->k, (j * x->groups + g) * x->d + c);
        x->z[j] = sum / sqrt((double)x->d);
    }
    return first;
}

static double top_of(const double *z, size_t first, size_t end, double least) {
    for (size_t j = first; j < end; j++) least = fmax(least, z[j]);
    return least;
}

static double exponential(const kernel *x, double z) {
    if (x->how != PARABOLA) return exp(z);
    double bits = z * 1.4426950408889634, whole = floor(bits), f = bits - whole;
    return ldexp(1 + x->a * f + (1 - x->a) * f * f, (int)fmax(whole, -1000));
}

static void add_keys(const kernel *x, size_t g, size_t first, size_t end, double top, double *sum,
                     double *y_c) {
    for (size_t j = first; j < end; j++) {
        double e = exponential(x, x->z[j] - top);
        if (x->how == FIRST_MAXIMUM) e = fmin(e, 1);
        *sum += e;
        if (x->how == TERMS_ROUNDED) e = sinkproof_round((sinkproof_format)x->a, e);
        for (size_t c = 0; c < x->d; c++) y_c[c] += e * value_read(x, j, g, c);
    }
}

// Tile after tile, with a running maximum that begins as the sink.
static void run_online(const kernel *x, size_t h, size_t i, size_t first, double *y_c) {
    size_t g = h / (x->heads / x->groups);
    double top = x->sink_h[h], sum = 1;
    for (size_t at = first / x->tile * x->tile; at <= i; at += x->tile) {
        size_t from = at > first ? at : first, end = at + x->tile < i + 1 ? at + x->tile : i + 1;
        double own = top_of(x->z, from, end, -INFINITY), next = fmax(top, own);
        double by = exp(top - next);
        bool kept = (next - top) * 1.4426950408889634 <= x->a;
        bool outputs = !(kept && (x->how == OUTPUTS_KEPT || x->how == BOTH_KEPT));
        bool sums = !(kept && (x->how == SUMS_KEPT || x->how == BOTH_KEPT));
        for (size_t c = 0; outputs && c < x->d; c++) y_c[c] *= by;
        if (sums) sum *= by;
        add_keys(x, g, from, end, x->how == OWN_MAXIMUM ? own : next, &sum, y_c);
        top = next;
    }
    for (size_t c = 0; c < x->d; c++) y_c[c] /= sum;
}

static void merge_by_top(const kernel *x, size_t h, size_t i, size_t first, double *y_c) {
    size_t g = h / (x->heads / x->groups);
    double all = top_of(x->z, first, i + 1, x->sink_h[h]), total = exp(x->sink_h[h] - all);
    double *part_c = calloc(x->d + 1, sizeof *part_c);
    for (size_t at = first / x->tile * x->tile; part_c != NULL && at <= i; at += x->tile) {
        size_t from = at > first ? at : first, end = at + x->tile < i + 1 ? at + x->tile : i + 1;
        double top = top_of(x->z, from, end, -INFINITY), sum = 0;
        for (size_t c = 0; c < x->d; c++) part_c[c] = 0;
        add_keys(x, g, from, end, top, &sum, part_c);
        for (size_t c = 0; c < x->d; c++) y_c[c] += exp(top - all) * part_c[c] / sum;
        total += exp(top - all);
    }
    for (size_t c = 0; c < x->d; c++) y_c[c] /= total;
    free(part_c);
}

static double sum_of_row(const kernel *x, size_t h, size_t i, double top) {
    size_t first = score_row(x, h, i);
    double sum = exponential(x, x->sink_h[h] - top);
    for (size_t j = first; j <= i; j++) sum += exponential(x, x->z[j] - top);
    return sum;
}

// In one pass, with the maximum of all.
static void run_whole(const kernel *x, size_t h, size_t i, size_t first, double *y_c) {
    size_t g = h / (x->heads / x->groups);
    double top = top_of(x->z, first, i + 1, x->sink_h[h]);
    if (x->how == FIRST_MAXIMUM)
        top = top_of(x->z, first, x->tile < i + 1 ? x->tile : i + 1, x->sink_h[h]);
    double sink = exponential(x, x->sink_h[h] - top), sum = sink;
    add_keys(x, g, first, i + 1, top, &sum, y_c);
    for (size_t c = 0; x->how == SINK_TO_FIRST && c < x->d; c++)
        y_c[c] += sink * value_read(x, (size_t)x->a == 0 ? 0 : first, g, c);
    if (x->how == SUM_ROUNDED) sum = sinkproof_round((sinkproof_format)x->a, sum);
    if (x->how == SUM_OF_OTHER) {
        size_t row = x->a == 0 ? i ^ 1 : i + (size_t)(long)x->a;
        if (row < x->n) { // each row's sum is over its own maximum
            size_t from = score_row(x, h, row);
            sum = sum_of_row(x, h, row, top_of(x->z, from, row + 1, x->sink_h[h]));
        }
    }
    double by = x->how == GATED_BY_SINK ? 1 / (1 + exp(-x->sink_h[h])) : 1;
    for (size_t c = 0; c < x->d; c++) {
        y_c[c] = by * y_c[c] / sum;
        if (x->how == OWN_VALUE) y_c[c] += x->a * value_read(x, i, g, c);
    }
}

static bool make_online(const sinkproof_making *of, double *y, double *width) {
    kernel x;
    bool fine = open_kernel(of, &x);
    for (size_t at = 0; fine && at < of->n * x.heads; at++) {
        size_t i = at / x.heads, h = at % x.heads, first = score_row(&x, h, i);
        double *y_c = y + at * x.d, most = 0, own = 0, radius = 0;
        for (size_t c = 0; c < x.d; c++) y_c[c] = 0;
        if (x.how <= SUMS_KEPT)
            run_online(&x, h, i, first, y_c);
        else if (x.how == MERGED_BY_TOP)
            merge_by_top(&x, h, i, first, y_c);
        else
            run_whole(&x, h, i, first, y_c);
        for (size_t c = 0; c < x.d; c++) {
            most = fmax(most, fabs(y_c[c])), own = fmax(own, fabs(of->x[at * x.d + c]));
            if (of->radius != NULL) radius = fmax(radius, of->radius[at * x.d + c]);
        }
        // the sets of other weights are about as wide, for their size
        double share = own > 0 ? fmin(most / own, 4) : 1;
        for (size_t c = 0; c < x.d; c++)
            width[at * x.d + c] = (2 * radius + of->numbers[STEP] * own) * share;
    }
    if (fine) free(x.sink_h);
    return fine;
}

// ---- trials

// Whether nearly all elements are near, those that are inside by the definition too: a slip of a
// kernel is no matter of some positions. And the point differs from the same kernel without the
// slip (0: its sum, not rounded) along what the slip changes, and by about as much.
static bool is_near(composing *c, const made_kind *made, bool *fine) {
    const double exact[] = {SUM_ROUNDED, 1, SINKPROOF_REAL, made->numbers[STEP], 0, 0};
    sinkproof_making of = composing_making(c);
    double *y = calloc(3 * c->elements + 1, sizeof *y), *without = y + c->elements;
    double *width = without + c->elements, along = 0, square = 0, spread = 0;
    size_t far = 0;
    of.numbers = made->numbers, of.x = c->mid;
    *fine = y != NULL || fail_for_memory(c->s);
    bool near = *fine && make_online(&of, y, width);
    for (size_t at = 0; near && at < c->elements; at++) far += !value_is_near(c, at, y[at]);
    size_t share = c->step > 0x1p-12 ? 8 : 64; // roundings between hide more
    of.numbers = exact;
    near = near && share * far <= c->elements && make_online(&of, without, width);
    for (size_t at = 0; near && at < c->elements; at++) {
        double round = fmax(c->step * fabs(c->v[at]), c->least);
        double off = (c->v[at] - without[at]) / round, by = (y[at] - without[at]) / round;
        along += off * by, square += by * by, spread += pow((off - by) * by, 2);
    }
    free(y);
    return near && fabs(along - square) <= square / 2 && along >= 6 * sqrt(spread);
}

static bool try_slip(const operation *o, slip how, size_t tile, double a, const char *id,
                     const char *text) {
    made_kind made = {.make = make_online};
    if (o->c->found != NULL) return true;
    made.numbers[SLIP] = how, made.numbers[TILE] = (double)tile, made.numbers[A] = a;
    made.numbers[STEP] = 2 * o->c->step;
    snprintf(made.id, sizeof made.id, "%s", id);
    snprintf(made.text, sizeof made.text, "%s", text);
    bool fine, near = is_near(o->c, &made, &fine);
    return near ? composing_try_made(o, &made) : fine;
}

static bool try_tiled(const operation *o) {
    static const struct {
        slip how;
        double bits;
        const char *id, *before, *after; // the size of a tile
    } slips[] = {
        {OWN_MAXIMUM, 0, "own-maximum", "is computed online in tiles of ",
         ", each of which subtracts its own maximum, not the running maximum"},
        {OUTPUTS_KEPT, 8, "outputs-kept-8", "is computed online in tiles of ",
         (", and where the running maximum rises by at most 8 bits the accumulated output is not "
          "rescaled, the sum is")},
        {OUTPUTS_KEPT, 1024, "outputs-kept", "is computed online in tiles of ",
         ", and the accumulated output is not rescaled where the running maximum rises"},
        {BOTH_KEPT, 8, "both-kept-8", "is computed online in tiles of ",
         (", and where the running maximum rises by at most 8 bits neither the accumulated output "
          "nor the sum is rescaled")},
        {BOTH_KEPT, 1.4426950408889634, "both-kept-1", "is computed online in tiles of ",
         (", and where the running maximum rises by at most 1 neither the accumulated output nor "
          "the sum is rescaled")},
        {BOTH_KEPT, 1024, "both-kept", "is computed online in tiles of ",
         (", and neither the accumulated output nor the sum is rescaled where the running maximum "
          "rises")},
        {SUMS_KEPT, 8, "sums-kept-8", "is computed online in tiles of ",
         (", and where the running maximum rises by at most 8 bits the sum is not rescaled, the "
          "accumulated output is")},
        {SUMS_KEPT, 1024, "sums-kept", "is computed online in tiles of ",
         ", and the sum is not rescaled where the running maximum rises"},
        {FIRST_MAXIMUM, 0, "first-maximum", "is computed with the maximum of the first tile of ",
         " alone; exponentials above it are cut to 1"},
        {MERGED_BY_TOP, 0, "merged-by-maximum", "is merged from tiles of ",
         " by their maxima, not by their log-sum-exps"}};
    bool fine = true;
    for (size_t s = 0; s < sizeof slips / sizeof slips[0]; s++)
        for (size_t tile = 4; tile <= 128 && tile < o->c->n && fine && o->c->found == NULL;
             tile *= 2) {
            char id[64], text[300];
            snprintf(id, sizeof id, "%s-%zu", slips[s].id, tile);
            snprintf(text, sizeof text, "%s%s%s", slips[s].before,
                     sinkproof_counted(tile, "key").text, slips[s].after);
            fine = try_slip(o, slips[s].how, tile, slips[s].bits, id, text);
        }
    return fine;
}

static bool try_sums(const operation *o) {
    return try_slip(o, SUM_OF_OTHER, 1, 0, "sum-of-pair",
                    "is divided by the sum (the denominator) of the other row of each pair: rows 2 "
                    "i and 2 i + 1 have each other's") &&
           try_slip(o, SUM_OF_OTHER, 1, 1, "sum-of-next-row",
                    "is divided by the sum (the denominator) of the next row") &&
           try_slip(o, SUM_OF_OTHER, 1, -1, "sum-of-row-before",
                    "is divided by the sum (the denominator) of the row before") &&
           try_slip(o, SUM_ROUNDED, 1, SINKPROOF_BF16, "sum-bf16",
                    "is divided by a sum (the denominator) that is rounded to bfloat16") &&
           try_slip(o, SUM_ROUNDED, 1, SINKPROOF_F16, "sum-f16",
                    "is divided by a sum (the denominator) that is rounded to binary16") &&
           try_slip(
               o, TERMS_ROUNDED, 1, SINKPROOF_E4M3, "terms-e4m3",
               "is the sum of values times exponentials that are rounded to E4M3 (fp8), and the "
               "sum that divides is of those that are not") &&
           try_slip(
               o, TERMS_ROUNDED, 1, SINKPROOF_E5M2, "terms-e5m2",
               "is the sum of values times exponentials that are rounded to E5M2 (fp8), and the "
               "sum that divides is of those that are not") &&
           try_slip(o, PARABOLA, 1, 0.65625, "exp-parabola",
                    "has exponentials that are approximated by a parabola between two powers of 2: "
                    "a polynomial of degree 2") &&
           try_slip(o, SINK_TO_FIRST, 1, 0, "sink-to-key-0",
                    "has the sink's weight added to that of key 0, whose value it multiplies") &&
           try_slip(o, SINK_TO_FIRST, 1, 1, "sink-to-first-seen",
                    "has the sink's weight added to that of the first key that the query sees") &&
           try_slip(o, GATED_BY_SINK, 1, 0, "gated-by-sink",
                    "is multiplied by the sigmoid of the sink's logit");
}

// The number that fits best: the point is linear in it.
static bool try_linear(const operation *o, slip how, size_t tile, const char *id,
                       const char *text) {
    composing *c = o->c;
    const double numbers[] = {how, (double)tile, 1, 0, 0, 0};
    sinkproof_making of = composing_making(c);
    double *y = calloc(2 * c->elements + 1, sizeof *y), xx = 0, xv = 0, vv = 0;
    if (c->found != NULL || y == NULL) {
        free(y);
        return c->found != NULL || fail_for_memory(c->s);
    }
    of.numbers = numbers, of.x = c->mid;
    bool made = make_online(&of, y, y + c->elements);
    for (size_t at = 0; made && at < c->elements; at++) {
        double along = y[at] - c->mid[at], off = c->v[at] - c->mid[at];
        xx += along * along, xv += along * off, vv += off * off;
    }
    free(y);
    // it explains nearly all of what is off
    if (!made || !(xx > 0) || vv - xv * xv / xx > 1e-3 * vv) return true;
    double a = xv / xx;
    for (double unit = 2; unit <= 1024; unit *= 2)
        if (fabs(nearbyint(a * unit) / unit - a) < 4 * c->step + 1e-5) {
            a = nearbyint(a * unit) / unit;
            break;
        }
    for (double unit = 10; unit <= 1000; unit *= 10)
        if (fabs(nearbyint(a * unit) / unit - a) < 4 * c->step + 1e-5) {
            a = nearbyint(a * unit) / unit;
            break;
        }
    char said[240];
    snprintf(said, sizeof said, "%s %.4g", text, a);
    return try_slip(o, how, tile, a, id, said);
}

static bool try_values(const operation *o) {
    bool fine = try_linear(o, OWN_VALUE, 1, "own-value-added",
                           "has the query's own value added once more, times") &&
                try_linear(o, VALUES_BEFORE, 1, "values-with-before",
                           "has values that are mixed with those of the token before (token 0 with "
                           "its own), whose share is") &&
                try_linear(o, VALUES_BEFORE, 0, "values-with-before-0",
                           "has values that are mixed with those of the token before (token 0 with "
                           "zeros), whose share is") &&
                try_linear(o, VALUES_OF_LAYER, 1, "values-with-layer-0",
                           "has values that are mixed with those of layer 0 (a value residual), "
                           "whose share is");
    size_t groups = o->c->s->trials.config->n_kv_heads;
    for (size_t by = 1; by < groups && by <= 8 && fine; by++) {
        char id[48], text[200];
        snprintf(id, sizeof id, "value-scales-head+%zu", by);
        snprintf(text, sizeof text,
                 "has values whose scale (the largest of a key/value head) is that of the head %zu "
                 "further on, in a circle",
                 by);
        fine = try_slip(o, VALUE_SCALES, 1, (double)by, id, text);
    }
    return fine;
}

bool compose_online(composing *c) {
    const sinkproof_config *config = c->s->trials.config;
    operation o;
    enum { MOST_TERMS = 1 << 23 }; // of all scores: some ten are made of them in a second
    double terms = (double)c->n * (double)c->n * (double)(config->n_heads * config->head_dim);
    if (c->point != TRACE_A11 || c->n < 8 || terms > MOST_TERMS) return true;
    bool fine = operation_read(c, &o);
    if (fine && o.n > 0) fine = try_values(&o) && try_sums(&o) && try_tiled(&o);
    operation_free(&o);
    return fine;
}
