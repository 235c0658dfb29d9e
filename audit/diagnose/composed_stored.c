// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Keys and values that a cache keeps in codes of few bits, with a scale, or a scale and a smallest
// number, for each page of tokens, each channel or each group of channels. At A6 and A11.
#include "audit/diagnose/composed_kernel.h"
#include "base/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum code {
    CODE_INT8, // from -127 to 127, the largest of a group at 127
    CODE_INT4,
    CODE_FROM_8, // whole numbers from 0 to 2^bits - 1, from the smallest of a group to the largest
    CODE_FROM_4,
    CODE_FROM_3,
    CODE_FROM_2,
    CODE_ZERO_8, // the same, and the smallest is itself a whole number of steps
    CODE_ZERO_4,
    CODE_Q8, // as CODE_INT8, the scale in binary16
    CODE_Q4, // -8 to 7: the number of the largest size at -8, the scale in binary16
    CODE_E4M3,
    CODE_E5M2,
    CODES
} code;
static const char *const code_words[CODES] = {
    [CODE_INT8] = "int8",
    [CODE_INT4] = "int4",
    [CODE_FROM_8] = "8 bits from their smallest to their largest",
    [CODE_FROM_4] = "4 bits from their smallest to their largest",
    [CODE_FROM_3] = "3 bits from their smallest to their largest",
    [CODE_FROM_2] = "2 bits from their smallest to their largest",
    [CODE_ZERO_8] = "8 bits with a zero point",
    [CODE_ZERO_4] = "4 bits with a zero point",
    [CODE_Q8] = "int8 with scales in binary16",
    [CODE_Q4] = "4 bits from -8 to 7 with scales in binary16",
    [CODE_E4M3] = "e4m3",
    [CODE_E5M2] = "e5m2"};

enum { OF, CODE, PAGE, CHANNELS, HOW, STEP }; // the numbers
enum { OF_KEYS = 1, OF_VALUES = 2 };
enum { ALL_HEADS = -1, WHOLE_HEAD = 0 }; // of CHANNELS: else the channels of a group
enum {
    OPEN_KEPT = 1,    // the last page of all is kept as it is where it is not full
    OPEN_BY_ROW = 2,  // that of the query's position
    OWN_KEPT = 4,     // the query's own key and value are kept
    FIRST_SCALES = 8, // all pages have the scales of the first
    HOWS = 16
};

typedef struct storage {
    code code;
    size_t page; // tokens
    int channels, how;
} storage;

// ---- codes

typedef struct spread {
    double low, high, size; // size: the number of the largest size, with its sign
} spread;

static double from_steps(double x, double low, double high, double levels, bool whole) {
    double step = (high - low) / levels;
    if (!(step > 0)) return x;
    double zero = whole ? nearbyint(-low / step) : -low / step;
    double at = whole ? nearbyint(x / step) + zero : nearbyint((x - low) / step);
    return (fmax(0, fmin(levels, at)) - zero) * step;
}

static double in_scale(double x, double scale, double low, double high) {
    return scale != 0 ? fmax(low, fmin(high, nearbyint(x / scale))) * scale : 0;
}

static double in_format(double x, double scale, sinkproof_format format, double most) {
    return scale > 0 ? sinkproof_round(format, fmax(-most, fmin(most, x / scale))) * scale : 0;
}

static double coded(code how, const spread *of, double x) {
    double size = fabs(of->size);
    switch (how) {
    case CODE_INT8:
        return in_scale(x, size / 127, -127, 127);
    case CODE_INT4:
        return in_scale(x, size / 7, -7, 7);
    case CODE_FROM_8:
        return from_steps(x, of->low, of->high, 255, false);
    case CODE_FROM_4:
        return from_steps(x, of->low, of->high, 15, false);
    case CODE_FROM_3:
        return from_steps(x, of->low, of->high, 7, false);
    case CODE_FROM_2:
        return from_steps(x, of->low, of->high, 3, false);
    case CODE_ZERO_8:
        return from_steps(x, of->low, of->high, 255, true);
    case CODE_ZERO_4:
        return from_steps(x, of->low, of->high, 15, true);
    case CODE_Q8:
        return in_scale(x, sinkproof_round(SINKPROOF_F16, size / 127), -127, 127);
    case CODE_Q4:
        return in_scale(x, sinkproof_round(SINKPROOF_F16, of->size / -8), -8, 7);
    case CODE_E4M3:
        return in_format(x, size / 448, SINKPROOF_E4M3, 448);
    case CODE_E5M2:
        return in_format(x, size / 57344, SINKPROOF_E5M2, 57344);
    case CODES:
        break;
    }
    return x;
}

