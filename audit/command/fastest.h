// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The instruction sets with which a command runs: those that SINKPROOF_ISA or --isa names, or those
// of mode "lanes" that were measured to be the fastest on this processor. The measurements are
// stored in a file in the user's cache directory, one for each processor and version of the
// kernels, and read the next time. A file that is unreadable, unwritable or invalid is silently
// ignored, and the sets are measured again.
#ifndef SINKPROOF_FASTEST_H
#define SINKPROOF_FASTEST_H

#include "fast/kernels/choose.h"
#include "ref/policy.h"

typedef enum fastest_source {
    FASTEST_ASKED,    // named by the user: nothing is measured
    FASTEST_MEASURED, // measured in this run
    FASTEST_KEPT,     // read from the file
} fastest_source;

enum { FASTEST_PATH = 4096 };

typedef struct fastest_sets {
    const sinkproof_kernels *of_one, *of_many; // for passes of one token, and of more
    fastest_source source;
    sinkproof_isa_times times; // zeros if a set was requested
    char file[FASTEST_PATH];   // the file that keeps them; "": none
} fastest_sets;

// Chooses `name`, or SINKPROOF_ISA if it is NULL, or the fastest. Errors: a name that is unknown or
// does not run here (see sinkproof_isa_choose); no memory.
bool fastest_choose_set(const char *name, fastest_sets *fastest, sinkproof_error *error);

// One sentence for each measured set of another numeric mode that supports the policy, on its
// speedup; "" if there is none. `text` has room for `size` bytes.
const char *fastest_tell_others(const sinkproof_kernels *const *tables, const fastest_sets *fastest,
                                const sinkproof_policy *policy, char *text, size_t size);
// Prints them on standard error after "sinkproof COMMAND: ".
void fastest_say_chosen(const char *command, const fastest_sets *fastest,
                        const sinkproof_policy *policy);

// The path of the file: in SINKPROOF_CACHE (a directory; empty: no file), or in sinkproof/ of
// XDG_CACHE_HOME or of ~/.cache. Returns false if there is no place for it.
bool fastest_file_path(const char *key, char *path, size_t size);

// Reads the file; returns whether it holds times of exactly the tables that run, under this key.
bool fastest_read_kept(const char *path, const char *key, const sinkproof_kernels *const *tables,
                       sinkproof_isa_times *times);
// Writes the file completely or not at all; returns false if it could not.
bool fastest_write_kept(const char *path, const char *key, const sinkproof_kernels *const *tables,
                        const sinkproof_isa_times *times);

#endif
