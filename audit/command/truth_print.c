// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/command/truth_print.h"

#include "audit/command/command.h"
#include "base/words.h"
#include "model/json_number.h"

#include <math.h>

enum { TOP_LOGITS = 5 };

void truth_power_of_two(char text[32], double log2_value) {
    if (log2_value == -INFINITY)
        snprintf(text, 32, "0 (exact)");
    else if (!isfinite(log2_value))
        snprintf(text, 32, "unbounded");
    else
        snprintf(text, 32, "2^%.1f", log2_value);
}

void truth_print_points(FILE *out, const truth_study *study) {
    fprintf(out, "%-6s%10s %14s %16s  %s\n", "point", "elements", "worst radius", "worst relative",
            "where the relative is worst");
    for (size_t point = 0; point < TRACE_POINTS; point++) {
        const truth_summary *s = &study->points[point];
        if (s->elements == 0) continue;
        char radius[32], relative[32], where[TRUTH_PLACE];
        truth_power_of_two(radius, s->radius_log2);
        truth_power_of_two(relative, s->relative_log2);
        sinkproof_study_where(study, point, s->relative_layer, s->relative_at, where);
        if (s->relative_log2 == -INFINITY) where[0] = '\0';
        fprintf(out, "%-6s%10zu %14s %16s  %s\n",
                sinkproof_trace_point_name((sinkproof_trace_point)point), s->elements, radius,
                relative, where);
    }
}

void truth_print_distances(FILE *out, const truth_study *study) {
    fprintf(out, "%-6s%10s  %-5s%13s %13s %12s  %s\n", "point", "elements", "dtype", "worst dist.",
            "worst ulp", "radius", "where the ulp is worst");
    for (size_t point = 0; point < TRACE_POINTS; point++) {
        const truth_summary *s = &study->points[point];
        if (s->compared == 0) continue;
        char radius[32], where[TRUTH_PLACE];
        truth_power_of_two(radius, s->radius_log2);
        sinkproof_study_where(study, point, s->ulp_layer, s->ulp_at, where);
        fprintf(out, "%-6s%10zu  %-5s%13.4g %13.4g %12s  %s\n",
                sinkproof_trace_point_name((sinkproof_trace_point)point), s->compared,
                sinkproof_format_name(s->format), s->distance, s->ulp, radius, where);
    }
}

void truth_print_logits(FILE *out, arb_srcptr logit_v, size_t vocab, slong bits) {
    size_t top[TOP_LOGITS], count = vocab < TOP_LOGITS ? vocab : TOP_LOGITS;
    arb_t margin;
    arb_init(margin);
    sinkproof_truth_topk(top, margin, logit_v, vocab, count, bits);
    arb_clear(margin);
    fprintf(out, "\nlogits of the last token (enclosed)\n");
    for (size_t k = 0; k < count; k++) {
        char radius[32];
        truth_power_of_two(radius, sinkproof_truth_radius_log2(logit_v + top[k]));
        fprintf(out, "%8zu  %+.17g  radius %s\n", top[k],
                arf_get_d(arb_midref(logit_v + top[k]), ARF_RND_NEAR), radius);
    }
}

void truth_print_ball(FILE *out, const char *what, arb_srcptr ball) {
    char radius[32];
    truth_power_of_two(radius, sinkproof_truth_radius_log2(ball));
    fprintf(out, "%s%.6g (enclosed, radius %s)", what, arf_get_d(arb_midref(ball), ARF_RND_NEAR),
            radius);
}

truth_argmaxes truth_count_argmaxes(const sinkproof_truth_result *result, slong bits) {
    truth_argmaxes all = {.n = result->n, .first_open = result->n, .gap = INFINITY};
    arb_t gap;
    arf_t low;
    arb_init(gap);
    arf_init(low);
    for (size_t i = 0; i < result->n; i++) {
        bool certified;
        sinkproof_truth_argmax(result->logits_nv + i * result->vocab, result->vocab, &certified,
                               gap, bits);
        arb_get_lbound_arf(low, gap, bits);
        double least = arf_is_nan(low) ? -INFINITY : arf_get_d(low, ARF_RND_FLOOR);
        all.certified += certified;
        if (!certified && all.first_open == all.n) all.first_open = i;
        if (!(least < all.gap)) continue;
        all.gap = least;
        all.thinnest = i;
    }
    arb_clear(gap);
    arf_clear(low);
    return all;
}

void truth_print_argmaxes(FILE *out, const truth_argmaxes *all) {
    fprintf(out, "argmax of every token: %zu of %zu certified", all->certified, all->n);
    if (all->first_open < all->n) fprintf(out, ", first AMBIGUOUS at token %zu", all->first_open);
    double shown = all->gap - fabs(all->gap) * 0x1p-16; // more than six digits round away
    fprintf(out, "; thinnest gap %.6g or more, at token %zu\n", shown, all->thinnest);
}

