#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# The fast path on the models' full sizes, every traced point judged: the 20b model with a prompt of
# 160 tokens and 32 generated, under both operand formats, and the 120b model with its layers
# streamed. Minutes of both processors, 18 GB of memory, 2 GB in $TMPDIR.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shared/tap.sh

memory=$(awk '/^MemAvailable/ {print int($2 / 1000000)}' /proc/meminfo)
disk=$(df -Pk "$work" | awk 'NR == 2 {print int($4 / 1000000)}')
if [ "$memory" -lt 18 ] || [ "$disk" -lt 2 ]; then
    echo "1..0 # SKIP expected 18 GB of memory and 2 GB in $work, found $memory and $disk"
    exit 0
fi

# Runs and judges; the rows of the report that stand for all: elements, and what lies outside.
full() { # model, policy, arguments of run
    model=$1
    policy=$2
    shift 2
    exits 0 "run $model under $policy $*" run "$model" --engine fast --policy "$policy" \
        --trace "$work/trace.safetensors" "$@"
    sed 's/^/# /' "$work/err" | tail -1
    exits 0 "judge $model under $policy" judge "$model" "$work/trace.safetensors" --policy "$policy" --local
    sed 's/^/# /' "$work/out"
    rows=$(grep -c '^[ATMF][0-9.a-z]* .* | \(within\|exact\)$' "$work/out")
    [ "$rows" = 22 ]
    report $? "$model under $policy: $rows of 22 points within or exact"
    rm -f "$work/trace.safetensors"
}

for policy in bf16-operands f32; do
    full synthetic:gpt-oss-20b "$policy" --tokens random:160,seed=7 --generate 32
done
full synthetic:gpt-oss-120b bf16-operands --tokens random:64,seed=7 --streamed
tap_done
