// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Prints a study as text and as JSON. Every number is estimated: both runs are in binary64.
#include "audit/studies/precision/precision_print.h"
#include "base/share.h"
#include "model/json_number.h"

#include "base/words.h"

#include <math.h>
#include <string.h>

// ---- text ------------------------------------------------------------------------------------

// A number in a column, or a placeholder.
typedef struct shown {
    char text[16];
} shown;

static shown show_number(double x) {
    shown s;
    snprintf(s.text, sizeof s.text, isinf(x) ? "overflows" : isnan(x) ? "-" : "%.3g", x);
    return s;
}

static shown show_error(const precision_point *p) {
    return show_number(precision_error(p));
}

static void print_policies(FILE *out, const sinkproof_precision_study *study) {
    fprintf(out, "%-34s %10s %10s %12s %14s\n", "policy", "error, F1", "error, F2", "experts flip",
            "KiB a token");
    for (size_t p = 0; p < study->n_policies; p++) {
        const precision_audit *r = &study->policies[p];
        char flips[40];
        snprintf(flips, sizeof flips, "%zu/%zu", r->flips, r->choices);
        fprintf(out, "%-34s %10s %10s %12s %14.1f\n", r->policy.name, show_number(r->final).text,
                show_number(r->logits).text, flips, r->kib);
    }
}

// Prints a point over all layers: the error in the first and the last layer, the largest error, the
// least headroom.
static void print_points(FILE *out, const precision_audit *r) {
    fprintf(out, "\n%s: error by point\n%-8s %12s %12s %12s %8s %16s\n", r->policy.name, "point",
            "first layer", "last layer", "largest", "in layer", "headroom, bits");
    for (int point = 0; point < TRACE_POINTS; point++) {
        const precision_point *first = NULL, *last = NULL, *most = NULL;
        double headroom = INFINITY;
        for (size_t i = 0; i < r->n_points; i++) {
            const precision_point *p = &r->points[i];
            if ((int)p->point != point || sinkproof_trace_point_is_index(p->point)) continue;
            if (first == NULL) first = p;
            // The first layer that overflows counts as the largest.
            if (most == NULL ||
                !(isinf(precision_error(most)) || precision_error(p) <= precision_error(most)))
                most = p;
            last = p;
            headroom = fmin(headroom, precision_headroom(&r->policy, p));
        }
        if (first == NULL) continue;
        fprintf(out, "%-8s %12s %12s %12s %8zu ",
                sinkproof_trace_point_name((sinkproof_trace_point)point), show_error(first).text,
                show_error(last).text, show_error(most).text, most->layer);
        if (isfinite(headroom))
            fprintf(out, "%16.1f\n", headroom);
        else
            fprintf(out, "%16s\n", "not stored");
    }
    char name[PRECISION_NAME];
    if (r->overflow != NULL)
        fprintf(out, "The first point that overflows: %s.\n", precision_name(r->overflow, name));
}

static void print_budget(FILE *out, const precision_audit *r) {
    if (r->n_parts == 0) return;
    fprintf(out, "\n%s: error budget at F1, each rounding alone\n%-11s %10s %8s  %s\n",
            r->policy.name, "point", "error", "share", "what is rounded");
    for (size_t i = 0; i < r->n_parts; i++) {
        const precision_part *part = &r->parts[i];
        sinkproof_share_text share = {"- %"};
        if (isfinite(part->share)) share = sinkproof_share_percent(part->share, 1);
        fprintf(out, "%-11s %10s %8s  %s\n", part->name, show_number(part->error).text, share.text,
                part->what);
    }
    if (r->n_finite < r->n_parts)
        fprintf(out, "%zu of %zu overflow alone; the shares are of the others.\n",
                r->n_parts - r->n_finite, r->n_parts);
    fprintf(out, "In quadrature %.3g, all together ", r->quadrature);
    fprintf(out, isinf(r->final) ? "they overflow" : "%.3g", r->final);
    fprintf(out, ". As vectors the parts' errors add up to %.3g", r->linear);
    if (isfinite(r->correlation))
        fprintf(
            out,
            "; its\ncorrelation with the whole error is %.2f: near 0, the whole is another draw "
            "of the same sizes",
            r->correlation);
    fprintf(out, ".\n");
}

static void print_model(FILE *out, const sinkproof_precision_study *study) {
    fprintf(out, "\nThe real model alone\n%-6s %22s %18s %22s\n", "layer", "1 - alpha_s, least",
            "bits lost", "a perturbation grew");
    for (size_t l = 0; l < study->n_layers; l++) {
        const precision_layer *layer = &study->layers[l];
        fprintf(out, "%-6zu %12.3g (med %.2g) %18.1f %22.3g\n", l, layer->mass_least,
                layer->mass_median, -log2(layer->mass_least), layer->growth);
    }
    fprintf(
        out,
        "bits lost: by one who computes 1 - alpha_s as a difference, at the least one. A random\n"
        "change of the embedding by up to %.1e of each element grew so much up to the layer's "
        "end.\n",
        study->perturbed);
    fprintf(out, "Thinnest choices of experts:\n");
    for (size_t i = 0; i < PRECISION_ROWS && isfinite(study->thinnest[i].margin); i++)
        fprintf(out, "  layer %zu, token %zu: %.3g\n", study->thinnest[i].layer,
                study->thinnest[i].token, study->thinnest[i].margin);
}

