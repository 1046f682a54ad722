# What people do with this repository. Needs a Rust toolchain, python3 and make; what tests need besides, they install.

CARGO ?= cargo
PYTHON ?= python3
RECIPE ?= quickstart
FUZZ_SECONDS ?= 60
VENVS := .venvs
DEV := $(VENVS)/dev/bin
WEB := crates/plaudit-cli/web
EXTENSION := python/plaudit/_plaudit.abi3.so

.PHONY: demo test test-python test-trainers test-verl-e2e test-browser check check-python develop wheel wheel-dev docs bench bench-python fuzz clean

# Builds the command, scores the shipped example by rules and by the embedded judge, and explains one number. No network once the crates are there, and no key.
demo:
	$(CARGO) build --release --locked -p plaudit-cli
	@mkdir -p out
	./target/release/plaudit score examples/rollouts.jsonl --recipe $(RECIPE) --out out/results.jsonl --summary out/summary.json
	./target/release/plaudit score examples/rollouts.jsonl --recipe overlap --state out/state --out out/judged.jsonl
	./target/release/plaudit explain g001-1 --state out/state

# Every test there is, but for those that need a trainer.
test: check
	$(CARGO) test --locked
	$(PYTHON) examples/make_rollouts.py --check
	$(MAKE) test-browser
	$(MAKE) test-python

# The Python package: its format, its types, its tests, and the wheel in an environment that has nothing else.
test-python: develop wheel-dev
	python/venv.sh dev
	$(DEV)/ruff format --check python
	$(DEV)/ruff check python
	$(DEV)/pyright --pythonpath $(DEV)/python
	cd target && MYPYPATH=../python PYTHONPATH=../python ../$(DEV)/stubtest plaudit._plaudit
	PYTHONPATH=python PLAUDIT_BIN=$(CURDIR)/target/debug/plaudit $(DEV)/python -m pytest python/tests --ignore python/tests/trainers
	python/venv.sh wheel target/wheels/plaudit-*.whl
	cd target && ../$(VENVS)/wheel/bin/plaudit score ../examples/rollouts.jsonl --out wheel.jsonl
	cd target && ../$(VENVS)/wheel/bin/python -c "import plaudit; print(plaudit.Engine('quickstart').score(None, ['a']))"

# The adapters, against the real trainers from the index: about 6 GB, in environments of their own.
test-trainers: develop
	$(CARGO) build --locked -p plaudit-cli
	python/tests/trainers/run.sh

# One real training run of verl on the CPU, with plaudit's rewards.
test-verl-e2e: develop
	python/venv.sh verl-0.9
	PYTHONPATH=python PYTHON=$(CURDIR)/$(VENVS)/verl-0.9/bin/python examples/verl/cpu/run.sh

# The dashboard in Chromium, with the real service and the simulated judge behind it. Needs node and npm.
test-browser:
	for need in chromium node npm; do command -v $$need > /dev/null || missing=1; done; [ -z "$$missing" ] || { \
		sudo=$$([ "$$(id -u)" = 0 ] || echo sudo); $$sudo apt-get update -qq && \
		$$sudo apt-get install -y -qq --no-install-recommends chromium $$(command -v node > /dev/null || echo nodejs) $$(command -v npm > /dev/null || echo npm); }
	$(CARGO) build --locked -p plaudit-cli
	cd $(WEB)/tests && npm ci --silent --no-audit --no-fund && node --test

# The extension where `PYTHONPATH=python` finds it, for work on the package.
develop:
	$(CARGO) build --locked -p plaudit-python
	cp target/debug/lib_plaudit.so $(EXTENSION)

# What is published: dist/plaudit-*.whl, also by `pip install .`.
wheel:
	python/venv.sh tools
	rm -rf dist
	$(VENVS)/tools/bin/maturin build --locked --profile dist --out dist

# The same from what the tests have built.
wheel-dev:
	python/venv.sh tools
	$(CARGO) build --locked -p plaudit-cli
	rm -rf target/wheels
	$(VENVS)/tools/bin/maturin build --quiet --locked --profile dev --out target/wheels

# What a test cannot see: the format and the lints.
check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

# Writes docs/reference anew from the types and their doc comments; a test fails where it is out of date.
docs:
	UPDATE=1 $(CARGO) test --locked reference

# RM-Gallery and plaudit side by side, by rules and by judges, then the command on a large file. The raw figures go to
# bench/runs.
bench:
	$(PYTHON) bench/run.py
	$(PYTHON) bench/judges.py
	$(PYTHON) bench/stream.py
	python/venv.sh openrlhf
	$(PYTHON) bench/serve.py
	$(CARGO) run --release --locked -p plaudit --example join 100000 100000
	$(MAKE) bench-python

# The way from Python and back, RM-Gallery's tutorial, and verl's reward loop.
bench-python:
	$(CARGO) build --release --locked -p plaudit-python -p plaudit-cli
	cp target/release/lib_plaudit.so $(EXTENSION)
	python/venv.sh dev
	python/venv.sh verl-0.9
	PYTHONPATH=python $(DEV)/python bench/border.py
	PYTHONPATH=python $(DEV)/python bench/tutorial.py
	PYTHONPATH=python $(VENVS)/verl-0.9/bin/python bench/reward_loop.py

# Needs `cargo install cargo-fuzz` and a nightly toolchain.
fuzz:
	for target in line recipe rules reply; do \
		$(CARGO) +nightly fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) -max_len=65536 -timeout=5 || exit 1; \
	done

clean:
	$(CARGO) clean
	rm -rf out dist bench/.venv bench/data $(VENVS) $(EXTENSION) $(WEB)/tests/node_modules
