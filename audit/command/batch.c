// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/command/batch.h"

#include "audit/command/command.h"
#include "audit/command/kept.h"
#include "audit/report/page.h"
#include "base/words.h"
#include "model/bytes.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>

int batch_graver(int a, int b) {
    static const int order[] = {EXIT_HOLDS, EXIT_INCONCLUSIVE, EXIT_BAD_INPUT, EXIT_BUG};
    int graver = EXIT_HOLDS;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (a == order[i] || b == order[i]) graver = order[i];
    return graver;
}

// ---- one unit --------------------------------------------------------------------------------

// A unit without a result: a row, a line of the table and a part of the page with its sentence.
static json_t *refused(const batch *b, const batch_unit *unit, const char *sentence) {
    char *page = NULL;
    size_t length;
    FILE *out = b->html != NULL ? open_memstream(&page, &length) : NULL;
    json_t *result = json_pack("{s:i, s:o, s:[{s:s, s:b, s:i, s:o}], s:s}", "exit", EXIT_BAD_INPUT,
                               "said", text_json(sentence), "results", "id", "input", "ok", 0,
                               "exit", EXIT_BAD_INPUT, "error", text_json(sentence), "text", "");
    if (out != NULL) {
        fputs("<h1 class=\"odd\">", out);
        sinkproof_page_say(out, "No result: %s", unit->input->name);
        fputs("</h1>\n<p>", out);
        sinkproof_page_text(out, sentence);
        fputs("</p>\n", out);
        fclose(out);
        json_object_set_new(result, "page", text_json(page));
        free(page);
    }
    return result;
}

static int exit_of(const json_t *result) {
    return (int)json_integer_value(json_object_get(result, "exit"));
}

// Says in every row whose it is, and in a first one, or a row of its own before it, the exit code.
static void name_rows(const batch *b, const batch_unit *unit, json_t *result) {
    json_t *rows = json_object_get(result, "results"), *row;
    int code = exit_of(result);
    size_t i;
    if (b->of == NULL) return;
    if (json_object_get(json_array_get(rows, 0), "exit") == NULL)
        json_array_insert_new(
            rows, 0,
            json_pack("{s:s, s:b, s:i}", "id", "input", "ok", code == EXIT_HOLDS, "exit", code));
    json_array_foreach(rows, i, row) {
        json_object_set_new(row, b->of, text_json(unit->input->name));
        if (unit->end_layer > 0)
            json_object_set_new(row, "layers",
                                json_pack("[I, I]", (json_int_t)unit->first_layer,
                                          (json_int_t)unit->end_layer - 1));
    }
}

// A sentence about a prompt begins with the prompt's name; one about a trace has it already.
static void name_problem(const batch *b, const batch_unit *unit, sinkproof_error *error) {
    static const char option[] = "--tokens: "; // the tokens came from no option
    const char *name = unit->input->name, *sentence = error->text;
    if (b->of == NULL || strncmp(sentence, name, strlen(name)) == 0) return;
    if (strncmp(sentence, option, strlen(option)) == 0) sentence += strlen(option);
    char copy[sizeof error->text];
    snprintf(copy, sizeof copy, "%s", sentence);
    sinkproof_fail(error, "%.300s: %.700s", name, copy);
}

static json_t *work_on(const batch *b, const batch_unit *unit) {
    sinkproof_error error = {""};
    json_t *result = NULL;
    if (unit->input->problem != NULL)
        snprintf(error.text, sizeof error.text, "%s", unit->input->problem);
    else
        result = b->work(b->context, unit, b->html != NULL, &error);
    if (result == NULL) {
        name_problem(b, unit, &error);
        exit_bad_input(b->command, &error);
        result = refused(b, unit, error.text);
    }
    if (result == NULL) abort();
    name_rows(b, unit, result);
    return result;
}

// ---- all of them -----------------------------------------------------------------------------

static const char *text_of(const json_t *result, const char *member) {
    const char *text = json_string_value(json_object_get(result, member));
    return text != NULL ? text : "";
}

// "trace.safetensors", "trace.safetensors, layers 0-5"
static void spell_name(const batch_unit *unit, char name[1200]) {
    snprintf(name, 1200, "%.1100s", unit->input->name);
    size_t used = strlen(name), last = unit->end_layer - 1;
    if (unit->end_layer == unit->first_layer + 1)
        snprintf(name + used, 1200 - used, ", layer %zu", last);
    else if (unit->end_layer > 0)
        snprintf(name + used, 1200 - used, ", layers %zu-%zu", unit->first_layer, last);
    sinkproof_make_printable(name);
}

// A sentence may begin with the name.
static void print_row(const batch_unit *unit, const json_t *result) {
    char name[1200];
    const char *said = text_of(result, "said"), *own = unit->input->name;
    bool named = unit->end_layer == 0 && strncmp(said, own, strlen(own)) == 0;
    spell_name(unit, name);
    if (named)
        printf("%4d  %s\n", exit_of(result), said);
    else
        printf("%4d  %s: %s\n", exit_of(result), name, said);
}

