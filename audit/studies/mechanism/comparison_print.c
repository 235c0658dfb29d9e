// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Prints the comparison as text, as JSON and as HTML tables.
#include "audit/report/page.h"
#include "audit/studies/mechanism/comparison.h"
#include "audit/studies/sinks/part_shared.h"

#include <math.h>
#include <string.h>

static const char *const columns[SINKPROOF_PUBLISHED_COLUMNS] = {"mean", "spread", "138", "447"};
static const char *const epes[EPE_READINGS] = {"raw", "normed"};

typedef struct cell {
    char text[64];
} cell;

// "=" if it rounds to the printed number, else the difference; "-": not measured.
static cell cell_off_printed(const figure_compared *c) {
    cell off = {"="};
    if (isnan(c->off))
        strcpy(off.text, "-");
    else if (!c->rounds)
        snprintf(off.text, sizeof off.text, "%+.4g", c->off);
    return off;
}

static part_cell number_cell(double x) {
    return part_text("%.6g", x);
}

// Coordinates such as "138, 378, 447", or "none".
static cell massive_cell(const epe_figure_compared *e) {
    enum { ROOM = sizeof e->massive_n / sizeof *e->massive_n };
    cell list = {"none"};
    size_t at = 0;
    for (size_t k = 0; k < e->n_massive && k < ROOM; k++)
        at += (size_t)snprintf(list.text + at, sizeof list.text - at, "%s%zu", k > 0 ? ", " : "",
                               e->massive_n[k]);
    if (e->n_massive > ROOM) snprintf(list.text + at, sizeof list.text - at, ", ...");
    return list;
}

// ---- text --------------------------------------------------------------------------------------

// Prints text in lines of at most 100 characters, with all but the first indented.
static void print_wrapped(FILE *out, const char *text, size_t indent) {
    size_t at = indent;
    for (const char *word = text; *word != '\0';) {
        size_t length = strcspn(word, " ");
        if (at > indent && at + 1 + length > 100) {
            fprintf(out, "\n%*s", (int)indent, "");
            at = indent;
        } else if (at > indent)
            fputc(' ', out), at++;
        fprintf(out, "%.*s", (int)length, word);
        at += length;
        word += length + (word[length] == ' ');
    }
    fputc('\n', out);
}

static void print_row(const table_comparison *c, size_t l, FILE *out) {
    const published_row *row = &published_rows[l];
    fprintf(out, "%5zu  %5zu  printed ", row->layer, row->table);
    for (size_t k = 0; k < SINKPROOF_PUBLISHED_COLUMNS; k++) fprintf(out, " %11s", row->text_k[k]);
    fprintf(out, "\n%14smeasured", "");
    for (size_t k = 0; k < SINKPROOF_PUBLISHED_COLUMNS; k++)
        fprintf(out, " %11s", number_cell(c->row_lk[l][k].measured).text);
    fprintf(out, " %11s\n%14soff     ", number_cell(c->at_378_l[l]).text, "");
    for (size_t k = 0; k < SINKPROOF_PUBLISHED_COLUMNS; k++)
        fprintf(out, " %11s", cell_off_printed(&c->row_lk[l][k]).text);
    fputc('\n', out);
}

static void print_values(const table_comparison *c, FILE *out) {
    fprintf(out, "\n%-29s  %-8s  %-12s  %11s %9s  %11s %9s\n", "in the text", "where", "printed",
            "raw", "off", "normed", "off");
    for (size_t k = 0; k < PUBLISHED_VALUES; k++) {
        const published_value *p = &published_values[k];
        fprintf(out, "%-29s  %-8s  %-12s", p->what, p->place, p->said);
        for (size_t e = 0; e < EPE_READINGS; e++)
            fprintf(out, "  %11s %9s", number_cell(c->epe_e[e].value_k[k].measured).text,
                    cell_off_printed(&c->epe_e[e].value_k[k]).text);
        fputc('\n', out);
    }
    for (size_t e = 0; e < EPE_READINGS; e++)
        fprintf(out, "massive coordinates, %-8s  A.4       138, 378, 447  %s%s\n", epes[e],
                massive_cell(&c->epe_e[e]).text, c->epe_e[e].massive_same ? "  =" : "");
    if (c->sentence != 0)
        fputs("What needs an input is printed of the first sentence alone (--sentence 0): -.\n",
              out);
}

