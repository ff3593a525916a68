import ArgumentParser
import Foundation

struct Costs: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Counts instructions, allocations, system calls and sleeps of operations, and compares them with a file.",
        discussion: """
            Counted under callgrind, where the machine's load changes nothing. There the clock is read with a system call, so \
            readings of the clock are among those.
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

        /// The counts with their names, and how much each may grow: a share of it, and a rest for what is not counted
        /// exactly.
        static var limits: [(name: String, value: KeyPath<Count, Double>, share: Double, rest: Double)] {
            [
                ("instructions", \.instructions, 0.03, 5),
                ("allocations", \.allocations, 0, 0.05),
                ("system calls", \.systemCalls, 0, 0.05),
                ("sleeps", \.sleeps, 0, 0.05),
            ]
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
        let recorded = (try? Data(contentsOf: URL(fileURLWithPath: file)))
            .flatMap { try? JSONDecoder().decode([String: Count].self, from: $0) }

        print("| | " + Count.limits.map(\.name).joined(separator: " | ") + " | |")
        print("|---|" + String(repeating: "---:|", count: Count.limits.count) + "---|")
        var counts: [String: Count] = [:]
        var grown = 0
        for operation in operations {
            let count = try self.count(operation, program, scratch)
            counts[operation] = count
            let before = record ? nil : recorded?[operation]
            let excess = before.map { before in
                Count.limits.filter { limit in
                    count[keyPath: limit.value] > before[keyPath: limit.value] * (1 + limit.share) + limit.rest
                }
            }
            let cells = Count.limits.map { limit in
                let now = count[keyPath: limit.value].plain
                let old = before.map { $0[keyPath: limit.value].plain }
                return old == nil || old == now ? now : "\(old!) → \(now)"
            }
            let verdict = record ? "recorded" : excess.map { $0.isEmpty ? "" : "**more " + $0.map(\.name).joined(separator: ", ") + "**" }
            print("| \(operation) | " + cells.joined(separator: " | ") + " | \(verdict ?? "**not recorded**") |")
            if !record && excess?.isEmpty != true { grown += 1 }
        }
        if record {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
            try (encoder.encode(counts) + Data("\n".utf8)).write(to: URL(fileURLWithPath: file))
        } else if grown > 0 {
            print("\n\(grown) operation(s) cost more than recorded. If that is meant: make record-costs")
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
            "valgrind", "--tool=callgrind", "--dump-before=*measured*", "--collect-systime=yes",
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

/// What is of interest in a file that callgrind writes.
struct CallgrindProfile {
    private(set) var instructions = 0
    private(set) var systemCalls = 0
    private(set) var allocations = 0

    init(_ text: String) {
        let allocators: Set<Substring> = ["malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc"]
        var names: [Substring: Substring] = [:]
        var callee: Substring = ""
        for line in text.split(separator: "\n") {
            if line.hasPrefix("summary: ") {
                let totals = line.dropFirst(9).split(separator: " ").compactMap { Int($0) }
                instructions = totals.first ?? 0
                systemCalls = totals.dropFirst().first ?? 0
            } else if line.hasPrefix("fn=") || line.hasPrefix("cfn=") {
                // A name is written out where its number first occurs: "fn=(12) malloc", later "fn=(12)".
                let parts = line[line.index(after: line.firstIndex(of: "=")!)...].split(separator: " ", maxSplits: 1)
                if parts.count == 2 { names[parts[0]] = parts[1] }
                if line.hasPrefix("c") { callee = names[parts[0]] ?? "" }
            } else if line.hasPrefix("calls="), allocators.contains(callee) {
                allocations += Int(line.dropFirst(6).prefix { $0.isNumber }) ?? 0
            }
        }
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
