@_spi(Ports) import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopConsole

@Suite("A loop in a snapshot, on virtual time")
struct SamplerTests {
    /// A loop whose state is sampled between its runs.
    private final class Sampled {
        let loop: RunLoop
        private var sampler: LoopSampler
        private var report: LoopReport
        private var next = 0

        init(_ loop: RunLoop) {
            self.loop = loop
            report = LoopReport(loop)
            sampler = LoopSampler(name: "loop", interval: .milliseconds(200), at: loop.now)
            _ = sample()
        }

        func sample(isLate: Bool = false, isAsleep: Bool = true, withoutLast count: Int = 0) -> Console.Loop {
            if !isLate { report = LoopReport(loop) }
            let flight = try! report.access.memory!.flight(from: next)
            next = flight.end - count
            sampler.read(flight.entries.dropLast(count))
            return sampler.sample(
                LoopSampler.Sight(now: loop.now, report: report, isLate: isLate, isAsleep: isAsleep))
        }

        func run(_ duration: Duration) { loop.run(in: .default, until: loop.now + duration) }
    }

    private func near(_ one: Double?, _ other: Double) -> Bool { one.map { abs($0 - other) < 1e-6 } ?? false }

    @Test("rates are those between the last two reports, and the time is divided among handlers and sleep")
    func rates() throws {
        withSimulation { simulation in
            let sampled = Sampled(simulation.loop)
            let loop = simulation.loop
            loop.add(CustomSource(), forMode: .default)
            let line: UInt32 = #line
            let busy = Timer(timeInterval: .milliseconds(100), repeats: true) { _ in
                simulation.spend(.milliseconds(30))
            }
            busy.name = "busy"
            loop.add(busy, forMode: .default)
            let light = Timer(timeInterval: .milliseconds(250), repeats: true) { _ in
                simulation.spend(.milliseconds(5))
            }
            loop.add(light, forMode: .default)
            sampled.run(.milliseconds(2050))
            let now = sampled.sample()
            #expect(near(now.fires, 28 / 2.05) && now.passes > 10 && now.passes < 28, "\(now)")
            #expect(near(now.asleep, 1.41 / 2.05), "\(now)")
            #expect(now.state == .asleep && now.call == nil)
            #expect(now.handlers.map(\.name) == ["busy", nil])
            #expect(now.handlers.map(\.calls) == [20, 8])
            #expect(near(now.handlers[0].share, 0.6 / 2.05) && near(now.handlers[1].share, 0.04 / 2.05))
            #expect(near(now.handlers[0].longest, 0.03))
            #expect(now.handlers[0].origin == "RunLoopConsoleTests/SamplerTests.swift:\(line + 1)")
            #expect(now.due.map(\.name) == ["busy", nil] && near(now.due[0].time, 0.05))
            #expect(now.due[0].detail == "every 0.1 seconds")
            #expect(now.lateness.count == 28 && now.lateness.all > 0.004 && now.lateness.half == 0)

            busy.invalidate()
            light.invalidate()
            sampled.run(.seconds(1))
            let quiet = sampled.sample()
            #expect(quiet.fires == 0 && quiet.handlers.isEmpty && near(quiet.asleep, 1), "\(quiet)")
            #expect(quiet.lateness == Console.Lateness())
        }
    }

    @Test("a call that has not returned is shown with its time so far, and blocks the loop when it is long")
    func blocked() throws {
        try withSimulation { simulation in
            let (sampled, loop) = (Sampled(simulation.loop), simulation.loop)
            var seen: [Console.Loop] = []
            let timer = Timer(timeInterval: .seconds(1), repeats: false) { _ in
                for _ in 0..<3 {
                    simulation.spend(.milliseconds(150))
                    seen.append(sampled.sample(isLate: true, isAsleep: false))
                }
            }
            timer.name = "long"
            loop.add(timer, forMode: .default)
            sampled.run(.seconds(2))
            try #require(seen.count == 3)
            #expect(seen.map(\.state) == [.silent, .blocked, .blocked])
            #expect(seen.map(\.call?.name) == ["long", "long", "long"])
            for (index, time) in [0.15, 0.3, 0.45].enumerated() {
                #expect(near(seen[index].call?.time, time) && near(seen[index].age, 1 + time))
                #expect(seen[index].passes == 0)
            }
            #expect(near(seen[0].asleep, 1 / 1.15) && seen[1].asleep == 0)
            #expect(near(seen[1].handlers[0].share, 1) && near(seen[1].handlers[0].longest, 0.3))
            #expect(seen[1].handlers[0].calls == 0 && seen[0].handlers[0].calls == 1)
            let after = sampled.sample()
            #expect(after.call == nil && after.state == .asleep && near(after.handlers[0].longest, 0.45))
        }
    }

