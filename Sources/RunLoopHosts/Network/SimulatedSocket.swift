internal import Glibc
internal import RunLoopCore
internal import RunLoopSimulation
internal import RunLoopUnix

/// A socket of a simulated process. Its calls return the same results as the system's, with the reason in `errno`.
final class SimulatedSocket: OpenDescription, ChannelEnd, BoundSocket {
    private enum State {
        case new
        case listening(backlog: Int)
        case connecting
        case connected
        /// It could not be connected, or was reset.
        case failed
        case closed
    }

    let network: Network
    let machine: Machine
    let family: Int32
    private var state = State.new
    private(set) var localAddress: Endpoint
    private(set) var peerAddress: Endpoint
    private var place: Machine.Place?
    private var options: [Int64: Int32] = [:]

    /// Established connections that were not yet accepted.
    private var queue: [SimulatedSocket] = []
    /// The number of connections that are about to come.
    private var handshakes = 0
    private var outgoing: Channel?
    private var incoming: Channel?
    /// The error of the next call.
    private var error: Int32 = 0

    private static let firstPause = Duration.seconds(1)
    private static let mostTries = 7

    init(_ family: Int32, on machine: Machine, _ network: Network) {
        (self.family, self.machine, self.network) = (family, machine, network)
        localAddress = Self.unbound(family)
        peerAddress = localAddress
    }

    private static func unbound(_ family: Int32) -> Endpoint {
        switch family {
        case AF_INET6: try! Endpoint("::", port: 0)
        case AF_INET: try! Endpoint("0.0.0.0", port: 0)
        default: Endpoint.unnamed
        }
    }

    var isOpen: Bool { if case .closed = state { false } else { true } }
    var isListening: Bool { if case .listening = state { true } else { false } }

    // MARK: Options

    func setOption(_ level: Int32, _ option: Int32, _ value: Int32) {
        options[Int64(level) << 32 | Int64(option)] = value
    }

    func option(_ level: Int32, _ option: Int32) -> Int32? {
        switch (level, option) {
        case (SOL_SOCKET, SO_ERROR):
            defer { error = 0 }
            return error
        case (SOL_SOCKET, SO_ACCEPTCONN): return isListening ? 1 : 0
        case (Int32(IPPROTO_TCP), _) where family == AF_UNIX: return nil
        default: return options[Int64(level) << 32 | Int64(option)] ?? 0
        }
    }

    var reusesPort: Bool { option(SOL_SOCKET, SO_REUSEPORT) == 1 }
    var isSixOnly: Bool { option(Int32(IPPROTO_IPV6), IPV6_V6ONLY) == 1 }

    // MARK: Listening

    func bind(to address: Endpoint) -> Int32 {
        guard address.family == family else { return fail(EAFNOSUPPORT) }
        guard place == nil else { return fail(EINVAL) }
        let host = address.hostText
        guard
            family == AF_UNIX || address.isWildcard || machine.addresses.contains(host) || host.hasPrefix("127.")
                || host == "::1"
        else { return fail(EADDRNOTAVAIL) }
        if case .path(let path)? = Machine.Place(address), !path.hasPrefix("@") {
            let reason = machine.disk.check(newFileAt: machine.absolute(path, from: "/"))
            if let reason { return fail(reason == EEXIST ? EADDRINUSE : reason) }
        }
        let former = localAddress
        localAddress = address.port == 0 ? address.with(port: machine.choosePort()) : address
        guard let place = Machine.Place(localAddress), machine.mayBind(self, at: place) else {
            localAddress = former
            return fail(EADDRINUSE)
        }
        machine.bind(self, at: place)
        self.place = place
        return 0
    }

    func listen(backlog: Int32) -> Int32 {
        if place == nil, family != AF_UNIX { _ = bind(to: localAddress) }
        guard place != nil else { return fail(EINVAL) }
        state = .listening(backlog: max(1, Int(backlog)))
        return 0
    }

    private var hasRoom: Bool {
        // As on Linux, the limit is one more than the requested backlog.
        if case .listening(let backlog) = state { queue.count + handshakes <= backlog } else { false }
    }

    func accept() -> SimulatedSocket? {
        guard isListening else {
            errno = EINVAL
            return nil
        }
        guard !queue.isEmpty else {
            errno = EAGAIN
            return nil
        }
        return queue.removeFirst()
    }

