import Scenarios

/// The expected output of playing a scenario on virtual time, worked out a second time by the simplest means.
///
/// The model shares only the rules of the scenario format with the loop, which the comments here give by number: no
/// heap, no lanes, no driver. Every step looks at every item, and a nested run is a recursive call. Where the player
/// and this model disagree, one of the two has misread a rule.
struct ReferenceModel {
    /// Returns the events of the whole scenario in order; the last one is `.end`.
    static func events(of scenario: Scenario) -> [ScenarioEvent] {
        var model = ReferenceModel(scenario)
        model.run(in: "default", until: scenario.duration)
        model.note(.end)
        return model.events
    }

    /// The work that the loop calls when an item is due.
    enum Work {
        case action(Scenario.ActionEntry.Verb)
        case busy(Int64)
        case run(Scenario.RunEntry)
        /// An index into `timers`; and so on.
        case timer(Int)
        case source(Int)
        case link(Int)
        /// A call that schedules a named timer.
        case scheduling(Scenario.NamedEntry)
        case named(String)
        case countdown(Int)
    }

    /// An item that is armed for a date: an action, a busy entry, a run, or anything that fires.
    struct Item {
        var work: Work
        var date: Int64
        /// The number of the item's latest arming, which orders items with the same date; `nil` while it is not armed.
        var arming: Int?
        /// The modes of the item, each with the number of the joining: an item that left and came back has another
        /// number.
        var joinings: [String: Int] = [:]
        /// `true` if the item was added to the common modes, and so joins every mode made common later.
        var isCommon = false
        /// `true` if the item takes part in every mode; then it joins none.
        var isEverywhere = false

        /// Returns the number of the item's joining of a mode; 0 for an item that takes part in all.
        func joining(_ mode: String) -> Int? { isEverywhere ? 0 : joinings[mode] }
    }

    /// An item that a pass found due, with the numbers that reveal a change since.
    struct Candidate {
        var item: Int
        var date: Int64
        var arming: Int
        var joining: Int
    }

    var now: Int64 = 0
    var latestNumber = 0
    var commonModes: Set<String>
    /// The modes of the activations on the stack, innermost last.
    var runningModes: [String] = []
    var items: [Item] = []
    var timers: [TimerState] = []
    var sources: [SourceState] = []
    var links: [LinkState] = []
    var named: [String: NamedState] = [:]
    var countdowns: [CountdownState] = []
    /// The thread that the events name; `nil` in a scenario with only the loop's timers.
    private let thread: String?
    var events: [ScenarioEvent] = []

    /// Arms everything, in the order that settles equal times (rule 7).
    init(_ scenario: Scenario) {
        commonModes = Set(scenario.commonModes).union(["default"])
        let others = [scenario.sources.count, scenario.links.count, scenario.named.count, scenario.countdowns.count]
        thread = others.contains { $0 > 0 } ? "main" : nil
        let everyMode = Self.modes(of: scenario)
        for entry in scenario.actions { arm(.action(entry.verb), at: entry.at, in: everyMode) }
        for entry in scenario.busy { arm(.busy(entry.duration), at: entry.at, in: entry.modes) }
        for entry in scenario.runs { arm(.run(entry), at: entry.from, in: everyMode) }
        for (index, entry) in scenario.timers.enumerated() {
            timers.append(TimerState(entry: entry, item: items.count, anchor: entry.first))
            arm(.timer(index), at: entry.first, in: entry.modes)
        }
        for entry in scenario.sources where entry.queue == .main { add(entry) }
        for entry in scenario.links { add(entry) }
        for entry in scenario.named where entry.queue == .main { arm(.scheduling(entry), at: entry.at, in: everyMode) }
        for entry in scenario.countdowns { add(entry) }
    }

    /// Returns default and every other name that occurs anywhere in the scenario (rule 5).
    static func modes(of scenario: Scenario) -> [String] {
        var names: Set<String> = ["default"]
        names.formUnion(scenario.commonModes)
        names.formUnion(scenario.timers.flatMap(\.modes))
        names.formUnion(scenario.links.flatMap(\.modes))
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

    mutating func arm(_ work: Work, at date: Int64, in modes: [String]) {
        let item = items.count
        items.append(Item(work: work, date: date, arming: nextNumber()))
        for mode in modes { add(item, to: mode) }
    }

    /// Makes an item that is not armed yet.
    mutating func makeItem(_ work: Work, isEverywhere: Bool) -> Int {
        items.append(Item(work: work, date: 0, isEverywhere: isEverywhere))
        return items.count - 1
    }

    /// Arms an item anew, at the end of the order.
    mutating func rearm(_ item: Int, at date: Int64) {
        items[item].date = date
        items[item].arming = nextNumber()
    }

    /// Returns the next number of one counter for armings and joinings: only the order and the difference of its values
    /// matter.
    mutating func nextNumber() -> Int {
        latestNumber += 1
        return latestNumber
    }

    mutating func note(_ kind: ScenarioEvent.Kind) {
        events.append(ScenarioEvent(t: now, kind, thread: thread))
    }
}

// MARK: - Running

extension ReferenceModel {
    /// Runs the loop in `mode` until `limit` (rule 13).
    ///
    /// An item that is due exactly at the limit still fires, so the run ends only when a pass at the limit found
    /// nothing to do, or when the clock has passed the limit. A limit that is not in the future allows exactly one
    /// pass.
    mutating func run(in mode: String, until limit: Int64) {
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
    mutating func sleep(in mode: String, until limit: Int64) {
        var earliest = limit
        for item in items where item.date < earliest && item.arming != nil && item.joining(mode) != nil {
            earliest = item.date
        }
        now = max(now, earliest)
    }

    /// Calls the items due in `mode` at the present reading of the clock, and returns whether anything was called.
    ///
    /// The candidates of the pass are settled at its start (rules 9, 10, 11): nothing can enter it later, and an item
    /// that was armed anew, or left the mode, even if it came back, has dropped out of it.
    mutating func pass(in mode: String) -> Bool {
        let candidates = dueItems(in: mode)
        var didCall = false
        for candidate in candidates {
            let item = items[candidate.item]
            guard item.arming == candidate.arming, item.joining(mode) == candidate.joining else { continue }
            if call(candidate.item) { didCall = true }
        }
        return didCall
    }

    /// Returns the armed items of `mode` whose date has come, by date and then by arming (rule 10).
    func dueItems(in mode: String) -> [Candidate] {
        var due: [Candidate] = []
        for (index, item) in items.enumerated() where item.date <= now {
            guard let arming = item.arming, let joining = item.joining(mode) else { continue }
            due.append(Candidate(item: index, date: item.date, arming: arming, joining: joining))
        }
        return due.count < 2 ? due : due.sorted { ($0.date, $0.arming) < ($1.date, $1.arming) }
    }

    /// Calls an item, which is not armed meanwhile; a repeating item is armed again afterwards (rule 12).
    ///
    /// - Returns: `true` if anything was called; a link may put its call off.
    mutating func call(_ item: Int) -> Bool {
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
        case .source(let source): deliver(source)
        case .link(let link): return callInFrame(link)
        case .scheduling(let entry): schedule(entry)
        case .named(let name): act(name)
        case .countdown(let countdown): tick(countdown)
        }
        return true
    }
}
