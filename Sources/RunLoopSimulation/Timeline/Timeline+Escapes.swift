internal import CShims
internal import Glibc
@_spi(Ports) internal import RunLoopCore

extension Timeline {
    /// Notes that something has left the simulation, or has entered it from outside.
    ///
    /// - Parameter what: returns the line, given the thread's name and the time.
    func noteEscape(to thread: Thread, _ what: (String, RunLoop.Instant) -> String) {
        let escape = state.withLock { state in
            let escape = what(thread.name, state.clock.now)
            state.escapes.append(escape)
            return escape
        }
        writeLine("escape: \(escape)", of: thread.name)
        record(thread) { .note("escape: \(escape)", thread: $0) }
    }

    /// Notes that the calling thread, one of the simulation's, does something that reaches beyond it, except while the
    /// time is held for something outside.
    func noteEscape(of thread: Thread, _ what: String) {
        noteEscapeOnce(to: thread, "\(thread.name) \(what)")
    }

    /// Notes that a thread outside the simulation has done something to one of its threads, except while the time is
    /// held for something outside.
    func noteTouch(of thread: Thread, _ what: @autoclosure () -> String) {
        if rlk_is_answered_from(answersCalls) == 0, isOutside(thread) {
            noteEscapeOnce(to: thread, "a thread outside of the simulation \(what())")
        }
    }

    /// Returns `true` if the calling thread is not one of the simulation's and may touch its threads. Threads that end
    /// with their process may still be touched by threads that have ended already.
    private func isOutside(_ thread: Thread) -> Bool {
        let own = pthread_self()
        return state.withLock { state in
            // The world's turn may be taken by a thread that has just ended.
            !state.isActing && state.endBegan(thread) == nil && !state.livingThreads.contains { $0.system == own }
        }
    }

    /// - Parameter what: the escape; the time and the caller complete the line.
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
