# make demo   what a scheduler that knows caches would do for a program of yours: tables and a page
# make test   all tests that every change has to pass
# make lint   formats, lints, licences
# make selftests  the kernel's own tests of what a scheduler must not break, in a guest; SUITES=cgroup,cpu: these
# make build  the commands, target/release/hearth and target/release/hearth-lab
# make static the administrator's command as one small file: target/static/hearth
# make deb    a Debian package of it: target/deb/hearth_*.deb
# make python  tests of the Python package, a cluster among them, in an environment of its own: target/python
# make monitoring  the Grafana dashboard and the alerts, on real metrics in a real Prometheus
# make book   the documentation as HTML: target/book
# make bench  speed, beside other cache simulators; then the page planner's
# make bench-kernel  instructions of a real kernel's scheduler, beside ours
# make bench-field  load programs of the field in a real kernel, under its own scheduler and under Hearth
# make bench-parallel  parallel programs that share this machine, with and without hearth exec
# make bench-fragments  programs whose threads say which data they work on, with and without
# make bench-isolation  programs beside quiet and beside noisy neighbours, with and without cache-fair shares
# make bench-full-system  every scheduler on programs that people run, in real kernels over simulated caches
#             demo and all benches with SMALL=1: just enough to see that everything works
# make check-all  what CI runs a part of each time: every bench small, emulation, mutants, stress, ...

CARGO ?= cargo
# As cargo has it: relative to where make runs.
TARGET := $(or $(CARGO_TARGET_DIR),target)
RELEASE := $(TARGET)/release
SMALL ?=
export CARGO

.PHONY: demo test selftests lint bench bench-kernel bench-field bench-parallel bench-fragments bench-isolation bench-full-system \
	book build python monitoring build-tests examples static deb check-all packages lab-packages

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
	$(CARGO) build --release --locked --workspace
	@ln -sfn $(CURDIR)/python/hearth-sweep $(RELEASE)/hearth-sweep

# Programs that measure or show something and are no command.
examples: packages
	$(CARGO) build --release --locked --workspace --examples

# For any Linux of this architecture.
TRIPLE := $(shell uname -m)-unknown-linux-gnu
STATIC := $(TARGET)/static/hearth

static: packages
	RUSTFLAGS='-C target-feature=+crt-static' $(CARGO) build --profile dist --locked -p hearth --target $(TRIPLE)
	@mkdir -p $(dir $(STATIC))
	@cp $(TARGET)/$(TRIPLE)/dist/hearth $(STATIC).new && mv $(STATIC).new $(STATIC)

# Where crates/hearth/Cargo.toml looks for what it packs, wherever cargo builds.
DEB := target/deb

deb: static
	@rm -rf $(DEB) && mkdir -p $(DEB)
	@cp $(STATIC) $(DEB)/hearth
	$(STATIC) man $(DEB)/man
	$(STATIC) completions bash >$(DEB)/hearth.bash
	$(STATIC) completions zsh >$(DEB)/_hearth
	$(STATIC) completions fish >$(DEB)/hearth.fish
	tools/with-tools cargo-deb cargo-deb --quiet --locked -p hearth --no-build --no-strip --output $(DEB)/
	dpkg-deb --contents $(DEB)/hearth_*.deb

OUT := $(TARGET)/demo

# What the demo does not run, the real kernel's half, is not built for it.
demo: lab-packages
	@echo "Building the simulated machine and its lab: one to two minutes the first time"
	$(CARGO) build --release --locked --workspace --bin hearth-lab
	@mkdir -p $(OUT)
	@tools/demo $(RELEASE)/hearth-lab $(OUT) $(if $(SMALL),--small)

build-tests: packages
	$(CARGO) build --locked --workspace --all-targets

# Without a guest the kernel tests are skipped, and the last lines say why; with
# HEARTH_REQUIRE_GUEST=1 that is a failure.
test: packages
	@tools/install-packages $(PARALLEL)
	@tools/install-guest || [ -z "$$HEARTH_REQUIRE_GUEST" ]
	@tools/test

SUITES ?=

selftests: examples static
	@tools/install-packages python3=python3
	@tools/install-guest selftests
	@tools/selftests $(RELEASE)/examples/boot $(STATIC) $(TARGET)/selftests $(if $(SUITES),--suites $(SUITES))

