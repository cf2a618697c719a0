# Two commands set everything up: `make demo` shows Millrace at work, `make check` runs every check.
# Both need only Python 3.11 or newer, make and git.

PYTHON ?= python3
# What is imported is compiled once, whatever the environment says: else each process of each test compiles it anew,
# and the tests take three times as long.
unexport PYTHONDONTWRITEBYTECODE
VENV := .venv
BIN := $(VENV)/bin
# Errors only: its warnings are about the metadata of packages, and help nobody here.
PIP = $(BIN)/python -m pip install -qq --disable-pip-version-check
EXTRAS := extra-chroma extra-pdf extra-browser extra-mcp extra-nats
CHROMA := .venv-chroma
MUTANTS := .venv-mutants
LOWEST := .venv-lowest
OTHERS := 3.11 3.12 3.13 3.14
DEMO_KNOWLEDGE := examples/data/knowledge-base

.PHONY: $(EXTRAS) test-chroma eval-answers eval-documents demo check lint types imports dependencies generated tests test-operators test-rest test-slow test-drill coverage other-pythons all-pythons lowest benchmarks eval lock clean help

help:
	@echo "make demo           build an index and replay a day of an invented community, no key needed"
	@echo "make check          lint, types, imports, dependencies, generated files, tests"
	@echo "make test-slow      the tests that cost most: whole processes, kills at every step, real sizes, all patterns, quality"
	@echo "make test-drill     many processes over NATS, killed and frozen, with few messages"
	@echo "make coverage       how much of everything the tests reach"
	@echo "make fuzz           10,000 damaged inputs for each parser of what comes from outside, 500 cases of other properties; over an hour"
	@echo "make mutants        which small changes of the product no test notices, on a sample (AREA, SAMPLE, SEED)"
	@echo "make test-chroma    the tests of where documents are kept, over a server of Chroma that it installs"
	@echo "make other-pythons  the clock's and operators' tests on whichever of Python $(OTHERS) are here"
	@echo "make all-pythons    all tests on each of them"
	@echo "make lowest         all tests with the lowest versions that pyproject.toml allows"
	@echo "make benchmarks     the figures of benchmarks/README.md"
	@echo "make scale-drill    many processes over NATS: killed, frozen, joining; not one message lost (DRILL: its options)"
	@echo "make eval           how well it does on annotated material (EVAL_DATA names its folder)"
	@echo "make eval-answers   only the part about questions to documentations (EVAL_DOCUMENTS names their folder)"
	@echo "make eval-documents only the part about documents; without material, on a small set of its own"
	@echo "make extra-NAME     install an extra: chroma, pdf, browser, mcp or nats"
	@echo "make lock           resolve the dependencies anew"

demo: $(VENV)/runtime $(DEMO_KNOWLEDGE)/index-cache.json
	@$(BIN)/python app.py --config examples/demo.yaml --init-kb
	@$(BIN)/python app.py --config examples/demo.yaml --replay examples/demo.jsonl

# The demo's web pages are of a host that does not exist: they begin as if they had just been fetched.
$(DEMO_KNOWLEDGE)/index-cache.json:
	@mkdir -p $(@D)
	@cp examples/knowledge-base/fetched.json $@

check: $(VENV)/development
	@$(MAKE) --no-print-directory -j2 types others
	@echo "All checks passed."

# Beside the types, which keep one core busy for minutes.
.PHONY: others
others:
	@$(MAKE) --no-print-directory lint imports dependencies generated tests

lint: $(VENV)/development
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/development
	$(BIN)/basedpyright

imports: $(VENV)/development
	$(BIN)/lint-imports

dependencies: $(VENV)/development
	$(BIN)/deptry .

# What `examples/picture.py` draws is checked by tests/examples/test_demo_replay.py, which replays the demo anyway.
generated: export OPENBLAS_NUM_THREADS := 1
generated: $(VENV)/development
	$(BIN)/python -m settings.reference --check
	$(BIN)/python -m assembly.reference --check
	$(BIN)/python examples/make_demo.py --check
	$(BIN)/python examples/replies.py --check
	$(BIN)/python -m benchmarks.scale_arithmetic --check

tests: test-operators test-rest

# Every branch of the operators, by their own tests, in one process: they take seconds. Counting slows them, so the rest
# goes without: `make coverage` counts everywhere.
test-operators: $(VENV)/development
	$(BIN)/pytest -p no:xdist tests/operators --cov=operators --cov=dataflow --cov-report=
	$(BIN)/coverage report --fail-under=100

test-rest: $(VENV)/development
	$(BIN)/pytest -n auto --dist worksteal -m "not slow" --ignore=tests/operators

# Each takes seconds of the processor, and what it looks after seldom breaks alone: they would make `make check` three
# times as long. CI runs them.
test-slow: $(VENV)/development
	$(BIN)/pytest -n auto --dist loadfile -m slow --ignore=tests/transport/test_drill.py

