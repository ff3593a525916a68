internal import CShims
internal import Glibc
@_spi(Ports) public import RunLoopKit

/// A listener that accepts connections on a TCP or Unix socket, and hands out their descriptors.
///
/// A ``Server`` serves them. A listener alone is for programs that adopt descriptors into something else, or accept by
/// tasks.
///
/// ```swift
/// let listener = try Listener(address: Endpoint("127.0.0.1", port: 7000), on: loop) { listener, descriptor, peer in
///     …
/// }
/// ```
///
/// When no descriptor is left, the listener neither spins nor fails: it refuses the waiting connection by means of a
/// reserve descriptor, calls the error handler, and pauses for ``Options/pause``. It also pauses after 64 consecutive
/// failed attempts, and when its handler reports by ``pause(after:)`` that it cannot serve a connection.
///
/// End a daemon's listener with ``finish()``, which serves the waiting connections; ``close()`` drops them.
///
/// An open listener keeps itself alive, so you need not keep a reference. The end of its loop closes it. A listener
/// belongs to the loop's thread and is not `Sendable`.
public final class Listener {
    /// A closure that receives a connected, non-blocking descriptor, which it then owns, and the peer's address.
    public typealias AcceptHandler = (Listener, Int32, Endpoint) -> Void

    /// The place where the listener was made.
    public let origin: RunLoop.Origin

    /// The listening descriptor.
    public let fileDescriptor: Int32
    /// Called when a connection could not be accepted or served, once for each pause, after which the listener accepts
    /// again.
    public var errorHandler: ((Listener, SystemError) -> Void)?
    /// Called when a pass has accepted connections, after the last one has been passed to the handler.
    @_spi(Ports) public var batchHandler: (() -> Void)?
    /// Called after the end of the loop has closed the listener.
    @_spi(Ports) public var closedByLoop: (() -> Void)?
    /// True if connections are accepted instead of left in the system's queue.
    @_spi(Ports) public var takesConnections: Bool {
        get { machine.isOpenToConnections }
        set {
            machine.isOpenToConnections = newValue
            watch()
        }
    }
    /// The number of connections that the handler received.
    public var acceptedCount: Int { machine.accepted }
    /// The number of connections refused because no descriptor was left.
    public var refusedCount: Int { machine.refused }
    /// The number of connections closed because their peer exceeded ``Options/peerRateLimit``.
    public var turnedAwayCount: Int { machine.turnedAway }
    /// The number of times that ``Options/rateLimit`` made connections wait.
    public var pauseCount: Int { machine.waits }

    /// The loop on whose thread the listener accepts.
    @_spi(Ports) public let loop: RunLoop
    private let system: any SystemCalls
    /// The modes in which the listener accepts.
    @_spi(Ports) public let modes: RunLoop.Modes
    private var machine: AcceptMachine
    /// The value of `TCP_NODELAY` for each connection, if connections do not inherit it.
    private let noDelay: Int32?
    private var handler: AcceptHandler?
    private var source: DescriptorSource?
    private var resumption: Timer?
    private var reserve: Int32 = -1
    /// The path to remove when the listener closes if it still leads to the listener's socket.
    private let path: (text: String, file: SocketFile)?
    /// True if the process that passed the descriptor to this one may accept the waiting connections.
    private let isInherited: Bool
    /// The wait of a task for a connection, if the listener is for tasks.
    private let acceptance: TaskWait?
    /// The accepted connections that no task has taken.
    private var sockets: [Socket] = []
    private var hasLostLoop = false

    /// An accepted descriptor, which the receiver owns, and its peer's address.
    @_spi(Ports) public typealias Socket = (descriptor: Int32, peer: Endpoint)

    /// Listens on an address. Call it on the loop's thread.
    ///
    /// - Parameters:
    ///   - address: where to listen. Port 0 lets the system choose; see ``address``.
    ///   - loop: the loop that accepts connections.
    ///   - modes: the modes in which the listener accepts.
    ///   - options: the options of the listener.
    ///   - handler: called with each connection; kept until the listener is closed. Without a handler, tasks call
    ///     ``accept(limits:file:line:)``.
    /// - Throws: ``SystemError``, for example with `EADDRINUSE`, `EACCES` or `EADDRNOTAVAIL`. A path is in use unless
    ///   it leads to nothing, or to a socket on which no process answers.
    public convenience init(
        address: Endpoint, on loop: RunLoop, inModes modes: RunLoop.Modes = .common, options: Options = Options(),
        handler: AcceptHandler? = nil, file: StaticString = #fileID, line: UInt32 = #line
    ) throws {
        let system = WorldSystem.of(loop)
        let descriptor = try system.openListener(address, options)
        let path = address.filePath.flatMap { path in system.socketFile(at: path).map { (path, $0) } }
        try self.init(
            descriptor, isInherited: false, path: path, on: loop, inModes: modes, options: options, handler: handler,
            file: file, line: line)
    }

