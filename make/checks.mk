# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# What is asked of the tree beside `make test`: sanitizers, other processors, fuzzers, proofs, walls, pages, mutants.

.PHONY: asan few-watched tsan tsan-run qemu qemu-run fuzz fuzz-run bare test-mpi full-size false-alarms exhaustive kill-table formal check-walls \
        check-doc write-doc mutants mutants-changed mutants-all format check-format check-clang

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

# clang's build serves the fuzzers too, which count the edges that an input takes. To watch every lane of a vector kernel
# for undefined behaviour takes clang minutes: it watches what those read and write, and all of the portable kernels,
# whose body is the same; gcc's build watches all.
# FEW=1 asks what a landing asks: the readers of strangers' bytes and the kernels, in a build of the rooms that they and
# the fuzzers link. It watches the readers for undefined behaviour, and what all others read and write.
WATCH        = address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
WATCHED_gcc   = SANITIZE='-fsanitize=$(WATCH)'
WATCHED_clang = SANITIZE='-fsanitize=fuzzer-no-link,$(WATCH)' $(if $(FEW),$(call few_rooms,trace designs intervene studies/text)) \
    ADDRESSES_ONLY='$(strip \
    fast/kernels/kernels_avx% fast/kernels/%_amx $(if $(FEW),ref/% fast/% proofs/% audit/studies/% audit/designs/% tests/%))'
# The work file of truth is read with all of proofs/truth, which these builds leave out: `make fuzz` has its fuzzer.
few_rooms     = FUZZERS='$(filter-out %/fuzz_truth_work.c,$(FUZZERS))' PROOFS='$(filter proofs/bounds/%,$(PROOFS))' AUDIT='$(filter $(patsubst %,audit/%/%,$(1)) $(READERS),$(AUDIT))'
READERS      := $(addprefix audit/command/,inputs.c kept_read.c shard.c) \
    $(addprefix audit/plugin/,arrays.c files.c inputs.c lse.c manifest.c stages.c)
FEW_WATCHED  := $(if $(TESTS),$(shell grep -L audit/command $(wildcard tests/base/test_*.c tests/model/test_*.c tests/fast/test_isa.c \
    tests/fast/test_panels.c tests/fast/test_kernels*.c tests/fast/test_engine_*.c) tests/ref/test_vectors.c tests/audit/test_trace.c))
asan: | build/packages  ## every test again under the address and undefined-behaviour sanitizers (CC=clang; FEW=1: readers and kernels)
	@ASAN_OPTIONS=detect_leaks=1 LSAN_OPTIONS=suppressions=$(CURDIR)/tests/shared/leaks.supp:print_suppressions=0 \
	    UBSAN_OPTIONS=print_stacktrace=1 $(MAKE) $(if $(FEW),few-watched,test) VARIANT=asan \
	    $(WATCHED_$(if $(findstring clang,$(CC)),clang,gcc))

few-watched: $(call program,$(FEW_WATCHED))
	@python3 tests/run.py $(BUILD) $^

# Races. clang's OpenMP tells ThreadSanitizer of its barriers through the tool Archer; gcc's has none.
TSAN_TESTS ?= tests/fast/test_engine.c tests/fast/test_engine_cache.c tests/audit/test_judge_threads.c
TSAN_RACE  := $(BUILD)/tests/fast/tsan_race
tsan:  ## the tests that use threads under ThreadSanitizer, and a race that it must find
	$(call packages,--with tsan)
	@$(MAKE) tsan-run CC=clang VARIANT=tsan SANITIZE='-fsanitize=thread -fno-omit-frame-pointer' \
	    $(call few_rooms,trace judge)

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
	SINKPROOF=$(PROGRAM) QEMU_TESTS='$(call program,$(filter-out $(if $(FEW),%_attention.c %_linear.c %_rows.c %_cache.c),$(QEMU_TESTS)))' \
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

FUZZ_SECONDS ?= 60
fuzz:  ## every tests/fuzz_*.c under libFuzzer and the sanitizers, FUZZ_SECONDS each
	$(call packages,--with fuzz)
	@$(MAKE) fuzz-run CC=clang VARIANT=asan $(WATCHED_clang)

$(FUZZBIN): $(BUILD)/tests/%: $(BUILD)/tests/%.o $(ARCHIVE)
	$(call say,link $@)$(CC) $(CFLAGS) -fsanitize=fuzzer $^ -o $(PART) $(LDLIBS) $(WHOLE)

fuzz-run: $(FUZZBIN)
	@python3 tests/fuzz.py $(BUILD) $(FUZZ_SECONDS) $(FUZZBIN)

bare: | build/packages  ## both commands of the README in fresh minimal Debian roots (as root; of HEAD): ten minutes
	$(call packages,--with bare)
	@TEST_SECONDS=3600 python3 tests/run.py $(BUILD)/bare tests/gates/bare.sh

test-mpi: $(PROGRAM)  ## four ranks of Open MPI judge traces on this machine, one is killed and started again: seconds
	$(call packages,--with mpi)
	@SINKPROOF=$(PROGRAM) python3 tests/run.py $(BUILD)/mpi tests/audit/mpi_ranks.py

full-size: $(PROGRAM)  ## the fast path on the full 20b and 120b models, every point judged: a quarter of an hour
	@SINKPROOF=$(PROGRAM) TEST_SECONDS=7200 python3 tests/run.py $(BUILD)/full-size tests/audit/full_size.sh

RUNS ?= 300
SEED ?= 1
false-alarms: $(PROGRAM)  ## RUNS=300 honest runs drawn from SEED=1, judged: none may be called a bug or suspicious; two minutes
	@SINKPROOF=$(PROGRAM) RUNS=$(RUNS) SEED=$(SEED) TEST_SECONDS=7200 python3 tests/run.py $(BUILD)/false-alarms tests/audit/false_alarms.py

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

FORMATTED = $(REF) $(wildcard fast/*/*.c) $(PROOFS) $(wildcard audit/*/*.c audit/studies/*/*.c) $(HEADERS) $(wildcard tests/*/*.c doc/explore/*.[ch])
format:  ## clang-format every C file in place
	clang-format -i $(FORMATTED)

# clang warns of more than gcc. The kernels, whose flags differ from file to file, are compiled by asan CC=clang.
check-clang: | build/packages  ## clang has nothing to warn of in any file but the kernels, which make asan CC=clang compiles
	@printf '%s\n' $(filter-out fast/%,$(LIBRARY)) audit/command/main.c $(TESTS) | \
	    xargs -P "$$(nproc)" -n 8 clang $(CFLAGS) $(OPENMP) -fsyntax-only

check-format:  ## fail when clang-format would change a file
	@clang-format --dry-run -Werror $(FORMATTED)
