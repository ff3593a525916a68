import Scenarios

extension RandomScenario {
    mutating func makeTimer(number: Int, of count: Int) -> Scenario.TimerEntry {
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

    /// Makes an interval. The shortest is left out where there are many timers, to keep the list of events short.
    mutating func makeInterval(timerCount: Int) -> Int64 {
        if random.chance(5) { return random.pick([333_333_333, 1_700_000_001]) }
        let quarters: [Int64] = [2, 4, 4, 6, 8, 8, 12]
        return Self.quarter * random.pick(timerCount > 3 ? quarters : quarters + [1])
    }

    mutating func makeTimerModes() -> [String] {
        random.chance(3) ? [] : makeModes()
    }

    mutating func makeModes() -> [String] {
        random.pick([
            ["default"], ["default"], ["common"], ["common"], ["tracking"], ["modal"], ["default", "tracking"],
            ["tracking", "modal"], ["common", "modal"], ["default", "common"], ["default", "tracking", "modal"],
        ])
    }

    mutating func makeBusyEntry() -> Scenario.BusyEntry {
        let entry = Scenario.BusyEntry(at: makeTime(), duration: makeStretch(steps: 8), modes: makeModes())
        moments += [entry.at, entry.at + entry.duration]
        return entry
    }

    mutating func makeRun() -> Scenario.RunEntry {
        let mode = random.pick(["default", "tracking", "tracking", "modal"])
        if !busy.isEmpty, random.chance(15) { return makeLateRun(in: mode) }
        let from = random.chance(20) ? random.pick(moments) : makeTime()
        let until = makeRunEnd(from: from)
        moments += [from, until]
        return Scenario.RunEntry(mode: mode, from: from, until: until)
    }

    /// Makes a run that is due while the loop is busy and ends with the busy period: one pass, full of late items.
    mutating func makeLateRun(in mode: String) -> Scenario.RunEntry {
        let entry = random.pick(busy)
        return Scenario.RunEntry(mode: mode, from: makeTime(during: entry), until: entry.at + entry.duration)
    }

    /// Makes the end of a run: usually later than the beginning; sometimes not, and sometimes just when something else
    /// begins or ends.
    mutating func makeRunEnd(from: Int64) -> Int64 {
        switch random.number(in: 0...9) {
        case 0: max(0, from - makeStretch(steps: 4))
        case 1, 2: random.pick(moments)
        default: from + makeStretch(steps: 16)
        }
    }
}
