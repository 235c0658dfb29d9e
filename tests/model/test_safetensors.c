// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The container: what is written comes back, at any alignment; whatever is wrong with a
// file is refused with a sentence that names it. The sentences are printed.
#include "model/safetensors.h"
#include "tests/shared/tap.h"

#include <dirent.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A file in memory: a header and `data` zero bytes, at an odd address.
typedef struct image {
    uint8_t *memory, *bytes;
    size_t length;
} image;

static image make(const char *header, size_t header_length, uint64_t claimed, size_t data) {
    image out = {malloc(header_length + data + 9), NULL, 8 + header_length + data};
    if (out.memory == NULL) abort();
    out.bytes = out.memory + 1;
    memset(out.bytes, 0, out.length);
    for (int i = 0; i < 8; i++) out.bytes[i] = (uint8_t)(claimed >> 8 * i);
    memcpy(out.bytes + 8, header, header_length);
    return out;
}

static bool parses(image file, sinkproof_error *error) {
    sinkproof_safetensors *opened;
    error->text[0] = '\0';
    bool good =
        sinkproof_safetensors_parse(file.bytes, file.length, "x.safetensors", &opened, error);
    if (good) sinkproof_safetensors_close(opened);
    free(file.memory);
    return good;
}

#define T(name, dtype, shape, begin, end)                                                          \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" begin "," end   \
    "]}"

typedef struct mistake {
    const char *header;
    size_t data;
    const char *told;
} mistake;

static const mistake mistakes[] = {
    {"", 0, "JSON"},
    {"{", 0, "JSON"},
    {"[]", 0, "object"},
    {"{\"a\":1}", 0, "tensor a"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "tensor a"},
    {"{" T("a", "F32", "[1]", "0", "4") "," T("a", "F32", "[1]", "4", "8") "}", 8, "duplicate"},
    {"{" T("a", "F32", "[1]", "0", "4") "," T("b", "F32", "[1]", "2", "6") "}", 6, "overlap"},
    {"{" T("a", "F32", "[1]", "0", "4") "," T("b", "F32", "[1]", "0", "4") "}", 4, "overlap"},
    {"{" T("a", "F32", "[1]", "0", "4") "," T("b", "F32", "[1]", "5", "9") "}", 9, "gap"},
    {"{" T("a", "F32", "[1]", "1", "5") "}", 5, "gap"},
    {"{" T("a", "F32", "[1]", "0", "4") "}", 5, "expected the data to end"},
    {"{}", 1, "expected the data to end"},
    {"{" T("a", "F32", "[1]", "0", "4") "}", 3, "within the 3"},
    {"{" T("a", "F32", "[1]", "4", "0") "}", 4, "within the 4"},
    {"{" T("a", "F32", "[1]", "-4", "0") "}", 4, "data_offsets"},
    {"{" T("a", "F32", "[1]", "0", "4.0") "}", 4, "data_offsets"},
    {"{" T("a", "F32", "[2]", "0", "4") "}", 4, "expected 8 bytes"},
    {"{" T("a", "BF16", "[1]", "0", "4") "}", 4, "expected 2 bytes"},
    {"{" T("a", "F8_E4M3", "[4]", "0", "4") "}", 4, "F8_E4M3"},
    {"{" T("a", "MXFP4", "[4]", "0", "4") "}", 4, "MXFP4"},
    {"{" T("a", "F32", "[-1]", "0", "4") "}", 4, "dimensions"},
    {"{" T("a", "F32", "[\"1\"]", "0", "4") "}", 4, "dimensions"},
    {"{" T("a", "F32", "[4611686018427387904,4]", "0", "0") "}", 0, "64 bits"},
    {"{" T("a", "U8", "[4294967296,4294967296,0]", "0", "0") "}", 0, "64 bits"},
    {"{" T("a", "U8", "[1,1,1,1,1,1,1,1,1]", "0", "1") "}", 1, "8 dimensions"},
    {"{" T("a\\u001b[2J", "U8", "[1]", "0", "1") "}", 1, "control"},
    {"{" T("a\\u0000b", "U8", "[1]", "0", "1") "}", 1, "JSON"},
    {"{" T("a\xff", "U8", "[1]", "0", "1") "}", 1, "JSON"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "__metadata__"},
    {"{\"__metadata__\":[]}", 0, "__metadata__"},
    {"{} {}", 0, "JSON"},
    {"\x1b[2J{}", 0, "JSON"},
    {"{\"a\": \xc2\x9b"
     "2J}",
     0, "JSON"},
};

