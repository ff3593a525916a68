internal import Glibc
@_spi(Ports) public import RunLoopKit

extension LoopGroup {
    /// The distribution of connections over the loops of a group.
    public enum Spread: Sendable, Hashable {
        /// Each loop listens on the same port, and the system chooses by the addresses of both ends (`SO_REUSEPORT`).
        /// No thread waits for another. Only many connections are spread evenly. Other processes of the same user can
        /// also listen on the port.
        case bySystem
        /// The first loop accepts, and passes the connections to all loops in turn.
        case inTurn
    }

    /// A closure that receives, on a loop's thread, a connected, non-blocking descriptor, which it then owns, and the
    /// peer's address.
    public typealias AcceptHandler = @Sendable (RunLoop, Int32, Endpoint) -> Void

    /// A closure that is called with each listener of a group, on the thread of its loop.
    @_spi(Ports) public typealias Made = @Sendable (RunLoop, Listener) -> Void

    /// Listens on an address, on all loops or for all of them. Blocks the calling thread, which may be any thread
    /// outside the group, until all listen.
    ///
    /// - Parameters:
    ///   - address: where to listen. Port 0 lets the system choose a port, the same for all loops.
    ///   - options: the options of each listener. Rate limits apply to each loop separately.
    ///   - spread: how connections reach the loops. By default, the system spreads TCP connections, and loops take
    ///     turns with a Unix socket, which has one listener. In a simulation, loops always take turns, because the
    ///     system's choice differs from run to run.
    ///   - handler: called with each connection, on the loop that will serve it.
    /// - Returns: the address, with the port that the system chose.
    /// - Throws: ``SystemError``, as a ``Listener`` does; then no loop listens. `RunLoop.WaitError` if a loop has
    ///   ended.
    @available(*, noasync, message: "it blocks its thread until all loops listen; call it from a synchronous function")
    @discardableResult
    public func listen(
        on address: Endpoint, options: Listener.Options = Listener.Options(), spread: Spread? = nil,
        _ handler: @escaping AcceptHandler
    ) throws -> Endpoint {
        try listen(on: address, options: options, spread: spread, made: { _, _ in }, handler)
    }

    /// Listens as ``listen(on:options:spread:_:)`` does, for a server that ends its listeners itself.
    ///
    /// - Parameter made: called with each listener, on the thread of its loop, before it accepts.
    @_spi(Ports) public func listen(
        on address: Endpoint, options: Listener.Options, spread: Spread?, made: @escaping Made,
        _ handler: @escaping AcceptHandler
    ) throws -> Endpoint {
        let isSystems =
            try address.path == nil && loops[0].performAndWait { WorldSystem.of($0).spreadsConnections(of: $0) }
        guard spread ?? (isSystems ? .bySystem : .inTurn) == .bySystem else {
            return try listenInTurn(made, handler) {
                try Listener(address: address, on: $0, options: options, handler: $1)
            }
        }
        require(address.path == nil, "a Unix socket has one listener: its connections come in turn")
        var options = options
        options.reusesPort = true
        let key = ListenKey()
        var bound = address
        do {
            for loop in loops {
                bound = try loop.performAndWait { [bound, options] loop in
                    let listener = try Listener(address: bound, on: loop, options: options) { [unowned loop] in
                        handler(loop, $1, $2)
                    }
                    made(loop, listener)
                    return loop.keep(listener, key)
                }
            }
        } catch {
            for loop in loops { try? loop.performAndWait { $0.endGroupListeners(of: key) { $0.close() } } }
            throw error
        }
        return bound
    }

    /// Accepts on a listening TCP or Unix socket, for example one from a service manager, which the group then owns.
    /// The first loop accepts, and passes the connections to all loops in turn. Blocks the calling thread, which may be
    /// any thread outside the group, until the first loop listens.
    ///
    /// - Parameters:
    ///   - descriptor: the listening descriptor; see ``ActivatedSocket``.
    ///   - options: the options of the listener.
    ///   - handler: called with each connection, on the loop that will serve it.
    /// - Returns: the address on which the descriptor listens.
    /// - Throws: ``SystemError`` with `EINVAL` if the descriptor is not listening; ``/RunLoopKit/DescriptorError`` if
    ///   it cannot be watched; `RunLoop.WaitError` if the first loop has ended.
    @available(*, noasync, message: "it blocks its thread until all loops listen; call it from a synchronous function")
    @discardableResult
    public func listen(
        inherited descriptor: Int32, options: Listener.Options = Listener.Options(), _ handler: @escaping AcceptHandler
    ) throws -> Endpoint {
        try listen(inherited: descriptor, options: options, made: { _, _ in }, handler)
    }

