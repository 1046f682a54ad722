# What people do with this repository. Needs a Rust toolchain, python3 and make; what the tests need besides, `.ci/setup`
# installs where it may.

CARGO ?= cargo
PYTHON ?= python3
RECIPE ?= quickstart
FUZZ_SECONDS ?= 60
SERVERS ?= litellm llama-cpp llama-cpp-python transformers vllm vllm-reward
VENVS := .venvs
DEV := $(VENVS)/dev/bin
WEB := crates/plaudit-serve/web
EXTENSION := python/plaudit/_plaudit.abi3.so
# Where cargo builds, asked once and only by the targets that need it.
TARGET = $(eval TARGET := $(shell $(CARGO) metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/'))$(TARGET)

# The command as the tests use it. One profile and one feature set for all suites: what one has built, the next one uses. A
# `-p CRATE` selection would resolve other features and build most dependencies again.
BUILD := $(CARGO) build --locked --workspace --bins --features plaudit-python/as-tested

.NOTPARALLEL:
.PHONY: help demo check lint-scripts check-ops check-version test test-setup test-rust test-limits test-box test-browser test-python test-loggers test-wheel test-trainers test-newest test-verl-e2e test-servers develop wheel wheel-dev sbom release-notes image test-image audit test-wheels test-sdist wheels sdist package check-features third-party docs site site-serve bench bench-scale bench-python fuzz clean

# Lists the targets, each with the first sentence of its comment.
help:
	@awk '/^# / { text = text substr($$0, 2); next } \
		/^[a-z][a-z0-9-]*:/ { sub(/:.*/, ""); sub(/^ /, "", text); sub(/\. .*/, ".", text); printf "%-14s %s\n", $$0, text } \
		{ text = "" }' Makefile

# Builds the command, scores the shipped example by rules and by the embedded judge, and explains one number. No network once the crates are there, and no key.
demo:
	$(CARGO) build --release --locked -p plaudit-cli
	@mkdir -p out
	$(TARGET)/release/plaudit score examples/rollouts.jsonl --recipe $(RECIPE) --out out/results.jsonl --summary out/summary.json
	$(TARGET)/release/plaudit score examples/rollouts.jsonl --recipe overlap --state out/state --out out/judged.jsonl
	$(TARGET)/release/plaudit explain g001-1 --state out/state

# The quick answer while you work: the format, the lints and the unit tests.
check: lint-scripts
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) test --locked --workspace --no-fail-fast --lib

# Python and the dashboard's JavaScript by their linters; seconds.
lint-scripts:
	python/venv.sh dev
	$(DEV)/ruff format --check python
	$(DEV)/ruff check python
	$(DEV)/ruff check --select F,E9 bench docs examples .ci
	$(DEV)/oxlint -c $(WEB)/tests/oxlint.json $(WEB)

# Workflows, image, compose file, manifests, citation and versions by their linters and schemas, and the Grafana board against the
# live service. PLAUDIT_BIN can name a command that is built already.
check-ops:
	python/venv.sh ops
	cd deploy/tests && npm ci --silent --no-audit --no-fund
	$(if $(PLAUDIT_BIN),,$(BUILD))
	PLAUDIT_BIN=$(or $(PLAUDIT_BIN),$(TARGET)/debug/plaudit) $(VENVS)/ops/bin/python -m pytest deploy/tests

# Whether the places that name the version agree; with VERSION=0.1.0, whether that is what they name and the changelog has it.
check-version:
	$(PYTHON) .ci/release.py check $(VERSION)

# Every test but those of the trainers (test-trainers) and of the limits on time (test-limits). Its last lines name what was left out for
# want of a program or of an isolation of the sandbox; with PLAUDIT_TEST_ALL=1 nothing may be.
test: test-setup test-rust test-browser test-python test-loggers test-wheel
	@sort -u $(PLAUDIT_LEFT_OUT) | sed 's/^/== left out: /'
test : export PLAUDIT_LEFT_OUT = $(abspath $(TARGET))/left-out

# What the tests need besides Rust, Python and make.
test-setup:
	$(if $(PLAUDIT_LEFT_OUT),@mkdir -p $(dir $(PLAUDIT_LEFT_OUT)) && : > $(PLAUDIT_LEFT_OUT))
	.ci/setup

# The engine, the command and the service: unit tests, integration tests and the examples in the documentation.
test-rust:
	$(CARGO) test --locked --workspace --no-fail-fast

# The Python package: its format, its types and its tests.
test-python: develop lint-scripts
	$(DEV)/pyright --pythonpath $(DEV)/python
	cd $(TARGET) && MYPYPATH=$(CURDIR)/python PYTHONPATH=$(CURDIR)/python $(CURDIR)/$(DEV)/stubtest plaudit._plaudit
	PYTHONPATH=python PLAUDIT_BIN=$(TARGET)/debug/plaudit $(DEV)/python -m pytest python/tests --ignore python/tests/trainers --ignore python/tests/loggers --ignore python/tests/servers

# The loggers of the trainers, each with its real package.
test-loggers: develop
	python/venv.sh loggers
	PYTHONPATH=$(CURDIR)/python PLAUDIT_BIN=$(TARGET)/debug/plaudit $(VENVS)/loggers/bin/python -m pytest python/tests/loggers

# The wheel, in an environment that has nothing else.
test-wheel: develop
	python/venv.sh wheel $(TARGET)/wheels/plaudit-*.whl
	cd $(TARGET) && $(CURDIR)/$(VENVS)/wheel/bin/plaudit score $(CURDIR)/examples/rollouts.jsonl --out wheel.jsonl
	cd $(TARGET) && $(CURDIR)/$(VENVS)/wheel/bin/python -c "import plaudit; print(plaudit.Engine('quickstart').score(None, ['a']))"

# The adapters, against the real trainers from the index: about 7 GB, in environments of their own. TRAINERS=trl runs one of them.
test-trainers: develop
	PLAUDIT_BIN=$(TARGET)/debug/plaudit python/tests/trainers/run.sh $(TRAINERS)

# The adapters against the newest verl and TRL, whatever they are.
test-newest: develop
	rm -rf $(VENVS)/verl-newest $(VENVS)/trl-newest
	PLAUDIT_BIN=$(TARGET)/debug/plaudit python/tests/trainers/run.sh verl-newest trl-newest

# Judges behind real servers: verdicts in every form, and reward models, from tiny models that are made on the spot. SERVERS="litellm vllm-reward"
# runs some of them. vLLM takes 6 GB, and llama-cpp-python is built from source.
test-servers:
	python/venv.sh servers
	$(if $(filter transformers vllm vllm-reward,$(SERVERS)),python/venv.sh vllm)
	$(if $(filter llama-cpp-python,$(SERVERS)),python/venv.sh llama-cpp-python)
	$(if $(PLAUDIT_BIN),,$(BUILD))
	SERVERS="$(SERVERS)" PLAUDIT_BIN=$(or $(PLAUDIT_BIN),$(TARGET)/debug/plaudit) $(VENVS)/servers/bin/python -m pytest python/tests/servers

# Two real training runs of verl on the CPU, with plaudit's rewards: of single turns, and of an agent with a tool.
test-verl-e2e: develop
	python/venv.sh verl-0.9
	PYTHONPATH=$(CURDIR)/python PYTHON=$(CURDIR)/$(VENVS)/verl-0.9/bin/python examples/verl/cpu/run.sh
	SCORING=tools PYTHONPATH=$(CURDIR)/python PYTHON=$(CURDIR)/$(VENVS)/verl-0.9/bin/python examples/verl/cpu/run.sh

# The promise of at most 50 ms for 1 MB of hostile text, measured as it is shipped: optimised. Builds the engine's
# dependencies anew, so it is not part of `make test`; .ci/run runs it.
test-limits:
	$(CARGO) test --locked --release -p plaudit -p plaudit-instructions --no-fail-fast --test main hostile

# The sandbox in full: 1,000 endless programs, 100 fork bombs, 500 right programs on a busy host, in each isolation, as root also
# as an ordinary user. `make test` has smaller numbers of the same.
test-box:
	$(CARGO) test --locked --workspace --no-fail-fast --test main -- --ignored --test-threads 1 in_full

# The dashboard in Chromium, with the real service and the simulated judge behind it. Needs chromium, node and npm. ONLY='^name$$' runs one test.
test-browser:
	@for need in chromium node npm; do command -v $$need > /dev/null || missing="$$missing $$need"; done; \
	if [ -n "$$missing" ] && [ "$$PLAUDIT_TEST_ALL" != 1 ]; then echo "the tests of the dashboard, for want of$$missing" >> $${PLAUDIT_LEFT_OUT:-/dev/stdout}; else \
		$(BUILD) && cd $(WEB)/tests && npm ci --silent --no-audit --no-fund && \
		PLAUDIT_BIN=$(TARGET)/debug/plaudit node --test $(if $(ONLY),--test-name-pattern='$(ONLY)'); \
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

# The bill of materials that maturin has put into the wheels of dist, as a file beside them: dist/plaudit.cdx.json.
sbom:
	$(PYTHON) .ci/release.py sbom dist

# What CHANGELOG.md says of VERSION.
release-notes:
	$(PYTHON) .ci/release.py notes $(VERSION)

# The container image plaudit:local. Needs Docker.
image:
	docker build --tag plaudit:local .

# The image, started as compose.yaml and the manifests do: with a read-only root, as an ordinary user, without capabilities. With Docker
# it takes plaudit:local; as root with podman and runc it builds the last stage of the Dockerfile, by debootstrap where no base image can be
# pulled, and needs a built command.
test-image:
	python/venv.sh ops
	PLAUDIT_BIN=$(or $(PLAUDIT_BIN),$(TARGET)/release/plaudit) $(VENVS)/ops/bin/python -m pytest deploy/tests/image.py

# Known weaknesses, licences and sources of the dependencies. Installs cargo-deny and cargo-audit where they are missing.
audit:
	command -v cargo-deny > /dev/null || $(CARGO) install --locked cargo-deny
	command -v cargo-audit > /dev/null || $(CARGO) install --locked cargo-audit
	$(CARGO) deny check
	$(CARGO) audit
	$(CARGO) audit --file fuzz/Cargo.lock

# The wheels of all platforms that are published, in dist. A standard library that rustup cannot fetch is built from RUST_SRC.
wheels:
	rm -rf dist
	python/wheels.sh

# What is in those wheels, and that each scores, serves and runs the command in an environment that has nothing but numpy. One of
# another platform is run where WHEEL_PYTHONS says how, such as `--python 'aarch64=qemu-aarch64 -L /sysroot /sysroot/usr/bin/python3'`.
test-wheels:
	python/venv.sh tools
	$(PYTHON) python/wheels_test.py $(WHEEL_PYTHONS) dist/plaudit-*.whl

# The source distribution: dist/plaudit-*.tar.gz.
sdist:
	python/venv.sh tools
	rm -f dist/plaudit-*.tar.gz
	$(VENVS)/tools/bin/maturin sdist --out dist

# Builds the source distribution without the network, from its own contents and cargo's cache of crates, and scores with the result.
test-sdist: sdist
	$(CARGO) fetch --locked
	rm -rf $(TARGET)/sdist && mkdir -p $(TARGET)/sdist
	tar -xzf dist/plaudit-*.tar.gz -C $(TARGET)/sdist --strip-components 1
	cd $(TARGET)/sdist && CARGO_NET_OFFLINE=true CARGO_TARGET_DIR=$(TARGET) $(CURDIR)/$(VENVS)/tools/bin/maturin build --locked --profile dist --out wheels
	python/venv.sh wheel $(TARGET)/sdist/wheels/plaudit-*.whl
	cd $(TARGET) && $(CURDIR)/$(VENVS)/wheel/bin/plaudit score $(CURDIR)/examples/rollouts.jsonl --out sdist.jsonl

# The crates as crates.io gets them, each built from its package with the others' packages beside it.
package:
	$(CARGO) package --locked --workspace --exclude plaudit-python $(PACKAGE_FLAGS)

# Compiles the engine with no feature, with each one alone, and as it is by default; all crates with none, which is how the others pass
# them on; and all for macOS, where its standard library can be had.
check-features:
	$(CARGO) clippy --locked -p plaudit --lib --no-default-features -- -D warnings
	for feature in code huggingface instructions jieba math redis tiktoken tls redis,tls; do \
		$(CARGO) clippy --locked -p plaudit --lib --no-default-features --features $$feature -- -D warnings || exit 1; \
	done
	$(CARGO) clippy --locked -p plaudit --lib -- -D warnings
	$(CARGO) clippy --locked --workspace --exclude plaudit-python --no-default-features -- -D warnings
	$(CARGO) test --locked -p plaudit --lib --no-default-features reward_of_a_feature
	.ci/check-macos
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --workspace --exclude plaudit-python --all-features

# Writes THIRD-PARTY.txt anew: the licences of what is linked in. A test fails where it is out of date.
third-party:
	$(CARGO) fetch --locked
	$(PYTHON) python/third_party.py

# Writes docs/reference anew from the types and their doc comments; a test fails where it is out of date.
docs:
	UPDATE=1 $(CARGO) test --locked reference

# The documentation as a site in out/site. A link or an anchor that leads nowhere, and a page without a place in mkdocs.yml, fails it.
site:
	python/venv.sh site
	NO_MKDOCS_2_WARNING=1 $(VENVS)/site/bin/mkdocs build --strict

# The same at http://127.0.0.1:8000, built again when a page is saved.
site-serve:
	python/venv.sh site
	NO_MKDOCS_2_WARNING=1 $(VENVS)/site/bin/mkdocs serve --livereload

# RM-Gallery and plaudit side by side, by rules and by judges, then the command on a large file. The raw figures go to
# bench/runs.
bench:
	$(PYTHON) bench/run.py
	$(CARGO) run --release --locked -p plaudit --example turns -- bench/data
	$(PYTHON) bench/mathematics.py
	$(PYTHON) bench/instructions.py
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

# The fuzz targets, each for FUZZ_SECONDS. Needs `cargo install cargo-fuzz` and a nightly toolchain.
fuzz:
	for target in line recipe rules reply math; do \
		$(CARGO) +nightly fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) -max_len=65536 -timeout=5 || exit 1; \
	done

# Removes what was built.
clean:
	$(CARGO) clean
	rm -rf out dist bench/.venv bench/data $(VENVS) $(EXTENSION) $(WEB)/tests/node_modules deploy/tests/node_modules
