internal import CShims
public import RunLoopCore
internal import RunLoopLibevent

extension RunLoop {
    /// The calling thread's loop, made on first use (R1). Inside a simulation it is the simulated loop.
    ///
    /// A loop that is made here lives until its thread ends.
    @available(*, noasync, message: "a task may change its thread; use a LoopThread or a remote")
    public static var current: RunLoop {
        if let loop = installed { return loop }
        let loop =
            rlk_is_main_thread() != 0
            ? RunLoop(driver: LibeventDriver(waker: MainLoop.waker), remote: MainLoop.remote)
            : RunLoop(driver: LibeventDriver())
        install(loop)
        return loop
    }

    /// The main thread's loop. On the main thread only; elsewhere ``Remote/main`` is what may be used.
    @available(*, noasync, message: "a task may run on any thread; use RunLoop.Remote.main")
    public static var main: RunLoop {
        precondition(
            rlk_is_main_thread() != 0,
            "RunLoop.main is used on the main thread only; from here use RunLoop.Remote.main")
        return current
    }
}

extension RunLoop.Remote {
    /// What any thread may ask of the main thread's loop, also before that loop exists.
    public static var main: RunLoop.Remote { MainLoop.remote }
}

/// What the main thread's loop and its remote share.
private enum MainLoop {
    static let waker = EventWaker()
    static let remote = RunLoop.Remote(waker: waker)
}
