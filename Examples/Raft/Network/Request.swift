/// A request of a client.
enum Request: Hashable, Sendable {
    case get(String)
    case set(String, String)

    init(_ line: String) throws(Words.Malformed) {
        var words = Words(line)
        switch try words.next() {
        case "get": self = .get(try words.short())
        case "set": self = .set(try words.short(), try words.short())
        default: throw Words.Malformed()
        }
        try words.end()
    }
}

/// The answer to a request.
enum Answer: Hashable, Sendable {
    case done
    case value(String?)
    /// The request is not performed, nor will it be. Another member leads, if any.
    case ask(Address?)
    case malformed

    var text: String {
        switch self {
        case .done: "ok"
        case .value(let value?): "value \(value)"
        case .value(nil): "none"
        case .ask(let leader?): "leader \(leader.host):\(leader.port)"
        case .ask(nil): "no leader"
        case .malformed: "error: requests are get KEY and set KEY VALUE"
        }
    }
}

extension Words {
    /// Takes a key or a value.
    fileprivate mutating func short() throws(Malformed) -> String {
        let word = try next()
        guard word.utf8.count <= Line.longestWord else { throw Malformed() }
        return word
    }
}
