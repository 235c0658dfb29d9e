// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Pictures as files: DIRECTORY/NAME.svg, each with the page's style, a title and a description for
// readers who do not see it, so that it stands alone. No file gets its name before all are written.
#ifndef SINKPROOF_PICTURES_H
#define SINKPROOF_PICTURES_H

#include "base/error.h"

#include <stdio.h>

// One picture. `draw` writes one <svg>, as on a page; or it returns false, writes nothing, and the
// file is not made. `title` and `say` write escaped text.
typedef struct sinkproof_picture {
    const void *context;
    bool (*draw)(FILE *out, const void *context);
    void (*title)(FILE *out, const void *context);
    void (*say)(FILE *out, const void *context); // may be NULL
} sinkproof_picture;

typedef struct sinkproof_pictures sinkproof_pictures;

// Creates the directory if it does not exist.
bool sinkproof_pictures_open(const char *directory, sinkproof_pictures **pictures,
                             sinkproof_error *error);
bool sinkproof_pictures_add(sinkproof_pictures *pictures, const char *name,
                            const sinkproof_picture *picture, sinkproof_error *error);
// Renames the files to their names, and frees the pictures. With `good` false, or if the first
// renaming fails, no file is left. Returns false on error.
bool sinkproof_pictures_close(sinkproof_pictures *pictures, bool good, sinkproof_error *error);

#endif
