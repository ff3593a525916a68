@_spi(Ports) public import RunLoopCore
public import Testing

/// A kind of world that checks are made of.
///
/// `Sendable`. Each check makes its own world or enters one that there is, on the thread of its test.
public struct WorldSubject: Sendable, CustomTestStringConvertible {
    /// The name of the world in the names of tests.
    public let testDescription: String
    private let make: @Sendable (_ body: (RunLoop) throws -> Void) throws -> Void

    /// Describes a kind of world.
    ///
    /// - Parameters:
    ///   - name: the name of the world in the names of tests.
    ///   - make: a closure that calls `body` with a loop of the calling thread in the world, which nothing has been
    ///     added to. If runs of the world are repeated, it calls `body` again for the repetition.
    public init(
        _ name: String, make: @escaping @Sendable (_ body: (RunLoop) throws -> Void) throws -> Void
    ) {
        (testDescription, self.make) = (name, make)
    }

    func run(_ body: (RunLoop) throws -> Void) throws {
        try make(body)
    }

    func run(_ body: (any Driver, any World) throws -> Void) throws {
        try make { try body($0.driver, $0.world) }
    }
}
