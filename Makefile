# Two commands: `make run` makes a dataset, `make test` checks everything. Both set themselves up in .venv.
PYTHON ?= python3
BIN := .venv/bin
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1

.PHONY: run test test-tasks lint format bench extension chaos clean

run: .venv/installed
	$(BIN)/python runner/runner.py --task sort_trash --episodes 4 --out out/sort_trash

test: lint
	$(BIN)/python -m pytest -q -n 2 --dist loadfile --ignore tests/chaos
	$(BIN)/python -m pytest -q tests/chaos

# Every task for real, two good first attempts of four layouts each: some minutes.
test-tasks: .venv/installed-dev
	$(BIN)/python -m pytest -q -n 2 tests/tasks/every_task.py

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

format: .venv/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/installed-dev
	$(BIN)/python tests/benchmarks/sort_trash.py

# A thousand injected faults, in about twenty minutes on two free cores; docs/reliability.md tells of the last one.
chaos: .venv/installed-dev
	$(BIN)/python tests/chaos/run.py --json out/chaos.json

extension:
	$(PYTHON) exts/nimbus.datagen/pack.py

clean:
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info[:2] <= (3, 12) else "Nimbus needs Python 3.11 or 3.12, this is " + sys.version.split()[0] + "; write: make $(MAKECMDGOALS) PYTHON=python3.12")'
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	@touch $@

.venv/installed-dev: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@ .venv/installed
