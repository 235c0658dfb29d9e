// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Attention going back, head by head: the weights as they were kept or as they are recomputed from
// the log-sum-exp, the weights' gradients, D in either way, the scores' gradients, and the sums
// over keys, over queries and over the heads of a group.
#include "audit/judge/judge_backward_attention.h"
#include "proofs/bounds/bounds.h"

#include <stdlib.h>
#include <string.h>

typedef sinkproof_near near_set;
typedef sinkproof_backward_inputs inputs;

// What one head is computed in: a row at a time, and what the rows add to the keys.
typedef struct head_room {
    near_set *p_j, *dp_j, *ds_j; // [n], of the keys that the row sees
    near_set *db_i;
    near_set *z_j, *other_j; // of one row
    sinkproof_honest *set_j, *alpha_j;
    sinkproof_gradient_terms *dk_jd, *dv_jd; // [n, dim]; NULL: not asked for
} head_room;

// The keys [first, end) of a row, as they are read going back and as the forward pass saw them.
typedef struct row_sight {
    size_t first, end, seen_first, seen_end;
} row_sight;

static row_sight row_sees(const inputs *in, size_t i) {
    size_t begins = in->begins_n != NULL ? in->begins_n[i] : 0, first = begins;
    if (in->window > 0 && i + 1 - begins > in->window) first = i + 1 - in->window;
    size_t last = i + 1; // the end of the sequence, where later keys are read
    while (in->meaning->no_mask && last < in->n &&
           (in->begins_n != NULL ? in->begins_n[last] : 0) == begins)
        last++;
    return (row_sight){.first = in->meaning->no_window ? begins : first,
                       .end = in->meaning->no_mask ? last : i + 1,
                       .seen_first = first,
                       .seen_end = i + 1};
}

static const near_set *at_head(const near_set *x, const inputs *in, size_t row, size_t heads,
                               size_t h) {
    return x + (row * heads + h) * in->dim;
}

static size_t group_of(const inputs *in, size_t h) {
    return h / (in->heads / in->groups);
}

// ---- weights ---------------------------------------------------------------------------------

static near_set row_score(const inputs *in, const sinkproof_setting *s, size_t h, size_t i,
                          size_t j) {
    if (in->scores != NULL && j <= i) {
        near_set z = in->scores[(h * in->n + i) * in->n + j];
        if (in->q == NULL || in->k == NULL) return z;
        sinkproof_near again =
            sinkproof_gradient_dot(in->arithmetic, in->dim, at_head(in->q, in, i, in->heads, h), 1,
                                   at_head(in->k, in, j, in->groups, group_of(in, h)), 1, 4, 0);
        again = sinkproof_near_of(sinkproof_honest_score(s, in->dim, sinkproof_near_set(again)));
        return in->arithmetic->weights_kept ? z : sinkproof_near_hull(z, again);
    }
    near_set z =
        sinkproof_gradient_dot(in->arithmetic, in->dim, at_head(in->q, in, i, in->heads, h), 1,
                               at_head(in->k, in, j, in->groups, group_of(in, h)), 1, 4, 0);
    return sinkproof_near_of(sinkproof_honest_score(s, in->dim, sinkproof_near_set(z)));
}

static bool has_scores(const inputs *in) {
    return in->scores != NULL || (in->q != NULL && in->k != NULL);
}

static void fill_scores(const inputs *in, const sinkproof_setting *s, size_t h, size_t i,
                        size_t first, size_t end, near_set *z_j) {
    for (size_t j = first; j < end; j++) z_j[j - first] = row_score(in, s, h, i, j);
}

