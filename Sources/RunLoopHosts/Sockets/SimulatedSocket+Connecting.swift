internal import Glibc
internal import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation
@_spi(Ports) internal import RunLoopUnix

extension SimulatedSocket {
    // MARK: Listening

    func bind(to address: Endpoint) -> Int32 {
        guard address.family == family else { return failure(EAFNOSUPPORT) }
        guard !isBound else { return failure(EINVAL) }
        if let reason = table.reason(against: address) { return failure(reason) }
        return bindToPlace(of: address) ? 0 : failure(EADDRINUSE)
    }

    func listen(backlog: Int32) -> Int32 {
        if !isBound, family != AF_UNIX { _ = bind(to: localAddress) }
        guard isBound else { return failure(EINVAL) }
        state = .listening(backlog: max(1, Int(backlog)))
        return 0
    }

    private var hasRoom: Bool {
        // As on Linux, the limit is one more than the requested backlog.
        if case .listening(let backlog) = state { queue.count + handshakes <= backlog } else { false }
    }

    func accept() -> SimulatedSocket? {
        guard isListening else { return failure(EINVAL) }
        guard !queue.isEmpty else { return failure(EAGAIN) }
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
        case .connecting: return failure(EALREADY)
        case .connected: return failure(EISCONN)
        case .listening, .failed, .closed: return failure(EINVAL)
        }
        guard address.family == family else { return failure(EAFNOSUPPORT) }
        peerAddress = address.isWildcard ? address.loopback : address
        let address = peerAddress
        if let path = address.path, !path.isEmpty { return connect(at: path) }
        guard let other = table.table(at: address) else { return failure(ENETUNREACH) }
        if localAddress.port == 0 {
            let own = other === table ? address.hostText : table.address(of: family)
            localAddress = try! Endpoint(own ?? address.hostText, port: table.choosePort(forDatagrams: false))
        }
        state = .connecting
        knock(at: other, tries: 0)
        return failure(EINPROGRESS)
    }

    /// Connects to the socket at a path, which answers at once.
    private func connect(at path: String) -> Int32 {
        if let reason = table.reason(againstConnectionTo: path) { return failure(reason) }
        guard let listener = table.listener(at: peerAddress) else {
            network.simulation.meet(.connectionRefused)
            return failure(ECONNREFUSED)
        }
        guard listener.hasRoom else {
            network.simulation.meet(.backlogFull)
            return failure(EAGAIN)
        }
        listener.enqueue(join(listener))
        return 0
    }

    private static let mostTries = 11

    /// Returns the pause after a try without an answer: a second for the first five, then doubled each time, as on Linux
    /// since 6.5.
    private static func pause(afterTry tries: Int) -> Duration { .seconds(1) * (1 << max(0, tries - 4)) }

    /// Asks for a connection, again and again while there is no answer.
    private func knock(at other: SocketTable, tries: Int) {
        let path = NetworkPath(from: table, to: other)
        let next = network.simulation.now + Self.pause(afterTry: tries)
        // A system that has not measured the round trip yet waits for a second.
        network.after(path, retransmission: .seconds(1)) { [weak self] in
            guard let self, case .connecting = state else { return }
            guard network.isOpen(path), network.isOpen(path.back) else { return knockAgain(at: other, tries, next) }
            guard let listener = other.listener(at: peerAddress) else {
                return network.after(path.back) { [weak self] in self?.failToConnect(ECONNREFUSED) }
            }
            guard listener.hasRoom else {
                network.simulation.meet(.backlogFull)
                return knockAgain(at: other, tries, next)
            }
            listener.handshakes += 1
            network.after(path.back, retransmission: .seconds(1)) { [weak self] in
                guard let self, case .connecting = state else { return listener.handshakes -= 1 }
                guard listener.isListening else {
                    // A machine that is down does not answer.
                    return network.isOpen(path) ? failToConnect(ECONNREFUSED) : knockAgain(at: other, tries, next)
                }
                let socket = join(listener)
                note("connected \(localAddress) to \(peerAddress)")
                tell()
                network.after(path) {
                    listener.handshakes -= 1
                    listener.enqueue(socket)
                }
            }
        }
    }

    private func knockAgain(at other: SocketTable, _ tries: Int, _ date: RunLoop.Instant) {
        _ = network.simulation.schedule(
            at: max(date, network.simulation.now), "a connection is tried again", from: nil, on: table.name
        ) { [weak self] in
            guard let self, case .connecting = state else { return }
            guard tries + 1 < Self.mostTries else { return failToConnect(ETIMEDOUT) }
            knock(at: other, tries: tries + 1)
        }
    }

    private func failToConnect(_ reason: Int32) {
        guard case .connecting = state else { return }
        state = .failed
        error = reason
        network.simulation.meet(reason == ETIMEDOUT ? .connectionTimedOut : .connectionRefused)
        note("could not connect to \(peerAddress): \(String(cString: strerror(reason)))")
        tell()
    }
}
