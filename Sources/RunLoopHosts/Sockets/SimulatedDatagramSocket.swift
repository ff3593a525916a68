internal import Glibc
internal import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation
@_spi(Ports) internal import RunLoopUnix

/// A datagram socket of a simulated process. Its calls return the same results as the system's, with the reason in
/// `errno`.
final class SimulatedDatagramSocket: BoundSocket, DatagramCalls {
    /// The size of the system's buffers, if no option sets another, and its bookkeeping for each datagram.
    private static let usualBuffer: Int32 = 212_992
    private static let bookkeeping = 768

    /// A datagram not yet received.
    struct Arrival {
        let bytes: [UInt8]
        /// The sender's address at the time of sending; a Unix socket's present name is used instead.
        private let source: Endpoint
        /// The sending Unix socket, in whose buffer the datagram counts.
        let origin: SimulatedDatagramSocket?
        /// The charge of the datagram in a buffer.
        let charge: Int
        /// The way of the datagram; `nil` for a Unix socket.
        let way: DatagramWay?

        /// Creates the arrival of a datagram of UDP at a socket of a family.
        init(_ bytes: [UInt8], on way: DatagramWay, for family: Int32) {
            (self.bytes, self.way, origin) = (bytes, way, nil)
            (source, charge) = (way.source.mapped(for: family), bytes.count + bookkeeping)
        }

        init(_ bytes: [UInt8], fromUnix origin: SimulatedDatagramSocket) {
            (self.bytes, self.origin, way) = (bytes, origin, nil)
            (source, charge) = (origin.localAddress, chargeOfUnix(bytes.count))
        }

        var sender: Endpoint { origin?.localAddress ?? source }
    }

    private(set) var isOpen = true
    var connectedAddress: Endpoint?
    /// The socket that a Unix socket is connected to, even if it was closed meanwhile.
    var peer: SimulatedDatagramSocket?
    /// The Unix sockets that are connected to this one.
    var connected: [SimulatedDatagramSocket] = []
    /// The groups that the socket has joined, as addresses without a port.
    var groups: Set<String> = []
    private var hasEndedWriting = false

    private(set) var arrivals: [Arrival] = []
    private var arrivedCharge = 0
    /// The bytes that receivers of a Unix socket's datagrams have not read.
    private var unreadCharge = 0
    override var error: Int32 { didSet { if error != oldValue { tell() } } }
    private var errors: [QueuedError] = []

    override init(_ family: Int32, in table: SocketTable) {
        super.init(family, in: table)
        // The defaults of Linux.
        for option in [SO_RCVBUF, SO_SNDBUF] { setOption(SOL_SOCKET, option, Self.usualBuffer / 2) }
        for option in [IP_MULTICAST_TTL, IP_MULTICAST_LOOP] { setOption(Int32(IPPROTO_IP), Int32(option), 1) }
        for option in [IPV6_MULTICAST_HOPS, IPV6_MULTICAST_LOOP] { setOption(Int32(IPPROTO_IPV6), option, 1) }
    }

    override class var isDatagram: Bool { true }
    var hasInput: Bool { !arrivals.isEmpty }
    var unsentOutput: Int { 0 }
    func listen(backlog: Int32) -> Int32 { failure(EOPNOTSUPP) }
    func resetWhenClosed() {}

    // MARK: Options

    @discardableResult
    override func setOption(_ level: Int32, _ option: Int32, _ value: Int32) -> Int32 {
        if level == Int32(IPPROTO_TCP) { return failure(ENOPROTOOPT) }
        // As on Linux, which doubles the size to count its bookkeeping as well.
        let isBuffer = level == SOL_SOCKET && (option == SO_RCVBUF || option == SO_SNDBUF)
        return super.setOption(level, option, isBuffer ? max(2_304, 2 * min(max(0, value), .max / 2)) : value)
    }

    override func option(_ level: Int32, _ option: Int32) -> Int32? {
        switch (level, option) {
        case (SOL_SOCKET, SO_TYPE): Int32(SOCK_DGRAM.rawValue)
        case (Int32(IPPROTO_TCP), _): nil
        default: super.option(level, option)
        }
    }

    /// Returns an option of IPv6 or, for another family, of IPv4.
    func option(of family: Int32, six: Int32, four: Int32) -> Int32? {
        family == AF_INET6 ? option(Int32(IPPROTO_IPV6), six) : option(Int32(IPPROTO_IP), four)
    }

    private var receiveBuffer: Int { Int(option(SOL_SOCKET, SO_RCVBUF)!) }
    var sendBuffer: Int { Int(option(SOL_SOCKET, SO_SNDBUF)!) }
    /// `true` if errors of the socket's datagrams are queued.
    private var queuesErrors: Bool { option(of: family, six: IPV6_RECVERR, four: IP_RECVERR) == 1 }
    /// `true` if a datagram that does not fit in one packet fails.
    var refusesFragments: Bool { option(Int32(IPPROTO_IP), IP_MTU_DISCOVER) == IP_PMTUDISC_DO }

    func bind(to address: Endpoint) -> Int32 {
        family == AF_UNIX ? bindUnix(to: address) : bindInternet(to: address)
    }

    func connect(to address: Endpoint) -> Int32 {
        family == AF_UNIX ? connectUnix(to: address) : connectInternet(to: address)
    }

    // MARK: Receiving

