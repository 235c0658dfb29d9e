// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#ifndef SINKPROOF_VERSION_H
#define SINKPROOF_VERSION_H

#define SINKPROOF_VERSION "0.1.0"

#endif
