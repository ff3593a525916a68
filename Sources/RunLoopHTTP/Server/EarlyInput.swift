#if Adapters
internal import NIOCore
internal import NIOHTTP1

/// Input of an HTTP/1.1 connection that came while an earlier request was answered.
struct EarlyInput {
    enum Piece {
        case part(HTTPServerRequestPart)
        case error(HTTPParserError)
        case inputClosed
    }

    private var pieces = CircularBuffer<Piece>(initialCapacity: 0)
    private var isTaking = false

    var isEmpty: Bool { pieces.isEmpty }

    mutating func append(_ piece: Piece) { pieces.append(piece) }

    mutating func removeAll() { pieces.removeAll() }

    /// Notes that a caller takes the pieces, one after another, until ``endTaking()``.
    ///
    /// - Returns: `false` if another caller does so, within which a request was answered. Otherwise each request of a pipeline
    ///   would need its own part of the stack.
    mutating func beginTaking() -> Bool {
        guard !isTaking else { return false }
        isTaking = true
        return true
    }

    mutating func endTaking() { isTaking = false }

    mutating func next() -> Piece? { pieces.popFirst() }
}
#endif
