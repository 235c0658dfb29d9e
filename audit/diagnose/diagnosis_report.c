// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/diagnose/diagnosis_report.h"

#include "audit/diagnose/common.h"
#include "audit/diagnose/composed.h"
#include "audit/diagnose/sequences.h"
#include "audit/trace/trace_points.h"
#include "base/words.h"
#include "model/json_number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *point_name(int point) {
    return sinkproof_trace_point_name((sinkproof_trace_point)point);
}

// "A9, A10 of layers 0, 2-3" or "F2".
static void print_points(FILE *out, const sinkproof_config *config, const diagnosed_finding *f) {
    const char *comma = "";
    size_t layers = 0;
    for (int p = 0; p < TRACE_POINTS; p++) {
        if ((f->points >> p & 1) == 0) continue;
        fprintf(out, "%s%s", comma, point_name(p));
        comma = ", ";
    }
    if (f->layer == config->n_layers) return;
    for (size_t l = 0; l < config->n_layers; l++) layers += f->layers[l];
    fprintf(out, layers == 1 ? " of layer " : " of layers ");
    comma = "";
    for (size_t l = 0, end; l < config->n_layers; l = end + 1) {
        end = l;
        if (!f->layers[l]) continue;
        while (end + 1 < config->n_layers && f->layers[end + 1]) end++;
        fprintf(out, end > l ? "%s%zu-%zu" : "%s%zu", comma, l, end);
        comma = ", ";
    }
}

// Prints words after the text that the line already has, folded at 100 columns.
static void print_words(FILE *out, size_t column, const char *words) {
    enum { COLUMNS = 100, INDENT = 6 };
    while (*words != '\0') {
        size_t length = strcspn(words, " ");
        if (column + 1 + length > COLUMNS && column > INDENT) {
            fprintf(out, "\n%*s", INDENT - 1, "");
            column = INDENT - 1;
        }
        fprintf(out, " %.*s", (int)length, words);
        column += 1 + length;
        words += length;
        words += strspn(words, " ");
    }
    fprintf(out, "\n");
}

// Prints "    by the sink is left out [sink-dropped]", a line for each mistake.
static void print_what(FILE *out, const char *by, const mistakes_together *what) {
    char words[320];
    for (size_t i = 0; i < what->n; i++) {
        const char *first = i == 0 ? by : "and";
        fprintf(out, "    %s", first);
        snprintf(words, sizeof words, "%s [%s]", what->mistakes[i]->text, what->mistakes[i]->id);
        print_words(out, 4 + strlen(first), words);
    }
}

static void print_next(FILE *out, const diagnosed_finding *f) {
    const char *next = f->n_alike > 0 ? "next best" : "nearest";
    if (f->next.n == 0) return;
    if (isfinite(f->next_bounds))
        fprintf(out, "    %s, %.2g bounds away:\n", next, f->next_bounds);
    else
        fprintf(out, "    %s, infinitely far away:\n", next);
    print_what(out, "-", &f->next);
}

void sinkproof_diagnosis_place(sinkproof_diagnosis *d, size_t begins, size_t sequences) {
    d->packed = sequences > 1;
    d->tokens += begins;
    for (size_t i = 0; i < d->n; i++) {
        sinkproof_rows *rows = &d->findings[i].rows;
        if (rows->end > 0) rows->first += begins, rows->end += begins;
    }
}

static void print_explained_head(FILE *out, const sinkproof_diagnosis *d,
                                 const diagnosed_finding *f) {
    const sinkproof_rows *at = &f->rows;
    const char *row = d->packed ? "row" : "position";
    fprintf(out, "explained%s", f->alike[0].n > 1 ? " by two mistakes together" : "");
    if (at->end > 0 && at->end == d->tokens)
        fprintf(out, " from %s %zu on", row, at->first);
    else if (at->end == at->first + 1)
        fprintf(out, " at %s %zu alone", row, at->first);
    else if (at->end > 0)
        fprintf(out, " at %ss %zu-%zu alone", row, at->first, at->end - 1);
    fprintf(out, ", every element%s is inside", f->open ? " that is decided" : "");
}

