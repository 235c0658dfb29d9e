// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The paper's interventions on GPT-2 (doc/32-no-universal-mechanism.md): weights are read otherwise
// by a view of the model, nothing of it is copied; states are changed by an observer.
#include "audit/intervene/interventions.h"

#include "base/splitmix.h"
#include "base/words.h"
#include "model/slots.h"
#include "ref/stages.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool sinkproof_interventions_any(const sinkproof_interventions *changes) {
    return changes->zero_bq || changes->zero_bos || changes->late || changes->n_moves > 0 ||
           changes->massive_rows || changes->n_rows > 0 || changes->n_random > 0;
}

// ---- in words

// Appends a part of a sentence after ": ", "; " or ", ".
static void name_append(intervention_name *name, const char *between, const char *format, ...)
    SINKPROOF_PRINTF(3, 4);
static void name_append(intervention_name *name, const char *between, const char *format, ...) {
    size_t used = strlen(name->text), room = sizeof name->text;
    va_list arguments;
    if (used > 0) used += (size_t)snprintf(name->text + used, room - used, "%s", between);
    if (used >= room) return;
    va_start(arguments, format);
    vsnprintf(name->text + used, room - used, format, arguments);
    va_end(arguments);
}

static void say_moves(const sinkproof_interventions *changes, intervention_name *name) {
    for (size_t m = 0; m < changes->n_moves; m++) {
        size_t from = changes->move_n[m].from + 1, to = changes->move_n[m].to + 1;
        if (changes->move_n[m].swap)
            name_append(name, "; ", "position %zu has EPE_%zu", from, to);
        else
            name_append(name, "; ", "positions %zu and %zu exchange their EPE", from, to);
    }
    if (changes->late)
        name_append(name, "; ", "EPE added after the first layer, no position before it");
}

static void say_rows(const sinkproof_interventions *changes, intervention_name *name) {
    if (changes->massive_rows) name_append(name, "; ", "massive rows of W_k = 0");
    for (size_t r = 0; r < changes->n_rows; r++)
        name_append(name, r == 0 ? "; " : ", ", "%s%zu",
                    r > 0                  ? ""
                    : changes->n_rows == 1 ? "row "
                                           : "rows ",
                    changes->row_n[r]);
    if (changes->n_rows > 0) name_append(name, "", " of W_k = 0");
    if (changes->n_random == SINKPROOF_AS_MASSIVE)
        name_append(name, "; ", "as many other rows of W_k = 0, drawn by seed %llu",
                    (unsigned long long)changes->seed);
    else if (changes->n_random > 0)
        name_append(name, "; ", "%zu %s of W_k = 0, drawn by seed %llu", changes->n_random,
                    changes->n_random == 1 ? "row" : "rows", (unsigned long long)changes->seed);
}

intervention_name sinkproof_interventions_describe(const sinkproof_interventions *changes) {
    intervention_name name = {""};
    if (changes->zero_bq) name_append(&name, "; ", "b_Q = 0");
    say_moves(changes, &name);
    if (changes->zero_bos) name_append(&name, "; ", "no embedding of the first token");
    say_rows(changes, &name);
    if (name.text[0] == '\0') name_append(&name, "", "none");
    return name;
}

static const intervention_panel panels[] = {
    {"none", "no intervention", {0}},
    {"zero-bq", "no query bias", {.zero_bq = true}},
    {"swap-epe",
     "position 1 has EPE_2",
     {.n_moves = 1, .move_n = {{.swap = true, .from = 0, .to = 1}}}},
    {"move-epe", "positions 1 and 2 exchange their EPE", {.n_moves = 1, .move_n = {{.to = 1}}}},
    {"zero-bos", "no embedding of the first token", {.zero_bos = true}},
    {"zero-wk-rows", "massive rows of W_k = 0", {.massive_rows = true}},
    {"zero-wk-random",
     "as many other rows of W_k = 0",
     {.n_random = SINKPROOF_AS_MASSIVE, .seed = 1}},
};

const intervention_panel *sinkproof_intervention_panel_at(size_t i) {
    return i < sizeof panels / sizeof *panels ? &panels[i] : NULL;
}

// ---- the changes

struct sinkproof_intervened {
    sinkproof_interventions changes;
    sinkproof_policy policy;
    sinkproof_model *view;
    size_t n, hidden;
    sinkproof_reading nothing;    // reads a weight as 0
    sinkproof_reading *reading_l; // of W_k, by layer
    bool *gone_c;                 // coordinates whose row of W_k is 0
    size_t *row_n, n_rows;        // the same as a list
    double *position_c;           // T0 of the first position, without its token
    double *added_ic;             // [n, hidden] terms added after the first layer
    bool *gets_i;                 // positions that get such a term
};

void sinkproof_intervened_free(sinkproof_intervened *intervened) {
    if (intervened == NULL) return;
    sinkproof_model_close(intervened->view);
    free(intervened->reading_l);
    free(intervened->gone_c);
    free(intervened->row_n);
    free(intervened->position_c);
    free(intervened->added_ic);
    free(intervened->gets_i);
    free(intervened);
}

