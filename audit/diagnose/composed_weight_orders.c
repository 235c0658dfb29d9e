// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The weights of a product that are read in another order: of their numbers in memory, of tiles, or
// of their columns. The pseudo-inverse of the weights gives the input that the product has read,
// whose columns are compared with those of the trace.
#include "audit/diagnose/composed_product.h"
#include "audit/diagnose/normal_equations.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KIND, ORDER, TILE, A, B, UNIT }; // the numbers
enum { COLUMNS, MEMORY, TILES, BLOCKED_ROWS, BLOCKED_COLUMNS };

// How the numbers of a weight stand in memory.
typedef enum memory_order {
    TILES_TRANSPOSED, // each square tile, in its place
    TRANSPOSED,       // written by columns and read by rows
    TILES_IN_ROWS,    // tiles, one behind another, are read as rows
    ROWS_IN_TILES,    // rows are read as tiles
    GRID_TRANSPOSED,  // the tiles by columns of tiles
    GRID_BY_COLUMNS,  // the inverse
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
    case GRID_BY_COLUMNS: {
        size_t t = c / tile * down + r / tile;
        return (t / across * tile + r % tile) * cols + t % across * tile + c % tile;
    }
    case MEMORY_ORDERS:
        break;
    }
    return at;
}

// ---- what is made

// What stands at i where units of each block, a by b, are written in one order and read in the
// other.
static size_t blocked_place(const double *numbers, size_t i) {
    size_t a = (size_t)numbers[A], b = (size_t)numbers[B], unit = (size_t)numbers[UNIT];
    size_t in = i / unit % (a * b);
    return i - in * unit + (in % a * b + in / a) * unit;
}

// The weight that is read at column c of row r. table: the place of each column, or the number of
// the tile that stands in each, or -1.
static double weight_read(const double *numbers, const double *table, const dense_product *p,
                          const double *w_rc, size_t r, size_t c) {
    size_t tile = (size_t)numbers[TILE], across = p->ins / (tile > 0 ? tile : 1);
    if (numbers[KIND] == COLUMNS) return w_rc[r * p->ins + (size_t)table[c]];
    if (numbers[KIND] == MEMORY)
        return w_rc[memory_place((memory_order)numbers[ORDER], tile, p->outs, p->ins,
                                 r * p->ins + c)];
    if (numbers[KIND] == BLOCKED_ROWS) return w_rc[blocked_place(numbers, r) * p->ins + c];
    if (numbers[KIND] == BLOCKED_COLUMNS) return w_rc[r * p->ins + blocked_place(numbers, c)];
    double from = table[r / tile * across + c / tile];
    if (from < 0) return 0;
    size_t row = (size_t)from / across * tile + r % tile;
    return w_rc[row * p->ins + (size_t)from % across * tile + c % tile];
}

