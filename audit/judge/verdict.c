// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Compares a point: the engine's values are checked against their honest sets and then take their
// place. Also runs the parts of the pass, each with its own reports, and merges them in the order
// of the parts.
#include "audit/judge/judge_internal.h"
#include "audit/trace/trace_points.h"
#include "model/bf16.h"
#include "proofs/bounds/worst.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *sinkproof_verdict_name(sinkproof_verdict verdict) {
    static const char *const names[] = {"absent",    "exact",      "within",
                                        "undecided", "suspicious", "bug"};
    size_t v = (size_t)verdict;
    return v < sizeof names / sizeof names[0] ? names[v] : "unknown";
}

sinkproof_setting pass_setting(const judge_pass *pass, size_t elements) {
    return sinkproof_setting_for(&pass->before, elements, pass->options->rate);
}

bool point_is_traced(const judge_pass *pass, sinkproof_trace_point point, size_t layer) {
    return sinkproof_trace_find(pass->trace, point, layer) != NULL;
}

// ---- sets

sinkproof_honest set_hull(sinkproof_honest x, sinkproof_honest y) {
    x = sinkproof_honest_hull(x, y);
    // Which of the two sets applies is no random error, and the rounding leans accordingly.
    x.var = x.spread = x.order = 0, x.bias = INFINITY;
    return x;
}

// ---- histograms

// Bins of a quarter of an octave: the exponent and the two bits after it, from 2^-32 on.
enum { FIRST_BIN = (1023 - 32) * 4 };

static void histogram_add(sinkproof_histogram *histogram, double x) {
    uint64_t pattern;
    memcpy(&pattern, &x, sizeof pattern);
    int bin = x > 0 ? (int)(pattern >> 50) - FIRST_BIN : 0;
    bin = bin < 0 ? 0 : bin >= SINKPROOF_HISTOGRAM ? SINKPROOF_HISTOGRAM - 1 : bin;
    histogram->counts[bin]++;
    histogram->total++;
}

double histogram_median(const sinkproof_histogram *histogram) {
    size_t below = 0;
    for (int bin = 0; bin < SINKPROOF_HISTOGRAM; bin++) {
        below += histogram->counts[bin];
        if (2 * below >= histogram->total && below > 0) // the bin's middle
            return bin == 0 ? 0 : ldexp(1 + (bin % 4 + 0.5) / 4, bin / 4 - 32);
    }
    return 0;
}

void sinkproof_histogram_merge(sinkproof_histogram *into, const sinkproof_histogram *from) {
    into->total += from->total;
    for (int bin = 0; bin < SINKPROOF_HISTOGRAM; bin++) into->counts[bin] += from->counts[bin];
}

// ---- one element, one piece

// The distance of v to x in ulp; larger than every number if v is NaN.
static double gap_in_ulp(const sinkproof_honest *x, double v, double ulp) {
    double gap = (v > x->hi ? v - x->hi : x->lo - v) / ulp;
    return gap < INFINITY ? gap : INFINITY;
}

// The same in half-widths of the set, each at least half an ulp of the format.
static double gap_in_bounds(const sinkproof_honest *x, double v, sinkproof_format format) {
    double half = fmax(sinkproof_radius(x), sinkproof_ulp(format, x->mid) / 2);
    double bounds = (v > x->hi ? v - x->hi : x->lo - v) / half;
    return bounds < INFINITY ? bounds : INFINITY;
}

// A set is unbounded where sums may overflow or an input is not finite: an honest engine may hold
// NaN there, and so may a faulty one.
static bool is_open_nan(double v, const sinkproof_honest *x) {
    return isnan(v) && sinkproof_is_unknown(x);
}

static void keep_first(size_t count, size_t *first, size_t of, size_t at) {
    if (of > 0 && (count == 0 || at < *first)) *first = at;
}

static void count_not_finite(sinkproof_point_report *report, size_t at, double v) {
    if (isfinite(v)) return;
    bool nan = isnan(v);
    keep_first(nan ? report->nans : report->infinities,
               nan ? &report->first_nan : &report->first_infinity, 1, at);
    *(nan ? &report->nans : &report->infinities) += 1;
}

