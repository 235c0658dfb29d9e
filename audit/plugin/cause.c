// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The cause of a stage's failing calls: the smallest and some of the others are made again, and
// asked about every known mistake.
#include "audit/plugin/drive.h"

#include "audit/diagnose/backward_causes.h"
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
        call.points |= 1u << (keys ? (size_t)TRACE_LSE_KEYS : c->stage->to[t]);
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

// ---- of a stage that goes back: each call names the mistakes that explain its gradients

// The length of the words before the place: the mistake is common to calls, its place is not.
static size_t common_length(const char *words, size_t length) {
    static const char place[] = ", from row ";
    for (size_t i = 0; i + sizeof place < length; i++)
        if (strncmp(words + i, place, sizeof place - 1) == 0) return i;
    return length;
}

// Whether "one; or another" has these words.
static bool list_has(const char *list, const char *words) {
    size_t length = strlen(words);
    for (const char *at = list; *at != '\0';) {
        const char *end = strstr(at, "; or ");
        size_t own = common_length(at, end != NULL ? (size_t)(end - at) : strlen(at));
        if (own == length && strncmp(at, words, length) == 0) return true;
        if (end == NULL) return false;
        at = end + 5;
    }
    return false;
}

static void list_mistakes(const char *list, sinkproof_call_causes *causes) {
    for (const char *at = list; *at != '\0' && causes->n < CAUSES_MOST_ALIKE;) {
        const char *end = strstr(at, "; or ");
        size_t length = end != NULL ? (size_t)(end - at) : strlen(at);
        sinkproof_call_cause *c = &causes->alike[causes->n++];
        *c = (sinkproof_call_cause){.explained = 0};
        snprintf(c->text, sizeof c->text, "%.*s", (int)common_length(at, length), at);
        at = end != NULL ? end + 5 : "";
    }
}

// Asks one more call: keeps the mistakes that explain each of its gradients that is outside. A call
// with an unexplained gradient leaves them as they are, and is not counted as explained.
static void keep_explaining(const sinkproof_gradient_judgement *j, sinkproof_call_causes *causes,
                            size_t *explained) {
    bool first = *explained == 0;
    causes->asked++;
    for (size_t i = 0; i < j->n_reports; i++)
        if (j->reports[i].verdict == SINKPROOF_VERDICT_BUG && j->reports[i].cause[0] == '\0')
            return;
    for (size_t i = 0; i < j->n_reports; i++) {
        size_t kept = 0;
        if (j->reports[i].verdict != SINKPROOF_VERDICT_BUG) continue;
        if (first) list_mistakes(j->reports[i].cause, causes);
        first = false;
        for (size_t m = 0; m < causes->n; m++)
            if (list_has(j->reports[i].cause, causes->alike[m].text))
                causes->alike[kept++] = causes->alike[m];
        causes->n = kept;
    }
    ++*explained;
}

// The mistakes are tried one by one: large calls would take minutes.
static bool is_asked_quickly(const stage_case *c) {
    return c->n * c->n * c->heads * c->dim <= 1 << 19;
}

static bool find_cause_back(const case_source *source, const sinkproof_policy *policy,
                            stage_result *r, sinkproof_error *error) {
    enum { MOST_ASKED_BACK = 4 };
    const stage_case *cases[1 + CAUSES_MOST_CALLS + CAUSES_MOST_PASSING];
    size_t listed = list_calls(r, cases) - r->n_passed;
    size_t explained = 0;
    bool fine = true;
    for (size_t i = 0; fine && i < listed && r->causes.asked < MOST_ASKED_BACK; i++) {
        remade m = {.model = NULL};
        sinkproof_gradient_judgement j = {0};
        bool there;
        if (i > 0 && !is_asked_quickly(cases[i])) continue;
        fine = remake_call(source, cases[i], r->lse.kind, &m, &there, error);
        if (fine && there) {
            fine = sinkproof_judge_gradients(m.model, m.trace, policy,
                                             (sinkproof_layer_range){0, 0}, &j, error);
            if (fine) sinkproof_backward_explain(m.model, m.trace, policy, &j);
            if (fine) keep_explaining(&j, &r->causes, &explained);
            if (fine) sinkproof_gradient_judgement_free(&j);
        }
        remade_free(&m);
    }
    for (size_t m = 0; m < r->causes.n; m++) r->causes.alike[m].explained = explained;
    return fine;
}

bool stage_result_find_cause(const case_source *source, const sinkproof_policy *policy, double rate,
                             stage_result *r, sinkproof_error *error) {
    const stage_case *cases[MOST_ASKED];
    sinkproof_kernel_call calls[MOST_ASKED];
    if (r->failing == 0 || r->worst.broken) return true;
    if (stage_goes_back(r->stage)) return find_cause_back(source, policy, r, error);
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
        fprintf(out, "%s%s", i > 0 ? "; or " : "", c->text);
        if (c->id[0] != '\0') fprintf(out, " [%s]", c->id);
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
        fprintf(out, " (%zu of %s asked; %s)\n", first->explained, calls.text,
                stage_goes_back(r->stage) ? "of the others no mistake explains every gradient"
                                          : "the others decide nothing");
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
