@_spi(Ports) internal import RunLoopCore

/// An event that may happen at any moment.
struct Occasion: Sendable {
    let what: String
    /// The number of times that the event may still happen.
    var left: Int
    let action: @Sendable () -> Void
}

extension Timeline {
    /// The thread whose handler or step asks for a choice; `nil` in the world's turn.
    var asker: (number: Int, name: String)? {
        guard let driver = RunLoop.installed?.virtualDriver, driver.timeline === self else { return nil }
        return state.withLock { $0.isActing ? nil : (driver.thread.number, driver.thread.name) }
    }

    /// Starts the chosen occasions, in the order in which they were registered.
    ///
    /// - Parameter choose: returns the words for an occasion that is to happen, or `nil`.
    /// - Returns: `true` if any was chosen.
    @discardableResult
    func startOccasions(_ choose: (Schedule, Occasion) -> String?) -> Bool {
        guard let schedule else { return false }
        var isAnyChosen = false
        for index in occasions.withLock({ $0.indices }) {
            let occasion = occasions.withLock { $0[index] }
            guard occasion.left > 0, let words = choose(schedule, occasion) else { continue }
            isAnyChosen = true
            occasions.withLock { $0[index].left -= 1 }
            // An event of the world, because an occasion may end the thread that chose it.
            let test = state.withLock { _ in main.lane }
            _ = self.schedule(at: now, "what may happen", on: test) { [unowned self] in
                note(words, of: test)
                occasion.action()
            }
        }
        return isAnyChosen
    }

    /// Reaches a place within a handler of the calling thread. Events that may happen at any moment happen there if they
    /// are chosen; a killed thread does not return. Then a thread of another process goes first if that is chosen.
    ///
    /// Other threads of the same process wait until the handler has ended, because it may hold a lock.
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
