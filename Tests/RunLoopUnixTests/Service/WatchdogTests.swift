@_spi(Ports) import RunLoopKit
import RunLoopSimulation
import Testing

@testable import RunLoopUnix

/// The watchdog on virtual time; the manager's side reads the real socket before the time moves.
@Suite("The watchdog")
struct WatchdogTests {
    private func withWatchdog(
        inModes modes: RunLoop.Modes = .common, watching others: (Simulation) throws -> [RunLoop.Remote] = { _ in [] },
        _ body: (Simulation, Watchdog, () -> [Double]) throws -> Void
    ) throws {
        let receiver = try NotifyReceiver()
        let manager = try receiver.manager(["WATCHDOG_USEC": "4000000"])
        try withSimulation { simulation in
            let start = simulation.now
            var times: [Double] = []
            try receiver.listen(on: simulation.loop, inModes: [.common, "panel"]) { message, now in
                #expect(message == "WATCHDOG=1")
                times.append((now - start) / .seconds(1))
            }
            let others = try others(simulation)
            let watchdog = try #require(Watchdog(manager, loop: simulation.loop, inModes: modes, watching: others))
            try body(simulation, watchdog) { times }
            watchdog.invalidate()
        }
    }

    @Test("a loop that has nothing to do is well: it is fed exactly at half periods")
    func idle() throws {
        try withWatchdog { simulation, watchdog, times in
            #expect(watchdog.interval == .seconds(2))
            simulation.advance(by: .seconds(9))
            #expect(times() == [2, 4, 6, 8])
            #expect(watchdog.feedingCount == 4)
        }
    }

    @Test("the watchdog is not fed while a handler takes longer than the period, and is back on its grid afterwards")
    func blockedHandler() throws {
        try withWatchdog { simulation, _, times in
            simulation.loop.perform(at: simulation.now + .seconds(3)) { simulation.spend(.seconds(6)) }
            simulation.advance(by: .seconds(13))
            #expect(times() == [2, 9, 10, 12])
        }
    }

    @Test("the watchdog is not fed while a nested run in another mode starves its modes")
    func starvedModes() throws {
        try withWatchdog { simulation, _, times in
            let loop = simulation.loop
            let start = simulation.now
            loop.perform(at: start + .seconds(3)) {
                // The loop is busy in that mode: it makes passes, and none of them counts.
                let timer = Timer(timeInterval: .seconds(0.5), repeats: true) { _ in }
                loop.add(timer, forMode: "panel")
                loop.run(in: "panel", until: start + .seconds(9))
                timer.invalidate()
            }
            simulation.advance(by: .seconds(13))
            #expect(times() == [2, 9, 10, 12])
        }
    }

    @Test("a nested run in one of its modes feeds the watchdog")
    func nestedCommon() throws {
        try withWatchdog { simulation, _, times in
            simulation.loop.addCommonMode(.tracking)
            simulation.drag(from: simulation.now + .seconds(3), until: simulation.now + .seconds(7))
            simulation.advance(by: .seconds(9))
            #expect(times() == [2, 4, 6, 8])
        }
    }

    @Test("in the default mode alone, a drag counts as no progress")
    func defaultOnly() throws {
        try withWatchdog(inModes: .default) { simulation, _, times in
            simulation.loop.addCommonMode(.tracking)
            simulation.drag(from: simulation.now + .seconds(3), until: simulation.now + .seconds(7))
            simulation.advance(by: .seconds(9))
            #expect(times() == [2, 7, 8])
        }
    }

    @Test("the watchdog is not fed while the application reports that it is not well")
    func unhealthy() throws {
        try withWatchdog { simulation, watchdog, times in
            watchdog.isHealthy = { simulation.now < RunLoop.Instant(nanoseconds: 5_000_000_000) }
            simulation.advance(by: .seconds(9))
            #expect(times() == [2, 4])
            #expect(watchdog.isValid)
        }
    }

    /// Performs `act` on the second of two other loops, at 3 s.
    private func withOthers(
        _ act: @escaping @Sendable (Simulation, RunLoop) -> Void,
        _ body: @escaping (Simulation, () -> [Double]) throws -> Void
    ) throws {
        nonisolated(unsafe) var group: LoopGroup?
        try withWatchdog(watching: { simulation in
            let made = try LoopGroup(count: 2) { loop, number in
                guard number == 1 else { return }
                loop.perform(at: loop.now + .seconds(3), inModes: .common) { [unowned loop] in act(simulation, loop) }
            }
            group = made
            return made.loops
        }) { simulation, _, times in
            try body(simulation, times)
            group!.stop()
            group!.join()
        }
    }

