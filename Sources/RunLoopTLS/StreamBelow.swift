internal import RunLoopUnix

/// The stream beneath TLS, and how much may be read from it for now.
final class StreamBelow {
    let stream: any ByteStream
    // Unchecked as in `Connection`.
    @exclusivity(unchecked) private(set) var allowance = 0

    init(_ stream: any ByteStream) {
        self.stream = stream
    }

    /// The stream has something to read.
    func isReadable() {
        allowance = 64 * 1024
    }

    /// Reads what is allowed. A read that did not fill its room has found all there is: the stream says when there is
    /// more.
    func read(into room: UnsafeMutableRawBufferPointer) -> StreamResult {
        guard allowance > 0 else { return .mustWait }
        let room = UnsafeMutableRawBufferPointer(rebasing: room.prefix(allowance))
        let result = stream.read(into: room)
        if case .done(let count) = result, count == room.count { allowance -= count } else { allowance = 0 }
        return result
    }
}
