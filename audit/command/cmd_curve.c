// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof curve ID`: prints an equation as numbers to plot. The reference computes the points
// and the truth encloses them (*enclosed*, with a radius); errors are measured against exact sums.
// The figures of the book are drawn from this output alone.
#include "audit/command/command.h"
#include "base/words.h"
#include "model/json_number.h"
#include "proofs/bounds/gradients.h"
#include "proofs/bounds/honest.h"
#include "proofs/bounds/worst.h"
#include "proofs/truth/exact_dot.h"
#include "proofs/truth/truth.h"
#include "ref/stages.h"

#include <argp.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 128, MOST_KEYS = 4096 };

// ---- the output: series of rows -----------------------------------------------------------------

typedef struct curve {
    const char *id;
    json_t *series; // the output
    json_t *rows;   // of the open series
    size_t n_columns;
} curve;

// `columns`: names separated by spaces.
static void begin_series(curve *to, const char *name, const char *columns) {
    json_t *series = json_object(), *names = json_array();
    char text[256];
    snprintf(text, sizeof text, "%s", columns);
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " "))
        json_array_append_new(names, json_string(word));
    to->n_columns = json_array_size(names);
    to->rows = json_array();
    json_object_set_new(series, "id", json_string(to->id));
    json_object_set_new(series, "series", json_string(name));
    json_object_set_new(series, "columns", names);
    json_object_set_new(series, "rows", to->rows);
    json_array_append_new(to->series, series);
}

// Values that are not finite become null in JSON, and NaN in the table.
static void add_row(curve *to, const double *cells) {
    json_t *row = json_array();
    for (size_t c = 0; c < to->n_columns; c++)
        json_array_append_new(row, sinkproof_number_json(cells[c]));
    json_array_append_new(to->rows, row);
}

static void print_table(const curve *from, const char *what) {
    printf("# sinkproof curve %s: %s\n", from->id, what);
    for (size_t s = 0; s < json_array_size(from->series); s++) {
        const json_t *series = json_array_get(from->series, s), *cell, *row;
        const json_t *rows = json_object_get(series, "rows");
        size_t r, c;
        if (s > 0) printf("\n\n");
        printf("# %s\n#", json_string_value(json_object_get(series, "series")));
        json_array_foreach(json_object_get(series, "columns"), c, cell)
            printf(" %s", json_string_value(cell));
        printf("\n");
        json_array_foreach(rows, r, row) {
            json_array_foreach(row, c, cell) if (json_is_null(cell))
                printf("%sNaN", c > 0 ? " " : "");
            else printf("%s%.17g", c > 0 ? " " : "", json_real_value(cell));
            printf("\n");
        }
    }
}

// ---- one row of attention, by the reference and by the truth

typedef struct attention {
    sinkproof_policy policy; // real-f64: nothing is rounded between the formulas
    double alpha_j[MOST_KEYS + 1];
    double mass;    // sum of alpha_j, ascending
    arb_ptr true_j; // [MOST_KEYS]
    arb_t true_sink, true_mass;
} attention;

static attention *attention_new(void) {
    attention *a = calloc(1, sizeof *a);
    if (a == NULL || !sinkproof_policy_known("real-f64", &a->policy)) abort();
    a->true_j = _arb_vec_init(MOST_KEYS);
    balls_init(a->true_sink, a->true_mass);
    return a;
}

static void attention_free(attention *a) {
    _arb_vec_clear(a->true_j, MOST_KEYS);
    balls_clear(a->true_sink, a->true_mass);
    free(a);
}

// The last query of n keys, which sees all of them.
static void attend_last_query(attention *a, size_t n, const double *s_j, double b) {
    sinkproof_block block = {.rows = 1, .keys = n, .first = n - 1};
    sinkproof_softmax_sink(&a->policy, &block, &b, s_j, a->alpha_j);
    arb_ptr score_j = _arb_vec_init((slong)n);
    arb_t sink;
    arb_init(sink);
    arb_set_d(sink, b);
    for (size_t j = 0; j < n; j++) arb_set_d(score_j + j, s_j[j]);
    sinkproof_truth_softmax_sink(a->true_j, a->true_sink, score_j, n, sink, BITS);
    a->mass = 0;
    arb_zero(a->true_mass);
    for (size_t j = 0; j < n; j++) {
        a->mass += a->alpha_j[j];
        arb_add(a->true_mass, a->true_mass, a->true_j + j, BITS);
    }
    arb_clear(sink);
    _arb_vec_clear(score_j, (slong)n);
}

