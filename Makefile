PYTHON ?= python3
BIN := .venv/bin
AXE := 4.14.0

.PHONY: demo test docs paper paper-quick bench format clean

demo: .venv/demo
	$(BIN)/jointpmf demo

test: .venv/test .venv/npm/node_modules/axe-core
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest --numprocesses 2 --dist loadfile

docs: .venv/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

paper: .venv/paper
	$(BIN)/python -m paper.synthetic
	$(BIN)/python -m paper.ratings
	$(BIN)/python -m paper.larger

paper-quick: .venv/paper
	$(BIN)/python -m paper.ratings --quick

bench: .venv/bench .venv-peers/done
	$(BIN)/python -m benchmarks.compiled
	$(BIN)/python -m benchmarks.sweep
	$(BIN)/python -m benchmarks.counting
	$(BIN)/python -m benchmarks.sampling
	$(BIN)/python -m benchmarks.exact
	JOINTPMF_PEERS=.venv-peers/bin/python $(BIN)/python -m benchmarks.likelihood
	$(BIN)/python -m benchmarks.latent_class
	$(BIN)/python -m benchmarks.density
	$(BIN)/python -m benchmarks.estimation
	$(BIN)/python -m benchmarks.conditional
	$(BIN)/python -m benchmarks.imputation
	$(BIN)/python -m benchmarks.classification
	$(BIN)/python -m benchmarks.streaming
	$(BIN)/python -m benchmarks.plan
	$(BIN)/python -m benchmarks.scale
	$(BIN)/python -m benchmarks.distributed

format: .venv/test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Each extra is installed once, and again when the project's requirements change.
.venv/%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	touch $@

# What finds faults of the explorer's page for people who do not see or point.
.venv/npm/node_modules/axe-core: Makefile | .venv/test
	npm install --silent --no-fund --no-audit --prefix .venv/npm axe-core@$(AXE) && touch $@ \
		|| echo "axe-core could not be installed; the tests that need it are skipped."

# What we are compared with has an environment of its own, and is never a dependency.
.venv-peers/done:
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check stepmix
	touch $@

clean:
	rm -rf .venv .venv-peers site
