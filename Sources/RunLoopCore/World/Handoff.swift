internal import CShims
internal import Glibc

/// Makes one thread wait until another lets it continue: a semaphore of the C library.
@_spi(Ports) public final class Handoff: Sendable {
    // Unsafe, because it is a pointer: a C semaphore needs a fixed address, and its contract lets any thread use it.
    private nonisolated(unsafe) let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    public init() {
        sem_init(semaphore, 0, 0)
    }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    /// Lets the waiting thread continue, or the next one to wait.
    public func signal() {
        sem_post(semaphore)
    }

    public func wait() {
        rlk_wait_really(semaphore)
    }

    /// - Returns: `false` if `signal()` did not let the thread continue in that time.
    public func wait(atMost limit: Duration) -> Bool {
        let (seconds, attoseconds) = limit.components
        return rlk_wait_at_most(semaphore, seconds * 1_000_000_000 + attoseconds / 1_000_000_000) != 0
    }
}
