# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# Which tests `make test` runs, and what they need.

SCRIPTS := $(wildcard tests/*/test_*.sh tests/*/test_*.py)
# The files of the list $(1), which names them without test_ and ending. An sdist of the Python package has no tests.
of_list  = $(foreach name,$($(1)),$(or $(filter %/test_$(name).c %/test_$(name).sh %/test_$(name).py,$(TESTS) $(SCRIPTS)),\
              $(if $(SCRIPTS),$(error $(1) names test_$(name), which is not there))))

# These ask about the tree, not about a build of it: the default variant runs them, once.
ONCE := alone certificate check_doc chosen_tests doc_formula exercise_numbers formal fuzz_log install lanes_exp_constants lecture mutants \
        packages pictures sides stems training_data tried two_makes walls
ONCE += judge plugin # minutes each
# The pictures are made of numbers: they are drawn again where OpenBLAS adds up in another order.
ONCE := $(call of_list,ONCE)
ONCE := $(filter-out $(if $(findstring openblas,$(ORDER)),%/test_pictures.py),$(ONCE))

# All of them, or those that T names (tests/choose.py), whose log is apart: check-doc reads that of all.
RUN := $(TESTS) $(SCRIPTS)
ifeq ($(origin T),command line)
RUN   := $(shell python3 tests/choose.py '$(T)' $(RUN))
$(if $(filter-out 0,$(.SHELLSTATUS)),$(error $(RUN)))
APART := --logs $(BUILD)/chosen
else ifneq ($(BUILD),build/release)
RUN := $(filter-out $(ONCE),$(RUN))
endif
RUN_C       := $(call program,$(filter %.c,$(RUN)))
RUN_SCRIPTS := $(filter-out %.c,$(RUN))

# A script needs the command; two of them what can be had of ref/ alone, and what is installed.
NEEDED := $(RUN_C) $(if $(RUN_SCRIPTS),$(PROGRAM)) $(if $(filter %/test_install.sh,$(RUN)),library pages)
NEEDED += $(if $(filter %/test_alone.sh,$(RUN)),$(BUILD)/alone/sinkproof-ref)
