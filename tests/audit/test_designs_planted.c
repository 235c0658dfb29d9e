// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Mistakes planted into the engine of a design, at which step each is convicted; what a file
// without some tensor leaves undecided; and files that are refused.
#include "audit/designs/choices.h"
#include "audit/sinkproof.h"
#include "base/splitmix.h"
#include "tests/shared/design_sheet.h"

// One layer with a change, at which step it is convicted.
static void planted(const char *what, const char *words, const char *step,
                    void (*change)(sheet *, const sinkproof_policy *)) {
    static sinkproof_drawn_head drawn[HEADS];
    static sheet one;
    sinkproof_policy policy;
    char expected[32];
    must(sinkproof_policy_known("f32", &policy));
    draw(drawn);
    one.format = DESIGN_FORMAT;
    write_layer(&one, 0, words, &policy, drawn);
    hearing before = hear(&one, 0, 0, "f32");
    change(&one, &policy);
    hearing after = hear(&one, 0, 0, "f32");
    snprintf(expected, sizeof expected, "%s%s", step[0] != '\0' ? "00." : "", step);
    ok(before.fine && outside(&before) == 0 && after.fine &&
           strcmp(convicted(&after), expected) == 0,
       "%s: honest before, then convicted at %s", what, step[0] != '\0' ? step : "no step");
    if (strcmp(convicted(&after), expected) != 0) note("at %s; %s", convicted(&after), message);
    dismiss(&before);
    dismiss(&after);
    drop(&one);
}

static void replace(sheet *s, const char *words, const sinkproof_policy *policy,
                    const char *const *names) {
    static sinkproof_drawn_head drawn[HEADS];
    static sheet other;
    draw(drawn);
    write_layer(&other, 0, words, policy, drawn);
    for (; *names != NULL; names++) {
        array *to = find(s, 0, *names), *from = find(&other, 0, *names);
        size_t width = to->shape[2] < from->shape[2] ? to->shape[2] : from->shape[2];
        for (size_t r = 0; r < to->shape[0] * to->shape[1]; r++)
            memcpy(to->x + r * to->shape[2], from->x + r * from->shape[2], width * sizeof *to->x);
    }
    drop(&other);
}

static const char *const map_and_after[] = {"alpha", "o", NULL}, *const from_scores[] = {
                                                                     "s", "alpha", "o", NULL};

static void sink_forgotten(sheet *s, const sinkproof_policy *policy) {
    replace(s, "softmax", policy, map_and_after);
}
static void one_added(sheet *s, const sinkproof_policy *policy) {
    replace(s, "off-by-one", policy, map_and_after);
}
static void window_longer(sheet *s, const sinkproof_policy *policy) {
    replace(s, "window,window=7", policy, from_scores);
}
static void window_shorter(sheet *s, const sinkproof_policy *policy) {
    replace(s, "window,window=5", policy, map_and_after);
}
static void slopes_swapped(sheet *s, const sinkproof_policy *policy) {
    (void)policy;
    array *slope = find(s, 0, "slope");
    double first = slope->x[0];
    slope->x[0] = slope->x[1];
    slope->x[1] = first;
}
static void gate_left_out(sheet *s, const sinkproof_policy *policy) {
    (void)policy;
    memcpy(find(s, 0, "gated")->x, find(s, 0, "o")->x, N * HEADS * DIM * sizeof(double));
}
static void scale_of_dim(sheet *s, const sinkproof_policy *policy) {
    (void)policy;
    array *scores = find(s, 0, "s");
    for (size_t i = 0; i < scores->count; i++) scores->x[i] /= 4;
}
static void last_is_nan(sheet *s, const sinkproof_policy *policy) {
    (void)policy;
    array *alpha = find(s, 0, "alpha");
    alpha->x[alpha->count - 1] = NAN;
}
static void query_is_nan(sheet *s, const sinkproof_policy *policy) {
    (void)policy;
    find(s, 0, "q")->x[0] = NAN; // no step of the file left it behind
}
static void heads_swapped(sheet *s, const sinkproof_policy *policy) {
    (void)policy;
    array *alpha = find(s, 0, "alpha");
    for (size_t i = 0; i < alpha->count / 2; i++) {
        double x = alpha->x[i];
        alpha->x[i] = alpha->x[alpha->count / 2 + i];
        alpha->x[alpha->count / 2 + i] = x;
    }
}
static void one_ulp_of_float16(sheet *s, const sinkproof_policy *policy) {
    (void)policy;
    find(s, 0, "alpha")->x[N * (N + 1) / 2] *= 1 + 0x1p-10;
}

