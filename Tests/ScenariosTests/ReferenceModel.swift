import Scenarios

/// What playing a scenario on virtual time must print, worked out a second time by the simplest means.
///
/// It shares nothing with the loop but the rules of the scenario format, which the comments here give by number: no
/// heap, no lanes, no driver. Every step looks at every item, and a nested run is a recursive call. Where the player
/// and this model disagree, one of the two has misread a rule.
struct ReferenceModel {
    /// The events of the whole scenario in order; the last one is `.end`.
    static func events(of scenario: Scenario) -> [ScenarioEvent] {
        var model = ReferenceModel(scenario)
        model.run(in: "default", until: scenario.duration)
        model.note(.end)
        return model.events
    }

    /// What the loop calls when an item is due.
    private enum Work {
        case action(Scenario.ActionEntry.Verb)
        case busy(Int64)
        case run(Scenario.RunEntry)
        /// An index into `timers`.
        case timer(Int)
    }

    /// Anything that is armed for a date: an action, a busy entry, a run or a timer.
    private struct Item {
        var work: Work
        var date: Int64
        /// The number of its latest arming, which orders items with the same date; nil while it is not armed.
        var arming: Int?
        /// The modes it is in, each with the number of the joining: one that left and came back has another number.
        var joinings: [String: Int] = [:]
        /// Whether it was added to the common modes, and so joins every mode made common later.
        var isCommon = false
    }

    /// What a timer has besides its item.
    private struct TimerState {
        var entry: Scenario.TimerEntry
        /// An index into `items`.
        var item: Int
        /// The first point of the current grid.
        var anchor: Int64
        /// How many points of the current grid had passed at its latest scheduled fire.
        var pointsCounted: Int64 = 0
        var fireCount = 0
        var isValid = true
        /// Whether the player still holds the target; true for a timer without one.
        var playerHoldsTarget = true

        /// The default of R98 is applied here too, so that a scenario built by hand means what a file means.
        var interval: Int64 { entry.interval > 0 ? entry.interval : 100_000 }

        /// How many points of the current grid lie at or before `time`, which is not before the anchor.
        func points(upTo time: Int64) -> Int64 { (time - anchor) / interval + 1 }
    }

    /// An item that a pass found due, with the numbers that tell whether it has been touched since.
    private struct Candidate {
        var item: Int
        var date: Int64
        var arming: Int
        var joining: Int
    }

    private var now: Int64 = 0
    private var latestNumber = 0
    private var commonModes: Set<String>
    /// The modes of the activations on the stack, innermost last.
    private var runningModes: [String] = []
    private var items: [Item] = []
    private var timers: [TimerState] = []
    private var events: [ScenarioEvent] = []

    /// Arms everything, in the order that settles equal times (rule 7).
    private init(_ scenario: Scenario) {
        commonModes = Set(scenario.commonModes).union(["default"])
        let everyMode = Self.modes(of: scenario)
        for entry in scenario.actions { arm(.action(entry.verb), at: entry.at, in: everyMode) }
        for entry in scenario.busy { arm(.busy(entry.duration), at: entry.at, in: entry.modes) }
        for entry in scenario.runs { arm(.run(entry), at: entry.from, in: everyMode) }
        for (index, entry) in scenario.timers.enumerated() {
            timers.append(TimerState(entry: entry, item: items.count, anchor: entry.first))
            arm(.timer(index), at: entry.first, in: entry.modes)
        }
    }

    /// Default and every other name that occurs anywhere in the scenario (rule 5).
    private static func modes(of scenario: Scenario) -> [String] {
        var names: Set<String> = ["default"]
        names.formUnion(scenario.commonModes)
        names.formUnion(scenario.timers.flatMap(\.modes))
        names.formUnion(scenario.busy.flatMap(\.modes))
        names.formUnion(scenario.runs.map(\.mode))
        for action in scenario.actions {
            switch action.verb {
            case .addMode(let mode, _), .removeMode(let mode, _), .makeCommon(let mode): names.insert(mode)
            case .invalidate, .fire, .setFireDate, .drop, .activate, .suspend, .resume, .pause, .cancel: break
            }
        }
        names.remove("common")
        return names.sorted()
    }

