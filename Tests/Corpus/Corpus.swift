import RunLoopExploration
import RunLoopSimulation

/// Small programs with planted bugs, and their mended twins: `Corpus list`, `Corpus check`, `Corpus run NAME` with
/// `--mended` and `--seed N`, and `Corpus explore NAME` with `--mended` and `--schedules N`.
@main
enum Corpus {
    static func main() {
        var arguments = Array(CommandLine.arguments.dropFirst())
        switch arguments.isEmpty ? "" : arguments.removeFirst() {
        case "list":
            for program in Program.all { print("\(padded(program.name))\(program.bug)") }
        case "check":
            for program in Program.all {
                print("\(padded(program.name))\(word(program, false)), mended: \(word(program, true))")
            }
        case "run":
            let isMended = arguments.contains("--mended")
            arguments.removeAll { $0 == "--mended" }
            let seed = arguments.dropFirst(2).first ?? "0"
            guard let program = Program.all.first(where: { $0.name == arguments.first }), let seed = UInt64(seed),
                arguments.count == 1 || arguments.count == 3 && arguments[1] == "--seed"
            else { return printUsage() }
            print(violation(of: program, isMended: isMended, seed: seed) ?? "passed")
        case "explore":
            let isMended = arguments.contains("--mended")
            arguments.removeAll { $0 == "--mended" }
            let schedules = arguments.dropFirst(2).first ?? "100000"
            guard let program = Program.all.first(where: { $0.name == arguments.first }),
                let schedules = Int(schedules), arguments.count == 1 || arguments.count == 3
            else { return printUsage() }
            explore(program, isMended: isMended, Exploration(schedules: schedules, for: .seconds(60)))
        default: printUsage()
        }
    }

    private static func explore(_ program: Program, isMended: Bool, _ exploration: Exploration) {
        let begin = ContinuousClock.now
        let result = exploration.run { try program.run($0, isMended) }
        let time = ContinuousClock.now - begin
        switch result {
        case .passed(let schedules): print("passed \(schedules) schedules in \(time)")
        case .failed(let finding): print("\(finding)\nin \(time)")
        }
    }

    private static func printUsage() {
        print("usage: Corpus list | check | run NAME [--mended] [--seed N] | explore NAME [--mended] [--schedules N]")
    }

    /// - Returns: what does not hold; `nil` if all does.
    static func violation(of program: Program, isMended: Bool, seed: UInt64) -> String? {
        withSimulation(seed: seed) { simulation in
            do {
                try program.run(simulation, isMended)
            } catch {
                return "\(error)"
            }
            return simulation.escapes.first
        }
    }

    private static func word(_ program: Program, _ isMended: Bool) -> String {
        violation(of: program, isMended: isMended, seed: 0).map { "found, \($0)" } ?? "passed"
    }

    private static func padded(_ name: String) -> String {
        name + String(repeating: " ", count: max(1, 24 - name.count))
    }
}