// Biases of ALiBi beside the scores: of each row, and of one row for all queries, counted from the
// first key.
static void biases(sheet *s, const sinkproof_policy *policy) {
    (void)policy;
    const size_t each[] = {HEADS, N, N};
    array *bias = add(s, 0, "bias", 3, each), *slope = find(s, 0, "slope");
    for (size_t h = 0; h < HEADS; h++)
        for (size_t i = 0; i < N; i++)
            for (size_t j = 0; j <= i; j++)
                bias->x[(h * N + i) * N + j] = -slope->x[h] * (double)(i - j);
}
static void biases_from_first(sheet *s, const sinkproof_policy *policy) {
    (void)policy;
    const size_t once[] = {HEADS, 1, N};
    array *bias = add(s, 0, "bias", 3, once), *slope = find(s, 0, "slope");
    array *scores = find(s, 0, "s");
    for (size_t h = 0; h < HEADS; h++)
        for (size_t j = 0; j < N; j++) {
            bias->x[h * N + j] = slope->x[h] * (double)j;
            for (size_t i = 0; i < N; i++)
                scores->x[(h * N + i) * N + j] += slope->x[h] * (double)i;
        }
}
static void biases_of_the_next_head(sheet *s, const sinkproof_policy *policy) {
    biases(s, policy);
    slopes_swapped(s, policy);
}

static void mistakes(void) {
    planted("a sink forgotten", "gpt-oss-window,window=6", "alpha", sink_forgotten);
    planted("one is added to the denominator", "softmax", "alpha", one_added);
    planted("a window longer by one", "window,window=6", "alpha", window_longer);
    planted("a window shorter by one", "window,window=6", "alpha", window_shorter);
    planted("the slope of the next head", "alibi", "s", slopes_swapped);
    planted("the same beside its biases", "alibi", "bias", biases_of_the_next_head);
    planted("biases of each row", "alibi", "", biases);
    planted("biases from the first key", "alibi", "", biases_from_first);
    planted("the gate left out", "gated", "gated", gate_left_out);
    planted("scores over d", "softmax", "s", scale_of_dim);
    planted("a weight is NaN", "score-bias", "alpha", last_is_nan);
    planted("a query is NaN, which the file gives as it is", "softmax", "", query_is_nan);
    planted("the weights of the next head", "k-bias", "alpha", heads_swapped);
    planted("one weight off by a step of float16", "nope", "alpha", one_ulp_of_float16);
}

static void undecided(const char *words, const char *dropped, const char *step,
                      const char *missing) {
    static sinkproof_drawn_head drawn[HEADS];
    static sheet one;
    sinkproof_policy policy;
    uint64_t left_out = 0;
    must(sinkproof_policy_known("f32", &policy));
    draw(drawn);
    one.format = DESIGN_FORMAT;
    write_layer(&one, 0, words, &policy, drawn);
    for (size_t i = 0; i < one.count; i++) {
        char name[40];
        snprintf(name, sizeof name, " %s ", one.arrays[i].name + 3);
        if (strstr(dropped, name) != NULL) left_out |= UINT64_C(1) << i;
    }
    hearing h = hear(&one, 0, left_out, "f32");
    const design_verdict *v = verdict(&h, 0, step);
    bool open = v != NULL && (v->elements == 0) == (missing[0] != '\0');
    ok(open && strcmp(v->missing, missing) == 0 && outside(&h) == 0, "%s without%sleaves %s %s%s",
       words, dropped, step, missing[0] != '\0' ? "undecided for want of " : "decided", missing);
    if (v != NULL && strcmp(v->missing, missing) != 0) note("%s", v->missing);
    dismiss(&h);
    drop(&one);
}

