// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Every design of attention, computed by the reference, written as an engine would and judged: one
// file, a layer for each design, two heads that share keys and values. All of it is honest, and any
// part of it. The weights of the design before in the table are not.
#include "proofs/bounds/worst.h"
#include "tests/shared/design_sheet.h"

static sheet made; // the honest file

// A row of the table, its windows within the head's few rows.
static void words_of(const sinkproof_variant *v, char words[64]) {
    snprintf(words, 64, "%s%s", v->name, v->window > 0 ? ",window=6" : "");
    if (v->seen == SINKPROOF_SEEN_FIRST_RECENT) strcat(words, ",prefix=2");
}

// No rows of the table, but other choices.
static const char *const choices[] = {"softmax,unscaled=1",
                                      "k-bias,unscaled=1",
                                      "alibi,star=score",
                                      "sigmoid,gate=head",
                                      "gpt-oss-window,window=3,gate=element",
                                      "packed,star=zero",
                                      "elu-linear,star=key,dims=3",
                                      "relative,seen=first-recent,window=4,prefix=1",
                                      "softmax,divisor=one",
                                      "off-by-one,divisor=at-least-1",
                                      "softmax,divisor=power,by=1.5",
                                      "identity,divisor=power,by=2",
                                      "sigmoid,divisor=scaled,by=3"};

static void write_all(const char *name) {
    static sinkproof_drawn_head drawn[HEADS];
    sinkproof_policy policy;
    char words[64];
    must(sinkproof_policy_known(name, &policy));
    draw(drawn);
    drop(&made);
    made.format = DESIGN_FORMAT;
    for (size_t l = 0; sinkproof_variant_at(l) != NULL; l++) {
        words_of(sinkproof_variant_at(l), words);
        write_layer(&made, l, words, &policy, drawn);
    }
    for (size_t k = 0; k < sizeof choices / sizeof choices[0]; k++)
        write_layer(&made, made.designs, choices[k], &policy, drawn);
}

// ---- tests

static void honest(const char *policy) {
    hearing h = hear(&made, DESIGNS, 0, policy);
    size_t steps = 0, open = 0, elements = 0, expected = 3 * made.designs;
    double worst = 0;
    for (size_t l = 0; h.fine && l < h.trace.count; l++)
        expected += 2 * (h.trace.layers[l].variant.feature != SINKPROOF_FEATURE_SELF) +
                    2 * (h.trace.layers[l].variant.gate != SINKPROOF_GATE_NONE);
    for (size_t k = 0; h.fine && k < h.judged.count; k++) {
        const design_verdict *v = &h.judged.verdicts[k];
        steps++;
        elements += v->elements;
        open += v->elements == 0 || v->missing[0] != '\0' || v->unbounded > 0 || v->bridged;
        worst = sinkproof_keep_worst(worst, v->worst);
    }
    ok(h.fine && made.designs >= 55 && steps == expected && open == 0 && outside(&h) == 0 &&
           worst <= 1,
       "bound.similarity %zu designs of the reference are honest engines: %s, steps=%zu "
       "elements=%zu outside=%zu worst=%.3g bound=1",
       made.designs, policy, steps, elements, outside(&h), worst);
    if (outside(&h) > 0) note("first: %s %s", convicted(&h), message);
    dismiss(&h);
}

// The keys' columns of the weights of the design before, in place of a design's own.
static void neighbours(const char *policy) {
    static sheet changed;
    size_t others = 0, same = 0, wrong = 0;
    for (size_t l = 1; l < made.designs; l++) {
        array *own = find(&made, l, "alpha"), *before = find(&made, l - 1, "alpha");
        size_t n = own->shape[1];
        if (before->shape[1] != n) continue;
        changed = made;
        array *a = find(&changed, l, "alpha");
        a->x = malloc(HEADS * n * n * sizeof *a->x);
        must(a->x != NULL);
        a->shape[2] = n;
        a->count = HEADS * n * n;
        bool equal = true;
        for (size_t r = 0; r < HEADS * n; r++)
            for (size_t j = 0; j < n; j++) {
                double x = before->x[r * before->shape[2] + j];
                a->x[r * n + j] = x;
                equal = equal && x == own->x[r * own->shape[2] + j];
            }
        hearing h = hear(&changed, l, 0, policy);
        const design_verdict *v = verdict(&h, l, "alpha");
        bool bug = v != NULL && v->outside > 0;
        if (v == NULL || bug == equal) {
            wrong++;
            note("%s of %s: %s", made.design[l], made.design[l - 1], bug ? "bug" : "honest");
        }
        others += !equal;
        same += equal;
        dismiss(&h);
        free(a->x);
    }
    ok(wrong == 0 && others >= 25,
       "bound.similarity weights of the design before: %s, convicted=%zu, the same numbers=%zu, "
       "wrong=%zu",
       policy, others - (wrong < others ? wrong : others), same, wrong);
}

