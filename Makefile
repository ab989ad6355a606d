# Two commands do everything on a fresh machine with python3.11, pip and make:
#   make demo    sets up, then runs the main job on the bundled sample
#   make test    sets up, then runs the tests
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   ?= .venv
BIN    := $(VENV)/bin
DATA   := $(or $(HILAP_DATA),../shared/data)
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test test-slow lint format speed bench bench-data bench-quick clean help

help:
	@sed -n 's/^# \{0,1\}//p; /^PYTHON/q' Makefile
	@echo "  make lint    ruff, mypy and the import contract; make format repairs what can be repaired"
	@echo "  make speed   the speed benchmarks; make test-slow the slow tests; make clean removes the environment"
	@echo "  make bench-quick  HiLAP against three baselines on FunCat, a few minutes; needs ../shared/data or HILAP_DATA"
	@echo "  make bench   every result that is not there yet, then figures and docs/results.md; needs the same data"
	@echo "  make bench OUT=FOLDER  all of it anew, in that folder: some nine hours; after Ctrl-C it goes on where it was"

# One stamp for each thing installed: a changed pyproject.toml installs again, nothing else does.
$(VENV)/.core: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	@touch $@

$(VENV)/.bench: $(VENV)/.core
	$(PIP) --editable '.[bench]'
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

bench-data:
	@for part in funcat go trove medline arxiv vectors; do test -d "$(DATA)/$$part" || { \
	  echo "$(DATA)/$$part: this part of the data is not there; put the data folder at ../shared/data beside" \
	    "the project, or name it: make bench HILAP_DATA=FOLDER" >&2; exit 2; }; done

# Trained models are kept, so that methods share what they train. With OUT nothing that is committed is written.
bench: bench-data $(VENV)/.bench
	$(if $(HILAP_DATA),HILAP_DATA='$(HILAP_DATA)') $(BIN)/python benchmarks/suite.py --test \
	  --models '$(or $(OUT),build)/models' $(if $(OUT),--out '$(OUT)')
	$(BIN)/python benchmarks/figures.py $(if $(OUT),--results '$(OUT)' --out '$(OUT)/figures')
	$(BIN)/python benchmarks/table.py $(if $(OUT),--results '$(OUT)' --out '$(OUT)/results.md')

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
