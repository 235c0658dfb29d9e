// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Parses the choices of a design by name.
#include "audit/designs/choices.h"

#include "base/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum number { BY = SINKPROOF_CHOICES, TIMES, DIMS, WINDOW, PREFIX, VALUE_BIAS, UNSCALED, KEYS };

// For a choice its kinds, in the words of the table (ref/variants/designs.c); for a number its
// description.
static const struct {
    const char *key, *what;
} keys[KEYS] = {
    [SINKPROOF_CHOICE_FEATURE] = {"feature", NULL},
    [SINKPROOF_CHOICE_SIMILARITY] = {"similarity", NULL},
    [SINKPROOF_CHOICE_DIVISOR] = {"divisor", NULL},
    [SINKPROOF_CHOICE_STAR] = {"star", NULL},
    [SINKPROOF_CHOICE_STAR_VALUE] = {"star-value", NULL},
    [SINKPROOF_CHOICE_PLACES] = {"places", NULL},
    [SINKPROOF_CHOICE_SEEN] = {"seen", NULL},
    [SINKPROOF_CHOICE_GATE] = {"gate", NULL},
    [BY] = {"by", "a positive number"},
    [TIMES] = {"times", "a number"},
    [DIMS] = {"dims", "a whole number"},
    [WINDOW] = {"window", "a whole number, 1 or more"},
    [PREFIX] = {"prefix", "a whole number"},
    [VALUE_BIAS] = {"value-bias", "0 or 1"},
    [UNSCALED] = {"unscaled", "0 or 1"},
};

// The index of a word in a list of words; -1: not in the list.
static int word_index(const char *names, const char *word, size_t length) {
    int place = 0;
    for (const char *at = names; *at != '\0'; place++) {
        size_t own = strcspn(at, " ");
        if (own == length && strncmp(at, word, own) == 0) return place;
        at += own + (at[own] == ' ');
    }
    return -1;
}

static void set_choice_value(sinkproof_variant *v, sinkproof_choice key, int value) {
    switch (key) {
    case SINKPROOF_CHOICE_FEATURE:
        v->feature = (sinkproof_feature)value;
        break;
    case SINKPROOF_CHOICE_SIMILARITY:
        v->similarity = (sinkproof_similarity)value;
        break;
    case SINKPROOF_CHOICE_DIVISOR:
        v->divisor = (sinkproof_divisor)value;
        break;
    case SINKPROOF_CHOICE_STAR:
        v->star = (sinkproof_star)value;
        break;
    case SINKPROOF_CHOICE_STAR_VALUE:
        v->star_value = (sinkproof_star_value)value;
        break;
    case SINKPROOF_CHOICE_PLACES:
        v->places = (sinkproof_places)value;
        break;
    case SINKPROOF_CHOICE_SEEN:
        v->seen = (sinkproof_keys_seen)value;
        break;
    case SINKPROOF_CHOICE_GATE:
        v->gate = (sinkproof_gate)value;
        break;
    case SINKPROOF_CHOICES:
        break;
    }
}

// Returns false if the number is not valid for this key.
static bool set_number(sinkproof_variant *v, int key, double x) {
    bool whole = x >= 0 && x <= 0x1p31 && x == floor(x);
    switch (key) {
    case BY:
        v->divisor_by = x;
        return x > 0;
    case TIMES:
        v->star_times = x;
        return true;
    case DIMS:
        v->star_dims = whole ? (size_t)x : 0;
        return whole;
    case WINDOW:
        v->window = whole ? (size_t)x : 0;
        return whole && x > 0;
    case PREFIX:
        v->prefix = whole ? (size_t)x : 0;
        return whole;
    default:
        *(key == UNSCALED ? &v->unscaled : &v->value_bias) = x == 1;
        return x == 0 || x == 1;
    }
}