// midpoint and radius of a ball; the radius also covers the midpoint's rounding.
static void write_ball(double cells[2], const arb_t from) {
    cells[0] = arf_get_d(arb_midref(from), ARF_RND_NEAR);
    cells[1] = sinkproof_truth_distance(from, cells[0]);
}

// alpha_s against b: n keys of score 0.
static void curve_alpha_sink(curve *to) {
    static const size_t keys[] = {1, 16, 128, 4096};
    static const double s_j[MOST_KEYS];
    attention *a = attention_new();
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
        char name[64];
        snprintf(name, sizeof name, "%.40s of score 0", sinkproof_counted(keys[k], "key").text);
        begin_series(to, name, "b alpha_s truth radius mass true_mass mass_radius");
        for (int step = -32; step <= 64; step++) {
            double cells[7] = {step * 0.25};
            attend_last_query(a, keys[k], s_j, cells[0]);
            cells[1] = a->alpha_j[keys[k]];
            write_ball(cells + 2, a->true_sink);
            cells[4] = a->mass;
            write_ball(cells + 5, a->true_mass);
            add_row(to, cells);
        }
    }
    attention_free(a);
}

// The mass of t keys of one score c, against t.
static void curve_mass(curve *to) {
    static const double sinks[] = {-INFINITY, 0, 2, 4, 6};
    static const double s_j[MOST_KEYS];
    attention *a = attention_new();
    for (size_t k = 0; k < sizeof sinks / sizeof sinks[0]; k++) {
        char name[64];
        snprintf(name, sizeof name, "b - c = %g", sinks[k]);
        begin_series(to, name, "t mass truth radius");
        for (size_t t = 1; t <= MOST_KEYS; t += t < 8 ? 1 : t / 8) {
            double cells[4] = {(double)t};
            attend_last_query(a, t, s_j, sinks[k]);
            cells[1] = a->mass;
            write_ball(cells + 2, a->true_mass);
            add_row(to, cells);
        }
    }
    attention_free(a);
}

// ---- the value bias -----------------------------------------------------------------------------

