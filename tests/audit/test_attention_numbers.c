// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Of causes that a trace does not tell apart, the one with the fewest numbers is told first, and
// those that differ from another in their numbers alone are told beside it.
#include "audit/diagnose/attention_screen.h"
#include "audit/diagnose/diagnosis_report.h"
#include "tests/shared/opened.h"
#include "tests/shared/tap.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 44 };

static size_t numbers_of(const sinkproof_attending *m) {
    return attention_cause_numbers(m, ROWS);
}

static void order(void) {
    const sinkproof_attending defined = SINKPROOF_ATTENDING;
    sinkproof_attending passes = defined, unit = defined, odd = defined, head = defined;
    passes.cache = (sinkproof_cache_read){.kind = SINKPROOF_CACHE_PASSES, .times = 1};
    passes.passes.of = (sinkproof_row_passes){20, 12, 32};
    unit.window_unit = 12;
    odd.window_unit = 13;
    ok(numbers_of(&defined) == 0, "the definition has no number");
    ok(numbers_of(&unit) < numbers_of(&odd), "a block of 12 before one of 13");
    unit.first_row = odd.first_row = 8, unit.end_row = odd.end_row = 32;
    ok(numbers_of(&passes) < numbers_of(&odd) && numbers_of(&passes) < numbers_of(&unit),
       "passes of 20, 12 and then single rows before a unit at positions 8-31 alone");
    passes.passes.of = (sinkproof_row_passes){20, 1, 20};
    ok(numbers_of(&passes) == 1, "a prompt and single rows have one number");
    passes.passes.of = (sinkproof_row_passes){16, 16, ROWS};
    ok(numbers_of(&passes) == 1, "and passes of one length");
    head.first_head = 3, head.end_head = 4;
    ok(numbers_of(&head) > 0, "some heads have numbers");
    head.times_error = 0;
    size_t exact = numbers_of(&head);
    head.times_error = 0.01;
    ok(exact < numbers_of(&head), "an exact number before one that is fitted");
}

static void report(void) {
    static const char *const ids[] = {"row-unit=28", "tiles=8", "row-unit=14", "tiles=9", "block"};
    known_mistake of[5];
    diagnosed_finding f = {.points = 1u << TRACE_A11, .point = TRACE_A11, .n_alike = 5};
    sinkproof_diagnosis d = {.n = 1, .findings = &f, .tokens = ROWS};
    sinkproof_model *model = open_model("synthetic:tiny");
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    for (size_t i = 0; i < 5; i++) {
        of[i] = (known_mistake){.id = ids[i], .text = "a cause"};
        f.alike[i] = (mistakes_together){1, {&of[i]}};
    }
    f.layers[0] = true;
    sinkproof_diagnosis_print(out, sinkproof_model_config(model), &d);
    fclose(out);
    const char *wanted = "    by a cause [row-unit=28]\n"
                         "      or with other numbers: [row-unit=14]\n"
                         "    or a cause [tiles=8]\n"
                         "      or with other numbers: [tiles=9]\n"
                         "    or a cause [block]\n"
                         "    (this trace does not tell one from the other)\n";
    ok(strstr(text, wanted) != NULL, "five explanations are told as three, with all numbers");
    if (strstr(text, wanted) == NULL) note("%s", text);
    free(text);
    sinkproof_model_close(model);
}

int main(void) {
    order();
    report();
    return tap_done();
}
