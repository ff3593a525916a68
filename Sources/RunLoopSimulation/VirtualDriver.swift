internal import RunLoopCore

/// A driver with virtual time: a wait takes no time, and the clock jumps to the next event.
///
/// Descriptors of a simulated host report when they become ready. Others are the system's: the driver looks at them
/// before the time moves, so that bytes that simulated threads write to one another arrive.
final class VirtualDriver: Driver {
    let timeline: Timeline
    let index: Int

    /// Watches of simulated descriptors, on a host that has any.
    @exclusivity(unchecked) private(set) var simulated: DescriptorWatches?

    init(timeline: Timeline, index: Int, descriptors: (any SimulatedDescriptors)? = nil) {
        self.timeline = timeline
        self.index = index
        if let descriptors { watch(descriptors) }
    }

    deinit {
        timeline.forgetLoop(index)
    }

    var now: RunLoop.Instant { timeline.now }

    var waker: any Waker { VirtualWaker(timeline: timeline, index: index) }

    func wait(until deadline: RunLoop.Instant, into ready: ReadyQueue) -> WaitOutcome {
        guard looks else { return rest(until: deadline) }
        if collect(into: ready) {
            timeline.forgetWake(index)
            return .woke
        }
        let outcome = rest(until: deadline)
        return collect(into: ready) ? .woke : outcome
    }

    /// A loop that always has something to do never rests, so it is stopped where a rest would have been starved.
    @inline(__always)
    private func rest(until deadline: RunLoop.Instant) -> WaitOutcome {
        switch timeline.wait(index, until: deadline) {
        case .woke: return .woke
        case .starved:
            // At the end of the simulation, or of the process, the thread is to end.
            if timeline.isEnding(index) { loop?.endAllRuns() }
            return .starved
        case .late:
            loop?.stop()
            return .woke
        case .over:
            loop?.endAllRuns()
            return .starved
        }
    }

    func watch(_ descriptors: any SimulatedDescriptors) {
        simulated = DescriptorWatches(descriptors) { [timeline, index] in timeline.wake(index) }
        mayWatch()
    }

    private var loop: RunLoop? {
        guard let loop = RunLoop.installed, loop.virtualDriver === self else { return nil }
        return loop
    }

    // Not checked for exclusive access: only the loop's thread uses it, and calls nothing meanwhile. The checks were 22
    // of the 1,542 instructions of a fire.
    @exclusivity(unchecked) private var watched: Set<SourceToken> = [] { didSet { mayWatch() } }
    /// Whether a descriptor may be ready that the timeline does not report.
    @exclusivity(unchecked) private var looks = false

    private func mayWatch() {
        looks = !watched.isEmpty || simulated != nil
    }

    private func collect(into ready: ReadyQueue) -> Bool {
        if !watched.isEmpty { for (token, events) in timeline.takeReady(index) { ready.append(token, events) } }
        simulated?.collect(into: ready)
        return !ready.isEmpty
    }

    func check(_ descriptor: Int32) throws(DescriptorError) {
        if try simulated?.check(descriptor) == true { return }
        try DescriptorError.check(descriptor)
    }

    func watch(_ descriptor: Int32, for events: DescriptorEvents, token: SourceToken) throws(DescriptorError) {
        if let simulated, try simulated.begin(descriptor, events, token) { return }
        try check(descriptor)
        timeline.setWatch(index, token, (descriptor, events))
        watched.insert(token)
    }

    func watchWallClock(token: SourceToken) {
        timeline.watchWallClock(index, token)
        watched.insert(token)
    }

    func unwatch(_ token: SourceToken) {
        if simulated?.end(token) == true { return }
        if watched.remove(token) != nil { timeline.setWatch(index, token, nil) }
    }
}

struct VirtualWaker: Waker {
    let timeline: Timeline
    let index: Int

    func wake() {
        timeline.wake(index)
    }

    var now: RunLoop.Instant { timeline.now }

    func tookJob(_ job: UnownedJob) {
        if let driver = RunLoop.installed?.virtualDriver, driver.timeline === timeline {
            timeline.choices?.jobCame(job, from: driver.index, to: index)
            return
        }
        timeline.noteEscape(to: index) { "\(job.task) came to \($0) at \($1) from a thread outside of the simulation" }
    }
}
