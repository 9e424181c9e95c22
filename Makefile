# Works in a fresh clone with git, make and Python 3.11 or newer (with its venv module); everything else is made here.
# `make test` is what CI runs. The virtual environments are keyed on the lock: they are made again when it changes.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SPARK := $(VENV)/.ready-with-spark
DEMO_VENV := .venv-demo
DEMO_READY := $(DEMO_VENV)/.ready
MUTATION_VENV := .venv-mutation
MUTATION_READY := $(MUTATION_VENV)/.ready
LOCK := requirements-test.lock
PIP_LOCK := requirements-pip.lock
FLEET_LOCK := requirements-fleet.lock
MUTATION_LOCK := requirements-mutation.lock
DOCS_VENV := .venv-docs
DOCS_READY := $(DOCS_VENV)/.ready
DOCS_LOCK := requirements-docs.lock
RUN_LOCK := requirements-run.lock
PYTEST_ARGS ?=
PROPERTIES := tests/controller tests/engine tests/simulation tests/fuzz

# The first Python that is new enough; PYTHON=... chooses another.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11 python; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { command -v "$$python"; break; }; done)

# Tests are not to depend on the settings of whoever runs them. Without compiled files each of the kelr that tests start compiles all anew.
UNSET := env -u PYTHONDONTWRITEBYTECODE -u PYTHONPATH -u PYTHONHOME -u KELR_BOOTSTRAP_SERVER -u KELR_BOOTSTRAP_CONTROLLER -u KELR_COMMAND_CONFIG -u KELR_CONTEXT -u KELR_OUTPUT -u KELR_TIMEOUT -u KELR_STATE_DIR

.PHONY: help test lint typecheck imports spark-java pytest hindsight histories hindsight-real differential tla properties predictions kerberos longer mutation format follow demo bench measure scale fleet-demo fleet-bench incidents faults interrupts fuzz completions docs site wheel zipapp lock clean

help:  ## Show what can be made
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | awk -F'\t' '{ printf "  make %-12s %s\n", $$1, $$2 }'

test: spark-java  ## Check everything: style, types, layers, tests
	@$(BESIDE) lint typecheck imports $(RUNS)

lint: $(READY)  ## Check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# commands/ is installed as kelr.commands; tools that read files rather than import them get a tree that has it there.
build/tree: FORCE
	@rm -rf build/tree && mkdir -p build/tree && cp -Rp kelr build/tree/kelr && cp -Rp commands build/tree/kelr/commands
FORCE:

typecheck: $(SPARK) build/tree  ## Check types
	cd build/tree && ../../$(BIN)/mypy --config-file ../../pyproject.toml --cache-dir ../../.mypy_cache -p kelr

imports: $(READY) build/tree  ## Check that the layers import only what they may
	cd build/tree && PYTHONPATH=. ../../$(BIN)/lint-imports --config ../../pyproject.toml --cache-dir ../../.import_linter_cache

# Spark needs a Java of the system's own, which the tests cannot bring. Said before anything else is done.
spark-java: $(READY)
	@$(BIN)/python -m kelr.fleet.java

# Each is a pytest of its own. Four run beside each other, two of them with clusters, which wait most of their time: with all at
# once brokers did not start in three minutes on a slow machine. Each has a cluster of its own, too: the more topics a cluster
# has, the longer a broker takes to start (240 partitions: twice). None takes more than about a fifth of the processor time, or
# it would go on alone on one core when all others have ended.
RUNS := $(addprefix pytest-,clusters predictions histories lab incidents rest commands fleet)
BESIDE := $(MAKE) --no-print-directory --keep-going --jobs=4
TESTS_predictions := $(addprefix tests/cluster/test_,predictions.py doctor.py predictions_in_corners.py live_reassignments.py \
	live_source.py disk.py)
TESTS_incidents := $(addprefix tests/cluster/test_,metadata_log.py recovery_quorum.py history.py whatif.py rescue.py elect.py \
	simulated_data.py simulated_stock_tools.py)
TESTS_clusters := tests/cluster $(addprefix --ignore=,$(TESTS_predictions) $(TESTS_incidents))
TESTS_fleet := tests/fleet
TESTS_histories := $(addprefix tests/,hindsight histories recovery)
TESTS_lab := $(addprefix tests/,differential faults lab tla)
TESTS_commands := $(addprefix tests/,commands documents)
TESTS_rest := $(addprefix --ignore=,tests/cluster $(TESTS_histories) $(TESTS_fleet) $(TESTS_lab) $(TESTS_commands))