// No sentence passes a stranger's control characters on to a terminal.
static bool printable(const char *text) {
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++)
        if (*c < 32 || *c == 127 || (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)) return false;
    return true;
}

static void check_mistakes(void) {
    sinkproof_error error;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        size_t length = strlen(mistakes[i].header);
        bool refused = !parses(make(mistakes[i].header, length, length, mistakes[i].data), &error);
        ok(refused && strstr(error.text, mistakes[i].told) != NULL &&
               strstr(error.text, "x.safetensors") == error.text && printable(error.text),
           "refused: %s", refused ? error.text : mistakes[i].header);
    }
    const uint64_t lengths[] = {3, 100, (uint64_t)100 << 20 | 1, UINT64_MAX, UINT64_MAX - 7};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        ok(!parses(make("{}", 2, lengths[i], 0), &error) &&
               strstr(error.text, i < 2 ? "cut short: its header has" : "header of at most"),
           "refused: %s", error.text);
    for (size_t length = 0; length <= 8; length++) {
        image file = make("{}", 2, 2, 0);
        file.length = length;
        ok(!parses(file, &error) &&
               strstr(error.text, length == 0 ? "found an empty file" : "cut short"),
           "refused: %s", error.text);
    }
}

static void check_truncated(void) {
    static const char header[] = "{" T("a", "F32", "[2]", "0", "8") "}";
    size_t accepted = 0, silent = 0, length = sizeof header - 1;
    for (size_t cut = 1; cut <= 8 + length + 8; cut++) {
        sinkproof_error error;
        image file = make(header, length, length, 8);
        file.length -= cut;
        accepted += parses(file, &error);
        silent += strstr(error.text, "cut short") == NULL;
    }
    ok(accepted == 0, "a file cut anywhere is refused, worst=%zu bound=0", accepted);
    ok(silent == 1, "and is told so, but where nothing is left: %zu are not", silent);
    sinkproof_error error = {""};
    ok(parses(make(header, length, length, 8), &error), "the whole file is accepted %s",
       error.text);
    static const char empty[] = "{" T("b", "F32", "[1]", "0", "4") "," T(
        "a", "F32", "[0,3]", "0", "0") "," T("c", "F32", "[0]", "4", "4") "}   ";
    ok(parses(make(empty, sizeof empty - 1, sizeof empty - 1, 4), &error),
       "empty tensors and padding are accepted %s", error.text);
}

static size_t entries(const char *directory) {
    DIR *listing = opendir(directory);
    size_t n = 0;
    while (listing != NULL && readdir(listing) != NULL) n++;
    if (listing != NULL) closedir(listing);
    return n - 2; // "." and ".."
}

static bool write_file(const char *path, size_t missing, sinkproof_error *error) {
    const size_t shape[3] = {2, 3, 5}, scalar[1] = {0};
    sinkproof_safetensors_writer *writer = sinkproof_safetensors_writer_new();
    sinkproof_safetensors_writer_metadata(writer, "format", "test \"1\"");
    sinkproof_safetensors_writer_declare(writer, "odd", SINKPROOF_DTYPE_U8, 2, shape + 1);
    sinkproof_safetensors_writer_declare(writer, "bf", SINKPROOF_DTYPE_BF16, 3, shape);
    sinkproof_safetensors_writer_declare(writer, "scalar", SINKPROOF_DTYPE_F64, 0, scalar);
    sinkproof_safetensors_writer_declare(writer, "int", SINKPROOF_DTYPE_I32, 1, shape);
    uint8_t bytes[15 + 60 + 8 + 8];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 37 % 251);
    double third = 1.0 / 3;
    memcpy(bytes + 75, &third, 8); // the tests run on little-endian machines
    bool good = sinkproof_safetensors_writer_begin(writer, path, error);
    for (size_t i = 0; good && i < sizeof bytes - missing; i++)
        good = sinkproof_safetensors_writer_bytes(writer, bytes + i, 1, error);
    good = good && sinkproof_safetensors_writer_finish(writer, error);
    sinkproof_safetensors_writer_free(writer);
    return good;
}

