internal import CShims

/// The thread to which a loop belongs.
struct OwningThread {
    private let thread: UInt
    /// The thread, or 0 while a host waits for the loop: the check that every use makes then notices the use.
    private(set) var usingThread: UInt
    /// The kernel's number of the thread.
    private(set) lazy var number = CallGate.thisThread
    private let forkCount = rlk_fork_count()

    /// Creates the owner of a loop that the calling thread makes.
    init() {
        thread = rlk_thread_pointer()
        usingThread = thread
    }

    /// Indicates whether the calling thread is this one.
    var isCalling: Bool { rlk_thread_pointer() == thread }

    /// Indicates whether the next use of the loop on this thread is noticed.
    var noticesUse: Bool {
        get { usingThread != thread }
        set { usingThread = newValue ? 0 : thread }
    }

    /// Indicates whether the process was forked since the loop was made.
    var isForked: Bool { forkCount != rlk_fork_count() }
}
