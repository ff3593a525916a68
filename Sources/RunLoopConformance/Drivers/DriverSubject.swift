@_spi(Ports) public import RunLoopCore
public import Testing

/// A kind of driver that checks are made of.
///
/// `Sendable`. Each check makes its own driver, on the thread of its test.
public struct DriverSubject: Sendable, CustomTestStringConvertible {
    /// The name of the driver in the names of tests.
    public let testDescription: String
    let isVirtual: Bool
    private let make: @Sendable (_ body: Body) throws -> Void

    typealias Body = (any Driver, any World, _ setWallClock: () -> Bool) throws -> Void

    /// Describes a kind of driver.
    ///
    /// - Parameters:
    ///   - name: the name of the driver in the names of tests.
    ///   - isVirtual: whether its time moves only while every thread of its world waits.
    ///   - make: a closure that makes a driver for the calling thread, calls `body`, and returns when nothing keeps the
    ///     driver any more. `body` takes the driver, its world, which makes the seats of the checks' other threads, and a
    ///     closure that sets the driver's wall clock, be it to nearly the same time. That closure returns `false` if
    ///     setting the clock is not permitted, as it is not without privileges; the requirement is not checked then.
    @_spi(Ports) public init(
        _ name: String, isVirtual: Bool = false,
        make:
            @escaping @Sendable (
                _ body: (any Driver, any World, _ setWallClock: () -> Bool) throws -> Void
            ) throws -> Void
    ) {
        (testDescription, self.isVirtual, self.make) = (name, isVirtual, make)
    }

    func run(_ body: Body) throws {
        try make(body)
    }

    func run(_ body: (any Driver, any World) throws -> Void) throws {
        try make { driver, world, _ in try body(driver, world) }
    }

    func run(_ body: (any Driver) throws -> Void) throws {
        try make { driver, _, _ in try body(driver) }
    }
}