    private mutating func arm(_ work: Work, at date: Int64, in modes: [String]) {
        let item = items.count
        items.append(Item(work: work, date: date, arming: nextNumber()))
        for mode in modes { add(item, to: mode) }
    }

    /// One counter serves armings and joinings: only the order and the difference of its values matter.
    private mutating func nextNumber() -> Int {
        latestNumber += 1
        return latestNumber
    }

    private mutating func note(_ kind: ScenarioEvent.Kind) {
        events.append(ScenarioEvent(t: now, kind))
    }
}

// MARK: - Running

extension ReferenceModel {
    /// Runs the loop in `mode` until `limit` (rule 13).
    ///
    /// What is due exactly at the limit still fires, so the run ends only when a pass at the limit found nothing to do,
    /// or when the clock has gone beyond it. A limit that is not in the future allows exactly one pass.
    private mutating func run(in mode: String, until limit: Int64) {
        runningModes.append(mode)
        defer { runningModes.removeLast() }
        guard limit > now else {
            _ = pass(in: mode)
            return
        }
        while true {
            sleep(in: mode, until: limit)
            let isAtLimit = now == limit
            let didWork = pass(in: mode)
            if now > limit || (isAtLimit && !didWork) { return }
        }
    }

    /// Moves the clock to the earliest date in `mode` or to the limit, whichever comes first; never backwards.
    private mutating func sleep(in mode: String, until limit: Int64) {
        let dates = items.filter { $0.arming != nil && $0.joinings[mode] != nil }.map(\.date)
        now = max(now, min(dates.min() ?? limit, limit))
    }

    /// Calls what is due in `mode` at the present reading of the clock, and tells whether there was anything.
    ///
    /// What the pass may call is settled at its start (rules 9, 10, 11): nothing can enter it later, and whatever was
    /// armed anew, or left the mode, even if it came back, has dropped out of it.
    private mutating func pass(in mode: String) -> Bool {
        let candidates = dueItems(in: mode)
        for candidate in candidates {
            let item = items[candidate.item]
            guard item.arming == candidate.arming, item.joinings[mode] == candidate.joining else { continue }
            call(candidate.item)
        }
        return !candidates.isEmpty
    }

    /// The armed items of `mode` whose date has come, by date and then by arming (rule 10).
    private func dueItems(in mode: String) -> [Candidate] {
        var due: [Candidate] = []
        for (index, item) in items.enumerated() where item.date <= now {
            guard let arming = item.arming, let joining = item.joinings[mode] else { continue }
            due.append(Candidate(item: index, date: item.date, arming: arming, joining: joining))
        }
        return due.sorted { ($0.date, $0.arming) < ($1.date, $1.arming) }
    }

    /// Calls an item, which is not armed meanwhile; only a repeating timer is armed again, by `fire` (rule 12).
    private mutating func call(_ item: Int) {
        items[item].arming = nil
        switch items[item].work {
        case .action(let verb):
            perform(verb)
        case .busy(let duration):
            note(.busyBegin)
            now += duration
            note(.busyEnd)
        case .run(let entry):
            note(.runBegin(mode: entry.mode))
            run(in: entry.mode, until: entry.until)
            note(.runEnd(mode: entry.mode))
        case .timer(let timer):
            fire(timer, manually: false)
        }
    }
}

// MARK: - Actions

extension ReferenceModel {
    /// Does what an action says; on an invalid timer nothing (rule 18).
    private mutating func perform(_ verb: Scenario.ActionEntry.Verb) {
        switch verb {
        case .invalidate(let name):
            if let timer = validTimer(named: name) { invalidate(timer) }
        case .fire(let name):
            if let timer = validTimer(named: name) { fire(timer, manually: true) }
        case .setFireDate(let name, let date):
            if let timer = validTimer(named: name) { setFireDate(of: timer, to: date) }
        case .drop(let name):
            drop(target: name)
        case .addMode(let mode, let name):
            if let timer = validTimer(named: name) { add(timers[timer].item, to: mode) }
        case .removeMode(let mode, let name):
            if let timer = validTimer(named: name) { remove(timers[timer].item, from: mode) }
        case .makeCommon(let mode):
            makeCommon(mode)
        case .activate, .suspend, .resume, .pause, .cancel:
            preconditionFailure("the model has timers only")
        }
    }

