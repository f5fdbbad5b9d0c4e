# `make run` makes a dataset; `make quick` checks a change, `make test` all that is fast, `make test-all` everything.
# All set themselves up in .venv.
PYTHON ?= python3
BIN := .venv/bin
# Processes of the tests: one more than the cores, for many tests wait for processes of their own.
WORKERS ?= 3
PYTEST := $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal
# Of `make fuzz`: how many inputs, and from which seed.
INPUTS ?= 5000
SEED ?= 0
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
# pip leaves bytecode to the first import; where Python may not write it, each process would compile its libraries again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: bytecode warm-cache docs docs-commands messages gallery short-gpu run quick test fast-tests all-tests test-all beside-chaos short-fuzz-then-gpu chaos-then-tests short-chaos short-cluster short-fuzz test-tasks test-long lint format bench paper gpu gpu-bundle extension wheel chaos fuzz test-cluster clean

run: .venv/installed
	$(BIN)/python runner/runner.py --task sort_trash --episodes 4 --out out/sort_trash

# Format, and check the files that a change touches and the tests nearest to them: about a minute.
quick: format
	$(BIN)/python tools/affected_tests.py

# The linters beside the tests: they have one thread, and a core to themselves would leave the other idle.
test: .venv/installed-dev
	$(MAKE) --jobs 2 --output-sync=line lint fast-tests

fast-tests: bytecode
	$(PYTEST) -m "not slow" tests

# With the slow tests: real physics, browsers, processes that are killed. The short chaos measures times, so that all that
# runs beside it has a lower priority. The tests begin when the chaos ends, so that pyright does not leave a core idle. With
# a priority of 10, or with the types of the tests, beside processes of tests, pyright would end a minute after them. `make
# test` checks the types of the tests as well.
test-all: bytecode
	$(MAKE) --jobs 3 --output-sync chaos-then-tests beside-chaos
	$(MAKE) short-cluster

beside-chaos: .venv/installed-dev
	nice -n 7 $(MAKE) lint short-fuzz-then-gpu TYPED="exts/nimbus.datagen tools benchmarks"

short-fuzz-then-gpu: warm-cache
	$(MAKE) short-fuzz
	$(MAKE) short-gpu

chaos-then-tests: .venv/installed-dev
	$(MAKE) short-chaos
	$(MAKE) warm-cache
	$(MAKE) --output-sync=none all-tests

all-tests: .venv/installed-dev
	$(PYTEST) -m "not long" --ignore tests/chaos tests

# Once for the hundreds of processes that tests start, which compile all modules again where Python may not write bytecode.
bytecode: .venv/installed-dev
	@$(BIN)/python -m compileall -q -j 2 exts/nimbus.datagen runner skills tools tests/support

# Kernels that all tests use; with an empty cache, each process of the tests would compile them by itself.
warm-cache: .venv/installed-dev
	@$(BIN)/python -m tools.warm_cache

# Tests of 25 CPU-seconds and more, and those whose subject another test has in part; `make test-all` leaves them out.
test-long: .venv/installed-dev
	$(PYTEST) -m long --ignore tests/chaos tests
	$(BIN)/python -m pytest -q -m long tests/chaos

short-chaos: .venv/installed-dev
	$(BIN)/python -m pytest -q -m "not long" tests/chaos

# Every task for real, two good first attempts of four layouts each: some minutes.
test-tasks: .venv/installed-dev
	$(PYTEST) tests/tasks/every_task.py

# TYPED names the folders whose types are checked; by default, those in pyproject.toml.
TYPED ?=
lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m tools.lint_rules
	NODE_OPTIONS=--max-semi-space-size=64 $(BIN)/pyright --pythonpath $(BIN)/python $(TYPED)

# All messages that users see, with file and line, for a reader who edits them; docs/glossary.md has the terms.
messages: .venv/installed-dev
	$(BIN)/python -m tools.messages

format: .venv/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/installed-dev
	$(BIN)/python benchmarks/sort_trash.py

# Four pipelines, each coupled, fused and decoupled: docs/performance.md.
paper: .venv/installed-dev
	$(BIN)/python -m benchmarks.paper --write

# The renderer and physics on a GPU, or a small form of it with DEVICE=cpu; docs/gpu.md has what ran where.
DEVICE ?= cuda
gpu: .venv/installed-dev
	$(BIN)/python -m benchmarks.gpu --device $(DEVICE) --json out/gpu.json