static bool set_choice(sinkproof_variant *v, const char *word, size_t length,
                       sinkproof_error *error) {
    size_t key_length = strcspn(word, "="), from = key_length + 1;
    int key = 0;
    char *end, known[256] = "";
    while (key < KEYS &&
           !(strlen(keys[key].key) == key_length && strncmp(keys[key].key, word, key_length) == 0))
        key++;
    if (key == KEYS || from > length) {
        for (int k = 0; k < KEYS; k++)
            snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", k > 0 ? ", " : "",
                     keys[k].key);
        return sinkproof_fail(error, "expected KEY=VALUE with KEY one of %s; found \"%.*s\"", known,
                              (int)fmin((double)length, 100), word);
    }
    const char *value = word + from;
    const char *kinds =
        key < SINKPROOF_CHOICES ? sinkproof_choice_kinds((sinkproof_choice)key) : NULL;
    if (kinds != NULL) {
        int place = word_index(kinds, value, length - from);
        if (place >= 0) {
            set_choice_value(v, (sinkproof_choice)key, place);
            return true;
        }
    } else {
        double x = strtod(value, &end);
        if (isfinite(x) && end == word + length && end > value && set_number(v, key, x))
            return true;
    }
    return sinkproof_fail(error, "%s: expected %s%s, found \"%.*s\"", keys[key].key,
                          kinds != NULL ? "one of " : "", kinds != NULL ? kinds : keys[key].what,
                          (int)fmin((double)(length - from), 100), value);
}

// Checks and completes choices that depend on each other.
static bool settle_choices(sinkproof_variant *v, sinkproof_error *error) {
    bool windowed = v->seen == SINKPROOF_SEEN_WINDOW || v->seen == SINKPROOF_SEEN_FIRST_RECENT;
    bool divides = v->divisor == SINKPROOF_DIVISOR_SCALED || v->divisor == SINKPROOF_DIVISOR_POWER;
    bool keyless = v->star == SINKPROOF_STAR_NONE || v->star == SINKPROOF_STAR_TOKEN;
    if (windowed && v->window == 0)
        return sinkproof_fail(error, "seen: a window needs window=N, found none");
    if (divides && !(v->divisor_by > 0))
        return sinkproof_fail(error, "divisor: scaled and power need by=NUMBER, found none");
    if (keyless && v->star_value != SINKPROOF_STAR_VALUE_NONE)
        return sinkproof_fail(error, "star-value: expected star=key, score or zero, found %s",
                              v->star == SINKPROOF_STAR_NONE ? "none" : "token");
    return true;
}

static bool unknown_design(const char *name, sinkproof_error *error) {
    sinkproof_guess guess = {.given = name};
    for (size_t k = 0; sinkproof_variant_at(k) != NULL; k++)
        sinkproof_guess_try(&guess, sinkproof_variant_at(k)->name);
    return sinkproof_fail(
        error, "%sexpected a design that `sinkproof sinks --list` names, found \"%.60s\"",
        sinkproof_guess_sentence(&guess).text, name);
}

bool design_parse(const char *text, sinkproof_variant *out, sinkproof_error *error) {
    size_t length = strcspn(text, ",");
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)fmin((double)length, sizeof name - 1), text);
    const sinkproof_variant *known = sinkproof_variant_find(name);
    if (known == NULL || strlen(name) != length) return unknown_design(name, error);
    sinkproof_variant v = *known;
    for (const char *at = text + length; *at == ','; at += length) {
        at++;
        length = strcspn(at, ",");
        if (!set_choice(&v, at, length, error)) return false;
        bool window = strncmp(at, "window=", 7) == 0, prefix = strncmp(at, "prefix=", 7) == 0;
        if (v.seen == SINKPROOF_SEEN_CAUSAL && window) v.seen = SINKPROOF_SEEN_WINDOW;
        if (v.seen == SINKPROOF_SEEN_CAUSAL && prefix) v.seen = SINKPROOF_SEEN_PREFIX;
    }
    if (!settle_choices(&v, error)) return false;
    *out = v;
    return true;
}
