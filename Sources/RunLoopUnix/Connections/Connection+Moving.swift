@_spi(Ports) public import RunLoopKit

extension Connection {
    /// Moves the connection's stream to another loop, where `arrival` creates a connection that continues it.
    ///
    /// ```swift
    /// connection.move(to: group.loops[1]) { loop, moved in
    ///     let connection = Connection(adopting: moved, on: loop) { connection, bytes in
    ///         connection.write(bytes)
    ///         return bytes.count
    ///     }
    ///     do { try connection.start() } catch { log(error) }
    /// }
    /// ```
    ///
    /// The stream moves with its state: unused input, waiting output, an end by the peer or by this side, and TLS, even
    /// during its handshake. No byte is lost, duplicated or reordered. Handlers, timeouts and calls of
    /// ``pauseReading()`` do not move. The destination may be the connection's own loop.
    ///
    /// From this call on, the connection reads nothing. The stream leaves in the loop's next pass, or in the pass after
    /// a running handler of this connection, with all bytes written until then. The connection then closes, and its
    /// close handler is called with ``CloseReason/moved`` before the arrival. Tasks that wait for the connection
    /// receive a ``ClosedError``, and ``withStream(_:)`` returns without an error. A connection may move before
    /// ``start()``.
    ///
    /// If the other loop ends before the arrival, the stream is closed, its bytes are lost, and `arrival` is released
    /// without a call. If the connection closes before the stream leaves, `arrival` is also released without a call.
    /// Has no effect on a connection that is closed, finished, even by the peer's end, or already moving. Call it on
    /// the loop's thread. O(1); no byte is copied.
    ///
    /// - Parameters:
    ///   - loop: the destination.
    ///   - modes: the modes of that loop in which the stream may arrive.
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

    /// Creates a connection that continues a stream from another loop. Call ``start()`` after setting the handlers.
    ///
    /// Unused input from the other loop is offered first, and waiting output is sent first. If the peer had already
    /// ended its side, this connection is notified again after the remaining input. The handshake handler is called if
    /// the handshake was not complete.
    ///
    /// - Parameters:
    ///   - moved: the stream that has arrived.
    ///   - loop: the loop on which the stream has arrived, which serves it.
    ///   - modes: the modes in which the connection is served.
    ///   - limits: the limits of the connection; by default the previous limits. Timeouts start anew.
    ///   - receive: called with the received bytes; returns how many bytes it has used. Kept until the connection is
    ///     closed. Without a handler, tasks read the connection; see ``read(atMost:)``.
    public convenience init(
        adopting moved: consuming Moved, on loop: RunLoop, inModes modes: RunLoop.Modes = .common,
        limits: Limits? = nil,
        receive: ReceiveHandler? = nil, file: StaticString = #fileID, line: UInt32 = #line
    ) {
        var moved = moved
        let content = moved.content.take()!
        self.init(
            content.stream, on: loop, inModes: modes, limits: limits ?? content.limits,
            origin: RunLoop.Origin(file: file, line: line), receive: receive)
        (input, output) = (content.input, content.output)
        machine.inputChanged(to: input?.count ?? 0)
        if content.hasPeerEnded { machine.peerEnded() }
        machine.outputChanged(to: pendingOutput)
        if content.hasFinishedWriting { machine.finishWriting() }
    }

    /// Passes the stream to another owner, with its unused input and unsent output.
    ///
    /// - Parameter reason: the reason for the close handler; `nil`, the default, to not call it.
    func handOver(reporting reason: CloseReason? = nil) -> HandedOver {
        require(isOpen, "a connection that is closed has no stream to hand over")
        require(
            !machine.isReceiving, "a connection cannot be handed over in its receive handler: post a block to the loop")
        assert(machine.handlers == 0 || reason == nil, "a connection moves while a handler runs")
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
        // A handler is running the loop, and the move waits until it returns.
        guard machine.handlers == 0 else { return _ = machine.move() }
        if !machine.isNew { stream.leave() }
        departure(handOver(reporting: .moved))
    }

    /// A moved stream that has arrived; see ``move(to:inModes:arrival:)``. A stream that no connection adopts is
    /// closed. `Moved` belongs to the thread of its arrival and is not `Sendable`.
    public struct Moved: ~Copyable {
        fileprivate var content: HandedOver?

        deinit {
            content?.stream.close(.incomplete)
        }
    }
}

@available(*, unavailable, message: "a connection that has arrived belongs to the thread of its loop")
extension Connection.Moved: Sendable {}

/// A stream handed over by a connection, with its unused input, waiting output and limits.
struct HandedOver {
    let stream: any ByteStream
    let isStarted: Bool
    let limits: Connection.Limits
    /// The unused input.
    let input: ByteBuffer?
    /// The waiting output.
    let output: ByteBuffer?
    let hasPeerEnded: Bool
    let hasFinishedWriting: Bool
}
