// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Experts: the weights of another one, rows of another token in an expert's batch, shares that are
// applied elsewhere, shares of some slots, biases that the mixture adds.
#include "audit/diagnose/composed_made.h"
#include "base/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// ---- weights of another expert

enum { OF_EXPERT = 12, MOST_EXPERTS = 256 };

// A sample of the elements outside of one expert.
static void sample_expert(const operation *o, int32_t expert, operation *sample) {
    const composing *c = o->c;
    size_t slots = c->n * c->s->trials.config->n_chosen, each = c->elements / slots;
    *sample = *o;
    sample->n = 0;
    for (size_t q = 0; q < slots && sample->n < OF_EXPERT; q++)
        for (size_t k = 0; k < each && c->chosen_nk[q] == expert && sample->n < OF_EXPERT; k++)
            if (c->marks[q * each + (k * 7) % each])
                sample->at[sample->n++] = q * each + (k * 7) % each;
}

// The expert whose weights explain what expert e gives; -1: none, or none is outside.
static int expert_read(const operation *o, size_t e, size_t experts) {
    operation sample;
    sample_expert(o, (int32_t)e, &sample);
    for (size_t from = 0; from < experts && sample.n > 0; from++) {
        const mistake_weight_edit edit = {
            .rewritten = true, .expert_from = {.source = SINKPROOF_FROM_FIXED, .by = (long)from}};
        const operation_change change = {.edit = &edit};
        if (from != e && operation_is_near(&sample, &change)) return (int)from;
    }
    return -1;
}

static bool try_from(composing *c, sinkproof_slot slot, sinkproof_from from, const char *id,
                     const char *text) {
    bool fine = true;
    for (size_t r = 0; r < c->n_regions && fine && c->found == NULL; r++) {
        composed_mistake *m = composing_new(c);
        if (m == NULL) return false;
        m->edit =
            (mistake_weight_edit){.slots = 1u << slot, .rewritten = true, .expert_from = from};
        m->region = c->regions[r];
        composed_name(m, "%s-%s", sinkproof_slot_name(slot), id);
        composed_say(m, "%s %s", composed_slot_words(slot), text);
        composed_say_region(c, m);
        fine = composing_try(c, m);
    }
    return fine;
}

static bool try_read(composing *c, sinkproof_slot slot, const int *from_e, size_t experts) {
    int first = -1, second = -1, fixed = -1;
    bool one = true, fine = true;
    char id[48], text[112];
    size_t n = 0;
    for (size_t e = 0; e < experts; e++) {
        if (from_e[e] < 0) continue;
        if (n == 0) first = (int)e, fixed = from_e[e];
        if (n == 1) second = (int)e;
        one = one && from_e[e] == fixed, n++;
    }
    if (n == 0) return true;
    if (one) {
        snprintf(id, sizeof id, "of-expert-%d", fixed);
        snprintf(text, sizeof text, "are those of expert %d", fixed);
        fine = try_from(c, slot, (sinkproof_from){.source = SINKPROOF_FROM_FIXED, .by = fixed}, id,
                        text);
    }
    if (!fine || c->found != NULL || n != 2 || from_e[first] != second || from_e[second] != first)
        return fine;
    snprintf(id, sizeof id, "exchanged-%d-%d", first, second);
    snprintf(text, sizeof text, "of experts %d and %d are exchanged", first, second);
    return try_from(c, slot,
                    (sinkproof_from){.source = SINKPROOF_FROM_MIRRORED, .by = first + second}, id,
                    text);
}

static bool compose_read(composing *c, const operation *o) {
    size_t experts = c->s->trials.config->n_experts;
    int from_e[MOST_EXPERTS];
    if (experts > MOST_EXPERTS || !o->whole) return true;
    for (size_t e = 0; e < experts; e++) from_e[e] = expert_read(o, e, experts);
    return try_read(c, o->slots[0], from_e, experts);
}

// ---- the point as the rows of other tokens, or multiplied by the shares

