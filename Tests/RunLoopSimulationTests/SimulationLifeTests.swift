import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("Simulations: trace and life", .timeLimit(.minutes(15)))
struct SimulationLifeTests {
    /// Returns the trace of a mixed program: several threads, equal dates, nested runs, posts, work, notes.
    private func busyTrace(traced: Bool = true) -> [String] {
        withSimulation(traced: traced) { simulation in
            let loop = simulation.loop
            loop.addCommonMode(.tracking)
            let mainRemote = loop.remote
            let workers = (0..<4).map { number in
                LoopThread(name: "worker \(number)") { loop in
                    let timer = Timer.scheduledTimer(withTimeInterval: .milliseconds(300), repeats: true) { timer in
                        simulation.note("tick")
                        if number == 2 { simulation.spend(.milliseconds(350)) }
                        mainRemote.perform { _ in simulation.note("heard of \(number)") }
                    }
                    timer.name = "t\(number)"
                }
            }
            let timer = Timer(timeInterval: .milliseconds(250), repeats: true) { _ in
                workers[1].remote.perform { _ in simulation.note("posted") }
            }
            timer.name = "main"
            loop.add(timer, forMode: .common)
            simulation.drag(from: simulation.now + .seconds(1), until: simulation.now + .seconds(2))
            loop.perform(afterDelay: .seconds(2.5)) { workers[0].stop() }
            simulation.advance(by: .seconds(4))
            simulation.runUntilIdle(limit: .seconds(1))
            return simulation.trace
        }
    }

