// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The search for composed mistakes at a place: which elements of a point are outside gives the
// parts in which a mistake may be, and the numbers of the trace give its size.
#include "audit/diagnose/composed.h"
#include "audit/diagnose/seen_sets.h"
#include "audit/trace/trace_points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- what is known of a point

static bool see_point(composing *c, seen_sets *seen) {
    place_trials *s = &c->s->trials;
    sinkproof_judgement again;
    sinkproof_stretch_to(s->stretch, s->config, s->suspect.policy, s->suspect.trace, c->point,
                         c->report->layer, true);
    const sinkproof_judge_options how = {.rate = s->suspect.rate,
                                         .stretch = s->stretch,
                                         .prefix = s->suspect.prefix,
                                         .witness = see_sets,
                                         .witnessing = seen};
    if (!sinkproof_judge(s->suspect.model, s->suspect.trace, s->suspect.policy, &how, &again,
                         s->error))
        return false;
    s->tried++;
    sinkproof_judgement_free(&again);
    return true;
}

// Sets of one value may be of numbers that are 0 by chance.
static double least_width(const composing *c) {
    double squares = 0;
    for (size_t at = 0; at < c->elements; at++)
        if (isfinite(c->v[at])) squares += c->v[at] * c->v[at];
    return fmax(c->step / 64 * sqrt(squares / (double)c->elements), 1e-300);
}

// ---- the search

// In which parts of the point an offer looks: in all that hold every element outside; in those that
// are ranges of indices; in the whole point; or in sets of indices, which are picked by what fails.
typedef enum offered_in { IN_ALL, IN_RANGES, IN_WHOLE, IN_SETS } offered_in;

typedef struct placed_offer {
    compose_candidates *ask;
    offered_in in;
} placed_offer;

// In this order: the first that explain the point end the search. The very first are asked before
// the catalogue is tried in some rows. Sets of indices come after the rules. Rules of slots and
// rows are asked in none, and those of an expert's batch in the whole point alone: a rule says why
// it is these indices, most rules fit some rows or experts by chance, and a factor of 0 in a set
// explains whatever a rule leaves out.
static const placed_offer offers[] = {
    {compose_zeros, IN_ALL},
    {compose_attention_everywhere, IN_RANGES},
    {compose_stale, IN_ALL},
    {compose_attention, IN_RANGES},
    {compose_places, IN_RANGES},
    {compose_tokens, IN_RANGES},
    {compose_norms, IN_RANGES},
    {compose_statistics, IN_RANGES},
    {compose_divisors, IN_RANGES},
    {compose_residuals, IN_RANGES},
    {compose_turns, IN_RANGES},
    {compose_positions, IN_RANGES},
    {compose_gates, IN_RANGES},
    {compose_activations, IN_RANGES},
    {compose_choices, IN_RANGES},
    {compose_biased, IN_RANGES},
    {compose_frequencies, IN_RANGES},
    {compose_ramps, IN_RANGES},
    {compose_parameters, IN_RANGES},
    {compose_entries, IN_RANGES},
    {compose_ramp_ends, IN_RANGES},
    {compose_rotated, IN_RANGES},
    {compose_told_frequencies, IN_RANGES},
    {compose_weight_factors, IN_RANGES},
    {compose_emptied, IN_WHOLE},
    {compose_factors, IN_RANGES},
    {compose_moved, IN_RANGES},
    {compose_shares_of_logits, IN_RANGES},
    {compose_scores, IN_RANGES},
    {compose_dropped, IN_RANGES},
    {compose_slots, IN_RANGES},
    {compose_logits, IN_RANGES},
    {compose_added, IN_RANGES},
    {compose_streams, IN_RANGES},
    {compose_altered_outputs, IN_RANGES},
    {compose_altered_inputs, IN_RANGES},
    {compose_blocks, IN_RANGES},
    {compose_weighed_inputs, IN_RANGES},
    {compose_batches, IN_WHOLE},
    {compose_gathers, IN_WHOLE},
    {compose_partial_sums, IN_RANGES},
    {compose_rewritten, IN_RANGES},
    {compose_scales, IN_RANGES},
    {compose_tables, IN_RANGES},
    {compose_experts, IN_RANGES},
    {compose_batch_rows, IN_WHOLE},
    {compose_maps, IN_WHOLE},
    {compose_rows, IN_RANGES},
    {compose_averages, IN_RANGES},
    {compose_sorted, IN_WHOLE},
    {compose_mixing, IN_RANGES},
    {compose_contributions, IN_RANGES},
    {compose_other_shares, IN_RANGES},
    {compose_online, IN_RANGES},
    {compose_score_tables, IN_RANGES},
    {compose_stored, IN_RANGES},
    {compose_weighings, IN_RANGES},
    {compose_readings, IN_RANGES},
    {compose_vectors, IN_RANGES},
    {compose_sums, IN_RANGES},
    {compose_subsets, IN_RANGES},
    {compose_shares, IN_RANGES},
    {compose_mixtures, IN_RANGES},
    {compose_inputs, IN_RANGES},
    {compose_borrowed, IN_RANGES},
    {compose_embedding, IN_RANGES},
    {compose_lookups, IN_RANGES},
    {compose_elements, IN_RANGES},
    {compose_beside, IN_RANGES},
    {compose_terms, IN_RANGES},
    {compose_norms, IN_SETS},
    {compose_residuals, IN_SETS},
    {compose_turns, IN_SETS},
    {compose_positions, IN_SETS},
    {compose_gates, IN_SETS},
    {compose_weight_factors, IN_SETS},
    {compose_factors, IN_SETS},
    {compose_moved, IN_SETS},
    {compose_shares_of_logits, IN_SETS},
    {compose_added, IN_SETS},
    {compose_altered_outputs, IN_SETS},
    {compose_altered_inputs, IN_SETS},
    {compose_blocks, IN_SETS},
    {compose_rewritten, IN_SETS},
    {compose_tables, IN_SETS},
    {compose_experts, IN_SETS},
    {compose_vectors, IN_SETS},
    {compose_inputs, IN_SETS},
    {compose_borrowed, IN_SETS},
    {compose_norm_scales, IN_RANGES},
    {compose_row_divisors, IN_RANGES},
    {compose_columns, IN_RANGES},
    {compose_coded, IN_RANGES},
    {compose_projection, IN_RANGES},
    {compose_weight_maps, IN_RANGES},
    {compose_weight_orders, IN_RANGES},
    {compose_domains, IN_RANGES},
    {compose_static, IN_RANGES},
    {compose_clipped, IN_RANGES},
    {compose_hadamard, IN_RANGES},
    {compose_low_rank, IN_RANGES},
    {compose_foreign, IN_RANGES},
    {compose_attention_joined, IN_RANGES},
};

