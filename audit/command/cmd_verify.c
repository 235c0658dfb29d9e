// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof verify`: prints the table of all statements and the present evidence for each of them.
#include "audit/command/command.h"
#include "audit/trace/trace_points.h"
#include "audit/verify/verify.h"
#include "base/share.h"
#include "base/words.h"
#include "model/json_number.h"

#include <argp.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_BITS = 256, KEY_SEED, KEY_INSTANCES, WIDTH = 100 };

typedef struct options {
    verify_options how;
    const char *json;
    bool list;
    char **ids; // from the command line
    size_t n_ids;
} options;

static const struct argp_option option_table[] = {
    {"bits", KEY_BITS, "N", 0, "precision of the enclosures (256)", 0},
    {"seed", KEY_SEED, "N", 0, "of the drawn instances (1)", 0},
    {"instances", KEY_INSTANCES, "N", 0, "exact instances of each form (100)", 0},
    {"json", KEPT(options, json), "FILE", 0, "write the result as JSON (- is stdout)", 0},
    {"list", KEPT(options, list), NULL, 0, "list the statements, check nothing", 0},
    {0}};

static error_t parse_option(int key, char *argument, struct argp_state *state) {
    options *o = state->input;
    if (option_keep(o, key, argument)) return 0;
    switch (key) {
    case KEY_BITS:
        o->how.bits = option_number(state, "bits", argument, 32, 65536);
        return 0;
    case KEY_SEED:
        o->how.seed = option_number(state, "seed", argument, 0, 1L << 62);
        return 0;
    case KEY_INSTANCES:
        o->how.instances = option_number(state, "instances", argument, 1, 1000000);
        return 0;
    case ARGP_KEY_ARG:
        o->ids[o->n_ids++] = argument;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp parser = {
    option_table,
    parse_option,
    "[ID...]",
    "Checks the equations of the book, each for the letters of its heading: exactly in rationals "
    "(Q), "
    "enclosed in balls or an error against its bound (B), by experiment (E), in code that defines "
    "it "
    "(D), by a formal proof (C).\v"
    "With IDs, shows of each the formula, an instance and both sides.\n"
    "Worst is the largest error as a share of its bound. A bound is held from below as well: "
    "honest "
    "engines on operands built for it (roundings to one side, ties, functions off by all that is "
    "declared) have to reach the floor beside it; a bound whose floor is missed is BROKEN.\n"
    "A proof is \"proved\" when `make formal` checked it on this machine as it stands in the "
    "source, "
    "\"recorded\" when it was checked elsewhere and the record has the hashes of this source, "
    "\"outdated\" when neither.\n"
    "Exit: 0 all hold, 1 one is broken or lacks what a letter of its heading asks for, 2 an "
    "unknown "
    "ID.",
    NULL,
    NULL,
    NULL};

// ---- finding statements -----------------------------------------------------------------------

static const verify_statement *find_statement(const char *id) {
    const verify_statement *s;
    for (size_t k = 0; (s = sinkproof_verify_statement_at(k)) != NULL; k++)
        if (strcmp(s->id, id) == 0) return s;
    return NULL;
}

static int refuse_unknown(const char *id) {
    const verify_statement *s, *nearest[3] = {NULL};
    size_t distance[3] = {SIZE_MAX, SIZE_MAX, SIZE_MAX};
    for (size_t k = 0; (s = sinkproof_verify_statement_at(k)) != NULL; k++) {
        size_t d = sinkproof_edit_distance(id, s->id);
        for (int place = 0; place < 3; place++) {
            if (d >= distance[place]) continue;
            for (int p = 2; p > place; p--)
                nearest[p] = nearest[p - 1], distance[p] = distance[p - 1];
            nearest[place] = s, distance[place] = d;
            break;
        }
    }
    fprintf(stderr, "sinkproof verify: no statement '%.60s'; the nearest are %s, %s, %s\n", id,
            nearest[0]->id, nearest[1]->id, nearest[2]->id);
    return EXIT_USAGE;
}

// ---- text --------------------------------------------------------------------------------------

static void exact_cell(char cell[32], const verify_result *r) {
    if (r->exact_forms == 0)
        snprintf(cell, 32, "-");
    else if (r->exact.unequal > 0)
        snprintf(cell, 32, "%zu of %zu", r->exact.unequal, r->exact.instances);
    else if (r->wrong_forms > 0)
        snprintf(cell, 32, "%zu, %zu wrong", r->exact.instances, r->wrong_refuted);
    else
        snprintf(cell, 32, "%zu", r->exact.instances);
}

static void ball_cell(char cell[32], const verify_result *r) {
    if (r->identities == 0)
        snprintf(cell, 32, "-");
    else if (r->ball.broken + r->grid.broken > 0)
        snprintf(cell, 32, "%zu apart", r->ball.broken + r->grid.broken);
    else if (isinf(r->ball.radius_log2))
        snprintf(cell, 32, "disjoint");
    else
        snprintf(cell, 32, "2^%-4.0f %.20s", ceil(r->ball.radius_log2),
                 sinkproof_share_digits(r->ball.share, 1).text);
}

static void measure_cell(char cell[48], const verify_result *r) {
    const verify_measure *m = &r->measure;
    if (m->values == 0) {
        snprintf(cell, 48, "-");
        return;
    }
    int n = snprintf(cell, 48, "%-7.15s %.20s", sinkproof_share_digits(m->worst, 2).text,
                     strcmp(m->bound, r->statement->id) == 0 ? "its own" : m->bound);
    if (m->floor > 0) snprintf(cell + n, 48 - (size_t)n, ", floor %.1f", m->floor);
}

// A statement that is not checked here is recorded or only defined; the tests check it.
static const char *check_status(const verify_result *r) {
    verify_proof_state proof = r->statement->proof.state;
    bool checked = r->exact_forms + r->identities + r->measure.values + r->experiment.values > 0;
    if (!r->holds) return "BROKEN";
    if (r->missing[0] != '\0') return "LACKS";
    if (checked || proof == VERIFY_PROOF_PROVED) return "holds";
    return proof == VERIFY_PROOF_RECORDED ? "recorded" : "defined";
}

static const char *proof_word(const verify_result *r) {
    static const char *const words[] = {"-", "defined", "outdated", "recorded", "proved"};
    return words[r->statement->proof.state];
}

#define ROW "%-8s %-25s%-5s%-13s%-13s%-27s%s\n"

static void print_row(const verify_result *r) {
    char exact[32], ball[32], measure[48];
    exact_cell(exact, r);
    ball_cell(ball, r);
    measure_cell(measure, r);
    printf(ROW, check_status(r), r->statement->id, r->statement->letters, exact, ball, measure,
           proof_word(r));
}

static void print_head(void) {
    printf(ROW, "", "statement", "", "exact", "radius share", "worst   bound", "proof");
}

// Prints a line folded at WIDTH columns, with all but the first part indented.
static void print_folded(const char *line, int indent) {
    size_t length = strlen(line), room = (size_t)(WIDTH - indent);
    printf("%*s", indent, "");
    while (length > room) {
        size_t cut = room;
        while (cut > room / 2 && line[cut] != ' ') cut--;
        if (line[cut] != ' ') cut = room;
        printf("%.*s\n%*s", (int)cut, line, indent + 4, "");
        line += cut, length -= cut;
        while (*line == ' ') line++, length--;
        room = (size_t)(WIDTH - indent - 4);
    }
    printf("%s\n", line);
}

static void print_lines(char *text, int indent) {
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
        print_folded(line, indent);
    free(text);
}

static void print_exact_detail(const verify_result *r, const options *o,
                               const verify_plant *plant) {
    const char *id = r->statement->id;
    const sinkproof_exact_statement *s;
    bool planted = plant != NULL && plant->exact != NULL && strcmp(plant->exact->id, id) == 0;
    for (size_t k = 0;
         (s = planted ? k == 0 ? plant->exact : NULL : sinkproof_exact_statement_at(k)) != NULL;
         k++) {
        if (strcmp(s->id, id) != 0) continue;
        uint64_t shown = r->exact.unequal > 0               ? r->exact.first_unequal
                         : s->kind == SINKPROOF_EXACT_CODES ? 20
                                                            : 5;
        printf("\n  exact: both sides as fractions\n");
        print_lines(sinkproof_exact_describe(s, o->how.seed, shown), 4);
    }
    for (size_t k = 0; (s = sinkproof_exact_wrong_form_at(k)) != NULL; k++) {
        if (strcmp(s->id, id) != 0) continue;
        sinkproof_exact_outcome wrong = sinkproof_exact_refute(s, o->how.seed, 1000);
        printf("\n  a wrong form, %s\n", wrong.unequal > 0 ? "refuted:" : "NOT refuted:");
        print_lines(sinkproof_exact_describe(s, o->how.seed, wrong.first_unequal), 4);
    }
}

static char *copy_text(const char *text) {
    char *copy = strdup(text);
    if (copy == NULL) abort();
    return copy;
}

static void print_statement(const verify_statement *s) {
    char line[512];
    printf("\n%s  %s\n", s->id, s->title);
    snprintf(line, sizeof line, "stated in %s: %s", s->chapter, s->section);
    print_folded(line, 2);
    print_lines(copy_text(s->formula), 4);
    if (strchr(s->letters, 'D') == NULL || s->defined[0] == '\0') return;
    snprintf(line, sizeof line, "defined in %s", s->defined);
    print_folded(line, 2);
}

// Prints the state of the formal proof and where it was checked.
static void print_proof(const verify_statement *s) {
    static const char *const how[] = {
        [VERIFY_PROOF_PROVED] = "proved on this machine",
        [VERIFY_PROOF_RECORDED] = "recorded, not checked here (make formal)",
        [VERIFY_PROOF_OUTDATED] = "not checked as it stands (make formal)",
        [VERIFY_PROOF_DEFINED] = "defined",
    };
    const verify_proof *p = &s->proof;
    if (p->state == VERIFY_PROOF_NONE) return;
    char line[1024];
    bool defines = p->state == VERIFY_PROOF_DEFINED;
    snprintf(line, sizeof line, "%s: proofs/formal/%s%s%s%s%s", how[p->state], p->file,
             defines ? "" : ", statement ", p->hash, p->why[0] != '\0' ? "; " : "", p->why);
    printf("\n");
    print_folded(line, 2);
    if (p->state < VERIFY_PROOF_RECORDED) return;
    snprintf(line, sizeof line, "theorems: %s", p->theorems);
    print_folded(line, 4);
    snprintf(line, sizeof line, "rest on: %s", p->axioms[0] != '\0' ? p->axioms : "no axiom");
    print_folded(line, 4);
}

// The kind of truth of the measured errors; NULL if they are not errors.
static const char *truth_label(const verify_measure *m) {
    return m->enclosed > 0 ? "enclosed" : m->exact > 0 ? "exact" : NULL;
}

static void print_measured(const verify_measure *m, const char *what) {
    if (m->values == 0) return;
    char line[256];
    snprintf(line, sizeof line, "%s: %s, %zu not within their bound, worst error / bound %s (%s)",
             what, sinkproof_counted(m->values, "value").text, m->wrong,
             sinkproof_share_digits(m->worst, 3).text, m->bound);
    printf("\n");
    print_folded(line, 2);
    if (!(m->floor > 0)) return;
    const char *truth = truth_label(m);
    snprintf(line, sizeof line, "%s: operands built for it reach %.3g of the bound, floor %.1f%s%s",
             sinkproof_verify_reaches(m) ? "held from below" : "NOT held from below", m->reached,
             m->floor, truth != NULL ? "; the truth is " : "", truth != NULL ? truth : "");
    print_folded(line, 2);
}

static const char *evidence_words(char letter) {
    switch (letter) {
    case 'C':
        return "a formal proof";
    case 'Q':
        return "exact instances";
    case 'B':
        return "an enclosure or a bound";
    case 'D':
        return "a definition in code";
    default:
        return "an experiment";
    }
}

// Reports a bound that no measurement comes near: it may be wider than honest engines need.
static void print_not_reached(const verify_result *r, const verify_measure *m) {
    char line[256];
    if (sinkproof_verify_reaches(m)) return;
    snprintf(line, sizeof line,
             "%s is not held from below: operands built for its bound reach %.3g of it, floor %.1f",
             r->statement->id, m->reached, m->floor);
    print_folded(line, 2);
}

// Prints one line for each letter of the heading that lacks evidence.
static void print_missing(const verify_result *r) {
    const verify_proof *p = &r->statement->proof;
    for (const char *letter = r->missing; *letter != '\0'; letter++) {
        char line[512];
        bool why = *letter == 'C' && p->why[0] != '\0';
        snprintf(line, sizeof line, "%s lacks %c: its heading in %s asks for %s%s%s%s",
                 r->statement->id, *letter, r->statement->chapter, evidence_words(*letter),
                 why ? ", and " : ", and there is none", why ? p->why : "",
                 why ? " (make formal)" : "");
        print_folded(line, 2);
    }
}

static void print_detail(const verify_result *r, const options *o, const verify_plant *plant) {
    print_statement(r->statement);
    print_exact_detail(r, o, plant);
    const sinkproof_identity *identity;
    for (size_t k = 0; (identity = sinkproof_identity_at(k)) != NULL; k++) {
        if (strcmp(identity->id, r->statement->id) != 0) continue;
        bool less = identity->relation == SINKPROOF_BALL_LESS;
        printf("\n  enclosed: %s\n", less ? "left below right, the balls disjoint"
                                          : "both sides as balls, which overlap");
        uint64_t shown = r->ball.broken > 0 ? r->ball.first_broken : 8;
        print_lines(sinkproof_identity_describe(identity, o->how.seed, shown, o->how.bits), 4);
    }
    if (r->grid.cases > 0)
        printf("\n  enclosed for n = 1 to 131072, b = -inf to 1e4, scores of spread 300: "
               "%zu of %s\n",
               r->grid.cases - r->grid.broken, sinkproof_counted(r->grid.cases, "case").text);
    print_measured(&r->measure, "measured");
    print_measured(&r->experiment, "experiment");
    print_proof(r->statement);
}

static void print_summary(const verify_result *results, size_t n) {
    static const char *const words[] = {"holds", "recorded", "defined", "BROKEN", "LACKS"};
    size_t count[5] = {0}, recorded = 0, proved = 0, outdated = 0;
    for (size_t k = 0; k < n; k++) {
        verify_proof_state proof = results[k].statement->proof.state;
        for (size_t w = 0; w < 5; w++) count[w] += strcmp(check_status(&results[k]), words[w]) == 0;
        proved += proof == VERIFY_PROOF_PROVED;
        recorded += proof == VERIFY_PROOF_RECORDED;
        outdated += proof == VERIFY_PROOF_OUTDATED;
    }
    printf("\n%s: %zu %s, %zu recorded, %zu defined, %zu broken, %zu lacking\n",
           sinkproof_counted(n, "statement").text, count[0], count[0] == 1 ? "holds" : "hold",
           count[1], count[2], count[3], count[4]);
    printf("formal proofs: %zu proved", proved);
    if (recorded > 0) printf(", %zu recorded, not checked here (make formal)", recorded);
    if (outdated > 0) printf(", %zu outdated", outdated);
    printf("\n");
    for (size_t k = 0; k < n; k++) {
        print_not_reached(&results[k], &results[k].measure);
        print_not_reached(&results[k], &results[k].experiment);
        print_missing(&results[k]);
    }
}

// ---- JSON --------------------------------------------------------------------------------------

static json_t *measure_json(const verify_measure *m) {
    json_t *entry = json_pack("{s:s, s:I, s:I, s:o, s:o}", "bound_id", m->bound, "values",
                              (json_int_t)m->values, "wrong", (json_int_t)m->wrong, "worst",
                              sinkproof_number_json(m->worst), "bound", json_real(1));
    if (m->floor > 0) {
        json_object_set_new(entry, "floor", json_real(m->floor));
        json_object_set_new(entry, "reached", sinkproof_number_json(m->reached));
        if (truth_label(m) != NULL)
            json_object_set_new(entry, "truth", json_string(truth_label(m)));
    }
    return entry;
}

static json_t *result_json(const verify_result *r, const options *o) {
    const verify_statement *s = r->statement;
    const char *label = r->identities > 0       ? "enclosed"
                        : r->exact_forms > 0    ? "exact"
                        : r->measure.values > 0 ? "measured"
                                                : check_status(r);
    bool fine = r->holds && r->missing[0] == '\0';
    json_t *entry =
        json_pack("{s:s, s:b, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "id", s->id, "ok", fine,
                  "status", check_status(r), "label", label, "needs", s->letters, "missing",
                  r->missing, "what", s->title, "chapter", s->chapter, "defined", s->defined);
    if (r->exact_forms > 0)
        json_object_set_new(
            entry, "exact",
            json_pack("{s:I, s:I, s:I, s:I, s:I}", "forms", (json_int_t)r->exact_forms, "instances",
                      (json_int_t)r->exact.instances, "unequal", (json_int_t)r->exact.unequal,
                      "wrong_forms", (json_int_t)r->wrong_forms, "refuted",
                      (json_int_t)r->wrong_refuted));
    if (r->identities > 0)
        json_object_set_new(entry, "enclosed",
                            json_pack("{s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:I}", "bits",
                                      (json_int_t)o->how.bits, "instances",
                                      (json_int_t)r->ball.instances, "entries",
                                      (json_int_t)r->ball.entries, "broken",
                                      (json_int_t)(r->ball.broken + r->grid.broken), "radius_log2",
                                      sinkproof_number_json(r->ball.radius_log2), "worst",
                                      sinkproof_number_json(r->ball.share), "bound", json_real(1),
                                      "grid_cases", (json_int_t)r->grid.cases));
    if (r->measure.values > 0) json_object_set_new(entry, "measured", measure_json(&r->measure));
    if (r->experiment.values > 0)
        json_object_set_new(entry, "experiment", measure_json(&r->experiment));
    if (s->proof.state != VERIFY_PROOF_NONE)
        json_object_set_new(entry, "formal",
                            json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "state", proof_word(r),
                                      "file", s->proof.file, "statement", s->proof.hash, "theorems",
                                      s->proof.theorems, "axioms", s->proof.axioms, "why",
                                      s->proof.why));
    return entry;
}

static bool write_results(const options *o, const verify_result *results, size_t n, int code,
                          sinkproof_error *error) {
    json_t *array = json_array();
    for (size_t k = 0; k < n; k++) json_array_append_new(array, result_json(&results[k], o));
    return envelope_write_json(o->json, "verify", code, array, error);
}

// ---- the command -------------------------------------------------------------------------------

static int list_statements(void) {
    const verify_statement *s;
    for (size_t k = 0; (s = sinkproof_verify_statement_at(k)) != NULL; k++)
        printf("%-25s%-5s%s\n", s->id, s->letters, s->title);
    return EXIT_HOLDS;
}

static int check_statements(const options *o, const verify_plant *plant) {
    size_t n = o->n_ids > 0 ? o->n_ids : sinkproof_verify_count();
    for (size_t k = 0; k < o->n_ids; k++)
        if (find_statement(o->ids[k]) == NULL) return refuse_unknown(o->ids[k]);
    bool text = o->json == NULL || strcmp(o->json, "-") != 0;
    verify_result *results = calloc(n, sizeof *results);
    if (results == NULL) abort();
    int code = EXIT_HOLDS;
    if (text) print_head();
    for (size_t k = 0; k < n; k++) {
        const verify_statement *s =
            o->n_ids > 0 ? find_statement(o->ids[k]) : sinkproof_verify_statement_at(k);
        progress_show("verify", s->id, k, n);
        results[k] = sinkproof_verify(s, &o->how, plant);
        if (!results[k].holds || results[k].missing[0] != '\0') code = EXIT_BUG;
        progress_show("verify", s->id, n, n);
        if (text) print_row(&results[k]);
    }
    for (size_t k = 0; text && k < o->n_ids; k++) print_detail(&results[k], o, plant);
    if (text) print_summary(results, n);
    sinkproof_error error = {""};
    bool written = o->json == NULL || write_results(o, results, n, code, &error);
    free(results);
    flint_cleanup();
    mpfr_free_cache();
    return written ? code : exit_bad_input("verify", &error);
}

int run_verify_command(int argc, char **argv, const verify_plant *plant) {
    options o = {.how = {.bits = 256, .seed = 1, .instances = 100}};
    o.ids = calloc((size_t)argc + 1, sizeof *o.ids);
    if (o.ids == NULL) abort();
    command_parse_line(&parser, argc, argv, &o);
    int code = o.list ? list_statements() : check_statements(&o, plant);
    free(o.ids);
    return code;
}

int cmd_verify(int argc, char **argv) {
    return run_verify_command(argc, argv, NULL);
}
