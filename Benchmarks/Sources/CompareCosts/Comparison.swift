import Commands
import Foundation

/// Counts every operation, prints a table, and compares it with the file or writes the file.
struct Comparison {
    let file: URL
    let isRecording: Bool

    /// - Returns: `true` if nothing costs more than recorded.
    func run() throws -> Bool {
        let scratch = FileManager.default.temporaryDirectory.appendingPathComponent("costs-\(getpid())")
        try FileManager.default.createDirectory(at: scratch, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: scratch) }
        // Debug information that valgrind cannot read would stop it.
        let program = scratch.appendingPathComponent("Costs").path
        _ = try output(["strip", "--strip-debug", "-o", program, programs.appendingPathComponent("Costs").path])
        let operations = try output([program]).split(separator: "\n").map(String.init)
        let record = isRecording ? nil : try JSONDecoder().decode(Record.self, from: Data(contentsOf: file))

        print("| | " + Count.limits.map(\.name).joined(separator: " | ") + " | |")
        print("|---|" + String(repeating: "---:|", count: Count.limits.count) + "---|")
        var counts: [String: Count] = [:]
        var isWorse = false
        for operation in operations {
            let count = try self.count(operation, program, scratch)
            counts[operation] = count
            let before = isRecording ? count : record?.counts[operation]
            let grown = Count.limits.filter { $0.isExceeded(by: count, before: before) }.map(\.name)
            isWorse = isWorse || !grown.isEmpty
            let cells = Count.limits.map { limit in
                let (now, old) = (count[keyPath: limit.value].plain, before?[keyPath: limit.value].plain)
                return old == now ? now : "\(old ?? "?") → \(now)"
            }
            let verdict = grown.isEmpty ? "" : "**more \(grown.joined(separator: ", "))**"
            print("| \(operation) | " + cells.joined(separator: " | ") + " | \(verdict) |")
        }

        let build = try self.build(scratch)
        isWorse = !build.compare(with: isRecording ? build : record?.build) || isWorse

        let origin = try self.origin()
        guard let record else {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
            try (encoder.encode(Record(origin: origin, counts: counts, build: build)) + Data("\n".utf8)).write(to: file)
            return true
        }
        let missing = record.counts.keys.filter { counts[$0] == nil }.sorted()
        for operation in missing { print("\nRecorded, and not counted any more: \(operation)") }
        if isWorse { print("\nWhat is marked costs more than recorded. If that is meant: make record-costs") }
        if record.origin != origin {
            print("\nRecorded with \(record.origin).\nCounted with \(origin): instructions may differ for that alone.")
        }
        return !isWorse && missing.isEmpty
    }

    func output(_ command: [String]) throws -> String {
        let (output, status) = try capture(command)
        guard status == 0 else {
            throw Failure(description: "\(command.joined(separator: " ")) failed with \(status)")
        }
        return output.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    private func origin() throws -> Origin {
        func firstLine(_ command: String...) throws -> String {
            String(try output(command).split(separator: "\n").first ?? "")
        }
        return Origin(
            architecture: try firstLine("uname", "-m"), compiler: try firstLine("swift", "--version"),
            libc: try firstLine("getconf", "GNU_LIBC_VERSION"),
            libevent: try firstLine("pkg-config", "--modversion", "libevent_core"),
            valgrind: try firstLine("valgrind", "--version"))
    }

    /// Runs one operation under callgrind, which restarts its counts when `measured` is entered.
    private func count(_ operation: String, _ program: String, _ scratch: URL) throws -> Count {
        let profile = scratch.appendingPathComponent("profile").path
        // Without glibc's variants for newer processors, which change how it copies memory and compares strings.
        let tunables = "glibc.cpu.hwcaps=-AVX,-AVX2,-AVX512F,-AVX512VL,-AVX512BW,-EVEX,-ERMS,-FSRM,-RTM"
        let output = try output([
            "env", "SWIFT_DETERMINISTIC_HASHING=1", "GLIBC_TUNABLES=\(tunables)", "valgrind", "--tool=callgrind",
            "--dump-before=*measured*", "--collect-systime=yes", "--callgrind-out-file=\(profile)", program, operation,
        ])
        let numbers = output.split(separator: "\n").last?.split(separator: " ").compactMap { Double($0) } ?? []
        guard numbers.count == 2, let text = try? String(contentsOfFile: profile, encoding: .utf8) else {
            throw Failure(description: "\(operation) was not counted")
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
