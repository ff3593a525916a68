@_spi(Ports) internal import RunLoopCore

/// A driver with virtual time: a wait takes no time, and the clock jumps to the next event.
///
/// Descriptors of a simulated host report when they become ready. The driver looks at the system's descriptors before
/// the time moves, so that bytes that simulated threads write to one another arrive.
final class VirtualDriver: Driver {
    let timeline: Timeline
    let thread: Timeline.Thread

    /// The watches of simulated descriptors, on a host that has any.
    private(set) var simulated: DescriptorWatches?

    init(timeline: Timeline, thread: Timeline.Thread, descriptors: (any SimulatedDescriptors)? = nil) {
        self.timeline = timeline
        self.thread = thread
        if let descriptors { watch(descriptors) }
    }

    deinit {
        timeline.state.withLock { _ in thread.loop = nil }
    }

    var now: RunLoop.Instant { timeline.now }

    var waker: any Waker { VirtualWaker(timeline: timeline, thread: thread) }

    func wait(until deadline: RunLoop.Instant, into ready: ReadyQueue) -> WaitOutcome {
        guard looks else { return rest(until: deadline) }
        if collect(into: ready) {
            // The thread is awake already.
            timeline.change { _ in thread.isWoken = false }
            return .woke
        }
        let outcome = rest(until: deadline)
        return collect(into: ready) ? .woke : outcome
    }

    /// A loop that always has something to do never rests, so it is stopped where a rest would have starved.
    @inline(__always)
    private func rest(until deadline: RunLoop.Instant) -> WaitOutcome {
        switch timeline.wait(thread, until: deadline) {
        case .woke: return .woke
        case .starved: return .starved
        case .late:
            loop?.stop()
            return .woke
        case .over:
            loop?.endAllRuns()
            return .starved
        }
    }

    func watch(_ descriptors: any SimulatedDescriptors) {
        simulated = DescriptorWatches(descriptors) { [timeline, thread] in timeline.wake(thread) }
        mayWatch()
    }

    private var loop: RunLoop? {
        guard let loop = RunLoop.installed, loop.virtualDriver === self else { return nil }
        return loop
    }

    private var watched: Set<SourceToken> = [] { didSet { mayWatch() } }
    /// `true` if a descriptor may be ready that the timeline does not report.
    private var looks = false

    private func mayWatch() {
        looks = !watched.isEmpty || simulated != nil
    }

    private func collect(into ready: ReadyQueue) -> Bool {
        if !watched.isEmpty { for (token, events) in timeline.takeReady(thread) { ready.append(token, events) } }
        simulated?.collect(into: ready)
        return !ready.isEmpty
    }

    func check(_ descriptor: Int32) throws(DescriptorError) {
        if try simulated?.descriptors.check(descriptor) == true { return }
        try DescriptorError.check(descriptor)
    }

    func watch(_ descriptor: Int32, for events: DescriptorEvents, token: SourceToken) throws(DescriptorError) {
        if let simulated, try simulated.begin(descriptor, events, token) { return }
        try check(descriptor)
        timeline.setWatch(thread, token, (descriptor, events))
        watched.insert(token)
    }

    func watchWallClock(token: SourceToken) {
        timeline.state.withLock { _ in thread.clockWatch = (token, false) }
        watched.insert(token)
    }

    func unwatch(_ token: SourceToken) {
        if simulated?.end(token) == true { return }
        if watched.remove(token) != nil { timeline.setWatch(thread, token, nil) }
    }
}

struct VirtualWaker: Waker {
    let timeline: Timeline
    let thread: Timeline.Thread

    func wake() {
        timeline.wake(thread)
    }

    var now: RunLoop.Instant { timeline.now }

    var notesMail: Bool { true }

    func mailComes() {
        timeline.noteTouch(of: thread, "posts to \(thread.name)")
    }

    func tookJob(_ job: UnownedJob) {
        if let driver = RunLoop.installed?.virtualDriver, driver.timeline === timeline {
            timeline.schedule?.jobCame(job, from: driver.thread.number, to: thread.number)
            return
        }
        timeline.noteEscape(to: thread) { "\(job.task) came to \($0) at \($1) from a thread outside of the simulation" }
    }
}
