// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What an operation reads in the place of a state of the residual stream: the sum of some other
// states, as it is, or normalised, with the scales of one of the norms or with none.
#include "audit/diagnose/composed_made.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum stream_state {
    LAYER_INPUT = 1,
    ATTENDED,     // A12
    AFTER_VALUES, // A13
    MIXED,        // M11
    FIRST_NORM,   // A1
    SECOND_NORM,  // M1
    EMBEDDED,     // T0
    ATTENDED_BEFORE,
    MIXED_BEFORE,
    INPUT_BEFORE,
    LAYER_OUTPUT, // M12
    STATES_END
} stream_state;

typedef enum scales_of { NO_NORM, WITHOUT_SCALES, OF_A1, OF_M1, OF_F1, SCALES_END } scales_of;

// How a number is rounded on the way to its operation: not at all, as it is read, or also after
// each sum and before the scales, or the factor of each row too.
typedef enum rounding_mode {
    NOT_ROUNDED,
    ROUNDED_AS_READ,
    ROUNDED_EACH,
    ROUNDED_FACTOR
} rounding_mode;

// The numbers; PLACE: the layers from that of the input to that of the operation, or the number of
// the input; HOW: the scales and, times SCALES_END, the mode.
enum { PLACE, FIRST, SECOND, THIRD, HOW, FORMAT };

static const sinkproof_tensor *layer_input(const sinkproof_making *of, size_t layer) {
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    sinkproof_trace_inputs(of->config, TRACE_A1, layer, inputs);
    return sinkproof_trace_find(of->trace, inputs[0].point, inputs[0].layer);
}

// The tensor of a state; NULL: the trace lacks it.
static const sinkproof_tensor *tensor_of(const sinkproof_making *of, size_t by,
                                         stream_state state) {
    size_t last = of->config->n_layers - 1, layer = of->layer > last ? last : of->layer;
    static const sinkproof_trace_point points[STATES_END] = {
        [ATTENDED] = TRACE_A12,        [AFTER_VALUES] = TRACE_A13, [MIXED] = TRACE_M11,
        [FIRST_NORM] = TRACE_A1,       [SECOND_NORM] = TRACE_M1,   [EMBEDDED] = TRACE_T0,
        [ATTENDED_BEFORE] = TRACE_A12, [MIXED_BEFORE] = TRACE_M11, [LAYER_OUTPUT] = TRACE_M12};
    layer += by;
    if (layer > last) return NULL;
    bool before = state == ATTENDED_BEFORE || state == MIXED_BEFORE || state == INPUT_BEFORE;
    if (before && layer == 0) return NULL;
    const sinkproof_tensor *t = state == LAYER_INPUT ? layer_input(of, layer)
                                : state == INPUT_BEFORE
                                    ? layer_input(of, layer - 1)
                                    : sinkproof_trace_find(of->trace, points[state],
                                                           state == EMBEDDED ? 0 : layer - before);
    return t != NULL && sinkproof_tensor_elements(t) == of->n * of->config->hidden ? t : NULL;
}

// What a row is made from.
typedef struct stream_sum {
    const sinkproof_tensor *terms[3];
    size_t n_terms, d;
    scales_of scales;
    rounding_mode mode;
    double *scale_d; // NULL: ones
    double eps;
    sinkproof_format format;
} stream_sum;

static bool read_scales(const sinkproof_making *of, size_t by, stream_sum *s) {
    sinkproof_slot slots[SINKPROOF_MAX_WEIGHTS];
    size_t last = of->config->n_layers - 1, layer = of->layer > last ? last : of->layer;
    layer += by;
    if (s->scales < OF_A1) return true;
    sinkproof_trace_weights(of->config,
                            s->scales == OF_A1   ? TRACE_A1
                            : s->scales == OF_M1 ? TRACE_M1
                                                 : TRACE_F1,
                            slots);
    sinkproof_matrix w =
        sinkproof_model_slot(of->model, s->scales == OF_F1 || layer > last ? 0 : layer, slots[0]);
    if (w.count == 0 || w.cols != s->d) return false;
    s->scale_d = malloc(s->d * sizeof *s->scale_d);
    if (s->scale_d != NULL) sinkproof_matrix_row(&w, 0, s->scale_d);
    return s->scale_d != NULL;
}

