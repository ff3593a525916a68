internal import Glibc
public import RunLoopCore
internal import RunLoopLibevent

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
    public static var background: DeliveryQueue {
        .pool(RunLoop.installed?.driver.world?.background { LoopThreadPool() } ?? backgroundPool)
    }

    private static let backgroundPool = LoopThreadPool(peer: LibeventPeer())
}

extension LoopThreadPool {
    /// A pool of threads.
    ///
    /// - Parameters:
    ///   - name: what its threads are named, each with a number.
    ///   - maximumThreads: how many handlers may run at a time; as many as the machine has processors, but at least
    ///     two, unless given. At least one.
    public convenience init(name: String = "background", maximumThreads: Int = usualThreads) {
        let peer = RunLoop.makePeerOfInstalled(named: "\(name)-timer", isService: true) ?? LibeventPeer()
        self.init(name: name, maximumThreads: maximumThreads, peer: peer)
    }

    fileprivate convenience init(peer: any PeerDriver) {
        self.init(name: "background", maximumThreads: LoopThreadPool.usualThreads, peer: peer)
    }

    /// How many threads a pool has unless told otherwise.
    public static var usualThreads: Int { max(2, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }
}
