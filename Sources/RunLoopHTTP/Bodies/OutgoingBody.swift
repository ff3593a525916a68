#if Adapters
internal import HTTPTypes
internal import NIOCore
@_spi(Ports) internal import RunLoopKit

/// The handler of a channel with a message in each direction. On the loop's thread.
protocol BodyChannel: AnyObject {
    var isWritable: Bool { get }
    func send(_ bytes: ByteBuffer)
    func flush()
    /// Notes that the program has taken the part of its peer's body that had come.
    func inputWasTaken()
    /// Notes that the program asks for more of its peer's body than has come.
    func inputIsWanted()
}

/// A body that a task writes piece by piece, and that is as long as it was announced. On the loop's thread.
final class OutgoingBody {
    /// The program's part, which writes the body.
    typealias Source = nonisolated(nonsending) (HTTPBodyWriter) async throws -> Void

    /// The number of bytes that are lacking; `nil` if the length was not announced.
    private(set) var lacking: Int?
    private(set) var sent = 0
    var trailers: HTTPFields?
    private var channel: (any BodyChannel)?
    private var failure: (any Error)?
    private let wrongLength: () -> any Error
    private let remote: RunLoop.Remote
    /// Made for the first wait: most peers read fast enough.
    private var wait: NamedWait?

    /// - Parameter wrongLength: thrown if more is written than was announced, and made then.
    init(
        _ length: Int?, to channel: any BodyChannel, on loop: RunLoop,
        wrongLength: @autoclosure @escaping () -> any Error
    ) {
        (lacking, self.channel, self.wrongLength) = (length, channel, wrongLength)
        remote = loop.remote
    }

    func write(_ bytes: ByteBuffer) throws {
        guard let channel else { throw failure ?? CancellationError() }
        if let lacking {
            guard bytes.readableBytes <= lacking else { throw wrongLength() }
            self.lacking = lacking - bytes.readableBytes
        }
        sent += bytes.readableBytes
        if bytes.readableBytes > 0 { channel.send(bytes) }
    }

    nonisolated(nonsending) func writeAndWait(_ bytes: ByteBuffer) async throws {
        try write(bytes)
        channel?.flush()
        while let channel {
            if channel.isWritable { return }
            let wait = self.wait ?? NamedWait(remote, "waits until a peer has read a part of an HTTP message")
            self.wait = wait
            try await wait.admit(for: "the body of an HTTP message")
            try await wait.wait()
        }
        throw failure ?? CancellationError()
    }

    func drained() { wait?.end() }

    /// Ends the body, complete or not: nothing more can be written.
    func end(_ error: (any Error)?) {
        guard channel != nil else { return }
        (channel, failure) = (nil, error)
        wait?.end()
    }
}
#endif
