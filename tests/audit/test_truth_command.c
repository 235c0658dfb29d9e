// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof truth` from its command line: exit codes, the JSON that it writes, the trace that it
// writes, and that it leaves nothing behind when it fails.
#include "audit/command/command.h"
#include "audit/trace/trace.h"
#include "tests/shared/tap.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/sinkproof-truth-XXXXXX";

// Runs the command in a child (argp may exit) with its output thrown away; its exit code.
static int run(const char *const *words) {
    char name[] = "sinkproof truth", *argv[16] = {name};
    int argc = 1;
    for (; words[argc - 1] != NULL; argc++) argv[argc] = (char *)(uintptr_t)words[argc - 1];
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int nothing = open("/dev/null", O_WRONLY);
        dup2(nothing, 1);
        dup2(nothing, 2);
        exit(cmd_truth(argc, argv));
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static const char *inside(const char *name, char path[96]) {
    snprintf(path, 96, "%s/%s", folder, name);
    return path;
}

static void exits(void) {
    static const struct {
        const char *words[8];
        int code;
        const char *what;
    } table[] = {
        {{"synthetic:tiny", "--tokens", "1,2,3"}, 0, "certified"},
        {{"synthetic:tiny", "--tokens", "1,2,3", "--bits", "32"}, 4, "too few bits: ambiguous"},
        {{"synthetic:tiny"}, 2, "no tokens"},
        {{"--tokens", "1"}, 2, "no model"},
        {{"synthetic:tiny", "--tokens", "1", "--bits", "x"}, 2, "bits that are no number"},
        {{"synthetic:tiny", "--tokens", "1", "--local", "t"}, 2, "tokens beside a trace"},
        {{"synthetic:tiny", "--tokens", "99999"}, 3, "a token outside the vocabulary"},
        {{"/nonexistent", "--tokens", "1"}, 3, "a model that is missing"},
        {{"synthetic:tiny", "--local", "/nonexistent"}, 3, "a trace that is missing"},
        {{"synthetic:tiny", "--tokens", "1", "--trace", "/nonexistent/x"}, 3, "no place to write"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        int code = run(table[i].words);
        ok(code == table[i].code, "command.truth %s: exit=%d expected=%d", table[i].what, code,
           table[i].code);
    }
}

// Of a model without routers nothing is said of routing.
static void json(const char *model, size_t routings) {
    char path[96];
    const char *words[] = {model, "--tokens", "5,6,7,8", "--json", inside("j", path), NULL};
    int code = run(words);
    json_error_t problem;
    json_t *root = json_load_file(path, 0, &problem);
    json_t *results = json_object_get(root, "results");
    double worst = INFINITY;
    size_t labelled = 0, routed = 0, count = json_array_size(results);
    for (size_t i = 0; i < count; i++) {
        json_t *entry = json_array_get(results, i);
        const char *id = json_string_value(json_object_get(entry, "id"));
        routed += id != NULL && strcmp(id, "router.topk") == 0;
        json_t *relative = json_object_get(entry, "worst_relative_radius_log2");
        labelled += id != NULL && json_object_get(entry, "ok") != NULL;
        if (json_is_number(relative)) worst = json_number_value(relative);
    }
    ok(code == 0 && count > 0 && labelled == count && routed == routings && worst < -100,
       "command.truth json of %s: entries=%zu, worst relative radius of a logit 2^%.1f "
       "bound=2^-100",
       model, count, worst);
    json_decref(root);
    unlink(path);
}

// The written balls of a coarse and a finer run overlap at each logit.
static void trace(void) {
    char coarse_path[96], fine_path[96];
    const char *coarse[] = {
        "synthetic:tiny",         "--tokens", "5,6,7", "--bits", "128", "--trace",
        inside("a", coarse_path), NULL};
    const char *fine[] = {"synthetic:tiny",       "--tokens", "5,6,7", "--trace",
                          inside("b", fine_path), NULL};
    int codes = run(coarse) + run(fine);
    sinkproof_error error = {""};
    sinkproof_safetensors *a = NULL, *b = NULL;
    bool opened = sinkproof_safetensors_open(coarse_path, &a, &error) &&
                  sinkproof_safetensors_open(fine_path, &b, &error);
    const sinkproof_tensor *x = NULL, *y = NULL, *radius = NULL, *fine_radius = NULL;
    if (opened) {
        x = sinkproof_safetensors_find(a, "F2");
        radius = sinkproof_safetensors_find(a, "F2.radius");
        y = sinkproof_safetensors_find(b, "F2");
        fine_radius = sinkproof_safetensors_find(b, "F2.radius");
    }
    size_t outside = 0, n = x != NULL ? sinkproof_tensor_elements(x) : 0;
    for (size_t i = 0; i < n && radius != NULL && y != NULL && fine_radius != NULL; i++) {
        double off = fabs(sinkproof_tensor_value(x, i) - sinkproof_tensor_value(y, i));
        double allowed = sinkproof_tensor_value(radius, i) + sinkproof_tensor_value(fine_radius, i);
        outside += !(off <= allowed);
    }
    ok(codes == 0 && n > 0 && radius != NULL && fine_radius != NULL && outside == 0,
       "command.truth trace: logits=%zu outside=%zu bound=0 %s", n, outside, error.text);
    if (a != NULL) sinkproof_safetensors_close(a);
    if (b != NULL) sinkproof_safetensors_close(b);
    unlink(coarse_path);
    unlink(fine_path);
}

static void local(void) {
    struct stat present;
    if (stat("tests/vectors/openai-torch/small", &present) != 0) {
        skip("command.truth tests/vectors/openai-torch/small is not here");
        return;
    }
    const char *words[] = {"tests/vectors/openai-torch/small", "--local",
                           "tests/vectors/openai-torch/small/trace-f32.safetensors", NULL};
    ok(run(words) == 0, "command.truth --local on the published float32 trace: exit 0");
    const char *route[] = {"tests/vectors/openai-torch/small",
                           "--tokens",
                           "1,2",
                           "--route",
                           "tests/vectors/openai-torch/small/trace-f32.safetensors",
                           NULL};
    ok(run(route) == 3, "command.truth --route of another length: exit 3");
}

int main(void) {
    if (mkdtemp(folder) == NULL) return 1;
    exits();
    json("synthetic:tiny", 1);
    json("synthetic:tiny-gpt2", 0);
    trace();
    local();
    ok(rmdir(folder) == 0, "command.truth leaves nothing else behind");
    return tap_done();
}
