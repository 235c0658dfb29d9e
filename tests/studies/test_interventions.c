// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The interventions on GPT-2: each changes what it says, bit for bit, and nothing else; they
// combine; a changed run is honest of the changed weights.
#include "model/container.h"
#include "model/slots.h"
#include "tests/shared/intervened.h"
#include "tests/shared/judged.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

static const char *const policies[] = {"f32", "hf-bf16", "real-f64"};

// ---- weights

typedef struct expected {
    bool bq, positions, gone_c[HIDDEN];
} expected;

// How many numbers of the view are not what they are in the model, or 0 where that is asked for.
static size_t unlike(const sinkproof_model *model, const sinkproof_model *view, const expected *e) {
    static double was[512], is[512];
    const sinkproof_config *c = sinkproof_model_config(model);
    size_t wrong = 0;
    for (size_t l = 0; l < c->n_layers; l++)
        for (int s = 0; s < SINKPROOF_SLOTS; s++) {
            sinkproof_slot slot = (sinkproof_slot)s;
            sinkproof_matrix a = sinkproof_model_slot(model, l, slot);
            sinkproof_matrix b = sinkproof_model_slot(view, l, slot);
            bool none =
                (e->bq && slot == SINKPROOF_B_Q) || (e->positions && slot == SINKPROOF_POSITIONS);
            must(a.count <= 1 && a.cols <= 512 && a.rows == b.rows && a.cols == b.cols);
            for (size_t r = 0; a.count > 0 && r < a.rows; r++) {
                sinkproof_matrix_row(&a, r, was);
                sinkproof_matrix_row(&b, r, is);
                for (size_t k = 0; k < a.cols; k++) {
                    bool gone = none || (slot == SINKPROOF_W_K && e->gone_c[k]);
                    double right = gone ? 0 : was[k];
                    wrong += memcmp(&right, &is[k], sizeof right) != 0;
                }
            }
        }
    return wrong;
}

static void test_weights(const sinkproof_model *model) {
    sinkproof_policy policy = policy_of("f32");
    const struct {
        const char *what;
        sinkproof_interventions changes;
        expected e;
        size_t rows;
    } cases[] = {
        {"b_Q", CHANGES("zero-bq"), {.bq = true}, 0},
        {"listed rows", CHANGES("zero-wk-rows 3,90"), {.gone_c = {[3] = true, [90] = true}}, 2},
        {"massive rows",
         CHANGES("zero-wk-rows auto"),
         {.gone_c = {[7] = true, [40] = true, [95] = true}},
         3},
        {"positions", CHANGES("late-epe"), {.positions = true}, 0},
        {"states alone", CHANGES("zero-bos", "move-epe 1:2"), {0}, 0},
        {"all",
         CHANGES("zero-bq", "zero-wk-rows 0", "late-epe"),
         {.bq = true, .positions = true, .gone_c = {[0] = true}},
         1},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        size_t rows;
        sinkproof_intervened *made = intervened(model, &cases[k].changes, &policy);
        sinkproof_intervened_zero_rows(made, &rows);
        size_t wrong = unlike(model, sinkproof_intervened_model(made), &cases[k].e);
        ok(wrong == 0 && rows == cases[k].rows,
           "gpt2.forward %s: every weight as it was or 0, %zu are not, worst=%zu bound=0",
           cases[k].what, wrong, wrong);
        sinkproof_intervened_free(made);
    }
}

// ---- runs

enum { POINTS = 64 };
typedef struct seen {
    size_t n, count[POINTS], rank[POINTS], rows[POINTS];
    char name[POINTS][16];
    double *values[POINTS];
    void (*replace)(void *context, const char *name, size_t rank, const size_t *shape,
                    double *values);
    sinkproof_intervened *made;
} seen;

static void keep(void *context, const char *name, size_t rank, const size_t *shape,
                 const double *values) {
    seen *s = context;
    size_t p = s->n++, count = 1;
    must(p < POINTS);
    for (size_t d = 0; d < rank; d++) count *= shape[d];
    s->count[p] = count, s->rank[p] = rank, s->rows[p] = shape[0];
    snprintf(s->name[p], sizeof s->name[p], "%s", name);
    s->values[p] = malloc(count * sizeof(double));
    must(s->values[p] != NULL);
    memcpy(s->values[p], values, count * sizeof(double));
}