    /// Takes a datagram, or drops it if there is no room.
    func accept(_ bytes: [UInt8], on way: DatagramWay) {
        guard isOpen, arrivedCharge <= receiveBuffer else {
            network.simulation.note(.lost(bytes.count), from: table.name, to: table.name, bytes: bytes)
            network.simulation.meet(.datagramLost)
            return
        }
        add(Arrival(bytes, on: way, for: family))
    }

    func add(_ arrival: Arrival) {
        arrivals.append(arrival)
        arrivedCharge += arrival.charge
        arrival.origin?.unreadCharge += arrival.charge
        tell()
    }

    override func read(into room: UnsafeMutableRawBufferPointer) -> Int {
        receive(into: room).map { min($0.bytes.count, room.count) } ?? -1
    }

    func receive(into slots: UnsafeMutableBufferPointer<DatagramSlot>, withFacts: Bool) -> Int {
        var count = 0
        while count < slots.count, count == 0 || (error == 0 && hasInput),
            let arrival = receive(into: slots[count].bytes)
        {
            slots[count].length = arrival.bytes.count
            slots[count].address = arrival.sender
            if withFacts { note(arrival.way, in: &slots[count]) }
            count += 1
        }
        return count > 0 ? count : -1
    }

    private func receive(into room: UnsafeMutableRawBufferPointer) -> Arrival? {
        if let reason = takeError() { return failure(reason) }
        guard hasInput else { return failure(EAGAIN) }
        let arrival = arrivals.removeFirst()
        release(arrival)
        arrival.bytes.withUnsafeBytes {
            room.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0.prefix(room.count)))
        }
        tell()
        for socket in connected { socket.tell() }
        return arrival
    }

    private func release(_ arrival: Arrival) {
        arrivedCharge -= arrival.charge
        guard let origin = arrival.origin else { return }
        origin.unreadCharge -= arrival.charge
        origin.tell()
    }

    func dropArrivals() {
        let dropped = arrivals
        arrivals = []
        for arrival in dropped { release(arrival) }
    }

    // MARK: Sending

    override func write(_ bytes: UnsafeRawBufferPointer) -> Int { send(bytes, DatagramSlot()) }

    func send(_ slots: UnsafeMutableBufferPointer<DatagramSlot>, inSegments: Bool) -> Int {
        var count = 0
        for slot in slots {
            guard send(UnsafeRawBufferPointer(slot.bytes), slot) >= 0 else { break }
            count += 1
        }
        return count > 0 ? count : -1
    }

    /// Sends bytes to the address of a slot, from the slot's source and with its type of service.
    private func send(_ bytes: UnsafeRawBufferPointer, _ slot: DatagramSlot) -> Int {
        let address = slot.address.family == 0 ? nil : slot.address
        return family == AF_UNIX ? sendUnix(bytes, to: address) : sendInternet(bytes, to: address, slot)
    }

    func endWriting() {
        hasEndedWriting = true
    }

    /// Returns the reason why the socket sends nothing, whatever and wherever.
    func reasonAgainstSending() -> Int32? { takeError() ?? (hasEndedWriting ? EPIPE : nil) }

    // MARK: Errors

    /// Takes the news that a peer's machine has refused a datagram, if the datagram left from the socket's own address.
    func wasRefused(on way: DatagramWay) {
        let address = way.target
        guard isOpen, localAddress.isWildcard || localAddress.hostText == way.source.hostText,
            connectedAddress.map({ $0 == address }) ?? queuesErrors
        else { return }
        note(QueuedError(errno: ECONNREFUSED, peer: address, isLocal: false))
        error = ECONNREFUSED
    }

    func note(_ error: QueuedError) {
        guard queuesErrors else { return }
        errors.append(error)
        tell()
    }

    func takeQueuedError() -> QueuedError? {
        guard !errors.isEmpty else { return failure(EAGAIN) }
        let taken = errors.removeFirst()
        // As on Linux, errors of the network are also errors of the next call.
        if let next = errors.first, !next.isLocal { error = next.errno } else if !taken.isLocal { error = 0 }
        tell()
        return taken
    }

    // MARK: The end

    override func close() {
        isOpen = false
        if isBound { table.unbind(self) }
        peer?.connected.removeAll { $0 === self }
        peer = nil
        dropArrivals()
        let senders = connected
        connected = []
        for socket in senders { socket.tell() }
    }

    override func vanish() {
        isOpen = false
        (peer, connected, arrivals) = (nil, [], [])
        super.vanish()
    }

    // MARK: Readiness

    override var readiness: DescriptorEvents? {
        guard isOpen else { return [] }
        guard error == 0, errors.isEmpty else { return [.readable, .writable] }
        var events: DescriptorEvents = hasInput ? .readable : []
        // Linux counts from 1.
        let hasRoom = (unreadCharge + 1) * 4 <= sendBuffer
        if hasRoom, peer.map({ !$0.isFull(for: self) }) ?? true { events.insert(.writable) }
        return events
    }

    /// `true` if the socket's receivers have read too little to send more.
    var hasTooMuchUnread: Bool { unreadCharge >= sendBuffer }
}

extension Endpoint {
    /// Returns the address that stands for all of a machine's; a Unix socket has no name.
    static func any(of family: Int32) -> Endpoint {
        family == AF_UNIX ? .unnamed : try! Endpoint(family == AF_INET6 ? "::" : "0.0.0.0", port: 0)
    }
}
