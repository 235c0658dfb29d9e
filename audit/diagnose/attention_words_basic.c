// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// How the words of a cause in attention are put together, and its numbers.
#include "audit/diagnose/attention_words.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void append(char *to, size_t size, const char *format, va_list arguments) {
    size_t length = strlen(to);
    if (length < size) vsnprintf(to + length, size - length, format, arguments);
}

void name_cause(cause_words *w, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    append(w->id, w->id_size, format, arguments);
    va_end(arguments);
}

void say_cause(cause_words *w, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    append(w->text, w->text_size, format, arguments);
    va_end(arguments);
}

number_text number_words(const cause_words *w, double x) {
    double root = sqrt((double)w->config->head_dim);
    number_text t;
    if (x == log(2))
        snprintf(t.text, sizeof t.text, "ln(2)");
    else if (x == 1.4426950408889634)
        snprintf(t.text, sizeof t.text, "log2(e)");
    else if (x == 1 / root)
        snprintf(t.text, sizeof t.text, "1/sqrt(head_dim), %.7g", x);
    else if (x == root)
        snprintf(t.text, sizeof t.text, "sqrt(head_dim), %.7g", x);
    else
        snprintf(t.text, sizeof t.text, "%.7g", x);
    return t;
}
