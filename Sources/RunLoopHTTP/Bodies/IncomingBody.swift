#if Adapters
internal import HTTPTypes
internal import NIOCore
@_spi(Ports) internal import RunLoopKit

/// The part of a body that has come and that the program has not taken. On the loop's thread.
final class IncomingBody {
    let announcedLength: Int?
    private(set) var input = ByteBuffer()
    private(set) var received = 0
    private(set) var isComplete = false
    private(set) var trailers: HTTPFields?
    /// The reason why no more comes.
    private(set) var failure: (any Error)?
    /// The largest number of bytes that the body may have.
    var maximum: Int
    private let tooLong: () -> any Error
    /// True while a task waits for the next piece.
    private(set) var isAwaited = false
    private let remote: RunLoop.Remote
    /// Made for the first wait: most bodies have come, or are not read.
    private var wait: NamedWait?

    /// The channel; `nil` when it has another message.
    private var channel: (any BodyChannel)?

    /// The number of bytes that wait for the program before the rest is left with the peer.
    private static let mostHeld = 64 * 1024

    /// - Parameter tooLong: thrown for a body of more than `maximum` bytes, and made then.
    init(
        from channel: (any BodyChannel)?, on loop: RunLoop, announcedLength: Int?, maximum: Int,
        tooLong: @autoclosure @escaping () -> any Error
    ) {
        (self.channel, self.announcedLength) = (channel, announcedLength)
        (self.maximum, self.tooLong) = (maximum, tooLong)
        remote = loop.remote
    }

    /// True if no more should be read from the peer.
    var isFull: Bool { input.readableBytes >= Self.mostHeld }

    func receive(_ bytes: ByteBuffer) {
        assert(!isComplete, "a body goes on after its end")
        received += bytes.readableBytes
        var bytes = bytes
        if input.readableBytes == 0 { input = bytes } else { input.writeBuffer(&bytes) }
        wait?.end()
    }

    func receiveEnd(_ trailers: HTTPFields?) {
        (isComplete, self.trailers) = (true, trailers)
        wait?.end()
    }

    /// Ends the body early: the bytes that have come can be taken, and then the error is thrown.
    func fail(_ error: @autoclosure () -> any Error) {
        guard !isComplete, failure == nil else { return }
        failure = error()
        wait?.end()
    }

    /// Ends the calls to the channel, which has another message now.
    func forgetChannel() { channel = nil }

    /// Forgets the bytes that have come.
    func drop() { input = ByteBuffer() }

    /// Takes the bytes that have come; `nil` if there are none.
    func take() throws -> ByteBuffer? {
        guard max(received, announcedLength ?? 0) <= maximum else { throw tooLong() }
        guard input.readableBytes > 0 else {
            if !isComplete { channel?.inputIsWanted() }
            return nil
        }
        let piece = input
        input = ByteBuffer()
        channel?.inputWasTaken()
        return piece
    }

    /// Waits for the next piece; `nil` at the end.
    nonisolated(nonsending) func next() async throws -> ByteBuffer? {
        while true {
            if let piece = try take() { return piece }
            if isComplete { return nil }
            if let failure { throw failure }
            let wait = self.wait ?? NamedWait(remote, "waits for the body of an HTTP message")
            self.wait = wait
            try await wait.admit(for: "the body of an HTTP message")
            isAwaited = true
            defer { isAwaited = false }
            channel?.inputIsWanted()
            // The channel may have had something at once.
            if input.readableBytes == 0, !isComplete, failure == nil { try await wait.wait() }
        }
    }
}
#endif
