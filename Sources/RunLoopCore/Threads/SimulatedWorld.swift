/// What all threads of a simulation mean by the main loop and by the background.
package final class SimulatedWorld: Sendable {
    package let main: RunLoop.Remote
    private let pool = Locked<LoopThreadPool?>(nil)

    package init(main: RunLoop.Remote) {
        self.main = main
    }

    /// The background pool, made on first use.
    package func background(_ make: () -> LoopThreadPool) -> LoopThreadPool {
        pool.withLock { pool in
            if pool == nil { pool = make() }
            return pool!
        }
    }

    /// Lets the pool go; it and the world keep each other.
    package func close() {
        let closed = pool.withLock { pool in
            defer { pool = nil }
            return pool
        }
        withExtendedLifetime(closed) {}
    }
}