// `by`: the layers from of->layer to that of the operation. Free s->scale_d whatever it returns.
static bool stream_begin(const sinkproof_making *of, size_t by, stream_sum *s) {
    int how = (int)of->numbers[HOW];
    *s = (stream_sum){.d = of->config->hidden,
                      .scales = (scales_of)(how % SCALES_END),
                      .mode = (rounding_mode)(how / SCALES_END),
                      .eps = of->config->rms_eps,
                      .format = (sinkproof_format)of->numbers[FORMAT]};
    for (size_t k = FIRST; k <= THIRD && of->numbers[k] != 0; k++) {
        s->terms[s->n_terms] = tensor_of(of, by, (stream_state)of->numbers[k]);
        if (s->terms[s->n_terms++] == NULL) return false;
    }
    return s->n_terms > 0 && read_scales(of, by, s);
}

// x, which is known to a relative error, as it is rounded; *width: how far the engine's may be.
static double round_in_doubt(sinkproof_format format, double x, double error, double *width) {
    double y = sinkproof_round(format, x);
    double low = sinkproof_round(format, x * (1 - error)),
           high = sinkproof_round(format, x * (1 + error));
    *width += fmax(fabs(low - y), fabs(high - y));
    return y;
}

// width_d NULL: not asked.
static void stream_row(const stream_sum *s, size_t i, double *y_d, double *width_d) {
    const double error = (double)(s->d + 8) * 0x1p-24;
    sinkproof_format each = s->mode >= ROUNDED_EACH ? s->format : SINKPROOF_REAL;
    sinkproof_format last = s->mode != NOT_ROUNDED ? s->format : SINKPROOF_REAL;
    double squares = 0, width;
    for (size_t k = 0; k < s->d; k++) {
        y_d[k] = 0;
        for (size_t t = 0; t < s->n_terms; t++)
            y_d[k] =
                sinkproof_round(each, y_d[k] + sinkproof_tensor_value(s->terms[t], i * s->d + k));
        squares += y_d[k] * y_d[k];
    }
    double by = 1 / sqrt(squares / (double)s->d + s->eps);
    if (s->mode == ROUNDED_FACTOR) by = sinkproof_round(s->format, by);
    for (size_t k = 0; k < s->d; k++) {
        width = 0;
        if (s->scales != NO_NORM) {
            double scale = s->scale_d != NULL ? s->scale_d[k] : 1;
            y_d[k] = scale * round_in_doubt(each, y_d[k] * by, error, &width);
            width *= fabs(scale);
        }
        y_d[k] = round_in_doubt(last, y_d[k], s->scales != NO_NORM ? error : 0x1p-23, &width);
        if (width_d != NULL) width_d[k] = width + 0x1p-23 * fabs(y_d[k]);
    }
}

// The input, as it is made.
static bool make_stream(const sinkproof_making *of, double *y, double *width) {
    stream_sum s = {.scale_d = NULL};
    bool fine =
        of->all == of->n * of->config->hidden && stream_begin(of, (size_t)of->numbers[PLACE], &s);
    (void)width;
    for (size_t i = 0; fine && i < of->n; i++) stream_row(&s, i, &y[i * s.d], NULL);
    free(s.scale_d);
    return fine;
}

