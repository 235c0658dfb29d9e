#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# What `make install` puts into an empty directory is enough: the two programs of the book are compiled
# against it with the flags of pkg-config alone, an honest kernel is acquitted, a wrong one convicted. The
# library shows what the header declares and nothing else, and calls nothing that ends or prints. Manual
# pages and completions name what --help names. The Debian packages are unpacked, and their command runs.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shared/tap.sh
unset MAKEFLAGS MFLAGS MAKELEVEL
build=$(dirname "$sinkproof")
prefix=$work/usr

skip() { n=$((n + 1)); echo "ok $n # SKIP $1"; }
has() { command -v "$1" >/dev/null 2>&1; }
same() { # text, file, file
    diff "$2" "$3" >"$work/diff" 2>&1
    status=$?
    [ $status = 0 ] || sed 's/^/# /' "$work/diff" | head -n 20
    report $status "$1"
}

# ---- the installation

make -s install PREFIX=/opt/sp DESTDIR="$work/root" LIBDIR=/opt/sp/lib64 >"$work/log" 2>&1
report $? "make install into an empty DESTDIR"
make -s install PREFIX="$prefix" >"$work/log" 2>&1 || cat "$work/log"
version=$("$prefix/bin/sinkproof" --version | cut -d ' ' -f 2)
(cd "$prefix" && find . ! -type d ! -path '*/book/*' | sort) >"$work/found"
pages=$("$sinkproof" --help | sed -n 's/^  \([a-z0-9]*\)  *[a-z].*/\1/p')
{
    for page in $pages; do echo "./share/man/man1/sinkproof-$page.1"; done
    cat <<END
./bin/sinkproof
./include/sinkproof.h
./lib/libsinkproof.a
./lib/libsinkproof.so
./lib/libsinkproof.so.${version%%.*}
./lib/libsinkproof.so.$version
./lib/pkgconfig/sinkproof.pc
./share/bash-completion/completions/sinkproof
./share/doc/sinkproof/LICENSE
./share/doc/sinkproof/judge_my_kernel.c
./share/doc/sinkproof/judge_my_kernel.cpp
./share/doc/sinkproof/my_plugin.c
./share/fish/vendor_completions.d/sinkproof.fish
./share/man/man1/sinkproof.1
./share/man/man3/sinkproof.3
./share/zsh/site-functions/_sinkproof
END
} | sort >"$work/expected"
same "make install gives these files and no others, $(wc -l <"$work/expected") of them" "$work/expected" "$work/found"
[ -f "$work/root/opt/sp/lib64/libsinkproof.so.$version" ] && [ -f "$work/root/opt/sp/lib64/pkgconfig/sinkproof.pc" ] &&
    ! grep -q "$work" "$work/root/opt/sp/lib64/pkgconfig/sinkproof.pc"
report $? "LIBDIR and DESTDIR are heeded, and DESTDIR is in no file"
make -s uninstall PREFIX=/opt/sp DESTDIR="$work/root" LIBDIR=/opt/sp/lib64 && [ -z "$(find "$work/root" ! -type d)" ]
report $? "make uninstall leaves no file"

# ---- the library

