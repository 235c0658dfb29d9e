// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The process in which a plug-in runs. It shares one memory region with this program: the
// description of a call, its inputs, its outputs, and a painted guard after each. A keeper process,
// forked before anything else, forks the worker as often as needed and reports how it ended.
#include "audit/plugin/drill.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ARRAYS = 12, GUARD = 256, STAGES = 64, NAMED = 64 };
// pages are allocated only when written
static const size_t region_bytes = 2 * (size_t)CALL_BYTES;

// An array of a call, and its offset in the region.
typedef struct wire_array {
    char name[24];
    size_t rank, shape[SINKPROOF_RANK], offset, count;
} wire_array;

// The header of the region.
typedef struct wire {
    pid_t worker;
    char refusal[512], name[128]; // the error of loading, or the plug-in's name
    char policy[SINKPROOF_POLICY_NAME];
    lse_kinds lse;
    size_t n_stages;
    char stages[STAGES][NAMED];
    char stage[NAMED]; // of the call
    sinkproof_drill drill;
    wire_array arrays[ARRAYS]; // inputs, then outputs
    int result;
} wire;

struct plugin_worker {
    char *path;
    double seconds;
    bool hung; // the last worker was killed
    wire *region;
    pid_t keeper;
    int ask, answer, fate, again; // to the worker, from it; from the keeper, to it
};

// ---- in the worker ---------------------------------------------------------------------------

static const sinkproof_plugin *refuse_plugin(wire *w, const char *path, const char *why) {
    snprintf(w->refusal, sizeof w->refusal, "%.200s: %.280s", path, why);
    return NULL;
}

static const sinkproof_plugin *load_plugin(wire *w, const char *path) {
    if (strncmp(path, "builtin:", 8) == 0) {
        const sinkproof_plugin *own = plugin_builtin(path + 8);
        return own != NULL
                   ? own
                   : refuse_plugin(w, path, "expected builtin:fast, and a set that runs here");
    }
    char file[4096];
    snprintf(file, sizeof file, "%s%s", strchr(path, '/') == NULL ? "./" : "", path);
    void *object = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL) return refuse_plugin(w, path, dlerror());
    union { // the POSIX idiom for a function from dlsym
        void *object;
        sinkproof_plugin_getter *function;
    } symbol = {dlsym(object, "sinkproof_plugin_get")};
    if (symbol.object == NULL)
        return refuse_plugin(w, path, "expected a symbol sinkproof_plugin_get, found none");
    const sinkproof_plugin *plugin = symbol.function();
    return plugin != NULL ? plugin
                          : refuse_plugin(w, path, "the plug-in says that it cannot run here");
}

// Reads the plug-in's struct up to its size.
static bool introduce_plugin(wire *w, const char *path, const sinkproof_plugin *given,
                             sinkproof_plugin *plugin) {
    size_t size = given->size;
    if (size < offsetof(sinkproof_plugin, policy))
        return refuse_plugin(w, path, "expected sinkproof_plugin with its size") != NULL;
    *plugin = (sinkproof_plugin){.size = 0};
    memcpy(plugin, given, size < sizeof *plugin ? size : sizeof *plugin);
    snprintf(w->name, sizeof w->name, "%s", plugin->name != NULL ? plugin->name : path);
    const char *policy = plugin->policy != NULL ? plugin->policy : "f32";
    if (strlen(policy) >= sizeof w->policy)
        return refuse_plugin(w, path, "its policy has more characters than are read") != NULL;
    strcpy(w->policy, policy);
    sinkproof_error said;
    if (!lse_parse(plugin->lse, &w->lse, &said)) return refuse_plugin(w, path, said.text) != NULL;
    if (plugin->n_stages == 0 || plugin->n_stages > STAGES || plugin->stages == NULL)
        return refuse_plugin(w, path, "expected a list of 1 to 64 stages") != NULL;
    w->n_stages = plugin->n_stages;
    for (size_t i = 0; i < plugin->n_stages; i++) {
        const char *name = plugin->stages[i].stage;
        char sentence[400], known[256];
        if (name != NULL && stage_named(name, strlen(name)) != NULL &&
            plugin->stages[i].run != NULL) {
            snprintf(w->stages[i], NAMED, "%s", name);
            continue;
        }
        plugin_stage_names(known, sizeof known);
        snprintf(sentence, sizeof sentence, "stage '%.40s' is not one of %s, or has no function",
                 name != NULL ? name : "NULL", known);
        return refuse_plugin(w, path, sentence) != NULL;
    }
    return true;
}

