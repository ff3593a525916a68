@_spi(Ports) import RunLoopCore

/// A driver over another one, with a fault.
final class FaultyDriver: Driver {
    enum Fault: String, CaseIterable {
        case losesTime = "a wait does not end before its deadline"
        case losesWakes = "a wake before the wait is not lost"
        case isDeafToTheClock = "a wall clock that is set is reported, and not again until it is set anew"
        case losesWriters = "a writable descriptor is reported, a full one is not"
        case reportsOnce = "a descriptor is reported again as long as it is ready"
        case keepsWatches = "nothing is reported after unwatch"
        case takesFiles = "a regular file and a directory are refused by name"
        case endsAllWatches = "descriptors that are closed while they are watched disturb no other"
        case remembersNumbers = "a number that was closed while it was watched can be watched after unwatch"
    }

    private let below: any Driver
    private let fault: Fault
    private var tokens: Set<SourceToken> = []
    private var numbers: Set<Int32> = []

    init(over below: any Driver, _ fault: Fault) {
        (self.below, self.fault) = (below, fault)
    }

    var now: RunLoop.Instant { below.now }
    var waker: any Waker { fault == .losesWakes ? SilentWaker(now: below.now) : below.waker }

    func wait(until deadline: RunLoop.Instant, into ready: ReadyQueue) -> WaitOutcome {
        let outcome = below.wait(until: fault == .losesTime ? .distantPast : deadline, into: ready)
        if fault == .reportsOnce && !ready.isEmpty { for token in tokens { below.unwatch(token) } }
        return outcome
    }

    func watch(_ descriptor: Int32, for events: DescriptorEvents, token: SourceToken) throws(DescriptorError) {
        tokens.insert(token)
        if fault == .remembersNumbers && !numbers.insert(descriptor).inserted { return }
        let events = fault == .losesWriters ? events.subtracting(.writable) : events
        do { try below.watch(descriptor, for: events, token: token) } catch {
            guard fault == .takesFiles, case .notPollable = error else { throw error }
        }
    }

    func watchWallClock(token: SourceToken) {
        if fault != .isDeafToTheClock { below.watchWallClock(token: token) }
    }

    func unwatch(_ token: SourceToken) {
        switch fault {
        case .keepsWatches: break
        case .endsAllWatches: for token in tokens { below.unwatch(token) }
        default: below.unwatch(token)
        }
    }
}

private struct SilentWaker: Waker {
    let now: RunLoop.Instant
    func wake() {}
}
