// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A design as text: a row of the table (ref/variants/designs.c), or such a row with some choices
// changed.
#ifndef SINKPROOF_CHOICES_H
#define SINKPROOF_CHOICES_H

#include "ref/variants/variant.h"

// Parses "NAME[,KEY=VALUE]...": "softmax", "gpt-oss-window,window=64", "alibi,star=score". A window
// turns a causal design into a windowed one, a prefix into one with a prefix. An error names the
// unknown word and lists the known ones.
bool design_parse(const char *text, sinkproof_variant *out, sinkproof_error *error);

#endif
