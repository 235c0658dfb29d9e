// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Pictures as SVG. Colours are the page's; every mark has its number as a title.
#include "audit/report/chart.h"

#include "audit/report/page.h"

#include <math.h>

// ---- lines -----------------------------------------------------------------------------------

enum { LEFT = 52, RIGHT = 850, TOP = 14, BOTTOM = 250 };

// The corner of the drawing in the data's terms: places, and decades of the values.
typedef struct frame {
    double from, to;
    int low, high;
} frame;

static double x_of(const frame *f, double at) {
    return LEFT + (at - f->from) / (f->to - f->from) * (RIGHT - LEFT);
}

static double y_of(const frame *f, double value) {
    return BOTTOM - (log10(value) - f->low) / (f->high - f->low) * (BOTTOM - TOP);
}

static bool is_drawn(double value) {
    return value > 0 && isfinite(value);
}

static bool frame_of(frame *f, size_t n, const sinkproof_chart_place *places) {
    double least = INFINITY, most = 0;
    size_t drawn = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < SINKPROOF_CHART_LINES; k++) {
            double v = places[i].value[k];
            if (!is_drawn(v)) continue;
            least = v < least ? v : least, most = v > most ? v : most;
            drawn += k == 0;
        }
    if (drawn < 2) return false;
    *f = (frame){places[0].at, places[n - 1].at, (int)floor(log10(least)), (int)ceil(log10(most))};
    if (f->high == f->low) f->high++;
    return f->to > f->from;
}

static void draw_axes(FILE *page, const frame *f) {
    for (int d = f->low; d <= f->high; d++) {
        double y = y_of(f, pow(10, d));
        fprintf(page, "<path class=\"axis\" d=\"M%d %.1fH%d\"/>", LEFT, y, RIGHT);
        fprintf(page, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">1e%d</text>", LEFT - 6, y + 4,
                d);
    }
    double step = ceil((f->to - f->from) / 24);
    for (double at = ceil(f->from); at <= f->to; at += step < 1 ? 1 : step)
        fprintf(page, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>", x_of(f, at),
                BOTTOM + 18, at);
    fprintf(page, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">layer</text>", RIGHT, BOTTOM + 36);
}

static const char *const classes[SINKPROOF_CHART_LINES] = {"one", "two", "three"};

static void draw_line(FILE *page, const frame *f, const char *name, size_t line, size_t n,
                      const sinkproof_chart_place *places) {
    fprintf(page, "<polyline class=\"%s\" points=\"", classes[line]);
    for (size_t i = 0; i < n; i++)
        if (is_drawn(places[i].value[line]))
            fprintf(page, "%.1f,%.1f ", x_of(f, places[i].at), y_of(f, places[i].value[line]));
    fputs("\"/>", page);
    for (size_t i = 0; i < n; i++) {
        if (!is_drawn(places[i].value[line])) continue;
        fprintf(page, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\"><title>",
                classes[line], x_of(f, places[i].at), y_of(f, places[i].value[line]));
        sinkproof_page_say(page, "%s: %s %.3g", places[i].name, name, places[i].value[line]);
        fputs("</title></circle>", page);
    }
    double x = LEFT + 8 + 150 * (double)line;
    fprintf(page, "<polyline class=\"%s\" points=\"%.0f,%d %.0f,%d\"/>", classes[line], x,
            BOTTOM + 32, x + 22, BOTTOM + 32);
    fprintf(page, "<text x=\"%.0f\" y=\"%d\">%s</text>\n", x + 28, BOTTOM + 36, name);
}

bool sinkproof_chart_lines(FILE *page, const char *const names[SINKPROOF_CHART_LINES], size_t n,
                           const sinkproof_chart_place *places) {
    frame f;
    if (n == 0 || !frame_of(&f, n, places)) return false;
    fprintf(page, "<svg viewBox=\"0 0 %d %d\" width=\"%d\" role=\"img\" aria-label=\"lines\">",
            RIGHT + 20, BOTTOM + 44, RIGHT + 20);
    draw_axes(page, &f);
    for (size_t k = 0; k < SINKPROOF_CHART_LINES; k++) draw_line(page, &f, names[k], k, n, places);
    fputs("</svg>\n", page);
    return true;
}

// ---- scatter ---------------------------------------------------------------------------------

// Where the horizontal axis begins and ends: a little beyond the outer places.
static bool scatter_frame(frame *f, size_t n, const sinkproof_chart_place *places) {
    double least[2] = {INFINITY, INFINITY}, most[2] = {0, 0};
    size_t drawn = 0;
    for (size_t i = 0; i < n; i++) {
        const double v[2] = {places[i].at, places[i].value[0]};
        if (!is_drawn(v[0]) || !is_drawn(v[1])) continue;
        for (int k = 0; k < 2; k++) {
            least[k] = v[k] < least[k] ? v[k] : least[k];
            most[k] = v[k] > most[k] ? v[k] : most[k];
        }
        drawn++;
    }
    if (drawn < 2) return false;
    *f = (frame){log10(least[0]) - 0.1, log10(most[0]) + 0.3, (int)floor(log10(least[1])),
                 (int)ceil(log10(most[1]))};
    if (f->high == f->low) f->high++;
    return true;
}

