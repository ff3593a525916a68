/// What waits in a loop's timer queue: a reference that does not count, for the queue counts one for each client.
enum TimerClient: TimerQueueClient {
    case timer(Unmanaged<Timer>)
    case source(Unmanaged<TimerSourceCore>)
    case link(Unmanaged<DisplayLink>)

    init(_ timer: Timer) { self = .timer(.passUnretained(timer)) }
    init(_ source: TimerSourceCore) { self = .source(.passUnretained(source)) }
    init(_ link: DisplayLink) { self = .link(.passUnretained(link)) }

    // Whoever has a client in hand has it from the queue, which keeps it, or is the client: a reference that counts, at
    // each of these, would cost two locked instructions.

    @inline(__always)
    func withLink<Result>(_ body: (inout TimerQueueLink) -> Result) -> Result {
        switch self {
        case .timer(let timer): timer._withUnsafeGuaranteedRef { body(&$0.queueLink) }
        case .source(let source): source._withUnsafeGuaranteedRef { body(&$0.queueLink) }
        case .link(let link): link._withUnsafeGuaranteedRef { body(&$0.queueLink) }
        }
    }

    var deadline: RunLoop.Instant {
        switch self {
        case .timer(let timer): timer._withUnsafeGuaranteedRef { $0.deadline }
        case .source(let source): source._withUnsafeGuaranteedRef { $0.deadline }
        case .link(let link): link._withUnsafeGuaranteedRef { $0.deadline }
        }
    }

    var earliest: RunLoop.Instant {
        switch self {
        case .timer(let timer): timer._withUnsafeGuaranteedRef { $0.earliest }
        case .source(let source): source._withUnsafeGuaranteedRef { $0.earliest }
        case .link(let link): link._withUnsafeGuaranteedRef { $0.deadline }
        }
    }

    var identity: UnsafeRawPointer {
        switch self {
        case .timer(let timer): UnsafeRawPointer(timer.toOpaque())
        case .source(let source): UnsafeRawPointer(source.toOpaque())
        case .link(let link): UnsafeRawPointer(link.toOpaque())
        }
    }

    func retain() {
        switch self {
        case .timer(let timer): _ = timer.retain()
        case .source(let source): _ = source.retain()
        case .link(let link): _ = link.retain()
        }
    }

    func release() {
        switch self {
        case .timer(let timer): timer.release()
        case .source(let source): source.release()
        case .link(let link): link.release()
        }
    }

    static func == (left: TimerClient, right: TimerClient) -> Bool { left.identity == right.identity }

    /// Its deadline has come; the queue has disarmed it. It is kept meanwhile, for the call may take it out.
    ///
    /// - Returns: whether it called anybody.
    func deadlineCame(in loop: RunLoop) -> Bool {
        switch self {
        case .timer(let timer): timer.takeUnretainedValue().deadlineCame(in: loop)
        case .source(let source): source.takeUnretainedValue().deadlineCame(in: loop)
        case .link(let link): link.takeUnretainedValue().deadlineCame(in: loop)
        }
    }

    /// The loop has ended and forgets it.
    ///
    /// - Returns: what the client kept. It is let go of when every client knows that the loop has ended: deinits may
    ///   call any of them.
    func loopEnded() -> Any? {
        switch self {
        case .timer(let timer): timer.takeUnretainedValue().loopEnded()
        case .source(let source): source.takeUnretainedValue().loopEnded()
        case .link(let link): link.takeUnretainedValue().loopEnded()
        }
    }

    /// What a dump says of it.
    func describe(_ membership: Membership) -> RunLoop.Dump.Item {
        switch self {
        case .timer(let timer): timer.takeUnretainedValue().describe(membership)
        case .source(let source): source.takeUnretainedValue().describe(membership)
        case .link(let link): link.takeUnretainedValue().describe(membership)
        }
    }
}
