@_spi(Ports) import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("Timer sources and the runs of their loop", .timeLimit(.minutes(15)))
struct TimerSourceModeTests {
    @Test("a source delivers in every mode: tracking, one that nothing is scheduled in, one first named later")
    func everyMode() {
        withSimulation { simulation in
            let log = Log<String>()
            let loop = simulation.loop
            let unused = RunLoop.Mode("unused \(#line)")
            let source = TimerSource(queue: .current)
            source.setEventHandler(on: loop) {
                log.note(loop.currentMode!.name, simulation); _ = $0
            }
            source.schedule(after: .milliseconds(10), repeating: .milliseconds(10))
            source.activate()
            let later = RunLoop.Mode("later \(#line)")
            loop.addCommonMode(later)
            for mode in [.default, .tracking, unused, later] as [RunLoop.Mode] {
                #expect(loop.run(in: mode, until: loop.now + .milliseconds(10)) == .timedOut)
            }
            let names = [RunLoop.Mode.default, .tracking, unused, later].map(\.name)
            #expect(log.entries == zip([10, 20, 30, 40], names).map { "\($0): \($1)" })
            loop.checkInvariants()
        }
    }

    @Test("sources and timers of one date fire in the order in which they were armed")
    func order() {
        withSimulation { simulation in
            let log = Log<String>()
            let first = TimerSource(queue: .current)
            first.setEventHandler { _ in log("first") }
            first.schedule(after: .milliseconds(10))
            first.activate()
            Timer.scheduledTimer(withTimeInterval: .milliseconds(10), repeats: false) { _ in log("timer") }
            let last = TimerSource(queue: .current)
            last.setEventHandler { _ in log("last") }
            last.schedule(after: .milliseconds(10))
            last.activate()
            simulation.advance(by: .milliseconds(10))
            #expect(log.entries == ["first", "timer", "last"])
            withExtendedLifetime((first, last)) {}
        }
    }

    @Test("a nested run inside the handler does not deliver the same source, but others (R175)")
    func nested() {
        withSimulation { simulation in
            let log = Log<String>()
            let loop = simulation.loop
            let other = TimerSource(queue: .current)
            other.setEventHandler { _ in log.note("other", simulation) }
            other.schedule(after: .milliseconds(15), repeating: .milliseconds(20))
            other.activate()
            let source = TimerSource(queue: .current)
            source.setEventHandler(on: loop) { source in
                log.note(source)
                guard log.entries.count == 1 else { return }
                loop.run(in: .tracking, until: ms(45))
                log.note("end", simulation)
            }
            source.schedule(after: .milliseconds(10), repeating: .milliseconds(10))
            source.activate()
            simulation.advance(to: ms(50))
            #expect(log.entries == ["10: 1", "15: other", "35: other", "45: end", "45: 3", "50: 1"])
        }
    }

    @Test("a nested run may schedule, suspend and resume the source whose handler it is in")
    func nestedChanges() {
        withSimulation { simulation in
            let log = Log<String>()
            let loop = simulation.loop
            let source = TimerSource(queue: .current)
            source.setEventHandler(on: loop) { source in
                log.note(source)
                guard log.entries.count == 1 else { return }
                loop.perform(afterDelay: .milliseconds(5)) {
                    source.schedule(after: .milliseconds(1), repeating: .milliseconds(2))
                    source.suspend()
                    source.resume()
                }
                loop.run(in: .default, until: ms(20))
                log.note("end", simulation)
            }
            source.schedule(after: .milliseconds(10), repeating: .milliseconds(10))
            source.activate()
            simulation.advance(to: ms(23))
            #expect(log.entries == ["10: 1", "20: end", "20: 3", "22: 1"])
        }
    }

    @Test("a source with something to deliver keeps runs going, also while suspended; a cancelled one does not")
    func keepsRunsGoing() {
        withSimulation { simulation in
            let loop = simulation.loop
            let source = TimerSource(queue: .current)
            source.schedule(after: .milliseconds(10), repeating: .milliseconds(10))
            source.activate()
            #expect(loop.run(in: .tracking, until: ms(25)) == .timedOut)
            source.suspend()
            #expect(loop.run(in: .default, until: ms(45)) == .timedOut)
            #expect(loop.run(in: .default) == .starved)
            source.cancel()
            #expect(loop.run(in: .default) == .finished)
            #expect(loop.now == ms(45))
        }
    }