enum {
    OFFERS = sizeof offers / sizeof offers[0], // the last after pairs of the catalogue
    OFFERS_EVERYWHERE = 2
};

// Whether the parts of the point are counted as in a trace from position 0 on: where keys of
// earlier positions, or of caches, have columns too, only the causes of attention know them.
static bool has_parts(const composing *c) {
    const sinkproof_trace *trace = c->s->trials.suspect.trace;
    return sinkproof_trace_columns(trace) == sinkproof_trace_length(trace) ||
           !sinkproof_trace_point_is_by_head(c->point);
}

static bool is_of_attention(compose_candidates *offer) {
    return offer == compose_attention_everywhere || offer == compose_attention ||
           offer == compose_attention_joined;
}

// Of experts that are chosen, a few differ, and some rule at some place explains them by chance:
// the offers of choices alone are asked of them.
static bool is_asked(const composing *c, bool index, compose_candidates *offer) {
    if (index && offer != compose_choices && offer != compose_biased) return false;
    return has_parts(c) || is_of_attention(offer);
}

// Numbers that each layer has of its own may be said alike: then one finding tells all layers.
static void join_said_alike(search *s, size_t place) {
    const diagnosed_finding *last = &s->out->findings[s->out->n - 1];
    for (size_t i = 0; i + 1 < s->out->n; i++) {
        diagnosed_finding *f = &s->out->findings[i];
        bool same = f->n_alike == 1 && last->n_alike == 1 && f->points == last->points &&
                    f->alike[0].n == 1 && f->rows.end == last->rows.end;
        if (!same || strcmp(f->alike[0].mistakes[0]->id, last->alike[0].mistakes[0]->id) != 0 ||
            strcmp(f->alike[0].mistakes[0]->text, last->alike[0].mistakes[0]->text) != 0)
            continue;
        f->layers[place] = true;
        s->out->n--;
        return;
    }
}

