internal import CShims
internal import Glibc
internal import RunLoopCore

/// A wait in real time, for a thread that awaits something outside of its simulation.
final class OutsideWait: Sendable {
    /// Readable when the wait is to end.
    private let bell = rlk_eventfd()

    init() {
        require(bell >= 0, "the system has no descriptor left for a simulation that waits for the outside")
    }

    deinit {
        close(bell)
    }

    /// Ends the wait, now or as soon as it begins. Any thread.
    func ring() {
        var one: UInt64 = 1
        _ = write(bell, &one, 8)
    }

    /// Waits until one of the descriptors is ready, or somebody rings.
    ///
    /// - Returns: how long that took.
    func wait(for requests: [pollfd], atMost limit: Duration) -> Duration {
        // With the clocks of the real world.
        let flag = rlk_set_simulated(nil)
        defer { rlk_set_simulated(flag) }
        let start = ContinuousClock.now
        var requests = [pollfd(fd: bell, events: Int16(POLLIN), revents: 0)] + requests
        // A millisecond more, because the rest of one counts as none.
        let milliseconds = limit.saturatedNanoseconds / 1_000_000 + 1
        if poll(&requests, nfds_t(requests.count), Int32(clamping: milliseconds)) > 0, requests[0].revents != 0 {
            var rings: UInt64 = 0
            _ = read(bell, &rings, 8)
        }
        return ContinuousClock.now - start
    }
}

extension Timeline {
    /// Holds the time where it is.
    ///
    /// - Parameter what: the awaited event; `nil` for a wait that may be for another thread of the simulation. Then
    ///   nobody is told of it.
    /// - Returns: the number of the hold.
    func hold(_ thread: Thread, for what: String?, _ limit: Duration) -> Int {
        change { state in
            state.holdCount += 1
            if what != nil { state.hasBeenHeld = true }
            state.outside = state.outside ?? OutsideWait()
            if !state.isClosing {
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

    /// The reasons of all holds.
    var heldFor: [String] { state.withLock { $0.holds.compactMap(\.what) } }

    var isReproducible: Bool { state.withLock { $0.escapes.isEmpty && !$0.hasBeenHeld } }

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
