@_spi(Ports) internal import RunLoopCore

/// A latch at which a thread of a replay yields its turn to others.
struct ReplayedLatch: Latch {
    let real: any Latch
    let signal: ReplayedSignal
    let waiter: UInt32

    func open() {
        signal.give()
        real.open()
    }

    func wait() -> Bool {
        signal.willWait(waiter)
        return real.wait()
    }
}

/// A signal that threads of a replay wait for and that is no event.
final class ReplayedSignal: Sendable {
    private let turns: ReplayTurns
    /// The waiting threads; `nil` once the signal has come.
    private let waiting = Locked<[UInt32]?>([])

    init(_ turns: ReplayTurns) {
        self.turns = turns
    }

    func give() {
        waiting.withLock { waiting in
            for thread in waiting ?? [] { turns.comesBack(thread) }
            waiting = nil
        }
    }

    /// Records that a thread is about to wait for the signal.
    func willWait(_ thread: UInt32) {
        waiting.withLock { waiting in
            guard waiting != nil else { return }
            waiting!.append(thread)
            turns.goesAway(thread)
        }
    }
}
