import Glibc
import RunLoopExploration
import RunLoopSimulation

/// Small programs with planted bugs, and their mended twins: `Corpus list`, `Corpus check`, `Corpus run NAME` with
/// `--mended` and `--seed N`, `Corpus explore NAME` with `--mended` and `--schedules N`, `Corpus replay NAME TOKEN`,
/// `Corpus measure`, which explores all of them, and `Corpus twins` with `--schedules N`, which does the same to the twins.
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
            guard let program = Program.all.first(where: { $0.name == arguments.first }),
                let schedules = schedules(in: arguments.dropFirst())
            else { return printUsage() }
            switch explore(program, isMended: isMended, schedules: schedules) {
            case .passed(let schedules): print("passed \(schedules) schedules")
            case .failed(let finding): print(finding)
            }
        case "replay":
            guard arguments.count == 2, let program = Program.all.first(where: { $0.name == arguments[0] }),
                let token = ScheduleToken(arguments[1])
            else { return printUsage() }
            let fault = Exploration(limits: program.limits).replay(token) { try program.run($0, false) }
            print(fault.map { "\($0)" } ?? "passed")
        case "measure": measure()
        case "twins":
            guard let schedules = schedules(in: arguments[...]) else { return printUsage() }
            checkTwins(schedules: schedules)
        default: printUsage()
        }
    }

    /// - Returns: what `--schedules` says; a great many without it.
    private static func schedules(in arguments: ArraySlice<String>) -> Int? {
        guard let first = arguments.first else { return 10_000_000 }
        return arguments.count == 2 && first == "--schedules" ? Int(arguments.last!) : nil
    }

    /// Explores a program for a minute at most.
    private static func explore(
        _ program: Program, isMended: Bool, schedules: Int,
        strategies: Set<Exploration.Strategies> = Set(Exploration.Strategies.allCases)
    ) -> Exploration.Result {
        let exploration = Exploration(
            schedules: schedules, for: .seconds(60), limits: program.limits, strategies: strategies)
        guard program.traps else { return exploration.run { try program.run($0, isMended) } }
        let arguments = [CommandLine.arguments[0], "explore", program.name] + (isMended ? ["--mended"] : [])
        return exploration.run(inProcessesFor: program.name, arguments: arguments) { try program.run($0, isMended) }
    }

    // MARK: Figures

    /// Prints how soon each bug is found, and how short its schedule becomes.
    private static func measure() {
        for (name, half) in [
            ("written before the strategies", Program.firstHalf), ("written after", Program.secondHalf),
        ] {
            print("| \(name) | schedules | milliseconds | departures | by chance alone |\n|---|---:|---:|---:|---:|")
            var (found, short, byChance) = (0, 0, 0)
            for program in half {
                let begin = ContinuousClock.now
                let all = explore(program, isMended: false, schedules: 10_000_000)
                let milliseconds = ((ContinuousClock.now - begin) / .milliseconds(1)).rounded(.up)
                let chance = explore(program, isMended: false, schedules: 10_000_000, strategies: [.random])
                if case .failed(let finding) = all {
                    found += 1
                    if finding.token.departures.count <= 6 { short += 1 }
                }
                if case .failed = chance { byChance += 1 }
                print("| \(program.name) | \(words(all, Int(milliseconds))) | \(count(chance)) |")
            }
            print("\n\(found) of \(half.count) found, \(short) of them with six departures or fewer; ", terminator: "")
            print("by chance alone \(byChance)\n")
        }
    }

    private static func words(_ result: Exploration.Result, _ milliseconds: Int) -> String {
        guard case .failed(let finding) = result else { return "not found in \(count(result)) | \(milliseconds) | " }
        return "\(finding.schedules) | \(milliseconds) | \(finding.token.departures.count)"
    }

    private static func count(_ result: Exploration.Result) -> String {
        switch result {
        case .passed(let schedules): "not in \(schedules)"
        case .failed(let finding): "\(finding.schedules)"
        }
    }

    /// Prints what is found in mended programs, which is to be nothing.
    private static func checkTwins(schedules: Int) {
        for program in Program.all {
            let exploration = Exploration(schedules: schedules, limits: program.limits)
            let begin = ContinuousClock.now
            let result = exploration.run { try program.run($0, true) }
            let rate = Double(schedules) / ((ContinuousClock.now - begin) / .seconds(1))
            switch result {
            case .passed: print("\(padded(program.name))passed \(schedules) schedules, \(Int(rate)) a second")
            case .failed(let finding): print("\(padded(program.name))\(finding)")
            }
            fflush(nil)
        }
    }

    private static func printUsage() {
        print(
            "usage: Corpus list | check | run NAME [--mended] [--seed N] | explore NAME [--mended] "
                + "[--schedules N] | replay NAME TOKEN | measure | twins [--schedules N]")
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
