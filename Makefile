# Every command sets up what it needs: Python 3.11 or later and make are enough. Only `compat`
# needs more, and says so.
#
#   make test PYTHON=python3.12 VENV=.venv-3.12    another Python, in a place of its own
#   make test ARGS="tests/test_wire.py -k varint"  a part of the tests

VENV ?= .venv
ARGS ?=

# Empty: the first Python on the path that is new enough.
PYTHON ?=

BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip --disable-pip-version-check install --quiet
PYTHON_SUFFICES := import sys; sys.exit(sys.version_info < (3, 11))

.DEFAULT_GOAL := help
.PHONY: help run setup test check packaging compat bench fuzz simulate

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

run: $(VENV)/.run ## run a broker on 127.0.0.1:9092, its data in ./ottla-data
	@exec $(BIN)/ottla serve $(ARGS)

setup: $(VENV)/.dev ## make .venv, with Ottla and the development tools in it

test: $(VENV)/.dev ## run the tests that need nothing but Python
	$(BIN)/pytest -n auto --maxprocesses 4 $(ARGS)

check: $(VENV)/.dev ## format, lint, types, imports, and what tests/test_tidy.py holds
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -q tests/test_tidy.py

packaging: $(VENV)/.dev ## install Ottla in every way that pip knows, and look at what came
	$(BIN)/pytest -m packaging tests/test_packaging.py $(ARGS)

compat: $(VENV)/.compat ## compare with a real Apache Kafka (needs Java 17 and Maven)
	$(BIN)/pytest -rs compat_tests $(ARGS)

bench: $(VENV)/.dev ## measure Ottla beside what else could do the same work, in one run
	$(BIN)/python -m bench $(ARGS)

fuzz: $(VENV)/.dev ## feed a million mutated inputs to everything that reads bytes
	$(BIN)/python -m tests.fuzz $(ARGS)

simulate: $(VENV)/.dev ## cut lives of a log everywhere (STATES=500000), or play nodes (SEEDS=200)
ifdef SEEDS
	$(BIN)/python -m tests.simulation.machines
	$(BIN)/python -m tests.simulation.node --seeds $(SEEDS) $(ARGS)
else
	$(BIN)/python -m tests.simulation.crash $(if $(STATES),--states $(STATES)) $(ARGS)
endif

# The stamps: a second call finds nothing to do, a changed pyproject.toml is installed again.
# pip reads dependency groups from 25.1 on; the pip that came with the Python may be older.
# setuptools warns of folders that stand beside the code; that they stand there is our layout.
$(VENV)/.run: pyproject.toml | $(BIN)/python
	PYTHONWARNINGS='ignore:Editable installation' $(PIP_INSTALL) --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.run
	$(PIP_INSTALL) 'pip>=25.1'
	$(PIP_INSTALL) --group dev
	@touch $@

$(VENV)/.compat: pyproject.toml $(VENV)/.dev
	$(PIP_INSTALL) --group compat --group spark
	@touch $@

# A Python without ensurepip leaves half an environment behind: it must not pass for a whole one.
$(BIN)/python:
	@python=$$(for each in $(or $(PYTHON),python3 python3.13 python3.12 python3.11); do \
	    "$$each" -c '$(PYTHON_SUFFICES)' 2>/dev/null && echo "$$each" && break; done); \
	if [ -z "$$python" ]; then \
	    echo "Ottla needs Python 3.11 or later: make PYTHON=/path/to/python3" >&2; exit 1; fi; \
	"$$python" -m venv $(VENV) || { rm -f $(BIN)/python; exit 1; }
