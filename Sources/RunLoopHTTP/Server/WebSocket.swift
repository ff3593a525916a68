#if Adapters
public import NIOCore
@_spi(Ports) internal import RunLoopKit

/// A connection of WebSocket, on the server's side: messages in both directions.
///
/// ```swift
/// case (.get, "/chat"):
///     return .webSocket { socket in
///         for try await message in socket { try await socket.send(message) }
///     }
/// ```
///
/// The sequence has the client's messages, and ends when the client closes. The client is read only as fast as the program
/// takes its messages. The server answers pings, and closes a connection from which nothing has come for twice
/// ``HTTPServer/Limits/idleTime``. It belongs to the thread of the connection's loop.
public final class WebSocket: AsyncSequence, AsyncIteratorProtocol {
    /// A message. A value and `Sendable`.
    public enum Message: Sendable, Hashable {
        /// A text.
        case text(String)
        /// Bytes.
        case binary(ByteBuffer)
    }

    public typealias Element = Message

    /// The program's part of a conversation.
    typealias Service = nonisolated(nonsending) (WebSocket) async throws -> Void

    /// The handler of the channel; `nil` before the client has been told, and after the end.
    private var handler: WebSocketHandler?
    /// The calls that were made before the client has been told.
    private var early: [(WebSocketHandler) -> Void] = []
    private var messages = CircularBuffer<Message>()
    private var held = 0
    private var isOver = false
    private let inputWait: NamedWait
    private let outputWait: NamedWait

    /// The number of bytes of messages that wait for the program before the rest is left with the client.
    private static let mostHeld = 128 * 1024

    init(on loop: RunLoop) {
        inputWait = NamedWait(loop.remote, "waits for a message of a WebSocket")
        outputWait = NamedWait(loop.remote, "waits until a client has read a part of a WebSocket's messages")
    }

    // MARK: Messages of the client

    /// Returns the socket itself.
    public func makeAsyncIterator() -> WebSocket { self }

    /// Waits for the next message; `nil` when the client has closed, or has gone. On the loop's thread.
    ///
    /// - Throws: `CancellationError`; `RunLoop.WaitError` if another task waits.
    public func next(isolation: isolated (any Actor)? = #isolation) async throws -> Message? {
        while messages.isEmpty {
            if isOver { return nil }
            try await inputWait.admit(for: "the messages of a WebSocket")
            try await inputWait.wait()
        }
        let message = messages.removeFirst()
        held -= message.cost
        handler?.inputWasTaken()
        return message
    }

    /// The status with which the client has closed, such as 1000 or 1001; `nil` before, and if it gave none.
    public private(set) var closeCode: UInt16?

    var isFull: Bool { held >= Self.mostHeld }

    func receive(_ message: Message) {
        guard !isOver else { return }
        messages.append(message)
        held += message.cost
        inputWait.end()
    }

    // MARK: Messages to the client

    /// True if the client reads fast enough. On the loop's thread.
    public var isWritable: Bool { handler?.isWritable ?? false }

    /// Sends a message, and waits while too much is unread by the client. On the loop's thread.
    ///
    /// - Throws: ``HTTPServer/ExchangeError/closed`` if the connection has closed; `CancellationError`.
    public nonisolated(nonsending) func send(_ message: Message) async throws {
        write(message)
        while !isOver || handler != nil {
            if handler?.isWritable == true { return }
            try await outputWait.admit(for: "the messages to a WebSocket")
            try await outputWait.wait()
        }
        throw HTTPServer.ExchangeError.closed
    }

    /// Sends a text as ``send(_:)-(WebSocket.Message)`` does.
    public nonisolated(nonsending) func send(_ text: String) async throws { try await send(.text(text)) }

    /// Sends a message without waiting, for example to many clients. A client that has not read
    /// ``HTTPServer/Limits/unreadBytes`` of earlier ones is closed instead; ask ``isWritable`` to leave it out. After the end
    /// it has no effect. On the loop's thread.
    public func write(_ message: Message) { call { $0.write(message) } }

    private func call(_ body: @escaping (WebSocketHandler) -> Void) {
        if let handler { body(handler) } else if !isOver { early.append(body) }
    }

    func drained() { outputWait.end() }

    // MARK: The end

    /// Closes the connection: the client has a second to answer. Harmless when repeated. On the loop's thread.
    ///
    /// - Parameter code: the status; by default, 1000.
    public func close(_ code: UInt16 = 1000) { call { $0.close(code) } }

    func begin(_ handler: WebSocketHandler) {
        self.handler = handler
        for body in early { body(handler) }
        early = []
        outputWait.end()
    }

    /// Ends the messages of the client, which has closed with `code`.
    func inputEnded(_ code: UInt16?) {
        guard !isOver else { return }
        (isOver, closeCode) = (true, code)
        inputWait.end()
    }

    /// Called when the connection has closed.
    var ended: () -> Void = {}
    /// Called when the connection has closed, with the limit that the client has reached.
    var noted: (HTTPServer.Limit?) -> Void = { _ in }
    /// The limit that the client has reached.
    var limit: HTTPServer.Limit?

    /// Ends the socket, whose connection has closed.
    func end() {
        inputEnded(nil)
        handler = nil
        outputWait.end()
        let (ended, noted) = (ended, noted)
        (self.ended, self.noted) = ({}, { _ in })
        noted(limit)
        ended()
    }
}

extension WebSocket.Message {
    /// The bytes of the message in memory: an empty one takes some, too.
    fileprivate var cost: Int {
        switch self {
        case .text(let text): 64 + text.utf8.count
        case .binary(let bytes): 64 + bytes.readableBytes
        }
    }
}

@available(*, unavailable, message: "a WebSocket belongs to the thread of its loop")
extension WebSocket: Sendable {}
#endif
