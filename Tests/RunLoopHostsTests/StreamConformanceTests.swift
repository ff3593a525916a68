@_spi(Ports) import RunLoopConformance
import RunLoopKit
import RunLoopSimulation
import TLSTestSupport
import TestSupport
import Testing

@testable import RunLoopHosts
@testable import RunLoopTLS
@_spi(Ports) @testable import RunLoopUnix

/// A transport for a connection, in memory, of the system, or of a simulated network.
indirect enum Ground: Sendable, Equatable, CustomTestStringConvertible {
    case plain(StreamKind), link, poorLink, tls(Ground)

    static let all =
        StreamKind.allCases.map(Ground.plain)
        + [.link, .poorLink, .tls(.plain(.memory)), .tls(.plain(.sockets)), .tls(.poorLink)]

    var testDescription: String { "\(self)" }

    func makePair(in simulation: Simulation) throws -> (any ByteStream, any ByteStream) {
        let loop = simulation.loop
        switch self {
        case .plain(let kind): return kind.makePair(on: loop)
        case .link, .poorLink:
            let network = SimulatedNetwork(simulation)
            if self == .poorLink {
                var link = NetworkLink()
                (link.latency, link.jitter, link.lossRate) = (.milliseconds(2), .milliseconds(5), 0.01)
                link.bandwidth = 10_000_000
                network.setLink(link, between: network.test, and: network.test)
            }
            let (one, other) = network.makeSocketPair()
            return (loop.makeStream(reading: one, writing: one), loop.makeStream(reading: other, writing: other))
        case .tls(let ground): return try encrypt(ground.makePair(in: simulation))
        }
    }

    private func encrypt(_ pair: (any ByteStream, any ByteStream)) throws -> (any ByteStream, any ByteStream) {
        let contexts = try Contexts()
        return (
            TLSStream(try TLSSession(contexts.server), over: pair.0),
            TLSStream(try TLSSession(contexts.client, serverName: "localhost"), over: pair.1)
        )
    }
}

/// A connection behaves the same on every transport.
@Suite("Every kind of stream", .timeLimit(.minutes(15)))
struct StreamConformanceTests {
    private static let subjects = Ground.all.map { ground in
        StreamSubject(ground.testDescription, movesLittle: ground == .plain(.memoryOfOneByte)) {
            try ground.makePair(in: $0)
        }
    }

    @Test("meets the requirements", arguments: subjects, StreamCheck.all)
    func conforms(_ stream: StreamSubject, to requirement: StreamCheck) throws {
        try requirement.check(stream)
    }
}
