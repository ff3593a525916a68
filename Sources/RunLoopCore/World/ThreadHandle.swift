internal import CShims
internal import Glibc

/// A thread of the system, until it has been joined or detached. Any thread.
///
/// A thread that has run its function still runs the destructors of its thread-local memory. A process that exits
/// meanwhile may crash: OpenSSL, for one, frees at the exit what the destructor of another thread is about to use.
/// Joining waits for that too.
@_spi(Ports) public final class ThreadHandle: Sendable {
    private let thread: Locked<pthread_t?>

    init(_ thread: pthread_t) {
        self.thread = Locked(thread)
    }

    /// Detaches the thread, so that it ends without being joined.
    deinit {
        detach()
    }

    /// Indicates whether the thread has been joined or detached.
    public var isReleased: Bool { thread.withLock { $0 == nil } }

    /// Waits for the thread's end. Harmless when repeated.
    public func join() {
        thread.withLock { if let thread = $0.take() { pthread_join(thread, nil) } }
    }

    /// Joins the thread if it has ended already. May wait for another thread that is joining it.
    ///
    /// - Returns: whether the thread has been joined or detached.
    public func joinIfEnded() -> Bool {
        thread.withLock { thread in
            if let system = thread, rlk_join_if_ended(system) != 0 { thread = nil }
            return thread == nil
        }
    }

    /// Lets the thread end without being joined. Harmless when repeated.
    public func detach() {
        thread.withLock { if let thread = $0.take() { pthread_detach(thread) } }
    }
}
