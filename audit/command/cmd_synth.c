// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof synth MODEL --out PATH --layout NAME`: writes a model, synthetic or not, as a
// checkpoint that other engines load. The containers do the writing; this file has their list.
#include "audit/command/command.h"
#include "base/words.h"
#include "model/container.h"

#include <argp.h>
#include <string.h>

typedef struct arguments {
    const char *model, *out, *layout, *dense;
    sinkproof_dtype type; // if `dense` is not NULL
    const sinkproof_container *container;
    bool dequantize;
} arguments;

static bool is_written(const sinkproof_container *container) {
    return container->write != NULL;
}
static bool container_dequantizes(const sinkproof_container *container) {
    return container->dequantizes;
}
static bool container_converts(const sinkproof_container *container) {
    return container->converts;
}

// The types for dense weights.
static const struct {
    const char *name;
    sinkproof_dtype dtype;
} types[] = {{"f32", SINKPROOF_DTYPE_F32},
             {"f16", SINKPROOF_DTYPE_F16},
             {"bf16", SINKPROOF_DTYPE_BF16},
             {"q8_0", SINKPROOF_DTYPE_Q8_0}};

typedef struct text {
    char text[400];
} text;

// The names of some containers, such as "hf or openai".
static text container_names(bool (*of)(const sinkproof_container *container), const char *between) {
    text out = {""};
    size_t used = 0;
    const sinkproof_container *container;
    for (size_t i = 0; (container = sinkproof_container_at(i)) != NULL; i++)
        if (container->name != NULL && of(container) && used < sizeof out.text)
            used += (size_t)snprintf(out.text + used, sizeof out.text - used, "%s%s",
                                     used == 0 ? "" : between, container->name);
    return out;
}

// The values of --layout; the first writable one is the default.
static text describe_layouts(void) {
    text out = {""};
    size_t used = 0, size = sizeof out.text;
    const sinkproof_container *container;
    for (size_t i = 0; (container = sinkproof_container_at(i)) != NULL; i++)
        if (is_written(container) && used < size)
            used +=
                (size_t)snprintf(out.text + used, size - used, "%s%s%s", used == 0 ? "" : " or ",
                                 container->holds, used == 0 ? " (the default)" : "");
    return out;
}

static const sinkproof_container *default_container(void) {
    size_t i = 0;
    while (!is_written(sinkproof_container_at(i))) i++;
    return sinkproof_container_at(i);
}

static void read_dense(arguments *in, const char *value, struct argp_state *state) {
    in->dense = value;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        in->type = types[i].dtype;
        if (strcmp(value, types[i].name) == 0) return;
    }
    const char known[] = "f32, f16, bf16 or q8_0";
    argp_error(state, "%sexpected dense weights in %s, found \"%s\"",
               sinkproof_guess_in_list(value, known).text, known, value);
}

static void check_arguments(arguments *in, struct argp_state *state) {
    if (in->model == NULL) argp_error(state, "expected a MODEL");
    if (in->out == NULL) argp_error(state, "expected --out PATH");
    in->container =
        in->layout == NULL ? default_container() : sinkproof_container_named(in->layout);
    if (in->container == NULL)
        argp_error(
            state, "%sexpected layout %s, found \"%s\"",
            sinkproof_guess_in_list(in->layout, container_names(is_written, " or ").text).text,
            container_names(is_written, " or ").text, in->layout);
    if (!is_written(in->container))
        argp_error(state, "layout %s is not written", in->container->name);
    if (in->dense != NULL && !container_converts(in->container))
        argp_error(state, "--dense needs --layout %s: %s has weights as they are stored",
                   container_names(container_converts, " or ").text, in->container->title);
    if (in->dequantize && !container_dequantizes(in->container))
        argp_error(state, "--dequantize needs --layout %s: %s is MXFP4",
                   container_names(container_dequantizes, " or ").text, in->container->title);
}

static error_t parse_synth_option(int key, char *value, struct argp_state *state) {
    arguments *in = state->input;
    if (key == 'o')
        in->out = value;
    else if (key == 'l')
        in->layout = value;
    else if (key == 'd')
        in->dequantize = true;
    else if (key == 'D')
        read_dense(in, value, state);
    else if (key == ARGP_KEY_ARG && state->arg_num == 0)
        in->model = value;
    else if (key == ARGP_KEY_ARG)
        argp_error(state, "expected one MODEL, found \"%s\" too", value);
    else if (key == ARGP_KEY_END)
        check_arguments(in, state);
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

static void show_progress(void *context, size_t layer, size_t n_layers) {
    (void)context;
    progress_show("synth", "layer", layer, n_layers);
}

static bool write_model(const arguments *in, sinkproof_error *error) {
    const sinkproof_writing how = {.dequantize = in->dequantize,
                                   .converts = in->dense != NULL,
                                   .dense = in->type,
                                   .progress = show_progress};
    sinkproof_model *model;
    if (!sinkproof_model_open(in->model, &model, error)) return false;
    bool good = in->container->write(in->container, model, in->out, &how, error);
    sinkproof_model_close(model);
    return good;
}

int cmd_synth(int argc, char **argv) {
    static const char document[] =
        "Write MODEL as a checkpoint that other engines load, in the layout that --layout names."
        "\v" HELP_MODEL_IS ", " HELP_NAME_IS ".";
    text layouts = container_names(is_written, "|"), described = describe_layouts(),
         only = container_names(container_dequantizes, " or "),
         dense = container_names(container_converts, " or ");
    strcat(only.text, " only: write MXFP4 experts as bf16, or as --dense says");
    strcat(dense.text, " only: the type of dense matrices, f32, f16, bf16 or q8_0; rounds where "
                       "that holds less than is stored (the default: as they are stored)");
    const struct argp_option options[] = {
        {"out", 'o', "PATH", 0,
         "the directory to make, which must not exist or be empty; of gguf the new file NAME.gguf",
         0},
        {"layout", 'l', layouts.text, 0, described.text, 0},
        {"dense", 'D', "TYPE", 0, dense.text, 0},
        {"dequantize", 'd', NULL, 0, only.text, 0},
        {0}};
    const struct argp argp = {options, parse_synth_option, "MODEL", document, NULL, NULL, NULL};
    arguments in = {0};
    sinkproof_error error;
    command_parse_line(&argp, argc, argv, &in);
    return write_model(&in, &error) ? EXIT_HOLDS : exit_bad_input("synth", &error);
}
