internal import CShims
internal import Glibc
internal import RunLoopCore

extension Timeline {
    /// Notes that something has left the simulation, or has come from outside.
    ///
    /// - Parameter what: makes the line from the thread's name and the time.
    func noteEscape(to thread: Thread, _ what: (String, RunLoop.Instant) -> String) {
        let escape = state.withLock { state in
            let escape = what(thread.name, state.clock.now)
            state.escapes.append(escape)
            return escape
        }
        writeLine("escape: \(escape)", of: thread.name)
        record(thread) { .note("escape: \(escape)", thread: $0) }
    }

    /// Notes that the calling thread, one of the simulation, does something that reaches beyond it, unless the time is
    /// held for something outside.
    func noteEscape(of thread: Thread, _ what: String) {
        noteEscapeOnce(to: thread, "\(thread.name) \(what)")
    }

    /// Notes that the calling thread has done something to a thread of the simulation, unless it is one itself, or the time
    /// is held for something outside.
    func noteTouch(of thread: Thread, _ what: @autoclosure () -> String) {
        if rlk_is_answered_from(answersCalls) == 0, isOutside(thread) {
            noteEscapeOnce(to: thread, "a thread outside of the simulation \(what())")
        }
    }

    /// Whether the calling thread is none of the simulation, to which it may do something. Threads that end with their
    /// process hear of it even from threads that have ended already.
    private func isOutside(_ thread: Thread) -> Bool {
        let own = pthread_self()
        return state.withLock { state in
            state.endBegan(thread) == nil && !state.livingThreads.contains { $0.system == own }
        }
    }

    /// - Parameter what: the escape; with the time and the caller it becomes a line.
    private func noteEscapeOnce(to thread: Thread, _ what: String) {
        let isNew = state.withLock { state in
            let isAwaited = state.holds.contains { $0.what != nil }
            return !isAwaited && state.closed == nil && state.knownEscapes.insert(what).inserted
        }
        guard isNew else { return }
        let place = AddressWaits.capturesPlaces.withLock(\.self)?()()
        noteEscape(to: thread) { "\(what) at \($1)\(place.map { ", in \($0)" } ?? "")" }
    }
}
