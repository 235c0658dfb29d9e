// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Transcribed from the paper; the token ids are those of GPT-2's published ranks
// (tests/studies/interop_sentences.py computes them again, with tiktoken beside).
#include "audit/studies/mechanism/published.h"

#include "base/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const sinkproof_sentence sentences[SINKPROOF_SENTENCES] = {
    {"section 3",
     "It was the best of times, it was the worst of times, it was the age of wisdom.",
     21,
     {1026, 373,  262, 1266, 286, 1661, 11,   340, 373,   262, 5290,
      286,  1661, 11,  340,  373, 262,  2479, 286, 11501, 13}},
    {"C.1",
     "My name is Ozymandias, King of Kings: Look on my works, ye Mighty, and despair!",
     23,
     {3666, 1438, 318, 18024, 4948, 392,  4448,  11, 2677, 286,   10578, 25,
      6803, 319,  616, 2499,  11,   9838, 25532, 11, 290,  20234, 0}},
    {"C.2",
     "He who controls the past controls the future. He who controls the present controls the past.",
     18,
     {1544, 508, 6973, 262, 1613, 6973, 262, 2003, 13, 679, 508, 6973, 262, 1944, 6973, 262, 1613,
      13}},
    {"C.3",
     "After hours of intense negotiation and detailed review, both parties finally agreed on the "
     "crucial terms and signed the comprehensive contract documentation.",
     24,
     {3260, 2250, 286, 8157, 24462, 290, 6496, 2423, 11,   1111, 4671,  3443,
      4987, 319,  262, 8780, 2846,  290, 4488, 262,  9815, 2775, 10314, 13}},
    {"C.4",
     "I need to buy groceries, including milk, bread, and some fresh vegetables for dinner "
     "tonight.",
     19,
     {40, 761, 284, 2822, 38464, 11, 1390, 7545, 11, 8509, 11, 290, 617, 4713, 13701, 329, 8073,
      9975, 13}},
    {"C.5",
     "Please confirm the exact delivery address and ensure someone is available to sign for the "
     "package this afternoon.",
     19,
     {5492, 6216, 262, 2748, 7585, 2209, 290, 4155, 2130, 318, 1695, 284, 1051, 329, 262, 5301, 428,
      6672, 13}},
};

const sinkproof_sentence *sinkproof_sentence_at(size_t i) {
    return i < SINKPROOF_SENTENCES ? &sentences[i] : NULL;
}

// Figures 15 to 29 are three for each sentence of appendix C, beginning with the panels of figure
// 3; 30 to 34 correspond to figure 4.
size_t published_figure(size_t sentence, size_t figure) {
    if (sentence == 0) return figure;
    if (sentence >= SINKPROOF_SENTENCES || figure < 1 || figure > 4) return 0;
    return figure == 4 ? 29 + sentence : 12 + 3 * sentence + figure % 3;
}

printed_figure printed_parse(const char *text) {
    const char *point = strchr(text, '.');
    size_t digits = point != NULL ? strlen(point + 1) : 0;
    return (printed_figure){text, strtod(text, NULL), pow(10, -(double)digits)};
}

const published_row published_rows[SINKPROOF_PUBLISHED_ROWS] = {
    {1, 2, {"4.47", "22.226", "12.116", "11.064"}},  {2, 2, {"2.8", "6.62", "8.065", "24.468"}},
    {3, 2, {"1.717", "5.826", "10.178", "23.047"}},  {4, 2, {"1.657", "5.02", "18.199", "17.149"}},
    {5, 2, {"1.561", "4.618", "3.072", "23.854"}},   {6, 2, {"0.86", "1.59", "5.644", "6.142"}},
    {7, 1, {"1.12", "2.701", "12.453", "18.17"}},    {8, 2, {"1.404", "3.546", "19.806", "28.01"}},
    {9, 1, {"1.23", "3.225", "17.846", "26.014"}},   {10, 2, {"1.313", "3.618", "23.131", "28.42"}},
    {11, 1, {"1.403", "4.002", "27.547", "27.691"}}, {12, 2, {"1.145", "2.65", "4.5", "13.59"}},
};
const size_t published_massive[SINKPROOF_PUBLISHED_MASSIVE] = {138, 378, 447};

