PYTHON ?= python3
BIN := .venv/bin
AXE := 4.14.0

# Compiled loops are kept where both workers of a test run, and the next run, find them.
export NUMBA_CACHE_DIR := $(CURDIR)/.venv/numba

# Bytecode too: some machines forbid it, and every process would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test check lint types loops bytecode test-portable docs gate paper paper-quick bench fuzz format clean

demo: .venv/demo
	$(BIN)/jointpmf demo

# Everything: about 6 minutes on two cores, and 1 or 2 for the environment and what is compiled.
test: .venv/test .venv/npm/node_modules/axe-core
	@$(MAKE) --no-print-directory --jobs 2 lint types loops bytecode
	$(PYTEST)

# For the daily loop, under 90 seconds: what is not marked as slow in tests/conftest.py.
check: .venv/test
	@$(MAKE) --no-print-directory --jobs 2 lint types loops
	$(PYTEST) -m "not slow"

PYTEST := $(BIN)/pytest --numprocesses 2 --dist worksteal

lint: .venv/test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: .venv/test
	$(BIN)/mypy

# The inner loops that most tests use are compiled once, not by each worker.
loops: .venv/test
	$(BIN)/python tests/support/loops.py

# So is the bytecode of the tests and of all that they import; what cannot be imported is shown.
bytecode: .venv/test
	@$(BIN)/pytest --collect-only --quiet --quiet > .venv/collected || (cat .venv/collected; exit 1)

# As if on other processors: BLAS and the compiled loops with other instructions, one after the
# other. All three run to their ends; tests of the browser and of Spark compute nothing of their own.
PROCESSORS := OPENBLAS_CORETYPE=Haswell OPENBLAS_CORETYPE=Prescott NUMBA_CPU_NAME=generic
test-portable: .venv/test
	@failed=""; for processor in $(PROCESSORS); do \
		echo "== $$processor"; \
		export NUMBA_CACHE_DIR="$(CURDIR)/.venv/numba-$$processor"; \
		env $$processor $(BIN)/python tests/support/machine.py && env $$processor $(PYTEST) \
			--ignore-glob 'tests/show/test_explorer*.py' --ignore tests/rows/test_distributed.py \
			|| failed="$$failed $$processor"; \
	done; \
	if test -n "$$failed"; then echo "Failed:$$failed"; exit 1; fi

docs: .venv/docs
	$(BIN)/python -m sphinx --fail-on-warning --quiet --conf-dir docs --doctree-dir build/docs . site

paper: .venv/paper
	$(BIN)/python -m paper.synthetic
	$(BIN)/python -m paper.ratings
	$(BIN)/python -m paper.larger

paper-quick: .venv/paper
	$(BIN)/python -m paper.ratings --quick

# Quality and time beside a stored baseline, about 25 minutes on two cores.
gate: .venv/test
	$(BIN)/python -m benchmarks.gate

bench: .venv/bench .venv-peers/done
	$(BIN)/python -m benchmarks.compiled
	$(BIN)/python -m benchmarks.population
	$(BIN)/python -m benchmarks.exact
	JOINTPMF_PEERS=.venv-peers/bin/python $(BIN)/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.latent_class
	JOINTPMF_PEERS=.venv-peers/bin/python $(BIN)/python -m benchmarks.standard_errors
	$(BIN)/python -m benchmarks.starts
	$(BIN)/python -m benchmarks.planted
	$(BIN)/python -m benchmarks.rank_tests
	$(BIN)/python -m benchmarks.uncertainty
	$(BIN)/python -m benchmarks.density
	$(BIN)/python -m benchmarks.estimation
	JOINTPMF_PEERS=.venv-peers/bin/python $(BIN)/python -m benchmarks.tables
	$(BIN)/python -m benchmarks.imputation
	$(BIN)/python -m benchmarks.imputation_draws
	$(BIN)/python -m benchmarks.classification
	$(BIN)/python -m benchmarks.streaming
	$(BIN)/python -m benchmarks.distributed

# Odd files, tables and commands, stops and kills for some minutes; a finding ends it with 1 and is
# printed with the seed that does it again. A small fixed part of it is in `make test`.
MINUTES := 10
fuzz: .venv/test
	$(BIN)/python tests/fuzz/attack.py --minutes $(MINUTES)

format: .venv/test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Each extra is installed once, and again when the project's requirements change. Bytecode is made
# for what is imported, when it is: of all files it would take longer than the installation.
.venv/%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable ".[$*]"
	touch $@

# What finds faults of the explorer's page for people who do not see or point.
.venv/npm/node_modules/axe-core: Makefile | .venv/test
	npm install --silent --no-fund --no-audit --prefix .venv/npm axe-core@$(AXE) && touch $@ \
		|| echo "axe-core could not be installed; the tests that need it are skipped."

# What we are compared with has an environment of its own, and is never a dependency.
.venv-peers/done: Makefile
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check \
		stepmix ipfn humanleague mbi
	touch $@

clean:
	rm -rf .venv .venv-peers site
