// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof verify` on its own terms: every statement holds and reports what was measured; each
// statement with exact forms or identities is broken on purpose, one side off by a little, and the
// command then exits with 1; unknown ids and bad options exit with 2.
#include "audit/command.h"
#include "audit/verify.h"
#include "tests/tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const verify_options usual = {.bits = 64, .seed = 2, .instances = 12};

static void all_hold(void) {
    const verify_statement *s;
    for (size_t k = 0; (s = sinkproof_verify_statement_at(k)) != NULL; k++) {
        verify_result r = sinkproof_verify(s, &usual, NULL);
        if (r.exact_forms + r.identities + r.measure.values == 0) continue; // only stated
        ok(r.holds,
           "%s verify exact=%zu unequal=%zu enclosed=%zu broken=%zu share=%.2g measured=%zu "
           "worst=%.2g bound=1 seed=2",
           s->id, r.exact.instances, r.exact.unequal, r.ball.entries, r.ball.broken, r.ball.share,
           r.measure.values, r.measure.worst);
    }
}

static const sinkproof_exact_statement *exact_of(const char *id) {
    const sinkproof_exact_statement *s;
    for (size_t k = 0; (s = sinkproof_exact_statement_at(k)) != NULL; k++)
        if (strcmp(s->id, id) == 0) return s;
    return NULL;
}
static const sinkproof_identity *identity_of(const char *id) {
    const sinkproof_identity *s;
    for (size_t k = 0; (s = sinkproof_identity_at(k)) != NULL; k++)
        if (strcmp(s->id, id) == 0) return s;
    return NULL;
}

static sinkproof_exact_side exact_side;
static row off_by_little(const sinkproof_exact_instance *m) {
    row r = exact_side(m), copy = row_zero(r.n);
    for (size_t k = 0; k < r.n; k++) copy.at[k] = q_add(r.at[k], q_frac(1, 1000000000));
    return copy;
}
static sinkproof_ball_side ball_side;
static void ball_off_by_little(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    ball_side(out, m, bits);
    arb_t t;
    arb_init(t);
    arb_mul_2exp_si(t, out, -50);
    arb_add(out, out, t, bits);
    arb_clear(t);
}

// The command in a child, its output thrown away.
static int run(const char *const *words, const verify_plant *plant) {
    char name[] = "sinkproof verify", *argv[16] = {name};
    int argc = 1;
    for (; words[argc - 1] != NULL; argc++) argv[argc] = (char *)(uintptr_t)words[argc - 1];
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int nothing = open("/dev/null", O_WRONLY);
        dup2(nothing, 1);
        dup2(nothing, 2);
        exit(sinkproof_verify_command(argc, argv, plant));
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void broken_on_purpose(void) {
    const verify_statement *s;
    for (size_t k = 0; (s = sinkproof_verify_statement_at(k)) != NULL; k++) {
        const sinkproof_exact_statement *exact = exact_of(s->id);
        const sinkproof_identity *identity = identity_of(s->id);
        bool caught_exact = true, caught_ball = true;
        if (exact != NULL) {
            sinkproof_exact_statement wrong = *exact;
            exact_side = exact->right;
            wrong.right = off_by_little;
            wrong.codes = wrong.codes < 64 ? wrong.codes : 64;
            verify_plant plant = {.exact = &wrong};
            verify_options quick = {.bits = 64, .seed = 2, .instances = 2};
            caught_exact = !sinkproof_verify(s, &quick, &plant).holds;
        }
        if (identity != NULL && identity->relation == SINKPROOF_BALL_EQUAL) {
            sinkproof_identity wrong = *identity;
            ball_side = identity->left;
            wrong.left = ball_off_by_little;
            verify_plant plant = {.identity = &wrong};
            caught_ball = !sinkproof_verify(s, &usual, &plant).holds;
        }
        if (exact == NULL && identity == NULL) continue;
        ok(caught_exact && caught_ball, "%s broken on purpose is BROKEN%s%s", s->id,
           exact != NULL ? ", exact" : "", identity != NULL ? ", enclosed" : "");
    }
}

static void exit_codes(void) {
    sinkproof_exact_statement wrong = *exact_of("sink.mass");
    exact_side = wrong.right;
    wrong.right = off_by_little;
    verify_plant plant = {.exact = &wrong};
    static const struct {
        const char *words[6];
        bool planted;
        int code;
        const char *what;
    } table[] = {
        {{"sink.mass", "--bits", "64"}, false, 0, "holds"},
        {{"sink.mass", "--bits", "64"}, true, 1, "broken on purpose"},
        {{"sink.mass", "--json", "-"}, true, 1, "broken on purpose, as JSON"},
        {{"law.shift"}, true, 0, "another one is broken"},
        {{"sink.mas"}, false, 2, "an unknown id"},
        {{"--bits", "x"}, false, 2, "bits that are no number"},
        {{"--bits", "-5"}, false, 2, "negative bits"},
        {{"--seed", ""}, false, 2, "an empty seed"},
        {{"--instances", "0"}, false, 2, "no instances"},
        {{"--nonsense"}, false, 2, "an unknown option"},
        {{"--list"}, false, 0, "the list"},
        {{"sink.mass", "--json", "/nonexistent/x"}, false, 3, "no place to write"},
    };
    for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
        int code = run(table[k].words, table[k].planted ? &plant : NULL);
        ok(code == table[k].code, "command.verify %s: exit=%d expected=%d", table[k].what, code,
           table[k].code);
    }
}

int main(void) {
    all_hold();
    broken_on_purpose();
    exit_codes();
    flint_cleanup();
    mpfr_free_cache();
    return tap_done();
}
