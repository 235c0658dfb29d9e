// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A row for each gradient: what is outside, the share of its set that it uses, and the cause or
// what the trace lacks.
#include "audit/report/gradients.h"

#include "audit/report/page.h"
#include "base/share.h"
#include "base/words.h"

static void write_row(FILE *page, const sinkproof_gradient_report *r) {
    fprintf(page, "<tr><th>%s</th><td>%s</td><td class=\"%s\">%s</td>", r->name, r->statement,
            sinkproof_verdict_name(r->verdict), sinkproof_verdict_name(r->verdict));
    fprintf(page,
            "<td class=\"num\">%zu</td><td class=\"num\">%zu</td><td class=\"num\">%s</td><td>",
            r->elements, r->outside,
            r->several > 0 ? sinkproof_share_fixed(r->share_worst, 2).text : "=");
    if (r->cause[0] != '\0') sinkproof_page_say(page, "cause: %s", r->cause);
    if (r->missing[0] != '\0') sinkproof_page_say(page, "the trace lacks %s", r->missing);
    fputs("</td></tr>\n", page);
}

bool write_gradient_title(FILE *page, const sinkproof_gradient_judgement *j, const char *policy) {
    if (j->first == NULL) return false;
    sinkproof_page_say(page, "A bug at %s: %zu of %s are not what %s allows", j->first->name,
                       j->first->outside, sinkproof_counted(j->first->elements, "element").text,
                       policy);
    return true;
}

void write_gradients(FILE *page, const sinkproof_gradient_judgement *j) {
    if (j->n_reports == 0) return;
    fputs("<h2>Gradients, each from its own inputs</h2>\n<p>", page);
    sinkproof_page_text(page, j->freedoms);
    fputs("</p>\n<div class=\"wide\"><table><thead><tr><th>gradient</th><th>statement</th>"
          "<th>verdict</th><th>elements</th><th>outside</th><th>share of set used</th><th></th>"
          "</tr></thead>\n<tbody>",
          page);
    for (size_t i = 0; i < j->n_reports; i++) write_row(page, &j->reports[i]);
    fputs("</tbody></table></div>\n", page);
}