    private func validTimer(named name: String) -> Int? {
        timers.firstIndex { $0.entry.name == name && $0.isValid }
    }

    /// Starts a new grid and takes a new place in the order; a past date is kept as given (rule 15).
    private mutating func setFireDate(of timer: Int, to date: Int64) {
        timers[timer].anchor = date
        timers[timer].pointsCounted = 0
        items[timers[timer].item].date = date
        items[timers[timer].item].arming = nextNumber()
    }

    /// Lets go of the player's hold on a target (rules 8, 23); a second time nothing (rule 18).
    private mutating func drop(target name: String) {
        guard let timer = timers.firstIndex(where: { $0.entry.target?.name == name }),
            let target = timers[timer].entry.target, timers[timer].playerHoldsTarget
        else { return }
        timers[timer].playerHoldsTarget = false
        switch target.hold {
        case .strong:
            if !timers[timer].isValid { note(.deinit(name: name)) }
        case .weak:
            note(.deinit(name: name))
            if timers[timer].isValid { invalidate(timer) }
        }
    }
}

// MARK: - Timers

extension ReferenceModel {
    /// Calls a timer, because its date has come or by hand.
    ///
    /// By hand it leaves the schedule and the grid alone (rule 22). A one-shot is invalid after either.
    private mutating func fire(_ timer: Int, manually: Bool) {
        let missed = manually ? 0 : countMissedPoints(of: timer)
        timers[timer].fireCount += 1
        let state = timers[timer]
        note(
            .fire(
                name: state.entry.name, count: state.fireCount, mode: runningModes.last ?? "default",
                due: items[state.item].date, missed: missed, manual: manually))
        now += state.entry.busy
        if !state.entry.repeats {
            invalidate(timer)
        } else if !manually {
            armForNextPoint(timer)
        }
    }

    /// The grid points up to now that had no scheduled fire of their own (rule 21); counts them, and the one fired now.
    private mutating func countMissedPoints(of timer: Int) -> Int64 {
        guard timers[timer].entry.repeats else { return 0 }
        let points = timers[timer].points(upTo: now)
        defer { timers[timer].pointsCounted = points }
        return points - timers[timer].pointsCounted - 1
    }

    /// Arms a repeating timer for the first grid point strictly after now, the end of its callback (rules 12, 14).
    private mutating func armForNextPoint(_ timer: Int) {
        let state = timers[timer]
        items[state.item].date = state.anchor + state.points(upTo: now) * state.interval
        items[state.item].arming = nextNumber()
    }

    /// Ends a valid timer, and with it its hold on a strong target (rule 23).
    private mutating func invalidate(_ timer: Int) {
        timers[timer].isValid = false
        items[timers[timer].item].arming = nil
        note(.invalidated(name: timers[timer].entry.name))
        guard let target = timers[timer].entry.target, target.hold == .strong else { return }
        if !timers[timer].playerHoldsTarget { note(.deinit(name: target.name)) }
    }
}

// MARK: - Modes

extension ReferenceModel {
    /// Adds an item to a mode, or for `common` to all that are common now and to those made common later (rule 16).
    private mutating func add(_ item: Int, to mode: String) {
        guard mode == "common" else {
            join(item, mode)
            return
        }
        items[item].isCommon = true
        for member in commonModes { join(item, member) }
    }

    /// Membership that exists already is left as it is, so that it counts as unbroken in the present pass.
    private mutating func join(_ item: Int, _ mode: String) {
        if items[item].joinings[mode] == nil { items[item].joinings[mode] = nextNumber() }
    }

    /// Takes an item out of one mode, or for `common`, if it was added so, out of all that are common now (rule 16).
    private mutating func remove(_ item: Int, from mode: String) {
        guard mode == "common" else {
            items[item].joinings[mode] = nil
            return
        }
        guard items[item].isCommon else { return }
        items[item].isCommon = false
        for member in commonModes { items[item].joinings[member] = nil }
    }

    /// Brings all common items into a mode that was not common before.
    private mutating func makeCommon(_ mode: String) {
        guard commonModes.insert(mode).inserted else { return }
        for item in items.indices where items[item].isCommon { join(item, mode) }
    }
}
