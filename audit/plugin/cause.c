// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The cause of a stage's failing calls: the smallest and some of the others are made again, and
// asked about every known mistake.
#include "audit/plugin/drive.h"

#include "base/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct remade {
    call_arrays a;
    sinkproof_model *model;
    sinkproof_trace *trace;
} remade;

static bool remake_call(const case_source *source, const stage_case *c, size_t kind, remade *m,
                        bool *there, sinkproof_error *error) {
    sinkproof_error said; // of a trace that cannot be read: such a call is not asked
    *there = false;
    if (!source->make(source->context, c, &m->a, there, error)) return false;
    if (!*there) return true;
    if (!case_model(c, &m->a, &m->model, error)) return false;
    m->trace = case_trace(m->model, c, &m->a, kind, &said);
    *there = m->trace != NULL;
    return true;
}

static void remade_free(remade *m) {
    sinkproof_trace_close(m->trace);
    sinkproof_model_close(m->model);
    arrays_free(&m->a);
    *m = (remade){.model = NULL};
}

static sinkproof_kernel_call kernel_call(const stage_case *c, size_t kind, const remade *m) {
    bool passes = c->chunk > 0 && c->chunk < c->n;
    sinkproof_kernel_call call = {.model = m->model, .trace = m->trace};
    for (size_t t = 0; t < case_outputs(c); t++) {
        bool keys = c->stage->to[t] == TRACE_LSE && kind == LSE_OF_KEYS;
        call.points |= 1u << (keys ? TRACE_LSE_KEYS : c->stage->to[t]);
    }
    call.pass = passes ? c->chunk : 0;
    return call;
}

static bool same_case(const stage_case *a, const stage_case *b) {
    char of_a[CASE_TEXT], of_b[CASE_TEXT];
    case_print(a, of_a);
    case_print(b, of_b);
    return strcmp(of_a, of_b) == 0;
}

// The smallest failing call first, then others that fail, then some that pass.
enum { MOST_ASKED = 1 + CAUSES_MOST_CALLS + CAUSES_MOST_PASSING };
static size_t list_calls(const stage_result *r, const stage_case *calls[MOST_ASKED]) {
    size_t n = 0;
    calls[n++] = &r->at;
    for (size_t i = 0; i < r->n_failed; i++)
        if (!same_case(&r->failed[i], &r->at)) calls[n++] = &r->failed[i];
    for (size_t i = 0; i < r->n_passed; i++) calls[n++] = &r->passed[i];
    return n;
}

bool stage_result_find_cause(const case_source *source, const sinkproof_policy *policy, double rate,
                             stage_result *r, sinkproof_error *error) {
    const stage_case *cases[MOST_ASKED];
    sinkproof_kernel_call calls[MOST_ASKED];
    if (r->failing == 0 || r->worst.broken) return true;
    size_t n = 0, listed = list_calls(r, cases);
    remade *made = calloc(MOST_ASKED, sizeof *made);
    bool fine = made != NULL || sinkproof_fail(error, "no memory for the cause of failing calls");
    for (size_t i = 0; fine && i < listed; i++) {
        bool there;
        fine = remake_call(source, cases[i], r->lse.kind, &made[n], &there, error);
        if (fine && there)
            calls[n] = kernel_call(cases[i], r->lse.kind, &made[n]), n++;
        else
            remade_free(&made[n]);
    }
    if (fine && n > 0) fine = sinkproof_find_call_causes(calls, n, policy, rate, &r->causes, error);
    for (size_t i = 0; i < n; i++) remade_free(&made[i]);
    free(made);
    return fine;
}

// ---- words

static void write_mistakes(FILE *out, const sinkproof_call_causes *causes) {
    for (size_t i = 0; i < causes->n; i++) {
        const sinkproof_call_cause *c = &causes->alike[i];
        fprintf(out, "%s%s [%s]", i > 0 ? "; or " : "", c->text, c->id);
        if (c->piece > 0) fprintf(out, ", from row %zu of %zu on", c->piece, c->rows);
    }
    if (causes->more > 0) fprintf(out, "; or %zu more", causes->more);
}

void stage_result_print_cause(FILE *out, const stage_result *r) {
    const sinkproof_call_causes *causes = &r->causes;
    const sinkproof_call_cause *first = &causes->alike[0];
    const word_phrase calls = sinkproof_counted(causes->asked, "failing call");
    if (causes->asked == 0) return;
    fputs("    Cause: ", out);
    if (causes->n == 0) {
        fprintf(out, "no known mistake explains it (%s asked)\n", calls.text);
        return;
    }
    if (causes->n > 1 || first->against > 0) fputs("undecided: ", out);
    write_mistakes(out, causes);
    if (first->against > 0)
        fprintf(out, " (%s asked; but it would put %zu of %s outside)\n", calls.text,
                first->against, sinkproof_counted(causes->passing, "passing call").text);
    else if (causes->n > 1)
        fprintf(out, " (%s asked, which do not tell one from the other)\n", calls.text);
    else if (first->explained == causes->asked)
        fprintf(out, " (all of %s asked)\n", calls.text);
    else
        fprintf(out, " (%zu of %s asked; the others decide nothing)\n", first->explained,
                calls.text);
}

json_t *stage_result_cause_json(const stage_result *r) {
    const sinkproof_call_causes *causes = &r->causes;
    bool named = causes->n == 1 && causes->alike[0].against == 0;
    const char *status = causes->n == 0 ? "unknown" : named ? "named" : "undecided";
    json_t *mistakes = json_array();
    for (size_t i = 0; i < causes->n; i++) {
        const sinkproof_call_cause *c = &causes->alike[i];
        json_t *piece = c->piece > 0 ? json_integer((json_int_t)c->piece) : json_null();
        json_array_append_new(mistakes,
                              json_pack("{s:s, s:s, s:I, s:I, s:o}", "id", c->id, "because",
                                        c->text, "explained", (json_int_t)c->explained, "against",
                                        (json_int_t)c->against, "piece", piece));
    }
    if (causes->asked == 0) {
        json_decref(mistakes);
        return json_null();
    }
    return json_pack("{s:s, s:I, s:I, s:o, s:I}", "status", status, "asked",
                     (json_int_t)causes->asked, "passing", (json_int_t)causes->passing, "mistakes",
                     mistakes, "more", (json_int_t)causes->more);
}