static void widen(spread *s, double x) {
    s->low = fmin(s->low, x), s->high = fmax(s->high, x);
    if (fabs(x) > fabs(s->size)) s->size = x;
}

// A group: of the tokens [from, end) the channels [first, last) of all heads together.
static spread spread_of(const kernel *x, const double *from_x, size_t from, size_t end,
                        size_t first, size_t last) {
    size_t width = x->groups * x->d;
    spread s = {INFINITY, -INFINITY, 0};
    for (size_t j = from; j < end; j++)
        for (size_t c = first; c < last; c++) widen(&s, from_x[j * width + c]);
    return s;
}

// y: keys or values as they are read from this storage.
static void store(const kernel *x, const storage *s, const double *from_x, double *y) {
    size_t width = x->groups * x->d, page = s->page > 0 ? s->page : x->n;
    size_t each = s->channels == ALL_HEADS    ? width
                  : s->channels == WHOLE_HEAD ? x->d
                                              : (size_t)s->channels;
    for (size_t from = 0; from < x->n; from += page) {
        size_t end = from + page < x->n ? from + page : x->n;
        bool kept = (s->how & OPEN_KEPT) != 0 && from + page > x->n;
        for (size_t first = 0; first < width; first += each) {
            bool begins = (s->how & FIRST_SCALES) != 0;
            spread of = begins ? spread_of(x, from_x, 0, page, first, first + each)
                               : spread_of(x, from_x, from, end, first, first + each);
            for (size_t j = from; j < end; j++)
                for (size_t c = first; c < first + each; c++)
                    y[j * width + c] =
                        kept ? from_x[j * width + c] : coded(s->code, &of, from_x[j * width + c]);
        }
    }
}

// ---- what is computed from them

// Whether row i reads key j as it was before it was stored.
static bool is_kept(const storage *s, size_t i, size_t j) {
    if ((s->how & OWN_KEPT) != 0 && j == i) return true;
    return (s->how & OPEN_BY_ROW) != 0 && s->page > 0 && j >= (i + 1) / s->page * s->page;
}

typedef struct stored {
    kernel *x;
    const storage *s;
    unsigned of;
    const double *k, *v; // as they are read from the storage
} stored;

static double score_of(const stored *t, size_t h, size_t i, size_t j) {
    bool kept = is_kept(t->s, i, j);
    kernel_read(t->x, (t->of & OF_KEYS) != 0 && !kept ? t->k : t->x->k,
                (t->of & OF_VALUES) != 0 && !kept ? t->v : t->x->v, h, i, j);
    return t->x->z[j];
}

static size_t output_of(const stored *t, size_t h, size_t i, double *y_c) {
    size_t first = kernel_first(t->x, i);
    for (size_t j = first; j <= i; j++) score_of(t, h, i, j);
    kernel_weigh(t->x, h, i, first);
    kernel_sum(t->x, i, first, y_c);
    return first;
}

static bool make_scores(const sinkproof_making *of, stored *t, double *y, double *width) {
    const sinkproof_tensor *v = sinkproof_trace_find(of->trace, of->point, of->layer);
    size_t n = of->n;
    if (v == NULL || of->all != t->x->heads * n * n) return false;
    for (size_t at = 0; at < of->all; at++) {
        size_t i = at / n % n, j = at % n;
        // scores that are masked have no sets, and are not looked at
        bool masked = of->radius != NULL && of->x[at] == 0 && of->radius[at] == 0;
        y[at] = sinkproof_tensor_value(v, at);
        if (masked || j > i) continue;
        y[at] = of->x[at] + score_of(t, at / n / n, i, j);
        width[at] = (of->radius != NULL ? 2 * of->radius[at] : 0) +
                    of->numbers[STEP] * fabs(y[at]) + of->table[KERNEL_TERMS] * t->x->terms[j];
        kernel_read(t->x, t->x->k, t->x->v, at / n / n, i, j);
        y[at] -= t->x->z[j];
    }
    return true;
}

static bool make_stored(const sinkproof_making *of, double *y, double *width) {
    const storage s = {(code)of->numbers[CODE], (size_t)of->numbers[PAGE],
                       (int)of->numbers[CHANNELS], (int)of->numbers[HOW]};
    kernel x;
    if (!kernel_open(of, &x)) return false;
    size_t all = x.n * x.groups * x.d;
    double *k = malloc((2 * all + 1) * sizeof *k), *v = k + all;
    bool fine = k != NULL;
    if (fine) {
        stored t = {&x, &s, (unsigned)of->numbers[OF], k, v};
        store(&x, &s, x.k, k), store(&x, &s, x.v, v);
        if (of->point == TRACE_A6) {
            fine = make_scores(of, &t, y, width);
        } else {
            for (size_t at = 0; at < x.n * x.heads; at++) {
                size_t h = at % x.heads, i = at / x.heads, c = at * x.d;
                size_t first = output_of(&t, h, i, y + c);
                kernel_widths(&x, of->numbers[STEP], h, i, first, y + c, width + c);
                kernel_onto(&x, h, i, y + c);
            }
        }
    }
    free(k);
    kernel_close(&x);
    return fine;
}

