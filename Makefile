# Two targets do everything: `make demo` and `make test`. Both make the environment first.

PYTHON ?= python3.11
UV_VERSION := 0.13.9
BIN := .venv/bin
READY := .venv/ready

.PHONY: help demo test lint types pytest fuzz fuzz-correlated bench-correlation lock clean

help:
	@echo "make demo   environment, data, and the main job through Airflow, beside plain Spark"
	@echo "make test   environment, then lint, types and tests"
	@echo "make fuzz   N random queries, pruned against plain"
	@echo "make fuzz-correlated    N random correlated queries, rewritten against plain"
	@echo "make bench-correlation  TPC-H's correlated queries, rewritten beside plain"
	@echo "make lock   resolve the dependencies anew"
	@echo "make clean  remove the environment and the demo's data"

demo: $(READY)
	@$(BIN)/python benchmarks/tpcds_demo.py

test: lint types pytest

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

pytest: $(READY)
	$(BIN)/pytest

# Random queries, pruned against plain: make fuzz N=5000 SEED=7
N ?= 1000
SEED ?= 1
fuzz: $(READY)
	FUZZ_QUERIES=$(N) FUZZ_SEED=$(SEED) $(BIN)/pytest -q -s tests/fuzz/test_fuzz.py

fuzz-correlated: $(READY)
	FUZZ_QUERIES=$(N) FUZZ_SEED=$(SEED) $(BIN)/pytest -q -s tests/fuzz/test_correlated.py

# Every query in four sessions: adaptive execution on and off, broadcast joins on and off.
SCALE ?= 0.5
REPEAT ?= 5
bench-correlation: $(READY)
	@$(BIN)/python benchmarks/correlation.py --scale $(SCALE) --repeat $(REPEAT)

# uv installs exactly what requirements.lock says, checked by hash.
$(READY): requirements.lock pyproject.toml
	@echo "==> making the environment in .venv"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

lock: $(READY)
	$(BIN)/uv pip compile pyproject.toml --all-extras --group dev --python-version 3.11 \
		--universal --generate-hashes --no-header --quiet --upgrade -o requirements.lock

clean:
	rm -rf .venv .demo
