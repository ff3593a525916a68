internal import Glibc
@_spi(Ports) public import RunLoopKit

/// A socket that sends and receives datagrams, over UDP or a Unix socket.
///
/// ```swift
/// let socket = try DatagramSocket(address: Endpoint("0.0.0.0", port: 8125), on: loop) { socket, bytes, header in
///     socket.send(bytes, to: header.sender, from: header.localAddress)  // an echo
/// }
/// ```
///
/// A pass receives up to ``Options/budget`` datagrams, in batches of one system call. Datagrams that the receive
/// handler sends leave in batches at the end of the pass; see ``sendTogether(_:)``. A datagram that the system does not
/// accept at once waits in a bounded queue; when the queue is full,
/// ``send(_:to:from:typeOfService:)-(Span<UInt8>,_,_,_)`` refuses more.
///
/// Datagrams can be lost, or arrive twice or out of order. The failure of a datagram does not close the socket: the
/// error handler receives it, with the peer that was unreachable or refused it.
///
/// An open socket keeps itself alive, so you need not keep a reference. The end of its loop closes it. A datagram
/// socket belongs to the loop's thread and is not `Sendable`.
public final class DatagramSocket {
    /// A closure that receives the bytes of a datagram, which are valid during the call, and its header.
    public typealias ReceiveHandler = (DatagramSocket, Span<UInt8>, Header) -> Void

    /// The place where the socket was made.
    public let origin: RunLoop.Origin
    /// The modes in which the socket receives and sends.
    public let modes: RunLoop.Modes
    /// The descriptor, which the socket owns and closes.
    public let fileDescriptor: Int32
    /// Called with a system error when a datagram could not be sent or a peer's system refused it, and with the peer if
    /// it is known. The socket stays open.
    public var errorHandler: ((DatagramSocket, SystemError, Endpoint?) -> Void)?
    /// Called after the queue has refused a datagram, once it is at most half full; see ``Options/maximumOutput``.
    public var drainHandler: ((DatagramSocket) -> Void)?
    /// Called after a batch of datagrams has been passed to the receive handler, before more are received.
    @_spi(Ports) public var batchHandler: (() -> Void)?
    /// Called for each accepted datagram, in order, when the system has it or with its error, which the error handler
    /// then does not receive.
    @_spi(Ports) public var outcomeHandler: ((SystemError?) -> Void)?
    /// Called after the end of the loop has closed the socket.
    @_spi(Ports) public var closedByLoop: (() -> Void)?
    /// The number of received datagrams.
    public private(set) var receivedCount = 0
    /// The number of datagrams that the system has accepted.
    public private(set) var sentCount = 0
    /// The number of bytes waiting to be sent, as ``Options/maximumOutput`` counts them.
    public var pendingOutput: Int { machine.waiting }
    /// A Boolean value that indicates whether the socket is open.
    public var isOpen: Bool { !machine.isClosed }

    /// The passing on of received datagrams.
    private enum Delivery {
        case none
        /// A posted call is to pass them on.
        case posted
        /// The receive handler is being called: a run nested in it delivers nothing.
        case running
    }

    let loop: RunLoop
    let system: any SystemCalls
    private let options: Options
    private let pool: DatagramPool
    private let family: Int32
    private var isUnix: Bool { family == AF_UNIX }
    /// The local port; 0 if an adopted socket has none yet.
    private var port: UInt16
    /// True if the system accepts several datagrams in one piece.
    private var sendsSegments: Bool
    private var machine: DatagramMachine
    private var handler: ReceiveHandler?
    private var source: DescriptorSource?
    private var retry: Timer?
    /// The received datagrams that have not been passed on.
    private var area: DatagramArea?
    private var delivery = Delivery.none
    private var queue: DatagramQueue
    /// The number of nested scopes that gather datagrams to send together.
    private var gatherings = 0
    private var hasToldOfIgnoredSend = false
    /// The path to remove when the socket closes if it still leads to the socket.
    private let path: (text: String, file: SocketFile)?
    /// The wait of a task for a datagram, if the socket is for tasks.
    let reception: TaskWait?
    /// The waits of tasks to send.
    var senders: [TaskWait] = []
    private(set) var hasLostLoop = false

