// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The file that keeps what was measured: where it lies, that it gives back what was written, and
// that nothing else is believed: cut, changed, foreign, no file at all. And the sentence about
// another numeric mode, from planted times.
#include "audit/command/fastest.h"

#include "fast/kernels/isa.h"
#include "tests/shared/tap.h"

#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char work[] = "/tmp/sinkproof-fastest-XXXXXX";
static const char key[] = "a processor; sinkproof 0; kernels 0";

static const char *path_of(const char *name) {
    static char path[4][PATH_MAX];
    static int next;
    next = (next + 1) % 4;
    snprintf(path[next], sizeof path[next], "%s/%s", work, name);
    return path[next];
}

static size_t read_bytes(const char *path, char *bytes, size_t most) {
    FILE *file = fopen(path, "rb");
    size_t n = file != NULL ? fread(bytes, 1, most, file) : 0;
    if (file != NULL) fclose(file);
    return n;
}

static void write_bytes(const char *path, const char *bytes, size_t n) {
    FILE *file = fopen(path, "wb");
    must(file != NULL && fwrite(bytes, 1, n, file) == n);
    fclose(file);
}

static bool same(const sinkproof_isa_times *a, const sinkproof_isa_times *b) {
    return memcmp(a, b, sizeof *a) == 0;
}

// Times of every set that runs; the slowest was not asked for more.
static sinkproof_isa_times planted(void) {
    sinkproof_isa_times times = {0};
    for (size_t i = 0; sinkproof_isa_all()[i] != NULL; i++) {
        if (!sinkproof_isa_runs(sinkproof_isa_all()[i], NULL)) continue;
        times.seconds[i][SINKPROOF_ISA_ONE] = 1e-5 / (double)(i + 1);
        times.seconds[i][SINKPROOF_ISA_MANY] = i == 0 ? 0 : 1e-3 / (double)(3 * i + 7);
    }
    return times;
}

static bool reads(const char *path, sinkproof_isa_times *times) {
    return fastest_read_kept(path, key, sinkproof_isa_all(), times);
}

static void test_file(void) {
    const sinkproof_isa_times times = planted(), none = {0};
    sinkproof_isa_times found;
    const char *path = path_of("new/deeper/isa");
    struct stat is;
    bool written = fastest_write_kept(path, key, sinkproof_isa_all(), &times);
    ok(written && reads(path, &found) && same(&times, &found),
       "what is written, into directories that were not there, is read back bit for bit");
    ok(stat(path_of("new/deeper"), &is) == 0 && (is.st_mode & 0777) == 0700,
       "the directory is its owner's alone");
    ok(!fastest_read_kept(path, "another processor", sinkproof_isa_all(), &found) &&
           same(&found, &none),
       "another key finds nothing");
    ok(!reads(path_of("none"), &found) && !reads(path_of("new"), &found) && same(&found, &none),
       "no file and a directory hold nothing");
    must(mkfifo(path_of("pipe"), 0600) == 0);
    ok(!reads(path_of("pipe"), &found), "nor does a pipe, and nobody waits for it");
    must(symlink(path_of("loop"), path_of("loop")) == 0);
    ok(!reads(path_of("loop"), &found), "nor a link to itself");
    ok(!fastest_write_kept(path_of("pipe/isa"), key, sinkproof_isa_all(), &times),
       "where nothing can be written nothing is");
}

// Every cut, every byte changed, and what could be taken for a time.
static void test_hostile(void) {
    char good[4096], bad[8192];
    const sinkproof_isa_times times = planted();
    sinkproof_isa_times found;
    const char *path = path_of("hostile");
    must(fastest_write_kept(path, key, sinkproof_isa_all(), &times));
    size_t n = read_bytes(path, good, sizeof good), believed = 0, odd = 0;
    for (size_t cut = 0; cut < n; cut++) {
        write_bytes(path, good, cut);
        believed += reads(path, &found);
    }
    ok(n > 0 && believed == 0, "none of %zu cuts is believed", n);
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 5; k++) {
            memcpy(bad, good, n);
            bad[i] = "\0\n -x"[k];
            write_bytes(path, bad, n);
            if (!reads(path, &found)) continue;
            for (int t = 0; t < SINKPROOF_ISA_SETS; t++)
                for (int use = 0; use < SINKPROOF_ISA_USES; use++)
                    odd += !(found.seconds[t][use] >= 0 && found.seconds[t][use] < 1000);
        }
    ok(odd == 0, "a changed byte leaves no time that is none: %zu", odd);
    static const char *const numbers[] = {"nan", "inf", "-1", "+1", "1e999", "1e3", " 1", ""};
    const char *line = memchr(good, '\n', n);
    line = memchr(line + 1, '\n', n - (size_t)(line + 1 - good)); // behind the key
    believed = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        int length = snprintf(bad, sizeof bad, "%.*s\n%s %s 1\n", (int)(line - good), good,
                              sinkproof_isa_all()[0]->isa, numbers[i]);
        const char *rest = memchr(line + 1, '\n', n - (size_t)(line + 1 - good));
        size_t left = n - (size_t)(rest + 1 - good);
        memcpy(bad + length, rest + 1, left);
        write_bytes(path, bad, (size_t)length + left);
        believed += reads(path, &found);
    }
    ok(believed == 0, "none of %zu spellings that are no seconds is believed: %zu",
       sizeof numbers / sizeof *numbers, believed);
    memcpy(bad, good, n);
    memset(bad + n, '\n', sizeof bad - n);
    write_bytes(path, bad, sizeof bad);
    ok(!reads(path, &found), "nor a file with more behind it");
}

