// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Mistakes planted in complete engines, and what the diagnosis says of their traces: each is
// convicted, and named or not. The kill table of the book is what this test prints.
#include "audit/diagnose/diagnose.h"
#include "tests/shared/judged.h"
#include "tests/shared/mistaken.h"
#include "tests/shared/mistakes_planted.h"
#include "tests/shared/opened.h"

#include <omp.h>
#include <stdlib.h>

static const planted *planted_named(const char *id) {
    for (size_t i = 0; i < MISTAKES; i++)
        if (strcmp(mistakes[i].id, id) == 0) return &mistakes[i];
    must(false);
    return NULL;
}

// ---- one engine

typedef struct diagnosed {
    sinkproof_judgement j;
    sinkproof_diagnosis d;
} diagnosed;

static diagnosed diagnose(const sinkproof_model *model, size_t n_planted,
                          const planted *const *list, const char *policy, const char *points,
                          size_t n) {
    sinkproof_error error = {{0}};
    sinkproof_policy declared;
    diagnosed of = {.d = {.n = 0}};
    int32_t tokens[256];
    some_tokens(n, sinkproof_model_config(model)->vocab, 7, tokens);
    sinkproof_trace *trace = mistaken_trace(model, n_planted, list, policy, points, n, tokens);
    bool fine =
        sinkproof_policy_parse(policy, &declared, &error) &&
        sinkproof_judge(model, trace, &declared, &(sinkproof_judge_options){.rate = 1e-9}, &of.j,
                        &error) &&
        sinkproof_diagnose(model, trace, &of.j,
                           &(sinkproof_diagnose_options){.rate = 1e-9, .places = 2, .pairs = 150},
                           &of.d, &error);
    need(fine, &error);
    sinkproof_trace_close(trace);
    return of;
}

static void discard(diagnosed *of) {
    sinkproof_judgement_free(&of->j);
    sinkproof_diagnosis_free(&of->d);
}

static bool holds(const mistakes_together *e, const char *id) {
    for (size_t i = 0; i < e->n; i++)
        if (strcmp(e->mistakes[i]->id, id) == 0) return true;
    return false;
}

// Among what explains a finding, and what is told in front of it.
static bool is_named(const diagnosed_finding *f, const char *id) {
    for (size_t a = 0; a < f->n_alike; a++)
        if (holds(&f->alike[a], id)) return true;
    return false;
}

static size_t bugs(const sinkproof_judgement *j) {
    size_t count = 0;
    for (size_t i = 0; i < j->n_reports; i++) count += j->reports[i].outside > 0;
    return count;
}

static double farthest_ulp(const sinkproof_judgement *j) {
    double worst = 0;
    for (size_t i = 0; i < j->n_reports; i++)
        worst = sinkproof_keep_worst(worst, j->reports[i].excess_ulp);
    return worst;
}

// Every finding has the mistake among its explanations.
static bool named_everywhere(const diagnosed *of, const char *id) {
    bool named = of->d.n > 0;
    for (size_t i = 0; i < of->d.n; i++) named = named && is_named(&of->d.findings[i], id);
    return named;
}

static size_t alike(const diagnosed *of) {
    return of->d.n > 0 ? of->d.findings[0].n_alike + of->d.findings[0].more_alike : 0;
}

// ---- what is asked

typedef struct tally {
    size_t planted, convicted, named, alone;
} tally;

static bool only(int argc, char **argv, const char *id) {
    bool asked = argc < 2;
    for (int a = 1; a < argc; a++) asked = asked || strcmp(argv[a], id) == 0;
    return asked;
}

// Whether the book's kill table has this line.
static bool is_in_book(const char *line) {
    static char book[1 << 17];
    FILE *in = book[0] == '\0' ? fopen("doc/21-diagnosis.md", "r") : NULL;
    if (in != NULL) {
        size_t length = fread(book, 1, sizeof book - 1, in);
        book[length] = '\0';
        fclose(in);
    }
    return strstr(book, line) != NULL;
}

