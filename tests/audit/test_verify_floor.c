// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Every bound is held from both sides by `sinkproof verify` itself. Each is scaled where verify
// calls it, by the linker's --wrap (Makefile): at a tenth honest engines leave it, at four times
// what is built for it falls under its floor, and as it is it holds. The bounds are those of the
// book's headings: a new one without a floor fails.
#include "audit/command/command.h"
#include "audit/verify/verify.h"
#include "proofs/bounds/mixing.h"
#include "proofs/bounds/one_minus.h"
#include "proofs/bounds/variants.h"
#include "proofs/truth/exact_dot.h"
#include "tests/shared/only.h"
#include "tests/shared/tap.h"

#include <fcntl.h>
#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

static double scale = 1; // of all bounds, where verify calls them
static int depth;        // of bounds that call each other: the outermost is scaled

static void scale_sets(size_t n, sinkproof_honest *x_i) {
    for (size_t i = 0; depth == 0 && i < n; i++) {
        sinkproof_honest *x = &x_i[i];
        double *const ends[] = {&x->lo, &x->hi, &x->likely_lo, &x->likely_hi};
        for (size_t e = 0; scale != 1 && e < 4; e++) {
            double by = (*ends[e] - x->mid) * scale;
            if (by != 0) *ends[e] = x->mid + by;
        }
    }
}

// type, name, parameters, arguments, the sets that it leaves and their number
#define SCALED_SETS(type, name, parameters, arguments, n, sets)                                    \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters {                                                                \
        depth++;                                                                                   \
        type result = __real_##name arguments;                                                     \
        depth--;                                                                                   \
        scale_sets(n, sets);                                                                       \
        return result;                                                                             \
    }
#define SCALED_ROW(name, parameters, arguments, n, sets)                                           \
    void __real_##name parameters;                                                                 \
    void __wrap_##name parameters;                                                                 \
    void __wrap_##name parameters {                                                                \
        depth++;                                                                                   \
        __real_##name arguments;                                                                   \
        depth--;                                                                                   \
        scale_sets(n, sets);                                                                       \
    }
#define SCALED_NUMBER(name, parameters, arguments)                                                 \
    double __real_##name parameters;                                                               \
    double __wrap_##name parameters;                                                               \
    double __wrap_##name parameters {                                                              \
        return __real_##name arguments * (depth == 0 ? scale : 1);                                 \
    }

typedef const sinkproof_setting *setting;
typedef const sinkproof_planes *planes;
typedef const sinkproof_honest *sets_in;

// Of one row of x and one of y, which is what verify asks for; of more, row by row.
bool __real_sinkproof_honest_products(setting s, planes x, planes y, const double *terms_i,
                                      const double *b_r, sinkproof_honest *out, size_t stride);
bool __wrap_sinkproof_honest_products(setting s, planes x, planes y, const double *terms_i,
                                      const double *b_r, sinkproof_honest *out, size_t stride);
bool __wrap_sinkproof_honest_products(setting s, planes x, planes y, const double *terms_i,
                                      const double *b_r, sinkproof_honest *out, size_t stride) {
    depth++;
    bool fine = __real_sinkproof_honest_products(s, x, y, terms_i, b_r, out, stride);
    depth--;
    for (size_t i = 0; i < x->rows; i++) scale_sets(y->rows, out + i * stride);
    return fine;
}
bool __real_sinkproof_honest_linear(setting s, planes x, const sinkproof_weight_rows *w,
                                    sinkproof_honest *out, size_t stride);
bool __wrap_sinkproof_honest_linear(setting s, planes x, const sinkproof_weight_rows *w,
                                    sinkproof_honest *out, size_t stride);
bool __wrap_sinkproof_honest_linear(setting s, planes x, const sinkproof_weight_rows *w,
                                    sinkproof_honest *out, size_t stride) {
    depth++;
    bool fine = __real_sinkproof_honest_linear(s, x, w, out, stride);
    depth--;
    for (size_t i = 0; i < x->rows; i++) scale_sets(w->rows, out + i * stride);
    return fine;
}
SCALED_SETS(bool, sinkproof_honest_merged,
            (setting s, planes weights, planes values, const double *terms_i, const double *error_i,
             sinkproof_honest *out, size_t stride),
            (s, weights, values, terms_i, error_i, out, stride), values->rows,
            out) // verify's have one row
SCALED_SETS(sinkproof_honest, sinkproof_honest_mixed_parts,
            (setting s, size_t ranks, size_t k, sets_in w_e, sets_in d_re, sinkproof_honest whole),
            (s, ranks, k, w_e, d_re, whole), 1, &result)
SCALED_ROW(sinkproof_linear_sums_row,
           (const sinkproof_linear_sums *linear, size_t i, sinkproof_honest *y_r), (linear, i, y_r),
           1, y_r) // verify's have one row
