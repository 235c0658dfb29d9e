// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Tells which points a trace could not decide, and which points to add to it.
#include "audit/judge/judge_finite.h"
#include "audit/judge/judge_report.h"
#include "audit/trace/trace_points.h"
#include "base/words.h"

#include <string.h>

enum { WANTED = 4 };

typedef struct place {
    sinkproof_trace_point point;
    size_t layer;
} place;

typedef struct remedy {
    place add[WANTED];
    size_t n;
    bool earlier; // keys and values of the positions before the trace
    bool behind;  // computed from infinities or NaN: adding points decides nothing
} remedy;

static bool judgement_holds_point(const sinkproof_judgement *j, sinkproof_trace_point point,
                                  size_t layer) {
    return judgement_report(j, point, layer) != NULL || held_outside(j, point, layer) != HELD_NOT;
}

static void remedy_want_point(const sinkproof_judgement *j, remedy *r, sinkproof_trace_point point,
                              size_t layer) {
    bool known = point == TRACE_T0 || judgement_holds_point(j, point, layer) || r->n == WANTED;
    for (size_t i = 0; i < r->n; i++)
        known = known || (r->add[i].point == point && r->add[i].layer == layer);
    if (!known) r->add[r->n++] = (place){point, layer};
}

// Asks for the operation's own inputs; for an input that not every engine has, for the inputs of
// that one.
static void want_inputs(const sinkproof_config *config, const sinkproof_judgement *j, remedy *r,
                        sinkproof_trace_point point, size_t layer) {
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    size_t n = sinkproof_trace_inputs(config, point, layer, inputs);
    for (size_t i = 0; i < n; i++) {
        bool may_be_absent = sinkproof_trace_point_held(inputs[i].point) >= SINKPROOF_ASKED;
        if (may_be_absent && !judgement_holds_point(j, inputs[i].point, layer))
            want_inputs(config, j, r, inputs[i].point, layer);
        else
            remedy_want_point(j, r, inputs[i].point, inputs[i].layer);
    }
}

// The residual stream before the sublayer decides its norm and projections, and together with the
// selection its experts. Attention and the operations after it need more: too much is open in
// between.
static remedy remedy_for(const sinkproof_config *config, const sinkproof_judgement *j,
                         sinkproof_trace_point point, size_t layer) {
    remedy r = {.n = 0};
    bool experts = point >= TRACE_M1 && point <= TRACE_M12;
    bool routed = point >= TRACE_M4 && point <= TRACE_M12;
    bool projected = point >= TRACE_A1 && point <= TRACE_A4_K;
    if (point == TRACE_F1 || point == TRACE_F2)
        want_inputs(config, j, &r, TRACE_F1, layer);
    else if (experts)
        remedy_want_point(j, &r, TRACE_A13, layer);
    else if (projected)
        want_inputs(config, j, &r, TRACE_A1, layer);
    if (routed && j->open[layer] > 0) remedy_want_point(j, &r, TRACE_M3, layer);
    if (r.n == 0) want_inputs(config, j, &r, point, layer);
    r.earlier = point >= TRACE_A6 && point <= TRACE_A11 && j->unread[layer] > 0;
    r.behind = r.n == 0 && !r.earlier && input_is_not_finite(config, j, point, layer);
    return r;
}

// ---- lists of layers and points

// "layer 3", "layers 0-2, 5".
static void print_layers(FILE *out, const bool *layers, size_t n) {
    size_t count = 0;
    for (size_t l = 0; l < n; l++) count += layers[l];
    fprintf(out, count == 1 ? "layer " : "layers ");
    for (size_t l = 0, first = 1; l < n; l++) {
        if (!layers[l]) continue;
        size_t end = l;
        while (end + 1 < n && layers[end + 1]) end++;
        fprintf(out, first ? "%zu" : ", %zu", l);
        if (end > l) fprintf(out, "-%zu", end);
        l = end, first = 0;
    }
}

// Points by name and layer, at[point][layer]; the last layer holds the points outside the layers.
typedef struct grid {
    size_t layers;
    bool at[TRACE_POINTS][SINKPROOF_MAX_LAYERS + 1];
} grid;

static void grid_mark_point(grid *g, sinkproof_trace_point point, size_t layer) {
    g->at[point][sinkproof_trace_point_is_layered(point) ? layer : g->layers] = true;
}

static bool is_marked_in_any_layer(const grid *g, sinkproof_trace_point point) {
    bool any = false;
    for (size_t l = 0; l <= g->layers; l++) any = any || g->at[point][l];
    return any;
}

// Prints "F1, F2" or "M3, M12 of layers 2-3": points of the same layers are listed together.
static void print_grid(FILE *out, const grid *g) {
    bool said[TRACE_POINTS] = {false}, first = true;
    for (int p = 0; p < TRACE_POINTS; p++) {
        if (said[p] || !is_marked_in_any_layer(g, (sinkproof_trace_point)p)) continue;
        const bool *layers = g->at[p];
        for (int o = p; o < TRACE_POINTS; o++) {
            if (memcmp(layers, g->at[o], g->layers + 1) != 0) continue;
            said[o] = true;
            fprintf(out, "%s%s",
                    first    ? ""
                    : o == p ? "; "
                             : ", ",
                    sinkproof_trace_point_name((sinkproof_trace_point)o));
            first = false;
        }
        if (!sinkproof_trace_point_is_layered((sinkproof_trace_point)p)) continue;
        fprintf(out, " of ");
        print_layers(out, layers, g->layers);
    }
}

// ---- groups: undecided points whose remedies are of one kind

