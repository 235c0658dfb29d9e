// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Parses a policy: a known name or a file, then overrides. A file states a policy in full, one
// KEY=VALUE per line, with every point, function and form, and # before a comment; a missing key is
// an error.
#include "base/words.h"
#include "ref/policy_rounding.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FILE_LIMIT = 1 << 16,
    FORM_KEYS = (int)AT_POINTS + (int)SINKPROOF_FUNCTION_COUNT,
    KEYS = FORM_KEYS + (int)SINKPROOF_FORMED_COUNT + 5
};

// The keys of a policy in one order: points, functions, forms, and the others.
static const char *key_name(size_t key) {
    if (key < AT_POINTS) return sinkproof_point_name((sinkproof_point)key);
    key -= AT_POINTS;
    if (key < SINKPROOF_FUNCTION_COUNT) return sinkproof_function_name((sinkproof_function)key);
    key -= SINKPROOF_FUNCTION_COUNT;
    if (key < SINKPROOF_FORMED_COUNT) return sinkproof_formed_name((sinkproof_formed)key);
    static const char *const last[] = {"inside", "weights", "ftz", "yarn", "unrounded"};
    return last[key - SINKPROOF_FORMED_COUNT];
}

// "4ulp"; with `growth` also "4ulp+0.5|x|".
static bool parse_ulp(const char *key, const char *value, double *ulp, double *growth,
                      sinkproof_error *error) {
    char *end = NULL;
    double x = strtod(value, &end), more = 0;
    bool number = end != value;
    if (strncmp(end, "ulp", 3) == 0) end += 3;
    if (growth != NULL && *end == '+') {
        const char *start = end + 1;
        more = strtod(start, &end);
        number = number && end != start && strncmp(end, "|x|", 3) == 0;
        end += number ? 3 : 0;
    }
    if (!number || *end != '\0' || !(x >= 0.5) || !(x <= 1e6) || !(more >= 0) || !(more <= 1e3))
        return sinkproof_fail(error, "'%s=%s' is not an error from 0.5ulp to 1000000ulp%s", key,
                              value,
                              growth != NULL ? ", nor one that grows with its argument, as "
                                               "2ulp+0.5|x|, by 1000 at most"
                                             : "");
    *ulp = x;
    if (growth != NULL) *growth = more;
    return true;
}

// One of two words; *first: whether it is the first.
static bool parse_one_of_two(const char *key, const char *value, const char *one, const char *other,
                             bool *first, sinkproof_error *error) {
    *first = strcmp(value, one) == 0;
    return *first || strcmp(value, other) == 0 ||
           sinkproof_fail(error, "'%s=%s': expected %s=%s or %s=%s", key, value, key, one, key,
                          other);
}

static bool parse_weights(const char *value, sinkproof_format *weights, sinkproof_error *error) {
    if (strcmp(value, "stored") == 0) {
        *weights = SINKPROOF_REAL;
        return true;
    }
    if (!parse_format(value, SINKPROOF_E4M3, weights) || *weights == SINKPROOF_REAL ||
        *weights == SINKPROOF_F64)
        return sinkproof_fail(error,
                              "'weights=%s': expected weights=stored, f32, f16, bf16, tf32, "
                              "tf32-even or tf32-cut",
                              value);
    return true;
}

static bool parse_inside_format(const char *value, sinkproof_format *inside,
                                sinkproof_error *error) {
    bool narrow;
    if (!parse_one_of_two("inside", value, "f32", "f64", &narrow, error)) return false;
    *inside = narrow ? SINKPROOF_F32 : SINKPROOF_F64;
    return true;
}

static bool unknown_form(sinkproof_formed stage, const char *word, sinkproof_error *error) {
    char list[256] = "any";
    for (int form = 0; sinkproof_form_name(stage, form) != NULL; form++)
        append_word(list, sizeof list, sinkproof_form_name(stage, form));
    return sinkproof_fail(error, "unknown form '%s' for %s: %sknown are %s; several with | between",
                          word, sinkproof_formed_name(stage),
                          sinkproof_guess_in_list(word, list).text, list);
}

