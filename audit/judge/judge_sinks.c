// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The sinks of attention as they are meant: whose, and what is made of them.
#include "audit/judge/judge_seen.h"

#include <math.h>
#include <stdlib.h>

// The logits of one head's sink of the layer, or of another layer, in each row of q_id.
static bool stored_logits(const judge_part *part, const block *b, const attention *a,
                          const sinkproof_setting *s, const sinkproof_planes *q_id, size_t h,
                          double *work, sinkproof_honest *b_i) {
    const sinkproof_config *c = part->pass->config;
    sinkproof_layer layer = *a->layer;
    int by = b->meant->sink_layer % (int)c->n_layers;
    if (by != 0)
        layer = sinkproof_model_layer(
            part->pass->model, (a->number + c->n_layers + (size_t)(by + 1) - 1) % c->n_layers);
    sinkproof_normaliser one = sinkproof_head_normaliser(c, &layer, h, work);
    return sinkproof_honest_sink_logits(s, &one, q_id, b_i);
}

static sinkproof_honest set_extreme(sinkproof_honest x, sinkproof_honest y, bool largest) {
    double (*const of)(double, double) = largest ? fmax : fmin;
    sinkproof_honest z = x;
    z.lo = of(x.lo, y.lo), z.hi = of(x.hi, y.hi), z.mid = of(x.mid, y.mid);
    z.likely_lo = of(x.likely_lo, y.likely_lo), z.likely_hi = of(x.likely_hi, y.likely_hi);
    z.var = fmax(x.var, y.var), z.spread = fmax(x.spread, y.spread);
    return z;
}

// The mean, the largest or the smallest of the sinks of all heads, or of those of head h's group.
static bool sink_of_several(const judge_part *part, const block *b, const attention *a,
                            const sinkproof_setting *s, const sinkproof_planes *q_id, size_t h,
                            double *work, sinkproof_honest *b_i) {
    sinkproof_sink_made made = b->meant->sink_made;
    sinkproof_head_counts n = head_counts(part);
    size_t each = n.heads / n.groups;
    bool mean = made == SINKPROOF_SINK_MEAN || made == SINKPROOF_SINK_OF_GROUP;
    bool all = made == SINKPROOF_SINK_MEAN || made == SINKPROOF_SINK_LARGEST ||
               made == SINKPROOF_SINK_SMALLEST;
    bool large = made == SINKPROOF_SINK_LARGEST || made == SINKPROOF_SINK_GROUP_LARGE;
    size_t first = all ? 0 : h / each * each, count = all ? n.heads : each;
    sinkproof_honest of = {0};
    for (size_t k = 0; k < count; k++) {
        if (!stored_logits(part, b, a, s, q_id, first + k, work, b_i)) return false;
        of = k == 0 ? b_i[0]
             : mean ? sinkproof_honest_add(of, b_i[0])
                    : set_extreme(of, b_i[0], large);
    }
    if (mean) {
        of = sinkproof_honest_mul(of, sinkproof_exact_set(1 / (double)count));
        of = sinkproof_honest_roundings(s, of, (double)count);
    }
    for (size_t r = 0; r < b->rows; r++) b_i[r] = of;
    return true;
}

static sinkproof_honest whole_number(sinkproof_honest x, bool cut) {
    double (*const of)(double) = cut ? trunc : nearbyint;
    return (sinkproof_honest){.lo = of(x.lo),
                              .hi = of(x.hi),
                              .likely_lo = of(x.likely_lo),
                              .likely_hi = of(x.likely_hi),
                              .mid = of(x.mid)};
}

// A sink's logit as it is made of the stored one.
static sinkproof_honest meant_sink(const sinkproof_attending *m, const sinkproof_setting *s,
                                   sinkproof_honest b) {
    double times = m->sink_times * m->logits_times, plus = m->sink_plus;
    if (m->sink_made == SINKPROOF_SINK_ABSOLUTE && b.mid < 0)
        b = sinkproof_honest_mul(b, sinkproof_exact_set(-1));
    if (m->sink_made == SINKPROOF_SINK_E4M3) b = sinkproof_honest_rounded(SINKPROOF_E4M3, b);
    if (m->sink_made == SINKPROOF_SINK_E5M2) b = sinkproof_honest_rounded(SINKPROOF_E5M2, b);
    if (m->sink_made == SINKPROOF_SINK_WHOLE || m->sink_made == SINKPROOF_SINK_CUT)
        b = whole_number(b, m->sink_made == SINKPROOF_SINK_CUT);
    if (m->sink_low > -INFINITY || m->sink_high < INFINITY)
        b = sinkproof_honest_clamp(b, m->sink_low, m->sink_high);
    if (times == 1 && plus == 0) return b;
    if (times != 1) b = sinkproof_honest_inside(s, set_times(m, b, times));
    if (plus != 0) {
        double error = m->times_error * fabs(plus);
        sinkproof_format stored = s->policy->at[AT_A9].format; // the number may be stored so too
        if (stored < SINKPROOF_FORMATS && stored != SINKPROOF_REAL)
            error += sinkproof_unit_roundoff(stored) * fabs(plus);
        b = sinkproof_honest_add(b, sinkproof_set_around(plus, error, error, 0, error));
        b = sinkproof_honest_inside(s, b);
    }
    // a sink that is stored in a narrow format may be rounded to it again
    sinkproof_format as = s->policy->at[AT_A9].format;
    if (as != SINKPROOF_REAL) b = sinkproof_honest_hull(b, sinkproof_honest_rounded(as, b));
    return b;
}

bool sink_logits(judge_part *part, const block *b, const attention *a, const sinkproof_setting *s,
                 const sinkproof_planes *q_id, sinkproof_honest *b_i) {
    const sinkproof_config *c = part->pass->config;
    const sinkproof_attending *m = b->meant;
    bool by_row = m->sink.choice == SINKPROOF_HEAD_ROW, fine = true;
    bool several =
        m->sink_made >= SINKPROOF_SINK_MEAN && m->sink_made <= SINKPROOF_SINK_GROUP_SMALL;
    double *work = part_allocate(part, sinkproof_normaliser_work(c), sizeof *work);
    if (work == NULL) return false;
    for (size_t r = 0; fine && r < (by_row ? b->rows : 1); r++) {
        size_t h =
            sinkproof_attending_head(m->sink, head_counts(part), block_head(part, b), b->first + r);
        sinkproof_planes rows =
            by_row ? sinkproof_planes_rows(q_id, r, 1) : sinkproof_planes_rows(q_id, 0, b->rows);
        fine = several ? sink_of_several(part, b, a, s, q_id, h, work, b_i)
                       : stored_logits(part, b, a, s, &rows, h, work, b_i + r);
    }
    for (size_t r = 0; fine && r < b->rows; r++) b_i[r] = meant_sink(m, s, b_i[r]);
    free(work);
    return fine;
}
