internal import Synchronization

/// Keeps the mail of a loop until the loop may take it, in a world with a ``MailOrder``.
final class MailGate<Loop: AnyObject>: Sendable {
    /// Adds a request, a block or a job to the mail.
    typealias Letter = (inout Mail<Loop>) -> Void

    private struct State: ~Copyable {
        var waiting = FIFO<(sender: UInt32, letter: Letter)>()
        /// Requests and blocks are refused.
        var isClosed = false
        /// Jobs are refused.
        var isClosedToJobs = false
        var isAsleep = false
        /// The loop waits for mail that it has to take.
        var isAwaited = false
    }

    private let order: any MailOrder
    private let state = Locked(State())
    private let mailCame = Handoff()
    /// The number of waiting letters, which the loop reads without the lock.
    private let count = Atomic(0)
    /// Set if the loop has found mail that it has not taken. On the loop's thread only.
    private let hasFound = Atomic(false)

    init(_ order: any MailOrder) {
        self.order = order
    }

    /// - Returns: whether the loop takes the mail, and whether it is to be woken for it.
    func post(isJob: Bool, _ letter: @escaping Letter) -> (isTaken: Bool, isAsleep: Bool) {
        let sender = order.sender
        var (isRefused, isAsleep) = (false, false)
        state.withLock { state in
            isRefused = isJob ? state.isClosedToJobs : state.isClosed
            guard !isRefused else { return }
            state.waiting.append((sender, letter))
            count.add(1, ordering: .acquiringAndReleasing)
            swap(&isAsleep, &state.isAsleep)
            guard state.isAwaited else { return }
            state.isAwaited = false
            order.endsRest()
            mailCame.signal()
        }
        return (!order.posted(isRefused: isRefused), isAsleep)
    }

    // MARK: The loop's side

    func hasMail() -> Bool {
        if hasFound.load(ordering: .relaxed) { return true }
        let isThere = order.finds(count.load(ordering: .acquiring) > 0)
        if isThere { hasFound.store(true, ordering: .relaxed) }
        return isThere
    }

    /// - Returns: `false` if there is mail to handle first.
    func fallAsleep() -> Bool {
        if hasFound.load(ordering: .relaxed) { return false }
        let isThere = state.withLock { state in
            state.isAsleep = state.waiting.isEmpty
            return !state.isAsleep
        }
        guard order.finds(isThere) else { return true }
        hasFound.store(true, ordering: .relaxed)
        return false
    }

    /// Takes the mail whose turn it is. If `isClosing`, requests and blocks are refused from now on.
    func admit(closing isClosing: Bool) -> [Letter] {
        var waiting: [UInt32] = []
        state.withLock { state in
            if isClosing { state.isClosed = true }
            state.isAsleep = false
            waiting = (0..<state.waiting.count).map { state.waiting[$0].sender }
        }
        hasFound.store(false, ordering: .relaxed)
        return order.takes(waiting).map { letter(from: $0) }
    }

    private func letter(from sender: UInt32) -> Letter {
        while true {
            let letter: Letter? = state.withLock { state in
                guard let place = (0..<state.waiting.count).first(where: { state.waiting[$0].sender == sender }) else {
                    state.isAwaited = true
                    return nil
                }
                if place > 0 { state.waiting.moveFirst(from: place) }
                assert(count.load(ordering: .relaxed) == state.waiting.count, "a gate has lost count of its letters")
                count.subtract(1, ordering: .acquiringAndReleasing)
                return state.waiting.popFirst()!.letter
            }
            if let letter { return letter }
            order.rest(until: mailCame, from: sender)
        }
    }

    /// Refuses jobs, or else requests and blocks, from now on if no mail waits.
    func closeIfEmpty(toJobs: Bool) -> Bool {
        state.withLock { state in
            let isClosed = order.closes(state.waiting.isEmpty)
            if toJobs { state.isClosedToJobs = isClosed } else { state.isClosed = isClosed }
            return isClosed
        }
    }

    var isClosed: Bool { state.withLock { $0.isClosed } }
    var isAsleep: Bool { state.withLock { $0.isAsleep } }
}