// "any", or names with | between.
static bool parse_forms(sinkproof_formed stage, char *value, unsigned *forms,
                        sinkproof_error *error) {
    unsigned named = 0;
    for (char *word; (word = strsep(&value, "|")) != NULL;) {
        unsigned these = 0;
        for (int form = 0; sinkproof_form_name(stage, form) != NULL; form++)
            if (strcmp(word, sinkproof_form_name(stage, form)) == 0 || strcmp(word, "any") == 0)
                these |= 1u << form;
        if (these == 0) return unknown_form(stage, word, error);
        named |= these;
    }
    *forms = named;
    return true;
}

static bool unknown_read(const char *word, sinkproof_error *error) {
    char list[256] = "none, any";
    for (int p = 0; p < AT_POINTS; p++)
        if (point_is_read((sinkproof_point)p))
            append_word(list, sizeof list, sinkproof_point_name((sinkproof_point)p));
    return sinkproof_fail(error,
                          "'%s' is no point that a next operation may read unrounded: %sknown are "
                          "%s; several with | between",
                          word, sinkproof_guess_in_list(word, list).text, list);
}

// "none", "any", or names with | between.
static bool parse_unrounded(char *value, bool *unrounded, sinkproof_error *error) {
    bool named[AT_POINTS] = {false};
    for (char *word; (word = strsep(&value, "|")) != NULL;) {
        bool known = strcmp(word, "none") == 0, any = strcmp(word, "any") == 0;
        for (int p = 0; p < AT_POINTS; p++) {
            const char *name = sinkproof_point_name((sinkproof_point)p);
            bool meant = point_is_read((sinkproof_point)p) && (any || strcmp(word, name) == 0);
            named[p] = named[p] || meant, known = known || meant;
        }
        if (!known) return unknown_read(word, error);
    }
    memcpy(unrounded, named, sizeof named);
    return true;
}

static bool unknown_key(const char *word, sinkproof_error *error) {
    char list[1000] = "";
    for (size_t key = 0; key < KEYS; key++) append_word(list, sizeof list, key_name(key));
    return sinkproof_fail(error, "unknown override '%s' of a policy: %sknown are %s", word,
                          sinkproof_guess_in_list(word, list).text, list);
}

// Parses one "KEY=VALUE". `word` is split in place; *key receives the key's number.
static bool parse_override(char *word, sinkproof_policy *policy, size_t *key,
                           sinkproof_error *error) {
    char *value = strchr(word, '=');
    if (value == NULL)
        return sinkproof_fail(error, "'%s' is not an override of the form POINT=FORMAT", word);
    *value++ = '\0';
    for (*key = 0; *key < KEYS && strcmp(word, key_name(*key)) != 0;) ++*key;
    if (*key == KEYS) return unknown_key(word, error);
    size_t function = *key - AT_POINTS;
    if (*key < AT_POINTS)
        return parse_rounding((sinkproof_point)*key, value, &policy->at[*key], error);
    if (function < SINKPROOF_FUNCTION_COUNT)
        return parse_ulp(word, value, &policy->ulp[function],
                         function == SINKPROOF_EXP ? &policy->exp_growth : NULL, error);
    if (*key < FORM_KEYS + SINKPROOF_FORMED_COUNT) {
        sinkproof_formed stage = (sinkproof_formed)(*key - FORM_KEYS);
        return parse_forms(stage, value, &policy->forms[stage], error);
    }
    if (strcmp(word, "weights") == 0) return parse_weights(value, &policy->weights, error);
    if (strcmp(word, "ftz") == 0)
        return parse_one_of_two(word, value, "allowed", "none", &policy->ftz, error);
    if (strcmp(word, "unrounded") == 0) return parse_unrounded(value, policy->unrounded, error);
    if (strcmp(word, "inside") == 0) return parse_inside_format(value, &policy->inside, error);
    return parse_one_of_two(word, value, "truncate", "config", &policy->yarn_truncate, error);
}

// Removes comments and white space from one line, in place.
static void strip_comment_and_space(char *line) {
    char *out = line;
    for (char *in = line; *in != '\0' && *in != '#'; in++)
        if (!isspace((unsigned char)*in)) *out++ = *in;
    *out = '\0';
}

