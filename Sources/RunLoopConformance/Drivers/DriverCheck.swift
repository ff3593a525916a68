public import Testing

/// A requirement that every driver of a run loop meets.
///
/// A test with ``all`` as its arguments is the conformance suite of a driver; ``check(_:)`` records an issue in the
/// running test for whatever does not hold. `Sendable`.
public struct DriverCheck: Sendable, CustomTestStringConvertible {
    /// The requirement as a sentence, which names the test.
    public let testDescription: String
    private let body: @Sendable (DriverSubject) throws -> Void

    init(_ requirement: String, _ body: @escaping @Sendable (DriverSubject) throws -> Void) {
        (testDescription, self.body) = (requirement, body)
    }

    /// All requirements: of clocks, of deadlines, of waking from other threads, and of descriptors.
    public static let all = ofClocks + ofDescriptors

    /// Checks whether a driver meets the requirement, on the calling thread and on threads that it starts. Returns
    /// within seconds, unless a wait of the driver never ends: give the test a time limit.
    ///
    /// - Throws: the driver's own errors.
    public func check(_ subject: DriverSubject) throws {
        try body(subject)
    }
}
