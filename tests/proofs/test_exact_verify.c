// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof verify`: every statement of the inventory holds and has the evidence that its letters
// ask for. Every exact form and every identity is broken on purpose: one side is changed a little,
// or the sides of an inequality are exchanged. A value just outside its set, a proof without a
// record and a letter without evidence are refused. The exit codes say so.
#include "audit/command/command.h"
#include "audit/verify/verify.h"
#include "tests/shared/only.h"
#include "tests/shared/tap.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const verify_options usual = {.bits = 64, .seed = 2, .instances = 12};

static void all_hold(void) {
    const verify_statement *s;
    for (size_t k = 0; (s = sinkproof_verify_statement_at(k)) != NULL; k++) {
        if (!is_asked(s->id)) continue;
        verify_result r = sinkproof_verify(s, &usual, NULL);
        ok(r.holds && r.missing[0] == '\0',
           "%s verify exact=%zu unequal=%zu enclosed=%zu broken=%zu share=%.2g measured=%zu "
           "experiment=%zu missing=%s worst=%.2g bound=1 seed=2",
           s->id, r.exact.instances, r.exact.unequal, r.ball.entries, r.ball.broken, r.ball.share,
           r.measure.values, r.experiment.values, r.missing[0] == '\0' ? "-" : r.missing,
           r.measure.worst);
    }
}

// ---- the inventory ------------------------------------------------------------------------------

static const verify_statement *stated(const char *id) {
    const verify_statement *s;
    for (size_t k = 0; (s = sinkproof_verify_statement_at(k)) != NULL; k++)
        if (strcmp(s->id, id) == 0) return s;
    return NULL;
}

// What is registered as evidence belongs to a statement of the book, and once stated is once
// listed.
static void inventory(void) {
    static const char *const known[] = {"repeat.sink", "mask.causal", "mask.window", "bf16.decode"};
    const sinkproof_exact_statement *e;
    const sinkproof_identity *i;
    const verify_check *c;
    size_t strangers = 0, registered = 0, absent = 0, twice = 0;
    for (size_t k = 0; (e = sinkproof_exact_statement_at(k)) != NULL; k++)
        strangers += stated(e->id) == NULL, registered++;
    for (size_t k = 0; (i = sinkproof_identity_at(k)) != NULL; k++)
        strangers += stated(i->id) == NULL, registered++;
    for (size_t k = 0; (c = verify_check_at(k)) != NULL; k++) {
        const verify_statement *s = stated(c->id);
        strangers += s == NULL || strchr("BE", c->letter) == NULL, registered++;
    }
    ok(strangers == 0, "verify: of %zu registered pieces of evidence %zu are for no statement",
       registered, strangers);
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) absent += stated(known[k]) == NULL;
    const verify_statement *s;
    for (size_t k = 0; (s = sinkproof_verify_statement_at(k)) != NULL; k++)
        twice += stated(s->id) != s;
    ok(absent == 0 && twice == 0 && sinkproof_verify_count() > 90,
       "verify: %zu statements, each once", sinkproof_verify_count());
}

// A statement that asks for a letter which nothing delivers; a proof by what is known of it.
static void lacking(void) {
    static const struct {
        const char *id, *letters, *missing;
        verify_proof_state proof;
    } table[] = {
        {"sink.mass", "CQB", "", VERIFY_PROOF_PROVED},
        {"sink.mass", "CQB", "", VERIFY_PROOF_RECORDED},
        {"sink.mass", "CQB", "C", VERIFY_PROOF_OUTDATED},
        {"sink.mass", "CQB", "C", VERIFY_PROOF_DEFINED},
        {"sink.mass", "CQB", "C", VERIFY_PROOF_NONE},
        {"sink.mass", "CQBE", "E", VERIFY_PROOF_PROVED},
        {"sink.mass", "DQB", "D", VERIFY_PROOF_PROVED},
        {"sink.nothing", "QBE", "QBE", VERIFY_PROOF_PROVED},
        {"stat.drift", "BE", "", VERIFY_PROOF_NONE},
        {"bound.ftz", "BE", "E", VERIFY_PROOF_NONE},
    };
    for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
        verify_statement s = {.id = table[k].id, .letters = table[k].letters, .defined = ""};
        s.proof.state = table[k].proof;
        verify_result r = sinkproof_verify(&s, &usual, NULL);
        ok(r.holds && strcmp(r.missing, table[k].missing) == 0,
           "verify: %s {%s}, its proof in state %d: missing \"%s\", expected \"%s\"", s.id,
           s.letters, (int)s.proof.state, r.missing, table[k].missing);
    }
}

// ---- values beside their sets -------------------------------------------------------------------

