// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The gradients of the experts' activation z = g sigmoid(a g) (u + offset), where g is the gate
// clamped from above and u is clamped on both sides. At a limit itself the clamp passes the
// gradient, beyond it nothing: the convention of torch.clamp.
#include "ref/backward/backward.h"

#include <math.h>

void sinkproof_swiglu_backward(sinkproof_swiglu_numbers numbers, double gate, double up,
                               double dact, double *dgate, double *dup) {
    double limit = numbers.limit;
    double g = gate > limit ? limit : gate;
    double u = up > limit ? limit : up < -limit ? -limit : up;
    //> grad.swiglu
    double sigmoid = 1 / (1 + exp(-numbers.alpha * g));
    double opposite = 1 / (1 + exp(numbers.alpha * g)); // 1 - sigmoid, with all its bits
    double dswish = sigmoid * (1 + numbers.alpha * g * opposite);
    *dgate = gate <= limit ? dact * (u + numbers.offset) * dswish : 0;
    *dup = -limit <= up && up <= limit ? dact * (g * sigmoid) : 0;
    //< grad.swiglu
}
