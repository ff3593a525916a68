internal import RunLoopCore

/// A latch at which a thread of a replay leaves its turn to others.
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

/// Something that threads of a replay wait for and that is no event.
final class ReplayedSignal: Sendable {
    private let turns: ReplayTurns
    /// Those who wait; `nil` when it has come.
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

    /// The thread is about to wait for it.
    func willWait(_ thread: UInt32) {
        waiting.withLock { waiting in
            guard waiting != nil else { return }
            waiting!.append(thread)
            turns.goesAway(thread)
        }
    }
}
