// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Draws pictures as SVG. Colours come from the page's style; every mark has its number as a title.
#include "audit/report/chart.h"

#include "audit/report/page.h"
#include "base/share.h"

#include <math.h>

// ---- lines -----------------------------------------------------------------------------------

enum { LEFT = 52, RIGHT = 850, TOP = 14, BOTTOM = 250 };

// The range of the drawing in the data's units: places, and decades of the values.
typedef struct frame {
    double from, to;
    int low, high;
} frame;

static double curve_x(const frame *f, double at) {
    return LEFT + (at - f->from) / (f->to - f->from) * (RIGHT - LEFT);
}

static double curve_y(const frame *f, double value) {
    return BOTTOM - (log10(value) - f->low) / (f->high - f->low) * (BOTTOM - TOP);
}

static bool is_drawn(double value) {
    return value > 0 && isfinite(value);
}

static bool curve_frame_fit(frame *f, size_t n, const sinkproof_chart_place *places) {
    double least = INFINITY, most = 0;
    size_t drawn = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < CHART_LINES; k++) {
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
        double y = curve_y(f, pow(10, d));
        fprintf(page, "<path class=\"axis\" d=\"M%d %.1fH%d\"/>", LEFT, y, RIGHT);
        fprintf(page, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">1e%d</text>", LEFT - 6, y + 4,
                d);
    }
    double step = ceil((f->to - f->from) / 24);
    for (double at = ceil(f->from); at <= f->to; at += step < 1 ? 1 : step)
        fprintf(page, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>",
                curve_x(f, at), BOTTOM + 18, at);
    fprintf(page, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">layer</text>", RIGHT, BOTTOM + 36);
}

static const char *const classes[CHART_LINES] = {"one", "two", "three"};

static void draw_line(FILE *page, const frame *f, const char *name, size_t line, size_t n,
                      const sinkproof_chart_place *places) {
    fprintf(page, "<polyline class=\"%s\" points=\"", classes[line]);
    for (size_t i = 0; i < n; i++)
        if (is_drawn(places[i].value[line]))
            fprintf(page, "%.1f,%.1f ", curve_x(f, places[i].at),
                    curve_y(f, places[i].value[line]));
    fputs("\"/>", page);
    for (size_t i = 0; i < n; i++) {
        if (!is_drawn(places[i].value[line])) continue;
        fprintf(page, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\"><title>",
                classes[line], curve_x(f, places[i].at), curve_y(f, places[i].value[line]));
        sinkproof_page_say(page, "%s: %s %.3g", places[i].name, name, places[i].value[line]);
        fputs("</title></circle>", page);
    }
    double x = LEFT + 8 + 150 * (double)line;
    fprintf(page, "<polyline class=\"%s\" points=\"%.0f,%d %.0f,%d\"/>", classes[line], x,
            BOTTOM + 32, x + 22, BOTTOM + 32);
    fprintf(page, "<text x=\"%.0f\" y=\"%d\">%s</text>\n", x + 28, BOTTOM + 36, name);
}

bool sinkproof_chart_lines(FILE *page, const char *const names[CHART_LINES], size_t n,
                           const sinkproof_chart_place *places) {
    frame f;
    if (n == 0 || !curve_frame_fit(&f, n, places)) return false;
    fprintf(page,
            "<svg class=\"roomy\" viewBox=\"0 0 %d %d\" width=\"%d\" role=\"img\" "
            "aria-label=\"lines\">",
            RIGHT + 20, BOTTOM + 44, RIGHT + 20);
    draw_axes(page, &f);
    for (size_t k = 0; k < CHART_LINES; k++) draw_line(page, &f, names[k], k, n, places);
    fputs("</svg>\n", page);
    return true;
}

// ---- scatter ---------------------------------------------------------------------------------

// The range of the horizontal axis: a little wider than that of the places.
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
    fprintf(page,
            "<svg class=\"roomy\" viewBox=\"0 0 %d %d\" width=\"%d\" role=\"img\" "
            "aria-label=\"scatter\">",
            RIGHT + 20, BOTTOM + 44, RIGHT + 20);
    for (int d = f.low; d <= f.high; d++) {
        double y = curve_y(&f, pow(10, d));
        fprintf(page, "<path class=\"axis\" d=\"M%d %.1fH%d\"/>", LEFT, y, RIGHT);
        fprintf(page, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">1e%d</text>", LEFT - 6, y + 4,
                d);
    }
    double taken[CHART_DOTS][2]; // where labels begin
    for (size_t i = 0; i < n && i < CHART_DOTS; i++) {
        if (!is_drawn(places[i].at) || !is_drawn(places[i].value[0])) continue;
        double x = curve_x(&f, log10(places[i].at)), y = curve_y(&f, places[i].value[0]),
               name_y = y - 5;
        for (size_t k = 0; k < i; k++) // labels of close dots go below each other
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
    sinkproof_page_say(page, "%s: %s of the elements", range,
                       sinkproof_share_percent_digits(share, 4).text);
    fputs("</title></rect>", page);
}