    /// Accepts on a descriptor that is already listening, for example one from a service manager, which the listener
    /// then owns.
    ///
    /// - Throws: ``SystemError`` with `EINVAL` if the descriptor is not listening; ``/RunLoopKit/DescriptorError`` if
    ///   it cannot be watched.
    public convenience init(
        inherited descriptor: Int32, on loop: RunLoop, inModes modes: RunLoop.Modes = .common,
        options: Options = Options(),
        handler: AcceptHandler? = nil, file: StaticString = #fileID, line: UInt32 = #line
    ) throws {
        try WorldSystem.of(loop).check(
            descriptor, isA: "listening", SO_ACCEPTCONN, is: 1, otherwise: "does not listen")
        try self.init(
            descriptor, isInherited: true, path: nil, on: loop, inModes: modes, options: options, handler: handler,
            file: file, line: line)
    }

    private init(
        _ descriptor: Int32, isInherited: Bool, path: (String, SocketFile)?, on loop: RunLoop,
        inModes modes: RunLoop.Modes,
        options: Options, handler: AcceptHandler?, file: StaticString, line: UInt32
    ) throws {
        origin = RunLoop.Origin(file: file, line: line)
        fileDescriptor = descriptor
        (self.path, self.isInherited) = (path, isInherited)
        self.loop = loop
        system = WorldSystem.of(loop)
        self.modes = modes
        machine = AcceptMachine(options, isForTasks: handler == nil)
        acceptance = handler == nil ? NamedWait(loop.remote, "accepts a connection") : nil
        self.handler =
            handler ?? { listener, descriptor, peer in
                listener.sockets.append((descriptor, peer))
                listener.acceptance?.end()
            }
        let address = system.localAddress(of: descriptor)
        let wanted: Int32 = options.hasNoDelay ? 1 : 0
        let inherited = system.option(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY).map { $0 != 0 }
        noDelay = address.path == nil && inherited != options.hasNoDelay ? wanted : nil
        system.prepare(descriptor)
        reserve = system.openReserve()
        let source = DescriptorSource(fileDescriptor: descriptor, events: .readable, origin: origin) { [self] _, _ in
            acceptSome()
        }
        source.name = "listener \(address)"
        self.source = source
        // The end of the loop invalidates the source.
        source.invalidationHandler = { [unowned self] in
            hasLostLoop = isOpen
            let lost = closedByLoop.take()
            close()
            lost?()
        }
        do {
            try loop.add(source, forMode: modes)
        } catch {
            source.invalidationHandler = nil
            closeDescriptors()
            throw error
        }
    }

    /// The address on which the listener listens, with the port that the system chose.
    public var address: Endpoint { system.localAddress(of: fileDescriptor) }

    /// A Boolean value that indicates whether the listener is open.
    public var isOpen: Bool { handler != nil }

    /// Returns the value of an option of the listening socket. Call it on the loop's thread.
    ///
    /// - Throws: ``SystemError``, for example with `EBADF` if the listener is closed.
    public func option<Value>(_ option: SocketOption<Value>) throws(SystemError) -> Value {
        guard isOpen else { throw SystemError("read an option of a listener that was closed", errno: EBADF) }
        return try system.value(of: option, of: fileDescriptor)
    }

    /// Sets an option of the listening socket, which later connections inherit if the system does so. Call it on the
    /// loop's thread.
    ///
    /// - Throws: ``SystemError``, for example with `EBADF` if the listener is closed.
    public func setOption<Value>(_ option: SocketOption<Value>, to value: Value) throws(SystemError) {
        guard isOpen else { throw SystemError("set an option of a listener that was closed", errno: EBADF) }
        try system.set(option, of: fileDescriptor, to: value)
    }

    deinit {
        for socket in sockets { system.close(socket.descriptor) }
    }

    private func acceptSome() {
        machine.becameReady(at: loop.now)
        settle()
    }

    /// Carries out the machine's actions until none is left.
    private func settle() {
        let acceptedBefore = machine.accepted
        var socket: Socket = (-1, Endpoint())
        while let action = machine.next() {
            switch action {
            case .accept: socket = accept()
            case .deliver:
                assert(socket.descriptor >= 0, "no connection was accepted")
                if let noDelay { system.setOption(socket.descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, noDelay) }
                handler?(self, socket.descriptor, socket.peer)
            case .turnAway:
                assert(socket.descriptor >= 0, "no connection was accepted")
                system.close(socket.descriptor)
            case .refuse: refuse()
            case .pause(let end): pause(until: end)
            case .report(let errno): errorHandler?(self, SystemError("accept a connection", errno: errno))
            }
        }
        if machine.accepted != acceptedBefore { batchHandler?() }
        watch()
    }

