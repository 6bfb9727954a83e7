# Targets for people; `make help` lists them. Nothing is installed outside of .venv except Debian packages (as root).

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CORE   := $(wildcard src/catchment/wire/*/*.py src/catchment/wire/*/*.pxd) setup.py
CODE   := src tests bench examples setup.py
# Four processes on two cores: a test waits for servers, locks and clocks. Who is done first takes over tests.
PYTEST := TMPDIR=$${TMPDIR:-$$(dev/fast-tmp)} $(BIN)/python -m pytest -n 4 --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-wide test-mysql test-newest test-all model mistakes wheel bench lint format lock protobuf clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Virtual environment, compiled core, MariaDB and Java (quick when done)
	@dev/system-packages "$(PYTHON)"
	@$(MAKE) --silent --no-print-directory $(VENV)/core.stamp $(VENV)/foreign.stamp

demo: setup ## Copy and follow two MariaDB shards under constant writes, and verify (a minute)
	@$(BIN)/catchment demo

test: setup ## The test suite with lint and types, without the long runs
	@$(PYTEST) -m "not long and not wide"

test-wide: setup ## What CI runs besides: more servers, sizes and engines, and planted mistakes (a quarter of an hour)
	@dev/system-packages "$(PYTHON)" chromium sysbench pt-online-schema-change
	@$(PYTEST) -m "wide and not long"

test-mysql: setup ## The test suite against a real MySQL 8.0 (what it lacks is skipped with the reason)
	@CATCHMENT_TEST_SERVER=mysql-8.0 $(PYTEST) -m "not long and not wide"

test-newest: setup ## The wheel in fresh environments with the newest packages of the index (downloads 500 MB)
	@$(BIN)/python -m pytest tests/promises/install

test-all: setup ## The whole test suite, long runs included
	@dev/system-packages "$(PYTHON)" spin chromium sysbench pt-online-schema-change postgres
	@$(BIN)/python -m pytest

model: ## Check the protocol of plan, manifest, commit and fence in all its states (two minutes)
	@dev/system-packages "$(PYTHON)" spin
	@dev/model

mistakes: setup ## Plant mistakes in the product's rules; the simulator must find each (some minutes)
	@$(BIN)/python -m pytest -n 2 --dist worksteal -rP tests/world/sim -k planted

wheel: setup ## The wheel of this machine and Python, in dist/
	@$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/catchment-*.whl

bench: setup ## Measure; every figure beside its reference (ROWS= sets the size)
	@$(BIN)/python -m bench

lint: setup ## Lint, format and types
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy src tests bench examples

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

# A venv that broke off half-way has no stamp and is gone through again. PySpark comes as source, which pip 23 of
# Debian 12 would build in an outdated way; later versions of pip do not need the variable.
$(VENV)/packages.stamp: requirements.lock
	@echo "Installing the locked packages into $(VENV) (a few minutes) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@PIP_USE_PEP517=1 $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
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
	@touch $@
