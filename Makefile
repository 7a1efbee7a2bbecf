# `make help` explains every target.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

UV := dev/uv
PYTHON := .venv/bin/python
PYTEST := $(PYTHON) -m pytest
CONTEXT ?=
REGISTRY ?=
BENCH ?=
export CONTEXT REGISTRY
# The tests' cluster is never the one that is used for development.
TEST_CLUSTER := test

.PHONY: help
help: ## Explain every target
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: .venv/.synced ## Install all that the other targets need: uv, the locked packages, git's hooks
	@command -v go >/dev/null || { echo "Go 1.25 or newer is not installed: the shim and the cluster are built with it" >&2; exit 1; }

.venv/.synced: pyproject.toml uv.lock tasks/casewarden_sdk/pyproject.toml
	$(UV) sync --frozen --quiet
	@touch $@

.PHONY: demo
demo: setup ## The main job on a cluster: CONTEXT=… REGISTRY=…, else kind where Docker runs, else one made here
	dev/demo

.PHONY: demo-local
demo-local: setup ## The same job without a cluster, in seconds (not a sandbox)
	dev/demo --local

.PHONY: test
test: checks test-shim test-python test-cluster ## Pass all tests, on a cluster of their own

.PHONY: test-fast
test-fast: checks test-shim test-python ## Pass all tests that need no cluster

.PHONY: checks
checks: lint types contracts generated ## Lint, types, import contracts, generated files

.PHONY: lint
lint: setup ## Check style
	$(PYTHON) -m ruff check
	$(PYTHON) -m ruff format --check

.PHONY: fmt
fmt: setup ## Put style right
	$(PYTHON) -m ruff check --fix
	$(PYTHON) -m ruff format

.PHONY: types
types: setup ## Check types
	$(PYTHON) -m mypy

.PHONY: contracts
contracts: setup ## Check that no layer imports what it must not
	.venv/bin/lint-imports

.PHONY: generated
generated: setup ## Check that the generated files are those of the models
	$(PYTHON) -m casewarden.api.generate --check
	cd dev && ../$(PYTHON) -m devkit.dashboards --check
	cd dev && ../$(PYTHON) -m devkit.chart --check
	$(PYTHON) -m casewarden.reference --check

.PHONY: crds
crds: setup ## Write the generated files anew: CRDs, reference pages
	$(PYTHON) -m casewarden.api.generate
	$(PYTHON) -m casewarden.reference

.PHONY: dashboards
dashboards: setup ## Write the Grafana dashboards anew
	cd dev && ../$(PYTHON) -m devkit.dashboards

.PHONY: chart
chart: setup ## Write the chart's schema of values and its README anew
	cd dev && ../$(PYTHON) -m devkit.chart

.PHONY: test-shim
test-shim: ## Test the shim
	cd images/shim && go vet ./... && go test ./...

.PHONY: test-python
test-python: setup ## Unit, contract, component, chart and documentation tests
	$(PYTEST) -q -n auto --dist loadfile -m 'not cluster' --ignore=tests/cluster

.PHONY: test-cluster
test-cluster: setup ## Tests on a real cluster, made for them and ended after them
	export CLUSTER_NAME=$(TEST_CLUSTER); \
	trap 'dev/cluster down' EXIT; \
	dev/cluster up; \
	dev/cluster load; \
	PATH="$$(dev/cluster programs):$$PATH" $(PYTEST) -q tests/cluster

# A checkout of AgentBench, or as much of it as has the dev splits. Where it is set, `make test` runs these tests too.
AGENTBENCH_DATA ?=
export AGENTBENCH_DATA

.PHONY: test-agentbench
test-agentbench: setup ## What is tested on AgentBench's own data, a checkout that AGENTBENCH_DATA=… names
	@test -d "$(AGENTBENCH_DATA)/data" || { echo "AGENTBENCH_DATA must name a checkout of AgentBench, with its folder data" >&2; exit 1; }
	$(PYTEST) -q -n auto --dist loadfile tests/component/agentbench; \
	export CLUSTER_NAME=$(TEST_CLUSTER); \
	trap 'dev/cluster down' EXIT; \
	dev/cluster up; \
	dev/cluster load; \
	PATH="$$(dev/cluster programs):$$PATH" $(PYTEST) -q tests/cluster/agentbench

.PHONY: soak
soak: setup ## What takes too long for every change: API server or relay away for minutes, whole audits through a restart, Kueue
	export CLUSTER_NAME=$(TEST_CLUSTER) CASEWARDEN_SOAK_SECONDS=180; \
	trap 'dev/cluster down' EXIT; \
	dev/cluster up; \
	dev/cluster load; \
	export PATH="$$(dev/cluster programs):$$PATH"; \
	$(PYTEST) -q -s tests/cluster/test_outcomes.py tests/cluster/test_high_availability.py -k 'api_server or relay or leader'; \
	$(PYTEST) -q tests/cluster/soak

.PHONY: bench
bench: setup ## Measure what the operator and its pods cost; JSON in dev/bench/results/. BENCH=… names some
	trap 'CLUSTER_NAME=$${CLUSTER_NAME:-bench} dev/cluster down' EXIT; \
	PYTHONPATH=dev:tests $(PYTHON) -m bench $(BENCH)

.PHONY: images
images: setup ## Build the images that have changed
	dev/images build

.PHONY: cluster-up
cluster-up: setup ## Bring the development cluster up, with the images and the release on it
	dev/cluster up
	KUBECONFIG="$$(dev/cluster kubeconfig)" dev/install

.PHONY: cluster-down
cluster-down: ## End the development cluster
	dev/cluster down

.PHONY: clean
clean: ## End the clusters and remove what was built in this folder
	dev/cluster down
	CLUSTER_NAME=$(TEST_CLUSTER) dev/cluster down
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