static void print_table(const batch *b, const json_t *results, int gravest) {
    size_t counts[EXIT_INCONCLUSIVE + 1] = {0};
    printf("\nexit  %s: result\n", b->of);
    for (size_t i = 0; i < b->n; i++) {
        const json_t *result = json_array_get(results, i);
        print_row(&b->units[i], result);
        counts[exit_of(result)]++;
    }
    printf("%s:", sinkproof_counted(b->n, "result").text);
    const char *comma = "";
    static const int order[] = {EXIT_BUG, EXIT_BAD_INPUT, EXIT_INCONCLUSIVE, EXIT_HOLDS};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        if (counts[order[i]] == 0) continue;
        printf("%s %zu with exit code %d", comma, counts[order[i]], order[i]);
        comma = ",";
    }
    printf(".\nThe gravest of them (1, then 3, 4, 0) is %d.\n", gravest);
}

static void write_table(FILE *page, const batch *b, const json_t *results) {
    static const char *const css[] = {"good", "bad", "odd", "odd", "faint"};
    char name[1200];
    fprintf(page,
            "<div class=\"wide\"><table><thead><tr><th>exit</th><th>%s</th><th>result</th>"
            "</tr></thead>\n<tbody>",
            b->of);
    for (size_t i = 0; i < b->n; i++) {
        const json_t *result = json_array_get(results, i);
        spell_name(&b->units[i], name);
        fprintf(page, "<tr><td class=\"%s\">%d</td><td>", css[exit_of(result)], exit_of(result));
        sinkproof_page_text(page, name);
        fputs("</td><td>", page);
        sinkproof_page_text(page, text_of(result, "said"));
        fputs("</td></tr>\n", page);
    }
    fputs("</tbody></table></div>\n", page);
}

static bool write_page(const batch *b, const json_t *results, sinkproof_error *error) {
    sinkproof_output output;
    size_t i;
    const json_t *result;
    if (!sinkproof_output_open(&output, b->html, error)) return false;
    sinkproof_page_begin(output.stream, b->title);
    if (b->n > 1) write_table(output.stream, b, results);
    json_array_foreach(results, i, result) fputs(text_of(result, "page"), output.stream);
    sinkproof_page_end(output.stream);
    return sinkproof_output_finish(&output, error);
}

static json_t *collect_rows(const json_t *results) {
    json_t *rows = json_array(), *result;
    size_t i;
    if (rows == NULL) abort();
    json_array_foreach(results, i, result)
        json_array_extend(rows, json_object_get(result, "results"));
    return rows;
}

static int write_all(const batch *b, const json_t *results, int gravest) {
    sinkproof_error error;
    if (b->html != NULL && !write_page(b, results, &error))
        return exit_bad_input(b->command, &error);
    return exit_with_results(b->json, b->command, gravest, collect_rows(results));
}

// Only a lone input without a result leaves no files: there is nothing to write.
static bool has_results(const batch *b, const json_t *results) {
    return b->n > 1 ||
           json_object_get(
               json_array_get(json_object_get(json_array_get(results, 0), "results"), 0),
               "error") == NULL;
}

// A blank line between two texts.
static void show_text(const json_t *result, bool first) {
    const char *text = text_of(result, "text");
    if (!first && text[0] != '\0') printf("\n");
    fputs(text, stdout);
    fflush(stdout);
}

static bool is_silent(const batch *b) {
    return b->json != NULL && strcmp(b->json, "-") == 0;
}

static int gravest_of(const json_t *results) {
    int gravest = EXIT_HOLDS;
    size_t i;
    const json_t *result;
    json_array_foreach(results, i, result) gravest = batch_graver(gravest, exit_of(result));
    return gravest;
}

// The table and the files.
static int end_run(const batch *b, const json_t *results) {
    int gravest = gravest_of(results);
    if (!is_silent(b) && b->n > 1) print_table(b, results, gravest);
    return has_results(b, results) ? write_all(b, results, gravest) : gravest;
}

int batch_finish(const batch *b, const json_t *results) {
    size_t i;
    const json_t *result;
    json_array_foreach(results, i, result) {
        if (!is_silent(b)) show_text(result, i == 0);
    }
    return end_run(b, results);
}

// ---- kept results ----------------------------------------------------------------------------

// Takes the result of a unit that is kept, or works on it and keeps it.
static json_t *keep(const batch *b, const batch_unit *unit, size_t *before,
                    sinkproof_error *error) {
    json_t *own = kept_unit(unit), *result = kept_find(b, own);
    *before += result != NULL;
    if (result == NULL) {
        result = work_on(b, unit);
        if (json_object_get(result, "page") == NULL) // a command without pages
            json_object_set_new(result, "page", json_string(""));
        if (!kept_write(b, own, result, error)) {
            json_decref(result);
            result = NULL;
        }
    }
    json_decref(own);
    return result;
}

