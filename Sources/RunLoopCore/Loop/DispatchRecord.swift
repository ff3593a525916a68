internal import Glibc

/// The calls that a loop is making, for a thread that watches the loop. Kept only while one does.
final class DispatchRecord: Sendable {
    struct Call: Sendable {
        /// Distinguishes it from every other call of the loop.
        let number: UInt64
        let callee: Callee
        let mode: RunLoop.Mode
        var begin: RunLoop.Instant
    }

    /// The event at which the watching thread looks again, besides the dates that it knows.
    enum Awaited {
        case nothing
        /// A call: none is under way. In a simulation, a call that takes time.
        case call
        /// The end of the call with that number.
        case end(of: UInt64)
    }

    private struct State {
        /// The calls and runs that are under way, the innermost last. A run is `nil`: it does not block the loop.
        var calls: [Call?] = []
        var lastNumber: UInt64 = 0
        var awaited = Awaited.nothing
        /// When the call ended whose end was awaited.
        var end: RunLoop.Instant?

        /// Whether the watching thread awaits the news that the innermost call has ended, or runs the loop.
        mutating func ends(at now: RunLoop.Instant) -> Bool {
            guard case .end(let number) = awaited, let call = calls.last ?? nil, call.number == number else {
                return false
            }
            (awaited, end) = (.nothing, now)
            return true
        }

        /// Whether the watching thread awaits a call.
        mutating func begins() -> Bool {
            guard case .call = awaited else { return false }
            awaited = .nothing
            return true
        }
    }

    private let state = Locked(State())
    let thread: pthread_t
    /// Whether calls take no time unless they say so.
    let isVirtual: Bool
    private let wakeWatcher = Locked<@Sendable () -> Void>({})

    /// On the loop's thread.
    init(isVirtual: Bool) {
        self.isVirtual = isVirtual
        thread = pthread_self()
    }

    /// Called once, on the watching thread, before it looks. `wake` has that thread look; it is called on the loop's.
    func watch(waking wake: @escaping @Sendable () -> Void) {
        wakeWatcher.withLock { $0 = wake }
    }

    /// Looks, on the watching thread. `body` is given the call that blocks the loop now, how many calls there were, and
    /// when the call whose end was awaited ended or ran the loop. It returns the event at which to look again.
    func look(_ body: (_ current: Call?, _ count: UInt64, _ end: RunLoop.Instant?) -> Awaited) {
        state.withLock { state in
            state.awaited = body(state.calls.last ?? nil, state.lastNumber, state.end.take())
        }
    }

    func begin(_ callee: Callee, _ mode: RunLoop.Mode, at now: RunLoop.Instant) {
        change { state in
            state.lastNumber += 1
            state.calls.append(Call(number: state.lastNumber, callee: callee, mode: mode, begin: now))
            return !isVirtual && state.begins()
        }
    }

    func beginRun(at now: RunLoop.Instant) {
        change { state in
            defer { state.calls.append(nil) }
            return state.ends(at: now)
        }
    }

    /// Ends the innermost call. The call around it continues, and from now on that call blocks the loop if it does not
    /// return. Calls that began before anybody watched are unknown.
    func end(at now: RunLoop.Instant) {
        change { state in
            let wakes = state.ends(at: now)
            _ = state.calls.popLast()
            if !state.calls.isEmpty { state.calls[state.calls.count - 1]?.begin = now }
            return wakes
        }
    }

    /// The call that is under way is about to take virtual time.
    fileprivate func takesTime() {
        change { ($0.calls.last ?? nil) != nil && $0.begins() }
    }

    /// Changes the state. If `body` returns `true`, the watching thread looks.
    private func change(_ body: (inout State) -> Bool) {
        if state.withLock(body) { wakeWatcher.withLock(\.self)() }
    }
}

extension RunLoop {
    /// The call that the loop is making is about to take virtual time: its thread works, or waits for another one.
    package func callTakesTime() {
        record?.takesTime()
    }
}