    /// Enqueues an established connection, or resets it if the socket does not listen any more.
    private func enqueue(_ socket: SimulatedSocket) {
        guard isListening else { return socket.abort() }
        queue.append(socket)
        tell()
    }

    // MARK: Connecting

    func connect(to address: Endpoint) -> Int32 {
        switch state {
        case .new: break
        case .connecting: return fail(EALREADY)
        case .connected: return fail(EISCONN)
        case .listening, .failed, .closed: return fail(EINVAL)
        }
        guard address.family == family else { return fail(EAFNOSUPPORT) }
        peerAddress = address.isWildcard ? address.loopback : address
        let address = peerAddress
        if case .path(let path)? = Machine.Place(address) { return connect(at: path) }
        guard let other = network.machine(at: address, from: machine) else { return fail(ENETUNREACH) }
        if localAddress.port == 0 {
            let own = other === machine ? address.hostText : machine.address(of: family)
            localAddress = try! Endpoint(own ?? address.hostText, port: machine.choosePort())
        }
        state = .connecting
        knock(at: other, tries: 0, pause: Self.firstPause)
        return fail(EINPROGRESS)
    }

    /// Connects to a socket of a path, which answers at once.
    private func connect(at path: String) -> Int32 {
        if machine.files[path] == nil, !path.hasPrefix("@") {
            return fail(machine.disk.reason(againstUseOf: machine.absolute(path, from: "/")) ?? ECONNREFUSED)
        }
        guard let listener = machine.listener(at: peerAddress) as? SimulatedSocket else { return fail(ECONNREFUSED) }
        guard listener.hasRoom else { return fail(EAGAIN) }
        listener.enqueue(join(listener))
        return 0
    }

    /// Asks for a connection, again and again if there is no answer.
    private func knock(at other: Machine, tries: Int, pause: Duration) {
        let path = NetworkPath(from: machine, to: other)
        network.after(path) { [weak self] in
            guard let self, case .connecting = state else { return }
            guard network.isOpen(path), network.isOpen(path.back) else {
                return knockAgain(at: other, tries, pause)
            }
            guard let listener = other.listener(at: peerAddress) as? SimulatedSocket else {
                return network.after(path.back) { [weak self] in self?.failToConnect(ECONNREFUSED) }
            }
            guard listener.hasRoom else { return knockAgain(at: other, tries, pause) }
            listener.handshakes += 1
            network.after(path.back) { [weak self] in
                guard let self, case .connecting = state else { return listener.handshakes -= 1 }
                guard listener.isListening else {
                    // A machine that is down does not answer.
                    return network.isOpen(path)
                        ? failToConnect(ECONNREFUSED) : knockAgain(at: other, tries, pause)
                }
                let socket = join(listener)
                network.surroundings.note(machine.name, "connected \(localAddress) to \(peerAddress)")
                tell()
                network.after(path) {
                    listener.handshakes -= 1
                    listener.enqueue(socket)
                }
            }
        }
    }

    private func knockAgain(at other: Machine, _ tries: Int, _ pause: Duration) {
        network.surroundings.schedule(
            at: network.surroundings.now + pause, "a connection is tried again", on: machine.name
        ) { [weak self] in
            guard let self, case .connecting = state else { return }
            guard tries + 1 < Self.mostTries else { return failToConnect(ETIMEDOUT) }
            knock(at: other, tries: tries + 1, pause: pause * 2)
        }
    }

    private func failToConnect(_ reason: Int32) {
        guard case .connecting = state else { return }
        state = .failed
        error = reason
        network.surroundings.note(
            machine.name, "could not connect to \(peerAddress): \(String(cString: strerror(reason)))")
        tell()
    }

    /// Connects to a new socket at the listener's side.
    private func join(_ listener: SimulatedSocket) -> SimulatedSocket {
        let other = connect(to: SimulatedSocket(listener.family, on: listener.machine, network))
        // Connections inherit the options of their listener.
        other.options = listener.options
        return other
    }

    /// Makes a socket that is connected to this one.
    func makePeer() -> SimulatedSocket { connect(to: SimulatedSocket(family, on: machine, network)) }

    private func connect(to other: SimulatedSocket) -> SimulatedSocket {
        (other.localAddress, other.peerAddress) = (peerAddress, localAddress)
        let (there, back) = (Channel(network, from: self, to: other), Channel(network, from: other, to: self))
        (outgoing, incoming, other.incoming, other.outgoing) = (there, back, there, back)
        (state, other.state) = (.connected, .connected)
        (peer, other.peer) = (other.machine, machine)
        return other
    }