static uint64_t next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 20;
}

static void subsets(const char *policy) {
    uint64_t state = 5;
    size_t bugs = 0, asked = 0, open = 0;
    for (size_t l = 0; l < made.designs; l++)
        for (int round = 0; round < 3; round++) {
            uint64_t left_out = next(&state) & next(&state) & 0xffff;
            hearing h = hear(&made, l, left_out, policy);
            bugs += h.fine && outside(&h) > 0;
            if (h.fine && outside(&h) > 0) note("%s: %s", made.design[l], convicted(&h));
            for (size_t k = 0; h.fine && k < h.judged.count; k++) {
                asked++;
                open += h.judged.verdicts[k].elements == 0;
            }
            dismiss(&h);
        }
    ok(bugs == 0 && open > 0 && open < asked,
       "no part of an honest file is a bug: %s, steps=%zu undecided=%zu bugs=%zu", policy, asked,
       open, bugs);
}

// Over the reals, and in binary64 to the last bit, what is not scaled by 1/4 is what is, of queries
// times 4.
static void unscaled(void) {
    enum { ROWS = N * (N + 1), OUT = N * DIM, BITS = 128 };
    static sinkproof_drawn_head drawn[HEADS];
    sinkproof_policy policy;
    sinkproof_error error = {{0}};
    sinkproof_variant plain, scaled;
    sinkproof_variant_result a, b;
    draw(drawn);
    drawn[1] = drawn[0];
    for (size_t w = 0; w < HIDDEN * DIM; w++) drawn[1].wq_cd[w] *= 4;
    must(sinkproof_policy_known("real-f64", &policy));
    must(design_parse("k-bias,unscaled=1", &plain, &error));
    must(design_parse("k-bias", &scaled, &error));
    sinkproof_variant_head one = sinkproof_edge_head_view(&drawn[0]),
                           four = sinkproof_edge_head_view(&drawn[1]);
    must(sinkproof_variant_attend(&policy, &plain, &one, &a, &error));
    must(sinkproof_variant_attend(&policy, &scaled, &four, &b, &error));
    arb_ptr x = _arb_vec_init(ROWS), y = _arb_vec_init(ROWS), out = _arb_vec_init(OUT);
    truth_variant_head(x, out, &plain, &one, BITS);
    truth_variant_head(y, out, &scaled, &four, BITS);
    size_t apart = 0, other = 0;
    for (size_t k = 0; k < ROWS; k++) {
        apart += !arb_overlaps(x + k, y + k) || arb_rel_accuracy_bits(x + k) < BITS / 2;
        other += a.alpha_ij[k] != b.alpha_ij[k] || !isfinite(a.alpha_ij[k]);
    }
    ok(apart == 0 && other == 0, "scores as they stand are scores over 4 of queries times 4");
    _arb_vec_clear(x, ROWS);
    _arb_vec_clear(y, ROWS);
    _arb_vec_clear(out, OUT);
    sinkproof_variant_result_free(&a);
    sinkproof_variant_result_free(&b);
}

int main(void) {
    unscaled();
    const char *policies[] = {"f32", "bf16"};
    for (int p = 0; p < 2; p++) {
        write_all(policies[p]);
        honest(policies[p]);
        neighbours(policies[p]);
        subsets(policies[p]);
    }
    drop(&made);
    return tap_done();
}
