internal import Glibc
internal import RunLoopCore
internal import RunLoopSimulation
@_spi(Ports) internal import RunLoopUnix

/// A socket of a simulated process. Its calls return the same results as the system's, with the reason in `errno`.
final class SimulatedSocket: BoundSocket, SocketCalls {
    enum State {
        case new
        case listening(backlog: Int)
        case connecting
        case connected
        /// The socket could not be connected, or was reset.
        case failed
        case closed
    }

    var state = State.new
    var peerAddress = Endpoint()

    /// The established connections not yet accepted.
    var queue: [SimulatedSocket] = []
    /// The number of connections about to come.
    var handshakes = 0
    private var outgoing: Channel?
    private var incoming: Channel?
    /// The process that has made the socket, and that of the other end of the connection.
    var owner = Owner()
    private(set) var peerOwner = Owner()
    /// A process, with its user and group, as its peers learn of it.
    struct Owner {
        var process: Int32 = 0
        var user: UInt32 = 0
        var group: UInt32 = 0
    }
    /// `true` if the socket reads nothing more, or writes nothing more, because one of the two ends has ended that.
    private var isInputShut = false
    private var isOutputShut = false

    override init(_ family: Int32, in table: SocketTable) {
        super.init(family, in: table)
        peerAddress = localAddress
    }

    var isOpen: Bool { if case .closed = state { false } else { true } }
    var connectedAddress: Endpoint? { if case .connected = state { peerAddress } else { nil } }
    var isListening: Bool { if case .listening = state { true } else { false } }

    // MARK: Options

    override func setOption(_ level: Int32, _ option: Int32, _ value: Int32) -> Int32 {
        if level == Int32(IPPROTO_TCP), family == AF_UNIX { return failure(EOPNOTSUPP) }
        return super.setOption(level, option, value)
    }

    override func option(_ level: Int32, _ option: Int32) -> Int32? {
        switch (level, option) {
        case (SOL_SOCKET, SO_ACCEPTCONN): isListening ? 1 : 0
        case (SOL_SOCKET, SO_TYPE): Int32(SOCK_STREAM.rawValue)
        case (Int32(IPPROTO_TCP), _) where family == AF_UNIX: nil
        default: super.option(level, option)
        }
    }

    // MARK: Pairs

    /// Connects to a new socket at the listener's side.
    func join(_ listener: SimulatedSocket) -> SimulatedSocket {
        let new = SimulatedSocket(listener.family, in: listener.table)
        new.owner = listener.owner
        let other = connect(to: new)
        // Connections inherit the options of their listener.
        other.options = listener.options
        return other
    }

    /// Makes a socket that is connected to this one.
    func makePeer() -> SimulatedSocket {
        let other = SimulatedSocket(family, in: table)
        other.owner = owner
        return connect(to: other)
    }

    private func connect(to other: SimulatedSocket) -> SimulatedSocket {
        (other.localAddress, other.peerAddress) = (peerAddress, localAddress)
        let (there, back) = (Channel(network, from: self, to: other), Channel(network, from: other, to: self))
        (outgoing, incoming, other.incoming, other.outgoing) = (there, back, there, back)
        (state, other.state) = (.connected, .connected)
        (peerOwner, other.peerOwner) = (other.owner, owner)
        return other
    }

    // MARK: Bytes

    override func read(into room: UnsafeMutableRawBufferPointer) -> Int { read(into: room, keepsInput: false) }
    override func peek(into room: UnsafeMutableRawBufferPointer) -> Int { read(into: room, keepsInput: true) }

    private func read(into room: UnsafeMutableRawBufferPointer, keepsInput: Bool) -> Int {
        if let incoming, incoming.hasInput { return keepsInput ? incoming.peek(into: room) : incoming.read(into: room) }
        // An error that comes after the end of a stream of TCP is for the next write.
        if family != AF_UNIX, incoming?.hasEnded == true { return 0 }
        if let reason = takeError() { return failure(reason) }
        switch state {
        case .connected: return hasInputEnded ? 0 : failure(EAGAIN)
        case .failed: return 0
        case .new, .connecting, .listening, .closed: return failure(family == AF_UNIX ? EINVAL : ENOTCONN)
        }
    }

    override func write(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard !isOutputShut else { return failure(EPIPE) }
        if let reason = takeError() { return failure(reason) }
        switch state {
        case .connected:
            guard let outgoing, !outgoing.isEnding else { return failure(EPIPE) }
            guard !bytes.isEmpty else { return 0 }
            let count = outgoing.write(bytes)
            return count > 0 ? count : failure(EAGAIN)
        case .connecting: return failure(EAGAIN)
        case .failed: return failure(EPIPE)
        case .new, .listening, .closed: return failure(ENOTCONN)
        }
    }

    /// Sends the targets of descriptors with the bytes of the last write.
    func attach(_ targets: [OpenDescription], to count: Int) { outgoing?.attach(targets, to: count) }

    /// Calls a closure with the targets that came with the bytes of the last read.
    func takeReceived(_ body: ([OpenDescription]) -> Void) { incoming?.takeReceived(body) }

