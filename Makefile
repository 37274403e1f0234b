# The commands of this repository; `make` alone lists them. CI runs the same targets.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
# One thread per process: the programs are tiny and the tests fill the cores side by side.
JOBS   ?= 2
export OMP_NUM_THREADS := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo test check format docs pictures corpus triton bench clean

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 10

# Each stamp is younger than the files that decide what is installed, so that a second call installs nothing.
$(VENV)/.installed-run: pyproject.toml constraints.txt hatch_build.py $(wildcard src/whygrad/stats/native/*.[ch])
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "whygrad needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip
	$(PIP) --editable '.[torch]'
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed-run
	$(PIP) --group dev
	@touch $@

setup: $(VENV)/.installed-dev  ## create .venv with everything that development needs

demo: $(VENV)/.installed-run  ## show vanishing gradients: a three-layer MLP, ReLU against sigmoid
	$(BIN)/whygrad demo

test: $(VENV)/.installed-dev  ## run the whole suite, corpus included, side by side (JOBS=2)
	$(BIN)/python -m pytest --numprocesses $(JOBS) --maxschedchunk 1

check: $(VENV)/.installed-dev  ## lint, format, types, import contracts, spelling
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/codespell

format: $(VENV)/.installed-dev  ## let ruff format and fix what it can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(VENV)/.installed-dev  ## regenerate the pages that come from the code
	$(BIN)/python -m docs.generate
	$(BIN)/python -m docs.capture

pictures: $(VENV)/.installed-dev  ## make the README's pictures anew (needs chromium)
	$(BIN)/python -m docs.pictures

corpus: $(VENV)/.installed-dev  ## score whygrad on the corpus, as a table
	$(BIN)/python tests/corpus/score.py --jobs $(JOBS)

triton: $(VENV)/.installed-dev  ## check the kernel in Triton in Triton's interpreter (installs 1 GB)
	$(PIP) --group triton
	$(BIN)/python -m pytest tests/stats/accelerator/test_one_pass.py

$(VENV)/.installed-bench: $(VENV)/.installed-dev
	$(PIP) --group bench
	@touch $@

bench: $(VENV)/.installed-bench  ## measure what watching costs (half an hour on a quiet machine)
	$(BIN)/python -m benchmarks

clean:  ## delete what these targets made
	rm -f src/whygrad/stats/native/_kernel.*
	rm -rf $(VENV) build dist test-artifacts .whygrad .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