static void omissions(void) {
    undecided("softmax", " q ", "s", "q");
    undecided("softmax", " q ", "alpha", "");
    undecided("softmax", " s ", "alpha", "");
    undecided("softmax", " s k ", "alpha", "k");
    undecided("score-bias", " star.logit ", "s", "star.logit");
    undecided("score-bias", " star.logit ", "alpha", "");
    undecided("score-bias", " star.logit s ", "alpha", "star.logit");
    undecided("kv-bias", " star.value ", "o", "star.value");
    undecided("k-bias", " star.key ", "s", "star.key");
    undecided("alibi", " slope ", "s", "slope");
    undecided("relative", " buckets s ", "alpha", "buckets");
    undecided("mlp", " mlp.1 ", "f.q", "mlp.1");
    undecided("mlp", " f.q ", "s", "f.q");
    undecided("packed", " documents ", "alpha", "documents");
    undecided("packed", " documents ", "o", "");
    undecided("gated", " gate ", "gated", "");
    undecided("gated", " gate g ", "gated", "g");
    undecided("gated", " o ", "gated", "o");
}

// ---- files that are none

typedef struct wrong {
    const char *what, *words, *name, *said; // a tensor to be changed or added
    size_t rank, shape[4];
} wrong;

static void refused(const wrong *w) {
    static sinkproof_drawn_head drawn[HEADS];
    static sheet one;
    sinkproof_policy policy;
    must(sinkproof_policy_known("f32", &policy));
    draw(drawn);
    one.format = w->rank == 9 ? "pt" : DESIGN_FORMAT;
    write_layer(&one, 0, "softmax", &policy, drawn);
    snprintf(one.design[0], sizeof one.design[0], "%s", w->words);
    if (w->name != NULL) {
        array *a = find(&one, 0, w->name);
        if (a != NULL) free(a->x);
        if (a != NULL) *a = one.arrays[--one.count];
        a = add(&one, 0, w->name, w->rank, w->shape);
        if (w->rank == 1) a->dtype = SINKPROOF_DTYPE_I32;
    }
    hearing h = hear(&one, DESIGNS, 0, "f32");
    ok(!h.read && strncmp(message, "engine.safetensors: ", 20) == 0 &&
           strstr(message, w->said) != NULL,
       "%s is refused: %s", w->what, w->said);
    if (strstr(message, w->said) == NULL) note("%s", message);
    dismiss(&h);
    drop(&one);
}

static void refusals(void) {
    static const wrong each[] = {
        {"a tensor of no step",
         "softmax",
         "beta",
         "tensor 00.beta: expected a layer",
         3,
         {1, 1, 1}},
        {"another number of rows",
         "softmax",
         "k",
         "tensor 00.k: expected shape [15, any, 16], found [14, 1, 16]",
         3,
         {14, 1, 16}},
        {"another width",
         "softmax",
         "s",
         "tensor 00.s: expected shape [2, 15, 15], found [2, 15, 17]",
         3,
         {2, 15, 17}},
        {"a star's column where there is no star",
         "softmax",
         "alpha",
         "tensor 00.alpha: expected shape [2, 15, 15], found [2, 15, 16]",
         3,
         {2, 15, 16}},
        {"heads of three",
         "softmax",
         "v",
         "tensor 00.v: expected shape [15, 1, any], found [15, 3, 16]",
         3,
         {15, 3, 16}},
        {"an empty dimension", "softmax", "o", "found [15, 2, 0]", 3, {15, 2, 0}},
        {"whole numbers as weights",
         "softmax",
         "star.logit",
         "expected dtype BF16, F16, F32 or F64, found I32",
         1,
         {2}},
        {"a gate that the design has not",
         "softmax",
         "g",
         "tensor 00.g: expected none, since the design softmax has no gate",
         3,
         {15, 2, 16}},
        {"a bias that it has not", "softmax", "bias", "has no bias of positions", 3, {2, 15, 15}},
        {"tables longer than a head",
         "softmax",
         "cos",
         "expected tables of 8 pairs or less, found 9",
         2,
         {15, 9}},
        {"features that it has not", "softmax", "f.q", "has no features", 3, {15, 2, 16}},
        {"tables of a rotation that it has not", "nope", "cos", "has no rotation", 2, {15, 4}},
        {"a base of whole numbers", "softmax", "rotary.base", "expected dtype BF16", 1, {2}},
        {"a design of no table", "softmaxx", NULL, "found \"softmaxx\"", 0, {0}},
        {"an unknown choice", "softmax,windows=3", NULL, "found \"windows=3\"", 0, {0}},
        {"a choice without a value", "softmax,window", NULL, "found \"window\"", 0, {0}},
        {"a window of none",
         "softmax,window=0",
         NULL,
         "window: expected a whole number, 1 or more, found \"0\"",
         0,
         {0}},
        {"a window of half a token", "softmax,window=2.5", NULL, "found \"2.5\"", 0, {0}},
        {"a window that nobody gave", "softmax,seen=window", NULL, "needs window=N", 0, {0}},
        {"a power that nobody gave", "softmax,divisor=power", NULL, "need by=NUMBER", 0, {0}},
        {"a similarity of no kind",
         "softmax,similarity=cosine",
         NULL,
         "expected one of exp sigmoid elu score, found \"cosine\"",
         0,
         {0}},
        {"a value of no star",
         "softmax,star-value=learned",
         NULL,
         "star-value: expected star=key",
         0,
         {0}},
        {"another format",
         "softmax",
         NULL,
         "expected metadata format sinkproof-design-1, found pt",
         9,
         {0}},
    };
    for (size_t k = 0; k < sizeof each / sizeof each[0]; k++) refused(&each[k]);
}

