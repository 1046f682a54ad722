# What people do with this repository. Needs a Rust toolchain, python3 and make; what the tests need besides, `.ci/setup`
# installs where it may.

CARGO ?= cargo
PYTHON ?= python3
RECIPE ?= quickstart
FUZZ_SECONDS ?= 60
VENVS := .venvs
DEV := $(VENVS)/dev/bin
WEB := crates/plaudit-serve/web
EXTENSION := python/plaudit/_plaudit.abi3.so
# Where cargo builds, asked once and only by the targets that need it.
TARGET = $(eval TARGET := $(shell $(CARGO) metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/'))$(TARGET)

# The command as the tests use it. One profile and one feature set for all suites: what one has built, the next one uses. A
# `-p CRATE` selection would resolve other features and build most dependencies again.
BUILD := $(CARGO) build --locked --workspace --bins --features plaudit-python/as-tested

.PHONY: demo check test test-rust test-limits test-box test-browser test-python test-trainers test-verl-e2e develop wheel wheel-dev docs bench bench-scale bench-python fuzz clean

# Builds the command, scores the shipped example by rules and by the embedded judge, and explains one number. No network once the crates are there, and no key.
demo:
	$(CARGO) build --release --locked -p plaudit-cli
	@mkdir -p out
	$(TARGET)/release/plaudit score examples/rollouts.jsonl --recipe $(RECIPE) --out out/results.jsonl --summary out/summary.json
	$(TARGET)/release/plaudit score examples/rollouts.jsonl --recipe overlap --state out/state --out out/judged.jsonl
	$(TARGET)/release/plaudit explain g001-1 --state out/state

# The quick answer while you work: the format, the lints and the unit tests.
check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) test --locked --workspace --lib

# Every test but those of the trainers (test-trainers) and of the limits on time (test-limits).
test:
	.ci/setup
	$(MAKE) test-rust
	$(MAKE) test-browser
	$(MAKE) test-python

# The engine, the command and the service: unit tests, integration tests and the examples in the documentation.
test-rust:
	$(CARGO) test --locked --workspace

# The Python package: its format, its types, its tests, and the wheel in an environment that has nothing else.
test-python: develop
	python/venv.sh dev
	$(DEV)/ruff format --check python
	$(DEV)/ruff check python
	$(DEV)/ruff check --select F,E9 bench examples
	$(DEV)/pyright --pythonpath $(DEV)/python
	cd $(TARGET) && MYPYPATH=$(CURDIR)/python PYTHONPATH=$(CURDIR)/python $(CURDIR)/$(DEV)/stubtest plaudit._plaudit
	PYTHONPATH=python PLAUDIT_BIN=$(TARGET)/debug/plaudit $(DEV)/python -m pytest python/tests --ignore python/tests/trainers
	python/venv.sh wheel $(TARGET)/wheels/plaudit-*.whl
	cd $(TARGET) && $(CURDIR)/$(VENVS)/wheel/bin/plaudit score $(CURDIR)/examples/rollouts.jsonl --out wheel.jsonl
	cd $(TARGET) && $(CURDIR)/$(VENVS)/wheel/bin/python -c "import plaudit; print(plaudit.Engine('quickstart').score(None, ['a']))"

# The adapters, against the real trainers from the index: about 6 GB, in environments of their own.
test-trainers: develop
	PLAUDIT_BIN=$(TARGET)/debug/plaudit python/tests/trainers/run.sh

# Two real training runs of verl on the CPU, with plaudit's rewards: of single turns, and of an agent with a tool.
test-verl-e2e: develop
	python/venv.sh verl-0.9
	PYTHONPATH=$(CURDIR)/python PYTHON=$(CURDIR)/$(VENVS)/verl-0.9/bin/python examples/verl/cpu/run.sh
	SCORING=tools PYTHONPATH=$(CURDIR)/python PYTHON=$(CURDIR)/$(VENVS)/verl-0.9/bin/python examples/verl/cpu/run.sh

# The promise of at most 50 ms for 1 MB of hostile text, measured as it is shipped: optimised. Builds the engine's
# dependencies anew, so it is not part of `make test`; .ci/run runs it.
test-limits:
	$(CARGO) test --locked --release -p plaudit --test main hostile

# The sandbox in full: 1,000 endless programs, 100 fork bombs, 500 right programs on a busy host, in each tier, as root also
# as an ordinary user. `make test` has smaller numbers of the same.
test-box:
	$(CARGO) test --locked --workspace --test main -- --ignored --test-threads 1 in_full

# The dashboard in Chromium, with the real service and the simulated judge behind it. Needs chromium, node and npm.
test-browser:
	@for need in chromium node npm; do command -v $$need > /dev/null || missing="$$missing $$need"; done; \
	if [ -n "$$missing" ] && [ "$$PLAUDIT_TEST_ALL" != 1 ]; then echo "== left out: the tests of the dashboard, for want of$$missing"; else \
		$(BUILD) && cd $(WEB)/tests && npm ci --silent --no-audit --no-fund && \
		PLAUDIT_BIN=$(TARGET)/debug/plaudit node --test; \
	fi

# The command, and the extension where `PYTHONPATH=python` finds it, for work on the package. Maturin builds the extension, as it
# does for the wheel: its settings are others than cargo's own, and PyO3 would be built anew with every change between them.
develop: wheel-dev
	$(BUILD)
	cp $(TARGET)/debug/lib_plaudit.so $(EXTENSION)

# What is published: dist/plaudit-*.whl, also by `pip install .`.
wheel:
	python/venv.sh tools
	rm -rf dist
	$(VENVS)/tools/bin/maturin build --locked --profile dist --out dist

# The same, linked from what the tests have built: $(TARGET)/wheels/plaudit-*.whl.
wheel-dev:
	python/venv.sh tools
	rm -rf $(TARGET)/wheels
	$(VENVS)/tools/bin/maturin build --quiet --locked --profile dev --features as-tested --out $(TARGET)/wheels

# Writes docs/reference anew from the types and their doc comments; a test fails where it is out of date.
docs:
	UPDATE=1 $(CARGO) test --locked reference

# RM-Gallery and plaudit side by side, by rules and by judges, then the command on a large file. The raw figures go to
# bench/runs.
bench:
	$(PYTHON) bench/run.py
	$(CARGO) run --release --locked -p plaudit --example turns -- bench/data
	$(PYTHON) bench/mathematics.py
	$(PYTHON) bench/code.py
	$(PYTHON) bench/judges.py
	$(PYTHON) bench/stream.py
	python/venv.sh openrlhf
	$(PYTHON) bench/serve.py
	$(CARGO) run --release --locked -p plaudit --example join 100000 100000
	$(MAKE) bench-python

# How much faster more cores are; figures worth keeping need at least 16 of them.
bench-scale:
	$(CARGO) build --release --locked -p plaudit-python -p plaudit-cli
	$(CARGO) build --release --locked -p plaudit-cli --example load
	cp $(TARGET)/release/lib_plaudit.so $(EXTENSION)
	python/venv.sh dev
	$(DEV)/python bench/scale.py

# The way from Python and back, RM-Gallery's tutorial, and verl's reward loop.
bench-python:
	$(CARGO) build --release --locked -p plaudit-python -p plaudit-cli
	cp $(TARGET)/release/lib_plaudit.so $(EXTENSION)
	python/venv.sh dev
	python/venv.sh verl-0.9
	PYTHONPATH=python $(DEV)/python bench/border.py
	PYTHONPATH=python $(DEV)/python bench/tutorial.py
	PYTHONPATH=python $(VENVS)/verl-0.9/bin/python bench/reward_loop.py

# Needs `cargo install cargo-fuzz` and a nightly toolchain.
fuzz:
	for target in line recipe rules reply math; do \
		$(CARGO) +nightly fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) -max_len=65536 -timeout=5 || exit 1; \
	done

clean:
	$(CARGO) clean
	rm -rf out dist bench/.venv bench/data $(VENVS) $(EXTENSION) $(WEB)/tests/node_modules