    @Test("the trace is the same, byte for byte, from run to run")
    func sameTrace() {
        let first = busyTrace()
        #expect(first.count > 100)
        for _ in 0..<20 { #expect(busyTrace() == first) }
    }

    @Test("the trace is the same when other threads of the process are busy")
    func sameTraceUnderLoad() {
        let first = busyTrace()
        let isDone = Flag()
        let spinners = (0..<4).map { _ in PlainThread { while !isDone.isSet {} } }
        for _ in 0..<5 { #expect(busyTrace() == first) }
        isDone.set()
        for spinner in spinners { spinner.join() }
    }

    @Test("a line of the trace has the time, the thread, the mode and the event")
    func traceLines() {
        let trace = withSimulation(traced: true) { simulation in
            let timer = Timer.scheduledTimer(withTimeInterval: .seconds(2), repeats: false) { _ in
                simulation.note("a note")
            }
            timer.name = "blink"
            let thread = LoopThread(name: "worker") { loop in
                loop.perform(afterDelay: .seconds(1)) { simulation.note("another") }
            }
            simulation.advance(by: .seconds(3))
            withExtendedLifetime(thread) {}
            return simulation.trace
        }
        #expect(trace.contains("0.000000000 main default run default"))
        #expect(trace.contains("2.000000000 main default fire blink due 2.000000000 missed 0"))
        #expect(trace.contains("2.000000000 main default a note"))
        #expect(trace.contains("1.000000000 worker default another"))
        #expect(trace.firstIndex { $0.contains("another") }! < trace.firstIndex { $0.contains("a note") }!)
    }

    @Test("without being asked for, no trace is kept")
    func untraced() {
        #expect(busyTrace(traced: false) == [])
    }

    @Test("the trace reports calls that are ignored as documented")
    func ignored() {
        let trace = withSimulation(traced: true) { simulation in
            let timer = Timer.scheduledTimer(withTimeInterval: .seconds(2), repeats: false) { _ in }
            timer.invalidate()
            simulation.loop.add(timer, forMode: .default)
            return simulation.trace
        }
        #expect(trace.contains { $0.hasSuffix("was added, but it is invalid; make a new one") })
    }

    @Test("a simulation gives the thread its former loop back")
    func restores() {
        let results = onThread {
            let before = RunLoop.current
            let timer = Timer.scheduledTimer(withTimeInterval: .seconds(3600), repeats: false) { _ in }
            let isOther = withSimulation { simulation in
                RunLoop.current !== before && RunLoop.current === simulation.loop
            }
            return [isOther, RunLoop.current === before, timer.isValid, before.contains(timer, forMode: .default)]
        }
        #expect(results == [true, true, true, true])
    }

    @Test("a simulation on a thread without a loop leaves none behind")
    func restoresNothing() {
        let results = onThread {
            let simulated = withSimulation { Weak($0.loop) }
            let isGone = simulated.isGone
            // A real clock is not at zero.
            return (isGone, RunLoop.current.now > RunLoop.Instant(nanoseconds: 0))
        }
        #expect(results == (true, true))
    }

    @Test("a simulation gives the thread its former loop back also when its body throws")
    func restoresAfterError() {
        struct Failure: Error {}
        let results = onThread {
            let before = RunLoop.current
            do {
                try withSimulation { simulation in
                    Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in }
                    simulation.advance(by: .seconds(1))
                    throw Failure()
                }
                return false
            } catch {
                return RunLoop.current === before
            }
        }
        #expect(results)
    }

    @Test("a simulation within a simulation has a time of its own")
    func nested() {
        withSimulation { outer in
            let start = outer.loop
            outer.advance(by: .seconds(5))
            withSimulation { inner in
                #expect(inner.now == RunLoop.Instant(nanoseconds: 0))
                #expect(RunLoop.current === inner.loop)
                inner.advance(by: .seconds(1))
                #expect(outer.now == RunLoop.Instant(nanoseconds: 5_000_000_000))
            }
            #expect(RunLoop.current === start)
            outer.advance(by: .seconds(1))
            #expect(outer.now == RunLoop.Instant(nanoseconds: 6_000_000_000))
        }
    }

    @Test("when a simulation has ended, loop, timers, sources, blocks and the simulation itself are gone")
    func nothingLeaks() {
        let released = Counter()
        var weak: [Weak<AnyObject>] = []
        let remote = withSimulation(traced: true) { simulation in
            let loop = simulation.loop
            let tokens = (0..<5).map { _ in Token { released.add() } }
            let timer = Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in tokens[0].touch() }
            let source = CustomSource { _ in tokens[1].touch() }
            loop.add(source, forMode: .common)
            let observer = Observer(activities: .all) { _, _ in tokens[2].touch() }
            loop.add(observer, forMode: .common)
            loop.perform(inModes: .tracking) { tokens[3].touch() }
            loop.perform(afterDelay: .seconds(100)) { tokens[4].touch() }
            simulation.drag(from: simulation.now + .seconds(50), until: simulation.now + .seconds(60))
            let thread = LoopThread { loop in loop.add(CustomSource(), forMode: .default) }
            simulation.advance(by: .seconds(10))
            let objects: [AnyObject] = [simulation, loop, timer, source, observer, thread]
            weak = objects.map { Weak($0) }
            return loop.remote
        }
        #expect(weak.map(\.isGone) == Array(repeating: true, count: 6))
        #expect(released.value == 5)
        #expect(remote.perform { _ in } == false)
    }

    @Test("a drag that was under way when the simulation ended leaves nothing behind")
    func dragLeaksNothing() {
        var weak: [Weak<AnyObject>] = []
        withSimulation { simulation in
            simulation.drag(from: simulation.now + .seconds(1), until: simulation.now + .seconds(2))
            simulation.drag(from: simulation.now + .seconds(50), until: simulation.now + .seconds(60))
            simulation.advance(by: .seconds(10))
            weak = [Weak(simulation), Weak(simulation.loop)]
        }
        #expect(weak.map(\.isGone) == [true, true])
    }

    @Test("a timer that outlives its simulation is harmless")
    func timerOutlives() {
        let timer = withSimulation { simulation in
            let timer = Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in }
            _ = timer.remote
            return timer
        }
        timer.remote.invalidate()
        timer.invalidate()
        #expect(!timer.isValid)
    }

    @Test("a body's result is given back")
    func result() {
        #expect(withSimulation { simulation in simulation.now.nanoseconds + 42 } == 42)
    }
}
