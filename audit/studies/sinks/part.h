// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What `sinkproof sinks MODEL` is made of: parts that look at the same model and the same inputs.
// The census is the first and always there; each other one is asked for by its own option.
//
// Adding one: a file in audit/studies/sinks/ with a `const sinkproof_sinks_part sinkproof_part_NAME`, its
// declaration below, and its place in the list of audit/command/cmd_sinks_model.c. The option, its
// --help, the JSON and the page follow from the row; doc/schema.json gets its results.
#ifndef SINKPROOF_PART_H
#define SINKPROOF_PART_H

#include "audit/report/pictures.h"
#include "audit/studies/sinks/census.h"

#include <jansson.h>
#include <stdio.h>

// A sequence of tokens, or a trace.
typedef struct sinkproof_sinks_input {
    const char *text; // as it was given: "random:512,seed=1", "@FILE"; or the trace's path
    size_t n;
    int32_t *tokens_n;
    sinkproof_census census;
} sinkproof_sinks_input;

typedef struct sinkproof_sinks_job {
    const char *model_name; // as it was given
    const sinkproof_model *model;
    const sinkproof_trace *trace; // or NULL: then there is one input, and nothing below is used
    const char *note;             // what is to be said of the trace first, or ""; NULL without one
    const sinkproof_policy *policy;
    sinkproof_runner_options how; // for sinkproof_runner_new; max_tokens: of the longest input
    sinkproof_runner *runner;     // that ran the census; sinkproof_runner_reset before use
    double epsilon;
    bool every_head; // in the table
    size_t n_inputs;
    sinkproof_sinks_input *inputs;
    double seconds;                                // that all censuses took
    void (*progress)(void *context, double share); // of the part that runs
    void *progress_context;
} sinkproof_sinks_job;

typedef struct sinkproof_sinks_part {
    const char *name;         // its option, --NAME; what the progress says
    const char *takes, *help; // as argp_option's arg and doc; takes NULL: no argument
    bool needs_run;           // it runs the model: not with a trace
    // Before the census, or NULL. `asked`: the option's argument, or NULL. What it leaves in
    // *state, also on failure, is what the others get, and is freed.
    bool (*prepare)(const sinkproof_sinks_job *job, const char *asked, void **state,
                    sinkproof_error *error);
    // Sees every head's weights while the census runs, or NULL: census.h has the order.
    void (*map)(void *state, size_t input, const sinkproof_map_rows *rows);
    // Sees these points too while the census runs, and where each layer ends, or NULL: census.h.
    const sinkproof_trace_point *points;
    size_t n_points;
    bool (*point)(void *state, size_t input, sinkproof_trace_point point, size_t layer, size_t head,
                  const double *values, sinkproof_error *error);
    bool (*layer_end)(void *state, size_t input, size_t layer, sinkproof_error *error);
    // After the census, or NULL.
    bool (*run)(const sinkproof_sinks_job *job, const char *asked, void **state,
                sinkproof_error *error);
    // In 100 columns; appends. Either may be NULL.
    void (*print)(const void *state, const sinkproof_sinks_job *job, FILE *out);
    void (*json)(const void *state, const sinkproof_sinks_job *job, json_t *results);
    // On the page; NULL: what `print` says stands there.
    void (*html)(const void *state, const sinkproof_sinks_job *job, FILE *page);
    // Its figures of one input as files, whose names begin with `number`; or NULL: it has none.
    bool (*draw)(const void *state, const sinkproof_sinks_job *job, size_t input,
                 const char *number, sinkproof_pictures *pictures, sinkproof_error *error);
    void (*free)(void *state); // NULL is allowed
} sinkproof_sinks_part;

extern const sinkproof_sinks_part sinkproof_part_census;     // census_print.c
extern const sinkproof_sinks_part sinkproof_part_maps;       // maps_part.c
extern const sinkproof_sinks_part sinkproof_part_decompose;  // terms_part.c
extern const sinkproof_sinks_part sinkproof_part_perturb;    // mixing_part.c
extern const sinkproof_sinks_part sinkproof_part_strategies; // strategies_part.c
extern const sinkproof_sinks_part sinkproof_part_quantise;   // outliers_part.c
extern const sinkproof_sinks_part sinkproof_part_window;     // the same

#endif