static bool parse_lines(const char *path, char *text, sinkproof_policy *policy,
                        sinkproof_error *error) {
    bool stated[KEYS] = {false};
    size_t number = 0, key;
    for (char *line; (line = strsep(&text, "\n")) != NULL;) {
        sinkproof_error inner;
        number++;
        strip_comment_and_space(line);
        if (line[0] == '\0') continue;
        if (!parse_override(line, policy, &key, &inner))
            return sinkproof_fail(error, "%.200s line %zu: %.700s", path, number, inner.text);
        if (stated[key])
            return sinkproof_fail(error, "%.200s line %zu: %s is stated twice", path, number,
                                  key_name(key));
        stated[key] = true;
    }
    for (key = 0; key < KEYS; key++)
        if (!stated[key])
            return sinkproof_fail(error,
                                  "%.200s: a policy in a file states every point: %s is missing",
                                  path, key_name(key));
    return true;
}

static bool parse_file(const char *path, sinkproof_policy *policy, sinkproof_error *error) {
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return sinkproof_fail(error, "%.300s: expected a policy, cannot be opened", path);
    char *text = malloc(FILE_LIMIT + 1);
    size_t length = text != NULL ? fread(text, 1, FILE_LIMIT + 1, file) : 0;
    bool whole = text != NULL && !ferror(file) && length <= FILE_LIMIT;
    fclose(file);
    if (whole) text[length] = '\0';
    bool good =
        whole && strlen(text) == length
            ? parse_lines(path, text, policy, error)
            : sinkproof_fail(error, "%.300s: not a policy: expected a text of at most %d bytes",
                             path, FILE_LIMIT);
    free(text);
    return good;
}

static bool parse_base(const char *word, sinkproof_policy *policy, sinkproof_error *error) {
    if (word[0] == '@') return parse_file(word + 1, policy, error);
    if (sinkproof_policy_known(word, policy)) return true;
    char list[256] = "";
    for (const char *const *name = sinkproof_policy_names(); *name != NULL; name++)
        append_word(list, sizeof list, *name);
    return sinkproof_fail(error, "unknown policy '%s': %sknown are %s, or @FILE", word,
                          sinkproof_guess_in_list(word, list).text, list);
}

// What one word says of several points.
static bool parse_word(char *word, sinkproof_policy *policy, sinkproof_error *error) {
    size_t key;
    if (strncmp(word, "acc=", 4) == 0) return parse_every_sum(word + 4, policy, error);
    if (strncmp(word, "ranks=", 6) == 0) return parse_ranks(word + 6, policy, error);
    if (strncmp(word, "slices=", 7) == 0) return parse_slices(word + 7, policy, error);
    return parse_override(word, policy, &key, error);
}

// The next word of `rest`, which it shortens: up to a comma that is in no parentheses.
static char *next_override(char **rest) {
    char *word = *rest, *end = word;
    if (word == NULL) return NULL;
    for (int open = 0; *end != '\0' && (*end != ',' || open > 0); end++)
        open += *end == '(' ? 1 : *end == ')' ? -1 : 0;
    *rest = *end == ',' ? end + 1 : NULL;
    *end = '\0';
    return word;
}

// `rest` is split in place.
static bool parse_overrides(char *rest, sinkproof_policy *policy, sinkproof_error *error) {
    for (char *word; (word = next_override(&rest)) != NULL;)
        if (!parse_word(word, policy, error)) return false;
    return true;
}

bool policy_refine(const char *overrides, sinkproof_policy *policy, sinkproof_error *error) {
    char words[SINKPROOF_POLICY_NAME];
    snprintf(words, sizeof words, "%s", overrides);
    return parse_overrides(words, policy, error);
}

bool sinkproof_policy_parse(const char *text, sinkproof_policy *policy, sinkproof_error *error) {
    sinkproof_policy parsed;
    if (strlen(text) >= sizeof parsed.name)
        return sinkproof_fail(error, "a policy of %s: at most %zu are read",
                              sinkproof_counted(strlen(text), "character").text,
                              sizeof parsed.name - 1);
    char words[sizeof parsed.name];
    memset(&parsed, 0, sizeof parsed);
    strcpy(parsed.name, text);
    strcpy(words, text);
    char *rest = words, *word = strsep(&rest, ",");
    if (!parse_base(word, &parsed, error) || !parse_overrides(rest, &parsed, error)) return false;
    *policy = parsed;
    return true;
}
