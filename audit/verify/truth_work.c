// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/verify/truth_work.h"

#include "base/fnv.h"
#include "base/words.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *with_tail(const char *path, const char *tail) {
    size_t room = strlen(path) + strlen(tail) + 1;
    char *made = malloc(room);
    if (made == NULL) abort();
    snprintf(made, room, "%s%s", path, tail);
    return made;
}

// The points' file, which is there for every run: its lock is the run's.
static bool open_points(truth_work *work, sinkproof_error *error) {
    struct stat status;
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int descriptor = open(work->points_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    if (descriptor < 0)
        return sinkproof_fail(error, "%s: cannot write: %s", work->points_path, strerror(errno));
    bool regular = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
    if (!regular) sinkproof_fail(error, "%s: expected a regular file", work->points_path);
    bool good = regular && fcntl(descriptor, F_SETLK, &whole) == 0;
    if (regular && !good)
        sinkproof_fail(error, "%s: another process is at this work", work->points_path);
    if (good) work->points = fdopen(descriptor, "r+b");
    if (good && work->points == NULL) abort();
    if (!good) close(descriptor);
    return good;
}

// The sum of the bytes that the state tells of; false if there are fewer.
static bool sum_points(FILE *points, size_t length, uint64_t *sum) {
    uint8_t piece[1 << 14];
    *sum = SINKPROOF_FNV_NOTHING;
    rewind(points);
    for (size_t n; length > 0; length -= n) {
        n = fread(piece, 1, length < sizeof piece ? length : sizeof piece, points);
        if (n == 0) return false;
        *sum = sinkproof_fnv(*sum, piece, n);
    }
    return true;
}

// What is behind the points that the state tells of is of a layer that was not whole.
static bool cut_points(truth_work *work, size_t length, sinkproof_error *error) {
    if (fflush(work->points) == 0 && ftruncate(fileno(work->points), (off_t)length) == 0 &&
        fseeko(work->points, (off_t)length, SEEK_SET) == 0)
        return true;
    return sinkproof_fail(error, "%s: cannot write: %s", work->points_path, strerror(errno));
}

static bool read_state(truth_work *work, sinkproof_error *error) {
    struct stat status;
    int descriptor = open(work->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool good = descriptor >= 0 && fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
    work->length = good ? (size_t)status.st_size : 0;
    work->found = malloc(work->length + 1);
    if (work->found == NULL) abort();
    for (size_t done = 0; good && done < work->length;) {
        ssize_t n = read(descriptor, work->found + done, work->length - done);
        good = n > 0;
        if (good) done += (size_t)n;
    }
    if (descriptor >= 0) close(descriptor);
    return good || sinkproof_fail(error, "%s: cannot read a regular file there", work->path);
}

// Reads the state of a run before into a study that is thrown away: is it whole, and whose is it?
static bool find_state(truth_work *work, const sinkproof_config *config, size_t n,
                       sinkproof_error *error) {
    truth_store store;
    truth_study study;
    uint64_t sum;
    if (access(work->path, F_OK) != 0) return true;
    if (!read_state(work, error)) return false;
    sinkproof_study_init(&study, config, NULL, n, false, false);
    bool good =
        store_parse(work->found, work->length, work->path, work->identity, &store, &study, error);
    if (good) {
        work->stored = work->cannot_write = true; // until a walk begins: it stays where none does
        work->layers = store.state.layers;
        work->bits = store.bits;
        work->repeats = store.repeats;
        good = (sum_points(work->points, store.points, &sum) && sum == store.points_sum) ||
               sinkproof_fail(error, "%s: expected the %s that %s tells of, found others",
                              work->points_path, sinkproof_counted(store.points, "byte").text,
                              work->path);
        sinkproof_store_clear(&store, &study);
    }
    sinkproof_study_clear(&study);
    return good;
}

static void forget_work(truth_work *work) {
    if (work->points != NULL) fclose(work->points);
    free(work->path);
    free(work->next);
    free(work->points_path);
    free(work->identity);
    free(work->found);
    *work = (truth_work){.path = NULL};
}

bool sinkproof_work_open(truth_work *work, const char *path, const char *identity,
                         const sinkproof_config *config, size_t n, sinkproof_error *error) {
    *work = (truth_work){.path = with_tail(path, ""),
                         .next = with_tail(path, ".new"),
                         .points_path = with_tail(path, ".points"),
                         .identity = with_tail(identity, "")};
    bool there = access(work->points_path, F_OK) == 0;
    if (open_points(work, error) && find_state(work, config, n, error)) return true;
    if (!there) unlink(work->points_path); // made here
    forget_work(work);
    return false;
}

bool sinkproof_work_begin(truth_work *work, truth_study *study, truth_store *store,
                          sinkproof_error *error) {
    size_t length = 0;
    *store = (truth_store){.points_sum = SINKPROOF_FNV_NOTHING};
    if (work->found == NULL) {
        unlink(work->path); // the state of a walk with fewer bits, before its points go
        work->stored = false;
    } else {
        bool good =
            store_parse(work->found, work->length, work->path, work->identity, store, study, error);
        free(work->found);
        work->found = NULL;
        if (!good) return false;
        length = store->points;
        work->stored = true;
    }
    work->cannot_write = false;
    work->flushed = length;
    work->flushed_sum = store->points_sum;
    return cut_points(work, length, error);
}

// Takes what was written since the layer before into the sum, and to the disk.
static bool flush_points(truth_work *work) {
    uint8_t piece[1 << 14];
    if (fflush(work->points) != 0 || fsync(fileno(work->points)) != 0) return false;
    off_t end = ftello(work->points);
    for (size_t n; (off_t)work->flushed < end; work->flushed += n) {
        size_t left = (size_t)end - work->flushed;
        ssize_t got = pread(fileno(work->points), piece, left < sizeof piece ? left : sizeof piece,
                            (off_t)work->flushed);
        if (got <= 0) return false;
        n = (size_t)got;
        work->flushed_sum = sinkproof_fnv(work->flushed_sum, piece, n);
    }
    return !ferror(work->points);
}

static bool write_state(const truth_work *work, const uint8_t *bytes, size_t length) {
    FILE *next = fopen(work->next, "wb");
    if (next == NULL) return false;
    bool good = fwrite(bytes, 1, length, next) == length;
    good = fflush(next) == 0 && good;
    good = fsync(fileno(next)) == 0 && good;
    good = fclose(next) == 0 && good;
    return good && rename(work->next, work->path) == 0;
}

bool sinkproof_work_store(truth_work *work, const truth_study *study,
                          const sinkproof_truth_state *state, sinkproof_error *error) {
    size_t length;
    bool good = flush_points(work);
    truth_store store = {.bits = work->bits,
                         .repeats = work->repeats,
                         .points = work->flushed,
                         .points_sum = work->flushed_sum,
                         .state = *state};
    uint8_t *bytes = good ? store_bytes(work->identity, &store, study, &length) : NULL;
    if (bytes != NULL) {
        good = write_state(work, bytes, length);
        work->stored = work->stored || good;
        free(bytes);
    }
    work->cannot_write = !good;
    return good || sinkproof_fail(error, "%s: cannot write: %s%s", work->path, strerror(errno),
                                  work->stored ? "; the run can go on from the layer before" : "");
}

void sinkproof_work_close(truth_work *work) {
    if (work->path == NULL) return;
    unlink(work->next);
    if (!work->stored || !work->cannot_write) {
        unlink(work->path);
        unlink(work->points_path);
    }
    forget_work(work);
}
