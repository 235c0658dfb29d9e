// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/command/batch.h"

#include "audit/command/command.h"
#include "audit/report/page.h"
#include "base/words.h"
#include "model/bytes.h"

#include <stdlib.h>
#include <string.h>

int batch_graver(int a, int b) {
    static const int order[] = {EXIT_HOLDS, EXIT_INCONCLUSIVE, EXIT_BAD_INPUT, EXIT_BUG};
    int graver = EXIT_HOLDS;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (a == order[i] || b == order[i]) graver = order[i];
    return graver;
}

// A stranger's text: of a byte that is no UTF-8 there is no JSON.
json_t *batch_text(const char *text) {
    json_t *string = json_string(text);
    char *plain = string == NULL ? strdup(text) : NULL;
    for (char *c = plain; c != NULL && *c != '\0'; c++)
        if ((unsigned char)*c > 126) *c = '?';
    if (plain != NULL) string = json_string(plain);
    free(plain);
    if (string == NULL) abort();
    return string;
}

// ---- one unit --------------------------------------------------------------------------------

// A unit without a result: a row, a line of the table and a part of the page with its sentence.
static json_t *refused(const batch *b, const batch_unit *unit, const char *sentence) {
    char *page = NULL;
    size_t length;
    FILE *out = b->html != NULL ? open_memstream(&page, &length) : NULL;
    json_t *result = json_pack("{s:i, s:o, s:[{s:s, s:b, s:i, s:o}], s:s}", "exit", EXIT_BAD_INPUT,
                               "said", batch_text(sentence), "results", "id", "input", "ok", 0,
                               "exit", EXIT_BAD_INPUT, "error", batch_text(sentence), "text", "");
    if (out != NULL) {
        fputs("<h1 class=\"odd\">", out);
        sinkproof_page_say(out, "No result: %s", unit->input->name);
        fputs("</h1>\n<p>", out);
        sinkproof_page_text(out, sentence);
        fputs("</p>\n", out);
        fclose(out);
        json_object_set_new(result, "page", batch_text(page));
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
        json_object_set_new(row, b->of, batch_text(unit->input->name));
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
    if (unit->end_layer > 0)
        snprintf(name + strlen(name), 64, ", layers %zu-%zu", unit->first_layer,
                 unit->end_layer - 1);
    sinkproof_make_printable(name);
}

static void print_table(const batch *b, const json_t *results, int gravest) {
    char name[1200];
    size_t counts[EXIT_INCONCLUSIVE + 1] = {0};
    printf("\nexit  %s: result\n", b->of);
    for (size_t i = 0; i < b->n; i++) {
        const json_t *result = json_array_get(results, i);
        const char *said = text_of(result, "said");
        spell_name(&b->units[i], name);
        if (strncmp(said, name, strlen(name)) == 0) // a sentence that begins with the name
            printf("%4d  %s\n", exit_of(result), said);
        else
            printf("%4d  %s: %s\n", exit_of(result), name, said);
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

int batch_run(const batch *b) {
    bool silent = b->json != NULL && strcmp(b->json, "-") == 0;
    json_t *results = json_array();
    int gravest = EXIT_HOLDS;
    for (size_t i = 0; i < b->n; i++) {
        json_t *result = work_on(b, &b->units[i]);
        const char *text = text_of(result, "text");
        if (!silent && i > 0 && text[0] != '\0') printf("\n");
        if (!silent) fputs(text, stdout);
        fflush(stdout);
        gravest = batch_graver(gravest, exit_of(result));
        json_object_del(result, "text");
        if (json_array_append_new(results, result) != 0) abort();
    }
    if (!silent && b->n > 1) print_table(b, results, gravest);
    int code = has_results(b, results) ? write_all(b, results, gravest) : gravest;
    json_decref(results);
    return code;
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