static void change(void *context, const char *name, size_t rank, const size_t *shape,
                   double *values) {
    const seen *s = context;
    if (s->made != NULL) sinkproof_intervention_replace(s->made, name, rank, shape, values);
}

static void run(const sinkproof_model *model, const sinkproof_policy *policy,
                sinkproof_intervened *made, seen *s) {
    int32_t tokens[N];
    const sinkproof_observer observer = {.see = keep, .context = s, .replace = change};
    sinkproof_session *session = sinkproof_session_new(model, policy);
    *s = (seen){.made = made};
    some_tokens(N, 211, 9, tokens);
    must(session != NULL && sinkproof_forward(session, N, tokens, NULL, &observer, NULL));
    sinkproof_session_free(session);
}

static void clear(seen *s) {
    for (size_t p = 0; p < s->n; p++) free(s->values[p]);
}

static const double *at(const seen *s, const char *name) {
    for (size_t p = 0; p < s->n; p++)
        if (strcmp(s->name[p], name) == 0) return s->values[p];
    printf("Bail out! no %s\n", name);
    exit(1);
}

static bool equal(size_t n, const double *a, const double *b) {
    return memcmp(a, b, n * sizeof *a) == 0;
}

// Whether the first `rows` tokens of every point are the same in both, and all tokens of what comes
// before `first`.
static bool same_until(const seen *a, const seen *b, const char *first, size_t rows) {
    bool same = a->n == b->n, before = true;
    for (size_t p = 0; same && p < a->n; p++) {
        before = before && strcmp(a->name[p], first) != 0;
        bool by_token = a->rows[p] == N; // maps have heads first
        size_t share = before ? a->count[p] : by_token ? a->count[p] / N * rows : 0;
        same = equal(share, a->values[p], b->values[p]);
    }
    return same;
}

// x + (theirs - own), each rounded; x + theirs late.
static bool moved(const sinkproof_policy *policy, bool late, size_t i, size_t from, const double *x,
                  const double *found) {
    const double *epe = some_epe(policy);
    sinkproof_format format = policy->at[AT_M12].format;
    for (size_t c = 0; c < HIDDEN; c++) {
        double own = epe[i * HIDDEN + c], theirs = epe[from * HIDDEN + c];
        double added = late ? theirs : sinkproof_round(format, theirs - own);
        double right = sinkproof_round(format, x[i * HIDDEN + c] + added);
        if (memcmp(&right, &found[i * HIDDEN + c], sizeof right) != 0) return false;
    }
    return true;
}

static void test_moves(const sinkproof_model *model, const char *name) {
    sinkproof_policy policy = policy_of(name);
    const struct {
        sinkproof_interventions changes;
        size_t from_i[N], first; // whose EPE each has; the first that is changed
    } cases[] = {
        {CHANGES("swap-epe 3:6"), {0, 1, 5, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 2},
        {CHANGES("move-epe 2:5"), {0, 4, 2, 3, 1, 5, 6, 7, 8, 9, 10, 11}, 1},
        {CHANGES("move-epe 12:4", "swap-epe 3:4", "swap-epe 9:4"),
         {0, 1, 3, 11, 4, 5, 6, 7, 3, 9, 10, 3},
         2},
    };
    seen plain, other;
    run(model, &policy, NULL, &plain);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        sinkproof_intervened *made = intervened(model, &cases[k].changes, &policy);
        run(sinkproof_intervened_model(made), &policy, made, &other);
        const double *x = at(&plain, "00.M12"), *y = at(&other, "00.M12");
        bool right = same_until(&plain, &other, "00.M12", cases[k].first);
        for (size_t i = 0; right && i < N; i++)
            right = cases[k].from_i[i] == i ? equal(HIDDEN, x + i * HIDDEN, y + i * HIDDEN)
                                            : moved(&policy, false, i, cases[k].from_i[i], x, y);
        bool differ = !equal(N * HIDDEN, at(&plain, "01.M12"), at(&other, "01.M12"));
        ok(right && differ, "gpt2.forward %s: %s, every other state as it was, bit for bit", name,
           sinkproof_interventions_describe(&cases[k].changes).text);
        sinkproof_intervened_free(made);
        clear(&other);
    }
    clear(&plain);
}

