// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Drives a plug-in stage by stage: makes the calls, judges them, and finds the smallest call that
// fails.
#include "audit/plugin/drive.h"

#include "base/splitmix.h"
#include "base/words.h"

#include <stdlib.h>
#include <string.h>

// A call that was made and is not yet judged.
typedef struct made {
    call_arrays a;
    case_outcome out[LSE_KINDS];
    bool judged, failed; // failed: this program, not the plug-in
    sinkproof_error error;
} made;

static bool call_case(const call_driver *d, const stage_case *c, made *m, sinkproof_error *error) {
    sinkproof_error said = {{0}};
    case_outcome *out = &m->out[0];
    *m = (made){.judged = true};
    // too large: not served
    if (case_is_too_large(c, &d->config)) return true;
    if (!arrays_make(c, &d->config, &d->policy, &m->a, error)) return false;
    call_end end = case_call_passes(&d->maker, c, &d->policy, &m->a, &said);
    out->served = end != CALL_NOT_SERVED;
    m->judged = end != CALL_DONE;
    out->hung = end == CALL_HUNG;
    if (end == CALL_FAILED || out->hung) {
        out->broken = true;
        out->verdict = SINKPROOF_VERDICT_BUG;
        memcpy(out->why, said.text, sizeof out->why - 1);
    }
    m->out[1] = *out;
    return end != CALL_ERROR || sinkproof_fail(error, "%s", said.text);
}

// Makes some calls in order until one breaks, then judges them in parallel, as each kind that
// A9.lse may be. *done: the number of calls made.
enum { SIDE_BY_SIDE = 16 };
static bool case_outcomes(const call_driver *d, const lse_kinds *lse, size_t n,
                          const stage_case *cases, case_outcome (*out_n)[LSE_KINDS], size_t *done,
                          sinkproof_error *error) {
    made *m = calloc(n, sizeof *m);
    bool good =
        m != NULL || sinkproof_fail(error, "no memory for %s", sinkproof_counted(n, "call").text);
    for (*done = 0; good && *done < n && (*done == 0 || !m[*done - 1].out[0].broken); ++*done)
        good = call_case(d, &cases[*done], &m[*done], error);
    n = *done;
    size_t count = good ? n : 0;
#pragma omp parallel for schedule(dynamic, 1)
    for (size_t i = 0; i < count; i++)
        if (!m[i].judged)
            m[i].failed =
                !case_judge(&cases[i], &m[i].a, &d->policy, d->rate, lse, m[i].out, &m[i].error);
    for (size_t i = 0; m != NULL && i < n; i++) {
        if (good && m[i].failed) good = sinkproof_fail(error, "%s", m[i].error.text);
        memcpy(out_n[i], m[i].out, sizeof m[i].out);
        arrays_free(&m[i].a);
    }
    free(m);
    return good;
}

bool driver_remake(const call_driver *d, const stage_case *c, call_arrays *a, bool *there,
                   sinkproof_error *error) {
    made m;
    bool good = call_case(d, c, &m, error);
    *a = m.a;
    *there = good && !m.judged;
    return good;
}

// ---- what failing calls have in common -------------------------------------------------------

static bool has_window(const stage_case *c) {
    return c->window > 0;
}
static bool fills_window(const stage_case *c) {
    return c->window > 0 && c->n > c->window;
}
static bool goes_in_passes(const stage_case *c) {
    return c->chunk > 0 && c->chunk < c->n;
}
static bool has_groups(const stage_case *c) {
    return c->heads > c->kv;
}
static bool has_many_groups(const stage_case *c) {
    return c->heads > c->kv && c->kv > 1;
}
static bool has_no_sink(const stage_case *c) {
    return c->sinks == SINK_NONE;
}
static bool has_high_sink(const stage_case *c) {
    return c->sinks >= SINK_ABOVE;
}
static bool has_several(const stage_case *c) {
    return c->n > 1;
}
static bool is_at_limits(const stage_case *c) {
    return c->recipe == RECIPE_LIMITS;
}
static bool is_tied(const stage_case *c) {
    return c->recipe == RECIPE_TIES;
}
static bool is_rising(const stage_case *c) {
    return c->recipe == RECIPE_RISING;
}
static bool is_falling(const stage_case *c) {
    return c->recipe == RECIPE_FALLING;
}
static bool is_subnormal(const stage_case *c) {
    return c->recipe == RECIPE_SUBNORMAL;
}
static bool is_huge(const stage_case *c) {
    return c->recipe == RECIPE_HUGE;
}

