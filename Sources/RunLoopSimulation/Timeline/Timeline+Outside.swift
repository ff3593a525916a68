@_spi(Ports) internal import RunLoopCore

extension Timeline {
    /// Holds virtual time where it is.
    ///
    /// - Parameter what: the awaited event; `nil`, which reports leave out, for a wait that may be for another thread
    ///   of the simulation.
    /// - Returns: the number of the hold.
    func hold(_ thread: Thread, for what: String?, _ limit: Duration) -> Int {
        change { state in
            state.holdCount += 1
            if what != nil { state.hasBeenHeld = true }
            state.outside = state.outside ?? OutsideWait()
            if state.closed == nil {
                state.holds.append(HeldTime(number: state.holdCount, thread: thread, what: what, limit: limit))
            }
            return state.holdCount
        }
    }

    func releaseHold(_ number: Int) {
        change { state in
            state.holds.removeAll { $0.number == number }
            state.endOutsideWait()
        }
    }

    /// Waits in real time until one of the threads has an event from outside, or a hold has reached its limit.
    func waitOutside() {
        let (outside, requests, limit) = state.withLock { state in
            let requests = state.livingThreads.filter(\.isWaiting).flatMap(\.requests)
            return (state.outside, requests, state.holds.map { $0.limit - $0.waited }.min() ?? state.patience)
        }
        let waited = outside!.wait(for: requests, atMost: limit)
        let givenUp = state.withLock { state in
            if state.holds.isEmpty { state.patience -= waited }
            for index in state.holds.indices { state.holds[index].waited += waited }
            let givenUp = state.holds.filter { $0.waited >= $0.limit }
            state.holds.removeAll { $0.waited >= $0.limit }
            return givenUp
        }
        for hold in givenUp {
            guard let what = hold.what else { continue }
            noteEscape(to: hold.thread) {
                "\($0) no longer waits for \(what), after \(hold.limit) of real time, at \($1)"
            }
        }
    }
}