pytest: spark-java  ## Run the tests; PYTEST_ARGS="-k word" chooses some
	@$(BESIDE) $(RUNS)

# The others begin while Spark is installed: they need none.
$(addprefix pytest-,fleet commands rest): $(SPARK)

# What a run prints is shown when it has ended. 5: nothing was chosen.
.PHONY: $(RUNS)
$(RUNS): pytest-%: $(READY)
	@mkdir -p build; echo "$@ writes build/$@.log"
	@$(UNSET) $(BIN)/pytest $(TESTS_$*) $(PYTEST_ARGS) >build/$@.log 2>&1 & trap "kill $$!" INT TERM; \
	ended=0; wait $$! || ended=$$?; cat build/$@.log; [ $$ended = 0 ] || [ $$ended = 5 ]

SEED := 0
INCIDENTS := 10000
hindsight: $(READY)  ## Judge every claim by what then happens, in 10,000 random incidents (SEED=, INCIDENTS=, RULES=)
	$(UNSET) $(BIN)/python -m tests.hindsight --seed $(SEED) --incidents $(INCIDENTS) --jobs 2 $(if $(RULES),--rules $(RULES))

histories: HISTORIES := 10000
histories: $(READY)  ## Play 10,000 whole histories of everything that changes a cluster (SEED=, HISTORIES=)
	$(UNSET) $(BIN)/python -m tests.histories --seed $(SEED) --histories $(HISTORIES) --jobs 2

# Three to five minutes a round.
hindsight-real: ROUNDS ?= 30
hindsight-real: $(READY)  ## The same claims in incidents on real clusters (SEED=, ROUNDS=)
	$(UNSET) $(BIN)/python -m tests.hindsight.real --seed $(SEED) --rounds $(ROUNDS)

differential: $(READY)  ## Compare the controller with Apache's own, 200,000 runs and 2,000 histories for each Kafka version
	$(UNSET) $(BIN)/pytest tests/differential --steps 200000 --sequences 2000

# The ten minutes are for the models alone; the histories and the broken rules before them take some minutes.
tla: SECONDS ?= 600
tla: spark-java  ## Check the rules in TLA+ with TLC for ten minutes, and hold many histories against them (SECONDS=)
	$(UNSET) $(BIN)/pytest tests/tla -m "longer or not longer" --sequences 1600
	$(UNSET) $(BIN)/python -m tests.tla --seconds $(SECONDS)

# Real clusters, half an hour in all: the tests marked longer (20 minutes on a busy machine), then every broker and every pair
# of one, in every manner and order (10 minutes).
predictions: $(READY)  ## See on more versions of Kafka, and for every pair of brokers, whether what kelr predicts comes true
	$(UNSET) $(BIN)/pytest -m longer tests/cluster
	$(UNSET) $(BIN)/python -m tests.cluster.whatif_predictions

# Needs a KDC and a Python package that no other test needs.
kerberos: $(READY)  ## Log in with Kerberos, on a KDC and brokers of its own; says how to get what is missing
	@$(BIN)/python -m tests.cluster.kerberos
	$(UNSET) $(BIN)/pytest -m longer tests/cluster/test_kerberos.py

# What make test tries at some moments only, at all of them.
longer: spark-java $(SPARK) interrupts  ## Kill processes at every moment, and what else takes many minutes without a cluster
	$(UNSET) $(BIN)/pytest -m longer --ignore=tests/cluster

# Beside two busy processes, which are to make steps slow: JOBS=8 does the same. EACH=500, ONLY="recover undo" for one command of them.
interrupts: SEED := 966
interrupts: EACH := 12
interrupts: JOBS := 1
interrupts: spark-java $(SPARK)  ## Ctrl-C at moments all over each command: 12 of each (EACH=, SEED=, JOBS=, ONLY=)
	$(UNSET) $(BIN)/python -m tests.interrupts --seed $(SEED) --each $(EACH) --jobs $(JOBS) $(if $(ONLY),--only "$(ONLY)")
	$(UNSET) $(BIN)/python -m tests.interrupts --seed $(SEED) --each $(EACH) $(if $(ONLY),--only "$(ONLY)") --real

# Other examples each time, fifty times as many of each property: half an hour of one core; SEED=... repeats a run.
properties: SEED := $(shell echo $$RANDOM)
properties: $(READY)  ## Look for counterexamples in random histories, for half an hour
	@echo "SEED=$(SEED)"
	$(UNSET) $(BIN)/pytest $(PROPERTIES) --hypothesis-profile=long --hypothesis-seed=$(SEED)

mutation: $(MUTATION_READY)  ## Break the rules on purpose, one place at a time, and see which breaks no test notices
	$(UNSET) $(MUTATION_VENV)/bin/python tests/mutation.py $(MUTATE)

