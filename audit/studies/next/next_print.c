// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/studies/next/next_print.h"

#include "base/words.h"
#include "model/json_number.h"

#include <math.h>
#include <string.h>

// -: not asked, or unknown; none: it may be all gone, or there is no bound.
static void print_number(FILE *out, double x) {
    if (isfinite(x))
        fprintf(out, " %10.3g", x);
    else
        fprintf(out, " %10s", isnan(x) ? "-" : "none");
}

static void print_position(FILE *out, const next_study *study, size_t i) {
    const next_position *at = &study->at_n[i];
    fprintf(out, "%5zu %7ld %7zu", i, (long)at->token, at->argmax);
    print_number(out, at->margin);
    print_number(out, at->kept);
    print_number(out, at->worst);
    print_number(out, at->likely);
    print_number(out, study->engines > 0 ? at->least : NAN);
    fprintf(out, " %5zu | %s", at->changed, next_fate_name(at->fate));
    if (at->changed > 0) fprintf(out, " to %zu", at->changed_to);
    fprintf(out, "\n");
}

static void print_sets(FILE *out, const next_study *study) {
    if (study->all_bounded == study->n_layers)
        fprintf(out, "The honest sets have a bound to the end of the last layer.\n");
    else
        fprintf(
            out,
            "The honest sets of the residual stream all have a bound up to the end of %s of %zu.\n",
            sinkproof_counted(study->all_bounded, "layer").text, study->n_layers);
    if (study->some_bounded < study->n_layers)
        fprintf(out, "At the end of layer %zu none has: nothing is certified by them alone.\n",
                study->some_bounded);
    if (study->open_tokens > 0)
        fprintf(out, "In layer %zu they leave the choice of experts of %s open.\n",
                study->open_layer, sinkproof_counted(study->open_tokens, "token").text);
    if (study->branches > 0)
        fprintf(out, "Each honest engine's run, up to its logits, is %s%s.\n",
                study->branches == 1 ? "the one that was followed" : "one of ",
                study->branches == 1 ? "" : sinkproof_counted(study->branches, "run").text);
}

static void print_engines(FILE *out, const next_study *study) {
    fprintf(out, "%s ran under the policy", sinkproof_counted(study->engines, "engine").text);
    if (study->steered > 0)
        fprintf(out, ", %zu of them each steered against a position", study->steered);
    if (study->choices > 0 && study->engines > 0)
        fprintf(out, "; of their %s of experts %zu differ from the truth's",
                sinkproof_counted(study->choices * study->engines, "choice").text, study->flips);
    fprintf(out, ".\n");
}

static void print_first_order(FILE *out, const next_study *study) {
    if (study->estimated == 0) return;
    fprintf(out,
            "To first order (estimated) honest rounding takes less than the margin of %zu of %s "
            "that\nno engine changed; if roundings are independent and centred, of %zu.\n",
            study->beyond_worst, sinkproof_counted(study->estimated, "position").text,
            study->beyond_likely);
}

void sinkproof_next_print(FILE *out, const next_study *study, const sinkproof_policy *policy) {
    fprintf(out, "What honest rounding under %s can do to the next token\n\n", policy->name);
    fprintf(out, "%5s %7s %7s %10s %10s %10s %10s %10s %5s |\n", "at", "token", "says", "margin",
            "kept", "at most", "likely", "least", "other");
    for (size_t i = 0; i < study->n; i++) print_position(out, study, i);
    fprintf(out,
            "says: the truth's next token. margin: of its logit over the next largest, enclosed.\n"
            "kept: the margin that every honest engine has, by its sets or by following all runs.\n"
            "at most, likely: what rounding takes of the margin, to first order (estimated).\n"
            "least: the least margin in an engine that ran. other: engines that say another "
            "token.\n\n");
    print_sets(out, study);
    print_engines(out, study);
    print_first_order(out, study);
    if (study->truth_ambiguous > 0)
        fprintf(out, "The truth leaves %s of experts open: its logits are unknown.\n",
                sinkproof_counted(study->truth_ambiguous, "choice").text);
    fprintf(out, "Of %s:\n", sinkproof_counted(study->n, "position").text);
    fprintf(out, "%5zu certified: no honest engine says another token than the truth\n",
            study->count[NEXT_CERTIFIED]);
    fprintf(out, "%5zu changed: an honest engine that was run says another token\n",
            study->count[NEXT_CHANGED]);
    fprintf(out, "%5zu open: neither is known\n", study->count[NEXT_OPEN]);
    if (study->count[NEXT_UNKNOWN] > 0)
        fprintf(out, "%5zu unknown: the truth's token is not certified\n",
                study->count[NEXT_UNKNOWN]);
    if (study->broken > 0)
        fprintf(out, "BROKEN: %s certified and changed: a bound or an engine here is wrong\n",
                sinkproof_counted(study->broken, "position is").text);
}

