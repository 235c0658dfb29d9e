// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The frame of a page: one HTML file without scripts, external files or network access. Light and
// dark follow the reader's setting; text is escaped where it is written.
#ifndef SINKPROOF_PAGE_H
#define SINKPROOF_PAGE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// Writes from <!doctype> to <main>, and the closing tags.
void sinkproof_page_begin(FILE *page, const char *title);
void sinkproof_page_end(FILE *page);
// A line on the program that wrote the page and the model's fingerprint (model/model.h); the same
// and the closing tags.
void sinkproof_page_model(FILE *page, uint64_t fingerprint);
void sinkproof_page_end_model(FILE *page, uint64_t fingerprint);

// Writes the style alone, for a picture in a file of its own.
void page_style(FILE *page);

// Writes text with & < > " and control characters escaped.
void sinkproof_page_text(FILE *page, const char *text);
// Formats like printf and writes the result, at most 1,023 bytes, as escaped text.
__attribute__((format(printf, 2, 3))) void sinkproof_page_say(FILE *page, const char *format, ...);

#endif
