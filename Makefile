# Everything a developer runs. `make venv` once (the other targets do it themselves), then see CONTRIBUTING.md.
SHELL := /bin/bash
.DELETE_ON_ERROR:
.PHONY: help venv demo test lint format bench lock reference clean

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

help:
	@echo "make venv       .venv with everything for development (PYTHON=... to choose the interpreter)"
	@echo "make demo       a folder of documents -> a graph -> a question answered with citations"
	@echo "make test       all tests, warnings as errors, coverage (ARGS='-k name' for some of them)"
	@echo "make lint       ruff, ruff format, mypy --strict, import direction"
	@echo "make format     let ruff rewrite what it can"
	@echo "make bench      speed, scale and quality; minutes"
	@echo "make lock       resolve requirements-dev.lock anew (needs uv)"
	@echo "make reference  write configs/REFERENCE.md from the settings"

venv: $(STAMP)

# The interpreter is the first of these that runs, is 3.11 to 3.13 and can make an environment.
$(STAMP): requirements-dev.lock pyproject.toml
	@set -euo pipefail; \
	if [ ! -x $(BIN)/python ]; then \
	  for candidate in $${PYTHON:-python3 python3.13 python3.12 python3.11 python}; do \
	    if $$candidate -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then \
	      found=$$candidate; break; fi; \
	  done; \
	  if [ -z "$${found:-}" ]; then \
	    echo "No Python 3.11 to 3.13 with venv was found. Install one, or name it: make venv PYTHON=/path/to/python3.12" >&2; exit 1; fi; \
	  echo "Making $(VENV) with $$($$found -c 'import sys; print(sys.executable, sys.version.split()[0])')"; \
	  $$found -m venv $(VENV); \
	fi
	$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip --upgrade
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --no-deps --no-build-isolation -e .
	@touch $(STAMP)
	@echo "Ready: $(BIN)/kgrag --help"

demo: venv
	$(BIN)/kgrag demo

test: venv
	$(BIN)/python -m pytest --cov --cov-report=term $(ARGS)

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy kgrag
	$(BIN)/lint-imports

format: venv
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: venv
	$(BIN)/python -m benchmarks

lock:
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --no-header --no-annotate --upgrade -o requirements-dev.lock

reference: venv
	$(BIN)/python -m kgrag.settings > configs/REFERENCE.md

clean:
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache htmlcov .coverage .coverage.* dist build
