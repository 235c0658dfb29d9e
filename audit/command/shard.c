// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/command/shard.h"

#include "base/words.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SHARDS = 1 << 20 };

// Reads digits alone, up to `end`.
static bool read_count(const char *text, char end, size_t *n, const char **behind) {
    char *stop;
    errno = 0;
    unsigned long long value = strtoull(text, &stop, 10);
    *n = (size_t)value;
    *behind = stop + (*stop != '\0');
    return isdigit((unsigned char)*text) && *stop == end && errno == 0 && value <= MOST_SHARDS;
}

bool shard_parse(const char *text, work_shard *shard, sinkproof_error *error) {
    size_t k = 0, n = 0;
    const char *at = text;
    bool good = read_count(at, '/', &k, &at) && read_count(at, '\0', &n, &at);
    if (!good || k == 0 || k > n)
        return sinkproof_fail(error, "a shard is K/N, K from 1 to N, such as 2/4, not '%.100s'",
                              text);
    *shard = (work_shard){k - 1, n, NULL};
    return true;
}

// A number of the environment. *there: whether the variable is set.
static bool read_variable(environment *get, const char *name, size_t *value, bool *there,
                          sinkproof_error *error) {
    const char *text = get(name), *behind;
    *there = text != NULL;
    if (text == NULL || read_count(text, '\0', value, &behind)) return true;
    return sinkproof_fail(error, "%s: expected a number up to %d, found '%.60s': give --shard K/N",
                          name, MOST_SHARDS, text);
}

static bool read_rank(environment *get, const char *rank_name, const char *size_name,
                      work_shard *shard, bool *found, sinkproof_error *error) {
    size_t rank = 0, size = 0;
    bool has_rank, has_size;
    *found = false;
    if (!read_variable(get, rank_name, &rank, &has_rank, error) ||
        !read_variable(get, size_name, &size, &has_size, error))
        return false;
    if (!has_rank || !has_size) return true;
    if (rank >= size)
        return sinkproof_fail(error, "%s is %zu of %s %zu: give --shard K/N", rank_name, rank,
                              size_name, size);
    *shard = (work_shard){rank, size, rank_name};
    *found = true;
    return true;
}

// The ids of an array are MIN, MIN + STEP ... in COUNT tasks.
static bool read_array(environment *get, work_shard *shard, sinkproof_error *error) {
    size_t id = 0, count = 0, least = 0, step = 1;
    bool has_id, has_count, there;
    if (!read_variable(get, "SLURM_ARRAY_TASK_ID", &id, &has_id, error) ||
        !read_variable(get, "SLURM_ARRAY_TASK_COUNT", &count, &has_count, error) ||
        !read_variable(get, "SLURM_ARRAY_TASK_MIN", &least, &there, error) ||
        !read_variable(get, "SLURM_ARRAY_TASK_STEP", &step, &there, error))
        return false;
    if (!has_id || !has_count) return true;
    bool even = step > 0 && id >= least && (id - least) % step == 0;
    if (!even || (id - least) / step >= count)
        return sinkproof_fail(error,
                              "SLURM_ARRAY_TASK_ID is %zu of %zu from %zu in steps of %zu: the ids "
                              "of the array are not evenly spaced: give --shard K/N",
                              id, count, least, step);
    *shard = (work_shard){(id - least) / step, count, "SLURM_ARRAY_TASK_ID"};
    return true;
}

bool shard_of_environment(environment *get, work_shard *shard, sinkproof_error *error) {
    // In a batch script SLURM_NTASKS counts the tasks of the allocation, though the script runs
    // once; SLURM_STEP_NUM_TASKS is there only for what srun starts.
    static const char *const names[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                           {"PMI_RANK", "PMI_SIZE"},
                                           {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
    work_shard rank = {0, 1, NULL}, array = {0, 1, NULL};
    bool found = false;
    for (size_t i = 0; !found && i < sizeof names / sizeof *names; i++)
        if (!read_rank(get, names[i][0], names[i][1], &rank, &found, error)) return false;
    if (!read_array(get, &array, error)) return false;
    *shard = (work_shard){array.at * rank.of + rank.at, array.of * rank.of,
                          rank.of > 1 ? rank.from : array.from};
    if (shard->from == NULL) shard->from = rank.from;
    return shard->of <= MOST_SHARDS ||
           sinkproof_fail(error, "%s, expected at most %d",
                          sinkproof_counted(shard->of, "shard").text, MOST_SHARDS);
}
