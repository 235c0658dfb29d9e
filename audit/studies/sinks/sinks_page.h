// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The graphical output of `sinkproof sinks MODEL`: one HTML file, or a folder of SVG files. Neither
// has scripts or external references; both follow the reader's setting of light and dark.
#ifndef SINKPROOF_SINKS_PAGE_H
#define SINKPROOF_SINKS_PAGE_H

#include "audit/studies/sinks/part.h"

// Writes a page: the run, then each of the n parts.
bool sinkproof_sinks_page(const char *path, const sinkproof_sinks_job *job, size_t n,
                          const sinkproof_sinks_part *const *parts, void *const *states,
                          sinkproof_error *error);
// Writes DIRECTORY/NAME.svg for each figure of these parts; with several inputs NAME begins with
// the number of the input. Creates the directory; no file gets its name before all are written.
bool sinkproof_sinks_svg(const char *directory, const sinkproof_sinks_job *job, size_t n,
                         const sinkproof_sinks_part *const *parts, void *const *states,
                         sinkproof_error *error);

#endif
