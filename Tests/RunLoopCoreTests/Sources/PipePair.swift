import Glibc
import Testing

/// Two connected descriptors, closed when this is let go.
final class PipePair {
    /// What is read from.
    private(set) var reader: Int32
    /// What is written to.
    private(set) var writer: Int32

    enum Kind {
        case pipe
        case socketPair
    }

    init(_ kind: Kind = .pipe) {
        var descriptors: [Int32] = [-1, -1]
        let status =
            kind == .pipe
            ? pipe(&descriptors)
            : socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &descriptors)
        precondition(status == 0, "no descriptors left: errno \(errno)")
        (reader, writer) = (descriptors[0], descriptors[1])
        for descriptor in descriptors { _ = fcntl(descriptor, F_SETFL, O_NONBLOCK) }
    }

    deinit {
        closeReader()
        closeWriter()
    }

    func write(_ bytes: Int = 1) {
        let sent = [UInt8](repeating: 7, count: bytes)
        #expect(Glibc.write(writer, sent, bytes) == bytes)
    }

    /// Reads one byte; 0 at the end of the stream, -1 if there is nothing.
    @discardableResult
    func read() -> Int {
        var byte: UInt8 = 0
        return Glibc.read(reader, &byte, 1)
    }

    /// Writes until the buffer is full.
    func fill() {
        let block = [UInt8](repeating: 7, count: 4096)
        while Glibc.write(writer, block, block.count) > 0 {}
    }

    /// Reads until there is nothing more.
    func drain() {
        var block = [UInt8](repeating: 0, count: 4096)
        while Glibc.read(reader, &block, block.count) > 0 {}
    }

    func closeReader() {
        if reader >= 0 { close(reader) }
        reader = -1
    }

    func closeWriter() {
        if writer >= 0 { close(writer) }
        writer = -1
    }
}