so=$prefix/lib/libsinkproof.so.$version
sed -e 's://.*::' -e '/typedef/d' "$prefix/include/sinkproof.h" | grep -oE '\bsinkproof_[a-z0-9_]+\(' | tr -d '(' | sort -u >"$work/declared"
nm -D --defined-only "$so" | awk '$2 == "T" && sub(/@@SINKPROOF_[0-9.]*$/, "", $3) { print $3 }' | sort >"$work/shown"
same "the shared library shows under its version what the header declares, $(wc -l <"$work/declared") functions" "$work/declared" "$work/shown"
[ "$(nm -D --defined-only "$so" | wc -l)" = "$(($(wc -l <"$work/declared") + 1))" ] # and the version itself
report $? "and nothing else"
nm -g --defined-only "$prefix/lib/libsinkproof.a" 2>/dev/null | awk 'NF == 3 { print $3 }' | sort >"$work/shown"
same "so does the static one" "$work/declared" "$work/shown"
nm -D --undefined-only "$so" | sed 's/.* //; s/@.*//' >"$work/called"
! grep -xE 'abort|_?exit|_Exit|quick_exit|__assert_fail|__assert|v?printf|puts|putchar|perror|stdout|stderr|raise|kill|signal|umask|setlocale|chdir|strtok|rand|srand' "$work/called" >"$work/bad"
status=$?
sed 's/^/# calls /' "$work/bad"
report $status "of $(wc -l <"$work/called") functions that it calls none exits, aborts, prints or changes the process"
readelf -d "$so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p' | grep -qx "libsinkproof.so.${version%%.*}"
report $? "its SONAME is libsinkproof.so.${version%%.*}"
needed=$(readelf -d "$so" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -vE '^(libc|ld-linux.*)\.so|^libm\.so' | sed 's/\.so.*//' | sort | tr '\n' ' ')
[ "$needed" = "libgomp libjansson libopenblas " ]
report $? "beside libc and libm it needs ${needed}and no prover's library"
# What can be written to, beside the compiler's own: the processor's name, which is always the same, and
# the guard of OpenBLAS's number of threads, which is OpenBLAS's own state (proofs/bounds/times.c).
state=$(objdump -t "$so" | awk '($4 == ".data" || $4 == ".bss") && $NF !~ /^(completed|__)/ { sub(/\.[0-9]*$/, "", $NF); print $NF }' | sort | tr '\n' ' ')
[ "$state" = "before door inside name " ]
report $? "no state but the processor's name and the guard of OpenBLAS's threads: $state"

# ---- programs of one's own

# try NAME PREFIX PKG-CONFIG-FLAGS RUN...: compiles both programs and runs them, honest and wrong.
try() {
    flags=$(PKG_CONFIG_PATH=$2/lib/pkgconfig pkg-config $3 --cflags --libs sinkproof)
    # shellcheck disable=SC2086  # words
    ${CC:-gcc} -std=c11 -O2 -Wall -Wextra -Wpedantic -Werror audit/examples/judge_my_kernel.c $flags -lm -o "$work/c" >"$work/log" 2>&1
    report $? "$1: the C program compiles without a warning: cc judge_my_kernel.c ${flags//$work/} -lm"
    # shellcheck disable=SC2086
    ${CXX:-g++} -std=c++17 -O2 -Wall -Wextra -Wpedantic -Werror audit/examples/judge_my_kernel.cpp $flags -o "$work/cpp" >>"$work/log" 2>&1
    report $? "$1: the C++ program compiles without a warning"
    for run in "${@:4}"; do
        IFS=: read -r program mistake expected first <<<"$run"
        # shellcheck disable=SC2086
        LD_LIBRARY_PATH=$2/lib "$work/$program" $mistake >"$work/out" 2>&1
        found=$?
        [ $found = "$expected" ] && [ "$(sed -n 's/^First divergence: \(.*\)\. Tensor.*/\1/p' "$work/out")" = "$first" ]
        report $? "$1: $program ${mistake:-honest}: exit $found, expected $expected${first:+, first divergence $first}"
    done
    grep -q "^Verdict under f32: a bug (exit 1)" "$work/out"
    report $? "$1: the report ends as the command's does"
}
if ! has pkg-config || ! has "${CXX:-g++}"; then
    skip "no pkg-config or no C++ compiler here: the programs are not compiled"
else
    try shared "$prefix" "" "c::0:" "c:no-sink:1:00.A11" "cpp::0:" "cpp:no-eps:1:00.A1"
    readelf -d "$work/c" | grep -q "NEEDED.*libsinkproof.so.${version%%.*}"
    report $? "shared: the program needs the library by its SONAME"
    mkdir "$work/static" && cp -R "$prefix/include" "$prefix/lib" "$work/static/"
    rm "$work/static/lib/"*.so*
    sed -i "s:$prefix:$work/static:" "$work/static/lib/pkgconfig/sinkproof.pc"
    try static "$work/static" --static "c::0:" "cpp:no-eps:1:00.A1"
    ! readelf -d "$work/c" | grep -q libsinkproof
    report $? "static: the program needs no libsinkproof"
    printf '#include <sinkproof.h>\nint main(void) { return sinkproof_version()[0] == 0; }\n' >"$work/h.c"
    ${CC:-gcc} -std=c11 -Wall -Wextra -Wpedantic -Wstrict-prototypes -Werror -I"$prefix/include" -fsyntax-only "$work/h.c" &&
        ${CXX:-g++} -std=c++11 -x c++ -Wall -Wextra -Wpedantic -Werror -I"$prefix/include" -fsyntax-only "$work/h.c"
    report $? "the header stands alone, in C11 and in C++11"
