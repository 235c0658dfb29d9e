// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The instruction sets with which a command runs: those that SINKPROOF_ISA or --isa names, or of
// mode "lanes" those that were measured to be the fastest on this processor. What was measured is
// kept in a file of the user's cache directory, one for each processor and version of the kernels,
// and read the next time. A file that cannot be read, or written, or that is not what it should be
// is as good as none: it is measured again, and nothing is said.
#ifndef SINKPROOF_FASTEST_H
#define SINKPROOF_FASTEST_H

#include "fast/kernels/choose.h"
#include "ref/policy.h"

typedef enum sinkproof_fastest_source {
    SINKPROOF_FASTEST_ASKED,    // named: nothing is measured
    SINKPROOF_FASTEST_MEASURED, // just now
    SINKPROOF_FASTEST_KEPT,     // read from the file
} sinkproof_fastest_source;

enum { SINKPROOF_FASTEST_PATH = 4096 };

typedef struct sinkproof_fastest {
    const sinkproof_kernels *of_one, *of_many; // for passes of one token, and of more
    sinkproof_fastest_source source;
    sinkproof_isa_times times;         // zeros where a set was asked for
    char file[SINKPROOF_FASTEST_PATH]; // where it is kept; "": nowhere
} sinkproof_fastest;

// `name`, or SINKPROOF_ISA where it is NULL, or the fastest. Error: a name that is unknown or does
// not run here, as sinkproof_isa_choose has it; no memory.
bool sinkproof_fastest_choose(const char *name, sinkproof_fastest *fastest, sinkproof_error *error);

// One sentence for each measured set of another numeric mode that serves the policy: what asking
// for it would bring. "" where there is none. `text` has room for `size` bytes.
const char *sinkproof_fastest_others(const sinkproof_kernels *const *tables,
                                     const sinkproof_fastest *fastest,
                                     const sinkproof_policy *policy, char *text, size_t size);
// The same on standard error, behind "sinkproof COMMAND: ".
void sinkproof_fastest_say(const char *command, const sinkproof_fastest *fastest,
                           const sinkproof_policy *policy);

// The file: SINKPROOF_CACHE (a directory; empty: nothing is kept), or sinkproof/ in XDG_CACHE_HOME,
// or in ~/.cache. False: nowhere.
bool sinkproof_fastest_file(const char *key, char *path, size_t size);

// Whether the file holds times of exactly the tables that run, under this key.
bool sinkproof_fastest_read(const char *path, const char *key,
                            const sinkproof_kernels *const *tables, sinkproof_isa_times *times);
// Whole or not at all; false when it could not be written.
bool sinkproof_fastest_write(const char *path, const char *key,
                             const sinkproof_kernels *const *tables,
                             const sinkproof_isa_times *times);

#endif