static void test_late(const sinkproof_model *model, const char *name) {
    sinkproof_policy policy = policy_of(name);
    sinkproof_interventions none = CHANGES("late-epe"), move = CHANGES("late-epe", "move-epe 1:2");
    sinkproof_intervened *alone = intervened(model, &none, &policy);
    sinkproof_intervened *both = intervened(model, &move, &policy);
    seen bare, own, other;
    run(sinkproof_intervened_model(alone), &policy, NULL, &bare); // no position at all
    run(sinkproof_intervened_model(alone), &policy, alone, &own);
    run(sinkproof_intervened_model(both), &policy, both, &other);
    const double *x = at(&bare, "00.M12"), *y = at(&own, "00.M12"), *z = at(&other, "00.M12");
    int32_t tokens[N];
    double row[HIDDEN];
    sinkproof_matrix embedding = sinkproof_model_embedding(model);
    bool right = same_until(&bare, &own, "00.M12", 0) && same_until(&bare, &other, "00.M12", 0);
    some_tokens(N, 211, 9, tokens);
    for (size_t i = 0; i < N; i++) {
        sinkproof_matrix_row(&embedding, (size_t)tokens[i], row);
        right = right && equal(HIDDEN, row, at(&own, "T0") + i * HIDDEN) &&
                moved(&policy, true, i, i, x, y) &&
                moved(&policy, true, i, i < 2 ? 1 - i : i, x, z);
    }
    ok(right,
       "gpt2.forward %s: T0 the embeddings alone, EPE late, its own or another's, bit for "
       "bit",
       name);
    clear(&bare), clear(&own), clear(&other);
    sinkproof_intervened_free(alone);
    sinkproof_intervened_free(both);
}

static void test_bos(const sinkproof_model *model, const char *name) {
    sinkproof_policy policy = policy_of(name);
    sinkproof_interventions changes = CHANGES("zero-bos");
    sinkproof_intervened *made = intervened(model, &changes, &policy);
    sinkproof_matrix positions = sinkproof_model_slot(model, 0, SINKPROOF_POSITIONS);
    double row[HIDDEN];
    seen plain, other;
    run(model, &policy, NULL, &plain);
    run(sinkproof_intervened_model(made), &policy, made, &other);
    sinkproof_matrix_row(&positions, 0, row);
    for (size_t c = 0; c < HIDDEN; c++) row[c] = round_at(&policy, AT_T0, row[c]);
    const double *x = at(&plain, "T0"), *y = at(&other, "T0");
    ok(equal(HIDDEN, row, y) && equal((N - 1) * HIDDEN, x + HIDDEN, y + HIDDEN) &&
           !equal(HIDDEN, x, y) && !equal(HIDDEN, at(&plain, "00.M12"), at(&other, "00.M12")),
       "gpt2.forward %s: the first row of T0 is its position's, every other as it was", name);
    clear(&plain), clear(&other);
    sinkproof_intervened_free(made);
}

// Nothing asked for: nothing changes. All at once: each where it is.
static void test_together(const sinkproof_model *model, const char *name) {
    sinkproof_policy policy = policy_of(name);
    sinkproof_interventions none = {0},
                            all = CHANGES("zero-bq", "zero-bos", "late-epe", "move-epe 1:2",
                                          "zero-wk-rows 5,6", "zero-wk-random 4,3");
    sinkproof_intervened *idle = intervened(model, &none, &policy);
    sinkproof_intervened *made = intervened(model, &all, &policy);
    seen plain, same, bare, other;
    run(model, &policy, NULL, &plain);
    run(sinkproof_intervened_model(idle), &policy, idle, &same);
    ok(same_until(&plain, &same, "", 0) && !sinkproof_interventions_any(&none),
       "gpt2.forward %s: no intervention is the run as it was", name);
    run(sinkproof_intervened_model(made), &policy, NULL, &bare); // the weights alone
    run(sinkproof_intervened_model(made), &policy, made, &other);
    const double *zero = (const double[HIDDEN]){0}, *q = at(&other, "00.A2.q");
    size_t rows;
    sinkproof_intervened_zero_rows(made, &rows);
    sinkproof_policy rounded = policy;
    double a1[HIDDEN], first[HIDDEN], work[4 * HIDDEN];
    sinkproof_layer layer = sinkproof_model_layer(model, 0);
    sinkproof_layernorm(&rounded, AT_A1, &layer.attn_norm, &layer.attn_norm_b,
                        sinkproof_model_config(model)->rms_eps, 1, zero, a1, work);
    memcpy(first, at(&other, "00.A1"), sizeof first);
    ok(equal(HIDDEN, zero, at(&other, "T0")) && equal(HIDDEN, a1, first) && rows == 6 &&
           equal((N - 1) * HIDDEN, at(&bare, "00.A2.q") + HIDDEN, q + HIDDEN),
       "gpt2.forward %s: all together, of no first token the first norm leaves its shift", name);
    clear(&plain), clear(&same), clear(&bare), clear(&other);
    sinkproof_intervened_free(idle);
    sinkproof_intervened_free(made);
}

