// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Rotations by other cosines and sines that no catalogue lists, planted in complete engines:
// positions of sections of pairs, of groups of tokens, of passes; sizes that depend on the
// position; a part of the coordinates. Mistakes that look like one are not called by its name.
#include "tests/shared/planted.h"

#include "ref/stages.h"

// The cosine and the sine of a pair in row i, with the angle and the concentration as defined.
typedef struct pair_turn {
    size_t i, p;
    const double *frequency_p;
    double by, cosine, sine;
} pair_turn;
typedef void turn_pair(pair_turn *t, double by);

// The pairs of the first `turned` coordinates.
static void rotate(shown *s, size_t turned, turn_pair *how, double by) {
    size_t d = s->c->head_dim, half = turned / 2, each = s->count / s->n;
    bool queries = each == s->c->n_heads * d;
    const double *x = s->latest[queries ? TRACE_A2_Q : TRACE_A2_K];
    sinkproof_policy f32;
    sinkproof_error error;
    double *frequency_p = malloc(d * sizeof *frequency_p);
    must(frequency_p != NULL && sinkproof_policy_parse("f32", &f32, &error));
    sinkproof_yarn_frequencies(&f32, s->c, frequency_p);
    for (size_t at = 0; at < s->count; at++) {
        size_t k = at % d, p = k % half;
        double conc = sinkproof_yarn_concentration(s->c), a = (double)(at / each) * frequency_p[p];
        pair_turn t = {at / each, p, frequency_p, conc, conc * cos(a), conc * sin(a)};
        how(&t, by);
        if (k >= turned)
            s->v[at] = rounded(s, x[at]);
        else if (k < half)
            s->v[at] = rounded(s, t.cosine * x[at] - t.sine * x[at + half]);
        else
            s->v[at] = rounded(s, t.cosine * x[at] + t.sine * x[at - half]);
    }
    free(frequency_p);
}
static void at_position(pair_turn *t, double position) {
    t->cosine = t->by * cos(position * t->frequency_p[t->p]);
    t->sine = t->by * sin(position * t->frequency_p[t->p]);
}

static void as_defined(pair_turn *t, double by) {
    (void)t, (void)by;
}
static void at_chosen(pair_turn *t, double by) {
    at_position(t, by);
}
static void half_of_the_head(shown *s, double by) {
    (void)by;
    rotate(s, s->c->head_dim / 2, as_defined, 0);
}
static void in_sections(pair_turn *t, double by) {
    if (t->p >= 2) at_position(t, t->p < 5 ? (double)(t->i / (size_t)by) : (double)(t->i % 3));
}
static void sections(shown *s, double by) {
    rotate(s, s->c->head_dim, in_sections, by);
}
// Two positions in turns, in a part of the rows: as of the pixels of an image.
static void in_turns(pair_turn *t, double by) {
    size_t first = (size_t)by, i = t->i - first;
    if (t->i >= first && t->i < first + 12)
        at_position(t, by + (double)(t->p % 2 == 0 ? i / 4 : i % 4));
}
static void turns_of_pairs(shown *s, double by) {
    rotate(s, s->c->head_dim, in_turns, by);
}
static void slower(pair_turn *t, double by) {
    at_position(t, (double)t->i / (1 + by * pow((double)t->p, 1.3)));
}
static void slower_pairs(shown *s, double by) {
    rotate(s, s->c->head_dim, slower, by);
}
static void by_heads(shown *s, double by) { // each head at its own position
    size_t d = s->c->head_dim, heads = s->count / s->n / d;
    double *all = malloc(s->count * sizeof *all);
    (void)by;
    must(all != NULL);
    for (size_t h = 0; h < heads; h++) {
        rotate(s, d, at_chosen, (double)h);
        for (size_t at = 0; at < s->count; at++)
            if (at / d % heads == h) all[at] = s->v[at];
    }
    memcpy(s->v, all, s->count * sizeof *all);
    free(all);
}
static void in_groups(pair_turn *t, double by) {
    if ((double)t->i >= by) at_position(t, (double)(t->i / 4) + by - (double)((size_t)by / 4));
}
static void groups(shown *s, double by) {
    rotate(s, s->c->head_dim, in_groups, by);
}
static void at_chunk(pair_turn *t, double by) {
    at_position(t, (double)(t->i / (size_t)by) * by);
}
static void chunks(shown *s, double by) {
    rotate(s, s->c->head_dim, at_chunk, by);
}
static void grown(pair_turn *t, double by) {
    t->cosine *= pow(by, (double)t->i), t->sine *= pow(by, (double)t->i);
}
static void decay(shown *s, double by) {
    rotate(s, s->c->head_dim, grown, by);
}
static void sine_late(pair_turn *t, double by) {
    t->sine = t->by * sin(((double)t->i + by) * t->frequency_p[t->p]);
}
static void apart(shown *s, double by) {
    rotate(s, s->c->head_dim, sine_late, by);
}
static void cosine_times(pair_turn *t, double by) {
    t->cosine *= by;
}
static void cosines(shown *s, double by) {
    rotate(s, s->c->head_dim, cosine_times, by);
}
static void by_length(pair_turn *t, double by) {
    double base = t->i < 12 ? by : 4 * by, a = (double)t->i * pow(base, -(double)t->p / 8);
    t->cosine = cos(a), t->sine = sin(a);
}
static void bases(shown *s, double by) {
    must(s->c->head_dim == 16);
    rotate(s, s->c->head_dim, by_length, by);
}
static void scattered(pair_turn *t, double by) {
    double a = by * (double)((t->i * 7 + t->p * 5 + t->i * t->p) % 11);
    t->cosine += a, t->sine -= a;
}
static void no_rule(shown *s, double by) {
    rotate(s, s->c->head_dim, scattered, by);
}

