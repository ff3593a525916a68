internal import CShims
internal import Glibc
internal import Synchronization

/// A gate that every call of a handler passes and any thread may close. Once it is closed, no call begins.
///
/// No other thread can see whether a call that has passed the gate has reached the handler's first instruction. So a
/// thread that closes the gate waits until the call has ended, or its thread has slept, which it does not do on the way
/// to the handler, or has computed for much longer than that way takes. The closing thread does not wait for the
/// handler to end, because the handler may be waiting for the closing thread.
struct CallGate: ~Copyable, Sendable {
    private static let closed: UInt32 = 1

    /// The lowest bit is set if the gate is closed. The others are the kernel's number of the calling thread, or 0.
    private let word = Atomic<UInt32>(0)

    /// The calling thread's number in the word.
    static var thisThread: UInt32 { UInt32(rlk_thread_id()) }

    var isClosed: Bool { word.load(ordering: .acquiring) & Self.closed != 0 }

    /// Calls `body` if the gate is open. Do not use the gate again from within `body`.
    ///
    /// - Returns: whether `body` was called.
    @inline(__always)
    func pass(on thread: UInt32, _ body: () -> Void) -> Bool {
        assert(thread != 0 && thread <= .max >> 1, "the kernel's number of a thread does not fit a gate")
        guard word.compareExchange(expected: 0, desired: thread << 1, ordering: .acquiringAndReleasing).exchanged else {
            return false
        }
        body()
        assert(word.load(ordering: .relaxed) >> 1 == thread, "two threads have passed a gate at a time")
        word.bitwiseAnd(Self.closed, ordering: .releasing)
        return true
    }

    /// - Returns: whether the gate was open.
    @discardableResult
    func close() -> Bool {
        word.bitwiseOr(Self.closed, ordering: .acquiringAndReleasing).oldValue & Self.closed == 0
    }

    /// Waits until a call that has passed the gate on another thread has begun. Call it after ``close()``. Gives up
    /// after about a second, which happens only if that thread could run but gets no processor all that time.
    func waitForBegin() {
        assert(isClosed, "the gate is open: another call may begin at once")
        let thread = word.load(ordering: .acquiring) >> 1
        guard thread != 0, thread != Self.thisThread else { return }
        let limit = rlk_thread_time(Int32(thread)) + 1_000_000
        // Most calls are short.
        for _ in 0..<10 {
            guard word.load(ordering: .acquiring) >> 1 != 0 else { return }
            sched_yield()
        }
        // Longer calls are checked ever less often: a check takes system calls, and the processor that the thread
        // needs.
        var (pause, waited): (UInt32, UInt32) = (50, 0)
        while waited < 1_000_000, word.load(ordering: .acquiring) >> 1 != 0 {
            let time = rlk_thread_time(Int32(thread))
            guard time >= 0, time < limit, rlk_thread_sleeps(Int32(thread)) == 0 else { return }
            usleep(pause)
            waited += pause
            pause = min(2 * pause, 2000)
        }
    }
}