SCALED_ROW(sinkproof_honest_rmsnorm,
           (setting s, sinkproof_point point, const sinkproof_norm *norm, sets_in x_d,
            sinkproof_honest *y_d, double *common),
           (s, point, norm, x_d, y_d, common), norm->d, y_d)
SCALED_ROW(sinkproof_honest_layernorm,
           (setting s, sinkproof_point point, const sinkproof_norm *norm, const double *shift_d,
            sets_in x_d, sinkproof_honest *y_d),
           (s, point, norm, shift_d, x_d, y_d), norm->d, y_d)
SCALED_ROW(sinkproof_honest_rotate,
           (setting s, size_t head_dim, sets_in x_d, sets_in c_p, sets_in s_p,
            sinkproof_honest *y_d),
           (s, head_dim, x_d, c_p, s_p, y_d), head_dim, y_d)
SCALED_ROW(sinkproof_honest_turn,
           (setting s, const sinkproof_config *config, const sinkproof_turns *turns, sets_in x_d,
            sinkproof_honest *work_d, sinkproof_honest *y_d),
           (s, config, turns, x_d, work_d, y_d), config->head_dim, y_d)
SCALED_SETS(bool, sinkproof_honest_softmax,
            (setting s, sinkproof_point point, size_t n, sets_in z_j, sinkproof_honest b,
             sinkproof_honest *alpha_j, double *common),
            (s, point, n, z_j, b, alpha_j, common), n + 1, alpha_j)
SCALED_SETS(bool, sinkproof_honest_expert_weights,
            (setting s, size_t n_experts, sets_in g_e, size_t k, const int32_t *chosen_k,
             sinkproof_honest *w_k, double *common),
            (s, n_experts, g_e, k, chosen_k, w_k, common), k, w_k)
SCALED_SETS(bool, sinkproof_honest_variant_weights,
            (setting s, const sinkproof_variant *variant, size_t count, const bool *seen_j,
             sets_in s_j, sinkproof_honest *alpha_j),
            (s, variant, count, seen_j, s_j, alpha_j), count, alpha_j)
SCALED_SETS(sinkproof_honest, sinkproof_honest_gelu, (setting s, sinkproof_honest x), (s, x), 1,
            &result)
SCALED_SETS(sinkproof_honest, sinkproof_honest_swiglu,
            (setting s, sinkproof_swiglu_numbers numbers, sinkproof_honest gate,
             sinkproof_honest up),
            (s, numbers, gate, up), 1, &result)
SCALED_SETS(sinkproof_honest, sinkproof_honest_read,
            (sinkproof_format format, double v, sinkproof_honest unrounded), (format, v, unrounded),
            1, &result)
SCALED_SETS(sinkproof_honest, sinkproof_honest_gradient,
            (double value, double size, double own, double roundings, double u),
            (value, size, own, roundings, u), 1, &result)
SCALED_SETS(sinkproof_honest, sinkproof_honest_gradient_sum,
            (size_t n, sets_in x, size_t x_stride, sets_in y, size_t y_stride, double u),
            (n, x, x_stride, y, y_stride, u), 1, &result)
SCALED_NUMBER(sinkproof_gamma, (double n, double u), (n, u))
SCALED_NUMBER(sinkproof_mass_subtracted, (double u, double e, double odds), (u, e, odds))
SCALED_NUMBER(sinkproof_mass_quotient, (double u, double p, double q), (u, p, q))
SCALED_NUMBER(sinkproof_mass_sigmoid, (double u, double v, double e_x, double delta),
              (u, v, e_x, delta))
SCALED_NUMBER(sinkproof_quantise_most, (int bits, double step), (bits, step))
SCALED_NUMBER(sinkproof_cache_bound,
              (size_t n, const double *alpha_j, const double *delta_j, const double *eps_j,
               double sink, double most),
              (n, alpha_j, delta_j, eps_j, sink, most))

// Sets ask it themselves.
double __real_setting_largest(setting s);
double __wrap_setting_largest(setting s);
double __wrap_setting_largest(setting s) {
    return __real_setting_largest(s) * scale;
}

// The certificate of a sum whose sizes count ten times, or a tenth: then all of verify's have one.
bool __real_sinkproof_dot_certified(size_t n, const double *a_k, const double *b_k, double *value);
bool __wrap_sinkproof_dot_certified(size_t n, const double *a_k, const double *b_k, double *value);
bool __wrap_sinkproof_dot_certified(size_t n, const double *a_k, const double *b_k, double *value) {
    bool given = __real_sinkproof_dot_certified(n, a_k, b_k, value);
    if (scale > 1) {
        *value = 0;
        for (size_t k = 0; k < n; k++) *value += a_k[k] * b_k[k];
        return true;
    }
    double *ten = calloc(20 * n, sizeof *ten), unused;
    must(ten != NULL);
    for (size_t k = 0; k < 10 * n; k++) ten[k] = a_k[k % n], ten[10 * n + k] = b_k[k % n];
    if (scale < 1)
        given = given && __real_sinkproof_dot_certified(10 * n, ten, ten + 10 * n, &unused);
    free(ten);
    return given;
}

