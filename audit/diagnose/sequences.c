// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/diagnose/sequences.h"

#include "audit/diagnose/composed.h"
#include "audit/diagnose/trial.h"
#include "audit/trace/trace_alone.h"
#include "audit/trace/trace_points.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_ASKED = 4,   // sequences
    MOST_IN_VAIN = 1, // of them before no more are asked
    PARTS = 10        // a sequence has one part of the budget, and no more than is left
};

typedef struct asking {
    place_trials trials;
    sinkproof_diagnosis *of;
    size_t sequences, *failing_s; // elements outside of each that nothing explains
    bool *fails_sp;               // [sequences, n_layers + 1, points]
    bool open[SINKPROOF_MAX_LAYERS + 1][TRACE_POINTS]; // what no finding explains
} asking;

static const unsigned attention =
    1u << TRACE_A6 | 1u << TRACE_A9 | 1u << TRACE_A10 | 1u << TRACE_A11;

// Whether it was made of numbers that know nothing of the sequences: a row of attention reads those
// of its own alone.
static bool is_made(const sinkproof_diagnosis *d, const known_mistake *what) {
    for (const composed_mistake *m = d->composed; m != NULL; m = m->next)
        if (&m->mistake == what) return !composed_is_of_attention(m);
    return false;
}

// Whether a finding leaves something to be found.
static bool is_open(const sinkproof_diagnosis *d, const diagnosed_finding *f) {
    bool made = false;
    for (size_t i = 0; f->n_alike > 0 && i < f->alike[0].n; i++)
        made = made || is_made(d, f->alike[0].mistakes[i]);
    if (f->n_alike > 0) return made && (f->points & ~attention) == 0;
    return f->isolated == 0 && f->limit < LIMIT_SET;
}

static bool *fails_at(const asking *a, size_t sequence, size_t place, int point) {
    return &a->fails_sp[(sequence * (a->trials.config->n_layers + 1) + place) * TRACE_POINTS +
                        (size_t)point];
}

// Counts the elements outside of each sequence.
static bool count_failing(asking *a) {
    const sinkproof_judgement *j = a->trials.j;
    for (size_t i = 0; i < j->n_reports; i++) {
        const sinkproof_point_report *r = &j->reports[i];
        size_t place = report_place(&a->trials, r), each = 1, elements = 1;
        if (r->outside == 0 || !a->open[place][r->point]) continue;
        uint8_t *marks = mark_outside_elements(&a->trials, r);
        for (size_t d = 0; d < r->rank; d++) elements *= r->shape[d];
        for (size_t d = r->rows_first ? 1 : 2; d < r->rank; d++) each *= r->shape[d];
        for (size_t e = 0; marks != NULL && e < elements; e++) {
            if (!marks[e]) continue;
            size_t row = e / each % j->n_tokens;
            size_t s = sinkproof_trace_sequence_of(a->trials.suspect.trace, row).number;
            a->failing_s[s]++;
            *fails_at(a, s, place, (int)r->point) = true;
        }
        free(marks);
        if (marks == NULL) return false;
    }
    return true;
}

// The sequence with the most elements outside that was not asked; its count becomes 0.
static size_t take_worst(asking *a) {
    size_t worst = 0;
    for (size_t s = 1; s < a->sequences; s++)
        if (a->failing_s[s] > a->failing_s[worst]) worst = s;
    bool any = a->failing_s[worst] > 0;
    a->failing_s[worst] = 0;
    return any ? worst : SIZE_MAX;
}

// Keeps the findings that explain something which no finding of all sequences explains.
static void keep_explained(const asking *a, diagnosed_sequence *s) {
    size_t kept = 0;
    for (size_t i = 0; i < s->of.n; i++) {
        const diagnosed_finding *f = &s->of.findings[i];
        bool tells = false;
        for (size_t l = 0; l <= a->trials.config->n_layers; l++)
            for (int p = 0; p < TRACE_POINTS; p++)
                tells = tells || (f->layers[l] && (f->points >> p & 1) != 0 && a->open[l][p]);
        if (f->n_alike == 0 || !tells) continue;
        memmove(&s->of.findings[kept++], f, sizeof *f);
    }
    s->of.n = kept;
    s->failed = kept == 0;
}

// What was spent on all sequences and on those asked before leaves the rest.
static size_t budget_left(const asking *a) {
    size_t tried = a->of->tried, part = a->of->budget / PARTS;
    for (size_t i = 0; i < a->of->n_alone; i++) tried += a->of->alone[i].of.tried;
    size_t left = a->of->budget > tried ? a->of->budget - tried : 0;
    return left < part ? left : part;
}

