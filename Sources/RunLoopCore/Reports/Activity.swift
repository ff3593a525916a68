internal import Glibc

/// What a loop is doing at the moment, for a thread that watches it. Kept only while somebody does.
final class Activity: Sendable {
    /// A call of a handler.
    struct Call: Sendable {
        /// Tells it from every other of the loop.
        var number: UInt64
        var kind: RunLoop.ItemKind
        var name: String?
        var origin: RunLoop.Origin
        var mode: RunLoop.Mode
        var begin: RunLoop.Instant
    }

    private struct State {
        var current: Call?
        var last: UInt64 = 0
    }

    private let state = Locked(State())
    let thread: pthread_t

    /// On the loop's thread.
    init() {
        thread = pthread_self()
    }

    /// The call that is under way, if any.
    var current: Call? { state.withLock { $0.current } }

    /// - Returns: the call that this one is made within.
    func begin(
        _ kind: RunLoop.ItemKind, _ name: String?, _ origin: RunLoop.Origin, _ mode: RunLoop.Mode,
        at now: RunLoop.Instant
    ) -> Call? {
        state.withLock { state in
            state.last += 1
            defer {
                state.current = Call(
                    number: state.last, kind: kind, name: name, origin: origin, mode: mode, begin: now)
            }
            return state.current
        }
    }

    /// A nested run begins: whoever runs it does not block the loop.
    func rest() -> Call? {
        state.withLock { state in
            defer { state.current = nil }
            return state.current
        }
    }

    /// Goes on with an outer call, which blocks the loop from now on if it does.
    func resume(_ outer: Call?, at now: RunLoop.Instant) {
        state.withLock { state in
            state.current = outer
            state.current?.begin = now
        }
    }
}

extension RunLoop {
    /// Calls a handler, and says so to those who watch the loop.
    @inline(__always)
    func calling(_ kind: ItemKind, _ name: @autoclosure () -> String?, _ origin: Origin, _ body: () -> Void) {
        defer { freshTime = nil }
        guard let activity, let mode = activations.last?.mode else { return body() }
        let outer = activity.begin(kind, name(), origin, mode, at: now)
        body()
        activity.resume(outer, at: now)
    }
}