// The sum of a residual with one term as it is made; `other` is the other term.
static bool add_stream(const sinkproof_making *of, const stream_sum *s,
                       const sinkproof_tensor *other, double *y, double *width) {
    if (other == NULL || sinkproof_tensor_elements(other) != of->all || of->all != of->n * s->d)
        return false;
    for (size_t i = 0; i < of->n; i++) stream_row(s, i, &y[i * s->d], &width[i * s->d]);
    for (size_t at = 0; at < of->all; at++) y[at] += sinkproof_tensor_value(other, at);
    return true;
}

// W of what is made, with a bias if there is one.
static bool project_stream(const sinkproof_making *of, const stream_sum *s, double *y,
                           double *width) {
    sinkproof_slot slots[SINKPROOF_MAX_WEIGHTS];
    size_t weights = sinkproof_trace_weights(of->config, of->point, slots);
    size_t rows = of->all / of->n, d = s->d;
    sinkproof_matrix w = sinkproof_model_slot(of->model, of->layer, slots[0]), b = {0};
    if (weights > 1) b = sinkproof_model_slot(of->model, of->layer, slots[1]);
    if (w.cols != d || w.rows != rows || (b.count > 0 && b.cols != rows)) return false;
    double *x = calloc(2 * of->n * d + d + rows + 1, sizeof *x), *x_width = x + of->n * d;
    double *row = x_width + of->n * d, *bias = row + d;
    for (size_t i = 0; x != NULL && i < of->n; i++) stream_row(s, i, &x[i * d], &x_width[i * d]);
    if (x != NULL && b.count > 0) sinkproof_matrix_row(&b, 0, bias);
    for (size_t r = 0; x != NULL && r < rows; r++) {
        sinkproof_matrix_row(&w, r, row);
        for (size_t i = 0; i < of->n; i++) {
            double sum = bias[r], sizes = fabs(bias[r]), apart = 0;
            for (size_t k = 0; k < d; k++) {
                sum += row[k] * x[i * d + k];
                sizes += fabs(row[k] * x[i * d + k]), apart += fabs(row[k]) * x_width[i * d + k];
            }
            y[i * rows + r] = sum;
            width[i * rows + r] = apart + (double)(d + 2) * 0x1p-24 * sizes;
        }
    }
    free(x);
    return x != NULL;
}

// The point, of an input that is made.
static bool make_point(const sinkproof_making *of, double *y, double *width) {
    stream_sum s = {.scale_d = NULL};
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    size_t input = (size_t)of->numbers[PLACE];
    size_t n = sinkproof_trace_inputs(of->config, of->point, of->layer, inputs);
    bool fine = input < n && stream_begin(of, 0, &s);
    if (fine && sinkproof_trace_operation(of->config, of->point) == SINKPROOF_ADD) {
        const sinkproof_input *other = &inputs[1 - input];
        fine = add_stream(of, &s, sinkproof_trace_find(of->trace, other->point, other->layer), y,
                          width);
    } else if (fine)
        fine = project_stream(of, &s, y, width);
    free(s.scale_d);
    return fine;
}

// ---- trials

static const char *state_words(stream_state state) {
    switch (state) {
    case LAYER_INPUT:
        return "the layer's input, the residual before attention";
    case ATTENDED:
        return "the output of attention (A12)";
    case AFTER_VALUES:
        return "the residual after attention (A13)";
    case MIXED:
        return "the sum over the experts (M11)";
    case FIRST_NORM:
        return "the norm before attention (A1)";
    case SECOND_NORM:
        return "the norm before the experts (M1)";
    case EMBEDDED:
        return "the embedding (T0)";
    case ATTENDED_BEFORE:
        return "the output of attention (A12) of the layer before";
    case MIXED_BEFORE:
        return "the sum over the experts (M11) of the layer before";
    case INPUT_BEFORE:
        return "the input of the layer before";
    default:
        return "the residual after the experts (M12)";
    }
}

