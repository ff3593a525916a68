import Glibc
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopCore

private func addInvalidTimer() {
    withSimulation { simulation in
        let timer = Timer(timeInterval: .seconds(1), repeats: false) { _ in }
        timer.name = "late"
        timer.invalidate()
        simulation.loop.add(timer, forMode: .default)
        simulation.loop.run(in: .default)
    }
}

/// Traced loops, which report items that were scheduled and never have their turn.
@Suite("Forgotten items that a traced loop reports")
struct ForgottenTests {
    /// Returns a log of the items that the loop ignores from now on.
    private func ignored(by loop: RunLoop) -> Log<String> {
        let log = Log<String>()
        loop.trace = { if case .ignored(let what) = $0 { log(what) } }
        return log
    }

    @Test("a timer in a mode in which the loop never runs is reported once, when a run has finished")
    func modeNeverRun() {
        withSimulation { simulation in
            let loop = simulation.loop
            let log = ignored(by: loop)
            let timer = loop.timer(10, in: .tracking) { _ in }
            loop.timer(20, in: .tracking) { _ in }
            loop.timer(30) { _ in }
            #expect(loop.run(in: .default) == .finished)
            #expect(
                log.entries == [
                    "the run in default has finished, but \(timer) and 1 more are scheduled in tracking, where the loop "
                        + "has not run while it was traced; run it there too, or use a mode in which it runs"
                ])
            loop.timer(40) { _ in }
            #expect(loop.run(in: .default) == .finished)
            #expect(log.entries.count == 1)
        }
    }

    @Test(
        "a forgotten item is reported even if the run has nothing to do",
        arguments: ["timer", "delayed call", "block", "source"])
    func nothingToRun(kind: String) {
        withSimulation { simulation in
            let loop = simulation.loop
            let log = ignored(by: loop)
            switch kind {
            case "timer": loop.timer(10, in: .tracking) { _ in }
            case "delayed call": loop.perform(afterDelay: .zero, inModes: .tracking) {}
            case "block": loop.perform(inModes: .tracking) {}
            default: loop.keepAlive(in: .tracking)
            }
            #expect(loop.run(in: .default) == .finished)
            #expect(log.entries.count == 1)
            #expect(log.text.contains("\(kind) (RunLoopCoreTests/"))
        }
    }

    @Test("a run until a date in a mode with nothing in it is reported, and a poll or a run without a limit is not")
    func emptyRun() {
        withSimulation { simulation in
            let loop = simulation.loop
            let log = ignored(by: loop)
            #expect(loop.run(in: .tracking, until: loop.now + .seconds(2)) == .finished)
            #expect(
                log.entries == [
                    "the run in tracking until 2.000000000 has ended at once, because nothing is scheduled in tracking; "
                        + "schedule a CustomSource there to have it wait"
                ])
            loop.poll(in: .tracking)
            loop.run(in: .tracking)
            #expect(log.entries.count == 1)
        }
    }

    @Test("each set of modes is reported separately")
    func severalModes() {
        withSimulation { simulation in
            let loop = simulation.loop
            let log = ignored(by: loop)
            loop.timer(10, in: .tracking) { _ in }
            loop.timer(10, in: ["panel", .tracking]) { _ in }
            loop.run(in: .default)
            #expect(log.entries.count == 2)
            loop.timer(10, in: "panel") { _ in }
            loop.run(in: .default)
            #expect(log.entries.count == 3)
        }
    }

    @Test("items in a mode in which the loop has run, nested or before, are not reported")
    func modesThatRun() {
        withSimulation { simulation in
            let loop = simulation.loop
            let log = ignored(by: loop)
            loop.timer(100, in: .tracking) { _ in }
            loop.timer(100, in: "panel") { _ in }
            loop.timer(100, in: .every) { _ in }
            loop.timer(10) { _ in loop.run(in: .tracking, until: ms(20)) }
            loop.run(in: "panel", until: ms(5))
            #expect(loop.run(in: .default) == .finished)
            loop.timer(200, in: .tracking) { _ in }
            #expect(loop.run(in: .default) == .finished)
            #expect(log.entries.isEmpty)
        }
    }

    @Test("an item scheduled in a loop that is never run is reported at the loop's end")
    func neverRun() {
        let log = Log<String>()
        let place = onThread {
            let loop = RunLoop.current
            loop.trace = { log("\($0)") }
            loop.perform(afterDelay: .zero) {}
            loop.add(Observer(activities: .entry) { _, _ in }, forMode: .default)
            return loop.dump().items[0].origin
        }
        #expect(
            log.entries == [
                "ignored: the loop ends without having been run, but delayed call (\(place)) is scheduled in it; run the loop"
            ])
    }

    @Test("a timer that was only ever scheduled in a mode that never ran is reported once, and not again at the end")
    func toldOnce() {
        let log = Log<String>()
        onThread {
            let loop = RunLoop.current
            loop.trace = { log("\($0)") }
            loop.timer(10, in: .tracking) { _ in }
            loop.run()
        }
        #expect(log.entries.count == 1)
    }

    @Test("nothing is reported at the end of a loop that was run, or in which nothing was scheduled")
    func nothingToTell() {
        let log = Log<String>()
        onThread {
            let loop = RunLoop.current
            loop.trace = { if case .ignored(let what) = $0 { log(what) } }
            loop.perform(afterDelay: .seconds(1000)) {}
            loop.poll()
        }
        onThread {
            RunLoop.current.trace = { log("\($0)") }
            RunLoop.current.add(Observer(activities: .entry) { _, _ in }, forMode: .default)
        }
        #expect(log.entries.isEmpty)
    }

    @Test("the main loop, which ends with its process, reports forgotten items at the process's end")
    func mainLoop() async {
        await #expect(processExitsWith: .success) {
            func run() {
                let pipe = DescriptorPair()
                // The thread that forks is the main thread of the child.
                let status = statusOfChild {
                    RunLoop.main.trace = { event in
                        let text = "\(event)"
                        _ = write(pipe.writer, text, text.utf8.count)
                    }
                    RunLoop.main.timer(10) { _ in }
                    exit(0)
                }
                var buffer = [UInt8](repeating: 0, count: 4096)
                let count = read(pipe.reader, &buffer, buffer.count)
                let text = String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
                precondition(status == 0, "the child has failed")
                precondition(text.contains("ends without having been run, but timer (RunLoopCoreTests/"), text)
            }
            run()
        }
    }

    @Test("with RUNLOOP_DEBUG=1 in the environment, ignored requests are written to standard error")
    func environment() async throws {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            setenv("RUNLOOP_DEBUG", "1", 1)
            addInvalidTimer()
        }
        let text = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
        #expect(text.hasPrefix("RunLoopKit: ignored: timer \"late\" (RunLoopCoreTests/ForgottenTests.swift:"))
        #expect(
            text.hasSuffix(") was added, but it is invalid; make a new one\n") && text.split(separator: "\n").count == 1
        )
    }
}
