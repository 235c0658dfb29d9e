// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof info MODEL`: describes a checkpoint and its contents. It reads every weight: the
// exponents of the values, zeros, infinities and NaN, and for MXFP4 experts a histogram of the
// scale bytes. Anything unusual that is not an error is listed.
#include "audit/command/command.h"
#include "audit/command/cpu.h"
#include "audit/command/info_policy.h"
#include "base/share.h"
#include "base/words.h"
#include "model/bf16.h"
#include "model/config_reader.h"
#include "model/fields.h"
#include "model/model.h"
#include "model/mxfp4.h"
#include "model/sinks.h"
#include "model/slots.h"
#include "ref/policy.h"

#include <argp.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 4096 };

// One part (a slot in all layers): 2^low <= |x| < 2^(high + 1) for every finite x except 0.
typedef struct census {
    uint64_t elements, zeros, not_finite, no_sinks; // no_sinks: sinks of -infinity
    int low, high;
    sinkproof_dtype dtype;
    bool mixed; // not the same dtype in every layer
    bool sinks;
} census;

typedef struct survey {
    const sinkproof_model *model;
    const sinkproof_config *config;
    census parts[SINKPROOF_SLOTS];
    uint64_t fingerprint, scales[256], blocks;
    char **odd;
    size_t n_odd;
} survey;

__attribute__((format(printf, 2, 3))) static void add_odd(survey *in, const char *format, ...) {
    char sentence[1000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    in->odd = realloc(in->odd, (in->n_odd + 1) * sizeof *in->odd);
    if (in->odd == NULL) abort();
    in->odd[in->n_odd++] = strdup(sentence);
}

static void count_finite(census *part, const double *x_n, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &x_n[i], sizeof bits);
        int e = (int)(bits >> 52 & 2047) - 1023; // no stored format has binary64 subnormals
        if (part->sinks && x_n[i] == -INFINITY)
            part->no_sinks++;
        else if (e == 1024)
            part->not_finite++;
        else if (bits << 1 == 0)
            part->zeros++;
        else {
            if (e < part->low) part->low = e;
            if (e > part->high) part->high = e;
        }
    }
    part->elements += n;
}

// The scale bytes of one or many rows; the order does not matter for a histogram.
static void count_scales(survey *in, const uint8_t *scales, size_t n) {
    for (size_t i = 0; i < n; i++) in->scales[scales[i]]++;
    in->blocks += n;
}

static void look_at_mxfp4(survey *in, const sinkproof_matrix *stack, uint8_t *room) {
    size_t blocks = stack->cols / SINKPROOF_MXFP4_BLOCK;
    for (size_t e = 0; e < stack->count; e++) {
        sinkproof_matrix w = sinkproof_matrix_at(stack, e);
        for (size_t r = 0; r < w.rows; r++) {
            sinkproof_matrix_codes(&w, r, NULL, room);
            count_scales(in, room, blocks);
        }
    }
}

// Stored elements are contiguous, whatever their strides, except blocks and separate gate and up.
static void look_at_plain(census *part, const sinkproof_matrix *stack, double *room) {
    size_t size = sinkproof_dtype_size(stack->dtype), n = stack->count * stack->rows * stack->cols;
    bool contiguous = stack->data != NULL && stack->odd == NULL && size > 0;
    for (size_t i = 0; contiguous && i < n; i += CHUNK) {
        size_t length = n - i < CHUNK ? n - i : CHUNK;
        sinkproof_decode_many(stack->dtype, stack->data + i * size, 1, length, room);
        count_finite(part, room, length);
    }
    for (size_t e = 0; !contiguous && e < stack->count; e++) {
        sinkproof_matrix w = sinkproof_matrix_at(stack, e);
        for (size_t r = 0; r < w.rows; r++) {
            sinkproof_matrix_row(&w, r, room);
            count_finite(part, room, w.cols);
        }
    }
}

