# What people do with this repository. Needs a Rust toolchain, python3 and make; nothing else.

CARGO ?= cargo
PYTHON ?= python3
RECIPE ?= quickstart
FUZZ_SECONDS ?= 60

.PHONY: demo test check docs bench bench-stream fuzz clean

# Builds the command, scores the shipped example by rules and by the embedded judge, and explains one number. No network once the crates are there, and no key.
demo:
	$(CARGO) build --release --locked -p plaudit-cli
	@mkdir -p out
	./target/release/plaudit score examples/rollouts.jsonl --recipe $(RECIPE) --out out/results.jsonl --summary out/summary.json
	./target/release/plaudit score examples/rollouts.jsonl --recipe overlap --state out/state --out out/judged.jsonl
	./target/release/plaudit explain g001-1 --state out/state

# Every test there is.
test: check
	$(CARGO) test --locked --workspace
	$(PYTHON) examples/make_rollouts.py --check

# What a test cannot see: the format and the lints.
check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

# Writes docs/reference anew from the types and their doc comments; a test fails where it is out of date.
docs:
	UPDATE=1 $(CARGO) test --locked --workspace reference

# RM-Gallery and plaudit side by side, by rules and by judges, then the command on a large file. The raw figures go to
# bench/runs.
bench:
	$(PYTHON) bench/run.py
	$(PYTHON) bench/judges.py
	$(PYTHON) bench/stream.py

# Needs `cargo install cargo-fuzz` and a nightly toolchain.
fuzz:
	for target in line recipe rules reply; do \
		$(CARGO) +nightly fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) -max_len=65536 -timeout=5 || exit 1; \
	done

clean:
	$(CARGO) clean
	rm -rf out bench/.venv bench/data
