// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof compare A B`: where two traces of the same tokens differ, which is nearer the truth,
// and whether they are further apart than in a baseline.
#include "audit/command/command.h"
#include "audit/compare/compare.h"
#include "audit/trace/trace_alone.h"
#include "audit/trace/trace_model.h"
#include "audit/trace/trace_points.h"
#include "base/share.h"
#include "base/words.h"
#include "model/bytes.h"
#include "model/json_number.h"

#include <argp.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    const char *words[2], *model, *json, *baseline; // A, B
    size_t n_words;
    bool any_model;
} options;

static const struct argp_option option_table[] = {
    {"model", KEPT(options, model), "MODEL", 0,
     "run this model over the reals from the tokens, with each trace's own experts, and say which "
     "trace is nearer; of several sequences each by itself",
     0},
    HELP_ANY_MODEL(KEPT(options, any_model)),
    {"baseline", KEPT(options, baseline), "FILE", 0,
     "what an earlier `compare --json FILE` of these engines found: exit 1 only where they are "
     "further apart now than then",
     0},
    {"json", 'j', "FILE", 0,
     "write the result as JSON too (- is standard output, instead of the text)", 0},
    {0}};

static error_t parse_option(int key, char *argument, struct argp_state *state) {
    options *o = state->input;
    if (option_keep(o, key, argument)) return 0;
    switch (key) {
    case 'j':
        o->json = argument;
        return 0;
    case ARGP_KEY_ARG:
        if (o->n_words == 2) argp_error(state, "two traces, not also \"%s\"", argument);
        o->words[o->n_words++] = argument;
        return 0;
    case ARGP_KEY_END:
        if (o->n_words != 2) argp_error(state, "two traces are needed");
        if (o->any_model && o->model == NULL) argp_error(state, "--any-model needs --model");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp parser = {
    option_table,
    parse_option,
    "A B",
    "Two traces of the same tokens, point by point: where they first differ and by how much.\v"
    "Numbers are compared, whatever the formats that hold them. No verdict on an engine: two "
    "honest "
    "ones differ, and two wrong ones may not; that is `sinkproof judge`. " HELP_MODEL_IS ".\n\n"
    "Exit: 0 equal, or no further apart than the baseline; 1 they differ; 2 usage; 3 bad input.",
    NULL,
    NULL,
    NULL};

// ---- text ------------------------------------------------------------------------------------

static void print_error(double error) {
    if (isfinite(error))
        printf(" %9.3g", error);
    else
        printf(" %9s", "-");
}

static void print_point(const sinkproof_difference *d, bool truth) {
    char ulp[24] = "-";
    if (!isnan(d->ulp)) snprintf(ulp, sizeof ulp, "%.3g", d->ulp);
    printf("%-9s %9zu %9zu %10.3g %10s %10.3g", d->name, d->elements - d->left_out, d->differing,
           d->largest, ulp, d->relative);
    if (truth) {
        print_error(d->error_a);
        print_error(d->error_b);
        printf(" %s", d->error_a < d->error_b ? " A" : d->error_a > d->error_b ? " B" : " -");
    }
    printf("\n");
}

static void print_first(const sinkproof_difference *d) {
    printf("\nFirst difference: %s at (%s)\n", d->name,
           sinkproof_trace_index_text(d->rank, d->shape, d->first).text);
    printf("  A  %-24a %.9g\n  B  %-24a %.9g\n", d->a, d->a, d->b, d->b);
}

static const sinkproof_difference *first_difference(const sinkproof_comparison *c) {
    for (size_t i = 0; i < c->n_points; i++)
        if (c->points[i].differing > 0) return &c->points[i];
    return NULL;
}

static void print_comparison(const options *o, const char *a, const char *b,
                             const sinkproof_comparison *c) {
    const sinkproof_difference *first = first_difference(c);
    printf("A  %s\nB  %s\n\n%-9s %9s %9s %10s %10s %10s", a, b, "point", "elements", "differ",
           "largest", "ulp", "relative");
    if (o->model != NULL) printf(" %9s %9s nearer", "A, truth", "B, truth");
    printf("\n");
    for (size_t i = 0; i < c->n_points; i++)
        if (c->points[i].differing > 0 || o->model != NULL)
            print_point(&c->points[i], o->model != NULL);
    if (c->only_a + c->only_b > 0)
        printf("not compared: %s %s in A alone, %zu in B alone\n",
               sinkproof_counted(c->only_a, "point").text, sinkproof_is_or_are(c->only_a),
               c->only_b);
    if (c->rerouted > 0)
        printf("experts differ for %s in a layer: left out of M4 to M10 there\n",
               sinkproof_counted(c->rerouted, "token").text);
    if (o->model != NULL)
        printf("against the truth: relative in the 2-norm, with each trace's own experts "
               "(estimated in binary64)\n");
    if (c->n_points == 0)
        printf("\nThe traces have no point in common.\n");
    else if (first == NULL)
        printf("\nEqual at all %s.\n", sinkproof_counted(c->n_points, "point").text);
    else
        print_first(first);
}

// ---- JSON ------------------------------------------------------------------------------------

// sequence: of several; SIZE_MAX: the traces have one.
static void add_differences_json(const sinkproof_comparison *c, size_t sequence, json_t *results) {
    for (size_t i = 0; i < c->n_points; i++) {
        const sinkproof_difference *d = &c->points[i];
        json_t *o = json_object();
        json_object_set_new(o, "id", json_string(d->name));
        json_object_set_new(o, "ok", json_boolean(d->differing == 0));
        json_object_set_new(o, "elements", json_integer((json_int_t)(d->elements - d->left_out)));
        json_object_set_new(o, "differing", json_integer((json_int_t)d->differing));
        json_object_set_new(o, "largest", sinkproof_number_json(d->largest));
        json_object_set_new(o, "ulp", sinkproof_number_json(d->ulp));
        json_object_set_new(o, "relative", sinkproof_number_json(d->relative));
        json_object_set_new(o, "error_a", sinkproof_number_json(d->error_a));
        json_object_set_new(o, "error_b", sinkproof_number_json(d->error_b));
        if (sequence != SIZE_MAX)
            json_object_set_new(o, "sequence", json_integer((json_int_t)sequence));
        json_array_append_new(results, o);
    }
}

// ---- the baseline ----------------------------------------------------------------------------

static json_t *read_baseline(const char *path, sinkproof_error *error) {
    uint8_t *bytes;
    size_t length;
    json_error_t why;
    if (!sinkproof_read_file(path, &bytes, &length, error)) return NULL;
    json_t *root = json_loadb((const char *)bytes, length, 0, &why);
    free(bytes);
    const char *command = json_string_value(json_object_get(root, "command"));
    if (command != NULL && strcmp(command, "compare") == 0 &&
        json_is_array(json_object_get(root, "results")))
        return root;
    json_decref(root);
    sinkproof_fail(error, "%.900s: expected what `sinkproof compare --json` wrote", path);
    return NULL;
}

static const json_t *baseline_result(const json_t *baseline, const char *name, size_t sequence) {
    size_t i;
    const json_t *one;
    json_array_foreach(json_object_get(baseline, "results"), i, one) {
        const char *id = json_string_value(json_object_get(one, "id"));
        const json_t *of = json_object_get(one, "sequence");
        size_t its = of != NULL ? (size_t)json_integer_value(of) : SIZE_MAX;
        if (id != NULL && strcmp(id, name) == 0 && its == sequence) return one;
    }
    return NULL;
}

// Further apart than in the baseline: a larger relative distance; a NaN counts as infinite.
static bool is_worse(const sinkproof_difference *d, const json_t *then) {
    const json_t *relative = json_object_get(then, "relative");
    double was = then == NULL               ? 0
                 : json_is_number(relative) ? json_number_value(relative)
                                            : INFINITY;
    return !(d->relative <= was);
}

static void print_worse(const sinkproof_difference *d, const json_t *then) {
    double was = json_number_value(json_object_get(then, "relative"));
    int digits = sinkproof_digits_apart(d->relative, was, 3);
    printf("  %-9s %.*g, %s %.*g\n", d->name, digits, d->relative,
           then != NULL ? "then" : "not in it, so", digits, was);
}

static bool compare_with_baseline(const sinkproof_comparison *c, size_t sequence,
                                  const json_t *baseline, bool silent) {
    size_t worse = 0;
    for (size_t i = 0; i < c->n_points; i++) {
        const sinkproof_difference *d = &c->points[i];
        const json_t *then = baseline_result(baseline, d->name, sequence);
        if (!is_worse(d, then)) continue;
        if (worse++ == 0 && !silent) printf("\nFurther apart than the baseline:\n");
        if (!silent) print_worse(d, then);
    }
    if (worse == 0 && !silent) printf("\nNowhere further apart than the baseline.\n");
    return worse == 0;
}

// ---- the command -----------------------------------------------------------------------------

static bool prints_json_alone(const options *o) {
    return o->json != NULL && strcmp(o->json, "-") == 0;
}

// Prints a comparison and adds its rows; returns whether it is good. sequence: as of its rows.
static bool report_comparison(const options *o, const char *const names[2],
                              const sinkproof_comparison *c, size_t sequence,
                              const json_t *baseline, json_t *results) {
    bool silent = prints_json_alone(o);
    note_tell(c->note.text, !silent);
    if (!silent) print_comparison(o, names[0], names[1], c);
    add_differences_json(c, sequence, results);
    return baseline != NULL ? compare_with_baseline(c, sequence, baseline, silent)
                            : first_difference(c) == NULL;
}

// Prints which of the traces name another model.
static bool tell_notes(const options *o, const sinkproof_model *model, const sinkproof_trace *a,
                       const sinkproof_trace *b, sinkproof_error *error) {
    const sinkproof_trace *both[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        sinkproof_note note, named;
        if (!sinkproof_trace_model_note(both[i], model, &note, error)) return false;
        if (note.text[0] == '\0') continue;
        snprintf(named.text, sizeof named.text, "%c: %.1000s", 'A' + i, note.text);
        note_tell(named.text, !prints_json_alone(o));
    }
    return true;
}

// Compares two traces of one sequence, and each with the real model; *good: as report_comparison.
static bool compare_one(const options *o, const sinkproof_model *model, const sinkproof_trace *a,
                        const sinkproof_trace *b, size_t sequence, const json_t *baseline,
                        json_t *results, bool *good, sinkproof_error *error) {
    const char *const names[2] = {sinkproof_trace_path(a), sinkproof_trace_path(b)};
    sinkproof_comparison c = {.n_points = 0};
    bool fine = sinkproof_trace_from_start(a, error) && sinkproof_trace_from_start(b, error) &&
                sinkproof_compare_opened(a, b, &c, error) &&
                sinkproof_compare_truth(model, a, b, &c, error);
    if (fine) *good = report_comparison(o, names, &c, sequence, baseline, results) && *good;
    sinkproof_comparison_free(&c);
    return fine;
}

// The same of each sequence of two traces of several.
static bool compare_sequences(const options *o, const sinkproof_model *model,
                              const sinkproof_trace *a, const sinkproof_trace *b,
                              const json_t *baseline, json_t *results, bool *good,
                              sinkproof_error *error) {
    const sinkproof_config *config = sinkproof_model_config(model);
    size_t n = sinkproof_trace_sequences(a), of_b = sinkproof_trace_sequences(b);
    bool fine =
        n == of_b || sinkproof_fail(error, "%.400s has %s, %.400s has %zu", o->words[0],
                                    sinkproof_counted(n, "sequence").text, o->words[1], of_b);
    if (fine && n == 1)
        return compare_one(o, model, a, b, SIZE_MAX, baseline, results, good, error);
    for (size_t i = 0; fine && i < n; i++) {
        sinkproof_trace *x = NULL, *y = NULL;
        if (i > 0 && !prints_json_alone(o)) printf("\n");
        fine = sinkproof_trace_alone(a, config, i, &x, error) &&
               sinkproof_trace_alone(b, config, i, &y, error) &&
               compare_one(o, model, x, y, i, baseline, results, good, error);
        sinkproof_trace_close(x);
        sinkproof_trace_close(y);
    }
    return fine;
}

// Compares the traces and each with the real model, opened as the judge opens them.
static bool ask_truth(const options *o, const json_t *baseline, json_t *results, bool *good,
                      sinkproof_error *error) {
    sinkproof_model *model;
    sinkproof_trace *a = NULL, *b = NULL;
    if (!sinkproof_model_open(o->model, &model, error)) return false;
    bool fine = sinkproof_trace_open_of(o->words[0], model, o->any_model, &a, error) &&
                sinkproof_trace_open_of(o->words[1], model, o->any_model, &b, error) &&
                tell_notes(o, model, a, b, error) &&
                compare_sequences(o, model, a, b, baseline, results, good, error);
    sinkproof_trace_close(a);
    sinkproof_trace_close(b);
    sinkproof_model_close(model);
    return fine;
}

static bool compare_files(const options *o, const json_t *baseline, json_t *results, bool *good,
                          sinkproof_error *error) {
    sinkproof_comparison c;
    if (!sinkproof_compare_traces(o->words[0], o->words[1], &c, error)) return false;
    *good = report_comparison(o, o->words, &c, SIZE_MAX, baseline, results);
    sinkproof_comparison_free(&c);
    return true;
}

int cmd_compare(int argc, char **argv) {
    options o = {.n_words = 0};
    sinkproof_error error;
    json_t *baseline = NULL, *results = json_array();
    bool good = true;
    command_parse_line(&parser, argc, argv, &o);
    bool fine = o.baseline == NULL || (baseline = read_baseline(o.baseline, &error)) != NULL;
    if (fine)
        fine = o.model != NULL ? ask_truth(&o, baseline, results, &good, &error)
                               : compare_files(&o, baseline, results, &good, &error);
    int code = !fine ? exit_bad_input("compare", &error)
                     : exit_with_results(o.json, "compare", good ? EXIT_HOLDS : EXIT_BUG, results);
    if (!fine) json_decref(results);
    json_decref(baseline);
    return code;
}