static void look_at_slot(survey *in, size_t l, sinkproof_slot slot, double *room) {
    sinkproof_matrix stack = sinkproof_model_slot(in->model, l, slot);
    census *part = &in->parts[slot];
    if (part->elements == 0)
        *part = (census){.low = 2000,
                         .high = -2000,
                         .dtype = stack.dtype,
                         .sinks =
                             slot == SINKPROOF_SINKS && sinkproof_slot_is_vector(slot, in->config)};
    part->mixed = part->mixed || part->dtype != stack.dtype;
    uint64_t without = part->no_sinks;
    if (stack.dtype == SINKPROOF_DTYPE_MXFP4) {
        look_at_mxfp4(in, &stack, (uint8_t *)room);
        part->elements += stack.count * stack.rows * stack.cols;
    } else
        look_at_plain(part, &stack, room);
    if (part->no_sinks > without)
        add_odd(in, "tensor %s: %" PRIu64 " of %s %s -infinity: %s none", stack.name,
                part->no_sinks - without, sinkproof_counted(stack.cols, "sink").text,
                sinkproof_is_or_are(part->no_sinks - without),
                part->no_sinks - without == 1 ? "that head has" : "those heads have");
}

static void survey_weights(survey *in) {
    size_t widest = CHUNK, rows, cols, n;
    for (int s = 0; s < SINKPROOF_SLOTS; s++) {
        sinkproof_slot_shape((sinkproof_slot)s, in->config, &n, &rows, &cols);
        if (cols > widest) widest = cols;
    }
    double *room = malloc(widest * sizeof *room);
    if (room == NULL) abort();
    for (size_t l = 0; l < in->config->n_layers; l++) {
        progress_show("info", "layer", l, in->config->n_layers);
        for (int s = 0; s < SINKPROOF_LAYER_SLOTS; s++)
            look_at_slot(in, l, (sinkproof_slot)s, room);
    }
    for (int s = SINKPROOF_LAYER_SLOTS; s < SINKPROOF_SLOTS; s++)
        look_at_slot(in, 0, (sinkproof_slot)s, room);
    progress_show("info", "layer", in->config->n_layers, in->config->n_layers);
    free(room);
}

static bool add_not_finite(void *context, const char *sentence) {
    add_odd(context, "%s; the other commands refuse this", sentence);
    return true;
}

static void find_odd(survey *in) {
    const sinkproof_config *c = in->config;
    for (size_t i = 0; i < sinkproof_model_odd_count(in->model); i++)
        add_odd(in, "%s", sinkproof_model_odd(in->model, i));
    sinkproof_model_not_finite(in->model, add_not_finite, in);
    bool scaled = c->rotation.kind == SINKPROOF_YARN;
    if (scaled &&
        (double)c->max_context != c->rotation.factor * (double)c->rotation.original_context)
        add_odd(in, "the context of %zu is not YaRN's factor %g times the original %zu",
                c->max_context, c->rotation.factor, c->rotation.original_context);
    if (scaled && c->rotation.truncate)
        add_odd(in, "YaRN's ramp is rounded to whole dimensions (truncate); GPT-OSS does not");
    for (size_t l = 0; c->architecture == SINKPROOF_GPT_OSS && l < c->n_layers; l++)
        if (c->sliding[l] != (l % 2 == 0)) {
            add_odd(in, "layer %zu breaks the pattern of alternating layers", l);
            break;
        }
    for (int s = 0; s < SINKPROOF_SLOTS; s++) // weights for which a mistake would not show
        if (in->parts[s].elements > 0 && in->parts[s].zeros == in->parts[s].elements)
            add_odd(in, "every value of %s is zero", sinkproof_slot_name((sinkproof_slot)s));
    uint64_t tiny = in->scales[0] + in->scales[1], huge = in->scales[253] + in->scales[254];
    if (tiny > 0)
        add_odd(in,
                "%" PRIu64 " MXFP4 blocks have scale byte 0 or 1: elements below 2^-126, which "
                "an engine that flushes subnormals loses",
                tiny);
    if (huge > 0)
        add_odd(in,
                "%" PRIu64 " MXFP4 blocks have scale byte 253 or 254: elements beyond bf16 and "
                "binary32",
                huge);
    for (int s = 0; s < SINKPROOF_SLOTS; s++)
        if (in->parts[s].mixed)
            add_odd(in, "%s has not the same dtype in every layer",
                    sinkproof_slot_name((sinkproof_slot)s));
}

// The name of a norm depends on its kind.
static const char *field_meaning(const sinkproof_field *field, const sinkproof_config *c) {
    bool eps = field == sinkproof_field_find(offsetof(sinkproof_config, rms_eps));
    return eps && c->norm == SINKPROOF_LAYERNORM ? "LayerNorm epsilon" : field->said;
}

