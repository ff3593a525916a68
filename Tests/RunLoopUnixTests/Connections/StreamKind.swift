import Glibc
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopUnix

/// A transport for a connection.
enum StreamKind: CaseIterable, CustomTestStringConvertible {
    case memory, memoryOfOneByte, sockets, pipes

    var testDescription: String { "\(self)" }

    func makePair(on loop: RunLoop) -> (any ByteStream, any ByteStream) {
        switch self {
        case .memory: return MemoryStream.pair()
        case .memoryOfOneByte: return MemoryStream.pair(capacity: 1)
        case .sockets:
            let (one, other) = makeSockets()
            return (loop.makeStream(reading: one, writing: one), loop.makeStream(reading: other, writing: other))
        case .pipes:
            let (there, back) = (makePipe(), makePipe())
            return (
                loop.makeStream(reading: back.read, writing: there.write),
                loop.makeStream(reading: there.read, writing: back.write)
            )
        }
    }
}