// ---- JSON ------------------------------------------------------------------------------------

static json_t *position_json(const next_study *study, size_t i) {
    const next_position *at = &study->at_n[i];
    json_t *o = json_object();
    json_object_set_new(o, "position", sinkproof_count_json(i));
    json_object_set_new(o, "token", json_integer(at->token));
    json_object_set_new(o, "argmax", sinkproof_count_json(at->argmax));
    json_object_set_new(o, "runner", sinkproof_count_json(at->runner));
    json_object_set_new(o, "margin", sinkproof_number_json(at->margin));
    json_object_set_new(o, "kept", sinkproof_number_json(at->kept));
    json_object_set_new(o, "first_order", sinkproof_number_json(at->worst));
    json_object_set_new(o, "likely", sinkproof_number_json(at->likely));
    json_object_set_new(o, "least",
                        study->engines > 0 ? sinkproof_number_json(at->least) : json_null());
    json_object_set_new(o, "changed", sinkproof_count_json(at->changed));
    json_object_set_new(o, "changed_to",
                        at->changed > 0 ? sinkproof_count_json(at->changed_to) : json_null());
    json_object_set_new(o, "fate", json_string(next_fate_name(at->fate)));
    return o;
}

void sinkproof_next_json(json_t *results, const next_study *study, const sinkproof_policy *policy) {
    json_t *o = json_object(), *positions = json_array();
    for (size_t i = 0; i < study->n; i++) json_array_append_new(positions, position_json(study, i));
    json_object_set_new(o, "id", json_string("next"));
    json_object_set_new(o, "ok", json_boolean(study->broken == 0));
    json_object_set_new(o, "policy", json_string(policy->name));
    json_object_set_new(o, "tokens", sinkproof_count_json(study->n));
    for (int fate = 0; fate < NEXT_FATES; fate++)
        json_object_set_new(o, next_fate_name((next_fate)fate),
                            sinkproof_count_json(study->count[fate]));
    json_object_set_new(o, "engines", sinkproof_count_json(study->engines));
    json_object_set_new(o, "steered", sinkproof_count_json(study->steered));
    json_object_set_new(o, "choices", sinkproof_count_json(study->choices));
    json_object_set_new(o, "flips", sinkproof_count_json(study->flips));
    json_object_set_new(o, "truth_ambiguous", sinkproof_count_json(study->truth_ambiguous));
    json_object_set_new(o, "layers", sinkproof_count_json(study->n_layers));
    json_object_set_new(o, "all_bounded", sinkproof_count_json(study->all_bounded));
    json_object_set_new(o, "some_bounded", sinkproof_count_json(study->some_bounded));
    json_object_set_new(o, "open_layer",
                        study->open_tokens > 0 ? sinkproof_count_json(study->open_layer)
                                               : json_null());
    json_object_set_new(o, "open_tokens", sinkproof_count_json(study->open_tokens));
    json_object_set_new(o, "branches",
                        study->branches > 0 ? sinkproof_count_json(study->branches) : json_null());
    json_object_set_new(o, "estimated", sinkproof_count_json(study->estimated));
    json_object_set_new(o, "beyond_first_order", sinkproof_count_json(study->beyond_worst));
    json_object_set_new(o, "beyond_likely", sinkproof_count_json(study->beyond_likely));
    json_object_set_new(o, "positions", positions);
    json_array_append_new(results, o);
}
