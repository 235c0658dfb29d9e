// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A linear layer with a low-rank adapter beside its weight, y = W x + s B (A x), which is not
// merged into it. The set is composed of others: A x and B t are sums (bound.linear) of operands
// that are known as sets, and what an engine may or may not store between them, in the format in
// which it stores y or in that of its arithmetic, is a choice. It may also convert A and B to the
// format of y, or B times s, before it multiplies.
#include "audit/judge/judge_internal.h"
#include "ref/operands.h"
#include "ref/scaled.h"

#include <math.h>
#include <stdlib.h>

double sinkproof_adapter_times(const sinkproof_adapter_part *part, sinkproof_adapting adapting) {
    double rank = (double)part->a.rows;
    switch (adapting) {
    case SINKPROOF_ADAPTED_NOT:
        return 0;
    case SINKPROOF_ADAPTED_UNSCALED:
        return 1;
    case SINKPROOF_ADAPTED_BY_ALPHA:
        return part->alpha;
    case SINKPROOF_ADAPTED_SQUARED:
        return part->scale * part->scale;
    case SINKPROOF_ADAPTED_TWICE:
        return 2 * part->scale;
    case SINKPROOF_ADAPTED_BY_RANK:
        return part->alpha / rank;
    case SINKPROOF_ADAPTED_BY_ROOT:
        return part->alpha / sqrt(rank);
    case SINKPROOF_ADAPTED_NEGATED:
        return -part->scale;
    case SINKPROOF_ADAPTED:
        break;
    }
    return part->scale;
}

static sinkproof_slot weight_of(const judge_pass *pass, sinkproof_trace_point point) {
    sinkproof_slot slots[SINKPROOF_MAX_WEIGHTS];
    return sinkproof_trace_weights(pass->config, point, slots) > 0 ? slots[0] : SINKPROOF_SLOTS;
}

bool judge_is_adapted(const judge_pass *pass, const sinkproof_walk_step *step) {
    const sinkproof_adapter *adapter = sinkproof_model_adapter(pass->model);
    const sinkproof_adapter_part *parts;
    sinkproof_slot slot = weight_of(pass, step->point);
    return slot < SINKPROOF_SLOTS &&
           sinkproof_adapter_parts(adapter, step->layer, slot, &parts) > 0;
}

// How the products with A and B are computed: in any order, of operands that may be read as W reads
// them, or as they are, and in running sums that may be rounded as those of W.
typedef struct adapter_setting {
    sinkproof_policy policy;
    sinkproof_setting s;
    sinkproof_accumulator sum;
    sinkproof_rounding store; // what may be stored between
    sinkproof_point in;
    bool reads_alone; // a narrow operand belongs to W alone
} adapter_setting;

static void open_setting_of(adapter_setting *how, const sinkproof_setting *s,
                            const adapter_block *block) {
    how->policy = *s->policy;
    how->policy.at[block->in].optional = true;
    how->s = *s, how->s.policy = &how->policy;
    how->sum = block->sum;
    how->sum.b_r = NULL;
    how->sum.term.optional = how->sum.acc.optional = true;
    how->in = block->in;
    sinkproof_rounding at = s->policy->at[block->at], in = s->policy->at[block->in];
    how->store = (sinkproof_rounding){
        .format = at.format != SINKPROOF_REAL ? at.format : s->policy->inside, .optional = true};
    how->reads_alone = sinkproof_is_scaled(in) || sinkproof_whole_block(in.format) > 0;
}

// x, or x rounded inside, or stored: an engine chooses once.
static sinkproof_honest stored_or_not(const adapter_setting *how, sinkproof_honest x) {
    x = sinkproof_honest_inside(&how->s, x);
    return sinkproof_honest_choice(x, sinkproof_honest_rounded(how->store.format, x));
}

