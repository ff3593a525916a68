import Scenarios

/// Sources, links, named timers and countdowns: all on the main loop, where the order of everything is settled.
extension RandomScenario {
    mutating func makeOthers() {
        for number in 0..<random.number(in: 0...3) { sources.append(makeSource(number: Int(number))) }
        for number in 0..<random.pick([0, 0, 1, 1, 2] as [Int]) { links.append(makeLink(number: number)) }
        for _ in 0..<random.number(in: 0...3) { named.append(makeNamed()) }
        for number in 0..<random.pick([0, 0, 1, 2] as [Int]) { countdowns.append(makeCountdown(number: number)) }
    }

    mutating func makeSource(number: Int) -> Scenario.SourceEntry {
        let interval = makeShortInterval()
        let start = random.chance(50) ? interval : makeTime()
        var source = Scenario.SourceEntry(name: "S\(number + 1)", start: start)
        source.interval = random.chance(80) ? interval : 0
        if random.chance(40) { source.busy = makeStretch(steps: random.chance(20) ? 12 : 3) }
        if random.chance(15) { source.leeway = random.pick([50_000_000, 250_000_000, 1_000_000_000]) }
        source.isActive = random.chance(80)
        if random.chance(20) { source.cancelAfter = Int(random.number(in: 1...4)) }
        if random.chance(50) {
            source.target = Scenario.Target(name: "P\(number + 1)", hold: random.chance(50) ? .strong : .weak)
        }
        return source
    }

    /// Makes a link with a few calls a second, seldom one in every frame: a frequent call makes the test longer, not
    /// better.
    private mutating func makeLink(number: Int) -> Scenario.LinkEntry {
        let rate = random.pick([24, 30, 60, 60, 240])
        var link = Scenario.LinkEntry(name: "L\(number + 1)", rate: rate, modes: random.chance(5) ? [] : makeModes())
        link.preferred = random.chance(5) && duration < 6_000_000_000 ? 0 : random.pick([1, 1, 2, 2, 3, 4, 5, 7])
        if random.chance(40) {
            link.busy = random.pick([1, 10_000_000, 1_000_000_000 / Int64(rate), 500_000_000, 1_234_567_890])
        }
        link.hasMeter = random.chance(30)
        return link
    }

    /// Makes a named timer. There are at most three names, so that some are scheduled several times.
    private mutating func makeNamed() -> Scenario.NamedEntry {
        let name = random.pick(["N1", "N1", "N2"])
        let repeats = random.chance(60)
        let interval = repeats || random.chance(70) ? makeShortInterval() : 0
        var entry = Scenario.NamedEntry(name: name, at: random.chance(30) ? 0 : makeTime(), interval: interval)
        entry.repeats = repeats
        entry.fireInstantly = random.chance(40)
        entry.queue = .main
        entry.action = "action \(named.count + 1)"
        if random.chance(30) { entry.busy = makeStretch(steps: 3) }
        return entry
    }

    /// Makes a countdown. Most are resumed at least once, some right at the start.
    private mutating func makeCountdown(number: Int) -> Scenario.CountdownEntry {
        var entry = Scenario.CountdownEntry(name: "C\(number + 1)", interval: makeShortInterval())
        if random.chance(75) { entry.from = Int(random.number(in: 1...6)) }
        entry.pausing = random.chance(50) ? .restarting : .continuing
        if random.chance(80) {
            let at = random.chance(40) ? 0 : makeTime()
            actions.append(Scenario.ActionEntry(at: at, verb: .resume(item: entry.name)))
        }
        return entry
    }

    private mutating func makeShortInterval() -> Int64 {
        if random.chance(8) { return random.pick([333_333_333, 1_700_000_001]) }
        return Self.quarter * random.pick([1, 2, 2, 4, 4, 4, 6, 8, 12])
    }
}
