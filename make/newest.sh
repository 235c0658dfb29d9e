#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# The release of transformers that pip calls the newest, over the environment build/venv, whose torch it takes:
# build/newest. The stamp there says which release it is, and "tried" where it is that one; there is no stamp without
# an index, or where nothing is newer than the pinned release.
#   newest.sh PINNED TRIED [PIP_ARGS...]     as transformers==VERSION
pinned=$1
tried=$2
shift 2
rm -f build/newest/.stamp
[ -x build/newest/bin/python ] || python3 -m venv build/newest || exit 1
for place in build/newest/lib/python*/site-packages; do
    realpath build/venv/lib/python*/site-packages >"$place/pinned.pth" || exit 1
done
build/newest/bin/python -m pip install --quiet --no-compile --upgrade "$@" transformers || true
found=transformers==$(build/newest/bin/python -c 'import importlib.metadata as m; print(m.version("transformers"))')
case $found in
"$pinned" | transformers==) ;;
"$tried") echo "$found tried" >build/newest/.stamp ;;
*) echo "$found untried" >build/newest/.stamp ;;
esac
