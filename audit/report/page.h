// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What a page is made of: one HTML file that needs nothing beside it, no script and no network.
// Light and dark follow the reader's setting; text is escaped where it is written.
#ifndef SINKPROOF_PAGE_H
#define SINKPROOF_PAGE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// From <!doctype> to <main>, and what closes it.
void sinkproof_page_begin(FILE *page, const char *title);
void sinkproof_page_end(FILE *page);
// The same behind a word on who wrote the page, and of which model (model/model.h).
void sinkproof_page_end_model(FILE *page, uint64_t fingerprint);

// The style alone, for a picture that is a file of its own.
void sinkproof_page_style(FILE *page);

// Text as text: & < > " and control characters escaped.
void sinkproof_page_text(FILE *page, const char *text);
// printf whose result is text, at most 1,023 bytes of it.
__attribute__((format(printf, 2, 3))) void sinkproof_page_say(FILE *page, const char *format, ...);

#endif