static bool mix_by_ones(supposed_engine *s, const known_mistake *k) {
    (void)k;
    s->meaning.mixed = SINKPROOF_MIXED_BY_ONES;
    return true;
}

// The shares multiply this point, and the mixture takes each expert as it is: one cause of both.
static bool try_early_shares(composing *c) {
    composed_mistake *m = composing_new(c);
    if (m == NULL) return false;
    m->operate = mix_by_ones, m->mistake.points = point_bit(c->point) | point_bit(TRACE_M11);
    m->moving = (sinkproof_moving){
        .on = true, .point = c->point, .along = ALONG_ROWS, .factor = 1, .by_shares = true};
    composed_name(m, "%s-by-shares-M11-by-ones", sinkproof_trace_point_name(c->point));
    composed_say(m,
                 "%s is multiplied by the experts' weights (M4), and the mixture takes each expert "
                 "as it is: the share is applied to the input, before the mixture",
                 sinkproof_trace_point_name(c->point));
    return composing_try(c, m);
}

static bool try_batch(composing *c) {
    bool fine = true;
    for (int kind = 0; kind < 4 && fine && c->found == NULL; kind++) {
        bool by_slot = kind / 2 == 1, before = kind % 2 == 0;
        char id[48], text[160];
        const sinkproof_moving how = {
            .on = true,
            .point = c->point,
            .along = ALONG_ROWS,
            .factor = 1,
            .from = {.source = by_slot ? SINKPROOF_FROM_BATCH_BY_SLOT : SINKPROOF_FROM_BATCH,
                     .by = before ? -1 : 1}};
        snprintf(id, sizeof id, "batch-%s%s", before ? "before" : "next",
                 by_slot ? "-by-slot" : "");
        snprintf(text, sizeof text,
                 "holds the row of the %s token in its expert's batch%s, in a circle",
                 before ? "previous" : "next", by_slot ? " (in the order of the slots)" : "");
        fine = composing_try_moving(c, &how, id, text);
    }
    const sinkproof_moving shared = {
        .on = true, .point = c->point, .along = ALONG_ROWS, .factor = 1, .by_shares = true};
    if (fine && c->found == NULL && c->point != TRACE_M6) fine = try_early_shares(c);
    if (fine && c->found == NULL && c->point != TRACE_M6)
        fine = composing_try_moving(
            c, &shared, "by-shares",
            "is multiplied by the experts' weights (M4): the share is applied to the "
            "input, before the mixture");
    return fine;
}

// numbers: a, and what: slots after an expert's first a, before its last a (bit 0), in its last,
// partial block of a (bit 2), or of an expert with fewer (bit 3); in the order of slots (bit 1).
static bool make_empty(const sinkproof_making *of, double *y, double *width) {
    size_t k = of->config->n_chosen, pairs = of->n * k, each = of->all / pairs;
    int how = (int)of->numbers[1];
    if (of->chosen_nk == NULL) return false;
    for (size_t q = 0; q < pairs; q++) {
        size_t before = 0, all = 0;
        for (size_t o = 0; o < pairs; o++) {
            bool earlier = (how & 2) != 0 && o % k != q % k ? o % k < q % k : o < q;
            bool same = of->chosen_nk[o] == of->chosen_nk[q];
            before += same && earlier, all += same;
        }
        size_t a = (size_t)of->numbers[0];
        bool lost = (how & 4) != 0   ? before >= all / a * a
                    : (how & 8) != 0 ? all < a
                    : (how & 1) != 0 ? before + a < all
                                     : before >= a;
        for (size_t at = q * each; at < (q + 1) * each; at++) {
            if (lost) y[at] = width[at] = 0;
            if (!lost && of->radius != NULL) width[at] = of->radius[at];
        }
    }
    return true;
}

