public import RunLoopKit

extension Connection {
    /// Moves what the connection is made of to another loop, where a connection that `arrival` makes goes on.
    ///
    /// ```swift
    /// connection.move(to: group.loops[1]) { loop, moved in
    ///     let connection = Connection(adopting: moved, on: loop) { connection, bytes in
    ///         connection.write(bytes)
    ///         return bytes.count
    ///     }
    ///     try? connection.start()
    /// }
    /// ```
    ///
    /// The stream moves as it is: with the bytes that were left unused, those that wait to be sent, an end that the peer
    /// or this side has made, and TLS, also in the middle of its handshake. No byte is lost, doubled or put out of order.
    /// Handlers, time-outs and calls of ``pauseReading()`` do not move. The other loop may be the same one.
    ///
    /// From this call on the connection reads nothing. It leaves in the loop's next pass, or in the one after the handler
    /// of this connection that is running; what is written before that moves along. Then it is closed: its close handler
    /// is called with ``CloseReason/moved``, before the arrival. Tasks that wait for it get a ``ClosedError``, and
    /// ``withStream(_:)`` returns without an error. A connection may move before ``start()``.
    ///
    /// If the other loop has ended, or ends before the arrival, the stream is closed, what it held is lost, and `arrival`
    /// is let go uncalled. The same happens to `arrival` if the connection is closed before it leaves. Does nothing on a
    /// connection that is closed, that was finished, also by the peer's end, or that moves already. On the loop's thread,
    /// O(1); no byte is copied.
    ///
    /// - Parameters:
    ///   - loop: where to move to.
    ///   - modes: the modes of that loop in which it may arrive.
    ///   - arrival: called once, on the thread of that loop.
    public func move(
        to loop: RunLoop.Remote, inModes modes: RunLoop.Modes = .common,
        arrival: @escaping @Sendable (RunLoop, consuming Moved) -> Void
    ) {
        leave { handedOver in
            let parcel = Parcel(Moved(handedOver))
            loop.perform(inModes: modes) { arrival($0, parcel.take()) }
        }
    }

    /// A connection that goes on where one on another loop has stopped. Call ``start()`` when the handlers are set.
    ///
    /// What was left unused there is offered first, and what waited to be sent is sent first. If the peer had ended its
    /// side already, this connection is told so again, after it was offered what is left. The handshake handler is called
    /// if the handshake was not done yet.
    ///
    /// - Parameters:
    ///   - moved: what has arrived.
    ///   - loop: the loop that serves it: the one where it has arrived.
    ///   - modes: the modes in which it is served.
    ///   - limits: its limits; those that it had unless given. Timeouts count anew.
    ///   - receive: called with what has arrived; returns how many bytes it has used. Kept until the connection is
    ///     closed. Without it, tasks read the connection; see ``read(atMost:)``.
    public convenience init(
        adopting moved: consuming Moved, on loop: RunLoop, modes: RunLoop.Modes = .common, limits: Limits? = nil,
        receive: ReceiveHandler? = nil, file: StaticString = #fileID, line: UInt32 = #line
    ) {
        var moved = moved
        let content = moved.take()
        self.init(
            content, on: loop, modes: modes, limits: limits ?? content.limits,
            origin: RunLoop.Origin(file: file, line: line), receive: receive)
    }

    /// Gives the stream to another owner, with what has not been used and what has not been sent.
    ///
    /// - Parameter reason: what the close handler is told; it is not called unless given.
    func handOver(reporting reason: CloseReason? = nil) -> HandedOver {
        require(isOpen, "a connection that is closed has no stream to hand over")
        require(
            !machine.isReceiving, "a connection cannot be handed over in its receive handler: post a block to the loop")
        let handedOver = HandedOver(
            stream: stream, isStarted: !machine.isNew, limits: limits, input: input, output: output,
            hasPeerEnded: machine.hasReadEnd, hasFinishedWriting: machine.hasFinishedWriting)
        if let reason { machine.close(reason) }
        machine.closed()
        machine.inputChanged(to: 0)
        input = nil
        letGo { handler in if let reason { handler?(self, reason) } }
        return handedOver
    }

    /// Has the connection leave its loop as soon as no handler of it is on the stack.
    ///
    /// - Parameter departure: called with what it leaves.
    func leave(_ departure: @escaping (HandedOver) -> Void) {
        guard self.departure == nil else { return }
        update { if machine.move() { self.departure = departure } }
    }

    func depart() {
        guard isOpen, let departure else { return }
        // A handler runs the loop: when it has returned.
        guard !machine.isCorked else { return _ = machine.move() }
        if !isNew { stream.leave() }
        departure(handOver(reporting: .moved))
    }

    /// What has arrived of a connection that moves; see ``move(to:inModes:arrival:)``. If no connection adopts it, its
    /// stream is closed. It belongs to the thread where it has arrived and is not `Sendable`.
    public struct Moved: ~Copyable {
        private var content: HandedOver?

        fileprivate init(_ content: HandedOver) {
            self.content = content
        }

        deinit {
            content?.stream.close(.incomplete)
        }

        fileprivate mutating func take() -> HandedOver {
            content.take()!
        }
    }
}

@available(*, unavailable, message: "what has arrived belongs to the thread of its loop")
extension Connection.Moved: Sendable {}
