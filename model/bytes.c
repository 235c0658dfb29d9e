// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Reading, mapping and replacing files.
#include "model/bytes.h"

#include "base/words.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static bool open_regular(const char *path, int *descriptor, size_t *length,
                         sinkproof_error *error) {
    struct stat status;
    *descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*descriptor < 0) return sinkproof_fail(error, "%s: cannot open: %s", path, strerror(errno));
    if (fstat(*descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
        close(*descriptor);
        return sinkproof_fail(error, "%s: expected a regular file, found %s", path,
                              S_ISDIR(status.st_mode) ? "a directory" : "something else");
    }
    *length = (size_t)status.st_size;
    return true;
}

bool sinkproof_read_file(const char *path, uint8_t **bytes, size_t *length,
                         sinkproof_error *error) {
    int descriptor;
    if (!open_regular(path, &descriptor, length, error)) return false;
    bool small = *length <= SINKPROOF_MAX_JSON;
    *bytes = small ? malloc(*length + 1) : NULL;
    bool there = *bytes != NULL, good = there;
    for (size_t done = 0; good && done < *length;) {
        ssize_t n = read(descriptor, *bytes + done, *length - done);
        good = n > 0;
        if (good) done += (size_t)n;
    }
    close(descriptor);
    if (good) return true;
    free(*bytes);
    if (small && !there)
        return sinkproof_fail(error, "%s: no memory for %s", path,
                              sinkproof_counted(*length, "byte").text);
    if (!small)
        return sinkproof_fail(error, "%s: expected at most %d bytes, found %zu", path,
                              SINKPROOF_MAX_JSON, *length);
    return sinkproof_fail(error, "%s: cannot read: %s", path, strerror(errno));
}

bool map_file(const char *path, const uint8_t **bytes, size_t *length, sinkproof_error *error) {
    int descriptor;
    *bytes = NULL;
    if (!open_regular(path, &descriptor, length, error)) return false;
    void *map = *length == 0 ? NULL : mmap(NULL, *length, PROT_READ, MAP_PRIVATE, descriptor, 0);
    close(descriptor);
    if (map == MAP_FAILED)
        return sinkproof_fail(error, "%s: cannot map: %s", path, strerror(errno));
    *bytes = map;
    return true;
}

void unmap_file(const uint8_t *bytes, size_t length) {
    if (bytes != NULL) munmap((void *)(uintptr_t)bytes, length);
}

void forget_mapped(const uint8_t *bytes, size_t length) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)bytes;
    uintptr_t first = (begin + page - 1) / page * page, end = (begin + length) / page * page;
    if (first < end) madvise((void *)first, end - first, MADV_DONTNEED);
}

// Opens a new file, "PATH.1b2c3d", with the process's default permissions.
static int open_new(const char *path, char *name) {
    struct timespec now = {0, 0};
    int descriptor = -1;
    for (unsigned tried = 0; descriptor < 0 && tried < 1000; tried++) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        unsigned tail = (unsigned)now.tv_nsec ^ (unsigned)getpid() << 8 ^ tried;
        sprintf(name, "%s.%06x", path, tail & 0xffffff);
        descriptor = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor < 0 && errno != EEXIST) break;
    }
    return descriptor;
}

// What a rename would replace: /dev/null, a pipe.
static bool is_device(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

// The path behind a symbolic link, so that the link stays; a copy of any other path. The caller
// frees it; NULL: no memory.
static char *link_end(const char *path) {
    struct stat status;
    bool link = lstat(path, &status) == 0 && S_ISLNK(status.st_mode) && !is_device(path);
    char *end = link ? realpath(path, NULL) : NULL; // NULL also for a link to nothing
    return end != NULL ? end : strdup(path);
}

bool sinkproof_output_open(sinkproof_output *output, const char *path, sinkproof_error *error) {
    char *end = link_end(path), *temporary = end != NULL ? malloc(strlen(end) + 8) : NULL;
    *output = (sinkproof_output){NULL, end, temporary};
    if (end == NULL || temporary == NULL) {
        free(temporary), output->temporary = NULL;
        sinkproof_output_drop(output);
        return sinkproof_fail(error, "%s: out of memory", path);
    }
    bool direct = is_device(end);
    int descriptor = direct ? open(end, O_WRONLY | O_CLOEXEC) : open_new(end, temporary);
    if (direct || descriptor < 0) {
        free(temporary);
        output->temporary = NULL; // nothing was created, so nothing must be removed
    }
    if (descriptor < 0) {
        sinkproof_output_drop(output);
        return sinkproof_fail(error, "%s: cannot write: %s", path, strerror(errno));
    }
    output->stream = fdopen(descriptor, "wb");
    if (output->stream != NULL) return true;
    close(descriptor);
    sinkproof_output_drop(output);
    return sinkproof_fail(error, "%s: cannot write: %s", path, strerror(errno));
}

bool sinkproof_output_memory(sinkproof_output *output, char **bytes, size_t *length,
                             sinkproof_error *error) {
    *bytes = NULL;
    *output = (sinkproof_output){open_memstream(bytes, length), strdup("(memory)"), NULL};
    if (output->stream != NULL && output->path != NULL) return true;
    sinkproof_output_drop(output);
    return sinkproof_fail(error, "no memory for a file in memory");
}

bool sinkproof_output_finish(sinkproof_output *output, sinkproof_error *error) {
    bool good = !ferror(output->stream);
    good = fclose(output->stream) == 0 && good;
    output->stream = NULL;
    if (good && output->temporary != NULL) good = rename(output->temporary, output->path) == 0;
    if (!good) sinkproof_fail(error, "%s: cannot write: %s", output->path, strerror(errno));
    if (good) {
        free(output->temporary);
        output->temporary = NULL;
    }
    sinkproof_output_drop(output);
    return good;
}

void sinkproof_output_drop(sinkproof_output *output) {
    if (output->stream != NULL) fclose(output->stream);
    if (output->temporary != NULL) unlink(output->temporary);
    free(output->temporary);
    free(output->path);
    *output = (sinkproof_output){NULL, NULL, NULL};
}

bool create_directory(const char *path, bool *made, sinkproof_error *error) {
    *made = mkdir(path, 0777) == 0;
    if (*made) return true;
    if (errno != EEXIST) return sinkproof_fail(error, "%s: cannot make: %s", path, strerror(errno));
    DIR *listing = opendir(path);
    if (listing == NULL) return sinkproof_fail(error, "%s: cannot list: %s", path, strerror(errno));
    size_t entries = 0;
    while (readdir(listing) != NULL) entries++; // "." and ".." are always there
    closedir(listing);
    return entries <= 2 ||
           sinkproof_fail(error, "%s: expected a new or empty directory, found files in it", path);
}
