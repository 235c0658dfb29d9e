// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Mistakes that are planted in a complete engine of the reference: a point that is changed as it is
// shown, or a weight. What the diagnosis says of the trace is compared with what it must say.
#ifndef SINKPROOF_TESTS_PLANTED_H
#define SINKPROOF_TESTS_PLANTED_H

#include "audit/diagnose/diagnose.h"
#include "tests/shared/judged.h"
#include "tests/shared/opened.h"

#include <math.h>
#include <omp.h>
#include <string.h>

// A point as the engine shows it, and what is known of its layer before.
typedef struct shown {
    const sinkproof_config *c;
    sinkproof_format format;
    size_t n, rank, shape[8], count;
    double *v;              // changed in place
    const double *residual; // that enters the last sum
    const double *added;
    const double *embedding, *up; // T0, M6 of the layer
    const double *const *latest;  // each point's values in this layer, or in the one before
    const sinkproof_model *model; // without the mistake
    size_t layer;
    const int32_t *tokens;
} shown;

typedef void change(shown *s, double by);

// Twice the window: the layers with one and without see other keys in half of the positions.
enum { TOKENS = 16, MOST_TOKENS = 24 };

typedef struct plant {
    const char *point; // as it is called in every layer
    change *change;
    double by;
    // or a weight of one expert or of some elements
    sinkproof_slot slot;
    int expert, from_expert; // -1: none
    size_t first, end;       // elements of a vector, columns of a matrix
    double times;
    void (*rewrite)(size_t cols, double *row); // or each row of it
    // or row r of matrix e, with the whole stack
    void (*reread)(const sinkproof_matrix *stack, size_t e, size_t r, double *row);
    bool both; // the weight and the point
    struct {
        const char *point;
        change *change;
    } more[3];  // other points that are changed too
    size_t n;   // tokens, where it needs more than TOKENS of them to be seen
    bool f32;   // under this policy alone
    bool fused; // the trace shows neither scores nor weights of attention
    // what the diagnosis must say, of all findings or of this point's alone: the reference computes
    // M9 before it shows M8. What it must not say
    bool alone;
    const char *says, *not ;
} plant;

// ---- the engine

typedef struct engine {
    const plant *plant;
    const sinkproof_observer *inner;
    const sinkproof_config *c;
    sinkproof_format format;
    size_t n;
    const int32_t *tokens;
    const sinkproof_model *model;
    double *x, *added, *embedding, *up;
    double *latest[TRACE_POINTS];
} engine;

static void see(void *context, const char *name, size_t rank, const size_t *shape,
                const double *values) {
    const sinkproof_observer *inner = ((const engine *)context)->inner;
    inner->see(inner->context, name, rank, shape, values);
}

static void keep(double **kept, size_t count, const double *values) {
    *kept = realloc(*kept, count * sizeof **kept);
    must(*kept != NULL);
    memcpy(*kept, values, count * sizeof **kept);
}

static sinkproof_trace_point point_named(const char *name) {
    int p = 0;
    while (p < TRACE_POINTS &&
           strcmp(sinkproof_trace_point_name((sinkproof_trace_point)p), name) != 0)
        p++;
    return (sinkproof_trace_point)p;
}

static void replace(void *context, const char *name, size_t rank, const size_t *shape,
                    double *values) {
    engine *e = context;
    const char *point = strchr(name, '.') != NULL ? strchr(name, '.') + 1 : name;
    shown s = {.c = e->c, .format = e->format, .n = e->n, .rank = rank, .count = 1, .v = values};
    for (size_t d = 0; d < rank; d++) s.shape[d] = shape[d], s.count *= shape[d];
    if (strcmp(point, "A12") == 0 || strcmp(point, "M11") == 0) keep(&e->added, s.count, values);
    if (strcmp(point, "T0") == 0) keep(&e->embedding, s.count, values);
    if (strcmp(point, "M6") == 0) keep(&e->up, s.count, values);
    s.residual = e->x, s.added = e->added, s.embedding = e->embedding, s.up = e->up;
    s.tokens = e->tokens, s.latest = (const double *const *)e->latest, s.model = e->model;
    s.layer = point != name ? strtoul(name, NULL, 10) : 0;
    if (e->plant->change != NULL && strcmp(point, e->plant->point) == 0)
        e->plant->change(&s, e->plant->by);
    for (size_t i = 0; i < 3 && e->plant->more[i].point != NULL; i++)
        if (strcmp(point, e->plant->more[i].point) == 0) e->plant->more[i].change(&s, e->plant->by);
    if (point_named(point) < TRACE_POINTS) keep(&e->latest[point_named(point)], s.count, values);
    if (strcmp(point, "T0") == 0 || strcmp(point, "A13") == 0 || strcmp(point, "M12") == 0)
        keep(&e->x, s.count, values);
}

