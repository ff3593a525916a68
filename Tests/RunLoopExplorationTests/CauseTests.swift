import RunLoopExploration
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("The cause of a fault")
struct CauseTests {
    private static func finding(
        _ exploration: Exploration = Exploration(), of program: (Simulation) throws -> Void
    ) throws -> Exploration.Finding {
        var exploration = exploration
        exploration.longestCauseSearch = .seconds(600)
        guard case .failed(let finding) = exploration.run(program) else {
            throw Broken(description: "nothing was found")
        }
        return finding
    }

    /// A program that makes some choices that do not matter, a few that do at a known step, and others that do not
    /// matter.
    private static func program(_ simulation: Simulation) throws {
        for number in 1...13 { _ = simulation.choice("early \(number)", of: [1, 2]) }
        let isLost = simulation.choice("the answer", of: Array(0..<16)) == 7
        for number in 1...50 { _ = simulation.choice("late \(number)", of: [1, 2]) }
        if isLost { throw Broken(description: "an answer is missing") }
    }

    @Test("the cause is the step at which the likelihood jumps, with the likelihoods on both sides")
    func jump() throws {
        let finding = try Self.finding(of: Self.program)
        let cause = try #require(finding.cause)
        #expect(cause.step?.number == 14 && cause.step?.words == "the answer: 7", "\(cause)")
        let index = try #require(cause.likelihoods.firstIndex { $0.steps == 14 })
        let (before, after) = (cause.likelihoods[index - 1], cause.likelihoods[index])
        #expect(before.steps == 13 && before.runs == 32 && before.faults < 8, "\(cause)")
        #expect(after.runs == 32 && after.faults == 32, "\(cause)")
        #expect(cause.likelihoods.first?.steps == 0 && cause.likelihoods.last?.steps == 64, "\(cause.likelihoods)")
        #expect(
            "\(cause)" == """
                From step 14, the answer: 7, the fault came in 32 of 32 runs that went on by chance; before \
                it in \(before.faults) of 32.
                """)
        #expect("\(finding)".contains("\n\(cause)\n"))
    }

    @Test("equal explorations find the same cause")
    func same() throws {
        #expect(try Self.finding(of: Self.program).cause == Self.finding(of: Self.program).cause)
    }

    @Test("a fault that is always likely has no step")
    func always() throws {
        let cause = try Self.finding(of: { simulation in
            for number in 1...20 { _ = simulation.choice("number \(number)", of: [1, 2]) }
            throw Broken(description: "always")
        }).cause
        #expect(cause?.step == nil && cause?.isLikelyFromStart == true)
        #expect(cause?.description == "The fault is likely from the start: it came in 32 of 32 runs by chance.")
    }

    @Test("a fault that becomes likely by many small steps has no step")
    func gradual() throws {
        // A short schedule would have no departure too many, and the last one would decide.
        var exploration = Exploration(strategies: [.random])
        exploration.longestShrinking = .zero
        let cause = try Self.finding(
            exploration,
            of: { simulation in
                let count = (1...100).count { simulation.choice("\($0)", of: [1, 2]) == 2 }
                if count > 10 { throw Broken(description: "many") }
            }
        ).cause
        #expect(cause?.step == nil && cause?.isLikelyFromStart == false)
        #expect(cause?.description == "The fault became likely at no single step.")
    }

    @Test("a search limit of zero disables the search for the cause")
    func noTime() {
        var exploration = Exploration()
        exploration.longestCauseSearch = .zero
        var runs = 0
        guard
            case .failed(let finding) = exploration.run({ simulation in
                runs += 1
                try Self.program(simulation)
            })
        else { return #expect(Bool(false), "nothing was found") }
        #expect(finding.cause == nil)
        // The last two draw the pictures.
        #expect(runs == finding.schedules + Self.twins(finding.schedules) + finding.attempts + 2)
    }

    /// Returns the number of schedules that run twice: one of 64 passing ones.
    private static func twins(_ schedules: Int) -> Int { (schedules + 62) / 64 }

    @Test("the cause is found in other processes for a program that traps")
    func trap() throws {
        var exploration = Exploration(schedules: 1000)
        exploration.longestCauseSearch = .seconds(600)
        let arguments = [
            CommandLine.arguments[0], "--testing-library", "swift-testing", "--filter", "CauseTests/trap\\(",
        ]
        let result = exploration.run(inProcessesFor: "cause", arguments: arguments) { simulation in
            do { try Self.program(simulation) } catch { fatalError("\(error)") }
        }
        guard case .failed(let finding) = result else { return #expect(Bool(false), "nothing was found") }
        #expect(finding.fault.kind == .trap)
        let step = finding.cause?.step
        #expect(step?.number == 14 && step?.words == "the answer: 7", "\(finding)")
        #expect(finding.picture.hasSuffix("\nHere the process has ended."))
        #expect(finding.html.contains(">the run that fails, until its process ended<"))
    }

    @Test("the cause is an unusual event at one moment of many")
    func moment() throws {
        let cause = try Self.finding(of: { simulation in
            for hour in 0..<40 where simulation.mayHappen("it rains") && hour == 23 {
                throw Broken(description: "it is wet")
            }
        }).cause
        #expect(cause?.step?.number == 24 && cause?.step?.words == "it rains", "\(String(describing: cause))")
    }
}
