// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Ball arithmetic, from the library that is installed: FLINT 3 contains Arb; with FLINT 2.9, Arb is
// a separate library with headers of its own. mpfr.h comes first, so that the conversions between
// MPFR and Arb are declared.
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