    /// Creates a socket bound to an address, and connected if there is a peer. Call it on the loop's thread.
    ///
    /// - Parameters:
    ///   - address: the address at which the socket receives. Port 0 lets the system choose; see ``address``. An
    ///     ``Endpoint/unnamed`` Unix socket receives no answers.
    ///   - peer: the only peer; by default the socket receives from all. The peer of a Unix socket must exist.
    ///   - loop: the loop that serves the socket.
    ///   - modes: the modes in which the socket is served.
    ///   - options: the options of the socket.
    ///   - receive: called with each datagram; kept until the socket is closed. Without a handler, tasks call
    ///     ``receive()``.
    /// - Throws: ``SystemError``, for example with `EADDRINUSE`, `EACCES` or `EADDRNOTAVAIL`. A path is in use unless
    ///   it leads to nothing, or to a socket on which no process answers.
    public convenience init(
        address: Endpoint, peer: Endpoint? = nil, on loop: RunLoop, inModes modes: RunLoop.Modes = .common,
        options: Options = Options(), receive: ReceiveHandler? = nil, file: StaticString = #fileID, line: UInt32 = #line
    ) throws {
        let descriptor = try WorldSystem.of(loop).openDatagramSocket(at: address, to: peer, options)
        try self.init(
            descriptor, path: address.filePath, on: loop, modes, options, receive,
            RunLoop.Origin(file: file, line: line))
    }

    /// Creates a socket connected to a peer, at an address that the system chooses; a Unix socket is unnamed. Call it
    /// on the loop's thread. See ``init(address:peer:on:inModes:options:receive:file:line:)``.
    public convenience init(
        peer: Endpoint, on loop: RunLoop, inModes modes: RunLoop.Modes = .common, options: Options = Options(),
        receive: ReceiveHandler? = nil, file: StaticString = #fileID, line: UInt32 = #line
    ) throws {
        let descriptor = try WorldSystem.of(loop).openDatagramSocket(at: nil, to: peer, options)
        try self.init(
            descriptor, path: nil, on: loop, modes, options, receive, RunLoop.Origin(file: file, line: line))
    }

    /// Creates a socket on a descriptor, for example one from a service manager, which it makes non-blocking and then
    /// owns. The descriptor's socket options do not change.
    ///
    /// - Throws: ``SystemError`` with `EINVAL` if the descriptor is not a datagram socket;
    ///   ``/RunLoopKit/DescriptorError`` if it cannot be watched.
    public convenience init(
        adopting descriptor: Int32, on loop: RunLoop, inModes modes: RunLoop.Modes = .common,
        options: Options = Options(),
        receive: ReceiveHandler? = nil, file: StaticString = #fileID, line: UInt32 = #line
    ) throws {
        let system = WorldSystem.of(loop)
        try system.check(
            descriptor, isA: "datagram", SO_TYPE, is: Int32(SOCK_DGRAM.rawValue), otherwise: "has no datagrams")
        system.prepare(descriptor)
        try self.init(
            descriptor, path: nil, on: loop, modes, options, receive, RunLoop.Origin(file: file, line: line))
    }

