// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// config.json (model.config): the released configuration in each form in which it is met
// (original, transformers 4 with rope_scaling, transformers 5 with rope_parameters) gives
// the same numbers; one wrong key at a time gives an error that names it.
#include "model/container.h"
#include "model/fields.h"
#include "tests/shared/tap.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WIDTHS                                                                                     \
    "\"num_hidden_layers\": 24, \"vocab_size\": 201088, \"hidden_size\": 2880,"                    \
    "\"intermediate_size\": 2880, \"head_dim\": 64, \"num_attention_heads\": 64,"                  \
    "\"num_key_value_heads\": 8, \"sliding_window\": 128, \"swiglu_limit\": 7.0,"

static const char openai[] =
    "{" WIDTHS "\"num_experts\": 32, \"experts_per_token\": 4, \"initial_context_length\": 4096,"
    "\"rope_theta\": 150000.0, \"rope_scaling_factor\": 32.0, \"rope_ntk_alpha\": 1.0,"
    "\"rope_ntk_beta\": 32.0}";

#define HF                                                                                         \
    "\"model_type\": \"gpt_oss\", \"attention_bias\": true, \"hidden_act\": \"silu\","             \
    "\"num_local_experts\": 32, \"num_experts_per_tok\": 4, \"rms_norm_eps\": 1e-05,"              \
    "\"tie_word_embeddings\": false, \"max_position_embeddings\": 131072,"
#define YARN                                                                                       \
    "\"rope_type\": \"yarn\", \"factor\": 32.0, \"beta_fast\": 32.0, \"beta_slow\": 1.0,"          \
    "\"original_max_position_embeddings\": 4096, \"truncate\": false"

#define YARN2                                                                                      \
    "\"rope_type\": \"yarn\", \"factor\": 16.0, \"original_max_position_embeddings\": 4096"

static const char hf4[] = "{" WIDTHS HF "\"experts_per_token\": 4, \"rope_theta\": 150000,"
                          "\"initial_context_length\": 4096, \"eos_token_id\": 200002,"
                          "\"quantization_config\": {\"quant_method\": \"mxfp4\"},"
                          "\"rope_scaling\": {" YARN "}}";
static const char hf5[] = "{" WIDTHS HF "\"swiglu_alpha\": 1.702, \"pad_token_id\": null,"
                          "\"rope_parameters\": {" YARN ", \"rope_theta\": 150000.0}}";

static bool equal(const sinkproof_config *a, const sinkproof_config *b) {
    bool same = a->n_layers == b->n_layers && a->n_experts == b->n_experts &&
                a->n_chosen == b->n_chosen && a->vocab == b->vocab && a->hidden == b->hidden &&
                a->inter == b->inter && a->n_heads == b->n_heads &&
                a->n_kv_heads == b->n_kv_heads && a->head_dim == b->head_dim &&
                a->window == b->window && a->swiglu.alpha == b->swiglu.alpha &&
                a->swiglu.limit == b->swiglu.limit && a->swiglu.offset == b->swiglu.offset &&
                a->rms_eps == b->rms_eps && a->rotation.theta == b->rotation.theta &&
                a->rotation.factor == b->rotation.factor &&
                a->rotation.beta_fast == b->rotation.beta_fast &&
                a->rotation.beta_slow == b->rotation.beta_slow &&
                a->rotation.original_context == b->rotation.original_context &&
                a->max_context == b->max_context && a->rotation.truncate == b->rotation.truncate &&
                a->sink == b->sink;
    for (size_t l = 0; l < a->n_layers; l++) same = same && a->sliding[l] == b->sliding[l];
    return same;
}

// `text` with its first `from` replaced by `to`; the result is malloc'ed.
static char *replaced(const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from);
    char *out = malloc(strlen(text) + strlen(to) + 1);
    if (at == NULL || out == NULL) abort(); // the test itself is wrong
    memcpy(out, text, (size_t)(at - text));
    strcpy(out + (at - text), to);
    strcat(out, at + strlen(from));
    return out;
}

static bool parse(const char *text, sinkproof_config *config, sinkproof_error *error) {
    error->text[0] = '\0';
    return config_parse(text, strlen(text), "config.json", config, error);
}

