@_spi(Ports) public import RunLoopKit

/// A received datagram. A value and `Sendable`.
public struct Datagram: Sendable {
    /// The datagram's bytes, at most ``DatagramSocket/Options/maximumSize``.
    public let bytes: [UInt8]
    /// The sender and the other metadata of the datagram.
    public let header: DatagramSocket.Header
    /// The sender; ``Endpoint/unnamed`` for an unnamed Unix socket.
    public var sender: Endpoint { header.sender }
}

// The interface for tasks. All calls are awaited on the loop's thread: in a task of the loop, in a task that prefers
// its executor, or on an actor of that executor.

extension DatagramSocket {
    /// Waits for the next datagram of a socket without a receive handler. While no task waits, datagrams stay in the
    /// system, which drops UDP datagrams when its buffer is full; the socket keeps a batch of at most 16. Await it on
    /// the loop's thread.
    ///
    /// - Returns: `nil` when the socket has been closed.
    /// - Throws: `CancellationError`, which takes no datagram; `RunLoop.WaitError` if another task waits, or if the
    ///   loop has ended. Errors of the socket go to its error handler.
    public nonisolated(nonsending) func receive() async throws -> Datagram? {
        if loop.hasGone("a datagram socket") { throw await loop.remote.endErrorAfterTurn() }
        guard let reception else {
            fatalError("a datagram socket with a receive handler is not awaited; make it without the handler")
        }
        while true {
            guard isOpen else {
                if hasLostLoop { throw await loop.remote.endErrorAfterTurn() }
                return nil
            }
            if let datagram = takeDatagram() { return datagram }
            try await reception.admit(for: "datagrams")
            setAwaited(true)
            defer { setAwaited(false) }
            try await reception.wait()
        }
    }

    /// Returns a sequence of the datagrams of a socket without a receive handler, as ``receive()`` returns them.
    /// Iterate on the loop's thread.
    ///
    /// ```swift
    /// for try await datagram in socket.datagrams() {
    ///     try await socket.send(datagram.bytes, to: datagram.sender, from: datagram.header.localAddress)
    /// }
    /// ```
    ///
    /// The iteration ends when the socket is closed.
    public func datagrams() -> Datagrams { Datagrams { [self] in try await receive() } }

    /// A sequence of a socket's datagrams; see ``DatagramSocket/datagrams()``.
    public typealias Datagrams = RunLoop.TaskSequence<Datagram>

    /// Sends a datagram after all waiting ones, and returns when the system has accepted it. Await it on the loop's
    /// thread.
    ///
    /// - Parameters:
    ///   - bytes: the bytes, which may be empty.
    ///   - peer: the receiver; by default the connected peer.
    ///   - source: the local address that the datagram leaves from; by default the socket's own address, or else an
    ///     address that the system chooses.
    ///   - typeOfService: the class and the congestion mark, encoded as in ``Header/typeOfService``.
    /// - Throws: ``SystemError`` if the system does not send the datagram, for example with `EMSGSIZE`, and with
    ///   `EBADF` on a closed socket; `CancellationError`, which sends nothing; `RunLoop.WaitError` if the loop has
    ///   ended.
    public nonisolated(nonsending) func send(
        _ bytes: [UInt8], to peer: Endpoint? = nil, from source: Endpoint? = nil, typeOfService: UInt8? = nil
    ) async throws {
        if loop.hasGone("a datagram socket") { throw await loop.remote.endErrorAfterTurn() }
        let route = DatagramRoute(to: peer, from: source, typeOfService: typeOfService)
        while true {
            if hasLostLoop { throw await loop.remote.endErrorAfterTurn() }
            if try sendNow(bytes, on: route) { return }
            let sender = NamedWait(loop.remote, "sends a datagram")
            senders.append(sender)
            defer { senders.removeAll { $0 === sender } }
            try await sender.wait()
        }
    }

    /// Sends a text as UTF-8; see the variant for bytes.
    public nonisolated(nonsending) func send(
        _ text: String, to peer: Endpoint? = nil, from source: Endpoint? = nil, typeOfService: UInt8? = nil
    ) async throws {
        try await send(Array(text.utf8), to: peer, from: source, typeOfService: typeOfService)
    }
}
