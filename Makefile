# Every target makes what it needs, on a machine that has only Python >= 3.11 and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.synced
UV     := $(BIN)/uv
# `make check` runs the tests of structure, tests/house.
TESTS  ?= --ignore=tests/house tests
ARGS   ?=
# Processes that share the tests. Twice the cores of the machine that the times in tests/README.md
# were measured on, because half of the time of a process is waiting.
WORKERS ?= 5
REVISION ?= 1
PYTEST_ARGS := -q -n $(WORKERS) --dist loadgroup --no-loadscope-reorder
PYTEST := $(BIN)/python -m pytest $(PYTEST_ARGS)
# Runs of `make flaky`.
N      ?= 50
# pytest rewrites the assertions of every file at each start where it may not keep the result.
unexport PYTHONDONTWRITEBYTECODE
# 124: a route's handler is async whether it awaits or not. 128 does not see that Hypercorn starts.
# 127 prefers a fork of httpx. ruff reports 100, and 300 as RUF006; without them flake8-async takes a third less time.
FLAKE8_ASYNC := --enable=ASYNC --disable=ASYNC100,ASYNC124,ASYNC127,ASYNC128,ASYNC300,ASYNC9 \
  --startable-in-context-manager=watch,run,_run,_serve,serve,serve_not_ready

.PHONY: run test dist deb check check-style check-async check-types check-structure check-site site bench chaos soak flaky coverage mutations shots lock format clean

run: $(STAMP)
	@LEADLINE_DATA_DIR="$${LEADLINE_DATA_DIR:-$(CURDIR)/data}" $(BIN)/leadline run $(ARGS)

test: $(STAMP)
	$(PYTEST) --durations=15 --durations-min=1 $(TESTS) $(ARGS)

# The parts run beside each other; -k reports the findings of all of them.
check: $(STAMP)
	@$(MAKE) --no-print-directory -k -j2 --output-sync=target check-async check-types check-style check-structure check-site

check-style:
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

# Runs flake8-async on files with async code that have changed since they last passed.
check-async:
	$(BIN)/python -m tests.house.async_lint $(FLAKE8_ASYNC)

check-types:
	$(BIN)/mypy

# At a lower verbosity, pytest shows only the first of the violations.
check-structure:
	LEADLINE_WHOLE_FAILURES=1 $(BIN)/python -m pytest -q -o verbosity_assertions=2 tests/house

# A link to a page or heading that does not exist is an error.
site: $(STAMP) check-site
	@echo "The site is build/site/index.html"

check-site:
	$(BIN)/python -m sphinx -q -W --keep-going -d build/doctrees docs build/site

bench: $(STAMP)
	$(BIN)/python -m tests.bench $(ARGS)

# tests/README.md has the variables, such as SEED and MINUTES; tests/chaos the faults.
chaos: $(STAMP)
	$(BIN)/python -m tests.chaos

soak: $(STAMP)
	LEADLINE_SOAK=1 $(PYTEST) -m soak $(TESTS) $(ARGS)
	tests/support/run/on_second_postgres $(MAKE) test TESTS='tests/*/test_*_loop.py tests/*/test_*_api.py'

# Repeats tests while other programs occupy every core.
flaky: $(STAMP)
	$(BIN)/python -m tests.support.run.flaky $(N) $(TESTS) $(ARGS)

# Prints the line and branch coverage of each layer, also where a test failed. A daemon that is a fork
# of another process would not be measured.
coverage: $(STAMP)
	$(BIN)/python -m coverage erase
	LEADLINE_TEST_FORK=0 $(BIN)/python -m coverage run -m pytest $(PYTEST_ARGS) $(TESTS) $(ARGS); \
	  status=$$?; \
	  $(BIN)/python -m coverage combine -q && $(BIN)/python -m tests.support.run.coverage_of_layers && exit $$status

# Writes pictures of all screens to docs/shots, from an example shop on a real daemon.
shots: $(STAMP)
	$(BIN)/python -m tests.support.run.shots

# Changes HEAD in 130 places, one at a time, and lists those that no test detects: an hour.
mutations: $(STAMP)
	$(BIN)/python -m tests.support.run.mutations $(ARGS) build/mutations.json

# Builds and checks dist/leadline-VERSION.tar.gz, the wheel and its bill of materials, from HEAD.
dist: $(STAMP)
	$(BIN)/python packaging/build_dist.py

# Builds dist/leadline_VERSION-REVISION_ARCHITECTURE.deb for the Python of this Debian.
deb: $(STAMP)
	$(BIN)/python packaging/build_deb.py $(REVISION)

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# uv takes about 20 s where pip takes 100; pip is the way back where uv cannot be had.
$(STAMP): requirements/dev.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip -q
	if test -x $(UV) || $(BIN)/python -m pip install -q uv; then \
	  $(UV) pip sync -q --no-config --no-build --require-hashes --compile-bytecode --python $(BIN)/python requirements/dev.lock && \
	  $(UV) pip install -q --no-config --no-index --no-deps --no-build-isolation --python $(BIN)/python -e '.[embedded]'; \
	else \
	  $(BIN)/python -m pip install -q --require-hashes -r requirements/dev.lock && \
	  $(BIN)/python -m pip install -q --no-index --no-deps --no-build-isolation -e '.[embedded]'; \
	fi
	touch $@

COMPILE := $(UV) pip compile --no-config --universal --python-version 3.11 --generate-hashes --no-header \
  --no-annotate --no-emit-index-url --no-emit-find-links -q pyproject.toml
lock:
	$(COMPILE) -o requirements/runtime.lock
	$(COMPILE) --extra embedded -c requirements/runtime.lock -o requirements/embedded.lock
	$(COMPILE) --extra embedded --group dev -c requirements/embedded.lock -o requirements/dev.lock

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .check_cache
