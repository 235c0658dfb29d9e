// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The rotation of Llama and its relatives in config.json: not scaled, or as Llama 3 scales it.
// Source: doc/99-bibliography.md#transformers.
#include "model/llama_rotation.h"

#include <string.h>

// A rotation that is not scaled, or as Llama 3 scales it. Other kinds are refused. Returns whether
// the object holds a rope_theta.
static bool read_scaling(config_reader *inner) {
    sinkproof_rotation *r = &inner->config->rotation;
    const char *kind = config_get(inner, "rope_type") != NULL ? "rope_type" : "type";
    const char *type = json_string_value(config_get(inner, kind));
    config_require_number(inner, "partial_rotary_factor", 1, "absent or 1");
    if (type != NULL && strcmp(type, "llama3") == 0) {
        r->kind = SINKPROOF_LLAMA3_ROTATION;
        if (!config_read_stated(inner, "factor", &r->factor) ||
            !config_read_stated(inner, "low_freq_factor", &r->beta_slow) ||
            !config_read_stated(inner, "high_freq_factor", &r->beta_fast))
            config_fail(inner, "rope_type",
                        "without \"llama3\", or with its factor, "
                        "low_freq_factor and high_freq_factor");
        config_read_size(inner, "original_max_position_embeddings", &r->original_context);
    } else if (config_get(inner, kind) != NULL && (type == NULL || strcmp(type, "default") != 0)) {
        config_fail(inner, kind, "\"default\" or \"llama3\"");
    }
    return config_read_stated(inner, "rope_theta", &r->theta);
}

// rope_theta beside the other keys, the scaling in `rope_scaling` (transformers 4); or both in
// `rope_parameters` (5).
void llama_read_rotation(config_reader *in) {
    static const char *const inner_keys[] = {"rope_scaling", "rope_parameters"};
    double *theta = &in->config->rotation.theta, beside;
    bool stated = config_read_stated(in, "rope_theta", theta);
    beside = *theta;
    for (int i = 0; i < 2; i++) {
        if (config_get(in, inner_keys[i]) == NULL || in->failed) continue;
        config_reader inner = config_inner_reader(in, inner_keys[i], in->config);
        in->failed = inner.failed;
        if (in->failed) return;
        stated = read_scaling(&inner) || stated;
        in->failed = inner.failed;
        if (beside != *theta && config_get(in, "rope_theta") != NULL)
            config_fail(in, "rope_theta", "equal to the one inside \"rope_parameters\"");
    }
    if (!stated) config_note(in, "rope_theta %g", *theta);
}

static const config_key llama3_keys[] = {
    {"factor", CONFIG_KEY(rotation.factor)},
    {"low_freq_factor", CONFIG_KEY(rotation.beta_slow)},
    {"high_freq_factor", CONFIG_KEY(rotation.beta_fast)},
    {"original_max_position_embeddings", CONFIG_KEY(rotation.original_context)},
    {NULL, 0},
};

void llama_make_rotation(const sinkproof_config *config, json_t *out) {
    if (config->rotation.kind != SINKPROOF_LLAMA3_ROTATION) return;
    json_t *scaling = json_pack("{s:s}", "rope_type", "llama3");
    json_object_set_new(out, "rope_scaling", config_make_keys(config, llama3_keys, scaling));
}
