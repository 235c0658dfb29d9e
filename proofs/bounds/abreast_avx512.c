// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// AVX-512.
#include "proofs/bounds/abreast.inc"

const sets_abreast sets_abreast_avx512 = {.finish = finish_sets, .swiglu = swiglu_sets};
