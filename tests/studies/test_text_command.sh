#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# Text from the outside: `sinkproof tokens`, and text where other commands take tokens.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shared/tap.sh
known=tests/vectors/text

says() { # file, text that it must hold
    grep -q -F -e "$2" "$work/$1"
    report $? "and says: $2"
}

is() { # what the last command must have printed, all of it
    [ "$(cat "$work/out")" = "$1" ]
    report $? "and prints: $1"
}

exits 0 "a text" tokens $known --text "hello world, it's abc"
is "259,268,11,220,72,83,269,220,64,260"
exits 0 "the same by the lists" tokens $known/vocab.json --text "hello world, it's abc"
is "259,268,11,220,72,83,269,220,64,260"
exits 0 "its pieces" tokens $known --text "hello abc" --pieces
says out '     260  "bc"'
exits 0 "ids" tokens $known --decode 259,268,278
is '"hello world<|end|>"'
exits 0 "ids that cut a character" tokens $known --decode 64,158,65
is '"a�b"'
exits 0 "a special token" tokens $known --text "hello<|end|>"
is "259,278"
exits 0 "its spelling" tokens $known --text "<|end|>" --plain
is "27,91,68,77,67,91,29"
printf 'hello' | "$sinkproof" tokens $known --text - >"$work/out"
is "259"
printf '"hello"\n"\\u0000\\n\\n"\n""\n' >"$work/lines"
exits 0 "lines" tokens $known --lines "$work/lines"
[ "$(tr '\n' ' ' <"$work/out")" = "259 188,272  " ]
report $? "and prints a line of ids for each"
exits 0 "what it is" tokens $known/ranks.tiktoken,pattern=o200k
says out "tokens      1366, 1091 of them special; ids below 1366"
exits 0 "the same as JSON" tokens $known --json -
says out '"merges": 20'

exits 2 "two questions" tokens $known --text a --decode 1
exits 2 "no path" tokens --text a
exits 3 "no file" tokens "$work/none" --text a
says err "cannot open"
exits 3 "a folder without a tokenizer" tokens "$work" --text a
says err "expected a tokenizer (tokenizer.json, vocab.json with merges.txt, or one *.tiktoken), found none"
exits 3 "ranks of no known number" tokens $known/ranks.tiktoken --text a
says err "expected 50256 ranks (GPT-2) or 199998 (o200k), found 276"
python3 - "$known" "$work" <<'END'
import json, shutil, sys
known, work = sys.argv[1:]
tokens = json.load(open(f"{known}/vocab.json", encoding="utf-8"))
tokens |= {word: max(tokens.values()) + 1 + at for at, word in enumerate(("model", "merges"))}
json.dump(tokens, open(f"{work}/vocab.json", "w", encoding="utf-8"))
shutil.copy(f"{known}/merges.txt", work)
END
exits 0 "a vocabulary with a token \"model\" and a token \"merges\"" tokens "$work/vocab.json" --text "hello"
rm "$work/merges.txt"
cp $known/vocab.json "$work/"
exits 3 "a vocabulary without merges" tokens "$work/vocab.json" --text a
says err "or merges.txt beside it, found neither"
exits 3 "no UTF-8" tokens $known --text "$(printf 'a\377')"
says err "expected UTF-8, found the byte 0xff at offset 1"
exits 3 "an id of no token" tokens $known --decode 284
says err "token id 284: expected 0 to 283"
exits 3 "a line that is no string" tokens $known --lines $known/merges.txt
says err "line 1: expected a JSON string"

# A model whose vocabulary holds the tokenizer's.
"$sinkproof" synth synthetic:tiny --out "$work/tiny" 2>"$work/err"
python3 -c "
import json, sys
config = json.load(open(sys.argv[1]))
config['vocab_size'] = 300
json.dump(config, open(sys.argv[2], 'w'))" "$work/tiny/config.json" "$work/config.json"
exits 0 "a model of 300 tokens" synth "synthetic:$work/config.json" --out "$work/model"
exits 3 "its text without a tokenizer" run "$work/model" --text hello
says err '"run" takes --tokenizer PATH'
cp $known/tokenizer.json "$work/model/"
exits 0 "its text" run "$work/model" --text "hello world" --json -
cp "$work/out" "$work/text.json"
exits 0 "the same ids" run "$work/model" --tokens 259,268 --json -
python3 - "$work/text.json" "$work/out" <<'PY'
import json, sys
a, b = (json.load(open(path))["results"][0] for path in sys.argv[1:])
sys.exit(not (a["tokens"] == 2 and a["ids"] == b["ids"] and a["logits"] == b["logits"]))
PY
report $? "and the same logits"
exits 0 "text after --tokens" run "$work/model" --tokens "text:hello world"
exits 0 "text for another command" sinks "$work/model" --tokens "text:hello world"
exits 0 "a prompt that goes on" run "$work/model" --prompt hello --generate 3 --json -
python3 - "$work/out" "$sinkproof" "$work/model" <<'PY'
import json, subprocess, sys
ran = json.load(open(sys.argv[1]))["results"][0]
ids = [i for i in ran["generated"]]
ask = [sys.argv[2], "tokens", sys.argv[3], "--prompt", "hello"]
prompt = subprocess.run(ask, capture_output=True, text=True).stdout.strip().split(",")
known = max(ids) < 284
ask = [sys.argv[2], "tokens", sys.argv[3], "--decode", ",".join(map(str, ids))]
text = subprocess.run(ask, capture_output=True, text=True).stdout if known else "null"
sys.exit(not (ran["tokens"] == len(prompt) and prompt[0] == "277" and ran.get("text") == json.loads(text)))
PY
report $? "and says what it said, as text too"
printf '[{"role": "user", "content": "hello"}]' >"$work/chat.json"
exits 0 "a conversation" tokens "$work/model" --chat "$work/chat.json"
cp "$work/out" "$work/chat"
exits 0 "the prompt that it is" tokens "$work/model" --prompt hello
cmp -s "$work/out" "$work/chat"
report $? "and gives the same ids"
exits 3 "another model's tokenizer" run synthetic:tiny --text hello --tokenizer $known
says err "the text has token 259: the model's vocabulary has 0 to 210"
exits 3 "no text" run "$work/model" --text ""
says err "expected text, found none"
tap_done
