/// A change that the members of a cluster agree on.
enum Command: Hashable, Sendable {
    /// The first entry of a leader, which commits the entries of earlier terms before it.
    case nothing
    case set(key: String, value: String)
}

extension Command {
    var words: String {
        switch self {
        case .nothing: "nothing"
        case .set(let key, let value): "set \(key) \(value)"
        }
    }

    init(_ words: inout Words) throws(Words.Malformed) {
        switch try words.next() {
        case "nothing": self = .nothing
        case "set": self = .set(key: try words.next(), value: try words.next())
        default: throw Words.Malformed()
        }
    }
}