    @Test("a one-shot keeps a run going until it has been delivered")
    func oneShotKeepsRunGoing() {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(.current, log, after: 10, every: nil)
            #expect(simulation.loop.run(in: .tracking) == .finished)
            #expect(log.entries == ["10: 1"])
            withExtendedLifetime(source) {}
        }
    }

    @Test("a cancel handler that is owed keeps a run going until it has been called")
    func owedCancelKeepsRunGoing() {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(queue: .current)
            source.setCancelHandler { log.note("cancel", simulation) }
            source.activate()
            source.cancel()
            #expect(simulation.loop.run(in: .tracking) == .finished)
            #expect(log.entries == ["0: cancel"])
        }
    }

    @Test("a pool's source does not keep its maker's run going")
    func poolKeepsNothing() {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(.background, log, after: 10, every: 10)
            #expect(simulation.loop.run(in: .default) == .finished)
            #expect(simulation.now == ms(0))
            withExtendedLifetime(source) {}
        }
    }

    @Test("a delivery is a line in the trace, and counts as a fire")
    func trace() {
        withSimulation(traced: true) { simulation in
            let source = TimerSource(queue: .current, name: "pulse")
            source.setEventHandler { _ in }
            source.schedule(deadline: ms(-150), repeating: .milliseconds(100))
            source.activate()
            let unnamed = TimerSource(queue: .current)
            unnamed.setEventHandler { _ in }
            unnamed.schedule(after: .milliseconds(60))
            unnamed.activate()
            simulation.loop.run(in: .tracking, until: ms(60))
            #expect(
                simulation.trace == [
                    "0.000000000 main tracking run tracking",
                    "0.000000000 main tracking deliver pulse data 2",
                    "0.050000000 main tracking deliver pulse data 1",
                    "0.060000000 main tracking deliver source data 1",
                    "0.060000000 main tracking end tracking timedOut",
                ])
            #expect(simulation.loop.statistics.fires == 3)
            withExtendedLifetime((source, unnamed)) {}
        }
    }

    @Test("the waits of a starved run name the sources, armed and held back")
    func waitingItems() {
        withSimulation { simulation in
            let held = TimerSource(queue: .current, name: "held")
            held.schedule(after: .milliseconds(10))
            held.activate()
            held.suspend()
            let heldText = "timer source \"held\" (\(held.origin)) in every mode, held back"
            #expect("\(simulation.runUntilIdle())" == "stuck:\n  main has waited since 0.000000000 for \(heldText)")
            let source = TimerSource(queue: .current, name: "pulse")
            source.schedule(after: .seconds(10), repeating: .seconds(10))
            source.activate()
            let text = "timer source \"pulse\" (\(source.origin)) in every mode, due 20.000000000, every 10.0 seconds"
            let next = "timer source \"pulse\" (\(source.origin)) of main"
            #expect(simulation.runUntilIdle(limit: .seconds(15)) == .idle(until: seconds(20), next: next))
            #expect(simulation.waits.map(\.what) == [text, heldText])
        }
    }
}

@Suite("Timer sources on the real clock", .timeLimit(.minutes(15)))
struct TimerSourceRealTests {
    @Test("never early with leeway, on a thread's loop and on a pool, and every fire is counted once (R174)")
    func neverEarly() {
        let early = Log<String>()
        let pool = LoopThreadPool(name: "early")
        let thread = LoopThread(name: "early") { $0.add(CustomSource(), forMode: .default) }
        let begin = DeliveryQueue.thread(thread).now
        let counts = (0..<40).map { _ in Counter() }
        let sources = counts.enumerated().map { number, count in
            let source = TimerSource(queue: number % 2 == 0 ? .pool(pool) : .thread(thread))
            let period = Duration.microseconds(700 + 130 * number)
            source.setEventHandler { source in
                let fires = count.add(source.data)
                let due = begin + .milliseconds(5) + period * (fires - 1)
                if source.queue.now < due { early("source \(number), fire \(fires)") }
                // The next date lies ahead: none was left out.
                if fires >= 50 { source.cancel() }
            }
            source.schedule(
                deadline: begin + .milliseconds(5), repeating: period, leeway: .microseconds(97 * number))
            source.activate()
            return source
        }
        _ = eventually("all are cancelled") { sources.allSatisfy(\.isCancelled) }
        #expect(early.entries == [])
        #expect(counts.allSatisfy { $0.value >= 50 })
        thread.stop()
        thread.join()
        pool.stop()
        pool.join()
    }

    @Test("a leeway without end neither traps nor makes a fire early")
    func endlessLeeway() {
        let fires = Counter()
        let early = Counter()
        let thread = LoopThread(name: "leeway") { loop in
            let begin = loop.now
            let source = TimerSource(queue: .loop(loop.remote))
            source.setEventHandler(on: loop) { [loop] source in
                if loop.now < begin + .milliseconds(3) { early.add() }
                fires.add()
                source.cancel()
            }
            source.schedule(
                deadline: begin + .milliseconds(3), repeating: .milliseconds(1),
                leeway: .milliseconds(20))
            source.activate()
            let never = TimerSource(queue: .loop(loop.remote))
            never.setEventHandler { _ in early.add() }
            never.schedule(
                deadline: RunLoop.Instant(nanoseconds: .max - 1), repeating: .seconds(1),
                leeway: Duration(secondsComponent: .max, attosecondsComponent: 0))
            never.activate()
            loop.run(in: .default, until: begin + .milliseconds(40))
            withExtendedLifetime((source, never)) {}
        }
        thread.join()
        #expect(fires.value == 1)
        #expect(early.value == 0)
    }
}