fi

# ---- no memory

# Each of some allocations of the library fails, by turns: the program ends with a sentence and exit 3.
sed 's/synthetic:tiny/synthetic:tiny,layers=1/; s/48/6/g' audit/examples/judge_my_kernel.c >"$work/few.c"
if printf '#include <features.h>\n#ifndef __GLIBC__\n#error\n#endif\n' | ${CC:-gcc} -xc - -fsyntax-only 2>/dev/null; then
    ${CC:-gcc} -O1 -shared -fPIC tests/audit/fail_nth.c -o "$work/fail.so" &&
        ${CC:-gcc} -O1 -I"$prefix/include" "$work/few.c" -L"$prefix/lib" -lsinkproof -lm -Wl,-rpath,"$prefix/lib" -o "$work/few" &&
        OMP_NUM_THREADS=1 FAIL_COUNT=$work/count LD_PRELOAD=$work/fail.so "$work/few" >/dev/null
    report $? "the C program on one layer and six tokens: honest"
    bad='' tried=0 count=$(cat "$work/count")
    for at in $(seq 1 60) $(seq 61 29 "$count"); do
        OMP_NUM_THREADS=1 FAIL_AT=$at LD_PRELOAD=$work/fail.so "$work/few" >"$work/out" 2>&1
        found=$?
        tried=$((tried + 1))
        [ $found = 3 ] && grep -qE 'memory' "$work/out" || bad="$bad $at:exit-$found"
    done
    [ -z "$bad" ] && [ $tried -gt 100 ]
    report $? "without memory at $tried of the library's $count allocations: a sentence and exit 3 each time$bad"
else
    skip "no glibc here: allocations are not made to fail"
fi

# ---- manual pages and completions

man=$prefix/share/man
export ARGP_HELP_FMT=rmargin=4000
# The long options of a command, of --help.
options_of() { "$sinkproof" "$1" --help | grep -oE '^ {2,6}(-., )? *--[a-z-]+' | grep -oE '\-\-[a-z-]+' | sort; }
bad='' count=0
for page in $pages; do
    options_of "$page" >"$work/help"
    count=$((count + $(wc -l <"$work/help")))
    sed -n '/^\.TP/{n;p;}' "$man/man1/sinkproof-$page.1" | sed 's/\\-/-/g; s/\\f[BRI]//g' | grep -oE '\-\-[a-z-]+' | sort >"$work/man"
    sed -n "s/^    $page) options='\(.*\)' ;;/\1/p" "$prefix/share/bash-completion/completions/sinkproof" | tr ' ' '\n' | tr -d = | sort >"$work/bash"
    sed -n "/^    $page)\$/,/;;/p" "$prefix/share/zsh/site-functions/_sinkproof" | grep -oE "^ *'--[a-z-]+" | tr -d " '" | sort >"$work/zsh"
    grep -E "seen_subcommand_from $page'" "$prefix/share/fish/vendor_completions.d/sinkproof.fish" | grep -oE ' -l [a-z-]+' | sed 's/ -l /--/' | sort >"$work/fish"
    for kind in man bash zsh fish; do cmp -s "$work/help" "$work/$kind" || bad="$bad $page:$kind"; done
done
[ -z "$bad" ] && [ "$count" -gt 50 ]
report $? "manual pages and completions name the $count options of --help, all and no others$bad"