// The product with the weights in another order.
static bool make_weights(const sinkproof_making *of, const dense_product *p, double *y) {
    size_t cols = p->ins, each = p->outs * cols, count = 1;
    for (size_t i = 0; i < p->n && p->expert_n != NULL; i++)
        if ((size_t)p->expert_n[i] >= count) count = (size_t)p->expert_n[i] + 1;
    double *w_c = malloc((cols + 1) * sizeof *w_c);
    for (size_t er = 0; w_c != NULL && er < count * p->outs; er++) {
        size_t e = er / p->outs, r = er % p->outs;
        for (size_t c = 0; c < cols; c++)
            w_c[c] = weight_read(of->numbers, of->table, p, p->w_rc + e * each, r, c);
        for (size_t i = 0; i < p->n; i++)
            if (dense_matrix(p, i) == p->w_rc + e * each)
                y[i * p->outs + r] = p->b_r[r] + dense_dot(p->x_nc + i * cols, w_c, cols);
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
    made_kind made = {.make = make_reordered, .numbers = {[KIND] = COLUMNS}};
    if (p->outs < cols || p->expert_n != NULL ||
        (double)p->n * (double)cols * (double)cols * (double)cols > 1e9)
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

// Whether the sample is near when the weights are read so.
static bool reading_is_near(const operation *o, const dense_product *p, const double *numbers,
                            const double *table) {
    size_t far = 0;
    for (size_t s = 0; s < o->n && 8 * far <= o->n; s++) {
        size_t i = o->at[s] / p->outs, r = o->at[s] % p->outs;
        double sum = p->b_r[r];
        for (size_t c = 0; c < p->ins; c++)
            sum +=
                p->x_nc[i * p->ins + c] * weight_read(numbers, table, p, dense_matrix(p, i), r, c);
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
        [GRID_TRANSPOSED] = "the grid of tiles of %zu by %zu is transposed",
        [GRID_BY_COLUMNS] =
            "tiles of %zu by %zu, stored row by row of tiles, are read column by column"};
    made_kind made = {.make = make_reordered,
                      .numbers = {[KIND] = MEMORY, [ORDER] = order, [TILE] = (double)tile}};
    char how[120];
    if (o->c->found != NULL || !reading_is_near(o, p, made.numbers, NULL)) return true;
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

// ---- rows and columns in blocks

static bool try_blocked(const operation *o, const dense_product *p, int kind, size_t a, size_t b,
                        size_t unit) {
    made_kind made = {
        .make = make_reordered,
        .numbers = {[KIND] = kind, [A] = (double)a, [B] = (double)b, [UNIT] = (double)unit}};
    const char *what = kind == BLOCKED_ROWS ? "row" : "column";
    char units[48];
    if (o->c->found != NULL || !reading_is_near(o, p, made.numbers, NULL)) return true;
    if (unit > 1)
        snprintf(units, sizeof units, "groups of %zu", unit);
    else
        snprintf(units, sizeof units, "%ss", what);
    snprintf(made.id, sizeof made.id, "%ss-%zu-by-%zu-of-%zu", what, a, b, unit);
    snprintf(made.text, sizeof made.text,
             "is computed with %s in another order of %ss: each block of %zu %ss is %zu by %zu %s, "
             "written in one order and read in the other (a layout of tiles)",
             composed_slot_words(o->slots[0]), what, a * b * unit, what, a, b, units);
    return composing_try_made(o, &made);
}

static bool search_blocked(const operation *o, const dense_product *p) {
    bool fine = true;
    for (int kind = BLOCKED_ROWS; kind <= BLOCKED_COLUMNS; kind++) {
        size_t size = kind == BLOCKED_ROWS ? p->outs : p->ins;
        for (size_t unit = 1; unit <= size / 4; unit *= 2)
            for (size_t a = 2; a * unit <= size / 2; a *= 2)
                for (size_t b = 2; a * b * unit <= size && fine; b *= 2)
                    if (size % (a * b * unit) == 0) fine = try_blocked(o, p, kind, a, b, unit);
    }
    return fine;
}

// ---- tiles

enum { MOST_UNKNOWN = 200, TIMES_AS_MANY = 4 }; // of a row of tiles; for each unknown

// What tile `from` gives row r of its own with the input of column of tiles c.
static double tile_part(const dense_product *p, size_t tile, size_t from, size_t i, size_t r,
                        size_t c) {
    size_t across = p->ins / tile;
    const double *x = p->x_nc + i * p->ins + c * tile;
    const double *w =
        dense_matrix(p, i) + (from / across * tile + r) * p->ins + from % across * tile;
    return dense_dot(x, w, tile);
}

// from_c: the tile that is read in each column of row `at` of tiles; -1: none. Least squares over
// what each tile would give in each column must be about 1 for one of them and 0 for the others.
static bool find_tiles(const dense_product *p, size_t tile, size_t at, double *room,
                       double *from_c) {
    size_t across = p->ins / tile, tiles = p->outs / tile * across, unknown = across * tiles;
    double *square = room, *t = square + unknown * unknown, *part = t + unknown;
    size_t equations = TIMES_AS_MANY * unknown, all = p->n * tile;
    memset(room, 0, (unknown * unknown + unknown) * sizeof *room);
    if (all < equations) return false;
    for (size_t k = 0; k < equations; k++) {
        size_t q = k * all / equations, i = q / tile, r = q % tile;
        double v = p->v_nr[i * p->outs + at * tile + r] - p->b_r[at * tile + r];
        for (size_t u = 0; u < unknown; u++)
            part[u] = tile_part(p, tile, u % tiles, i, r, u / tiles);
        for (size_t u = 0; u < unknown; u++) {
            t[u] += part[u] * v;
            for (size_t w = u; w < unknown; w++) square[u * unknown + w] += part[u] * part[w];
        }
    }
    solve_normal(unknown, square, t, NORMAL_DEPENDENT);
    for (size_t c = 0; c < across; c++) {
        from_c[c] = -1;
        for (size_t from = 0; from < tiles; from++) {
            double one = t[c * tiles + from];
            if (fabs(one) > 0.25 && (fabs(one - 1) > 0.25 || from_c[c] >= 0)) return false;
            if (fabs(one) > 0.25) from_c[c] = (double)from;
        }
    }
    return true;
}

static void say_tiles(const double *from_t, size_t tiles, size_t across, size_t tile, char *text,
                      size_t size) {
    size_t moved = 0, first = tiles, second = tiles, used = 0;
    bool pairs = true;
    for (size_t t = 0; t < tiles; t++) {
        if (from_t[t] == (double)t) continue;
        if (moved == 0) first = t;
        if (moved++ == 1) second = t;
    }
    for (size_t t = 0; t < tiles; t++)
        pairs = pairs && from_t[t] == (double)((t ^ 1) < tiles ? t ^ 1 : t);
    if (pairs) {
        snprintf(text, size, "each two neighbouring tiles of %zu by %zu are exchanged", tile, tile);
        return;
    }
    if (moved == 2 && from_t[first] == (double)second && from_t[second] == (double)first) {
        snprintf(text, size,
                 "two tiles of %zu by %zu are exchanged, number %zu in row %zu of tiles and number "
                 "%zu in row %zu",
                 tile, tile, first % across, first / across, second % across, second / across);
        return;
    }
    used = (size_t)snprintf(text, size, "tiles of %zu by %zu stand in other places (%zu of %zu)",
                            tile, tile, moved, tiles);
    for (size_t t = 0, said = 0; t < tiles && said < 4 && used < size; t++) {
        if (from_t[t] == (double)t) continue;
        const char *before = said++ == 0 ? ": " : ", ";
        used +=
            (size_t)(from_t[t] < 0 ? snprintf(text + used, size - used,
                                              "%snone in the place of %zu", before, t)
                                   : snprintf(text + used, size - used, "%s%zu in the place of %zu",
                                              before, (size_t)from_t[t], t));
    }
}

static bool try_tiles(const operation *o, const dense_product *p, size_t tile) {
    size_t across = p->ins / tile, down = p->outs / tile, tiles = across * down;
    size_t unknown = across * tiles, moved = 0;
    made_kind made = {.make = make_reordered, .numbers = {[KIND] = TILES, [TILE] = (double)tile}};
    double *room = malloc((unknown * (unknown + 2) + tiles + 1) * sizeof *room);
    double *from_t = room + unknown * (unknown + 2);
    bool known = room != NULL, fine = known || fail_for_memory(o->c->s);
    for (size_t at = 0; known && at < down; at++)
        known = find_tiles(p, tile, at, room, from_t + at * across);
    for (size_t t = 0; known && t < tiles; t++) moved += from_t[t] != (double)t;
    if (known && moved > 0 && reading_is_near(o, p, made.numbers, from_t)) {
        char how[200];
        say_tiles(from_t, tiles, across, tile, how, sizeof how);
        made.table = composing_keep_numbers(o->c, tiles, from_t);
        snprintf(made.id, sizeof made.id, "tiles-of-%zu", tile);
        snprintf(made.text, sizeof made.text, "is computed with %s in another order of memory: %s",
                 composed_slot_words(o->slots[0]), how);
        fine = made.table != NULL && composing_try_made(o, &made);
    }
    free(room);
    return fine;
}

static bool search_tiles(const operation *o, const dense_product *p) {
    bool fine = true;
    for (size_t tile = 128; tile >= 8 && fine && o->c->found == NULL; tile /= 2) {
        if (p->ins % tile != 0 || p->outs % tile != 0) continue;
        size_t across = p->ins / tile, tiles = p->outs / tile * across;
        if (tiles > 1 && across * tiles <= MOST_UNKNOWN) fine = try_tiles(o, p, tile);
    }
    return fine;
}

bool compose_weight_orders(composing *c) {
    dense_search *const searches[] = {search_memory, search_columns, search_blocked, search_tiles};
    return compose_products(c, 4, searches);
}
