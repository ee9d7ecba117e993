# make demo   the scheduler on a simulated machine: a table, a page, and a recorded program
# make test   all tests
# make lint   formats, lints, licences
# make bench  speed, beside other cache simulators; then the page planner's
# make static the command for the real kernel as one file: target/static/.../hearth
# make deb    a Debian package of it: target/deb/hearth_*.deb
# make bench-kernel  instructions of a real kernel's scheduler, beside ours
# make bench-parallel  parallel programs that share this machine, with and without hearth exec
# make bench-fragments  programs whose threads say which data they work on, with and without
# make bench-isolation  programs beside quiet and beside noisy neighbours, with and without cache-fair shares
# make bench-full-system  real programs in real kernels over simulated caches, under four schedulers
#             demo and all benches with SMALL=1: just enough to see that everything works
# make book   the documentation as HTML (needs mdbook)

CARGO ?= cargo
OUT := target/demo
SMALL ?=

.PHONY: demo test lint bench bench-kernel bench-parallel bench-fragments bench-isolation bench-full-system book build static deb packages lab-packages

packages: lab-packages
	@tools/install-packages valgrind=valgrind clang-19=clang-19 pkg-config=pkg-config \
		/usr/include/libelf.h=libelf-dev /usr/include/zlib.h=zlib1g-dev

# Runtimes of parallel programs, for the tests of hearth exec and for what it is measured with.
PARALLEL := /usr/lib/llvm-19/lib/libomp.so=libomp-19-dev /usr/include/oneapi/tbb/version.h=libtbb-dev \
	/usr/lib/$(shell uname -m)-linux-gnu/libopenblas.so=libopenblas-dev \
	/usr/lib/$(shell uname -m)-linux-gnu/libblis.so=libblis-dev

# What the simulated machine needs, and recordings for it. Without a recorder there is valgrind's.
lab-packages:
	@command -v $(CARGO) >/dev/null || { echo "Please install Rust: https://rustup.rs or your system's cargo"; exit 1; }
	@tools/install-packages cc=build-essential
	@tools/install-recorder || tools/install-packages valgrind=valgrind

build: packages
	$(CARGO) build --release --locked -p hearth -p hearth-emulate-plugin

# One file without the simulated machine, which runs on any Linux of this architecture. Small, for
# the process that holds the scheduler stays in memory.
TARGET := $(shell uname -m)-unknown-linux-gnu
STATIC := target/static/$(TARGET)/release/hearth

static: packages
	CARGO_PROFILE_RELEASE_OPT_LEVEL=s CARGO_PROFILE_RELEASE_LTO=fat CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1 \
		RUSTFLAGS='-C target-feature=+crt-static' $(CARGO) build --release --locked -p hearth \
		--no-default-features --features linux --target $(TARGET) --target-dir target/static

DEB := target/deb

deb: static
	@command -v cargo-deb >/dev/null || $(CARGO) install cargo-deb --locked
	@rm -rf $(DEB) && mkdir -p $(DEB)
	strip -o $(DEB)/hearth $(STATIC)
	$(STATIC) man $(DEB)/man
	$(STATIC) completions bash >$(DEB)/hearth.bash
	$(STATIC) completions zsh >$(DEB)/_hearth
	$(STATIC) completions fish >$(DEB)/hearth.fish
	$(CARGO) deb --quiet --locked -p hearth --no-build --no-strip --output $(DEB)/
	dpkg-deb --contents $(DEB)/hearth_*.deb

# What the demo does not run, the real kernel's half, is not built for it.
demo: lab-packages
	@echo "Building the simulated machine and its lab, some 150 parts: one to three minutes the first time"
	$(CARGO) build --release --locked -p hearth --no-default-features --features lab
	@mkdir -p $(OUT)
	@tools/demo target/release/hearth $(OUT) $(if $(SMALL),--small)

# Without a guest the kernel tests are skipped, and the last line says why; with
# HEARTH_REQUIRE_GUEST=1 that is a failure.
test: packages static
	@tools/install-packages $(PARALLEL)
	@tools/install-guest || [ -z "$$HEARTH_REQUIRE_GUEST" ]
	@CARGO="$(CARGO)" HEARTH_STATIC=$(STATIC) tools/test