// The log-sum-exp that the weights of a row are recomputed from. z_j: the row's own scores, of the
// keys that `see` says; other_j: room for those of another row.
static near_set read_lse(const inputs *in, const sinkproof_setting *s, size_t h, size_t i,
                         double sink, const near_set *z_j, near_set *other_j) {
    sinkproof_lse_read read = in->meaning->lse;
    row_sight see = row_sees(in, i);
    if (read == SINKPROOF_LSE_OWN || read == SINKPROOF_LSE_WITHOUT_SINK)
        return sinkproof_near_lse(in->arithmetic, see.seen_end - see.seen_first,
                                  z_j + (see.seen_first - see.first),
                                  read == SINKPROOF_LSE_OWN ? sink : -INFINITY);
    size_t from = read == SINKPROOF_LSE_OF_ROW && i > 0 ? i - 1 : i;
    size_t head = read == SINKPROOF_LSE_OF_HEAD ? (h + 1) % in->heads : h;
    see = row_sees(in, from);
    fill_scores(in, s, head, from, see.seen_first, see.seen_end, other_j);
    return sinkproof_near_lse(in->arithmetic, see.seen_end - see.seen_first, other_j,
                              in->sink_h[head]);
}

static bool weights_are_altered(const sinkproof_backward_meaning *m) {
    return m->lse != SINKPROOF_LSE_OWN || m->no_window || m->no_mask || m->sink_in_base_2;
}

// The weights of a row and of its sink, P_ij and the last, into p_ij and *sink_weight.
static bool row_weights(const inputs *in, const sinkproof_setting *s, head_room *room, size_t h,
                        size_t i, near_set *sink_weight) {
    row_sight see = row_sees(in, i);
    size_t seen = see.end - see.first, n = in->n;
    near_set *p_j = room->p_j;
    const near_set *stored = in->weights != NULL ? in->weights + (h * n + i) * (n + 1) : NULL;
    double sink = in->sink_h[h], common;
    bool altered =
        in->meaning->lse != SINKPROOF_LSE_OWN || in->meaning->no_window || in->meaning->no_mask;
    bool kept = in->arithmetic->weights_kept && !altered;
    if (stored != NULL && !altered) {
        memcpy(p_j + see.first, stored + see.first, seen * sizeof *p_j);
        *sink_weight = stored[n];
        if (kept) return true;
    }
    sinkproof_honest b = sinkproof_honest_at(s, AT_A8, sinkproof_exact_set(sink));
    fill_scores(in, s, h, i, see.first, see.end, room->z_j);
    if (!altered && stored == NULL) { // as the forward pass may have made them
        for (size_t j = 0; j < seen; j++) room->set_j[j] = sinkproof_near_set(room->z_j[j]);
        if (!sinkproof_honest_softmax(s, AT_A9, seen, room->set_j, b, room->alpha_j, &common))
            return false;
        for (size_t j = 0; j < seen; j++) p_j[see.first + j] = sinkproof_near_of(room->alpha_j[j]);
        *sink_weight = sinkproof_near_of(room->alpha_j[seen]);
        if (kept) return true;
    }
    near_set lse = read_lse(in, s, h, i, b.mid, room->z_j, room->other_j), again;
    for (size_t j = 0; j < seen; j++) {
        again = sinkproof_near_weight(in->arithmetic, room->z_j[j], lse);
        near_set *p = &p_j[see.first + j];
        *p = altered ? again : sinkproof_near_hull(*p, again);
    }
    again = sinkproof_near_weight(in->arithmetic, sinkproof_near_of(b), lse);
    if (sink == -INFINITY) again = (near_set){0, 0};
    *sink_weight = altered ? again : sinkproof_near_hull(*sink_weight, again);
    return true;
}

// ---- a row going back ------------------------------------------------------------------------

static double stores(const inputs *in) {
    return in->arithmetic->stored_between ? 1 : 0;
}

static near_set weight_gradient(const inputs *in, size_t h, size_t i, size_t j) {
    if (in->dweights != NULL && j <= i) return in->dweights[(h * in->n + i) * in->dweights_row + j];
    near_set dp =
        sinkproof_gradient_dot(in->arithmetic, in->dim, at_head(in->dout, in, i, in->heads, h), 1,
                               at_head(in->v, in, j, in->groups, group_of(in, h)), 1, 1, 0);
    return in->arithmetic->stored_between ? sinkproof_near_narrowed(in->arithmetic, dp) : dp;
}

