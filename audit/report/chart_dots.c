// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Draws numbers as dots over a linear axis; NaN is drawn below the axis as unknown.
#include "audit/report/chart.h"
#include "audit/report/page.h"

#include <math.h>

enum { LEFT = 62, RIGHT = 850, TOP = 14, BOTTOM = 250, LABELS = 24 };

typedef struct range {
    double low, high, step;
} range;

double sinkproof_chart_rounded_up(double x) {
    double decade = pow(10, floor(log10(x)));
    return decade * (x <= decade ? 1 : x <= 2 * decade ? 2 : x <= 5 * decade ? 5 : 10);
}

// The range of the numbers and the line; false: every number is NaN.
static bool dots_range_fit(const sinkproof_chart_dots *d, range *r) {
    double least = isfinite(d->line) ? d->line : INFINITY;
    double most = isfinite(d->line) ? d->line : -INFINITY;
    bool known = false;
    for (size_t p = 0; p < d->places; p++)
        for (size_t k = 0; k < d->dots; k++) {
            double x = d->value(d->context, p, k);
            if (!isfinite(x)) continue;
            least = x < least ? x : least, most = x > most ? x : most;
            known = true;
        }
    if (!known) return false;
    double width = most - least;
    if (!(width > 0x1p-40 * (fabs(least) + fabs(most)))) width = least != 0 ? fabs(least) : 1;
    r->step = sinkproof_chart_rounded_up(width / 4);
    r->low = r->step * floor(least / r->step);
    r->high = r->step * ceil(most / r->step);
    if (!(r->high > r->low)) r->high = r->low + r->step;
    return isfinite(r->high - r->low);
}

static double dot_x(const sinkproof_chart_dots *d, size_t place) {
    return LEFT + ((double)place + 0.5) / (double)d->places * (RIGHT - LEFT);
}

static double dot_y(const range *r, double value) {
    return BOTTOM - (value - r->low) / (r->high - r->low) * (BOTTOM - TOP);
}

static void draw_scales(FILE *page, const sinkproof_chart_dots *d, const range *r) {
    size_t lines = (size_t)lround((r->high - r->low) / r->step);
    for (size_t k = 0; k <= lines; k++) {
        double value = r->low + r->step * (double)k, y = dot_y(r, value);
        if (fabs(value) < r->step / 2) value = 0; // removes the rounding error of the sum
        fprintf(page, "<path class=\"axis\" d=\"M%d %.1fH%d\"/>", LEFT, y, RIGHT);
        fprintf(page, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.6g</text>", LEFT - 6, y + 4,
                value);
    }
    size_t step = 1;
    while (d->places > LABELS * step) step *= 2;
    for (size_t p = 0; p < d->places; p++)
        if ((p + d->first) % step == 0)
            fprintf(page, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%zu</text>",
                    dot_x(d, p), BOTTOM + 24, p + d->first);
    fprintf(page, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", RIGHT, BOTTOM + 40);
    sinkproof_page_text(page, d->across);
    fputs("</text>\n", page);
    if (isfinite(d->line))
        fprintf(page, "<path class=\"curve three\" d=\"M%d %.1fH%d\"/>\n", LEFT, dot_y(r, d->line),
                RIGHT);
}

static void draw_dot(FILE *page, const sinkproof_chart_dots *d, const range *r, size_t place,
                     size_t dot, bool marked) {
    double value = d->value(d->context, place, dot), x = dot_x(d, place);
    bool known = isfinite(value);
    if (known)
        fprintf(page, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%s\"><title>",
                marked ? "two" : "one", x, dot_y(r, value), marked ? "5" : "3");
    else
        fprintf(page, "<path class=\"unknown\" d=\"M%.1f %dh6\"><title>", x - 3, BOTTOM + 8);
    d->name(page, d->context, place, dot);
    if (known)
        fprintf(page, ": %.4g</title></circle>\n", value);
    else
        fputs(": not known</title></path>\n", page);
}

bool sinkproof_chart_dots_svg(FILE *page, const sinkproof_chart_dots *d) {
    range r;
    if (!dots_range_fit(d, &r)) return false;
    fprintf(page, "<svg class=\"roomy\" viewBox=\"0 0 %d %d\" width=\"%d\" role=\"img\" ",
            RIGHT + 20, BOTTOM + 48, RIGHT + 20);
    fputs("aria-label=\"", page);
    sinkproof_page_text(page, d->label);
    fputs("\">\n", page);
    draw_scales(page, d, &r);
    for (int marked = 0; marked <= 1; marked++)
        for (size_t p = 0; p < d->places; p++)
            for (size_t k = 0; k < d->dots; k++)
                if (d->marked(d->context, p, k) == (marked != 0))
                    draw_dot(page, d, &r, p, k, marked != 0);
    fputs("</svg>\n", page);
    return true;
}
