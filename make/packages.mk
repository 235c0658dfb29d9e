# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# What is given away: the library, its pages, the installation, Debian packages, the wheel.

.PHONY: library pages install uninstall deb wheel test-python

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

$(SHARED): $(LINKED) $(LIB)/names
	@{ echo 'SINKPROOF_$(basename $(VERSION)) {'; echo 'global:'; sed 's/$$/;/' $(LIB)/names; echo 'local: *; };'; } > $(LIB)/map.$$$$ \
	    && mv -f $(LIB)/map.$$$$ $(LIB)/map
	$(call say,link $@)$(CC) $(CFLAGS) -shared -Wl,-soname,libsinkproof.so.$(MAJOR) -Wl,--version-script=$(LIB)/map \
	    $(if $(SANITIZE),,-Wl,-z$(comma)defs) $(LINKED) -o $(PART) $(PRIVATE) $(WHOLE)

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

# The Python package in a wheel of this platform, with the library in it.
build/wheel/venv/.stamp: make/packages.mk | build/packages
	$(call packages,--with venv)
	test -x build/wheel/venv/bin/python || python3 -m venv build/wheel/venv
	build/wheel/venv/bin/python -m pip install --quiet $(PIP_ARGS) hatchling
	@touch $@

wheel: library build/wheel/venv/.stamp  ## the Python package as build/wheel/*.whl; PIP_ARGS says where pip finds hatchling
	SINKPROOF_LIBRARY=$(CURDIR)/$(SHARED) build/wheel/venv/bin/python -m pip wheel --quiet --no-deps \
	    --no-build-isolation --wheel-dir build/wheel ./audit/python

test-python: $(PROGRAM) library  ## the Python package, installed from its wheel into a fresh environment
	$(call packages,--with venv)
	@$(COMPILED) SINKPROOF=$(PROGRAM) PIP_ARGS='$(PIP_ARGS)' TEST_SECONDS=1800 \
	    python3 tests/run.py $(BUILD)/python tests/audit/python_package.py