// `reads`: what the text begins with.
static void say_stream(const char *reads, made_kind *kind) {
    const double *numbers = kind->numbers;
    int scales = (int)numbers[HOW] % SCALES_END;
    static const char *const norms[SCALES_END] = {
        [NO_NORM] = "",
        [WITHOUT_SCALES] = "the norm, without scales, of ",
        [OF_A1] = "the norm, with the scales of the norm before attention, of ",
        [OF_M1] = "the norm, with the scales of the norm before the experts, of ",
        [OF_F1] = "the norm, with the scales of the last norm, of "};
    char words[3][64] = {"", "", ""};
    size_t n = 0;
    for (size_t k = FIRST; k <= THIRD && numbers[k] != 0; k++)
        snprintf(words[n++], sizeof words[0], "%s", state_words((stream_state)numbers[k]));
    snprintf(kind->id, sizeof kind->id, "stream-%d-%d-%d-%d", (int)numbers[FIRST],
             (int)numbers[SECOND], (int)numbers[THIRD], scales);
    snprintf(kind->text, sizeof kind->text, "%s%s%s%s%s%s%s%s", reads, norms[scales],
             n > 1 ? "the sum of " : "", words[0],
             n > 2   ? ", "
             : n > 1 ? " and "
                     : "",
             words[1], n > 2 ? " and " : "", words[2]);
}

typedef struct streams {
    const operation *o;
    size_t input;
    size_t layer_by;
    bool whole;      // the point is made, not the input
    double *y;       // the input as it is made, in the rows of the sample
    unsigned states; // bits: the trace has them
} streams;

// Whether the sample is near with this sum.
static bool stream_is_near(const streams *s, const double *numbers) {
    const operation *o = s->o;
    const composing *c = o->c;
    sinkproof_making of = composing_making(c);
    stream_sum sum;
    of.layer = o->inputs[s->input].layer, of.numbers = numbers;
    bool fine = stream_begin(&of, s->layer_by, &sum);
    for (size_t k = 0, last = SIZE_MAX; fine && k < o->n; k++) {
        size_t i = o->at[k] / (c->elements / c->n);
        if (i != last) stream_row(&sum, i, &s->y[i * sum.d], NULL);
        last = i;
    }
    free(sum.scale_d);
    const operation_change change = {.input = s->input, .x = s->y};
    return fine && operation_is_near(o, &change);
}

// The point as it is made of the input.
static bool try_point(const streams *s, made_kind *kind) {
    static const rounding_mode modes[] = {ROUNDED_EACH, ROUNDED_AS_READ, NOT_ROUNDED,
                                          ROUNDED_FACTOR};
    const composing *c = s->o->c;
    bool fine = true, own = c->point == TRACE_A13 && s->input == 1;
    sinkproof_trace_point point = s->o->inputs[s->input].point;
    char reads[96], id[80];
    sinkproof_point at;
    snprintf(reads, sizeof reads, "reads, in the place of %s%s%s%s, ",
             own ? "the layer's input" : composed_input_words(point), own ? "" : " (",
             own ? "" : sinkproof_trace_point_name(point), own ? "" : ")");
    say_stream(reads, kind);
    snprintf(id, sizeof id, "reads-%zu-%.60s", s->input, kind->id);
    memcpy(kind->id, id, sizeof kind->id);
    sinkproof_trace_rounding(TRACE_A13, &at);
    kind->make = make_point, kind->numbers[PLACE] = (double)s->input;
    kind->numbers[FORMAT] = c->s->trials.suspect.policy->at[at].format;
    for (int k = 0; k < 4 && fine && c->found == NULL; k++) {
        if (c->step < 0x1p-12 && modes[k] != NOT_ROUNDED) continue;
        made_kind with = *kind;
        with.numbers[HOW] += SCALES_END * modes[k];
        fine = composing_try_made(s->o, &with);
    }
    return fine;
}