    func endWriting() {
        guard case .connected = state else { return }
        outgoing?.end()
        tell()
        // Also if the stream had ended before.
        if family == AF_UNIX { atFarEnd { $0.tell() } }
    }

    /// Ends reading after the bytes that have come. The other end of a Unix socket cannot write any more.
    func endReading() {
        guard case .connected = state else { return }
        isInputShut = true
        tell()
        if family == AF_UNIX { atFarEnd { $0.shutOutput(0) } }
    }

    /// Ends writing because the other end of a Unix socket has ended reading, with an error number or 0.
    private func shutOutput(_ reason: Int32) {
        guard case .connected = state else { return }
        isOutputShut = true
        if reason != 0 {
            error = reason
            network.simulation.meet(.connectionReset)
        }
        tell()
    }

    /// Does something with the other end when a packet arrives there.
    private func atFarEnd(_ action: @escaping (SimulatedSocket) -> Void) {
        guard let outgoing else { return }
        network.after(outgoing.path) { [weak other = outgoing.receiver] in other.map(action) }
    }

    var hasInput: Bool { incoming?.hasInput == true }
    override var inputCount: Int? { isListening ? nil : incoming?.inputCount ?? 0 }
    private var hasInputEnded: Bool { isInputShut || incoming?.hasEnded == true }
    private var hasOutputEnded: Bool { isOutputShut || outgoing?.isEnding == true }

    /// The number of written bytes that have not arrived. Zero for a Unix socket, whose peer receives them at once.
    var unsentOutput: Int { family == AF_UNIX ? 0 : outgoing?.unsent ?? 0 }

    private var resetsWhenClosed = false

    /// Makes the peer see a reset when the socket is closed. A Unix socket ignores this.
    func resetWhenClosed() {
        resetsWhenClosed = true
    }

    /// The machine that the socket was connected to.
    var peer: NetworkNode? { outgoing?.path.to }

    /// The other end of the connection.
    var farEnd: SimulatedSocket? { outgoing?.receiver }

    /// Fails the socket, because the other side or the way to it has failed.
    func reset(_ reason: Int32) {
        guard case .connected = state else { return }
        // As on Linux, this applies to a side that has seen the end of the peer's stream.
        (state, error) = (.failed, reason == ECONNRESET && incoming?.hasEnded == true ? EPIPE : reason)
        outgoing?.breakOff()
        incoming?.breakOff()
        network.simulation.meet(reason == ETIMEDOUT ? .connectionTimedOut : .connectionReset)
        note("\(localAddress) to \(peerAddress): \(String(cString: strerror(reason)))")
        tell()
    }

    /// Fails the connection at both ends, because something between them has lost it.
    func resetBothEnds() {
        farEnd?.reset(ECONNRESET)
        reset(ECONNRESET)
    }

    /// Closes the socket as the system does: written bytes still go out, except when the socket has unread input; the
    /// peer then sees a reset.
    override func close() {
        let former = state
        state = .closed
        incoming?.dropAttachments()
        if isBound { table.unbind(self) }
        switch former {
        case .listening:
            for socket in queue { socket.abort() }
            queue.removeAll()
        case .connected where family == AF_UNIX:
            let reason = hasInput ? ECONNRESET : 0
            outgoing?.end()
            atFarEnd { $0.shutOutput(reason) }
        case .connected where hasInput || resetsWhenClosed: abort()
        case .connected: outgoing?.end()
        case .new, .connecting, .failed, .closed: break
        }
    }

    func abort() {
        state = .closed
        guard let outgoing else { return }
        outgoing.breakOff()
        incoming?.breakOff()
        guard network.isOpen(outgoing.path) else { return }
        network.after(outgoing.path) { [weak other = outgoing.receiver] in other?.reset(ECONNRESET) }
    }

    override func vanish() {
        if case .connected = state, outgoing?.receiver?.isOpen == true { network.simulation.meet(.connectionHalfOpen) }
        state = .closed
        outgoing?.breakOff()
        for socket in queue { socket.vanish() }
        queue.removeAll()
        super.vanish()
    }

    // MARK: Readiness

    override var pollEvents: Int16 {
        var events = super.pollEvents
        if error != 0 { events |= Int16(POLLERR) }
        switch state {
        case .new: return Int16(POLLOUT | POLLHUP)
        case .failed: return events | Int16(POLLHUP) | rdHup
        case .connected:
            guard hasInputEnded else { return events }
            return events | rdHup | (hasOutputEnded ? Int16(POLLHUP) : 0)
        case .listening, .connecting, .closed: return events
        }
    }

    private var rdHup: Int16 { 0x2000 }

    override var readiness: DescriptorEvents? {
        switch state {
        case .listening: return queue.isEmpty ? [] : .readable
        case .connecting, .closed: return []
        case .new, .failed: return [.readable, .writable]
        case .connected:
            var events: DescriptorEvents = []
            if error != 0 || hasInput || hasInputEnded { events.insert(.readable) }
            if error != 0 || hasOutputEnded || outgoing?.isWritable == true { events.insert(.writable) }
            return events
        }
    }
}
