import Glibc
import RunLoopExploration
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

/// Returns the arguments with which a test process, called again, reaches the test's exploration; the test is named and
/// run alone.
private func arguments(for test: String) -> [String] {
    [CommandLine.arguments[0], "--testing-library", "swift-testing", "--filter", "ProcessTests/\(test)\\("]
}

@Suite("Exploration in other processes")
struct ProcessTests {
    @Test("a trap is found, shrunk and reported with its words")
    func trap() throws {
        func explore() -> Exploration.Finding? {
            let result = Exploration(schedules: 200).run(inProcessesFor: "trap", arguments: arguments(for: "trap")) {
                simulation in
                let (loop, count) = (simulation.loop, Counter())
                loop.task(name: "first") {
                    await Task.yield()
                    count.add()
                }
                loop.task(name: "second") {
                    await Task.yield()
                    await Task.yield()
                    precondition(count.value == 1, "the first is not there")
                }
                simulation.runUntilIdle()
            }
            guard case .failed(let finding) = result else { return nil }
            return finding
        }
        let finding = try #require(explore())
        #expect(finding.fault.kind == .trap)
        #expect(finding.fault.description.contains("the first is not there"))
        #expect(finding.isReproducible && finding.token.departures.count == 1)
        let lines = finding.picture.split(separator: "\n")
        #expect(lines.first == "seed 0, at 0.000000000" && lines.last == "Here the process has ended.")
        #expect(lines.contains { $0.contains("← instead of first") }, "\(finding)")
        #expect(lines.dropFirst().first?.split(separator: " ") == ["time", "second"], "\(finding)")
    }

    @Test("a trap is found among all schedules, with the fewest departures, and so is a run that does not end")
    func exhaustiveTrap() throws {
        func explore(_ name: String, _ body: @escaping (Simulation) -> Void) -> Exploration.Finding? {
            let exploration = ExhaustiveExploration(
                departures: 2, limits: Exploration.Limits(longestRun: .seconds(1)))
            let result = exploration.run(
                inProcessesFor: name, arguments: arguments(for: "exhaustiveTrap"), body)
            if case .failed(let finding) = result { return finding }
            return nil
        }
        func happened(_ simulation: Simulation) -> [Int] { (0..<8).filter { simulation.mayHappen("\($0)") } }
        let trap = explore("a trap among all") { precondition(happened($0) != [3, 6], "three and six") }
        let hang = explore("a hang among all") { if happened($0) == [5] { while true {} } }
        let found = try #require(trap)
        #expect(found.fault.kind == .trap && found.fault.description.contains("three and six"), "\(found)")
        #expect(found.token.departures.map(\.place) == ["3", "6"] && found.isReproducible)
        #expect(hang?.fault.kind == .hang && hang?.token.departures.map(\.place) == ["5"])
    }

    @Test("all schedules pass in other processes as in this one, and with the same numbers")
    func exhaustivePass() {
        func program(_ simulation: Simulation) {
            for task in 0..<3 { simulation.loop.task(name: "\(task)") { for _ in 0..<2 { await Task.yield() } } }
            simulation.runUntilIdle()
        }
        let exploration = ExhaustiveExploration(departures: 2)
        let there = exploration.run(
            inProcessesFor: "exhaustivePass", arguments: arguments(for: "exhaustivePass"), program)
        guard case .proven(let coverage) = there, case .proven(let own) = exploration.run(program) else {
            return #expect(Bool(false), "\(there)")
        }
        #expect(coverage == own && own.schedules.count == 3 && own.schedules[2] > 100, "\(own)")
    }

    @Test("other processes know the observed length of a run: one schedule has the same faults everywhere")
    func sameFaults() throws {
        @Sendable func program(_ simulation: Simulation) throws {
            for step in 1...1_000 where simulation.mayHappen("50 %; odd = \(step % 2)") {
                if step == 750 { throw Broken(description: "it happened in step \(step)") }
            }
        }
        func finding(_ result: Exploration.Result) -> Exploration.Finding? {
            if case .failed(let finding) = result { finding } else { nil }
        }
        let (exploration, arguments) = (Exploration(seed: 4), arguments(for: "sameFaults"))
        let there = try #require(
            finding(exploration.run(inProcessesFor: "sameFaults", arguments: arguments, program)))
        let here = try #require(finding(exploration.run(program)))
        // More than one batch.
        #expect(here.schedules > 32, "\(here.schedules)")
        #expect(there.schedules == here.schedules && there.first == here.first, "\(there)")
    }

    private struct TooLarge: Error {
        let threads: Int
        let memory: Int
    }

    /// A campaign with many crashes; `CRASHES=1000000` makes it longer.
    @Test("a campaign with many crashes has few threads and little memory: its processes are replaced in time")
    func campaign() {
        let crashes = getenv("CRASHES").flatMap { Int(String(cString: $0)) } ?? 1_000
        func explore() -> Exploration.Result {
            let limits = Exploration.Limits(reportsDeadlocks: false, reportsLeaks: false)
            let exploration = Exploration(schedules: crashes / 10, limits: limits)
            return exploration.run(inProcessesFor: "campaign", arguments: arguments(for: "campaign")) { simulation in
                let host = SimulatedNetwork(simulation).addHost("store") { loop in
                    // The objects of a killed process are never released.
                    let memory = [UInt8](repeating: 1, count: 400_000)
                    for _ in 0..<2 { _ = LoopThread(name: "worker") { $0.add(CustomSource(), forMode: .default) } }
                    loop.perform(afterDelay: .seconds(100)) { withExtendedLifetime(memory) {} }
                }
                for _ in 0..<10 {
                    simulation.advance(by: .seconds(1))
                    host.crash()
                    host.start()
                }
                host.crash()
                let (threads, memory) = (directoryEntries("/proc/self/task").count, residentBytes())
                if threads > 50 || memory > 1 << 30 { throw TooLarge(threads: threads, memory: memory) }
            }
        }
        let result = explore()
        guard case .passed(crashes / 10) = result else {
            Issue.record("\(result)")
            return
        }
    }

    @Test("a run that does not end is found")
    func hang() throws {
        func explore() -> Exploration.Finding? {
            var exploration = Exploration(schedules: 200)
            exploration.limits.longestRun = .milliseconds(500)
            let result = exploration.run(inProcessesFor: "hang", arguments: arguments(for: "hang")) { simulation in
                if simulation.mayHappen("it spins") { while true {} }
            }
            guard case .failed(let finding) = result else { return nil }
            return finding
        }
        let finding = try #require(explore())
        #expect(finding.fault.kind == .hang && "\(finding.token)".hasSuffix(":it spins@0=1"))
    }
}
