internal import Glibc

/// The calls that a loop is making, for a thread that watches the loop.
final class DispatchRecord: LoopWatcher, Sendable {
    struct Call: Sendable {
        /// The call's number, unique in the loop.
        let number: UInt64
        let callee: RunLoop.Callee
        let mode: RunLoop.Mode
        var begin: RunLoop.Instant
    }

    /// The event at which the watching thread looks again, besides the dates that it knows.
    enum Awaited {
        case nothing
        /// The start of a call, while none is under way. In a simulation, the start of work that takes time.
        case call
        /// The end of the call with that number.
        case end(of: UInt64)
    }

    private struct State {
        /// The calls and runs under way, the innermost last. A run is `nil`: it does not block the loop.
        var calls: [Call?] = []
        var lastNumber: UInt64 = 0
        var awaited = Awaited.nothing
        /// The time at which the awaited call ended.
        var end: RunLoop.Instant?

        /// Notes that the innermost call has ended, or runs the loop; returns whether the watching thread awaits that.
        mutating func ends(at now: RunLoop.Instant) -> Bool {
            guard case .end(let number) = awaited, let call = calls.last ?? nil, call.number == number else {
                return false
            }
            (awaited, end) = (.nothing, now)
            return true
        }

        /// Notes that a call begins; returns whether the watching thread awaits one.
        mutating func begins() -> Bool {
            guard case .call = awaited else { return false }
            awaited = .nothing
            return true
        }
    }

    private let state = Locked(State())
    let thread: pthread_t
    /// Indicates whether calls take no time unless they say so.
    let isVirtual: Bool
    private let wakeWatcher = Locked<@Sendable () -> Void>({})

    /// Creates the record of the calling thread's loop.
    init(isVirtual: Bool) {
        self.isVirtual = isVirtual
        thread = pthread_self()
    }

    /// Sets the function that has the watching thread look; it is called on the loop's thread. Called once, on the
    /// watching thread, before it looks.
    func watch(waking wake: @escaping @Sendable () -> Void) {
        wakeWatcher.withLock { $0 = wake }
    }

    /// Calls `body`, on the watching thread, with the call that blocks the loop now, the number of calls so far, and
    /// the time at which the awaited call ended or ran the loop. `body` returns the event at which to look again.
    func look(_ body: (_ current: Call?, _ count: UInt64, _ end: RunLoop.Instant?) -> Awaited) {
        state.withLock { state in
            state.awaited = body(state.calls.last ?? nil, state.lastNumber, state.end.take())
        }
    }

    // MARK: As a watcher

    var events: RunLoop.WatchedEvent.Groups { .calls }

    func watch(_ event: RunLoop.WatchedEvent) {
        switch event {
        case .callBegan(let call):
            change { state in
                state.lastNumber += 1
                state.calls.append(
                    Call(number: state.lastNumber, callee: call.callee, mode: call.mode, begin: call.begin))
                return !isVirtual && state.begins()
            }
        case .runBegan(_, let time):
            change { state in
                defer { state.calls.append(nil) }
                return state.ends(at: time)
            }
        case .callEnded(_, let time), .runEnded(_, let time): innermostEnds(at: time)
        case .callTakesTime: change { ($0.calls.last ?? nil) != nil && $0.begins() }
        default: break
        }
    }

    /// Ends the innermost call or run. The call around it continues, and blocks the loop from now on if it does not
    /// return. Calls that began before the loop was watched are unknown.
    private func innermostEnds(at now: RunLoop.Instant) {
        change { state in
            let wakes = state.ends(at: now)
            _ = state.calls.popLast()
            if !state.calls.isEmpty { state.calls[state.calls.count - 1]?.begin = now }
            return wakes
        }
    }

    /// Changes the state, and has the watching thread look if `body` returns `true`.
    private func change(_ body: (inout State) -> Bool) {
        if state.withLock(body) { wakeWatcher.withLock(\.self)() }
    }
}
