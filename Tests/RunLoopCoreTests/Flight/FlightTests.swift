import Glibc
@_spi(Ports) import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import Synchronization
import TestSupport
import Testing

/// Runs a loop, which continues for a while after its flight was truncated.
private func truncateFlight() throws {
    let path = "/tmp/rlk-truncated-flight-\(getpid())"
    defer { unlink(path) }
    let loop = RunLoop.current
    let recorder = try FlightRecorder(loop, at: path)
    var fires = 0
    loop.add(
        Timer(timeInterval: .microseconds(100), repeats: true) { _ in
            fires += 1
            if fires == 10 { truncate(path, 0) }
            if fires == 1000 { loop.stop() }
        }, forMode: .default)
    loop.run(in: .default)
    withExtendedLifetime(recorder) {}
}

@Suite("Flights", .timeLimit(.minutes(15)))
struct FlightTests {
    /// Records the events of a virtual loop, and returns its flight.
    private func record(events: Int = 1024, names: Int = 64 * 1024, _ body: (Simulation) -> Void) throws -> Flight {
        try withSimulation { simulation in
            let recorder = try FlightRecorder(simulation.loop, events: events, names: names)
            body(simulation)
            return try recorder.memory.flight()
        }
    }

    @Test("calls are recorded with kind, name, line, mode and time, also those in a nested run")
    func calls() throws {
        let line = RunLoop.Origin(line: #line + 3)
        let flight = try record { simulation in
            let loop = simulation.loop
            let drag = Timer(at: simulation.now + .seconds(2)) { _ in
                simulation.spend(.seconds(1))
                loop.run(in: .tracking, until: simulation.now + .seconds(5))
            }
            drag.name = "drag"
            loop.add(drag, forMode: .default)
            loop.add(Timer(timeInterval: .seconds(4), repeats: true) { _ in }, forMode: [.default, .tracking])
            simulation.advance(by: .seconds(9))
        }
        let handler = flight.calls.first.flatMap(\.handler)
        #expect(handler?.kind == .timer && handler?.name == "drag" && handler?.origin == "\(line)")
        let calls = flight.calls.map { "\($0.begin) \($0.mode) \($0.depth) \($0.duration.map { "\($0)" } ?? "open")" }
        #expect(
            calls == [
                "2.000000000 default 0 6.0 seconds", "4.000000000 tracking 1 0.0 seconds",
                "8.000000000 tracking 1 0.0 seconds",
            ], "\(calls)")
        #expect(flight.unfinished.isEmpty && flight.lost == 0)
        #expect(flight.usage.first?.handler?.name == "drag" && flight.usage.first?.time == .seconds(1))
        #expect(flight.sleep == .seconds(8))
        let modes = flight.entries.compactMap { if case .runBegan(let mode) = $0.event { mode } else { nil } }
        #expect(Set(modes).count == 2, "\(modes)")
    }

    @Test("an observer called at the end of a sleep is not charged with the sleep")
    func observedSleep() throws {
        let flight = try record { simulation in
            let observer = Observer(activities: [.beforeWaiting, .afterWaiting]) { _, _ in
                simulation.spend(.milliseconds(1))
            }
            simulation.loop.add(observer, forMode: .default)
            simulation.loop.add(Timer(timeInterval: .seconds(2), repeats: true) { _ in }, forMode: .default)
            simulation.advance(by: .seconds(5))
        }
        let observed = flight.calls.filter { $0.handler?.kind == .observer }
        #expect(observed.count >= 4 && observed.allSatisfy { $0.duration == .milliseconds(1) }, "\(observed)")
        #expect(flight.sleep > .seconds(4))
    }