    private func accept() -> Socket {
        var peer = Endpoint()
        let descriptor = system.accept(fileDescriptor, peer: &peer)
        if descriptor < 0 {
            machine.acceptFailed(errno, at: loop.now)
        } else {
            machine.acceptSucceeded(from: peer.host)
        }
        return (descriptor, peer)
    }

    /// Refuses a connection because no descriptor is left. Closing the reserve descriptor makes room to accept and
    /// close the waiting connection, so that its peer does not wait.
    private func refuse() {
        if reserve >= 0 {
            system.close(reserve)
            var peer = Endpoint()
            let descriptor = system.accept(fileDescriptor, peer: &peer)
            if descriptor >= 0 {
                system.close(descriptor)
                machine.refusalSucceeded()
            }
        }
        reserve = system.openReserve()
    }

    private func pause(until date: RunLoop.Instant) {
        let timer = Timer(at: date, origin: origin) { [unowned self] _ in
            resumption = nil
            machine.pauseEnded()
            watch()
        }
        timer.name = source.flatMap(\.name).map { "pause of \($0)" }
        // A listener that finishes accepts during a pause, and may pause again.
        resumption?.invalidate()
        resumption = timer
        loop.add(timer, forMode: modes)
    }

    /// Watches the descriptor, or leaves connections in the system's queue, as the machine decides.
    private func watch() {
        source?.events = machine.isWatching ? .readable : []
    }

    // MARK: For tasks

    /// Waits for the next connection of a listener without a handler, and returns its socket, which the caller then
    /// owns; `nil` once the listener has been closed.
    @_spi(Ports) public nonisolated(nonsending) func acceptSocket() async throws -> Socket? {
        guard let acceptance else {
            fatalError("a listener with a handler is not awaited; make it without the handler")
        }
        if loop.hasGone("a listener") { throw await loop.remote.endErrorAfterTurn() }
        while true {
            if !sockets.isEmpty { return sockets.removeFirst() }
            guard isOpen else {
                if hasLostLoop { throw await loop.remote.endErrorAfterTurn() }
                return nil
            }
            try await acceptance.admit(for: "connections")
            machine.awaitBegins()
            watch()
            defer { machine.awaitEnds() }
            try await acceptance.wait()
        }
    }

    /// Pauses the listener for ``Options/pause`` because the connection just received cannot be served, and calls the
    /// error handler once for each pause, however many peers wait. Call it in the handler.
    ///
    /// ```swift
    /// do { try connection.start() } catch { listener.pause(after: error) }
    /// ```
    public func pause(after error: DescriptorError) {
        machine.deliveryFailed(error.systemErrno, at: loop.now)
    }

    // MARK: Closing

    /// Accepts the connections waiting in the system's queue, whose peers may already have sent data, and closes the
    /// listener. Within the rate limits, the handler receives each before this call returns; tasks still receive them
    /// from ``accept(limits:file:line:)``. An inherited descriptor is only closed, because another process accepts the
    /// waiting connections. Call it on the loop's thread; repeated calls have no effect.
    public func finish() {
        guard isOpen else { return }
        if !isInherited {
            machine.finish(at: loop.now)
            settle()
        }
        let waiting = sockets
        sockets = []
        close()
        sockets = waiting
    }

    /// Stops accepting, closes the descriptor, and removes the path of a Unix socket unless another socket has replaced
    /// it. Accepted connections stay open; waiting ones are reset, unlike with ``finish()``. Call it on the loop's
    /// thread; repeated calls have no effect.
    public func close() {
        guard let handler else { return }
        self.handler = nil
        machine.close()
        source?.invalidate()
        resumption?.invalidate()
        (source, resumption) = (nil, nil)
        if let path { system.remove(path.file, at: path.text) }
        closeDescriptors()
        for socket in sockets { system.close(socket.descriptor) }
        sockets = []
        acceptance?.end()
        withExtendedLifetime((handler, errorHandler, batchHandler)) {}
        (errorHandler, batchHandler) = (nil, nil)
    }

    private func closeDescriptors() {
        assert(!isOpen || source?.isScheduled != true, "a descriptor is closed while it is watched")
        system.close(fileDescriptor)
        if reserve >= 0 { system.close(reserve) }
    }
}
