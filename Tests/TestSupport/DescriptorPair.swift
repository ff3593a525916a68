import Glibc

/// Two connected non-blocking descriptors, closed when the pair is released unless they were closed before.
package final class DescriptorPair {
    /// The descriptor to read from.
    package private(set) var reader: Int32
    /// The descriptor to write to.
    package private(set) var writer: Int32

    package enum Kind {
        case pipe
        case socketPair
    }

    package init(_ kind: Kind = .pipe) {
        switch kind {
        case .pipe:
            var ends: [Int32] = [-1, -1]
            precondition(pipe(&ends) == 0, "no pipe (errno \(errno))")
            (reader, writer) = (ends[0], ends[1])
        case .socketPair:
            (reader, writer) = makeSockets()
        }
        for descriptor in [reader, writer] { _ = fcntl(descriptor, F_SETFL, O_NONBLOCK) }
    }

    deinit {
        closeReader()
        closeWriter()
    }

    package func write(_ count: Int = 1) {
        let bytes = [UInt8](repeating: 7, count: count)
        precondition(Glibc.write(writer, bytes, count) == count, "the buffer is full")
    }

    /// Reads one byte; returns 0 at the end of the stream, -1 if there is nothing.
    @discardableResult
    package func read() -> Int {
        var byte: UInt8 = 0
        return Glibc.read(reader, &byte, 1)
    }

    /// Writes until the buffer is full.
    package func fill() {
        let block = [UInt8](repeating: 7, count: 4096)
        while Glibc.write(writer, block, block.count) > 0 {}
    }

    /// Reads until there is nothing more.
    package func drain() {
        var block = [UInt8](repeating: 0, count: 4096)
        while Glibc.read(reader, &block, block.count) > 0 {}
    }

    package func closeReader() {
        if reader >= 0 { close(reader) }
        reader = -1
    }

    package func closeWriter() {
        if writer >= 0 { close(writer) }
        writer = -1
    }
}