// Prints the numbers of a line that have a name, after the start of the line.
static void print_fields(const sinkproof_config *c, const char *line) {
    const sinkproof_field *field;
    for (size_t i = 0; (field = sinkproof_field_at(i)) != NULL; i++)
        if (field->line != NULL && strcmp(field->line, line) == 0 &&
            sinkproof_field_exists(field, c))
            printf(", %s %g", field_meaning(field, c), sinkproof_field_value(field, c));
    printf("\n");
}

static void print_mlp(const sinkproof_config *c) {
    if (!c->dense)
        printf("experts     %zu of width %zu, %zu per token", c->n_experts, c->inter, c->n_chosen);
    else
        printf("perceptron  of width %zu, %s", c->inter,
               c->activation == SINKPROOF_SWIGLU ? "SwiGLU" : "GELU by tanh");
    print_fields(c, "experts");
}

static void print_config(const survey *in, const char *spec) {
    const sinkproof_config *c = in->config;
    size_t sliding = 0;
    for (size_t l = 0; l < c->n_layers; l++) sliding += c->sliding[l];
    printf("model       %s\n", spec);
    printf("layout      %s, fingerprint %016" PRIx64 "\n", sinkproof_model_layout(in->model),
           in->fingerprint);
    if (c->architecture != SINKPROOF_GPT_OSS)
        printf("kind        %s\n", sinkproof_architecture_name(c->architecture));
    if (!c->dense || sliding > 0)
        printf("layers      %zu: %zu sliding with window %zu, %zu full\n", c->n_layers, sliding,
               c->window, c->n_layers - sliding);
    else
        printf("layers      %zu\n", c->n_layers);
    printf("widths      hidden %zu, vocabulary %zu", c->hidden, c->vocab);
    print_fields(c, "widths");
    if (c->tied) printf("tied        the unembedding is the embedding\n");
    printf("attention   %s of %zu on %s%s\n", sinkproof_counted(c->n_heads, "head").text,
           c->head_dim, sinkproof_counted(c->n_kv_heads, "key/value head").text,
           c->head_norms ? ", a norm of each query and key" : "");
    if (c->sink != 0)
        printf("sink        %s, where GPT-OSS has a learned logit for each head\n",
               sinkproof_sinks_name(c->sink));
    print_mlp(c);
    if (c->rotation.kind == SINKPROOF_PLAIN_ROTATION)
        printf("positions   rotated, not scaled");
    else if (c->rotation.kind == SINKPROOF_LLAMA3_ROTATION)
        printf("positions   rotated; pairs that turn up to %g times in %s turn %g times "
               "slower, from %g times on as trained, rope_theta %g\n",
               c->rotation.beta_slow,
               sinkproof_counted(c->rotation.original_context, "position").text, c->rotation.factor,
               c->rotation.beta_fast, c->rotation.theta);
    else if (c->rotation.kind == SINKPROOF_YARN)
        printf("positions   YaRN's range %s", c->rotation.truncate ? "truncated" : "not truncated");
    else
        printf("positions   %zu, learned", c->max_context);
    if (c->rotation.kind != SINKPROOF_LLAMA3_ROTATION) print_fields(c, "positions");
    if (c->unstated[0] != '\0')
        printf("not stated  %s (the published default of each)\n", c->unstated);
    printf("\n");
}

static void slot_shape_text(const survey *in, sinkproof_slot slot, char *text, size_t size) {
    size_t n, rows, cols;
    sinkproof_slot_shape(slot, in->config, &n, &rows, &cols);
    int used = sinkproof_slot_is_stacked(slot, in->config) ? snprintf(text, size, "%zu x ", n) : 0;
    if (sinkproof_slot_is_vector(slot, in->config))
        snprintf(text + used, size - (size_t)used, "[%zu]", cols);
    else
        snprintf(text + used, size - (size_t)used, "[%zu, %zu]", rows, cols);
}