bool sinkproof_chart_scatter(FILE *page, const char *what, size_t n,
                             const sinkproof_chart_place *places) {
    frame f;
    if (!scatter_frame(&f, n, places)) return false;
    fprintf(page, "<svg viewBox=\"0 0 %d %d\" width=\"%d\" role=\"img\" aria-label=\"scatter\">",
            RIGHT + 20, BOTTOM + 44, RIGHT + 20);
    for (int d = f.low; d <= f.high; d++) {
        double y = y_of(&f, pow(10, d));
        fprintf(page, "<path class=\"axis\" d=\"M%d %.1fH%d\"/>", LEFT, y, RIGHT);
        fprintf(page, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">1e%d</text>", LEFT - 6, y + 4,
                d);
    }
    double taken[SINKPROOF_CHART_DOTS][2]; // where names begin
    for (size_t i = 0; i < n && i < SINKPROOF_CHART_DOTS; i++) {
        if (!is_drawn(places[i].at) || !is_drawn(places[i].value[0])) continue;
        double x = x_of(&f, log10(places[i].at)), y = y_of(&f, places[i].value[0]), name_y = y - 5;
        for (size_t k = 0; k < i; k++) // beneath each other where dots are close
            if (fabs(taken[k][0] - x) < 150 && fabs(taken[k][1] - name_y) < 13)
                name_y = taken[k][1] + 13;
        taken[i][0] = x, taken[i][1] = name_y;
        fprintf(page, "<circle class=\"one\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"><title>", x, y);
        sinkproof_page_say(page, "%s: %.3g at %.1f", places[i].name, places[i].value[0],
                           places[i].at);
        fprintf(page, "</title></circle><text x=\"%.1f\" y=\"%.1f\">", x + 8, name_y);
        sinkproof_page_say(page, "%s (%.1f)", places[i].name, places[i].at);
        fputs("</text>", page);
    }
    fprintf(page, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", RIGHT, BOTTOM + 36);
    sinkproof_page_text(page, what);
    fputs("</text></svg>\n", page);
    return true;
}

// ---- histogram -------------------------------------------------------------------------------

enum { FIRST_OCTAVE = -8, LAST_OCTAVE = 8, OCTAVES = LAST_OCTAVE - FIRST_OCTAVE + 1, PER = 4 };

static void draw_bar(FILE *page, int column, double share, const char *class, const char *range) {
    double height = 70 * share;
    fprintf(page, "<rect class=\"%s\" x=\"%d\" y=\"%.1f\" width=\"9\" height=\"%.1f\"><title>",
            class, 4 + 10 * column, 74 - height, height);
    if (share < 1 && share > 0.99995) // never 100 for all but one
        sinkproof_page_say(page, "%s: less than 100 %% of the elements", range);
    else
        sinkproof_page_say(page, "%s: %.4g %% of the elements", range, 100 * share);
    fputs("</title></rect>", page);
}

void sinkproof_chart_histogram(FILE *page, const char *name, const sinkproof_histogram *h) {
    if (h->total == 0) return;
    double octave[OCTAVES] = {0}, total = (double)h->total;
    for (int bin = 1; bin < SINKPROOF_HISTOGRAM; bin++) {
        int o = bin / PER - 32 - FIRST_OCTAVE;
        o = o < 0 ? 0 : o >= OCTAVES ? OCTAVES - 1 : o;
        octave[o] += (double)h->counts[bin] / total;
    }
    fputs("<figure><figcaption>", page);
    sinkproof_page_text(page, name);
    fprintf(page, "</figcaption><svg viewBox=\"0 0 %d 92\" width=\"%d\" role=\"img\" ", 184, 184);
    fputs("aria-label=\"histogram\"><path class=\"axis\" d=\"M2 74.5H182\"/>", page);
    draw_bar(page, 0, (double)h->counts[0] / total, "zero", "0");
    for (int o = 0; o < OCTAVES; o++) {
        char range[64];
        snprintf(range, sizeof range, "%g to %g ulp%s", ldexp(1, o + FIRST_OCTAVE),
                 ldexp(1, o + FIRST_OCTAVE + 1),
                 o == 0             ? " and less"
                 : o == OCTAVES - 1 ? " and more"
                                    : "");
        if (octave[o] > 0) draw_bar(page, o + 1, octave[o], "bar", range);
    }
    fputs("<text x=\"4\" y=\"88\">0</text>", page);
    fprintf(page, "<text x=\"%d\" y=\"88\" text-anchor=\"middle\">1 ulp</text>",
            4 + 10 * (1 - FIRST_OCTAVE));
    fputs("</svg></figure>\n", page);
}

// ---- heat map --------------------------------------------------------------------------------

enum { LEVELS = 12, GAP = 2 };

// Weights fall over decades: level L is 2^-(LEVELS - 1 - L) and up to twice that; -1: less.
static int level_of(double weight) {
    if (!(weight > 0)) return -1;
    int level = LEVELS - 1 + (int)floor(log2(weight));
    return level >= LEVELS ? LEVELS - 1 : level;
}

void sinkproof_chart_heat_map(FILE *page, const char *name, const sinkproof_chart_heat *m) {
    size_t width = 1 + GAP + m->keys;
    fputs("<figure><figcaption>", page);
    sinkproof_page_text(page, name);
    fprintf(page,
            "</figcaption><svg viewBox=\"0 0 %zu %zu\" width=\"%zu\" role=\"img\" "
            "aria-label=\"attention weights\" shape-rendering=\"crispEdges\">",
            width, m->queries, width * (m->keys > 60 ? 3 : 5));
    for (int level = 0; level < LEVELS; level++) {
        fprintf(page, "<path class=\"heat\" stroke-opacity=\"%.2f\" d=\"", (level + 1.0) / LEVELS);
        for (size_t q = 0; q < m->queries; q++) {
            if (level_of(m->sink(m->context, q)) == level) fprintf(page, "M0 %zu.5h1", q);
            for (size_t k = 0; k < m->keys; k++)
                if (level_of(m->weight(m->context, q, m->first + k)) == level)
                    fprintf(page, "M%zu %zu.5h1", k + 1 + GAP, q);
        }
        fputs("\"/>", page);
    }
    fputs("</svg></figure>\n", page);
}
