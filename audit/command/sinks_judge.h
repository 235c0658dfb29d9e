// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof sinks --judge`: prints the verdict on an engine of any design of attention.
#ifndef SINKPROOF_SINKS_JUDGE_H
#define SINKPROOF_SINKS_JUDGE_H

// Judges the file at `path` under `policy`, which is as in `judge --policy`; NULL: the file's own,
// or the generic one of its format. json: the file for the result, or NULL; "-" prints only JSON.
// Returns an exit code.
int cmd_sinks_judge(const char *path, const char *policy, const char *json);

#endif
