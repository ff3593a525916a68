#if Adapters
import NIOCore
import RunLoopKit
import RunLoopNIO
import RunLoopSimulation
import TestSupport
import Testing

@Suite("A run loop as an event loop of SwiftNIO")
struct EventLoopTests {
    @Test("the clock is the clock of NIODeadline")
    func clock() {
        let eventLoop = RunLoop.current.nio
        let before = NIODeadline.now()
        let now = eventLoop.now
        #expect(before <= now && now <= NIODeadline.now())
    }

    @Test("tasks run in order, on the loop's thread")
    func tasks() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let eventLoop = loop.nio
            eventLoop.execute {
                log("first")
                eventLoop.execute { log("third") }
            }
            eventLoop.submit { "second, \(eventLoop.inEventLoop)" }.whenSuccess { log($0) }
            simulation.advance(by: .zero)
            #expect(log.entries == ["first", "second, true", "third"])
        }
    }

    @Test("the event loop is the same object for the same modes")
    func identity() {
        withSimulation { simulation in
            let loop = simulation.loop
            #expect(loop.nio === loop.nio(inModes: .common))
            #expect(loop.nio !== loop.nio(inModes: "tracking"))
        }
    }

    @Test("timers fire at their virtual time, repeat, and can be cancelled")
    func timers() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let eventLoop = loop.nio
            let start = loop.now
            @Sendable func note(_ word: String) { log("\(word) \((eventLoop.remote.now - start))") }
            eventLoop.scheduleTask(in: .hours(1)) { note("once") }
            let repeated = eventLoop.scheduleRepeatedTask(initialDelay: .minutes(1), delay: .minutes(30)) { _ in
                note("repeated")
            }
            let cancelled = eventLoop.scheduleTask(in: .minutes(10)) { note("never") }
            cancelled.futureResult.whenFailure { log("\($0)") }
            eventLoop.scheduleTask(in: .minutes(5)) { cancelled.cancel() }
            eventLoop.scheduleTask(in: .minutes(70)) { repeated.cancel() }
            simulation.advance(by: .seconds(7200))
            #expect(
                log.entries == [
                    "repeated 60.0 seconds", "\(EventLoopError.cancelled)", "repeated 1860.0 seconds",
                    "once 3600.0 seconds", "repeated 3660.0 seconds",
                ])
        }
    }

    @Test("a nested run in another mode leaves tasks and timers alone")
    func modes() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.nio(inModes: .default).scheduleTask(in: .seconds(1)) { log("default") }
            loop.nio(inModes: "tracking").scheduleTask(in: .seconds(1)) { log("tracking") }
            loop.perform {
                loop.nio(inModes: .default).execute { log("default task") }
                loop.run(in: "tracking", until: loop.now + .seconds(3))
                log("nested run ends")
            }
            simulation.advance(by: .seconds(10))
            #expect(log.entries == ["tracking", "nested run ends", "default", "default task"])
        }
    }

    @Test("the end of the loop runs submitted tasks, and fails scheduled ones; nothing comes later")
    func end() async throws {
        let log = Log<String>()
        let thread = LoopThread(name: "served") { $0.add(CustomSource(), forMode: .common) }
        let eventLoop = try await thread.remote.run { loop in
            let eventLoop = loop.nio
            eventLoop.scheduleTask(in: .hours(1)) {}.futureResult.whenFailure { log("scheduled: \($0)") }
            loop.stop()
            eventLoop.execute { log("submitted") }
            return eventLoop
        }
        thread.stop()
        await thread.ended()
        #expect(log.entries.sorted() == ["scheduled: \(EventLoopError.shutdown)", "submitted"])
        eventLoop.execute { log("late") }
        #expect(!eventLoop.inEventLoop)
        #expect(log.entries.count == 2)
    }

    @Test("actors of the event loop are actors of the run loop")
    func executor() {
        withSimulation { simulation in
            let loop = simulation.loop
            #expect(loop.nio.executor === loop.remote.executor().serial)
        }
    }
}
#endif
