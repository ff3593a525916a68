/// The sleep of a task on a loop's clock.
///
/// The objects of a loop serve one sleep after another, so that a sleep allocates nothing.
final class Sleep: TaskWait, @unchecked Sendable {
    // Unchecked as in `TaskWait`.
    private var modes = RunLoop.Modes.common
    private var deadline = RunLoop.Instant.distantFuture
    private var latest = RunLoop.Instant.distantFuture
    private var call = CallToken.none
    private static let origin = RunLoop.Origin()

    static nonisolated(nonsending) func sleep(
        on clock: RunLoop.Clock, until deadline: RunLoop.Instant, now: RunLoop.Instant, tolerance: Duration
    ) async throws {
        guard deadline > now else { return try TaskScope.checkCancellation(on: clock.remote) }
        let sleep = clock.sleeps.take() ?? Sleep(clock.remote)
        sleep.modes = clock.modes
        sleep.deadline = deadline
        sleep.latest = max(deadline, deadline + tolerance)
        defer { clock.sleeps.putBack(sleep) }
        try await sleep.wait()
    }

    // The block captures nothing else, and so needs no allocation.
    override func begin(in loop: RunLoop) {
        assert(deadline <= latest, "a sleep ends at the latest before it is due")
        loop.noticeUse()
        let latest = loop.isVirtual ? deadline : latest
        call = loop.add({ [self] in awake() }, .sleep, Self.origin, modes, at: deadline, until: latest)
    }

    override func cancelled(in loop: RunLoop) {
        loop.cancel(call)
    }

    override var purpose: String? { "sleeps until \(deadline)" }

    /// Ends the wait when the time has come, or the loop has ended.
    private func awake() {
        let hasEnded = remote.installedReference?.with { $0.hasEnded } ?? true
        end(throwing: hasEnded ? remote.endError : nil)
    }
}

/// The unused sleeps for clocks of a loop.
final class SleepPool: Sendable {
    /// The unused sleeps; `nil` when the loop has ended.
    private let unused = Locked<[Sleep]?>([])

    private static let keptCount = 1024

    func take() -> Sleep? { unused.withLock { $0?.popLast() } }

    func putBack(_ sleep: Sleep) {
        assert(!sleep.isWaiting, "a sleep that has not ended was put back")
        unused.withLock { unused in
            if let count = unused?.count, count < Self.keptCount { unused!.append(sleep) }
        }
    }

    /// Releases all sleeps: they keep the mailbox, whose executors keep this pool.
    func close() {
        let last = unused.withLock { $0.take() }
        withExtendedLifetime(last) {}
    }
}