// Every number of a configuration is a row of the table: set through it, it is another
// configuration, of another fingerprint but for the context's length; and it is written and read.
static void check_fields(void) {
    const sinkproof_field *field;
    sinkproof_config released, other, back;
    sinkproof_error error = {""};
    sinkproof_config_named("gpt-oss-20b", &released);
    char path[] = "/tmp/sinkproof-fields-XXXXXX";
    int descriptor = mkstemp(path);
    if (descriptor < 0) abort();
    for (size_t i = 0; (field = sinkproof_field_at(i)) != NULL; i++) {
        other = released;
        double value = sinkproof_field_value(field, &released);
        bool all = value == field->released && sinkproof_field_find(field->offset) == field;
        field_set(field, &other, field->type == FIELD_BOOL ? 1 : 2 * value);
        ok(all && !fields_equal(&released, &other) && !equal(&released, &other),
           "model.config %s is a number of a configuration", field->name);
        ok(config_write(path, &other, sinkproof_container_named("hf"), true, &error) &&
               config_read(path, &back, &error) && equal(&other, &back),
           "model.config %s is written and read %s", field->name, error.text);
    }
    close(descriptor);
    unlink(path);
}

typedef struct mistake {
    const char *text, *from, *to, *told; // `told` stands in the error
} mistake;

static const mistake mistakes[] = {
    {hf4, "{", "[", "JSON"},
    {hf4, "\"hidden_size\": 2880", "\"vocab_size\": 2880", "duplicate"},
    {hf4, "\"hidden_size\": 2880", "\"hidden_sizes\": 2880", "hidden_size"},
    {hf4, "\"hidden_size\": 2880", "\"hidden_size\": -2880", "hidden_size"},
    {hf4, "\"hidden_size\": 2880", "\"hidden_size\": 0", "hidden_size"},
    {hf4, "\"hidden_size\": 2880", "\"hidden_size\": 2880.0", "hidden_size"},
    {hf4, "\"hidden_size\": 2880", "\"hidden_size\": 9223372036854775807", "hidden_size"},
    {hf4, "\"hidden_size\": 2880", "\"hidden_size\": 99999999999999999999", "JSON"},
    {hf4, "\"hidden_size\": 2880,\"intermediate_size\": 2880",
     "\"hidden_size\": 1073741824, \"intermediate_size\": 536870912", "memory"},
    {hf4, "\"intermediate_size\": 2880", "\"intermediate_size\": 536870913", "intermediate_size"},
    {hf4, "\"head_dim\": 64", "\"head_dim\": 16777218", "heads times head_dim"},
    {hf4, "\"num_hidden_layers\": 24", "\"num_hidden_layers\": 513", "layers"},
    {hf4, "\"head_dim\": 64", "\"head_dim\": 63", "head_dim"},
    {hf4, "\"num_key_value_heads\": 8", "\"num_key_value_heads\": 7", "num_key_value_heads"},
    {hf4, "\"num_experts_per_tok\": 4", "\"num_experts_per_tok\": 33", "num_experts_per_tok"},
    {hf5, "\"num_experts_per_tok\": 4", "\"num_experts_per_tok\": 33", "experts per token"},
    {hf4, "\"experts_per_token\": 4", "\"experts_per_token\": 5", "num_experts_per_tok"},
    {hf4, "\"sliding_window\": 128", "\"sliding_window\": null", "sliding_window"},
    {hf4, "\"silu\"", "\"gelu\"", "hidden_act"},
    {hf4, "\"gpt_oss\"", "\"gemma3\"", "model_type"},
    {hf4, "\"attention_bias\": true", "\"attention_bias\": false", "attention_bias"},
    {hf4, "\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true", "tie_word"},
    {hf4, "\"yarn\"", "\"linear\"", "rope_type"},
    {hf4, "\"rope_type\": \"yarn\",", "", "rope_type"},
    {hf4, "\"factor\": 32.0", "\"factor\": -1", "factor"},
    {hf4, "\"factor\": 32.0", "\"factor\": 0.5", "factor"},
    {hf4, "\"rope_scaling\": {" YARN "}", "\"rope_scaling\": null", "rope_scaling"},
    {hf4, "\"truncate\": false", "\"truncate\": 0", "truncate"},
    {hf4, "\"truncate\": false", "\"attention_factor\": 1.5", "attention_factor"},
    {hf4, "\"truncate\": false", "\"mscale\": 1.0", "mscale"},
    {hf4, "\"beta_slow\": 1.0", "\"beta_slow\": 64.0", "beta"},
    {hf4, "\"rope_scaling\": {", "\"rope_scaling\": [{", "JSON"},
    {hf4, "\"rope_scaling\"", "\"rope_parameters\": {" YARN2 "}, \"rope_scaling\"",
     "rope_parameters"},
    {hf4, "\"factor\": 32.0, ", "", "\"factor\" to be a positive number, found nothing"},
    {hf4, "\"original_max_position_embeddings\": 4096,", "", "original_max_position_embeddings"},
    {hf4, "\"initial_context_length\": 4096", "\"initial_context_length\": 8192",
     "initial_context_length"},
    {hf4, "\"hidden_act\"", "\"partial_rotary_factor\": 0.5, \"hidden_act\"", "partial_rotary"},
    {hf4, "\"hidden_act\"", "\"attention_sink\": \"sigmoid\", \"hidden_act\"",
     "\"attention_sink\" to be logit"},
    {hf4, "\"hidden_act\"", "\"attention_sink\": 1, \"hidden_act\"",
     "\"attention_sink\" to be logit"},
    {openai, "\"num_experts\"", "\"attention_sink\": \"logit\", \"num_experts\"",
     "\"attention_sink\" to be absent"},
    {hf4, "\"mxfp4\"", "\"gptq\"", "\"quant_method\" to be \"mxfp4\", found \"gptq\""},
    {hf4, "\"quant_method\": \"mxfp4\"", "\"bits\": 4", "quant_method"},
    {hf4, "{\"quant_method\": \"mxfp4\"}", "\"mxfp4\"", "quantization_config"},
    {hf5, "\"rope_parameters\"", "\"rope_theta\": 10000, \"rope_parameters\"", "rope_theta"},
    {hf5, "\"swiglu_alpha\": 1.702", "\"swiglu_alpha\": \"1.702\"", "swiglu_alpha"},
    {hf5, "\"swiglu_alpha\"", "\"layer_types\": [\"full_attention\"], \"swiglu_alpha\"",
     "layer_types"},
    {hf5, "\"swiglu_limit\": 7.0", "\"swiglu_limit\": NaN", "JSON"},
    {hf5, "\"swiglu_alpha\"", "\"swiglu_offset\": \"0\", \"swiglu_alpha\"", "swiglu_offset"},
    {openai, "\"rope_ntk_alpha\"", "\"rope_ntk_alhpa\"", "rope_ntk_alhpa"},
    {openai, "\"num_experts\": 32,", "", "num_experts"},
    {openai, "\"rope_theta\": 150000.0", "\"rope_theta\": 1.0", "rope_theta"},
};