static bool try_stream(const streams *s, const stream_state states[3], scales_of scales) {
    const operation *o = s->o;
    sinkproof_point at;
    made_kind kind = {.make = make_stream,
                      .numbers = {[PLACE] = (double)s->layer_by,
                                  [FIRST] = states[0],
                                  [SECOND] = states[1],
                                  [THIRD] = states[2],
                                  [HOW] = scales}};
    if (o->c->found != NULL || !stream_is_near(s, kind.numbers)) return true;
    if (s->whole) return try_point(s, &kind);
    say_stream("as ", &kind);
    bool fine = composing_try_made_input(o, s->input, &kind);
    if (!fine || o->c->found != NULL || !sinkproof_trace_rounding(TRACE_A13, &at)) return fine;
    kind.numbers[FORMAT] = o->c->s->trials.suspect.policy->at[at].format;
    kind.numbers[HOW] += SCALES_END * ROUNDED_EACH;
    return composing_try_made_input(o, s->input, &kind);
}

// The states that the trace has and that differ: a norm's row is one of its own.
static void find_states(streams *s) {
    sinkproof_making of = composing_making(s->o->c);
    of.layer = s->o->inputs[s->input].layer;
    bool ends = !sinkproof_trace_point_is_layered(s->o->c->point);
    for (int state = LAYER_INPUT; state < STATES_END; state++) {
        bool later =
            !ends && (state == LAYER_OUTPUT || (state == MIXED && s->o->c->point != TRACE_M12));
        bool same = state == EMBEDDED && of.layer + s->layer_by == 0;
        if (!later && !same && tensor_of(&of, s->layer_by, (stream_state)state) != NULL)
            s->states |= 1u << state;
    }
}

static bool holds(const streams *s, int state) {
    return state == 0 || (s->states >> state & 1) != 0;
}

static bool try_streams(const streams *s) {
    bool fine = true;
    for (int third = 0; third < STATES_END; third++)
        for (int second = 0; second < STATES_END; second++)
            for (int first = LAYER_INPUT; fine && first < STATES_END; first++) {
                bool falls = first >= second && second >= third; // each set once
                if (!falls || !holds(s, first) || !holds(s, second) || !holds(s, third)) continue;
                const stream_state states[3] = {(stream_state)first, (stream_state)second,
                                                (stream_state)third};
                for (int scales = NO_NORM; fine && scales < SCALES_END; scales++)
                    fine = try_stream(s, states, (scales_of)scales);
            }
    return fine;
}

// Whether an input is a state of the stream.
static bool is_state(sinkproof_trace_point point) {
    return point == TRACE_T0 || point == TRACE_A1 || point == TRACE_A12 || point == TRACE_A13 ||
           point == TRACE_M1 || point == TRACE_M11 || point == TRACE_M12 || point == TRACE_F1;
}

bool compose_streams(composing *c) {
    enum { MOST_TERMS = 1 << 28 };
    operation o;
    const sinkproof_config *config = c->s->trials.config;
    if (config->norm == SINKPROOF_LAYERNORM || sinkproof_trace_point_is_by_head(c->point))
        return true;
    bool fine = operation_read(c, &o);
    for (size_t i = 0; fine && o.whole && i < o.n_inputs && c->found == NULL; i++) {
        size_t layer = c->place < config->n_layers ? c->place : config->n_layers - 1;
        streams s = {.o = &o, .input = i};
        if (!is_state(o.inputs[i].point) || o.width[i] != config->hidden) continue;
        if (o.inputs[i].layer <= layer) s.layer_by = layer - o.inputs[i].layer;
        bool projects = o.kind == SINKPROOF_LINEAR && c->elements <= MOST_TERMS / config->hidden;
        s.whole = o.kind == SINKPROOF_ADD || projects;
        find_states(&s);
        s.y = malloc((c->n * config->hidden + 1) * sizeof *s.y);
        fine = s.y != NULL || fail_for_memory(c->s);
        if (fine) fine = try_streams(&s);
        free(s.y);
    }
    operation_free(&o);
    return fine;
}