typedef struct spoiling {
    const plant *plant;
    double *values[SINKPROOF_MAX_LAYERS]; // the spoiled weights of a layer, or NULL
} spoiling;

static void spoil(void *context, size_t l, sinkproof_slot slot, sinkproof_matrix *w) {
    spoiling *of = context;
    const plant *p = of->plant;
    if ((p->change != NULL && !p->both) || slot != p->slot) return;
    size_t each = w->rows * w->cols, all = w->count * each;
    double *values = malloc((all + 1) * sizeof *values);
    must(values != NULL && of->values[l] == NULL);
    of->values[l] = values;
    for (size_t e = 0; e < w->count; e++) {
        size_t from = p->expert == (int)e && p->from_expert >= 0 ? (size_t)p->from_expert : e;
        sinkproof_matrix one = sinkproof_matrix_at(w, from);
        for (size_t r = 0; r < w->rows; r++) {
            double *row = &values[e * each + r * w->cols];
            sinkproof_matrix_row(&one, r, row);
            bool here = p->expert < 0 || p->expert == (int)e;
            for (size_t c = p->first; here && c < p->end && c < w->cols; c++) row[c] *= p->times;
            if (here && p->rewrite != NULL) p->rewrite(w->cols, row);
            if (here && p->reread != NULL) p->reread(w, e, r, row);
        }
    }
    w->dtype = SINKPROOF_DTYPE_F64, w->data = (const uint8_t *)values;
    w->synthetic = NULL, w->scales = NULL, w->odd = NULL;
    w->stack_stride = each, w->row_stride = w->cols, w->col_stride = 1;
}

static sinkproof_trace *run(const sinkproof_model *model, const plant *p, const char *policy,
                            uint64_t seed) {
    size_t n = p->n > 0 ? p->n : TOKENS;
    sinkproof_error error = {{0}};
    sinkproof_policy stated;
    sinkproof_trace_writer *writer = NULL;
    sinkproof_trace *trace = NULL;
    int32_t tokens[MOST_TOKENS];
    const sinkproof_config *config = sinkproof_model_config(model);
    must(n <= MOST_TOKENS);
    some_tokens(n, config->vocab, seed, tokens);
    spoiling of = {p, {NULL}};
    sinkproof_model *wrong = sinkproof_model_edited(model, config, spoil, &of);
    must(wrong != NULL);
    need(sinkproof_policy_parse(policy, &stated, &error), &error);
    const char *points = p->fused ? "T0,A1,A2,A4,A11,A12,A13,M1,M2,M3,M4,M5,M6,M8,M9,M10,M11,M12,"
                                    "F1,F2"
                                  : NULL;
    need(sinkproof_trace_writer_new(NULL, model, &stated, "composed", points, n, &writer, &error),
         &error);
    engine e = {.plant = p,
                .inner = sinkproof_trace_writer_observer(writer),
                .model = model,
                .c = config,
                .format = strcmp(policy, "f32") == 0 ? SINKPROOF_F32 : SINKPROOF_BF16,
                .n = n,
                .tokens = tokens};
    const sinkproof_observer observer = {.see = see, .context = &e, .replace = replace};
    sinkproof_session *session = sinkproof_session_new(wrong, &stated);
    must(session != NULL);
    need(sinkproof_forward(session, n, tokens, NULL, &observer, &error) &&
             sinkproof_trace_writer_take(writer, tokens, &trace, &error),
         &error);
    sinkproof_session_free(session);
    sinkproof_trace_writer_free(writer);
    sinkproof_model_close(wrong);
    free(e.x);
    free(e.added);
    free(e.embedding);
    free(e.up);
    for (size_t l = 0; l < SINKPROOF_MAX_LAYERS; l++) free(of.values[l]);
    for (int point = 0; point < TRACE_POINTS; point++) free(e.latest[point]);
    return trace;
}

