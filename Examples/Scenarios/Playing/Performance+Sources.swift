internal import RunLoopKit
internal import Synchronization

/// The items of a scenario besides the run loop's timers: sources, links, named timers and countdowns.
extension Performance {
    // MARK: Sources

    /// An object captured by the handler of a source; its deinit is an event of the play.
    private final class Owner: Sendable {
        private let farewell: @Sendable () -> Void

        init(farewell: @escaping @Sendable () -> Void) {
            self.farewell = farewell
        }

        deinit {
            farewell()
        }

        func touch() {}
    }

    func schedule(_ entry: Scenario.SourceEntry) {
        let source = TimerSource(queue: queue(entry.queue), name: entry.name)
        sources[entry.name] = source
        source.schedule(
            deadline: times.instant(entry.start), repeating: entry.interval > 0 ? times.duration(entry.interval) : nil,
            leeway: times.duration(entry.leeway))
        source.setCancelHandler { [recorder] in recorder.noteHere(.cancelled(name: entry.name)) }
        let deliver = Delivery(entry, times, recorder)
        if let spec = entry.target {
            let owner = Owner { [recorder, weak source] in
                recorder.noteHere(.deinit(name: spec.name))
                if spec.hold == .weak { source?.cancel() }
            }
            targets[spec.name] = owner
            switch spec.hold {
            case .strong:
                source.setEventHandler { source in
                    owner.touch()
                    deliver(source)
                }
            case .weak:
                source.setEventHandler { [weak owner] source in
                    if owner != nil { deliver(source) }
                }
            }
        } else {
            source.setEventHandler { deliver($0) }
        }
        if entry.isActive { source.activate() }
    }

    /// The deliveries of a source, counted on any thread.
    private final class Delivery: Sendable {
        private let entry: Scenario.SourceEntry
        private let times: Testbed.Times
        private let recorder: Recorder
        private let passed = Mutex((count: 0, dates: Int64(0)))

        init(_ entry: Scenario.SourceEntry, _ times: Testbed.Times, _ recorder: Recorder) {
            self.entry = entry
            self.times = times
            self.recorder = recorder
        }

        func callAsFunction(_ source: TimerSource) {
            let data = Int64(source.data)
            let (count, due) = passed.withLock { passed in
                defer { passed.dates += data }
                passed.count += 1
                return (passed.count, entry.start + passed.dates * entry.interval)
            }
            recorder.noteHere(
                .delivery(name: entry.name, count: count, mode: runningMode(entry.queue), due: due, data: data))
            times.work(for: entry.busy)
            if count == entry.cancelAfter { source.cancel() }
        }
    }

    private func queue(_ queue: Scenario.Queue) -> DeliveryQueue {
        queue == .main ? .loop(loop.remote) : .background
    }

    // MARK: Named timers

    func schedule(_ entry: Scenario.NamedEntry) {
        let counts = namedCounts
        do {
            try registry.schedule(
                entry.name, interval: times.duration(entry.interval), queue: queue(entry.queue),
                repeats: entry.repeats, fireInstantly: entry.fireInstantly
            ) { [recorder, times, weak registry] in
                let count = counts.next(entry.name)
                let isFree = registry?.names.contains(entry.name) == false
                recorder.noteHere(
                    .action(
                        name: entry.name, count: count, mode: runningMode(entry.queue), action: entry.action,
                        isFree: isFree))
                times.work(for: entry.busy)
            }
        } catch {
            fatalError("the named timer \(entry.name) was read, but is refused: \(error)")
        }
    }

    /// A count for each name. Any thread.
    final class Counts: Sendable {
        private let counts = Mutex<[String: Int]>([:])

        func next(_ name: String) -> Int {
            counts.withLock { counts in
                counts[name, default: 0] += 1
                return counts[name]!
            }
        }
    }

    // MARK: Links and countdowns

    func schedule(_ entry: Scenario.LinkEntry) {
        var count = 0
        var meter = FrameRateMeter(second: times.duration(1_000_000_000))
        let clock = FrameClock(
            framesPerSecond: entry.rate, per: times.duration(1_000_000_000), start: times.instant(0))
        let link = DisplayLink(clock: clock) { [unowned self] link in
            count += 1
            emit(
                .frame(
                    name: entry.name, count: count, mode: mode, timestamp: times.time(of: link.timestamp),
                    dropped: Int64(link.droppedFrames)))
            if entry.hasMeter, let reading = meter.frame(at: link.timestamp) {
                emit(.reading(name: entry.name, text: reading.description))
            }
            times.work(for: entry.busy)
        }
        link.name = entry.name
        link.preferredFramesPerSecond = entry.preferred
        link.invalidationHandler = { [unowned self] in emit(.invalidated(name: entry.name)) }
        links[entry.name] = link
        link.add(to: loop, forMode: modes(entry.modes))
    }

    func prepare(_ entry: Scenario.CountdownEntry) {
        var count = 0
        countdowns[entry.name] = Countdown(
            from: entry.from, interval: times.duration(entry.interval), loop: loop,
            pausing: entry.pausing == .restarting ? .restarting : .continuing
        ) { [unowned self] countdown in
            count += 1
            emit(.tick(name: entry.name, count: count, mode: mode, remaining: countdown.remaining.map(Int64.init)))
        }
    }
}

/// Returns the mode that the main loop runs in, if the calling thread is the target of `queue` there.
private func runningMode(_ queue: Scenario.Queue) -> String? {
    queue == .main ? RunLoop.current.currentMode?.name ?? "default" : nil
}
