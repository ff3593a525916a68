package import RunLoopKit

/// A layer between a connection and its socket, such as TLS: it turns the bytes of the one into those of the other.
///
/// It never blocks and calls nobody. It belongs to the connection's loop and thread. Each call returns what it has
/// done, or the negative number of an error: `-EAGAIN` if it has to wait. After any other error ``failure`` says why
/// nothing goes on.
package protocol Transport: AnyObject {
    /// How long the handshake may take.
    var handshakeTimeout: Duration { get }
    /// Goes on with the handshake; returns 0 when it is done.
    func handshake() -> Int
    /// Fills the room with what has arrived; returns 0 when the peer has ended its side.
    func read(into room: UnsafeMutableRawBufferPointer) -> Int
    /// Sends as much as the socket takes. After `-EAGAIN` the same bytes must be given again, at any address, with or
    /// without more behind them.
    func write(_ bytes: UnsafeRawBufferPointer) -> Int
    /// Tells the peer that this side has ended. Returns 0 once the peer is told or need not be: without a handshake,
    /// after a failure, or on a second call.
    func end() -> Int

    /// What the socket must be ready for before the handshake or the reading can go on; reading may have to send
    /// something first.
    var readAwaits: DescriptorEvents { get }
    /// What the socket must be ready for before the writing can go on.
    var writeAwaits: DescriptorEvents { get }
    /// Whether bytes may have arrived that the socket no longer reports.
    var mayHoldInput: Bool { get }
    /// Why nothing goes on.
    var failure: Connection.CloseReason? { get }
}

extension Connection {
    /// Why a call that returned `status` has failed.
    func failure(_ operation: String, _ status: Int) -> CloseReason {
        transport?.failure ?? .failed(SystemError(operation, errno: Int32(-status)))
    }

    func beginHandshake(_ transport: any Transport) {
        isHandshaking = true
        isCorked = true
        timers?.limitHandshake(to: transport.handshakeTimeout)
        updateWatching()
    }

    /// The descriptor is ready for something: whatever has waited for that goes on.
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
        // What arrived together with the end of the handshake is in the transport already.
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

    /// Whether the descriptor is to be watched for `events`. While a handler looks at what has arrived, a nested run
    /// must leave it alone.
    func watches(_ transport: any Transport, for events: DescriptorEvents) -> Bool {
        let reads = isHandshaking || (wantsInput && !isReceiving)
        let writes = !isHandshaking && wantsRoom
        return (reads && transport.readAwaits == events) || (writes && transport.writeAwaits == events)
    }

    /// Has the next pass read what the transport holds, because the descriptor does not report it.
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
