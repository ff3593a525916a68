internal import RunLoopKit
internal import Synchronization

/// Plays a scenario on a real loop or on virtual time, and says what happened.
///
/// It is built on the library's public interface alone.
public struct ScenarioPlayer: Sendable {
    private let scenario: Scenario
    private let clock: Stage.Clock

    public init(_ scenario: Scenario, clock: Stage.Clock = .virtual) {
        self.scenario = scenario
        self.clock = clock
    }

    /// Plays the scenario to its end, on a loop of its own.
    ///
    /// - Parameter onEvent: called with each event as it happens, on the thread that plays.
    public func play(_ onEvent: @escaping @Sendable (ScenarioEvent) -> Void) {
        Stage.open(on: clock) { [scenario] stage in
            Performance(scenario, on: stage, onEvent).run()
        }
    }

    /// Plays the scenario to its end, on a loop of its own.
    ///
    /// - Returns: all events, in order.
    public func play() -> [ScenarioEvent] {
        let events = Mutex<[ScenarioEvent]>([])
        play { event in events.withLock { $0.append(event) } }
        return events.withLock { $0 }
    }
}

/// One playing of a scenario.
private final class Performance {
    private let scenario: Scenario
    private let stage: Stage
    private let times: Stage.Times
    private let loop: RunLoop
    private let record: (ScenarioEvent) -> Void
    private var calls: [DelayedCall] = []
    private var timers: [String: Timer] = [:]
    private var targets: [String: Target] = [:]
    private var isOver = false

    init(_ scenario: Scenario, on stage: Stage, _ record: @escaping (ScenarioEvent) -> Void) {
        self.scenario = scenario
        self.stage = stage
        loop = stage.loop
        times = stage.times
        self.record = record
    }

    func run() {
        for mode in scenario.commonModes { loop.addCommonMode(RunLoop.Mode(mode)) }
        for action in scenario.actions { schedule(action) }
        for busy in scenario.busy { schedule(busy) }
        for run in scenario.runs { schedule(run) }
        for timer in scenario.timers { schedule(timer) }
        runKeptAlive(.default, until: scenario.duration)
        emit(.end)
        isOver = true
        // Taken down while `self` is there: deinits of targets come back to it.
        for call in calls { call.cancel() }
        for timer in timers.values { timer.invalidate() }
        targets = [:]
    }

    private func emit(_ kind: ScenarioEvent.Kind) {
        if !isOver { record(ScenarioEvent(t: stage.now, kind)) }
    }

    // MARK: Delayed calls

    private var everyMode: RunLoop.Modes {
        RunLoop.Modes(scenario.modes.map { RunLoop.Modes(RunLoop.Mode($0)) })
    }

    private func schedule(_ action: Scenario.ActionEntry) {
        calls.append(
            loop.perform(at: times.instant(action.at), inModes: everyMode) { self.carryOut(action.verb) })
    }

    private func schedule(_ busy: Scenario.BusyEntry) {
        calls.append(
            loop.perform(at: times.instant(busy.at), inModes: modes(busy.modes)) {
                self.emit(.busyBegin)
                self.stage.work(for: busy.duration)
                self.emit(.busyEnd)
            })
    }

    private func schedule(_ run: Scenario.RunEntry) {
        calls.append(
            loop.perform(at: times.instant(run.from), inModes: everyMode) {
                self.emit(.runBegin(mode: run.mode))
                self.runKeptAlive(RunLoop.Mode(run.mode), until: run.until)
                self.emit(.runEnd(mode: run.mode))
            })
    }

    /// Runs the loop in a mode, with an idle source that keeps the mode from being empty.
    private func runKeptAlive(_ mode: RunLoop.Mode, until limit: Int64) {
        let idle = CustomSource()
        loop.add(idle, forMode: RunLoop.Modes(mode))
        loop.run(in: mode, until: times.instant(limit))
        idle.invalidate()
    }

    private func modes(_ names: [String]) -> RunLoop.Modes {
        RunLoop.Modes(names.map { RunLoop.Modes(stringLiteral: $0) })
    }

    // MARK: Timers

    /// What a timer calls; its life is part of the show.
    private final class Target {
        private let call: (Timer) -> Void
        private let farewell: () -> Void

        init(call: @escaping (Timer) -> Void, farewell: @escaping () -> Void) {
            self.call = call
            self.farewell = farewell
        }

        deinit {
            farewell()
        }

        func fire(_ timer: Timer) {
            call(timer)
        }
    }

    private func schedule(_ entry: Scenario.TimerEntry) {
        let timer = makeTimer(entry)
        timer.name = entry.name
        timer.tolerance = times.duration(entry.tolerance)
        timer.invalidationHandler = { [unowned self] in emit(.invalidated(name: entry.name)) }
        timers[entry.name] = timer
        for mode in entry.modes { loop.add(timer, forMode: RunLoop.Modes(stringLiteral: mode)) }
        if entry.modes.isEmpty {
            // In no mode yet, but armed all the same: it takes its place in the order.
            loop.add(timer, forMode: .default)
            loop.remove(timer, fromMode: .default)
        }
    }

    private func makeTimer(_ entry: Scenario.TimerEntry) -> Timer {
        let (first, interval) = (times.instant(entry.first), times.duration(entry.interval))
        var count = 0
        let fire: (Timer) -> Void = { [unowned self] timer in
            count += 1
            emitFire(of: timer, entry.name, count)
            if entry.busy > 0 { stage.work(for: entry.busy) }
        }
        guard let spec = entry.target else {
            return Timer(fire: first, interval: interval, repeats: entry.repeats, block: fire)
        }
        let target = Target(call: fire) { [unowned self] in
            emit(.deinit(name: spec.name))
            if spec.hold == .weak { timers[entry.name]?.invalidate() }
        }
        targets[spec.name] = target
        switch spec.hold {
        case .strong:
            return Timer(
                fire: first, interval: interval, target: target, selector: Target.fire, repeats: entry.repeats)
        case .weak:
            return Timer(
                fire: first, interval: interval, weakTarget: target, selector: Target.fire, repeats: entry.repeats)
        }
    }

    private var isFiringByHand = false

    private func emitFire(of timer: Timer, _ name: String, _ count: Int) {
        emit(
            .fire(
                name: name, count: count, mode: loop.currentMode?.name ?? "default",
                due: times.time(of: timer.fireDate),
                missed: Int64(timer.missedFires), manual: isFiringByHand))
        isFiringByHand = false
    }

    // MARK: Actions

    private func carryOut(_ verb: Scenario.ActionEntry.Verb) {
        switch verb {
        case .invalidate(let name):
            timers[name]?.invalidate()
        case .fire(let name):
            guard let timer = timers[name], timer.isValid else { return }
            isFiringByHand = true
            timer.fire()
        case .setFireDate(let name, let date):
            timers[name]?.fireDate = times.instant(date)
        case .drop(let name):
            targets[name] = nil
        case .addMode(let mode, let name):
            guard let timer = timers[name], timer.isValid else { return }
            loop.add(timer, forMode: RunLoop.Modes(stringLiteral: mode))
        case .removeMode(let mode, let name):
            guard let timer = timers[name], timer.isValid else { return }
            loop.remove(timer, fromMode: RunLoop.Modes(stringLiteral: mode))
        case .makeCommon(let mode):
            loop.addCommonMode(RunLoop.Mode(mode))
        }
    }
}
