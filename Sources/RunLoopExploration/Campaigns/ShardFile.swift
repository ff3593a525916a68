internal import RunLoopSimulation

/// The results of a shard as a file: lines of a word and its values.
struct ShardFile {
    let name: String
    let seed: UInt64
    let shard: Campaign.Shard
    /// The time when the shard began, in seconds since 1970.
    let began: Int
    /// The number of the first schedule that the shard has not tried.
    var next = 0
    var schedules = 0
    var duration = Duration.zero
    var required: [String] = []
    var marks = Simulation.Marks()
    /// The number of times that each group of faults was found.
    var times: [FaultGroup: Int] = [:]

    init(_ name: String, seed: UInt64, _ shard: Campaign.Shard, began: Int) {
        (self.name, self.seed, self.shard, self.began) = (name, seed, shard, began)
    }

    var fileName: String { "shard-\(shard.index)-of-\(shard.count).txt" }

    private static let title = "RunLoopKit campaign 1"

    var text: String {
        var lines = [
            Self.title, "name \(Lines.escaped(name))", "seed \(seed)", "shard \(shard.index) \(shard.count)",
            "began \(began)", "next \(next)", "schedules \(schedules)",
            "milliseconds \(Int(duration / .milliseconds(1)))",
        ]
        lines += required.map { "required \(Lines.escaped($0))" }
        lines += marks.counts.sorted { $0.key < $1.key }.map { "mark \($0.value) \(Lines.escaped($0.key))" }
        lines += times.map { "finding \($0.value) \($0.key.kind.rawValue) \(Lines.escaped($0.key.words))" }.sorted()
        return lines.joined(separator: "\n") + "\n"
    }

    init?(_ text: String) {
        var lines = text.split(separator: "\n")[...]
        guard lines.popFirst() == Self.title[...] else { return nil }
        func value(_ word: String) -> Substring? {
            lines.popFirst().flatMap { $0.hasPrefix(word + " ") ? $0.dropFirst(word.count + 1) : nil }
        }
        guard let name = value("name").flatMap({ String(unescaping: $0) }),
            let seed = value("seed").flatMap({ UInt64($0) }),
            let shard = value("shard")?.split(separator: " ").map({ Int($0) }), shard.count == 2,
            let index = shard[0], let count = shard[1], (0..<count).contains(index),
            let began = value("began").flatMap({ Int($0) }), let next = value("next").flatMap({ Int($0) }),
            let schedules = value("schedules").flatMap({ Int($0) }),
            let milliseconds = value("milliseconds").flatMap({ Int($0) })
        else { return nil }
        self.init(name, seed: seed, Campaign.Shard(index: index, of: count), began: began)
        (self.next, self.schedules, duration) = (next, schedules, .milliseconds(milliseconds))
        var counts: [String: Int] = [:]
        for line in lines {
            if let (number, rest) = Lines.pair(line, after: "mark "), let number = Int(number) {
                counts[rest] = number
            } else if let (number, rest) = Lines.pair(line, after: "finding "), let number = Int(number),
                let space = rest.firstIndex(of: " "), let kind = Fault.Kind(rawValue: String(rest[..<space]))
            {
                times[FaultGroup(kind, String(rest[space...].dropFirst()))] = number
            } else if line.hasPrefix("required "), let mark = String(unescaping: line.dropFirst(9)) {
                required.append(mark)
            } else {
                return nil
            }
        }
        marks = Simulation.Marks(counts)
    }
}
