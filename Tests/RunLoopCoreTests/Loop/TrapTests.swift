import Glibc
@_spi(Ports) import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

/// Misuse that the compiler cannot see, which ends the process with a sentence that says what to do instead.
@Suite("Traps", .timeLimit(.minutes(15)))
struct TrapTests {
    private static let wrongThread =
        "a run loop and what is scheduled in it are used on the loop's own thread only; from here use its remote"

    @Test("running a loop on another thread")
    func runElsewhere() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            misuse { loop, _, _ in loop.run(in: .default) }
        }
        let isSaid = says(Self.wrongThread, result)
        #expect(isSaid)
    }

    @Test("using a loop of a named thread on another thread: the sentence names it")
    func namedLoopElsewhere() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            func stopElsewhere() {
                let loop = Locked<Smuggled<RunLoop>?>(nil)
                let thread = LoopThread(name: "worker") { own in
                    own.add(CustomSource(), forMode: .default)
                    loop.withLock { $0 = Smuggled(own) }
                }
                _ = eventually("the thread has a loop") { loop.withLock { $0 != nil } }
                loop.withLock { $0! }.value.stop()
                withExtendedLifetime(thread) {}
            }
            stopElsewhere()
        }
        let isSaid = says("the run loop \"worker\" was used on another thread", result)
        #expect(isSaid)
    }

    @Test("stopping a loop on another thread")
    func stopElsewhere() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            misuse { loop, _, _ in loop.stop() }
        }
        let isSaid = says(Self.wrongThread, result)
        #expect(isSaid)
    }

    @Test("adding a timer on another thread")
    func addElsewhere() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            misuse { loop, timer, _ in loop.add(timer, forMode: .tracking) }
        }
        let isSaid = says(Self.wrongThread, result)
        #expect(isSaid)
    }

    @Test("posting a local block on another thread")
    func performElsewhere() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            misuse { loop, _, _ in loop.perform {} }
        }
        let isSaid = says(Self.wrongThread, result)
        #expect(isSaid)
    }

    @Test("invalidating a timer on another thread")
    func invalidateElsewhere() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            misuse { _, timer, _ in timer.invalidate() }
        }
        let isSaid = says(Self.wrongThread, result)
        #expect(isSaid)
    }

    @Test("moving a timer's date on another thread")
    func fireDateElsewhere() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            misuse { _, timer, _ in timer.fireDate = .distantFuture }
        }
        let isSaid = says(Self.wrongThread, result)
        #expect(isSaid)
    }

    @Test("signalling a source on another thread")
    func signalElsewhere() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            misuse { _, _, source in source.signal() }
        }
        let isSaid = says(Self.wrongThread, result)
        #expect(isSaid)
    }

    @Test(
        "setting a property of an item on another thread: the sentence names the item and its line",
        arguments: ItemProperty.allCases)
    fileprivate func propertyElsewhere(property: ItemProperty) async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [property] in
            property.setElsewhere()
        }
        let isSaid = says(Self.wrongThread, result)
        let isNamed = says("\"mine\" (RunLoopCoreTests/TrapTests.swift:", result)
        #expect(isSaid && isNamed)
    }

    @Test("adding an item on another thread: the sentence names the item and its line")
    func itemElsewhere() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            misuse { loop, _, _ in loop.add(Timer(at: .distantFuture) { _ in }, forMode: .default) }
        }
        let isNamed = says("timer (RunLoopCoreTests/TrapTests.swift:", result)
        #expect(isNamed)
    }

    @Test("setting the trace of a loop on another thread")
    func traceElsewhere() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            misuse { loop, _, _ in loop.trace = { _ in } }
        }
        let isSaid = says(Self.wrongThread, result)
        #expect(isSaid)
    }

    @Test("asking for the main loop on another thread")
    func mainElsewhere() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            onThread { _ = RunLoop.main }
        }
        let isSaid = says("RunLoop.main is used on the main thread only; from here use RunLoop.Remote.main", result)
        #expect(isSaid)
    }

    @Test("a mode with the name of the common modes")
    func commonMode() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = RunLoop.Mode("common")
        }
        let isSaid = says("common is the set of common modes, not a mode; schedule in Modes.common", result)
        #expect(isSaid)
    }

    @Test("a mode with the name of the common modes, written as a literal")
    func commonModeLiteral() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let mode: RunLoop.Mode = "common"
            _ = mode
        }
        let isSaid = says("common is the set of common modes, not a mode; schedule in Modes.common", result)
        #expect(isSaid)
    }

    @Test("a simulation's loop outside of the simulation")
    func simulationOutside() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            func escape() {
                let simulation = withSimulation { $0 }
                _ = simulation.loop
            }
            escape()
        }
        let isSaid = says("this thread is not one of the simulation's; use it inside withSimulation", result)
        #expect(isSaid)
    }

    @Test("a simulation's time moved by a foreign thread")
    func simulationElsewhere() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            func advanceElsewhere() {
                withSimulation { simulation in onThread { simulation.advance(by: .seconds(1)) } }
            }
            advanceElsewhere()
        }
        let isSaid = says("this thread is not one of the simulation's; use it inside withSimulation", result)
        #expect(isSaid)
    }

    @Test("a job that runs its loop until a task has ended, which comes after the job")
    func runInJob() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            endAfter(seconds: 20)
            onThread {
                let loop = RunLoop.current
                nonisolated(unsafe) let sameLoop = loop
                let runNested: @Sendable () throws -> Void = { try sameLoop.run {} }
                loop.task { try runNested() }
                loop.run(in: .default)
            }
        }
        let isSaid = says("nothing can happen any more that would end the wait, because the task comes after", result)
        #expect(isSaid)
    }

    @Test("a callback that runs the loop until a task has ended, in a run that a job has begun")
    func runWithinRunOfJob() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            endAfter(seconds: 20)
            onThread {
                let loop = RunLoop.current
                nonisolated(unsafe) let sameLoop = loop
                let runNested: @Sendable () -> Void = {
                    sameLoop.perform(afterDelay: .zero) { try? sameLoop.run {} }
                    sameLoop.run(in: .default, until: sameLoop.now + .seconds(1))
                }
                loop.task { runNested() }
                loop.run(in: .default)
            }
        }
        let isSaid = says("nothing can happen any more that would end the wait, because the task comes after", result)
        #expect(isSaid)
    }

    @Test("runs that are nested without end", arguments: [true, false])
    func endlessNesting(inSimulation: Bool) async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [inSimulation] in
            @Sendable func nest(_ loop: RunLoop) {
                loop.perform { nest(loop) }
                loop.run(in: .default)
            }
            if inSimulation {
                func simulate() { withSimulation { nest($0.loop) } }
                simulate()
            } else {
                LoopThread { nest($0) }.join()
            }
        }
        let isSaid = says("500 runs of a loop are nested in another, each in a callback of the one before", result)
        #expect(isSaid)
    }

    @Test("a loop thread that joins itself")
    func joinSelf() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            endAfter(seconds: 20)
            let box = Locked<LoopThread?>(nil)
            let thread = LoopThread { loop in
                loop.add(CustomSource(), forMode: .default)
                while box.withLock({ $0 == nil }) { sched_yield() }
                box.withLock { $0 }!.join()
            }
            box.withLock { $0 = thread }
            _ = eventually("the thread joins itself") { false }
        }
        let isSaid = says("a thread cannot wait for its own end; return", result)
        #expect(isSaid)
    }

    @Test("a loop thread that joins itself while another thread joins it")
    func joinSelfWhileJoined() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            endAfter(seconds: 20)
            let box = Locked<LoopThread?>(nil)
            let thread = LoopThread { loop in
                while box.withLock({ $0 == nil }) { sched_yield() }
                let own = box.withLock { $0 }!
                loop.perform(afterDelay: .milliseconds(100)) { own.join() }
            }
            box.withLock { $0 = thread }
            thread.join()
        }
        let isSaid = says("a thread cannot wait for its own end; return", result)
        #expect(isSaid)
    }

    @Test("a simulated loop thread that joins itself")
    func joinSelfSimulated() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            endAfter(seconds: 20)
            func joinSelf() {
                withSimulation { simulation in
                    let box = Locked<LoopThread?>(nil)
                    let thread = LoopThread { loop in
                        loop.perform(afterDelay: .seconds(1)) { box.withLock { $0 }!.join() }
                    }
                    box.withLock { $0 = thread }
                    simulation.advance(by: .seconds(2))
                }
            }
            joinSelf()
        }
        let isSaid = says("a thread cannot wait for its own end; return", result)
        #expect(isSaid)
    }
}

