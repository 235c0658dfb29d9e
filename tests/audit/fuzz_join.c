// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// libFuzzer: bytes, cut in two, as the traces of two ranks. What is joined is a trace that can be
// read as one file.
#include "audit/trace/join.h"
#include "model/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static char folder[] = "/tmp/sinkproof-fuzz-XXXXXX";
static char paths[3][sizeof folder + 16]; // of two ranks, and of what is joined

static void forget(void) {
    for (size_t i = 0; i < 3; i++) unlink(paths[i]);
    rmdir(folder);
}

static void make_folder(void) {
    if (paths[0][0] != '\0') return;
    if (mkdtemp(folder) == NULL) abort();
    for (size_t i = 0; i < 3; i++) snprintf(paths[i], sizeof paths[i], "%s/%zu", folder, i);
    atexit(forget);
}

static void write_file(const char *path, const uint8_t *bytes, size_t length) {
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, length, file) != length || fclose(file) != 0) abort();
}

// The first two bytes say where the second file begins; a cut behind the end: one file, one rank.
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    sinkproof_error error = {""};
    sinkproof_safetensors *file;
    joined_ranks joined;
    make_folder();
    if (length < 2) return 0;
    size_t cut = 2 + (bytes[0] | (size_t)bytes[1] << 8), count = cut < length ? 2 : 1;
    const char *given[] = {paths[0], paths[1]};
    write_file(paths[0], bytes + 2, (count == 2 ? cut : length) - 2);
    if (count == 2) write_file(paths[1], bytes + cut, length - cut);
    if (!sinkproof_trace_join(given, count, paths[2], &joined, &error)) {
        if (error.text[0] == '\0' || access(paths[2], F_OK) == 0) abort(); // refused, half-written
        return 0;
    }
    if (!sinkproof_safetensors_open(paths[2], &file, &error)) abort();
    sinkproof_safetensors_close(file);
    unlink(paths[2]);
    return 0;
}
