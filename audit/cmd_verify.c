// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof verify`: the table of all statements and what supports each of them today.
#include "audit/command.h"
#include "audit/trace_points.h"
#include "audit/verify.h"

#include <argp.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_BITS = 256, KEY_SEED, KEY_INSTANCES, KEY_JSON, KEY_LIST, WIDTH = 100, MOST = 128 };

typedef struct options {
    verify_options how;
    const char *json;
    bool list;
    const char *ids[MOST];
    size_t n_ids;
} options;

static const struct argp_option option_table[] = {
    {"bits", KEY_BITS, "N", 0, "precision of the enclosures (256)", 0},
    {"seed", KEY_SEED, "N", 0, "of the drawn instances (1)", 0},
    {"instances", KEY_INSTANCES, "N", 0, "exact instances of each form (100)", 0},
    {"json", KEY_JSON, "FILE", 0, "write the result as JSON (- is stdout)", 0},
    {"list", KEY_LIST, NULL, 0, "list the statements, check nothing", 0},
    {0}};

static unsigned long long number(const char *option, const char *text, unsigned long long least,
                                 unsigned long long most, struct argp_state *state) {
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || n < least || n > most)
        argp_error(state, "%s takes a whole number from %llu to %llu, not \"%s\"", option, least,
                   most, text);
    return n;
}

