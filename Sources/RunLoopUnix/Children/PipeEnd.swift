internal import Glibc
internal import RunLoopCore

/// One end of a pipe to or from a child process. It owns a non-blocking descriptor and closes it.
///
/// Reads and writes never wait. A `DescriptorSource` on ``fileDescriptor`` reports when to try again. ``close()``
/// closes the end, and so does the release of its last reference. Invalidate your sources on it before.
///
/// ```swift
/// let output = child.standardOutput!
/// let source = DescriptorSource(fileDescriptor: output.fileDescriptor, events: .readable) { source, _ in
///     switch try? output.read() {
///     case .bytes(let bytes): …
///     case .nothing: break
///     case .end, nil: source.invalidate()
///     }
/// }
/// ```
///
/// Use it on one thread; it is not `Sendable`.
public final class PipeEnd {
    /// The result of a read.
    public enum Input: Hashable, Sendable {
        /// At least one byte.
        case bytes([UInt8])
        /// No bytes for now.
        case nothing
        /// The end: every process has closed the other side.
        case end
    }

    /// The descriptor, for sources; -1 once the end is closed. The object closes it, so you must not.
    public private(set) var fileDescriptor: Int32

    private let system: any SystemCalls

    package init(owning descriptor: Int32, of system: any SystemCalls) {
        fileDescriptor = descriptor
        self.system = system
        system.prepare(descriptor)
    }

    deinit {
        close()
    }

    /// Closes the end; harmless when repeated. A child that reads from the pipe then sees the end of its input.
    public func close() {
        guard fileDescriptor >= 0 else { return }
        system.close(fileDescriptor)
        fileDescriptor = -1
    }

    /// Gives up the descriptor, which the caller closes from now on.
    func handOver() -> Int32 {
        defer { fileDescriptor = -1 }
        return fileDescriptor
    }

    /// Reads the available bytes, at most `limit`. Never waits. O(bytes).
    ///
    /// - Parameter limit: the most bytes to read; at least 1.
    /// - Throws: ``SystemError`` if the system refuses, for example because the end is closed or is for writing.
    public func read(upTo limit: Int = 65_536) throws(SystemError) -> Input {
        require(limit > 0, "a read is for at least one byte")
        let (input, error) = withUnsafeTemporaryAllocation(byteCount: limit, alignment: 1) { buffer in
            var count = 0
            repeat { count = system.read(fileDescriptor, into: buffer) } while count < 0 && errno == EINTR
            if count > 0 { return (Input.bytes(Array(buffer[..<count])), Int32(0)) }
            return count == 0 ? (.end, 0) : (.nothing, errno)
        }
        guard error == 0 || error == EAGAIN else { throw SystemError("read from a pipe", errno: error) }
        return input
    }

    /// Writes as many bytes as the pipe accepts. Never waits, and raises no SIGPIPE. O(bytes).
    ///
    /// - Returns: how many bytes were written; 0 if there is no room for now.
    /// - Throws: ``SystemError``, with the `errno` `EPIPE` if no reader is left.
    @discardableResult
    public func write(_ bytes: some Collection<UInt8>) throws(SystemError) -> Int {
        guard !bytes.isEmpty else { return 0 }
        let written =
            bytes.withContiguousStorageIfAvailable { system.write(fileDescriptor, UnsafeRawBufferPointer($0)) }
            ?? Array(bytes).withUnsafeBytes { system.write(fileDescriptor, $0) }
        if written >= 0 { return written }
        if errno == EAGAIN { return 0 }
        throw .last("write to a pipe")
    }
}

@available(*, unavailable, message: "an end of a pipe belongs to one thread")
extension PipeEnd: Sendable {}
