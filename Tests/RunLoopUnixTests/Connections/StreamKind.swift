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
            return (DescriptorStream(one, on: loop), DescriptorStream(other, on: loop))
        case .pipes:
            let (there, back) = (makePipe(), makePipe())
            return (
                DescriptorStream(input: back.read, output: there.write, on: loop),
                DescriptorStream(input: there.read, output: back.write, on: loop)
            )
        }
    }
}
