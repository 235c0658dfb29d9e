#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# ref/ alone: compiled where no other room can be included, its program needs libc, libm and Jansson
# and nothing else, and gives the same digits as the command that is linked with everything.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shared/tap.sh
alone=$(dirname "$sinkproof")/alone/sinkproof-ref

ldd "$alone" | awk '{print $1}' | grep -v -e '^linux-vdso' -e 'ld-linux' | sort >"$work/needs"
printf '%s\n' libc.so.6 libjansson.so.4 libm.so.6 >"$work/expected"
cmp -s "$work/needs" "$work/expected"
report $? "the program of ref/ alone needs $(tr '\n' ' ' <"$work/needs")"

same() { # model, tokens
    "$alone" "$1" $2 >"$work/alone" 2>"$work/err"
    report $? "ref/ alone runs $1 $(cat "$work/err")"
    "$sinkproof" run "$1" --tokens "$(echo "$2" | tr ' ' ,)" >"$work/whole" 2>"$work/err"
    cmp "$work/alone" "$work/whole"
    report $? "model.forward of $1 on $2: the same digits as those of the command"
}

same synthetic:tiny "1 2 3"
same synthetic:tiny,seed=4,layers=6 "7 0 7 210 5 5 1 8 9 30 31 32"
"$sinkproof" synth synthetic:tiny --out "$work/openai" --layout openai
same "$work/openai" "1 2 3"

refused() { # sentence, arguments
    sentence=$1
    shift
    "$alone" "$@" >"$work/alone" 2>"$work/err"
    [ $? -eq 3 ] && grep -q -F -e "$sentence" "$work/err"
    report $? "ref/ alone refuses $*: $(cat "$work/err")"
}

refused "nowhere: No such file or directory: expected a directory, a .gguf file or synthetic:NAME" nowhere 1
refused "211" synthetic:tiny 211
tap_done
