// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A map of attention with a word for each query and each key, or with their positions.
#include "audit/report/chart.h"
#include "audit/report/page.h"

enum { MARGIN = 104, NAME = 18 };

// A word as far as there is room, or the position of a cell's first token, from 1.
static void write_label(FILE *page, const sinkproof_chart_worded *m, size_t at) {
    if (m->word_n == NULL)
        fprintf(page, "%zu", at * m->cell + 1);
    else
        sinkproof_page_say(page, "%.60s", m->word_n[at]);
}

static bool is_labelled(const sinkproof_chart_worded *m, size_t at) {
    return m->word_n != NULL || at % (m->map->queries > 16 ? 8 : 1) == 0;
}

void sinkproof_chart_words_svg(FILE *page, const sinkproof_chart_worded *m) {
    const sinkproof_chart_heat *map = m->map;
    size_t indent = chart_key_column(map), side = indent + map->keys;
    size_t scale = side > 40 ? 12 : 16, top = MARGIN + NAME;
    size_t width = MARGIN + side * scale + MARGIN / 2, height = top + map->queries * scale + 8;
    fprintf(page, "<svg class=\"roomy\" viewBox=\"0 0 %zu %zu\" width=\"%zu\" role=\"img\" ", width,
            height, width);
    fputs("aria-label=\"", page);
    sinkproof_page_text(page, m->label);
    fprintf(page,
            "\"><text x=\"%d\" y=\"12\">key (column)</text><text x=\"%d\" y=\"%zu\" "
            "text-anchor=\"end\">query (row)</text>\n",
            MARGIN, MARGIN - 8, top - 8);
    for (size_t k = 0; k < map->keys; k++) {
        size_t x = MARGIN + (indent + k) * scale + scale / 2 + 4;
        if (!is_labelled(m, k)) continue;
        fprintf(page, "<text class=\"word\" transform=\"translate(%zu %zu) rotate(-60)\">", x,
                top - 6);
        write_label(page, m, k);
        fputs("</text>", page);
    }
    if (map->sink != NULL)
        fprintf(page,
                "<text class=\"word\" transform=\"translate(%zu %zu) rotate(-60)\">sink</text>",
                MARGIN + scale / 2 + 4, top - 6);
    for (size_t q = 0; q < map->queries; q++) {
        if (!is_labelled(m, q)) continue;
        fprintf(page, "<text class=\"word\" x=\"%d\" y=\"%zu\" text-anchor=\"end\">", MARGIN - 6,
                top + q * scale + scale / 2 + 4);
        write_label(page, m, q);
        fputs("</text>", page);
    }
    fprintf(page, "\n<g transform=\"translate(%d %zu) scale(%zu)\" shape-rendering=\"crispEdges\">",
            MARGIN, top, scale);
    chart_draw_heat(page, map);
    fputs("</g></svg>\n", page);
}