static bool remedies_are_alike(const remedy *a, const remedy *b) {
    bool same = a->n == b->n && a->earlier == b->earlier && a->behind == b->behind;
    for (size_t i = 0; same && i < a->n; i++) same = a->add[i].point == b->add[i].point;
    return same;
}

// Prints ": layers 2-3 are not traced" when the trace holds nothing of the layers just before the
// group's points.
static void print_untraced(FILE *out, const sinkproof_judgement *j, const grid *undecided) {
    size_t n = undecided->layers, count = 0;
    bool empty[SINKPROOF_MAX_LAYERS], before[SINKPROOF_MAX_LAYERS] = {false};
    for (size_t l = 0; l < n; l++) empty[l] = true;
    for (size_t i = 0; i < j->n_reports; i++)
        if (sinkproof_trace_point_is_layered(j->reports[i].point))
            empty[j->reports[i].layer] = false;
    for (size_t l = 0; l < n; l++)
        for (int p = 0; p < TRACE_POINTS; p++)
            if (held_outside(j, (sinkproof_trace_point)p, l) != HELD_NOT) empty[l] = false;
    for (int p = 0; p < TRACE_POINTS; p++)
        for (size_t at = 0; at <= n; at++)
            for (size_t l = at; undecided->at[p][at] && l > 0 && empty[l - 1];) before[--l] = true;
    for (size_t l = 0; l < n; l++) count += before[l];
    if (count > 0) {
        fprintf(out, ": ");
        print_layers(out, before, n);
        fprintf(out, count == 1 ? " is not traced" : " are not traced");
    }
}

static bool has_undecided(const sinkproof_point_report *r) {
    return r->undecided > 0;
}

static void print_group(FILE *out, const sinkproof_config *config, const sinkproof_judgement *j,
                        bool *done, size_t first) {
    grid undecided = {.layers = config->n_layers}, add = undecided;
    const sinkproof_point_report *head = &j->reports[first];
    remedy kind = remedy_for(config, j, head->point, head->layer);
    bool whole = head->verdict == SINKPROOF_VERDICT_UNDECIDED;
    size_t open = 0, elements = 0;
    for (size_t i = first; i < j->n_reports; i++) {
        const sinkproof_point_report *r = &j->reports[i];
        if (done[i] || !has_undecided(r) || (r->verdict == SINKPROOF_VERDICT_UNDECIDED) != whole)
            continue;
        remedy its = remedy_for(config, j, r->point, r->layer);
        if (!remedies_are_alike(&kind, &its)) continue;
        done[i] = true;
        open += r->undecided, elements += r->elements;
        grid_mark_point(&undecided, r->point, r->layer);
        for (size_t a = 0; a < its.n; a++)
            grid_mark_point(&add, its.add[a].point, its.add[a].layer);
    }
    print_grid(out, &undecided);
    if (whole)
        fprintf(out, " undecided");
    else
        fprintf(out, ": %zu of %s undecided", open, sinkproof_counted(elements, "element").text);
    if (kind.earlier && j->n_sequences > 1)
        fprintf(out,
                "; give cu_seqlens_k, with %s and A2.v rows for the positions before each sequence",
                sinkproof_trace_point_name(sinkproof_trace_keys(config)));
    else if (kind.earlier)
        fprintf(out, "; give %s and A2.v rows for the positions before %zu",
                sinkproof_trace_point_name(sinkproof_trace_keys(config)), j->begins);
    if (kind.n > 0) {
        if (whole) print_untraced(out, j, &undecided);
        fprintf(out, "; add ");
        print_grid(out, &add);
        fprintf(out, "\n");
    } else if (kind.earlier) {
        fprintf(out, "\n");
    } else if (kind.behind) {
        fprintf(out, ": behind what is no finite number\n");
    } else {
        fprintf(out, ": all inputs are traced, the operation itself leaves that much open\n");
    }
}

void judgement_print_undecided(FILE *out, const sinkproof_config *config,
                               const sinkproof_judgement *j) {
    bool done[TRACE_POINTS * SINKPROOF_MAX_LAYERS] = {false}, any = false;
    for (size_t i = 0; i < j->n_reports; i++) {
        if (done[i] || !has_undecided(&j->reports[i])) continue;
        if (!any) fprintf(out, "\n");
        any = true;
        print_group(out, config, j, done, i);
    }
}

static void add_once(json_t *list, const char *text) {
    bool there = false;
    for (size_t i = 0; i < json_array_size(list); i++)
        there = there || strcmp(json_string_value(json_array_get(list, i)), text) == 0;
    if (!there) json_array_append_new(list, json_string(text));
}

json_t *judgement_remedies_json(const sinkproof_config *config, const sinkproof_judgement *j) {
    json_t *list = json_array();
    for (size_t i = 0; i < j->n_reports; i++) {
        if (!has_undecided(&j->reports[i])) continue;
        size_t layer = j->reports[i].layer;
        remedy r = remedy_for(config, j, j->reports[i].point, layer);
        char name[SINKPROOF_TRACE_NAME], text[2 * SINKPROOF_TRACE_NAME];
        const sinkproof_trace_point earlier[] = {sinkproof_trace_keys(config), TRACE_A2_V};
        for (size_t a = 0; r.earlier && a < 2; a++) {
            sinkproof_trace_name(earlier[a], layer, name);
            if (j->n_sequences > 1)
                snprintf(text, sizeof text, "%s before each sequence", name);
            else
                snprintf(text, sizeof text, "%s before position %zu", name, j->begins);
            add_once(list, text);
        }
        for (size_t a = 0; a < r.n; a++) {
            sinkproof_trace_name(r.add[a].point, r.add[a].layer, name);
            add_once(list, name);
        }
    }
    return list;
}