static void run_call(wire *w, const sinkproof_plugin *plugin) {
    sinkproof_array arrays[ARRAYS];
    sinkproof_drill drill = w->drill;
    for (size_t i = 0; i < drill.n_inputs + drill.n_outputs; i++) {
        const wire_array *from = &w->arrays[i];
        arrays[i] = (sinkproof_array){.name = from->name, .rank = from->rank};
        memcpy(arrays[i].shape, from->shape, sizeof arrays[i].shape);
        arrays[i].values = (float *)(void *)((char *)w + from->offset);
    }
    drill.inputs = arrays;
    drill.outputs = arrays + drill.n_inputs;
    drill.stage = w->stage;
    drill.k_largest = drill.v_largest = NULL; // the other process's
    w->result = -1;
    for (size_t i = 0; i < plugin->n_stages; i++)
        if (strcmp(plugin->stages[i].stage, w->stage) == 0)
            w->result = plugin->stages[i].run(plugin->context, &drill);
}

// Reports that it is ready, and answers calls until the pipe is closed.
static void worker_serve_calls(wire *w, const char *path, int ask, int answer) {
    sinkproof_plugin plugin;
    char byte = 'r';
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(STDERR_FILENO, STDOUT_FILENO); // keeps a plug-in's output out of the report
    w->worker = getpid();
    const sinkproof_plugin *given = load_plugin(w, path);
    bool good = given != NULL && introduce_plugin(w, path, given, &plugin);
    if (write(answer, &byte, 1) != 1 || !good) _exit(0);
    while (read(ask, &byte, 1) == 1) {
        run_call(w, &plugin);
        if (write(answer, &byte, 1) != 1) break;
    }
    _exit(0);
}

// ---- the keeper ------------------------------------------------------------------------------

static void keeper_watch_worker(wire *w, const char *path, int ask, int answer, int fate,
                                int again) {
    char byte;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_DFL);
    do {
        int status = 0;
        pid_t worker = fork();
        if (worker == 0) {
            close(fate);
            close(again);
            worker_serve_calls(w, path, ask, answer);
        }
        if (worker > 0) waitpid(worker, &status, 0);
        if (write(fate, &status, sizeof status) != (ssize_t)sizeof status) break;
    } while (read(again, &byte, 1) == 1);
    _exit(0);
}

// ---- on our side -----------------------------------------------------------------------------

static double monotonic_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Waits for an answer. Returns false if the worker has ended or was killed; *error says how.
static bool wait_for_answer(plugin_worker *k, sinkproof_error *error) {
    struct pollfd two[2] = {{k->answer, POLLIN, 0}, {k->fate, POLLIN, 0}};
    double until = monotonic_seconds() + k->seconds;
    k->hung = false;
    int status = 0;
    char byte;
    for (;;) {
        double left = until - monotonic_seconds();
        int ready = poll(two, 2, left > 0 ? (int)(1000 * left) + 1 : 0);
        if (ready > 0 && (two[0].revents & POLLIN) != 0) return read(k->answer, &byte, 1) == 1;
        if (ready > 0) break; // the keeper reports
        if (ready < 0 && errno == EINTR) continue;
        if (!k->hung) kill(k->region->worker, SIGKILL);
        k->hung = true;
        until = monotonic_seconds() + 10;
    }
    if (read(k->fate, &status, sizeof status) != (ssize_t)sizeof status)
        return sinkproof_fail(error, "its process is gone");
    if (k->hung) return sinkproof_fail(error, "no answer in %g seconds", k->seconds);
    if (WIFSIGNALED(status))
        return sinkproof_fail(error, "it crashed (%s)", strsignal(WTERMSIG(status)));
    return sinkproof_fail(error, "it ended the process (exit %d)", WEXITSTATUS(status));
}

