# Two commands do everything on a fresh machine with python3.11, pip and make:
#   make demo    sets up, then runs the main job on the bundled sample
#   make test    sets up, then runs the tests
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test test-slow lint format speed bench-quick clean help

help:
	@sed -n 's/^# \{0,1\}//p; /^PYTHON/q' Makefile
	@echo "  make lint    ruff, mypy and the import contract; make format repairs what can be repaired"
	@echo "  make speed   the speed benchmarks; make test-slow the slow tests; make clean removes the environment"
	@echo "  make bench-quick  HiLAP against three baselines on FunCat, a few minutes; needs ../shared/data or HILAP_DATA"

# One stamp for each thing installed: a changed pyproject.toml installs again, nothing else does.
$(VENV)/.core: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.core
	$(PIP) --editable '.[test]'
	@touch $@

$(VENV)/.dev: $(VENV)/.test
	$(PIP) --editable '.[dev]'
	@touch $@

demo: $(VENV)/.core
	$(BIN)/python examples/demo.py

test: $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m "not slow"  # two workers of one thread each, not two of two

test-slow: $(VENV)/.test
	$(BIN)/python -m pytest -m slow

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

speed: $(VENV)/.test
	$(BIN)/python benchmarks/speed.py all

bench-quick: $(VENV)/.core
	$(if $(HILAP_DATA),HILAP_DATA='$(HILAP_DATA)') $(BIN)/python benchmarks/quick.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
