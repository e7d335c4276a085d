# The main targets are `make demo` and `make test`. Both create the environment first.

PYTHON ?= python3.11
UV_VERSION := 0.13.9
BIN := .venv/bin
# npm and node come with the environment.
export PATH := $(CURDIR)/$(BIN):$(PATH)
READY := .venv/ready
PAGES := airflow_hive_opt/pages/static/pages.js
JDBC_DRIVER := .venv/share/java/postgresql.jar
CLASSES := .venv/share/java/spark.jsa
BROWSER := .venv/share/chromium
KERBEROS := .venv/share/kerberos

.PHONY: help demo demo-pages test pages test-slow test-e2e test-faults test-kills test-mutants test-matrix test-s3 test-dbt test-kerberos kerberos fuzz-writes fuzz-connect lint types pytest services browser docs fuzz bench growth tpcds tpch key-predicate overhead fuzz-correlated fuzz-worker fuzz-engines bench-correlation bench-backfill bench-planning bench-worker bench-key-sets bench-key-index bench-s3 bench-engines lock lock-jars clean

help:
	@echo "make demo   environment, data, and an example DAG in Airflow, compared with plain Spark"
	@echo "make demo-pages  the pages of the demo's runs, until Ctrl-C or kill"
	@echo "make test   environment, then lint, types and tests"
	@echo "make check  the part of them that starts no Spark and no server, in a minute"
	@echo "make test-slow  random statements, applications of their own, more cases of the tests"
	@echo "make test-e2e  tests with a Spark cluster, all services of Airflow, and a browser"
	@echo "make test-faults   a failing metastore, killed runs, full disks; FAULTS=1 fails every metastore call in turn"
	@echo "make test-kills    kills of the parts of waiting tasks: ROUNDS=20 VICTIMS=driver PHASES=all"
	@echo "make test-mutants  wrong edits of the soundness rules: the tests must detect each one"
	@echo "make test-matrix   each supported pair of Airflow and Spark; PAIRS=oldest for one"
	@echo "make fuzz-writes   N random statements that write and N random sessions, compared with plain Spark"
	@echo "make fuzz-connect   N random queries and N random statements that write, over Spark Connect"
	@echo "make fuzz   N random queries, pruned and plain: the rows must be equal"
	@echo "make bench  all benchmarks; takes hours; results in benchmarks/results"
	@echo "make fuzz-correlated    N random correlated queries, rewritten and plain: the rows must be equal"
	@echo "make fuzz-worker        N random keys, partition names and joins of the worker's local task, compared with Spark"
	@echo "make fuzz-engines       N random joins in other engines, restricted to a local task's list"
	@echo "make bench-correlation  TPC-H's correlated queries, rewritten and plain"
	@echo "make bench-backfill  a backfill of 30 days, with a Spark for each task and with a shared one"
	@echo "make bench-planning  how long the planning of long statements takes"
	@echo "make bench-s3  a join of tables on S3: time and requests; needs Maven, and is not in make bench"
	@echo "make bench-engines  joins of other engines, restricted to a local task's list and not"
	@echo "make bench-worker  what the local task in the worker answers and costs, beside Spark's"
	@echo "make bench-key-sets  five statements over the same days, with a key set and without"
	@echo "make bench-key-index  size, build, update and lookup of a key index of 10 million keys"
	@echo "make test-lakes     tests with Iceberg, Delta and Hudi tables; LAKES=delta-3.5 for one of"
	@echo "                    $(LAKES)"
	@echo "make test-metastores  tests with metastores of Hive 3.1 and 4.0; METASTORES=hive-4.0 for one"
	@echo "make test-kerberos  metastores with Kerberos, TLS and passwords, with a KDC of Debian's"
	@echo "make test-s3        tables on S3 through S3A and in the worker, in an environment of its own"
	@echo "make test-dbt       dbt's incremental models with the dbt package, on Delta and Iceberg tables"
	@echo "make test-thrift-server  Airflow's SQL operator on Spark's Thrift server"
	@echo "make test-yarn      applications on a YARN cluster on this machine, and kills of their parts"
	@echo "make test-yarn-faults  kills of parts of applications on YARN; YARN_FAULTS=1 for every case"
	@echo "make fuzz-delta-3.5   N random queries, and N random MERGE, UPDATE and DELETE, on such tables"
	@echo "make fuzz-hops   N random joins of large tables with key indexes, compared with plain Spark"
	@echo "make fuzz-key-index   N random statements by a column with a key index, compared with plain Spark"
	@echo "make fuzz-key-index-delta   N random queries by such a column of a Delta table, likewise"
	@echo "make bench-delta-3.5  a join and a MERGE that need few days of such a table"
	@echo "make bench-published-merge  a MERGE that a user of Iceberg has reported, in small"
	@echo "make lock   update the versions in requirements.lock"
	@echo "make lock-jars  update the checksums in tests/jars.lock"
	@echo "make pages  the script of the pages in Airflow, from ui/"
	@echo "make docs   the documentation as a site, in .docs-site/docs/index.html"
	@echo "make clean  remove the environment and the demo's data"

