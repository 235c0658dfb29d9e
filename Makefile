# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# sinkproof: a reference of GPT-OSS attention, its proofs, and a judge of engines.
# `make help` lists the targets. This file builds and tests; in make/ stand which tests run (tests.mk), what else is
# asked of the tree (checks.mk), other people's engines (engines.mk), what is given away (packages.mk) and the book
# (book.mk). Every object, test and log of a build lives under build/VARIANT (build/release with gcc,
# build/release-clang with clang), so that variants never mix.

ifeq ($(origin CC),default)
CC := gcc
endif
VARIANT ?= release
BUILD   := build/$(VARIANT)$(if $(filter gcc,$(notdir $(CC))),,-$(notdir $(CC)))
PREFIX  ?= /usr/local

# As many jobs as processors, unless -j says otherwise.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 2)
endif

# One short line per command; V=1 shows the command.
ifeq ($(V),1)
say =
else
say = @echo "  $(1)";
endif

WARN    := -std=c11 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion \
           -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wvla $(if $(CI),-Werror)
# A warning fails a landing (.ci/run sets CI), and not the build of a user whose compiler is newer than the landing's.
# Under a sanitizer -O1 runs as fast as -O2 and is compiled sooner, and a report shows no more than line numbers. What
# a number's digits can be, and how far a pointer into a struct reaches, gcc knows at -O2 alone.
DEBUG_FLAGS ?= -g
OPT     := $(if $(SANITIZE),-O1 -g1 -DSINKPROOF_WATCHED $(if $(findstring gcc,$(CC)),-Wno-format-truncation -Wno-stringop-overread),-O2 $(DEBUG_FLAGS))
# The same objects go into the command, the tests and the shared library.
PIC     := -fPIC -fno-semantic-interposition
CFLAGS  := $(WARN) $(OPT) $(PIC) -ffp-contract=off -fno-math-errno -fno-tree-slp-vectorize -I. $(SANITIZE) $(EXTRA_CFLAGS)
# -fno-math-errno changes no value: it only lets sqrt be one instruction. Where two conversions of binary64 to binary32
# and back stand side by side, gcc 12.2 makes them one vector's and drops the rounding (tests/ref/test_conversions.c).

# fast/ is compiled at -O3: its kernel bodies are loops over sixteen lanes that have to be unrolled
# whole, so that a lane stays in its register; -O2 of gcc leaves them as loops over memory. A file
# named for an instruction set, STEM_SET.c in fast/kernels/, proofs/truth/ and proofs/bounds/, may use that set, and only
# it: never a global -march, since the dispatch (fast/kernels/isa.c) itself must run on any processor of the architecture.
OPENMP     := -fopenmp
# Under a sanitizer, which watches each copy of a loop's body, they stay loops: a tenth of the compiler's time.
OPT_FAST   := $(if $(SANITIZE),,-O3 -ftree-slp-vectorize) $(OPENMP) # nothing here rounds a binary64 number to binary32 and back
# The kernels are large functions of vector registers: to follow each variable through them for a
# debugger takes gcc longer than to compile them. They get line numbers only.
OPT_KERNEL := $(if $(DEBUG_FLAGS)$(SANITIZE),-g1)
SET_avx2   := -mavx2 -mfma -mf16c
SET_avx512 := -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c
SET_avx512bf16 := $(SET_avx512) -mavx512bf16
SET_amx    := $(SET_avx512bf16) -mamx-tile -mamx-bf16
SETS_x86_64  := avx2 avx512 avx512bf16 amx
SETS_aarch64 := neon
MACHINE    := $(subst amd64,x86_64,$(firstword $(subst -, ,$(shell $(CC) -dumpmachine))))
# What a file gets beyond CFLAGS, by its stem: tests and the command may use OpenMP, ref/ and proofs/ not.
# The inner loops of the judge and of exact slices, over every weight and every value, are worth -O3.
own = $(if $(filter-out fast/lanes/%,$(filter fast/%,$(1))),$(OPT_FAST) $(SET_$(lastword $(subst _, ,$(1))))) \
      $(if $(filter fast/kernels/kernels_%,$(1)),$(OPT_KERNEL)) \
      $(if $(filter $(ADDRESSES_ONLY),$(1)),-fno-sanitize=undefined) \
      $(if $(filter proofs/bounds/% proofs/truth/slice% audit/judge/%,$(1)),-O3) \
      $(if $(filter proofs/truth/%_avx2 proofs/truth/%_avx512,$(1)),$(SET_$(lastword $(subst _, ,$(1)))) -ffp-contract=fast) \
      $(if $(filter proofs/bounds/%_avx2 proofs/bounds/%_avx512,$(1)),$(SET_$(lastword $(subst _, ,$(1))))) \
      $(if $(filter audit/% tests/%,$(1)),$(OPENMP))