json_t *truth_argmaxes_json(const truth_argmaxes *all) {
    return json_pack(
        "{s:s, s:s, s:b, s:s, s:I, s:I, s:o, s:I, s:o}", "id", "model.forward", "what",
        "argmax of every token", "ok", all->certified == all->n, "label", "enclosed", "tokens",
        (json_int_t)all->n, "certified", (json_int_t)all->certified, "first_ambiguous",
        all->first_open < all->n ? json_integer((json_int_t)all->first_open) : json_null(),
        "thinnest_token", (json_int_t)all->thinnest, "thinnest_gap",
        sinkproof_number_json(all->gap));
}

void truth_print_routing(FILE *out, const sinkproof_truth_routing *routing) {
    if (routing->choices == 0) return; // a model without a router
    if (routing->ambiguous > 0) {
        fprintf(out, "routing: AMBIGUOUS at %zu of %s, first at layer %zu, token %zu",
                routing->ambiguous, sinkproof_counted(routing->choices, "choice").text,
                routing->first_layer, routing->first_token);
        truth_print_ball(out, ": margin ", routing->first_margin);
        fprintf(out, "\n");
    } else {
        fprintf(out, "routing: %s certified, %zu by the rule for equal logits\n",
                sinkproof_counted(routing->choices, "choice").text, routing->ties);
    }
    if (routing->contested > 0)
        fprintf(out, "routing: %s %s not the largest logits of the truth\n",
                sinkproof_counted(routing->contested, "replayed selection").text,
                sinkproof_is_or_are(routing->contested));
    truth_print_ball(out, "thinnest margin: ", routing->margin);
    fprintf(out, " at layer %zu, token %zu\n", routing->layer, routing->token);
}

json_t *truth_enclosed_json(arb_srcptr ball) {
    return json_pack("{s:s, s:o, s:o}", "label", "enclosed", "midpoint",
                     sinkproof_number_json(arf_get_d(arb_midref(ball), ARF_RND_NEAR)),
                     "radius_log2", sinkproof_number_json(sinkproof_truth_radius_log2(ball)));
}

json_t *truth_routing_json(const sinkproof_truth_routing *r) {
    return json_pack("{s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "id", "router.topk", "ok",
                     r->ambiguous == 0, "choices", (json_int_t)r->choices, "ambiguous",
                     (json_int_t)r->ambiguous, "ties", (json_int_t)r->ties, "contested",
                     (json_int_t)r->contested, "layer", (json_int_t)r->layer, "token",
                     (json_int_t)r->token, "margin", truth_enclosed_json(r->margin));
}

void truth_print_checks(FILE *out, const sinkproof_truth_checks *checks) {
    if (checks->products == 0) return;
    fprintf(out, "checked with GMP: %s of %s, ", sinkproof_counted(checks->rows, "result").text,
            sinkproof_counted(checks->products, "product").text);
    if (checks->broken > 0)
        fprintf(out, "%zu NOT ENCLOSED", checks->broken);
    else
        fprintf(out, "all enclosed");
    if (checks->unchecked > 0)
        fprintf(out, "; %s not checked, whose inputs are infinite or too far apart",
                sinkproof_counted(checks->unchecked, "result").text);
    fprintf(out, "\n");
}

json_t *truth_checks_json(const sinkproof_truth_checks *checks) {
    return json_pack("{s:s, s:s, s:b, s:s, s:I, s:I, s:I, s:I}", "id", "slices.exact", "what",
                     "results of products checked with GMP", "ok", checks->broken == 0, "label",
                     "exact", "products", (json_int_t)checks->products, "checked",
                     (json_int_t)checks->rows, "broken", (json_int_t)checks->broken, "unchecked",
                     (json_int_t)checks->unchecked);
}

json_t *truth_points_json(const truth_study *study) {
    json_t *results = json_array();
    for (size_t point = 0; point < TRACE_POINTS; point++) {
        const truth_summary *s = &study->points[point];
        if (s->elements == 0) continue;
        json_t *entry = json_pack("{s:s, s:s, s:b, s:s, s:I, s:b, s:o, s:o}", "id", "model.forward",
                                  "point", sinkproof_trace_point_name((sinkproof_trace_point)point),
                                  "ok", s->infinite == 0, "label", "enclosed", "elements",
                                  (json_int_t)s->elements, "exact", s->radius_log2 == -INFINITY,
                                  "radius_log2", sinkproof_number_json(s->radius_log2),
                                  "relative_radius_log2", sinkproof_number_json(s->relative_log2));
        if (s->compared > 0) {
            json_object_set_new(entry, "compared", json_integer((json_int_t)s->compared));
            json_object_set_new(entry, "dtype", json_string(sinkproof_format_name(s->format)));
            json_object_set_new(entry, "worst", sinkproof_number_json(s->distance));
            json_object_set_new(entry, "worst_ulp", sinkproof_number_json(s->ulp));
        }
        json_array_append_new(results, entry);
    }
    return results;
}
