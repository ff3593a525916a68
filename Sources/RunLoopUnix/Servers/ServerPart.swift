@_spi(Ports) internal import RunLoopKit

/// The connections of a server that live on one loop, and the listeners there. On the loop's thread.
final class ServerPart: ConnectionKeeper {
    typealias Handlers = (Connection, Endpoint) throws -> Void
    typealias Tasks = nonisolated(nonsending) (Connection, Endpoint) async throws -> Void

    /// The program's part: a closure that sets handlers, or a task for each connection.
    enum Service {
        case handlers(Handlers)
        case tasks(Tasks)
    }

    /// The state that the parts of a server share. Any thread.
    final class Common: Sendable {
        let census: ServerCensus
        let overflow: Server.Overflow
        let modes: RunLoop.Modes
        let origin: RunLoop.Origin
        private let layerBox = Locked<Server.Layer?>(nil)
        /// Receives errors.
        let report: @Sendable (any Error) -> Void
        /// Has all parts look for room.
        let tellOfRoom: @Sendable () -> Void
        /// Receives the end of a part, which its loop has released.
        let partEnded: @Sendable () -> Void

        init(
            _ options: Server.Options, _ modes: RunLoop.Modes, _ origin: RunLoop.Origin,
            report: @escaping @Sendable (any Error) -> Void, tellOfRoom: @escaping @Sendable () -> Void,
            partEnded: @escaping @Sendable () -> Void
        ) {
            census = ServerCensus(atMost: options.maximumConnections ?? .max)
            (overflow, self.modes, self.origin) = (options.overflow, modes, origin)
            (self.report, self.tellOfRoom, self.partEnded) = (report, tellOfRoom, partEnded)
        }

        var layer: Server.Layer? {
            get { layerBox.withLock { $0 } }
            set { layerBox.withLock { $0 = newValue } }
        }
    }

    /// The most refused connections that receive the answer at a time. Others are closed at once.
    private static let mostRefused = 64
    /// The time in which a refused connection has to read the answer.
    private static let refusalTime = Duration.seconds(1)
    /// The time for the first bytes of a connection to which nothing has come when the server shuts down.
    static let grace = Duration.seconds(1)

    let loop: RunLoop
    private let common: Common
    private let service: Service
    private var listeners: [Listener] = []
    /// The open connections, each at its ``Connection/place``.
    private var kept: [(connection: Connection, task: Task<Void, any Error>?)] = []
    /// Connections that were accepted and wait for room.
    private var held: [Listener.Socket] = []
    private var refusals = 0
    private var isStopping = false
    private var isDraining = false
    private var isClosed = false
    private var graceEnd: DelayedCall?

    init(on loop: RunLoop, _ common: Common, _ service: Service) {
        (self.loop, self.common, self.service) = (loop, common, service)
    }

    deinit {
        dropHeld()
        common.partEnded()
    }

    // MARK: Accepting

    func add(_ listener: Listener) {
        listener.errorHandler = { [common] _, error in common.report(error) }
        listeners.append(listener)
    }

    func listen(with listener: Listener) -> Endpoint {
        add(listener)
        return listener.address
    }

    /// Serves, refuses or holds a connection that `listener` has accepted, which is `nil` if it is on another loop.
    func accepted(_ descriptor: Int32, _ peer: Endpoint, by listener: Listener?) {
        guard !isClosed else { return WorldSystem.of(loop).close(descriptor) }
        if held.isEmpty, common.census.enter() {
            serve(descriptor, peer, listener)
            setTaking()
        } else if case .refuse(let answer) = common.overflow {
            refuse(descriptor, answer)
        } else {
            held.append((descriptor, peer))
            common.census.hold(1)
            setTaking()
            // Room may have come meanwhile.
            if !common.census.isFull { serveHeldSoon() }
        }
    }

    /// Leaves connections in the system's queues as long as there is no room.
    private func setTaking() {
        guard case .wait = common.overflow, !isStopping else { return }
        let takes = held.isEmpty && !common.census.isFull
        for listener in listeners where listener.takesConnections != takes { listener.takesConnections = takes }
    }

    private func serveHeldSoon() {
        loop.perform(inModes: common.modes) { [self] in findRoom() }
    }