// ---- the search

// Whether the sample is near.
static bool sample_is_near(const operation *o, const stored *t, double *y_c) {
    size_t far = 0, row = SIZE_MAX, d = t->x->d, n = t->x->n;
    for (size_t s = 0; s < o->n && 8 * far <= o->n; s++) {
        size_t at = o->at[s];
        double y;
        if (o->c->point == TRACE_A6) {
            y = score_of(t, at / n / n, at / n % n, at % n);
        } else {
            if (at / d != row) output_of(t, at / d % t->x->heads, at / d / t->x->heads, y_c);
            row = at / d, y = y_c[at % d];
        }
        far += !value_is_near(o->c, at, y);
    }
    return o->n > 0 && 8 * far <= o->n;
}

// Up to which number of first tokens the scales are the same.
static size_t end_of_first(const kernel *x, const storage *s, unsigned of) {
    size_t end = s->page, width = x->groups * x->d, each = s->channels == ALL_HEADS ? width : x->d;
    for (bool same = true; same && end < x->n; end += same)
        for (size_t first = 0; first < width; first += each)
            for (unsigned which = OF_KEYS; which <= OF_VALUES; which++) {
                const double *from = which == OF_KEYS ? x->k : x->v;
                if ((of & which) == 0) continue;
                const spread a = spread_of(x, from, 0, s->page, first, first + each),
                             b = spread_of(x, from, end, end + 1, first, first + each);
                same = same && fabs(b.size) <= fabs(a.size);
            }
    return end;
}

static void say_group(const kernel *x, const storage *s, unsigned of, char *text, size_t size) {
    char page[120] = "all tokens", channels[64];
    if (s->page == 1)
        snprintf(page, sizeof page, "each token");
    else if (s->page > 0)
        snprintf(page, sizeof page, "each page of %.40s", sinkproof_counted(s->page, "token").text);
    if (s->channels == ALL_HEADS)
        snprintf(channels, sizeof channels, "all heads together");
    else if (s->channels == WHOLE_HEAD)
        snprintf(channels, sizeof channels, "each head");
    else if (s->channels == 1)
        snprintf(channels, sizeof channels, "each channel");
    else
        snprintf(channels, sizeof channels, "each group of %d channels", s->channels);
    size_t end = (s->how & FIRST_SCALES) != 0 ? end_of_first(x, s, of) : 0;
    if (end > s->page)
        snprintf(page, sizeof page, "the first %.40s (or up to %zu), for all later ones too,",
                 sinkproof_counted(s->page, "token").text, end);
    else if (end > 0)
        snprintf(page, sizeof page, "the first %.40s, for all later ones too,",
                 sinkproof_counted(s->page, "token").text);
    snprintf(text, size, "with a scale for %s and %s%s%s%s", page, channels,
             s->how & OPEN_KEPT ? "; the last page, which is not full, is kept as it is" : "",
             s->how & OPEN_BY_ROW ? "; a page that is not full is kept as it is" : "",
             s->how & OWN_KEPT ? "; the query's own is kept as it is" : "");
}

static bool try_of(const operation *o, const stored *t) {
    static const char *const words[] = {"", "keys", "values", "keys and values"};
    const storage *s = t->s;
    char group[280];
    made_kind made = {.make = make_stored, .measured = true};
    made.numbers[OF] = t->of, made.numbers[CODE] = s->code, made.numbers[PAGE] = (double)s->page;
    made.numbers[CHANNELS] = s->channels, made.numbers[HOW] = s->how;
    made.numbers[STEP] = 2 * o->c->step;
    say_group(t->x, s, t->of, group, sizeof group);
    snprintf(made.id, sizeof made.id, "stored-%u-%d-page-%zu-channels-%d-%d", t->of, s->code,
             s->page, s->channels, s->how);
    snprintf(made.text, sizeof made.text, "is computed from %s that are kept in %s, %s",
             words[t->of], code_words[s->code], group);
    made.table = kernel_table(o->c, 0, NULL);
    return made.table != NULL && composing_try_made(o, &made);
}

