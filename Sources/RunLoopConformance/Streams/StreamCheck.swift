public import Testing

/// A requirement that every stream below a connection meets.
///
/// A test with ``all`` as its arguments is the conformance suite of a stream; ``check(_:)`` records an issue in the
/// running test for whatever does not hold. `Sendable`.
public struct StreamCheck: Sendable, CustomTestStringConvertible {
    /// The requirement as a sentence, which names the test.
    public let testDescription: String
    private let body: @Sendable (StreamSubject) throws -> Void

    init(_ requirement: String, _ body: @escaping @Sendable (StreamSubject) throws -> Void) {
        (testDescription, self.body) = (requirement, body)
    }

    /// All requirements: of bytes, of readiness, of the ends of a stream, and of whole conversations of connections.
    public static let all = ofBytes + ofReadiness + ofEnds + ofConversations

    /// Checks whether a stream meets the requirement, on the calling thread. Returns within seconds, unless a call of
    /// the stream never returns: give the test a time limit.
    ///
    /// - Throws: the stream's own errors.
    public func check(_ subject: StreamSubject) throws {
        try body(subject)
    }
}