static const struct {
    const char *words;
    bool (*holds)(const stage_case *c);
} traits[PLUGIN_TRAITS] = {
    {"have more tokens than the window", fills_window},
    {"have a window", has_window},
    {"come in passes over a cache", goes_in_passes},
    {"have two groups of heads or more", has_many_groups},
    {"have grouped heads", has_groups},
    {"have sinks of -infinity", has_no_sink},
    {"have sinks far above the scores", has_high_sink},
    {"have inputs at the clamp's limits", is_at_limits},
    {"have tied logits", is_tied},
    {"have keys that outweigh those before them", is_rising},
    {"have keys that outweigh those behind them", is_falling},
    {"have subnormal inputs", is_subnormal},
    {"have huge inputs", is_huge},
    {"have more than one token", has_several},
};

const char *trait_sentence(size_t trait) {
    return traits[trait].words;
}

static void count_traits(stage_result *r, const stage_case *c, bool fails) {
    for (size_t t = 0; t < PLUGIN_TRAITS; t++)
        if (traits[t].holds(c)) ++*(fails ? &r->failing_with[t] : &r->passing_with[t]);
}

// ---- a stage ---------------------------------------------------------------------------------

// Whether case a is simpler to examine than b.
static bool is_smaller(const stage_case *a, const stage_case *b) {
    const size_t of_a[] = {a->chunk > 0, a->n, a->heads, a->dim, a->hidden, a->inter, a->experts};
    const size_t of_b[] = {b->chunk > 0, b->n, b->heads, b->dim, b->hidden, b->inter, b->experts};
    for (size_t i = 0; i < sizeof of_a / sizeof *of_a; i++)
        if (of_a[i] != of_b[i]) return of_a[i] < of_b[i];
    return false;
}

// Keeps a call: of `seen` calls each with the same chance.
static void keep_call(const stage_case *c, size_t seen, size_t room, size_t *n, stage_case *kept) {
    size_t at = *n;
    if (at == room)
        at = (size_t)(sinkproof_draw_nth(1, seen) % seen);
    else
        ++*n;
    if (at < room) kept[at] = *c;
}

void stage_result_add(stage_result *r, const stage_case *c, const case_outcome *out) {
    bool fails = out->verdict == SINKPROOF_VERDICT_BUG;
    if (!out->served) {
        r->not_served++;
        return;
    }
    r->calls++;
    r->failing += fails;
    r->suspicious += out->verdict == SINKPROOF_VERDICT_SUSPICIOUS;
    r->undecided += out->verdict == SINKPROOF_VERDICT_UNDECIDED;
    count_traits(r, c, fails);
    if (fails && !out->broken) keep_call(c, r->failing, CAUSES_MOST_CALLS, &r->n_failed, r->failed);
    if (out->verdict <= SINKPROOF_VERDICT_WITHIN)
        keep_call(c, r->calls - r->failing, CAUSES_MOST_PASSING, &r->n_passed, r->passed);
    bool worse = out->verdict > r->worst.verdict && out->verdict >= SINKPROOF_VERDICT_SUSPICIOUS;
    if (!worse && !(fails && is_smaller(c, &r->at))) return;
    r->worst = *out;
    r->at = *c;
}

// ---- as either kind of A9.lse

void stage_kinds_say(stage_kinds *k, lse_kinds lse) {
    k->lse = lse;
    k->tried = lse.as[LSE_WITH_SINK] && lse.as[LSE_OF_KEYS];
}

stage_kinds stage_kinds_begin(const stage_row *stage, lse_kinds lse) {
    const stage_result none = {.stage = stage};
    stage_kinds k = {.of = {none, none}};
    stage_kinds_say(&k, lse);
    return k;
}

