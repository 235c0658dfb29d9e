#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# `sinkproof bench`: it runs, says what ran, and its JSON holds what it promises. Nothing here is about
# how fast anything is: no number is compared with another.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shared/tap.sh
unset SINKPROOF_ISA

cat >"$work/check.py" <<'END'
"""check.py FILE ISA THREADS ID...: the envelope, its rows, and that these ids are there."""
import json, math, sys
path, isa, threads, ids = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
result = json.load(open(path))
assert list(result) == ["sinkproof", "schema", "command", "exit", "results", "machine"], list(result)
assert result["command"] == "bench" and result["exit"] == 0
rows = result["results"]
found = [row["id"] for row in rows]
assert len(set(found)) == len(found), "an id twice"
for row in rows:
    at = row["id"]
    assert row["ok"] is True and row["label"] == "measured", at
    assert math.isfinite(row["value"]) and row["value"] > 0 and row["unit"], at
    least, most = row["spread"]
    assert 0 < least <= row["median"] <= most and 1 <= row["repeats"] <= row["taken"] <= 99, at
    assert set(row["disturbed"]) <= {"case", "limit", "share"}, at
    # What was left out leaves three quiet runs at least; a share above 1 is never bare.
    # The cost of sinks is that of two cases: its counts are those of the first.
    quiet = "case" not in row["disturbed"] or at.endswith(".sinks-cost")
    assert row["repeats"] == row["taken"] or row["repeats"] >= 3 and quiet, at
    assert ("share" in row["disturbed"]) == ((row["share"] or 0) > 1), at
    assert isa in ("any", row["isa"]) and row["mode"] in ("lanes", "amx") and row["processor"], at
    assert 1 <= row["threads"] <= threads, at
    if at.startswith("limit."):
        assert row["limit"] is None and row["share"] is None and row["how"], at
    elif at.startswith("truth."):  # no limit of the machine is measured for exact products
        assert row["limit"] is None and row["share"] is None and row["unit"] == "Mmul-add/s", at
    else:
        assert row["limit"] > 0 and row["share"] > 0 and row["roof"], at
        ratio = row["value"] / row["limit"]
        if at.endswith(".sinks-cost"):
            ratio = 1 / ratio  # the less the better
        # Three rounded divisions there, three here: six times 2^-53, and its square.
        assert abs(ratio / row["share"] - 1) <= 7 * 2.0**-53, (at, "share is not value / limit")
        assert row["unit"] != "tok/s" or row["bytes_per_token"] > 0, at
missing = [id for id in ids if id not in found]
assert not missing, f"missing: {missing}"
END

checked() { # text, isa, threads, ids
    text=$1
    shift
    python3 "$work/check.py" "$work/out" "$@"
    report $? "$text"
}

products=peer.openblas.experts-up.n32
for format in mxfp4 bf16 q8_0 f32; do
    for tokens in 1 8 32; do products="$products product.experts-up.$format.f32.n$tokens"; done
done

# Whatever set is forced is what ran, in every row; what does not run here is an error, never another set.
ran=0
for isa in portable neon avx2 avx512 avx512bf16 amx; do
    SINKPROOF_ISA=$isa "$sinkproof" bench --quick --threads 1 --only experts-up --json - >"$work/out" 2>"$work/err"
    code=$?
    if [ $code = 0 ]; then
        ran=$((ran + 1))
        checked "SINKPROOF_ISA=$isa: $isa ran and nothing else" "$isa" 1 limit.memory.1 limit.cache.1 limit.fma.1 \
            limit.exp.1 $products
    else
        [ $code = 2 ] && grep -q "$isa" "$work/err" && [ ! -s "$work/out" ]
        report $? "$isa does not run here: exit $code with a sentence that names it"
    fi
done
[ $ran -ge 1 ]
report $? "$ran instruction sets ran"

exits 0 "steps and attention, two threads" bench --quick --threads 2 --only q1.k --json -
checked "attention with sinks and without, and their ratio" any 2 limit.memory.1 limit.memory.2 \
    attention.bf16.q1.k512 attention.bf16.q1.k512.no-sinks attention.bf16.q1.k512.sinks-cost \
    attention.f32.q1.k4096.window attention.f32.q1.k4096.window.sinks-cost
exits 0 "the steps between the products" bench --quick --threads 1 --only stage. --json -
checked "each of them" any 1 stage.rmsnorm stage.rope stage.swiglu stage.mixture stage.exp

