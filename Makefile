# Every target makes what it needs, on a machine that has only Python >= 3.11 and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.synced
UV     := $(BIN)/uv
TESTS  ?= tests
ARGS   ?=
# Processes that share the tests, a file to each at a time: most of them wait for something.
WORKERS ?= 2
# 124: a route's handler is async whether it awaits or not. 128 does not see that Hypercorn starts.
FLAKE8_ASYNC := --enable=ASYNC --disable=ASYNC124,ASYNC128,ASYNC9 \
  --startable-in-context-manager=watch,run,_serve,serve

.PHONY: run test check bench soak lock format clean

run: $(STAMP)
	@LEADLINE_DATA_DIR="$${LEADLINE_DATA_DIR:-$(CURDIR)/data}" $(BIN)/leadline run $(ARGS)

test: $(STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(TESTS) $(ARGS)

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	find daemon http storage probes -name '*.py' | xargs -P 2 -n 64 $(BIN)/flake8-async $(FLAKE8_ASYNC)
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/house

bench: $(STAMP)
	$(BIN)/python -m tests.bench $(ARGS)

soak: $(STAMP)
	LEADLINE_SOAK=1 $(BIN)/python -m pytest -m soak tests $(ARGS)

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
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
