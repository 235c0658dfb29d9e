// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Every statement of proofs/exact on drawn instances: both sides are exactly equal. Every wrong
// form is refuted by an instance, which is printed. The check itself finds a broken equation: for
// each statement, one side is replaced by a version that is wrong in one entry.
#include "proofs/exact/exact.h"
#include "tests/shared/only.h"
#include "tests/shared/tap.h"

#include <stdlib.h>
#include <string.h>

enum { INSTANCES = 200, SEED = 1 };

// Lines of text as TAP notes.
static void notes(char *text) {
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
        note("%.200s", line);
    free(text);
}

static void statements(void) {
    const sinkproof_exact_statement *s;
    for (size_t k = 0; (s = sinkproof_exact_statement_at(k)) != NULL; k++) {
        if (!is_asked(s->id)) continue;
        sinkproof_exact_outcome o = sinkproof_exact_check(s, SEED, INSTANCES);
        if (!ok(o.instances > 0 && o.unequal == 0,
                "%s exact instances=%zu unequal=%zu bound=0 seed=%d, %s = %s", s->id, o.instances,
                o.unequal, SEED, s->left_text, s->right_text))
            notes(sinkproof_exact_describe(s, SEED, o.first_unequal));
    }
}

static void wrong_forms(void) {
    const sinkproof_exact_statement *s;
    for (size_t k = 0; (s = sinkproof_exact_wrong_form_at(k)) != NULL; k++) {
        if (!is_asked(s->id)) continue;
        sinkproof_exact_outcome o = sinkproof_exact_refute(s, SEED, INSTANCES);
        if (ok(o.unequal > 0, "%s refuted, instance=%llu seed=%d: %s is not %s", s->id,
               (unsigned long long)o.first_unequal, SEED, s->left_text, s->right_text))
            notes(sinkproof_exact_describe(s, SEED, o.first_unequal));
    }
}

// The planted mistakes: the last entry of the right side is off by one part in a million, or has
// the wrong sign.
static exact_side_fn planted;
static row off_a_little(const exact_instance *m) {
    row r = planted(m), copy = row_zero(r.n);
    for (size_t k = 0; k < r.n; k++) copy.at[k] = r.at[k];
    copy.at[r.n - 1] = q_add(r.at[r.n - 1], q_frac(1, 1000000));
    return copy;
}
static row wrong_sign(const exact_instance *m) {
    return row_scale(q_int(-1), planted(m));
}

static void planted_mistakes(void) {
    const sinkproof_exact_statement *s;
    size_t statements = 0, caught = 0;
    for (size_t k = 0; (s = sinkproof_exact_statement_at(k)) != NULL; k++) {
        if (!is_asked(s->id)) continue;
        sinkproof_exact_statement broken = *s;
        planted = s->right;
        broken.codes = s->codes < 100 ? s->codes : 100;
        broken.right = off_a_little;
        bool little = sinkproof_exact_check(&broken, SEED, 20).unequal == 20 ||
                      s->kind == SINKPROOF_EXACT_CODES;
        broken.right = wrong_sign;
        bool sign = sinkproof_exact_check(&broken, SEED, 20).unequal > 0;
        caught += little && sign;
        statements++;
        if (!(little && sign)) note("%s: a planted mistake was not seen", s->id);
    }
    ok(statements > 0 && caught == statements, "planted mistakes: caught=%zu of %zu statements",
       caught, statements);
}

int main(int argc, char **argv) {
    (void)argc;
    only_ids = argv + 1;
    statements();
    wrong_forms();
    planted_mistakes();
    return tap_done();
}