// The keys, the values or both that this storage keeps; room: of both, and of a row of a head.
static bool try_storage(const operation *o, kernel *x, const storage *s, double *room) {
    size_t all = x->n * x->groups * x->d;
    bool fine = true;
    stored t = {x, s, 0, room, room + all};
    if (o->c->found != NULL) return true;
    bool keys = o->c->point == TRACE_A6 || x->weights == NULL, values = o->c->point == TRACE_A11;
    if (keys) store(x, s, x->k, room);
    if (values) store(x, s, x->v, room + all);
    for (t.of = OF_KEYS; t.of <= (OF_KEYS | OF_VALUES) && fine && o->c->found == NULL; t.of++) {
        if ((!keys && t.of != OF_VALUES) || (!values && t.of != OF_KEYS)) continue;
        if (sample_is_near(o, &t, room + 2 * all)) fine = try_of(o, &t);
    }
    return fine;
}

// The ways in which pages are open, of a page of that size.
static bool try_pages(const operation *o, kernel *x, storage s, double *room) {
    static const int hows[] = {0, OPEN_KEPT, OPEN_BY_ROW, OWN_KEPT};
    bool fine = true;
    for (size_t i = 0; i < sizeof hows / sizeof hows[0] && fine; i++) {
        bool open = (hows[i] & (OPEN_KEPT | OPEN_BY_ROW)) != 0;
        if (open && (s.page < 2 || (hows[i] == OPEN_KEPT && x->n % s.page == 0))) continue;
        s.how = hows[i];
        fine = try_storage(o, x, &s, room);
    }
    return fine;
}

// Scales of tokens and of heads without a smallest number are told by the judge's own formats.
// Codes of 8 bits are as fine as the roundings of a trace in 16 bits, which would tell none of them
// apart.
static bool is_left_out(const composing *c, const storage *s) {
    bool format = s->code == CODE_INT8 || s->code == CODE_E4M3 || s->code == CODE_E5M2;
    bool fine = s->code == CODE_INT8 || s->code == CODE_FROM_8 || s->code == CODE_ZERO_8 ||
                s->code == CODE_Q8;
    return (format && s->page <= 1 && s->channels <= 0) || (fine && c->step > 0x1p-12);
}

static bool try_codes(const operation *o, kernel *x, double *room) {
    size_t width = x->groups * x->d;
    bool fine = true;
    for (int c = 0; c < CODES && fine; c++)
        for (size_t page = 0; page < x->n && fine && o->c->found == NULL;
             page = page == 0 ? 1 : 2 * page)
            for (int channels = ALL_HEADS; channels < (int)x->d && fine;
                 channels = channels < 1 ? channels + 1 : 2 * channels) {
                const storage s = {(code)c, page, channels, 0};
                // a scale for one number alone changes none
                if (is_left_out(o->c, &s) || (page == 1 && channels == 1)) continue;
                if (channels > 0 && (x->d % (size_t)channels != 0 || page > 1) && channels != 1)
                    continue;
                fine = width > 0 && try_pages(o, x, s, room);
            }
    return fine;
}

// Scales of the first tokens, that are never made anew.
static bool try_first_scales(const operation *o, kernel *x, double *room) {
    static const code codes[] = {CODE_E4M3, CODE_INT8};
    bool fine = true;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0] && fine; i++)
        for (size_t page = 2; page < x->n && fine; page += page < 64 ? 1 : 16)
            for (int channels = ALL_HEADS; channels <= WHOLE_HEAD && fine; channels++) {
                const storage s = {codes[i], page, channels, FIRST_SCALES};
                if (codes[i] == CODE_INT8 && o->c->step > 0x1p-12) continue;
                fine = try_storage(o, x, &s, room);
            }
    return fine;
}

bool compose_stored(composing *c) {
    enum { MOST_NUMBERS = 1 << 14 }; // of keys: each storage makes them anew
    const sinkproof_config *config = c->s->trials.config;
    operation o;
    kernel x;
    bool scores = kernel_scores_are_asked(c);
    bool few = c->n * config->n_kv_heads * config->head_dim <= MOST_NUMBERS;
    if ((!scores && !kernel_is_asked(c)) || !few) return true;
    const sinkproof_making of = composing_making(c);
    bool fine = operation_read(c, &o);
    if (fine && o.n > 0 && kernel_open(&of, &x)) {
        double *room = malloc((2 * x.n * x.groups * x.d + x.d + 1) * sizeof *room);
        fine = room != NULL || fail_for_memory(c->s);
        fine = fine && try_codes(&o, &x, room) && try_first_scales(&o, &x, room);
        free(room);
        kernel_close(&x);
    }
    operation_free(&o);
    return fine;
}
