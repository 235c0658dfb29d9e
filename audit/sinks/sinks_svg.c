// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The figures as files: each drawn in memory as for the page, then given a name space and the
// page's style, so that it stands alone. All are written before any gets its name.
#include "audit/sinks/sinks_page.h"

#include "audit/report/page.h"
#include "audit/sinks/figures.h"
#include "audit/sinks/maps.h"
#include "ref/model/bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct folder {
    const char *path;
    bool made; // by us
    size_t n, room;
    sinkproof_output *file_n; // written, not yet named
} folder;

static bool open_folder(folder *f, const char *path, sinkproof_error *error) {
    *f = (folder){.path = path};
    f->made = mkdir(path, 0777) == 0;
    struct stat is;
    if (f->made || (stat(path, &is) == 0 && S_ISDIR(is.st_mode))) return true;
    return sinkproof_fail(error, "%s: expected a directory, or a name for one: %s", path,
                          strerror(errno == EEXIST ? ENOTDIR : errno));
}

static sinkproof_output *new_file(folder *f, const char *name, sinkproof_error *error) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s.svg", f->path, name) >= (int)sizeof path) {
        sinkproof_fail(error, "%s: a name too long", f->path);
        return NULL;
    }
    if (f->n == f->room) {
        size_t room = 2 * f->room + 16;
        sinkproof_output *more = realloc(f->file_n, room * sizeof *more);
        if (more == NULL) {
            sinkproof_fail(error, "no memory for %zu figures", room);
            return NULL;
        }
        f->file_n = more;
        f->room = room;
    }
    return sinkproof_output_open(&f->file_n[f->n], path, error) ? &f->file_n[f->n++] : NULL;
}

// What is drawn: a figure of the census, or a map.
typedef struct subject {
    const sinkproof_sinks_figure *figure;
    const sinkproof_sinks_map *map;
    const sinkproof_census *census;
} subject;

// Title and words of a file of its own; those of a map are its name.
static void describe(FILE *out, const subject *what) {
    fputs("<title>", out);
    if (what->map != NULL)
        sinkproof_page_say(out, "Attention of layer %zu, head %zu (sink.alpha)", what->map->layer,
                           what->map->head);
    else
        sinkproof_page_say(out, "%s (%s)", what->figure->title, what->figure->id);
    fputs("</title><desc>", out);
    if (what->map == NULL) what->figure->say(out, what->census);
    fputs("</desc>", out);
}

// `drawn` begins with "<svg"; style and words go behind that element's first ">".
static bool write_alone(folder *f, const char *name, const char *drawn, const subject *what,
                        sinkproof_error *error) {
    const char *inside = strchr(drawn, '>');
    sinkproof_output *file = inside != NULL ? new_file(f, name, error) : NULL;
    if (file == NULL) return false;
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\"",
          file->stream);
    fwrite(drawn + 4, 1, (size_t)(inside - drawn) - 3, file->stream);
    sinkproof_page_style(file->stream);
    describe(file->stream, what);
    fputs(inside + 1, file->stream);
    return true;
}

static bool add(folder *f, const char *name, const subject *what, sinkproof_error *error) {
    char *drawn = NULL;
    size_t length = 0;
    sinkproof_output memory;
    if (!sinkproof_output_memory(&memory, &drawn, &length, error)) return false;
    bool there = what->map != NULL || what->figure->draw(memory.stream, what->census);
    if (what->map != NULL) sinkproof_sinks_map_draw(memory.stream, what->map);
    bool good = sinkproof_output_finish(&memory, error);
    if (good && there) good = write_alone(f, name, drawn, what, error);
    free(drawn);
    return good;
}

static bool add_input(folder *f, const sinkproof_sinks_job *job, size_t input, const void *maps,
                      sinkproof_error *error) {
    char name[96], number[24] = "";
    const sinkproof_sinks_figure *figure;
    sinkproof_sinks_map map;
    if (job->n_inputs > 1) snprintf(number, sizeof number, "%zu-", input + 1);
    for (size_t k = 0; (figure = sinkproof_sinks_figure_at(k)) != NULL; k++) {
        subject what = {.figure = figure, .census = &job->inputs[input].census};
        snprintf(name, sizeof name, "%s%s", number, figure->name);
        if (!add(f, name, &what, error)) return false;
    }
    for (size_t i = 0; sinkproof_sinks_maps_pick(maps, job, input, i, &map); i++) {
        subject what = {.map = &map};
        snprintf(name, sizeof name, "%smap-%zu.%zu", number, map.layer, map.head);
        if (!add(f, name, &what, error)) return false;
    }
    return true;
}

// To the disk, while none has its name.
static bool flush(const folder *f, sinkproof_error *error) {
    for (size_t i = 0; i < f->n; i++)
        if (fflush(f->file_n[i].stream) != 0 || ferror(f->file_n[i].stream))
            return sinkproof_fail(error, "%s: %s", f->file_n[i].path, strerror(errno));
    return true;
}

bool sinkproof_sinks_svg(const char *directory, const sinkproof_sinks_job *job, const void *maps,
                         sinkproof_error *error) {
    folder f;
    if (!open_folder(&f, directory, error)) return false;
    bool good = true;
    for (size_t i = 0; good && i < job->n_inputs; i++) good = add_input(&f, job, i, maps, error);
    good = good && flush(&f, error);
    for (size_t i = 0; i < f.n; i++)
        if (good)
            good = sinkproof_output_finish(&f.file_n[i], error);
        else
            sinkproof_output_drop(&f.file_n[i]);
    free(f.file_n);
    if (!good && f.made) rmdir(directory);
    return good;
}
