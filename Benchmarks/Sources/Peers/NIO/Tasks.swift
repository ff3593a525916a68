// NIO has an executor for actors only. A user who wants tasks to prefer an event loop writes one with `execute`: the
// form task executor.
import NIOCore
import NIOPosix
import Tasks

private final class LoopTaskExecutor: TaskExecutor {
    private let loop: any EventLoop
    init(_ loop: any EventLoop) { self.loop = loop }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

private let otherGroup = MultiThreadedEventLoopGroup(numberOfThreads: 1)

func taskWorkloads(on loop: any EventLoop, withTaskExecutor: Bool) -> TaskWorkloads {
    TaskWorkloads(
        home: Home(
            serial: loop.executor.asUnownedSerialExecutor(), task: withTaskExecutor ? LoopTaskExecutor(loop) : nil),
        other: Home(serial: otherGroup.next().executor.asUnownedSerialExecutor()),
        sleep: { nanoseconds in
            await withUnsafeContinuation { continuation in
                _ = loop.scheduleTask(in: .nanoseconds(Int64(nanoseconds))) { continuation.resume() }
            }
        })
}