//> grad.delta
// How far <dO, O> of an output that is not known may be from sum_j P_j dP_j. Weights that meet the
// values may be rounded to the narrow format, each once for all coordinates, as may their sum; and
// so may each coordinate of the output:
//   D = sum_j P_j (1 + e_j) sum_d dO_d v_jd (1 + t_jd) (1 + n_d)
// with |e_j| at most two narrow units, |n_d| at most one, and t_jd the roundings of both sums.
static double output_delta_off(const inputs *in, const near_set *p_j, const near_set *dp_j,
                               const near_set *do_d, size_t h, const row_sight *see) {
    const sinkproof_gradient_arithmetic *a = in->arithmetic;
    double narrow = a->narrow != SINKPROOF_REAL ? a->narrow_u : 0, off = 0;
    double count = (double)(in->dim + see->seen_end - see->seen_first), sizes = 0;
    double sums = sinkproof_gamma(a->each * count + 4, a->u);
    for (size_t j = see->seen_first; j < see->seen_end; j++)
        off += (2 * narrow * sinkproof_near_size(p_j[j]) + a->narrow_least) *
               sinkproof_near_size(dp_j[j]);
    for (size_t d = 0; d < in->dim; d++) {
        double o = 0, open = 0, size = 0;
        for (size_t j = see->seen_first; j < see->seen_end; j++) {
            near_set v = at_head(in->v, in, j, in->groups, group_of(in, h))[d];
            o += p_j[j].mid * v.mid;
            open += p_j[j].off * sinkproof_near_size(v) + fabs(p_j[j].mid) * v.off;
            size += sinkproof_near_size(p_j[j]) * sinkproof_near_size(v);
        }
        double stored = fabs(o) + open + (2 * narrow + sums) * size;
        off += sinkproof_near_size(do_d[d]) *
               (narrow * stored + 2 * sums * size + a->narrow_least + 2 * count * a->least);
        sizes += sinkproof_near_size(do_d[d]);
    }
    return 1.01 * (off + 2 * count * a->least * (1 + sizes));
}

// D of a row: the sum over its keys, or <dO, O> with the output as it was stored or as it was
// computed; whichever the engine takes. Of altered weights the two ways differ, and one is meant.
static near_set row_delta(const inputs *in, const head_room *room, size_t h, size_t i,
                          const row_sight *see) {
    const sinkproof_gradient_arithmetic *a = in->arithmetic;
    const near_set *p_j = room->p_j, *dp_j = room->dp_j;
    near_set delta = sinkproof_gradient_dot(a, see->end - see->first, p_j + see->first, 1,
                                            dp_j + see->first, 1, 1, stores(in));
    bool altered = weights_are_altered(in->meaning), output = in->meaning->delta_of_output;
    if (altered && !output) return delta;
    const near_set *do_d = at_head(in->dout, in, i, in->heads, h);
    sinkproof_gradient_terms t = {0, 0, 0};
    near_set of_output;
    if (in->out == NULL && in->v == NULL) return delta;
    for (size_t d = 0; in->out != NULL && d < in->dim; d++)
        sinkproof_gradient_add(&t, do_d[d], at_head(in->out, in, i, in->heads, h)[d]);
    if (in->out != NULL) {
        of_output = sinkproof_gradient_sum(a, &t, (double)in->dim, 1, stores(in));
    } else {
        of_output =
            sinkproof_gradient_dot(a, see->seen_end - see->seen_first, p_j + see->seen_first, 1,
                                   dp_j + see->seen_first, 1, 1, stores(in));
        of_output.off += output_delta_off(in, p_j, dp_j, do_d, h, see);
    }
    return altered ? of_output : sinkproof_near_hull(delta, of_output);
}
//< grad.delta

