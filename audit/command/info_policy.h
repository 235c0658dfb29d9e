// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A policy in full, as `info --policy` prints it.
#ifndef SINKPROOF_INFO_POLICY_H
#define SINKPROOF_INFO_POLICY_H

// Prints every point, function, form and choice, as text for sinkproof_policy_parse; returns the
// exit code.
int cmd_info_policy(const char *text);

#endif
