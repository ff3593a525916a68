import RunLoopKit
import RunLoopSimulation
import Synchronization

@testable import RunLoopCore

/// What happened, word by word.
final class Log {
    private(set) var words: [String] = []

    var text: String { words.joined(separator: " ") }

    func callAsFunction(_ word: String) {
        words.append(word)
    }

    func clear() {
        words = []
    }
}

/// Something whose end can be observed.
final class Probe {
    private let onEnd: () -> Void

    init(onEnd: @escaping () -> Void = {}) {
        self.onEnd = onEnd
    }

    deinit {
        onEnd()
    }

    func touch() {}
}

/// The instant that lies so many milliseconds after the start of the simulation.
func ms(_ milliseconds: Int64) -> RunLoop.Instant {
    RunLoop.Instant(nanoseconds: milliseconds * 1_000_000)
}

/// The instant that lies so many nanoseconds after the start of the simulation.
func ns(_ nanoseconds: Int64) -> RunLoop.Instant {
    RunLoop.Instant(nanoseconds: nanoseconds)
}

extension RunLoop.Instant {
    /// Whole milliseconds since the start, as a word.
    var word: String { String(nanoseconds / 1_000_000) }
}

extension RunLoop {
    /// Adds a timer that fires first at `milliseconds`, once unless `period` is given.
    @discardableResult
    func timer(
        _ milliseconds: Int64, every period: Int64? = nil, in modes: Modes = .default,
        _ body: @escaping (Timer) -> Void
    ) -> Timer {
        let timer = Timer(
            fire: ms(milliseconds), interval: .milliseconds(period ?? 0), repeats: period != nil, block: body)
        add(timer, forMode: modes)
        return timer
    }

    /// Writes E, BT, BW, AW and X into `log`. BS is left out: it always follows BT.
    @discardableResult
    func observe(_ log: Log, in modes: Modes = .default, prefix: String = "") -> Observer {
        let names: [RunLoop.Activity: String] = [
            .entry: "E", .beforeTimers: "BT", .beforeWaiting: "BW", .afterWaiting: "AW", .exit: "X",
        ]
        let observer = Observer(activities: RunLoop.Activity.all.subtracting(.beforeSources)) { _, activity in
            log(prefix + names[activity]!)
        }
        add(observer, forMode: modes)
        return observer
    }

    /// Calls `body` at the given activity.
    @discardableResult
    func observe(
        _ activity: RunLoop.Activity, in modes: Modes = .default, repeats: Bool = true, order: Int = 0,
        _ body: @escaping () -> Void
    ) -> Observer {
        let observer = Observer(activities: activity, repeats: repeats, order: order) { _, _ in body() }
        add(observer, forMode: modes)
        return observer
    }

    /// Adds a source that does nothing, so that a mode is not empty.
    @discardableResult
    func keepAlive(in modes: Modes = .default) -> CustomSource {
        let source = CustomSource()
        add(source, forMode: modes)
        return source
    }
}

/// Runs `body` on virtual time, with a log into which the loop's observers of the default mode write.
func withObservedLoop(_ body: (Simulation, RunLoop, Log) throws -> Void) rethrows {
    try withSimulation { simulation in
        let log = Log()
        simulation.loop.observe(log)
        try body(simulation, simulation.loop, log)
        simulation.loop.checkInvariants()
    }
}

/// What happened when, on whatever thread.
final class Dates: Sendable {
    private let state = Locked<[(Int, RunLoop.Instant)]>([])

    var all: [(Int, RunLoop.Instant)] { state.withLock { $0 } }

    func add(_ number: Int, _ date: RunLoop.Instant) {
        state.withLock { $0.append((number, date)) }
    }
}