static void print_readings(const table_comparison *c, FILE *out) {
    fprintf(out, "\n  rows  numbers  reading of the tables (12 rows, 48 numbers; * is shown)\n");
    for (size_t i = 0; i < TABLE_READINGS; i++)
        fprintf(out, "%c %4zu  %7zu  %s\n", i == c->best ? '*' : ' ', c->count_r[i].rows,
                c->count_r[i].numbers, table_reading_named(table_reading_at(i)).text);
    if (c->count_r[c->best].rows == 0) fputs("No reading gives back a row of the tables.\n", out);
}

void sinkproof_comparison_print(const table_comparison *c, FILE *out) {
    fputs("\nPublished against measured\n", out);
    print_wrapped(out, c->weights, 0);
    fprintf(out, "\nlayer  table          ");
    for (size_t k = 0; k < SINKPROOF_PUBLISHED_COLUMNS; k++) fprintf(out, " %11s", columns[k]);
    fprintf(out, " %11s\n", "378");
    for (size_t l = 0; l < SINKPROOF_PUBLISHED_ROWS; l++) print_row(c, l, out);
    fputs("= : rounded to the printed digits it is the printed number.\n", out);
    print_readings(c, out);
    print_values(c, out);
    fputs("\nWhat the paper leaves open, or says in two ways\n", out);
    for (size_t i = 0; published_note_at(i) != NULL; i++) {
        fprintf(out, "%-15s ", published_note_at(i)->name);
        print_wrapped(out, published_note_at(i)->text, 16);
    }
}

// ---- JSON --------------------------------------------------------------------------------------

static json_t *compared_json(const char *printed, const figure_compared *c) {
    return json_pack("{s:s, s:o, s:o, s:b}", "printed", printed, "measured",
                     sinkproof_number_json(c->measured), "off", sinkproof_number_json(c->off),
                     "rounds", c->rounds);
}

static json_t *rows_json(const table_comparison *c) {
    json_t *rows = json_array();
    for (size_t l = 0; l < SINKPROOF_PUBLISHED_ROWS; l++) {
        const published_row *p = &published_rows[l];
        json_t *row = json_pack("{s:I, s:I}", "layer", (json_int_t)p->layer - 1, "table",
                                (json_int_t)p->table);
        for (size_t k = 0; k < SINKPROOF_PUBLISHED_COLUMNS; k++)
            json_object_set_new(row, columns[k], compared_json(p->text_k[k], &c->row_lk[l][k]));
        json_object_set_new(row, "378", sinkproof_number_json(c->at_378_l[l]));
        json_array_append_new(rows, row);
    }
    return rows;
}

static json_t *readings_json(const table_comparison *c) {
    json_t *readings = json_array();
    for (size_t i = 0; i < TABLE_READINGS; i++)
        json_array_append_new(readings,
                              json_pack("{s:s, s:I, s:I, s:b}", "reading",
                                        table_reading_named(table_reading_at(i)).text, "rows",
                                        (json_int_t)c->count_r[i].rows, "numbers",
                                        (json_int_t)c->count_r[i].numbers, "shown", i == c->best));
    return readings;
}

static json_t *epe_json(const epe_figure_compared *e, const char *name) {
    enum { ROOM = sizeof e->massive_n / sizeof *e->massive_n };
    json_t *values = json_object(), *massive = json_array();
    for (size_t k = 0; k < PUBLISHED_VALUES; k++) {
        const published_value *p = &published_values[k];
        json_object_set_new(values, p->name, compared_json(p->said, &e->value_k[k]));
    }
    for (size_t k = 0; k < e->n_massive && k < ROOM; k++)
        json_array_append_new(massive, part_count(e->massive_n[k]));
    return json_pack("{s:s, s:o, s:o, s:I, s:b}", "epe", name, "values", values, "massive", massive,
                     "n_massive", (json_int_t)e->n_massive, "massive_same", e->massive_same);
}

json_t *sinkproof_comparison_json(const table_comparison *c) {
    json_t *notes = json_object(), *both = json_array();
    for (size_t i = 0; published_note_at(i) != NULL; i++)
        json_object_set_new(notes, published_note_at(i)->name,
                            json_string(published_note_at(i)->text));
    for (size_t e = 0; e < EPE_READINGS; e++)
        json_array_append_new(both, epe_json(&c->epe_e[e], epes[e]));
    return json_pack("{s:s, s:o, s:o, s:o, s:o}", "weights", c->weights, "rows", rows_json(c),
                     "readings", readings_json(c), "effective", both, "notes", notes);
}

// ---- HTML --------------------------------------------------------------------------------------

