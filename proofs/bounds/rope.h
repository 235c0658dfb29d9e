// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Shared by the two files of the rotation's bounds: rope.c, the definition, and rope_forms.c, the
// other forms that a policy may admit.
#ifndef SINKPROOF_BOUNDS_ROPE_H
#define SINKPROOF_BOUNDS_ROPE_H

#include "proofs/bounds/bounds.h"

// The ends of the YaRN ramp, in pairs of coordinates.
void yarn_ramp_ends(const sinkproof_setting *s, const sinkproof_config *config, double *low,
                    double *high);
double yarn_concentration_set(const sinkproof_config *config);

// The angle of pair i at a position: lo, mid and hi; for the definition, and as the hull over the
// forms that the policy admits.
sinkproof_honest honest_product_angle(const sinkproof_setting *s, const sinkproof_config *config,
                                      double position, size_t i);
sinkproof_honest honest_angle(const sinkproof_setting *s, const sinkproof_config *config,
                              double position, size_t i);

#endif
