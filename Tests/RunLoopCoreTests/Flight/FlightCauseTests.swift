import Glibc
import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("Causes in flights", .timeLimit(.minutes(15)))
struct FlightCauseTests {
    /// Records the events of a virtual loop, and returns its flight.
    private func record(events: Int = 4096, _ body: (Simulation) throws -> Void) throws -> Flight {
        try withSimulation { simulation in
            let recorder = try FlightRecorder(simulation.loop, events: events)
            try body(simulation)
            return try recorder.memory.flight()
        }
    }

    // MARK: Tasks

    @Test("tasks are distinguished by name, line and number, with their polls and wakes")
    func tasks() throws {
        let line = RunLoop.Origin(line: #line + 4)
        let flight = try record { simulation in
            let loop = simulation.loop
            func start(_ name: String, _ sleeps: Int, _ work: Int) {
                loop.task(name: name) {
                    for _ in 0..<sleeps {
                        try await loop.clock.sleep(for: .seconds(1))
                        simulation.spend(.milliseconds(work))
                    }
                }
            }
            start("busy", 9, 1)
            start("slow", 2, 100)
            start("busy", 5, 2)
            simulation.advance(by: .seconds(20))
        }
        let tasks = flight.tasks.map { "\($0.handler?.name ?? "") \($0.polls) \($0.wakes) \($0.time) \($0.longest)" }
        #expect(
            tasks == [
                "busy 10 10 0.009 seconds 0.001 seconds", "busy 6 6 0.01 seconds 0.002 seconds",
                "slow 3 3 0.2 seconds 0.1 seconds",
            ], "\(tasks)")
        #expect(flight.tasks.allSatisfy { $0.handler?.kind == .task && $0.handler?.origin == "\(line)" })
        #expect(Set(flight.tasks.map(\.number)).count == 3)
        #expect("\(flight)".contains("  10 polls in 9.00 ms, the longest 1.00 ms, 10 wakes"), "\(flight)")
    }

    @Test("a task that waits for its turn says how long, and which handler woke it")
    func turn() throws {
        let flight = try record { simulation in
            let loop = simulation.loop
            let (values, input) = AsyncStream<Int>.makeStream()
            loop.task(name: "reader") { for await _ in values { simulation.spend(.milliseconds(1)) } }
            let timer = Timer(at: simulation.now + .seconds(1)) { _ in
                input.yield(1)
                simulation.spend(.milliseconds(50))
                input.finish()
            }
            timer.name = "writer"
            loop.add(timer, forMode: .default)
            simulation.advance(by: .seconds(2))
        }
        #expect(flight.tasks.map(\.longestWait) == [.milliseconds(50)])
        #expect(flight.calls.compactMap { $0.task == nil ? nil : $0.cause?.handler?.name } == ["writer"])
    }

    @Test("a task of no loop that prefers one has a number, and no name for each number is kept")
    func foreignTasks() throws {
        let flight = try record { simulation in
            let executor = simulation.loop.remote.executor()
            for _ in 0..<100 { Task(executorPreference: executor.task) { simulation.loop.wakeUp() } }
            simulation.advance(by: .seconds(1))
        }
        #expect(flight.tasks.count == 100 && flight.tasks.allSatisfy { $0.polls == 1 && $0.number != 0 })
        #expect(Set(flight.tasks.map(\.handler)).count == 1)
        #expect(flight.tasks.first?.handler?.kind == .executor && flight.tasks.first?.handler?.name == nil)
    }

    // MARK: Wake-ups

