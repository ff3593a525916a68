/// A message between two members, with the term of its sender.
struct Message: Hashable, Sendable {
    enum Body: Hashable, Sendable {
        // MARK: Requests

        /// A candidate asks for a vote. Its log ends with the given entry.
        case requestVote(lastIndex: Int, lastTerm: Int)
        /// A leader adds entries after the previous one, if that has the given term. The leader has committed up to
        /// `commit`.
        case append(previous: Int, previousTerm: Int, entries: [Entry], commit: Int, round: Int)

        // MARK: Answers

        case vote(isGranted: Bool)
        /// The log equals the leader's up to an index.
        case appended(upTo: Int, round: Int)
        /// The previous entry is missing. The log ends at `last`.
        case mismatch(last: Int, round: Int)
    }

    let term: Int
    let body: Body

    var isRequest: Bool {
        switch body {
        case .requestVote, .append: true
        case .vote, .appended, .mismatch: false
        }
    }
}

extension Message {
    var words: String {
        switch body {
        case .requestVote(let lastIndex, let lastTerm): "\(term) request-vote \(lastIndex) \(lastTerm)"
        case .append(let previous, let previousTerm, let entries, let commit, let round):
            "\(term) append \(previous) \(previousTerm) \(commit) \(round) \(entries.count)"
                + entries.map { " \($0.words)" }.joined()
        case .vote(let isGranted): "\(term) vote \(isGranted ? "yes" : "no")"
        case .appended(let index, let round): "\(term) appended \(index) \(round)"
        case .mismatch(let last, let round): "\(term) mismatch \(last) \(round)"
        }
    }

    init(_ line: String) throws(Words.Malformed) {
        var words = Words(line)
        term = try words.number()
        switch try words.next() {
        case "request-vote": body = .requestVote(lastIndex: try words.number(), lastTerm: try words.number())
        case "append":
            let (previous, previousTerm) = (try words.number(), try words.number())
            let (commit, round) = (try words.number(), try words.number())
            var entries: [Entry] = []
            for _ in 0..<(try words.number()) { entries.append(try Entry(&words)) }
            body = .append(
                previous: previous, previousTerm: previousTerm, entries: entries, commit: commit, round: round)
        case "vote": body = .vote(isGranted: try words.next() == "yes")
        case "appended": body = .appended(upTo: try words.number(), round: try words.number())
        case "mismatch": body = .mismatch(last: try words.number(), round: try words.number())
        default: throw Words.Malformed()
        }
        try words.end()
    }
}

extension Entry {
    var words: String { "\(term) \(command.words)" }

    init(_ words: inout Words) throws(Words.Malformed) {
        self.init(term: try words.number(), command: try Command(&words))
    }
}
