internal import CShims
internal import Glibc

/// Makes one thread wait until another lets it continue: a semaphore of the C library.
@_spi(Ports) public final class Handoff: Sendable {
    // Unsafe, because it is a pointer: a C semaphore needs a fixed address, and its contract lets any thread use it.
    private nonisolated(unsafe) let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    /// Creates a handoff that lets no thread continue.
    public init() {
        let status = sem_init(semaphore, 0, 0)
        assert(status == 0, "a semaphore was not made: \(errno)")
    }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    /// Lets the waiting thread continue, or the next one to wait.
    public func signal() {
        let status = sem_post(semaphore)
        assert(status == 0, "a signal was lost: \(errno)")
    }

    /// Blocks the calling thread until `signal()` lets it continue.
    public func wait() {
        rlk_wait_really(semaphore)
    }

    /// - Returns: `false` if `signal()` did not let the thread continue in that time.
    public func wait(atMost limit: Duration) -> Bool {
        let (seconds, attoseconds) = limit.components
        return rlk_wait_at_most(semaphore, seconds * 1_000_000_000 + attoseconds / 1_000_000_000) != 0
    }
}