// out[i, r]: the products of x[n, cols] with rows [first, first + rows) of a matrix.
static bool multiply(const adapter_setting *how, const sinkproof_matrix *w, size_t first,
                     size_t rows, const sinkproof_honest *x, size_t n, bool as_read,
                     sinkproof_honest *out) {
    sinkproof_planes planes = as_read ? sinkproof_operand_planes(&how->s, how->in, w, x, n)
                                      : sinkproof_planes_new(x, n, w->cols, w->cols);
    sinkproof_linear_sums *sums =
        planes.mid == NULL
            ? NULL
            : sinkproof_linear_sums_with(&how->s, &how->sum, &planes,
                                         &(sinkproof_weight_rows){w, first, rows, NULL});
    for (size_t i = 0; sums != NULL && i < n; i++)
        sinkproof_linear_sums_row(sums, i, out + i * rows);
    bool fine = sums != NULL;
    sinkproof_linear_sums_free(sums);
    sinkproof_planes_free(&planes);
    return fine;
}

// ---- the forms of A and B

// A and B as an engine holds them, and what then multiplies A x.
typedef struct adapter_form {
    sinkproof_matrix a, b;
    sinkproof_reading reading, converted; // of b, if it holds B times a number
    double times;
} adapter_form;

// 0: as stored; 1: converted to the format of y; 2: the same, of B times the scale; 3: B is
// converted before the scale multiplies it, too.
enum { FORMS = 4 };
static bool form_exists(const adapter_setting *how, const sinkproof_adapter_part *part,
                        double times, int form) {
    int kept = -ilogb(sinkproof_unit_roundoff(how->store.format));
    bool narrower =
        sinkproof_matrix_bits(&part->a) > kept || sinkproof_matrix_bits(&part->b) > kept;
    bool scales = times != 0 && !is_power_of_two(fabs(times));
    return form == 0 || (form == 1 && narrower) || (form == 2 && scales) ||
           (form == 3 && narrower && scales);
}

static void form_of(adapter_form *f, const adapter_setting *how, const sinkproof_adapter_part *part,
                    double times, int form) {
    *f = (adapter_form){.a = part->a, .b = part->b, .times = times};
    if (form == 0) return;
    f->a.kept = f->b.kept = how->store.format;
    if (form == 1) return;
    f->converted = (sinkproof_reading){.factor = 1, .product = how->store.format, .then = 1};
    f->reading = (sinkproof_reading){.factor = times, .below = form == 3 ? &f->converted : NULL};
    f->b.reading = &f->reading, f->times = 1;
}

// What the scale does. It may multiply A x, which may be stored before and after, or B t, with the
// same roundings; and it may itself be rounded to the format. Of a power of two no rounding shows,
// but for the smallest numbers.
static sinkproof_honest scaled_inner(const adapter_setting *how, double times, sinkproof_honest t) {
    t = stored_or_not(how, t);
    if (times == 1) return t;
    t = sinkproof_honest_mul(t, sinkproof_exact_set(times));
    return times == 0 || is_power_of_two(fabs(times)) ? t : stored_or_not(how, t);
}

static sinkproof_honest scaled_outer(const adapter_setting *how, double times, sinkproof_honest u) {
    double off = sinkproof_unit_roundoff(how->store.format) + 2 * how->s.u;
    double least = sinkproof_ulp(how->store.format, 0) * fmax(1, fabs(times));
    bool exact = times == 0 || is_power_of_two(fabs(times));
    if (times != 0) u = sinkproof_honest_declared(u, exact ? 0 : 2 * off * (1 + off), least);
    return stored_or_not(how, u);
}

