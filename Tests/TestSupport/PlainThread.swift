package import Glibc

/// A thread without a loop of its own making, which blocks no signal. The thread that starts it is Dispatch's, and
/// blocks all.
package final class PlainThread: Sendable {
    package let handle: pthread_t

    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    package init(_ body: @escaping @Sendable () -> Void) {
        var thread = pthread_t()
        let context = Unmanaged.passRetained(Body(body)).toOpaque()
        let status = pthread_create(
            &thread, nil,
            { context in
                var none = sigset_t()
                sigemptyset(&none)
                pthread_sigmask(SIG_SETMASK, &none, nil)
                Unmanaged<Body>.fromOpaque(context!).takeRetainedValue().run()
                return nil
            }, context)
        precondition(status == 0, "no thread (errno \(status))")
        handle = thread
    }

    /// Waits for the end of the thread. Call this exactly once.
    package func join() {
        pthread_join(handle, nil)
    }
}

/// Calls `body` on a thread of its own, with an unused loop, and waits for it.
package func onThread<Result: Sendable>(_ body: @escaping @Sendable () -> Result) -> Result {
    let result = Log<Result>()
    PlainThread { result.append(body()) }.join()
    return result.entries[0]
}

/// Returns a number for the calling thread.
package func threadNumber() -> UInt {
    UInt(bitPattern: Int(bitPattern: UnsafeRawPointer(bitPattern: UInt(pthread_self()))))
}
