internal import Glibc
@_spi(Ports) internal import RunLoopCore

/// An end of a pipe to or from a child process, which owns a non-blocking descriptor.
///
/// Reads and writes never wait. A `DescriptorSource` on ``fileDescriptor`` reports when to try again. ``close()`` or
/// the release of the last reference closes the end; invalidate its sources first.
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
/// Use a pipe end on one thread; it is not `Sendable`.
public final class PipeEnd {
    /// The result of a read.
    public enum Input: Hashable, Sendable {
        /// At least one byte.
        case bytes([UInt8])
        /// No bytes for now.
        case nothing
        /// The end of input: every process has closed the other side.
        case end
    }

    /// The descriptor, for sources; -1 once the end is closed. Do not close it yourself.
    public private(set) var fileDescriptor: Int32

    private let system: any SystemCalls

    /// Creates an end that closes the descriptor when it is released.
    @_spi(Ports) public init(owning descriptor: Int32, of system: any SystemCalls) {
        fileDescriptor = descriptor
        self.system = system
        system.prepare(descriptor)
    }

    deinit {
        close()
    }

    /// Closes the end. A child that reads from the pipe then sees the end of its input. Repeated calls have no effect.
    public func close() {
        guard fileDescriptor >= 0 else { return }
        system.close(fileDescriptor)
        fileDescriptor = -1
    }

    /// Returns the descriptor, which the caller then owns.
    func handOver() -> Int32 {
        defer { fileDescriptor = -1 }
        return fileDescriptor
    }

    /// Reads the available bytes, up to `limit`, without waiting. O(bytes).
    ///
    /// - Parameter limit: the maximum number of bytes to read; at least 1.
    /// - Throws: ``SystemError``, for example if the end is closed or is for writing.
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

    /// Writes as many bytes as the pipe accepts, without waiting or raising SIGPIPE. O(bytes).
    ///
    /// - Returns: the number of written bytes; 0 if there is no room for now.
    /// - Throws: ``SystemError``, with `EPIPE` if no reader is left.
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