static double rounded(const shown *s, double x) {
    return sinkproof_round(s->format, x);
}

#define AT(name) .point = name, .expert = -1, .from_expert = -1
// The columns below `until` of a weight, in one expert or in all (-1), of another or of its own
// (-1).
#define IN(weight, one, other, until, factor)                                                      \
    .point = "", .slot = SINKPROOF_##weight, .expert = one, .from_expert = other, .end = until,    \
    .times = factor

static void try_plant(const sinkproof_model *model, const plant *p, const char *policy,
                      uint64_t seed) {
    sinkproof_error error = {{0}};
    sinkproof_policy stated;
    sinkproof_judgement j;
    sinkproof_diagnosis d;
    sinkproof_trace *trace = run(model, p, policy, seed);
    const sinkproof_diagnose_options how = {.rate = 1e-9, .places = 1, .pairs = 10};
    need(sinkproof_policy_parse(policy, &stated, &error) &&
             sinkproof_judge(model, trace, &stated, &(sinkproof_judge_options){.rate = 1e-9}, &j,
                             &error) &&
             sinkproof_diagnose(model, trace, &j, &how, &d, &error),
         &error);
    const char *said = "nothing";
    bool all = d.n > 0, any = false;
    for (size_t i = 0; i < d.n; i++) {
        bool here = false;
        for (size_t a = 0; a < d.findings[i].n_alike; a++) {
            const char *text = d.findings[i].alike[a].mistakes[0]->text;
            here = here || (p->says != NULL && strstr(text, p->says) != NULL);
            any = any || (p->not != NULL && strstr(text, p->not ) != NULL);
            if (i == 0 && a == 0) said = text;
        }
        if (p->alone && strcmp(sinkproof_trace_point_name(d.findings[i].point), p->point) != 0)
            continue;
        all = all && here;
        if (p->says != NULL && !here)
            note("layer %zu, point %s: %s", d.findings[i].layer,
                 sinkproof_trace_point_name(d.findings[i].point),
                 d.findings[i].n_alike > 0 ? d.findings[i].alike[0].mistakes[0]->text
                                           : d.findings[i].pattern);
    }
    if (p->says != NULL)
        ok(all && j.first != NULL, "%s, seed %u: \"%s\" is said of all (%s)", policy,
           (unsigned)seed, p->says, said);
    else
        ok(j.first != NULL && !any, "%s, seed %u: at %s nothing says \"%s\" (%s)", policy,
           (unsigned)seed, p->point, p->not, said);
    sinkproof_diagnosis_free(&d);
    sinkproof_judgement_free(&j);
    sinkproof_trace_close(trace);
}

// Layers of both kinds, with a window and without.
#define TWO_LAYERS "synthetic:tiny,layers=2"

// Tries each plant in a tiny model, or those from number argv[1] on; in bfloat16 every other one
// that need not be in float32. Returns the program's exit code.
static inline int try_plants(const plant *plants, size_t n, int argc, char **argv) {
    sinkproof_model *model = open_model(TWO_LAYERS);
    omp_set_num_threads(1);
    for (size_t i = argc > 1 ? strtoul(argv[1], NULL, 10) : 0; i < n; i++)
        try_plant(model, &plants[i], plants[i].f32 || i % 2 == 0 ? "f32" : "openai-bf16",
                  7 + i % 3);
    sinkproof_model_close(model);
    return tap_done();
}

#endif