lint: packages
	@tools/install-packages clang-format=clang-format
	$(CARGO) fmt --all --check
	clang-format --dry-run --Werror bpf/*.[ch] bpf/observe/*.[ch] bpf/linux/scx.h bpf/native/*.h bpf/native/bpf/*.h \
		crates/hearth/benches/programs/*.c crates/hearth-follow/preload/*.[ch] crates/hearth-follow/benches/programs/*.c \
		crates/hearth-follow/tests/programs/*.c* crates/hearth-native/src/*.c crates/hearth-hints/include/*.h crates/hearth-hints/src/*.[ch] \
		crates/hearth-hints/benches/programs/*.[ch] crates/hearth-hints/tests/programs/*.c \
		crates/hearth-trace/plugin/*.[ch] \
		crates/hearth-guest/programs/*.[ch] crates/hearth-guest/programs/tasks/*.[ch] crates/hearth-guest/programs/region/*.[ch] \
		crates/hearth-guest/programs/counters/*.[ch] \
		crates/hearth-emulate-plugin/programs/*.c
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	@command -v cargo-deny >/dev/null || $(CARGO) install cargo-deny --locked
	$(CARGO) deny check licenses bans sources

BENCH := target/bench

bench: packages lab-packages
	@tools/install-packages python3=python3
	@python3 -c 'import ensurepip' 2>/dev/null || tools/install-packages no-venv=python3-venv no-headers=python3-dev
	@test -x $(BENCH)/venv/bin/python || python3 -m venv $(BENCH)/venv
	@$(BENCH)/venv/bin/python -c 'import cachesim' 2>/dev/null || $(BENCH)/venv/bin/pip install -q setuptools pycachesim==0.3.1
	$(CARGO) build --release --locked -q -p hearth --no-default-features --features lab
	@mkdir -p $(BENCH)
	find crates -name '*.rs' | LC_ALL=C sort | xargs cat >$(BENCH)/sources
	target/release/hearth record -o $(BENCH)/sort.trace -- sort --parallel=1 $(BENCH)/sources >$(BENCH)/sorted
	$(CARGO) run --release --locked -q -p hearth-lab --example bench -- traces/sort-sources.trace $(BENCH) \
		target/release/hearth $(if $(SMALL),traces/sort-sources.trace,$(BENCH)/sort.trace) $(if $(SMALL),--small)
	$(BENCH)/venv/bin/python tools/bench-peers $(BENCH)
	tools/bench-cachegrind $(BENCH)
	$(CARGO) run --release --locked -q -p hearth-policy --example planner

bench-kernel: packages static
	@tools/bench-kernel $(if $(SMALL),--small)

# Go and a JVM are measured where they are; the rest is installed.
bench-parallel: packages static
	@tools/install-packages python3=python3 $(PARALLEL)
	@tools/bench-parallel $(STATIC) $(BENCH)/parallel $(if $(SMALL),--small)

bench-fragments: packages
	@tools/install-packages python3=python3
	@tools/bench-fragments $(BENCH)/fragments $(if $(SMALL),--small)

# Redis is measured where it is. Shares and Hearth's scheduler take root, and are left out without.
bench-isolation: packages static
	@tools/install-packages python3=python3
	@tools/bench-isolation $(STATIC) $(BENCH)/isolation $(if $(SMALL),--small)

# Programs are measured where they are installed. Then cache-fair shares, and the simulated kernel beside a real one.
bench-full-system: build
	@tools/install-packages python3=python3
	@tools/install-guest
	@tools/full-system target/release/hearth $(BENCH)/full-system $(if $(SMALL),--small)
	@tools/classes target/release/hearth $(BENCH)/classes $(if $(SMALL),--small)
	@tools/conformance target/release/hearth $(BENCH)/conformance $(if $(SMALL),--small)

# A debug build of mdbook is done much sooner, and fast enough.
book:
	@command -v mdbook >/dev/null || $(CARGO) install mdbook --locked --debug
	mdbook build docs
