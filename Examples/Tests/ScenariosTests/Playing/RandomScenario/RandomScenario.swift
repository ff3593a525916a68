import ExampleTestSupport
import Scenarios

/// Random scenarios that aim for corner cases: equal times, limits on grid points, membership that changes in a pass.
///
/// The same seed always makes the same scenario; `describe` prints it for the command-line player.
struct RandomScenario {
    static func make(seed: UInt64) -> Scenario {
        var generator = RandomScenario(seed: seed)
        return generator.makeScenario()
    }

    static let quarter: Int64 = 250_000_000
    static let runnableModes = ["default", "tracking", "modal"]

    var random: SeededGenerator
    /// The lattice of this scenario: the coarser, the more times are equal.
    let step: Int64
    let duration: Int64
    var timers: [Scenario.TimerEntry] = []
    var sources: [Scenario.SourceEntry] = []
    var links: [Scenario.LinkEntry] = []
    var named: [Scenario.NamedEntry] = []
    var countdowns: [Scenario.CountdownEntry] = []
    var busy: [Scenario.BusyEntry] = []
    var actions: [Scenario.ActionEntry] = []
    /// The times when busy work or a run is meant to begin or end, to be shared by other entries.
    var moments: [Int64]

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        step = Self.quarter * random.pick([1, 1, 2, 2, 4])
        duration = Self.quarter * random.number(in: random.chance(5) ? 0...4 : 20...48)
        moments = [duration]
    }

    /// Makes the scenario. The order of the calls is part of the meaning of a seed.
    mutating func makeScenario() -> Scenario {
        let commonModes = random.pick([
            [], [], ["tracking"], ["tracking"], ["modal"], ["tracking", "modal"], ["default"],
        ])
        // Less than half of the scenarios have only the basic items of every loop.
        let hasOthers = random.chance(60)
        let timerCount = random.chance(hasOthers ? 30 : 3) ? 0 : random.number(in: 1...(hasOthers ? 3 : 6))
        for number in 0..<timerCount { timers.append(makeTimer(number: Int(number), of: Int(timerCount))) }
        if hasOthers { makeOthers() }
        for _ in 0..<random.number(in: 0...4) { busy.append(makeBusyEntry()) }
        let runs = (0..<random.number(in: 0...4)).map { _ in makeRun() }
        let actionCount = random.number(in: 0...(hasOthers ? 12 : 8))
        while actions.count < actionCount { addActions() }
        return Scenario(
            duration: duration, commonModes: commonModes, timers: timers, sources: sources, links: links, named: named,
            countdowns: countdowns, busy: busy, runs: runs, actions: Array(actions.prefix(Int(actionCount))))
    }
}

// MARK: - Times

extension RandomScenario {
    /// Makes a time, mostly a lattice point before `limit`, by default ten seconds or the end; sometimes an odd time.
    mutating func makeTime(before limit: Int64 = 10_000_000_000) -> Int64 {
        if random.chance(10) {
            return random.pick([5_085_000_000, 9_596_000_000, 1, 3_333_333_333, 1_999_999_999, 4_000_000_001])
        }
        return step * random.number(in: 0...(min(limit, duration) / step))
    }

    /// Makes a stretch of up to `steps` lattice steps, sometimes an odd one.
    mutating func makeStretch(steps: Int64) -> Int64 {
        if random.chance(10) { return random.pick([85_000_000, 1_234_567_890, 1, 250_000_001]) }
        return step * random.number(in: 0...steps)
    }

    /// Makes a time while the loop is busy, so that items due then are late.
    mutating func makeTime(during entry: Scenario.BusyEntry) -> Int64 {
        entry.at + min(entry.duration, step * random.number(in: 0...(entry.duration / step + 1)))
    }

    /// Makes a time at which something is likely to happen anyway: another action, a limit, a grid point; or any other.
    mutating func makeActionTime() -> Int64 {
        if !actions.isEmpty, random.chance(25) { return random.pick(actions).at }
        if random.chance(20) { return random.pick(moments) }
        if !busy.isEmpty, random.chance(20) { return makeTime(during: random.pick(busy)) }
        let grids =
            timers.map { ($0.first, $0.interval) } + sources.map { ($0.start, $0.interval) }
            + named.map { ($0.at, $0.interval) } + links.map { (0, 1_000_000_000 / Int64($0.rate)) }
        guard !grids.isEmpty, random.chance(50) else { return makeTime() }
        let (first, interval) = random.pick(grids)
        return first + interval * random.number(in: 0...4)
    }
}

extension SeededGenerator {
    /// Returns a random number in a range. The remainder's tiny bias does not matter here.
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
