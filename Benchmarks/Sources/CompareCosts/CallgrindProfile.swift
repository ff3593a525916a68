/// The parts of a callgrind output file that matter here.
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