static const plant plants[] = {
    {AT("A4.q"), .change = half_of_the_head, .alone = true,
     .says = "is rotated in the first 8 of the 16 coordinates of a head alone, in pairs 4 apart"},
    {AT("A4.k"), .change = sections, .by = 4, .n = MOST_TOKENS, .f32 = true, .alone = true,
     .says = "pairs 0-1 by position, pairs 2-4 by position / 4 (cut), pairs 5-7 by position mod 3"},
    {AT("A4.q"), .change = groups, .by = 8, .n = MOST_TOKENS, .alone = true,
     .says = "from position 8 on: position / 4 (cut) +6; groups of 4 tokens share one"},
    {AT("A4.q"), .change = chunks, .by = 6, .f32 = true, .alone = true,
     .says = "0 at positions 0-5, 6 at positions 6-11, 12 at positions 12-15"},
    {AT("A4.k"), .change = decay, .by = 0.99, .f32 = true, .alone = true,
     .says = "multiplied by 0.99 for each position"},
    {AT("A4.q"), .change = decay, .by = 1 / 0.99, .f32 = true, .alone = true,
     .says = "multiplied by 1.0101 for each position"},
    {AT("A4.q"), .change = apart, .by = 1, .f32 = true, .alone = true,
     .says = "the cosine of the position +0 and the sine of the position +1"},
    {AT("A4.q"), .change = cosines, .by = 0.5, .f32 = true, .alone = true,
     .says = "cosines that are multiplied by 0.67329 and sines that are multiplied by 1.3466"},
    {AT("A4.q"), .change = bases, .by = 10000, .f32 = true, .alone = true,
     .says = "whose base changes (dynamic NTK): 1e+04 from position 0 on, 4e+04 from position 12"},
    {AT("A4.q"), .change = no_rule, .by = 0.02, .f32 = true, .not = "is rotated"},
    {AT("A4.q"), .change = turns_of_pairs, .by = 4, .f32 = true,
     .says = "classes of pairs: pairs 0, 2, 4, 6: 4 at 5-7, 5 at 8-11, 6 at 12-15"},
    {AT("A4.k"), .change = slower_pairs, .by = 0.4, .f32 = true,
     .says = "other frequencies of its pairs: pair 1 by 0.714 of its own, pair 2 by 0.504"},
    {AT("A4.q"), .change = by_heads,
     .says = "positions that depend on the head: each head has its number"},
};

int main(int argc, char **argv) {
    return try_plants(plants, sizeof plants / sizeof plants[0], argc, argv);
}