short-gpu: .venv/installed-dev
	$(BIN)/python -m benchmarks.gpu --device cpu --seconds 0 --json out/gpu.json

# The same for a machine with Python 3.12 and no network: files to carry there, in build/gpu-bundle. CUROBO=DIR names a
# checkout of cuRobo V2 to pack.
gpu-bundle: .venv/installed-dev
	$(BIN)/python -m benchmarks.gpu.bundle $(if $(CUROBO),--curobo $(CUROBO))

# Damaged and hostile inputs of every sort: each is read, or refused in one line. On two cores
# with other work (load 10), 2,000 took 24 minutes, so that 5,000 take about an hour there.
fuzz: .venv/installed-dev
	$(BIN)/python -m tools.fuzz.run --inputs $(INPUTS) --seed $(SEED)

short-fuzz: .venv/installed-dev
	$(BIN)/python -m tools.fuzz.run --inputs 100 --seconds 90 --seed $(SEED)

# Real raylets, and Swift with s3api as the store: each in an environment of its own below build/, made on first use
# (some minutes), started and ended by the tests. About ten minutes on two free cores.
test-cluster: build/cluster-env/installed
	build/cluster-env/bin/python -m pytest -q -p no:cacheprovider tests/runner/cluster/on_ray
	$(BIN)/python benchmarks/store_kills.py --kills 10 --episodes 60

# Two minutes of it, with what `make test-cluster` installed: a bare machine has neither Ray nor Swift, and there the
# tests with sockets and with moto, which are part of all-tests, have to do.
short-cluster: .venv/installed-dev
	@if [ -e build/cluster-env/installed ]; then build/cluster-env/bin/python -m pytest -q -p no:cacheprovider \
		tests/runner/cluster/on_ray -k one_process; else echo "no Ray here: make test-cluster installs it"; fi
	@if [ -e build/swift-env/bin/swift-proxy-server ]; then $(BIN)/python benchmarks/store_kills.py --kills 3 \
		--episodes 20; else echo "no Swift here: make test-cluster installs it"; fi

# It uses the packages of .venv, and adds Ray.
build/cluster-env/installed: .venv/installed-dev
	$(BIN)/python -m venv build/cluster-env
	$(BIN)/python -c "import sysconfig; print('import site; site.addsitedir(%r)' % sysconfig.get_paths()['purelib'])" \
		> $$(build/cluster-env/bin/python -c "import sysconfig; print(sysconfig.get_paths()['purelib'])")/nimbus.pth
	build/cluster-env/bin/python -m pip install --quiet --disable-pip-version-check 'ray[default]==2.60.0'
	@touch $@

# A thousand injected faults, in about twenty minutes on two free cores; docs/reliability.md tells of the last one.
chaos: .venv/installed-dev
	$(BIN)/python tools/chaos/run.py --json out/chaos.json

# The documentation site in build/site; a broken link ends it. `make gallery` adds videos of all tasks, in about ten CPU-minutes.
docs: .venv/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "open build/site/index.html; the search needs a server: make docs-serve"

# Serve the built site on this machine, with its search, which browsers block in local files.
.PHONY: docs-serve
docs-serve: docs
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/site 8000

# Run the shell blocks of the pages, except those marked as not run, with few episodes. PAGES=docs/export.md selects pages.
docs-commands: .venv/installed-dev
	$(BIN)/python -m tools.docs_site.run_commands $(PAGES)

gallery: .venv/installed
	$(BIN)/python -m tools.docs_site.gallery

# dist/nimbus_datagen-<version>-py3-none-any.whl, for machines without a checkout.
wheel: .venv/installed
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

extension:
	$(PYTHON) exts/nimbus.datagen/pack.py

clean:
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info[:2] <= (3, 12) else "Nimbus needs Python 3.11 or 3.12, this is " + sys.version.split()[0] + "; write: make $(MAKECMDGOALS) PYTHON=python3.12")'
	$(PYTHON) -m venv .venv

# Python compiles what is imported; pip would compile everything, in 27 s on one core.
.venv/installed: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt --editable .
	@touch $@

.venv/installed-dev: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt --editable '.[dev]'
	@touch $@ .venv/installed

.venv/installed-docs: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt --editable '.[docs]'
	@touch $@ .venv/installed
