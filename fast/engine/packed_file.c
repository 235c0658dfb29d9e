// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Reads and writes packed weights. The layout is that of fast/kernels/panels.h and
// fast/engine/weights.c: when either changes, change the word in the header.
#include "fast/engine/packed_file.h"

#include "base/words.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096 };

static const char magic[24] = "sinkproof-packed-1";

typedef struct header {
    char magic[24];
    uint64_t fingerprint, bytes; // in this machine's byte order
} header;

static bool check_packed_header(const char *path, int file, uint64_t fingerprint, size_t bytes,
                                sinkproof_error *error) {
    header h;
    struct stat status;
    ssize_t got = pread(file, &h, sizeof h, 0);
    if (got < 0 || fstat(file, &status) != 0)
        return sinkproof_fail(error, "%s: cannot read: %s", path, strerror(errno));
    if ((size_t)got < sizeof h || memcmp(h.magic, magic, sizeof magic) != 0)
        return sinkproof_fail(error, "%s: no packed weights: expected a header of %s", path, magic);
    if (h.fingerprint != fingerprint)
        return sinkproof_fail(error,
                              "%s: packed weights of another model: expected the fingerprint "
                              "%016" PRIx64 ", found %016" PRIx64,
                              path, fingerprint, h.fingerprint);
    if (h.bytes != bytes || (uint64_t)status.st_size != PAGE + (uint64_t)bytes)
        return sinkproof_fail(error, "%s: expected %s, found %jd", path,
                              sinkproof_counted(PAGE + bytes, "byte").text,
                              (intmax_t)status.st_size);
    return true;
}

bool packed_file_open(const char *path, uint64_t fingerprint, size_t bytes, bool *found,
                      sinkproof_pages *pages, sinkproof_error *error) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    *found = file >= 0;
    if (file < 0)
        return errno == ENOENT ||
               sinkproof_fail(error, "%s: cannot open: %s", path, strerror(errno));
    bool good = check_packed_header(path, file, fingerprint, bytes, error);
    if (good) {
        void *data = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, PAGE);
        good = data != MAP_FAILED ||
               sinkproof_fail(error, "%s: cannot map: %s", path, strerror(errno));
        if (good) *pages = (sinkproof_pages){data, bytes};
    }
    close(file);
    return good;
}

static bool write_all(int file, const void *from, size_t bytes) {
    const uint8_t *at = from;
    while (bytes > 0) {
        ssize_t put = write(file, at, bytes < 1 << 30 ? bytes : 1 << 30);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        at += put;
        bytes -= (size_t)put;
    }
    return true;
}

bool packed_file_write(const char *path, uint64_t fingerprint, const sinkproof_pages *pages,
                       size_t bytes, sinkproof_error *error) {
    char part[4096];
    uint8_t page[PAGE] = {0};
    header h = {.fingerprint = fingerprint, .bytes = bytes};
    memcpy(h.magic, magic, sizeof magic);
    memcpy(page, &h, sizeof h);
    int length = snprintf(part, sizeof part, "%s.%ld.part", path, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof part)
        return sinkproof_fail(error, "%s: the name is too long", path);
    int file = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0) return sinkproof_fail(error, "%s: cannot create: %s", part, strerror(errno));
    bool good = write_all(file, page, sizeof page) && write_all(file, pages->data, bytes);
    int why = errno;
    if (close(file) != 0 && good) {
        good = false;
        why = errno;
    }
    if (good && rename(part, path) != 0) {
        good = false;
        why = errno;
    }
    if (good) return true;
    unlink(part);
    return sinkproof_fail(error, "%s: cannot write: %s", path, strerror(why));
}
