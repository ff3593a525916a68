import Scenarios

/// Random scenarios that go for the corners: equal times, limits on grid points, membership that changes in a pass.
///
/// The same seed always makes the same scenario; `describe` prints it for the command-line player.
struct RandomScenario {
    static func make(seed: UInt64) -> Scenario {
        var generator = RandomScenario(seed: seed)
        return generator.makeScenario()
    }

    private static let quarter: Int64 = 250_000_000
    private static let runnableModes = ["default", "tracking", "modal"]

    private var random: SplitMix64
    /// The lattice of this scenario: the coarser, the more times are equal.
    private let step: Int64
    private let duration: Int64
    private var timers: [Scenario.TimerEntry] = []
    private var busy: [Scenario.BusyEntry] = []
    private var actions: [Scenario.ActionEntry] = []
    /// Where busy work or a run is meant to begin or end: times that other entries should share.
    private var moments: [Int64]

    private init(seed: UInt64) {
        random = SplitMix64(state: seed)
        step = Self.quarter * random.pick([1, 1, 2, 2, 4])
        duration = Self.quarter * random.number(in: random.chance(5) ? 0...4 : 20...48)
        moments = [duration]
    }

    /// The order of the calls is part of what a seed means.
    private mutating func makeScenario() -> Scenario {
        let commonModes = random.pick([
            [], [], ["tracking"], ["tracking"], ["modal"], ["tracking", "modal"], ["default"],
        ])
        let timerCount = random.chance(3) ? 0 : random.number(in: 1...6)
        for number in 0..<timerCount { timers.append(makeTimer(number: Int(number), of: Int(timerCount))) }
        for _ in 0..<random.number(in: 0...4) { busy.append(makeBusyEntry()) }
        let runs = (0..<random.number(in: 0...4)).map { _ in makeRun() }
        let actionCount = random.number(in: 0...8)
        while actions.count < actionCount { addActions() }
        return Scenario(
            duration: duration, commonModes: commonModes, timers: timers, busy: busy, runs: runs,
            actions: Array(actions.prefix(Int(actionCount))))
    }
}

// MARK: - Times

extension RandomScenario {
    /// Mostly a lattice point before `limit`, by default ten seconds or the end; now and then an odd time.
    private mutating func makeTime(before limit: Int64 = 10_000_000_000) -> Int64 {
        if random.chance(10) {
            return random.pick([5_085_000_000, 9_596_000_000, 1, 3_333_333_333, 1_999_999_999, 4_000_000_001])
        }
        return step * random.number(in: 0...(min(limit, duration) / step))
    }

    /// A stretch of up to `steps` lattice steps, now and then an odd one.
    private mutating func makeStretch(steps: Int64) -> Int64 {
        if random.chance(10) { return random.pick([85_000_000, 1_234_567_890, 1, 250_000_001]) }
        return step * random.number(in: 0...steps)
    }

    /// A time that comes while the loop is busy, so that what is due then is late.
    private mutating func makeTime(during entry: Scenario.BusyEntry) -> Int64 {
        entry.at + min(entry.duration, step * random.number(in: 0...(entry.duration / step + 1)))
    }

    /// A time at which something is likely to happen anyway: another action, a limit, a grid point; or any other.
    private mutating func makeActionTime() -> Int64 {
        if !actions.isEmpty, random.chance(25) { return random.pick(actions).at }
        if random.chance(20) { return random.pick(moments) }
        if !busy.isEmpty, random.chance(20) { return makeTime(during: random.pick(busy)) }
        guard !timers.isEmpty, random.chance(50) else { return makeTime() }
        let timer = random.pick(timers)
        return timer.first + timer.interval * random.number(in: 0...4)
    }
}

// MARK: - Entries

extension RandomScenario {
    private mutating func makeTimer(number: Int, of count: Int) -> Scenario.TimerEntry {
        let repeats = random.chance(75)
        let interval = makeInterval(timerCount: count)
        let first = random.chance(50) ? interval : makeTime(before: random.pick([3_000_000_000, 10_000_000_000]))
        var timer = Scenario.TimerEntry(name: "T\(number + 1)", first: first, modes: makeTimerModes())
        timer.repeats = repeats
        timer.interval = repeats ? interval : 0
        if random.chance(35) { timer.busy = makeStretch(steps: random.chance(20) ? 12 : 3) }
        if random.chance(15) { timer.tolerance = random.pick([50_000_000, 250_000_000, 1_000_000_000]) }
        if random.chance(60) {
            timer.target = Scenario.Target(name: "O\(number + 1)", hold: random.chance(50) ? .strong : .weak)
        }
        return timer
    }