// Prints "one of 15360 elements, which no operation makes: ..."
static void print_isolated_head(FILE *out, const diagnosed_finding *f) {
    if (f->isolated == 1)
        fprintf(out, "one of %s", sinkproof_counted(f->elements, "element").text);
    else
        fprintf(out, "%zu of %s, without a pattern", f->isolated,
                sinkproof_counted(f->elements, "element").text);
    static const char *const what[] = {
        [ISOLATED_PLAIN] =
            ", which no operation makes: all others are inside, and no known mistake explains it; "
            "a write into the wrong place, a race or failing memory would",
        [ISOLATED_STEP] = ", a step of the format outside: all others are inside, and no "
                          "known mistake explains it",
        [ISOLATED_EXTREME] = ", at an end of the range: all others are inside, and no "
                             "known mistake explains it",
        [ISOLATED_NAN] = ", no finite number: all others are inside, and no known "
                         "mistake that may overflow explains it"};
    fputs(what[f->isolation], out);
}

static bool is_told_with(const diagnosed_finding *f, const diagnosed_finding *other) {
    return f == other || (f->common != 0 && f->common == other->common);
}

// Prints "  M8 of layers 0-3: explained, every element is inside"; of findings with a common
// explanation all points.
static void print_head(FILE *out, const sinkproof_config *config, const sinkproof_diagnosis *d,
                       const diagnosed_finding *f) {
    char *text = NULL;
    size_t length;
    FILE *line = open_memstream(&text, &length);
    FILE *to = line != NULL ? line : out; // if memory runs out, the line is not folded
    const char *next = "";
    for (size_t i = 0; i < d->n; i++) {
        if (!is_told_with(f, &d->findings[i])) continue;
        fputs(next, to);
        print_points(to, config, &d->findings[i]);
        next = "; ";
    }
    fputs(": ", to);
    if (f->n_alike > 0)
        print_explained_head(to, d, f);
    else if (f->isolated > 0)
        print_isolated_head(to, f);
    else if (f->limit == LIMIT_NONE)
        fputs("unknown: no known mistake explains it, and no pair", to);
    else if (f->limit == LIMIT_PLACES)
        fputs("not looked into; what explains the layers before does not explain it", to);
    else if (f->limit == LIMIT_SET)
        fputs("not looked into; the honest set of its worst element is not finite", to);
    else if (f->limit == LIMIT_ALONE)
        fputs("not looked into; fewer elements are outside where the point is judged by itself",
              to);
    else if (f->limit == LIMIT_FOLLOWS)
        fputs(
            "no single mistake explains it, and pairs are not tried; it is computed from one wrong "
            "element that is named above, and outside at no position but where that is read",
            to);
    else
        fprintf(to, "undecided: searched %zu of %s, none explains it", f->searched,
                sinkproof_counted(f->suppositions, "supposition").text);
    if (line == NULL) {
        fputc('\n', out);
        return;
    }
    fclose(line);
    fputc(' ', out);
    print_words(out, 1, text != NULL ? text : "");
    free(text);
}

// The length of what an id says before its numbers; 0: it has none. "row-unit" of "row-unit=14".
static size_t kind_length(const mistakes_together *what) {
    const char *id = what->mistakes[0]->id, *end = strchr(id, '=');
    return what->n == 1 && end != NULL ? (size_t)(end - id) : 0;
}

static bool is_same_kind(const mistakes_together *a, const mistakes_together *b) {
    size_t n = kind_length(a);
    return n > 0 && n == kind_length(b) && memcmp(a->mistakes[0]->id, b->mistakes[0]->id, n) == 0;
}

// Prints the explanations that are like the first one but for their numbers.
static void print_other_numbers(FILE *out, const mistakes_together *const *like, size_t n) {
    char words[DIAGNOSE_MOST_ALIKE * 104] = "with other numbers:";
    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(words);
        snprintf(words + length, sizeof words - length, " [%s]", like[i]->mistakes[0]->id);
    }
    if (n == 0) return;
    fputs("      or", out);
    print_words(out, 8, words);
}

