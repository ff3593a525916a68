internal import Synchronization

/// What the atomic word of a mailbox says.
private enum Signal {
    static let none: UInt8 = 0
    static let asleep: UInt8 = 1
    static let mail: UInt8 = 2
}

/// What other threads ask of a loop, until the loop looks.
///
/// One lock guards the mail, and another one the state of the loop's timer sources. The atomic word lets a loop without
/// mail pass without a lock, and makes one wake-up enough for any number of posts to a sleeping loop.
final class Mailbox<Loop: AnyObject>: Sendable {
    /// What is carried out when the loop next looks, in any mode.
    enum Request {
        case urgent(@Sendable (Loop) -> Void)
        /// For the run with that number; 0 for the next run.
        case stop(activation: UInt64)
        case wakeUp
    }

    struct Mail: ~Copyable {
        var blocks = FIFO<Block<Loop>>()
        var requests: [Request] = []

        var isEmpty: Bool { blocks.isEmpty && requests.isEmpty }
    }

    private struct State: ~Copyable {
        var mail = Mail()
        var isClosed = false
    }

    private let state = Locked(State())
    private let signal = Atomic(Signal.none)
    let waker: any Waker

    /// Guards the state of the loop's timer sources: a lock for each of a million sources would cost more than it
    /// gains. The value has no meaning. An empty one would lie at the address of its box, and ThreadSanitizer would
    /// confuse the two.
    let sources = Locked(false)

    /// The number of the innermost run; 0 while the loop does not run.
    let activation = Atomic<UInt64>(0)

    init(waker: any Waker) {
        self.waker = waker
    }

    /// - Returns: `false` if the loop has ended and the request will not be carried out.
    func post(_ request: Request) -> Bool {
        add { $0.requests.append(request) }
    }

    /// - Returns: `false` if the loop has ended and the block will not run.
    @inline(__always)
    func post(_ block: consuming Block<Loop>) -> Bool {
        var block = Optional(block)
        return add { $0.blocks.append(block.take()!) }
    }

    @inline(__always)
    private func add(_ add: (inout Mail) -> Void) -> Bool {
        var isAsleep = false
        let isClosed = state.withLock { state in
            add(&state.mail)
            // Under the lock: whoever finds mail here knows that the loop has been told.
            if signal.load(ordering: .relaxed) != Signal.mail {
                isAsleep = signal.exchange(Signal.mail, ordering: .acquiringAndReleasing) == Signal.asleep
            }
            return state.isClosed
        }
        if isAsleep { waker.wake() }
        if isClosed { dropMail() }
        return !isClosed
    }

    /// Lets go of what came too late. It is refused only here, after the lock has been given back, for deinits may do
    /// anything; to hold it back under the lock cost every post 15 instructions.
    @inline(never)
    private func dropMail() {
        var mail = Mail()
        state.withLock { swap(&$0.mail, &mail) }
    }

    /// The loop takes what has come, and leaves what it has emptied in exchange, with the room that it keeps.
    func collect(into mail: inout Mail) {
        state.withLock { state in
            signal.store(Signal.none, ordering: .releasing)
            swap(&state.mail, &mail)
        }
    }

    var hasMail: Bool { signal.load(ordering: .acquiring) == Signal.mail }

    /// The loop is about to sleep. `false` if there is mail to handle first.
    func fallAsleep() -> Bool {
        signal.compareExchange(expected: Signal.none, desired: Signal.asleep, ordering: .acquiringAndReleasing)
            .exchanged
    }

    func wakeUp() {
        _ = signal.compareExchange(
            expected: Signal.asleep, desired: Signal.none, ordering: .acquiringAndReleasing)
    }

    var isAsleep: Bool { signal.load(ordering: .acquiring) == Signal.asleep }

    /// Closes the mailbox if nothing is in it, so that no mail that was accepted is lost.
    func closeIfEmpty() -> Bool {
        state.withLock { state in
            state.isClosed = state.mail.isEmpty
            return state.isClosed
        }
    }

    /// The loop has ended and takes nothing more.
    ///
    /// - Returns: the last mail. The blocks in it are dropped without being run.
    func close() -> Mail {
        var last = Mail()
        state.withLock { state in
            state.isClosed = true
            swap(&state.mail, &last)
        }
        return last
    }
}