exits 0 "exact products" bench --truth --quick --threads 1 --only mxfp4.b128.n4. --json -
checked "slices, and the same with three libraries' functions" any 1 truth.experts-up.mxfp4.b128.n4.sliced \
    truth.experts-up.mxfp4.b128.n4.arb_mat_mul truth.experts-up.mxfp4.b128.n4.arb_dot truth.experts-up.mxfp4.b128.n4.mpfr_fma
[ "$(grep -c '"id"' "$work/out")" = "$(grep -c '"id": "truth\|"id": "limit' "$work/out")" ]
report $? "--truth measures no kernel"

for policy in f32 bf16-operands; do
    exits 0 "a model, $policy" bench --quick --threads 2 --model synthetic:tiny --policy $policy --json -
    checked "decoding, prefill, batches, packing" any 2 model.pack model.decode.depth0 model.decode.depth16 \
        model.prefill.n8 model.prefill.n32 model.decode.batch2
done
exits 0 "lists" bench --quick --threads 1 --model synthetic:tiny --prompt 1,7 --depth 3 --batch 5 --decode 2 --json -
checked "the numbers of the command line" any 1 model.prefill.n1 model.prefill.n7 model.decode.depth3 model.decode.batch5

# People get a table with the same ids, gnuplot gets columns.
exits 0 "a table" bench --quick --threads 1 --only stage.rope
grep -q '^stage.rope .*GB/s\|^stage.rope .*GFLOP/s' "$work/out" && grep -q 'instruction set' "$work/out"
report $? "the table names the instruction set and has the case"
if "$sinkproof" info --cpu | grep -q '^amx *yes'; then
    [ "$(wc -l <"$work/err")" = 1 ] && grep -q '^sinkproof bench: --isa amx is another numeric mode' "$work/err"
    report $? "standard error, which is no terminal, says what another numeric mode would bring, and nothing else"
else
    empty err "nothing on standard error, which is no terminal"
fi
exits 0 "a table of a set that was asked for" bench --quick --threads 1 --only stage.rope --isa portable
empty err "nothing on standard error"
for axis in context batch threads; do
    exits 0 "--scaling $axis" bench --quick --threads 2 --model synthetic:tiny --depth 1,8 --prompt 8 --scaling $axis
    awk '/^#/ { next } NF == 0 { next } { rows++; if (NF != 5 || !($2 > 0 && $3 <= $2 && $2 <= $4 && $5 > 0)) exit 1 }
        END { exit !(rows >= 2) }' "$work/out"
    report $? "--scaling $axis: five columns, seconds per token with least and most, and the roof"
done

exits 2 "an unknown instruction set" bench --quick --isa sse9
grep -q sse9 "$work/err"
report $? "the sentence names it"
SINKPROOF_ISA=sse9 "$sinkproof" bench --quick >"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -q sse9 "$work/err"
report $? "SINKPROOF_ISA=sse9: exit 2"
exits 2 "an unknown policy" bench --quick --policy f31
exits 2 "a policy that the lanes do not serve" bench --quick --policy hf-bf16
exits 2 "no threads" bench --threads 0
exits 2 "a number that is none" bench --prompt 32,x
exits 2 "an empty number in a list" bench --batch 1,,2
exits 2 "a batch of nothing" bench --batch 0
exits 2 "no such axis" bench --scaling width
exits 2 "a model without --model" bench synthetic:tiny
exits 2 "an unknown option" bench --faster
exits 2 "no case has that in its id" bench --quick --threads 1 --only nothing-like-it
# 20 billion weights would take a minute to pack.
exits 2 "refused before a model is packed" bench --threads 1 --only nothing-like-it --model synthetic:gpt-oss-20b
empty out "and before anything is measured"
exits 3 "a depth beyond the context, after another" bench --quick --threads 1 --only depth --model synthetic:tiny \
    --depth 0,1000000
grep -q '^model.decode.depth0 ' "$work/out" && grep -q "the model's context ends" "$work/err"
report $? "a row is printed when it is measured, whatever comes later"
exits 3 "the same as JSON" bench --quick --threads 1 --only depth --model synthetic:tiny --depth 0,1000000 --json -
empty out "and JSON is whole or absent"
empty out "and nothing is printed"
exits 3 "a model that is not there" bench --quick --threads 1 --model "$work/none"
exits 3 "JSON into a folder that is not there" bench --quick --threads 1 --only stage.rope --json "$work/none/out.json"
tap_done