    @Test("a wake-up has its reason: a date, a descriptor, or the mail of another thread")
    func reasons() throws {
        let pair = DescriptorPair()
        let descriptor = pair.reader
        let (steps, memory) = (Counter(), Log<FlightRecorder.Memory>())
        let daemon = LoopThread(name: "daemon") { loop in
            let recorder = try! FlightRecorder(loop)
            let source = DescriptorSource(fileDescriptor: descriptor, events: .readable) { source, _ in
                steps.add()
                source.invalidate()
            }
            source.name = "pipe"
            try! loop.add(source, forMode: .default)
            // Late enough that a slow machine is asleep before it.
            loop.perform(afterDelay: .milliseconds(250)) {
                steps.add()
                withExtendedLifetime(recorder) {}
            }
            loop.perform(afterDelay: .seconds(3600)) { withExtendedLifetime(recorder) {} }
            memory.append(recorder.memory)
        }
        func isAsleep(after count: Int) -> Bool { steps.value == count && daemon.remote.isWaiting }
        _ = eventually { isAsleep(after: 1) }
        pair.write()
        _ = eventually { isAsleep(after: 2) }
        let remote = daemon.remote
        let poster = LoopThread(name: "poster") { _ in remote.perform { _ in steps.add() } }
        _ = eventually { isAsleep(after: 3) }
        poster.stop()
        // A thread that wakes the loop when there is nothing to do.
        let nuisance = LoopThread(name: "nuisance") { loop in
            loop.add(Timer(timeInterval: .milliseconds(1), repeats: true) { _ in remote.wakeUp() }, forMode: .default)
        }
        _ = eventually { (try? memory.entries[0].flight().idleWakeUps) ?? 0 > 0 }
        nuisance.stop()
        let flight = try #require(try memory.entries.first?.flight())
        let reasons = flight.wakeUps.filter { $0.idle == 0 }.map(\.reason)
        #expect(reasons.count == 3, "\(reasons)")
        #expect(reasons.contains(.date) && reasons.contains(.thread("poster")))
        #expect(reasons.contains { if case .source(let source) = $0 { source?.name == "pipe" } else { false } })
        #expect(flight.wakeUps.filter { $0.idle > 0 }.map(\.reason) == [.thread("nuisance")])
        #expect("\(flight)".contains("  woken 1 times by the thread \"poster\""), "\(flight)")
        daemon.stop()
        daemon.join()
    }

    // MARK: Posts and timers

