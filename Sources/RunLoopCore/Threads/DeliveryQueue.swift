/// Where handlers are called: what a timer source chooses where Dispatch chooses a queue.
///
/// ```swift
/// DeliveryQueue.main.asyncAfter(.seconds(2)) { print("on the main loop, in whatever mode it runs") }
/// DeliveryQueue.background.asyncAfter(.seconds(2)) { print("on a background thread") }
/// ```
public struct DeliveryQueue: Sendable {
    /// The loop in whose timer queue deadlines wait.
    let home: RunLoop.Remote
    /// The threads that call the handlers, if not the home loop's own.
    let pool: LoopThreadPool?

    /// A loop, in whatever mode it runs; for the main thread's loop, the main queue's part.
    public static func loop(_ remote: RunLoop.Remote) -> DeliveryQueue {
        DeliveryQueue(home: remote, pool: nil)
    }

    /// The loop of a thread.
    public static func thread(_ thread: LoopThread) -> DeliveryQueue {
        .loop(thread.remote)
    }

    /// A pool of threads, each handler on whichever is free; one source's never at the same time.
    public static func pool(_ pool: LoopThreadPool) -> DeliveryQueue {
        DeliveryQueue(home: pool.timekeeper.remote, pool: pool)
    }

    /// The time on the queue's clock. Any thread.
    public var now: RunLoop.Instant { home.now }
}

extension DeliveryQueue: Equatable {
    /// Whether handlers are called in the same place.
    public static func == (left: DeliveryQueue, right: DeliveryQueue) -> Bool {
        left.home.mailbox === right.home.mailbox && left.pool === right.pool
    }
}
