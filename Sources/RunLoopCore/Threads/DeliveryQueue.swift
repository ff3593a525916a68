/// The place where a timer source's handlers are called: the counterpart of Dispatch's queue.
///
/// ```swift
/// DeliveryQueue.main.asyncAfter(.seconds(2)) { print("on the main loop, in whatever mode it runs") }
/// DeliveryQueue.background.asyncAfter(.seconds(2)) { print("on a background thread") }
/// ```
public struct DeliveryQueue: Sendable {
    /// The loop whose timer queue holds the deadlines.
    let home: RunLoop.Remote
    /// The threads that call the handlers; `nil` for the home loop's own.
    let pool: LoopThreadPool?

    /// Returns the queue of a loop, in any mode. With the main thread's loop, it is the counterpart of the main queue.
    public static func loop(_ remote: RunLoop.Remote) -> DeliveryQueue {
        DeliveryQueue(home: remote, pool: nil)
    }

    /// Returns the queue of a thread's loop.
    public static func thread(_ thread: LoopThread) -> DeliveryQueue {
        .loop(thread.remote)
    }

    /// Returns the queue of a pool of threads. Each handler is called on a free one, and handlers of one source never
    /// run at the same time.
    public static func pool(_ pool: LoopThreadPool) -> DeliveryQueue {
        DeliveryQueue(home: pool.timekeeper.remote, pool: pool)
    }

    /// The time on the queue's clock. Any thread.
    public var now: RunLoop.Instant { home.now }
}

extension DeliveryQueue: Equatable {
    /// Returns whether two queues call handlers in the same place.
    public static func == (left: DeliveryQueue, right: DeliveryQueue) -> Bool {
        left.home.mailbox === right.home.mailbox && left.pool === right.pool
    }
}
