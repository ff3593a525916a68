import Glibc
import RunLoopExploration
import RunLoopSimulation

/// Small programs with planted bugs, and their mended twins: `Corpus list`, `Corpus check`, `Corpus run NAME`, `Corpus
/// explore NAME`, `Corpus replay NAME TOKEN`, `Corpus debug NAME TOKEN`, which steps through one, `Corpus measure`,
/// which explores all of them, and `Corpus twins`, which explores all twins. `Corpus tokens` checks that their tokens
/// last, and `Corpus figures` prints the schedules that find late faults, and the times for shortening schedules.
/// Options are `--seed N`, `--schedules N`, `--for SECONDS`, the longest time of an exploration, `--part N`, which
/// takes the programs of one part, `--mended`, and `--chance`, which leaves every choice to chance.
///
/// `Corpus campaign NAME` explores one for `--for SECONDS` or `--schedules N`, keeps its findings `--in DIRECTORY`, and
/// fails if it has any, or if a mark after `--require` was not met. `Corpus merge DIRECTORY …` adds up the results of
/// shards in the first directory.
@main
enum Corpus {
    static func main() {
        var options = Options()
        var words: [String] = []
        var arguments = CommandLine.arguments.dropFirst().makeIterator()
        while let argument = arguments.next() {
            guard argument.hasPrefix("--") else {
                words.append(argument)
                continue
            }
            guard options.take(argument, &arguments) else { return printUsage() }
        }
        let program = words.dropFirst().first.flatMap { name in Program.all.first { $0.name == name } }
        switch (words.first, words.count, program) {
        case ("list", 1, _):
            for program in Program.all { print("\(padded(program.name))\(program.bug)") }
        case ("check", 1, _):
            for program in options.parts.flatMap(\.programs) {
                print("\(padded(program.name))\(word(program, false)), mended: \(word(program, true))")
            }
        case ("run", 2, let program?):
            print(violation(of: program, isMended: options.isMended, seed: options.seed) ?? "passed")
        case ("explore", 2, let program?):
            switch explore(program, options, seeksCause: true) {
            case .passed(let schedules): print("passed \(schedules) schedules")
            case .failed(let finding): print(finding)
            }
        case ("debug", 3, let program?): debug(program, words[2], options)
        case ("replay", 3, let program?):
            guard let token = token(words[2]) else { return }
            let fault = Exploration(limits: program.limits).replay(token) { try program.run($0, false) }
            print(fault.map { "\($0)" } ?? "passed")
        case ("campaign", 2, let program?): campaign(program, options)
        case ("merge", 2..., _):
            conclude { () throws(CampaignError) in
                let result = try Campaign.merge(Array(words.dropFirst(2)), into: words[1])
                return (result, result.hasPassed && result.isComplete)
            }
        case ("measure", 1, _): measure(options)
        case ("twins", 1, _): checkTwins(options)
        case ("tokens", 1, _): checkTokens()
        case ("figures", 1, _): Figures.show()
        default: printUsage()
        }
    }

    private struct Options {
        var seed: UInt64 = 0
        var schedules = 10_000_000
        var parts = Program.parts
        var isMended = false
        var isByChance = false
        var seconds: Int?
        var directory = "findings"
        var required: [String] = []

        mutating func take(_ name: String, _ values: inout some IteratorProtocol<String>) -> Bool {
            switch name {
            case "--mended": isMended = true
            case "--chance": isByChance = true
            case "--seed", "--schedules", "--for", "--part":
                guard let number = values.next().flatMap({ Int($0) }), number >= 0 else { return false }
                switch name {
                case "--seed": seed = UInt64(number)
                case "--schedules": schedules = number
                case "--for": seconds = number
                default:
                    guard (1...Program.parts.count).contains(number) else { return false }
                    parts = [Program.parts[number - 1]]
                }
            case "--in", "--require":
                guard let text = values.next() else { return false }
                if name == "--in" { directory = text } else { required.append(text) }
            default: return false
            }
            return true
        }

