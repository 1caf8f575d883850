# Every target sets up what it needs in .venv first; nothing else has to be run by hand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CORE := $(VENV)/.core
ENGINES := .venv-engines

# Compiled modules are kept, whatever the machine is set to: each process of a test imports hundreds.
unexport PYTHONDONTWRITEBYTECODE

# What make check leaves to make test: see the markers in pyproject.toml.
LEFT_OUT := slow or browser or compile or hostile or install or long or ray or triton

.PHONY: setup demo lab arena docs check lint test test-engines format bench bench-install train table clean

setup: $(STAMP)

# Modules are compiled when they are first imported: compiling all of them takes two minutes more.
$(STAMP): pyproject.toml constraints.txt hatch_build.py $(wildcard src/unmask/kernels/*.cpp src/unmask/kernels/*.h)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable ".[dev]"
	touch $(STAMP) $(CORE)

# The package and what the demo draws with, nothing else.
$(CORE): pyproject.toml constraints.txt hatch_build.py $(wildcard src/unmask/kernels/*.cpp src/unmask/kernels/*.h)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[plot]"
	touch $(CORE)

demo: $(CORE)
	$(BIN)/unmask demo --output build/demo

lab: setup
	$(BIN)/unmask sweep embedded --workers 2 --store build/lab.sqlite
	$(BIN)/unmask report build/lab.sqlite --output build/lab-report

arena: setup  # every rule along its knob on the embedded model; docs/arena.md is made from it
	$(BIN)/unmask arena --store build/arena.sqlite --output build/arena
	$(BIN)/python tools/arena_page.py build/arena docs

docs: $(CORE)  # the site, in build/site; a dead link is an error
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[docs]"
	$(BIN)/python -m mkdocs build --strict --quiet

# Format, lint, types and the fast tests of everything: before every commit.
check: lint
	$(BIN)/pytest -n 2 --dist worksteal -m "not ($(LEFT_OUT))"

# All of it: what CI runs.
test: lint
	$(BIN)/pytest -n 2 --dist worksteal

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# The real SGLang, newest and oldest, in an environment of its own: twenty minutes on two busy cores.
test-engines: $(ENGINES)/.installed
	$(ENGINES)/bin/python -m pytest tests/integrations/sglang -W default
	PYTHONPATH=$(ENGINES)/older $(ENGINES)/bin/python -m pytest tests/integrations/sglang/test_algorithm.py -W default

$(ENGINES)/.installed: pyproject.toml constraints.txt tools/engines.sh tests/integrations/sglang/requirements.txt tests/integrations/sglang/engine_stand_ins.py
	tools/engines.sh $(PYTHON) $(ENGINES)

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup  # ORIGINALS=FOLDER also runs the original decoders, from clones in that folder
	$(BIN)/python -m bench.all $(if $(ORIGINALS),--originals $(ORIGINALS)) --json docs/benchmarks.json
	$(BIN)/python tools/pages.py

bench-install: setup  # downloads the core's dependencies into an environment of its own
	$(BIN)/python -m bench.install

train: setup
	$(BIN)/python -m train --output build/embedded

table: setup
	$(BIN)/python -m train.table --output docs/embedded.json
	$(BIN)/python tools/pages.py

clean:
	rm -rf $(VENV) $(ENGINES) .mypy_cache .pytest_cache .ruff_cache .hypothesis .schemathesis dist build
