// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Pieces of work in threads. Which thread does which piece changes no result: the pieces write to
// places of their own.
#ifndef SINKPROOF_TRUTH_SHARE_WORK_H
#define SINKPROOF_TRUTH_SHARE_WORK_H

#include <stddef.h>

typedef void truth_piece(void *context, size_t piece, size_t worker); // worker < threads

// Does pieces 0 ... n - 1, each once, by at most `threads` threads; the calling one is among them.
void truth_share(size_t threads, size_t n, truth_piece *work, void *context);

#endif