// Pairs of causes were tried in all sequences.
static bool diagnose_sequence(asking *a, size_t number) {
    place_trials *t = &a->trials;
    const sinkproof_judge_options how = {.rate = t->options->rate};
    sinkproof_diagnose_options options = *t->options;
    sinkproof_trace *trace;
    sinkproof_judgement judgement;
    options.budget = budget_left(a), options.pairs = 1;
    diagnosed_sequence *s = &a->of->alone[a->of->n_alone];
    *s = (diagnosed_sequence){.number = number};
    if (!sinkproof_trace_alone(t->suspect.trace, t->config, number, &trace, t->error)) return false;
    bool fine =
        sinkproof_judge(t->suspect.model, trace, t->suspect.policy, &how, &judgement, t->error);
    if (fine) {
        fine = sinkproof_diagnose(t->suspect.model, trace, &judgement, &options, &s->of, t->error);
        if (fine) sinkproof_diagnosis_place(&s->of, judgement.begins, 1);
        if (fine) a->of->n_alone++;
        if (fine) keep_explained(a, s);
        sinkproof_judgement_free(&judgement);
    }
    sinkproof_trace_close(trace);
    return fine;
}

// Whether a sequence's findings explain a point of a layer.
static bool sequence_explains(const diagnosed_sequence *s, size_t place, int point) {
    for (size_t i = 0; i < s->of.n; i++)
        if (s->of.findings[i].layers[place] && (s->of.findings[i].points >> point & 1) != 0)
            return true;
    return false;
}

// Whether the point is explained in each sequence in which it fails.
static bool is_explained(const asking *a, size_t place, int point) {
    for (size_t s = 0; s < a->sequences; s++) {
        bool told = !*fails_at(a, s, place, point);
        for (size_t i = 0; i < a->of->n_alone && !told; i++)
            told = a->of->alone[i].number == s && sequence_explains(&a->of->alone[i], place, point);
        if (!told) return false;
    }
    return true;
}

// Takes out the findings whose points are all explained.
static void take_out_explained(const asking *a) {
    sinkproof_diagnosis *d = a->of;
    size_t kept = 0;
    for (size_t i = 0; i < d->n; i++) {
        diagnosed_finding *f = &d->findings[i];
        bool all = is_open(d, f);
        for (size_t l = 0; l <= a->trials.config->n_layers && all; l++)
            for (int p = 0; p < TRACE_POINTS && all; p++)
                if (f->layers[l] && (f->points >> p & 1) != 0) all = is_explained(a, l, p);
        if (!all) memmove(&d->findings[kept++], f, sizeof *f);
    }
    d->n = kept;
}

static int by_number(const void *a, const void *b) {
    const diagnosed_sequence *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

static bool ask_sequences(asking *a) {
    bool fine = count_failing(a);
    size_t in_vain = 0;
    while (fine && a->of->n_alone < MOST_ASKED && in_vain < MOST_IN_VAIN && budget_left(a) > 0) {
        size_t worst = take_worst(a);
        if (worst == SIZE_MAX) break;
        fine = diagnose_sequence(a, worst);
        in_vain += fine && a->of->alone[a->of->n_alone - 1].failed;
    }
    if (fine) take_out_explained(a);
    qsort(a->of->alone, a->of->n_alone, sizeof *a->of->alone, by_number);
    return fine;
}

bool sinkproof_diagnose_alone(const sinkproof_model *model, const sinkproof_trace *trace,
                              const sinkproof_judgement *judgement,
                              const sinkproof_diagnose_options *options,
                              sinkproof_diagnosis *diagnosis, sinkproof_error *error) {
    const sinkproof_config *config = sinkproof_model_config(model);
    size_t sequences = sinkproof_trace_sequences(trace), any = 0;
    if (sequences < 2 || judgement->layers.end > 0) return true;
    asking *a = calloc(1, sizeof *a);
    sinkproof_stretch *stretch = malloc(sizeof *stretch);
    if (a != NULL)
        *a = (asking){.trials = {.suspect = {.model = model,
                                             .trace = trace,
                                             .policy = &judgement->policy,
                                             .rate = options->rate,
                                             .prefix = judgement->prefix},
                                 .config = config,
                                 .j = judgement,
                                 .options = options,
                                 .stretch = stretch,
                                 .error = error},
                      .of = diagnosis,
                      .sequences = sequences,
                      .failing_s = calloc(sequences, sizeof *a->failing_s),
                      .fails_sp = calloc(sequences * (config->n_layers + 1) * TRACE_POINTS, 1)};
    for (size_t i = 0; a != NULL && i < diagnosis->n; i++)
        for (size_t l = 0; l <= config->n_layers && is_open(diagnosis, &diagnosis->findings[i]);
             l++)
            for (int p = 0; p < TRACE_POINTS; p++)
                if (diagnosis->findings[i].layers[l] && (diagnosis->findings[i].points >> p & 1))
                    a->open[l][p] = true, any++;
    diagnosis->alone = any > 0 ? calloc(MOST_ASKED, sizeof *diagnosis->alone) : NULL;
    bool fine = a != NULL && stretch != NULL && a->failing_s != NULL && a->fails_sp != NULL &&
                (any == 0 || diagnosis->alone != NULL);
    fine = fine ? any == 0 || ask_sequences(a)
                : sinkproof_fail(error, "no memory to diagnose sequences");
    if (a != NULL) free(a->failing_s), free(a->fails_sp);
    free(stretch);
    free(a);
    if (!fine) sinkproof_diagnosis_free(diagnosis);
    return fine;
}