// Writes the printed number, the measured one and the difference into one cell.
static void write_cell(FILE *page, const char *printed, const figure_compared *c) {
    fprintf(page, "<td class=\"%s\">", isnan(c->off) ? "undecided" : c->rounds ? "exact" : "");
    sinkproof_page_say(page, "%s", printed);
    fputs("<br>", page);
    sinkproof_page_say(page, "%s", number_cell(c->measured).text);
    fputs("<br>", page);
    sinkproof_page_say(page, "%s", cell_off_printed(c).text);
    fputs("</td>", page);
}

static void write_table(const table_comparison *c, size_t table, FILE *page) {
    fprintf(page,
            "<h3>Table %zu: gamma at massive coordinates</h3>\n<div class=\"wide\"><table>"
            "<tr><th>layer</th><th></th>",
            table);
    for (size_t k = 0; k < SINKPROOF_PUBLISHED_COLUMNS; k++)
        fprintf(page, "<th>%s</th>", columns[k]);
    fputs("<th>378</th></tr>\n", page);
    for (size_t l = 0; l < SINKPROOF_PUBLISHED_ROWS; l++) {
        const published_row *row = &published_rows[l];
        if (row->table != table) continue;
        fprintf(page, "<tr><th>%zu</th><td>printed<br>measured<br>off</td>", row->layer);
        for (size_t k = 0; k < SINKPROOF_PUBLISHED_COLUMNS; k++)
            write_cell(page, row->text_k[k], &c->row_lk[l][k]);
        fprintf(page, "<td><br>%s</td></tr>\n", number_cell(c->at_378_l[l]).text);
    }
    fputs("</table></div>\n<p>", page);
    sinkproof_page_say(page, "Read as %s.", table_reading_named(table_reading_at(c->best)).text);
    fprintf(page, " Defined by <code>gpt2.table%zu</code>.</p>\n", table);
}

static void write_readings(const table_comparison *c, FILE *page) {
    fputs("<h3>Readings of the tables</h3>\n<div class=\"wide\"><table><tr><th>rows of 12</th>"
          "<th>numbers of 48</th><th>reading</th></tr>\n",
          page);
    for (size_t i = 0; i < TABLE_READINGS; i++)
        fprintf(page, "<tr><td>%zu</td><td>%zu</td><td>%s%s</td></tr>\n", c->count_r[i].rows,
                c->count_r[i].numbers, table_reading_named(table_reading_at(i)).text,
                i == c->best ? " (shown)" : "");
    fputs("</table></div>\n", page);
    if (c->count_r[c->best].rows == 0)
        fputs("<p>No reading gives back a row of the tables.</p>\n", page);
}

static void write_values(const table_comparison *c, FILE *page) {
    fputs("<h3>Numbers in the text</h3>\n<div class=\"wide\"><table><tr><th></th><th>where</th>"
          "<th>printed</th><th>raw</th><th>off</th><th>normed</th><th>off</th></tr>\n",
          page);
    for (size_t k = 0; k < PUBLISHED_VALUES; k++) {
        const published_value *p = &published_values[k];
        fprintf(page, "<tr><td>%s</td><td>%s</td><td>%s</td>", p->what, p->place, p->said);
        for (size_t e = 0; e < EPE_READINGS; e++) {
            const figure_compared *value = &c->epe_e[e].value_k[k];
            fprintf(page, "<td>%s</td><td class=\"%s\">%s</td>", number_cell(value->measured).text,
                    value->rounds ? "exact" : "", cell_off_printed(value).text);
        }
        fputs("</tr>\n", page);
    }
    fputs("<tr><td>massive coordinates</td><td>A.4</td><td>138, 378, 447</td>", page);
    for (size_t e = 0; e < EPE_READINGS; e++)
        fprintf(page, "<td>%s</td><td>%s</td>", massive_cell(&c->epe_e[e]).text,
                c->epe_e[e].massive_same ? "=" : "");
    fputs("</tr></table></div>\n", page);
    if (c->sentence != 0)
        fputs("<p>What needs an input is printed of the first sentence alone.</p>\n", page);
}

void comparison_html(const table_comparison *c, FILE *page) {
    fprintf(page, "<h2>Published against measured</h2>\n<p>%s</p>\n", c->weights);
    fputs("<p>= : rounded to the printed digits it is the printed number.</p>\n", page);
    for (size_t table = 1; table <= 2; table++) write_table(c, table, page);
    write_readings(c, page);
    write_values(c, page);
    fputs("<h3>What the paper leaves open, or says in two ways</h3>\n<ul>\n", page);
    for (size_t i = 0; published_note_at(i) != NULL; i++) {
        fputs("<li>", page);
        sinkproof_page_text(page, published_note_at(i)->text);
        fputs("</li>\n", page);
    }
    fputs("</ul>\n", page);
}
