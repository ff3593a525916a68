/// The differences between runs of a conversation over a real link and over a simulated one.
///
/// The results and errors of every run are the expected ones, in their order. Each time, and each number that chance
/// decides, is compared by its median over the runs, because chance and the other work of the machine make some runs late.
struct Comparison: CustomStringConvertible {
    private let conversation: Conversation
    private let real: [[Event]]
    private let simulated: [[Event]]
    private(set) var differences: [String] = []

    init(of conversation: Conversation, real: [[Event]], simulated: [[Event]]) {
        (self.conversation, self.real, self.simulated) = (conversation, real, simulated)
        compareTexts(of: real, "real")
        compareTexts(of: simulated, "simulated")
        if differences.isEmpty { compareNumbers() }
    }

    private mutating func compareTexts(of runs: [[Event]], _ kind: String) {
        for side in Side.Name.allCases {
            for (number, run) in runs.enumerated() {
                let texts = Self.events(of: side, in: run).map(\.text)
                guard texts != conversation.expected[side] else { continue }
                differences.append("\(kind) run \(number + 1), \(side): \(texts)")
            }
        }
    }

    private mutating func compareNumbers() {
        for (event, one, other) in events {
            let (here, there) = (Self.median(one.map(\.time)), Self.median(other.map(\.time)))
            if max(here - there, there - here) > conversation.tolerance.allowed(for: here) {
                differences.append("\(event): real \(Self.range(one)), simulated \(Self.range(other))")
            }
            guard one.allSatisfy({ $0.count != nil }) else { continue }
            let counts = (Self.median(one.map { $0.count! }), Self.median(other.map { $0.count! }))
            if abs(counts.0 - counts.1) > conversation.countTolerance {
                differences.append("\(event): real \(one.map { $0.count! }), simulated \(other.map { $0.count! })")
            }
        }
    }

    /// Each event by its name, with those of the real runs and those of the simulated ones.
    private var events: [(name: String, real: [Event], simulated: [Event])] {
        Side.Name.allCases.flatMap { side in
            conversation.expected[side]!.enumerated().map { index, text in
                func event(of run: [Event]) -> Event { Self.events(of: side, in: run)[index] }
                return ("\(side) \(text)", real.map(event), simulated.map(event))
            }
        }
    }

    private static func events(of side: Side.Name, in run: [Event]) -> [Event] { run.filter { $0.side == side } }

    private static func median<Value: Comparable>(_ values: [Value]) -> Value { values.sorted()[values.count / 2] }

    /// For example `0.210 s (0.205 to 0.231)`.
    private static func range(_ events: [Event]) -> String {
        let times = events.map(\.time)
        return "\(text(median(times))) s (\(text(times.min()!)) to \(text(times.max()!)))"
    }

    private static func text(_ time: Duration) -> String {
        let milliseconds = time / .milliseconds(1)
        let digits = "\(Int(milliseconds.rounded()) % 1_000 + 1_000)".dropFirst()
        return "\(Int(milliseconds.rounded()) / 1_000).\(digits)"
    }

    /// The conversation and its last event, and the differences, each on a line of its own.
    var description: String {
        var lines = ["\(differences.isEmpty ? "same  " : "OTHER ") \(conversation.name)"]
        if Set((real + simulated).map(\.count)).count == 1 {
            for (name, one, other) in events {
                let counts = one[0].count == nil ? "" : " \(one.map { $0.count! }), \(other.map { $0.count! })"
                lines.append("         \(name): real \(Self.range(one)), simulated \(Self.range(other))\(counts)")
            }
        }
        return (lines + differences.map { "    differs: \($0)" }).joined(separator: "\n")
    }
}
