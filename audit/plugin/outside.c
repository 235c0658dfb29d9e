// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A plug-in in a shared object, judged in a process of its own; not in libsinkproof, which starts
// no process.
#include "audit/plugin/drill.h"

static bool open_outside(const sinkproof_plugin_options *o, call_maker *maker,
                         sinkproof_error *error) {
    plugin_worker *worker;
    if (!worker_new(o->path, o->seconds, &worker, error)) return false; // before any thread starts
    *maker = worker_maker(worker);
    return true;
}

static void close_outside(call_maker *maker) {
    worker_free(maker->context);
}

bool sinkproof_judge_plugin(const sinkproof_plugin_options *options,
                            sinkproof_plugin_ruling *ruling, sinkproof_error *error) {
    static const call_opener opener = {open_outside, close_outside};
    return plugin_judge_through(&opener, options, ruling, error);
}
