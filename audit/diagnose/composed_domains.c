// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Weights of a product whose scales are shared by other numbers than those of a row: by a column, a
// square block, a head, the fused weights of queries, keys and values, all experts. The weights are
// rounded to codes with such scales, or the codes of MXFP4 keep and have the largest or the
// smallest of the scales.
#include "audit/diagnose/composed_product.h"
#include "base/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef enum domain_join { OWN_MATRIX, ALL_EXPERTS, FUSED } domain_join;
enum { CODE, ROWS, COLS, JOIN, KEPT, TWICE }; // the numbers; ROWS, COLS: of a block, 0: all
enum { MOST_WEIGHTS = 1 << 22 };

typedef enum scale_kind {
    PLAIN,
    POWER,      // a power of two, rounded up
    TWO_LEVELS, // rounded to e4m3 under a scale of the tensor's
    HALF,       // rounded to binary16
} scale_kind;

// A code, or what stands for one: scales of MXFP4 that are shared.
typedef struct code {
    const char *id, *text;
    sinkproof_format format;
    double levels, most; // most: the largest code
    scale_kind scale;
    bool down; // ties go to the smaller size
} code;
static const code codes[] = {
    {"e4m3", "e4m3", SINKPROOF_E4M3, 0, 448, PLAIN, false},
    {"e5m2", "e5m2", SINKPROOF_E5M2, 0, 57344, PLAIN, false},
    {"int8", "int8", SINKPROOF_REAL, 127, 127, PLAIN, false},
    {"int4", "int4", SINKPROOF_REAL, 7, 7, PLAIN, false},
    {"e2m1", "e2m1", SINKPROOF_E2M1, 0, 6, PLAIN, false},
    {"e4m3-power", "e4m3 (scales that are powers of two)", SINKPROOF_E4M3, 0, 448, POWER, false},
    {"e2m1-power", "e2m1 (scales that are powers of two)", SINKPROOF_E2M1, 0, 6, POWER, false},
    {"nvfp4", "e2m1 (scales in e4m3, as in NVFP4)", SINKPROOF_E2M1, 0, 6, TWO_LEVELS, false},
    {"nvfp4-down", "e2m1 (scales in e4m3, as in NVFP4; ties go down)", SINKPROOF_E2M1, 0, 6,
     TWO_LEVELS, true},
    {"e2m1-down", "e2m1 (ties go down)", SINKPROOF_E2M1, 0, 6, PLAIN, true},
    {"int4-half", "int4 (scales in binary16)", SINKPROOF_REAL, 7, 7, HALF, false},
    {"int8-half", "int8 (scales in binary16)", SINKPROOF_REAL, 127, 127, HALF, false},
};
enum { N_CODES = sizeof codes / sizeof codes[0], LARGEST = N_CODES, SMALLEST };

// ---- scales

// The units of a stack of matrices that share a scale.
typedef struct units {
    size_t rows, cols, down, across, count; // of a unit; how many in a matrix; matrices
    bool joined;
} units;

static units units_of(const dense_product *p, size_t matrices, const double *numbers) {
    units u = {.rows = (size_t)numbers[ROWS], .cols = (size_t)numbers[COLS], .count = matrices};
    if (u.rows == 0) u.rows = p->outs;
    if (u.cols == 0) u.cols = p->ins;
    u.down = (p->outs + u.rows - 1) / u.rows, u.across = (p->ins + u.cols - 1) / u.cols;
    u.joined = numbers[JOIN] == ALL_EXPERTS;
    return u;
}

static size_t unit_at(const units *u, size_t e, size_t r, size_t c) {
    return ((u->joined ? 0 : e) * u->down + r / u->rows) * u->across + c / u->cols;
}

static size_t matrices_of(const dense_product *p) {
    size_t count = 1;
    for (size_t i = 0; i < p->n && p->expert_n != NULL; i++)
        if ((size_t)p->expert_n[i] >= count) count = (size_t)p->expert_n[i] + 1;
    return count;
}

// The largest weight of the queries', keys' and values' together.
static bool fused_largest(const sinkproof_making *of, size_t ins, double *most) {
    static const sinkproof_slot slots[] = {SINKPROOF_W_Q, SINKPROOF_W_K, SINKPROOF_W_V};
    *most = 0;
    for (size_t s = 0; s < 3; s++) {
        size_t rows = 0;
        double *w = dense_weights(of->model, of->layer, slots[s], ins, &rows);
        for (size_t at = 0; w != NULL && at < rows * ins; at++) *most = fmax(*most, fabs(w[at]));
        if (w == NULL) return false;
        free(w);
    }
    return true;
}