static void compare_element(sinkproof_point_report *report, sinkproof_format format, size_t at,
                            double v, const sinkproof_honest *x) {
    count_not_finite(report, at, v);
    if (is_open_nan(v, x)) {
        report->elements++, report->open_nans++;
        return;
    }
    bool inside = v >= x->lo && v <= x->hi; // NaN is outside
    bool likely = v >= x->likely_lo && v <= x->likely_hi;
    double radius = sinkproof_radius(x), ulp = sinkproof_fast_ulp(format, x->mid);
    double share = v == x->mid ? 0 : fabs(v - x->mid) / radius, excess = share;
    report->elements++;
    if (x->lo != x->hi) {
        report->several++;
        histogram_add(&report->shares, share);
    }
    histogram_add(&report->widths, sinkproof_likely_distance(x) / ulp);
    double gap = fabs(v - x->mid) / ulp;
    if (!isnan(gap)) histogram_add(&report->gaps, gap);
    if (!inside) { // ranks before every element inside
        report->outside++;
        excess = fmin(1e6 + gap_in_ulp(x, v, ulp), 1e300);
        report->farthest = sinkproof_keep_worst(report->farthest, gap_in_bounds(x, v, format));
    } else if (!likely) {
        report->unlikely++;
        excess = 1e3 + share;
    }
    if (inside && share > report->share_worst) report->share_worst = share;
    if (excess > report->worst_excess || report->elements == 1) {
        report->worst_excess = excess;
        report->excess_ulp = inside ? 0 : gap_in_ulp(x, v, ulp);
        report->worst_at = at, report->worst_value = v, report->worst_set = *x;
    }
}

static size_t piece_element_place(const trace_piece *piece, size_t i) {
    if (piece->at_i != NULL) return piece->at_i[i];
    return piece->apart != 0 && i + 1 == piece->count ? piece->apart : piece->offset + i;
}

// The same, up to SINKPROOF_MEASURED elements in vectors, where none is the worst so far.
static void compare_elements(sinkproof_point_report *report, sinkproof_format format,
                             const trace_piece *piece, size_t first, size_t n, const double *v,
                             sinkproof_honest *x) {
    sinkproof_measures m;
    sinkproof_measure(format, n, v, x, &m);
    for (size_t i = 0; i < n; i++) {
        if (m.odd[i] != 0) sinkproof_honest_store(format, 1, &x[i]);
        if (m.odd[i] != 0 || report->elements == 0 || m.share[i] > report->worst_excess) {
            compare_element(report, format, piece_element_place(piece, first + i), v[i], &x[i]);
            continue;
        }
        report->elements++;
        if (x[i].lo != x[i].hi) {
            report->several++;
            histogram_add(&report->shares, m.share[i]);
        }
        histogram_add(&report->widths, m.width[i]);
        histogram_add(&report->gaps, m.gap[i]);
        if (m.share[i] > report->share_worst) report->share_worst = m.share[i];
    }
}

// Counts the undecided elements: those with unbounded sets, and all the others if their sets are
// together as wide as the operation's effect, so that an engine without the operation might pass as
// well. A set that holds only an infinity is decided.
static size_t count_undecided(const trace_piece *piece, const sinkproof_honest *x) {
    double width = 0, size = 0;
    size_t without_bound = 0, bounded = 0;
    for (size_t i = 0; i < piece->count; i++) {
        double radius = sinkproof_likely_distance(&x[i]);
        double added = x[i].mid - (piece->skipped != NULL ? piece->skipped[i] : 0);
        if (isfinite(radius) && isfinite(added))
            width += radius * radius, size += added * added, bounded++;
        else if (x[i].lo != x[i].hi)
            without_bound++;
    }
    return without_bound + (width != 0 && !(width < size) ? bounded : 0);
}

// Whether the errors of a point's elements are independent, as drift assumes. They are not when
// many elements share an input that is known only as a set, nor when exponentials are rounded
// before the division: those of equal tokens all err the same way.
static bool errors_are_independent(const judge_pass *pass, sinkproof_trace_point point,
                                   size_t layer) {
    // rows that read one key behind a prefix share its set
    if (pass->prefix != NULL && point >= TRACE_A6 && point <= TRACE_A11) return false;
    if (point == TRACE_A9 && pass->policy->at[AT_A9_UNNORM].format != SINKPROOF_REAL &&
        !sinkproof_policy_rounds_weights_once(pass->policy))
        return false;
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    size_t n = sinkproof_trace_inputs(pass->config, point, layer, inputs);
    for (size_t i = 0; i < n; i++) {
        sinkproof_trace_point from = inputs[i].point;
        bool known =
            from == TRACE_T0 || sinkproof_trace_point_is_index(from) ||
            point_is_traced(pass, from, inputs[i].layer) ||
            (point == TRACE_A11 && from == TRACE_A9 && point_is_traced(pass, TRACE_A10, layer));
        bool own = inputs[i].kind == SINKPROOF_INPUT_EACH &&
                   errors_are_independent(pass, from, inputs[i].layer);
        if (!known && !own) return false;
    }
    return true;
}

