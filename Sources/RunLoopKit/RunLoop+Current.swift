internal import CShims
internal import Glibc
@_spi(Ports) public import RunLoopCore
internal import RunLoopLibevent

extension RunLoop {
    /// The calling thread's loop, made on first use. Inside a simulation, the simulated loop.
    ///
    /// A loop made by this property lives until its thread ends. A forked process makes new ones.
    @available(
        *, noasync, message: "a task may change its thread; use the loop that it was started on, or await remote.run"
    )
    public static var current: RunLoop { currentReference.object }

    /// The calling thread's loop if it has one; this property makes none. Any thread; O(1). In a forked process, `nil`
    /// until a new one is made.
    @available(*, noasync, message: "a task may change its thread; use the loop that it was started on")
    public static var currentIfAny: RunLoop? { usableReference?.object }

    /// An uncounted reference to the calling thread's loop, which the thread keeps. A counted one costs two locked
    /// instructions, a tenth of the time that scheduling a timer takes.
    @available(*, noasync)
    static var currentReference: UnownedReference<RunLoop> {
        usableReference ?? UnownedReference(makeCurrent())
    }

    private static func makeCurrent() -> RunLoop {
        // Do not release the loop of a parent process: that would call the parent's handlers.
        installedReference?.retain()
        let main = MainLoop.shared
        let isMain = rlk_is_main_thread() != 0 && main.forkCount == rlk_fork_count()
        let loop: RunLoop = isMain ? .real(waker: main.waker, remote: main.remote) : .real()
        install(loop)
        if isMain {
            loop.watchForUnservedMainActor()
            // The main thread does not end before its process, so its loop is never released.
            atexit { if rlk_is_main_thread() != 0 { RunLoop.usableReference?.with { $0.tellIfNeverRun() } } }
        }
        return loop
    }

    /// The main thread's loop. Only on the main thread; other threads use ``Remote/main``. In a simulation the main
    /// thread is the one on which the simulation began, or the main thread of a simulated host's process.
    @available(*, noasync, message: "a task may run on any thread; await RunLoop.Remote.main.run")
    public static var main: RunLoop {
        require(
            mainRemotes[currentWorld]?.isCurrent ?? (rlk_is_main_thread() != 0),
            "RunLoop.main is used on the main thread only; from here use RunLoop.Remote.main")
        return current
    }

    /// The world outside of all simulations.
    @_spi(Ports) public static var realWorld: any World { libeventWorld }

    /// The world of the calling thread's loop; without a loop, the real one.
    @_spi(Ports) public static var currentWorld: any World { installedReference?.with { $0.world } ?? realWorld }
}

extension RunLoop.Remote {
    /// A handle of the main thread's loop for any thread, even before that loop exists. On the threads of a simulation,
    /// a handle of the loop on which the simulation began.
    ///
    /// In a process that was forked without `exec`, a remote that the parent has used reaches no loop. Use the loop's
    /// own ``RunLoop/remote`` there.
    public static var main: RunLoop.Remote { RunLoop.mainRemotes[RunLoop.currentWorld] ?? MainLoop.shared.remote }
}

/// State that the main thread's loop and its remote share.
private struct MainLoop {
    static let shared = MainLoop()

    let waker = started { () throws(RunLoop.StartError) in try EventWaker() }
    let remote: RunLoop.Remote
    /// The number of forks so far; it is greater in a child process.
    let forkCount = rlk_fork_count()

    private init() {
        remote = RunLoop.Remote(waker: waker)
    }
}
