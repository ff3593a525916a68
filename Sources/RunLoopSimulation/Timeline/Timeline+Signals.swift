internal import CShims
@_spi(Ports) internal import RunLoopCore

extension Timeline {
    /// Begins a thread's wait for a signal at an address: a signal counts from now on.
    func beginWait(_ thread: Thread, at address: UInt, bits: UInt32) {
        let number = count(thread)
        AddressWaits.begin(of: thread, at: address, bits: bits) { [self] in
            // A signal that comes before the thread rests changes no order.
            let hasRested = state.withLock { _ in
                if case .none = thread.rest { false } else { thread.signalWaits == number }
            }
            if hasRested { noteTouch(of: thread, "ends a wait of \(thread.name)") }
            change { state in
                guard thread.signalWaits == number else { return }
                switch thread.rest {
                case .until(_, wakeable: false), .signal: thread.begin(.woke)
                case .until(_, wakeable: true): thread.isWoken = true
                default: break
                }
                state.endOutsideWait()
            }
        }
    }

    /// Counts the beginning or the end of a wait.
    @discardableResult
    private func count(_ thread: Thread) -> Int {
        change { _ in
            thread.signalWaits += 1
            return thread.signalWaits
        }
    }

    /// Makes the thread wait for its signal, but not beyond a date.
    ///
    /// - Returns: `true` if the signal came.
    func waitForSignal(_ thread: Thread, until date: RunLoop.Instant) -> Bool {
        work(thread, until: date) { !AddressWaits.isWaiting(thread) }
        count(thread)
        return !AddressWaits.end(of: thread)
    }

    /// Makes the thread wait for its signal, but not beyond a date, or the end of its process or the simulation.
    func waitForSignal(_ thread: Thread, atMostUntil date: RunLoop.Instant) -> rlk_wait_end {
        var isOver = false
        while !isOver, now < date, AddressWaits.isWaiting(thread) {
            switch wait(thread, until: date) {
            case .woke, .late: break
            case .starved, .over: isOver = true
            }
        }
        count(thread)
        let wasWaiting = AddressWaits.end(of: thread)
        return !wasWaiting ? rlk_wait_was_signalled : isOver ? rlk_wait_is_over : rlk_wait_limit_passed
    }

    /// The real time for which virtual time waits for the signal of a thread outside, if no other thread has anything
    /// to do at present.
    private static let patience = Duration.milliseconds(50)

    /// Makes the thread wait for its signal. If its simulation or process ends first, the thread ends where it waits,
    /// without running any more of the program.
    ///
    /// - Parameter mayBeOutside: `false` if only a thread of the simulation can signal.
    func waitForSignal(_ thread: Thread, of what: String, mayBeOutside: Bool) {
        let hold = schedule == nil && mayBeOutside ? hold(thread, for: nil, Self.patience) : nil
        defer { if let hold { releaseHold(hold) } }
        wait(thread, for: what, nil)
    }

    /// Makes the thread wait until a lock is released, but not beyond a date, if another thread of the simulation holds
    /// the lock.
    func waitForLock(
        _ thread: Thread, _ lock: FoundLock, bits: UInt32, until date: RunLoop.Instant?
    ) -> rlk_lock_wait {
        guard state.withLock({ $0.words(for: lock) }) != nil else { return rlk_lock_is_outside }
        _ = rlk_look_for_holder(0)
        beginWait(thread, at: UInt(bitPattern: lock.address), bits: bits)
        if let date { return waitForSignal(thread, until: date) ? rlk_lock_was_released : rlk_lock_limit_passed }
        wait(thread, for: "a lock", lock)
        return rlk_lock_was_released
    }

    private func wait(_ thread: Thread, for what: String, _ lock: FoundLock?) {
        thread.awaited = Awaited(what: what, lock: lock, place: AddressWaits.capturesPlaces.withLock(\.self)?())
        let outcome = rest(thread) { state in
            guard AddressWaits.isWaiting(thread) else { return false }
            thread.rest = .signal
            // No thread outside can help, and the first thread has no caller to report to.
            if let threads = state.hopelessWaits(from: state.livingThreads[0]) { state.fail(threads) }
            return true
        }.outcome
        count(thread)
        thread.awaited = nil
        guard outcome == .starved else { return }
        change { $0.endedThreads[thread.lockNumber] = thread.name }
        leave(thread)
        rlk_end_thread()
    }
}

extension Timeline.State {
    /// Returns words for the lock that a thread waits for, if any.
    mutating func lock(of thread: Timeline.Thread) -> String? { thread.awaited?.lock.flatMap { words(for: $0) } }

    /// Returns words for a lock that a thread of the simulation holds; `nil` if none holds it.
    fileprivate mutating func words(for lock: Timeline.FoundLock) -> String? {
        let number = lock.holder
        // The lock has been released, or its holder is not known. A thread that has not begun has no number either.
        guard number != 0 else { return nil }
        if let thread = livingThreads.first(where: { $0.lockNumber == number }) {
            return "a lock of \(quoted(thread.name))"
        }
        return endedThreads[number].map { "a lock of \(quoted($0)), which was ended where it was" }
    }

    /// Returns the threads from `first` on, each of which waits for a lock of the next, if that lock can never be
    /// released: because of a circle, or because the last one has ended.
    fileprivate mutating func hopelessWaits(from first: Timeline.Thread) -> [Timeline.Thread]? {
        var chain = [first]
        while case .signal = chain.last!.rest, let holder = chain.last!.awaited?.lock?.holder, holder != 0 {
            guard let next = livingThreads.first(where: { $0.lockNumber == holder }) else {
                return endedThreads[holder] == nil ? nil : chain
            }
            if chain.contains(where: { $0 === next }) { return chain }
            chain.append(next)
        }
        return nil
    }
}