void stage_kinds_add(stage_kinds *k, const stage_case *c, const case_outcome out[LSE_KINDS]) {
    k->with_lse +=
        case_has_lse(c) && out[k->lse.as[LSE_WITH_SINK] ? LSE_WITH_SINK : LSE_OF_KEYS].served;
    for (size_t i = 0; i < LSE_KINDS; i++) {
        if (!k->lse.as[i]) continue;
        stage_result_add(&k->of[i], c, &out[i]);
        k->outside[i] += out[i].lse_outside;
    }
}

void stage_kinds_narrow(stage_kinds *k) {
    bool fits[LSE_KINDS] = {k->outside[LSE_WITH_SINK] == 0, k->outside[LSE_OF_KEYS] == 0};
    if (k->tried && fits[LSE_WITH_SINK] != fits[LSE_OF_KEYS]) memcpy(k->lse.as, fits, sizeof fits);
}

void stage_kinds_settle(const stage_kinds *k, stage_result *result) {
    bool both = k->lse.as[LSE_WITH_SINK] && k->lse.as[LSE_OF_KEYS];
    bool keys = both ? k->outside[LSE_OF_KEYS] < k->outside[LSE_WITH_SINK] : k->lse.as[LSE_OF_KEYS];
    *result = k->of[keys ? LSE_OF_KEYS : LSE_WITH_SINK];
    result->lse = (lse_finding){k->with_lse,
                                k->tried,
                                keys ? LSE_OF_KEYS : LSE_WITH_SINK,
                                {k->outside[LSE_WITH_SINK], k->outside[LSE_OF_KEYS]}};
}

// ---- the calls

// Reduces a failing call to smaller ones, as long as one of them fails too.
static bool shrink_failing_call(const call_driver *d, stage_result *r, sinkproof_error *error) {
    enum { ROUNDS = 24 };
    const size_t kind = r->lse.kind;
    const lse_kinds lse = lse_of_kind(r->lse.calls > 0, kind);
    bool found = true;
    for (size_t round = 0; found && round < ROUNDS; round++) {
        stage_case smaller[CASE_SMALLER];
        case_outcome out[CASE_SMALLER][LSE_KINDS];
        size_t count = case_list_smaller(&r->at, smaller), done = 0;
        found = false;
        for (size_t i = 0; !found && i < count; i += done) {
            if (!case_outcomes(d, &lse, count - i, smaller + i, out + i, &done, error))
                return false;
            for (size_t t = i; !found && t < i + done; t++) {
                found = out[t][kind].served && out[t][kind].verdict == SINKPROOF_VERDICT_BUG;
                if (!found) continue;
                r->at = smaller[t];
                r->worst = out[t][kind];
            }
        }
    }
    return true;
}

bool driver_run_stage(const call_driver *d, const case_plan *plan, stage_result *r,
                      sinkproof_error *error) {
    enum { PATIENCE = 4 }; // calls that crash or hang before the rest is skipped
    size_t broken = 0, next = 0, n;
    stage_kinds k = stage_kinds_begin(plan->cases[0].stage, d->maker.lse);
    stage_kinds_settle(&k, r);
    while (next < plan->count && broken < PATIENCE && !(d->first && r->failing > 0)) {
        case_outcome out[SIDE_BY_SIDE][LSE_KINDS];
        size_t some = plan->count - next < SIDE_BY_SIDE ? plan->count - next : SIDE_BY_SIDE;
        if (!case_outcomes(d, &k.lse, some, &plan->cases[next], out, &n, error)) return false;
        for (size_t i = 0; i < n; i++) {
            stage_kinds_add(&k, &plan->cases[next + i], out[i]);
            broken += out[i][0].broken;
        }
        next += n;
        stage_kinds_narrow(&k);
        stage_kinds_settle(&k, r);
        if (d->progress != NULL)
            d->progress(d->context, r->stage->name, (double)next / (double)plan->count);
    }
    r->left_out = next < plan->count;
    // each try would wait for the timeout
    bool led_back = r->failing > 0 && plan->count > 1 && !r->worst.hung;
    return !led_back || shrink_failing_call(d, r, error);
}
