// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// GGUF: every type of the metadata, arrays in arrays, every type of tensor; what a stranger may
// have written, one thing wrong at a time, is refused with a sentence. The sentences are printed.
#include "model/gguf.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// A file under construction.
typedef struct file {
    uint8_t bytes[4096];
    size_t length;
} file;

static void put(file *f, uint64_t value, size_t n) {
    for (size_t i = 0; i < n; i++) f->bytes[f->length++] = (uint8_t)(value >> 8 * i);
}

static void put_text(file *f, const char *text) {
    put(f, strlen(text), 8);
    memcpy(f->bytes + f->length, text, strlen(text));
    f->length += strlen(text);
}

static void begin(file *f, uint64_t tensors, uint64_t pairs) {
    f->length = 0;
    memcpy(f->bytes, "GGUF", 4);
    f->length = 4;
    put(f, 3, 4);
    put(f, tensors, 8);
    put(f, pairs, 8);
}

static void put_tensor(file *f, const char *name, size_t rank, const uint64_t *dims, uint32_t type,
                       uint64_t offset) {
    put_text(f, name);
    put(f, rank, 4);
    for (size_t i = 0; i < rank; i++) put(f, dims[i], 8);
    put(f, type, 4);
    put(f, offset, 8);
}

static void put_data(file *f, size_t alignment, size_t n) {
    while (f->length % alignment != 0) f->bytes[f->length++] = 0;
    for (size_t i = 0; i < n; i++) f->bytes[f->length++] = (uint8_t)(17 * i + 5);
}

// The bytes stay with whoever parses them: freed when all is done.
static uint8_t *kept[64];
static size_t n_kept;

static gguf_file *parsed(const file *f) {
    gguf_file *made;
    sinkproof_error error = {""};
    // a copy of exactly the length: a sanitizer sees a read beyond it
    uint8_t *copy = malloc(f->length + 1);
    if (copy == NULL || n_kept == sizeof kept / sizeof *kept) abort();
    kept[n_kept++] = memcpy(copy, f->bytes, f->length);
    if (gguf_parse(copy, f->length, "test", &made, &error)) return made;
    note("%s", error.text);
    return NULL;
}

static void test_values(void) {
    static const struct {
        uint32_t type;
        size_t size;
        uint64_t bits;
        double value;
    } numbers[] = {
        {GGUF_U8, 1, 200, 200},
        {GGUF_I8, 1, 200, -56},
        {GGUF_U16, 2, 65000, 65000},
        {GGUF_I16, 2, 65000, -536},
        {GGUF_U32, 4, 4000000000, 4e9},
        {GGUF_I32, 4, 4000000000, -294967296},
        {GGUF_F32, 4, 0xc0490fdb, -3.1415927410125732},
        {GGUF_U64, 8, 1ull << 53, 0x1p53},
        {GGUF_I64, 8, UINT64_MAX, -1},
        {GGUF_F64, 8, 0x3ff8000000000000, 1.5},
    };
    enum { N = sizeof numbers / sizeof *numbers };
    file f;
    char key[16], shown[80];
    double value;
    unsigned wrong = 0;
    begin(&f, 0, N + 3);
    for (size_t i = 0; i < N; i++) {
        snprintf(key, sizeof key, "k%zu", i);
        put_text(&f, key);
        put(&f, numbers[i].type, 4);
        put(&f, numbers[i].bits, numbers[i].size);
    }
    put_text(&f, "text"), put(&f, GGUF_STRING, 4), put_text(&f, "ya\nrn");
    put_text(&f, "truth"), put(&f, GGUF_BOOL, 4), put(&f, 1, 1);
    put_text(&f, "nested"), put(&f, GGUF_ARRAY, 4); // [["a", "b"], [1]]
    put(&f, GGUF_ARRAY, 4), put(&f, 2, 8);
    put(&f, GGUF_STRING, 4), put(&f, 2, 8), put_text(&f, "a"), put_text(&f, "b");
    put(&f, GGUF_U32, 4), put(&f, 1, 8), put(&f, 7, 4);
    gguf_file *made = parsed(&f);
    ok(made != NULL && gguf_pairs(made) == N + 3 && gguf_tensor_count(made) == 0,
       "a value of every type");
    if (made == NULL) return;
    for (size_t i = 0; i < N; i++) {
        const gguf_pair *pair = gguf_pair_at(made, i);
        wrong += !gguf_number(pair, &value) || value != numbers[i].value;
    }
    ok(wrong == 0, "numbers of ten types, worst=%u bound=0", wrong);
    const gguf_pair *text = sinkproof_gguf_find(made, "text"),
                    *truth = sinkproof_gguf_find(made, "truth"),
                    *nested = sinkproof_gguf_find(made, "nested");
    ok(sinkproof_gguf_is_text(text, "ya\nrn") && !sinkproof_gguf_is_text(text, "ya") &&
           !sinkproof_gguf_is_text(truth, "") && !gguf_number(text, &value) &&
           !gguf_number(truth, &value) && sinkproof_gguf_find(made, "tex") == NULL,
       "a text is its bytes and no number");
    ok(strcmp(sinkproof_gguf_value_text(text, shown, sizeof shown), "\"ya?rn\"") == 0 &&
           strcmp(sinkproof_gguf_value_text(truth, shown, sizeof shown), "true") == 0 &&
           strcmp(sinkproof_gguf_value_text(nested, shown, sizeof shown), "array of 2 array") ==
               0 &&
           strcmp(sinkproof_gguf_value_text(text, shown, 4), "\"y\"") == 0,
       "values for sentences are printable and fit");
    sinkproof_gguf_close(made);
}

