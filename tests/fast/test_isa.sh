#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# What ran is what was asked for: `sinkproof info --cpu` and SINKPROOF_ISA. And no object or function but
# those named for an instruction set holds an instruction of one: the rest runs on any x86-64.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shared/tap.sh
unset SINKPROOF_ISA

# One value of the JSON that lies in $work/out: an expression over the result "cpu".
of_json() {
    python3 -c 'import json, sys; cpu = json.load(open(sys.argv[1]))["results"][0]; print(eval(sys.argv[2]))' \
        "$work/out" "$1"
}

exits 0 "info --cpu" info --cpu
grep -q '^chosen      [a-z0-9+]* (mode lanes)$' "$work/out" && grep -q '^portable    yes' "$work/out"
report $? "it names the set chosen and says that portable runs"
exits 0 "info --cpu --json -" info --cpu --json -
[ "$(of_json 'cpu["id"], cpu["ok"], cpu["label"]')" = "('cpu', True, 'exact')" ] &&
    [ "$(of_json 'cpu["threads"] >= 1 and cpu["page_bytes"] >= 4096')" = True ]
report $? "JSON: one result, threads, pages"
# The choice is the stated function of the stated times: the last set, unless an earlier one took less than 16/17.
cat >"$work/rule.py" <<'END'
import functools, json, sys
cpu = json.load(open(sys.argv[1]))["results"][0]
made = cpu["choice"]
lanes = [s["name"] for s in cpu["sets"] if s["runs"] and s["mode"] == "lanes"]
assert made["label"] == "estimated" and made["source"] in sys.argv[2:], made["source"]
assert made["of_many"] == cpu["chosen"] and cpu["mode"] == "lanes"
for use in "one", "many":
    timed = [s for s in made["seconds"] if s["name"] in lanes and s[use] is not None]
    assert timed and all(0 < s[use] < 1000 for s in timed), use
    best = functools.reduce(lambda best, s: s if s[use] * 17 < best[use] * 16 else best, reversed(timed))
    assert made["of_" + use] == best["name"], (use, made)
print(made["of_one"], made["of_many"], made["source"])
END
export SINKPROOF_CACHE="$work/cache"
for source in measured kept; do
    exits 0 "info --cpu --json -" info --cpu --json -
    python3 "$work/rule.py" "$work/out" $source >"$work/said" 2>"$work/why"
    report $? "the choice follows from the times, $source: $(cat "$work/said" "$work/why")"
done
grep -q estimated "$work/out" && [ "$(of_json 'cpu["choice"]["file"]')" = "$(echo "$work"/cache/isa-*)" ]
report $? "the file that keeps them is named"
echo nonsense >"$(echo "$work"/cache/isa-*)"
exits 0 "info --cpu --json - with a file that is none" info --cpu --json -
python3 "$work/rule.py" "$work/out" measured >"$work/said" 2>"$work/why"
report $? "it is measured again: $(cat "$work/said" "$work/why")"
empty err "and nothing is said"
exits 0 "info --cpu" info --cpu
grep -q '^estimated   .*product' "$work/out" && grep -q 'kept from an earlier measurement' "$work/out"
report $? "people are told that the times are estimated, and kept"
SINKPROOF_CACHE=/dev/null exits 0 "a cache that cannot be written" info --cpu --json -
[ "$(of_json 'cpu["choice"]["file"], cpu["choice"]["source"]')" = "(None, 'measured')" ]
report $? "it is measured, and kept nowhere"
empty err "and nothing is said"
[ "$(of_json 'all(s["runs"] != ("why" in s) for s in cpu["sets"])')" = True ]
report $? "JSON: a set runs, or there is a reason why not"
known=$(of_json '" ".join(s["name"] for s in cpu["sets"])')
running=$(of_json '" ".join(s["name"] for s in cpu["sets"] if s["runs"])')

for isa in $known; do
    case " $running " in
    *" $isa "*)
        SINKPROOF_ISA=$isa exits 0 "SINKPROOF_ISA=$isa" info --cpu --json -
        [ "$(of_json 'cpu["chosen"], cpu["choice"]["of_one"], cpu["choice"]["source"], cpu["choice"]["seconds"]')" = \
            "('$isa', '$isa', 'asked', [])" ]
        report $? "SINKPROOF_ISA=$isa is what runs, and nothing is measured"
        ;;
    *)
        SINKPROOF_ISA=$isa exits 2 "SINKPROOF_ISA=$isa" info --cpu
        grep -q "\"$isa\" does not run here: .*; these run: $(echo "$running" | sed 's/ /, /g')\$" "$work/err"
        report $? "it says why not, and what runs: $(cat "$work/err")"
        empty out "and prints nothing else"
        ;;
    esac
done
SINKPROOF_ISA=avx3 exits 2 "SINKPROOF_ISA=avx3" info --cpu
grep -q "\"avx3\" is unknown: the nearest known is avx2; expected one of $(echo "$known" | sed 's/ /, /g'); " "$work/err"
report $? "an unknown name is refused, with those that there are"
exits 2 "info --cpu MODEL" info --cpu synthetic:tiny
info_help=$("$sinkproof" info --help)
case $info_help in *--cpu*SINKPROOF_ISA*) report 0 "--help tells of --cpu" ;; *) report 1 "--help tells of --cpu" ;; esac

if [ "$(uname -m)" = x86_64 ]; then
    # An instruction of AVX or later: its name begins with v, or it uses mask or tile registers.
    later='^ *[0-9a-f]*:	(v[a-z]|k(and|or|mov|not|test|unpck|xor|add|shift)|tile|tdp|ldtilecfg|.*%[yz]mm)'
    # STEM.avx2 is a clone that the compiler made of STEM, and chooses itself when the program is loaded.
    archive=$(dirname "$sinkproof")/rooms.a
    objdump -d --no-show-raw-insn "$archive" >"$work/code"
    awk '/file format/ { sub(":.*", "", $1); file = $1 }
         /^[0-9a-f]* <.*>:$/ { function_ = substr($2, 2, length($2) - 3) }
         file !~ /_(avx2|avx512|avx512bf16|amx)\.o$/ && function_ !~ /_(avx2|avx512|amx)(\.|$)|\.(avx2|avx512f)$/' "$work/code" |
        grep -E "$later" >"$work/found"
    [ "$(wc -l <"$work/code")" -gt 10000 ] && [ ! -s "$work/found" ]
    report $? "no object and no function but those of an instruction set uses one ($(wc -l <"$work/code") lines read)"
    head -n 3 "$work/found" | sed 's/^/# /'
    # The same search does find them where they belong.
    [ "$(grep -Ec "$later" "$work/code")" -gt 100 ]
    report $? "and those of an instruction set do use it: $(grep -Ec "$later" "$work/code") instructions"
fi
tap_done