const sinkproof_model *sinkproof_intervened_model(const sinkproof_intervened *intervened) {
    return intervened->view;
}

const size_t *sinkproof_intervened_zero_rows(const sinkproof_intervened *intervened, size_t *n) {
    *n = intervened->n_rows;
    return intervened->row_n;
}

// The caller's arguments, and the result.
typedef struct making {
    sinkproof_intervened *made;
    const sinkproof_model *model;
    const double *epe_ic;
    size_t n_massive;
    const size_t *massive_at;
    sinkproof_error *error;
} making;

static bool no_memory(const making *m) {
    return sinkproof_fail(m->error, "no memory to intervene at %s",
                          sinkproof_counted(m->made->n, "token").text);
}

// Finds for each position the position whose EPE it gets: its own or another.
static bool exchange_rows(const making *m, size_t *from_i, bool *gets_i) {
    const sinkproof_interventions *c = &m->made->changes;
    for (size_t i = 0; i < m->made->n; i++) from_i[i] = i;
    for (size_t k = 0; k < c->n_moves; k++) {
        size_t a = c->move_n[k].from, b = c->move_n[k].to, last = a > b ? a : b;
        if (last >= m->made->n)
            return sinkproof_fail(m->error, "expected positions of EPE from 1 to %zu, found %zu",
                                  m->made->n, last + 1);
        if (a == b || gets_i[a] || (!c->move_n[k].swap && gets_i[b]))
            return sinkproof_fail(m->error,
                                  "expected each position to get one EPE, another's, found %zu:%zu",
                                  a + 1, b + 1);
        from_i[a] = b, gets_i[a] = true;
        if (!c->move_n[k].swap) from_i[b] = a, gets_i[b] = true;
    }
    return true;
}

// Adds EPE_from - EPE_i where positions are exchanged, EPE_from where positions are added late.
static void add_epe(const making *m, const size_t *from_i) {
    const sinkproof_intervened *made = m->made;
    for (size_t i = 0; i < made->n; i++) {
        double *added_c = made->added_ic + i * made->hidden;
        const double *own_c = m->epe_ic + i * made->hidden;
        if (made->changes.late) made->gets_i[i] = true;
        if (!made->gets_i[i]) continue;
        memcpy(added_c, m->epe_ic + from_i[i] * made->hidden, made->hidden * sizeof *added_c);
        for (size_t c = 0; !made->changes.late && c < made->hidden; c++)
            added_c[c] = round_at(&made->policy, AT_M12, added_c[c] - own_c[c]);
    }
}

static bool make_states(const making *m) {
    sinkproof_intervened *made = m->made;
    const sinkproof_interventions *c = &made->changes;
    bool moved = c->n_moves > 0 || c->late;
    if ((moved || c->zero_bos) &&
        sinkproof_model_config(m->model)->rotation.kind != SINKPROOF_NO_ROTATION)
        return sinkproof_fail(m->error, "%.300s: expected learned positions to change, found none",
                              sinkproof_model_spec(m->model));
    if (c->zero_bos) {
        sinkproof_matrix positions = sinkproof_model_slot(made->view, 0, SINKPROOF_POSITIONS);
        if (made->policy.weights < SINKPROOF_FORMATS) positions.kept = made->policy.weights;
        made->position_c = malloc(made->hidden * sizeof *made->position_c);
        if (made->position_c == NULL) return no_memory(m);
        sinkproof_matrix_row(&positions, 0, made->position_c);
        for (size_t k = 0; k < made->hidden; k++) // 0 + -0 is 0
            made->position_c[k] = round_at(&made->policy, AT_T0, 0 + made->position_c[k]);
    }
    if (!moved) return true;
    size_t *from_i = malloc(made->n * sizeof *from_i);
    made->added_ic = calloc(made->n * made->hidden, sizeof *made->added_ic);
    made->gets_i = calloc(made->n, sizeof *made->gets_i);
    bool room = from_i != NULL && made->added_ic != NULL && made->gets_i != NULL;
    bool good = room ? exchange_rows(m, from_i, made->gets_i) : no_memory(m);
    if (good) add_epe(m, from_i);
    free(from_i);
    return good;
}

// Marks `wanted` of the free, that is unmarked, coordinates at random: a partial Fisher-Yates
// shuffle with SplitMix64.
static void draw_rows(sinkproof_intervened *made, size_t wanted, size_t n_free, size_t *free_n) {
    uint64_t state = made->changes.seed;
    for (size_t i = 0; i < wanted; i++) {
        size_t at = sinkproof_draw_from_to(&state, i, n_free - 1), drawn = free_n[at];
        free_n[at] = free_n[i], free_n[i] = drawn;
        made->gone_c[drawn] = true;
    }
}

