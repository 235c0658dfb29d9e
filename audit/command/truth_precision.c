// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/command/truth_precision.h"

#include "audit/verify/truth_bits.h"

#include <math.h>

static size_t longest_run_of_layers(const sinkproof_config *config, const sinkproof_trace *trace) {
    size_t row = 0, longest = 0;
    for (size_t layer = 0; layer < config->n_layers; layer++) {
        row++;
        longest = row > longest ? row : longest;
        if (sinkproof_trace_find(trace, TRACE_M12, layer) != NULL) row = 0;
    }
    return longest;
}

truth_precision truth_choose_bits(const sinkproof_config *config, const sinkproof_trace *local,
                                  long certified, long *bits) {
    truth_precision p = {.layers = config->n_layers, .chosen = *bits == 0, .local = local != NULL};
    if (p.local) p.layers = longest_run_of_layers(config, local);
    p.lost = sinkproof_truth_loss(config, p.layers);
    if (p.chosen) *bits = sinkproof_truth_bits_for(p.lost + (double)(certified - TRUTH_BITS_LEFT));
    return p;
}

bool truth_bits_are_few(const truth_precision *p, long bits) {
    return !(p->lost < (double)bits);
}

void truth_say_precision(FILE *out, const truth_precision *p, const sinkproof_config *config,
                         long bits) {
    const char *traced = p->local ? " without a traced end" : "";
    fprintf(out, "%ld bits%s: %zu layer%s of this shape%s %s about %.0f of them", bits,
            p->chosen ? ", chosen here" : "", p->layers, p->layers == 1 ? "" : "s", traced,
            p->layers == 1 ? "loses" : "lose", ceil(p->lost));
    if (!truth_bits_are_few(p, bits)) {
        fprintf(out, ", so that a logit's radius is about 2^%.0f or less (estimated)\n",
                ceil(p->lost - (double)bits));
        return;
    }
    fprintf(out, " (estimated)");
    size_t layer = sinkproof_truth_last_layer(config, p->layers, (double)bits);
    if (layer < p->layers)
        fprintf(out, ": nothing may be certified from layer %zu on;", layer);
    else
        fprintf(out, ": no logit may be certified;");
    fprintf(out, " --bits %ld would leave %d or more\n", sinkproof_truth_bits_for(p->lost),
            TRUTH_BITS_LEFT);
}
