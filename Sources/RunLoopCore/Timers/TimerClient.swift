/// What waits in a loop's timer queue.
enum TimerClient: TimerQueueClient {
    case timer(Timer)
    case source(TimerSourceCore)
    case link(DisplayLink)

    var deadline: RunLoop.Instant {
        switch self {
        case .timer(let timer): timer.deadline
        case .source(let source): source.deadline
        case .link(let link): link.deadline
        }
    }

    /// Its deadline has come; the queue has disarmed it.
    ///
    /// - Returns: whether it called anybody.
    func deadlineCame(in loop: RunLoop) -> Bool {
        switch self {
        case .timer(let timer): timer.deadlineCame(in: loop)
        case .source(let source): source.deadlineCame(in: loop)
        case .link(let link): link.deadlineCame(in: loop)
        }
    }

    /// The loop has ended and forgets it.
    ///
    /// - Returns: what the client kept. It is let go of when every client knows that the loop has ended: deinits may
    ///   call any of them.
    func loopEnded() -> Any? {
        switch self {
        case .timer(let timer): timer.loopEnded()
        case .source(let source): source.loopEnded()
        case .link(let link): link.loopEnded()
        }
    }

    /// What a dump says of it.
    func describe(_ membership: Membership) -> RunLoop.Dump.Item {
        switch self {
        case .timer(let timer): timer.describe(membership)
        case .source(let source): source.describe(membership)
        case .link(let link): link.describe(membership)
        }
    }
}
