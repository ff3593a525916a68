internal import RunLoopCore

extension Timeline {
    /// Reaches a place within a handler of the calling thread. Events that may happen at any moment happen there if they
    /// are chosen; a killed thread does not return. Then a thread of another machine goes first if that is chosen.
    ///
    /// Other threads of the same machine wait until the handler has ended, because it may hold a lock.
    func reach(_ place: String, _ thread: Thread) {
        guard state.withLock({ !$0.isActing && !$0.isEnding }) else { return }
        let hasOccasions = startOccasions { schedule, occasion in
            let words = "\(occasion.what) \(place)"
            return schedule.fault(words, of: occasion.what, atMost: occasion.left) == 1 ? words : nil
        }
        if hasOccasions {
            rest(thread) { state in
                state.restWithinHandler(thread)
                state.givesWay = thread
                return true
            }
            change { $0.goOn(thread) }
        }
        var other: Next?
        rest(thread, choosing: { _ in other! }) { state in
            other = state.chooseOther(within: thread, at: place)
            if other != nil { state.restWithinHandler(thread) }
            return other != nil
        }
        if other != nil { change { $0.goOn(thread) } }
    }
}

extension Timeline.State {
    fileprivate mutating func restWithinHandler(_ thread: Timeline.Thread) {
        thread.rest = .until(clock.now, wakeable: false)
        withinHandlers.append(thread)
    }

    fileprivate mutating func goOn(_ thread: Timeline.Thread) {
        withinHandlers.removeAll { $0 === thread }
    }
}
