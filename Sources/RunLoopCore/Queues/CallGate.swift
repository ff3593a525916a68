internal import CShims
internal import Glibc
internal import Synchronization

/// What the calls of a handler pass one by one, and any thread may close: none begins once it has been closed.
///
/// Its thread writes down that it calls, and then calls. Between the two it may lose the processor, and another thread
/// cannot see whether the handler's first instruction has been reached. So whoever closes the gate meanwhile waits until
/// that is certain: the call has ended, its thread has slept, which the way to the handler does not, or has computed for
/// much longer than the way takes. It does not wait for the end of a handler, which may be waiting for this very thread.
struct CallGate: ~Copyable, Sendable {
    private static let closed: UInt32 = 1

    /// The lowest bit says whether it is closed; the others are the kernel's number of the thread that calls, or 0.
    private let word = Atomic<UInt32>(0)

    /// The calling thread, as calls name it.
    static var thisThread: UInt32 { UInt32(rlk_thread_id()) }

    var isClosed: Bool { word.load(ordering: .acquiring) & Self.closed != 0 }

    /// Calls `body`, unless the gate has been closed. Not to be used again from within.
    ///
    /// - Parameter thread: the calling thread.
    /// - Returns: whether it was called.
    @inline(__always)
    func pass(on thread: UInt32, _ body: () -> Void) -> Bool {
        guard word.compareExchange(expected: 0, desired: thread << 1, ordering: .acquiringAndReleasing).exchanged else {
            return false
        }
        body()
        word.bitwiseAnd(Self.closed, ordering: .releasing)
        return true
    }

    /// Closes it for good.
    ///
    /// - Returns: whether it was open.
    @discardableResult
    func close() -> Bool {
        word.bitwiseOr(Self.closed, ordering: .acquiringAndReleasing).oldValue & Self.closed == 0
    }

    /// Once it is closed: waits until a call that has passed it on another thread has begun. Gives up after about a
    /// second, which takes a thread that could run and is given no processor all the while.
    func waitForBegin() {
        let thread = word.load(ordering: .acquiring) >> 1
        guard thread != 0, thread != Self.thisThread else { return }
        let limit = rlk_thread_time(Int32(thread)) + 1_000_000
        for look in 0..<5000 {
            guard word.load(ordering: .acquiring) >> 1 != 0 else { return }
            // Most calls are short.
            guard look >= 10 else {
                sched_yield()
                continue
            }
            let time = rlk_thread_time(Int32(thread))
            guard time >= 0, time < limit, rlk_thread_sleeps(Int32(thread)) == 0 else { return }
            usleep(50)
        }
    }
}
