internal import Glibc
public import RunLoopCore

extension DeliveryQueue {
    /// The main thread's loop, in whatever mode it runs: Dispatch's main queue. On the threads of a simulation, the
    /// loop that the simulation was begun on. Any thread.
    public static var main: DeliveryQueue { .loop(RunLoop.Remote.main) }

    /// The calling thread's loop, in whatever mode it runs.
    @available(*, noasync, message: "a task may change its thread; use DeliveryQueue.main or .background")
    public static var current: DeliveryQueue { .loop(RunLoop.current.remote) }

    /// The process's pool of background threads, or the simulation's: Dispatch's global queue. Any thread.
    ///
    /// It has as many threads as the machine has processors, but at least two; handlers that block belong to a pool of
    /// their own.
    public static var background: DeliveryQueue { .pool(backgroundPool[RunLoop.currentWorld]) }

    private static let backgroundPool = WorldLocal { world in
        LoopThreadPool(name: "background", maximumThreads: LoopThreadPool.usualThreads, in: world)
    }
}

extension LoopThreadPool {
    /// A pool of threads.
    ///
    /// - Parameters:
    ///   - name: what its threads are named, each with a number.
    ///   - maximumThreads: how many handlers may run at a time, at least one; unless given as many as the machine has
    ///     processors, but at least two.
    public convenience init(name: String = "background", maximumThreads: Int? = nil) {
        self.init(name: name, maximumThreads: maximumThreads ?? Self.usualThreads, in: RunLoop.currentWorld)
    }

    fileprivate static var usualThreads: Int { max(2, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }
}