static void drain_descriptor(int descriptor) {
    struct pollfd one = {descriptor, POLLIN, 0};
    char byte;
    while (poll(&one, 1, 0) > 0 && (one.revents & POLLIN) != 0)
        if (read(descriptor, &byte, 1) != 1) return;
}

// Starts a new process in place of one that has ended.
static bool worker_revive(plugin_worker *k, sinkproof_error *error) {
    char byte = 'a';
    drain_descriptor(k->answer);
    if (write(k->again, &byte, 1) != 1)
        return sinkproof_fail(error, "%s: its keeper is gone", k->path);
    return wait_for_answer(k, error);
}

static bool worker_start(plugin_worker *k, sinkproof_error *error) {
    int ask[2], answer[2], fate[2], again[2];
    if (pipe(ask) != 0 || pipe(answer) != 0 || pipe(fate) != 0 || pipe(again) != 0)
        return sinkproof_fail(error, "no pipe to a process of its own: %s", strerror(errno));
    k->keeper = fork();
    if (k->keeper == 0) {
        const int ours[] = {ask[1], answer[0], fate[0], again[1]};
        for (size_t i = 0; i < 4; i++) close(ours[i]);
        keeper_watch_worker(k->region, k->path, ask[0], answer[1], fate[1], again[0]);
    }
    // The keeper holds the other ends of ask and answer, so that writing to a dead worker raises no
    // signal.
    const int theirs[] = {ask[0], answer[1], fate[1], again[0]};
    for (size_t i = 0; i < 4; i++) close(theirs[i]);
    k->ask = ask[1];
    k->answer = answer[0];
    k->fate = fate[0];
    k->again = again[1];
    if (k->keeper < 0)
        return sinkproof_fail(error, "no process for a plug-in: %s", strerror(errno));
    sinkproof_error said;
    if (!wait_for_answer(k, &said))
        return sinkproof_fail(error, "%.300s: when it was loaded: %.500s", k->path, said.text);
    return k->region->refusal[0] == '\0' || sinkproof_fail(error, "%s", k->region->refusal);
}

