# make demo   the scheduler on a simulated machine: a table, a page, and a recorded program
# make test   all tests
# make lint   formats, lints, licences
# make bench  speed, beside other cache simulators
# make book   the documentation as HTML (needs mdbook)

CARGO ?= cargo
OUT := target/demo

.PHONY: demo test lint bench book build packages

packages:
	@command -v $(CARGO) >/dev/null || { echo "Please install Rust: https://rustup.rs or your system's cargo"; exit 1; }
	@tools/install-packages cc=gcc qemu-x86_64=qemu-user valgrind=valgrind

build: packages
	$(CARGO) build --release --locked -p hearth

demo: build
	@mkdir -p $(OUT)
	@tools/demo target/release/hearth $(OUT)

test: packages
	$(CARGO) test --workspace --locked

lint:
	@tools/install-packages clang-format=clang-format
	$(CARGO) fmt --all --check
	clang-format --dry-run --Werror bpf/*.[ch] bpf/native/*.h bpf/native/bpf/*.h
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	@command -v cargo-deny >/dev/null || $(CARGO) install cargo-deny --locked
	$(CARGO) deny check licenses bans sources

bench: packages
	$(CARGO) run --release --locked -q -p hearth-lab --example bench

book:
	@command -v mdbook >/dev/null || $(CARGO) install mdbook --locked
	mdbook build docs