static sinkproof_point_report *part_report(judge_part *part, sinkproof_trace_point point) {
    if (part->reports[point] == NULL)
        part->reports[point] = part_allocate(part, 1, sizeof *part->reports[point]);
    return part->reports[point];
}

// The engine's values of a piece.
static void engine_values(const sinkproof_tensor *tensor, const trace_piece *piece, double *v) {
    size_t size = sinkproof_dtype_size(tensor->dtype);
    size_t together = piece->count - (piece->apart != 0);
    sinkproof_decode_many(tensor->dtype, tensor->data + piece->offset * size, 1, together, v);
    if (piece->apart != 0) v[together] = sinkproof_tensor_value(tensor, piece->apart);
}

static void mark_outside(const judge_part *part, const trace_piece *piece, const double *v,
                         const sinkproof_honest *x) {
    const sinkproof_judge_options *o = part->pass->options;
    for (size_t i = 0; o->witness != NULL && i < piece->count; i++)
        o->witness(o->witnessing, piece->point, part->layer, piece_element_place(piece, i), v[i],
                   &x[i]);
    if (o->marks == NULL || o->marked != piece->point) return;
    if (sinkproof_trace_point_is_layered(piece->point) && o->marked_layer != part->layer) return;
    for (size_t i = 0; i < piece->count; i++)
        if (!is_open_nan(v[i], &x[i]) && !(v[i] >= x[i].lo && v[i] <= x[i].hi))
            o->marks[piece_element_place(piece, i)] = 1;
}

// Records the element at which the pass ends.
static void refuse_piece(const judge_pass *pass, const trace_piece *piece,
                         const sinkproof_point_report *report) {
    sinkproof_refusal *r = pass->options->refusal;
    if (r == NULL || (r->points >> piece->point & 1) == 0 || report->outside == 0) return;
    if (report->farthest >= r->beyond) __atomic_store_n(&r->refused, true, __ATOMIC_RELAXED);
}

// Compares the values v of a piece with their sets x, which are first rounded to the trace's
// format.
static void compare_piece(judge_part *part, const trace_piece *piece,
                          const sinkproof_tensor *tensor, const double *v, sinkproof_honest *x,
                          sinkproof_point_report *report) {
    const judge_pass *pass = part->pass;
    sinkproof_format format = sinkproof_trace_format(tensor->dtype);
    for (size_t i = 0; i < piece->count; i += SINKPROOF_MEASURED) {
        size_t n = piece->count - i < SINKPROOF_MEASURED ? piece->count - i : SINKPROOF_MEASURED;
        compare_elements(report, format, piece, i, n, v + i, x + i);
    }
    mark_outside(part, piece, v, x);
    refuse_piece(pass, piece, report);
    if (pass_has_ended(pass)) return;
    report->undecided += count_undecided(piece, x);
    // In binary64 the emulation is no more accurate than the engine: drift says nothing.
    if (pass->policy->inside == SINKPROOF_F32 &&
        errors_are_independent(pass, piece->point, part->layer))
        sinkproof_drift_row(&report->drift_sums, piece->count, v, x, piece->common,
                            (double)piece->token / (double)pass->n);
    part->failed = part->failed || report->drift_sums.failed;
}

// Compares the elements of a piece that are in the region.
static void compare_region(judge_part *part, const trace_piece *piece,
                           const sinkproof_tensor *tensor, const double *v,
                           const sinkproof_honest *x, sinkproof_point_report *report) {
    size_t *at_i = part_allocate(part, piece->count, sizeof *at_i), kept = 0;
    double *some_v = part_allocate(part, 2 * piece->count, sizeof *some_v);
    double *skipped = some_v != NULL ? some_v + piece->count : NULL;
    sinkproof_honest *some_x = part_allocate(part, piece->count, sizeof *some_x);
    for (size_t i = 0; !part->failed && i < piece->count; i++) {
        size_t at = piece_element_place(piece, i);
        if (!judge_region_holds(part->pass, piece->point, part->layer, at)) continue;
        if (piece->skipped != NULL) skipped[kept] = piece->skipped[i];
        at_i[kept] = at, some_v[kept] = v[i], some_x[kept++] = x[i];
    }
    trace_piece some = *piece;
    some.count = kept, some.apart = 0, some.at_i = at_i;
    if (piece->skipped != NULL) some.skipped = skipped;
    if (!part->failed && kept > 0) compare_piece(part, &some, tensor, some_v, some_x, report);
    free(at_i);
    free(some_v);
    free(some_x);
}