// alpha (dalpha - D), and what the log-sum-exp gives.
static near_set score_gradient(const inputs *in, near_set p, near_set dp, near_set delta,
                               double dlse, near_set p_keys, double dlse_keys) {
    const sinkproof_gradient_arithmetic *a = in->arithmetic;
    near_set difference = {dp.mid - delta.mid, dp.off + delta.off};
    double size = sinkproof_near_size(dp) + sinkproof_near_size(delta);
    sinkproof_gradient_terms t = {p.mid * difference.mid, sinkproof_near_size(p) * size,
                                  p.off * (fabs(difference.mid) + difference.off) +
                                      fabs(p.mid) * difference.off};
    if (sinkproof_near_size(p) == 0) t = (sinkproof_gradient_terms){0, 0, 0};
    sinkproof_gradient_add(&t, p, sinkproof_near_exact(dlse));
    sinkproof_gradient_add(&t, p_keys, sinkproof_near_exact(dlse_keys));
    return sinkproof_gradient_sum(a, &t, 4, 3, 3 * stores(in));
}

// What a row's stored gradients do not add up to may be given to the largest score: autograd goes
// back through the row's maximum, which is subtracted before the softmax. Over the reals they add
// up to what the loss has at the log-sum-exp, `due`.
static void give_to_largest(const inputs *in, head_room *room, size_t i, const row_sight *see,
                            near_set sink_weight, double due) {
    near_set *ds_j = room->ds_j;
    const near_set *p_j = room->p_j;
    double rest = fabs(room->db_i[i].mid) + fabs(due), open = room->db_i[i].off,
           sum = room->db_i[i].mid - due;
    double least = sink_weight.mid - sink_weight.off;
    for (size_t j = see->first; j < see->end; j++) {
        near_set ds = sinkproof_near_narrowed(in->arithmetic, ds_j[j]);
        sum += ds.mid, rest += fabs(ds.mid), open += ds.off;
        least = fmax(least, p_j[j].mid - p_j[j].off);
    }
    double more = 1.01 * (fabs(sum) + open + 0x1p-40 * in->arithmetic->u * rest +
                          sinkproof_gamma((double)in->n + 2, in->arithmetic->u) * rest);
    for (size_t j = see->first; j < see->end; j++)
        if (p_j[j].mid + p_j[j].off >= least) ds_j[j].off += more;
    if (sink_weight.mid + sink_weight.off >= least) room->db_i[i].off += more;
}

// The softmax over the keys alone, for a loss that reads their log-sum-exp.
static near_set weight_of_keys(const inputs *in, const sinkproof_setting *s, size_t h, size_t i,
                               near_set lse_keys, size_t j) {
    return sinkproof_near_weight(in->arithmetic, row_score(in, s, h, i, j), lse_keys);
}

