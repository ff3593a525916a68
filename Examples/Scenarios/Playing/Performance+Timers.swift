internal import RunLoopKit

/// The run loop's timers of a scenario.
extension Performance {
    /// An object called by a timer; its deinit is an event of the play.
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

    func schedule(_ entry: Scenario.TimerEntry) {
        let timer = makeTimer(entry)
        timer.name = entry.name
        timer.tolerance = times.duration(entry.tolerance)
        timer.invalidationHandler = { [unowned self] in emit(.invalidated(name: entry.name)) }
        timers[entry.name] = timer
        for mode in entry.modes { loop.add(timer, forMode: RunLoop.Modes(stringLiteral: mode)) }
        if entry.modes.isEmpty {
            // In no mode yet, but armed all the same: it takes its place in the order.
            loop.add(timer, forMode: .default)
            loop.remove(timer, forMode: .default)
        }
    }

    private func makeTimer(_ entry: Scenario.TimerEntry) -> Timer {
        let (first, interval) = (times.instant(entry.first), times.duration(entry.interval))
        var count = 0
        let fire: (Timer) -> Void = { [unowned self] timer in
            count += 1
            emitFire(of: timer, entry.name, count)
            times.work(for: entry.busy)
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

    func fireByHand(_ name: String) {
        guard let timer = timers[name], timer.isValid else { return }
        isFiringByHand = true
        timer.fire()
    }

    private func emitFire(of timer: Timer, _ name: String, _ count: Int) {
        emit(
            .fire(
                name: name, count: count, mode: mode, due: times.time(of: timer.fireDate),
                missed: Int64(timer.missedFires), manual: isFiringByHand))
        isFiringByHand = false
    }
}