void sinkproof_precision_print(FILE *out, const sinkproof_precision_study *study) {
    fprintf(out,
            "%s, %s. Against the same model over the reals; relative in the 2-norm "
            "(estimated:\nboth in binary64), with the real model's choice of experts. Sums are in "
            "binary64 whatever the\n"
            "policy: what a narrower accumulator adds is not in here.\n\n",
            sinkproof_counted(study->n, "token").text,
            sinkproof_counted(study->n_layers, "layer").text);
    print_policies(out, study);
    for (size_t p = 0; p < study->n_policies; p++) {
        print_points(out, &study->policies[p]);
        print_budget(out, &study->policies[p]);
    }
    print_model(out, study);
}

// ---- JSON ------------------------------------------------------------------------------------

static json_t *model_json(const sinkproof_precision_study *study) {
    json_t *o = json_object(), *layers = json_array(), *rows = json_array();
    for (size_t l = 0; l < study->n_layers; l++) {
        json_t *layer = json_object();
        json_object_set_new(layer, "mass_least",
                            sinkproof_number_json(study->layers[l].mass_least));
        json_object_set_new(layer, "mass_median",
                            sinkproof_number_json(study->layers[l].mass_median));
        json_object_set_new(layer, "growth", sinkproof_number_json(study->layers[l].growth));
        json_array_append_new(layers, layer);
    }
    for (size_t i = 0; i < PRECISION_ROWS && isfinite(study->thinnest[i].margin); i++) {
        json_t *row = json_object();
        json_object_set_new(row, "layer", sinkproof_count_json(study->thinnest[i].layer));
        json_object_set_new(row, "token", sinkproof_count_json(study->thinnest[i].token));
        json_object_set_new(row, "margin", sinkproof_number_json(study->thinnest[i].margin));
        json_array_append_new(rows, row);
    }
    json_object_set_new(o, "id", json_string("model"));
    json_object_set_new(o, "label", json_string("estimated"));
    json_object_set_new(o, "tokens", sinkproof_count_json(study->n));
    json_object_set_new(o, "perturbed", sinkproof_number_json(study->perturbed));
    json_object_set_new(o, "layers", layers);
    json_object_set_new(o, "thinnest", rows);
    return o;
}

static json_t *points_json(const precision_audit *r) {
    json_t *points = json_array();
    for (size_t i = 0; i < r->n_points; i++) {
        const precision_point *p = &r->points[i];
        if (sinkproof_trace_point_is_index(p->point)) continue;
        json_t *o = json_object();
        json_object_set_new(o, "point", json_string(sinkproof_trace_point_name(p->point)));
        json_object_set_new(o, "layer", sinkproof_count_json(p->layer));
        json_object_set_new(o, "error", sinkproof_number_json(precision_error(p)));
        json_object_set_new(o, "largest", sinkproof_number_json(p->largest));
        json_object_set_new(o, "headroom_bits",
                            sinkproof_number_json(precision_headroom(&r->policy, p)));
        json_array_append_new(points, o);
    }
    return points;
}

static json_t *budget_json(const precision_audit *r) {
    json_t *o = json_object(), *parts = json_array();
    for (size_t i = 0; i < r->n_parts; i++) {
        json_t *part = json_object();
        json_object_set_new(part, "point", json_string(r->parts[i].name));
        json_object_set_new(part, "error", sinkproof_number_json(r->parts[i].error));
        json_object_set_new(part, "share", sinkproof_number_json(r->parts[i].share));
        json_array_append_new(parts, part);
    }
    json_object_set_new(o, "parts", parts);
    json_object_set_new(o, "quadrature", sinkproof_number_json(r->quadrature));
    json_object_set_new(o, "linear", sinkproof_number_json(r->linear));
    json_object_set_new(o, "correlation", sinkproof_number_json(r->correlation));
    return o;
}

void sinkproof_precision_json(json_t *results, const sinkproof_precision_study *study) {
    json_array_append_new(results, model_json(study));
    for (size_t p = 0; p < study->n_policies; p++) {
        const precision_audit *r = &study->policies[p];
        json_t *o = json_object();
        char name[PRECISION_NAME];
        json_object_set_new(o, "id", json_string("policy"));
        json_object_set_new(o, "label", json_string("estimated"));
        json_object_set_new(o, "policy", json_string(r->policy.name));
        json_object_set_new(o, "final", sinkproof_number_json(r->final));
        json_object_set_new(o, "logits", sinkproof_number_json(r->logits));
        json_object_set_new(o, "overflow",
                            r->overflow != NULL ? json_string(precision_name(r->overflow, name))
                                                : json_null());
        json_object_set_new(o, "choices", sinkproof_count_json(r->choices));
        json_object_set_new(o, "flips", sinkproof_count_json(r->flips));
        json_object_set_new(o, "kib_a_token", sinkproof_number_json(r->kib));
        json_object_set_new(o, "points", points_json(r));
        json_object_set_new(o, "budget", r->n_parts > 0 ? budget_json(r) : json_null());
        json_array_append_new(results, o);
    }
}
