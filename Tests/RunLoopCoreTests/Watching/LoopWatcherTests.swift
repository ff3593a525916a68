@_spi(Ports) import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

/// The example of ``LoopWatcher``'s documentation.
private final class SlowHandlers: LoopWatcher {
    var events: RunLoop.WatchedEvent.Groups { .calls }
    let lines = Log<String>()

    func watch(_ event: RunLoop.WatchedEvent) {
        guard case .callEnded(let call, let time) = event, time - call.begin > .milliseconds(10) else { return }
        lines("\(call.callee) took \(time - call.begin)")
    }
}

/// Writes a word for every event.
private final class Writer: LoopWatcher {
    let events: RunLoop.WatchedEvent.Groups
    let log = Log<String>()
    /// Called at the begin of each call.
    var atCall: (() -> Void)?

    init(_ events: RunLoop.WatchedEvent.Groups = [.activity, .trace]) {
        self.events = events
    }

    func watch(_ event: RunLoop.WatchedEvent) {
        log(words(event))
        if case .callBegan = event { atCall?() }
    }

    private func words(_ event: RunLoop.WatchedEvent) -> String {
        switch event {
        case .runBegan(let mode, _): "run \(mode)"
        case .runEnded(let mode, _): "end \(mode)"
        case .callBegan(let call): "\(call.callee.kind) in \(call.mode) at \(call.begin.ms)"
        case .callEnded(let call, let time): "\(call.callee.kind) ends at \(time.ms)"
        case .callTakesTime: "works"
        case .fellAsleep(_, let date, let time): "sleeps at \(time.ms) until \(date.ms)"
        case .wokeUp(_, .date, let time): "wakes at \(time.ms) by date"
        case .wokeUp(_, .source(let callee), let time): "wakes at \(time.ms) by \(callee.kind)"
        case .wokeUp(_, .thread(let name), let time): "wakes at \(time.ms) by \(name)"
        case .wokeUp(_, .other, let time): "wakes at \(time.ms) by other"
        case .armed(let callee): "arms \(callee.kind)"
        case .posted(let callee): "posts \(callee.kind)"
        case .callFollows(_, let thread): "follows a post of \(thread ?? "its own")"
        case .moved(let received, let sent, _, let callee): "\(callee) moves \(received), \(sent)"
        case .traced(let event): "traces \(event)"
        }
    }
}

@Suite("Watchers of a loop")
struct LoopWatcherTests {
    @Test("a watcher of a few lines names each handler that takes more than 10 ms, also around and in a nested run")
    func slowHandlers() {
        withSimulation { simulation in
            let loop = simulation.loop
            let watcher = SlowHandlers()
            loop.addWatcher(watcher)
            let (timer, block) = (RunLoop.Origin(line: #line + 2), RunLoop.Origin(line: #line + 6))
            func add(_ name: String, spending time: Duration) {
                let timer = Timer(timeInterval: .milliseconds(10), repeats: false) { _ in simulation.spend(time) }
                timer.name = name
                loop.add(timer, forMode: .tracking)
            }
            loop.perform { loop.run(in: .tracking) }
            add("quick", spending: .milliseconds(10))
            add("slow", spending: .milliseconds(11))
            loop.run()
            #expect(
                watcher.lines.entries == [
                    "timer \"slow\" (\(timer)) took 0.011 seconds", "block (\(block)) took 0.031 seconds",
                ])
        }
    }

    @Test("a watcher is told runs, calls, sleeps, their causes and effects, in their order")
    func allEvents() {
        withSimulation { simulation in
            let loop = simulation.loop
            let watcher = Writer()
            loop.addWatcher(watcher)
            loop.perform { loop.perform(afterDelay: .milliseconds(5)) { simulation.spend(.milliseconds(2)) } }
            loop.run(in: .default)
            loop.removeWatcher(watcher)
            loop.perform {}
            loop.run(in: .default)
            #expect(
                watcher.log.entries == [
                    "posts block", "run default", "traces run default",
                    "block in default at 0", "follows a post of its own", "arms delayed call", "block ends at 0",
                    "sleeps at 0 until 5", "wakes at 5 by date", "traces call due 0.005000000",
                    "delayed call in default at 5", "works", "delayed call ends at 7",
                    "traces end default finished", "end default",
                ])
        }
    }

    @Test("a post of another thread has its name, and wakes the loop by it")
    func otherThreads() {
        withSimulation { simulation in
            let loop = simulation.loop
            let watcher = Writer([.sleeps, .effects])
            loop.addWatcher(watcher)
            let poster = LoopThread(name: "poster") { [remote = loop.remote] own in
                own.perform(afterDelay: .milliseconds(3)) { remote.perform { $0.stop() } }
            }
            loop.add(CustomSource(), forMode: .default)
            #expect(loop.run(in: .default) == .stopped)
            poster.join()
            #expect(
                watcher.log.entries == [
                    "sleeps at 0 until \(RunLoop.Instant.distantFuture.ms)", "wakes at 3 by poster",
                    "follows a post of poster",
                ])
        }
    }

    @Test("each watcher is told what it follows, beside the trace, and may leave while it is told")
    func several() {
        withSimulation { simulation in
            let loop = simulation.loop
            let (calls, sleeps, trace) = (Writer(.calls), Writer(.sleeps), Log<String>())
            loop.addWatcher(calls)
            loop.addWatcher(sleeps)
            loop.addWatcher(sleeps)
            loop.trace = { trace("\($0)") }
            calls.atCall = { [unowned calls] in loop.removeWatcher(calls) }
            loop.perform(afterDelay: .milliseconds(1)) {}
            loop.perform(afterDelay: .milliseconds(2)) {}
            loop.run(in: .default)
            #expect(calls.log.entries == ["run default", "delayed call in default at 1"])
            #expect(
                sleeps.log.entries == [
                    "sleeps at 0 until 1", "wakes at 1 by date", "sleeps at 1 until 2", "wakes at 2 by date",
                ])
            #expect(
                trace.entries == [
                    "run default", "call due 0.001000000", "call due 0.002000000", "end default finished",
                ])
            #expect(loop.trace != nil)
            loop.trace = nil
            #expect(loop.trace == nil)
        }
    }

    @Test("a watcher that is added in a handler is told the end of no call that nobody followed")
    func addedInHandler() {
        withSimulation { simulation in
            let loop = simulation.loop
            let watcher = Writer(.calls)
            loop.perform {
                loop.addWatcher(watcher)
                loop.perform {}
                loop.poll()
            }
            loop.run(in: .default)
            #expect(
                watcher.log.entries == [
                    "run default", "block in default at 0", "block ends at 0", "end default", "end default",
                ])
        }
    }

    @Test("a loop releases its watchers when they are removed, and when it ends")
    func released() {
        weak var removed: SlowHandlers?
        weak var kept: SlowHandlers?
        withSimulation { simulation in
            let (first, second) = (SlowHandlers(), SlowHandlers())
            (removed, kept) = (first, second)
            simulation.loop.addWatcher(first)
            simulation.loop.addWatcher(second)
            simulation.loop.removeWatcher(first)
        }
        #expect(removed == nil && kept == nil)
    }
}
