@_spi(Ports) import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

/// Random programs on the run loop and on a loop written from the documentation. SEEDS=… runs more of them.
@Suite("A loop beside a model of it", .timeLimit(.minutes(60)))
struct LoopModelTests {
    private static let programsPerSeed: UInt64 = 25

    @Test(
        "a program of timers, timeouts, calls, observers, sources, blocks and nested runs has the same calls at the same times",
        arguments: seeds(usually: 8))
    func programs(seed: UInt64) {
        for seed in (seed - 1) * Self.programsPerSeed..<seed * Self.programsPerSeed {
            let expected = Self.log(seed, on: ModelLoop())
            let seen = withSimulation { simulation in
                let log = Self.log(seed, on: SimulatedLoop(simulation))
                simulation.loop.checkInvariants()
                return log
            }
            guard seen != expected else { continue }
            let place =
                zip(seen, expected).enumerated().first { $1.0 != $1.1 }?.offset ?? min(seen.count, expected.count)
            let (before, rest) = (
                seen[..<place].suffix(60).joined(separator: "\n"), seen[place...].first ?? "(the end)"
            )
            Issue.record(
                "program \(seed), entry \(place):\n\(before)\nloop:  \(rest)\nmodel: \(expected[place...].first ?? "(the end)")"
            )
            return
        }
    }

    private static func log(_ seed: UInt64, on loop: some ProgrammedLoop) -> [String] {
        let program = LoopProgram(seed: seed, on: loop)
        loop.program = program
        program.run()
        return program.log
    }

    @Test("programs do everything that a program can do")
    func variety() {
        var log: [String] = []
        for seed in 0..<60 as Range<UInt64> { log += Self.log(seed, on: ModelLoop()) }
        let words =
            [
                "finished", "stopped", "timedOut", "handledSource", "starved", "by hand", "missed 1", "source", "block",
                "timeout",
                "delayed", "depth 3", "becomes common",
            ] + ActivityPlan.allCases.map(\.rawValue)
        for word in words { #expect(log.contains { $0.contains(word) }, "\(word)") }
    }
}
