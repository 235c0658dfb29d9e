// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof sinks --judge`: the verdict on an engine of any design of attention.
#ifndef SINKPROOF_SINKS_JUDGE_H
#define SINKPROOF_SINKS_JUDGE_H

// Judges the file at `path`; policy as `judge --policy` has it, NULL: what the file says, or the
// generic one of its format. json: where the result goes, NULL: nowhere; "-" and nothing else is
// printed. Returns an exit code.
int sinkproof_sinks_judge(const char *path, const char *policy, const char *json);

#endif