// u_ik: rows [first, first + n) of B (A x), scaled; t_ir and b_ik are room.
static bool add_form(const adapter_setting *how, const adapter_block *block, adapter_form *f,
                     double times, size_t first, size_t n, sinkproof_honest *u_ik) {
    size_t rank = f->a.rows;
    sinkproof_honest *t_ir = malloc(block->tokens * rank * sizeof *t_ir);
    bool fine =
        t_ir != NULL && multiply(how, &f->a, 0, rank, block->x_c, block->tokens, true, t_ir);
    for (size_t i = 0; fine && i < block->tokens * rank; i++)
        t_ir[i] = scaled_inner(how, f->times, t_ir[i]);
    fine = fine && multiply(how, &f->b, first, n, t_ir, block->tokens, !how->reads_alone, u_ik);
    for (size_t i = 0; fine && i < block->tokens * n; i++)
        u_ik[i] = scaled_outer(how, times, u_ik[i]);
    free(t_ir);
    return fine;
}

// ---- the layer

// The rows of B that add to rows [first, end) of the weight.
static size_t rows_before(const sinkproof_adapter_part *p, size_t row) {
    return row <= p->first ? 0 : (row - p->first + p->step - 1) / p->step;
}

static bool add_part(const adapter_setting *how, const adapter_block *block,
                     const sinkproof_adapter_part *part, double times, sinkproof_honest *u_ir) {
    size_t k0 = rows_before(part, block->first_row),
           n = rows_before(part, block->first_row + block->rows) - k0;
    if (n == 0) return true;
    size_t all = block->tokens * n, at = part->first + k0 * part->step - block->first_row;
    sinkproof_honest *u_ik = malloc(2 * all * sizeof *u_ik), *other = u_ik + all;
    bool fine = u_ik != NULL;
    for (int form = 0; fine && form < FORMS; form++) {
        adapter_form f;
        if (!form_exists(how, part, times, form)) continue;
        form_of(&f, how, part, times, form);
        fine = add_form(how, block, &f, times, k0, n, form == 0 ? u_ik : other);
        for (size_t i = 0; fine && form > 0 && i < all; i++)
            u_ik[i] = sinkproof_honest_choice(u_ik[i], other[i]);
    }
    for (size_t i = 0; fine && i < block->tokens; i++)
        for (size_t k = 0; k < n; k++)
            u_ir[i * block->rows + at + k * part->step] = u_ik[i * n + k];
    free(u_ik);
    return fine;
}

bool judge_adapter_adds(const judge_pass *pass, const sinkproof_setting *s,
                        const adapter_block *block, sinkproof_honest *u_ir) {
    const sinkproof_adapter_part *parts;
    const sinkproof_meaning *m = pass->meaning;
    adapter_setting how;
    sinkproof_slot slot = weight_of(pass, block->point);
    size_t n =
        sinkproof_adapter_parts(sinkproof_model_adapter(pass->model), block->layer, slot, &parts);
    open_setting_of(&how, s, block);
    bool fine = true, meant = m->adapting_slots >> slot & 1;
    for (size_t i = 0; i < block->tokens * block->rows; i++) u_ir[i] = sinkproof_exact_set(0);
    for (size_t i = 0; fine && i < n; i++)
        fine = add_part(&how, block, &parts[i],
                        sinkproof_adapter_times(&parts[i], meant ? m->adapting : SINKPROOF_ADAPTED),
                        u_ir);
    return fine;
}

// W x and its bias may be stored before the adapter adds to it, or the bias may come last, which
// moves one rounding of the arithmetic.
void judge_adapter_join(const sinkproof_setting *s, sinkproof_point at, size_t rows,
                        const double *b_r, const sinkproof_honest *u_r, sinkproof_honest *y_r) {
    for (size_t r = 0; r < rows; r++) {
        sinkproof_honest before = sinkproof_honest_inside(s, y_r[r]);
        sinkproof_honest y = sinkproof_honest_choice(before, sinkproof_honest_at(s, at, before));
        y = sinkproof_honest_add(y, u_r[r]);
        double b = b_r != NULL ? fabs(b_r[r]) : 0;
        y_r[r] = b > 0 ? sinkproof_honest_declared(y, s->u, s->u * b) : y;
    }
}