// The limits of the statistics, and what classes of equal rows count for.
bool __real_sinkproof_drift_judge(const sinkproof_drift *drift, double rate,
                                  sinkproof_drift_result *result);
bool __wrap_sinkproof_drift_judge(const sinkproof_drift *drift, double rate,
                                  sinkproof_drift_result *result);
bool __wrap_sinkproof_drift_judge(const sinkproof_drift *drift, double rate,
                                  sinkproof_drift_result *result) {
    depth++;
    bool fine = __real_sinkproof_drift_judge(drift, rate, result);
    depth--;
    result->limit *= scale, result->spread.limit *= scale;
    return fine;
}
bool __real_sinkproof_drift_pooled(size_t n, const sinkproof_drift *const *layers, double rate,
                                   sinkproof_drift_result *result);
bool __wrap_sinkproof_drift_pooled(size_t n, const sinkproof_drift *const *layers, double rate,
                                   sinkproof_drift_result *result);
bool __wrap_sinkproof_drift_pooled(size_t n, const sinkproof_drift *const *layers, double rate,
                                   sinkproof_drift_result *result) {
    bool fine = __real_sinkproof_drift_pooled(n, layers, rate, result);
    result->limit *= scale;
    return fine;
}
bool __real_sinkproof_rows_alike(size_t n, const sinkproof_row *rows, sinkproof_alike *a);
bool __wrap_sinkproof_rows_alike(size_t n, const sinkproof_row *rows, sinkproof_alike *a);
bool __wrap_sinkproof_rows_alike(size_t n, const sinkproof_row *rows, sinkproof_alike *a) {
    bool fine = __real_sinkproof_rows_alike(n, rows, a);
    if (depth == 0) a->model *= scale;
    return fine;
}

// The right side of bound.evict is its bound.
static ball_side_fn bound_side;
static void scaled_side(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    arb_t by;
    arb_init(by);
    arb_set_d(by, scale);
    bound_side(out, m, bits);
    for (size_t d = 0; d < m->dim; d++) arb_mul(out + d, out + d, by, bits);
    arb_clear(by);
}
const sinkproof_identity *__real_sinkproof_identity_at(size_t k);
const sinkproof_identity *__wrap_sinkproof_identity_at(size_t k);
const sinkproof_identity *__wrap_sinkproof_identity_at(size_t k) {
    static sinkproof_identity scaled;
    const sinkproof_identity *identity = __real_sinkproof_identity_at(k);
    if (scale == 1 || identity == NULL || strcmp(identity->id, "bound.evict") != 0) return identity;
    scaled = *identity, bound_side = identity->right, scaled.right = scaled_side;
    return &scaled;
}

// ---- the bounds, one by one ---------------------------------------------------------------------

static const verify_options usual = {.bits = 64, .seed = 3, .instances = 12};

static verify_result at_scale(const verify_statement *s, double by) {
    scale = by;
    verify_result r = sinkproof_verify(s, &usual, NULL);
    scale = 1;
    return r;
}

// By what it is noticed: values outside, sides of an identity, or a floor.
static const char *noticed_by(const verify_result *r) {
    if (r->measure.wrong + r->experiment.wrong > 0) return "values are outside";
    if (r->ball.broken > 0) return "an identity is broken";
    return r->held_from_below ? "nothing" : "it is not held from below";
}

// Whether a page, that of the bounds or the gradients', has the bound with its floors, in their
// order.
static bool is_in_book(const char *id) {
    static char book[1 << 20];
    static const char *const pages[] = {"doc/13-every-bound.md", "doc/34-backward.md"};
    for (size_t p = 0, used = 0; p < 2 && (p > 0 || book[0] == '\0'); p++) {
        FILE *in = fopen(pages[p], "r");
        must(in != NULL);
        used += fread(book + used, 1, sizeof book - 1 - used, in);
        book[used] = '\0';
        fclose(in);
    }
    char head[64], tail[64] = "";
    size_t used = 0;
    const verify_check *c;
    for (size_t k = 0; (c = verify_check_at(k)) != NULL; k++)
        if (strcmp(c->id, id) == 0 && c->floor > 0)
            used += (size_t)snprintf(tail + used, sizeof tail - used, "%s%.1f",
                                     used > 0 ? ", " : "| ", c->floor);
    snprintf(head, sizeof head, "\n| `%s` | ", id);
    snprintf(tail + used, sizeof tail - used, " |");
    const char *line = strstr(book, head);
    const char *end = line != NULL ? strchr(line + 1, '\n') : NULL;
    size_t length = strlen(tail);
    return end != NULL && end - line > (ptrdiff_t)length && memcmp(end - length, tail, length) == 0;
}

