#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# Makes Debian packages of what `make install` installs: sinkproof (the command), libsinkproof0 (the
# shared library) and libsinkproof-dev (the header, the static library).
#   debian.sh MAKE VERSION OUT
set -eu
make=$1 version=$2 out=$3
umask 022
arch=$(dpkg --print-architecture)
multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
date=$(git log -1 --format=%cd --date=rfc2822 2>/dev/null || date -R)
maintainer='the sinkproof authors <sinkproof@localhost>'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
all=$work/all lib=usr/lib/$multiarch

$make --no-print-directory -s install PREFIX=/usr DESTDIR="$all" LIBDIR="/$lib" ZSHDIR=/usr/share/zsh/vendor-completions
gzip -9n "$all"/usr/share/man/man?/*
strip --strip-unneeded "$all/usr/bin/sinkproof" "$all/$lib"/libsinkproof.so.*.*
strip --strip-debug "$all/$lib/libsinkproof.a"
mkdir -p "$work/source/debian" # dpkg-shlibdeps looks for it
printf 'Source: sinkproof\n\nPackage: sinkproof\nArchitecture: any\n' >"$work/source/debian/control"

# move PACKAGE PATH...: of the whole installation
move() {
    package=$1
    shift
    for path in "$@"; do
        mkdir -p "$work/$package/$(dirname "$path")"
        mv "$all/$path" "$work/$package/$path"
    done
}
cd "$all"
move libsinkproof0 $lib/libsinkproof.so.*
move libsinkproof-dev usr/include/sinkproof.h $lib/libsinkproof.so $lib/libsinkproof.a $lib/pkgconfig/sinkproof.pc \
    usr/share/man/man3/sinkproof.3.gz
mkdir -p "$work/libsinkproof-dev/usr/share/doc/libsinkproof-dev/examples"
mv usr/share/doc/sinkproof/*.c usr/share/doc/sinkproof/*.cpp "$work/libsinkproof-dev/usr/share/doc/libsinkproof-dev/examples/"
rm usr/share/doc/sinkproof/LICENSE
find . -type d -empty -delete
cd - >/dev/null
mv "$all" "$work/sinkproof"

# The libraries that the package's objects need, with the versions that have what they call.
needs() {
    (cd "$work/source" && dpkg-shlibdeps -O --ignore-missing-info "$@" 2>/dev/null) | sed -n 's/^shlibs:Depends=//p'
}

# package NAME SECTION DEPENDS SUMMARY TEXT
package() {
    root=$work/$1 doc=$work/$1/usr/share/doc/$1
    mkdir -p "$root/DEBIAN" "$doc"
    cat >"$doc/copyright" <<END
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: sinkproof

Files: *
Copyright: 2026 the sinkproof authors
License: Apache-2.0
 On Debian systems the full text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
END
    printf 'sinkproof (%s) unstable; urgency=medium\n\n  * This version.\n\n -- %s  %s\n' "$version-1" "$maintainer" "$date" |
        gzip -9n >"$doc/changelog.Debian.gz"
    (cd "$root" && find usr -type f -exec md5sum {} +) | sort -k 2 >"$root/DEBIAN/md5sums"
    cat >"$root/DEBIAN/control" <<END
Package: $1
Source: sinkproof
Version: $version-1
Architecture: $arch
Maintainer: $maintainer
Installed-Size: $(du -sk "$root/usr" | cut -f 1)
Depends: $3
Section: $2
Priority: optional
Multi-Arch: $([ "$2" = science ] && echo foreign || echo same)
Description: $4
$(printf '%s\n' "$5" | sed 's/^/ /')
END
    dpkg-deb --root-owner-group --build "$root" "$out/$1_$version-1_$arch.deb" >/dev/null
    echo "  $out/$1_$version-1_$arch.deb"
}

mkdir -p "$out"
text='sinkproof judges an implementation of GPT-OSS: every tensor that it left
behind is held against the set of values that honest rounding can give,
computed from the same inputs.'
printf 'libsinkproof %s libsinkproof0 (>= %s)\n' "${version%%.*}" "$version" >"$work/libsinkproof0.shlibs"
depends=$(needs "$work/libsinkproof0/$lib"/libsinkproof.so.*.*)
mkdir -p "$work/libsinkproof0/DEBIAN"
mv "$work/libsinkproof0.shlibs" "$work/libsinkproof0/DEBIAN/shlibs"
echo 'activate-noawait ldconfig' >"$work/libsinkproof0/DEBIAN/triggers"
package libsinkproof0 libs "$depends" 'judge of GPT-OSS engines (shared library)' "$text"
package libsinkproof-dev libdevel "libsinkproof0 (= $version-1), libc6-dev, libjansson-dev, libopenblas-dev" \
    'judge of GPT-OSS engines (header and static library)' "$text"
package sinkproof science "$(needs "$work/sinkproof/usr/bin/sinkproof")" 'judge of GPT-OSS engines' "$text"