demo: $(READY)
	@$(MAKE) --silent pages || echo "==> no script of the pages: npm's packages could not be installed"
	@$(BIN)/python -m benchmarks.tpcds_demo

# The API server of the demo's Airflow, for the pages of its runs.
demo-pages: $(READY) pages
	@$(BIN)/python -m benchmarks.demo_pages

# The tests use both processors, so the rest runs before them and not beside them.
test: $(READY)
	@$(MAKE) --jobs 2 --output-sync lint types services
	@$(MAKE) pytest

# Lint, types, and the tests that start no Spark and no server.
check: $(READY) pages
	@$(MAKE) --silent --jobs 2 check-source check-tests

.PHONY: check check-source check-tests
check-source: $(READY)
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy
check-tests: $(READY)
	@$(BIN)/pytest -q -n $(WORKERS) -m "not server and not e2e" tests/statement tests/pruning \
		tests/rewriting tests/rules tests/hive tests/explain tests/documents tests/report \
		tests/test_layers.py airflow_hive_opt

# The site of README and docs. A broken link, anchor or name is an error. Sphinx rebuilds changed pages
# only.
docs: $(READY)
	$(BIN)/sphinx-build --quiet --jobs auto -c docs -b html -W --keep-going -n . .docs-site

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/hadolint docker/Dockerfile
	$(BIN)/yamllint --strict .
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec docker/compose.yaml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms \
		.github/ISSUE_TEMPLATE/bug_report.yml .github/ISSUE_TEMPLATE/feature_request.yml
	$(MAKE) --silent docs

types: $(READY) pages
	$(BIN)/mypy
	cd ui && npm run --silent check

# The script of the pages: built from ui/ with the versions of its lock file, and tested.
pages: $(PAGES)

$(PAGES): $(shell find ui -type f -not -path "*/node_modules/*" 2>/dev/null) | $(READY)
	@echo "==> building the pages"
	@cd ui && npm ci --silent --no-audit --no-fund && npm test --silent && npm run --silent build

# Each worker process has its own Spark. All tests of a file run in the same process,
# and all files that need the same slow server (tests/services/started_once.py).
WORKERS ?= 2
PARALLEL := -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# These have environments of their own.
ELSEWHERE := --ignore tests/lakes --ignore tests/s3 --ignore tests/yarn --ignore tests/secured --ignore tests/thrift_server --ignore tests/dbt_package
pytest: $(READY) services pages
	$(BIN)/pytest $(PARALLEL) $(ELSEWHERE)

# The tests that take seconds, such as random statements and applications of their own, and more
# cases of tests that are in `make test` too.
test-slow: $(READY) services pages
	$(BIN)/pytest $(PARALLEL) $(ELSEWHERE) -m slow tests

# Starts a Spark standalone cluster, a Spark Connect server and all services of Airflow, on loopback.
test-e2e: $(READY) services browser pages
	$(BIN)/pytest -m e2e tests/e2e tests/spark/test_connect.py tests/fuzz/test_fuzz.py \
		tests/fuzz/test_writing.py

# Makes every FAULTS-th metastore call of each statement that writes fail, in five ways.
FAULTS ?= 5
test-faults: $(READY) services
	FAULTS=$(FAULTS) $(BIN)/pytest -s -m faults tests/faults $(ARGUMENTS)

# Ends parts of tasks that wait: ROUNDS, KINDS, VICTIMS, SIGNALS, VERBS, PHASES and SEED choose, or
# CASES, see tests/kills/matrix.py. AT_ONCE tasks run at once. RESULTS is a file to which the rounds
# are added.
test-kills: $(READY) services
	SEED=$(SEED) $(BIN)/pytest -s -v -m faults tests/kills $(ARGUMENTS)