static error_t parse_option(int key, char *argument, struct argp_state *state) {
    options *o = state->input;
    switch (key) {
    case KEY_BITS:
        o->how.bits = (slong)number("--bits", argument, 32, 65536, state);
        return 0;
    case KEY_SEED:
        o->how.seed = number("--seed", argument, 0, UINT64_C(1) << 62, state);
        return 0;
    case KEY_INSTANCES:
        o->how.instances = number("--instances", argument, 1, 1000000, state);
        return 0;
    case KEY_JSON:
        o->json = argument;
        return 0;
    case KEY_LIST:
        o->list = true;
        return 0;
    case ARGP_KEY_ARG:
        if (o->n_ids == MOST) argp_error(state, "more than %d IDs", MOST);
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
    "Checks the equations: exactly in rationals, enclosed in balls, the error of the reference "
    "against its bound, formal proofs as recorded at build.\v"
    "With IDs, shows of each an instance and both sides.\n"
    "needs: C formal proof, Q exact, B enclosed, D definition, E experiment.\n"
    "Exit: 0 all hold, 1 one is broken, 2 an unknown ID.",
    NULL,
    NULL,
    NULL};

// ---- finding statements -----------------------------------------------------------------------

static const verify_statement *find(const char *id) {
    const verify_statement *s;
    for (size_t k = 0; (s = sinkproof_verify_statement_at(k)) != NULL; k++)
        if (strcmp(s->id, id) == 0) return s;
    return NULL;
}

static int unknown(const char *id) {
    const verify_statement *s, *nearest[3] = {NULL};
    size_t distance[3] = {SIZE_MAX, SIZE_MAX, SIZE_MAX};
    for (size_t k = 0; (s = sinkproof_verify_statement_at(k)) != NULL; k++) {
        size_t d = sinkproof_edits(id, s->id);
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
    return SINKPROOF_USAGE;
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
        snprintf(cell, 32, "2^%-5.0f %.1g", ceil(r->ball.radius_log2), r->ball.share);
}

static void measure_cell(char cell[48], const verify_result *r) {
    if (r->measure.values == 0)
        snprintf(cell, 48, "-");
    else
        snprintf(cell, 48, "%-7.2g %s", r->measure.worst, r->measure.bound);
}

// A statement for which nothing is checked here is only stated; the tests check it elsewhere.
static const char *status(const verify_result *r) {
    bool checked = r->exact_forms + r->identities + r->measure.values > 0 || r->formal != NULL;
    return !r->holds ? "BROKEN" : checked ? "holds" : "stated";
}

static void print_row(const verify_result *r) {
    char exact[32], ball[32], measure[48], formal[16] = "-";
    exact_cell(exact, r);
    ball_cell(ball, r);
    measure_cell(measure, r);
    if (r->formal != NULL) snprintf(formal, sizeof formal, "%.8s", r->formal->hash);
    printf("%-6s %-22s%-4s%-15s%-15s%-28s%s\n", status(r), r->statement->id, r->statement->needs,
           exact, ball, measure, formal);
}

static void print_head(void) {
    printf("%-6s %-22s%-4s%-15s%-15s%-28s%s\n", "", "statement", "", "exact", "radius  share",
           "worst   bound of ref/", "proof");
}

// A line folded at WIDTH columns, what follows the first indented.
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

static void print_detail(const verify_result *r, const options *o, const verify_plant *plant) {
    printf("\n%s  %s\n", r->statement->id, r->statement->title);
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
               "%zu of %zu cases\n",
               r->grid.cases - r->grid.broken, r->grid.cases);
    if (r->measure.values > 0)
        printf("\n  measured: ref/ in binary64, %zu values, worst error / bound %.3g (%s)\n",
               r->measure.values, r->measure.worst, r->measure.bound);
    if (r->formal != NULL)
        printf("\n  proved: %s, region %s%s\n", r->formal->file, r->formal->hash,
               r->formal->complete ? "" : ", with something admitted");
    if (r->missing[0] != '\0') printf("\n  still without: %s\n", r->missing);
}

static void print_summary(const verify_result *results, size_t n) {
    size_t broken = 0, lacking = 0, holding = 0;
    for (size_t k = 0; k < n; k++) {
        broken += !results[k].holds;
        holding += strcmp(status(&results[k]), "holds") == 0;
        lacking += results[k].missing[0] != '\0';
    }
    printf("\n%zu statements: %zu hold, %zu broken, %zu only stated", n, holding, broken,
           n - holding - broken);
    if (lacking > 0) printf("; %zu still lack evidence of a kind that they need:", lacking);
    size_t column = WIDTH; // the list begins on its own line
    for (size_t k = 0; k < n; k++) {
        if (results[k].missing[0] == '\0') continue;
        char item[64];
        int length =
            snprintf(item, sizeof item, "%s (%s)", results[k].statement->id, results[k].missing);
        if (column + (size_t)length + 2 > WIDTH) printf("\n "), column = 1;
        printf(" %s", item);
        column += (size_t)length + 1;
    }
    printf("\n");
    if (!sinkproof_verify_formal_recorded())
        printf("formal proofs: this program was built without their record\n");
}

// ---- JSON --------------------------------------------------------------------------------------

static json_t *real(double x) {
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *result_json(const verify_result *r, const options *o) {
    const char *label = r->identities > 0       ? "enclosed"
                        : r->exact_forms > 0    ? "exact"
                        : r->measure.values > 0 ? "measured"
                                                : "stated";
    json_t *entry = json_pack("{s:s, s:b, s:s, s:s, s:s, s:s}", "id", r->statement->id, "ok",
                              r->holds, "label", label, "needs", r->statement->needs, "missing",
                              r->missing, "what", r->statement->title);
    if (r->exact_forms > 0)
        json_object_set_new(
            entry, "exact",
            json_pack("{s:I, s:I, s:I, s:I, s:I}", "forms", (json_int_t)r->exact_forms, "instances",
                      (json_int_t)r->exact.instances, "unequal", (json_int_t)r->exact.unequal,
                      "wrong_forms", (json_int_t)r->wrong_forms, "refuted",
                      (json_int_t)r->wrong_refuted));
    if (r->identities > 0)
        json_object_set_new(
            entry, "enclosed",
            json_pack("{s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:I}", "bits", (json_int_t)o->how.bits,
                      "instances", (json_int_t)r->ball.instances, "entries",
                      (json_int_t)r->ball.entries, "broken",
                      (json_int_t)(r->ball.broken + r->grid.broken), "radius_log2",
                      real(r->ball.radius_log2), "worst", real(r->ball.share), "bound",
                      json_real(1), "grid_cases", (json_int_t)r->grid.cases));
    if (r->measure.values > 0)
        json_object_set_new(entry, "measured",
                            json_pack("{s:s, s:I, s:I, s:o, s:o}", "bound_id", r->measure.bound,
                                      "values", (json_int_t)r->measure.values, "wrong",
                                      (json_int_t)r->measure.wrong, "worst", real(r->measure.worst),
                                      "bound", json_real(1)));
    if (r->formal != NULL)
        json_object_set_new(entry, "formal",
                            json_pack("{s:s, s:s, s:b}", "file", r->formal->file, "hash",
                                      r->formal->hash, "complete", r->formal->complete));
    return entry;
}

static bool write_results(const options *o, const verify_result *results, size_t n, int code,
                          sinkproof_error *error) {
    json_t *array = json_array();
    for (size_t k = 0; k < n; k++) json_array_append_new(array, result_json(&results[k], o));
    return sinkproof_write_json(o->json, "verify", code, array, error);
}

// ---- the command -------------------------------------------------------------------------------

static int list(void) {
    const verify_statement *s;
    for (size_t k = 0; (s = sinkproof_verify_statement_at(k)) != NULL; k++)
        printf("%-23s%-4s%s\n", s->id, s->needs, s->title);
    return SINKPROOF_HOLDS;
}

int sinkproof_verify_command(int argc, char **argv, const verify_plant *plant) {
    options o = {.how = {.bits = 256, .seed = 1, .instances = 100}};
    argp_err_exit_status = SINKPROOF_USAGE;
    if (argp_parse(&parser, argc, argv, 0, NULL, &o) != 0) return SINKPROOF_USAGE;
    if (o.list) return list();
    const verify_statement *chosen[MOST], *s;
    size_t n = 0;
    for (size_t k = 0; k < o.n_ids; k++) {
        if ((s = find(o.ids[k])) == NULL) return unknown(o.ids[k]);
        chosen[n++] = s;
    }
    for (size_t k = 0; o.n_ids == 0 && (s = sinkproof_verify_statement_at(k)) != NULL; k++)
        chosen[n++] = s;
    bool text = o.json == NULL || strcmp(o.json, "-") != 0;
    verify_result results[MOST];
    int code = SINKPROOF_HOLDS;
    if (text) print_head();
    for (size_t k = 0; k < n; k++) {
        sinkproof_progress("verify", chosen[k]->id, k, n);
        results[k] = sinkproof_verify(chosen[k], &o.how, plant);
        if (!results[k].holds) code = SINKPROOF_BUG;
        sinkproof_progress("verify", chosen[k]->id, n, n);
        if (text) print_row(&results[k]);
    }
    for (size_t k = 0; text && k < o.n_ids; k++) print_detail(&results[k], &o, plant);
    if (text) print_summary(results, n);
    sinkproof_error error = {""};
    bool written = o.json == NULL || write_results(&o, results, n, code, &error);
    flint_cleanup();
    mpfr_free_cache();
    return written ? code : sinkproof_bad_input("verify", &error);
}

int sinkproof_cmd_verify(int argc, char **argv) {
    return sinkproof_verify_command(argc, argv, NULL);
}