    // MARK: Bytes

    override func read(into room: UnsafeMutableRawBufferPointer) -> Int {
        guard room.count > 0 else { return 0 }
        if let incoming, incoming.hasInput { return incoming.read(into: room) }
        // An error that comes after the end of the stream is for the next write.
        if incoming?.hasEnded == true { return 0 }
        if let reason = takeError() { return Int(fail(reason)) }
        switch state {
        case .connected: return Int(fail(EAGAIN))
        case .failed: return 0
        case .new, .connecting, .listening, .closed: return Int(fail(ENOTCONN))
        }
    }

    override func write(_ bytes: UnsafeRawBufferPointer) -> Int {
        if let reason = takeError() { return Int(fail(reason)) }
        switch state {
        case .connected:
            guard let outgoing, !hasEndedWriting else { return Int(fail(EPIPE)) }
            guard !bytes.isEmpty else { return 0 }
            let count = outgoing.write(bytes)
            return count > 0 ? count : Int(fail(EAGAIN))
        case .connecting: return Int(fail(EAGAIN))
        case .failed: return Int(fail(EPIPE))
        case .new, .listening, .closed: return Int(fail(ENOTCONN))
        }
    }

    private func takeError() -> Int32? {
        defer { error = 0 }
        return error == 0 ? nil : error
    }

    private var hasEndedWriting = false

    func endWriting() {
        guard case .connected = state, !hasEndedWriting else { return }
        hasEndedWriting = true
        outgoing?.end()
    }

    /// Whether it has unread input.
    var hasInput: Bool { incoming?.hasInput == true }

    /// The number of written bytes that have not arrived. The peer of a Unix socket receives them at once.
    var unsentOutput: Int { family == AF_UNIX ? 0 : outgoing?.unsent ?? 0 }

    /// Whether the peer sees a reset when the socket is closed. A Unix socket ignores this.
    var resetsWhenClosed = false

    /// The machine that it is connected to.
    private(set) var peer: Machine?

    /// Fails the socket, because the other side, or the way to it, has failed.
    func reset(_ reason: Int32) {
        guard case .connected = state else { return }
        // As on Linux, for a side that has seen the end of the peer's stream.
        (state, error) = (.failed, reason == ECONNRESET && incoming?.hasEnded == true ? EPIPE : reason)
        outgoing?.breakOff()
        incoming?.breakOff()
        network.surroundings.note(
            machine.name, "\(localAddress) to \(peerAddress): \(String(cString: strerror(reason)))")
        tell()
    }

    /// Closes it as the system does: written bytes still go out, unless the socket has unread input. Then the peer
    /// learns of it by a reset.
    override func close() {
        let former = state
        state = .closed
        if let place { machine.unbind(self, from: place) }
        switch former {
        case .listening:
            for socket in queue { socket.abort() }
            queue.removeAll()
        case .connected where hasInput || (resetsWhenClosed && family != AF_UNIX): abort()
        case .connected: outgoing?.end()
        case .new, .connecting, .failed, .closed: break
        }
    }

    private func abort() {
        state = .closed
        let other = outgoing?.receiver
        guard let peer else { return }
        let path = NetworkPath(from: machine, to: peer)
        outgoing?.breakOff()
        incoming?.breakOff()
        if network.isOpen(path) { network.after(path) { [weak other] in other?.reset(ECONNRESET) } }
    }

    /// Drops the socket because its machine has stopped, and notifies nobody.
    func vanish() {
        state = .closed
        outgoing?.breakOff()
        for socket in queue { socket.vanish() }
        queue.removeAll()
        forgetWatches()
    }

    // MARK: Readiness

    override var isPollable: Bool { true }

    override var readiness: DescriptorEvents {
        switch state {
        case .listening: return queue.isEmpty ? [] : .readable
        case .connecting, .closed: return []
        case .new, .failed: return [.readable, .writable]
        case .connected:
            var events: DescriptorEvents = []
            if error != 0 || incoming?.hasInput == true || incoming?.hasEnded == true { events.insert(.readable) }
            if error != 0 || hasEndedWriting || outgoing?.isWritable == true { events.insert(.writable) }
            return events
        }
    }
}
