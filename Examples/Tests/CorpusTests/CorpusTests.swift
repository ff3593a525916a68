import ExampleTestSupport
import RunLoopExploration
import Testing

@testable import Corpus

@Suite("The corpus of planted bugs")
struct CorpusTests {
    /// Programs that trap are explored in other processes: `ProcessTests` has such a program, and `make explore-corpus`
    /// runs these.
    private static let programs = (Program.firstPart + Program.secondPart).filter { !$0.traps }.map(\.name)
    /// Some of these bugs are not found within a minute; `make explore-corpus` reports them.
    private static let thirdPart = Program.thirdPart.map(\.name)

    @Test("the bug is found, in a schedule of few departures, which fails again; the twin passes", arguments: programs)
    func found(name: String) throws {
        let program = try #require(Program.all.first { $0.name == name })
        func explore(isMended: Bool, schedules: Int, seed: UInt64 = 0) -> Exploration.Result {
            Exploration(schedules: schedules, seed: seed, limits: program.limits).run { try program.run($0, isMended) }
        }
        // The luck of a seed decides how soon a bug is found: `refilled-twice` takes ten thousand schedules with the
        // median seed.
        let results = (5..<15).lazy.map { explore(isMended: false, schedules: 5_000, seed: $0) }
        let found = results.compactMap { if case .failed(let finding) = $0 { finding } else { nil } }.first
        guard let finding = found else {
            Issue.record("no seed finds it")
            return
        }
        #expect(finding.isReproducible && finding.token.departures.count <= 6, "\(finding)")
        let twin = explore(isMended: true, schedules: 32)
        guard case .passed(32) = twin else {
            Issue.record("\(twin)")
            return
        }
    }

    @Test("the usual order does not show the bug, and the twin passes", arguments: thirdPart)
    func usual(name: String) throws {
        let program = try #require(Program.all.first { $0.name == name })
        #expect(Corpus.violation(of: program, isMended: false, seed: 0) == nil)
        let twin = Exploration(schedules: 16, limits: program.limits).run { try program.run($0, true) }
        guard case .passed(16) = twin else {
            Issue.record("\(twin)")
            return
        }
    }
}

@Suite("Corpus debug")
struct CorpusDebugTests {
    private func stepper(_ name: String, _ token: ScheduleToken) throws -> Exploration.Stepper {
        let program = try #require(Program.all.first { $0.name == name })
        return Exploration.Stepper(Exploration(limits: program.limits), token) { try program.run($0, false) }
    }

    @Test("every departure of a finding can be stepped to, and without the last one the program passes")
    func stepsThroughFinding() throws {
        let program = try #require(Program.all.first { $0.name == "overdrawn-account" })
        let result = Exploration(limits: program.limits).run { try program.run($0, false) }
        guard case .failed(let finding) = result else {
            Issue.record("nothing was found")
            return
        }
        let stepper = try stepper(program.name, finding.token)
        #expect(stepper.fault == finding.fault && stepper.missing.isEmpty)
        var departures = 0
        while stepper.goToNextDeparture() { departures += 1 }
        #expect(departures == finding.token.departures.count)
        try stepper.depart(to: try #require(stepper.place.choice?.usual))
        #expect(stepper.fault == nil)
    }
}