    /// The shortest interval is left out where there are many timers, to keep the list of events short.
    private mutating func makeInterval(timerCount: Int) -> Int64 {
        if random.chance(5) { return random.pick([333_333_333, 1_700_000_001]) }
        let quarters: [Int64] = [2, 4, 4, 6, 8, 8, 12]
        return Self.quarter * random.pick(timerCount > 3 ? quarters : quarters + [1])
    }

    private mutating func makeTimerModes() -> [String] {
        random.chance(3) ? [] : makeModes()
    }

    private mutating func makeModes() -> [String] {
        random.pick([
            ["default"], ["default"], ["common"], ["common"], ["tracking"], ["modal"], ["default", "tracking"],
            ["tracking", "modal"], ["common", "modal"], ["default", "common"], ["default", "tracking", "modal"],
        ])
    }

    private mutating func makeBusyEntry() -> Scenario.BusyEntry {
        let entry = Scenario.BusyEntry(at: makeTime(), duration: makeStretch(steps: 8), modes: makeModes())
        moments += [entry.at, entry.at + entry.duration]
        return entry
    }

    private mutating func makeRun() -> Scenario.RunEntry {
        let mode = random.pick(["default", "tracking", "tracking", "modal"])
        if !busy.isEmpty, random.chance(15) { return makeLateRun(in: mode) }
        let from = random.chance(20) ? random.pick(moments) : makeTime()
        let until = makeRunEnd(from: from)
        moments += [from, until]
        return Scenario.RunEntry(mode: mode, from: from, until: until)
    }

    /// A run that is due while the loop is busy and is to end when that ends: it makes one pass, full of late items.
    private mutating func makeLateRun(in mode: String) -> Scenario.RunEntry {
        let entry = random.pick(busy)
        return Scenario.RunEntry(mode: mode, from: makeTime(during: entry), until: entry.at + entry.duration)
    }

    /// Usually later than the beginning; sometimes not, and sometimes just when something else begins or ends.
    private mutating func makeRunEnd(from: Int64) -> Int64 {
        switch random.number(in: 0...9) {
        case 0: max(0, from - makeStretch(steps: 4))
        case 1, 2: random.pick(moments)
        default: from + makeStretch(steps: 16)
        }
    }
}

// MARK: - Actions

extension RandomScenario {
    private mutating func addActions() {
        let at = makeActionTime()
        guard !timers.isEmpty, !random.chance(10) else {
            actions.append(Scenario.ActionEntry(at: at, verb: .makeCommon(random.pick(Self.runnableModes))))
            return
        }
        let timer = random.pick(timers)
        for verb in makeVerbs(for: timer, at: at) { actions.append(Scenario.ActionEntry(at: at, verb: verb)) }
    }

    /// Usually one verb; sometimes a pair that breaks a membership and may restore it at the same time.
    private mutating func makeVerbs(
        for timer: Scenario.TimerEntry, at time: Int64
    ) -> [Scenario.ActionEntry.Verb] {
        let name = timer.name
        switch random.number(in: 0...12) {
        case 0: return [.invalidate(item: name)]
        case 1, 2: return [.fire(timer: name)]
        case 3, 4, 5: return [.setFireDate(timer: name, to: makeFireDate(near: time))]
        case 6: return [.addMode(makeMemberMode(of: timer), item: name)]
        case 7, 8: return [.removeMode(makeMemberMode(of: timer), item: name)]
        case 9:
            let mode = makeMemberMode(of: timer)
            let plainMode = mode == "common" ? random.pick(Self.runnableModes) : mode
            let restorations: [Scenario.ActionEntry.Verb] = [
                .addMode(mode, item: name), .addMode("common", item: name), .makeCommon(plainMode),
            ]
            return [.removeMode(mode, item: name), random.pick(restorations)]
        default:
            guard let target = timer.target else { return [.addMode(makeMemberMode(of: timer), item: name)] }
            return [.drop(target: target.name)]
        }
    }

    /// Past, exactly now, or future in equal parts.
    private mutating func makeFireDate(near time: Int64) -> Int64 {
        switch random.number(in: 0...2) {
        case 0: max(0, time - makeStretch(steps: 8))
        case 1: time
        default: time + makeStretch(steps: 8)
        }
    }

    /// Half of the time a mode that the timer was given, so that taking it away has an effect.
    private mutating func makeMemberMode(of timer: Scenario.TimerEntry) -> String {
        if !timer.modes.isEmpty, random.chance(50) { return random.pick(timer.modes) }
        return random.pick(Self.runnableModes + ["common"])
    }
}

// MARK: - Printing

