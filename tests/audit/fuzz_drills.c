// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// libFuzzer: bytes, cut in two, as a manifest that --emit wrote and as the outputs of a call. Every
// case that is read can be printed and read again; outputs of small cases are read whole.
#include "audit/plugin/drill.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static volatile double kept; // so that no read is optimised away
static char folder[] = "/tmp/sinkproof-fuzz-XXXXXX", manifest[sizeof folder + 32],
            outputs[sizeof folder + 32];

static void forget(void) {
    unlink(manifest);
    unlink(outputs);
    rmdir(folder);
}

static void make_folder(void) {
    if (manifest[0] != '\0') return;
    if (mkdtemp(folder) == NULL) abort();
    snprintf(manifest, sizeof manifest, "%s/manifest.json", folder);
    snprintf(outputs, sizeof outputs, "%s/00000.out.safetensors", folder);
    atexit(forget);
}

static void write_file(const char *path, const uint8_t *bytes, size_t length) {
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, length, file) != length || fclose(file) != 0) abort();
}

static void read_outputs(stage_case c, const sinkproof_config *config) {
    sinkproof_policy policy;
    sinkproof_error error = {""};
    lse_kinds lse;
    call_arrays a;
    bool there;
    c.number = 0;
    if (c.n > 64 || c.heads > 16 || c.dim > 64 || c.hidden > 64 || c.inter > 64 || c.experts > 8 ||
        c.vocab > 64 || case_is_too_large(&c, config) || !sinkproof_policy_known("f32", &policy) ||
        !arrays_make(&c, config, &policy, &a, &error))
        return;
    if (case_read_outputs(folder, &c, &a, &there, &lse, &error))
        for (size_t t = 0; there && t < case_outputs(&c); t++)
            kept = a.at[c.stage->to[t]][array_count(&a, c.stage->to[t]) - 1];
    else if (error.text[0] == '\0')
        abort();
    arrays_free(&a);
}

// The first two bytes say where the outputs begin.
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    const stage_case base = {.n = 1, .heads = 1, .kv = 1, .dim = 2};
    char policy[SINKPROOF_POLICY_NAME], model[1024], text[CASE_TEXT], again[CASE_TEXT];
    sinkproof_error error = {""};
    sinkproof_config config;
    case_plan plan = {0, 0, NULL};
    make_folder();
    if (length < 2) return 0;
    size_t cut = 2 + (bytes[0] | (size_t)bytes[1] << 8);
    if (cut > length) cut = length;
    write_file(manifest, bytes + 2, cut - 2);
    write_file(outputs, bytes + cut, length - cut);
    if (!sinkproof_config_named("tiny", &config)) abort();
    if (!cases_read_manifest(folder, &base, &plan, policy, model, &error) && error.text[0] == '\0')
        abort();
    for (size_t i = 0; i < plan.count; i++) {
        stage_case c;
        case_print(&plan.cases[i], text);
        if (!case_parse(text, &base, &c, &error)) abort();
        case_print(&c, again);
        if (strcmp(text, again) != 0) abort();
    }
    if (plan.count > 0) read_outputs(plan.cases[0], &config);
    free(plan.cases);
    return 0;
}
