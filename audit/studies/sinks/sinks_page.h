// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What `sinkproof sinks MODEL` writes for eyes: one HTML file, or a folder of SVG files. Neither
// has a script or asks for anything; both follow the reader's setting of light and dark.
#ifndef SINKPROOF_SINKS_PAGE_H
#define SINKPROOF_SINKS_PAGE_H

#include "audit/studies/sinks/part.h"

// What was run, then what each of n parts writes.
bool sinkproof_sinks_page(const char *path, const sinkproof_sinks_job *job, size_t n,
                          const sinkproof_sinks_part *const *parts, void *const *states,
                          sinkproof_error *error);
// DIRECTORY/NAME.svg for each figure of these parts; with several inputs NAME begins with the
// number of the input. The directory is made; no file gets its name before all are written.
bool sinkproof_sinks_svg(const char *directory, const sinkproof_sinks_job *job, size_t n,
                         const sinkproof_sinks_part *const *parts, void *const *states,
                         sinkproof_error *error);

#endif
