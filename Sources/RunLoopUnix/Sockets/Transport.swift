package import RunLoopKit

/// What lies between a connection and its socket, as TLS does: it turns the bytes of the one into those of the other.
///
/// It never blocks and calls nobody; it belongs to the connection's loop and thread. The calls return what they have
/// done, or the negative number of an error: `-EAGAIN` when they have to wait, and after any other one ``failure`` says
/// why nothing goes on.
package protocol Transport: AnyObject {
    /// How long the handshake may take.
    var handshakeTimeout: Duration { get }
    /// Goes on with the handshake; 0 when it is done.
    func handshake() -> Int
    /// Fills the room with what has come; 0 when the peer has ended its side.
    func read(into room: UnsafeMutableRawBufferPointer) -> Int
    /// Sends as much as the socket takes. After `-EAGAIN` the same bytes are to be given again, at whatever place, with
    /// or without more behind them.
    func write(_ bytes: UnsafeRawBufferPointer) -> Int
    /// Tells the peer that this side has ended; 0 when it has been told, or there is nothing to tell: without a
    /// handshake, after a failure, or once more.
    func end() -> Int

    /// What the socket has to be for the handshake or the reading to go on; reading may have to send something first.
    var readAwaits: DescriptorEvents { get }
    /// What the socket has to be for the writing to go on.
    var writeAwaits: DescriptorEvents { get }
    /// Whether bytes may have come that the socket does not tell of any more.
    var mayHoldInput: Bool { get }
    /// Why nothing goes on.
    var failure: Connection.CloseReason? { get }
}

extension Connection {
    /// What a call that has returned `status` has failed for.
    func failure(_ operation: String, _ status: Int) -> CloseReason {
        transport?.failure ?? .failed(SystemError(operation, errno: Int32(-status)))
    }

    func beginHandshake(_ transport: any Transport) {
        isHandshaking = true
        isCorked = true
        timers?.limitHandshake(to: transport.handshakeTimeout)
        updateWatching()
    }

    /// The descriptor is ready for something: whatever has waited for this goes on.
    func serve(_ transport: any Transport, _ ready: DescriptorEvents) {
        if isHandshaking {
            continueHandshake(transport)
        } else {
            let hasRead = heldInput != nil || lastPassOfHeldInput == loop.statistics.passes
            if transport.readAwaits == ready, !hasRead { readThrough() }
            if wantsRoom, transport.writeAwaits == ready { flush() }
        }
        updateWatching()
    }

    private func continueHandshake(_ transport: any Transport) {
        timers?.noteActivity()
        let status = transport.handshake()
        guard status == 0 else {
            if let failure = transport.failure { close(failure) }
            return
        }
        isHandshaking = false
        timers?.endHandshake()
        handshakeHandler?(self)
        isCorked = false
        flush()
        // What came along with the end of the handshake is in the transport already.
        readThrough()
    }

    private func readThrough() {
        guard wantsInput, !isReceiving else { return }
        isReceiving = true
        readSome()
        isReceiving = false
    }

    private func updateWatching() {
        guard isOpen else { return }
        updateReading()
        watchForWriting(if: wantsRoom)
    }

    /// Whether the descriptor is to be watched for `events`. While a handler is given what has come, a nested run has
    /// to leave it alone.
    func watches(_ transport: any Transport, for events: DescriptorEvents) -> Bool {
        let reads = isHandshaking || (wantsInput && !isReceiving)
        let writes = !isHandshaking && wantsRoom
        return (reads && transport.readAwaits == events) || (writes && transport.writeAwaits == events)
    }

    /// What the transport holds is read in the next pass: the descriptor does not tell of it.
    func scheduleReading(_ transport: any Transport) {
        guard transport.mayHoldInput, wantsInput, !isHandshaking, !isReceiving, heldInput == nil else { return }
        let source = CustomSource(origin: origin) { [unowned self] source in
            source.invalidate()
            heldInput = nil
            lastPassOfHeldInput = loop.statistics.passes
            readThrough()
            updateWatching()
        }
        source.name = "connection"
        heldInput = source
        loop.add(source, forMode: modes)
        source.signal()
    }
}