    /// Listens as ``listen(inherited:options:_:)`` does, for a server that ends its listener itself.
    ///
    /// - Parameter made: called with the listener, on the thread of its loop, before it accepts.
    @_spi(Ports) public func listen(
        inherited descriptor: Int32, options: Listener.Options, made: @escaping Made, _ handler: @escaping AcceptHandler
    ) throws -> Endpoint {
        try listenInTurn(made, handler) { try Listener(inherited: descriptor, on: $0, options: options, handler: $1) }
    }

    private func listenInTurn(
        _ made: @escaping Made, _ handler: @escaping AcceptHandler,
        _ makeListener: @escaping @Sendable (RunLoop, @escaping Listener.AcceptHandler) throws -> Listener
    ) throws -> Endpoint {
        let turns = Turns(loops, handler)
        return try loops[0].performAndWait { loop in
            let listener = try makeListener(loop) { [unowned loop] in turns.give($1, from: $2, by: loop) }
            made(loop, listener)
            return loop.keep(listener, ListenKey())
        }
    }

    /// Stops the group's listeners on all loops as ``Listener/finish()`` does, accepting the waiting connections. All
    /// connections stay open. Returns at once. Any thread.
    ///
    /// - Parameter completion: called once, when all listeners are closed, the handler has received every accepted
    ///   connection, and each loop has looked for the first input of its connections; on the thread of one of the loops
    ///   or on the calling thread. Delayed while a loop runs in a mode that is not common.
    public func stopAccepting(completion: @escaping @Sendable () -> Void = {}) {
        // Connections accepted in turn were posted before the second round, for the same modes.
        performOnEach({ $0.finishGroupListeners() }) {
            let count = AtLast(self.loops.count, completion)
            for loop in self.loops {
                let end = count.makeEnd()
                loop.perform(inModes: .common) { $0.performAfterReading(inModes: .common) { end.come() } }
            }
        }
    }
}

/// The identity of a request to listen.
private final class ListenKey: Sendable {}

/// The listeners of groups on a loop, and the requests that made them.
private let groupListeners = RunLoop.Local<[(listener: Listener, key: ListenKey)]> { _ in [] }

extension RunLoop {
    fileprivate func keep(_ listener: Listener, _ key: ListenKey) -> Endpoint {
        assert(!self[groupListeners].contains { $0.listener === listener }, "a listener is kept twice")
        self[groupListeners].append((listener, key))
        return listener.address
    }

    fileprivate func finishGroupListeners() {
        endGroupListeners { $0.finish() }
    }

    /// - Parameter key: the request whose listeners end; `nil` for all.
    fileprivate func endGroupListeners(of key: ListenKey? = nil, _ end: (Listener) -> Void) {
        let ending = self[groupListeners].filter { key == nil || $0.key === key }
        self[groupListeners].removeAll { key == nil || $0.key === key }
        for element in ending { end(element.listener) }
    }

    private static let readingLabel = CallLabel("the first input of connections")

    /// Calls a block after the descriptors that are ready in the next pass have been served.
    func performAfterReading(inModes modes: RunLoop.Modes, _ block: @escaping () -> Void) {
        // A pass finds ready descriptors, makes the calls that are due, serves the descriptors, and runs the blocks.
        perform(at: now, inModes: modes, label: Self.readingLabel, origin: RunLoop.Origin()) { [unowned self] in
            perform(inModes: modes, block)
        }
    }
}

/// A distributor that passes connections to loops in turn. Used on the accepting thread only.
private final class Turns: @unchecked Sendable {
    // Unchecked: the turn is read and changed only on the accepting thread.
    private let loops: [RunLoop.Remote]
    private let handler: LoopGroup.AcceptHandler
    private var turn = 0

    init(_ loops: [RunLoop.Remote], _ handler: @escaping LoopGroup.AcceptHandler) {
        (self.loops, self.handler) = (loops, handler)
    }

    /// Passes a connection to the next loop that has not ended. Called by the loop that accepted it.
    func give(_ descriptor: Int32, from peer: Endpoint, by loop: RunLoop) {
        let parcel = Parcel(OwnedDescriptor(descriptor, WorldSystem.of(loop)))
        while true {
            assert(turn < loops.count, "it is no loop's turn")
            let next = loops[turn]
            turn = (turn + 1) % loops.count
            guard !next.isCurrent else { return handler(loop, parcel.take().release(), peer) }
            if next.perform(inModes: .common, { [handler] in handler($0, parcel.take().release(), peer) }) { return }
        }
    }
}

/// A descriptor that is closed unless it is released.
private struct OwnedDescriptor: ~Copyable {
    private var descriptor: Int32
    private let system: any SystemCalls

    init(_ descriptor: Int32, _ system: any SystemCalls) {
        (self.descriptor, self.system) = (descriptor, system)
    }

    deinit {
        if descriptor >= 0 { system.release(descriptor) }
    }

    consuming func release() -> Int32 {
        assert(descriptor >= 0, "a descriptor is released twice")
        var owned = self
        defer { owned.descriptor = -1 }
        return owned.descriptor
    }
}