    @Test("a late timer names the calls that were in its way")
    func delays() throws {
        let flight = try record { simulation in
            let loop = simulation.loop
            func add(_ name: String, at seconds: Int, mode: RunLoop.Modes = .default, _ body: @escaping () -> Void) {
                let timer = Timer(at: simulation.now + .seconds(seconds)) { _ in body() }
                timer.name = name
                loop.add(timer, forMode: mode)
            }
            add("before", at: 1) { simulation.spend(.milliseconds(200)) }
            add("slow", at: 2) { simulation.spend(.seconds(3)) }
            add("late", at: 3) { loop.perform { simulation.spend(.milliseconds(1)) } }
            add("drag", at: 10) {
                add("scroll", at: 1, mode: .tracking) { simulation.spend(.seconds(1)) }
                add("never", at: 100, mode: .tracking) {}
                loop.run(in: .tracking, until: simulation.now + .seconds(5))
            }
            add("starved", at: 12) {}
            add("on time", at: 20) {}
            simulation.advance(by: .seconds(30))
        }
        let delays = flight.delays(of: .milliseconds(1)).map { delay in
            "\(delay.call.handler?.name ?? "") \(delay.call.lateness!): \(delay.causes.map { $0.handler?.name ?? "" })"
        }
        #expect(
            delays == [#"starved 3.0 seconds: ["drag"]"#, #"late 2.0 seconds: ["slow"]"#], "\(delays)")
        #expect(flight.calls.first { $0.handler?.name == "on time" }?.lateness == .zero)
        #expect(flight.calls.first { $0.handler?.kind == .block }.map { $0.lateness == nil } == true)
        #expect("\(flight)".contains("  2.00 s late at 5.000000000: timer \"late\""), "\(flight)")
    }

    @Test("a timer has its lateness, also if the sleep of a task is over at the same time")
    func sleeps() throws {
        let flight = try record { simulation in
            let loop = simulation.loop
            loop.task { try await loop.clock.sleep(for: .seconds(2)) }
            loop.perform(afterDelay: .seconds(1)) { simulation.spend(.seconds(3)) }
            loop.perform(afterDelay: .seconds(2)) {}
            simulation.advance(by: .seconds(10))
        }
        #expect(flight.calls.compactMap(\.lateness) == [.zero, .seconds(2)])
    }

    @Test("an overloaded loop, in which each call is in the way of thousands, has a short list of delays")
    func overload() throws {
        let flight = try record(events: 65_536) { simulation in
            let loop = simulation.loop
            for number in 0..<20_000 {
                let timer = Timer(at: simulation.now + .seconds(1)) { _ in
                    simulation.spend(number == 0 ? .seconds(2) : .microseconds(1))
                }
                timer.name = number == 0 ? "slow" : "other"
                loop.add(timer, forMode: .default)
            }
            simulation.advance(by: .seconds(10))
        }
        let delays = flight.delays(of: .milliseconds(1))
        #expect(delays.count == 20 && delays[0].call.lateness! > delays[19].call.lateness!)
        for delay in delays {
            #expect(delay.causes.count == 20 && delay.causes[0].handler?.name == "slow")
        }
        #expect(flight.delays(of: .seconds(3)).isEmpty && flight.delays(of: .zero, atMost: 0).isEmpty)
        #expect("\(flight)".utf8.count < 10_000)
    }

    @Test("each event is in order, and each call ends, for random programs", arguments: 1...50)
    func random(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let events = Int.random(in: 16...400, using: &random)
        var called = 0
        let flight = try record(events: events) { simulation in
            let loop = simulation.loop
            for number in 0..<Int.random(in: 1...20, using: &random) {
                let (nests, spends) = (Bool.random(using: &random), Int.random(in: 0...20, using: &random))
                let timer = Timer(timeInterval: .milliseconds(Int.random(in: 1...300, using: &random)), repeats: true) {
                    _ in
                    called += 1
                    simulation.spend(.milliseconds(spends))
                    if nests, number % 3 == 0 {
                        loop.run(in: .tracking, until: simulation.now + .milliseconds(spends))
                    }
                }
                timer.name = Bool.random(using: &random) ? "timer \(number)" : nil
                loop.add(timer, forMode: Bool.random(using: &random) ? .common : .default)
            }
            loop.addCommonMode(.tracking)
            simulation.advance(by: .seconds(2))
        }
        #expect(flight.entries.count + flight.lost >= 2 * called, "seed \(seed)")
        #expect(
            flight.entries.count <= events && (flight.lost == 0 || flight.entries.count >= events - 1), "seed \(seed)")
        let times = flight.entries.map(\.time)
        #expect(times == times.sorted(), "seed \(seed)")
        #expect(flight.unfinished.isEmpty, "seed \(seed): \(flight.unfinished)")
        for call in flight.calls { #expect(call.duration.map { $0 >= .zero } == true, "seed \(seed)") }
        if flight.lost == 0 { #expect(flight.calls.count >= called, "seed \(seed)") }
        let parts = flight.usage.reduce(Duration.zero) { $0 + $1.time } + flight.sleep
        if flight.lost == 0, let first = times.first, let last = times.last {
            #expect(parts <= last - first + .nanoseconds(1), "seed \(seed)")
        }
    }

    @Test("names without room are left out, and their lines stay")
    func manyNames() throws {
        let flight = try record(events: 4096, names: 4096) { simulation in
            for number in 0..<1000 {
                let timer = Timer(at: simulation.now) { _ in }
                timer.name = "a timer with a long name and the number \(number)"
                simulation.loop.add(timer, forMode: .default)
            }
            simulation.advance(by: .seconds(1))
        }
        let handlers = flight.calls.map(\.handler).filter { $0?.kind == .timer }
        #expect(handlers.count == 1000 && handlers.first??.name?.hasSuffix(" 0") == true)
        #expect(handlers.last??.name == nil && handlers.last??.origin.contains("FlightTests.swift") == true)
    }

    /// Ends the process in a handler, while it records into a file.
    private static func endInHandler(_ path: String, _ end: @escaping () -> Void) {
        let loop = RunLoop.current
        let recorder = try! FlightRecorder(loop, events: 64, at: path)
        let timer = Timer(timeInterval: .milliseconds(1), repeats: false) { _ in
            loop.perform { end() }
            loop.run(in: .default)
        }
        timer.name = "the last"
        loop.add(timer, forMode: .default)
        loop.run()
        withExtendedLifetime(recorder) {}
    }

    /// Blocks in a handler until the monitor has written the flight, and ended the process.
    private static func stallInHandler(_ path: String) {
        let loop = RunLoop.current
        let recorder = try! FlightRecorder(loop, events: 64)
        let monitor = StallMonitor(loop, threshold: .milliseconds(20)) { [memory = recorder.memory] _ in
            try! memory.write(to: path)
            _exit(7)
        }
        let timer = Timer(timeInterval: .milliseconds(1), repeats: false) { _ in
            loop.perform { while true { pause() } }
            loop.run(in: .default)
        }
        timer.name = "the last"
        loop.add(timer, forMode: .default)
        loop.run()
        withExtendedLifetime((recorder, monitor)) {}
    }

    /// Returns the path for the process whose tests run, which is the parent of the process that ends.
    private static func path(of process: pid_t, _ name: String) -> String {
        "/tmp/runloopkit.flight.\(process).\(name)"
    }

    private func expectEnd(at path: String) throws {
        defer { for end in ["", ".1"] { unlink(path + end) } }
        let flight = try Flight(contentsOf: path)
        #expect(
            flight.unfinished.map { $0.handler?.name ?? "\($0.handler?.kind ?? .source)" } == ["the last", "block"])
        #expect(flight.unfinished.last?.handler?.origin.hasPrefix("RunLoopCoreTests/FlightTests.swift:") == true)
        #expect(flight.description.contains("under way at the end"))
    }

    @Test("a process that is killed leaves a flight with its last handler")
    func killed() async throws {
        await #expect(processExitsWith: .signal(SIGKILL)) {
            FlightTests.endInHandler(FlightTests.path(of: getppid(), "killed")) { kill(getpid(), SIGKILL) }
        }
        try expectEnd(at: Self.path(of: getpid(), "killed"))
    }