static void check_mistakes(void) {
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        sinkproof_config config;
        sinkproof_error error;
        char *text = replaced(mistakes[i].text, mistakes[i].from, mistakes[i].to);
        bool refused = !parse(text, &config, &error);
        ok(refused && strstr(error.text, mistakes[i].told) != NULL &&
               strstr(error.text, "config.json") == error.text,
           "model.config refused: %s", refused ? error.text : mistakes[i].to);
        free(text);
    }
}

static void check_forms(void) {
    sinkproof_config named, from_openai, from_hf4, from_hf5, truncated, mixed;
    sinkproof_error error = {""};
    ok(sinkproof_config_named("gpt-oss-20b", &named), "model.config gpt-oss-20b is known");
    ok(parse(openai, &from_openai, &error) && equal(&named, &from_openai),
       "model.config original layout equals gpt-oss-20b %s", error.text);
    ok(parse(hf4, &from_hf4, &error) && equal(&named, &from_hf4),
       "model.config rope_scaling equals gpt-oss-20b %s", error.text);
    ok(parse(hf5, &from_hf5, &error) && equal(&named, &from_hf5),
       "model.config rope_parameters equals gpt-oss-20b %s", error.text);
    char *text = replaced(hf5, ", \"truncate\": false", "");
    ok(parse(text, &truncated, &error) && truncated.rotation.truncate &&
           !from_openai.rotation.truncate,
       "model.config truncate is true when Hugging Face's layout does not say");
    free(text);
    text = replaced(hf5, "\"num_hidden_layers\": 24",
                    "\"num_hidden_layers\": 2, \"layer_types\": "
                    "[\"full_attention\", \"sliding_attention\"]");
    ok(parse(text, &mixed, &error) && !mixed.sliding[0] && mixed.sliding[1],
       "model.config layer_types decide");
    free(text);
    text = replaced(hf5, "\"swiglu_alpha\"", "\"attention_sink\": \"logit\", \"swiglu_alpha\"");
    ok(parse(text, &mixed, &error) && equal(&named, &mixed),
       "model.config a stated attention_sink of logit is GPT-OSS's %s", error.text);
    free(text);
    text = replaced(hf5, "\"swiglu_alpha\"", "\"swiglu_offset\": 0, \"swiglu_alpha\"");
    ok(parse(text, &mixed, &error) && mixed.swiglu.offset == 0,
       "model.config a SwiGLU without an offset in GPT-OSS's layout %s", error.text);
    free(text);
    ok(!sinkproof_config_named("gpt-oss-21b", &mixed), "model.config unknown names are refused");
}

