// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A design in words: a row of the table (ref/variants/designs.c), or one with other choices.
#ifndef SINKPROOF_CHOICES_H
#define SINKPROOF_CHOICES_H

#include "ref/variants/variant.h"

// Parses "NAME[,KEY=VALUE]...": "softmax", "gpt-oss-window,window=64", "alibi,star=score". A window
// makes a causal design one with a window, and a prefix one with a prefix. Errors name the word and
// list what is known.
bool sinkproof_design_parse(const char *text, sinkproof_variant *out, sinkproof_error *error);

#endif
