# Two commands do everything: `make demo` shows the experiments, `make test` checks the whole.

SHELL := /bin/bash
SWIFT ?= swift
# Dozens of tests trap on purpose; the runtime would take a second of both processors for a backtrace of each.
export SWIFT_BACKTRACE := enable=no
# The tests that run at a time. If all began at once, those that wait for a process would have their turn late, and while
# one that has ended is not asked for, Swift Testing looks for it without a pause.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH := $(shell echo $$((2 * $$(nproc))))
SOURCES := Package.swift Sources Tests Examples Scripts Benchmarks/Package.swift Benchmarks/Sources
# Lines for debuggers would take a sixth of the time of a build; with DEBUG_INFO=dwarf they are there.
DEBUG_INFO ?= none
OPTIONS = -debug-info-format $(DEBUG_INFO) $(WHOLE_MODULES)
# A build from nothing takes a quarter to a third less processor time by whole modules, which are read once. A
# later one compiles all of a changed module; with WHOLE_MODULES= it compiles what has changed.
WHOLE_MODULES ?= $(addprefix -Xswiftc ,-disable-batch-mode -whole-module-optimization -num-threads 2 \
  -no-emit-module-separately-wmo)
BUILD = $(SWIFT) build $(OPTIONS)
# The adapters are built only with their trait, and aside: SwiftPM compiles everything again when the traits change.
ADAPTED_BUILD = $(BUILD) --traits Adapters --scratch-path .build-adapters
# There are no XCTest cases; the empty run of XCTest would leak, and LeakSanitizer would say so.
TEST = $(SWIFT) test --disable-xctest $(OPTIONS)
SANITIZED_TEST = $(TEST) --sanitize=$(if $(findstring tsan,$@),thread,address) --scratch-path .build-$@
# The programs are a package of their own, which uses what is public.
EXAMPLES_BUILD = $(SWIFT) build --package-path Examples $(OPTIONS)
EXAMPLES_TEST = $(SWIFT) test --package-path Examples --disable-xctest $(OPTIONS)
RELEASE_EXAMPLES = $(SWIFT) build --package-path Examples -c release
ROOT = $$([ "$$(id -u)" = 0 ] || echo sudo)
# What crosses threads, and what touches C; each target is compiled for one of them. The rest, models of one thread, the
# simulation's threads, of which one runs at a time, races under AddressSanitizer and the examples are for the whole runs.
tsan-short: TARGETS = DriverTests RunLoopKitTests
asan-short: TARGETS = RunLoopUnixTests RunLoopTLSTests
SHORT_SKIPPED = ModelTests$(if $(findstring asan,$@),|StopRaceTests|PostStressTests)
# All tests, those of the adapters too.
tsan asan: OPTIONS += --traits Adapters
DEBUG_BIN = $$($(SWIFT) build --show-bin-path)
ADAPTED_BIN = $$($(ADAPTED_BUILD) --show-bin-path)
EXAMPLES_BIN = $$($(EXAMPLES_BUILD) --show-bin-path)

.PHONY: same-bytes planted-faults explore-corpus bench check-costs record-costs bench-deps costs-deps bench-ttlstore bench-threads bench-protocols bench-streams fuzz stress chaos kill-ttlstore
.PHONY: demo test check deps build lint format tsan asan tsan-short asan-short compile-checks dependent-checks linking-checks check-api record-api docs help

