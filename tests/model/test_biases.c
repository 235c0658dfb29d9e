// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Which linear layers carry a bias, measured on checkpoints in the reference's layout, one that
// this project writes and two on which the published implementation ran: every tensor of the file
// is a weight, its bias, or one of the few that have none.
#include "audit/command/command.h"
#include "model/model.h"
#include "model/safetensors.h"
#include "model/slots.h"
#include "tests/shared/tap.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/sinkproof-biases-XXXXXX";
static sinkproof_config config;

// The tensors of a layer as published, by the linear layer that they belong to.
static const struct {
    const char *weight, *bias;
} linear[] = {{"attn.qkv.weight", "attn.qkv.bias"},
              {"attn.out.weight", "attn.out.bias"},
              {"mlp.gate.weight", "mlp.gate.bias"},
              {"mlp.mlp1_weight.blocks", "mlp.mlp1_bias"},
              {"mlp.mlp2_weight.blocks", "mlp.mlp2_bias"}};
static const char *const without[] = {"attn.norm.scale", "attn.sinks", "mlp.norm.scale"};
static const char *const scales[] = {"mlp.mlp1_weight.scales", "mlp.mlp2_weight.scales"};
static const char *const outside[] = {"embedding.weight", "norm.scale", "unembedding.weight"};

static const sinkproof_tensor *tensor(const sinkproof_safetensors *file, size_t l,
                                      const char *name) {
    char full[96];
    snprintf(full, sizeof full, "block.%zu.%s", l, name);
    return sinkproof_safetensors_find(file, full);
}

// One number for each output: as many as the weight has rows, for each expert.
static bool fits(const sinkproof_tensor *weight, const sinkproof_tensor *bias) {
    if (weight == NULL || bias == NULL) return false;
    bool stacked = weight->rank == 4;
    size_t rows = weight->shape[stacked ? 1 : 0] * (stacked ? weight->shape[0] : 1);
    return sinkproof_tensor_elements(bias) == rows;
}

static void layout(const char *of, const char *path) {
    sinkproof_safetensors *file = NULL;
    sinkproof_error error = {""};
    if (!ok(sinkproof_safetensors_open(path, &file, &error), "%s opens %s", of, error.text)) return;
    size_t biased = 0, plain = 0, named = 0;
    for (size_t l = 0; l < config.n_layers; l++) {
        for (size_t k = 0; k < sizeof linear / sizeof *linear; k++)
            biased += fits(tensor(file, l, linear[k].weight), tensor(file, l, linear[k].bias));
        for (size_t k = 0; k < sizeof without / sizeof *without; k++)
            plain += tensor(file, l, without[k]) != NULL;
        for (size_t k = 0; k < sizeof scales / sizeof *scales; k++)
            named += tensor(file, l, scales[k]) != NULL;
    }
    for (size_t k = 0; k < sizeof outside / sizeof *outside; k++)
        plain += sinkproof_safetensors_find(file, outside[k]) != NULL;
    ok(biased == 5 * config.n_layers,
       "model.biases %s: every linear layer of a block has a bias of one number per output: %zu of "
       "%zu",
       of, biased, 5 * config.n_layers);
    ok(plain == 3 * config.n_layers + 3,
       "model.biases %s: norms, sinks, embedding and unembedding are single tensors: %zu of %zu",
       of, plain, 3 * config.n_layers + 3);
    size_t all = sinkproof_safetensors_count(file), accounted = 2 * biased + plain + named;
    ok(all == accounted && all == 15 * config.n_layers + 3,
       "model.biases %s: no other tensor is in the file: %zu of %zu are accounted for", of,
       accounted, all);
    sinkproof_safetensors_close(file);
}

// A checkpoint of tests/vectors, on which the published implementation ran.
static void published(const char *name) {
    char path[96];
    sinkproof_error error = {""};
    snprintf(path, sizeof path, "tests/vectors/openai-torch/%s/config.json", name);
    if (!ok(config_read(path, &config, &error), "%s is read %s", path, error.text)) return;
    snprintf(path, sizeof path, "tests/vectors/openai-torch/%s/model.safetensors", name);
    layout(name, path);
}

// Of the layers' parameters in the released sizes, how few are biases.
static void shares(const char *name) {
    size_t biases = 0, all = 0;
    sinkproof_config_named(name, &config);
    for (int s = 0; s < SINKPROOF_LAYER_SLOTS; s++) {
        size_t count, rows, cols;
        sinkproof_slot_shape((sinkproof_slot)s, &config, &count, &rows, &cols);
        bool bias = strncmp(sinkproof_slot_name((sinkproof_slot)s), "b_", 2) == 0;
        biases += bias ? count * rows * cols : 0;
        all += count * rows * cols;
    }
    size_t q = config.n_heads * config.head_dim, kv = config.n_kv_heads * config.head_dim;
    size_t expected = q + 2 * kv + config.hidden + config.n_experts +
                      config.n_experts * (2 * config.inter + config.hidden);
    ok(biases == expected, "model.biases %s: %zu biases a layer, one in %zu of its parameters",
       name, biases, all / biases);
}

// Two slots of one stream would be given the same weights.
static void streams(void) {
    bool taken[256] = {false};
    size_t own = 0;
    for (int slot = 0; slot < SINKPROOF_SLOTS; slot++) {
        unsigned stream = slot_stream((sinkproof_slot)slot);
        own += stream < 256 && !taken[stream];
        taken[stream % 256] = true;
    }
    ok(own == SINKPROOF_SLOTS, "model.biases every weight has a stream of its own: %zu of %d", own,
       SINKPROOF_SLOTS);
}

int main(void) {
    streams();
    char command[] = "sinkproof synth", model[] = "synthetic:tiny", out[] = "--out",
         layout_flag[] = "--layout", openai[] = "openai", path[96], file_name[128];
    if (mkdtemp(folder) == NULL) return 1;
    snprintf(path, sizeof path, "%s/model", folder);
    char *argv[] = {command, model, out, path, layout_flag, openai, NULL};
    ok(cmd_synth(6, argv) == 0, "a checkpoint in the reference's layout is written");
    sinkproof_config_named("tiny", &config);
    snprintf(file_name, sizeof file_name, "%s/model.safetensors", path);
    layout("our own", file_name);
    published("small");
    published("window");
    shares("gpt-oss-20b");
    shares("gpt-oss-120b");
    unlink(file_name);
    snprintf(file_name, sizeof file_name, "%s/config.json", path);
    unlink(file_name);
    rmdir(path);
    rmdir(folder);
    return tap_done();
}
