# Every target installs the Debian packages it needs and does not find (tools/install-deps.sh).
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 600
SOAK_SECONDS ?= 3600
# Options for bench/peers/run.py: --quick, --only aeron,pipe, …
PEERS_OPTIONS ?=
# Debian's pytest works only with Debian's python, which may not be the first one in PATH.
PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)
export PYTHONDONTWRITEBYTECODE = 1

CONFIGURE = tools/configure.sh
OWN_SOURCES = $(shell git ls-files -co --exclude-standard '*.hpp' '*.cpp')

.PHONY: help leat build serve clients bench-build check test demo bench bench-ipc bench-broker bench-peers bench-clients lint fmt fuzz soak install deb clean test-bare

help:
	@echo "make build    the executable, build/leat, and the C library, build/libleat.so"
	@echo "make demo     build, then show every record of three workloads arriving"
	@echo "make serve    build the broker, build/leat-serve, and build/leat-lightq"
	@echo "make clients  build the clients of other languages, into build/clients (CLIENTS=python,go: only these)"
	@echo "make check    after a change: tidy, unit tests, quick tests of the executable"
	@echo "make test     every test: g++ release, clang with ASan+UBSan and fuzzers, TSan, real processes"
	@echo "make test-bare  build on a bare Debian 12 and try the packages on another, as root; FULL=1: make test there"
	@echo "make bench    build leat-bench, then measure this machine and the log"
	@echo "make bench-ipc    every way two processes can talk, in all sizes, into bench/results"
	@echo "make bench-broker what goes through leat-serve, beside ZeroMQ alone and LightQ's tables; the figures in build/broker*.json"
	@echo "make bench-peers  other systems on the same workload, in turns with ours (bench/peers)"
	@echo "make bench-clients  what a record costs in each language, and pyzmq; the figures in build/clients.json"
	@echo "make fuzz     each fuzzer for FUZZ_SECONDS ($(FUZZ_SECONDS))"
	@echo "make soak     multi-failure tests for SOAK_SECONDS ($(SOAK_SECONDS)), kill and storm tests in between"
	@echo "make lint     clang-tidy;  make fmt  clang-format"
	@echo "make install  to PREFIX ($(PREFIX)), below DESTDIR;  make clean  remove build/"
	@echo "make deb      Debian packages in build/deb: leat, leat-bench, leat-serve, and the libraries'"

leat:
	@tools/install-deps.sh build
	@$(CONFIGURE) release
	@cmake --build build --parallel $(JOBS) --target leat_cli

build: leat
	@cmake --build build --parallel $(JOBS) --target leat_c_shared leat_c_static

serve: build
	@tools/install-deps.sh serve
	@$(CONFIGURE) release -DLEAT_SERVE=ON
	@cmake --build build --parallel $(JOBS) --target leat_serve leat_lightq \
	  leat_lightq_shared leat_lightq_static

clients: build
	@tools/install-deps.sh clients
	@tools/clients.sh

bench-build: build
	@tools/install-deps.sh bench
	@$(CONFIGURE) release -DLEAT_BENCH=ON
	@cmake --build build --parallel $(JOBS) --target leat_cli leat_bench

demo: leat
	build/leat demo

bench: bench-build
	build/leat bench limits
	build/leat bench log
	build/leat bench group --peers
	build/leat bench latency
	build/leat bench ipc
	build/leat bench crash

# Makes the results in the repository. Takes half an hour and needs a quiet machine. Each run that
# measures latencies sends 10,000 messages, because p99.99 needs that many.
bench-ipc: SIZES = sizes=1,100,1KiB,16KiB,64KiB
bench-ipc: SWEEP = build/leat bench ipc --pin 0,1 --out bench/results
bench-ipc: bench-build
	$(SWEEP) --sweep $(SIZES) --pattern pingpong -c 50000
	$(SWEEP) --sweep $(SIZES) --pattern oneway
	$(SWEEP) --sweep sizes=100 --rate 10000 -c 50000
	build/leat bench report bench/results --html bench/results/report.html --svg bench/results/pictures
	tools/readme_tables.py

bench-broker: bench-build serve
	build/leat bench broker --json=build/broker.json
	build/leat bench broker --lightq-tables --runs 3 --json=build/broker-lightq.json
	build/leat bench broker --disturbed --runs 3 --json=build/broker-disturbed.json

bench-peers: bench-build
	@tools/install-deps.sh peers
	@mkdir -p build/peers
	@$(PYTHON) bench/peers/run.py --json build/peers/results.json $(PEERS_OPTIONS)

# docs/clients.md says how the table there is made of it.
bench-clients: bench-build clients
	build/leat bench clients --peers --json=build/clients.json

check:
	@tools/install-deps.sh test
	@$(PYTHON) tools/run_tests.py --jobs $(JOBS) --only check

test:
	@tools/install-deps.sh test
	@$(PYTHON) tools/run_tests.py --jobs $(JOBS)

# Not part of `make test`: it installs two systems. FULL=1 takes as long as `make test` longer.
test-bare:
	@tools/install-deps.sh bare
	@tools/test_bare.sh $(if $(FULL),full)

fuzz:
	@tools/install-deps.sh test
	@$(CONFIGURE) asan
	@cmake --build build/asan --parallel $(JOBS) --target fuzzers
	@for fuzzer in $$(find build/asan -maxdepth 1 -name 'fuzz_*' -type f -executable); do \
	  echo "$$fuzzer for $(FUZZ_SECONDS) s"; \
	  tools/fuzz.sh $$fuzzer $(FUZZ_SECONDS) || exit 1; \
	done

soak:
	@tools/install-deps.sh test
	@$(CONFIGURE) test
	@cmake --build build --parallel $(JOBS)
	@PYTHON=$(PYTHON) tools/soak.sh $(SOAK_SECONDS)

lint:
	@tools/install-deps.sh lint
	@$(CONFIGURE) asan
	@cmake --build build/asan --parallel $(JOBS) --target leat_version
	git ls-files -co --exclude-standard '*.cpp' | \
	  xargs -P $(JOBS) -n 1 clang-tidy-16 --quiet -p build/asan --warnings-as-errors='*'

fmt:
	@tools/install-deps.sh lint
	clang-format-16 -i $(OWN_SOURCES)

install: bench-build serve
	@cmake --build build --target leat_pages
	cmake --install build --prefix $(PREFIX)
	@tools/after_install.sh build/install_manifest.txt

# Whoever builds them is named in DEBFULLNAME and DEBEMAIL, as for Debian's own tools.
deb: bench-build serve
	@tools/install-deps.sh deb
	@cmake --build build --target leat_pages
	@rm -rf build/deb
	@cpack --config build/CPackConfig.cmake
	@rm -rf build/deb/_CPack_Packages

clean:
	rm -rf build