// Marks the control's rows in addition to those already marked; row_n has room for every
// coordinate.
static bool mark_drawn(const making *m) {
    sinkproof_intervened *made = m->made;
    size_t wanted = made->changes.n_random, n_free = 0;
    if (wanted == SINKPROOF_AS_MASSIVE) wanted = m->n_massive;
    for (size_t c = 0; c < made->hidden; c++) {
        bool massive = false;
        for (size_t i = 0; i < m->n_massive; i++) massive = massive || m->massive_at[i] == c;
        if (!massive && !made->gone_c[c]) made->row_n[n_free++] = c;
    }
    if (wanted > n_free)
        return sinkproof_fail(m->error,
                              "expected at most %s of W_k to draw, which are neither massive "
                              "nor listed, found %zu",
                              sinkproof_counted(n_free, "row").text, wanted);
    draw_rows(made, wanted, n_free, made->row_n);
    return true;
}

static bool mark_rows(const making *m) {
    sinkproof_intervened *made = m->made;
    const sinkproof_interventions *c = &made->changes;
    bool massive = c->massive_rows || c->n_random == SINKPROOF_AS_MASSIVE;
    if (massive && m->n_massive == 0)
        return sinkproof_fail(m->error, "expected massive coordinates of EPE_1, found none");
    for (size_t i = 0; c->massive_rows && i < m->n_massive; i++)
        made->gone_c[m->massive_at[i]] = true;
    for (size_t i = 0; i < c->n_rows; i++) {
        if (c->row_n[i] >= made->hidden)
            return sinkproof_fail(m->error, "expected rows of W_k from 0 to %zu, found %zu",
                                  made->hidden - 1, c->row_n[i]);
        made->gone_c[c->row_n[i]] = true;
    }
    if (c->n_random > 0 && !mark_drawn(m)) return false;
    for (size_t i = 0; i < made->hidden; i++)
        if (made->gone_c[i]) made->row_n[made->n_rows++] = i;
    return true;
}

static void edit_weight(void *context, size_t l, sinkproof_slot slot, sinkproof_matrix *weight) {
    sinkproof_intervened *made = context;
    const sinkproof_interventions *c = &made->changes;
    bool none = (slot == SINKPROOF_B_Q && c->zero_bq) || (slot == SINKPROOF_POSITIONS && c->late);
    if (none && weight->count > 0) weight->reading = &made->nothing;
    if (slot != SINKPROOF_W_K || made->n_rows == 0) return;
    made->reading_l[l] =
        (sinkproof_reading){.factor = 1, .gone_c = made->gone_c, .below = weight->reading};
    weight->reading = &made->reading_l[l];
}

static bool make_view(const making *m) {
    sinkproof_intervened *made = m->made;
    const sinkproof_config *config = sinkproof_model_config(m->model);
    made->gone_c = calloc(made->hidden, sizeof *made->gone_c);
    made->row_n = calloc(made->hidden, sizeof *made->row_n);
    made->reading_l = calloc(config->n_layers, sizeof *made->reading_l);
    if (made->gone_c == NULL || made->row_n == NULL || made->reading_l == NULL) return no_memory(m);
    if (!mark_rows(m)) return false;
    made->view = sinkproof_model_edited(m->model, config, edit_weight, made);
    return made->view != NULL || no_memory(m);
}

bool sinkproof_intervened_new(const sinkproof_model *model, const sinkproof_interventions *changes,
                              const sinkproof_policy *policy, size_t n, const double *epe_ic,
                              size_t n_massive, const size_t *massive_at,
                              sinkproof_intervened **intervened, sinkproof_error *error) {
    making m = {.model = model,
                .epe_ic = epe_ic,
                .n_massive = n_massive,
                .massive_at = massive_at,
                .error = error};
    *intervened = NULL;
    m.made = calloc(1, sizeof *m.made);
    if (m.made == NULL)
        return sinkproof_fail(error, "no memory to intervene at %s",
                              sinkproof_counted(n, "token").text);
    m.made->changes = *changes;
    m.made->policy = *policy;
    m.made->n = n;
    m.made->hidden = sinkproof_model_config(model)->hidden;
    bool good = make_view(&m) && make_states(&m);
    if (good)
        *intervened = m.made;
    else
        sinkproof_intervened_free(m.made);
    return good;
}

void sinkproof_intervention_replace(void *context, const char *name, size_t rank,
                                    const size_t *shape, double *values) {
    const sinkproof_intervened *made = context;
    size_t n = rank == 2 && shape[0] < made->n ? shape[0] : made->n, width = made->hidden;
    if (made->position_c != NULL && strcmp(name, "T0") == 0)
        memcpy(values, made->position_c, width * sizeof *values);
    if (made->added_ic == NULL || strcmp(name, "00.M12") != 0) return;
    for (size_t i = 0; i < n; i++)
        if (made->gets_i[i])
            sinkproof_residual(&made->policy, AT_M12, width, made->added_ic + i * width,
                               values + i * width);
}
