// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The weights of a product that are read in another order: of their numbers in memory, or of their
// columns. The pseudo-inverse of the weights gives the input that the product has read, whose
// columns are compared with those of the trace.
#include "audit/diagnose/composed_product.h"
#include "audit/diagnose/normal_equations.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEMORY, ORDER, TILE }; // the numbers; MEMORY: not a table of columns

// How the numbers of a weight stand in memory.
typedef enum memory_order {
    TILES_TRANSPOSED, // each square tile, in its place
    TRANSPOSED,       // written by columns and read by rows
    TILES_IN_ROWS,    // tiles, one behind another, are read as rows
    ROWS_IN_TILES,    // rows are read as tiles
    GRID_TRANSPOSED,  // the tiles by columns of tiles
    MEMORY_ORDERS
} memory_order;

static size_t memory_place(memory_order order, size_t tile, size_t rows, size_t cols, size_t at) {
    size_t r = at / cols, c = at % cols, across = cols / tile, down = rows / tile;
    switch (order) {
    case TILES_TRANSPOSED:
        if (r / tile >= down || c / tile >= across) return at;
        return (r / tile * tile + c % tile) * cols + c / tile * tile + r % tile;
    case TRANSPOSED:
        return at % rows * cols + at / rows;
    case TILES_IN_ROWS: {
        size_t t = r / tile * across + c / tile; // number of its tile
        return (t * tile + r % tile) * tile + c % tile;
    }
    case ROWS_IN_TILES: {
        size_t t = at / (tile * tile), in = at % (tile * tile);
        return (t / across * tile + in / tile) * cols + t % across * tile + in % tile;
    }
    case GRID_TRANSPOSED: {
        size_t t = r / tile * across + c / tile;
        return (t % down * tile + r % tile) * cols + t / down * tile + c % tile;
    }
    case MEMORY_ORDERS:
        break;
    }
    return at;
}

// ---- what is made

// The weights in another order of their columns, or of all numbers.
static bool make_weights(const sinkproof_making *of, const dense_product *p, double *y) {
    double *w_c = malloc((p->ins + 1) * sizeof *w_c);
    for (size_t r = 0; w_c != NULL && r < p->outs; r++) {
        for (size_t c = 0; c < p->ins; c++)
            w_c[c] = of->numbers[MEMORY] == 0
                         ? p->w_rc[r * p->ins + (size_t)of->table[c]]
                         : p->w_rc[memory_place((memory_order)of->numbers[ORDER],
                                                (size_t)of->numbers[TILE], p->outs, p->ins,
                                                r * p->ins + c)];
        for (size_t i = 0; i < p->n; i++)
            y[i * p->outs + r] = p->b_r[r] + dense_dot(p->x_nc + i * p->ins, w_c, p->ins);
    }
    bool fine = w_c != NULL;
    free(w_c);
    return fine;
}

static bool make_reordered(const sinkproof_making *of, double *y, double *width) {
    dense_product p;
    bool known, fine = dense_product_read(of, &p, &known) && known;
    fine = fine && make_weights(of, &p, y);
    if (fine) dense_widths(of, &p, y, width);
    dense_product_free(&p);
    return fine;
}

// ---- columns

// x_nc: the input that the product has read, by least squares over the rows of the weights.
static bool read_input(const dense_product *p, double *x_nc) {
    size_t cols = p->ins;
    double *square = malloc((cols * cols + 1) * sizeof *square);
    double *factor = malloc((cols * cols + cols + 1) * sizeof *factor);
    bool fine = square != NULL && factor != NULL;
    for (size_t c = 0; fine && c < cols; c++)
        for (size_t e = c; e < cols; e++) {
            double sum = 0;
            for (size_t r = 0; r < p->outs; r++)
                sum += p->w_rc[r * cols + c] * p->w_rc[r * cols + e];
            square[c * cols + e] = sum;
        }
    for (size_t i = 0; fine && i < p->n; i++) {
        double *x_c = x_nc + i * cols;
        memcpy(factor, square, cols * cols * sizeof *square);
        for (size_t c = 0; c < cols; c++) {
            x_c[c] = 0;
            for (size_t r = 0; r < p->outs; r++)
                x_c[c] += p->w_rc[r * cols + c] * (p->v_nr[i * p->outs + r] - p->b_r[r]);
        }
        solve_normal(cols, factor, x_c, NORMAL_DEPENDENT);
    }
    free(square);
    free(factor);
    return fine;
}