    @Test("other idle loops are well, and the watching loop is not woken more often than needed")
    func othersIdle() throws {
        try withOthers({ _, _ in }) { simulation, times in
            let passes = simulation.loop.statistics.passes
            simulation.advance(by: .seconds(9))
            #expect(times() == [2, 4, 6, 8])
            #expect(simulation.loop.statistics.passes - passes < 20)
        }
    }

    @Test(
        "the watchdog is not fed while a handler of another loop takes too long, and is fed as soon as it has returned")
    func otherBlocked() throws {
        try withOthers({ simulation, _ in simulation.spend(.seconds(6)) }) { simulation, times in
            simulation.advance(by: .seconds(13))
            // The loop had come round before it was blocked.
            #expect(times() == [2, 4, 9, 10, 12])
        }
    }

    @Test("the watchdog is not fed while another loop runs in another mode")
    func otherStarved() throws {
        try withOthers({ _, loop in
            loop.add(CustomSource(), forMode: "panel")
            loop.run(in: "panel", until: loop.now + .seconds(6))
        }) { simulation, times in
            simulation.advance(by: .seconds(13))
            #expect(times() == [2, 4, 9, 10, 12])
        }
    }

    @Test("another loop that has ended has nothing left to do, also if it has just been asked")
    func otherEnded() throws {
        try withOthers({ _, loop in loop.endAllRuns() }) { simulation, times in
            simulation.advance(by: .seconds(9))
            #expect(times() == [2, 4, 6, 8])
        }
    }

    @Test("an invalidated watchdog sends nothing and leaves the loop")
    func invalidation() throws {
        try withWatchdog { simulation, watchdog, times in
            simulation.advance(by: .seconds(3))
            watchdog.invalidate()
            watchdog.invalidate()
            #expect(!watchdog.isValid)
            simulation.advance(by: .seconds(9))
            #expect(times() == [2])
        }
    }

    @Test("there is no watchdog if the manager does not ask for it or cannot be notified")
    func absent() throws {
        let receiver = try NotifyReceiver()
        try withSimulation { simulation in
            #expect(try Watchdog(receiver.manager(), loop: simulation.loop) == nil)
            let deaf = try ServiceManager(environment: ["WATCHDOG_USEC": "1000"])
            #expect(Watchdog(deaf, loop: simulation.loop) == nil)
        }
    }

    @Test("a message that cannot be sent is reported once, retried every interval, and reported anew after a success")
    func errors() throws {
        let receiver = try NotifyReceiver()
        let manager = try receiver.manager(["WATCHDOG_USEC": "4000000"])
        try withSimulation { simulation in
            let watchdog = try #require(Watchdog(manager, loop: simulation.loop))
            var errors: [ServiceManagerError] = []
            watchdog.errorHandler = { errors.append($1) }
            for spell in 1...2 {
                receiver.fill(manager)
                simulation.advance(by: .seconds(9))
                #expect(errors == Array(repeating: .busy, count: spell))
                #expect(watchdog.feedingCount == spell - 1)
                _ = receiver.messages()
                simulation.advance(by: .seconds(2))
                #expect(receiver.messages() == ["WATCHDOG=1"] && watchdog.feedingCount == spell)
            }
            watchdog.invalidate()
        }
    }

    @Test("without a handler the trace of the loop says once that the watchdog is not fed")
    func tracedError() throws {
        try withSimulation { simulation in
            let manager = try ServiceManager(
                environment: ["NOTIFY_SOCKET": "/nonexistent/notify", "WATCHDOG_USEC": "4000000"])
            let watchdog = try #require(Watchdog(manager, loop: simulation.loop))
            var lines: [String] = []
            simulation.loop.trace = { if case .ignored = $0 { lines.append("\($0)") } }
            simulation.advance(by: .seconds(9))
            #expect(lines.count == 1)
            #expect(
                lines.first?.hasPrefix("ignored: the watchdog is not fed: notify the service manager: No such") == true)
            watchdog.invalidate()
        }
    }
}
