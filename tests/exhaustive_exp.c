// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// libm's exponential at every float32 argument where it neither over- nor underflows: minutes, and
// so not in `make test` but in `make exhaustive`, which keeps what it prints for the book.
#include "tests/exp_floats.h"
#include "tests/tap.h"

#include <gnu/libc-version.h>

int main(void) {
    exp_worst f64 = exp_floats(53, 1), f32 = exp_floats(24, 1);
    bool one = exp_of_tiny_is_one(1);
    const double here = 0x1p-46; // ulp: the reference's own error
    printf("# output exhaustive-exp| glibc %s, every float32 argument whose result neither over- "
           "nor underflows\n",
           gnu_get_libc_version());
    printf(
        "# output exhaustive-exp| exp,  binary64: upper bound %.9f ulp, at %a, %zu above 2^-60\n",
        f64.ulp + here, f64.at, f64.floats);
    printf(
        "# output exhaustive-exp| expf, binary32: upper bound %.9f ulp, at %a, %zu above 2^-60\n",
        f32.ulp + here, f32.at, f32.floats);
    printf("# output exhaustive-exp| both are 1 at all others: %s\n", one ? "yes" : "no");
    ok(f64.ulp + here <= 4, "bound.exp libm exp at every float: upper bound worst=%.9f bound=4 ulp",
       f64.ulp + here);
    ok(f32.ulp + here <= 2,
       "bound.exp libm expf at every float: upper bound worst=%.9f bound=2 ulp", f32.ulp + here);
    ok(one, "bound.exp of tiny numbers is 1");
    return tap_done();
}
