// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "model/sniff.h"

#include "base/words.h"
#include "model/bytes.h"
#include "model/safetensors.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

// A kind of file: its magic bytes at `at`, and its name.
static const struct {
    size_t at, length;
    const char *bytes, *name;
} kinds[] = {
    {0, 4, "PK\3\4", "a zip archive (NumPy's .npz, torch.save)"},
    {0, 4, "PK\5\6", "an empty zip archive"},
    {0, 6, "\x93NUMPY", "an array of NumPy's (.npy)"},
    {0, 8, "\x89HDF\r\n\x1a\n", "an HDF5 file"},
    {0, 4, "GGUF", "a GGUF file, which is a MODEL, named .gguf"},
    {0, 2, "\x1f\x8b", "a file that gzip compressed"},
    {0, 4, "\x28\xb5\x2f\xfd", "a file that zstd compressed"},
    {0, 6,
     "\xfd"
     "7zXZ",
     "a file that xz compressed"},
    {0, 3, "BZh", "a file that bzip2 compressed"},
    {257, 5, "ustar", "a tar archive"},
    {0, 2, "\x80\2", "a pickle of Python's (torch.save)"},
    {0, 2, "\x80\3", "a pickle of Python's (torch.save)"},
    {0, 2, "\x80\4", "a pickle of Python's (torch.save)"},
    {0, 2, "\x80\5", "a pickle of Python's (torch.save)"},
    {0, 4,
     "\x7f"
     "ELF",
     "a program or a shared object"},
    {0, 24, "version https://git-lfs.",
     "a pointer of git-lfs in place of the file (`git lfs pull`)"},
    {0, 5, "<!DOC", "a page of HTML"},
    {0, 5, "<!doc", "a page of HTML"},
    {0, 5, "<html", "a page of HTML"},
    {0, 1, "{", "JSON"},
    {0, 1, "[", "JSON"},
};

const char *sniff_format(const uint8_t *bytes, size_t length) {
    if (length == 0) return "an empty file";
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (length >= kinds[k].at + kinds[k].length &&
            memcmp(bytes + kinds[k].at, kinds[k].bytes, kinds[k].length) == 0)
            return kinds[k].name;
    return NULL;
}

bool sniff_header(const uint8_t *bytes, size_t length, const char *name, sinkproof_error *error) {
    uint64_t header = 0;
    for (size_t i = 0; i < 8 && i < length; i++) header |= (uint64_t)bytes[i] << (8 * i);
    bool begun = header <= SINKPROOF_MAX_JSON && (length == 8 || (length > 8 && bytes[8] == '{'));
    const char *kind = begun ? NULL : sniff_format(bytes, length);
    if (begun && header > length - 8)
        return sinkproof_fail(error,
                              "%s: the file is cut short: its header has %s, of which %zu "
                              "are there",
                              name, sinkproof_counted((size_t)header, "byte").text, length - 8);
    if (kind != NULL)
        return sinkproof_fail(error, "%s: expected a safetensors file, found %s", name, kind);
    if (length < 8)
        return sinkproof_fail(error, "%s: expected a safetensors file, found %s: it is cut short",
                              name, sinkproof_counted(length, "byte").text);
    return sinkproof_fail(error,
                          "%s: expected a safetensors file, with a header of at most %d bytes in "
                          "front, found a length of %llu",
                          name, SINKPROOF_MAX_JSON, (unsigned long long)header);
}

// Refuses a regular file in place of a directory.
static bool refuse_file(const char *spec, sinkproof_error *error) {
    const uint8_t *bytes;
    size_t length;
    sinkproof_safetensors *file;
    if (!map_file(spec, &bytes, &length, error)) return false;
    const char *kind = sniff_format(bytes, length);
    if (kind == NULL && sinkproof_safetensors_parse(bytes, length, spec, &file, NULL)) {
        const char *format = sinkproof_safetensors_metadata(file, "format");
        bool ours = format != NULL && strncmp(format, "sinkproof-", 10) == 0;
        sinkproof_fail(error, "%.400s: expected a MODEL, found a %s: %s", spec,
                       ours ? "trace" : "safetensors file",
                       ours ? "MODEL comes first, TRACE after it"
                            : "give its directory, which has config.json in it");
        sinkproof_safetensors_close(file);
    } else
        sinkproof_fail(error,
                       "%.400s: expected a MODEL (a directory, a .gguf file, synthetic:NAME), "
                       "found %s%s",
                       spec, kind != NULL ? kind : "another file",
                       kind != NULL && strcmp(kind, "JSON") == 0
                           ? ": give the directory that a config.json is in"
                           : "");
    unmap_file(bytes, length);
    return false;
}

// Whether a directory has a file of that name.
static bool has_file(const char *directory, const char *name) {
    char path[4096];
    struct stat status;
    int used = snprintf(path, sizeof path, "%s/%s", directory, name);
    return used > 0 && (size_t)used < sizeof path && stat(path, &status) == 0;
}

bool sniff_directory(const char *spec, sinkproof_error *error) {
    struct stat status;
    if (stat(spec, &status) != 0)
        return sinkproof_fail(error,
                              "%.400s: %s: expected a directory, a .gguf file or synthetic:NAME",
                              spec, strerror(errno));
    if (!S_ISDIR(status.st_mode)) return refuse_file(spec, error);
    if (has_file(spec, "config.json") || !has_file(spec, "adapter_config.json")) return true;
    return sinkproof_fail(error,
                          "%.400s: expected a MODEL, found an adapter of PEFT alone: merge it into "
                          "its model (merge_and_unload), save that, and give its directory",
                          spec);
}
