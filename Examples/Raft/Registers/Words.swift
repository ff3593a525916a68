/// The words of a line, with spaces between them: the form of requests, of messages and of records in the journal.
struct Words {
    private var rest: ArraySlice<Substring>

    /// The line is not one of the kind that was expected.
    struct Malformed: Error {}

    init(_ line: String) {
        rest = line.split(separator: " ", omittingEmptySubsequences: false)[...]
    }

    mutating func next() throws(Malformed) -> String {
        guard let word = rest.popFirst(), !word.isEmpty else { throw Malformed() }
        return String(word)
    }

    /// A number that is not negative.
    mutating func number() throws(Malformed) -> Int {
        guard let number = Int(try next()), number >= 0 else { throw Malformed() }
        return number
    }

    var isAtEnd: Bool { rest.isEmpty }

    func end() throws(Malformed) {
        guard isAtEnd else { throw Malformed() }
    }
}