help:
	@echo "make demo    the experiments: each beside its document, on virtual time and on the real clock, and as a page"
	@echo "make test    lint, and the tests of the loop, of what it waits for, and of virtual time"
	@echo "make check   the library's other tests, longer random tests, what must and must not compile, the programs in the"
	@echo "             pages, the programs of Examples and their tests, the reference, the public interface, what a dependent"
	@echo "             fetches, what the contributors' pages claim, short sanitizer runs, costs"
	@echo "make format  formats the sources        make lint  checks the format"
	@echo "make bench   RunLoopKit beside other event loops; QUICK=1 PEERS=… WORKLOADS=… REPETITIONS=… RUNS=…"
	@echo "make docs    the reference of all products, to .build/docs    make docs-serve  shows it"
	@echo "make beside-checks  programs beside SwiftNIO and async-http-client, and what a way between threads costs"
	@echo "make guest-checks   a run loop as a guest of libuv, GLib and Foundation; SEEDS=…"
	@echo "make others-checks  tests of swift-async-algorithms and swift-service-lifecycle, and SwiftNIO's idle handler, on"
	@echo "             simulated hosts; RUNS=… SEED=…"
	@echo "make protocols-checks  gRPC and Hummingbird's router on RunLoopNIO, over loopback and simulated; RUNS=… SEED=…"
	@echo "make check-api    compares the public interface with the folder API, and with the last version"
	@echo "make record-api   records the public interface in the folder API"
	@echo "make check-costs  counts instructions, allocations and system calls   make record-costs  records them"
	@echo "make bench-ttlstore  TTLStore beside redis-server; CPUS=0 has them share a processor; ROUNDS=… REQUESTS=…"
	@echo "make bench-threads   EchoServer and TTLStore beside others, with one thread and with two; ROUNDS=…"
	@echo "make bench-protocols SwiftNIO's handlers on run loops beside SwiftNIO's own event loops; ROUNDS=… LOADS=…"
	@echo "make bench-streams   echo by connections beside other loops, and idle memory; ROUNDS=… SIZES=… CONNECTIONS=… MODES=…"
	@echo "make model   the mailbox and the pass, checked by spin, also with planted faults; a minute and a half"
	@echo "make fuzz    four minutes of fuzzing of TTLStore's parser and loaders, of framings and of PEM"
	@echo "make record-checks  TTLStore, Cron, Proxy and Web under load, recorded and repeated; REQUESTS=…"
	@echo "make kill-ttlstore  TTLStore killed six hundred times under load"
	@echo "make stress  five million calls raced by threads that stop what is called; loops that end; tasks on them"
	@echo "make chaos   ten minutes of connections whose peers cut, reset, drip, rest and lie; SECONDS=…"
	@echo "make links   conversations over a real link and over a simulated one, compared; needs root"
	@echo "make planted-faults  faults in TTLStore, Cron and Raft, and the seeds and schedules that find them"
	@echo "make gtk-demo   a window of GTK in which a script drags: the timers of the default mode stop"
	@echo "make wayland-demo   display links in the frames of a Wayland compositor"
	@echo "make web-tests   the example Web: simulated, as a process, and under attack"
	@echo "make web-same-bytes  a thousand processes of a simulated day of Web"
	@echo "make same-bytes  ten thousand runs of one simulated minute, and of one exploration; RUNS=…"
	@echo "make explore-corpus  how soon exploration finds planted bugs; some hours, or SCHEDULES=…"
	@echo "make tsan    tests under ThreadSanitizer  make asan  tests under AddressSanitizer"

# Installs what a fresh Debian or Ubuntu lacks.
deps:
	@{ pkg-config --exists libevent_core 'openssl >= 3' && command -v redis-cli openssl; } > /dev/null 2>&1 || { \
	  $(ROOT) apt-get update -qq && \
	  $(ROOT) apt-get install -y -qq libevent-dev libssl-dev openssl pkg-config redis-tools; }

# The same for the adapters.
.PHONY: adapter-deps
adapter-deps: deps
	@pkg-config --exists glib-2.0 || { $(ROOT) apt-get update -qq && $(ROOT) apt-get install -y -qq libglib2.0-dev; }

# The programs for debugging are built in a third of the time, and virtual time is as exact in them.
demo: PAGE = $(CURDIR)/Examples/.build/experiments.html
demo: deps
	EXAMPLE_TARGETS="experiments Scenarios TTLStore RecordOptions" $(EXAMPLES_BUILD)
	@bin=$(EXAMPLES_BIN) && set -e; \
	$$bin/experiments run --all --page $(PAGE); \
	echo; echo "The same on the real clock, ten times as fast:"; echo; \
	$$bin/experiments run X4 X5 X6 X8 X10 X11 --clock real --scale 0.1; \
	echo; echo "X5 as a timeline:"; echo; \
	$$bin/experiments play X5; \
	echo; echo "All kinds of timers side by side:"; echo; \
	$$bin/experiments compare; \
	echo; echo "A daemon whose times to live are timers, and a client of the Redis protocol:"; echo; \
	Examples/TTLStore/demo $$bin; \
	echo; echo "The experiments as timelines beside their documents: file://$(PAGE)"

test: deps lint first-build
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=target other-tests loop-tests system-tests

# The tests of simulated machines, explorations, records, calendars and the console take two fifths of the time:
# `make check` has them, and those of the adapters, which are empty without their trait.
LATER_TESTS = RunLoopHostsTests RunLoopExplorationTests RunLoopTestingTests RunLoopRecordingTests RunLoopCalendarTests \
  RunLoopConsoleTests
