// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// AVX2 and FMA.
#include "proofs/bounds/abreast.inc"

const sets_abreast sets_abreast_avx2 = {.finish = finish_sets, .swiglu = swiglu_sets};