static bool try_empty(const operation *o) {
    enum { MOST_PAIRS = 1 << 9 };
    bool fine = true;
    const composing *c = o->c;
    if (c->n * c->s->trials.config->n_chosen > MOST_PAIRS) return true;
    for (size_t most = 1; most < c->n && fine && c->found == NULL; most++)
        for (int how = 0; how < 9 && fine && c->found == NULL; how++) {
            if (how == 5 || how == 7 || (how > 3 && most < 2)) continue;
            made_kind made = {.make = make_empty, .numbers = {(double)most, how}};
            snprintf(made.id, sizeof made.id, "capacity-%zu-%d", most, how);
            const char *slots = how & 2 ? ", in the order of the slots" : "";
            if (how == 8)
                snprintf(made.text, sizeof made.text, "is zero for experts with fewer than %s",
                         sinkproof_counted(most, "token").text);
            else if (how & 4)
                snprintf(made.text, sizeof made.text,
                         "is zero for the last, partial block of %zu of an expert's tokens%s", most,
                         slots);
            else
                snprintf(made.text, sizeof made.text,
                         "is zero for an expert's tokens %s %zu%s: a capacity of %.40s",
                         how & 1 ? "before its last" : "after its first", most, slots,
                         sinkproof_counted(most, "token").text);
            fine = composing_try_made(o, &made);
        }
    return fine;
}

static bool is_of_experts(const composing *c) {
    bool slots = c->point >= TRACE_M5 && c->point <= TRACE_M10 && !c->s->trials.config->dense;
    return slots && c->chosen_nk != NULL;
}

bool compose_experts(composing *c) {
    operation o;
    if (!is_of_experts(c)) return true;
    bool fine = operation_read(c, &o);
    bool weighed = o.kind == SINKPROOF_MULTIPLY || o.kind == SINKPROOF_ADD_BIAS;
    if (fine && weighed) fine = compose_read(c, &o);
    operation_free(&o);
    return fine;
}

bool compose_batch_rows(composing *c) {
    return !is_of_experts(c) || try_batch(c);
}

bool compose_emptied(composing *c) {
    operation o;
    size_t zeros = 0; // worth a look only if there are any
    for (size_t at = 0; at < c->elements; at++) zeros += c->marks[at] && c->v[at] == 0;
    if (!is_of_experts(c) || zeros == 0) return true;
    bool fine = operation_read(c, &o) && try_empty(&o);
    operation_free(&o);
    return fine;
}

// ---- shares that the mixture uses

static composed_mistake *shares_new(composing *c, const sinkproof_moving *how) {
    composed_mistake *m = composing_new(c);
    if (m == NULL) return NULL;
    m->input = (mistake_input){
        .on = true, .point = c->point, .input = TRACE_M4, .from = TRACE_M4, .moving = *how};
    m->input.moving.on = true, m->input.moving.point = TRACE_M4;
    return m;
}

// Whether a sample of M11 is near with the shares as they are moved.
static bool mixes_to(const operation *o, const sinkproof_moving *how, double *y, bool *near) {
    const composing *c = o->c;
    sinkproof_moving of = *how;
    const sinkproof_tensor_numbers numbers = {
        .config = c->s->trials.config, .n = c->n, .chosen_nk = c->chosen_nk, .x = o->x[1]};
    of.on = true, of.point = TRACE_M4;
    if (!sinkproof_moved_numbers(&of, &numbers, 0, c->n * o->width[1], y))
        return fail_for_memory(c->s);
    const operation_change change = {.input = 1, .x = y};
    *near = operation_is_near(o, &change);
    return true;
}

static bool try_shares(composing *c, const operation *o, const sinkproof_moving *how, double *y,
                       const char *id, const char *text) {
    bool near = false;
    if (!mixes_to(o, how, y, &near)) return false;
    if (!near) return true;
    bool rounds = c->step > 0x1p-12 && how->then.kind != SINKPROOF_UNCHANGED, fine = true;
    for (int kept = 0; kept <= (rounds ? 1 : 0) && fine && c->found == NULL; kept++) {
        composed_mistake *m = shares_new(c, how);
        if (m == NULL) return false;
        if (kept == 1) m->input.kept = m->input.moving.then.format = SINKPROOF_BF16;
        composed_name(m, "M11-%s", id);
        composed_say(m, "%s", text);
        fine = composing_try(c, m);
    }
    return fine;
}

