// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/command/truth_plan.h"

#include "audit/command/cpu.h"
#include "audit/verify/truth_bits.h"
#include "audit/verify/truth_memory.h"
#include "base/share.h"
#include "base/words.h"
#include "proofs/truth/sliced.h"
#include "ref/walk.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

// The products of one point over all layers.
typedef struct point_plan {
    size_t matrices; // measured: one in a layer, of an expert's one of the experts
    sinkproof_matrix first;
    int bits_most, bits_all, digit_least, digit_most; // the largest; of the digits both ends
    size_t digits_least, digits_most, slices;
    double sparse, weights, multiply_adds; // the largest share; of a token, over the layers
} point_plan;

typedef struct plan {
    const sinkproof_config *config;
    double bits;
    point_plan points[TRACE_POINTS];
} plan;

// Bits of an activation above its radius after so many layers, and the guard bits below it.
static slong size_at(const plan *p, size_t layers) {
    double lost = layers == 0 ? 0 : sinkproof_truth_loss(p->config, layers);
    return (slong)fmax(p->bits - lost, 0) + SLICED_GUARD_BITS;
}

static bool plan_step(void *context, const sinkproof_walk_step *step) {
    plan *p = context;
    if (step->operation != SINKPROOF_LINEAR && step->operation != SINKPROOF_MULTIPLY) return true;
    bool expert = step->operation == SINKPROOF_MULTIPLY;
    const sinkproof_matrix *stack = &step->weights[0];
    sinkproof_matrix w =
        expert ? sinkproof_matrix_at(stack, step->layer % stack->count) : step->weights[0];
    bool last = step->point == TRACE_F2;
    sliced_plan found =
        sinkproof_sliced_plan(&w, size_at(p, last ? p->config->n_layers : step->layer));
    double weights = (double)w.rows * (double)w.cols * (expert ? (double)p->config->n_chosen : 1);
    point_plan *point = &p->points[step->point];
    int s = found.expected.digit_bits;
    size_t digits = found.expected.digits;
    if (point->matrices++ == 0)
        *point = (point_plan){.matrices = 1,
                              .first = w,
                              .digit_least = s,
                              .digit_most = s,
                              .digits_least = digits,
                              .digits_most = digits};
    if (found.bits_most > point->bits_most) point->bits_most = found.bits_most;
    if (found.bits_all > point->bits_all) point->bits_all = found.bits_all;
    if (s < point->digit_least) point->digit_least = s;
    if (s > point->digit_most) point->digit_most = s;
    if (digits < point->digits_least) point->digits_least = digits;
    if (digits > point->digits_most) point->digits_most = digits;
    if (found.expected.slices > point->slices) point->slices = found.expected.slices;
    point->sparse = fmax(point->sparse, found.expected.sparse);
    point->weights += weights;
    point->multiply_adds += weights * found.multiply_adds;
    if (step->point == TRACE_M9)
        progress_show("truth", "layer", step->layer + 1, p->config->n_layers);
    return true;
}

static void range_text(char text[32], size_t least, size_t most) {
    if (least == most)
        snprintf(text, 32, "%zu", most);
    else
        snprintf(text, 32, "%zu to %zu", least, most);
}