static uint64_t draw_bits(uint64_t *state) { // SplitMix64
    uint64_t x = *state += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

// A float32 in [-1, 1).
static double draw_signed(uint64_t *state) {
    return (double)(int64_t)(draw_bits(state) >> 40) * 0x1p-23 - 1;
}

// A head's output with a value bias less its output without: (1 - alpha_s) times the bias.
static void curve_value_bias(curve *to) {
    enum { KEYS = 8, COORDINATES = 3 };
    static const double bias_d[COORDINATES] = {1, 0.5, -0.75};
    double s_j[KEYS], plain_jd[KEYS * COORDINATES], biased_jd[KEYS * COORDINATES];
    uint64_t state = 6;
    for (size_t j = 0; j < KEYS; j++) s_j[j] = 2 * draw_signed(&state);
    for (size_t k = 0; k < KEYS * COORDINATES; k++) {
        plain_jd[k] = draw_signed(&state);
        biased_jd[k] = plain_jd[k] + bias_d[k % COORDINATES];
    }
    sinkproof_block block = {.rows = 1,
                             .keys = KEYS,
                             .first = KEYS - 1,
                             .head_dim = COORDINATES,
                             .q_stride = COORDINATES,
                             .kv_stride = COORDINATES};
    attention *a = attention_new();
    arb_t term;
    arb_init(term);
    for (size_t d = 0; d < COORDINATES; d++) {
        char name[64];
        snprintf(name, sizeof name, "bias %g", bias_d[d]);
        begin_series(to, name, "b term truth radius");
        for (int step = -32; step <= 64; step++) {
            double cells[4] = {step * 0.25}, without_d[COORDINATES], with_d[COORDINATES];
            attend_last_query(a, KEYS, s_j, cells[0]);
            sinkproof_values(&a->policy, &block, a->alpha_j, plain_jd, without_d);
            sinkproof_values(&a->policy, &block, a->alpha_j, biased_jd, with_d);
            cells[1] = with_d[d] - without_d[d];
            arb_set_d(term, bias_d[d]);
            arb_mul(term, term, a->true_mass, BITS);
            write_ball(cells + 2, term);
            add_row(to, cells);
        }
    }
    arb_clear(term);
    attention_free(a);
}

// ---- a float32 sum of products against its bound

static float dot_ascending(size_t n, const double *a_k, const double *b_k) {
    float sum = 0;
    for (size_t k = 0; k < n; k++) sum += (float)a_k[k] * (float)b_k[k];
    return sum;
}

static float dot_pairwise(size_t n, const double *a_k, const double *b_k) {
    if (n == 1) return (float)a_k[0] * (float)b_k[0];
    return dot_pairwise(n / 2, a_k, b_k) + dot_pairwise(n - n / 2, a_k + n / 2, b_k + n / 2);
}

// |y - sum a b| over u sum |a b|, the sums exact: an upper bound, rounded up.
static double error_in_u(float y, size_t n, const double *a_k, const double *b_k, double *size_k) {
    arb_t sum, size;
    balls_init(sum, size);
    sinkproof_exact_dot(arb_midref(sum), n, a_k, b_k);
    double away = sinkproof_truth_distance(sum, (double)y);
    for (size_t k = 0; k < n; k++) size_k[k] = fabs(a_k[k]);
    for (size_t k = 0; k < n; k++) size_k[n + k] = fabs(b_k[k]);
    sinkproof_exact_dot(arb_midref(size), n, size_k, size_k + n);
    double least = arf_get_d(arb_midref(size), ARF_RND_DOWN) * 0x1p-24;
    balls_clear(sum, size);
    return away == 0 ? 0 : sinkproof_next_up(away / least);
}

// 1, then terms slightly above u: every addition but the first rounds up by almost u.
static void draw_all_rounding_up(size_t n, double *a_k, double *b_k) {
    for (size_t k = 0; k < n; k++) {
        a_k[k] = k == 0 ? 1 : 0x1.000002p-24;
        b_k[k] = 1;
    }
}

static void keep_worst(double *worst, float y, size_t n, const double *a_k, const double *b_k,
                       double *size_k) {
    *worst = sinkproof_keep_worst(*worst, error_in_u(y, n, a_k, b_k, size_k));
}

static void curve_dot(curve *to) {
    enum { MOST = 1 << 16, DRAWS = 32 };
    const double u = 0x1p-24, odds = log(2 * DRAWS / 1e-9);
    double *a_k = calloc(4 * MOST, sizeof *a_k);
    if (a_k == NULL) abort();
    double *b_k = a_k + MOST, *size_k = b_k + MOST;
    uint64_t state = 13;
    begin_series(to, "the worst of 32 draws per n, in units of u sum |a b|, u = 2^-24",
                 "n ascending pairwise positive designed bound likely");
    for (size_t n = 1; n <= MOST; n *= 2) {
        double cells[7] = {(double)n};
        for (int time = 0; time < DRAWS; time++) {
            for (size_t k = 0; k < n; k++)
                a_k[k] = draw_signed(&state), b_k[k] = draw_signed(&state);
            keep_worst(&cells[1], dot_ascending(n, a_k, b_k), n, a_k, b_k, size_k);
            keep_worst(&cells[2], dot_pairwise(n, a_k, b_k), n, a_k, b_k, size_k);
            for (size_t k = 0; k < n; k++) a_k[k] = fabs(a_k[k]), b_k[k] = fabs(b_k[k]);
            keep_worst(&cells[3], dot_ascending(n, a_k, b_k), n, a_k, b_k, size_k);
        }
        draw_all_rounding_up(n, a_k, b_k);
        keep_worst(&cells[4], dot_ascending(n, a_k, b_k), n, a_k, b_k, size_k);
        cells[5] = sinkproof_gamma((double)n, u) / u;
        cells[6] = fmin(cells[5], sqrt(2 * odds * (double)n));
        add_row(to, cells);
    }
    free(a_k);
}

// ---- YaRN ---------------------------------------------------------------------------------------

// Each pair's frequency over its trained frequency, as published and with whole ends.
static void curve_yarn(curve *to) {
    sinkproof_config config, plain;
    sinkproof_policy policy;
    if (!sinkproof_config_named("gpt-oss-20b", &config) ||
        !sinkproof_policy_known("real-f64", &policy))
        abort();
    size_t half = config.head_dim / 2;
    double *freq_d = calloc(2 * half, sizeof *freq_d), *trained_d = freq_d + half;
    if (freq_d == NULL) abort();
    plain = config;
    plain.rotation.factor = 1; // interpolated and extrapolated are then the same
    sinkproof_yarn_frequencies(&policy, &plain, trained_d);
    for (int truncate = 0; truncate < 2; truncate++) {
        config.rotation.truncate = truncate == 1;
        sinkproof_yarn_frequencies(&policy, &config, freq_d);
        begin_series(to, truncate ? "truncated ends" : "fractional ends (GPT-OSS)",
                     "d frequency trained share");
        for (size_t d = 0; d < half; d++)
            add_row(to, (double[]){(double)d, freq_d[d], trained_d[d], freq_d[d] / trained_d[d]});
    }
    for (int truncate = 0; truncate < 2; truncate++) {
        double ends[2];
        sinkproof_yarn_range(&config, truncate == 1, &ends[0], &ends[1]);
        begin_series(to, truncate ? "truncated: the ends" : "fractional: the ends", "low high");
        add_row(to, ends);
    }
    free(freq_d);
}

// ---- the gradient of a sink ---------------------------------------------------------------------

enum { GRADIENT_DIM = 64 };

// Of one query with `seen` keys: the sink's weight, and an output that is the smaller the larger it
// is; in the numbers of float32, dO in those of bfloat16.
static double draw_query(uint64_t *state, size_t seen, double *o_d, double *do_d) {
    double e = exp(3 + draw_signed(state)), alpha_s = (double)(float)(e / (e + (double)seen));
    for (size_t d = 0; d < GRADIENT_DIM; d++) {
        o_d[d] = (double)(float)(draw_signed(state) * (1 - alpha_s));
        do_d[d] = sinkproof_round(SINKPROOF_BF16, draw_signed(state));
    }
    return alpha_s;
}

// One draw: |gradient|, the radius with O as it is and as bfloat16 stores it, and the error of a
// float32 sum in ascending order, all over the size of the terms.
static void draw_sink_gradient(uint64_t *state, size_t n, double cells[4]) {
    sinkproof_honest *alpha_i = calloc(3 * n, sizeof *alpha_i), *delta_i = alpha_i + n;
    if (alpha_i == NULL) abort();
    double o_d[GRADIENT_DIM], do_d[GRADIENT_DIM], exact = 0, size = 0;
    float engine = 0;
    for (size_t i = 0; i < n; i++) {
        sinkproof_honest as_it_is[GRADIENT_DIM], stored[GRADIENT_DIM], given[GRADIENT_DIM];
        double alpha_s = draw_query(state, i + 1, o_d, do_d);
        float delta = 0;
        for (size_t d = 0; d < GRADIENT_DIM; d++) {
            double off = fabs(o_d[d]) * 0x1p-8;
            as_it_is[d] = sinkproof_exact_set(o_d[d]), given[d] = sinkproof_exact_set(do_d[d]);
            stored[d] = sinkproof_set_around(o_d[d], off, off, 0, 0);
            delta += (float)do_d[d] * (float)o_d[d];
            exact -= alpha_s * do_d[d] * o_d[d], size += fabs(alpha_s * do_d[d] * o_d[d]);
        }
        engine -= (float)alpha_s * delta;
        alpha_i[i] = sinkproof_exact_set(alpha_s);
        delta_i[i] = sinkproof_honest_gradient_sum(GRADIENT_DIM, given, 1, as_it_is, 1, 0x1p-24);
        delta_i[n + i] = sinkproof_honest_gradient_sum(GRADIENT_DIM, given, 1, stored, 1, 0x1p-24);
    }
    cells[0] = fabs(exact) / size;
    for (int way = 0; way < 2; way++) {
        sinkproof_honest set =
            sinkproof_honest_sink_gradient(n, alpha_i, delta_i + (size_t)way * n, 0x1p-24);
        cells[1 + way] = sinkproof_radius(&set) / size;
    }
    cells[3] = fabs((double)engine - exact) / size;
    free(alpha_i);
}

static void curve_sink_gradient(curve *to) {
    enum { DRAWS = 16 };
    uint64_t state = 17;
    begin_series(to,
                 "the mean of 16 drawn heads per n (error: the worst), over the sizes of the terms",
                 "n gradient radius radius_stored error");
    for (size_t n = 128; n <= MOST_KEYS; n *= 2) {
        double cells[5] = {(double)n}, one[4];
        for (int time = 0; time < DRAWS; time++) {
            draw_sink_gradient(&state, n, one);
            for (int c = 0; c < 3; c++) cells[1 + c] += one[c] / DRAWS;
            cells[4] = fmax(cells[4], one[3]);
        }
        add_row(to, cells);
    }
}

// ---- the command

static const struct {
    const char *id, *what;
    void (*fill)(curve *to);
} curves[] = {
    {"sink.alpha-sink", "the weight of the sink and the mass of the keys against b",
     curve_alpha_sink},
    {"repeat.sink", "the mass of t keys of one score c against t", curve_mass},
    {"sink.bias-intensity", "what is left of a value bias against b", curve_value_bias},
    {"bound.dot", "the error of a float32 sum of products and its bound against n", curve_dot},
    {"grad.rounded", "a sink's gradient and its honest set's radius against n",
     curve_sink_gradient},
    {"yarn.ramp", "frequencies over frequencies as trained, both modes", curve_yarn},
};
enum { CURVES = sizeof curves / sizeof curves[0] };

typedef struct arguments {
    const char *id, *json;
} arguments;

static error_t parse_curve_option(int key, char *value, struct argp_state *state) {
    arguments *in = state->input;
    if (key == 'j')
        in->json = value;
    else if (key == ARGP_KEY_ARG && state->arg_num == 0)
        in->id = value;
    else if (key == ARGP_KEY_ARG)
        argp_error(state, "expected one ID, found \"%s\" too", value);
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

int cmd_curve(int argc, char **argv) {
    static const struct argp_option options[] = {
        {"json", 'j', "FILE|-", 0, "write the result as JSON; with - nothing else is printed", 0},
        {0}};
    static const char document[] =
        "Print an equation as numbers to plot: columns that gnuplot reads, one block per series. "
        "Without an ID, list the equations that have a curve.";
    const struct argp argp = {options, parse_curve_option, "[ID]", document, NULL, NULL, NULL};
    arguments in = {NULL, NULL};
    command_parse_line(&argp, argc, argv, &in);
    for (size_t c = 0; c < CURVES; c++) {
        if (in.id == NULL) printf("%-20s %s\n", curves[c].id, curves[c].what);
        if (in.id == NULL || strcmp(in.id, curves[c].id) != 0) continue;
        curve to = {.id = curves[c].id, .series = json_array()};
        curves[c].fill(&to);
        if (in.json == NULL || strcmp(in.json, "-") != 0) print_table(&to, curves[c].what);
        return exit_with_results(in.json, "curve", EXIT_HOLDS, to.series);
    }
    if (in.id == NULL) return EXIT_HOLDS;
    sinkproof_guess guess = {.given = in.id};
    for (size_t c = 0; c < CURVES; c++) sinkproof_guess_try(&guess, curves[c].id);
    fprintf(stderr, "sinkproof curve: no curve of \"%s\": %swithout an ID the command lists them\n",
            in.id, sinkproof_guess_sentence(&guess).text);
    return EXIT_USAGE;
}
