internal import NIOCore
internal import RunLoopKit

/// A thread that waits for the disk in place of an event loop. Jobs of an object are done in their order.
struct DiskQueue: Sendable {
    private let thread: RunLoop.Remote
    let eventLoop: any EventLoop

    init(_ thread: RunLoop.Remote, _ eventLoop: any EventLoop) {
        (self.thread, self.eventLoop) = (thread, eventLoop)
    }

    func run<Value: Sendable>(_ job: @escaping @Sendable () throws -> Value) -> EventLoopFuture<Value> {
        let promise = eventLoop.makePromise(of: Value.self)
        let isTaken = thread.perform { _ in promise.completeWith(Result(catching: job)) }
        if !isTaken { promise.fail(EventLoopError.shutdown) }
        return promise.futureResult
    }
}
