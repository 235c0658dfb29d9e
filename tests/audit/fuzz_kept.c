// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// libFuzzer: bytes as a list of traces, a list of prompts, a run and a result that --out kept, the
// index of a trace, a shard, and the variables of a launcher.
#include "audit/command/kept.h"
#include "model/bytes.h"
#include "model/checkpoint.h"
#include "model/safetensors.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static volatile size_t kept; // so that no read is optimised away

static void read_list(input_kind kind, const uint8_t *bytes, size_t length) {
    input_list list = {0, 0, NULL};
    inputs_add_lines(&list, kind, "fuzz", bytes, length);
    for (size_t i = 0; i < list.n; i++) {
        const command_input *input = &list.at[i];
        if ((input->said == NULL) == (input->problem == NULL)) abort();
        kept += strlen(input->name) + strlen(input->said != NULL ? input->said : input->problem);
    }
    inputs_free(&list);
}

static void read_kept(const uint8_t *bytes, size_t length) {
    sinkproof_error error;
    json_t *run = kept_parse_run(bytes, length, "fuzz", &error);
    json_t *result = kept_parse(bytes, length, "fuzz", &error);
    if (run != NULL)
        kept += kept_same_unit(json_array_get(json_object_get(run, "units"), 0),
                               json_object_get(result, "unit"));
    json_decref(run);
    json_decref(result);
}

// An index is a file; its parts are not there.
static void read_index(const uint8_t *bytes, size_t length) {
    static char path[] = "/tmp/sinkproof-fuzz-XXXXXX.index.json";
    static int descriptor = -1;
    sinkproof_error error;
    char **names;
    size_t n;
    if (descriptor < 0) descriptor = mkstemps(path, (int)strlen(".index.json"));
    if (descriptor < 0 || ftruncate(descriptor, 0) != 0 ||
        pwrite(descriptor, bytes, length, 0) != (ssize_t)length)
        abort();
    if (!sinkproof_safetensors_names(path, &names, &n, &error)) return;
    for (size_t i = 0; i < n; i++) kept += strlen(names[i]);
    sinkproof_safetensors_free_names(names, n);
}

static char *told; // what every variable of a launcher is

static char *tell(const char *name) {
    return strstr(name, "STEP") != NULL && strstr(name, "NUM") == NULL ? NULL : told;
}

static void read_shard(const uint8_t *bytes, size_t length) {
    sinkproof_error error;
    work_shard shard;
    told = strndup((const char *)bytes, length < 64 ? length : 64);
    if (told == NULL) abort();
    if (shard_parse(told, &shard, &error) && shard.at >= shard.of) abort();
    if (shard_of_environment(tell, &shard, &error) && shard.at >= shard.of) abort();
    free(told);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    read_list(INPUT_TRACE, bytes, length);
    read_list(INPUT_PROMPT, bytes, length);
    read_kept(bytes, length);
    read_index(bytes, length);
    read_shard(bytes, length);
    return 0;
}