const published_value published_values[PUBLISHED_VALUES] = {
    {"delta-first", "Delta_1, layer 10", "figure 1", "about 100", 100, 10, true, false},
    {"delta-others", "Delta_j of the others, mean", "figure 1", "about -140", -140, 10, true,
     false},
    {"align-first", "cos(b_Q, EPE_1 W_k), layer 10", "figure 2", "about 0.7", 0.7, 0.1, true,
     false},
    {"align-others", "cos(b_Q, EPE_j W_k), mean", "figure 2", "near -0.1", -0.1, 0.1, true, false},
    {"check-least", "least cos(EPE_i, R_i - O_i)", "A.1", "0.828", 0.828, 0.001, true, false},
    {"check-most", "largest cos(EPE_i, R_i - O_i)", "A.1", "0.997", 0.997, 0.001, true, false},
    {"massive-least", "massive ones, deviations off", "A.4", "more than 15", 15, 0, false, true},
};

bool sinkproof_published_shape(const sinkproof_config *c, sinkproof_error *error) {
    static const char said[] =
        "the paper's model has 12 layers of 12 heads, width 768 and a vocabulary of 50257; this "
        "one has %s of %s, width %zu and a vocabulary of %zu: the tables cannot be "
        "compared";
    bool same = c->architecture == SINKPROOF_GPT2 && c->n_layers == 12 && c->n_heads == 12 &&
                c->hidden == 768 && c->vocab == 50257;
    if (c->architecture != SINKPROOF_GPT2)
        return sinkproof_fail(error, "the paper's tables are of a GPT-2, which this model is not");
    return same || sinkproof_fail(error, said, sinkproof_counted(c->n_layers, "layer").text,
                                  sinkproof_counted(c->n_heads, "head").text, c->hidden, c->vocab);
}

static const published_note notes[] = {
    {"sign", "The tables are headed gamma, their text speaks of |gamma|, and no number has a sign. "
             "Both are "
             "tried."},
    {"baseline",
     "Table 1 heads the baseline's column (rand), its caption says: across all coordinates. Tried "
     "are all coordinates, and all that are not massive; a random choice of them cannot be "
     "repeated."},
    {"deviation",
     "Whether a standard deviation divides the sum of squares by n or by n - 1 is not said. Both "
     "are tried, and whether the printed spread is one deviation or two; the captions say two."},
    {"exceed",
     "By the captions the massive coordinates exceed the baseline consistently. In print all 24 "
     "are "
     "above its mean; 4 of them are not above its mean plus the printed spread: both of layer 1, "
     "and coordinate 138 of layers 2 and 5."},
    {"coordinate-378",
     "Appendix A.4 selects 138, 378 and 447, and says of each that its gamma is large; the tables "
     "have no column for 378. It is measured here beside them."},
    {"fifteen",
     "Three of 768 numbers cannot all be more than sqrt(255) = 15.97 deviations above their mean; "
     "where each of them is more than 15, none is more than 17.75."},
    {"layer-norm",
     "EPE_i is written as the first perceptron of the raw p_i; GPT-2 has a LayerNorm before that "
     "perceptron. Both are measured: `raw` is as written, `normed` as the layer has it. The first "
     "layer's attention is in neither."},
    {"one-number",
     "Delta_1 and cos(b_Q, EPE_1 W_k) are one number in each layer, before heads are split; the "
     "captions say that they centre at about 100 and about 0.7. Taken is that one number."},
    {"near-zero",
     "Under figure 2 the other positions lie near -0.1, in section 3.2.2 near zero. Compared is "
     "-0.1."},
    {"scale",
     "Delta has no scale in the text, while attention divides scores by the root of a width, which "
     "is written as that of the whole model and is the head's in GPT-2. Delta is compared without "
     "one, summed over the heads."},
    {"first-token",
     "Intervention 4 zeroes the embedding of a BOS token, and the sentences begin with a word: "
     "GPT-2's tokenizer puts none before them. Taken is the first token, whatever it is; with "
     "--tokens 50256,... one is put there."},
    {"figure-3", "Figure 3 does not say of which layer and heads its maps are. Drawn are those of "
                 "layer 10, the "
                 "layer of figures 1 and 2, their mean over the heads, or one head's."},
    {"another-epe",
     "Interventions 2 and 3 give position 1 another position's EPE; figure 3 says the second's for "
     "2, and for 3 nothing is said. Taken is the second's in both."},
    {"captions", "Figure 17's caption has a piece of the first sentence behind C.1's, and figure "
                 "31's lacks the "
                 "words `the past controls` of C.2's. The sentences are those of appendix C."},
};

const published_note *published_note_at(size_t i) {
    return i < sizeof notes / sizeof *notes ? &notes[i] : NULL;
}