        /// The options as arguments of another process.
        var arguments: [String] {
            ["--seed", "\(seed)"] + (seconds.map { ["--for", "\($0)"] } ?? []) + (isMended ? ["--mended"] : [])
                + (isByChance ? ["--chance"] : [])
        }
    }

    /// Explores a program.
    ///
    /// - Parameter seeksCause: `true` to look for the step from which on a fault was likely.
    private static func explore(
        _ program: Program, _ options: Options, seeksCause: Bool = false
    ) -> Exploration.Result {
        var exploration = Exploration(
            schedules: options.schedules, for: .seconds(options.seconds ?? 60), seed: options.seed,
            limits: program.limits,
            strategies: options.isByChance ? [.random] : Set(Exploration.Strategies.allCases))
        if !seeksCause { exploration.longestCauseSearch = .zero }
        exploration.steppingCommand = steppingCommand(program, options)
        guard program.traps else { return exploration.run { try program.run($0, options.isMended) } }
        let arguments = [CommandLine.arguments[0], "explore", program.name] + options.arguments
        return exploration.run(inProcessesFor: program.name, arguments: arguments) {
            try program.run($0, options.isMended)
        }
    }

    /// Steps through a schedule, in another process if the program traps.
    private static func debug(_ program: Program, _ text: String, _ options: Options) {
        guard let token = token(text) else { return }
        let exploration = Exploration(limits: program.limits)
        let body = { (simulation: Simulation) throws in try program.run(simulation, options.isMended) }
        let stepper =
            program.traps
            ? Exploration.Stepper(exploration, token, inProcessesFor: program.name, body)
            : Exploration.Stepper(exploration, token, body)
        stepper?.talk()
    }

    private static func steppingCommand(
        _ program: Program, _ options: Options
    ) -> @Sendable (ScheduleToken) -> String {
        let (name, mended) = (program.name, options.isMended ? " --mended" : "")
        return { "Corpus debug \(name) \($0.shellWord)\(mended)" }
    }

    /// Reads a token; prints a message if it is none.
    private static func token(_ text: String) -> ScheduleToken? {
        let token = ScheduleToken(text)
        if token == nil { print("\(text) is not the token of a schedule; explore prints one, such as 0:a@1>b") }
        return token
    }

    // MARK: Campaigns

    private static func campaign(_ program: Program, _ options: Options) {
        var exploration = Exploration(
            schedules: options.schedules, for: options.seconds.map { .seconds($0) }, seed: options.seed,
            limits: program.limits)
        exploration.steppingCommand = steppingCommand(program, options)
        let campaign = Campaign(
            program.name, of: exploration, in: options.directory, requiring: options.required)
        conclude { () throws(CampaignError) in
            let result = try campaign.run { try program.run($0, options.isMended) }
            return (result, result.hasPassed)
        }
    }

    /// Prints the result of a campaign, and ends with 0 if it has passed, 1 if not, and 2 if it could not run.
    private static func conclude(_ run: () throws(CampaignError) -> (Campaign.Result, hasPassed: Bool)) {
        do throws(CampaignError) {
            let (result, hasPassed) = try run()
            print(result)
            exit(hasPassed ? 0 : 1)
        } catch {
            print(error)
            exit(2)
        }
    }

    // MARK: Figures

    /// Prints the schedules that find each bug, and the departures left: the median of five seeds, and the worst.
    private static func measure(_ options: Options) {
        for (name, part) in options.parts {
            print("| \(name) | schedule | at most | milliseconds | departures | by chance alone |")
            print("|---|---:|---:|---:|---:|---:|")
            var (found, short, byChance, sum) = (0, 0, 0, 0)
            for program in part {
                let (all, chance) = (
                    Measurement(of: program, options), Measurement(of: program, options, isByChance: true)
                )
                if all.last != nil { found += 1 }
                if let departures = all.departures, departures <= 6 { short += 1 }
                sum += all.middle ?? 0
                if chance.middle != nil { byChance += 1 }
                let columns = [
                    program.name, word(all.middle), word(all.last), "\(all.milliseconds)", word(all.departures),
                    word(chance.middle),
                ]
                print("| \(columns.joined(separator: " | ")) |")
                fflush(nil)
            }
            print(
                "\n\(found) of \(part.count) found with each seed, \(short) of them with six departures or fewer, "
                    + "after \(sum) schedules together; by chance alone \(byChance) with most of the seeds\n")
        }
    }