extension RandomScenario {
    /// The scenario in the file format, one entry a line, so that the command-line player can replay a failure.
    static func describe(_ scenario: Scenario) -> String {
        let fields = [
            "\"duration\": \(seconds(scenario.duration))",
            "\"commonModes\": \(list(scenario.commonModes))",
            "\"timers\": \(lines(scenario.timers.map(describe)))",
            "\"busy\": \(lines(scenario.busy.map(describe)))",
            "\"runs\": \(lines(scenario.runs.map(describe)))",
            "\"actions\": \(lines(scenario.actions.map(describe)))",
        ]
        return "{ " + fields.joined(separator: ",\n  ") + " }"
    }

    private static func describe(_ timer: Scenario.TimerEntry) -> String {
        var fields = ["\"name\": \(quoted(timer.name))", "\"first\": \(seconds(timer.first))"]
        if timer.repeats { fields.append("\"interval\": \(seconds(timer.interval))") }
        fields.append("\"repeats\": \(timer.repeats)")
        fields.append("\"modes\": \(list(timer.modes))")
        fields.append("\"busy\": \(seconds(timer.busy))")
        fields.append("\"tolerance\": \(seconds(timer.tolerance))")
        if let target = timer.target {
            let hold = quoted(target.hold.rawValue)
            fields.append("\"target\": { \"name\": \(quoted(target.name)), \"hold\": \(hold) }")
        }
        return object(fields)
    }

    private static func describe(_ busy: Scenario.BusyEntry) -> String {
        object([
            "\"at\": \(seconds(busy.at))", "\"for\": \(seconds(busy.duration))", "\"modes\": \(list(busy.modes))",
        ])
    }

    private static func describe(_ run: Scenario.RunEntry) -> String {
        object([
            "\"mode\": \(quoted(run.mode))", "\"from\": \(seconds(run.from))", "\"until\": \(seconds(run.until))",
        ])
    }

    private static func describe(_ action: Scenario.ActionEntry) -> String {
        object(["\"at\": \(seconds(action.at))"] + fields(of: action.verb))
    }

    private static func fields(of verb: Scenario.ActionEntry.Verb) -> [String] {
        switch verb {
        case .invalidate(let timer): ["\"invalidate\": \(quoted(timer))"]
        case .fire(let timer): ["\"fire\": \(quoted(timer))"]
        case .setFireDate(let timer, let date): ["\"setFireDate\": \(quoted(timer))", "\"to\": \(seconds(date))"]
        case .drop(let target): ["\"drop\": \(quoted(target))"]
        case .addMode(let mode, let timer): ["\"addMode\": \(quoted(mode))", "\"timer\": \(quoted(timer))"]
        case .removeMode(let mode, let timer): ["\"removeMode\": \(quoted(mode))", "\"timer\": \(quoted(timer))"]
        case .makeCommon(let mode): ["\"makeCommon\": \(quoted(mode))"]
        case .activate(let source): ["\"activate\": \(quoted(source))"]
        case .suspend(let source): ["\"suspend\": \(quoted(source))"]
        case .resume(let item): ["\"resume\": \(quoted(item))"]
        case .pause(let item): ["\"pause\": \(quoted(item))"]
        case .cancel(let item): ["\"cancel\": \(quoted(item))"]
        }
    }

    private static func object(_ fields: [String]) -> String {
        "{ " + fields.joined(separator: ", ") + " }"
    }

    private static func lines(_ objects: [String]) -> String {
        objects.isEmpty ? "[]" : "[\n    " + objects.joined(separator: ",\n    ") + " ]"
    }

    private static func list(_ names: [String]) -> String {
        "[" + names.map(quoted).joined(separator: ", ") + "]"
    }

    private static func quoted(_ name: String) -> String {
        var text = "\""
        for character in name.unicodeScalars {
            if character == "\"" || character == "\\" { text += "\\" }
            text.unicodeScalars.append(character)
        }
        return text + "\""
    }

    /// Exact to the nanosecond, which a floating-point number would not be for every time.
    private static func seconds(_ nanoseconds: Int64) -> String {
        let (whole, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        var digits = String(String(rest + 1_000_000_000).dropFirst())
        while digits.count > 1, digits.hasSuffix("0") { digits.removeLast() }
        return "\(whole).\(digits)"
    }
}

/// Steele, Lea and Flood's generator: small, and its numbers are the same on every platform and with every compiler.
private struct SplitMix64 {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var bits = state
        bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
        bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
        return bits ^ (bits >> 31)
    }

    /// The remainder's tiny bias does not matter here.
    mutating func number(in range: ClosedRange<Int64>) -> Int64 {
        range.lowerBound + Int64(next() % UInt64(range.upperBound - range.lowerBound + 1))
    }

    mutating func pick<Element>(_ choices: [Element]) -> Element {
        choices[Int(number(in: 0...Int64(choices.count - 1)))]
    }

    mutating func chance(_ percent: Int64) -> Bool {
        number(in: 1...100) <= percent
    }
}
