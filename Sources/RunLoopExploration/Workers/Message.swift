/// A message between an exploration and the process that runs its schedules: one line of words between spaces.
enum Message {
    /// Try these schedules.
    case explore(Range<Int>, length: RunLength)
    /// Run this one.
    case replay(ScheduleToken, Recording)
    /// Run a variation of a schedule.
    case vary(Variation, length: RunLength)
    /// All have passed.
    case passed(length: RunLength)
    /// A run: the first one that failed, with the number of its schedule, or the requested one.
    case run(Run, number: Int, length: RunLength)

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
            guard words.count == 3, let recording = Recording(rawValue: String(words[1])),
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
        case "run":
            guard words.count == 8, let schedule = number(1), let length = runLength(2), let own = runLength(3),
                let digest = UInt64(words[4]), let token = Self.text(words[5]).flatMap(ScheduleToken.init),
                let sentence = Self.text(words[7])
            else { return nil }
            let fault = Fault.Kind(rawValue: String(words[6])).map { Fault($0, sentence) }
            self = .run(
                Run(token: token, fault: fault, length: own, digest: digest),
                number: schedule, length: length)
        default: return nil
        }
    }

    var line: String {
        switch self {
        case .explore(let numbers, let length):
            "explore \(numbers.lowerBound) \(numbers.upperBound) \(Self.word("\(length)"))"
        case .replay(let token, let recording): "replay \(recording.rawValue) \(Self.word("\(token)"))"
        case .vary(let variation, let length):
            "vary \(Self.word("\(variation.token)")) \(variation.steps) \(variation.number) \(Self.word("\(length)"))"
        case .passed(let length): "passed \(Self.word("\(length)"))"
        case .run(let run, let number, let length):
            "run \(number) \(Self.word("\(length)")) \(Self.word("\(run.length)")) \(run.digest) "
                + "\(Self.word("\(run.token)")) \(run.fault?.kind.rawValue ?? "-") "
                + Self.word(run.fault?.description ?? "")
        }
    }

    /// A text as one word: with an underscore in front, so that it is never empty.
    private static func word(_ text: String) -> String { "_" + text.escaped { $0 <= 32 || $0 == UInt8(ascii: "%") } }

    private static func text(_ word: Substring) -> String? {
        word.first == "_" ? String(unescaping: word.dropFirst()) : nil
    }
}