// What falls back to a published default is said, with the default; what is stated is not.
static void check_unstated(void) {
    const struct {
        const char *text, *from, *to, *unstated;
    } cases[] = {
        {openai, "24", "24", ""},
        {openai, "\"rope_theta\": 150000.0, ", "", "rope_theta 150000"},
        {openai, ",\"rope_ntk_beta\": 32.0", "", "rope_ntk_beta 32"},
        {openai, "\"swiglu_limit\": 7.0,", "", "swiglu_limit 7"},
        {hf4, "24", "24", "swiglu_alpha 1.702, layer_types alternating, sliding first"},
        {hf5, "24", "24", "layer_types alternating, sliding first"},
        {hf5, ", \"rope_theta\": 150000.0", "",
         "layer_types alternating, sliding first, rope_theta 150000"},
        {hf5, ", \"truncate\": false", "", "layer_types alternating, sliding first, truncate true"},
        {hf5, "\"beta_slow\": 1.0,", "", "layer_types alternating, sliding first, beta_slow 1"},
        {hf5, "\"attention_bias\": true, \"hidden_act\": \"silu\",", "",
         "hidden_act silu, attention_bias true, layer_types alternating, sliding first"},
        {hf5, "\"max_position_embeddings\": 131072,", "",
         "layer_types alternating, sliding first, max_position_embeddings 131072"},
        {hf5, ",\"rope_parameters\": {" YARN ", \"rope_theta\": 150000.0}", "",
         "layer_types alternating, sliding first, rope_scaling yarn of factor 32 on 4096 "
         "positions, "
         "rope_theta 150000"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sinkproof_config config;
        sinkproof_error error;
        char *text = replaced(cases[i].text, cases[i].from, cases[i].to);
        bool good = parse(text, &config, &error);
        ok(good && strcmp(config.unstated, cases[i].unstated) == 0, "model.config not stated: %s",
           good ? config.unstated : error.text);
        free(text);
    }
}

static void check_writing(const char *name) {
    sinkproof_config config, back;
    sinkproof_error error = {""};
    char path[] = "/tmp/sinkproof-config-XXXXXX";
    int descriptor = mkstemp(path);
    sinkproof_config_named(name, &config);
    ok(descriptor >= 0 &&
           config_write(path, &config, sinkproof_container_named("openai"), true, &error) &&
           config_read(path, &back, &error) && equal(&config, &back),
       "model.config %s written and read in the original layout %s", name, error.text);
    ok(config_write(path, &config, sinkproof_container_named("hf"), true, &error) &&
           config_read(path, &back, &error) && equal(&config, &back),
       "model.config %s written and read with quantization_config %s", name, error.text);
    config.sliding[0] = false;
    config.rotation.truncate = true;
    config.swiglu.alpha = 1.6;
    config.rms_eps = 1e-6;
    config.max_context = 1000;
    ok(config_write(path, &config, sinkproof_container_named("hf"), false, &error) &&
           config_read(path, &back, &error) && equal(&config, &back),
       "model.config %s, altered, in Hugging Face's layout %s", name, error.text);
    ok(!config_write(path, &config, sinkproof_container_named("openai"), true, &error) &&
           config_read(path, &back, &error) && equal(&config, &back),
       "model.config the original layout cannot say it, and nothing is written: %s", error.text);
    if (descriptor >= 0) close(descriptor);
    unlink(path);
}

int main(void) {
    check_fields();
    sinkproof_config config;
    sinkproof_error error;
    check_forms();
    check_mistakes();
    check_unstated();
    check_writing("tiny");
    check_writing("gpt-oss-120b");
    ok(!config_read("/nonexistent/config.json", &config, &error), "%s", error.text);
    ok(!config_read("/", &config, &error), "%s", error.text);
    return tap_done();
}