# Every slice; `tools/slices NAME...` runs those that are named.
check-all: packages
	@tools/install-packages $(PARALLEL)
	@tools/install-guest
	@tools/slices --all

C_SOURCES = $(shell git ls-files '*.c' '*.h' | grep -v '^bpf/linux/vmlinux.h')

lint: packages
	@tools/install-packages clang-format=clang-format
	$(CARGO) fmt --all --check
	clang-format --dry-run --Werror $(C_SOURCES)
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	tools/with-tools cargo-deny cargo-deny check licenses bans sources

BENCH := $(TARGET)/bench

bench: build examples
	@tools/install-packages python3=python3
	@python3 -c 'import ensurepip' 2>/dev/null || tools/install-packages no-venv=python3-venv no-headers=python3-dev
	@test -x $(BENCH)/venv/bin/python || python3 -m venv $(BENCH)/venv
	@$(BENCH)/venv/bin/python -c 'import cachesim' 2>/dev/null || $(BENCH)/venv/bin/pip install -q setuptools pycachesim==0.3.1
	@mkdir -p $(BENCH)
	find crates -name '*.rs' | LC_ALL=C sort | xargs cat >$(BENCH)/sources
	$(RELEASE)/hearth-lab record -o $(BENCH)/sort.trace -- sort --parallel=1 $(BENCH)/sources >$(BENCH)/sorted
	$(RELEASE)/examples/bench traces/sort-sources.trace $(BENCH) $(RELEASE)/hearth-lab \
		$(if $(SMALL),traces/sort-sources.trace,$(BENCH)/sort.trace) $(if $(SMALL),--small)
	$(BENCH)/venv/bin/python tools/bench-peers $(BENCH)
	tools/bench-cachegrind $(BENCH)
	$(RELEASE)/examples/planner
	$(RELEASE)/examples/topology

bench-kernel: examples static
	@tools/bench-kernel --hearth $(STATIC) $(if $(SMALL),--small)

bench-field: examples static
	@tools/install-packages python3=python3
	@tools/install-guest field
	@tools/bench-field $(RELEASE)/examples/boot $(STATIC) $(BENCH)/field$(if $(SMALL),-small --small)

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

# Then cache-fair shares, and the simulated kernel beside a real one.
bench-full-system: build
	@tools/install-packages python3=python3 $(if $(SMALL),cc=build-essential,$$(tools/bench-schedulers --packages))
	@tools/install-guest
	@$(if $(SMALL),,tools/install-peers scx_bpfland scx_cosmos scx_p2dq scx_rusty)
	@tools/bench-schedulers $(RELEASE)/hearth $(BENCH)/schedulers $(if $(SMALL),--set small)
	@tools/classes $(RELEASE)/hearth $(BENCH)/classes $(if $(SMALL),--small)
	@tools/conformance $(RELEASE)/hearth $(BENCH)/conformance $(if $(SMALL),--small)

PYTHON := $(TARGET)/python

# Its tests run the laboratory's command.
python: build
	@python3 -c 'import ensurepip' 2>/dev/null || tools/install-packages no-venv=python3-venv
	@test -x $(PYTHON)/bin/python || python3 -m venv $(PYTHON)
	@$(PYTHON)/bin/pip install -q --disable-pip-version-check -e 'python[test]'
	HEARTH_BIN=$(abspath $(RELEASE)) $(PYTHON)/bin/pytest -q python/tests

MONITORING := $(TARGET)/monitoring

monitoring: build
	$(CARGO) build --release --locked --workspace --example boot
	@tools/install-guest
	@tools/install-packages promtool=prometheus
	@python3 -c 'import ensurepip' 2>/dev/null || tools/install-packages no-venv=python3-venv
	@test -x $(MONITORING)/bin/python || python3 -m venv $(MONITORING)
	@$(MONITORING)/bin/pip install -q --disable-pip-version-check 'grafana-foundation-sdk==1769699998!10.1.0'
	@$(MONITORING)/bin/python packaging/monitoring/dashboard.py >$(MONITORING)/dashboard.json
	@tools/check-monitoring $(RELEASE)/examples/boot $(RELEASE)/hearth $(MONITORING)/dashboard.json

book:
	tools/with-tools mdbook mdbook build docs