static void words(void) {
    sinkproof_variant v;
    sinkproof_error error;
    bool fine = design_parse(
        "softmax,star=key,star-value=even,times=-3,dims=4,places=alibi,seen=first-recent,window=9,"
        "prefix=2,gate=head,similarity=elu,divisor=power,by=2.5,feature=mlp,value-bias=1",
        &v, &error);
    ok(fine && v.star == SINKPROOF_STAR_KEY && v.star_value == SINKPROOF_STAR_VALUE_EVEN &&
           v.star_times == -3 && v.star_dims == 4 && v.places == SINKPROOF_PLACES_ALIBI &&
           v.seen == SINKPROOF_SEEN_FIRST_RECENT && v.window == 9 && v.prefix == 2 &&
           v.gate == SINKPROOF_GATE_HEAD && v.similarity == SINKPROOF_SIMILARITY_ELU_PLUS_ONE &&
           v.divisor == SINKPROOF_DIVISOR_POWER && v.divisor_by == 2.5 &&
           v.feature == SINKPROOF_FEATURE_MLP && v.value_bias,
       "every choice is set by its word");
    fine = design_parse("softmax,window=4", &v, &error);
    ok(fine && v.seen == SINKPROOF_SEEN_WINDOW && v.window == 4 &&
           design_parse("nope,prefix=3", &v, &error) && v.seen == SINKPROOF_SEEN_PREFIX &&
           v.prefix == 3,
       "a window makes a causal design one with a window, a prefix one with a prefix");
}

// What the sets of the designs do not follow: a cache of float16.
static void policy_refused(void) {
    static sinkproof_drawn_head drawn[HEADS];
    static sheet one;
    sinkproof_policy policy;
    must(sinkproof_policy_known("f32", &policy));
    draw(drawn);
    one.format = DESIGN_FORMAT;
    write_layer(&one, 0, "softmax", &policy, drawn);
    hearing h = hear(&one, 0, 0, "llama-cpp");
    ok(h.read && !h.fine && strstr(message, "rounds at A5.q") != NULL,
       "a policy whose roundings the sets do not follow is refused");
    dismiss(&h);
    drop(&one);
}

// ---- rotations

// An engine in float32 that turns the first 12 of 16 coordinates.
enum { PAIRS = 6, ROWS = 40 };
typedef struct rotation {
    const char *what, *step; // "": honest
    float base, sign;
    bool neighbours; // pairs of neighbours, not of halves
} rotation;

static void rotate(sheet *s, const rotation *how) {
    const size_t shape[] = {ROWS, HEADS, DIM}, table[] = {ROWS, PAIRS}, one[] = {1};
    uint64_t state = 9;
    array *before = add(s, 0, "unturned.q", 3, shape), *q = add(s, 0, "q", 3, shape);
    array *c = add(s, 0, "cos", 2, table), *sine = add(s, 0, "sin", 2, table);
    add(s, 0, "rotary.base", 1, one)->x[0] = 10000;
    for (size_t i = 0; i < ROWS * PAIRS; i++) {
        float inverse = 1 / powf(how->base, 2 * (float)(i % PAIRS) / (2 * PAIRS));
        float angle = (float)(i / PAIRS) * inverse;
        c->x[i] = cosf(angle);
        sine->x[i] = sinf(angle);
    }
    for (size_t e = 0; e < before->count; e++)
        before->x[e] = q->x[e] = (float)(sinkproof_draw(&state) >> 40) * 0x1p-22F - 2;
    for (size_t v = 0; v < ROWS * HEADS; v++)
        for (size_t p = 0; p < PAIRS; p++) {
            size_t first = how->neighbours ? 2 * p : p,
                   second = first + (how->neighbours ? 1 : PAIRS);
            const double *x = before->x + v * DIM;
            float cosine = (float)c->x[v / HEADS * PAIRS + p];
            float turn = how->sign * (float)sine->x[v / HEADS * PAIRS + p];
            q->x[v * DIM + first] = (float)x[first] * cosine - (float)x[second] * turn;
            q->x[v * DIM + second] = (float)x[second] * cosine + (float)x[first] * turn;
        }
}