static bool is_of_shard(const batch *b, size_t i) {
    return b->shard.of < 2 || i % b->shard.of == b->shard.at;
}

// Two units of one name would share a file.
static bool are_distinct(const batch *b, const json_t *run, sinkproof_error *error) {
    json_t *seen = json_object(), *unit;
    bool good = seen != NULL;
    size_t i;
    json_array_foreach(json_object_get(run, "units"), i, unit) {
        char *text = json_dumps(unit, JSON_COMPACT);
        if (good && json_object_get(seen, text) != NULL)
            good = sinkproof_fail(error, "%.800s: given twice", b->units[i].input->name);
        json_object_set_new(seen, text, json_true());
        free(text);
    }
    json_decref(seen);
    return good;
}

static bool begin_kept(const batch *b, sinkproof_error *error) {
    json_t *run = kept_run(b);
    bool good = run != NULL || sinkproof_fail(error, "no memory for a run");
    good = good && are_distinct(b, run, error) && kept_begin(b->out, run, error);
    json_decref(run);
    return good;
}

static void say_kept(const batch *b, size_t n, size_t before) {
    if (b->shard.of < 2) {
        if (before > 0)
            fprintf(stderr, "sinkproof %s: %zu of %s in %s from before\n", b->command, before,
                    sinkproof_counted(n, "result").text, b->out);
        return;
    }
    printf("shard %zu/%zu%s%s: %s in %s, %zu of them from before; sinkproof merge %s puts the "
           "shards together\n",
           b->shard.at + 1, b->shard.of, b->shard.from != NULL ? " by " : "",
           b->shard.from != NULL ? b->shard.from : "", sinkproof_counted(n, "result").text, b->out,
           before, b->out);
}

static int run_kept(const batch *b) {
    batch paged = *b; // a kept result has its part of a page, whether or not one is wanted now
    sinkproof_error error;
    json_t *results = json_array();
    bool lines = b->shard.of > 1, good = begin_kept(b, &error);
    size_t before = 0;
    if (b->html == NULL) paged.html = "";
    for (size_t i = 0; good && i < b->n; i++) {
        if (!is_of_shard(b, i)) continue;
        json_t *result = keep(&paged, &b->units[i], &before, &error);
        good = result != NULL;
        if (good && lines) print_row(&b->units[i], result);
        fflush(stdout);
        if (good && !lines && !is_silent(b)) show_text(result, json_array_size(results) == 0);
        if (good) json_array_append_new(results, result);
    }
    if (good) say_kept(b, json_array_size(results), before);
    int code = !good   ? exit_bad_input(b->command, &error)
               : lines ? EXIT_HOLDS
                       : end_run(b, results);
    json_decref(results);
    return code;
}

int batch_run(const batch *b) {
    if (b->out != NULL) return run_kept(b);
    json_t *results = json_array();
    for (size_t i = 0; i < b->n; i++) {
        json_t *result = work_on(b, &b->units[i]);
        if (!is_silent(b)) show_text(result, i == 0);
        json_object_del(result, "text");
        if (json_array_append_new(results, result) != 0) abort();
    }
    int code = end_run(b, results);
    json_decref(results);
    return code;
}

void batch_check_options(struct argp_state *state, const char *said, batch *b) {
    sinkproof_error error;
    b->shard = (work_shard){0, 1, NULL};
    if (b->out == NULL && said != NULL) argp_error(state, "--shard asks for --out");
    if (b->out == NULL) return;
    bool good = said != NULL ? shard_parse(said, &b->shard, &error)
                             : shard_of_environment(getenv, &b->shard, &error);
    if (!good) argp_error(state, "%s", error.text);
    if (b->shard.of > 1 && (b->json != NULL || b->html != NULL))
        argp_error(state, "a shard writes no --json and no --html: sinkproof merge does");
}

void batch_check_prompts(struct argp_state *state, const char *said, const batch *b,
                         const input_list *prompts, work_shard *shard) {
    batch own = *b;
    batch_check_options(state, said, &own);
    *shard = own.shard;
    if (b->out != NULL && prompts->n == 0)
        argp_error(state, "--out keeps the results of --prompts");
}

int batch_prompts(const batch *b, const char *tokens, const input_list *prompts) {
    batch many = *b;
    char *said = strdup(tokens);
    command_input lone = {said, said, NULL};
    batch_unit *units = calloc(prompts->n + 1, sizeof *units);
    if (said == NULL || units == NULL) abort();
    units[0].input = &lone;
    for (size_t i = 0; i < prompts->n; i++) units[i].input = &prompts->at[i];
    many.of = prompts->n > 0 ? "prompt" : NULL;
    many.n = prompts->n > 0 ? prompts->n : 1;
    many.units = units;
    int code = batch_run(&many);
    free(units);
    free(said);
    return code;
}
