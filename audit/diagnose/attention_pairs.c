// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Two causes at once, where no cause alone is near: the nearest guesses of the families are joined
// with one another, and their numbers are fitted together.
#include "audit/diagnose/attention_hunt.h"
#include "audit/diagnose/attention_ranges.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { JOINED = 16, REFINED = 6 };

static const sinkproof_attending defined = SINKPROOF_ATTENDING;

// The members of a meaning but for the error of its numbers.
#define M(member)                                                                                  \
    { offsetof(sinkproof_attending, member), sizeof defined.member }
static const struct {
    size_t at, size;
} members[] = {
    M(first_row),     M(end_row),       M(row_step),     M(first_head),   M(end_head),
    M(heads),         M(window),        M(window_by),    M(later),        M(from),
    M(window_unit),   M(row_unit),      M(row_tile),     M(row_tile_end), M(block),
    M(leak),          M(leaks),         M(leak_number),  M(tiling),       M(prefix),
    M(across),        M(cache),         M(passes),       M(read),         M(head),
    M(group),         M(group_by),      M(group_of),     M(group_spared), M(query_by),
    M(transposed),    M(sink),          M(sink_layer),   M(sink_made),    M(sink_plus),
    M(sink_low),      M(sink_high),     M(sink_times),   M(sink_on_key),  M(sink_value),
    M(sink_count),    M(sink_per_part), M(renormalised), M(parting),      M(part),
    M(part_begin),    M(parts_kept),    M(merging),      M(score_times),  M(output_times),
    M(logits_times),  M(score_limit),   M(limit_soft),   M(score_plus),   M(score_rule),
    M(output_rule),   M(rule_number),   M(weighing),     M(sum_plus),     M(zero_keys),
    M(zeros_in_sink), M(scores_kept),   M(score_within), M(score_slope),  M(slopes),
    M(first_term),    M(end_term),      M(weight_low),   M(weight_high),  M(weights_kept),
    M(weights_over),  M(gates),         M(summing),      M(columns),      M(steps)};
#undef M

// Both causes in one; false: they change the same.
static bool join(const sinkproof_attending *a, const sinkproof_attending *b,
                 sinkproof_attending *out) {
    const char *as = (const char *)&defined;
    *out = *a;
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        size_t at = members[i].at, size = members[i].size;
        if (memcmp((const char *)b + at, as + at, size) == 0) continue;
        if (memcmp((const char *)a + at, as + at, size) != 0) return false;
        memcpy((char *)out + at, (const char *)b + at, size);
    }
    out->times_error = fmax(a->times_error, b->times_error);
    return true;
}

bool attention_is_one(const sinkproof_attending *how) {
    size_t changed = 0;
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        changed += memcmp((const char *)how + members[i].at, (const char *)&defined + members[i].at,
                          members[i].size) != 0;
    return changed == 1;
}

// The numbers of a cause that are fitted together; returns how many.
static size_t list_numbers(sinkproof_attending *m, double *number[ATTENTION_NUMBERS]) {
    fitted_member of[ATTENTION_NUMBERS];
    size_t all = attention_numbers_of(m, of), n = 0;
    for (size_t i = 0; i < all; i++)
        if (of[i].plain) number[n++] = of[i].number;
    return n;
}

static void sort_best(hunt *h) {
    for (size_t i = 1; i < h->n_best; i++)
        for (size_t j = i; j > 0 && h->best[j].misfit < h->best[j - 1].misfit; j--) {
            attention_guess one = h->best[j];
            h->best[j] = h->best[j - 1], h->best[j - 1] = one;
        }
}

// Pairs of numbers: neither number of a pair is near while the other is as defined.
static void fit_two_numbers(hunt *h) {
    sinkproof_attending m = defined;
    double *const pairs[][2] = {
        {&m.score_times, &m.output_times}, {&m.score_times, &m.sink_times},
        {&m.score_times, &m.sink_plus},    {&m.sink_plus, &m.output_times},
        {&m.sink_count, &m.output_times},  {&m.logits_times, &m.output_times},
        {&m.score_slope, &m.score_times},  {&m.sum_plus, &m.output_times}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        m = defined;
        hunt_offer_fitted_two(h, &m, pairs[i][0], pairs[i][1], false);
    }
}

void hunt_pairs(hunt *h) {
    sort_best(h);
    size_t n = h->n_best < JOINED ? h->n_best : JOINED;
    bool near = n > 0 && h->best[0].misfit < (double)h->view->n_failing * log(2);
    for (size_t i = 0; i < n && !near; i++)
        for (size_t j = i + 1; j < n; j++) {
            sinkproof_attending both;
            if (join(&h->best[i].how, &h->best[j].how, &both)) hunt_offer(h, &both);
        }
    if (!near) fit_two_numbers(h);
    attention_guess kept[REFINED];
    size_t refined = near ? 0 : h->n_kept < REFINED ? h->n_kept : REFINED;
    memcpy(kept, h->kept, refined * sizeof *kept);
    for (size_t i = 0; i < refined; i++) {
        double *number[ATTENTION_NUMBERS];
        if (list_numbers(&kept[i].how, number) == 2)
            hunt_offer_fitted_two(h, &kept[i].how, number[0], number[1], true);
    }
    h->n_best = 0;
}