test-mutants: $(READY)
	$(BIN)/pytest -s -m mutants tests/mutants tests/key_index

# Tests other versions of Airflow, Spark and Python: make test-matrix PAIRS="oldest newest"
test-matrix: $(READY) services
	$(BIN)/python -m tests.versions.matrix $(PAIRS)

# The Thrift client and the worker's local task, beside Spark's, on other versions of the metastore.
METASTORES ?= hive-3.1 hive-4.0
test-metastores: $(READY) services
	@for version in $(METASTORES); do \
		echo "==> a metastore of $$version" && METASTORE_VERSION=$$version $(BIN)/pytest \
			tests/metastores tests/worker || exit 1; done

# Airflow's SQL operator on Spark's Thrift server, and example DAGs that need other providers. These lie
# beside the environment: with the Hive provider, connections to metastores are that provider's.
RUNNERS := .venv/share/runners
test-thrift-server: $(RUNNERS)/ready services
	PYTHONPATH=$(RUNNERS) $(BIN)/pytest -m "slow or not slow" tests/thrift_server

$(RUNNERS)/ready: tests/thrift_server/requirements.lock | $(READY)
	@$(BIN)/uv pip install --quiet --no-config --target $(RUNNERS) --no-deps --require-hashes -r $<
	@touch $@

# A resource manager and a node manager, with the jars of tests/jars.lock.
test-yarn: $(READY) services
	$(BIN)/pytest -m "not faults" tests/yarn $(ARGUMENTS)

# Kills parts of applications at each phase; YARN_FAULTS=1 for every case, YARN_KINDS=all for every kind.
test-yarn-faults: $(READY) services
	$(BIN)/pytest -m faults tests/yarn $(ARGUMENTS)

.PHONY: test-metastores test-yarn test-yarn-faults test-thrift-server

# A table format on a line of Spark, with the jars of tests/jars.lock, in an environment for that line.
LAKES ?= iceberg-3.5 iceberg-4.0 iceberg-4.1 delta-3.5 delta-4.2 hudi-3.5
test-lakes: $(addprefix test-,$(LAKES))

# make test-delta-3.5, fuzz-delta-3.5 and bench-delta-3.5: the stem is a member of LAKES.
format = $(firstword $(subst -, ,$*))
python = .lakes/$(lastword $(subst -, ,$*))/bin/python
LAKE_TESTS := $(addprefix test-,$(LAKES)) $(addprefix fuzz-,$(LAKES)) $(addprefix bench-,$(LAKES))
.PHONY: test-lakes $(LAKE_TESTS)
.SECONDEXPANSION:
$(LAKE_TESTS): %: .lakes/$$(lastword $$(subst -, ,$$@))/ready

# CONNECT=1: over Spark Connect, which needs Spark 4, the tests that need no JVM of the session.
CONNECT ?=
over_connect_iceberg := reads changes snapshots fuzz
over_connect_delta := reads fuzz
$(addprefix test-,$(LAKES)): test-%:
	CONNECT=$(CONNECT) $(python) -m pytest $(if $(CONNECT), \
		$(over_connect_$(format):%=tests/lakes/$(format)/test_%.py), tests/lakes/$(format))

$(addprefix fuzz-,$(LAKES)): fuzz-%:
	FUZZ_QUERIES=$(N) FUZZ_WRITES=$(N) FUZZ_SEED=$(SEED) CONNECT=$(CONNECT) $(python) \
		-m pytest -q -s tests/lakes/$(format)/test_fuzz.py

# Random joins of large tables with key indexes, on a line of Spark: make fuzz-hops N=1000 SEED=7.
.PHONY: fuzz-hops
fuzz-hops: .lakes/$(KEY_INDEX_SPARK)/ready
	FUZZ_HOPS=$(N) FUZZ_SEED=$(SEED) .lakes/$(KEY_INDEX_SPARK)/bin/python \
		-m pytest -q -s tests/lakes/iceberg/test_narrowed_tables_fuzz.py