// A tensor of each type, under an alignment of 64.
static void test_tensors(void) {
    static const struct {
        uint32_t type;
        sinkproof_dtype dtype;
        size_t bytes; // of 2 x 3 x 64 elements
    } types[] = {{0, SINKPROOF_DTYPE_F32, 1536},   {1, SINKPROOF_DTYPE_F16, 768},
                 {30, SINKPROOF_DTYPE_BF16, 768},  {8, SINKPROOF_DTYPE_Q8_0, 408},
                 {39, SINKPROOF_DTYPE_MXFP4, 204}, {26, SINKPROOF_DTYPE_I32, 1536},
                 {2, SINKPROOF_DTYPE_Q4_0, 216},   {3, SINKPROOF_DTYPE_Q4_1, 240},
                 {6, SINKPROOF_DTYPE_Q5_0, 264},   {7, SINKPROOF_DTYPE_Q5_1, 288}};
    const uint64_t dims[] = {64, 3, 2};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        file f;
        begin(&f, 2, 1);
        put_text(&f, "general.alignment"), put(&f, GGUF_U32, 4), put(&f, 64, 4);
        put_tensor(&f, "a.weight", 3, dims, types[i].type, 0);
        put_tensor(&f, "b", 0, NULL, 0, (types[i].bytes + 63) / 64 * 64);
        put_data(&f, 64, (types[i].bytes + 63) / 64 * 64 + 4);
        gguf_file *made = parsed(&f);
        const sinkproof_tensor *a = made == NULL ? NULL : gguf_tensor_at(made, 0);
        ok(made != NULL && a->dtype == types[i].dtype && a->bytes == types[i].bytes &&
               a->rank == 3 && a->shape[0] == 2 && a->shape[1] == 3 && a->shape[2] == 64 &&
               a->data[1] == 22 && gguf_tensor_at(made, 1)->rank == 0 &&
               gguf_tensor_at(made, 1)->bytes == 4,
           "a tensor of type %s", sinkproof_dtype_name(types[i].dtype));
        uint32_t code = 0;
        sinkproof_dtype dtype;
        bool known = gguf_type_code(types[i].dtype, &code) && code == types[i].type &&
                     gguf_dtype(code, &dtype) && dtype == types[i].dtype;
        ok(known, "whose number in ggml is %u", code);
        sinkproof_gguf_close(made);
    }
}

static void check_refused(const file *f, const char *told) {
    gguf_file *made;
    sinkproof_error error = {""};
    uint8_t *copy = malloc(f->length + 1);
    if (copy == NULL) abort();
    memcpy(copy, f->bytes, f->length);
    bool refused = !gguf_parse(copy, f->length, "test", &made, &error);
    ok(refused && made == NULL && strstr(error.text, told) != NULL, "refused: %s",
       refused ? error.text : "accepted");
    sinkproof_gguf_close(made);
    free(copy);
}

// One key with a value of `type`, whose bytes `value` puts.
static void begin_pair(file *f, const char *key, uint32_t type) {
    begin(f, 0, 1);
    put_text(f, key);
    put(f, type, 4);
}

