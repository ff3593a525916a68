import Scenarios
import Testing

/// The properties of the background that are exact on virtual time, in any order of the threads.
@Suite("Background sources in random scenarios")
struct BackgroundScenarioTests {
    @Test("a lone source delivers the same in the background as on the main loop")
    func aloneInBackground() {
        var count = 0
        for seed in 0..<400 as Range<UInt64> {
            var scenario = RandomScenario.makeLoneSource(seed: seed)
            let onMain = deliveries(scenario)
            scenario.sources[0].queue = .background
            let inBackground = deliveries(scenario)
            count += onMain.count
            guard onMain != inBackground else { continue }
            Issue.record(
                """
                seed \(seed): \(onMain)
                but in the background \(inBackground)
                \(RandomScenario.describe(scenario))
                """)
            return
        }
        #expect(count > 1_000)
    }

    /// Returns the times, counts, dates and data of the deliveries, and the time of the cancellation.
    private func deliveries(_ scenario: Scenario) -> [[Int64]] {
        ScenarioPlayer(scenario).play().compactMap { event in
            switch event.kind {
            case .delivery(_, let count, _, let due, let data): [event.t, Int64(count), due, data]
            case .cancelled: [event.t]
            default: nil
            }
        }
    }

    @Test("the main loop does the same with and without sources and named timers in the background")
    func mainLoopIsNotTouched() {
        for seed in 0..<600 as Range<UInt64> {
            let scenario = RandomScenario.make(seed: seed)
            let crowded = RandomScenario.withBackground(scenario, seed: seed)
            let expected = ReferenceModel.events(of: scenario).map { [$0.t.description, "\($0.kind)"] }
            let played = ScenarioPlayer(crowded).play()
            let onMain = played.filter { $0.thread == "main" }.map { [$0.t.description, "\($0.kind)"] }
            guard expected != onMain else { continue }
            Issue.record("seed \(seed): \(expected)\nbut \(onMain)\n\(RandomScenario.describe(crowded))")
            return
        }
    }

    @Test("background events are reported on background threads, in order of time")
    func backgroundIsHeardOf() {
        var threads: Set<String> = []
        for seed in 0..<100 as Range<UInt64> {
            let played = ScenarioPlayer(RandomScenario.withBackground(RandomScenario.make(seed: seed), seed: seed))
                .play()
            #expect(zip(played, played.dropFirst()).allSatisfy { $0.t <= $1.t }, "seed \(seed)")
            #expect(played.last?.kind == .end, "seed \(seed)")
            threads.formUnion(played.map { $0.thread ?? "none" })
        }
        #expect(threads.isSuperset(of: ["main", "background-1", "background-2"]))
        #expect(threads.allSatisfy { $0 == "main" || $0.hasPrefix("background-") }, "\(threads)")
    }

    @Test("a background source's target that the player is the last to release is deinitialized on the main thread")
    func targetThatIsDropped() throws {
        let scenario = try Scenario(
            json: Array(
                """
                { "duration": 4,
                  "sources": [ { "name": "W", "start": 5, "on": "background", "target": { "name": "w", "hold": "weak" } },
                               { "name": "S", "start": 5, "on": "background", "target": { "name": "s" } } ],
                  "actions": [ { "at": 1, "drop": "w" }, { "at": 2, "drop": "s" }, { "at": 3, "cancel": "S" } ] }
                """.utf8))
        #expect(
            ScenarioPlayer(scenario).play().map(\.json) == [
                #"{"t":1.0,"event":"deinit","name":"w","thread":"main"}"#,
                #"{"t":1.0,"event":"cancelled","name":"W","thread":"background-1"}"#,
                #"{"t":3.0,"event":"cancelled","name":"S","thread":"background-1"}"#,
                #"{"t":3.0,"event":"deinit","name":"s","thread":"background-1"}"#,
                #"{"t":4.0,"event":"end","thread":"main"}"#,
            ])
    }
}

extension RandomScenario {
    /// Makes a scenario with one source and nothing that could interfere: either its handlers work, or it is suspended
    /// and resumed at times that are on no grid.
    static func makeLoneSource(seed: UInt64) -> Scenario {
        var generator = RandomScenario(seed: seed)
        var source = generator.makeSource(number: 0)
        source.target = nil
        var actions: [Scenario.ActionEntry] = []
        if generator.random.chance(50) {
            source.busy = 0
            for index in 0..<generator.random.number(in: 1...6) {
                let at = quarter * generator.random.number(in: 0...40) + 100_000_000 + index
                let verb: Scenario.ActionEntry.Verb = generator.random.pick([
                    .activate(source: source.name), .suspend(source: source.name), .suspend(source: source.name),
                    .resume(item: source.name), .resume(item: source.name), .resume(item: source.name),
                    .cancel(item: source.name),
                ])
                actions.append(Scenario.ActionEntry(at: at, verb: verb))
            }
        } else {
            source.isActive = true
        }
        return Scenario(duration: generator.duration, sources: [source], actions: actions)
    }

    /// Returns the scenario with sources and named timers in the background that nothing refers to.
    static func withBackground(_ scenario: Scenario, seed: UInt64) -> Scenario {
        var generator = RandomScenario(seed: ~seed)
        var scenario = scenario
        for number in 0..<generator.random.number(in: 1...3) {
            var source = generator.makeSource(number: Int(number))
            source.name = "B\(number + 1)"
            source.queue = .background
            source.target = nil
            scenario.sources.append(source)
        }
        for number in 0..<generator.random.number(in: 0...2) {
            let interval = quarter * generator.random.number(in: 1...8)
            scenario.named.append(
                Scenario.NamedEntry(
                    name: "M\(number + 1)", interval: interval, repeats: generator.random.chance(50),
                    busy: generator.makeStretch(steps: 3)))
        }
        return scenario
    }
}
