// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof sinks`: measures sinks on a model's run or on a trace (cmd_sinks_model.c); lists the
// designs of attention that the book compares, and checks which of them are equivalent while
// printing.
#include "audit/command/cmd_sinks.h"
#include "audit/command/sinks_judge.h"
#include "base/words.h"
#include "proofs/truth/lattice.h"

#include <stdlib.h>
#include <string.h>

enum { BITS = 256 };

typedef struct arguments {
    bool list, edges;
    uint64_t seed;
    const char *json;
    sinks_options model;
} arguments;

static json_t *design_json(const sinkproof_variant *v) {
    return json_pack("{s:s, s:s, s:s, s:s}", "design", v->name, "family", v->where, "statement",
                     v->id, "what", v->what);
}

static void list_designs(bool print, json_t *results) {
    const char *family = "";
    for (size_t k = 0; sinkproof_variant_at(k) != NULL; k++) {
        const sinkproof_variant *v = sinkproof_variant_at(k);
        json_array_append_new(results, design_json(v));
        if (!print) continue;
        if (strcmp(family, v->where) != 0) printf("%s%s\n", k > 0 ? "\n" : "", v->where);
        family = v->where;
        printf("  %-16s %-21s %s\n", v->name, v->id, v->what);
    }
}

// The entry that distinguishes the two sides, counted from 1 as in the book.
static json_t *instance_json(const sinkproof_edge_outcome *o) {
    return json_pack("{s:s, s:I, s:I, s:f, s:f}", "of", o->is_weight ? "weight" : "result", "row",
                     (json_int_t)o->row + 1, "column", (json_int_t)o->column + 1, "from", o->from,
                     "to", o->to);
}

static json_t *edge_json(const sinkproof_edge *edge, const sinkproof_edge_outcome *o) {
    bool equal = o->apart == 0;
    json_t *said = json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:I, s:I}", "from", edge->from, "to",
                             edge->to, "when", edge->when, "statement", edge->id, "verdict",
                             equal ? "overlap" : "apart", "expected", equal == edge->holds,
                             "entries", (json_int_t)o->entries, "apart", (json_int_t)o->apart);
    if (!equal) json_object_set_new(said, "instance", instance_json(o));
    return said;
}

// Returns false if memory runs out. *broken counts the edges that contradict the table.
static bool check_edges(bool print, uint64_t seed, json_t *results, size_t *broken) {
    size_t holding = 0, all = 0;
    for (; sinkproof_edge_at(all) != NULL; all++) {
        const sinkproof_edge *edge = sinkproof_edge_at(all);
        sinkproof_edge_outcome o;
        if (!sinkproof_edge_check(edge, seed, true, BITS, &o)) return false;
        bool equal = o.apart == 0, as_said = equal == edge->holds;
        const char *verdict = equal ? "overlap" : "apart";
        holding += equal;
        *broken += !as_said;
        json_array_append_new(results, edge_json(edge, &o));
        if (!print) continue;
        printf("%-15s %-15s %-8s %-21s %s%s\n", edge->from, edge->to, verdict, edge->id, edge->when,
               as_said ? "" : "  UNEXPECTED");
        if (!equal)
            printf("%41s%s of row %zu, column %zu: %.6g, not %.6g\n", "",
                   o.is_weight ? "weight" : "result", o.row + 1, o.column + 1, o.from, o.to);
    }
    if (print)
        printf("\n%s, enclosed on both sides at %d bits, on the head that seed %llu draws.\n"
               "%zu of them overlap in every entry, %zu lie apart in some, which proves a "
               "difference;\n"
               "%zu other than the book says. What overlaps is proved under the statement named.\n",
               sinkproof_counted(all, "pair").text, BITS, (unsigned long long)seed, holding,
               all - holding, *broken);
    return true;
}

static error_t parse_sinks_option(int key, char *value, struct argp_state *state) {
    arguments *in = state->input;
    char *end;
    switch (key) {
    case 'l':
        in->list = true;
        break;
    case 'e':
        in->edges = true;
        break;
    case 'j':
        in->json = value;
        break;
    case 's':
        in->seed = strtoull(value, &end, 10);
        if (*value < '0' || *value > '9' || *end != '\0')
            argp_error(state, "--seed: expected a whole number, found \"%s\"", value);
        break;
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &in->model;
        break;
    case ARGP_KEY_END:
        if ((in->list ? 1 : 0) + (in->edges ? 1 : 0) + (in->model.model != NULL ? 1 : 0) +
                (in->model.judged != NULL ? 1 : 0) + (in->model.alone != NULL ? 1 : 0) !=
            1)
            argp_error(state, "expected one of MODEL, --trace, --list, --edges and --judge");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static int designs_command(const arguments *in) {
    sinkproof_error error = {{0}};
    bool print = in->json == NULL || strcmp(in->json, "-") != 0;
    json_t *results = json_array();
    size_t broken = 0;
    if (in->list)
        list_designs(print, results);
    else if (!check_edges(print, in->seed, results, &broken)) {
        json_decref(results);
        sinkproof_fail(&error, "no memory for an edge");
        return exit_bad_input("sinks", &error);
    }
    int exit_code = broken == 0 ? EXIT_HOLDS : EXIT_BUG;
    return exit_with_results(in->json, "sinks", exit_code, results);
}

int cmd_sinks(int argc, char **argv) {
    static const struct argp_option options[] = {
        {"list", 'l', 0, 0, "the designs by name: family, statement of the book, what each is", 0},
        {"edges", 'e', 0, 0,
         "which design is which other one, and when; and pairs that are often taken for each other",
         0},
        {"seed", 's', "N", 0, "the head on which --edges checks (1)", 0},
        {"json", 'j', "FILE|-", 0, "write the result as JSON; with - nothing else is printed", 0},
        {0}};
    static const char document[] =
        "Attention sinks measured (chapter 25), on a run of the model or on a trace of any engine: "
        "weights of the sink and of the first token, what is left of the value bias, massive "
        "activations, value drains, directions of keys. Or the designs of attention that the book "
        "compares (chapter 24): --edges encloses both sides of each pair over the reals, and "
        "--judge asks each step of what an engine of any of them computed."
        "\v" HELP_MODEL_IS ". "
        "Measured numbers are estimated: in binary64, from the numbers that the engine holds. "
        "Without --engine, a GPT-OSS model and a policy that fast takes go to fast, streamed, "
        "where "
        "ref would need some 20 seconds or more.\n\n"
        "Exit codes: 0 holds, 1 an edge is not what the book says, or --judge found a bug, "
        "2 usage, 3 bad input, 4 nothing was decided.";
    const struct argp_child children[] = {{cmd_sinks_parser(), 0, NULL, 0}, {0}};
    const struct argp argp = {
        options,
        parse_sinks_option,
        "MODEL --tokens IDS\nMODEL TRACE\n--trace FILE\n--list\n--edges\n--judge FILE",
        document,
        children,
        NULL,
        NULL};
    arguments in = {.seed = 1};
    command_parse_line(&argp, argc, argv, &in);
    if (in.model.judged != NULL)
        return cmd_sinks_judge(in.model.judged, in.model.how.policy, in.json);
    return in.model.model != NULL || in.model.alone != NULL ? cmd_sinks_model(&in.model, in.json)
                                                            : designs_command(&in);
}