// Of each unit the largest weight; or the largest or smallest scale of MXFP4.
static bool unit_sizes(const sinkproof_making *of, const dense_product *p, const units *u,
                       double *size_u) {
    int kind = (int)of->numbers[CODE];
    size_t all = u->count * u->down * u->across, blocks = p->ins / 32;
    for (size_t i = 0; i < all; i++) size_u[i] = kind == SMALLEST ? INFINITY : 0;
    if (kind < LARGEST) {
        for (size_t at = 0; at < u->count * p->outs * p->ins; at++) {
            size_t r = at / p->ins;
            double *size = &size_u[unit_at(u, r / p->outs, r % p->outs, at % p->ins)];
            *size = fmax(*size, fabs(p->w_rc[at]));
        }
        return true;
    }
    sinkproof_slot slots[SINKPROOF_MAX_WEIGHTS];
    sinkproof_trace_weights(of->config, of->point, slots);
    sinkproof_matrix w = sinkproof_model_slot(of->model, of->layer, slots[0]);
    float *scale_b = malloc((blocks + 1) * sizeof *scale_b);
    bool fine = scale_b != NULL && w.dtype == SINKPROOF_DTYPE_MXFP4;
    for (size_t er = 0; fine && er < u->count * p->outs; er++) {
        sinkproof_matrix one = sinkproof_matrix_at(&w, er / p->outs);
        fine = sinkproof_matrix_scales(&one, er % p->outs, scale_b);
        for (size_t b = 0; fine && b < blocks; b++) {
            double *size = &size_u[unit_at(u, er / p->outs, er % p->outs, b * 32)];
            *size = kind == LARGEST ? fmax(*size, scale_b[b]) : fmin(*size, scale_b[b]);
        }
    }
    free(scale_b);
    return fine;
}

// ---- weights

static double rounded(const code *to, double w, double size, double all) {
    if (!(size > 0)) return w;
    double scale = (float)(size / to->most), over = (float)(all / (to->most * 448));
    if (to->scale == POWER) scale = exp2(ceil(log2(size / to->most)));
    if (to->scale == HALF) scale = sinkproof_round(SINKPROOF_F16, scale);
    if (to->scale == TWO_LEVELS)
        scale = (float)(sinkproof_round(SINKPROOF_E4M3, (float)(scale / over)) * over);
    if (!(scale > 0)) return 0;
    double x = (float)(w / scale);
    if (to->down) x -= copysign(fabs(x) * 0x1p-26, x);
    x = to->levels > 0 ? fmax(fmin(nearbyint(x), to->levels), -to->levels)
                       : sinkproof_round(to->format, x);
    return (float)(x * scale);
}

// What the weights of a product are read as.
typedef struct reading {
    units u;
    double *size_u;
    double own, fused; // the largest weight of all that are read; of those that are fused
    int kind;
    bool twice, bf16;
} reading;

// The caller frees size_u, unless it is `sizes`: those of the units, where they are known.
static bool reading_begin(const sinkproof_making *of, const dense_product *p, double *sizes,
                          reading *w) {
    *w = (reading){.u = units_of(p, matrices_of(p), of->numbers),
                   .size_u = sizes,
                   .kind = (int)of->numbers[CODE],
                   .twice = of->numbers[TWICE] != 0,
                   .bf16 = of->numbers[KEPT] != 0};
    size_t all = w->u.count * w->u.down * w->u.across;
    if (w->kind >= LARGEST && w->u.cols % 32 != 0) return false;
    if (sizes == NULL) {
        w->size_u = malloc((all + 1) * sizeof *w->size_u);
        if (w->size_u == NULL || !unit_sizes(of, p, &w->u, w->size_u)) return false;
    }
    w->own = 0;
    for (size_t i = 0; i < all; i++) w->own = fmax(w->own, w->size_u[i]);
    w->fused = w->size_u[0];
    return of->numbers[JOIN] != FUSED || fused_largest(of, p->ins, &w->fused);
}

