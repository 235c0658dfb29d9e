#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# The x86-64 build on processors that it was not built on, under qemu-user: it meets no instruction
# that they lack, and says which set ran. QEMU_TESTS: compiled tests to run there as well. FEW=1 measures no speeds of
# an emulator: each set does a forward pass. QEMU emulates no AVX-512 and no AMX, and AVX only from version 7.2 on.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shared/tap.sh
unset SINKPROOF_ISA
export SINKPROOF_EMULATED=1

if [ "$(uname -m)" != x86_64 ]; then
    echo "1..0 # SKIP the build is for $(uname -m)"
    exit 0
fi
version=$(qemu-x86_64 --version | sed -n 's/^qemu-x86_64 version \([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
[ -n "$version" ]
report $? "qemu-x86_64 has version $(echo "$version" | tr ' ' .)"
has_avx() { [ "${version% *}" -gt 7 ] || [ "$version" = "7 2" ]; }

# QEMU names on stderr each feature of the processor that it does not emulate; those lines go.
emulated() { # processor, command
    processor=$1
    shift
    qemu-x86_64 -cpu "$processor" "$@" 2>"$work/said" >"$work/out"
    found=$?
    grep -v "TCG doesn't support requested feature" "$work/said" >"$work/err"
    return $found
}

# On this machine, unemulated: the same numbers.
"$sinkproof" run synthetic:tiny --tokens 1,2,3,4,5,6,7,8 --engine fast >"$work/native" 2>/dev/null

forward() { # processor, the set that must do it
    emulated "$1" "$sinkproof" run synthetic:tiny --tokens 1,2,3,4,5,6,7,8 --engine fast
    [ $found = 0 ] && grep -qF "engine fast, $2," "$work/err"
    report $? "$1: a forward pass: exit $found, $(grep -o 'engine fast, [a-z0-9+]*' "$work/err")"
    [ -s "$work/native" ] && cmp -s "$work/native" "$work/out"
    report $? "$1: $2 prints what is printed here, unemulated"
}

# Which of its sets an emulated processor is given is measured, and an emulator's speeds are its own.
on() { # processor, the sets that it has, the sets that must be refused
    processor=$1
    if [ -z "${FEW:-}" ]; then
        emulated "$processor" "$sinkproof" info --cpu
        report $? "$processor: info --cpu meets no unknown instruction"
        chosen=$(sed -n 's/^chosen *\([a-z0-9+]*\) (.*/\1/p' "$work/out")
        sets=$(sed -n 's/^\([a-z0-9]*\)  *yes  .*/\1/p' "$work/out" | tr '\n' ' ')
        [ "$sets" = "$2 " ]
        report $? "$processor: has $2: ${sets:-none}"
        [ -n "$chosen" ]
        status=$?
        for isa in $(echo "$chosen" | tr + ' '); do
            case " $2 " in *" $isa "*) ;; *) status=1 ;; esac
        done
        report $status "$processor: given what it has: ${chosen:-nothing}"
        forward "$processor" "$chosen"
    fi
    for isa in $3; do
        export SINKPROOF_ISA="$isa"
        emulated "$processor" "$sinkproof" info --cpu
        [ $found = 2 ] && grep -q "\"$isa\" does not run here: the processor lacks" "$work/err"
        report $? "$processor: $isa is refused: $(cat "$work/err")"
        unset SINKPROOF_ISA
    done
    for isa in $2; do
        export SINKPROOF_ISA="$isa"
        forward "$processor" "$isa"
        unset SINKPROOF_ISA
    done
    for program in ${QEMU_TESTS:-}; do
        out="$work/$processor.$(basename "$program")"
        status=unknown
        [ ! -s "$out.status" ] || read -r status <"$out.status"
        [ "$status" = 0 ]
        report $? "$processor: $(basename "$program"): exit $status, $(grep -c '^ok' "$out") checks passed"
        [ "$status" = 0 ] || grep '^not ok' "$out" | head -n 5 | sed 's/^/# /'
    done
}

# The compiled tests take minutes there: as many at once as there are processors, reported in order.
for processor in Nehalem Haswell; do
    for program in ${QEMU_TESTS:-}; do echo "$processor $program"; done
done | xargs -r -L 1 -P "$(nproc)" sh -c '
    out="$0/$1.$(basename "$2")"
    qemu-x86_64 -cpu "$1" "$2" >"$out" 2>/dev/null
    echo $? >"$out.status"' "$work"

beyond="avx512 avx512bf16 amx"
on Nehalem portable "avx2 $beyond"
if has_avx; then on Haswell "portable avx2" "$beyond"; else on Haswell portable "avx2 $beyond"; fi
tap_done
