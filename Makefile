# Every target sets up what it needs in .venv; a machine needs Python (3.11 or newer) and make.
# Another Python: make PYTHON=python3.12 test

PYTHON ?= python3
JOBS ?= 2

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
INSTALLED_BENCH := $(VENV)/.installed-bench
INSTALLED_SPARK := $(VENV)/.installed-spark
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
PYTEST := $(BIN)/python -m pytest -q -n $(JOBS)

# Machine code made by tests and demo stays inside the tree, unless you choose a place yourself.
SASH_CACHE_DIR ?= $(CURDIR)/$(VENV)/machine-code
export SASH_CACHE_DIR

.PHONY: help setup test test-jit test-nojit test-bounds test-spark check format demo bench bench-large bench-spark clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -e 's/:.*## /~/' | awk -F '~' '{ printf "  make %-12s %s\n", $$1, $$2 }'

setup: $(INSTALLED) ## install everything into .venv (the other targets do it themselves)

test: test-jit test-nojit test-bounds ## everything a change must pass: compiled, interpreted, bounds checked

# The runs are ordered by .NOTPARALLEL below, so that the closing line of the last is the last line.
test-jit: $(INSTALLED) ## all tests but those on Spark, with machine code
	$(PYTEST) --ignore=tests/spark

test-nojit: $(INSTALLED) ## the same source interpreted: all tests that could tell the difference
	SASH_JIT=0 $(PYTEST) --ignore=tests/compiling --ignore=tests/spark --ignore=tests/stores --ignore=tests/frames

test-bounds: $(INSTALLED) ## machine code that checks every index: algorithms and cells
	NUMBA_BOUNDSCHECK=1 $(PYTEST) tests/aggregators tests/compiling/test_parity.py

test-spark: $(INSTALLED_SPARK) ## tables of Spark, in one session; installs it first, half a gigabyte
	$(BIN)/python -m pytest -q tests/spark

check: $(INSTALLED) ## linter, formatter, types, import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(INSTALLED) ## let ruff sort and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

demo: $(INSTALLED) ## something real: windows over a million rides, timed
	$(BIN)/python examples/first_window.py

bench: $(INSTALLED_BENCH) ## against bottleneck, pandas, Polars and DuckDB; takes minutes
	$(BIN)/python -m bench

bench-large: $(INSTALLED_BENCH) ## windows of 2^25 elements in memory; takes gigabytes
	$(BIN)/python -m bench mta-large

bench-spark: $(INSTALLED_BENCH) $(INSTALLED_SPARK) ## against Spark's own windows; takes an hour, or minutes with QUICK=--quick
	$(BIN)/python -m bench.spark $(QUICK)

clean: ## remove .venv and everything made by tools
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Sash needs Python 3.11 or newer; choose one: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) hatchling editables
	$(PIP) --no-build-isolation --editable '.[dev,sketches,testing]'
	@touch $@

$(INSTALLED_SPARK): $(INSTALLED)
	$(PIP) pyspark  # an archive, built apart from what is here
	$(PIP) --no-build-isolation --editable '.[spark,spark-tests]'
	@touch $@

$(INSTALLED_BENCH): $(INSTALLED)
	$(PIP) --no-build-isolation --editable '.[bench]'
	@touch $@

.NOTPARALLEL:
