import ArgumentParser
import Foundation

struct Costs: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Counts the instructions, allocations, system calls and sleeps of operations; compares with a file.",
        discussion: """
            Counted under callgrind, where the machine's load changes nothing. There the clock is read with a system \
            call, so readings of the clock are among those.
            """)

    @Argument(help: "The file with the recorded counts.")
    var file: String

    @Flag(help: "Records what is counted now.")
    var record = false

    struct Count: Codable {
        var instructions: Double
        var allocations: Double
        var systemCalls: Double
        var sleeps: Double

        static var limits: [Limit] {
            [
                Limit(name: "instructions", value: \.instructions, share: 0.03, rest: 5),
                Limit(name: "allocations", value: \.allocations, share: 0, rest: 0.05),
                Limit(name: "system calls", value: \.systemCalls, share: 0, rest: 0.05),
                Limit(name: "sleeps", value: \.sleeps, share: 0, rest: 0.05),
            ]
        }
    }

    /// How much a count may grow: a share of it, and a rest for what is not the same in every run.
    struct Limit {
        var name: String
        var value: KeyPath<Count, Double>
        var share: Double
        var rest: Double

        /// Also by an operation that was not recorded.
        func isExceeded(by count: Count, before: Count?) -> Bool {
            guard let before else { return true }
            return count[keyPath: value] > before[keyPath: value] * (1 + share) + rest
        }
    }

    func run() throws {
        let scratch = FileManager.default.temporaryDirectory.appendingPathComponent("costs-\(getpid())")
        try FileManager.default.createDirectory(at: scratch, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: scratch) }
        // Debug information that valgrind cannot read would stop it.
        let program = scratch.appendingPathComponent("Costs").path
        _ = try require(["strip", "--strip-debug", "-o", program, programs.appendingPathComponent("Costs").path])
        let operations = try require([program]).split(separator: "\n").map(String.init)
        let file = URL(fileURLWithPath: file)
        let recorded = record ? [:] : try JSONDecoder().decode([String: Count].self, from: Data(contentsOf: file))

        print("| | " + Count.limits.map(\.name).joined(separator: " | ") + " | |")
        print("|---|" + String(repeating: "---:|", count: Count.limits.count) + "---|")
        var counts: [String: Count] = [:]
        var isWorse = false
        for operation in operations {
            let count = try self.count(operation, program, scratch)
            counts[operation] = count
            let before = record ? count : recorded[operation]
            let grown = Count.limits.filter { $0.isExceeded(by: count, before: before) }.map(\.name)
            isWorse = isWorse || !grown.isEmpty
            let cells = Count.limits.map { limit in
                let (now, old) = (count[keyPath: limit.value].plain, before?[keyPath: limit.value].plain)
                return old == now ? now : "\(old ?? "?") → \(now)"
            }
            let verdict = grown.isEmpty ? "" : "**more \(grown.joined(separator: ", "))**"
            print("| \(operation) | " + cells.joined(separator: " | ") + " | \(verdict) |")
        }
        if record {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
            try (encoder.encode(counts) + Data("\n".utf8)).write(to: file)
        } else if isWorse {
            print("\nWhat is marked costs more than recorded. If that is meant: make record-costs")
            throw ExitCode.failure
        }
    }

    private func require(_ command: [String]) throws -> String {
        let (output, status) = try capture(command)
        guard status == 0 else { throw ValidationError("\(command.joined(separator: " ")) failed with \(status)") }
        return output
    }

    /// Runs one operation under callgrind, which begins anew when `measured` is entered.
    private func count(_ operation: String, _ program: String, _ scratch: URL) throws -> Count {
        let profile = scratch.appendingPathComponent("profile").path
        let output = try require([
            "env", "SWIFT_DETERMINISTIC_HASHING=1", "valgrind", "--tool=callgrind", "--dump-before=*measured*",
            "--collect-systime=yes",
            "--callgrind-out-file=\(profile)", program, operation,
        ])
        let numbers = output.split(separator: "\n").last!.split(separator: " ").compactMap { Double($0) }
        guard numbers.count == 2, let text = try? String(contentsOfFile: profile, encoding: .utf8) else {
            throw ValidationError("\(operation) was not counted")
        }
        let profileCounts = CallgrindProfile(text)
        let operations = numbers[0]
        return Count(
            instructions: (Double(profileCounts.instructions) / operations).rounded(to: 1),
            allocations: (Double(profileCounts.allocations) / operations).rounded(to: 2),
            systemCalls: (Double(profileCounts.systemCalls) / operations).rounded(to: 2),
            sleeps: (numbers[1] / operations).rounded(to: 2))
    }
}

extension Double {
    func rounded(to digits: Int) -> Double {
        let factor = (0..<digits).reduce(1.0) { factor, _ in factor * 10 }
        return (self * factor).rounded() / factor
    }

    /// Without decimals that say nothing.
    var plain: String { self == rounded() ? String(Int(self)) : "\(self)" }
}
