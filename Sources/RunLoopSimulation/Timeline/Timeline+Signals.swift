internal import CShims
internal import RunLoopCore

extension Timeline {
    /// A wait of the thread for a signal at an address begins: a signal counts from now on.
    func beginWait(_ thread: Thread, at address: UInt) {
        let number = count(thread)
        AddressWaits.begin(of: thread, at: address) { [self] in
            change { state in
                guard thread.signalWaits == number else { return }
                switch thread.rest {
                case .until(_, wakeable: false), .signal: thread.begin(.woke)
                default: break
                }
                state.endOutsideWait()
            }
        }
    }

    /// Counts a begin or an end of a wait.
    @discardableResult
    private func count(_ thread: Thread) -> Int {
        change { _ in
            thread.signalWaits += 1
            return thread.signalWaits
        }
    }

    /// Makes the thread wait for its signal, but not beyond a date.
    ///
    /// - Returns: whether it came.
    func waitForSignal(_ thread: Thread, until date: RunLoop.Instant) -> Bool {
        work(thread, until: date) { !AddressWaits.isWaiting(thread) }
        count(thread)
        return !AddressWaits.end(of: thread)
    }

    /// The real time for which virtual time waits for the signal of a thread outside, if no other thread has anything
    /// to do at present.
    private static let patience = Duration.milliseconds(50)

    /// Makes the thread wait for its signal. If its simulation or process ends first, the thread ends where it waits,
    /// and runs nothing more of the program.
    func waitForSignal(_ thread: Thread, of what: StaticString) {
        thread.blockedAt = AddressWaits.capturesPlaces.withLock(\.self)?()
        let hold = schedule == nil ? hold(thread, for: nil, Self.patience) : nil
        let outcome = rest(thread) { state in
            guard AddressWaits.isWaiting(thread) else { return false }
            thread.rest = .signal(of: what)
            return true
        }.outcome
        count(thread)
        if let hold { releaseHold(hold) }
        thread.blockedAt = nil
        guard outcome == .starved else { return }
        leave(thread)
        rlk_end_thread()
    }
}