# FLINT 2.9 keeps Arb in a library of its own; FLINT 3 contains it. Asked at link time, when the
# packages are there, and once.
ARB      = $(eval ARB := $(shell printf 'int main(void){return 0;}' | $(CC) -xc - -lflint-arb -o /dev/null 2>/dev/null && echo -lflint-arb))$(ARB)
LDLIBS   = $(OPENMP) $(ARB) -lflint -lmpfr -lgmp -lopenblas -ljansson -lpcre2-8 -lm

REF     := $(wildcard base/*.c model/*.c ref/*.c ref/variants/*.c ref/backward/*.c)
# The files for another architecture's instruction sets are left out.
FAST    := $(filter-out $(foreach set,$(filter-out $(SETS_$(MACHINE)),$(SETS_x86_64) $(SETS_aarch64)),fast/kernels/%_$(set).c), \
             $(wildcard fast/*/*.c))
PROOFS  := $(filter-out $(if $(filter x86_64,$(MACHINE)),,$(foreach room,truth bounds,proofs/$(room)/%_avx2.c proofs/$(room)/%_avx512.c)),$(wildcard proofs/*/*.c))
AUDIT   := $(filter-out audit/command/main.c audit/examples/%,$(wildcard audit/*/*.c audit/studies/*/*.c))
LIBRARY := $(REF) $(FAST) $(PROOFS) $(AUDIT)
HEADERS := $(wildcard base/*.h model/*.h ref/*.h ref/variants/*.h ref/backward/*.h fast/*/*.h fast/*/*.inc proofs/*/*.h proofs/*/*.inc audit/*.h \
             audit/*/*.h audit/studies/*/*.h tests/shared/*.h)
TESTS   := $(wildcard tests/*/test_*.c)
FUZZERS := $(wildcard tests/*/fuzz_*.c)

OBJECTS := $(LIBRARY:%.c=$(BUILD)/%.o)
ARCHIVE := $(BUILD)/rooms.a
PROGRAM := $(BUILD)/sinkproof
# A test's program lies in its room: build/release/tests/ROOM/NAME.
program = $(patsubst %.c,$(BUILD)/%,$(1))
TESTBIN := $(call program,$(TESTS))
FUZZBIN := $(call program,$(FUZZERS))
include make/tests.mk
.PHONY: all help demo test clean FORCE
.DELETE_ON_ERROR:

all: $(PROGRAM) library  ## build the command, and libsinkproof under build/release/library

help:  ## list the targets
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile make/*.mk | awk -F'|' '{printf "  make %-14s %s\n", $$1, $$2}'
	@echo "Variables: T=softmax_sink|ref/|audit/test_trace CC=clang VARIANT=name FEW=1 ORDER=openblas|python JOBS=1" \
	    "ARCH=aarch64 SANITIZE=-fsanitize=... FUZZ_SECONDS=60 PREFIX=/usr/local PIP_ARGS=... NPM_ARGS=... V=1"

# What a fresh machine lacks. The goals that a newcomer types install it; every other goal only names it.
INSTALLING := $(filter demo test formal asan tsan qemu fuzz training-study interop-hf newest interop-newest interop-engines wheel sdist test-python test-wheel book explore pdf slides test-book test-explore test-mpi bare,$(MAKECMDGOALS))

# What tests/install.sh says on its standard output is why it could not: that sentence ends make, with
# no failed command beside it. make expands a recipe under -n and -q too, where nothing may be installed.
LOOKING  := $(strip $(foreach flag,n q,$(findstring $(flag),$(filter-out --%,$(firstword -$(MAKEFLAGS))))))
packages  = $(if $(LOOKING),sh tests/install.sh $(1) build,$(eval REFUSED := $$(shell sh tests/install.sh $(1) build))$(if \
              $(filter-out 0,$(.SHELLSTATUS)),$(error $(or $(REFUSED),tests/install.sh failed and gave no reason))))

build/packages build/packages-library: tests/install.sh
	$(call packages,$(if $(filter %-library,$@),--only library) $(if $(INSTALLING),,--check))
	@mkdir -p build
	@touch $@

# The library alone needs neither the provers' packages nor the tests'.
PACKAGES := build/packages$(if $(filter-out library wheel sdist,$(or $(MAKECMDGOALS),all)),,-library)

# Two runs of make may build one file at the same time. Each writes a file of its own, $(PART), which gets the name when
# it is whole; the rules that gcc finds beside an object are $(PART)s until then.
PART  = $@.$$$$.part
WHOLE = && mv -f $(PART) $@ || { rm -rf $(PART) $(PART)s; exit 1; }
RULES = -MMD -MP -MF $(PART)s -MT $@
KEPT  = && mv -f $(PART)s $(@:.o=.d)

# A change of compiler or flags rebuilds everything in the variant. Every object depends on the flags, and
# the flags wait for the packages: nothing is compiled or linked before they are there.
ALL_FLAGS = $(CC) $(CFLAGS); fast: $(OPT_FAST) $(OPT_KERNEL) $(foreach set,$(SETS_$(MACHINE)),$(set): $(SET_$(set))) $(ADDRESSES_ONLY)
$(BUILD)/flags: FORCE | $(PACKAGES)
	@mkdir -p $(@D)
	@echo '$(ALL_FLAGS)' | cmp -s - $@ || { echo '$(ALL_FLAGS)' > $(PART) $(WHOLE); }

$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,compile $<)$(CC) $(CFLAGS) $(call own,$*) $(RULES) -c $< -o $(PART) $(KEPT) $(WHOLE)

$(ARCHIVE): $(OBJECTS)
	$(call say,archive $@)$(AR) rcsD $(PART) $^ $(WHOLE)

# The statements of the book, and what is known of the formal proof of each: what `verify` goes by. Made
# anew every time, since it depends on every room; a table that is the same stays as old as it is.
$(BUILD)/inventory.c: FORCE | build/packages
	@mkdir -p $(@D)
	@python3 tests/gates/inventory.py . > $(PART) && \
	    if cmp -s $(PART) $@; then rm $(PART); else mv -f $(PART) $@; fi || { rm -f $(PART); exit 1; }

$(BUILD)/inventory.o: $(BUILD)/inventory.c $(BUILD)/flags
	$(call say,compile $<)$(CC) $(CFLAGS) -c $< -o $(PART) $(WHOLE)

$(PROGRAM): $(BUILD)/audit/command/main.o $(BUILD)/inventory.o $(ARCHIVE)
	$(call say,link $@)$(CC) $(CFLAGS) $^ -o $(PART) $(LDLIBS) $(WHOLE)

$(TESTBIN): $(BUILD)/tests/%: $(BUILD)/tests/%.o $(ARCHIVE)
	$(call say,link $@)$(CC) $(CFLAGS) $^ -o $(PART) $(LDLIBS) $(WHOLE)

# Every way to memory goes through this test, which lets one of them fail. What a shared library takes for
# itself does not: it is not ours.
WRAPPED := malloc calloc realloc free strdup asprintf mmap munmap json_dumps
$(filter %/test_no_memory,$(TESTBIN)): LDLIBS += $(WRAPPED:%=-Wl,--wrap=%)

# Every bound that verify calls, which this test scales.
FLOORED := products merged mixed_parts linear rmsnorm layernorm rotate turn softmax expert_weights variant_weights gelu swiglu read gradient gradient_sum
FLOORED := $(FLOORED:%=honest_%) linear_sums_row gamma mass_subtracted mass_quotient mass_sigmoid \
           quantise_most cache_bound dot_certified drift_judge drift_pooled rows_alike identity_at
$(filter %/test_verify_floor,$(TESTBIN)): LDLIBS += $(FLOORED:%=-Wl,--wrap=sinkproof_%) -Wl,--wrap=setting_largest

# What checks statements carries the inventory.
$(filter %/test_exact_verify %/test_verify_floor,$(TESTBIN)): $(BUILD)/inventory.o

.SECONDARY: $(TESTBIN:%=%.o)

demo: $(PROGRAM)  ## install what is missing, build, and take the tour
	$(PROGRAM) demo

test: $(NEEDED)  ## install what is missing, build, run every test, or those that T names (CI=true: a skip fails; ORDER: other sums)
	@SINKPROOF=$(PROGRAM) CC='$(CC)' python3 tests/run.py --small $(strip $(APART) $(BUILD) $(RUN_C) $(RUN_SCRIPTS))

include make/checks.mk make/engines.mk make/packages.mk make/book.mk

clean:  ## remove everything that was built
	rm -rf build

-include $(shell find $(BUILD) -type f -name '*.d' 2>/dev/null)