static void both_sides(const verify_statement *s) {
    verify_result here = at_scale(s, 1), narrow = at_scale(s, 0.1), wide = at_scale(s, 4);
    ok(here.holds && here.measure.floor > 0.1,
       "%s: built operands reach its floor reached=%.2g floor=%.1f worst=%.2g bound=1 seed=3",
       s->id, here.measure.reached, here.measure.floor, here.measure.worst);
    ok(is_in_book(s->id), "%s: a table of the book has it with its floors", s->id);
    ok(!narrow.holds, "%s: a tenth of it is noticed: %s", s->id, noticed_by(&narrow));
    ok(!wide.holds, "%s: four times it is noticed: %s", s->id, noticed_by(&wide));
}

// The limits of the statistics have experiments that hold them from below.
static void statistics(const verify_statement *s) {
    verify_result here = at_scale(s, 1), narrow = at_scale(s, 0.1), wide = at_scale(s, 10);
    ok(here.holds, "%s: holds as it is worst=%.2g bound=1 seed=3", s->id, here.measure.worst);
    ok(!narrow.holds, "%s: a tenth of its limit is noticed: %s", s->id, noticed_by(&narrow));
    ok(!wide.holds, "%s: ten times its limit is noticed: %s", s->id, noticed_by(&wide));
}

// ---- what the command says ----------------------------------------------------------------------

static int command_says(const char *id, double by, const char *file) {
    const char *line[] = {"verify", id, NULL};
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int out = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (out < 0 || dup2(out, STDOUT_FILENO) < 0) _exit(99);
        scale = by;
        int code = run_verify_command(2, (char **)(uintptr_t)line, NULL);
        fflush(stdout);
        _exit(code);
    }
    int status = 0;
    bool ended = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status);
    return ended ? WEXITSTATUS(status) : -1;
}

static bool has(const char *file, const char *words) {
    static char text[1 << 16];
    FILE *f = fopen(file, "r");
    size_t n = f != NULL ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f != NULL) fclose(f);
    text[n] = '\0';
    return strstr(text, words) != NULL;
}

static void words(void) {
    char file[] = "/tmp/sinkproof-floor-XXXXXX";
    int made = mkstemp(file), code;
    if (made < 0) abort();
    close(made);
    code = command_says("bound.linear", 1, file);
    ok(code == 0 && has(file, "its own, floor 0.9") && has(file, "\n  held from below: ") &&
           has(file, "the truth is exact"),
       "verify: a bound that is reached is held from below, and the floor is shown");
    code = command_says("bound.linear", 10, file);
    ok(code == 1 && has(file, "BROKEN") && has(file, "  NOT held from below: ") &&
           has(file, "\n  bound.linear is not held from below: "),
       "verify: ten times of it is BROKEN, not held from below, exit %d", code);
    code = command_says("bound.linear", 0.1, file);
    ok(code == 1 && has(file, "BROKEN"), "verify: a tenth of it is BROKEN, exit %d", code);
    unlink(file);
}

// What is missed counts, of several kinds of operands the one that misses most; NaN is missed.
static void floors(void) {
    static const struct {
        double floor, reached;
        bool holds;
    } table[] = {{0.5, 0.5, true}, {0.5, 0.4999, false}, {0.5, NAN, false}, {0, 0, true}};
    for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
        verify_measure m = {.floor = table[k].floor, .reached = table[k].reached};
        ok(sinkproof_verify_reaches(&m) == table[k].holds, "verify: a floor of %g, %g reached",
           m.floor, m.reached);
    }
}

int main(int argc, char **argv) {
    (void)argc;
    only_ids = argv + 1;
    size_t bounds = 0, registered = 0;
    const verify_statement *s;
    for (size_t k = 0; (s = sinkproof_verify_statement_at(k)) != NULL; k++) {
        bool bound = strncmp(s->id, "bound.", 6) == 0 || strcmp(s->id, "grad.rounded") == 0;
        bool statistic = strncmp(s->id, "stat.", 5) == 0;
        bounds += bound;
        if (bound && is_asked(s->id)) both_sides(s);
        if (statistic && is_asked(s->id)) statistics(s);
    }
    const verify_check *c;
    for (size_t k = 0; (c = verify_check_at(k)) != NULL; k++) registered += c->floor > 0;
    ok(bounds > 30 && registered >= bounds,
       "verify: %zu bounds, %zu kinds of operands with a floor", bounds, registered);
    floors();
    words();
    flint_cleanup();
    mpfr_free_cache();
    return tap_done();
}
