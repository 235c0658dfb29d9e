// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The memory of a mapped tensor is given back, and its numbers are read again. Memory of another
// place is kept.
#include "model/safetensors.h"
#include "tests/shared/tap.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MIB = 1 << 20, SIZE = 24 * MIB };

// Bytes of files that the process has in memory.
static size_t resident(void) {
    unsigned long whole, there, shared;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%lu %lu %lu", &whole, &there, &shared) != 3) abort();
    fclose(file);
    return shared * (size_t)sysconf(_SC_PAGESIZE);
}

static size_t add_up(const sinkproof_tensor *tensor) {
    size_t sum = 0;
    for (size_t i = 0; i < tensor->bytes; i += 512) sum += tensor->data[i];
    return sum;
}

static void write_file(const char *path) {
    sinkproof_error error;
    size_t shape[1] = {SIZE};
    uint8_t *bytes = malloc(SIZE);
    if (bytes == NULL) abort();
    memset(bytes, 3, SIZE);
    sinkproof_safetensors_writer *writer = sinkproof_safetensors_writer_new();
    sinkproof_safetensors_writer_declare(writer, "a", SINKPROOF_DTYPE_U8, 1, shape);
    if (!sinkproof_safetensors_writer_begin(writer, path, &error) ||
        !sinkproof_safetensors_writer_bytes(writer, bytes, SIZE, &error) ||
        !sinkproof_safetensors_writer_finish(writer, &error))
        abort();
    sinkproof_safetensors_writer_free(writer);
    free(bytes);
}

int main(void) {
    sinkproof_error error;
    sinkproof_safetensors *file;
    char path[] = "/tmp/sinkproof-forget-XXXXXX";
    int descriptor = mkstemp(path);
    if (descriptor < 0) abort();
    close(descriptor);
    write_file(path);
    if (!sinkproof_safetensors_open(path, &file, &error)) abort();
    const sinkproof_tensor *tensor = sinkproof_safetensors_find(file, "a");
    size_t before = resident(), sum = add_up(tensor), read = resident();
    sinkproof_safetensors_forget(file, tensor);
    size_t after = resident(), again = add_up(tensor);
    ok(read >= before + SIZE / 2 && after + SIZE / 2 <= read,
       "forget: %zu MiB of files in memory before, %zu when read, %zu when forgotten", before / MIB,
       read / MIB, after / MIB);
    // a tensor of another place, as stands in the view of a trace
    const size_t other = MIB;
    uint8_t *made = malloc(other);
    if (made == NULL) return 1;
    memset(made, 7, other);
    sinkproof_tensor elsewhere = *tensor;
    elsewhere.data = made, elsewhere.bytes = other;
    sinkproof_safetensors_forget(file, &elsewhere);
    size_t kept = 0;
    for (size_t i = 0; i < other; i++) kept += made[i] == 7;
    ok(kept == other, "forget: %zu of %zu bytes that are not the file's are kept", kept, other);
    free(made);
    ok(sum == again && sum == (size_t)SIZE / 512 * 3, "forget: the numbers are read again");
    sinkproof_safetensors_close(file);
    unlink(path);
    return tap_done();
}