// Where the environment sends it.
static void test_place(void) {
    char path[FASTEST_PATH], long_name[5000];
    struct {
        const char *own, *base, *home, *expected;
    } all[] = {{"/o", "/b", "/h", "/o/isa-"},
               {NULL, "/b", "/h", "/b/sinkproof/isa-"},
               {NULL, NULL, "/h", "/h/.cache/sinkproof/isa-"},
               {NULL, "relative", "/h", "/h/.cache/sinkproof/isa-"},
               {"", "/b", "/h", NULL},
               {NULL, NULL, NULL, NULL},
               {NULL, NULL, "relative", NULL},
               {long_name, NULL, NULL, NULL}};
    size_t wrong = 0, n = sizeof all / sizeof *all;
    memset(long_name, 'x', sizeof long_name - 1), long_name[sizeof long_name - 1] = '\0';
    for (size_t i = 0; i < n; i++) {
        const char *names[] = {"SINKPROOF_CACHE", "XDG_CACHE_HOME", "HOME"};
        const char *values[] = {all[i].own, all[i].base, all[i].home};
        for (int k = 0; k < 3; k++) {
            if (values[k] != NULL)
                setenv(names[k], values[k], 1);
            else
                unsetenv(names[k]);
        }
        bool found = fastest_file_path(key, path, sizeof path);
        wrong += all[i].expected == NULL
                     ? found || path[0] != '\0'
                     : !found || strncmp(path, all[i].expected, strlen(all[i].expected)) != 0;
    }
    ok(wrong == 0, "the cache directory of the environment: %zu of %zu wrong", wrong, n);
}

// Measured once, kept, read; a name given measures nothing; a hostile file is measured again.
static void test_choice(void) {
    fastest_sets first, second, asked, again;
    sinkproof_error error = {{0}};
    unsetenv("SINKPROOF_ISA");
    setenv("SINKPROOF_CACHE", path_of("choice"), 1);
    bool good = fastest_choose_set(NULL, &first, &error) &&
                fastest_choose_set(NULL, &second, &error) &&
                fastest_choose_set("portable", &asked, &error);
    ok(good && first.source == FASTEST_MEASURED && second.source == FASTEST_KEPT &&
           same(&first.times, &second.times) && first.of_one == second.of_one &&
           first.of_many == second.of_many,
       "measured once, read the second time: %s and %s", first.of_one->isa, first.of_many->isa);
    ok(asked.source == FASTEST_ASKED && asked.of_one == &kernels_portable &&
           asked.of_many == &kernels_portable && asked.file[0] == '\0',
       "a set that is asked for is not measured");
    write_bytes(first.file, "portable 1 1\n", 13);
    good = fastest_choose_set(NULL, &again, &error);
    ok(good && again.source == FASTEST_MEASURED, "a file that is none is replaced");
    setenv("SINKPROOF_CACHE", "", 1);
    good = fastest_choose_set(NULL, &again, &error);
    ok(good && again.source == FASTEST_MEASURED && again.file[0] == '\0',
       "where nothing is kept it is measured each time");
    ok(!fastest_choose_set("z80", &again, &error) && strstr(error.text, "z80") != NULL,
       "an unknown name is an error: %s", error.text);
}

// A processor with tiles, planted: what it says of them, under which policy.
static void test_others(void) {
    static const sinkproof_kernels lanes = {.isa = "wide", .mode = "lanes"};
    static const sinkproof_kernels tiles = {.isa = "tiles", .mode = "amx"};
    const sinkproof_kernels *const tables[] = {&lanes, &tiles, NULL};
    fastest_sets f = {.of_one = &lanes, .of_many = &lanes};
    sinkproof_policy rounded, plain;
    char text[1024];
    must(sinkproof_policy_known("bf16-operands", &rounded) &&
         sinkproof_policy_known("f32", &plain));
    f.times = (sinkproof_isa_times){{{2e-5, 3e-3}, {4e-5, 1e-3}}};
    fastest_tell_others(tables, &f, &rounded, text, sizeof text);
    ok(strstr(text, "--isa tiles is another numeric mode") != NULL &&
           strstr(text, "48 tokens at 3 times the speed of wide") != NULL &&
           strstr(text, "one token at 0.5 times that of wide") != NULL &&
           strstr(text, "estimated") != NULL && strchr(text, '\n') == NULL,
       "a planted processor: %s", text);
    ok(fastest_tell_others(tables, &f, &plain, text, sizeof text)[0] == '\0',
       "nothing under a policy that the mode does not serve");
    f.times.seconds[1][SINKPROOF_ISA_MANY] = 0;
    ok(fastest_tell_others(tables, &f, &rounded, text, sizeof text)[0] == '\0',
       "nothing of a set that was not measured");
    f.times.seconds[1][SINKPROOF_ISA_MANY] = 1e-3;
    f.of_one = f.of_many = &tiles;
    ok(strstr(fastest_tell_others(tables, &f, &rounded, text, sizeof text), "--isa tiles") == NULL,
       "nothing of the mode that runs");
    f.of_one = f.of_many = &lanes;
    ok(fastest_tell_others(tables, &f, &rounded, text, 40)[0] == '\0',
       "no half of a sentence where there is no room");
}

int main(void) {
    must(mkdtemp(work) != NULL);
    test_file();
    test_hostile();
    test_place();
    test_choice();
    test_others();
    char remove_all[PATH_MAX];
    snprintf(remove_all, sizeof remove_all, "rm -rf '%s'", work);
    ok(system(remove_all) == 0, "the test's files are gone");
    return tap_done();
}
