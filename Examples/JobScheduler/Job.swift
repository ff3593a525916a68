/// A line of the job file: `every 10 within 5: command`, or `after 2 within 5: command`. Times are in seconds.
struct Job: Hashable {
    enum Dates: Hashable {
        case every(Duration)
        case after(Duration)
    }

    let dates: Dates
    /// How long it may run.
    let limit: Duration
    let command: String

    struct Unreadable: Error, CustomStringConvertible {
        let line: String
        var description: String { "not a job, such as `every 10 within 5: command`: \(line)" }
    }

    init(_ line: some StringProtocol) throws(Unreadable) {
        let parts = line.split(separator: ":", maxSplits: 1)
        let words = parts.first?.split(separator: " ") ?? []
        guard parts.count == 2, words.count == 4, words[2] == "within", let first = Job.seconds(words[1]),
            let limit = Job.seconds(words[3])
        else { throw Unreadable(line: String(line)) }
        switch words[0] {
        case "every": dates = .every(first)
        case "after": dates = .after(first)
        default: throw Unreadable(line: String(line))
        }
        self.limit = limit
        command = String(parts[1].drop(while: \.isWhitespace))
    }

    private static func seconds(_ word: some StringProtocol) -> Duration? {
        guard let number = Double(word), number > 0, number < 1e9 else { return nil }
        return .seconds(number)
    }

    /// The jobs of a file: a line each, but for empty ones and comments.
    static func all(in text: String) throws(Unreadable) -> Set<Job> {
        var jobs: Set<Job> = []
        for line in text.split(separator: "\n") where !line.allSatisfy(\.isWhitespace) && !line.hasPrefix("#") {
            jobs.insert(try Job(line))
        }
        return jobs
    }
}