    private init(
        _ descriptor: Int32, path: String?, on loop: RunLoop, _ modes: RunLoop.Modes, _ options: Options,
        _ receive: ReceiveHandler?, _ origin: RunLoop.Origin
    ) throws {
        require(options.maximumSize > 0, "a datagram socket receives at least one byte, not \(options.maximumSize)")
        require(options.budget > 0, "a pass receives at least one datagram, not \(options.budget)")
        (fileDescriptor, self.loop, self.modes, self.options) = (descriptor, loop, modes, options)
        (self.origin, handler) = (origin, receive)
        let system = WorldSystem.of(loop)
        self.system = system
        self.path = path.flatMap { path in system.socketFile(at: path).map { (path, $0) } }
        pool = .shared(of: loop)
        let address = system.localAddress(of: descriptor)
        (family, port) = (address.family, address.port ?? 0)
        let isUnix = family == AF_UNIX
        sendsSegments = !isUnix && system.takesSegments(descriptor)
        if !isUnix {
            let takesAll = options.maximumSize >= Self.longestDatagram
            system.reportFacts(of: descriptor, family, together: takesAll && sendsSegments)
        }
        queue = DatagramQueue(.shared(of: loop))
        machine = DatagramMachine(mostWaiting: options.maximumOutput, isForTasks: receive == nil)
        reception = receive == nil ? NamedWait(loop.remote, "receives a datagram") : nil
        let source = DescriptorSource(fileDescriptor: descriptor, events: machine.interest, origin: origin) {
            [self] _, events in serve(events)
        }
        source.name = "datagram socket \(address)"
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
            system.close(descriptor)
            throw error
        }
    }

    private static let longestDatagram = 65_535
    private static let deliveryLabel = CallLabel("datagrams that came in one piece")

    private var description: String { "the datagram socket on descriptor \(fileDescriptor) (\(origin))" }

    /// The address at which the socket receives, with the port that the system chose.
    public var address: Endpoint { system.localAddress(of: fileDescriptor) }

    /// Connects the socket to another peer, which receives datagrams sent without a receiver; datagrams from others are
    /// no longer received. Call it on the loop's thread.
    ///
    /// - Throws: ``SystemError``, for example with `ECONNREFUSED` for a Unix socket that no process has open.
    public func connect(to peer: Endpoint) throws(SystemError) {
        guard isOpen, system.connect(fileDescriptor, to: peer) == 0 else {
            throw isOpen ? .last("connect to \(peer)") : closeError
        }
    }

    private func serve(_ events: DescriptorEvents) {
        gatherings += 1
        if events.contains(.readable) && machine.wantsInput { receiveSome() }
        if events.contains(.writable) && machine.interest.contains(.writable) { machine.unblock() }
        assert(gatherings > 0, "datagrams are sent together twice")
        gatherings -= 1
        flush()
    }

    private func watch() {
        source?.events = delivery == .running ? machine.interest.subtracting(.readable) : machine.interest
    }

    // MARK: Receiving

    /// Receives datagrams up to the budget of a pass; for tasks, one batch.
    private func receiveSome() {
        // In a run nested in the receive handler, the socket waits until the handler returns.
        guard delivery != .running else { return watch() }
        guard delivery != .posted else { return }
        var budget = deliver(atMost: options.budget)
        var isFirst = true
        while budget > 0, area == nil, machine.wantsInput {
            let most = min(budget, DatagramSlot.mostPerCall)
            let area = pool.take(room: options.maximumSize)
            let count = area.receive(atMost: most, from: fileDescriptor, withFacts: !isUnix, system)
            guard count > 0 else {
                let reason = errno
                pool.put(area)
                budget -= 1
                guard receptionFailed(reason, isFirst: isFirst) else { return }
                isFirst = false
                continue
            }
            assert(self.area == nil, "datagrams that were not passed on are lost")
            self.area = area
            isFirst = false
            budget = deliver(atMost: budget)
            if count < most { break }
        }
        // One piece may have more datagrams than the budget.
        if handler != nil { deliverLater() }
    }

    /// - Returns: whether there may be more datagrams.
    private func receptionFailed(_ reason: Int32, isFirst: Bool) -> Bool {
        switch reason {
        case EINTR: return true
        case EAGAIN:
            // Errors in a socket's queue also make its descriptor ready.
            if isFirst { takeQueuedErrors() }
            return false
        default:
            if !takeQueuedErrors() { report(SystemError("receive a datagram", errno: reason), nil) }
            return true
        }
    }

    /// Passes on the received datagrams, or lets a waiting task take one.
    ///
    /// - Returns: the number of datagrams that the pass may still deliver.
    private func deliver(atMost budget: Int) -> Int {
        guard let area, delivery != .running else { return budget }
        guard let handler else {
            reception?.end()
            return 0
        }
        var left = budget
        delivery = .running
        while left > 0, machine.wantsInput, let slot = area.next() {
            handler(self, Span(_unsafeBytes: slot.content), header(of: slot))
            left -= 1
        }
        delivery = .none
        letGo(area)
        if left < budget { batchHandler?() }
        return left
    }

    /// Passes on already received datagrams, which the descriptor does not report, in the next pass.
    private func deliverLater() {
        guard machine.wantsInput, area != nil, delivery == .none else { return }
        delivery = .posted
        loop.perform(at: loop.now, inModes: modes, label: Self.deliveryLabel, origin: origin) { [weak self] in
            guard let self else { return }
            delivery = .none
            sendTogether { _ = deliver(atMost: options.budget) }
            if handler != nil { deliverLater() }
        }
    }

    private func header(of slot: DatagramSlot) -> Header {
        assert(slot.length >= 0, "a datagram has less than no bytes")
        receivedCount += 1
        if port == 0, !isUnix { port = address.port ?? 0 }
        return Header(slot, port: port)
    }

    private func letGo(_ area: DatagramArea) {
        guard area.isEmpty else { return }
        assert(self.area === area || !isOpen, "another area is let go")
        self.area = nil
        pool.put(area)
    }

    /// Stops receiving until ``resumeReceiving()`` has been called once for each call of this method. Datagrams wait in
    /// the system, which drops UDP datagrams when its buffer is full. Call it on the loop's thread.
    public func pauseReceiving() {
        machine.pause()
        watch()
    }

    /// Undoes one call of ``pauseReceiving()``. Without one, has no effect and is reported to `RunLoop.trace`. Call it
    /// on the loop's thread.
    public func resumeReceiving() {
        guard machine.resume() else {
            loop.emit(.ignored("\(description) was asked to resume receiving, which was not paused"))
            return
        }
        watch()
        deliverLater()
    }

    // MARK: Sending

    /// Sends a datagram, at once or when the system accepts it, without blocking. Call it on the loop's thread.
    /// O(bytes).
    ///
    /// - Parameters:
    ///   - bytes: the bytes, which may be empty.
    ///   - peer: the receiver; by default the connected peer.
    ///   - source: the local address that the datagram leaves from, such as the ``Header/localAddress`` of a datagram
    ///     that it answers; its port is ignored. By default the socket's own address, or else an address that the
    ///     system chooses. Has no effect on a Unix socket.
    ///   - typeOfService: the class and the congestion mark, encoded as in ``Header/typeOfService``; by default the
    ///     socket's, which are 0 if no option has set them.
    /// - Returns: `true` if the datagram was accepted. `false` if too many bytes are already waiting: the datagram is
    ///   not sent, and the drain handler is called when there is room. Also `false` on a closed socket, which is
    ///   reported to `RunLoop.trace` once. An accepted datagram that cannot be sent is reported to the error handler,
    ///   for example with `EMSGSIZE`, or, if the machine does not have the source address, with `ENETUNREACH` (IPv4) or
    ///   `EINVAL` (IPv6).
    @discardableResult
    public func send(
        _ bytes: Span<UInt8>, to peer: Endpoint? = nil, from source: Endpoint? = nil, typeOfService: UInt8? = nil
    ) -> Bool {
        let route = DatagramRoute(to: peer, from: source, typeOfService: typeOfService)
        return bytes.withUnsafeBytes { send($0, on: route) }
    }

    /// Sends a datagram; see ``send(_:to:from:typeOfService:)-(Span<UInt8>,_,_,_)``.
    @discardableResult
    public func send(
        _ bytes: [UInt8], to peer: Endpoint? = nil, from source: Endpoint? = nil, typeOfService: UInt8? = nil
    ) -> Bool {
        send(bytes.span, to: peer, from: source, typeOfService: typeOfService)
    }

    /// Sends a text as UTF-8; see ``send(_:to:from:typeOfService:)-(Span<UInt8>,_,_,_)``.
    @discardableResult
    public func send(
        _ text: String, to peer: Endpoint? = nil, from source: Endpoint? = nil, typeOfService: UInt8? = nil
    ) -> Bool {
        send(text.utf8.span, to: peer, from: source, typeOfService: typeOfService)
    }

    private func send(_ bytes: UnsafeRawBufferPointer, on route: DatagramRoute) -> Bool {
        guard isOpen else {
            if !hasToldOfIgnoredSend {
                loop.emit(.ignored("\(description) was asked to send after it had been closed"))
            }
            hasToldOfIgnoredSend = true
            return false
        }
        guard machine.admits(DatagramQueue.size(of: bytes, on: route)) else { return false }
        queue.append(bytes, on: route)
        flush()
        return true
    }

    /// Sends the datagrams of a block in batches of up to 16 per system call when the block returns. Call it on the
    /// loop's thread.
    public func sendTogether(_ body: () -> Void) {
        gatherings += 1
        body()
        gatherings -= 1
        flush()
    }

    /// Sends datagrams. A queued error of an earlier datagram is reported and does not stop them.
    ///
    /// - Returns: the number of sent datagrams; `nil` if the system accepts none for now.
    /// - Throws: the failure of the first datagram.
    private func transmit(_ slots: UnsafeMutableBufferPointer<DatagramSlot>) throws(SystemError) -> Int? {
        // The system would ignore a source address of another family.
        assert(isOpen && !slots.isEmpty, "nothing is sent, or on a closed socket")
        let most = slots.firstIndex { $0.localAddress.known.map { $0.family != family } ?? false } ?? slots.count
        guard most > 0 else {
            throw SystemError("send a datagram from \(slots[0].localAddress)", errno: EAFNOSUPPORT)
        }
        let slots = UnsafeMutableBufferPointer(rebasing: slots[..<most])
        var inSegments = sendsSegments && most > 1
        for _ in 0..<Self.mostTries {
            let count = system.send(fileDescriptor, slots, inSegments: inSegments)
            guard count < 0 else {
                assert(count <= slots.count, "the system has sent more datagrams than there were")
                sentCount += count
                return count
            }
            let reason = errno
            switch reason {
            case EINTR: continue
            case EINVAL where inSegments, EMSGSIZE where inSegments: inSegments = false
            case EIO where inSegments:
                // The interface does not support segments.
                (inSegments, sendsSegments) = (false, false)
            case EAGAIN:
                // The system does not report room in the queue of a Unix socket that is not the connected peer.
                let isReported = !isUnix || slots[0].address.family != AF_UNIX
                machine.block(reportsEnd: isReported)
                if !isReported { tryAgainLater() }
                return nil
            default:
                if reason != EMSGSIZE, takeQueuedErrors(), isOpen { continue }
                throw SystemError("send a datagram", errno: reason)
            }
        }
        // Errors of earlier datagrams arrive faster than this datagram can be sent.
        machine.block(reportsEnd: true)
        return nil
    }

    private static let mostTries = 16
    private static let pause = Duration.milliseconds(5)

    private func tryAgainLater() {
        let timer = Timer(at: loop.now + Self.pause, origin: origin) { [unowned self] _ in
            retry = nil
            machine.unblock()
            flush()
        }
        assert(retry?.isValid != true, "a socket tries again twice")
        retry = timer
        loop.add(timer, forMode: modes)
    }

    /// Sends the waiting datagrams, up to the budget of a pass, unless a scope gathers them.
    private func flush() {
        guard gatherings == 0, isOpen else { return }
        gatherings += 1
        var budget = options.budget
        while budget > 0, !machine.isBlocked, isOpen {
            let count = queue.fill(UnsafeMutableBufferPointer(rebasing: pool.outgoing.prefix(budget)))
            guard count > 0 else { break }
            do throws(SystemError) {
                let slots = UnsafeMutableBufferPointer(rebasing: pool.outgoing.prefix(count))
                guard let count = try transmit(slots) else { break }
                assert(count <= budget, "more datagrams were sent than a pass may send")
                budget -= count
                machine.left(queue.removeFirst(count))
                for _ in 0..<count { outcomeHandler?(nil) }
            } catch {
                budget -= 1
                let peer = pool.outgoing[0].address
                machine.left(queue.removeFirst(1))
                if let outcomeHandler {
                    outcomeHandler(error)
                } else {
                    report(error, peer.family == 0 ? nil : peer)
                }
            }
        }
        if machine.drains() { drainHandler?(self) }
        gatherings -= 1
        // The next pass sends the rest.
        if isOpen && !queue.isEmpty && !machine.isBlocked { machine.block(reportsEnd: true) }
        if machine.isIdle && !senders.isEmpty { endWaitsOfSenders() }
        watch()
    }

    // MARK: Errors

    /// Reports the queued errors of earlier datagrams, and returns whether there were any.
    @discardableResult
    private func takeQueuedErrors() -> Bool {
        // A Unix socket has no such queue; Linux would return a datagram.
        guard !isUnix else { return false }
        var hasAny = false
        while isOpen, let error = system.takeQueuedError(fileDescriptor) {
            // The sending call has already failed with a local error.
            guard !error.isLocal else { continue }
            hasAny = true
            report(SystemError("deliver a datagram", errno: error.errno), error.peer)
        }
        return hasAny
    }

    private func report(_ error: SystemError, _ peer: Endpoint?) {
        guard isOpen else { return }
        errorHandler?(self, error, peer)
    }

    // MARK: For tasks

    func takeDatagram() -> Datagram? {
        guard let area, let slot = area.next() else { return nil }
        defer { letGo(area) }
        return Datagram(bytes: Array(slot.content), header: header(of: slot))
    }

    func setAwaited(_ isAwaited: Bool) {
        machine.setAwaited(isAwaited)
        watch()
    }

    /// Sends a datagram if none is waiting, and returns whether it was sent.
    func sendNow(_ bytes: [UInt8], on route: DatagramRoute) throws -> Bool {
        guard isOpen else { throw closeError }
        guard machine.isIdle else { return false }
        let count = try bytes.withUnsafeBytes { bytes in
            (pool.outgoing[0].address, pool.outgoing[0].localAddress) = (route.peer, route.source)
            pool.outgoing[0].typeOfService = route.typeOfService
            pool.outgoing[0].bytes = UnsafeMutableRawBufferPointer(mutating: bytes)
            return try transmit(UnsafeMutableBufferPointer(rebasing: pool.outgoing.prefix(1)))
        }
        if count == nil { watch() }
        return count != nil
    }

    private func endWaitsOfSenders() {
        let waits = senders
        senders = []
        for wait in waits { wait.end() }
    }

    var closeError: SystemError { SystemError("use a datagram socket that was closed", errno: EBADF) }

    // MARK: Closing

    /// Closes the socket, and removes the path of a Unix socket unless another socket has replaced it. Waiting
    /// datagrams are lost. Call it on the loop's thread; repeated calls have no effect.
    public func close() {
        guard isOpen else { return }
        machine.close()
        source?.invalidate()
        retry?.invalidate()
        (source, retry) = (nil, nil)
        queue.removeAll()
        // Not returned to the pool, because a handler may be using one of its datagrams.
        area = nil
        if let path { system.remove(path.file, at: path.text) }
        system.close(fileDescriptor)
        reception?.end()
        endWaitsOfSenders()
        let handlers = (handler, errorHandler, drainHandler, batchHandler, outcomeHandler)
        (handler, errorHandler, drainHandler, batchHandler, outcomeHandler) = (nil, nil, nil, nil, nil)
        withExtendedLifetime(handlers) {}
    }
}

@available(*, unavailable, message: "a datagram socket belongs to its loop's thread")
extension DatagramSocket: Sendable {}