static void print_parts(const survey *in) {
    printf("%-12s %-22s %-6s %14s %12s %11s\n", "part", "shape in each layer", "dtype", "elements",
           "zeros", "exponents");
    for (int s = 0; s < SINKPROOF_SLOTS; s++) {
        const census *part = &in->parts[s];
        char shape[80], exponents[32] = "see below", zeros[32] = "-";
        if (part->elements == 0) continue;                            // not in this model
        if (s == SINKPROOF_UNEMBEDDING && in->config->tied) continue; // the embedding again
        slot_shape_text(in, (sinkproof_slot)s, shape, sizeof shape);
        if (part->dtype != SINKPROOF_DTYPE_MXFP4) {
            snprintf(zeros, sizeof zeros, "%" PRIu64, part->zeros);
            if (part->low > part->high)
                strcpy(exponents, "none");
            else
                snprintf(exponents, sizeof exponents, "%d to %d", part->low, part->high);
        }
        printf("%-12s %-22s %-6s %14" PRIu64 " %12s %11s\n", sinkproof_slot_name((sinkproof_slot)s),
               shape, part->mixed ? "mixed" : sinkproof_dtype_name(part->dtype), part->elements,
               zeros, exponents);
    }
    printf("An exponent is floor(log2 |x|).\n");
}

static void print_scales(const survey *in) {
    if (in->blocks == 0) return;
    printf("\nMXFP4: %" PRIu64 " blocks of 32; scale byte, its power of two, share of the blocks\n",
           in->blocks);
    int column = 0;
    for (int s = 0; s < 256; s++) {
        if (in->scales[s] == 0) continue;
        double share = sinkproof_count_share((size_t)in->scales[s], (size_t)in->blocks);
        printf("  %3d 2^%-4d %10s%s", s, s - 127, sinkproof_share_percent(share, 4).text,
               ++column % 4 == 0 ? "\n" : "");
    }
    if (column % 4 != 0) printf("\n");
}

static json_t *config_json(const survey *in, const char *spec) {
    const sinkproof_config *c = in->config;
    char fingerprint[17];
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, in->fingerprint);
    json_t *sliding = json_array();
    for (size_t l = 0; l < c->n_layers; l++)
        json_array_append_new(sliding, json_boolean(c->sliding[l]));
    json_t *out = json_pack("{s:s, s:b, s:s, s:s, s:s, s:s}", "id", "model.config", "ok", 1,
                            "label", "exact", "model", spec, "layout",
                            sinkproof_model_layout(in->model), "fingerprint", fingerprint);
    json_t *numbers = json_object();
    const sinkproof_field *field;
    for (size_t i = 0; (field = sinkproof_field_at(i)) != NULL; i++)
        if (sinkproof_field_exists(field, c))
            json_object_set_new(numbers, field->shown, sinkproof_config_make_value(field, c));
    if (c->architecture != SINKPROOF_GPT_OSS)
        json_object_set_new(numbers, "architecture",
                            json_string(sinkproof_architecture_name(c->architecture)));
    if (c->tied) json_object_set_new(numbers, "tied", json_true());
    if (c->sink != 0)
        json_object_set_new(numbers, "attention_sink", json_string(sinkproof_sinks_name(c->sink)));
    json_object_set_new(out, "config", numbers);
    json_object_set_new(out, "sliding", sliding);
    json_object_set_new(out, "unstated", json_string(c->unstated));
    return out;
}

static json_t *survey_json(const survey *in, const char *spec) {
    json_t *out = json_array();
    json_t *model = config_json(in, spec), *odd = json_array();
    for (size_t i = 0; i < in->n_odd; i++) json_array_append_new(odd, json_string(in->odd[i]));
    json_object_set_new(model, "odd", odd);
    json_array_append_new(out, model);
    for (int s = 0; s < SINKPROOF_SLOTS; s++) {
        const census *part = &in->parts[s];
        size_t n, rows, cols;
        if (part->elements == 0) continue;                            // not in this model
        if (s == SINKPROOF_UNEMBEDDING && in->config->tied) continue; // the embedding again
        sinkproof_slot_shape((sinkproof_slot)s, in->config, &n, &rows, &cols);
        json_t *result =
            json_pack("{s:s+, s:b, s:s, s:s, s:[I, I, I], s:I}", "id", "weights.",
                      sinkproof_slot_name((sinkproof_slot)s), "ok", part->not_finite == 0, "label",
                      "exact", "dtype", part->mixed ? "mixed" : sinkproof_dtype_name(part->dtype),
                      "shape", (json_int_t)n, (json_int_t)rows, (json_int_t)cols, "elements",
                      (json_int_t)part->elements);
        if (part->dtype != SINKPROOF_DTYPE_MXFP4) {
            json_object_set_new(result, "zeros", json_integer((json_int_t)part->zeros));
            json_object_set_new(result, "not_finite", json_integer((json_int_t)part->not_finite));
            if (part->low <= part->high)
                json_object_set_new(result, "exponents",
                                    json_pack("[i, i]", part->low, part->high));
        }
        json_array_append_new(out, result);
    }
    json_t *histogram = json_object();
    for (int s = 0; s < 256; s++) {
        char key[4];
        snprintf(key, sizeof key, "%d", s & 255);
        if (in->scales[s] > 0)
            json_object_set_new(histogram, key, json_integer((json_int_t)in->scales[s]));
    }
    json_array_append_new(out, json_pack("{s:s, s:b, s:s, s:I, s:o}", "id", "mxfp4.scales", "ok", 1,
                                         "label", "exact", "blocks", (json_int_t)in->blocks,
                                         "histogram", histogram));
    return out;
}