if has mandoc; then check="mandoc -Tlint -Werror"; elif has groff; then check="groff -man -ww -z"; else check=; fi
if [ -n "$check" ]; then
    for page in "$man"/man?/*; do LC_ALL=C.UTF-8 $check "$page"; done >"$work/log" 2>&1
    [ ! -s "$work/log" ]
    status=$?
    head -n 5 "$work/log" | sed 's/^/# /'
    report $status "$(ls "$man"/man?/* | wc -l) manual pages without a warning of ${check%% *}"
else
    skip "neither mandoc nor groff here: the manual pages are not checked"
fi
bad=
while read -r name; do grep -q "$name" "$man/man3/sinkproof.3" || bad="$bad $name"; done <"$work/declared"
[ -z "$bad" ]
report $? "sinkproof(3) has every function of the header$bad"

# complete WORD...: what the completion of the last word gives, on one line.
complete_words() {
    bash --norc -c '
        . "$1"; shift
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
        _sinkproof && printf "%s " "${COMPREPLY[@]}"' - "$prefix/share/bash-completion/completions/sinkproof" "$@" 2>&1
}
completes() { # expected, words
    expected=$1
    shift
    found=$(complete_words "$@")
    [ "$found" = "$expected" ]
    report $? "bash completes '$*' to '$found'"
}
completes "judge " sinkproof ju
completes "--forms " sinkproof judge --fo
completes "--tokens= " sinkproof truth --to
completes "fast " sinkproof run --engine = fa
completes "A13 " sinkproof run --points A13
completes "A9,M11 " sinkproof run --points = A9,M11
completes "openai-bf16 " sinkproof judge --policy = open
completes "hf-llama-bf16 " sinkproof run --policy hf-l
completes "gguf " sinkproof synth --layout = gg
(cd "$work" && mkdir empty && touch empty/my.safetensors && cd empty && complete_words sinkproof judge MODEL my) | grep -qx 'my.safetensors '
report $? "bash completes the name of a trace"
for shell in zsh fish; do
    file=$prefix/share/zsh/site-functions/_sinkproof
    [ $shell = zsh ] || file=$prefix/share/fish/vendor_completions.d/sinkproof.fish
    if ! has $shell; then
        echo "# no $shell here: its completion is compared with --help alone"
    else
        $shell -n "$file" >"$work/log" 2>&1
        report $? "$shell reads its completion"
    fi
done

# ---- Debian packages

if has dpkg-deb && has dpkg-shlibdeps && has dpkg-architecture; then
    DPKG_DEB_COMPRESSOR_TYPE=none DPKG_DEB_COMPRESSOR_LEVEL=1 make -s deb >"$work/log" 2>&1 # quickly, and not well
    report $? "make deb: $(ls build/deb | tr '\n' ' ')"
    for deb in build/deb/*_"$version"-1_*.deb; do dpkg-deb -x "$deb" "$work/unpacked" || echo "# $deb"; done
    "$work/unpacked/usr/bin/sinkproof" judge --help >"$work/out" 2>&1 && "$sinkproof" judge --help | cmp -s - "$work/out"
    report $? "the command runs from where the packages are unpacked"
    for deb in build/deb/*_"$version"-1_*.deb; do dpkg-deb -c "$deb"; done | awk '$1 !~ /^d/ { print $6 }' | sort >"$work/all"
    [ -z "$(uniq -d "$work/all")" ] && grep -q "/libsinkproof.so.$version\$" "$work/all" && grep -q 'usr/include/sinkproof.h$' "$work/all" &&
        [ "$(grep -c 'man1/sinkproof.*\.1\.gz$' "$work/all")" = "$(ls "$man/man1" | wc -l)" ]
    report $? "$(wc -l <"$work/all") files, none in two packages"
    depends=$(dpkg-deb -f build/deb/libsinkproof0_*.deb Depends)
    case $depends in *libopenblas0*) ;; *) false ;; esac && case $depends in *libgmp* | *libmpfr* | *libflint*) false ;; *libjansson4*) ;; *) false ;; esac
    report $? "the library's package depends on $depends"
    case $(dpkg-deb -f build/deb/sinkproof_*.deb Depends) in *libmpfr6*) ;; *) false ;; esac
    report $? "the command's package depends on what the proofs need too"
    if has lintian; then
        lintian --fail-on error build/deb/*_"$version"-1_*.deb >"$work/log" 2>&1
        status=$?
        sed 's/^/# /' "$work/log"
        report $status "lintian finds no error"
    else
        echo "# no lintian here"
    fi
else
    skip "no dpkg-dev here: make deb is not tried"
fi
tap_done
