package import RunLoopKit

/// What a connection reads and writes: a socket, a pipe or a terminal, TLS over another stream, or something in memory.
///
/// It never blocks. It belongs to one loop and its thread, and tells its owner when there is something to do.
package protocol ByteStream: AnyObject {
    /// Who is told what happens; kept until the stream is closed.
    var owner: (any StreamOwner)? { get set }

    /// Begins to tell the owner what the stream is ready for. Called once, and once more after each ``leave()``.
    func open(
        on loop: RunLoop, modes: RunLoop.Modes, origin: RunLoop.Origin, interest: DescriptorEvents
    ) throws(DescriptorError)

    /// What the owner is waiting for: it is told in every pass in which that is possible.
    var interest: DescriptorEvents { get set }
    /// Whether bytes can go through it; not before a handshake is done.
    var isOpen: Bool { get }
    /// Whether bytes have come that no readiness will be reported for. They can be read now.
    var holdsInput: Bool { get }
    /// Why nothing goes on, after a call that has failed.
    var failure: (any StreamFailure)? { get }
    /// The descriptor that is read; -1 for none.
    var fileDescriptor: Int32 { get }

    /// Fills the room with what has come.
    func read(into room: UnsafeMutableRawBufferPointer) -> StreamResult
    /// Sends as much as there is room for. After `mustWait` the same bytes must be given again, with or without more
    /// behind them, at any address.
    func write(_ bytes: UnsafeRawBufferPointer) -> StreamResult
    /// Tells the peer that nothing more will be written: `done(0)` once it is told.
    func endWriting() -> StreamResult
    /// Whether closing now, when all is written, loses nothing of it.
    func mayClose(peerHasEnded: Bool) -> Bool
    /// The number of written bytes that the peer's system does not have yet, and that closing may lose.
    var unsentOutput: Int { get }
    /// Keeps the time of a simulation for an answer to what was written, if one is to come from outside.
    func holdForAnswer() -> (any TimeHold)?
    /// Takes the stream out of its loop as it is, and lets go of the owner. It belongs to no thread then, and may be opened
    /// on another loop.
    func leave()
    /// Ends the stream and lets go of the owner.
    func close(_ ending: StreamEnding)
}

/// How a stream is closed.
package enum StreamEnding {
    /// All output was written, and the peer may be told so.
    case complete
    /// Output is missing, or may be.
    case incomplete
    /// The peer is to see a failure, where the stream knows one.
    case reset
}

extension ByteStream {
    package func holdForAnswer() -> (any TimeHold)? { nil }
}

/// What was done to a stream.
package enum StreamResult: Equatable {
    /// So many bytes were moved; more than none, if any were asked for.
    case done(Int)
    /// Nothing for now.
    case mustWait
    /// The peer has ended its side: nothing more can be read.
    case ended
    /// Nothing ever goes on; the stream's ``ByteStream/failure`` says why.
    case failed
}

/// Why a stream fails: an error of the system, or of a layer above it such as TLS.
package typealias StreamFailure = Error & Hashable & Sendable

/// Who reads and writes a stream.
package protocol StreamOwner: AnyObject {
    /// Bytes can go through the stream from now on. Only for a stream that was not open from the beginning.
    func streamOpened()
    /// The stream is ready for something that the owner waits for.
    func streamIsReady(for events: DescriptorEvents)
    /// The stream has failed by itself.
    func streamFailed()
    /// The loop of the stream has ended.
    func streamLostItsLoop()
}
