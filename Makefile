# An index: a target's line has its help, which `make help` prints. Longer recipes are in Scripts and Tests.

export SWIFT ?= swift
# Dozens of tests trap on purpose; the runtime would take a second of both processors for a backtrace of each.
export SWIFT_BACKTRACE := enable=no
# The tests that run at a time. If all began at once, those that wait for a process would have their turn late, and
# while one that has ended is not asked for, Swift Testing looks for it without a pause.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH := $(shell echo $$((2 * $$(nproc))))
# Lines for debuggers would take a sixth of the time of a build; with DEBUG_INFO=dwarf they are there.
export DEBUG_INFO ?= none
# A build from nothing takes a quarter to a third less processor time by whole modules, which are read once. A
# later one compiles all of a changed module; with WHOLE_MODULES= it compiles what has changed.
WHOLE_MODULES ?= $(addprefix -Xswiftc ,-disable-batch-mode -wmo -num-threads 2 -no-emit-module-separately-wmo)
export BUILD_OPTIONS = -debug-info-format $(DEBUG_INFO) $(WHOLE_MODULES)
BUILD = $(SWIFT) build $(BUILD_OPTIONS)
# The adapters are built only with their trait, and aside: SwiftPM compiles everything again when the traits change.
ADAPTED_BUILD = $(BUILD) --traits Adapters --scratch-path .build-adapters
ADAPTED_BIN = $$($(ADAPTED_BUILD) --show-bin-path)
PRODUCTS = $(shell awk -F'"' '/[.]library/ && !/dynamic/ { print $$2 }' Package.swift)
SOURCES = Package.swift Sources Tests Examples Scripts Benchmarks/Package.swift Benchmarks/Sources
AT_ONCE = @+MAKE="$(MAKE)" Scripts/at-once
MAKE_EACH = @+set -e; for target in $(1); do begin=$$(date +%s); $(MAKE) --no-print-directory $$target; echo "$$target: $$(($$(date +%s) - begin)) s"; done
# Two builds would wait for each other in one folder: the library's here, and there the adapters' and the programs'.
LIBRARY_CHECKS = check-claims probe-checks fiber-checks later-tests deep-tests dependent-checks outside-checks linking-checks fuzzers
ADAPTED_CHECKS = adapter-tests compile-checks docs check-api examples web-tests gtk-checks wayland-checks
.PHONY: $(shell sed -nE 's/^([a-z-]+):.*\#\# .*/\1/p' Makefile)

## Every day
help: ## this list
	@awk -F ':.*## ' '/^## / { print "\n" substr($$0, 4) } /^[a-z-]+:.*## / { printf "  %-17s %s\n", $$1, $$2 }' Makefile
demo: deps ## the experiments, on virtual time and on the real clock, and as a page; a daemon and its client
test: deps lint build ## lint, and the tests of the loop, of files, sockets, TLS and virtual time
	$(AT_ONCE) 3 other-tests loop-tests system-tests
check: deps costs-deps adapter-deps ## the rest, before a change is sent: checks, short sanitizer runs, costs
	$(AT_ONCE) 2 check-costs checks adapted-checks tsan-short asan-short
build: ## the library, and the tests of `make test`
	Scripts/tests build
format: ## formats the sources
	$(SWIFT) format --in-place --parallel --recursive $(SOURCES)
lint: ## checks the format, lists that must agree, and turns of phrase that readers stumble over
	$(SWIFT) format lint --strict --parallel --recursive $(SOURCES)
	@Scripts/lint

## Packages that a fresh Debian or Ubuntu lacks
deps: ## those of the library, its tests and examples
	@Scripts/need 'libevent-dev=libevent_core' 'libssl-dev=openssl >= 3' openssl=openssl redis-tools=redis-cli python3=python3
adapter-deps: deps ## those of the adapters
	@Scripts/need libglib2.0-dev=glib-2.0
costs-deps: ## those of check-costs
	@Scripts/need libevent-dev 'libssl-dev=openssl >= 3' pkg-config valgrind binutils

## Parts of the tests
loop-tests: ## the loop and its drivers
system-tests: ## files, sockets, children, TLS
other-tests: ## the rest of `make test`
later-tests: ## simulated hosts, explorations, records, calendars, the console
deep-tests: ## random tests with more seeds, and explorations in many processes
adapter-tests: adapter-deps ## the adapters, with their trait
adapted-build: adapter-deps ## builds the library and its tests with the adapters
loop-tests system-tests other-tests later-tests deep-tests adapter-tests adapted-build:
	@Scripts/tests $@
examples: deps ## builds and tests the package Examples, and runs every example
web-tests: deps ## the examples Web and Webhooks: simulated, as processes, and under attack

## Checks of `make check`
checks: ## those of the library, one after another
	$(call MAKE_EACH,$(LIBRARY_CHECKS))
adapted-checks: ## those of the adapters and of the programs, one after another
	$(call MAKE_EACH,$(ADAPTED_CHECKS))
compile-checks: adapted-build ## invalid code does not compile, the pages' code does, and prints what they show
	Tests/compile-checks $(ADAPTED_BIN)
