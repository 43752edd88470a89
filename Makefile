# `make demo` and `make test` need only python3 (3.11 or newer) and make: each prepares .venv by itself, once.
# Options: PYTHON=python3.12 to choose the interpreter, ARGS="..." to pass arguments on, JOBS=8 for more test workers.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EMULATED := .venv-emulated
JOBS ?= 2
ARGS ?=
CUDA ?= 13
ORDER ?= random
SEED ?= 0

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
# Two pips in one environment tread on each other.
.NOTPARALLEL:
# Stamps are kept, or make would delete them as intermediate files and install again.
.SECONDARY:
.PHONY: help demo test test-emulated test-networkx test-all lint format bench gpu docs clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/.ready ## generate a graph several times its memory budget, rank it from disk, show the top ten
	$(BIN)/python examples/demo.py $(ARGS)

test: $(VENV)/.ready-test ## the fast tests
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -q -m "not slow" $(ARGS)

# In an environment and with a cache of its own: in .venv tests of a GPU are to be skipped where there is none.
test-emulated: ## the tests of a GPU, on one that is emulated; ORDER=eager, lazy or random, SEED=1 for another random one
	@$(MAKE) --no-print-directory VENV=$(EMULATED) $(EMULATED)/.ready-emulated
	NUMBA_CACHE_DIR=$(CURDIR)/$(EMULATED)/cache PYTHONPATH=tests EMULATED_ORDER=$(ORDER) EMULATED_SEED=$(SEED) \
		$(EMULATED)/bin/python -m pytest -p emulator.plugin -n $(JOBS) --dist worksteal -q -m gpu $(ARGS)

test-networkx: $(VENV)/.ready-test ## NetworkX's own tests, with Penstock as its backend
	JOBS=$(JOBS) PYTHON=$(BIN)/python tests/networkx_suite.sh $(ARGS)

test-all: $(VENV)/.ready-test $(VENV)/.ready-bench ## every test, slow ones too
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -q $(ARGS)

lint: $(VENV)/.ready-lint ## style, format and types, changing nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.ready-lint ## put the code into the house's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.ready-bench ## the benchmarks; ARGS="--help" lists them
	$(BIN)/python benchmarks/run.py $(ARGS)

gpu: $(VENV)/.ready-test $(VENV)/.ready-bench ## the tests and benchmarks of an NVIDIA GPU, in ten minutes; CUDA=12 for an older driver
	$(BIN)/python -m pip install --quiet --editable ".[gpu-cu$(CUDA)]"
	$(BIN)/python benchmarks/gpu.py $(ARGS)

docs: $(VENV)/.ready-docs ## the documentation as a web site, in site/
	$(BIN)/python docs/reference.py
	$(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

clean: ## remove all that make made: environments, caches, demo and benchmark data
	rm -rf $(VENV) $(EMULATED) demo bench-data build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

# pip, not python, is the witness: where Debian lacks python3-venv, a failed attempt leaves a python behind.
$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Penstock needs Python 3.11 or newer; this is " + sys.version.split()[0] + ": say make PYTHON=...")'
	@echo "Creating $(VENV) with $$($(PYTHON) --version)."
	@$(PYTHON) -m venv $(VENV) || { echo "No virtual environment: on Debian and Ubuntu, install python3-venv."; exit 1; }

$(VENV)/.ready: pyproject.toml | $(BIN)/pip
	@echo "Installing penstock and what it needs into $(VENV) (once; a minute or two)."
	@$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.ready-%: $(VENV)/.ready
	@echo "Installing the $* tools into $(VENV)."
	@$(BIN)/python -m pip install --quiet --group $*
	@touch $@