    @Test("a handler that runs the loop nested does not block it, and the time of nested calls is not its own")
    func nested() throws {
        try withSimulation { simulation in
            let (sampled, loop) = (Sampled(simulation.loop), simulation.loop)
            var seen: Console.Loop?
            let outer = Timer(timeInterval: .milliseconds(100), repeats: false) { _ in
                simulation.spend(.milliseconds(100))
                loop.run(in: .tracking, until: loop.now + .seconds(1))
                simulation.spend(.milliseconds(200))
            }
            outer.name = "outer"
            loop.add(outer, forMode: .default)
            let inner = Timer(timeInterval: .milliseconds(600), repeats: false) { _ in
                simulation.spend(.milliseconds(300))
            }
            inner.name = "inner"
            loop.add(inner, forMode: .tracking)
            let look = Timer(timeInterval: .milliseconds(1000), repeats: false) { _ in }
            loop.add(look, forMode: .tracking)
            loop.add(CustomSource(), forMode: .tracking)
            let observer = Observer(activities: .beforeWaiting) { _, _ in
                // As another thread would see the loop that is about to sleep.
                if loop.now == ms(1000) { seen = sampled.sample(withoutLast: 1) }
            }
            loop.add(observer, forMode: .tracking)
            sampled.run(.seconds(2))
            let middle = try #require(seen)
            #expect(middle.call == nil && middle.modes == ["default", "tracking"])
            #expect(middle.handlers.map(\.name) == ["inner", "outer", nil, nil], "\(middle.handlers)")
            #expect(near(middle.handlers[0].share, 0.3) && near(middle.handlers[1].share, 0.1))
            #expect(near(middle.asleep, 0.6))
            let end = sampled.sample()
            #expect(end.handlers.first?.name == "outer" && near(end.handlers.first?.longest, 1.3), "\(end.handlers)")
        }
    }

    @Test("a line that only makes timers has a growth")
    func leak() {
        withSimulation { simulation in
            let (sampled, loop) = (Sampled(simulation.loop), simulation.loop)
            let line: UInt32 = #line
            let leaking = Timer(timeInterval: .milliseconds(20), repeats: true) { _ in
                loop.add(Timer(timeInterval: .seconds(3600), repeats: true) { _ in }, forMode: .default)
                // Items that come and go.
                loop.perform(afterDelay: .milliseconds(30)) {}
            }
            loop.add(leaking, forMode: .default)
            var growing: [[String]] = []
            for _ in 0..<4 {
                sampled.run(.milliseconds(200))
                growing.append(sampled.sample().lines.filter { $0.growth != nil }.map(\.origin))
            }
            let leak = ["RunLoopConsoleTests/SamplerTests.swift:\(line + 2)"]
            #expect(growing == [[], [], leak, leak])
            let last = sampled.sample().lines[0]
            #expect(last.count == 40 && last.growth == Console.Growth(items: 40, time: 0.8))
        }
    }

    @Test("tasks are shown with their activity")
    func tasks() {
        withSimulation { simulation in
            let (sampled, loop) = (Sampled(simulation.loop), simulation.loop)
            let sleeper = loop.task(name: "sleeper") { try await loop.clock.sleep(for: .seconds(5)) }
            loop.task(name: "waiter") { try await sleeper.value }
            var continuation: CheckedContinuation<Void, Never>?
            loop.task(name: "elsewhere") { await withCheckedContinuation { continuation = $0 } }
            sampled.run(.seconds(1))
            let tasks = sampled.sample().tasks
            #expect(tasks.map(\.name) == ["sleeper", "waiter", "elsewhere"])
            #expect(tasks[0].activity == "sleeps until 5.000000000")
            #expect(tasks[1].activity?.hasPrefix("awaits task \"sleeper\"") == true)
            #expect(tasks[2].activity == nil)
            #expect(sampled.sample().counts.tasks == 3)
            continuation?.resume()
        }
    }

    @Test("a snapshot survives the way through JSON")
    func json() {
        withSimulation { simulation in
            let (sampled, loop) = (Sampled(simulation.loop), simulation.loop)
            loop.task(name: "a \"task\"\n\u{1}") { try await loop.clock.sleep(for: .seconds(5)) }
            sampled.run(.seconds(1))
            let waiting = Console.WaitingTask(loop: "loop", number: 3, name: nil, origin: "a/b.swift:7")
            let snapshot = Console.Snapshot(
                number: 7, process: 12, program: "päng", loops: [sampled.sample()], cycles: [[waiting]])
            let line = snapshot.json
            #expect(line.count { $0 == UInt8(ascii: "\n") } == 1 && line.last == UInt8(ascii: "\n"))
            #expect((try? Console.Snapshot(json: line)) == snapshot)
            var other = snapshot
            other.version = 2
            #expect(throws: DecodingError.self) { try Console.Snapshot(json: other.json) }
            #expect(throws: DecodingError.self) { try Console.Snapshot(json: Array("{}".utf8)) }
        }
    }
}