// The weights of row r of matrix e; false: not known.
static bool read_row(const sinkproof_making *of, const dense_product *p, const reading *w, size_t e,
                     size_t r, double *w_c) {
    const double *own_c = p->w_rc + (e * p->outs + r) * p->ins;
    float scale_b[512];
    if (w->kind >= LARGEST) {
        sinkproof_slot slots[SINKPROOF_MAX_WEIGHTS];
        sinkproof_trace_weights(of->config, of->point, slots);
        sinkproof_matrix stack = sinkproof_model_slot(of->model, of->layer, slots[0]);
        sinkproof_matrix one = sinkproof_matrix_at(&stack, e);
        if (p->ins / 32 > 512 || !sinkproof_matrix_scales(&one, r, scale_b)) return false;
    }
    for (size_t c = 0; c < p->ins; c++) {
        double size = of->numbers[JOIN] == FUSED ? w->fused : w->size_u[unit_at(&w->u, e, r, c)];
        if (w->kind >= LARGEST)
            w_c[c] = own_c[c] / (double)scale_b[c / 32] * size;
        else {
            const code *to = &codes[w->kind];
            double own = w->twice ? rounded(to, own_c[c], w->own, w->own) : own_c[c];
            w_c[c] = rounded(to, own, size, w->own);
            if (w->bf16) w_c[c] = sinkproof_round(SINKPROOF_BF16, w_c[c]);
        }
    }
    return true;
}

static bool make_domains(const sinkproof_making *of, double *y, double *width) {
    dense_product p;
    reading w = {.size_u = NULL};
    bool known, fine = dense_product_read(of, &p, &known) && known;
    double *w_c = malloc((p.ins + 1) * sizeof *w_c);
    fine = fine && w_c != NULL && reading_begin(of, &p, NULL, &w);
    for (size_t er = 0; fine && er < w.u.count * p.outs; er++) {
        size_t e = er / p.outs, r = er % p.outs;
        fine = read_row(of, &p, &w, e, r, w_c);
        for (size_t i = 0; fine && i < p.n; i++)
            if (dense_matrix(&p, i) == p.w_rc + e * p.outs * p.ins)
                y[i * p.outs + r] = p.b_r[r] + dense_dot(p.x_nc + i * p.ins, w_c, p.ins);
    }
    if (fine) dense_widths(of, &p, y, width);
    free(w.size_u);
    free(w_c);
    dense_product_free(&p);
    return fine;
}

// ---- trials

static bool domain_is_near(const operation *o, const dense_product *p, const double *numbers,
                           double *sizes) {
    sinkproof_making of = composing_making(o->c);
    reading w = {.size_u = NULL};
    size_t far = 0;
    of.numbers = numbers;
    double *w_c = malloc((p->ins + 1) * sizeof *w_c);
    bool known = w_c != NULL && reading_begin(&of, p, sizes, &w);
    for (size_t s = 0; s < o->n && known && 8 * far <= o->n; s++) {
        size_t i = o->at[s] / p->outs, r = o->at[s] % p->outs;
        size_t e = p->expert_n != NULL ? (size_t)p->expert_n[i] : 0;
        known = read_row(&of, p, &w, e, r, w_c);
        double y = p->b_r[r] + dense_dot(p->x_nc + i * p->ins, w_c, p->ins);
        far += !value_is_near(o->c, o->at[s], y);
    }
    if (w.size_u != sizes) free(w.size_u);
    free(w_c);
    return known && 8 * far <= o->n;
}

static bool try_domain(const operation *o, const dense_product *p, const double *numbers,
                       double *sizes, const char *whose) {
    made_kind made = {.make = make_domains, .measured = true};
    if (o->c->found != NULL || !domain_is_near(o, p, numbers, sizes)) return true;
    int kind = (int)numbers[CODE];
    for (size_t i = 0; i < SINKPROOF_MAKING_NUMBERS; i++) made.numbers[i] = numbers[i];
    snprintf(made.id, sizeof made.id, "%s-of-%zu-by-%zu-%d%s%s",
             kind < N_CODES    ? codes[kind].id
             : kind == LARGEST ? "largest-scale"
                               : "smallest-scale",
             (size_t)numbers[ROWS], (size_t)numbers[COLS], (int)numbers[JOIN],
             numbers[KEPT] != 0 ? "-bf16" : "", numbers[TWICE] != 0 ? "-twice" : "");
    const char *words = composed_slot_words(o->slots[0]);
    if (kind < N_CODES)
        snprintf(made.text, sizeof made.text,
                 "is computed with %s rounded to %s with one scale %s%s", words, codes[kind].text,
                 whose,
                 numbers[TWICE] != 0 ? ", after such a rounding with a scale of their own" : "");
    else
        snprintf(made.text, sizeof made.text,
                 "is computed with %s whose codes have one scale %s, the %s of theirs", words,
                 whose, kind == LARGEST ? "largest" : "smallest");
    return composing_try_made(o, &made);
}