// The truth 1 in the set [1/2, 9]: room of 1/2 below, of 8 above.
static void sides_of_a_set(void) {
    static const struct {
        double value, worst;
        size_t wrong;
        const char *what;
    } table[] = {
        {1, 0, 0, "the truth"},
        {0.5, 1, 0, "the nearer end"},
        {9, 1, 0, "the farther end"},
        {0.75, 0.5, 0, "half way to the nearer end"},
        {0.499, INFINITY, 1, "just outside on the nearer side"},
        {-6, INFINITY, 1, "outside on the nearer side, nearer than the farther end"},
        {9.001, INFINITY, 1, "just outside on the farther side"},
        {NAN, INFINITY, 1, "no number"},
        {INFINITY, INFINITY, 1, "infinity"},
    };
    arb_t truth;
    arb_init(truth);
    arb_one(truth);
    sinkproof_honest set = {.lo = 0.5, .hi = 9, .mid = 1}, elsewhere = {.lo = 2, .hi = 9, .mid = 3};
    for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
        verify_measure m = {.bound = NULL};
        verify_add_set_values(&m, truth, &set, &table[k].value, 1);
        ok(m.values == 1 && m.wrong == table[k].wrong && m.worst == table[k].worst,
           "verify: %s, %g: wrong=%zu expected=%zu, %g of its room, expected %g", table[k].what,
           table[k].value, m.wrong, table[k].wrong, m.worst, table[k].worst);
    }
    verify_measure m = {.bound = NULL};
    verify_add_set_values(&m, truth, &elsewhere, &elsewhere.mid, 1);
    ok(m.wrong == 1, "verify: a set without the truth is wrong");
    m = (verify_measure){.bound = NULL};
    verify_add_comparison(&m, 0, NAN), verify_add_comparison(&m, NAN, 1);
    ok(m.wrong == 2, "verify: a bound or an error that is no number is wrong: %zu of 2", m.wrong);
    arb_clear(truth);
}

// ---- broken on purpose --------------------------------------------------------------------------

static const sinkproof_exact_statement *exact_of(const char *id) {
    const sinkproof_exact_statement *s;
    for (size_t k = 0; (s = sinkproof_exact_statement_at(k)) != NULL; k++)
        if (strcmp(s->id, id) == 0) return s;
    return NULL;
}

static exact_side_fn exact_side;
static row off_by_little(const exact_instance *m) {
    row r = exact_side(m), copy = row_zero(r.n);
    for (size_t k = 0; k < r.n; k++) copy.at[k] = q_add(r.at[k], q_frac(1, 1000000000));
    return copy;
}
// Of each entry: 2^-50, or a quarter of a derivative, which is known to 2^-16 at 64 bits.
static ball_side_fn ball_side;
static slong ball_step;
static void ball_off_by_little(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    ball_side(out, m, bits);
    arb_t t;
    arb_init(t);
    arb_mul_2exp_si(t, out, ball_step);
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
        exit(run_verify_command(argc, argv, plant));
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool exact_is_caught(const verify_statement *s, const sinkproof_exact_statement *form) {
    sinkproof_exact_statement wrong = *form;
    exact_side = form->right;
    wrong.right = off_by_little;
    wrong.codes = wrong.codes < 64 ? wrong.codes : 64;
    verify_plant plant = {.exact = &wrong};
    verify_options quick = {.bits = 64, .seed = 2, .instances = 2};
    return !sinkproof_verify(s, &quick, &plant).holds;
}

static bool identity_is_caught(const verify_statement *s, const sinkproof_identity *identity) {
    sinkproof_identity wrong = *identity;
    ball_side = identity->left;
    ball_step = identity->relation == SINKPROOF_BALL_DERIVATIVE ? -2 : -50;
    if (identity->relation == SINKPROOF_BALL_LESS)
        wrong.left = identity->right, wrong.right = identity->left;
    else
        wrong.left = ball_off_by_little;
    verify_plant plant = {.identity = &wrong};
    return !sinkproof_verify(s, &usual, &plant).holds;
}

// Every form and every identity of a statement, one after the other.
static void broken_on_purpose(void) {
    const verify_statement *s;
    for (size_t k = 0; (s = sinkproof_verify_statement_at(k)) != NULL; k++) {
        if (!is_asked(s->id)) continue;
        const sinkproof_exact_statement *form;
        const sinkproof_identity *identity;
        size_t exact = 0, enclosed = 0, missed = 0;
        for (size_t f = 0; (form = sinkproof_exact_statement_at(f)) != NULL; f++)
            if (strcmp(form->id, s->id) == 0) missed += !exact_is_caught(s, form), exact++;
        for (size_t i = 0; (identity = sinkproof_identity_at(i)) != NULL; i++)
            if (strcmp(identity->id, s->id) == 0)
                missed += !identity_is_caught(s, identity), enclosed++;
        if (exact + enclosed == 0) continue;
        ok(missed == 0, "%s broken on purpose is BROKEN: exact=%zu enclosed=%zu missed=%zu", s->id,
           exact, enclosed, missed);
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

int main(int argc, char **argv) {
    (void)argc;
    only_ids = argv + 1;
    all_hold();
    inventory();
    lacking();
    sides_of_a_set();
    broken_on_purpose();
    exit_codes();
    flint_cleanup();
    mpfr_free_cache();
    return tap_done();
}