    @Test("blocks, delayed calls and timers that fire once name the handler that caused them")
    func causes() throws {
        let flight = try record { simulation in
            let loop = simulation.loop
            let idle = Timer(at: .distantFuture) { _ in }
            idle.name = "idle"
            loop.add(idle, forMode: .default)
            func cause(_ name: String, at seconds: Int, _ body: @escaping () -> Void) {
                let timer = Timer(timeInterval: .seconds(seconds), repeats: true) { timer in
                    body()
                    timer.invalidate()
                }
                timer.name = name
                loop.add(timer, forMode: .default)
            }
            cause("poster", at: 1) {
                loop.perform(inModes: "other") {}
                loop.perform {}
            }
            cause("remote poster", at: 2) { loop.remote.perform { _ in } }
            cause("caller", at: 3) { loop.perform(afterDelay: .seconds(10)) {} }
            cause("first", at: 4) { idle.fireDate = simulation.now + .seconds(10) }
            cause("second", at: 5) { idle.fireDate = simulation.now + .seconds(20) }
            simulation.advance(by: .seconds(30))
            loop.poll(in: "other")
        }
        let causes = flight.calls.compactMap { call in
            call.cause.map { "\(call.handler!.kind) by \($0.handler?.name ?? "nobody") at \($0.time!)" }
        }
        #expect(
            causes == [
                "block by poster at 1.000000000", "block by remote poster at 2.000000000",
                "delayed call by caller at 3.000000000", "timer by second at 5.000000000",
                "block by poster at 1.000000000",
            ], "\(causes)")
        let text = Flight.traceEvents(of: [flight])
        let count = { (what: String) in text.split(separator: "\n").count { $0.contains(what) } }
        #expect(count(#""ph":"s""#) == 5 && count(#""ph":"f""#) == 5)
    }

    @Test("a block of another loop's thread names that thread, and an arrow leads from the handler there")
    func betweenLoops() throws {
        try withSimulation { simulation in
            let recorder = try FlightRecorder(simulation.loop)
            let remote = simulation.loop.remote
            let memory = Log<FlightRecorder.Memory>()
            let thread = LoopThread(name: "worker") { loop in
                let recorder = try! FlightRecorder(loop)
                memory.append(recorder.memory)
                let timer = Timer(timeInterval: .seconds(1), repeats: true) { timer in
                    remote.perform { _ in }
                    withExtendedLifetime(recorder) {}
                }
                timer.name = "asks"
                loop.add(timer, forMode: .default)
            }
            simulation.advance(by: .milliseconds(3500))
            let here = try recorder.memory.flight()
            let there = try #require(try memory.entries.first?.flight())
            let threads = here.calls.filter { $0.handler?.kind == .block }.map { $0.cause?.thread }
            #expect(threads == ["worker", "worker", "worker"])
            #expect(here.wakeUps.contains { $0.reason == .thread("worker") && $0.count == 3 })
            let lines = Flight.traceEvents(of: [here, there]).split(separator: "\n")
            let arrows = lines.filter { $0.contains(#""name":"cause""#) }
            #expect(arrows.count { $0.contains(#""ph":"s""#) && $0.contains(#""tid":1"#) } == 3, "\(arrows)")
            #expect(arrows.count { $0.contains(#""ph":"f""#) && $0.contains(#""tid":0"#) } == 3)
            thread.stop()
        }
    }

    @Test("a task that moves between loops has arrows from the loop that woke it")
    func tasksBetweenLoops() throws {
        try withSimulation { simulation in
            let recorder = try FlightRecorder(simulation.loop)
            let thread = LoopThread(name: "worker") { loop in loop.perform(afterDelay: .seconds(3600)) {} }
            simulation.advance(by: .seconds(1))
            let worker = thread.remote
            simulation.loop.task(name: "asker") {
                for _ in 0..<2 {
                    try await worker.run { _ in }
                    try await simulation.loop.clock.sleep(for: .seconds(1))
                }
            }
            let other = Log<FlightRecorder.Memory>()
            worker.perform { loop in
                let recorder = try! FlightRecorder(loop)
                other.append(recorder.memory)
                loop.perform(afterDelay: .seconds(3600)) { withExtendedLifetime(recorder) {} }
            }
            simulation.advance(by: .seconds(5))
            let flights = try [recorder.memory.flight(), other.entries[0].flight()]
            #expect(flights[0].tasks.map { $0.handler?.name } == ["asker"])
            #expect(flights[1].tasks.map(\.number) == flights[0].tasks.map(\.number))
            let arrows = Flight.traceEvents(of: flights).split(separator: "\n").filter {
                $0.contains(#""name":"cause""#)
            }
            #expect(arrows.count { $0.contains(#""ph":"s""#) && $0.contains(#""tid":0"#) } >= 1, "\(arrows)")
            #expect(arrows.count { $0.contains(#""ph":"s""#) && $0.contains(#""tid":1"#) } >= 2, "\(arrows)")
            thread.stop()
        }
    }

    @Test("random programs: each block and each task's poll has the cause that was noted by hand", arguments: 1...30)
    func random(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        /// The timers that posted, in the order in which the blocks ran.
        var expected: [String] = []
        let flight = try record(events: 100_000) { simulation in
            let loop = simulation.loop
            loop.addCommonMode(.tracking)
            for number in 0..<10 {
                let name = "timer \(number)"
                let timer = Timer(timeInterval: .milliseconds(Int.random(in: 1...50, using: &random)), repeats: true) {
                    _ in
                    let way = Int.random(in: 0..<5, using: &random)
                    // The same line for all: only the number distinguishes them.
                    let modes: RunLoop.Modes = [.default, .tracking, .common, "never", .default][way]
                    loop.perform(inModes: modes) { expected.append(name) }
                    if way == 0 { loop.run(in: .tracking, until: simulation.now + .milliseconds(3)) }
                }
                timer.name = name
                loop.add(timer, forMode: .common)
            }
            simulation.advance(by: .seconds(1))
        }
        #expect(flight.lost == 0)
        let found = flight.calls.filter { $0.handler?.kind == .block }.map { $0.cause?.handler?.name ?? "nobody" }
        #expect(found == expected && found.count > 20, "seed \(seed)")
    }

    @Test("counters show blocks and jobs that wait, and the lateness of timers")
    func counters() throws {
        let flight = try record { simulation in
            let loop = simulation.loop
            let timer = Timer(at: simulation.now + .seconds(1)) { _ in
                for _ in 0..<3 { loop.perform {} }
                simulation.spend(.milliseconds(1))
            }
            loop.add(timer, forMode: .default)
            loop.add(Timer(at: simulation.now + .seconds(1)) { _ in }, forMode: .default)
            simulation.advance(by: .seconds(2))
        }
        let lines = Flight.traceEvents(of: [flight]).split(separator: "\n").filter { $0.contains(#""ph":"C""#) }
        let blocks = lines.filter { $0.contains("waiting") }.map { $0.split(separator: #""blocks":"#)[1].prefix(1) }
        #expect(blocks == ["1", "2", "3", "2", "1", "0"], "\(lines)")
        #expect(lines.filter { $0.contains("lateness") }.map { $0.contains(#""µs":1000.000"#) } == [false, true])
    }
}