static void print_plan(const plan *p, const char *name) {
    double weights = 0, multiply_adds = 0;
    printf("the products of %s at %.0f bits (estimated from at most 64 rows of a matrix in each "
           "layer)\n\n",
           name, p->bits);
    printf("%-6s %-6s %-14s %9s %9s %12s %10s %7s %9s %12s\n", "point", "format", "shape",
           "bits 99 %", "bits all", "bits a digit", "digits", "slices", "sparse", "mul-adds");
    for (size_t k = 0; k < TRACE_POINTS; k++) {
        const point_plan *point = &p->points[k];
        if (point->matrices == 0) continue;
        char shape[48], digit[32], digits[32];
        snprintf(shape, sizeof shape, "[%zu, %zu]", point->first.rows, point->first.cols);
        range_text(digit, (size_t)point->digit_least, (size_t)point->digit_most);
        range_text(digits, point->digits_least, point->digits_most);
        printf("%-6s %-6s %-14s %9d %9d %12s %10s %7zu %9s %12.1f\n",
               sinkproof_trace_point_name((sinkproof_trace_point)k),
               sinkproof_dtype_name(point->first.dtype), shape, point->bits_most, point->bits_all,
               digit, digits, point->slices, sinkproof_share_percent(point->sparse, 3).text,
               point->multiply_adds / point->weights);
        weights += point->weights;
        multiply_adds += point->multiply_adds;
    }
    printf("\na token: %.4g weights, %.4g multiply-adds in binary64, all of them exact\n", weights,
           multiply_adds);
}

static json_t *plan_json(const plan *p) {
    json_t *results = json_array();
    for (size_t k = 0; k < TRACE_POINTS; k++) {
        const point_plan *point = &p->points[k];
        if (point->matrices == 0) continue;
        json_array_append_new(
            results,
            json_pack(
                "{s:s, s:s, s:b, s:s, s:s, s:s, s:I, s:I, s:[II], s:[II], s:I, s:f, s:f, s:f}",
                "id", "slices.exact", "point", sinkproof_trace_point_name((sinkproof_trace_point)k),
                "ok", 1, "label", "estimated", "what", "slices of a product", "dtype",
                sinkproof_dtype_name(point->first.dtype), "bits_99", (json_int_t)point->bits_most,
                "bits_all", (json_int_t)point->bits_all, "digit_bits",
                (json_int_t)point->digit_least, (json_int_t)point->digit_most, "digits",
                (json_int_t)point->digits_least, (json_int_t)point->digits_most, "slices",
                (json_int_t)point->slices, "sparse", point->sparse, "weights_per_token",
                point->weights, "multiply_adds_per_token", point->multiply_adds));
    }
    return results;
}

// What a run of n tokens holds at once, at most: rounded up.
static void print_memory(const truth_memory *memory, size_t n) {
    printf(
        "%s: %.2f GiB or less at once, most at %s, beside the model and the program (estimated)\n",
        sinkproof_counted(n, "token").text, ceil(memory->bytes / (1 << 30) * 100) / 100,
        sinkproof_trace_point_name(memory->point));
}

int truth_plan_print(const sinkproof_model *model, const char *name, size_t n, long bits,
                     const char *json) {
    plan p = {.config = sinkproof_model_config(model), .bits = (double)bits};
    bool quiet = json != NULL && strcmp(json, "-") == 0;
    sinkproof_walk(model, plan_step, &p);
    if (!quiet) print_plan(&p, name);
    json_t *results = plan_json(&p);
    if (n > 0) {
        truth_memory memory = sinkproof_truth_memory(model, n, bits, (size_t)cpu_processors());
        if (!quiet) print_memory(&memory, n);
        json_array_append_new(results, json_pack("{s:s, s:s, s:b, s:s, s:I, s:f, s:s}", "id",
                                                 "model.forward", "what", "memory of a run", "ok",
                                                 1, "label", "estimated", "tokens", (json_int_t)n,
                                                 "bytes", memory.bytes, "point",
                                                 sinkproof_trace_point_name(memory.point)));
    }
    return exit_with_results(json, "truth", EXIT_HOLDS, results);
}

bool truth_fits_in_memory(const sinkproof_model *model, size_t n, long bits,
                          sinkproof_error *error) {
    double needed = sinkproof_truth_memory(model, n, bits, (size_t)cpu_processors()).bytes;
    double machine = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (needed <= machine) return true;
    return sinkproof_fail(error,
                          "%s: the truth at %ld bits may hold %.1f GiB at once, "
                          "this machine has %.1f GiB",
                          sinkproof_counted(n, "token").text, bits, needed / (1 << 30),
                          machine / (1 << 30));
}