// ---- the judge

// A run that is changed, and whoever looks at it.
typedef struct watched {
    const sinkproof_observer *by;
    sinkproof_intervened *made;
} watched;

static void see_changed(void *context, const char *name, size_t rank, const size_t *shape,
                        const double *values) {
    const watched *w = context;
    w->by->see(w->by->context, name, rank, shape, values);
}

static void change_watched(void *context, const char *name, size_t rank, const size_t *shape,
                           double *values) {
    const watched *w = context;
    sinkproof_intervention_replace(w->made, name, rank, shape, values);
}

static bool run_changed(void *of, const sinkproof_model *model, const sinkproof_policy *policy,
                        size_t n, const int32_t *tokens_n, const sinkproof_observer *observer,
                        sinkproof_error *error) {
    watched w = {.by = observer, .made = of};
    const sinkproof_observer both = {.see = see_changed,
                                     .context = &w,
                                     .replace = change_watched,
                                     .no_logits = observer->no_logits};
    (void)model;
    sinkproof_session *session = sinkproof_session_new(sinkproof_intervened_model(of), policy);
    bool good = session != NULL && sinkproof_forward(session, n, tokens_n, NULL, &both, error);
    sinkproof_session_free(session);
    return good;
}

// The points where something is outside, separated by spaces.
static void points_outside(const sinkproof_judgement *j, size_t room, char *text) {
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < j->n_reports && used < room; i++)
        if (j->reports[i].outside > 0)
            used += (size_t)snprintf(text + used, room - used, "%s%s", used > 0 ? " " : "",
                                     j->reports[i].name);
}