// Prints what explains f and all findings that are told with it.
static void print_explained(FILE *out, const sinkproof_diagnosis *d, const diagnosed_finding *f) {
    size_t told = 0, fewer = 0, n = 0;
    const mistakes_together *left[DIAGNOSE_MOST_ALIKE], *like[DIAGNOSE_MOST_ALIKE];
    for (size_t a = 0; a < f->n_alike; a++) {
        bool all = true;
        for (size_t i = 0; i < d->n; i++)
            all &= !is_told_with(f, &d->findings[i]) ||
                   finding_explained_by(&d->findings[i], &f->alike[a], f->rows);
        if (all) left[n++] = &f->alike[a];
    }
    for (size_t a = 0; a < n; a++) {
        bool begun = false;
        size_t others = 0;
        for (size_t b = 0; b < a; b++) begun = begun || is_same_kind(left[a], left[b]);
        for (size_t b = a + 1; b < n; b++)
            if (is_same_kind(left[a], left[b])) like[others++] = left[b];
        if (!begun) print_what(out, a == 0 ? "by" : "or", left[a]);
        if (!begun) print_other_numbers(out, like, others);
        told++;
    }
    for (size_t i = 0; i < d->n; i++)
        if (f->common != 0 && is_told_with(f, &d->findings[i]))
            fewer += d->findings[i].n_alike + d->findings[i].more_alike - told;
    if (f->common == 0 && f->more_alike > 0) fprintf(out, "    or %zu more\n", f->more_alike);
    if (told > 1) fprintf(out, "    (this trace does not tell one from the other)\n");
    if (fewer > 0) fprintf(out, "    (other mistakes explain some of these points, not all)\n");
}

// Prints why some suppositions were not tried.
static void print_limit(FILE *out, const sinkproof_diagnosis *d, const diagnosed_finding *f) {
    char budget[80];
    snprintf(budget, sizeof budget, "(the budget of %.40s is spent)",
             sinkproof_counted(d->budget, "judgement").text);
    const char *why =
        f->limit == LIMIT_PAIRS    ? "(pairs: those of the nearest mistakes)"
        : f->limit == LIMIT_BEFORE ? "(no pairs: none was found where they were tried "
                                     "before)"
        : f->limit == LIMIT_OVERFLOW
            ? "(of what reaches a NaN or an infinity, only what may overflow was tried)"
        : f->limit == LIMIT_BUDGET ? budget
                                   : "";
    if (why[0] == '\0') return;
    fputs("   ", out);
    print_words(out, 3, why);
}

static void print_unexplained(FILE *out, const sinkproof_diagnosis *d, const diagnosed_finding *f) {
    print_limit(out, d, f);
    if (f->pattern[0] == '\0') return;
    fputs("   ", out);
    print_words(out, 3, f->pattern);
}

static void print_findings(FILE *out, const sinkproof_config *config,
                           const sinkproof_diagnosis *d) {
    for (size_t i = 0; i < d->n; i++) {
        const diagnosed_finding *f = &d->findings[i];
        bool told = false;
        for (size_t before = 0; before < i; before++) told |= is_told_with(f, &d->findings[before]);
        if (told) continue;
        print_head(out, config, d, f);
        if (f->n_alike > 0)
            print_explained(out, d, f);
        else
            print_unexplained(out, d, f);
        if (f->common == 0) print_next(out, f); // it is the nearest of one finding's
    }
}

// The findings about a sequence as text, which the caller frees; NULL without memory.
static char *sequence_text(const sinkproof_config *config, const diagnosed_sequence *s) {
    char *text = NULL;
    size_t length;
    FILE *to = open_memstream(&text, &length);
    if (to == NULL) return NULL;
    print_findings(to, config, &s->of);
    return fclose(to) == 0 ? text : NULL;
}

// Says what explains which sequences by themselves: once for those of the same words.
static void print_sequences(FILE *out, const sinkproof_config *config,
                            const sinkproof_diagnosis *d) {
    char **texts = calloc(d->n_alone + 1, sizeof *texts);
    for (size_t i = 0; texts != NULL && i < d->n_alone; i++)
        texts[i] = sequence_text(config, &d->alone[i]);
    for (size_t i = 0; texts != NULL && i < d->n_alone; i++) {
        size_t more = 0, same = 0;
        if (texts[i] == NULL || texts[i][0] == '\0') continue; // told, or nothing is explained
        for (size_t k = i + 1; k < d->n_alone; k++)
            more += texts[k] != NULL && strcmp(texts[i], texts[k]) == 0;
        fprintf(out, "  in sequence%s %zu", more > 0 ? "s" : "", d->alone[i].number);
        for (size_t k = i + 1; k < d->n_alone; k++) {
            if (texts[k] == NULL || strcmp(texts[i], texts[k]) != 0) continue;
            fprintf(out, "%s %zu", ++same == more ? " and" : ",", d->alone[k].number);
            free(texts[k]);
            texts[k] = NULL;
        }
        fprintf(out, ", judged alone:\n%s", texts[i]);
    }
    for (size_t i = 0; texts != NULL && i < d->n_alone; i++) free(texts[i]);
    free(texts);
}

