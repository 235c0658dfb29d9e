// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The parts of `sinkproof sinks MODEL`, which all measure the same model and inputs. The census
// comes first and always runs; every other part has an option.
//
// To add a part: write a file in audit/studies/sinks/ with a `const sinkproof_sinks_part
// sinkproof_part_NAME`, declare it below, and add it to the list in
// audit/command/cmd_sinks_model.c. The option, its --help, the JSON and the page follow from the
// row; doc/schema.json gets its results.
#ifndef SINKPROOF_PART_H
#define SINKPROOF_PART_H

#include "audit/report/pictures.h"
#include "audit/studies/sinks/census.h"

#include <jansson.h>
#include <stdio.h>

// A sequence of tokens, or a trace.
typedef struct sinkproof_sinks_input {
    const char *text; // as the user gave it: "random:512,seed=1", "@FILE"; or the trace's path
    size_t n;
    int32_t *tokens_n;
    char **word_n; // the text of each token, or NULL: not known
    sink_census census;
} sinkproof_sinks_input;

typedef struct sinkproof_sinks_job {
    const char *model_name;       // as the user gave it
    const sinkproof_model *model; // NULL: a trace alone, with a configuration of its shapes
    const sinkproof_config *config;
    // if not NULL, there is one input, and the members below are not used
    const sinkproof_trace *trace;
    const char *note; // a note to print before the trace's results, or ""; NULL without one
    const sinkproof_policy *policy;
    sinkproof_runner_options how; // for sinkproof_runner_new; max_tokens: the longest input's
    sinkproof_runner *runner;     // the census's engine; call sinkproof_runner_reset before use
    double epsilon;
    heads_hidden hidden; // of the census; first 0: none
    bool every_head;     // show every head in the table
    size_t n_inputs;
    sinkproof_sinks_input *inputs;
    double seconds;                                // of all censuses
    void (*progress)(void *context, double share); // of the running part
    void *progress_context;
} sinkproof_sinks_job;

typedef struct sinkproof_sinks_part {
    const char *name;         // its option is --NAME; shown with the progress
    const char *takes, *help; // as argp_option's arg and doc; takes NULL: no argument
    bool needs_run;           // it runs the model, so it needs one instead of a trace
    // Called before the census, or NULL. `asked`: the option's argument, or NULL. It sets *state,
    // also on failure; the other functions get it, and it is freed.
    bool (*prepare)(const sinkproof_sinks_job *job, const char *asked, void **state,
                    sinkproof_error *error);
    // Receives every head's weights during the census, or NULL; census.h has the order.
    void (*map)(void *state, size_t input, const sinkproof_map_rows *rows);
    // Receives these points too during the census, and the end of each layer, or NULL; see
    // census.h.
    const sinkproof_trace_point *points;
    size_t n_points;
    bool (*point)(void *state, size_t input, sinkproof_trace_point point, size_t layer, size_t head,
                  const double *values, sinkproof_error *error);
    bool (*layer_end)(void *state, size_t input, size_t layer, sinkproof_error *error);
    // Called after the census, or NULL.
    bool (*run)(const sinkproof_sinks_job *job, const char *asked, void **state,
                sinkproof_error *error);
    // Prints text of 100 columns, and appends JSON. Either may be NULL.
    void (*print)(const void *state, const sinkproof_sinks_job *job, FILE *out);
    void (*json)(const void *state, const sinkproof_sinks_job *job, json_t *results);
    // Writes its part of the page; NULL: the page has the text of `print`.
    void (*html)(const void *state, const sinkproof_sinks_job *job, FILE *page);
    // Writes its figures of one input as files whose names begin with `number`; NULL: it has none.
    bool (*draw)(const void *state, const sinkproof_sinks_job *job, size_t input,
                 const char *number, sinkproof_pictures *pictures, sinkproof_error *error);
    void (*free)(void *state); // accepts NULL
} sinkproof_sinks_part;

extern const sinkproof_sinks_part sinkproof_part_census;     // census_print.c
extern const sinkproof_sinks_part sinkproof_part_maps;       // maps_part.c
extern const sinkproof_sinks_part sinkproof_part_decompose;  // terms_part.c
extern const sinkproof_sinks_part sinkproof_part_perturb;    // mixing_part.c
extern const sinkproof_sinks_part sinkproof_part_strategies; // strategies_part.c
extern const sinkproof_sinks_part sinkproof_part_quantise;   // outliers_part.c
extern const sinkproof_sinks_part sinkproof_part_window;     // the same

#endif
