@_spi(Ports) import RunLoopCore
import RunLoopExploration
import RunLoopSimulation
import TestSupport
import Testing

/// A program that meets its marks in some schedules, in some of them twice, and traps in one of a hundred.
private func program(_ simulation: Simulation, traps: Bool) {
    let number = simulation.choice("number", of: Array(0..<100))
    for _ in 0..<2 { simulation.sometimes("a number was\nsmall%", if: number < 50) }
    simulation.sometimes("a number was negative", if: number < 0)
    if traps, number == 99 { fatalError("the number is 99") }
}

@Suite("Marks of explorations")
struct MarkTests {
    @Test("the count of a mark is the number of schedules that have met it, in this process and in others")
    func counts() {
        func explore(_ run: (Exploration, inout Simulation.Marks) -> Exploration.Result) -> [String: Int] {
            var marks = Simulation.Marks()
            guard case .passed(200) = run(Exploration(schedules: 200, strategies: [.random, .uniform]), &marks) else {
                return [:]
            }
            return marks.counts
        }
        func runInProcesses() -> [String: Int] {
            explore { exploration, marks in
                exploration.run(inProcessesFor: "counts", arguments: arguments("counts"), marks: &marks) {
                    program($0, traps: false)
                }
            }
        }
        // Each schedule has a seed of its own, except schedules near to another one.
        let met = Locked<Set<UInt64>>([])
        func run() -> [String: Int] {
            explore { exploration, marks in
                exploration.run(marks: &marks) { simulation in
                    program(simulation, traps: false)
                    if simulation.marks["a number was\nsmall%"] == 2 {
                        met.withLock { _ = $0.insert(simulation.seed) }
                    }
                }
            }
        }
        let others = runInProcesses()
        let marks = run()
        #expect(marks == others && marks.count == 2)
        #expect(marks["a number was negative"] == 0)
        #expect(marks["a number was\nsmall%"] == met.withLock(\.count), "\(marks)")
    }

    @Test("the marks of earlier runs outlive a process that traps")
    func trap() throws {
        func explore() -> Exploration.Finding? {
            let exploration = Exploration(schedules: 10_000)
            let result = exploration.run(inProcessesFor: "trap", arguments: arguments("trap")) {
                program($0, traps: true)
            }
            guard case .failed(let finding) = result else { return nil }
            return finding
        }
        func count(_ schedules: Int) -> Simulation.Marks? {
            var marks = Simulation.Marks()
            let result = Exploration(schedules: schedules).run(marks: &marks) { program($0, traps: false) }
            guard case .passed = result else { return nil }
            return marks
        }
        let finding = try #require(explore())
        #expect(finding.fault.kind == .trap && (finding.schedules - 1) % 32 > 1, "a trap amid a batch")
        #expect(finding.marks == count(finding.schedules - 1))
    }
}

/// Returns the arguments with which a test process, called again, reaches the test's exploration.
private func arguments(_ test: String) -> [String] {
    [CommandLine.arguments[0], "--testing-library", "swift-testing", "--filter", "MarkTests/\(test)\\("]
}