    private static func word(_ figure: Int?) -> String { figure.map { "\($0)" } ?? "not found" }

    private struct Measurement {
        /// The schedule that found the bug: the median and the largest number; `nil` if the bug was not found.
        let middle: Int?
        let last: Int?
        let milliseconds: Int
        /// The largest number of departures left.
        let departures: Int?

        init(of program: Program, _ options: Options, isByChance: Bool = false) {
            var options = options
            options.isByChance = isByChance
            var (counts, times, departures): ([Int?], [Int], [Int]) = ([], [], [])
            for seed in UInt64(0)..<5 {
                let begin = ContinuousClock.now
                options.seed = seed
                let result = explore(program, options)
                times.append(Int(((ContinuousClock.now - begin) / .milliseconds(1)).rounded(.up)))
                guard case .failed(let finding) = result else {
                    counts.append(nil)
                    continue
                }
                counts.append(finding.schedules)
                departures.append(finding.token.departures.count)
            }
            counts.sort { ($0 ?? .max) < ($1 ?? .max) }
            (middle, last, milliseconds, self.departures) = (counts[2], counts[4], times.sorted()[2], departures.max())
        }
    }

    /// Prints the tokens, found with five seeds, that fail differently or not at all when something unrelated is added
    /// to their program, and the number of tokens that fail as before.
    private static func checkTokens() {
        var (kept, all) = (0, 0)
        for program in Program.all where !program.traps {
            for seed in UInt64(0)..<5 {
                guard case .failed(let finding) = explore(program, Options(seed: seed, schedules: 20_000)) else {
                    continue
                }
                for bystander in Bystander.allCases where bystander != .connection || !program.hasNetwork {
                    let fault = Exploration(limits: program.limits).replay(finding.token) { simulation in
                        try bystander.join(simulation)
                        try program.run(simulation, false)
                    }
                    all += 1
                    // The sentence of a deadlock names the times of all waits.
                    if fault == finding.fault || fault?.kind == .deadlock && finding.fault.kind == .deadlock {
                        kept += 1
                    } else {
                        print(
                            "\(padded(program.name))with a \(bystander): \(fault.map { "\($0)" } ?? "passed"); \(finding.token)"
                        )
                    }
                }
            }
        }
        print("\(kept) of \(all) tokens fail as before")
    }

    /// Prints the faults found in mended programs, of which there should be none.
    private static func checkTwins(_ options: Options) {
        for program in options.parts.flatMap(\.programs) {
            let exploration = Exploration(schedules: options.schedules, seed: options.seed, limits: program.limits)
            let begin = ContinuousClock.now
            let result = exploration.run { try program.run($0, true) }
            let rate = Double(options.schedules) / ((ContinuousClock.now - begin) / .seconds(1))
            switch result {
            case .passed: print("\(padded(program.name))passed \(options.schedules) schedules, \(Int(rate)) a second")
            case .failed(let finding): print("\(padded(program.name))\(finding)")
            }
            fflush(nil)
        }
    }

    private static func printUsage() {
        print(
            "usage: Corpus list | check | run NAME | explore NAME | replay NAME TOKEN | debug NAME TOKEN | measure "
                + "| figures | twins | tokens "
                + "| campaign NAME [--in DIRECTORY] [--require MARK] | merge DIRECTORY … "
                + "[--seed N] [--schedules N] [--for SECONDS] [--part N] [--mended] [--chance]")
    }

    /// - Returns: the violated condition; `nil` if there is none.
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
