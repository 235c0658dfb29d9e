// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The frame of a page, its style, and text that cannot be taken for markup.
#include "audit/report/page.h"

#include "audit/version.h"

static const char style[] =
    ":root{color-scheme:light dark;--paper:#fdfdfb;--ink:#1c1e21;--faint:#5c6168;--line:#d5d9de;"
    "--panel:#f1f3f1;--good:#1c7a3c;--bad:#b3261e;--odd:#8a5a00;--one:#0b57a4;--two:#b3261e;"
    "--three:#1c7a3c;--heat:#0b57a4}"
    "@media(prefers-color-scheme:dark){:root{--paper:#16181b;--ink:#dfe1e4;--faint:#9aa0a8;"
    "--line:#3a3f46;--panel:#202327;--good:#6cc58a;--bad:#f28b82;--odd:#e5b663;--one:#7db4f0;"
    "--two:#f28b82;--three:#6cc58a;--heat:#7db4f0}}"
    "*{box-sizing:border-box}"
    "body{margin:0;background:var(--paper);color:var(--ink);"
    "font:1rem/1.55 system-ui,Roboto,\"DejaVu Sans\",sans-serif}"
    "main{max-width:76rem;margin:0 auto;padding:2rem 1.2rem 4rem;overflow-wrap:anywhere}"
    "h1{font-size:1.5rem;line-height:1.3;margin:.2em 0 .6em}h2{font-size:1.15rem;margin:2.2em 0 "
    ".5em}"
    "h3{font-size:1rem;margin:1.4em 0 .4em}p{max-width:52rem;margin:.5em 0}"
    ".faint{color:var(--faint)}.good{color:var(--good)}.bad{color:var(--bad)}.odd{color:var(--odd)}"
    "code,pre,.num{font-family:ui-monospace,Menlo,Consolas,\"DejaVu Sans Mono\",monospace;"
    "font-size:.86em}"
    "pre{background:var(--panel);padding:.8em 1em;overflow-x:auto;overflow-wrap:normal;"
    "line-height:1.4;border-radius:4px}"
    ".wide{overflow-x:auto;max-width:100%}"
    "table{border-collapse:collapse;font-size:.86rem}th,td{padding:.2em .5em;text-align:left;"
    "border-bottom:1px solid var(--line);overflow-wrap:normal}th{font-weight:600}"
    "table.map td,table.map th{padding:.12em .3em;text-align:center;min-width:2.1em;"
    "border:1px solid var(--paper);white-space:nowrap}"
    "table.map th:first-child{text-align:right;position:sticky;left:0;background:var(--paper)}"
    "td.exact,td.within{background:color-mix(in srgb,var(--good) 22%,var(--paper))}"
    "td.undecided{background:var(--panel);color:var(--faint)}"
    "td.suspicious{background:color-mix(in srgb,var(--odd) 40%,var(--paper))}"
    "td.bug{background:color-mix(in srgb,var(--bad) 45%,var(--paper));font-weight:600}"
    "details{margin:.6em 0}summary{cursor:pointer;color:var(--one)}"
    "figure{margin:.6em "
    "0;overflow-x:auto}figcaption{color:var(--faint);font-size:.86rem;max-width:52rem}"
    ".many{display:flex;flex-wrap:wrap;gap:1rem 1.4rem}.many figure{margin:0}.maps "
    "figure{max-width:100%}"
    "svg{max-width:100%;height:auto;display:block}svg text{fill:var(--ink);font-size:12px}"
    "svg .axis{stroke:var(--line);fill:none}svg .bar{fill:var(--one)}svg .zero{fill:var(--three)}"
    "svg .one{stroke:var(--one)}svg .two{stroke:var(--two)}svg .three{stroke:var(--three)}"
    "svg polyline{fill:none;stroke-width:1.8}svg circle.one{fill:var(--one);stroke:none}"
    "svg circle.two{fill:var(--two);stroke:none}svg circle.three{fill:var(--three);stroke:none}"
    "svg .heat{stroke:var(--heat);fill:none;stroke-width:1}"
    "svg .cell{fill:var(--heat)}svg rect.unknown{fill:none;stroke:var(--odd);"
    "stroke-dasharray:2 2}svg path.unknown{fill:none;stroke:var(--odd)}svg .star{fill:var(--odd)}"
    "svg .frame{fill:none;stroke:var(--line);stroke-width:.2}svg "
    ".curve{fill:none;stroke-width:1.8}svg.roomy{min-width:42rem}"
    "svg .tip text{visibility:hidden}svg .tip:hover text,svg .tip:focus text{visibility:visible}"
    "svg .tip:focus{outline:none}svg .tip:focus rect,svg .tip:hover rect{stroke:var(--ink);"
    "stroke-width:1.5}svg text.word{font-size:11px}"
    "@media(min-width:110rem){:root{font-size:125%}main{max-width:100rem}"
    "svg.roomy{width:min(100%,70rem)}}"
    "svg:root{background:var(--paper);min-width:0;padding:8px;"
    "font-family:system-ui,Roboto,\"DejaVu Sans\",sans-serif}"
    "@media print{main{max-width:none}details{display:block}}";

void sinkproof_page_text(FILE *page, const char *text) {
    for (; *text != '\0'; text++) switch (*text) {
        case '&':
            fputs("&amp;", page);
            break;
        case '<':
            fputs("&lt;", page);
            break;
        case '>':
            fputs("&gt;", page);
            break;
        case '"':
            fputs("&quot;", page);
            break;
        default:
            if ((unsigned char)*text >= ' ' || *text == '\n' || *text == '\t') fputc(*text, page);
        }
}

void sinkproof_page_say(FILE *page, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    sinkproof_page_text(page, text);
}

void page_style(FILE *page) {
    fprintf(page, "<style>%s</style>", style);
}

void sinkproof_page_begin(FILE *page, const char *title) {
    fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "style-src 'unsafe-inline'\">\n<title>",
          page);
    sinkproof_page_text(page, title);
    fputs("</title>\n", page);
    page_style(page);
    fputs("</head>\n<body><main>\n", page);
}

void sinkproof_page_end(FILE *page) {
    fputs("</main></body></html>\n", page);
}

void sinkproof_page_model(FILE *page, uint64_t fingerprint) {
    fputs("<h2>Provenance</h2>\n<p>", page);
    sinkproof_page_say(page, "sinkproof %s, model fingerprint %016llx.", SINKPROOF_VERSION,
                       (unsigned long long)fingerprint);
    fputs("</p>\n", page);
}

void sinkproof_page_end_model(FILE *page, uint64_t fingerprint) {
    sinkproof_page_model(page, fingerprint);
    sinkproof_page_end(page);
}
