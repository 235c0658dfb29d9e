# sinkproof: a reference of GPT-OSS attention, its proofs, and a judge of engines.
# `make help` lists the targets. Every object lives under build/VARIANT/.

CC      ?= gcc
VARIANT ?= release
BUILD   := build/$(VARIANT)

WARN    := -std=c11 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion \
           -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wvla -Werror
OPT     := -O2 -g
CFLAGS  := $(WARN) $(OPT) -ffp-contract=off -fno-math-errno -I. $(SANITIZE) $(EXTRA_CFLAGS)
# -fno-math-errno changes no value: it only lets sqrt be one instruction.

# FLINT 2.9 keeps Arb in a library of its own; FLINT 3 contains it.
ARB     := $(shell printf 'int main(void){return 0;}' | $(CC) -xc - -lflint-arb -o /dev/null 2>/dev/null && echo -lflint-arb)
LDLIBS  := $(ARB) -lflint -lmpfr -lgmp -lopenblas -ljansson -lm

REF     := $(wildcard ref/*.c ref/model/*.c)
PROOFS  := $(wildcard proofs/*/*.c)
AUDIT   := $(filter-out audit/main.c,$(wildcard audit/*.c))
TESTS   := $(wildcard tests/test_*.c)
LIBRARY := $(REF) $(PROOFS) $(AUDIT)

OBJECTS := $(LIBRARY:%.c=$(BUILD)/%.o)
PROGRAM := $(BUILD)/sinkproof
TESTBIN := $(TESTS:tests/%.c=$(BUILD)/tests/%)

.PHONY: all help clean
all: $(PROGRAM)  ## build the command (build/release/sinkproof)

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP -c $< -o $@

$(PROGRAM): $(BUILD)/audit/main.o $(OBJECTS)
	$(CC) $(CFLAGS) $^ -o $@ $(LDLIBS)

$(BUILD)/tests/%: $(BUILD)/tests/%.o $(OBJECTS)
	$(CC) $(CFLAGS) $^ -o $@ $(LDLIBS)

clean:  ## remove everything that was built
	rm -rf build

-include $(shell find build -name '*.d' 2>/dev/null)
