# Targets for people; `make help` lists them. Nothing is installed outside of .venv except Debian packages (as root).

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CORE   := $(wildcard src/catchment/wire/*/*.py src/catchment/wire/*/*.pxd) setup.py
CODE   := src tests bench examples setup.py
TYPED  := src tests bench examples
# Three processes on two cores: tests wait for servers, locks and clocks a quarter of their time. Tests that share an
# expensive fixture go to one process (tests/suite/order.py). The simulator's seeds repeat only with a fixed hash seed.
PYTEST := PYTHONHASHSEED=0 TMPDIR=$${TMPDIR:-$$(dev/fast-tmp)} $(BIN)/python -m pytest
SUITE  := $(PYTEST) -n 3 --dist loadgroup --no-loadscope-reorder
# Programs that tests in slices use: a browser, load, schema changes by a tool, another database.
WIDE_PROGRAMS := chromium sysbench pt-online-schema-change postgres
SLICE    ?= commit
AFFECTED ?= 0

# Where it is set, each of the hundreds of processes that tests start compiles all of Catchment's modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo check test test-slice test-all test-long test-costs test-mysql test-newest model mistakes wheel bench lint format lock protobuf clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Virtual environment, compiled core, MariaDB and Java (quick when done)
	@dev/system-packages "$(PYTHON)"
	@$(MAKE) --silent --no-print-directory $(VENV)/core.stamp $(VENV)/foreign.stamp

demo: setup ## Copy and follow two MariaDB shards under constant writes, and verify (a minute)
	@$(BIN)/catchment demo

check: lint setup ## Lint, format, types and the rules of the house: run it before each commit
	@$(BIN)/mypy $(TYPED)
	@$(PYTEST) -q --tier check tests/tidy tests/suite tests/mistakes
	@$(BIN)/python -m tests.tidy.report

test: setup ## Layers, simulator, and each promise once on real servers (docs/testing.md)
	@$(SUITE) --tier test

test-slice: setup ## One of six slices of all other tests: SLICE=1..6, or the one that the commit selects
	@dev/system-packages "$(PYTHON)" $(WIDE_PROGRAMS)
	@$(SUITE) --tier wide --slice $(SLICE) --affected $(AFFECTED)

test-all: setup ## Everything but the long runs: what `test` and all six slices run
	@dev/system-packages "$(PYTHON)" $(WIDE_PROGRAMS)
	@$(SUITE) --tier test --tier wide

test-long: setup ## Endurance runs, which take hours
	@dev/system-packages "$(PYTHON)" spin $(WIDE_PROGRAMS)
	@$(PYTEST) --tier long

test-costs: setup ## What test-all runs; records what each test takes, which decides orders and slices
	@dev/system-packages "$(PYTHON)" $(WIDE_PROGRAMS)
	@$(SUITE) --tier test --tier wide --record-costs

test-mysql: setup ## What `test` runs, against a real MySQL 8.0 (what it lacks is skipped with the reason)
	@CATCHMENT_TEST_SERVER=mysql-8.0 $(SUITE) --tier test

test-newest: setup ## The wheel in fresh environments with the newest packages of the index (downloads 500 MB)
	@$(PYTEST) tests/promises/install

model: ## Check the protocol of plan, manifest, commit and fence in all its states (two minutes)
	@dev/system-packages "$(PYTHON)" spin
	@dev/model

mistakes: setup ## Plant mistakes in the product's rules, one at a time; a test or the simulator must find each (long)
	@$(PYTEST) -n 2 --dist worksteal -rP --tier wide tests/world/sim tests/mistakes -k "planted or is_found"

wheel: setup ## The wheel of this machine and Python, in dist/
	@$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/catchment-*.whl

bench: setup ## Measure; every figure beside its reference (ROWS= sets the size)
	@$(BIN)/python -m bench

lint: $(VENV)/tools.stamp ## Lint and format alone, in seconds also on a fresh clone
	@$(BIN)/ruff check --output-format=concise $(CODE)
	@$(BIN)/ruff format --check $(CODE)

format: setup ## Let ruff lay out the code
	$(BIN)/ruff check --fix --select I $(CODE)
	$(BIN)/ruff format $(CODE)

lock: ## Pin all dependencies anew in requirements.lock (needs uv)
	uv pip compile pyproject.toml --extra feed --extra stream --extra serve --extra objects --group dev --group build --universal --python-version 3.11 \
	    --generate-hashes --no-annotate --no-header --quiet --output-file requirements.lock

protobuf: setup ## Generate the Python code of proto/ again
	@mkdir -p build/protobuf
	@$(BIN)/python -m grpc_tools.protoc -I proto --python_out=build/protobuf --pyi_out=build/protobuf catchment_stream/v1/stream.proto
	@cp build/protobuf/catchment_stream/v1/stream_pb2.py* src/catchment/serve/server/

clean: ## Remove what was built, the virtual environment, and what tests keep in memory
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -rf "/dev/shm/catchment-tests-$$(id -u)"
	rm -f src/catchment/wire/*/*.so src/catchment/wire/*/*.c

# Lint needs nothing but ruff, so a fresh clone hears of a slip before anything else is installed. uv installs the rest,
# in a quarter of the time that pip takes.
$(VENV)/tools.stamp: requirements.lock
	@dev/system-packages --venv "$(PYTHON)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@dev/locked ruff uv | $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r /dev/stdin
	@touch $@

# A venv that broke off half-way has no stamp and is gone through again.
$(VENV)/packages.stamp: $(VENV)/tools.stamp
	@echo "Installing the locked packages into $(VENV) (a minute) ..."
	@$(BIN)/uv pip install --python $(BIN)/python --quiet --require-hashes -r requirements.lock
	@touch $@

$(VENV)/installed.stamp: $(VENV)/packages.stamp pyproject.toml
	@echo "Installing catchment ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

# Readers that tests judge by, of versions that the locked packages cannot have beside them.
$(VENV)/foreign.stamp: $(VENV)/packages.stamp dev/foreign-readers.txt
	@rm -rf $(VENV)/foreign
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(VENV)/foreign -r dev/foreign-readers.txt
	@touch $@

# The installation compiled the core as it was then.
$(VENV)/core.stamp: $(VENV)/installed.stamp $(CORE)
	@if [ -n "$$(find $(CORE) -newer $(VENV)/installed.stamp)" ]; then \
	    echo "Compiling the core ..."; $(BIN)/python setup.py --quiet build_ext --inplace; \
	fi
	@$(BIN)/python -m compileall -q src
	@touch $@
