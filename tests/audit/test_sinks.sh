#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# A model's declared sink from the outside: written, read, told and run. Off by one is a checkpoint whose
# sinks are zeros, to the last bit of every engine; what contradicts the declaration is refused.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shared/tap.sh

contains() { # file, text that it must hold
    grep -q -F -e "$2" "$work/$1"
    report $? "and says: $2"
}

changed() { # directory in, directory out, Python that changes `config`, the parsed config.json, or `tensor(name)`
    mkdir -p "$2"
    python3 - "$1" "$2" "$3" <<'PY'
import json, struct, sys
source, to, change = sys.argv[1:]
config = json.load(open(source + "/config.json"))
data = bytearray(open(source + "/model.safetensors", "rb").read())
n = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + n])
def tensor(name):
    a, b = header[name]["data_offsets"]
    return memoryview(data)[8 + n + a:8 + n + b]
exec(change)
json.dump(config, open(to + "/config.json", "w"))
open(to + "/model.safetensors", "wb").write(data)
PY
}

same_trace() { # engine, two models; all but the header, which names the model
    for m in "$2" "$3"; do
        "$sinkproof" run "$work/$m" --engine "$1" --tokens random:20,seed=5 --policy f32 \
            --trace "$work/$m.$1" >"$work/out" 2>&1 || return 1
    done
    python3 - "$work/$2.$1" "$work/$3.$1" <<'PY'
import struct, sys
a, b = (open(path, "rb").read() for path in sys.argv[1:])
n, m = (struct.unpack("<Q", x[:8])[0] for x in (a, b))
sys.exit(not (len(a) > 8 + n and a[8 + n:] == b[8 + m:]))
PY
}

exits 0 "a checkpoint with sinks" synth synthetic:tiny --out "$work/logit"
exits 0 "one of off by one" synth synthetic:tiny,sink=off-by-one --out "$work/one"
exits 0 "one with keys" synth synthetic:tiny,sink=key --out "$work/key"
exits 0 "one without sinks" synth synthetic:tiny,sink=none --out "$work/none"
exits 0 "info of off by one" info "$work/one"
contains out "sink        off-by-one, where GPT-OSS has a learned logit for each head"
grep -q '^sinks ' "$work/out"
[ $? -eq 1 ]
report $? "and lists no sinks"
exits 0 "info of keys" info "$work/key"
contains out "sink        key, where GPT-OSS has a learned logit for each head"
contains out "sinks        [10, 16]"
exits 0 "info of GPT-OSS's" info "$work/logit"
grep -q '^sink  ' "$work/out"
[ $? -eq 1 ]
report $? "and says nothing of the kind"
exits 0 "as JSON" info "$work/key" --json -
contains out '"attention_sink": "key"'

for layer in 0 1 2 3; do
    echo "tensor('model.layers.$layer.self_attn.sinks')[:] = bytes(20)"
done >"$work/zeros.py"
changed "$work/logit" "$work/zeros" "$(cat "$work/zeros.py")"
sed 's/bytes(20)/10 * bytes([128, 255])/' "$work/zeros.py" >"$work/off.py" # -infinity
changed "$work/logit" "$work/off" "$(cat "$work/off.py")"
for engine in ref lanes fast; do
    same_trace "$engine" zeros one
    report $? "sink.softmax1 $engine: off by one is a checkpoint of zero sinks, bit for bit"
    same_trace "$engine" off none
    report $? "sink.alpha $engine: none is a checkpoint of sinks of -infinity, bit for bit"
done

changed "$work/logit" "$work/bad" "config['attention_sink'] = 'key'"
exits 3 "sinks where the configuration says keys" info "$work/bad"
contains err "expected shape [10, 16] from the configuration, found [10]"
changed "$work/logit" "$work/bad" "config['attention_sink'] = 'sigmoid'"
exits 3 "an unknown kind" info "$work/bad"
contains err 'expected "attention_sink" to be logit, off-by-one, key or none, found "sigmoid"'
changed "$work/logit" "$work/bad" "config['attention_sink'] = 'off-by-one'"
exits 0 "sinks that the configuration does not know" info "$work/bad"
contains out "model.layers.0.self_attn.sinks: no part of this model"
changed "$work/key" "$work/bad" "tensor('model.layers.2.self_attn.sinks')[4:6] = b'\\x80\\xff'"
exits 3 "a key of -infinity" run "$work/bad" --tokens 1,2
contains err "model.layers.2.self_attn.sinks: expected finite numbers, found -infinity at (0, 2)"
exits 3 "the original layout has no place for it" synth synthetic:tiny,sink=key --layout openai --out "$work/openai"
contains err 'found the attention sink "key"'

exits 0 "run with keys" run "$work/key" --tokens random:20 --policy f32 --trace "$work/t.safetensors"
exits 0 "judged as it was run" judge "$work/key" "$work/t.safetensors" --policy f32
exits 1 "judged with another sink" judge synthetic:tiny "$work/t.safetensors" --policy f32 --any-model
contains out "First divergence: 00.A9"
exits 3 "the fast path refuses keys" run "$work/key" --engine fast --tokens 1,2
contains err 'the fast path takes a sink logit for each head, found the attention sink "key"'
tap_done
