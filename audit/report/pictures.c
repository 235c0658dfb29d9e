// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Writes pictures as files: each is drawn in memory as for a page, then given a name space and the
// page's style.
#include "audit/report/pictures.h"

#include "audit/report/page.h"
#include "base/words.h"
#include "model/bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct sinkproof_pictures {
    const char *path;
    bool made; // this run created the directory
    size_t n, room;
    sinkproof_output *file_n; // written, but not yet renamed
};

bool sinkproof_pictures_open(const char *path, sinkproof_pictures **out, sinkproof_error *error) {
    sinkproof_pictures *p = calloc(1, sizeof *p);
    *out = p;
    if (p == NULL) return sinkproof_fail(error, "no memory for figures");
    p->path = path;
    p->made = mkdir(path, 0777) == 0;
    struct stat is;
    if (p->made || (stat(path, &is) == 0 && S_ISDIR(is.st_mode))) return true;
    sinkproof_fail(error, "%s: expected a directory, or a name for one: %s", path,
                   strerror(errno == EEXIST ? ENOTDIR : errno));
    free(p);
    *out = NULL;
    return false;
}

static sinkproof_output *new_file(sinkproof_pictures *p, const char *name, sinkproof_error *error) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s.svg", p->path, name) >= (int)sizeof path) {
        sinkproof_fail(error, "%s: a name too long", p->path);
        return NULL;
    }
    if (p->n == p->room) {
        size_t room = 2 * p->room + 16;
        sinkproof_output *more = realloc(p->file_n, room * sizeof *more);
        if (more == NULL) {
            sinkproof_fail(error, "no memory for %s", sinkproof_counted(room, "figure").text);
            return NULL;
        }
        p->file_n = more;
        p->room = room;
    }
    return sinkproof_output_open(&p->file_n[p->n], path, error) ? &p->file_n[p->n++] : NULL;
}

// `drawn` begins with "<svg"; style and description follow that element's first ">".
static bool write_alone(sinkproof_pictures *p, const char *name, const char *drawn,
                        const sinkproof_picture *picture, sinkproof_error *error) {
    const char *inside = strchr(drawn, '>');
    sinkproof_output *file = inside != NULL ? new_file(p, name, error) : NULL;
    if (file == NULL) return false;
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\"",
          file->stream);
    fwrite(drawn + 4, 1, (size_t)(inside - drawn) - 3, file->stream);
    page_style(file->stream);
    fputs("<title>", file->stream);
    picture->title(file->stream, picture->context);
    fputs("</title><desc>", file->stream);
    if (picture->say != NULL) picture->say(file->stream, picture->context);
    fputs("</desc>", file->stream);
    fputs(inside + 1, file->stream);
    return true;
}

bool sinkproof_pictures_add(sinkproof_pictures *p, const char *name,
                            const sinkproof_picture *picture, sinkproof_error *error) {
    char *drawn = NULL;
    size_t length = 0;
    sinkproof_output memory;
    if (!sinkproof_output_memory(&memory, &drawn, &length, error)) return false;
    bool there = picture->draw(memory.stream, picture->context);
    bool good = sinkproof_output_finish(&memory, error);
    if (good && there) good = write_alone(p, name, drawn, picture, error);
    free(drawn);
    return good;
}

// Writes all files to disk before any is renamed.
static bool pictures_to_disk(const sinkproof_pictures *p, sinkproof_error *error) {
    for (size_t i = 0; i < p->n; i++)
        if (fflush(p->file_n[i].stream) != 0 || ferror(p->file_n[i].stream))
            return sinkproof_fail(error, "%s: %s", p->file_n[i].path, strerror(errno));
    return true;
}

bool sinkproof_pictures_close(sinkproof_pictures *p, bool good, sinkproof_error *error) {
    good = good && pictures_to_disk(p, error);
    for (size_t i = 0; i < p->n; i++)
        if (good)
            good = sinkproof_output_finish(&p->file_n[i], error);
        else
            sinkproof_output_drop(&p->file_n[i]);
    if (!good && p->made) rmdir(p->path);
    free(p->file_n);
    free(p);
    return good;
}
