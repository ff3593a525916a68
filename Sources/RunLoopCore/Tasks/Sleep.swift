/// A task that sleeps on a loop's clock.
///
/// The objects of a loop serve one sleep after another, so that a sleep allocates nothing.
final class Sleep: TaskWait, @unchecked Sendable {
    // Unchecked as in `TaskWait`.
    private let item = SleepItem()
    private var modes = RunLoop.Modes.common
    private var deadline = RunLoop.Instant.distantFuture
    private var latest = RunLoop.Instant.distantFuture

    static nonisolated(nonsending) func sleep(
        on clock: RunLoop.Clock, until deadline: RunLoop.Instant, now: RunLoop.Instant, tolerance: Duration
    ) async throws {
        guard deadline > now else { return try Task.checkCancellation() }
        let sleep = clock.sleeps.take() ?? Sleep(clock.remote)
        sleep.modes = clock.modes
        sleep.deadline = deadline
        sleep.latest = max(deadline, deadline + tolerance)
        defer { clock.sleeps.putBack(sleep) }
        try await sleep.wait()
    }

    override func begin(in loop: RunLoop) {
        item.begin(self, from: deadline, to: latest, in: loop, modes)
    }

    override func cancelled(in loop: RunLoop) {
        item.withdraw()
    }
}

/// A sleep in the timer queue.
private final class SleepItem: RunLoop.TimedItem {
    // Unchecked as in `Item`.
    @exclusivity(unchecked) private var sleep: Sleep?
    @exclusivity(unchecked) private var date = RunLoop.Instant.distantFuture
    @exclusivity(unchecked) private var latest = RunLoop.Instant.distantFuture
    @exclusivity(unchecked) private var taskName: String?

    init() {
        super.init(origin: RunLoop.Origin())
    }

    func begin(
        _ sleep: Sleep, from date: RunLoop.Instant, to latest: RunLoop.Instant, in loop: RunLoop, _ modes: RunLoop.Modes
    ) {
        self.sleep = sleep
        self.date = date
        self.latest = loop.isVirtual ? date : latest
        homeChanged(to: loop)
        let membership = Membership.none.joining(modes, common: loop.commonModes)
        loop.timers.register(self, membership, at: self.latest, order: loop.timers.takeOrder())
    }

    func withdraw() {
        sleep = nil
        if let loop { withdraw(from: loop) }
    }

    override func deadlineCame(in loop: RunLoop) -> Bool {
        guard let sleep else { return false }
        withdraw()
        sleep.end()
        return true
    }

    override func loopEnded() {
        guard let sleep else { return }
        self.sleep = nil
        sleep.end(throwing: sleep.remote.endError)
    }

    override var deadline: RunLoop.Instant { latest }
    override var earliest: RunLoop.Instant { date }
    override var dueDate: RunLoop.Instant? { date }
    override var kind: RunLoop.ItemKind { .sleep }
    override var hasHandler: Bool { sleep != nil }
    override func dropHandler(_ body: () -> Void) { body() }
}

/// The sleeps on clocks of a loop that serve no task now.
final class SleepPool: Sendable {
    /// `nil` when the loop has ended.
    private let unused = Locked<[Sleep]?>([])

    /// What is kept for later.
    private static let keptCount = 1024

    func take() -> Sleep? { unused.withLock { $0?.popLast() } }

    func putBack(_ sleep: Sleep) {
        unused.withLock { unused in
            if let count = unused?.count, count < Self.keptCount { unused!.append(sleep) }
        }
    }

    /// Lets go of all of them: they keep the mailbox, whose executors keep this.
    func close() {
        let last = unused.withLock { unused in
            defer { unused = nil }
            return unused
        }
        withExtendedLifetime(last) {}
    }
}
