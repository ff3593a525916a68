/// The words of a line, separated by spaces: the form of requests, of messages and of records in the journal.
struct Words {
    private var rest: ArraySlice<Substring>

    /// The error for a line that is not of the expected kind.
    struct Malformed: Error {}

    init(_ line: String) {
        rest = line.split(separator: " ", omittingEmptySubsequences: false)[...]
    }

    mutating func next() throws(Malformed) -> String {
        guard let word = rest.popFirst(), !word.isEmpty else { throw Malformed() }
        return String(word)
    }

    /// Takes a number that is not negative.
    mutating func number() throws(Malformed) -> Int {
        guard let number = Int(try next()), number >= 0 else { throw Malformed() }
        return number
    }

    var isAtEnd: Bool { rest.isEmpty }

    func end() throws(Malformed) {
        guard isAtEnd else { throw Malformed() }
    }
}
