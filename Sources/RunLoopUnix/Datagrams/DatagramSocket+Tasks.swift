public import RunLoopKit

/// A received datagram. A value and `Sendable`.
public struct Datagram: Sendable {
    /// The datagram's bytes, at most ``DatagramSocket/Options/maximumSize``.
    public let bytes: [UInt8]
    /// The facts about it.
    public let header: DatagramSocket.Header
    /// The sender; ``Endpoint/unnamed`` for a Unix socket without a name.
    public var sender: Endpoint { header.sender }
}

// The interface for tasks. All calls are awaited on the loop's thread: in a task of the loop, in a task that prefers
// its executor, or on an actor that lives there.

extension DatagramSocket {
    /// Waits for the next datagram of a socket that was made without a receive handler. As long as no task waits,
    /// datagrams wait in the system, which drops those of UDP for which it has no room; a batch of at most 16 is kept.
    /// Await it on the loop's thread.
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

    /// The datagrams of a socket without a receive handler, one by one, as ``receive()`` returns them. Iterate on the
    /// loop's thread.
    ///
    /// ```swift
    /// for try await datagram in socket.datagrams() {
    ///     try await socket.send(datagram.bytes, to: datagram.sender, from: datagram.header.localAddress)
    /// }
    /// ```
    ///
    /// The iteration ends when the socket is closed.
    public func datagrams() -> Datagrams { Datagrams { [self] in try await receive() } }

    /// The datagrams of a socket; see ``DatagramSocket/datagrams()``.
    public typealias Datagrams = RunLoop.TaskSequence<Datagram>

    /// Sends a datagram, and returns when the system has accepted it: after all that wait already. On the loop's
    /// thread.
    ///
    /// - Parameters:
    ///   - bytes: its bytes; there may be none.
    ///   - peer: the receiver; by default the peer that the socket is connected to.
    ///   - source: the address of this machine that it leaves from; by default the socket's own address, or else an
    ///     address that the system chooses.
    ///   - typeOfService: its class and its mark for congestion, as ``Header/typeOfService`` has them.
    /// - Throws: ``SystemError`` if the system does not send it, for example with `EMSGSIZE`, and with `EBADF` on a
    ///   closed socket; `CancellationError`, which sends nothing; `RunLoop.WaitError` if the loop has ended.
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

    /// Sends a text as UTF-8; see the form for bytes.
    public nonisolated(nonsending) func send(
        _ text: String, to peer: Endpoint? = nil, from source: Endpoint? = nil, typeOfService: UInt8? = nil
    ) async throws {
        try await send(Array(text.utf8), to: peer, from: source, typeOfService: typeOfService)
    }
}
