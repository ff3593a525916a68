public import RunLoopKit

extension Connection {
    /// Moves the connection's stream to another loop, where `arrival` makes a connection that continues it.
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
    /// The stream moves with its state: unused input, waiting output, an end by the peer or by this side, and TLS, even
    /// during its handshake. No byte is lost, duplicated or reordered. Handlers, time-outs and calls of
    /// ``pauseReading()`` do not move. The other loop may be the same one.
    ///
    /// From this call on the connection reads nothing. It leaves in the loop's next pass, or in the pass after a
    /// running handler of this connection; bytes that are written before that move with it. Then it is closed: its
    /// close handler is called with ``CloseReason/moved``, before the arrival. Tasks that wait for it receive a
    /// ``ClosedError``, and ``withStream(_:)`` returns without an error. A connection may move before ``start()``.
    ///
    /// If the other loop has ended, or ends before the arrival, the stream is closed, its bytes are lost, and `arrival`
    /// is released without a call. If the connection is closed before it leaves, `arrival` is released without a call,
    /// too. Does nothing on a connection that is closed, that was finished, even by the peer's end, or that is already
    /// moving. On the loop's thread, O(1); no byte is copied.
    ///
    /// - Parameters:
    ///   - loop: the destination.
    ///   - modes: the modes of that loop in which it may arrive.
    ///   - arrival: called once, on the thread of that loop.
    public func move(
        to loop: RunLoop.Remote, inModes modes: RunLoop.Modes = .common,
        arrival: @escaping @Sendable (RunLoop, consuming Moved) -> Void
    ) {
        guard departure == nil else { return }
        update {
            guard machine.move() else { return }
            departure = { handedOver in
                let parcel = Parcel(Moved(content: handedOver))
                loop.perform(inModes: modes) { arrival($0, parcel.take()) }
            }
        }
    }

    /// A connection that continues a stream from another loop. Call ``start()`` when the handlers are set.
    ///
    /// Unused input from the other loop is offered first, and waiting output is sent first. If the peer had ended its
    /// side already, this connection is notified again, after it was offered the remaining input. The handshake handler
    /// is called if the handshake was not done yet.
    ///
    /// - Parameters:
    ///   - moved: the stream that has arrived.
    ///   - loop: the loop that serves it, on which it has arrived.
    ///   - modes: the modes in which it is served.
    ///   - limits: its limits; the previous limits unless given. Timeouts start anew.
    ///   - receive: called with the received bytes; returns how many bytes it has used. Kept until the connection is
    ///     closed. Without it, tasks read the connection; see ``read(atMost:)``.
    public convenience init(
        adopting moved: consuming Moved, on loop: RunLoop, modes: RunLoop.Modes = .common, limits: Limits? = nil,
        receive: ReceiveHandler? = nil, file: StaticString = #fileID, line: UInt32 = #line
    ) {
        var moved = moved
        let content = moved.content.take()!
        self.init(
            content.stream, on: loop, modes: modes, limits: limits ?? content.limits,
            origin: RunLoop.Origin(file: file, line: line), receive: receive)
        (input, output) = (content.input, content.output)
        machine.inputChanged(to: input?.count ?? 0)
        if content.hasPeerEnded { machine.peerEnded() }
        machine.outputChanged(to: pendingOutput)
        if content.hasFinishedWriting { machine.finishWriting() }
    }

    /// Passes the stream to another owner, with its unused input and unsent output.
    ///
    /// - Parameter reason: the reason for the close handler, which is not called unless this is given.
    func handOver(reporting reason: CloseReason? = nil) -> HandedOver {
        require(isOpen, "a connection that is closed has no stream to hand over")
        require(
            !machine.isReceiving, "a connection cannot be handed over in its receive handler: post a block to the loop")
        let handedOver = HandedOver(
            stream: stream, isStarted: !machine.isNew, limits: limits, input: input, output: output,
            hasPeerEnded: machine.hasReadEnd, hasFinishedWriting: machine.endsAfterOutput)
        if let reason { machine.close(reason) }
        machine.closed()
        machine.inputChanged(to: 0)
        input = nil
        letGo(reporting: reason)
        return handedOver
    }

    func depart() {
        guard isOpen, let departure else { return }
        // A handler runs the loop: the move waits until it has returned.
        guard machine.handlers == 0 else { return _ = machine.move() }
        if !machine.isNew { stream.leave() }
        departure(handOver(reporting: .moved))
    }

    /// A moved stream that has arrived; see ``move(to:inModes:arrival:)``. If no connection adopts it, it is closed. It
    /// belongs to the thread of its arrival and is not `Sendable`.
    public struct Moved: ~Copyable {
        fileprivate var content: HandedOver?

        deinit {
            content?.stream.close(.incomplete)
        }
    }
}

@available(*, unavailable, message: "a connection that has arrived belongs to the thread of its loop")
extension Connection.Moved: Sendable {}