static void check_writer(const char *directory) {
    char path[128];
    sinkproof_error error = {""};
    sinkproof_safetensors *file = NULL;
    snprintf(path, sizeof path, "%s/a.safetensors", directory);
    ok(!write_file(path, 1, &error) && entries(directory) == 0,
       "an unfinished file leaves nothing: %s", error.text);
    ok(write_file(path, 0, &error) && entries(directory) == 1, "a finished one is alone %s",
       error.text);
    ok(sinkproof_safetensors_open(path, &file, &error) && sinkproof_safetensors_count(file) == 4,
       "it opens %s", error.text);
    if (file == NULL) return;
    const sinkproof_tensor *bf = sinkproof_safetensors_find(file, "bf");
    ok(bf != NULL && bf->rank == 3 && bf->shape[0] == 2 && bf->shape[1] == 3 && bf->shape[2] == 5 &&
           bf->dtype == SINKPROOF_DTYPE_BF16 && sinkproof_tensor_elements(bf) == 30 &&
           bf->data[0] == 15 * 37 % 251,
       "a tensor has its shape, dtype and bytes");
    const sinkproof_tensor *scalar = sinkproof_safetensors_find(file, "scalar");
    ok(scalar != NULL && scalar->rank == 0 && sinkproof_tensor_value(scalar, 0) == 1.0 / 3,
       "a scalar at an odd offset has its value");
    ok(sinkproof_safetensors_find(file, "none") == NULL &&
           strcmp(sinkproof_safetensors_at(file, 0)->name, "odd") == 0,
       "tensors come in the order of their bytes");
    ok(strcmp(sinkproof_safetensors_metadata(file, "format"), "test \"1\"") == 0 &&
           sinkproof_safetensors_metadata(file, "none") == NULL,
       "metadata comes back");
    sinkproof_safetensors_close(file);
    unlink(path);
}

static void check_misuse(const char *directory) {
    char path[128];
    const size_t shape[1] = {1};
    sinkproof_error error = {""};
    snprintf(path, sizeof path, "%s/a.safetensors", directory);
    sinkproof_safetensors_writer *writer = sinkproof_safetensors_writer_new();
    sinkproof_safetensors_writer_declare(writer, "a", SINKPROOF_DTYPE_U8, 1, shape);
    sinkproof_safetensors_writer_declare(writer, "a", SINKPROOF_DTYPE_U8, 1, shape);
    ok(!sinkproof_safetensors_writer_begin(writer, path, &error), "declared twice: %s", error.text);
    sinkproof_safetensors_writer_free(writer);
    writer = sinkproof_safetensors_writer_new();
    sinkproof_safetensors_writer_declare(writer, "a", SINKPROOF_DTYPE_U8, 1, shape);
    ok(sinkproof_safetensors_writer_begin(writer, path, &error) &&
           !sinkproof_safetensors_writer_bytes(writer, "ab", 2, &error),
       "more than declared: %s", error.text);
    sinkproof_safetensors_writer_free(writer);
    ok(entries(directory) == 0, "nothing is left behind");
    ok(!write_file("/nonexistent/a.safetensors", 0, &error), "%s", error.text);
}

int main(void) {
    char directory[] = "/tmp/sinkproof-safetensors-XXXXXX";
    sinkproof_safetensors *file;
    sinkproof_error error;
    if (mkdtemp(directory) == NULL) abort();
    check_mistakes();
    check_truncated();
    check_writer(directory);
    check_misuse(directory);
    ok(!sinkproof_safetensors_open("/nonexistent", &file, &error), "%s", error.text);
    ok(!sinkproof_safetensors_open("/dev/null", &file, &error), "%s", error.text);
    rmdir(directory);
    return tap_done();
}