static bool row_back(const inputs *in, const sinkproof_setting *s, head_room *room, size_t h,
                     size_t i, bool scores) {
    row_sight see = row_sees(in, i);
    near_set *p_j = room->p_j, *dp_j = room->dp_j, *ds_j = room->ds_j, sink_weight = {0, 0},
             lse_keys = {0, 0};
    double dlse = in->dlse_hn != NULL && !in->meaning->no_dlse ? in->dlse_hn[h * in->n + i] : 0;
    double dlse_keys =
        in->dlse_keys_hn != NULL && !in->meaning->no_dlse ? in->dlse_keys_hn[h * in->n + i] : 0;
    if ((has_scores(in) || in->weights != NULL) && !row_weights(in, s, room, h, i, &sink_weight))
        return false;
    if (!scores) return true;
    for (size_t j = see.first; j < see.end; j++) dp_j[j] = weight_gradient(in, h, i, j);
    near_set delta = row_delta(in, room, h, i, &see);
    if (in->meaning->renormalised_delta) {
        double left = 1 - sink_weight.mid;
        delta = (near_set){
            delta.mid / left,
            1.01 *
                (delta.off + fabs(delta.mid) * (sink_weight.off + 4 * in->arithmetic->u) / left) /
                left};
    }
    if (dlse_keys != 0) {
        fill_scores(in, s, h, i, see.first, see.end, room->z_j);
        lse_keys = sinkproof_near_lse(in->arithmetic, see.end - see.first, room->z_j, -INFINITY);
    }
    for (size_t j = see.first; j < see.end; j++) {
        near_set of_keys = {0, 0};
        if (dlse_keys != 0) of_keys = weight_of_keys(in, s, h, i, lse_keys, j);
        ds_j[j] = score_gradient(in, p_j[j], dp_j[j], delta, dlse, of_keys, dlse_keys);
    }
    room->db_i[i] =
        score_gradient(in, sink_weight, (near_set){0, 0}, delta, dlse, (near_set){0, 0}, 0);
    if (stores(in) > 0) room->db_i[i] = sinkproof_near_narrowed(in->arithmetic, room->db_i[i]);
    // Autograd makes no such mistakes: a kernel that does has no maximum to go back through.
    bool as_defined = !in->meaning->renormalised_delta && !weights_are_altered(in->meaning);
    if (in->arithmetic->through_maximum && as_defined)
        give_to_largest(in, room, i, &see, sink_weight, dlse + dlse_keys);
    return true;
}

// ---- sums over keys and queries --------------------------------------------------------------

// dS as a product reads it: the scale may meet it before.
static near_set operand(const inputs *in, near_set ds) {
    ds = sinkproof_near_narrowed(in->arithmetic, ds);
    bool exact = is_power_of_two(sqrt((double)in->dim));
    return exact ? ds : sinkproof_near_narrowed(in->arithmetic, ds);
}

// dq of a row.
static void query_gradient(const inputs *in, const near_set *ds_j, size_t h, size_t i,
                           const row_sight *see, near_set *dq) {
    double scale = 1 / sqrt((double)in->dim);
    const near_set *k = at_head(in->k, in, see->first, in->groups, group_of(in, h));
    for (size_t d = 0; d < in->dim; d++) {
        near_set sum =
            sinkproof_gradient_dot(in->arithmetic, see->end - see->first, ds_j + see->first, 1,
                                   k + d, in->groups * in->dim, 4, 0);
        dq[(i * in->heads + h) * in->dim + d] =
            sinkproof_near_narrowed(in->arithmetic, sinkproof_near_scaled(sum, scale));
    }
}

// w_j x of a row, added to every key that it sees.
static void add_to_keys(const inputs *in, const row_sight *see, const near_set *w_j,
                        const near_set *x_d, sinkproof_gradient_terms *to_jd) {
    for (size_t j = see->first; j < see->end; j++)
        for (size_t d = 0; d < in->dim; d++)
            sinkproof_gradient_add(&to_jd[j * in->dim + d], w_j[j], x_d[d]);
}

// A head's share of dk or dv, from what its rows added.
static void finish_share(const inputs *in, const sinkproof_gradient_terms *terms_jd, double scale,
                         near_set *share_jd) {
    for (size_t i = 0; i < in->n * in->dim; i++) {
        near_set sum = sinkproof_gradient_sum(in->arithmetic, &terms_jd[i], (double)in->n, 4, 0);
        if (scale != 1) sum = sinkproof_near_scaled(sum, scale);
        share_jd[i] = sinkproof_near_narrowed(in->arithmetic, sum);
    }
}

// ---- a group ---------------------------------------------------------------------------------