# Random statements by columns with a key index, on a line of Spark: make fuzz-key-index N=1000 SEED=7.
.PHONY: fuzz-key-index
KEY_INDEX_SPARK ?= 4.1
fuzz-key-index: .lakes/$(KEY_INDEX_SPARK)/ready
	FUZZ_KEY_INDEX=$(N) FUZZ_SEED=$(SEED) .lakes/$(KEY_INDEX_SPARK)/bin/python \
		-m pytest -q -s tests/lakes/iceberg/test_key_index_fuzz.py

$(addprefix bench-,$(LAKES)): bench-%:
	$(python) -m benchmarks.lakes $(format) $(ARGUMENTS)

# Random queries by columns of a Delta table with a key index: make fuzz-key-index-delta N=1000 SEED=7.
.PHONY: fuzz-key-index-delta
fuzz-key-index-delta: .lakes/4.2/ready
	FUZZ_KEY_INDEX=$(N) FUZZ_SEED=$(SEED) .lakes/4.2/bin/python \
		-m pytest -q -s tests/lakes/delta/test_key_index_fuzz.py

# A MERGE by order number, with a key index and without.
.PHONY: bench-key-index-merge
bench-key-index-merge: .lakes/$(KEY_INDEX_SPARK)/ready
	.lakes/$(KEY_INDEX_SPARK)/bin/python -m benchmarks.key_index_merge $(ARGUMENTS)

# TPC-DS queries that join two facts, with key indexes and without. The data and the queries' texts
# need packages of the main environment.
.PHONY: bench-key-index-queries
bench-key-index-queries: .lakes/$(KEY_INDEX_SPARK)/ready .bench/tpcds-1.0/queries.json
	.lakes/$(KEY_INDEX_SPARK)/bin/python -m benchmarks.key_index_queries .bench/tpcds-1.0 $(ARGUMENTS)
.bench/tpcds-1.0/queries.json: $(READY)
	$(BIN)/python -m benchmarks.suites tpcds .bench 1

# A join by order number with a Delta table, with a key index and without.
.PHONY: bench-key-index-join
bench-key-index-join: .lakes/4.2/ready
	.lakes/4.2/bin/python -m benchmarks.key_index_join $(ARGUMENTS)

# A MERGE that a user of Iceberg has reported.
.PHONY: bench-published-merge
bench-published-merge: .lakes/3.5/ready
	.lakes/3.5/bin/python -m benchmarks.published_merge $(ARGUMENTS)

# An environment of its own: what it is for, its folder and its lock files.
define environment
@echo "==> creating the environment for $(1) in $(2)"
@$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python $(2)
@$(BIN)/uv pip install --quiet --no-config --compile-bytecode --python $(2)/bin/python \
	--require-hashes $(addprefix -r ,$(3))
@$(BIN)/uv pip install --quiet --no-config --python $(2)/bin/python --no-deps -e .
@mkdir -p $(2)/share/java && cp $(JDBC_DRIVER) $(2)/share/java/
@touch $(2)/ready
endef

.lakes/%/ready: tests/lakes/requirements.lock tests/lakes/spark-%.lock pyproject.toml | services
	$(call environment,table formats on Spark $*,.lakes/$*,$(filter %.lock,$^))

# A metastore that has users prove who they are; METASTORE_VERSION=hive-4.0 for another version.
test-kerberos: kerberos services
	$(BIN)/pytest tests/secured

# A KDC and Kerberos' headers from Debian's packages, unpacked like Chromium, and gssapi, which a C
# compiler builds with them.
kerberos: $(KERBEROS)/ready

