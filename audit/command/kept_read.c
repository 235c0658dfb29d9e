// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Reads run.json and kept results: whatever a file holds, what is used of it is checked.
#include "audit/command/command.h"
#include "audit/command/kept.h"

#include <string.h>

enum { MOST_LAYERS = 1 << 24 };

bool kept_same_unit(const json_t *a, const json_t *b) {
    return json_equal(json_object_get(a, "name"), json_object_get(b, "name")) &&
           json_equal(json_object_get(a, "layers"), json_object_get(b, "layers"));
}

static json_t *parse_object(const uint8_t *bytes, size_t length, const char *name,
                            sinkproof_error *error) {
    json_error_t where;
    json_t *root = json_loadb((const char *)bytes, length, JSON_REJECT_DUPLICATES, &where);
    if (root == NULL)
        sinkproof_fail(error, "%.500s: expected JSON, found an error in line %d: %s", name,
                       where.line, where.text);
    bool good = root != NULL;
    if (good && (!json_is_object(root) || json_integer_value(json_object_get(root, "kept")) != 1 ||
                 !json_is_object(json_object_get(root, "how"))))
        good = sinkproof_fail(error,
                              "%.500s: expected a result or a run that --out kept, found "
                              "something else",
                              name);
    if (good) return root;
    json_decref(root);
    return NULL;
}

static bool is_unit(const json_t *unit) {
    const json_t *layers = json_object_get(unit, "layers");
    bool all = json_is_null(layers);
    json_int_t first = json_integer_value(json_array_get(layers, 0)),
               last = json_integer_value(json_array_get(layers, 1));
    bool some = json_array_size(layers) == 2 && json_is_integer(json_array_get(layers, 0)) &&
                json_is_integer(json_array_get(layers, 1)) && first >= 0 && last >= first &&
                last < MOST_LAYERS;
    return json_is_string(json_object_get(unit, "name")) && (all || some);
}

static bool is_command(const json_t *name) {
    const char *text = json_string_value(name);
    return text != NULL &&
           (strcmp(text, "judge") == 0 || strcmp(text, "audit") == 0 || strcmp(text, "truth") == 0);
}

json_t *kept_parse_run(const uint8_t *bytes, size_t length, const char *name,
                       sinkproof_error *error) {
    json_t *root = parse_object(bytes, length, name, error), *unit;
    const json_t *units = json_object_get(root, "units");
    const char *of = json_string_value(json_object_get(root, "of"));
    size_t i;
    if (root == NULL) return NULL;
    bool good = json_array_size(units) > 0 && of != NULL &&
                (strcmp(of, "trace") == 0 || strcmp(of, "prompt") == 0) &&
                json_is_string(json_object_get(root, "title")) &&
                is_command(json_object_get(json_object_get(root, "how"), "command"));
    json_array_foreach(units, i, unit) good = good && is_unit(unit);
    if (good) return root;
    sinkproof_fail(error, "%.500s: expected a run with its units, found something else", name);
    json_decref(root);
    return NULL;
}

// A terminal shows it: control characters are in no report.
static bool is_plain(const json_t *text, bool lines) {
    const char *c = json_string_value(text);
    for (; c != NULL && *c != '\0'; c++)
        if ((((unsigned char)*c < 32 && !(lines && *c == '\n')) || *c == 127) ||
            ((unsigned char)*c == 0xc2 && (unsigned char)c[1] < 0xa0 &&
             (unsigned char)c[1] >= 0x80))
            return false;
    return json_is_string(text);
}

json_t *kept_parse(const uint8_t *bytes, size_t length, const char *name, sinkproof_error *error) {
    json_t *root = parse_object(bytes, length, name, error), *row;
    if (root == NULL) return NULL;
    const json_t *result = json_object_get(root, "result");
    const json_t *rows = json_object_get(result, "results"),
                 *page = json_object_get(result, "page");
    json_int_t code = json_integer_value(json_object_get(result, "exit"));
    size_t i;
    bool good = is_unit(json_object_get(root, "unit")) &&
                json_is_integer(json_object_get(result, "exit")) &&
                (code == EXIT_HOLDS || code == EXIT_BUG || code == EXIT_BAD_INPUT ||
                 code == EXIT_INCONCLUSIVE) &&
                is_plain(json_object_get(result, "said"), false) &&
                is_plain(json_object_get(result, "text"), true) && json_array_size(rows) > 0 &&
                json_is_string(page);
    json_array_foreach(rows, i, row) good = good && json_is_object(row);
    if (good) return root;
    sinkproof_fail(error,
                   "%.500s: expected a result with its exit code, rows, text and page, found "
                   "something else",
                   name);
    json_decref(root);
    return NULL;
}