typedef struct arguments {
    const char *model, *json, *policy;
    bool cpu;
} arguments;

static const struct argp_option options[] = {
    {"json", 'j', "FILE|-", 0, "write the result as JSON; with - nothing else is printed", 0},
    {"policy", 'p', "POLICY", 0,
     "print a policy in full, as a file that --policy @FILE of the other commands reads", 0},
    {"cpu", 'c', NULL, 0,
     "print this machine's processor, the instruction sets that run here and why the others do "
     "not, the one that SINKPROOF_ISA names or, measured once, is the fastest (the times are kept "
     "in "
     "SINKPROOF_CACHE, or in sinkproof/ of XDG_CACHE_HOME or ~/.cache), threads, pages, caches",
     0},
    {0}};

static error_t parse_info_option(int key, char *value, struct argp_state *state) {
    arguments *in = state->input;
    if (key == 'j')
        in->json = value;
    else if (key == 'p')
        in->policy = value;
    else if (key == 'c')
        in->cpu = true;
    else if (key == ARGP_KEY_ARG && state->arg_num == 0)
        in->model = value;
    else if (key == ARGP_KEY_ARG)
        argp_error(state, "expected one MODEL, found \"%s\" too", value);
    else if (key == ARGP_KEY_END && in->model == NULL && in->policy == NULL && !in->cpu)
        argp_error(state, "expected a MODEL");
    else if (key == ARGP_KEY_END && in->model != NULL && in->cpu)
        argp_error(state, "--cpu looks at the machine and takes no MODEL, found \"%s\"", in->model);
    else if (key != ARGP_KEY_END)
        return ARGP_ERR_UNKNOWN;
    return 0;
}

int cmd_info(int argc, char **argv) {
    static const char document[] =
        "Print the configuration of MODEL, its weights and their formats, the histogram of MXFP4 "
        "scale bytes, the keys that config.json leaves to a default, and anything odd: weights "
        "that "
        "are no numbers, which the other commands refuse."
        "\v" HELP_MODEL_IS ", " HELP_NAME_IS ".";
    const struct argp argp = {
        options, parse_info_option, "MODEL\n--cpu\n--policy POLICY", document, NULL, NULL, NULL};
    arguments in = {NULL, NULL, NULL, false};
    command_parse_line(&argp, argc, argv, &in);
    if (in.policy != NULL) return cmd_info_policy(in.policy);
    if (in.cpu) return cmd_info_cpu(in.json);
    sinkproof_error error;
    sinkproof_model *model;
    if (!sinkproof_model_inspect(in.model, &model, &error)) return exit_bad_input("info", &error);
    survey *found = calloc(1, sizeof *found);
    if (found == NULL || !sinkproof_model_fingerprint(model, &found->fingerprint, &error)) abort();
    found->model = model;
    found->config = sinkproof_model_config(model);
    survey_weights(found);
    find_odd(found);
    if (in.json == NULL || strcmp(in.json, "-") != 0) {
        print_config(found, in.model);
        print_parts(found);
        print_scales(found);
        printf("\nodd: %s\n", found->n_odd == 0 ? "nothing" : "");
        for (size_t i = 0; i < found->n_odd; i++) printf("  %s\n", found->odd[i]);
    }
    bool good = in.json == NULL || envelope_write_json(in.json, "info", EXIT_HOLDS,
                                                       survey_json(found, in.model), &error);
    for (size_t i = 0; i < found->n_odd; i++) free(found->odd[i]);
    free(found->odd);
    free(found);
    sinkproof_model_close(model);
    return good ? EXIT_HOLDS : exit_bad_input("info", &error);
}
