import Glibc
import RunLoopExploration
import RunLoopKit
import RunLoopSimulation
import Synchronization
import TestSupport
import Testing

@Suite("Schedules that are made short")
struct ShrinkingTests {
    /// Runs thirteen tasks of twenty-five steps. Fails if task a makes its fourth step before b and c make their second
    /// one.
    private static func race(_ simulation: Simulation) throws {
        var (steps, isLate) = (0, false)
        var begun: Set<String> = []
        for name in ["c", "b", "a"] + (0..<10).map({ "other \($0)" }) {
            simulation.loop.task(name: name) {
                for _ in 0..<25 {
                    await Task.yield()
                    begun.insert(name)
                    if name == "a" { steps += 1 }
                    if steps == 3, begun.isDisjoint(with: ["b", "c"]) { isLate = true }
                }
            }
        }
        simulation.runUntilIdle()
        if isLate { throw Broken(description: "a has made \(steps) steps, and b and c none") }
    }

    @Test("hundreds of departures come down to three or fewer", arguments: seeds(usually: 1))
    func hundreds(seed: UInt64) throws {
        var exploration = Exploration(schedules: 20_000, seed: seed, strategies: [.random])
        exploration.longestCauseSearch = .zero
        guard case .failed(let finding) = exploration.run(Self.race) else {
            return #expect(Bool(false), "nothing was found with seed \(seed)")
        }
        #expect(finding.first.departures.count >= 200, "\(finding)")
        #expect(finding.token.departures.count <= 3 && finding.isReproducible, "\(finding)")
        #expect(finding.attempts <= 1000, "\(finding)")
    }

    @Test("shrinking keeps to the fault's words, apart from numbers")
    func sentence() throws {
        // Once cut, the program fails without departures, too, in another way.
        var isCut = false
        let result = Exploration(schedules: 500).run { simulation in
            let faults = (1...4).filter { simulation.mayHappen("fault \($0)") }
            if faults.contains(4) {
                isCut = true
                throw Broken(description: "the log is cut after \(faults.count) lines\n\(faults)")
            }
            if isCut { throw Broken(description: "the index is old") }
        }
        guard case .failed(let finding) = result else { return #expect(Bool(false), "nothing was found") }
        #expect(finding.token.departures.map(\.place) == ["fault 4"], "\(finding)")
    }

    @Test("shrinking ends in time, and reports its progress")
    func limit() throws {
        let told = Mutex<[Exploration.Progress]>([])
        var exploration = Exploration(schedules: 2000, strategies: [.random])
        exploration.longestCauseSearch = .zero
        exploration.progress = { progress in told.withLock { $0.append(progress) } }
        func find(within limit: Duration, eachTaking microseconds: UInt32) throws -> Exploration.Finding {
            exploration.longestShrinking = limit
            let result = exploration.run { simulation in
                let faults = (0..<12).filter { simulation.mayHappen("\($0)") }
                usleep(microseconds)
                if faults.contains(3), faults.count > 4 { throw Broken(description: "\(faults.count) faults") }
            }
            guard case .failed(let finding) = result else { throw Broken(description: "nothing was found") }
            return finding
        }
        let found = try find(within: .zero, eachTaking: 0)
        #expect(found.attempts == 0 && found.token == found.first && found.isReproducible)
        #expect(told.withLock(\.self).isEmpty)

        // Each run takes real time, so that progress is reported.
        let shortened = try find(within: .seconds(60), eachTaking: 100_000)
        #expect(shortened.token.departures.count == 5, "\(shortened)")
        let isTold = told.withLock {
            $0.contains { if case .shrinking(let left, let runs) = $0 { left < 12 && runs > 1 } else { false } }
        }
        #expect(isTold)
    }

    @Test("shrinking ends in time with thousands of departures, each of which is needed")
    func thousands() throws {
        var exploration = Exploration(schedules: 100, strategies: [.random])
        (exploration.longestShrinking, exploration.longestCauseSearch) = (.zero, .zero)
        let result = exploration.run { simulation in
            let faults = (0..<6000).filter { simulation.choice("choice \($0)", of: [false, true]) }
            if faults.count > 1000 { throw Broken(description: "\(faults.count) faults") }
        }
        guard case .failed(let finding) = result else { return #expect(Bool(false), "nothing was found") }
        #expect(finding.token.departures.count > 1000 && finding.attempts == 0)
    }

    @Test("thousands of departures at almost as many places are taken away in big steps")
    func bigSteps() throws {
        // After the first failure, fewer faults are enough.
        var hasFailed = false
        var exploration = Exploration(schedules: 1000, strategies: [.random])
        exploration.longestCauseSearch = .zero
        let result = exploration.run { simulation in
            let faults = (0..<8000).filter { simulation.choice("choice \($0 / 2)", of: [0, 1]) == 1 }
            if faults.contains(5001), faults.count > 1000 || hasFailed {
                hasFailed = true
                throw Broken(description: "it has failed")
            }
        }
        guard case .failed(let finding) = result else { return #expect(Bool(false), "nothing was found") }
        #expect(finding.first.departures.count > 1000, "\(finding.first.departures.count)")
        #expect(finding.token.departures.map(\.place) == ["choice 2500"] && finding.attempts < 100, "\(finding)")
    }
}
