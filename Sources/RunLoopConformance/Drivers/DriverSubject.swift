@_spi(Ports) public import RunLoopCore
public import Testing

/// A kind of driver that checks are made of.
///
/// `Sendable`. Each check makes its own driver, on the thread of its test.
public struct DriverSubject: Sendable, CustomTestStringConvertible {
    /// The name of the driver in the names of tests.
    public let testDescription: String
    let isVirtual: Bool
    private let make: @Sendable (_ body: (any Driver, any World) throws -> Void) throws -> Void

    /// Describes a kind of driver.
    ///
    /// - Parameters:
    ///   - name: the name of the driver in the names of tests.
    ///   - isVirtual: whether its time moves only while every thread of its world waits.
    ///   - make: a closure that makes a driver for the calling thread, calls `body` with it and its world, and returns
    ///     when nothing keeps the driver any more. The world makes the seats of the checks' other threads.
    @_spi(Ports) public init(
        _ name: String, isVirtual: Bool = false,
        make: @escaping @Sendable (_ body: (any Driver, any World) throws -> Void) throws -> Void
    ) {
        (testDescription, self.isVirtual, self.make) = (name, isVirtual, make)
    }

    func run(_ body: (any Driver, any World) throws -> Void) throws {
        try make(body)
    }

    func run(_ body: (any Driver) throws -> Void) throws {
        try make { driver, _ in try body(driver) }
    }
}
