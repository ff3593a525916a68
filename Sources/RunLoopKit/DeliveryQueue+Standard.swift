internal import Glibc
@_spi(Ports) public import RunLoopCore

extension DeliveryQueue {
    /// The main thread's loop, in whatever mode it runs: the counterpart of Dispatch's main queue. On the threads of a
    /// simulation, the loop on which the simulation began. Any thread.
    public static var main: DeliveryQueue { .loop(RunLoop.Remote.main) }

    /// The calling thread's loop, in whatever mode it runs.
    @available(*, noasync, message: "it asks the thread for its loop; write .loop(loop.remote), .main or .background")
    public static var current: DeliveryQueue { .loop(RunLoop.current.remote) }

    /// The process's pool of background threads, or the simulation's: the counterpart of Dispatch's global queue. Any
    /// thread.
    ///
    /// The pool has as many threads as the machine has processors, but at least two. Give handlers that block a pool of
    /// their own.
    public static var background: DeliveryQueue { .pool(backgroundPool[RunLoop.currentWorld]) }

    private static let backgroundPool = WorldLocal { world in
        LoopThreadPool(name: "background", maximumThreads: LoopThreadPool.usualThreads, in: world)
    }
}

extension LoopThreadPool {
    /// Creates a pool of threads.
    ///
    /// - Parameters:
    ///   - name: the name of its threads, each with a number.
    ///   - maximumThreads: the number of handlers that may run at a time, at least one. The default is the number of
    ///     processors, but at least two.
    public convenience init(name: String = "background", maximumThreads: Int? = nil) {
        self.init(name: name, maximumThreads: maximumThreads ?? Self.usualThreads, in: RunLoop.currentWorld)
    }

    fileprivate static var usualThreads: Int { max(2, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }
}
