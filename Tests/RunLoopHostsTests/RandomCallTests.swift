import Glibc
import RunLoopHosts
import RunLoopSimulation
import TestSupport
import Testing

/// Random calls, which the program RandomCalls makes: once of the system's kernel, and once of a simulated host.
///
/// The variable RANDOM_CALLS says how many calls of each kind are made, RANDOM_KINDS which kinds, by commas, and
/// RANDOM_SEED is the first seed. With RANDOM_FIRST, the calls before that number are left out.
@Suite(
    "Random calls of a program", .timeLimit(.minutes(60)),
    .disabled(if: isSanitized, "a sanitizer has its own library first in the program"))
struct RandomCallTests {
    private static let kinds = ["sets", "timers", "streams", "futexes", "locks", "mappings"]
    private static let chosen =
        getenv("RANDOM_KINDS").map { String(cString: $0).split(separator: ",").map(String.init) } ?? kinds
    /// The calls of one program. Fewer of those for which a machine may be too busy.
    private static func callsOfRun(_ kind: String) -> Int { ["timers", "futexes"].contains(kind) ? 200 : 1_000 }

    private struct Calls {
        let kind: String
        let seed: Int
        var range: ClosedRange<Int>

        func arguments(step: Int, folder: String) -> [String] {
            [kind, "\(seed)", "\(range.lowerBound)", "\(range.upperBound)", "\(step)", folder]
        }

        /// The lines of the system's kernel. Steps are in microseconds.
        func runReally(step: Int) -> [Substring] {
            let folder = TemporaryDirectory()
            let program = pathOfProgram("RandomCalls")
            var arguments = ([program] + arguments(step: step, folder: folder.path)).map { strdup($0) } + [nil]
            defer { for argument in arguments { free(argument) } }
            var process: pid_t = 0
            guard posix_spawn(&process, program, nil, nil, &arguments, nil) == 0 else { return [] }
            var status: Int32 = 0
            while waitpid(process, &status, 0) < 0 && errno == EINTR {}
            return contents(of: folder["lines"]).split(separator: "\n")
        }

        /// The lines of a simulated host, and a last one if something else happened.
        func runOnHost() -> [Substring] {
            withSimulation(seed: UInt64(seed)) { simulation in
                let network = SimulatedNetwork(simulation)
                let host = network.addProgram(
                    "host", at: pathOfProgram("RandomCalls"), arguments: arguments(step: 1_000, folder: "/"),
                    mayFail: true)
                for _ in 0..<1_000 where host.ending == nil { simulation.advance(by: .seconds(1)) }
                var lines = String(decoding: host.disk.contents(of: "/lines") ?? [], as: UTF8.self)
                    .split(separator: "\n")
                let ending = host.ending.map { "\($0)" } ?? "runs"
                if ending != "exited(0)" { lines.append(ending[...]) }
                return lines + simulation.escapes.map { $0[...] }
            }
        }

        /// The first difference.
        ///
        /// A kernel of a busy machine may be late, so steps become longer until there is no difference.
        func difference() -> (call: Int, words: String)? {
            let host = runOnHost()
            var found: (Int, String)?
            for step in [2_000, 8_000, 32_000, 128_000, 128_000] {
                let system = runReally(step: step)
                let isEqual = { (index: Int) in
                    index < host.count && index < system.count && host[index] == system[index]
                }
                // An end before the last call is a difference as well.
                let most = max(host.count, system.count, range.count)
                guard let index = (0..<most).first(where: { !isEqual($0) }) else { return nil }
                let (one, other) = (index < system.count ? system[index] : "-", index < host.count ? host[index] : "-")
                found = (range.lowerBound + index, "the kernel says: \(one)\nthe host says:   \(other)")
            }
            return found
        }

        /// Leaves out calls that a difference does not need, from the first ones on.
        mutating func shrink(to last: Int) {
            range = range.lowerBound...min(last, range.upperBound)
            var part = range.count / 2
            while part > 0 {
                var shorter = self
                shorter.range = range.lowerBound + part...range.upperBound
                if part < range.count, let found = shorter.difference() {
                    range = shorter.range.lowerBound...min(found.call, range.upperBound)
                    part = min(part, range.count / 2)
                } else {
                    part /= 2
                }
            }
        }
    }

    @Test("are answered as the kernel answers them", arguments: chosen)
    func equal(kind: String) {
        let runs = max(1, amount(of: "RANDOM_CALLS", usually: 2_000) / Self.callsOfRun(kind))
        let first = getenv("RANDOM_SEED").flatMap { Int(String(cString: $0)) } ?? 1
        let start = amount(of: "RANDOM_FIRST", usually: 1)
        for seed in first..<first + runs {
            var calls = Calls(kind: kind, seed: seed, range: start...Self.callsOfRun(kind))
            guard let found = calls.difference() else { continue }
            calls.shrink(to: found.call)
            let words = calls.difference()?.words ?? found.words
            Issue.record("\(kind), seed \(seed), calls \(calls.range):\n\(words)")
            return
        }
    }
}