static bool search_columns(const operation *o, const dense_product *p) {
    composing *c = o->c;
    size_t cols = p->ins, moved = 0;
    made_kind made = {.make = make_reordered};
    if (p->outs < cols || (double)p->n * (double)cols * (double)cols * (double)cols > 1e9)
        return true;
    double *x_nc = malloc((p->n * cols + cols + 1) * sizeof *x_nc), *from_c = x_nc + p->n * cols;
    bool fine = x_nc != NULL && read_input(p, x_nc), known = true;
    if (!fine) fail_for_memory(c->s);
    for (size_t k = 0; fine && known && k < cols; k++) { // column k met the input `from`
        double least = 0.05;
        size_t from = SIZE_MAX;
        for (size_t e = 0; e < cols; e++) {
            double far = 0, size = 0;
            for (size_t i = 0; i < p->n; i++) {
                double off = x_nc[i * cols + k] - p->x_nc[i * cols + e];
                far += off * off, size += p->x_nc[i * cols + e] * p->x_nc[i * cols + e];
            }
            if (far < least * size) least = far / size, from = e;
        }
        known = from != SIZE_MAX;
        if (known) from_c[from] = (double)k, moved += from != k;
    }
    if (fine && known && moved > 0) {
        made.table = composing_keep_numbers(c, cols, from_c);
        snprintf(made.id, sizeof made.id, "columns-in-another-order");
        snprintf(made.text, sizeof made.text,
                 "is computed with %s whose columns stand in another order (%g, %g, %g, %g, ...): "
                 "a permutation of the input's channels that is not applied, or not undone",
                 composed_slot_words(o->slots[0]), from_c[0], from_c[1], cols > 2 ? from_c[2] : 0,
                 cols > 3 ? from_c[3] : 0);
        fine = made.table != NULL && composing_try_made(o, &made);
    }
    free(x_nc);
    return fine;
}

// ---- memory

// Whether the sample is near when the weights are read in this order.
static bool memory_is_near(const operation *o, const dense_product *p, memory_order order,
                           size_t tile) {
    size_t far = 0;
    for (size_t s = 0; s < o->n && 8 * far <= o->n; s++) {
        size_t i = o->at[s] / p->outs, r = o->at[s] % p->outs;
        double sum = p->b_r[r];
        for (size_t c = 0; c < p->ins; c++)
            sum += p->x_nc[i * p->ins + c] *
                   p->w_rc[memory_place(order, tile, p->outs, p->ins, r * p->ins + c)];
        far += !value_is_near(o->c, o->at[s], sum);
    }
    return 8 * far <= o->n;
}

static bool try_memory(const operation *o, const dense_product *p, memory_order order,
                       size_t tile) {
    static const char *const words[MEMORY_ORDERS] = {
        [TILES_TRANSPOSED] = "each tile of %zu by %zu is transposed",
        [TRANSPOSED] = "the matrix is written by columns and read by rows (transposed)",
        [TILES_IN_ROWS] = "tiles of %zu by %zu, stored one behind another, are read as rows",
        [ROWS_IN_TILES] = "rows are read as tiles of %zu by %zu, one behind another",
        [GRID_TRANSPOSED] = "the grid of tiles of %zu by %zu is transposed"};
    made_kind made = {.make = make_reordered, .numbers = {[MEMORY] = 1}};
    char how[120];
    if (o->c->found != NULL || !memory_is_near(o, p, order, tile)) return true;
    made.numbers[ORDER] = order, made.numbers[TILE] = (double)tile;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(how, sizeof how, words[order], tile, tile);
#pragma GCC diagnostic pop
    snprintf(made.id, sizeof made.id, "memory-%d-tile-%zu", order, tile);
    snprintf(made.text, sizeof made.text, "is computed with %s in another order of memory: %s",
             composed_slot_words(o->slots[0]), how);
    return composing_try_made(o, &made);
}

static bool search_memory(const operation *o, const dense_product *p) {
    bool fine = try_memory(o, p, TRANSPOSED, 1);
    size_t least = p->ins < p->outs ? p->ins : p->outs;
    for (int order = TILES_TRANSPOSED; order < MEMORY_ORDERS && fine; order++)
        for (size_t tile = least; tile >= 2 && fine && order != TRANSPOSED; tile--) {
            bool whole = p->ins % tile == 0 && p->outs % tile == 0;
            bool power = (tile & (tile - 1)) == 0;
            if (whole || (order == TILES_TRANSPOSED && (power || tile == least)))
                fine = try_memory(o, p, (memory_order)order, tile);
        }
    return fine;
}

bool compose_weight_orders(composing *c) {
    dense_search *const searches[] = {search_memory, search_columns};
    return compose_dense(c, 2, searches);
}