bool worker_new(const char *path, double seconds, plugin_worker **worker, sinkproof_error *error) {
    plugin_worker *k = *worker = calloc(1, sizeof *k);
    if (k == NULL) return sinkproof_fail(error, "no memory for a plug-in");
    k->ask = k->answer = k->fate = k->again = -1;
    k->seconds = seconds;
    k->path = strdup(path);
    void *region = mmap(NULL, region_bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    k->region = region == MAP_FAILED ? NULL : region;
    bool good = k->path != NULL && k->region != NULL;
    if (!good) sinkproof_fail(error, "no memory to share with a plug-in");
    good = good && worker_start(k, error);
    if (good) return true;
    worker_free(k);
    *worker = NULL;
    return false;
}

void worker_free(plugin_worker *k) {
    if (k == NULL) return;
    const int ends[] = {k->ask, k->answer, k->fate, k->again};
    for (size_t i = 0; i < 4; i++)
        if (ends[i] >= 0) close(ends[i]);
    if (k->keeper > 0) {
        kill(k->keeper, SIGKILL); // its worker dies with it
        waitpid(k->keeper, NULL, 0);
    }
    if (k->region != NULL) munmap(k->region, region_bytes);
    free(k->path);
    free(k);
}

static bool worker_has_stage(const void *context, const stage_row *stage) {
    const plugin_worker *worker = context;
    for (size_t i = 0; i < worker->region->n_stages; i++)
        if (strcmp(worker->region->stages[i], stage->name) == 0) return true;
    return false;
}

// ---- a call ----------------------------------------------------------------------------------

// a guard is intact
static bool guard_is_intact(const wire *w, size_t offset, size_t from, size_t count) {
    const uint32_t *at = (const uint32_t *)(const void *)((const char *)w + offset);
    for (size_t i = from; i < from + count; i++)
        if (at[i] != output_paint_word(i)) return false;
    return true;
}

// Writes the description of a call and its arrays to the region, with a guard after each.
static bool send_arrays(wire *w, const sinkproof_drill *drill, sinkproof_error *error) {
    size_t end = (sizeof *w + GUARD) / 64 * 64 + 64;
    w->drill = *drill;
    snprintf(w->stage, sizeof w->stage, "%s", drill->stage);
    for (size_t i = 0; i < drill->n_inputs + drill->n_outputs; i++) {
        bool input = i < drill->n_inputs;
        const sinkproof_array *a = input ? &drill->inputs[i] : &drill->outputs[i - drill->n_inputs];
        wire_array *to = &w->arrays[i];
        *to = (wire_array){.rank = a->rank, .offset = end, .count = 1};
        memcpy(to->shape, a->shape, sizeof to->shape);
        snprintf(to->name, sizeof to->name, "%s", a->name);
        for (size_t d = 0; d < a->rank; d++) to->count *= a->shape[d];
        if (to->count > (region_bytes - end) / sizeof(float) - 2 * GUARD)
            return sinkproof_fail(error, "%s: its arrays are too large for one call", drill->stage);
        if (input)
            memcpy((char *)w + end, a->values, to->count * sizeof(float));
        else
            output_paint((float *)(void *)((char *)w + end), to->count);
        end += to->count * sizeof(float);
        uint32_t *guard = (uint32_t *)(void *)((char *)w + end);
        for (size_t g = 0; g < GUARD; g++) guard[g] = output_paint_word(to->count + g);
        end = (end + GUARD * sizeof(float) + 63) / 64 * 64;
    }
    return true;
}

// Checks the guards and outputs. A crash after the result was written counts too: the next call
// finds it.
static call_end check_arrays(const wire *w, const sinkproof_drill *drill, sinkproof_error *error) {
    for (size_t i = 0; i < drill->n_inputs + drill->n_outputs; i++) {
        const wire_array *a = &w->arrays[i];
        const char *at = (const char *)w + a->offset;
        if (!guard_is_intact(w, a->offset, a->count, GUARD)) {
            sinkproof_fail(error, "it wrote beyond the end of %s", a->name);
            return CALL_FAILED;
        }
        if (i < drill->n_inputs &&
            memcmp(at, drill->inputs[i].values, a->count * sizeof(float)) != 0) {
            sinkproof_fail(error, "it wrote into its input %s", a->name);
            return CALL_FAILED;
        }
        if (i >= drill->n_inputs)
            memcpy(drill->outputs[i - drill->n_inputs].values, at, a->count * sizeof(float));
    }
    return CALL_DONE;
}

static call_end worker_call(void *context, const sinkproof_drill *drill, sinkproof_error *error) {
    plugin_worker *k = context;
    wire *w = k->region;
    char byte = 'c';
    sinkproof_error lost;
    if (!send_arrays(w, drill, error)) return CALL_ERROR;
    if (write(k->ask, &byte, 1) != 1) {
        sinkproof_fail(error, "%s: its process is gone", k->path);
        return CALL_ERROR;
    }
    if (!wait_for_answer(k, error)) {
        call_end end = k->hung ? CALL_HUNG : CALL_FAILED;
        return worker_revive(k, &lost) ? end : CALL_ERROR;
    }
    if (w->result == 1) return CALL_NOT_SERVED;
    if (w->result != 0) {
        sinkproof_fail(error, "it failed with %d", w->result);
        return CALL_FAILED;
    }
    return check_arrays(w, drill, error);
}

call_maker worker_maker(plugin_worker *worker) {
    return (call_maker){.name = worker->region->name,
                        .policy = worker->region->policy,
                        .lse = worker->region->lse,
                        .has_stage = worker_has_stage,
                        .call = worker_call,
                        .context = worker};
}
