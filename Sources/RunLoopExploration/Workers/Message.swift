/// A message between an exploration and the process that runs its schedules: one line of words between spaces.
enum Message {
    /// Try schedules by their numbers.
    case explore(Range<Int>, length: RunLength)
    /// Run one schedule.
    case replay(ScheduleToken, Recording)
    /// Run a variation of a schedule.
    case vary(Variation, length: RunLength)
    /// Run the schedule of a path.
    case follow(Path)
    /// All schedules have passed.
    case passed(length: RunLength)
    /// The first run that failed, with the number of its schedule, or the requested run; for the run of a path, also
    /// the places after it where a schedule may depart.
    case run(Run, number: Int = 0, length: RunLength = RunLength(), branches: [Path.Branch] = [])

    init?(_ line: some StringProtocol) {
        var words = Words(line)
        guard let message = try? Message(&words), words.isEmpty else { return nil }
        self = message
    }

    private init(_ words: inout Words) throws(Words.Unreadable) {
        switch try words.next() as String {
        case "explore":
            let (start, end): (Int, Int) = try (words.next(), words.next())
            guard start <= end else { throw Words.Unreadable() }
            self = try .explore(start..<end, length: words.next())
        case "replay": self = try .replay(words.next(), words.next())
        case "vary":
            let variation = try Variation(token: words.next(), steps: words.next(), number: words.next())
            self = try .vary(variation, length: words.next())
        case "passed": self = try .passed(length: words.next())
        case "follow": self = try .follow(words.next())
        case "run":
            let (run, number, length): (Run, Int, RunLength) = try (Run(&words), words.next(), words.next())
            var branches: [Path.Branch] = []
            while !words.isEmpty { branches.append(try words.next()) }
            self = .run(run, number: number, length: length, branches: branches)
        default: throw Words.Unreadable()
        }
    }

    var line: String {
        let words: [any CustomStringConvertible] =
            switch self {
            case .explore(let numbers, let length): ["explore", numbers.lowerBound, numbers.upperBound, length]
            case .replay(let token, let recording): ["replay", token, recording]
            case .vary(let variation, let length): ["vary", variation.token, variation.steps, variation.number, length]
            case .passed(let length): ["passed", length]
            case .follow(let path): ["follow", path]
            case .run(let run, let number, let length, let branches):
                ["run", run.token, run.fault?.line ?? "", run.length, run.digest, number, length] + branches
            }
        return words.map { $0.description.escaped { $0 <= 32 || $0 == UInt8(ascii: "%") } }.joined(separator: " ")
    }
}

/// The words of a line, each a value as text. An empty text is a word, too.
private struct Words {
    struct Unreadable: Error {}

    private var rest: ArraySlice<Substring>

    init(_ line: some StringProtocol) {
        rest = line.split(separator: " ", omittingEmptySubsequences: false).map { Substring($0) }[...]
    }

    var isEmpty: Bool { rest.isEmpty }

    mutating func next<Value: LosslessStringConvertible>() throws(Unreadable) -> Value {
        guard let word = rest.popFirst(), let text = String(unescaping: word), let value = Value(text) else {
            throw Unreadable()
        }
        return value
    }
}

extension Run {
    fileprivate init(_ words: inout Words) throws(Words.Unreadable) {
        let (token, line): (ScheduleToken, Substring) = try (words.next(), words.next())
        let fault = Fault(line: line)
        guard fault != nil || line.isEmpty else { throw Words.Unreadable() }
        try self.init(token: token, fault: fault, length: words.next(), digest: words.next())
    }
}
