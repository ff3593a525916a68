@_spi(Ports) import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

private typealias WallTime = RunLoop.WallTime

/// A schedule at a fixed interval of seconds since 1970, up to a last date.
private struct Every: WallSchedule {
    let seconds: Int64
    var last = WallTime.distantFuture

    func next(after time: RunLoop.WallTime) -> RunLoop.WallTime? {
        let next = WallTime(secondsSince1970: (time.secondsSince1970 / seconds + 1) * seconds)
        return next <= last ? next : nil
    }
}

private let start = WallTime(secondsSince1970: 1_000 * 24 * 3600)

private func at(_ hours: Int64) -> WallTime { start + .seconds(hours * 3600) }

@Suite("Sleeps until a time of the wall clock")
struct WallSleepTests {
    /// Runs a task that notes the time of the wall clock, in hours.
    private func hours(
        _ operation: @escaping (RunLoop, (WallTime) -> Void) async throws -> Void, while script: (Simulation) -> Void
    ) -> [String] {
        var words: [String] = []
        withSimulation(startingAt: start) { simulation in
            let loop = simulation.loop
            loop.task {
                try await operation(loop) {
                    words.append("\(($0 - start) / .seconds(3600))@\((loop.wallTime - start) / .seconds(3600))")
                }
            } then: {
                if case .failure(let error) = $0 { words.append("\(error)") }
            }
            script(simulation)
            loop.checkInvariants()
        }
        return words
    }

    @Test("a sleep ends when the clock shows the time, and at once if it does already")
    func single() {
        let words = hours { loop, note in
            try await loop.clock.sleep(untilWallTime: at(3))
            note(at(3))
            try await loop.clock.sleep(untilWallTime: at(2))
            note(at(2))
        } while: {
            #expect($0.runUntilIdle() == .done)
        }
        #expect(words == ["3.0@3.0", "2.0@3.0"])
    }

    @Test("a sleep follows a clock that is set forward, set back, or continues while the machine sleeps")
    func steps() {
        let forward = hours { loop, note in
            try await loop.clock.sleep(untilWallTime: at(10))
            note(at(10))
        } while: { simulation in
            simulation.advance(by: .seconds(3600))
            simulation.wallTime = at(9)
            simulation.advance(by: .seconds(3599))
            simulation.sleepMachine(for: .seconds(3600))
            simulation.advance(by: .seconds(1))
        }
        #expect(forward == ["10.0@\(Double(10 * 3600 + 3599) / 3600)"])
        let back = hours { loop, note in
            try await loop.clock.sleep(untilWallTime: at(10))
            note(at(10))
        } while: { simulation in
            simulation.advance(by: .seconds(9 * 3600))
            simulation.wallTime = at(1)
            #expect(simulation.runUntilIdle() == .done)
            #expect(simulation.now == seconds(18 * 3600))
        }
        #expect(back == ["10.0@10.0"])
    }

    @Test("the dates of a schedule come one by one, missed ones too, none twice, and end with the schedule")
    func schedule() {
        let words = hours { loop, note in
            var last: WallTime?
            while let date = try await loop.clock.sleep(untilNext: Every(seconds: 3600, last: at(6)), after: last) {
                note(date)
                last = date
            }
        } while: { simulation in
            simulation.advance(by: .seconds(3600 + 60))
            // An hour back, just after the first date.
            simulation.wallTime = simulation.wallTime - .seconds(3600)
            simulation.advance(by: .seconds(3600 * 2))
            simulation.sleepMachine(for: .seconds(3600 * 3))
            #expect(simulation.runUntilIdle() == .done)
        }
        let late = "\((Double(5 * 3600) + 60) / 3600)"
        #expect(words == ["1.0@1.0", "2.0@2.0", "3.0@\(late)", "4.0@\(late)", "5.0@\(late)", "6.0@6.0"])
    }

    @Test("without a date to begin with, dates that have come are passed over")
    func fromNow() {
        let words = hours { loop, note in
            for _ in 0..<2 {
                if let date = try await loop.clock.sleep(untilNext: Every(seconds: 3600)) { note(date) }
                try await loop.clock.sleep(for: .seconds(2 * 3600 + 1))
            }
        } while: {
            $0.advance(by: .seconds(20 * 3600))
        }
        #expect(words == ["1.0@1.0", "4.0@4.0"])
    }

    @Test("a sleep that is cancelled, or whose loop ends, leaves nothing behind")
    func ends() async {
        let words = hours { loop, _ in
            try await loop.withTimeout(.seconds(60)) { try await loop.clock.sleep(untilWallTime: at(10)) }
        } while: { simulation in
            #expect(simulation.runUntilIdle() == .done)
            #expect(simulation.now == seconds(60))
        }
        #expect(words.count == 1 && words[0].hasPrefix("the deadline 60.000000000"))
        let log = Log<String>()
        let thread = LoopThread(name: "short") { loop in
            loop.task {
                try await loop.clock.sleep(untilWallTime: .distantFuture)
            } then: {
                log("\($0)")
            }
            loop.perform(afterDelay: .milliseconds(1)) { loop.stop() }
        }
        await thread.ended()
        #expect(log.entries == ["failure(the run loop \"short\" has ended)"])
    }
}