# Waits for processes most of the time, some minutes; `make scale-drill` is the same with many messages.
test-drill: $(VENV)/development
	$(BIN)/pytest -n auto tests/transport/test_drill.py

coverage: $(VENV)/development
	$(BIN)/pytest -n auto --dist worksteal --cov --cov-report=
	$(BIN)/coverage report --fail-under=90

# Each test process starts a server of its own. With an own environment, so that nothing else ever imports the package.
test-chroma: $(VENV)/development $(CHROMA)/server
	MILLRACE_CHROMA= $(BIN)/pytest -n auto --dist worksteal tests/services/documents/store

# The server is compiled into its package, and needs none of the packages that the package asks for. Its version is
# the client's.
$(CHROMA)/server: requirements/development.txt
	@echo "Installing the server of Chroma into $(CHROMA); once, for some seconds."
	@$(PYTHON) -m venv $(CHROMA)
	@$(CHROMA)/bin/python -m pip install -qq --disable-pip-version-check --no-deps $$(sed -n 's/^chromadb-client==/chromadb==/p' $<)
	@touch $@

# All tests of properties run with `make tests`, on fewer cases that are always the same (docs/testing.md).
.PHONY: fuzz
fuzz: $(VENV)/development
	MILLRACE_FUZZ=$(or $(CASES),10000) nice $(BIN)/pytest -n auto --dist worksteal -q --show-capture=no --tb=short -o faulthandler_timeout=0 -m hypothesis

# docs/testing.md says what it found. `nice`, as it takes a while.
.PHONY: mutants
mutants: $(MUTANTS)/ready
	nice $(MUTANTS)/bin/python -m tests.mutants $(AREA) --sample $(or $(SAMPLE),200) --seed $(or $(SEED),1)

$(MUTANTS)/ready: requirements/development.txt requirements/mutants.txt | $(VENV)/development
	@echo "Installing what the checks need, and mutmut, into $(MUTANTS); once, for a minute or so."
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(MUTANTS)
	@$(BIN)/uv pip install --quiet --python $(MUTANTS) -r requirements/development.txt -r requirements/mutants.txt
	@touch $@

# The virtual loop leans on asyncio's inner workings: its tests run on every Python that is here.
other-pythons: $(VENV)/development
	@$(BIN)/python .ci/other_pythons.py $(OTHERS)

all-pythons: $(VENV)/development
	@$(BIN)/python .ci/other_pythons.py --all $(OTHERS)

# What `pyproject.toml` allows at least, for each package that it names.
lowest: $(VENV)/development
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(LOWEST)
	$(BIN)/uv pip compile --quiet --resolution lowest-direct pyproject.toml --all-extras --group dev -o $(LOWEST)/versions.txt
	$(BIN)/uv pip install --quiet --python $(LOWEST) -r $(LOWEST)/versions.txt
	$(LOWEST)/bin/python -m pytest -q -n auto -p no:cacheprovider

benchmarks: $(VENV)/development
	$(BIN)/python -m benchmarks

# The real server of NATS, real processes of the program, and everything that can go wrong with them; some minutes.
.PHONY: scale-drill
scale-drill: $(VENV)/development
	$(BIN)/python -m benchmarks.scale_drill $(DRILL)

eval: $(VENV)/development
	$(BIN)/python -m benchmarks.evaluation

eval-answers: $(VENV)/development
	$(BIN)/python -m benchmarks.evaluation.answers

eval-documents: $(VENV)/development
	$(BIN)/python -m benchmarks.documents

$(VENV)/runtime: requirements/runtime.txt | $(BIN)/python
	@echo "Installing what Millrace needs into $(VENV); once, for a minute or so."
	@$(PIP) -r $<
	@touch $@

$(VENV)/development: requirements/development.txt $(VENV)/runtime
	@echo "Installing what the checks need into $(VENV); once, for a minute or so."
	@$(PIP) -r $<
	@touch $@

$(EXTRAS): extra-%: $(VENV)/runtime
	@$(PIP) -c requirements/development.txt $$($(BIN)/python deploy/extras.py $*)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# What runs is what was tested: the second lock is part of the first.
lock: $(VENV)/development
	$(BIN)/uv pip compile --quiet --universal --no-header --no-annotate --upgrade pyproject.toml --all-extras --group dev -o requirements/development.txt
	$(BIN)/uv pip compile --quiet --universal --no-header --no-annotate --upgrade pyproject.toml -c requirements/development.txt -o requirements/runtime.txt
	$(BIN)/uv pip compile --quiet --universal --no-header --no-annotate --upgrade --group mutants -c requirements/development.txt -o requirements/mutants.txt

clean:
	rm -rf $(VENV) .venv-* .mutants examples/data .pytest_cache .ruff_cache .hypothesis .coverage .import_linter_cache
