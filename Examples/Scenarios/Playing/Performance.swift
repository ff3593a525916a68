internal import RunLoopKit

/// One playing of a scenario, on the main loop's thread.
final class Performance {
    let scenario: Scenario
    private let testbed: Testbed
    let loop: RunLoop
    let times: Testbed.Times
    let recorder: Recorder

    private var calls: [DelayedCall] = []
    var timers: [String: Timer] = [:]
    var targets: [String: AnyObject] = [:]
    var sources: [String: TimerSource] = [:]
    var links: [String: DisplayLink] = [:]
    var countdowns: [String: Countdown] = [:]
    let registry = TimerRegistry()
    /// The number of actions of each named timer.
    let namedCounts = Counts()
    var isFiringByHand = false

    init(_ scenario: Scenario, on testbed: Testbed, _ onEvent: @escaping @Sendable (ScenarioEvent) -> Void) {
        self.scenario = scenario
        self.testbed = testbed
        loop = testbed.loop
        times = testbed.times
        recorder = Recorder(times, main: .loop(loop.remote), namesThreads: scenario.namesThreads, onEvent)
    }

    func run() {
        for mode in scenario.commonModes { loop.addCommonMode(RunLoop.Mode(mode)) }
        for action in scenario.actions { call(at: action.at) { self.carryOut(action.verb) } }
        for busy in scenario.busy { schedule(busy) }
        for run in scenario.runs { schedule(run) }
        for timer in scenario.timers { schedule(timer) }
        for source in scenario.sources { schedule(source) }
        for link in scenario.links { schedule(link) }
        for named in scenario.named { call(at: named.at) { self.schedule(named) } }
        for countdown in scenario.countdowns { prepare(countdown) }
        runKeptAlive(.default, until: scenario.duration)
        testbed.yield()
        recorder.close()
        takeDown()
    }

    /// Removes everything while `self` exists, because deinits of targets call it.
    private func takeDown() {
        for call in calls { call.cancel() }
        for timer in timers.values { timer.invalidate() }
        for source in sources.values { source.cancel() }
        for link in links.values { link.invalidate() }
        registry.cancelAll()
        countdowns = [:]
        targets = [:]
    }

    func emit(_ kind: ScenarioEvent.Kind) {
        recorder.note(kind)
    }

    /// The mode that the main loop runs in. Read on its thread.
    var mode: String { loop.currentMode?.name ?? "default" }

    // MARK: Delayed calls

    private var everyMode: RunLoop.Modes {
        RunLoop.Modes(scenario.modes.map { RunLoop.Modes(RunLoop.Mode($0)) })
    }

    private func call(at time: Int64, _ body: @escaping () -> Void) {
        calls.append(loop.perform(at: times.instant(time), inModes: everyMode, body))
    }

    private func schedule(_ busy: Scenario.BusyEntry) {
        calls.append(
            loop.perform(at: times.instant(busy.at), inModes: modes(busy.modes)) {
                self.emit(.busyBegin)
                self.times.work(for: busy.duration)
                self.emit(.busyEnd)
            })
    }

    private func schedule(_ run: Scenario.RunEntry) {
        call(at: run.from) {
            self.emit(.runBegin(mode: run.mode))
            self.runKeptAlive(RunLoop.Mode(run.mode), until: run.until)
            self.emit(.runEnd(mode: run.mode))
        }
    }

    /// Runs the loop in a mode, with an idle source that keeps the mode from being empty.
    private func runKeptAlive(_ mode: RunLoop.Mode, until limit: Int64) {
        let idle = CustomSource()
        loop.add(idle, forMode: RunLoop.Modes(mode))
        loop.run(in: mode, until: times.instant(limit))
        idle.invalidate()
    }

    func modes(_ names: [String]) -> RunLoop.Modes {
        RunLoop.Modes(names.map { RunLoop.Modes(stringLiteral: $0) })
    }

    // MARK: Actions

    private func carryOut(_ verb: Scenario.ActionEntry.Verb) {
        switch verb {
        case .invalidate(let name):
            timers[name]?.invalidate()
            links[name]?.invalidate()
        case .fire(let name): fireByHand(name)
        case .setFireDate(let name, let date): timers[name]?.fireDate = times.instant(date)
        case .drop(let name): targets[name] = nil
        case .addMode(let mode, let name): addMode(mode, to: name)
        case .removeMode(let mode, let name): removeMode(mode, from: name)
        case .makeCommon(let mode): loop.addCommonMode(RunLoop.Mode(mode))
        case .activate(let name): sources[name]?.activate()
        case .suspend(let name): sources[name]?.suspend()
        case .resume(let name):
            sources[name]?.resume()
            links[name]?.isPaused = false
            countdowns[name]?.resume()
        case .pause(let name):
            links[name]?.isPaused = true
            countdowns[name]?.pause()
        case .cancel(let name):
            sources[name]?.cancel()
            if registry.cancel(name) { emit(.cancelled(name: name)) }
        }
    }

    private func addMode(_ mode: String, to name: String) {
        let modes = RunLoop.Modes(stringLiteral: mode)
        if let timer = timers[name], timer.isValid { loop.add(timer, forMode: modes) }
        if let link = links[name], link.isValid { link.add(to: loop, forMode: modes) }
    }

    private func removeMode(_ mode: String, from name: String) {
        let modes = RunLoop.Modes(stringLiteral: mode)
        if let timer = timers[name], timer.isValid { loop.remove(timer, forMode: modes) }
        if let link = links[name], link.isValid { link.remove(from: loop, forMode: modes) }
    }
}
