@_spi(Ports) internal import RunLoopKit
public import RunLoopSimulation
@_spi(Ports) public import RunLoopUnix
public import Testing

/// A kind of stream that checks are made of.
///
/// `Sendable`. Each check makes its own streams, in a simulation of its own, so its waits take virtual time.
/// Streams on descriptors of the system are read and written as they are, on that time.
public struct StreamSubject: Sendable, CustomTestStringConvertible {
    /// The name of the stream in the names of tests.
    public let testDescription: String
    let movesLittle: Bool
    let make: @Sendable (Simulation) throws -> (any ByteStream, any ByteStream)

    /// Describes a kind of stream.
    ///
    /// - Parameters:
    ///   - name: the name of the stream in the names of tests.
    ///   - movesLittle: whether a pass moves only a few bytes of such a stream, so that checks write little.
    ///   - make: a closure that makes the two ends of a conversation for the simulation's loop. A stream on descriptors
    ///     takes that loop too: `simulation.loop.makeStream(reading: socket, writing: socket)`. The check opens and closes the ends.
    @_spi(Ports) public init(
        _ name: String, movesLittle: Bool = false,
        make: @escaping @Sendable (Simulation) throws -> (any ByteStream, any ByteStream)
    ) {
        (testDescription, self.movesLittle, self.make) = (name, movesLittle, make)
    }

    /// Calls `body` with the two ends, once bytes can pass through both.
    func run(_ body: (Simulation, StreamUser, StreamUser) throws -> Void) throws {
        try withSimulation { simulation in
            let (one, other) = try makeUsers(in: simulation)
            defer {
                one.close(.incomplete)
                other.close(.incomplete)
            }
            for user in [one, other] { try user.open(on: simulation.loop) }
            #expect(simulation.reaches { one.stream.isOpen && other.stream.isOpen }, "the ends open")
            try body(simulation, one, other)
        }
    }

    func makeUsers(in simulation: Simulation) throws -> (StreamUser, StreamUser) {
        let (one, other) = try make(simulation)
        return (StreamUser(one), StreamUser(other))
    }
}

extension Simulation {
    /// Lets time pass in steps, with passes in the default and the tracking mode, until a condition holds; returns
    /// `false` after a hundred seconds.
    func reaches(_ condition: () -> Bool) -> Bool {
        // A thousand short steps, and a thousand long ones.
        for step in 0..<2000 where !condition() {
            advance(by: step < 1000 ? .milliseconds(1) : .milliseconds(100))
            loop.run(in: .tracking, until: loop.now)
        }
        return condition()
    }
}
