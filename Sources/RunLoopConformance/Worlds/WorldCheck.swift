public import Testing

/// A requirement that every world of run loops meets.
///
/// A test with ``all`` as its arguments is the conformance suite of a world; ``check(_:)`` records an issue in the
/// running test for whatever does not hold. The drivers of a world have requirements of their own, ``DriverCheck``.
/// `Sendable`.
public struct WorldCheck: Sendable, CustomTestStringConvertible {
    /// The requirement as a sentence, which names the test.
    public let testDescription: String
    private let body: @Sendable (WorldSubject) throws -> Void

    init(_ requirement: String, _ body: @escaping @Sendable (WorldSubject) throws -> Void) {
        (testDescription, self.body) = (requirement, body)
    }

    /// All requirements: of time, of threads and their seats, of latches, and of the values of a world.
    public static let all = ofTime + ofThreads + ofLatches + ofValues

    /// Checks whether a world meets the requirement, on the calling thread and on threads of the world that it starts.
    /// Returns within seconds, unless a wait never ends: give the test a time limit. Requirements of virtual time are
    /// not checked in another world.
    ///
    /// - Throws: the world's own errors.
    public func check(_ subject: WorldSubject) throws {
        try body(subject)
    }
}