// The columns of the table that are the same on every machine.
static void hold_book(const planted *bug, const diagnosed *of, bool named) {
    char line[160];
    snprintf(line, sizeof line, "\n| `%s` | %s | %zu |", bug->id,
             of->j.first != NULL ? of->j.first->name : "-", bugs(&of->j));
    ok(is_in_book(line) && named, "the book has its line, and it is named: %s", line + 1);
}

enum { TOKENS = 48 }; // of the table; what it does not count has half as many in a landing

static size_t fewer_tokens(void) {
    return getenv("WHOLE") != NULL ? TOKENS : TOKENS / 2;
}

// One line of the kill table. What does not name the mistake must not name another one.
static void try_one(const sinkproof_model *model, const planted *bug, const char *policy,
                    tally *t) {
    diagnosed of = diagnose(model, 1, &bug, policy, NULL, TOKENS);
    bool convicted = of.j.first != NULL, named = convicted && named_everywhere(&of, bug->id);
    t->planted++, t->convicted += convicted, t->named += named;
    t->alone += named && alike(&of) == 1;
    const diagnosed_finding *f = of.d.n > 0 ? &of.d.findings[0] : NULL;
    note("kill | %s | %s | %s | %zu | %.2g | %s | %zu | %.2g", policy, bug->id,
         convicted ? of.j.first->name : "-", bugs(&of.j), farthest_ulp(&of.j),
         named                         ? "named"
         : f != NULL && f->n_alike > 0 ? f->alike[0].mistakes[0]->id
                                       : "unknown",
         alike(&of), f != NULL ? f->next_bounds : 0.0);
    if (strcmp(policy, "f32") == 0)
        ok(convicted && strcmp(of.j.first->name, bug->at) == 0,
           "%s under %s is convicted at %s (%s)%s", bug->id, policy, bug->at,
           convicted ? of.j.first->name : "nowhere", named ? " and named" : "");
    if (strcmp(policy, "f32") == 0) hold_book(bug, &of, named);
    discard(&of);
}

// The points of each are explained, by it or by the two together.
static bool both_named(const diagnosed *of, const char *a, const char *b) {
    bool found_a = false, found_b = false, all = of->d.n > 0;
    for (size_t i = 0; i < of->d.n; i++) {
        const diagnosed_finding *f = &of->d.findings[i];
        found_a = found_a || is_named(f, a), found_b = found_b || is_named(f, b);
        all = all && (is_named(f, a) || is_named(f, b));
    }
    return all && found_a && found_b;
}

static void try_pair(const sinkproof_model *model, const char *const *ids, size_t *named) {
    const planted *list[2] = {planted_named(ids[0]), planted_named(ids[1])};
    diagnosed of = diagnose(model, 2, list, "f32", NULL, fewer_tokens());
    bool both = both_named(&of, ids[0], ids[1]);
    *named += both;
    note("pair | %s | %s | %zu | %s | %zu", ids[0], ids[1], bugs(&of.j),
         both ? "named" : "not named", alike(&of));
    ok(of.j.first != NULL, "%s and %s are convicted%s", ids[0], ids[1],
       both ? " and named together" : "");
    discard(&of);
}

static void try_equivalent(const sinkproof_model *model, const struct equivalent *same) {
    const planted *mistake = &same->mistake;
    diagnosed of = diagnose(model, 1, &mistake, "f32", same->points, same->n);
    ok(of.j.verdict <= SINKPROOF_VERDICT_WITHIN && of.d.n == 0, "%s: %s, %zu findings", mistake->id,
       sinkproof_verdict_name(of.j.verdict), of.d.n);
    discard(&of);
}