// Asks an offer with the parts in which it looks.
static bool ask_offer(composing *c, const placed_offer *o) {
    size_t all = c->n_regions, from = o->in == IN_SETS ? c->n_ranges : 0;
    sinkproof_region kept[sizeof c->regions / sizeof c->regions[0]];
    memcpy(kept, c->regions, sizeof kept);
    c->n_regions = (o->in == IN_WHOLE ? 1 : o->in == IN_RANGES ? c->n_ranges : all) - from;
    memcpy(c->regions, kept + from, c->n_regions * sizeof *kept);
    bool fine = c->n_regions == 0 || o->ask(c);
    memcpy(c->regions, kept, sizeof kept);
    c->n_regions = all;
    return fine;
}

// Asks the candidates [first, end) of the offers.
static bool compose_point(search *s, size_t place, unsigned *left, sinkproof_trace_point point,
                          size_t first, size_t end) {
    if (sinkproof_trace_point_is_offered(point)) return true;
    const sinkproof_point_report *r = place_report(&s->trials, point, place);
    bool layered = sinkproof_trace_point_is_layered(point);
    size_t n = s->trials.j->n_tokens;
    composing c = {.s = s, .place = place, .n = n, .left = *left, .point = point, .report = r};
    c.elements = 1;
    for (size_t d = 0; d < r->rank; d++) c.elements *= r->shape[d];
    if (c.elements > COMPOSED_ELEMENTS) return true;
    const sinkproof_tensor *tensor = sinkproof_trace_find(s->trials.suspect.trace, point, r->layer);
    bool index = sinkproof_trace_point_is_index(point);
    if (!index) c.step = 2 * sinkproof_unit_roundoff(sinkproof_trace_format(tensor->dtype));
    if (layered) c.chosen_nk = &s->trials.j->chosen[place * n * s->trials.config->n_chosen];
    seen_sets seen = {.point = point, .elements = c.elements};
    uint8_t *marks = mark_outside_elements(&s->trials, r);
    double *numbers = calloc(4 * c.elements, sizeof *numbers);
    bool fine = marks != NULL && (numbers != NULL || fail_for_memory(s));
    if (fine) {
        seen.v = numbers, seen.lo = numbers + c.elements, seen.hi = numbers + 2 * c.elements;
        seen.mid = numbers + 3 * c.elements;
        fine = see_point(&c, &seen);
        c.v = seen.v, c.lo = seen.lo, c.hi = seen.hi, c.mid = seen.mid, c.marks = marks;
        c.least = least_width(&c);
    }
    fine = fine && (!has_parts(&c) || composing_find_regions(&c));
    for (size_t i = first; fine && c.found == NULL && i < end; i++)
        if (is_asked(&c, index, offers[i].ask)) fine = ask_offer(&c, &offers[i]);
    if (fine && c.found != NULL) {
        *left &= ~s->out->findings[s->out->n - 1].points;
        join_said_alike(s, place);
    }
    free(marks);
    free(numbers);
    return fine;
}

static bool compose_points(search *s, size_t place, unsigned *left, unsigned points, size_t first,
                           size_t end) {
    unsigned finite = ~failing_points_not_finite(&s->trials, place);
    bool fine = true;
    for (int p = 0; fine && p < TRACE_POINTS; p++)
        if (*left & points & finite & point_bit((sinkproof_trace_point)p))
            fine = compose_point(s, place, left, (sinkproof_trace_point)p, first, end);
    return fine;
}

enum { ATTENDED = 1u << TRACE_A6 | 1u << TRACE_A9 | 1u << TRACE_A10 | 1u << TRACE_A11 };

bool explain_attention(search *s, size_t place, unsigned *left) {
    return compose_points(s, place, left, ATTENDED, 0, OFFERS_EVERYWHERE);
}

bool explain_attention_joined(search *s, size_t place) {
    size_t at = s->out->n;
    unsigned points = s->out->findings[at - 1].points & ATTENDED, left = points;
    if (points == 0 || s->out->findings[at - 1].n_alike > 0) return true;
    if (!compose_points(s, place, &left, points, OFFERS - 1, OFFERS)) return false;
    if (left == points) return true;
    // it takes the place of the finding, or is told by that of another layer
    if (s->out->n > at) s->out->findings[at - 1] = s->out->findings[at];
    s->out->n -= 1;
    return true;
}

bool explain_by_composing(search *s, size_t place, unsigned *left) {
    return compose_points(s, place, left, ~0u, OFFERS_EVERYWHERE, OFFERS - 1);
}
