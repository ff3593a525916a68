internal import NIOCore

/// A call when a client's time is over.
///
/// What the client has sent by then is read first: the loop itself may have been late, for example because the machine was
/// asleep, and a loop calls what is due before it reads.
final class TimeLimit {
    private var task: Scheduled<Void>?

    init(_ deadline: NIODeadline, on eventLoop: any EventLoop, _ body: @escaping () -> Void) {
        let bound = NIOLoopBound((self, body), eventLoop: eventLoop)
        task = eventLoop.scheduleTask(deadline: deadline) {
            bound.value.0.task = eventLoop.scheduleTask(in: .milliseconds(1)) { bound.value.1() }
        }
    }

    func cancel() {
        task?.cancel()
    }
}