void sinkproof_diagnosis_print(FILE *out, const sinkproof_config *config,
                               const sinkproof_diagnosis *d) {
    if (d->n + d->n_alone > 0) fprintf(out, "\nDiagnosis, of what is outside:\n");
    print_findings(out, config, d);
    print_sequences(out, config, d);
}

// ---- JSON

static json_t *mistake_ids_json(const mistakes_together *what) {
    json_t *ids = json_array();
    for (size_t i = 0; i < what->n; i++)
        json_array_append_new(ids, json_string(what->mistakes[i]->id));
    return ids;
}

static json_t *mistake_texts_json(const mistakes_together *what) {
    json_t *texts = json_array();
    for (size_t i = 0; i < what->n; i++)
        json_array_append_new(texts, json_string(what->mistakes[i]->text));
    return texts;
}

static json_t *finding_points_json(const sinkproof_config *config, const diagnosed_finding *f) {
    json_t *names = json_array();
    char name[SINKPROOF_TRACE_NAME];
    for (size_t l = 0; l <= config->n_layers; l++)
        for (int p = 0; f->layers[l] && p < TRACE_POINTS; p++) {
            if ((f->points >> p & 1) == 0) continue;
            sinkproof_trace_name((sinkproof_trace_point)p, l, name);
            json_array_append_new(names, json_string(name));
        }
    return names;
}

static json_t *finding_json(const sinkproof_config *config, const sinkproof_diagnosis *d,
                            const diagnosed_finding *f) {
    json_t *o = json_object(), *alike = json_array();
    const char *status = f->n_alike > 0              ? "explained"
                         : f->isolated > 0           ? "isolated"
                         : f->limit == LIMIT_NONE    ? "unknown"
                         : f->limit == LIMIT_FOLLOWS ? "follows"
                         : f->limit >= LIMIT_PLACES  ? "not looked into"
                                                     : "undecided";
    for (size_t a = 1; a < f->n_alike; a++)
        json_array_append_new(alike, mistake_ids_json(&f->alike[a]));
    json_object_set_new(o, "points", finding_points_json(config, f));
    json_object_set_new(o, "status", json_string(status));
    json_object_set_new(o, "mistakes",
                        f->n_alike > 0 ? mistake_ids_json(&f->alike[0]) : json_null());
    json_object_set_new(o, "because",
                        f->n_alike > 0 ? mistake_texts_json(&f->alike[0]) : json_null());
    json_object_set_new(o, "indistinguishable", alike);
    json_object_set_new(o, "common",
                        f->common > 0 ? json_integer((json_int_t)f->common) : json_null());
    json_object_set_new(o, "next", f->next.n > 0 ? mistake_ids_json(&f->next) : json_null());
    json_object_set_new(o, "next_bounds", sinkproof_number_json(f->next_bounds));
    json_object_set_new(
        o, "positions",
        f->rows.end > 0 && !d->packed
            ? json_pack("[I, I]", (json_int_t)f->rows.first, (json_int_t)f->rows.end - 1)
            : json_null());
    json_object_set_new(o, "suppositions", json_integer((json_int_t)f->suppositions));
    json_object_set_new(o, "searched", json_integer((json_int_t)f->searched));
    json_object_set_new(o, "pattern",
                        f->pattern[0] != '\0' ? json_string(f->pattern) : json_null());
    return o;
}

json_t *sinkproof_diagnosis_json(const sinkproof_config *config, const sinkproof_diagnosis *d) {
    json_t *list = json_array();
    for (size_t i = 0; i < d->n; i++)
        json_array_append_new(list, finding_json(config, d, &d->findings[i]));
    for (size_t s = 0; s < d->n_alone; s++)
        for (size_t i = 0; i < d->alone[s].of.n; i++) {
            const sinkproof_diagnosis *of = &d->alone[s].of;
            json_t *finding = finding_json(config, of, &of->findings[i]);
            json_object_set_new(finding, "sequence", json_integer((json_int_t)d->alone[s].number));
            json_array_append_new(list, finding);
        }
    return list;
}

void sinkproof_diagnosis_free(sinkproof_diagnosis *diagnosis) {
    for (size_t i = 0; i < diagnosis->n_alone; i++)
        sinkproof_diagnosis_free(&diagnosis->alone[i].of);
    free(diagnosis->alone);
    free(diagnosis->findings);
    composed_free(diagnosis);
    *diagnosis = (sinkproof_diagnosis){.n = 0};
}
