internal import Glibc
@_spi(Ports) internal import RunLoopCore

/// Runs the threads of a replay one at a time, in the order of the recorded times.
///
/// A thread at an event waits until no other thread can have an earlier one. Shared memory then changes in the recorded
/// order, as far as the recorded times show it. A task that was suspended when another thread resumed it is suspended
/// again.
final class ReplayTurns: Sendable {
    private enum Standing {
        /// The thread is on its way to an event.
        case runs
        /// The thread is at an event.
        case waits
        /// The thread waits for something that is no event: mail, or the end of a thread.
        case away
    }

    private struct Place {
        let number: UInt32
        /// The time of the event that the thread is at, or comes from.
        var time: Int64
        var standing = Standing.runs
        let signal = Handoff()
        /// The order of turns; threads that are away come last.
        var order: (Int, Int64, UInt32) { (standing == .away ? 1 : 0, time, number) }
    }

    private struct State {
        var places: [Place] = []
        /// The number of turns so far.
        var turns: UInt64 = 0

        func index(of number: UInt32) -> Int? { places.firstIndex { $0.number == number } }

        /// Gives the first thread its turn, if it waits for one.
        mutating func next() {
            let first = places.indices.min { places[$0].order < places[$1].order }
            guard let first, places[first].standing == .waits else { return }
            places[first].standing = .runs
            turns += 1
            places[first].signal.signal()
        }
    }

    private let state = Locked(State())
    private static let patience = Duration.milliseconds(50)

    func begin(_ number: UInt32, at time: Int64) {
        state.withLock { $0.places.append(Place(number: number, time: time)) }
    }

    func end(_ number: UInt32) {
        state.withLock { state in
            if let index = state.index(of: number) { state.places.remove(at: index) }
            state.next()
        }
    }

    /// Waits until it is the calling thread's turn for an event with the given time.
    func wait(_ number: UInt32, for time: Int64) {
        var signal: Handoff?
        state.withLock { state in
            guard let index = state.index(of: number) else { return }
            state.places[index].time = time
            guard state.places.count > 1 else { return }
            state.places[index].standing = .waits
            signal = state.places[index].signal
            state.next()
        }
        guard let signal else { return }
        var (turns, idle) = (UInt64.max, 0)
        var time = Duration.zero
        while !signal.wait(atMost: Self.patience) {
            // A thread may wait for something unknown to this library. If nothing happens, the others continue.
            state.withLock { state in
                idle = state.turns == turns && processTime - time < .milliseconds(5) ? idle + 1 : 0
                (turns, time) = (state.turns, processTime)
                guard idle >= 3 else { return }
                for index in state.places.indices where state.places[index].standing == .runs {
                    state.places[index].standing = .away
                }
                state.next()
            }
        }
    }

    /// Records that a thread is about to wait for something that is no event.
    func goesAway(_ number: UInt32) {
        state.withLock { state in
            guard let index = state.index(of: number) else { return }
            state.places[index].standing = .away
            state.next()
        }
    }

    /// Records that such a wait is about to end. Called before the thread is woken, so that no other thread takes its
    /// turn.
    func comesBack(_ number: UInt32) {
        state.withLock { state in
            guard let index = state.index(of: number), state.places[index].standing == .away else { return }
            state.places[index].standing = .runs
        }
    }
}

/// The processor time of the process.
var processTime: Duration {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
}
