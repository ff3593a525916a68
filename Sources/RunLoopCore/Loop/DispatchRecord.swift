internal import Glibc

/// What a loop is calling, for a thread that watches it. Kept only while somebody does.
final class DispatchRecord: Sendable {
    /// A call of a handler.
    struct Call: Sendable {
        /// Distinguishes it from every other call of the loop.
        var number: UInt64
        var kind: RunLoop.ItemKind
        var name: String?
        var origin: RunLoop.Origin
        var mode: RunLoop.Mode
        var begin: RunLoop.Instant
    }

    private struct State {
        /// The calls and runs that are under way, the innermost last. A run is `nil`: a handler that runs the loop does
        /// not block it.
        var calls: [Call?] = []
        var lastNumber: UInt64 = 0
    }

    private let state = Locked(State())
    let thread: pthread_t

    /// On the loop's thread.
    init() {
        thread = pthread_self()
    }

    /// The call that blocks the loop now, if any.
    var current: Call? { state.withLock { $0.calls.last ?? nil } }

    func begin(
        _ kind: RunLoop.ItemKind, _ name: String?, _ origin: RunLoop.Origin, _ mode: RunLoop.Mode,
        at now: RunLoop.Instant
    ) {
        state.withLock { state in
            state.lastNumber += 1
            state.calls.append(
                Call(number: state.lastNumber, kind: kind, name: name, origin: origin, mode: mode, begin: now))
        }
    }

    func beginRun() {
        state.withLock { $0.calls.append(nil) }
    }

    /// Ends what began last. A call around it goes on, and from now on it blocks the loop if it does not return. What
    /// began before anybody watched is unknown.
    func end(at now: RunLoop.Instant) {
        state.withLock { state in
            _ = state.calls.popLast()
            guard var outer = state.calls.popLast() else { return }
            outer?.begin = now
            state.calls.append(outer)
        }
    }
}

extension RunLoop {
    /// Calls a handler, and notes that for those who watch the loop.
    @inline(__always)
    func dispatch<Result>(
        _ kind: @autoclosure () -> ItemKind, _ name: @autoclosure () -> String?, _ origin: Origin,
        _ call: () -> Result
    ) -> Result {
        defer { freshTime = nil }
        guard isWatched else { return call() }
        let record = watchedCallBegins(kind(), name(), origin)
        defer { watchedCallEnds(record) }
        return call()
    }

    @inline(never)
    private func watchedCallBegins(_ kind: ItemKind, _ name: String?, _ origin: Origin) -> DispatchRecord? {
        guard let record, let mode = innermostRun?.mode else { return nil }
        record.begin(kind, name, origin, mode, at: now)
        return record
    }

    @inline(never)
    private func watchedCallEnds(_ record: DispatchRecord?) {
        record?.end(at: now)
        schedule?.callEnded()
    }
}