format: $(READY)  ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Two hours: two versions compared, the differential tests, real clusters. FOLLOW_ARGS="--compare-only" takes half a minute.
follow: ROUNDS ?= 5
follow: $(READY)  ## Compare a release of Kafka with the one before, and try kelr on it (KAFKA=x.y.z, ROUNDS=, FOLLOW_ARGS=)
	@test -n "$(KAFKA)" || { echo "make: give the release as KAFKA=x.y.z" >&2; exit 1; }
	$(UNSET) $(BIN)/python -m tests.follow $(KAFKA) --rounds $(ROUNDS) $(FOLLOW_ARGS)

demo: $(DEMO_READY)  ## Show a real incident on a Kafka cluster that kelr starts
	$(UNSET) $(DEMO_VENV)/bin/kelr demo $(DEMO_ARGS)

bench: $(READY)  ## Measure; needs a few minutes and a quiet machine
	$(UNSET) $(BIN)/python benchmarks/snapshots.py
	$(UNSET) $(BIN)/python benchmarks/metadata_log.py
	$(UNSET) $(BIN)/python benchmarks/decisions.py
	$(UNSET) $(BIN)/python benchmarks/whatif.py
	$(UNSET) $(BIN)/python -m benchmarks.run

measure: $(READY)  ## Measure the code: files, lines, functions, who imports whom, and how far two commands walk through it
	$(UNSET) $(BIN)/python benchmarks/house.py
	$(UNSET) $(BIN)/python -m benchmarks.walks

# A million partitions of a simulated cluster; kcl is measured beside it where it is on the PATH.
scale: $(READY)  ## Measure describe at scale; needs a quiet machine
	$(UNSET) $(BIN)/python -m benchmarks.scale $(SCALE_ARGS)

# Some minutes for each million: rows a second of every step, with one core and with two, and the driver's memory.
fleet-bench: spark-java $(SPARK)  ## Measure kelr fleet; FLEET_ARGS="--states 10000000 --partitions 10000000" chooses sizes
	$(UNSET) $(BIN)/python -m benchmarks.fleet $(FLEET_ARGS)

FLEET_DEMO := build/fleet-demo
# Each step is over before a JVM would gain by compiling better.
fleet-demo: export JAVA_TOOL_OPTIONS = -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
fleet-demo: spark-java $(SPARK)  ## Show a fleet on paper, and what kelr fleet finds in it; KEEP=1 keeps the lake
	@rm -rf $(FLEET_DEMO); mkdir -p build; begun=$$SECONDS; \
	say() { echo; echo "\$$ kelr fleet $$*"; $(UNSET) $(BIN)/kelr fleet "$$@"; }; \
	say generate $(FLEET_DEMO)/fleet --clusters 4 --partitions 1500 --weeks 2 --seed 966; \
	say ingest $(FLEET_DEMO)/fleet --out $(FLEET_DEMO)/lake --names-of-folders; \
	say assess --lake $(FLEET_DEMO)/lake --scenarios now,each-broker,each-rack; \
	say exposure --lake $(FLEET_DEMO)/lake; \
	say report --lake $(FLEET_DEMO)/lake --out $(FLEET_DEMO)/report --title "A fleet on paper"; \
	[ -n "$(KEEP)" ] || rm -rf $(FLEET_DEMO)/fleet $(FLEET_DEMO)/lake; \
	echo; echo "$$((SECONDS - begun)) seconds. The report: $(CURDIR)/$(FLEET_DEMO)/report/report.html"

# Real clusters, several minutes: what is lost for ever under the stock tool, under kelr, and under kelr with rescue.
incidents: SEED ?= 966
incidents: ROUNDS ?= 6
incidents: $(READY)  ## Recover random incidents on real clusters in several ways, and count what is lost for ever
	$(UNSET) $(BIN)/python -m benchmarks.incidents --seed $(SEED) --rounds $(ROUNDS)

faults: $(READY)  ## Play every fault at every request of every command, for half an hour, and write the outcomes down
	$(UNSET) $(BIN)/python -m tests.faults --write docs/faults.md

# Coverage-guided, until it is stopped; atheris is installed beside the locked packages.
fuzz: TARGET ?= answer
fuzz: $(READY)  ## Fuzz what reads bytes from a network; TARGET=NAME chooses one
	$(BIN)/python -m pip --disable-pip-version-check --quiet install atheris
	@mkdir -p build/fuzz/$(TARGET)
	$(UNSET) $(BIN)/python -m tests.fuzz.atheris_targets $(TARGET) $(FUZZ_ARGS)