static bool is_compared(const judge_part *part, sinkproof_trace_point point, size_t token) {
    const sinkproof_rows *rows = part->pass->options->rows;
    return point_doing(part->pass, point, part->layer) == DOING_JUDGED &&
           (rows == NULL || (token >= rows->first && token < rows->end));
}

bool piece_compare(judge_part *part, const trace_piece *piece, sinkproof_honest *x) {
    const judge_pass *pass = part->pass;
    const sinkproof_tensor *tensor = sinkproof_trace_find(pass->trace, piece->point, part->layer);
    bool open = point_may_be_unrounded(pass, piece->point);
    if (tensor == NULL) set_read_untraced(pass, piece->point, piece->count, x);
    if (tensor == NULL || piece->count == 0) return false;
    bool moves = !piece->moved && judge_moves(pass, piece->point, part->layer);
    bool judged = !moves && is_compared(part, piece->point, piece->token);
    for (size_t i = 0; moves && pass->unmoved != NULL && i < piece->count; i++)
        pass->unmoved[piece_element_place(piece, i)] = x[i];
    sinkproof_point_report *report = judged ? part_report(part, piece->point) : NULL;
    double *v = part_allocate(part, piece->count, sizeof *v);
    sinkproof_honest *unrounded =
        open ? part_allocate(part, piece->count, sizeof *unrounded) : NULL;
    if ((judged && report == NULL) || v == NULL || (open && unrounded == NULL)) {
        free(v);
        free(unrounded);
        return false;
    }
    for (size_t i = 0; open && i < piece->count; i++) {
        unrounded[i] = x[i];
        x[i] = set_after_rounding(pass, piece->point, x[i]);
    }
    engine_values(tensor, piece, v);
    if (judged && pass->options->region != NULL)
        compare_region(part, piece, tensor, v, x, report);
    else if (judged)
        compare_piece(part, piece, tensor, v, x, report);
    for (size_t i = 0; i < piece->count; i++)
        x[i] = isnan(v[i]) ? sinkproof_unknown_set(v[i])
               : open      ? set_read_value(pass, piece->point, v[i], unrounded[i])
                           : sinkproof_exact_set(v[i]);
    free(v);
    free(unrounded);
    return true;
}

void piece_compare_zeros(judge_part *part, sinkproof_trace_point point, size_t offset,
                         size_t count) {
    const sinkproof_tensor *tensor = sinkproof_trace_find(part->pass->trace, point, part->layer);
    if (tensor == NULL || count == 0) return;
    if (judge_moves(part->pass, point, part->layer)) return; // `unmoved` is 0 there
    if (!is_compared(part, point, offset / tensor->shape[2] % part->pass->n)) return;
    sinkproof_point_report *report = part_report(part, point);
    enum { AT_ONCE = 256 };
    double v[AT_ONCE];
    for (size_t done = 0; report != NULL && done < count; done += AT_ONCE) {
        size_t some = count - done < AT_ONCE ? count - done : AT_ONCE, zeros = 0;
        trace_piece piece = {.point = point, .offset = offset + done, .count = some};
        engine_values(tensor, &piece, v);
        while (zeros < some && v[zeros] == 0) zeros++;
        report->elements += zeros; // equal to the only value of their sets
        report->widths.total += zeros, report->widths.counts[0] += zeros;
        for (size_t i = zeros; i < some; i++) {
            sinkproof_honest zero = sinkproof_exact_set(0);
            const trace_piece one = {.point = point, .offset = offset + done + i, .count = 1};
            if (!judge_region_holds(part->pass, point, part->layer, one.offset)) continue;
            compare_element(report, sinkproof_trace_format(tensor->dtype), one.offset, v[i], &zero);
            mark_outside(part, &one, &v[i], &zero);
            refuse_piece(part->pass, &one, report);
        }
    }
}

size_t piece_outside(const judge_part *part, const trace_piece *piece, const sinkproof_honest *x) {
    const sinkproof_tensor *tensor =
        sinkproof_trace_find(part->pass->trace, piece->point, part->layer);
    bool open = point_may_be_unrounded(part->pass, piece->point);
    size_t outside = 0;
    for (size_t i = 0; tensor != NULL && i < piece->count; i++) {
        double v = sinkproof_tensor_value(tensor, piece_element_place(piece, i));
        sinkproof_honest stored = open ? set_after_rounding(part->pass, piece->point, x[i]) : x[i];
        stored = sinkproof_honest_rounded(sinkproof_trace_format(tensor->dtype), stored);
        outside += !(v >= stored.lo && v <= stored.hi);
    }
    return outside;
}

// ---- parts

