package import RunLoopKit

/// A stream that a connection reads and writes: a socket, a pipe or a terminal, TLS over another stream, or memory.
///
/// It never blocks. It belongs to one loop and its thread, and notifies its owner of readiness.
package protocol ByteStream: AnyObject {
    /// The object that receives the stream's events; kept until the stream is closed.
    var owner: (any StreamOwner)? { get set }

    /// Begins to notify the owner of readiness. Called once, and once more after each ``leave()``.
    func open(
        on loop: RunLoop, modes: RunLoop.Modes, origin: RunLoop.Origin, interest: DescriptorEvents
    ) throws(DescriptorError)

    /// The events that the owner waits for. It receives them in every pass in which the stream is ready for them.
    var interest: DescriptorEvents { get set }
    /// Whether bytes can pass through the stream; not before a handshake is done.
    var isOpen: Bool { get }
    /// Whether the stream holds received bytes for which it will report no readiness. They can be read now.
    var holdsInput: Bool { get }
    /// The failure that ended the stream, after a call that has failed.
    var failure: (any StreamFailure)? { get }
    /// The name of its sources in reports; `nil` unless set.
    var name: String? { get set }
    /// The descriptor to read; -1 for none.
    var fileDescriptor: Int32 { get }

    /// Reads received bytes into `room`.
    func read(into room: UnsafeMutableRawBufferPointer) -> StreamResult
    /// Sends as many bytes as the stream accepts. After `mustWait` the same bytes must be given again, with or without
    /// more behind them, at any address.
    func write(_ bytes: UnsafeRawBufferPointer) -> StreamResult
    /// Sends pieces of bytes, one behind the other, as many as the stream accepts in one call; it need not look at all of
    /// them. Everything else is as for one piece.
    func write(gathering pieces: UnsafeBufferPointer<UnsafeRawBufferPointer>) -> StreamResult
    /// Notifies the peer that nothing more will be written: `done(0)` once that is sent.
    func endWriting() -> StreamResult
    /// Whether closing now, when everything is written, loses no output.
    func mayClose(peerHasEnded: Bool) -> Bool
    /// The number of written bytes that the peer's system does not have yet, and that closing may lose.
    var unsentOutput: Int { get }
    /// Holds the time of a simulation for an answer to earlier output, if the answer comes from outside.
    func holdForAnswer() -> (any TimeHold)?
    /// Removes the stream from its loop unchanged, and releases the owner. The stream then belongs to no thread, and
    /// may be opened on another loop.
    func leave()
    /// Ends the stream and releases the owner.
    func close(_ ending: StreamEnding)
}

/// The way in which a stream is closed.
package enum StreamEnding {
    /// All output was written, and the peer may learn that.
    case complete
    /// Output is missing, or may be missing.
    case incomplete
    /// The peer sees a failure, if the kind of stream has one.
    case reset
}

extension ByteStream {
    package func holdForAnswer() -> (any TimeHold)? { nil }

    package func write(gathering pieces: UnsafeBufferPointer<UnsafeRawBufferPointer>) -> StreamResult {
        pieces.first { !$0.isEmpty }.map { write($0) } ?? .done(0)
    }

    /// Sends the pieces whose bytes `room` describes, and those that are left to describe.
    func write(
        _ pieces: ArraySlice<[UInt8]>, into room: UnsafeMutableBufferPointer<UnsafeRawBufferPointer>, described: Int
    ) -> StreamResult {
        // One closure in another, because the bytes of an array have an address only within one.
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
package enum StreamResult: Equatable {
    /// The number of bytes that were moved; above zero if any were requested.
    case done(Int)
    /// Nothing can be moved for now.
    case mustWait
    /// The peer has ended its side: nothing more can be read.
    case ended
    /// The stream has failed; ``ByteStream/failure`` has the reason.
    case failed
}

/// The failure of a stream: an error of the system, or of a layer above it such as TLS.
package typealias StreamFailure = Error & Hashable & Sendable

/// The owner of a stream, which reads and writes it.
package protocol StreamOwner: AnyObject {
    /// Called when bytes can pass through the stream. Only for a stream that was not open from the beginning.
    func streamOpened()
    /// Called when the stream is ready for an event that the owner waits for.
    func streamIsReady(for events: DescriptorEvents)
    /// Called when the stream has failed outside of a call.
    func streamFailed()
    /// Called when the loop of the stream has ended.
    func streamLostItsLoop()
}
