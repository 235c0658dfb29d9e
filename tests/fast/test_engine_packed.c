// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Packed weights in a file: written once, mapped afterwards, the same bits; another model's file, a
// cut one, a longer one or a stranger's is refused with a sentence, and a failed write leaves
// nothing.
#include "fast/engine/engine.h"
#include "fast/engine/packed_file.h"
#include "tests/shared/opened.h"
#include "tests/shared/tap.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N = 20 };

static char folder[] = "/tmp/sinkproof-packed-XXXXXX", path[128];

// The last token's logits, with weights kept in `packed`; NULL and a sentence on failure.
static float *logits_of(const sinkproof_model *model, const char *packed, sinkproof_error *error) {
    sinkproof_policy policy;
    sinkproof_policy_known("f32", &policy);
    sinkproof_engine_options options = {.threads = 2, .packed = packed};
    sinkproof_engine *engine;
    int32_t tokens[N];
    for (int i = 0; i < N; i++) tokens[i] = 7 * i % 200;
    if (!sinkproof_engine_new(model, &policy, &options, &engine, error)) return NULL;
    sinkproof_sequence *sequence = sinkproof_sequence_new(engine, N, error);
    float *logits = malloc(sinkproof_model_config(model)->vocab * sizeof *logits);
    sinkproof_part part = {sequence, N, tokens, logits, false};
    if (!sinkproof_engine_forward(engine, 1, &part, NULL, error)) exit(1);
    sinkproof_sequence_free(sequence);
    sinkproof_engine_free(engine);
    return logits;
}

static bool same(const sinkproof_model *model, const float *a, const float *b) {
    return a != NULL && b != NULL &&
           memcmp(a, b, sinkproof_model_config(model)->vocab * sizeof *a) == 0;
}

static size_t files_in_folder(void) {
    size_t n = 0;
    DIR *list = opendir(folder);
    for (struct dirent *e; (e = readdir(list)) != NULL;) n += e->d_name[0] != '.';
    closedir(list);
    return n;
}

static void refused(const sinkproof_model *model, const char *what, const char *sentence) {
    sinkproof_error error = {{0}};
    float *logits = logits_of(model, path, &error);
    ok(logits == NULL && strstr(error.text, sentence) != NULL && strstr(error.text, path) != NULL,
       "%s: %s", what, error.text);
    free(logits);
}

static void change(off_t at, char to) {
    FILE *file = fopen(path, "r+b");
    fseek(file, at, SEEK_SET);
    fputc(to, file);
    fclose(file);
}

int main(void) {
    sinkproof_error error = {{0}};
    sinkproof_model *tiny = open_model("synthetic:tiny"),
                    *other = open_model("synthetic:tiny,seed=9");
    if (mkdtemp(folder) == NULL) return 1;
    snprintf(path, sizeof path, "%s/weights", folder);
    float *plain = logits_of(tiny, NULL, &error), *first = logits_of(tiny, path, &error);
    ok(same(tiny, plain, first) && files_in_folder() == 1, "written: one file, the same logits");
    struct stat before, after;
    stat(path, &before);
    float *second = logits_of(tiny, path, &error);
    stat(path, &after);
    ok(same(tiny, plain, second) && before.st_ino == after.st_ino, "mapped: the same logits");
    change(before.st_size / 2, 0x55); // somewhere in the weights: it is the file that is read
    float *third = logits_of(tiny, path, &error);
    ok(third != NULL && !same(tiny, plain, third), "a changed weight shows");
    refused(other, "another model's", "another model");
    ok(truncate(path, before.st_size - 1) == 0, "cut by a byte");
    refused(tiny, "a cut file", "expected");
    ok(truncate(path, before.st_size + 1) == 0, "longer by a byte");
    refused(tiny, "a longer file", "expected");
    change(0, 'X');
    refused(tiny, "a stranger's file", "no packed weights");
    ok(truncate(path, 3) == 0, "cut in the header");
    refused(tiny, "three bytes", "no packed weights");
    unlink(path);
    snprintf(path, sizeof path, "%s/none/weights", folder);
    refused(tiny, "a folder that is not there", "cannot create");
    ok(files_in_folder() == 0, "nothing is left behind");
    rmdir(folder);
    free(plain);
    free(first);
    free(second);
    free(third);
    sinkproof_model_close(tiny);
    sinkproof_model_close(other);
    return tap_done();
}
