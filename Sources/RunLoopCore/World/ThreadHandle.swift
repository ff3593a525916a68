internal import Glibc

/// A thread of the system, until somebody has joined it, or nobody will. Any thread.
package final class ThreadHandle: Sendable {
    private let thread: Locked<pthread_t?>

    init(_ thread: pthread_t) {
        self.thread = Locked(thread)
    }

    /// Whether somebody has joined it, or nobody will.
    package var isReleased: Bool { thread.withLock { $0 == nil } }

    /// Waits for its end. Harmless when repeated.
    package func join() {
        thread.withLock { if let thread = $0.take() { pthread_join(thread, nil) } }
    }

    /// Nobody waits for its end any more. Harmless when repeated.
    package func detach() {
        thread.withLock { if let thread = $0.take() { pthread_detach(thread) } }
    }
}