static bool head_room_new(const inputs *in, bool keys, bool values, head_room *room) {
    size_t n = in->n, all = n * in->dim;
    *room = (head_room){.p_j = calloc(n + 1, sizeof *room->p_j),
                        .dp_j = calloc(n + 1, sizeof *room->dp_j),
                        .ds_j = calloc(n + 1, sizeof *room->ds_j),
                        .db_i = calloc(n + 1, sizeof *room->db_i),
                        .z_j = calloc(n + 1, sizeof *room->z_j),
                        .other_j = calloc(n + 1, sizeof *room->other_j),
                        .set_j = calloc(n + 1, sizeof *room->set_j),
                        .alpha_j = calloc(n + 1, sizeof *room->alpha_j),
                        .dk_jd = keys ? calloc(all + 1, sizeof *room->dk_jd) : NULL,
                        .dv_jd = values ? calloc(all + 1, sizeof *room->dv_jd) : NULL};
    return room->p_j != NULL && room->dp_j != NULL && room->ds_j != NULL && room->db_i != NULL &&
           room->z_j != NULL && room->other_j != NULL && room->set_j != NULL &&
           room->alpha_j != NULL && (room->dk_jd != NULL || !keys) &&
           (room->dv_jd != NULL || !values);
}

static void head_room_free(head_room *room) {
    free(room->p_j);
    free(room->dp_j);
    free(room->ds_j);
    free(room->db_i);
    free(room->z_j);
    free(room->other_j);
    free(room->set_j);
    free(room->alpha_j);
    free(room->dk_jd);
    free(room->dv_jd);
}

static bool needs_weights(const inputs *in, const sinkproof_backward_outputs *out) {
    bool of_scores = (out->dq != NULL || out->dk != NULL) && in->dscores == NULL;
    return out->dv != NULL || out->dscores != NULL || out->dsink_h != NULL || of_scores;
}
static bool needs_scores_gradient(const inputs *in, const sinkproof_backward_outputs *out) {
    bool of_scores = (out->dq != NULL || out->dk != NULL) && in->dscores == NULL;
    return out->dscores != NULL || out->dsink_h != NULL || of_scores;
}

const char *attention_back_lacks(const sinkproof_backward_inputs *in,
                                 const sinkproof_backward_outputs *out) {
    bool altered = in->meaning->no_window || in->meaning->no_mask;
    bool other_lse = altered || in->meaning->lse != SINKPROOF_LSE_OWN;
    bool weights_do = in->weights != NULL && in->arithmetic->weights_kept && !other_lse;
    bool back = out->dweights != NULL || needs_scores_gradient(in, out);
    if (in->dout == NULL && (back || out->dv != NULL)) return "dA11";
    if (in->v == NULL && back) return "A2.v";
    bool scores = in->scores != NULL && !altered;
    bool of_keys = in->dlse_keys_hn != NULL && needs_scores_gradient(in, out);
    if ((needs_weights(in, out) && !weights_do && !scores) || (of_keys && !scores)) {
        if (in->q == NULL) return "A4.q";
        if (in->k == NULL) return "A4.k";
    }
    if (out->dq != NULL && in->k == NULL) return "A4.k";
    if (out->dk != NULL && in->q == NULL) return "A4.q";
    return NULL;
}

// Adds up the shares of the heads of a group, or takes one.
static void add_shares(const inputs *in, size_t g, const near_set *share_mjd, near_set *to) {
    size_t each = in->heads / in->groups, size = in->n * in->dim;
    near_set one[1] = {{1, 0}};
    for (size_t j = 0; j < in->n; j++)
        for (size_t d = 0; d < in->dim; d++) {
            size_t at = j * in->dim + d;
            near_set sum = share_mjd[at];
            if (in->meaning->head_of_group > 0)
                sum = share_mjd[(in->meaning->head_of_group - 1) % each * size + at];
            else if (each > 1)
                sum = sinkproof_gradient_dot(in->arithmetic, each, share_mjd + at, size, one, 0, 0,
                                             0);
            to[(j * in->groups + g) * in->dim + d] = sum;
        }
}

// What a head's rows give together.
static void head_outputs(const inputs *in, const sinkproof_backward_outputs *out,
                         const head_room *room, size_t h) {
    size_t n = in->n, rows = in->meaning->rows, first = 0;
    near_set one = {1, 0};
    if (out->dsink_hn != NULL) memcpy(out->dsink_hn + h * n, room->db_i, n * sizeof(near_set));
    if (out->dsink_h == NULL) return;
    if (in->meaning->added == SINKPROOF_SINK_LAST_ROWS && rows > 0) first = (n - 1) / rows * rows;
    out->dsink_h[h] =
        sinkproof_gradient_dot(in->arithmetic, n - first, room->db_i + first, 1, &one, 0, 1, 0);
}