check-claims: ## lists, numbers and names in the contributors' pages, compared with the code
probe-checks: ## the probes for bpftrace, compared with the page that lists them
fiber-checks: ## the switch of stacks between the threads of a simulation, also emulated on arm64
dependent-checks: ## a package that depends on this one fetches and builds only what it uses
outside-checks: deps ## what another package writes with the ports: a driver, a stream, libuv in modes; TTLStore on that driver
linking-checks: ## the answers of a simulation in programs that are linked in different ways
gtk-checks: ## the tests of the example GTKDrag and gtk-demo, if GTK is installed
wayland-checks: ## wayland-demo without a screen, if its packages are installed
check-costs: costs-deps ## counts instructions, allocations and system calls, and compares them with costs.json
record-costs: costs-deps ## records these counts

## Interface and reference
products: adapter-deps ## builds the products, without programs and tests
	@set -e; for product in $(PRODUCTS); do $(ADAPTED_BUILD) --target $$product; done
check-api: products ## compares the public interface with the folder API, and with the last version
record-api: products ## records the public interface in the folder API
check-api record-api:
	@Scripts/api $@ $(ADAPTED_BIN)
docs: products ## the reference of all products, to .build/docs
	Scripts/docs $(ADAPTED_BIN) .build/docs
docs-serve: .build/docs/index.html ## shows the reference in a browser; PORT=…
docs-screenshots: .build/docs/index.html ## three of its pages, as wide as on a desktop and on a phone
	@Scripts/need python3=python3 'chromium=chromium|chromium-headless-shell|chromium-browser|google-chrome'
	Scripts/docs-screenshots .build/docs .build/docs-screenshots
.build/docs/index.html: ; $(MAKE) --no-print-directory docs

## Costs, beside others
bench: ## RunLoopKit beside other event loops; QUICK=1 PEERS=… WORKLOADS=… REPETITIONS=… RUNS=…
bench-ttlstore: deps ## TTLStore beside redis-server; CPUS=0 has them share a processor; ROUNDS=… REQUESTS=…
bench-threads: deps ## EchoServer and TTLStore beside others, with one thread and with two; ROUNDS=… PINNED=1
bench-protocols: deps ## SwiftNIO's handlers on run loops and on its own; RunLoopHTTP beside others; ROUNDS=… LOADS=… KINDS=…
bench-streams: deps ## echo by connections, and idle memory; ROUNDS=… SIZES=… CONNECTIONS=… MODES=… PEERS=…
bench bench-ttlstore bench-threads bench-protocols bench-streams check-costs record-costs:
	Scripts/benchmarks $@

## Longer runs
tsan: adapter-deps ## all tests under ThreadSanitizer
asan: adapter-deps ## all tests under AddressSanitizer
tsan-short: deps ## tests of code that crosses threads, under ThreadSanitizer
asan-short: deps ## tests of code that touches C, under AddressSanitizer
tsan asan tsan-short asan-short:
	Scripts/sanitizers $@
stress: ## calls raced by threads, loops that end, tasks on them: millions of them
chaos: deps ## ten minutes of connections whose peers cut, reset, drip, rest and lie; SECONDS=…
	CHAOS_SECONDS=$(or $(SECONDS),600) Scripts/sanitizers $@
fuzzers: ## compiles the fuzzers of the parsers, loaders, framings and of PEM
fuzz: ## runs each of them for a minute
fuzzers fuzz:
	Scripts/fuzz $@
kill-ttlstore: deps ## TTLStore killed six hundred times under load
planted-faults: deps ## faults in TTLStore, Cron and Raft, and the seeds and schedules that find them; twenty minutes
	Examples/Tests/planted-faults
explore-corpus: deps ## how soon exploration finds planted bugs, and that it finds no others; hours, or SCHEDULES=…
same-bytes: deps ## ten thousand runs of one simulated minute, and of one exploration; RUNS=… SEED=…
web-same-bytes: deps ## a thousand processes of a simulated day of Web; RUNS=… SEED=…
	Examples/Web/Tests/same-bytes
model: ## the mailbox and the pass, checked by spin, also with planted faults
	@Scripts/need spin gcc && Models/check

## Beside other software
gtk-demo: adapter-deps ## a window of GTK in which a script drags: the timers of the default mode stop; PICTURES=…
wayland-demo: deps ## display links in the frames of a Wayland compositor
beside-checks: ## programs beside SwiftNIO and async-http-client, and the cost of ways between threads
others-checks: ## tests of other packages, and SwiftNIO's idle handler, on simulated hosts; RUNS=… SEED=…
protocols-checks: adapter-deps ## gRPC and Hummingbird's router on RunLoopNIO; RUNS=… SEED=…
programs-checks: deps ## Hummingbird, async-http-client and redis on simulated hosts; RUNS=… CONFIGURATION=…
guest-checks: deps ## a run loop as a guest of libuv, GLib and Foundation; SEEDS=…
record-checks: deps ## TTLStore, Cron, Proxy and Web under load, recorded and repeated; REQUESTS=…
links: deps ## conversations over a real link and over a simulated one, compared; needs root
	$(BUILD) --product Links
	Tests/links-checks $$($(BUILD) --show-bin-path)

# Scripts of their targets' names.
demo examples web-tests check-claims stress kill-ttlstore explore-corpus same-bytes record-checks docs-serve:
	Scripts/$@
probe-checks fiber-checks dependent-checks outside-checks linking-checks beside-checks others-checks protocols-checks programs-checks guest-checks:
	Tests/$@
gtk-demo gtk-checks wayland-demo wayland-checks:
	@Scripts/windows $@
