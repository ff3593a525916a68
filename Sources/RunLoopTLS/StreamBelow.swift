internal import RunLoopUnix

/// The stream beneath TLS, and the number of bytes that may be read from it for now.
final class StreamBelow {
    let stream: any ByteStream
    // Unchecked as in `Connection`.
    @exclusivity(unchecked) private(set) var allowance = 0

    init(_ stream: any ByteStream) {
        self.stream = stream
    }

    /// Called when the stream is readable.
    func isReadable() {
        allowance = 64 * 1024
    }

    /// Reads as many bytes as are allowed. A read that did not fill its room has emptied the stream, which reports
    /// further input.
    func read(into room: UnsafeMutableRawBufferPointer) -> StreamResult {
        guard allowance > 0 else { return .mustWait }
        let room = UnsafeMutableRawBufferPointer(rebasing: room.prefix(allowance))
        let result = stream.read(into: room)
        if case .done(let count) = result, count == room.count { allowance -= count } else { allowance = 0 }
        return result
    }
}
