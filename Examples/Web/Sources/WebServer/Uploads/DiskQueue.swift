internal import NIOCore
internal import RunLoopKit
internal import Synchronization

/// A thread that waits for the disk in place of an event loop. Jobs of an object are done in order.
struct DiskQueue: Sendable {
    private let thread: RunLoop.Remote
    private let eventLoop: any EventLoop

    init(_ thread: RunLoop.Remote, _ eventLoop: any EventLoop) {
        (self.thread, self.eventLoop) = (thread, eventLoop)
    }

    /// Runs a job on the thread. The future fails if the thread ends before.
    func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) -> EventLoopFuture<Value> {
        let job = Job(eventLoop.makePromise(of: Value.self))
        thread.perform { _ in job.end(Result(catching: body)) }
        return job.promise.futureResult
    }

    /// A promise that fails if it can no longer be fulfilled.
    private final class Job<Value: Sendable>: Sendable {
        let promise: EventLoopPromise<Value>
        private let isDone = Atomic(false)

        init(_ promise: EventLoopPromise<Value>) {
            self.promise = promise
        }

        deinit {
            if !isDone.load(ordering: .relaxed) { promise.fail(EventLoopError.shutdown) }
        }

        func end(_ result: Result<Value, any Error>) {
            isDone.store(true, ordering: .relaxed)
            promise.completeWith(result)
        }
    }
}
