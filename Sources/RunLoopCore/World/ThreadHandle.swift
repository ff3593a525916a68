internal import Glibc

/// A thread of the system, until it has been joined or detached. Any thread.
package final class ThreadHandle: Sendable {
    private let thread: Locked<pthread_t?>

    init(_ thread: pthread_t) {
        self.thread = Locked(thread)
    }

    /// Indicates whether the thread has been joined or detached.
    package var isReleased: Bool { thread.withLock { $0 == nil } }

    /// Waits for the thread's end. Harmless when repeated.
    package func join() {
        thread.withLock { if let thread = $0.take() { pthread_join(thread, nil) } }
    }

    /// Lets the thread end without being joined. Harmless when repeated.
    package func detach() {
        thread.withLock { if let thread = $0.take() { pthread_detach(thread) } }
    }
}
