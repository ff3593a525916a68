#if Adapters
public import NIOCore
@_spi(Ports) internal import RunLoopKit

/// A connection of WebSocket: messages in both directions.
///
/// For a task, it is a sequence of the peer's messages, which ends when the peer closes:
///
/// ```swift
/// case (.get, "/chat"):
///     return .webSocket { socket in
///         for try await message in socket { try await socket.send(message) }
///     }
/// ```
///
/// Otherwise it has handlers, as a `Connection` has:
///
/// ```swift
/// guard let socket = exchange.acceptWebSocket() else { return }
/// socket.receiveHandler = { socket, message in socket.write(message) }
/// ```
///
/// The peer is read only as fast as the program takes its messages. Pings are answered. A peer from which nothing has come for
/// a while, on a server ``HTTPServer/Limits/idleTime``, is asked for a sign of life, and the connection of one that gives none
/// in the same time again is closed. A WebSocket belongs to the thread of the connection's loop.
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

    /// The reason why a conversation has ended without the program's or the peer's close.
    enum Loss {
        /// The connection was cut.
        case cut
        /// The peer has given no sign of life.
        case silent
        /// The peer has broken a rule, and was told this status.
        case broken(UInt16)
        /// The peer has not read ``WebSocketTerms/unreadBytes``.
        case unread
        /// The peer has read nothing for ``WebSocketTerms/stallTime``.
        case stalled
    }

    /// The protocol within WebSocket on which both sides have agreed, such as `graphql-transport-ws`; `nil` if there is none.
    public let subprotocol: String?
    let terms: WebSocketTerms
    /// The handler of the channel; `nil` before the peer has been told, and after the end.
    private var handler: WebSocketHandler?
    /// The calls that were made before the peer has been told.
    private var early: [(WebSocketHandler) -> Void] = []
    private var messages = CircularBuffer<Message>()
    private var held = 0
    private var isOver = false
    private let inputWait: NamedWait
    private let outputWait: NamedWait

    /// The number of bytes of messages that wait for the program before the rest is left with the peer.
    private static let mostHeld = 128 * 1024

    init(_ terms: WebSocketTerms, _ subprotocol: String?) {
        (self.terms, self.subprotocol) = (terms, subprotocol)
        inputWait = NamedWait(terms.loop.remote, "waits for a message of a WebSocket")
        outputWait = NamedWait(terms.loop.remote, "waits until a peer has read a part of a WebSocket's messages")
    }

    // MARK: Messages of the peer

    /// Returns the socket itself.
    public func makeAsyncIterator() -> WebSocket { self }

    /// Waits for the next message; `nil` when the peer has closed, or, on a server, has gone. On the loop's thread.
    ///
    /// - Throws: of a client, ``HTTPClient/Failure`` if the connection was lost; `CancellationError`; `RunLoop.WaitError` if
    ///   another task waits.
    public func next(isolation: isolated (any Actor)? = #isolation) async throws -> Message? {
        while messages.isEmpty {
            guard !isOver else {
                if terms.isClient, let loss { throw terms.error(loss) }
                return nil
            }
            try await inputWait.admit(for: "the messages of a WebSocket")
            try await inputWait.wait()
        }
        return take()
    }

    private func take() -> Message {
        let message = messages.removeFirst()
        held -= message.cost
        handler?.inputWasTaken()
        return message
    }

    /// Called with each message of the peer. Without a handler, and while reading is paused, some 128 KiB of messages wait at
    /// most, and the rest stays with the peer. On the loop's thread.
    public var receiveHandler: ((WebSocket, Message) -> Void)? {
        didSet { if receiveHandler != nil { deliver() } }
    }

    private var pauses = 0
    private var isDelivering = false

    /// Leaves further messages with the peer. Each call needs one of ``resumeReading()``. On the loop's thread.
    public func pauseReading() { pauses += 1 }

    /// Ends a pause. On the loop's thread.
    public func resumeReading() {
        require(pauses > 0, "a WebSocket's reading is resumed more often than paused; pair each resume with a pause")
        pauses -= 1
        deliver()
    }

    /// Passes the messages that have come to the handler of the program.
    private func deliver() {
        guard !isDelivering else { return }
        isDelivering = true
        while pauses == 0, !messages.isEmpty, let receiveHandler { receiveHandler(self, take()) }
        isDelivering = false
        reportEnd()
    }

    /// The status with which the peer has closed, such as 1000 or 1001; `nil` before, and if it gave none.
    public private(set) var closeCode: UInt16?

    var isFull: Bool { held >= Self.mostHeld }

    func receive(_ message: Message) {
        guard !isOver else { return }
        messages.append(message)
        held += message.cost
        inputWait.end()
        deliver()
    }

    // MARK: Messages to the peer

    /// True if the peer reads fast enough. On the loop's thread.
    public var isWritable: Bool { handler?.isWritable ?? false }

    /// Called when the peer has read enough, so that more can be written. On the loop's thread.
    public var drainHandler: ((WebSocket) -> Void)?

    /// Sends a message, and waits while too much is unread by the peer. On the loop's thread.
    ///
    /// - Throws: if the connection has closed, on a server ``HTTPServer/ExchangeError/closed``, of a client
    ///   ``HTTPClient/Failure``; `CancellationError`.
    public nonisolated(nonsending) func send(_ message: Message) async throws {
        write(message)
        while !isOver || handler != nil {
            if handler?.isWritable == true { return }
            try await outputWait.admit(for: "the messages to a WebSocket")
            try await outputWait.wait()
        }
        throw terms.error(loss ?? .cut)
    }

    /// Sends a text as ``send(_:)-(WebSocket.Message)`` does.
    public nonisolated(nonsending) func send(_ text: String) async throws { try await send(.text(text)) }

    /// Sends a message without waiting, for example to many clients. The connection of a peer that has not read
    /// ``HTTPServer/Limits/unreadBytes``, or of a client ``HTTPClient/Options/unreadBytes``, of earlier ones is closed instead;
    /// ask ``isWritable`` to leave it out. After the end it has no effect. On the loop's thread.
    public func write(_ message: Message) { call { $0.write(message) } }

    private func call(_ body: @escaping (WebSocketHandler) -> Void) {
        if let handler { body(handler) } else if !isOver { early.append(body) }
    }

    func drained() {
        outputWait.end()
        drainHandler?(self)
    }

    // MARK: The end

    /// Closes the connection: the peer has a second to answer. Harmless when repeated. On the loop's thread.
    ///
    /// - Parameter code: the status; by default, 1000.
    public func close(_ code: UInt16 = 1000) { call { $0.close(code) } }

    /// True until the connection has closed. On the loop's thread.
    public var isOpen: Bool { !hasEnded }

    /// Called once, when the connection has closed and ``receiveHandler`` has received all messages. On the loop's thread.
    ///
    /// The error is `nil` if the program or the peer has closed with a status. Otherwise it is
    /// ``HTTPServer/ExchangeError/closed`` on a server, and ``HTTPClient/Failure`` of a client.
    /// Set it after ``receiveHandler``: a connection may have closed already.
    public var closeHandler: ((WebSocket, (any Error)?) -> Void)? {
        didSet { if closeHandler != nil { reportEnd() } }
    }

    private var hasEnded = false
    /// The reason for an end that is not the program's or the peer's close.
    private var loss: Loss?

    func begin(_ handler: WebSocketHandler) {
        self.handler = handler
        for body in early { body(handler) }
        early = []
        outputWait.end()
    }

    /// Ends the messages of the peer, which has closed with `code`, or was lost.
    func inputEnded(_ code: UInt16?, _ loss: Loss? = nil) {
        guard !isOver else { return }
        (isOver, closeCode, self.loss) = (true, code, loss)
        inputWait.end()
    }

    /// Called when the connection has closed, with the reason, if it is not the program's or the peer's close.
    var ended: (Loss?) -> Void = { _ in }

    /// Ends the socket, whose connection has closed.
    func end() {
        guard !hasEnded else { return }
        inputEnded(nil, .cut)
        (handler, hasEnded) = (nil, true)
        outputWait.end()
        let ended = ended
        self.ended = { _ in }
        ended(loss)
        reportEnd()
    }

    private func reportEnd() {
        guard hasEnded, !isDelivering, messages.isEmpty || receiveHandler == nil else { return }
        let closeHandler = closeHandler
        (receiveHandler, drainHandler, self.closeHandler) = (nil, nil, nil)
        closeHandler?(self, loss.map(terms.error))
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
