import Scenarios

/// Named timers and countdowns on the main loop: S11 and S12, and rules 28, 29 and 34 of the format.
extension ReferenceModel {
    // MARK: Named timers

    /// The state of a name besides its item.
    struct NamedState {
        /// The latest scheduling.
        var entry: Scenario.NamedEntry
        /// An index into `items`.
        var item: Int
        /// The point that the timer waits for.
        var next: Int64
        var actionCount: Int
        /// `true` if the name has a timer; not after the last action.
        var isScheduled = true
    }

    /// Schedules a name, replacing its timer; the count of its actions continues.
    mutating func schedule(_ entry: Scenario.NamedEntry) {
        let item = named[entry.name]?.item ?? makeItem(.named(entry.name), isEverywhere: true)
        let next = now + (entry.repeats && entry.fireInstantly ? 0 : entry.interval)
        let count = named[entry.name]?.actionCount ?? 0
        named[entry.name] = NamedState(entry: entry, item: item, next: next, actionCount: count)
        rearm(item, at: next)
    }

    /// Performs an action. A timer that does not repeat frees its name before.
    mutating func act(_ name: String) {
        guard var state = named[name] else { return }
        let entry = state.entry
        state.actionCount += 1
        state.isScheduled = entry.repeats
        if entry.repeats { state.next += ((now - state.next) / entry.interval + 1) * entry.interval }
        named[name] = state
        note(
            .action(
                name: name, count: state.actionCount, mode: runningModes.last, action: entry.action,
                isFree: !entry.repeats))
        now += entry.busy
        if entry.repeats { rearm(state.item, at: state.next) }
    }

    /// Cancels a name. A name without a timer has nothing to cancel, and nothing is printed.
    mutating func cancel(named name: String) {
        guard let state = named[name], state.isScheduled else { return }
        named[name]?.isScheduled = false
        items[state.item].arming = nil
        note(.cancelled(name: name))
    }

    // MARK: Countdowns

    /// The state of a countdown besides its item.
    struct CountdownState {
        var entry: Scenario.CountdownEntry
        /// An index into `items`.
        var item: Int
        var remaining: Int64?
        var tickCount = 0
        var isRunning = false
        /// The point that the countdown waits for. During a pause, its distance from now as of the beginning of the
        /// pause; negative if points had passed that a busy loop could not report. `nil` before the first resume.
        var next: Int64?
        /// `true` at the tick that begins a grid, which stands for no interval.
        var isAtBeginning = true
    }

    mutating func add(_ entry: Scenario.CountdownEntry) {
        let item = makeItem(.countdown(countdowns.count), isEverywhere: true)
        countdowns.append(CountdownState(entry: entry, item: item, remaining: entry.from.map(Int64.init)))
    }

    func countdown(named name: String) -> Int? {
        countdowns.firstIndex { $0.entry.name == name }
    }

    /// Begins a grid at once, or continues a paused one; does nothing on a finished countdown.
    mutating func resume(countdown: Int) {
        let state = countdowns[countdown]
        guard state.remaining != 0 else { return }
        switch state.entry.pausing {
        case .restarting:
            countdowns[countdown].next = now
            countdowns[countdown].isAtBeginning = true
        case .continuing:
            guard !state.isRunning else { return }
            countdowns[countdown].next = now + (state.next ?? 0)
        }
        countdowns[countdown].isRunning = true
        rearm(state.item, at: countdowns[countdown].next ?? now)
    }

    mutating func pause(countdown: Int) {
        guard countdowns[countdown].isRunning else { return }
        countdowns[countdown].isRunning = false
        countdowns[countdown].next = countdowns[countdown].next.map { $0 - now }
        items[countdowns[countdown].item].arming = nil
    }

    /// Subtracts all intervals that have passed, and prints once.
    mutating func tick(_ countdown: Int) {
        var state = countdowns[countdown]
        guard let next = state.next else { return }
        let points = (now - next) / state.entry.interval + 1
        let passed = state.isAtBeginning ? points - 1 : points
        state.remaining = state.remaining.map { max(0, $0 - passed) }
        state.tickCount += 1
        state.isAtBeginning = false
        state.isRunning = state.remaining != 0
        state.next = next + points * state.entry.interval
        countdowns[countdown] = state
        note(
            .tick(
                name: state.entry.name, count: state.tickCount, mode: runningModes.last ?? "default",
                remaining: state.remaining))
        if state.isRunning { rearm(state.item, at: state.next ?? now) }
    }
}