// Twice: those of a joined scale may have had their own before.
static bool try_codes(const operation *o, const dense_product *p, size_t rows, size_t cols,
                      domain_join join, const char *whose) {
    bool scaled = o->weights[0].dtype == SINKPROOF_DTYPE_MXFP4 && join != FUSED &&
                  (cols == 0 || cols % 32 == 0);
    bool bf16 = o->c->step > 0x1p-12;
    double numbers[SINKPROOF_MAKING_NUMBERS] = {0, (double)rows, (double)cols, join};
    sinkproof_making of = composing_making(o->c);
    of.numbers = numbers;
    const units u = units_of(p, matrices_of(p), numbers);
    double *size_u = malloc((u.count * u.down * u.across + 1) * sizeof *size_u);
    bool fine = size_u != NULL ? unit_sizes(&of, p, &u, size_u) : fail_for_memory(o->c->s);
    for (int kind = scaled ? SMALLEST : N_CODES - 1; kind >= 0 && fine; kind--)
        for (int twice = 0; twice <= (join == FUSED && kind < N_CODES) && fine; twice++)
            for (int kept = 0; kept <= (bf16 && kind < N_CODES) && fine; kept++) {
                numbers[CODE] = kind, numbers[TWICE] = twice, numbers[KEPT] = kept;
                fine = try_domain(o, p, numbers, kind < LARGEST ? size_u : NULL, whose);
            }
    free(size_u);
    return fine;
}

static bool search_domains(const operation *o, const dense_product *p) {
    static const size_t sizes[] = {128, 64, 32, 16, 8, 4, 2};
    size_t d = o->c->s->trials.config->head_dim;
    bool fused =
        o->c->point == TRACE_A2_Q || o->c->point == TRACE_A2_K || o->c->point == TRACE_A2_V;
    bool scaled = o->weights[0].dtype == SINKPROOF_DTYPE_MXFP4, fine = true;
    char whose[120];
    if (matrices_of(p) * p->outs * p->ins > MOST_WEIGHTS) return true;
    if (fused)
        fine = try_codes(o, p, 0, 0, FUSED, "for queries, keys and values together") &&
               try_codes(o, p, d, 0, OWN_MATRIX, "for each head");
    if (fine && p->expert_n != NULL) fine = try_codes(o, p, 0, 0, ALL_EXPERTS, "for all experts");
    if (fine)
        fine = try_codes(o, p, 0, 1, OWN_MATRIX, "for each column of a matrix, the wrong axis");
    if (fine) fine = try_codes(o, p, 1, 0, OWN_MATRIX, "for each row");
    if (fine && scaled)
        fine = try_codes(o, p, 0, 0, OWN_MATRIX, "for each matrix") &&
               try_codes(o, p, 0, 32, OWN_MATRIX, "for each 32 columns of a matrix");
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0] && fine; k++) {
        size_t b = sizes[k];
        if (b >= 16 && p->ins % b == 0 && b < p->ins) {
            snprintf(whose, sizeof whose, "for each %.40s of a row",
                     sinkproof_counted(b, "column").text);
            fine = try_codes(o, p, 1, b, OWN_MATRIX, whose);
        }
        if (b >= 16 && b < p->outs && b < 2 * p->ins) {
            snprintf(whose, sizeof whose, "for each block of %zu by %zu", b, b);
            fine = try_codes(o, p, b, b, OWN_MATRIX, whose);
        }
        if (fine && b >= 16 && b < p->outs) {
            snprintf(whose, sizeof whose, "for each %.40s of a column",
                     sinkproof_counted(b, "row").text);
            fine = try_codes(o, p, b, 1, OWN_MATRIX, whose);
        }
        if (fine && scaled && b < p->outs) {
            snprintf(whose, sizeof whose, "for each %.40s and 32 columns",
                     sinkproof_counted(b, "row").text);
            fine = try_codes(o, p, b, 32, OWN_MATRIX, whose);
        }
    }
    return fine;
}

bool compose_domains(composing *c) {
    dense_search *const searches[] = {search_domains};
    return compose_products(c, 1, searches);
}