static bool try_picks(composing *c, const operation *o, double *y) {
    char id[64], text[240];
    sinkproof_moving how = {.factor = 0, .pick = SINKPROOF_PICK_NOT_HIGHEST};
    bool fine = try_shares(c, o, &how, y, "highest-expert-alone",
                           "the sum keeps only the chosen expert with the highest number");
    how.pick = SINKPROOF_PICK_NOT_LOWEST;
    if (fine && c->found == NULL)
        fine = try_shares(c, o, &how, y, "lowest-expert-alone",
                          "the sum keeps only the chosen expert with the lowest number");
    for (int kind = SINKPROOF_PICK_BEYOND; kind <= SINKPROOF_PICK_BEFORE; kind++)
        for (size_t most = 1; most < c->n && most <= 1024 && fine && c->found == NULL; most++) {
            bool beyond = kind == SINKPROOF_PICK_BEYOND;
            how.pick = (sinkproof_pick)kind, how.picked = most;
            snprintf(id, sizeof id, "capacity-%zu%s", most, beyond ? "" : "-last");
            snprintf(text, sizeof text,
                     "an expert has a capacity of %s: only the %s %zu of each expert's tokens are "
                     "added to the sum",
                     sinkproof_counted(most, "token").text, beyond ? "first" : "last", most);
            fine = try_shares(c, o, &how, y, id, text);
        }
    return fine;
}

// The experts [first, end) are missing; of those that are left the shares are divided by their sum.
static bool try_local(composing *c, const operation *o, size_t first, size_t end, double *y) {
    char id[64], text[160];
    size_t experts = c->s->trials.config->n_experts;
    sinkproof_moving how = {.factor = 0, .then = {.kind = SINKPROOF_CHANGE_OVER_SUM}};
    how.region.along[ALONG_EXPERTS] = (sinkproof_indices){.first = first, .end = end};
    snprintf(id, sizeof id, "local-%zu-%zu", first, end - 1);
    snprintf(text, sizeof text,
             "the sum has experts %zu-%zu alone (those of a rank), and their shares are "
             "renormalised: divided by their own sum",
             first > 0 ? 0 : end, first > 0 ? first - 1 : experts - 1);
    return try_shares(c, o, &how, y, id, text);
}

// ---- biases that the mixture adds

// v = mid + a sum of b + b' sum of w b over the slots: least squares over the sample.
static bool fit_biases(const composing *c, const operation *o, double *times, double *over) {
    const sinkproof_config *config = c->s->trials.config;
    size_t k = config->n_chosen, hidden = config->hidden;
    sinkproof_matrix stack =
        sinkproof_model_slot(c->s->trials.suspect.model, c->place, SINKPROOF_B_DOWN);
    double xx = 0, xz = 0, zz = 0, xy = 0, zy = 0;
    double *row = calloc(hidden + 1, sizeof *row);
    bool known = row != NULL && stack.count == config->n_experts;
    for (size_t s = 0; s < o->n && known; s++) {
        size_t i = o->at[s] / hidden, d = o->at[s] % hidden;
        double x = 0, z = 0, y = c->v[o->at[s]] - c->mid[o->at[s]];
        for (size_t a = 0; a < k; a++) {
            int32_t e = c->chosen_nk[i * k + a];
            if (e < 0) continue;
            sinkproof_matrix one = sinkproof_matrix_at(&stack, (size_t)e);
            sinkproof_matrix_row(&one, 0, row);
            x += row[d], z += o->x[1][i * k + a] * row[d];
        }
        xx += x * x, xz += x * z, zz += z * z, xy += x * y, zy += z * y;
    }
    free(row);
    double across = xx * zz - xz * xz;
    if (!known || !(across > 1e-9 * xx * zz)) return false;
    *over = (xy * zz - zy * xz) / across, *times = (zy * xx - xy * xz) / across;
    return isfinite(*over) && isfinite(*times);
}