static void test_judged(const sinkproof_model *model, const char *name) {
    sinkproof_policy policy = policy_of(name);
    const struct {
        sinkproof_interventions changes;
        const char *unchanged, *changed; // outside, judged by the model as it was and as it is
    } cases[] = {
        {CHANGES("zero-bq"), "00.A2.q 01.A2.q", ""},
        {CHANGES("zero-wk-rows auto"), "00.A2.k 01.A2.k", ""},
        {CHANGES("zero-wk-random auto"), "00.A2.k 01.A2.k", ""},
        {CHANGES("zero-bos"), "T0", "T0"},
        {CHANGES("move-epe 1:2"), "00.M12", "00.M12"},
        {CHANGES("late-epe"), "T0 00.M12", "00.M12"},
        {CHANGES("zero-bq", "zero-bos", "swap-epe 1:2", "zero-wk-rows auto"),
         "T0 00.A2.q 00.A2.k 00.M12 01.A2.q 01.A2.k", "T0 00.M12"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        sinkproof_intervened *made = intervened(model, &cases[k].changes, &policy);
        const sinkproof_model *both[] = {model, sinkproof_intervened_model(made)};
        char found[2][256];
        for (int i = 0; i < 2; i++) {
            sinkproof_judgement j = judged_run(both[i], run_changed, made, name, name, N, 9, NULL);
            points_outside(&j, sizeof found[i], found[i]);
            sinkproof_judgement_free(&j);
        }
        ok(strcmp(found[0], cases[k].unchanged) == 0 && strcmp(found[1], cases[k].changed) == 0,
           "gpt2.forward %s: %s, outside of the model at \"%s\", of the changed weights at \"%s\"",
           name, sinkproof_interventions_describe(&cases[k].changes).text, found[0], found[1]);
        sinkproof_intervened_free(made);
    }
}

// ---- numbers that are none

// A NaN in an EPE is one where that EPE goes, and nowhere before.
static void test_nan(const sinkproof_model *model) {
    sinkproof_policy policy = policy_of("f32");
    double epe[N * HIDDEN];
    memcpy(epe, some_epe(&policy), sizeof epe);
    epe[4 * HIDDEN + 9] = NAN;
    sinkproof_interventions changes = CHANGES("swap-epe 3:5");
    sinkproof_intervened *made;
    seen other;
    must(sinkproof_intervened_new(model, &changes, &policy, N, epe, 0, NULL, &made, NULL));
    run(sinkproof_intervened_model(made), &policy, made, &other);
    const double *x = at(&other, "00.M12"), *end = at(&other, "F1");
    size_t nans = 0, early = 0, late = 0;
    for (size_t i = 0; i < N * HIDDEN; i++) {
        nans += isnan(x[i]) != 0;
        early += i < 2 * HIDDEN && isnan(end[i]);
        late += i >= 2 * HIDDEN && isnan(end[i]);
    }
    ok(nans == 1 && isnan(x[2 * HIDDEN + 9]) && early == 0 && late == (N - 2) * HIDDEN,
       "gpt2.forward a NaN in EPE_5 is one of position 3, and of what sees it");
    clear(&other);
    sinkproof_intervened_free(made);
}

// Of a point with fewer rows than tokens no number behind it is touched.
static void test_short(const sinkproof_model *model) {
    sinkproof_policy policy = policy_of("f32");
    sinkproof_interventions changes = CHANGES("move-epe 1:2", "zero-bos");
    sinkproof_intervened *made = intervened(model, &changes, &policy);
    double x[2 * HIDDEN] = {0};
    sinkproof_intervention_replace(made, "00.M12", 2, (size_t[]){1, HIDDEN}, x);
    sinkproof_intervention_replace(made, "01.M12", 2, (size_t[]){2, HIDDEN}, x + HIDDEN);
    sinkproof_intervention_replace(made, "F1", 2, (size_t[]){2, HIDDEN}, x + HIDDEN);
    ok(x[0] != 0 && equal(HIDDEN, (double[HIDDEN]){0}, x + HIDDEN),
       "gpt2.forward no row is changed that a point does not have, and no other point");
    sinkproof_intervened_free(made);
}

// ---- a checkpoint of the changed weights

static char temporary[] = "/tmp/sinkproof-changed-XXXXXX";

static sinkproof_model *written(const sinkproof_model *model, const char *name) {
    const sinkproof_container *hf = sinkproof_container_named("hf");
    char path[64];
    snprintf(path, sizeof path, "%s/%s", temporary, name);
    must(hf->write(hf, model, path, &(sinkproof_writing){.dequantize = false}, NULL));
    return open_model(path);
}

static void remove_written(const char *name) {
    static const char *const files[] = {"/config.json", "/model.safetensors", ""};
    char path[128];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s%s", temporary, name, files[i]);
        remove(path);
    }
}

// Of weights that are made and of some that are stored.
static void test_written(const sinkproof_model *model, const char *what) {
    sinkproof_policy policy = policy_of("f32");
    sinkproof_interventions changes = CHANGES("zero-bq", "zero-wk-rows 1,2", "late-epe");
    sinkproof_intervened *made = intervened(model, &changes, &policy);
    sinkproof_model *again = written(sinkproof_intervened_model(made), "changed");
    uint64_t a = 0, b = 1;
    seen ours, theirs;
    run(sinkproof_intervened_model(made), &policy, NULL, &ours);
    run(again, &policy, NULL, &theirs);
    ok(same_until(&ours, &theirs, "", 0) && sinkproof_model_fingerprint(again, &a, NULL) &&
           sinkproof_model_fingerprint(sinkproof_intervened_model(made), &b, NULL) && a == b,
       "gpt2.forward changed weights, %s, written: the same run of what is read, bit for bit",
       what);
    clear(&ours), clear(&theirs);
    sinkproof_model_close(again);
    sinkproof_intervened_free(made);
    remove_written("changed");
}

int main(void) {
    sinkproof_model *model = open_model("synthetic:tiny-gpt2,layers=2");
    test_weights(model);
    for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
        test_moves(model, policies[p]);
        test_late(model, policies[p]);
        test_bos(model, policies[p]);
        test_together(model, policies[p]);
        test_judged(model, policies[p]);
    }
    test_nan(model);
    test_short(model);
    must(mkdtemp(temporary) != NULL);
    sinkproof_model *stored = written(model, "stored");
    test_weights(stored);
    test_written(model, "made");
    test_written(stored, "stored");
    sinkproof_model_close(stored);
    remove_written("stored");
    remove(temporary);
    sinkproof_model_close(model);
    return tap_done();
}
