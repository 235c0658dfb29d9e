// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Ball arithmetic from wherever it is installed: FLINT 3 contains Arb, beside FLINT 2.9
// it is a library with headers of its own. mpfr.h comes first, so that the conversions
// between the two are declared.
#ifndef SINKPROOF_TRUTH_FLINT_H
#define SINKPROOF_TRUTH_FLINT_H

#include <stddef.h>
#include <stdio.h>

#include <mpfr.h>

#if __has_include(<flint/arb.h>)
#include <flint/arb.h>
#include <flint/arb_mat.h>
#else
#include <arb.h>
#include <arb_mat.h>
#endif

#endif