void *part_allocate(judge_part *part, size_t count, size_t size) {
    void *p = calloc(count > 0 ? count : 1, size);
    part->failed = part->failed || p == NULL;
    return p;
}

static void report_merge(sinkproof_point_report *into, const sinkproof_point_report *from) {
    if (from->elements == 0) return;
    if (into->elements == 0 || from->worst_excess > into->worst_excess) {
        into->worst_excess = from->worst_excess, into->excess_ulp = from->excess_ulp;
        into->worst_at = from->worst_at, into->worst_value = from->worst_value;
        into->worst_set = from->worst_set;
    }
    keep_first(into->nans, &into->first_nan, from->nans, from->first_nan);
    keep_first(into->infinities, &into->first_infinity, from->infinities, from->first_infinity);
    into->elements += from->elements, into->several += from->several;
    into->outside += from->outside, into->unlikely += from->unlikely;
    into->undecided += from->undecided, into->open_nans += from->open_nans;
    into->nans += from->nans, into->infinities += from->infinities;
    into->farthest = sinkproof_keep_worst(into->farthest, from->farthest);
    into->share_worst = fmax(into->share_worst, from->share_worst); // never NaN: inside the set
    sinkproof_histogram_merge(&into->shares, &from->shares);
    sinkproof_histogram_merge(&into->widths, &from->widths);
    sinkproof_histogram_merge(&into->gaps, &from->gaps);
    sinkproof_drift_merge(&into->drift_sums, &from->drift_sums);
    into->errors.truth += from->errors.truth, into->errors.error += from->errors.error;
    into->errors.local += from->errors.local, into->errors.inherited += from->errors.inherited;
}

void report_free(sinkproof_point_report *report) {
    if (report != NULL) sinkproof_drift_free(&report->drift_sums);
    free(report);
}

static bool part_merge(judge_pass *pass, judge_part *part) {
    bool fine = !part->failed;
    for (int p = 0; p < TRACE_POINTS; p++) {
        sinkproof_point_report *from = part->reports[p];
        if (from == NULL) continue;
        sinkproof_trace_point point = (sinkproof_trace_point)p;
        size_t layer =
            sinkproof_trace_point_is_layered(point) ? part->layer : pass->config->n_layers;
        sinkproof_point_report **into = &pass->report_of[layer * TRACE_POINTS + (size_t)p];
        if (*into == NULL)
            *into = from;
        else
            report_merge(*into, from), report_free(from);
        fine = fine && !(*into)->drift_sums.failed;
    }
    return fine;
}

bool judge_in_parts(judge_pass *pass, size_t layer, size_t count, part_work *work, void *of) {
    enum { AT_ONCE = 128 }; // bounds the memory of the reports
    judge_part *parts = calloc(AT_ONCE, sizeof *parts);
    bool fine = parts != NULL;
    for (size_t first = 0; fine && first < count; first += AT_ONCE) {
        size_t some = count - first < AT_ONCE ? count - first : AT_ONCE;
#pragma omp parallel for schedule(dynamic, 1) if (some > 1 && !pass->serial)
        for (size_t p = 0; p < some; p++) {
            parts[p] = (judge_part){.pass = pass, .layer = layer};
            if (!pass_has_ended(pass)) work(&parts[p], first + p, of);
        }
        for (size_t p = 0; p < some; p++) fine = part_merge(pass, &parts[p]) && fine;
    }
    free(parts);
    return fine;
}

typedef struct token_work {
    part_work *work;
    void *of;
    size_t each;
} token_work;

static void judge_token_range(judge_part *part, size_t index, void *of) {
    const token_work *w = of;
    size_t n = part->pass->n, first = index * w->each;
    size_t end = n - first < w->each ? n : first + w->each;
    for (size_t i = first; !part->failed && !pass_has_ended(part->pass) && i < end; i++)
        if (!pass_leaves_out_row(part->pass, i)) w->work(part, i, w->of);
}

bool judge_each_token(judge_pass *pass, size_t layer, size_t each, part_work *work, void *of) {
    token_work w = {work, of, each};
    return judge_in_parts(pass, layer, (pass->n + each - 1) / each, judge_token_range, &w);
}

double sinkproof_judgement_misfit(const sinkproof_judgement *j) {
    double misfit = 0;
    for (size_t i = 0; i < j->n_reports; i++) {
        misfit += j->reports[i].verdict == SINKPROOF_VERDICT_BUG ? 1e6 : 0;
        misfit += j->reports[i].verdict == SINKPROOF_VERDICT_SUSPICIOUS ? 1 : 0;
    }
    return misfit;
}
