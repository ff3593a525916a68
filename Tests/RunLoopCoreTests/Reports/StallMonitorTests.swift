import Glibc
import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("Stalls")
struct StallMonitorTests {
    /// Runs `body` for ten virtual seconds beside a monitor with a threshold of a second.
    private func watch(_ body: (Simulation) -> Void) -> [StallMonitor.Stall] {
        let stalls = Log<StallMonitor.Stall>()
        withSimulation { simulation in
            let monitor = StallMonitor(simulation.loop, threshold: .seconds(1)) { stalls.append($0) }
            body(simulation)
            simulation.advance(by: .seconds(10))
            withExtendedLifetime(monitor) {}
        }
        return stalls.entries
    }

    @Test("a handler that blocks is named while it does, and once more when it has ended")
    func named() {
        let origin = RunLoop.Origin(line: #line + 2)
        let stalls = watch { simulation in
            let timer = Timer(fire: simulation.now + .seconds(2), interval: .zero, repeats: false) { _ in
                simulation.spend(.seconds(3))
            }
            timer.name = "poll"
            simulation.loop.add(timer, forMode: .common)
        }
        #expect(stalls.map(\.kind) == [.timer, .timer])
        #expect(stalls.map(\.name) == ["poll", "poll"])
        #expect(stalls.map(\.mode) == [.default, .default])
        #expect(stalls.map(\.origin) == [origin, origin])
        #expect(stalls.map(\.isOver) == [false, true])
        #expect(stalls[0].duration == .seconds(1), "while it lasts, not afterwards")
        #expect(stalls[1].duration > .seconds(2) && stalls[1].duration <= .seconds(3))
        let text = "timer \"poll\" (\(origin)) blocks the loop in default for 1.0 seconds"
        #expect(stalls[0].description.hasPrefix(text))
    }

    @Test("every kind of handler is seen")
    func kinds() {
        let stalls = watch { simulation in
            let loop = simulation.loop
            loop.perform(afterDelay: .zero) { loop.perform { simulation.spend(.seconds(2)) } }
            let source = CustomSource { _ in simulation.spend(.seconds(2)) }
            source.name = "touch"
            loop.add(source, forMode: .default)
            loop.asyncAfter(.seconds(3)) { source.signal() }
            loop.asyncAfter(.seconds(6)) { simulation.spend(.seconds(2)) }
        }
        #expect(stalls.filter { !$0.isOver }.map(\.kind) == [.block, .source, .timerSource])
    }

    @Test("a task that blocks is named with the line where it was started, also on another thread's loop")
    func tasks() {
        let origin = RunLoop.Origin(line: #line + 4)
        let stalls = watch { simulation in
            let loop = simulation.loop
            loop.task(name: "first") { try await loop.clock.sleep(for: .seconds(4)) }
            loop.task(name: "second") { simulation.spend(.seconds(2)) }
        }
        #expect(stalls.map(\.kind) == [.task, .task])
        #expect(stalls.map(\.name) == ["second", "second"] && stalls.map(\.origin) == [origin, origin])
        #expect("\(stalls[0])".hasPrefix("task \"second\" (\(origin)) blocks the loop in default for"))

        let elsewhere = watch { simulation in
            let home = simulation.loop.remote
            _ = LoopThread(name: "worker") { loop in
                loop.add(CustomSource(), forMode: .default)
                loop.task { try await home.run { _ in simulation.spend(.seconds(2)) } }
            }
        }
        #expect(elsewhere.map(\.kind) == [.task, .task] && elsewhere.allSatisfy { $0.name == nil })
        #expect(elsewhere.first?.origin.line == origin.line + 10)
    }

    @Test("in a simulation nothing happens for a monitor, and nothing is left to happen, unless a call takes time")
    func costsNothing() {
        func trace(isMonitored: Bool, spending time: Duration = .zero) -> [String] {
            withSimulation(traced: true) { simulation in
                let monitor =
                    isMonitored ? StallMonitor(simulation.loop, threshold: .milliseconds(200)) { _ in } : nil
                var count = 0
                Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { timer in
                    count += 1
                    simulation.spend(time)
                    if count == 100 { timer.invalidate() }
                }
                #expect(simulation.runUntilIdle() == .done)
                withExtendedLifetime(monitor) {}
                return simulation.trace
            }
        }
        let (plain, monitored) = (trace(isMonitored: false), trace(isMonitored: true))
        #expect(monitored.filter { !$0.contains(" stalls ") } == plain)
        #expect(monitored.count { $0.contains(" stalls ") } < 4, "\(monitored)")
        // The cost of a call that takes time ends with the call.
        let ends = [true, false].map { trace(isMonitored: $0, spending: .milliseconds(20)).last }
        #expect(ends[0] == ends[1])
    }

    @Test("a report comes when the threshold has passed, to the nanosecond, and another one at the end")
    func exact() {
        let stalls = watch { simulation in
            simulation.loop.perform(afterDelay: .milliseconds(1234)) { simulation.spend(.milliseconds(1001)) }
            simulation.loop.perform(afterDelay: .seconds(5)) { simulation.spend(.milliseconds(999)) }
        }
        #expect(stalls.map(\.duration) == [.seconds(1), .milliseconds(1001)])
        #expect(stalls.map(\.isOver) == [false, true])
    }

    @Test("a quick handler, or one that runs the loop nested, is no stall; one that blocks after a nested run is")
    func nested() {
        let stalls = watch { simulation in
            let loop = simulation.loop
            for second in 0..<9 {
                loop.perform(afterDelay: .seconds(second)) { simulation.spend(.milliseconds(900)) }
            }
        }
        #expect(stalls.isEmpty)
        let after = watch { simulation in
            let loop = simulation.loop
            loop.add(CustomSource(), forMode: .tracking)
            loop.perform(afterDelay: .seconds(1)) {
                loop.run(in: .tracking, until: loop.now + .seconds(4))
                simulation.spend(.seconds(2))
            }
        }
        #expect(after.map(\.isOver) == [false, true])
        #expect(after[0].duration == .seconds(1), "counted from the end of the nested run")
    }

    @Test("on the real clock a handler that waits has computed nothing, and is reported while it waits")
    func real() {
        let stalls = Log<StallMonitor.Stall>()
        let isOver = Flag()
        LoopThread(name: "stalled") { loop in
            let monitor = StallMonitor(loop, threshold: .milliseconds(20)) { stall in
                if !stall.isOver { stalls.append(stall) }
                if stall.isOver { isOver.set() }
            }
            loop.perform(afterDelay: .milliseconds(1)) {
                // Until the report has come: a monitor that waited for the handler would hang here.
                while stalls.entries.isEmpty { usleep(5_000) }
            }
            loop.run(in: .default)
            while !isOver.isSet { usleep(5_000) }
            withExtendedLifetime(monitor) {}
        }.join()
        #expect(stalls.entries.count == 1)
        #expect(stalls.entries[0].duration >= .milliseconds(20))
        #expect(stalls.entries[0].cpuTime < stalls.entries[0].duration)
    }
}