    @Test("a process that traps leaves a flight with its last handler")
    func trapped() async throws {
        await #expect(processExitsWith: .failure) {
            FlightTests.endInHandler(FlightTests.path(of: getppid(), "trapped")) { fatalError("planned") }
        }
        try expectEnd(at: Self.path(of: getpid(), "trapped"))
    }

    @Test("a process that stalls leaves a flight that its monitor has written, with its last handler")
    func stalled() async throws {
        await #expect(processExitsWith: .exitCode(7)) {
            FlightTests.stallInHandler(FlightTests.path(of: getppid(), "stalled"))
        }
        try expectEnd(at: Self.path(of: getpid(), "stalled"))
    }

    @Test("a handler that hangs is in the file while it hangs")
    func hanging() throws {
        let path = Self.path(of: getpid(), "hanging")
        let hangs = Flag(), goesOn = Flag()
        let thread = LoopThread(name: "daemon") { loop in
            let recorder = try? FlightRecorder(loop, at: path)
            let timer = Timer(timeInterval: .milliseconds(1), repeats: false) { _ in
                hangs.set()
                while !goesOn.isSet { usleep(100) }
                withExtendedLifetime(recorder) {}
            }
            timer.name = "hangs"
            loop.add(timer, forMode: .default)
        }
        _ = eventually { hangs.isSet }
        let flight = try Flight(contentsOf: path)
        #expect(flight.loop == "daemon" && flight.process == Int(getpid()))
        #expect(flight.unfinished.map { $0.handler?.name } == ["hangs"])
        goesOn.set()
        thread.stop()
        unlink(path)
    }

    @Test("the flight of the process before is kept, and a file that cannot be written is an error")
    func files() throws {
        let directory = TemporaryDirectory()
        let path = directory.path + "/flight"
        for _ in 0..<2 { try withExtendedLifetime(FlightRecorder(RunLoop.current, events: 16, at: path)) {} }
        #expect(throws: Never.self) { try Flight(contentsOf: path + ".1") }
        #expect(throws: FlightError.file("/nowhere/flight", errno: ENOENT)) {
            try FlightRecorder(RunLoop.current, events: 16, at: "/nowhere/flight")
        }
        #expect(throws: FlightError.notAFlight) { try Flight(contentsOf: "/proc/self/maps") }
    }

    @Test("damaged bytes are an error or a flight, and nothing else", arguments: 1...20)
    func damaged(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let file = TemporaryFile()
        try withSimulation { simulation in
            let recorder = try FlightRecorder(simulation.loop, events: 64, names: 4096)
            let timer = Timer(timeInterval: .seconds(1), repeats: true) { _ in }
            simulation.loop.add(timer, forMode: .default)
            simulation.advance(by: .seconds(100))
            try recorder.memory.write(to: file.path)
        }
        var bytes = try Array(contents(of: file.path))
        for _ in 0..<200 {
            var damaged = bytes
            for _ in 0..<Int.random(in: 1...8, using: &random) {
                let index = Int.random(in: 0..<(Bool.random(using: &random) ? 200 : damaged.count), using: &random)
                damaged[index] = UInt8.random(in: 0...255, using: &random)
            }
            if Bool.random(using: &random) { damaged.removeLast(Int.random(in: 0...damaged.count, using: &random)) }
            let other = TemporaryFile(damaged)
            if let flight = try? Flight(contentsOf: other.path) {
                _ = (flight.description, Flight.traceEvents(of: [flight]))
            }
        }
        bytes = []
    }

    private func contents(of path: String) throws -> [UInt8] {
        let file = try #require(fopen(path, "r"))
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        let count = fread(&bytes, 1, bytes.count, file)
        return Array(bytes.prefix(count))
    }

    @Test("a thread reads a flight while the loop continues")
    func whileItGoesOn() throws {
        let memory = Locked<FlightRecorder.Memory?>(nil)
        let thread = LoopThread(name: "busy") { loop in
            let recorder = try? FlightRecorder(loop, events: 64)
            memory.withLock { $0 = recorder?.memory }
            let timer = Timer(timeInterval: .microseconds(20), repeats: true) { _ in withExtendedLifetime(recorder) {} }
            loop.add(timer, forMode: .default)
        }
        _ = eventually { memory.withLock { $0 != nil } }
        let recorded = try #require(memory.withLock { $0 })
        for _ in 0..<2000 {
            let flight = try recorded.flight()
            let times = flight.entries.map(\.time)
            #expect(times == times.sorted())
            for call in flight.calls { #expect(call.handler?.kind == .timer || call.handler?.kind == .block) }
        }
        thread.stop()
    }

    @Test("a timeline has each call, with its line, and is JSON")
    func timeline() throws {
        let flight = try record { simulation in
            let timer = Timer(timeInterval: .seconds(1), repeats: true) { _ in simulation.spend(.milliseconds(3)) }
            timer.name = "say \"hello\""
            simulation.loop.add(timer, forMode: .default)
            simulation.advance(by: .seconds(3))
        }
        let text = Flight.traceEvents(of: [flight, flight])
        #expect(text.split(separator: "\n").count { $0.contains(#""name":"say \"hello\"","cat":"call""#) } == 6)
        #expect(text.contains(#""dur":3000.000"#) && text.contains("FlightTests.swift"))
        #expect(text.split(separator: "\n").count { $0.contains("thread_name") } == 2)
    }

    @Test("a loop whose recorder was released records nothing, and another recorder may begin")
    func replaced() throws {
        try withSimulation { simulation in
            var recorder: FlightRecorder? = try FlightRecorder(simulation.loop, events: 64)
            let memory = try #require(recorder?.memory)
            simulation.advance(by: .seconds(1))
            let count = try memory.flight().entries.count
            recorder = nil
            simulation.loop.add(Timer(timeInterval: .seconds(1), repeats: true) { _ in }, forMode: .default)
            simulation.advance(by: .seconds(10))
            #expect(try memory.flight().entries.count == count)
            recorder = try FlightRecorder(simulation.loop, events: 64)
            simulation.advance(by: .seconds(10))
            #expect(try recorder?.memory.flight().calls.count == 10)
        }
    }

    @Test("a loop continues when another program truncates the file of its flight, and reports it once")
    func truncated() async throws {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            try truncateFlight()
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(text.split(separator: "\n").count { $0.contains("the file of the flight is lost") } == 1, "\(text)")
    }
}
