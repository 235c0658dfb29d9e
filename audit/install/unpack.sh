#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# Unpacks Debian packages and all that they depend on into a folder: another release's, or another processor's.
#   unpack.sh ARCH RELEASE OUT PACKAGE...
# RELEASE '' is this machine's. Lists and downloads stay in OUT.apt: this machine's packages and settings do not change,
# and no root is needed. Where apt refuses, its sentence, and exit 1.
set -eu
arch=$1 release=$2 out=$3
shift 3
rm -rf "$out" "$out.apt"
mkdir -p "$out" "$out.apt/lists/partial" "$out.apt/archives/partial"
apt=$(cd "$out.apt" && pwd)
: >"$apt/status"

# Where this machine's own Debian release comes from: asked of apt, which reads .list and .sources files.
here=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
mirror=$(apt-get --print-uris update 2>/dev/null | sed -n "s#^'\(.*\)/dists/$here/InRelease'.*#\1#p" | head -n 1)
if [ "$(. /etc/os-release && echo "$ID")" != debian ] || [ -z "$mirror" ]; then
    echo "sinkproof: packages of another processor are unpacked on Debian alone: apt names no mirror of it here" >&2
    exit 1
fi
key=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$key] $mirror ${release:-$here} main" >"$apt/sources.list"

apt() {
    apt-get -qq -o APT::Architecture="$arch" -o APT::Architectures::="$arch" -o APT::Install-Recommends=false \
        -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::Etc::preferencesparts=/dev/null -o Dir::State="$apt" -o Dir::State::status="$apt/status" \
        -o Dir::Cache="$apt" -o APT::Sandbox::User= "$@"
}
apt update
apt install --download-only "$@"
for package in "$apt"/archives/*.deb; do dpkg-deb -x "$package" "$out"; done
find "$out" -type l -lname '/*' | while read -r link; do # a link stays within the folder
    ln -sfrn "$out$(readlink "$link")" "$link"
done
for folder in bin lib lib64 sbin; do # later releases have these below /usr alone, and base-files links them
    [ -e "$out/$folder" ] || [ ! -d "$out/usr/$folder" ] || ln -s "usr/$folder" "$out/$folder"
done
rm -rf "$out.apt"