// What a row gives, from its weights and its scores' gradients in `room`.
static void row_outputs(const inputs *in, const sinkproof_backward_outputs *out, head_room *room,
                        size_t h, size_t i) {
    row_sight see = row_sees(in, i);
    size_t row = (h * in->n + i) * in->n;
    inputs fresh = *in;
    fresh.dweights = NULL;
    for (size_t j = see.first; j < see.end; j++) {
        if (out->dweights != NULL) out->dweights[row + j] = weight_gradient(&fresh, h, i, j);
        if (out->dscores != NULL) out->dscores[row + j] = room->ds_j[j];
        if (in->dscores != NULL) room->ds_j[j] = in->dscores[row + j];
        room->ds_j[j] = operand(in, room->ds_j[j]);
        room->p_j[j] = sinkproof_near_narrowed(in->arithmetic, room->p_j[j]);
    }
    if (out->dq != NULL) query_gradient(in, room->ds_j, h, i, &see, out->dq);
    if (room->dk_jd != NULL)
        add_to_keys(in, &see, room->ds_j, at_head(in->q, in, i, in->heads, h), room->dk_jd);
    if (room->dv_jd != NULL)
        add_to_keys(in, &see, room->p_j, at_head(in->dout, in, i, in->heads, h), room->dv_jd);
}

static bool head_back(const inputs *in, const sinkproof_backward_outputs *out, size_t h,
                      near_set *dk_share, near_set *dv_share) {
    sinkproof_setting s =
        sinkproof_setting_for(in->policy, in->heads * in->n * (in->n + 1), in->rate);
    bool weights = needs_weights(in, out), scores = needs_scores_gradient(in, out);
    head_room room;
    bool fine = head_room_new(in, dk_share != NULL, dv_share != NULL, &room);
    for (size_t i = 0; fine && i < in->n; i++) {
        fine = !weights || row_back(in, &s, &room, h, i, scores);
        if (fine) row_outputs(in, out, &room, h, i);
    }
    if (fine) head_outputs(in, out, &room, h);
    if (fine && dk_share != NULL) finish_share(in, room.dk_jd, 1 / sqrt((double)in->dim), dk_share);
    if (fine && dv_share != NULL) finish_share(in, room.dv_jd, 1, dv_share);
    head_room_free(&room);
    return fine;
}

static bool group_back(const inputs *in, const sinkproof_backward_outputs *out, size_t g) {
    size_t each = in->heads / in->groups, size = in->n * in->dim;
    near_set *dk = out->dk != NULL ? malloc(each * size * sizeof *dk) : NULL;
    near_set *dv = out->dv != NULL ? malloc(each * size * sizeof *dv) : NULL;
    bool fine = (out->dk == NULL || dk != NULL) && (out->dv == NULL || dv != NULL);
    for (size_t m = 0; fine && m < each; m++)
        fine = head_back(in, out, g * each + m, dk != NULL ? dk + m * size : NULL,
                         dv != NULL ? dv + m * size : NULL);
    if (fine && dk != NULL) add_shares(in, g, dk, out->dk);
    if (fine && dv != NULL) add_shares(in, g, dv, out->dv);
    free(dk);
    free(dv);
    return fine;
}

bool attention_back(const sinkproof_backward_inputs *in, const sinkproof_backward_outputs *out) {
    bool fine = true;
#pragma omp parallel for schedule(dynamic, 1) if (in->n * in->heads > 4096)
    for (size_t g = 0; g < in->groups; g++) {
        bool good = group_back(in, out, g);
#pragma omp atomic
        fine &= good;
    }
    return fine;
}
