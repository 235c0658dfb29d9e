# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# The book, its pictures, its exercises.

.PHONY: exercise book explore pdf slides test-book test-explore

# KaTeX, the search and the faces of the letters are put into the book when it is built; NPM_ARGS says where npm finds it, if not where it looks.
NPM_ARGS ?=
NODE     := build/node/node_modules
build/node/.stamp: doc/book/package.json | build/packages
	$(call packages,--with book --with wasm)
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

# The pages that compute, without the book around them; their tests ask the numbers (FEW=1: a tenth) and use them in Chromium.
EXPLORE := $(BUILD)/explore-native
explore: | build/packages  ## the pages that compute, alone: one row, its gradients, one layer, one sum, the derivation; build/explore/explore/index.html
	$(call packages,--with wasm)
	@python3 doc/explore/explore.py . build/explore

$(EXPLORE): $(patsubst %.c,$(BUILD)/%.o,$(wildcard doc/explore/*.c)) $(ARCHIVE)
	$(call say,link $@)$(CC) $(CFLAGS) $^ -o $(PART) $(LDLIBS) $(WHOLE)

test-explore: $(PROGRAM) $(EXPLORE) explore  ## their numbers beside those of the same files compiled here; every control, in headless Chromium
	@sh tests/install.sh --with browser build || true
	@SINKPROOF=$(PROGRAM) EXPLORE=build/explore/explore EXPLORE_NATIVE=$(EXPLORE) NODE=$(NODE) python3 tests/run.py $(BUILD)/explore $(EXPLORED)
EXPLORED := tests/doc/explore_numbers.py tests/doc/explore_page.py tests/doc/explore_layer.py tests/doc/explore_back.py

N ?=
exercise: $(PROGRAM) $(ARCHIVE)  ## the exercises; N=6.2 asks one, ANSWER=my.c holds an answer to it against the solution, SHOW=1 tells it
	@SINKPROOF=$(PROGRAM) SINKPROOF_BUILD=$(BUILD) python3 tests/doc/exercise.py $(if $(SHOW),--show) $(N) $(ANSWER)

book: $(PROGRAM) build/node/.stamp  ## the book as HTML under build/book, with the log of the last run if there is one (FEW=1: sources uncoloured)
	@python3 doc/book/build.py $(if $(FEW),--plain-sources) --log $(BUILD)/tap.log --program $(PROGRAM) --node $(NODE) . build/book

pdf: book  ## the book on paper: build/sinkproof.pdf, A4, printed by Chromium
	$(call packages,--with browser)
	@python3 doc/book/print.py build/book all.html build/sinkproof.pdf

slides: book  ## a lecture from the book: build/book/slides.html and build/slides.pdf
	$(call packages,--with browser)
	@python3 doc/book/print.py build/book slides.html build/slides.pdf

test-book: $(EXPLORE) book  ## faulty books must not build (not under FEW=1); every page in headless Chromium
	@sh tests/install.sh --with browser build || true
	@SINKPROOF=$(PROGRAM) EXPLORE=build/book/explore EXPLORE_NATIVE=$(EXPLORE) NODE=$(NODE) python3 tests/run.py $(BUILD)/book $(EXPLORED) \
	    $(if $(FEW),,tests/doc/book_build.py) tests/doc/book_screenshots.py tests/audit/report_screens.py