$(KERBEROS)/ready: tests/secured/requirements.lock | $(READY)
	@echo "==> fetching Kerberos" && rm -rf $(@D) && mkdir -p $(@D) && \
		folder=$$(mktemp -d) && cd $$folder && chmod 755 . && \
		wanted() { apt-get install -qq --simulate --no-install-recommends \
			krb5-kdc krb5-admin-server krb5-user libkrb5-dev \
			| sed -n 's/^Inst \([^ ]*\).*/\1/p'; } && \
		(apt-get download -qq $$(wanted) || \
			(apt-get update -qq && apt-get download -qq $$(wanted))) && \
		for package in *.deb; do dpkg-deb -x $$package $(CURDIR)/$(@D); done && rm -r $$folder
	@echo "==> building gssapi" && root=$(CURDIR)/$(@D) && \
		libraries=$$(dirname $$root/usr/lib/*/libgssapi_krb5.so) && \
		LD_LIBRARY_PATH=$$libraries GSSAPI_COMPILER_ARGS="-I$$root/usr/include -DHAS_GSSAPI_EXT_H" \
		GSSAPI_LINKER_ARGS="-L$$libraries -lgssapi_krb5 -Wl,-rpath,$$libraries" \
		$(BIN)/uv pip install --quiet --no-config --no-deps --no-cache --python $(BIN)/python \
		--require-hashes -r $<
	@touch $@

# Airflow's Amazon provider pins another boto3 than the other tests have.
test-s3: .s3/ready
	.s3/bin/python -m pytest tests/s3 $(ARGUMENTS)

.s3/ready: tests/s3/requirements.lock pyproject.toml | services
	$(call environment,S3,.s3,$<)

# dbt with Spark in its process, which needs no Airflow.
test-dbt: .dbt/ready
	.dbt/bin/python -m pytest tests/dbt_package $(ARGUMENTS)

.dbt/ready: tests/dbt_package/requirements.lock pyproject.toml | services
	$(call environment,dbt,.dbt,$<)

# The metastore of the tests needs PostgreSQL's Java driver, which no wheel contains. Debian's package
# is unpacked and not installed, so this needs no root permission.
services: $(READY) $(JDBC_DRIVER) $(CLASSES)

# The classes of Spark, which the tests' JVMs map instead of loading them.
$(CLASSES): requirements.lock | $(READY)
	@echo "==> writing the classes of Spark to $@"
	@$(BIN)/python -m tests.services.class_archive

$(JDBC_DRIVER):
	@if test -e /usr/share/java/postgresql.jar; then \
		mkdir -p $(@D) && cp -L /usr/share/java/postgresql.jar $@; \
	else \
		echo "==> fetching PostgreSQL's Java driver" && folder=$$(mktemp -d) && cd $$folder && chmod 755 . && \
		(apt-get download -qq libpostgresql-jdbc-java || \
			(apt-get update -qq && apt-get download -qq libpostgresql-jdbc-java)) && \
		dpkg-deb -x *.deb . && mkdir -p $(CURDIR)/$(@D) && \
		cp usr/share/java/postgresql.jar $(CURDIR)/$@ && rm -r $$folder; \
	fi

# The browser tests need Chromium. If the machine has none, Debian's package and its missing libraries
# are unpacked in the same way. If this fails, the browser tests are skipped and say why.
browser: $(BROWSER)

$(BROWSER): | $(READY)
	@if command -v chromium-headless-shell || command -v chromium; then \
		mkdir -p $@; \
	else \
		echo "==> fetching Chromium" && folder=$$(mktemp -d) && cd $$folder && chmod 755 . && \
		wanted() { apt-get install -qq --simulate --no-install-recommends chromium-headless-shell \
			| sed -n 's/^Inst \([^ ]*\).*/\1/p'; } && \
		(test -n "$$(wanted)" || apt-get update -qq) && \
		(apt-get download -qq $$(wanted) || \
			(apt-get update -qq && apt-get download -qq $$(wanted))) && \
		mkdir unpacked && for package in *.deb; do dpkg-deb -x $$package unpacked; done && \
		mkdir -p $(CURDIR)/$(@D) && mv unpacked $(CURDIR)/$@ && rm -r $$folder || \
		echo "==> there is no Chromium: the tests in a browser will be skipped"; \
	fi

# Compares random queries, pruned and plain: make fuzz N=5000 SEED=7
N ?= 1000
SEED ?= 1
fuzz: $(READY)
	FUZZ_QUERIES=$(N) FUZZ_STATEMENTS=$(N) FUZZ_GLUE=$(N) FUZZ_SEED=$(SEED) $(BIN)/pytest -q -s -m "not e2e" \
		tests/fuzz/test_fuzz.py tests/fuzz/test_planner.py tests/fuzz/test_glue.py

fuzz-writes: $(READY)
	FUZZ_WRITES=$(N) FUZZ_SESSIONS=$(N) FUZZ_BETWEEN=$(N) FUZZ_DOCUMENTS=20000 FUZZ_SEED=$(SEED) \
		$(BIN)/pytest -q -s -m "not e2e" tests/fuzz/test_writing.py tests/fuzz/test_sessions.py \
		tests/fuzz/test_handed_over.py tests/fuzz/test_documents.py

fuzz-connect: $(READY) services
	FUZZ_CONNECT=$(N) FUZZ_SEED=$(SEED) $(BIN)/pytest -q -s -m e2e -k spark_connect \
		tests/fuzz/test_fuzz.py tests/fuzz/test_writing.py

fuzz-correlated: $(READY)
	FUZZ_QUERIES=$(N) FUZZ_SEED=$(SEED) $(BIN)/pytest -q -s -m "not e2e" tests/fuzz/test_correlated.py

fuzz-worker: services
	FUZZ_QUERIES=$(N) FUZZ_SEED=$(SEED) $(BIN)/pytest -q -s -m "not e2e" \
		tests/worker/test_fuzz.py tests/worker/test_star_joins.py

fuzz-engines: $(READY)
	FUZZ_ENGINES=$(N) FUZZ_SEED=$(SEED) $(BIN)/pytest -q -s tests/engines/test_fuzz.py

# Runs every query in four sessions: adaptive execution on and off, broadcast joins on and off.
SCALE ?= 0.5
REPEAT ?= 3
bench-correlation: $(READY)
	$(BIN)/python -m benchmarks.correlation --scale $(SCALE) --repeats $(REPEAT) $(ARGUMENTS)

# Each benchmark accepts arguments: make growth ARGUMENTS="--partitions 1000 --repeats 1"
bench: growth tpcds tpch key-predicate overhead bench-correlation bench-planning bench-worker bench-key-sets bench-key-index bench-engines

growth: services
	$(BIN)/python -m benchmarks.growth $(ARGUMENTS)

key-predicate: $(READY)
	$(BIN)/python -m benchmarks.key_predicate $(ARGUMENTS)

bench-planning: $(READY)
	$(BIN)/python -m benchmarks.planning $(ARGUMENTS)

bench-worker: services
	$(BIN)/python -m benchmarks.worker $(ARGUMENTS)

bench-key-sets: $(READY)
	$(BIN)/python -m benchmarks.key_sets $(ARGUMENTS)

bench-key-index: $(READY)
	$(BIN)/python -m benchmarks.key_index $(ARGUMENTS)

bench-engines: $(READY)
	$(BIN)/python -m benchmarks.engines $(ARGUMENTS)

bench-s3: services
	$(BIN)/python -m benchmarks.s3 $(ARGUMENTS)

overhead: services
	$(BIN)/python -m benchmarks.overhead $(ARGUMENTS)

bench-backfill: services
	$(BIN)/python -m benchmarks.backfill $(ARGUMENTS)

tpcds tpch: services
	$(BIN)/python -m benchmarks.tpc $@ $(ARGUMENTS)

# uv installs the versions in requirements.lock and checks their hashes.
$(READY): requirements.lock pyproject.toml
	@echo "==> creating the environment in .venv"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

lock: $(READY)
	for name in requirements spark-3.5 spark-4.0 spark-4.1 spark-4.2; do \
		$(BIN)/uv pip compile tests/lakes/$$name.in --python-version 3.11 --no-config --universal \
			--generate-hashes --no-header --quiet --upgrade -o tests/lakes/$$name.lock; done
	$(BIN)/uv pip compile tests/dbt_package/requirements.in --python-version 3.11 --no-config \
		--universal --generate-hashes --no-header --quiet --upgrade \
		-o tests/dbt_package/requirements.lock
	$(BIN)/uv pip compile tests/s3/requirements.in --python-version 3.11 --no-config --universal \
		--generate-hashes --no-header --quiet --upgrade -o tests/s3/requirements.lock
	$(BIN)/uv pip compile tests/secured/requirements.in --python-version 3.11 --no-config --universal \
		--generate-hashes --no-header --quiet --upgrade -o tests/secured/requirements.lock
	$(BIN)/uv pip compile tests/thrift_server/requirements.in --no-deps --python-version 3.11 --no-config \
		--universal --generate-hashes --no-header --quiet --upgrade -o tests/thrift_server/requirements.lock
	$(BIN)/uv pip compile pyproject.toml --all-extras --group dev --python-version 3.11 \
		--no-emit-package gssapi \
		--universal --generate-hashes --no-header --quiet --upgrade -o requirements.lock

# The checksums of the jars that tests need beside the wheels.
lock-jars: $(READY)
	$(BIN)/python -m tests.services.jars --lock

clean:
	rm -rf .venv .demo
