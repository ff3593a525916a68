internal import Glibc

/// Has one thread wait until another lets it go on: a semaphore of the C library.
package final class Handoff: Sendable {
    // It needs a fixed address, and is safe from any thread by its own contract.
    private nonisolated(unsafe) let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    package init() {
        sem_init(semaphore, 0, 0)
    }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    /// Lets the thread go on, now or when it comes.
    package func signal() {
        sem_post(semaphore)
    }

    package func wait() {
        while sem_wait(semaphore) != 0 {}
    }
}