// Convicted where it is, and not given a name that is false: no known mistake explains it.
static void try_unknown(const sinkproof_model *model, const planted *bug) {
    diagnosed of = diagnose(model, 1, &bug, "f32", NULL, fewer_tokens());
    size_t names = 0;
    for (size_t i = 0; i < of.d.n; i++) names += of.d.findings[i].n_alike;
    const char *pattern = of.d.n > 0 ? of.d.findings[0].pattern : "";
    if (names > 0 && of.d.findings[0].n_alike > 0)
        pattern = of.d.findings[0].alike[0].mistakes[0]->id;
    ok(of.j.first != NULL && strcmp(of.j.first->name, bug->at) == 0 && names == 0 &&
           pattern[0] != '\0',
       "%s at %s is convicted and unknown: %s", bug->id, bug->at, pattern);
    discard(&of);
}

// Composed of an operation and a place, or of a constant that was fitted.
static void try_fitted(const sinkproof_model *model, const planted *bug) {
    diagnosed of = diagnose(model, 1, &bug, "f32", NULL, fewer_tokens());
    bool all = of.d.n > 0;
    for (size_t i = 0; i < of.d.n; i++)
        all = all && of.d.findings[i].n_alike > 0 &&
              strncmp(of.d.findings[i].alike[0].mistakes[0]->id, bug->id, strlen(bug->id)) == 0;
    ok(all, "%s at %s is found by its numbers", bug->id, bug->at);
    discard(&of);
}

int main(int argc, char **argv) {
    tally f32 = {0}, bf16 = {0};
    size_t pairs = 0, asked = 0;
    omp_set_num_threads(1); // there is little to do in each of very many judgements
    sinkproof_model *model = open_model("synthetic:tiny");
    // All of them take a minute of a processor (make kill-table); every landing takes a sample.
    bool whole = argc > 1 || getenv("WHOLE") != NULL;
    // What the kill table does not count has layers of both kinds in two.
    sinkproof_model *two = open_model("synthetic:tiny,layers=2"), *of = whole ? model : two;
    size_t step = whole ? 1 : 18, far = whole ? 4 : 44;
    for (size_t i = 0; i < MISTAKES; i += step)
        if (only(argc, argv, mistakes[i].id)) try_one(model, &mistakes[i], "f32", &f32);
    for (size_t i = 0; i < MISTAKES; i += far)
        if (only(argc, argv, mistakes[i].id)) try_one(model, &mistakes[i], "openai-bf16", &bf16);
    for (size_t i = 0; i < PAIRS_OF; i += whole ? 1 : 7)
        if (only(argc, argv, "pairs")) try_pair(of, together[i], &pairs), asked++;
    for (size_t i = 0; i < sizeof equivalents / sizeof equivalents[0]; i++)
        if (only(argc, argv, "equivalent")) try_equivalent(of, &equivalents[i]);
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
        if (only(argc, argv, "unknown")) try_unknown(model, &unknown[i]);
    for (size_t i = 0; i < sizeof fitted / sizeof fitted[0]; i++)
        if (only(argc, argv, "fitted")) try_fitted(of, &fitted[i]);
    note("f32: %zu planted, %zu convicted, %zu named, %zu of these alone", f32.planted,
         f32.convicted, f32.named, f32.alone);
    note("openai-bf16: %zu planted, %zu convicted, %zu named, %zu of these alone", bf16.planted,
         bf16.convicted, bf16.named, bf16.alone);
    note("pairs: %zu planted, %zu named", asked, pairs);
    if (argc < 2 && !whole)
        ok(f32.convicted == f32.planted && f32.named == f32.planted && pairs == asked,
           "of a sample all are convicted and named: %zu, and %zu pairs", f32.planted, asked);
    if (argc < 2 && whole) {
        ok(f32.convicted == MISTAKES && MISTAKES >= 80, "%zu of %d planted mistakes are convicted",
           f32.convicted, MISTAKES);
        ok(f32.named >= 60, "%zu are named by the diagnosis, 60 at least", f32.named);
        ok(pairs >= 10, "%zu pairs are named together, 10 at least", pairs);
    }
    sinkproof_model_close(model);
    sinkproof_model_close(two);
    return tap_done();
}