/// The settable properties of items.
private enum ItemProperty: String, CaseIterable, Codable {
    case name, invalidationHandler, rateLimit
    case fireDate, tolerance
    case missedDates, grace
    case preferredFramesPerSecond, frameInterval, preferredFrameRateRange, isPaused
    case scheduleHandler, cancelHandler
    case events, removalHandler

    /// Sets the property on a thread other than its item's.
    func setElsewhere() {
        let loop = RunLoop.current
        let timer = Timer(at: .distantFuture) { _ in }
        let wallTimer = WallTimer(at: .distantFuture) { _ in }
        let link = DisplayLink { _ in }
        let source = CustomSource()
        let pair = DescriptorPair()
        let descriptor = DescriptorSource(fileDescriptor: pair.reader, events: .readable) { _, _ in }
        for item in [timer, wallTimer, link, source, descriptor] { item.name = "mine" }
        loop.add(timer, forMode: .default)
        loop.add(wallTimer, forMode: .default)
        link.add(to: loop, forMode: .default)
        loop.add(source, forMode: .default)
        try! loop.add(descriptor, forMode: .default)
        let items = Smuggled((timer, wallTimer, link, source, descriptor))
        onThread {
            let (timer, wallTimer, link, source, descriptor) = items.value
            switch self {
            case .name: timer.name = "other"
            case .invalidationHandler: timer.invalidationHandler = {}
            case .rateLimit: source.rateLimit = nil
            case .fireDate: timer.fireDate = .distantFuture
            case .tolerance: timer.tolerance = .seconds(1)
            case .missedDates: wallTimer.missedDates = .skip
            case .grace: wallTimer.grace = .seconds(1)
            case .preferredFramesPerSecond: link.preferredFramesPerSecond = 30
            case .frameInterval: link.frameInterval = 2
            case .preferredFrameRateRange: link.preferredFrameRateRange = .default
            case .isPaused: link.isPaused = true
            case .scheduleHandler: source.scheduleHandler = nil
            case .cancelHandler: source.cancelHandler = nil
            case .events: descriptor.events = []
            case .removalHandler: descriptor.removalHandler = nil
            }
        }
    }
}

/// Uses a loop, its timer and its source on another thread.
private func misuse(_ body: @escaping @Sendable (RunLoop, Timer, CustomSource) -> Void) {
    let loop = RunLoop.current
    let timer = Timer.scheduledTimer(withTimeInterval: .seconds(3600), repeats: true) { _ in }
    let source = CustomSource()
    loop.add(source, forMode: .default)
    let smuggled = Smuggled((loop, timer, source))
    onThread { body(smuggled.value.0, smuggled.value.1, smuggled.value.2) }
}

/// Ends a process that hangs, without the expected sentence.
private func endAfter(seconds: UInt32) {
    alarm(seconds)
}