void chart_histogram(FILE *page, const char *name, const sinkproof_histogram *h) {
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

enum { LEVELS = 12, GAP = 2, UNKNOWN = LEVELS };

// Weights are shown by octaves: level L is 2^-(LEVELS - 1 - L) and up to twice that; -1: less;
// UNKNOWN: NaN.
static int weight_level(double weight) {
    if (isnan(weight)) return UNKNOWN;
    if (!(weight > 0)) return -1;
    int level = LEVELS - 1 + (int)floor(log2(weight));
    return level >= LEVELS ? LEVELS - 1 : level;
}

// The column of the first key: after the sink's column, if there is one.
size_t chart_key_column(const sinkproof_chart_heat *m) {
    return m->sink != NULL ? 1 + GAP : 0;
}

static void draw_level(FILE *page, const sinkproof_chart_heat *m, int level) {
    size_t indent = chart_key_column(m);
    for (size_t q = 0; q < m->queries; q++) {
        if (m->sink != NULL && weight_level(m->sink(m->context, q)) == level)
            fprintf(page, "M0 %zu.5h1", q);
        for (size_t k = 0; k < m->keys; k++)
            if (weight_level(m->weight(m->context, q, m->first + k)) == level)
                fprintf(page, "M%zu %zu.5h1", k + indent, q);
    }
}

void chart_draw_heat(FILE *page, const sinkproof_chart_heat *m) {
    size_t indent = chart_key_column(m);
    for (int level = 0; level < LEVELS; level++) {
        fprintf(page, "<path class=\"heat\" stroke-opacity=\"%.2f\" d=\"", (level + 1.0) / LEVELS);
        draw_level(page, m, level);
        fputs("\"/>", page);
    }
    fputs("<path class=\"unknown\" d=\"", page);
    draw_level(page, m, UNKNOWN);
    fprintf(page, "\"/><path class=\"frame\" d=\"M%zu 0V%zuH%zu\"/>", indent, m->queries,
            indent + m->keys);
}

static void draw_map(FILE *page, const sinkproof_chart_heat *m, size_t pixels) {
    size_t width = chart_key_column(m) + m->keys;
    fprintf(page,
            "<svg viewBox=\"0 0 %zu %zu\" width=\"%zu\" role=\"img\" "
            "aria-label=\"attention weights\" shape-rendering=\"crispEdges\">",
            width, m->queries, width * pixels);
    chart_draw_heat(page, m);
    fputs("</svg>\n", page);
}

void sinkproof_chart_maps_svg(FILE *page, const sinkproof_chart_maps *maps) {
    enum { SIDE = 152, APART = 20, NAME = 18 };
    size_t rows = (maps->n + maps->columns - 1) / maps->columns;
    size_t width = maps->columns * (SIDE + APART), height = rows * (SIDE + APART + NAME);
    fprintf(page, "<svg class=\"roomy\" viewBox=\"0 0 %zu %zu\" width=\"%zu\" role=\"img\" ", width,
            height, width);
    fputs("aria-label=\"", page);
    sinkproof_page_text(page, maps->label);
    fputs("\">\n", page);
    for (size_t i = 0; i < maps->n; i++) {
        const sinkproof_chart_heat *m = &maps->map_n[i];
        size_t x = i % maps->columns * (SIDE + APART);
        size_t y = i / maps->columns * (SIDE + APART + NAME);
        size_t cells = chart_key_column(m) + m->keys;
        fprintf(page, "<text x=\"%zu\" y=\"%zu\">", x, y + NAME - 6);
        sinkproof_page_text(page, maps->name_n[i].text);
        fprintf(page, "</text><g transform=\"translate(%zu %zu) scale(%.4f)\" ", x, y + NAME,
                (double)SIDE / (double)(cells > m->queries ? cells : m->queries));
        fputs("shape-rendering=\"crispEdges\">", page);
        chart_draw_heat(page, m);
        fputs("</g>\n", page);
    }
    fputs("</svg>\n", page);
}

void chart_heat_map(FILE *page, const char *name, const sinkproof_chart_heat *m) {
    fputs("<figure><figcaption>", page);
    sinkproof_page_text(page, name);
    fputs("</figcaption>", page);
    draw_map(page, m, m->keys > 60 ? 3 : 5);
    fputs("</figure>\n", page);
}

// ---- grid ------------------------------------------------------------------------------------

enum { CELL = 12, NAMES = 46, HEAD = 20, TIPS = 600 };

// A cell is reached by the keyboard too: it shows its number while it has the focus.
static void draw_cell(FILE *page, const sinkproof_chart_grid *g, size_t row, size_t column,
                      size_t width) {
    double value = g->value(g->context, row, column);
    bool tips = g->rows * g->columns <= TIPS;
    if (tips) fputs("<g class=\"tip\" tabindex=\"0\">", page);
    fprintf(page, "<rect class=\"%s\" x=\"%zu\" y=\"%zu\" width=\"11\" height=\"11\"",
            isfinite(value) ? "cell" : "unknown", NAMES + CELL * column, HEAD + CELL * row);
    if (isfinite(value)) fprintf(page, " fill-opacity=\"%.2f\"", fmin(1, fmax(0, value / g->most)));
    fprintf(page, "><title>%zu.%zu: ", row, column);
    isfinite(value) ? fprintf(page, "%.4g", value) : fputs("not known", page);
    fputs("</title></rect>", page);
    if (!tips) return;
    fprintf(page, "<text x=\"%zu\" y=\"12\" text-anchor=\"end\">%s %zu, %s %zu: ", width - 4,
            g->down, row, g->across, column);
    isfinite(value) ? fprintf(page, "%.4g", value) : fputs("not known", page);
    fputs("</text></g>", page);
}

// Draws the scale of colours with its largest value and its caption.
static void draw_scale(FILE *page, double most, const char *what, size_t y) {
    for (int k = 0; k < 10; k++)
        fprintf(page,
                "<rect class=\"cell\" x=\"%d\" y=\"%zu\" width=\"12\" height=\"11\" "
                "fill-opacity=\"%.2f\"/>",
                NAMES + 30 + 12 * k, y, k / 9.0);
    fprintf(page, "<text x=\"%d\" y=\"%zu\">0</text><text x=\"%d\" y=\"%zu\">", NAMES + 16, y + 10,
            NAMES + 156, y + 10);
    sinkproof_page_say(page, "%.4g: %s", most, what);
    fputs("</text>", page);
}

void sinkproof_chart_grid_svg(FILE *page, const sinkproof_chart_grid *g) {
    size_t width = NAMES + CELL * (g->columns < 40 ? 40 : g->columns) + 4,
           bottom = HEAD + CELL * g->rows;
    fprintf(page,
            "<svg class=\"roomy\" viewBox=\"0 0 %zu %zu\" width=\"%zu\" role=\"img\" "
            "aria-label=\"grid\">",
            width, bottom + 34, width);
    fprintf(page, "<text x=\"%d\" y=\"12\">%s</text>", NAMES, g->across);
    fprintf(page, "<text x=\"%d\" y=\"12\" text-anchor=\"end\">%s</text>", NAMES - 6, g->down);
    for (size_t c = g->columns > 16 ? 8 : 4; c<g->columns; c += g->columns> 16 ? 8 : 4)
        fprintf(page, "<text x=\"%zu\" y=\"12\" text-anchor=\"middle\">%zu</text>",
                NAMES + CELL * c + CELL / 2, c);
    for (size_t r = 0; r < g->rows; r++) {
        if (g->rows <= 12 || r % 2 == 0)
            fprintf(page, "<text x=\"%d\" y=\"%zu\" text-anchor=\"end\">%zu</text>", NAMES - 6,
                    HEAD + CELL * r + 10, r);
        for (size_t c = 0; c < g->columns; c++) draw_cell(page, g, r, c, width);
    }
    draw_scale(page, g->most, g->what, bottom + 14);
    fputs("</svg>\n", page);
}

// ---- curves ----------------------------------------------------------------------------------

static double place_x(const sinkproof_chart_curves *c, size_t place) {
    double share = c->places > 1 ? (double)place / (double)(c->places - 1) : 0.5;
    return LEFT + share * (RIGHT - LEFT);
}

static double value_y(const sinkproof_chart_curves *c, double value) {
    return BOTTOM - (value - c->low) / (c->high - c->low) * (BOTTOM - TOP);
}

static void draw_scales(FILE *page, const sinkproof_chart_curves *c) {
    for (int k = 0; k <= 4; k++) {
        double value = c->low + (c->high - c->low) * k / 4, y = value_y(c, value);
        fprintf(page, "<path class=\"axis\" d=\"M%d %.1fH%d\"/>", LEFT, y, RIGHT);
        fprintf(page, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.3g</text>", LEFT - 6, y + 4,
                value);
    }
    double step = 1, range = c->to - c->from;
    while (range > 12 * step) step *= 2;
    for (double at = step * ceil(c->from / step); range > 0 && at <= c->to; at += step)
        fprintf(page, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>",
                LEFT + (at - c->from) / range * (RIGHT - LEFT), BOTTOM + 18, at);
    fprintf(page, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>", RIGHT, BOTTOM + 36,
            c->across);
}

static void draw_curve(FILE *page, const sinkproof_chart_curves *c, size_t curve) {
    const sinkproof_chart_curve *how = &c->curve_n[curve];
    bool open = false;
    fprintf(page, "<path class=\"curve %s\" stroke-opacity=\"%.2f\" d=\"", how->class,
            how->opacity);
    for (size_t p = 0; p < c->places; p++) {
        double value = c->value(c->context, curve, p);
        if (isfinite(value))
            fprintf(page, "%c%.1f %.1f", open ? 'L' : 'M', place_x(c, p), value_y(c, value));
        open = isfinite(value);
    }
    fputs("\"><title>", page);
    sinkproof_page_text(page, how->name);
    fputs("</title></path>\n", page);
    for (size_t p = 0; c->legend && p < c->places; p++) {
        double value = c->value(c->context, curve, p), at = c->from;
        if (!isfinite(value)) continue;
        if (c->places > 1) at += (c->to - c->from) * (double)p / (double)(c->places - 1);
        fprintf(page, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\"><title>", how->class,
                place_x(c, p), value_y(c, value));
        sinkproof_page_say(page, "%s %.4g: %s %.4g", c->across, at, how->name, value);
        fputs("</title></circle>", page);
    }
}

void sinkproof_chart_curves_svg(FILE *page, const sinkproof_chart_curves *c) {
    fprintf(page,
            "<svg class=\"roomy\" viewBox=\"0 0 %d %d\" width=\"%d\" role=\"img\" "
            "aria-label=\"curves\">",
            RIGHT + 20, BOTTOM + 44, RIGHT + 20);
    draw_scales(page, c);
    for (size_t k = 0; k < c->n; k++) draw_curve(page, c, k);
    for (size_t k = 0; c->legend && k < c->n && k < CHART_LINES; k++) {
        double x = LEFT + 8 + 200 * (double)k;
        fprintf(page, "<path class=\"curve %s\" d=\"M%.0f %dh22\"/><text x=\"%.0f\" y=\"%d\">",
                c->curve_n[k].class, x, BOTTOM + 32, x + 28, BOTTOM + 36);
        sinkproof_page_text(page, c->curve_n[k].name);
        fputs("</text>", page);
    }
    fputs("</svg>\n", page);
}

// ---- bars ------------------------------------------------------------------------------------

void sinkproof_chart_bars_svg(FILE *page, size_t n, const sinkproof_chart_bar *bar_n) {
    enum { STEP = 44, HEIGHT = 120 };
    size_t width = LEFT + STEP * n + 10;
    fprintf(page,
            "<svg class=\"roomy\" viewBox=\"0 0 %zu %d\" width=\"%zu\" role=\"img\" "
            "aria-label=\"bars\">",
            width, HEIGHT + 44, width);
    for (int k = 0; k <= 2; k++) {
        int y = 14 + HEIGHT - HEIGHT * k / 2;
        fprintf(page, "<path class=\"axis\" d=\"M%d %dH%zu\"/>", LEFT, y, width - 10);
        fprintf(page, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%d %%</text>", LEFT - 6, y + 4,
                50 * k);
    }
    for (size_t i = 0; i < n; i++) {
        const sinkproof_chart_bar *bar = &bar_n[i];
        bool known = isfinite(bar->share);
        double height = known ? HEIGHT * bar->share : HEIGHT;
        fprintf(page,
                "<rect class=\"%s\" x=\"%zu\" y=\"%.1f\" width=\"%d\" height=\"%.1f\"><title>",
                !known      ? "unknown"
                : i + 1 < n ? "bar"
                            : "star",
                LEFT + STEP * i + 4, 14 + HEIGHT - height, STEP - 8, height);
        sinkproof_page_text(page, bar->title);
        fprintf(page, "</title></rect><text x=\"%zu\" y=\"%d\" text-anchor=\"middle\">",
                LEFT + STEP * i + STEP / 2, HEIGHT + 32);
        sinkproof_page_text(page, bar->name);
        fputs("</text>", page);
    }
    fputs("</svg>\n", page);
}