// numbers: what multiplies each bias times its share, and each bias; the step of the format.
static bool make_biases(const sinkproof_making *of, double *y, double *width) {
    const sinkproof_tensor *m4 = sinkproof_trace_find(of->trace, TRACE_M4, of->layer);
    const sinkproof_tensor *m10 = sinkproof_trace_find(of->trace, TRACE_M10, of->layer);
    size_t k = of->config->n_chosen, hidden = of->config->hidden;
    sinkproof_matrix stack = sinkproof_model_slot(of->model, of->layer, SINKPROOF_B_DOWN);
    double *row = calloc(hidden + 1, sizeof *row);
    bool fine = row != NULL && m4 != NULL && m10 != NULL && of->chosen_nk != NULL &&
                stack.count == of->config->n_experts && stack.cols == hidden;
    for (size_t q = 0; q < of->n * k && fine; q++) {
        if (of->chosen_nk[q] < 0) continue;
        sinkproof_matrix one = sinkproof_matrix_at(&stack, (size_t)of->chosen_nk[q]);
        sinkproof_matrix_row(&one, 0, row);
        double w = sinkproof_tensor_value(m4, q);
        for (size_t d = 0; d < hidden; d++) {
            size_t at = q / k * hidden + d;
            double term = w * sinkproof_tensor_value(m10, q * hidden + d);
            y[at] += (of->numbers[0] * w + of->numbers[1]) * row[d];
            width[at] += of->numbers[2] * (double)k * (fabs(term) + fabs(row[d]));
        }
    }
    free(row);
    return fine;
}

static bool try_biases(composing *c, const operation *o) {
    static const struct {
        double times, over;
        const char *id, *text;
    } kinds[] = {{-1, 1, "unweighted",
                  "the biases of the down-projection are added without the shares, "
                  "after the weighting"},
                 {0, 1, "once-more",
                  "the biases of the down-projection are added once more, without the "
                  "shares"},
                 {1, 0, "twice", "the biases of the down-projection are added twice to the sum"},
                 {-1, 0, "missing", "the biases of the down-projection are not in the sum"},
                 {0, -1, "taken", "the biases of the down-projection are taken from the sum"}};
    double times, over;
    bool fine = true;
    if (!fit_biases(c, o, &times, &over)) return true;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && fine && c->found == NULL; i++) {
        if (fabs(times - kinds[i].times) > 0.1 || fabs(over - kinds[i].over) > 0.1) continue;
        composed_mistake *m = composing_new(c);
        if (m == NULL) return false;
        m->moving = (sinkproof_moving){.on = true,
                                       .point = c->point,
                                       .along = ALONG_ROWS,
                                       .factor = 1,
                                       .make = make_biases,
                                       .adds = true,
                                       .numbers = {kinds[i].times, kinds[i].over, c->step}};
        composed_name(m, "M11-bias-%s", kinds[i].id);
        composed_say(m, "%s", kinds[i].text);
        fine = composing_try(c, m);
    }
    return fine;
}

bool compose_mixing(composing *c) {
    operation o;
    if (c->point != TRACE_M11 || c->chosen_nk == NULL) return true;
    bool fine = operation_read(c, &o);
    double *y = malloc((c->n * c->s->trials.config->n_chosen + 1) * sizeof *y);
    if (fine && y == NULL) fine = fail_for_memory(c->s);
    size_t experts = c->s->trials.config->n_experts;
    if (fine && o.whole) fine = try_picks(c, &o, y);
    for (size_t e = 1; e < experts && o.whole && fine && c->found == NULL; e++) {
        fine = try_local(c, &o, e, experts, y);
        if (fine && c->found == NULL) fine = try_local(c, &o, 0, e, y);
    }
    if (fine && o.whole && c->found == NULL) fine = try_biases(c, &o);
    free(y);
    operation_free(&o);
    return fine;
}