static void rotations(void) {
    static const rotation each[] = {{"a rotation of 12 coordinates of 16", "", 10000, 1, false},
                                    {"another base", "cos", 9999, 1, false},
                                    {"a rotation backwards", "q", 10000, -1, false},
                                    {"a rotation of neighbours", "q", 10000, 1, true}};
    static sheet one;
    for (size_t k = 0; k < sizeof each / sizeof each[0]; k++) {
        one.format = DESIGN_FORMAT;
        one.designs = 1;
        snprintf(one.design[0], sizeof one.design[0], "softmax");
        rotate(&one, &each[k]);
        hearing h = hear(&one, 0, 0, "f32");
        const char *step = convicted(&h);
        bool right = each[k].step[0] == '\0'
                         ? step[0] == '\0'
                         : step[0] != '\0' && strcmp(step + 3, each[k].step) == 0;
        const design_verdict *v = verdict(&h, 0, "q"), *tables = verdict(&h, 0, "sin");
        ok(right && v != NULL && v->elements == ROWS * HEADS * DIM && tables != NULL &&
               tables->elements == ROWS * PAIRS && h.judged.count == 3,
           "bound.rope %s: %s%s", each[k].what,
           right && step[0] == '\0' ? "honest" : "convicted at ", step);
        if (!h.fine) note("%s", message);
        dismiss(&h);
        drop(&one);
    }
}

// The same from a program of one's own (audit/sinkproof.h).
static void face(void) {
    static sinkproof_drawn_head drawn[HEADS];
    static sheet one;
    sinkproof_policy policy;
    sinkproof_error error = {{0}};
    sinkproof_design_ruling *ruling;
    char *bytes;
    size_t length;
    must(sinkproof_policy_known("f32", &policy));
    draw(drawn);
    one.format = DESIGN_FORMAT;
    write_layer(&one, 0, "score-bias", &policy, drawn);
    write_file(&one, 0, 0, &bytes, &length);
    bool judged = sinkproof_judge_design_bytes(bytes, length, NULL, "f32", &ruling, &error);
    ok(judged && sinkproof_design_ruling_exit(ruling) == 0 &&
           strcmp(sinkproof_design_ruling_policy(ruling), "f32") == 0 &&
           strstr(sinkproof_design_ruling_text(ruling), "\n00.alpha ") != NULL &&
           strncmp(sinkproof_design_ruling_json(ruling), "[\n {\n  \"id\": \"00.s\"", 19) == 0,
       "a file in memory is judged by a program of one's own");
    if (judged) sinkproof_design_ruling_free(ruling);
    judged = sinkproof_judge_design_bytes(bytes, length / 2, NULL, "f32", &ruling, &error);
    ok(!judged && ruling == NULL && strncmp(error.text, "(memory): ", 10) == 0,
       "half of it is an error that says so");
    judged = sinkproof_judge_design_bytes(bytes, length, "mine", "f33", &ruling, &error);
    ok(!judged && ruling == NULL && strstr(error.text, "f33") != NULL, "a policy of no name too");
    ok(!sinkproof_judge_design(NULL, NULL, &ruling, &error) &&
           !sinkproof_judge_design("/nowhere", NULL, &ruling, &error) && ruling == NULL &&
           strstr(error.text, "/nowhere") != NULL &&
           !sinkproof_judge_design_bytes(bytes, length, NULL, NULL, NULL, &error),
       "and nothing to judge, or nowhere to put the ruling");
    sinkproof_design_ruling_free(NULL);
    free(bytes);
    drop(&one);
}

int main(void) {
    face();
    mistakes();
    omissions();
    rotations();
    refusals();
    policy_refused();
    words();
    return tap_done();
}