ADAPTERS_TESTS = AdapterTests RunLoopNIOTests RunLoopGLibTests
FIRST_TESTS = $(filter-out $(LATER_TESTS) $(ADAPTERS_TESTS),$(notdir $(wildcard Tests/*Tests)))
.PHONY: first-build built-tests adapted-tests
first-build:
	TEST_TARGETS="$(FIRST_TESTS)" $(BUILD) --build-tests
built-tests:
	$(BUILD) --build-tests
adapted-tests: adapter-deps
	$(ADAPTED_BUILD) --build-tests

# All at once: most tests wait for something, and a process runs about two at a time on two processors.
SYSTEM_TESTS = RunLoopUnixTests|RunLoopTLSTests
LOOP_TESTS = RunLoopKitTests|DriverTests
# Explorations that start dozens of test processes, or take ten seconds of processor time, are for `make check`.
LONG_TESTS = RunLoopExplorationTests.ProcessTests|RunLoopTestingTests.ExploreTests|CauseTests/trap|MarkTests/trap|CampaignTests/processes|StrategyTests|ExhaustiveTests|ShrinkingTests|CrashConsistencyTests
empty :=
any = $(subst $(empty) ,|,$(strip $(1)))
.PHONY: system-tests loop-tests other-tests later-tests
system-tests: CHOICE = --filter '$(SYSTEM_TESTS)'
loop-tests: CHOICE = --filter '$(LOOP_TESTS)'
other-tests: CHOICE = --skip '$(SYSTEM_TESTS)|$(LOOP_TESTS)'
later-tests: CHOICE = --filter '$(call any,$(LATER_TESTS))' --skip '$(LONG_TESTS)'
later-tests: built-tests
system-tests loop-tests other-tests later-tests:
	@$(call logged,$(DEBUG_BIN)/RunLoopKitPackageTests.xctest --testing-library swift-testing $(CHOICE),.build/$@.log)

# Runs tests, and says at the end what has failed.
define logged
set -o pipefail; $(1) 2>&1 | tee $(2) || { echo "What failed, once more:"; grep '✘' $(2); exit 1; }
endef

check: deps costs-deps adapter-deps
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target check-costs checks adapted-checks tsan-short asan-short

# Two builds would wait for each other in one folder: the library's here, and there the adapters' and the programs'.
LIBRARY_CHECKS = check-claims probe-checks fiber-checks later-tests deep-tests dependent-checks linking-checks fuzzers
ADAPTED_CHECKS = adapter-tests compile-checks docs check-api examples web-tests gtk-checks wayland-checks
.PHONY: checks adapted-checks
checks:
	@set -e; for check in $(LIBRARY_CHECKS); do $(MAKE) --no-print-directory $$check; done
adapted-checks:
	@set -e; for check in $(ADAPTED_CHECKS); do $(MAKE) --no-print-directory $$check; done

# The tests of the adapters. Without the trait they are empty.
.PHONY: adapter-tests
adapter-tests: adapted-tests
	@$(call logged,$(ADAPTED_BIN)/RunLoopKitPackageTests.xctest --testing-library swift-testing --filter '$(call any,$(ADAPTERS_TESTS))',.build-adapters/$@.log)

compile-checks: adapted-tests
	Tests/compile-checks $(ADAPTED_BIN)

# Random tests that `make test` runs with few seeds, and tests that it leaves out.
DEEP_TESTS = TimerQueueModelTests|TimerSourceModelTests|PassModelTests|LoopModelTests|ScopeModelTests|RateLimiterTests|PlaceTests/late|HashIndexTests|BlockModelTests|$(LONG_TESTS)
.PHONY: deep-tests
deep-tests: export SEEDS = 24
deep-tests: export SCHEDULES = 5000
deep-tests: export LIVES = 2500
deep-tests: built-tests
	@$(call logged,$(DEBUG_BIN)/RunLoopKitPackageTests.xctest --testing-library swift-testing --filter '$(DEEP_TESTS)',.build/$@.log)

# The public interface of every product, beside what is recorded in the folder API.
check-api record-api: products
	@mkdir -p .build
	@Scripts/symbol-graphs $(ADAPTED_BIN) .build/symbol-graphs > /dev/null
	@$(SWIFT) Scripts/list-api.swift .build/symbol-graphs $(if $(findstring record,$@),API,.build/API)
	@$(if $(findstring record,$@),,diff -rU0 API .build/API || { echo "make record-api records the change"; exit 1; })
	@Scripts/version-change

# What the products consist of, without programs and tests.
PRODUCTS = $(shell awk -F'"' '/[.]library/ { print $$2 }' Package.swift)
.PHONY: products
products: adapter-deps
	@set -e; for product in $(PRODUCTS); do $(ADAPTED_BUILD) --target $$product; done

# The site of all products, for any server of files: guides, and every public symbol.
docs: products
	@mkdir -p .build
	Scripts/docs $(ADAPTED_BIN) .build/docs
	@echo "The reference is in .build/docs. Its pages are loaded over HTTP: make docs-serve shows them."

# Three of its pages in a headless browser, as wide as on a desktop and on a phone; the pictures are kept.
.PHONY: docs-screenshots
docs-screenshots:
	@[ -e .build/docs/index.html ] || $(MAKE) --no-print-directory docs
	@command -v python3 > /dev/null || $(ROOT) apt-get install -y -qq python3
	@command -v chromium-headless-shell chromium chromium-browser google-chrome > /dev/null || \
	  $(ROOT) apt-get install -y -qq chromium
	Scripts/docs-screenshots .build/docs .build/docs-screenshots

# To this machine only.
PORT ?= 8080
.PHONY: docs-serve
docs-serve: URL = http://127.0.0.1:$(PORT)/
docs-serve:
	@[ -e .build/docs/index.html ] || $(MAKE) --no-print-directory docs
	@command -v python3 > /dev/null || $(ROOT) apt-get install -y -qq python3
	@echo "The reference is at $(URL); Ctrl-C ends this."
	@{ sleep 1; xdg-open $(URL); } > /dev/null 2>&1 & \
	python3 -m http.server --bind 127.0.0.1 --directory .build/docs $(PORT)

# The switch of stacks between the threads of a simulation, also on arm64, where that can be emulated.
.PHONY: fiber-checks
fiber-checks:
	Tests/fiber-checks

# The probes for bpftrace, beside the page that lists them.
PROBE_PACKAGES := systemtap-sdt-dev binutils
.PHONY: probe-checks
probe-checks:
	@dpkg -s $(PROBE_PACKAGES) > /dev/null 2>&1 || { \
	  $(ROOT) apt-get update -qq && $(ROOT) apt-get install -y -qq $(PROBE_PACKAGES); }
	Tests/probe-checks

# The models of the mailbox and of the pass, through all their states, and the faults that are planted in them.
.PHONY: model
model:
	@dpkg -s spin gcc > /dev/null 2>&1 || { $(ROOT) apt-get update -qq && $(ROOT) apt-get install -y -qq spin gcc; }
	Models/check

# Lists and numbers in the contributors' pages, beside the code.
.PHONY: check-claims
check-claims:
	Scripts/check-claims

# A package that depends on this one fetches and builds only what it uses.
dependent-checks:
	Tests/dependent-checks

# The answers of a simulation in a program with Swift's shared libraries, with Swift in itself, and with the C library.
linking-checks:
	Tests/linking-checks

# The programs that share a process with SwiftNIO and async-http-client, which take minutes to compile.
.PHONY: beside-checks
beside-checks:
	Tests/beside-checks

# A window in which a script drags, on a display that nobody sees unless there is one; PICTURES=… writes some.
GTK_PACKAGES := libgtk-4-dev xvfb xdotool
HAS_GTK = pkg-config --exists gtk4 && command -v xvfb-run xdotool > /dev/null
.PHONY: gtk-demo gtk-checks
gtk-demo: adapter-deps
	@{ $(HAS_GTK); } || { $(ROOT) apt-get update -qq && $(ROOT) apt-get install -y -qq $(GTK_PACKAGES); }
	$(SWIFT) build --package-path Examples/GTKDrag -debug-info-format $(DEBUG_INFO) --product GTKDrag
	Examples/GTKDrag/demo Examples/GTKDrag/.build/debug/GTKDrag $(PICTURES)

gtk-checks:
	@{ $(HAS_GTK); } || { echo "GTK is not installed: make gtk-demo installs it"; exit 0; }; \
	$(SWIFT) test --package-path Examples/GTKDrag --disable-xctest -debug-info-format $(DEBUG_INFO) && \
	$(MAKE) --no-print-directory gtk-demo && \
	if command -v weston > /dev/null; then Examples/GTKDrag/frames Examples/GTKDrag/.build/debug/GTKDrag; \
	else echo "weston is not installed: make wayland-demo installs it"; fi

# A window without a toolkit, on a compositor without a screen unless there is one, and in the checks always.
WAYLAND_PACKAGES := libwayland-dev wayland-protocols weston pkg-config
.PHONY: wayland-demo wayland-checks
wayland-demo: deps
	@dpkg -s $(WAYLAND_PACKAGES) > /dev/null 2>&1 || { \
	  $(ROOT) apt-get update -qq && $(ROOT) apt-get install -y -qq $(WAYLAND_PACKAGES); }
	Examples/WaylandFrames/protocols
	$(SWIFT) build --package-path Examples/WaylandFrames -debug-info-format $(DEBUG_INFO) --product WaylandFrames
	Examples/WaylandFrames/demo Examples/WaylandFrames/.build/debug/WaylandFrames

wayland-checks:
	@dpkg -s $(WAYLAND_PACKAGES) > /dev/null 2>&1 || { echo "Wayland is not installed: make wayland-demo installs it"; exit 0; }; \
	HIDDEN=1 $(MAKE) --no-print-directory wayland-demo

# Loops of other libraries as hosts of a run loop; SEEDS=…
GUEST_PACKAGES := libuv1-dev libglib2.0-dev pkg-config
.PHONY: guest-checks
guest-checks: deps
	@dpkg -s $(GUEST_PACKAGES) > /dev/null 2>&1 || { \
	  $(ROOT) apt-get update -qq && $(ROOT) apt-get install -y -qq $(GUEST_PACKAGES); }
	Tests/guest-checks

# TTLStore, Cron, Proxy and Web under load, recorded and repeated; REQUESTS=…
RECORD_TOOLS := redis-tools nghttp2-client python3 openssl curl
.PHONY: record-checks
record-checks: deps
	@dpkg -s $(RECORD_TOOLS) > /dev/null 2>&1 || { \
	  $(ROOT) apt-get update -qq && $(ROOT) apt-get install -y -qq $(RECORD_TOOLS); }
	@set -e; for product in TTLStore Cron Proxy EchoServer; do $(RELEASE_EXAMPLES) --product $$product; done
	$(SWIFT) build --package-path Examples/Web -c release --product Web
	Tests/record-checks Examples/.build/release Examples/Web/.build/release/Web

# Code of other packages on simulated hosts: the same bytes in each of RUNS processes.
.PHONY: others-checks
others-checks:
	Tests/others-checks

# Other people's protocols on RunLoopNIO's channels.
.PHONY: protocols-checks
protocols-checks: adapter-deps
	Tests/protocols-checks

# Conversations over a real link and over a simulated one.
.PHONY: links
links: deps
	$(BUILD) --product Links
	@$(ROOT) Tests/links-checks $(DEBUG_BIN)

# The tests of the programs; every example runs to its end; HelloTimer is as light as promised.
.PHONY: examples
examples: deps
	$(EXAMPLES_BUILD) --build-tests
	@$(call logged,$(EXAMPLES_TEST) --skip-build,.build/examples.log)
	@set -e; bin=$(EXAMPLES_BIN); \
	for example in HelloTimer AsyncMain ActorTimers ModalRun PollHost WorkerThread VirtualDay TimerForms TimerSources ResendCode \
	    FrameRate FileWatcher ChildTimeout Supervisor EchoServer AsyncEcho RollingEcho Proxy; do \
	  echo "example $$example"; timeout 60 $$bin/$$example < /dev/null > /dev/null; done; \
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=localhost \
	  -addext subjectAltName=DNS:localhost -keyout .build/key.pem -out .build/chain.pem 2> /dev/null; \
	echo "example Raft"; timeout 60 Examples/Raft/demo $$bin > /dev/null; \
	echo "example TLSEcho"; timeout 60 $$bin/TLSEcho .build/chain.pem .build/key.pem | grep -q 'echoed: hello'; \
	ldd $$bin/HelloTimer | grep -q libevent_core; \
	if ldd $$bin/EchoServer | grep libssl; then echo "RunLoopUnix needs OpenSSL"; exit 1; fi; \
	if ldd $$bin/HelloTimer | grep Foundation; then echo "HelloTimer needs Foundation"; exit 1; fi; \
	$$bin/experiments play X5 --svg .build/X5.svg > /dev/null; \
	$$bin/experiments compare --svg .build/Compare.svg > /dev/null; \
	for picture in X5 Compare; do \
	  cmp .build/$$picture.svg Sources/RunLoopKit/RunLoopKit.docc/$$picture.svg; done; \
	diff <($$bin/experiments compare | sed -n 3,10p) <(grep -A 7 '(a) nothing' Sources/RunLoopKit/RunLoopKit.docc/Timers.md)

# The example Web, a package of its own: in a simulation, as a process, and under attack.
WEB = --package-path Examples/Web -debug-info-format $(DEBUG_INFO)
WEB_PACKAGES := curl nghttp2-client python3-websockets
.PHONY: web-tests
web-tests: deps
	@dpkg -s $(WEB_PACKAGES) > /dev/null 2>&1 || { \
	  $(ROOT) apt-get update -qq && $(ROOT) apt-get install -y -qq $(WEB_PACKAGES); }
	$(SWIFT) build $(WEB) --build-tests
	@$(call logged,$$($(SWIFT) build $(WEB) --show-bin-path)/WebPackageTests.xctest --testing-library swift-testing,Examples/Web/.build/tests.log)

lint:
	$(SWIFT) format lint --strict --parallel --recursive $(SOURCES)
	@! grep -r --exclude-dir='.build*' '@_spi' Sources Examples | grep -v -e '^Sources/RunLoopTesting/' -e '@_spi(Ports)' || { \
	  echo "only RunLoopTesting uses interfaces that are not public"; exit 1; }
	@diff <(printf '%s\n' $(PRODUCTS) | sort) <(sed -n 's/^        - //p' .spi.yml | sort) || { \
	  echo ".spi.yml does not list the products of Package.swift"; exit 1; }
	@Scripts/check-prose

format:
	$(SWIFT) format --in-place --parallel --recursive $(SOURCES)

# RunLoopKit beside other event loops. A whole run takes about half an hour and is written to Benchmarks/results.md; with
# QUICK=1 it takes three minutes after the build, and with peers or workloads chosen what they need.
BENCH_PACKAGES := libevent-dev libuv1-dev libev-dev libglib2.0-dev libsystemd-dev pkg-config
COSTS_PACKAGES := libevent-dev pkg-config valgrind binutils
BENCH_OPTIONS = $(if $(QUICK),--quick) $(if $(PEERS),--peers "$(PEERS)") $(if $(WORKLOADS),--workloads "$(WORKLOADS)") \
  $(if $(REPETITIONS),--repetitions $(REPETITIONS)) $(if $(RUNS),--runs $(RUNS))
BENCH_OUTPUT = $(if $(QUICK)$(PEERS)$(WORKLOADS),Benchmarks/.build/results.md,Benchmarks/results.md)
BENCH = Benchmarks/.build/release/bench

bench-deps: PACKAGES = $(BENCH_PACKAGES)
costs-deps: PACKAGES = $(COSTS_PACKAGES)
bench-deps costs-deps:
	@dpkg -s $(PACKAGES) > /dev/null 2>&1 || { \
	  $(ROOT) apt-get update -qq && $(ROOT) apt-get install -y -qq $(PACKAGES); }

bench: bench-deps
	$(SWIFT) build -c release --package-path Benchmarks
	$(BENCH) $(BENCH_OPTIONS) --output $(BENCH_OUTPUT)

# What operations cost, beside what is recorded in Benchmarks/costs.json.
check-costs record-costs: costs-deps
	$(SWIFT) build -c release --package-path Benchmarks --product Costs
	$(SWIFT) build -c release --package-path Benchmarks --product CompareCosts
	$(SWIFT) build -c release --package-path Benchmarks --product Smallest
	Benchmarks/.build/release/CompareCosts $(if $(findstring record,$@),--record) Benchmarks/costs.json

# TTLStore beside redis-server, on this machine and in one run.
bench-ttlstore: deps
	@command -v redis-server > /dev/null || $(ROOT) apt-get install -y -qq redis-server
	$(RELEASE_EXAMPLES) --product TTLStore
	@Benchmarks/ttlstore $$($(RELEASE_EXAMPLES) --show-bin-path)

# EchoServer and TTLStore beside others, with one thread and with two.
bench-threads: deps
	@{ command -v redis-server && command -v memcached; } > /dev/null || \
	  $(ROOT) apt-get install -y -qq redis-server memcached
	$(RELEASE_EXAMPLES) --product EchoServer
	$(RELEASE_EXAMPLES) --product TTLStore
	@for product in Load EchoFloor ProtocolServer; do \
	  $(SWIFT) build -c release --package-path Benchmarks --product $$product; done
	@Benchmarks/threads Benchmarks/.build/release $$($(RELEASE_EXAMPLES) --show-bin-path)

# SwiftNIO's handlers on run loops beside SwiftNIO's own event loops.
bench-protocols: deps
	@{ command -v wrk && command -v h2load; } > /dev/null || $(ROOT) apt-get install -y -qq wrk nghttp2-client
	@for product in Load ProtocolServer; do \
	  $(SWIFT) build -c release --package-path Benchmarks --product $$product; done
	@Benchmarks/protocols Benchmarks/.build/release

# Echo by connections beside other loops, and the memory of idle ones. Peers in other languages are built from what apt
# has; one that cannot be built is left out.
STREAM_PACKAGES := libevent-dev libuv1-dev libssl-dev openssl golang-go rustc cargo librust-tokio-dev \
  librust-tokio-openssl-dev
STREAM_OUTPUT = Benchmarks/$(if $(SIZES)$(CONNECTIONS)$(MODES)$(PEERS),.build/)streams.md
bench-streams: deps
	@dpkg -s $(STREAM_PACKAGES) > /dev/null 2>&1 || { \
	  $(ROOT) apt-get update -qq && $(ROOT) apt-get install -y -qq $(STREAM_PACKAGES); }
	@for product in StreamLoad RunLoopKitEcho LibeventEcho LibuvEcho NIOEcho; do \
	  $(SWIFT) build -c release --package-path Benchmarks --product $$product; done
	-GO111MODULE=off go build -o Benchmarks/.build/GoEcho Benchmarks/Sources/Streams/Go/main.go
	-mkdir -p Benchmarks/.build/tokio && cp -r Benchmarks/Sources/Streams/Tokio/. Benchmarks/.build/tokio && \
	  cd Benchmarks/.build/tokio && RUSTC=/usr/bin/rustc /usr/bin/cargo build --quiet --release --offline \
	  --config 'source.crates-io.replace-with="apt"' --config 'source.apt.directory="/usr/share/cargo/registry"'
	@bash -o pipefail -c 'Benchmarks/streams Benchmarks/.build/release Benchmarks/.build | tee $(STREAM_OUTPUT)'

# Four minutes of libFuzzer: a minute each for TTLStore's parser, the loaders of its snapshots and logs, framings, and
# what reads PEM. The framings need nothing of RunLoopKit but what traps.
FUZZ = swiftc -O -use-ld=lld -parse-as-library -package-name RunLoopKit -sanitize=fuzzer,address -I .build/fuzzing -I COpenSSL
# Compiled in `make check`, so that they follow the code.
.PHONY: fuzzers
fuzzers:
	@mkdir -p .build/fuzzing/inputs
	$(FUZZ) -o .build/fuzzing/parser \
	  Examples/TTLStore/Protocol/RequestParser.swift Examples/Tests/Fuzzing/RequestParserFuzzer.swift
	$(FUZZ) -o .build/fuzzing/frames \
	  Examples/TTLStore/Persistence/{Checksum,Frame,Record}.swift Examples/Tests/Fuzzing/FrameFuzzer.swift
	swiftc -parse-as-library -package-name RunLoopKit -module-name RunLoopKit \
	  -emit-module -emit-module-path .build/fuzzing/RunLoopKit.swiftmodule Sources/RunLoopCore/Values/Require.swift
	$(FUZZ) -o .build/fuzzing/framing Sources/RunLoopUnix/Connections/Framing.swift Tests/Fuzzing/FramingFuzzer.swift
	$(FUZZ) -o .build/fuzzing/pem \
	  Sources/RunLoopTLS/{PEM,TLSContext,TLSError,TLSError+OpenSSL}.swift Tests/Fuzzing/PEMFuzzer.swift

fuzz: fuzzers
	@openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=localhost \
	  -keyout .build/fuzzing/inputs/key.pem -out .build/fuzzing/inputs/chain.pem 2> /dev/null
	@openssl x509 -in .build/fuzzing/inputs/chain.pem -outform der -out .build/fuzzing/inputs/chain.der
	@openssl pkey -in .build/fuzzing/inputs/key.pem -outform der -out .build/fuzzing/inputs/key.der
	@set -e; for fuzzer in parser frames framing pem; do \
	  .build/fuzzing/$$fuzzer -max_total_time=60 -max_len=1024 -print_final_stats=1 \
	    $$([ $$fuzzer != pem ] || echo .build/fuzzing/inputs); done

# TTLStore killed six hundred times while clients write; nothing that it has acknowledged may be missing afterwards.
kill-ttlstore: deps
	$(EXAMPLES_BUILD) --build-tests
	KILLS=100 $(EXAMPLES_TEST) --skip-build --filter TTLStoreTests.KillTests

# Five kinds of items, a million calls of each; ten thousand loops that end with tasks on them; a gigabyte each way
# between a task and a peer of which one rests; ten thousand cancelled waits of each kind; and ten seconds of everything
# that tasks do, under each sanitizer. Ten thousand marble diagrams for each algorithm of others, fifteen thousand lives of
# connections, and many more scenarios and lives of timer sources than the tests usually have.
stress:
	RACED_CALLS=1000000 $(TEST) --filter StopRaceTests/race
	ENDED_LOOPS=10000 $(TEST) --filter ExecutorTests/manyLoops
	MOVED_MEBIBYTES=1024 $(TEST) --filter RestingPeerTests
	MARBLES=10000 $(TEST) --traits Adapters --scratch-path .build-adapters --filter MarbleTests
	LIVES=50000 $(TEST) --filter TimerSourceModelTests
	SCENARIOS=50000 $(EXAMPLES_TEST) --filter ScenarioPlayerTests
	CONNECTION_LIVES=15000 $(TEST) --filter ConnectionLifeTests
	CANCELLED_WAITS=10000 $(TEST) --filter 'CancelledWaitTests|ChildTaskTests/nothingLeft'
	for sanitizer in thread address; do \
	  STRESS_SECONDS=10 TEST_TARGETS=RunLoopUnixTests $(TEST) --sanitize=$$sanitizer \
	    --scratch-path .build-$${sanitizer:0:1}san --filter TaskStressTests || exit 1; done

# Connections among peers that cut, reset, drip, rest and lie, under AddressSanitizer; ten minutes, or SECONDS=…
chaos: deps
	CHAOS_SECONDS=$(or $(SECONDS),600) TEST_TARGETS=RunLoopTLSTests \
	  $(TEST) --sanitize=address --scratch-path .build-asan --filter ChaosTests

# Ten thousand processes, in debug and in release, on a busy machine: one trace, and one finding of an exploration.
same-bytes: deps
	RUNS=$(or $(RUNS),10000) Scripts/same-bytes

# A thousand processes of a short day of the example Web, in debug and in release: one trace.
.PHONY: web-same-bytes
web-same-bytes: deps
	Examples/Web/Tests/same-bytes

# Small programs with planted bugs: how soon exploration finds each, and that it finds nothing in their mended twins, with
# a hundred thousand schedules of each. It takes some hours.
explore-corpus: deps
	$(RELEASE_EXAMPLES) --product Corpus
	@bin=$$($(RELEASE_EXAMPLES) --show-bin-path) && $$bin/Corpus measure --for 15 && $$bin/Corpus figures && $$bin/Corpus tokens && \
	  $$bin/Corpus twins --schedules $(or $(SCHEDULES),100000)

# Faults planted in TTLStore, Cron and Raft, one after another: with which schedule an exploration finds each, and with
# which seed a long life does. In a release build it takes twenty minutes on a busy machine.
planted-faults: deps
	Examples/Tests/planted-faults

# All tests under a sanitizer. What threads hold that are ended where they wait stays in memory, and LeakSanitizer takes a
# part of that for lost: it does not recognise the pointers in Swift's strings, enumerations and weak references, which have
# marks in them. One of the planted bugs of the corpus is a leak.
LEAKING = YearTests|LedgerTests|WeekTests|CorpusTests|CrashTests|CrashConsistencyTests|PlaceTests|PoolTests
SANITIZED_EXAMPLES_TEST = $(EXAMPLES_TEST) $(filter --sanitize=%,$(SANITIZED_TEST)) --scratch-path .build-$@-examples
tsan tsan-short: export TSAN_OPTIONS = suppressions=$(CURDIR)/Tests/tsan-suppressions
# ThreadSanitizer does not let a thread be ended within a wait of Dispatch's.
tsan: adapter-deps
	$(SANITIZED_TEST) --skip 'PoolTests/(exhaustion|explored)'
	$(SANITIZED_EXAMPLES_TEST)
asan: adapter-deps
	$(SANITIZED_TEST) --skip '$(LEAKING)'
	ASAN_OPTIONS=detect_leaks=0 $(SANITIZED_TEST) --skip-build --filter '$(LEAKING)'
	$(SANITIZED_EXAMPLES_TEST) --skip '$(LEAKING)'
	ASAN_OPTIONS=detect_leaks=0 $(SANITIZED_EXAMPLES_TEST) --skip-build --filter '$(LEAKING)'

# Only these targets are built, too (see the end of Package.swift).
tsan-short asan-short: deps
	TEST_TARGETS="$(TARGETS)" $(SANITIZED_TEST) --skip '$(SHORT_SKIPPED)'