    /// Serves connections that wait, if there is room.
    func findRoom() {
        while !held.isEmpty, common.census.enter() {
            let (descriptor, peer) = held.removeFirst()
            assert(descriptor >= 0, "a held connection has no descriptor")
            serve(descriptor, peer, nil)
            common.census.hold(-1)
        }
        setTaking()
        if !held.isEmpty && !common.census.isFull { serveHeldSoon() }
    }

    private func serve(_ descriptor: Int32, _ peer: Endpoint, _ listener: Listener?) {
        let connection: Connection
        do {
            connection = try makeConnection(descriptor)
        } catch {
            left()
            return common.report(error)
        }
        do {
            try connection.start()
        } catch {
            left()
            // The listener reports it.
            if let listener { return listener.pause(after: error) }
            return common.report(error)
        }
        (connection.keeper, connection.place) = (self, kept.count)
        assert(
            connection.isOpen && connection.keeper === self, "a connection is kept that is closed, or another part's")
        kept.append((connection, nil))
        switch service {
        case .handlers(let body): prepare(connection, peer, body)
        case .tasks(let body): kept[connection.place].task = task(for: connection, peer, body)
        }
        if isDraining { drain(connection) }
    }

    private func makeConnection(_ descriptor: Int32) throws -> Connection {
        let below = loop.makeStream(reading: descriptor, writing: descriptor)
        return Connection(
            try common.layer?(below) ?? below, on: loop, inModes: common.modes, limits: Connection.Limits(),
            origin: common.origin, receive: nil)
    }

    private func prepare(_ connection: Connection, _ peer: Endpoint, _ body: Handlers) {
        connection.handle { connection in
            do {
                try body(connection, peer)
            } catch {
                connection.close()
                common.report(error)
            }
        }
    }

    private func task(
        for connection: Connection, _ peer: Endpoint, _ body: @escaping Tasks
    ) -> Task<Void, any Error> {
        loop.task(name: "connection", inModes: common.modes) {
            try await connection.withStream { try await body($0, peer) }
        } then: { [self] result in
            if case .failure(let error) = result, !isClosed { common.report(error) }
        }
    }

    private func refuse(_ descriptor: Int32, _ answer: [UInt8]) {
        common.census.refuse()
        guard refusals < Self.mostRefused, !answer.isEmpty else { return WorldSystem.of(loop).close(descriptor) }
        do {
            let connection = try makeConnection(descriptor)
            refusals += 1
            connection.closeHandler = { [self] _, _ in
                assert(refusals > 0, "an answer ends that has not begun")
                refusals -= 1
            }
            try connection.start()
            connection.write(answer)
            connection.finish(within: Self.refusalTime)
        } catch {
            common.report(error)
        }
    }

    func lost(_ connection: Connection) {
        assert(
            connection.place < kept.count && kept[connection.place].connection === connection,
            "a connection is not where it is kept")
        let last = kept.removeLast()
        if last.connection !== connection {
            kept[connection.place] = last
            last.connection.place = connection.place
        }
        if kept.isEmpty { graceEnd.take()?.cancel() }
        left()
    }

    private func left() {
        if common.census.leave() { common.tellOfRoom() }
    }

    // MARK: The end

    /// Accepts the connections that wait in the system's queues, and closes the listeners.
    func stopAccepting() {
        isStopping = true
        for listener in listeners {
            listener.takesConnections = true
            listener.finish()
        }
        listeners = []
    }

    /// Ends the input of each connection, so that it finishes.
    func drain() {
        isDraining = true
        for element in kept { drain(element.connection) }
    }

    private func drain(_ connection: Connection) {
        connection.endInput(awaitsFirst: true)
        guard graceEnd == nil, connection.isOpen else { return }
        graceEnd = loop.perform(afterDelay: Self.grace, inModes: common.modes) { [unowned self] in
            graceEnd = nil
            for element in kept { element.connection.endInput(awaitsFirst: false) }
        }
    }

    /// Closes everything at once.
    func close() {
        (isStopping, isClosed) = (true, true)
        for listener in listeners { listener.close() }
        listeners = []
        dropHeld()
        for element in kept {
            element.task?.cancel()
            element.connection.close()
        }
    }

    private func dropHeld() {
        assert(held.allSatisfy { $0.descriptor >= 0 }, "a held connection has no descriptor")
        guard !held.isEmpty else { return }
        for socket in held { WorldSystem.of(loop).close(socket.descriptor) }
        common.census.hold(-held.count)
        held = []
    }
}
