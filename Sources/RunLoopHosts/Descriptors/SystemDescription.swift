@_spi(Ports) internal import RunLoopUnix

/// The target of a descriptor of the real system, which simulated processes can use as well.
final class SystemDescription: OpenDescription, DatagramCalls {
    private let descriptor: Int32
    private let real = WorldSystem.real

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
    }

    override func prepare() { real.prepare(descriptor) }
    override func read(into room: UnsafeMutableRawBufferPointer) -> Int { real.read(descriptor, into: room) }
    override func write(_ bytes: UnsafeRawBufferPointer) -> Int { real.write(descriptor, bytes) }
    override func send(_ bytes: UnsafeRawBufferPointer) -> Int { real.send(descriptor, bytes) }
    var isSocket: Bool { real.isSocket(descriptor) }
    var localAddress: Endpoint { real.localAddress(of: descriptor) }
    var connectedAddress: Endpoint? { real.peerAddress(of: descriptor) }
    var hasInput: Bool { real.hasInput(descriptor) }
    var unsentOutput: Int { real.unsentOutput(descriptor) }
    func setOption(_ level: Int32, _ option: Int32, _ value: Int32) -> Int32 {
        real.setOption(descriptor, level, option, value)
    }
    func option(_ level: Int32, _ option: Int32) -> Int32? { real.option(descriptor, level, option) }
    func bind(to address: Endpoint) -> Int32 { real.bind(descriptor, to: address) }
    func listen(backlog: Int32) -> Int32 { real.listen(descriptor, backlog: backlog) }
    func connect(to address: Endpoint) -> Int32 { real.connect(descriptor, to: address) }
    func endWriting() { real.endWriting(descriptor) }
    func resetWhenClosed() { real.resetWhenClosed(descriptor) }
    func receive(into slots: UnsafeMutableBufferPointer<DatagramSlot>, withFacts: Bool) -> Int {
        real.receive(descriptor, into: slots, withFacts: withFacts)
    }
    func send(_ slots: UnsafeMutableBufferPointer<DatagramSlot>, inSegments: Bool) -> Int {
        real.send(descriptor, slots, inSegments: inSegments)
    }
    func takeQueuedError() -> QueuedError? { real.takeQueuedError(descriptor) }
    func changeMembership(joins: Bool, group: Endpoint, interface: String?) -> Int32 {
        real.changeMembership(descriptor, joins: joins, group: group, interface: interface)
    }
}

/// The calls of a socket, simulated or of the real system.
protocol SocketCalls: OpenDescription {
    var isSocket: Bool { get }
    var localAddress: Endpoint { get }
    /// The peer of a connected socket.
    var connectedAddress: Endpoint? { get }
    var hasInput: Bool { get }
    var unsentOutput: Int { get }
    @discardableResult
    func setOption(_ level: Int32, _ option: Int32, _ value: Int32) -> Int32
    func option(_ level: Int32, _ option: Int32) -> Int32?
    func bind(to address: Endpoint) -> Int32
    func listen(backlog: Int32) -> Int32
    func connect(to address: Endpoint) -> Int32
    func endWriting()
    func resetWhenClosed()
}

/// The calls of a datagram socket, besides the ones of any socket.
protocol DatagramCalls: SocketCalls {
    func receive(into slots: UnsafeMutableBufferPointer<DatagramSlot>, withFacts: Bool) -> Int
    func send(_ slots: UnsafeMutableBufferPointer<DatagramSlot>, inSegments: Bool) -> Int
    func takeQueuedError() -> QueuedError?
    func changeMembership(joins: Bool, group: Endpoint, interface: String?) -> Int32
}