static void test_hostile_pairs(void) {
    file f;
    begin(&f, 0, 0);
    f.bytes[3] = 'X';
    check_refused(&f, "begins with GGUF");
    begin(&f, 0, 0);
    f.length = 3;
    check_refused(&f, "the letters GGUF");
    begin(&f, 0, 0);
    f.bytes[4] = 1;
    check_refused(&f, "version 2 or 3, found 1");
    begin(&f, 0, 0);
    memcpy(f.bytes + 4, "\0\0\0\3", 4);
    check_refused(&f, "the other byte order?");
    begin(&f, 0, UINT64_MAX);
    check_refused(&f, "fit into the 0 bytes left");
    begin(&f, UINT64_MAX, 0);
    check_refused(&f, "found 0 and 18446744073709551615");
    begin_pair(&f, "k", GGUF_TYPES);
    put(&f, 0, 8);
    check_refused(&f, "key k: expected a type below 13, found 13");
    begin_pair(&f, "k", GGUF_U64);
    put(&f, 0, 4);
    check_refused(&f, "a value of 8 bytes");
    begin_pair(&f, "k", GGUF_STRING);
    put(&f, UINT64_MAX, 8);
    check_refused(&f, "a string of 18446744073709551615 bytes");
    begin_pair(&f, "k", GGUF_ARRAY);
    put(&f, GGUF_U64, 4), put(&f, 1ull << 61, 8); // whose bytes wrap around
    check_refused(&f, "a value of 18446744073709551615 bytes");
    begin_pair(&f, "k", GGUF_ARRAY);
    put(&f, GGUF_STRING, 4), put(&f, 1ull << 40, 8), put_text(&f, "one");
    check_refused(&f, "a length of 8 bytes");
    begin_pair(&f, "k", GGUF_ARRAY);
    for (int i = 0; i < 40; i++) put(&f, GGUF_ARRAY, 4), put(&f, 1, 8);
    check_refused(&f, "at most 8 arrays in one another");
    begin(&f, 0, 1);
    put_text(&f, "a\x1b[2J"), put(&f, GGUF_U64, 4), put(&f, 0, 8);
    check_refused(&f, "a key of 1 to 200 printable characters");
    begin(&f, 0, 1);
    put_text(&f, ""), put(&f, GGUF_U64, 4), put(&f, 0, 8);
    check_refused(&f, "a key of 1 to 200 printable characters");
    begin(&f, 0, 2);
    for (int i = 0; i < 2; i++) put_text(&f, "twice"), put(&f, GGUF_U8, 4), put(&f, 0, 1);
    check_refused(&f, "key twice: expected a name used once");
    static const uint64_t alignments[] = {0, 48, 1ull << 31};
    for (size_t i = 0; i < 3; i++) {
        begin_pair(&f, "general.alignment", GGUF_U64);
        put(&f, alignments[i], 8);
        check_refused(&f, "general.alignment: expected a power of two up to 2^30");
    }
    begin_pair(&f, "general.alignment", GGUF_STRING);
    put_text(&f, "32");
    check_refused(&f, "expected a power of two up to 2^30, found \"32\"");
}

static void test_hostile_tensors(void) {
    static const uint64_t one[] = {32, 32}, many[] = {1ull << 40, 1ull << 40}, odd[] = {33};
    static const struct {
        size_t rank;
        const uint64_t *dims;
        uint32_t type;
        uint64_t offset;
        const char *told;
    } cases[] = {
        {5, one, 0, 0, "at most 4 dimensions, found 5"},
        {1, one, 4, 0, "found ggml's type 4"},
        {1, one, 12, 0, "expected a row of blocks of 256 for its type Q4_K, found 32 numbers"},
        {1, one, 0x7fffffff, 0, "found ggml's type 2147483647"},
        {1, odd, 8, 0, "a row of blocks of 32 for its type Q8_0, found 33"},
        {2, many, 0, 0, "dimensions whose product is below 2^58"},
        {1, many, 0, 0, "expected 4398046511104 bytes at byte 0"},
        {1, one, 0, 32, "(a gap)"},
        {1, one, 0, 4, "(not aligned)"},
        {1, one, 0, UINT64_MAX, "(not aligned)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        file f;
        begin(&f, 1, 0);
        put_text(&f, "t"), put(&f, cases[i].rank, 4);
        for (size_t d = 0; d < cases[i].rank && d < 2; d++) put(&f, cases[i].dims[d], 8);
        put(&f, cases[i].type, 4), put(&f, cases[i].offset, 8);
        put_data(&f, 32, 128);
        check_refused(&f, cases[i].told);
    }
    file f;
    begin(&f, 2, 0); // both at the beginning
    for (int i = 0; i < 2; i++) put_tensor(&f, i == 0 ? "a" : "b", 1, one, 0, 0);
    put_data(&f, 32, 256);
    check_refused(&f, "(an overlap)");
    begin(&f, 2, 0);
    for (uint64_t i = 0; i < 2; i++) put_tensor(&f, "same", 1, one, 0, 128 * i);
    put_data(&f, 32, 256);
    check_refused(&f, "tensor same: expected a name used once");
    begin(&f, 1, 0);
    put_tensor(&f, "t", 1, one, 0, 0);
    put_data(&f, 32, 127);
    check_refused(&f, "after 128 bytes, found 127");
    begin(&f, 1, 0);
    put_tensor(&f, "t", 1, one, 0, 0);
    check_refused(&f, "expected 128 bytes at byte 0");
    begin(&f, 1, 0);
    put_tensor(&f, "t", 1, one, 0, 0);
    put_data(&f, 32, 192);
    check_refused(&f, "after 128 bytes, found 192");
    begin(&f, 1, 0);
    put_tensor(&f, "t", 1, one, 0, 0);
    put_data(&f, 32, 128);
    size_t whole = f.length;
    unsigned accepted = 0;
    for (f.length = 0; f.length < whole; f.length++) {
        gguf_file *made;
        sinkproof_error error = {""};
        uint8_t *copy = malloc(f.length + 1);
        if (copy == NULL) abort();
        memcpy(copy, f.bytes, f.length);
        accepted += gguf_parse(copy, f.length, "test", &made, &error);
        accepted += error.text[0] == '\0';
        free(copy);
    }
    ok(accepted == 0, "cut after any byte it is refused with a sentence, worst=%u bound=0",
       accepted);
}

int main(void) {
    test_values();
    test_tensors();
    test_hostile_pairs();
    test_hostile_tensors();
    while (n_kept > 0) free(kept[--n_kept]);
    return tap_done();
}
