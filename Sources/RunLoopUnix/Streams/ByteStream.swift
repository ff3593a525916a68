@_spi(Ports) public import RunLoopKit

/// A stream that a connection reads and writes: a socket, a pipe, a terminal, TLS over another stream, or memory.
///
/// A stream never blocks. It belongs to one loop and its thread, and notifies its owner of readiness.
@_spi(Ports) public protocol ByteStream: AnyObject {
    /// The object that receives the stream's events; kept until the stream is closed.
    var owner: (any StreamOwner)? { get set }

    /// Starts notifying the owner of readiness. Called once, and again after each ``leave()``; the owner is set before.
    func open(
        on loop: RunLoop, inModes modes: RunLoop.Modes, origin: RunLoop.Origin, interest: DescriptorEvents
    ) throws(DescriptorError)

    /// The events that the owner waits for and receives in every pass in which the stream is ready for them.
    var interest: DescriptorEvents { get set }
    /// True if bytes can pass through the stream; `false` during a handshake.
    var isOpen: Bool { get }
    /// True if the stream holds received bytes that can be read now, but for which it will report no readiness.
    var holdsInput: Bool { get }
    /// The failure that ended the stream; set after a call has failed.
    var failure: (any StreamFailure)? { get }
    /// The name of the stream's sources in reports; by default `nil`.
    var name: String? { get set }
    /// The stream's descriptor; -1 for none.
    var fileDescriptor: Int32 { get }

    /// Reads received bytes into `room`.
    func read(into room: UnsafeMutableRawBufferPointer) -> StreamResult
    /// Sends as many bytes as the stream accepts. After `mustWait`, the next call must pass the same bytes again, at
    /// any address, with or without more after them. After `failed`, the stream waits for no writing any more, and
    /// may still be read.
    func write(_ bytes: UnsafeRawBufferPointer) -> StreamResult
    /// Sends consecutive pieces of bytes, as many as the stream accepts in one call; it may ignore some pieces.
    /// Otherwise behaves as for one piece.
    func write(gathering pieces: UnsafeBufferPointer<UnsafeRawBufferPointer>) -> StreamResult
    /// Notifies the peer that nothing more will be written, and returns `done(0)` once that is sent.
    func endWriting() -> StreamResult
    /// Returns whether closing now, after everything has been written, loses no output.
    func mayClose(peerHasEnded: Bool) -> Bool
    /// The number of written bytes that the peer's system does not yet have, and that closing may lose.
    var unsentOutput: Int { get }
    /// Holds the time of a simulation for an answer to earlier output if it comes from outside.
    func holdForAnswer() -> (any TimeHold)?
    /// Removes the stream from its loop unchanged, and releases the owner. The stream then belongs to no thread, and
    /// may be opened on another loop.
    func leave()
    /// Closes the stream and releases the owner.
    func close(_ ending: StreamEnding)
}

/// The way in which a stream is closed.
@_spi(Ports) public enum StreamEnding {
    /// All output has been written, and the peer may be notified of that.
    case complete
    /// Output is or may be missing.
    case incomplete
    /// The peer sees a failure if the stream can signal one.
    case reset
}

@_spi(Ports) extension ByteStream {
    public func holdForAnswer() -> (any TimeHold)? { nil }

    public func write(gathering pieces: UnsafeBufferPointer<UnsafeRawBufferPointer>) -> StreamResult {
        pieces.first { !$0.isEmpty }.map { write($0) } ?? .done(0)
    }

    /// Sends the pieces that `room` describes and the given further pieces.
    func write(
        _ pieces: ArraySlice<[UInt8]>, into room: UnsafeMutableBufferPointer<UnsafeRawBufferPointer>, described: Int
    ) -> StreamResult {
        // Closures nest, because the bytes of an array have an address only within a closure.
        guard let piece = pieces.first else {
            return write(gathering: UnsafeBufferPointer(rebasing: room.prefix(described)))
        }
        return piece.withUnsafeBytes { bytes in
            room.initializeElement(at: described, to: bytes)
            return write(pieces.dropFirst(), into: room, described: described + 1)
        }
    }
}

/// The result of a call on a stream.
@_spi(Ports) public enum StreamResult: Equatable {
    /// The number of bytes moved, which is above zero if any were requested.
    case done(Int)
    /// Nothing can be moved for now.
    case mustWait
    /// The peer has ended its output: nothing more can be read.
    case ended
    /// The stream has failed; ``ByteStream/failure`` has the reason.
    case failed
}

/// The failure of a stream: an error of the system, or of a layer such as TLS.
@_spi(Ports) public typealias StreamFailure = Error & Hashable & Sendable

/// The owner of a stream, which reads and writes it.
@_spi(Ports) public protocol StreamOwner: AnyObject {
    /// Called when bytes can pass through a stream that was not open from the beginning.
    func streamOpened()
    /// Called when the stream is ready for an event that the owner waits for.
    func streamIsReady(for events: DescriptorEvents)
    /// Called when the stream has failed outside a call.
    func streamFailed()
    /// Called when the loop of the stream has ended.
    func streamLostItsLoop()
}
