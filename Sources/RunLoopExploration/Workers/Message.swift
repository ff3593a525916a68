/// A message between an exploration and the process that runs its schedules: one line of words between spaces.
enum Message {
    /// Try these schedules.
    case explore(Range<Int>, length: RunLength)
    /// Run this one.
    case replay(ScheduleToken, Recording)
    /// Run a variation of a schedule.
    case vary(Variation, length: RunLength)
    /// Run the schedule of this path.
    case follow(Path)
    /// All have passed.
    case passed(length: RunLength)
    /// A run: the first one that failed, with the number of its schedule, or the requested one.
    case run(Run, number: Int, length: RunLength)
    /// The run of a path, and the places behind it where a schedule may depart.
    case followed(Run, [Path.Branch])

    init?(_ line: some StringProtocol) {
        let words = line.split(separator: " ").map { Substring($0) }
        func number(_ index: Int) -> Int? { words.indices.contains(index) ? Int(words[index]) : nil }
        func runLength(_ index: Int) -> RunLength? {
            words.indices.contains(index) ? Self.text(words[index]).flatMap(RunLength.init) : nil
        }
        switch words.first {
        case "explore":
            guard let start = number(1), let end = number(2), start <= end, let length = runLength(3) else {
                return nil
            }
            self = .explore(start..<end, length: length)
        case "replay":
            guard words.count == 3, let recording = Recording(String(words[1])),
                let token = Self.text(words[2]).flatMap(ScheduleToken.init)
            else { return nil }
            self = .replay(token, recording)
        case "vary":
            guard words.count == 5, let token = Self.text(words[1]).flatMap(ScheduleToken.init), let steps = number(2),
                let attempt = number(3), let length = runLength(4)
            else { return nil }
            self = .vary(Variation(token: token, steps: steps, number: attempt), length: length)
        case "passed":
            guard let length = runLength(1) else { return nil }
            self = .passed(length: length)
        case "follow":
            guard words.count == 2, let path = Self.text(words[1]).flatMap(Path.init) else { return nil }
            self = .follow(path)
        case "run":
            guard words.count == 8, let schedule = number(1), let length = runLength(2), let run = Self.run(words[3...])
            else { return nil }
            self = .run(run, number: schedule, length: length)
        case "followed":
            guard words.count == 7, let text = Self.text(words[1]), let run = Self.run(words[2...]) else { return nil }
            let parts = text.split(separator: ";")
            let branches = parts.compactMap { Path.Branch(String($0)) }
            guard branches.count == parts.count else { return nil }
            self = .followed(run, branches)
        default: return nil
        }
    }

    var line: String {
        switch self {
        case .explore(let numbers, let length):
            "explore \(numbers.lowerBound) \(numbers.upperBound) \(Self.word("\(length)"))"
        case .replay(let token, let recording): "replay \(recording) \(Self.word("\(token)"))"
        case .vary(let variation, let length):
            "vary \(Self.word("\(variation.token)")) \(variation.steps) \(variation.number) \(Self.word("\(length)"))"
        case .passed(let length): "passed \(Self.word("\(length)"))"
        case .follow(let path): "follow \(Self.word("\(path)"))"
        case .run(let run, let number, let length): "run \(number) \(Self.word("\(length)")) \(Self.words(run))"
        case .followed(let run, let branches):
            "followed \(Self.word(branches.map { "\($0)" }.joined(separator: ";"))) \(Self.words(run))"
        }
    }

    private static func words(_ run: Run) -> String {
        "\(word("\(run.length)")) \(run.digest) \(word("\(run.token)")) \(run.fault?.kind.rawValue ?? "-") "
            + word(run.fault?.description ?? "")
    }

    /// - Parameter words: five words, as ``words(_:)`` gives them.
    private static func run(_ words: ArraySlice<Substring>) -> Run? {
        let start = words.startIndex
        guard let length = text(words[start]).flatMap(RunLength.init), let digest = UInt64(words[start + 1]),
            let token = text(words[start + 2]).flatMap(ScheduleToken.init), let sentence = text(words[start + 4])
        else { return nil }
        let fault = Fault.Kind(rawValue: String(words[start + 3])).map { Fault($0, sentence) }
        return Run(token: token, fault: fault, length: length, digest: digest)
    }

    /// A text as one word: with an underscore in front, so that it is never empty.
    private static func word(_ text: String) -> String { "_" + text.escaped { $0 <= 32 || $0 == UInt8(ascii: "%") } }

    private static func text(_ word: Substring) -> String? {
        word.first == "_" ? String(unescaping: word.dropFirst()) : nil
    }
}