completions: $(READY)  ## Generate the shell completions again
	$(BIN)/python -m kelr.commands.generate completions completions

docs: $(READY)  ## Generate the command line reference again
	$(BIN)/python -m kelr.commands.generate docs .

site: $(DOCS_READY)  ## Build the documents as a site in build/site, strict: no broken link, nothing fetched when read
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/python -m mkdocs build --quiet
	$(DOCS_VENV)/bin/python packaging/check_site.py build/site

wheel: $(READY)  ## Build wheel and source distribution in dist, and check what is in them
	$(BIN)/python packaging/distributions.py dist

zipapp: $(READY) $(RUN_LOCK)  ## Build one file with everything in it, for machines without pip (needs a package index)
	$(BIN)/python packaging/single_file.py dist

lock:  ## Choose the newest versions for the tests again (needs uv)
	echo pip | uv pip compile --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --no-emit-index-url \
		--upgrade --output-file $(PIP_LOCK) -
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --no-emit-index-url \
		--upgrade --extra lab --group dev --output-file $(LOCK) pyproject.toml
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --no-emit-index-url \
		--upgrade --constraint $(LOCK) --extra fleet --output-file $(FLEET_LOCK) pyproject.toml
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --no-emit-index-url \
		--upgrade --constraint $(LOCK) --group mutation --output-file $(MUTATION_LOCK)
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --no-emit-index-url \
		--upgrade --constraint $(LOCK) --group docs --output-file $(DOCS_LOCK)
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --no-emit-index-url \
		--upgrade --constraint $(LOCK) --output-file $(RUN_LOCK) pyproject.toml

clean:  ## Remove everything that was made here
	rm -rf $(VENV) $(DEMO_VENV) $(MUTATION_VENV) $(DOCS_VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# The stamp is written last, so that an environment that was only half made is made again from the start. Of the time of the pip
# that Python 3.11 brings, two thirds go into looking at every file of an index: a newer one comes first.
define make_venv
	@test -n "$(PYTHON)" || { echo "make: kelr needs Python 3.11 or newer; give its path with PYTHON=..." >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { echo "make: $(PYTHON) has no venv module" \
		"(on Debian and Ubuntu: apt install python3-venv)" >&2; exit 1; }
	rm -rf $(1)
	"$(PYTHON)" -m venv $(1)
	$(1)/bin/python $(PIP) install --no-compile --require-hashes -r $(PIP_LOCK)
endef

PIP := -m pip --disable-pip-version-check --quiet

# Compiled once, by every core and without the packages' own tests: pip would do it on one core, the runs beside each other each.
COMPILE := -m compileall -q -j 0 -x '/site-packages/.*/tests/'

$(READY): $(LOCK) pyproject.toml
	$(call make_venv,$(VENV))
	$(BIN)/python $(PIP) install --no-compile --require-hashes -r $(LOCK)
	$(BIN)/python $(PIP) --quiet install --no-deps --no-build-isolation --editable .
	$(BIN)/python $(COMPILE) $(VENV)/lib kelr commands
	touch $@

# PySpark comes as source only; what builds it is among the locked packages. Its wheel is unpacked at once: packing it (12 of 20 s)
# gains nothing.
$(SPARK): $(READY) $(FLEET_LOCK)
	$(BIN)/python $(PIP) install --no-compile --require-hashes --no-build-isolation --config-settings=--build-option=--compression=stored -r $(FLEET_LOCK)
	$(BIN)/python $(COMPILE) $(VENV)/lib
	touch $@

# The demo runs with what the tests ran with.
$(DEMO_READY): $(LOCK) pyproject.toml
	$(call make_venv,$(DEMO_VENV))
	$(DEMO_VENV)/bin/python $(PIP) install --require-hashes -r $(LOCK)
	$(DEMO_VENV)/bin/python $(PIP) --quiet install --no-deps --no-build-isolation --editable '.[lab]'
	touch $@

$(MUTATION_READY): $(LOCK) $(MUTATION_LOCK) pyproject.toml
	$(call make_venv,$(MUTATION_VENV))
	$(MUTATION_VENV)/bin/python $(PIP) install --require-hashes -r $(LOCK)
	$(MUTATION_VENV)/bin/python $(PIP) install --require-hashes -r $(MUTATION_LOCK)
	touch $@

$(DOCS_READY): $(DOCS_LOCK)
	$(call make_venv,$(DOCS_VENV))
	$(DOCS_VENV)/bin/python $(PIP) install --require-hashes -r $(DOCS_LOCK)
	touch $@
