// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Pictures as files: DIRECTORY/NAME.svg, each with the page's style, a title and words for those
// who do not see it, so that it stands alone. No file gets its name before all are written.
#ifndef SINKPROOF_PICTURES_H
#define SINKPROOF_PICTURES_H

#include "base/error.h"

#include <stdio.h>

// What is drawn. `draw` writes one <svg>, as it stands on a page, or returns false and has written
// nothing: then there is no file. `title` and `say` write escaped text.
typedef struct sinkproof_picture {
    const void *context;
    bool (*draw)(FILE *out, const void *context);
    void (*title)(FILE *out, const void *context);
    void (*say)(FILE *out, const void *context); // or NULL
} sinkproof_picture;

typedef struct sinkproof_pictures sinkproof_pictures;

// The directory is made where it is not there.
bool sinkproof_pictures_open(const char *directory, sinkproof_pictures **pictures,
                             sinkproof_error *error);
bool sinkproof_pictures_add(sinkproof_pictures *pictures, const char *name,
                            const sinkproof_picture *picture, sinkproof_error *error);
// Names the files, and frees. With `good` false nothing is left, nor where naming fails at the
// first; the result is false then.
bool sinkproof_pictures_close(sinkproof_pictures *pictures, bool good, sinkproof_error *error);

#endif
